"""Checkpoints: whether one is whole, and its batches; and reading a piece in windows, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from kelr.errors import BadInputError
from kelr.replay.records import RecordBatch, SnapshotBegins, SnapshotEnds
from kelr.sources.metadata_log.pieces import Checkpoint, Holder
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.records.batches import BatchRun, Stop, StopKind, empty_space, read_header, torn

WINDOW_BYTES = 2 * 1024 * 1024
_UNFINISHED = frozenset({StopKind.TORN, StopKind.EMPTY_SPACE})
"""What the end of a window looks like, too."""


class Windows:
    """The batches of a piece, read a window at a time: iterate, then ask `stop`, whose position is in the piece.

    Args:
        read: told of bytes as they are read.
        merge_idle: see `BatchReader`.

    Raises:
        OSError: while iterating: the bytes cannot be read.
    """

    def __init__(
        self,
        content: Holder,
        read: Callable[[int], None],
        *,
        checkpoint_end: int | None = None,
        merge_idle: bool = False,
    ) -> None:
        self._content, self._read, self._checkpoint_end = content, read, checkpoint_end
        self._merge_idle = merge_idle
        self.stop: Stop | None = None

    def __iter__(self) -> Iterator[RecordBatch]:
        at, window, size = 0, WINDOW_BYTES, self._content.size_bytes
        while True:
            data = self._content.read(at, window)
            reader = BatchReader(data, base=at, checkpoint_end=self._checkpoint_end, merge_idle=self._merge_idle)
            yield from reader
            stop = reader.stop
            assert stop is not None
            read, at = stop.at - at, stop.at
            self._read(read)
            if len(data) < window or stop.kind not in {*_UNFINISHED, StopKind.END} or at >= size:
                self.stop = stop
                return
            window = WINDOW_BYTES
            if not read:
                found = _larger(data, stop, size - at)
                if isinstance(found, Stop):
                    self.stop = found
                    return
                window = found


def _larger(data: bytes, stop: Stop, left: int) -> int | Stop:
    """How many bytes have to be looked at where the first batch of these does not end in them; or why there is none,
    where what is left cannot hold it: neither a length that was garbled nor space that was set aside is read.
    """
    if stop.kind is StopKind.EMPTY_SPACE:
        return empty_space(stop.at, left)
    header = read_header(data)
    if header is None:
        return 2 * len(data)
    return header.size_bytes if header.size_bytes <= left else torn(header, stop.at, left)


def is_whole(checkpoint: Checkpoint) -> str | None:
    """Why the checkpoint cannot be used, in words; None where it is whole: all checksums match, and it has its footer.

    Source: RecordsSnapshotReader, RecordsSnapshotWriter.
    """
    content = checkpoint.bytes
    at, window, size = 0, WINDOW_BYTES, content.size_bytes
    first = last = b""
    try:
        while at < size:
            data = content.read(at, window)
            run = BatchRun(data)
            for start, header in run:
                last = data[start : start + header.size_bytes]
                first = first or last
            stop = run.stop
            assert stop is not None
            if stop.kind is not StopKind.END and (stop.kind not in _UNFINISHED or len(data) < window):
                return f"at byte {at + stop.at}: {stop.text}"
            window = WINDOW_BYTES if stop.at else window * 2
            at += stop.at
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    if not _has(first, 0, SnapshotBegins):
        return "it does not begin with the header of a checkpoint"
    if not _has(last, -1, SnapshotEnds):
        return "it has no footer, so that it is not complete"
    return None


def _has(batch: bytes, place: int, kind: type) -> bool:
    records = [record for one in BatchReader(batch, of_checkpoint=True) for record in one.records]
    return bool(records) and isinstance(records[place], kind)


def checkpoint_batches(checkpoint: Checkpoint, read: Callable[[int], None]) -> Iterator[RecordBatch]:
    """The batches of a whole checkpoint; each carries the time of the last record that the checkpoint contains.

    Raises:
        BadInputError: it cannot be read, for all that its checksums match.
    """
    windows = Windows(checkpoint.bytes, read, checkpoint_end=checkpoint.end_offset)
    contained_ms: int | None = None
    try:
        for batch in windows:
            if contained_ms is None and isinstance(batch.records[0], SnapshotBegins):
                contained_ms = batch.records[0].last_contained_ms
            yield batch if contained_ms is None else replace(batch, timestamp_ms=contained_ms)
    except OSError as error:
        raise BadInputError(f"{checkpoint.name} cannot be read: {error.strerror or error}") from error
    if windows.stop is not None and windows.stop.kind is not StopKind.END:
        raise BadInputError(
            f"{checkpoint.name} at byte {windows.stop.at}: {windows.stop.text}", next_step="give an older checkpoint"
        )
