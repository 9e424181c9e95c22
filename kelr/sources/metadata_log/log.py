"""The metadata log as whoever replays it asks for it, wherever it comes from; and the one that is read from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from kelr.errors import BadInputError, UsageError
from kelr.replay.packed import IdleRun, PackedChanges
from kelr.replay.records import LeaderChanged, NotUnderstood, RecordBatch
from kelr.sources.base import Progress
from kelr.sources.disk.files import GarbledError, MetaProperties, read_meta_properties
from kelr.sources.disk.names import META_PROPERTIES, METADATA_TOPIC, replica_name
from kelr.sources.metadata_log.bundles import DIRECTORY, Bundle, is_bundle, open_bundle
from kelr.sources.metadata_log.pieces import (
    Checkpoint,
    Copy,
    FileBytes,
    Segment,
    Windows,
    begins_with_batch,
    checkpoint_batches,
    first_offset,
    is_piece,
    is_whole,
)
from kelr.sources.records.batches import Stop, StopKind

# Several nodes' copies of one log, read together: where one lacks records another has them, and where they differ, the
# newer epoch is right.
#
# Source: Raft's log matching and leader completeness (KIP-595): two nodes' records of one offset and epoch are the
# same, and of two epochs at one offset the older one was never committed.


@dataclass(frozen=True, slots=True)
class Gap:
    """Where reading ended."""

    offset: int
    """The first offset that nobody has."""
    next_offset: int | None
    """The first one after it that somebody has; None at the end of the log."""


class Together:
    """The batches of all copies, each offset once.

    Args:
        warn: told in a sentence what is odd.
        read: told of bytes as they are read.
    """

    def __init__(
        self,
        copies: Sequence[Copy],
        warn: Callable[[str], None],
        read: Callable[[int], None],
    ) -> None:
        # Copies are compared batch by batch, and runs of NoOpRecords end where a copy's file does.
        self._heads = [_Head(copy, warn, read, merge_idle=len(copies) == 1) for copy in copies]
        self._warn = warn

    def nodes_at(self, offset: int) -> frozenset[int]:
        """The nodes whose copies reach this offset."""
        return frozenset(
            head.copy.node for head in self._heads if head.copy.node is not None and head.reached >= offset
        )

    def broken_at(self, offset: int) -> bool:
        """Whether a copy has something from this offset on that cannot be read; a torn tail is none."""
        return any(head.broken and head.reached == offset for head in self._heads)

    def batches(self, offset: int) -> Generator[RecordBatch, None, Gap]:
        """Everything from the offset on, until no copy has what comes next.

        Raises:
            BadInputError: a file cannot be read, or is no metadata log's.
            UsageError: the copies are of different clusters.
        """
        if len(self._heads) == 1:
            return (yield from self._alone(self._heads[0], offset))
        while True:
            there = [head for head in self._heads if (batch := head.at(offset)) is not None and _has(batch, offset)]
            if not there:
                later = [head.batch.base_offset for head in self._heads if head.batch is not None]
                return Gap(offset, min(later, default=None))
            best = self._agreed(there, offset)
            yield best if best.base_offset == offset else _behind(best, offset)
            offset = best.next_offset

    def _alone(self, head: _Head, offset: int) -> Generator[RecordBatch, None, Gap]:
        """As `batches`, for a single copy: nothing is compared."""
        while (batch := head.at(offset)) is not None:
            if batch.base_offset > offset:
                return Gap(offset, batch.base_offset)
            yield batch if batch.base_offset == offset else _behind(batch, offset)
            offset = batch.next_offset
        return Gap(offset, None)

    def _agreed(self, there: Sequence[_Head], offset: int) -> RecordBatch:
        """What the copies say of an offset; those that say it in an older epoch than others are read no further."""
        found = [(head, head.batch) for head in there if head.batch is not None]
        newest_epoch = max(batch.epoch for _, batch in found)
        newest = [(head, batch) for head, batch in found if batch.epoch == newest_epoch]
        (first, best), *others = newest
        for head, batch in found:
            if batch.epoch < newest_epoch:
                self._warn(
                    f"{head.copy.label} and {first.copy.label} differ from offset {offset} on: epoch {batch.epoch} is"
                    f" older than {newest_epoch}, so that what the first has there was never committed; it is left out"
                )
                head.drop()
        for head, batch in others:
            if batch.base_offset == best.base_offset and batch.records != best.records:
                raise UsageError(
                    f"these are metadata logs of different clusters: {first.copy.label} and {head.copy.label} differ at"
                    f" offset {offset} in one epoch",
                    next_step="give those of one",
                    code="metadata-logs-differ",
                )
        return best


class _Head:
    """Where the reading of one copy is."""

    def __init__(
        self,
        copy: Copy,
        warn: Callable[[str], None],
        read: Callable[[int], None],
        *,
        merge_idle: bool,
    ) -> None:
        self.copy = copy
        self._merge_idle = merge_idle
        self.batch: RecordBatch | None = None
        """The first batch that reaches further than the offset that was asked last; None at the end."""
        self.reached = -1
        """The offset after the last record that was read."""
        self.broken = False
        """Whether what comes behind that is there and cannot be read."""
        self._warn, self._read = warn, read
        self._segments = sorted(copy.segments, key=lambda segment: segment.base_offset)
        self._rest = self._all()
        self._started = False

    def at(self, offset: int) -> RecordBatch | None:
        """The first batch that holds this offset or a later one."""
        batch = self.batch
        if batch is None and not self._started:
            self._started = True
            batch = next(self._rest, None)
        while batch is not None and batch.next_offset <= offset:
            batch = next(self._rest, None)
        self.batch = batch
        return batch

    def drop(self) -> None:
        """Nothing more of this copy is right."""
        self.batch, self._rest = None, iter(())

    def _all(self) -> Iterator[RecordBatch]:
        for number, segment in enumerate(self._segments):
            before: RecordBatch | None = None
            windows = Windows(segment.bytes, self._read, merge_idle=self._merge_idle)
            try:
                for batch in windows:
                    if before is not None and not _follows(batch, before):
                        self._warn(_impossible(segment, before, batch))
                        self.broken = True
                        break
                    before, self.broken = batch, False
                    self.reached = max(self.reached, batch.next_offset)
                    yield batch
            except OSError as error:
                raise BadInputError(f"{segment.name} cannot be read: {error.strerror or error}") from error
            if windows.stop is not None and windows.stop.kind is not StopKind.END:
                self._stopped(segment, windows.stop, begun=before is not None, last=number + 1 == len(self._segments))

    def _stopped(self, segment: Segment, stop: Stop, *, begun: bool, last: bool) -> None:
        """A segment does not end with a whole batch."""
        if not begun and stop.at == 0 and stop.kind in {StopKind.GARBAGE, StopKind.UNREADABLE}:
            raise BadInputError(
                f"{segment.name} is no segment of a metadata log: {stop.text}",
                next_step="give __cluster_metadata-0 of a node",
            )
        place = f"{segment.name} at byte {stop.at}"
        if last and stop.kind in {StopKind.TORN, StopKind.EMPTY_SPACE}:
            self._warn(f"{place}: {stop.text}; the log is read up to there, as a node that starts would")
        else:
            self._warn(f"{place}: {stop.text}; the rest of this file is not read")
            self.broken = True


def _follows(batch: RecordBatch, before: RecordBatch) -> bool:
    """Whether a node can have written the one after the other; checksums cover neither offsets nor epochs."""
    return batch.base_offset == before.next_offset and batch.epoch >= before.epoch


def _impossible(segment: Segment, before: RecordBatch, batch: RecordBatch) -> str:
    return (
        f"{segment.name}: offset {batch.base_offset} of epoch {batch.epoch} comes behind offset"
        f" {before.next_offset - 1} of epoch {before.epoch}, which no node writes; the rest of this file is not read"
    )


def _has(batch: RecordBatch, offset: int) -> bool:
    return batch.base_offset <= offset < batch.next_offset


def _behind(batch: RecordBatch, offset: int) -> RecordBatch:
    """The part of a batch from the offset on."""
    return replace(batch, base_offset=offset, records=batch.records[offset - batch.base_offset :])


# Finding the metadata log in what people have: a node's directories, single files, support bundles.

_DEEPEST = 6
"""How many directories deep an unpacked bundle is searched."""
_WHAT = (
    f"give a node's metadata.log.dir or log.dirs, its {DIRECTORY}, segments (*.log) and checkpoints (*.checkpoint) out"
    " of it, or a tar or zip archive of them"
)


@dataclass(slots=True)
class Found:
    """The copies of one cluster's metadata log that were given."""

    copies: list[Copy] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    left_out: bool = False
    """Whether something of an archive, or a segment, is left out because it is damaged."""


