"""From a source to decisions: reads partitions, configs and replicas' logs page by page, and lets the engine decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import filterfalse

from kelr.controller import RuleSet
from kelr.engine import decide_all, is_leaderless_or_unsafe, needs_a_look, rank_logs, situation_of
from kelr.engine.advice.unclean_past import may_have_left
from kelr.engine.situation import has_one_copy
from kelr.errors import KelrError
from kelr.model import (
    ClearedElr,
    Decision,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    RecordedElection,
    SavedLog,
    Selection,
    Situation,
    Snapshot,
    Target,
    TopicConfig,
    TopicError,
    TopicPartition,
    leader_min_isr,
)
from kelr.model.rows import topics_of
from kelr.sources.base import LeavesOut, Page, Progress, Source, quorums_of, replicas_still_needed
from kelr.sources.unwanted import Look, Unwanted

MAX_READINGS = 3
"""How often partitions are read when their state changes while their logs are asked for."""
MOST_TOGETHER = 10_000
"""Partitions of several pages whose logs are asked for together, so that the number of requests grows with the brokers
and the epochs, and not with the pages: some 20 MiB while they are decided."""


@dataclass(frozen=True, slots=True)
class DecidedPage:
    """The decisions about one page of partitions or several, with the snapshot that they stand on.

    Where healthy partitions are not decided, the snapshot is without those that were healthy when they were read.
    """

    snapshot: Snapshot
    decisions: tuple[Decision, ...]
    not_known: tuple[Decision, ...] = ()
    """Where healthy partitions are not decided: those that are healthy, while it is not known whether disks of brokers
    that are down hold what an unclean election gave up (`Unsaved.NOT_KNOWN`)."""
    seen: int = 0
    """Partitions that were looked at, those that were left out as healthy too."""
    one_copy: int = 0
    """Those of them that have a live leader and min ISR, and a single one of several replicas in sync (`has_one_copy`).
    """
    under_replicated: int = 0
    """Others that have a live leader and min ISR, and lack a replica in sync."""
    at_min_isr: int = 0
    """Those of the under-replicated that have no more in sync than min ISR: with one less, acks=all is refused."""
    asked: int = 0
    """Partitions whose replicas were asked for their logs."""


Elections = Mapping[TopicPartition, RecordedElection]
"""What kelr's audit log tells of elections, by partition."""


def decide_partitions(
    source: Source,
    selection: Selection,
    *,
    clock_ms: Callable[[], int],
    rules: RuleSet | None = None,
    only_unsafe: bool = False,
    elections: Elections | None = None,
    cleared: Mapping[TopicPartition, ClearedElr] | None = None,
    saved: Mapping[TopicPartition, Sequence[SavedLog]] | None = None,
    progress: Progress | None = None,
) -> Iterator[DecidedPage]:
    """Decide the selected partitions in address order, one page at a time.

    Where pages hold little because healthy partitions are left out, several are decided together: one at first, so that
    something is known soon, then twice as many each time, up to `MOST_TOGETHER` partitions.

    Args:
        clock_ms: the time in milliseconds since 1970 UTC, asked for once for what is decided together where the source
            reads as it goes.
        rules: the rule set; None takes the one that the cluster runs.
        only_unsafe: leave healthy partitions out; their logs are not asked for.
        elections: what kelr's audit log tells of elections. With it, even empty, those healthy partitions are looked at
            that lack a replica whose broker is down: its disk may hold the only copy of what an unclean election gave
            up, and then they are not left out.
        cleared: what it tells of ELRs that kelr cleared.
        saved: what rescue files hold: it need not be saved again.
        progress: told of the replicas' logs as they arrive.

    Raises:
        KelrError: the cluster cannot be reached at all; everything less is a value in the snapshot.
    """
    looked_at = is_unsafe if elections is None else is_unsafe_or_may_be_unsaved
    wanted = looked_at if only_unsafe else _every
    pages = _together(_maybe_unsafe(source, selection)) if only_unsafe else source.pages(selection)
    for page in _with_first_replicas(pages):
        snapshot = page_snapshot(source, page, clock_ms)
        if elections or cleared or saved:
            snapshot = replace(snapshot, elections=elections or {}, cleared=cleared or {}, saved=saved or {})
        lacking = [(state, spare) for state in page.partitions if (spare := _to_spare(snapshot, state)) is not None]
        thin = [spare == 0 for state, spare in lacking if not has_one_copy(state)]
        counts = (len(page.partitions) + page.left_out, len(lacking) - len(thin), len(thin), sum(thin))
        if only_unsafe:
            kept = tuple(state for state in snapshot.partitions if wanted(snapshot, state))
            snapshot = replace(snapshot, partitions=kept)
        snapshot = with_logs(source, snapshot, wanted, clock_ms=clock_ms, progress=progress)
        concerned = [state for state in snapshot.partitions if wanted(snapshot, state)]
        looks = only_unsafe and elections is not None
        decisions = tuple(decide_all(snapshot, rules, partitions=concerned, well_too=not looks))
        if not looks:
            yield DecidedPage(snapshot, decisions, (), *counts, len(concerned))
            continue
        shown = tuple(filter(needs_a_look, decisions))
        not_known = tuple(filterfalse(needs_a_look, decisions))
        yield DecidedPage(snapshot, shown, not_known, *counts, len(concerned))


