"""Where a principal may describe no topic, brokers leave all of them out without a word: no check passes then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.lab.simulated.control import Operator
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import MachineClock
from tests.lab.simulated.stories import cluster, eventually

PLAN = "plan.json"


@pytest.fixture(name="server")
def _server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedServer]:
    """Six partitions without a leader, a plan for them, and a principal that may describe no topic any more."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    with cluster("elr-4.3", *[(1, 2, 3)] * 6, clock=MachineClock()) as server:
        for broker in (3, 2, 1):
            server.inside(lambda world, one=broker: (world.running.kill(one), world.running.expire(one)))
        server.inside(lambda world: [world.running.start(broker) for broker in (2, 3)])
        eventually(server, lambda world: not (world.brokers[2].fenced or world.brokers[3].fenced))
        made = ("recover", "plan", "orders", "-e", "designation", "--designate", "2", "--out", PLAN)
        assert kelr(server, *made) == 0
        server.perform(lambda running: Operator(running).deny(kind="topic", operation="DESCRIBE"))
        yield server


def kelr(server: SimulatedServer, *arguments: str) -> int:
    return main([*arguments, "-b", server.bootstrap_servers])


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "--check"),
        ("describe", "--leaderless", "--check"),
        ("describe", "--summary", "--check"),
        ("describe", "--leaderless", "--check", "-o", "json"),
        ("describe", "or*", "--under-min-isr", "--check"),
        ("whatif", "--kill", "2", "--check"),
        ("whatif", "--any", "2", "--check"),
        ("whatif", "--restart", "2", "--check"),
        ("whatif", "--restart-order", "--check"),
        ("doctor", "--check"),
        ("doctor", "--only", "leaderless", "--check"),
        ("explain",),
        ("recover", "plan"),
        ("elect", "-e", "unclean", "--all-topic-partitions", "--yes"),
        ("elect", "-e", "preferred", "--all-topic-partitions", "--dry-run"),
        ("recover", "plan", "-e", "unclean", "--markdown"),
    ],
    ids=" ".join,
)
def test_no_check_passes(
    server: SimulatedServer, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    capsys.readouterr()
    assert kelr(server, *arguments) == 1
    captured = capsys.readouterr()
    said = (
        "no partition was seen; brokers leave out"
        if arguments[0] == "doctor"
        else "no partition was found: brokers leave topics"
    )
    assert f"{said} " in " ".join((captured.out + captured.err).split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe", "orders", "--leaderless", "--check"),
        ("describe", "orders:0-5", "--check"),
        ("whatif", "orders", "--kill", "2", "--check"),
        ("doctor", "orders", "--check"),
        ("explain", "orders"),
        ("log-info", "orders:0"),
    ],
    ids=" ".join,
)
def test_a_topic_that_is_named_and_not_seen_is_an_error(
    server: SimulatedServer, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    capsys.readouterr()
    assert kelr(server, *arguments) in {2, 4}
    assert "orders" in capsys.readouterr().err


def test_watch_ends_as_unhealthy_and_verify_as_unverified(server: SimulatedServer) -> None:
    assert kelr(server, "watch", "--until-healthy", "--for", "3s") != 0
    assert kelr(server, "recover", "verify", PLAN) == 1


def test_a_cluster_without_topics_is_no_pass_either(capsys: pytest.CaptureFixture[str]) -> None:
    with SimulatedServer(clock=MachineClock()) as server:
        assert kelr(server, "describe", "--leaderless", "--check") == 1
        assert "no partition was found" in capsys.readouterr().err
        assert kelr(server, "describe", "--leaderless") == 0
