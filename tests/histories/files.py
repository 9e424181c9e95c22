"""A file system in memory, as strict as POSIX lets one be: what was not synced may be gone after a power cut.

A `Disk` is a host's. Each process has `Files` of its own on it: its descriptors, and its locks, end with it. What is in
a file and what is in a directory are each volatile until they are synced; of a new file, the name is another matter
than its content, and so are the names of the directories that lead to it.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from kelr.files import Files

BLOCK = 4096
_READS, _WRITES = (os.O_RDONLY, os.O_RDWR), (os.O_WRONLY, os.O_RDWR)


class Gone(BaseException):
    """The process has ended, or its machine: nothing of it runs any more."""


Seam = Callable[[str, Path], object]
"""Told of every call, and its path, before it does anything. What it raises the call raises; an `OSError` is an error
of the disk: an `fsync` has then done as much as before a power cut, and none will do the rest. A number that it returns
of a ``write`` is how many bytes are written, at least 1."""


@dataclass(slots=True)
class _Write:
    """Not synced yet: these bytes there, or, where they are None, this length."""

    at: int
    data: bytes | None

    def on(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.at :]
            content.extend(bytes(self.at - len(content)))
        else:
            content.extend(bytes(max(0, self.at - len(content))))
            content[self.at : self.at + len(self.data)] = self.data


@dataclass(slots=True, eq=False)
class _File:
    mode: int
    number: int
    content: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    writes: list[_Write] = field(default_factory=list)
    """Since it was synced."""
    names: int = 1
    locked_by: _Open | None = None

    def write(self, write: _Write) -> None:
        write.on(self.content)
        self.writes.append(write)

    def sync(self) -> None:
        for write in self.writes:
            write.on(self.synced)
        self.writes.clear()

    def cut(self, random: Random, *, blocks: bool) -> None:
        """What of it is on the disk when nothing more is written."""
        if not self.writes:
            return
        if blocks:
            self._keep_blocks(random)
        else:
            last = random.randrange(len(self.writes) + 1)
            if last < len(self.writes):
                torn = self.writes[last]
                self.writes[last:] = []
                if torn.data:
                    length = random.choice((0, random.randrange(len(torn.data))))
                    self.writes.append(_Write(torn.at, torn.data[:length]))
            self.sync()
        self.writes.clear()

    def _keep_blocks(self, random: Random) -> None:
        old = bytes(self.synced)
        for write in self.writes:
            write.on(self.synced)
        new = self.synced
        length = random.choice((len(old), len(new), random.randint(*sorted((len(old), len(new))))))
        self.synced = bytearray()
        for at in range(0, length, BLOCK):
            block = (old, new)[random.randrange(2)][at : at + BLOCK]
            self.synced += block + bytes(BLOCK - len(block))
        del self.synced[length:]


@dataclass(slots=True, eq=False)
class _Directory:
    mode: int
    number: int
    names: dict[str, _File | _Directory] = field(default_factory=dict)
    synced: dict[str, _File | _Directory] = field(default_factory=dict)
    changes: list[dict[str, _File | _Directory | None]] = field(default_factory=list)
    """Since it was synced: names with what each is of, None where it was taken away. One change is not torn."""

    def change(self, change: dict[str, _File | _Directory | None]) -> None:
        _change(self.names, change)
        self.changes.append(change)

    def sync(self) -> None:
        for change in self.changes:
            _change(self.synced, change)
        self.changes.clear()

    def cut(self, random: Random) -> None:
        self.changes = [change for change in self.changes if random.random() < 0.5]
        self.sync()


def _change(names: dict[str, _File | _Directory], change: dict[str, _File | _Directory | None]) -> None:
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


@dataclass(slots=True, eq=False)
class _Open:
    """What a descriptor is of."""

    node: _File | _Directory
    path: Path
    flags: int
    at: int = 0

    @property
    def access(self) -> int:
        return self.flags & os.O_ACCMODE


_NOTHING = _Open(_Directory(0, 0), Path(), 0)


class Disk:
    """The disk of one host.

    Args:
        random: all chance comes from it.
        blocks: a power cut leaves any of the blocks of 4 KiB that were not synced; else any beginning of what was
            written since.
        capacity: of all files together, in bytes; beyond that there is no space left.
    """

    umask = 0o022

    def __init__(self, random: Random, *, blocks: bool = False, capacity: int | None = None) -> None:
        self.random = random
        self.blocks = blocks
        self.capacity = capacity
        self._numbers = 1
        self._root = _Directory(stat.S_IFDIR | 0o755, 1)
        self._processes: list[MemoryFiles] = []

    def process(self, seam: Seam = lambda _call, _path: None) -> MemoryFiles:
        """The files of a new process."""
        files = MemoryFiles(self, seam)
        self._processes.append(files)
        return files

    def power_cut(self) -> None:
        """Every process is gone, and what was not synced may be."""
        for process in tuple(self._processes):
            process.exit()
        kept: dict[int, _File] = {}
        self._root = self._cut(self._root, kept)

    def synced(self, path: Path) -> bytes | None:
        """What a power cut is certain to leave of a file; None where it may leave no such name."""
        node: _File | _Directory | None = self._root
        for part in path.parts[1:]:
            node = node.synced.get(part) if isinstance(node, _Directory) else None
        return bytes(node.synced) if isinstance(node, _File) else None

    def _cut(self, directory: _Directory, kept: dict[int, _File]) -> _Directory:
        """The directory, and what it leads to, as it is found after a power cut."""
        directory.cut(self.random)
        found = _Directory(directory.mode, directory.number)
        for name, node in directory.synced.items():
            if isinstance(node, _Directory):
                found.synced[name] = self._cut(node, kept)
            else:
                if node.number not in kept:
                    node.cut(self.random, blocks=self.blocks)
                    kept[node.number] = _File(node.mode, node.number, bytearray(node.synced), node.synced, names=0)
                kept[node.number].names += 1
                found.synced[name] = kept[node.number]
        found.names = dict(found.synced)
        return found

    def _room(self) -> int | None:
        """Bytes that can be written yet; None: any number."""
        return None if self.capacity is None else max(0, self.capacity - _size(self._root))

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def _size(directory: _Directory) -> int:
    nodes = directory.names.values()
    return sum(_size(node) if isinstance(node, _Directory) else len(node.content) for node in nodes)


class MemoryFiles(Files):
    """The files of one process on a `Disk`. A path is absolute, and has no links in it."""

    def __init__(self, disk: Disk, seam: Seam) -> None:
        self._disk = disk
        self._seam = seam
        self._open: dict[int, _Open] = {}
        self._gone = False
        self.writing = b""
        """What was to be written last."""

    def exit(self) -> None:
        """The process has ended, in whatever way: its descriptors are closed, its locks given back."""
        self._gone = True
        for opened in self._open.values():
            _unlock(opened)
        self._open.clear()
        if self in self._disk._processes:
            self._disk._processes.remove(self)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        self._at("open", path)
        parent, name = self._place(path)
        node = parent.names.get(name) if name else parent
        if node is not None and flags & os.O_CREAT and flags & os.O_EXCL:
            raise _error(errno.EEXIST, path)
        if isinstance(node, _Directory) and (flags & os.O_CREAT or flags & os.O_ACCMODE in _WRITES):
            raise _error(errno.EISDIR, path)
        if node is None:
            if not flags & os.O_CREAT:
                raise _error(errno.ENOENT, path)
            self._need_room(path)
            node = _File(stat.S_IFREG | mode & ~self._disk.umask, self._disk._number())
            parent.change({name: node})
        elif flags & os.O_TRUNC and isinstance(node, _File):
            node.write(_Write(0, None))
        descriptor = 1_000_000 + self._disk._number()  # none of the real ones
        self._open[descriptor] = _Open(node, path, flags)
        return descriptor

    def close(self, descriptor: int) -> None:
        opened = self._opened("close", descriptor)
        _unlock(opened)
        del self._open[descriptor]

    def pread(self, descriptor: int, length: int, offset: int) -> bytes:
        opened = self._opened("pread", descriptor)
        file = _file(opened)
        if opened.access not in _READS:
            raise _error(errno.EBADF)
        return bytes(file.content[offset : offset + length])

    def write(self, descriptor: int, data: bytes) -> int:
        opened = self._of(descriptor)
        written = self._write(opened, data, opened.at)
        opened.at = len(_file(opened).content) if opened.flags & os.O_APPEND else opened.at + written
        return written

    def pwrite(self, descriptor: int, data: bytes, offset: int) -> int:
        return self._write(self._of(descriptor), data, offset)

    def _write(self, opened: _Open, data: bytes, at: int) -> int:
        self.writing = data
        told = self._at("write", opened.path)
        if opened.access not in _WRITES:
            raise _error(errno.EBADF)
        file = _file(opened)
        if opened.flags & os.O_APPEND:
            at = len(file.content)
        room = self._disk._room()
        if room is not None:
            data = data[: room + max(0, len(file.content) - at)]
            if not data:
                raise _error(errno.ENOSPC)
        if isinstance(told, int):
            data = data[: max(1, told)]
        if data:
            file.write(_Write(at, bytes(data)))
        return len(data)

    def ftruncate(self, descriptor: int, length: int) -> None:
        opened = self._opened("ftruncate", descriptor)
        if opened.access not in _WRITES or isinstance(opened.node, _Directory):
            raise _error(errno.EINVAL)
        opened.node.write(_Write(length, None))

    def fsync(self, descriptor: int) -> None:
        opened = self._of(descriptor)
        try:
            self._at("fsync", opened.path)
        except OSError:
            # What the disk has failed to take is clean to the kernel: the next fsync does not try again.
            _cut(opened.node, self._disk)
            raise
        opened.node.sync()

    def flock(self, descriptor: int, operation: int) -> None:
        opened = self._opened("flock", descriptor)
        assert operation == fcntl.LOCK_EX | fcntl.LOCK_NB, "nobody takes another lock"
        file = _file(opened)
        if file.locked_by not in {None, opened}:
            raise _error(errno.EWOULDBLOCK)
        file.locked_by = opened

    def fstat(self, descriptor: int) -> os.stat_result:
        return _status(self._opened("fstat", descriptor).node)

    def stat(self, path: Path) -> os.stat_result:
        self._at("stat", path)
        return _status(self._node(path))

    def listdir(self, path: Path) -> list[str]:
        self._at("listdir", path)
        node = self._node(path)
        if not isinstance(node, _Directory):
            raise _error(errno.ENOTDIR, path)
        return list(node.names)

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        self._at("mkdir", path)
        parent, name = self._place(path)
        if not name or name in parent.names:
            raise _error(errno.EEXIST, path)
        self._need_room(path)
        parent.change({name: _Directory(stat.S_IFDIR | mode & ~self._disk.umask, self._disk._number())})

    def chown(self, path: Path, uid: int, gid: int) -> None:  # noqa: ARG002 - nobody asks who owns a file
        self._at("chown", path)
        self._node(path)

    def link(self, source: Path, target: Path) -> None:
        self._at("link", target)
        node = self._node(source)
        parent, name = self._place(target)
        if not name or name in parent.names:
            raise _error(errno.EEXIST, target)
        if isinstance(node, _Directory):
            raise _error(errno.EPERM, source)
        node.names += 1
        parent.change({name: node})

    def replace(self, source: Path, target: Path) -> None:
        self._at("replace", target)
        node = self._node(source)
        (old_parent, old_name), (parent, name) = self._place(source), self._place(target)
        assert old_parent is parent, "nobody moves a file to another directory"
        there = parent.names.get(name)
        if there is node:
            return  # as POSIX has it: both names stay
        if isinstance(there, _Directory):
            raise _error(errno.EISDIR if isinstance(node, _File) else errno.ENOTEMPTY, target)
        if there is not None:
            if isinstance(node, _Directory):
                raise _error(errno.ENOTDIR, target)
            there.names -= 1
        parent.change({old_name: None, name: node})

    def unlink(self, path: Path) -> None:
        self._at("unlink", path)
        node = self._node(path)
        if isinstance(node, _Directory):
            raise _error(errno.EISDIR, path)
        node.names -= 1
        parent, name = self._place(path)
        parent.change({name: None})

    def realpath(self, path: Path) -> str:
        return str(path)

    def ismount(self, path: Path) -> bool:
        return path == Path("/")

    def reader(self, path: Path) -> io.BufferedReader:
        if isinstance(self._node(path), _Directory):
            raise _error(errno.EISDIR, path)
        return io.BufferedReader(_Raw(self, self.open(path, os.O_RDONLY)))

    def writer(self, descriptor: int) -> io.BufferedWriter:
        return io.BufferedWriter(_Raw(self, descriptor))

    def _at(self, call: str, path: Path) -> object:
        told = self._seam(call, path)
        if self._gone:
            raise Gone(call)
        return told

    def _opened(self, call: str, descriptor: int) -> _Open:
        opened = self._of(descriptor)
        self._at(call, opened.path)
        return opened

    def _of(self, descriptor: int) -> _Open:
        if descriptor not in self._open and not self._gone:
            raise _error(errno.EBADF)
        return self._open.get(descriptor, _NOTHING)

    def _need_room(self, path: Path) -> None:
        if self._disk._room() == 0:
            raise _error(errno.ENOSPC, path)

    def _node(self, path: Path) -> _File | _Directory:
        parent, name = self._place(path)
        node = parent.names.get(name) if name else parent
        if node is None:
            raise _error(errno.ENOENT, path)
        return node

    def _place(self, path: Path) -> tuple[_Directory, str]:
        """The directory that a name is in, and the name; none of the root."""
        assert path.is_absolute(), path
        at: _File | _Directory | None = self._disk._root
        for part in path.parts[1:-1]:
            if isinstance(at, _Directory):
                at = at.names.get(part)
        if at is None:
            raise _error(errno.ENOENT, path)
        if isinstance(at, _File):
            raise _error(errno.ENOTDIR, path)
        return at, path.parts[-1] if len(path.parts) > 1 else ""


class _Raw(io.RawIOBase):
    """A descriptor as Python's own files are."""

    def __init__(self, files: MemoryFiles, descriptor: int) -> None:
        self._files = files
        self._descriptor = descriptor
        self._opened = files._open[descriptor]

    def fileno(self) -> int:
        return self._descriptor

    def readable(self) -> bool:
        return self._opened.access in _READS

    def writable(self) -> bool:
        return self._opened.access in _WRITES

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._files.pread(self._descriptor, len(buffer), self._opened.at)
        buffer[: len(data)] = data
        self._opened.at += len(data)
        return len(data)

    def write(self, data: Any) -> int:
        return self._files.write(self._descriptor, bytes(data))

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        begin = (0, self._opened.at, self._files.fstat(self._descriptor).st_size)[whence]
        if begin + offset < 0:
            raise _error(errno.EINVAL)
        self._opened.at = begin + offset
        return self._opened.at

    def tell(self) -> int:
        return self._opened.at

    def close(self) -> None:
        if not self.closed:
            super().close()
            if not self._files._gone:
                self._files.close(self._descriptor)


def _file(opened: _Open) -> _File:
    if isinstance(opened.node, _Directory):
        raise _error(errno.EISDIR)
    return opened.node


def _cut(node: _File | _Directory, disk: Disk) -> None:
    if isinstance(node, _Directory):
        node.cut(disk.random)
    else:
        node.cut(disk.random, blocks=disk.blocks)


def _unlock(opened: _Open) -> None:
    if isinstance(opened.node, _File) and opened.node.locked_by is opened:
        opened.node.locked_by = None


def _status(node: _File | _Directory) -> os.stat_result:
    size, names = (0, 2) if isinstance(node, _Directory) else (len(node.content), node.names)
    return os.stat_result((node.mode, node.number, 1, names, os.geteuid(), os.getegid(), size, 0, 0, 0))


def _error(number: int, path: Path | None = None) -> OSError:
    return OSError(number, os.strerror(number), *([] if path is None else [str(path)]))
