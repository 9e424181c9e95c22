"""Logs that fit what was read of them: how a snapshot of a cluster becomes one that can be rehearsed on.

A record's identity is (leader epoch, offset), so logs that are made up from epochs and ends part where the real ones
do. What is not known is assumed, always in the same way:

* a log whose epochs were not read, beside others that end in another epoch, agrees with them as far as it can;
* a replica that was not heard holds everything that is known to be committed if ISR, ELR or LastKnownELR names it, and
  otherwise no more than the shortest log that was heard; where nobody was heard, all logs are empty;
* a high watermark that was not read is the lowest that was;
* records below a known high watermark were acknowledged with acks=all, the others with acks=1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from kelr.engine.logs import Segment, segments
from kelr.model import LogAnswer, LogUnavailable, LogUnavailableReason, PartitionState, ReplicaLog
from kelr.simulation.logs import Acks, Record, SimulatedLog
from kelr.simulation.replication import Leadership, Ledger, Replication

MARGIN = 10
"""So many records below the lowest offset that matters are made up, too."""
MOST_RECORDS = 10_000
"""The longest log that is made up; where more offsets lie between those that matter, stretches without any of them are
shortened."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One partition's logs, made up."""

    replication: Replication
    next_record: int
    """The id of the next record."""
    base: int = 0
    """The lowest offset that is rehearsed; what was below it is not there."""
    shortened_by: int = 0
    """How many offsets between those that matter were left out; 0 where all offsets are the real ones."""
    assumed: tuple[int, ...] = ()
    """Replicas whose log is assumed, since it was not heard or told no epochs, though others were heard."""


@dataclass(frozen=True, slots=True)
class _Sketch:
    """A log as the run of its epochs."""

    parts: tuple[Segment, ...]
    start: int
    end: int
    high_watermark: int
    last_epoch: int | None

    @property
    def matters(self) -> set[int]:
        return {self.end, self.high_watermark, *(part.start for part in self.parts[1:])}


def rebuilt(
    state: PartitionState,
    answers: Sequence[LogAnswer],
    broker_epochs: Mapping[int, int],
    *,
    first_id: int = 0,
    most_records: int = MOST_RECORDS,
) -> Rebuilt:
    """Logs of the partition's replicas that are as these answers tell.

    Args:
        answers: of any replicas; those of others are not used.
        broker_epochs: of the brokers whose process runs: the followers among them have fetched from the leader.
        first_id: records get this id and those after it.
        most_records: how long a log may become.
    """
    known = {one.replica: one for one in answers if isinstance(one, ReplicaLog) and one.replica in state.replicas}
    if not known:
        logs = {replica: SimulatedLog() for replica in state.replicas}
        return Rebuilt(_led(state, logs, Ledger(), broker_epochs), first_id)
    failed = {
        one.replica
        for one in answers
        if isinstance(one, LogUnavailable) and one.reason is LogUnavailableReason.STORAGE_ERROR
    }
    sketches, assumed = _sketches(state, known, failed)
    lowest = min(_lowest(sketches), *(sketch.high_watermark for sketch in sketches.values()))
    base = max(0, lowest - MARGIN)
    sketches = {replica: _from(base, sketch) for replica, sketch in sketches.items()}
    offsets, shortened = _offsets(base, sketches, most_records)
    sketches = {replica: _moved(sketch, offsets) for replica, sketch in sketches.items()}
    promised = _promised(sketches)
    records = _records(sketches, promised, first_id)
    logs = {replica: _log(sketch, records) for replica, sketch in sketches.items()}
    ids = frozenset(records[place].id for place in promised)
    replication = _led(state, logs, Ledger(committed=ids, visible=ids), broker_epochs)
    return Rebuilt(replication, first_id + len(records), offsets[base], shortened, assumed)


