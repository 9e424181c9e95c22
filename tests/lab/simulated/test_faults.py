"""What goes wrong on the way, on purpose: each kind does what it says, nothing hangs, and nothing else changes."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kelr.controller import events
from kelr.lab import wire
from kelr.lab.simulated.connection import failed_answer, with_errors
from kelr.lab.simulated.faults import Fault, FaultKind, Faults, noise
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.protocol.dialects import Dialect
from kelr.protocol.error_codes import error_name
from kelr.protocol.frames import request_frame
from kelr.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    ProduceRequest,
    ProduceResponse,
    replica_log_info,
)

PATIENCE_S = 20.0
NOT_CONTROLLER = 41
DESCRIBE_CLUSTER = "DescribeCluster"


@pytest.fixture
def server() -> Iterator[SimulatedServer]:
    with SimulatedServer() as server:
        yield server


def request_bytes(request: Any) -> bytes:
    return request_frame(request, request.version, correlation=1, client_id="tests")


def ask(server: SimulatedServer, node: int = 1) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.ports[node]), timeout=PATIENCE_S)
    client.sendall(request_bytes(DescribeClusterRequest(version=2)))
    return client


def everything(client: socket.socket) -> bytes:
    data = b""
    while piece := client.recv(1 << 16):
        data += piece
    return data


def answered(client: socket.socket) -> bytes:
    """The bytes of one answer, its size included; fewer where the connection ended before."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
        piece = client.recv(1 << 16)
        if not piece:
            break
        data += piece
    return data


def received(client: socket.socket, size: int) -> bytes:
    """So many bytes."""
    data = b""
    while len(data) < size:
        piece = client.recv(size - len(data))
        assert piece, "the connection ended"
        data += piece
    return data


@pytest.fixture
def right(server: SimulatedServer) -> bytes:
    """The answer when nothing goes wrong."""
    with ask(server) as client:
        return answered(client)


def is_mute(client: socket.socket) -> bool:
    client.settimeout(0.2)
    try:
        return client.recv(1) == b"never"
    except TimeoutError:
        return True


def wait_until_struck(fault: Fault) -> None:
    """Until the server has the request that the fault strikes once."""
    deadline = time.monotonic() + PATIENCE_S
    while fault.times:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_lost_and_dropped_answers_never_come(server: SimulatedServer) -> None:
    for kind in (FaultKind.LOSE, FaultKind.DROP):
        server.fault(Fault(kind, api=DESCRIBE_CLUSTER, times=1))
        with ask(server) as client:
            assert is_mute(client)
            client.settimeout(PATIENCE_S)
            client.sendall(request_bytes(DescribeClusterRequest(version=2)))
            assert is_mute(client)  # nothing comes after an answer that never comes
        assert wire.fenced_brokers(server.ports[1])  # over a connection of its own


@pytest.mark.parametrize(
    ("kind", "done"),
    [
        (FaultKind.LOSE, False),
        (FaultKind.CLOSE, False),
        (FaultKind.ERROR, False),
        (FaultKind.DROP, True),
        (FaultKind.TRUNCATE, True),
        (FaultKind.GARBLE, True),
        (FaultKind.SLOW, True),
        (FaultKind.DELAY, True),
    ],
)
def test_what_is_carried_out_and_what_is_not(server: SimulatedServer, kind: FaultKind, done: bool) -> None:
    server.inside(lambda world: world.running.ask(events.TopicCreated("orders", ((1, 2, 3),))))
    server.fault(Fault(kind, 30_000 if kind is not FaultKind.ERROR else NOT_CONTROLLER, api="DeleteTopics"))
    request = DeleteTopicsRequest(topic_names=["orders"], timeout_ms=1000, version=1)
    with socket.create_connection(("127.0.0.1", server.ports[1]), timeout=PATIENCE_S) as client:
        client.sendall(request_bytes(request))
        if done:
            deadline = time.monotonic() + PATIENCE_S
            while server.inside(lambda world: world.partitions("orders")):
                assert time.monotonic() < deadline
        elif kind is FaultKind.LOSE:
            assert is_mute(client)
        else:
            assert everything(client) == b"" if kind is FaultKind.CLOSE else answered(client)
    assert bool(server.inside(lambda world: world.partitions("orders"))) is not done


