"""A simulated broker's log directory in Kafka's on-disk format, as its disk would hold it at this moment.

With it, the reading of a dead broker's disk can be rehearsed. Nothing is read back: the simulated broker keeps its logs
in memory. Indexes have the size that a clean shutdown leaves; Kafka makes them anew after any other end.

Source: LogManager, UnifiedLog, LogSegment, OffsetIndex, TimeIndex, CheckpointFile, PartitionMetadataFile,
CleanShutdownFileHandler and MetaProperties of Apache Kafka.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kelr.errors import KelrError, UsageError
from kelr.lab.simulated.contents import Batch
from kelr.lab.simulated.metadata_log import directory_id
from kelr.lab.simulated.replicas import EpochStart, epochs
from kelr.lab.simulated.server import Server
from kelr.lab.simulated.world import World, id_text
from kelr.model import TopicPartition
from kelr.simulation.logs import SimulatedLog
from kelr.sources.disk.files import GarbledError, read_clean_shutdown, read_meta_properties
from kelr.sources.disk.names import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOCK,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    replica_name,
)
from kelr.sources.records.batches import read_header

MOST_REPLICAS = 50_000
"""More directories than that are not written."""
SEGMENT_BYTES = 1024**3
"""segment.bytes where a topic says nothing."""
_INDEX_INTERVAL_BYTES = 4096
_INDEX_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


def write(world: World, broker: int, directory: Path) -> None:
    """Write what a broker's disk holds, whether its process runs or not. What was written there before goes.

    High watermarks are those of now; Kafka saves them every five seconds. A failed log directory's replicas are not
    there, and neither is the metadata log.

    Raises:
        UsageError: the directory holds something else, or the broker has too many replicas.
    """
    _claim(world, broker, directory)
    replicas = dict(_replicas(world, broker))
    directory.mkdir(parents=True, exist_ok=True)
    for name in os.listdir(directory):
        found = replica_name(name)
        if found is not None and found.address not in replicas:
            shutil.rmtree(directory / name)
    _meta_properties(world, broker, directory)
    (directory / LOCK).touch()
    for address, log in replicas.items():
        _Replica(world, address, log, epochs(world, broker, address)).write(
            directory / f"{address.topic}-{address.partition}"
        )
    _checkpoint(directory / HIGH_WATERMARKS, {at: log.high_watermark for at, log in replicas.items()})
    _checkpoint(directory / RECOVERY_POINTS, {at: max(log.flushed, log.start) for at, log in replicas.items()})
    _checkpoint(
        directory / LOG_STARTS, {at: log.start for at, log in replicas.items() if log.start > _base(world, log)}
    )
    _clean_shutdown(world, broker, directory)


class DirectoryLock:
    """Holds a log directory as a broker's process does as long as it runs, so that others see that it does.

    The lock is this process's: it ends with it, and this process itself does not see it.
    """

    def __init__(self, directory: Path) -> None:
        self._file = (directory / LOCK).open("ab")
        fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Let go of it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _claim(world: World, broker: int, directory: Path) -> None:
    """Make sure that nothing but this broker's own log directory is overwritten."""
    if not directory.exists():
        return
    next_step = "name a directory that is empty or not there"
    try:
        names = os.listdir(directory)
        meta = read_meta_properties(directory)
    except (OSError, GarbledError) as error:
        raise UsageError(f"cannot write a log directory to {directory}: {error}", next_step=next_step) from error
    if names and (meta is None or (meta.cluster_id, meta.broker) != (world.cluster_id, broker)):
        raise UsageError(f"{directory} is not the log directory of this cluster's broker {broker}", next_step=next_step)


def _replicas(world: World, broker: int) -> Iterator[tuple[TopicPartition, SimulatedLog]]:
    count = 0
    for topic in world.topics():
        for partition in range(world.partitions(topic)):
            address = TopicPartition(topic, partition)
            state, log = world.state(address), world.log(address, broker)
            if state is None or log is None or broker in (state.offline_replicas or ()):
                continue
            count += 1
            if count > MOST_REPLICAS:
                raise UsageError(
                    f"broker {broker} has more than {MOST_REPLICAS} replicas, too many for a directory of each",
                    next_step="bring up a cluster with fewer topics",
                )
            yield address, log


def _base(world: World, log: SimulatedLog) -> int:
    """The first offset of a log's first batch; the batches of a log are never parted at its start."""
    return next((batch.base_offset for batch in world.contents.batches(log, log.start)), log.start)


def _meta_properties(world: World, broker: int, directory: Path) -> None:
    own = id_text(directory_id(world.cluster_id, broker))
    lines = ("version=1", f"cluster.id={world.cluster_id}", f"node.id={broker}", f"directory.id={own}", "")
    (directory / META_PROPERTIES).write_text("\n".join(lines), encoding="utf-8")


def _clean_shutdown(world: World, broker: int, directory: Path) -> None:
    cluster, mark = world.running.cluster, directory / CLEAN_SHUTDOWN
    if broker in cluster.down and broker not in cluster.crashed:
        epoch = world.brokers[broker].epoch
        mark.write_text(json.dumps({"version": 0, "brokerEpoch": epoch}, separators=(",", ":")), encoding="utf-8")
    else:
        mark.unlink(missing_ok=True)