def _sketches(
    state: PartitionState, known: Mapping[int, ReplicaLog], failed: set[int]
) -> tuple[dict[int, _Sketch], tuple[int, ...]]:
    """Every replica's log, and the replicas whose log is assumed; those with a failed directory have an empty one."""
    marks = [log.high_watermark for log in known.values() if log.high_watermark is not None]
    low, high = min(marks, default=0), max(marks, default=None)
    parts = _parts(state, known)
    best = max(known.values(), key=lambda log: (-1 if log.last_epoch is None else log.last_epoch, log.log_end))
    shortest = min(log.log_end for log in known.values())
    named = {*state.isr, *(state.elr or ()), *(state.last_known_elr or ())}
    found, assumed = {}, []
    for replica in state.replicas:
        log = known.get(replica)
        if log is not None:
            start = min(log.log_start or 0, log.log_end)
            mark = low if log.high_watermark is None else log.high_watermark
            blind = log.last_epoch is None and not log.is_empty
            if blind:
                assumed.append(replica)
            own = parts[replica]
            found[replica] = _Sketch(
                own, start, log.log_end, _within(mark, start, log.log_end), own[-1].epoch if own else log.last_epoch
            )
            continue
        assumed.append(replica)
        reach = best.log_end if high is None else min(high, best.log_end)
        end = 0 if replica in failed else reach if replica in named else min(shortest, low)
        own = _cut(parts[best.replica], end)
        start = min(best.log_start or 0, end)
        found[replica] = _Sketch(own, start, end, _within(low, start, end), own[-1].epoch if own else None)
    return found, tuple(assumed)


def _parts(state: PartitionState, known: Mapping[int, ReplicaLog]) -> dict[int, tuple[Segment, ...]]:
    """The epochs of each log that was heard."""
    found: dict[int, tuple[Segment, ...]] = {}
    for replica, log in known.items():
        told = segments(log) if log.lineage else ()
        if told and told[-1].epoch == log.last_epoch:
            found[replica] = (*told[:-1], Segment(told[-1].epoch, told[-1].start, log.log_end))
        elif (log.log_start or 0) >= log.log_end:
            found[replica] = ()
    rest = {replica: log for replica, log in known.items() if replica not in found}
    for epoch in sorted({log.last_epoch for log in rest.values() if log.last_epoch is not None}):
        group = {replica: log for replica, log in rest.items() if log.last_epoch == epoch}
        found |= _of_one_epoch(epoch, group, found)
    for replica, log in rest.items():
        if log.last_epoch is None:
            found[replica] = _blind(state, log, found)
    return found


def _of_one_epoch(
    epoch: int, group: Mapping[int, ReplicaLog], found: Mapping[int, tuple[Segment, ...]]
) -> dict[int, tuple[Segment, ...]]:
    """Logs of which only the last epoch is known, all the same: what is before it is as in a log that tells it."""
    shortest = min(log.log_end for log in group.values())
    beginnings = {part.start: parts for parts in found.values() for part in parts if part.epoch == epoch}
    if beginnings:
        begins = min(max(beginnings), shortest - 1)
        before = _cut(beginnings[max(beginnings)], begins)
    else:
        older = [parts for parts in found.values() if parts and parts[-1].epoch < epoch]
        donor = max(older, key=lambda parts: (parts[-1].epoch, parts[-1].end), default=())
        begins = min(donor[-1].end if donor else 0, shortest - 1)
        before = _cut(donor, begins)
    made = {}
    for replica, log in group.items():
        start = log.log_start or 0
        parts = (*before, Segment(epoch, begins if before else min(start, begins), log.log_end))
        made[replica] = _clipped(parts, start)
    return made


def _blind(state: PartitionState, log: ReplicaLog, found: Mapping[int, tuple[Segment, ...]]) -> tuple[Segment, ...]:
    """A log that tells no epochs: it goes on as the best one does."""
    donor = max(found.values(), key=lambda parts: (parts[-1].epoch, parts[-1].end) if parts else (-1, -1), default=())
    start = log.log_start or 0
    parts = _cut(donor, log.log_end)
    if not parts:
        return (Segment(max(state.leader_epoch, 0), start, log.log_end),)
    last = Segment(parts[-1].epoch, parts[-1].start, log.log_end)
    return _clipped((*parts[:-1], last), start)


def _cut(parts: Sequence[Segment], end: int) -> tuple[Segment, ...]:
    return tuple(Segment(part.epoch, part.start, min(part.end, end)) for part in parts if part.start < end)


def _clipped(parts: Sequence[Segment], start: int) -> tuple[Segment, ...]:
    """The parts from an offset on; the first of them begins there."""
    kept = [part for part in parts if part.end > start]
    return tuple(Segment(part.epoch, start if index == 0 else part.start, part.end) for index, part in enumerate(kept))


def _from(base: int, sketch: _Sketch) -> _Sketch:
    start = min(max(sketch.start, base), sketch.end)
    mark = _within(sketch.high_watermark, start, sketch.end)
    return _Sketch(_clipped(sketch.parts, start), start, sketch.end, mark, sketch.last_epoch)


def _lowest(sketches: Mapping[int, _Sketch]) -> int:
    """The lowest offset at which a log ends or two of them part."""
    ends = [sketch.end for sketch in sketches.values()]
    return min([*ends, *(_parting(one, other) for one, other in combinations(sketches.values(), 2))])