def test_close_ends_the_connection_in_place_of_an_answer(server: SimulatedServer) -> None:
    server.fault(Fault(FaultKind.CLOSE, api=DESCRIBE_CLUSTER))
    with ask(server) as client:
        assert everything(client) == b""


def test_garble_keeps_the_frame_and_the_header(server: SimulatedServer, right: bytes) -> None:
    server.fault(Fault(FaultKind.GARBLE, 5, api=DESCRIBE_CLUSTER))
    with ask(server) as client:
        got = answered(client)
    head = 4 + 4 + 1  # size, correlation id, and no tags
    assert got == right[:head] + noise(5, len(right) - head)
    assert got != right


@pytest.mark.parametrize("size", [0, 3, 4, 9, 20])
def test_truncate_ends_after_so_many_bytes(server: SimulatedServer, right: bytes, size: int) -> None:
    server.fault(Fault(FaultKind.TRUNCATE, size, api=DESCRIBE_CLUSTER))
    with ask(server) as client:
        assert everything(client) == right[:size]


def test_a_delay_is_as_long_as_it_says_by_the_clusters_clock() -> None:
    with SimulatedServer(clock=VirtualClock()) as server:
        fault = Fault(FaultKind.DELAY, 60_000, api=DESCRIBE_CLUSTER, times=1)
        server.fault(fault)
        with ask(server) as client:
            wait_until_struck(fault)
            server.advance(59_999)
            assert is_mute(client)
            client.settimeout(PATIENCE_S)
            server.advance(1)
            assert answered(client)


@pytest.mark.parametrize(
    ("kind", "amount"), [(FaultKind.DELAY, 10**9), (FaultKind.SLOW, 1), (FaultKind.DROP, 0), (FaultKind.LOSE, 0)]
)
def test_nobody_is_waited_for_who_has_gone(server: SimulatedServer, kind: FaultKind, amount: int) -> None:
    fault = Fault(kind, amount, api=DESCRIBE_CLUSTER, times=1)
    server.fault(fault)
    with ask(server):
        wait_until_struck(fault)
        assert server.perform(lambda there: there.connections(1)) == 1
    deadline = time.monotonic() + PATIENCE_S
    while server.perform(lambda there: there.connections(1)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_slow_comes_in_pieces_and_whole() -> None:
    with SimulatedServer(clock=VirtualClock()) as server:
        with ask(server) as client:
            right = answered(client)
        rate = 4 * len(right)  # bytes a second: a quarter of a second for all
        fault = Fault(FaultKind.SLOW, rate, api=DESCRIBE_CLUSTER, times=1)
        server.fault(fault)
        with ask(server) as client:
            wait_until_struck(fault)
            got = b""
            for _piece in range(4):
                server.advance(50)
                got += received(client, rate // 20)
                assert got == right[: len(got)]
            assert len(got) < len(right)
            assert is_mute(client)
            client.settimeout(PATIENCE_S)
            server.advance(100)
            assert got + received(client, len(right) - len(got)) == right


def test_slow_with_one_byte_a_second_is_a_byte_a_second() -> None:
    with SimulatedServer(clock=VirtualClock()) as server:
        fault = Fault(FaultKind.SLOW, 1, api=DESCRIBE_CLUSTER, times=1)
        server.fault(fault)
        with ask(server) as client:
            wait_until_struck(fault)
            server.advance(1000)
            assert len(client.recv(100)) == 1
            server.advance(2000)
            assert len(client.recv(1)) == 1
            assert len(client.recv(1)) == 1
            assert is_mute(client)


def test_a_fault_strikes_where_and_as_often_as_it_says() -> None:
    once = Fault(FaultKind.CLOSE, node=2, api="Metadata", skip=1, times=2)
    faults = Faults([once])
    struck = [faults.strike(2, "Metadata") is once for _ in range(5)]
    assert struck == [False, True, True, False, False]
    assert faults.strike(1, "Metadata") is None
    assert Faults([Fault(FaultKind.CLOSE, node=2)]).strike(2, "Fetch") is not None
    assert Faults([Fault(FaultKind.CLOSE, api="Fetch")]).strike(2, "Metadata") is None


def test_the_first_that_fits_strikes() -> None:
    first, second = Fault(FaultKind.CLOSE, times=1), Fault(FaultKind.LOSE)
    faults = Faults([first, second])
    assert [faults.strike(1, "Fetch") for _ in range(3)] == [first, second, second]


def test_no_faults_is_no_faults(server: SimulatedServer, right: bytes) -> None:
    server.fault(Fault(FaultKind.CLOSE))
    with ask(server) as client:
        assert everything(client) == b""
    server.no_faults()
    with ask(server) as client:
        assert answered(client) == right


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": FaultKind.DELAY, "amount": -1},
        {"kind": FaultKind.SLOW, "amount": 0},
        {"kind": FaultKind.ERROR, "amount": 0},
        {"kind": FaultKind.ERROR, "amount": -2},
        {"kind": FaultKind.ERROR, "amount": 32_768},
        {"kind": FaultKind.DELAY, "amount": 2**31},
        {"kind": FaultKind.LOSE, "skip": -1},
        {"kind": FaultKind.LOSE, "times": 0},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"outside|skips"):
        Fault(**wrong)


def test_noise_is_the_same_for_the_same_seed() -> None:
    assert noise(1, 100) == noise(1, 100) != noise(2, 100)
    assert len(noise(1, 100)) == 100


# Answers that are all errors.


def test_an_error_is_the_answers_own(server: SimulatedServer) -> None:
    server.fault(Fault(FaultKind.ERROR, NOT_CONTROLLER, api=DESCRIBE_CLUSTER))
    response = wire.ask(server.ports[1], DescribeClusterRequest(version=2))
    assert (response.error_code, response.error_message, response.brokers) == (NOT_CONTROLLER, "NOT_CONTROLLER", [])


def test_an_error_is_that_of_the_topics_that_were_asked_for(server: SimulatedServer) -> None:
    server.fault(Fault(FaultKind.ERROR, 29))
    names = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in ("a", "b")]
    request = DescribeTopicPartitionsRequest(topics=names, response_partition_limit=9, cursor=None, version=0)
    response = wire.ask(server.ports[1], request)
    assert [(topic.name, topic.error_code, topic.partitions) for topic in response.topics] == [
        ("a", 29, []),
        ("b", 29, []),
    ]


