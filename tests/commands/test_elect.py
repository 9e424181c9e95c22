"""``kelr elect``: Kafka's flags and the KIP's, what is asked, what is refused, what comes of it and with which code."""

from __future__ import annotations

import io
import json
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kelr import __version__
from kelr.commands.session import Resolved
from kelr.controller import RuleSet
from kelr.engine import decide_all
from kelr.model import (
    Applied,
    Decision,
    ElectionResult,
    ElectionType,
    EpochEnd,
    PartitionState,
    Plan,
    PlannedElection,
    ReplicaLog,
    Snapshot,
    TopicPartition,
)
from kelr.model.plan import AcceptedLoss
from kelr.recovery.actor import Actor
from kelr.recovery.consent import Confirmation
from kelr.recovery.progress import ApplyEvent, Stage
from kelr.sources.collected import CollectedDisk, CollectedLog, Collection, save_collection
from kelr.sources.disk.collection import LogDirectory
from kelr.sources.memory import MemorySource
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER_ID, INCIDENT, KNOWN, ORDERS_ID
from tests.view.test_schema import violations

# orders:5 is led by 3 and prefers 2, which is in sync.
MOVABLE = PartitionState("orders", 5, 3, 4, (2, 3), (3, 2), (), (), topic_id=ORDERS_ID)
STATES = tuple(replace(state, adding=(), removing=()) for state in (*INCIDENT.partitions, MOVABLE))
STATE = replace(INCIDENT, partitions=tuple(sorted(STATES, key=lambda state: state.address)))
CONNECTION = ("-b", "kafka-1:9092")
ACCEPTED = ("--yes", "--accept-loss", "0+")
READ_MS = 1_700_000_000_000


class Live(MemorySource):
    """A snapshot that answers as a cluster that is read anew."""

    @property
    def taken_at_ms(self) -> int | None:
        return None


@dataclass
class Carrier:
    """Stands for `apply_plan`: keeps what it was given, and answers that all went well unless told otherwise."""

    plans: list[Plan] = field(default_factory=list)
    consented: list[Confirmation] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)
    become: Callable[[PlannedElection], Applied] = lambda one: Applied(
        one.topic, one.partition, one.elect, ElectionResult.DONE, one.elect, one.evidence.leader_epoch + 1
    )

    def __call__(self, plan: Plan, *, consented: Confirmation, report: Any, **options: Any) -> tuple[Applied, ...]:
        self.plans.append(plan)
        self.consented.append(consented)
        self.options.append(options)
        report(ApplyEvent(Stage.ELECT, "electing", 0, len(plan.elections)))
        return tuple(map(self.become, plan.elections))

    @property
    def elected(self) -> dict[str, int]:
        """Whom the plans elect, by partition."""
        return {str(one.address): one.elect for plan in self.plans for one in plan.elections}


