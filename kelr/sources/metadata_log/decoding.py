"""A record of the metadata log from its bytes, by the schemas of Kafka 4.0 to 4.3 (`kelr.protocol.schemas`).

Kinds that say nothing of leaders are not looked into. Unknown kinds and newer versions are `NotUnderstood`.

Source: MetadataRecordSerde and AbstractApiMessageSerde for the frame; the schemas (``common/metadata/*.json``) for what
is inside; BrokerRegistrationFencingChange, BrokerRegistrationInControlledShutdownChange and ClusterDelta for what the
numbers of BrokerRegistrationChangeRecord say.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from kelr.replay import records as rec
from kelr.replay.packed import id_text
from kelr.sources.records.errors import UnreadableBatchError

# Fields of Kafka's flexible message versions, read from bytes: numbers, strings, ids, arrays, tagged fields.
#
# Nothing is made room for that the bytes cannot hold, and whatever does not fit raises `UnreadableBatchError`.
#
# Source: KIP-482 (compact arrays and strings, tagged fields); ByteUtils.readUnsignedVarint.


_T = TypeVar("_T")

ID_SIZE = 16
_NUMBERS = {size: struct.Struct(f">{code}") for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))}
_UINT16 = struct.Struct(">H")
_VARINT_LAST_SHIFT = 28
_MOST_KEPT = 1 << 16
"""Lists of brokers come again and again: so many are kept."""


@lru_cache(maxsize=_MOST_KEPT)
def numbers(raw: bytes) -> tuple[int, ...]:
    """int32s that lie one behind the other."""
    return struct.unpack(f">{len(raw) // 4}i", raw)


class Fields:
    """A place in the bytes of one message, from which fields are taken one after the other.

    Every method raises `UnreadableBatchError` where the bytes do not hold what is asked for.
    """

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self.end = len(data)

    def take(self, size: int) -> bytes:
        """So many bytes."""
        start, stop = self.at, self.at + size
        if stop > self.end:
            raise UnreadableBatchError(f"{size} bytes are asked for, and {self.end - start} are left")
        self.at = stop
        return self.data[start:stop]

    def number(self, size: int) -> int:
        """A signed number of 1, 2, 4 or 8 bytes."""
        value: int = _NUMBERS[size].unpack(self.take(size))[0]
        return value

    def uint16(self) -> int:
        value: int = _UINT16.unpack(self.take(2))[0]
        return value

    def boolean(self) -> bool:
        """Any byte but 0 is true (`Readable.readByte() != 0`)."""
        return self.take(1) != b"\0"

    def unsigned(self) -> int:
        """A varint of at most five bytes."""
        value, data = 0, self.data
        for shift in range(0, _VARINT_LAST_SHIFT + 7, 7):
            if self.at >= self.end:
                raise UnreadableBatchError("a number is cut short")
            byte = data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise UnreadableBatchError("a number is longer than 5 bytes")

    def topic_id(self) -> str:
        """An id as Kafka prints it; the same for brokers' incarnations and log directories."""
        return id_text(self.take(ID_SIZE))

    def text(self) -> str:
        """A string that is never null."""
        found = self.nullable_text()
        if found is None:
            raise UnreadableBatchError("a string that must be there is null")
        return found

    def nullable_text(self) -> str | None:
        raw = self.nullable_bytes()
        try:
            return None if raw is None else raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnreadableBatchError(f"a string is no UTF-8: {error.reason}") from error

    def nullable_bytes(self) -> bytes | None:
        size = self.unsigned()
        return None if size == 0 else self.take(size - 1)

    def numbers(self) -> tuple[int, ...]:
        """int32s in an array that is never null."""
        found = self.nullable_numbers()
        if found is None:
            raise UnreadableBatchError("a list that must be there is null")
        return found

    def nullable_numbers(self) -> tuple[int, ...] | None:
        size = self.unsigned()
        return None if size == 0 else numbers(self.take(4 * (size - 1)))

    def ids(self) -> tuple[str, ...]:
        """Ids in an array that is never null."""
        found = self.nullable_ids()
        if found is None:
            raise UnreadableBatchError("a list that must be there is null")
        return found

    def nullable_ids(self) -> tuple[str, ...] | None:
        size = self.unsigned()
        if size == 0:
            return None
        raw = self.take(ID_SIZE * (size - 1))
        return tuple(id_text(raw[at : at + ID_SIZE]) for at in range(0, len(raw), ID_SIZE))

    def array(self, one: Callable[[Fields], _T]) -> list[_T]:
        """An array of structs; each is at least one byte long."""
        size = self.unsigned() - 1
        if size < 0:
            raise UnreadableBatchError("a list that must be there is null")
        if size > self.end - self.at:
            raise UnreadableBatchError(f"a list of {size} is asked for, and {self.end - self.at} bytes are left")
        return [one(self) for _ in range(size)]

    def tagged(self, known: dict[int, Callable[[Fields], object]] | None = None) -> dict[int, object]:
        """The tagged fields at this place, those that are known; others are skipped.

        Args:
            known: how the field of each known tag is read.
        """
        found: dict[int, object] = {}
        for _ in range(self.unsigned()):
            tag, size = self.unsigned(), self.unsigned()
            if size > self.end - self.at:
                raise UnreadableBatchError(f"a tagged field of {size} bytes, and {self.end - self.at} are left")
            stop = self.at + size
            read = None if known is None else known.get(tag)
            if read is None:
                self.at = stop
            elif tag in found:
                raise UnreadableBatchError(f"the tagged field {tag} is there twice")
            else:
                found[tag] = read(self)
            if self.at != stop:
                raise UnreadableBatchError(f"the tagged field {tag} is not as long as it says")
        return found

    def finish(self) -> None:
        """Nothing may follow (AbstractApiMessageSerde.read)."""
        if self.at != self.end:
            raise UnreadableBatchError(f"{self.end - self.at} bytes follow what a record holds")


