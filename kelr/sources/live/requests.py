"""The requests that kelr sends, built in one place. See docs/requests.md for why each, and the ACL it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kelr import __version__
from kelr.model import TopicPartition
from kelr.model.cluster import NATIVE_ELECT_LEADERS
from kelr.sources.live.decode import topic_id_uuid
from kelr.sources.live.page_bytes import Skip, cursor_at_end, read_page
from kelr.sources.live.transport import Read, Request

if TYPE_CHECKING:
    from kelr.model import ElectionType

DESCRIBE_TOPIC_PARTITIONS_KEY = 75
API_VERSIONS_KEY = 18
IDS_CHECKED = 5
"""The version of ApiVersions from which on a broker checks whom the request is meant for (KIP-1242, Kafka 4.4)."""
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
_NOT_TOLD = -(2**31)
"""Authorized operations that were not asked for, or that an old broker does not tell."""
_METADATA_LOG = "__cluster_metadata"


def api_versions(meant: tuple[str, int] | None = None) -> Request:
    """ApiVersions: the requests that this broker knows, and the cluster's features.

    Args:
        meant: the cluster's id and the broker's, which from version 5 on refuses where it is another (KIP-1242:
            REBOOTSTRAP_REQUIRED); one of both without the other would be INVALID_REQUEST.
    """
    fields = {"client_software_name": "kelr", "client_software_version": __version__}
    if meant is None:
        return Request("ApiVersions", fields, max_version=IDS_CHECKED - 1)
    return Request("ApiVersions", {**fields, "cluster_id": meant[0], "node_id": meant[1]})


def sasl_handshake(mechanism: str) -> Request:
    """SaslHandshake: which login follows, in messages of Kafka's own (KIP-152)."""
    return Request("SaslHandshake", {"mechanism": mechanism}, min_version=1)


def sasl_authenticate(token: bytes) -> Request:
    """SaslAuthenticate: the next message of the login."""
    return Request("SaslAuthenticate", {"auth_bytes": token})


def describe_cluster(*, fenced: bool) -> Request:
    """DescribeCluster: v2 with fenced brokers, or the best older version without them."""
    if fenced:
        fields = {"include_cluster_authorized_operations": False, "include_fenced_brokers": True}
        return Request("DescribeCluster", fields, min_version=2)
    return Request("DescribeCluster", {"include_cluster_authorized_operations": False}, max_version=1)


def describe_quorum() -> Request:
    """DescribeQuorum: who is the active controller. (DescribeCluster's answer names a random broker under KRaft.)"""
    topic = {"topic_name": _METADATA_LOG, "partitions": [{"partition_index": 0}]}
    return Request("DescribeQuorum", {"topics": [topic]})


def list_reassignments(*, timeout_s: float) -> Request:
    """ListPartitionReassignments: every reassignment that is under way in the cluster."""
    return Request("ListPartitionReassignments", {"timeout_ms": int(timeout_s * 1000), "topics": None})


def describe_log_dirs() -> Request:
    """DescribeLogDirs of no topic, so that a broker of many partitions gives a short answer: its directories alone."""
    return Request("DescribeLogDirs", {"topics": []}, min_version=1)


def alter_reassignments(orders: Mapping[TopicPartition, Sequence[int]], *, timeout_s: float) -> Request:
    """AlterPartitionReassignments: each partition gets these replicas in this order. Changes the cluster."""
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for at, replicas in sorted(orders.items()):
        by_topic.setdefault(at.topic, []).append({"partition_index": at.partition, "replicas": list(replicas)})
    topics = [{"name": name, "partitions": partitions} for name, partitions in by_topic.items()]
    return Request("AlterPartitionReassignments", {"timeout_ms": int(timeout_s * 1000), "topics": topics})


def designate(leaders: Mapping[TopicPartition, int], *, timeout_s: float) -> Request:
    """ElectLeaders v3, type 1: each partition gets this leader, or none (KIP-966). Changes the cluster.

    The partitions are named one by one, each with its leader; a null list would stand for the whole cluster.

    Raises:
        ValueError: no partition is named.
    """
    if not leaders:
        raise ValueError("an election names its partitions")
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for at, leader in sorted(leaders.items()):
        by_topic.setdefault(at.topic, []).append((at.partition, leader))
    topics = [
        {
            "topic": topic,
            "partitions": [partition for partition, _ in pairs],
            "desired_leaders": [leader for _, leader in pairs],
        }
        for topic, pairs in by_topic.items()
    ]
    fields = {"election_type": _DESIGNATION, "topic_partitions": topics, "timeout_ms": int(timeout_s * 1000)}
    return Request("ElectLeaders", fields, min_version=NATIVE_ELECT_LEADERS)


