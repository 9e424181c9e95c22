"""The controller's log, ``__cluster_metadata``: what happened to the cluster, as Kafka's own records.

Each step of the controller becomes one batch of records, written as the step happens; bytes are made of it when they
are asked for. Whatever else changed (partitions that were put there, configs that the state machine does not know) is
found by comparing, before the log is read. Nothing is ever taken out of it: there are no snapshots.

Not in it: the partitions of more than `MOST_ALIKE` that are alike (`kelr.simulation.alike`), log directories that
failed, control records, and what a simulated cluster does not have (ACLs, quotas, producer ids).

Source: QuorumController of Apache Kafka 4.3; KafkaRaftClient for epochs.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from kelr.controller import Configs, ControllerFailedOver, ControllerState, RecoveryEvent, Registration, Stepped, events
from kelr.controller.reach import NONE
from kelr.controller.state import ELECTION_CONFIGS
from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    RECOVERY_FEATURE,
    PartitionState,
    TopicPartition,
)
from kelr.replay import records as rec
from kelr.replay.records import MetadataRecord
from kelr.simulation.alike import STAND_IN
from kelr.sources.metadata_log.decoding import text_of_id
from kelr.sources.metadata_log.writing import encode_batch

if TYPE_CHECKING:
    from kelr.lab.simulated.world import World


# What a controller writes into its metadata log.
#
# Source: ReplicationControlManager, ClusterControlManager, ConfigurationControlManager, FeatureControlManager of Apache
# Kafka 4.3, for their choice of versions; PartitionRegistration.merge for what a change says and what it leaves out.


TOPIC, BROKER = 2, 4
"""Kinds of resources that have configs (ConfigResource.Type)."""
_OLDER_METADATA_VERSIONS = {"elr-4.0": 25, "elr-4.1.0": 27, "elr-4.1": 29}
_METADATA_VERSION = 33
OLDEST_METADATA_VERSION = 7
"""3.3-IV3, the oldest that Kafka 4 can run with (MetadataVersion.MINIMUM_VERSION)."""
CORDONS = 30
"""The metadata.version from which on registrations tell of cordoned directories (isCordonedLogDirsSupported)."""
_LISTENER = "PLAINTEXT"
_NEVER_LISTENED = 9
"""The port of a broker that has none here; nothing can listen there (RFC 863, "discard")."""


def metadata_version(rules: str) -> int:
    """The metadata.version of the newest Kafka that elects by this rule set: clients tell versions by it.

    Source: MetadataVersion.LATEST_PRODUCTION of 4.0 (4.0-IV3), 4.1 (4.1-IV1), 4.2 (4.2-IV1) and 4.4 (4.4-IV2).
    """
    return _OLDER_METADATA_VERSIONS.get(rules, _METADATA_VERSION)


def broker_registered(
    broker: int,
    registration: Registration,
    level: int,
    *,
    cluster_id: str,
    host: str,
    port: int | None,
    rack: str | None,
) -> rec.BrokerRegistered:
    """A broker's incarnation, in the state that the controller has it in; it supports this metadata.version."""
    return rec.BrokerRegistered(
        broker=broker,
        epoch=registration.epoch,
        incarnation=text_of_id(incarnation_id(cluster_id, broker, registration.epoch)),
        fenced=registration.fenced,
        in_controlled_shutdown=registration.in_controlled_shutdown,
        rack=rack,
        endpoints=(rec.Endpoint(_LISTENER, host, port or _NEVER_LISTENED),),
        features={ELR_FEATURE: 1, METADATA_FEATURE: level},
        directories=_directories((broker,), cluster_id),
        cordoned=() if level >= CORDONS else None,
    )


