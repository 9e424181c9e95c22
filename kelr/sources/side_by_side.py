"""From a source to decisions that stand side by side: under several rule sets, after imagined events, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kelr.controller import RuleSet, choose_rules
from kelr.engine import decide_all
from kelr.engine.what_if.assumptions import Assumption
from kelr.engine.what_if.imagine import Happened, imagine
from kelr.model import ClearedElr, Decision, PartitionState, SavedLog, Selection, Snapshot, TopicError, TopicPartition
from kelr.sources.base import Page, Progress, Source
from kelr.sources.decisions import Elections, is_unsafe, page_snapshot, with_logs


@dataclass(frozen=True, slots=True)
class Decided:
    """What one rule set says of the partitions, once the assumptions have happened."""

    rules: str
    """The rule set's name."""
    snapshot: Snapshot
    """What the decisions stand on; imagined, where anything was assumed."""
    decisions: tuple[Decision, ...]
    happened: tuple[Happened, ...]
    """The assumptions in order, with what they changed of all partitions that were read."""
    either_way: tuple[int, ...] = ()
    """Brokers that return among the assumptions, and of which nothing tells how they stopped."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The decisions of several rule sets about the same partitions."""

    decided: tuple[Decided, ...]
    """One for each rule set, in the order asked for; their decisions are in the same order."""
    if_unclean: tuple[Decided, ...]
    """The same, had those stopped uncleanly that return and of which nothing tells how they stopped; empty where there
    are none. `decided` then takes them to have stopped cleanly."""
    topic_errors: tuple[TopicError, ...]


def decide_side_by_side(
    source: Source,
    selection: Selection,
    rule_sets: Sequence[RuleSet | None],
    assumptions: Sequence[Assumption] = (),
    *,
    clock_ms: Callable[[], int],
    only_unsafe: bool = False,
    elections: Elections | None = None,
    cleared: Mapping[TopicPartition, ClearedElr] | None = None,
    saved: Mapping[TopicPartition, Sequence[SavedLog]] | None = None,
    progress: Progress | None = None,
) -> SideBySide:
    """Decide the selected partitions under each rule set, after the same assumptions.

    All of them are held in memory at once. The logs are read once, and are the real ones.

    Args:
        rule_sets: None stands for the one that the cluster runs.
        clock_ms: the time in milliseconds since 1970 UTC, where the source reads as it goes.
        only_unsafe: leave out partitions that are healthy before the assumptions and after them, under every rule set.
        elections, cleared, saved: as for `decide_partitions`.

    Raises:
        AssumptionError: an assumption is about a broker or a rack that there is not.
        KelrError: the cluster cannot be reached at all; everything less is a value in the snapshot.
    """
    before = replace(
        _read_all(source, selection, clock_ms), elections=elections or {}, cleared=cleared or {}, saved=saved or {}
    )
    wanted = _unsafe(before, rule_sets, assumptions) if only_unsafe else _addresses(before.partitions)
    snapshot = with_logs(source, before, lambda _, state: state.address in wanted, clock_ms=clock_ms, progress=progress)
    decided = tuple(_decided(snapshot, wanted, rules, assumptions) for rules in rule_sets)
    if_unclean: tuple[Decided, ...] = ()
    if any(one.either_way for one in decided):
        if_unclean = tuple(_decided(snapshot, wanted, rules, assumptions, clean=False) for rules in rule_sets)
    return SideBySide(decided, if_unclean, snapshot.topic_errors)


def _read_all(source: Source, selection: Selection, clock_ms: Callable[[], int]) -> Snapshot:
    pages = [page_snapshot(source, page, clock_ms) for page in source.pages(selection)]
    return replace(
        pages[0] if pages else page_snapshot(source, Page(()), clock_ms),
        partitions=tuple(state for page in pages for state in page.partitions),
        configs={topic: config for page in pages for topic, config in page.configs.items()},
        topic_errors=tuple(error for page in pages for error in page.topic_errors),
        quorums={address: known for page in pages for address, known in page.quorums.items()},
        first_partition_replicas={topic: n for page in pages for topic, n in page.first_partition_replicas.items()},
    )


def _addresses(partitions: Sequence[PartitionState]) -> frozenset[TopicPartition]:
    return frozenset(state.address for state in partitions)


def _unsafe(
    before: Snapshot, rule_sets: Sequence[RuleSet | None], assumptions: Sequence[Assumption]
) -> frozenset[TopicPartition]:
    """Partitions that are unsafe now, or after the assumptions under some rule set.

    The logs are not read yet; those of the KIP's rule sets that elect by logs elect nobody then, which only adds some.
    """
    afterwards = [
        imagine(before, assumptions, rules or _own_rules(before), clean=clean).snapshot
        for rules in rule_sets
        for clean in (True, False)
    ]
    return frozenset(
        state.address
        for snapshot in (before, *afterwards)
        for state in snapshot.partitions
        if is_unsafe(snapshot, state)
    )


def _own_rules(snapshot: Snapshot) -> RuleSet:
    return choose_rules(snapshot.cluster.features).rules


def _decided(
    snapshot: Snapshot,
    wanted: frozenset[TopicPartition],
    rules: RuleSet | None,
    assumptions: Sequence[Assumption],
    *,
    clean: bool = True,
) -> Decided:
    own = rules or _own_rules(snapshot)
    imagined = imagine(snapshot, assumptions, own, clean=clean)
    concerned = [state for state in imagined.snapshot.partitions if state.address in wanted]
    decisions = tuple(decide_all(imagined.snapshot, rules, partitions=concerned))
    return Decided(own.name, imagined.snapshot, decisions, imagined.happened, imagined.either_way)
