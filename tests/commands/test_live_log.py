"""Commands that answer from the metadata log of live controllers: a simulated cluster, over its ports."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kelr.errors import ExitCode
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.world import Denied
from kelr.lab.spec import CONTROLLER_ID
from kelr.sources.live.metadata_log import LiveMetadataLog
from tests.commands.conftest import Kelr
from tests.faults.cluster import TOPIC, incident, servers_of


@pytest.fixture(scope="module")
def server() -> Iterator[SimulatedServer]:
    """A leaderless topic; see tests/faults/cluster.py."""
    with incident("elr-4.3") as running:
        yield running


@pytest.fixture
def controller(server: SimulatedServer) -> str:
    return f"127.0.0.1:{server.ports[CONTROLLER_ID]}"


def test_the_controllers_log_answers_as_the_brokers_do(kelr: Kelr, server: SimulatedServer, controller: str) -> None:
    told = {
        flag: json.loads(kelr("describe", TOPIC, flag, where, "-o", "json").out)
        for flag, where in (("-b", servers_of(server)), ("--bootstrap-controller", controller))
    }
    by_log, by_brokers = told["--bootstrap-controller"]["items"], told["-b"]["items"]
    names = ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "elr", "last_known_elr")
    assert by_log
    assert [{name: one[name] for name in names} for one in by_log] == [
        {name: one[name] for name in names} for one in by_brokers
    ]


def test_an_earlier_moment_can_be_asked_about(kelr: Kelr, controller: str) -> None:
    ran = kelr("describe", "--bootstrap-controller", controller, "--at", "1", "-o", "json")
    assert (ran.code, json.loads(ran.out)["items"]) == (0, [])


def test_history_finds_the_controllers_by_the_brokers(kelr: Kelr, server: SimulatedServer, controller: str) -> None:
    by_brokers = kelr("history", TOPIC, "-b", servers_of(server), "-o", "json")
    by_controller = kelr("history", TOPIC, "--bootstrap-controller", controller, "-o", "json")
    assert (by_brokers.code, by_controller.code) == (0, 0)
    found = json.loads(by_brokers.out)
    assert found["items"]
    assert found["items"] == json.loads(by_controller.out)["items"]
    assert found["cluster_id"] == json.loads(by_controller.out)["cluster_id"] is not None


def test_following_begins_with_what_was_and_ends_with_an_interruption(
    kelr: Kelr, server: SimulatedServer, controller: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = LiveMetadataLog.follow

    def interrupted(log: LiveMetadataLog, note: Callable[[str], None]) -> Iterator[object]:
        def make() -> None:
            server.inside(lambda world: world.running.kill(2))
            server.inside(lambda world: world.running.expire(2))

        threading.Timer(0.2, make).start()
        yield next(follow(log, note))
        raise KeyboardInterrupt

    monkeypatch.setattr(LiveMetadataLog, "follow", interrupted)
    before = kelr("history", TOPIC, "--bootstrap-controller", controller, "-o", "ndjson")
    ran = kelr("history", "--follow", "--broker", "2", "--bootstrap-controller", controller, "-o", "ndjson")
    monkeypatch.undo()
    assert (before.code, ran.code) == (0, 0)
    last = json.loads(ran.out.splitlines()[-1])
    assert (last["broker"], last["event"]) == (2, "fenced")
    server.inside(lambda world: world.running.start(2))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("describe", "--metadata-log", "here"), "which of the two is meant?"),
        (("history", "--follow", "-o", "json"), "-o json is one document, which --follow never ends"),
        (("history", "--follow", "--until", "7"), "--follow has no end"),
        (("history", "--follow", "--at", "7"), "--follow has no end"),
        (("history", "--follow", "--summary"), "--summary and --draw show what is over"),
    ],
)
def test_options_that_do_not_go_together(kelr: Kelr, controller: str, arguments: tuple[str, ...], words: str) -> None:
    ran = kelr(*arguments, "--bootstrap-controller", controller)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert words in ran.err


def test_a_brokers_port_is_no_controllers(kelr: Kelr, server: SimulatedServer) -> None:
    ran = kelr("history", "--bootstrap-controller", servers_of(server))
    assert ran.code == ExitCode.UNSUPPORTED
    assert "is a broker's listener" in ran.err


def test_a_context_says_which_cluster_is_meant(
    kelr: Kelr, server: SimulatedServer, controller: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KELR_CONFIG_DIR", str(tmp_path))
    context = f'[contexts.prod]\nbootstrap_server = "{servers_of(server)}"\ncluster_id = "other"\n'
    (tmp_path / "contexts.toml").write_text(context)
    for flags in ((), ("--bootstrap-controller", controller)):
        ran = kelr("history", "--context", "prod", *flags)
        assert (ran.code, ran.out) == (ExitCode.REFUSED, ""), flags
        assert "cluster other is meant" in ran.err


def test_nobody_is_there(kelr: Kelr) -> None:
    ran = kelr("history", "--bootstrap-controller", "127.0.0.1:1", "--timeout", "2")
    assert ran.code == ExitCode.CONNECT
    assert "127.0.0.1:1 refused the connection" in ran.err


def test_without_cluster_action_the_acl_is_named(kelr: Kelr) -> None:
    with incident("elr-4.3") as denied:
        denied.inside(lambda world: world.denied.add(Denied("cluster", "CLUSTER_ACTION")))
        where = f"127.0.0.1:{denied.ports[CONTROLLER_ID]}"
        for command in (("history",), ("describe",), ("explain", TOPIC), ("snapshot", "never.kelr")):
            ran = kelr(*command, "--bootstrap-controller", where)
            assert (ran.code, ran.out) == (ExitCode.NOT_AUTHORIZED, ""), command
            assert "needs CLUSTER_ACTION on the cluster" in " ".join(ran.err.split())