FRAME_VERSION = 1
_NO_CHANGE_OF_LEADER = -2
_NO_CHANGE_OF_RECOVERY = -1
_PARTITION_RECORDS = frozenset({b"\x01\x03\x01", b"\x01\x03\x02"})
_TWO_EMPTY_LISTS = b"\x01\x01"
_ONE, _THREE = struct.Struct(">i"), struct.Struct(">3i")
_RECOVERING = 1
_CHANGED: Mapping[int, str] = {
    0: "isr",
    1: "leader",
    2: "replicas",
    3: "removing",
    4: "adding",
    5: "recovering",
    6: "elr",
    7: "last_known_elr",
    8: "directories",
}
"""The tagged fields of PartitionChangeRecord."""
_FENCED: Mapping[int, bool | None] = {-1: False, 0: None, 1: True}
_SHUTTING_DOWN: Mapping[int, bool | None] = {0: None, 1: True}


def decode(value: bytes) -> rec.MetadataRecord:
    """What the value of a record says.

    Raises:
        UnreadableBatchError: it does not hold what its kind and version say, or it is in a frame of another version.
    """
    if value[:3] in _PARTITION_RECORDS:
        usual = _usual_partition(value)
        if usual is not None:
            return usual
    fields = Fields(value)
    frame = fields.unsigned()
    if frame != FRAME_VERSION:
        raise UnreadableBatchError(f"a record is in a frame of version {frame}; kelr knows {FRAME_VERSION}")
    key, version = fields.unsigned(), fields.unsigned()
    kind = KINDS.get(key)
    if kind is None or version > kind.newest:
        return rec.NotUnderstood(key, version, None if kind is None else kind.name)
    if kind.read is None:
        return kind.irrelevant
    try:
        record = kind.read(fields, version)
        fields.finish()
    except UnreadableBatchError as error:
        raise UnreadableBatchError(f"{kind.name} of version {version}: {error}") from error
    return record


# Partitions and topics.


def _partition_made(fields: Fields, version: int) -> rec.PartitionMade:
    partition, topic_id = fields.number(4), fields.topic_id()
    replicas, isr, removing, adding = fields.numbers(), fields.numbers(), fields.numbers(), fields.numbers()
    leader, leader_epoch, partition_epoch = fields.number(4), fields.number(4), fields.number(4)
    directories = fields.ids() if version >= 1 else ()
    told = fields.tagged(_PARTITION_TAGS[version])
    return rec.PartitionMade(
        topic_id=topic_id,
        partition=partition,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        replicas=replicas,
        isr=isr,
        adding=adding,
        removing=removing,
        elr=told.get(1),  # type: ignore[arg-type]  # by _PARTITION_TAGS
        last_known_elr=told.get(2),  # type: ignore[arg-type]
        recovering=told.get(0, 0) == _RECOVERING,
        directories=directories,
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
        numbers(value[replicas_at : isr_at - 1]),
        numbers(value[isr_at:rest_at]),
        directories=_ids(value[ids_at:end]),
    )


@lru_cache(maxsize=1 << 16)
def _ids(raw: bytes) -> tuple[str, ...]:
    """Ids that lie one behind the other; the same few combinations come again and again."""
    return tuple([id_text(raw[at : at + 16]) for at in range(0, len(raw), 16)])


def _partition_changed(fields: Fields, version: int) -> rec.PartitionChanged:
    partition, topic_id = fields.number(4), fields.topic_id()
    return rec.PartitionChanged(topic_id, partition, **told_of_change(fields, version))  # type: ignore[arg-type]


