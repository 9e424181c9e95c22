"""Answers that are well formed and cannot be so: never taken for the truth."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kelr.errors import ConnectError
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.model import LogUnavailable, PartitionState, ReplicaLog, Selection, TopicPartition, select
from kelr.protocol.messages import (
    DescribeClusterResponse,
    DescribeTopicPartitionsResponse,
    FetchResponse,
    ListOffsetsResponse,
)
from kelr.sources.live import LiveSource
from tests.fuzz.hostile import ORDERS, QUIET, Change, Wire, changed_answers, hostile_cluster, settings_of

PATIENCE_S = 20.0
"""A cluster that is slow says nothing wrong: only what it says is tested."""
Edit = Callable[[Any], None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[SimulatedServer, Wire]]:
    with hostile_cluster() as made:
        yield made


def edited(kind: Any, version: int, edit: Edit) -> Callable[[bytes], bytes]:
    """Changes the message that a whole frame holds."""
    header = 9 if kind.is_flexible(version) else 8

    def do(frame: bytes) -> bytes:
        message = kind.decode(frame[header:], version)
        edit(message)
        content = frame[4:header] + bytes(message.encode())
        return struct.pack(">i", len(content)) + content

    return do


def pages(cluster: tuple[SimulatedServer, Wire], edit: Edit, selection: Selection) -> list[PartitionState]:
    server, wire = cluster
    do = edited(DescribeTopicPartitionsResponse, 0, edit)
    asking = settings_of(server, PATIENCE_S)
    with changed_answers(wire, asking, _of("DescribeTopicPartitions", do)), LiveSource(asking) as source:
        return [state for page in source.pages(selection) for state in page.partitions]


def _of(name: str, do: Callable[[bytes], bytes]) -> Change:
    """Changes the answers to this request alone."""
    return lambda asked, frame: do(frame) if asked == name else frame


def first(message: Any) -> Any:
    return message.topics[0].partitions[0]


def leads_elsewhere(message: Any) -> None:
    first(message).leader_id = 7


def no_replicas(message: Any) -> None:
    first(message).replica_nodes = []


def a_replica_twice(message: Any) -> None:
    first(message).replica_nodes = [1, 2, 2]


def a_replica_below_zero(message: Any) -> None:
    first(message).replica_nodes = [1, 2, -3]


def in_sync_elsewhere(message: Any) -> None:
    first(message).isr_nodes = [8]


def eligible_below_zero(message: Any) -> None:
    first(message).eligible_leader_replicas = [-8]


def a_leader_below_minus_one(message: Any) -> None:
    first(message).leader_id = -2


def an_epoch_below_zero(message: Any) -> None:
    first(message).leader_epoch = -5


def a_number_below_zero(message: Any) -> None:
    first(message).partition_index = -1


def a_partition_twice(message: Any) -> None:
    message.topics[0].partitions.append(message.topics[0].partitions[0])


def a_topic_twice(message: Any) -> None:
    message.topics.append(message.topics[0])


def goes_back(message: Any) -> None:
    message.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name="a", partition_index=0)


@pytest.mark.parametrize(
    "edit",
    [
        leads_elsewhere,
        no_replicas,
        a_replica_twice,
        a_replica_below_zero,
        in_sync_elsewhere,
        eligible_below_zero,
        a_leader_below_minus_one,
        an_epoch_below_zero,
        a_number_below_zero,
        a_partition_twice,
        a_topic_twice,
        goes_back,
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_partitions_that_cannot_be_so_are_no_answer(
    cluster: tuple[SimulatedServer, Wire], edit: Edit, named: bool
) -> None:
    with pytest.raises(ConnectError) as raised:
        pages(cluster, edit, select([ORDERS.topic] if named else []))
    assert raised.value.next_step


def test_a_topic_that_nobody_asked_for_is_left_out(cluster: tuple[SimulatedServer, Wire]) -> None:
    def another(message: Any) -> None:
        message.topics[0].name = "orders-of-somebody-else"

    assert pages(cluster, another, select([ORDERS.topic])) == []


def log_of(cluster: tuple[SimulatedServer, Wire], name: str, kind: Any, version: int, edit: Edit) -> Any:
    """What is heard of the log of ``orders:0`` on broker 2 while answers of this name are edited."""
    server, wire = cluster
    asking = settings_of(server, PATIENCE_S)
    with LiveSource(asking) as source:
        (state,) = [one for page in source.pages(select([f"{ORDERS.topic}:0"])) for one in page.partitions]
        do = edited(kind, version, edit)
        with changed_answers(wire, asking, _of(name, do)):
            logs = source.replica_logs([state], lineage=True)[ORDERS]
    return next(log for log in logs if log.replica == 2)


LIST_OFFSETS, FETCH = 10, 17


def test_the_log_of_a_quiet_answer_is_heard(cluster: tuple[SimulatedServer, Wire]) -> None:
    for name, kind, version in (("ListOffsets", ListOffsetsResponse, LIST_OFFSETS), ("Fetch", FetchResponse, FETCH)):
        heard = log_of(cluster, name, kind, version, lambda _: None)
        assert isinstance(heard, ReplicaLog)
        assert heard.log_end == 30


def offset(value: int) -> Edit:
    def edit(message: Any) -> None:
        message.topics[0].partitions[0].offset = value

    return edit


def listed_twice(message: Any) -> None:
    message.topics[0].partitions.append(message.topics[0].partitions[0])


def listed_elsewhere(message: Any) -> None:
    message.topics[0].name = QUIET.topic


@pytest.mark.parametrize("edit", [offset(-5), listed_elsewhere])
def test_a_log_end_that_cannot_be_so_is_not_heard(cluster: tuple[SimulatedServer, Wire], edit: Edit) -> None:
    assert isinstance(log_of(cluster, "ListOffsets", ListOffsetsResponse, LIST_OFFSETS, edit), LogUnavailable)


def fetched(**changes: Any) -> Edit:
    def edit(message: Any) -> None:
        for topic in message.responses:
            for partition in topic.partitions:
                for field, value in changes.items():
                    if field in {"epoch", "end_offset"}:
                        if partition.diverging_epoch is not None:
                            setattr(partition.diverging_epoch, field, value)
                    else:
                        setattr(partition, field, value)

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(fetched(epoch=-1), id="no epoch"),
        pytest.param(fetched(epoch=2**31 - 1), id="an epoch above all"),
        pytest.param(fetched(end_offset=-1), id="an epoch without an end"),
        pytest.param(fetched(end_offset=2**62), id="an end beyond the log"),
        pytest.param(fetched(high_watermark=2**60), id="a high watermark beyond the log"),
        pytest.param(fetched(high_watermark=-7), id="a high watermark below zero"),
        pytest.param(fetched(log_start_offset=2**60), id="a start beyond the end"),
        pytest.param(fetched(log_start_offset=-9), id="a start below zero"),
        pytest.param(fetched(error_code=1), id="every epoch is above all"),
    ],
)
def test_epochs_and_watermarks_that_cannot_be_so_are_not_told(
    cluster: tuple[SimulatedServer, Wire], edit: Edit
) -> None:
    heard = log_of(cluster, "Fetch", FetchResponse, FETCH, edit)
    if isinstance(heard, LogUnavailable):
        return
    assert heard.log_end == 30
    assert heard.last_epoch in {None, 0, 1, 2, 3, 4, 5}
    start = heard.log_start or 0
    assert 0 <= start <= heard.log_end
    assert heard.high_watermark is None or start <= heard.high_watermark <= heard.log_end
    ends = [end.end_offset for end in heard.lineage or ()]
    epochs = [end.epoch for end in heard.lineage or ()]
    assert ends == sorted(ends)
    assert epochs == sorted(set(epochs))
    assert all(0 <= end <= heard.log_end for end in ends)


@pytest.mark.parametrize(
    "changes",
    [
        {"port": 70_000},
        {"port": -7},
        {"host": ""},
        {"host": "a\0b"},
        {"host": "x" * 300},
        {"host": "xn--\udc80".encode("ascii", "replace").decode()},
        {"host": "256.256.256.256"},
        {"broker_id": -2},
        {"broker_id": 2**31 - 1},
        {"rack": "\x1b[2J"},
    ],
)
def test_a_broker_at_an_address_that_is_none_is_not_heard(
    cluster: tuple[SimulatedServer, Wire], changes: dict[str, Any]
) -> None:
    def edit(message: Any) -> None:
        for broker in message.brokers:
            if broker.broker_id == 2:
                for field, value in changes.items():
                    setattr(broker, field, value)

    server, wire = cluster
    do = edited(DescribeClusterResponse, 2, edit)
    asking = settings_of(server, PATIENCE_S)
    with changed_answers(wire, asking, _of("DescribeCluster", do)), LiveSource(asking) as source:
        (state,) = [one for page in source.pages(select([f"{ORDERS.topic}:0"])) for one in page.partitions]
        logs = {log.replica: log for log in source.replica_logs([state])[ORDERS]}
    assert isinstance(logs[2], ReplicaLog) == ("rack" in changes)
    assert isinstance(logs[3], ReplicaLog)


def test_partitions_stay_as_they_are(cluster: tuple[SimulatedServer, Wire]) -> None:
    found = {state.address for state in pages(cluster, lambda _: None, select([]))}
    assert found == {TopicPartition(ORDERS.topic, number) for number in range(3)} | {
        TopicPartition(QUIET.topic, number) for number in range(2)
    }
