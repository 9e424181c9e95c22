"""Record batches, made as a broker writes them; a second opinion on what `kelr.sources.records` reads."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

import cramjam
from kafka.record.util import calc_crc32c

from kelr.model import EpochEnd, PartitionState, ReplicaLog
from kelr.sources.records.batches import Compression, read_header
from kelr.sources.records.records import Record
from kelr.sources.records.stream import RawBatch

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def zigzag(number: int) -> bytes:
    value = (number << 1) ^ (number >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def record_bytes(record: Record, base_offset: int, base_ms: int) -> bytes:
    time = -1 if record.timestamp_ms is None else record.timestamp_ms
    body = b"\0" + zigzag(time - base_ms) + zigzag(record.offset - base_offset)
    body += sized(record.key) + sized(record.value) + zigzag(len(record.headers))
    body += b"".join(sized(name.encode()) + sized(value) for name, value in record.headers)
    return zigzag(len(body)) + body


def squeezed(data: bytes, compression: Compression, *, xerial: bool = False) -> bytes:
    if compression is Compression.GZIP:
        return bytes(cramjam.gzip.compress(data))
    if compression is Compression.SNAPPY:
        raw = bytes(cramjam.snappy.compress_raw(data))
        if not xerial:
            return raw
        half = len(data) // 2
        parts = [bytes(cramjam.snappy.compress_raw(part)) for part in (data[:half], data[half:])]
        frames = b"".join(struct.pack(">I", len(part)) + part for part in parts)
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + frames
    if compression is Compression.LZ4:
        return bytes(cramjam.lz4.compress(data))
    if compression is Compression.ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def batch_bytes(
    records: Sequence[Record],
    *,
    epoch: int = 0,
    compression: Compression = Compression.NONE,
    xerial: bool = False,
    producer: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_ms: int | None = None,
    contents: bytes | None = None,
) -> bytes:
    """A batch of these records; `contents` puts other bytes in their place."""
    base = records[0].offset
    times = [-1 if one.timestamp_ms is None else one.timestamp_ms for one in records]
    base_ms = times[0]
    inside = b"".join(record_bytes(one, base, base_ms) for one in records) if contents is None else contents
    inside = squeezed(inside, compression, xerial=xerial)
    attributes = compression | (8 if log_append_ms is not None else 0) | (16 if transactional else 0)
    attributes |= 32 if control else 0
    rest = struct.pack(
        ">hiqqqhii",
        attributes,
        records[-1].offset - base,
        base_ms,
        max(times) if log_append_ms is None else log_append_ms,
        producer,
        0 if producer >= 0 else -1,
        0 if producer >= 0 else -1,
        len(records),
    )
    body = rest + inside
    return struct.pack(">qiibI", base, 9 + len(body), epoch, 2, calc_crc32c(body)) + body


def raw(data: bytes) -> RawBatch:
    header = read_header(data)
    assert header is not None
    return RawBatch(header, data)


def batch(
    first: int,
    count: int = 1,
    *,
    epoch: int = 0,
    producer: int = -1,
    transactional: bool = False,
    keys: Iterable[bytes | None] | None = None,
    headers: tuple[tuple[str, bytes | None], ...] = (),
    log_append_ms: int | None = None,
) -> RawBatch:
    """A batch of records with values that name their epoch and offset."""
    named = list(keys) if keys is not None else [None] * count
    records = [
        Record(first + number, 1_000 + first + number, key, b"%d/%d" % (epoch, first + number), headers)
        for number, key in enumerate(named)
    ]
    return raw(
        batch_bytes(records, epoch=epoch, producer=producer, transactional=transactional, log_append_ms=log_append_ms)
    )


def marker(offset: int, producer: int, *, commit: bool, epoch: int = 0) -> RawBatch:
    """The batch that ends a transaction."""
    key = struct.pack(">hh", 0, 1 if commit else 0)
    record = Record(offset, 1_000 + offset, key, struct.pack(">hi", 0, 0))
    return raw(batch_bytes([record], epoch=epoch, producer=producer, transactional=True, control=True))


def partition(topic: str = "orders", number: int = 0, **changes: object) -> PartitionState:
    state = PartitionState(topic, number, 2, 5, (1, 2, 3), (2,), topic_id=TOPIC_ID)
    return replace(state, **changes)  # type: ignore[arg-type]


def log(replica: int, *ends: tuple[int, int], start: int = 0, **changes: object) -> ReplicaLog:
    """A log whose epochs end at these offsets."""
    lineage = tuple(EpochEnd(epoch, end) for epoch, end in ends)
    end = ends[-1][1] if ends else start
    found = ReplicaLog(replica, end, ends[-1][0] if ends else None, 5, end, start, lineage, last_stable_offset=end)
    return replace(found, **changes)  # type: ignore[arg-type]
