"""Batches of the metadata log from the bytes of a segment, a checkpoint or an answer to Fetch."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kelr.protocol.codec import MalformedError, message_class
from kelr.replay import records as rec
from kelr.replay.packed import IdleRun, PackedChanges, Told
from kelr.replay.records import MetadataRecord, NotUnderstood, RecordBatch
from kelr.sources.metadata_log.decoding import decode, text_of_id, told_of_change
from kelr.sources.records.batches import HEADER, HEADER_SIZE, MAGIC, PREFIX_SIZE, BatchHeader, BatchRun, Stop, StopKind
from kelr.sources.records.crc32c import Bytes, fastest
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import ControlType, contents, records_in, varint_bytes

# Records of one shape, many at once: what the bulk of every metadata log is, found by compiled expressions.
#
# Two shapes: batches of PartitionChangeRecords that are not compressed and tell of nothing but leaders, ISR, ELR,
# LastKnownElr and recovery; and batches of one NoOpRecord, two in a second. What does not fit exactly is read record by
# record: the bytes before the fields are compared with those that a record of this place and size must have,
# and the fields themselves are decoded as all others are, once for each different content.
#
# Source: `DefaultRecordBatch` and `DefaultRecord` (varints in zigzag code), PartitionChangeRecord.json,
# NoOpRecord.json.


VERSION = 2
"""Of PartitionChangeRecord, which Kafka writes since metadata.version 4.0-IV1; older ones are read one by one."""
_KEY_SIZE = 20
_MOST_KEPT = 1 << 17
_MOST_IDLE = 4096
_MOST_RECORDS = 1024
"""Larger batches are read one by one."""
CRC_FROM = 21
"""From here on the checksum covers a batch."""


# A varint of one or two bytes; Kafka writes no longer ones in these places of records this small.
_VARINT = rb"[\x80-\xff]?[\x00-\x7f]"
_LISTS = b"|".join(
    [rb"\x09\x03.{8}", rb"\x0d\x04.{12}", rb"\x01\x01", rb"\x05\x02.{4}", rb"\x11\x05.{16}", rb"\x15\x06.{20}"]
)
_FIELD = rb"(?:[\x00\x06\x07](?:" + _LISTS + rb")|\x01\x04.{4}|\x05\x01.)"
_FIELDS = b"|".join(bytes((92, 120)) + b"%02x" % count + _FIELD * count for count in range(1, 6))
_CHANGES = re.compile(
    rb"(" + _VARINT + rb"\x00\x00" + _VARINT + rb"\x01" + _VARINT + rb"\x01\x05\x02)"
    rb"(.{20})"
    rb"(" + _FIELDS + rb")\x00",
    re.DOTALL,
)
"""One record: what comes before its fields, the partition, and the tagged fields."""

IDLE = re.compile(
    # Length, epoch, magic, checksum; attributes, last offset delta, the time twice; no producer; one record.
    rb"(?:.{8}\x00\x00\x00\x3c.{4}\x02.{4}\x00\x00\x00\x00\x00\x00.{16}\xff{14}\x00\x00\x00\x01"
    rb"\x14\x00\x00\x00\x01\x08\x01\x14\x00\x00\x00){1,%d}" % _MOST_IDLE,
    re.DOTALL,
)
"""Consecutive batches of one NoOpRecord each."""
_IDLE_BATCH = struct.Struct(">q4xixI6xqq29x")
IDLE_SIZE = _IDLE_BATCH.size
"""Bytes of a batch of one NoOpRecord."""


class _Heads(dict[int, list[bytes]]):
    """What stands before the fields of a record, by the size of its tagged fields: for each place in the batch."""

    def __missing__(self, size: int) -> list[bytes]:
        made = [_head(place, size) for place in range(_MOST_RECORDS)]
        self[size] = made
        return made


def _head(place: int, size: int) -> bytes:
    value_size = 3 + _KEY_SIZE + size
    behind = b"\0\0" + varint_bytes(place) + b"\x01" + varint_bytes(value_size)
    return varint_bytes(len(behind) + value_size + 1) + behind + b"\x01\x05" + bytes((VERSION,))


class _Told(dict[bytes, Told]):
    """What tagged fields tell, by their bytes. Raises UnreadableBatchError."""

    def __missing__(self, data: bytes) -> Told:
        told = told_of_change(data, VERSION)
        if len(self) >= _MOST_KEPT:
            self.clear()
        self[data] = told
        return told


_heads, _told = _Heads(), _Told()
told_of: Callable[[bytes], Told] = _told.__getitem__
"""What the tagged fields of a change tell, by their bytes. Raises UnreadableBatchError."""
_between = [b"\0\0" + varint_bytes(place) + b"\x01" for place in range(_MOST_RECORDS)]
"""What stands between the sizes of a record and of its value, for each place in the batch."""


def packed_batch(view: memoryview, at: int) -> tuple[RecordBatch, int] | None:
    """The batch at this position and where it ends, if all its records are changes of the shape above.

    Its checksum is verified. None says nothing of the batch but that it is to be read another way.
    """
    if len(view) - at < HEADER_SIZE:
        return None
    offset, length, epoch, magic, crc, attributes, delta, _, time_ms, _, _, _, count = HEADER.unpack_from(view, at)
    end = at + PREFIX_SIZE + length
    if magic != MAGIC or attributes or count != delta + 1 or count > _MOST_RECORDS:
        return None
    if epoch < 0 or time_ms < 0 or end > len(view):
        return None
    first = at + HEADER_SIZE
    if _CHANGES.match(view, first, end) is None:
        return None
    found = _CHANGES.findall(view, first, end)
    if len(found) != count:
        return None
    heads, keys, fields = zip(*found, strict=True)
    sizes = list(map(len, fields))
    if sum(map(len, heads)) + sum(sizes) + (_KEY_SIZE + 1) * count != end - first:
        return None  # something stands between them
    if sizes.count(sizes[0]) == count:
        expected = _heads[sizes[0]][:count]
    else:
        expected = [_heads[size][place] for place, size in enumerate(sizes)]
    if list(heads) != expected:
        return None
    if fastest()(view[at + CRC_FROM : end]) != crc:
        return None
    try:
        told = list(map(_told.__getitem__, fields))
    except UnreadableBatchError:
        return None
    return RecordBatch(offset, epoch, time_ms, PackedChanges(keys, told)), end


def plain_values(data: bytes, count: int) -> list[bytes] | None:
    """The values of a batch's records, where these have nothing else: no key, no headers, the time of the batch, and
    sizes of at most two bytes; None for any others."""
    values: list[bytes] = []
    at, end = 0, len(data)
    if count > _MOST_RECORDS:
        return None
    for place in range(count):
        between = _between[place]
        start = at + 1 if data[at : at + 1] < b"\x80" else at + 2
        size_at = start + len(between)
        value_at = size_at + 1 if data[size_at : size_at + 1] < b"\x80" else size_at + 2
        size, value_size = _small(data[at:start]), _small(data[size_at:value_at])
        at = value_at + value_size + 1
        if data[start:size_at] != between or size < 0 or value_size < 0 or at != start + size or at > end:
            return None
        if data[at - 1]:
            return None
        values.append(data[value_at : at - 1])
    return values if at == end else None


def _small(varint: bytes) -> int:
    """The number in a varint of one or two bytes; below 0 where there is none, or an odd one."""
    if len(varint) == 1:
        return -1 if varint[0] & 1 else varint[0] >> 1
    if len(varint) != 2 or varint[1] > 0x7F or varint[0] & 1:
        return -1
    return (varint[0] & 0x7F | varint[1] << 7) >> 1


def idle_batches(data: Bytes, view: memoryview, at: int) -> tuple[RecordBatch, int] | None:
    """The NoOpRecords from this position on as one batch, and where they end; None where there are none.

    Their checksums are verified, and offsets follow each other, in one epoch.
    """
    run = IDLE.match(data, at)
    if run is None:
        return None
    checksum, end = fastest(), run.end()
    first_offset, first_epoch, *_ = _IDLE_BATCH.unpack_from(view, at)
    times: list[int] = []
    place = at
    for offset, epoch, crc, base_ms, time_ms in _IDLE_BATCH.iter_unpack(view[at:end]):
        if (
            offset != first_offset + len(times)
            or epoch != first_epoch
            or base_ms != time_ms
            or checksum(view[place + CRC_FROM : place + IDLE_SIZE]) != crc
        ):
            break
        times.append(time_ms)
        place += IDLE_SIZE
    if not times or first_epoch < 0 or min(times) < 0:
        return None
    return RecordBatch(first_offset, first_epoch, times[-1], IdleRun(times)), place


# Control records of the metadata log: who leads the quorum, who votes, and where a checkpoint begins and ends.
#
# Source: ControlRecordType, ControlRecordUtils, and the schemas in kafka-clients
# (``common/message/LeaderChangeMessage``, ``SnapshotHeaderRecord``, ``SnapshotFooterRecord``, ``KRaftVersionRecord``,
# ``VotersRecord``).

_KEY = struct.Struct(">hh")
_VERSION, _LEADER, _HEADER_OF_SNAPSHOT = struct.Struct(">h"), struct.Struct(">hi"), struct.Struct(">hq")
"""A control record's version; that and who leads; that and the time of the last record that a checkpoint contains."""
_NAMES = {
    ControlType.ABORT: "EndTxnMarker",
    ControlType.COMMIT: "EndTxnMarker",
}


