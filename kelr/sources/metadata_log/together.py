"""Several nodes' copies of one log, read together: where one lacks records another has them, and where they differ, the
newer epoch is right.

Source: Raft's log matching and leader completeness (KIP-595): two nodes' records of one offset and epoch are the same,
and of two epochs at one offset the older one was never committed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from kelr.errors import BadInputError, UsageError
from kelr.replay.records import RecordBatch
from kelr.sources.metadata_log.pieces import Copy, Segment, Windows
from kelr.sources.records.batches import Stop, StopKind


@dataclass(frozen=True, slots=True)
class Gap:
    """Where reading ended."""

    offset: int
    """The first offset that nobody has."""
    next_offset: int | None
    """The first one after it that somebody has; None at the end of the log."""


class Together:
    """The batches of all copies, each offset once.

    Args:
        warn: told in a sentence what is odd.
        read: told of bytes as they are read.
    """

    def __init__(
        self,
        copies: Sequence[Copy],
        warn: Callable[[str], None],
        read: Callable[[int], None],
    ) -> None:
        # Copies are compared batch by batch, and runs of NoOpRecords end where a copy's file does.
        self._heads = [_Head(copy, warn, read, merge_idle=len(copies) == 1) for copy in copies]
        self._warn = warn

    def nodes_at(self, offset: int) -> frozenset[int]:
        """The nodes whose copies reach this offset."""
        return frozenset(
            head.copy.node for head in self._heads if head.copy.node is not None and head.reached >= offset
        )

    def broken_at(self, offset: int) -> bool:
        """Whether a copy has something from this offset on that cannot be read; a torn tail is none."""
        return any(head.broken and head.reached == offset for head in self._heads)

    def batches(self, offset: int) -> Generator[RecordBatch, None, Gap]:
        """Everything from the offset on, until no copy has what comes next.

        Raises:
            BadInputError: a file cannot be read, or is no metadata log's.
            UsageError: the copies are of different clusters.
        """
        if len(self._heads) == 1:
            return (yield from self._alone(self._heads[0], offset))
        while True:
            there = [head for head in self._heads if (batch := head.at(offset)) is not None and _has(batch, offset)]
            if not there:
                later = [head.batch.base_offset for head in self._heads if head.batch is not None]
                return Gap(offset, min(later, default=None))
            best = self._agreed(there, offset)
            yield best if best.base_offset == offset else _behind(best, offset)
            offset = best.next_offset

    def _alone(self, head: _Head, offset: int) -> Generator[RecordBatch, None, Gap]:
        """As `batches`, for a single copy: nothing is compared."""
        while (batch := head.at(offset)) is not None:
            if batch.base_offset > offset:
                return Gap(offset, batch.base_offset)
            yield batch if batch.base_offset == offset else _behind(batch, offset)
            offset = batch.next_offset
        return Gap(offset, None)

    def _agreed(self, there: Sequence[_Head], offset: int) -> RecordBatch:
        """What the copies say of an offset; those that say it in an older epoch than others are read no further."""
        found = [(head, head.batch) for head in there if head.batch is not None]
        newest_epoch = max(batch.epoch for _, batch in found)
        newest = [(head, batch) for head, batch in found if batch.epoch == newest_epoch]
        (first, best), *others = newest
        for head, batch in found:
            if batch.epoch < newest_epoch:
                self._warn(
                    f"{head.copy.label} and {first.copy.label} differ from offset {offset} on: epoch {batch.epoch} is"
                    f" older than {newest_epoch}, so that what the first has there was never committed; it is left out"
                )
                head.drop()
        for head, batch in others:
            if batch.base_offset == best.base_offset and batch.records != best.records:
                raise UsageError(
                    f"these are metadata logs of different clusters: {first.copy.label} and {head.copy.label} differ at"
                    f" offset {offset} in one epoch",
                    next_step="give those of one",
                    code="metadata-logs-differ",
                )
        return best


class _Head:
    """Where the reading of one copy is."""

    def __init__(
        self,
        copy: Copy,
        warn: Callable[[str], None],
        read: Callable[[int], None],
        *,
        merge_idle: bool,
    ) -> None:
        self.copy = copy
        self._merge_idle = merge_idle
        self.batch: RecordBatch | None = None
        """The first batch that reaches further than the offset that was asked last; None at the end."""
        self.reached = -1
        """The offset after the last record that was read."""
        self.broken = False
        """Whether what comes behind that is there and cannot be read."""
        self._warn, self._read = warn, read
        self._segments = sorted(copy.segments, key=lambda segment: segment.base_offset)
        self._rest = self._all()
        self._started = False

    def at(self, offset: int) -> RecordBatch | None:
        """The first batch that holds this offset or a later one."""
        batch = self.batch
        if batch is None and not self._started:
            self._started = True
            batch = next(self._rest, None)
        while batch is not None and batch.next_offset <= offset:
            batch = next(self._rest, None)
        self.batch = batch
        return batch

    def drop(self) -> None:
        """Nothing more of this copy is right."""
        self.batch, self._rest = None, iter(())

    def _all(self) -> Iterator[RecordBatch]:
        for number, segment in enumerate(self._segments):
            before: RecordBatch | None = None
            windows = Windows(segment.bytes, self._read, merge_idle=self._merge_idle)
            try:
                for batch in windows:
                    if before is not None and not _follows(batch, before):
                        self._warn(_impossible(segment, before, batch))
                        self.broken = True
                        break
                    before, self.broken = batch, False
                    self.reached = max(self.reached, batch.next_offset)
                    yield batch
            except OSError as error:
                raise BadInputError(f"{segment.name} cannot be read: {error.strerror or error}") from error
            if windows.stop is not None and windows.stop.kind is not StopKind.END:
                self._stopped(segment, windows.stop, begun=before is not None, last=number + 1 == len(self._segments))

    def _stopped(self, segment: Segment, stop: Stop, *, begun: bool, last: bool) -> None:
        """A segment does not end with a whole batch."""
        if not begun and stop.at == 0 and stop.kind in {StopKind.GARBAGE, StopKind.UNREADABLE}:
            raise BadInputError(
                f"{segment.name} is no segment of a metadata log: {stop.text}",
                next_step="give __cluster_metadata-0 of a node",
            )
        place = f"{segment.name} at byte {stop.at}"
        if last and stop.kind in {StopKind.TORN, StopKind.EMPTY_SPACE}:
            self._warn(f"{place}: {stop.text}; the log is read up to there, as a node that starts would")
        else:
            self._warn(f"{place}: {stop.text}; the rest of this file is not read")
            self.broken = True


def _follows(batch: RecordBatch, before: RecordBatch) -> bool:
    """Whether a node can have written the one after the other; checksums cover neither offsets nor epochs."""
    return batch.base_offset == before.next_offset and batch.epoch >= before.epoch


def _impossible(segment: Segment, before: RecordBatch, batch: RecordBatch) -> str:
    return (
        f"{segment.name}: offset {batch.base_offset} of epoch {batch.epoch} comes behind offset"
        f" {before.next_offset - 1} of epoch {before.epoch}, which no node writes; the rest of this file is not read"
    )


def _has(batch: RecordBatch, offset: int) -> bool:
    return batch.base_offset <= offset < batch.next_offset


def _behind(batch: RecordBatch, offset: int) -> RecordBatch:
    """The part of a batch from the offset on."""
    return replace(batch, base_offset=offset, records=batch.records[offset - batch.base_offset :])
