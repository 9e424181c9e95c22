"""Measures kelr against Kafka's own tools on a real cluster, and the engine by itself; ratios within one run.

    python benchmarks/run.py [--partitions 3000] [--rounds 5]

Starts a lab of its own and prints a Markdown table. Times are of whole processes, start-up included; the peer's JVM
gets flags that start it faster than its own script does. Memory is the largest resident set of the process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kelr.engine import decide
from kelr.lab import Lab, LabSpec
from kelr.lab.story import create_topic
from kelr.model import select
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource

PARTITIONS_OF_A_TOPIC = 100
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall_s: float
    peak_mib: float


def main() -> None:
    """Run every benchmark once and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, _lab(Path(directory), chosen.partitions) as lab:
        rows = list(_against_stock(lab, chosen.rounds))
        rows += _inside(lab)
    print(
        f"\n{chosen.partitions} partitions, 3 replicas each, Kafka {lab.spec.kafka}, median of {chosen.rounds} rounds\n"
    )
    print("| what | kelr | peer | ratio kelr / peer |\n|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


@contextmanager
def _lab(directory: Path, partitions: int) -> Iterator[Lab]:
    spec = LabSpec(heap_mb=1024)
    with Lab.up(spec, directory / "lab", report=_say, owner_pid=os.getpid()) as lab:
        for number in range(-(-partitions // PARTITIONS_OF_A_TOPIC)):
            orders = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
            layouts = [orders[partition % 3] for partition in range(PARTITIONS_OF_A_TOPIC)]
            create_topic(lab, f"topic-{number:05d}", layouts, {})
        _say(f"created {partitions} partitions")
        yield lab


def _against_stock(lab: Lab, rounds: int) -> Iterator[Sequence[str]]:
    servers = lab.bootstrap_servers
    kelr = [sys.executable, "-m", "kelr"]
    stock = [*lab.stock_command("kafka-topics.sh"), "--bootstrap-server", servers, "--describe"]
    everything = [*kelr, "describe", "-b", servers, "-o", "ndjson"]
    yield from _compared("describe, every partition", everything, stock, rounds)
    yield from _compared("describe, as a table", [*kelr, "describe", "-b", servers], stock, rounds)
    leaderless = [*kelr, "describe", "--leaderless", "-b", servers]
    yield from _compared("describe --leaderless", leaderless, [*stock, "--unavailable-partitions"], rounds)
    yield from _compared("--help", [*kelr, "--help"], lab.stock_command("kafka-topics.sh", "--help"), rounds)


def _compared(what: str, mine: Sequence[str], theirs: Sequence[str], rounds: int) -> Iterator[Sequence[str]]:
    """The two commands in turn, after one round that does not count."""
    pairs = [(_run(mine), _run(theirs)) for _ in range(rounds + 1)][1:]
    walls = [(a.wall_s, b.wall_s) for a, b in pairs]
    peaks = [(a.peak_mib, b.peak_mib) for a, b in pairs]
    yield _row(f"{what}: wall", walls, "s", 2)
    yield _row(f"{what}: peak memory", peaks, "MiB", 0)
    _say(f"measured {what}")


def _row(what: str, pairs: Sequence[tuple[float, float]], unit: str, digits: int) -> Sequence[str]:
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    return what, f"{mine:.{digits}f} {unit}", f"{theirs:.{digits}f} {unit}", f"{ratio:.2f}"


def _run(command: Sequence[str]) -> Run:
    started = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    # kafka-topics.sh --help ends with 1.
    if process.returncode not in {0, 1}:
        raise RuntimeError(f"{' '.join(command[:4])} ... ended with {process.returncode}")
    return Run(wall_s, usage.ru_maxrss / 1024)


def _inside(lab: Lab) -> Iterator[Sequence[str]]:
    """What has no peer: asking all replicas' logs, and deciding."""
    source = LiveSource(ConnectionSettings.read(lab.bootstrap_servers))
    try:
        seconds, snapshot = _timed(
            lambda: take_snapshot(source, select([]), now_ms=0, with_logs=lambda _: True, lineage=True)
        )
    finally:
        source.close()
    replicas = sum(map(len, snapshot.logs.values()))
    yield "log-info with lineage, all replicas", f"{replicas} replicas in {seconds:.2f} s", "none", "-"
    seconds, _ = _timed(lambda: [decide(snapshot, state) for state in snapshot.partitions])
    yield "decisions, one core", f"{len(snapshot.partitions) / seconds:,.0f} a second", "none", "-"


def _timed(work: Callable[[], ResultT]) -> tuple[float, ResultT]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
