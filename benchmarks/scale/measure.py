"""One command as a whole process: wall time, time to its first row, processor time, peak memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MEASURE = """
import os, sys, time
nowhere, written, out = os.open(os.devnull, os.O_RDWR), os.pipe(), open(sys.argv[1], "wb")
first = sys.argv[2] == "first"
target = written[1] if first else out.fileno()
actions = [(os.POSIX_SPAWN_DUP2, nowhere, 0), (os.POSIX_SPAWN_DUP2, target, 1), (os.POSIX_SPAWN_DUP2, nowhere, 2)]
began = time.perf_counter()
pid = os.posix_spawnp(sys.argv[3], sys.argv[3:], os.environ, file_actions=actions)
os.close(written[1])
row = None
while first and (piece := os.read(written[0], 1 << 16)):
    row = row or time.perf_counter() - began
_, status, usage = os.wait4(pid, 0)
wall = time.perf_counter() - began
print(wall, row or 0.0, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
"""Runs a command from a small process of its own, because a child's peak memory counts what its parent held when it was
started. Prints seconds, seconds, seconds, KiB and the exit code."""


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall_s: float
    first_row_s: float
    """0 where nobody looked."""
    cpu_s: float
    peak_mib: float


def measured(command: Sequence[str], output: Path, *, first_row: bool = False) -> Run:
    """Run it to its end, its output to a file, or to somebody who throws it away and notes when it began.

    Raises:
        RuntimeError: it failed.
    """
    how = "first" if first_row else "file"
    done = subprocess.run(
        [sys.executable, "-S", "-c", _MEASURE, str(output), how, *command], capture_output=True, text=True, check=True
    )
    wall, row, cpu, peak, code = done.stdout.split()
    if int(code) != 0:
        raise RuntimeError(f"{' '.join(command[:5])} ... ended with {code}")
    return Run(float(wall), float(row), float(cpu), int(peak) / 1024)
