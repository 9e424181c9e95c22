"""The segments of one log: which of them Kafka will load, and the record batches in each.

Files are read with `pread` and never mapped: a running broker may truncate a segment, and touching what is gone from a
mapping would kill the process.

Source: `LogLoader.removeTempFilesAndCollectSwapFiles` and `load`, `OffsetIndex`, `FileLogInputStream`.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from kelr.sources.disk.files import open_to_read
from kelr.sources.disk.names import segment_base
from kelr.sources.records.batches import (
    HEADER_SIZE,
    PREFIX_SIZE,
    BatchHeader,
    Stop,
    StopKind,
    crc_matches,
    implausible,
    read_header,
)

MAX_BATCH_BYTES = 128 * 1024 * 1024
"""No broker takes a larger batch unless socket.request.max.bytes (100 MiB) was raised."""
_CHUNK_BYTES = 1024 * 1024
_HEADERS_CHUNK_BYTES = 4096
_SMALLEST = 17
"""Bytes up to the magic: Kafka looks at nothing shorter (Records.HEADER_SIZE_UP_TO_MAGIC)."""
_INDEX_ENTRY = struct.Struct(">ii")
_SWAP, _CLEANED = ".swap", ".cleaned"


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment as Kafka will load it."""

    base: int
    path: str
    index: str
    """Where its offset index is, if there is one."""


def segment_files(directory: str, names: Sequence[str]) -> tuple[tuple[SegmentFile, ...], bool]:
    """The segments of a log by base offset, and whether a compaction was interrupted while it swapped files.

    A compacted or split segment that was being put in place (``.swap``) takes the place of those it stands for.

    Raises:
        OSError: such a file could not be read.
    """
    swapped = _swaps(names)
    bases = {base: name for name in names if (base := segment_base(name)) is not None}
    if swapped:
        first = min(swapped)
        end = max(_swap_end(directory, base, name) for base, name in swapped.items())
        bases = {base: name for base, name in bases.items() if not first <= base < end} | swapped
    return tuple(_segment(directory, base, bases[base]) for base in sorted(bases)), bool(swapped)


def _swaps(names: Sequence[str]) -> dict[int, str]:
    """Segments to be swapped in; those that an unfinished split left (beside ``.cleaned`` files) do not count."""
    cleaned = [base for name in names if name.endswith(_CLEANED) and (base := _any_base(name)) is not None]
    found = {
        base: name
        for name in names
        if name.endswith(_SWAP) and (base := segment_base(name.removesuffix(_SWAP))) is not None
    }
    return {base: name for base, name in found.items() if not cleaned or base < min(cleaned)}


def _any_base(name: str) -> int | None:
    digits = name.partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) == 20 else None


def _swap_end(directory: str, base: int, name: str) -> int:
    with Segment(_segment(directory, base, name)) as segment:
        return max((header.next_offset for _, header in segment.batches(0, check_crc=False)), default=base)


def _segment(directory: str, base: int, name: str) -> SegmentFile:
    path = f"{directory}/{name}"
    swap = _SWAP if name.endswith(_SWAP) else ""
    return SegmentFile(base, path, f"{path.removesuffix(swap).removesuffix('.log')}.index{swap}")


class Segment:
    """One open segment file; use as a context manager.

    Raises:
        OSError: it cannot be opened or read.
    """

    def __init__(self, file: SegmentFile) -> None:
        self.file = file
        self._descriptor = open_to_read(file.path)
        self.size_bytes = os.fstat(self._descriptor).st_size
        self.stop: Stop | None = None
        """Where the last call of `batches` ended, and why."""
        self.disordered = False
        """Whether it ended at a batch whose bytes are whole and which cannot stand there: what Kafka would make of it
        is not foreseen."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._descriptor)

    def read(self, at: int, size_bytes: int) -> bytes:
        """Bytes from this position on; fewer where the file ends, or was truncated meanwhile."""
        return os.pread(self._descriptor, size_bytes, at)

    def batches(self, at: int, *, check_crc: bool) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of each whole batch from this position on; afterwards `stop` says where that ended.

        A batch of offsets before those of the one before it, or of an older leader epoch, is garbage: the checksum
        covers neither, and no leader writes such a batch.
        """
        for position, header, _ in self._walk(at, check_crc=check_crc, whole=False):
            yield position, header

    def whole_batches(self, at: int) -> Iterator[tuple[int, BatchHeader, bytes]]:
        """As `batches`, with the bytes of each batch, whose checksum was checked."""
        for position, header, content in self._walk(at, check_crc=True, whole=True):
            yield position, header, bytes(content)

    def _walk(self, at: int, *, check_crc: bool, whole: bool) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        content = check_crc or whole
        window = _Window(self, _CHUNK_BYTES if content else _HEADERS_CHUNK_BYTES)
        before: BatchHeader | None = None
        self.stop, self.disordered = None, False
        while True:
            found = self._batch(window, at, before, content=content, check_crc=check_crc)
            if isinstance(found, Stop):
                self.stop = found
                return
            header, view = found
            yield at, header, view
            at += header.size_bytes
            before = header

    def _batch(
        self, window: _Window, at: int, before: BatchHeader | None, *, content: bool, check_crc: bool
    ) -> tuple[BatchHeader, memoryview] | Stop:
        left = self.size_bytes - at
        if left <= 0:
            return Stop(StopKind.END, at)
        head = window.at(at, min(left, HEADER_SIZE))
        nothing = not any(head[:_SMALLEST])
        if nothing:
            return Stop(StopKind.EMPTY_SPACE, at, f"{left} bytes that begin with zeros")
        nonsense = implausible(head)
        if nonsense is not None:
            return Stop(StopKind.GARBAGE, at, nonsense)
        header = read_header(head)
        if header is None:
            return Stop(StopKind.TORN, at, f"{left} bytes, too few for the header of a batch")
        if header.size_bytes > left:
            text = f"the batch at offset {header.base_offset} has {header.size_bytes} bytes, and {left} are there"
            return Stop(StopKind.TORN, at, text)
        if header.size_bytes > MAX_BATCH_BYTES:
            self.disordered = True
            text = f"a batch would be {header.size_bytes} bytes long; kelr reads up to {MAX_BATCH_BYTES}"
            return Stop(StopKind.GARBAGE, at, text)
        view = window.at(at, header.size_bytes) if content else head
        if content and len(view) < header.size_bytes:
            return Stop(StopKind.TORN, at, "the file became shorter while it was read")
        if check_crc and not crc_matches(view, 0, header):
            return Stop(StopKind.CRC, at, f"the batch at offset {header.base_offset} does not match its checksum")
        wrong = _disorder(self.file.base, before, header)
        if wrong is not None:
            self.disordered = True
            return Stop(StopKind.GARBAGE, at, wrong)
        return header, view[: header.size_bytes]


