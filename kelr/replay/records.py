"""The records of the metadata log that say something about brokers, partitions and configs, as values.

Names are those of Kafka's schemas (``common/metadata/*.json`` in kafka-metadata). In a record of a change, None stands
for "as it was".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kelr.model import PartitionState

NO_LEADER = -1
"""The leader of a partition that has none."""


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """FeatureLevelRecord: a feature has this level from now on; 0 turns it off."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener of a node."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class BrokerRegistered:
    """RegisterBrokerRecord: a broker's new incarnation."""

    broker: int
    epoch: int
    """The broker epoch: the offset of this record."""
    incarnation: str
    fenced: bool
    in_controlled_shutdown: bool
    rack: str | None
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, int] = field(default_factory=dict)
    """Feature name to the highest level that the broker supports."""
    directories: tuple[str, ...] = ()
    """Ids of its log directories that are online."""
    cordoned: tuple[str, ...] | None = None
    """Ids of its cordoned log directories (KIP-1066); None: the record does not tell."""


@dataclass(frozen=True, slots=True)
class BrokerUnregistered:
    """UnregisterBrokerRecord."""

    broker: int
    epoch: int


@dataclass(frozen=True, slots=True)
class BrokerChanged:
    """BrokerRegistrationChangeRecord, FenceBrokerRecord or UnfenceBrokerRecord."""

    broker: int
    epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    directories: tuple[str, ...] | None = None
    cordoned: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicMade:
    """TopicRecord."""

    name: str
    topic_id: str
    """As everywhere in kelr: base64 as Kafka prints it."""


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """RemoveTopicRecord."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class PartitionMade:
    """PartitionRecord: a partition as it is from now on, whatever was known of it."""

    topic_id: str
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    """None where the record has none: the set is empty, or the version of the record has no such field."""
    last_known_elr: tuple[int, ...] | None = None
    recovering: bool = False
    directories: tuple[str, ...] = ()
    """The log directory of each replica, in assignment order; empty where the version has no such field."""


def partition_made(state: PartitionState, topic_id: str, directories: tuple[str, ...]) -> PartitionMade:
    """The record of a partition in this state."""
    return PartitionMade(
        topic_id=topic_id,
        partition=state.partition,
        leader=NO_LEADER if state.leader is None else state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch or 0,
        replicas=state.replicas,
        isr=state.isr,
        adding=state.adding or (),
        removing=state.removing or (),
        elr=state.elr or None,
        last_known_elr=state.last_known_elr or None,
        recovering=bool(state.recovering),
        directories=directories,
    )


@dataclass(frozen=True, slots=True)
class PartitionChanged:
    """PartitionChangeRecord: the leader epoch rises by one where `leader` is told, the partition epoch always."""

    topic_id: str
    partition: int
    leader: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    recovering: bool | None = None
    directories: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ElrCleared:
    """ClearElrRecord: ELR and LastKnownElr of a topic's partitions, or of all, are empty from now on."""

    topic: str | None


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """ConfigRecord."""

    resource_type: int
    """As in ConfigResource.Type: 2 topic, 4 broker."""
    resource: str
    """Its name; empty for the cluster-wide default of brokers."""
    key: str
    value: str | None
    """None: the config is deleted."""


@dataclass(frozen=True, slots=True)
class ControllerRegistered:
    """RegisterControllerRecord."""

    controller: int
    incarnation: str
    endpoints: tuple[Endpoint, ...] = ()


@dataclass(frozen=True, slots=True)
class TransactionMark:
    """BeginTransactionRecord, EndTransactionRecord or AbortTransactionRecord: the records between begin and end apply
    together at the end, and those before an abort never (KIP-868)."""

    kind: str
    """``begin``, ``end`` or ``abort``."""


