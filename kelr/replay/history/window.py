"""Which part of the metadata log is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kelr.model import PartitionState, TopicPartition
from kelr.replay.history.causes import Reordered, Reorders
from kelr.replay.history.entries import (
    UNSAFE,
    BrokerEntry,
    Cause,
    Entry,
    PartitionEntry,
    PartitionsEntry,
    ReassignmentStep,
)
from kelr.replay.records import At, RecordBatch


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the log, by offset or by the controller's clock; exactly one of the two is given."""

    offset: int | None = None
    at_ms: int | None = None

    def reached_by(self, at: At) -> bool:
        """Whether a record is at this moment or after it."""
        if self.offset is not None:
            return at.offset >= self.offset
        return self.at_ms is not None and at.timestamp_ms >= self.at_ms


@dataclass(frozen=True, slots=True)
class Window:
    """From a moment on, up to another; None is open."""

    since: Moment | None = None
    until: Moment | None = None
    """The first moment that is told no more."""

    def holds(self, at: At) -> bool:
        return self.begun(at) and not (self.until is not None and self.until.reached_by(at))

    def begun(self, at: At) -> bool:
        return self.since is None or self.since.reached_by(at)

    def within(self, at: At) -> At:
        """The place, or the end of the window if that comes first: idle stretches come as one batch."""
        if self.until is None or not self.until.reached_by(at):
            return at
        offset = at.offset if self.until.offset is None else min(at.offset, self.until.offset - 1)
        at_ms = at.timestamp_ms if self.until.at_ms is None else min(at.timestamp_ms, self.until.at_ms)
        return At(offset, at.epoch, at_ms)

    def over(self, batch: RecordBatch) -> bool:
        """Whether the log need not be read from this batch on."""
        first = At(batch.base_offset, batch.epoch, batch.timestamp_ms)
        return self.until is not None and not batch.of_checkpoint and self.until.reached_by(first)


# Which partitions and brokers a history is about.


def _every(_address: TopicPartition) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Interest:
    """What is told; by default everything."""

    partitions: Callable[[TopicPartition], bool] = field(default=_every)
    named: bool = False
    """Whether partitions were named: then the cluster's and brokers' own entries are those that concern them."""
    brokers: frozenset[int] = frozenset()
    """Only what concerns one of these; empty: whatever broker."""
    unclean_only: bool = False
    """Only elections of replicas that may lack what was committed."""

    def wants(self, entry: Entry) -> bool:
        """Whether an entry is told."""
        if self.unclean_only:
            elected = entry.election if isinstance(entry, PartitionEntry) else None
            if elected is None or elected.elected_as.clean is True:
                return False
        if not self.brokers:
            return True
        if isinstance(entry, PartitionEntry):
            return bool(self.brokers & concerned(entry))
        return isinstance(entry, BrokerEntry) and entry.broker in self.brokers


def concerned(entry: PartitionEntry) -> frozenset[int]:
    """The brokers whose part in the partition changed, and the one that caused it."""
    before, after = _parts(entry.before), _parts(entry.after)
    moved = {broker for broker in before.keys() | after.keys() if before.get(broker) != after.get(broker)}
    if entry.cause.broker is not None:
        moved.add(entry.cause.broker)
    if entry.election is not None and entry.election.last_leader is not None:
        moved.add(entry.election.last_leader)
    return frozenset(moved)


def _parts(state: PartitionState | None) -> dict[int, tuple[bool, ...]]:
    """What each broker is for a partition."""
    if state is None:
        return {}
    groups = (state.replicas, state.isr, state.elr or (), state.last_known_elr or (), state.adding or ())
    brokers = {broker for group in groups for broker in group} | ({state.leader} - {None})
    return {
        broker: (broker == state.leader, *(broker in group for group in groups))
        for broker in brokers
        if broker is not None
    }


# What a history has to remember of partitions, because a later entry looks back at it.


@dataclass(frozen=True, slots=True)
class LastLed:
    """How a partition came to have no leader."""

    leader: int
    until_offset: int
    """Of the record that says so."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a history knows beside the image of the cluster: with both, another one goes on where it stands."""

    last_led: Mapping[TopicPartition, LastLed] = field(default_factory=dict)
    """Of partitions without a leader, as far as it is on record."""
    untold_restarts: Mapping[int, int] = field(default_factory=dict)
    """By broker: the offset of its last registration of which no record tells whether it was shut down cleanly."""
    reorders: Mapping[TopicPartition, Reordered] = field(default_factory=dict)
    """Of partitions whose replicas were put into another order; see `Reorders`."""


