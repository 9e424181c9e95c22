"""Ports that are no Kafka broker, or a broken one: always a clear error, and always within the timeout."""

from __future__ import annotations

import itertools
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kelr.apart import Apart
from kelr.errors import AuthenticationError, ConnectError
from kelr.sources.connection import ConnectionSettings
from kelr.sources.ground import MACHINE, Ground
from kelr.sources.jaas import Credentials
from kelr.sources.live import LiveSource, diagnose, names
from kelr.sources.live.client import Client
from kelr.sources.live.diagnose import PortSpeaks, Probe, probe_port
from kelr.sources.live.names import look_up_all
from kelr.sources.live.requests import api_versions
from kelr.sources.live.transport import Failure, FailureKind, NodeAddress, Transport
from kelr.sources.tls import TlsFiles

Behaviour = Callable[[socket.socket], None]
Connect = Callable[[ConnectionSettings], Transport]
TIMEOUT_S = 1.2
"""Where silence is what is tested."""
PATIENCE_S = 30.0
"""Where the other side answers, or hangs up: a thread that is late is none that is silent."""
LIBRARY_S = 10.0
"""The client library's shortest wait, which never shows: nothing here takes so long, on a busy machine neither."""
ATTEMPTS = 20
"""So often something is tried that has to happen within `TIMEOUT_S`, and may not on a busy machine."""


