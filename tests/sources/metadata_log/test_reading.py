"""Batches of the metadata log from bytes, and where reading ends."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.protocol import metadata_records as metadata
from kelr.replay import records as rec
from kelr.replay.packed import IdleRun, PackedChanges
from kelr.sources.metadata_log import reading
from kelr.sources.metadata_log.decoding import decode
from kelr.sources.metadata_log.reading import BatchReader, read_batches
from kelr.sources.records.batches import Compression, Stop, StopKind
from tests.properties import examples
from tests.sources.metadata_log.random_records import records
from tests.sources.metadata_log.written import NO_OP, batch, changed, control, sealed

TOPIC, TOPIC_TEXT = bytes(range(16)), "AAECAwQFBgcICQoLDA0ODw"
SHRUNK = changed(7, TOPIC, isr=[1, 2])
LED = changed(8, TOPIC, isr=[1], leader=-1, eligible_leader_replicas=[2], last_known_elr=[])
LEVEL = metadata.encode("FeatureLevelRecord", 0, {"name": "metadata.version", "feature_level": 30})


def read(data: bytes, **how: object) -> tuple[list[rec.RecordBatch], Stop]:
    reader = BatchReader(data, **how)  # type: ignore[arg-type]
    found = list(reader)
    assert reader.stop is not None
    return found, reader.stop


@pytest.mark.parametrize("compression", Compression)
def test_records_of_every_compression(compression: Compression) -> None:
    data = batch(5, LEVEL, SHRUNK, LED, epoch=3, time_ms=77, compression=compression)
    assert read(data) == (
        [
            rec.RecordBatch(
                5,
                3,
                77,
                (
                    rec.FeatureLevel("metadata.version", 30),
                    rec.PartitionChanged(TOPIC_TEXT, 7, isr=(1, 2)),
                    rec.PartitionChanged(TOPIC_TEXT, 8, leader=-1, isr=(1,), elr=(2,), last_known_elr=()),
                ),
            )
        ],
        Stop(StopKind.END, len(data)),
    )


def test_control_records() -> None:
    voters = b"\x03" + struct.pack(">i", 1) + b"\0" + struct.pack(">i", 2) + b"\0"
    with_directories = b"\x02" + struct.pack(">i", 3) + TOPIC + b"\0"
    data = batch(
        0,
        control(2, struct.pack(">hi", 0, 1) + voters + b"\x01\0"),
        control(2, struct.pack(">hi", 1, 3) + with_directories * 2 + b"\0"),
        control(2, struct.pack(">hi", 2, 9) + b"what a newer version has"),
        control(5, struct.pack(">hh", 0, 1) + b"\0"),
        control(5, struct.pack(">hh", 1, 9)),
        control(6, b"\0\0\x01\0"),
        control(77, b""),
        control=True,
    )
    ((found,), stop) = read(data)
    assert stop.kind is StopKind.END
    assert found.records == (
        rec.LeaderChanged(1, (1, 2)),
        rec.LeaderChanged(3, (3,)),
        rec.LeaderChanged(9, ()),
        rec.KRaftVersion(1),
        rec.Irrelevant("KRaftVersionRecord of version 1"),
        rec.Voters(()),
        rec.Irrelevant("control record of type 77"),
    )


def test_a_checkpoint() -> None:
    data = (
        batch(0, control(3, struct.pack(">hq", 0, 1234) + b"\0"), control=True)
        + batch(1, SHRUNK)
        + batch(2, control(4, b"\0\0\0"), control=True)
    )
    found, stop = read(data, checkpoint_end=500)
    assert [list(one.records) for one in found] == [
        [rec.SnapshotBegins(1234)],
        [rec.PartitionChanged(TOPIC_TEXT, 7, isr=(1, 2))],
        [rec.SnapshotEnds()],
    ]
    assert {(one.of_checkpoint, one.checkpoint_end) for one in found} == {(True, 500)}
    assert stop.kind is StopKind.END


# Where reading ends.

WHOLE = batch(0, LEVEL) + batch(1, SHRUNK, SHRUNK)
LAST = batch(3, SHRUNK, LED)


@pytest.mark.parametrize("end", range(1, len(LAST)))
def test_a_torn_tail(end: int) -> None:
    found, stop = read(WHOLE + LAST[:end], base=1000)
    assert [one.next_offset for one in found] == [1, 3]
    assert (stop.kind, stop.at) == (StopKind.TORN, 1000 + len(WHOLE))


def test_empty_space() -> None:
    found, stop = read(WHOLE + bytes(5000))
    assert [one.next_offset for one in found] == [1, 3]
    assert (stop.kind, stop.at) == (StopKind.EMPTY_SPACE, len(WHOLE))


@pytest.mark.parametrize("at", range(17, len(LAST)))
def test_a_changed_byte_ends_the_run(at: int) -> None:
    """All but what the checksum does not cover: the offset, the length and the epoch."""
    broken = bytearray(LAST)
    broken[at] ^= 0x10
    found, stop = read(WHOLE + bytes(broken) + WHOLE)
    assert [one.next_offset for one in found] == [1, 3]
    assert stop == Stop(StopKind.CRC, len(WHOLE), "the batch at offset 3 does not match its checksum")


def with_header(data: bytes, place: int, form: str, value: int) -> bytes:
    changed_batch = bytearray(data)
    struct.pack_into(form, changed_batch, place, value)
    return sealed(changed_batch)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (batch(3, b"\x02\x05\x02"), "the record at offset 3: a record is in a frame of version 2"),
        (batch(3, SHRUNK, None), "the record at offset 4 has no value"),
        (batch(3, SHRUNK, SHRUNK[:-1]), "the record at offset 4: PartitionChangeRecord of version 2: "),
        (with_header(LAST, 12, ">i", -1), "it carries no leader epoch"),
        (with_header(LAST, 35, ">q", -1), "it carries no time"),
        (with_header(LAST, 23, ">i", 5), "it counts 2 records and spans 6 offsets"),
        (with_header(LAST, 57, ">i", 1 << 30), "it counts 1073741824 records"),
        (with_header(LAST, 21, ">h", 7), "its compression is number 7"),
        (batch(3, control(2, b"\0\0"), control=True), "6 bytes are asked for"),
    ],
    ids=["frame", "no value", "cut", "no epoch", "no time", "compacted", "count", "compression", "control"],
)
def test_a_batch_that_cannot_be_read_ends_the_run_and_is_named(data: bytes, why: str) -> None:
    found, stop = read(WHOLE + data + WHOLE, base=10)
    assert [one.next_offset for one in found] == [1, 3]
    assert (stop.kind, stop.at) == (StopKind.UNREADABLE, 10 + len(WHOLE))
    assert stop.text.startswith("the batch at offset 3 cannot be read: ")
    assert why in stop.text


def test_what_is_not_understood_is_counted_and_skipped() -> None:
    reader = read_batches(batch(0, b"\x01\x05\x09x", SHRUNK, b"\x01\x63\x00", b"\x01\x05\x09y"))
    (found,) = reader
    assert found.records[0] == rec.NotUnderstood(5, 9, "PartitionChangeRecord")
    assert found.records[1] == rec.PartitionChanged(TOPIC_TEXT, 7, isr=(1, 2))
    assert reader.counts.not_understood == {(5, 9): 2, (99, 0): 1}
    assert (reader.counts.batches, reader.counts.records) == (1, 4)


@given(st.binary(max_size=300), st.integers(0, 200))
def test_garbage_ends_the_run_and_raises_nothing(garbage: bytes, cut: int) -> None:
    for data in (garbage, WHOLE + garbage, LAST[:cut] + garbage):
        _, stop = read(data, merge_idle=True)
        assert stop.at <= len(data)


@given(st.binary(max_size=120), st.integers(0, 3))
def test_a_batch_of_garbage_with_a_right_checksum_raises_nothing(garbage: bytes, count: int) -> None:
    data = bytearray(batch(0, *[SHRUNK] * max(count, 1))[:61] + garbage)
    found, stop = read(sealed(data))
    assert stop.kind in {StopKind.END, StopKind.UNREADABLE}
    assert len(found) == (stop.kind is StopKind.END)


# Many records at once.


def one_by_one(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[rec.RecordBatch], Stop]:
    with monkeypatch.context() as patched:
        patched.setattr(BatchReader, "_many", lambda *_: None)
        return read(data)


_broker = st.integers(0, 100) | st.integers(-(1 << 31), (1 << 31) - 1)
_brokers = st.lists(_broker, max_size=5)
_plain = st.fixed_dictionaries(
    {},
    optional={
        "isr": _brokers,
        "leader": _broker,
        "eligible_leader_replicas": _brokers,
        "last_known_elr": _brokers,
        "leader_recovery_state": st.sampled_from([0, 1]),
    },
)


@examples(200)
@given(st.lists(st.tuples(st.integers(-1, 300), st.binary(min_size=16, max_size=16), _plain), min_size=1, max_size=90))
def test_packed_changes_are_what_they_are_one_by_one(made: list[tuple[int, bytes, dict[str, object]]]) -> None:
    values = [changed(partition, topic, **tags) for partition, topic, tags in made]  # type: ignore[arg-type]
    data = batch(9, *values, epoch=4, time_ms=5)
    ((found,), stop) = read(data)
    assert isinstance(found.records, PackedChanges) is all(tags for _, _, tags in made)
    assert list(found.records) == [decode(value) for value in values]
    assert (found.base_offset, found.epoch, found.timestamp_ms) == (9, 4, 5)
    assert stop == Stop(StopKind.END, len(data))
    assert found.records == tuple(decode(value) for value in values)
    half = len(values) // 2
    assert list(found.records[half:]) == [decode(value) for value in values[half:]]


@examples(100)
@given(st.integers(1, 150), st.sampled_from([(1,), (1, 2), (1, 2, 3), ()]), st.integers(0, 1), st.data())
def test_changes_of_one_size_are_what_they_are_one_by_one(
    count: int, isr: tuple[int, ...], lead: int, data: st.DataObject
) -> None:
    tags = {"leader": 3} if lead else {}
    values = [changed(number, TOPIC, isr=[one + number for one in isr], **tags) for number in range(count)]
    whole = batch(0, *values)
    ((found,), _) = read(whole)
    assert isinstance(found.records, PackedChanges)
    assert list(found.records) == [decode(value) for value in values]
    broken = bytearray(whole)
    broken[data.draw(st.integers(61, len(broken) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.MonkeyPatch.context() as monkeypatch:
        slowly = one_by_one(sealed(broken), monkeypatch)
    assert read(sealed(broken)) == slowly


def test_changes_that_tell_of_replicas_are_not_packed() -> None:
    values = [changed(number, TOPIC, replicas=[1, 2]) for number in range(5)]
    ((found,), _) = read(batch(0, *values))
    assert found.records == tuple(decode(value) for value in values)
    assert type(found.records) is tuple


def test_a_large_batch_of_changes_is_packed() -> None:
    values = [changed(number, TOPIC, isr=[number]) for number in range(1024)]
    ((found,), _) = read(batch(0, *values))
    assert isinstance(found.records, PackedChanges)
    assert list(found.records) == [decode(value) for value in values]
    ((larger,), _) = read(batch(0, *values, SHRUNK))
    assert [*larger.records] == [*(decode(value) for value in values), decode(SHRUNK)]


@examples(300)
@given(st.data())
def test_bytes_that_were_changed_are_read_alike_at_once_and_one_by_one(data: st.DataObject) -> None:
    """Also with a right checksum: what an expression takes for a record is one, or it is left alone."""
    broken = bytearray(batch(0, SHRUNK, LED, SHRUNK, changed(1, TOPIC, leader_recovery_state=1)))
    for _ in range(data.draw(st.integers(1, 2))):
        broken[data.draw(st.integers(21, len(broken) - 1))] = data.draw(st.integers(0, 255))
    bytes_now = sealed(broken)
    with pytest.MonkeyPatch.context() as monkeypatch:
        slowly = one_by_one(bytes_now, monkeypatch)
    assert read(bytes_now) == slowly


@given(st.data())
def test_random_records_are_read_alike_at_once_and_one_by_one(data: st.DataObject) -> None:
    values = []
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["PartitionChangeRecord", "NoOpRecord", "PartitionRecord", "TopicRecord"]))
        version, fields = data.draw(records(kind))
        values.append(metadata.encode(kind, version, fields))
    made = batch(0, *values)
    with pytest.MonkeyPatch.context() as monkeypatch:
        slowly = one_by_one(made, monkeypatch)
    assert read(made) == slowly


def idle(first: int, count: int, *, epoch: int = 1) -> bytes:
    return b"".join(batch(first + n, NO_OP, epoch=epoch, time_ms=1000 + 500 * (first + n)) for n in range(count))


def test_idle_time_is_one_batch_if_asked_for() -> None:
    data = batch(0, LEVEL) + idle(1, 10) + LAST[:0] + batch(11, SHRUNK) + idle(12, 2)
    merged, stop = read(data, merge_idle=True)
    assert [(one.base_offset, one.next_offset, one.timestamp_ms) for one in merged] == [
        (0, 1, 1000),
        (1, 11, 6000),
        (11, 12, 1000),
        (12, 14, 7500),
    ]
    assert stop == Stop(StopKind.END, len(data))
    run = merged[1].records
    assert isinstance(run, IdleRun)
    assert list(run) == [rec.Irrelevant("NoOpRecord")] * 10
    assert run.times_ms == [1500 + 500 * n for n in range(10)]
    assert run[3:5] == IdleRun([3000, 3500])
    assert run[3:5].times_ms == [3000, 3500]
    assert [len(one.records) for one in read(data)[0]] == [1] * 14


def test_idle_time_ends_where_something_is_odd() -> None:
    epochs = idle(0, 3) + idle(3, 2, epoch=2)
    assert [(one.epoch, len(one.records)) for one in read(epochs, merge_idle=True)[0]] == [(1, 3), (2, 2)]
    gap = idle(0, 3) + idle(7, 2)
    assert [(one.base_offset, len(one.records)) for one in read(gap, merge_idle=True)[0]] == [(0, 3), (7, 2)]
    broken = bytearray(idle(0, 5))
    broken[72 * 3 + 50] ^= 1
    found, stop = read(bytes(broken), merge_idle=True)
    assert [len(one.records) for one in found] == [3]
    assert (stop.kind, stop.at) == (StopKind.CRC, 72 * 3)
    torn, stop = read(idle(0, 5)[:-1], merge_idle=True)
    assert [len(one.records) for one in torn] == [4]
    assert (stop.kind, stop.at) == (StopKind.TORN, 72 * 4)


def test_all_kinds_of_buffers(tmp_path: Path) -> None:
    data = WHOLE + idle(3, 3)
    expected = read(data, merge_idle=True)
    path = tmp_path / "log"
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        reader = BatchReader(memoryview(mapped), merge_idle=True)
        assert (list(reader), reader.stop) == expected
        del reader
    assert read(bytearray(data), merge_idle=True) == expected  # type: ignore[arg-type]


def test_what_is_remembered_of_records_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_MOST_KEPT", 10)
    values = [changed(1, TOPIC, leader=number) for number in range(500)]
    ((found,), _) = read(batch(0, *values))
    assert list(found.records) == [decode(value) for value in values]
    assert len(reading._told) <= 10
