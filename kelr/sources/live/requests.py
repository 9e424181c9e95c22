"""The requests that kelr sends, built in one place. See docs/requests.md for why each, and the ACL it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kelr import __version__
from kelr.model import TopicPartition
from kelr.model.cluster import NATIVE_ELECT_LEADERS
from kelr.sources.live.decode import topic_id_uuid
from kelr.sources.live.page_bytes import Skip, cursor_at_end, read_page
from kelr.sources.live.questions import Question, Read
from kelr.sources.live.transport import Message

if TYPE_CHECKING:
    from kelr.model import ElectionType

DESCRIBE_TOPIC_PARTITIONS_KEY = 75
METADATA_KEY = 3
ELECT_LEADERS_KEY = 43
FAR_OFFSET = 2**62
"""An offset beyond the end of every log, so that a Fetch with an epoch is always answered by that epoch's end."""
ELECTIONS_A_REQUEST = 1000
"""The most partitions that ElectLeaders v3 serves in one request (KIP-966)."""
_DESIGNATION, _BALANCED, _AGGRESSIVE = 1, 2, 3
"""ElectionType of version 3 (KIP-966)."""
_LATEST = -1
EARLIEST_LOCAL, LATEST_TIERED = (-4, 8), (-5, 9)
"""Timestamp, and the first version of ListOffsets that knows it (KIP-405, KIP-1005)."""
_CONSUMER = -1
_DEBUGGING_REPLICA = -2
_FUTURE_LOCAL_REPLICA = -3
_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4
_SET_CONFIG, _DELETE_CONFIG = 0, 1
"""AlterConfigOp.OpType"""
_METADATA_LOG = "__cluster_metadata"


def api_versions() -> Question:
    """ApiVersions: the requests that this broker knows, and the cluster's features."""
    return Question("ApiVersions", {"client_software_name": "kelr", "client_software_version": __version__})


def describe_cluster(*, fenced: bool) -> Question:
    """DescribeCluster: v2 with fenced brokers, or the best older version without them."""
    if fenced:
        fields = {"include_cluster_authorized_operations": False, "include_fenced_brokers": True}
        return Question("DescribeCluster", fields, min_version=2)
    return Question("DescribeCluster", {"include_cluster_authorized_operations": False}, max_version=1)


def describe_quorum() -> Question:
    """DescribeQuorum: who is the active controller. (DescribeCluster's answer names a random broker under KRaft.)"""
    topic = {"topic_name": _METADATA_LOG, "partitions": [{"partition_index": 0}]}
    return Question("DescribeQuorum", {"topics": [topic]})


def list_reassignments(*, timeout_s: float) -> Question:
    """ListPartitionReassignments: every reassignment that is under way in the cluster."""
    return Question("ListPartitionReassignments", {"timeout_ms": int(timeout_s * 1000), "topics": None})


def describe_log_dirs() -> Question:
    """DescribeLogDirs of no topic, so that a broker of many partitions gives a short answer: its directories alone."""
    return Question("DescribeLogDirs", {"topics": []}, min_version=1)


