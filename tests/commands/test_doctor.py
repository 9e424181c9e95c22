"""``kelr doctor``: what it says, what it says that it could not look at, and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kelr.engine.checkup.catalogue import CHECKS, Looks
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied
from kelr.model import ConfigSource, PartitionState, Snapshot, TopicConfig, TopicPartition
from kelr.model.acls import COMMAND_ACLS
from tests.commands.conftest import Kelr
from tests.incident import CLUSTER, INCIDENT
from tests.recovery.simulated import SimulatedSource, World, leaderless
from tests.recovery.test_status import ONE, _cut_short

OF_PARTITIONS = {check.id for check in CHECKS if check.looks is Looks.PARTITIONS}


@pytest.fixture(autouse=True)
def state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test looks at the journals of whoever runs it."""
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def server() -> Iterator[SimulatedServer]:
    """Three brokers that are well, and two topics of them, as Kafka 4.3 would have them."""
    with SimulatedServer(SimulatedSpec(rules="elr-4.3", topics=2, partitions=2, log_info=None)) as running:
        yield running


def document(kelr: Kelr, *arguments: str, code: int = 0) -> Any:
    ran = kelr("doctor", *arguments, "-o", "json")
    assert ran.code == code, ran.err
    return json.loads(ran.out)


def results(document: Any) -> dict[str, str]:
    return {check["id"]: check["result"] for check in document["checks"]}


# A snapshot.


@pytest.mark.usefixtures("incident")
def test_an_incident(kelr: Kelr) -> None:
    found = document(kelr)
    assert [(one["id"], one["topic"], one["partitions"]) for one in found["items"] if one["topic"] == "orders"] == [
        ("leaderless", "orders", [1, 2]),
        ("under-min-isr", "orders", [1, 2]),
        ("under-replicated", "orders", [0]),
    ]
    assert (found["partitions"], found["topics"]) == (5, 3)
    told = results(found)
    assert told["leaderless"] == told["under-min-isr"] == told["broker-fenced"] == told["rf-two"] == "found"
    assert told["elr-off"] == told["rf-one"] == "clear"
    assert told["min-isr-one"] == "partly"
    assert {check for check, result in told.items() if result == "not-checked"} >= {
        "log-dir-offline",
        "controllers-few",
        "versions-differ",
        "throttle-left",
        "unclean-restarts",
    }
    assert found["next"] == "kelr explain"


@pytest.mark.usefixtures("incident")
def test_what_was_not_checked_says_why_and_where(kelr: Kelr) -> None:
    (unchecked,) = next(one for one in document(kelr)["checks"] if one["id"] == "min-isr-one")["not_checked"]
    assert unchecked == {"why": "TOPIC_AUTHORIZATION_FAILED", "topics": 1, "first": ["secret"]}


@pytest.mark.usefixtures("incident")
def test_check_is_for_scripts(kelr: Kelr) -> None:
    assert kelr("doctor", "--check").code == 1
    assert kelr("doctor", "--check", "--only", "rf-two,elr-off").code == 0  # a note is no warning
    assert kelr("doctor", "--check", "--only", "leaderless", "orders:0").code == 0
    assert kelr("doctor", "--check", "--only", "leaderless").code == 1
    skipped = ",".join(check.id for check in CHECKS if check.id != "elr-off")
    assert kelr("doctor", "--check", "--skip", skipped).code == 0


@pytest.mark.usefixtures("incident")
def test_what_was_not_asked_for_is_skipped(kelr: Kelr) -> None:
    found = document(kelr, "--only", "rf-two", "--only", "elr-off", "--skip", "elr-off")
    assert {check for check, result in results(found).items() if result != "skipped"} == {"rf-two"}
    assert {one["id"] for one in found["items"]} == {"rf-two"}


@pytest.mark.usefixtures("incident")
def test_an_unknown_check_lists_those_there_are(kelr: Kelr) -> None:
    ran = kelr("doctor", "--only", "elr-of")
    assert ran.code == 2
    assert "there is no check 'elr-of'" in ran.err
    assert "elr-off" in ran.err


@pytest.mark.usefixtures("incident")
def test_a_topic_that_is_not_there(kelr: Kelr) -> None:
    ran = kelr("doctor", "nowhere")
    assert ran.code == 2
    assert "nowhere" in ran.err
    assert "no partition was looked at" in ran.out


@pytest.mark.usefixtures("incident")
def test_people_get_the_verdict_first_and_then_the_worst(kelr: Kelr) -> None:
    ran = kelr("doctor")
    severities = [line.split()[0] for line in ran.out.splitlines() if line.startswith(("CRITICAL", "WARNING", "NOTE"))]
    assert severities == sorted(severities, key=["CRITICAL", "WARNING", "NOTE"].index)
    assert severities[0] == "CRITICAL"
    assert "CRITICAL  2 partitions of orders have no live leader.  [leaderless]\n" in ran.out
    assert "          Fix: kelr explain orders:1-2\n" in ran.out
    assert ran.out.splitlines()[0] == "2 critical, 2 warnings, 1 note; 14 of 35 checks complete."
    assert ran.err == ""