@pytest.fixture
def carrier(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Carrier:
    """The cluster of `STATE`, and somebody who carries plans out on it."""
    stands_in = Carrier()
    serve(monkeypatch, STATE)
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("kelr.commands.electing.apply_plan", stands_in)
    monkeypatch.setattr("kelr.commands.recovering.hand_of", lambda _: None)
    monkeypatch.setattr("kelr.commands.recovering.who_changes", lambda _: Actor("ann", "desk"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    return stands_in


def serve(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    def open_source(_: Resolved) -> MemorySource:
        return Live(snapshot)

    monkeypatch.setattr("kelr.commands.session.open_source", open_source)


# Ways of naming, as Kafka's own tool has them.


@pytest.mark.parametrize(
    "naming",
    [
        ["--topic", "orders", "--partition", "5"],
        ["--topic=orders", "--partition=5"],
        ["orders:5"],
        ["orders", "payments"],
        ["--all-topic-partitions"],
    ],
)
def test_partitions_are_named_as_with_kafkas_own_tool(kelr: Kelr, carrier: Carrier, naming: list[str]) -> None:
    kelr("elect", "--election-type", "preferred", *naming, "--yes", "--bootstrap-server", "kafka-1:9092")
    assert carrier.elected == {"orders:5": 2}
    assert carrier.consented == [Confirmation(yes=True)]


@pytest.mark.usefixtures("carrier")
def test_it_prints_what_kafkas_own_tool_prints(kelr: Kelr) -> None:
    ran = kelr("elect", "-e", "PREFERRED", "--topic", "orders", "--partition", "5", "--yes", *CONNECTION)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "Successfully completed leader election (PREFERRED) for partitions orders-5"
    assert ran.out.splitlines()[:3] == [
        "Elect broker 2 for orders:5.",
        "Loss  None committed; total UNKNOWN.",
        "Done: 1 of 1 leader elected.",
    ]
    assert "next: kelr describe orders:5 -b kafka-1:9092" in ran.err


def test_a_leader_that_leads_already_is_no_failure(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "preferred", "payments", *CONNECTION)
    assert (ran.code, ran.out) == (0, "Valid replica already elected for partitions payments-0\n")
    assert carrier.plans == []


def test_an_unclean_election_of_a_led_partition_is_no_failure(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "unclean", "orders:0", *CONNECTION)
    assert (ran.code, carrier.plans) == (0, [])
    assert "Valid replica already elected for partitions orders-0" in ran.out


def test_logs_are_asked_for_only_where_nobody_leads(
    kelr: Kelr, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[TopicPartition] = []

    class Watched(Live):
        def replica_logs(self, partitions: Sequence[PartitionState], **options: Any) -> Any:
            asked.extend(one.address for one in partitions)
            return super().replica_logs(partitions, **options)

    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: Watched(STATE))
    kelr("elect", "-e", "preferred", "orders:0,5", "payments", "--yes", *CONNECTION)
    assert carrier.elected == {"orders:5": 2}
    assert asked == []


def test_of_thousands_of_partitions_only_those_that_need_an_election_are_decided(
    kelr: Kelr, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    led = tuple(PartitionState("big", number, 2, 4, (2, 3), (2, 3), (), ()) for number in range(20_000))
    decided: list[TopicPartition] = []

    def counting(snapshot: Snapshot, rules: RuleSet | None) -> Iterator[Decision]:
        decided.extend(state.address for state in snapshot.partitions)
        return decide_all(snapshot, rules)

    serve(monkeypatch, replace(STATE, partitions=(*led, MOVABLE), configs={**STATE.configs, "big": KNOWN}))
    monkeypatch.setattr("kelr.recovery.gather.decide_all", counting)
    ran = kelr("elect", "-e", "preferred", "--all-topic-partitions", "--yes", *CONNECTION)
    assert ran.code == 0
    assert (carrier.elected, decided) == ({"orders:5": 2}, [MOVABLE.address])
    assert "Valid replica already elected for partitions big-0, big-1" in ran.out
    assert "and 19,900 partitions more" in ran.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["orders:1"], "no election type was given"),
        (["-e", "cleanest", "orders:1"], "there is no election type 'cleanest'"),
        (["-e", "preferred"], "no partition was named"),
        (["-e", "preferred", "--topic", "orders"], "--topic needs --partition"),
        (["-e", "preferred", "--partition", "1"], "--partition is only allowed together with --topic"),
        (["-e", "preferred", "orders:1", "--all-topic-partitions"], "more than one way"),
        (["-e", "preferred", "--topic", "orders", "--partition", "1", "--all-topic-partitions"], "more than one way"),
        (["-e", "preferred", "orders:1", "--path-to-json-file", "f.json"], "more than one way"),
        (["-e", "preferred", "--topic", "orders", "--partition", "one"], "is not a partition number"),
        (["-e", "designation", "orders:1"], "a designation needs to know whom"),
        (["-e", "unclean", "--designate", "2", "orders:1"], "unclean finds its own"),
        (["-e", "unclean", "--minimal-replicas", "2", "orders:1"], "--minimal-replicas is for the longest log"),
        (["-e", "longest_log_balanced", "--minimal-replicas", "0", "orders:1"], "--minimal-replicas is 0"),
        (["-e", "longest_log_balanced", "--window", "3", "orders:1"], "--window is for longest_log_aggressive"),
        (["-e", "longest_log_aggressive", "--window", "nan", "orders:1"], "--window is nan"),
        (["-e", "unclean", "--accept-loss", "-1", "orders:1"], "--accept-loss is -1"),
        (["-e", "unclean", "--force", " ", "orders:1"], "--force was given an empty value"),
        (["-e", "unclean", "--keep-order", "orders:1"], "--keep-order is about the new order"),
        (["-e", "unclean", "--batch", "0", "orders:1"], "--batch is 0"),
        (["-e", "unclean", "--path-to-json-file", "missing.json"], "missing.json"),
        (["-e", "unclean", "--accept-loss", "many", "orders:1"], "--accept-loss"),
    ],
)
def test_wrong_usage_changes_nothing(
    kelr: Kelr,
    carrier: Carrier,
    *,
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kelr("elect", *arguments, *CONNECTION)
    assert ran.code == 2
    assert says in ran.err
    assert "fix: " in ran.err
    assert (ran.out, carrier.plans) == ("", [])


@pytest.mark.usefixtures("carrier")
def test_no_election_type_lists_those_that_there_are(kelr: Kelr) -> None:
    ran = kelr("elect", "orders:1", *CONNECTION)
    assert "preferred, unclean, designation, longest_log_balanced, longest_log_aggressive" in ran.err


@pytest.mark.parametrize(
    "name", ["LONGEST_LOG_AGGRESSIVE", "longest-log-aggressive", "proactive", "longest_log_agressive", "Aggressive"]
)
def test_election_types_by_all_their_names(kelr: Kelr, carrier: Carrier, name: str) -> None:
    kelr("elect", "-e", name, "orders:1", "--yes", "--accept-loss", "0+", "--window", "0", *CONNECTION)
    assert carrier.elected == {"orders:1": 2}


# Consent.


def test_a_script_is_refused_where_something_is_lost(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "unclean", "--topic", "orders", "--partition", "1", *CONNECTION)
    assert ran.code == 6
    assert ran.out.startswith("Elect broker 3 for orders:1?\nLoss    At least 19 offsets, 4 committed. More UNKNOWN:")
    assert "missing: --accept-loss 19+" in ran.err
    assert "fix: read what would be lost, then add --accept-loss 19+" in ran.err
    plan = "kelr recover plan orders:1 --election-type unclean --out plan.json -b kafka-1:9092"
    assert f"to save first what would be lost: {plan}\n" in ran.err
    assert carrier.plans == []


def test_with_the_number_it_goes_ahead(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "unclean", "orders:1", "--yes", "--accept-loss", "19+", *CONNECTION)
    assert ran.code == 0
    assert carrier.elected == {"orders:1": 3}
    assert carrier.consented == [Confirmation(AcceptedLoss(19, unbounded=True), None, yes=True)]
    assert "Successfully completed leader election (UNCLEAN) for partitions orders-1" in ran.out


@pytest.mark.parametrize("format", ["table", "json"])
def test_without_a_terminal_nothing_goes_ahead_without_yes(kelr: Kelr, carrier: Carrier, format: str) -> None:
    for arguments in (("preferred", "orders:5"), ("unclean", "orders:1", "--accept-loss", "19+")):
        ran = kelr("elect", "-e", *arguments, "-o", format, *CONNECTION)
        assert (ran.code, carrier.plans) == (6, [])
        assert "missing: --yes (no terminal to ask on)" in ran.err
        if format == "json":
            assert " --yes " in json.loads(ran.out)["next"]


def test_yes_is_no_accepted_loss(kelr: Kelr, carrier: Carrier) -> None:
    assert kelr("elect", "-e", "unclean", "orders:1", "--yes", *CONNECTION).code == 6
    assert carrier.plans == []


def test_what_cannot_be_counted_needs_a_reason(kelr: Kelr, carrier: Carrier) -> None:
    arguments = ("elect", "-e", "unclean", "orders:2", "--yes", "--accept-loss", "1000000+", *CONNECTION)
    refused = kelr(*arguments)
    assert refused.code == 6
    assert "--force REASON" in refused.err
    assert carrier.plans == []
    assert kelr(*arguments, "--force", "the disk of 4 is gone").code == 0
    assert carrier.consented[0].force_reason == "the disk of 4 is gone"


def test_at_a_terminal_the_number_is_typed(kelr: Kelr, carrier: Carrier, terminal: Callable[[str], None]) -> None:
    terminal("19+\n")
    ran = kelr("elect", "-e", "unclean", "orders:1", *CONNECTION)
    assert ran.code == 0
    assert 'Type "19+" to accept; anything else cancels: ' in ran.err
    assert carrier.consented == [Confirmation(AcceptedLoss(19, unbounded=True), None, yes=True)]


def test_at_a_terminal_a_no_changes_nothing(kelr: Kelr, carrier: Carrier, terminal: Callable[[str], None]) -> None:
    terminal("n\n")
    ran = kelr("elect", "-e", "preferred", "orders:5", *CONNECTION)
    assert (ran.code, carrier.plans) == (6, [])


# Types of election.


def test_a_designation_reorders_and_elects(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "designation", "--designate", "2", "orders:1", *ACCEPTED, *CONNECTION)
    assert ran.code == 0, ran.err
    (election,) = carrier.plans[0].elections
    assert (election.elect, election.order, election.restores) == (2, (2, 3, 1), (3, 1, 2))
    assert "kelr recover verify " in ran.err


def test_the_saved_plan_is_what_verify_reads(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415

    kelr("elect", "-e", "unclean", "orders:1", "--yes", "--accept-loss", "19+", *CONNECTION)
    (saved,) = (tmp_path / "state").rglob("plans/*.json")
    assert read_plan(saved).elections == carrier.plans[0].elections


def test_a_designation_of_a_led_partition_is_refused_by_name_and_passed_over_in_a_pattern(
    kelr: Kelr, carrier: Carrier
) -> None:
    named = kelr("elect", "-e", "designation", "--designate", "3", "orders:0", *CONNECTION)
    assert named.code == 6
    assert "refused: orders:0" in named.out
    assert carrier.plans == []
    kelr("elect", "-e", "designation", "--designate", "2", "orders", "--yes", "--accept-loss", "0+", *CONNECTION)
    assert not any(one.partition == 0 for plan in carrier.plans for one in plan.elections)


def test_the_json_file_names_leaders(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    file = tmp_path / "elect.json"
    file.write_text('{"partitions": [{"topic": "orders", "partition": 1, "desiredLeader": 2}]}')
    ran = kelr("elect", "-e", "DESIGNATION", "--path-to-json-file", str(file), *ACCEPTED, *CONNECTION)
    assert ran.code == 0, ran.err
    assert carrier.elected == {"orders:1": 2}


def test_a_file_for_kafkas_own_tool_works(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    file = tmp_path / "elect.json"
    file.write_text('{"partitions": [{"topic": "orders", "partition": 5}, {"topic": "payments", "partition": 0}]}')
    config = tmp_path / "admin.properties"
    config.write_text("client.id=script\n")
    ran = kelr(
        "elect",
        "--bootstrap-server",
        "kafka-1:9092",
        "--election-type",
        "preferred",
        "--path-to-json-file",
        str(file),
        "--admin.config",
        str(config),
        "--yes",
    )
    assert ran.code == 0, ran.err
    assert carrier.elected == {"orders:5": 2}
    assert "Valid replica already elected for partitions payments-0" in ran.out


@pytest.mark.parametrize(
    ("kind", "entry", "says"),
    [
        ("designation", '"partition": 1', "has no desiredLeader"),
        ("unclean", '"partition": 1, "desiredleader": 2', "desiredleader"),
        ("unclean", '"partition": 1}, {"topic": "orders", "partition": 1', "orders"),
    ],
)
def test_a_json_file_that_does_not_fit_changes_nothing(
    kelr: Kelr, carrier: Carrier, tmp_path: Path, *, kind: str, entry: str, says: str
) -> None:
    file = tmp_path / "elect.json"
    file.write_text(f'{{"partitions": [{{"topic": "orders", {entry}}}]}}')
    ran = kelr("elect", "-e", kind, "--path-to-json-file", str(file), "--yes", *CONNECTION)
    assert ran.code == 2
    assert says in ran.err
    assert carrier.plans == []


@pytest.mark.parametrize("kind", [kind.value for kind in ElectionType])
def test_the_kips_own_example_serves_every_type(kelr: Kelr, tmp_path: Path, kind: str) -> None:
    """It has desiredLeader and minimalReplicas: what a type does not need is named, and left alone."""
    file = tmp_path / "elect.json"
    file.write_text(
        '{"partitions": [{"topic": "orders", "partition": 1, "desiredLeader": 2, "minimalReplicas": 2},'
        ' {"topic": "orders", "partition": 5, "desiredLeader": 2, "minimalReplicas": 2}]}'
    )
    ran = kelr("elect", "-e", kind, "--path-to-json-file", str(file), "--dry-run", *CONNECTION)
    assert ran.code != 2, ran.err
    assert ("desiredLeader is not used by" in ran.err) is (kind != "designation")
    assert ("minimalReplicas is not used by" in ran.err) is (not kind.startswith("longest_log"))


def test_too_few_logs_are_refused(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    file = tmp_path / "elect.json"
    file.write_text('{"partitions": [{"topic": "orders", "partition": 1, "minimalReplicas": 3}]}')
    ran = kelr(
        "elect", "-e", "aggressive", "--path-to-json-file", str(file), "--timeout", "0.01", "--window", "0", *CONNECTION
    )
    assert ran.code == 6
    assert "refused: orders:1" in ran.out
    assert carrier.plans == []


@pytest.mark.parametrize("kind", ["longest_log_balanced", "longest_log_aggressive"])
def test_more_replicas_than_there_are_are_not_waited_for(kelr: Kelr, carrier: Carrier, kind: str) -> None:
    began = time.monotonic()
    ran = kelr("elect", "-e", kind, "orders:1", "--minimal-replicas", "7", "--timeout", "60", *CONNECTION)
    assert time.monotonic() - began < 20
    assert (ran.code, ran.out, carrier.plans) == (2, "", [])
    assert ran.err == (
        "error: as many as 7 replicas have to answer, and no partition that was named has more than 3\n"
        "  fix: give --minimal-replicas (minimalReplicas in a file) 3 or less\n"
    )


def test_a_partition_with_too_few_replicas_is_refused_beside_others_and_not_waited_for(
    kelr: Kelr, carrier: Carrier, tmp_path: Path
) -> None:
    file = tmp_path / "elect.json"
    entries = [{"topic": "orders", "partition": 1, "minimalReplicas": 7}, {"topic": "orders", "partition": 0}]
    file.write_text(json.dumps({"partitions": entries}))
    began = time.monotonic()
    ran = kelr("elect", "-e", "balanced", "--path-to-json-file", str(file), "--timeout", "60", *CONNECTION)
    assert time.monotonic() - began < 20
    assert ran.code == 6, ran.err
    assert carrier.plans == []


@pytest.mark.parametrize("targets", [["orders:1"], ["orders:1", "orders:2"]])
def test_a_designated_broker_without_any_replica_is_a_wrong_flag(
    kelr: Kelr, carrier: Carrier, targets: list[str]
) -> None:
    ran = kelr("elect", "-e", "designation", "--designate", "9", *targets, *CONNECTION)
    assert (ran.code, ran.out, carrier.plans) == (2, "", [])
    assert "error: orders:1 has no replica on broker 9: its replicas are 3, 1, 2" in ran.err
    assert "fix: name one of its replicas" in ran.err


def test_balanced_waits_and_says_for_whom_and_elects_nobody_without_the_quorum(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "longest_log_balanced", "orders:1", "--timeout", "0.05", *CONNECTION)
    assert ran.code == 6
    assert "waiting for the recovery quorum of orders:1" in ran.err
    assert "missing broker 1: connection refused (1 partition)" in ran.err
    assert "refused: orders:1" in ran.out
    assert carrier.plans == []


def test_a_collection_completes_the_quorum(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    at = TopicPartition("orders", 1)
    on_disk = ReplicaLog(
        1, 130, 0, None, 120, 0, lineage=(EpochEnd(0, 130),), source="log directory", read_at_ms=READ_MS
    )
    disk = CollectedDisk(1, READ_MS, (LogDirectory("/data", CLUSTER_ID, 1),))
    log = CollectedLog(ORDERS_ID, on_disk, of_disk=True, read_at_ms=READ_MS, directory="/data")
    save_collection(Collection("broker-1", CLUSTER_ID, READ_MS, (disk,), {at: (log,)}), tmp_path / "1.kelr")
    arguments = ("elect", "-e", "longest_log_balanced", "orders:1", "--timeout", "0.01", *CONNECTION)
    assert kelr(*arguments).code == 6
    ran = kelr(*arguments, "--logs", str(tmp_path / "1.kelr"), "--yes")
    assert ran.code == 0, ran.err
    assert carrier.elected == {"orders:1": 2}
    assert carrier.consented == [Confirmation(yes=True)]


def test_a_collection_that_cannot_be_read_changes_nothing(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    (tmp_path / "1.kelr").write_text("not a collection")
    ran = kelr("elect", "-e", "preferred", "orders:5", "--logs", str(tmp_path / "1.kelr"), *CONNECTION)
    assert (ran.code, carrier.plans) == (2, [])
    assert "1.kelr" in ran.err


# Dry run and snapshots.


def test_a_dry_run_changes_nothing_and_waits_for_nobody(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "unclean", "orders:1", "--dry-run", *CONNECTION)
    assert ran.code == 0
    assert ran.out.startswith("Plan: 1 election in topic orders. Nothing changed.\n")
    assert carrier.plans == []


@pytest.mark.parametrize(
    ("arguments", "plans", "following"),
    [
        (
            ("-e", "UNCLEAN", "--topic", "orders", "--partition", "1", "--dry-run", "-y"),
            "kelr recover plan orders:1 --election-type unclean --out plan.json -b kafka-1:9092",
            "kelr elect --election-type unclean --topic orders --partition 1 --accept-loss 19+ --yes -b kafka-1:9092",
        ),
        (
            ("-e", "designation", "--designate", "2", "orders:1", "--keep-order", "--batch", "9", "--dry-run"),
            "kelr recover plan orders:1 --election-type designation --designate 2 --out plan.json -b kafka-1:9092",
            "kelr elect --election-type designation --designate 2 --batch 9 --keep-order orders:1 --accept-loss unknown"
            " --yes -b kafka-1:9092",
        ),
        (
            ("-e", "preferred", "--all-topic-partitions", "--dry-run"),
            None,
            "kelr elect --election-type preferred --all-topic-partitions --yes -b kafka-1:9092",
        ),
        (
            ("-e", "unclean", "orders:2", "--dry-run"),
            "kelr recover plan orders:2 --election-type unclean --out plan.json -b kafka-1:9092",
            None,
        ),
    ],
)
def test_a_dry_run_ends_with_the_command_that_carries_it_out_after_a_plan_that_saves_what_it_gives_up(
    kelr: Kelr,
    carrier: Carrier,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    arguments: tuple[str, ...],
    plans: str | None,
    following: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = kelr("elect", *arguments, *CONNECTION)
    document = json.loads(kelr("elect", *arguments, "-o", "json", *CONNECTION).out)
    assert document["next"] == (plans or following)
    # Where what is to be typed needs a reason that only somebody can give, there is no last step.
    typed = [f"kelr {line.partition('kelr ')[2]}" for line in ran.out.splitlines() if "kelr " in line]
    steps = [one for one in (plans, following) if one is not None]
    assert typed[: len(steps)] == steps
    assert "next:" not in ran.err
    if plans is not None:
        assert "kelr rescue dump --plan plan.json " in kelr(*shlex.split(plans)[1:]).out
    assert carrier.plans == []
    if following is not None:
        kelr(*shlex.split(following)[1:])
        assert len(carrier.plans) == 1


def test_designations_of_several_brokers_are_planned_apart(kelr: Kelr, carrier: Carrier, tmp_path: Path) -> None:
    wishes = [{"topic": "orders", "partition": number, "desiredLeader": leader} for number, leader in ((1, 3), (2, 2))]
    file = tmp_path / "elect.json"
    file.write_text(json.dumps({"partitions": wishes}))
    ran = kelr("elect", "-e", "designation", "--path-to-json-file", str(file), "--dry-run", *CONNECTION)
    assert carrier.plans == []
    plan = "kelr recover plan orders:{} --election-type designation --designate {} --out plan-{}.json -b kafka-1:9092"
    assert [line.strip() for line in ran.out.splitlines() if "kelr " in line] == [
        plan.format(1, 3, 3),
        plan.format(2, 2, 2),
    ]


def test_the_loss_that_somebody_accepts_is_not_planned_again(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "unclean", "orders:1", "--accept-loss", "19+", "--dry-run", *CONNECTION)
    command = "kelr elect --election-type unclean orders:1 --accept-loss 19+ --yes -b kafka-1:9092"
    assert f". {command}\n" in ran.out
    assert "kelr recover plan" not in ran.out + ran.err
    assert carrier.plans == []


def test_a_led_partition_whose_other_log_has_to_be_saved_is_told_of_that(kelr: Kelr, carrier: Carrier) -> None:
    dump = "kelr rescue dump payments:0 --elect 3 --out payments-0-lost-to-3.kelr-rescue -b kafka-1:9092"
    for more in ((), ("--dry-run",)):
        ran = kelr("elect", "-e", "unclean", "payments:0", *more, *CONNECTION)
        assert (ran.code, carrier.plans) == (0, [])
        assert "Broker 3 leads: an unclean election is not needed. Save at once what broker 2 holds" in " ".join(
            ran.out.split()
        )
        assert ran.err == f"  next: {dump}\n"
    document = json.loads(kelr("elect", "-e", "unclean", "payments:0", "-o", "json", *CONNECTION).out)
    assert (document["items"][0]["status"], document["next"]) == ("advised", dump)


def test_a_saved_snapshot_can_be_planned_for_and_not_changed(kelr: Kelr, snapshot_file: str) -> None:
    assert kelr("elect", "-e", "unclean", "orders:1", "--snapshot", snapshot_file, "--dry-run").code == 0
    refused = kelr("elect", "-e", "unclean", "orders:1", "--snapshot", snapshot_file, "--yes", "--accept-loss", "19+")
    assert refused.code == 2
    assert "is a saved snapshot" in refused.err


# What comes of it.


def test_part_of_it_done_is_seven_and_each_partition_is_told(kelr: Kelr, carrier: Carrier) -> None:
    carrier.become = lambda one: Applied(
        one.topic, one.partition, one.elect, ElectionResult.DONE if one.partition == 5 else ElectionResult.NO_LEADER
    )
    ran = kelr("elect", "-e", "preferred", "orders:1,5", "--yes", *CONNECTION)
    assert ran.code == 7
    assert "Successfully completed leader election (PREFERRED) for partitions orders-5" in ran.out
    assert "refused: orders:1" in ran.out
    assert "election refused for 1 partition: orders:1" in ran.err


@pytest.mark.parametrize(
    ("ended", "error", "code", "following"),
    [
        (ElectionResult.REFUSED, None, 6, "kelr describe orders:1"),
        (ElectionResult.REFUSED, "CLUSTER_AUTHORIZATION_FAILED", 4, "kelr describe orders:1"),
        (ElectionResult.OTHER_LEADER, None, 7, "kelr recover verify "),
        (ElectionResult.NOT_RESTORED, None, 7, "kelr recover status"),
        (ElectionResult.UNKNOWN, "NO_ANSWER", 7, "kelr recover status"),
        (ElectionResult.NOT_NEEDED, None, 0, "kelr describe orders:1"),
    ],
)
def test_how_it_ended_is_the_exit_code(
    kelr: Kelr, carrier: Carrier, *, ended: ElectionResult, error: str | None, code: int, following: str
) -> None:
    carrier.become = lambda one: Applied(one.topic, one.partition, one.elect, ended, error=error)
    ran = kelr("elect", "-e", "unclean", "orders:1", "--yes", "--accept-loss", "19+", *CONNECTION)
    assert ran.code == code
    assert f"next: {following}" in ran.err


def test_a_topic_that_is_not_there_does_not_stop_the_rest(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "preferred", "nope:0", "orders:5", "--yes", *CONNECTION)
    assert ran.code == 7
    assert carrier.elected == {"orders:5": 2}
    assert "nope" in ran.err


def test_a_next_command_that_looks_does_not_list_hundreds_of_partitions(
    kelr: Kelr, carrier: Carrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = tuple(replace(MOVABLE, topic="big", partition=number) for number in range(0, 600, 2))
    serve(monkeypatch, replace(STATE, partitions=(*many, MOVABLE), configs={**STATE.configs, "big": KNOWN}))
    ran = kelr("elect", "-e", "preferred", "--all-topic-partitions", "--yes", *CONNECTION)
    assert len(carrier.elected) == 301
    assert "next: kelr describe big orders:5 -b kafka-1:9092" in ran.err


@pytest.mark.usefixtures("carrier")
def test_json_is_one_document_with_plan_and_results(kelr: Kelr) -> None:
    ran = kelr("elect", "-e", "unclean", "orders:0,1", "--yes", "--accept-loss", "19+", "-o", "json", *CONNECTION)
    document = json.loads(ran.out)
    assert violations(document, "applied") == []
    assert [(item["partition"], item["status"]) for item in document["items"]] == [(0, "not-needed"), (1, "elect")]
    assert document["items"][1]["result"]["ended"] == "done"
    assert document["ended"] == {"done": 1}


@pytest.mark.usefixtures("carrier")
def test_json_of_a_refused_election_is_the_plan(kelr: Kelr) -> None:
    ran = kelr("elect", "-e", "unclean", "orders:1", "-o", "json", *CONNECTION)
    assert ran.code == 6
    document = json.loads(ran.out)
    assert violations(document, "plan") == []
    assert (document["kind"], document["accept_loss"]) == ("kelr/plan", "19+")


def test_at_a_terminal_the_plan_is_read_beside_the_document_before_anybody_is_asked(
    kelr: Kelr, carrier: Carrier, terminal: Callable[[str], None]
) -> None:
    terminal("19+\n")
    ran = kelr("elect", "-e", "unclean", "orders:1", "-o", "json", *CONNECTION)
    assert ran.code == 0
    assert ran.err.index("Elect broker 3 for orders:1?") < ran.err.index('Type "19+" to accept')
    assert json.loads(ran.out)["kind"] == "kelr/applied"
    assert len(carrier.plans) == 1


def test_a_dry_run_says_whom_the_election_would_wait_for(kelr: Kelr, carrier: Carrier) -> None:
    ran = kelr("elect", "-e", "longest_log_balanced", "orders:1", "--dry-run", "--timeout", "45", *CONNECTION)
    assert ran.code == 6
    assert "A dry run does not wait; the election would wait up to 45 s for broker 1." in ran.err
    assert carrier.plans == []


def test_options_go_to_who_carries_it_out(kelr: Kelr, carrier: Carrier) -> None:
    arguments = ("elect", "-e", "designation", "--designate", "2", "orders:1", *ACCEPTED, *CONNECTION)
    kelr(*arguments, "--batch", "7", "--keep-order")
    assert (carrier.options[0]["batch"], carrier.options[0]["keep_order"]) == (7, True)
    assert carrier.options[0]["command"] == "elect"
    kelr(*arguments)
    assert (carrier.options[1]["batch"], carrier.options[1]["keep_order"]) == (100, False)


def test_the_version_is_shown_as_by_kafkas_tool_before_anything_else_is_asked_for(kelr: Kelr) -> None:
    """KIP-966, kafka-leader-election.sh: "--version  Display Kafka version." It needs no cluster and no type."""
    ran = kelr("elect", "--version")
    assert (ran.code, ran.out, ran.err) == (0, f"kelr {__version__}\n", "")
    assert "--version" in kelr("elect", "--help").out


def test_a_partition_that_has_what_was_asked_for_is_not_called_healthy_for_it(
    kelr: Kelr, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    alone = replace(MOVABLE, isr=(3,))
    for state, situation in ((MOVABLE, "healthy"), (alone, "under-min-isr")):
        serve(monkeypatch, replace(STATE, partitions=(state,)))
        (described,) = json.loads(kelr("describe", "orders:5", *CONNECTION, "-o", "json").out)["items"]
        document = json.loads(kelr("elect", "-e", "unclean", "orders:5", "--dry-run", *CONNECTION, "-o", "json").out)
        assert described["situation"] == document["items"][0]["not_planned"]["situation"] == situation
