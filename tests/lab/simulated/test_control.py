"""The control channel of a simulated cluster: what each verb does, and that garbage does nothing but give an error."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import events
from kelr.errors import LabError, UsageError
from kelr.lab.simulated import lab
from kelr.lab.simulated.control import MOST_LINE_BYTES, VERBS
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.world import Denied
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.simulation.logs import Acks

TOKEN = "the-right-one"
P0 = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def battered() -> Iterator[Controlled]:
    """One to which anything may have been done."""
    with SimulatedServer(clock=VirtualClock()) as server:
        yield Controlled(server)


class Controlled:
    """A cluster with a control channel."""

    def __init__(self, server: SimulatedServer) -> None:
        self.server = server
        self.downs: list[int] = []
        self.port = server.control(TOKEN, down=lambda: self.downs.append(1))

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        return lab.ask(self.port, TOKEN, verb, **arguments)

    def node(self, node: int) -> dict[str, Any]:
        return next(one for one in self.ask("status")["nodes"] if one["node"] == node)

    def line(self, data: bytes) -> bytes:
        """What comes back for some bytes, until the connection ends or two seconds are over."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            back = b""
            while piece := client.recv(1 << 16):
                back += piece
            return back


@pytest.fixture
def controlled() -> Iterator[Controlled]:
    """Its clock is turned by hand, so that nothing expires in the middle of a test."""
    with SimulatedServer(clock=VirtualClock()) as server:
        yield Controlled(server)


@pytest.fixture(scope="module")
def shared() -> Iterator[Controlled]:
    """One that no test changes."""
    with SimulatedServer(clock=VirtualClock()) as server:
        yield Controlled(server)


def with_records(controlled: Controlled) -> None:
    """Partition orders-0 with replicas 1, 2, 3, and twelve records in three batches, nothing flushed."""

    def write(world: Any) -> None:
        world.running.ask(events.TopicCreated("orders", ((1, 2, 3),)))
        for _ in range(3):
            world.running.produce(P0, 100, Acks.ALL)

    controlled.server.inside(write)


def ends(controlled: Controlled) -> dict[int, int]:
    return controlled.server.inside(
        lambda world: {broker: world.log(P0, broker).end for broker in (1, 2, 3)}  # type: ignore[union-attr]
    )


def test_status_says_everything(controlled: Controlled) -> None:
    status = controlled.ask("status")
    nodes = status.pop("nodes")
    assert [(one["node"], one["rack"], one["running"], one["fenced"], one["paused"]) for one in nodes] == [
        (CONTROLLER_ID, None, True, None, False),
        (1, "az1", True, False, False),
        (2, "az2", True, False, False),
        (3, "az3", True, False, False),
    ]
    assert [one["port"] for one in nodes] == [controlled.server.ports[one["node"]] for one in nodes]
    assert status == {
        "cluster_id": controlled.server.world.cluster_id,
        "now_ms": 1_700_000_000_000,
        "virtual_clock": True,
        "rules": "kip966-balanced",
        "elr": True,
        "severed": [],
        "faults": [],
        "denied": [],
        "assumptions": [],
        "broken_handlers": [],
    }


def test_a_killed_broker_is_fenced_when_its_session_ends(controlled: Controlled) -> None:
    controlled.ask("kill", broker=3)
    assert (controlled.node(3)["running"], controlled.node(3)["fenced"]) == (False, False)
    controlled.ask("advance", duration_ms=2999)
    assert controlled.node(3)["fenced"] is False
    assert controlled.ask("advance", duration_ms=1) == {"now_ms": 1_700_000_003_000}
    assert controlled.node(3)["fenced"] is True


def test_expire_does_not_wait(controlled: Controlled) -> None:
    controlled.ask("kill", broker=3)
    controlled.ask("expire", broker=3)
    assert controlled.node(3)["fenced"] is True


