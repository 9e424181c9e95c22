"""A small incident as a snapshot: one partition in each of several situations, some things known and some not."""

from __future__ import annotations

from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    EpochEnd,
    Features,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicConfig,
    TopicPartition,
)

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
ORDERS_ID = "xwLcnDBAQ0KnZEKZX0bXVA"
PAYMENTS_ID = "2BCIgqXdTYW7cEYlEq9yDQ"

CLUSTER = Cluster(
    cluster_id=CLUSTER_ID,
    brokers=(
        Broker(1, BrokerStatus.FENCED, "kafka-1", 9092, "az1"),
        Broker(2, BrokerStatus.LIVE, "kafka-2", 9092, "az2"),
        Broker(3, BrokerStatus.LIVE, "kafka-3", 9092, "az3"),
    ),
    features=Features({ELR_FEATURE: 1, METADATA_FEATURE: 29}, {METADATA_FEATURE: 29}),
    controller=2,
    brokers_source="DescribeCluster v2",
    partitions_source="DescribeTopicPartitions v0",
)

KNOWN = TopicConfig(2, ConfigSource.TOPIC, False, ConfigSource.DEFAULT, cleanup_policy=("delete",))

PARTITIONS = (
    PartitionState("orders", 0, 2, 5, (1, 2, 3), (2, 3), (), (), topic_id=ORDERS_ID),
    PartitionState("orders", 1, None, 2, (3, 1, 2), (), (1,), (1,), topic_id=ORDERS_ID),
    PartitionState("orders", 2, None, 7, (2, 4, 1), (), (), (4,), topic_id=ORDERS_ID),
    PartitionState("payments", 0, 3, 1, (3, 2, 1), (3,), (2,), (), topic_id=PAYMENTS_ID),
    PartitionState("secret", 0, 3, 1, (3, 2), (3,), None, None),
)

LOGS = {
    TopicPartition("orders", 1): (
        ReplicaLog(
            3, 116, 0, 2, 116, 0, lineage=(EpochEnd(0, 116),), source="ListOffsets+Fetch", read_at_ms=1_700_000_000_000
        ),
        LogUnavailable(1, LogUnavailableReason.UNREACHABLE, "connection refused"),
        ReplicaLog(
            2, 135, 0, 2, 120, 0, lineage=(EpochEnd(0, 135),), source="ListOffsets+Fetch", read_at_ms=1_700_000_000_000
        ),
    ),
    TopicPartition("payments", 0): (
        ReplicaLog(3, 50, 1, 1, 40, 0, lineage=(EpochEnd(0, 30), EpochEnd(1, 50)), source="ListOffsets+Fetch"),
        ReplicaLog(2, 45, 0, 1, 40, 10, lineage=(EpochEnd(0, 45),), source="ListOffsets+Fetch"),
        LogUnavailable(1, LogUnavailableReason.UNREACHABLE, "connection refused"),
    ),
}

INCIDENT = Snapshot(
    taken_at_ms=1_700_000_000_000,
    cluster=CLUSTER,
    partitions=PARTITIONS,
    configs={"orders": KNOWN, "payments": KNOWN, "secret": TopicConfig(error="TOPIC_AUTHORIZATION_FAILED")},
    logs=LOGS,
    first_partition_replicas={"orders": 3, "payments": 3, "secret": 2},
    source="live",
)
