"""``kelr recover`` from the command line to the controller's state, on a simulated cluster."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.durable import AppendOnlyFile
from kelr.engine.planning import plan_id
from kelr.errors import UsageError
from kelr.model import Snapshot, TopicError, TopicPartition
from kelr.model.plan import Check, Finding, Passed, PlannedElection
from kelr.recovery import audit
from kelr.recovery.plan_file import read_plan
from kelr.rescue.dump import TailSource
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import read_snapshot, write_snapshot
from kelr.view.describe import NOTHING_READ
from tests.commands.conftest import Kelr, Ran
from tests.incident import INCIDENT
from tests.recovery import simulated
from tests.recovery.simulated import (
    WHO,
    Killed,
    SimulatedAdminClient,
    SimulatedSource,
    World,
    dies,
    leaderless,
    returns,
)
from tests.rescue.files import save, tail
from tests.view.test_schema import violations

CONNECTION = ("-b", "kafka-1:9092")
DESIGNATE_2 = ("--election-type", "designation", "--designate", "2")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    """Four partitions of ``orders`` without a leader: 2 and 3 are live, 2 holds more than 3, and 1, which led last and
    holds the most, is down. The current directory and the state are empty."""
    world = leaderless()
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: SimulatedSource(world))
    for module in ("recover_plan", "recover_collect"):
        monkeypatch.setattr(f"kelr.commands.{module}.now_ms", world.clock_ms)
    for module in ("recover_apply", "recover_verify", "recover_settle", "recovering"):
        monkeypatch.setattr(f"kelr.commands.{module}.MACHINE", world.ground)
    for module in ("apply", "resume", "undo", "clear_elr"):
        monkeypatch.setattr(f"kelr.recovery.{module}.Timeouts", world.patience)
    for module in ("recover_apply", "recovering"):
        monkeypatch.setattr(f"kelr.commands.{module}.hand_of", lambda _: SimulatedAdminClient(world))
        monkeypatch.setattr(f"kelr.commands.{module}.who_changes", lambda _: WHO)
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    return world


@pytest.fixture
def planned(kelr: Kelr, world: World) -> str:
    """A saved plan that designates 2 everywhere."""
    ran = kelr("recover", "plan", "orders", *DESIGNATE_2, "--out", "plan.json", *CONNECTION)
    assert ran.code == 0, ran.err
    assert leaders(world) == [None] * 4
    return "plan.json"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def leaders(world: World) -> list[int | None]:
    return [world.state(number).leader for number in range(4)]


def orders(world: World) -> list[tuple[int, ...]]:
    return [world.state(number).replicas for number in range(4)]


def apply(kelr: Kelr, *more: str) -> Ran:
    return kelr("recover", "apply", "plan.json", *more, *CONNECTION)


# Plan.


def test_what_kelr_recommends_is_planned_for_every_unsafe_partition(kelr: Kelr, world: World) -> None:
    ran = kelr("recover", "plan", *CONNECTION)
    assert ran.code == 0, ran.err
    assert "no election: 4 partitions, orders:0-3: Start broker 1" in ran.out
    assert "steady" not in ran.out
    told = " ".join(ran.out.split())
    read = "Do Read the disk of broker 1 before it starts, unless its last shutdown was clean (orders:0-3). Plan again"
    assert f"{read} with --logs broker-1.kelr: kelr recover collect --log-dir DIRECTORY --out broker-1.kelr" in told
    assert leaders(world) == [None] * 4


@pytest.mark.usefixtures("world")
def test_a_plan_that_is_not_saved_ends_with_the_command_that_saves_it(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "orders:0", *DESIGNATE_2, *CONNECTION)
    command = "kelr recover plan orders:0 --election-type designation --designate 2 --out plan.json -b kafka-1:9092"
    assert f"3. Save the plan in a file: {command}\n" in ran.out
    assert "1. Keep broker 1 down until its disk is saved." in ran.out
    assert "2. Keep broker 1 down until the election is done." in ran.out
    assert ran.err == ""


@pytest.mark.usefixtures("world")
def test_a_saved_plan_is_never_written_over_unasked(kelr: Kelr, planned: str) -> None:
    before = Path(planned).read_bytes()
    again = ("recover", "plan", "orders:0", *DESIGNATE_2, "--out", planned, *CONNECTION)
    assert kelr(*again).code == 2
    assert Path(planned).read_bytes() == before
    assert kelr(*again, "--overwrite").code == 0
    assert [str(one.address) for one in read_plan(Path(planned)).elections] == ["orders:0"]


def test_a_broker_that_is_gone_for_good_is_not_waited_for(kelr: Kelr, world: World) -> None:
    ran = kelr("recover", "plan", "orders:0-1", "--gone", "1", "--full", *CONNECTION)
    assert ran.code == 0, ran.err
    assert "Broker 1 was said to be gone for good. Designate 2: of brokers" in " ".join(ran.out.split())
    assert "Save the plan in a file: kelr recover plan orders:0-1 --gone 1 --out plan.json -b kafka-1:9092\n" in ran.out
    assert leaders(world) == [None] * 4
    saved = kelr("recover", "plan", "orders:0-1", "--gone", "1", "--out", "plan.json", *CONNECTION)
    assert saved.code == 0, saved.err
    assert [one.elect for one in read_plan(Path("plan.json")).elections] == [2, 2]
    assert read_plan(Path("plan.json")).gone == (1,)
    accept = str(read_plan(Path("plan.json")).loss_to_accept)
    assert apply(kelr, "--yes", "--accept-loss", accept).code == 0
    assert leaders(world) == [2, 2, None, None]


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--gone", "2"], 6, "--gone says that broker 2 will not come back, and it is live: nothing was planned"),
        (["--gone", "1,3", "--gone", "2"], 6, "brokers 2 and 3 will not come back, and they are live"),
        (["--gone", "17"], 2, "--gone names broker 17: the cluster knows no such broker, and no partition that was"),
        (["--gone", "one"], 2, "--gone names 'one', not a broker"),
        (["--gone", "1,"], 2, "--gone names '', not a broker"),
        (["--gone", "1", *DESIGNATE_2], 2, "--gone asks what kelr recommends for the brokers that are left"),
    ],
)
def test_who_cannot_be_gone(kelr: Kelr, options: list[str], code: int, words: str) -> None:
    ran = kelr("recover", "plan", "orders", *options, "--out", "plan.json", *CONNECTION)
    assert ran.code == code
    assert words in ran.err
    assert not Path("plan.json").exists()


@pytest.mark.parametrize(("text", "lifetime_ms"), [("90s", 90_000), ("30m", 1_800_000), ("2h", 7_200_000)])
def test_how_long_a_plan_may_be_applied(kelr: Kelr, world: World, text: str, lifetime_ms: int) -> None:
    ran = kelr("recover", "plan", "orders:0", *DESIGNATE_2, "--expires-in", text, "--out", "p.json", *CONNECTION)
    assert ran.code == 0, ran.err
    assert read_plan(Path("p.json")).expires_at_ms == world.clock_ms() + lifetime_ms


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--expires-in", "soon"], "--expires-in is 'soon', not a length of time"),
        (["--expires-in", "0m"], "not a length of time"),
        (["--expires-in", "8d"], "longer than 7 days"),
        (["--election-type", "designation"], "needs to know whom"),
        (["--designate", "2"], "names the leader of a designation"),
        (["--election-type", "fair"], "there is no election type 'fair'"),
        (["--markdown", "-o", "json"], "--markdown is a format of its own"),
    ],
)
def test_options_of_plan_that_say_nothing(kelr: Kelr, options: list[str], words: str) -> None:
    ran = kelr("recover", "plan", "orders", *options, *CONNECTION)
    assert (ran.code, words in ran.err) == (2, True), ran.err


@pytest.mark.usefixtures("world")
def test_an_unknown_topic_is_named_beside_the_plan_of_the_others(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "orders:0", "nowhere", *DESIGNATE_2, *CONNECTION)
    assert (ran.code, "nowhere: UNKNOWN_TOPIC_OR_PARTITION" in ran.err) == (7, True)
    assert ran.out.startswith("Plan: 1 election in topic orders. Nothing changed.\n")


@pytest.mark.usefixtures("world")
def test_markdown_is_short_first_and_folds_the_details(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "orders", *DESIGNATE_2, "--markdown", *CONNECTION)
    lines = ran.out.splitlines()
    assert lines[0].startswith("**Recovery plan `")
    assert any(line.startswith("| orders:0 | broker 2 |") for line in lines)
    assert (
        lines.index("<details><summary>Details</summary>") > lines.index("```sh") > lines.index("|---|---|---|---|---|")
    )
    assert lines[-1] == "</details>"
    assert max(map(len, lines[: lines.index("```sh")])) < 400


@pytest.mark.usefixtures("world")
def test_an_export_holds_the_files_and_lines_for_kafkas_own_tools(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "orders", *DESIGNATE_2, "--export", "by-hand", *CONNECTION)
    assert ran.code == 0, ran.err
    steps = Path("by-hand/steps.txt").read_text()
    assert "kafka-leader-election.sh --bootstrap-server kafka-1:9092 --election-type unclean" in steps
    assert "kafka-python admin -b kafka-1:9092 partitions alter-reassignments -r orders:" in steps
    assert "{" not in steps.replace("}}", "").replace(": None}", "")
    elect = json.loads(Path("by-hand/elect-unclean.json").read_text())
    assert elect == {"partitions": [{"topic": "orders", "partition": number} for number in range(4)]}
    again = kelr("recover", "plan", "orders", *DESIGNATE_2, "--export", "by-hand", *CONNECTION)
    assert (again.code, "exists already" in again.err) == (2, True)


def test_a_plan_of_a_snapshot_needs_no_cluster(kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_snapshot(INCIDENT, Path("incident.kelr"))
    ran = kelr("recover", "plan", "--snapshot", "incident.kelr", "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert violations(document, "plan") == []
    assert [item["status"] for item in document["items"]] == ["advised"] * 4


# Apply.


def test_a_plan_is_applied_and_every_order_is_as_it_was(kelr: Kelr, world: World, planned: str) -> None:
    before = orders(world)
    ran = apply(kelr, "--yes", "--accept-loss", "0+")
    assert ran.code == 0, ran.err
    assert leaders(world) == [2] * 4
    assert orders(world) == before
    assert ran.out.splitlines() == [
        "Done: 4 of 4 leaders elected.",
        "Lost        UNKNOWN: the log of broker 1 was not read. Accepted: unknown.",
        "            Lost once broker 1 starts, unless its disk is saved first:",
        "            kelr rescue dump --plan plan.json --from-replica 1 --log-dir DIRECTORY --out"
        " plan-from-1.kelr-rescue -b kafka-1:9092",
        f"Next        kelr recover verify {planned} --wait -b kafka-1:9092",
    ]
    again = apply(kelr, "--yes", "--accept-loss", "0+")
    assert (again.code, again.out.splitlines()[0]) == (0, "Nothing to do: 4 of 4 already done.")


@pytest.mark.usefixtures("planned")
def test_without_a_terminal_and_without_yes_it_is_refused(kelr: Kelr, world: World) -> None:
    """A script that took 0 for done went on without leaders."""
    ran = apply(kelr, "--accept-loss", "0+")
    assert ran.code == 6
    assert ran.out.startswith("Recheck: 4 of 4 can run. Nothing changed.\n")
    assert "error: not confirmed; nothing changed [no-terminal]" in ran.err
    assert "add --yes" in ran.err
    lacks = apply(kelr)
    assert (lacks.code, "--accept-loss unknown" in lacks.err) == (6, True)
    assert leaders(world) == [None] * 4


@pytest.mark.usefixtures("planned")
def test_yes_never_stands_for_an_accepted_loss(kelr: Kelr, world: World) -> None:
    ran = apply(kelr, "--yes")
    assert (ran.code, "missing: --accept-loss unknown" in ran.err) == (6, True)
    assert leaders(world) == [None] * 4


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(
    ("typed", "code", "leader"), [("0+\n", 0, 2), ("0\n", 6, None), ("5+\n", 6, None), ("y\n", 6, None), ("", 6, None)]
)
def test_on_a_terminal_the_number_is_typed(
    kelr: Kelr, world: World, terminal: Callable[[str], None], *, typed: str, code: int, leader: int | None
) -> None:
    terminal(typed)
    ran = apply(kelr)
    assert (ran.code, leaders(world)) == (code, [leader] * 4), ran.err


@pytest.mark.usefixtures("planned")
def test_what_changed_is_named_field_by_field_with_one_command_to_plan_again(kelr: Kelr, world: World) -> None:
    returns(world, 1)
    assert leaders(world) == [1] * 4
    ran = apply(kelr, "--yes", "--accept-loss", "0+")
    assert ran.code == 6
    assert ran.out.startswith("Not done: 0 of 4 leaders elected, 4 refused. Exit code 6.\n")
    assert "(leader: planned none, now 1)." in ran.out
    again = "kelr recover plan orders:0-3 --election-type designation --designate 2 --out plan-again.json"
    assert ran.out.count(f"Fix: {again} -b kafka-1:9092\n") == ran.out.count("kelr ") == 1
    assert leaders(world) == [1] * 4


@pytest.mark.usefixtures("planned")
def test_what_was_refused_has_its_line_in_the_audit_log(kelr: Kelr, world: World, tmp_path: Path) -> None:
    """Who tried which plan, and why not; a dry run tries nothing. Where others are elected, each has one line."""
    SimulatedAdminClient(world).reorder({TopicPartition("orders", 1): (3, 1, 2)})
    assert apply(kelr, "--dry-run").code == 6
    assert list(audit.read(tmp_path / "state")) == []
    assert apply(kelr, "--yes", "--accept-loss", "0+", "--topic", "orders").code == 7
    lines = {one.partition: one for one in audit.read(tmp_path / "state")}
    assert {number: one.result for number, one in lines.items()} == {0: "done", 1: "refused", 2: "done", 3: "done"}
    returns(world, 1)
    before = list(audit.read(tmp_path / "state"))
    assert "3 already done, 1 refused" in apply(kelr, "--yes", "--accept-loss", "0+").out
    refused = list(audit.read(tmp_path / "state"))[len(before) :]
    assert [(one.partition, one.result, one.command) for one in refused] == [(1, "refused", "recover apply")]
    (line,) = refused
    assert (line.user, line.host, line.plan_id, line.journal, line.asked) == (
        WHO.user,
        WHO.host,
        plan_id(read_plan(Path("plan.json"))),
        None,
        False,
    )
    assert line.text.startswith("what the plan stood on has changed: Broker 1 leads now")


@pytest.mark.parametrize("options", [("--dry-run",), ("--yes", "--accept-loss", "99+")])
def test_a_better_replica_that_is_back_is_not_planned_past_again(
    kelr: Kelr, world: World, options: tuple[str, ...]
) -> None:
    dies(world, 2)()
    designate_3 = ("--election-type", "designation", "--designate", "3")
    assert kelr("recover", "plan", "orders", *designate_3, "--out", "plan.json", *CONNECTION).code == 0
    returns(world, 2)
    ran = apply(kelr, *options)
    assert "with a better log than 3: plan again" in " ".join(ran.out.split())
    assert "kelr recover plan orders:0-3 --out plan-again.json" in ran.out + ran.err
    assert "--designate 3" not in ran.out + ran.err


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("words", [("undo",), ("resume",), ("status", "--plan"), ("plan", "--out")])
def test_a_name_that_no_file_can_have_is_an_error_of_who_typed_it(kelr: Kelr, words: tuple[str, ...]) -> None:
    ran = kelr("recover", *words, "a" * 300, *CONNECTION)
    assert ran.code == 2, ran
    assert len(ran.err) < 300


@pytest.mark.usefixtures("planned")
def test_the_rest_goes_on_where_some_are_refused(kelr: Kelr, world: World) -> None:
    at = TopicPartition("orders", 1)
    assert world.state(1).replicas == (3, 2, 1)
    SimulatedAdminClient(world).reorder({at: (3, 1, 2)})
    ran = apply(kelr, "--yes", "--accept-loss", "0+")
    assert ran.code == 7, ran.err
    assert leaders(world) == [2, None, 2, 2]
    assert ran.out.startswith("Partly done: 3 of 4 leaders elected, 1 refused. Exit code 7.\n")
    assert "Fix: kelr recover plan orders:1 --election-type designation" in ran.out
    assert "Next        kelr recover verify plan.json --wait" in ran.out


@pytest.mark.usefixtures("planned")
def test_a_part_of_a_plan_is_applied_by_topic(kelr: Kelr, world: World) -> None:
    wrong = apply(kelr, "--topic", "order", "--yes")
    assert (wrong.code, "elects no leader of topic order" in wrong.err, "orders" in wrong.err) == (2, True, True)
    assert apply(kelr, "--topic", "orders", "--batch", "1", "--yes", "--accept-loss", "0+").code == 0
    assert leaders(world) == [2] * 4


@pytest.mark.usefixtures("planned")
def test_without_consent_each_election_is_refused_in_the_audit_log(kelr: Kelr, tmp_path: Path) -> None:
    """A run that was refused as a whole left no line. Without a terminal and --yes nothing was tried."""
    assert apply(kelr).code == 6
    assert list(audit.read(tmp_path / "state")) == []
    assert apply(kelr, "--yes", "--accept-loss", "3").code == 6
    lines = list(audit.read(tmp_path / "state"))
    assert [(one.partition, one.result, one.journal, one.asked) for one in lines] == [
        (number, "refused", None, False) for number in range(4)
    ]
    assert all(one.text.startswith("loss not accepted: missing: --accept-loss unknown (4 elec") for one in lines)
    assert {one.consent["accept_loss"] for one in lines} == {"3"}


@pytest.mark.usefixtures("planned")
def test_an_expired_plan_is_refused_with_the_command_to_plan_again(kelr: Kelr, world: World, tmp_path: Path) -> None:
    world.now_s += 3600
    assert apply(kelr, "--dry-run", "--yes").code == 6
    assert list(audit.read(tmp_path / "state")) == []
    ran = apply(kelr, "--yes", "--accept-loss", "0+")
    assert (ran.code, "error: plan expired 0 seconds ago; nothing changed [plan-expired]\n  why: the" in ran.err) == (
        6,
        True,
    ), ran.err
    assert "kelr recover plan orders:0-3 --election-type designation --designate 2 --out plan-again.json" in ran.err
    assert leaders(world) == [None] * 4
    lines = list(audit.read(tmp_path / "state"))
    assert [(one.partition, one.result, one.text) for one in lines] == [
        (number, "refused", "plan expired 0 seconds ago: the cluster may have changed since") for number in range(4)
    ]


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("command", ["apply", "verify", "status", "undo"])
def test_a_plan_of_another_cluster_is_refused_with_both_clusters_and_the_way_to_the_right_one(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, world: World, command: str
) -> None:
    wanted = simulated.CLUSTER_ID
    monkeypatch.setattr(simulated, "CLUSTER_ID", "another-cluster-entirel")
    ran = kelr("recover", command, "plan.json", *CONNECTION)
    assert ran.code == 6
    name = "the plan" if command == "status" else "plan.json"
    changing = "; nothing changed" if command in {"apply", "undo"} else ""
    assert (
        f"{name} is for cluster {wanted}, and cluster another-cluster-entirel answered at {CONNECTION[1]}{changing}"
    ) in ran.err
    assert f"fix: name a broker of cluster {wanted} with -b, or a context of it with -c" in ran.err
    contexts = f'[contexts.prod]\nbootstrap_server = "kafka-1:9092"\ncluster_id = "{wanted}"\n'
    Path("contexts.toml").write_text(contexts)
    monkeypatch.setenv("KELR_CONFIG_DIR", ".")
    ran = kelr("recover", command, "plan.json", *CONNECTION)
    assert (ran.code, f"fix: connect to cluster {wanted} with -c prod" in ran.err) == (6, True), ran.err
    assert leaders(world) == [None] * 4


@pytest.mark.usefixtures("planned")
def test_what_a_plan_loses_is_not_saved_from_another_cluster(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = simulated.CLUSTER_ID
    monkeypatch.setattr(simulated, "CLUSTER_ID", "another-cluster-entirel")
    ran = kelr("rescue", "dump", "--plan", "plan.json", "--out", "x.kelr-rescue", *CONNECTION)
    assert (ran.code, Path("x.kelr-rescue").exists()) == (6, False)
    assert f"plan.json is for cluster {wanted}, and cluster another-cluster-entirel answered at kafka-1:9092" in ran.err


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("how", ["--yes", "--dry-run"])
def test_a_snapshot_is_never_what_a_cluster_is_changed_on(kelr: Kelr, planned: str, how: str) -> None:
    write_snapshot(INCIDENT, Path("incident.kelr"))
    ran = kelr("recover", "apply", planned, how, "--snapshot", "incident.kelr")
    assert (ran.code, "is a saved snapshot" in ran.err) == (2, True)
    assert "give --bootstrap-server or --context in place of --snapshot" in ran.err
    assert "add --dry-run" not in ran.err


def test_a_plan_of_a_snapshot_is_applied_to_a_cluster(
    kelr: Kelr, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_snapshot(INCIDENT, Path("incident.kelr"))
    ran = kelr("recover", "plan", "orders:1", "-e", "unclean", "--out", "p.json", "--snapshot", "incident.kelr")
    assert ran.code == 0, ran.err
    assert "1. kelr rescue dump --plan p.json --out p.kelr-rescue -b HOST:PORT\n" in ran.out


def edit(path: str, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(Path(path).read_text())
    change(document)
    Path(path).write_text(json.dumps(document, indent=2))


def test_an_edited_plan_is_refused(kelr: Kelr, world: World, planned: str) -> None:
    edit(planned, lambda document: document["elections"].pop())
    ran = apply(kelr, "--yes", "--accept-loss", "unknown")
    assert (ran.code, leaders(world)) == (2, [None] * 4)
    assert "plan.json: garbled plan: its content is not the one that kelr wrote" in ran.err
    assert "make the plan again with kelr recover plan" in ran.err


def test_an_edited_plan_with_a_typo_names_file_and_place(kelr: Kelr, world: World, planned: str) -> None:
    edit(planned, lambda document: document["elections"][0].update(elcet=document["elections"][0].pop("elect")))
    ran = apply(kelr, "--yes")
    assert "plan.json: garbled plan: elections[0]" in ran.err, ran.err
    assert ("elcet" in ran.err, "elect" in ran.err, ran.code) == (True, True, 2)
    assert leaders(world) == [None] * 4


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize(
    "options",
    [
        ["--batch", "0"],
        ["--pause", "-1"],
        ["--pause", "nan"],
        ["--accept-loss", "-1"],
        ["--force", " "],
        ["--force", "REASON"],
    ],
)
def test_options_of_apply_that_make_no_sense(kelr: Kelr, options: list[str]) -> None:
    assert apply(kelr, "--yes", *options).code == 2


@pytest.mark.usefixtures("planned")
def test_keep_order_leaves_the_wanted_replica_first(kelr: Kelr, world: World) -> None:
    assert apply(kelr, "--yes", "--accept-loss", "0+", "--keep-order").code == 0
    assert {order[0] for order in orders(world)} == {2}
    ran = kelr("recover", "verify", "plan.json", *CONNECTION)
    assert "--keep-order" in ran.out


def test_the_document_of_apply_is_as_its_schema_says(kelr: Kelr, planned: str) -> None:
    for flags, code in ((("--dry-run",), 0), ((), 6)):
        dry = kelr("recover", "apply", planned, "--accept-loss", "0+", *flags, "-o", "json", *CONNECTION)
        assert (dry.code, violations(json.loads(dry.out), "applied")) == (code, [])
        assert {item["result"]["ended"] for item in json.loads(dry.out)["items"]} == {"not-tried"}
    done = kelr("recover", "apply", planned, "--yes", "--accept-loss", "0+", "-o", "json", *CONNECTION)
    document = json.loads(done.out)
    assert (done.code, violations(document, "applied")) == (0, [])
    assert document["ended"] == {"done": 4}


# Verify.


@pytest.mark.usefixtures("planned")
def test_verify_says_what_is_not_yet_before_the_plan_is_applied(kelr: Kelr) -> None:
    ran = kelr("recover", "verify", "plan.json", *CONNECTION)
    assert ran.code == 1
    assert "no leader, as before the plan" in ran.out
    assert "Next     kelr recover apply plan.json -b kafka-1:9092\n" in ran.out


@pytest.mark.usefixtures("planned")
def test_verify_of_a_plan_that_was_refused_leads_to_a_new_one(kelr: Kelr, world: World) -> None:
    """It led to the dump of what the plan would lose, and to apply, which refuses it again."""
    SimulatedAdminClient(world).reorder({TopicPartition("orders", number): (1, 2, 3) for number in range(4)})
    assert apply(kelr, "--yes", "--accept-loss", "0+").code == 6
    ran = kelr("recover", "verify", "plan.json", *CONNECTION)
    assert ran.code == 1
    text = " ".join(ran.out.split())
    assert "and it was refused: what the plan stood on has changed: Somebody has reordered the replicas: it was" in text
    assert "Next kelr recover plan orders:0-3 --election-type designation --designate 2 --out plan-again.json" in text


@pytest.mark.usefixtures("planned")
def test_verify_after_the_plan_was_applied_says_what_only_a_live_cluster_tells(kelr: Kelr) -> None:
    apply(kelr, "--yes", "--accept-loss", "0+")
    ran = kelr("recover", "verify", "plan.json", "-o", "json", *CONNECTION)
    document = json.loads(ran.out)
    assert violations(document, "verification") == []
    passed = {(item["partition"], item["check"]): item["passed"] for item in document["items"]}
    assert {passed[number, "leader"] for number in range(4)} == {"yes"}
    assert {passed[number, "order"] for number in range(4)} == {"yes"}
    assert {passed[number, "groups"] for number in range(4)} == {"unknown"}
    assert (ran.code, document["good"], document["no"]) == (1, False, 0)
    table = list(csv.DictReader(io.StringIO(kelr("recover", "verify", "plan.json", "-o", "csv", *CONNECTION).out)))
    assert {row["check"] for row in table} == {item["check"] for item in document["items"]}


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("more", [(), ("--wait-for", "1"), ("-o", "json")])
def test_verify_says_that_no_controller_answered(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """Brokers then tell what they knew last, who leads among it."""
    apply(kelr, "--yes", "--accept-loss", "0+")
    words = "no controller answers (REQUEST_TIMED_OUT): what brokers tell may be out of date"
    assert words not in kelr("recover", "verify", "plan.json", *more, *CONNECTION).err
    monkeypatch.setattr(SimulatedSource, "controller_silence", "REQUEST_TIMED_OUT", raising=False)
    ran = kelr("recover", "verify", "plan.json", *more, *CONNECTION)
    assert ran.code == 1
    assert "all is well" not in ran.out
    if "json" in more:
        assert words in ran.err
        assert json.loads(ran.out)["silence"] == "REQUEST_TIMED_OUT"
        assert json.loads(ran.out)["good"] is False
    else:
        assert ran.out.startswith(f"N{words[1:]}")


@pytest.mark.usefixtures("planned")
def test_verify_takes_a_part_and_a_time_to_wait(kelr: Kelr) -> None:
    assert kelr("recover", "verify", "plan.json", "--wait-for", "0", *CONNECTION).code == 2
    assert kelr("recover", "verify", "plan.json", "--topic", "none", *CONNECTION).code == 2
    ran = kelr("recover", "verify", "plan.json", "--wait-for", "5", *CONNECTION)
    assert (ran.code, ran.err.count("waiting for leader of orders:0-3\n")) == (1, 1)


@pytest.mark.usefixtures("planned")
def test_what_was_waited_for_in_vain_leads_on(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below min ISR a replay is refused, and looking again brings no broker back."""
    apply(kelr, "--yes", "--accept-loss", "0+")
    monkeypatch.setattr("kelr.recovery.verify.findings", not_in_sync_yet)
    again = f"Next     kelr recover verify plan.json --wait {' '.join(CONNECTION)}\n"
    assert again in kelr("recover", "verify", "plan.json", *CONNECTION).out
    ran = kelr("recover", "verify", "plan.json", "--wait-for", "5", *CONNECTION)
    assert (ran.code, f"Next     kelr explain orders:0-3 {' '.join(CONNECTION)}\n" in ran.out) == (1, True)


