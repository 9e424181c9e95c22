"""Verdicts about many partitions: each pattern is decided once (`kelr.engine.patterns`).

Three memories make it quick, and each is bounded, so that a stream of partitions needs no more room than a short list:
the shapes seen in one snapshot (a shape is a pattern spelt in small tuples that are cheap to build and to compare),
the patterns that were decided, and the verdicts that were told in broker ids (a healthy partition's verdict names its
leader only, so that all partitions that a broker leads in good health share one).

A job on several machines does the same in three steps: `count_patterns` on each part, `Pattern.decide` once for each
pattern that any part has, and `Occurrence.tell` for each partition::

    reader = PatternReader(snapshot)
    decided = {pattern: pattern.decide() for pattern in count_patterns(snapshot)}
    for state in snapshot.partitions:
        found = reader.occurrence(state)
        verdict = found.tell(decided[found.pattern])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from operator import itemgetter
from typing import Any

from kelr.controller import RuleSet, choose_rules
from kelr.engine.patterns import Occurrence, Pattern, pattern_of, topic_in_pattern
from kelr.engine.verdict import Verdict
from kelr.model import BrokerStatus, Cluster, PartitionState, Snapshot, TopicConfig

DEFAULT_LIMIT = 10_000
"""How many shapes, patterns and told verdicts are remembered, each: tens of MiB, more where lineages are long."""


class PatternCache:
    """Patterns that were decided, for any number of snapshots, clusters and rule sets.

    Args:
        limit: how many patterns, and how many told verdicts, are remembered; all are forgotten when there are more.
    """

    def __init__(self, *, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._known: dict[Pattern, Known] = {}
        self._told: dict[tuple[Known, Hashable], Verdict] = {}

    def __len__(self) -> int:
        """How many patterns are remembered."""
        return len(self._known)

    def verdict(self, occurrence: Occurrence) -> Verdict:
        """The verdict about a partition, in its own broker ids."""
        return self.tell(self.known(occurrence.pattern), occurrence.brokers)

    def known(self, pattern: Pattern) -> Known:
        """The one that is remembered for this pattern, decided or not."""
        known = self._known.get(pattern)
        if known is None:
            make_room(self._known, self._limit)
            known = self._known[pattern] = Known(pattern)
        return known

    def tell(self, known: Known, brokers: tuple[int, ...]) -> Verdict:
        """The verdict of a remembered pattern in broker ids (`Occurrence.brokers`)."""
        key = (known, known.named(brokers))
        told = self._told.get(key)
        if told is None:
            make_room(self._told, self._limit)
            told = self._told[key] = Occurrence(known.pattern, brokers).tell(known.verdict)
        return told


class Known:
    """A pattern that a cache remembers, and its verdict from the first time that somebody asks for it.

    Equal only to itself, so that it is quick to look up.
    """

    __slots__ = ("_named", "_verdict", "pattern")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._verdict: Verdict | None = None
        self._named: Callable[[tuple[int, ...]], Hashable] | None = None

    @property
    def verdict(self) -> Verdict:
        """In the pattern's names."""
        if self._verdict is None:
            self._verdict = self.pattern.decide()
        return self._verdict

    @property
    def named(self) -> Callable[[tuple[int, ...]], Hashable]:
        """Picks, of a partition's brokers, those that the verdict names: verdicts that agree in them are equal."""
        if self._named is None:
            names = [name for name in self.verdict.brokers if name >= 0]
            self._named = itemgetter(*names) if names else _nobody
        return self._named


def _nobody(_brokers: tuple[int, ...]) -> Hashable:
    return None


