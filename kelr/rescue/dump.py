"""Saves records: from each source batch by batch into a rescue file, with a gap noted for each part that is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kelr import __version__
from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.model import LOG_DIRECTORY, ReplicaLog
from kelr.rescue.archive import TailWriter, write_dump
from kelr.rescue.choose import Wanted
from kelr.rescue.manifest import FORMAT, FORMAT_VERSION, HOLE, Manifest, SavedGap, SavedTail
from kelr.rescue.transactions import Transactions
from kelr.sources.base import Progress
from kelr.sources.disk import PartitionDirectory
from kelr.sources.records.stream import Piece, RawBatch, Unread, UnreadKind

FETCH = "Fetch"

_ON_REMOTE_STORAGE = "it is in remote storage alone: the disk begins at offset {}"
_NOT_ON_DISK = "the disk begins at offset {}: what was before was deleted, moved to remote storage, or is missing"


@dataclass(frozen=True, slots=True)
class TailSource:
    """Where a tail is read: `pieces(start, end)` gives its batches and what could not be read."""

    how: str
    pieces: Callable[[int, int], Iterable[Piece]]


def dump(
    path: Path,
    wanted: Sequence[tuple[Wanted, TailSource]],
    *,
    cluster_id: str | None,
    taken_at_ms: int,
    plan_id: str | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    files: Files = FILES,
) -> Manifest:
    """Save these tails in a rescue file, which appears only when it is whole. What could not be read is a gap in the
    manifest, and no error: whatever can be saved is.

    Args:
        taken_at_ms: now, in milliseconds since 1970 UTC.
        progress: told of offsets.

    Raises:
        UsageError: the file exists, or cannot be written.
    """
    ordered = sorted(wanted, key=lambda one: (one[0].state.address, one[0].from_offset, one[0].replica))
    count = _Count(sum(one.to_offset - one.from_offset for one, _ in ordered), progress)
    with write_dump(path, taken_at_ms=taken_at_ms, overwrite=overwrite, files=files) as writer:
        tails = []
        for named, source in ordered:
            one = _from_the_beginning(named, source)
            begun = _described(one, source.how, taken_at_ms)
            tails.append(_save(writer.begin(begun), one, source, count))
            count.at_least(named.to_offset - named.from_offset)
        manifest = Manifest(FORMAT, FORMAT_VERSION, __version__, cluster_id, taken_at_ms, plan_id, tuple(tails))
        writer.finish(manifest)
    return manifest


def disk_source(directory: PartitionDirectory) -> TailSource:
    """A tail out of a replica's directory."""
    return TailSource(LOG_DIRECTORY, lambda start, end: _from_disk(directory, start, end))


def held_on_disk(directory: PartitionDirectory) -> tuple[int, int]:
    """Offsets `[first, end)` of what can be read in a replica's directory, also of a log that Kafka would not load.

    Raises:
        BadInputError: a segment cannot be read at all.
    """
    first, end = directory.log_start or 0, 0
    at: int | None = first
    while at is not None:
        batches = directory.batches_from(at)
        end = max((header.next_offset for header, _ in batches), default=end)
        at = None if batches.stopped is None else batches.stopped.resumes_at
    return first, max(first, end)


def _described(one: Wanted, how: str, now_ms: int) -> SavedTail:
    state, log = one.state, one.log
    return SavedTail(
        topic=state.topic,
        topic_id=state.topic_id,
        partition=state.partition,
        replica=one.replica,
        how=how,
        why=one.why,
        from_offset=one.from_offset,
        to_offset=one.to_offset,
        lineage=None if log.lineage is None else tuple(log.lineage),
        log_start=log.log_start,
        log_end=log.log_end,
        high_watermark=log.high_watermark,
        starts_between_transactions=_starts_between(log, one.from_offset),
        compacted=one.compacted,
        read_at_ms=log.read_at_ms or now_ms,
        lost_from=one.lost_from,
        lacked_by=one.lacked_by,
        perhaps_held_by=one.perhaps_held_by,
    )


