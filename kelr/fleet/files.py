"""Small files and listings in a lake or among its inputs: on this machine, or on whatever Hadoop file system Spark has.

Rows go through Spark; this is for lists of files, the versions of a lake, and reports.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kelr.errors import BadInputError, RefusedError, UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://?")
_LOCK = "_kelr/lock"


@dataclass(frozen=True, slots=True)
class Listed:
    """A file."""

    path: str
    """As Spark takes it."""
    size_bytes: int
    modified_ms: int


class Files(Protocol):
    """A folder and everything below it. Paths are relative to it, with ``/``."""

    @property
    def place(self) -> str:
        """The folder as Spark takes it."""

    def list(self, below: str = "") -> Iterator[Listed]:
        """All files below a folder, sorted; none where there is no such folder. Hidden ones (``_x``, ``.x``) are among
        them."""

    def read(self, path: str) -> bytes:
        """A small file. Raises FileNotFoundError."""

    def write_new(self, path: str, content: bytes) -> None:
        """A file that appears whole. Raises FileExistsError where there is one already."""

    def write(self, path: str, content: bytes) -> None:
        """A file that appears whole, in place of the one that is there."""

    def delete(self, path: str) -> None:
        """Delete a file; it is well if there is none."""

    def delete_below(self, folder: str) -> None:
        """Delete a folder with all that is in it; it is well if there is none."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other runs away from changing the folder. Raises RefusedError where one is at it."""


def files_at(place: str, spark: SparkSession | None = None) -> Files:
    """The folder at a path or URI.

    Raises:
        UnsupportedError: the place is on another file system, and the session is none that reaches it.
    """
    scheme = _SCHEME.match(place)
    if scheme is None:
        return LocalFiles(Path(place).absolute())
    if scheme[1] == "file":
        return LocalFiles(Path("/" + place.partition(":")[2].lstrip("/")))
    if spark is None or not hasattr(spark, "_jvm"):
        raise UnsupportedError(
            f"{place}: only a Spark session of this process reaches {scheme[1]}://, a Spark Connect client does not",
            next_step="start it with spark-submit or --master",
        )
    return HadoopFiles(place, spark)


class LocalFiles:
    """On this machine, or mounted on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def place(self) -> str:
        return str(self._folder)

    def list(self, below: str = "") -> Iterator[Listed]:
        start = self._folder / below if below else self._folder
        found = [start] if start.is_file() else sorted(path for path in start.rglob("*") if path.is_file())
        for path in found:
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            yield Listed(str(path), status.st_size, status.st_mtime_ns // 1_000_000)

    def read(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def write_new(self, path: str, content: bytes) -> None:
        whole = self._written(path, content)
        try:
            os.link(whole, self._folder / path)
        finally:
            whole.unlink()

    def write(self, path: str, content: bytes) -> None:
        self._written(path, content).replace(self._folder / path)

    def delete(self, path: str) -> None:
        (self._folder / path).unlink(missing_ok=True)

    def delete_below(self, folder: str) -> None:
        shutil.rmtree(self._folder / folder, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        import fcntl  # noqa: PLC0415 - there is none on Windows, where nothing else of this is needed

        path = self._folder / _LOCK
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a")
        except OSError as error:
            raise BadInputError(f"{self._folder} cannot be written: {error.strerror or error}") from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RefusedError(
                    f"{self._folder}: another run of kelr fleet is changing this lake",
                    next_step="wait until it has ended",
                    code="lake-busy",
                ) from None
            yield

    def _written(self, path: str, content: bytes) -> Path:
        """The content beside where it belongs, on the disk."""
        target = self._folder / path
        beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadInputError(f"{target} cannot be written: {error.strerror or error}") from error
        return beside


class HadoopFiles:
    """On a file system of Spark's: s3a, hdfs, gs and the like, through the session's JVM.

    There is no lock: of two runs at the same time the second finds its version taken, and changes nothing.
    """

    def __init__(self, place: str, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._root = jvm.org.apache.hadoop.fs.Path(place)
        try:
            self._system = self._root.getFileSystem(spark._jsc.hadoopConfiguration())
        except Exception as error:
            raise UnsupportedError(
                f"{place}: Spark does not reach this file system: {_reason(error)}",
                next_step="give Spark its connector, such as --packages org.apache.hadoop:hadoop-aws:...",
            ) from error

    @property
    def place(self) -> str:
        return str(self._root.toString())

    def list(self, below: str = "") -> Iterator[Listed]:
        start = self._path(below) if below else self._root
        if not self._system.exists(start):
            return
        found, files = [], self._system.listFiles(start, True)
        while files.hasNext():
            status = files.next()
            found.append(Listed(str(status.getPath().toString()), status.getLen(), status.getModificationTime()))
        yield from sorted(found, key=lambda one: one.path)

    def read(self, path: str) -> bytes:
        target = self._path(path)
        if not self._system.exists(target):
            raise FileNotFoundError(path)
        stream = self._system.open(target)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def write_new(self, path: str, content: bytes) -> None:
        if self._system.exists(self._path(path)):
            raise FileExistsError(path)
        self._put(path, content, over=False)

    def write(self, path: str, content: bytes) -> None:
        self._put(path, content, over=True)

    def delete(self, path: str) -> None:
        self._system.delete(self._path(path), False)

    def delete_below(self, folder: str) -> None:
        self._system.delete(self._path(folder), True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        yield

    def _put(self, path: str, content: bytes, *, over: bool) -> None:
        beside = self._path(f"_kelr/tmp/{uuid.uuid4().hex}")
        target = self._path(path)
        try:
            stream = self._system.create(beside, True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()
            self._system.mkdirs(target.getParent())
            if over:
                self._system.delete(target, False)
            renamed = self._system.rename(beside, target)
        except Exception as error:
            raise BadInputError(f"{self.place}/{path} cannot be written: {_reason(error)}") from error
        if not renamed:
            self._system.delete(beside, False)
            raise FileExistsError(path)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path)


def _reason(error: Exception) -> str:
    """The first line of what Java says."""
    java = getattr(error, "java_exception", None)
    return str(error if java is None else java.getMessage()).partition("\n")[0]
