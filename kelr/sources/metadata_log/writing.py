"""Batches, segments and checkpoints of the metadata log, as bytes; the inverse of `reading`. Nothing is compressed.

Source: `DefaultRecordBatch` and `DefaultRecord`; ControlRecordUtils, and the schemas as for `control`; ImageWriter and
MetadataImage.write for the order of a checkpoint, RecordsSnapshotWriter for its header and footer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any
from uuid import UUID

from kelr.model import METADATA_FEATURE
from kelr.protocol import metadata_records
from kelr.protocol.codec import message_class, uvarint_bytes
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage, TopicOnRecord
from kelr.replay.packed import key_of
from kelr.sources.metadata_log.decoding import ID_SIZE
from kelr.sources.records.crc32c import fastest
from kelr.sources.records.records import ControlType, varint_bytes

# A record of the metadata log to its bytes, as Kafka 4.3 writes it; the inverse of `decoding`.
#
# What kelr's records do not carry is written as Kafka's default: the security protocol of a listener is PLAINTEXT, the
# lowest level of a supported feature 0.
#
# Source: as for `decoding`.

NO_OP_VALUE = b"\x01\x14\x00\x00"
"""The value of a NoOpRecord."""
_CHANGE_HEAD = b"\x01\x05\x02"
_KEPT = 1 << 16


# Partitions by hand, as there are so many: what comes again is kept, and so they take a tenth of the codec's time.


@lru_cache(maxsize=_KEPT)
def _id(text: str) -> bytes:
    raw = key_of(text, 0)[4:]
    if len(raw) != ID_SIZE:
        raise ValueError(f"{text!r} is no id of {ID_SIZE} bytes")
    return raw


@lru_cache(maxsize=_KEPT)
def _key(topic_id: str, partition: int) -> bytes:
    return struct.pack(">i", partition) + _id(topic_id)


@lru_cache(maxsize=_KEPT)
def _numbers(members: tuple[int, ...]) -> bytes:
    return uvarint_bytes(len(members) + 1) + struct.pack(f">{len(members)}i", *members)


@lru_cache(maxsize=_KEPT)
def _ids(ids: tuple[str, ...]) -> bytes:
    return uvarint_bytes(len(ids) + 1) + b"".join(map(_id, ids))


def _tag(number: int, content: bytes) -> bytes:
    return uvarint_bytes(number) + uvarint_bytes(len(content)) + content


@lru_cache(maxsize=_KEPT)
def _tagged_numbers(tag: int, members: tuple[int, ...]) -> bytes:
    return _tag(tag, _numbers(members))


def _tags(*tags: bytes) -> bytes:
    there = [tag for tag in tags if tag]
    return uvarint_bytes(len(there)) + b"".join(there)


# Records.


def encode(record: rec.MetadataRecord) -> bytes:
    """The value of a record that is no control record, as Kafka 4.3 writes it.

    Raises:
        ValueError: it is of a kind whose content kelr does not look into, holds what no record can say, or an id in it
            is none.
    """
    if isinstance(record, rec.PartitionChanged):
        return encode_change(record)
    if isinstance(record, rec.PartitionMade):
        return _partition_made(record)
    fields = _FIELDS.get(type(record))
    if fields is None:
        raise ValueError(f"kelr does not know what is in it: {record}")
    return metadata_records.encode(*fields(record))


def encode_change(record: rec.PartitionChanged) -> bytes:
    """`encode` of a PartitionChangeRecord, for who writes millions of them."""
    tags = []
    if record.isr is not None:
        tags.append(_tagged_numbers(0, record.isr))
    if record.leader is not None:
        tags.append(b"\x01\x04" + struct.pack(">i", record.leader))
    if record.replicas is not None:
        tags.append(_tagged_numbers(2, record.replicas))
    if record.removing is not None:
        tags.append(_tagged_numbers(3, record.removing))
    if record.adding is not None:
        tags.append(_tagged_numbers(4, record.adding))
    if record.recovering is not None:
        tags.append(b"\x05\x01\x01" if record.recovering else b"\x05\x01\x00")
    if record.elr is not None:
        tags.append(_tagged_numbers(6, record.elr))
    if record.last_known_elr is not None:
        tags.append(_tagged_numbers(7, record.last_known_elr))
    if record.directories is not None:
        tags.append(_tag(8, _ids(record.directories)))
    return _CHANGE_HEAD + _key(record.topic_id, record.partition) + bytes((len(tags),)) + b"".join(tags)


def _partition_made(record: rec.PartitionMade) -> bytes:
    oldest = not record.directories and record.elr is None and record.last_known_elr is None
    return b"".join(
        (
            b"\x01\x03\x00" if oldest else b"\x01\x03\x02",
            _key(record.topic_id, record.partition),
            _numbers(record.replicas),
            _numbers(record.isr),
            _numbers(record.removing),
            _numbers(record.adding),
            struct.pack(">3i", record.leader, record.leader_epoch, record.partition_epoch),
            b"" if oldest else _ids(record.directories),
            _tags(
                b"\x00\x01\x01" if record.recovering else b"",
                b"" if record.elr is None else _tagged_numbers(1, record.elr),
                b"" if record.last_known_elr is None else _tagged_numbers(2, record.last_known_elr),
            ),
        )
    )


# All others by the schemas: kind, version and fields of each.

_Fields = tuple[str, int, Mapping[str, Any]]


def _uuid(text: str) -> UUID:
    return UUID(bytes=_id(text))


def _broker_registered(record: rec.BrokerRegistered) -> _Fields:
    features = [{"name": name, "max_supported_version": level} for name, level in record.features.items()]
    fields = {
        "broker_id": record.broker,
        "incarnation_id": _uuid(record.incarnation),
        "broker_epoch": record.epoch,
        "end_points": list(map(_endpoint, record.endpoints)),
        "features": features,
        "rack": record.rack,
        "fenced": record.fenced,
        "in_controlled_shutdown": record.in_controlled_shutdown,
        "log_dirs": list(map(_uuid, record.directories)),
        "cordoned_log_dirs": None if record.cordoned is None else list(map(_uuid, record.cordoned)),
    }
    return "RegisterBrokerRecord", 3 if record.cordoned is None else 4, fields


def _endpoint(endpoint: rec.Endpoint) -> Mapping[str, Any]:
    return {"name": endpoint.name, "host": endpoint.host, "port": endpoint.port}


def _broker_changed(record: rec.BrokerChanged) -> _Fields:
    if record.in_controlled_shutdown is False:
        raise ValueError(f"no record takes a controlled shutdown back: {record}")
    oldest = 2 if record.directories else 1 if record.in_controlled_shutdown else 0
    fields = {
        "broker_id": record.broker,
        "broker_epoch": record.epoch,
        "fenced": 0 if record.fenced is None else 1 if record.fenced else -1,
        "in_controlled_shutdown": int(record.in_controlled_shutdown or 0),
        "log_dirs": list(map(_uuid, record.directories or ())),
        "cordoned_log_dirs": None if record.cordoned is None else list(map(_uuid, record.cordoned)),
    }
    return "BrokerRegistrationChangeRecord", oldest if record.cordoned is None else 3, fields


def _config_set(record: rec.ConfigSet) -> _Fields:
    where = {"resource_type": record.resource_type, "resource_name": record.resource}
    return "ConfigRecord", 0, {**where, "name": record.key, "value": record.value}


def _irrelevant(record: rec.Irrelevant) -> _Fields:
    if record.kind != "NoOpRecord":
        raise ValueError(f"kelr does not know what is in it: {record}")
    return record.kind, 0, {}


_FIELDS: Mapping[type, Callable[[Any], _Fields]] = {
    rec.TopicMade: lambda one: ("TopicRecord", 0, {"name": one.name, "topic_id": _uuid(one.topic_id)}),
    rec.TopicRemoved: lambda one: ("RemoveTopicRecord", 0, {"topic_id": _uuid(one.topic_id)}),
    rec.ElrCleared: lambda one: ("ClearElrRecord", 0, {"topic_name": one.topic or ""}),
    rec.BrokerRegistered: _broker_registered,
    rec.BrokerUnregistered: lambda one: (
        "UnregisterBrokerRecord",
        0,
        {"broker_id": one.broker, "broker_epoch": one.epoch},
    ),
    rec.BrokerChanged: _broker_changed,
    rec.ControllerRegistered: lambda one: (
        "RegisterControllerRecord",
        0,
        {
            "controller_id": one.controller,
            "incarnation_id": _uuid(one.incarnation),
            "end_points": list(map(_endpoint, one.endpoints)),
        },
    ),
    rec.ConfigSet: _config_set,
    rec.FeatureLevel: lambda one: ("FeatureLevelRecord", 0, {"name": one.name, "feature_level": one.level}),
    rec.TransactionMark: lambda one: (f"{one.kind.capitalize()}TransactionRecord", 0, {}),
    rec.Irrelevant: _irrelevant,
}


__all__ = [
    "NO_OP_VALUE",
    "checkpoint_bytes",
    "checkpoint_name",
    "checkpoint_records",
    "encode",
    "encode_batch",
    "encode_change",
    "encode_values",
    "segment_name",
    "segments",
]

MOST_RECORDS = 1000
"""Of one batch of a checkpoint; the reader is fastest with batches up to about this size."""
SEGMENT_BYTES = 1 << 30
"""Kafka's metadata.log.segment.bytes."""
_MAGIC, _NONE = 2, -1
_CONTROL = 0x20
_PLACE = struct.Struct(">qii")
_AFTER_CRC = struct.Struct(">hiqqqhii")
_CHECKSUM = struct.Struct(">bI")
_FROM_LENGTH_TO_CRC = 9
"""Bytes that a batch's length counts beside those that its checksum covers: epoch, magic, checksum."""
_KIND = struct.Struct(">hh")


