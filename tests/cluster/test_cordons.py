"""Cordoned brokers on real Kafka 4.4 (KIP-1066): live, dead, and cordoned in the middle of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kelr.controller import Election
from kelr.lab import Lab, LabSpec
from kelr.lab.observed import PATIENCE_S
from kelr.lab.story import Story
from kelr.model import ElectionRequest, ElectionType, Method, Plan, Selection, Target, TopicPartition, Unplanned
from kelr.model.plan import AcceptedLoss, Applied, ElectionResult
from kelr.recovery.actor import whoever_runs_this
from kelr.recovery.apply import apply_plan
from kelr.recovery.configs import CORDONED
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal_store import open_journals
from kelr.recovery.plan_making import make_plan
from kelr.recovery.progress import ApplyEvent, Stage
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo
from kelr.sources.base import Source
from kelr.sources.connection import ConnectionSettings
from kelr.sources.ground import MACHINE
from kelr.sources.live import LiveSource
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.live.metadata_log import live_metadata_log
from kelr.sources.quorum_source import QuorumSource
from tests.cluster.settled import settled

pytestmark = pytest.mark.longer

CONSENT = Confirmation(AcceptedLoss(100_000, unbounded=True), "a test")
NAMES = "The manual partition assignment includes broker {}, but all its log directories are cordoned"
LIVE, DEAD = "live", "dead"
ORDERS = {LIVE: (3, 4, 2), DEAD: (3, 1, 2)}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Two topics without leaders: 2 and 3 live, 4 down, and 1 down, which was cordoned before it died."""
    place = tmp_path_factory.mktemp("lab") / "4.4.0"
    with Lab.up(LabSpec(kafka="4.4.0", brokers=4), place, owner_pid=os.getpid()) as made:
        for topic, order in ORDERS.items():
            Story(made, topic, lambda _: None).create_topic([order] * 3)
        _cordon(made, 1)
        for broker in (3, 2, 1, 4):
            made.kill(broker)
        for broker in (2, 3):
            made.start(broker)
        _wait(lambda: all(state.leader is None for topic in ORDERS for state in _states(made, topic).values()))
        yield made


def _wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _cordon(lab: Lab, broker: int, value: str | None = "*") -> None:
    """As its operator does, and waits until the broker knows it; it tells the controller with its next heartbeat."""
    change = ("--delete-config", CORDONED) if value is None else ("--add-config", f"{CORDONED}={value}")
    who = ("--alter", "--entity-type", "brokers", "--entity-name", str(broker))
    done = lab.stock_tool("kafka-configs.sh", "--bootstrap-server", lab.bootstrap_servers, *who, *change)
    assert done.returncode == 0, done.stderr
    _wait(lambda: (broker in _cordoned(lab)) is (value is not None))
    time.sleep(3)


def _cordoned(lab: Lab) -> set[int]:
    with _source(lab) as source:
        source.learn_cordons()
        return {broker.id for broker in source.cluster().brokers if broker.cordoned}


def _source(lab: Lab) -> LiveSource:
    return LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20))


def _states(lab: Lab, topic: str) -> Mapping[int, Any]:
    return {at.partition: state for at, state in settled(lab).partitions(topic).items()}


def _plan(source: Source, topic: str, partition: int, wish: ElectionRequest) -> Plan:
    selection = Selection((Target(topic=topic, partitions=(partition,)),))
    return make_plan(source, selection, lambda _: wish, clock_ms=MACHINE.now_ms).plan


def _designation(lab: Lab, topic: str, partition: int) -> Plan:
    with _source(lab) as source:
        return _plan(source, topic, partition, ElectionRequest(ElectionType.DESIGNATION, 2))


def _common(source: LiveSource, state: Path) -> dict[str, Any]:
    return {
        "source": source,
        "hand": LiveAdminClient.of(source),
        "state_directory": state,
        "ground": MACHINE,
        "who": whoever_runs_this(),
    }


def _apply(lab: Lab, plan: Plan, state: Path, **more: Any) -> Applied:
    with _source(lab) as source:
        (result,) = apply_plan(plan, **_common(source, state), consented=CONSENT, **more)
    return result


