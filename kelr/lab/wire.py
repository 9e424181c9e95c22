"""Ask one broker of the lab one question: exactly that broker, over a connection of its own.

The clients that applications use choose the broker themselves; to know whether *this* broker is up, or what *this*
broker believes, the lab has to ask it.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kelr.lab.nodes import HOST
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.codec import Message, answer_of
from kelr.protocol.frames import read_answer_head, request_frame
from kelr.protocol.messages import DescribeClusterRequest, DescribeTopicPartitionsRequest, ProduceRequest

CLIENT_ID = "kelr-lab"
NOT_ENOUGH_REPLICAS = 19

_UNSOUND_BATCH = struct.pack(">qiibIhiqqqhii", 0, 50, -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1) + b"\x00"
"""A batch of one record with a checksum of 0, which its bytes do not have."""


def ask(port: int, request: Message, *, timeout_s: float = 5.0) -> Any:
    """Send a request (with its version set) and return the decoded response.

    Raises:
        OSError: nobody listens, the connection broke, or the answer did not come in time (TimeoutError).
    """
    version = request.version
    assert version is not None
    with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
        connection.sendall(request_frame(request, version, correlation=1, client_id=CLIENT_ID))
        (size,) = struct.unpack(">i", _received(connection, 4, port))
        frame = _received(connection, size, port)
    kind = answer_of(type(request))
    return kind.decode(frame[read_answer_head(kind, frame, version)[1] :], version)


def _received(connection: socket.socket, size: int, port: int) -> bytes:
    held = bytearray()
    while len(held) < size:
        piece = connection.recv(size - len(held))
        if not piece:
            raise ConnectionError(f"the broker on port {port} closed the connection")
        held += piece
    return bytes(held)


def fenced_brokers(port: int) -> Mapping[int, bool]:
    """Each registered broker's id, and whether it is fenced, as the broker on this port has it (DescribeCluster v2).

    Raises:
        OSError: as `ask`.
    """
    response = ask(port, DescribeClusterRequest(include_fenced_brokers=True, version=2))
    return {broker.broker_id: broker.is_fenced for broker in response.brokers}


def partitions(port: int, topics: Sequence[str] = ()) -> Mapping[TopicPartition, PartitionState]:
    """The partitions of these topics (none: of all), as the broker on this port has them. Unknown topics are left out.

    Raises:
        OSError: as `ask`.
    """
    found: dict[TopicPartition, PartitionState] = {}
    names = [DescribeTopicPartitionsRequest.TopicRequest(name=topic) for topic in sorted(topics)]
    cursor = None
    while True:
        request = DescribeTopicPartitionsRequest(topics=names, response_partition_limit=2000, cursor=cursor, version=0)
        response = ask(port, request)
        for topic in response.topics:
            for answer in topic.partitions:
                state = _state(topic.name, answer)
                found[state.address] = state
        if response.next_cursor is None:
            return found
        after = response.next_cursor
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=after.topic_name, partition_index=after.partition_index
        )


def refuses_acks_all(port: int, topic: str, partition: int) -> bool:
    """Whether the leader on this port refuses acks=all by itself: it knows that the ISR is smaller than min ISR.

    A leader learns that a moment after its broker answers describe requests with it, and until then it appends what it
    refuses later (NOT_ENOUGH_REPLICAS_AFTER_APPEND). It is asked with a batch that fails its checksum, which it checks
    after the ISR (Partition.appendRecordsToLeader): nothing is ever written.

    Raises:
        OSError: as `ask`.
    """
    named = ProduceRequest.TopicProduceData
    data = named.PartitionProduceData(index=partition, records=_UNSOUND_BATCH)
    topics = [named(name=topic, partition_data=[data])]
    response = ask(port, ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1000, topic_data=topics, version=9))
    (answer,) = (one for named in response.responses for one in named.partition_responses)
    return bool(answer.error_code == NOT_ENOUGH_REPLICAS)


def fenced_as_seen_by(port: int) -> Mapping[int, bool]:
    """As `fenced_brokers`; empty where nobody answers on this port."""
    with suppress(OSError):
        return fenced_brokers(port)
    return {}


def views(ports: Iterable[int], topics: Sequence[str] = ()) -> Iterator[Mapping[TopicPartition, PartitionState]]:
    """As `partitions`, from one broker after the other; those that do not answer are left out."""
    for port in ports:
        with suppress(OSError):
            yield partitions(port, topics)


def _state(topic: str, answer: Any) -> PartitionState:
    return PartitionState(
        topic=topic,
        partition=answer.partition_index,
        leader=None if answer.leader_id < 0 else answer.leader_id,
        leader_epoch=answer.leader_epoch,
        replicas=tuple(answer.replica_nodes),
        isr=tuple(answer.isr_nodes),
        elr=_ids(answer.eligible_leader_replicas),
        last_known_elr=_ids(answer.last_known_elr),
        offline_replicas=tuple(answer.offline_replicas),
    )


def _ids(ids: list[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)
