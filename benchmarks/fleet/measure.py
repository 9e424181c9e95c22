"""A command with all its processes: how long it took, whose processor time, and how much memory each kind had at most.

Read from /proc a few times a second: the JVM of a local Spark is driver and executor in one, and Python workers are
forked by a daemon of its own.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_EVERY_S = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1024 * 1024


@dataclass
class Used:
    """What a command used.

    Attributes:
        peak_mib: by kind of process: ``python`` (the driver's), ``jvm``, ``workers``; of workers together.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mib: dict[str, float] = field(default_factory=dict)
    out: str = ""


def measured(command: Sequence[str], *, environ: dict[str, str] | None = None) -> Used:
    """Run a command to its end.

    Raises:
        SystemExit: it failed.
    """
    used, ended = Used(), threading.Event()
    begun = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environ or {})}
    ) as process:
        watcher = threading.Thread(target=_watch, args=(process.pid, used, ended), daemon=True)
        watcher.start()
        out, err = process.communicate()
        used.wall_s = time.perf_counter() - begun
        ended.set()
        watcher.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{err}")
    used.out = out
    return used


def _watch(root: int, used: Used, ended: threading.Event) -> None:
    seconds: dict[int, float] = {}
    while not ended.wait(_EVERY_S):
        now: dict[str, float] = {}
        for pid, kind, cpu_s, mib in _family(root):
            seconds[pid] = max(seconds.get(pid, 0.0), cpu_s)
            now[kind] = now.get(kind, 0.0) + mib
        for kind, mib in now.items():
            used.peak_mib[kind] = max(used.peak_mib.get(kind, 0.0), mib)
        used.cpu_s = sum(seconds.values())


def _family(root: int) -> list[tuple[int, str, float, float]]:
    """The process and all below it: id, kind, seconds of the processor, resident MiB."""
    parents: dict[int, int] = {}
    told: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(entry.name)
            parents[pid] = int(fields[1])
            told[pid] = ((int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE / _MIB)
    found = []
    for pid, (cpu_s, mib) in told.items():
        above = pid
        while above not in {root, 0, 1} and above in parents:
            above = parents[above]
        if above == root:
            found.append((pid, _kind(pid, root), cpu_s, mib))
    return found


def _kind(pid: int, root: int) -> str:
    if pid == root:
        return "python"
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        words = b""
    return "workers" if b"pyspark" in words and b"java" not in words.split(b"\0")[0] else "jvm"
