"""One replica's log on paper: records with the epoch that wrote them, and what of them survives a power loss.

A frozen value; each function gives the log after one thing happened to it. A record has an id of its own, so that what
was lost can be told exactly, whatever offset another record has taken since.

Source: KIP-101 and KIP-279 (truncation by leader epoch), UnifiedLog of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from enum import StrEnum

from kelr.engine.logs import agreement
from kelr.model import EpochEnd, ReplicaLog


class Acks(StrEnum):
    """Which acknowledgement a producer asked for."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


@dataclass(frozen=True, slots=True)
class Record:
    """One record as its leader wrote it; the same value in every log that holds it."""

    epoch: int
    """The leader epoch that wrote it."""
    id: int
    """Different from that of every other record of the cluster."""
    acks: Acks
    compacted: bool = False
    """Whether the log cleaner has taken it from this log: what is left is a gap at its offset. Its epoch stays."""


@dataclass(frozen=True, slots=True)
class SimulatedLog:
    """A replica's log. Offsets are Kafka's; the record at `records[i]` has the offset `start + i`."""

    records: tuple[Record, ...] = ()
    start: int = 0
    """Log start offset: what retention or DeleteRecords left."""
    flushed: int = 0
    """Records before this offset are on the disk; a power loss takes the others."""
    high_watermark: int = 0
    """The high watermark as this replica knows it."""
    deleted_epoch: int | None = None
    """The epoch of the last record that retention took; it stays the log's last epoch until another is written."""

    @property
    def end(self) -> int:
        """Log end offset (LEO)."""
        return self.start + len(self.records)

    @property
    def last_epoch(self) -> int | None:
        """Last written leader epoch; None for a log that never held a record."""
        return self.records[-1].epoch if self.records else self.deleted_epoch

    @property
    def lineage(self) -> tuple[EpochEnd, ...]:
        """The epochs of its records, oldest first, each with its end offset."""
        ends = {record.epoch: offset for offset, record in enumerate(self.records, self.start + 1)}
        return tuple(EpochEnd(epoch, end) for epoch, end in ends.items())

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(record.id for record in self.records)

    def cleaned(self, offsets: Container[int]) -> SimulatedLog:
        """The log after compaction took these records: below the high watermark, and never the last one, since the
        cleaner does not touch the active segment."""
        most = min(self.high_watermark, self.end - 1)
        kept = (
            replace(record, compacted=record.compacted or (offset < most and offset in offsets))
            for offset, record in enumerate(self.records, self.start)
        )
        return replace(self, records=tuple(kept))

    def below(self, offset: int) -> tuple[Record, ...]:
        """The records before an offset."""
        return self.records[: max(offset - self.start, 0)]

    def answer(self, replica: int, *, leader_epoch: int | None = None, broker_epoch: int | None = None) -> ReplicaLog:
        """The log as kelr would read it from this replica.

        Args:
            leader_epoch: the partition's leader epoch as the broker knows it.
            broker_epoch: the epoch with which the broker is registered.
        """
        return ReplicaLog(
            replica=replica,
            log_end=self.end,
            last_epoch=self.last_epoch,
            current_leader_epoch=leader_epoch,
            high_watermark=self.high_watermark,
            log_start=self.start,
            lineage=self.lineage,
            broker_epoch=broker_epoch,
            source="simulation",
        )


def appended(log: SimulatedLog, records: tuple[Record, ...]) -> SimulatedLog:
    """The log with records at its end, not flushed yet."""
    return replace(log, records=log.records + records)


def truncated(log: SimulatedLog, end: int) -> SimulatedLog:
    """The log without its records from offset `end` on; a log that starts later than that becomes empty."""
    if end >= log.end:
        return log
    start = min(log.start, end)
    return replace(
        log,
        records=log.below(end),
        start=start,
        flushed=min(log.flushed, end),
        high_watermark=min(log.high_watermark, end),
        deleted_epoch=log.deleted_epoch if start == log.start else None,
    )


def trimmed(log: SimulatedLog, start: int) -> SimulatedLog:
    """The log after retention or DeleteRecords took its records before `start`."""
    if start <= log.start:
        return log
    gone = log.below(start)
    return replace(
        log,
        records=log.records[len(gone) :],
        start=min(start, log.end),
        deleted_epoch=gone[-1].epoch if gone else log.deleted_epoch,
    )


def flushed(log: SimulatedLog) -> SimulatedLog:
    """The log with all its records on the disk."""
    return log if log.flushed == log.end else replace(log, flushed=log.end)


def after_power_loss(log: SimulatedLog) -> SimulatedLog:
    """What is left when the page cache is lost: the records that were flushed (KIP-966, "lossy unclean shutdown")."""
    return truncated(log, max(log.flushed, log.start))


def parts_from(follower: SimulatedLog, leader: SimulatedLog) -> int:
    """The offset to which a follower truncates its log before it fetches from this leader."""
    if follower.end < leader.start:
        return leader.start
    # One record at one offset: so is everything before it. This is the usual case, and spares the two lineages.
    last = follower.end - 1 - leader.start
    if follower.records and 0 <= last < len(leader.records) and leader.records[last].id == follower.records[-1].id:
        return follower.end
    if not follower.records or not leader.records:
        return min(follower.end, leader.end)
    agreed = agreement(follower.answer(0), leader.answer(1))
    return min(follower.end, leader.end) if agreed is None else agreed


def _fetched(records: tuple[Record, ...], epoch: int | None) -> tuple[Record, ...]:
    """Records as a follower gets them: it learns epochs from batches, and so knows nothing of one whose records have
    all been compacted, and the gap belongs to the epoch before (LeaderEpochFileCache.assign)."""
    if not any(record.compacted for record in records):
        return records
    copied = []
    for at, record in enumerate(records):
        if not record.compacted:
            epoch = record.epoch
        elif epoch is None:
            epoch = next((later.epoch for later in records[at:] if not later.compacted), record.epoch)
        copied.append(replace(record, epoch=epoch) if record.compacted else record)
    return tuple(copied)


def following(follower: SimulatedLog, leader: SimulatedLog, *, limit: int | None = None) -> SimulatedLog:
    """The follower's log after one fetch: truncated to where the logs part, then with the leader's next records.

    Args:
        limit: how many records the answer holds at most; None for all.
    """
    if follower.end < leader.start:
        # OFFSET_OUT_OF_RANGE: the follower gives up its log and starts where the leader's begins.
        follower = SimulatedLog(start=leader.start, flushed=leader.start, high_watermark=leader.start)
    follower = truncated(follower, parts_from(follower, leader))
    first = follower.end - leader.start
    copied = _fetched(leader.records[first : None if limit is None else first + limit], follower.last_epoch)
    follower = trimmed(appended(follower, copied) if copied else follower, leader.start)
    known = max(follower.high_watermark, min(leader.high_watermark, follower.end), follower.start)
    return follower if known == follower.high_watermark else replace(follower, high_watermark=known)