def test_ten_thousand_topics_are_counted_for_people_and_listed_for_machines(
    kelr: Kelr, cluster: Callable[[Snapshot], None]
) -> None:
    config = TopicConfig(1, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)
    names = [f"topic-{number:05}" for number in range(10_000)]
    states = tuple(PartitionState(name, 0, 2, 1, (2, 3, 1), (2, 3), (), (), (), (), ()) for name in names)
    cluster(replace(INCIDENT, cluster=CLUSTER, partitions=states, configs=dict.fromkeys(names, config), logs={}))
    ran = kelr("doctor")
    assert "10,000 partitions of 10,000 topics" in ran.out
    assert "and 9,995 more: -o json lists all" in ran.out
    assert "more commands like these" in ran.out
    assert len(ran.out.splitlines()) < 70
    found = document(kelr, "--only", "min-isr-one")
    assert [one["topic"] for one in found["items"]] == names
    assert len({one["commands"][0] for one in found["items"]}) == 10_000


@pytest.mark.parametrize("only", [(), ("--only", "min-isr-one")])
def test_documents_leave_commands_for_the_whole_cluster_out_in_an_incident(
    kelr: Kelr, cluster: Callable[[Snapshot], None], only: tuple[str, ...]
) -> None:
    """A write of the cluster's default would empty the ELR of the topic in trouble, which comes after it."""
    low = TopicConfig(1, ConfigSource.CLUSTER_DEFAULT, False, ConfigSource.DEFAULT)
    calm = PartitionState("calm", 0, 2, 1, (2, 3, 1), (2, 3), (), (), (), (), ())
    waits = PartitionState("waits", 0, None, 1, (1, 2, 3), (), (1,), (1,), (), (), ())
    configs = dict.fromkeys(("calm", "waits"), low)
    for partitions, printed in (((calm,), 1), ((calm, waits), 0)):
        cluster(replace(INCIDENT, partitions=partitions, configs=configs, logs={}))
        items = document(kelr, *only)["items"]
        assert sum("--entity-default" in line for item in items for line in item["commands"]) == printed
        (told,) = [one for one in items if one["id"] == "min-isr-one" and one["topic"] is None]
        assert ("not while 1 partition of those that were looked at is in trouble" in told["caution"]) is (not printed)
        text = kelr("doctor", *only).out
        assert text.count("--entity-default") == printed
    alone = document(kelr, "calm", *only)["items"]
    (told,) = [one for one in alone if one["id"] == "min-isr-one" and one["topic"] is None]
    assert len(told["commands"]) == 1
    assert "not all of them were looked at" in told["caution"]


def test_an_empty_cluster_is_not_one_that_is_well(kelr: Kelr, cluster: Callable[[Snapshot], None]) -> None:
    cluster(replace(INCIDENT, partitions=(), configs={}, logs={}))
    told = results(document(kelr, code=1))
    assert {told[check] for check in OF_PARTITIONS} == {"not-checked"}


def test_a_journal_that_is_open(kelr: Kelr, monkeypatch: pytest.MonkeyPatch, state_directory: Path) -> None:
    world: World = leaderless()
    assert set(ONE) == {TopicPartition("orders", 0)}
    _cut_short(world, state_directory, monkeypatch)
    monkeypatch.setattr("kelr.commands.session.open_source", lambda _: SimulatedSource(world))
    (item,) = document(kelr, "--only", "journal-open", "-b", "kafka-1:9092")["items"]
    assert item["what"].endswith(
        "is open: recover apply, cut short: 0 of 1 elections have a result; 1 partition has the order of its election;"
        " reordered: orders:0"
    )
    (command,) = item["commands"]
    assert command.startswith("kelr recover resume ")
    assert command.endswith(" -b kafka-1:9092")


# A live cluster, over its ports.


def test_a_cluster_that_is_well(kelr: Kelr, server: SimulatedServer) -> None:
    # A critical check that could not be made is no all-clear for a script: it has to be left out by name.
    document(kelr, "-b", server.bootstrap_servers, "--check", "--skip", "controllers-few", code=1)
    document(kelr, "-b", server.bootstrap_servers, "--check", "--skip", "controllers-few,log-dir-offline")
    found = document(kelr, "-b", server.bootstrap_servers, "--skip", "controllers-few")
    assert found["items"] == []
    assert {check for check, result in results(found).items() if result not in {"clear", "skipped"}} == {
        "unclean-restarts",
        "log-dir-offline",  # the simulated cluster has no DescribeLogDirs, and that is said
        "broker-cordoned",
    }
    told = {one["name"]: one["value"] for one in found["abilities"]}
    assert told["ELR"] == "on"
    assert told["logs"] == "ListOffsets and Fetch"
    assert told["designation"] == "reorder, ElectLeaders, restore"
    assert told["metadata log"] == f"Fetch from {server.controller_server}"
    rights = {one["command"]: one["has"] for one in found["rights"]}
    assert set(rights) == set(COMMAND_ACLS)
    assert rights["elect"] is True


