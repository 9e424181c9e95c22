"""Collections: what was read of brokers' log directories, or a whole snapshot, saved to be used beside a cluster.

The file is a snapshot file (docs/snapshot-format.md) whose header names the brokers and directories, with one line for
each replica. Ordinary snapshot files are read as collections, too: then their logs are what is collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kelr import __version__
from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.model import Cluster, LogAnswer, LogUnavailable, Selection, Snapshot, TopicPartition, parse_target
from kelr.sources.disk.collection import SOURCE, DiskCollection, LogDirectory
from kelr.sources.disk.names import printable
from kelr.sources.snapshot_file import read_snapshot, write_lines
from kelr.sources.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from pydantic import BaseModel

    from kelr.sources.snapshot_lines import DiskLine, ReplicaLine


@dataclass(frozen=True, slots=True)
class CollectedLog:
    """One replica's log as a collection has it."""

    topic_id: str | None
    answer: LogAnswer
    of_disk: bool
    """Read from the broker's log directory; else it is an answer that the broker gave once."""
    read_at_ms: int
    """When the collection's reading began, where the answer has no time of its own."""
    name: str = ""
    """The collection it is from."""
    directory: str = ""
    notes: tuple[str, ...] = ()
    bytes_behind: int = 0
    newest_epoch: int | None = None
    """As `DiskLog.newest_epoch`."""
    saved_high_watermark: int | None = None
    """As `DiskLog.saved_high_watermark`."""


