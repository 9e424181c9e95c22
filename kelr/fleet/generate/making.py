"""Making a fleet: each cluster lives, and what a collector would have brought of it is written.

OUT/payments-eu-west/node-3000/meta.properties
OUT/payments-eu-west/node-3000/__cluster_metadata-0/00000000000000000000.log
OUT/inventory-eu-north/20261004T000000Z.kelr
OUT/truth.json
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from kelr.durable import whole_file
from kelr.errors import UsageError
from kelr.fleet.generate.cluster import Cluster, LogEnds
from kelr.fleet.generate.life import Agenda, Incidents, Life, Story
from kelr.fleet.generate.log import DIRECTORY, Checkpoint, MetadataLog
from kelr.fleet.generate.plan import (
    CONTROLLERS,
    DAY_MS,
    START_MS,
    WEEK_MS,
    ClusterPlan,
    FleetPlan,
    Shape,
    cluster_plans,
    made_id,
)
from kelr.fleet.generate.truth import Truth
from kelr.fleet.workers import LocalWorkers
from kelr.model import LOG_DIRECTORY, LogAnswer, LogUnavailable, LogUnavailableReason, TopicPartition
from kelr.replay.image import MetadataImage, TopicOnRecord
from kelr.replay.records import At, BrokerOnRecord
from kelr.replay.snapshots import snapshot_of_image
from kelr.sources.disk.collection import LogDirectory
from kelr.sources.snapshot_collection import CollectedDisk, CollectedLog, Collection, save_collection
from kelr.sources.snapshot_file import write_snapshot

# What goes wrong with files on their way, done to a fleet on purpose.


NOT_A_LOG = "server.log"
UNKNOWN_ORIGIN, SAME_ID = "unknown-origin", "cloned"


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong."""

    path: str
    """Below the fleet's folder."""
    what: str
    """``torn tail``, ``CRC error``, ``not a metadata log``, ``empty directory``, ``no meta.properties`` or
    ``same cluster id``."""


def damage(plans: Sequence[ClusterPlan], out: Path) -> tuple[Damage, ...]:
    """Break some files, and add others that do not belong there. Raises OSError."""
    logs = [plan for plan in plans if plan.shape is not Shape.SNAPSHOTS]
    done = [_not_a_log(out), _empty(out)]
    if logs:
        done += [_torn(_last_segment(logs[0], out), out), _of_unknown_origin(logs[-1], out)]
    if len(logs) > 1:
        done += [_with_crc_error(_last_segment(logs[1], out), out), _with_same_id(logs[0], logs[-1], out)]
    return tuple(done)


def _last_segment(plan: ClusterPlan, out: Path) -> Path:
    return max(log_folder(out / plan.name, CONTROLLERS[0]).glob("*.log"))


