"""Batches of the metadata log from the bytes of a segment, a checkpoint or an answer to Fetch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kelr.replay.records import MetadataRecord, NotUnderstood, RecordBatch
from kelr.sources.metadata_log.control import decode_control
from kelr.sources.metadata_log.decoding import decode
from kelr.sources.records.batches import BatchHeader, BatchRun, Stop, StopKind
from kelr.sources.records.crc32c import Bytes
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import read_records


@dataclass(slots=True)
class Counts:
    """What was read so far."""

    batches: int = 0
    records: int = 0
    size_bytes: int = 0
    """Bytes of whole batches."""
    not_understood: dict[tuple[int, int], int] = field(default_factory=dict)
    """How often a record of a kind (by API key) and version came that is not understood."""


class BatchReader:
    """The batches in these bytes, decoded: iterate, then ask `stop` and `counts`.

    Nothing is raised: a batch that is torn, does not match its checksum, or cannot be read ends the run, and `stop`
    says where and why. Batches before that are whole and right.

    Args:
        buffer: bytes, memoryview or mmap, from the beginning of a batch on. Nothing of it is kept.
        base: the position of the buffer's first byte, from which `stop.at` counts.
        of_checkpoint: the bytes are those of a checkpoint.
        checkpoint_end: of a checkpoint: see `RecordBatch.checkpoint_end`.
        check_crc: whether checksums are verified.
    """

    def __init__(
        self,
        buffer: Bytes,
        *,
        base: int = 0,
        of_checkpoint: bool = False,
        checkpoint_end: int | None = None,
        check_crc: bool = True,
    ) -> None:
        self._view = memoryview(buffer)
        self._base = base
        self._of_checkpoint = of_checkpoint or checkpoint_end is not None
        self._checkpoint_end = checkpoint_end
        self._check_crc = check_crc
        self.stop: Stop | None = None
        """Where the run ended and why; None as long as it has not."""
        self.counts = Counts()

    def __iter__(self) -> Iterator[RecordBatch]:
        run = BatchRun(self._view, check_crc=self._check_crc)
        for at, header in run:
            try:
                records = self._records(at, header)
            except UnreadableBatchError as error:
                text = f"the batch at offset {header.base_offset} cannot be read: {error}"
                self.stop = Stop(StopKind.UNREADABLE, self._base + at, text)
                return
            self._count(header, records)
            yield RecordBatch(
                base_offset=header.base_offset,
                epoch=_known(header.partition_leader_epoch),
                timestamp_ms=_known(header.max_timestamp_ms),
                records=records,
                of_checkpoint=self._of_checkpoint,
                checkpoint_end=self._checkpoint_end,
            )
        if run.stop is not None:
            self.stop = replace(run.stop, at=self._base + run.stop.at)

    def _records(self, at: int, header: BatchHeader) -> tuple[MetadataRecord, ...]:
        if header.partition_leader_epoch is None or header.max_timestamp_ms is None:
            raise UnreadableBatchError("it carries no leader epoch, or no time")
        if header.count != header.last_offset_delta + 1 or header.count <= 0:
            raise UnreadableBatchError(
                f"it counts {header.count} records and spans {header.last_offset_delta + 1} offsets: nothing is ever "
                "taken out of the metadata log"
            )
        found = read_records(self._view, at, header)
        if header.control:
            return tuple(decode_control(one.key, one.value) for one in found)
        records = []
        for one in found:
            if one.value is None:
                raise UnreadableBatchError(f"the record at offset {one.offset} has no value")
            try:
                records.append(decode(one.value))
            except UnreadableBatchError as error:
                raise UnreadableBatchError(f"the record at offset {one.offset}: {error}") from error
        return tuple(records)

    def _count(self, header: BatchHeader, records: tuple[MetadataRecord, ...]) -> None:
        counts = self.counts
        counts.batches += 1
        counts.records += len(records)
        counts.size_bytes += header.size_bytes
        for record in records:
            if type(record) is NotUnderstood:
                kind = (record.key, record.version)
                counts.not_understood[kind] = counts.not_understood.get(kind, 0) + 1


def read_batches(buffer: Bytes, *, base: int = 0, of_checkpoint: bool = False) -> BatchReader:
    """The batches in these bytes; see `BatchReader`."""
    return BatchReader(buffer, base=base, of_checkpoint=of_checkpoint)


def _known(number: int | None) -> int:
    if number is None:
        raise AssertionError("a batch without it is not read")
    return number
