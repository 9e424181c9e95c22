"""Makes a plan from what a source tells: of every leaderless or unsafe partition, or of those that are named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kelr import __version__
from kelr.controller import RuleSet, choose_rules
from kelr.engine.planning import DEFAULT_LIFETIME_MS, plan_of
from kelr.model import Decision, Plan, Selection, Snapshot, TopicError, TopicPartition, Wish
from kelr.sources.base import Progress, Source
from kelr.sources.decisions import decide_partitions


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and the topics that could not be described for it."""

    plan: Plan
    errors: tuple[TopicError, ...]
    decided: int
    """How many partitions were looked at with their logs."""
    replicas: frozenset[int] = frozenset()
    """Brokers that hold a replica of one of these."""


def make_plan(
    source: Source,
    selection: Selection,
    wish: Callable[[TopicPartition], Wish],
    *,
    clock_ms: Callable[[], int],
    lifetime_ms: int = DEFAULT_LIFETIME_MS,
    only_unsafe: bool = False,
    rules: RuleSet | None = None,
    progress: Progress | None = None,
) -> Made:
    """Read the selected partitions now, with their logs, and plan what is asked for.

    Args:
        wish: what is asked for a partition; ``Wish()`` takes what kelr recommends.
        clock_ms: the time in milliseconds since 1970 UTC.
        lifetime_ms: how long the plan may be carried out.
        only_unsafe: leave out partitions that have a live leader and enough replicas in sync.
        rules: the rule set that decides; None takes the one that the cluster runs.

    Raises:
        KelrError: the cluster cannot be reached at all.
    """
    began_ms = source.taken_at_ms if source.taken_at_ms is not None else clock_ms()
    snapshot = Snapshot(began_ms, source.cluster(), source=source.name)
    decisions: list[Decision] = []
    for page in decide_partitions(
        source, selection, clock_ms=clock_ms, rules=rules, only_unsafe=only_unsafe, progress=progress
    ):
        snapshot = _joined(snapshot, page.snapshot, page.decisions)
        decisions.extend(page.decisions)
    plan = plan_of(snapshot, decisions, wish, now_ms=clock_ms(), lifetime_ms=lifetime_ms, made_by=f"kelr/{__version__}")
    if not plan.rules:
        own = rules or choose_rules(source.cluster().features).rules
        plan = replace(plan, rules=own.name)
    replicas = frozenset(replica for decision in decisions for replica in decision.replicas)
    return Made(plan, snapshot.topic_errors, len(decisions), replicas)


def _joined(before: Snapshot, page: Snapshot, decisions: Sequence[Decision]) -> Snapshot:
    """What was read so far with a further page; of that, only the partitions that were decided."""
    kept = {TopicPartition(one.topic, one.partition) for one in decisions}
    topics = {address.topic for address in kept}
    return replace(
        before,
        partitions=(*before.partitions, *(state for state in page.partitions if state.address in kept)),
        configs={**before.configs, **{name: page.configs[name] for name in page.configs if name in topics}},
        logs={**before.logs, **{at: answers for at, answers in page.logs.items() if at in kept}},
        topic_errors=(*before.topic_errors, *page.topic_errors),
        first_partition_replicas={**before.first_partition_replicas, **page.first_partition_replicas},
    )