def _torn(segment: Path, out: Path) -> Damage:
    """Copied while its node appended: the last batch is not whole."""
    content = segment.read_bytes()
    last = list(batches_of(content))[-1]
    segment.write_bytes(content[: len(content) - len(last) // 2])
    return _at(segment, out, "torn tail")


def _with_crc_error(segment: Path, out: Path) -> Damage:
    """One bit of a batch in the middle is another one."""
    content = bytearray(segment.read_bytes())
    batches = list(batches_of(bytes(content)))
    place = sum(map(len, batches[: len(batches) // 2])) + len(batches[len(batches) // 2]) - 1
    content[place] ^= 1
    segment.write_bytes(content)
    return _at(segment, out, "CRC error")


def _not_a_log(out: Path) -> Damage:
    path = out / NOT_A_LOG
    path.write_text("[2026-10-04 23:59:59,000] INFO Kafka Server started (kafka.server.KafkaRaftServer)\n" * 50)
    return _at(path, out, "not a metadata log")


def _empty(out: Path) -> Damage:
    path = log_folder(out / "empty", CONTROLLERS[0])
    path.mkdir(parents=True)
    return _at(path, out, "empty directory")


def _of_unknown_origin(plan: ClusterPlan, out: Path) -> Damage:
    """A copy of a log that does not tell of which cluster it is."""
    target = log_folder(out / UNKNOWN_ORIGIN, CONTROLLERS[0])
    shutil.copytree(log_folder(out / plan.name, CONTROLLERS[0]), target)
    return _at(target, out, "no meta.properties")


def _with_same_id(plan: ClusterPlan, other: ClusterPlan, out: Path) -> Damage:
    """Another cluster that was made from a copy of a disk: its log is another one, its id the same."""
    target = out / SAME_ID / f"node-{CONTROLLERS[0]}"
    shutil.copytree(out / other.name / f"node-{CONTROLLERS[0]}", target)
    properties = target / "meta.properties"
    properties.write_text(properties.read_text(encoding="utf-8").replace(other.cluster_id, plan.cluster_id))
    return _at(target, out, "same cluster id")


def _at(path: Path, out: Path, what: str) -> Damage:
    return Damage(str(path.relative_to(out)), what)


# The directories of a cluster's controllers, as they are found on their disks.


_PLACE = struct.Struct(">qi")
_OVERHEAD = 12
"""Bytes before what a batch's length counts."""


def log_folder(cluster: Path, node: int) -> Path:
    """Where the metadata log of a controller is."""
    return cluster / f"node-{node}" / DIRECTORY


def write_nodes(plan: ClusterPlan, folder: Path, log: MetadataLog) -> None:
    """Complete the directory of the first controller, which has the whole log, and make those of others.

    Raises:
        OSError: something cannot be written.
    """
    first, second, third = CONTROLLERS
    source = log_folder(folder, first)
    _write_properties(plan, source.parent, first, log)
    if plan.shape is Shape.COPIES:
        _copy_that_ends_earlier(source, log_folder(folder, second))
        _write_properties(plan, log_folder(folder, second).parent, second, log)
        _copy_from_checkpoint(source, log_folder(folder, third), log, _kept(log))
        _write_properties(plan, log_folder(folder, third).parent, third, log)
    if plan.shape is Shape.CUT:
        _cut(source, log, _kept(log))


def _kept(log: MetadataLog) -> Checkpoint | None:
    """The oldest checkpoint that is kept, where older segments are deleted."""
    return log.checkpoints[len(log.checkpoints) // 2] if log.checkpoints else None


def _write_properties(plan: ClusterPlan, folder: Path, node: int, log: MetadataLog) -> None:
    lines = (
        "#",
        "#Mon Sep 07 00:00:00 UTC 2026",
        f"cluster.id={plan.cluster_id}",
        f"directory.id={made_id(f'{plan.seed}/directory/{node}')}",
        f"node.id={node}",
        "version=1",
    )
    (folder / "meta.properties").write_text("\n".join(lines) + "\n", encoding="utf-8")
    voted = {"leaderId": log.leader, "leaderEpoch": log.epoch, "votedId": -1, "data_version": 1}
    (folder / DIRECTORY / "quorum-state").write_text(json.dumps(voted), encoding="utf-8")


def _copy_that_ends_earlier(source: Path, target: Path) -> None:
    """All files, but the last segment ends where two thirds of its batches do, and no checkpoint of later records."""
    target.mkdir(parents=True)
    segments = sorted(source.glob("*.log"))
    for path in segments[:-1]:
        shutil.copyfile(path, target / path.name)
    batches = list(batches_of(segments[-1].read_bytes()))
    held = batches[: max(1, len(batches) * 2 // 3)]
    (target / segments[-1].name).write_bytes(b"".join(held))
    last = _PLACE.unpack_from(held[-1])[0]
    for path in sorted(source.glob("*.checkpoint")):
        if int(path.name.partition("-")[0]) <= last:
            shutil.copyfile(path, target / path.name)


def _copy_from_checkpoint(source: Path, target: Path, log: MetadataLog, kept: Checkpoint | None) -> None:
    shutil.copytree(source, target)
    _cut(target, log, kept)


def _cut(folder: Path, log: MetadataLog, kept: Checkpoint | None) -> None:
    """Delete segments and checkpoints that are older than a checkpoint (KafkaRaftLog.maybeClean)."""
    if kept is None:
        return
    ends = [first for first, _ in log.segments[1:]]
    for (_, name), end in zip(log.segments, ends, strict=False):
        if end <= kept.end:
            (folder / name).unlink()
    for checkpoint in log.checkpoints:
        if checkpoint.end < kept.end:
            (folder / checkpoint.name).unlink()


def batches_of(content: bytes) -> Iterator[bytes]:
    """The batches of a segment."""
    at = 0
    while at < len(content):
        size = _OVERHEAD + _PLACE.unpack_from(content, at)[1]
        yield content[at : at + size]
        at += size


# What is seen of a living cluster from outside: its image, snapshot files, and log directories that are read.


_ASKED = "ListOffsets+Fetch"


def image_of(cluster: Cluster) -> MetadataImage:
    """The cluster as one knows it who has read its metadata log."""
    image = MetadataImage()
    image.at = At(cluster.log.end - 1, cluster.log.epoch, cluster.log.at_ms)
    image.controller = cluster.controller
    image.features = dict(cluster.features)
    for broker, registration in sorted(cluster.state.brokers.items()):
        record = cluster.registered[broker]
        image.brokers[broker] = BrokerOnRecord(
            record,
            fenced=registration.fenced,
            in_controlled_shutdown=registration.in_controlled_shutdown,
            directories=record.directories,
        )
    for topic in cluster.held.topics.values():
        image.names[topic.name] = topic.topic_id
        image.topics[topic.topic_id] = TopicOnRecord(
            topic.name,
            topic.topic_id,
            {one.number: cluster.on_record(one) for one in topic.partitions},
            {
                one.number: tuple(cluster.directories[replica] for replica in one.form.state.replicas)
                for one in topic.partitions
            },
        )
    image.configs = {resource: dict(values) for resource, values in cluster.configs.items()}
    return image


def save_snapshot_of(cluster: Cluster, ends: LogEnds, path: Path) -> None:
    """A snapshot as ``kelr snapshot`` takes it: live brokers tell what their logs hold."""
    seen = snapshot_of_image(image_of(cluster), cluster_id=cluster.plan.cluster_id, source="cluster")
    logs: dict[TopicPartition, tuple[LogAnswer, ...]] = {}
    for topic in cluster.held.topics.values():
        for one in topic.partitions:
            found = ends.logs(one, cluster.now_ms, how=_ASKED)
            logs[TopicPartition(topic.name, one.number)] = tuple(
                found[replica]
                if cluster.live(replica)
                else LogUnavailable(replica, LogUnavailableReason.UNREACHABLE, "connection refused", cluster.now_ms)
                for replica in one.form.state.replicas
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_snapshot(replace(seen, taken_at_ms=cluster.now_ms, logs=logs), path)


def save_directories_of(cluster: Cluster, ends: LogEnds, brokers: Sequence[int], path: Path) -> None:
    """The log directories of these brokers, as ``kelr recover collect`` saves what it reads of disks."""
    name, disks = path.name, []
    logs: dict[TopicPartition, tuple[CollectedLog, ...]] = {}
    for broker in sorted(brokers):
        place = f"/var/lib/kafka/data-{broker}"
        live = cluster.live(broker)
        directory = LogDirectory(
            place, cluster.plan.cluster_id, broker, cluster.directories[broker], clean_shutdown=False, running=live
        )
        disks.append(CollectedDisk(broker, cluster.now_ms, (directory,), name=name))
        for one in cluster.held.naming(broker):
            if broker not in one.form.state.replicas:
                continue
            answer = replace(
                ends.logs(one, cluster.now_ms, how=LOG_DIRECTORY)[broker], unclean_shutdown=None if live else True
            )
            log = CollectedLog(one.topic.topic_id, answer, of_disk=True, read_at_ms=cluster.now_ms, directory=place)
            address = TopicPartition(one.topic.name, one.number)
            logs[address] = (*logs.get(address, ()), log)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_collection(Collection(name, cluster.plan.cluster_id, cluster.now_ms, tuple(disks), logs), path)


# Making.


TRUTH = "truth.json"
_SNAPSHOT_DAYS = 3
"""Of so many days before the end there are snapshot files, where nothing else is left of a cluster."""
_MOST_FOLLOWED = 20_000
"""Of a cluster with more partitions the ends of the logs are followed only where snapshots are taken of it."""


@dataclass(frozen=True, slots=True)
class Made:
    """A fleet that was made."""

    clusters: tuple[Truth, ...]
    """The largest first."""
    damages: tuple[Damage, ...]
    size_bytes: int
    """Of all files but the one with the truth."""


@dataclass(frozen=True, slots=True)
class Lived:
    """A cluster at the end of its weeks."""

    cluster: Cluster
    truth: Truth


def make_fleet(
    fleet: FleetPlan, out: Path, *, workers: int | None = 1, told: Callable[[int, int], None] | None = None
) -> Made:
    """Make a fleet in an empty or a new folder. The same plan makes the same files.

    Args:
        workers: so many clusters at a time, each by a process of its own; 1: one after the other, by this one; None: as
            many as there are processors.
        told: told of the clusters that are made, and of how many there are.

    Raises:
        UsageError: such a fleet cannot be, or the folder has something in it or cannot be written.
        KelrError: a process was ended.
    """
    plans = cluster_plans(fleet)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty", next_step="name a folder that is not there yet")
        with LocalWorkers(workers, told) as those:
            clusters = those.do(partial(make_cluster, out=out), plans)
        damages = damage(plans, out) if fleet.damage else ()
    except OSError as error:
        raise UsageError(
            f"{error.filename or out} cannot be written: {error.strerror or error}",
            next_step="name a folder that you may write to",
        ) from error
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    _write_truth(clusters, damages, out)
    return Made(tuple(clusters), tuple(damages), size)


def make_cluster(plan: ClusterPlan, out: Path) -> Truth:
    """Make one cluster, in a folder of its name. Raises OSError."""
    keeps_log = plan.shape is not Shape.SNAPSHOTS
    folder = out / plan.name
    with closing(MetadataLog(log_folder(folder, CONTROLLERS[0]) if keeps_log else None, plan.segment_bytes)) as log:
        truth = live(plan, log, folder).truth
    if keeps_log:
        write_nodes(plan, folder, log)
    return truth


def live(plan: ClusterPlan, log: MetadataLog, folder: Path) -> Lived:
    """Let a cluster live through its weeks.

    Args:
        folder: where snapshots and collections go.
    """
    snapshots = plan.shape is Shape.SNAPSHOTS
    ends = LogEnds() if snapshots or plan.partitions <= _MOST_FOLLOWED else None
    software = plan.software
    rules = (software.elr_later or software.rules).name
    truth = Truth(plan.cluster_id, plan.name, software.name, software.metadata_version, rules, plan.shape.value)
    agenda = Agenda(START_MS)
    cluster = Cluster(plan, log, truth, START_MS, ends)
    life = Life(cluster, agenda)
    life.begin()
    watched = _Watched(cluster, ends, folder)
    Incidents(life, watched.collect if ends is not None else None).begin()
    if snapshots:
        agenda.start(watched.daily(), plan.end_ms - _SNAPSHOT_DAYS * DAY_MS)
    else:
        agenda.start(watched.checkpoints(), START_MS + WEEK_MS - DAY_MS)
    for now_ms in agenda.run(plan.end_ms):
        cluster.now_ms = now_ms
    cluster.now_ms = plan.end_ms
    cluster.idle()
    if snapshots:
        watched.snapshot()
    _conclude(cluster, truth)
    return Lived(cluster, truth)


def _conclude(cluster: Cluster, truth: Truth) -> None:
    truth.partitions = cluster.held.count()
    truth.states, truth.records = cluster.states, cluster.log.end
    truth.leaderless = len(cluster.held.leaderless)
    truth.brokers_down = tuple(cluster.down())
    truth.end_ms = cluster.now_ms


class _Watched:
    """What is written of a cluster while it lives, beside its log."""

    def __init__(self, cluster: Cluster, ends: LogEnds | None, folder: Path) -> None:
        self._cluster, self._ends, self._folder = cluster, ends, folder

    def checkpoints(self) -> Story:
        while True:
            self._cluster.log.checkpoint(image_of(self._cluster), self._cluster.now_ms)
            yield WEEK_MS // 2

    def daily(self) -> Story:
        while True:
            self.snapshot()
            yield DAY_MS

    def snapshot(self) -> None:
        assert self._ends is not None
        save_snapshot_of(self._cluster, self._ends, self._folder / f"{self._stamp()}.kelr")

    def collect(self, brokers: Sequence[int]) -> None:
        assert self._ends is not None
        place = self._folder / "collected" / f"{self._stamp()}.kelr"
        save_directories_of(self._cluster, self._ends, brokers, place)

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self._cluster.now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")


def _write_truth(clusters: Sequence[Truth], damages: tuple[Damage, ...], out: Path) -> None:
    document = {
        "clusters": [truth.document() for truth in clusters],
        "damages": [{"path": one.path, "what": one.what} for one in damages],
    }
    with whole_file(out / TRUTH, "truth", overwrite=False) as file:
        file.write(json.dumps(document, indent=1, sort_keys=True).encode() + os.linesep.encode())