def _is_open(lab: Lab, state: Path) -> bool:
    with _source(lab) as source:
        return bool(open_journals(state, source.cluster().cluster_id))


def test_the_cordon_of_a_live_broker(lab: Lab, tmp_path: Path) -> None:
    _cordon(lab, 3)
    plan = _designation(lab, LIVE, 0)
    (planned,) = plan.elections
    assert (planned.method, planned.uncordons) == (Method.REORDER, (3,))
    result = _apply(lab, plan, tmp_path)
    assert (result.ended, result.leader) == (ElectionResult.DONE, 2), result
    assert _states(lab, LIVE)[0].replicas == ORDERS[LIVE]
    assert _cordoned(lab) == {3}
    assert not _is_open(lab, tmp_path)
    _cordon(lab, 3, None)


def test_a_cordon_between_reordering_and_restoring(lab: Lab, tmp_path: Path) -> None:
    """Kafka's sentence is told, the journal stays open, and resume goes on once the cordon is off."""
    plan = _designation(lab, LIVE, 1)
    (planned,) = plan.elections
    assert (planned.method, planned.uncordons) == (Method.REORDER, ())

    def cordons(event: ApplyEvent) -> None:
        if event.stage is Stage.LEADERS:
            _cordon(lab, 3)

    result = _apply(lab, plan, tmp_path, report=cordons)
    assert (result.ended, result.leader) == (ElectionResult.NOT_RESTORED, 2), result
    assert NAMES.format(3) in result.text
    with _source(lab) as source:
        (journal,) = open_journals(tmp_path, source.cluster().cluster_id)
        assert not undo(journal.path, **_common(source, tmp_path)).closed
    assert _states(lab, LIVE)[1].replicas == (2, 3, 4)
    _cordon(lab, 3, None)
    with _source(lab) as source:
        assert resume(journal.path, **_common(source, tmp_path)).good
    assert _states(lab, LIVE)[1].replicas == ORDERS[LIVE]
    assert not _is_open(lab, tmp_path)


def test_a_broker_that_died_cordoned(lab: Lab, tmp_path: Path) -> None:
    """The metadata log tells of it, and the plan refuses; without it the plan says what it does not know, and Kafka's
    refusal changes nothing. What needs no order is done."""
    brokers = ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)
    with live_metadata_log(brokers=brokers) as log, QuorumSource(_source(lab), log, follows=True) as source:
        plan = _plan(source, DEAD, 0, ElectionRequest(ElectionType.DESIGNATION, 2))
    (left,) = plan.not_planned
    assert left.why is Unplanned.REFUSED
    assert "Kafka takes no order of the replicas that names broker 1" in left.reason
    plan = _designation(lab, DEAD, 0)
    (planned,) = plan.elections
    assert any(warning.startswith("Whether broker 1 is cordoned") for warning in planned.warnings)
    result = _apply(lab, plan, tmp_path)
    assert (result.ended, result.error) == (ElectionResult.REFUSED, "INVALID_REPLICA_ASSIGNMENT")
    assert NAMES.format(1) in result.text
    state = _states(lab, DEAD)[0]
    assert (state.leader, state.replicas) == (None, ORDERS[DEAD])
    assert not _is_open(lab, tmp_path)
    with _source(lab) as live:
        unclean = _plan(live, DEAD, 0, ElectionRequest(ElectionType.UNCLEAN))
    assert _apply(lab, unclean, tmp_path).leader == 3


def test_kafka_drops_a_replica_that_an_order_leaves_out(lab: Lab) -> None:
    """Why an order without the cordoned broker is no way out: the replica leaves with its data once the others are in
    sync, and the order from before cannot be given again."""
    at = TopicPartition(DEAD, 1)
    with _source(lab) as source:
        hand = LiveAdminClient.of(source)
        assert hand.reorder({at: (2, 3)}) == {at: "NONE"}
        assert _states(lab, DEAD)[1].replicas == (2, 3, 1)  # 1 is being removed

        assert hand.elect(Election.UNCLEAN, [at]) == {at: "NONE"}
        _wait(lambda: _states(lab, DEAD)[1].replicas == (2, 3))
        assert hand.reorder({at: ORDERS[DEAD]}) == {at: "INVALID_REPLICA_ASSIGNMENT"}
