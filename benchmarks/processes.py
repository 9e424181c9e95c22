"""How long a command takes as a whole process, and how much memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

_MEASURE = """
import os, sys, time
nowhere = os.open(os.devnull, os.O_RDWR)
actions = [(os.POSIX_SPAWN_DUP2, nowhere, stream) for stream in (0, 1, 2)]
began = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=actions)
_, status, usage = os.wait4(pid, 0)
took = time.perf_counter() - began
print(took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
"""Runs a command from a small process of its own: a child's peak memory counts what its parent held when it was
started. Prints seconds by the clock and of processor, KiB and the exit code."""


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall_s: float
    cpu_s: float
    peak_mib: float


def run(command: Sequence[str], *, allowed: Collection[int] = (0,), environ: Mapping[str, str] | None = None) -> Run:
    """Run a command, its output going nowhere.

    Raises:
        RuntimeError: it ended with another exit code than those allowed.
    """
    measured = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURE, *command], capture_output=True, text=True, check=True, env=environ
    ).stdout.split()
    if int(measured[3]) not in allowed:
        raise RuntimeError(f"{' '.join(command[:4])} ... ended with {measured[3]}")
    return Run(float(measured[0]), float(measured[1]), int(measured[2]) / 1024)