_SMALL = tuple(varint_bytes(number) for number in range(1 << 13))
"""Sizes and places, as nearly all are."""


def _control(record: rec.MetadataRecord) -> tuple[ControlType, bytes] | None:
    """Type and value of a control record; None for any other."""
    if isinstance(record, rec.LeaderChanged):
        voters = [{"voter_id": voter} for voter in record.voters]
        change = message_class("LeaderChangeMessage")(
            version=0, leader_id=record.controller, voters=voters, granting_voters=voters
        )
        return ControlType.LEADER_CHANGE, change.encode()
    if isinstance(record, rec.SnapshotBegins):
        return ControlType.SNAPSHOT_HEADER, struct.pack(">hq", 0, record.last_contained_ms) + b"\0"
    if isinstance(record, rec.SnapshotEnds):
        return ControlType.SNAPSHOT_FOOTER, struct.pack(">h", 0) + b"\0"
    if isinstance(record, rec.KRaftVersion):
        level = message_class("KRaftVersionRecord")(version=0, k_raft_version=record.level)
        return ControlType.KRAFT_VERSION, level.encode()
    if isinstance(record, rec.Voters):
        voting = message_class("VotersRecord")(version=0, voters=list(map(_voter, record.voters)))
        return ControlType.KRAFT_VOTERS, voting.encode()
    return None