def decode_control(key: bytes | None, value: bytes | None) -> rec.MetadataRecord:
    """What a control record says; each begins with its own version.

    Raises:
        UnreadableBatchError: it does not hold what its kind says.
    """
    if key is None or len(key) < _KEY.size or value is None:
        raise UnreadableBatchError("a control record without a key that names its kind, or without a value")
    _, number = _KEY.unpack_from(key)
    if number == ControlType.LEADER_CHANGE:
        return _leader_changed(value)
    if number == ControlType.SNAPSHOT_HEADER:
        return rec.SnapshotBegins(_begins(_HEADER_OF_SNAPSHOT, value)[1])
    if number == ControlType.SNAPSHOT_FOOTER:
        return rec.SnapshotEnds()
    if number == ControlType.KRAFT_VERSION:
        level = _by_schema("KRaftVersionRecord", value)
        return level if isinstance(level, rec.Irrelevant) else rec.KRaftVersion(level.k_raft_version)
    if number == ControlType.KRAFT_VOTERS:
        voters = _by_schema("VotersRecord", value)
        return voters if isinstance(voters, rec.Irrelevant) else rec.Voters(tuple(map(_voter, voters.voters)))
    if number in _NAMES:
        return rec.Irrelevant(_NAMES[ControlType(number)])
    return rec.Irrelevant(f"control record of type {number}")


