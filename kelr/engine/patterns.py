"""Patterns: what a verdict depends on, with the partition's own names taken out.

A cluster has many partitions and few patterns. Two partitions of which each has lost its second replica, say, are
decided alike, whatever their brokers are called. So a pattern is a partition whose brokers are called 0, 1, 2, ...,
with all that `decide` looks at and nothing else; it is decided as any partition is, and its verdict is told in the ids
of each partition that has the pattern. There are no other rules here than those of `decide`.

`kelr.engine.batch` decides many partitions this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kelr.controller import RuleSet, choose_rules
from kelr.engine.case import case_of
from kelr.engine.decide import decide
from kelr.engine.logs import verified
from kelr.engine.verdict import Verdict, verdict_of
from kelr.model import (
    ELR_FEATURE,
    LOG_DIRECTORY,
    SAVED,
    Broker,
    BrokerStatus,
    Cluster,
    Features,
    LogAnswer,
    LogUnavailable,
    PartitionState,
    RecoveryQuorum,
    Snapshot,
    TopicConfig,
)

_SOURCE = "DescribeCluster v2"
"""Pattern clusters list every broker, so that each has exactly the status that the pattern says."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Everything that the verdict about a partition depends on; hashable, and complete: it can be decided anywhere."""

    state: PartitionState
    """Brokers by their names in the pattern; no epochs, unless logs are known that are judged by them."""
    statuses: tuple[BrokerStatus, ...]
    """The status of each broker; a broker's name is its place here."""
    config: TopicConfig
    first_partition_replicas: int
    """Replica count of the topic's partition 0."""
    logs: tuple[LogAnswer, ...]
    """The replicas' logs as they are, but for the names and what only words are made of."""
    elr_enabled: bool | None
    rules: RuleSet
    quorum: RecoveryQuorum | None = None
    """Who holds everything committed, where a metadata log proves it; without places and times of the log."""

    def snapshot(self) -> Snapshot:
        """A cluster that has this one partition and its brokers."""
        topic = self.state.topic
        finalized = None if self.elr_enabled is None else {ELR_FEATURE: int(self.elr_enabled)}
        brokers = tuple(Broker(name, status) for name, status in enumerate(self.statuses))
        return Snapshot(
            taken_at_ms=0,
            cluster=Cluster(None, brokers, Features(finalized), brokers_source=_SOURCE),
            partitions=(self.state,),
            configs={topic: self.config},
            logs={self.state.address: self.logs} if self.logs else {},
            first_partition_replicas={topic: self.first_partition_replicas},
            quorums={} if self.quorum is None else {self.state.address: self.quorum},
        )

    def decide(self) -> Verdict:
        """The verdict about a partition of this pattern, in the pattern's names (see `Verdict.renamed`)."""
        return verdict_of(decide(self.snapshot(), self.state, self.rules))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A partition as its pattern, and who is who in it."""

    pattern: Pattern
    brokers: tuple[int, ...]
    """The id of each broker, in the order of the pattern's names."""

    def tell(self, verdict: Verdict) -> Verdict:
        """The pattern's verdict in the partition's own broker ids."""
        return verdict.renamed(lambda name: name if name < 0 else self.brokers[name])


def pattern_of(snapshot: Snapshot, state: PartitionState, rules: RuleSet | None = None) -> Occurrence:
    """The pattern of one partition of a snapshot.

    Args:
        rules: the rule set; None takes the one that the cluster was found to run (`choose_rules`).
    """
    found = (verified(answer, snapshot.cluster) for answer in snapshot.logs.get(state.address, ()))
    answers = _replicas_answers(state, found)
    brokers = _mentioned(state)
    chosen = choose_rules(snapshot.cluster.features).rules if rules is None else rules
    name_of = {broker: name for name, broker in enumerate(brokers)}
    pattern = Pattern(
        state=_renamed(state, name_of, keep_epoch=bool(answers)),
        statuses=tuple(map(snapshot.cluster.status, brokers)),
        config=snapshot.configs.get(state.topic, TopicConfig()),
        first_partition_replicas=snapshot.first_partition_replicas.get(state.topic, len(state.replicas)),
        logs=tuple(_without_words(answer, name_of[answer.replica]) for answer in answers),
        elr_enabled=snapshot.cluster.features.elr_enabled,
        rules=chosen,
        quorum=_proven(snapshot, state, chosen, name_of, keeps_epoch=bool(answers)),
    )
    return Occurrence(pattern, brokers)