def partition_changed(
    number: int, topic_id: str, before: PartitionState, after: PartitionState, cluster_id: str
) -> rec.PartitionChanged:
    """What is different after a run of the controller; the rest stays as it was."""
    told: dict[str, Any] = {}
    for name in _LISTS:
        new = getattr(after, name) or ()
        if new != (getattr(before, name) or ()):
            told[name] = new
    if "replicas" in told:
        told["directories"] = _directories(after.replicas, cluster_id)
    if after.leader_epoch != before.leader_epoch:
        told["leader"] = _leader(after)
    if bool(after.recovering) != bool(before.recovering):
        told["recovering"] = bool(after.recovering)
    return rec.PartitionChanged(topic_id, number, **told)


def directory_id(cluster_id: str, node: int) -> UUID:
    """The id of a node's one log directory."""
    return _made(f"{cluster_id}/directory/{node}")


def incarnation_id(cluster_id: str, broker: int, epoch: int) -> UUID:
    """The id of the process that registered with this broker epoch."""
    return _made(f"{cluster_id}/incarnation/{broker}/{epoch}")


_LISTS = ("isr", "replicas", "removing", "adding", "elr", "last_known_elr")
"""What a change tells as a list of brokers."""


def _leader(state: PartitionState) -> int:
    return rec.NO_LEADER if state.leader is None else state.leader


def _directories(brokers: Iterable[int], cluster_id: str) -> tuple[str, ...]:
    return tuple(text_of_id(directory_id(cluster_id, broker)) for broker in brokers)


def _made(text: str) -> UUID:
    return UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest())


# The configs that a metadata log has told of: by comparing what the world has with what was written last.
#
# Source: ConfigurationControlManager of Apache Kafka 4.3.

MIN_ISR = ELECTION_CONFIGS[0]

Key: TypeAlias = tuple[int, str, str]
"""Kind of resource, its name, the config's name."""


class WrittenConfigs:
    """What the log has said of configs."""

    def __init__(self) -> None:
        self._told: dict[Key, str] = {}

    def cleared_elr(self, event: events.Event | RecoveryEvent | None, before: ControllerState) -> list[MetadataRecord]:
        """A record of min.insync.replicas brings the end of ELRs with it (createClearElrRecordsAsNeeded); KIP-966
        clears partition by partition, where min ISR is met."""
        if before.rules.kip966 or not before.rules.elr or not _writes_min_isr(event, before):
            return []
        assert isinstance(event, events.ConfigWritten | events.ConfigDeleted)
        return [rec.ElrCleared(event.topic)]

    def changed(
        self,
        before: ControllerState,
        after: ControllerState,
        event: events.Event | RecoveryEvent | None,
        topics: Container[str],
    ) -> Iterator[MetadataRecord]:
        """The configs that the state machine knows; one that is written again cluster-wide is told again.

        Args:
            topics: those that the log has told of.
        """
        again = isinstance(event, events.ConfigWritten) and event.topic is None and event.min_isr is not None
        if again or after.cluster is not before.cluster:
            yield from self._level(BROKER, "", after.cluster, again=again)
        if after.topics is before.topics:
            return
        deleted = event.topic if isinstance(event, events.TopicDeleted) else None
        for topic in sorted({*before.topics, *after.topics} - {deleted}):
            if topic in topics and before.topics.get(topic) != after.topics.get(topic):
                yield from self._level(TOPIC, topic, after.topics.get(topic, Configs()))

    def differ(self, world: World) -> bool:
        """Whether a config that the state machine does not know has another value than the log says."""
        return self._others_told() != _others(world)

    def others(self, world: World) -> Iterator[MetadataRecord]:
        """Those that have."""
        told, now = self._others_told(), _others(world)
        for key in sorted({*told, *now}):
            yield from self._one(key, now.get(key))

    def forget_topic(self, topic: str) -> None:
        """A topic's configs go with it, without records of their own (replay(RemoveTopicRecord))."""
        self._told = {key: value for key, value in self._told.items() if key[:2] != (TOPIC, topic)}

    def _level(self, kind: int, resource: str, configs: Configs, *, again: bool = False) -> Iterator[MetadataRecord]:
        for name in ELECTION_CONFIGS:
            yield from self._one((kind, resource, name), configs.named.get(name), again=again and name == MIN_ISR)

    def _one(self, key: Key, value: str | None, *, again: bool = False) -> Iterator[MetadataRecord]:
        if self._told.get(key) == value and not again:
            return
        if value is None:
            del self._told[key]
        else:
            self._told[key] = value
        yield rec.ConfigSet(*key, value)

    def _others_told(self) -> dict[Key, str]:
        return {key: value for key, value in self._told.items() if key[2] not in ELECTION_CONFIGS}


