"""How several nodes' copies of one metadata log, with what each lacks, are read as one; pure.

The same rules as `kelr.sources.metadata_log.log` and `together`, by what a first look found in each file rather than by
reading all of them at once: the newest epoch at an offset is right, what another copy has in an older epoch was never
committed, and where nobody has a record, a checkpoint behind it stands in.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.fleet.looking import CHECKPOINT, SEGMENT, Looked


@dataclass(frozen=True, slots=True)
class File:
    """A segment or a checkpoint that was looked at."""

    path: str
    copy: str
    """The directory that it is in."""
    looked: Looked


@dataclass(frozen=True, slots=True)
class Piece:
    """Offsets of the log out of one file; of a checkpoint, all of it."""

    path: str
    kind: str
    from_offset: int
    """Of a checkpoint: the first offset that it stands in for."""
    to_offset: int
    """Not included."""
    from_byte: int
    """Where to begin to read: at or before the batch that holds `from_offset`."""
    to_byte: int


WHICH = "nothing tells which is the cluster's: take the other one away, and run again"

Span = tuple[str, int, int, int]
"""What was told, wherever it was read: kind, epoch, and the offsets of it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One log, in order."""

    pieces: tuple[Piece, ...] = ()
    spans: tuple[Span, ...] = ()
    """The same by epochs, without the files."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Why a file is not told, though nobody else has what is in it."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """What is odd about a file that may be told in part."""
    notes: tuple[str, ...] = ()
    """What is missing, a sentence each."""
    why_not: str | None = None
    """Why nothing of the log can be told."""

    def behind(self, offset: int) -> tuple[Piece, ...]:
        """The pieces from an offset on; the first of them may begin before it."""
        return tuple(piece for piece in self.pieces if piece.to_offset > offset)


def narrowed(piece: Piece, looked: Looked, start: int, end: int) -> Piece | None:
    """What of a piece is between two offsets; None where nothing is. A checkpoint is never cut."""
    start, end = max(piece.from_offset, start), min(piece.to_offset, end)
    if start >= end:
        return None
    if piece.kind == CHECKPOINT:
        return piece
    before = max((mark.at for mark in looked.marks if mark.offset <= start), default=0)
    after = next((mark.at for mark in looked.marks if mark.offset >= end), looked.readable_bytes)
    return Piece(piece.path, piece.kind, start, end, before, after)


def spans_until(spans: Iterable[Span], offset: int) -> tuple[Span, ...]:
    """What was told up to an offset."""
    return tuple(
        (kind, epoch, start, min(end, offset)) for kind, epoch, start, end in spans if start < min(end, offset)
    )


def lay_out(files: Sequence[File], *, seniority: Sequence[str] = ()) -> Layout:
    """One log out of these files.

    Args:
        seniority: copies that were told before: where two contradict each other in one epoch, these are right. Where
            none was, nobody knows which is, and none is told.
    """
    copies: dict[str, list[File]] = {}
    for file in sorted(files, key=lambda file: (file.copy, file.path)):
        copies.setdefault(file.copy, []).append(file)
    reasons: dict[str, str] = {}
    for copy in list(copies):
        other = next((one for one in seniority if one in copies and _contradict(copies[copy], copies[one])), None)
        if other is not None and copy not in seniority:
            why = f"another log than that of {other}, under the same cluster id: they differ in one epoch"
            reasons |= {file.path: why for file in copies.pop(copy)}
    junior = [copy for copy in copies if copy not in seniority]
    disputed = {
        copy: other
        for copy in junior
        if (other := next((one for one in junior if _contradict(copies[copy], copies[one])), None)) is not None
    }
    if disputed:
        first = next(iter(disputed))
        for copy in junior if not seniority else disputed:
            one, other = (copy, disputed[copy]) if copy in disputed else (first, disputed[first])
            why = f"{one} and {other} are two logs under one cluster id: they differ in one epoch, and {WHICH}"
            reasons |= {file.path: why for file in copies.pop(copy)}
        if not copies:
            return Layout(reasons=reasons, why_not=f"its files are of two logs, and {WHICH}")
    good = [copies[copy] for copy in sorted(copies, key=lambda copy: (copy not in seniority, copy))]
    return _Laying(good, reasons).laid()


def _contradict(one: Sequence[File], other: Sequence[File]) -> bool:
    """Whether two copies hold different batches of one offset and epoch."""
    known = dict(_marks(one))
    return any(known.get(place, crc) != crc for place, crc in _marks(other))


def _marks(files: Sequence[File]) -> Iterator[tuple[tuple[int, int], int]]:
    for file in files:
        if file.looked.kind == SEGMENT:
            for mark in file.looked.marks:
                yield (mark.offset, file.looked.epoch_at(mark.offset)), mark.crc


@dataclass(frozen=True, slots=True)
class _Run:
    """What a segment holds."""

    path: str
    looked: Looked
    first: int
    end: int

    def holds(self, offset: int) -> bool:
        return self.first <= offset < self.end