def _maybe_unsafe(source: Source, selection: Selection) -> Iterator[Page]:
    """Pages without those partitions that are certainly healthy, where the source can leave them out unread."""
    if not isinstance(source, LeavesOut):
        return source.pages(selection)
    led = Look(leader_in=source.cluster().live)
    return source.pages_without(Unwanted((led,)), selection)


def _together(pages: Iterable[Page]) -> Iterator[Page]:
    """Pages put together; what was read before the reading broke off comes all the same."""
    room, waiting = 1, list[Page]()
    try:
        for page in pages:
            waiting.append(page)
            if len(waiting) >= room or sum(len(one.partitions) for one in waiting) >= MOST_TOGETHER:
                yield _joined(waiting)
                room, waiting = 2 * room, []
    except KelrError:
        if waiting:
            yield _joined(waiting)
        raise
    if waiting:
        yield _joined(waiting)


def _joined(pages: Sequence[Page]) -> Page:
    """Pages that follow each other, as one."""
    if len(pages) == 1:
        return pages[0]
    return Page(
        tuple(state for page in pages for state in page.partitions),
        tuple(error for page in pages for error in page.topic_errors),
        pages[-1].next_cursor,
        {topic: count for page in pages for topic, count in page.first_partition_replicas.items()},
        sum(page.left_out for page in pages),
    )


def _with_first_replicas(pages: Iterable[Page]) -> Iterator[Page]:
    """The pages, each of which also knows partition 0 of a topic that began in an earlier one: the controller's min ISR
    hangs on it (rule 17)."""
    known: Mapping[str, int] = {}
    for page in pages:
        known = replicas_still_needed({**known, **page.first_partition_replicas}, topics_of(page.partitions))
        yield replace(page, first_partition_replicas=known)


Wanted = Callable[[Snapshot, PartitionState], bool]
"""Which partitions of a snapshot are decided, so that their logs are asked for."""


def _every(_snapshot: Snapshot, _state: PartitionState) -> bool:
    return True


def with_logs(
    source: Source,
    snapshot: Snapshot,
    wanted: Wanted,
    *,
    clock_ms: Callable[[], int],
    progress: Progress | None,
) -> Snapshot:
    """The snapshot with the logs of the wanted partitions; those that change meanwhile are read again.

    Partitions that were waited for, since a broker that is said to be live did not answer, are looked at again too: it
    may have been fenced by now.
    """
    snapshot = _read_logs(source, snapshot, wanted, progress)
    for _ in range(MAX_READINGS - 1):
        moved = _moved_on(snapshot)
        waited = _waited_for(snapshot) if source.taken_at_ms is None else frozenset()
        if waited:
            source.forget()
            snapshot = replace(snapshot, taken_at_ms=clock_ms())
        snapshot, changed = _looked_at_again(source, snapshot, moved | waited)
        if not moved | changed:
            break
        snapshot = _read_logs(source, snapshot, _among(moved | changed, wanted), progress)
    return replace(snapshot, cluster=source.cluster())


def _among(addresses: frozenset[TopicPartition], wanted: Wanted) -> Wanted:
    return lambda snapshot, state: state.address in addresses and wanted(snapshot, state)


