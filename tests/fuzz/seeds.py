"""True bytes to begin with: answers of every kind, requests, batches of every compression."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache

from kelr.protocol.codec import message_class
from kelr.protocol.dialects import Dialect
from kelr.protocol.messages import DescribeTopicPartitionsResponse, FetchResponse, ListOffsetsResponse, replica_log_info
from kelr.sources.live.decode import topic_id_uuid
from kelr.sources.records.batches import Compression
from kelr.sources.records.records import Record
from tests.fuzz import targets
from tests.fuzz.messages import answers
from tests.rescue.batches import batch_bytes


def sized(*pieces: bytes) -> bytes:
    return b"".join(struct.pack(">H", len(piece)) + piece for piece in pieces)


@cache
def seeds() -> Mapping[str, tuple[bytes, ...]]:
    """For each target."""
    return {
        "answer": tuple(_empty_answers()),
        "page": (_page(),),
        "records": tuple(_batches()),
        "dialogue": (
            b"\0" + sized(_ends(), _fetched(3)),
            b"\2" + sized(_ends(), *[_fetched(5 - n) for n in range(4)]),
            b"\3" + sized(_log_info(), _fetched(5)),
        ),
        "tail": tuple(sized(_fetched(5, batch)) for batch in _batches()),
        "request": tuple(_requests()),
    }


def _empty_answers() -> list[bytes]:
    return [
        struct.pack(">H", number) + message_class(kind.__name__)().encode(version)
        for number, (kind, version) in enumerate(answers())
    ]


def _page() -> bytes:
    topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    partition = topic.DescribeTopicPartitionsResponsePartition
    parts = [
        partition(
            error_code=0,
            partition_index=number,
            leader_id=leader,
            leader_epoch=4,
            replica_nodes=[1, 2, 3],
            isr_nodes=isr,
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=[],
        )
        for number, (leader, isr) in enumerate([(1, [1, 2, 3]), (1, [1, 2, 3]), (-1, [])])
    ]
    one = topic(
        error_code=0,
        name="orders",
        topic_id=topic_id_uuid(targets.TOPIC_ID),
        is_internal=False,
        partitions=parts,
        topic_authorized_operations=-(2**31),
    )
    return bytes(
        DescribeTopicPartitionsResponse(version=0, throttle_time_ms=0, topics=[one], next_cursor=None).encode()
    )


def _batches() -> list[bytes]:
    records = [Record(5 + n, 1000 + n, b"k", b"v" * 20, (("h", b"x"),)) for n in range(4)]
    return [batch_bytes(records, compression=codec, epoch=2) for codec in Compression]


def _ends() -> bytes:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    part = topic.ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=-1, offset=30, leader_epoch=5)
    answer = ListOffsetsResponse(version=7, throttle_time_ms=0, topics=[topic(name="orders", partitions=[part])])
    return bytes(answer.encode(7))


def _fetched(epoch: int, records: bytes | None = None) -> bytes:
    topic = FetchResponse.FetchableTopicResponse
    data = topic.PartitionData
    diverging = None if records else data.EpochEndOffset(epoch=epoch, end_offset=6 * epoch)
    more = {} if diverging is None else {"diverging_epoch": diverging}
    part = data(
        partition_index=0,
        error_code=0,
        high_watermark=9,
        last_stable_offset=9,
        log_start_offset=0,
        aborted_transactions=None,
        preferred_read_replica=-1,
        records=records,
        **more,
    )
    told = topic(topic_id=topic_id_uuid(targets.TOPIC_ID), partitions=[part])
    return bytes(FetchResponse(version=13, throttle_time_ms=0, error_code=0, session_id=0, responses=[told]).encode(13))


def _log_info() -> bytes:
    kind = replica_log_info(Dialect.KIP, 70)[1]
    topic = kind.TopicPartitionLogInfo
    part = topic.PartitionLogInfo(
        partition=0,
        last_written_leader_epoch=5,
        current_leader_epoch=5,
        log_end_offset=30,
        error_code=0,
        error_message=None,
    )
    told = topic(topic_id=topic_id_uuid(targets.TOPIC_ID), partition_log_info=[part])
    return bytes(kind(broker_epoch=7, topic_partition_log_info_list=[told]).encode(0))


def _requests() -> list[bytes]:
    """An empty request of every kind, in its newest version, where it has one."""
    found = []
    for number, api in enumerate(targets._simulated()[1]):
        low, high = api.versions
        found.append(bytes([number, high - low]) + api.request().encode(high))
    return found