def _checkpoint(path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    _lines(path, (f"{at.topic} {at.partition} {offset}" for at, offset in sorted(offsets.items())))


def _lines(path: Path, entries: Iterable[str]) -> None:
    listed = list(entries)
    path.write_text("\n".join(["0", str(len(listed)), *listed, ""]), encoding="utf-8")


@dataclass(slots=True)
class _Replica:
    """One replica's directory."""

    world: World
    address: TopicPartition
    log: SimulatedLog
    epochs: tuple[EpochStart, ...]

    def write(self, directory: Path) -> None:
        if directory.exists():
            shutil.rmtree(directory)
        directory.mkdir()
        topic_id = id_text(self.world.topic_id(self.address.topic))
        (directory / PARTITION_METADATA).write_text(f"version: 0\ntopic_id: {topic_id}", encoding="utf-8")
        _lines(directory / LEADER_EPOCHS, (f"{entry.epoch} {entry.start}" for entry in self.epochs))
        segment: _Segment | None = None
        for batch in self.world.contents.batches(self.log, self.log.start):
            if segment is None or len(segment.data) + len(batch.data) > self._segment_bytes:
                if segment is not None:
                    segment.write(directory)
                segment = _Segment(batch.base_offset)
            segment.append(batch)
        (segment or _Segment(self.log.start)).write(directory)

    @property
    def _segment_bytes(self) -> int:
        text = self.world.topic_configs.get(self.address.topic, {}).get("segment.bytes", "")
        return int(text) if text.isdecimal() else SEGMENT_BYTES


@dataclass(slots=True)
class _Segment:
    """A segment with its two indexes."""

    base_offset: int
    data: bytearray = field(default_factory=bytearray)
    offsets: bytearray = field(default_factory=bytearray)
    times: bytearray = field(default_factory=bytearray)
    unindexed: int = 0
    newest_ms: int = -1
    newest_offset: int = 0
    timed_ms: int = -1

    def append(self, batch: Batch) -> None:
        header = read_header(batch.data)
        assert header is not None
        if (header.max_timestamp_ms or -1) > self.newest_ms:
            self.newest_ms, self.newest_offset = header.max_timestamp_ms or -1, header.last_offset
        if self.unindexed > _INDEX_INTERVAL_BYTES:
            self.offsets += _INDEX_ENTRY.pack(header.last_offset - self.base_offset, len(self.data))
            self._time()
            self.unindexed = 0
        self.unindexed += len(batch.data)
        self.data += batch.data

    def write(self, directory: Path) -> None:
        self._time()
        name = f"{self.base_offset:020d}"
        (directory / f"{name}.log").write_bytes(self.data)
        (directory / f"{name}.index").write_bytes(self.offsets)
        (directory / f"{name}.timeindex").write_bytes(self.times)

    def _time(self) -> None:
        if self.newest_ms > self.timed_ms:
            self.times += _TIME_ENTRY.pack(self.newest_ms, self.newest_offset - self.base_offset)
            self.timed_ms = self.newest_ms


# Keeps the log directories of a simulated cluster's brokers on the disk, each as it was when its process ended.
#
# While a process runs its directory is locked, as Kafka does it, so that nobody takes what is in it for what the broker
# holds.


class DiskKeeper:
    """Follows a server's brokers.

    Args:
        directories: each broker's log directory.

    Raises:
        UsageError: a broker has too many replicas, or a directory holds something else.
        OSError: a directory cannot be written.
    """

    def __init__(self, server: Server, directories: Mapping[int, Path]) -> None:
        self._server = server
        self._directories = directories
        self._locks: dict[int, DirectoryLock] = {}
        for broker, directory in directories.items():
            write(server.world, broker, directory)
            self._follow(broker)
        server.after_change.append(self._look)

    def rewrite(self, broker: int) -> None:
        """What a broker's disk holds has changed while its process does not run.

        Raises:
            OSError: the directory cannot be written.
        """
        if not self._server.world.running.runs(broker):
            write(self._server.world, broker, self._directories[broker])

    def take_mark(self, broker: int) -> None:
        """A broker is about to start: it registers by the mark of a clean shutdown that its directory has now, which
        somebody may have changed or taken away."""
        world, directory = self._server.world, self._directories[broker]
        registration, cluster = world.brokers.get(broker), world.running.cluster
        if world.running.runs(broker) or broker not in cluster.down or registration is None:
            return
        mark = read_clean_shutdown(directory)
        if mark is None or mark.broker_epoch != registration.epoch:
            world.running.cluster = replace(cluster, crashed=cluster.crashed | {broker})

    def close(self) -> None:
        """Let go of every directory; what running brokers hold is written once more."""
        for broker in list(self._locks):
            self._locks.pop(broker).close()
            self._written(broker)

    def _look(self) -> None:
        for broker in self._directories:
            self._follow(broker)

    def _follow(self, broker: int) -> None:
        runs = self._server.world.running.runs(broker)
        if runs and broker not in self._locks:
            self._locks[broker] = DirectoryLock(self._directories[broker])
        elif not runs and broker in self._locks:
            self._written(broker)
            self._locks.pop(broker).close()

    def _written(self, broker: int) -> None:
        try:
            write(self._server.world, broker, self._directories[broker])
        except (OSError, KelrError) as error:
            self._server.broke(error)
