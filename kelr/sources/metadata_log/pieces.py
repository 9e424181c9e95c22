"""The pieces of which a metadata log is made: segments and checkpoints, wherever their bytes lie.

Source: `LogFileUtils` (``<base offset>.log``) and `Snapshots` (``<end offset>-<epoch>.checkpoint``) of Apache Kafka.
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import IO, Protocol

from kelr.errors import BadInputError
from kelr.replay.records import RecordBatch, SnapshotBegins, SnapshotEnds
from kelr.sources.disk.files import open_to_read
from kelr.sources.disk.names import segment_base
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.records.batches import BatchRun, Stop, StopKind, empty_space, read_header, torn

_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_OFFSET = struct.Struct(">q")
_MAGIC_AT, _MAGIC = 16, 2
_CHUNK_BYTES = 1024 * 1024


class Holder(Protocol):
    """Bytes that do not change, of a known size."""

    @property
    def size_bytes(self) -> int: ...

    def read(self, at: int, size: int) -> bytes:
        """So many bytes from this position on; fewer at the end. Raises OSError."""


class FileBytes:
    """A file that is only read. It may grow, as a running node's newest segment does: what is there now is read.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        descriptor = open_to_read(path)
        try:
            self.size_bytes = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def read(self, at: int, size: int) -> bytes:
        # Not mapped into memory: a node may cut its log while it is read, and that would end this process.
        descriptor = open_to_read(self._path)
        try:
            return os.pread(descriptor, min(size, self.size_bytes - at), at)
        finally:
            os.close(descriptor)


class RegionBytes:
    """A part of other bytes, such as a member of a tar archive."""

    def __init__(self, whole: Holder, start: int, size_bytes: int) -> None:
        self._whole, self._start = whole, start
        self.size_bytes = size_bytes

    def read(self, at: int, size: int) -> bytes:
        return self._whole.read(self._start + at, max(0, min(size, self.size_bytes - at)))


class UnpackedBytes:
    """What came out of an archive, in a file without a name: it is gone when nobody holds it any more."""

    def __init__(self) -> None:
        self.descriptor, path = tempfile.mkstemp(prefix="kelr-")
        weakref.finalize(self, os.close, self.descriptor)
        os.unlink(path)
        self.size_bytes = 0

    @classmethod
    def copied(cls, stream: IO[bytes], most_bytes: int) -> UnpackedBytes | None:
        """All that the stream has; None where that is more than `most_bytes`. Raises OSError where the disk is full."""
        made = cls()
        while chunk := stream.read(_CHUNK_BYTES):
            made.size_bytes += len(chunk)
            if made.size_bytes > most_bytes:
                return None
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(made.descriptor, rest) :]
        return made

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self.descriptor, max(0, min(size, self.size_bytes - at)), at)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the log itself."""

    name: str
    """Where it is, for a person."""
    base_offset: int
    bytes: Holder


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A snapshot of all that the log said up to an offset."""

    name: str
    end_offset: int
    """The offset after the last record of the log that it contains."""
    epoch: int
    bytes: Holder


@dataclass(slots=True)
class Copy:
    """One node's copy of the log, or what somebody saved of one: the pieces of one directory."""

    place: str
    cluster_id: str | None = None
    node: int | None = None
    segments: list[Segment] = field(default_factory=list)
    checkpoints: list[Checkpoint] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    """What is wrong with files that were left out, a sentence each."""

    @property
    def label(self) -> str:
        """For a person: the node, where it is known."""
        return self.place if self.node is None else f"node {self.node} ({self.place})"

    def add(self, file_name: str, shown: str, content: Holder) -> bool:
        """Take the file, if its name is one of a segment or a checkpoint. Raises OSError."""
        checkpoint = _CHECKPOINT.fullmatch(file_name)
        if checkpoint is not None:
            self.checkpoints.append(Checkpoint(shown, int(checkpoint[1]), int(checkpoint[2]), content))
            return True
        base = segment_base(file_name)
        if base is None:
            return False
        first = first_offset(content)
        if first is None or first == base:
            self.segments.append(Segment(shown, base, content))
        else:
            self.odd.append(
                f"{shown} is not read: by its name it begins at offset {base}, and its first batch at {first}"
            )
        return True


def is_piece(file_name: str) -> bool:
    """Whether the name is one of a segment or a checkpoint."""
    return _CHECKPOINT.fullmatch(file_name) is not None or segment_base(file_name) is not None


def begins_with_batch(content: Holder) -> bool:
    """Whether the file's first bytes may be those of a record batch: its offset, and Kafka's magic number. Raises
    OSError."""
    head = content.read(0, _MAGIC_AT + 1)
    return len(head) > _MAGIC_AT and head[0] < 0x80 and head[_MAGIC_AT] == _MAGIC


def first_offset(content: Holder) -> int | None:
    """The offset with which a segment begins, by its first batch; None where it is empty. Raises OSError."""
    head = content.read(0, _OFFSET.size)
    if len(head) < _OFFSET.size:
        return None
    offset: int = _OFFSET.unpack(head)[0]
    return offset


# Checkpoints: whether one is whole, and its batches; and reading a piece in windows, so that memory stays flat.


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
