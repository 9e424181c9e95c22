"""How one long metadata log is told by several workers, and by one run after another: what is known at a cut.

`states_before` reads the log once, many records at a time, and says what is known in front of each of its pieces. A
worker that has this tells its piece exactly as if it had told all that is before. `HistoryBuilder.state` says the same
at the end of what was told, from where the next run goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kelr.errors import BadInputError
from kelr.fleet.states import State
from kelr.model import TopicPartition
from kelr.replay import records as rec
from kelr.replay.history import Carried, Memory
from kelr.replay.history.attribution import FULL_BATCH
from kelr.replay.history.causes import reassignment_step
from kelr.replay.image import MetadataImage
from kelr.replay.packed import Folding, IdleRun, PackedChanges, key_of
from kelr.replay.records import PartitionMoved, Restarted

__all__ = ["Openings", "Skimming", "State", "end_of", "states_before", "unknown_part"]


class Openings:
    """Follows a log, and says where something is left open that only later records explain: no cut is made there.

    Left open are transactions, and what full batches change, or begin to (`kelr.replay.history.attribution`).
    """

    def __init__(self) -> None:
        self._in_transaction = False
        self.open = False
        """Whether the last batch that was taken left something open."""

    def take(self, batch: rec.RecordBatch) -> bool:
        """Take the next batch; whether it leaves something open."""
        changed = type(batch.records) is PackedChanges
        if not changed and type(batch.records) is not IdleRun:
            for record in batch.records:
                kind = type(record)
                if kind is rec.PartitionChanged or kind is rec.BrokerChanged:
                    changed = True
                elif kind is rec.TransactionMark:
                    self._in_transaction = record.kind == "begin"  # type: ignore[union-attr]
                    changed = True  # the whole transaction with it
                elif kind is rec.SnapshotBegins:
                    self._in_transaction = False
        full = changed and len(batch.records) >= FULL_BATCH
        # What a checkpoint in the middle shows is told with the batch behind it.
        self.open = self._in_transaction or full or batch.of_checkpoint
        return self.open


class Skimming:
    """Follows a metadata log without telling it: the image, and what a history would remember.

    Args:
        state: what is known in front of the first batch; None where the log begins.
    """

    def __init__(self, state: State | None = None) -> None:
        self._image = MetadataImage() if state is None else state.image()
        self._memory = Memory(Carried() if state is None else state.carried())
        self._next = 0 if state is None else state.next_offset
        self._folding = Folding(self._image)
        self._openings = Openings()
        self._watched: set[bytes] = set()
        """Partitions whose next election matters."""
        self._watch_all()

    def take(self, batch: rec.RecordBatch) -> None:
        """Take the next batch.

        Raises:
            BadInputError: records are missing in front of it.
        """
        part = unknown_part(batch, self._next)
        if part is None:
            return
        self._next = end_of(part)
        self._openings.take(part)
        if self._is_plain(part):
            self._folding.apply(part)
        else:
            self._look(part)

    @property
    def may_be_cut(self) -> bool:
        """Whether telling can go on here from `state`."""
        return self._image.at is not None and not self._openings.open

    def state(self) -> State:
        """What is known here; only where it `may_be_cut`."""
        carried = self._memory.carried()
        image = self._folding.finish()
        leaderless = {address: leader for address, leader in carried.last_leaders.items() if _waits(image, address)}
        return State.of(image, Carried(leaderless, carried.reorders))

    def _is_plain(self, batch: rec.RecordBatch) -> bool:
        """Whether nobody has to look at what it changes: no leader is lost, and no election matters."""
        records = batch.records
        if type(records) is IdleRun:
            return True
        if type(records) is not PackedChanges or self._image.in_transaction:
            return False
        if self._watched and not self._watched.isdisjoint(records.keys):
            return False
        return rec.NO_LEADER not in [told.get("leader") for told in records.told]

    def _look(self, batch: rec.RecordBatch) -> None:
        self._folding.finish()
        for change in self._image.apply(batch):
            if isinstance(change, PartitionMoved) and not batch.of_checkpoint:
                before, after = change.before, change.after
                step = None if before is None or after is None else reassignment_step(before, after)
                self._memory.moved(before, after, step, change.at.timestamp_ms)
                if step is not None and after is not None:
                    self._watch(after.address)
            elif isinstance(change, Restarted):
                self._memory.forget_leaders()
        if batch.of_checkpoint:
            self._watch_all()

    def _watch_all(self) -> None:
        self._watched.clear()
        for address in self._memory.reordered:
            self._watch(address)

    def _watch(self, address: TopicPartition) -> None:
        topic_id = self._image.names.get(address.topic)
        if topic_id is not None:
            key = key_of(topic_id, address.partition)
            (self._watched.add if address in self._memory.reordered else self._watched.discard)(key)


def _waits(image: MetadataImage, address: TopicPartition) -> bool:
    state = image.partition(address)
    return state is not None and state.leader is None


def end_of(batch: rec.RecordBatch) -> int:
    """The offset of the log behind a batch; behind what is in the checkpoint, for one of a checkpoint."""
    return batch.next_offset if batch.checkpoint_end is None else batch.checkpoint_end


def unknown_part(batch: rec.RecordBatch, next_offset: int) -> rec.RecordBatch | None:
    """What of a batch is not known yet; None where all is.

    Args:
        next_offset: what is before it is known.

    Raises:
        BadInputError: records are missing between the two, and it is no batch of a checkpoint.
    """
    if batch.of_checkpoint:
        return batch
    if batch.base_offset > next_offset:
        raise BadInputError(
            f"records {next_offset} to {batch.base_offset - 1} of the metadata log are missing, and no checkpoint"
            " stands in for them",
            next_step="give the files that hold them, or another node's",
        )
    if batch.next_offset <= next_offset:
        return None
    known = next_offset - batch.base_offset
    return batch if not known else replace(batch, base_offset=next_offset, records=batch.records[known:])


def states_before(pieces: Iterable[Iterable[rec.RecordBatch]], state: State | None = None) -> Iterator[State | None]:
    """What is known in front of each piece of a log, in order.

    None where there can be no cut: such a piece is told together with the one before it. The first piece has `state`.

    Args:
        pieces: consecutive parts of the log; read as they are asked for, one after the other.
        state: what is known in front of the first one; None where the log begins.

    Raises:
        BadInputError: records are missing.
    """
    skimming = Skimming(state)
    first = True
    for piece in pieces:
        if first:
            yield state
        else:
            yield skimming.state() if skimming.may_be_cut else None
        first = False
        for batch in piece:
            skimming.take(batch)