def find_copies(paths: Sequence[Path]) -> Found:
    """The copies of the metadata log in these directories, files and archives, each directory once.

    Raises:
        BadInputError: something cannot be read, or holds no metadata log.
        UsageError: nothing was given, or the copies are of different clusters.
    """
    if not paths:
        raise UsageError("no metadata log was given", next_step=_WHAT)
    found = Found()
    loose: dict[Path, list[Path]] = {}
    for path in paths:
        try:
            if path.is_dir():
                found.copies += _in_directory(path, found.warnings)
            elif is_bundle(path):
                bundle = _in_bundle(path)
                found.copies += bundle.copies
                found.warnings += bundle.warnings
                found.left_out = found.left_out or bool(bundle.warnings)
            else:
                files = loose.setdefault(path.parent, [])
                if path not in files:
                    files.append(path)
        except OSError as error:
            raise _unreadable(path, error) from error
    for directory, files in loose.items():
        found.copies.append(_of_files(directory, files, found.warnings))
    _check_same_cluster(found.copies)
    odd = [text for copy in found.copies for text in copy.odd]
    found.warnings += odd
    found.left_out = found.left_out or bool(odd)
    return found


def _in_bundle(path: Path) -> Bundle:
    bundle = open_bundle(path)
    if not bundle.copies:
        raise BadInputError(
            f"{path} holds no {DIRECTORY}, and no segments or checkpoints of one",
            next_step=_WHAT,
            code="no-metadata-log",
        )
    return bundle