def told_of_change(fields: Fields, version: int) -> dict[str, object]:
    """What the tagged fields of a PartitionChangeRecord tell: names and values of `PartitionChanged`.

    Raises:
        UnreadableBatchError: they do not hold what they say.
    """
    told = {_CHANGED[tag]: value for tag, value in fields.tagged(_CHANGE_TAGS[version]).items()}
    if told.get("leader") == _NO_CHANGE_OF_LEADER:
        del told["leader"]
    recovery = told.pop("recovering", _NO_CHANGE_OF_RECOVERY)
    if recovery != _NO_CHANGE_OF_RECOVERY:
        told["recovering"] = recovery == _RECOVERING
    return {name: value for name, value in told.items() if value is not None}


def _topic_made(fields: Fields, _version: int) -> rec.TopicMade:
    record = rec.TopicMade(fields.text(), fields.topic_id())
    fields.tagged()
    return record


def _topic_removed(fields: Fields, _version: int) -> rec.TopicRemoved:
    record = rec.TopicRemoved(fields.topic_id())
    fields.tagged()
    return record


def _elr_cleared(fields: Fields, _version: int) -> rec.ElrCleared:
    record = rec.ElrCleared(fields.text() or None)
    fields.tagged()
    return record


# Brokers and controllers.


def _broker_registered(fields: Fields, version: int) -> rec.BrokerRegistered:
    broker = fields.number(4)
    if version >= 2:
        fields.boolean()  # whether it moves over from ZooKeeper
    incarnation, epoch = fields.topic_id(), fields.number(8)
    endpoints, features = tuple(fields.array(_endpoint)), dict(fields.array(_feature))
    rack, fenced = fields.nullable_text(), fields.boolean()
    shutting_down = fields.boolean() if version >= 1 else False
    told = fields.tagged(_REGISTRATION_TAGS[version])
    return rec.BrokerRegistered(
        broker=broker,
        epoch=epoch,
        incarnation=incarnation,
        fenced=fenced,
        in_controlled_shutdown=shutting_down,
        rack=rack,
        endpoints=endpoints,
        features=features,
        directories=told.get(0, ()),  # type: ignore[arg-type]  # by _REGISTRATION_TAGS
        cordoned=told.get(1),  # type: ignore[arg-type]
    )


def _endpoint(fields: Fields) -> rec.Endpoint:
    endpoint = rec.Endpoint(fields.text(), fields.text(), fields.uint16())
    fields.number(2)  # the security protocol
    fields.tagged()
    return endpoint


def _feature(fields: Fields) -> tuple[str, int]:
    name, _lowest, highest = fields.text(), fields.number(2), fields.number(2)
    fields.tagged()
    return name, highest


def _broker_unregistered(fields: Fields, _version: int) -> rec.BrokerUnregistered:
    record = rec.BrokerUnregistered(fields.number(4), fields.number(8))
    fields.tagged()
    return record


def _broker_changed(fields: Fields, version: int) -> rec.BrokerChanged:
    broker, epoch = fields.number(4), fields.number(8)
    told = fields.tagged(_BROKER_TAGS[version])
    fenced, shutting_down = told.get(0, 0), told.get(1, 0)
    if fenced not in _FENCED or shutting_down not in _SHUTTING_DOWN:
        raise UnreadableBatchError(
            f"fenced is {fenced}, in controlled shutdown {shutting_down}: Kafka has no such value"
        )
    return rec.BrokerChanged(
        broker=broker,
        epoch=epoch,
        fenced=_FENCED[fenced],  # type: ignore[index]  # by _BROKER_TAGS
        in_controlled_shutdown=_SHUTTING_DOWN[shutting_down],  # type: ignore[index]
        directories=told.get(2) or None,  # type: ignore[arg-type]  # an empty list, too, is no change
        cordoned=told.get(3),  # type: ignore[arg-type]  # an empty list ends every cordon
    )


def _broker_fenced(fields: Fields, _version: int) -> rec.BrokerChanged:
    record = rec.BrokerChanged(fields.number(4), fields.number(8), fenced=True)
    fields.tagged()
    return record


def _broker_unfenced(fields: Fields, _version: int) -> rec.BrokerChanged:
    record = rec.BrokerChanged(fields.number(4), fields.number(8), fenced=False)
    fields.tagged()
    return record


def _controller_registered(fields: Fields, _version: int) -> rec.ControllerRegistered:
    record = rec.ControllerRegistered(fields.number(4), fields.topic_id())
    fields.boolean()  # whether it could move a cluster over from ZooKeeper
    fields.array(_endpoint)
    fields.array(_feature)
    fields.tagged()
    return record


