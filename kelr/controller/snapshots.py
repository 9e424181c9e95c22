"""A snapshot as the controller would have it on record, and back: how what-if questions start from a real cluster."""

from __future__ import annotations

from dataclasses import replace

from kelr.controller.rules import RuleSet, strategy_named
from kelr.controller.state import Configs, ControllerState, Registration
from kelr.model import Broker, BrokerStatus, PartitionState, Snapshot, TopicConfig


def controller_state(snapshot: Snapshot, rules: RuleSet) -> ControllerState:
    """The controller's records as far as a snapshot tells them.

    A replica that is offline on a live broker has lost its log directory (or its broker is stopping, which
    DescribeCluster does not tell); one on a dead broker is taken to be back when its broker is. Brokers without a known
    epoch get one that differs from all others. Configs that are not known count as Kafka's defaults; the engine says so
    in its notes.
    """
    brokers = _registrations(snapshot)
    partitions = {state.address: _on_record(state, snapshot) for state in snapshot.partitions}
    counts = {address.topic: len(state.replicas) for address, state in partitions.items()}
    return ControllerState(
        rules=rules,
        brokers=brokers,
        partitions=partitions,
        topics={topic: _configs(config, rules) for topic, config in snapshot.configs.items()},
        first_partition_replicas={**counts, **snapshot.first_partition_replicas},
        min_isr_unknown=frozenset(topic for topic in counts if _config(snapshot, topic).min_insync_replicas is None),
        next_epoch=max((registration.epoch for registration in brokers.values()), default=0) + 1,
    )


def snapshot_of(state: ControllerState, base: Snapshot) -> Snapshot:
    """The snapshot `base` with the brokers and partitions as they are in `state`; its logs and configs stay."""
    known = {broker.id: broker for broker in base.cluster.brokers}
    brokers = tuple(
        replace(
            known.get(id_, Broker(id_, registration.status)),
            status=registration.status,
            rack=registration.rack,
        )
        for id_, registration in sorted(state.brokers.items())
    )
    if not base.cluster.lists_fenced_brokers:
        # A broker that such a source does not list may be fenced; one that was unregistered is known not to be.
        gone = sorted(_registrations(base).keys() - state.brokers.keys())
        brokers += tuple(
            replace(known.get(id_, Broker(id_, BrokerStatus.UNREGISTERED)), status=BrokerStatus.UNREGISTERED)
            for id_ in gone
        )
    partitions = tuple(
        _described(state, state.partitions[partition.address])
        for partition in base.partitions
        if partition.address in state.partitions
    )
    return replace(base, cluster=replace(base.cluster, brokers=brokers), partitions=partitions)


def _registrations(snapshot: Snapshot) -> dict[int, Registration]:
    """The registered brokers; where the source lists only live ones, those that partitions name may be fenced."""
    cluster = snapshot.cluster
    listed = {broker.id: broker for broker in cluster.brokers}
    named = {broker for state in snapshot.partitions for broker in (*state.replicas, *(state.elr or ()))}
    known = sorted({*listed, *named})
    return {
        id_: _registration(listed.get(id_, Broker(id_, cluster.status(id_))), index)
        for index, id_ in enumerate(known, 1)
        if cluster.status(id_) is not BrokerStatus.UNREGISTERED
    }


def _registration(broker: Broker, index: int) -> Registration:
    return Registration(
        epoch=index if broker.broker_epoch is None else broker.broker_epoch,
        fenced=broker.status not in {BrokerStatus.LIVE, BrokerStatus.SHUTTING_DOWN},
        in_controlled_shutdown=broker.status is BrokerStatus.SHUTTING_DOWN,
        rack=broker.rack,
        cordoned=bool(broker.cordoned),
    )


def _on_record(state: PartitionState, snapshot: Snapshot) -> PartitionState:
    if state.offline_replicas is None:
        return state
    lost = tuple(broker for broker in state.offline_replicas if broker in snapshot.cluster.live)
    return replace(state, offline_replicas=lost)


def _described(state: ControllerState, partition: PartitionState) -> PartitionState:
    """The partition as DescribeTopicPartitions would show it: replicas on dead brokers are offline too."""
    if partition.offline_replicas is None:
        return partition
    lost = partition.offline_replicas
    offline = tuple(broker for broker in partition.replicas if broker in lost or not state.active(broker))
    return replace(partition, offline_replicas=offline)


def _config(snapshot: Snapshot, topic: str) -> TopicConfig:
    return snapshot.configs.get(topic, TopicConfig())


def _configs(config: TopicConfig, rules: RuleSet) -> Configs:
    # A rule set that names a strategy is asked for whatever the topic has.
    strategy = strategy_named(config.recovery_strategy) if rules.strategy_by_topic else None
    return Configs(config.min_insync_replicas, config.unclean_leader_election_of_the_controller, strategy)