def _begins(shape: struct.Struct, value: bytes) -> tuple[int, ...]:
    """What stands at the beginning of a control record, in every version."""
    if len(value) < shape.size:
        raise UnreadableBatchError(f"{shape.size} bytes are asked for, and {len(value)} are left")
    return shape.unpack_from(value)


def _leader_changed(value: bytes) -> rec.LeaderChanged:
    _, controller = _begins(_LEADER, value)
    found = _by_schema("LeaderChangeMessage", value)
    voters = () if isinstance(found, rec.Irrelevant) else tuple(one.voter_id for one in found.voters)
    return rec.LeaderChanged(controller, voters)


def _by_schema(name: str, value: bytes) -> Any:
    """The record that Kafka's schema of this name makes of the bytes; of a newer version only that there is one."""
    kind = message_class(name)
    (version,) = _begins(_VERSION, value)
    if not 0 <= version <= kind.newest():
        return rec.Irrelevant(f"{name} of version {version}")
    try:
        return kind.decode(value, version)
    except MalformedError as error:
        raise UnreadableBatchError(f"{name} of version {version}: {error}") from error


def _voter(voter: Any) -> rec.Voter:
    supported = voter.k_raft_version_feature
    return rec.Voter(
        node=voter.voter_id,
        directory_id=text_of_id(voter.voter_directory_id),
        endpoints=tuple(rec.Endpoint(one.name, one.host, one.port) for one in voter.endpoints),
        min_version=supported.min_supported_version,
        max_version=supported.max_supported_version,
    )


@dataclass(slots=True)
class Counts:
    """What was read so far."""

    batches: int = 0
    """A run of NoOpRecords that was merged counts once."""
    records: int = 0
    size_bytes: int = 0
    """Bytes of whole batches."""
    not_understood: dict[tuple[int, int], int] = field(default_factory=dict)
    """How often a record of a kind (by API key) and version came that is not understood."""

    def add(self, batch: RecordBatch, size_bytes: int) -> None:
        self.batches += 1
        self.records += len(batch.records)
        self.size_bytes += size_bytes
        if type(batch.records) is tuple:
            for record in batch.records:
                if type(record) is NotUnderstood:
                    kind = (record.key, record.version)
                    self.not_understood[kind] = self.not_understood.get(kind, 0) + 1


