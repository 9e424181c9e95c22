"""A record of the metadata log from its bytes, by the schemas of Kafka 4.0 to 4.4 (`kelr.protocol.schemas`).

Kinds that say nothing of leaders are not looked into. Unknown kinds and newer versions are `NotUnderstood`.

Source: BrokerRegistrationFencingChange, BrokerRegistrationInControlledShutdownChange and ClusterDelta for what the
numbers of BrokerRegistrationChangeRecord say.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from kelr.protocol.codec import MalformedError
from kelr.protocol.metadata_records import CLASSES, KIND_OF_KEY, UnknownRecordError, frame
from kelr.replay import records as rec
from kelr.replay.packed import id_text
from kelr.sources.records.errors import UnreadableBatchError

ID_SIZE = 16
_NO_ID = bytes(ID_SIZE)
_NO_CHANGE_OF_LEADER = -2
_NO_CHANGE_OF_RECOVERY = -1
_PARTITION_RECORDS = frozenset({b"\x01\x03\x01", b"\x01\x03\x02"})
_TWO_EMPTY_LISTS = b"\x01\x01"
_ONE, _THREE = struct.Struct(">i"), struct.Struct(">3i")
_RECOVERING = 1
_FENCED: Mapping[int, bool | None] = {-1: False, 0: None, 1: True}
_SHUTTING_DOWN: Mapping[int, bool | None] = {0: None, 1: True}
_CHANGE = CLASSES["PartitionChangeRecord"]
_NO_PARTITION = bytes(_ONE.size + ID_SIZE)
_MOST_KEPT = 1 << 16
"""Lists of brokers and directories come again and again: so many are kept."""


def decode(value: bytes) -> rec.MetadataRecord:
    """What the value of a record says.

    Raises:
        UnreadableBatchError: it does not hold what its kind and version say, or it is in a frame of another version.
    """
    if value[:3] in _PARTITION_RECORDS:
        usual = _usual_partition(value)
        if usual is not None:
            return usual
    try:
        key, version, at = frame(value)
    except UnknownRecordError as error:
        raise UnreadableBatchError(str(error)) from error
    kind = KIND_OF_KEY.get(key)
    if kind is None or version > CLASSES[kind].newest():
        return rec.NotUnderstood(key, version, kind)
    read = READERS.get(kind)
    if read is None:
        return _IRRELEVANT[kind]
    try:
        return read(CLASSES[kind].decode(value[at:], version))
    except (MalformedError, UnreadableBatchError) as error:
        raise UnreadableBatchError(f"{kind} of version {version}: {error}") from error


def text_of_id(found: UUID | None) -> str:
    """An id as Kafka prints it; the same for topics, brokers' incarnations and log directories."""
    return id_text(_NO_ID if found is None else found.bytes)


def _texts(ids: Iterable[UUID | None]) -> tuple[str, ...]:
    return tuple(map(text_of_id, ids))


# Partitions and topics.


def _partition_made(found: Any) -> rec.PartitionMade:
    elr, last_known_elr = found.eligible_leader_replicas, found.last_known_elr
    return rec.PartitionMade(
        topic_id=text_of_id(found.topic_id),
        partition=found.partition_id,
        leader=found.leader,
        leader_epoch=found.leader_epoch,
        partition_epoch=found.partition_epoch,
        replicas=tuple(found.replicas),
        isr=tuple(found.isr),
        adding=tuple(found.adding_replicas),
        removing=tuple(found.removing_replicas),
        elr=None if elr is None else tuple(elr),
        last_known_elr=None if last_known_elr is None else tuple(last_known_elr),
        recovering=found.leader_recovery_state == _RECOVERING,
        directories=_texts(found.directories),
    )


def _usual_partition(value: bytes) -> rec.PartitionMade | None:
    """A PartitionRecord of version 1 or 2 without reassignment and tagged fields, as nearly all are; else None."""
    try:
        replicas_at, replicas = 24, value[23]
        isr_at = replicas_at + 4 * replicas - 3
        isr = value[isr_at - 1]
        rest_at = isr_at + 4 * isr - 4
        ids_at = rest_at + 15
        ids = value[ids_at - 1]
    except IndexError:
        return None
    end = ids_at + 16 * ids - 16
    sizes = (replicas, isr, ids)
    if value[end:] != b"\0" or value[rest_at : rest_at + 2] != _TWO_EMPTY_LISTS or not min(sizes) or max(sizes) > 0x7F:
        return None
    leader, leader_epoch, partition_epoch = _THREE.unpack_from(value, rest_at + 2)
    return rec.PartitionMade(
        id_text(value[7:23]),
        _ONE.unpack_from(value, 3)[0],
        leader,
        leader_epoch,
        partition_epoch,
        _numbers(value[replicas_at : isr_at - 1]),
        _numbers(value[isr_at:rest_at]),
        directories=_ids(value[ids_at:end]),
    )


@lru_cache(maxsize=_MOST_KEPT)
def _numbers(raw: bytes) -> tuple[int, ...]:
    """int32s that lie one behind the other."""
    return struct.unpack(f">{len(raw) // 4}i", raw)