def _voter(voter: rec.Voter) -> Mapping[str, Any]:
    return {
        "voter_id": voter.node,
        "voter_directory_id": _uuid(voter.directory_id),
        "endpoints": list(map(_endpoint, voter.endpoints)),
        "k_raft_version_feature": {
            "min_supported_version": voter.min_version,
            "max_supported_version": voter.max_version,
        },
    }


# Batches.


def encode_batch(base_offset: int, epoch: int, timestamp_ms: int, records: Sequence[rec.MetadataRecord]) -> bytes:
    """One batch. Control records (those that `decode_control` reads) are never in one with others.

    Raises:
        ValueError: there are none, they do not go together, or one of them cannot be written (see `encode`).
    """
    controls = [found for found in map(_control, records) if found is not None]
    if not controls:
        return encode_values(base_offset, epoch, timestamp_ms, list(map(encode, records)))
    if len(controls) != len(records):
        raise ValueError("control records are in batches of their own")
    body = b"".join(_with_key(place, *found) for place, found in enumerate(controls))
    return _sealed(base_offset, epoch, timestamp_ms, len(records), body, attributes=_CONTROL)


def encode_values(base_offset: int, epoch: int, timestamp_ms: int, values: Sequence[bytes]) -> bytes:
    """One batch of values that `encode` has made; for who keeps values that come again and again.

    Raises:
        ValueError: there are none.
    """
    if not values:
        raise ValueError("a batch without records")
    pieces: list[bytes] = []
    small, many = _SMALL, len(_SMALL)
    for place, value in enumerate(values):
        size = len(value)
        head = b"\0\0" + (small[place] if place < many else varint_bytes(place)) + b"\x01"
        head += small[size] if size < many else varint_bytes(size)
        whole = len(head) + size + 1
        pieces += (small[whole] if whole < many else varint_bytes(whole), head, value, b"\0")
    return _sealed(base_offset, epoch, timestamp_ms, len(values), b"".join(pieces))


