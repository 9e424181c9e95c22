"""A look at a cluster: what is in trouble, what is followed until it is settled, and what could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kelr.controller import events
from kelr.engine import decide
from kelr.engine.watching import Sight
from kelr.lab.simulated.world import Denied
from kelr.model import Selection, Situation, Snapshot, Target, TopicError, TopicPartition
from kelr.model.target import parse_target
from kelr.protocol.messages import DescribeQuorumResponse, ListPartitionReassignmentsResponse
from kelr.sources.base import Page, silence_of, take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.transport import Failure, FailureKind
from kelr.sources.memory import MemorySource
from kelr.sources.watched import Looker
from tests.faults.cluster import incident, servers_of
from tests.incident import CLUSTER, INCIDENT, PARTITIONS
from tests.sources.fake_cluster import FakeTransport
from tests.sources.samples import fake_cluster

ORDERS_1, PAYMENTS = TopicPartition("orders", 1), TopicPartition("payments", 0)
NOW_MS = 1_700_000_000_000


def look(
    snapshot: Snapshot, before: Sight | None = None, *, source: Any = None, selection: Selection | None = None
) -> Sight:
    return Looker(selection or Selection(), lambda: NOW_MS).look(source or MemorySource(snapshot), before)


def with_state(address: TopicPartition, **changes: Any) -> Snapshot:
    """The incident with one partition otherwise."""
    states = tuple(replace(one, **changes) if one.address == address else one for one in PARTITIONS)
    return replace(INCIDENT, partitions=states)


def without(topic: str) -> Snapshot:
    return replace(INCIDENT, partitions=tuple(one for one in PARTITIONS if one.topic != topic))


def test_what_is_in_trouble_in_the_words_of_the_engine() -> None:
    sight = look(INCIDENT)
    found = {str(at): (one.situation, one.waits_for, one.awaits) for at, one in sight.partitions.items()}
    assert found == {
        "orders:1": (Situation.WAITING_FOR_ELR, (1,), "broker 1"),
        "orders:2": (Situation.WAITING_FOR_LAST_KNOWN_LEADER, (4,), "broker 4"),
        "payments:0": (Situation.UNDER_MIN_ISR, (), ""),
        "secret:0": (Situation.UNKNOWN, (), ""),
    }
    for state in PARTITIONS:
        decision = decide(INCIDENT, state)
        if state.address in sight.partitions:
            one = sight.partitions[state.address]
            assert (one.situation, one.waits_for) == (decision.situation, decision.waits_for)
    counts = sight.counts
    assert (counts.read, counts.leaderless, counts.unsafe, counts.under_min_isr) == (5, 2, 1, 3)
    # orders:0 is healthy, and broker 1 is missing in its ISR.
    assert (counts.not_known, counts.catching_up) == (1, 1)


@pytest.mark.parametrize("rules", ["elr-4.3", "kip966-balanced"])
def test_a_live_cluster_that_leaves_healthy_partitions_out_gives_the_same(rules: str) -> None:
    with incident(rules) as server:
        source = LiveSource(ConnectionSettings.read(servers_of(server), timeout_s=20.0))
        with source:
            live = look(INCIDENT, source=source)
            saved = look(take_snapshot(source, Selection(), now_ms=NOW_MS))
            assert live.partitions == saved.partitions
            assert live.counts == saved.counts
            assert live.counts.leaderless == len(live.partitions) > 0
            assert look(INCIDENT, live, source=source) == live


def test_what_was_in_trouble_is_followed_until_it_is_settled() -> None:
    first = look(INCIDENT)
    led = with_state(ORDERS_1, leader=3, leader_epoch=3, isr=(3, 2), elr=(), last_known_elr=())
    second = look(led, first)
    assert (second.partitions[ORDERS_1].situation, second.partitions[ORDERS_1].settled) == (Situation.HEALTHY, False)
    whole = with_state(ORDERS_1, leader=3, leader_epoch=3, isr=(3, 2, 1), elr=(), last_known_elr=())
    third = look(whole, second)
    assert third.partitions[ORDERS_1].settled
    assert ORDERS_1 not in look(whole, third).partitions
    # Who was never in trouble is not followed.
    assert TopicPartition("orders", 0) not in third.partitions


def test_a_topic_that_is_gone_is_gone() -> None:
    first = look(INCIDENT)
    assert PAYMENTS not in look(without("payments"), first).partitions
    named = Selection((Target(topic="payments"), Target(topic="orders")))
    after = look(without("payments"), look(INCIDENT, selection=named), selection=named)
    assert PAYMENTS not in after.partitions
    assert after.not_renewed == frozenset()


class _Hidden(MemorySource):
    """Leaves a topic out of every list, and says of it that it may not be seen."""

    def pages(self, selection: Selection, **rest: Any) -> Iterator[Page]:
        errors = self._denied(selection.targets)
        for page in super().pages(selection, **rest):
            kept = tuple(one for one in page.partitions if one.topic != "payments")
            yield replace(page, partitions=kept, topic_errors=errors)

    @staticmethod
    def _denied(targets: Sequence[Target]) -> tuple[TopicError, ...]:
        named = any(target.topic == "payments" for target in targets)
        return (TopicError("payments", "TOPIC_AUTHORIZATION_FAILED"),) if named else ()


def test_what_cannot_be_read_any_more_stays_as_it_was_and_is_marked() -> None:
    first = look(INCIDENT)
    second = look(INCIDENT, first, source=_Hidden(INCIDENT))
    assert second.partitions[PAYMENTS] == first.partitions[PAYMENTS]
    assert second.not_renewed == {PAYMENTS}
    assert second.topic_errors == (TopicError("payments", "TOPIC_AUTHORIZATION_FAILED"),)
    assert not second.healthy
    assert second.counts.unsafe == 1
    third = look(INCIDENT, second)
    assert (third.not_renewed, third.topic_errors) == (frozenset(), ())


@pytest.mark.parametrize("target", ["", "st*", "steady"])
def test_a_healthy_topic_that_may_not_be_read_any_more_is_told_from_one_that_is_deleted(target: str) -> None:
    selection = Selection((parse_target(target),) if target else ())
    with incident("elr-4.3") as server:
        server.world.running.ask(events.TopicCreated("steady", ((2, 3), (3, 2))))
        hidden = Denied("topic", "DESCRIBE", "steady")
        with LiveSource(ConnectionSettings.read(servers_of(server), timeout_s=20.0)) as source:
            first = look(INCIDENT, source=source, selection=selection)
            read = first.counts.read
            assert ("steady" in first.topics, first.topic_errors) == (True, ())
            server.world.denied.add(hidden)
            second = look(INCIDENT, first, source=source, selection=selection)
            assert second.topic_errors == (TopicError("steady", "TOPIC_AUTHORIZATION_FAILED"),)
            assert (second.counts.read, second.counts.unread_topics) == (read - 2, 1)
            assert second.counts.known("unsafe") is None
            # It is asked for as long as it is away.
            third = look(INCIDENT, second, source=source, selection=selection)
            assert (third.topics, third.topic_errors) == (first.topics, second.topic_errors)
            server.world.denied.discard(hidden)
            fourth = look(INCIDENT, third, source=source, selection=selection)
            assert (fourth.topics, fourth.topic_errors, fourth.counts) == (first.topics, (), first.counts)
            server.world.running.ask(events.TopicDeleted("steady"))
            fifth = look(INCIDENT, fourth, source=source, selection=selection)
            assert (fifth.topics, fifth.topic_errors) == (first.topics - {"steady"}, ())
            assert (fifth.deleted, fifth.counts.unread_topics) == ({"steady"}, 0)
            sixth = look(INCIDENT, fifth, source=source, selection=selection)
            assert sixth.topic_errors == ()
            assert sixth.deleted == ({"steady"} if target == "steady" else frozenset())


def test_of_internal_topics_alone_nothing_is_said_where_they_are_left_out() -> None:
    """Brokers do not list the others to a principal that may not describe them."""
    offsets = replace(PARTITIONS[0], topic="__consumer_offsets", isr=(1, 2, 3))
    alone = MemorySource(replace(INCIDENT, partitions=(offsets,)))
    counts = Looker(Selection(), lambda: NOW_MS, exclude_internal=True).look(alone).counts
    assert (counts.read, counts.known("leaderless")) == (0, None)
    assert look(INCIDENT, source=alone).counts.read == 1


def test_a_broker_that_is_not_listed_any_more_has_a_status() -> None:
    first = look(INCIDENT)
    fewer = replace(INCIDENT, cluster=replace(CLUSTER, brokers=CLUSTER.brokers[1:]))
    assert first.brokers[1] == "fenced"
    assert look(fewer, first).brokers[1] == "unregistered"
    assert 1 not in look(fewer).brokers


# Whether a controller answers.

SILENT, CLOSED = Failure(FailureKind.TIMED_OUT, "no answer in time"), Failure(FailureKind.UNREACHABLE, "closed")
REFUSED = Failure(FailureKind.AUTHENTICATION, "no Kerberos ticket: Ticket expired")
GARBLED = Failure(FailureKind.GARBLED, "not an answer of a Kafka broker")
UNSUPPORTED = Failure(FailureKind.UNSUPPORTED, "not known")
NOT_LEADER, TIMED_OUT, NOT_CONTROLLER, DENIED = 6, 7, 41, 31
"""Kafka's error codes."""


