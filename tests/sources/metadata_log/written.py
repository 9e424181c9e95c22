"""Batches of the metadata log as a KRaft leader writes them, with every compression."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence

import cramjam

from kelr.lab.simulated.contents import NewRecord, encoded, placed
from kelr.protocol import metadata_records as metadata
from kelr.sources.records.batches import HEADER_SIZE, Compression
from kelr.sources.records.crc32c import crc32c

CONTROL = 0x20
NO_OP = metadata.encode("NoOpRecord", 0, {})
_CODECS = {
    Compression.NONE: bytes,
    Compression.GZIP: gzip.compress,
    Compression.SNAPPY: cramjam.snappy.compress_raw,
    Compression.LZ4: cramjam.lz4.compress,
    Compression.ZSTD: cramjam.zstd.compress,
}


def batch(
    offset: int,
    *values: bytes | tuple[bytes, bytes] | None,
    epoch: int = 1,
    time_ms: int = 1000,
    compression: Compression = Compression.NONE,
    control: bool = False,
) -> bytes:
    """One batch; a pair is a key and a value."""
    made = [
        NewRecord(time_ms, one[0], one[1]) if isinstance(one, tuple) else NewRecord(time_ms, None, one)
        for one in values
    ]
    data = bytearray(placed(encoded(made), offset, epoch))
    data[HEADER_SIZE:] = bytes(_CODECS[compression](bytes(data[HEADER_SIZE:])))
    struct.pack_into(">h", data, 21, compression | (CONTROL if control else 0))
    return sealed(data)


def sealed(data: bytearray) -> bytes:
    """The batch with the length and the checksum that it has now."""
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))
    return bytes(data)


def control(number: int, value: bytes) -> tuple[bytes, bytes]:
    return struct.pack(">hh", 0, number), value


def changed(partition: int, topic: bytes, **tags: int | Sequence[int]) -> bytes:
    """A PartitionChangeRecord of version 2."""
    from uuid import UUID  # noqa: PLC0415

    fields = {"partition_id": partition, "topic_id": UUID(bytes=topic), **tags}
    return metadata.encode("PartitionChangeRecord", 2, fields)
