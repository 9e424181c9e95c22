"""Kafka's own command line tools, run from the jars."""

from __future__ import annotations

from collections.abc import Mapping

STOCK_TOOLS: Mapping[str, str] = {
    "kafka-storage.sh": "kafka.tools.StorageTool",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-cluster.sh": "org.apache.kafka.tools.ClusterTool",
    "kafka-get-offsets.sh": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-dump-log.sh": "org.apache.kafka.tools.DumpLogSegments",
    "kafka-log-dirs.sh": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum.sh": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-metadata-shell.sh": "org.apache.kafka.shell.MetadataShell",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
"""Kafka's scripts by name, and the class that each runs in the newest version that has a lock."""

_ELSEWHERE_BEFORE: Mapping[str, tuple[tuple[int, int], str]] = {
    "kafka-dump-log.sh": ((4, 3), "kafka.tools.DumpLogSegments"),
}
"""The tools whose class has moved: the first version with a lock that has it in its new place, and the old place."""


def tool_class(tool: str, kafka: str) -> str:
    """The class that one of `STOCK_TOOLS` runs in a version of Kafka."""
    moved, before = _ELSEWHERE_BEFORE.get(tool, ((0, 0), ""))
    major, minor = map(int, kafka.split(".")[:2])
    return STOCK_TOOLS[tool] if (major, minor) >= moved else before
