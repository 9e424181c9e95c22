"""Compares replicas' logs: which is the best, where two of them part, and what one lacks of the others.

A log is a run of segments, one for each leader epoch. Only one leader writes in an epoch, so two logs that hold the
same epoch hold the same records in it, up to where the shorter one ends: a record's identity is (epoch, offset).

Source: KIP-101 and KIP-279 (truncation by leader epoch); KIP-966 "Unclean recovery" (the best log is the one with the
highest last epoch, then the highest log end offset).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import LogInfo
from kelr.model import (
    Cluster,
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    SavedLog,
)


@dataclass(frozen=True, slots=True)
class Segment:
    """The records of one leader epoch in one log: offsets `[start, end)`."""

    epoch: int
    start: int
    end: int


def segments(log: ReplicaLog) -> tuple[Segment, ...] | None:
    """The log as segments, oldest first; None where its epochs are not known.

    A log whose lineage was not asked for counts as one segment of its last epoch: two logs that end in the same epoch
    agree on everything before it.
    """
    start = log.log_start or 0
    if log.is_empty:
        return ()
    if log.lineage is not None:
        parts = []
        for entry in log.lineage:
            end = min(entry.end_offset, log.log_end)
            if end > start:
                parts.append(Segment(entry.epoch, start, end))
                start = end
        return tuple(parts)
    if log.last_epoch is None:
        return None
    return (Segment(log.last_epoch, start, log.log_end),)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two logs hold the same records."""

    end: int
    """Up to this offset (exclusive)."""
    shown: bool
    """Whether both still hold records of one epoch up to there. Else deletion has left them no epoch in common, and
    that what is gone from one was the same as what the other still has is Kafka's assumption."""


def agreement(one: ReplicaLog, other: ReplicaLog) -> int | None:
    """The offset up to which (exclusive) two logs hold the same records; None where that is not known.

    It is where Kafka truncates a follower with log `one` when the leader has log `other`: the lower of both ends of the
    newest epoch that both hold. Where retention has left no epoch in common, starts stand in for the ends that are
    gone, as in LeaderEpochFileCache.endOffsetFor; the order of the two logs may matter then.
    """
    agreed = agreed_between(one, other)
    return None if agreed is None else agreed.end


def agreed_between(one: ReplicaLog, other: ReplicaLog) -> Agreement | None:
    """`agreement`, with how it is known."""
    if one.is_empty or other.is_empty:
        return Agreement(min(one.log_end, other.log_end), shown=False)
    if one.last_epoch is None or other.last_epoch is None:
        return None
    parts, other_parts = segments(one) or (), segments(other) or ()
    asked = one.last_epoch
    while True:
        answer = _end_of_epoch(other, other_parts, asked)
        own = None if answer is None else _end_of_epoch(one, parts, answer[0])
        if answer is None or own is None:
            return None
        if own[0] == answer[0]:
            shown = all(any(part.epoch == own[0] for part in held) for held in (parts, other_parts))
            return Agreement(min(own[1], answer[1]), shown)
        asked = own[0]


def _end_of_epoch(log: ReplicaLog, parts: Sequence[Segment], epoch: int) -> tuple[int, int] | None:
    """The newest epoch of the log that is not above `epoch`, with its end; `epoch` itself, ending where the log begins,
    where all that the log still holds is newer; None where that takes a lineage that is not known."""
    for segment in reversed(parts):
        if segment.epoch <= epoch:
            return segment.epoch, segment.end
    return (epoch, parts[0].start) if parts and log.lineage is not None else None


def diverges_at(one: ReplicaLog, other: ReplicaLog) -> int | None:
    """The first offset at which two logs hold different records; None where one continues the other, or not known."""
    agreed = agreement(one, other)
    return agreed if agreed is not None and agreed < min(one.log_end, other.log_end) else None