def _in_directory(path: Path, warnings: list[str]) -> list[Copy]:
    """The directory itself, the metadata log's directory in it, or such directories further down."""
    inside = path / DIRECTORY
    if inside.is_dir():
        return [_of_directory(inside, warnings)]
    names = sorted(os.listdir(path))
    if any(map(is_piece, names)):
        return [_of_directory(path, warnings)]
    if path.name != DIRECTORY:
        below = [_of_directory(directory, warnings) for directory in _below(path, 1)]
        if below:
            return below
    held = replica_name(path.name)
    if held is not None and held.address.topic == METADATA_TOPIC:
        raise BadInputError(f"{path} is empty: no segment and no checkpoint is in it", next_step=_WHAT)
    raise BadInputError(
        f"{path} holds no {DIRECTORY}, and no segments or checkpoints of one", next_step=_WHAT, code="no-metadata-log"
    )


def _below(path: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False):
            continue
        if entry.name == DIRECTORY:
            yield Path(entry.path)
        elif depth < _DEEPEST:
            yield from _below(Path(entry.path), depth + 1)


def _of_directory(directory: Path, warnings: list[str]) -> Copy:
    copy = _copy_at(directory, warnings)
    for name in sorted(os.listdir(directory)):
        if not is_piece(name):
            continue  # indexes, *.deleted, *.part, *.snapshot: Kafka reads none of them for records
        path = directory / name
        try:
            copy.add(name, str(path), FileBytes(str(path)))
        except FileNotFoundError:
            continue  # a running node has just deleted it
        except OSError as error:
            raise _unreadable(path, error) from error
    if not copy.segments and not copy.checkpoints:
        why = "; ".join(copy.odd) or f"{directory} is empty: no segment and no checkpoint is in it"
        raise BadInputError(why, next_step=_WHAT)
    return copy


def _of_files(directory: Path, files: list[Path], warnings: list[str]) -> Copy:
    """Single files of one directory. A segment may have another name; a checkpoint's name says how far it reaches."""
    copy = _copy_at(directory, warnings)
    for path in files:
        try:
            content = FileBytes(str(path))
            if copy.add(path.name, str(path), content):
                continue
            first = first_offset(content)
        except OSError as error:
            raise _unreadable(path, error) from error
        if path.name.endswith((".deleted", ".part", ".snapshot", ".index", ".timeindex", ".txnindex", ".checkpoint")):
            raise BadInputError(f"{path} is no segment and no checkpoint, by its name", next_step=_WHAT)
        if first is None:
            raise BadInputError(f"{path} is empty", next_step=_WHAT)
        if not begins_with_batch(content):
            raise BadInputError(f"{path} is no segment: it does not begin with a record batch", next_step=_WHAT)
        copy.segments.append(Segment(str(path), first, content))
    return copy


def _copy_at(directory: Path, warnings: list[str]) -> Copy:
    told = _whose(directory, warnings) or _whose(directory.absolute().parent, warnings) or MetaProperties()
    return Copy(str(directory), told.cluster_id, told.broker)


def _whose(directory: Path, warnings: list[str]) -> MetaProperties | None:
    try:
        return read_meta_properties(directory)
    except (OSError, GarbledError) as error:
        warnings.append(f"{directory / META_PROPERTIES}: {_reason(error)}")
        return None


