"""Fetch: records for consumers and past the high watermark, and questions about epochs.

Followers of the simulated cluster do not fetch over the wire. One that asks here is answered, and the leader remembers
its broker epoch (ReplicaState, KIP-903), but counts nothing as replicated. Fetch sessions (KIP-227) are never begun, as
by a broker whose session cache is full.

Source: KafkaApis.handleFetchRequest, ReplicaManager.readFromLog, Partition.readRecords, LocalLog.read, FetchParams;
Replica.updateFetchStateOrThrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from kelr.lab.simulated.api import Answer, Api, Call, Later, Message, Nodes, code
from kelr.lab.simulated.contents import Batch
from kelr.lab.simulated.handlers import metadata_fetch
from kelr.lab.simulated.replicas import NONE, CurrentLeaders, Replica, hosted
from kelr.lab.simulated.world import seen_by
from kelr.model import TopicPartition
from kelr.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from kelr.sources.records.batches import BatchHeader, read_header
from kelr.sources.records.records import read_records

MOST_BYTES = 55 * 1024 * 1024
"""fetch.max.bytes"""
_CONSUMER = -1
_FUTURE_LOCAL_REPLICA = -3
_READ_COMMITTED = 1
_UNKNOWN = -1
_MOVED = frozenset({"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"})


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One partition of a request."""

    topic: str
    """Empty where the request goes by id and there is no such topic, and where it goes by name and not by id."""
    topic_id: UUID | None
    partition: Message

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition.partition)


@dataclass(slots=True)
class _Read:
    """What came of one partition."""

    wanted: _Wanted
    error: str = NONE
    high_watermark: int = _UNKNOWN
    log_start: int = _UNKNOWN
    diverging: tuple[int, int] | None = None
    records: bytes = b""
    refused: bool = False
    """Before any log was looked at."""


@dataclass(slots=True)
class _Reads:
    """What came of a whole request."""

    found: list[_Read] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return sum(len(read.records) for read in self.found)

    @property
    def final(self) -> bool:
        """Whether something is to be told at once: an error, or that the logs part."""
        return any(read.error != NONE or read.diverging is not None for read in self.found)


def fetch(call: Call) -> Answer:
    """Answer one request; it waits for records as long as the client allows."""
    request = call.request
    if call.node in call.world.controllers:
        return metadata_fetch.answer(call)
    if request.session_id != 0 and request.session_epoch > 0:
        return _response(call, _Reads(), error="FETCH_SESSION_ID_NOT_FOUND")
    refused, reads = _read_all(call)
    enough = reads.size_bytes >= min(request.min_bytes, request.max_bytes, MOST_BYTES)
    if request.max_wait_ms <= 0 or not reads.found or enough or reads.final:
        return _response(call, reads, refused)
    return _wait(call, len(refused.found))


def _wait(call: Call, refused_first: int) -> Later:
    request, world = call.request, call.world

    def poll() -> Message | None:
        refused, reads = _read_all(call)
        enough = reads.size_bytes >= min(request.min_bytes, request.max_bytes, MOST_BYTES)
        gone = len(refused.found) > refused_first
        return _response(call, reads, refused) if enough or reads.final or gone else None

    def expired() -> Message:
        refused, reads = _read_all(call)
        return _response(call, reads, refused)

    return Later(world.running.now_ms + request.max_wait_ms, poll, expired)


def _read_all(call: Call) -> tuple[_Reads, _Reads]:
    """(partitions that are refused before any log is looked at, the others)."""
    refused, reads = _Reads(), _Reads()
    left, at_least_one = min(call.request.max_bytes, MOST_BYTES), True
    for wanted in _wanted(call):
        error = _refusal(call, wanted)
        if error != NONE:
            refused.found.append(_Read(wanted, error, refused=True))
            continue
        read = _read(call, wanted, min(left, wanted.partition.partition_max_bytes), at_least_one=at_least_one)
        (refused if read.refused else reads).found.append(read)
        at_least_one = at_least_one and not read.records
        left = max(0, left - len(read.records))
    return refused, reads


