"""The pieces of which a metadata log is made: segments and checkpoints, wherever their bytes lie.

Source: `LogFileUtils` (``<base offset>.log``) and `Snapshots` (``<end offset>-<epoch>.checkpoint``) of Apache Kafka.
"""

from __future__ import annotations

import os
import re
import struct
import tempfile
import weakref
from dataclasses import dataclass, field
from typing import IO, Protocol

from kelr.sources.disk.files import open_to_read
from kelr.sources.disk.names import segment_base

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