def _check_same_cluster(copies: Sequence[Copy]) -> None:
    by_cluster = {copy.cluster_id: copy.place for copy in reversed(copies) if copy.cluster_id is not None}
    if len(by_cluster) > 1:
        places = "; ".join(f"{place} is of {cluster}" for cluster, place in sorted(by_cluster.items()))
        raise UsageError(
            f"these are metadata logs of different clusters: {places}",
            next_step="give those of one",
            code="metadata-logs-differ",
        )


def _unreadable(path: Path, error: OSError) -> BadInputError:
    return BadInputError(f"{path} cannot be read: {_reason(error)}", next_step="check the path, and who may read it")


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


class MetadataLogReader(Protocol):
    """One cluster's metadata log, read from its beginning or its oldest checkpoint on: files, or a live controller."""

    @property
    def name(self) -> str:
        """Where it comes from, such as ``metadata log of node 1``."""

    @property
    def cluster_id(self) -> str | None:
        """None where nothing beside the log told it: the log itself does not carry it."""

    @property
    def warnings(self) -> Sequence[str]:
        """What was odd, a sentence each; grows while `batches` is read."""

    @property
    def cut_short(self) -> bool:
        """Whether there is more than `batches` gave, which cannot be read or does not follow; known once it has ended.
        A torn tail, as every running node may have one, is not meant."""

    def batches(self, progress: Progress | None = None) -> Iterator[RecordBatch]:
        """The checkpoint first, if one is needed, then the log in order; each call begins anew.

        Args:
            progress: told of bytes read and bytes there.
        """