@pytest.fixture(autouse=True)
def patient_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe may take all the time that the settings leave it."""
    monkeypatch.setattr(diagnose, "_MAX_PROBE_S", PATIENCE_S)


@contextmanager
def _server(behave: Behaviour, *, port: int = 0) -> Iterator[int]:
    """A port of this machine that treats every connection so; gives its number, which is a free one unless told."""
    listener = socket.create_server(("127.0.0.1", port))
    held: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            held.append(connection)
            threading.Thread(target=handle, args=(connection,), daemon=True).start()

    def handle(connection: socket.socket) -> None:
        with suppress(OSError, ssl.SSLError):
            behave(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in held:
            connection.close()
        thread.join(5)


def _request(connection: socket.socket) -> tuple[int, int, int]:
    """(API key, version, correlation id) of the next request."""
    size = struct.unpack(">i", _exactly(connection, 4))[0]
    key, version, correlation = struct.unpack(">hhi", _exactly(connection, size)[:8])
    return key, version, correlation


def _exactly(connection: socket.socket, size: int) -> bytes:
    held = b""
    while len(held) < size:
        piece = connection.recv(size - len(held))
        if not piece:
            raise ConnectionError
        held += piece
    return held


def _frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _api_versions(correlation: int, version: int, keys: dict[int, int]) -> bytes:
    """An ApiVersions answer, v0 or v3 and newer."""
    if version < 3:
        listed = b"".join(struct.pack(">hhh", key, 0, newest) for key, newest in keys.items())
        return _frame(struct.pack(">ihi", correlation, 0, len(keys)) + listed)
    listed = b"".join(struct.pack(">hhhB", key, 0, newest, 0) for key, newest in keys.items())
    return _frame(struct.pack(">ihB", correlation, 0, len(keys) + 1) + listed + struct.pack(">iB", 0, 0))


def silent(connection: socket.socket) -> None:
    while connection.recv(4096):
        pass


def closes(connection: socket.socket) -> None:
    connection.close()


def closes_after_the_request(connection: socket.socket) -> None:
    connection.recv(1)
    connection.close()


def resets(connection: socket.socket) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def http(connection: socket.socket) -> None:
    _request(connection)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    connection.close()


def garbage(connection: socket.socket) -> None:
    connection.recv(1)
    connection.sendall(bytes(range(255, 0, -1)) * 40)
    connection.close()


def garbage_in_a_frame(connection: socket.socket) -> None:
    while True:
        _, _, correlation = _request(connection)
        connection.sendall(_frame(struct.pack(">i", correlation) + b"\xff" * 300))


def half_an_answer(connection: socket.socket) -> None:
    _, version, correlation = _request(connection)
    connection.sendall(_api_versions(correlation, version, {18: 3, 3: 9})[:-5])
    silent(connection)


def a_wrong_correlation_id(connection: socket.socket) -> None:
    _, version, correlation = _request(connection)
    connection.sendall(_api_versions(correlation + 5, version, {18: 3, 3: 9}))
    silent(connection)


def greets_then_falls_silent(connection: socket.socket) -> None:
    for _ in range(2):
        _, version, correlation = _request(connection)
        connection.sendall(_api_versions(correlation, version, {18: 3, 3: 9, 60: 1}))
    silent(connection)


def _connect(settings: ConnectionSettings, connect: Connect = Client) -> tuple[ConnectError, float]:
    started = time.monotonic()
    with LiveSource(settings, connect=connect) as source, pytest.raises(ConnectError) as caught:
        source.cluster()
    return caught.value, time.monotonic() - started


def _settings(
    *ports: int, protocol: str = "PLAINTEXT", timeout_s: float = PATIENCE_S, **more: object
) -> ConnectionSettings:
    servers = tuple(("127.0.0.1", port) for port in ports)
    return ConnectionSettings(servers, timeout_s=timeout_s, security_protocol=protocol, **more)  # type: ignore[arg-type]


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port on which nobody listens, and that nobody else gets: `_server` may begin to."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("connect", [Client])
@pytest.mark.parametrize(
    ("behave", "message"),
    [
        (closes, "does not speak Kafka: .*it closed the connection"),
        (closes_after_the_request, "does not speak Kafka: .*it closed the connection"),
        (resets, "does not speak Kafka"),
        (http, r"is not a Kafka broker: it speaks HTTP \(HTTP/1\.1 400 Bad Request\)"),
        (garbage, "does not speak Kafka: .*it answered"),
        (garbage_in_a_frame, "127.0.0.1"),
    ],
)
def test_what_is_behind_the_port_is_said_at_once(behave: Behaviour, message: str, connect: Connect) -> None:
    with _server(behave) as port:
        error, took_s = _connect(_settings(port), connect)
    assert error.next_step
    assert re.search(message, str(error)), str(error)
    assert took_s < LIBRARY_S


@pytest.mark.parametrize("connect", [Client])
@pytest.mark.parametrize(
    ("behave", "message"),
    [
        (silent, r"accepts the connection but did not answer within 1\.2 s"),
        (half_an_answer, "127.0.0.1"),
        (a_wrong_correlation_id, "127.0.0.1"),
    ],
)
def test_silence_is_said_in_time(behave: Behaviour, message: str, connect: Connect) -> None:
    with _server(behave) as port:
        error, took_s = _connect(_settings(port, timeout_s=TIMEOUT_S), connect)
    assert error.next_step
    assert re.search(message, str(error)), str(error)
    assert took_s < LIBRARY_S


@pytest.mark.parametrize("connect", [Client])
def test_silence_after_a_greeting_is_said_in_time(connect: Connect) -> None:
    with _server(greets_then_falls_silent) as port:
        for _attempt in range(ATTEMPTS):
            error, took_s = _connect(_settings(port, timeout_s=TIMEOUT_S), connect)
            assert error.next_step
            assert took_s < LIBRARY_S
            if "did not answer within" not in str(error):
                break  # it was greeted in time
    assert "no broker answered any more" in str(error)


@pytest.mark.parametrize("size", [1, 7])
def test_a_port_that_drips_is_probed_in_time(size: int) -> None:
    """Each piece comes in time, and the whole never does."""

    def drips(connection: socket.socket) -> None:
        for _ in range(200):
            connection.sendall(bytes(size))
            time.sleep(0.25 / (1 if size == 1 else 2))

    with _server(drips) as port:
        for _attempt in range(ATTEMPTS):
            began = time.monotonic()
            found = probe_port(NodeAddress("127.0.0.1", port), MACHINE, timeout_s=0.6)
            assert time.monotonic() - began < LIBRARY_S
            if found.speaks is not PortSpeaks.SILENCE:
                break  # the first drop came in time
    assert found.speaks is PortSpeaks.OTHER


class Fast(Ground):
    """A second later with every look at the clock."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def steady_s(self) -> float:
        return next(self._seconds)


