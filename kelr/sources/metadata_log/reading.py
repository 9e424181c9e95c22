"""Batches of the metadata log from the bytes of a segment, a checkpoint or an answer to Fetch."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kelr.replay import records as rec
from kelr.replay.records import MetadataRecord, NotUnderstood, RecordBatch
from kelr.sources.metadata_log.decoding import decode
from kelr.sources.metadata_log.fields import Fields
from kelr.sources.metadata_log.runs import idle_batches, packed_batch, plain_values
from kelr.sources.records.batches import BatchHeader, BatchRun, Stop, StopKind
from kelr.sources.records.crc32c import Bytes
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import ControlType, contents, records_in

# Control records of the metadata log: who leads the quorum, and where a checkpoint begins and ends.
#
# Source: ControlRecordType, ControlRecordUtils, and the schemas in kafka-clients
# (``common/message/LeaderChangeMessage``, ``SnapshotHeaderRecord``, ``SnapshotFooterRecord``, ``KRaftVersionRecord``,
# ``VotersRecord``).

_KEY = struct.Struct(">hh")
_NEWEST_LEADER_CHANGE = 1
_NAMES = {
    ControlType.ABORT: "EndTxnMarker",
    ControlType.COMMIT: "EndTxnMarker",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
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
        return _leader_changed(Fields(value))
    if number == ControlType.SNAPSHOT_HEADER:
        fields = Fields(value)
        fields.number(2)
        return rec.SnapshotBegins(fields.number(8))
    if number == ControlType.SNAPSHOT_FOOTER:
        return rec.SnapshotEnds()
    if number in _NAMES:
        return rec.Irrelevant(_NAMES[ControlType(number)])
    return rec.Irrelevant(f"control record of type {number}")


def _leader_changed(fields: Fields) -> rec.LeaderChanged:
    version, controller = fields.number(2), fields.number(4)
    if version > _NEWEST_LEADER_CHANGE:
        # Where the leader stands cannot move, whatever a newer version adds behind it.
        return rec.LeaderChanged(controller, ())

    def voter(inner: Fields) -> int:
        number = inner.number(4)
        if version >= 1:
            inner.topic_id()
        inner.tagged()
        return number

    voters = tuple(fields.array(voter))
    fields.array(voter)  # those that granted their vote
    fields.tagged()
    fields.finish()
    return rec.LeaderChanged(controller, voters)


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
