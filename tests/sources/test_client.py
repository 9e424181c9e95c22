"""The client: requests as kafka-python writes them, pages asked for ahead, and connections that break."""

from __future__ import annotations

import errno
import select as select_module
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from kelr.controller import events
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.model import TopicPartition, select
from kelr.sources.connection import ConnectionSettings, address_text
from kelr.sources.live import LiveSource, client, requests
from kelr.sources.live import connection as connections
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.live.client import Client
from kelr.sources.live.page_bytes import PageBytes, read_page
from kelr.sources.live.transport import Failure, FailureKind, NodeAddress, Request
from tests import kafka_python

SPEC = SimulatedSpec(topics=7, partitions=5, brokers=4)

QUESTIONS = (
    requests.api_versions(),
    requests.describe_cluster(fenced=True),
    requests.describe_cluster(fenced=False),
    requests.describe_quorum(),
    requests.list_reassignments(timeout_s=2),
    requests.describe_configs(["a", "ü" * 80], ("min.insync.replicas",), dict),
    requests.metadata(None),
    requests.metadata([]),
    requests.metadata(["a", "b"]),
    requests.describe_topic_partitions([], None, 2000),
    requests.describe_topic_partitions(["a", "b"], TopicPartition("b", 7), 3),
)


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatedServer]:
    with SimulatedServer(SPEC) as running:
        yield running


def _source(server: SimulatedServer, connect: Any) -> LiveSource:
    return LiveSource(ConnectionSettings.read(server.bootstrap_servers, timeout_s=10), connect=connect)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_requests_are_the_bytes_that_kafka_python_sends(question: Request) -> None:
    for version in range(question.min_version or 0, question.newest + 1):
        if version <= kafka_python.classes()[f"{question.name}Request"].max_version:
            assert question.message.encode(version) == kafka_python.encoded(question, version), version


def test_bootstrap_servers_have_names_in_their_order() -> None:
    servers = [("127.0.0.1", port) for port in range(9001, 9009)] + [("::1", 9001)]
    transport = Client(ConnectionSettings.read(",".join(address_text(*server) for server in servers)))
    expected = {f"bootstrap-{number}": NodeAddress(*server) for number, server in enumerate(servers)}
    assert transport.bootstrap_nodes() == expected


def test_a_server_that_hangs_is_not_asked_to_change_anything_where_another_answered(server: SimulatedServer) -> None:
    with ExitStack() as stack:
        silent = []
        for _ in range(5):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            silent.append(f"127.0.0.1:{listener.getsockname()[1]}")
        servers = ",".join([*silent, f"127.0.0.1:{server.ports[2]}"])
        source = stack.enter_context(LiveSource(ConnectionSettings.read(servers, timeout_s=60)))
        permissions = LiveAdminClient.of(source).permissions(())
        assert permissions.cluster is not None
        orders = {TopicPartition("topic-000000", 0): (1, 2, 3)}
        began = time.monotonic()
        assert LiveAdminClient.of(source).reorder(orders) == dict.fromkeys(orders, "NONE")
        assert time.monotonic() - began < 12, "it was sent to the one that answers"


def test_a_page_that_was_asked_for_ahead_is_not_asked_for_again(server: SimulatedServer) -> None:
    settings = ConnectionSettings.read(server.bootstrap_servers)
    transport = Client(settings)
    transport.resolve(transport.bootstrap_nodes().items(), timeout_s=2)
    first = requests.describe_topic_partitions([], None, 4)
    page = transport.exchange("bootstrap-0", first)
    assert isinstance(page, PageBytes)
    connection = transport._connections["bootstrap-0"]
    assert page.next_cursor is not None
    cursor = TopicPartition(page.next_cursor.topic_name, page.next_cursor.partition_index)
    transport.send_ahead("bootstrap-0", requests.describe_topic_partitions([], cursor, 4))
    sent = connection._last
    other = transport.exchange("bootstrap-0", requests.describe_cluster(fenced=True))
    assert len(other.brokers) == 4, "answers that come before are kept"
    following = transport.exchange("bootstrap-0", requests.describe_topic_partitions([], cursor, 4))
    assert isinstance(following, PageBytes)
    assert connection._last == sent + 1, "one request more: the other one"
    assert following.topics[0].name == cursor.topic
    assert not connection._waiting
    transport.send_ahead("bootstrap-0", requests.describe_topic_partitions([], cursor, 4))
    again = transport.exchange("bootstrap-0", first)
    assert isinstance(again, PageBytes)
    assert again.data == page.data, "what nobody wanted any more is passed over"
    assert not connection._waiting
    transport.close()


def test_the_next_page_is_asked_for_before_the_one_that_came_is_read(server: SimulatedServer) -> None:
    transport = Client(ConnectionSettings.read(server.bootstrap_servers))
    transport.resolve(transport.bootstrap_nodes().items(), timeout_s=2)
    transport.exchange("bootstrap-0", requests.describe_cluster(fenced=True))
    connection = transport._connections["bootstrap-0"]
    ahead: list[Any] = []

    def read(body: bytes, version: int) -> PageBytes:
        ahead.extend(one.request.fields["cursor"] for one in connection._waiting)
        return read_page(body, version)

    first = requests.describe_topic_partitions([], None, 4, goes_on=True)
    page = transport.exchange("bootstrap-0", replace(first, read=read))
    assert isinstance(page, PageBytes)
    assert page.next_cursor is not None
    cursor = TopicPartition(page.next_cursor.topic_name, page.next_cursor.partition_index)
    assert ahead == [{"topic_name": cursor.topic, "partition_index": cursor.partition}]
    sent = connection._last
    transport.send_ahead("bootstrap-0", requests.describe_topic_partitions([], cursor, 4, goes_on=True))
    transport.exchange("bootstrap-0", requests.describe_topic_partitions([], cursor, 4))
    assert connection._last == sent, "it is not sent once more"
    transport.close()