@pytest.mark.parametrize(
    "everything_asked",
    [
        MetadataRequest(topics=None, version=12),
        DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000, cursor=None, version=0),
    ],
)
def test_an_error_about_everything_is_not_an_answer_that_there_is_nothing(
    server: SimulatedServer, everything_asked: Any
) -> None:
    server.fault(Fault(FaultKind.ERROR, 29))
    with pytest.raises(ConnectionError):  # no topic, and so no room for the error
        wire.ask(server.ports[1], everything_asked)
    server.inside(lambda world: world.running.ask(events.TopicCreated("orders", ((1, 2, 3), (2, 3, 1)))))
    response = wire.ask(server.ports[1], everything_asked)
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("orders", 29)]
    assert [partition.error_code for partition in response.topics[0].partitions] == [29, 29]


def topics_of(message: Any, topics: str, name: str, partitions: str, index: str) -> list[Any]:
    return [
        (getattr(topic, name), [(getattr(one, index), one.error_code) for one in getattr(topic, partitions)])
        for topic in getattr(message, topics)
    ]


TOPIC_ID = UUID(int=77)
KIP_REQUEST, KIP_RESPONSE = replica_log_info(Dialect.KIP, 70)


@pytest.mark.parametrize(
    ("response", "request_", "version", "where", "expected"),
    [
        (
            ListOffsetsResponse,
            ListOffsetsRequest(
                topics=[
                    ListOffsetsRequest.ListOffsetsTopic(
                        name="orders",
                        partitions=[
                            ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=number)
                            for number in (0, 4)
                        ],
                    )
                ]
            ),
            7,
            ("topics", "name", "partitions", "partition_index"),
            [("orders", [(0, 6), (4, 6)])],
        ),
        (
            FetchResponse,
            FetchRequest(
                topics=[
                    FetchRequest.FetchTopic(
                        topic_id=TOPIC_ID,
                        partitions=[FetchRequest.FetchTopic.FetchPartition(partition=3, fetch_offset=5)],
                    )
                ]
            ),
            16,
            ("responses", "topic_id", "partitions", "partition_index"),
            [(TOPIC_ID, [(3, 6)])],
        ),
        (
            ProduceResponse,
            ProduceRequest(
                acks=-1,
                topic_data=[
                    ProduceRequest.TopicProduceData(
                        name="orders",
                        partition_data=[ProduceRequest.TopicProduceData.PartitionProduceData(index=2, records=b"")],
                    )
                ],
            ),
            9,
            ("responses", "name", "partition_responses", "index"),
            [("orders", [(2, 6)])],
        ),
        (
            ElectLeadersResponse,
            ElectLeadersRequest(
                election_type=1,
                topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="orders", partitions=[0, 1])],
            ),
            2,
            ("replica_election_results", "topic", "partition_result", "partition_id"),
            [("orders", [(0, 6), (1, 6)])],
        ),
        (
            AlterPartitionReassignmentsResponse,
            AlterPartitionReassignmentsRequest(
                topics=[
                    AlterPartitionReassignmentsRequest.ReassignableTopic(
                        name="orders",
                        partitions=[
                            AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition(
                                partition_index=5, replicas=[1]
                            )
                        ],
                    )
                ]
            ),
            0,
            ("responses", "name", "partitions", "partition_index"),
            [("orders", [(5, 6)])],
        ),
        (
            KIP_RESPONSE,
            KIP_REQUEST(
                broker_id=1,
                topic_partitions=[KIP_REQUEST.TopicPartitions(topic_id=TOPIC_ID, partitions=[8, 9])],
            ),
            0,
            ("topic_partition_log_info_list", "topic_id", "partition_log_info", "partition"),
            [(TOPIC_ID, [(8, 6), (9, 6)])],
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_partitions_that_were_asked_for_carry_the_error(
    response: Any, request_: Any, version: int, where: tuple[str, str, str, str], expected: list[Any]
) -> None:
    asked = request_.decode(request_.encode(version), version)
    message = failed_answer(response, asked, version, 6)
    decoded = response.decode(message.encode(version), version)
    assert topics_of(decoded, *where) == expected


def test_things_that_are_named_by_a_word_alone_carry_the_error() -> None:
    deleted = failed_answer(DeleteTopicsResponse, DeleteTopicsRequest(topic_names=["a", "b"], version=5), 5, 41)
    assert [(one.name, one.error_code) for one in deleted.responses] == [("a", 41), ("b", 41)]
    groups = failed_answer(DescribeGroupsResponse, DescribeGroupsRequest(groups=["g"], version=5), 5, 30)
    assert [(one.group_id, one.error_code) for one in groups.groups] == [("g", 30)]
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="a")
    configs = failed_answer(DescribeConfigsResponse, DescribeConfigsRequest(resources=[resource], version=4), 4, 29)
    assert [(one.resource_type, one.resource_name, one.error_code) for one in configs.results] == [(2, "a", 29)]