def quorum(error: int = 0, *, partition_error: int = 0, leader: int = -1) -> Any:
    """An answer to DescribeQuorum."""
    kind = DescribeQuorumResponse.TopicData
    partition = kind.PartitionData(
        partition_index=0,
        error_code=partition_error,
        error_message=None,
        leader_id=leader,
        leader_epoch=1,
        high_watermark=1,
        current_voters=[],
        observers=[],
    )
    topics = [] if error else [kind(topic_name="__cluster_metadata", partitions=[partition])]
    return DescribeQuorumResponse(version=2, error_code=error, error_message=None, topics=topics, nodes=[])


def moves(error: int = 0) -> Any:
    """An answer to ListPartitionReassignments."""
    return ListPartitionReassignmentsResponse(
        version=0, throttle_time_ms=0, error_code=error, error_message=None, topics=[]
    )


@pytest.mark.parametrize(
    ("quorum_answer", "moves_answer", "silence"),
    [
        (quorum(leader=3000), moves(), None),
        # What a broker says in the controller's name once it has waited long enough, and what it does before.
        (SILENT, SILENT, "no answer in time"),
        (quorum(TIMED_OUT), moves(TIMED_OUT), "REQUEST_TIMED_OUT"),
        # A controller that leads no more.
        (quorum(partition_error=NOT_LEADER), moves(NOT_CONTROLLER), "NOT_LEADER_OR_FOLLOWER"),
        (quorum(), moves(NOT_CONTROLLER), "no controller is known"),
        # One of the two answers is enough, and a denial is the controller's.
        (SILENT, moves(), None),
        (quorum(leader=3000), SILENT, None),
        (quorum(DENIED), moves(DENIED), None),
        (quorum(DENIED), SILENT, None),
        (SILENT, moves(DENIED), None),
        # Old brokers, and proxies: nothing is known, and so nothing is said.
        (UNSUPPORTED, moves(NOT_CONTROLLER), None),
        (UNSUPPORTED, SILENT, None),
        (UNSUPPORTED, UNSUPPORTED, None),
        # The broker's own silence tells nothing of the controller, and leaves room for what does.
        (CLOSED, CLOSED, None),
        (REFUSED, REFUSED, None),
        (GARBLED, GARBLED, None),
        (CLOSED, SILENT, "no answer in time"),
        (CLOSED, moves(NOT_CONTROLLER), "NOT_CONTROLLER"),
        (quorum(TIMED_OUT), CLOSED, "REQUEST_TIMED_OUT"),
    ],
)
def test_whether_a_controller_answers(quorum_answer: Any, moves_answer: Any, silence: str | None) -> None:
    cluster = fake_cluster()
    answers = {"DescribeQuorum": quorum_answer, "ListPartitionReassignments": moves_answer}
    cluster.before = lambda _node, name: answers.get(name)
    settings = ConnectionSettings((("127.0.0.1", 1),), timeout_s=0.4)
    with LiveSource(settings, connect=lambda _: FakeTransport(cluster)) as source:
        sight = look(INCIDENT, source=source)
        assert (sight.controller_silence, silence_of(source)) == (silence, silence)
        assert source.cluster().controller_silence == silence
        # It is asked anew at each look.
        answers.clear()
        assert look(INCIDENT, sight, source=source).controller_silence is None
        assert source.cluster().controller_silence is None


@pytest.mark.parametrize("failure", [CLOSED, REFUSED, GARBLED])
def test_a_broker_that_dies_over_the_question_is_not_the_controllers_silence(failure: Failure) -> None:
    """Also where it is the only bootstrap server: those that it has just named are asked."""
    cluster, dead = fake_cluster(), set[Any]()

    def dies(node: Any, name: str) -> Failure | None:
        if name == "DescribeQuorum":
            dead.update({"bootstrap-0", 1} if not dead else ())
        return failure if node in dead else None

    cluster.before = dies
    settings = ConnectionSettings((("127.0.0.1", 1),), timeout_s=0.4)
    with LiveSource(settings, connect=lambda _: FakeTransport(cluster)) as source:
        assert source.cluster().controller == fake_cluster().cluster.controller
        assert source.controller_silence is None
        assert source.cluster().reassignments_error is None
        assert dead


def test_a_source_that_asks_no_controller_says_nothing_of_one() -> None:
    assert look(INCIDENT).controller_silence is None
