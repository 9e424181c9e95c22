"""One look at a cluster that is watched, over the pages that `describe` reads by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller import choose_rules
from kelr.engine import PatternCache, PatternReader, case_of
from kelr.engine.recovery.words import awaited_in_words
from kelr.engine.watching import Counts, Sight, Watched
from kelr.model import (
    BrokerStatus,
    Cluster,
    PartitionState,
    Selection,
    Situation,
    Snapshot,
    Target,
    TopicConfig,
    TopicError,
    TopicPartition,
)
from kelr.model.described import Described
from kelr.model.rows import Rows
from kelr.sources.base import Source, silence_of
from kelr.sources.survey import INTERNAL_TOPICS, Filters, SurveyPage, survey

_UNSETTLED = Filters(unsettled=True)
_GONE = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"})
"""Errors that say of a topic that it is not there."""


@dataclass(slots=True)
class Looker:
    """Looks at the selected partitions again and again; remembers decisions, so that the next look is quick.

    Args:
        clock_ms: milliseconds since 1970 UTC.
        exclude_internal: leave out Kafka's own topics.
    """

    selection: Selection
    clock_ms: Callable[[], int]
    exclude_internal: bool = False
    _patterns: PatternCache = field(default_factory=PatternCache)
    _words: dict[Hashable, str] = field(default_factory=dict)
    _words_of: Cluster | None = None

    def look(self, source: Source, before: Sight | None = None) -> Sight:
        """Everything that is leaderless or unsafe now, and what was so before until it is settled.

        Args:
            before: the look before this one, whose partitions are followed.

        Raises:
            KelrError: the cluster cannot be read; what it is now is not known.
        """
        begun_ms = self.clock_ms()
        source.forget()
        cluster = source.cluster()
        followed = {at for at, one in before.partitions.items() if not one.settled} if before is not None else set()
        known = before.topics if before is not None else frozenset()
        seen = _Seen(cluster, followed, INTERNAL_TOPICS if self.exclude_internal else frozenset())
        filters = replace(_UNSETTLED, exclude_internal=self.exclude_internal)
        for page in survey(source, self.selection, filters=filters, as_told=True):
            seen.add(page)
        # A list of all topics leaves out those that may not be read: only asked by name do brokers tell them from those
        # that are not there.
        vanished = known - seen.topics - seen.absent - seen.unread
        for page in survey(source, self._named(vanished), filters=filters, as_told=True) if vanished else ():
            seen.add(page)
        missing = {at for at in followed - seen.kept.keys() if at.topic not in seen.absent | seen.unread}
        for page in survey(source, selection_of(missing), as_told=True) if missing else ():
            seen.add_settled(page)
        partitions = dict(self._watched(cluster, seen.kept.values()))
        kept = (
            {}
            if before is None
            else {at: before.partitions[at] for at in followed if at.topic in seen.unread and at not in partitions}
        )
        partitions |= kept
        deleted = seen.absent & (known if before is None else known | before.deleted)
        return Sight(
            taken_at_ms=begun_ms,
            cluster=cluster,
            brokers=_brokers(cluster, () if before is None else before.brokers),
            partitions=partitions,
            counts=seen.counts(partitions.values(), controller_silent=silence_of(source) is not None),
            topic_errors=tuple(one for one in dict.fromkeys(seen.errors) if one.topic not in deleted),
            topics=(known & seen.unread) | seen.topics,
            deleted=deleted,
            not_renewed=frozenset(kept),
            took_ms=self.clock_ms() - begun_ms,
            controller_silence=silence_of(source),
        )

    def _named(self, topics: Iterable[str]) -> Selection:
        """What is selected of these topics."""
        targets = self.selection.targets or (Target(glob="*"),)
        return Selection(
            tuple(
                Target(topic=topic, partitions=target.partitions)
                for topic in sorted(topics)
                for target in targets
                if target.matches_topic(topic)
            )
        )

    def _watched(self, cluster: Cluster, rows: Iterable[Described]) -> Iterator[tuple[TopicPartition, Watched]]:
        found = list(rows)
        configs: Mapping[str, TopicConfig] = {row.state.topic: row.config for row in found}
        snapshot = Snapshot(0, cluster, configs=configs)
        reader = PatternReader(snapshot, cache=self._patterns)
        if cluster != self._words_of:
            self._words.clear()
            self._words_of = cluster
        for row in found:
            if row.state.leader is not None:
                yield row.state.address, Watched(row.state, row.situation, row.min_isr)
                continue
            verdict = reader.verdict(row.state)
            words = self._in_words(snapshot, row.state, verdict.waits_for) if verdict.waits_for else ""
            watched = Watched(row.state, verdict.situation, row.min_isr, verdict.waits_for, words, verdict.elected)
            yield row.state.address, watched

    def _in_words(self, snapshot: Snapshot, state: PartitionState, waits_for: tuple[int, ...]) -> str:
        """Partitions that differ in name and epoch alone wait in the same words."""
        config = snapshot.configs[state.topic]
        key = (replace(state, topic="", partition=0, leader_epoch=0, topic_id=None), config, waits_for)
        if key not in self._words:
            rules = choose_rules(snapshot.cluster.features).rules
            self._words[key] = awaited_in_words(case_of(snapshot, state, rules), waits_for)
        return self._words[key]


class _Seen:
    """What the pages of one look held.

    Args:
        left_out: topics that are not watched.
    """

    def __init__(self, cluster: Cluster, followed: Collection[TopicPartition], left_out: frozenset[str]) -> None:
        self.kept: dict[TopicPartition, Described] = {}
        self.errors: list[TopicError] = []
        self._cluster = cluster
        self._followed = followed
        self.topics: set[str] = set()
        self._left_out = left_out
        self._followed_topics = {at.topic for at in followed}
        self._read = self._catching_up = 0

    def add(self, page: SurveyPage) -> None:
        """A page of what is unsettled: of what is healthy only what is followed is kept, all of it is counted."""
        self._read += page.read
        self.topics.update(page.topics - self._left_out)
        self.errors.extend(page.topic_errors)
        if not isinstance(page.partitions, Rows):
            for row in page.partitions:
                self._keep(row)
            return
        for run in page.partitions.runs:
            follows = run.topic in self._followed_topics
            for number, epoch, kind in zip(run.numbers, run.leader_epochs, run.kinds, strict=True):
                healthy = kind.example.situation is Situation.HEALTHY
                self._catching_up += healthy
                if not healthy or (follows and TopicPartition(run.topic, number) in self._followed):
                    row = page.partitions.named(kind, run.topic, run.topic_id, number, epoch)
                    self.kept[row.state.address] = row

    def _keep(self, row: Described) -> None:
        healthy = row.situation is Situation.HEALTHY
        self._catching_up += healthy
        if not healthy or row.state.address in self._followed:
            self.kept[row.state.address] = row

    def add_settled(self, page: SurveyPage) -> None:
        """A page of partitions that are followed and are no more among the unsettled ones. One that is gone is no
        error: it is missing; another error hides what became of it."""
        for row in page.partitions:
            self.kept.setdefault(row.state.address, row)
        self.errors.extend(one for one in page.topic_errors if not one.absent and one.error not in _GONE)

    @property
    def unread(self) -> frozenset[str]:
        """Topics of which it is not known how they stand now."""
        return frozenset(one.topic for one in self.errors if not one.absent and one.error not in _GONE)

    @property
    def absent(self) -> frozenset[str]:
        """Topics that are not there."""
        return frozenset(one.topic for one in self.errors if not one.absent and one.error in _GONE)

    def counts(self, watched: Iterable[Watched], *, controller_silent: bool) -> Counts:
        leaderless = unsafe = under = unknown = 0
        for one in watched:
            if not one.in_trouble:
                continue
            has_leader = one.state.leader is not None and one.state.leader in self._cluster.live
            leaderless += not has_leader
            unsafe += one.situation is Situation.UNDER_MIN_ISR
            unknown += one.situation is Situation.UNKNOWN or one.min_isr is None
            under += one.min_isr is not None and len(one.state.isr) < one.min_isr
        read = self._read if self.topics else 0
        return Counts(read, leaderless, unsafe, under, unknown, self._catching_up, controller_silent, len(self.unread))


def _brokers(cluster: Cluster, known: Iterable[int]) -> Mapping[int, BrokerStatus]:
    """Every broker that is or was listed."""
    return {broker: cluster.status(broker) for broker in sorted({*known, *(one.id for one in cluster.brokers)})}


def selection_of(addresses: Iterable[TopicPartition]) -> Selection:
    """These partitions, and no others."""
    by_topic: dict[str, list[int]] = {}
    for at in sorted(addresses):
        by_topic.setdefault(at.topic, []).append(at.partition)
    return Selection(tuple(Target(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()))