def alter_reassignments(orders: Mapping[TopicPartition, Sequence[int]], *, timeout_s: float) -> Message:
    """AlterPartitionReassignments: each partition gets these replicas in this order. Changes the cluster."""
    from kafka.protocol.admin.topics import AlterPartitionReassignmentsRequest as Request  # noqa: PLC0415

    by_topic: dict[str, list[Message]] = {}
    for at, replicas in sorted(orders.items()):
        partition = Request.ReassignableTopic.ReassignablePartition(
            partition_index=at.partition, replicas=list(replicas)
        )
        by_topic.setdefault(at.topic, []).append(partition)
    topics = [Request.ReassignableTopic(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    return Request(timeout_ms=int(timeout_s * 1000), topics=topics)


def designate(leaders: Mapping[TopicPartition, int], *, timeout_s: float) -> Message:
    """ElectLeaders v3, type 1: each partition gets this leader, or none (KIP-966). Changes the cluster.

    The partitions are named one by one, each with its leader; a null list would stand for the whole cluster.

    Raises:
        ValueError: no partition is named.
    """
    from kelr.messages.classes import ElectLeadersRequest as Request  # noqa: PLC0415

    if not leaders:
        raise ValueError("an election names its partitions")
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for at, leader in sorted(leaders.items()):
        by_topic.setdefault(at.topic, []).append((at.partition, leader))
    return Request(
        election_type=_DESIGNATION,
        topic_partitions=[
            Request.TopicPartitions(
                topic=topic,
                partitions=[partition for partition, _ in pairs],
                desired_leaders=[leader for _, leader in pairs],
            )
            for topic, pairs in by_topic.items()
        ],
        timeout_ms=int(timeout_s * 1000),
        min_version=NATIVE_ELECT_LEADERS,
    )


def elect_by_log(kind: ElectionType, partitions: Sequence[TopicPartition], *, timeout_s: float) -> Message:
    """ElectLeaders v3, types 2 and 3: the controller compares the logs (KIP-966). Changes the cluster.

    Raises:
        ValueError: no partition is named.
    """
    from kelr.model import ElectionType  # noqa: PLC0415 - reading loads no class of decisions

    number = {ElectionType.LONGEST_LOG_BALANCED: _BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE: _AGGRESSIVE}[kind]
    return elect(number, partitions, timeout_s=timeout_s, version=NATIVE_ELECT_LEADERS)


def elect(election_type: int, partitions: Sequence[TopicPartition], *, timeout_s: float, version: int = 2) -> Message:
    """ElectLeaders of this version, or of version 1 in place of 2: type 0 elects the preferred replica, 1 any live one.
    Changes the cluster.

    The partitions are named one by one; a null list would stand for the whole cluster.

    Raises:
        ValueError: no partition is named.
    """
    from kelr.messages.classes import ElectLeadersRequest as Request  # noqa: PLC0415

    if not partitions:
        raise ValueError("an election names its partitions")
    by_topic: dict[str, list[int]] = {}
    for at in sorted(partitions):
        by_topic.setdefault(at.topic, []).append(at.partition)
    return Request(
        election_type=election_type,
        topic_partitions=[
            Request.TopicPartitions(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()
        ],
        timeout_ms=int(timeout_s * 1000),
        min_version=version if version >= NATIVE_ELECT_LEADERS else 1,
        max_version=version,
    )


def alter_topic_config(topic: str, name: str, value: str | None) -> Message:
    """IncrementalAlterConfigs: set a config of a topic, or with None remove the topic's own. Changes the cluster."""
    return _alter_config(_TOPIC_RESOURCE, topic, name, value)


def alter_broker_config(broker: int, name: str, value: str | None) -> Message:
    """The same of a broker, which alone takes the request (ConfigAdminManager.preprocess)."""
    return _alter_config(_BROKER_RESOURCE, str(broker), name, value)


def describe_broker_config(broker: int, name: str) -> Question:
    """DescribeConfigs: one config of a broker, asked of that broker."""
    resource = {"resource_type": _BROKER_RESOURCE, "resource_name": str(broker), "configuration_keys": [name]}
    fields = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
    return Question("DescribeConfigs", fields, min_version=1)


def _alter_config(kind_of_resource: int, whose: str, name: str, value: str | None) -> Message:
    from kafka.protocol.admin.configs import IncrementalAlterConfigsRequest as Request  # noqa: PLC0415

    kind = Request.AlterConfigsResource
    operation = _DELETE_CONFIG if value is None else _SET_CONFIG
    config = kind.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = kind(resource_type=kind_of_resource, resource_name=whose, configs=[config])
    return Request(resources=[resource], validate_only=False)


def describe_cluster_operations() -> Message:
    """DescribeCluster, asking what the principal may do on the cluster."""
    from kafka.protocol.admin.cluster import DescribeClusterRequest  # noqa: PLC0415

    return DescribeClusterRequest(include_cluster_authorized_operations=True, max_version=1)


def topic_operations(topics: Sequence[str]) -> Message:
    """Metadata, asking what the principal may do on these topics. Never creates a topic."""
    from kafka.protocol.metadata import MetadataRequest  # noqa: PLC0415

    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
        min_version=8,
    )


def describe_configs(topics: Sequence[str], names: Sequence[str], read: Read) -> Question:
    """DescribeConfigs of these configs of these topics, without synonyms; `read` makes the answer."""
    keys = tuple(names)
    resources = [
        {"resource_type": _TOPIC_RESOURCE, "resource_name": topic, "configuration_keys": keys} for topic in topics
    ]
    fields = {"resources": resources, "include_synonyms": False, "include_documentation": False}
    return Question("DescribeConfigs", fields, min_version=1, read=read)


def metadata(topics: Sequence[str] | None) -> Question:
    """Metadata of these topics, of no topic (an empty list), or of all (None). Never creates a topic.

    From v7 on an answer carries leader epochs, without which kelr can say nothing safe.
    """
    fields = {
        "topics": None if topics is None else [{"name": topic} for topic in topics],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
        "include_cluster_authorized_operations": False,
    }
    return Question("Metadata", fields, min_version=7 if topics != [] else 1)


def describe_topic_partitions(
    topics: Sequence[str],
    cursor: TopicPartition | None,
    limit: int,
    skip: Skip | None = None,
    *,
    goes_on: bool = False,
) -> Question:
    """DescribeTopicPartitions from `cursor` (inclusive); no topics means all of them. Answered by a `PageBytes`.

    Args:
        skip: unwanted partitions, which are passed over in the answer, and counted.
        goes_on: whether the next page will be asked for, too.
    """
    fields = {
        "topics": [{"name": topic} for topic in topics],
        "response_partition_limit": limit,
        "cursor": None if cursor is None else {"topic_name": cursor.topic, "partition_index": cursor.partition},
    }

    def following(body: bytes) -> Question | None:
        at = cursor_at_end(body)
        if at is None:
            return None
        return describe_topic_partitions(
            topics, TopicPartition(at.topic_name, at.partition_index), limit, skip, goes_on=True
        )

    read = partial(read_page, skip=skip)
    return Question("DescribeTopicPartitions", fields, read=read, following=following if goes_on else None)


def log_ends(
    partitions: Mapping[str, Sequence[int]], *, timeout_s: float, asked: tuple[int, int] = (_LATEST, 1)
) -> Message:
    """ListOffsets as the debugging replica, of any replica, leader or not: the log end, or what else `asked` names as a
    timestamp and the first version that knows it."""
    timestamp, min_version = asked
    from kafka.protocol.consumer import ListOffsetsRequest  # noqa: PLC0415

    topic = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=_DEBUGGING_REPLICA,
        isolation_level=0,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=timestamp)
                    for number in numbers
                ],
            )
            for name, numbers in partitions.items()
        ],
        timeout_ms=int(timeout_s * 1000),
        min_version=min_version,
    )


