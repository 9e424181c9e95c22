"""Logins over SASL, and how a broker is greeted: what is sent, what is believed, and what its answer comes to."""

from __future__ import annotations

import base64
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from kelr.errors import RefusedError
from kelr.protocol.codec import Message, answer_of
from kelr.protocol.frames import answer_head, read_request
from kelr.protocol.messages import ApiVersionsRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from kelr.sources.connection import ConnectionSettings
from kelr.sources.jaas import Credentials
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.client import Client
from kelr.sources.live.requests import api_versions
from kelr.sources.live.transport import Failure, FailureKind, NodeAddress
from kelr.sources.security.sasl import LoginError, oauthbearer, plain, scram
from kelr.sources.security.tokens import Token, TokenHolder

PENCIL = Credentials("user", "pencil")
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_is_that_of_the_standard() -> None:
    """RFC 7677, section 3."""
    login = scram(PENCIL, "SCRAM-SHA-256", nonce=lambda: NONCE)
    assert next(login) == f"n,,n=user,r={NONCE}".encode()
    proof = login.send(FIRST.encode())
    assert proof.endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    with pytest.raises(StopIteration):
        login.send(FINAL)


def test_a_name_with_the_signs_of_scram_in_it() -> None:
    assert next(scram(Credentials("a=b,c", "x"), "SCRAM-SHA-512", nonce=lambda: "N")) == b"n,,n=a=3Db=2Cc,r=N"


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("r=other,s=W22Z,i=4096", "its nonce"),
        (f"r={NONCE},s=W22Z,i=4096", "its nonce"),
        (FIRST.replace("i=4096", "i=4095"), "4095 iterations"),
        (FIRST.replace("i=4096", "i=1000001"), "1000001 iterations"),
        (FIRST.replace("i=4096", "i=many"), "invalid literal"),
        ("nothing of it", "dictionary update"),
        ("", "dictionary update"),
    ],
)
def test_a_server_that_asks_for_a_weak_proof_gets_none(first: str, words: str) -> None:
    login = scram(PENCIL, "SCRAM-SHA-256", nonce=lambda: NONCE)
    next(login)
    with pytest.raises(ValueError, match=words):
        login.send(first.encode())


@pytest.mark.parametrize("final", [b"v=" + base64.b64encode(bytes(32)), b"e=other-error", b"\xff"])
def test_a_server_that_does_not_know_the_password_is_not_believed(final: bytes) -> None:
    login = scram(PENCIL, "SCRAM-SHA-256", nonce=lambda: NONCE)
    next(login)
    login.send(FIRST.encode())
    with pytest.raises(ValueError, match=r"signature|utf-8"):
        login.send(final)


def test_a_refused_token_is_answered_as_the_standard_has_it() -> None:
    login = oauthbearer(TokenHolder(lambda: Token("abc", 4e9, "x", {"pool": "y"})))
    assert next(login) == b"n,,\x01auth=Bearer abc\x01pool=y\x01\x01"
    assert login.send(b'{"status":"invalid_token"}') == b"\x01"
    with pytest.raises(LoginError):
        login.send(b"")


def test_plain_is_over_with_an_empty_answer() -> None:
    login = plain(PENCIL)
    assert next(login) == b"\0user\0pencil"
    with pytest.raises(StopIteration):
        login.send(b"")
    login = plain(PENCIL)
    next(login)
    with pytest.raises(LoginError, match="Failed to authenticate via SASL PLAIN"):
        login.send(b"what?")


# Over a connection.

