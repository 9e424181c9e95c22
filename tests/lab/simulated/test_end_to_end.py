"""The same incident on two simulated clusters, and kelr's commands on both: one has all of KIP-966 on the wire, the
other is as released Kafka 4.3 is. What kelr learns, decides, elects and counts as lost is the same, by other requests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kelr.commands.main import main
from kelr.controller import RULE_SETS
from kelr.lab.simulated.connection import Connection
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.world import World
from kelr.protocol.dialects import Dialect
from kelr.simulation.logs import Acks
from tests.lab.simulated.stories import (
    ORDERS,
    cluster,
    eventually,
    led_by,
    log_ends,
    power_outage,
    returns,
    state,
    time_goes_on,
)

NATIVE = ("kip966-none", Dialect.KIP)
PATCHED = ("kip966-none", Dialect.PATCH)
RELEASED = ("elr-4.3", None)

AGGRESSIVE = "longest_log_aggressive"
SAME_OF_A_LOG = (
    "replica",
    "heard",
    "last_epoch",
    "log_end",
    "high_watermark",
    "log_start",
    "current_leader_epoch",
    "behind_best",
    "best",
    "lineage",
    "parts_at",
    "not_heard",
)
SAME_OF_A_CANDIDATE = ("replica", "live", "last_epoch", "log_end", "high_watermark", "behind_best", "best", "longest")


@dataclass(frozen=True)
class Incident:
    """What happened to ``orders:0``, and what is to come of it."""

    replicas: tuple[int, ...]
    story: Callable[[World], None]
    back: tuple[int, ...]
    """Brokers that are started again, in this order."""
    best: int
    """Whom the longest log names."""
    lost: str
    """What kelr wants to be told that may be given up."""
    brokers: int = 3


def dies(world: World, broker: int) -> None:
    """A broker's process is killed, and the controller notices."""
    world.running.kill(broker)
    world.running.expire(broker)


def one_after_the_other(world: World) -> None:
    """The incident that shows why kelr exists: 3 dies first, 2 later, and 1 last, which holds the most."""
    world.running.produce(ORDERS, 116, Acks.ALL)
    dies(world, 3)
    world.running.produce(ORDERS, 19, Acks.ALL)
    dies(world, 2)
    world.running.produce(ORDERS, 7, Acks.LEADER)
    dies(world, 1)


def newer_but_shorter(world: World) -> None:
    """1 leads alone for a while and holds more records; 3 follows 2, which leads after it, in a newer epoch."""
    running = world.running
    running.produce(ORDERS, 10, Acks.ALL)
    running.sever(1, 2)
    running.sever(1, 3)
    running.produce(ORDERS, 9, Acks.LEADER)
    dies(world, 1)
    running.heal()
    running.produce(ORDERS, 4, Acks.ALL)
    dies(world, 3)
    running.produce(ORDERS, 2, Acks.LEADER)
    dies(world, 2)


def of_four(world: World) -> None:
    """Four replicas fall behind one after the other; the two that are back are not the first of the assignment."""
    running = world.running
    running.produce(ORDERS, 5, Acks.ALL)
    for broker, count in ((4, 11), (3, 3), (2, 8)):
        dies(world, broker)
        running.produce(ORDERS, count, Acks.LEADER)
    dies(world, 1)


def cut_by_a_power_loss(world: World) -> None:
    """The machine of 2 lost what was not on its disk, so that 3, which fell out of the ISR earlier, has more."""
    running = world.running
    running.produce(ORDERS, 20, Acks.ALL)
    for broker in (1, 2, 3):
        running.flush(broker)
    running.produce(ORDERS, 20, Acks.ALL)
    dies(world, 3)
    running.produce(ORDERS, 5, Acks.ALL)
    running.kill(2, power_loss=True)
    running.expire(2)
    running.produce(ORDERS, 1, Acks.LEADER)
    dies(world, 1)


INCIDENTS = {
    "one after the other": Incident((3, 1, 2), one_after_the_other, (2, 3), best=2, lost="unknown"),
    "newer but shorter": Incident((1, 2, 3), newer_but_shorter, (1, 3), best=3, lost="9+"),
    "of four": Incident((4, 1, 2, 3), of_four, (4, 3), best=3, lost="unknown", brokers=4),
    "cut by a power loss": Incident((2, 1, 3), cut_by_a_power_loss, (3, 2), best=3, lost="unknown"),
}

incidents = pytest.mark.parametrize("incident", INCIDENTS.values(), ids=list(INCIDENTS))


@contextmanager
def after(incident: Incident, rules: str, dialect: Dialect | None) -> Iterator[SimulatedServer]:
    """A cluster in which it has happened, and nobody leads."""
    with cluster(rules, incident.replicas, brokers=incident.brokers, log_info=dialect) as server:
        server.inside(incident.story)
        returns(server, *incident.back)
        assert state(server).leader is None
        yield server


@dataclass
class Requests:
    """Which requests brokers were sent, by name."""

    names: list[str] = field(default_factory=list)


@pytest.fixture(name="sent")
def _sent(monkeypatch: pytest.MonkeyPatch) -> Requests:
    seen, carried_out = Requests(), Connection._carried_out

    async def watched(self: Connection, api: Any, call: Any) -> Any:
        seen.names.append(api.name)
        return await carried_out(self, api, call)

    monkeypatch.setattr(Connection, "_carried_out", watched)
    return seen


@pytest.fixture(name="kelr")
def _kelr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))

    def run(server: SimulatedServer, *arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "-b", server.bootstrap_servers])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


Kelr = Callable[..., tuple[int, str, str]]


