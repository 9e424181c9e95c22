"""From batches of a metadata log to rows of a lake's tables: what `kelr history` tells, partition by partition.

What a worker does with a part of one cluster's log. Rows are values; `kelr.fleet.staging` makes tables of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kelr.fleet.cuts import Openings, end_of, unknown_part
from kelr.fleet.found import Known, found_rows, partitions_as_found
from kelr.fleet.min_isrs import MinIsrs, moved_by, untouched
from kelr.fleet.states import State
from kelr.fleet.told import Told, broker_row, cluster_row, config_rows, election_row, end_row, partition_row, tombstone
from kelr.replay import records as rec
from kelr.replay.changes import At, Change
from kelr.replay.history import (
    BrokerEntry,
    Cause,
    CauseKind,
    Certainty,
    ClusterEntry,
    ClusterEvent,
    Entry,
    History,
    Interest,
    PartitionEntry,
    Window,
)
from kelr.replay.image import MetadataImage

__all__ = ["Teller", "Told", "tell"]

_NOT_TOLD = Cause(CauseKind.NOT_TOLD, Certainty.UNKNOWN)
_MIN_ISR_WRITTEN = Cause(CauseKind.MIN_ISR_WRITTEN)


class Teller:
    """Tells a metadata log, batch by batch, as rows in the order of the log.

    Rows of partition_states follow each other without gaps, by partition: a row holds until the next one of its topic
    id and partition; a tombstone ends the last (`kelr.fleet.told.tombstone`). `partition_epoch` is that of the
    record, though others that change nothing else may follow.

    Where the log begins with a checkpoint, everything in it is told `as-found`; where one stands in for records that
    are missing, what is different is told at the time of the last record that it contains, as `not-told`.

    What a full batch, or a transaction, leaves open is told with the batch that ends it; `state` is in front of it.

    Args:
        state: what is known in front of the first batch; None where the log begins.

    Raises:
        BadInputError: the state is damaged.
    """

    def __init__(self, state: State | None = None) -> None:
        image = None if state is None else state.image()
        carried = None if state is None else state.carried()
        self._history = History(Interest(), Window(), summaries=False, image=image, carried=carried)
        self._begun = state is not None
        self._next = 0 if state is None else state.next_offset
        self._openings = Openings()
        self._waiting: list[rec.RecordBatch] = []
        """Batches that leave something open."""
        self._in_checkpoint = False
        self._before: Known | None = None
        """What was known before the checkpoint that was read last."""
        self._min_isrs = MinIsrs(self._history.image)

    @property
    def image(self) -> MetadataImage:
        """The cluster where telling stands."""
        return self._history.image

    def take(self, batch: rec.RecordBatch) -> Iterator[Told]:
        """Take the next batch: one batch of the log, or several that hold nothing but NoOpRecords.

        Those of a checkpoint carry its end, and the time of the last record that it contains, as
        `kelr.sources.metadata_log.whole.checkpoint_batches` gives them. What is known already is passed over.

        Raises:
            BadInputError: records are missing in front of it.
        """
        part = unknown_part(batch, self._next)
        if part is None:
            return
        self._next = end_of(part)
        opened = self._openings.take(part)
        if part.of_checkpoint:
            yield from self._of_checkpoint(part)
        elif opened:
            self._waiting.append(part)
        else:
            waiting, self._waiting = self._waiting, []
            yield from self._told([*waiting, part])

    def finish(self, *, ended: bool = True) -> Iterator[Told]:
        """What is left to be told.

        Args:
            ended: the newest input ends here: the place is told, too.
        """
        if self._in_checkpoint:
            yield from self._told([])
        if ended and self.image.at is not None:
            yield end_row(self.image.at)

    def state(self) -> State | None:
        """What is known where telling stands, once it is finished; None where nothing was told."""
        return None if self.image.at is None else State.of(self.image, self._history.carried())

    def _of_checkpoint(self, batch: rec.RecordBatch) -> Iterator[Told]:
        if self._waiting:
            # The log breaks off while something is open: nothing that follows explains it.
            waiting, self._waiting = self._waiting, []
            yield from self._told(waiting, flush=True)
        if not self._in_checkpoint:
            self._in_checkpoint = True
            self._before = Known.of(self.image) if self._begun else None
        for entry in self._history.take(batch):
            yield from self._row(entry)

    def _told(self, batches: Sequence[rec.RecordBatch], *, flush: bool = False) -> Iterator[Told]:
        """What batches that belong together tell; before them, what a checkpoint in front of them shows.

        Args:
            flush: nothing more explains what they leave open.
        """
        shown_at, moved_before = None, frozenset[str]()
        if self._in_checkpoint:
            assert self.image.at is not None  # the checkpoint
            shown_at = self.image.at
            moved_before = self._min_isrs.restart()
            yield from found_rows(self.image, shown_at, self._before)
            if not self._begun:
                yield from partitions_as_found(self.image, shown_at)
        self._begun, self._in_checkpoint = True, False
        entries: list[Entry] = []
        changes: list[Change] = []
        for batch in batches:
            entries += self._history.take(batch)
            changes += self._history.changes
        if flush or not batches:
            entries += self._history.finish()
        shown = 0
        while shown_at is not None and shown < len(entries) and _is_shown(entries[shown]):
            yield from self._row(replace(entries[shown], at=shown_at))
            shown += 1
        if shown_at is not None and moved_before:
            yield from self._moved(moved_before, shown_at, _NOT_TOLD, entries[:shown], entries[shown:])
        entries = entries[shown:]
        moved = self._min_isrs.take(changes)
        yield from config_rows(changes)
        for number, entry in enumerate(entries, 1):
            yield from self._row(entry)
            by_this = moved_by(entry, moved, self.image) if moved else moved
            if by_this:
                moved -= by_this
                cause = entry.cause if isinstance(entry, PartitionEntry) else _MIN_ISR_WRITTEN
                yield from self._moved(by_this, entry.at, cause, entries[:number], entries[number:])

    def _moved(
        self, topics: frozenset[str], at: At, cause: Cause, earlier: Sequence[Entry], later: Sequence[Entry]
    ) -> Iterator[Told]:
        """Another min ISR holds for these topics: rows of their partitions, between two entries."""
        for state in untouched(topics, self.image, earlier, later):
            yield partition_row(at, state, self._min_isrs.of(state), cause)

    def _row(self, entry: Entry) -> Iterator[Told]:
        if isinstance(entry, PartitionEntry):
            before, after = entry.before, entry.after
            if before is not None and (after is None or after.topic_id != before.topic_id):
                yield tombstone(entry.at, before, entry.cause)
            if after is not None:
                yield partition_row(entry.at, after, self._min_isrs.of(after), entry.cause)
                yield from election_row(entry)
        elif isinstance(entry, BrokerEntry):
            yield broker_row(entry)
        elif isinstance(entry, ClusterEntry) and entry.event is not ClusterEvent.CONFIG:
            yield cluster_row(entry)


def _is_shown(entry: Entry) -> bool:
    return isinstance(entry, PartitionEntry) and entry.cause.kind is CauseKind.NOT_TOLD


def tell(batches: Iterable[rec.RecordBatch], state: State | None = None, *, ended: bool = True) -> Iterator[Told]:
    """A part of a metadata log as rows; see `Teller`.

    Args:
        state: what is known in front of it; None where the log begins.
        ended: whether the newest input ends with it.

    Raises:
        BadInputError: records are missing, or the state is damaged.
    """
    teller = Teller(state)
    for batch in batches:
        yield from teller.take(batch)
    yield from teller.finish(ended=ended)
