"""The file of ``kelr quorum collect``: a tar archive with nodes' copies of the metadata log, byte for byte, and a
manifest of what was read, with digests. Other commands take it as a ``--metadata-log``, too.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from kelr.durable import whole_file
from kelr.errors import BadInputError
from kelr.quorum.copies import DiskReplica
from kelr.recovery.json_file import STRICT, adapter, first_problem
from kelr.sources.disk.files import is_locked
from kelr.sources.metadata_log.pieces import FileBytes, Holder, RegionBytes

FORMAT = "kelr-quorum"
FORMAT_VERSION = 1
MANIFEST = "kelr-quorum.json"
LOG_DIRECTORY = "__cluster_metadata-0"
_MOST_MANIFEST_BYTES = 1024**3
_CHUNK_BYTES = 1024 * 1024
_AGAIN = "copy the file again, or collect anew with kelr quorum collect"


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """A file of a node's directory, by its path there."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CollectedNode:
    """What was read of one node."""

    place: str
    """Its folder in the archive."""
    host: str
    directories: tuple[str, ...]
    """As they were named; the first is that of its metadata log, where it has one."""
    node: int
    cluster_id: str | None
    directory_id: str | None
    running: bool | None
    read_at_ms: int
    files: tuple[CollectedFile, ...]
    """Empty: it has no metadata log in these directories."""
    replicas: tuple[DiskReplica, ...]
    set_aside: tuple[str, ...]
    unread: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a collection."""

    __pydantic_config__ = STRICT

    format: str
    version: int
    nodes: tuple[CollectedNode, ...]


class NamedBytes(Protocol):
    """A file to be put into the archive."""

    @property
    def name(self) -> str: ...

    @property
    def content(self) -> Holder: ...


@dataclass(frozen=True, slots=True)
class Archive:
    """A collection that was opened: its manifest, and the bytes of each file by (place, name)."""

    path: Path
    nodes: tuple[CollectedNode, ...]
    files: Mapping[tuple[str, str], Holder]


def digest_of(content: Holder) -> str:
    """SHA-256 of the bytes, as 64 hex digits. Raises OSError."""
    found, at = hashlib.sha256(), 0
    while data := content.read(at, _CHUNK_BYTES):
        found.update(data)
        at += len(data)
    return found.hexdigest()


def write_archive(
    nodes: Sequence[tuple[CollectedNode, Mapping[str, Holder]]], out: Path, *, overwrite: bool
) -> tuple[CollectedNode, ...]:
    """Save nodes with their files; gives the nodes with their digests.

    Raises:
        UsageError: the file exists already, or cannot be written.
        BadInputError: a node's file cannot be read.
    """
    with whole_file(out, "collection", overwrite=overwrite) as raw, tarfile.open(fileobj=raw, mode="w") as archive:
        written = tuple(_written(archive, node, files) for node, files in nodes)
        manifest = adapter(Manifest).dump_json(Manifest(FORMAT, FORMAT_VERSION, written), indent=1)
        archive.addfile(_member(MANIFEST, len(manifest)), io.BytesIO(manifest))
    return written


def _written(archive: tarfile.TarFile, node: CollectedNode, files: Mapping[str, Holder]) -> CollectedNode:
    found = []
    for name, content in sorted(files.items()):
        stream = _Hashed(content)
        try:
            archive.addfile(_member(f"{node.place}/{name}", content.size_bytes), stream)
        except OSError as error:
            what = f"{node.directories[0]}/{name}"
            raise BadInputError(
                f"{what} changed or went while it was read: {error.strerror or error}",
                next_step="run kelr quorum collect again",
            ) from error
        found.append(CollectedFile(name, content.size_bytes, stream.digest.hexdigest()))
    # One that ran at the beginning or at the end may have written meanwhile.
    locks = {node.running, is_running(map(Path, node.directories))}
    return replace(node, files=tuple(found), running=True if True in locks else None if None in locks else False)


def is_running(directories: Iterable[Path]) -> bool | None:
    """Whether a process holds the lock of one of a node's directories; None: that cannot be told."""
    locks = {is_locked(path) for path in directories}
    return True if True in locks else None if None in locks else False


def _member(name: str, size_bytes: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.mode = size_bytes, 0o600
    return made


class _Hashed(io.RawIOBase):
    """Bytes on their way into an archive, hashed as they go."""

    def __init__(self, content: Holder) -> None:
        self._content, self._at = content, 0
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._content.read(self._at, size if size >= 0 else self._content.size_bytes - self._at)
        self._at += len(data)
        self.digest.update(data)
        return data


def open_archive(path: Path) -> Archive:
    """Open a collection, and verify every digest.

    Raises:
        BadInputError: it is none, is cut short, or was changed.
    """
    try:
        whole = FileBytes(str(path))
        with path.open("rb") as raw:
            members = dict(_members(raw, whole))
    except OSError as error:
        raise BadInputError(
            f"{path} cannot be read: {error.strerror or error}", next_step="check the path, and who may read it"
        ) from error
    except tarfile.TarError as error:
        raise _not_one(path, str(error)) from error
    if MANIFEST not in members:
        raise _not_one(path, f"it has no {MANIFEST}, or is cut short")
    manifest = _manifest(path, members[MANIFEST])
    files: dict[tuple[str, str], Holder] = {}
    for node in manifest.nodes:
        for file in node.files:
            content = members.get(f"{node.place}/{file.name}")
            if content is None or content.size_bytes != file.size_bytes or digest_of(content) != file.sha256:
                raise BadInputError(f"{path}: {node.place}/{file.name} is not as it was collected", next_step=_AGAIN)
            files[node.place, file.name] = content
    return Archive(path, manifest.nodes, files)


def _members(raw: BinaryIO, whole: Holder) -> Iterator[tuple[str, Holder]]:
    with tarfile.open(fileobj=raw, mode="r:") as archive:
        for member in archive:
            if member.isreg() and member.offset_data + member.size <= whole.size_bytes:
                yield member.name, RegionBytes(whole, member.offset_data, member.size)


def _manifest(path: Path, content: Holder) -> Manifest:
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    if content.size_bytes > _MOST_MANIFEST_BYTES:
        raise _not_one(path, f"its manifest has {content.size_bytes:,} bytes")
    data = content.read(0, content.size_bytes)
    try:
        head = json.loads(data)
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise _not_one(path, "its manifest does not say so")
        if head.get("version") != FORMAT_VERSION:
            raise BadInputError(
                f"{path} is of format version {head.get('version')}, and this kelr reads {FORMAT_VERSION}",
                next_step="install a newer kelr",
                code="newer-format",
            )
        manifest: Manifest = adapter(Manifest).validate_json(data)
    except ValidationError as error:
        raise _not_one(path, f"{MANIFEST}: {first_problem(error, Manifest)}") from error
    except (ValueError, RecursionError) as error:
        raise _not_one(path, f"{MANIFEST}: {error}") from error
    return manifest


def _not_one(path: Path, why: str) -> BadInputError:
    return BadInputError(f"{path} is no collection of kelr quorum collect: {why}", next_step=_AGAIN)
