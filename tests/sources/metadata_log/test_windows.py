"""The log read in windows says what it says record by record, wherever it is cut, at every moment."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import KelrError
from kelr.protocol import metadata_records as metadata
from kelr.replay import packed
from kelr.replay.image import MetadataImage
from kelr.replay.packed import Folding, IdleRun
from kelr.replay.records import MetadataRecord, RecordBatch
from kelr.sources.metadata_log import pieces
from kelr.sources.metadata_log.pieces import Windows
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.metadata_log.replaying import Moment, replay
from kelr.sources.records.batches import Compression, Stop, StopKind
from tests.properties import examples
from tests.replay.test_fast import _says
from tests.sources.metadata_log.random_records import records as any_record
from tests.sources.metadata_log.written import NO_OP, batch, changed, control, sealed

TOPICS = (bytes(16), bytes(15) + b"\1", b"\1\5\2\1" * 4)
"""The last looks like the beginning of records."""
NAMES = ("orders", "payments", "refunds")


class Held:
    """Bytes of a segment."""

    def __init__(self, data: bytes) -> None:
        self._data, self.size_bytes = data, len(data)

    def read(self, at: int, size: int) -> bytes:
        return self._data[at : at + size]


# What a log may have in it.

_topics, _numbers = st.sampled_from(TOPICS), st.integers(0, 2)
_brokers = st.lists(st.integers(1, 9) | st.sampled_from([0, 66818, 2**31 - 1]), max_size=7)
_tags = st.fixed_dictionaries(
    {},
    optional={
        "leader": st.sampled_from([-2, -1, 1, 2, 66818]),
        "isr": st.none() | _brokers,
        "eligible_leader_replicas": st.none() | _brokers,
        "last_known_elr": st.none() | _brokers,
        "leader_recovery_state": st.sampled_from([-1, 0, 1]),
    },
)
_usual = st.fixed_dictionaries(
    {},
    optional={
        "leader": st.sampled_from([-1, 1, 2]),
        "isr": _brokers.map(lambda members: members[:5]),
        "eligible_leader_replicas": _brokers.map(lambda members: members[:3]),
        "last_known_elr": st.just([1]),
        "leader_recovery_state": st.sampled_from([0, 1]),
    },
).filter(bool)
_change = st.builds(lambda number, topic, tags: changed(number, topic, **tags), _numbers, _topics, _usual | _tags)


def made(number: int, topic: bytes) -> bytes:
    fields = {"partition_id": number, "topic_id": UUID(bytes=topic), "replicas": [1, 2, 3], "isr": [1, 2, 3]}
    more = {"removing_replicas": [], "adding_replicas": [], "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    return metadata.encode("PartitionRecord", 2, {**fields, **more, "directories": []})


def _named(place: int) -> bytes:
    return metadata.encode("TopicRecord", 0, {"name": NAMES[place], "topic_id": UUID(bytes=TOPICS[place])})


def _removed(topic: bytes) -> bytes:
    return metadata.encode("RemoveTopicRecord", 0, {"topic_id": UUID(bytes=topic)})


_marks = ("BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord")
_kinds = st.sampled_from(sorted(metadata.CLASSES))
_other = st.one_of(
    st.builds(made, _numbers, _topics),
    st.builds(_named, st.integers(0, 2)),
    st.builds(_removed, _topics),
    st.sampled_from(
        [
            metadata.encode(mark, 0, {"name": None} if "Begin" in mark else {"reason": None} if "Abort" in mark else {})
            for mark in _marks
        ]
    ),
    st.just(metadata.encode("ClearElrRecord", 0, {"topic_name": "orders"})),
    st.builds(
        lambda number, topic: metadata.encode(
            "PartitionChangeRecord", 2, {"partition_id": number, "topic_id": UUID(bytes=topic), "replicas": [4, 5]}
        ),
        _numbers,
        _topics,
    ),
    st.just(NO_OP),
    st.just(b"\x01\x5f\x00"),
    _kinds.flatmap(lambda kind: any_record(kind).map(lambda one: metadata.encode(kind, *one))),
)
_changes = st.lists(_change, min_size=1, max_size=90)
_mixed = st.lists(_changes | st.lists(_other, min_size=1, max_size=3), min_size=1, max_size=4).map(
    lambda lists: [one for some in lists for one in some]
)
_voters = struct.pack(">hi", 0, 1) + b"\x02" + struct.pack(">i", 1) + b"\0\x01\0"
_batch = st.one_of(
    st.tuples(_changes, st.just("plain")),
    st.tuples(_changes, st.just("plain")),
    st.tuples(_mixed, st.sampled_from(["plain", "plain", "epoch", "gap", *Compression])),
    st.tuples(st.just([NO_OP]), st.just("plain")),
    st.tuples(st.just([NO_OP]), st.just("plain")),
    st.tuples(st.just([control(2, _voters)]), st.just("control")),
)
BEGIN = [*(_named(place) for place in range(3)), *(made(number, topic) for topic in TOPICS[1:] for number in range(2))]


def written(found: Sequence[tuple[Sequence[Any], Any]], steps_ms: Sequence[int]) -> bytes:
    """The batches, one behind the other; a clock that may run backwards gives the times."""
    offset, epoch, time_ms = len(BEGIN), 1, 10_000
    data = batch(0, *BEGIN, time_ms=time_ms)
    for number, (values, how) in enumerate(found):
        epoch += how == "epoch"
        offset += 3 * (how == "gap")
        time_ms = max(0, time_ms + steps_ms[number % len(steps_ms)])
        compression = how if isinstance(how, Compression) else Compression.NONE
        data += batch(offset, *values, epoch=epoch, time_ms=time_ms, compression=compression, control=how == "control")
        offset += len(values)
    return data


# Both ways to read it.


def one_by_one(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[list[RecordBatch], Stop]:
    with monkeypatch.context() as patched:
        patched.setattr(BatchReader, "_many", lambda *_: None)
        reader = BatchReader(data)
        batches = list(reader)
    assert reader.stop is not None
    return batches, reader.stop


def in_windows(data: bytes, window: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[RecordBatch], Stop]:
    with monkeypatch.context() as patched:
        patched.setattr(pieces, "WINDOW_BYTES", window)
        windows = Windows(Held(data), lambda _: None)
        batches = list(windows)
    assert windows.stop is not None
    return batches, windows.stop


def _singly(batches: Sequence[RecordBatch]) -> Iterator[tuple[int, int, int, MetadataRecord]]:
    """(offset, epoch, time, record) of each."""
    for one in batches:
        times = one.records
        for place, record in enumerate(one.records):
            time_ms = times.time_of(place) if isinstance(times, IdleRun) else one.timestamp_ms
            yield one.base_offset + place, one.epoch, time_ms, record


def _applied(batches: Sequence[RecordBatch]) -> dict[str, Any]:
    image = MetadataImage()
    for one in batches:
        image.apply(one)
    return _says(image)


def _folded(batches: Sequence[RecordBatch]) -> dict[str, Any]:
    folding = Folding(MetadataImage())
    for one in batches:
        folding.apply(one)
    return _says(folding.finish())


def agree(data: bytes, window: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[RecordBatch], Stop]:
    """Reads it both ways, and says what windows gave; the end may be known only by the last window."""
    expected, stop = one_by_one(data, monkeypatch)
    found, found_stop = in_windows(data, window, monkeypatch)
    assert list(_singly(found)) == list(_singly(expected))
    assert found_stop == stop
    assert _folded(found) == _applied(expected)
    return found, stop


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as made_here:
        yield made_here


_logs = st.builds(written, st.lists(_batch, max_size=14), st.lists(st.integers(-300, 900), min_size=1, max_size=4))


@examples(120)
@given(_logs, st.integers(100, 6000), st.sampled_from([0, 20, packed.MOST_PENDING]))
def test_any_log(data: bytes, window: int, most_pending: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "MOST_PENDING", most_pending)
        agree(data, window, patch)


@examples(120)
@given(_logs, st.integers(100, 6000), st.data())
def test_any_log_that_is_damaged(data: bytes, window: int, chosen: st.DataObject) -> None:
    how = chosen.draw(st.sampled_from(["torn", "zeros", "flipped", "sealed", "rubbish"]))
    at = chosen.draw(st.integers(0, len(data) - 1))
    if how == "torn":
        data = data[:at]
    elif how == "zeros":
        data = data + bytes(at)
    elif how == "rubbish":
        data = data + chosen.draw(st.binary(min_size=1, max_size=300))
    else:
        broken = bytearray(data)
        broken[at] ^= 1 << chosen.draw(st.integers(0, 7))
        data = bytes(broken) if how == "flipped" else _sealed_all(broken)
    with pytest.MonkeyPatch.context() as patch:
        agree(data, window, patch)


def _sealed_all(data: bytearray) -> bytes:
    """With checksums that match, as far as lengths say where batches are."""
    out, at = b"", 0
    while at + 61 <= len(data):
        (length,) = struct.unpack_from(">i", data, at + 8)
        if not 49 <= length <= len(data) - at - 12:
            break
        out += sealed(data[at : at + 12 + length])
        at += 12 + length
    return out + bytes(data[at:])


@examples(60)
@given(_logs, st.data())
def test_any_moment(data: bytes, chosen: st.DataObject) -> None:
    offsets = st.integers(0, 400).map(lambda offset: Moment(offset=offset))
    times = st.integers(8_000, 16_000).map(lambda time_ms: Moment(time_ms=time_ms))
    for at in chosen.draw(st.lists(offsets | times, min_size=1, max_size=6)):
        with pytest.MonkeyPatch.context() as patch:
            assert _state(in_windows(data, 1500, patch)[0], at) == _state(one_by_one(data, patch)[0], at), at


def _state(batches: Sequence[RecordBatch], at: Moment) -> Any:
    try:
        found = replay(batches, at, name="log")
    except KelrError as error:
        return str(error), error.next_step
    return _says(found.image), found.next_offset


# Cut at every byte, and every byte changed.

SHRUNK = changed(7, TOPICS[1], isr=[1, 2])
LED = changed(
    300, TOPICS[2], leader=-1, isr=[1], leader_recovery_state=1, eligible_leader_replicas=[2], last_known_elr=[]
)
ADDED = metadata.encode(
    "PartitionChangeRecord", 2, {"partition_id": 7, "topic_id": UUID(bytes=TOPICS[1]), "adding_replicas": [4]}
)
LEVEL = metadata.encode("FeatureLevelRecord", 0, {"name": "metadata.version", "feature_level": 30})


def _various() -> bytes:
    data = batch(0, *BEGIN) + batch(7, SHRUNK, LED, SHRUNK) + batch(10, NO_OP, time_ms=1500)
    data += batch(11, NO_OP, time_ms=2000) + batch(12, LEVEL, SHRUNK, LED, NO_OP, SHRUNK, ADDED)
    data += batch(18, LED, compression=Compression.ZSTD) + batch(19, control(2, _voters), control=True, epoch=2)
    return data + batch(20, *[SHRUNK, LED] * 40, epoch=2) + batch(100, NO_OP, epoch=2, time_ms=2500)


@pytest.mark.parametrize("window", range(1, 1500, 25))
def test_windows_of_every_size(window: int, patch: pytest.MonkeyPatch) -> None:
    found, stop = agree(_various(), window, patch)
    assert found[-1].next_offset == 101
    assert stop == Stop(StopKind.END, len(_various()))


def test_every_tail(patch: pytest.MonkeyPatch) -> None:
    data = _various()
    for end in range(0, len(data), 3):
        agree(data[:end], 1 << 20 if end % 2 else 333, patch)


@pytest.mark.parametrize("value", [0, 1, 2, 5, 6, 7, 9, 0x14, 0x3F, 0x40, 0x7F, 0x80, 0x81, 0xFF])
def test_every_byte_is_looked_at(value: int, patch: pytest.MonkeyPatch) -> None:
    """Each byte behind the checksum takes the value, in a batch that is right by its checksum; of many records alike,
    those of the first three and the last three."""
    before, after = batch(0, *BEGIN), batch(30, SHRUNK)
    three, many = batch(7, SHRUNK, LED, *[SHRUNK] * 3), batch(7, SHRUNK, LED, *[SHRUNK] * 21)
    last_three = len(many) - (len(three) - len(batch(7, SHRUNK, LED)))
    for good, places in (
        (many, [*range(21, len(three)), *range(last_three, len(many))]),
        (alone := batch(7, NO_OP), range(21, len(alone))),
        (mixed := batch(7, SHRUNK, LEVEL, LED), range(21, len(mixed))),
    ):
        for place in places:
            one = bytearray(good)
            one[place] = value
            agree(before + sealed(one) + after, 1 << 20, patch)


def test_more_records_in_a_batch_than_a_place_is_looked_for(patch: pytest.MonkeyPatch) -> None:
    data = batch(0, *BEGIN) + batch(7, LEVEL, *[SHRUNK, LED] * 4200)
    found, _ = agree(data, 1 << 22, patch)
    assert found[-1].next_offset == 7 + 8401


# What is not there is not read.


class Counted(Held):
    """Says how much of it was read at once."""

    most = 0

    def read(self, at: int, size: int) -> bytes:
        found = super().read(at, size)
        self.most = max(self.most, len(found))
        return found


@pytest.mark.parametrize("how", ["zeros", "claimed"])
def test_neither_empty_space_nor_a_length_that_is_too_large_is_read(how: str, patch: pytest.MonkeyPatch) -> None:
    """A segment with 1 GiB of space set aside, or a flipped bit in a length, is no reason for 1 GiB of memory."""
    whole_, rubbish = _various(), bytearray(batch(101, *[LED] * 2) + b"\x7f" * 20_000)
    struct.pack_into(">i", rubbish, 8, 1 << 24)
    data = whole_ + (bytes(20_000) if how == "zeros" else bytes(rubbish))
    patch.setattr(pieces, "WINDOW_BYTES", 600)
    held = Counted(data)
    windows = Windows(held, lambda _: None)
    found = list(windows)
    assert found[-1].next_offset == 101
    assert held.most < len(whole_)
    assert windows.stop == one_by_one(data, patch)[1]
    assert windows.stop.kind is (StopKind.EMPTY_SPACE if how == "zeros" else StopKind.TORN)