def _others(world: World) -> dict[Key, str]:
    levels = ((TOPIC, world.topic_configs), (BROKER, world.broker_configs))
    return {
        (kind, resource, name): value
        for kind, resources in levels
        for resource, configs in resources.items()
        for name, value in configs.items()
        if name not in ELECTION_CONFIGS
    }


def _writes_min_isr(event: events.Event | RecoveryEvent | None, before: ControllerState) -> bool:
    """Whether a record of min.insync.replicas is written: a value that a topic has already is not written again."""
    if isinstance(event, events.ConfigWritten):
        level = before.topics.get(event.topic or "", Configs())
        return event.min_isr is not None and (event.topic is None or event.min_isr != level.min_isr)
    if isinstance(event, events.ConfigDeleted):
        return event.min_isr and (event.topic is None or before.topics.get(event.topic, Configs()).min_isr is not None)
    return False


HOST = "127.0.0.1"
FIRST_EPOCH = 1
"""The epoch of the first controller."""
MOST_ALIKE = 20_000
"""Of so many partitions that are alike each has its records; more of them have none."""
MOST_RECORDS = 10_000
"""The most records of one batch (QuorumController.MAX_RECORDS_PER_BATCH)."""
MOST_BYTES = 8 * 1024 * 1024
"""The most bytes of one answer, but for a single batch that is longer (KafkaRaftClient.MAX_FETCH_SIZE_BYTES)."""

_recorded = attrgetter(
    "leader",
    "leader_epoch",
    "replicas",
    "isr",
    "elr",
    "last_known_elr",
    "partition_epoch",
    "adding",
    "removing",
    "recovering",
)
"""What records tell of a partition."""


@dataclass(slots=True)
class _Batch:
    base_offset: int
    epoch: int
    timestamp_ms: int
    records: tuple[MetadataRecord, ...]
    data: bytes | None = None

    def bytes(self) -> bytes:
        if self.data is None:
            self.data = encode_batch(self.base_offset, self.epoch, self.timestamp_ms, self.records)
        return self.data


