"""DescribeTopicPartitions: partitions with their ELR, in pages.

Source: DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.describeTopicResponse of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from kafka.protocol.admin.topics import DescribeTopicPartitionsResponse

from kelr.lab.simulated.api import Call, Message, code
from kelr.lab.simulated.handlers.authorized import DENIED, TOPIC, operations
from kelr.lab.simulated.handlers.partitions import NO_LEADER, is_internal, offline, unknown_topic
from kelr.lab.simulated.world import World
from kelr.model import PartitionState, TopicPartition

NO_ID = UUID(int=0)
_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = _Topic.DescribeTopicPartitionsResponsePartition


def describe(call: Call) -> Message:
    """One page, in kafka-python's words."""
    world, request = call.world, call.request
    first, start = ("", 0) if request.cursor is None else (request.cursor.topic_name, request.cursor.partition_index)
    every = not request.topics
    names = {topic.name for topic in request.topics if _order(topic.name) >= _order(first)}
    if start < 0 or (request.cursor is not None and not every and first not in names):
        return _invalid(call)
    denied = [] if every else [name for name in sorted(names, key=_order) if not world.allowed(TOPIC, "DESCRIBE", name)]
    wanted = world.topics(first) if every else iter(sorted(names, key=_order))
    readable = (name for name in wanted if world.allowed(TOPIC, "DESCRIBE", name))
    left = max(1, min(world.spec.page_limit, request.response_partition_limit))
    topics, cursor = [], None
    for name in readable:
        if left == 0:
            cursor = (name, 0)
            break
        count, begin = world.partitions(name), start if name == first else 0
        if not count:
            topics.append(_failed(world, name, unknown_topic(name)))
            continue
        end = min(count, begin + left)
        topics.append(_described(world, name, begin, end))
        if end < count:
            cursor = (name, end)
            break
        left -= max(0, end - begin)
    topics += [_failed(world, name, DENIED[TOPIC]) for name in denied]
    return _answer(call, topics, cursor)


def _order(name: str) -> bytes:
    """Java compares strings by their UTF-16 units."""
    return name.encode("utf-16-be", "surrogatepass")


def _answer(call: Call, topics: list[Message], cursor: tuple[str, int] | None) -> Message:
    made = DescribeTopicPartitionsResponse.Cursor
    return DescribeTopicPartitionsResponse(
        version=call.version,
        topics=topics,
        next_cursor=None if cursor is None else made(topic_name=cursor[0], partition_index=cursor[1]),
    )


def _invalid(call: Call) -> Message:
    """The whole request fails; its answer names the topics in it (DescribeTopicPartitionsRequest.getErrorResponse)."""
    return _answer(call, [_error(topic.name, "INVALID_REQUEST") for topic in call.request.topics], None)


def _failed(world: World, name: str, error: str) -> Message:
    topic = _error(name, error)
    if error != DENIED[TOPIC]:
        topic.topic_authorized_operations = _bits(world, name)
    return topic


def _error(name: str, error: str) -> Message:
    return _Topic(error_code=code(error), name=name, topic_id=NO_ID, is_internal=is_internal(name), partitions=[])


def _described(world: World, name: str, begin: int, end: int) -> Message:
    return _Topic(
        error_code=0,
        name=name,
        topic_id=world.topic_id(name),
        is_internal=is_internal(name),
        partitions=[_partition(world, state) for state in _states(world, name, begin, end)],
        topic_authorized_operations=_bits(world, name),
    )


def _states(world: World, name: str, begin: int, end: int) -> Iterator[PartitionState]:
    for number in range(begin, end):
        state = world.state(TopicPartition(name, number))
        if state is not None:
            yield state


def _partition(world: World, state: PartitionState) -> Message:
    return _Partition(
        error_code=0,
        partition_index=state.partition,
        leader_id=state.leader if state.leader in world.brokers else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr or ()),
        last_known_elr=list(state.last_known_elr or ()),
        offline_replicas=offline(world, state),
    )


def _bits(world: World, name: str) -> int:
    return sum(1 << one for one in operations(world, TOPIC, name))
