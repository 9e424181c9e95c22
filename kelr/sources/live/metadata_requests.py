"""The requests by which a controller's metadata log is read. See docs/requests.md for why each, and its ACL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from kelr.sources.live.transport import Request

TOPIC = "__cluster_metadata"
TOPIC_ID = UUID(int=1)
"""Uuid.METADATA_TOPIC_ID."""
ANSWER_BYTES = 8 * 1024 * 1024
"""Asked of one answer; a controller sends no more of the log either (KafkaRaftClient.MAX_FETCH_SIZE_BYTES)."""
_BY_ID = 13
"""Controllers take topics by their ids alone (KafkaRaftClient.hasValidTopicPartition)."""
_CONTROLLERS = 2


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """A snapshot (``*.checkpoint``) of the metadata log by its name."""

    end_offset: int
    """The offset after the last record that it contains."""
    epoch: int
    """The epoch of that record."""

    def __str__(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}"


def fetch_metadata(
    *, offset: int, last_epoch: int, leader_epoch: int, cluster_id: str | None, wait_ms: int = 0
) -> Request:
    """Fetch of the metadata log from an offset on, as a client and not as a node of the quorum.

    Args:
        last_epoch: the epoch of the record before `offset`, by which the controller sees whether the logs agree.
        leader_epoch: the quorum's epoch.
        cluster_id: the cluster that is meant; another one refuses (INCONSISTENT_CLUSTER_ID).
        wait_ms: how long the controller waits for records where there are none.
    """
    partition = {
        "partition": 0,
        "current_leader_epoch": leader_epoch,
        "fetch_offset": offset,
        "last_fetched_epoch": last_epoch,
        "log_start_offset": -1,
        "partition_max_bytes": ANSWER_BYTES,
    }
    fields = {
        "max_wait_ms": wait_ms,
        "min_bytes": 0,
        "max_bytes": ANSWER_BYTES,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic_id": TOPIC_ID, "partitions": [partition]}],
        "forgotten_topics_data": [],
        "rack_id": "",
        **_meant(cluster_id),
    }
    return Request("Fetch", fields, min_version=_BY_ID)


def fetch_snapshot(snapshot: SnapshotId, *, position: int, leader_epoch: int, cluster_id: str | None) -> Request:
    """FetchSnapshot: bytes of a snapshot of the metadata log from a position on."""
    partition = {
        "partition": 0,
        "current_leader_epoch": leader_epoch,
        "snapshot_id": {"end_offset": snapshot.end_offset, "epoch": snapshot.epoch},
        "position": position,
    }
    fields = {
        "replica_id": -1,
        "max_bytes": ANSWER_BYTES,
        "topics": [{"name": TOPIC, "partitions": [partition]}],
        **_meant(cluster_id),
    }
    return Request("FetchSnapshot", fields)


def describe_controllers() -> Request:
    """DescribeCluster of a controller: the cluster's id, and where its controllers are (KIP-919)."""
    fields = {"include_cluster_authorized_operations": False, "endpoint_type": _CONTROLLERS}
    return Request("DescribeCluster", fields, min_version=1)


def _meant(cluster_id: str | None) -> Mapping[str, str]:
    return {} if cluster_id is None else {"cluster_id": cluster_id}
