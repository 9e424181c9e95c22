"""What a controller writes into its metadata log, as values: one function for each kind of record.

Source: ReplicationControlManager, ClusterControlManager, ConfigurationControlManager, FeatureControlManager of Apache
Kafka 4.3, for their choice of versions; PartitionRegistration.merge for what a change says and what it leaves out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kelr.controller import Registration
from kelr.model import ELR_FEATURE, METADATA_FEATURE, PartitionState

TOPIC, BROKER = 2, 4
"""Kinds of resources that have configs (ConfigResource.Type)."""
_OLDER_METADATA_VERSIONS = {"elr-4.0": 25, "elr-4.1.0": 27, "elr-4.1": 29}
_METADATA_VERSION = 33
OLDEST_METADATA_VERSION = 7
"""3.3-IV3, the oldest that Kafka 4 can run with (MetadataVersion.MINIMUM_VERSION)."""
CORDONS = 30
"""The metadata.version from which on registrations tell of cordoned directories (isCordonedLogDirsSupported)."""
_NOBODY = -1
_LISTENER = "PLAINTEXT"
_NEVER_LISTENED = 9
"""The port of a broker that has none here; nothing can listen there (RFC 863, "discard")."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record of the metadata log, by the schema's names in snake_case."""

    kind: str
    version: int
    fields: Mapping[str, Any]


def metadata_version(rules: str) -> int:
    """The metadata.version of the newest Kafka that elects by this rule set: clients tell versions by it.

    Source: MetadataVersion.LATEST_PRODUCTION of 4.0 (4.0-IV3), 4.1 (4.1-IV1), 4.2 (4.2-IV1) and 4.4 (4.4-IV2).
    """
    return _OLDER_METADATA_VERSIONS.get(rules, _METADATA_VERSION)


def feature(name: str, level: int) -> Record:
    return Record("FeatureLevelRecord", 0, {"name": name, "feature_level": level})


def broker_registered(
    broker: int,
    registration: Registration,
    level: int,
    *,
    cluster_id: str,
    host: str,
    port: int | None,
    rack: str | None,
) -> Record:
    """A broker's incarnation, in the state that the controller has it in; it supports this metadata.version."""
    endpoint = {"name": _LISTENER, "host": host, "port": port or _NEVER_LISTENED, "security_protocol": 0}
    features = [
        {"name": ELR_FEATURE, "min_supported_version": 0, "max_supported_version": 1},
        {
            "name": METADATA_FEATURE,
            "min_supported_version": OLDEST_METADATA_VERSION,
            "max_supported_version": level,
        },
    ]
    return Record(
        "RegisterBrokerRecord",
        4 if level >= CORDONS else 3,
        {
            "broker_id": broker,
            "incarnation_id": incarnation_id(cluster_id, broker, registration.epoch),
            "broker_epoch": registration.epoch,
            "end_points": [endpoint],
            "features": features,
            "rack": rack,
            "fenced": registration.fenced,
            "in_controlled_shutdown": registration.in_controlled_shutdown,
            "log_dirs": [directory_id(cluster_id, broker)],
        },
    )


def broker_fenced(broker: int, epoch: int, *, fenced: bool) -> Record:
    """A broker is fenced, or unfenced."""
    fields = {"broker_id": broker, "broker_epoch": epoch, "fenced": 1 if fenced else -1}
    return Record("BrokerRegistrationChangeRecord", 0, fields)


def broker_shuts_down(broker: int, epoch: int) -> Record:
    return Record(
        "BrokerRegistrationChangeRecord", 1, {"broker_id": broker, "broker_epoch": epoch, "in_controlled_shutdown": 1}
    )


def broker_cordoned(broker: int, epoch: int, cluster_id: str, *, cordoned: bool) -> Record:
    """All its log directories are cordoned, or none is any more."""
    directories = [directory_id(cluster_id, broker)] if cordoned else []
    fields = {"broker_id": broker, "broker_epoch": epoch, "cordoned_log_dirs": directories}
    return Record("BrokerRegistrationChangeRecord", 3, fields)


def broker_unregistered(broker: int, epoch: int) -> Record:
    return Record("UnregisterBrokerRecord", 0, {"broker_id": broker, "broker_epoch": epoch})


def topic_made(name: str, topic_id: UUID) -> Record:
    return Record("TopicRecord", 0, {"name": name, "topic_id": topic_id})


def topic_removed(topic_id: UUID) -> Record:
    return Record("RemoveTopicRecord", 0, {"topic_id": topic_id})


def config(kind: int, resource: str, name: str, value: str | None) -> Record:
    fields = {"resource_type": kind, "resource_name": resource, "name": name, "value": value}
    return Record("ConfigRecord", 0, fields)


def elr_cleared(topic: str | None) -> Record:
    """ELR and last known ELR of one topic, or of all, are gone."""
    return Record("ClearElrRecord", 0, {"topic_name": topic or ""})


def partition_made(number: int, topic_id: UUID, state: PartitionState, cluster_id: str) -> Record:
    """A partition with its whole state."""
    fields = {
        "partition_id": number,
        "topic_id": topic_id,
        "replicas": list(state.replicas),
        "isr": list(state.isr),
        "removing_replicas": list(state.removing or ()),
        "adding_replicas": list(state.adding or ()),
        "leader": _leader(state),
        "leader_recovery_state": int(bool(state.recovering)),
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch or 0,
        "directories": _directories(state, cluster_id),
        "eligible_leader_replicas": list(state.elr) if state.elr else None,
        "last_known_elr": list(state.last_known_elr) if state.last_known_elr else None,
    }
    return Record("PartitionRecord", 2, fields)


def partition_changed(
    number: int, topic_id: UUID, before: PartitionState, after: PartitionState, cluster_id: str
) -> Record:
    """What is different after a run of the controller; the rest stays as it was."""
    fields: dict[str, Any] = {"partition_id": number, "topic_id": topic_id}
    for name, kept in _LISTS.items():
        new = getattr(after, kept) or ()
        if new != (getattr(before, kept) or ()):
            fields[name] = list(new)
    if "replicas" in fields:
        fields["directories"] = _directories(after, cluster_id)
    if after.leader_epoch != before.leader_epoch:
        fields["leader"] = _leader(after)
    if bool(after.recovering) != bool(before.recovering):
        fields["leader_recovery_state"] = int(bool(after.recovering))
    return Record("PartitionChangeRecord", 2, fields)


def directory_id(cluster_id: str, node: int) -> UUID:
    """The id of a node's one log directory."""
    return _made(f"{cluster_id}/directory/{node}")


def incarnation_id(cluster_id: str, broker: int, epoch: int) -> UUID:
    """The id of the process that registered with this broker epoch."""
    return _made(f"{cluster_id}/incarnation/{broker}/{epoch}")


_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "removing_replicas": "removing",
    "adding_replicas": "adding",
    "eligible_leader_replicas": "elr",
    "last_known_elr": "last_known_elr",
}
"""Fields of a change, and where a partition has them."""


def _leader(state: PartitionState) -> int:
    return _NOBODY if state.leader is None else state.leader


def _directories(state: PartitionState, cluster_id: str) -> list[UUID]:
    return [directory_id(cluster_id, replica) for replica in state.replicas]


def _made(text: str) -> UUID:
    return UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest())
