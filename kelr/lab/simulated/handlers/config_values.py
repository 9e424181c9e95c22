"""What the configs of a topic, of a broker and of the cluster are, and from where they come.

The configs that elections depend on are on record with the controller; the others are kept as they were written and
change nothing.

Source: ConfigHelper of Apache Kafka 4.3 (createTopicConfigEntry, createBrokerConfigEntry, configSynonyms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.controller import Configs
from kelr.controller.state import DEFAULTS
from kelr.lab.simulated.handlers.config_table import (
    MANAGER,
    MIN_ISR,
    STRATEGY,
    TIMEOUT,
    UNCLEAN,
    Key,
    broker_keys,
    topic_keys,
)
from kelr.lab.simulated.world import HOST, World

TOPIC, BROKER, CLUSTER, STATIC, DEFAULT = 1, 2, 3, 4, 5
"""DescribeConfigsResponse.ConfigSource: a topic's own, a broker's own, dynamic and cluster-wide, in a file, Kafka's."""
EVERY_BROKER = ""
"""The name of the resource that is the cluster-wide default of brokers."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that a config has at one level."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A config as it is described."""

    key: Key
    value: str | None
    source: int
    synonyms: Sequence[Synonym] = ()
    read_only: bool = False


def of_topic(world: World, node: int, topic: str) -> Iterator[Entry]:
    """All configs of a topic, in the order of their names; what it does not set itself is as at the node asked."""
    own, levels = topic_configs(world, topic), _levels(world, node)
    for name, key in topic_keys(kip966=by_the_kip(world)).items():
        if guarded(world, name):
            continue
        synonyms = [Synonym(name, own[name], TOPIC)] if name in own else []
        synonyms += _synonyms(world, levels, key.behind)
        first = synonyms[0] if synonyms else Synonym(name, key.default, DEFAULT)
        yield Entry(key, first.value, first.source, synonyms)


def of_broker(world: World, node: int) -> Iterator[Entry]:
    """All configs of a broker or controller."""
    levels, keys = _levels(world, node), broker_keys(kip966=by_the_kip(world))
    told = {name: _key(world, name) for level, _source in levels for name in level}
    for name, key in sorted({**told, **keys}.items()):
        if not guarded(world, name):
            yield _broker_entry(key, list(_synonyms(world, levels, name)))


def of_every_broker(world: World) -> Iterator[Entry]:
    """The dynamic configs that are set cluster-wide."""
    for name, value in sorted(cluster_configs(world).items()):
        yield _broker_entry(_key(world, name), [Synonym(name, value, CLUSTER)])


def topic_configs(world: World, topic: str) -> Mapping[str, str]:
    """What a topic sets for itself."""
    levels = world.running.cluster.controller.topics.get(topic, Configs())
    return {**world.topic_configs.get(topic, {}), **levels.named}


def cluster_configs(world: World) -> Mapping[str, str]:
    """What is set cluster-wide while brokers run."""
    return {**world.broker_configs.get(EVERY_BROKER, {}), **world.running.cluster.controller.cluster.named}


def by_the_kip(world: World) -> bool:
    """Whether the cluster has the configs that KIP-966 adds."""
    return world.running.cluster.controller.rules.kip966


def guarded(world: World, name: str) -> bool:
    """Whether this config would not be obeyed: "Unclean Recovery is guarded by the feature flag
    unclean.recovery.manager.enabled" (KIP-966, "Compatibility")."""
    rules = world.running.cluster.controller.rules
    return name in {STRATEGY, TIMEOUT} and rules.kip966 and not rules.recovers


def _broker_entry(key: Key, synonyms: Sequence[Synonym]) -> Entry:
    if key.sensitive:
        synonyms = [Synonym(one.name, None, one.source) for one in synonyms]
    first = synonyms[0] if synonyms else Synonym(key.name, key.default, DEFAULT)
    value = None if key.sensitive else first.value
    return Entry(key, value, first.source, synonyms, read_only=not key.dynamic)


def _key(world: World, name: str) -> Key:
    return broker_keys(kip966=by_the_kip(world)).get(name) or Key(name, "UNKNOWN", None, dynamic=False)


def _levels(world: World, node: int) -> Sequence[tuple[Mapping[str, str], int]]:
    """What is set at each level, the one that counts first."""
    own = world.broker_configs.get(str(node), {})
    return ((own, BROKER), (cluster_configs(world), CLUSTER), (static_configs(world, node), STATIC))


def _synonyms(world: World, levels: Sequence[tuple[Mapping[str, str], int]], name: str | None) -> Iterator[Synonym]:
    if name is None:
        return
    for values, source in levels:
        if name in values:
            yield Synonym(name, values[name], source)
    key = broker_keys(kip966=by_the_kip(world)).get(name)
    if key is not None and key.default is not None:
        yield Synonym(name, key.default, DEFAULT)


def static_configs(world: World, node: int) -> Mapping[str, str]:
    """What the file of a node says."""
    spec, timing, controller = world.spec, world.spec.timing, world.running.cluster.controller
    rules = controller.rules
    values = {
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "broker.session.timeout.ms": str(timing.session_ms),
        "replica.lag.time.max.ms": str(timing.lag_ms),
        "default.replication.factor": str(spec.replication),
        "max.request.partition.size.limit": str(spec.page_limit),
    }
    file = controller.static
    if file.min_isr not in {None, DEFAULTS.min_isr}:
        values[MIN_ISR] = str(file.min_isr)
    if file.unclean_leader_election not in {None, DEFAULTS.unclean_leader_election}:
        values[UNCLEAN] = str(file.unclean_leader_election).lower()
    if rules.kip966:
        values[MANAGER] = str(rules.recovers).lower()
    if rules.recovery is not None and not rules.strategy_by_topic:
        values[STRATEGY] = rules.recovery.value
    return {**values, **_of_node(world, node)}


def _of_node(world: World, node: int) -> Mapping[str, str]:
    role, listener = ("controller", "CONTROLLER") if node in world.controllers else ("broker", "PLAINTEXT")
    rack = world.racks.get(node)
    values = {
        "node.id": str(node),
        "broker.id": str(node),
        "process.roles": role,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener}://{HOST}:{world.ports[node]}",
    }
    return values if rack is None else {**values, "broker.rack": rack}
