"""Files that workers open by themselves: on this machine, or in a store, through the client that delta-rs has for it.

Everything here raises OSError where a file cannot be read or written.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs

from kelr.fleet.folder import Listed
from kelr.sources.metadata_log.pieces import FileBytes, Holder

if TYPE_CHECKING:
    from deltalake.fs import DeltaStorageHandler

_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/]*)/*(.*)")
_CHUNK_BYTES = 16 * 1024 * 1024

Options = tuple[tuple[str, str], ...]
"""What a store's client needs beside what it finds in the environment (`kelr.fleet.delta.store_options`)."""


def is_local(path: str) -> bool:
    """Whether it is a path of this machine: one without a scheme."""
    return _REMOTE.match(path) is None


def holder(path: str, options: Options) -> Holder:
    """The bytes of a file."""
    return FileBytes(path) if is_local(path) else _StoreBytes(path, options)


@contextmanager
def on_disk(path: str, options: Options) -> Iterator[Path]:
    """A file of this machine with that content."""
    if is_local(path):
        yield Path(path)
        return
    content, at = holder(path, options), 0
    with tempfile.NamedTemporaryFile(prefix="kelr-", suffix=SAVED_AS) as file:
        while data := content.read(at, _CHUNK_BYTES):
            file.write(data)
            at += len(data)
        file.flush()
        yield Path(file.name)


SAVED_AS = ".kelr"
"""The suffix of a copy that `on_disk` has made."""


@contextmanager
def written(path: str, options: Options) -> Iterator[IO[bytes]]:
    """A new file, with the folders that it is in."""
    if is_local(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            yield file
        return
    handler, name = _client(path, options)
    with _StoreFile(handler._handler.open_output_stream(name)) as stream:
        yield stream  # type: ignore[misc]  # as far as Parquet's writer asks


def opened(path: str, options: Options) -> Any:
    """A file for random reads, as pyarrow takes it."""
    if is_local(path):
        return pa.memory_map(path)
    handler, name = _client(path, options)
    return pyarrow.fs.PyFileSystem(handler).open_input_file(name)


def listed(place: str, options: Options) -> Iterator[Listed]:
    """A file of a store, or all files below a folder of it, sorted."""
    handler, name = _client(place, options)
    files = pyarrow.fs.PyFileSystem(handler)
    root = place[: len(place) - len(name)] if name else place.rstrip("/") + "/"
    found = [files.get_file_info(name)] if name else []
    if not found or found[0].type != pyarrow.fs.FileType.File:
        found = files.get_file_info(pyarrow.fs.FileSelector(name, allow_not_found=True, recursive=True))
    for one in sorted(found, key=lambda one: one.path):
        if one.type == pyarrow.fs.FileType.File:
            yield Listed(root + one.path, one.size, (one.mtime_ns or 0) // 1_000_000)


def delete(path: str, options: Options) -> None:
    """Delete a file of a store; it is well if there is none."""
    handler, name = _client(path, options)
    with suppress(FileNotFoundError):
        handler.delete_file(name)


@cache
def _client_of(root: str, options: Options) -> DeltaStorageHandler:
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - readers of local files do without

    return DeltaStorageHandler(root, dict(options))


def _client(path: str, options: Options) -> tuple[DeltaStorageHandler, str]:
    found = _REMOTE.fullmatch(path)
    assert found is not None
    root = found[1] + "/" if found[1].endswith("//") else found[1]
    return _client_of(root, options), found[2].rstrip("/")


class _StoreBytes:
    """A file of a store, read by ranges."""

    def __init__(self, path: str, options: Options) -> None:
        self._file = opened(path, options)
        self.size_bytes: int = self._file.size()

    def read(self, at: int, size: int) -> bytes:
        self._file.seek(at)
        found: bytes = self._file.read(max(0, min(size, self.size_bytes - at)))
        return found


class _StoreFile:
    """A new file of a store, which appears when it is closed without an error."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._size = 0

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._stream.write(content)
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Nothing is seen of it before it is closed."""

    def close(self) -> None:
        """The content is whole when the block ends."""

    def __enter__(self) -> _StoreFile:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.closed = True
        if kind is None:
            self._stream.close()
