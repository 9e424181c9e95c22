"""Rescue files: a zip of Kafka segments with a manifest, written whole or not at all, verified before it is read."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, BinaryIO, Self

from kelr.durable import whole_file
from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.rescue.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    Manifest,
    SavedEpoch,
    SavedSegment,
    SavedTail,
    directory_of,
    manifest_bytes,
    read_manifest,
)
from kelr.sources.records.batches import HEADER_SIZE, BatchHeader, crc_matches, implausible, read_header
from kelr.sources.records.stream import RawBatch

SEGMENT_BYTES = 1024 * 1024 * 1024
"""A new segment begins beyond this size, as with log.segment.bytes: positions in a segment have 31 bits."""
_CHUNK_BYTES = 1024 * 1024
_WHAT = "rescue file"
_AGAIN = "get the file again, or dump again"


@contextmanager
def write_dump(path: Path, *, taken_at_ms: int, overwrite: bool, files: Files = FILES) -> Iterator[DumpWriter]:
    """A rescue file that appears under its name when all of it, manifest included, is on the disk.

    Raises:
        UsageError: it exists and `overwrite` is not set, or it cannot be written.
    """
    with whole_file(path, _WHAT, overwrite=overwrite, files=files) as raw:
        writer = DumpWriter(raw, taken_at_ms)
        yield writer
        writer.close()


class _Zip(zipfile.ZipFile):
    """Is not ended when it is collected: then nobody will see the file, and it may be closed already."""

    def __del__(self) -> None:
        pass


class DumpWriter:
    """Takes tails one after the other, each batch by batch, then the manifest."""

    def __init__(self, raw: BinaryIO, taken_at_ms: int) -> None:
        self._zip = _Zip(raw, "w", zipfile.ZIP_STORED, allowZip64=True)
        at_s = max(taken_at_ms // 1000, 315_532_800)  # a zip knows no time before 1980
        self._when = datetime.fromtimestamp(at_s, UTC).timetuple()[:6]
        self._directories: set[str] = set()

    def begin(self, tail: SavedTail) -> TailWriter:
        """Begin a tail; `tail` says all that is known of it before its batches are."""
        directory = directory_of(tail, self._directories)
        self._directories.add(directory)
        return TailWriter(self, tail, directory)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest: the last thing in the file."""
        self._zip.writestr(zipfile.ZipInfo(MANIFEST_NAME, self._when), manifest_bytes(manifest))

    def close(self) -> None:
        self._zip.close()

    def member(self, name: str) -> IO[bytes]:
        """A member of the zip to be written, of any size; one at a time."""
        return self._zip.open(zipfile.ZipInfo(name, self._when), "w", force_zip64=True)


class TailWriter:
    """Takes the batches of one tail in order; `end` gives the tail with what became of it."""

    def __init__(self, dump: DumpWriter, tail: SavedTail, directory: str) -> None:
        self._dump = dump
        self._tail = tail
        self._directory = directory
        self._open: _OpenSegment | None = None
        self._segments: list[SavedSegment] = []
        self._epochs: list[SavedEpoch] = []

    def add(self, batch: RawBatch) -> None:
        """Write a batch exactly as it is."""
        if self._open is not None and self._open.size_bytes + len(batch.data) > SEGMENT_BYTES:
            self._segments.append(self._open.end())
            self._open = None
        if self._open is None:
            name = f"{self._directory}/{batch.header.base_offset:020}.log"
            self._open = _OpenSegment(name, self._dump.member(name))
        self._open.add(batch)
        self._note_epoch(batch.header)

    def end(self) -> SavedTail:
        """The tail with its segments and epochs."""
        if self._open is not None:
            self._segments.append(self._open.end())
            self._open = None
        return replace(self._tail, segments=tuple(self._segments), epochs=tuple(self._epochs))

    def _note_epoch(self, header: BatchHeader) -> None:
        epoch, last = header.partition_leader_epoch, self._epochs[-1] if self._epochs else None
        if last is not None and last.epoch == epoch:
            self._epochs[-1] = replace(last, to_offset=header.next_offset)
        else:
            self._epochs.append(SavedEpoch(epoch, header.base_offset, header.next_offset))


