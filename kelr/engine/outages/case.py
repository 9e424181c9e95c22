"""A partition as far as an outage depends on it, with the names taken out (as `kelr.engine.patterns` does)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kelr.controller import ControllerState, RuleSet, controller_state
from kelr.engine.patterns import Pattern
from kelr.model import Broker, BrokerStatus, Cluster, Features, PartitionState, Snapshot, TopicConfig, TopicPartition

_SOURCE = "DescribeCluster v2"
_OTHER = 1
"""The number of a partition whose min ISR another partition's replica count decides (rule 17)."""


@dataclass(frozen=True, slots=True)
class OutageCase:
    """Everything that an outage's effect on a partition depends on; brokers are called by their places."""

    state: PartitionState
    """Its leader epoch is 0."""
    statuses: tuple[BrokerStatus, ...]
    config: TopicConfig
    first_partition_replicas: int
    rules: RuleSet
    first: PartitionState | None = None
    """The topic's partition 0, where a reassignment of it is under way: an outage may complete it, and then it has
    another replica count, which bounds the min ISR of all partitions of the topic."""

    @property
    def address(self) -> TopicPartition:
        return self.state.address

    @property
    def cluster(self) -> Cluster:
        """The brokers that the partition names."""
        brokers = tuple(Broker(name, status) for name, status in enumerate(self.statuses))
        return Cluster(None, brokers, Features(), brokers_source=_SOURCE)

    def start(self) -> ControllerState:
        """The controller's records of this partition alone."""
        topic = self.state.topic
        partitions = (self.state,) if self.first is None else (self.first, self.state)
        snapshot = Snapshot(
            0,
            self.cluster,
            partitions,
            {topic: self.config},
            first_partition_replicas={topic: self.first_partition_replicas},
        )
        return controller_state(snapshot, self.rules)


@dataclass(frozen=True, slots=True)
class Placed:
    """A case, and who is who in it."""

    case: OutageCase
    brokers: tuple[int, ...]
    """The id of each broker, by its name in the case."""


def case_of_pattern(pattern: Pattern) -> OutageCase:
    """The case of a partition of a topic whose partition 0 no reassignment changes."""
    return OutageCase(
        replace(pattern.state, partition=_OTHER, leader_epoch=0),
        pattern.statuses,
        pattern.config,
        pattern.first_partition_replicas,
        pattern.rules,
    )


def case_of_first(pattern: Pattern) -> OutageCase:
    """The case of a partition 0 of which a reassignment is under way."""
    return replace(case_of_pattern(pattern), state=replace(pattern.state, leader_epoch=0))


def beside_first(placed: Placed, first: Placed) -> Placed:
    """The case of a partition together with its topic's partition 0.

    Args:
        first: partition 0, as `case_of_first` has it.
    """
    others = tuple(broker for broker in first.brokers if broker not in placed.brokers)
    brokers = (*placed.brokers, *others)
    names = {name: brokers.index(broker) for name, broker in enumerate(first.brokers)}
    statuses = dict(zip(first.brokers, first.case.statuses, strict=True))
    case = replace(
        placed.case,
        statuses=(*placed.case.statuses, *(statuses[broker] for broker in others)),
        first=renamed(first.case.state, names),
    )
    return Placed(case, brokers)


def renamed(state: PartitionState, names: dict[int, int]) -> PartitionState:
    """The partition with its brokers called otherwise; ids that are nobody's stay."""

    def members(group: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(names.get(broker, broker) for broker in group)

    def known(group: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if group is None else members(group)

    return replace(
        state,
        leader=None if state.leader is None else names.get(state.leader, state.leader),
        replicas=members(state.replicas),
        isr=members(state.isr),
        elr=known(state.elr),
        last_known_elr=known(state.last_known_elr),
        offline_replicas=known(state.offline_replicas),
        adding=known(state.adding),
        removing=known(state.removing),
    )
