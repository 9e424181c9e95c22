"""How fast a metadata log is replayed to its end, beside Kafka's own kafka-dump-log.sh; prints a Markdown table.

    python benchmarks/metadata_log.py [--size-mb 100] [--large-mb 0] [--rounds 3]

`benchmarks/metadata_log_made.py` makes the log. The stock tool (with ``--cluster-metadata-decoder``, from the jars of
Kafka 4.3.1) prints each record as JSON, to /dev/null; kelr checks every checksum, decodes every record and applies it,
until it could answer `kelr describe --metadata-log`. Both run as processes of their own, in turn; the smallest time of
the rounds counts. With --large-mb (2147 is 2 GiB), kelr reads a log of that size, too: its memory must not grow. What
the stock tool would need for that one is estimated from the smaller one, and marked so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metadata_log_made import START_MS, make

from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java, tool_class
from kelr.lab.locks import load_lock

KAFKA = "4.3.1"
SEGMENT = "00000000000000000000.log"
REPLAY = """
import sys
from pathlib import Path
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.source import MetadataLogSource
print(MetadataLogSource(open_metadata_log([Path(sys.argv[1])])).next_offset)
"""


@dataclass(frozen=True, slots=True)
class Run:
    wall_s: float
    cpu_s: float
    peak_mib: float
    out: str


def run(command: Sequence[str], *, keep: bool) -> Run:
    """Run it to its end; `keep` its output or drop it."""
    with tempfile.TemporaryFile() as out:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=out if keep else subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command[0]} ended with {process.returncode}")
        out.seek(0)
        return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out.read().decode().strip())


def stock(segment: Path) -> list[str]:
    jars = ":".join(map(str, obtain_jars(load_lock(KAFKA), cache_directory())))
    tool = tool_class("kafka-dump-log.sh", KAFKA)
    java = str(find_java().executable)
    return [java, "-Xmx256m", "-cp", jars, tool, "--cluster-metadata-decoder", "--files", str(segment)]


def kelr(segment: Path) -> list[str]:
    return [sys.executable, "-c", REPLAY, str(segment.parent)]


def row(name: str, size: int, records: int, found: Run) -> str:
    rate = size / 1e6 / found.wall_s
    micros = found.cpu_s / records * 1e6
    return (
        f"| {name} | {size / 1e6:,.0f} MB | {found.wall_s:.1f} s | {found.cpu_s:.1f} s | {rate:,.0f} MB/s |"
        f" {micros:.2f} us | {found.peak_mib:.0f} MiB |"
    )


def smallest(runs: Sequence[Run]) -> Run:
    return Run(
        min(one.wall_s for one in runs), min(one.cpu_s for one in runs), max(one.peak_mib for one in runs), runs[0].out
    )


def enlarged(one: Run, times: float) -> Run:
    """What a run over so many times as many bytes takes, where each takes as long."""
    return Run(one.wall_s * times, one.cpu_s * times, one.peak_mib, one.out)


def compared(them: Run, us: Run) -> str:
    times, less = them.wall_s / us.wall_s, them.cpu_s / us.cpu_s
    return f"kelr is {times:.1f} times as fast, with {less:.1f} times less of the processor's time"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size-mb", type=int, default=100)
    parser.add_argument("--large-mb", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kelr-benchmark-") as directory:
        segment = Path(directory) / "small" / SEGMENT
        segment.parent.mkdir()
        log = make(segment, given.size_mb * 1_000_000)
        hours = (log.now_ms - START_MS) / 3_600_000
        print(f"{log.records:,} records in {log.batches:,} batches, {hours:.0f} hours of a busy cluster\n")
        theirs: list[Run] = []
        ours: list[Run] = []
        for _ in range(given.rounds):
            theirs.append(run(stock(segment), keep=False))
            ours.append(run(kelr(segment), keep=True))
        if {one.out for one in ours} != {str(log.offset)}:
            raise SystemExit(f"kelr replayed {ours[0].out} records instead of {log.offset}")
        them, us, size = smallest(theirs), smallest(ours), log.written
        print("| tool | log | time | processor | rate | processor a record | peak memory |")
        print("|---|---|---|---|---|---|---|")
        print(row("kafka-dump-log.sh", log.written, log.records, them))
        print(row("kelr", log.written, log.records, us), flush=True)
        if given.large_mb:
            large = Path(directory) / "large" / SEGMENT
            large.parent.mkdir()
            log = make(large, given.large_mb * 1_000_000)
            found = run(kelr(large), keep=True)
            if found.out != str(log.offset):
                raise SystemExit(f"kelr replayed {found.out} records instead of {log.offset}")
            more = log.written / size
            print(row("kafka-dump-log.sh, estimated", log.written, log.records, enlarged(them, more)))
            print(row("kelr", log.written, log.records, found), flush=True)
            print(f"\nLarge log: {compared(enlarged(them, more), found)} (the stock tool's figures are estimated)")
        print(f"\n{compared(them, us)}")


if __name__ == "__main__":
    main()
