"""Reassignments under way on real Kafka: they are seen, and elections in that state end as predicted."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import ElectionType as Wire
from confluent_kafka import TopicPartition as WirePartition
from confluent_kafka.admin import AdminClient

from kelr.controller import Change, Circumstances, Election, broker_fenced, elect_leaders, isr_altered, rule_set
from kelr.engine import decide
from kelr.lab import Lab
from kelr.lab.observed import PATIENCE_S
from kelr.lab.produce import Acks, produce
from kelr.lab.spec import CONTROLLER_ID
from kelr.lab.story import create_topic
from kelr.model import Decision, ElectionType, PartitionState, TopicPartition, select
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.client import Client
from kelr.sources.live.requests import alter_reassignments
from kelr.sources.live.transport import Failure


def _live(lab: Lab, *, timeout_s: float = 20) -> LiveSource:
    return LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=timeout_s))


def _explained(lab: Lab, topic: str) -> tuple[PartitionState, Decision]:
    with _live(lab) as source:
        snapshot = take_snapshot(source, select([topic]), now_ms=0, with_logs=lambda _state: True)
    (state,) = snapshot.partitions
    return state, decide(snapshot, state)


def _reassign(lab: Lab, topic: str, replicas: list[int]) -> None:
    wanted = alter_reassignments({TopicPartition(topic, 0): replicas}, timeout_s=5)
    transport = Client(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=10))
    try:
        nodes = transport.bootstrap_nodes()
        transport.resolve(nodes.items(), timeout_s=2)
        answers = [transport.exchange(node, wanted) for node in nodes]
    finally:
        transport.close()
    taken = [answer for answer in answers if not isinstance(answer, Failure)]
    assert any(answer.error_code == 0 and answer.responses[0].partitions[0].error_code == 0 for answer in taken)


@pytest.fixture(params=["4.3.1", pytest.param("4.0.0", marks=pytest.mark.longer)])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    found: Lab = request.getfixturevalue("lab_43" if request.param == "4.3.1" else "lab_40")
    found.restore()
    yield found
    found.restore()


def _around(lab: Lab, *live: int) -> Circumstances:
    return Circumstances(frozenset(live), min_isr=2, rules=rule_set(f"elr-{lab.spec.kafka[:3]}"))


def test_a_reassignment_to_a_dead_broker_and_the_elections_while_it_lasts(lab: Lab) -> None:
    """From 1 and 2 to 2 and 3, with 3 dead. Its empty log is then elected, and what becomes of the reassignment
    depends on the version (KAFKA-19975)."""
    topic = "moving"
    create_topic(lab, topic, [(1, 2)], {})
    produce(lab.bootstrap_servers, topic, [0], batches=1, records=5, acks=Acks.ALL, label="r")
    assert _explained(lab, topic)[0].adding == (), "nothing is under way, and that is known"
    lab.kill(3)
    _reassign(lab, topic, [2, 3])
    lab.wait_partitions(topic, "the reassignment has begun", lambda state: set(state.replicas) == {1, 2, 3})

    state, decision = _explained(lab, topic)
    assert (state.replicas, state.adding, state.removing) == ((2, 3, 1), (3,), (1,))
    assert any("it adds broker 3 and removes broker 1" in note for note in decision.notes)
    standing = {candidate.replica: candidate.reason for candidate in decision.candidates}
    assert "being added" in standing[3]
    assert "being removed" in standing[1]

    lab.kill(1)
    state = _became(lab, topic, broker_fenced(state, 1, _around(lab, 2)))
    lab.kill(2)
    lab.start(3)
    state = _became(lab, topic, broker_fenced(state, 2, _around(lab, 3)))

    _, decision = _explained(lab, topic)
    unclean = next(outcome for outcome in decision.elections if outcome.election is ElectionType.UNCLEAN)
    answer = elect_leaders(state, Election.UNCLEAN, _around(lab, 3))
    assert (unclean.elected, answer.change.after.leader) == (3, 3)
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    outcomes = admin.elect_leaders(Wire.UNCLEAN, [WirePartition(topic, 0)]).result(30)
    assert list(outcomes.values()) == [None]
    state = _became(lab, topic, answer.change)
    # Broker 1 joins the ISR although it is being removed: for 4.3 that ends the reassignment, 4.0 waits for broker 2.
    lab.start(1)
    state = _became(lab, topic, isr_altered(state, (3, 1), _around(lab, 1, 3)))
    ends = lab.spec.kafka == "4.3.1"
    assert (state.replicas, state.isr, state.adding) == (((2, 3), (3,), ()) if ends else ((2, 3, 1), (3, 1), (3,)))


def _became(lab: Lab, topic: str, predicted: Change) -> PartitionState:
    """Wait until the partition is what was predicted, reassignment included; gives what kelr reads then."""

    def facts(state: PartitionState) -> tuple[object, ...]:
        adding, removing = set(state.adding or ()), set(state.removing or ())
        return state.leader, state.replicas, set(state.isr), set(state.elr or ()), adding, removing

    after, seen = facts(predicted.after), list[PartitionState]()

    def holds() -> bool:
        with _live(lab) as source:
            seen[:] = [state for page in source.pages(select([topic])) for state in page.partitions]
        return facts(seen[0]) == after

    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, (seen[0], predicted.after)
        time.sleep(0.2)
    return seen[0]


def test_without_a_controller_partitions_are_still_described(lab_43: Lab) -> None:
    """Brokers keep what they have to pass on until there is a controller; that must not hold up the rest."""
    lab_43.restore()
    create_topic(lab_43, "orphaned", [(1, 2, 3)], {})
    controller = next(node.pid for node in lab_43.status().nodes if node.node == CONTROLLER_ID)
    assert controller is not None
    os.kill(controller, signal.SIGKILL)
    try:
        started = time.monotonic()
        with _live(lab_43, timeout_s=120) as source:
            around = source.cluster()
            (state,) = (state for page in source.pages(select(["orphaned"])) for state in page.partitions)
            config = source.topic_configs(["orphaned"])["orphaned"]
        took_s = time.monotonic() - started
    finally:
        lab_43.restore()
    assert (around.controller, around.reassignments_error) == (None, "no answer in time")
    assert around.live == {1, 2, 3}
    assert (state.leader, state.elr, state.adding, state.removing) == (1, (), None, None)
    assert config.min_insync_replicas == 2
    assert took_s < 20, "no timeout was waited for"
