"""Which configs topics and brokers have, of which type, and which values Kafka takes for them.

Source: LogConfig, KafkaConfig, DynamicBrokerConfig and ConfigDef.parseType of Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kelr.controller import RecoveryStrategy, strategy_named

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