@dataclass(frozen=True, slots=True)
class Probe:
    """One partition of a Fetch that wants no records: it asks where an epoch ends, or where the log stands."""

    address: TopicPartition
    topic_id: str | None
    leader_epoch: int | None
    """The leader epoch that the broker must be at, or else it answers with an error; None asks whatever it is at."""
    offset: int
    last_epoch: int | None
    """The epoch asked about (`last_fetched_epoch`); None asks about none."""


def fetch_probes(probes: Sequence[Probe]) -> Message:
    """Fetch as a consumer without a session, answered at once, for at most one byte of records.

    From v13 on topics go by id; where an id is not known (described by an old Metadata) v12 is the newest that can go.
    """
    from kafka.protocol.consumer import FetchRequest  # noqa: PLC0415

    by_topic: dict[tuple[str, str | None], list[Probe]] = {}
    for probe in probes:
        by_topic.setdefault((probe.address.topic, probe.topic_id), []).append(probe)
    ids_known = all(topic_id is not None for _, topic_id in by_topic)
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                topic_id=UUID(int=0) if topic_id is None else topic_id_uuid(topic_id),
                partitions=[_fetch_partition(FetchRequest.FetchTopic.FetchPartition, probe) for probe in group],
            )
            for (topic, topic_id), group in by_topic.items()
        ],
        forgotten_topics_data=[],
        rack_id="",
        min_version=12,
        max_version=None if ids_known else 12,
    )


def _fetch_partition(kind: Callable[..., Message], probe: Probe) -> Message:
    return kind(
        partition=probe.address.partition,
        current_leader_epoch=-1 if probe.leader_epoch is None else probe.leader_epoch,
        fetch_offset=probe.offset,
        last_fetched_epoch=-1 if probe.last_epoch is None else probe.last_epoch,
        log_start_offset=-1,
        partition_max_bytes=1,
    )


def fetch_records(
    address: TopicPartition,
    topic_id: str | None,
    *,
    leader_epoch: int | None,
    offset: int,
    max_bytes: int,
    to_log_end: bool,
) -> Message:
    """Fetch records of one partition, answered at once: up to the log end as the future local replica of that broker,
    or up to the high watermark as a consumer.

    From v15 on a replica's id goes in a field of its own, which v14 does without; v13 and v14 want the topic's id.
    """
    from kafka.protocol.consumer import FetchRequest  # noqa: PLC0415

    topic = FetchRequest.FetchTopic
    return FetchRequest(
        replica_id=_FUTURE_LOCAL_REPLICA if to_log_end else _CONSUMER,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic(
                topic=address.topic,
                topic_id=UUID(int=0) if topic_id is None else topic_id_uuid(topic_id),
                partitions=[
                    topic.FetchPartition(
                        partition=address.partition,
                        current_leader_epoch=-1 if leader_epoch is None else leader_epoch,
                        fetch_offset=offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=max_bytes,
                    )
                ],
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
        min_version=11,
        max_version=12 if topic_id is None else 14,
    )
