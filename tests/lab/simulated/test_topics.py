"""DescribeTopicPartitions by name, CreateTopics and DeleteTopics, in the words of Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from kelr.controller import Configs, events
from kelr.lab.simulated.api import REQUEST_TIMEOUT_MS
from kelr.lab.simulated.world import Denied, World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.protocol.messages import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
)
from kelr.simulation.logs import Acks
from tests.lab.simulated.asking import ask, later, name, world

# DescribeTopicPartitions: the rows are what a broker of Kafka 4.3.1 answered, with topics of the same shapes.


def describe(*topics: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    made = DescribeTopicPartitionsRequest
    return made(
        version=0,
        topics=[made.TopicRequest(name=topic) for topic in topics],
        response_partition_limit=limit,
        cursor=None if cursor is None else made.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )


def _five_topics() -> World:
    cluster = world(*([(1, 2, 3)] * 4), topic="a")
    for topic in ("a.b", "dup", "r", "w"):
        cluster.running.ask(events.TopicCreated(topic, ((1, 2, 3),)))
    return cluster


def _page(answer: Any) -> tuple[dict[str, Any], tuple[str, int] | None]:
    topics = {
        topic.name: [one.partition_index for one in topic.partitions]
        if not topic.error_code
        else name(topic.error_code)
        for topic in answer.topics
    }
    cursor = answer.next_cursor
    return topics, None if cursor is None else (cursor.topic_name, cursor.partition_index)


@pytest.mark.parametrize(
    ("asked", "topics", "cursor"),
    [
        (describe(limit=0), {"a": [0]}, ("a", 1)),
        (describe(limit=-5), {"a": [0]}, ("a", 1)),
        (describe(limit=3), {"a": [0, 1, 2]}, ("a", 3)),
        (describe(limit=4), {"a": [0, 1, 2, 3]}, ("a.b", 0)),
        (describe(cursor=("a", 2**31 - 1)), {"a": []}, ("a", -2147481649)),
        (describe(cursor=("a", 3), limit=2), {"a": [3], "a.b": [0]}, ("dup", 0)),
        (describe(cursor=("a", 100), limit=1), {"a": [], "a.b": [0]}, ("dup", 0)),
        (describe(cursor=("a", -1)), {}, None),
        (describe(cursor=("aa", 3)), {"dup": [0], "r": [0], "w": [0]}, None),
        (describe(cursor=("zzz", 0)), {}, None),
        (describe("a", "a.b", cursor=("a.a", 0)), {"a": "INVALID_REQUEST", "a.b": "INVALID_REQUEST"}, None),
        (describe("a", "a.b", cursor=("a.b", 0)), {"a.b": [0]}, None),
        (describe("a", "a.b", cursor=("a.b", -1)), {"a": "INVALID_REQUEST", "a.b": "INVALID_REQUEST"}, None),
        (describe("a", ""), {"a": "UNKNOWN_SERVER_ERROR", "": "UNKNOWN_SERVER_ERROR"}, None),
        (describe("a", "a", "r"), {"a": [0, 1, 2, 3], "r": [0]}, None),
        (describe("a", "0nope", "r", limit=4), {"a": [0, 1, 2, 3], "0nope": "UNKNOWN_TOPIC_OR_PARTITION"}, ("r", 0)),
        (describe("zz", "a", "b", limit=1), {"a": [0]}, ("a", 1)),
        (describe("nope", cursor=("nope", 5)), {"nope": "UNKNOWN_TOPIC_OR_PARTITION"}, None),
        (describe("0 o", "a", limit=2), {"0 o": "INVALID_TOPIC_EXCEPTION", "a": [0, 1]}, ("a", 2)),
        (describe("é", "w"), {"w": [0], "é": "INVALID_TOPIC_EXCEPTION"}, None),
    ],
)
def test_pages_are_those_of_kafka(asked: Any, topics: dict[str, Any], cursor: tuple[str, int] | None) -> None:
    assert _page(ask(_five_topics(), asked)) == (topics, cursor)


def test_the_servers_own_limit_counts_too() -> None:
    cluster = world(*([(1, 2, 3)] * 5), page_limit=2)
    assert _page(ask(cluster, describe(limit=1000))) == ({"orders": [0, 1]}, ("orders", 2))


def test_topics_that_may_not_be_seen_are_errors_where_they_are_named() -> None:
    cluster = _five_topics()
    cluster.denied |= {Denied("topic", "DESCRIBE", "a"), Denied("topic", "DESCRIBE", "nope")}
    assert _page(ask(cluster, describe(limit=1))) == ({"a.b": [0]}, ("dup", 0))
    answer = ask(cluster, describe("a", "nope", "w", "__consumer_offsets"))
    assert _page(answer)[0] == {
        "w": [0],
        "__consumer_offsets": "UNKNOWN_TOPIC_OR_PARTITION",
        "a": "TOPIC_AUTHORIZATION_FAILED",
        "nope": "TOPIC_AUTHORIZATION_FAILED",
    }
    told = {
        topic.name: (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) for topic in answer.topics
    }
    assert told["a"] == (None, False, -(2**31))
    assert told["w"] == (cluster.topic_id("w"), False, 3576)
    assert told["__consumer_offsets"] == (None, True, 3576)


def test_elr_and_last_known_elr_of_a_partition_without_leader() -> None:
    cluster = world((1, 2, 3))
    for broker in (3, 2, 1):
        cluster.running.kill(broker)
        cluster.running.advance(cluster.running.now_ms + 5000)
    [topic] = ask(cluster, describe("orders")).topics
    [found] = topic.partitions
    assert (found.error_code, found.leader_id, found.isr_nodes) == (0, -1, [])
    assert (sorted(found.eligible_leader_replicas), found.last_known_elr) == ([1, 2], [1])
    assert found.offline_replicas == [1, 2, 3]


def test_a_broker_that_is_cut_off_describes_what_it_knew() -> None:
    cluster = world((1, 2, 3))
    cluster.running.sever(3, CONTROLLER_ID)
    before = ask(cluster, describe("orders"), node=2).topics[0].partitions[0]
    cluster.running.kill(1)
    cluster.running.advance(cluster.running.now_ms + 5000)
    outdated = ask(cluster, describe("orders"), node=3).topics[0].partitions[0]
    assert (outdated.leader_id, outdated.leader_epoch, outdated.offline_replicas) == (1, before.leader_epoch, [])
    assert ask(cluster, describe("orders"), node=2).topics[0].partitions[0].leader_id == 2
    cluster.running.heal()
    healed = ask(cluster, describe("orders"), node=3).topics[0].partitions[0]
    assert healed == ask(cluster, describe("orders"), node=2).topics[0].partitions[0]


# CreateTopics.

_Topic = CreateTopicsRequest.CreatableTopic


def topic(
    topic: str,
    partitions: int = -1,
    replication: int = -1,
    assigned: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> Any:
    made = _Topic.CreatableReplicaAssignment
    return _Topic(
        name=topic,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[made(partition_index=number, broker_ids=list(ids)) for number, ids in assigned],
        configs=[_Topic.CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def create(*topics: Any, version: int = 7, validate_only: bool = False) -> Any:
    return CreateTopicsRequest(version=version, topics=list(topics), timeout_ms=1000, validate_only=validate_only)


_MANUAL = "A manual partition assignment was specified, but "
_INCLUDES = "The manual partition assignment includes "


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        (topic("orders", 2, 3), "TOPIC_ALREADY_EXISTS", "Topic 'orders' already exists."),
        (
            topic("x", 1, 4),
            "INVALID_REPLICATION_FACTOR",
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because"
            " only 3 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            topic("x", 0, 1),
            "INVALID_PARTITIONS",
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            topic("x", 1, 0),
            "INVALID_REPLICATION_FACTOR",
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (
            topic("p 3"),
            "INVALID_TOPIC_EXCEPTION",
            "Topic name is invalid: 'p 3' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'",
        ),
        (
            topic("x", assigned=[(0, [1, 2]), (1, [2])]),
            "INVALID_REPLICA_ASSIGNMENT",
            _INCLUDES + "a partition with 1 replica(s), but this is not consistent with previous partitions, which have"
            " 2 replica(s).",
        ),
        (
            topic("x", assigned=[(0, [1, 9])]),
            "INVALID_REPLICA_ASSIGNMENT",
            _INCLUDES + "broker 9, but no such broker is registered.",
        ),
        (
            topic("x", assigned=[(0, [1, 1])]),
            "INVALID_REPLICA_ASSIGNMENT",
            _INCLUDES + "the broker 1 more than once.",
        ),
        (topic("x", assigned=[(0, [])]), "INVALID_REPLICA_ASSIGNMENT", _INCLUDES + "an empty replica list."),
        (
            topic("x", assigned=[(1, [1])]),
            "INVALID_REPLICA_ASSIGNMENT",
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            topic("x", assigned=[(0, [1]), (0, [1])]),
            "INVALID_REPLICA_ASSIGNMENT",
            "Found multiple manual partition assignments for partition 0",
        ),
        (topic("x", 1, 1, configs=[("nonsense", "2")]), "INVALID_CONFIG", "Unknown topic config name: nonsense"),
        (
            topic("x", 1, 1, configs=[("min.insync.replicas", "0")]),
            "INVALID_CONFIG",
            "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1",
        ),
        (
            topic("x", 1, 1, configs=[("min.insync.replicas", None)]),
            "INVALID_CONFIG",
            "Null value not supported for topic configs: min.insync.replicas",
        ),
        (topic("x", 1, -1, [(0, [1])]), "INVALID_REQUEST", _MANUAL + "numPartitions was not set to -1."),
        (topic("x", -1, 1, [(0, [1])]), "INVALID_REQUEST", _MANUAL + "replication factor was not set to -1."),
        (topic("or.d", 1, 1), "INVALID_TOPIC_EXCEPTION", "Topic 'or.d' collides with existing topic: or_d"),
        (
            topic("__cluster_metadata", 1, 1),
            "INVALID_REQUEST",
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
    ],
)
def test_a_topic_that_cannot_be(wanted: Any, error: str, message: str) -> None:
    cluster = world((1, 2, 3))
    cluster.running.ask(events.TopicCreated("or_d", ((1,),)))
    answer = ask(cluster, create(wanted, topic("fine", 1, 1)))
    found = {one.name: (name(one.error_code), one.error_message) for one in answer.topics}
    assert found == {wanted.name: (error, message), "fine": ("NONE", None)}
    assert list(cluster.topics()) == ["fine", "or_d", "orders"]


@pytest.mark.parametrize("version", range(2, 8))
@pytest.mark.parametrize("node", [2, CONTROLLER_ID])
def test_a_topic_with_its_own_assignment_and_configs(version: int, node: int) -> None:
    cluster = world()
    configs = [("min.insync.replicas", "1"), ("unclean.leader.election.enable", "true"), ("retention.ms", "5")]
    wanted = topic("new", assigned=[(1, [2, 3]), (0, [3, 1])], configs=configs)
    [answer] = ask(cluster, create(wanted, version=version), node=node).topics
    assert (name(answer.error_code), answer.error_message) == ("NONE", None)
    states = [cluster.state(TopicPartition("new", number)) for number in (0, 1)]
    assert [(one.leader, one.replicas, one.isr) for one in states if one] == [(3, (3, 1), (3, 1)), (2, (2, 3), (2, 3))]
    assert cluster.running.cluster.controller.topics["new"] == Configs(1, unclean_leader_election=True)
    assert cluster.topic_configs["new"] == {"retention.ms": "5"}
    if version >= 5:
        assert (answer.num_partitions, answer.replication_factor) == (2, 2)
        told = {one.name: (one.value, one.config_source) for one in answer.configs}
        assert len(told) == 33
        assert told["min.insync.replicas"] == ("1", 1)
        assert told["segment.bytes"] == ("1073741824", 5)
    if version >= 7:
        assert answer.topic_id == cluster.topic_id("new")
    cluster.running.produce(TopicPartition("new", 0), 3, Acks.ALL)
    log = cluster.log(TopicPartition("new", 0), 1)
    assert log is not None
    assert log.end == 3


def test_replicas_are_dealt_over_brokers_and_racks() -> None:
    cluster = world(brokers=6, racks=3, replication=2)
    assert name(ask(cluster, create(topic("new", 6))).topics[0].error_code) == "NONE"
    states = [cluster.state(TopicPartition("new", number)) for number in range(6)]
    assignments = [state.replicas for state in states if state]
    assert sorted(replicas[0] for replicas in assignments) == [1, 2, 3, 4, 5, 6]
    assert all(len({cluster.racks[broker] for broker in replicas}) == 2 for replicas in assignments)


def test_a_topic_whose_brokers_are_all_away() -> None:
    cluster = world()
    cluster.running.kill(3)
    cluster.running.advance(cluster.running.now_ms + 5000)
    asked = create(topic("none", assigned=[(0, [3])]), topic("some", assigned=[(0, [3, 2])]), topic("dealt", 3, 3))
    found = {one.name: (name(one.error_code), one.error_message) for one in ask(cluster, asked).topics}
    assert found["none"] == (
        "INVALID_REPLICA_ASSIGNMENT",
        "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled"
        " shutdown.",
    )
    some, dealt = (cluster.state(TopicPartition(one, 0)) for one in ("some", "dealt"))
    assert some is not None
    assert dealt is not None
    assert (some.leader, some.isr) == (2, (2,))
    assert (set(dealt.isr), set(dealt.replicas)) == ({1, 2}, {1, 2, 3})
    for broker in (1, 2):
        cluster.running.kill(broker)
        cluster.running.advance(cluster.running.now_ms + 5000)
    [answer] = ask(cluster, create(topic("late", 1, 1)), node=CONTROLLER_ID).topics
    assert answer.error_message == "Unable to replicate the partition 1 time(s): All brokers are currently fenced."


def test_what_is_only_tried_is_not_made() -> None:
    cluster = world()
    [answer] = ask(cluster, create(topic("new", 2, 3), validate_only=True)).topics
    assert (name(answer.error_code), answer.num_partitions, answer.replication_factor) == ("NONE", 2, 3)
    assert list(cluster.topics()) == []


def test_a_name_that_is_there_twice_is_not_made() -> None:
    cluster = world()
    [answer] = ask(cluster, create(topic("new", 1, 1), topic("new", 1, 1))).topics
    assert (name(answer.error_code), answer.error_message) == ("INVALID_REQUEST", "Duplicate topic name.")
    assert list(cluster.topics()) == []


def test_who_may_create() -> None:
    cluster = world()
    cluster.denied |= {Denied("cluster", "CREATE"), Denied("topic", "CREATE", "a"), Denied("topic", "DESCRIBE_CONFIGS")}
    found = {one.name: one for one in ask(cluster, create(topic("a", 1, 1), topic("b", 1, 1))).topics}
    assert (name(found["a"].error_code), found["a"].error_message) == (
        "TOPIC_AUTHORIZATION_FAILED",
        "Authorization failed.",
    )
    assert name(found["b"].error_code) == "NONE"
    assert name(found["b"].topic_config_error_code) == "TOPIC_AUTHORIZATION_FAILED"
    assert (found["b"].num_partitions, found["b"].replication_factor, found["b"].configs) == (-1, -1, [])
    assert list(cluster.topics()) == ["b"]


def test_a_broker_that_is_cut_off_creates_once_it_reaches_the_controller() -> None:
    cluster = world()
    cluster.running.sever(1, CONTROLLER_ID)
    waiting = later(cluster, create(topic("new", 1, 1)))
    assert waiting.until_ms == cluster.running.now_ms + REQUEST_TIMEOUT_MS
    assert waiting.poll() is None
    assert list(cluster.topics()) == []
    assert [name(one.error_code) for one in waiting.expired().topics] == ["REQUEST_TIMED_OUT"]
    cluster.running.heal()
    answer = waiting.poll()
    assert answer is not None
    assert [name(one.error_code) for one in answer.topics] == ["NONE"]
    assert list(cluster.topics()) == ["new"]


# DeleteTopics.

_State = DeleteTopicsRequest.DeleteTopicState


def delete(*topics: Any) -> Any:
    return DeleteTopicsRequest(version=6, topics=list(topics), timeout_ms=1000)


def _found(answer: Any) -> list[tuple[str | None, str, str | None]]:
    return [(one.name, name(one.error_code), one.error_message) for one in answer.responses]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    cluster = world((1, 2, 3), topics=3)
    ids = {topic: cluster.topic_id(topic) for topic in ("orders", "topic-000001")}
    asked = delete(_State(name="orders"), _State(name=None, topic_id=ids["topic-000001"]))
    assert _found(ask(cluster, asked)) == [("orders", "NONE", None), ("topic-000001", "NONE", None)]
    assert list(cluster.topics()) == ["topic-000000", "topic-000002"]
    assert [cluster.topic_of(one) for one in ids.values()] == [None, None]
    assert {address.topic for address in cluster.running.cluster.replication} == {"\x00alike"}


@pytest.mark.parametrize("topic_name", ["orders", "topic-000001"])
def test_a_topic_of_the_same_name_is_another_one(topic_name: str) -> None:
    cluster = world((1, 2, 3), topics=3)
    old = cluster.topic_id(topic_name)
    address = cluster.own(TopicPartition(topic_name, 0))
    cluster.running.produce(address, 5, Acks.ALL)
    ask(cluster, delete(_State(name=topic_name)))
    assert name(ask(cluster, create(topic(topic_name, 2, 2))).topics[0].error_code) == "NONE"
    log = cluster.log(address, 1)
    assert cluster.topic_id(topic_name) != old
    assert cluster.topic_of(old) is None
    assert cluster.partitions(topic_name) == 2
    assert log is not None
    assert log.end == 0


def test_what_cannot_be_deleted() -> None:
    cluster = world((1, 2, 3))
    stranger, own = UUID(int=9), cluster.topic_id("orders")
    asked = delete(
        _State(name="nope"),
        _State(name=None),
        _State(name=None, topic_id=stranger),
        _State(name="orders", topic_id=own),
        _State(name="twice"),
        _State(name="twice"),
    )
    assert _found(ask(cluster, asked)) == [
        ("nope", "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."),
        (None, "INVALID_REQUEST", "Neither topic name nor id were specified."),
        (None, "UNKNOWN_TOPIC_ID", "This server does not host this topic ID."),
        ("orders", "INVALID_REQUEST", "You may not specify both topic name and topic id."),
        ("twice", "INVALID_REQUEST", "Duplicate topic name."),
    ]
    assert list(cluster.topics()) == ["orders"]


@pytest.mark.parametrize("version", range(1, 6))
def test_older_versions_delete_by_name_alone(version: int) -> None:
    cluster = world((1, 2, 3))
    asked = DeleteTopicsRequest(version=version, topic_names=["orders", "nope"], timeout_ms=1000)
    answer = ask(cluster, asked)
    assert [(one.name, name(one.error_code)) for one in answer.responses] == [
        ("orders", "NONE"),
        ("nope", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]
    assert list(cluster.topics()) == []


def test_who_may_delete() -> None:
    cluster = world((1, 2, 3), topics=2)
    ids = [cluster.topic_id(one) for one in ("orders", "topic-000000")]
    cluster.denied |= {
        Denied("cluster", "DELETE"),
        Denied("topic", "DELETE"),
        Denied("topic", "DESCRIBE", "topic-000000"),
    }
    asked = delete(_State(name="orders"), _State(name="nope"), *(_State(name=None, topic_id=one) for one in ids))
    failed = ("TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed.")
    assert _found(ask(cluster, asked)) == [
        ("orders", *failed),
        ("nope", "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition."),
        ("orders", *failed),
        (None, *failed),
    ]
    assert len(list(cluster.topics())) == 3