def not_in_sync_yet(planned: PlannedElection, _seen: object) -> list[Finding]:
    return [Finding(planned.topic, planned.partition, Check.ISR, Passed.NOT_YET, "the ISR is [1], under min ISR 2")]


# Status, resume, undo, log.


def kill_at(kelr: Kelr, world: World, moment: int) -> None:
    """Apply the plan, and be killed on the way."""
    world.kill_at = len(world.moments) + moment
    with pytest.raises(Killed):
        apply(kelr, "--yes", "--accept-loss", "0+")
    world.revive()


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("command", ["resume", "undo"])
def test_a_run_that_was_cut_short_is_shown_and_settled(kelr: Kelr, world: World, command: str) -> None:
    before = orders(world)
    kill_at(kelr, world, 1)  # right after the reordering
    assert orders(world) != before
    left = kelr("recover", "status", *CONNECTION)
    assert (left.code, "cut short" in left.out, "next: kelr recover resume" in left.err) == (1, True, True)
    document = json.loads(kelr("recover", "status", "plan.json", "-o", "json", *CONNECTION).out)
    assert violations(document, "recovery-status") == []
    assert (document["clean"], len(document["journals"])) == (False, 1)
    refused = kelr("recover", command, *CONNECTION)
    assert (refused.code, "missing: --yes (no terminal to ask on)" in refused.err) == (6, True)
    assert orders(world) != before
    ran = kelr("recover", command, "--yes", "-o", "json", *CONNECTION)
    settled = json.loads(ran.out)
    assert (ran.code, violations(settled, "put-right"), settled["closed"]) == (0, [], True), ran.err
    assert orders(world) == before
    assert leaders(world) == ([2] * 4 if command == "resume" else [None] * 4)
    assert kelr("recover", "status", "plan.json", *CONNECTION).code == 0


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("command", ["resume", "undo"])
def test_a_journal_of_another_cluster_is_refused_by_name_and_told_of_without_one(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, world: World, command: str
) -> None:
    wanted = simulated.CLUSTER_ID
    kill_at(kelr, world, 1)
    reordered = orders(world)
    (journal,) = Path("state").rglob("journals/*.jsonl")
    monkeypatch.setattr(simulated, "CLUSTER_ID", "another-cluster-entirel")
    for name in (journal.stem, str(journal)):
        ran = kelr("recover", command, name, "--yes", *CONNECTION)
        assert ran.code == 6
        assert (
            f"journal {journal.stem} is for cluster {wanted}, and cluster another-cluster-entirel answered at"
            " kafka-1:9092; nothing changed"
        ) in ran.err
    ran = kelr("recover", command, *CONNECTION)
    note = f"journal {journal.stem} is open, and is of another cluster: {wanted}"
    assert (ran.code, note in ran.err) == (0, True)
    assert orders(world) == reordered


