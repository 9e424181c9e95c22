"""Records of Kafka's metadata log (``__cluster_metadata``), by schemas in Kafka's own format (`resources`).

Importing this brings kafka-python along: import it where it is used.

Source: the schemas in Apache Kafka's ``kafka-metadata`` (``common/metadata/*.json``), with which a test compares these;
MetadataRecordSerde for the frame around a record.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeAlias

from kafka.protocol.api_data import ApiData

_RESOURCES = "kelr.messages.resources"
FRAME_VERSION = 1

Message: TypeAlias = Any
"""A record's class or value; kafka-python is not typed."""

KINDS = (
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ConfigRecord",
    "FeatureLevelRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "RegisterBrokerRecord",
    "RemoveTopicRecord",
    "TopicRecord",
    "UnregisterBrokerRecord",
)
"""The kinds of records that kelr writes, in a simulated cluster."""
ALL_KINDS = (
    *KINDS,
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "ClientQuotaRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "FenceBrokerRecord",
    "NoOpRecord",
    "ProducerIdsRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveUserScramCredentialRecord",
    "UnfenceBrokerRecord",
    "UnregisterControllerRecord",
    "UserScramCredentialRecord",
    "ZkMigrationRecord",
)
"""Every kind of record of Kafka 4.0 to 4.4."""


class UnknownRecordError(ValueError):
    """The bytes are no record of a kind and version that is known here."""


_NOWHERE = {"name": "Nothing", "type": "int8", "versions": "none"}


def _as_data(_metaclass: type, json: dict[str, Any]) -> dict[str, Any]:
    # kafka-python knows messages and data; a metadata record is encoded like data. It makes no class without fields:
    # this one is in no version.
    return {**json, "type": "data", "fields": json["fields"] or [_NOWHERE]}


def _made(kind: str) -> Message:
    attributes = {"json_patch": classmethod(_as_data), "__module__": __name__}
    return type(ApiData)(kind, (ApiData,), attributes, load_json=_RESOURCES)


CLASSES: Mapping[str, Message] = {kind: _made(kind) for kind in ALL_KINDS}
_BY_KEY: Mapping[int, tuple[str, Message]] = {made.json["apiKey"]: (kind, made) for kind, made in CLASSES.items()}


def encode(kind: str, version: int, fields: Mapping[str, Any]) -> bytes:
    """The value of a record in the log: frame version, key and version as varints, then the record."""
    made = CLASSES[kind]
    frame = _varint(FRAME_VERSION) + _varint(made.json["apiKey"]) + _varint(version)
    return frame + bytes(made(version=version, **fields).encode(version=version, header=False))


def decode(value: bytes) -> tuple[str, int, Message]:
    """(kind, version, record) of a record's value.

    Raises:
        UnknownRecordError: it is of another kind or a newer version, or no record at all.
    """
    frame, at = _read_varint(value, 0)
    key, at = _read_varint(value, at)
    version, at = _read_varint(value, at)
    kind, made = _BY_KEY.get(key, ("", None))
    if frame != FRAME_VERSION or made is None or version > made.max_version:
        raise UnknownRecordError(f"a record of key {key}, version {version}, in a frame of version {frame}")
    try:
        return kind, version, made.decode(value[at:], version=version, header=False)
    except (ValueError, IndexError, struct.error) as error:
        raise UnknownRecordError(f"no {kind} of version {version}: {error}") from error


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise UnknownRecordError("a varint without an end")
