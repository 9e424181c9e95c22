"""What goes wrong between kelr and an endpoint: each failure has its words, costs bounded time, and tells no secret."""

from __future__ import annotations

import base64
import gzip
import socket
import threading
import time

import httpx
import pytest
import respx

from kelr.metrics.endpoints import Access, Kind, NotHeardError, Question, address, ask, endpoint_of
from kelr.metrics.reading import read_all
from tests.hostile import dripping_body, dripping_headers, hostile
from tests.metrics.asking import AGENT, NOBODY, QUERY, TEXT, TLS, read, refused

LINE = b"kafka_controller_kafkacontroller_offlinepartitionscount 3\n"
SECRET = "hunter2-s3cr3t"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(401), "it does not let us in (HTTP 401 Unauthorized)"),
        (httpx.Response(403), "it does not let us in (HTTP 403 Forbidden)"),
        (httpx.Response(404), "it answers HTTP 404 Not Found"),
        (httpx.Response(500), "it answers HTTP 500 Internal Server Error"),
        (
            httpx.Response(302, headers={"location": f"https://u:{SECRET}@sso/login?token={SECRET}"}),
            "it redirects to https://sso/login; ask that address if it is the one",
        ),
        (httpx.Response(200, content=b""), "its answer is empty"),
        (
            httpx.Response(200, content=b"<html>Sign in</html>"),
            "it answers with a web page, not with metrics: a login page, or another path is meant",
        ),
        (
            httpx.Response(200, content=b'{"status":"UP"}'),
            "it answers with JSON, not with metrics: --jolokia or --prometheus may be meant",
        ),
        (
            httpx.Response(200, content=b"hello\n", headers={"content-type": "text/plain; charset=utf-8"}),
            "its answer holds no metrics (text/plain)",
        ),
    ],
)
@respx.mock
def test_answers_that_are_of_no_use(answer: httpx.Response, words: str) -> None:
    route = respx.get(TEXT).mock(return_value=answer)
    error = refused(Kind.TEXT)
    assert error.text == words
    assert route.call_count == 1


@respx.mock
def test_a_redirect_is_not_followed_with_credentials() -> None:
    respx.get(TEXT).mock(return_value=httpx.Response(307, headers={"location": "http://elsewhere/metrics"}))
    other = respx.get("http://elsewhere/metrics").mock(return_value=httpx.Response(200, content=LINE))
    refused(Kind.TEXT, Access(token=SECRET))
    assert not other.called


@pytest.mark.parametrize("status", [429, 503])
@respx.mock
def test_nothing_is_asked_twice(status: int) -> None:
    route = respx.get(TEXT).mock(return_value=httpx.Response(status, headers={"retry-after": "2"}))
    assert refused(Kind.TEXT).text.startswith(f"it answers HTTP {status} ")
    assert route.call_count == 1


@respx.mock
def test_connections_that_fail_in_words() -> None:
    broken = respx.get(TEXT).mock(side_effect=httpx.RemoteProtocolError("Server disconnected"))
    assert refused(Kind.TEXT).text == "the connection broke: Server disconnected; does it speak TLS?"
    assert broken.call_count == 1
    closed = respx.post(AGENT).mock(side_effect=httpx.ConnectError("[Errno 111] Connection refused"))
    assert refused(Kind.JOLOKIA).text == "cannot connect: Connection refused"
    assert closed.call_count == 1
    silent = respx.post(QUERY).mock(side_effect=httpx.ReadTimeout("timed out"))
    error = refused(Kind.SERVER)
    assert (error.text, silent.call_count) == ("no answer within 30 s", 1)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)",
            "TLS failed: certificate verify failed: certificate has expired",
        ),
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "TLS failed: the port does not speak TLS"),
    ],
)
@respx.mock
def test_tls_in_words(said: str, words: str) -> None:
    respx.get(TEXT).mock(side_effect=httpx.ConnectError(said))
    error = refused(Kind.TEXT)
    assert error.text.startswith(words)


