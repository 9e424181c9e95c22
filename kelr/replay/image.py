"""The cluster as the controller has it after each batch of the metadata log.

Source: BrokerRegistration, PartitionRegistration.merge, TopicsDelta, ConfigurationsDelta, FeaturesDelta and
MetadataBatchLoader of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.model import PartitionState, TopicPartition
from kelr.replay import records as rec
from kelr.replay.changes import (
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

    A record that does not fit what was said before (a change of an unknown partition, because the log begins later) is
    counted in `misfits` and otherwise left out: what it leaves open is not known.
    """

    def __init__(self) -> None:
        self.at: At | None = None
        """The last record applied; None before the first."""
        self.controller: int | None = None
        """The quorum's leader, where a control record told it."""
        self.features: dict[str, int] = {}
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

    def apply(self, batch: rec.RecordBatch) -> tuple[Change, ...]:
        """Apply a batch, and tell what each of its records did, in order."""
        changes: list[Change] = []
        within = None if batch.checkpoint_end is None else batch.checkpoint_end - 1
        for number, record in enumerate(batch.records):
            # A checkpoint's own offsets mean nothing: all that it tells was so after the last record that it contains.
            at = At(batch.base_offset + number if within is None else within, batch.epoch, batch.timestamp_ms)
            changes.extend(self._taken(at, record))
            self.at = at
        return tuple(changes)

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

    # Transactions and kinds.

    def _taken(self, at: At, record: rec.MetadataRecord) -> Iterator[Change]:
        if isinstance(record, rec.TransactionMark):
            held, self._held = self._held or [], [] if record.kind == "begin" else None
            if record.kind == "end":
                for place, one in held:
                    yield from self._applied(place, one)
        elif self._held is not None and not isinstance(record, rec.LeaderChanged):
            self._held.append((at, record))
        else:
            yield from self._applied(at, record)

    def _applied(self, at: At, record: rec.MetadataRecord) -> Iterator[Change]:
        handler = _HANDLERS.get(type(record))
        return handler(self, at, record) if handler is not None else iter(())

    # Brokers.

    def _broker_registered(self, at: At, record: rec.BrokerRegistered) -> Iterator[Change]:
        now = BrokerOnRecord(
            registration=record,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            registered_at_offset=at.offset,
            registered_at_ms=at.timestamp_ms,
            directories=record.directories,
        )
        yield self._broker_is(at, record.broker, now)

    def _broker_changed(self, at: At, record: rec.BrokerChanged) -> Iterator[Change]:
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
            directories=before.directories if record.directories is None else record.directories,
        )
        yield self._broker_is(at, record.broker, now)

    def _broker_unregistered(self, at: At, record: rec.BrokerUnregistered) -> Iterator[Change]:
        before = self.brokers.get(record.broker)
        if before is None or before.registration.epoch != record.epoch:
            self.misfits += 1
            return
        del self.brokers[record.broker]
        yield BrokerMoved(at, record.broker, before, None)

    def _broker_is(self, at: At, broker: int, now: BrokerOnRecord) -> BrokerMoved:
        before = self.brokers.get(broker)
        self.brokers[broker] = now
        return BrokerMoved(at, broker, before, now)

    # Topics and partitions.

    def _topic_made(self, _at: At, record: rec.TopicMade) -> Iterator[Change]:
        self.topics[record.topic_id] = TopicOnRecord(record.name, record.topic_id)
        self.names[record.name] = record.topic_id
        return iter(())

    def _topic_removed(self, at: At, record: rec.TopicRemoved) -> Iterator[Change]:
        topic = self.topics.pop(record.topic_id, None)
        if topic is None:
            self.misfits += 1
            return
        if self.names.get(topic.name) == topic.topic_id:
            del self.names[topic.name]
        self.configs.pop((TOPIC, topic.name), None)
        for number in sorted(topic.partitions):
            yield PartitionMoved(at, topic.partitions[number], None, "RemoveTopicRecord")

    def _partition_made(self, at: At, record: rec.PartitionMade) -> Iterator[Change]:
        topic = self.topics.get(record.topic_id)
        if topic is None:
            self.misfits += 1
            return
        after = PartitionState(
            topic=topic.name,
            partition=record.partition,
            leader=_leader(record.leader),
            leader_epoch=record.leader_epoch,
            replicas=record.replicas,
            isr=record.isr,
            elr=record.elr or (),
            last_known_elr=record.last_known_elr or (),
            partition_epoch=record.partition_epoch,
            adding=record.adding,
            removing=record.removing,
            recovering=record.recovering,
            topic_id=topic.topic_id,
        )
        if record.directories:
            topic.directories[record.partition] = record.directories
        yield self._partition_is(at, topic, after, "PartitionRecord")

    def _partition_changed(self, at: At, record: rec.PartitionChanged) -> Iterator[Change]:
        topic = self.topics.get(record.topic_id)
        before = None if topic is None else topic.partitions.get(record.partition)
        if topic is None or before is None:
            self.misfits += 1
            return
        if record.directories is not None:
            topic.directories[record.partition] = record.directories
        yield self._partition_is(at, topic, _merged(before, record), "PartitionChangeRecord")

    def _elr_cleared(self, at: At, record: rec.ElrCleared) -> Iterator[Change]:
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
                    yield self._partition_is(at, topic, _merged(before, nothing), "ClearElrRecord")

    def _partition_is(self, at: At, topic: TopicOnRecord, after: PartitionState, by: str) -> PartitionMoved:
        before = topic.partitions.get(after.partition)
        topic.partitions[after.partition] = after
        return PartitionMoved(at, before, after, by)

    # Everything else.

    def _config_set(self, at: At, record: rec.ConfigSet) -> Iterator[Change]:
        known = self.configs.setdefault((record.resource_type, record.resource), {})
        before = known.get(record.key)
        if record.value is None:
            known.pop(record.key, None)
        else:
            known[record.key] = record.value
        yield ConfigMoved(at, record.resource_type, record.resource, record.key, before, record.value)

    def _feature_level(self, at: At, record: rec.FeatureLevel) -> Iterator[Change]:
        before = self.features.get(record.name, 0)
        self.features[record.name] = record.level
        yield FeatureMoved(at, record.name, before, record.level)

    def _leader_changed(self, at: At, record: rec.LeaderChanged) -> Iterator[Change]:
        self.controller = record.controller
        self._held = None  # a new controller aborts the transaction that the old one began
        yield ControllerMoved(at, record.controller)

    def _snapshot_begins(self, at: At, _record: rec.SnapshotBegins) -> Iterator[Change]:
        controller, misfits, unknown = self.controller, self.misfits, self.not_understood
        self.__init__()  # type: ignore[misc]  # everything is forgotten but for what was counted
        self.controller, self.misfits, self.not_understood = controller, misfits, unknown
        yield Restarted(at)

    def _not_understood(self, _at: At, record: rec.NotUnderstood) -> Iterator[Change]:
        kind = (record.key, record.version)
        self.not_understood[kind] = self.not_understood.get(kind, 0) + 1
        return iter(())


TOPIC, BROKER = 2, 4
"""Kinds of resources that have configs (ConfigResource.Type)."""

_HANDLERS: dict[type, Callable[[MetadataImage, At, Any], Iterator[Change]]] = {
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
    rec.LeaderChanged: MetadataImage._leader_changed,
    rec.SnapshotBegins: MetadataImage._snapshot_begins,
    rec.NotUnderstood: MetadataImage._not_understood,
}


def _leader(recorded: int) -> int | None:
    return None if recorded == rec.NO_LEADER else recorded


def _merged(before: PartitionState, record: rec.PartitionChanged) -> PartitionState:
    """Source: PartitionRegistration.merge."""
    told = {
        name: value
        for name in ("isr", "replicas", "adding", "removing", "elr", "last_known_elr", "recovering")
        if (value := getattr(record, name)) is not None
    }
    if record.leader is not None:
        told["leader"] = _leader(record.leader)
        told["leader_epoch"] = before.leader_epoch + 1
    return replace(before, partition_epoch=(before.partition_epoch or 0) + 1, **told)
