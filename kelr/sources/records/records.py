"""The records inside a batch: offset, timestamp, key, value, headers; and what a control record says.

Source: Kafka's `DefaultRecord`, `ControlRecordType` and `EndTransactionMarker`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from kelr.protocol.codec import uvarint_bytes
from kelr.sources.records.batches import HEADER_SIZE, BatchHeader, Compression
from kelr.sources.records.crc32c import Bytes
from kelr.sources.records.errors import UnreadableBatchError

# The records of a batch without their compression, never more of them than a limit.
#
# Source: Kafka's `CompressionType` and its streams: gzip members, Snappy in xerial's framing (the Java client) or raw
# (librdkafka), LZ4 frames, Zstandard frames.


DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
"""For one batch: a broker takes 1 MiB of it compressed unless told otherwise, and a bomb is 1000 times its size."""

_FIRST_GUESS = 4
_GROWTH = 4
_SMALLEST_BUFFER = 64 * 1024
_GZIP_WINDOW = 31
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16
_BLOCK_SIZE = struct.Struct(">I")


def decompress(data: Bytes, compression: Compression, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Bytes:
    """The bytes behind these.

    Raises:
        UnreadableBatchError: they are garbled, or more than `limit_bytes` come out of them.
    """
    if compression is Compression.NONE:
        return data
    return _CODECS[compression](data, limit_bytes)


def _gunzip(data: Bytes, limit: int) -> Bytes:
    parts: list[bytes] = []
    size, rest = 0, bytes(data)
    while True:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        try:
            part = stream.decompress(rest, limit - size + 1)
        except zlib.error as error:
            raise UnreadableBatchError(f"its gzip stream is garbled: {error}") from error
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if not stream.eof:
            raise UnreadableBatchError("its gzip stream is cut short")
        parts.append(part)
        if not stream.unused_data:
            return b"".join(parts)
        rest = stream.unused_data


def _unsnappy(data: Bytes, limit: int) -> Bytes:
    view = memoryview(data)
    if view[: len(_XERIAL)] != _XERIAL:
        return _snappy_block(view, limit)
    parts: list[Bytes] = []
    size, at = 0, _XERIAL_HEADER_SIZE
    while at < len(view):
        if len(view) - at < _BLOCK_SIZE.size:
            raise UnreadableBatchError("its Snappy stream is cut short")
        (length,) = _BLOCK_SIZE.unpack_from(view, at)
        at += _BLOCK_SIZE.size
        if length > len(view) - at:
            raise UnreadableBatchError("its Snappy stream is cut short")
        part = _snappy_block(view[at : at + length], limit - size)
        parts.append(part)
        size, at = size + len(part), at + length
    return b"".join(parts)


def _snappy_block(data: memoryview, limit: int) -> Bytes:
    from cramjam import DecompressionError, snappy  # noqa: PLC0415 - not for commands that read no batches

    try:
        # The block begins with its size, so that a bomb is known before anything is made room for.
        if snappy.decompress_raw_len(data) > limit:
            raise _too_large(limit)
        return memoryview(snappy.decompress_raw(data))
    except DecompressionError as error:
        raise UnreadableBatchError(f"its Snappy block is garbled: {error}") from error


def _unlz4(data: Bytes, limit: int) -> Bytes:
    from cramjam import lz4  # noqa: PLC0415

    return _into_growing(lz4.decompress_into, "LZ4", data, limit)


def _unzstd(data: Bytes, limit: int) -> Bytes:
    from cramjam import zstd  # noqa: PLC0415

    return _into_growing(zstd.decompress_into, "Zstandard", data, limit)


def _into_growing(decompress_into: Callable[[Bytes, Bytes], int], name: str, data: Bytes, limit: int) -> Bytes:
    """Decompress into a buffer, and into a larger one where it was too small: cramjam's only bounded way.

    Its error does not tell a small buffer from garbage, but the largest buffer settles it.
    """
    from cramjam import DecompressionError  # noqa: PLC0415

    room = min(max(_SMALLEST_BUFFER, _FIRST_GUESS * len(data)), limit)
    while True:
        buffer = bytearray(room)
        try:
            size = decompress_into(data, buffer)
        except DecompressionError as error:
            if room < limit:
                room = min(_GROWTH * room, limit)
                continue
            text = f"its {name} frame is garbled, or holds more than {limit:,} bytes: {error}"
            raise UnreadableBatchError(text) from error
        return memoryview(buffer)[:size]


def _too_large(limit: int) -> UnreadableBatchError:
    return UnreadableBatchError(f"more than {limit:,} bytes come out of its compression")


_CODECS: dict[Compression, Callable[[Bytes, int], Bytes]] = {
    Compression.GZIP: _gunzip,
    Compression.SNAPPY: _unsnappy,
    Compression.LZ4: _unlz4,
    Compression.ZSTD: _unzstd,
}


_LONGEST_VARINT = 10
_SMALLEST_RECORD = 7
_CONTROL_KEY = struct.Struct(">hh")
_NO_TIMESTAMP = -1

Header = tuple[str, bytes | None]
"""A record header's key and value. Bytes of a key that are not UTF-8 come as surrogates (`surrogateescape`)."""


