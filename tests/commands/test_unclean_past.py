"""Min ISR is met again behind a leader that was elected uncleanly, and the better logs are on disks of brokers that are
down: no command says that all is well."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.controller import Election
from kelr.model import Snapshot, TopicConfig
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.model.plan import LogEvidence
from kelr.recovery import audit
from kelr.recovery.actor import Actor
from kelr.recovery.consent import Confirmation
from kelr.recovery.journal import Journal, journal_path
from kelr.sources.ground import MACHINE
from tests.commands.conftest import Kelr
from tests.engine.test_advice_returns import AGAIN, GAP, NO_GAP, WITHOUT_1
from tests.incident import INCIDENT
from tests.view.plans import LOSSY, plan

CONNECTION = ("-b", "kafka-1:9092")
DUMP = "kelr rescue dump orders:0 --elect 3 --log-dir DIRECTORY --out orders-0-lost-to-3.kelr-rescue -b kafka-1:9092"
STEP = (
    "Do Save what others hold and broker 3 lacks, before any of them starts (orders:0). On the host of each, with"
    f" --log-dir for each log directory: {DUMP}"
)
ABOVE = "save first: with the command above that writes orders-0-lost-to-3.kelr-rescue"
ON_RECORD = "kelr's audit log: elections of 1 partition (orders:0) may have lost records"
Serve = Callable[[Snapshot], None]


@pytest.fixture
def led(cluster: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Snapshot:
    """Orders:0, led and with min ISR; broker 1 is down."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    state = replace(AGAIN, adding=(), removing=())
    configs = {"orders": TopicConfig(min_insync_replicas=2, unclean_leader_election=False)}
    brokers = replace(WITHOUT_1, cluster_id="c", features=INCIDENT.cluster.features)
    snapshot = replace(INCIDENT, cluster=brokers, partitions=(state,), configs=configs, logs={state.address: NO_GAP})
    cluster(snapshot)
    return snapshot


@pytest.fixture
def on_record(led: Snapshot, tmp_path: Path) -> Snapshot:
    """And kelr elected broker 3 while 1 did not answer."""
    audit.append(
        tmp_path / "state",
        AuditRecord(
            at_ms=1,
            what=AuditWhat.ELECTION,
            command="elect",
            topic="orders",
            partition=0,
            cluster_id="c",
            user="ada",
            host="laptop",
            principal=None,
            result="done",
            after={"leader": 3, "leader_epoch": 5},
            evidence=[{"replica": 1, "unheard": "unreachable"}],
            loss={"grade": "unknown"},
        ),
    )
    return led


@pytest.mark.usefixtures("led")
def test_of_a_clean_election_nothing_is_said(kelr: Kelr) -> None:
    assert "No action needed" in kelr("explain", *CONNECTION).err
    assert "Nothing urgent" in kelr("explain", "orders", *CONNECTION).out
    assert "record" not in kelr("describe", *CONNECTION).err
    assert kelr("describe", "--check", *CONNECTION).code == 0
    assert json.loads(kelr("doctor", "--only", "unsaved-records", "-o", "json", *CONNECTION).out)["items"] == []


@pytest.mark.usefixtures("on_record")
def test_explain_shows_it_without_being_asked_for_it(kelr: Kelr) -> None:
    ran = kelr("explain", *CONNECTION)
    assert f"\n      {DUMP}\n" in ran.out
    assert "Nothing urgent" not in ran.out
    assert "nothing to explain" not in ran.err
    _, line = kelr("explain", "--short", *CONNECTION).out.splitlines()
    assert line.split() == ["orders:0", "unsaved-records", "-", "2", "(180)", "-", "rescue", "1"]
    (item,) = json.loads(kelr("explain", "-o", "json", *CONNECTION).out)["items"]
    assert (item["situation"], item["unsaved"], item["advice"]["rescue"]) == ("healthy", "likely", DUMP)


@pytest.mark.usefixtures("on_record")
def test_describe_doctor_and_watch_say_it(kelr: Kelr) -> None:
    ran = kelr("describe", "--check", *CONNECTION)
    assert ran.code == 1
    assert f"{ON_RECORD}. Save the disk of broker 1 before it starts: kelr explain says how\n" in ran.err
    assert ran.err.endswith("  next: kelr explain -b kafka-1:9092\n")
    assert ON_RECORD in kelr("describe", "--summary", *CONNECTION).err
    assert ON_RECORD not in kelr("describe", "payments", *CONNECTION).err
    assert kelr("describe", "--check", "--leaderless", *CONNECTION).code == 0
    found = json.loads(kelr("doctor", "--only", "unsaved-records", "-o", "json", *CONNECTION).out)
    (item,) = found["items"]
    assert (item["severity"], item["topic"], item["partitions"], item["brokers"]) == ("critical", "orders", [0], [1])
    assert item["commands"] == ["kelr explain orders:0 -b kafka-1:9092"]
    watched = kelr("watch", "--until-healthy", "--for", "1s", "--interval", "100ms", *CONNECTION)
    assert watched.code == 1
    assert watched.out.count(ON_RECORD) == 1
    assert "nothing is leaderless or unsafe" not in watched.out


