"""What kelr gets to see of a world: the cluster's own account, answers of brokers in reach, and disks that were read.

Nothing of the truth comes through here but what a real cluster tells and a real disk holds. Disks are taken in by the
same code as those of real brokers (`kelr.sources.collected`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kelr.controller import RuleSet
from kelr.model import (
    ELR_FEATURE,
    LOG_DIRECTORY,
    METADATA_FEATURE,
    RECOVERY_FEATURE,
    Broker,
    BrokerStatus,
    Cluster,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.model.cluster import NATIVE_ELECT_LEADERS
from kelr.sources.collected import CollectedDisk, CollectedLog, CollectedSource, Collection
from kelr.sources.disk.collection import LogDirectory
from kelr.sources.disk.files import NO_BROKER_EPOCH
from kelr.sources.memory import MemorySource
from tests.hindsight.clients import last_stable_offset
from tests.hindsight.incident import Sight
from tests.hindsight.world import DiskReading, World

_SOFTWARE = {"elr-4.0": 25, "elr-4.1": 29, "elr-4.3": 33, "kraft": 33}
_NEWEST = 30
"""The highest metadata.version of the software that has these rules; others are named outright."""


def rules_asked_for(world: World) -> RuleSet | None:
    """The rules that somebody has to name, because no cluster tells them; None where it does."""
    rules = world.running.cluster.controller.rules
    return None if rules.name in _SOFTWARE or not (rules.elr or rules.kip966) else rules


def observed(world: World, sight: Sight, *, believing: bool = False) -> Snapshot:
    """The snapshot that kelr reads at this moment.

    Args:
        believing: as for saving records (`CollectedSource`).
    """
    states = tuple(_state(world, sight, state) for _, state in sorted(world.partitions.items()))
    configs = {topic.name: _config(world, sight, topic.name, compacted=topic.compacted) for topic in world.setup.topics}
    logs = {state.address: tuple(_answers(world, sight, state)) for state in states}
    snapshot = Snapshot(
        taken_at_ms=world.running.now_ms,
        cluster=_cluster(world, sight),
        partitions=states,
        configs=configs,
        logs=logs if sight.asks_logs else {},
        first_partition_replicas={state.topic: len(state.replicas) for state in states if state.partition == 0},
    )
    collections = [_collection(reading, copied=reading.broker in sight.copied) for reading in _readings(world, sight)]
    if not collections or not sight.asks_logs:
        return snapshot
    with CollectedSource(MemorySource(snapshot), collections, believing=believing) as source:
        return replace(snapshot, logs=source.replica_logs(snapshot.partitions, lineage=True))


def _readings(world: World, sight: Sight) -> Iterator[DiskReading]:
    for broker in sorted(sight.readable):
        found = world.read_disk(broker)
        if broker in sight.stale and broker in world.readings:
            found = world.readings[broker]
        if found is not None:
            yield found


def _cluster(world: World, sight: Sight) -> Cluster:
    controller = world.running.cluster.controller
    brokers = tuple(
        Broker(
            broker,
            known.status,
            broker_epoch=known.epoch if sight.knows_broker_epochs else None,
            registered_by_ms=world.left_ms.get(broker) if sight.knows_broker_epochs else None,
            log_dirs=(_directory_id(broker),) if sight.knows_broker_epochs else None,
            cordoned=known.cordoned if sight.knows_cordons or _answers_now(world, sight, broker) else None,
        )
        for broker, known in sorted(controller.brokers.items())
    )
    version = _SOFTWARE.get(world.setup.rules.name, 27 if world.setup.rules.elr else _NEWEST)
    levels = {ELR_FEATURE: int(controller.rules.elr), METADATA_FEATURE: version}
    supported = {METADATA_FEATURE: version}
    if world.setup.rules.kip966:
        supported[RECOVERY_FEATURE] = 1
        levels[RECOVERY_FEATURE] = int(world.setup.rules.recovers)
    elect_leaders = NATIVE_ELECT_LEADERS if world.setup.rules.recovers else 2
    features = Features(levels, supported, elect_leaders) if sight.knows_features else Features()
    silence = None if sight.controller_answers else "no answer in time"
    return Cluster(
        "hindsight",
        brokers if sight.lists_fenced else tuple(one for one in brokers if one.status is BrokerStatus.LIVE),
        features,
        brokers_source="DescribeCluster v2" if sight.lists_fenced else "DescribeCluster v1",
        partitions_source="DescribeTopicPartitions v0" if sight.knows_elr else "Metadata v12",
        reassignments_error=None if sight.knows_reassignments else "CLUSTER_AUTHORIZATION_FAILED",
        controller_silence=silence,
    )


def _answers_now(world: World, sight: Sight, broker: int) -> bool:
    active = world.running.cluster.controller.active(broker) and world.running.runs(broker)
    return active and broker not in world.running.paused | sight.silent


def unorderable(world: World, snapshot: Snapshot) -> frozenset[TopicPartition]:
    """Partitions no order of which can be given, and nobody can tell: brokers are cordoned that nobody knows of, or
    whose heartbeats, which would tell the controller of the end of their cordon, have ceased a moment ago."""
    known, running = snapshot.cluster, world.running
    registered = running.cluster.controller.brokers
    cordoned = {id_ for id_, one in registered.items() if one.cordoned}
    untold = {id_ for id_ in cordoned if not known.refuses_to_order(id_)}
    cut_off = {id_ for id_ in cordoned if registered[id_].active and not running.linked(id_, running.controller)}
    return frozenset(at for at, state in world.partitions.items() if (untold | cut_off) & {*state.replicas})


def _state(world: World, sight: Sight, state: PartitionState) -> PartitionState:
    """As DescribeTopicPartitions tells it: every replica whose broker is not live is offline."""
    controller = world.running.cluster.controller
    lost = state.offline_replicas or ()
    offline = tuple(one for one in state.replicas if one in lost or not controller.active(one))
    topic_id = f"id of {state.topic}" if sight.knows_topic_ids else None
    seen = replace(state, offline_replicas=offline, partition_epoch=None, recovering=None, topic_id=topic_id)
    if not sight.knows_reassignments:
        seen = replace(seen, adding=None, removing=None)
    return seen if sight.knows_elr else replace(seen, elr=None, last_known_elr=None)


def _config(world: World, sight: Sight, topic: str, *, compacted: bool) -> TopicConfig:
    if not sight.knows_configs:
        return TopicConfig(error=sight.configs or None)
    config = world.running.cluster.as_snapshot().configs[topic]
    rules = world.setup.rules
    # Else unclean.leader.election.enable stands for it.
    if rules.recovery is not None and not rules.strategy_by_topic:
        config = replace(config, recovery_strategy=rules.recovery)
    return replace(config, cleanup_policy=("compact",) if compacted else ("delete",))


def _answers(world: World, sight: Sight, state: PartitionState) -> Iterator[LogAnswer]:
    for replica in state.replicas:
        yield _answer(world, sight, state, replica)


def _answer(world: World, sight: Sight, state: PartitionState, replica: int) -> LogAnswer:
    running, now_ms = world.running, world.running.now_ms
    registration = running.cluster.controller.brokers.get(replica)
    if not running.runs(replica) or registration is None:
        return LogUnavailable(replica, LogUnavailableReason.UNREACHABLE, "connection refused", now_ms)
    if replica in running.paused or replica in sight.silent:
        return LogUnavailable(replica, LogUnavailableReason.TIMED_OUT, "no answer in time", now_ms)
    if registration.status is not BrokerStatus.LIVE and not sight.knows_broker_epochs:
        # Brokers tell no address of one that is fenced, where DescribeCluster is older than v2.
        return LogUnavailable(replica, LogUnavailableReason.NO_ADDRESS, "its address is not known", now_ms)
    view = running.out_of_touch.get(replica, running.cluster.controller).partitions.get(state.address)
    log = world.logs(state.address).logs.get(replica)
    if log is None or view is None or replica not in view.replicas:
        return LogUnavailable(replica, LogUnavailableReason.NOT_A_REPLICA, "NOT_LEADER_OR_FOLLOWER", now_ms)
    if replica in (world.partitions[state.address].offline_replicas or ()):
        return LogUnavailable(replica, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR", now_ms)
    epoch = registration.epoch if sight.knows_broker_epochs else None
    answer = replace(
        log.answer(replica, leader_epoch=view.leader_epoch, broker_epoch=epoch),
        last_stable_offset=last_stable_offset(world.transactions_of(state.address), log),
    )
    if replica in sight.without_epochs:
        told = ReplicaLog(replica, log.end, None, view.leader_epoch, source="ListOffsets", read_at_ms=now_ms)
        return replace(told, last_epoch_error=sight.epochs_error)
    if not sight.asks_lineage:
        answer = replace(answer, lineage=None)
    return replace(answer, source="ListOffsets+Fetch", read_at_ms=now_ms)


def _told(epoch_in_mark: int | None) -> int | None:
    return None if epoch_in_mark == NO_BROKER_EPOCH else epoch_in_mark


def _directory_id(broker: int) -> str:
    return f"directory-{broker}"


def _collection(reading: DiskReading, *, copied: bool) -> Collection:
    """One broker's disk, or the directories of its replicas that were copied, as `kelr recover collect` saves them."""
    name = f"broker-{reading.broker}.kelr"
    directory = LogDirectory(
        "/data",
        cluster_id=None if copied else "hindsight",
        broker=reading.broker,
        directory_id=None if copied else _directory_id(reading.broker),
        clean_shutdown=None if copied else reading.clean,
        broker_epoch=None if copied else reading.broker_epoch,
        running=None if copied else False,
        single_replica=copied,
    )
    return Collection(
        name,
        "hindsight",
        reading.read_at_ms,
        disks=(CollectedDisk(reading.broker, reading.read_at_ms, (directory,), name=name),),
        logs={address: (_collected(reading, address, name, copied=copied),) for address in sorted(reading.logs)},
    )


def _collected(reading: DiskReading, address: TopicPartition, name: str, *, copied: bool) -> CollectedLog:
    """High watermarks lie beside the replicas' directories, leader epochs in them."""
    checkpoint = reading.checkpoints[address]
    answer = replace(
        reading.logs[address].answer(reading.broker, broker_epoch=None if copied else _told(reading.broker_epoch)),
        source=LOG_DIRECTORY,
        read_at_ms=reading.read_at_ms,
    )
    if copied:
        answer = replace(answer, high_watermark=None)
    return CollectedLog(
        topic_id=f"id of {address.topic}",
        answer=answer,
        of_disk=True,
        read_at_ms=reading.read_at_ms,
        name=name,
        directory=f"/data/{address.topic}-{address.partition}",
        newest_epoch=checkpoint.newest_epoch,
        saved_high_watermark=None if copied else checkpoint.high_watermark,
    )