def page_snapshot(source: Source, page: Page, clock_ms: Callable[[], int]) -> Snapshot:
    """A page with what surrounds its partitions, and without logs."""
    return Snapshot(
        taken_at_ms=source.taken_at_ms if source.taken_at_ms is not None else clock_ms(),
        cluster=source.cluster(),
        partitions=tuple(page.partitions),
        configs=source.topic_configs(sorted(topics_of(page.partitions))),
        topic_errors=page.topic_errors,
        first_partition_replicas=page.first_partition_replicas,
        quorums=quorums_of(source, page.partitions),
        source=source.name,
    )


def is_unsafe(snapshot: Snapshot, state: PartitionState) -> bool:
    """Whether a partition of a snapshot has no live leader, or is under min ISR."""
    return is_leaderless_or_unsafe(_situation(snapshot, state))


def is_unsafe_or_may_be_unsaved(snapshot: Snapshot, state: PartitionState) -> bool:
    """The same, and partitions that lack a replica that is down and was not in sync: its disk may have to be saved."""
    return is_unsafe(snapshot, state) or may_have_left(state, {*state.replicas} - snapshot.cluster.live)


def _situation(snapshot: Snapshot, state: PartitionState) -> Situation:
    # Without a controller nothing is known to be healthy: then those are told of that brokers know to be in trouble.
    return situation_of(state, snapshot.cluster.as_told, _min_isr(snapshot, state))


def _min_isr(snapshot: Snapshot, state: PartitionState) -> int | None:
    config = snapshot.configs.get(state.topic, TopicConfig())
    return leader_min_isr(config.min_insync_replicas, len(state.replicas))


def _to_spare(snapshot: Snapshot, state: PartitionState) -> int | None:
    """How many more than min ISR are in sync, of a healthy partition that lacks a replica in sync; None of others."""
    min_isr = _min_isr(snapshot, state)
    if min_isr is None or {*state.replicas} <= {*state.isr} or is_unsafe(snapshot, state):
        return None
    return len(state.isr) - min_isr


def _read_logs(source: Source, snapshot: Snapshot, wanted: Wanted, progress: Progress | None) -> Snapshot:
    asked = [state for state in snapshot.partitions if wanted(snapshot, state)]
    logs = source.replica_logs(asked, lineage=True, progress=progress) if asked else {}
    return replace(snapshot, logs={**snapshot.logs, **logs})


def _moved_on(snapshot: Snapshot) -> frozenset[TopicPartition]:
    """Partitions whose replicas already know a newer leader epoch than the state that was read."""
    return frozenset(
        state.address
        for state in snapshot.partitions
        if rank_logs(state, snapshot.logs.get(state.address, ())).newer_leader_epoch is not None
    )


def _waited_for(snapshot: Snapshot) -> frozenset[TopicPartition]:
    """Partitions with a replica on a live broker that did not answer in time."""
    return frozenset(
        address
        for address, answers in snapshot.logs.items()
        for answer in answers
        if isinstance(answer, LogUnavailable)
        and answer.reason is LogUnavailableReason.TIMED_OUT
        and answer.replica in snapshot.cluster.live
    )


def _looked_at_again(
    source: Source, snapshot: Snapshot, addresses: frozenset[TopicPartition]
) -> tuple[Snapshot, frozenset[TopicPartition]]:
    """The snapshot with these partitions read once more, without their logs, and which of them have changed."""
    if not addresses:
        return snapshot, frozenset()
    selection = Selection(tuple(Target(topic=at.topic, partitions=(at.partition,)) for at in sorted(addresses)))
    before = {state.address: state for state in snapshot.partitions}
    fresh: dict[TopicPartition, PartitionState] = {}
    errors: list[TopicError] = []
    for page in source.pages(selection):
        fresh.update((state.address, state) for state in page.partitions)
        errors.extend(page.topic_errors)
    changed = [state for at, state in fresh.items() if state != before.get(at)]
    kept = {at: quorum for at, quorum in snapshot.quorums.items() if at not in fresh}
    again = replace(
        snapshot,
        cluster=source.cluster(),
        partitions=tuple(fresh.get(state.address, state) for state in snapshot.partitions),
        quorums={**kept, **quorums_of(source, [*fresh.values()])},
        topic_errors=(*snapshot.topic_errors, *errors),
    )
    return again, frozenset(state.address for state in changed)
