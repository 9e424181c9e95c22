"""Reading nodes' directories: the metadata log byte for byte, and of brokers what each replica holds. Nothing there is
changed, created or locked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelr.errors import BadInputError, UsageError
from kelr.quorum.archive import LOG_DIRECTORY, CollectedNode, is_running
from kelr.quorum.copies import DiskReplica
from kelr.sources.base import Progress
from kelr.sources.disk import read_log_directories
from kelr.sources.disk.files import GarbledError, MetaProperties, read_meta_properties, read_small
from kelr.sources.disk.names import LEADER_EPOCHS, META_PROPERTIES, PARTITION_METADATA, Kind
from kelr.sources.metadata_log.pieces import FileBytes, Holder, is_piece

QUORUM_STATE = "quorum-state"
_BESIDE = frozenset({QUORUM_STATE, LEADER_EPOCHS, PARTITION_METADATA})
"""Files of the metadata log's directory that are kept beside segments and checkpoints. Kafka makes indexes anew."""
_WHAT = "name a node's metadata.log.dir, or all of its log.dirs"


@dataclass(slots=True)
class _Node:
    """The directories of one node that were named."""

    directories: list[tuple[Path, MetaProperties]] = field(default_factory=list)


def collect_nodes(
    paths: Sequence[Path], *, host: str, progress: Progress | None = None, clock_ms: Callable[[], int]
) -> list[tuple[CollectedNode, Mapping[str, Holder]]]:
    """Each node whose directories these are, with the files of its metadata log.

    Raises:
        UsageError: none was named, or a path is no node's directory.
        BadInputError: one cannot be read.
    """
    nodes: dict[int, _Node] = {}
    for path in {path.resolve(): path for path in reversed(paths)}.values():
        properties = _properties(path)
        assert properties.broker is not None
        nodes.setdefault(properties.broker, _Node()).directories.append((path, properties))
    if not nodes:
        raise UsageError("no node's directory was named", next_step=_WHAT)
    return [_collected(node, nodes[node], host, progress, clock_ms) for node in sorted(nodes)]


def _properties(path: Path) -> MetaProperties:
    try:
        found = read_meta_properties(path)
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}", next_step=_WHAT) from error
    except GarbledError as error:
        raise BadInputError(f"{path / META_PROPERTIES}: {error}", next_step=_WHAT) from error
    if found is None or found.broker is None:
        raise UsageError(f"{path} is no node's directory: it has no {META_PROPERTIES} with a node id", next_step=_WHAT)
    return found


def _collected(
    node: int, found: _Node, host: str, progress: Progress | None, clock_ms: Callable[[], int]
) -> tuple[CollectedNode, Mapping[str, Holder]]:
    # The directory with the metadata log comes first; its id is that of the voter.
    ordered = sorted(found.directories, key=lambda one: not (one[0] / LOG_DIRECTORY).is_dir())
    first, properties = ordered[0]
    began_ms = clock_ms()
    running = is_running(path for path, _ in ordered)
    files = _files(first)
    disk = read_log_directories(
        [path for path, _ in ordered], checksums=False, broker=node, progress=progress, clock_ms=clock_ms
    )
    collected = CollectedNode(
        place=f"node-{node}",
        host=host,
        directories=tuple(str(path) for path, _ in ordered),
        node=node,
        cluster_id=properties.cluster_id,
        directory_id=properties.directory_id,
        running=running,
        read_at_ms=began_ms,
        files=(),
        replicas=tuple(
            DiskReplica(at.topic, at.partition, log.topic_id, log.newest_epoch, log.answer, log.directory)
            for at, log in disk.logs.items()
        ),
        set_aside=tuple(one.path for one in disk.unused if one.kind is not Kind.FUTURE),
        unread=tuple(one.path for one in disk.unreadable),
        problems=disk.warnings,
    )
    return collected, files


class _AsItIsNow:
    """A small file that a running node replaces by another under its name, whole at one moment. Raises OSError."""

    def __init__(self, path: Path) -> None:
        try:
            self._content = read_small(str(path))
        except GarbledError as error:
            raise OSError(0, str(error), str(path)) from error
        self.size_bytes = len(self._content)

    def read(self, at: int, size: int) -> bytes:
        return self._content[at : at + size]


def _files(directory: Path) -> Mapping[str, Holder]:
    """The files of a node's metadata log; segments first, as they are now, so that one that is rolled meanwhile is no
    gap."""
    inside = directory / LOG_DIRECTORY
    found: dict[str, Holder] = {}
    try:
        if not inside.is_dir():
            return found
        for name in sorted(os.listdir(inside)):
            if name in _BESIDE:
                found[f"{LOG_DIRECTORY}/{name}"] = _AsItIsNow(inside / name)
            elif is_piece(name):
                found[f"{LOG_DIRECTORY}/{name}"] = FileBytes(str(inside / name))
        found[META_PROPERTIES] = _AsItIsNow(directory / META_PROPERTIES)
    except OSError as error:
        raise BadInputError(
            f"{error.filename or inside} cannot be read: {error.strerror or error}",
            next_step="check who may read it; if the node runs, run kelr quorum collect again",
        ) from error
    return found
