"""What the records of a simulated cluster hold: the batches as producers sent them, found by the ids of their records.

Logs keep ids only (`kelr.simulation.logs.Record`), so that every replica's copy is one. A record that nobody produced
over the wire (a scenario's, a snapshot's) has contents made up from its id: the same each time.
"""

from __future__ import annotations

import bisect
import struct
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kelr.model import TopicPartition
from kelr.simulation.logs import Record, SimulatedLog
from kelr.sources.records.batches import HEADER_SIZE, MAGIC, BatchHeader, read_header
from kelr.sources.records.crc32c import crc32c
from kelr.sources.records.records import contents, read_records, varint, varint_bytes

# Record batches of magic 2 made and changed: for records that nobody produced, and for batches whose tail was cut.
#
# Source: Kafka's `DefaultRecordBatch` and `DefaultRecord`.


_PLACE = struct.Struct(">qii")
"""Base offset, length and leader epoch: what the checksum does not cover."""
_AFTER_CRC = struct.Struct(">hiqqqhii")
_CRC = struct.Struct(">bI")
_CRC_FROM = 21
_COMPRESSION_BITS = 0x07
_NONE = -1


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write; its offset is its place in the batch."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def encoded(records: Sequence[NewRecord]) -> bytes:
    """A batch without compression and without a producer id, at offset 0."""
    first_ms = records[0].timestamp_ms
    body = b"".join(_record(delta, record, first_ms) for delta, record in enumerate(records))
    newest_ms = max(record.timestamp_ms for record in records)
    head = _AFTER_CRC.pack(0, len(records) - 1, first_ms, newest_ms, _NONE, _NONE, _NONE, len(records))
    return _sealed(head, body)


def cut(data: bytes, count: int) -> bytes:
    """A batch's first `count` records, without compression; all else of its header stays.

    Raises:
        UnreadableBatchError: the batch does not hold what its header says.
    """
    header = read_header(data)
    assert header is not None
    kept = list(read_records(data, 0, header))[:count]
    inside = contents(data, 0, header)
    end = 0
    for _ in kept:
        length, end = varint(inside, end)
        end += length
    return _sealed(_head_of(header, len(kept), max(record.timestamp_ms or _NONE for record in kept)), inside[:end])


def stamped(data: bytes, now_ms: int) -> bytes:
    """The batch as a leader writes it that stamps batches itself (message.timestamp.type=LogAppendTime)."""
    attributes, delta, first_ms, _, *rest = _AFTER_CRC.unpack_from(data, _CRC_FROM)
    head = _AFTER_CRC.pack(attributes | 0x08, delta, first_ms, now_ms, *rest)
    return _sealed(head, data[HEADER_SIZE:])


