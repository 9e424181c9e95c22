"""Small files and listings in a lake or among its inputs: on this machine, or on whatever Hadoop file system Spark has.

Rows go through Spark; this is for lists of files, the versions of a lake, and reports.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kelr.errors import BadInputError, KelrError, RefusedError, UnsupportedError
from kelr.fleet.folder import LOCK, Files, Listed, StillHeld
from kelr.fleet.reached import file_system, is_there, meant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Folders on a file system of Spark's: s3a, hdfs, gs and the like, through the session's JVM.

# A lock for file systems that have none: a file, which whoever holds it writes again every few seconds.
#
# A file that stays as it is for a minute is of a run that was killed. Whoever then takes it over cannot know whether
# that run only stood still: so it looks for its own mark once more before it makes anything of its own appear.


BEATS_EVERY_S = 10.0
STALE_AFTER_S = 60.0
"""Several beats: a long pause of a JVM is not the end of it."""
_READ_AGAIN, _READ_AGAIN_AFTER_S = 5, 0.2
"""An empty file is being written by somebody, or was left so."""


class Marks(Protocol):
    """The file of a lock."""

    @property
    def place(self) -> str:
        """The folder that it is for."""

    def first(self, mark: bytes) -> bool:
        """Write it where there is none; False where there is one."""

    def again(self, mark: bytes) -> None:
        """Write it in place of the one that is there, without a moment in which there is none."""

    def read(self) -> bytes | None:
        """None: there is none. While it is written it may be empty."""

    def delete(self) -> None:
        """Delete it."""


@contextmanager
def leased(
    marks: Marks, *, beat_s: float = BEATS_EVERY_S, stale_s: float = STALE_AFTER_S
) -> Iterator[Callable[[], None]]:
    """Hold a lock; yields what raises RefusedError if another run has taken it over.

    Args:
        beat_s: how often it is written again, in seconds.
        stale_s: how long one must have stood still to be taken over.

    Raises:
        RefusedError: another run holds it.
    """
    held = _Held(marks, uuid.uuid4().hex.encode(), stale_s)
    taken_over = not marks.first(held.mark(0))
    if taken_over:
        _watch(marks, beat_s, stale_s)
        if not marks.first(held.mark(0)):
            raise _busy(marks.place)

    def check() -> None:
        if not held.is_own():
            raise RefusedError(
                f"{marks.place}: this run has lost its lock: another one may have taken this lake over, because"
                " this one stood still; nothing of this one was taken",
                next_step="run it again",
            )

    ended = threading.Event()
    beating = threading.Thread(target=_beat, args=(held, ended, beat_s), daemon=True)
    beating.start()
    try:
        if taken_over:
            # Another run that waited for the same dead one may just have deleted this mark for that one's.
            ended.wait(beat_s)
            if not held.is_own():
                raise _busy(marks.place)
        check()
        yield check
    finally:
        ended.set()
        beating.join(BEATS_EVERY_S)  # a beat that is being written may take longer than the time between two
        with suppress(KelrError):  # the next run waits for a minute then, and what ended this one is what is told
            if not beating.is_alive() and held.is_own():
                marks.delete()


class _Held:
    """A lock that a run has, asked and written by one thread at a time: while one writes, the other finds it empty."""

    def __init__(self, marks: Marks, owner: bytes, stale_s: float) -> None:
        self._marks, self._owner, self._stale_s = marks, owner, stale_s
        self._turn = threading.Lock()
        self._written_s = time.monotonic()
        self._cut_short = False
        """The last write failed: it may have left the file empty."""

    def mark(self, count: int) -> bytes:
        """What this run writes the so manieth time."""
        return self._owner + b" %d" % count

    def is_own(self) -> bool:
        """Whether this run still has it. Raises KelrError where it cannot be read."""
        with self._turn:
            return self._is_own()

    def renewed(self, count: int) -> bool:
        """Write it again; False: this run has it no more. Raises KelrError where it cannot be read or written."""
        with self._turn:
            if not self._is_own():
                return False
            began_s, self._cut_short = time.monotonic(), True
            self._marks.again(self.mark(count))
            self._written_s, self._cut_short = began_s, False
            return True

    def _is_own(self) -> bool:
        mark = self._marks.read()
        for _ in range(_READ_AGAIN):
            if mark != b"":
                break
            time.sleep(_READ_AGAIN_AFTER_S)
            mark = self._marks.read()
        if mark == b"":
            # Left so by this run's own write, if nobody can have seen it stand still for long enough since.
            return self._cut_short and time.monotonic() - self._written_s < self._stale_s
        return mark is not None and mark.startswith(self._owner)


def _beat(held: _Held, ended: threading.Event, beat_s: float) -> None:
    count = 0
    while not ended.wait(beat_s):
        count += 1
        try:
            if not held.renewed(count):
                return  # taken over
        except KelrError:
            continue  # whoever holds it finds out before it makes anything appear


def _watch(marks: Marks, beat_s: float, stale_s: float) -> None:
    """Returns when nobody holds the lock any more: it has gone, or stood still, and was deleted."""
    seen, until = marks.read(), time.monotonic() + stale_s
    while time.monotonic() < until:
        time.sleep(min(beat_s / 2, stale_s))
        now = marks.read()
        if now is None:
            return
        if now != seen:
            raise _busy(marks.place)
    if marks.read() == seen:
        marks.delete()


def _busy(place: str) -> RefusedError:
    return RefusedError(
        f"{place}: another run of kelr fleet is changing this lake",
        next_step="wait until it has ended",
        code="lake-busy",
    )


# The file system itself.


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
    """The file of a folder's lock; see `kelr.fleet.files`."""

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