# Everything else.


def _config_set(fields: Fields, _version: int) -> rec.ConfigSet:
    record = rec.ConfigSet(fields.number(1), fields.text(), fields.text(), fields.nullable_text())
    fields.tagged()
    return record


def _feature_level(fields: Fields, _version: int) -> rec.FeatureLevel:
    record = rec.FeatureLevel(fields.text(), fields.number(2))
    fields.tagged()
    return record


def _transaction(kind: str) -> Callable[[Fields, int], rec.TransactionMark]:
    mark = rec.TransactionMark(kind)

    def read(fields: Fields, _version: int) -> rec.TransactionMark:
        fields.tagged(_TRANSACTION_TAGS)
        return mark

    return read


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of record: Kafka's name, the newest version that is known, and how it is read (None: not looked into)."""

    name: str
    newest: int
    read: Callable[[Fields, int], rec.MetadataRecord] | None = None

    @property
    def irrelevant(self) -> rec.Irrelevant:
        return _IRRELEVANT[self.name]


_TRANSACTION_TAGS: dict[int, Callable[[Fields], object]] = {0: Fields.nullable_text}


def _int8(fields: Fields) -> int:
    return fields.number(1)


def _int32(fields: Fields) -> int:
    return fields.number(4)


def _too_early(_fields: Fields) -> object:
    # Kafka refuses it, too ("Tag 8 is not valid for version 0").
    raise UnreadableBatchError("a tagged field that this version does not have")


def _by_version(
    since: Mapping[int, tuple[int, Callable[[Fields], object]]], newest: int
) -> list[dict[int, Callable[[Fields], object]]]:
    """For each version, how its tagged fields are read: tag to (first version, how)."""
    return [
        {tag: read if version >= first else _too_early for tag, (first, read) in since.items()}
        for version in range(newest + 1)
    ]


_nullable = Fields.nullable_numbers
_PARTITION_TAGS = _by_version({0: (0, _int8), 1: (2, _nullable), 2: (2, _nullable)}, 2)
_CHANGE_TAGS = _by_version(
    {
        **dict.fromkeys((0, 2, 3, 4), (0, _nullable)),
        1: (0, _int32),
        5: (0, _int8),
        **dict.fromkeys((6, 7), (2, _nullable)),
        8: (1, Fields.nullable_ids),
    },
    2,
)
_REGISTRATION_TAGS = _by_version({0: (3, Fields.ids), 1: (4, Fields.nullable_ids)}, 4)
_BROKER_TAGS = _by_version({0: (0, _int8), 1: (1, _int8), 2: (2, Fields.ids), 3: (3, Fields.nullable_ids)}, 3)

KINDS: Mapping[int, Kind] = {
    0: Kind("RegisterBrokerRecord", 4, _broker_registered),
    1: Kind("UnregisterBrokerRecord", 0, _broker_unregistered),
    2: Kind("TopicRecord", 0, _topic_made),
    3: Kind("PartitionRecord", 2, _partition_made),
    4: Kind("ConfigRecord", 0, _config_set),
    5: Kind("PartitionChangeRecord", 2, _partition_changed),
    7: Kind("FenceBrokerRecord", 0, _broker_fenced),
    8: Kind("UnfenceBrokerRecord", 0, _broker_unfenced),
    9: Kind("RemoveTopicRecord", 0, _topic_removed),
    10: Kind("DelegationTokenRecord", 0),
    11: Kind("UserScramCredentialRecord", 0),
    12: Kind("FeatureLevelRecord", 0, _feature_level),
    14: Kind("ClientQuotaRecord", 0),
    15: Kind("ProducerIdsRecord", 0),
    17: Kind("BrokerRegistrationChangeRecord", 3, _broker_changed),
    18: Kind("AccessControlEntryRecord", 0),
    19: Kind("RemoveAccessControlEntryRecord", 0),
    20: Kind("NoOpRecord", 0),
    21: Kind("ZkMigrationRecord", 0),
    22: Kind("RemoveUserScramCredentialRecord", 0),
    23: Kind("BeginTransactionRecord", 0, _transaction("begin")),
    24: Kind("EndTransactionRecord", 0, _transaction("end")),
    25: Kind("AbortTransactionRecord", 0, _transaction("abort")),
    26: Kind("RemoveDelegationTokenRecord", 0),
    27: Kind("RegisterControllerRecord", 0, _controller_registered),
    28: Kind("ClearElrRecord", 0, _elr_cleared),
    29: Kind("UnregisterControllerRecord", 0),
}
"""By API key: every kind of record of Kafka 4.0 to 4.4."""

_IRRELEVANT = {kind.name: rec.Irrelevant(kind.name) for kind in KINDS.values() if kind.read is None}
