"""What records hold: batches come back as they were sent, at their place in each log, however logs were cut."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.lab.simulated.contents import (
    MADE_UP_BATCH,
    Batch,
    Contents,
    NewRecord,
    cut,
    encoded,
    made_up,
    placed,
    stamped,
)
from kelr.simulation.logs import Acks, Record, SimulatedLog, appended, trimmed, truncated
from kelr.sources.records.batches import HEADER_SIZE, BatchRun, Compression, StopKind, TimestampType, read_header
from kelr.sources.records.crc32c import crc32c
from kelr.sources.records.records import Record as Read
from kelr.sources.records.records import read_records
from tests.lab.simulated.data import batch


def records_of(data: bytes) -> list[Read]:
    """All records in these bytes, which must be whole batches with the right checksums."""
    run = BatchRun(data)
    found = [record for position, header in run for record in read_records(data, position, header)]
    assert run.stop is not None
    assert run.stop.kind is StopKind.END, run.stop
    return found


def compressed(data: bytes, compression: Compression) -> bytes:
    """The same batch as a producer with this compression sends it, with a producer id."""
    codecs = {
        Compression.NONE: bytes,
        Compression.GZIP: cramjam.gzip.compress,
        Compression.SNAPPY: cramjam.snappy.compress_raw,
        Compression.LZ4: cramjam.lz4.compress,
        Compression.ZSTD: cramjam.zstd.compress,
    }
    body = bytes(codecs[compression](data[HEADER_SIZE:]))
    head = bytearray(data[:HEADER_SIZE])
    struct.pack_into(">i", head, 8, HEADER_SIZE - 12 + len(body))
    struct.pack_into(">h", head, 21, compression)
    struct.pack_into(">qhi", head, 43, 77, 3, 19)
    struct.pack_into(">I", head, 17, crc32c(bytes(head[21:]) + body))
    return bytes(head) + body


@dataclass
class Cluster:
    """Logs and contents side by side, with what each record must hold."""

    contents: Contents
    log: SimulatedLog = field(default_factory=SimulatedLog)
    next_id: int = 0

    def produced(self, count: int, epoch: int, *, sent: bool, compression: Compression = Compression.NONE) -> None:
        records = tuple(Record(epoch, number, Acks.ALL) for number in range(self.next_id, self.next_id + count))
        if sent:
            self.contents.put(self.next_id, count, compressed(batch(self.next_id, count), compression))
        self.log = appended(self.log, records)
        self.next_id += count


def key_of(number: int, *, sent: bool) -> bytes | None:
    return f"k{number}".encode() if sent else made_up(number).key


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("produce", "made up", "truncate", "trim", "lead")),
        st.integers(1, 12),
        st.sampled_from(Compression),
    ),
    min_size=1,
    max_size=25,
)


@given(steps=STEPS, offset=st.integers(0, 40), end=st.integers(0, 120))
def test_every_record_is_at_its_offset_with_its_epoch_and_contents(
    steps: Sequence[tuple[str, int, Compression]], offset: int, end: int
) -> None:
    cluster, epoch, sent = Cluster(Contents()), 0, set[int]()
    for step, number, compression in steps:
        match step:
            case "produce":
                sent |= set(range(cluster.next_id, cluster.next_id + number))
                cluster.produced(number, epoch, sent=True, compression=compression)
            case "made up":
                cluster.produced(number, epoch, sent=False)
            case "truncate":
                cluster.log = truncated(cluster.log, max(0, cluster.log.end - number))
            case "trim":
                cluster.log = trimmed(cluster.log, min(cluster.log.end, cluster.log.start + number))
            case _:
                epoch += 1
    log = cluster.log
    found = list(cluster.contents.batches(log, offset, end))
    stop = min(end, log.end)
    if not log.start <= offset < stop:
        assert found == []
        return
    assert found[0].base_offset <= offset < found[0].next_offset
    assert found[-1].next_offset == stop
    read = {record.offset: record for one in found for record in records_of(one.data)}
    for one in found:
        header = read_header(one.data)
        assert header is not None
        assert (header.base_offset, header.next_offset) == (one.base_offset, one.next_offset)
        index = max(one.base_offset, log.start) - log.start
        assert header.partition_leader_epoch == log.records[index].epoch
    for at in range(offset, stop):
        record = log.records[at - log.start]
        assert read[at].key == key_of(record.id, sent=record.id in sent), at


@given(count=st.integers(2, 30), kept=st.integers(1, 29), compression=st.sampled_from(Compression))
def test_a_batch_whose_tail_is_cut_keeps_the_rest_and_who_sent_it(
    count: int, kept: int, compression: Compression
) -> None:
    kept = min(kept, count - 1)
    whole = compressed(batch(5, count), compression)
    short = cut(whole, kept)
    header, before = read_header(short), read_header(whole)
    assert header is not None
    assert before is not None
    assert (header.count, header.last_offset_delta, header.compression) == (kept, kept - 1, Compression.NONE)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 19)
    assert records_of(short) == records_of(whole)[:kept]
    assert header.max_timestamp_ms == records_of(whole)[kept - 1].timestamp_ms


def test_a_whole_batch_goes_out_as_it_came_but_for_offset_and_epoch() -> None:
    cluster = Cluster(Contents())
    cluster.produced(3, 0, sent=False)
    data = compressed(batch(3, 4), Compression.ZSTD)
    cluster.produced(4, 6, sent=True, compression=Compression.ZSTD)
    (found,) = cluster.contents.batches(cluster.log, 5)
    assert found.data[16:] == data[16:]
    assert struct.unpack_from(">qii", found.data) == (3, len(data) - 12, 6)
    assert found == Batch(3, 7, placed(data, 3, 6))


def test_made_up_batches_are_the_same_each_time_and_not_too_long() -> None:
    one, other = Cluster(Contents()), Cluster(Contents())
    for cluster in (one, other):
        cluster.produced(3 * MADE_UP_BATCH + 7, 2, sent=False)
    first = list(one.contents.batches(one.log, 0))
    assert first == list(other.contents.batches(other.log, 0))
    assert [found.next_offset - found.base_offset for found in first] == [*3 * (MADE_UP_BATCH,), 7]
    assert records_of(first[0].data)[42] == Read(42, made_up(42).timestamp_ms, b"key-42", b"record 42")


def test_what_no_log_holds_any_more_is_dropped() -> None:
    cluster = Cluster(Contents())
    for _ in range(10):
        cluster.produced(5, 0, sent=True)
    left = trimmed(truncated(cluster.log, 31), 17)
    cluster.contents.keep([left])
    kept = list(cluster.contents.batches(left, 17))
    assert [one.base_offset for one in kept] == [15, 20, 25, 30]
    assert cluster.contents.size_bytes == sum(
        len(compressed(batch(first, 5), Compression.NONE)) for first in (15, 20, 25, 30)
    )
    cluster.contents.keep([])
    assert cluster.contents.size_bytes == 0


def test_room_is_limited_and_made_by_dropping() -> None:
    cluster = Cluster(Contents(most_bytes=1000))
    while cluster.contents.room_for(300, [cluster.log]):
        cluster.produced(5, 0, sent=True)
    assert 700 < cluster.contents.size_bytes <= 1000
    assert cluster.contents.room_for(300, [truncated(cluster.log, 5)])


def test_records_of_another_epoch_are_another_batch() -> None:
    """Ids one after the other, as a snapshot's logs may have them, written by two leaders."""
    log = SimulatedLog(tuple(Record(0 if number < 4 else 3, number, Acks.ALL) for number in range(9)))
    found = [(one.base_offset, one.next_offset) for one in Contents().batches(log, 0)]
    assert found == [(0, 4), (4, 9)]


def test_logs_that_part_have_contents_of_their_own() -> None:
    cluster = Cluster(Contents())
    cluster.produced(5, 0, sent=True)
    common = cluster.log
    cluster.produced(2, 1, sent=True)
    one = cluster.log
    cluster.log = common
    cluster.produced(2, 2, sent=True)
    keys = [
        [record.key for at in cluster.contents.batches(log, 5) for record in records_of(at.data)]
        for log in (one, cluster.log)
    ]
    assert keys == [[b"k5", b"k6"], [b"k7", b"k8"]]


def test_a_leader_stamps_a_batch_with_its_time() -> None:
    data = stamped(compressed(batch(0, 3), Compression.GZIP), 1_800_000_000_123)
    header = read_header(data)
    assert header is not None
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [record.timestamp_ms for record in records_of(data)] == [1_800_000_000_123] * 3


@pytest.mark.parametrize("value", [b"", None, b"x" * 300])
def test_keys_and_values_of_every_kind_are_encoded(value: bytes | None) -> None:
    made = [NewRecord(5, value, b"v"), NewRecord(3, b"k", value)]
    found = records_of(encoded(made))
    assert [(one.timestamp_ms, one.key, one.value) for one in found] == [(5, value, b"v"), (3, b"k", value)]