def _wanted(call: Call) -> Iterator[_Wanted]:
    for topic in call.request.topics:
        by_id = call.version >= 13
        name = (call.world.topic_of(topic.topic_id) or "") if by_id else topic.topic
        for partition in topic.partitions:
            yield _Wanted(name, topic.topic_id if by_id else None, partition)


def _refusal(call: Call, wanted: _Wanted) -> str:
    world, follower = call.world, _replica_id(call) >= 0
    if follower and not world.allowed("cluster", "CLUSTER_ACTION"):
        return "TOPIC_AUTHORIZATION_FAILED"
    if not wanted.topic:
        return "UNKNOWN_TOPIC_ID"
    if not follower and not world.allowed("topic", "READ", wanted.topic):
        return "TOPIC_AUTHORIZATION_FAILED"
    return NONE


def _replica_id(call: Call) -> int:
    if call.version < 15:
        return int(call.request.replica_id)
    state = call.request.replica_state
    return _CONSUMER if state is None else int(state.replica_id)


def _read(call: Call, wanted: _Wanted, most_bytes: int, *, at_least_one: bool) -> _Read:
    replica = hosted(call.world, call.node, wanted.address)
    if isinstance(replica, str):
        return _Read(wanted, replica, refused=replica == "UNKNOWN_TOPIC_OR_PARTITION")
    error = _unfit(call, wanted, replica)
    if error != NONE:
        return _Read(wanted, error)
    offset, log = wanted.partition.fetch_offset, replica.log
    read = _Read(wanted, high_watermark=log.high_watermark, log_start=log.start)
    epoch = wanted.partition.last_fetched_epoch if call.version >= 12 else _UNKNOWN
    if epoch >= 0:
        end = replica.end_of(epoch)
        if end is None or offset < log.start:
            return _Read(wanted, "OFFSET_OUT_OF_RANGE")
        if end[0] < epoch or end[1] < offset:
            read.diverging = end
            return read
    if not log.start <= offset <= log.end:
        return _Read(wanted, "OFFSET_OUT_OF_RANGE")
    if _replica_id(call) >= 0 and not _taken_note_of(call, wanted.address):
        return _Read(wanted, "NOT_LEADER_OR_FOLLOWER")
    read.records = _records(call, replica, offset, most_bytes, at_least_one=at_least_one)
    return read


def _taken_note_of(call: Call, address: TopicPartition) -> bool:
    """Remember the follower's broker epoch; False for one that is older than its registration's."""
    epoch, follower = call.request.replica_state.replica_epoch if call.version >= 15 else _UNKNOWN, _replica_id(call)
    registered = seen_by(call.world, call.node).brokers.get(follower)
    if epoch >= 0 and registered is not None and not registered.fenced and registered.epoch > epoch:
        return False
    call.world.running.note_fetch(call.world.own(address), follower, epoch if epoch >= 0 else None)
    return True


def _unfit(call: Call, wanted: _Wanted, replica: Replica) -> str:
    """Why this replica does not answer this request; ``NONE`` where it does."""
    replica_id = _replica_id(call)
    epoch = wanted.partition.current_leader_epoch if call.version >= 9 else _UNKNOWN
    error = replica.fenced(epoch)
    if error != NONE:
        return error
    # From v11 on a consumer may read from any replica (KIP-392); before, and for followers, only the leader answers.
    only_leader = replica_id >= 0 or (replica_id != _FUTURE_LOCAL_REPLICA and call.version < 11)
    if only_leader and not replica.leads:
        return "NOT_LEADER_OR_FOLLOWER"
    if replica_id >= 0 and (replica_id == call.node or replica_id not in replica.state.replicas):
        return "UNKNOWN_LEADER_EPOCH" if epoch >= 0 else "NOT_LEADER_OR_FOLLOWER"
    return NONE


