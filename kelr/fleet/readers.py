"""What workers read: a first look at any file, and a metadata log out of the pieces that it is laid out in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kelr.errors import BadInputError
from kelr.fleet.laying import Piece
from kelr.fleet.looking import (
    BUNDLE,
    CHECKPOINT,
    COLLECTION,
    SNAPSHOT,
    UNKNOWN,
    Looked,
    digest_of,
    look_at_checkpoint,
    look_at_segment,
)
from kelr.fleet.stores import SAVED_AS, Options, holder, on_disk
from kelr.replay.records import RecordBatch
from kelr.sources.disk.names import segment_base
from kelr.sources.metadata_log.bundles import is_bundle
from kelr.sources.metadata_log.pieces import Checkpoint, Holder, RegionBytes, Windows, checkpoint_batches
from kelr.sources.records.batches import StopKind
from kelr.sources.snapshot_reader import SnapshotReader

_CHECKPOINT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


# Looking.


@dataclass(frozen=True, slots=True)
class Look:
    """A file that is to be looked at."""

    path: str
    size_bytes: int
    options: Options = ()


def look(one: Look) -> tuple[Looked | None, str | None]:
    """What a file is, or why it cannot be read."""
    try:
        if is_piece_of_log(one.path):
            return look_at(one.path, holder(one.path, one.options), Path(one.path)), None
        with on_disk(one.path, one.options) as file:
            return look_at(one.path, holder(str(file), ()), file), None
    except FileNotFoundError:
        return None, "it is gone"
    except OSError as error:
        return None, error.strerror or str(error)


def is_piece_of_log(path: str) -> bool:
    """Whether a file is a segment or a checkpoint, by its name."""
    name = path.rpartition("/")[2]
    return segment_base(name) is not None or _CHECKPOINT.fullmatch(name) is not None


def look_at(path: str, content: Holder, file: Path) -> Looked:
    """What a file is, by its name and by what it holds.

    Args:
        path: its name where it came from.
        file: where it is on this machine; of a piece of a log nothing but `content` is read.

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
        if name.endswith(SAVED_AS) or not is_bundle(file):
            return Looked(UNKNOWN, odd=str(error).replace(str(file), path), damaged=True)
        return Looked(BUNDLE, odd="it is an archive: unpack it, and give the directory", damaged=True)
    return Looked(
        SNAPSHOT if reader.disks is None else COLLECTION,
        readable_bytes=content.size_bytes,
        taken_at_ms=reader.taken_at_ms,
        cluster=reader.cluster.cluster_id,
        digest=digest_of(content),
    )


# Reading.


class UnreadablePieceError(BadInputError):
    """A file cannot be read to where it was looked at.

    Args:
        path: the file.
        text: what is the matter with it.
    """

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path}: {text}")
        self.path, self.text = path, text


def batches_of(pieces: Iterable[Piece], options: Options) -> Iterator[RecordBatch]:
    """A log out of its pieces, in order.

    Raises:
        UnreadablePieceError: one cannot be read any more, or not to where it was looked at.
        BadInputError: a checkpoint cannot be read, for all that its checksums match.
    """
    for piece in pieces:
        try:
            if piece.kind == CHECKPOINT:
                found = Checkpoint(piece.path, piece.to_offset, _epoch_of(piece.path), holder(piece.path, options))
                yield from checkpoint_batches(found, _nobody)
            else:
                yield from _of_segment(piece, holder(piece.path, options))
        except OSError as error:
            raise UnreadablePieceError(piece.path, f"it cannot be read: {error.strerror or error}") from error


def _of_segment(piece: Piece, whole: Holder) -> Iterator[RecordBatch]:
    start, stop = piece.from_offset, piece.to_offset
    region = RegionBytes(whole, piece.from_byte, min(whole.size_bytes, piece.to_byte) - piece.from_byte)
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
        raise UnreadablePieceError(piece.path, f"it cannot be read from offset {reached} on{text}")


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
    """Nobody follows how far a worker has read."""
