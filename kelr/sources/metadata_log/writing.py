"""Batches, segments and checkpoints of the metadata log, as bytes; the inverse of `reading`. Nothing is compressed.

Source: `DefaultRecordBatch` and `DefaultRecord`; ControlRecordUtils, and the schemas as for `control`; ImageWriter and
MetadataImage.write for the order of a checkpoint, RecordsSnapshotWriter for its header and footer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from kelr.model import METADATA_FEATURE
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage, TopicOnRecord
from kelr.sources.metadata_log.encoding import NO_OP_VALUE, encode, encode_change, unsigned
from kelr.sources.records.crc32c import fastest
from kelr.sources.records.records import ControlType

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


def _zigzag(number: int) -> bytes:
    """A varint in zigzag code of a number that is not negative."""
    return unsigned(number << 1)


_SMALL = tuple(_zigzag(number) for number in range(1 << 13))
"""Sizes and places, as nearly all are."""


def _control(record: rec.MetadataRecord) -> tuple[ControlType, bytes] | None:
    """Type and value of a control record; None for any other."""
    if isinstance(record, rec.LeaderChanged):
        voters = unsigned(len(record.voters) + 1)
        voters += b"".join(struct.pack(">i", voter) + b"\0" for voter in record.voters)
        return ControlType.LEADER_CHANGE, struct.pack(">hi", 0, record.controller) + voters + voters + b"\0"
    if isinstance(record, rec.SnapshotBegins):
        return ControlType.SNAPSHOT_HEADER, struct.pack(">hq", 0, record.last_contained_ms) + b"\0"
    if isinstance(record, rec.SnapshotEnds):
        return ControlType.SNAPSHOT_FOOTER, struct.pack(">h", 0) + b"\0"
    return None


# Batches.


def encode_batch(base_offset: int, epoch: int, timestamp_ms: int, records: Sequence[rec.MetadataRecord]) -> bytes:
    """One batch. Control records (`LeaderChanged`, `SnapshotBegins`, `SnapshotEnds`) are never in one with others.

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
        head = b"\0\0" + (small[place] if place < many else _zigzag(place)) + b"\x01"
        head += small[size] if size < many else _zigzag(size)
        whole = len(head) + size + 1
        pieces += (small[whole] if whole < many else _zigzag(whole), head, value, b"\0")
    return _sealed(base_offset, epoch, timestamp_ms, len(values), b"".join(pieces))


def _with_key(place: int, kind: ControlType, value: bytes) -> bytes:
    key = _KIND.pack(0, kind)
    inner = b"\0\0" + _zigzag(place) + _zigzag(len(key)) + key + _zigzag(len(value)) + value + b"\0"
    return _zigzag(len(inner)) + inner


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
    for number in sorted(topic.partitions):
        state = topic.partitions[number]
        yield rec.PartitionMade(
            topic_id=topic.topic_id,
            partition=number,
            leader=rec.NO_LEADER if state.leader is None else state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch or 0,
            replicas=state.replicas,
            isr=state.isr,
            adding=state.adding or (),
            removing=state.removing or (),
            elr=state.elr or None,
            last_known_elr=state.last_known_elr or None,
            recovering=bool(state.recovering),
            directories=topic.directories.get(number, ()),
        )
