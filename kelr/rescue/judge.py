"""What becomes of each saved record: replayed, or left out, and why. What cannot be told is refused, never guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kelr.engine.logs import Segment, segments
from kelr.errors import RefusedError
from kelr.model import PartitionState, ReplicaLog
from kelr.rescue.archive import Dump
from kelr.rescue.manifest import SavedTail
from kelr.rescue.origin import Origin, Origins, read_origins
from kelr.rescue.scan import KeyDigest, digest_of
from kelr.rescue.transactions import Outcome, Transactions
from kelr.sources.records.batches import BatchHeader
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import Record, read_records


class Verdict(StrEnum):
    """What becomes of one record."""

    REPLAY = "replay"
    SURVIVES = "survives"
    """The present leader's log holds it."""
    ALREADY = "already"
    """It was replayed before, by this run or another one; or a second tail of the file holds it too."""
    OVERWRITTEN = "overwritten"
    """In a compacted topic: its key was written again since."""
    HANGING = "hanging"
    """The present leader's log holds it, of a transaction whose commit it lacks: nobody with read_committed gets it."""
    DROPPED = "dropped"
    """The same, and the transaction was aborted there since: nobody with read_committed will ever get it."""
    ABORTED = "aborted"
    OPEN = "open"
    """Its transaction has no end in the file, or one that cannot be told."""
    DELETED = "deleted"
    """The present leader's log held it, and begins behind it: retention or DeleteRecords took it on purpose, from
    whichever replica held it."""
    UNKNOWN = "unknown"
    """The present leader's log begins behind it, and whether it ever held it is not known."""
    MARKER = "marker"
    OUTSIDE = "outside"
    """The first or last batch holds it, and it is not among the offsets that were asked for."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One record of a tail, and what becomes of it."""

    verdict: Verdict
    tail: SavedTail
    header: BatchHeader
    record: Record

    @property
    def leader_epoch(self) -> int:
        assert self.header.partition_leader_epoch is not None
        return self.header.partition_leader_epoch


class Survivors:
    """Which records the present leader's log holds, by its epochs: only one leader writes in an epoch.

    Args:
        log: the leader's, with its lineage.

    Raises:
        RefusedError: its epochs or its start are not known.
    """

    def __init__(self, where: str, log: ReplicaLog) -> None:
        parts = segments(log)
        if log.lineage is None or parts is None or log.log_start is None:
            raise RefusedError(
                f"{where}: the leader's log does not tell its epochs"
                f"{f' ({log.last_epoch_error})' if log.last_epoch_error else ''}: which records survived is not known",
                next_step="give the principal READ on the topic, or replay elsewhere with --to TOPIC --all-records",
            )
        self.leader = log.replica
        self._start = log.log_start
        self._parts: tuple[Segment, ...] = parts

    def begins_behind(self, offset: int) -> bool:
        """Whether retention or DeleteRecords has taken this offset from the log: its start moves for nothing else."""
        return offset < self._start

    def held(self, leader_epoch: int, offset: int) -> bool | None:
        """Whether the log held this record before it began behind it; None where its epochs do not tell: all that is
        left of it is newer."""
        older = [part for part in self._parts if part.epoch <= leader_epoch]
        if not older:
            return None
        return older[-1].epoch == leader_epoch and offset < older[-1].end

    def hold(self, leader_epoch: int, offset: int) -> bool:
        """Whether the log holds this record."""
        return any(part.epoch == leader_epoch and part.start <= offset < part.end for part in self._parts)


class Target:
    """The log that gets the records: a copy whose first original it holds is not replayed to it.

    Args:
        log: the leader's, with its lineage.
    """

    def __init__(self, cluster_id: str | None, state: PartitionState, log: ReplicaLog) -> None:
        self._name = cluster_id, state.topic, state.partition, state.topic_id
        self._parts = (segments(log) or ()) if log.lineage is not None else ()

    def holds(self, origin: Origin) -> bool:
        """Whether the log holds this very record; False where the topic's id does not tell that it is of this topic."""
        name = origin.cluster_id, origin.topic, origin.partition, origin.topic_id
        return (
            origin.topic_id is not None
            and name == self._name
            and any(
                part.epoch == origin.leader_epoch and part.start <= origin.offset < part.end for part in self._parts
            )
        )


