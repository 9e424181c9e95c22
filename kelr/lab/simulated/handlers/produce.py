"""Produce and InitProducerId.

Source: KafkaApis.handleProduceRequest and handleInitProducerIdRequest, ReplicaManager.appendRecords, DelayedProduce.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.lab.simulated.api import Answer, Api, Call, Later, Message, code
from kelr.lab.simulated.contents import Sent, stamped
from kelr.lab.simulated.replicas import NONE, CurrentLeaders, Replica, hosted, known
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition, leader_min_isr
from kelr.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from kelr.simulation.logs import Acks, SimulatedLog
from kelr.simulation.replication import Replication
from kelr.sources.records.batches import MAGIC, BatchHeader, Compression, crc_matches, read_header
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import contents, records_in

# Batches of producers: whether a leader takes them, and how they get into its log.
#
# Source: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator and
# Partition.appendRecordsToLeader of Apache Kafka.

LARGEST_BATCH = 1048588
"""max.message.bytes where a topic says nothing."""
MOST_UNCOMPRESSED = 128 * 1024 * 1024
"""More must not come out of one batch's compression."""
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
NO_TRANSACTIONS = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
"""A simulated cluster knows no transactions: nobody may use a transactional id."""


@dataclass(frozen=True, slots=True)
class Sending:
    """What a Produce request has for one partition."""

    data: bytes | None
    acks: Acks
    version: int
    """The version of the request."""


@dataclass(frozen=True, slots=True)
class Appended:
    """A batch lies in the leader's log, now or since it was sent before."""

    address: TopicPartition
    base_offset: int
    next_offset: int
    last_id: int
    """The id of its last record."""
    leader_epoch: int
    log_start: int
    append_time_ms: int | None = None
    """When the leader appended it, where that is what its records carry (message.timestamp.type=LogAppendTime); of a
    batch that was sent before, its newest timestamp, whatever that is."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch was not taken."""

    address: TopicPartition
    error: str
    words: str | None = None
    log_start: int = -1
    """The log's start, where it was the log that refused the batch."""


def append(world: World, node: int, address: TopicPartition, sending: Sending) -> Appended | Refused:
    """Let a node append a batch.

    Where it is not the leader, or no longer by what the controller says, nothing is written: a leader that was deposed
    and has not heard of it takes nothing, other than in Kafka, where it would lose what it takes.
    """
    replica = hosted(world, node, address)
    if isinstance(replica, str):
        return Refused(address, replica)
    if not replica.leads or world.state(address) is None:
        return Refused(address, NOT_LEADER)
    world.own(address)
    if world.running.cluster.serving(address) != node:
        return Refused(address, NOT_LEADER)
    found = _batch(sending)
    if isinstance(found, str):
        return Refused(address, found)
    if sending.acks is Acks.ALL and _in_sync(world, address) is False:
        return Refused(address, "NOT_ENOUGH_REPLICAS", log_start=replica.log.start)
    damage = _damage(world, address, sending.data or b"", found)
    if damage != NONE:
        return Refused(address, damage)
    before = _fits(world, replica, sending.data or b"", found)
    if isinstance(before, Sent):
        return _again(replica, before, found)
    if before != NONE:
        return Refused(address, before, log_start=replica.log.start)
    return _append(world, replica, bytes(sending.data or b""), found, sending.acks)


def _again(replica: Replica, sent: Sent, header: BatchHeader) -> Appended:
    return Appended(
        replica.address,
        sent.base_offset,
        sent.next_offset,
        sent.first_id + sent.next_offset - sent.base_offset - 1,
        replica.state.leader_epoch,
        replica.log.start,
        header.max_timestamp_ms,
    )


def _append(world: World, replica: Replica, data: bytes, header: BatchHeader, acks: Acks) -> Appended | Refused:
    address = replica.address
    if not world.contents.room_for(len(data), _logs(world)):
        return Refused(address, "POLICY_VIOLATION", "the simulated cluster has no room for more records")
    stamp = world.topic_configs.get(address.topic, {}).get("message.timestamp.type") == "LogAppendTime"
    count = header.last_offset_delta + 1
    produced = world.running.produce(address, count, acks)
    if produced.error != NONE:
        return Refused(address, NOT_LEADER if produced.error == "LEADER_NOT_AVAILABLE" else produced.error)
    first_id, base_offset = produced.records[0].id, replica.log.end
    world.contents.put(first_id, count, stamped(data, world.running.now_ms) if stamp else data)
    if header.producer_id is not None:
        world.contents.producers.appended(address, header, first_id=first_id, base_offset=base_offset)
    return Appended(
        address,
        base_offset,
        base_offset + count,
        first_id + count - 1,
        replica.state.leader_epoch,
        replica.log.start,
        world.running.now_ms if stamp else None,
    )


