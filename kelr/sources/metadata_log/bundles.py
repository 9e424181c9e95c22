"""Metadata logs in support bundles: tar (plain, gzip, Zstandard) and zip archives.

Names in an archive are never used as names of files: what is wanted comes into files without a name. An archive that
unpacks to more than `MOST_UNPACKED_BYTES` is not read on.
"""

from __future__ import annotations

import gzip
import mmap
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Self

from kelr.errors import BadInputError
from kelr.sources.disk.files import GarbledError, MetaProperties, meta_properties
from kelr.sources.disk.names import META_PROPERTIES, METADATA_TOPIC, printable, replica_name
from kelr.sources.metadata_log.pieces import Copy, FileBytes, Holder, RegionBytes, UnpackedBytes, is_piece

MOST_UNPACKED_BYTES = 16 * 1024**3
"""Of one archive. A gzip stream can be a thousand times smaller than what comes out of it."""
DIRECTORY = f"{METADATA_TOPIC}-0"

_MOST_HEADER_BYTES = 1024 * 1024
"""Of a long name, or of a pax header: they are read into memory."""
_MOST_PROPERTIES_BYTES = 64 * 1024
_LONG_HEADERS = frozenset({tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE})
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK"
_TAR_AT, _TAR = 257, b"ustar"
_FIRST_ZSTD_BYTES = 256 * 1024 * 1024
_HINT = "unpack it, and give the directory"


@dataclass(slots=True)
class Bundle:
    """What an archive holds of metadata logs."""

    path: Path
    copies: list[Copy] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Found:
    """The files of interest by the directory that holds them."""

    pieces: dict[str, dict[str, Holder]] = field(default_factory=dict)
    properties: dict[str, MetaProperties] = field(default_factory=dict)


def is_bundle(path: Path) -> bool:
    """Whether the file is an archive, by its first bytes. Raises OSError."""
    return _kind(FileBytes(str(path))) is not None


def open_bundle(path: Path) -> Bundle:
    """The metadata logs in an archive.

    Raises:
        BadInputError: it is garbled from its beginning, or unpacks to too much.
        OSError: it cannot be read, or there is no room to unpack it.
    """
    content = FileBytes(str(path))
    kind, bundle, found = _kind(content), Bundle(path), _Found()
    try:
        if kind == "zip":
            _read_zip(bundle, found)
        elif kind == "tar":
            _read_tar(bundle, found, content)
        elif kind == "zstd":
            _read_tar(bundle, found, _unzstd(path))
        else:
            with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as stream:
                _read_stream(bundle, found, stream)
    except (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError) as error:
        if not found.pieces:
            raise BadInputError(f"{path} cannot be unpacked: {error}", next_step="copy the archive again") from error
        bundle.warnings.append(f"{path} is cut short or garbled ({error}): files that come later in it are not read")
    bundle.copies = list(_copies(bundle, found))
    return bundle


def _kind(content: Holder) -> str | None:
    head = content.read(0, _TAR_AT + len(_TAR))
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD):
        return "zstd"
    if head.startswith((_ZIP + b"\x03\x04", _ZIP + b"\x05\x06")):
        return "zip"
    return "tar" if head[_TAR_AT:] == _TAR else None


def _copies(bundle: Bundle, found: _Found) -> Iterator[Copy]:
    """Those in directories of the metadata log's name; where there is none, any other pieces."""
    named = [directory for directory in found.pieces if PurePosixPath(directory).name == DIRECTORY]
    for directory in sorted(named or found.pieces):
        copy = Copy(f"{bundle.path}:{printable(directory)}")
        parent = str(PurePosixPath(directory).parent)
        told = found.properties.get(directory) or found.properties.get(parent if directory else "")
        if told is not None:
            copy.cluster_id, copy.node = told.cluster_id, told.broker
        for name, content in found.pieces[directory].items():
            copy.add(name, f"{copy.place}/{name}", content)
        yield copy


def _wanted(name: str) -> tuple[str, str] | None:
    """(directory, file name) of a member that may be of a metadata log, or tell whose it is."""
    path = PurePosixPath(name)
    parent = path.parent
    if path.name == META_PROPERTIES or (
        is_piece(path.name) and (parent.name == DIRECTORY or replica_name(parent.name) is None)
    ):
        return str(parent), path.name
    return None


def _keep(bundle: Bundle, found: _Found, place: tuple[str, str], content: Holder) -> None:
    directory, name = place
    if name != META_PROPERTIES:
        found.pieces.setdefault(directory, {})[name] = content
        return
    try:
        found.properties[directory] = meta_properties(content.read(0, _MOST_PROPERTIES_BYTES))
    except GarbledError as error:
        bundle.warnings.append(f"{bundle.path}:{printable(directory)}/{name}: {error}")


# Tar.