def _disorder(base: int, before: BatchHeader | None, header: BatchHeader) -> str | None:
    """Why a batch cannot stand where it stands; None where it can."""
    if header.base_offset < base or header.last_offset_delta < 0:
        return f"a batch of offsets {header.base_offset} to {header.last_offset} in a segment that begins at {base}"
    if before is None:
        return None
    first = header.base_offset if not header.too_old else header.base_offset + 1
    if first < before.next_offset:
        return f"a batch of offset {header.base_offset} follows one that ends with {before.last_offset}"
    older, newer = before.partition_leader_epoch, header.partition_leader_epoch
    if older is not None and newer is not None and newer < older:
        return f"a batch of leader epoch {newer} follows one of {older}"
    return None


class _Window:
    """A part of the file in memory, so that many small batches cost one read."""

    def __init__(self, segment: Segment, chunk_bytes: int) -> None:
        self._segment = segment
        self._chunk_bytes = chunk_bytes
        self._start = 0
        self._content = b""

    def at(self, position: int, size_bytes: int) -> memoryview:
        """So many bytes from this position on; fewer where the file became shorter."""
        offset = position - self._start
        if offset < 0 or offset + size_bytes > len(self._content):
            self._start, offset = position, 0
            self._content = self._segment.read(position, max(size_bytes, self._chunk_bytes))
        return memoryview(self._content)[offset : offset + size_bytes]


def last_index_position(segment: Segment) -> tuple[int, int] | None:
    """(offset, position) of the last entry of a segment's offset index, as `OffsetIndex` takes it: the last 8 bytes.

    None: there is no index, so that Kafka recovers the segment. An empty index points at the segment's start.

    Raises:
        OSError: it cannot be read.
    """
    try:
        descriptor = open_to_read(segment.file.index)
    except FileNotFoundError:
        return None
    with contextlib.closing(_Descriptor(descriptor)):
        entries = os.fstat(descriptor).st_size // _INDEX_ENTRY.size
        if not entries:
            return segment.file.base, 0
        relative, position = _INDEX_ENTRY.unpack(
            os.pread(descriptor, _INDEX_ENTRY.size, (entries - 1) * _INDEX_ENTRY.size)
        )
    return segment.file.base + relative, position


def position_before(segment: Segment, offset: int) -> int:
    """Position of a batch that is before this offset, by the segment's offset index; 0 where that leads nowhere.

    Entries of nothing but zeros are the room that Kafka sets aside in the index of an active segment.

    Raises:
        OSError: the index cannot be read.
    """
    try:
        descriptor = open_to_read(segment.file.index)
    except FileNotFoundError:
        return 0
    with contextlib.closing(_Descriptor(descriptor)):

        def entry(number: int) -> tuple[int, int]:
            content = os.pread(descriptor, _INDEX_ENTRY.size, number * _INDEX_ENTRY.size)
            return _INDEX_ENTRY.unpack(content) if len(content) == _INDEX_ENTRY.size else (0, 0)

        low, high = 0, os.fstat(descriptor).st_size // _INDEX_ENTRY.size
        while low < high:
            middle = (low + high) // 2
            relative, position = entry(middle)
            if (relative, position) != (0, 0) and segment.file.base + relative < offset:
                low = middle + 1
            else:
                high = middle
        relative, position = entry(low - 1) if low else (0, 0)
    return position if fits_index(segment, segment.file.base + relative, position) else 0


def has_index(file: SegmentFile) -> bool:
    """Whether the segment has an offset index, of whatever content."""
    return os.path.exists(file.index)


def fits_index(segment: Segment, offset: int, position: int) -> bool:
    """Whether a batch starts at this position that is not beyond this offset: a follower's index entry names the last
    offset of all that it appended at once, and the position of the first batch of that."""
    if position == 0 and offset == segment.file.base:
        return True
    if not 0 < position <= segment.size_bytes - PREFIX_SIZE:
        return False
    head = segment.read(position, HEADER_SIZE)
    header = read_header(head)
    if header is None or implausible(head) is not None or position + header.size_bytes > segment.size_bytes:
        return False
    return segment.file.base <= header.base_offset <= offset


class _Descriptor:
    """A descriptor that `contextlib.closing` can close."""

    def __init__(self, number: int) -> None:
        self._number = number

    def close(self) -> None:
        os.close(self._number)