def test_what_nothing_tells_is_not_called_well(kelr: Kelr, led: Snapshot, cluster: Serve) -> None:
    """A stock tool elected, perhaps uncleanly: what is left is an epoch without a record."""
    cluster(replace(led, logs={AGAIN.address: GAP}))
    ran = kelr("explain", *CONNECTION)
    assert ran.out == ""
    assert "nothing to explain" not in ran.err
    assert "Not known: whether 1 partition (orders:0) was elected cleanly; if not, the disk of broker 1" in ran.err
    assert ran.err.endswith("  next: kelr explain orders:0 -b kafka-1:9092\n")
    assert json.loads(kelr("explain", "-o", "json", *CONNECTION).out)["not_known"] == ["orders:0"]
    assert f"\n      {DUMP}\n" in kelr("explain", "orders", *CONNECTION).out


SAVE = (
    "By kelr's own record the election of 3 at 1970-01-01 00:00 UTC (leader epoch 5) may have given up records that"
    " broker 1 holds, and whether it was in sync since is not on record: save what the disk of broker 1 holds before"
    " it starts, since it may be the only copy. When it returns, it truncates to the log of the leader, 3. Start"
    " broker 1 only then, and produce again what was saved (kelr rescue replay)."
)


@pytest.mark.usefixtures("on_record")
@pytest.mark.parametrize("more", [(), ("orders:0",), ("orders:0", "--gone", "1")], ids=" ".join)
def test_a_plan_lists_what_has_to_be_saved(kelr: Kelr, more: tuple[str, ...]) -> None:
    ran = kelr("recover", "plan", *more, *CONNECTION)
    assert " ".join(ran.out.split()) == (
        f"No election planned, for the reasons below. {STEP}"
        f" no election: orders:0: {SAVE} {ABOVE} kelr describe orders:0 --watch -b kafka-1:9092"
    )
    assert ran.err == f"  next: {DUMP}\n"
    document = json.loads(kelr("recover", "plan", *more, "-o", "json", *CONNECTION).out)
    (item,) = document["items"]
    left = item["not_planned"]
    assert (item["status"], left["action"], left["reason"], left["rescue"]) == ("advised", "rescue", SAVE, DUMP)
    assert document["next"] == DUMP
    text = kelr("recover", "plan", *more, "--markdown", *CONNECTION).out.replace("\\", "")
    assert text.endswith(f"**No election:**\n- orders:0 (advised): {SAVE}\n\n```sh\n{DUMP}\n```\n")


ASKED = ("unclean", "longest_log_balanced", "longest_log_aggressive", "preferred")


@pytest.mark.usefixtures("on_record")
@pytest.mark.parametrize("kind", ASKED)
def test_a_plan_of_an_election_that_is_not_needed_lists_it_too(kelr: Kelr, kind: str) -> None:
    for more in ((), ("orders:0",)):
        ran = kelr("recover", "plan", *more, "-e", kind, *CONNECTION)
        assert STEP in " ".join(ran.out.split())
        assert ran.out.startswith("No election planned, for the reasons below.\n")
        assert ran.err == f"  next: {DUMP}\n"


@pytest.mark.usefixtures("on_record")
def test_a_designation_that_is_refused_since_it_is_led_says_it_too(kelr: Kelr) -> None:
    ran = kelr("recover", "plan", "orders:0", "-e", "designation", "--designate", "2", *CONNECTION)
    assert "a designation is only for a partition without leader" in " ".join(ran.out.split())
    assert STEP in " ".join(ran.out.split())
    assert ran.err == f"  next: {DUMP}\n"


@pytest.mark.usefixtures("on_record")
def test_elect_asks_the_record_as_explain_does(kelr: Kelr) -> None:
    for partitions in ("orders:0", "--all-topic-partitions"):
        ran = kelr("elect", "-e", "unclean", partitions, "--dry-run", *CONNECTION)
        assert STEP in " ".join(ran.out.split())
        assert ran.err == f"  next: {DUMP}\n"