def _batch(sending: Sending) -> BatchHeader | str:
    """The header of the one batch that came, or why the request is refused before any log is looked at."""
    data = sending.data
    header = None if not data else read_header(data)
    if data is None or header is None or header.magic != MAGIC or header.size_bytes != len(data):
        return "INVALID_RECORD"  # there must be one batch, and one alone
    if header.compression is Compression.ZSTD and sending.version < 7:
        return "UNSUPPORTED_COMPRESSION_TYPE"
    return NO_TRANSACTIONS if header.transactional else header


def _in_sync(world: World, address: TopicPartition) -> bool | None:
    """Whether the committed ISR has min ISR members; None where nobody leads."""
    replication = world.replication(address)
    if replication is None or replication.leadership is None:
        return None
    return len(replication.leadership.isr) >= _needed(world, address, replication)


def _needed(world: World, address: TopicPartition, replication: Replication) -> int:
    config = world.running.cluster.controller.config(address.topic)
    return leader_min_isr(config.min_isr, len(replication.logs)) or 1


def _damage(world: World, address: TopicPartition, data: bytes, header: BatchHeader) -> str:
    if header.size_bytes > _largest(world, address):
        return "MESSAGE_TOO_LARGE"
    return NONE if crc_matches(data, 0, header) else "CORRUPT_MESSAGE"


def _fits(world: World, replica: Replica, data: bytes, header: BatchHeader) -> Sent | str:
    """The batch that this one repeats, or the error that the log has for it; ``NONE`` where it may be appended."""
    if header.control or header.base_offset != 0 or header.count < 1 or header.count != header.last_offset_delta + 1:
        return "INVALID_RECORD"
    if header.producer_id is not None and header.base_sequence is None:
        return "INVALID_RECORD"
    try:
        inside = contents(data, 0, header, limit_bytes=MOST_UNCOMPRESSED)
    except UnreadableBatchError:
        return "UNKNOWN_SERVER_ERROR"  # as 4.3.1 calls what its codecs make of noise
    try:
        records_in(inside, header)
    except UnreadableBatchError:
        return "INVALID_RECORD"
    if header.producer_id is None:
        return NONE
    return world.contents.producers.judged(replica.address, replica.log, header)


def _largest(world: World, address: TopicPartition) -> int:
    text = world.topic_configs.get(address.topic, {}).get("max.message.bytes", "")
    return int(text) if text.isdecimal() else LARGEST_BATCH


def _logs(world: World) -> Iterator[SimulatedLog]:
    for replication in world.running.cluster.replication.values():
        yield from replication.logs.values()


def outcome(world: World, node: int, appended: Appended) -> str | None:
    """What a producer with acks=all is told; None while the batch waits for the high watermark.

    Source: Partition.checkEnoughReplicasReachOffset.
    """
    replica = hosted(world, node, appended.address)
    if isinstance(replica, str):
        return replica
    replication = world.replication(appended.address)
    leadership = None if replication is None else replication.leadership
    if replication is None or leadership is None or leadership.leader != node or not replica.leads:
        return NOT_LEADER
    if replica.log.high_watermark < appended.next_offset or appended.last_id in leadership.waiting:
        return None
    if appended.last_id in replication.ledger.committed:
        return NONE
    enough = len(leadership.maximal_isr) >= _needed(world, appended.address, replication)
    return NONE if enough else "NOT_ENOUGH_REPLICAS_AFTER_APPEND"


_UNKNOWN = -1
_ACKS = {-1: Acks.ALL, 0: Acks.NONE, 1: Acks.LEADER}
_Done = Appended | Refused


def produce(call: Call) -> Answer:
    """Append what came, and answer as soon as the producer's acks allow it.

    Raises:
        ConnectionAbortedError: acks=0 and something was refused: the only way to tell such a producer.
    """
    done = list(_carried_out(call))
    if call.request.acks == 0:
        if any(isinstance(one, Refused) for _, one in done):
            raise ConnectionAbortedError("a producer that waits for no answer sent what was refused")
        return None
    if call.request.acks == 1 or not any(isinstance(one, Appended) for _, one in done):
        return _response(call, done)
    return _committed(call, done) or _wait(call, done)


