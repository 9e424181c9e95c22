"""Whole answers, changed on their way: the right answer, or a clear error or value, in time and in little room."""

from __future__ import annotations

import resource
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kelr.errors import ConnectError, KelrError
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.model import LogAnswer, LogUnavailable, PartitionState, ReplicaLog, TopicPartition, select
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.live.client import Client
from kelr.sources.live.transport import Transport
from tests.fuzz.hostile import (
    ORDERS,
    TIMEOUT_S,
    Wire,
    changed_answers,
    hostile_cluster,
    listening,
    makes_sense,
    settings_of,
)
from tests.fuzz.messages import mutated, mutations
from tests.properties import examples

SLACK_S = 4.0
"""For a busy machine. Each question may take its timeout, and a reading has a handful of them."""
QUESTIONS = 8
ATTEMPTS = 20
"""So often something is tried that has to happen within a timeout, and may not on a busy machine."""
NAMES = ("ApiVersions", "DescribeCluster", "DescribeQuorum", "ListPartitionReassignments", "DescribeTopicPartitions")
LOG_NAMES = ("ListOffsets", "Fetch")


@dataclass(frozen=True)
class Read:
    """What one reading of the cluster gave."""

    brokers: tuple[tuple[int, str], ...]
    partitions: Mapping[TopicPartition, PartitionState]
    logs: Mapping[TopicPartition, tuple[LogAnswer, ...]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[SimulatedServer, Wire]]:
    with hostile_cluster() as made:
        yield made


def read(asking: ConnectionSettings) -> Read:
    with LiveSource(asking, clock_ms=lambda: 0) as source:
        brokers = tuple((broker.id, broker.status.value) for broker in source.cluster().brokers)
        found = [state for page in source.pages(select([])) for state in page.partitions]
        logs = source.replica_logs([state for state in found if state.topic == ORDERS.topic], lineage=True)
        return Read(brokers, {state.address: state for state in found}, logs)


@pytest.fixture(scope="module")
def truth(cluster: tuple[SimulatedServer, Wire]) -> Read:
    server, _ = cluster
    found = read(settings_of(server, 20.0))
    assert found.partitions[ORDERS].leader is None
    assert any(isinstance(log, ReplicaLog) and log.log_end for log in found.logs[ORDERS])
    return found


def outcome(cluster: tuple[SimulatedServer, Wire], change: Callable[[str, bytes], bytes]) -> Read | KelrError:
    """One reading while answers are changed."""
    server, wire = cluster
    asking = settings_of(server)
    with changed_answers(wire, asking, change):
        began = time.monotonic()
        try:
            return read(asking)
        except KelrError as error:
            return error
        finally:
            assert time.monotonic() - began < QUESTIONS * TIMEOUT_S + SLACK_S


def is_sound(found: Read | KelrError) -> None:
    """Whatever was read could be so."""
    if isinstance(found, KelrError):
        assert found.message
        assert "Traceback" not in found.message
        return
    for state in found.partitions.values():
        assert makes_sense(state), state
    for address, logs in found.logs.items():
        assert len(logs) == len(found.partitions[address].replicas)
        for log in logs:
            if isinstance(log, LogUnavailable):
                assert log.detail
                continue
            assert log.log_end >= 0
            assert log.last_epoch is None or log.last_epoch >= 0
            assert log.high_watermark is None or log.high_watermark >= 0
            assert log.log_start is None or log.log_start >= 0
            ends = [end.end_offset for end in log.lineage or ()]
            assert ends == sorted(ends)


class Struck:
    """Changes the answer to the `nth` request of this name, from 0 on, or all of them (None)."""

    def __init__(self, name: str, nth: int | None, do: Callable[[bytes], bytes]) -> None:
        self._name, self._nth, self._do = name, nth, do
        self._count = 0
        self.happened = False

    def __call__(self, name: str, frame: bytes) -> bytes:
        if name != self._name:
            return frame
        self._count += 1
        if self._nth is not None and self._count - 1 != self._nth:
            return frame
        self.happened = True
        return self._do(frame)