REQUESTS: dict[int, type[Message]] = {
    one.API_KEY: one for one in (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
}
Answering = Callable[[Message, int], dict[str, object] | None]
"""The fields of the answer to a request of this connection; None hangs up."""


def _versions(_request: Message, _connection: int) -> dict[str, object]:
    keys = [{"api_key": one.API_KEY, "min_version": 0, "max_version": one.newest()} for one in REQUESTS.values()]
    return {"api_keys": keys}


@contextmanager
def broker(**handlers: Answering) -> Iterator[int]:
    """A port that answers by these handlers, by the names of requests."""
    told: dict[str, Answering] = {
        "ApiVersions": _versions,
        "SaslHandshake": lambda _request, _connection: {"mechanisms": ["PLAIN"]},
        "SaslAuthenticate": lambda _request, _connection: {},
        **handlers,
    }
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket, number: int) -> None:
        with closing(client), client.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(int.from_bytes(size, "big"))
                key, version, correlation = struct.unpack_from(">hhi", frame)
                kind = REQUESTS[key]
                made = told[kind.NAME.removesuffix("Request")](read_request(kind, frame, version), number)
                if made is None:
                    return
                body = answer_head(answer_of(kind), version, correlation) + answer_of(kind)(**made).encode(version)
                client.sendall(struct.pack(">i", len(body)) + body)

    def accept() -> None:
        number = 0
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            number += 1
            threading.Thread(target=serve, args=(client, number), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    with closing(listener):
        yield listener.getsockname()[1]


@contextmanager
def connected(port: int, mechanism: str = "PLAIN") -> Iterator[Client]:
    module = {"PLAIN": "plain.PlainLoginModule"}.get(mechanism, "scram.ScramLoginModule")
    overrides = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'org.apache.kafka.common.security.{module} required username="user" password="pencil";',
    }
    with closing(Client(ConnectionSettings.read(f"127.0.0.1:{port}", overrides=overrides))) as client:
        client.resolve(client.bootstrap_nodes().items(), timeout_s=1)
        yield client


def refused(detail: str) -> Failure:
    return Failure(FailureKind.AUTHENTICATION, detail)


@pytest.mark.parametrize(
    ("handlers", "expected"),
    [
        (
            {"SaslHandshake": lambda *_: {"error_code": 33, "mechanisms": ["GSSAPI"]}},
            refused("the listener does not offer this sasl.mechanism"),
        ),
        (
            {"SaslHandshake": lambda *_: {"mechanisms": ["GSSAPI", "SCRAM-SHA-512"]}},
            refused("the listener does not offer PLAIN, but GSSAPI, SCRAM-SHA-512"),
        ),
        (
            {"SaslHandshake": lambda *_: {"error_code": 34}},
            refused("the listener expects no SASL login, or another kind"),
        ),
        (
            {"SaslAuthenticate": lambda *_: {"error_code": 58, "error_message": "Authentication failed: no"}},
            refused("Authentication failed: no"),
        ),
        (
            {"SaslAuthenticate": lambda *_: {"error_code": 58, "error_message": None}},
            refused("SASL_AUTHENTICATION_FAILED"),
        ),
        (
            {"SaslAuthenticate": lambda *_: {"auth_bytes": b"more"}},
            refused("Failed to authenticate via SASL PLAIN"),
        ),
        ({"SaslAuthenticate": lambda *_: None}, Failure(FailureKind.UNREACHABLE, "connection closed")),
        ({"SaslHandshake": lambda *_: None}, Failure(FailureKind.UNREACHABLE, "connection closed")),
    ],
)
def test_what_a_broker_says_to_a_login(handlers: dict[str, Answering], expected: Failure) -> None:
    with broker(**handlers) as port, connected(port) as client:
        assert client.exchange("bootstrap-0", api_versions(), timeout_s=5) == expected


def test_a_broker_that_makes_no_sense_in_a_login_is_none() -> None:
    sense = {"SaslHandshake": lambda *_: {"mechanisms": ["SCRAM-SHA-256"]}}
    first = {"SaslAuthenticate": lambda *_: {"auth_bytes": b"r=a,s=,i=9"}}
    with broker(**sense, **first) as port, connected(port, "SCRAM-SHA-256") as client:
        answer = client.exchange("bootstrap-0", api_versions(), timeout_s=5)
    assert answer == Failure(FailureKind.GARBLED, "not an answer of a Kafka broker: its nonce is not ours and its own")


