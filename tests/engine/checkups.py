"""Facts by hand for the checks of `kelr.engine.checkup`: a cluster that is well, to be broken by each test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kelr.engine import situation_of
from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    Features,
    PartitionState,
    TopicConfig,
    leader_min_isr,
)
from kelr.model.checkup import (
    Announced,
    BrokerFacts,
    CheckupFacts,
    ConfigRead,
    Finding,
    LogDirectory,
    NotChecked,
    Quorum,
    QuorumNode,
    RestartHistory,
    Restarts,
)
from kelr.model.described import Described

NOW_MS = 1_800_000_000_000
LEVELS = {ELR_FEATURE: 1, METADATA_FEATURE: 30, "transaction.version": 2}
FEATURES = Features(LEVELS, LEVELS, elect_leaders=2)
CLUSTER = Cluster(
    "id",
    tuple(Broker(number, BrokerStatus.LIVE, f"kafka-{number}", 9092, f"az{number % 3}") for number in range(1, 7)),
    FEATURES,
    controller=100,
    brokers_source="DescribeCluster v2",
    partitions_source="DescribeTopicPartitions v0",
)
CONFIGS = {
    "min.insync.replicas": ConfigRead("2", ConfigSource.CLUSTER_DEFAULT, "2"),
    "auto.leader.rebalance.enable": ConfigRead("false", ConfigSource.STATIC, "false"),
}
ANNOUNCED = Announced(LEVELS, LEVELS, {1: 18, 75: 0})


def node(number: int, ago_ms: int | None = 100) -> QuorumNode:
    """A controller or broker that fetched, and had everything, so long ago; None: never."""
    at = None if ago_ms is None else NOW_MS - ago_ms
    return QuorumNode(number, 10, at, at)


QUORUM = Quorum(
    100,
    3,
    (node(100, 0), node(101), node(102)),
    tuple(node(number) for number in range(1, 7)),
    ("c:9093",),
    NOW_MS - 5,
    NOW_MS + 5,
)
WELL = CheckupFacts(
    CLUSTER,
    tuple(BrokerFacts(number, ANNOUNCED, CONFIGS, (LogDirectory("/d"),)) for number in range(1, 7)),
    {"min.insync.replicas": "2"},
    QUORUM,
    RestartHistory(0, NOW_MS, (Restarts(1, (5,), 3, 0),)),
    (),
    moving=False,
)


def with_features(facts: CheckupFacts, finalized: Mapping[str, int], supported: Mapping[str, int]) -> CheckupFacts:
    """The same cluster with these levels, which all brokers announce."""
    features = Features(finalized, supported, elect_leaders=2)
    brokers = tuple(replace(one, announced=Announced(finalized, supported, {1: 18})) for one in brokers_of(facts))
    return replace(facts, cluster=replace(facts.cluster, features=features), brokers=brokers)


def brokers_of(facts: CheckupFacts) -> tuple[BrokerFacts, ...]:
    assert isinstance(facts.brokers, tuple)
    return facts.brokers


def with_broker(facts: CheckupFacts, broker: int, **changes: Any) -> CheckupFacts:
    """One broker told something else."""
    brokers = tuple(replace(one, **changes) if one.broker == broker else one for one in brokers_of(facts))
    return replace(facts, brokers=brokers)


def with_config(facts: CheckupFacts, name: str, config: ConfigRead, *brokers: int) -> CheckupFacts:
    """These brokers have another config."""
    for broker in brokers:
        (known,) = (one.configs for one in brokers_of(facts) if one.broker == broker)
        assert isinstance(known, Mapping)
        facts = with_broker(facts, broker, configs={**known, name: config})
    return facts


def found(told: Iterable[Finding | NotChecked]) -> dict[str, Finding]:
    """Findings by id; each id once."""
    findings = [one for one in told if isinstance(one, Finding)]
    by_id = {one.id: one for one in findings}
    assert len(by_id) == len(findings), [one.what for one in findings]
    return by_id


def unchecked(told: Iterable[Finding | NotChecked]) -> dict[str, str]:
    return {one.id: one.why for one in told if isinstance(one, NotChecked)}


KNOWN = TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, False, ConfigSource.DEFAULT)


def row(
    topic: str,
    number: int,
    replicas: tuple[int, ...] = (1, 2, 3),
    *,
    config: TopicConfig = KNOWN,
    cluster: Cluster = CLUSTER,
    **state: Any,
) -> Described:
    """A partition as the survey describes it: healthy unless told otherwise."""
    values = {
        "leader": replicas[0],
        "isr": replicas,
        "elr": (),
        "last_known_elr": (),
        "adding": (),
        "removing": (),
        **state,
    }
    partition = PartitionState(topic, number, leader_epoch=1, replicas=replicas, **values)
    min_isr = leader_min_isr(config.min_insync_replicas, len(replicas))
    return Described(partition, situation_of(partition, cluster, min_isr), min_isr, config)
