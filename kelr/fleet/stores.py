"""Files that workers open by themselves: on this machine, or in a store, through the client that delta-rs has for it.

Everything here raises OSError where a file cannot be read or written; `meant` says what it means in plain words.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs

from kelr.errors import AuthenticationError, BadInputError, ConnectError, KelrError, NotAuthorizedError
from kelr.sources.metadata_log.pieces import FileBytes, Holder

if TYPE_CHECKING:
    from deltalake.fs import DeltaStorageHandler

_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://[^/]*)/*(.*)")
_CHUNK_BYTES = 16 * 1024 * 1024

Options = tuple[tuple[str, str], ...]
"""What a store's client needs beside what it finds in the environment (`kelr.fleet.delta.store_options`)."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file."""

    path: str
    """As Spark takes it."""
    size_bytes: int
    modified_ms: int


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


def ask(place: str, options: Options) -> None:
    """Ask a store whether there is anything at a place."""
    handler, name = _client(place, options)
    pyarrow.fs.PyFileSystem(handler).get_file_info(name or "/")


def file_system(place: str, options: Options) -> tuple[pyarrow.fs.FileSystem, str]:
    """The file system of a folder, as pyarrow takes it, and the folder in it."""
    if is_local(place):
        return pyarrow.fs.LocalFileSystem(), place
    handler, name = _client(place, options)
    return pyarrow.fs.PyFileSystem(handler), name


@cache
def _client_of(root: str, options: Options) -> DeltaStorageHandler:
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - readers of local files do without

    return DeltaStorageHandler(root, dict(options))


def _client(path: str, options: Options) -> tuple[DeltaStorageHandler, str]:
    found = _REMOTE.fullmatch(path)
    assert found is not None
    return _client_of(found[1] + "/" if found[1].endswith("//") else found[1], options), found[2].rstrip("/")


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

    def writelines(self, parts: Iterable[bytes]) -> None:
        for part in parts:
            self.write(part)

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


# What the errors of stores mean: delta-rs's client tells them in lines, Spark by Java's exceptions.


_NO_BUCKET = ("UnknownStoreException", "NoSuchBucket")
_CREDENTIALS = (
    *("NoAuthWithAWSException", "NoAwsCredentialsException", "CredentialInitializationException"),
    *("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "Unable to load credentials"),
    *("GSSException", "LoginException", "KerberosAuthException", "authentication is not enabled"),
    *("GSSAPI", "an error occurred while loading credentials"),
)
_DENIED = ("AccessControlException", "AccessDeniedException", "AccessDenied", "Permission denied", "Status Code: 403")
_SILENT = (
    *("UnknownHostException", "ConnectException", "ConnectTimeoutException", "SocketTimeoutException"),
    *("NoRouteToHostException", "ApiCallTimeoutException", "HttpHostConnectException", "Connection refused"),
    *("StandbyException", "Unable to execute HTTP request", "HttpConnectTimeoutException"),
    *("error sending request", "failed to lookup address"),
)
_UNKNOWN = ("Unknown scheme", "No object store", "No FileSystem for scheme", "ClassNotFoundException")
_NO_ROOM = ("Mkdirs failed", "ParentNotDirectory", "No space left", "QuotaExceeded")
SETTINGS = "check its address and its settings: --conf spark.hadoop.NAME=VALUE passes one on"
_DRAWN = re.compile(r"\x1b\[\d*m|\u21b3")
"""By which delta-rs shows that one line is the cause of the one above."""
_ANSWER = re.compile(r"<Code>(\w+)</Code><Message>([^<]*)")
"""What S3 answers, in that."""
_MOST_CAUSES = 10


def meant(error: Exception, place: str, what: str) -> KelrError:
    """What a store's error means.

    Args:
        what: happened for want of a better word, such as "cannot be read".
    """
    causes = _causes(error)
    if said := _said(causes, _NO_BUCKET):
        return BadInputError(f"{place}: there is no such bucket: {said}", next_step="make it, or check its name")
    if said := _said(causes, _CREDENTIALS):
        return AuthenticationError(f"{place}: the credentials are not taken: {said}", next_step=SETTINGS)
    if said := _said(causes, _DENIED):
        return NotAuthorizedError(
            f"{place} {what}: it is denied: {said}", next_step="check the credentials, and what they may do there"
        )
    if said := _said(causes, _SILENT):
        return ConnectError(f"{place} cannot be reached: {said}", next_step=SETTINGS)
    return BadInputError(f"{place} {what}: {_said(causes, ('',))}")


def not_written(error: Exception, place: str) -> KelrError | None:
    """What it means that Spark did not write rows; None where the place has no part in it."""
    words = (*_NO_BUCKET, *_CREDENTIALS, *_DENIED, *_NO_ROOM, *_UNKNOWN)
    return meant(error, place, "cannot be written") if _said(_causes(error), words) else None


def _said(causes: Sequence[str], words: tuple[str, ...]) -> str | None:
    """The first line in which one of these words is."""
    return next((line for line in causes if any(word in line for word in words)), None)


def _causes(error: Exception) -> list[str]:
    """Classes and words of an error of Java's, and of its causes, by lines; of delta-rs all in one."""
    java = getattr(error, "java_exception", None)
    said = [str(error)] if java is None else []
    while java is not None and len(said) < _MOST_CAUSES:
        name, words = str(java.getClass().getName()), java.getMessage()
        said.append(name if words is None else f"{name.rpartition('.')[2]}: {words}")
        java = java.getCause()
    lines = [line.strip() for one in said for line in _DRAWN.sub("", one).splitlines()]
    found = [line for line in lines if line and not line.startswith("at ")] or [type(error).__name__]
    if not _DRAWN.search("".join(said)):
        return found
    answer = _ANSWER.search("".join(found))
    return [": ".join(found) if answer is None else f"{answer[1]}: {answer[2]}"]
