"""Reading what an election stands on: states, configs and logs, once, or until those have answered who have to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kelr.controller import RuleSet
from kelr.engine import decide_all, needs_a_look
from kelr.engine.advice.unclean_past import may_have_left
from kelr.model import (
    BrokerStatus,
    ClearedElr,
    Cluster,
    Decision,
    ElectionType,
    PartitionState,
    Selection,
    Snapshot,
    Target,
    TopicPartition,
    Unsaved,
)
from kelr.model.waiting import Waiting
from kelr.sources.base import Progress, Source
from kelr.sources.decisions import Elections, page_snapshot, with_logs
from kelr.sources.ground import Ground

STEP_S = 1.0
"""Between two rounds of asking (KIP-966's manager asks a replica again after as long)."""
WINDOW_S = 5.0
"""How long the aggressive election gathers answers (KIP-966: a fixed 5 seconds)."""

LeaveOut = Callable[[Cluster, PartitionState], bool]
"""Partitions that need no decision: they are counted in `Gathered.left_out` and their logs are never asked for."""

Owing = Callable[[Decision, float], tuple[int, ...]]
"""The replicas that a partition's election still waits for, when so many seconds have passed; none: it is settled."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was read of the partitions, and decided."""

    snapshot: Snapshot
    """The partitions that were decided, with their logs."""
    decisions: tuple[Decision, ...]
    left_out: tuple[PartitionState, ...] = ()
    """Partitions for which there is nothing to do."""
    not_known: tuple[Decision, ...] = ()
    """Those of them of which it is not known whether that is so (`kelr.sources.decisions.DecidedPage.not_known`)."""


@dataclass(frozen=True, slots=True)
class PollInterval:
    """How long to wait, and by which clock.

    Args:
        limit_s: how long to wait in all.
        step_s: how long between two rounds.
    """

    limit_s: float
    ground: Ground
    step_s: float = STEP_S


def gather(
    source: Source,
    selection: Selection,
    *,
    clock_ms: Callable[[], int],
    rules: RuleSet | None = None,
    leave_out: LeaveOut | None = None,
    elections: Elections | None = None,
    cleared: Mapping[TopicPartition, ClearedElr] | None = None,
    progress: Progress | None = None,
) -> Gathered:
    """Read the selected partitions once. Logs are asked for only where nobody who is live leads, or where disks may
    have to be saved.

    Args:
        clock_ms: the time in milliseconds since 1970 UTC.
        rules: the rule set that decides; None takes the one that the cluster runs.
        leave_out: partitions that need no decision.
        elections: as for `kelr.sources.decisions.decide_partitions`: with it, partitions are not left out that lack
            records which other logs may hold.
        cleared: the same.

    Raises:
        KelrError: the cluster cannot be reached at all.
    """

    def may_be_unsaved(cluster: Cluster, state: PartitionState) -> bool:
        return elections is not None and may_have_left(state, {*state.replicas} - cluster.live)

    def is_read(snapshot: Snapshot, state: PartitionState) -> bool:
        return not is_led(snapshot.cluster, state) or may_be_unsaved(snapshot.cluster, state)

    found: Gathered | None = None
    for page in source.pages(selection):
        cluster = source.cluster()
        left = {state.address for state in page.partitions if leave_out is not None and leave_out(cluster, state)}
        kept = [state for state in page.partitions if state.address not in left or may_be_unsaved(cluster, state)]
        read = page_snapshot(source, replace(page, partitions=tuple(kept)), clock_ms)
        read = replace(read, elections=elections or {}, cleared=cleared or {})
        snapshot = with_logs(source, read, is_read, clock_ms=clock_ms, progress=progress)
        decisions = tuple(decide_all(snapshot, rules))
        well = tuple(one for one in decisions if _address(one) in left and not needs_a_look(one))
        left -= {_address(one) for one in decisions} - set(map(_address, well))
        part = Gathered(
            replace(snapshot, partitions=tuple(state for state in snapshot.partitions if state.address not in left)),
            tuple(one for one in decisions if _address(one) not in left),
            tuple(state for state in page.partitions if state.address in left),
            tuple(one for one in well if one.unsaved is Unsaved.NOT_KNOWN),
        )
        found = part if found is None else _joined(found, part)
    return found or Gathered(_nothing(source, clock_ms), ())


def gather_until(
    source: Source,
    first: Gathered,
    owing: Owing,
    *,
    rhythm: PollInterval,
    clock_ms: Callable[[], int],
    rules: RuleSet | None = None,
    elections: Elections | None = None,
    cleared: Mapping[TopicPartition, ClearedElr] | None = None,
    report: Callable[[Waiting], None],
) -> Gathered:
    """Ask again, about those that are not settled, until all are or time is up. Reads only; nothing is changed.

    A partition that meanwhile gets a leader by itself is settled: its decision says who leads.

    Args:
        first: what was read before (`gather`); the waiting begins now.
        owing: whom a partition waits for.
        report: told after each round.
    """
    began = rhythm.ground.steady_s()
    found = first
    while True:
        passed = rhythm.ground.steady_s() - began
        waiting = waiting_of(found, owing, passed, rhythm.limit_s)
        report(waiting)
        if not waiting.open or passed >= rhythm.limit_s or source.taken_at_ms is not None:
            return found
        rhythm.ground.sleep(min(rhythm.step_s, rhythm.limit_s - passed))
        source.forget()
        again = gather(
            source,
            selection_of(waiting.open),
            clock_ms=clock_ms,
            rules=rules,
            elections=elections,
            cleared=cleared,
        )
        found = _replaced(found, again)


def waiting_of(found: Gathered, owing: Owing, passed_s: float, limit_s: float) -> Waiting:
    """Who has answered, and who is missing, after so many seconds."""
    still_open: list[TopicPartition] = []
    answered: dict[int, int] = {}
    missing: dict[int, dict[str, int]] = {}
    for decision in found.decisions:
        owed = owing(decision, passed_s)
        if owed:
            still_open.append(_address(decision))
        for candidate in decision.candidates:
            if candidate.heard:
                answered[candidate.replica] = answered.get(candidate.replica, 0) + 1
            if candidate.replica in owed:
                why = "down" if candidate.heard else candidate.unheard_reason or candidate.status
                reasons = missing.setdefault(candidate.replica, {})
                reasons[why] = reasons.get(why, 0) + 1
    return Waiting(
        min(passed_s, limit_s),
        limit_s,
        tuple(still_open),
        dict(sorted(answered.items())),
        dict(sorted(missing.items())),
    )


def quorum_owing(minimal_replicas: Callable[[TopicPartition], int | None]) -> Owing:
    """For the balanced election: the whole recovery quorum, its best log on a live broker, and so many logs in all."""

    def owing(decision: Decision, _passed_s: float) -> tuple[int, ...]:
        if _is_led(decision):
            return ()
        if _can_never_be_enough(decision, minimal_replicas):
            return ()
        outcome = next(one for one in decision.elections if one.election is ElectionType.LONGEST_LOG_BALANCED)
        return outcome.waits_for or _too_few(decision, minimal_replicas)

    return owing


def window_owing(window_s: float, minimal_replicas: Callable[[TopicPartition], int | None]) -> Owing:
    """For the aggressive election: within the window every live replica, after it the first to answer.

    Source: KIP-966, "In Aggressive mode, any replicas replied within a fixed amount of time OR the first response
    received after the timeout".
    """

    def owing(decision: Decision, passed_s: float) -> tuple[int, ...]:
        if _is_led(decision):
            return ()
        live = [candidate for candidate in decision.candidates if candidate.live]
        unheard = tuple(candidate.replica for candidate in live if not candidate.heard)
        if passed_s < window_s or len(unheard) == len(live):
            return unheard or _too_few(decision, minimal_replicas)
        return _too_few(decision, minimal_replicas)

    return owing


def selection_of(addresses: Sequence[TopicPartition]) -> Selection:
    """These partitions and no others."""
    topics: dict[str, list[int]] = {}
    for at in sorted(addresses):
        topics.setdefault(at.topic, []).append(at.partition)
    return Selection(tuple(Target(topic=topic, partitions=tuple(numbers)) for topic, numbers in topics.items()))


def _address(decision: Decision) -> TopicPartition:
    return TopicPartition(decision.topic, decision.partition)


def is_led(cluster: Cluster, state: PartitionState) -> bool:
    """Whether a live broker leads."""
    return state.leader is not None and cluster.status(state.leader) is BrokerStatus.LIVE


def _too_few(decision: Decision, minimal_replicas: Callable[[TopicPartition], int | None]) -> tuple[int, ...]:
    """The replicas that were not heard, where fewer were than are asked for."""
    least = minimal_replicas(_address(decision))
    heard = sum(candidate.heard for candidate in decision.candidates)
    if least is None or heard >= least or _can_never_be_enough(decision, minimal_replicas):
        return ()
    return tuple(candidate.replica for candidate in decision.candidates if not candidate.heard)


def _can_never_be_enough(decision: Decision, minimal_replicas: Callable[[TopicPartition], int | None]) -> bool:
    """Whether more replicas are to be heard than there are: nobody is waited for, and the election is refused."""
    least = minimal_replicas(_address(decision))
    return least is not None and least > len(decision.candidates)


def _is_led(decision: Decision) -> bool:
    return any(candidate.live and candidate.replica == decision.leader for candidate in decision.candidates)


def _nothing(source: Source, clock_ms: Callable[[], int]) -> Snapshot:
    taken = source.taken_at_ms
    return Snapshot(
        taken_at_ms=clock_ms() if taken is None else taken,
        cluster=source.cluster(),
        partitions=(),
        configs={},
        source=source.name,
    )


def _joined(one: Gathered, other: Gathered) -> Gathered:
    """What two pages brought."""
    before, after = one.snapshot, other.snapshot
    snapshot = replace(
        after,
        partitions=(*before.partitions, *after.partitions),
        configs={**before.configs, **after.configs},
        logs={**before.logs, **after.logs},
        quorums={**before.quorums, **after.quorums},
        topic_errors=(*before.topic_errors, *after.topic_errors),
        first_partition_replicas={**before.first_partition_replicas, **after.first_partition_replicas},
    )
    return Gathered(
        snapshot,
        (*one.decisions, *other.decisions),
        (*one.left_out, *other.left_out),
        (*one.not_known, *other.not_known),
    )


def _replaced(before: Gathered, again: Gathered) -> Gathered:
    """What was known, with what has been read again in its place."""
    states = {state.address: state for state in again.snapshot.partitions}
    decided = {_address(one): one for one in again.decisions}
    snapshot = replace(
        again.snapshot,
        partitions=tuple(states.get(state.address, state) for state in before.snapshot.partitions),
        configs={**before.snapshot.configs, **again.snapshot.configs},
        logs={**before.snapshot.logs, **again.snapshot.logs},
        quorums={**before.snapshot.quorums, **again.snapshot.quorums},
        topic_errors=(*before.snapshot.topic_errors, *again.snapshot.topic_errors),
        first_partition_replicas={
            **before.snapshot.first_partition_replicas,
            **again.snapshot.first_partition_replicas,
        },
    )
    decisions = tuple(decided.get(_address(one), one) for one in before.decisions)
    return replace(before, snapshot=snapshot, decisions=decisions)