def _parting(one: _Sketch, other: _Sketch) -> int:
    """Up to where two logs hold the same records, seen from the later start of the two."""
    at, end = max(one.start, other.start), min(one.end, other.end)
    while at < end:
        mine = next((part for part in one.parts if part.start <= at < part.end), None)
        theirs = next((part for part in other.parts if part.start <= at < part.end), None)
        if mine is None or theirs is None or mine.epoch != theirs.epoch:
            return at
        at = min(mine.end, theirs.end)
    return max(min(at, end), 0)


def _offsets(base: int, sketches: Mapping[int, _Sketch], most: int) -> tuple[dict[int, int], int]:
    """Where each offset that matters comes to lie, and how many offsets were left out.

    The highest end stays where it is; the longest stretches without an offset that matters become shorter.
    """
    points = {base}.union(*(sketch.matters | {sketch.start} for sketch in sketches.values()))
    ordered = sorted(points)
    gaps = [after - before for before, after in pairwise(ordered)]
    longest = max(gaps, default=0)
    if sum(gaps) > most:
        longest = _longest_gap(gaps, most)
    moved, at = {ordered[-1]: ordered[-1]}, ordered[-1]
    for point, gap in zip(reversed(ordered[:-1]), reversed(gaps), strict=True):
        at -= min(gap, longest)
        moved[point] = at
    return moved, sum(gap - min(gap, longest) for gap in gaps)


def _longest_gap(gaps: Sequence[int], most: int) -> int:
    """The longest stretch that can stay if all together may have so many offsets; at least one."""
    left, number = most, len(gaps)
    for gap in sorted(gaps):
        if gap * number > left:
            return max(1, left // number)
        left, number = left - gap, number - 1
    return max(gaps)


def _moved(sketch: _Sketch, offsets: Mapping[int, int]) -> _Sketch:
    start, end = offsets[sketch.start], offsets[sketch.end]
    places = [start, *(offsets[part.start] for part in sketch.parts[1:]), end]
    parts = tuple(
        Segment(part.epoch, first, last)
        for part, (first, last) in zip(sketch.parts, pairwise(places), strict=False)
        if last > first
    )
    return _Sketch(parts, start, end, offsets[sketch.high_watermark], sketch.last_epoch)


_Place = tuple[int, int]
"""(offset, leader epoch): which record it is."""


def _promised(sketches: Mapping[int, _Sketch]) -> set[_Place]:
    """The records that some replica knows to be below the high watermark."""
    return {
        (offset, part.epoch)
        for sketch in sketches.values()
        for part in sketch.parts
        for offset in range(part.start, min(part.end, sketch.high_watermark))
    }


def _records(sketches: Mapping[int, _Sketch], promised: set[_Place], first_id: int) -> dict[_Place, Record]:
    places = {
        (offset, part.epoch)
        for sketch in sketches.values()
        for part in sketch.parts
        for offset in range(part.start, part.end)
    }
    return {
        place: Record(place[1], first_id + index, Acks.ALL if place in promised else Acks.LEADER)
        for index, place in enumerate(sorted(places))
    }


def _log(sketch: _Sketch, records: Mapping[_Place, Record]) -> SimulatedLog:
    own = tuple(records[offset, part.epoch] for part in sketch.parts for offset in range(part.start, part.end))
    # The last epoch of a log without records is that of the last one that retention took.
    deleted = None if own else sketch.last_epoch
    return SimulatedLog(own, sketch.start, sketch.end, sketch.high_watermark, deleted)


def _led(
    state: PartitionState, logs: Mapping[int, SimulatedLog], ledger: Ledger, broker_epochs: Mapping[int, int]
) -> Replication:
    """The logs with the leader's knowledge of its followers: those that run have just fetched."""
    if state.leader is None or state.leader not in logs:
        return Replication(logs, None, ledger)
    own = logs[state.leader]
    starts = [own.start + index for index, record in enumerate(own.records) if record.epoch == state.leader_epoch]
    fetched = {
        replica: log.end for replica, log in logs.items() if replica in broker_epochs and replica != state.leader
    }
    leadership = Leadership(
        leader=state.leader,
        epoch=state.leader_epoch,
        epoch_start=starts[0] if starts else own.end,
        isr=frozenset(state.isr),
        ends=fetched,
        broker_epochs={replica: broker_epochs[replica] for replica in fetched},
    )
    return Replication(logs, leadership, ledger)


def _within(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