class _Member(tarfile.TarInfo):
    """A header, looked at before what it announces is read into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        made = super().frombuf(buf, encoding, errors)
        if made.type in _LONG_HEADERS and made.size > _MOST_HEADER_BYTES:
            raise tarfile.TarError(f"a header of {made.size} bytes")
        if made.size < 0:
            raise tarfile.TarError("a member of negative size")
        return made


def _read_tar(bundle: Bundle, found: _Found, content: Holder) -> None:
    """A plain tar archive: its members are read where they lie."""
    with _File(content) as file, tarfile.open(fileobj=file, mode="r:", tarinfo=_Member) as archive:  # type: ignore[call-overload]
        for member in archive:
            place = _wanted(member.name)
            if place is None or not member.isreg():
                continue
            if member.issparse():
                bundle.warnings.append(f"{bundle.path}:{printable(member.name)} is stored as a sparse file: not read")
                continue
            if member.offset_data + member.size > content.size_bytes:
                raise tarfile.TarError(f"{printable(member.name)} is cut short")
            _keep(bundle, found, place, RegionBytes(content, member.offset_data, member.size))
        _check_end(content.read(archive.offset, _MOST_HEADER_BYTES))


def _read_stream(bundle: Bundle, found: _Found, stream: gzip.GzipFile) -> None:
    """A compressed tar archive, from its beginning to its end, once."""
    bounded = _Bounded(bundle.path, stream)
    with tarfile.open(fileobj=bounded, mode="r|", tarinfo=_Member) as archive:  # type: ignore[call-overload]
        for member in archive:
            archive.members = []  # kept by tarfile, however many there are
            place = _wanted(member.name)
            if place is None or not member.isreg():
                continue
            inside = archive.extractfile(member)
            assert inside is not None
            unpacked = UnpackedBytes.copied(inside, MOST_UNPACKED_BYTES)
            if unpacked is None or unpacked.size_bytes < member.size:
                raise tarfile.TarError(f"{printable(member.name)} is cut short")
            _keep(bundle, found, place, unpacked)
    _check_end(bounded.read(_MOST_HEADER_BYTES))


def _check_end(rest: bytes) -> None:
    """Behind the last member there is nothing but zeros: tarfile takes a garbled header for the end."""
    if any(rest):
        raise tarfile.TarError("a garbled header")


class _File:
    """Bytes as a file, for tarfile."""

    def __init__(self, content: Holder) -> None:
        self._content, self._at = content, 0

    def read(self, size: int = -1) -> bytes:
        found = self._content.read(self._at, self._content.size_bytes if size < 0 else size)
        self._at += len(found)
        return found

    def seek(self, at: int, whence: int = os.SEEK_SET) -> int:
        self._at = (
            at if whence == os.SEEK_SET else (self._at if whence == os.SEEK_CUR else self._content.size_bytes) + at
        )
        return self._at

    def tell(self) -> int:
        return self._at

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


class _Bounded:
    """A stream that ends in an error before it has given too much."""

    def __init__(self, path: Path, stream: gzip.GzipFile) -> None:
        self._path, self._stream, self._left = path, stream, MOST_UNPACKED_BYTES

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _too_much(self._path)
        return data


def _too_much(path: Path) -> BadInputError:
    return BadInputError(f"{path} unpacks to more than {MOST_UNPACKED_BYTES // 1024**3} GiB", next_step=_HINT)


def _unzstd(path: Path) -> Holder:
    """What a Zstandard file holds, in a file without a name that has room for more and more.

    Raises:
        BadInputError: it is garbled, or there is too much of it.
    """
    from cramjam import DecompressionError, zstd  # noqa: PLC0415 - only for such archives

    free = shutil.disk_usage(tempfile.gettempdir()).free // 2
    room = _FIRST_ZSTD_BYTES
    while True:
        room = min(room, free, MOST_UNPACKED_BYTES)
        unpacked = UnpackedBytes()
        os.ftruncate(unpacked.descriptor, room)
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as source,
            mmap.mmap(unpacked.descriptor, room) as target,
        ):
            try:
                unpacked.size_bytes = int(zstd.decompress_into(source, target))
            except DecompressionError as error:
                if "whole buffer" not in str(error):
                    raise BadInputError(
                        f"{path} cannot be unpacked: {error}", next_step="copy the archive again"
                    ) from error
            else:
                return unpacked
        if room >= MOST_UNPACKED_BYTES:
            raise _too_much(path)
        if room >= free:
            raise BadInputError(
                f"{path} unpacks to more than there is room for in {tempfile.gettempdir()}", next_step=_HINT
            )
        room *= 4


# Zip.


def _read_zip(bundle: Bundle, found: _Found) -> None:
    left = MOST_UNPACKED_BYTES
    with zipfile.ZipFile(bundle.path) as archive:
        for member in archive.infolist():
            place = None if member.is_dir() else _wanted(member.filename)
            if place is None:
                continue
            shown = f"{bundle.path}:{printable(member.filename)}"
            try:
                with archive.open(member) as inside:
                    unpacked = UnpackedBytes.copied(inside, left)
            except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
                # One member that is encrypted or garbled says nothing of the others.
                bundle.warnings.append(f"{shown} cannot be unpacked: {error}")
                continue
            if unpacked is None:
                raise _too_much(bundle.path)
            left -= unpacked.size_bytes
            _keep(bundle, found, place, unpacked)