def missing(holder: ReplicaLog, lacking: ReplicaLog, *, below: int | None = None) -> frozenset[tuple[int, int, int]]:
    """What `holder` holds and `lacking` does not, as (epoch, first offset, end offset); `below` cuts off the rest.

    Both logs must have a known agreement.
    """
    return records_of(holder, agreement(holder, lacking) or 0, below)


Ranges = tuple[tuple[int, int], ...]
"""Offsets `[first, last]`, in order, apart from each other."""


def ranges_of(parts: Iterable[tuple[int, int]]) -> Ranges:
    """Offsets `[start, end)` in any order, as ranges that do not touch."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if found and start <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], end - 1))
        else:
            found.append((start, end - 1))
    return tuple(found)


def without_ranges(start: int, end: int, held: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is left of the offsets `[start, end)` without these others, which are of the same kind."""
    rest = []
    for first, last in sorted(held):
        if first > start:
            rest.append((start, min(first, end)))
        start = max(start, last)
        if start >= end:
            break
    rest.append((start, end))
    return [(first, last) for first, last in rest if last > first]


def committed_and_gone(then: ReplicaLog, now: ReplicaLog, *, by_epochs: bool) -> tuple[int, int] | None:
    """Offsets `[start, end)` that were committed by the high watermark of a log, and that the log of who leads later
    does not hold; None: none are known. What was deleted on purpose in between, and truncated then, is among them.

    Args:
        then: a log that held everything below its high watermark.
        now: the leader's, read later, of the same topic id.
        by_epochs: compare the leader epochs of both, too. False where a log may not show all of its own, since the
            cleaner has left no record of one, or remote storage alone has it: only what is beyond its end is gone then.
    """
    end = min(then.high_watermark or 0, then.log_end)
    agreed = agreement(then, now) if by_epochs else None
    start = max(now.log_end if agreed is None else agreed, then.log_start or 0, now.log_start or 0)
    return (start, end) if start < end else None


def records_of(log: ReplicaLog, first: int = 0, below: int | None = None) -> frozenset[tuple[int, int, int]]:
    """What a log holds from an offset on, as (epoch, first offset, end offset)."""
    found = []
    for segment in segments(log) or ():
        start, end = max(segment.start, first), segment.end if below is None else min(segment.end, below)
        if end > start:
            found.append((segment.epoch, start, end))
    return frozenset(found)