@given(st.sampled_from(NAMES + LOG_NAMES), st.integers(0, 2), mutations())
@example("Fetch", 0, (("put", 0.9, b"\x7f\xff\xff\xff"),))
@examples(40)
def test_one_answer_is_mutated(
    cluster: tuple[SimulatedServer, Wire], truth: Read, name: str, nth: int, changes: Any
) -> None:
    def do(frame: bytes) -> bytes:
        content = mutated(frame[8:], changes)
        return struct.pack(">i", len(content) + 4) + frame[4:8] + content  # an honest size, and the right answer

    assert truth
    is_sound(outcome(cluster, Struck(name, nth, do)))


@given(st.sampled_from(NAMES + LOG_NAMES), mutations())
@examples(12)
def test_every_answer_of_a_kind_is_mutated(
    cluster: tuple[SimulatedServer, Wire], truth: Read, name: str, changes: Any
) -> None:
    assert truth
    is_sound(outcome(cluster, Struck(name, None, lambda frame: mutated(frame, changes))))


@pytest.mark.parametrize("name", NAMES + LOG_NAMES)
@pytest.mark.parametrize(
    "do",
    [
        pytest.param(lambda frame: b"\x7f\xff\xff\xff" + frame[4:], id="two gigabytes"),
        pytest.param(lambda frame: b"\x0f\xff\xff\xff" + frame[4:], id="256 megabytes"),
        pytest.param(lambda frame: b"\xff\xff\xff\xff" + frame[4:], id="a negative size"),
        pytest.param(lambda _: b"\0\0\0\0", id="nothing"),
        pytest.param(lambda frame: frame + frame, id="twice"),
        pytest.param(lambda frame: frame[:4] + b"\x7f\xff\xff\xff" + frame[8:], id="the answer to another"),
        pytest.param(lambda frame: frame[:8] + b"\xff" * (len(frame) - 8), id="all ones"),
        pytest.param(
            lambda frame: struct.pack(">i", len(frame) + 999_996) + frame[4:8] + b"\xff" * 1_000_000,
            id="a varint of a megabyte",
        ),
        pytest.param(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n", id="HTTP"),
    ],
)
def test_answers_that_lie_about_their_sizes(
    cluster: tuple[SimulatedServer, Wire], truth: Read, name: str, do: Callable[[bytes], bytes]
) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _attempt in range(ATTEMPTS):  # a busy machine may not come as far as this request within its short timeout
        struck = Struck(name, 0 if name != "ApiVersions" else None, do)
        found = outcome(cluster, struck)
        if struck.happened:
            break
    assert struck.happened
    is_sound(found)
    if isinstance(found, Read) and name in NAMES:
        assert found.partitions.keys() == truth.partitions.keys()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 64 * 1024


@pytest.mark.parametrize("transport", [Client])
@pytest.mark.parametrize("piece", [b"\0\0\0\x10" * 16_384, b"\x0e\xff\xff\xff" * 16_384], ids=["answers", "one answer"])
def test_a_stream_in_place_of_an_answer_ends(
    transport: Callable[[ConnectionSettings], Transport], piece: bytes
) -> None:
    """As many bytes as go through, of answers to nothing or of a single one, of 250 megabytes: kept for no longer than
    the timeout, and never more than a few of the first kind."""
    sent = 0

    def blast(connection: socket.socket) -> None:
        nonlocal sent
        connection.recv(1)
        while True:
            sent += connection.send(piece)

    timeout_s = 1.0
    with listening(blast) as port:
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        settings = ConnectionSettings((("127.0.0.1", port),), timeout_s=timeout_s)
        for _attempt in range(ATTEMPTS):  # the stream's thread may not be given its turn within the timeout
            began = time.monotonic()
            with LiveSource(settings, connect=transport) as source, pytest.raises(ConnectError):
                source.cluster()
            assert time.monotonic() - began < timeout_s + SLACK_S
            if sent > len(piece):
                break
    grown_bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib)
    assert sent > len(piece)
    assert grown_bytes < (32 if piece[0] == 0 else 640) * 1024 * 1024


def test_the_same_through_kafka_python(cluster: tuple[SimulatedServer, Wire], truth: Read) -> None:
    server, _ = cluster
    with LiveSource(settings_of(server, 5.0), clock_ms=lambda: 0, connect=Client) as source:
        assert {state.address: state for page in source.pages(select([])) for state in page.partitions} == dict(
            truth.partitions
        )