def placed(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch at an offset of a log, as the leader of an epoch wrote it there."""
    return _PLACE.pack(base_offset, len(data) - 12, leader_epoch) + data[_PLACE.size :]


def _head_of(header: BatchHeader, count: int, newest_ms: int) -> bytes:
    return _AFTER_CRC.pack(
        header.attributes & ~_COMPRESSION_BITS,
        count - 1,
        _NONE if header.base_timestamp_ms is None else header.base_timestamp_ms,
        newest_ms,
        _NONE if header.producer_id is None else header.producer_id,
        _NONE if header.producer_epoch is None else header.producer_epoch,
        _NONE if header.base_sequence is None else header.base_sequence,
        count,
    )


def _sealed(head: bytes, body: bytes | memoryview) -> bytes:
    covered = head + bytes(body)
    return _PLACE.pack(0, _PLACE.size - 12 + _CRC.size + len(covered), 0) + _CRC.pack(MAGIC, crc32c(covered)) + covered


def _record(delta: int, record: NewRecord, first_ms: int) -> bytes:
    body = b"".join(
        (
            b"\x00",
            varint_bytes(record.timestamp_ms - first_ms),
            varint_bytes(delta),
            _sized(record.key),
            _sized(record.value),
            b"\x00",
        )
    )
    return varint_bytes(len(body)) + body


def _sized(content: bytes | None) -> bytes:
    return varint_bytes(-1) if content is None else varint_bytes(len(content)) + content


# What idempotent producers sent last, so that a batch that comes twice is written once, and none out of its order.
#
# Kafka keeps this beside each log. Here it is kept by partition with the place of each batch, and counts only as far as
# the leader's log still holds the batch: after an election it is that of the new leader's log.
#
# Source: ProducerStateManager, ProducerStateEntry and ProducerAppendInfo of Apache Kafka.


REMEMBERED = 5
"""ProducerStateEntry.NUM_BATCHES_TO_RETAIN: how far back a batch is known to be one that came before."""
_KEPT = 1000
"""Batches of one producer in one partition; what an election cuts off leaves the older ones."""
_PRODUCERS = 10_000
_HIGHEST_SEQUENCE = 2**31 - 1
NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Sent:
    """A batch that a leader appended."""

    first_id: int
    base_offset: int
    next_offset: int
    epoch: int
    first_sequence: int
    last_sequence: int

    def lies_in(self, log: SimulatedLog) -> bool:
        """Whether this log holds it, or held it before retention took it."""
        if self.base_offset < log.start:
            return True
        index = self.base_offset - log.start
        return index < len(log.records) and log.records[index].id == self.first_id


class ProducerStates:
    """The last batches of every producer in every partition."""

    def __init__(self) -> None:
        self._sent: OrderedDict[tuple[TopicPartition, int], deque[Sent]] = OrderedDict()
        self._next_id = 1000

    def new_id(self) -> int:
        """A producer id that nobody has."""
        self._next_id += 1
        return self._next_id - 1

    def judged(self, address: TopicPartition, log: SimulatedLog, header: BatchHeader) -> Sent | str:
        """The batch that this one repeats, or the name of the error for it; ``NONE`` where it may be appended.

        Args:
            log: the leader's.
            header: of a batch with a producer id.
        """
        assert header.producer_id is not None
        assert header.producer_epoch is not None
        before = [sent for sent in self._sent.get((address, header.producer_id), ()) if sent.lies_in(log)]
        if not before:
            return NONE
        last, first, epoch = before[-1], _sequence(header), header.producer_epoch
        if epoch < last.epoch:
            return "INVALID_PRODUCER_EPOCH"
        if epoch > last.epoch:
            return NONE if first == 0 else "OUT_OF_ORDER_SEQUENCE_NUMBER"
        ends = _after(first, header.last_offset_delta)
        for sent in before[-REMEMBERED:]:
            if sent.epoch == epoch and (sent.first_sequence, sent.last_sequence) == (first, ends):
                return sent
        return NONE if first == _after(last.last_sequence, 1) else "OUT_OF_ORDER_SEQUENCE_NUMBER"

    def appended(self, address: TopicPartition, header: BatchHeader, *, first_id: int, base_offset: int) -> None:
        """A leader appended the batch at this offset; its records have ids from this one on."""
        assert header.producer_id is not None
        assert header.producer_epoch is not None
        key, first = (address, header.producer_id), _sequence(header)
        sent = self._sent.setdefault(key, deque(maxlen=_KEPT))
        self._sent.move_to_end(key)
        if len(self._sent) > _PRODUCERS:
            self._sent.popitem(last=False)
        last = _after(first, header.last_offset_delta)
        next_offset = base_offset + header.last_offset_delta + 1
        sent.append(Sent(first_id, base_offset, next_offset, header.producer_epoch, first, last))


def _sequence(header: BatchHeader) -> int:
    return -1 if header.base_sequence is None else header.base_sequence


def _after(sequence: int, count: int) -> int:
    """Sequence numbers begin anew at 0 behind the highest (DefaultRecordBatch.incrementSequence)."""
    return (sequence + count) % (_HIGHEST_SEQUENCE + 1)


MOST_BYTES = 512 * 1024 * 1024
"""Of batches that logs hold; a producer that sends more is refused."""
MADE_UP_BATCH = 100
"""The most records in a batch that is made up."""
MADE_UP_MS = 1_700_000_000_000
"""The timestamp of record 0; each later one is a millisecond newer."""
_SWEEP_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it lies in one log."""

    base_offset: int
    """Below the log's start where retention took the head of the batch: a log is cut between batches only."""
    next_offset: int
    data: bytes
    """With this log's offset and the leader epoch that wrote it."""


class Contents:
    """Batches by the id of their first record; ids grow with every batch.

    Args:
        most_bytes: of batches that are kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.producers = ProducerStates()
        self._firsts: list[int] = []
        self._batches: list[tuple[int, bytes]] = []
        """(number of offsets, bytes), beside `_firsts`."""
        self.size_bytes = 0
        self._sweep_at = _SWEEP_BYTES

    def room_for(self, size_bytes: int, held: Iterable[SimulatedLog]) -> bool:
        """Whether that much can be kept, once everything is dropped that none of these logs holds."""
        if self.size_bytes + size_bytes > min(self._sweep_at, self._most_bytes):
            self.keep(held)
        return self.size_bytes + size_bytes <= self._most_bytes

    def put(self, first_id: int, count: int, data: bytes) -> None:
        """Keep a batch; its records have these ids in turn. Ids must be higher than all before."""
        assert not self._firsts or first_id >= self._firsts[-1] + self._batches[-1][0]
        self._firsts.append(first_id)
        self._batches.append((count, data))
        self.size_bytes += len(data)

    def keep(self, logs: Iterable[SimulatedLog]) -> None:
        """Drop the batches of which none of these logs holds a record."""
        held = {record.id for log in logs for record in log.records}
        kept = [
            (first, batch)
            for first, batch in zip(self._firsts, self._batches, strict=True)
            if any(number in held for number in range(first, first + batch[0]))
        ]
        self._firsts = [first for first, _ in kept]
        self._batches = [batch for _, batch in kept]
        self.size_bytes = sum(len(data) for _, data in self._batches)
        self._sweep_at = max(_SWEEP_BYTES, 2 * self.size_bytes)

    def batches(self, log: SimulatedLog, offset: int, end: int | None = None) -> Iterator[Batch]:
        """The batches of a log from the one that holds `offset` on, up to the offset `end`.

        A batch of which only a head lies before `end` comes with that head alone.
        """
        stop = min(log.end, log.end if end is None else end)
        while log.start <= offset < stop:
            batch = self._at(log, offset - log.start, stop - log.start)
            yield batch
            offset = batch.next_offset

    def _at(self, log: SimulatedLog, index: int, stop: int) -> Batch:
        """The batch around the record with this index in the log; `stop` is an index too."""
        record = log.records[index]
        low, high, kept = self._bounds(record.id)
        first = _reach(log.records, index, -1, low, 0)
        last = _reach(log.records, index, 1, high - 1, stop - 1)
        start_id, end_id = log.records[first].id, log.records[last].id + 1
        next_offset = log.start + last + 1
        if kept is None:
            made = _made_up(start_id, end_id - start_id)
            return Batch(log.start + first, next_offset, placed(made, log.start + first, record.epoch))
        data = kept if end_id == high else cut(kept, end_id - low)
        base_offset = next_offset - (end_id - low)
        return Batch(base_offset, next_offset, placed(data, base_offset, record.epoch))

    def _bounds(self, number: int) -> tuple[int, int, bytes | None]:
        """(first id, id after the last, bytes) of the batch that this record came in; no bytes for a made-up one."""
        at = bisect.bisect_right(self._firsts, number) - 1
        low = number - number % MADE_UP_BATCH
        if at >= 0:
            first, (count, data) = self._firsts[at], self._batches[at]
            if number < first + count:
                return first, first + count, data
            low = max(low, first + count)
        high = number - number % MADE_UP_BATCH + MADE_UP_BATCH
        if at + 1 < len(self._firsts):
            high = min(high, self._firsts[at + 1])
        return low, high, None


def _reach(records: tuple[Record, ...], index: int, step: int, last_id: int, last_index: int) -> int:
    """How far the records go on from this index with one id after the other, in one epoch."""
    epoch = records[index].epoch
    while index != last_index and records[index].id != last_id:
        following = records[index + step]
        if following.id != records[index].id + step or following.epoch != epoch:
            break
        index += step
    return index


@lru_cache(maxsize=4096)
def _made_up(first_id: int, count: int) -> bytes:
    return encoded([made_up(number) for number in range(first_id, first_id + count)])


def made_up(number: int) -> NewRecord:
    """What a record holds that nobody produced."""
    return NewRecord(MADE_UP_MS + number, f"key-{number}".encode(), f"record {number}".encode())
