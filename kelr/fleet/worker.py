"""What Spark's workers do with inputs: look at them, put the pieces of a log together, and read snapshots."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kelr.errors import BadInputError
from kelr.fleet.inputs import is_local
from kelr.fleet.looking import (
    BUNDLE,
    CHECKPOINT,
    COLLECTION,
    SEGMENT,
    SNAPSHOT,
    UNKNOWN,
    Looked,
    digest_of,
    look_at_checkpoint,
    look_at_segment,
)
from kelr.replay.records import RecordBatch
from kelr.sources.disk.names import segment_base
from kelr.sources.metadata_log.bundles import is_bundle
from kelr.sources.metadata_log.pieces import (
    Checkpoint,
    FileBytes,
    Holder,
    RegionBytes,
    UnpackedBytes,
    Windows,
    checkpoint_batches,
)
from kelr.sources.records.batches import StopKind
from kelr.sources.snapshot_reader import SnapshotReader

LOOKED = pa.schema([("path", pa.string()), ("looked", pa.string()), ("error", pa.string())])
CHUNK_BYTES = 16 * 1024 * 1024
_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_SAVED_AS = ".kelr"


# Looking.


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A first look at files: rows of ``path``, ``length`` and ``content``, whose content is null where the worker opens
    the file by itself, to rows of `LOOKED`."""
    for batch in batches:
        for row in batch.to_pylist():
            looked, error = _looked(row["path"], row["content"])
            found = {"path": row["path"], "looked": None if looked is None else looked.written(), "error": error}
            yield pa.RecordBatch.from_pylist([found], schema=LOOKED)


def _looked(path: str, content: bytes | None) -> tuple[Looked | None, str | None]:
    try:
        if content is None:
            return look_at(path, FileBytes(path), Path(path)), None
        with tempfile.NamedTemporaryFile(prefix="kelr-", suffix=_SAVED_AS) as file:
            file.write(content)
            file.flush()
            return look_at(path, FileBytes(file.name), Path(file.name)), None
    except OSError as error:
        return None, error.strerror or str(error)


def look_at(path: str, content: Holder, file: Path) -> Looked:
    """What a file is, by its name and by what it holds.

    Args:
        path: its name where it came from.
        file: where it is on this machine.

    Raises:
        OSError: it cannot be read.
    """
    name = path.rpartition("/")[2]
    base, checkpoint = segment_base(name), _CHECKPOINT.fullmatch(name)
    if base is not None:
        return look_at_segment(content, base)
    if checkpoint is not None:
        return look_at_checkpoint(content, path, int(checkpoint[1]), int(checkpoint[2]))
    if not content.size_bytes:
        return Looked(UNKNOWN, odd="it is empty", damaged=True)
    try:
        reader = SnapshotReader(file)
    except BadInputError as error:
        if name.endswith(_SAVED_AS) or not is_bundle(file):
            return Looked(UNKNOWN, odd=str(error).replace(str(file), path), damaged=True)
        return Looked(BUNDLE, odd="it is an archive: unpack it, and give the directory", damaged=True)
    return Looked(
        SNAPSHOT if reader.disks is None else COLLECTION,
        readable_bytes=content.size_bytes,
        taken_at_ms=reader.taken_at_ms,
        cluster=reader.cluster.cluster_id,
        digest=digest_of(content),
    )


# Reading what tasks are given.


