"""Finding the metadata log in what people have: a node's directories, single files, support bundles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelr.errors import BadInputError, UsageError
from kelr.sources.disk.files import GarbledError, MetaProperties, read_meta_properties
from kelr.sources.disk.names import META_PROPERTIES, METADATA_TOPIC, replica_name
from kelr.sources.metadata_log.bundles import DIRECTORY, Bundle, is_bundle, open_bundle
from kelr.sources.metadata_log.pieces import Copy, FileBytes, Segment, begins_with_batch, first_offset, is_piece

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
