"""Headers and checksums of record batches, and where a run of them stops."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.util import calc_crc32c

from kelr.sources.records.batches import (
    BatchHeader,
    BatchRun,
    Compression,
    StopKind,
    TimestampType,
    crc_matches,
    read_header,
)
from kelr.sources.records.crc32c import crc32c


def batch(base_offset: int = 0, values: tuple[bytes, ...] = (b"a", b"b"), *, epoch: int = 3) -> bytes:
    """A batch as kafka-python builds it, with a leader's offset and epoch."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=4000,
        producer_epoch=1,
        base_sequence=7,
        batch_size=1 << 30,
    )
    for number, value in enumerate(values):
        builder.append(number, timestamp=1_000 + number, key=b"k", value=value, headers=[])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base_offset)
    struct.pack_into(">i", data, 12, epoch)
    return bytes(data)


@pytest.mark.parametrize(("data", "checksum"), [(b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"", 0)])
def test_crc32c_of_the_examples_in_rfc_3720(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 131_072, 200_001])
@pytest.mark.parametrize("pattern", [b"\0", b"kelr", bytes(range(256)) + b"\x07\xff"])
def test_crc32c_of_long_pieces(size: int, pattern: bytes) -> None:
    data = (pattern * (size // len(pattern) + 1))[:size]
    assert crc32c(data) == calc_crc32c(data)


@given(st.binary(max_size=300))
def test_crc32c_is_kafka_pythons(data: bytes) -> None:
    assert crc32c(memoryview(data)) == calc_crc32c(data)


def test_the_header_holds_what_was_written() -> None:
    header = read_header(b"xx" + batch(base_offset=40), 2)
    assert header is not None
    assert (header.base_offset, header.last_offset, header.next_offset, header.count) == (40, 41, 42, 2)
    assert (header.partition_leader_epoch, header.magic) == (3, 2)
    assert (header.base_timestamp_ms, header.max_timestamp_ms) == (1_000, 1_001)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4_000, 1, 7)
    assert header.transactional
    assert not header.control
    assert header.compression is Compression.NONE
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.size_bytes == len(batch())


def test_minus_one_is_none() -> None:
    data = bytearray(batch())
    struct.pack_into(">i", data, 12, -1)
    struct.pack_into(">qhi", data, 43, -1, -1, -1)
    header = read_header(data)
    assert header is not None
    assert header.partition_leader_epoch is None
    assert header.producer_id is header.producer_epoch is header.base_sequence is None


def test_a_compression_that_nobody_has_defined_is_none() -> None:
    assert BatchHeader(0, 60, 0, 2, 0, attributes=6).compression is None
    assert BatchHeader(0, 60, 0, 2, 0, attributes=4).compression is Compression.ZSTD


def test_one_changed_byte_fails_the_checksum_and_offset_and_epoch_are_not_part_of_it() -> None:
    data = bytearray(batch())
    header = read_header(data)
    assert header is not None
    assert crc_matches(data, 0, header)
    struct.pack_into(">q", data, 0, 99)
    struct.pack_into(">i", data, 12, 99)
    assert crc_matches(data, 0, header)
    data[-1] ^= 1
    assert not crc_matches(data, 0, header)
    assert not crc_matches(data[:-1], 0, header)


def run(data: bytes, *, check_crc: bool = True) -> tuple[list[int], StopKind, int]:
    batches = BatchRun(data, check_crc=check_crc)
    offsets = [header.base_offset for _, header in batches]
    assert batches.stop is not None
    return offsets, batches.stop.kind, batches.stop.at


def test_where_a_run_stops() -> None:
    one, two = batch(0), batch(2)
    flipped = bytearray(two)
    flipped[-1] ^= 1
    assert run(b"") == ([], StopKind.END, 0)
    assert run(one + two) == ([0, 2], StopKind.END, len(one + two))
    assert run(one + two[:-1]) == ([0], StopKind.TORN, len(one))
    assert run(one + two[:20]) == ([0], StopKind.TORN, len(one))
    assert run(one + two[:5]) == ([0], StopKind.TORN, len(one))
    assert run(one + bytes(500)) == ([0], StopKind.EMPTY_SPACE, len(one))
    assert run(one + bytes(5)) == ([0], StopKind.TORN, len(one))
    assert run(one + bytes(flipped) + two) == ([0], StopKind.CRC, len(one))
    assert run(one + bytes(flipped), check_crc=False) == ([0, 2], StopKind.END, len(one + two))
    assert run(one + b"\x07" * 100) == ([0], StopKind.GARBAGE, len(one))
    negative = bytearray(two)
    struct.pack_into(">i", negative, 8, -5)
    assert run(one + bytes(negative)) == ([0], StopKind.GARBAGE, len(one))


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_told_and_their_checksums_hold(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    builder.append(0, timestamp=5, key=b"k", value=b"v")
    data = bytes(builder.build())
    header = read_header(data)
    assert header is not None
    assert header.too_old
    assert header.partition_leader_epoch is None
    assert run(data) == ([0], StopKind.END, len(data))
    assert run(data[:-1] + b"\xff") == ([], StopKind.CRC, 0)


@given(st.binary(max_size=200))
def test_any_bytes_end_in_a_stop(data: bytes) -> None:
    batches = BatchRun(data)
    end = 0
    for at, header in batches:
        assert at == end
        end = at + header.size_bytes
    assert batches.stop is not None
    assert batches.stop.at == end <= len(data)
    assert (batches.stop.kind is StopKind.END) == (end == len(data))


@given(st.data())
def test_a_cut_never_invents_a_batch(data: st.DataObject) -> None:
    whole = [batch(0), batch(2), batch(4)]
    cut = data.draw(st.integers(0, sum(map(len, whole))))
    offsets, _, at = run(b"".join(whole)[:cut])
    kept = [size for size in (0, len(whole[0]), 2 * len(whole[0]), 3 * len(whole[0])) if size <= cut]
    assert at == kept[-1]
    assert offsets == [0, 2, 4][: len(kept) - 1]