class BatchReader:
    """The batches in these bytes, decoded: iterate, then ask `stop` and `counts`.

    Nothing is raised: a batch that is torn, does not match its checksum, or cannot be read ends the run, and `stop`
    says where and why. Batches before that are whole and right.

    Args:
        buffer: bytes, memoryview or mmap, from the beginning of a batch on. Nothing of it is kept.
        base: the position of the buffer's first byte, from which `stop.at` counts.
        of_checkpoint: the bytes are those of a checkpoint.
        checkpoint_end: of a checkpoint: see `RecordBatch.checkpoint_end`.
        merge_idle: give NoOpRecords of consecutive batches as one batch (`IdleRun`).
    """

    def __init__(
        self,
        buffer: Bytes,
        *,
        base: int = 0,
        of_checkpoint: bool = False,
        checkpoint_end: int | None = None,
        merge_idle: bool = False,
    ) -> None:
        self._data, self._view = buffer, memoryview(buffer)
        self._base = base
        self._of_checkpoint = of_checkpoint or checkpoint_end is not None
        self._checkpoint_end = checkpoint_end
        self._merge_idle = merge_idle
        self.stop: Stop | None = None
        """Where the run ended and why; None as long as it has not."""
        self.counts = Counts()

    def __iter__(self) -> Iterator[RecordBatch]:
        at = 0
        while self.stop is None:
            found = self._many(at) or self._one(at)
            if isinstance(found, Stop):
                self.stop = found
                return
            batch, end = found
            self.counts.add(batch, end - at)
            at = end
            yield batch

    def _many(self, at: int) -> tuple[RecordBatch, int] | None:
        """What is read many records at once."""
        if self._of_checkpoint:
            return None
        if self._merge_idle:
            idle = idle_batches(self._data, self._view, at)
            if idle is not None:
                return idle
        return packed_batch(self._view, at)

    def _one(self, at: int) -> tuple[RecordBatch, int] | Stop:
        """The batch at this position, read record by record, and where it ends."""
        run = BatchRun(self._view, at)
        for _, header in run:
            try:
                return self._batch(at, header), at + header.size_bytes
            except UnreadableBatchError as error:
                text = f"the batch at offset {header.base_offset} cannot be read: {error}"
                return Stop(StopKind.UNREADABLE, self._base + at, text)
        if run.stop is None:
            raise AssertionError("a run without batches has no end")
        return replace(run.stop, at=self._base + run.stop.at)

    def _batch(self, at: int, header: BatchHeader) -> RecordBatch:
        return RecordBatch(
            base_offset=header.base_offset,
            epoch=_known(header.partition_leader_epoch, "leader epoch"),
            timestamp_ms=_known(header.max_timestamp_ms, "time"),
            records=self._records(at, header),
            of_checkpoint=self._of_checkpoint,
            checkpoint_end=self._checkpoint_end,
        )

    def _records(self, at: int, header: BatchHeader) -> tuple[MetadataRecord, ...]:
        if header.count != header.last_offset_delta + 1 or header.count <= 0:
            raise UnreadableBatchError(
                f"it counts {header.count} records and spans {header.last_offset_delta + 1} offsets: nothing is ever "
                "taken out of the metadata log"
            )
        inside = contents(self._view, at, header)
        if header.control:
            return tuple(decode_control(one.key, one.value) for one in records_in(inside, header))
        values: Sequence[bytes | None] | None = plain_values(bytes(inside), header.count)
        if values is None:
            values = [one.value for one in records_in(inside, header)]
        records = []
        for offset, value in enumerate(values, header.base_offset):
            if value is None:
                raise UnreadableBatchError(f"the record at offset {offset} has no value")
            try:
                records.append(decode(value))
            except UnreadableBatchError as error:
                raise UnreadableBatchError(f"the record at offset {offset}: {error}") from error
        return tuple(records)


def read_batches(buffer: Bytes, *, base: int = 0, of_checkpoint: bool = False) -> BatchReader:
    """The batches in these bytes; see `BatchReader`."""
    return BatchReader(buffer, base=base, of_checkpoint=of_checkpoint)


def _known(number: int | None, what: str) -> int:
    if number is None:
        raise UnreadableBatchError(f"it carries no {what}")
    return number