def test_a_broker_is_stopped_and_started(controlled: Controlled) -> None:
    controlled.ask("stop", broker=2)
    assert (controlled.node(2)["running"], controlled.node(2)["fenced"]) == (False, True)
    controlled.ask("start", broker=2)
    controlled.ask("advance", duration_ms=4000)
    assert (controlled.node(2)["running"], controlled.node(2)["fenced"]) == (True, False)


@pytest.mark.parametrize("first", [True, False])
def test_a_power_loss_takes_what_was_not_flushed(controlled: Controlled, first: bool) -> None:
    """Whether the process ran until then, or had been killed before."""
    with_records(controlled)
    controlled.ask("flush", broker=2)
    for broker in (2, 3):
        if not first:
            controlled.ask("kill", broker=broker)
        controlled.ask("kill", broker=broker, power_loss=True)
    assert ends(controlled) == {1: 300, 2: 300, 3: 0}
    assert not controlled.node(3)["running"]


def test_a_kill_alone_takes_nothing(controlled: Controlled) -> None:
    with_records(controlled)
    controlled.ask("kill", broker=3)
    assert ends(controlled)[3] == 300


def test_pause_and_go_on(controlled: Controlled) -> None:
    controlled.ask("pause", broker=2)
    assert controlled.node(2)["paused"] is True
    controlled.ask("go-on", broker=2)
    assert controlled.node(2)["paused"] is False


def test_an_obstacle_kills_a_broker_after_it_has_registered(controlled: Controlled) -> None:
    with_records(controlled)
    controlled.ask("kill", broker=1)
    controlled.ask("expire", broker=1)
    before = broker_epoch(controlled, 1)
    controlled.ask("obstruct", broker=1)
    controlled.ask("start", broker=1)
    controlled.ask("advance", duration_ms=10_000)
    assert broker_epoch(controlled, 1) > before
    assert (controlled.node(1)["running"], controlled.node(1)["fenced"]) == (False, True)
    controlled.ask("clear", broker=1)
    controlled.ask("start", broker=1)
    controlled.ask("advance", duration_ms=10_000)
    assert (controlled.node(1)["running"], controlled.node(1)["fenced"]) == (True, False)


def broker_epoch(controlled: Controlled, broker: int) -> int:
    return controlled.server.inside(lambda world: world.brokers[broker].epoch)


def test_a_cut_ends_at_a_batch_and_takes_the_mark_of_a_clean_shutdown(controlled: Controlled) -> None:
    with_records(controlled)
    controlled.ask("stop", broker=3)
    assert controlled.ask("cut", broker=3, topic="orders", partition=0, batches=2) == {
        "from_offset": 100,
        "to_offset": 300,
    }
    assert ends(controlled) == {1: 300, 2: 300, 3: 100}
    assert controlled.server.inside(lambda world: 3 in world.running.cluster.crashed)
    with pytest.raises(LabError, match="broker 3 holds fewer than 2 batches of orders:0"):
        controlled.ask("cut", broker=3, topic="orders", partition=0, batches=2)
    with pytest.raises(LabError, match="broker 1 runs"):
        controlled.ask("cut", broker=1, topic="orders", partition=0, batches=1)
    with pytest.raises(UsageError, match="no partition orders:7"):
        controlled.ask("cut", broker=3, topic="orders", partition=7, batches=1)


def test_high_watermarks_are_those_that_a_broker_knows(controlled: Controlled) -> None:
    with_records(controlled)
    assert controlled.ask("high-watermarks", broker=3, topic="orders") == {"0": 300}
    assert controlled.ask("high-watermarks", broker=3, topic="nothing") == {}


def test_links_are_severed_and_healed(controlled: Controlled) -> None:
    controlled.ask("sever", one=2, other=1)
    controlled.ask("sever", one=3, other=CONTROLLER_ID)
    assert controlled.ask("status")["severed"] == [[1, 2], [3, CONTROLLER_ID]]
    controlled.ask("heal", one=1, other=2)
    assert controlled.ask("status")["severed"] == [[3, CONTROLLER_ID]]
    controlled.ask("heal")
    assert controlled.ask("status")["severed"] == []