class PatternReader:
    """Recognizes the patterns of one cluster's partitions, and tells the verdicts about them.

    Args:
        snapshot: the cluster, the configs and the logs; its partitions are not looked at, so that partitions can come
            one at a time.
        rules: the rule set; None takes the one that the cluster was found to run (`choose_rules`).
        cache: patterns decided before; a new one where none is given.
    """

    def __init__(self, snapshot: Snapshot, rules: RuleSet | None = None, *, cache: PatternCache | None = None) -> None:
        self._snapshot = snapshot
        self._rules = choose_rules(snapshot.cluster.features).rules if rules is None else rules
        self._cache = PatternCache() if cache is None else cache
        self._live = snapshot.cluster.live
        self._status_of = _Statuses(snapshot.cluster).__getitem__
        self._kind_of = _TopicKinds(snapshot).__getitem__
        self._with_logs = {(at.topic, at.partition) for at, answers in snapshot.logs.items() if answers}
        self._with_quorums = {(at.topic, at.partition) for at in snapshot.quorums}
        self._seen: dict[Hashable, Known] = {}

    def verdict(self, state: PartitionState) -> Verdict:
        """What `decide` comes to for this partition."""
        return self._cache.tell(*self._recognize(state))

    def occurrence(self, state: PartitionState) -> Occurrence:
        """The partition's pattern; equal patterns of one reader are mostly one object."""
        known, brokers = self._recognize(state)
        return Occurrence(known.pattern, brokers)

    def count(self, states: Iterable[PartitionState]) -> Counter[Pattern]:
        """How many of the partitions have each pattern; none is decided for it."""
        found = Counter(known for known, _ in map(self._recognize, states))
        patterns: Counter[Pattern] = Counter()
        for known, count in found.items():
            patterns[known.pattern] += count
        return patterns

    def _recognize(self, state: PartitionState) -> tuple[Known, tuple[int, ...]]:
        shape = self._shape(state)
        known = None if shape is None else self._seen.get(shape)
        if known is not None:
            return known, state.replicas
        occurrence = pattern_of(self._snapshot, state, self._rules)
        known = self._cache.known(occurrence.pattern)
        if shape is not None:
            make_room(self._seen, DEFAULT_LIMIT)
            self._seen[shape] = known
        return known, occurrence.brokers

    def _shape(self, state: PartitionState) -> tuple[Hashable, ...] | None:
        """The pattern in small: brokers by their place in the assignment, which is their name in the pattern.

        None for the rare partitions whose brokers are named otherwise: those whose logs or recovery quorums are known,
        and those that name a broker without a place there (or nobody, as -1), or give one broker two places.
        """
        replicas, leader, elr, last_known = state.replicas, state.leader, state.elr, state.last_known_elr
        offline, adding, removing = state.offline_replicas, state.adding, state.removing
        if len(set(replicas)) < len(replicas) or (state.topic, state.partition) in self._with_logs:
            return None
        if self._with_quorums and leader not in self._live and (state.topic, state.partition) in self._with_quorums:
            return None
        place = replicas.index
        try:
            # What is empty or not known stands for itself: `() and ...` is (), `None and ...` is None.
            return (
                self._kind_of(state.topic),
                tuple(map(self._status_of, replicas)),
                None if leader is None else place(leader),
                tuple(map(place, state.isr)),
                elr and tuple(map(place, elr)),
                last_known and tuple(map(place, last_known)),
                offline and tuple(map(place, offline)),
                adding and tuple(map(place, adding)),
                removing and tuple(map(place, removing)),
                state.recovering,
            )
        except ValueError:
            return None


def verdicts(
    snapshot: Snapshot,
    rules: RuleSet | None = None,
    *,
    partitions: Iterable[PartitionState] | None = None,
    cache: PatternCache | None = None,
) -> Iterator[Verdict]:
    """What `decide` comes to for each partition, in their order.

    Args:
        rules: the rule set; None takes the one that the cluster was found to run (`choose_rules`).
        partitions: partitions of the snapshot's cluster, read as the verdicts are taken; None takes the snapshot's own.
        cache: patterns decided before, such as in another snapshot.
    """
    reader = PatternReader(snapshot, rules, cache=cache)
    return map(reader.verdict, snapshot.partitions if partitions is None else partitions)


def count_patterns(snapshot: Snapshot, rules: RuleSet | None = None) -> Counter[Pattern]:
    """How many of a snapshot's partitions have each pattern: decide each once, and join."""
    return PatternReader(snapshot, rules).count(snapshot.partitions)


class _Statuses(dict[int, BrokerStatus]):
    """Every broker's status, asked for once; a ValueError for an id that is none."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def __missing__(self, broker: int) -> BrokerStatus:
        if broker < 0:
            raise ValueError(f"{broker} is no broker's id")
        status = self[broker] = self._cluster.status(broker)
        return status


class _TopicKinds(dict[str, int]):
    """A number for each topic, the same where decisions cannot tell two topics apart."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self._snapshot = snapshot
        self._numbers: dict[tuple[str, TopicConfig, int | None], int] = {}

    def __missing__(self, topic: str) -> int:
        config = self._snapshot.configs.get(topic, TopicConfig())
        # Where partition 0 was not read, the partition's own replicas count, which are in its shape.
        kind = (topic_in_pattern(topic), config, self._snapshot.first_partition_replicas.get(topic))
        number = self[topic] = self._numbers.setdefault(kind, len(self._numbers))
        return number


def make_room(memory: dict[Any, Any], limit: int) -> None:
    """Forget everything when it has become too much: what is needed again is found again."""
    if len(memory) >= limit:
        memory.clear()
