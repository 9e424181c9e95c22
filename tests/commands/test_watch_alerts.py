"""``kelr watch --on-change`` and ``--webhook``: a document for each change, with what to do about it."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from kelr.alerts import SIGNATURE, Command, DeliveryError, signature
from kelr.commands import watch_alerts
from kelr.controller import events
from kelr.errors import ConnectError
from kelr.model import Snapshot
from tests.commands.conftest import Kelr
from tests.commands.test_watch import ends, fails, happen, hidden, joins, nothing, patient, world
from tests.incident import INCIDENT
from tests.recovery.simulated import SimulatedSource, World, returns
from tests.view.test_schema import violations

__all__ = ["happen", "hidden", "patient", "world"]  # fixtures

WATCH = ("watch", "--interval", "0.1", "-b", "kafka-1:9092")
ROOT = Path(__file__).resolve().parents[2]
URL = "https://hooks.example.com/kelr/xxSECRETxx"
Documents = list[dict[str, Any]]
KEPT = """
import pathlib, sys
with pathlib.Path(sys.argv[1]).open("a") as file:
    file.write(sys.stdin.read() + "\\n")
"""


@pytest.fixture
def on_change(tmp_path: Path) -> tuple[str, Callable[[], Documents]]:
    """A command that keeps the documents, and what it kept."""
    program, kept = tmp_path / "keep.py", tmp_path / "kept"
    program.write_text(KEPT)

    def documents() -> Documents:
        found = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
        for one in found:
            assert violations(one, "alert") == []
        return found

    return f"{sys.executable} {program} {kept}", documents


@pytest.fixture(autouse=True)
def on_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is delivered in the end is no other on it, and how long that takes is no matter of these tests."""
    monkeypatch.setattr(watch_alerts, "QUIET_S", 60.0)
    monkeypatch.setattr(watch_alerts, "END_S", 60.0)


def told(documents: Documents) -> list[tuple[str, str, list[str]]]:
    return [(one["what"], one["state"], one["partitions"]) for one in documents]


def test_a_document_for_each_change_until_all_is_well(
    kelr: Kelr, world: World, happen: Callable[..., None], on_change: tuple[str, Callable[[], Documents]]
) -> None:
    command, documents = on_change
    happen(lambda: returns(world, 1, clean=True), lambda: joins(world, 2), lambda: joins(world, 3))
    ran = kelr(*WATCH, "orders", "--until-healthy", "--for", "60s", "--on-change", command)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("ended:") == 1
    first, broker, elected, healthy, all_is_well = documents()
    assert told([first, broker, elected]) == [
        ("partition", "trouble", ["orders:0-3"]),
        ("broker", "trouble", []),
        ("partition", "trouble", ["orders:0-3"]),
    ]
    assert (healthy["what"], healthy["situation"], healthy["was"]) == ("partition", "healthy", "under-min-isr")
    assert (all_is_well["what"], all_is_well["state"], all_is_well["leaderless"]) == ("healthy", "healthy", 0)
    assert (first["partition_count"], first["leaderless"], first["read"]) == (4, 4, 4)
    assert (first["situation"], first["was"]) == ("waiting-for-elr", None)
    assert first["runbook"] == "docs/runbooks/waiting-for-elr.md"
    assert first["explain"] == "kelr explain orders:0-3 -b kafka-1:9092"
    assert first["text"] == "leader none, ISR - (waits for broker 1)"
    assert first["watched"] == "kafka-1:9092 orders"
    assert (broker["brokers"], broker["text"], broker["advice"]) == ([1], "fenced -> live", None)
    assert len({one["id"] for one in documents()}) == 5


def test_the_advice_is_that_of_kelr_explain(
    kelr: Kelr, happen: Callable[..., None], on_change: tuple[str, Callable[[], Documents]]
) -> None:
    command, documents = on_change
    happen()
    kelr(*WATCH, "orders:1", "--for", "2s", "--on-change", command)
    (document,) = documents()
    explained = json.loads(kelr("explain", "orders:1", "-o", "json", "-b", "kafka-1:9092").out)["items"][0]
    assert document["advice"] == explained["advice"]
    assert (document["advice_of"], document["advice_unknown"]) == ("orders:1", None)
    summary = kelr("explain", "orders", "-b", "kafka-1:9092").out
    assert document["do"] in summary.split("DO\n")[1]


