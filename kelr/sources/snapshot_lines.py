"""The lines of a snapshot file: strict models of what is on disk, and the way to and from kelr's values.

The format is described in docs/snapshot-format.md. A field that is not known, is missing, or is out of range is an
error: whoever adds a field raises `FORMAT_VERSION`, so that an older kelr never decides on half of what was saved.
(Until the first release of kelr version 1 may still grow by optional fields.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self

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

    @classmethod
    def from_value(cls, value: object) -> Self:
        """The line of one of kelr's values, whose fields have the same names."""
        return cls.model_validate(value, from_attributes=True)

    def fields_of(self, kind: Any) -> dict[str, Any]:
        """The fields that this kind of value has, too."""
        own = self.__dict__
        return {name: own[name] for name in _shared(type(self), kind)}


@cache
def _names(kind: Any) -> frozenset[str]:
    """Of the fields that one of kelr's values is made of."""
    return frozenset(field.name for field in dataclasses.fields(kind) if field.init)


@cache
def _shared(line: type[_Line], kind: Any) -> tuple[str, ...]:
    return tuple(name for name in line.model_fields if name in _names(kind))


def _fields(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    return {name: getattr(value, name) for name in _names(kind)}


def _plain(levels: Any) -> Any:
    return dict(levels) if isinstance(levels, Mapping) else levels


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
        of_cluster = _fields(cluster)
        features = of_cluster.pop("features")
        of_cluster.pop("controllers")  # of this moment alone
        levels = {name: _plain(level) for name, level in _fields(features).items()}
        return cls.from_value({**of_cluster, **levels})

    def value(self) -> Cluster:
        return Cluster(
            **{
                **self.fields_of(Cluster),
                "brokers": tuple(Broker(**dict(broker)) for broker in self.brokers),
                "features": Features(**self.fields_of(Features)),
            }
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
    selected: Text | None = None
    """The partitions that were asked for, where that were not all."""


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
        values = _fields(config)
        error = values.pop("error")
        return cls(topic=topic, first_partition_replicas=first_partition_replicas, config_error=error, **values)

    def config(self) -> TopicConfig | None:
        if not self.has_config:
            return None
        values = self.fields_of(TopicConfig)
        for source in ("min_insync_replicas_source", "unclean_leader_election_source"):
            values[source] = values[source] or ConfigSource.UNKNOWN
        return TopicConfig(error=self.config_error, **values)


class LogLine(_Line):
    """One replica's log, or (with `unheard`) why nothing is known of it."""

    replica: Int32
    log_end: Offset | None = None
    last_epoch: Int32 | None = None
    current_leader_epoch: Int32 | None = None
    high_watermark: Offset | None = None
    log_start: Offset | None = None
    start_by_name: bool = False
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
    cut_off: tuple[tuple[Int32, Offset, Offset], ...] = ()
    holes: tuple[tuple[Offset, Offset], ...] = ()
    unheard: LogUnavailableReason | None = None
    detail: Text | None = None

    @classmethod
    def of(cls, answer: LogAnswer) -> Self:
        values = _fields(answer)
        if isinstance(answer, LogUnavailable):
            return cls(unheard=values.pop("reason"), **values)
        lineage = values.pop("lineage")
        pairs = None if lineage is None else tuple((end.epoch, end.end_offset) for end in lineage)
        return cls(lineage=pairs, **values)

    def value(self) -> LogAnswer:
        if self.unheard is not None:
            return LogUnavailable(self.replica, self.unheard, self.detail or "", self.read_at_ms, self.unclean_shutdown)
        if self.log_end is None:
            raise ValueError(f"the log of replica {self.replica} has neither log_end nor unheard")
        lineage = None if self.lineage is None else tuple(EpochEnd(epoch, end) for epoch, end in self.lineage)
        values = self.fields_of(ReplicaLog)
        values.update(lineage=lineage, source=self.source or "unknown")
        return ReplicaLog(**values)


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

    def value(self) -> RecoveryQuorum:
        return RecoveryQuorum(**dict(self))


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
            logs=None if logs is None else tuple(map(LogLine.of, logs)),
            quorum=None if quorum is None else QuorumLine.from_value(quorum),
            **_fields(state),
        )

    def state(self) -> PartitionState:
        return PartitionState(**self.fields_of(PartitionState))

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

    def value(self) -> TopicError:
        return TopicError(**dict(self))


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
