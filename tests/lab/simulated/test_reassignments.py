"""AlterPartitionReassignments and ListPartitionReassignments, in the words of Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kelr.controller import events
from kelr.lab.simulated.api import REQUEST_TIMEOUT_MS
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.protocol.messages import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest
from kelr.simulation.logs import Acks
from tests.lab.simulated.asking import ask, later, name, world

ORDERS = TopicPartition("orders", 0)
_INCLUDES = "The manual partition assignment includes "


def alter(
    wanted: Mapping[TopicPartition, Sequence[int] | None], *, version: int = 1, may_change_count: bool = True
) -> Any:
    made = AlterPartitionReassignmentsRequest.ReassignableTopic
    topics: dict[str, list[Any]] = {}
    for address, replicas in wanted.items():
        ids = None if replicas is None else list(replicas)
        one = made.ReassignablePartition(partition_index=address.partition, replicas=ids)
        topics.setdefault(address.topic, []).append(one)
    asked = [made(name=topic, partitions=partitions) for topic, partitions in topics.items()]
    request = AlterPartitionReassignmentsRequest(version=version, topics=asked, timeout_ms=1000)
    if version >= 1:
        request.allow_replication_factor_change = may_change_count
    return request


def listing(asked: Mapping[str, Sequence[int]] | None = None) -> Any:
    made = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    topics = None if asked is None else [made(name=one, partition_indexes=list(ids)) for one, ids in asked.items()]
    return ListPartitionReassignmentsRequest(version=0, topics=topics, timeout_ms=1000)


def errors(answer: Any) -> dict[TopicPartition, tuple[str, str | None]]:
    return {
        TopicPartition(topic.name, one.partition_index): (name(one.error_code), one.error_message)
        for topic in answer.responses
        for one in topic.partitions
    }


def ongoing(cluster: World, asked: Mapping[str, Sequence[int]] | None = None) -> dict[TopicPartition, Any]:
    answer = ask(cluster, listing(asked))
    assert (name(answer.error_code), answer.error_message) == ("NONE", None)
    return {
        TopicPartition(topic.name, one.partition_index): (one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in answer.topics
        for one in topic.partitions
    }


def _replicas(cluster: World, address: TopicPartition) -> tuple[int, ...]:
    state = cluster.state(address)
    assert state is not None
    return state.replicas


@pytest.mark.parametrize("node", [1, CONTROLLER_ID])
@pytest.mark.parametrize("version", [0, 1])
def test_another_order_is_done_at_once(version: int, node: int) -> None:
    cluster = world((1, 2, 3), topics=2, partitions=2)
    alike = TopicPartition("topic-000001", 1)
    before = _replicas(cluster, alike)
    wanted = {ORDERS: (3, 1, 2), alike: tuple(reversed(before))}
    answer = ask(cluster, alter(wanted, version=version), node=node)
    assert errors(answer) == dict.fromkeys(wanted, ("NONE", None))
    assert (name(answer.error_code), answer.error_message) == ("NONE", None)
    assert {address: _replicas(cluster, address) for address in wanted} == wanted
    # What is alike others is so no more, and they are as they were.
    assert _replicas(cluster, TopicPartition("topic-000000", 0)) == (1, 2, 3)
    assert ongoing(cluster) == {}


def test_replicas_move_when_they_have_the_data() -> None:
    cluster = world((1, 2, 3), brokers=4)
    cluster.running.produce(ORDERS, 5, Acks.ALL)
    assert errors(ask(cluster, alter({ORDERS: (4, 2, 3)}))) == {ORDERS: ("NONE", None)}
    assert _replicas(cluster, ORDERS) == (4, 2, 3)
    log = cluster.log(ORDERS, 4)
    assert log is not None
    assert log.end == 5
    assert ongoing(cluster) == {}


def _under_way() -> World:
    """Replica 4 is to come in the place of 1 and cannot fetch."""
    cluster = world((1, 2, 3), brokers=4)
    for broker in (1, 2, 3):
        cluster.running.sever(4, broker)
    assert errors(ask(cluster, alter({ORDERS: (4, 2, 3)}))) == {ORDERS: ("NONE", None)}
    return cluster


def test_what_is_under_way_is_listed() -> None:
    cluster = _under_way()
    cluster.running.ask(events.TopicCreated("quiet", ((1, 2, 3),)))
    expected = {ORDERS: ([4, 2, 3, 1], [4], [1])}
    assert ongoing(cluster) == expected
    assert ongoing(cluster, {"orders": [0, 7], "quiet": [0], "nope": [0]}) == expected
    assert ongoing(cluster, {"quiet": [0]}) == {}
    cluster.running.heal()
    assert ongoing(cluster) == {}
    assert _replicas(cluster, ORDERS) == (4, 2, 3)


def test_what_is_under_way_is_taken_back() -> None:
    cluster = _under_way()
    assert errors(ask(cluster, alter({ORDERS: None}))) == {ORDERS: ("NONE", None)}
    assert set(_replicas(cluster, ORDERS)) == {1, 2, 3}
    assert ongoing(cluster) == {}
    assert errors(ask(cluster, alter({ORDERS: None}))) == {ORDERS: ("NO_REASSIGNMENT_IN_PROGRESS", None)}


def test_it_cannot_be_taken_back_to_replicas_that_are_not_in_sync() -> None:
    cluster = world((1,), brokers=3, min_isr=1, replication=1)
    # Replica 2 is in sync and leads by the time that the old one dies, and 3 has not come yet.
    cluster.running.sever(3, 1)
    cluster.running.sever(3, 2)
    assert errors(ask(cluster, alter({ORDERS: (2, 3)}))) == {ORDERS: ("NONE", None)}
    cluster.running.kill(1)
    cluster.running.advance(cluster.running.now_ms + 10_000)
    assert ongoing(cluster) == {ORDERS: ([2, 3, 1], [2, 3], [1])}
    words = "Unable to revert partition assignment for orders:0 because it would require an unclean leader election."
    assert errors(ask(cluster, alter({ORDERS: None}), node=2)) == {ORDERS: ("INVALID_REPLICA_ASSIGNMENT", words)}


@pytest.mark.parametrize(
    ("address", "replicas", "error", "message"),
    [
        (TopicPartition("nope", 0), (1,), "UNKNOWN_TOPIC_OR_PARTITION", "Unable to find a topic named nope."),
        (TopicPartition("orders", 9), (1,), "UNKNOWN_TOPIC_OR_PARTITION", "Unable to find partition orders:9."),
        (ORDERS, None, "NO_REASSIGNMENT_IN_PROGRESS", None),
        (ORDERS, (), "INVALID_REPLICA_ASSIGNMENT", _INCLUDES + "an empty replica list."),
        (ORDERS, (1, 1), "INVALID_REPLICA_ASSIGNMENT", _INCLUDES + "the broker 1 more than once."),
        (ORDERS, (1, 9), "INVALID_REPLICA_ASSIGNMENT", _INCLUDES + "broker 9, but no such broker is registered."),
        (ORDERS, (-1,), "INVALID_REPLICA_ASSIGNMENT", _INCLUDES + "broker -1, but no such broker is registered."),
    ],
)
def test_an_assignment_that_cannot_be(
    address: TopicPartition, replicas: Sequence[int] | None, error: str, message: str | None
) -> None:
    cluster = world((1, 2, 3), (2, 3, 1))
    fine = TopicPartition("orders", 1)
    answer = ask(cluster, alter({address: replicas, fine: (1, 2, 3)}))
    assert errors(answer) == {address: (error, message), fine: ("NONE", None)}
    assert _replicas(cluster, ORDERS) == (1, 2, 3)


def test_the_number_of_replicas_stays_where_that_is_wanted() -> None:
    cluster = world((1, 2, 3), (1, 2, 3), brokers=4)
    words = "The replication factor is changed from 3 to 2"
    answer = ask(cluster, alter({ORDERS: (2, 1)}, may_change_count=False))
    assert errors(answer) == {ORDERS: ("INVALID_REPLICATION_FACTOR", words)}
    assert answer.allow_replication_factor_change is False
    assert _replicas(cluster, ORDERS) == (1, 2, 3)
    assert errors(ask(cluster, alter({ORDERS: (2, 1)}))) == {ORDERS: ("NONE", None)}
    assert _replicas(cluster, ORDERS) == (2, 1)
    # While replicas are on their way, those that stay count.
    other = TopicPartition("orders", 1)
    cluster.running.sever(4, 1)
    ask(cluster, alter({other: (4, 2, 3)}))
    answer = ask(cluster, alter({other: (3, 2, 1)}, may_change_count=False))
    assert errors(answer) == {other: ("NONE", None)}


def test_nothing_asked_is_nothing_done() -> None:
    answer = ask(world((1, 2, 3)), alter({}))
    assert (name(answer.error_code), answer.error_message, answer.responses) == ("NONE", "", [])


def test_who_may_reassign_and_who_may_look() -> None:
    cluster = world((1, 2, 3))
    cluster.denied |= {Denied("cluster", "ALTER"), Denied("cluster", "DESCRIBE")}
    answer = ask(cluster, alter({ORDERS: (3, 2, 1)}))
    failed = ("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")
    assert (name(answer.error_code), answer.error_message) == failed
    assert errors(answer) == {ORDERS: failed}
    assert _replicas(cluster, ORDERS) == (1, 2, 3)
    listed = ask(cluster, listing())
    assert (name(listed.error_code), listed.error_message, listed.topics) == (*failed, [])


def test_a_broker_that_is_cut_off_hands_it_on_later() -> None:
    cluster = world((1, 2, 3))
    cluster.running.sever(1, CONTROLLER_ID)
    altering, looking = later(cluster, alter({ORDERS: (3, 2, 1)})), later(cluster, listing())
    assert {one.until_ms for one in (altering, looking)} == {cluster.running.now_ms + REQUEST_TIMEOUT_MS}
    assert (altering.poll(), looking.poll()) == (None, None)
    timed_out = ("REQUEST_TIMED_OUT", "The request timed out.")
    assert errors(altering.expired()) == {ORDERS: timed_out}
    assert name(looking.expired().error_code) == "REQUEST_TIMED_OUT"
    assert _replicas(cluster, ORDERS) == (1, 2, 3)
    cluster.running.heal()
    assert errors(altering.poll()) == {ORDERS: ("NONE", None)}
    assert _replicas(cluster, ORDERS) == (3, 2, 1)
