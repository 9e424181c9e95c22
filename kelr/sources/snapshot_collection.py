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
from kelr.engine.words import plural
from kelr.errors import BadInputError, RefusedError, UsageError
from kelr.model import (
    BrokerStatus,
    Cluster,
    LogAnswer,
    LogUnavailable,
    Selection,
    Snapshot,
    TopicPartition,
    parse_target,
)
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
    (`kelr.sources.snapshot_collection`).

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


# Several collections as one: which reading of a replica counts, and what contradicts.


@dataclass(frozen=True, slots=True)
class Merged:
    """What several collections know together."""

    cluster_id: str | None = None
    logs: Mapping[TopicPartition, tuple[CollectedLog, ...]] = field(default_factory=dict)
    """For each replica and topic id the one reading that counts, sorted by replica; partitions sorted by address."""
    disks: Mapping[int, tuple[CollectedDisk, ...]] = field(default_factory=dict)
    """By broker, the readings of its log directories, newest first."""
    conflicts: tuple[str, ...] = ()
    """What contradicted, and what was done about it; a sentence each."""

    def running(self, broker: int, name: str) -> bool:
        """Whether the broker ran while its disk was read for the collection of this name."""
        return any(disk.running for disk in self.disks.get(broker, ()) if disk.name == name)

    def as_collection(self, name: str, taken_at_ms: int) -> Collection:
        """The logs as one collection that can be saved (`save_collection`); each broker's readings become one."""
        disks = tuple(_one_disk(self.disks[broker]) for broker in sorted(self.disks))
        known = {disk.broker for disk in disks}
        logs = {
            address: kept
            for address, found in self.logs.items()
            if (kept := _one_each(log for log in found if log.answer.replica in known and log.of_disk))
        }
        return Collection(name, self.cluster_id, taken_at_ms, disks, logs)


def merge(collections: Sequence[Collection]) -> Merged:
    """What these collections know together. Of two readings of a replica the newer one counts, and that is said.

    A disk that was read before its broker was seen live is not used: its log may have grown, or been truncated, since.

    Raises:
        RefusedError: they are of different clusters.
    """
    cluster_id = one_cluster(collections)
    conflicts: list[str] = []
    snapshots = [one.snapshot for one in collections if one.snapshot is not None]
    conflicts.extend(_without_their_disks(collections))
    disks = _disks(collections, snapshots, conflicts)
    entries = list(_entries(collections, disks))
    logs = _newest(entries, conflicts)
    conflicts.extend(_topics_made_again(logs))
    return Merged(cluster_id, logs, disks, tuple(conflicts))


def _disks(
    collections: Sequence[Collection], snapshots: Sequence[Snapshot], conflicts: list[str]
) -> Mapping[int, tuple[CollectedDisk, ...]]:
    """The readings that count, by broker, newest first."""
    found: dict[int, list[CollectedDisk]] = {}
    for disk in (disk for one in collections for disk in one.disks):
        live = _seen_live_after(disk, snapshots)
        if live is not None:
            conflicts.append(
                f"broker {disk.broker} was live in {live.source}, after its disk was read ({disk.name}): that reading"
                " is not used"
            )
        else:
            found.setdefault(disk.broker, []).append(disk)
    for broker, readings in found.items():
        readings.sort(key=lambda disk: disk.read_at_ms, reverse=True)
        if len(readings) > 1:
            older = ", ".join(disk.name for disk in readings[1:])
            conflicts.append(
                f"the disk of broker {broker} was read {len(readings)} times: {readings[0].name} is the newest and"
                f" counts wherever it tells of a replica, before {older}"
            )
    return {broker: tuple(found[broker]) for broker in sorted(found)}


def _seen_live_after(disk: CollectedDisk, snapshots: Sequence[Snapshot]) -> Snapshot | None:
    later = (
        one
        for one in snapshots
        if one.taken_at_ms > disk.read_at_ms and one.cluster.status(disk.broker) is BrokerStatus.LIVE
    )
    return next(later, None)


def _without_their_disks(collections: Sequence[Collection]) -> Iterator[str]:
    """A snapshot has the logs of disks that were read for it, and not what tells a stale reading from a true one: the
    leader epochs that the disk knew, and the high watermark that it had saved (`kelr.sources.doubt`)."""
    for one in collections:
        brokers = {log.answer.replica for logs in one.logs.values() for log in logs if log.of_disk and _heard(log)}
        left_out = sorted(brokers - {disk.broker for disk in one.disks})
        if left_out:
            which = f"{'broker' if len(left_out) == 1 else 'brokers'} {', '.join(map(str, left_out))}"
            yield (
                f"{one.name} is a snapshot in which logs of {which} are from disks: beside a cluster they are not used;"
                " give the collection that they came from, or read the disks again"
            )