def test_faults_are_rules_in_their_order(controlled: Controlled) -> None:
    controlled.ask("fault", kind="delay", amount=5, node=2, api="metadata", skip=1, times=3)
    controlled.ask("fault", kind="DROP")
    rules = controlled.server.perform(lambda server: list(server.faults.rules))
    assert rules == [Fault(FaultKind.DELAY, 5, 2, "Metadata", 1, 3), Fault(FaultKind.DROP)]
    assert [rule["kind"] for rule in controlled.ask("status")["faults"]] == ["delay", "drop"]
    controlled.ask("no-faults")
    assert controlled.ask("status")["faults"] == []


def test_permissions_are_denied_and_allowed(controlled: Controlled) -> None:
    controlled.ask("deny", kind="topic", operation="read", name="orders")
    controlled.ask("deny", kind="topic", operation="DESCRIBE")
    controlled.ask("deny", kind="cluster", operation="cluster-action")
    denied = controlled.server.inside(lambda world: set(world.denied))
    assert denied == {
        Denied("topic", "READ", "orders"),
        Denied("topic", "DESCRIBE"),
        Denied("cluster", "CLUSTER_ACTION"),
    }
    controlled.ask("allow", kind="topic", operation="READ", name="orders")
    with pytest.raises(UsageError, match="READ was not denied on orders"):
        controlled.ask("allow", kind="topic", operation="READ", name="orders")
    controlled.ask("allow")
    assert controlled.ask("status")["denied"] == []


def test_the_machines_clock_cannot_be_turned() -> None:
    with SimulatedServer() as server, pytest.raises(LabError, match="clock is the machine's"):
        Controlled(server).ask("advance", duration_ms=5)


def test_down_is_answered_and_told(controlled: Controlled) -> None:
    assert controlled.ask("down") == {}
    assert controlled.downs == [1]


@pytest.mark.parametrize(
    ("verb", "arguments", "message"),
    [
        ("fly", {}, 'no verb is called "fly"'),
        ("kill", {}, "broker: this field is missing"),
        ("kill", {"broker": "1"}, "broker: not a whole number"),
        ("kill", {"broker": True}, "broker: not a whole number"),
        ("kill", {"broker": 1.0}, "broker: not a whole number"),
        ("kill", {"broker": 9}, "the lab has no broker 9"),
        ("kill", {"broker": CONTROLLER_ID}, "the lab has no broker 100"),
        ("kill", {"broker": -1}, "broker: less than 0"),
        ("kill", {"broker": 2**40}, "broker: more than 2147483647"),
        ("kill", {"broker": 1, "power_loss": 1}, "power_loss: neither true nor false"),
        ("kill", {"broker": 1, "why": "because"}, "why: no such field"),
        ("status", {"broker": 1}, "broker: no such field"),
        ("down", {"broker": 1}, 'no verb is called "down"'),
        ("sever", {"one": 1, "other": 1}, "node 1 has no link to itself"),
        ("sever", {"one": 1}, "other: this field is missing"),
        ("heal", {"one": 1}, "a link has two nodes"),
        ("fault", {"kind": "flood"}, "no kind is called 'flood'"),
        ("fault", {"kind": "slow", "amount": 0}, "the amount of slow is 0"),
        ("fault", {"kind": "error", "amount": 0}, "the amount of error is 0"),
        ("fault", {"kind": "lose", "api": "Levitate"}, "no api is called 'Levitate'"),
        ("fault", {"kind": "lose", "node": 7}, "the lab has no node 7"),
        ("fault", {"kind": "lose", "times": 0}, "times: less than 1"),
        ("deny", {"kind": "planet", "operation": "READ"}, "no kind is called 'planet'"),
        ("deny", {"kind": "cluster", "operation": "READ"}, "there is no READ on a cluster"),
        ("deny", {"kind": "cluster", "operation": "ALTER", "name": "x"}, "there is one cluster"),
        ("advance", {"duration_ms": -1}, "duration_ms: less than 0"),
        ("cut", {"broker": 1, "topic": "", "partition": 0, "batches": 1}, "topic: shorter than 1 characters"),
    ],
)
def test_what_makes_no_sense_is_refused(shared: Controlled, verb: str, arguments: dict[str, Any], message: str) -> None:
    before = shared.ask("status")
    with pytest.raises(UsageError) as caught:
        shared.ask(verb, **arguments)
    assert message in str(caught.value)
    assert shared.ask("status") == before
    assert shared.downs == []