def test_elect_says_what_is_not_known(kelr: Kelr, led: Snapshot, cluster: Serve) -> None:
    cluster(replace(led, logs={AGAIN.address: GAP}))
    said = "Not known: whether 1 partition (orders:0) was elected cleanly"
    arguments = ("elect", "-e", "unclean", "orders:0", *CONNECTION)
    ran = kelr(*arguments, "--dry-run")
    assert "not needed: orders:0: it has a leader" in ran.out
    assert said in ran.out
    assert said in kelr(*arguments).out
    assert said in kelr(*arguments, "--dry-run", "-o", "json").err


def test_a_plan_says_what_is_not_known_of_partitions_that_are_well(kelr: Kelr, led: Snapshot, cluster: Serve) -> None:
    cluster(replace(led, logs={AGAIN.address: GAP}))
    said = (
        "Not known: whether 1 partition (orders:0) was elected cleanly; if not, the disk of broker 1 may hold the only"
        " copy of records: kelr explain on one says how to save them first. A metadata log tells"
        " (--bootstrap-controller HOST:PORT).\n"
    )
    following = "kelr explain orders:0 -b kafka-1:9092"
    ran = kelr("recover", "plan", *CONNECTION)
    assert " ".join(ran.out.split()) == f"No election planned. {said.strip()}"
    assert ran.err == f"  next: {following}\n"
    ran = kelr("recover", "plan", "-o", "json", *CONNECTION)
    assert (json.loads(ran.out)["next"], ran.err) == (following, said)
    text = kelr("recover", "plan", "--markdown", *CONNECTION).out.replace("\\", "")
    assert text.endswith(f"\n{said}\n```sh\n{following}\n```\n")


def test_what_is_not_known_comes_before_the_advice_to_start_a_broker_for_others(
    kelr: Kelr, led: Snapshot, cluster: Serve
) -> None:
    """It was the last line: who had followed the advice by then had started the broker whose disk had the only copy."""
    waiting = replace(AGAIN, partition=1, leader=None, isr=(), elr=(1,), last_known_elr=())
    logs = {AGAIN.address: GAP, waiting.address: tuple(log for log in GAP if log.replica != 1)}
    cluster(replace(led, partitions=(*led.partitions, waiting), logs=logs))
    said = "Not known: whether 1 partition (orders:0) was elected cleanly"
    explained = " ".join(kelr("explain", *CONNECTION).out.split())
    assert explained.startswith(f"First {said}")
    assert "Start broker 1" in explained
    planned = " ".join(kelr("recover", "plan", *CONNECTION).out.split())
    assert f"Do 1. {said}" in planned
    assert planned.count(said) == 1


@pytest.mark.usefixtures("led")
def test_after_a_clean_election_there_is_nothing_to_plan(kelr: Kelr) -> None:
    assert kelr("recover", "plan", *CONNECTION).out == "No election planned: none is needed.\n"


def test_an_audit_log_that_cannot_be_read_is_told(kelr: Kelr, led: Snapshot, tmp_path: Path) -> None:
    del led
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "audit.jsonl").write_text("{}\n")
    assert "which elections kelr made here is not known" in kelr("explain", *CONNECTION).err
    (check,) = [
        one
        for one in json.loads(kelr("doctor", "--only", "unsaved-records", "-o", "json", *CONNECTION).out)["checks"]
        if one["id"] == "unsaved-records"
    ]
    assert check["result"] == "not-checked"


def test_an_election_under_way_counts_before_its_audit_line_is_written(
    kelr: Kelr, led: Snapshot, tmp_path: Path
) -> None:
    """It was asked for, and Kafka has elected: a watch that looks just then must not call the partition healthy."""
    (state,) = led.partitions
    evidence = replace(
        LOSSY.evidence, leader_epoch=state.leader_epoch - 1, logs=(LogEvidence(1, unheard="unreachable"),)
    )
    made = plan(replace(LOSSY, partition=0, elect=3, evidence=evidence))
    with Journal.begin(
        journal_path(tmp_path / "state", "c", "elect", 1),
        MACHINE,
        cluster_id="c",
        who=Actor("ada", "laptop"),
        command="elect",
        plan=made,
        plan_id="p",
        consented=Confirmation(),
    ) as journal:
        assert ON_RECORD not in kelr("describe", "--summary", *CONNECTION).err
        journal.intend_election(Election.UNCLEAN, [state.address])
        assert ON_RECORD in kelr("describe", "--summary", *CONNECTION).err
        watched = kelr("watch", "--until-healthy", "--for", "1s", "--interval", "100ms", *CONNECTION)
        assert watched.code == 1
        assert watched.out.count(ON_RECORD) == 1
        assert f"\n      {DUMP}\n" in kelr("explain", *CONNECTION).out
