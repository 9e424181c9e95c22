"""The lines of a snapshot file: strict models of what is on disk, and the way to and from kelr's values.

The format is described in docs/snapshot-format.md. A field that is not known, is missing, or is out of range is an
error: whoever adds a field raises `FORMAT_VERSION`, so that an older kelr never decides on half of what was saved.
(Until the first release of kelr version 1 may still grow by optional fields.)
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    EpochEnd,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    RecoveryQuorum,
    ReplicaLog,
    TopicConfig,
    TopicError,
)
from kelr.model.fields import Brokers, Int32, Offset, Replicas, Topic, TopicId

FORMAT = "kelr-snapshot"
FORMAT_VERSION = 1


ErrorTopic = Annotated[str, Field(max_length=1000)]
Text = Annotated[str, Field(max_length=10_000)]
Level = Annotated[int, Field(ge=0, le=2**15 - 1)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class BrokerLine(_Line):
    id: Int32
    status: BrokerStatus
    host: Text | None = None
    port: Annotated[int, Field(gt=0, lt=65536)] | None = None
    rack: Text | None = None
    broker_epoch: Offset | None = None
    registered_by_ms: Offset | None = None
    log_dirs: tuple[Text, ...] | None = None
    cordoned: bool | None = None


class ClusterLine(_Line):
    cluster_id: Text | None
    brokers: tuple[BrokerLine, ...]
    finalized: dict[Text, Level] | None = None
    supported: dict[Text, Level] | None = None
    elect_leaders: Level | None = None
    controller: Int32 | None = None
    brokers_source: Text
    partitions_source: Text
    reassignments_error: Text | None = None
    controller_silence: Text | None = None

    @classmethod
    def of(cls, cluster: Cluster) -> Self:
        features = cluster.features
        return cls(
            cluster_id=cluster.cluster_id,
            brokers=tuple(
                BrokerLine(
                    id=broker.id,
                    status=broker.status,
                    host=broker.host,
                    port=broker.port,
                    rack=broker.rack,
                    broker_epoch=broker.broker_epoch,
                    registered_by_ms=broker.registered_by_ms,
                    log_dirs=broker.log_dirs,
                    cordoned=broker.cordoned,
                )
                for broker in cluster.brokers
            ),
            finalized=None if features.finalized is None else dict(features.finalized),
            supported=None if features.supported is None else dict(features.supported),
            elect_leaders=features.elect_leaders,
            controller=cluster.controller,
            brokers_source=cluster.brokers_source,
            partitions_source=cluster.partitions_source,
            reassignments_error=cluster.reassignments_error,
            controller_silence=cluster.controller_silence,
        )

    def value(self) -> Cluster:
        return Cluster(
            cluster_id=self.cluster_id,
            brokers=tuple(
                Broker(
                    broker.id,
                    broker.status,
                    broker.host,
                    broker.port,
                    broker.rack,
                    broker.broker_epoch,
                    broker.registered_by_ms,
                    broker.log_dirs,
                    broker.cordoned,
                )
                for broker in self.brokers
            ),
            features=Features(self.finalized, self.supported, self.elect_leaders),
            controller=self.controller,
            brokers_source=self.brokers_source,
            partitions_source=self.partitions_source,
            reassignments_error=self.reassignments_error,
            controller_silence=self.controller_silence,
        )


class DirectoryLine(_Line):
    """One log directory of a broker (`kelr.sources.disk.LogDirectory`)."""

    path: Text
    directory_id: Text | None = None
    clean_shutdown: bool | None = None
    broker_epoch: Annotated[int, Field(ge=-1, le=2**63 - 1)] | None = None
    running: bool | None = None
    single_replica: bool = False
    error: Text | None = None


class DiskLine(_Line):
    """A broker whose log directories were read: in the header of a collection."""

    broker: Int32
    read_at_ms: Offset
    directories: Annotated[tuple[DirectoryLine, ...], Field(min_length=1, max_length=10_000)]
    selected: tuple[Text, ...] | None = None
    """Targets of the partitions that were looked for; left out for all."""
    whole: bool = True
    """False: made of several readings that looked for different partitions, so that what is missing proves nothing."""
    warnings: Annotated[tuple[Text, ...], Field(max_length=100_000)] = ()


class HeaderLine(_Line):
    """The first line: what the file is, and the cluster."""

    format: Literal["kelr-snapshot"] = "kelr-snapshot"
    version: Literal[1] = 1
    kelr: Text
    taken_at_ms: Offset
    source: Text
    cluster: ClusterLine
    disks: Annotated[tuple[DiskLine, ...], Field(min_length=1, max_length=10_000)] | None = None
    """For a collection: the brokers whose log directories were read."""


class TopicLine(_Line):
    """A topic's configs and the replica count of its partition 0."""

    topic: Topic
    first_partition_replicas: Int32 | None = None
    min_insync_replicas: Int32 | None = None
    min_insync_replicas_source: ConfigSource | None = None
    unclean_leader_election: bool | None = None
    unclean_leader_election_source: ConfigSource | None = None
    config_error: Text | None = None
    cleanup_policy: tuple[Text, ...] | None = None
    recovery_strategy: Text | None = None
    remote_storage: bool | None = None
    foreign: Text | None = None
    has_config: bool = True

    @classmethod
    def of(cls, topic: str, config: TopicConfig | None, first_partition_replicas: int | None) -> Self:
        if config is None:
            return cls(topic=topic, first_partition_replicas=first_partition_replicas, has_config=False)
        return cls(
            topic=topic,
            first_partition_replicas=first_partition_replicas,
            min_insync_replicas=config.min_insync_replicas,
            min_insync_replicas_source=config.min_insync_replicas_source,
            unclean_leader_election=config.unclean_leader_election,
            unclean_leader_election_source=config.unclean_leader_election_source,
            config_error=config.error,
            cleanup_policy=config.cleanup_policy,
            recovery_strategy=config.recovery_strategy,
            remote_storage=config.remote_storage,
            foreign=config.foreign,
        )

    def config(self) -> TopicConfig | None:
        if not self.has_config:
            return None
        return TopicConfig(
            self.min_insync_replicas,
            self.min_insync_replicas_source or ConfigSource.UNKNOWN,
            self.unclean_leader_election,
            self.unclean_leader_election_source or ConfigSource.UNKNOWN,
            self.config_error,
            self.cleanup_policy,
            self.recovery_strategy,
            self.remote_storage,
            self.foreign,
        )


