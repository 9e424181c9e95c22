"""What goes wrong between kelr and an endpoint: each failure has its words, costs bounded time, and tells no secret."""

from __future__ import annotations

import base64
import gzip
import socket
import threading
import time
from types import SimpleNamespace

import httpx
import pytest
import respx

from kelr.metrics import http
from kelr.metrics.access import Access
from kelr.metrics.asked import Kind, endpoint_of
from kelr.metrics.http import NotHeardError, Question, Trouble, address, ask
from kelr.metrics.reading import read_all
from tests.hostile import dripping_body, dripping_headers, hostile
from tests.metrics.asking import AGENT, NOBODY, QUERY, TEXT, TLS, read, refused

LINE = b"kafka_controller_kafkacontroller_offlinepartitionscount 3\n"
SECRET = "hunter2-s3cr3t"


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between tries, which take no time."""
    slept: list[float] = []
    # Of that module alone: another thread of this process may sleep, too.
    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=slept.append, monotonic=time.monotonic))
    return slept


@pytest.mark.parametrize(
    ("answer", "trouble", "words"),
    [
        (httpx.Response(401), Trouble.REFUSED, "it does not let us in (HTTP 401 Unauthorized)"),
        (httpx.Response(403), Trouble.REFUSED, "it does not let us in (HTTP 403 Forbidden)"),
        (httpx.Response(404), Trouble.STATUS, "it answers HTTP 404 Not Found"),
        (httpx.Response(500), Trouble.STATUS, "it answers HTTP 500 Internal Server Error"),
        (
            httpx.Response(302, headers={"location": f"https://u:{SECRET}@sso/login?token={SECRET}"}),
            Trouble.STATUS,
            "it redirects to https://sso/login; ask that address if it is the one",
        ),
        (httpx.Response(200, content=b""), Trouble.NOT_UNDERSTOOD, "its answer is empty"),
        (
            httpx.Response(200, content=b"<html>Sign in</html>"),
            Trouble.NOT_UNDERSTOOD,
            "it answers with a web page, not with metrics: a login page, or another path is meant",
        ),
        (
            httpx.Response(200, content=b'{"status":"UP"}'),
            Trouble.NOT_UNDERSTOOD,
            "it answers with JSON, not with metrics: --jolokia or --prometheus may be meant",
        ),
        (
            httpx.Response(200, content=b"hello\n", headers={"content-type": "text/plain; charset=utf-8"}),
            Trouble.NOT_UNDERSTOOD,
            "its answer holds no metrics (text/plain)",
        ),
    ],
)
@respx.mock
def test_answers_that_are_of_no_use(answer: httpx.Response, trouble: Trouble, words: str) -> None:
    route = respx.get(TEXT).mock(return_value=answer)
    error = refused(Kind.TEXT)
    assert (error.trouble, error.text) == (trouble, words)
    assert route.call_count == 1


@respx.mock
def test_a_redirect_is_not_followed_with_credentials() -> None:
    respx.get(TEXT).mock(return_value=httpx.Response(307, headers={"location": "http://elsewhere/metrics"}))
    other = respx.get("http://elsewhere/metrics").mock(return_value=httpx.Response(200, content=LINE))
    refused(Kind.TEXT, Access(token=SECRET))
    assert not other.called


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@respx.mock
def test_what_may_pass_is_tried_again(status: int, pauses: list[float]) -> None:
    route = respx.get(TEXT).mock(side_effect=[httpx.Response(status)] * 2 + [httpx.Response(200, content=LINE)])
    assert len(read(Kind.TEXT).values) == 1
    assert (route.call_count, pauses) == (3, [0.25, 0.5])


@respx.mock
def test_tries_end(pauses: list[float]) -> None:
    route = respx.get(TEXT).mock(return_value=httpx.Response(503))
    assert refused(Kind.TEXT).text == "it answers HTTP 503 Service Unavailable"
    assert (route.call_count, len(pauses)) == (3, 2)


@respx.mock
def test_a_pause_that_is_asked_for_is_made(pauses: list[float]) -> None:
    wait = httpx.Response(429, headers={"retry-after": "2"})
    respx.get(TEXT).mock(side_effect=[wait, httpx.Response(200, content=LINE)])
    assert read(Kind.TEXT).values
    assert pauses == [2.0]


@respx.mock
def test_a_pause_beyond_the_time_is_not_made(pauses: list[float]) -> None:
    route = respx.get(TEXT).mock(return_value=httpx.Response(429, headers={"retry-after": "3600"}))
    assert refused(Kind.TEXT).text == "it answers HTTP 429 Too Many Requests"
    assert (route.call_count, pauses) == (1, [])


@pytest.mark.usefixtures("pauses")
@respx.mock
def test_a_connection_that_breaks_is_tried_again_and_one_that_is_refused_is_not() -> None:
    broken = respx.get(TEXT).mock(side_effect=httpx.RemoteProtocolError("Server disconnected"))
    assert refused(Kind.TEXT).text == "the connection broke: Server disconnected; does it speak TLS?"
    assert broken.call_count == 3
    closed = respx.post(AGENT).mock(side_effect=httpx.ConnectError("[Errno 111] Connection refused"))
    assert refused(Kind.JOLOKIA).text == "cannot connect: Connection refused"
    assert closed.call_count == 1
    silent = respx.post(QUERY).mock(side_effect=httpx.ReadTimeout("timed out"))
    error = refused(Kind.SERVER)
    assert (error.trouble, silent.call_count) == (Trouble.TIMEOUT, 1)


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
    assert error.trouble is Trouble.TLS
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
    assert raised.value.trouble is Trouble.TOO_LARGE
    assert raised.value.text == "its answer is longer than 5,000,000 bytes"


def test_an_answer_that_never_ends_costs_bounded_time() -> None:
    began = time.monotonic()
    with hostile(dripping_body) as url, pytest.raises(NotHeardError) as raised:
        ask(Question("GET", url, {}), NOBODY, TLS, timeout_s=0.5)
    assert raised.value.trouble is Trouble.TIMEOUT
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

    monkeypatch.setattr("kelr.metrics.text_endpoint.read_endpoint", broken)
    [heard] = read_all([endpoint_of(Kind.TEXT, "http://127.0.0.1:9/")], NOBODY, timeout_s=1)
    assert heard.asked.problem == "its answer cannot be read (ZeroDivisionError)"
