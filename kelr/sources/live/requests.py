"""The requests that kelr sends, built in one place. See docs/requests.md for why each, and the ACL it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kelr import __version__
from kelr.sources.live.transport import Message

if TYPE_CHECKING:
    from kelr.model import TopicPartition

DESCRIBE_TOPIC_PARTITIONS_KEY = 75
METADATA_KEY = 3
FAR_OFFSET = 2**62
"""An offset beyond the end of every log, so that a Fetch with an epoch is always answered by that epoch's end."""
_LATEST = -1
_DEBUGGING_REPLICA = -2
_METADATA_LOG = "__cluster_metadata"


def api_versions() -> Message:
    """ApiVersions: the requests that this broker knows, and the cluster's features."""
    from kafka.protocol.metadata import ApiVersionsRequest  # noqa: PLC0415

    return ApiVersionsRequest(client_software_name="kelr", client_software_version=__version__)


def describe_cluster(*, fenced: bool) -> Message:
    """DescribeCluster: v2 with fenced brokers, or the best older version without them."""
    from kafka.protocol.admin.cluster import DescribeClusterRequest  # noqa: PLC0415

    if fenced:
        return DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True, min_version=2
        )
    return DescribeClusterRequest(include_cluster_authorized_operations=False, max_version=1)


def describe_quorum() -> Message:
    """DescribeQuorum: who is the active controller. (DescribeCluster's answer names a random broker under KRaft.)"""
    from kafka.protocol.admin.cluster import DescribeQuorumRequest  # noqa: PLC0415

    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name=_METADATA_LOG, partitions=[topic.PartitionData(partition_index=0)])]
    )


def metadata(topics: Sequence[str] | None) -> Message:
    """Metadata of these topics, of no topic (an empty list), or of all (None). Never creates a topic.

    From v7 on an answer carries leader epochs, without which kelr can say nothing safe.
    """
    from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415

    listed = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(
        topics=listed,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
        include_cluster_authorized_operations=False,
        min_version=7 if topics != [] else 1,
    )


def describe_topic_partitions(topics: Sequence[str], cursor: TopicPartition | None, limit: int) -> Message:
    """DescribeTopicPartitions from `cursor` (inclusive); no topics means all of them."""
    from kafka.protocol.admin.topics import DescribeTopicPartitionsRequest as Request  # noqa: PLC0415

    return Request(
        topics=[Request.TopicRequest(name=topic) for topic in topics],
        response_partition_limit=limit,
        cursor=None if cursor is None else Request.Cursor(topic_name=cursor.topic, partition_index=cursor.partition),
    )


def log_ends(partitions: Mapping[str, Sequence[int]], *, timeout_s: float) -> Message:
    """ListOffsets LATEST as the debugging replica: the log end of any replica, leader or not."""
    from kafka.protocol.consumer import ListOffsetsRequest  # noqa: PLC0415

    topic = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=_DEBUGGING_REPLICA,
        isolation_level=0,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=_LATEST)
                    for number in numbers
                ],
            )
            for name, numbers in partitions.items()
        ],
        timeout_ms=int(timeout_s * 1000),
        min_version=1,
    )
