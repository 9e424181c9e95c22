"""Measures kelr against Kafka's own tools on a real cluster, and the engine by itself; ratios within one run.

    python -m benchmarks.run [--partitions 3000] [--rounds 5]

Starts a lab of its own and prints a Markdown table. Times are of whole processes, start-up included. The peer is
started with the flags of its own script (but without the shell), and once more with the lab's: the quick compiler only,
the serial collector, and an archive of its classes. Memory is the largest resident set of the process.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from benchmarks.processes import Run, run
from kelr.engine import decide
from kelr.lab import Lab, LabSpec
from kelr.lab.story import create_topic
from kelr.model import select
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource

PARTITIONS_OF_A_TOPIC = 100
SCRIPT_FLAGS = (
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""KAFKA_HEAP_OPTS of kafka-topics.sh and KAFKA_JVM_PERFORMANCE_OPTS of kafka-run-class.sh where nobody sets them."""
ResultT = TypeVar("ResultT")


def main() -> None:
    """Run every benchmark once and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, _lab(Path(directory), chosen.partitions) as lab:
        rows = list(_against_stock(lab, chosen.rounds))
        rows += _inside(lab)
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(
        f"\n{chosen.partitions} partitions, 3 replicas each, Kafka {lab.spec.kafka}, median of {chosen.rounds} rounds;"
        f" {os.cpu_count()} cores, {memory_gib:.0f} GiB, Python {platform.python_version()}\n"
    )
    print("| what | kelr / kafka-topics.sh | kelr / the same, quick | kelr | kafka-topics.sh | the same, quick |")
    print("|---|---|---|---|---|---|")
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
    topic = f"topic-{0:05d}"
    everything = [*kelr, "describe", "-b", servers, "-o", "ndjson"]
    yield from _compared("describe, every partition", everything, stock, rounds)
    yield from _compared("describe, as a table", [*kelr, "describe", "-b", servers], stock, rounds)
    leaderless = [*kelr, "describe", "--leaderless", "-b", servers]
    yield from _compared("describe --leaderless", leaderless, [*stock, "--unavailable-partitions"], rounds)
    one = [*kelr, "describe", topic, "-b", servers]
    yield from _compared("describe, one topic", one, [*stock, "--topic", topic], rounds)
    yield from _compared("--help", [*kelr, "--help"], lab.stock_command("kafka-topics.sh", "--help"), rounds)


def as_its_script_starts_it(command: Sequence[str]) -> Sequence[str]:
    """A stock tool's command with the flags of its own script, for the lab's that make it start faster."""
    return [command[0], *SCRIPT_FLAGS, *command[command.index("-cp") :]]


def _compared(what: str, mine: Sequence[str], theirs: Sequence[str], rounds: int) -> Iterator[Sequence[str]]:
    """The commands in turn, after one round that does not count."""
    commands = (mine, as_its_script_starts_it(theirs), theirs)
    runs = [tuple(map(_run, commands)) for _ in range(rounds + 1)][1:]
    yield _row(f"{what}: wall", [[run.wall_s for run in once] for once in runs], "s", 2)
    yield _row(f"{what}: peak memory", [[run.peak_mib for run in once] for once in runs], "MiB", 0)
    _say(f"measured {what}")


def _row(what: str, rounds: Sequence[Sequence[float]], unit: str, digits: int) -> Sequence[str]:
    """The ratios, each the median over the rounds, then the medians themselves."""
    ratios = [statistics.median(once[0] / once[peer] for once in rounds) for peer in (1, 2)]
    values = [statistics.median(side) for side in zip(*rounds, strict=True)]
    return what, *(f"{ratio:.2f}" for ratio in ratios), *(f"{value:.{digits}f} {unit}" for value in values)


def _run(command: Sequence[str]) -> Run:
    # kafka-topics.sh --help ends with 1.
    return run(command, allowed=(0, 1))


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
    yield "log-info with lineage, all replicas", "-", "-", f"{replicas} replicas in {seconds:.2f} s", "-", "-"
    seconds, _ = _timed(lambda: [decide(snapshot, state) for state in snapshot.partitions])
    yield "decisions, one core", "-", "-", f"{len(snapshot.partitions) / seconds:,.0f} a second", "-", "-"


def _timed(work: Callable[[], ResultT]) -> tuple[float, ResultT]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
