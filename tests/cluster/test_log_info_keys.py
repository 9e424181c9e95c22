"""GetReplicaLogInfo and real Kafka: never sent unasked, and a key that was configured by mistake reads no wrong log."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kelr.lab import Lab
from kelr.lab.produce import Acks, produce
from kelr.lab.story import create_topic
from kelr.model import LogAnswer, ReplicaLog, TopicPartition, select
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.log_info_key import LogInfoKey

TOPIC = "keys"
CONTROLLER_REGISTRATION, STREAMS_TOPOLOGY = 70, 93
"""What these keys are in released brokers; the second from 4.4 on."""


class Wire:
    """Every byte that this process sends over Python's sockets, and the API keys of the requests in them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._streams: dict[socket.socket, bytearray] = {}
        plain = socket.socket.send

        def send(sock: socket.socket, data: Any, *flags: int) -> int:
            sent = plain(sock, data, *flags)
            self._streams.setdefault(sock, bytearray()).extend(memoryview(data)[:sent])
            return sent

        def sendall(sock: socket.socket, data: Any, *flags: int) -> None:
            rest = memoryview(data)
            while rest:
                rest = rest[sock.send(rest, *flags) :]

        monkeypatch.setattr(socket.socket, "send", send)
        monkeypatch.setattr(socket.socket, "sendall", sendall)

    def keys(self) -> list[int]:
        found = []
        for stream in self._streams.values():
            at = 0
            while at + 6 <= len(stream):
                size, key = struct.unpack_from(">ih", stream, at)
                found.append(key)
                at += 4 + size
        return found


@pytest.fixture
def topic(healthy_43: Lab) -> str:
    """Two partitions with some records, on the whole cluster."""
    create_topic(healthy_43, TOPIC, ((1, 2, 3), (3, 1, 2)), {"min.insync.replicas": "2"})
    for partition in (0, 1):
        records = 5 + partition
        produce(healthy_43.bootstrap_servers, TOPIC, [partition], batches=1, records=records, acks=Acks.ALL, label="a")
    # Followers learn of the high watermark with their next fetch.
    healthy_43.wait_until("all replicas know the high watermarks", lambda: _all_committed(_logs(healthy_43, None)))
    return TOPIC


def _all_committed(logs: Mapping[TopicPartition, tuple[LogAnswer, ...]]) -> bool:
    answers = [answer for of_partition in logs.values() for answer in of_partition]
    return all(isinstance(answer, ReplicaLog) and answer.high_watermark == answer.log_end for answer in answers)


def _logs(lab: Lab, log_info: LogInfoKey | None) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
    settings = ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20, log_info=log_info)
    with LiveSource(settings) as source:
        snapshot = take_snapshot(source, select((TOPIC,)), now_ms=0, with_logs=lambda _partition: True, lineage=True)
        assert snapshot.cluster.features.elect_leaders == 2
    return snapshot.logs


def _what(answer: LogAnswer) -> LogAnswer:
    """Without how and when it was learnt."""
    assert isinstance(answer, ReplicaLog)
    return replace(answer, source="", read_at_ms=None)


def test_neither_key_is_ever_sent_to_a_released_broker(
    healthy_43: Lab, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not unasked, and not where somebody configured it by mistake: these brokers list no such request."""
    wire = Wire(monkeypatch)
    unasked = _logs(healthy_43, None)
    assert [{log.log_end for log in logs if isinstance(log, ReplicaLog)} for logs in unasked.values()] == [{5}, {6}]
    assert {18, 1, 2} <= set(wire.keys()), "ApiVersions, Fetch and ListOffsets are seen"
    for key in (CONTROLLER_REGISTRATION, STREAMS_TOPOLOGY):
        mistaken = _logs(healthy_43, LogInfoKey.chosen(key))
        for address, answers in mistaken.items():
            assert [_what(answer) for answer in answers] == [_what(answer) for answer in unasked[address]], topic
            for answer in answers:
                assert isinstance(answer, ReplicaLog)
                assert answer.source.startswith(f"ListOffsets+Fetch (GetReplicaLogInfo v0 (key {key}): ")
                assert "does not support" in answer.source
    assert not {CONTROLLER_REGISTRATION, STREAMS_TOPOLOGY} & set(wire.keys())