class LogLine(_Line):
    """One replica's log, or (with `unheard`) why nothing is known of it."""

    replica: Int32
    log_end: Offset | None = None
    last_epoch: Int32 | None = None
    current_leader_epoch: Int32 | None = None
    high_watermark: Offset | None = None
    log_start: Offset | None = None
    local_start: Offset | None = None
    remote_end: Offset | None = None
    lineage: tuple[tuple[Int32, Offset], ...] | None = None
    """(epoch, end offset) pairs, oldest first."""
    broker_epoch: Offset | None = None
    source: Text | None = None
    read_at_ms: Offset | None = None
    last_epoch_error: Text | None = None
    last_stable_offset: Offset | None = None
    unclean_shutdown: bool | None = None
    saved_high_watermark: Offset | None = None
    saved_epoch: Int32 | None = None
    may_have_held_more: bool = False
    unheard: LogUnavailableReason | None = None
    detail: Text | None = None

    @classmethod
    def of(cls, answer: LogAnswer) -> Self:
        if isinstance(answer, LogUnavailable):
            return cls(
                replica=answer.replica,
                unheard=answer.reason,
                detail=answer.detail,
                read_at_ms=answer.read_at_ms,
                unclean_shutdown=answer.unclean_shutdown,
            )
        lineage = answer.lineage
        return cls(
            replica=answer.replica,
            log_end=answer.log_end,
            last_epoch=answer.last_epoch,
            current_leader_epoch=answer.current_leader_epoch,
            high_watermark=answer.high_watermark,
            log_start=answer.log_start,
            local_start=answer.local_start,
            remote_end=answer.remote_end,
            lineage=None if lineage is None else tuple((end.epoch, end.end_offset) for end in lineage),
            broker_epoch=answer.broker_epoch,
            source=answer.source,
            read_at_ms=answer.read_at_ms,
            last_epoch_error=answer.last_epoch_error,
            last_stable_offset=answer.last_stable_offset,
            unclean_shutdown=answer.unclean_shutdown,
            saved_high_watermark=answer.saved_high_watermark,
            saved_epoch=answer.saved_epoch,
            may_have_held_more=answer.may_have_held_more,
        )

    def value(self) -> LogAnswer:
        if self.unheard is not None:
            return LogUnavailable(self.replica, self.unheard, self.detail or "", self.read_at_ms, self.unclean_shutdown)
        if self.log_end is None:
            raise ValueError(f"the log of replica {self.replica} has neither log_end nor unheard")
        lineage = None if self.lineage is None else tuple(EpochEnd(epoch, end) for epoch, end in self.lineage)
        return ReplicaLog(
            replica=self.replica,
            log_end=self.log_end,
            last_epoch=self.last_epoch,
            current_leader_epoch=self.current_leader_epoch,
            high_watermark=self.high_watermark,
            log_start=self.log_start,
            local_start=self.local_start,
            remote_end=self.remote_end,
            lineage=lineage,
            broker_epoch=self.broker_epoch,
            source=self.source or "unknown",
            read_at_ms=self.read_at_ms,
            last_epoch_error=self.last_epoch_error,
            last_stable_offset=self.last_stable_offset,
            unclean_shutdown=self.unclean_shutdown,
            saved_high_watermark=self.saved_high_watermark,
            saved_epoch=self.saved_epoch,
            may_have_held_more=self.may_have_held_more,
        )