def test_the_metadata_log_tells_of_restarts(kelr: Kelr, server: SimulatedServer) -> None:
    found = document(
        kelr,
        "-b",
        server.bootstrap_servers,
        "--bootstrap-controller",
        server.controller_server,
        "--only",
        "unclean-restarts",
    )
    assert results(found)["unclean-restarts"] == "clear"


def test_what_a_principal_may_not_see_is_said(kelr: Kelr, server: SimulatedServer) -> None:
    denied = {Denied("cluster", one) for one in ("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER")}
    denied.add(Denied("topic", "DESCRIBE_CONFIGS"))
    server.inside(lambda world: world.denied.update(denied))
    found = document(kelr, "-b", server.bootstrap_servers)
    assert found["items"] == []
    told = {one["id"]: one for one in found["checks"]}
    for check, why in {
        "controllers-few": "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster",
        "static-min-isr": "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the cluster",
        "reassignment": "CLUSTER_AUTHORIZATION_FAILED",
        "min-isr-one": "TOPIC_AUTHORIZATION_FAILED",
        "unclean-election": "TOPIC_AUTHORIZATION_FAILED",
    }.items():
        assert told[check]["result"] in {"not-checked", "partly"}, check
        assert why in " ".join(one["why"] for one in told[check]["not_checked"]), check
    rights = {one["command"]: one for one in found["rights"]}
    assert rights["elect"]["lacks"] == ["ALTER on the cluster", "DESCRIBE_CONFIGS on topic *"]
    assert (rights["describe"]["has"], rights["describe"]["lacks"]) == (False, ["DESCRIBE_CONFIGS on topic *"])


def test_a_broker_that_is_down_is_said(kelr: Kelr, server: SimulatedServer) -> None:
    server.inside(lambda world: world.running.kill(3))
    found = document(kelr, "-b", server.bootstrap_servers, "--timeout", "5")
    unchecked = next(one for one in found["checks"] if one["id"] == "static-min-isr")["not_checked"]
    assert [one["why"].partition(":")[0] for one in unchecked] == ["broker 3"]


# ACLs.


def test_acls_without_a_cluster(kelr: Kelr) -> None:
    ran = kelr("doctor", "--acls", "recover", "clear-elr", "--principal", "User:engineer")
    assert ran.code == 0
    assert (
        "  kafka-acls.sh --add --allow-principal User:engineer"
        " --operation Describe --operation AlterConfigs --topic '*'\n" in ran.out
    )
    assert "LACKS" not in ran.out


def test_acls_of_every_command_and_of_a_group(kelr: Kelr) -> None:
    def commands(*words: str) -> set[str]:
        return {one["command"] for one in json.loads(kelr("doctor", "--acls", *words, "-o", "json").out)["items"]}

    assert commands() == set(COMMAND_ACLS)
    assert commands("recover") == {"recover"}


def test_acls_of_no_command(kelr: Kelr) -> None:
    ran = kelr("doctor", "--acls", "simulate")
    assert ran.code == 2
    assert "no command 'simulate' asks a cluster" in ran.err


def test_acls_that_this_principal_lacks(kelr: Kelr, server: SimulatedServer) -> None:
    server.inside(lambda world: world.denied.add(Denied("cluster", "ALTER")))
    ran = kelr("doctor", "--acls", "elect", "-b", server.bootstrap_servers)
    assert "kelr elect: something is missing" in ran.out
    assert "  LACKS  ALTER on the cluster\n" in ran.out
    assert "  has    READ on topic *\n" in ran.out
    lines = [line for line in ran.out.splitlines() if "kafka-acls.sh" in line]
    assert lines == [
        f"  kafka-acls.sh --bootstrap-server {server.bootstrap_servers} --add --allow-principal User:NAME"
        " --operation Alter --cluster"
    ]


def test_lines_that_grant_acls_can_be_run(kelr: Kelr, server: SimulatedServer, tmp_path: Path) -> None:
    """Where there are ACLs there is a login; and a principal may have blanks in it, or worse."""
    server.inside(lambda world: world.denied.add(Denied("cluster", "ALTER")))
    config = tmp_path / "engineer.properties"
    config.write_text("security.protocol=PLAINTEXT\n", encoding="utf-8")
    where = ("-b", server.bootstrap_servers, "--command-config", str(config))
    ran = kelr("doctor", "--acls", "elect", *where, "--principal", "User:CN=ada, O=x; true")
    (line,) = [line.strip() for line in ran.out.splitlines() if "kafka-acls.sh" in line]
    assert line == (
        f"kafka-acls.sh --bootstrap-server {server.bootstrap_servers} --command-config FILE --add"
        " --allow-principal 'User:CN=ada, O=x; true' --operation Alter --cluster"
    )