def _from_the_beginning(one: Wanted, source: TailSource) -> Wanted:
    """The same, from the beginning of the transactions on that are open where what is lost begins: the leader keeps
    that beginning without an end, and once they are aborted its consumers lose it, too."""
    start = one.open_since
    if start is None or start >= one.from_offset:
        return one
    transactions = Transactions()
    for piece in source.pieces(max(start, one.log.log_start or 0), one.from_offset):
        if isinstance(piece, RawBatch) and piece.header.base_offset < one.from_offset:
            transactions.feed(piece)
    first = transactions.open_from
    if first is None or first >= one.from_offset:
        return one
    return replace(one, from_offset=first, lost_from=one.from_offset)


def _starts_between(log: ReplicaLog, start: int) -> bool | None:
    """Whether no transaction of this log begins before an offset and goes on at it.

    The last stable offset is where the oldest transaction begins that has no end below the high watermark, or the high
    watermark. So from there on every transaction's beginning is seen; below the high watermark it names an open one.
    """
    stable = log.last_stable_offset
    if stable is None:
        return None
    if stable >= start:
        return True
    return False if log.high_watermark is not None and stable < log.high_watermark else None


def _save(writer: TailWriter, one: Wanted, source: TailSource, count: _Count) -> SavedTail:
    gaps: list[SavedGap] = []
    start = one.from_offset
    beginnings = [(one.log.log_start, "the replica's log begins at offset {}")]
    if source.how == LOG_DIRECTORY:
        beginnings.append((one.log.local_start, _ON_REMOTE_STORAGE if one.tiered else _NOT_ON_DISK))
    for begins, why in beginnings:
        if begins is not None and begins > start:
            until = min(begins, one.to_offset)
            gaps.append(SavedGap(start, until, UnreadKind.GONE, why.format(begins)))
            start = until
    reached = start
    for piece in source.pieces(start, one.to_offset) if start < one.to_offset else ():
        if isinstance(piece, Unread):
            until = one.to_offset if piece.to_offset is None else min(piece.to_offset, one.to_offset)
            since = max(piece.from_offset, reached)
            before = gaps[-1] if gaps else None
            if before is not None and (before.to_offset, before.kind, before.text) == (since, piece.kind, piece.text):
                gaps[-1] = replace(before, to_offset=max(since, until))
            elif until > since:
                gaps.append(SavedGap(since, until, piece.kind, piece.text))
            reached = max(reached, until)
            continue
        if piece.header.base_offset > reached and not one.compacted:
            gaps.append(_hole(reached, piece.header.base_offset))
        writer.add(piece)
        count.add(min(piece.header.next_offset, one.to_offset) - reached)
        reached = max(reached, piece.header.next_offset)
    if reached < one.to_offset:
        text = f"the replica's log ended at offset {reached} when it was read"
        gaps.append(SavedGap(reached, one.to_offset, UnreadKind.GONE, text))
    return replace(writer.end(), gaps=tuple(gaps))


def _hole(start: int, end: int) -> SavedGap:
    text = "the replica's log holds no batch with these offsets; compaction could explain it, nothing else does"
    return SavedGap(start, end, HOLE, text)


def _from_disk(directory: PartitionDirectory, start: int, end: int) -> Iterator[Piece]:
    """The batches in a directory; a damaged part is stepped over up to the next segment, and named."""
    at: int | None = start
    while at is not None:
        batches, reached = directory.batches_from(at), at
        try:
            for header, data in batches:
                if header.base_offset >= end:
                    return
                if header.too_old:
                    text = f"message format {header.magic} is too old: kelr reads format 2, Kafka 0.11's"
                    yield Unread(reached, header.next_offset, UnreadKind.TOO_OLD, text)
                else:
                    yield RawBatch(header, data)
                reached = header.next_offset
        except BadInputError as error:
            yield Unread(at, None, UnreadKind.NO_ANSWER, error.message)
            return
        stopped = batches.stopped
        if stopped is None or stopped.whole:
            return
        if stopped.text:
            yield Unread(stopped.next_offset, stopped.resumes_at, UnreadKind.CORRUPT, stopped.text)
        at = stopped.resumes_at


class _Count:
    """Offsets done of all, told to whoever wants to know."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress = total, progress
        self._done = self._base = 0

    def add(self, offsets: int) -> None:
        self._done += max(0, offsets)
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def at_least(self, offsets: int) -> None:
        """A tail of so many offsets has ended, whatever was read of it."""
        self._base += offsets
        self._done = self._base
        self.add(0)
