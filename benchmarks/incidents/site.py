"""Where a way of recovery works: one cluster, one topic, who may be started, and whose disk can be read."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.incidents.chaos import MIN_ISR, Chaos
from benchmarks.incidents.frozen import Frozen
from benchmarks.incidents.play import come_back, is_settled
from kelr.lab import Lab
from kelr.lab.disk import read_batches
from kelr.model import PartitionState

Report = Callable[[str], None]
CLOSING_KEY = b"closing"
"""Of records that are in nobody's ledger."""


@dataclass(frozen=True)
class Site:
    """The cluster right after the incident, the same for every way of recovery."""

    lab: Lab
    topic: str
    chaos: Chaos
    frozen: Frozen
    work: Path
    """An empty directory for files of this way."""
    report: Report

    @property
    def up(self) -> set[int]:
        return {broker for broker in self.lab.brokers if self.lab.is_running(broker)}

    def states(self) -> Mapping[int, PartitionState]:
        return {address.partition: state for address, state in self.lab.partitions(self.topic).items()}

    def leaderless(self) -> tuple[int, ...]:
        return tuple(partition for partition, state in sorted(self.states().items()) if state.leader is None)

    def start(self, *brokers: int) -> None:
        """Start brokers that can return, one after the other."""
        impossible = set(brokers) & set(self.chaos.gone)
        if impossible:
            raise ValueError(f"brokers {impossible} are gone")
        come_back(self.lab, self.topic, brokers, self.report)

    def startable(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.chaos.returnable if broker not in self.up)

    def readable_disks(self) -> Mapping[int, Path]:
        """The log directories of brokers that are down: of those that can return, and of some that are gone."""
        disks = {broker: self.lab.data_directory(broker) for broker in self.startable()}
        gone = {broker: self.lab.data_directory(broker) for broker, readable in self.chaos.gone.items() if readable}
        return disks | gone

    def lose_unreadable_disks(self) -> None:
        """Delete the disks of brokers that are gone without one; the next way gets them back to be lost again."""
        for broker, readable in self.chaos.gone.items():
            if not readable:
                shutil.rmtree(self.lab.data_directory(broker))
                self.lab.data_directory(broker).mkdir()

    def stock(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.lab.stock_tool(tool, "--bootstrap-server", self.lab.bootstrap_servers, *arguments, timeout_s=120)

    def settle(self) -> None:
        """Wait until every partition has a leader and all its live replicas in sync."""
        up = self.up
        self.lab.wait_partitions(
            self.topic,
            "every partition is led and in sync",
            lambda state: state.leader is not None and is_settled(state, up),
            timeout_s=60,
        )

    def let_marks_rise(self) -> None:
        """Wait until every partition's high watermark is at the end of its log.

        Where a partition has fewer than min ISR replicas left, one is let do. A leader without followers looks at its
        high watermark again only when something is written, so that a further record, which counts for nothing, is.
        """
        alone = [
            partition
            for partition, state in self.states().items()
            if len(set(state.replicas) - set(self.chaos.gone)) < MIN_ISR
        ]
        if alone:
            one = ("--entity-type", "topics", "--entity-name", self.topic, "--add-config", "min.insync.replicas=1")
            done = self.stock("kafka-configs.sh", "--alter", *one)
            if done.returncode != 0:
                raise RuntimeError(f"kafka-configs.sh failed: {done.stderr or done.stdout}")
            self._write_to(alone)
        deadline = time.monotonic() + 30
        while behind := self._marks_behind():
            if time.monotonic() > deadline:
                raise RuntimeError(f"high watermarks stay behind the logs' ends: {behind}")
            time.sleep(0.2)

    def _write_to(self, partitions: Sequence[int]) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415

        servers = {"bootstrap.servers": self.lab.bootstrap_servers, "acks": "1", "log_level": 0}
        producer = Producer({**servers, "error_cb": lambda _error: None})
        for partition in partitions:
            producer.produce(self.topic, b"", CLOSING_KEY, partition=partition)
        if producer.flush(30):
            raise RuntimeError("a leader took no further record")

    def _marks_behind(self) -> Mapping[int, tuple[int, int]]:
        """Partition to high watermark and log end, where they differ."""
        from confluent_kafka import Consumer, KafkaException, TopicPartition  # noqa: PLC0415

        servers = {"bootstrap.servers": self.lab.bootstrap_servers, "group.id": "kelr-incidents", "log_level": 0}
        consumer = Consumer({**servers, "error_cb": lambda _error: None})
        behind = {}
        try:
            for partition, state in self.states().items():
                assert state.leader is not None
                try:
                    _, mark = consumer.get_watermark_offsets(TopicPartition(self.topic, partition), timeout=2)
                except KafkaException as error:
                    # A leader that has just been elected does not tell until its epoch has a committed offset.
                    if error.args[0].name() not in {"OFFSET_NOT_AVAILABLE", "_TIMED_OUT"}:
                        raise
                    mark = -1
                end = log_end(self.lab.data_directory(state.leader) / f"{self.topic}-{partition}")
                if mark != end:
                    behind[partition] = (mark, end)
        finally:
            consumer.close()
        return behind


def log_end(directory: Path) -> int:
    """The offset after the last record batch of a log."""
    last = max(directory.glob("*.log"))
    return max((batch.next_offset for batch in read_batches(last)), default=int(last.stem))