class _OpenSegment:
    def __init__(self, name: str, member: IO[bytes]) -> None:
        self._name, self._member = name, member
        self._sha256 = hashlib.sha256()
        self.size_bytes = 0
        self._batches = self._records = 0
        self._first: int | None = None
        self._end = 0

    def add(self, batch: RawBatch) -> None:
        self._member.write(batch.data)
        self._sha256.update(batch.data)
        header = batch.header
        self.size_bytes += len(batch.data)
        self._batches += 1
        self._records += 0 if header.control else header.count
        self._first = header.base_offset if self._first is None else self._first
        self._end = header.next_offset

    def end(self) -> SavedSegment:
        self._member.close()
        assert self._first is not None
        return SavedSegment(
            self._name,
            self.size_bytes,
            self._sha256.hexdigest(),
            self._batches,
            self._records,
            self._first,
            self._end,
        )


@dataclass(frozen=True, slots=True)
class _Counts:
    batches: int
    records: int
    first_offset: int
    end_offset: int


class Dump:
    """A rescue file, open and verified; use as a context manager."""

    def __init__(
        self, path: Path, archive: zipfile.ZipFile, manifest: Manifest, sha256: str, close: Callable[[], None]
    ) -> None:
        self.path = path
        self.close = close
        """Give the file back."""
        self.manifest = manifest
        self.sha256 = sha256
        """Of the manifest, and through it of every segment: what names this dump."""
        self._zip = archive

    def batches(self, tail: SavedTail) -> Iterator[RawBatch]:
        """The batches of one tail, in order.

        Raises:
            BadInputError: the file has changed since it was verified.
        """
        for segment in tail.segments:
            with self._zip.open(segment.name) as member:
                yield from _batches(member, segment, f"{self.path}, {segment.name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_dump(path: Path, files: Files = FILES) -> Dump:
    """Open a rescue file and verify all of it: its manifest, and every segment's hash, checksums and offsets.

    Raises:
        BadInputError: it cannot be read, is no rescue file, or is not as it was written.
    """
    with ExitStack() as opened, _garbled_zip(path):
        archive = opened.enter_context(_opened(path, files))
        manifest, sha256 = _verified(path, archive, files)
        return Dump(path, archive, manifest, sha256, opened.pop_all().close)


def read_head(path: Path, files: Files = FILES, *, check_up_to_bytes: int = 0) -> tuple[Manifest, str, bool]:
    """The manifest of a rescue file, its SHA-256, which names the dump, and whether every segment was checked against
    its own in the manifest; the records are not looked at.

    Args:
        check_up_to_bytes: the segments of a larger file are not checked.

    Raises:
        BadInputError: it cannot be read, is no rescue file, or a segment is not as it was written.
    """
    with _garbled_zip(path), _opened(path, files) as archive:
        manifest, sha256 = _head(path, archive, files)
        checked = files.stat(path).st_size <= check_up_to_bytes
        for segment in (one for tail in manifest.tails for one in tail.segments if checked):
            _check_sha256(path, archive, segment)
        return manifest, sha256, checked


@contextmanager
def _opened(path: Path, files: Files) -> Iterator[zipfile.ZipFile]:
    with files.reader(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise _no_rescue_file(path, f"not a zip file, or cut short ({error})") from error
        with archive:
            yield archive


def _head(path: Path, archive: zipfile.ZipFile, files: Files) -> tuple[Manifest, str]:
    members = archive.infolist()
    names = [member.filename for member in members]
    if MANIFEST_NAME not in names:
        raise _no_rescue_file(path, f"it has no {MANIFEST_NAME}")
    if len(set(names)) != len(names):
        raise _no_rescue_file(path, "it has two members of one name")
    size = files.stat(path).st_size
    if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members):
        raise _no_rescue_file(path, "its members are compressed or encrypted")
    if sum(member.file_size for member in members) > size:
        raise _no_rescue_file(path, "its members overlap")
    if archive.getinfo(MANIFEST_NAME).file_size > MAX_MANIFEST_BYTES:
        raise _no_rescue_file(path, f"its {MANIFEST_NAME} is larger than any")
    data = archive.read(MANIFEST_NAME)
    manifest = read_manifest(data, str(path))
    expected = {segment.name for tail in manifest.tails for segment in tail.segments}
    others = (set(names) - {MANIFEST_NAME}) ^ expected
    if others:
        raise BadInputError(
            f"{path}: {min(others)} is in its manifest or in the zip, and not in both", next_step=_AGAIN
        )
    return manifest, hashlib.sha256(data).hexdigest()


def _verified(path: Path, archive: zipfile.ZipFile, files: Files) -> tuple[Manifest, str]:
    manifest, sha256 = _head(path, archive, files)
    for tail in manifest.tails:
        for segment in tail.segments:
            _verify_segment(path, archive, segment)
    return manifest, sha256


def _check_sha256(path: Path, archive: zipfile.ZipFile, segment: SavedSegment) -> None:
    sha256 = hashlib.sha256()
    with archive.open(segment.name) as member:
        while chunk := member.read(_CHUNK_BYTES):
            sha256.update(chunk)
    if archive.getinfo(segment.name).file_size != segment.size_bytes or sha256.hexdigest() != segment.sha256:
        raise BadInputError(
            f"{path}, {segment.name} is not as it was written: its SHA-256 differs",
            next_step=_AGAIN,
            code="rescue-damaged",
        )


def _verify_segment(path: Path, archive: zipfile.ZipFile, segment: SavedSegment) -> None:
    _check_sha256(path, archive, segment)
    where = f"{path}, {segment.name}"
    with archive.open(segment.name) as member:
        counts = _count(batch.header for batch in _batches(member, segment, where))
    said = _Counts(segment.batches, segment.records, segment.first_offset, segment.end_offset)
    if counts != said:
        raise BadInputError(
            f"{where} holds other batches than its manifest says", next_step=_AGAIN, code="rescue-damaged"
        )


def _count(headers: Iterable[BatchHeader]) -> _Counts:
    batches = records = end = 0
    first = -1
    for header in headers:
        first = header.base_offset if not batches else first
        batches += 1
        records += 0 if header.control else header.count
        end = header.next_offset
    return _Counts(batches, records, first, end)


def _batches(member: IO[bytes], segment: SavedSegment, where: str) -> Iterator[RawBatch]:
    """The batches of a segment; anything wrong with one of them is an error."""
    left, end = segment.size_bytes, 0
    while left:
        head = member.read(min(HEADER_SIZE, left))
        header = None if implausible(head) else read_header(head)
        if header is None or header.too_old or header.size_bytes > left:
            raise BadInputError(
                f"{where}, byte {segment.size_bytes - left}: there is no whole record batch",
                next_step=_AGAIN,
                code="rescue-damaged",
            )
        data = head + member.read(header.size_bytes - len(head))
        if not crc_matches(data, 0, header):
            raise BadInputError(
                f"{where}: the batch at offset {header.base_offset} does not match its checksum",
                next_step=_AGAIN,
                code="rescue-damaged",
            )
        if header.base_offset < end or header.last_offset_delta < 0 or header.count < 0:
            raise BadInputError(
                f"{where}: the batch at offset {header.base_offset} is out of order",
                next_step=_AGAIN,
                code="rescue-damaged",
            )
        yield RawBatch(header, data)
        left, end = left - header.size_bytes, header.next_offset


@contextmanager
def _garbled_zip(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        raise _no_rescue_file(path, f"its zip is garbled: {error}") from error
    except OSError as error:
        raise _cannot_read(path, error) from error


def _cannot_read(path: Path, error: OSError) -> BadInputError:
    return BadInputError(
        f"cannot read the {_WHAT} {path}: {error.strerror or error}", next_step="check the path and its permissions"
    )


def _no_rescue_file(path: Path, why: str) -> BadInputError:
    return BadInputError(
        f"{path} is no rescue file: {why}",
        next_step="give a file that kelr rescue dump wrote",
        code="not-a-rescue-file",
    )
