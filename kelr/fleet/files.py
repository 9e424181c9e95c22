"""Small files and listings in a lake or among its inputs: on this machine, or on whatever Hadoop file system Spark has.

Rows go through Spark; this is for lists of files, small tables, and reports.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kelr.errors import BadInputError, KelrError
from kelr.fleet import stores
from kelr.fleet.folder import Files, Listed
from kelr.fleet.reached import file_system, meant
from kelr.fleet.stores import Options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Folders on a file system of Spark's: s3a, hdfs, gs and the like, through the session's JVM.

_CONDITIONAL = "fs.option.create.conditional.overwrite"
"""A file that appears when it is closed, if there is none then: object stores (Options.CreateFileOptionKeys)."""
T = TypeVar("T")


class HadoopFiles:
    """A folder there.

    Raises:
        UnsupportedError: Spark has no connector for it.
        ConnectError: it does not answer, or does not take the credentials.
        NotAuthorizedError: it may not be looked at.
        BadInputError: there is no such bucket.
    """

    def __init__(self, place: str, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        given = jvm.org.apache.hadoop.fs.Path(place)
        self._system = file_system(jvm, given, spark._jsc.hadoopConfiguration(), place)
        # Listings name files by scheme and authority, even where the place has none.
        self._root = self._system.makeQualified(given)
        self._root_path = str(self._root.toUri().getPath()).rstrip("/") + "/"

    @property
    def place(self) -> str:
        return str(self._root.toString())

    def exists(self) -> bool:
        return self._do("looked at", "", lambda: bool(self._system.exists(self._root)))

    def list(self, below: str = "") -> Iterator[Listed]:
        start = self._path(below) if below else self._root
        yield from sorted(self._do("listed", below, lambda: self._listed(start)), key=lambda one: one.path)

    def read(self, path: str) -> bytes:
        found = self._do("read", path, lambda: self._read(path))
        if found is None:
            raise FileNotFoundError(path)
        return found

    def write(self, path: str, content: bytes) -> None:
        self._do("written", path, lambda: self._put_over(path, content))

    def delete(self, path: str) -> None:
        self._do("deleted", path, lambda: self._system.delete(self._path(path), False))

    def delete_below(self, folder: str) -> None:
        self._do("deleted", folder, lambda: self._system.delete(self._path(folder), True))

    def _do(self, what: str, path: str, asked: Callable[[], T]) -> T:
        try:
            return asked()
        except KelrError:
            raise
        except Exception as error:
            place = f"{self.place.rstrip('/')}/{path}" if path else self.place
            raise meant(error, place, f"cannot be {what}") from error

    def _listed(self, start: Any) -> Sequence[Listed]:
        if not self._system.exists(start):
            return []
        found, files = [], self._system.listFiles(start, True)
        while files.hasNext():
            status = files.next()
            # By path alone: a listing may name the host otherwise than the place does.
            path = str(status.getPath().toUri().getPath()).removeprefix(self._root_path)
            whole = self.place if path == self._root_path.rstrip("/") else f"{self.place.rstrip('/')}/{path}"
            found.append(Listed(whole, status.getLen(), status.getModificationTime()))
        return found

    def _read(self, path: str) -> bytes | None:
        target = self._path(path)
        if not self._system.exists(target):
            return None
        stream = self._system.open(target)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def _put_over(self, path: str, content: bytes) -> None:
        target = self._path(path)
        if self._system.hasPathCapability(target, _CONDITIONAL):
            self._create(target, content)  # it appears when it is closed
            return
        while not self._renamed(content, target):
            self._system.delete(target, False)

    def _renamed(self, content: bytes, target: Any) -> bool:
        """Written elsewhere, and put where it belongs; False where something is there."""
        beside = self._path(f"_kelr/tmp/{uuid.uuid4().hex}")
        self._create(beside, content)
        try:
            self._system.mkdirs(target.getParent())
            renamed = bool(self._system.rename(beside, target))
        except Exception:
            self._system.delete(beside, False)
            raise
        if not renamed:
            self._system.delete(beside, False)
            if not self._system.exists(target):
                raise OSError("it cannot be given its name")
        return renamed

    def _create(self, target: Any, content: bytes) -> None:
        stream = self._system.create(target, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path)


_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://?")


def files_at(place: str, spark: SparkSession | None = None, options: Options = ()) -> Files:
    """The folder at a path or URI: through the session's JVM, if it has one here, else through delta-rs's client.

    Args:
        options: what that client is to know.

    Raises:
        UnsupportedError, ConnectError, NotAuthorizedError, BadInputError: as `HadoopFiles`, where that file system says
            no.
    """
    scheme = _SCHEME.match(place)
    if scheme is None:
        return LocalFiles(Path(place).absolute())
    if scheme[1] == "file":
        return LocalFiles(Path("/" + place.partition(":")[2].lstrip("/")))
    return StoreFiles(place, options) if spark is None or not hasattr(spark, "_jvm") else HadoopFiles(place, spark)


class StoreFiles:
    """In a store, through the client that delta-rs has for it."""

    def __init__(self, place: str, options: Options) -> None:
        self._place, self._options = place.rstrip("/"), options

    @property
    def place(self) -> str:
        return self._place

    def exists(self) -> bool:
        return next(self.list(), None) is not None

    def list(self, below: str = "") -> Iterator[Listed]:
        place = f"{self._place}/{below}" if below else self._place
        yield from self._do("listed", below, lambda: list(stores.listed(place, self._options)))

    def read(self, path: str) -> bytes:
        def read() -> bytes:
            content = stores.holder(f"{self._place}/{path}", self._options)
            return content.read(0, content.size_bytes)

        return self._do("read", path, read)

    def write(self, path: str, content: bytes) -> None:
        def write() -> None:
            with stores.written(f"{self._place}/{path}", self._options) as file:
                file.write(content)

        self._do("written", path, write)

    def delete(self, path: str) -> None:
        self._do("deleted", path, lambda: stores.delete(f"{self._place}/{path}", self._options))

    def delete_below(self, folder: str) -> None:
        for one in self.list(folder):
            self.delete(one.path.removeprefix(self._place + "/"))

    def _do(self, what: str, path: str, asked: Callable[[], T]) -> T:
        try:
            return asked()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise meant(error, f"{self._place}/{path}" if path else self._place, f"cannot be {what}") from error


class LocalFiles:
    """On this machine, or mounted on it.

    Args:
        unread: gets folders below it that cannot be listed, and why; None: they are errors.
    """

    def __init__(self, folder: Path, unread: dict[str, str] | None = None) -> None:
        self._folder, self._unread = folder, unread

    @property
    def place(self) -> str:
        return str(self._folder)

    def exists(self) -> bool:
        return self._folder.exists()

    def list(self, below: str = "") -> Iterator[Listed]:
        start = self._folder / below if below else self._folder
        try:
            found = [start] if start.is_file() else self._below(start)
        except OSError as error:  # a folder above it may not be entered
            self._cannot_be_listed(error)
            return
        for path in found:
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            except OSError as error:
                self._cannot_be_listed(error)
                continue
            if stat.S_ISREG(status.st_mode):
                yield Listed(str(path), status.st_size, status.st_mtime_ns // 1_000_000)

    def read(self, path: str) -> bytes:
        return (self._folder / path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        self._written(path, content).replace(self._folder / path)

    def delete(self, path: str) -> None:
        (self._folder / path).unlink(missing_ok=True)

    def delete_below(self, folder: str) -> None:
        shutil.rmtree(self._folder / folder, ignore_errors=True)

    def _below(self, folder: Path) -> Sequence[Path]:
        walked = os.walk(folder, onerror=self._cannot_be_listed)
        return sorted(Path(place, name) for place, _, names in walked for name in names)

    def _cannot_be_listed(self, error: OSError) -> None:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return  # it is not there, or was deleted meanwhile
        place, why = str(error.filename), error.strerror or str(error)
        if self._unread is None:
            raise BadInputError(f"{place} cannot be listed: {why}", next_step="check who may read it") from error
        self._unread[place] = f"it cannot be listed: {why}"

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
