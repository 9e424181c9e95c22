"""Folders: of a lake, of inputs, of a report; on this machine, or in a store.

Rows go through Spark or pyarrow; this is for lists of files, small tables, and reports.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from kelr.apart import within
from kelr.errors import BadInputError, ConnectError, UnsupportedError
from kelr.fleet import stores
from kelr.fleet.stores import SETTINGS, Listed, Options, meant

T = TypeVar("T")
ANSWERS_WITHIN_S = 45.0


class Files(Protocol):
    """A folder and everything below it. Paths are relative to it, with ``/``.

    Whatever is done there raises, where the file system does not do it: BadInputError, NotAuthorizedError (it is
    denied), or ConnectError (it does not answer, or does not take the credentials).
    """

    @property
    def place(self) -> str:
        """The folder as Spark takes it."""

    def exists(self) -> bool:
        """Whether there is such a folder, or file."""

    def list(self, below: str = "") -> Iterator[Listed]:
        """All files below a folder, sorted; none where there is no such folder. Hidden ones (``_x``, ``.x``) are among
        them."""

    def read(self, path: str) -> bytes:
        """A small file. Raises FileNotFoundError."""

    def write(self, path: str, content: Iterable[bytes]) -> None:
        """A file that appears whole, in place of the one that is there."""


_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*)://?")


def files_at(place: str, options: Options = ()) -> Files:
    """The folder at a path or URI.

    Args:
        options: what the store's client is to know.

    Raises:
        UnsupportedError, ConnectError, NotAuthorizedError, BadInputError: the store says no, or does not answer.
    """
    scheme = _SCHEME.match(place)
    if scheme is None:
        return LocalFiles(Path(place).absolute())
    if scheme[1] == "file":
        return LocalFiles(Path("/" + place.partition(":")[2].lstrip("/")))
    _reach(place, options)
    return StoreFiles(place, options)


_reached: set[str] = set()
"""Stores that have answered."""


def _reach(place: str, options: Options) -> None:
    """Wait for a store's first answer, but not for ever: a name node may never say anything."""
    name = "/".join(place.split("/")[:3])
    if name in _reached:
        return
    try:
        within(ANSWERS_WITHIN_S, lambda: stores.ask(place, options))
    except TimeoutError:
        why = f"{place} cannot be reached: no answer within {ANSWERS_WITHIN_S:.0f} s"
        raise ConnectError(why, next_step=SETTINGS) from None
    except Exception as error:
        if "Unknown scheme" in str(error):
            raise UnsupportedError(f"{place}: delta-rs has no client for this file system") from None
        raise meant(error, place, "cannot be looked at") from error
    _reached.add(name)


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

    def write(self, path: str, content: Iterable[bytes]) -> None:
        def write() -> None:
            with stores.written(f"{self._place}/{path}", self._options) as file:
                file.writelines(content)

        self._do("written", path, write)

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

    def write(self, path: str, content: Iterable[bytes]) -> None:
        self._written(path, content).replace(self._folder / path)

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

    def _written(self, path: str, content: Iterable[bytes]) -> Path:
        """The content beside where it belongs, on the disk."""
        target = self._folder / path
        beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with beside.open("wb") as file:
                file.writelines(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadInputError(f"{target} cannot be written: {error.strerror or error}") from error
        return beside
