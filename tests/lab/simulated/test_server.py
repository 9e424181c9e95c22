"""The server of a simulated cluster: framing, order, ends, waiting; what handlers answer is tested beside them."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import LabError
from kelr.lab import wire
from kelr.lab.simulated import connection as connections
from kelr.lab.simulated import server as servers
from kelr.lab.simulated.api import Answer, Apis, Call, Later
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.spec import CONTROLLER_ID
from kelr.protocol.frames import request_frame
from kelr.protocol.messages import ApiVersionsRequest, DescribeClusterRequest

API_VERSIONS, DESCRIBE_CLUSTER = 18, 60
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def shared() -> Iterator[SimulatedServer]:
    """A cluster that no test changes."""
    with SimulatedServer() as server:
        yield server


@pytest.fixture
def server() -> Iterator[SimulatedServer]:
    with SimulatedServer() as server:
        yield server


def connected(server: SimulatedServer, node: int = 1) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.ports[node]), timeout=PATIENCE_S)


def frame(key: int, version: int, correlation: int = 7, body: bytes = b"", client: bytes = b"tests") -> bytes:
    content = struct.pack(">hhih", key, version, correlation, len(client)) + client + body
    return struct.pack(">i", len(content)) + content


def read(client: socket.socket, size: int) -> bytes:
    """So many bytes, or fewer where the connection ends before."""
    data = b""
    while len(data) < size and (piece := client.recv(size - len(data))):
        data += piece
    return data


def answer(client: socket.socket) -> bytes:
    """One answer without its size; b"" where the connection ended."""
    size = read(client, 4)
    return read(client, struct.unpack(">i", size)[0]) if len(size) == 4 else b""


def is_well(server: SimulatedServer, node: int = 1) -> bool:
    return wire.fenced_brokers(server.ports[node]) == {1: False, 2: False, 3: False}


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 1, 9, 100 * 1024 * 1024 + 1, 2**31 - 1])
def test_a_size_that_no_request_has_ends_the_connection(shared: SimulatedServer, size: int) -> None:
    with connected(shared) as client:
        client.sendall(struct.pack(">i", size))
        assert read(client, 1) == b""
    assert is_well(shared)


@given(noise=st.binary(min_size=10, max_size=300))
def test_noise_ends_the_connection_or_is_answered(shared: SimulatedServer, noise: bytes) -> None:
    with connected(shared) as client:
        client.sendall(struct.pack(">i", len(noise)) + noise)
        client.shutdown(socket.SHUT_WR)
        while client.recv(1 << 16):
            pass
    assert not shared.failures


@given(body=st.binary(max_size=200), version=st.integers(0, 5), key=st.integers(0, 100))
def test_noise_behind_a_good_header_is_no_fault_of_the_server(
    shared: SimulatedServer, body: bytes, version: int, key: int
) -> None:
    read_only = {2, 3, API_VERSIONS, 29, 32, 55, DESCRIBE_CLUSTER, 75}
    wanted = key if key in read_only else API_VERSIONS
    with connected(shared) as client:
        client.sendall(frame(wanted, version, body=body))
        client.shutdown(socket.SHUT_WR)
        while client.recv(1 << 16):
            pass
    assert not shared.failures


def test_half_a_frame_ends_with_its_client(server: SimulatedServer) -> None:
    with connected(server) as client:
        client.sendall(frame(API_VERSIONS, 0)[:9])
        wait_until(lambda: connections_of(server, 1) == 1)
    wait_until(lambda: connections_of(server, 1) == 0)
    assert is_well(server)


@pytest.mark.parametrize("sent", [b"", frame(API_VERSIONS, 0)[:9]])
def test_who_sends_no_request_is_not_kept(sent: bytes) -> None:
    with SimulatedServer(idle_s=0.05) as server, connected(server) as client:
        client.sendall(sent)
        assert read(client, 1) == b""


def test_requests_of_a_connection_are_answered_in_their_order(shared: SimulatedServer) -> None:
    with connected(shared) as client:
        client.sendall(b"".join(frame(API_VERSIONS, 0, number) for number in range(50)))
        assert [struct.unpack(">i", answer(client)[:4])[0] for _ in range(50)] == list(range(50))


def test_a_frame_may_come_byte_by_byte(shared: SimulatedServer) -> None:
    with connected(shared) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in frame(API_VERSIONS, 0):
            client.sendall(bytes((byte,)))
        assert answer(client)[:6] == struct.pack(">ih", 7, 0)


def test_many_connections_at_once(shared: SimulatedServer) -> None:
    clients = [connected(shared, 1 + number % 3) for number in range(300)]
    try:
        for client in clients:
            client.sendall(frame(API_VERSIONS, 0))
        assert all(answer(client)[:6] == struct.pack(">ih", 7, 0) for client in reversed(clients))
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize(("key", "version"), [(9999, 0), (-1, 0), (DESCRIBE_CLUSTER, 99), (DESCRIBE_CLUSTER, -1)])
def test_an_unknown_request_ends_the_connection(shared: SimulatedServer, key: int, version: int) -> None:
    with connected(shared) as client:
        client.sendall(frame(key, version))
        assert answer(client) == b""


def test_a_controller_does_not_speak_what_only_brokers_speak(shared: SimulatedServer) -> None:
    brokers, controller = shared.perform(lambda server: (server.apis_of(1), server.apis_of(CONTROLLER_ID)))
    metadata = 3
    assert metadata in brokers
    assert metadata not in controller
    with connected(shared, CONTROLLER_ID) as client:
        client.sendall(frame(metadata, 0, body=struct.pack(">i", 0)))
        assert answer(client) == b""


@pytest.mark.parametrize("version", [5, 127, -1])
def test_a_version_of_api_versions_that_is_too_new_is_told_which_there_are(
    shared: SimulatedServer, version: int
) -> None:
    # KIP-511: in version 0, with UNSUPPORTED_VERSION and ApiVersions' own range.
    with connected(shared) as client:
        client.sendall(frame(API_VERSIONS, version, body=b"whatever this version has"))
        assert answer(client) == struct.pack(">ihihhh", 7, 35, 1, API_VERSIONS, 0, 4)
        client.sendall(frame(API_VERSIONS, 0))
        assert answer(client)[:6] == struct.pack(">ih", 7, 0)


def test_a_client_that_is_newer_than_the_server_finds_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    # librdkafka begins with ApiVersions 3.
    with_apis(monkeypatch, API_VERSIONS, lambda api: replace(api, versions=(0, 2)))
    with SimulatedServer() as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap_servers, "log_level": 0})
        assert set(admin.list_topics(timeout=PATIENCE_S).brokers) == {1, 2, 3}


def test_a_broker_that_dies_ends_its_connections_and_refuses_new_ones(server: SimulatedServer) -> None:
    with connected(server, 2) as client, connected(server, 1) as other:
        client.sendall(frame(API_VERSIONS, 0))
        assert answer(client)
        server.inside(lambda world: world.running.kill(2))
        assert ended(client)
        with pytest.raises(ConnectionRefusedError):
            connected(server, 2)
        other.sendall(frame(API_VERSIONS, 0))
        assert answer(other)
    server.inside(lambda world: world.running.start(2))
    wait_until(lambda: server.inside(lambda world: world.listens(2)))
    with connected(server, 2) as client:
        client.sendall(frame(API_VERSIONS, 0))
        assert answer(client)


def test_a_broker_that_is_paused_takes_requests_and_answers_them_when_it_goes_on(server: SimulatedServer) -> None:
    with connected(server, 2) as client:
        server.inside(lambda world: world.running.pause(2))
        client.sendall(frame(API_VERSIONS, 0))
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(PATIENCE_S)
        server.inside(lambda world: world.running.go_on(2))
        assert answer(client)


def test_a_node_does_not_reach_another_over_a_severed_link(server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.sever(CONTROLLER_ID, 2))
    name = connections.node_client_id(CONTROLLER_ID).encode()
    with connected(server, 2) as node, connected(server, 2) as client:
        node.sendall(frame(API_VERSIONS, 0, client=name))
        client.sendall(frame(API_VERSIONS, 0))
        assert answer(client)  # only the nodes' own link is severed
        node.settimeout(0.2)
        with pytest.raises(TimeoutError):
            node.recv(1)
    server.inside(lambda world: world.running.heal())
    with connected(server, 2) as node:
        node.sendall(frame(API_VERSIONS, 0, client=name))
        assert answer(node)


@pytest.mark.parametrize("text", ["kelr-simulated-node-", "kelr-simulated-node-x", "kelr/1.0", "", "7"])
def test_other_clients_are_no_nodes(text: str) -> None:
    assert connections.asking_node(text) is None
    assert connections.asking_node(connections.node_client_id(7)) == 7


# Answers that come later.


class Waiting:
    """A handler of DescribeCluster that answers when the world has this broker down, or a minute has passed."""

    def __init__(self, real: Callable[[Call], Answer]) -> None:
        self._real = real
        self.asked = threading.Event()
        self.ended = ""

    def handle(self, call: Call) -> Answer:
        running = call.world.running

        def poll() -> Any:
            self.asked.set()
            return None if running.runs(3) else self.end("poll", call)

        return Later(running.now_ms + 60_000, poll, lambda: self.end("expired", call))

    def end(self, how: str, call: Call) -> Any:
        self.ended = how
        return self._real(call)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    monkeypatch.setattr(servers, "_LOOK_AGAIN_S", 3600.0)
    made: list[Waiting] = []

    def slow(api: Any) -> Any:
        made.append(Waiting(api.handle))
        return replace(api, handle=made[0].handle)

    with_apis(monkeypatch, DESCRIBE_CLUSTER, slow)
    apis_of_tests(SimulatedSpec())
    return made[0]


def test_who_waits_is_told_at_once_when_something_changes(waiting: Waiting) -> None:
    with SimulatedServer() as server, asking(server) as answers:
        assert waiting.asked.wait(PATIENCE_S)
        server.inside(lambda world: world.running.kill(3))
        assert answers()
        assert waiting.ended == "poll"


def test_who_waits_is_told_when_another_request_changes_something(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kills(api: Any) -> Any:
        def handle(call: Call) -> Answer:
            call.world.running.kill(3)
            return api.handle(call)

        return replace(api, handle=handle)

    with_apis(monkeypatch, API_VERSIONS, kills)
    with SimulatedServer() as server, asking(server) as answers, connected(server, 2) as other:
        assert waiting.asked.wait(PATIENCE_S)
        other.sendall(frame(API_VERSIONS, 0))
        assert answers()
        assert waiting.ended == "poll"


def test_a_virtual_clock_ends_a_wait_when_it_is_turned_and_not_before(waiting: Waiting) -> None:
    with SimulatedServer(clock=VirtualClock()) as server, asking(server) as answers:
        assert waiting.asked.wait(PATIENCE_S)
        server.advance(59_999)
        assert waiting.ended == ""
        server.advance(1)
        assert answers()
        assert waiting.ended == "expired"


def test_the_end_of_the_server_does_not_wait_for_who_waits(waiting: Waiting) -> None:
    with SimulatedServer(clock=VirtualClock()) as server:
        client = connected(server)
        client.sendall(frame(DESCRIBE_CLUSTER, 0, body=b"\x00\x00\x00"))
        assert waiting.asked.wait(PATIENCE_S)
    with client:
        assert ended(client)
    assert waiting.ended == ""


def test_the_machines_clock_is_not_turned(shared: SimulatedServer) -> None:
    with pytest.raises(LabError, match="clock is the machine's"):
        shared.advance(1)


def test_a_clock_is_not_turned_back() -> None:
    with SimulatedServer(clock=VirtualClock()) as server, pytest.raises(ValueError, match="turned back by 5 ms"):
        server.advance(-5)


def test_time_passes_by_itself(server: SimulatedServer) -> None:
    # A session is 3 s; nothing but the clock tells the controller.
    began = time.monotonic()
    server.inside(lambda world: world.running.kill(3))
    wait_until(lambda: wire.fenced_brokers(server.ports[1])[3])
    assert 2.5 < time.monotonic() - began < 10


def test_nothing_to_do_is_nothing_done(server: SimulatedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    server.perform(lambda there: monkeypatch.setattr(there, "time_passes", lambda: looks.append(1)))
    server.perform(lambda _there: None)
    looks.clear()
    time.sleep(0.4)
    assert looks == []


def test_a_handler_that_breaks_is_an_error_for_the_client_and_for_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_call: Call) -> Answer:
        raise ZeroDivisionError("of the handler")

    with_apis(monkeypatch, DESCRIBE_CLUSTER, lambda api: replace(api, handle=broken))
    server = SimulatedServer()
    server.start()
    response = wire.ask(server.ports[1], DescribeClusterRequest(version=2))
    assert (response.error_code, response.brokers) == (-1, [])
    with pytest.raises(ZeroDivisionError, match="of the handler"):
        server.__exit__(None, None, None)


def test_two_servers_do_not_know_each_other(shared: SimulatedServer, server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.kill(1))
    assert is_well(shared)
    assert set(shared.ports.values()).isdisjoint(server.ports.values())


def test_a_port_that_is_taken_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with SimulatedServer() as first:
        monkeypatch.setattr("kelr.lab.simulated.in_thread.free_ports", lambda _nodes: first.ports)
        with pytest.raises(LabError, match="a port of the simulated cluster is taken"):
            SimulatedServer().start()
        assert is_well(first)


def test_api_versions_is_what_the_table_says(shared: SimulatedServer) -> None:
    asked = ApiVersionsRequest(version=4, client_software_name="kelr", client_software_version="1")
    response = wire.ask(shared.ports[1], asked)
    told = {one.api_key: (one.min_version, one.max_version) for one in response.api_keys}
    assert told == shared.perform(lambda there: {key: api.versions for key, api in there.apis_of(1).items()})


# Tools.

_apis: dict[int, Callable[[Any], Any]] = {}


def apis_of_tests(spec: SimulatedSpec) -> Apis:
    return {key: _apis[key](api) if key in _apis else api for key, api in apis_of(spec).items()}


@pytest.fixture(autouse=True)
def _real_apis() -> Iterator[None]:
    yield
    _apis.clear()


def with_apis(monkeypatch: pytest.MonkeyPatch, key: int, change: Callable[[Any], Any]) -> None:
    """The nodes of servers that are made from now on speak one request otherwise."""
    kept: list[Any] = []

    def once(api: Any) -> Any:
        if not kept:
            kept.append(change(api))
        return kept[0]

    _apis[key] = once
    monkeypatch.setattr("kelr.lab.simulated.in_thread.apis_of", apis_of_tests)


class asking:  # noqa: N801 - read as a word
    """Sends DescribeCluster in a thread; the answer is asked for by calling what it gives."""

    def __init__(self, server: SimulatedServer) -> None:
        self._client = connected(server)

    def __enter__(self) -> Callable[[], bytes]:
        self._client.sendall(request_frame(DescribeClusterRequest(), 2, correlation=1, client_id="tests"))
        return lambda: answer(self._client)

    def __exit__(self, *_error: object) -> None:
        self._client.close()


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def connections_of(server: SimulatedServer, node: int) -> int:
    return server.perform(lambda there: there.connections(node))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
