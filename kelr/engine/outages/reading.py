"""Many partitions as cases of outages: each kind of partition is recognized once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kelr.controller import RuleSet
from kelr.engine.batch import PatternCache, PatternReader, make_room
from kelr.engine.outages.case import OutageCase, Placed, beside_first, case_of_first, case_of_pattern
from kelr.engine.outages.fate import KnownCase
from kelr.engine.patterns import Pattern, topic_in_pattern
from kelr.model import Cluster, PartitionState, Snapshot, TopicConfig
from kelr.model.rows import Kind, Rows

_MOST_REMEMBERED = 16_384
"""So many kinds and patterns are remembered; all are forgotten when there are more, and found again."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition's case, and who is who in it."""

    known: KnownCase
    placed: Placed

    @property
    def brokers(self) -> tuple[int, ...]:
        return self.placed.brokers

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """Equal for partitions to which every outage does the same."""
        return id(self.known), self.placed.brokers


class CaseReader:
    """Recognizes the cases of one cluster's partitions, page by page in address order.

    Args:
        rules: the rule set that elects.
    """

    def __init__(self, cluster: Cluster, rules: RuleSet) -> None:
        self._cluster = cluster
        self._rules = rules
        self._patterns = PatternCache()
        self._cases: dict[OutageCase, KnownCase] = {}
        self._of_pattern: dict[int, tuple[Pattern, KnownCase]] = {}
        self._of_kind: dict[tuple[object, Kind[PartitionState]], Seen] = {}
        self._first: dict[str, Placed] = {}
        """The partitions 0 of which a reassignment is under way, by topic."""

    @property
    def cases(self) -> int:
        """How many different cases there were."""
        return len(self._cases)

    def page(
        self,
        partitions: Sequence[PartitionState],
        configs: Mapping[str, TopicConfig],
        first_partition_replicas: Mapping[str, int],
    ) -> PageOfCases:
        """A page of partitions with the configs of their topics and the replica counts of their partitions 0."""
        surroundings = Snapshot(0, self._cluster, configs=configs, first_partition_replicas=first_partition_replicas)
        return PageOfCases(
            self, partitions, surroundings, PatternReader(surroundings, self._rules, cache=self._patterns)
        )

    def seen(self, state: PartitionState, patterns: PatternReader) -> Seen:
        """The case of one partition."""
        occurrence = patterns.occurrence(state)
        pattern, brokers = occurrence.pattern, occurrence.brokers
        if state.partition == 0 and (state.adding or state.removing):
            placed = self._first[state.topic] = Placed(case_of_first(pattern), brokers)
            return Seen(self._known(placed.case), placed)
        first = self._first.get(state.topic)
        if first is not None:
            placed = beside_first(Placed(case_of_pattern(pattern), brokers), first)
            return Seen(self._known(placed.case), placed)
        found = self._of_pattern.get(id(pattern))
        if found is None:
            make_room(self._of_pattern, _MOST_REMEMBERED)
            found = self._of_pattern[id(pattern)] = (pattern, self._known(case_of_pattern(pattern)))
        known = found[1]
        return Seen(known, Placed(known.case, brokers))

    def seen_of_kind(self, kind: Kind[PartitionState], topic: str, key: object, patterns: PatternReader) -> Seen:
        """The case of partitions of a kind, in topics that decisions cannot tell apart.

        Args:
            key: the same for topics of which that is so.
        """
        seen = self._of_kind.get((key, kind))
        if seen is None:
            make_room(self._of_kind, _MOST_REMEMBERED)
            seen = self.seen(replace(kind.example, topic=topic, partition=1), patterns)
            self._of_kind[key, kind] = seen
        return seen

    def reassigns_first(self, topic: str) -> bool:
        """Whether a reassignment of the topic's partition 0 is under way, as far as it was read."""
        return topic in self._first

    def _known(self, case: OutageCase) -> KnownCase:
        known = self._cases.get(case)
        if known is None:
            known = self._cases[case] = KnownCase(case)
        return known


class PageOfCases:
    """One page of partitions, as cases."""

    def __init__(
        self, reader: CaseReader, partitions: Sequence[PartitionState], surroundings: Snapshot, patterns: PatternReader
    ) -> None:
        self._reader = reader
        self._partitions = partitions
        self._surroundings = surroundings
        self._patterns = patterns

    def counted(self) -> Iterator[tuple[Seen, int]]:
        """The cases with how many partitions of the page have each; one may come more than once."""
        if not isinstance(self._partitions, Rows):
            for state in self._partitions:
                yield self._reader.seen(state, self._patterns), 1
            return
        kinds: dict[object, Counter[Kind[PartitionState]]] = {}
        topics: dict[object, str] = {}
        for run in self._partitions.runs:
            if self._apart(run.topic, run.numbers, run.kinds):
                for state in Rows([run], self._partitions.name):
                    yield self._reader.seen(state, self._patterns), 1
                continue
            key = self._topic_key(run.topic)
            topics.setdefault(key, run.topic)
            kinds.setdefault(key, Counter()).update(run.kinds)
        for key, counts in kinds.items():
            for kind, count in counts.items():
                yield self._reader.seen_of_kind(kind, topics[key], key, self._patterns), count

    def partitions(self, wanted: Callable[[Seen], bool]) -> Iterator[tuple[PartitionState, Seen]]:
        """The partitions whose cases are wanted, in address order."""
        if not isinstance(self._partitions, Rows):
            for state in self._partitions:
                seen = self._reader.seen(state, self._patterns)
                if wanted(seen):
                    yield state, seen
            return
        for run in self._partitions.runs:
            apart = self._apart(run.topic, run.numbers, run.kinds)
            key = self._topic_key(run.topic)
            for number, epoch, kind in zip(run.numbers, run.leader_epochs, run.kinds, strict=True):
                if apart:
                    state = self._partitions.named(kind, run.topic, run.topic_id, number, epoch)
                    seen = self._reader.seen(state, self._patterns)
                else:
                    seen = self._reader.seen_of_kind(kind, run.topic, key, self._patterns)
                if wanted(seen):
                    yield self._partitions.named(kind, run.topic, run.topic_id, number, epoch), seen

    def _topic_key(self, topic: str) -> object:
        config = self._surroundings.configs.get(topic, TopicConfig())
        return topic_in_pattern(topic), config, self._surroundings.first_partition_replicas.get(topic)

    def _apart(self, topic: str, numbers: Sequence[int], kinds: Sequence[Kind[PartitionState]]) -> bool:
        """Whether the partitions of a topic depend on a partition 0 that a reassignment changes."""
        if self._reader.reassigns_first(topic):
            return True
        if not numbers or numbers[0] != 0:
            return False
        first = kinds[0].example
        return bool(first.adding or first.removing)
