"""What kelr costs: start, and describing many partitions. Prints one line a measurement; `make bench` runs it.

Each figure is the median of several whole processes, with the peak memory of the largest. Figures of one machine tell
nothing about another: compare lines of one run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from kelr.model import Broker, BrokerStatus, Cluster, ConfigSource, Features, PartitionState, Snapshot, TopicConfig
from kelr.sources.snapshot_file import write_snapshot

PARTITIONS_PER_TOPIC = 100


def main() -> None:
    """Measure everything."""
    with tempfile.TemporaryDirectory() as directory:
        measure("import of nothing", [sys.executable, "-c", "pass"], runs=11)
        measure("kelr --help", [sys.executable, "-m", "kelr", "--help"], runs=11)
        for count in (1_000, 10_000, 100_000):
            path = Path(directory) / f"{count}.kelr"
            # In a process of its own: a child's peak memory counts what its parent held when it was started.
            subprocess.run([sys.executable, __file__, str(count), str(path)], check=True)
            for format in ("table", "ndjson"):
                command = [sys.executable, "-m", "kelr", "describe", "--snapshot", str(path), "-o", format]
                measure(f"describe {count:,} partitions from a snapshot, {format}", command, runs=3)


def many_partitions(count: int) -> Snapshot:
    """A snapshot of so many healthy partitions of three replicas each."""
    config = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    brokers = tuple(Broker(number, BrokerStatus.LIVE, f"kafka-{number}", 9092, f"az{number}") for number in (1, 2, 3))
    states = []
    for number in range(count):
        topic, partition = divmod(number, PARTITIONS_PER_TOPIC)
        replicas = tuple(1 + (number + step) % 3 for step in range(3))
        states.append(PartitionState(f"topic-{topic:06}", partition, replicas[0], 5, replicas, replicas, (), ()))
    return Snapshot(
        taken_at_ms=0,
        cluster=Cluster("benchmark", brokers, Features({}, {}), 1, "DescribeCluster v2", "DescribeTopicPartitions v0"),
        partitions=tuple(states),
        configs={state.topic: config for state in states},
    )


def measure(name: str, command: Sequence[str], *, runs: int) -> None:
    """Run the command so often, and print its median time and its peak memory."""
    seconds, peaks_kib = [], []
    for _ in range(runs):
        began = time.perf_counter()
        peaks_kib.append(peak_memory_kib(command))
        seconds.append(time.perf_counter() - began)
    sys.stdout.write(f"{statistics.median(seconds):8.3f} s  {max(peaks_kib) / 1024:7.1f} MiB  {name}\n")
    sys.stdout.flush()


def peak_memory_kib(command: Sequence[str]) -> int:
    """Run the command with its output thrown away; how much memory it held at most, in KiB (Linux)."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        actions = [(os.POSIX_SPAWN_DUP2, nowhere, 1), (os.POSIX_SPAWN_DUP2, nowhere, 2)]
        pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
    finally:
        os.close(nowhere)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_maxrss


if __name__ == "__main__":
    if len(sys.argv) == 3:
        write_snapshot(many_partitions(int(sys.argv[1])), Path(sys.argv[2]))
    else:
        main()