class ControlType(IntEnum):
    """What a control record says."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True)
class Record:
    """One record as its producer wrote it; of a control batch, one control record."""

    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    """None: a tombstone."""
    headers: tuple[Header, ...] = ()

    @property
    def control_type(self) -> ControlType | None:
        """What this record of a control batch says; None for a kind that kelr does not know."""
        if self.key is None or len(self.key) < _CONTROL_KEY.size:
            return None
        _, number = _CONTROL_KEY.unpack_from(self.key)
        return ControlType(number) if 0 <= number <= ControlType.KRAFT_VOTERS else None


def read_records(
    buffer: Bytes, at: int, header: BatchHeader, *, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> Iterator[Record]:
    """The records of the batch at this position, in order; all of them are checked before the first is given.

    Args:
        limit_bytes: more than that must not come out of the batch's compression.

    Raises:
        UnreadableBatchError: the message format is older than 2, or the batch does not hold what its header says.
    """
    return iter(records_in(contents(buffer, at, header, limit_bytes=limit_bytes), header))


def contents(buffer: Bytes, at: int, header: BatchHeader, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> memoryview:
    """The bytes of a batch's records, without their compression. Raises UnreadableBatchError."""
    if header.too_old:
        raise UnreadableBatchError(f"message format {header.magic} is too old: kelr reads format 2, Kafka 0.11's")
    if header.compression is None:
        raise UnreadableBatchError(f"its compression is number {header.attributes & 7}, which Kafka does not know")
    inside = memoryview(buffer)[at + HEADER_SIZE : at + header.size_bytes]
    return memoryview(decompress(inside, header.compression, limit_bytes=limit_bytes))


def records_in(data: memoryview, header: BatchHeader) -> list[Record]:
    """The records in a batch's `contents`. Raises UnreadableBatchError."""
    if header.count < 0 or header.count * _SMALLEST_RECORD > len(data):
        raise UnreadableBatchError(f"its header counts {header.count} records, which {len(data)} bytes cannot hold")
    records: list[Record] = []
    position, last_delta = 0, -1
    try:
        for _ in range(header.count):
            delta, record, position = next_record(data, position, header)
            if not last_delta < delta <= header.last_offset_delta:
                raise UnreadableBatchError(f"the offset {record.offset} of a record is out of order")
            records.append(record)
            last_delta = delta
    except IndexError:
        raise UnreadableBatchError("its records are cut short") from None
    if position != len(data):
        raise UnreadableBatchError(f"{len(data) - position} bytes follow its last record")
    return records


def next_record(data: memoryview, at: int, header: BatchHeader) -> tuple[int, Record, int]:
    """(offset delta, record, position behind it) of the record at this position of a batch's `contents`.

    Raises:
        UnreadableBatchError: there is none.
        IndexError: the bytes end in it.
    """
    length, start = varint(data, at)
    end = start + length
    if length < 0 or end > len(data):
        raise UnreadableBatchError(f"a record would be {length} bytes long")
    delta, record = _record(data, start, end, header)
    return delta, record, end


def _record(data: memoryview, at: int, end: int, header: BatchHeader) -> tuple[int, Record]:
    """(offset delta, record) out of exactly these bytes."""
    view = data[at:end]
    timestamp_delta, at = varint(view, 1)  # behind one byte of attributes, which Kafka does not use
    offset_delta, at = varint(view, at)
    key, at = _sized(view, at)
    value, at = _sized(view, at)
    count, at = varint(view, at)
    if not 0 <= count <= len(view) - at:
        raise UnreadableBatchError(f"a record would have {count} headers")
    headers: tuple[Header, ...] = ()
    if count:
        headers, at = _headers(view, at, count)
    if at != len(view):
        raise UnreadableBatchError("a record is longer than what it holds")
    offset = header.base_offset + offset_delta
    return offset_delta, Record(offset, _timestamp(header, timestamp_delta), key, value, headers)


def _headers(view: memoryview, at: int, count: int) -> tuple[tuple[Header, ...], int]:
    headers = []
    for _ in range(count):
        name, at = _sized(view, at)
        content, at = _sized(view, at)
        if name is None:
            raise UnreadableBatchError("a record has a header without a name")
        headers.append((name.decode("utf-8", "surrogateescape"), content))
    return tuple(headers), at


def _timestamp(header: BatchHeader, delta: int) -> int | None:
    if header.log_append_time:
        return header.max_timestamp_ms
    base = _NO_TIMESTAMP if header.base_timestamp_ms is None else header.base_timestamp_ms
    return base + delta if base + delta >= 0 else None


def _sized(view: memoryview, at: int) -> tuple[bytes | None, int]:
    """Bytes behind their length; a negative length is None."""
    length, at = varint(view, at)
    if length < 0:
        return None, at
    if at + length > len(view):
        raise UnreadableBatchError(f"a key, value or header would be {length} bytes long")
    return bytes(view[at : at + length]), at + length


def varint(view: memoryview, at: int) -> tuple[int, int]:
    """A zigzag varint and the position behind it. Raises IndexError where the bytes end."""
    byte = view[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value, shift = byte & 0x7F, 7
    for position in range(at + 1, at + _LONGEST_VARINT):
        byte = view[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise UnreadableBatchError("a number in it is longer than 10 bytes")


def varint_bytes(value: int) -> bytes:
    """A number as a zigzag varint."""
    return uvarint_bytes((value << 1) ^ (value >> 63))