def test_a_login_that_nobody_answers_ends_in_time() -> None:
    def hangs(*_: object) -> dict[str, object]:
        time.sleep(10)
        return {}

    with broker(SaslAuthenticate=hangs) as port, connected(port) as client:
        began = time.monotonic()
        answer = client.exchange("bootstrap-0", api_versions(), timeout_s=0.5)
        assert time.monotonic() - began < 5
    assert answer == Failure(FailureKind.TIMED_OUT, "no answer in time")


def test_a_login_that_is_about_to_end_is_not_used_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker hangs up on whoever goes on after that (KIP-368)."""
    asked: list[int] = []

    def versions(request: Message, number: int) -> dict[str, object]:
        asked.append(number)
        return _versions(request, number)

    now = [1000.0]
    lasts = {"SaslAuthenticate": lambda *_: {"session_lifetime_ms": 10_000}}
    with broker(ApiVersions=versions, **lasts) as port, connected(port) as client:
        monkeypatch.setattr(client.ground, "steady_s", lambda: now[0])
        for later_s in (0, 8.4, 0.2, 1):
            now[0] += later_s
            assert not isinstance(client.exchange("bootstrap-0", api_versions(), timeout_s=5), Failure)
    assert asked == [1, 1, 1, 2, 2, 2], "each connection asks for versions once more than anybody else"


# Who is there (KIP-1242).


@contextmanager
def plaintext(port: int) -> Iterator[Client]:
    with closing(Client(ConnectionSettings.read(f"127.0.0.1:{port}"))) as client:
        client.resolve(client.bootstrap_nodes().items(), timeout_s=1)
        yield client


def _only(cluster_id: str, node: int, asked: list[tuple[int | None, str | None, int]]) -> Answering:
    def versions(request: Message, number: int) -> dict[str, object]:
        asked.append((request.version, request.cluster_id, request.node_id))
        wrong = (request.cluster_id, request.node_id) not in {(None, -1), (cluster_id, node)}
        return {**_versions(request, number), "error_code": 129 if wrong else 0}

    return versions


def test_a_broker_is_told_who_it_should_be_once_brokers_check_it() -> None:
    asked: list[tuple[int | None, str | None, int]] = []
    with broker(ApiVersions=_only("c", 7, asked)) as port, plaintext(port) as client:
        assert not isinstance(client.exchange("bootstrap-0", api_versions()), Failure)
        client.add_nodes({7: NodeAddress("127.0.0.1", port)}, cluster_id="c")
        assert not isinstance(client.exchange(7, api_versions()), Failure)
    assert asked == [(4, None, -1), (4, None, -1), (5, "c", 7), (4, None, -1)]


@pytest.mark.parametrize(("cluster_id", "node"), [("c", 8), ("other", 7)])
def test_another_broker_than_the_one_that_is_meant_is_not_asked(cluster_id: str, node: int) -> None:
    asked: list[tuple[int | None, str | None, int]] = []
    with broker(ApiVersions=_only("c", 7, asked)) as port, plaintext(port) as client:
        client.exchange("bootstrap-0", api_versions())
        client.add_nodes({node: NodeAddress("127.0.0.1", port)}, cluster_id=cluster_id)
        answer = client.exchange(node, api_versions())
        words = f"another broker is there: it is not broker {node} of cluster {cluster_id} (REBOOTSTRAP_REQUIRED)"
        assert answer == Failure(FailureKind.UNREACHABLE, words)
        with pytest.raises(RefusedError, match="where the brokers of this cluster were there are others") as raised:
            AnyBroker(client, [node], timeout_s=0.2).ask(api_versions)
    assert raised.value.code == "wrong-cluster"


def test_brokers_that_check_nothing_are_greeted_once() -> None:
    asked: list[int | None] = []

    def versions(request: Message, _number: int) -> dict[str, object]:
        asked.append(request.version)
        return {"api_keys": [{"api_key": 18, "min_version": 0, "max_version": 4}]}

    with broker(ApiVersions=versions) as port, plaintext(port) as client:
        client.exchange("bootstrap-0", api_versions())
        client.add_nodes({7: NodeAddress("127.0.0.1", port)}, cluster_id="c")
        client.exchange(7, api_versions())
    assert asked == [4, 4, 4, 4]