def test_a_probe_whose_time_is_over_says_of_nobody_that_he_hung_up() -> None:
    with _server(silent) as port:
        found = probe_port(NodeAddress("127.0.0.1", port), Fast(), timeout_s=4.0)
    assert found == Probe(PortSpeaks.SILENCE)


def test_an_answer_that_makes_no_sense_is_no_silence_where_the_probe_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnose, "_MAX_PROBE_S", 0.2)
    behaviours = iter([http])

    def once(connection: socket.socket) -> None:
        next(behaviours, silent)(connection)

    with _server(once) as port:
        error, _ = _connect(_settings(port))
    assert "does not speak Kafka: an HTTP server answered" in str(error)
    assert "did not answer" not in str(error)
    assert "closed" not in str(error)


def test_nobody_listens(dead_port: int) -> None:
    error, took_s = _connect(_settings(dead_port))
    assert "refused the connection" in str(error)
    assert took_s < LIBRARY_S


def test_a_dead_node_is_not_waited_for_longer_each_time(dead_port: int) -> None:
    with closing(Client(_settings(dead_port))) as transport:
        (node,) = transport.bootstrap_nodes()
        transport.resolve(transport.bootstrap_nodes().items(), timeout_s=1)
        started = time.monotonic()
        answers = [transport.exchange(node, api_versions()) for _ in range(20)]
        took_s = time.monotonic() - started
    assert answers == 20 * [Failure(FailureKind.UNREACHABLE, "connection refused")]
    assert took_s < LIBRARY_S


def test_a_node_that_has_come_back_answers_the_next_question(dead_port: int) -> None:
    with closing(Client(_settings(dead_port))) as transport:
        (node,) = transport.bootstrap_nodes()
        transport.resolve(transport.bootstrap_nodes().items(), timeout_s=1)
        for _ in range(12):
            assert isinstance(transport.exchange(node, api_versions()), Failure)
        started = time.monotonic()
        with _server(greets_then_falls_silent, port=dead_port):
            answer = transport.exchange(node, api_versions())
        took_s = time.monotonic() - started
    assert not isinstance(answer, Failure), answer
    assert took_s < LIBRARY_S


def test_the_most_telling_of_several_failures_is_reported(dead_port: int) -> None:
    with _server(http) as port:
        error, took_s = _connect(_settings(dead_port, port))
    assert "HTTP" in str(error)
    assert "none of the 1 other servers" in str(error)
    assert took_s < LIBRARY_S


