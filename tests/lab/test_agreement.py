"""A lab goes on when every broker that answers knows what was done: the next question may go to any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import confluent_kafka.admin
import pytest

from kelr.errors import LabError
from kelr.lab import Lab, LabSpec, wire
from kelr.lab.state import LabState
from kelr.lab.story import create_topic
from kelr.model import PartitionState, TopicPartition

PORTS = {100: 20100, 1: 20001, 2: 20002, 3: 20003}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A lab on paper, all of whose nodes run."""
    monkeypatch.setattr(Lab, "_process", lambda _lab, _node: object())
    return Lab(tmp_path, LabState("lab", "cluster", LabSpec(), PORTS, "java", (), ""))


class Views:
    """What each broker answers, one answer after the other; the last one stays."""

    def __init__(self, answers: Mapping[int, list[Any]]) -> None:
        self._answers = {PORTS[broker]: iter_of(found) for broker, found in answers.items()}
        self.last: dict[int, Any] = {}

    def __call__(self, port: int, *_topics: object) -> Any:
        self.last[port] = next(self._answers[port], self.last.get(port))
        if self.last[port] is None:
            raise ConnectionRefusedError
        return self.last[port]


def iter_of(answers: list[Any]) -> Iterator[Any]:
    return iter(answers)


def test_a_broker_that_another_one_still_holds_to_be_fenced_is_waited_for(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was paused says of itself what it knew before; one that does not run says nothing."""
    views = Views({1: [None], 2: [{2: False, 3: True}, {2: False, 3: True}, {2: False, 3: False}], 3: [{3: False}]})
    monkeypatch.setattr(wire, "fenced_brokers", views)
    lab.wait_unfenced(3)
    assert views.last[PORTS[2]] == {2: False, 3: False}


def test_a_broker_that_stays_fenced_in_the_eyes_of_another_is_an_error(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "fenced_brokers", Views({1: [None], 2: [{3: True}], 3: [{3: False}]}))
    with pytest.raises(LabError, match=r"broker 3 was not unfenced in 0 s"):
        lab.wait_unfenced(3, timeout_s=0.2)


def test_a_topic_is_there_when_every_broker_knows_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    class Controller:
        def __init__(self, _config: Mapping[str, Any]) -> None:
            pass

        def create_topics(self, topics: list[Any]) -> dict[str, Future[None]]:
            done: Future[None] = Future()
            done.set_result(None)
            return {topic.topic: done for topic in topics}

    at = TopicPartition("new", 0)
    found = {at: PartitionState(topic="new", partition=0, leader=1, leader_epoch=0, replicas=(1,), isr=(1,))}
    views = Views({1: [found], 2: [{}, {}, found], 3: [None]})
    monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Controller)
    monkeypatch.setattr(wire, "partitions", views)
    create_topic(lab, "new", [[1]], {})
    assert views.last[PORTS[2]] == found