@lru_cache(maxsize=_MOST_KEPT)
def _ids(raw: bytes) -> tuple[str, ...]:
    """Ids that lie one behind the other."""
    return tuple([id_text(raw[at : at + ID_SIZE]) for at in range(0, len(raw), ID_SIZE)])


def _partition_changed(found: Any) -> rec.PartitionChanged:
    return rec.PartitionChanged(text_of_id(found.topic_id), found.partition_id, **_told(found))


def told_of_change(tags: bytes, version: int) -> Mapping[str, object]:
    """What the tagged fields of a PartitionChangeRecord tell: names and values of `PartitionChanged`.

    Raises:
        UnreadableBatchError: they do not hold what they say.
    """
    try:
        return _told(_CHANGE.decode(_NO_PARTITION + tags, version))
    except MalformedError as error:
        raise UnreadableBatchError(str(error)) from error


def _told(found: Any) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if found.leader != _NO_CHANGE_OF_LEADER:
        told["leader"] = found.leader
    for name, field in _LISTS.items():
        members = getattr(found, field)
        if members is not None:
            told[name] = tuple(members)
    if found.leader_recovery_state != _NO_CHANGE_OF_RECOVERY:
        told["recovering"] = found.leader_recovery_state == _RECOVERING
    if found.directories is not None:
        told["directories"] = _texts(found.directories)
    return told


_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "removing": "removing_replicas",
    "adding": "adding_replicas",
    "elr": "eligible_leader_replicas",
    "last_known_elr": "last_known_elr",
}
"""Lists of brokers in a PartitionChangeRecord, by kelr's names."""


# Brokers and controllers.


def _broker_registered(found: Any) -> rec.BrokerRegistered:
    cordoned = found.cordoned_log_dirs
    return rec.BrokerRegistered(
        broker=found.broker_id,
        epoch=found.broker_epoch,
        incarnation=text_of_id(found.incarnation_id),
        fenced=found.fenced,
        in_controlled_shutdown=found.in_controlled_shutdown,
        rack=found.rack,
        endpoints=_endpoints(found),
        features={one.name: one.max_supported_version for one in found.features},
        directories=_texts(found.log_dirs),
        cordoned=None if cordoned is None else _texts(cordoned),
    )


def _endpoints(found: Any) -> tuple[rec.Endpoint, ...]:
    return tuple(rec.Endpoint(one.name, one.host, one.port) for one in found.end_points)


def _controller_registered(found: Any) -> rec.ControllerRegistered:
    return rec.ControllerRegistered(found.controller_id, text_of_id(found.incarnation_id), _endpoints(found))


def _broker_changed(found: Any) -> rec.BrokerChanged:
    fenced, shutting_down, cordoned = found.fenced, found.in_controlled_shutdown, found.cordoned_log_dirs
    if fenced not in _FENCED or shutting_down not in _SHUTTING_DOWN:
        raise UnreadableBatchError(
            f"fenced is {fenced}, in controlled shutdown {shutting_down}: Kafka has no such value"
        )
    return rec.BrokerChanged(
        broker=found.broker_id,
        epoch=found.broker_epoch,
        fenced=_FENCED[fenced],
        in_controlled_shutdown=_SHUTTING_DOWN[shutting_down],
        directories=_texts(found.log_dirs) or None,  # an empty list, too, is no change
        cordoned=None if cordoned is None else _texts(cordoned),  # an empty list ends every cordon
    )


READERS: Mapping[str, Callable[[Any], rec.MetadataRecord]] = {
    "PartitionRecord": _partition_made,
    "PartitionChangeRecord": _partition_changed,
    "TopicRecord": lambda one: rec.TopicMade(one.name, text_of_id(one.topic_id)),
    "RemoveTopicRecord": lambda one: rec.TopicRemoved(text_of_id(one.topic_id)),
    "ClearElrRecord": lambda one: rec.ElrCleared(one.topic_name or None),
    "RegisterBrokerRecord": _broker_registered,
    "UnregisterBrokerRecord": lambda one: rec.BrokerUnregistered(one.broker_id, one.broker_epoch),
    "BrokerRegistrationChangeRecord": _broker_changed,
    "FenceBrokerRecord": lambda one: rec.BrokerChanged(one.id, one.epoch, fenced=True),
    "UnfenceBrokerRecord": lambda one: rec.BrokerChanged(one.id, one.epoch, fenced=False),
    "RegisterControllerRecord": _controller_registered,
    "ConfigRecord": lambda one: rec.ConfigSet(one.resource_type, one.resource_name, one.name, one.value),
    "FeatureLevelRecord": lambda one: rec.FeatureLevel(one.name, one.feature_level),
    "BeginTransactionRecord": lambda _: rec.TransactionMark("begin"),
    "EndTransactionRecord": lambda _: rec.TransactionMark("end"),
    "AbortTransactionRecord": lambda _: rec.TransactionMark("abort"),
}
"""By kind: what a record of it says. Those that are not in it are not looked into."""

_IRRELEVANT = {kind: rec.Irrelevant(kind) for kind in CLASSES if kind not in READERS}