def test_an_unknown_host() -> None:
    settings = ConnectionSettings((("no-such-host.invalid", 9092),), timeout_s=PATIENCE_S)
    error, took_s = _connect(settings)
    assert "unknown host no-such-host.invalid" in str(error)
    assert took_s < LIBRARY_S


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers when the looking up is over, however long that took on a machine that stood still meanwhile."""
    release, true = threading.Event(), socket.getaddrinfo
    waits_s = list[float]()

    def slow(host: Any, *arguments: Any, **more: Any) -> list[Any]:
        # Whoever else is in this process may look names up, such as a client that the garbage collector takes away.
        if not str(host).endswith(".example"):
            return true(host, *arguments, **more)
        release.wait()
        return []

    class Watched(Apart[None]):
        def result(self, timeout_s: float) -> None:
            waits_s.append(timeout_s)
            super().result(timeout_s)

    monkeypatch.setattr(names.socket, "getaddrinfo", slow)
    monkeypatch.setattr(names, "Apart", Watched)
    try:
        results = look_up_all({"a.example", "b.example"}, MACHINE, timeout_s=0.2)
    finally:
        release.set()
    assert {host: one.kind for host, one in results.items() if isinstance(one, Failure)} == {
        "a.example": FailureKind.TIMED_OUT,
        "b.example": FailureKind.TIMED_OUT,
    }
    # The time is for both together: the second one has what the first one left of it, which is nothing.
    first_s, second_s = waits_s
    assert 0 <= first_s < 0.21
    assert 0 <= second_s <= 0.01


def test_an_address_in_figures_waits_for_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_arguments: object, **_more: object) -> threading.Thread:
        raise AssertionError("nobody has to be asked for it")

    monkeypatch.setattr(names, "Apart", late)
    results = look_up_all({"127.0.0.1", "::1"}, MACHINE, timeout_s=0.0)
    assert {host: [info[4][0] for info in found] for host, found in results.items() if isinstance(found, list)} == {
        "127.0.0.1": ["127.0.0.1"],
        "::1": ["::1"],
    }


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificate and key of localhost and 127.0.0.1, self-signed, in one file."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True, timeout=60)
    both = directory / "both.pem"
    both.write_text(key.read_text() + certificate.read_text())
    return both


def _tls_server(pem: Path, behave: Behaviour) -> Behaviour:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            behave(secure)

    return serve


def test_a_tls_port_without_tls(pem: Path) -> None:
    with _server(_tls_server(pem, silent)) as port:
        error, took_s = _connect(_settings(port))
    assert "speaks TLS, and kelr was told security.protocol=PLAINTEXT" in str(error)
    assert "security.protocol=SSL" in str(error.next_step)
    assert took_s < LIBRARY_S


def test_a_certificate_that_nobody_vouches_for(pem: Path) -> None:
    with _server(_tls_server(pem, silent)) as port:
        error, took_s = _connect(_settings(port, protocol="SSL"))
    assert "no secure connection" in str(error)
    assert "certificate" in str(error).lower()
    assert took_s < LIBRARY_S


def test_tls_that_is_trusted_gets_as_far_as_the_silence_behind_it(pem: Path) -> None:
    with _server(_tls_server(pem, silent)) as port:
        error, took_s = _connect(_settings(port, protocol="SSL", timeout_s=TIMEOUT_S, tls=TlsFiles(ca_path=pem)))
    assert "accepts the connection but did not answer" in str(error)
    assert took_s < LIBRARY_S


def test_a_plaintext_broker_with_tls() -> None:
    def plaintext_kafka(connection: socket.socket) -> None:
        first = connection.recv(1, socket.MSG_PEEK)
        if first != b"\x00":
            return connection.close()  # Kafka takes a TLS hello for a request of 369 MB and hangs up
        _, version, correlation = _request(connection)
        return connection.sendall(_api_versions(correlation, version, {18: 3}))

    with _server(plaintext_kafka) as port:
        error, took_s = _connect(_settings(port, protocol="SSL"))
    assert "speaks Kafka without TLS" in str(error)
    assert "security.protocol=PLAINTEXT" in str(error.next_step)
    assert took_s < LIBRARY_S


def test_a_port_that_never_shakes_hands_is_not_waited_for() -> None:
    with _server(silent) as port:
        error, took_s = _connect(_settings(port, protocol="SSL", timeout_s=TIMEOUT_S))
    assert "accepts the connection but did not answer" in str(error)
    assert took_s < LIBRARY_S


def test_refused_credentials() -> None:
    def refuses(connection: socket.socket) -> None:
        _, version, correlation = _request(connection)
        connection.sendall(_api_versions(correlation, version, {17: 1, 18: 3, 36: 1}))
        _, _, correlation = _request(connection)
        name = b"PLAIN"
        connection.sendall(_frame(struct.pack(">ihih", correlation, 0, 1, len(name)) + name))
        _, _, correlation = _request(connection)
        words = b"Authentication failed: Invalid username or password"
        connection.sendall(
            _frame(struct.pack(">ihh", correlation, 58, len(words)) + words + struct.pack(">i", 0) + bytes(8))
        )
        connection.close()  # at once: the words must not get lost with the connection

    with _server(refuses) as port:
        settings = _settings(
            port, protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", credentials=Credentials("alice", "hush-hush")
        )
        error, took_s = _connect(settings)
    assert isinstance(error, AuthenticationError)
    assert "Invalid username or password" in str(error)
    assert "hush-hush" not in str(error)
    assert took_s < LIBRARY_S


def test_nothing_is_left_open(dead_port: int) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with _server(silent) as port:
        for _ in range(3):
            _connect(_settings(port, timeout_s=TIMEOUT_S))
    _connect(_settings(dead_port))
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_the_client_library_says_nothing_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    with _server(garbage_in_a_frame) as port:
        _connect(_settings(port))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
