"""Records that an election gives up and that can be saved before it: from which replicas, and which offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from kelr.engine.advice.returns import holding
from kelr.engine.logs import KnownLogs, count_distinct, records_of, without_parts
from kelr.engine.planning.subject import Subject
from kelr.model import LOG_DIRECTORY, Parts, RescueStep

_TRY_ALL_SETS = 8
"""With more holders than so many the fewest are not looked for: they are taken by what each has."""


def rescue_of(subject: Subject, elect: int) -> tuple[RescueStep, ...]:
    """One step for each run of offsets that a heard log holds and the elected one does not, by replica and offset.

    Several replicas may hold the same records: each record is saved once, from a broker that answers where one has it,
    and from as few replicas as can be; not those of a replica of which rescue files hold all. Empty where nothing is
    lost, and where the logs cannot be compared.
    """
    case, replicas = subject.case, subject.state.replicas
    lost = {one: parts for one, parts in _lost(case.logs, replicas, elect).items() if not holding(case, parts)}
    return _steps(case.logs, replicas, lost)


def rescue_from(logs: KnownLogs, replicas: Sequence[int], elect: int) -> tuple[RescueStep, ...]:
    """`rescue_of`, of logs that were heard of these replicas, with what the elected one deleted, or never held: of
    that its log shows nothing any more."""
    return _steps(logs, replicas, _lost(logs, replicas, elect, shown_only=True))


def rescue_from_unread(logs: KnownLogs, replicas: Sequence[int], elect: int) -> tuple[RescueStep, ...]:
    """The steps that save what the others may truncate to follow a leader whose log nobody read
    (`KnownLogs.perhaps_truncated`)."""
    parts = {
        other: logs.perhaps_truncated(other) | _cut_off(logs, other)
        for other in replicas
        if other != elect and other in logs.ranked
    }
    return _steps(logs, replicas, {other: found for other, found in parts.items() if found})


def rescue_from_anyone(logs: KnownLogs, replicas: Sequence[int]) -> tuple[RescueStep, ...]:
    """The steps that save what some log lacks of another, and what a leader may lack whose log nobody read
    (`KnownLogs.perhaps_truncated`), where it is not known who will lead."""
    ranked = [replica for replica in replicas if replica in logs.ranked]
    parts = {
        one: (logs.perhaps_truncated(one) | _cut_off(logs, one)).union(
            *(logs.missing(one, other) for other in ranked if logs.agreement(one, other) is not None)
        )
        for one in ranked
    }
    return _steps(logs, replicas, {one: found for one, found in parts.items() if found})


def _steps(logs: KnownLogs, replicas: Sequence[int], lost: Mapping[int, Parts]) -> tuple[RescueStep, ...]:
    """The steps that save these parts."""
    steps: list[RescueStep] = []
    saved: list[tuple[int, int, int]] = []
    for replica in _sources(logs, lost):
        rest = without_parts(lost[replica], saved)
        own_end = logs.ranked[replica].log_end
        if any(start >= own_end for _, start, _ in rest):
            # What is damaged before them is to be named as a gap.
            rest.append((-1, own_end, max(end for _, _, end in rest)))
        steps.extend(RescueStep(replica, start, end, reachable(logs, replica)) for start, end in _runs(rest))
        saved.extend(lost[replica])
    place = {replica: at for at, replica in enumerate(replicas)}
    return tuple(sorted(steps, key=lambda step: (place[step.replica], step.from_offset)))


def reachable(logs: KnownLogs, replica: int) -> bool:
    """Whether the replica's records can be had from its broker."""
    log = logs.heard.get(replica)
    return log is not None and log.source != LOG_DIRECTORY and not log.is_earlier


def _lost(logs: KnownLogs, replicas: Sequence[int], elect: int, *, shown_only: bool = False) -> dict[int, Parts]:
    """What each other replica holds and the elected one does not, or perhaps not (`KnownLogs.perhaps_missing`), and
    what its own disk holds that Kafka deletes."""
    if elect not in logs.ranked:
        return {}
    found = {one: _cut_off(logs, one, elect) for one in replicas if one in logs.ranked}
    for one in found:
        if one != elect and logs.agreement(one, elect) is not None:
            found[one] |= logs.missing(one, elect) | logs.perhaps_missing(one, elect, shown_only=shown_only)
    return {other: parts for other, parts in found.items() if parts}


def _cut_off(logs: KnownLogs, replica: int, elect: int | None = None) -> Parts:
    """What Kafka deletes from the replica's disk when it starts (`ReplicaLog.cut_off`) and the elected one lacks."""
    held = () if elect is None else records_of(logs.ranked[elect])
    return frozenset(without_parts(logs.ranked[replica].cut_off, held))


def _sources(logs: KnownLogs, lost: Mapping[int, Parts]) -> tuple[int, ...]:
    """The replicas that hold all of it between them: the fewest disks, then the fewest replicas, the most first."""
    holders = sorted(lost, key=lambda replica: (not reachable(logs, replica), -count_distinct(lost[replica])))
    if len(holders) > _TRY_ALL_SETS:
        return tuple(holders)
    everything = count_distinct(part for parts in lost.values() for part in parts)
    whole = [
        group
        for size in range(len(holders) + 1)
        for group in combinations(holders, size)
        if count_distinct(part for replica in group for part in lost[replica]) == everything
    ]
    return min(whole, key=lambda group: (sum(not reachable(logs, replica) for replica in group), len(group)))


def _runs(parts: Iterable[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Offsets `[start, end)` that the parts cover, joined where they meet."""
    runs: list[tuple[int, int]] = []
    for start, end in sorted((start, end) for _, start, end in parts):
        if runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(runs[-1][1], end))
        else:
            runs.append((start, end))
    return runs
