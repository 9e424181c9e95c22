"""kelr history on real Kafka: the story as it was made, from the controller's own log, against the lab's own record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from kelr.commands.main import main
from kelr.controller import Election
from kelr.lab import Lab
from kelr.lab.story import Action, Story
from kelr.model import TopicPartition
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.metadata_log.log import open_metadata_log
from tests.tla.histories import of_metadata_log
from tests.tla.steps import rejected

TOPIC = "told"
FIRST, SECOND = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)

Document = dict[str, Any]
History = Callable[..., Document]


@pytest.fixture(name="history")
def _history(lab_43: Lab, capsys: pytest.CaptureFixture[str]) -> History:
    """Runs ``kelr history -o json`` on the controller's disk."""

    def run(*arguments: str) -> Document:
        capsys.readouterr()
        directory = lab_43.data_directory(lab_43.controllers[0])
        code = main(["history", *arguments, "--metadata-log", str(directory), "-o", "json"])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        found: Document = json.loads(captured.out)
        return found

    return run


def write_min_isr(lab: Lab, value: str) -> None:
    entry = ConfigEntry("min.insync.replicas", value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    admin = AdminClient(ConnectionSettings.read(lab.bootstrap_servers).confluent())
    admin.incremental_alter_configs([resource])[resource].result(20)


def story(lab: Lab) -> Story:
    """Kills, restarts of both kinds, elections of four kinds, a reassignment and a min ISR write."""
    told = Story(lab, TOPIC, lambda _line: None)
    told.create_topic([(1, 2, 3), (1, 3, 2)])
    told.kill(3)
    told.kill(2)
    told.start(2)
    told.wait("2 is back", lambda state: set(state.isr) == {1, 2})
    told.stop(2)
    told.kill(1)
    told.start(3)
    told.wait("nobody leads", lambda state: state.leader is None)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        hand = LiveAdminClient.of(source)
        assert hand.reorder({FIRST: (3, 1, 2)})[FIRST] == "NONE"
        assert set(hand.elect(Election.UNCLEAN, [FIRST, SECOND]).values()) == {"NONE"}
        told.wait("3 leads", lambda state: state.leader == 3)
        assert hand.reorder({FIRST: (1, 2, 3)})[FIRST] == "NONE"
    told.start(1, 2)
    told.wait("all are in sync", lambda state: len(state.isr) == 3)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        hand = LiveAdminClient.of(source)
        assert hand.elect(Election.PREFERRED, [FIRST])[FIRST] == "NONE"
        told.wait("1 leads again", lambda state: state.partition == 1 or state.leader == 1)
        assert hand.reorder({FIRST: (1, 2)})[FIRST] == "NONE"
        told.wait("3 is gone", lambda state: state.partition == 1 or state.replicas == (1, 2))
        assert hand.reorder({FIRST: (1, 2, 3)})[FIRST] == "NONE"
        told.wait("3 is back", lambda state: len(state.isr) == 3)
    told.kill(3)
    told.stop(2)
    write_min_isr(lab, "1")
    told.wait("the ELR is empty", lambda state: not state.elr)
    told.start(2, 3)
    told.wait("all are in sync again", lambda state: len(state.isr) == 3)
    return told


def of_partition(document: Document) -> list[Document]:
    return [item for item in document["items"] if item["subject"] == "partition"]


def left_out(item: Document) -> int | None:
    """The broker that the leader took out of the ISR, where it did that."""
    gone = set(item["before"]["isr"]) - set(item["after"]["isr"]) if item["before"] and item["after"] else set()
    return min(gone, default=None)


def in_short(item: Document) -> tuple[str, int | None, str | None, str | None, int | None]:
    after = item["after"] or {"leader": None}
    if item["cause"] == "alter-partition":
        # Under load the leader may leave a killed broker out before its session ends, which changes nothing then.
        return "broker-fenced", left_out(item), None, None, after["leader"]
    return item["cause"], item["cause_broker"], item["restart"], item["elected_as"], after["leader"]


def assert_the_specification_allows(lab: Lab, place: Path) -> None:
    """Every record of the controller's log that changes a partition is a step of docs/tla/Controller.tla."""
    steps = list(of_metadata_log(open_metadata_log([lab.data_directory(lab.controllers[0])]).batches()))
    assert len(steps) > 20
    assert rejected(place, steps) == []


def test_the_story_is_told_as_it_was_made(healthy_43: Lab, history: History, tmp_path: Path) -> None:
    made = story(healthy_43)
    assert_the_specification_allows(healthy_43, tmp_path / "tlc")
    document = history(str(FIRST))
    items = of_partition(document)
    assert all(item["certainty"] == "certain" for item in items), items

    # What the leader reports while replicas catch up may come in one report or two.
    steps = [in_short(item) for item in items if item["cause"] != "alter-partition" or left_out(item) is not None]
    # A broker that shuts down and leads anything says so first; one that leads nothing is only fenced.
    told = [(kind.replace("controlled-shutdown", "broker-fenced"), *rest) for kind, *rest in steps]
    assert told == [
        ("topic-created", None, None, None, 1),
        ("broker-fenced", 3, None, None, 1),
        ("broker-fenced", 2, None, None, 1),
        ("broker-registered", 2, "unclean", None, 1),
        ("broker-fenced", 2, None, None, 1),
        ("broker-fenced", 1, None, None, None),
        ("reassignment", None, None, None, None),
        ("election", None, None, "unclean", 3),
        ("reassignment", None, None, None, 3),
        ("preferred-election", None, None, "preferred", 1),
        ("reassignment", None, None, None, 1),
        ("reassignment", None, None, None, 1),
        ("broker-fenced", 3, None, None, 1),
        ("broker-fenced", 2, None, None, 1),
        ("min-isr-written", None, None, None, 1),
    ]
    assert [item["reassignment"] for item in items if item["reassignment"]] == [
        "reordered",
        "reordered",
        "at-once",
        "begun",
        "completed",
    ]
    (election,) = [item for item in items if item["elected_as"] == "unclean"]
    assert (election["last_leader"], election["designated"], election["clean"]) == (1, True, False)
    reports = [item for item in items if item["cause"] == "alter-partition"]
    assert [item["cause_broker"] for item in reports] == [item["after"]["leader"] for item in reports]

    (other,) = [item for item in of_partition(history(str(SECOND))) if item["elected_as"] == "unclean"]
    assert (other["after"]["leader"], other["designated"], other["cause"]) == (3, False, "election")

    starts = [step.brokers for step in made.steps if step.action is Action.START]
    brokers = [item for item in document["items"] if item["subject"] == "broker"]
    since = items[0]["offset"]
    registered = [item["broker"] for item in brokers if item["event"] == "registered" and item["offset"] > since]
    assert sorted(registered) == sorted(broker for started in starts for broker in started)
    fenced = {item["broker"] for item in brokers if item["event"] == "fenced" and item["offset"] > since}
    assert fenced == {1, 2, 3}

    (summary,) = document["partitions"]
    assert summary["unclean"] == [
        {
            "offset": election["offset"],
            "at_ms": election["at_ms"],
            "last_leader": 1,
            "leader": 3,
            "elected_as": "unclean",
            "designated": True,
        }
    ]
    lost = next(item for item in items if item["after"]["leader"] is None)
    assert summary["spans"]["leaderless"]["total_ms"] == election["at_ms"] - lost["at_ms"]
    assert document["warnings"] == []


def test_live_controllers_tell_the_same(healthy_43: Lab, history: History, capsys: pytest.CaptureFixture[str]) -> None:
    if TOPIC not in {address.topic for address in healthy_43.partitions()}:
        story(healthy_43)
    on_disk = of_partition(history(str(SECOND)))
    code = main(["history", str(SECOND), "-b", healthy_43.bootstrap_servers, "-o", "json"])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert of_partition(json.loads(captured.out)) == on_disk