@pytest.mark.usefixtures("planned")
def test_to_undo_a_plan_closes_the_journal_of_its_run(kelr: Kelr, world: World) -> None:
    before = orders(world)
    kill_at(kelr, world, 1)
    assert kelr("recover", "undo", "plan.json", "--yes", *CONNECTION).code == 0
    assert (orders(world), leaders(world)) == (before, [None] * 4)
    assert kelr("recover", "status", *CONNECTION).code == 0


@pytest.mark.usefixtures("world")
def test_there_is_nothing_to_settle_where_nothing_was_begun(kelr: Kelr) -> None:
    ran = kelr("recover", "status", *CONNECTION)
    here = "Nothing to repair of this machine's runs. A run elsewhere: kelr recover status PLAN\n"
    assert (ran.code, ran.out) == (0, here)
    for command in ("resume", "undo"):
        ran = kelr("recover", command, *CONNECTION)
        assert ran.code == 0
        assert ran.out == "Nothing to repair: no order and no config was changed.\n"


@pytest.mark.usefixtures("planned")
def test_an_order_left_behind_is_found_and_undone_without_its_journal(
    kelr: Kelr, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = orders(world)
    kill_at(kelr, world, 1)
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "another-machine"))
    ran = kelr("recover", "status", "plan.json", *CONNECTION)
    assert (ran.code, "next: kelr recover undo plan.json" in ran.err) == (1, True)
    assert kelr("recover", "undo", "plan.json", *CONNECTION).code == 6
    assert kelr("recover", "undo", "plan.json", "--yes", *CONNECTION).code == 0
    assert orders(world) == before
    assert kelr("recover", "undo", "plan.json", *CONNECTION).code == 0
    # Without a controller brokers may show the order of before.
    monkeypatch.setattr(SimulatedSource, "controller_silence", "REQUEST_TIMED_OUT", raising=False)
    ran = kelr("recover", "undo", "plan.json", *CONNECTION)
    assert (ran.code, ran.out) == (6, "")
    assert "no controller answers (REQUEST_TIMED_OUT)" in ran.err


