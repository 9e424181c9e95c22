"""Documents on their way: signed, in order, tried again within bounds, and nobody waits for them."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from kelr.alerts import SIGNATURE, Command, DeliveryError, Lane, Outbox, Webhook
from kelr.errors import UsageError
from tests.hostile import dripping_headers, hostile

SECRET = b"hunter2-s3cr3t"
PATH = "/services/T0/B0/xxSECRETxx"
URL = f"https://hooks.example.com{PATH}"
PATIENCE_S = 30.0


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# A webhook.


@respx.mock
def test_a_document_is_posted_and_signed() -> None:
    route = respx.post(URL).mock(return_value=httpx.Response(202))
    body = b'{"what": "partition"}'
    Webhook(URL, SECRET).deliver(body)
    (call,) = route.calls
    assert call.request.content == body
    assert call.request.headers["content-type"] == "application/json"
    assert call.request.headers["user-agent"].startswith("kelr/")
    expected = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    assert call.request.headers[SIGNATURE] == f"sha256={expected}"
    assert SECRET.decode() not in str(call.request.headers)


@respx.mock
def test_without_a_secret_nothing_looks_signed() -> None:
    route = respx.post(URL).mock(return_value=httpx.Response(200))
    Webhook(URL, None).deliver(b"{}")
    assert SIGNATURE not in route.calls[0].request.headers


@pytest.mark.parametrize(
    ("answer", "words", "again"),
    [
        (httpx.Response(500), "HTTP 500 Internal Server Error", True),
        (httpx.Response(429), "HTTP 429 Too Many Requests", True),
        (httpx.Response(404), "HTTP 404 Not Found", False),
        (httpx.Response(401, text=f"no {SECRET.decode()}"), "HTTP 401 Unauthorized", False),
        (httpx.Response(302, headers={"location": f"https://elsewhere{PATH}"}), "HTTP 302 Found", False),
        (httpx.ConnectError(f"refused {URL}"), "refused it", True),
        (httpx.ReadTimeout("x"), "no answer within 10 s", True),
        (httpx.RemoteProtocolError("bad \x1b[2J\nline"), "bad [2J line", True),
    ],
)
@respx.mock
def test_what_goes_wrong_tells_no_secret(answer: httpx.Response | Exception, words: str, *, again: bool) -> None:
    respx.post(URL).mock(**{"side_effect" if isinstance(answer, Exception) else "return_value": answer})  # type: ignore[arg-type]
    webhook = Webhook(URL, SECRET)
    with pytest.raises(DeliveryError) as raised:
        webhook.deliver(b"{}")
    assert (raised.value.text, raised.value.again) == (words, again)
    assert webhook.name == "webhook https://hooks.example.com"
    told = f"{raised.value!r} {raised.value.__cause__!r} {webhook.name}"
    assert "SECRET" not in told
    assert SECRET.decode() not in told


def test_an_answer_that_drips_is_not_waited_for() -> None:
    with hostile(dripping_headers) as url:
        began = time.monotonic()
        with pytest.raises(DeliveryError, match=r"no answer within 0\.5 s"):
            Webhook(url, None, timeout_s=0.5).deliver(b"{}")
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("url", ["ftp://x", "hooks.example.com", "https://", "https://a:b:c/", "https://x/\x1b[2J"])
def test_what_is_no_address_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        Webhook(url, None)
    assert "\x1b" not in str(raised.value)


def test_a_user_in_the_address_is_refused() -> None:
    with pytest.raises(UsageError) as raised:
        Webhook("https://me:hunter2@hooks.example.com/", None)
    assert (raised.value.code, "hunter2" in str(raised.value)) == ("secret-in-address", False)


# A command.


def script(text: str, path: Path) -> str:
    """A program in Python, as a command line."""
    file = path / "do it.py"
    file.write_text(text)
    return f"{sys.executable} '{file}' $HOME ';' '|'"


def test_a_command_reads_the_document_and_meets_no_shell(tmp_path: Path) -> None:
    line = script(
        "import json, os, sys\n"
        f"json.dump([sys.stdin.read(), sys.argv[1:], os.environ.get('KELR_WEBHOOK_SECRET'), os.environ['A'],"
        f" os.getpgrp() == os.getpid()], open({str(tmp_path / 'out')!r}, 'w'))\n"
        "print('dropped')",
        tmp_path,
    )
    environ = {**os.environ, "KELR_WEBHOOK_SECRET": "x", "A": "kept"}
    command = Command(line, environ)
    command.deliver(b'{"a": 1}')
    assert json.loads((tmp_path / "out").read_text()) == ['{"a": 1}', ["$HOME", ";", "|"], None, "kept", True]
    assert command.name == f"command {Path(sys.executable).name}"


def test_a_document_that_nobody_reads_holds_nothing_up() -> None:
    Command("true").deliver(b"x" * 1_000_000)


def test_a_command_that_fails_is_told_by_its_last_words(tmp_path: Path) -> None:
    line = script("import sys\nsys.exit('first\\nno \\x1b[2Jroute\\n\\n')", tmp_path)
    with pytest.raises(DeliveryError) as raised:
        Command(line).deliver(b"{}")
    assert (raised.value.text, raised.value.again) == ("it ended with 1: no [2Jroute", True)


CHILD = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn])
with open({out!r} + ".new", "w") as file:
    file.write(f"{{os.getpid()}} {{child.pid}}")
os.rename({out!r} + ".new", {out!r})
{then}
"""