class _Laying:
    def __init__(self, copies: Sequence[Sequence[File]], reasons: dict[str, str]) -> None:
        self._reasons = reasons
        self._remarks: dict[str, str] = {}
        self._runs = [[run for file in copy if (run := _run(file)) is not None] for copy in copies]
        # What reaches furthest is told; the others fill its gaps.
        self._runs.sort(key=lambda runs: -max((run.end for run in runs), default=0))
        for runs in self._runs:
            runs.sort(key=lambda run: (run.first, run.path))
        self._checkpoints = sorted(
            (
                file
                for copy in copies
                for file in copy
                if file.looked.kind == CHECKPOINT and file.looked.end_offset and not file.looked.damaged
            ),
            key=lambda file: (file.looked.end_offset or 0, file.path),
        )
        self._next = [0] * len(self._runs)
        """Of each copy, the first run that reaches further than the offset that was asked last."""
        starts = {run.first for runs in self._runs for run in runs}
        self._events = sorted(starts | {start for runs in self._runs for run in runs for _, start in run.looked.epochs})
        """Offsets from which on another copy may be the right one."""
        self._dropped: set[int] = set()
        self._pieces: list[Piece] = []
        self._spans: list[Span] = []
        self._notes: list[str] = []

    def laid(self) -> Layout:
        lowest = min((run.first for runs in self._runs for run in runs), default=None)
        if lowest is None and not self._checkpoints:
            return Layout(reasons=self._reasons, why_not="no segment and no checkpoint of it can be read")
        offset = 0
        if lowest != 0:
            first = self._first_checkpoint(lowest)
            if first is None:
                begins = f"the segments begin at offset {lowest}, and no whole checkpoint says what was before"
                self._reasons |= {run.path: begins for runs in self._runs for run in runs}
                return Layout(reasons=self._reasons, why_not=begins)
            offset = self._checkpoint(first, 0)
        while True:
            offset = self._through(offset)
            standing_in = self._after(offset)
            if standing_in is None:
                break
            end = standing_in.looked.end_offset or 0
            self._notes.append(
                f"records {offset} to {end - 1} are missing; {standing_in.path} stands in for them: what happened in"
                " between is not known"
            )
            offset = self._checkpoint(standing_in, offset)
        self._unreachable(offset)
        return Layout(tuple(self._pieces), tuple(self._spans), self._reasons, self._remarks, tuple(self._notes))

    def _first_checkpoint(self, lowest: int | None) -> File | None:
        found = None if lowest is None else self._after(lowest - 1)
        return found or (self._checkpoints[-1] if self._checkpoints else None)

    def _after(self, offset: int) -> File | None:
        """The first checkpoint that reaches further than an offset."""
        return next((one for one in self._checkpoints if (one.looked.end_offset or 0) > offset), None)

    def _checkpoint(self, file: File, offset: int) -> int:
        looked = file.looked
        end = looked.end_offset or 0
        self._pieces.append(Piece(file.path, CHECKPOINT, offset, end, 0, looked.readable_bytes))
        self._spans.append((CHECKPOINT, looked.epochs[0][0], offset, end))
        return end

    def _through(self, offset: int) -> int:
        """All from an offset on, until nobody has what comes next."""
        while True:
            there = [
                (number, run)
                for number in range(len(self._runs))
                if number not in self._dropped and (run := self._at(number, offset)) is not None
            ]
            if not there:
                return offset
            newest = max(run.looked.epoch_at(offset) for _, run in there)
            for number, run in there:
                if run.looked.epoch_at(offset) < newest:
                    self._dropped.add(number)
                    self._remarks[run.path] = (
                        f"from offset {offset} on it is of an older epoch than another copy: that was never committed"
                    )
            best = next(run for number, run in there if number not in self._dropped)
            end = self._until(best, offset)
            self._take(best, offset, end)
            offset = end

    def _at(self, number: int, offset: int) -> _Run | None:
        """What of a copy holds an offset."""
        runs = self._runs[number]
        while self._next[number] < len(runs) and runs[self._next[number]].end <= offset:
            self._next[number] += 1
        found = runs[self._next[number]] if self._next[number] < len(runs) else None
        return found if found is not None and found.holds(offset) else None

    def _until(self, best: _Run, offset: int) -> int:
        """Up to where one run can be taken without looking at the others again."""
        place = bisect_right(self._events, offset)
        return min(self._events[place], best.end) if place < len(self._events) else best.end

    def _take(self, run: _Run, offset: int, end: int) -> None:
        looked, last = run.looked, self._pieces[-1] if self._pieces else None
        after = next((mark.at for mark in looked.marks if mark.offset >= end), looked.readable_bytes)
        if last is not None and last.path == run.path and last.to_offset == offset:
            self._pieces[-1] = Piece(run.path, SEGMENT, last.from_offset, end, last.from_byte, after)
        else:
            before = max((mark.at for mark in looked.marks if mark.offset <= offset), default=0)
            self._pieces.append(Piece(run.path, SEGMENT, offset, end, before, after))
        epoch = looked.epoch_at(offset)
        if self._spans and self._spans[-1][:2] == (SEGMENT, epoch) and self._spans[-1][3] == offset:
            self._spans[-1] = (SEGMENT, epoch, self._spans[-1][2], end)
        else:
            self._spans.append((SEGMENT, epoch, offset, end))

    def _unreachable(self, offset: int) -> None:
        """What lies behind records that nobody has."""
        behind = [
            run
            for number, runs in enumerate(self._runs)
            if number not in self._dropped
            for run in runs
            if run.first > offset
        ]
        if not behind:
            return
        missing = f"records {offset} to {min(run.first for run in behind) - 1} are missing"
        self._notes.append(f"{missing}, and no checkpoint stands in for them: nothing of what came later is told")
        for run in behind:
            self._reasons[run.path] = f"{missing}, and no checkpoint stands in for them"


def _run(file: File) -> _Run | None:
    looked = file.looked
    if looked.kind != SEGMENT or looked.first_offset is None or looked.end_offset is None:
        return None
    return _Run(file.path, looked, looked.first_offset, looked.end_offset)
