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
from kelr.model import LOG_INFO_FEATURE
from kelr.protocol.dialects import Dialect
from kelr.protocol.frames import read_request, request_frame
from kelr.protocol.messages import ElectLeadersRequest, replica_log_info
from kelr.sources.live.transport import Request
from kelr.sources.log_info_key import LogInfoKey, is_possible

TOPIC = UUID(int=0x0102030405060708090A0B0C0D0E0F10)
TOPIC_BYTES = TOPIC.bytes


def _request(dialect: Dialect, **fields: Any) -> bytes:
    kind, _ = replica_log_info(dialect, dialect.api_key)
    topics = [kind.TopicPartitions(topic_id=TOPIC, partitions=[7])]
    return bytes(kind(topic_partitions=topics, **fields).encode(0))


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
        answer = kind.decode(epoch + more + topics + b"\x00", 0)
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
    """Whatever else has that key, and whichever dialect was asked for last."""
    for name in ("KipReplicaLogInfo", "PatchReplicaLogInfo"):
        request = Request(name, {"topic_partitions": []}, under_key=1234)
        assert (request.key, request.answer.API_KEY) == (1234, 1234)
        assert f"{name}Response" == request.answer.NAME
        frame = request_frame(request.message, 0, correlation=9, client_id="kelr")
        assert int.from_bytes(frame[4:6], "big") == 1234
        assert read_request(type(request.message), frame[4:], 0) == request.message


def test_a_designation_has_one_leader_for_each_partition() -> None:
    kind = ElectLeadersRequest.TopicPartitions
    topic = kind(topic="t", partitions=[4, 2], desired_leaders=[1, 3])
    body = bytes(ElectLeadersRequest(version=3, election_type=1, topic_partitions=[topic], timeout_ms=9).encode(3))
    four, two, one, three = (number.to_bytes(4, "big") for number in (4, 2, 1, 3))
    assert (
        body == b"\x01\x02\x02t\x03" + four + two + b"\x03" + one + three + b"\x00" + (9).to_bytes(4, "big") + b"\x00"
    )


def test_the_dialects_load_no_client() -> None:
    code = "import sys, kelr.protocol.dialects, kelr.sources.log_info_key; assert 'kafka' not in sys.modules"
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
    return SimpleNamespace(version=version, supported_features=supported)


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
