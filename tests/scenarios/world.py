"""A cluster on paper: brokers, configs, partitions and their logs, a frozen value that events turn into the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller import Change, Circumstances, RuleSet, electable_replicas
from kelr.engine import effective_min_isr
from kelr.model import (
    ELR_FEATURE,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    Features,
    LogAnswer,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicPartition,
)

Handler = Callable[[PartitionState, Circumstances], Change]


@dataclass(frozen=True, slots=True)
class Config:
    """The two configs that elections depend on, in force for a topic or as the cluster's default."""

    min_isr: int
    unclean: bool


@dataclass(frozen=True, slots=True)
class TopicOverride:
    """The configs that a topic has of its own; None for those it takes from the cluster."""

    min_isr: int | None = None
    unclean: bool | None = None


@dataclass(frozen=True, slots=True)
class World:
    """Everything that a scenario has said so far."""

    rules: RuleSet
    brokers: Mapping[int, BrokerStatus]
    default: Config
    topics: Mapping[str, TopicOverride] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, PartitionState] = field(default_factory=dict)
    logs: Mapping[TopicPartition, Mapping[int, LogAnswer]] = field(default_factory=dict)

    def config(self, topic: str) -> Config:
        own = self.topics.get(topic, TopicOverride())
        return Config(
            self.default.min_isr if own.min_isr is None else own.min_isr,
            self.default.unclean if own.unclean is None else own.unclean,
        )

    def min_isr(self, state: PartitionState) -> int:
        """The effective min ISR, from the replica count of the topic's partition 0 (rule 17)."""
        effective = effective_min_isr(self.config(state.topic).min_isr, self._first_replicas(state))
        assert effective is not None
        return effective

    def around(self, state: PartitionState) -> Circumstances:
        return Circumstances(
            electable=electable_replicas(state, self.cluster),
            min_isr=self.min_isr(state),
            rules=self.rules,
            unclean_leader_election=self.config(state.topic).unclean,
        )

    @property
    def cluster(self) -> Cluster:
        brokers = tuple(Broker(broker, status) for broker, status in sorted(self.brokers.items()))
        features = Features(finalized={ELR_FEATURE: int(self.rules.elr)})
        return Cluster(None, brokers, features, brokers_source="scenario", partitions_source="scenario")

    def snapshot(self) -> Snapshot:
        """The world as the engine reads it."""
        states = tuple(self.partitions[address] for address in sorted(self.partitions))
        return Snapshot(
            taken_at_ms=0,
            cluster=self.cluster,
            partitions=states,
            configs={state.topic: self._topic_config(state.topic) for state in states},
            logs={address: tuple(logs.values()) for address, logs in self.logs.items()},
            first_partition_replicas={state.topic: self._first_replicas(state) for state in states},
            source="scenario",
        )

    def with_status(self, broker: int, status: BrokerStatus | None) -> World:
        """The world with a broker of this status; None takes its registration away."""
        brokers = {id_: known for id_, known in self.brokers.items() if id_ != broker}
        return replace(self, brokers=brokers if status is None else {**brokers, broker: status})

    def with_partition(self, state: PartitionState) -> World:
        return replace(self, partitions={**self.partitions, state.address: state})

    def with_log(self, address: TopicPartition, answer: LogAnswer) -> World:
        logs = {**self.logs.get(address, {}), answer.replica: answer}
        return replace(self, logs={**self.logs, address: logs})

    def after(self, handler: Handler, only: TopicPartition | None = None) -> tuple[World, tuple[Change, ...]]:
        """Let an event reach every partition, or one, in the order of their names."""
        world, changes = self, []
        for address in sorted(self.partitions) if only is None else (only,):
            state = self.partitions[address]
            change = handler(state, self.around(state))
            changes.append(change)
            world = world.with_partition(change.after)
        return world, tuple(changes)

    def _first_replicas(self, state: PartitionState) -> int:
        first = self.partitions.get(TopicPartition(state.topic, 0), state)
        return len(first.replicas)

    def _topic_config(self, topic: str) -> TopicConfig:
        config, own = self.config(topic), self.topics.get(topic, TopicOverride())
        return TopicConfig(
            config.min_isr,
            _source(own.min_isr),
            config.unclean,
            _source(own.unclean),
        )


def _source(own: object) -> ConfigSource:
    return ConfigSource.CLUSTER_DEFAULT if own is None else ConfigSource.TOPIC
