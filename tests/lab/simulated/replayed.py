"""A metadata log played back as Kafka's controller plays it back: an image of the cluster, from records alone.

Source: ReplicationControlManager.replay, ClusterControlManager.replay, PartitionRegistration.merge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kelr.protocol import metadata_records as metadata
from kelr.protocol.messages import FetchRequest
from kelr.sources.records.batches import read_header
from kelr.sources.records.records import read_records

AS_BEFORE = -2
TOPIC_ID = UUID(int=1)
"""The id of ``__cluster_metadata``."""
HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass
class Image:
    """What the records say."""

    features: dict[str, int] = field(default_factory=dict)
    brokers: dict[int, tuple[int, bool, bool]] = field(default_factory=dict)
    """By id: broker epoch, fenced, in controlled shutdown."""
    topics: dict[UUID, str] = field(default_factory=dict)
    partitions: dict[tuple[UUID, int], dict[str, Any]] = field(default_factory=dict)
    configs: dict[tuple[int, str, str], str] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)

    def play(self, value: bytes) -> None:
        kind, _version, record = metadata.decode(value)
        self.kinds.append(kind)
        getattr(self, "_" + HUMPS.sub("_", kind.removesuffix("Record")).lower())(record)

    def _feature_level(self, record: Any) -> None:
        self.features[record.name] = record.feature_level

    def _register_broker(self, record: Any) -> None:
        self.brokers[record.broker_id] = (record.broker_epoch, record.fenced, record.in_controlled_shutdown)

    def _broker_registration_change(self, record: Any) -> None:
        epoch, fenced, stopping = self.brokers[record.broker_id]
        assert epoch == record.broker_epoch
        if record.fenced:
            fenced = record.fenced == 1
        self.brokers[record.broker_id] = (epoch, fenced, stopping or bool(record.in_controlled_shutdown))

    def _unregister_broker(self, record: Any) -> None:
        assert self.brokers.pop(record.broker_id)[0] == record.broker_epoch

    def _topic(self, record: Any) -> None:
        assert record.name not in self.topics.values()
        self.topics[record.topic_id] = record.name

    def _remove_topic(self, record: Any) -> None:
        name = self.topics.pop(record.topic_id)
        self.partitions = {key: value for key, value in self.partitions.items() if key[0] != record.topic_id}
        self.configs = {key: value for key, value in self.configs.items() if key[:2] != (2, name)}

    def _partition(self, record: Any) -> None:
        assert record.topic_id in self.topics
        assert len(record.directories) == len(record.replicas)
        self.partitions[record.topic_id, record.partition_id] = {
            "replicas": record.replicas,
            "isr": record.isr,
            "removing": record.removing_replicas,
            "adding": record.adding_replicas,
            "leader": record.leader,
            "leader_epoch": record.leader_epoch,
            "partition_epoch": record.partition_epoch,
            "recovering": record.leader_recovery_state == 1,
            "elr": record.eligible_leader_replicas or [],
            "last_known_elr": record.last_known_elr or [],
        }

    def _partition_change(self, record: Any) -> None:
        known = self.partitions[record.topic_id, record.partition_id]
        for name, kept in {
            "replicas": "replicas",
            "isr": "isr",
            "removing_replicas": "removing",
            "adding_replicas": "adding",
            "eligible_leader_replicas": "elr",
            "last_known_elr": "last_known_elr",
        }.items():
            if getattr(record, name) is not None:
                known[kept] = getattr(record, name)
        if record.leader != AS_BEFORE:
            known["leader"] = record.leader
            known["leader_epoch"] += 1
        if record.leader_recovery_state >= 0:
            known["recovering"] = record.leader_recovery_state == 1
        known["partition_epoch"] += 1

    def _config(self, record: Any) -> None:
        key = (record.resource_type, record.resource_name, record.name)
        if record.value is None:
            del self.configs[key]
        else:
            self.configs[key] = record.value

    def _clear_elr(self, record: Any) -> None:
        for (topic_id, _), known in self.partitions.items():
            if record.topic_name in {"", self.topics[topic_id]} and (known["elr"] or known["last_known_elr"]):
                known.update(elr=[], last_known_elr=[], partition_epoch=known["partition_epoch"] + 1)


def records(data: bytes, first: int = 0) -> Iterable[tuple[int, bytes]]:
    """(offset, value) of each record in these batches, whose offsets have no gap."""
    at = 0
    while at < len(data):
        header = read_header(data, at)
        assert header is not None
        assert header.base_offset == first
        for record in read_records(data, at, header):
            assert record.value is not None
            yield record.offset, record.value
            first = record.offset + 1
        at += header.size_bytes


def image(data: bytes) -> Image:
    found = Image()
    for _offset, value in records(data):
        found.play(value)
    return found


def fetch_request(
    offset: int = 0,
    *,
    epoch: int = 1,
    last_epoch: int = 0,
    version: int = 13,
    wait_ms: int = 0,
    partition: int = 0,
    topic_id: UUID = TOPIC_ID,
    cluster_id: str | None = None,
) -> Any:
    """A Fetch of the metadata log from this offset on, by somebody who knows these epochs."""
    topic = FetchRequest.FetchTopic
    one = topic.FetchPartition(
        partition=partition,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        log_start_offset=-1,
        partition_max_bytes=1 << 20,
    )
    return FetchRequest(
        version=version,
        cluster_id=cluster_id,
        replica_id=-1,
        max_wait_ms=wait_ms,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[topic(topic="__cluster_metadata", topic_id=topic_id, partitions=[one])],
        forgotten_topics_data=[],
        rack_id="",
    )