def test_a_cluster_that_cannot_be_read_is_never_well(
    kelr: Kelr,
    happen: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    on_change: tuple[str, Callable[[], Documents]],
) -> None:
    """The partition that is watched is healthy; no controller answers for a while, and then no broker."""
    command, documents = on_change
    silence: list[str | None] = ["no answer in time"]
    monkeypatch.setattr(SimulatedSource, "controller_silence", property(lambda _: silence[0]), raising=False)
    gone = ConnectError("no broker answered", next_step="check that one is up")

    def answers() -> None:
        silence[0] = None

    happen(fails(gone), nothing, answers, nothing)
    assert kelr(*WATCH, "steady", "--for", "2s", "--on-change", command).code == 0
    assert [(one["what"], one["state"], one["leaderless"], one["read"]) for one in documents()] == [
        ("no-controller", "unknown", None, None),
        ("not-read", "unknown", None, None),
        ("read-again", "unknown", None, None),
        ("controller-again", "healthy", 0, 1),
        ("healthy", "healthy", 0, 1),
    ]


def test_a_topic_that_may_not_be_read_is_never_well(
    kelr: Kelr,
    world: World,
    happen: Callable[..., None],
    hidden: set[str],
    on_change: tuple[str, Callable[[], Documents]],
) -> None:
    command, documents = on_change

    def deleted() -> None:
        hidden.clear()
        world.after(events.TopicDeleted("steady"))

    happen(lambda: hidden.add("steady"), nothing, hidden.clear, deleted, nothing)
    assert kelr(*WATCH, "st*", "--for", "2s", "--on-change", command).code == 0
    assert [(one["what"], one["state"], one["unsafe"], one["read"]) for one in documents()] == [
        ("healthy", "healthy", 0, 1),
        ("not-read", "unknown", None, 0),
        ("read-again", "healthy", 0, 1),
        ("healthy", "healthy", 0, 1),
        ("topic-deleted", "unknown", None, 0),
        ("not-read", "unknown", None, 0),
    ]


def test_advice_that_cannot_be_had_is_unknown_and_says_why(
    kelr: Kelr,
    happen: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    on_change: tuple[str, Callable[[], Documents]],
) -> None:
    command, documents = on_change
    happen()

    def refuse(*_: object) -> object:
        raise ConnectError("no broker answered", next_step="")

    monkeypatch.setattr(watch_alerts.DetailJob, "__call__", refuse)
    kelr(*WATCH, "orders", "--for", "2s", "--on-change", command)
    (document,) = documents()
    assert (document["do"], document["advice"], document["advice_of"]) == (None, None, None)
    assert document["advice_unknown"] == "the replicas' logs could not be read: no broker answered"
    assert document["explain"] == "kelr explain orders:0-3 -b kafka-1:9092"


def test_of_too_many_partitions_some_have_no_advice(
    kelr: Kelr,
    happen: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    on_change: tuple[str, Callable[[], Documents]],
) -> None:
    command, documents = on_change
    happen()
    monkeypatch.setattr(watch_alerts, "MOST_ADVISED", 3)
    kelr(*WATCH, "orders", "--for", "2s", "--on-change", command)
    advised, others = documents()
    assert (advised["partitions"], others["partitions"]) == (["orders:0-2"], ["orders:3"])
    assert advised["advice"] is not None
    assert others["advice_unknown"] == "more than 3 partitions changed at once: kelr explain says what to do"


def test_waiting_at_the_end_is_told(
    kelr: Kelr,
    happen: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    on_change: tuple[str, Callable[[], Documents]],
) -> None:
    command, documents = on_change
    made = watch_alerts.alerts_of

    def slowly(*args: Any, **named: Any) -> Any:
        time.sleep(3)
        return made(*args, **named)

    monkeypatch.setattr(watch_alerts, "QUIET_S", 0.1)
    monkeypatch.setattr(watch_alerts, "alerts_of", slowly)
    happen()
    ran = kelr(*WATCH, "orders:1", "--for", "1s", "--on-change", command)
    assert (ran.code, len(documents())) == (0, 1)
    assert ran.err == "waiting up to 60 s for alerts that are under way; Ctrl-C gives them up\n"