def _heard(log: CollectedLog) -> bool:
    return not isinstance(log.answer, LogUnavailable)


_Entry = tuple[TopicPartition, CollectedLog]


def _entries(collections: Sequence[Collection], disks: Mapping[int, tuple[CollectedDisk, ...]]) -> Iterator[_Entry]:
    """The readings that may count: of disks that do, and answers that brokers gave once."""
    used = {id(disk) for readings in disks.values() for disk in readings}
    for one in collections:
        by_broker = {disk.broker: disk for disk in one.disks}
        for address, logs in one.logs.items():
            for log in logs:
                disk = by_broker.get(log.answer.replica)
                if disk is None:
                    if not isinstance(log.answer, LogUnavailable) and not log.of_disk:
                        yield address, log
                elif id(disk) in used and not _gone_since(address, disk, disks[disk.broker]):
                    yield address, log


def _gone_since(address: TopicPartition, disk: CollectedDisk, readings: Sequence[CollectedDisk]) -> bool:
    """Whether a newer reading of the same directories looked for the replica; if it found one, that one counts."""
    places = _places(disk)
    return any(
        other.read_at_ms > disk.read_at_ms and other.looked_for(address) and places <= _places(other)
        for other in readings
    )


def _places(disk: CollectedDisk) -> frozenset[str]:
    """Its directories, each by its id, or by its path where it has none."""
    return frozenset(one.directory_id or one.path for one in disk.directories)


def _newest(entries: Sequence[_Entry], conflicts: list[str]) -> Mapping[TopicPartition, tuple[CollectedLog, ...]]:
    """The newest reading of each replica of each topic."""
    kept: dict[TopicPartition, dict[tuple[int, str], CollectedLog]] = {}
    passed_over: dict[tuple[int, str, str], int] = {}
    for address, log in entries:
        place = kept.setdefault(address, {})
        key = log.answer.replica, log.topic_id or ""
        other = place.get(key)
        if other is None:
            place[key] = log
            continue
        newer, older = (log, other) if _read_at(log) > _read_at(other) else (other, log)
        place[key] = newer
        which = log.answer.replica, newer.name, older.name
        passed_over[which] = passed_over.get(which, 0) + 1
    for (broker, newer_name, older_name), count in sorted(passed_over.items()):
        conflicts.append(
            f"{plural(count, 'log')} of broker {broker} {'is' if count == 1 else 'are'} in {newer_name} and in"
            f" {older_name}: the newer reading, {newer_name}, counts"
        )
    return {address: tuple(kept[address][key] for key in sorted(kept[address])) for address in sorted(kept)}


def _read_at(log: CollectedLog) -> int:
    return log.read_at_ms if log.answer.read_at_ms is None else log.answer.read_at_ms


def _topics_made_again(logs: Mapping[TopicPartition, tuple[CollectedLog, ...]]) -> Iterator[str]:
    """Topics of which there are logs under several topic ids: one was deleted and made again."""
    ids: dict[str, set[str]] = {}
    for address, found in logs.items():
        ids.setdefault(address.topic, set()).update(log.topic_id for log in found if log.topic_id is not None)
    for topic, known in sorted(ids.items()):
        if len(known) > 1:
            yield (
                f"topic {topic} has logs under {len(known)} topic ids ({', '.join(sorted(known))}): it was deleted and"
                " made again, and logs of another id than the cluster's are not used"
            )


def _one_disk(readings: Sequence[CollectedDisk]) -> CollectedDisk:
    """Several readings of a broker's directories as one, of which the newest tells how they were left."""
    if len(readings) == 1:
        return readings[0]
    directories = {}
    for disk in reversed(readings):
        directories.update({one.directory_id or one.path: one for one in disk.directories})
    newest = readings[0]
    return CollectedDisk(
        broker=newest.broker,
        read_at_ms=newest.read_at_ms,
        directories=tuple(directories[key] for key in sorted(directories)),
        selection=newest.selection,
        warnings=tuple(dict.fromkeys(warning for disk in readings for warning in disk.warnings)),
        name=newest.name,
        whole=all(disk.whole and disk.selection == newest.selection for disk in readings),
    )


def _one_each(logs: Iterator[CollectedLog]) -> tuple[CollectedLog, ...]:
    """One log of each replica, the newest: a file holds no two topics of one name."""
    newest: dict[int, CollectedLog] = {}
    for log in logs:
        other = newest.get(log.answer.replica)
        if other is None or _read_at(log) > _read_at(other):
            newest[log.answer.replica] = log
    return tuple(newest[replica] for replica in sorted(newest))