@dataclass(frozen=True, slots=True)
class LeaderChanged:
    """LeaderChangeMessage, a control record: this controller leads the quorum from here on, in the entry's epoch."""

    controller: int
    voters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """KRaftVersionRecord, a control record: the level of the feature kraft.version from here on."""

    level: int


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter of the quorum, with kraft.version 1 and newer (KIP-853)."""

    node: int
    directory_id: str
    """Of the log directory that holds its metadata log: another directory of the same node is another voter."""
    endpoints: tuple[Endpoint, ...]
    min_version: int = 0
    max_version: int = 1
    """The levels of kraft.version that it supports."""


@dataclass(frozen=True, slots=True)
class Voters:
    """VotersRecord, a control record: who votes from here on, whether it is committed or not."""

    voters: tuple[Voter, ...]


@dataclass(frozen=True, slots=True)
class SnapshotBegins:
    """SnapshotHeaderRecord, a control record: a checkpoint begins; all that was known is forgotten."""

    last_contained_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotEnds:
    """SnapshotFooterRecord, a control record: the checkpoint is whole."""


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """A record of a kind that says nothing of leaders: NoOpRecord, ACLs, quotas, SCRAM credentials, producer ids,
    delegation tokens, and control records of other kinds."""

    kind: str


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A record of an unknown kind, or of a newer version than kelr knows."""

    key: int
    version: int
    kind: str | None
    """Its name, where the kind is known."""


MetadataRecord: TypeAlias = (
    FeatureLevel
    | BrokerRegistered
    | BrokerUnregistered
    | BrokerChanged
    | TopicMade
    | TopicRemoved
    | PartitionMade
    | PartitionChanged
    | ElrCleared
    | ConfigSet
    | ControllerRegistered
    | TransactionMark
    | LeaderChanged
    | KRaftVersion
    | Voters
    | SnapshotBegins
    | SnapshotEnds
    | Irrelevant
    | NotUnderstood
)


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """One batch of the metadata log, decoded: what the controller wrote together, as far as can be told.

    The controller writes all records of one event into one batch, and may write those of several events into it. The
    offset of `records[n]` is `base_offset + n`.
    """

    base_offset: int
    epoch: int
    """The quorum's leader epoch in which it was appended."""
    timestamp_ms: int
    """When the controller appended it."""
    records: Sequence[MetadataRecord]
    of_checkpoint: bool = False
    """Of a snapshot (``*.checkpoint``): offsets count within it, and `timestamp_ms` is that of its last record."""
    checkpoint_end: int | None = None
    """Of a snapshot: the offset after the last record of the log that it contains, by its name."""

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)


# What one record of the metadata log did: before and after.


@dataclass(frozen=True, slots=True)
class BrokerOnRecord:
    """A broker as the metadata log has it."""

    registration: BrokerRegistered
    """The record of its incarnation; `fenced` and `in_controlled_shutdown` there are those of the moment."""
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[str, ...] = ()
    registered_by_ms: int | None = None
    """When it registered; where a checkpoint told of it, that one's time, which is later."""
    cordoned_directories: tuple[str, ...] | None = None
    """Those that take no new replica (KIP-1066); None: nobody told."""

    @property
    def active(self) -> bool:
        """Whether its replicas may lead and be in sync."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def cordoned(self) -> bool:
        """Whether all its log directories are cordoned (BrokerRegistration.hasUncordonedDirs says the opposite)."""
        return bool(self.directories) and {*self.directories} <= {*(self.cordoned_directories or ())}


@dataclass(frozen=True, slots=True)
class At:
    """A place in the metadata log."""

    offset: int
    epoch: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionMoved:
    """A partition was made (`before` is None), changed, or deleted with its topic (`after` is None).

    `by` is the name of the record's kind: ``PartitionRecord``, ``PartitionChangeRecord``, ``ClearElrRecord`` or
    ``RemoveTopicRecord``.
    """

    at: At
    before: PartitionState | None
    after: PartitionState | None
    by: str


@dataclass(frozen=True, slots=True)
class BrokerMoved:
    """A broker registered, was fenced or unfenced, began to shut down, lost a directory, or was unregistered."""

    at: At
    broker: int
    before: BrokerOnRecord | None
    after: BrokerOnRecord | None


@dataclass(frozen=True, slots=True)
class ConfigMoved:
    """A config was written or deleted (`after` is None)."""

    at: At
    resource_type: int
    resource: str
    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class FeatureMoved:
    """A feature has another level."""

    at: At
    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ControllerMoved:
    """Another controller leads the quorum."""

    at: At
    controller: int


@dataclass(frozen=True, slots=True)
class Restarted:
    """A checkpoint begins: everything that was known is forgotten, and what follows is told whole."""

    at: At


Change: TypeAlias = PartitionMoved | BrokerMoved | ConfigMoved | FeatureMoved | ControllerMoved | Restarted