def test_every_answer_can_be_an_error_in_every_version() -> None:
    for api in apis_of(SimulatedSpec()).values():
        for version in range(api.versions[0], api.versions[1] + 1):
            request = api.request.decode(api.request(version=version).encode(version), version)
            message = failed_answer(api.response, request, version, 6)
            if message is None:
                continue
            assert with_errors(message, 6, version), (api.name, version)
            if api.name == "ApiVersions":
                continue  # its decoder reads an error as version 0, whatever the version (KIP-511)
            decoded = api.response.decode(message.encode(version), version)
            assert repr(decoded) == repr(message)


def test_an_error_for_a_producer_that_wants_no_answer_ends_its_connection(server: SimulatedServer) -> None:
    server.fault(Fault(FaultKind.ERROR, 6, api="Produce"))
    with socket.create_connection(("127.0.0.1", server.ports[1]), timeout=PATIENCE_S) as client:
        client.sendall(request_bytes(ProduceRequest(acks=0, timeout_ms=100, topic_data=[], version=9)))
        assert everything(client) == b""


def test_messages_say_the_error_in_words() -> None:
    message = failed_answer(
        DescribeConfigsResponse,
        DescribeConfigsRequest(
            resources=[DescribeConfigsRequest.DescribeConfigsResource(resource_type=2, resource_name="a")], version=4
        ),
        4,
        29,
    )
    assert message.results[0].error_message == error_name(29) == "TOPIC_AUTHORIZATION_FAILED"
