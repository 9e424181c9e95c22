"""The cluster as the controller has it after each batch of the metadata log.

Source: BrokerRegistration, PartitionRegistration.merge, TopicsDelta, ConfigurationsDelta, FeaturesDelta and
MetadataBatchLoader of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.model import ELR_FEATURE, PartitionState, TopicPartition
from kelr.replay import records as rec
from kelr.replay.records import (
    At,
    BrokerMoved,
    BrokerOnRecord,
    Change,
    ConfigMoved,
    ControllerMoved,
    FeatureMoved,
    PartitionMoved,
    Restarted,
)

_Resource = tuple[int, str]


@dataclass(slots=True)
class TopicOnRecord:
    """A topic and its partitions by number."""

    name: str
    topic_id: str
    partitions: dict[int, PartitionState] = field(default_factory=dict)
    directories: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The log directories of a partition's replicas, in assignment order, where they were told."""


class MetadataImage:
    """Everything that the records so far say. `apply` changes it in place.

    A checkpoint in the middle of the records begins anew with what it tells. A record that does not fit what was said
    before (a change of an unknown partition, because the log begins later) is counted in `misfits` and otherwise left
    out: what it leaves open is not known.
    """

    def __init__(self) -> None:
        self.at: At | None = None
        """The last record applied; None before the first."""
        self.controller: int | None = None
        """The quorum's leader, where a control record told it."""
        self.voters: tuple[int, ...] = ()
        """The quorum's voters, where a control record told them."""
        self.kraft_version = 0
        """The level of the feature kraft.version; 0 where no control record told one, as with a static quorum."""
        self.voter_set: tuple[rec.Voter, ...] = ()
        """The newest VotersRecord, committed or not, as Kafka itself goes by it."""
        self.controllers: dict[int, tuple[rec.Endpoint, ...]] = {}
        """Where each controller listens that ever registered (metadata.version 3.7 and newer), by its newest record."""
        self.features: dict[str, int] = {}
        """Levels above 0."""
        self.brokers: dict[int, BrokerOnRecord] = {}
        self.topics: dict[str, TopicOnRecord] = {}
        """By topic id."""
        self.names: dict[str, str] = {}
        """Topic ids by name."""
        self.configs: dict[_Resource, dict[str, str]] = {}
        self.misfits = 0
        self.not_understood: dict[tuple[int, int], int] = {}
        """How often a record of a kind (by API key) and version came that is not understood."""
        self._held: list[tuple[At, rec.MetadataRecord]] | None = None
        """Records of a transaction that has not ended."""
        self._lists: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._directories: dict[tuple[str, ...], tuple[str, ...]] = {}

    def apply(self, batch: rec.RecordBatch) -> list[Change]:
        """Apply a batch, and tell what each of its records did, in order."""
        changes: list[Change] = []
        within = None if batch.checkpoint_end is None else batch.checkpoint_end - 1
        offset, epoch, timestamp_ms = batch.base_offset, batch.epoch, batch.timestamp_ms
        for record in batch.records:
            # A checkpoint's own offsets mean nothing: all that it tells was so after the last record that it contains.
            at = At(offset if within is None else within, epoch, timestamp_ms)
            offset += 1
            if self._held is not None or type(record) is rec.TransactionMark:
                self._in_transaction(at, record, changes)
            else:
                handler = _HANDLERS.get(type(record))
                if handler is not None:
                    handler(self, at, record, changes)
            self.at = at
        return changes

    def make(self, batch: rec.RecordBatch) -> None:
        """Apply a batch of nothing but TopicRecords and PartitionRecords, as `apply` does, and tell nothing."""
        last = batch.next_offset if batch.checkpoint_end is None else batch.checkpoint_end
        at = At(last - 1, batch.epoch, batch.timestamp_ms)
        for record in batch.records:
            if type(record) is rec.PartitionMade:
                topic = self.topics.get(record.topic_id)
                if topic is None:
                    self.misfits += 1
                else:
                    topic.partitions[record.partition] = self._made(topic, record)
            elif type(record) is rec.TopicMade:
                self._topic_made(at, record, [])
        self.at = at

    def partition(self, address: TopicPartition) -> PartitionState | None:
        """The partition as it is on record; None where there is none."""
        topic_id = self.names.get(address.topic)
        return None if topic_id is None else self.topics[topic_id].partitions.get(address.partition)

    def partitions(self) -> Iterator[PartitionState]:
        """All partitions, sorted by address."""
        for name in sorted(self.names):
            topic = self.topics[self.names[name]]
            for number in sorted(topic.partitions):
                yield topic.partitions[number]

    def config(self, resource_type: int, resource: str, key: str) -> str | None:
        """A config's value on record; None where this resource does not set it."""
        return self.configs.get((resource_type, resource), {}).get(key)

    @property
    def keeps_elr(self) -> bool:
        """Whether ELR is on: then a broker that was shut down uncleanly leaves every ISR and ELR (KIP-966)."""
        return self.features.get(ELR_FEATURE, 0) >= 1

    @property
    def in_transaction(self) -> bool:
        """Whether records are held back, because the transaction that they belong to has not ended."""
        return self._held is not None

    # Transactions.

    def _in_transaction(self, at: At, record: rec.MetadataRecord, changes: list[Change]) -> None:
        """Source: MetadataBatchLoader.replay. A mark out of place is a fault there, and a misfit here."""
        if not isinstance(record, rec.TransactionMark):
            assert self._held is not None
            if isinstance(record, rec.LeaderChanged):
                self._leader_changed(at, record, changes)
            elif isinstance(record, rec.SnapshotBegins):
                self._snapshot_begins(at, record, changes)
            elif isinstance(record, rec.KRaftVersion | rec.Voters):
                _HANDLERS[type(record)](self, at, record, changes)
            else:
                self._held.append((at, record))
            return
        held, self._held = self._held, [] if record.kind == "begin" else None
        if (held is None) is not (record.kind == "begin"):
            self.misfits += 1
        for place, one in held or () if record.kind == "end" else ():
            handler = _HANDLERS.get(type(one))
            if handler is not None:
                handler(self, place, one, changes)

    # Brokers.

    def _broker_registered(self, at: At, record: rec.BrokerRegistered, changes: list[Change]) -> None:
        now = BrokerOnRecord(
            registration=record,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=record.directories,
            registered_by_ms=at.timestamp_ms,
            cordoned_directories=record.cordoned,
        )
        self._broker_is(at, record.broker, now, changes)

    def _broker_changed(self, at: At, record: rec.BrokerChanged, changes: list[Change]) -> None:
        before = self.brokers.get(record.broker)
        if before is None or before.registration.epoch != record.epoch:
            self.misfits += 1
            return
        now = replace(
            before,
            fenced=before.fenced if record.fenced is None else record.fenced,
            in_controlled_shutdown=before.in_controlled_shutdown
            if record.in_controlled_shutdown is None
            else record.in_controlled_shutdown,
            # An empty list of directories stands for "as it was" (ClusterDelta.replay).
            directories=record.directories or before.directories,
            cordoned_directories=before.cordoned_directories if record.cordoned is None else record.cordoned,
        )
        self._broker_is(at, record.broker, now, changes)

    def _broker_unregistered(self, at: At, record: rec.BrokerUnregistered, changes: list[Change]) -> None:
        before = self.brokers.get(record.broker)
        if before is None or before.registration.epoch != record.epoch:
            self.misfits += 1
            return
        del self.brokers[record.broker]
        changes.append(BrokerMoved(at, record.broker, before, None))

    def _broker_is(self, at: At, broker: int, now: BrokerOnRecord, changes: list[Change]) -> None:
        before = self.brokers.get(broker)
        self.brokers[broker] = now
        changes.append(BrokerMoved(at, broker, before, now))

    # Topics and partitions.

    def _topic_made(self, _at: At, record: rec.TopicMade, _changes: list[Change]) -> None:
        self.topics[record.topic_id] = TopicOnRecord(record.name, record.topic_id)
        self.names[record.name] = record.topic_id

    def _topic_removed(self, at: At, record: rec.TopicRemoved, changes: list[Change]) -> None:
        topic = self.topics.pop(record.topic_id, None)
        if topic is None:
            self.misfits += 1
            return
        if self.names.get(topic.name) == topic.topic_id:
            del self.names[topic.name]
            self.configs.pop((TOPIC, topic.name), None)
        changes += [
            PartitionMoved(at, topic.partitions[number], None, "RemoveTopicRecord")
            for number in sorted(topic.partitions)
        ]

    def _partition_made(self, at: At, record: rec.PartitionMade, changes: list[Change]) -> None:
        topic = self.topics.get(record.topic_id)
        if topic is None:
            self.misfits += 1
            return
        self._partition_is(at, topic, self._made(topic, record), "PartitionRecord", changes)

    def _made(self, topic: TopicOnRecord, record: rec.PartitionMade) -> PartitionState:
        after = PartitionState(
            topic=topic.name,
            partition=record.partition,
            leader=_leader(record.leader),
            leader_epoch=record.leader_epoch,
            replicas=self._shared(record.replicas),
            isr=self._shared(record.isr),
            elr=record.elr or (),
            last_known_elr=record.last_known_elr or (),
            partition_epoch=record.partition_epoch,
            adding=record.adding,
            removing=record.removing,
            recovering=record.recovering,
            topic_id=topic.topic_id,
        )
        self._directories_are(topic, after, record.directories)
        return after

    def _partition_changed(self, at: At, record: rec.PartitionChanged, changes: list[Change]) -> None:
        topic = self.topics.get(record.topic_id)
        before = None if topic is None else topic.partitions.get(record.partition)
        if topic is None or before is None:
            self.misfits += 1
            return
        after = self._merged(before, record)
        if record.directories is not None or record.replicas is not None:
            kept = topic.directories.get(record.partition, ()) if record.directories is None else record.directories
            self._directories_are(topic, after, kept)
        self._partition_is(at, topic, after, "PartitionChangeRecord", changes)

    def _elr_cleared(self, at: At, record: rec.ElrCleared, changes: list[Change]) -> None:
        if record.topic is None:
            names = sorted(self.names)
        elif record.topic in self.names:
            names = [record.topic]
        else:
            self.misfits += 1
            return
        for name in names:
            topic = self.topics[self.names[name]]
            for number in sorted(topic.partitions):
                before = topic.partitions[number]
                if before.elr or before.last_known_elr:
                    nothing = rec.PartitionChanged(topic.topic_id, number, elr=(), last_known_elr=())
                    self._partition_is(at, topic, self._merged(before, nothing), "ClearElrRecord", changes)

    def _partition_is(
        self, at: At, topic: TopicOnRecord, after: PartitionState, by: str, changes: list[Change]
    ) -> None:
        before = topic.partitions.get(after.partition)
        topic.partitions[after.partition] = after
        changes.append(PartitionMoved(at, before, after, by))

    def _directories_are(self, topic: TopicOnRecord, after: PartitionState, directories: tuple[str, ...]) -> None:
        """What does not go with the replicas is not known; Kafka itself refuses such a record."""
        if len(directories) == len(after.replicas):
            topic.directories[after.partition] = self._directories.setdefault(directories, directories)
        else:
            topic.directories.pop(after.partition, None)

    def _shared(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """One object for each list of brokers: a million partitions have few different ones."""
        return self._lists.setdefault(members, members)

    def _merged(self, before: PartitionState, record: rec.PartitionChanged) -> PartitionState:
        """Source: PartitionRegistration.merge."""
        led = record.leader is not None
        return PartitionState(
            before.topic,
            before.partition,
            _leader(record.leader) if record.leader is not None else before.leader,
            before.leader_epoch + 1 if led else before.leader_epoch,
            before.replicas if record.replicas is None else self._shared(record.replicas),
            before.isr if record.isr is None else self._shared(record.isr),
            before.elr if record.elr is None else self._shared(record.elr),
            before.last_known_elr if record.last_known_elr is None else self._shared(record.last_known_elr),
            None,
            (before.partition_epoch or 0) + 1,
            before.adding if record.adding is None else record.adding,
            before.removing if record.removing is None else record.removing,
            before.recovering if record.recovering is None else record.recovering,
            before.topic_id,
        )

    # Everything else.

    def _config_set(self, at: At, record: rec.ConfigSet, changes: list[Change]) -> None:
        resource = (record.resource_type, record.resource)
        known = self.configs.setdefault(resource, {})
        before = known.get(record.key)
        if record.value is None:
            known.pop(record.key, None)
            if not known:
                del self.configs[resource]
        else:
            known[record.key] = record.value
        changes.append(ConfigMoved(at, record.resource_type, record.resource, record.key, before, record.value))

    def _feature_level(self, at: At, record: rec.FeatureLevel, changes: list[Change]) -> None:
        before = self.features.pop(record.name, 0)
        if record.level:
            self.features[record.name] = record.level
        changes.append(FeatureMoved(at, record.name, before, record.level))

    def _leader_changed(self, at: At, record: rec.LeaderChanged, changes: list[Change]) -> None:
        # A transaction that the old controller began stays open: the new one writes the record that aborts it
        # (ActivationRecordsGenerator).
        self.controller, self.voters = record.controller, record.voters
        changes.append(ControllerMoved(at, record.controller))

    def _controller_registered(self, _at: At, record: rec.ControllerRegistered, _changes: list[Change]) -> None:
        self.controllers[record.controller] = record.endpoints

    def _kraft_version(self, _at: At, record: rec.KRaftVersion, _changes: list[Change]) -> None:
        self.kraft_version = record.level

    def _voters(self, _at: At, record: rec.Voters, _changes: list[Change]) -> None:
        self.voter_set = record.voters

    def _snapshot_begins(self, at: At, _record: rec.SnapshotBegins, changes: list[Change]) -> None:
        self.features, self.brokers, self.topics, self.names, self.configs = {}, {}, {}, {}, {}
        self.controllers = {}
        self.kraft_version, self.voter_set = 0, ()
        self._held = None
        changes.append(Restarted(at))

    def _not_understood(self, _at: At, record: rec.NotUnderstood, _changes: list[Change]) -> None:
        kind = (record.key, record.version)
        self.not_understood[kind] = self.not_understood.get(kind, 0) + 1


MIN_ISR, UNCLEAN, STRATEGY = "min.insync.replicas", "unclean.leader.election.enable", "unclean.recovery.strategy"
CLEANUP, BROKERS_CLEANUP = "cleanup.policy", "log.cleanup.policy"
TOPIC, BROKER = 2, 4
"""Kinds of resources that have configs (ConfigResource.Type)."""

_HANDLERS: dict[type, Callable[[MetadataImage, At, Any, list[Change]], None]] = {
    rec.BrokerRegistered: MetadataImage._broker_registered,
    rec.BrokerChanged: MetadataImage._broker_changed,
    rec.BrokerUnregistered: MetadataImage._broker_unregistered,
    rec.TopicMade: MetadataImage._topic_made,
    rec.TopicRemoved: MetadataImage._topic_removed,
    rec.PartitionMade: MetadataImage._partition_made,
    rec.PartitionChanged: MetadataImage._partition_changed,
    rec.ElrCleared: MetadataImage._elr_cleared,
    rec.ConfigSet: MetadataImage._config_set,
    rec.FeatureLevel: MetadataImage._feature_level,
    rec.ControllerRegistered: MetadataImage._controller_registered,
    rec.LeaderChanged: MetadataImage._leader_changed,
    rec.KRaftVersion: MetadataImage._kraft_version,
    rec.Voters: MetadataImage._voters,
    rec.SnapshotBegins: MetadataImage._snapshot_begins,
    rec.NotUnderstood: MetadataImage._not_understood,
}


def _leader(recorded: int) -> int | None:
    return None if recorded == rec.NO_LEADER else recorded
