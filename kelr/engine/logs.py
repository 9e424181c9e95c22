"""Compares replicas' logs: which is the best, where two of them part, and what one lacks of the others.

A log is a run of segments, one for each leader epoch. Only one leader writes in an epoch, so two logs that hold the
same epoch hold the same records in it, up to where the shorter one ends: a record's identity is (epoch, offset).

Source: KIP-101 and KIP-279 (truncation by leader epoch); KIP-966 "Unclean recovery" (the best log is the one with the
highest last epoch, then the highest log end offset).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.controller import LogInfo
from kelr.model import Cluster, LogAnswer, NotHeard, PartitionState, ReplicaLog, Unheard


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


def agreement(one: ReplicaLog, other: ReplicaLog) -> int | None:
    """The offset up to which (exclusive) two logs hold the same records; None where that is not known.

    It is where Kafka truncates a follower with log `one` when the leader has log `other`: the lower of both ends of the
    newest epoch that both hold. Where retention has left no epoch in common, starts stand in for the ends that are
    gone, as in LeaderEpochFileCache.endOffsetFor; the order of the two logs may matter then.
    """
    if one.is_empty or other.is_empty:
        return min(one.log_end, other.log_end)
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
            return min(own[1], answer[1])
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

    Offsets before the start of a log that holds records count as deleted by retention, not as missing. Both logs must
    have a known agreement.
    """
    return _records(holder, agreement(holder, lacking) or 0, below)


def _records(log: ReplicaLog, first: int, below: int | None) -> frozenset[tuple[int, int, int]]:
    """What a log holds from an offset on, as (epoch, first offset, end offset)."""
    found = []
    for segment in segments(log) or ():
        start, end = max(segment.start, first), segment.end if below is None else min(segment.end, below)
        if end > start:
            found.append((segment.epoch, start, end))
    return frozenset(found)


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
    unheard: Mapping[int, NotHeard] = field(default_factory=dict)
    newer_leader_epoch: int | None = None
    """A leader epoch above the partition state's, seen by a broker: then the state is the older of the two."""
    ranked: Mapping[int, ReplicaLog] = field(init=False, repr=False, compare=False)
    """The heard logs that can be compared: those that tell their last epoch, or hold no records."""
    best: ReplicaLog | None = field(init=False, repr=False, compare=False)
    """The best log that can be ranked: highest last epoch, then highest log end, then first in the assignment."""
    longest: ReplicaLog | None = field(init=False, repr=False, compare=False)
    """The ranked log with the highest log end, whatever its epochs."""
    _agreements: dict[tuple[int, int], int | None] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked for many times in a decision, so worked out once.
        ranked = {replica: log for replica, log in self.heard.items() if log.is_empty or log.last_epoch is not None}
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
        return answer is not None and answer.reason is Unheard.STORAGE_ERROR

    def doubtful(self, replica: int) -> bool:
        """Whether the replica's disk was read and contradicts its place in ISR or ELR, or as last known leader."""
        answer = self.unheard.get(replica)
        return answer is not None and answer.reason is Unheard.DOUBTFUL

    def best_of(self, replicas: Iterable[int]) -> ReplicaLog | None:
        """The best ranked log of these replicas; the first one of equals."""
        return max((self.ranked[replica] for replica in replicas if replica in self.ranked), key=_rank, default=None)

    def is_best(self, replica: int) -> bool:
        """Whether this replica's log is as good as the best one."""
        best, log = self.best, self.ranked.get(replica)
        return best is not None and log is not None and _rank(log) == _rank(best)

    def agreement(self, one: int, other: int) -> int | None:
        """`agreement` of the ranked logs of two replicas."""
        pair = one, other
        if pair not in self._agreements:
            self._agreements[pair] = agreement(self.ranked[one], self.ranked[other])
        return self._agreements[pair]

    def missing(self, holder: int, lacking: int, *, below: int | None = None) -> frozenset[tuple[int, int, int]]:
        """`missing` of the ranked logs of two replicas."""
        return _records(self.ranked[holder], self.agreement(holder, lacking) or 0, below)

    def behind_best(self, replica: int) -> int | None:
        """Offsets of the best log that this replica's log does not hold; None where that is not known."""
        best = self.best
        if best is None or replica not in self.ranked or self.agreement(best.replica, replica) is None:
            return None
        return count_distinct(self.missing(best.replica, replica))


def _rank(log: ReplicaLog) -> tuple[int, int]:
    return LogInfo(log.last_epoch, log.log_end).rank


def verified(answer: LogAnswer, cluster: Cluster) -> LogAnswer:
    """The answer, unless it comes from another incarnation of the broker than the registered one: then it is stale.

    KIP-966: a broker epoch that differs from the registration's tells that the broker rebooted since. Where either of
    the two is not known, as on released Kafka, the answer is taken as it is.
    """
    broker = cluster.broker(answer.replica)
    registered = None if broker is None else broker.broker_epoch
    if isinstance(answer, NotHeard) or None in {answer.broker_epoch, registered} or answer.broker_epoch == registered:
        return answer
    detail = f"answered with broker epoch {answer.broker_epoch}; the broker is registered with {registered}"
    return NotHeard(answer.replica, Unheard.STALE, detail, answer.read_at_ms)


def rank_logs(state: PartitionState, answers: Sequence[LogAnswer]) -> KnownLogs:
    """Sort the answers of a partition's replicas into heard and not heard.

    An answer with an older leader epoch than the partition's is stale and counts as not heard (KIP-966: the manager
    rejects it and asks again). A replica without an answer was not asked.
    """
    heard: dict[int, ReplicaLog] = {}
    unheard: dict[int, NotHeard] = {}
    newer: int | None = None
    by_replica = {answer.replica: answer for answer in answers}
    for replica in state.replicas:
        answer = by_replica.get(replica)
        if answer is None:
            unheard[replica] = NotHeard(replica, Unheard.NOT_ASKED, "its log was not asked for")
        elif isinstance(answer, NotHeard):
            unheard[replica] = answer
        elif answer.current_leader_epoch is not None and answer.current_leader_epoch < state.leader_epoch:
            detail = (
                f"answered with leader epoch {answer.current_leader_epoch}; the partition's is {state.leader_epoch}"
            )
            unheard[replica] = NotHeard(replica, Unheard.STALE, detail, answer.read_at_ms)
        else:
            heard[replica] = answer
            if answer.current_leader_epoch is not None and answer.current_leader_epoch > state.leader_epoch:
                newer = max(newer or 0, answer.current_leader_epoch)
    return KnownLogs(heard, unheard, newer)
