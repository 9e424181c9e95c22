"""Makes a plan from what a source tells: of every leaderless or unsafe partition, or of those that are named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr import __version__
from kelr.controller import RuleSet, choose_rules
from kelr.engine.planning import DEFAULT_LIFETIME_MS, plan_of
from kelr.engine.planning.saved import NO_FILES
from kelr.model import (
    ClearedElr,
    Decision,
    ElectionRequest,
    LogAnswer,
    PartitionState,
    Plan,
    SavedLog,
    Selection,
    Snapshot,
    TopicConfig,
    TopicError,
    TopicPartition,
)
from kelr.sources.base import Progress, Source
from kelr.sources.decisions import Elections, decide_partitions


@dataclass(frozen=True, slots=True)
class Made:
    """A plan, and the topics that could not be described for it."""

    plan: Plan
    errors: tuple[TopicError, ...]
    decided: int
    """How many partitions were looked at with their logs."""
    replicas: frozenset[int] = frozenset()
    """Brokers that hold a replica of one of these."""
    not_read: frozenset[int] = frozenset()
    """Those of them whose log of one of these was not read."""
    not_known: tuple[Decision, ...] = ()
    """`kelr.sources.decisions.DecidedPage.not_known`: the plan does not speak of them."""
    notes: Mapping[str, Sequence[TopicPartition]] = field(default_factory=dict)
    """What weakens decisions (`notes_on`), those of partitions without an election among them."""


def notes_on(decisions: Iterable[Decision]) -> dict[str, list[TopicPartition]]:
    """What weakens these decisions, each note once, with its partitions."""
    found: dict[str, list[TopicPartition]] = {}
    for one in decisions:
        for note in one.notes:
            found.setdefault(note, []).append(TopicPartition(one.topic, one.partition))
    return found


def make_plan(
    source: Source,
    selection: Selection,
    wish: Callable[[TopicPartition], ElectionRequest],
    *,
    clock_ms: Callable[[], int],
    lifetime_ms: int = DEFAULT_LIFETIME_MS,
    only_unsafe: bool = False,
    rules: RuleSet | None = None,
    elections: Elections | None = None,
    cleared: Mapping[TopicPartition, ClearedElr] | None = None,
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = NO_FILES,
    progress: Progress | None = None,
) -> Made:
    """Read the selected partitions now, with their logs, and plan what is asked for.

    Args:
        wish: what is asked for a partition; ``ElectionRequest()`` takes what kelr recommends.
        clock_ms: the time in milliseconds since 1970 UTC.
        lifetime_ms: how long the plan may be carried out.
        only_unsafe: leave out partitions that have a live leader and enough replicas in sync.
        rules: the rule set that decides; None takes the one that the cluster runs.
        elections, cleared, saved: as for `decide_partitions`.

    Raises:
        KelrError: the cluster cannot be reached at all.
    """
    began_ms = source.taken_at_ms if source.taken_at_ms is not None else clock_ms()
    began = Snapshot(began_ms, source.cluster(), source=source.name)
    read = _Read(replace(began, elections=elections or {}, cleared=cleared or {}, saved=saved))
    decisions: list[Decision] = []
    not_known: list[Decision] = []
    for page in decide_partitions(
        source,
        selection,
        clock_ms=clock_ms,
        rules=rules,
        only_unsafe=only_unsafe,
        elections=elections,
        cleared=cleared,
        saved=saved,
        progress=progress,
    ):
        read.add(page.snapshot, page.decisions)
        decisions.extend(page.decisions)
        not_known.extend(page.not_known)
    snapshot = replace(read.whole(), cluster=source.cluster())
    plan = plan_of(snapshot, decisions, wish, now_ms=clock_ms(), lifetime_ms=lifetime_ms, made_by=f"kelr/{__version__}")
    if not plan.rules:
        own = rules or choose_rules(source.cluster().features).rules
        plan = replace(plan, rules=own.name)
    replicas = frozenset(replica for decision in decisions for replica in decision.replicas)
    not_read = frozenset(one.replica for decision in decisions for one in decision.candidates if not one.heard)
    return Made(plan, snapshot.topic_errors, len(decisions), replicas, not_read, tuple(not_known), notes_on(decisions))


class _Read:
    """What was read, page after page; of it only the partitions that were decided.

    Args:
        beginning: the cluster, and nothing else.
    """

    def __init__(self, beginning: Snapshot) -> None:
        self._beginning = beginning
        self._partitions: list[PartitionState] = []
        self._configs: dict[str, TopicConfig] = {}
        self._logs: dict[TopicPartition, tuple[LogAnswer, ...]] = {}
        self._errors: list[TopicError] = []
        self._first_replicas: dict[str, int] = {}

    def add(self, page: Snapshot, decisions: Sequence[Decision]) -> None:
        """One more page."""
        kept = {TopicPartition(one.topic, one.partition) for one in decisions}
        topics = {address.topic for address in kept}
        self._partitions += [state for state in page.partitions if state.address in kept]
        self._configs.update({name: config for name, config in page.configs.items() if name in topics})
        self._logs.update({at: answers for at, answers in page.logs.items() if at in kept})
        self._errors += page.topic_errors
        self._first_replicas.update(page.first_partition_replicas)

    def whole(self) -> Snapshot:
        """All of it."""
        return replace(
            self._beginning,
            partitions=tuple(self._partitions),
            configs=self._configs,
            logs=self._logs,
            topic_errors=tuple(self._errors),
            first_partition_replicas=self._first_replicas,
        )
