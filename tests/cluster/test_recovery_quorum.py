"""The true LastKnownELR on real Kafka: the metadata log tells who held everything committed; Kafka keeps one id."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.main import main
from kelr.engine.logs import agreement
from kelr.lab import Lab, run_incident
from kelr.model import ReplicaLog, Selection, Target, TopicPartition
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.cluster.settled import settled

PARTITIONS = 6
COMMITTED = 40
"""Records of each partition that were acknowledged with acks=all."""
GUARANTEE = "none-if-fewer-than-min-isr-replicas-lost-data"

Ran = subprocess.CompletedProcess[str]
Kelr = Callable[..., Ran]


@pytest.fixture
def kelr(lab_43: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kelr:
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main([*arguments, "-b", lab_43.bootstrap_servers])
        captured = capsys.readouterr()
        return Ran(arguments, code, captured.out, captured.err)

    return run


def _explained(ran: Ran) -> list[dict[str, Any]]:
    assert ran.returncode == 0, ran.stdout + ran.stderr
    items: list[dict[str, Any]] = json.loads(ran.stdout)["items"]
    assert len(items) == PARTITIONS
    return items


def _election(item: dict[str, Any], kind: str) -> Any:
    elections = item["elections"]
    if isinstance(elections, dict):
        return elections[kind]
    return next(one for one in elections if one["election"] == kind)


def _balanced(item: dict[str, Any]) -> Any:
    return _election(item, "longest_log_balanced")


def _aggressive(item: dict[str, Any]) -> Any:
    return _election(item, "longest_log_aggressive")


def _logs(lab: Lab, topic: str, replica: int) -> dict[TopicPartition, ReplicaLog]:
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers)) as source:
        (page,) = source.pages(Selection((Target(topic=topic),)))
        answers = source.replica_logs(page.partitions, lineage=True)
    return {
        address: log
        for address, logs in answers.items()
        for log in logs
        if isinstance(log, ReplicaLog) and log.replica == replica
    }


def test_a_balanced_election_waits_for_the_two_that_held_everything(lab_43: Lab, kelr: Kelr) -> None:
    """3 dies first, then 2, then 1, which led last; 2 restarts uncleanly. Broker 3 never comes back: by what Kafka
    tells it may hold committed records, by the metadata log it was out of the ISR before the last ones."""
    lab = lab_43
    topic = run_incident(lab, "needs-unclean-recovery", partitions=PARTITIONS).topic
    lab.kill(3)
    (controller,) = lab.controllers
    log = ("--metadata-log", str(lab.data_directory(controller)))
    explain = ("explain", topic, "-o", "json")

    for item in _explained(kelr(*explain)):
        assert item["last_known_elr"] == [1]
        assert set(_balanced(item)["waits_for"]) == {1, 3}
        assert item["recovery_quorum"] is None
    for item in _explained(kelr(*explain, *log)):
        assert set(_balanced(item)["waits_for"]) == {1}
        assert item["recovery_quorum"]["doubt"] is None
        assert item["recovery_quorum"]["restarted"] == [2]

    # Broker 2 was in sync for every record that was acknowledged with acks=all.
    acknowledged = _logs(lab, topic, 2)

    # Else Kafka would elect broker 1 at its return, before anybody has compared its log with that of 2.
    held = kelr("recover", "clear-elr", topic, "--yes-clear-elr-of", topic, "--force", "to hear the whole quorum")
    assert held.returncode == 0, held.stdout + held.stderr
    lab.start(1)

    for item in _explained(kelr(*explain)):
        assert item["elr"] == item["last_known_elr"] == []
        assert set(_balanced(item)["waits_for"]) == {3}
        unread = _aggressive(item)["loss"]
        assert (unread["grade"], unread["unheard"]) == ("unknown", [3])
    for item in _explained(kelr(*explain, *log)):
        quorum = item["recovery_quorum"]
        assert set(quorum["members"]) == set(quorum["last_known_elr"]) == set(quorum["restarted"]) == {1, 2}
        assert (quorum["min_isr"], quorum["doubt"], quorum["leader_epoch"]) == (2, None, item["leader_epoch"])
        assert _balanced(item)["elected"] == 1
        assert _balanced(item)["loss"]["grade"] == _aggressive(item)["loss"]["grade"] == GUARANTEE
        assert item["advice"]["action"] == "designate"

    elect = ("elect", "-e", "longest_log_balanced", topic, "--yes", "--accept-loss", "0+")
    refused = kelr(*elect, "--timeout", "2")
    assert refused.returncode == 6, refused.stdout + refused.stderr
    elected = kelr(*elect, "--bootstrap-controller", lab.bootstrap_controllers)
    assert elected.returncode == 0, elected.stdout + elected.stderr
    after = _logs(settled(lab), topic, 1)
    for address, complete in acknowledged.items():
        # A producer that had to try again may have written a record twice.
        assert complete.log_end >= COMMITTED
        assert agreement(complete, after[address]) == complete.log_end
    assert {state.leader for state in lab.partitions(topic).values()} == {1}
    lab.restore()
