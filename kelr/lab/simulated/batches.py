"""Record batches of magic 2 made and changed: for records that nobody produced, and for batches whose tail was cut.

Source: Kafka's `DefaultRecordBatch` and `DefaultRecord`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from kelr.sources.records.batches import HEADER_SIZE, MAGIC, BatchHeader, read_header
from kelr.sources.records.crc32c import crc32c
from kelr.sources.records.records import contents, read_records

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
        length, end = _varint(inside, end)
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
            _zigzag(record.timestamp_ms - first_ms),
            _zigzag(delta),
            _sized(record.key),
            _sized(record.value),
            b"\x00",
        )
    )
    return _zigzag(len(body)) + body


def _sized(content: bytes | None) -> bytes:
    return _zigzag(-1) if content is None else _zigzag(len(content)) + content


def _zigzag(value: int) -> bytes:
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