class MetadataLog:
    """Follows a world. Offsets are Kafka's: one for each record, from 0 on."""

    def __init__(self, world: World) -> None:
        self.epoch = FIRST_EPOCH
        """The quorum's leader epoch; a new one with each controller."""
        self._world = world
        self._batches: list[_Batch] = []
        self._end = 0
        self._epochs: list[tuple[int, int]] = [(FIRST_EPOCH, 0)]
        self._state = ControllerState(world.running.cluster.controller.rules)
        self._partitions: dict[TopicPartition, PartitionState] = {}
        self._topics: dict[str, str] = {}
        """Ids by name."""
        self._removed: set[str] = set()
        self._configs = WrittenConfigs()
        self._alike: dict[TopicPartition, list[TopicPartition]] = self._of_stand_ins()
        self._compared = -1
        self._level = metadata_version(world.spec.rules)
        self._append([rec.FeatureLevel(METADATA_FEATURE, self._level)])
        if self._state.rules.elr:
            self._append([rec.FeatureLevel(ELR_FEATURE, 1)])
        if self._state.rules.recovers:
            self._append([rec.FeatureLevel(RECOVERY_FEATURE, 1)])
        self._compare()
        world.running.watchers.append(self.happened)

    # Reading.

    @property
    def level(self) -> int:
        """The metadata.version."""
        return self._level

    @property
    def end(self) -> int:
        """The offset after the last record; everything is committed, since there is one voter."""
        self._compare()
        return self._end

    def has_more(self, offset: int) -> bool:
        """Whether a step has written something at this offset since it was last read."""
        return self._end > offset

    def read(self, offset: int, most_bytes: int = MOST_BYTES) -> bytes:
        """Whole batches from the one on that holds the offset; at least one, if there is one."""
        self._compare()
        data, first = bytearray(), max(0, bisect_right(self._batches, offset, key=lambda one: one.base_offset) - 1)
        if offset >= self._end:
            return b""
        for batch in self._batches[first:]:
            piece = batch.bytes()
            if data and len(data) + len(piece) > most_bytes:
                break
            data += piece
        return bytes(data)

    def end_of(self, epoch: int) -> tuple[int, int]:
        """(largest epoch at or below this one, its end offset); (0, 0) where there is none.

        Source: ReplicatedLog.endOffsetForEpoch.
        """
        end = self.end
        for found, start in reversed(self._epochs):
            if found <= epoch:
                return found, end
            end = start
        return 0, 0

    # Writing.

    def happened(self, event: events.Event | RecoveryEvent | None, done: Stepped) -> None:
        """The controller made a step; without an event, leaders reported ISRs."""
        if isinstance(event, ControllerFailedOver):
            self.epoch += 1
            self._epochs.append((self.epoch, self._end))
        before, after = self._state, done.controller.state
        if after is before and not isinstance(event, events.MetadataVersion):
            return
        self._state = after
        if isinstance(event, events.MetadataVersion):
            self._level = event.level
        told = [rec.FeatureLevel(METADATA_FEATURE, self._level)] if isinstance(event, events.MetadataVersion) else []
        records = [*told, *self._features(before, after), *self._brokers(before, after, early=True)]
        if isinstance(event, events.TopicCreated) and done.error == NONE:
            records += self._created(event)
        cleared = self._configs.cleared_elr(event, before) if done.error == NONE else []
        records += [*self._configs.changed(before, after, event, self._topics), *cleared]
        records += self._changed(done, silent=bool(cleared))
        records += self._brokers(before, after, early=False)
        if isinstance(event, events.TopicDeleted) and done.error == NONE:
            records += self._deleted(event.topic)
        self._append(records)

    def _append(self, records: list[MetadataRecord]) -> None:
        now_ms = self._world.running.now_ms
        for start in range(0, len(records), MOST_RECORDS):
            piece = tuple(records[start : start + MOST_RECORDS])
            self._batches.append(_Batch(self._end, self.epoch, now_ms, piece))
            self._end += len(piece)

    def _compare(self) -> None:
        """Write what no step has told of."""
        world = self._world
        if self._compared == world.running.changes and not self._configs.differ(world):
            return
        self._compared = world.running.changes
        before, after = self._state, world.running.cluster.controller
        self._state = after
        records = [*self._features(before, after)]
        records += [*self._brokers(before, after, early=True), *self._brokers(before, after, early=False)]
        records += self._partitions_that_differ(after)
        records += self._configs.changed(before, after, None, self._topics)
        records += self._configs.others(world)
        self._append(records)

    # Features and brokers.

    def _features(self, before: ControllerState, after: ControllerState) -> Iterator[MetadataRecord]:
        if before.rules.elr is not after.rules.elr:
            yield rec.FeatureLevel(ELR_FEATURE, int(after.rules.elr))
        if before.rules.recovers is not after.rules.recovers:
            yield rec.FeatureLevel(RECOVERY_FEATURE, int(after.rules.recovers))

    def _brokers(self, before: ControllerState, after: ControllerState, *, early: bool) -> Iterator[MetadataRecord]:
        """What became of brokers. Unfenced ones, and those that begin to shut down, are told of before the partitions
        that change with them (`early`), all else after."""
        if before.brokers is after.brokers:
            return
        for broker, now in sorted(after.brokers.items()):
            was = before.brokers.get(broker)
            new = was is None or was.epoch != now.epoch
            if new and not early:
                yield self._registered(broker, after)
            if not early and now.cordoned is not (was is not None and not new and was.cordoned):
                directories = _directories((broker,), self._world.cluster_id) if now.cordoned else ()
                yield rec.BrokerChanged(broker, now.epoch, cordoned=directories)
            if was is None or new:
                continue
            if was.fenced is not now.fenced and early is was.fenced:
                yield rec.BrokerChanged(broker, now.epoch, fenced=now.fenced)
            if early and now.in_controlled_shutdown and not was.in_controlled_shutdown:
                yield rec.BrokerChanged(broker, now.epoch, in_controlled_shutdown=True)
        for broker in sorted(before.brokers.keys() - after.brokers.keys()) if not early else ():
            yield rec.BrokerUnregistered(broker, before.brokers[broker].epoch)

    def _registered(self, broker: int, after: ControllerState) -> rec.BrokerRegistered:
        world = self._world
        return broker_registered(
            broker,
            after.brokers[broker],
            self._level,
            cluster_id=world.cluster_id,
            host=HOST,
            port=world.ports.get(broker),
            rack=world.racks.get(broker),
        )

    # Topics and partitions.

    def _created(self, event: events.TopicCreated) -> Iterator[MetadataRecord]:
        for number in range(len(event.replicas)):
            address = TopicPartition(event.topic, number)
            for real in self._told_as(address):
                yield from self._made(real, self._state.partitions[address])

    def _made(self, address: TopicPartition, state: PartitionState) -> Iterator[MetadataRecord]:
        """A partition, after its topic if that was not told of before."""
        if address.topic not in self._topics:
            self._topics[address.topic] = text_of_id(self._world.topic_id(address.topic))
            yield rec.TopicMade(address.topic, self._topics[address.topic])
        self._partitions[address] = state
        made = replace(state, partition=address.partition)
        directories = _directories(state.replicas, self._world.cluster_id)
        yield rec.partition_made(made, self._topics[address.topic], directories)

    def _changed(self, done: Stepped, *, silent: bool) -> Iterator[MetadataRecord]:
        """A record for each run of the controller, in its order.

        Args:
            silent: another record has told of it already.
        """
        for change in done.changes:
            for real in self._told_as(change.after.address):
                if real not in self._partitions:
                    continue  # it was put there without a step: the whole of it is written when the log is read
                self._partitions[real] = change.after
                if not silent:
                    yield partition_changed(
                        real.partition, self._topics[real.topic], change.before, change.after, self._world.cluster_id
                    )

    def _deleted(self, topic: str) -> Iterator[MetadataRecord]:
        topic_id = self._topics.pop(topic, None)
        if topic_id is None:
            return
        self._removed.add(topic)
        for address in [address for address in self._partitions if address.topic == topic]:
            del self._partitions[address]
        self._configs.forget_topic(topic)
        yield rec.TopicRemoved(topic_id)

    def _partitions_that_differ(self, after: ControllerState) -> Iterator[MetadataRecord]:
        current = {real for address in after.partitions for real in self._told_as(address)}
        gone = {address.topic for address in self._partitions.keys() - current}
        for topic in sorted(gone - {address.topic for address in current}):
            yield from self._deleted(topic)
        for address, state in sorted(after.partitions.items()):
            for real in self._told_as(address):
                known = self._partitions.get(real)
                if known is None or (known is not state and _recorded(known) != _recorded(state)):
                    yield from self._made(real, state)

    def _told_as(self, address: TopicPartition) -> Iterator[TopicPartition]:
        """The partitions that a partition of the state stands for in the log."""
        if address.topic == STAND_IN:
            for real in self._alike.get(address, ()):
                if real not in self._state.partitions and real.topic not in self._removed:
                    yield real
        elif self._alike or self._world.alike.index(address.topic) is None:
            yield address

    def _of_stand_ins(self) -> dict[TopicPartition, list[TopicPartition]]:
        alike, found = self._world.alike, dict[TopicPartition, list[TopicPartition]]()
        if alike.topics * alike.partitions > MOST_ALIKE:
            return found
        for topic in alike.names():
            for number in range(alike.partitions):
                address = TopicPartition(topic, number)
                found.setdefault(alike.stand_in(address) or address, []).append(address)
        return found
