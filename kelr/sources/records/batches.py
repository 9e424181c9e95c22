"""Record batches as they lie in a segment and come over the wire: headers, checksums, and where a run of them stops.

Source: Kafka's `DefaultRecordBatch` (magic 2), `AbstractLegacyRecordBatch` (magic 0 and 1), `ByteBufferLogInputStream`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kelr.sources.records.crc32c import Bytes, crc32c

MAGIC = 2
"""The record format of Kafka 0.11 and newer, the only one that carries leader epochs and producer ids."""
PREFIX_SIZE = 12
"""Bytes of base offset and length, which the length does not count."""
HEADER_SIZE = 61
"""Bytes of a whole batch header of magic 2."""

_MAGIC_AT = 16
_PREFIX = struct.Struct(">qi")
HEADER = struct.Struct(">qiibIhiqqqhii")
_OLD_HEADER = struct.Struct(">qiIbb")
_CRC_FROM = 21
_OLD_CRC_FROM = 16
_OLD_SMALLEST = 14
"""LegacyRecord.RECORD_OVERHEAD_V0: what Kafka takes a smaller length for is a corrupt record."""
_PRODUCER_UNKNOWN = -1

_COMPRESSION_BITS = 0x07
_LOG_APPEND_TIME_BIT = 0x08
_TRANSACTIONAL_BIT = 0x10
_CONTROL_BIT = 0x20


class Compression(IntEnum):
    """How the records of a batch are compressed (`CompressionType`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """What the timestamps of a batch say."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
    """Every record has the batch's newest timestamp: the moment when the leader wrote it."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The header of one batch; of magic 0 and 1 only `base_offset`, `batch_length`, `crc`, `magic` and `attributes` are
    there, and the rest is None or 0. With those, `base_offset` is the offset of the last message inside."""

    base_offset: int
    batch_length: int
    """Bytes after the length field."""
    partition_leader_epoch: int | None
    """The leader epoch in which the leader appended it; None where it carries none."""
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int = 0
    base_timestamp_ms: int | None = None
    """What the records' timestamps are counted from; with attribute bit 0x40 when its markers may be removed."""
    max_timestamp_ms: int | None = None
    producer_id: int | None = None
    """None for a producer that is neither idempotent nor transactional."""
    producer_epoch: int | None = None
    base_sequence: int | None = None
    count: int = 0
    """Records inside; compaction may leave 0."""

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch."""
        return PREFIX_SIZE + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.last_offset + 1

    @property
    def too_old(self) -> bool:
        """Whether it has message format 0 or 1, which Kafka 4 reads no more and kelr does not decode."""
        return self.magic < MAGIC

    @property
    def compression(self) -> Compression | None:
        """None: a number that Kafka has not given away."""
        number = self.attributes & _COMPRESSION_BITS
        return Compression(number) if number <= Compression.ZSTD else None

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.log_append_time else TimestampType.CREATE_TIME

    @property
    def log_append_time(self) -> bool:
        return bool(self.attributes & _LOG_APPEND_TIME_BIT)

    @property
    def transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def control(self) -> bool:
        """Whether it holds markers and no records of users."""
        return bool(self.attributes & _CONTROL_BIT)


class StopKind(StrEnum):
    """Why a run of batches ends where it does."""

    END = "end"
    """The bytes end with a whole batch."""
    TORN = "torn"
    """The last batch is cut short."""
    EMPTY_SPACE = "empty-space"
    """18 zero bytes or more: space that was set aside and not written (log.preallocate), or that a machine crash
    left."""
    GARBAGE = "garbage"
    """What is there is no batch: an impossible length or an unknown magic."""
    CRC = "crc"
    """A batch whose bytes do not match its checksum."""
    UNREADABLE = "unreadable"
    """A batch whose records cannot be read, though its checksum holds: only who decodes records comes to it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a run of batches ends, and why."""

    kind: StopKind
    at: int
    """Position in bytes: all before it are whole batches."""
    text: str = ""
    """What was found there, for a person; empty for `StopKind.END`."""


def read_header(buffer: Bytes, at: int = 0) -> BatchHeader | None:
    """The header of the batch at this position; None where too few bytes are left for one.

    Nothing is checked: see `implausible` and `crc_matches`.
    """
    left = len(buffer) - at
    if left < _OLD_HEADER.size:
        return None
    if 0 <= buffer[at + _MAGIC_AT] < MAGIC:
        offset, length, crc, magic, attributes = _OLD_HEADER.unpack_from(buffer, at)
        return BatchHeader(offset, length, None, magic, crc, attributes)
    if left < HEADER_SIZE:
        return None
    *values, count = HEADER.unpack_from(buffer, at)
    offset, length, epoch, magic, crc, attributes, delta, base_ms, max_ms, producer, producer_epoch, sequence = values
    if producer == _PRODUCER_UNKNOWN:
        producer = producer_epoch = None
    return BatchHeader(
        offset,
        length,
        epoch if epoch >= 0 else None,
        magic,
        crc,
        attributes,
        delta,
        base_ms if base_ms >= 0 else None,
        max_ms if max_ms >= 0 else None,
        producer,
        producer_epoch,
        sequence if sequence >= 0 else None,
        count,
    )


def crc_matches(buffer: Bytes, at: int, header: BatchHeader) -> bool:
    """Whether the whole batch is there and its bytes match its checksum (CRC-32C; CRC-32 for magic 0 and 1)."""
    end = at + header.size_bytes
    if end > len(buffer):
        return False
    view = memoryview(buffer)
    if header.too_old:
        return zlib.crc32(view[at + _OLD_CRC_FROM : end]) == header.crc
    return crc32c(view[at + _CRC_FROM : end]) == header.crc


def implausible(buffer: Bytes, at: int = 0) -> str | None:
    """Why no batch starts at this position, in words; None where one may (then it may still be torn, or fail its CRC).

    Kafka takes the same for a corrupt record (`ByteBufferLogInputStream.nextBatchSize`).
    """
    if len(buffer) - at < _OLD_HEADER.size:
        return None
    _, length = _PREFIX.unpack_from(buffer, at)
    magic = buffer[at + _MAGIC_AT]
    if magic > MAGIC:
        return f"a batch would have magic {magic}; Kafka knows 0 to {MAGIC}"
    smallest = HEADER_SIZE - PREFIX_SIZE if magic == MAGIC else _OLD_SMALLEST
    if length < smallest:
        return f"a batch would be {length} bytes long; with magic {magic} it has at least {smallest}"
    return None


def empty_space(at: int, left: int) -> Stop:
    """The end of a run of which so many bytes are left, and begin with zeros."""
    return Stop(StopKind.EMPTY_SPACE, at, f"{left} bytes that begin with zeros")


def torn(header: BatchHeader, at: int, left: int) -> Stop:
    """The end of a run of which so many bytes are left, fewer than its last batch has."""
    text = f"the batch at offset {header.base_offset} has {header.size_bytes} bytes, and {left} are there"
    return Stop(StopKind.TORN, at, text)


class BatchRun:
    """The whole batches in these bytes, one after the other: iterate for (position, header), then ask `stop`.

    Args:
        buffer: a segment, or the records of a Fetch answer. Nothing is copied.
        at: position of the first batch.
        check_crc: stop at a batch that fails its checksum.
    """

    def __init__(self, buffer: Bytes, at: int = 0, *, check_crc: bool = True) -> None:
        self._view = memoryview(buffer)
        self._at = at
        self._check_crc = check_crc
        self.stop: Stop | None = None
        """Where the run ended and why; None as long as it has not."""

    def __iter__(self) -> Iterator[tuple[int, BatchHeader]]:
        while self.stop is None:
            at = self._at
            found = self._next()
            if isinstance(found, Stop):
                self.stop = found
                return
            self._at += found.size_bytes
            yield at, found

    def _next(self) -> BatchHeader | Stop:
        at, left = self._at, len(self._view) - self._at
        if not left:
            return Stop(StopKind.END, at)
        if left >= _OLD_HEADER.size and not any(self._view[at : at + _OLD_HEADER.size]):
            return empty_space(at, left)
        nonsense = implausible(self._view, at)
        if nonsense is not None:
            return Stop(StopKind.GARBAGE, at, nonsense)
        header = read_header(self._view, at)
        if header is None:
            return Stop(StopKind.TORN, at, f"{left} bytes, too few for the header of a batch")
        if header.size_bytes > left:
            return torn(header, at, left)
        if self._check_crc and not crc_matches(self._view, at, header):
            return Stop(StopKind.CRC, at, f"the batch at offset {header.base_offset} does not match its checksum")
        return header