class Memory:
    """Follows partitions, change by change.

    Args:
        carried: what another one remembered.
    """

    def __init__(self, carried: Carried) -> None:
        self._last_led = dict(carried.last_led)
        self._untold_restarts = dict(carried.untold_restarts)
        self._reorders = Reorders(carried.reorders)

    def carried(self) -> Carried:
        """All of it, for another one."""
        return Carried(dict(self._last_led), dict(self._untold_restarts), dict(self._reorders.open))

    def last_leader(self, before: PartitionState) -> int | None:
        """Who led a partition before it changes, perhaps some time ago; None where that is not known."""
        if before.leader is not None:
            return before.leader
        known = self._last_led.get(before.address)
        return None if known is None else known.leader

    def ran_on(self, broker: int, address: TopicPartition, *, told: bool) -> bool:
        """Whether no restart that nothing tells of can have cut a broker's log since the partition lost its leader.

        Args:
            told: whether such a restart would have been told if it was before the log begins.
        """
        known, restarted = self._last_led.get(address), self._untold_restarts.get(broker, -1)
        return restarted < known.until_offset if known is not None else told and restarted < 0

    def restarted(self, broker: int, offset: int) -> None:
        """A broker registered, and no record tells whether it was shut down cleanly."""
        self._untold_restarts[broker] = offset

    def put_first(self, after: PartitionState, at_ms: int) -> bool:
        """Whether the replica that now leads was put first in the assignment just before."""
        return self._reorders.put_first(after, at_ms)

    def moved(
        self, before: PartitionState | None, after: PartitionState | None, step: ReassignmentStep | None, at: At
    ) -> None:
        """A partition was made, changed (with what step of a reassignment), or deleted."""
        if before is not None and after is None:
            self._last_led.pop(before.address, None)
            self._reorders.deleted(before.address)
        if before is None or after is None:
            return
        if after.leader is not None:
            self._last_led.pop(after.address, None)
        elif before.leader is not None:
            self._last_led[after.address] = LastLed(before.leader, at.offset)
        self._reorders.moved(before, after, step, at.timestamp_ms)

    def forget_leaders(self) -> None:
        """A checkpoint begins: who led before is not known of what it tells."""
        self._last_led.clear()


# What one cause did to many partitions, as one entry: the story of a cluster, not of each partition.


FIRST = 3
"""So many of the partitions are kept."""


@dataclass(slots=True)
class _Group:
    cause: Cause
    shape: object
    entries: list[PartitionEntry] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    count: int = 0
    topics: dict[str, None] = field(default_factory=dict)

    def add(self, entry: PartitionEntry) -> None:
        self.count += 1
        self.topics[entry.address.topic] = None
        if len(self.entries) < FIRST:
            self.entries.append(entry)
        for name in _effects(entry):
            self.counts[name] = self.counts.get(name, 0) + 1

    def entry(self) -> Entry:
        first = self.entries[0]
        if self.count == 1:
            return first
        return PartitionsEntry(
            first.at,
            self.cause,
            tuple(self.entries),
            self.count,
            tuple(self.topics),
            reassignment=first.reassignment,
            **self.counts,
        )


def grouped(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries of partitions that follow one another and have one cause at one time become one."""
    group: _Group | None = None
    for entry in entries:
        if not isinstance(entry, PartitionEntry):
            if group is not None:
                yield group.entry()
            group = None
            yield entry
            continue
        shape = (entry.at.timestamp_ms, entry.at.epoch, entry.cause, entry.reassignment)
        if group is None or group.shape != shape:
            if group is not None:
                yield group.entry()
            group = _Group(entry.cause, shape)
        group.add(entry)
    if group is not None:
        yield group.entry()


def _effects(entry: PartitionEntry) -> Iterator[str]:
    before, after = entry.before, entry.after
    if before is None or after is None:
        yield "created" if before is None else "deleted"
        return
    if before.leader != after.leader:
        yield "lost_leader" if after.leader is None else "got_leader" if before.leader is None else "moved_leader"
    if set(before.isr) - set(after.isr):
        yield "isr_shrank"
    if set(after.isr) - set(before.isr):
        yield "isr_grew"
    if set(before.elr or ()) - {*(after.elr or ()), *after.isr}:
        yield "elr_struck"
    if entry.election is not None and entry.election.elected_as.clean is not True:
        yield "unclean" if entry.election.elected_as in UNSAFE else "clean_unknown"
