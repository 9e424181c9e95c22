"""Several collections as one: which reading of a replica counts, and what contradicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.engine.words import plural
from kelr.model import BrokerStatus, LogUnavailable, Snapshot, TopicPartition
from kelr.sources.snapshot_collection import CollectedDisk, CollectedLog, Collection, one_cluster


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
