"""GetReplicaLogInfo's two dialects, byte for byte, and under which keys they may go."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kelr.errors import UsageError
from kelr.messages import ElectLeadersRequest, replica_log_info
from kelr.messages.dialects import Dialect
from kelr.model import LOG_INFO_FEATURE
from kelr.sources.log_info_key import LogInfoKey, is_possible

TOPIC = UUID(int=0x0102030405060708090A0B0C0D0E0F10)
TOPIC_BYTES = TOPIC.bytes


def _request(dialect: Dialect, **fields: Any) -> bytes:
    kind, _ = replica_log_info(dialect, dialect.api_key)
    topics = [kind.TopicPartitions(topic_id=TOPIC, partitions=[7])]
    return bytes(kind(version=0, topic_partitions=topics, **fields).encode(version=0))


def test_the_request_of_the_kip_names_the_broker() -> None:
    one_topic = b"\x02" + TOPIC_BYTES + b"\x02" + b"\x00\x00\x00\x07" + b"\x00"
    assert _request(Dialect.KIP, broker_id=3) == b"\x00\x00\x00\x03" + one_topic + b"\x00"
    assert _request(Dialect.PATCH) == one_topic + b"\x00"


def test_the_answer_of_the_patch_tells_whether_there_is_more() -> None:
    entry = (
        b"\x00\x00\x00\x07"
        + b"\x00\x00\x00\x02"
        + b"\x00\x00\x00\x05"
        + (135).to_bytes(8, "big")
        + b"\x00\x00"
        + b"\x00"
    )
    topics = b"\x02" + TOPIC_BYTES + b"\x02" + entry + b"\x00" + b"\x00"
    epoch = (41).to_bytes(8, "big")
    for dialect, more in ((Dialect.KIP, b""), (Dialect.PATCH, b"\x01")):
        _, kind = replica_log_info(dialect, dialect.api_key)
        answer = kind.decode(epoch + more + topics + b"\x00", version=0)
        (told,) = answer.topic_partition_log_info_list[0].partition_log_info
        assert answer.broker_epoch == 41
        assert answer.topic_partition_log_info_list[0].topic_id == TOPIC
        assert (told.partition, told.last_written_leader_epoch, told.current_leader_epoch, told.log_end_offset) == (
            7,
            2,
            5,
            135,
        )
        assert getattr(answer, "has_more_replica_log_info", None) == (True if more else None)


def test_an_answer_is_decoded_by_the_dialect_of_its_request() -> None:
    """kafka-python has one table of answers by key: the dialect that was made last would get them all."""
    kip, _ = replica_log_info(Dialect.KIP, 1234)
    patch, _ = replica_log_info(Dialect.PATCH, 1234)
    for kind, fields, name in (
        (kip, {"broker_id": 1}, "KipReplicaLogInfoResponse"),
        (patch, {}, "PatchReplicaLogInfoResponse"),
    ):
        request = kind(version=0, topic_partitions=[], **fields)
        request.with_header(correlation_id=9, client_id="kelr")
        assert request.header.get_response_class()[None].__name__ == name
        assert kind.decode(request.encode(header=True), version=0, header=True).header.request_api_key == 1234


def test_a_designation_has_one_leader_for_each_partition() -> None:
    kind = ElectLeadersRequest.TopicPartitions
    topic = kind(topic="t", partitions=[4, 2], desired_leaders=[1, 3])
    body = bytes(
        ElectLeadersRequest(version=3, election_type=1, topic_partitions=[topic], timeout_ms=9).encode(version=3)
    )
    four, two, one, three = (number.to_bytes(4, "big") for number in (4, 2, 1, 3))
    assert (
        body == b"\x01\x02\x02t\x03" + four + two + b"\x03" + one + three + b"\x00" + (9).to_bytes(4, "big") + b"\x00"
    )


def test_the_dialects_load_no_client() -> None:
    code = "import sys, kelr.messages.dialects, kelr.sources.log_info_key; assert 'kafka' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("key", "dialect", "expected"),
    [
        (70, None, Dialect.KIP),
        (93, None, Dialect.PATCH),
        (95, None, Dialect.KIP),
        (93, "kip", Dialect.KIP),
        (70, "PATCH", Dialect.PATCH),
    ],
)
def test_the_dialect_goes_with_the_key(key: int, dialect: str | None, expected: Dialect) -> None:
    assert LogInfoKey.chosen(key, dialect) == LogInfoKey(key, expected)


@example(94)
@given(key=st.integers(0, 94).filter(lambda key: key not in {70, 93}) | st.integers(max_value=-1) | st.integers(32768))
def test_no_key_of_another_request_is_taken(key: int) -> None:
    """43 would be an election, 20 the deletion of topics, 94 (in 4.4) the end of a controller's registration."""
    assert not is_possible(key)
    with pytest.raises(UsageError, match=f"API key {key}:"):
        LogInfoKey.chosen(key)


def test_there_are_two_dialects() -> None:
    with pytest.raises(UsageError, match="no dialect 'kpi'"):
        LogInfoKey.chosen(70, "kpi")


def _versions(version: int, *features: tuple[str, int, int]) -> Any:
    supported = [SimpleNamespace(name=name, min_version=low, max_version=high) for name, low, high in features]
    return SimpleNamespace(API_VERSION=version, supported_features=supported)


@pytest.mark.parametrize(
    ("version", "features", "expected"),
    [
        (4, [(LOG_INFO_FEATURE, 0, 70)], LogInfoKey(70, Dialect.KIP)),
        (3, [("metadata.version", 0, 29), (LOG_INFO_FEATURE, 1, 93)], LogInfoKey(93, Dialect.PATCH)),
        (4, [("metadata.version", 0, 70)], None),
        (4, [], None),
        (2, [(LOG_INFO_FEATURE, 0, 70)], None),
        (4, [(LOG_INFO_FEATURE, 2, 70)], None),
        (4, [(LOG_INFO_FEATURE, 0, 43)], None),
    ],
)
def test_what_a_broker_announces(version: int, features: list[Any], expected: LogInfoKey | None) -> None:
    assert LogInfoKey.announced(_versions(version, *features)) == expected