class MetadataLog:
    """The metadata log in files of one or more nodes of one cluster: a `MetadataLogReader`.

    It is read from its first record on, or from the oldest checkpoint that reaches as far back as the segments do.
    Where records are missing, a checkpoint behind them stands in if there is one, and otherwise reading ends there.

    Args:
        warnings: what was odd about the files.
        left_out: whether some of them are left out because they are damaged.
    """

    def __init__(self, copies: Sequence[Copy], warnings: Sequence[str] = (), *, left_out: bool = False) -> None:
        self._copies = tuple(copies)
        self._found = tuple(warnings)
        self._warnings = list(warnings)
        self._segments = sorted(
            (segment for copy in copies for segment in copy.segments), key=lambda segment: segment.base_offset
        )
        # The one for offset 0 is written when a node's disk is formatted, and tells of no cluster.
        self._checkpoints = sorted(
            (one for copy in copies for one in copy.checkpoints if one.end_offset), key=lambda one: one.end_offset
        )
        self._left_out = self._cut_short = left_out
        self._first = self._chosen_first()
        self._found = tuple(self._warnings)

    @property
    def name(self) -> str:
        nodes = self.nodes
        if not nodes:
            return f"metadata log in {', '.join(copy.place for copy in self._copies)}"
        listed = f"nodes {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}" if nodes[1:] else f"node {nodes[0]}"
        return f"metadata log of {listed}"

    @property
    def cluster_id(self) -> str | None:
        return next((copy.cluster_id for copy in self._copies if copy.cluster_id is not None), None)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes from whose disks the files are, where meta.properties told them; sorted."""
        return tuple(sorted({copy.node for copy in self._copies if copy.node is not None}))

    @property
    def files(self) -> tuple[str, ...]:
        """The segments and checkpoints that are read, in order, those of several nodes one beside the other."""
        first = () if self._first is None else (self._first.name,)
        return (*first, *(segment.name for segment in self._segments))

    @property
    def size_bytes(self) -> int:
        """Bytes of all these files."""
        first = 0 if self._first is None else self._first.bytes.size_bytes
        return first + sum(segment.bytes.size_bytes for segment in self._segments)

    @property
    def warnings(self) -> Sequence[str]:
        return self._warnings

    @property
    def cut_short(self) -> bool:
        """See `MetadataLogReader.cut_short`."""
        return self._cut_short

    def batches(self, progress: Progress | None = None) -> Iterator[RecordBatch]:
        """See `MetadataLogReader.batches`.

        Raises:
            BadInputError: a file cannot be read, is no metadata log's, or two of them are of different clusters.
        """
        self._warnings, self._cut_short = list(self._found), self._left_out
        reading = _Progress(progress, self.size_bytes)
        together = Together(self._copies, self._warn, reading.add)
        voters: tuple[int, ...] = ()
        offset, understood, unknown = 0, False, 0
        for batch in self._run(together, reading):
            packed = type(batch.records) in _PACKED  # then there is nothing else in it
            understood = understood or packed
            for record in () if packed else batch.records:
                if type(record) is LeaderChanged:
                    voters = record.voters
                elif type(record) is NotUnderstood:
                    unknown += 1
                else:
                    understood = True
            if not understood and unknown:
                raise self._not_one("it holds no record that a metadata log has")
            offset = batch.next_offset if batch.checkpoint_end is None else batch.checkpoint_end
            yield batch
        self._cut_short = self._cut_short or together.broken_at(offset)
        self._warn_of_tail(voters, together.nodes_at(offset))

    def _run(self, together: Together, reading: _Progress) -> Iterator[RecordBatch]:
        offset = 0
        checkpoint = self._first
        while True:
            if checkpoint is not None:
                yield from checkpoint_batches(checkpoint, reading.add)
                offset = checkpoint.end_offset
            gap = yield from together.batches(offset)
            offset = gap.offset
            checkpoint = self._usable_after(offset)
            if checkpoint is None:
                self._cut_short = self._cut_short or any(one.end_offset > offset for one in self._checkpoints)
                self._warn_of_gap(gap)
                return
            self._warn(
                f"records {offset} to {checkpoint.end_offset - 1} are missing; {checkpoint.name} stands in for them:"
                " what happened in between is not known"
            )

    def _chosen_first(self) -> Checkpoint | None:
        """The checkpoint to begin with; None where the segments begin with the first record.

        Raises:
            BadInputError: the segments begin later, and no whole checkpoint is at hand.
        """
        lowest = self._segments[0].base_offset if self._segments else None
        if lowest == 0:
            return None
        usable = None if lowest is None else self._usable_after(lowest - 1)
        if usable is None:
            # The newest one tells most: the log goes on there, or records are missing behind it.
            usable = next((one for one in reversed(self._checkpoints) if self._is_usable(one)), None)
        if usable is None:
            begins = "no segment is there" if lowest is None else f"the segments begin at offset {lowest}"
            raise BadInputError(
                "; ".join([f"{self.name}: {begins}, and no whole checkpoint says what was before", *self._warnings]),
                next_step="give the directory's *.checkpoint files too, or another node's",
            )
        return usable

    def _usable_after(self, offset: int) -> Checkpoint | None:
        """The first whole checkpoint that reaches further than this offset."""
        return next((one for one in self._checkpoints if one.end_offset > offset and self._is_usable(one)), None)

    def _is_usable(self, checkpoint: Checkpoint) -> bool:
        why_not = is_whole(checkpoint)
        if why_not is None:
            return True
        text = f"{checkpoint.name} is not used: {why_not}"
        if text not in self._warnings:
            self._warn(text)
        return False

    def _warn(self, text: str) -> None:
        self._warnings.append(text)

    def _warn_of_gap(self, gap: Gap) -> None:
        if gap.next_offset is not None:
            self._cut_short = True
            self._warn(
                f"records {gap.offset} to {gap.next_offset - 1} are missing, and no checkpoint stands in for them:"
                f" reading ends at offset {gap.offset}, and nothing of what came later is told"
            )

    def _warn_of_tail(self, voters: tuple[int, ...], nodes: frozenset[int]) -> None:
        majority = len(voters) // 2 + 1
        if len(voters) > 1 and len(nodes & set(voters)) < majority:
            listed = ", ".join(map(str, voters))
            self._warn(
                f"the quorum has voters {listed}: its last records are committed once {majority} of them have them,"
                f" and what is read here does not show that they have"
            )

    def _not_one(self, why: str) -> BadInputError:
        return BadInputError(f"{self.name} is no metadata log: {why}", next_step="give __cluster_metadata-0 of a node")


_PACKED = frozenset({PackedChanges, IdleRun})


class _Progress:
    def __init__(self, told: Progress | None, total: int) -> None:
        self._told, self._total, self._done = told, total, 0

    def add(self, size_bytes: int) -> None:
        self._done += size_bytes
        if self._told is not None:
            self._told(min(self._done, self._total), self._total)


def open_metadata_log(paths: Sequence[Path]) -> MetadataLog:
    """The metadata log in these directories, files and support bundles.

    Raises:
        BadInputError: nothing there is a metadata log, or it cannot be read.
        UsageError: the files are of different clusters.
    """
    found = find_copies(paths)
    return MetadataLog(found.copies, found.warnings, left_out=found.left_out)
