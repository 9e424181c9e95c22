"""Ports that several test runs side by side do not take from each other.

A port that was found free is bound a moment later, by a broker some seconds later, and a broker that is killed wants
its own again: until then any other process may have it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from kelr.lab import processes

SHARES = 12
"""How many test runs have ports of their own; further ones take any."""


def claim(directory: Path, *, first: int, last: int) -> tuple[int, range] | None:
    """A share of the ports from `first` to before `last`, which is this process's own while the descriptor is open;
    None where all are taken."""
    directory.mkdir(exist_ok=True)
    size = (last - first) // SHARES
    for number in range(SHARES):
        descriptor = os.open(directory / str(number), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            continue
        return descriptor, range(first + number * size, first + (number + 1) * size)
    return None


def keep_to_own_ports() -> None:
    """Labs that this process starts take ports of its share, until it ends."""
    directory = Path(tempfile.gettempdir()) / f"kelr-test-ports-{os.getuid()}"
    found = claim(directory, first=processes.FIRST_PORT, last=processes.LAST_PORT)
    if found is not None:
        processes.FIRST_PORT, processes.LAST_PORT = found[1].start, found[1].stop
