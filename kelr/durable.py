"""Files that survive a crash: one that appears whole or not at all, and one that only grows.

Both are readable by their owner only. `AppendOnlyFile` holds one JSON object a line, each on the disk (fsync) before
`append` returns; a last line that a crash has torn is not part of the file. A process that is killed leaves such a line
without its end; a power cut may also leave zeros in place of any of its blocks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.files import FILES, Files

_OWNER_ONLY = 0o600
_OWNER_ONLY_DIRECTORY = 0o700
_READ_AT_ONCE = 64 * 1024
_MOST_DIGITS = 1000
"""No number that kelr writes has as many; Python's limit is above that."""


@contextlib.contextmanager
def whole_file(path: Path, what: str, *, overwrite: bool, files: Files = FILES) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is whole and on the disk.

    Args:
        what: what the file is, for the words of an error: ``snapshot``, ``plan``, ...
        overwrite: replace a file that is there already; where it is a link, the file that it leads to.

    Raises:
        UsageError: it exists and `overwrite` is not set, also where it appears meanwhile; or it cannot be written, or
            is no file: a device would be one for everybody no more.
    """
    if overwrite:
        path = Path(files.realpath(path))
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if files.exists(path):
            if not overwrite:
                raise _exists(path)
            if not files.is_file(path):
                raise UsageError(
                    f"cannot write the {what} {path}: it is no file", next_step="name a file", code="cannot-write"
                )
        with files.writer(files.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)) as raw:
            yield raw
            raw.flush()
            files.fsync(raw.fileno())
        _put_in_place(part, path, files, overwrite=overwrite)
    except OSError as error:
        raise UsageError(
            f"cannot write the {what} {path}: {error.strerror or error}",
            next_step="give a file in a directory that exists, can be written and has space",
            code="cannot-write",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            files.unlink(part)


class AppendOnlyFile:
    """A file of JSON lines that only grows, locked as long as it is open; use as a context manager or call `close`.

    Args:
        path: made with its directories where it is not there. A torn last line of an earlier crash is cut off first.

    Raises:
        UsageError: it cannot be opened or written.
        RefusedError: another process holds it open.
    """

    def __init__(self, path: Path, files: Files = FILES) -> None:
        self.path = path
        self._files = files
        try:
            make_directory(path.parent, files)
            self._descriptor = files.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _OWNER_ONLY)
        except OSError as error:
            raise _cannot_write(path, error) from error
        try:
            self._lock()
            self._settle_last_line()
            if not files.fstat(self._descriptor).st_size:
                _sync_names(path, files)
        except OSError as error:
            self.close()
            raise _cannot_write(path, error) from error
        except BaseException:
            self.close()
            raise

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write these objects, one a line, and return when they are on the disk.

        Each is there before the next is begun: a power cut leaves a torn last line, and none in the middle.

        Raises:
            UsageError: they could not be written; then none of them counts.
        """
        before = self._files.fstat(self._descriptor).st_size
        try:
            for record in records:
                line = (json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
                while line:
                    line = line[self._files.write(self._descriptor, line) :]
                self._files.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._files.ftruncate(self._descriptor, before)
            raise _cannot_write(self.path, error) from error

    def close(self) -> None:
        """Give the file, and its lock, back."""
        if self._descriptor >= 0:
            self._files.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _lock(self) -> None:
        try:
            self._files.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._held() from None
        # Whoever held it until now may have taken it away: a lock on a file without a name keeps nobody out.
        files, path = self._files, self.path
        if not files.exists(path) or not os.path.samestat(files.stat(path), files.fstat(self._descriptor)):
            raise self._held()

    def _held(self) -> RefusedError:
        return RefusedError(
            f"another kelr is at work: it holds {self.path}",
            next_step="wait until it has ended, then run kelr recover status",
            code="another-kelr",
        )

    def _settle_last_line(self) -> None:
        size = self._files.fstat(self._descriptor).st_size
        last = self._last_line(size)
        if last and is_torn(last):
            self._files.ftruncate(self._descriptor, size - len(last))
            self._files.fsync(self._descriptor)
        elif last:
            self._write_again(last, size - len(last))

    def _write_again(self, line: bytes, at: int) -> None:
        """Put the last line on the disk: the same bytes in the same place, which harms nothing.

        Where its fsync failed, and its writer was ended before it took the line back, it is in memory only, and no
        later fsync puts it on the disk: the kernel takes it for written.
        """
        files = self._files
        descriptor = files.open(self.path, os.O_WRONLY)  # through O_APPEND, Linux appends whatever the offset
        try:
            while line:
                written = files.pwrite(descriptor, line, at)
                line, at = line[written:], at + written
            files.fsync(descriptor)
        finally:
            files.close(descriptor)

    def _last_line(self, size: int) -> bytes:
        found, begin = b"", size
        while begin and b"\n" not in found[:-1]:
            begin = max(0, begin - _READ_AT_ONCE)
            found = self._files.pread(self._descriptor, size - begin, begin)
        return found[found.rfind(b"\n", 0, -1) + 1 :]


def read_lines(path: Path, what: str, files: Files = FILES) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of an `AppendOnlyFile` with their line numbers; a torn last line is left out.

    Raises:
        BadInputError: it cannot be read, or a line is no JSON object; names the line.
    """
    try:
        with files.reader(path) as file:
            for number, line in enumerate(file, start=1):
                if is_torn(line) and not file.peek(1):
                    return
                yield number, _object(line, path, number, what)
    except OSError as error:
        raise BadInputError(
            f"cannot read the {what} {path}: {error.strerror or error}", next_step="check the path and its permissions"
        ) from error


def files_of_lines(directory: Path, files: Files = FILES) -> tuple[Path, ...]:
    """The files of a directory that are called ``*.jsonl``, by name; none where it is not there."""
    names = files.listdir(directory) if files.exists(directory) else ()
    return tuple(directory / name for name in sorted(names) if name.endswith(".jsonl"))


def is_torn(last_line: bytes) -> bool:
    """Whether the last line of an `AppendOnlyFile` was not on the disk when the machine, or its writer, stopped.

    No line that is whole has a zero byte: JSON writes it as an escape.
    """
    return not last_line.endswith(b"\n") or b"\0" in last_line


def make_directory(path: Path, files: Files = FILES) -> None:
    """Make a directory and those of its parents that are missing, for the owner only. Raises OSError."""
    # Path.mkdir goes by the umask alone for parents.
    for one in reversed([one for one in (path, *path.parents) if not files.exists(one)]):
        with contextlib.suppress(FileExistsError):
            files.mkdir(one, _OWNER_ONLY_DIRECTORY)
    if not stat.S_ISDIR(files.stat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def keep_from_others(path: Path) -> None:
    """Leave a file or directory that is there to its owner alone, where that is who runs this.

    What everybody may write to on purpose, as to /tmp (sticky), stays as it is, and so does what a link leads to.
    """
    with contextlib.suppress(OSError):
        status = path.lstat()
        private = _OWNER_ONLY_DIRECTORY if stat.S_ISDIR(status.st_mode) else _OWNER_ONLY
        shared = status.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
        if shared and status.st_uid == os.geteuid() and not (status.st_mode & stat.S_ISVTX or path.is_symlink()):
            path.chmod(private)


def _sync_directory(path: Path, files: Files) -> None:
    """Put the names in a directory on the disk. Raises OSError."""
    descriptor = files.open(path, os.O_RDONLY)
    try:
        files.fsync(descriptor)
    finally:
        files.close(descriptor)


def _sync_names(path: Path, files: Files) -> None:
    """Put the name of a file on the disk, and those of the directories that lead to it.

    Not only of those that were made just now: whoever made one may have been killed before it was on the disk.
    """
    for directory in Path(files.realpath(path)).parents:
        try:
            _sync_directory(directory, files)
        except PermissionError:  # who may not read it has not made what is in it
            return
        if files.ismount(directory):
            return


class LongNumberError(ValueError):
    """A document has a number of thousands of digits."""

    def __init__(self, digits: str) -> None:
        super().__init__(f"the number {digits[:20]}... has {len(digits):,} digits")
        self.digits = digits


def json_integer(digits: str) -> int:
    """A ``parse_int`` for `json.loads`. Raises LongNumberError where Python would speak of limits of its own."""
    if len(digits) > _MOST_DIGITS:
        raise LongNumberError(digits)
    return int(digits)


def _object(line: bytes, path: Path, number: int, what: str) -> dict[str, Any]:
    try:
        found = json.loads(line, parse_int=json_integer)
    except ValueError as error:
        raise _garbled(path, number, what, str(error)) from error
    if not isinstance(found, dict):
        raise _garbled(path, number, what, "not an object")
    return found


def _garbled(path: Path, number: int, what: str, why: str) -> BadInputError:
    return BadInputError(
        f"{path}, line {number}: garbled {what}: {why}",
        next_step="find out who changed it: kelr writes whole lines; mend that one, or move the file away",
        code="record-garbled",
    )


def _put_in_place(part: Path, path: Path, files: Files, *, overwrite: bool) -> None:
    if overwrite:
        files.replace(part, path)
    else:
        try:
            files.link(part, path)  # unlike a rename, never takes the place of a file that has just appeared
        except FileExistsError:
            raise _exists(path) from None
    _sync_directory(path.parent, files)


def _exists(path: Path) -> UsageError:
    return UsageError(
        f"{path} exists already", next_step="give another name, or --overwrite to replace it", code="file-exists"
    )


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"cannot write {path}: {error.strerror or error}",
        next_step="free space or give another directory with KELR_STATE_DIR; nothing goes on without its record",
        code="cannot-write",
    )
