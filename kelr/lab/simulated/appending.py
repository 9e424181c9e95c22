"""Batches of producers: whether a leader takes them, and how they get into its log.

Source: ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator and
Partition.appendRecordsToLeader of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.lab.simulated.batches import stamped
from kelr.lab.simulated.producers import Sent
from kelr.lab.simulated.replicas import NONE, Replica, hosted
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition
from kelr.simulation.logs import Acks, SimulatedLog
from kelr.sources.records.batches import MAGIC, BatchHeader, Compression, crc_matches, read_header
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import read_records

LARGEST_BATCH = 1048588
"""max.message.bytes where a topic says nothing."""
MOST_UNCOMPRESSED = 128 * 1024 * 1024
"""More must not come out of one batch's compression."""
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"


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
    """When the leader appended it, where that is what its records carry (message.timestamp.type=LogAppendTime)."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A batch was not taken."""

    address: TopicPartition
    error: str
    words: str | None = None


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
    found = _checked(world, replica, sending.data, sending.version)
    if isinstance(found, str):
        return Refused(address, found)
    if isinstance(found, Refused):
        return found
    if found.producer_id is not None:
        known = world.contents.producers.judged(address, replica.log, found)
        if isinstance(known, Sent):
            last = known.first_id + known.next_offset - known.base_offset - 1
            epoch, start = replica.state.leader_epoch, replica.log.start
            return Appended(address, known.base_offset, known.next_offset, last, epoch, start)
        if known != NONE:
            return Refused(address, known)
    assert sending.data is not None
    return _append(world, replica, bytes(sending.data), found, sending.acks)


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


def _checked(world: World, replica: Replica, data: bytes | None, version: int) -> BatchHeader | Refused | str:
    """The header of the one batch that came, or why it is not taken."""
    address = replica.address
    header = None if not data else read_header(data)
    if header is None or data is None:
        return Refused(address, "INVALID_RECORD", "a Produce request must have one record batch for each partition")
    if header.magic != MAGIC:
        return Refused(address, "INVALID_RECORD", f"record batches must have magic {MAGIC}, and not {header.magic}")
    if header.size_bytes > len(data) or header.size_bytes < 61:
        return "CORRUPT_MESSAGE"
    if header.size_bytes < len(data):
        return Refused(address, "INVALID_RECORD", "a Produce request must have one record batch for each partition")
    if header.size_bytes > _largest(world, address):
        return "MESSAGE_TOO_LARGE"
    if not crc_matches(data, 0, header):
        return "CORRUPT_MESSAGE"
    if header.compression is Compression.ZSTD and version < 7:
        return "UNSUPPORTED_COMPRESSION_TYPE"
    if header.transactional or header.control:
        return Refused(address, "INVALID_TXN_STATE", "a simulated cluster knows no transactions")
    return _with_records(address, data, header)


def _with_records(address: TopicPartition, data: bytes, header: BatchHeader) -> BatchHeader | Refused:
    if header.base_offset != 0:
        return Refused(address, "INVALID_RECORD", f"the batch begins at offset {header.base_offset}, and not at 0")
    if header.count < 1 or header.count != header.last_offset_delta + 1:
        return Refused(address, "INVALID_RECORD", "the batch does not hold the records that its header counts")
    if header.producer_id is not None and header.base_sequence is None:
        return Refused(address, "INVALID_RECORD", "the batch has a producer id and no sequence number")
    try:
        read_records(data, 0, header, limit_bytes=MOST_UNCOMPRESSED)
    except UnreadableBatchError as error:
        return Refused(address, "INVALID_RECORD", str(error))
    return header


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
    needed = world.running.cluster.controller.config(appended.address.topic).min_isr or 1
    enough = len(leadership.maximal_isr) >= min(needed, len(replication.logs))
    return NONE if enough else "NOT_ENOUGH_REPLICAS_AFTER_APPEND"