@pytest.mark.usefixtures("planned")
def test_the_log_tells_who_did_what(kelr: Kelr) -> None:
    assert "nothing in" in kelr("recover", "log").err
    apply(kelr, "--yes", "--accept-loss", "0+")
    document = json.loads(kelr("recover", "log", "-o", "json").out)
    assert violations(document, "audit-log") == []
    assert [item["partition"] for item in document["items"]] == [0, 1, 2, 3]
    assert {(item["user"], item["result"], item["wanted"]) for item in document["items"]} == {(WHO.user, "done", 2)}
    assert "ada@laptop as User:ada" in kelr("recover", "log", "--since", "2023-11-14T00:00:00Z").out
    assert json.loads(kelr("recover", "log", "--topic", "other", "-o", "json").out)["items"] == []
    assert json.loads(kelr("recover", "log", "--since", "2100-01-01T00:00:00Z", "-o", "json").out)["items"] == []
    assert kelr("recover", "log", "--since", "lately").code == 2


@pytest.mark.usefixtures("planned")
def test_the_log_takes_the_flags_of_a_cluster_and_shows_what_concerns_it(kelr: Kelr, tmp_path: Path) -> None:
    apply(kelr, "--yes", "--accept-loss", "0+")
    (line, *_) = audit.read(tmp_path / "state")
    audit.append(tmp_path / "state", replace(line, cluster_id="another", topic="payments"))
    topics = [item["topic"] for item in json.loads(kelr("recover", "log", "-o", "json").out)["items"]]
    assert topics == ["orders"] * 4 + ["payments"]
    assert len(json.loads(kelr("recover", "log", "-o", "json", "--timeout", "5").out)["items"]) == 5
    ran = kelr("recover", "log", "-o", "json", *CONNECTION)
    assert [item["topic"] for item in json.loads(ran.out)["items"]] == ["orders"] * 4