@respx.mock
def test_a_compressed_answer_is_refused_unread() -> None:
    bomb = gzip.compress(b"x" * 10_000_000)
    respx.get(TEXT).mock(return_value=httpx.Response(200, content=bomb, headers={"content-encoding": "gzip"}))
    assert refused(Kind.TEXT).text == "it compresses its answer although it was asked not to"


@respx.mock
def test_who_asks() -> None:
    route = respx.get(TEXT).mock(return_value=httpx.Response(200, content=LINE))
    read(Kind.TEXT, Access(token="t0ken"))
    read(Kind.TEXT, Access(user="ann", password="b"))
    read(Kind.TEXT)
    seen = [call.request.headers.get("authorization") for call in route.calls]
    assert seen == ["Bearer t0ken", f"Basic {base64.b64encode(b'ann:b').decode()}", None]
    assert {call.request.headers["accept-encoding"] for call in route.calls} == {"identity"}


@respx.mock
def test_netrc_and_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    netrc = tmp_path / "netrc"  # type: ignore[operator]
    netrc.write_text(f"machine k login me password {SECRET}\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    route = respx.get(TEXT).mock(return_value=httpx.Response(200, content=LINE))
    read(Kind.TEXT)
    assert "authorization" not in route.calls.last.request.headers


def test_secrets_are_in_no_repr() -> None:
    shown = repr(Access(user="ann", password=SECRET, token=SECRET)) + repr(
        endpoint_of(Kind.TEXT, f"http://k/?t={SECRET}")
    )
    assert SECRET not in shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"https://u:{SECRET}@k:1/p?x={SECRET}#{SECRET}", "https://k:1/p"),
        ("http://[::1]:9404/metrics", "http://[::1]:9404/metrics"),
        ("http://k:port/", ""),
    ],
)
def test_addresses_are_shown_without_secrets(url: str, shown: str) -> None:
    assert address(url) == shown


# Against a server that means harm.


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(LINE * 10_000)


def test_an_endless_answer_costs_bounded_memory() -> None:
    with hostile(endless) as url, pytest.raises(NotHeardError) as raised:
        ask(Question("GET", url, {}), NOBODY, TLS, timeout_s=20, most_bytes=5_000_000)
    assert raised.value.text == "its answer is longer than 5,000,000 bytes"


def test_an_answer_that_never_ends_costs_bounded_time() -> None:
    began = time.monotonic()
    with hostile(dripping_body) as url, pytest.raises(NotHeardError) as raised:
        ask(Question("GET", url, {}), NOBODY, TLS, timeout_s=0.5)
    assert raised.value.text == "its answer was not whole within 0.5 s"
    assert time.monotonic() - began < 15


def test_headers_that_never_end_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.metrics.reading._GRACE_S", 0.5)
    with hostile(dripping_headers) as slow, hostile(lambda one: one.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + LINE)) as good:
        for _attempt in range(20):  # the good one's thread may not be given its turn within the timeout
            began = time.monotonic()
            heard = read_all([endpoint_of(Kind.TEXT, slow), endpoint_of(Kind.TEXT, good)], NOBODY, timeout_s=1.5)
            assert time.monotonic() - began < 15
            assert heard[0].asked.problem == "no answer within 1.5 s"
            if heard[1].asked.heard:
                break
    assert [one.asked.heard for one in heard] == [False, True]


def test_no_more_are_asked_at_once_than_may_be() -> None:
    lock, now, most = threading.Lock(), [0], [0]
    two = threading.Event()

    def behave(connection: socket.socket) -> None:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
            if now[0] == 2:
                two.set()
        assert two.wait(20), "one waits for the other"
        time.sleep(0.05)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + LINE)
        with lock:
            now[0] -= 1

    with hostile(behave) as url:
        heard = read_all([endpoint_of(Kind.TEXT, url)] * 7, NOBODY, timeout_s=30, at_once=2)
    assert [one.asked.heard for one in heard] == [True] * 7
    assert most == [2]


def test_a_defect_in_reading_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("kelr.metrics.reading.read_endpoint", broken)
    [heard] = read_all([endpoint_of(Kind.TEXT, "http://127.0.0.1:9/")], NOBODY, timeout_s=1)
    assert heard.asked.problem == "its answer cannot be read (ZeroDivisionError)"