def told(kelr: Kelr, server: SimulatedServer, *arguments: str) -> Sequence[Mapping[str, Any]]:
    code, out, err = kelr(server, *arguments, "-o", "json")
    assert code == 0, err
    items: Sequence[Mapping[str, Any]] = json.loads(out)["items"]
    return items


def both(kelr: Kelr, incident: Incident, *arguments: str) -> tuple[Sequence[Any], Sequence[Any]]:
    with after(incident, *NATIVE) as native, after(incident, *RELEASED) as released:
        return told(kelr, native, *arguments), told(kelr, released, *arguments)


@incidents
def test_the_same_is_learnt_of_each_log(kelr: Kelr, incident: Incident) -> None:
    native, released = both(kelr, incident, "log-info", "orders:0", "--lineage")
    assert [[one[name] for name in SAME_OF_A_LOG] for one in native] == [
        [one[name] for name in SAME_OF_A_LOG] for one in released
    ]
    assert {one["replica"] for one in native if one["best"]} == {incident.best}
    heard = [(one["source"], other["source"]) for one, other in zip(native, released, strict=True) if one["heard"]]
    assert heard
    for by_native, by_released in heard:
        assert by_native.startswith("GetReplicaLogInfo v0 (key 70)")
        assert "GetReplicaLogInfo" not in by_released


@incidents
def test_the_same_is_decided_and_counted_as_lost(kelr: Kelr, incident: Incident) -> None:
    native, released = both(kelr, incident, "explain", "orders:0")
    (one,), (other,) = native, released
    assert (one["rules"], other["rules"]) == ("kip966-none", "elr-4.3")
    candidates = [[[found[name] for name in SAME_OF_A_CANDIDATE] for found in of["candidates"]] for of in (one, other)]
    assert candidates[0] == candidates[1]
    for kind in ("longest_log_balanced", AGGRESSIVE):
        found = [election_of(of, kind) for of in (one, other)]
        # The KIP's LastKnownELR names members that Kafka 4.x forgets: of them more is known.
        losses = [one["loss"] and {**one["loss"], "lost_data": None} for one in found]
        assert (found[0]["elected"], losses[0]) == (found[1]["elected"], losses[1])
    assert election_of(one, AGGRESSIVE)["elected"] == incident.best


def election_of(decision: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = decision["elections"][kind]
    return found


@incidents
@pytest.mark.parametrize("server_kind", [NATIVE, PATCHED, RELEASED], ids=["native", "patched", "released"])
def test_the_same_replica_is_elected_and_keeps_the_same_records(
    kelr: Kelr, incident: Incident, server_kind: tuple[str, Dialect | None], sent: Requests
) -> None:
    with after(incident, *server_kind) as server:
        kept = log_ends(server)[incident.best]
        arguments = ("elect", "-e", AGGRESSIVE, "--window", "0", "orders:0")
        code, _out, err = kelr(server, *arguments)
        assert code == 6, err
        assert f"--accept-loss {incident.lost}" in err
        assert state(server).leader is None
        # The KIP's manager waits for the dead broker until its window is over.
        with time_goes_on(server) if server_kind is not RELEASED else nullcontext():
            code, _out, err = kelr(server, *arguments, "--yes", "--accept-loss", incident.lost)
        assert code == 0, err
        assert (state(server).leader, log_ends(server)[incident.best]) == (incident.best, kept)
        assert state(server).replicas == incident.replicas
    reordered = sent.names.count("AlterPartitionReassignments")
    assert (reordered, sent.names.count("ElectLeaders")) == ((2, 1) if server_kind is RELEASED else (0, 1))
    assert ("GetReplicaLogInfo" in sent.names) is (server_kind is not RELEASED)


def test_a_whole_process_elects_by_name(tmp_path: Path) -> None:
    incident = INCIDENTS["one after the other"]
    with after(incident, *NATIVE) as server:
        command = (
            *(sys.executable, "-m", "kelr", "elect", "-e", "designation", "--designate", "2", "orders:0"),
            *("--yes", "--accept-loss", "0+", "-b", server.bootstrap_servers),
        )
        environment = {**os.environ, "KELR_STATE_DIR": str(tmp_path)}
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
        assert ran.returncode == 0, ran.stderr
        assert "Successfully completed leader election" in ran.stdout
        assert (state(server).leader, state(server).replicas) == (2, (3, 1, 2))
        assert log_ends(server) == {1: 142, 2: 135, 3: 135}


@pytest.mark.parametrize("dialect", [Dialect.KIP, Dialect.PATCH])
def test_the_controller_elects_by_itself_whom_kelr_said_that_it_would(kelr: Kelr, dialect: Dialect) -> None:
    """Vanlightly, 5.3.3: while 3 is away, kelr says what its return will bring, and the manager asks for the logs."""
    with cluster("kip966-balanced", log_info=dialect) as server:
        power_outage(server)
        returns(server, 1, 2)
        (waiting,) = told(kelr, server, "explain", "orders:0")
        assert (waiting["rules"], waiting["elected"], waiting["waits_for"]) == ("kip966-balanced", None, [3])
        returns(server, 3)
        eventually(server, led_by(2))
        (led,) = told(kelr, server, "explain", "orders:0")
        assert (led["situation"], led["leader"]) == ("healthy", 2)


@pytest.mark.parametrize("rules", RULE_SETS)
def test_kelr_finds_by_itself_which_rules_a_cluster_runs(kelr: Kelr, rules: str) -> None:
    """Kafka's software is told by its metadata.version, by which 4.1.0 is like 4.1.1; a topic that may not elect
    uncleanly is recovered balanced."""
    with cluster(rules) as server:
        (decision,) = told(kelr, server, "explain", "orders:0")
        assert decision["rules"] == {"elr-4.1.0": "elr-4.1", "kip966": "kip966-balanced"}.get(rules, rules)
