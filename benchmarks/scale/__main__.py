"""Measures kelr on simulated clusters of ten thousand to a million partitions, beside kcl and kafka-topics.sh.

    python -m benchmarks.scale [--partitions 10000 100000 1000000] [--rounds 5] [--kafka-libs DIR]

kcl is used if it is found on the PATH; kafka-topics.sh if a directory with Kafka's jars is given. All commands of one
round run in turn against one server, and a ratio is the median of the rounds' ratios. log-info, explain and recover
plan, which have no peer, run once each. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.scale.measure import Run, measured
from benchmarks.scale.requests import decided, floor, logs_read, requests_sent, surveyed
from benchmarks.scale.server import PARTITIONS_OF_A_TOPIC, simulated
from kelr.sources.live import LiveSource
from kelr.sources.survey import Filters

KELR = (sys.executable, "-m", "kelr")
DOWN = (1, 2)
"""Brokers that are down in the cluster with broken partitions: 0.7 % of the partitions are under min ISR then."""
LEADERLESS_DOWN = (1, 2, 3)
"""Brokers that are down where something is to be explained: 7 % of the partitions are under min ISR then, and one in
eight hundred has no leader."""
LOG_TOPICS = 10
"""Topics whose logs are asked for whatever the size of the cluster."""
MOST_LOGS = 100_000
"""Partitions up to which every log is asked for, too."""

Commands = Mapping[str, Sequence[str]]
"""Who it is to the command; kelr first."""


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kafka-libs", type=Path, help="a directory with the jars of Apache Kafka")
    chosen = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {chosen.rounds} rounds")
    if shutil.which("kcl") is None:
        print("\nkcl was not found on the PATH, and is not measured.")
    with tempfile.TemporaryDirectory() as directory:
        for partitions in chosen.partitions:
            _measure(partitions, chosen.rounds, chosen.kafka_libs, Path(directory))


def _measure(partitions: int, rounds: int, libs: Path | None, directory: Path) -> None:
    print(f"\n### {partitions:,} partitions\n")
    print(
        "| what | wall | processor | peak memory | kcl: wall, processor, memory | kelr / kcl: wall, processor"
        " | kafka-topics.sh: the same | kelr / kafka-topics.sh |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, down in (("all well", ()), ("two brokers down", DOWN)):
        with simulated(partitions, down=down) as server:
            for what, commands in _commands(server, partitions, libs):
                runs = [
                    {who: measured(command, directory / "out") for who, command in commands.items()}
                    for _ in range(rounds + 1)
                ][1:]
                print(_row(f"{what}, {name}", runs), flush=True)
            first = [
                measured([*KELR, "describe", "-b", server], directory / "out", first_row=True) for _ in range(rounds)
            ]
            row_s = statistics.median(run.first_row_s for run in first)
            print(f"| first row, {name} | {row_s:.2f} s | - | - | - | - | - | - |")
            print(f"| bare reading of the pages, {name} | {floor(server):.2f} s | - | - | - | - | - | - |")
            for what, filters in (("all", Filters()), ("leaderless", Filters(leaderless=True))):
                sent = requests_sent(server, surveyed(filters))
                print(f"| requests sent for {what}, {name} | {sent} | - | - | - | - | - | - |")
    with simulated(partitions, down=LEADERLESS_DOWN) as server:
        print("\nThree brokers down, one round:\n")
        print("| what | first row | wall | processor | peak memory | requests sent |")
        print("|---|---|---|---|---|---|")
        for what, command, read in _decisions(server, partitions):
            run = measured(command, directory / "out", first_row=True)
            took = f"{run.first_row_s:.2f} s | {run.wall_s:.2f} s | {run.cpu_s:.2f} s | {run.peak_mib:.0f} MiB"
            print(f"| {what} | {took} | {requests_sent(server, read)} |", flush=True)


def _decisions(server: str, partitions: int) -> Iterator[tuple[str, Sequence[str], Callable[[LiveSource], object]]]:
    """Whole commands, and what they read."""
    yield "explain, leaderless or unsafe partitions", [*KELR, "explain", "-b", server], decided
    yield "recover plan, the same", [*KELR, "recover", "plan", "-b", server], decided
    named = _topics(min(partitions, LOG_TOPICS * PARTITIONS_OF_A_TOPIC))
    log_info = [*KELR, "log-info", "-b", server]
    yield f"log-info, {len(named) * PARTITIONS_OF_A_TOPIC:,} partitions", [*log_info, *named], logs_read(named)
    if partitions <= MOST_LOGS:
        yield "log-info, every partition", [*log_info, "--all-topic-partitions"], logs_read(())


def _commands(server: str, partitions: int, libs: Path | None) -> Iterator[tuple[str, Commands]]:
    describe = [*KELR, "describe", "-b", server]
    kcl, stock = _kcl(server, partitions), _kafka_topics(server, libs)

    def beside(mine: Sequence[str], kcl_flags: Sequence[str] | None, stock_flags: Sequence[str] | None) -> Commands:
        commands = {"kelr": mine}
        if kcl and kcl_flags is not None:
            commands["kcl"] = [*kcl, *kcl_flags]
        if stock and stock_flags is not None:
            commands["kafka-topics.sh"] = [*stock, *stock_flags]
        return commands

    yield "describe as a table", beside(describe, (), ())
    yield "describe -o ndjson", beside([*describe, "-o", "ndjson"], (), None)
    yield "describe --leaderless", beside([*describe, "--leaderless"], ["--unavailable"], ["--unavailable-partitions"])
    yield (
        "describe --under-replicated",
        beside([*describe, "--under-replicated"], ["--under-replicated"], ["--under-replicated-partitions"]),
    )
    yield "describe --under-min-isr", beside([*describe, "--under-min-isr"], None, ["--under-min-isr-partitions"])
    yield "describe --summary", beside([*describe, "--summary"], None, None)


def _kcl(server: str, partitions: int) -> list[str]:
    """kcl wants all topics by name, and describes by one Metadata request."""
    found = shutil.which("kcl")
    names = _topics(partitions)
    shown = ["--section", "partitions", "--format", "awk"]
    return [] if found is None else [found, "topic", "describe", "--no-config-file", "-B", server, *shown, *names]


def _topics(partitions: int) -> list[str]:
    """The names of the topics with the first partitions."""
    return [f"topic-{number:06d}" for number in range(-(-partitions // PARTITIONS_OF_A_TOPIC))]


def _kafka_topics(server: str, libs: Path | None) -> list[str]:
    """With its own default heap of 256 MB it fails on a million partitions."""
    if libs is None:
        return []
    java = ["java", "-Xmx4g", "-cp", f"{libs}/*", "org.apache.kafka.tools.TopicCommand"]
    return [*java, "--bootstrap-server", server, "--describe"]


def _row(what: str, runs: Sequence[Mapping[str, Run]]) -> str:
    mine = [run["kelr"] for run in runs]
    cells = [
        what,
        f"{statistics.median(run.wall_s for run in mine):.2f} s",
        f"{statistics.median(run.cpu_s for run in mine):.2f} s",
        f"{max(run.peak_mib for run in mine):.0f} MiB",
    ]
    for peer in ("kcl", "kafka-topics.sh"):
        if peer in runs[0]:
            peers = [run[peer] for run in runs]
            ratio = statistics.median(one.wall_s / other.wall_s for one, other in zip(mine, peers, strict=True))
            work = statistics.median(one.cpu_s / other.cpu_s for one, other in zip(mine, peers, strict=True))
            wall, cpu = statistics.median(run.wall_s for run in peers), statistics.median(run.cpu_s for run in peers)
            peak = max(run.peak_mib for run in peers)
            cells += [f"{wall:.2f} s, {cpu:.2f} s, {peak:.0f} MiB", f"{ratio:.2f}, {work:.2f}"]
        else:
            cells += ["-", "-"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
