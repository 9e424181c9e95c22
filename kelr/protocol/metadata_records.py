"""Records of Kafka's metadata log (``__cluster_metadata``), by schemas in Kafka's own format (`resources`).

Source: the schemas in Apache Kafka's ``kafka-metadata`` (``common/metadata/*.json``), with which a test compares these;
MetadataRecordSerde for the frame around a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kelr.protocol.codec import MalformedError, Message, message_class, uvarint, uvarint_bytes

FRAME_VERSION = 1

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


CLASSES: Mapping[str, type[Message]] = {kind: message_class(kind) for kind in ALL_KINDS}
KIND_OF_KEY: Mapping[int, str] = {made.API_KEY: kind for kind, made in CLASSES.items()}


def encode(kind: str, version: int, fields: Mapping[str, Any]) -> bytes:
    """The value of a record in the log: frame version, key and version as varints, then the record."""
    made = CLASSES[kind]
    return b"".join(map(uvarint_bytes, (FRAME_VERSION, made.API_KEY, version))) + made(**fields).encode(version)


def frame(value: bytes) -> tuple[int, int, int]:
    """(key, version, where the record begins) of a record's value.

    Raises:
        UnknownRecordError: it is in a frame of another version, or in none.
    """
    try:
        found, at = uvarint(value, 0)
        key, at = uvarint(value, at)
        version, at = uvarint(value, at)
    except (MalformedError, IndexError):
        raise UnknownRecordError("a varint without an end") from None
    if found != FRAME_VERSION:
        raise UnknownRecordError(f"a record is in a frame of version {found}; kelr knows {FRAME_VERSION}")
    return key, version, at


def decode(value: bytes) -> tuple[str, int, Message]:
    """(kind, version, record) of a record's value.

    Raises:
        UnknownRecordError: it is of another kind or a newer version, or no record at all.
    """
    key, version, at = frame(value)
    kind = KIND_OF_KEY.get(key)
    if kind is None or version > CLASSES[kind].newest():
        raise UnknownRecordError(f"a record of key {key}, version {version}")
    try:
        return kind, version, CLASSES[kind].decode_start(value, version, at)[0]
    except MalformedError as error:
        raise UnknownRecordError(f"no {kind} of version {version}: {error}") from error
