"""Everything that the controller has on record: brokers, partitions, and the configs and features that rule elections.

A frozen value; `kelr.controller.machine` turns it and an event into the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller.change import Circumstances
from kelr.controller.rules import RecoveryStrategy, RuleSet
from kelr.model import BrokerStatus, PartitionState, TopicPartition, controller_min_isr, leader_min_isr

# What the controller remembers of an ELR after a ClearElrRecord emptied it.
#
# The partitions that a returning or a leaving broker is in the ELR of are found by an index (BrokersToElrs). A
# ClearElrRecord empties the ELR but does not touch the index (ReplicationControlManager.removeTopicElrs, 4.0.0 to
# 4.3.1), so entries stay behind: the partition is looked at again, and if its topic is deleted meanwhile, the
# controller fails.


@dataclass(frozen=True, slots=True)
class ElrIndex:
    """The entries of the index that no ELR accounts for."""

    stale: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """How many entries too many there are of a partition and a broker."""
    deleted: frozenset[int] = frozenset()
    """Brokers with entries of topics that are deleted: to look at one fails."""

    def count(self, address: TopicPartition, broker: int) -> int:
        return self.stale.get((address, broker), 0)

    def with_cleared(self, address: TopicPartition, elr: Iterable[int]) -> ElrIndex:
        """A ClearElrRecord emptied this ELR: its entries stay."""
        stale = dict(self.stale)
        for broker in elr:
            stale[address, broker] = stale.get((address, broker), 0) + 1
        return ElrIndex(stale, self.deleted)

    def with_gone(self, address: TopicPartition, brokers: Iterable[int]) -> ElrIndex:
        """Brokers left the ELR in an ordinary record, which takes one entry out of an array of partition numbers.

        Further entries of the same number are taken for it too, and the places that they leave are filled with zeros
        (BrokersToElrs.remove): entries of the topic's partition 0.
        """
        stale = dict(self.stale)
        for broker in brokers:
            count = stale.pop((address, broker), 0)
            if count:
                first = (TopicPartition(address.topic, 0), broker)
                stale[first] = stale.get(first, 0) + count
        return ElrIndex(stale, self.deleted)

    def without_topic(self, topic: str, members: Iterable[int]) -> ElrIndex:
        """The topic is deleted; the entries of its present ELR `members` go, and all of the same brokers with them."""
        of_topic = {broker for address, broker in self.stale if address.topic == topic}
        stale = {key: count for key, count in self.stale.items() if key[0].topic != topic}
        return ElrIndex(stale, self.deleted | (of_topic - set(members)))


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker as it is registered (BrokerRegistration)."""

    epoch: int
    """The broker epoch: a new one with each incarnation."""
    fenced: bool = True
    in_controlled_shutdown: bool = False
    rack: str | None = None
    cordoned: bool = False
    """Whether all its log directories are cordoned (KIP-1066): no order may name it (Kafka 4.4). A new incarnation is
    not until its first heartbeat tells so."""

    @property
    def active(self) -> bool:
        """Whether its replicas may lead and be in sync (ClusterControlManager.isActive)."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def status(self) -> BrokerStatus:
        if self.fenced:
            return BrokerStatus.FENCED
        return BrokerStatus.SHUTTING_DOWN if self.in_controlled_shutdown else BrokerStatus.LIVE


ELECTION_CONFIGS = (
    "min.insync.replicas",
    "unclean.leader.election.enable",
    "unclean.recovery.strategy",
    "unclean.recovery.timeout.ms",
)
"""The configs that the controller's decisions about partitions depend on; the last two are KIP-966's."""


@dataclass(frozen=True, slots=True)
class Configs:
    """The configs that elections depend on, at one level; None where that level does not set one."""

    min_isr: int | None = None
    unclean_leader_election: bool | None = None
    recovery_strategy: RecoveryStrategy | None = None
    """unclean.recovery.strategy; released Kafka has none, and passes it over."""
    recovery_timeout_ms: int | None = None
    """unclean.recovery.timeout.ms: the controller's own, and no topic's."""

    @property
    def named(self) -> Mapping[str, str]:
        """Those that are set, by Kafka's names and as text."""
        values = (self.min_isr, self.unclean_leader_election, self.recovery_strategy, self.recovery_timeout_ms)
        return {
            name: str(value).lower() for name, value in zip(ELECTION_CONFIGS, values, strict=True) if value is not None
        }


DEFAULTS = Configs(min_isr=1, unclean_leader_election=False)
"""Kafka's own defaults."""