def _records(call: Call, replica: Replica, offset: int, most_bytes: int, *, at_least_one: bool) -> bytes:
    """Batches from the one that holds the offset on; the last may be cut short by the limit, as Kafka cuts it."""
    log, replica_id = replica.log, _replica_id(call)
    to_log_end = replica_id >= 0 or replica_id == _FUTURE_LOCAL_REPLICA
    parts: list[bytes] = []
    size = 0
    for batch in call.world.contents.batches(log, offset, None if to_log_end else log.high_watermark):
        if not parts:
            if not at_least_one and len(batch.data) > most_bytes:
                return b""
            most_bytes = max(most_bytes, len(batch.data))
        parts.append(batch.data)
        size += len(batch.data)
        if size >= most_bytes:
            break
    return b"".join(parts)[:most_bytes]


def _response(call: Call, reads: _Reads, refused: _Reads | None = None, *, error: str = NONE) -> Message:
    leaders = CurrentLeaders(call.world, call.node)
    topics: list[Message] = []
    kind = FetchResponse.FetchableTopicResponse
    for read in (*reads.found, *(refused.found if refused is not None else ())):
        topic, topic_id = read.wanted.topic, read.wanted.topic_id
        if not topics or (topics[-1].topic, topics[-1].topic_id) != (topic, topic_id or UUID(int=0)):
            topics.append(kind(topic=topic, topic_id=topic_id or UUID(int=0), partitions=[]))
        topics[-1].partitions.append(_partition(call, read, leaders))
    answer = FetchResponse(throttle_time_ms=0, error_code=code(error), session_id=0, responses=topics)
    if call.version >= 16 and leaders.told:
        answer.node_endpoints = leaders.endpoints(FetchResponse.NodeEndpoint)
    return answer


def _partition(call: Call, read: _Read, leaders: CurrentLeaders) -> Message:
    kind, version = FetchResponse.FetchableTopicResponse.PartitionData, call.version
    committed = call.request.isolation_level == _READ_COMMITTED and read.error == NONE and read.diverging is None
    tagged: dict[str, Message] = {}
    if read.diverging is not None:
        epoch, end = read.diverging
        tagged["diverging_epoch"] = kind.EpochEndOffset(epoch=epoch, end_offset=end)
    if version >= 16 and read.error in _MOVED:
        leader, leader_epoch = leaders.of(read.wanted.address)
        tagged["current_leader"] = kind.LeaderIdAndEpoch(leader_id=leader, leader_epoch=leader_epoch)
    return kind(
        partition_index=read.wanted.partition.partition,
        error_code=code(_for_version(read.error, version)),
        high_watermark=read.high_watermark,
        last_stable_offset=read.high_watermark,
        log_start_offset=read.log_start,
        aborted_transactions=[] if committed or read.refused else None,
        preferred_read_replica=_UNKNOWN,
        records=read.records,
        **tagged,
    )


def _for_version(error: str, version: int) -> str:
    return "NOT_LEADER_OR_FOLLOWER" if error == "KAFKA_STORAGE_ERROR" and version <= 5 else error


# ListOffsets and OffsetForLeaderEpoch: where a log begins and ends, by time, and by epoch.
#
# Source: ReplicaManager.fetchOffset, Partition.fetchOffsetForTimestamp, UnifiedLog.fetchOffsetByTimestamp, and
# KafkaApis.handleOffsetForLeaderEpochRequest.


LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
_SINCE_VERSION = {
    LATEST: 0,
    EARLIEST: 0,
    NEWEST: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
_DEBUGGING_REPLICA = -2


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
    Api(FetchRequest, FetchResponse, (4, 18), fetch, Nodes.ALL),
    Api(ListOffsetsRequest, ListOffsetsResponse, (1, 11), list_offsets),
    Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, (2, 4), offset_for_leader_epoch),
)