def test_a_part_of_a_plan_is_verified_as_it_was_applied(kelr: Kelr, planned: str) -> None:
    ran = apply(kelr, "--topic", "orders", "--yes", "--accept-loss", "0+")
    assert f"Next        kelr recover verify {planned} --topic orders --wait" in ran.out


@pytest.mark.usefixtures("planned")
def test_results_are_told_although_they_could_not_be_written_down(
    kelr: Kelr, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = AppendOnlyFile.append

    def full(file: AppendOnlyFile, *records: Mapping[str, object]) -> None:
        if records and file.path.name == "audit.jsonl":
            raise UsageError(f"cannot write {file.path}: No space left on device")
        append(file, *records)

    with monkeypatch.context() as patch:
        patch.setattr(AppendOnlyFile, "append", full)
        ran = apply(kelr, "--yes", "--accept-loss", "0+")
    assert leaders(world) == [2] * 4
    assert (ran.code, "No space left on device" in ran.err) == (7, True)
    assert "Done: 4 of 4 leaders elected. Exit code 7.\n" in ran.out
    assert "Next        kelr recover resume" in ran.out
    resumed = kelr("recover", "resume", "--yes", *CONNECTION)
    assert resumed.code == 0, resumed.err
    items = json.loads(kelr("recover", "log", "-o", "json").out)["items"]
    assert [(item["partition"], item["result"], item["command"]) for item in items] == [
        (number, "done", "recover apply") for number in range(4)
    ]


@pytest.mark.usefixtures("world")
def test_nothing_to_resume_is_well(kelr: Kelr) -> None:
    """Scripts run it after every failure, whether something was left behind or not."""
    ran = kelr("recover", "resume", *CONNECTION)
    assert (ran.code, ran.out) == (0, "Nothing to repair: no order and no config was changed.\n")
    document = json.loads(kelr("recover", "resume", "-o", "json", *CONNECTION).out)
    assert (violations(document, "put-right"), document["journal"], document["closed"]) == ([], None, True)
    assert kelr("recover", "resume", "nonsense", *CONNECTION).code == 2


# Hold.


@pytest.mark.parametrize("command", ["hold", "apply", "elect"])
def test_a_run_that_was_cut_short_is_named_by_every_command_that_changes(
    kelr: Kelr, world: World, planned: str, command: str
) -> None:
    kill_at(kelr, world, 1)
    arguments = {
        "hold": ("recover", "clear-elr", "--topic", "orders", "--yes-clear-elr-of", "orders"),
        "apply": ("recover", "apply", planned, "--yes", "--accept-loss", "0+"),
        "elect": ("elect", "-e", "unclean", "orders", "--accept-loss", "1000+"),
    }
    ran = kelr(*arguments[command], *CONNECTION)
    assert (ran.code, world.moments) == (6, [])
    assert "an earlier run was cut short that concerns orders:0" in ran.err
    assert "fix: kelr recover resume -b kafka-1:9092, or kelr recover undo -b kafka-1:9092" in ran.err


@pytest.mark.usefixtures("world")
def test_clear_elr_shows_its_price_and_asks_for_the_topic_by_name(
    kelr: Kelr, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = kelr("recover", "clear-elr", "--topic", "orders", "--dry-run", "-o", "json", *CONNECTION)
    document = json.loads(dry.out)
    assert (dry.code, violations(document, "hold"), document["done"]) == (0, [], False)
    assert [item["last_known_elr"] for item in document["items"]] == [[1]] * 4
    force = ("--force", "1 burned down") if document["needs_force"] else ()
    assert bool(force) == any(item["clean"] for item in document["items"])
    asked = kelr("recover", "clear-elr", "--topic", "orders", *force, *CONNECTION)
    assert (asked.code, "--yes-clear-elr-of orders" in asked.err) == (6, True)
    assert (
        kelr("recover", "clear-elr", "--topic", "orders", "--yes-clear-elr-of", "order", *force, *CONNECTION).code == 2
    )
    monkeypatch.setattr("sys.stdin", Terminal("order\n"))
    assert kelr("recover", "clear-elr", "--topic", "orders", *force, *CONNECTION).code == 6
    assert world.state().last_known_elr == (1,)
    monkeypatch.setattr("sys.stdin", Terminal("orders\n"))
    ran = kelr("recover", "clear-elr", "--topic", "orders", *force, *CONNECTION)
    assert ran.code == 0, ran.err
    assert [(world.state(number).elr, world.state(number).last_known_elr) for number in range(4)] == [((), ())] * 4
    assert "ELR and LastKnownELR of 4 partitions are empty; min.insync.replicas has its old value" in ran.out
    planned = kelr("recover", "plan", *CONNECTION)
    assert "or read its disk" in " ".join(planned.out.split())
    collect = "on its host: kelr recover collect --log-dir DIRECTORY --out broker-1.kelr"
    assert collect in " ".join(planned.out.split())


@pytest.mark.usefixtures("world")
def test_a_clean_candidate_is_thrown_away_only_with_a_reason(kelr: Kelr, world: World) -> None:
    ran = kelr("recover", "clear-elr", "--topic", "orders", "--yes-clear-elr-of", "orders", *CONNECTION)
    assert (ran.code, "would lead" in ran.err, "--force" in ran.err) == (6, True, True)
    assert "  next: kelr explain orders -b" in ran.err
    pasted = kelr("recover", "clear-elr", "orders", "--yes-clear-elr-of", "orders", "--force", "REASON", *CONNECTION)
    assert (pasted.code, "'REASON' stands for a reason, and is none" in pasted.err) == (2, True)
    assert world.state().elr == (1,)


@pytest.mark.usefixtures("world")
def test_clear_elr_takes_its_topic_as_a_target_too(kelr: Kelr) -> None:
    as_flag, as_target = (
        kelr("recover", "clear-elr", *named, "--dry-run", *CONNECTION) for named in (("--topic", "orders"), ("orders",))
    )
    assert as_flag == as_target == kelr("recover", "hold", "orders", "--dry-run", *CONNECTION)  # its old name
    assert as_flag.code == 0
    for wrong in ((), ("orders", "--topic", "orders")):
        ran = kelr("recover", "clear-elr", *wrong, "--dry-run", *CONNECTION)
        assert (ran.code, "fix: name it once: kelr recover clear-elr orders --dry-run" in ran.err) == (2, True)


@pytest.mark.usefixtures("world")
def test_nothing_to_undo_names_what_to_do(kelr: Kelr) -> None:
    ran = kelr("recover", "undo", *CONNECTION)
    assert (ran.code, ran.out) == (0, "Nothing to repair: no order and no config was changed.\n")
    assert ran.err == "to undo a run that ended, name its journal or plan; kelr recover log lists them\n"


class Impatient(Terminal):
    """Somebody who presses Ctrl-C where a question is asked."""

    def readline(self, _size: int = -1) -> str:  # type: ignore[override]
        raise KeyboardInterrupt


@pytest.mark.usefixtures("planned")
def test_ctrl_c_at_the_question_says_that_nothing_was_changed(
    kelr: Kelr, terminal: Callable[[str | Terminal], None], world: World
) -> None:
    terminal(Impatient())
    ran = kelr("recover", "apply", "plan.json", *CONNECTION)
    assert (ran.code, ran.err.splitlines()[-1].rpartition("kelr: ")[2]) == (130, "interrupted: nothing was changed")
    assert leaders(world) == [None] * 4


@pytest.mark.usefixtures("planned")
def test_a_document_of_a_consent_that_lacks_has_the_command_with_it(kelr: Kelr, world: World) -> None:
    ran = kelr("recover", "apply", "plan.json", "--yes", "-o", "json", *CONNECTION)
    assert ran.code == 6
    following = json.loads(ran.out)["next"]
    assert "kelr recover apply plan.json --yes --accept-loss" in following
    assert leaders(world) == [None] * 4
    assert kelr(*shlex.split(following)[1:]).code == 0
    assert leaders(world) == [2] * 4


# Collect.


@pytest.mark.usefixtures("world")
def test_a_collection_of_a_live_cluster_holds_the_unsafe_partitions(kelr: Kelr) -> None:
    ran = kelr("recover", "collect", "--out", "live.kelr", "-o", "json", *CONNECTION)
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert violations(document, "collection") == []
    (item,) = document["items"]
    assert (item["broker"], item["logs"] + item["unreadable"]) == (None, 12)
    assert {state.topic for state in read_snapshot(Path("live.kelr")).partitions} == {"orders"}
    again = kelr("recover", "collect", "--out", "live.kelr", *CONNECTION)
    assert (again.code, "exists already" in again.err) == (2, True)


@pytest.mark.usefixtures("world")
def test_nothing_is_collected_where_nothing_is_unsafe(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = replace(INCIDENT, partitions=INCIDENT.partitions[:1])
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(healthy))
    ran = kelr("recover", "collect", "--out", "live.kelr", *CONNECTION)
    assert (ran.code, Path("live.kelr").exists(), "nothing was written" in ran.err) == (0, False, True)
    assert kelr("recover", "collect", "--out", "live.kelr", "orders:0", *CONNECTION).code == 0
    assert [str(state.address) for state in read_snapshot(Path("live.kelr")).partitions] == ["orders:0"]


@pytest.mark.usefixtures("world")
def test_a_collection_says_what_it_could_not_look_at(kelr: Kelr, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = (TopicError("hidden", "TOPIC_AUTHORIZATION_FAILED"),)
    snapshot = replace(INCIDENT, topic_errors=refused)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(snapshot))
    some = kelr("recover", "collect", "--out", "some.kelr", "orders", "hidden", *CONNECTION)
    assert (some.code, "1 topic could not be described: hidden" in some.err) == (7, True)
    none = kelr("recover", "collect", "--out", "none.kelr", "hidden", *CONNECTION)
    assert (none.code, "the principal needs DESCRIBE" in none.err) == (4, True)
    healthy = replace(INCIDENT, partitions=INCIDENT.partitions[:1], topic_errors=refused)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(healthy))
    ran = kelr("recover", "collect", "--out", "all.kelr", *CONNECTION)
    assert (ran.code, "hidden" in ran.err, "every partition has its leader" in ran.err) == (7, True, False)


@pytest.mark.usefixtures("world")
def test_options_of_collect_that_contradict_each_other(kelr: Kelr) -> None:
    both = kelr("recover", "collect", "--out", "x", "--log-dir", ".", "--merge", "y")
    assert (both.code, "leave one of them out" in both.err) == (2, True)
    assert kelr("recover", "collect", "orders", "--out", "x", "--merge", "y").code == 2
    kelr("recover", "collect", "--out", "live.kelr", *CONNECTION)
    snapshot = kelr("recover", "collect", "--out", "x", "--merge", "live.kelr")
    assert (snapshot.code, "is a snapshot of a cluster" in snapshot.err) == (2, True)
    assert not Path("x").exists()


@pytest.mark.usefixtures("world")
def test_a_plan_without_a_broker_whose_disk_nobody_read_leads_to_that_disk(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "orders:0", "--gone", "1", "--out", "p.json", *CONNECTION)
    flags = " ".join(CONNECTION)
    told = "kelr rescue dump --plan p.json --from-replica 1 --log-dir DIRECTORY --out p-from-1.kelr-rescue"
    lines = [line.strip() for line in ran.out.splitlines()]
    assert "1. Keep broker 1 down until its disk is saved. On the host of broker 1" in " ".join(lines)
    assert lines.index(f"{told} {flags}") < next(
        at for at, line in enumerate(lines) if line.endswith(f"kelr recover apply p.json --accept-loss unknown {flags}")
    )
    # It is named once more where it would be passed by, until it is done.
    dry_run = ("recover", "apply", "p.json", "--dry-run", *CONNECTION)
    assert told in kelr(*dry_run).out
    save(Path("p-from-1.kelr-rescue"), [(tail([], 5, 5, replica=1)[0], TailSource("log directory", lambda *_: []))])
    ran = kelr(*dry_run)
    assert "rescue" not in ran.out + ran.err
    assert "DIRECTORY" not in ran.out + ran.err


@pytest.mark.usefixtures("world")
def test_records_on_a_dead_brokers_disk_come_with_the_command_for_its_host(kelr: Kelr) -> None:
    """2 is given up for 3: what 2 has is fetched; what a disk of 1 has is read there."""
    designate_3 = ("--election-type", "designation", "--designate", "3")
    ran = kelr("recover", "plan", "orders:0", *designate_3, "--out", "p.json", *CONNECTION)
    assert "kelr rescue dump --plan p.json --out p.kelr-rescue -b kafka-1:9092" in ran.out
    # Nobody has read what the disk of broker 1 holds.
    on_its_host = "kelr rescue dump --plan p.json --from-replica 1 --log-dir DIRECTORY --out p-from-1.kelr-rescue"
    assert [line.strip() for line in ran.out.splitlines() if "rescue dump --plan" in line] == [
        "Do      1. kelr rescue dump --plan p.json --out p.kelr-rescue -b kafka-1:9092",
        f"{on_its_host} -b kafka-1:9092",
    ]
    assert "2. Keep broker 1 down until its disk is saved. On the host of broker 1" in " ".join(ran.out.split())


@pytest.mark.parametrize("command", ["resume", "undo"])
@pytest.mark.usefixtures("planned")
def test_what_is_left_is_settled_at_a_terminal_after_a_yes(
    kelr: Kelr, world: World, terminal: Callable[[str], None], command: str
) -> None:
    before = orders(world)
    kill_at(kelr, world, 1)
    terminal("n\n")
    ran = kelr("recover", command, *CONNECTION)
    assert (ran.code, orders(world) == before) == (6, False)
    assert " (recover apply by ada@laptop)" in ran.err, ran.err
    terminal("y\n")
    assert kelr("recover", command, *CONNECTION).code == 0
    assert orders(world) == before


DESIGNATE_3 = (*DESIGNATE_2[:-1], "3")


@pytest.mark.parametrize(("more", "code"), [((), 7), (("--dry-run",), 7), (("--topic", "orders"), 0)])
@pytest.mark.usefixtures("world")
def test_a_plan_that_refuses_some_elections_is_done_in_part(kelr: Kelr, more: tuple[str, ...], code: int) -> None:
    kelr("recover", "plan", "orders:0", "steady:0", *DESIGNATE_3, "--out", "plan.json", *CONNECTION)
    assert [one.why.value for one in read_plan(Path("plan.json")).not_planned] == ["refused"]
    ran = apply(kelr, "--yes", "--accept-loss", "1000+", *more)
    assert ran.code == code, ran.err
    if code:
        assert "election refused for 1 partition: steady:0" in ran.err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.usefixtures("world")
def test_a_plan_that_refuses_every_election_is_refused(kelr: Kelr, more: tuple[str, ...]) -> None:
    kelr("recover", "plan", "steady:0", *DESIGNATE_3, "--out", "plan.json", *CONNECTION)
    ran = apply(kelr, "--yes", *more)
    assert (ran.code, "Successfully completed" in ran.out) == (6, False)


def test_a_cluster_that_shows_nothing_is_not_one_with_nothing_to_elect(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    """Brokers leave topics that may not be described out, without a word."""
    cluster(replace(INCIDENT, partitions=(), configs={}, logs={}))
    ran = kelr("recover", "plan", *CONNECTION)
    assert (ran.code, ran.out, ran.err) == (1, "", f"{NOTHING_READ}\n")
    ran = kelr("recover", "plan", "-o", "json", *CONNECTION)
    assert (ran.code, json.loads(ran.out)["items"], ran.err) == (1, [], f"{NOTHING_READ}\n")
    ran = kelr("recover", "plan", "--markdown", *CONNECTION)
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.endswith(f"\n\n{NOTHING_READ}\n")