def _wait(call: Call, done: list[tuple[Message, _Done]]) -> Later:
    def expired() -> Message:
        late = [
            (topic, Refused(one.address, outcome(call.world, call.node, one) or "REQUEST_TIMED_OUT"))
            if isinstance(one, Appended) and outcome(call.world, call.node, one) != NONE
            else (topic, one)
            for topic, one in done
        ]
        return _response(call, late)

    until_ms = call.world.running.now_ms + max(0, call.request.timeout_ms)
    return Later(until_ms, lambda: _committed(call, done), expired)


def _committed(call: Call, done: list[tuple[Message, _Done]]) -> Message | None:
    """The answer, where nothing waits for the high watermark any more."""
    found: list[tuple[Message, _Done]] = []
    for topic, one in done:
        said = outcome(call.world, call.node, one) if isinstance(one, Appended) else NONE
        if said is None:
            return None
        found.append((topic, one if said == NONE else Refused(one.address, said)))
    return _response(call, found)


def _carried_out(call: Call) -> Iterator[tuple[Message, _Done]]:
    """What became of each partition, with its topic's message."""
    for topic in call.request.topic_data:
        name = call.world.topic_of(topic.topic_id) if call.version >= 13 else topic.name
        for partition in topic.partition_data:
            address = TopicPartition(name or "", partition.index)
            error = _refusal(call, address)
            if error != NONE:
                yield topic, Refused(address, error)
                continue
            sending = Sending(partition.records, _ACKS[call.request.acks], call.version)
            yield topic, append(call.world, call.node, address, sending)


def _refusal(call: Call, address: TopicPartition) -> str:
    if call.request.acks not in _ACKS:
        return "INVALID_REQUIRED_ACKS"
    if call.request.transactional_id is not None:
        return NO_TRANSACTIONS
    if not address.topic:
        return "UNKNOWN_TOPIC_ID"
    if not call.world.allowed("topic", "WRITE", address.topic):
        return "TOPIC_AUTHORIZATION_FAILED"
    return NONE if known(call.world, call.node, address) is not None else "UNKNOWN_TOPIC_OR_PARTITION"


def _response(call: Call, done: list[tuple[Message, _Done]]) -> Message:
    kind, version, leaders = ProduceResponse.TopicProduceResponse, call.version, CurrentLeaders(call.world, call.node)
    topics: list[tuple[Message, Message]] = []
    for topic, one in done:
        if not topics or topics[-1][0] is not topic:
            named = {"topic_id": topic.topic_id} if version >= 13 else {"name": topic.name}
            topics.append((topic, kind(partition_responses=[], **named)))
        topics[-1][1].partition_responses.append(_partition(kind.PartitionProduceResponse, version, one, leaders))
    tagged = {}
    if version >= 10 and leaders.told:
        tagged["node_endpoints"] = leaders.endpoints(ProduceResponse.NodeEndpoint)
    return ProduceResponse(responses=[made for _, made in topics], throttle_time_ms=0, **tagged)


def _partition(kind: type[Message], version: int, one: _Done, leaders: CurrentLeaders) -> Message:
    if isinstance(one, Appended):
        return kind(
            index=one.address.partition,
            error_code=code(NONE),
            base_offset=one.base_offset,
            log_append_time_ms=_UNKNOWN if one.append_time_ms is None else one.append_time_ms,
            log_start_offset=one.log_start,
            record_errors=[],
            error_message=None,
        )
    tagged = {}
    if version >= 10 and one.error == NOT_LEADER:
        leader, epoch = leaders.of(one.address)
        tagged["current_leader"] = kind.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    return kind(
        index=one.address.partition,
        error_code=code(one.error),
        base_offset=_UNKNOWN,
        log_append_time_ms=_UNKNOWN,
        log_start_offset=one.log_start,
        record_errors=[],
        error_message=one.words,
        **tagged,
    )


def init_producer_id(call: Call) -> Message:
    """A producer id for an idempotent producer; nobody may use a transactional id here."""
    world, error = call.world, NONE
    if call.request.transactional_id is not None:
        error = NO_TRANSACTIONS
    elif not (world.allowed("cluster", "IDEMPOTENT_WRITE") or world.allowed("topic", "WRITE")):
        error = "CLUSTER_AUTHORIZATION_FAILED"
    return InitProducerIdResponse(
        throttle_time_ms=0,
        error_code=code(error),
        producer_id=world.contents.producers.new_id() if error == NONE else _UNKNOWN,
        producer_epoch=0 if error == NONE else _UNKNOWN,
    )


APIS: tuple[Api, ...] = (
    Api(ProduceRequest, ProduceResponse, (3, 13), produce),
    Api(InitProducerIdRequest, InitProducerIdResponse, (0, 6), init_producer_id),
)