def _with_key(place: int, kind: ControlType, value: bytes) -> bytes:
    key = _KIND.pack(0, kind)
    inner = b"\0\0" + varint_bytes(place) + varint_bytes(len(key)) + key + varint_bytes(len(value)) + value + b"\0"
    return varint_bytes(len(inner)) + inner


def _sealed(base_offset: int, epoch: int, timestamp_ms: int, count: int, body: bytes, *, attributes: int = 0) -> bytes:
    covered = _AFTER_CRC.pack(attributes, count - 1, timestamp_ms, timestamp_ms, _NONE, _NONE, _NONE, count) + body
    place = _PLACE.pack(base_offset, len(covered) + _FROM_LENGTH_TO_CRC, epoch)
    return place + _CHECKSUM.pack(_MAGIC, fastest()(covered)) + covered


# Segments.


def segment_name(base_offset: int) -> str:
    """The file name of the segment that begins at this offset."""
    return f"{base_offset:020}.log"


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """The file name of the checkpoint of all that is before this offset, whose last record is of this epoch."""
    return f"{end_offset:020}-{epoch:010}.checkpoint"


def segments(batches: Iterable[bytes], segment_bytes: int = SEGMENT_BYTES) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the segments of these batches: the next one begins before a batch that does not fit."""
    held: list[bytes] = []
    size = 0
    for batch in batches:
        if held and size + len(batch) > segment_bytes:
            yield _segment(held)
            held, size = [], 0
        held.append(batch)
        size += len(batch)
    if held:
        yield _segment(held)


def _segment(batches: Sequence[bytes]) -> tuple[str, bytes]:
    return segment_name(_PLACE.unpack_from(batches[0])[0]), b"".join(batches)


# Checkpoints.


def checkpoint_bytes(
    image: MetadataImage, *, contained_ms: int, epoch: int | None = None, written_ms: int | None = None
) -> Iterator[bytes]:
    """The batches of a checkpoint of an image, one after the other, as Kafka writes one: from its header to its footer.

    A checkpoint carries features, brokers as they are now, topics, partitions with their log directories, and configs.
    It cannot carry when a broker registered, nor who leads the quorum and who votes in it; and an image knows of
    neither controllers' registrations nor quotas, ACLs, credentials and producer ids, so that none are written.

    Args:
        contained_ms: when the last record that the image contains was appended.
        epoch: of the last record that the image contains; by default what the image has.
        written_ms: when the checkpoint is written; by default `contained_ms`.

    Raises:
        ValueError: a transaction is open in the image: Kafka writes no checkpoint then.
    """
    if image.in_transaction:
        raise ValueError("there is no checkpoint inside of a transaction")
    if epoch is None:
        epoch = 0 if image.at is None else image.at.epoch
    now_ms = contained_ms if written_ms is None else written_ms
    yield encode_batch(0, epoch, now_ms, [rec.SnapshotBegins(contained_ms)])
    offset, content = 1, checkpoint_records(image)
    while piece := list(islice(content, MOST_RECORDS)):
        yield encode_batch(offset, epoch, now_ms, piece)
        offset += len(piece)
    yield encode_batch(offset, epoch, now_ms, [rec.SnapshotEnds()])


def checkpoint_records(image: MetadataImage) -> Iterator[rec.MetadataRecord]:
    """What is between header and footer of a checkpoint: records that make this image of an empty one."""
    levels = sorted(image.features.items(), key=lambda feature: (feature[0] != METADATA_FEATURE, feature[0]))
    yield from (rec.FeatureLevel(name, level) for name, level in levels)
    for broker in sorted(image.brokers):
        known = image.brokers[broker]
        yield replace(
            known.registration,
            fenced=known.fenced,
            in_controlled_shutdown=known.in_controlled_shutdown,
            directories=known.directories,
        )
    for topic in image.topics.values():
        yield rec.TopicMade(topic.name, topic.topic_id)
        yield from _partitions(topic)
    for (kind, resource), values in image.configs.items():
        yield from (rec.ConfigSet(kind, resource, key, value) for key, value in values.items())


def _partitions(topic: TopicOnRecord) -> Iterator[rec.PartitionMade]:
    for number, state in sorted(topic.partitions.items()):
        yield rec.partition_made(state, topic.topic_id, topic.directories.get(number, ()))