@respx.mock
def test_a_webhook_gets_signed_documents(
    kelr: Kelr, happen: Callable[..., None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    route = respx.post(URL).mock(return_value=httpx.Response(200))
    happen()
    (tmp_path / "key").write_text("file's secret\n")
    ran = kelr(*WATCH, "orders", "--for", "2s", "--webhook", URL, "--secret-file", str(tmp_path / "key"))
    assert (ran.code, ran.err) == (0, "")
    monkeypatch.setenv("KELR_WEBHOOK", URL)
    monkeypatch.setenv("KELR_WEBHOOK_SECRET", "variable's secret")
    assert kelr(*WATCH, "orders", "--for", "2s").code == 0
    for call, secret in zip(route.calls, (b"file's secret", b"variable's secret"), strict=True):
        assert call.request.headers[SIGNATURE] == signature(secret, call.request.content)
        assert json.loads(call.request.content)["kind"] == "kelr/alert"


@respx.mock
def test_a_webhook_that_refuses_is_a_line_and_ends_nothing(kelr: Kelr, happen: Callable[..., None]) -> None:
    respx.post(URL).mock(return_value=httpx.Response(403))
    happen(nothing, nothing)
    ran = kelr(*WATCH, "orders", "--for", "1s", "--webhook", URL, "-o", "ndjson")
    assert ran.code == 0
    assert [json.loads(line)["what"] for line in ran.out.splitlines()] == ["begin", *["partition"] * 4, "end"]
    assert ran.err.splitlines() == [
        "alerts: webhook https://hooks.example.com: HTTP 403 Forbidden",
        "alerts: webhook https://hooks.example.com: HTTP 403 Forbidden: 1 document not delivered",
    ]


def test_a_receiver_that_hangs_holds_up_neither_lines_nor_ctrl_c(
    kelr: Kelr, world: World, happen: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    class Hangs:
        name = "command hangs"

        def __init__(self, _: str) -> None: ...

        def deliver(self, _: bytes) -> None:
            assert ended.wait(60)
            raise DeliveryError("ended", again=False)

        def end(self) -> None:
            ended.set()

    monkeypatch.setattr(watch_alerts, "Command", Hangs)
    happen(lambda: returns(world, 1, clean=True), nothing, ends)
    began = time.monotonic()
    ran = kelr(*WATCH, "orders", "--on-change", "hangs")
    assert ran.code == 130
    assert ran.out.count("leader none -> 1") == 4
    assert time.monotonic() - began < 10
    assert ended.is_set()
    assert "documents not delivered" in ran.err


def test_of_no_partition_nothing_is_counted(
    kelr: Kelr, world: World, happen: Callable[..., None], on_change: tuple[str, Callable[[], Documents]]
) -> None:
    command, documents = on_change
    happen(lambda: returns(world, 1, clean=True), nothing)
    kelr(*WATCH, "ordres-*", "--for", "1s", "--on-change", command)
    not_read, broker = documents()
    assert (not_read["what"], not_read["state"]) == ("not-read", "unknown")
    assert (broker["what"], broker["state"]) == ("broker", "unknown")
    assert (broker["leaderless"], broker["unsafe"], broker["under_min_isr"], broker["read"]) == (None, None, None, 0)


def test_what_is_changed_by_nobody_sends_nothing(
    kelr: Kelr, happen: Callable[..., None], on_change: tuple[str, Callable[[], Documents]]
) -> None:
    command, documents = on_change
    happen(nothing, nothing, nothing)
    kelr(*WATCH, "orders", "--for", "1s", "--on-change", command)
    assert len(documents()) == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--on-change", "/no/such/program"), "--on-change: there is no program '/no/such/program'"),
        (("--webhook", "hooks.example.com"), "--webhook is no address"),
        (("--secret-file", "key"), "--secret-file signs what a webhook gets"),
        (("--webhook", URL, "--secret-file", "/no/such/file"), "cannot read /no/such/file"),
        (("--runbook", "https://wiki/kelr"), "has no place for the situation"),
    ],
)
def test_options_that_cannot_be(kelr: Kelr, happen: Callable[..., None], arguments: tuple[str, ...], why: str) -> None:
    happen()
    ran = kelr(*WATCH, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert "SECRET" not in ran.err


def test_links_go_where_the_runbooks_are(
    kelr: Kelr, cluster: Callable[[Snapshot], None], on_change: tuple[str, Callable[[], Documents]]
) -> None:
    command, documents = on_change
    cluster(INCIDENT)
    kelr(*WATCH, "--for", "2s", "--on-change", command, "--runbook", "https://wiki/kelr/{situation}.html")
    links = {(one["situation"], one["runbook"]) for one in documents() if one["situation"] is not None}
    assert links
    assert all(link == f"https://wiki/kelr/{situation}.html" for situation, link in links)
    # Partitions for which something else is to be done are another document.
    assert len({one["do"] for one in documents()}) > 1


# The programs in docs/alerts.

ALERT = {
    "state": "trouble",
    "cluster_id": "c1",
    "watched": "prod",
    "partitions": ["orders:0-5"],
    "situation": "waiting-for-elr",
    "text": "leader 1 -> none <&>",
    "do": "start 1",
    "advice": {"text": "Start broker 1."},
    "advice_of": "orders:0",
    "advice_unknown": None,
    "explain": "kelr explain orders:0-5 -c prod",
    "runbook": "https://wiki/kelr/waiting-for-elr.html",
    "not_delivered": 2,
}
HEALTHY = {**ALERT, "state": "healthy", "partitions": [], "situation": None, "advice": None, "runbook": None}
UNKNOWN = {**HEALTHY, "state": "unknown", "advice_unknown": "no broker answered", "explain": None}


def sent_by(program: str, variable: str, alert: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the program in docs/alerts posts about an alert."""
    bodies: list[bytes] = []

    class Keeps(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Keeps) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(variable, f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("PAGERDUTY_KEY", "k")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        Command(f"{sys.executable} {ROOT / 'docs' / 'alerts' / program}").deliver(json.dumps(alert).encode())
        server.shutdown()
    (body,) = bodies
    found: dict[str, Any] = json.loads(body)
    return found


def test_pagerduty_has_one_incident_which_only_health_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [sent_by("pagerduty.py", "PAGERDUTY_URL", alert, monkeypatch) for alert in (ALERT, UNKNOWN, HEALTHY)]
    assert [one["event_action"] for one in events] == ["trigger", "trigger", "resolve"]
    assert {one["dedup_key"] for one in events} == {"kelr/c1"}
    assert events[0]["payload"]["summary"] == "orders:0-5 waiting-for-elr leader 1 -> none <&>"
    assert [one["payload"]["severity"] for one in events[:2]] == ["critical", "warning"]
    assert events[0]["links"] == [{"href": "https://wiki/kelr/waiting-for-elr.html", "text": "runbook"}]


def test_slack_is_told_what_to_do_or_why_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [sent_by("slack.py", "SLACK_WEBHOOK", alert, monkeypatch)["text"] for alert in (ALERT, UNKNOWN)]
    assert texts[0].splitlines() == [
        ":red_circle: *prod* orders:0-5 waiting-for-elr",
        "leader 1 -&gt; none &lt;&amp;&gt;",
        "*Do:* start 1",
        "orders:0: Start broker 1.",
        "`kelr explain orders:0-5 -c prod`",
        "https://wiki/kelr/waiting-for-elr.html",
        "(2 changes before this one did not reach Slack)",
    ]
    assert "*Do:* not known: no broker answered" in texts[1]


def test_the_receivers_check_of_the_signature_in_the_docs_works() -> None:
    page = (ROOT / "docs" / "watch.md").read_text()
    (code,) = re.findall(r"```python\n(def is_from_kelr.*?)```", page, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(f"import hashlib, hmac\n{code}", scope)
    assert scope["is_from_kelr"](b"{}", signature(b"key", b"{}"), b"key")
    assert not scope["is_from_kelr"](b"{ }", signature(b"key", b"{}"), b"key")
