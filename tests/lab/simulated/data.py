"""Requests about data, as the tests send them to any broker, real or simulated, and the answers in plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kelr.lab import wire
from kelr.lab.simulated.contents import NewRecord, encoded
from kelr.protocol.error_codes import error_name
from kelr.protocol.messages import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest, ProduceRequest

PATIENCE_S = 20.0
NO_ID = UUID(int=0)


@dataclass(frozen=True)
class Got:
    """What a broker answered about one partition."""

    error: str
    values: Mapping[str, Any]
    records: bytes = b""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def batch(first: int, count: int) -> bytes:
    """A batch of numbered records."""
    return encoded(
        [
            NewRecord(1_700_000_000_000 + 10 * number, f"k{number}".encode(), f"value {number}".encode() * 3)
            for number in range(first, first + count)
        ]
    )


def list_offsets(
    port: int, topic: str, timestamp: int, *, version: int = 11, replica: int = -1, epoch: int = -1, partition: int = 0
) -> Got:
    """ListOffsets of one partition."""
    kind = ListOffsetsRequest.ListOffsetsTopic
    asked = kind.ListOffsetsPartition(partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(
        version=version,
        replica_id=replica,
        isolation_level=0,
        topics=[kind(name=topic, partitions=[asked])],
        timeout_ms=1000,
    )
    (found,) = wire.ask(port, request, timeout_s=PATIENCE_S).topics[0].partitions
    return _got(found, ("offset", "timestamp", "leader_epoch"))


def end_of_epoch(port: int, topic: str, epoch: int, *, current: int = -1, version: int = 4) -> Got:
    """OffsetForLeaderEpoch of one partition."""
    kind = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    asked = kind.OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        version=version, replica_id=-2, topics=[kind(topic=topic, partitions=[asked])]
    )
    (found,) = wire.ask(port, request, timeout_s=PATIENCE_S).topics[0].partitions
    return _got(found, ("leader_epoch", "end_offset"))


def fetch(
    port: int,
    topic: str,
    offset: int,
    *,
    topic_id: UUID = NO_ID,
    version: int = 12,
    replica: int = -1,
    epoch: int = -1,
    last_epoch: int = -1,
    most_bytes: int = 1 << 20,
    most_bytes_in_all: int = 1 << 24,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    isolation: int = 0,
) -> Got:
    """Fetch of one partition, without a session."""
    return fetch_all(
        port,
        [(topic, partition, offset)],
        topic_id=topic_id,
        version=version,
        replica=replica,
        epoch=epoch,
        last_epoch=last_epoch,
        most_bytes=most_bytes,
        most_bytes_in_all=most_bytes_in_all,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        isolation=isolation,
    )[0]


def fetch_all(
    port: int,
    wanted: Sequence[tuple[str, int, int]],
    *,
    topic_id: UUID = NO_ID,
    version: int = 12,
    replica: int = -1,
    epoch: int = -1,
    last_epoch: int = -1,
    most_bytes: int = 1 << 20,
    most_bytes_in_all: int = 1 << 24,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    isolation: int = 0,
) -> list[Got]:
    """Fetch of these (topic, partition, offset), one entry for each."""
    kind = FetchRequest.FetchTopic
    topics = [
        kind(
            topic=topic,
            topic_id=topic_id,
            partitions=[
                kind.FetchPartition(
                    partition=partition,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    last_fetched_epoch=last_epoch,
                    log_start_offset=-1,
                    partition_max_bytes=most_bytes,
                )
            ],
        )
        for topic, partition, offset in wanted
    ]
    fields = {"replica_id": replica} if version < 15 else {}
    if version >= 15 and replica != -1:
        fields["replica_state"] = FetchRequest.ReplicaState(replica_id=replica, replica_epoch=-1)
    request = FetchRequest(
        version=version,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=most_bytes_in_all,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=topics,
        forgotten_topics_data=[],
        rack_id="",
        **fields,
    )
    answer = wire.ask(port, request, timeout_s=PATIENCE_S)
    if answer.error_code:
        return [Got(error_name(answer.error_code), {"session_id": answer.session_id})]
    return [_fetched(found) for topic in answer.responses for found in topic.partitions]


def _fetched(found: Any) -> Got:
    diverging, leader = found.diverging_epoch, found.current_leader
    values = {
        name: getattr(found, name)
        for name in ("high_watermark", "last_stable_offset", "log_start_offset", "preferred_read_replica")
    }
    values["diverging"] = None if diverging is None else (diverging.epoch, diverging.end_offset)
    values["leader"] = None if leader is None else (leader.leader_id, leader.leader_epoch)
    aborted = found.aborted_transactions
    values["aborted"] = None if aborted is None else len(aborted)
    return Got(error_name(found.error_code), values, bytes(found.records or b""))


def produce(
    port: int,
    topic: str,
    data: bytes | None,
    *,
    acks: int = -1,
    version: int = 11,
    partition: int = 0,
    timeout_ms: int = 10_000,
    transactional_id: str | None = None,
) -> Got:
    """Produce to one partition."""
    request = produce_request(
        topic,
        data,
        acks=acks,
        version=version,
        partition=partition,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
    )
    answer = wire.ask(port, request, timeout_s=PATIENCE_S)
    (found,) = answer.responses[0].partition_responses
    got = _got(found, ("base_offset", "log_append_time_ms", "log_start_offset"))
    leader = found.current_leader
    ends = {node.node_id for node in answer.node_endpoints or ()}
    return Got(
        got.error,
        {
            **got.values,
            "leader": None if leader is None else (leader.leader_id, leader.leader_epoch),
            "endpoints": ends,
            "words": found.error_message,
        },
    )


def produce_request(
    topic: str,
    data: bytes | None,
    *,
    acks: int = -1,
    version: int = 11,
    partition: int = 0,
    timeout_ms: int = 10_000,
    transactional_id: str | None = None,
) -> Any:
    kind = ProduceRequest.TopicProduceData
    sent = kind.PartitionProduceData(index=partition, records=data)
    return ProduceRequest(
        version=version,
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[kind(name=topic, partition_data=[sent])],
    )


def _got(found: Any, names: Sequence[str]) -> Got:
    return Got(error_name(found.error_code), {name: getattr(found, name) for name in names})
