"""The file system that kelr's own files are on: the few calls of `os` that they take, in one object.

Tests give one that is in memory, and that a power cut leaves as one leaves a disk.
"""

from __future__ import annotations

import fcntl
import os
from io import BufferedReader, BufferedWriter
from pathlib import Path
from stat import S_ISREG


class Files:
    """Every call is that of `os` (of `fcntl`, of `os.path`) of the same name, errors included."""

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    write = staticmethod(os.write)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    flock = staticmethod(fcntl.flock)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.stat)
    listdir = staticmethod(os.listdir)
    mkdir = staticmethod(os.mkdir)
    chown = staticmethod(os.chown)
    link = staticmethod(os.link)
    replace = staticmethod(os.replace)
    unlink = staticmethod(os.unlink)
    realpath = staticmethod(os.path.realpath)
    ismount = staticmethod(os.path.ismount)

    def reader(self, path: Path) -> BufferedReader:
        """A file, open to be read."""
        return path.open("rb")

    def writer(self, descriptor: int) -> BufferedWriter:
        """A file that is open to be written, with a buffer before it; closes it."""
        return os.fdopen(descriptor, "wb")

    def is_file(self, path: Path) -> bool:
        """Whether it leads to a regular file. Raises OSError where that cannot be known."""
        return self.exists(path) and S_ISREG(self.stat(path).st_mode)

    def exists(self, path: Path) -> bool:
        """Whether there is anything of that name. Raises OSError where that cannot be known."""
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True


FILES = Files()
"""Those of this machine."""