@pytest.mark.parametrize("then", ["time.sleep(600)", "os._exit(0)"], ids=["hangs", "its child hangs"])
def test_a_command_is_ended_after_a_while_with_all_of_its_group(tmp_path: Path, then: str) -> None:
    out = tmp_path / "pids"
    line = script(CHILD.format(out=str(out), then=then), tmp_path)
    with pytest.raises(DeliveryError, match="it was ended after 2 s") as raised:
        Command(line, timeout_s=2.0).deliver(b"{}")
    assert not raised.value.again
    assert out.exists(), "the machine is too slow for this bound"
    for pid in map(int, out.read_text().split()):
        until(lambda pid=pid: not alive(pid))  # type: ignore[misc]


def alive(pid: int) -> bool:
    try:
        # One that nobody waits for any more is a zombie where there is no init.
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_command_that_talks_without_end_is_ended_in_bounded_memory(tmp_path: Path) -> None:
    line = script("import sys\nwhile True:\n    sys.stderr.write('x' * 1000)", tmp_path)
    with pytest.raises(DeliveryError, match="it was ended after 1 s"):
        Command(line, timeout_s=1.0).deliver(b"{}")


@pytest.mark.parametrize("line", ["", "'open", "/no/such/program now"])
def test_a_command_that_cannot_be_is_refused_at_once(line: str) -> None:
    with pytest.raises(UsageError, match="--on-change"):
        Command(line)


# An outbox.


class Somebody:
    """A receiver that does what the test says."""

    name = "somebody"

    def __init__(self, *answers: DeliveryError | None) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self.tries = 0
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.ended = False

    def deliver(self, body: bytes) -> None:
        self.tries += 1
        assert self.may_go_on.wait(PATIENCE_S)
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None:
            raise answer
        self.bodies.append(json.loads(body))

    def end(self) -> None:
        self.ended = True
        self.may_go_on.set()


BUSY = DeliveryError("busy", again=True)
WRONG = DeliveryError("wrong", again=False)


def test_documents_arrive_in_order_and_are_tried_again() -> None:
    somebody = Somebody(BUSY, BUSY)
    outbox = Outbox(somebody, (0.0, 0.0, 0.0))
    for number in range(3):
        outbox.put({"n": number})
    assert outbox.end(PATIENCE_S) == 0
    assert somebody.bodies == [{"n": number, "not_delivered": 0} for number in range(3)]
    assert somebody.tries == 5
    assert outbox.failure == ""


def test_one_that_is_given_up_is_told_with_the_next_that_comes_through() -> None:
    somebody = Somebody(BUSY, BUSY, WRONG)
    outbox = Outbox(somebody, (0.0,))
    outbox.put({"n": 0})  # tried twice
    outbox.put({"n": 1})  # once
    until(lambda: somebody.tries == 3)
    until(lambda: outbox.failure == "alerts: somebody: wrong")
    outbox.put({"n": 2})
    outbox.put({"n": 3})
    assert outbox.end(PATIENCE_S) == 0
    assert somebody.bodies == [{"n": 2, "not_delivered": 2}, {"n": 3, "not_delivered": 0}]


def test_of_too_many_the_oldest_are_given_up_and_nobody_waits() -> None:
    somebody = Somebody()
    somebody.may_go_on.clear()
    outbox = Outbox(somebody)
    began = time.monotonic()
    for number in range(3000):
        outbox.put({"n": number})
    assert time.monotonic() - began < 5
    somebody.may_go_on.set()
    assert outbox.end(PATIENCE_S) == 0
    first, second, *_ = somebody.bodies
    # One may be under way before the others come.
    assert len(somebody.bodies) in {1000, 1001}
    assert somebody.bodies[-1]["n"] == 2999
    assert first["not_delivered"] + second["not_delivered"] == 3000 - len(somebody.bodies)


def test_what_is_under_way_at_the_end_is_given_up_after_a_while() -> None:
    somebody = Somebody()
    somebody.may_go_on.clear()
    outbox = Outbox(somebody)
    outbox.put({"n": 0})
    outbox.put({"n": 1})
    until(lambda: somebody.tries == 1)
    assert outbox.end(0.05) == 2
    assert somebody.ended


def test_nobody_waits_for_the_next_try_at_the_end() -> None:
    somebody = Somebody(BUSY)
    outbox = Outbox(somebody, (600.0,))
    outbox.put({"n": 0})
    until(lambda: outbox.failure != "")
    began = time.monotonic()
    assert outbox.end(0.05) == 1
    assert time.monotonic() - began < 10


def test_a_defect_is_told_and_ends_nothing() -> None:
    somebody = Somebody()
    outbox = Outbox(somebody)
    outbox.put({"n": object()})
    until(lambda: outbox.failure == "alerts: somebody: internal error: TypeError")
    outbox.put({"n": 1})
    assert outbox.end(PATIENCE_S) == 0
    assert somebody.bodies == [{"n": 1, "not_delivered": 1}]


@pytest.fixture
def lane() -> Iterator[tuple[Lane[int], list[int], threading.Event]]:
    handled: list[int] = []
    go = threading.Event()

    def handle(number: int) -> None:
        assert go.wait(PATIENCE_S)
        handled.append(number)

    yield Lane("lane", handle, most=2), handled, go
    go.set()


def test_a_lane_makes_room(lane: tuple[Lane[int], list[int], threading.Event]) -> None:
    road, handled, go = lane
    assert road.put(0)
    until(lambda: road.drained(0) == 1)
    assert [road.put(number) for number in (1, 2, 3)] in ([True, True, False], [True, False, False])
    go.set()
    assert road.drained(PATIENCE_S) == 0
    assert handled[-2:] == [2, 3]
