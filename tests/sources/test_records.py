"""Records out of batches: every compression, every field, and nothing that is garbled passes."""

from __future__ import annotations

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords

from kelr.sources.records.batches import Compression, read_header
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import ControlType, Record, decompress, read_records
from tests.rescue.batches import batch_bytes, marker, record_bytes, zigzag

CODECS = [(codec, False) for codec in Compression] + [(Compression.SNAPPY, True)]

header_lists = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)


@st.composite
def records(draw: st.DrawFn) -> list[Record]:
    offset = draw(st.integers(0, 2**62))
    found = []
    for _ in range(draw(st.integers(1, 6))):
        found.append(
            Record(
                offset,
                draw(st.integers(0, 2**45)),
                draw(st.none() | st.binary(max_size=20)),
                draw(st.none() | st.binary(max_size=200)),
                draw(header_lists),
            )
        )
        offset += draw(st.integers(1, 1000))
    return found


def read(data: bytes) -> list[Record]:
    header = read_header(data)
    assert header is not None
    return list(read_records(data, 0, header))


@given(records(), st.sampled_from(CODECS))
def test_what_is_written_is_read(written: list[Record], codec: tuple[Compression, bool]) -> None:
    assert read(batch_bytes(written, compression=codec[0], xerial=codec[1])) == written


@given(records())
def test_kafka_python_reads_the_same(written: list[Record]) -> None:
    data = batch_bytes(written, compression=Compression.GZIP)
    (batch,) = iter(MemoryRecords(data).next_batch, None)
    theirs = [(one.offset, one.timestamp, one.key, one.value, tuple(one.headers)) for one in batch]
    assert [(one.offset, one.timestamp_ms, one.key, one.value, one.headers) for one in read(data)] == theirs


def test_the_time_of_writing_stands_for_every_record_where_the_topic_wants_it() -> None:
    written = [Record(0, 5, None, b"a"), Record(1, 9, None, b"b")]
    assert [one.timestamp_ms for one in read(batch_bytes(written, log_append_ms=77))] == [77, 77]


def test_no_timestamp_is_none() -> None:
    assert [one.timestamp_ms for one in read(batch_bytes([Record(3, None, None, b"a")]))] == [None]


@pytest.mark.parametrize(("commit", "kind"), [(True, ControlType.COMMIT), (False, ControlType.ABORT)])
def test_markers(commit: bool, kind: ControlType) -> None:
    batch = marker(7, 4000, commit=commit)
    assert batch.header.control
    assert [one.control_type for one in read(batch.data)] == [kind]


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec is not Compression.NONE])
def test_a_bomb_is_not_unpacked(codec: Compression) -> None:
    data = batch_bytes([Record(0, 0, None, b"\0" * 1_000_000)], compression=codec)
    header = read_header(data)
    assert header is not None
    assert header.size_bytes < 60_000
    with pytest.raises(UnreadableBatchError, match=r"500,000 bytes"):
        read_records(data, 0, header, limit_bytes=500_000)
    assert len(list(read_records(data, 0, header, limit_bytes=1_000_100))) == 1


def test_a_snappy_block_that_claims_four_gigabytes_costs_nothing() -> None:
    with pytest.raises(UnreadableBatchError, match="come out of its compression"):
        decompress(b"\xff\xff\xff\xff\x0fabc", Compression.SNAPPY)


def test_two_gzip_members_are_one_stream() -> None:
    data = bytes(cramjam.gzip.compress(b"one ")) + bytes(cramjam.gzip.compress(b"two"))
    assert decompress(data, Compression.GZIP) == b"one two"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "cannot hold"),
        (record_bytes(Record(0, 0, None, b"a"), 0, 0) + b"x" * 9, "follow its last record"),
        (record_bytes(Record(9, 0, None, b"a"), 0, 0), "out of order"),
        (zigzag(500) + b"\0" * 20, "500 bytes long"),
        (zigzag(-3) + b"\0" * 20, "-3 bytes long"),
        (b"\xff" * 30, "longer than 10 bytes"),
        (zigzag(7) + b"\0\0\0" + zigzag(60) + b"\0\0\0", "would be 60 bytes long"),
        (zigzag(7) + b"\0\0\0\1\1" + zigzag(40) + b"\0", "40 headers"),
        (zigzag(8) + b"\0\0\0\1\1\2\1\1\0", "header without a name"),
        (zigzag(9) + b"\0\0\0\1\1\0abc", "longer than what it holds"),
    ],
)
def test_contents_that_lie(contents: bytes, message: str) -> None:
    data = batch_bytes([Record(0, 0, None, b"a")], contents=contents)
    with pytest.raises(UnreadableBatchError, match=message):
        read(data)


@given(st.data(), records(), st.sampled_from(CODECS))
def test_garbled_contents_end_in_one_kind_of_error(
    data: st.DataObject, written: list[Record], codec: tuple[Compression, bool]
) -> None:
    batch = bytearray(batch_bytes(written, compression=codec[0], xerial=codec[1]))
    for _ in range(data.draw(st.integers(1, 4))):
        batch[data.draw(st.integers(61, len(batch) - 1))] = data.draw(st.integers(0, 255))
    header = read_header(batch)
    assert header is not None
    try:
        found = list(read_records(batch, 0, header, limit_bytes=1_000_000))
    except UnreadableBatchError:
        return
    assert len(found) == header.count


def test_an_old_format_and_an_unknown_compression_are_named() -> None:
    old = bytes(16) + b"\x01" + bytes(50)
    header = read_header(old)
    assert header is not None
    with pytest.raises(UnreadableBatchError, match="message format 1 is too old"):
        read_records(old, 0, header)
    odd = bytearray(batch_bytes([Record(0, 0, None, b"a")]))
    odd[22] = 6
    header = read_header(odd)
    assert header is not None
    with pytest.raises(UnreadableBatchError, match="number 6"):
        read_records(odd, 0, header)
