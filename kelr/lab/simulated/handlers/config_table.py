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


# The configs of a broker of Kafka 4.3.1: name, type, whether it can be changed while the broker runs, and default.
#
# As DescribeConfigs answers them; ``null`` where there is no default.

BROKER_CONFIGS = """
add.partitions.to.txn.retry.backoff.max.ms INT static 100
add.partitions.to.txn.retry.backoff.ms INT static 20
advertised.listeners LIST static null
alter.config.policy.class.name CLASS static null
alter.log.dirs.replication.quota.window.num INT static 11
alter.log.dirs.replication.quota.window.size.seconds INT static 1
authorizer.class.name STRING static
auto.create.topics.enable BOOLEAN static true
auto.leader.rebalance.enable BOOLEAN static true
background.threads INT dynamic 10
broker.heartbeat.interval.ms INT static 2000
broker.id INT static -1
broker.rack STRING static null
broker.session.timeout.ms INT static 9000
client.quota.callback.class CLASS static null
compression.gzip.level INT dynamic -1
compression.lz4.level INT dynamic 9
compression.type STRING dynamic producer
compression.zstd.level INT dynamic 3
config.providers LIST dynamic
connection.failed.authentication.delay.ms INT static 100
connections.max.idle.ms LONG static 600000
connections.max.reauth.ms LONG static 0
controlled.shutdown.enable BOOLEAN static true
controller.listener.names LIST static null
controller.quorum.append.linger.ms INT static 25
controller.quorum.auto.join.enable BOOLEAN static false
controller.quorum.bootstrap.servers LIST static
controller.quorum.election.backoff.max.ms INT static 1000
controller.quorum.election.timeout.ms INT static 1000
controller.quorum.fetch.max.bytes INT static 1048576
controller.quorum.fetch.snapshot.max.bytes INT static 1048576
controller.quorum.fetch.timeout.ms INT static 2000
controller.quorum.request.timeout.ms INT static 2000
controller.quorum.retry.backoff.ms INT static 20
controller.quorum.voters LIST static
controller.quota.window.num INT static 11
controller.quota.window.size.seconds INT static 1
controller.socket.timeout.ms INT static 30000
cordoned.log.dirs LIST dynamic
create.topic.policy.class.name CLASS static null
default.replication.factor INT static 1
delegation.token.expiry.check.interval.ms LONG static 3600000
delegation.token.expiry.time.ms LONG static 86400000
delegation.token.max.lifetime.ms LONG static 604800000
delegation.token.secret.key PASSWORD static null
delete.records.purgatory.purge.interval.requests INT static 1
delete.topic.enable BOOLEAN static true
early.start.listeners LIST static null
fetch.max.bytes INT static 57671680
fetch.purgatory.purge.interval.requests INT static 1000
follower.fetch.last.tiered.offset.enable BOOLEAN dynamic false
group.consumer.assignment.interval.ms INT dynamic 1000
group.consumer.assignors LIST static uniform,range
group.consumer.heartbeat.interval.ms INT static 5000
group.consumer.max.assignment.interval.ms INT static 15000
group.consumer.max.heartbeat.interval.ms INT static 15000
group.consumer.max.session.timeout.ms INT static 60000
group.consumer.max.size INT static 2147483647
group.consumer.migration.policy STRING static bidirectional
group.consumer.min.assignment.interval.ms INT static 0
group.consumer.min.heartbeat.interval.ms INT static 5000
group.consumer.min.session.timeout.ms INT static 45000
group.consumer.session.timeout.ms INT static 45000
group.coordinator.append.linger.ms INT static -1
group.coordinator.background.threads INT static 2
group.coordinator.cached.buffer.max.bytes INT dynamic 1048588
group.coordinator.rebalance.protocols LIST static classic,consumer,streams
group.coordinator.threads INT static 4
group.initial.rebalance.delay.ms INT static 3000
group.max.session.timeout.ms INT static 1800000
group.max.size INT static 2147483647
group.min.session.timeout.ms INT static 6000
group.share.assignment.interval.ms INT dynamic 1000
group.share.assignors LIST static simple
group.share.delivery.count.limit INT static 5
group.share.heartbeat.interval.ms INT static 5000
group.share.max.assignment.interval.ms INT static 15000
group.share.max.delivery.count.limit INT static 10
group.share.max.heartbeat.interval.ms INT static 15000
group.share.max.partition.max.record.locks INT static 4000
group.share.max.record.lock.duration.ms INT static 60000
group.share.max.session.timeout.ms INT static 60000
group.share.max.share.sessions INT static 2000
group.share.max.size INT static 200
group.share.min.assignment.interval.ms INT static 0
group.share.min.delivery.count.limit INT static 2
group.share.min.heartbeat.interval.ms INT static 5000
group.share.min.partition.max.record.locks INT static 100
group.share.min.record.lock.duration.ms INT static 15000
group.share.min.session.timeout.ms INT static 45000
group.share.partition.max.record.locks INT static 2000
group.share.record.lock.duration.ms INT static 30000
group.share.session.timeout.ms INT static 45000
group.streams.assignment.interval.ms INT dynamic 1000
group.streams.heartbeat.interval.ms INT static 5000
group.streams.initial.rebalance.delay.ms INT static 3000
group.streams.max.assignment.interval.ms INT static 15000
group.streams.max.heartbeat.interval.ms INT static 15000
group.streams.max.session.timeout.ms INT static 60000
group.streams.max.size INT static 2147483647
group.streams.max.standby.replicas INT static 2
group.streams.min.assignment.interval.ms INT static 0
group.streams.min.heartbeat.interval.ms INT static 5000
group.streams.min.session.timeout.ms INT static 45000
group.streams.num.standby.replicas INT static 0
group.streams.session.timeout.ms INT static 45000
initial.broker.registration.timeout.ms INT static 60000
inter.broker.listener.name STRING static null
kafka.metrics.polling.interval.secs INT static 10
kafka.metrics.reporters LIST static
leader.imbalance.check.interval.seconds LONG static 300
listener.security.protocol.map STRING dynamic SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
listeners LIST dynamic PLAINTEXT://:9092
log.cleaner.backoff.ms LONG dynamic 15000
log.cleaner.dedupe.buffer.size LONG dynamic 134217728
log.cleaner.delete.retention.ms LONG dynamic 86400000
log.cleaner.enable BOOLEAN static true
log.cleaner.io.buffer.load.factor DOUBLE dynamic 0.9
log.cleaner.io.buffer.size INT dynamic 524288
log.cleaner.io.max.bytes.per.second DOUBLE dynamic 1.7976931348623157E308
log.cleaner.max.compaction.lag.ms LONG dynamic 9223372036854775807
log.cleaner.min.cleanable.ratio DOUBLE dynamic 0.5
log.cleaner.min.compaction.lag.ms LONG dynamic 0
log.cleaner.threads INT dynamic 1
log.cleanup.policy LIST dynamic delete
log.dir LIST static /tmp/kafka-logs
log.dir.failure.timeout.ms LONG static 30000
log.dirs LIST static null
log.flush.interval.messages LONG dynamic 9223372036854775807
log.flush.interval.ms LONG dynamic null
log.flush.offset.checkpoint.interval.ms INT static 60000
log.flush.scheduler.interval.ms LONG static 9223372036854775807
log.flush.start.offset.checkpoint.interval.ms INT static 60000
log.index.interval.bytes INT dynamic 4096
log.index.size.max.bytes INT dynamic 10485760
log.local.retention.bytes LONG dynamic -2
log.local.retention.ms LONG dynamic -2
log.message.timestamp.after.max.ms LONG dynamic 3600000
log.message.timestamp.before.max.ms LONG dynamic 9223372036854775807
log.message.timestamp.type STRING dynamic CreateTime
log.preallocate BOOLEAN dynamic false
log.retention.bytes LONG dynamic -1
log.retention.check.interval.ms LONG static 300000
log.retention.hours INT static 168
log.retention.minutes INT static null
log.retention.ms LONG dynamic null
log.roll.hours INT static 168
log.roll.jitter.hours INT static 0
log.roll.jitter.ms LONG dynamic null
log.roll.ms LONG dynamic null
log.segment.bytes INT dynamic 1073741824
log.segment.delete.delay.ms LONG dynamic 60000
max.connection.creation.rate INT dynamic 2147483647
max.connections INT dynamic 2147483647
max.connections.per.ip INT dynamic 2147483647
max.connections.per.ip.overrides STRING dynamic
max.incremental.fetch.session.cache.slots INT static 1000
max.request.partition.size.limit INT static 2000
message.max.bytes INT dynamic 1048588
metadata.log.dir STRING static null
metadata.log.max.record.bytes.between.snapshots LONG static 20971520
metadata.log.max.snapshot.interval.ms LONG static 3600000
metadata.log.segment.bytes INT static 1073741824
metadata.log.segment.ms LONG static 604800000
metadata.max.idle.interval.ms INT static 500
metadata.max.retention.bytes LONG static 104857600
metadata.max.retention.ms LONG static 604800000
metric.reporters LIST dynamic org.apache.kafka.common.metrics.JmxReporter
metrics.num.samples INT static 2
metrics.recording.level STRING static INFO
metrics.sample.window.ms LONG static 30000
min.insync.replicas INT dynamic 1
node.id INT static null
num.io.threads INT dynamic 8
num.network.threads INT dynamic 3
num.partitions INT static 1
num.recovery.threads.per.data.dir INT dynamic 2
num.replica.alter.log.dirs.threads INT static null
num.replica.fetchers INT dynamic 1
offset.metadata.max.bytes INT static 4096
offsets.commit.timeout.ms INT static 5000
offsets.load.buffer.size INT static 5242880
offsets.retention.check.interval.ms LONG static 600000
offsets.retention.minutes INT static 10080
offsets.topic.compression.codec INT static 0
offsets.topic.num.partitions INT static 50
offsets.topic.replication.factor SHORT static 3
offsets.topic.segment.bytes INT static 104857600
principal.builder.class CLASS dynamic org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
process.roles LIST static null
producer.id.expiration.ms INT dynamic 86400000
producer.purgatory.purge.interval.requests INT static 1000
queued.max.request.bytes LONG static -1
queued.max.requests INT static 500
quota.window.num INT static 11
quota.window.size.seconds INT static 1
remote.fetch.max.wait.ms INT dynamic 500
remote.list.offsets.request.timeout.ms LONG dynamic 30000
remote.log.index.file.cache.total.size.bytes LONG dynamic 1073741824
remote.log.manager.copier.thread.pool.size INT dynamic 10
remote.log.manager.copy.max.bytes.per.second LONG dynamic 9223372036854775807
remote.log.manager.copy.quota.window.num INT static 11
remote.log.manager.copy.quota.window.size.seconds INT static 1
remote.log.manager.expiration.thread.pool.size INT dynamic 10
remote.log.manager.fetch.max.bytes.per.second LONG dynamic 9223372036854775807
remote.log.manager.fetch.quota.window.num INT static 11
remote.log.manager.fetch.quota.window.size.seconds INT static 1
remote.log.manager.follower.thread.pool.size INT dynamic 2
remote.log.manager.task.interval.ms LONG static 30000
remote.log.manager.thread.pool.size INT static 2
remote.log.metadata.custom.metadata.max.bytes INT static 128
remote.log.metadata.manager.class.name STRING static org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
remote.log.metadata.manager.class.path STRING static null
remote.log.metadata.manager.impl.prefix STRING static rlmm.config.
remote.log.metadata.manager.listener.name STRING static null
remote.log.reader.max.pending.tasks INT static 100
remote.log.reader.threads INT dynamic 10
remote.log.storage.manager.class.name STRING static null
remote.log.storage.manager.class.path STRING static null
remote.log.storage.manager.impl.prefix STRING static rsm.config.
remote.log.storage.system.enable BOOLEAN static false
replica.fetch.backoff.ms INT static 1000
replica.fetch.max.bytes INT static 1048576
replica.fetch.min.bytes INT static 1
replica.fetch.response.max.bytes INT static 10485760
replica.fetch.wait.max.ms INT static 500
replica.high.watermark.checkpoint.interval.ms LONG static 5000
replica.lag.time.max.ms LONG static 30000
replica.selector.class STRING static null
replica.socket.receive.buffer.bytes INT static 65536
replica.socket.timeout.ms INT static 30000
replication.quota.window.num INT static 11
replication.quota.window.size.seconds INT static 1
request.timeout.ms INT static 30000
sasl.client.callback.handler.class CLASS static null
sasl.enabled.mechanisms LIST dynamic GSSAPI
sasl.jaas.config PASSWORD dynamic null
sasl.kerberos.kinit.cmd STRING dynamic /usr/bin/kinit
sasl.kerberos.min.time.before.relogin LONG dynamic 60000
sasl.kerberos.principal.to.local.rules LIST dynamic DEFAULT
sasl.kerberos.service.name STRING dynamic null
sasl.kerberos.ticket.renew.jitter DOUBLE dynamic 0.05
sasl.kerberos.ticket.renew.window.factor DOUBLE dynamic 0.8
sasl.login.callback.handler.class CLASS static null
sasl.login.class CLASS static null
sasl.login.connect.timeout.ms INT static null
sasl.login.read.timeout.ms INT static null
sasl.login.refresh.buffer.seconds SHORT dynamic 300
sasl.login.refresh.min.period.seconds SHORT dynamic 60
sasl.login.refresh.window.factor DOUBLE dynamic 0.8
sasl.login.refresh.window.jitter DOUBLE dynamic 0.05
sasl.login.retry.backoff.max.ms LONG static 10000
sasl.login.retry.backoff.ms LONG static 100
sasl.mechanism.controller.protocol STRING static GSSAPI
sasl.mechanism.inter.broker.protocol STRING dynamic GSSAPI
sasl.oauthbearer.assertion.algorithm STRING static RS256
sasl.oauthbearer.assertion.claim.aud STRING static null
sasl.oauthbearer.assertion.claim.exp.seconds INT static 300
sasl.oauthbearer.assertion.claim.iss STRING static null
sasl.oauthbearer.assertion.claim.jti.include BOOLEAN static false
sasl.oauthbearer.assertion.claim.nbf.seconds INT static 60
sasl.oauthbearer.assertion.claim.sub STRING static null
sasl.oauthbearer.assertion.file STRING static null
sasl.oauthbearer.assertion.private.key.file STRING static null
sasl.oauthbearer.assertion.private.key.passphrase PASSWORD static null
sasl.oauthbearer.assertion.template.file STRING static null
sasl.oauthbearer.client.credentials.client.id STRING static null
sasl.oauthbearer.client.credentials.client.secret PASSWORD static null
sasl.oauthbearer.clock.skew.seconds INT static 30
sasl.oauthbearer.expected.audience LIST static
sasl.oauthbearer.expected.issuer STRING static null
sasl.oauthbearer.jwks.endpoint.refresh.ms LONG static 3600000
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms LONG static 10000
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms LONG static 100
sasl.oauthbearer.jwks.endpoint.url STRING static null
sasl.oauthbearer.jwt.retriever.class CLASS static org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
sasl.oauthbearer.jwt.validator.class CLASS static org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
sasl.oauthbearer.scope STRING static null
sasl.oauthbearer.scope.claim.name STRING static scope
sasl.oauthbearer.sub.claim.name STRING static sub
sasl.oauthbearer.token.endpoint.url STRING static null
sasl.server.callback.handler.class CLASS static null
sasl.server.max.receive.size INT static 524288
security.inter.broker.protocol STRING static PLAINTEXT
security.providers STRING static null
share.coordinator.append.linger.ms INT static -1
share.coordinator.cached.buffer.max.bytes INT dynamic 1048588
share.coordinator.load.buffer.size INT static 5242880
share.coordinator.snapshot.update.records.per.snapshot INT static 500
share.coordinator.state.topic.compression.codec INT static 0
share.coordinator.state.topic.min.isr SHORT static 2
share.coordinator.state.topic.num.partitions INT static 50
share.coordinator.state.topic.replication.factor SHORT static 3
share.coordinator.state.topic.segment.bytes INT static 104857600
share.coordinator.threads INT static 1
share.coordinator.write.timeout.ms INT static 5000
share.fetch.purgatory.purge.interval.requests INT static 1000
socket.connection.setup.timeout.max.ms LONG static 30000
socket.connection.setup.timeout.ms LONG static 10000
socket.listen.backlog.size INT static 50
socket.receive.buffer.bytes INT static 102400
socket.request.max.bytes INT static 104857600
socket.send.buffer.bytes INT static 102400
ssl.allow.dn.changes BOOLEAN static false
ssl.allow.san.changes BOOLEAN static false
ssl.cipher.suites LIST dynamic
ssl.client.auth STRING dynamic none
ssl.enabled.protocols LIST dynamic TLSv1.2,TLSv1.3
ssl.endpoint.identification.algorithm STRING dynamic https
ssl.engine.factory.class CLASS dynamic null
ssl.key.password PASSWORD dynamic null
ssl.keymanager.algorithm STRING dynamic SunX509
ssl.keystore.certificate.chain PASSWORD dynamic null
ssl.keystore.key PASSWORD dynamic null
ssl.keystore.location STRING dynamic null
ssl.keystore.password PASSWORD dynamic null
ssl.keystore.type STRING dynamic JKS
ssl.principal.mapping.rules STRING static DEFAULT
ssl.protocol STRING dynamic TLSv1.3
ssl.provider STRING dynamic null
ssl.secure.random.implementation STRING dynamic null
ssl.trustmanager.algorithm STRING dynamic PKIX
ssl.truststore.certificates PASSWORD dynamic null
ssl.truststore.location STRING dynamic null
ssl.truststore.password PASSWORD dynamic null
ssl.truststore.type STRING dynamic JKS
telemetry.max.bytes INT static 1048576
transaction.abort.timed.out.transaction.cleanup.interval.ms INT static 10000
transaction.max.timeout.ms INT static 900000
transaction.partition.verification.enable BOOLEAN dynamic true
transaction.remove.expired.transaction.cleanup.interval.ms INT static 3600000
transaction.state.log.load.buffer.size INT static 5242880
transaction.state.log.min.isr INT static 2
transaction.state.log.num.partitions INT static 50
transaction.state.log.replication.factor SHORT static 3
transaction.state.log.segment.bytes INT static 104857600
transaction.two.phase.commit.enable BOOLEAN static false
transactional.id.expiration.ms INT static 604800000
unclean.leader.election.enable BOOLEAN dynamic false
"""  # noqa: E501 - names of Kafka's classes are long


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