class UnreadablePieceError(BadInputError):
    """A file cannot be read to where it was looked at.

    Args:
        path: the file.
        why: what is the matter with it.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


class Given:
    """The rows of one task: a state from which to go on, and pieces of files, whole or in chunks.

    Args:
        rows: ``kind``, ``place`` (order), ``path``, ``cluster``, ``from_offset``, ``to_offset``, ``from_byte``,
            ``to_byte``, ``size``, ``at`` and ``content``; the content is null where the worker opens the file.
    """

    def __init__(self, rows: Iterator[dict[str, Any]]) -> None:
        state: list[bytes] = []
        self.pieces: list[dict[str, Any]] = []
        self._holders: dict[str, Holder] = {}
        self.facts: dict[str, Any] = {}
        """What the task is about."""
        for row in rows:
            if row["kind"] == STATE:
                state.append(row["content"])
                continue
            if row["kind"] == TASK:
                self.facts = json.loads(row["path"])
                continue
            if row["content"] is not None:
                self._spool(row["path"], row["size"], row["at"], row["content"])
            if not self.pieces or self.pieces[-1]["place"] != row["place"]:
                self.pieces.append({name: value for name, value in row.items() if name != "content"})
        self.state = b"".join(state) if state else None

    def check_whole(self) -> None:
        """Whether Spark has read all that the task was to get. Raises BadInputError."""
        if len(self.pieces) < self.facts["parts"]:
            raise BadInputError("a file is gone that was there when the run began")

    def holder(self, path: str) -> Holder:
        """The bytes of a file. Raises OSError."""
        found = self._holders.get(path)
        if found is None:
            if not is_local(path):
                raise FileNotFoundError(2, "No such file or directory", path)
            found = self._holders[path] = FileBytes(path)
        return found

    def batches(self, piece: dict[str, Any]) -> Iterator[RecordBatch]:
        """The log out of one of its pieces.

        Raises:
            UnreadablePieceError: it cannot be read any more, or not to where it was looked at.
        """
        try:
            if piece["kind"] == CHECKPOINT:
                end, epoch = piece["to_offset"], _epoch_of(piece["path"])
                found = Checkpoint(piece["path"], end, epoch, self.holder(piece["path"]))
                yield from checkpoint_batches(found, _nobody)
            elif piece["kind"] == SEGMENT:
                yield from self._of_segment(piece)
        except OSError as error:
            raise UnreadablePieceError(piece["path"], f"it cannot be read: {error.strerror or error}") from error

    def _of_segment(self, piece: dict[str, Any]) -> Iterator[RecordBatch]:
        start, stop = piece["from_offset"], piece["to_offset"]
        whole = self.holder(piece["path"])
        region = RegionBytes(whole, piece["from_byte"], min(whole.size_bytes, piece["to_byte"]) - piece["from_byte"])
        windows = Windows(region, _nobody, merge_idle=True)
        reached = start
        for batch in windows:
            if batch.next_offset <= start:
                continue
            if batch.base_offset >= stop:
                return
            part = _part(batch, start, stop)
            reached = part.next_offset
            yield part
        if reached < stop:
            text = "" if windows.stop is None or windows.stop.kind is StopKind.END else f": {windows.stop.text}"
            raise UnreadablePieceError(piece["path"], f"it cannot be read from offset {reached} on{text}")

    def _spool(self, path: str, size: int, at: int, content: bytes) -> None:
        held = self._holders.get(path)
        if not isinstance(held, UnpackedBytes):
            held = self._holders[path] = UnpackedBytes()
            held.size_bytes = size
        os.pwrite(held.descriptor, content, at)


STATE, TASK = "state", "task"
"""Kinds of rows of a task beside those of its files."""


def on_disk(given: Given, path: str, read: Callable[[Path], Iterator[Any]]) -> Iterator[Any]:
    """What a function reads of a file of the task, which may have to be put on a disk first. Raises OSError."""
    if is_local(path):
        yield from read(Path(path))
        return
    content = given.holder(path)
    with tempfile.NamedTemporaryFile(prefix="kelr-", suffix=_SAVED_AS) as file:
        at = 0
        while data := content.read(at, CHUNK_BYTES):
            file.write(data)
            at += len(data)
        file.flush()
        yield from read(Path(file.name))


def _part(batch: RecordBatch, start: int, stop: int) -> RecordBatch:
    """What of a batch lies between two offsets."""
    base = max(batch.base_offset, start)
    if base == batch.base_offset and batch.next_offset <= stop:
        return batch
    records = batch.records[base - batch.base_offset : min(batch.next_offset, stop) - batch.base_offset]
    time_of = getattr(records, "time_of", None)
    timestamp_ms = batch.timestamp_ms if time_of is None else time_of(len(records) - 1)
    return replace(batch, base_offset=base, records=records, timestamp_ms=timestamp_ms)


def _epoch_of(path: str) -> int:
    named = _CHECKPOINT.fullmatch(path.rpartition("/")[2])
    assert named is not None  # by its name it was taken for a checkpoint
    return int(named[2])


def _nobody(size_bytes: int) -> None:
    """Progress is Spark's matter."""


# Chunks of files that only Spark reads.

CHUNKS = pa.schema([("path", pa.string()), ("size", pa.int64()), ("at", pa.int64()), ("content", pa.binary())])


def cut_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Files as chunks: rows of ``path`` and ``content`` to rows of `CHUNKS`."""
    for batch in batches:
        paths, contents = batch.column("path"), batch.column("content")
        for path, content in zip(paths, contents, strict=True):
            whole = content.as_buffer()
            for at in range(0, max(whole.size, 1), CHUNK_BYTES):
                part = whole.slice(at, min(CHUNK_BYTES, whole.size - at))
                columns = [[path.as_py()], [whole.size], [at], [part.to_pybytes()]]
                arrays = [pa.array(values, kind) for values, kind in zip(columns, CHUNKS.types, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=CHUNKS)
