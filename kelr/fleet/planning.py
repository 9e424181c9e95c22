"""What is to be told of new inputs: which logs go on, which are told anew, and which files are not used, and why; pure.

A log whose new files only go on behind what was told is told from the state that was kept. One whose new files say more
of what was told already (records that were missing, another copy's newer epoch) is told anew from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.fleet.inputs import INGESTED, QUARANTINED, SUPERSEDED, Input
from kelr.fleet.laying import File, Layout, Piece, Span, lay_out, narrowed, spans_until
from kelr.fleet.looking import CHECKPOINT, COLLECTION, SEGMENT, SNAPSHOT, Looked


@dataclass(frozen=True, slots=True)
class Told:
    """How far a cluster's log was told."""

    offset: int
    """The first offset that was not."""
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class LogWork:
    """A log, or the rest of one, that is to be told."""

    cluster: str
    pieces: tuple[Piece, ...]
    layout: Layout
    goes_on_from: int | None = None
    """The offset of the state that was kept; None: from the beginning."""
    anew: bool = False
    """Whether rows that were told before are to go."""

    @property
    def size_bytes(self) -> int:
        return sum(piece.to_byte - piece.from_byte for piece in self.pieces)


@dataclass(slots=True)
class Work:
    """All that is to be done."""

    logs: list[LogWork] = field(default_factory=list)
    seen: list[Input] = field(default_factory=list)
    """Snapshots and collections."""
    changed: dict[str, Input] = field(default_factory=dict)
    """What the manifest is to say of files, by path."""


def plan_seen(new: Iterable[Input], manifest: Mapping[str, Input], work: Work) -> None:
    """Snapshots and collections: each once, however often it was copied."""
    known = {
        one.looked.digest: one.path for one in manifest.values() if one.looked is not None and one.status == INGESTED
    }
    for one in sorted(new, key=lambda one: one.path):
        if one.kind not in {SNAPSHOT, COLLECTION} or one.cluster is None or one.looked is None:
            continue
        twin = known.get(one.looked.digest)
        if twin is not None:
            work.changed[one.path] = replace(one, status=SUPERSEDED, reason=f"it is the same as {twin}")
            continue
        known[one.looked.digest] = one.path
        work.seen.append(one)
        work.changed[one.path] = replace(one, status=INGESTED, reason=None)


def in_order(seen: Iterable[Input]) -> tuple[str, ...]:
    """The paths of snapshots and collections, the oldest first."""
    taken = sorted((one.looked.taken_at_ms or 0 if one.looked is not None else 0, one.path) for one in seen)
    return tuple(path for _, path in taken)


@dataclass(frozen=True, slots=True)
class LogFiles:
    """All files of one cluster's log, those of earlier runs among them."""

    cluster: str
    files: Sequence[Input]
    new: frozenset[str]
    """Paths of those that were not looked at before, or are of this cluster only now."""
    told: Told | None
    """How far it was told."""


def plan_log(log: LogFiles, there: Callable[[Iterable[str]], set[str]], work: Work) -> None:
    """One cluster's log.

    Args:
        there: which of some files can still be read.
    """
    cluster, files, told = log.cluster, log.files, log.told
    layout = laid_out(files)
    if told is None and not layout.pieces:
        # Of two logs under one cluster id, the wrong one may have been taken away.
        gone = {one.path for one in files} - there([one.path for one in files])
        layout = laid_out([one for one in files if one.path not in gone])
        _settle(files, layout, gone, work)
        if layout.pieces:
            work.logs.append(LogWork(cluster, layout.pieces, layout))
        return
    if told is not None and spans_until(layout.spans, told.offset) == told.spans:
        pieces = layout.behind(told.offset)
        gone = _gone(pieces, there)
        if gone:
            # What was told stays; what is gone cannot be read, and what comes behind it waits.
            layout = _without(layout, gone)
            pieces = tuple(piece for piece in layout.pieces if piece.to_offset > told.offset)
        _settle(files, layout, gone, work)
        looked = _looked(files)
        rest = [narrowed(piece, looked[piece.path], told.offset, piece.to_offset) for piece in pieces]
        if pieces:
            work.logs.append(LogWork(cluster, _there(rest), layout, goes_on_from=told.offset))
        return
    gone = _gone(layout.pieces, there)
    if told is not None and gone:
        missing = f"{min(gone)} and others" if len(gone) > 1 else min(gone)
        why = f"it tells more of what was told before; to tell that anew, {missing} would be needed, which is gone"
        for one in files:
            if one.path in log.new:
                work.changed[one.path] = replace(one, status=QUARANTINED, reason=why)
        return
    if gone:
        layout = laid_out([one for one in files if one.path not in gone])
    _settle(files, layout, gone, work)
    if layout.pieces:
        work.logs.append(LogWork(cluster, layout.pieces, layout, anew=told is not None))


def _there(pieces: Iterable[Piece | None]) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece is not None)


def _looked(files: Sequence[Input]) -> dict[str, Looked]:
    return {one.path: one.looked for one in files if one.looked is not None}


def laid_out(files: Sequence[Input]) -> Layout:
    """One log out of what all copies of it hold."""
    senior = dict.fromkeys(
        one.copy for one in sorted(files, key=lambda one: (one.taken_at_ms, one.path)) if one.status == INGESTED
    )
    usable = [File(one.path, one.copy, one.looked) for one in files if one.of_log and one.looked is not None]
    return lay_out(usable, seniority=tuple(senior))


def _gone(pieces: Sequence[Piece], there: Callable[[Iterable[str]], set[str]]) -> set[str]:
    wanted = {piece.path for piece in pieces}
    return wanted - there(sorted(wanted))


def _without(layout: Layout, gone: set[str]) -> Layout:
    """The layout up to the first piece that cannot be read."""
    pieces = []
    for piece in layout.pieces:
        if piece.path in gone:
            break
        pieces.append(piece)
    end = pieces[-1].to_offset if pieces else 0
    return replace(layout, pieces=tuple(pieces), spans=spans_until(layout.spans, end))


def _settle(files: Sequence[Input], layout: Layout, gone: set[str], work: Work) -> None:
    """What becomes of each file."""
    used = {piece.path for piece in layout.pieces}
    for one in files:
        status, reason = _standing(one, layout, used, gone)
        if (status, reason) != (one.status, one.reason) or not one.run:
            work.changed[one.path] = replace(one, status=status, reason=reason)


def _standing(one: Input, layout: Layout, used: set[str], gone: set[str]) -> tuple[str, str | None]:
    looked = one.looked
    odd = None if looked is None else looked.odd
    if looked is None or looked.damaged:
        return QUARANTINED, odd or one.reason
    if one.path in layout.reasons:
        return QUARANTINED, layout.reasons[one.path]
    if one.path in gone:
        return QUARANTINED, "it is gone"
    remark = layout.remarks.get(one.path) or odd
    if one.path in used:
        return INGESTED, remark
    if remark is None and one.kind == CHECKPOINT:
        remark = "the records that it stands for are there, or another checkpoint is"
    if remark is None and one.kind == SEGMENT:
        remark = "another copy has told what it holds"
    return SUPERSEDED, remark


def told_of(offset: int, spans: Iterable[Sequence[Any]]) -> Told:
    """As it was kept."""
    return Told(offset, tuple((kind, epoch, start, end) for kind, epoch, start, end in spans))
