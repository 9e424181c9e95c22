"""`kelr whatif` on a real cluster: each broker and each pair goes, clean or not, and every partition comes to be just
what was predicted: leader, leader epoch, ISR, ELR and LastKnownElr.

Every ordered pair in every manner, and pairs at once, are `make predictions`; here are three histories in which each
broker goes first and last, and each pair is gone in the end.
"""

from __future__ import annotations

import json

import pytest

from kelr.commands.main import main
from kelr.engine.outages.scenario import Outage
from kelr.lab import Lab
from kelr.model import TopicPartition
from tests.cluster.whatif_truth import PARTITIONS, TOPICS, Truth, create_topics, kill, predicted, stop, whole_snapshot

HISTORIES = ((kill(1), kill(2)), (stop(2), stop(3)), (stop(3), kill(1)))

_UNTOUCHED = {TopicPartition("whatif-one", 2)}
"""Broker 3 alone has it."""


def test_what_brokers_take_with_them_comes_true(healthy_43: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    create_topics(healthy_43)
    truth = Truth(healthy_43)
    expected = predicted(whole_snapshot(healthy_43), Outage(HISTORIES[0], at_once=False))
    assert (
        main(["whatif", *TOPICS, "--if", "1 fails, then 2 fails", "-o", "json", "-b", healthy_43.bootstrap_servers])
        == 0
    )
    items = json.loads(capsys.readouterr().out)["items"]
    assert {(item["topic"], item["partition"]): item["ends"][0]["leader"] for item in items} == {
        (at.topic, at.partition): leader for at, (leader, *_) in expected.items() if at not in _UNTOUCHED
    }
    for blows in HISTORIES[:-1]:
        truth.one_after_the_other(blows)
        truth.back(blows)
    truth.one_after_the_other(HISTORIES[-1])
    assert truth.came_true == (4 * len(HISTORIES) - 2) * PARTITIONS
