"""A first look into an input: what it is, which offsets of a metadata log it holds, and how far it can be read.

Only the headers and checksums of batches are looked at, so that a look costs little; what it finds is small and is kept
in the manifest, so that no file is looked at twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.replay.records import LeaderChanged, NotUnderstood, RecordBatch
from kelr.sources.metadata_log.pieces import WINDOW_BYTES, Checkpoint, Holder, is_whole
from kelr.sources.metadata_log.reading import CRC_FROM, IDLE_SIZE, BatchReader, idle_batches
from kelr.sources.records.batches import BatchHeader, BatchRun, StopKind

SEGMENT, CHECKPOINT, SNAPSHOT, COLLECTION = "segment", "checkpoint", "snapshot", "collection"
BUNDLE, UNKNOWN = "bundle", "unknown"
"""Kinds of inputs, as the manifest names them."""

_MOST_MARKS = 256
_UNFINISHED = frozenset({StopKind.TORN, StopKind.EMPTY_SPACE})
_TELL_NOTHING = (NotUnderstood, LeaderChanged)
"""Records that are no sign of a metadata log: what is not understood, and what every Raft log has."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A batch of a segment by which copies are compared, and from which reading can begin."""

    offset: int
    at: int
    """Position in the file."""
    crc: int


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in a file."""

    kind: str
    first_offset: int | None = None
    """Of a segment that holds anything."""
    end_offset: int | None = None
    """The offset after the last one that can be read; of a checkpoint, the one after the last that it contains."""
    readable_bytes: int = 0
    records: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    """(epoch, the first offset of it) in order."""
    marks: tuple[Mark, ...] = ()
    """At most `_MOST_MARKS`, at offsets that copies share: multiples of a power of two; and the first batch."""
    begun_ms: int | None = None
    ended_ms: int | None = None
    taken_at_ms: int | None = None
    """Of a snapshot or a collection."""
    cluster: str | None = None
    """Which cluster the file itself says that it is of."""
    digest: str | None = None
    """Of all of a snapshot or a collection."""
    odd: str | None = None
    """What is odd: it is read in part, or not at all."""
    damaged: bool = False
    """Whether that belongs into quarantine; a torn tail, as every running node may have one, does not."""

    def epoch_at(self, offset: int) -> int:
        """The epoch of the batch that holds this offset."""
        return max(epoch for epoch, start in self.epochs if start <= offset)

    def written(self) -> str:
        """As JSON."""
        found: dict[str, Any] = {
            name: value
            for name in self.__slots__
            if name not in {"epochs", "marks"} and (value := getattr(self, name)) is not None
        }
        found["epochs"] = self.epochs
        found["marks"] = [(mark.offset, mark.at, mark.crc) for mark in self.marks]
        return json.dumps(found, separators=(",", ":"))

    @classmethod
    def read(cls, text: str) -> Looked:
        """The inverse of `written`."""
        found = json.loads(text)
        found["epochs"] = tuple((epoch, start) for epoch, start in found["epochs"])
        found["marks"] = tuple(Mark(*mark) for mark in found["marks"])
        return cls(**found)


def look_at_segment(content: Holder, base_offset: int) -> Looked:
    """Which offsets a segment holds, by the headers of its batches; their checksums are verified.

    Args:
        base_offset: what the file's name says.

    Raises:
        OSError: it cannot be read.
    """
    looking = _Looking()
    stop = looking.through(content)
    if looking.first is None:
        if stop.kind is StopKind.END or stop.kind in _UNFINISHED:
            return Looked(SEGMENT, odd="it holds no whole batch" if content.size_bytes else "it is empty")
        return Looked(SEGMENT, odd=f"it is no segment of a metadata log: {stop.text}", damaged=True)
    found = looking.found()
    if looking.first != base_offset:
        return Looked(
            SEGMENT,
            odd=f"by its name it begins at offset {base_offset}, and its first batch at {looking.first}",
            damaged=True,
        )
    no_log = _why_no_metadata_log(content)
    if no_log is not None:
        return Looked(SEGMENT, odd=f"it is no segment of a metadata log: {no_log}", damaged=True)
    if stop.kind is StopKind.END:
        return found
    odd = f"at byte {stop.at}: {stop.text}; it is read up to there"
    return replace(found, odd=odd, damaged=stop.kind not in _UNFINISHED)


def look_at_checkpoint(content: Holder, name: str, end_offset: int, epoch: int) -> Looked:
    """Whether a checkpoint is whole.

    Args:
        end_offset, epoch: what the file's name says.

    Raises:
        OSError: it cannot be read.
    """
    why_not = is_whole(Checkpoint(name, end_offset, epoch, content))
    if why_not is not None:
        return Looked(CHECKPOINT, odd=f"it is not used: {why_not}", damaged=True)
    if not end_offset:
        return Looked(CHECKPOINT, odd="it was written when the disk was formatted, and tells of no cluster")
    return Looked(
        CHECKPOINT, end_offset=end_offset, readable_bytes=content.size_bytes, epochs=((epoch, end_offset - 1),)
    )


def digest_of(content: Holder) -> str:
    """Of all of a file. Raises OSError."""
    digest, at = hashlib.sha256(), 0
    while data := content.read(at, WINDOW_BYTES):
        digest.update(data)
        at += len(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Stop:
    kind: StopKind
    at: int
    text: str


@dataclass(slots=True)
class _Looking:
    """What was found so far."""

    first: int | None = None
    next: int = 0
    epoch: int = -1
    at: int = 0
    records: int = 0
    begun_ms: int | None = None
    ended_ms: int | None = None
    epochs: list[tuple[int, int]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    step: int = 1

    def through(self, content: Holder) -> _Stop:
        window, size = WINDOW_BYTES, content.size_bytes
        while True:
            data = content.read(self.at, window)
            begun = self.at
            stop = self._through(data)
            if stop.kind is not StopKind.END and (stop.kind not in _UNFINISHED or len(data) < window):
                return stop
            if len(data) < window or self.at >= size:
                return stop
            window = WINDOW_BYTES if self.at > begun else window * 2  # a batch that is larger than the window

    def _through(self, data: bytes) -> _Stop:
        view, base, at = memoryview(data), self.at, 0
        while True:
            idle = idle_batches(data, view, at)
            if idle is not None:
                batch, end = idle
                if not self._follows(batch.base_offset, batch.epoch):
                    return self._impossible(batch.base_offset, batch.epoch)
                self._idle(batch, data, at, base)
                self._times(batch.timestamp_ms, batch.timestamp_ms)
            else:
                run = BatchRun(view, at)
                header = next((header for _, header in run), None)
                if header is None:
                    assert run.stop is not None
                    return _Stop(run.stop.kind, base + at, run.stop.text)
                why = self._take(header, base + at)
                if why is not None:
                    return why
                end = at + header.size_bytes
            at = end
            self.at = base + end

    def _take(self, header: BatchHeader, at: int) -> _Stop | None:
        epoch = header.partition_leader_epoch
        if epoch is None or header.too_old or header.count != header.last_offset_delta + 1 or header.count <= 0:
            return _Stop(StopKind.UNREADABLE, at, f"the batch at offset {header.base_offset} is none of a metadata log")
        if not self._follows(header.base_offset, epoch):
            return self._impossible(header.base_offset, epoch)
        self._begin(header.base_offset, epoch)
        self._mark(header.base_offset, at, header.crc)
        self.next = header.next_offset
        self.records += header.count
        self._times(header.max_timestamp_ms, header.max_timestamp_ms)
        return None

    def _idle(self, batch: RecordBatch, data: bytes, at: int, base: int) -> None:
        """A run of NoOpRecords, one in each batch."""
        first, count = batch.base_offset, len(batch.records)
        self._begin(first, batch.epoch)
        aligned = first if not self.marks else -(-first // self.step) * self.step
        for offset in range(aligned, first + count, self.step):
            place = at + (offset - first) * IDLE_SIZE
            self._mark(offset, base + place, int.from_bytes(data[place + CRC_FROM - 4 : place + CRC_FROM]))
        self.next = first + count
        self.records += count

    def _follows(self, offset: int, epoch: int) -> bool:
        """Whether a node can have written this behind what comes before; checksums cover neither of the two."""
        return self.first is None or (offset == self.next and epoch >= self.epoch)

    def _impossible(self, offset: int, epoch: int) -> _Stop:
        text = f"offset {offset} of epoch {epoch} comes behind offset {self.next - 1} of epoch {self.epoch}"
        return _Stop(StopKind.GARBAGE, self.at, f"{text}, which no node writes")

    def _begin(self, offset: int, epoch: int) -> None:
        if self.first is None:
            self.first = offset
        if epoch != self.epoch:
            self.epochs.append((epoch, offset))
            self.epoch = epoch

    def _times(self, begun_ms: int | None, ended_ms: int | None) -> None:
        if self.begun_ms is None:
            self.begun_ms = begun_ms
        self.ended_ms = ended_ms if ended_ms is not None else self.ended_ms

    def _mark(self, offset: int, at: int, crc: int) -> None:
        if offset % self.step and self.marks:
            return
        self.marks.append(Mark(offset, at, crc))
        while len(self.marks) > _MOST_MARKS:
            self.step *= 2
            self.marks = [mark for place, mark in enumerate(self.marks) if not place or mark.offset % self.step == 0]

    def found(self) -> Looked:
        return Looked(
            SEGMENT,
            first_offset=self.first,
            end_offset=self.next,
            readable_bytes=self.at,
            records=self.records,
            epochs=tuple(self.epochs),
            marks=tuple(sorted(self.marks, key=lambda mark: mark.offset)),
            begun_ms=self.begun_ms,
            ended_ms=self.ended_ms,
        )


def _why_no_metadata_log(content: Holder) -> str | None:
    """Why the records are none of a metadata log, by the first ones; None where they are, or nothing tells."""
    unknown = 0
    for record in _first_records(content):
        if isinstance(record, str):
            return record
        if not isinstance(record, _TELL_NOTHING):
            return None
        unknown += isinstance(record, NotUnderstood)
    return "it holds no record that a metadata log has" if unknown else None


def _first_records(content: Holder) -> Iterator[object]:
    """The records of the first window; in the end, as text, why the first batch cannot be read."""
    reader = BatchReader(content.read(0, WINDOW_BYTES), merge_idle=True)
    begun = False
    for batch in reader:
        begun = True
        yield from batch.records
    if not begun and reader.stop is not None and reader.stop.kind is StopKind.UNREADABLE:
        yield reader.stop.text