def test_a_wrong_token_does_nothing_and_says_nothing_else(shared: Controlled) -> None:
    before = shared.ask("status")
    for token in ("", "the-right-on", "the-right-one ", "\N{SNOWMAN}", None, 7):
        with pytest.raises(UsageError, match="this is not the lab's token"):
            lab.ask(shared.port, token, "kill", broker=1)  # type: ignore[arg-type]
    line = json.dumps({"verb": "status"}).encode() + b"\n"
    assert json.loads(shared.line(line))["error"] == "this is not the lab's token"
    assert shared.line(line * 2).count(b"\n") == 1  # the connection is over
    assert shared.ask("status") == before


@given(noise=st.binary(max_size=500))
def test_garbage_gives_errors_and_nothing_else(shared: Controlled, noise: bytes) -> None:
    for line in shared.line(noise + b"\n").splitlines():
        assert json.loads(line)["ok"] is False
    assert shared.ask("status")["faults"] == []


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)
_NAMES = ("broker", "one", "other", "kind", "amount", "node", "api", "skip", "times", "operation", "name", "topic")


@given(verb=st.sampled_from(sorted(VERBS)), arguments=st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=4))
def test_any_arguments_give_a_result_or_a_clear_error(
    battered: Controlled, verb: str, arguments: dict[str, Any]
) -> None:
    line = json.dumps({"token": TOKEN, "verb": verb, **arguments}).encode() + b"\n"
    answer = json.loads(battered.line(line))
    assert set(answer) in ({"ok", "result"}, {"ok", "error", "next_step", "exit_code"})


@pytest.mark.parametrize(
    "line", [b"null\n", b"[]\n", b"7\n", b'"kill"\n', b"{\n", b"[" * 30_000 + b"\n", b"\xff\n", b"\n"]
)
def test_a_line_that_is_no_request_is_told_so(shared: Controlled, line: bytes) -> None:
    answer = json.loads(shared.line(line))
    assert answer["ok"] is False
    assert "a line that is no JSON" in answer["error"]
    assert answer["exit_code"] == 2


def test_a_line_that_is_too_long_ends_the_connection(shared: Controlled) -> None:
    with socket.create_connection(("127.0.0.1", shared.port), timeout=20) as client:
        client.sendall(b" " * (MOST_LINE_BYTES + 100))
        with client.makefile("rb") as reader:
            assert json.loads(reader.readline())["error"] == f"a line is longer than {MOST_LINE_BYTES} bytes"
            with suppress(ConnectionResetError):  # it did not read the rest
                assert reader.read() == b""


def test_several_lines_may_come_on_one_connection(shared: Controlled) -> None:
    line = json.dumps({"token": TOKEN, "verb": "status"}).encode() + b"\n"
    answers = [json.loads(one) for one in shared.line(line + b"nonsense\n" + line).splitlines()]
    assert [one["ok"] for one in answers] == [True, False, True]


def test_nobody_there_is_an_error() -> None:
    with SimulatedServer() as server:
        port = server.control(TOKEN)
    with pytest.raises(LabError, match="the simulated lab does not answer"):
        lab.ask(port, TOKEN, "status")