def without_parts(
    parts: Iterable[tuple[int, int, int]], saved: Iterable[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Records, less those that were saved already."""
    rest = sorted(parts)
    for epoch, start, end in saved:
        rest = [
            piece
            for at_epoch, first, last in rest
            for piece in (
                [(at_epoch, first, last)]
                if at_epoch != epoch or last <= start or first >= end
                else [(at_epoch, first, start), (at_epoch, end, last)]
            )
            if piece[2] > piece[1]
        ]
    return rest


def saved_whole(saved: SavedLog, lacking: ReplicaLog | None) -> bool:
    """Whether a rescue file has all that the log which it is of held, as it was read, and another log lacks; where the
    two cannot be compared, or there is no other, all of it."""
    everything = records_of(saved.log)
    alike = lacking is not None and agreement(saved.log, lacking) is not None
    lacked = missing(saved.log, lacking) if lacking is not None and alike else everything
    return bool(everything) and not without_parts(lacked, saved.parts | saved.covered)


def count_distinct(ranges: Iterable[tuple[int, int, int]]) -> int:
    """How many distinct (epoch, offset) pairs the ranges cover."""
    total = 0
    covered: tuple[int, int] | None = None
    for epoch, start, end in sorted(ranges):
        if covered is not None and covered[0] == epoch:
            start = max(start, covered[1])  # noqa: PLW2901 - the part that an earlier range covers is counted once
        if end > start:
            total += end - start
            covered = (epoch, end)
    return total


@dataclass(frozen=True, slots=True)
class KnownLogs:
    """The logs of one partition's replicas, as far as they were heard, with the best and the longest of them."""

    heard: Mapping[int, ReplicaLog] = field(default_factory=dict)
    unheard: Mapping[int, LogUnavailable] = field(default_factory=dict)
    newer_leader_epoch: int | None = None
    """A leader epoch above the partition state's, seen by a broker: then the state is the older of the two."""
    ranked: Mapping[int, ReplicaLog] = field(init=False, repr=False, compare=False)
    """The heard logs that can be compared: those that tell their last epoch, or hold no records."""
    best: ReplicaLog | None = field(init=False, repr=False, compare=False)
    """The best log that can be ranked: highest last epoch, then highest log end, then first in the assignment."""
    longest: ReplicaLog | None = field(init=False, repr=False, compare=False)
    """The ranked log with the highest log end, whatever its epochs."""
    _agreements: dict[tuple[int, int], Agreement | None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # Asked for many times in a decision, so worked out once.
        ranked = {replica: log for replica, log in self.heard.items() if log.is_empty or log.last_epoch is not None}
        ranked = _with_every_epoch(ranked)
        object.__setattr__(self, "ranked", ranked)
        object.__setattr__(self, "best", max(ranked.values(), key=_rank, default=None))
        longest = max(ranked.values(), key=lambda log: log.log_end, default=None)
        object.__setattr__(self, "longest", longest)

    @property
    def unranked(self) -> tuple[int, ...]:
        """Replicas whose log was not heard, or tells no epochs: each may hold more than the best log that is known."""
        return tuple(sorted(replica for replica in {*self.heard, *self.unheard} if replica not in self.ranked))

    def lost_directory(self, replica: int) -> bool:
        """Whether the replica's broker answered that the log's directory has failed: what the replica holds when it is
        back, an empty log perhaps, is not what its place in ISR or ELR stands for."""
        answer = self.unheard.get(replica)
        return answer is not None and answer.reason is LogUnavailableReason.STORAGE_ERROR

    def doubtful(self, replica: int) -> bool:
        """Whether the replica's disk was read and contradicts its place in ISR or ELR, or as last known leader."""
        answer = self.unheard.get(replica)
        return answer is not None and answer.reason in {LogUnavailableReason.DOUBTFUL, LogUnavailableReason.LACKING}

    def read_lacking(self, replica: int) -> bool:
        """Whether the disk of a `doubtful` one lacks what another replica knows to be committed: unless the broker has
        run since, its log was cut."""
        answer = self.unheard.get(replica)
        return answer is not None and answer.reason is LogUnavailableReason.LACKING

    def best_of(self, replicas: Iterable[int]) -> ReplicaLog | None:
        """The best ranked log of these replicas; the first one of equals."""
        return max((self.ranked[replica] for replica in replicas if replica in self.ranked), key=_rank, default=None)

    def is_best(self, replica: int) -> bool:
        """Whether this replica's log is as good as the best one."""
        best, log = self.best, self.ranked.get(replica)
        return best is not None and log is not None and _rank(log) == _rank(best)

    def agreement(self, one: int, other: int) -> int | None:
        """`agreement` of the ranked logs of two replicas."""
        agreed = self.agreed(one, other)
        return None if agreed is None else agreed.end

    def agreed(self, one: int, other: int) -> Agreement | None:
        """`agreed_between` the ranked logs of two replicas."""
        pair = one, other
        if pair not in self._agreements:
            self._agreements[pair] = agreed_between(self.ranked[one], self.ranked[other])
        return self._agreements[pair]

    def missing(self, holder: int, lacking: int, *, below: int | None = None) -> frozenset[tuple[int, int, int]]:
        """`missing` of the ranked logs of two replicas, without what was deleted on purpose (`deleted_below`)."""
        return records_of(self.ranked[holder], self._missing_from(holder, lacking), below)

    def perhaps_missing(
        self, holder: int, lacking: int, *, shown_only: bool = False
    ) -> frozenset[tuple[int, int, int]]:
        """What `missing` leaves out although it may be missing: records above the holder's high watermark, of which
        the other one, or the log that was deleted, shows no epoch any more; and records before the other one's start,
        of which the name of a segment alone tells.

        Args:
            shown_only: also such records below that high watermark: what was committed may be lost by now.
        """
        log, same, end = self.ranked[holder], self._same(holder, lacking), self._missing_from(holder, lacking)
        shown = same.end if same is not None and same.shown else 0
        deleted = self.deleted_below(holder, shown_only=True)
        sure = max(shown, deleted, 0 if shown_only else log.high_watermark or 0)
        other = self.ranked[lacking]
        begins = other.log_start if other.local_start is None else other.local_start
        first = max(deleted, log.local_start or 0)
        before = records_of(log, first, min(begins or 0, end)) if other.start_by_name else frozenset()
        return records_of(log, sure, end) | before

    def _missing_from(self, holder: int, lacking: int) -> int:
        same = self._same(holder, lacking)
        return max(0 if same is None else same.end, self.deleted_below(holder))

    def _same(self, one: int, other: int) -> Agreement | None:
        """`agreed`; where deletion has left the two no epoch in common, by a third log that has some with either: where
        that parts from one of them below where it parts from the other, so do the two."""
        agreed = self.agreed(one, other)
        if agreed is None or agreed.shown:
            return agreed
        for third in self.ranked:
            if third in {one, other}:
                continue
            left, right = self.agreed(one, third), self.agreed(third, other)
            if left is not None and right is not None and left.shown and right.shown and left.end != right.end:
                return Agreement(min(agreed.end, left.end, right.end), shown=True)
        return agreed

    def deleted_below(self, replica: int, *, shown_only: bool = False) -> int:
        """The offset below which the records of this replica's log were deleted on purpose, by what another one shows
        that held the same and begins later; its own log start where none does.

        A log begins later by retention, DeleteRecords, or by following a leader of which that holds: all of them only
        delete what is below the high watermark (`UnifiedLog.maybeIncrementLogStartOffset`, `deletableSegments`).

        Args:
            shown_only: leave out what deletion itself has made uncertain (`Agreement.shown`).
        """
        own = self.ranked[replica].log_start or 0
        starts = [
            min(other.log_start, agreed.end)
            for other in self.ranked.values()
            if other.log_start is not None and other.log_start > own and other.replica != replica
            if not other.start_by_name or other.local_start is not None
            for agreed in [self._same(replica, other.replica)]
            if agreed is not None and (agreed.shown or not shown_only)
        ]
        return max(starts, default=own)

    def begins_anew(self, replica: int) -> int | None:
        """Of a log with remote storage: where another one begins that goes on before it, if this one was truncated to
        before its first segment, and so begins there (docs/remote-storage.md). None: it was not.

        Then it begins where one of the other's leader epochs ends. Retention moves a start to where a segment ends.
        """
        start = self.ranked[replica].log_start or 0
        starts = (
            other.log_start or 0
            for other in self.ranked.values()
            if any(part.end == start for part in segments(other) or ())
        )
        return min((one for one in starts if one < start), default=None)

    def perhaps_truncated(self, replica: int) -> frozenset[tuple[int, int, int]]:
        """What this replica may truncate to follow a leader whose log nobody read, as long as that one holds everything
        committed: what is above its own high watermark, and what another log that was heard holds otherwise, since no
        leader holds both. As (epoch, first offset, end offset); empty where neither is known."""
        log = self.ranked[replica]
        parting = (diverges_at(log, other) for other in self.ranked.values() if other is not log)
        starts = [at for at in (log.high_watermark, *parting) if at is not None]
        return records_of(log, min(starts), None) if starts else frozenset()

    @property
    def gone(self) -> Ranges:
        """Offsets that were committed by what a disk has saved, and that no ranked log holds: the high watermark in its
        checkpoint lies beyond the log's end. Without those that may have been deleted on purpose."""
        start = max((log.log_start or 0 for log in self.heard.values()), default=0)
        return ranges_of(
            part
            for log in self.heard.values()
            if log.saved_high_watermark is not None
            for part in without_ranges(
                max(log.log_end, start), log.saved_high_watermark, self._holding_what_was_cut(log)
            )
        )

    def _holding_what_was_cut(self, cut: ReplicaLog) -> Iterable[tuple[int, int]]:
        """Offsets at which some log holds a record that may be the one that this log has lost, by its epoch."""
        newest = cut.saved_epoch
        for log in self.ranked.values():
            for part in segments(log) or ():
                if part.epoch >= (cut.last_epoch or 0) and (newest is None or part.epoch <= newest):
                    yield part.start, part.end

    def known_committed(self, holder: int) -> int:
        """The offset up to which (exclusive) the records of this replica's ranked log are known to be committed, by its
        own high watermark, or by what another one's disk has saved and lost, where that shows the same epochs."""
        log = self.ranked[holder]
        known = log.high_watermark or 0
        for other in self.heard.values():
            saved, epoch = other.saved_high_watermark, other.saved_epoch
            if saved is None or epoch is None or epoch != other.last_epoch or other.replica not in self.ranked:
                continue
            agreed = self.agreement(holder, other.replica)
            ends = [part.end for part in segments(log) or () if part.epoch == epoch]
            if agreed == other.log_end and ends:
                known = max(known, min(saved, ends[0]))
        return known

    def lacks_committed(self, replica: int) -> bool:
        """Whether records are known to have been committed that this replica's ranked log does not hold, those included
        that have been deleted on purpose since: whoever held everything committed has lost data then."""
        own = self.ranked[replica]
        if own.saved_high_watermark is not None:
            return True
        for other in self.heard.values():
            agreed = self.agreed(other.replica, replica) if other.replica in self.ranked else None
            if agreed is None:
                continue
            if agreed.end < min(self.known_committed(other.replica), other.log_end):
                return True
            saved, start = other.saved_high_watermark or 0, max(other.log_end, own.log_start or 0)
            mine = KnownLogs({replica: own})
            if without_ranges(start, saved, mine._holding_what_was_cut(other)):
                return True
        return False

    def behind_best(self, replica: int) -> int | None:
        """Offsets of the best log that this replica's log does not hold; None where that is not known."""
        best = self.best
        if best is None or replica not in self.ranked or self.agreement(best.replica, replica) is None:
            return None
        return count_distinct(self.missing(best.replica, replica))


def _with_every_epoch(logs: dict[int, ReplicaLog]) -> dict[int, ReplicaLog]:
    """The logs, each with the epochs that another one shows for the records which both hold.

    The same offsets would count twice: a log whose lineage was not asked for counts as one segment. And a follower
    learns epochs from batches: where it copied a compacted log, it knows nothing of an epoch of which the cleaner had
    left no record, and counts that gap to the epoch before (LeaderEpochFileCache.assign).
    """
    logs = {replica: _with_lineage_of_another(log, logs.values()) for replica, log in logs.items()}
    lineages = {replica: log.lineage for replica, log in logs.items() if log.lineage}
    if len(set(lineages.values())) < 2:
        return logs
    filled = dict(logs)
    for replica, log in logs.items():
        known = {entry.epoch for entry in log.lineage or ()}
        for other in logs.values():
            lacking = [entry for entry in other.lineage or () if entry.epoch not in known]
            if log.lineage and any(entry.epoch < (log.last_epoch or 0) for entry in lacking):
                filled[replica] = _with_epochs_of(filled[replica], other, agreement(log, other) or 0)
    return filled


def _with_lineage_of_another(log: ReplicaLog, others: Iterable[ReplicaLog]) -> ReplicaLog:
    """The log, where its lineage is not known, with that of the one which shows most before the epoch that it ends in:
    two logs that hold the same epoch agree on everything before it."""
    if log.lineage is not None or log.last_epoch is None:
        return log
    holding = (other for other in others if any(entry.epoch == log.last_epoch for entry in other.lineage or ()))
    other = min(holding, key=lambda one: (one.log_start or 0, -len(one.lineage or ())), default=None)
    if other is None:
        return log
    before = (entry for entry in other.lineage or () if entry.epoch < log.last_epoch)
    return replace(log, lineage=(*before, EpochEnd(log.last_epoch, log.log_end)))


def _with_epochs_of(log: ReplicaLog, other: ReplicaLog, agreed: int) -> ReplicaLog:
    """The log with the newer of both epochs for each offset below `agreed`, where the two part."""
    parts, other_parts = segments(log) or (), segments(other) or ()
    bounds = {part.end for part in parts} | {min(part.end, agreed) for part in other_parts if part.start < agreed}
    bounds |= {part.start for part in other_parts if part.start < agreed}
    ends: dict[int, int] = {}
    for end in sorted(bound for bound in bounds if bound > (log.log_start or 0)):
        shown = [part.epoch for part in parts if part.start < end <= part.end]
        shown += [part.epoch for part in other_parts if part.start < end <= min(part.end, agreed)]
        if shown:
            ends[max(shown)] = end
    return replace(log, lineage=tuple(EpochEnd(epoch, end) for epoch, end in sorted(ends.items())))


def _rank(log: ReplicaLog) -> tuple[int, int]:
    return LogInfo(log.last_epoch, log.log_end).rank


def verified(answer: LogAnswer, cluster: Cluster) -> LogAnswer:
    """The answer, unless it comes from another incarnation of the broker than the registered one: then it is stale.

    KIP-966: a broker epoch that differs from the registration's tells that the broker rebooted since. Where either of
    the two is not known, as on released Kafka, the answer is taken as it is.
    """
    broker = cluster.broker(answer.replica)
    registered = None if broker is None else broker.broker_epoch
    if (
        isinstance(answer, LogUnavailable)
        or None in {answer.broker_epoch, registered}
        or answer.broker_epoch == registered
    ):
        return answer
    detail = f"answered with broker epoch {answer.broker_epoch}; the broker is registered with {registered}"
    return _stale(answer, detail)


def _stale(log: ReplicaLog, detail: str) -> LogUnavailable:
    """How its broker stopped is told all the same: it is no part of the log."""
    return LogUnavailable(log.replica, LogUnavailableReason.STALE, detail, log.read_at_ms, log.unclean_shutdown)


def rank_logs(state: PartitionState, answers: Sequence[LogAnswer]) -> KnownLogs:
    """Sort the answers of a partition's replicas into heard and not heard.

    An answer with an older leader epoch than the partition's is stale and counts as not heard (KIP-966: the manager
    rejects it and asks again). A replica without an answer was not asked.
    """
    heard: dict[int, ReplicaLog] = {}
    unheard: dict[int, LogUnavailable] = {}
    newer: int | None = None
    by_replica = {answer.replica: answer for answer in answers}
    for replica in state.replicas:
        answer = by_replica.get(replica)
        if answer is None:
            unheard[replica] = LogUnavailable(replica, LogUnavailableReason.NOT_ASKED, "its log was not asked for")
        elif isinstance(answer, LogUnavailable):
            unheard[replica] = answer
        elif answer.current_leader_epoch is not None and answer.current_leader_epoch < state.leader_epoch:
            detail = (
                f"answered with leader epoch {answer.current_leader_epoch}; the partition's is {state.leader_epoch}"
            )
            unheard[replica] = _stale(answer, detail)
        else:
            heard[replica] = answer
            if answer.current_leader_epoch is not None and answer.current_leader_epoch > state.leader_epoch:
                newer = max(newer or 0, answer.current_leader_epoch)
    return KnownLogs(heard, unheard, newer)