def elect_by_log(kind: ElectionType, partitions: Sequence[TopicPartition], *, timeout_s: float) -> Request:
    """ElectLeaders v3, types 2 and 3: the controller compares the logs (KIP-966). Changes the cluster.

    Raises:
        ValueError: no partition is named.
    """
    from kelr.model import ElectionType  # noqa: PLC0415 - reading loads no class of decisions

    number = {ElectionType.LONGEST_LOG_BALANCED: _BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE: _AGGRESSIVE}[kind]
    return elect(number, partitions, timeout_s=timeout_s, version=NATIVE_ELECT_LEADERS)


def elect(election_type: int, partitions: Sequence[TopicPartition], *, timeout_s: float, version: int = 2) -> Request:
    """ElectLeaders of this version, or of version 1 in place of 2: type 0 elects the preferred replica, 1 any live one.
    Changes the cluster.

    The partitions are named one by one; a null list would stand for the whole cluster.

    Raises:
        ValueError: no partition is named.
    """
    if not partitions:
        raise ValueError("an election names its partitions")
    by_topic: dict[str, list[int]] = {}
    for at in sorted(partitions):
        by_topic.setdefault(at.topic, []).append(at.partition)
    topics = [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()]
    fields = {"election_type": election_type, "topic_partitions": topics, "timeout_ms": int(timeout_s * 1000)}
    oldest = version if version >= NATIVE_ELECT_LEADERS else 1
    return Request("ElectLeaders", fields, min_version=oldest, max_version=version)


def alter_topic_config(topic: str, name: str, value: str | None) -> Request:
    """IncrementalAlterConfigs: set a config of a topic, or with None remove the topic's own. Changes the cluster."""
    return _alter_config(_TOPIC_RESOURCE, topic, name, value)


def alter_broker_config(broker: int, name: str, value: str | None) -> Request:
    """The same of a broker, which alone takes the request (ConfigAdminManager.preprocess)."""
    return _alter_config(_BROKER_RESOURCE, str(broker), name, value)


def describe_broker_config(broker: int, name: str) -> Request:
    """DescribeConfigs: one config of a broker, asked of that broker."""
    resource = {"resource_type": _BROKER_RESOURCE, "resource_name": str(broker), "configuration_keys": [name]}
    fields = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
    return Request("DescribeConfigs", fields, min_version=1)


def _alter_config(kind_of_resource: int, whose: str, name: str, value: str | None) -> Request:
    operation = _DELETE_CONFIG if value is None else _SET_CONFIG
    config = {"name": name, "config_operation": operation, "value": value}
    resource = {"resource_type": kind_of_resource, "resource_name": whose, "configs": [config]}
    return Request("IncrementalAlterConfigs", {"resources": [resource], "validate_only": False})


def describe_cluster_operations() -> Request:
    """DescribeCluster, asking what the principal may do on the cluster."""
    return Request("DescribeCluster", {"include_cluster_authorized_operations": True}, max_version=1)


def topic_operations(topics: Sequence[str]) -> Request:
    """Metadata, asking what the principal may do on these topics. Never creates a topic."""
    fields = {
        "topics": [{"name": topic} for topic in topics],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
    }
    return Request("Metadata", fields, min_version=8)


def authorized(bits: int) -> frozenset[int] | None:
    """The operations (codes of AclOperation) in a field of authorized operations; None where it tells of none."""
    return None if bits == _NOT_TOLD else frozenset(code for code in range(31) if bits & 1 << code)


def describe_configs(topics: Sequence[str], names: Sequence[str], read: Read) -> Request:
    """DescribeConfigs of these configs of these topics, without synonyms; `read` makes the answer."""
    keys = tuple(names)
    resources = [
        {"resource_type": _TOPIC_RESOURCE, "resource_name": topic, "configuration_keys": keys} for topic in topics
    ]
    fields = {"resources": resources, "include_synonyms": False, "include_documentation": False}
    return Request("DescribeConfigs", fields, min_version=1, read=read)


def metadata(topics: Sequence[str] | None) -> Request:
    """Metadata of these topics, of no topic (an empty list), or of all (None). Never creates a topic.

    From v7 on an answer carries leader epochs, without which kelr can say nothing safe.
    """
    fields = {
        "topics": None if topics is None else [{"name": topic} for topic in topics],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": False,
        "include_cluster_authorized_operations": False,
    }
    return Request("Metadata", fields, min_version=7 if topics != [] else 1)


