"""From the image of a metadata log to what kelr's sources tell: brokers, partitions, configs.

What the log cannot tell stays unknown: a config that is set in a node's file, or that has Kafka's default, is on no
record, and neither is what a log on a broker's disk holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    Features,
    PartitionState,
    Snapshot,
    TopicConfig,
)
from kelr.model.cluster import DISKLESS, MIRROR, REMOTE_STORAGE, foreign_by
from kelr.replay.image import (
    BROKER,
    BROKERS_CLEANUP,
    CLEANUP,
    MIN_ISR,
    STRATEGY,
    TOPIC,
    UNCLEAN,
    MetadataImage,
    TopicOnRecord,
)
from kelr.replay.records import BrokerOnRecord

SOURCE = "metadata log"
"""What a cluster and its partitions were learnt by."""
NOT_ON_RECORD = "min.insync.replicas is not in the metadata log: it may be in the nodes' files"

_NO_DIRECTORY = frozenset({"A" * 22, "A" * 21 + "Q"})
"""DirectoryId.MIGRATING and UNASSIGNED: a replica that is not known to be in any directory is not offline for it."""
_LOST = "A" * 21 + "g"
"""DirectoryId.LOST: a directory that has failed."""


def snapshot_of_image(image: MetadataImage, *, cluster_id: str | None, source: str) -> Snapshot:
    """Everything that the image says, as one value; taken when its last record was appended.

    Args:
        cluster_id: the log itself does not carry it.
        source: where the log comes from, in words.
    """
    described, names = Described(image), sorted(image.names)
    return Snapshot(
        taken_at_ms=0 if image.at is None else image.at.timestamp_ms,
        cluster=cluster_of_image(image, cluster_id=cluster_id),
        partitions=tuple(state for name in names for state in described.partitions(name)),
        configs={name: described.config(name) for name in names},
        first_partition_replicas=first_partition_replicas(image, names),
        source=source,
    )


def cluster_of_image(image: MetadataImage, *, cluster_id: str | None) -> Cluster:
    """Brokers with status, epoch, address and rack, features, and who leads the quorum."""
    brokers = tuple(_broker(id_, image.brokers[id_]) for id_ in sorted(image.brokers))
    return Cluster(
        cluster_id=cluster_id,
        brokers=brokers,
        features=Features(finalized=dict(sorted(image.features.items())), supported=_supported(image)),
        controller=image.controller,
        brokers_source=SOURCE,
        partitions_source=SOURCE,
    )


def first_partition_replicas(image: MetadataImage, topics: Iterable[str]) -> dict[str, int]:
    """Replica count of partition 0 of these topics."""
    counts = {}
    for name in topics:
        first = image.topics[image.names[name]].partitions.get(0) if name in image.names else None
        if first is not None:
            counts[name] = len(first.replicas)
    return counts


class Described:
    """The partitions and configs of an image as Kafka's describe requests would tell of them.

    Brokers are looked at once: the image must not change while this is used.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._offline = _Offline(image.brokers)
        self._of_single_brokers = frozenset(
            key for (kind, name), values in image.configs.items() if kind == BROKER and name for key in values
        )

    def partitions(self, topic: str) -> Iterator[PartitionState]:
        """The topic's partitions by number; none for an unknown topic."""
        topic_id = self._image.names.get(topic)
        if topic_id is None:
            return
        on_record = self._image.topics[topic_id]
        nobody = () if self._image.keeps_elr else None
        for number in sorted(on_record.partitions):
            state = on_record.partitions[number]
            yield replace(
                state,
                # Nobody keeps ELR while the feature is off; members from before still elect.
                elr=state.elr or nobody,
                last_known_elr=state.last_known_elr or nobody,
                offline_replicas=self._offline.of(state, on_record),
            )

    def config(self, topic: str) -> TopicConfig:
        """The election configs of a topic, as far as they are on record.

        With ELR on, min.insync.replicas is always on record, for the cluster if not for the topic
        (ConfigurationControlManager). Anything else that neither a topic nor a cluster-wide config sets is in the
        nodes' files, or Kafka's default: unknown, since either is possible.
        """
        min_isr, min_isr_source = self._value(topic, MIN_ISR, MIN_ISR)
        unclean, unclean_source = self._value(topic, UNCLEAN, UNCLEAN)
        cleanup, _ = self._value(topic, CLEANUP, BROKERS_CLEANUP)
        strategy, _ = self._value(topic, STRATEGY, STRATEGY)
        remote, diskless, mirror = (self._image.config(TOPIC, topic, key) for key in (REMOTE_STORAGE, DISKLESS, MIRROR))
        number = None if min_isr is None else _number(min_isr)
        return TopicConfig(
            min_insync_replicas=number,
            min_insync_replicas_source=ConfigSource.UNKNOWN if number is None else min_isr_source,
            unclean_leader_election=None if unclean is None else unclean.strip().lower() == "true",
            unclean_leader_election_source=unclean_source,
            cleanup_policy=None if cleanup is None else tuple(filter(None, map(str.strip, cleanup.split(",")))),
            recovery_strategy=strategy.lower() if strategy else None,
            error=NOT_ON_RECORD if number is None else None,
            # Neither it nor the other two have a value for all topics: what no record sets is off.
            remote_storage=(remote or "").strip().lower() == "true",
            foreign=foreign_by(diskless, mirror),
        )

    def _value(self, topic: str, key: str, of_brokers: str) -> tuple[str | None, ConfigSource]:
        """A config by the topic, else cluster-wide; unknown where single brokers have values of their own."""
        own = self._image.config(TOPIC, topic, key)
        if own is not None:
            return own, ConfigSource.TOPIC
        for_all = self._image.config(BROKER, "", of_brokers)
        if for_all is None or of_brokers in self._of_single_brokers:
            return None, ConfigSource.UNKNOWN
        return for_all, ConfigSource.CLUSTER_DEFAULT


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _broker(id_: int, on_record: BrokerOnRecord) -> Broker:
    endpoints = on_record.registration.endpoints
    if on_record.fenced:
        status = BrokerStatus.FENCED
    elif on_record.in_controlled_shutdown:
        status = BrokerStatus.SHUTTING_DOWN
    else:
        status = BrokerStatus.LIVE
    return Broker(
        id=id_,
        status=status,
        host=endpoints[0].host if endpoints else None,
        port=endpoints[0].port if endpoints else None,
        rack=on_record.registration.rack,
        broker_epoch=on_record.registration.epoch,
        registered_by_ms=on_record.registered_by_ms,
        log_dirs=on_record.directories or None,
        cordoned=on_record.cordoned,
    )