def _proven(
    snapshot: Snapshot, state: PartitionState, rules: RuleSet, name_of: dict[int, int], *, keeps_epoch: bool
) -> RecoveryQuorum | None:
    """The quorum, where decisions hang on it: nobody who is live leads, and a guarantee can stand on it; or somebody
    does, and replicas were left behind by an unclean election."""
    known = snapshot.quorums.get(state.address)
    if known is None:
        return None
    epoch = _epoch(state, keep=keeps_epoch)
    if state.leader in snapshot.cluster.live:
        behind = tuple(name_of[broker] for broker in known.left_behind)
        if behind:
            return _named((), 0, epoch, doubt="left behind", left_behind=behind)
        # Read beside the epochs of logs alone.
        counts = keeps_epoch and known.doubt is None and known.leader_epoch >= state.leader_epoch
        followed = known.followed_since if counts else None
        return None if followed is None else _named((), 0, epoch, followed_since=followed)
    quorum = case_of(snapshot, state, rules).proven_quorum
    if quorum is None:
        return None
    return _named(tuple(name_of[member] for member in quorum.members), quorum.min_isr, epoch)


def _named(
    members: tuple[int, ...],
    min_isr: int,
    leader_epoch: int,
    *,
    doubt: str | None = None,
    left_behind: tuple[int, ...] = (),
    followed_since: int | None = None,
) -> RecoveryQuorum:
    """A quorum without the moments and offsets of its log."""
    return RecoveryQuorum(
        members=members,
        last_known_elr=(),
        restarted=(),
        min_isr=min_isr,
        since_offset=0,
        since_ms=0,
        leader_epoch=leader_epoch,
        partition_epoch=0,
        as_of_offset=0,
        as_of_ms=0,
        doubt=doubt,
        left_behind=left_behind,
        followed_since=followed_since,
    )


def topic_in_pattern(topic: str) -> str:
    """The name of a topic in its pattern: advice knows Kafka's own topics by name, and no others."""
    return topic if topic.startswith("__") else "topic"


def _replicas_answers(state: PartitionState, answers: Iterable[LogAnswer]) -> tuple[LogAnswer, ...]:
    """The answers that count, in assignment order: one for each replica, the last one given."""
    by_replica = {answer.replica: answer for answer in answers}
    return tuple(by_replica[replica] for replica in dict.fromkeys(state.replicas) if replica in by_replica)


def _mentioned(state: PartitionState) -> tuple[int, ...]:
    """All brokers that the state names, each once, replicas first; -1, which Kafka 4.0 can store, names nobody."""
    others = (state.isr, state.elr, state.last_known_elr, state.offline_replicas, state.adding, state.removing)
    named = dict.fromkeys(state.replicas)
    named.update(dict.fromkeys(() if state.leader is None else (state.leader,)))
    for group in others:
        named.update(dict.fromkeys(group or ()))
    return tuple(broker for broker in named if broker >= 0)


def _epoch(state: PartitionState, *, keep: bool) -> int:
    """The leader epoch, where logs stand beside it; else 0 or 1: whether anybody else has led before."""
    return state.leader_epoch if keep else min(state.leader_epoch, 1)


def _renamed(state: PartitionState, name_of: dict[int, int], *, keep_epoch: bool) -> PartitionState:
    def members(group: Sequence[int]) -> tuple[int, ...]:
        return tuple(name_of.get(broker, broker) for broker in group)

    def known(group: Sequence[int] | None) -> tuple[int, ...] | None:
        return None if group is None else members(group)

    return PartitionState(
        topic=topic_in_pattern(state.topic),
        partition=0,
        leader=None if state.leader is None else name_of.get(state.leader, state.leader),
        leader_epoch=_epoch(state, keep=keep_epoch),
        replicas=members(state.replicas),
        isr=members(state.isr),
        elr=known(state.elr),
        last_known_elr=known(state.last_known_elr),
        offline_replicas=known(state.offline_replicas),
        adding=known(state.adding),
        removing=known(state.removing),
        recovering=state.recovering,
    )


def _without_words(answer: LogAnswer, name: int) -> LogAnswer:
    """A log answer without what only explanations tell: when it came, how a failure reads, and where it comes from. But
    a disk's holds that and no more while its broker is down, and an earlier look's may be cut since."""
    if isinstance(answer, LogUnavailable):
        return LogUnavailable(name, answer.reason, unclean_shutdown=answer.unclean_shutdown)
    source = SAVED if answer.is_earlier else LOG_DIRECTORY if answer.source == LOG_DIRECTORY else ""
    return replace(answer, replica=name, broker_epoch=None, source=source, read_at_ms=None, last_epoch_error=None)
