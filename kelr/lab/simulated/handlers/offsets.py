"""ListOffsets and OffsetForLeaderEpoch: where a log begins and ends, by time, and by epoch.

Source: ReplicaManager.fetchOffset, Partition.fetchOffsetForTimestamp, UnifiedLog.fetchOffsetByTimestamp, and
KafkaApis.handleOffsetForLeaderEpochRequest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kelr.lab.simulated.api import Api, Call, Message, code
from kelr.lab.simulated.contents import Batch
from kelr.lab.simulated.replicas import NONE, Replica, hosted
from kelr.model import TopicPartition
from kelr.protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kelr.sources.records.batches import BatchHeader, read_header
from kelr.sources.records.records import read_records

LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_SINCE_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    NEWEST: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_CONSUMER = -1
_DEBUGGING_REPLICA = -2
_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Found:
    """An offset, and what was asked about it along with it."""

    offset: int = _UNKNOWN
    timestamp_ms: int = _UNKNOWN
    leader_epoch: int = _UNKNOWN


def list_offsets(call: Call) -> Message:
    """ListOffsets of any replica for the debugging replica, of leaders for everybody else."""
    asked = Counter(
        (topic.name, partition.partition_index) for topic in call.request.topics for partition in topic.partitions
    )
    kind = ListOffsetsResponse.ListOffsetsTopicResponse
    topics = []
    for topic in call.request.topics:
        partitions = []
        for partition in topic.partitions:
            twice = asked[topic.name, partition.partition_index] > 1
            result = "INVALID_REQUEST" if twice else _offset(call, topic.name, partition)
            found = result if isinstance(result, Found) else Found()
            partitions.append(
                kind.ListOffsetsPartitionResponse(
                    partition_index=partition.partition_index,
                    error_code=code(result if isinstance(result, str) else NONE),
                    timestamp=found.timestamp_ms,
                    offset=found.offset,
                    leader_epoch=found.leader_epoch,
                )
            )
        topics.append(kind(name=topic.name, partitions=partitions))
    return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def _offset(call: Call, topic: str, partition: Message) -> Found | str:
    """What was found, or the name of the error."""
    if not call.world.allowed("topic", "DESCRIBE", topic):
        return "TOPIC_AUTHORIZATION_FAILED"
    timestamp = partition.timestamp
    if timestamp < 0 and call.version < _SINCE_VERSION.get(timestamp, call.version + 1):
        return "UNSUPPORTED_VERSION"
    replica = hosted(call.world, call.node, TopicPartition(topic, partition.partition_index))
    if isinstance(replica, str):
        return replica
    error = replica.fenced(partition.current_leader_epoch if call.version >= 4 else _UNKNOWN)
    if error != NONE:
        return error
    if call.request.replica_id != _DEBUGGING_REPLICA and not replica.leads:
        return "NOT_LEADER_OR_FOLLOWER"
    return _found(call, replica, timestamp)


def _found(call: Call, replica: Replica, timestamp: int) -> Found | str:
    log, consumer = replica.log, call.request.replica_id == _CONSUMER
    last = log.high_watermark if consumer else log.end
    late: str | None = None
    if consumer and replica.epoch_start is not None and replica.epoch_start > log.high_watermark:
        # A new leader does not know yet how far consumers have read.
        late = "OFFSET_NOT_AVAILABLE" if call.version >= 5 else "LEADER_NOT_AVAILABLE"
    if timestamp == LATEST:
        return late or Found(last, leader_epoch=replica.state.leader_epoch)
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        first = replica.epochs[0] if replica.epochs else None
        epoch = first.epoch if first is not None and first.start <= log.start else _UNKNOWN
        return Found(log.start, leader_epoch=epoch)
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        return Found()
    found = _newest(call, replica) if timestamp == NEWEST else _at_or_after(call, replica, timestamp)
    if found is None:
        return late or Found()
    if found.offset >= last:
        return late or Found()
    return found


def _newest(call: Call, replica: Replica) -> Found | None:
    """The first record with the newest timestamp."""
    best: tuple[Batch, BatchHeader] | None = None
    for batch, header in _batches(call, replica):
        if best is None or (header.max_timestamp_ms or _UNKNOWN) > (best[1].max_timestamp_ms or _UNKNOWN):
            best = batch, header
    if best is None or best[1].max_timestamp_ms is None:
        return None
    return _first_from(*best, best[1].max_timestamp_ms, 0)


def _at_or_after(call: Call, replica: Replica, timestamp_ms: int) -> Found | None:
    """The first record with this timestamp or a newer one."""
    for batch, header in _batches(call, replica):
        if (header.max_timestamp_ms or _UNKNOWN) >= timestamp_ms:
            found = _first_from(batch, header, timestamp_ms, replica.log.start)
            if found is not None:
                return found
    return None


def _first_from(batch: Batch, header: BatchHeader, timestamp_ms: int, start: int) -> Found | None:
    for record in read_records(batch.data, 0, header):
        if record.offset >= start and (record.timestamp_ms or _UNKNOWN) >= timestamp_ms:
            epoch = _UNKNOWN if header.partition_leader_epoch is None else header.partition_leader_epoch
            return Found(record.offset, record.timestamp_ms or _UNKNOWN, epoch)
    return None


def _batches(call: Call, replica: Replica) -> list[tuple[Batch, BatchHeader]]:
    found = []
    for batch in call.world.contents.batches(replica.log, replica.log.start):
        header = read_header(batch.data)
        assert header is not None
        found.append((batch, header))
    return found


def offset_for_leader_epoch(call: Call) -> Message:
    """OffsetForLeaderEpoch: where an epoch ends in a leader's log."""
    kind = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
    trusted = call.world.allowed("cluster", "CLUSTER_ACTION")
    topics = []
    for topic in call.request.topics:
        allowed = trusted or call.world.allowed("topic", "DESCRIBE", topic.topic)
        partitions = []
        for partition in topic.partitions:
            result = _end_of(call, topic.topic, partition) if allowed else "TOPIC_AUTHORIZATION_FAILED"
            epoch, end = (_UNKNOWN, _UNKNOWN) if isinstance(result, str) else result
            partitions.append(
                kind.EpochEndOffset(
                    error_code=code(result if isinstance(result, str) else NONE),
                    partition=partition.partition,
                    leader_epoch=epoch,
                    end_offset=end,
                )
            )
        topics.append(kind(topic=topic.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics)


def _end_of(call: Call, topic: str, partition: Message) -> tuple[int, int] | str:
    replica = hosted(call.world, call.node, TopicPartition(topic, partition.partition))
    if isinstance(replica, str):
        return replica
    error = replica.fenced(partition.current_leader_epoch)
    if error != NONE:
        return error
    if not replica.leads:
        return "NOT_LEADER_OR_FOLLOWER"
    return replica.end_of(partition.leader_epoch) or (_UNKNOWN, _UNKNOWN)


APIS: tuple[Api, ...] = (
    Api(ListOffsetsRequest, ListOffsetsResponse, (1, 11), list_offsets),
    Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, (2, 4), offset_for_leader_epoch),
)