def _supported(image: MetadataImage) -> dict[str, int] | None:
    """What the software of every broker that may lead supports (of every registered one, where none may): the oldest
    of them, while brokers are being upgraded."""
    told = [one.registration.features for one in image.brokers.values() if one.active]
    told = told or [one.registration.features for one in image.brokers.values()]
    if not told:
        return None
    names = sorted(set.intersection(*(set(features) for features in told)))
    return {name: min(features[name] for features in told) for name in names}


class _Offline:
    """Source: KRaftMetadataCache.isReplicaOffline, but for listeners; DirectoryId.isOnline."""

    def __init__(self, brokers: Mapping[int, BrokerOnRecord]) -> None:
        self._down = {id_ for id_, broker in brokers.items() if broker.fenced}
        self._directories = {id_: frozenset(broker.directories) for id_, broker in brokers.items()}

    def of(self, state: PartitionState, topic: TopicOnRecord) -> tuple[int, ...]:
        directories = topic.directories.get(state.partition)
        if directories is None:
            return tuple(id_ for id_ in state.replicas if id_ in self._down or id_ not in self._directories)
        return tuple(
            id_ for id_, directory in zip(state.replicas, directories, strict=True) if self._is_offline(id_, directory)
        )

    def _is_offline(self, broker: int, directory: str) -> bool:
        online = self._directories.get(broker)
        if online is None or broker in self._down:
            return True
        if directory in _NO_DIRECTORY:
            return False
        # A broker that told of no directories may have registered before they were on record.
        return directory == _LOST or bool(online and directory not in online)