class QuorumLine(_Line):
    """What a metadata log told of who holds everything committed."""

    members: Brokers
    last_known_elr: Brokers = ()
    restarted: Brokers = ()
    min_isr: Int32
    since_offset: Offset
    since_ms: Offset
    leader_epoch: Int32
    partition_epoch: Int32
    as_of_offset: Offset
    as_of_ms: Offset
    doubt: Text | None = None
    isr: Brokers = ()
    elr: Brokers = ()
    left_behind: Brokers = ()
    followed_since: Int32 | None = None

    @classmethod
    def of(cls, quorum: RecoveryQuorum) -> Self:
        return cls(**{name: getattr(quorum, name) for name in cls.model_fields})

    def value(self) -> RecoveryQuorum:
        return RecoveryQuorum(**{name: getattr(self, name) for name in type(self).model_fields})


class PartitionLine(_Line):
    """A partition, with its replicas' logs where they were asked for."""

    topic: Topic
    partition: Int32
    leader: Int32 | None = None
    leader_epoch: Int32
    replicas: Replicas
    isr: Brokers
    elr: Brokers | None = None
    last_known_elr: Brokers | None = None
    offline_replicas: Brokers | None = None
    partition_epoch: Int32 | None = None
    adding: Brokers | None = None
    removing: Brokers | None = None
    recovering: bool | None = None
    topic_id: TopicId | None = None
    logs: tuple[LogLine, ...] | None = None
    quorum: QuorumLine | None = None

    @classmethod
    def of(
        cls, state: PartitionState, logs: tuple[LogAnswer, ...] | None, quorum: RecoveryQuorum | None = None
    ) -> Self:
        return cls(
            topic=state.topic,
            partition=state.partition,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            replicas=state.replicas,
            isr=state.isr,
            elr=state.elr,
            last_known_elr=state.last_known_elr,
            offline_replicas=state.offline_replicas,
            partition_epoch=state.partition_epoch,
            adding=state.adding,
            removing=state.removing,
            recovering=state.recovering,
            topic_id=state.topic_id,
            logs=None if logs is None else tuple(LogLine.of(answer) for answer in logs),
            quorum=None if quorum is None else QuorumLine.of(quorum),
        )

    def state(self) -> PartitionState:
        return PartitionState(
            topic=self.topic,
            partition=self.partition,
            leader=self.leader,
            leader_epoch=self.leader_epoch,
            replicas=self.replicas,
            isr=self.isr,
            elr=self.elr,
            last_known_elr=self.last_known_elr,
            offline_replicas=self.offline_replicas,
            partition_epoch=self.partition_epoch,
            adding=self.adding,
            removing=self.removing,
            recovering=self.recovering,
            topic_id=self.topic_id,
        )

    def answers(self) -> tuple[LogAnswer, ...] | None:
        return None if self.logs is None else tuple(log.value() for log in self.logs)


class ReplicaLine(_Line):
    """One replica on a broker's disk, of a partition whose state the file does not tell."""

    topic: Topic
    partition: Int32
    topic_id: TopicId | None = None
    log: LogLine
    directory: Text = ""
    notes: tuple[Text, ...] = ()
    bytes_behind: Offset = 0
    newest_epoch: Int32 | None = None
    saved_high_watermark: Offset | None = None


class ErrorLine(_Line):
    """A topic that could not be described."""

    topic: ErrorTopic
    error: Text
    detail: Text = ""

    @classmethod
    def of(cls, error: TopicError) -> Self:
        return cls(topic=error.topic, error=error.error, detail=error.detail)

    def value(self) -> TopicError:
        return TopicError(self.topic, self.error, self.detail)


class EndLine(_Line):
    """The last line: how many lines of each kind came before it."""

    topics: Offset
    partitions: Offset
    errors: Offset
    replicas: Offset = 0


class BodyLine(_Line):
    """Any line after the first: exactly one of the fields is set."""

    topic: TopicLine | None = None
    partition: PartitionLine | None = None
    error: ErrorLine | None = None
    replica: ReplicaLine | None = None
    end: EndLine | None = None
