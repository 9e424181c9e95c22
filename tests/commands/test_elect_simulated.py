"""``kelr elect`` from the command line to the controller's state: each type of election on a simulated cluster."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kelr.model.plan import AcceptedLoss
from kelr.recovery import audit
from tests.commands.conftest import Kelr, Terminal
from tests.recovery.simulated import WHO, SimulatedAdminClient, SimulatedSource, World, leaderless, returns

CONNECTION = ("-b", "kafka-1:9092")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    """Four partitions of ``orders`` without a leader: 2 and 3 are live, 2 holds more than 3, and 1, which led last and
    holds the most, is down. ``steady:0`` is led by 2 and prefers 3."""
    world = leaderless()
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: SimulatedSource(world))
    monkeypatch.setattr("kelr.commands.recovering.hand_of", lambda _: SimulatedAdminClient(world))
    monkeypatch.setattr("kelr.commands.recovering.who_changes", lambda _: WHO)
    monkeypatch.setattr("kelr.commands.electing.MACHINE", world.ground)
    monkeypatch.setattr("kelr.commands.recovering.MACHINE", world.ground)
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return world


def leaders(world: World) -> list[int | None]:
    return [world.state(number).leader for number in range(4)]


def test_preferred(kelr: Kelr, world: World) -> None:
    ran = kelr("elect", "--election-type", "preferred", "--topic", "steady", "--partition", "0", "--yes", *CONNECTION)
    assert ran.code == 0, ran.err
    assert world.state(0, "steady").leader == 3
    assert "Successfully completed leader election (PREFERRED) for partitions steady-0" in ran.out
    again = kelr("elect", "--election-type", "preferred", "--topic", "steady", "--partition", "0", *CONNECTION)
    assert (again.code, again.out) == (0, "Valid replica already elected for partitions steady-0\n")


def test_unclean_is_kafkas_choice_and_needs_the_number(kelr: Kelr, world: World) -> None:
    refused = kelr("elect", "-e", "unclean", "orders:0", *CONNECTION)
    assert refused.code == 6
    assert leaders(world) == [None] * 4
    number = refused.err.split("--accept-loss ")[1].split()[0].rstrip(",")
    ran = kelr("elect", "-e", "unclean", "orders:0", "--yes", "--accept-loss", number, *CONNECTION)
    assert ran.code == 0, ran.err
    assert leaders(world) == [3, None, None, None]


def test_a_designation_elects_whom_it_names_and_leaves_the_order_as_it_was(kelr: Kelr, world: World) -> None:
    before = [world.state(number).replicas for number in range(4)]
    ran = kelr("elect", "-e", "designation", "--designate", "2", "orders", "--yes", "--accept-loss", "0+", *CONNECTION)
    assert ran.code == 0, ran.err
    assert leaders(world) == [2, 2, 2, 2]
    assert [world.state(number).replicas for number in range(4)] == before


def test_the_disk_of_a_broker_that_is_down_is_saved_before_and_after_a_designation(kelr: Kelr, world: World) -> None:
    """1 holds the most, and nobody has read it: its start truncates that, whenever it comes."""
    assert world.state(0).leader is None
    ran = kelr(
        "elect", "-e", "designation", "--designate", "2", "orders:0", "--yes", "--accept-loss", "0+", *CONNECTION
    )
    told, out = " ".join((ran.out + ran.err).split()), " ".join(ran.out.split())
    assert "Keep broker 1 down until its disk is saved. On the host of broker 1" in told
    assert "kelr rescue dump orders:0 --elect 2 --log-dir DIRECTORY --out orders-0-lost-to-2.kelr-rescue" in told
    assert "Lost once broker 1 starts, unless its disk is saved first: kelr rescue dump --plan" in out
    assert "--from-replica 1 --log-dir DIRECTORY" in out


def test_keep_order_leaves_the_elected_replica_first(kelr: Kelr, world: World) -> None:
    arguments = ("-e", "designation", "--designate", "2", "orders:0", "--keep-order", "--yes", "--accept-loss", "0+")
    assert kelr("elect", *arguments, *CONNECTION).code == 0
    assert world.state(0).replicas == (2, 3, 1)


def test_the_json_file_designates_each_its_own(kelr: Kelr, world: World, tmp_path: Path) -> None:
    file = tmp_path / "elect.json"
    wanted = [{"topic": "orders", "partition": number, "desiredLeader": 2 + number % 2} for number in range(4)]
    file.write_text(json.dumps({"partitions": wanted}))
    arguments = ("-e", "designation", "--path-to-json-file", str(file))
    number = kelr("elect", *arguments, *CONNECTION).err.split("--accept-loss ")[1].split()[0].rstrip(",")
    assert AcceptedLoss.parse(number) == AcceptedLoss(20, unbounded=True)
    assert kelr("elect", *arguments, "--yes", "--accept-loss", number, *CONNECTION).code == 0
    assert leaders(world) == [2, 3, 2, 3]


def test_aggressive_takes_the_best_live_log(kelr: Kelr, world: World) -> None:
    ran = kelr("elect", "-e", "longest_log_aggressive", "orders", "--yes", "--accept-loss", "0+", *CONNECTION)
    assert ran.code == 0, ran.err
    assert leaders(world) == [2, 2, 2, 2]


def test_balanced_elects_nobody_without_the_whole_quorum(kelr: Kelr, world: World) -> None:
    ran = kelr("elect", "-e", "longest_log_balanced", "orders", "--timeout", "0.05", *CONNECTION)
    assert ran.code == 6
    assert leaders(world) == [None] * 4
    assert "missing broker 1" in ran.err


def test_balanced_is_over_where_a_broker_comes_back_and_leads_by_itself(
    kelr: Kelr, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget = SimulatedSource.forget

    def brings_1_back(source: SimulatedSource) -> None:
        forget(source)
        if world.state(0).leader is None:
            returns(world, 1)

    monkeypatch.setattr(SimulatedSource, "forget", brings_1_back)
    ran = kelr("elect", "-e", "longest_log_balanced", "orders", "--timeout", "20", *CONNECTION)
    assert ran.code == 0, ran.err
    assert leaders(world) == [1, 1, 1, 1]
    assert "Valid replica already elected for partitions orders-0, orders-1, orders-2, orders-3" in ran.out


def test_what_changed_since_the_plan_is_named_and_the_rest_goes_on(
    kelr: Kelr, world: World, terminal: Callable[[Terminal], None]
) -> None:
    class Meanwhile(Terminal):
        """While the number is typed, broker 1 comes back and leads all but what is still elected."""

        def readline(self, _size: int = -1) -> str:
            returns(world, 1)
            return "0+\n"

    terminal(Meanwhile())
    ran = kelr("elect", "-e", "designation", "--designate", "2", "orders:0", *CONNECTION)
    assert ran.code == 6
    assert world.state(0).leader == 1
    assert "Not done: 0 of 1 leader elected, 1 refused. Exit code 6.\n" in ran.out
    assert "(leader: planned none, now 1)." in ran.out


@pytest.mark.usefixtures("world")
def test_the_audit_log_tells_who_did_what_and_what_was_agreed_to(kelr: Kelr, tmp_path: Path) -> None:
    kelr("elect", "-e", "designation", "--designate", "2", "orders:0", "--yes", "--accept-loss", "7+", *CONNECTION)
    (line,) = audit.read(tmp_path / "state")
    assert (line.command, line.topic, line.partition, line.election, line.wanted) == (
        "elect",
        "orders",
        0,
        "designation",
        2,
    )
    assert (line.user, line.result, line.consent["accept_loss"]) == (WHO.user, "done", "7+")
