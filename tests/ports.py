"""Ports that several test runs side by side do not take from each other.

A port that was found free is bound a moment later, by a broker some seconds later, and a broker that is killed wants
its own again: until then any other process may have it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import IO

from kelr.lab import ports

SHARES = 6
"""How many test runs have ports of their own; further ones take any."""


def claim(directory: Path, *, first: int, last: int) -> tuple[IO[str], range] | None:
    """A share of the ports from `first` to before `last`, which is this process's own while the file is open; None
    where all are taken."""
    directory.mkdir(exist_ok=True)
    size = (last - first) // SHARES
    for number in range(SHARES):
        file = (directory / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        return file, range(first + number * size, first + (number + 1) * size)
    return None


def keep_to_own_ports() -> IO[str] | None:
    """Labs that this process starts take ports of its share, as long as the file that is returned is open."""
    directory = Path(tempfile.gettempdir()) / f"kelr-test-ports-{os.getuid()}"
    found = claim(directory, first=ports.FIRST_PORT, last=ports.LAST_PORT)
    if found is None:
        return None
    file, own = found
    ports.FIRST_PORT, ports.LAST_PORT = own.start, own.stop
    return file
