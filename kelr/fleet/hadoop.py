"""Folders on a file system of Spark's: s3a, hdfs, gs and the like, through the session's JVM."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kelr.errors import KelrError
from kelr.fleet.folder import LOCK, Listed, StillHeld
from kelr.fleet.lease import leased
from kelr.fleet.reached import file_system, is_there, meant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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

    def write_new(self, path: str, content: bytes) -> None:
        if not self._do("written", path, lambda: self._put_new(path, content)):
            raise FileExistsError(path)

    def write(self, path: str, content: bytes) -> None:
        self._do("written", path, lambda: self._put_over(path, content))

    def delete(self, path: str) -> None:
        self._do("deleted", path, lambda: self._system.delete(self._path(path), False))

    def delete_below(self, folder: str) -> None:
        self._do("deleted", folder, lambda: self._system.delete(self._path(folder), True))

    @contextmanager
    def locked(self) -> Iterator[StillHeld]:
        with leased(_Mark(self)) as still_held:
            yield still_held

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

    def _put_new(self, path: str, content: bytes) -> bool:
        target = self._path(path)
        if self._system.exists(target):
            return False
        if not self._system.hasPathCapability(target, _CONDITIONAL):
            return self._renamed(content, target)
        stream = self._system.createFile(target).recursive().overwrite(True).must(_CONDITIONAL, "true").build()
        try:
            stream.write(bytearray(content))
            stream.close()
        except Exception as error:
            if is_there(error):
                return False
            raise
        return True

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


class _Mark:
    """The file of a folder's lock; see `kelr.fleet.lease`."""

    def __init__(self, files: HadoopFiles) -> None:
        self._files = files

    @property
    def place(self) -> str:
        return self._files.place

    def first(self, mark: bytes) -> bool:
        try:
            self._files.write_new(LOCK, mark)
        except FileExistsError:
            return False
        return True

    def again(self, mark: bytes) -> None:
        # In place: deleted and written anew, it would be away for a moment, and somebody else would take it.
        self._files._do("written", LOCK, lambda: self._files._create(self._files._path(LOCK), mark))

    def read(self) -> bytes | None:
        try:
            return self._files.read(LOCK)
        except FileNotFoundError:
            return None

    def delete(self) -> None:
        self._files.delete(LOCK)