@dataclass(frozen=True, slots=True)
class ControllerState:
    """All that the controller's decisions about partitions stand on.

    The `offline_replicas` of its partitions are replicas whose log directory failed: whether their broker lives is told
    by `brokers`.
    """

    rules: RuleSet
    brokers: Mapping[int, Registration] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    static: Configs = DEFAULTS
    """The configs of the controller's own file."""
    cluster: Configs = Configs()
    """The cluster-wide dynamic configs."""
    topics: Mapping[str, Configs] = field(default_factory=dict)
    """What topics set for themselves."""
    first_partition_replicas: Mapping[str, int] = field(default_factory=dict)
    """Replica counts of partition 0, for topics whose partition 0 is not among `partitions`."""
    min_isr_unknown: frozenset[str] = frozenset()
    """Topics whose min.insync.replicas could not be read."""
    next_epoch: int = 1
    """The broker epoch of the next registration."""
    stopping: frozenset[int] = frozenset()
    """Brokers whose controlled shutdown the active controller has begun (BrokerHeartbeatManager); the next controller
    begins it again."""
    elr_index: ElrIndex = field(default_factory=ElrIndex)
    """What the controller's index of ELR members has too much of."""
    deleted_replicas: frozenset[tuple[TopicPartition, int]] = frozenset()
    """Replicas of topics that were deleted while a partition's ISR was empty: the controller's index of log directories
    keeps them (ReplicationControlManager.replay(RemoveTopicRecord) clears it member by member of the ISR), and to look
    at one when its directory fails is an error of the controller."""

    def min_isr(self, topic: str) -> int:
        """The min ISR that the controller keeps ELRs by (`controller_min_isr`)."""
        return controller_min_isr(self.config(topic).min_isr, self._replica_count(topic)) or 1

    def leader_min_isr(self, partition: PartitionState) -> int:
        """The one that a partition's leader goes by (`leader_min_isr`)."""
        return leader_min_isr(self.config(partition.topic).min_isr, len(partition.replicas)) or 1

    def config(self, topic: str) -> Configs:
        """The configs in force for a topic."""
        levels = (self.topics.get(topic, Configs()), self.cluster, self.static, DEFAULTS)
        return Configs(
            next(level.min_isr for level in levels if level.min_isr is not None),
            next(level.unclean_leader_election for level in levels if level.unclean_leader_election is not None),
            next((level.recovery_strategy for level in levels if level.recovery_strategy is not None), None),
        )

    @property
    def recovery_timeout_ms(self) -> int | None:
        """The unclean.recovery.timeout.ms in force; None where nobody set one."""
        own, file = self.cluster.recovery_timeout_ms, self.static.recovery_timeout_ms
        return file if own is None else own

    def rules_of(self, topic: str) -> RuleSet:
        """The rules by which a topic's leaders are elected.

        A strategy that the topic, the cluster or the file names stands above the rule set's own; only where nobody
        names one does unclean.leader.election.enable stand for it (KIP-966, "Compatibility").
        """
        config = self.config(topic)
        if config.recovery_strategy is not None:
            return self.rules.with_strategy(config.recovery_strategy)
        return self.rules.of_topic(config.unclean_leader_election)

    def active(self, broker: int) -> bool:
        registration = self.brokers.get(broker)
        return registration is not None and registration.active

    def electable(self, partition: PartitionState) -> frozenset[int]:
        """Brokers named by the partition that may be elected at all (ReplicationControlManager.LeaderAcceptor)."""
        lost = partition.offline_replicas or ()
        named = {*partition.replicas, *(partition.elr or ()), *(partition.last_known_elr or ())}
        return frozenset(broker for broker in named if self.active(broker) and broker not in lost)

    def around(self, partition: PartitionState) -> Circumstances:
        """The circumstances of one partition, before an event changes them."""
        unclean = bool(self.config(partition.topic).unclean_leader_election)
        return Circumstances(
            electable=self.electable(partition),
            min_isr=self.min_isr(partition.topic),
            min_isr_known=partition.topic not in self.min_isr_unknown,
            rules=self.rules_of(partition.topic),
            unclean_leader_election=unclean,
        )

    def with_broker(self, broker: int, registration: Registration | None) -> ControllerState:
        """The state with a broker registered like this; None takes its registration away."""
        others = {known: value for known, value in self.brokers.items() if known != broker}
        stopping = self.stopping if registration and not registration.fenced else self.stopping - {broker}
        brokers = others if registration is None else {**others, broker: registration}
        return replace(self, brokers=brokers, stopping=stopping)

    def with_partition(self, partition: PartitionState) -> ControllerState:
        return self.with_partitions((partition,))

    def with_partitions(self, partitions: Iterable[PartitionState]) -> ControllerState:
        """The state with these partitions; the others are copied once, however many these are."""
        changed = {partition.address: partition for partition in partitions}
        return replace(self, partitions={**self.partitions, **changed}) if changed else self

    def of_topic(self, topic: str) -> tuple[TopicPartition, ...]:
        """The addresses of a topic's partitions, in order."""
        return tuple(sorted(address for address in self.partitions if address.topic == topic))

    def _replica_count(self, topic: str) -> int:
        first = self.partitions.get(TopicPartition(topic, 0))
        return self.first_partition_replicas[topic] if first is None else len(first.replicas)
