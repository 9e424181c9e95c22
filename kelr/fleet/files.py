"""Small files and listings in a lake or among its inputs: on this machine, or on whatever Hadoop file system Spark has.

Rows go through Spark; this is for lists of files, the versions of a lake, and reports.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import BadInputError, RefusedError, UnsupportedError
from kelr.fleet.folder import LOCK, Files, Listed, StillHeld
from kelr.fleet.hadoop import HadoopFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://?")


def files_at(place: str, spark: SparkSession | None = None) -> Files:
    """The folder at a path or URI.

    Raises:
        UnsupportedError: the place is on another file system, and the session is none that reaches it.
        ConnectError, NotAuthorizedError, BadInputError: as `HadoopFiles`, where that file system says no.
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
    def locked(self) -> Iterator[StillHeld]:
        import fcntl  # noqa: PLC0415 - there is none on Windows, where nothing else of this is needed

        path = self._folder / LOCK
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
            yield lambda: None  # the system takes it back when the process ends, and no sooner

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
