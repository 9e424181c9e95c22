"""The bytes of long answers are those that kafka-python would encode, and say what the controller has on record."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import events
from kelr.lab.simulated.world import Denied, World
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kelr.simulation.logs import Acks
from kelr.sources.live.requests import authorized
from tests.lab.simulated.asking import answered, encoded_again, world
from tests.properties import examples

_ALL_TOPIC_OPERATIONS = {3, 4, 5, 6, 7, 8, 10, 11}


@st.composite
def clusters(draw: st.DrawFn) -> World:
    """Clusters with topics that are alike, some partitions of their own, and brokers that are away."""
    brokers = draw(st.integers(1, 5))
    spec = {
        "brokers": brokers,
        "replication": draw(st.integers(1, brokers)),
        "min_isr": draw(st.integers(1, brokers)),
        "topics": draw(st.integers(0, 12)),
        "partitions": draw(st.integers(1, 9)),
        "page_limit": draw(st.integers(1, 30)),
    }
    cluster = world(**spec)
    ids = st.integers(1, brokers)
    for topic in draw(st.lists(st.sampled_from(["a", "orders", "topic-000001x", "zebra"]), unique=True)):
        replicas = st.lists(ids, min_size=1, max_size=brokers, unique=True)
        count = draw(st.integers(1, 5))
        first = draw(replicas)
        others = [draw(st.permutations(first)) for _ in range(count - 1)]
        cluster.running.ask(events.TopicCreated(topic, (tuple(first), *map(tuple, others))))
    for _ in range(draw(st.integers(0, 6))):
        _happens(draw, cluster)
    return cluster


def _happens(draw: st.DrawFn, cluster: World) -> None:
    running, broker = cluster.running, draw(st.sampled_from(sorted(cluster.brokers)))
    match draw(st.sampled_from(["kill", "return", "write", "own", "fail", "delete", "time"])):
        case "kill":
            running.kill(broker)
        case "return":
            running.start(broker)
        case "time":
            running.advance(running.now_ms + 5000)
        case "fail":
            running.ask(events.DirectoryFailed(broker))
        case "write" | "own" as what:
            for topic in list(cluster.topics())[: draw(st.integers(1, 3))]:
                address = cluster.own(TopicPartition(topic, draw(st.integers(0, cluster.partitions(topic) - 1))))
                if what == "write":
                    running.produce(address, 3, Acks.ALL)
        case "delete":
            for topic in list(cluster.topics())[:1]:
                cluster.own_topic(topic)
                assert running.ask(events.TopicDeleted(topic)).error == "NONE"
                cluster.forget_topic(topic)


def _states(cluster: World, topic: str) -> list[PartitionState]:
    states = (cluster.state(TopicPartition(topic, number)) for number in range(cluster.partitions(topic)))
    return [state for state in states if state is not None]


def _offline(cluster: World, state: PartitionState) -> list[int]:
    away = {broker for broker in state.replicas if broker not in cluster.brokers or cluster.brokers[broker].fenced}
    return [one for one in state.replicas if one in away | set(state.offline_replicas or ())]


def _described(cluster: World, topic: str, begin: int, end: int) -> Any:
    made = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return made(
        error_code=0,
        name=topic,
        topic_id=cluster.topic_id(topic),
        is_internal=False,
        partitions=[
            made.DescribeTopicPartitionsResponsePartition(
                error_code=0,
                partition_index=state.partition,
                leader_id=-1 if state.leader is None else state.leader,
                leader_epoch=state.leader_epoch,
                replica_nodes=list(state.replicas),
                isr_nodes=list(state.isr),
                eligible_leader_replicas=list(state.elr or ()),
                last_known_elr=list(state.last_known_elr or ()),
                offline_replicas=_offline(cluster, state),
            )
            for state in _states(cluster, topic)[begin:end]
        ],
        topic_authorized_operations=3576,
    )


def _expected_page(cluster: World, cursor: tuple[str, int] | None, limit: int) -> tuple[bytes, tuple[str, int] | None]:
    """One page by a slow walk over all partitions."""
    topics: list[Any] = []
    following = None
    for topic in cluster.topics():
        count = cluster.partitions(topic)
        begin = 0
        if cursor is not None and topic < cursor[0]:
            continue
        if cursor is not None and topic == cursor[0]:
            begin = cursor[1]
        if limit == 0:
            following = (topic, 0)
            break
        taken = min(limit, max(0, count - begin))
        topics.append(_described(cluster, topic, begin, begin + taken))
        limit -= taken
        if begin + taken < count:
            following = (topic, begin + taken)
            break
    made = DescribeTopicPartitionsResponse.Cursor
    answer = DescribeTopicPartitionsResponse(
        version=0,
        topics=topics,
        next_cursor=None if following is None else made(topic_name=following[0], partition_index=following[1]),
    )
    return bytes(answer.encode(0)), following


@given(clusters(), st.integers(-1, 40))
@examples(80)
def test_every_page_of_describe_topic_partitions(cluster: World, limit: int) -> None:
    asked = DescribeTopicPartitionsRequest
    cursor: tuple[str, int] | None = None
    most = max(1, min(limit, cluster.spec.page_limit))
    for _page in range(1 + sum(cluster.partitions(topic) for topic in cluster.topics())):
        wire = None if cursor is None else asked.Cursor(topic_name=cursor[0], partition_index=cursor[1])
        request = asked(version=0, topics=[], response_partition_limit=limit, cursor=wire)
        expected, following = _expected_page(cluster, cursor, most)
        assert answered(cluster, request) == expected
        # The second time, the topics' bytes are there already.
        assert answered(cluster, request) == expected
        cursor = following
        if cursor is None:
            return
    pytest.fail("the pages have no end")


@given(clusters(), st.sampled_from(["a", "orders", "topic-000000", "topic-000003", "zz"]), st.integers(0, 12))
@examples(60)
def test_a_page_from_any_cursor(cluster: World, topic: str, partition: int) -> None:
    asked = DescribeTopicPartitionsRequest
    wire = asked.Cursor(topic_name=topic, partition_index=partition)
    request = asked(version=0, topics=[], response_partition_limit=7, cursor=wire)
    expected, _following = _expected_page(cluster, (topic, partition), min(7, cluster.spec.page_limit))
    assert answered(cluster, request) == expected


@given(clusters(), st.integers(0, 13))
@examples(100)
def test_metadata_of_all_topics_in_every_version(cluster: World, version: int) -> None:
    request = MetadataRequest(version=version, topics=None if version else [], include_topic_authorized_operations=True)
    answer = answered(cluster, request)
    assert isinstance(answer, bytes)
    decoded = MetadataResponse.decode(answer, version)
    assert encoded_again(decoded, version) == answer
    topics = [topic for topic in cluster.topics() if cluster.partitions(topic)]
    assert [topic.name for topic in decoded.topics] == topics
    for found in decoded.topics:
        assert found.error_code == 0
        if version >= 10:
            assert found.topic_id == cluster.topic_id(found.name) or cluster.topic_id(found.name).int == 0
        if version >= 8:
            assert authorized(found.topic_authorized_operations) == _ALL_TOPIC_OPERATIONS
        expected = [_metadata(cluster, state, version) for state in _states(cluster, found.name)]
        assert [_facts(one, version) for one in found.partitions] == expected


def _metadata(cluster: World, state: PartitionState, version: int) -> tuple[Any, ...]:
    live = {broker for broker, one in cluster.brokers.items() if not one.fenced}
    shown = [[one for one in ids if version > 0 or one in live] for ids in (state.replicas, state.isr)]
    hidden = len(shown[0]) < len(state.replicas) or len(shown[1]) < len(state.isr)
    error = 5 if state.leader is None else 9 if hidden else 0
    epoch = state.leader_epoch if version >= 7 else None
    away = _offline(cluster, state) if version >= 5 else None
    return (error, state.partition, -1 if state.leader is None else state.leader, epoch, *shown, away)


def _facts(one: Any, version: int) -> tuple[Any, ...]:
    epoch = one.leader_epoch if version >= 7 else None
    away = one.offline_replicas if version >= 5 else None
    return (one.error_code, one.partition_index, one.leader_id, epoch, one.replica_nodes, one.isr_nodes, away)


@given(clusters(), st.data())
@examples(40)
def test_topics_that_may_not_be_seen_are_left_out_of_all(cluster: World, data: st.DataObject) -> None:
    topics = list(cluster.topics())
    hidden = set(data.draw(st.lists(st.sampled_from(topics), unique=True))) if topics else set()
    cluster.denied |= {Denied("topic", "DESCRIBE", topic) for topic in hidden}
    cluster.denied.add(Denied("topic", "READ", None))
    request = DescribeTopicPartitionsRequest(version=0, topics=[], response_partition_limit=1, cursor=None)
    seen: list[str] = []
    while True:
        answer = answered(cluster, request)
        assert isinstance(answer, bytes)
        page = DescribeTopicPartitionsResponse.decode(answer, 0)
        assert encoded_again(page, 0) == answer
        seen += [topic.name for topic in page.topics]
        assert all(topic.topic_authorized_operations == 3576 - 8 for topic in page.topics)
        if page.next_cursor is None:
            break
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=page.next_cursor.topic_name, partition_index=page.next_cursor.partition_index
        )
        request = DescribeTopicPartitionsRequest(version=0, topics=[], response_partition_limit=1, cursor=cursor)
    assert list(dict.fromkeys(seen)) == [topic for topic in topics if topic not in hidden]


def test_a_million_partitions_are_not_kept_one_by_one() -> None:
    """The bytes of the topics that are alike are those of some kinds; a page holds no partition but its own."""
    cluster = world(brokers=30, topics=10_000, partitions=100)
    request = DescribeTopicPartitionsRequest(version=0, topics=[], response_partition_limit=2000, cursor=None)
    answer = answered(cluster, request)
    assert isinstance(answer, bytes)
    # A healthy partition with three replicas is 44 bytes; a topic of 100 has 12 letters in its name.
    assert len(answer) == 20 * (100 * 44 + 2 + 13 + 16 + 1 + 1 + 4 + 1) + 4 + 1 + (1 + 13 + 4 + 1) + 1
    assert len(cluster.running.cluster.controller.partitions) == 27 * 30
