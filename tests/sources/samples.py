"""One small cluster, as kelr's values and as a fake cluster that would make them."""

from __future__ import annotations

from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    EpochEnd,
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
from tests.sources.fake_cluster import FakeCluster, FakeLog

NOW_MS = 1_700_000_000_000
ORDERS_ID, PAYMENTS_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
ELR_ON = {"eligible.leader.replicas.version": 1, "metadata.version": 27}

CLUSTER = Cluster(
    cluster_id="kelr-test-cluster-0000",
    brokers=(
        Broker(1, BrokerStatus.FENCED, "127.0.0.1", 9101, "az1"),
        Broker(2, BrokerStatus.LIVE, "127.0.0.1", 9102, "az2"),
        Broker(3, BrokerStatus.LIVE, "127.0.0.1", 9103, "az3"),
    ),
    features=Features(finalized=ELR_ON, supported=ELR_ON),
    controller=100,
    brokers_source="DescribeCluster v2",
    partitions_source="DescribeTopicPartitions v0",
)
CONFIG = TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, False, ConfigSource.DEFAULT, cleanup_policy=("delete",))


def state(topic: str, partition: int, **changes: object) -> PartitionState:
    """A partition led by broker 2, unless the changes say otherwise."""
    fields: dict[str, object] = {
        "leader": 2,
        "leader_epoch": 5,
        "replicas": (1, 2, 3),
        "isr": (2, 3),
        "elr": (),
        "last_known_elr": (),
        "offline_replicas": (1,),
        "adding": (),
        "removing": (),
        "topic_id": ORDERS_ID if topic == "orders" else PAYMENTS_ID,
    }
    return PartitionState(topic, partition, **{**fields, **changes})  # type: ignore[arg-type]


PARTITIONS = (
    state("orders", 0),
    state("orders", 1, leader=None, leader_epoch=7, isr=(), elr=(1,), last_known_elr=(1,)),
    state("orders", 2, replicas=(3, 1, 2), leader=3, adding=(3,), removing=(1, 2)),
    state("payments", 0, replicas=(2, 3), isr=(2, 3), offline_replicas=()),
    state("payments", 1, replicas=(2, 3), isr=(2,), offline_replicas=()),
)


def fake_log(partition: PartitionState, log_end: int, *epochs: tuple[int, int]) -> FakeLog:
    """A log that has seen the partition's own leader epoch."""
    return FakeLog(
        epochs=list(epochs), log_end=log_end, high_watermark=max(0, log_end - 3), leader_epoch=partition.leader_epoch
    )


def fake_cluster() -> FakeCluster:
    """The fake that makes `SNAPSHOT`: broker 1 is dead, 2 is ahead of 3 on every partition."""
    partitions = {partition.address: partition for partition in PARTITIONS}
    logs = {}
    for address, partition in partitions.items():
        logs[2, address] = fake_log(partition, 20, (0, 0), (3, 10))
        logs[3, address] = fake_log(partition, 10, (0, 0))
    configs = {
        "min.insync.replicas": ("2", 3),
        "unclean.leader.election.enable": ("false", 5),
        "cleanup.policy": ("delete", 5),
    }
    return FakeCluster(
        cluster=CLUSTER,
        partitions=partitions,
        logs=logs,
        configs={"orders": configs, "payments": configs},
        dead={1},
    )


def _answer(partition: PartitionState, replica: int, *, lineage: bool) -> LogAnswer:
    if replica == 1:
        return LogUnavailable(1, LogUnavailableReason.UNREACHABLE, "connection refused", NOW_MS)
    newer = replica == 2
    ends = (EpochEnd(0, 10), EpochEnd(3, 20)) if newer else (EpochEnd(0, 10),)
    return ReplicaLog(
        replica=replica,
        log_end=20 if newer else 10,
        last_epoch=3 if newer else 0,
        current_leader_epoch=partition.leader_epoch,
        high_watermark=17 if newer else 7,
        log_start=0,
        lineage=ends if lineage else None,
        source="ListOffsets+Fetch",
        read_at_ms=NOW_MS,
        last_stable_offset=17 if newer else 7,
    )


def logs_of(*, lineage: bool = True) -> dict[TopicPartition, tuple[LogAnswer, ...]]:
    """What the fake's logs look like as kelr's values."""
    return {
        partition.address: tuple(_answer(partition, replica, lineage=lineage) for replica in partition.replicas)
        for partition in PARTITIONS
    }


SNAPSHOT = Snapshot(
    taken_at_ms=NOW_MS,
    cluster=CLUSTER,
    partitions=PARTITIONS,
    configs={"orders": CONFIG, "payments": CONFIG},
    logs=logs_of(),
    first_partition_replicas={"orders": 3, "payments": 2},
)