def describe_topic_partitions(
    topics: Sequence[str],
    cursor: TopicPartition | None,
    limit: int,
    skip: Skip | None = None,
    *,
    goes_on: bool = False,
) -> Request:
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

    def following(body: bytes) -> Request | None:
        at = cursor_at_end(body)
        if at is None:
            return None
        return describe_topic_partitions(
            topics, TopicPartition(at.topic_name, at.partition_index), limit, skip, goes_on=True
        )

    read = partial(read_page, skip=skip)
    return Request("DescribeTopicPartitions", fields, read=read, following=following if goes_on else None)


def log_ends(
    partitions: Mapping[str, Sequence[int]], *, timeout_s: float, asked: tuple[int, int] = (_LATEST, 1)
) -> Request:
    """ListOffsets as the debugging replica, of any replica, leader or not: the log end, or what else `asked` names as a
    timestamp and the first version that knows it."""
    timestamp, min_version = asked
    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": number, "current_leader_epoch": -1, "timestamp": timestamp} for number in numbers
            ],
        }
        for name, numbers in partitions.items()
    ]
    fields = {
        "replica_id": _DEBUGGING_REPLICA,
        "isolation_level": 0,
        "topics": topics,
        "timeout_ms": int(timeout_s * 1000),
    }
    return Request("ListOffsets", fields, min_version=min_version)


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


def fetch_probes(probes: Sequence[Probe]) -> Request:
    """Fetch as a consumer without a session, answered at once, for at most one byte of records.

    From v13 on topics go by id; where an id is not known (described by an old Metadata) v12 is the newest that can go.
    """
    by_topic: dict[tuple[str, str | None], list[Probe]] = {}
    for probe in probes:
        by_topic.setdefault((probe.address.topic, probe.topic_id), []).append(probe)
    ids_known = all(topic_id is not None for _, topic_id in by_topic)
    topics = [
        _fetch_topic(topic, topic_id, [_fetch_partition(probe) for probe in group])
        for (topic, topic_id), group in by_topic.items()
    ]
    return _fetch(_CONSUMER, topics, max_bytes=1, min_version=12, max_version=None if ids_known else 12)


def _fetch_partition(probe: Probe) -> Mapping[str, int]:
    return {
        "partition": probe.address.partition,
        "current_leader_epoch": -1 if probe.leader_epoch is None else probe.leader_epoch,
        "fetch_offset": probe.offset,
        "last_fetched_epoch": -1 if probe.last_epoch is None else probe.last_epoch,
        "log_start_offset": -1,
        "partition_max_bytes": 1,
    }


def fetch_records(
    address: TopicPartition,
    topic_id: str | None,
    *,
    leader_epoch: int | None,
    offset: int,
    max_bytes: int,
    to_log_end: bool,
) -> Request:
    """Fetch records of one partition, answered at once: up to the log end as the future local replica of that broker,
    or up to the high watermark as a consumer.

    From v15 on a replica's id goes in a field of its own, which v14 does without; v13 and v14 want the topic's id.
    """
    partition = {
        "partition": address.partition,
        "current_leader_epoch": -1 if leader_epoch is None else leader_epoch,
        "fetch_offset": offset,
        "last_fetched_epoch": -1,
        "log_start_offset": -1,
        "partition_max_bytes": max_bytes,
    }
    return _fetch(
        _FUTURE_LOCAL_REPLICA if to_log_end else _CONSUMER,
        [_fetch_topic(address.topic, topic_id, [partition])],
        max_bytes=max_bytes,
        min_version=11,
        max_version=12 if topic_id is None else 14,
    )


def _fetch_topic(topic: str, topic_id: str | None, partitions: Sequence[Mapping[str, int]]) -> Mapping[str, Any]:
    return {
        "topic": topic,
        "topic_id": None if topic_id is None else topic_id_uuid(topic_id),
        "partitions": partitions,
    }


def _fetch(
    replica_id: int,
    topics: Sequence[Mapping[str, Any]],
    *,
    max_bytes: int,
    min_version: int,
    max_version: int | None,
) -> Request:
    """Without a session, answered at once."""
    fields = {
        "replica_id": replica_id,
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": max_bytes,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": topics,
        "forgotten_topics_data": [],
        "rack_id": "",
    }
    return Request("Fetch", fields, min_version=min_version, max_version=max_version)
