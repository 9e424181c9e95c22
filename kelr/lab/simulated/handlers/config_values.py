"""What the configs of a topic, of a broker and of the cluster are, and from where they come.

The configs that elections depend on are on record with the controller; the others are kept as they were written and
change nothing.

Source: ConfigHelper of Apache Kafka 4.3 (createTopicConfigEntry, createBrokerConfigEntry, configSynonyms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kelr.controller import Configs, RecoveryStrategy, strategy_named
from kelr.controller.state import DEFAULTS
from kelr.lab.simulated.world import HOST, World

# Which configs topics and brokers have, of which type, and which values Kafka takes for them.
#
# Source: LogConfig, KafkaConfig, DynamicBrokerConfig and ConfigDef.parseType of Apache Kafka 4.3.1.


# The configs themselves are in topic_configs.txt and broker_configs.txt, beside this file.


def _rows(name: str) -> Iterator[list[str]]:
    """The words of each line; a default may have spaces in it, or be empty."""
    text = files(__package__).joinpath(name).read_text("utf-8")
    return (line.split(" ", 3) for line in text.splitlines() if not line.startswith("#"))


# The kinds of things that have configs (ConfigResource.Type).

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KNOWN = frozenset({TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP})


MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
STRATEGY = "unclean.recovery.strategy"
TIMEOUT = "unclean.recovery.timeout.ms"
MANAGER = "unclean.recovery.manager.enabled"
STRATEGIES = tuple(RecoveryStrategy)

TYPES = ("UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
"""DescribeConfigsResponse.ConfigType, by its number."""
_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}


@dataclass(frozen=True, slots=True)
class Key:
    """A config."""

    name: str
    type: str
    default: str | None
    behind: str | None = None
    """For a topic's: the broker config that it falls back on."""
    dynamic: bool = True
    """For a broker's: whether it can be changed while the broker runs."""

    @property
    def sensitive(self) -> bool:
        """Whether no value is ever shown (KafkaConfig.maybeSensitive)."""
        return self.type in {"PASSWORD", "UNKNOWN"}


_OF_KIP966 = (
    Key(STRATEGY, "STRING", "balanced", STRATEGY),
    Key(TIMEOUT, "INT", "300000"),
    Key(MANAGER, "BOOLEAN", "false", dynamic=False),
)
"""What KIP-966 adds ("Config changes"); it names no type."""


@cache
def topic_keys(*, kip966: bool) -> Mapping[str, Key]:
    """By name.

    Args:
        kip966: with what KIP-966 adds, as no release has it.
    """
    keys = (
        Key(name, kind, "".join(rest), None if behind == "-" else behind)
        for name, kind, behind, *rest in _rows("topic_configs.txt")
    )
    return {key.name: key for key in (*keys, *(_OF_KIP966[:1] if kip966 else ()))}


@cache
def broker_keys(*, kip966: bool) -> Mapping[str, Key]:
    """The same for brokers."""
    keys = (
        Key(name, kind, None if rest == ["null"] else "".join(rest), dynamic=change == "dynamic")
        for name, kind, change, *rest in _rows("broker_configs.txt")
    )
    return {key.name: key for key in (*keys, *(_OF_KIP966 if kip966 else ()))}


def wrong_value(key: Key, value: str) -> str | None:
    """What Kafka says of a value that it does not take; None where it takes it.

    Of the limits that Kafka has for numbers, those of the election configs alone are known here.
    """
    problem = _problem(key, value)
    return None if problem is None else f"Invalid value {value} for configuration {key.name}: {problem}"


def _problem(key: Key, value: str) -> str | None:
    if key.type == "BOOLEAN":
        known = value.strip().lower() in {"true", "false"}
        return None if known else "Expected value to be either true or false"
    if key.type == "DOUBLE":
        try:
            float(value)
        except ValueError:
            return "Not a number of type DOUBLE"
    if key.type in _BITS:
        number = _whole(value)
        if number is None or not -(1 << _BITS[key.type] - 1) <= number < 1 << _BITS[key.type] - 1:
            return f"Not a number of type {key.type}"
        least = {MIN_ISR: 1, TIMEOUT: 0}.get(key.name)
        if least is not None and number < least:
            return f"Value must be at least {least}"
    if key.name == STRATEGY and strategy_named(value) is None:
        return f"String must be one of (case insensitive): {', '.join(STRATEGIES)}"
    return None


def _whole(value: str) -> int | None:
    """A number as Java reads it."""
    digits = value.strip()
    bare = digits[1:] if digits[:1] in {"-", "+"} else digits
    return int(digits) if bare.isascii() and bare.isdigit() else None


FROM_TOPIC, FROM_BROKER, FROM_CLUSTER, FROM_FILE, FROM_KAFKA = 1, 2, 3, 4, 5
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
        synonyms = [Synonym(name, own[name], FROM_TOPIC)] if name in own else []
        synonyms += _synonyms(world, levels, key.behind)
        first = synonyms[0] if synonyms else Synonym(name, key.default, FROM_KAFKA)
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
        yield _broker_entry(_key(world, name), [Synonym(name, value, FROM_CLUSTER)])


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
    first = synonyms[0] if synonyms else Synonym(key.name, key.default, FROM_KAFKA)
    value = None if key.sensitive else first.value
    return Entry(key, value, first.source, synonyms, read_only=not key.dynamic)


def _key(world: World, name: str) -> Key:
    return broker_keys(kip966=by_the_kip(world)).get(name) or Key(name, "UNKNOWN", None, dynamic=False)


def _levels(world: World, node: int) -> Sequence[tuple[Mapping[str, str], int]]:
    """What is set at each level, the one that counts first."""
    own = world.broker_configs.get(str(node), {})
    return ((own, FROM_BROKER), (cluster_configs(world), FROM_CLUSTER), (static_configs(world, node), FROM_FILE))


def _synonyms(world: World, levels: Sequence[tuple[Mapping[str, str], int]], name: str | None) -> Iterator[Synonym]:
    if name is None:
        return
    for values, source in levels:
        if name in values:
            yield Synonym(name, values[name], source)
    key = broker_keys(kip966=by_the_kip(world)).get(name)
    if key is not None and key.default is not None:
        yield Synonym(name, key.default, FROM_KAFKA)


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
