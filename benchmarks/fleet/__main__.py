"""How fast `kelr fleet` is; prints Markdown tables. `make fleet-bench` runs it.

    python -m benchmarks.fleet [--states 1000000] [--partitions 1000000] [--scenarios 20] [--cores 1,2]

Two fleets. The first is generated as metadata logs with so many partition states, which are ingested and summed up
(exposure). The second is a lake with so many partitions, one cluster having 70% of them, which is assessed under so
many scenarios; Spark makes it, since what is measured does not depend on how it came. Each step runs as a process,
`kelr fleet ...`, with each number of cores; beside them one process without Spark does the same work by the same engine
on a
part of it (--plain rows at most), for its rows per second. 0 leaves a fleet out. Memory is the most that a kind of
process had in it: Python and JVM are the driver's, and a local Spark's JVM is the executor's too.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.fleet.measure import Used, measured

STATES_A_PARTITION = 40
BROKERS = 20
"""Of `benchmarks.fleet.lakes`."""
HEADER = (
    *("step", "rows", "cores", "time", "rows/s", "times one core", "times plain", "processor", "rows/s and core"),
    *("Python, MiB", "JVM, MiB", "workers, MiB"),
)


@dataclass(frozen=True, slots=True)
class Given:
    """What is measured."""

    states: int
    partitions: int
    scenarios: int
    cores: tuple[int, ...]
    memory: str
    plain: int
    place: Path


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=1_000_000, help="partition states in metadata logs")
    parser.add_argument("--partitions", type=int, default=1_000_000, help="partitions to assess")
    parser.add_argument(
        "--scenarios", type=int, default=20, help=f"brokers that are killed, one in each; up to {BROKERS}"
    )
    parser.add_argument("--cores", default="1,2", help="numbers of cores, with commas between")
    parser.add_argument("--memory", default="4g", help="what the JVM may have")
    parser.add_argument("--plain", type=int, default=200_000, help="rows for the process without Spark")
    parser.add_argument("--dir", help="where to work; a temporary folder unless told, which is deleted")
    given = parser.parse_args()
    if not 1 <= given.scenarios <= BROKERS:
        parser.error(f"--scenarios: 1 to {BROKERS}")
    place = Path(given.dir or tempfile.mkdtemp(prefix="kelr-fleet-bench-"))
    cores = tuple(int(number) for number in given.cores.split(","))
    try:
        run(Given(given.states, given.partitions, given.scenarios, cores, given.memory, given.plain, place))
    finally:
        if given.dir is None:
            shutil.rmtree(place, ignore_errors=True)


def run(given: Given) -> None:
    """Print the tables."""
    given.place.mkdir(parents=True, exist_ok=True)
    print(
        f"{os.cpu_count()} processors, Python {platform.python_version()}, PySpark {version('pyspark')},"
        f" {java()}, JVM of {given.memory}\n"
    )
    print("| " + " | ".join(HEADER) + " |")
    print("|" + "---|" * len(HEADER), flush=True)
    for line in [*(of_logs(given) if given.states else ()), *(of_scenarios(given) if given.partitions else ())]:
        print(line, flush=True)


def of_logs(given: Given) -> Iterator[str]:
    """Ingest and exposure of metadata logs."""
    fleet = given.place / "fleet"
    partitions = max(500, given.states // STATES_A_PARTITION)
    kelr("generate", str(fleet), "--clusters", "8", "--partitions", str(partitions), *numbers(given))
    logs = sorted(str(path) for path in fleet.glob("*/node-*/__cluster_metadata-0"))
    rows, seconds = plain(given, "history", *logs)
    yield row("history, plain loop", rows, None, Used(seconds), plain=None)
    ingested: list[tuple[int, Used]] = []
    exposed: list[tuple[int, Used]] = []
    states = 0
    for cores in given.cores:
        lake = given.place / f"lake-{cores}"
        ingested.append((cores, here(cores, "ingest", str(fleet), "--out", str(lake))))
        exposed.append((cores, spark(given, cores, "exposure", "--lake", str(lake))))
        states = states or count(lake / "partition_states")
        shutil.rmtree(lake)
    shutil.rmtree(fleet)
    for name, runs in (("ingest", ingested), ("exposure", exposed)):
        for cores, used in runs:
            yield row(name, states, cores, used, plain=rows / seconds, first=runs[0][1])


def of_scenarios(given: Given) -> Iterator[str]:
    """Assessments."""
    lake = given.place / "standing"
    scenarios = given.place / "scenarios.txt"
    scenarios.write_text("".join(f"{broker} is killed: {broker} fails\n" for broker in range(1, given.scenarios + 1)))
    made = [sys.executable, "-m", "benchmarks.fleet.lakes", str(lake), "--partitions", str(given.partitions)]
    subprocess.run(made, check=True)
    rows, seconds = plain(given, "outages", str(lake), "--scenarios", str(given.scenarios))
    yield row("outages, plain loop", rows, None, Used(seconds), plain=None)
    pairs = given.partitions * given.scenarios
    words = ("assess", "--lake", str(lake), "--scenarios", str(scenarios))
    runs = [(cores, spark(given, cores, *words)) for cores in given.cores]
    shutil.rmtree(lake)
    for cores, used in runs:
        yield row(f"assess, {given.scenarios} scenarios", pairs, cores, used, plain=rows / seconds, first=runs[0][1])


def numbers(given: Given) -> list[str]:
    return ["--states", str(given.states), "--files", "whole", "--weeks", "4", "--brokers", "12"]


def kelr(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "kelr", "fleet", *words], check=True, stdout=subprocess.DEVNULL)


def spark(given: Given, cores: int, *words: str) -> Used:
    """A step, with so many cores."""
    memory = ("--conf", f"spark.driver.memory={given.memory}")
    return measured([sys.executable, "-m", "kelr", "fleet", *words, "--master", f"local[{cores}]", *memory])


def here(cores: int, *words: str) -> Used:
    """A step that takes the processors that it may use, and no Spark."""
    processors = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cores]))
    return measured(["taskset", "--cpu-list", processors, sys.executable, "-m", "kelr", "fleet", *words])


def plain(given: Given, what: str, *places: str) -> tuple[int, float]:
    """The same work in one process: rows, and seconds."""
    command = [sys.executable, "-m", "benchmarks.fleet.plain", what, *places, "--limit", str(given.plain)]
    rows, seconds = measured(command).out.split()
    return int(rows), float(seconds)


def count(table: Path) -> int:
    """The rows of a table, by the ends of its files."""
    import pyarrow.parquet  # noqa: PLC0415 - only here

    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in table.rglob("*.parquet"))


def java() -> str:
    """The version of the Java on the PATH."""
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    return "Java " + done.stderr.split('"')[1]


def row(name: str, rows: int, cores: int | None, used: Used, *, plain: float | None, first: Used | None = None) -> str:
    """A line of the table."""
    rate = rows / used.wall_s
    cells = [
        name,
        f"{rows:,}",
        "-" if cores is None else str(cores),
        f"{used.wall_s:.1f} s",
        f"{rate:,.0f}",
        "-" if first is None else f"{first.wall_s / used.wall_s:.2f}",
        "-" if plain is None else f"{rate / plain:.2f}",
        f"{used.cpu_s:.1f} s" if used.cpu_s else "-",
        f"{rows / used.cpu_s:,.0f}" if used.cpu_s else "-",
        *(f"{used.peak_mib[kind]:,.0f}" if kind in used.peak_mib else "-" for kind in ("python", "jvm", "workers")),
    ]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