@dataclass(slots=True)
class Judge:
    """Judges the records of one partition's tails.

    Args:
        survivors: None where the log that the records are lost from is not asked: all of them count as lost.
        newest_epoch: for compacted topics, as in `kelr.rescue.scan.Scan`.
        done_through: (number of the tail, offset) up to which everything has been replayed.
        cluster_id: of the cluster that the records come from.
        target: the log that gets the records, for those that it held before they were first replayed.
        include_cut: records of transactions whose commit the leader lacks, once they are aborted there.
        markers: how transactions ended in the leader's log, as in `kelr.rescue.scan.Scan`; None where that is another
            log than the one that gets the records.
    """

    survivors: Survivors | None
    replayed: Origins
    newest_epoch: Mapping[KeyDigest, int] = field(default_factory=dict)
    include_aborted: bool = False
    include_open: bool = False
    done_through: tuple[int, int] | None = None
    cluster_id: str | None = None
    target: Target | None = None
    include_cut: bool = False
    markers: Mapping[int, Sequence[tuple[int, Outcome]]] | None = field(default_factory=dict)
    _seen: Origins = field(default_factory=Origins)

    def tail(self, dump: Dump, tail: SavedTail, number: int, transactions: Transactions) -> Iterator[Judged]:
        """Every record of a tail with its verdict, in order. Tails of a partition are judged in the order of their
        numbers, each once.

        Raises:
            RefusedError: it cannot be told what should become of a record.
        """
        for batch in dump.batches(tail):
            outcome = transactions.outcome(batch.header)
            try:
                records = read_records(batch.data, 0, batch.header)
            except UnreadableBatchError as error:
                raise RefusedError(
                    f"{tail.address}: the batch at offset {batch.header.base_offset} cannot be read: {error}",
                    next_step="leave this partition out: name the others behind the file",
                ) from error
            lost = self._lost_commit(tail, batch.header, transactions, outcome)
            for record in records:
                verdict = self._verdict(tail, number, batch.header, record, outcome, lost_commit=lost)
                yield Judged(verdict, tail, batch.header, record)

    def _lost_commit(
        self, tail: SavedTail, header: BatchHeader, transactions: Transactions, outcome: Outcome | None
    ) -> Verdict | None:
        """What becomes of a batch that survives without the commit of its transaction: `HANGING` or `DROPPED`; None
        where it was not committed, or the leader has its commit."""
        marker = transactions.marker(header)
        if tail.lost_from is None or self.survivors is None or outcome is not Outcome.COMMITTED or marker is None:
            return None
        kept = marker.leader_epoch is not None and not self.survivors.begins_behind(marker.offset)
        if kept and marker.leader_epoch is not None and self.survivors.hold(marker.leader_epoch, marker.offset):
            return None
        if self.markers is None:
            return Verdict.DROPPED
        ends = self.markers.get(header.producer_id or 0, ())
        ended = next((how for offset, how in ends if offset > header.last_offset), None)
        return {Outcome.COMMITTED: None, Outcome.ABORTED: Verdict.DROPPED}.get(ended or Outcome.OPEN, Verdict.HANGING)

    def _verdict(
        self,
        tail: SavedTail,
        number: int,
        header: BatchHeader,
        record: Record,
        outcome: Outcome | None,
        *,
        lost_commit: Verdict | None,
    ) -> Verdict:
        if header.control:
            return Verdict.MARKER
        if not tail.from_offset <= record.offset < tail.to_offset:
            return Verdict.OUTSIDE
        epoch = header.partition_leader_epoch
        if epoch is None:
            raise RefusedError(
                f"{tail.address}: offset {record.offset} carries no leader epoch: it cannot be told from another"
                " record of that offset",
                next_step="leave this partition out: name the others behind the file",
            )
        if self.survivors is not None and self.survivors.begins_behind(record.offset):
            held = self._held(self.survivors, tail, epoch, record.offset)
            if held is not False:
                return Verdict.DELETED if held else Verdict.UNKNOWN
        if self.survivors is not None and self.survivors.hold(epoch, record.offset):
            if lost_commit is None:
                return Verdict.SURVIVES
            if lost_commit is Verdict.HANGING or not self.include_cut:
                again = any(name in self.replayed for name in self._names(tail, epoch, record))
                return Verdict.ALREADY if again else lost_commit
        if outcome is Outcome.ABORTED and not self.include_aborted:
            return Verdict.ABORTED
        if outcome in {Outcome.OPEN, Outcome.UNKNOWN} and not self.include_open:
            return Verdict.OPEN
        if record.key is not None and self.newest_epoch.get(digest_of(record.key), -1) > epoch:
            return Verdict.OVERWRITTEN
        return self._already_or_replay(tail, number, epoch, record)

    @staticmethod
    def _held(survivors: Survivors, tail: SavedTail, leader_epoch: int, offset: int) -> bool | None:
        """Whether the leader's log held this record before it began behind it: by its epochs, or as the two logs were
        compared when the record was saved."""
        held = None if tail.perhaps_held_by == survivors.leader else survivors.held(leader_epoch, offset)
        if held is None and tail.lacked_by == survivors.leader:
            return offset < (tail.from_offset if tail.lost_from is None else tail.lost_from)
        return held

    def _names(self, tail: SavedTail, epoch: int, record: Record) -> tuple[Origin, ...]:
        """Where the record is, and where it was before: a record that was replayed is still the one that it was."""
        here = Origin(self.cluster_id, tail.topic, tail.partition, epoch, record.offset, tail.topic_id)
        return here, *read_origins(record.headers)

    def _already_or_replay(self, tail: SavedTail, number: int, epoch: int, record: Record) -> Verdict:
        done = self.done_through is not None and (number, record.offset) <= self.done_through
        names = self._names(tail, epoch, record)
        if self.target is not None and any(map(self.target.holds, names[1:])):
            return Verdict.SURVIVES
        if done or any(name in self.replayed or name in self._seen for name in names):
            return Verdict.ALREADY
        for name in names:
            self._seen.add(name)
        for header, _ in record.headers:
            if not _is_utf8(header):
                raise RefusedError(
                    f"offset {record.offset} has a header whose name is not UTF-8, which no producer here can write",
                    next_step="leave this partition out: name the others behind the file",
                )
        return Verdict.REPLAY


def _is_utf8(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