@dataclass(frozen=True, slots=True)
class CollectedDisk:
    """A broker whose log directories were read."""

    broker: int
    read_at_ms: int
    directories: tuple[LogDirectory, ...]
    selection: Selection | None = None
    """Which partitions were looked for; None: all."""
    warnings: tuple[str, ...] = ()
    name: str = ""
    """The collection it is from."""
    whole: bool = True
    """False: made of several readings that looked for different partitions, so that what is missing proves nothing."""

    @property
    def running(self) -> bool:
        """Whether the broker ran while its directories were read."""
        return any(directory.running for directory in self.directories)

    @property
    def unreadable(self) -> tuple[LogDirectory, ...]:
        return tuple(directory for directory in self.directories if directory.error is not None)

    @property
    def broker_epoch(self) -> int | None:
        """As `DiskCollection.broker_epoch`."""
        epochs = {directory.broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else None

    def looked_for(self, address: TopicPartition) -> bool:
        """Whether this partition would have been found, had it been in a directory that was read."""
        whole = self.whole and not any(directory.single_replica for directory in self.directories)
        return whole and (self.selection is None or self.selection.matches(address.topic, address.partition))


@dataclass(frozen=True, slots=True)
class Collection:
    """A file of logs, of one cluster."""

    name: str
    """The file's name, or another one to tell it by."""
    cluster_id: str | None
    taken_at_ms: int
    disks: tuple[CollectedDisk, ...] = ()
    logs: Mapping[TopicPartition, tuple[CollectedLog, ...]] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    """For an ordinary snapshot: all of it."""


def collection_of_disk(disk: DiskCollection, name: str = "") -> Collection:
    """A reading of log directories as a collection that is in memory."""
    name = name or f"{SOURCE} of broker {disk.broker}"
    return Collection(
        name=name,
        cluster_id=disk.cluster_id,
        taken_at_ms=disk.read_at_ms,
        disks=(
            CollectedDisk(disk.broker, disk.read_at_ms, disk.directories, disk.selection, disk.warnings, name=name),
        ),
        logs={
            address: (
                CollectedLog(
                    topic_id=log.topic_id,
                    answer=log.answer,
                    of_disk=True,
                    read_at_ms=disk.read_at_ms,
                    name=name,
                    directory=log.directory,
                    notes=log.notes,
                    bytes_behind=log.bytes_behind,
                    newest_epoch=log.newest_epoch,
                    saved_high_watermark=log.saved_high_watermark,
                ),
            )
            for address, log in disk.logs.items()
        },
    )


def collection_of_snapshot(snapshot: Snapshot) -> Collection:
    """A snapshot's logs as a collection."""
    topic_ids = {state.address: state.topic_id for state in snapshot.partitions}
    return Collection(
        name=snapshot.source,
        cluster_id=snapshot.cluster.cluster_id,
        taken_at_ms=snapshot.taken_at_ms,
        logs={
            address: tuple(
                CollectedLog(topic_ids.get(address), answer, _is_of_disk(answer), snapshot.taken_at_ms, snapshot.source)
                for answer in answers
            )
            for address, answers in snapshot.logs.items()
        },
        snapshot=snapshot,
    )


def _is_of_disk(answer: LogAnswer) -> bool:
    return getattr(answer, "source", "").startswith(SOURCE)


def save_collection(
    collected: DiskCollection | Collection | Sequence[Collection], path: Path, *, overwrite: bool = False
) -> int:
    """Save readings of log directories as one file, to be used elsewhere beside a cluster.

    Several collections that hold the same broker's disk, or a snapshot, have to be merged first
    (`kelr.sources.merging`).

    Returns: how many replicas were saved.

    Raises:
        RefusedError: they are of different clusters.
        UsageError: a broker's disk is in two of them; the file exists and `overwrite` is not set, or it cannot be
            written.
    """
    if isinstance(collected, DiskCollection):
        collected = collection_of_disk(collected)
    several = (collected,) if isinstance(collected, Collection) else tuple(collected)
    one_cluster(several)
    brokers = [disk.broker for one in several for disk in one.disks]
    if len(set(brokers)) != len(brokers) or not brokers:
        raise UsageError("a file holds one reading of each broker's disk", next_step="merge the readings first")
    write_lines(_lines(several), path, overwrite=overwrite)
    return sum(len(logs) for one in several for logs in one.logs.values())


def one_cluster(collections: Sequence[Collection]) -> str | None:
    """The id of the cluster that all of these are of; None where none of them tells.

    Raises:
        RefusedError: they are of different ones.
    """
    by_id: dict[str, str] = {}
    for one in collections:
        if one.cluster_id is not None:
            by_id.setdefault(one.cluster_id, one.name)
    if len(by_id) > 1:
        said = " and ".join(f"{name} of {cluster}" for cluster, name in sorted(by_id.items()))
        raise RefusedError(
            f"the collections are of different clusters: {said}",
            next_step="merge files of one cluster only",
            code="collections-differ",
        )
    return next(iter(by_id), None)


def _lines(collections: Sequence[Collection]) -> Iterator[BaseModel]:
    from kelr.sources.snapshot_lines import BodyLine, ClusterLine, HeaderLine  # noqa: PLC0415

    cluster = Cluster(one_cluster(collections), (), brokers_source=SOURCE, partitions_source=SOURCE)
    disks = sorted((disk for one in collections for disk in one.disks), key=lambda disk: disk.broker)
    yield HeaderLine(
        kelr=__version__,
        taken_at_ms=min(one.taken_at_ms for one in collections),
        source=SOURCE,
        cluster=ClusterLine.of(cluster),
        disks=tuple(_disk_line(disk) for disk in disks),
    )
    replicas = sorted(
        (
            (address, log.answer.replica, log)
            for one in collections
            for address, logs in one.logs.items()
            for log in logs
        ),
        key=lambda entry: entry[:2],
    )
    for address, _, log in replicas:
        yield BodyLine(replica=_replica_line(address, log))


def _disk_line(disk: CollectedDisk) -> DiskLine:
    from kelr.sources.snapshot_lines import DirectoryLine, DiskLine  # noqa: PLC0415

    return DiskLine(
        broker=disk.broker,
        read_at_ms=disk.read_at_ms,
        directories=tuple(DirectoryLine.from_value(replace(one, path=printable(one.path))) for one in disk.directories),
        selected=None if disk.selection is None else tuple(str(target) for target in disk.selection.targets),
        whole=disk.whole,
        warnings=tuple(map(printable, disk.warnings)),
    )


def _replica_line(address: TopicPartition, log: CollectedLog) -> ReplicaLine:
    from kelr.sources.snapshot_lines import LogLine, ReplicaLine  # noqa: PLC0415

    return ReplicaLine(
        topic=address.topic,
        partition=address.partition,
        topic_id=log.topic_id,
        log=LogLine.of(_printable(log.answer)),
        directory=printable(log.directory),
        notes=tuple(map(printable, log.notes)),
        bytes_behind=log.bytes_behind,
        newest_epoch=log.newest_epoch,
        saved_high_watermark=log.saved_high_watermark,
    )


def _printable(answer: LogAnswer) -> LogAnswer:
    return replace(answer, detail=printable(answer.detail)) if isinstance(answer, LogUnavailable) else answer


def read_collection(path: Path) -> Collection:
    """A file that `save_collection` wrote, or an ordinary snapshot file.

    Raises:
        BadInputError: neither, truncated, garbled, or of a newer version; names the file and the line.
    """
    reader = SnapshotReader(path)
    if reader.disks is None:
        return collection_of_snapshot(read_snapshot(path))
    cluster_id, name = reader.cluster.cluster_id, str(path)
    disks = tuple(_disk(line, cluster_id, path) for line in reader.disks)
    read_at_ms = {disk.broker: disk.read_at_ms for disk in disks}
    if len(read_at_ms) != len(disks):
        raise _garbled(path, "a broker stands twice in its header")
    logs: dict[TopicPartition, list[CollectedLog]] = {}
    for line in reader.body():
        replica = line.replica
        if replica is None:
            continue
        if replica.log.replica not in read_at_ms:
            raise _garbled(path, f"it holds a replica of broker {replica.log.replica}, which its header does not name")
        logs.setdefault(TopicPartition(replica.topic, replica.partition), []).append(
            CollectedLog(
                topic_id=replica.topic_id,
                answer=replica.log.value(),
                of_disk=True,
                read_at_ms=read_at_ms[replica.log.replica],
                name=name,
                directory=replica.directory,
                notes=replica.notes,
                bytes_behind=replica.bytes_behind,
                newest_epoch=replica.newest_epoch,
                saved_high_watermark=replica.saved_high_watermark,
            )
        )
    kept = {address: tuple(found) for address, found in logs.items()}
    return Collection(name=name, cluster_id=cluster_id, taken_at_ms=reader.taken_at_ms, disks=disks, logs=kept)


def _disk(line: DiskLine, cluster_id: str | None, path: Path) -> CollectedDisk:
    selection = None
    if line.selected is not None:
        try:
            selection = Selection(tuple(parse_target(text) for text in line.selected))
        except ValueError as error:
            raise _garbled(path, str(error)) from error
    return CollectedDisk(
        broker=line.broker,
        read_at_ms=line.read_at_ms,
        directories=tuple(
            LogDirectory(cluster_id=cluster_id, broker=line.broker, **dict(one)) for one in line.directories
        ),
        selection=selection,
        warnings=line.warnings,
        name=str(path),
        whole=line.whole,
    )


def _garbled(path: Path, why: str) -> BadInputError:
    return BadInputError(
        f"{path}: garbled collection: {why}", next_step="collect again, or copy the file again: nothing of it is used"
    )
