"""What is seen of a living cluster from outside: its image, snapshot files, and log directories that are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kelr.fleet.generate.cluster import Cluster
from kelr.fleet.generate.ends import LogEnds
from kelr.model import LOG_DIRECTORY, LogAnswer, NotHeard, TopicPartition, Unheard
from kelr.replay.changes import At, BrokerOnRecord
from kelr.replay.image import MetadataImage, TopicOnRecord
from kelr.replay.snapshots import snapshot_of_image
from kelr.sources.disk.collection import LogDirectory
from kelr.sources.snapshot_collection import CollectedDisk, CollectedLog, Collection, save_collection
from kelr.sources.snapshot_file import write_snapshot

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
            registered_at_offset=record.epoch,
            registered_at_ms=None,
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
                else NotHeard(replica, Unheard.UNREACHABLE, "connection refused", cluster.now_ms)
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
