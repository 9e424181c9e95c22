"""What the configs of a topic, of a broker and of the cluster are, and from where they come.

The configs that elections depend on are on record with the controller; the others are kept as they were written and
change nothing.

Source: ConfigHelper of Apache Kafka 4.3 (createTopicConfigEntry, createBrokerConfigEntry, configSynonyms).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kelr.controller import Configs, RecoveryStrategy, strategy_named
from kelr.controller.state import DEFAULTS
from kelr.lab.simulated.world import HOST, World

# Which configs topics and brokers have, of which type, and which values Kafka takes for them.
#
# Source: LogConfig, KafkaConfig, DynamicBrokerConfig and ConfigDef.parseType of Apache Kafka 4.3.1.


# The configs of a topic of Kafka 4.3.1: name, type, the broker config that it falls back on, and default.
#
# As DescribeConfigs answers them; ``-`` where no broker config stands behind it.

TOPIC_CONFIGS = """
cleanup.policy LIST log.cleanup.policy delete
compression.gzip.level INT compression.gzip.level -1
compression.lz4.level INT compression.lz4.level 9
compression.type STRING compression.type producer
compression.zstd.level INT compression.zstd.level 3
delete.retention.ms LONG log.cleaner.delete.retention.ms 86400000
file.delete.delay.ms LONG log.segment.delete.delay.ms 60000
flush.messages LONG log.flush.interval.messages 9223372036854775807
flush.ms LONG log.flush.interval.ms 9223372036854775807
follower.replication.throttled.replicas LIST -
index.interval.bytes INT log.index.interval.bytes 4096
leader.replication.throttled.replicas LIST -
local.retention.bytes LONG log.local.retention.bytes -2
local.retention.ms LONG log.local.retention.ms -2
max.compaction.lag.ms LONG log.cleaner.max.compaction.lag.ms 9223372036854775807
max.message.bytes INT message.max.bytes 1048588
message.timestamp.after.max.ms LONG log.message.timestamp.after.max.ms 3600000
message.timestamp.before.max.ms LONG log.message.timestamp.before.max.ms 9223372036854775807
message.timestamp.type STRING log.message.timestamp.type CreateTime
min.cleanable.dirty.ratio DOUBLE log.cleaner.min.cleanable.ratio 0.5
min.compaction.lag.ms LONG log.cleaner.min.compaction.lag.ms 0
min.insync.replicas INT min.insync.replicas 1
preallocate BOOLEAN log.preallocate false
remote.log.copy.disable BOOLEAN - false
remote.log.delete.on.disable BOOLEAN - false
remote.storage.enable BOOLEAN - false
retention.bytes LONG log.retention.bytes -1
retention.ms LONG log.retention.ms 604800000
segment.bytes INT log.segment.bytes 1073741824
segment.index.bytes INT log.index.size.max.bytes 10485760
segment.jitter.ms LONG log.roll.jitter.ms 0
segment.ms LONG log.roll.ms 604800000
unclean.leader.election.enable BOOLEAN unclean.leader.election.enable false
"""


# The configs of a broker of Kafka 4.3.1 that stand behind a topic's, or that kelr and this cluster look at: name, type,
# whether it can be changed while the broker runs, and default. Of the 300 others, the cluster has none.
#
# As DescribeConfigs answers them; ``null`` where there is no default.

BROKER_CONFIGS = """
auto.create.topics.enable BOOLEAN static true
auto.leader.rebalance.enable BOOLEAN static true
broker.heartbeat.interval.ms INT static 2000
broker.id INT static -1
broker.rack STRING static null
broker.session.timeout.ms INT static 9000
compression.gzip.level INT dynamic -1
compression.lz4.level INT dynamic 9
compression.type STRING dynamic producer
compression.zstd.level INT dynamic 3
controller.listener.names LIST static null
cordoned.log.dirs LIST dynamic
default.replication.factor INT static 1
listeners LIST dynamic PLAINTEXT://:9092
log.cleaner.delete.retention.ms LONG dynamic 86400000
log.cleaner.max.compaction.lag.ms LONG dynamic 9223372036854775807
log.cleaner.min.cleanable.ratio DOUBLE dynamic 0.5
log.cleaner.min.compaction.lag.ms LONG dynamic 0
log.cleanup.policy LIST dynamic delete
log.dirs LIST static null
log.flush.interval.messages LONG dynamic 9223372036854775807
log.flush.interval.ms LONG dynamic null
log.flush.scheduler.interval.ms LONG static 9223372036854775807
log.index.interval.bytes INT dynamic 4096
log.index.size.max.bytes INT dynamic 10485760
log.local.retention.bytes LONG dynamic -2
log.local.retention.ms LONG dynamic -2
log.message.timestamp.after.max.ms LONG dynamic 3600000
log.message.timestamp.before.max.ms LONG dynamic 9223372036854775807
log.message.timestamp.type STRING dynamic CreateTime
log.preallocate BOOLEAN dynamic false
log.retention.bytes LONG dynamic -1
log.retention.ms LONG dynamic null
log.roll.jitter.ms LONG dynamic null
log.roll.ms LONG dynamic null
log.segment.bytes INT dynamic 1073741824
log.segment.delete.delay.ms LONG dynamic 60000
max.request.partition.size.limit INT static 2000
message.max.bytes INT dynamic 1048588
min.insync.replicas INT dynamic 1
node.id INT static null
num.io.threads INT dynamic 8
num.partitions INT static 1
offsets.topic.replication.factor SHORT static 3
process.roles LIST static null
replica.lag.time.max.ms LONG static 30000
request.timeout.ms INT static 30000
ssl.keystore.key PASSWORD dynamic null
ssl.keystore.password PASSWORD dynamic null
transaction.state.log.min.isr INT static 2
transaction.state.log.replication.factor SHORT static 3
unclean.leader.election.enable BOOLEAN dynamic false
"""


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
    rows = (line.split(" ", 3) for line in TOPIC_CONFIGS.strip().splitlines())
    keys = (Key(name, kind, "".join(rest), None if behind == "-" else behind) for name, kind, behind, *rest in rows)
    return {key.name: key for key in (*keys, *(_OF_KIP966[:1] if kip966 else ()))}


@cache
def broker_keys(*, kip966: bool) -> Mapping[str, Key]:
    """The same for brokers."""
    rows = (line.split(" ", 3) for line in BROKER_CONFIGS.strip().splitlines())
    keys = (
        Key(name, kind, None if rest == ["null"] else "".join(rest), dynamic=change == "dynamic")
        for name, kind, change, *rest in rows
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