def test_all_pages_are_asked_for_once(server: SimulatedServer) -> None:
    with _source(server, Client) as source:
        source.cluster()
        transport = source.connection()[0]
        assert isinstance(transport, Client)
        (connection,) = transport._connections.values()
        sent = connection._last
        pages = list(source.pages(select([]), page_size=6))
        assert connection._last - sent == len(pages) == 6
        assert not connection._waiting


def test_whoever_takes_his_time_between_two_pages_is_told_how_things_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """An explanation reads the logs of one page before it asks for the next: minutes, where brokers are silent."""
    at, order = TopicPartition("topic-000001", 3), (3, 1, 2)
    with SimulatedServer(SPEC) as running, _source(running, Client) as source:
        stream = source.pages(select([]), page_size=6)
        read = list(next(stream).partitions)
        transport = source.connection()[0]
        assert isinstance(transport, Client)
        (connection,) = transport._connections.values()
        assert select_module.select([connection._socket], [], [], 10)[0], "the next page is there"
        monkeypatch.setattr(connections, "FRESH_S", 0.0)
        running.inside(lambda world: world.running.ask(events.Reassigned(world.own(at), order)))
        read += [state for page in stream for state in page.partitions]
    assert len({state.address for state in read}) == len(read) == 35
    (state,) = (state for state in read if state.address == at)
    assert state.replicas == order


def test_a_broker_that_dies_between_pages_is_replaced_by_another() -> None:
    with SimulatedServer(SPEC) as running, _source(running, Client) as source:
        stream = source.pages(select([]), page_size=6)
        read = list(next(stream).partitions)
        favourite = source._reached()[1].favourite
        running.inside(lambda world: world.running.kill(1 + int(str(favourite).removeprefix("bootstrap-"))))
        read += [state for page in stream for state in page.partitions]
    assert len({state.address for state in read}) == len(read) == 35


def test_a_request_that_a_broker_does_not_know_is_unsupported(server: SimulatedServer) -> None:
    transport = Client(ConnectionSettings.read(server.bootstrap_servers))
    transport.resolve(transport.bootstrap_nodes().items(), timeout_s=2)
    answer = transport.exchange("bootstrap-0", Request("DescribeCluster", {}, min_version=77))
    assert answer == Failure(FailureKind.UNSUPPORTED, "Kafka broker does not support DescribeCluster")
    transport.close()


def test_describe_loads_no_client_library(server: SimulatedServer) -> None:
    # Typer checks what it parsed with pydantic.
    script = (
        "import sys; from kelr.commands.main import main; "
        f"code = main(['describe', '--summary', '-b', {server.bootstrap_servers!r}]); "
        "print(code, sorted({'kafka', 'confluent_kafka', 'rich.table'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def _hosts(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[Any, ...]) -> None:
    """Makes ``both.test`` a name of these (family, host)."""
    true = socket.getaddrinfo

    def getaddrinfo(host: str, *more: Any, **options: Any) -> Any:
        if host != "both.test":
            return true(host, *more, **options)
        return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (where, 0)) for family, where in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def test_a_name_with_an_ipv6_address_on_a_machine_without_ipv6(
    server: SimulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hosts(monkeypatch, (socket.AF_INET6, "::1"), (socket.AF_INET, "127.0.0.1"))

    class WithoutIpv6(socket.socket):
        def __init__(self, family: int = -1, *more: Any, **options: Any) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
            super().__init__(family, *more, **options)

    monkeypatch.setattr(socket, "socket", WithoutIpv6)
    servers = f"both.test:{server.ports[1]},both.test:{server.ports[2]}"
    with LiveSource(ConnectionSettings.read(servers, timeout_s=5)) as source:
        assert len(source.cluster().brokers) == SPEC.brokers


def test_an_address_from_which_nothing_comes_back_leaves_time_for_the_next(
    server: SimulatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hosts(monkeypatch, (socket.AF_INET, "127.0.0.2"), (socket.AF_INET, "127.0.0.1"))
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_S", 2.0)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.2", server.ports[1]))
        listener.listen(0)
        for _ in range(4):  # its queue is full: further connections are left without an answer
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", server.ports[1]))
        settings = ConnectionSettings.read(f"both.test:{server.ports[1]}", timeout_s=60)
        with LiveSource(settings) as source:
            assert len(source.cluster().brokers) == SPEC.brokers


def test_what_breaks_in_one_attempt_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = Client(ConnectionSettings.read("127.0.0.1:1,127.0.0.1:2"))

    def breaks(*_: Any) -> Any:
        raise RuntimeError("what is this?")

    monkeypatch.setattr(transport, "_opened", breaks)
    heard = transport.first_answer(list(transport.bootstrap_nodes()), requests.api_versions, timeout_s=5)
    garbled = Failure(FailureKind.GARBLED, "not an answer of a Kafka broker: what is this?")
    assert heard == {"bootstrap-0": garbled, "bootstrap-1": garbled}
    transport.close()
