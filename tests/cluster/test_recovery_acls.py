"""A principal that lacks an ACL: the command ends with 4, names the ACL, and leaves the cluster as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from kelr.lab import Acks, Lab, LabSpec
from kelr.lab.produce import produce
from kelr.lab.story import create_topic
from kelr.model import PartitionState, TopicPartition
from tests.cluster.secured import Grant, Secured, grant, secure

TOPIC = "orders"
AT = TopicPartition(TOPIC, 0)
ALTER = Grant(AclOperation.ALTER)
DESCRIBE_CLUSTER = Grant(AclOperation.DESCRIBE)
DESCRIBE = Grant(AclOperation.DESCRIBE, TOPIC)
READ = Grant(AclOperation.READ, TOPIC)
CONFIGS = Grant(AclOperation.DESCRIBE_CONFIGS, TOPIC)
ACLS = {
    # What docs/acls.md gives as the smallest set for elections and rescues.
    "engineer": (ALTER, READ, CONFIGS),
    "onlooker": (DESCRIBE_CLUSTER, READ, CONFIGS),
    "blind": (ALTER,),
    "illiterate": (ALTER, DESCRIBE, CONFIGS),
}


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All of it, without the line breaks that the width of a terminal makes."""
        return " ".join((self.out + " " + self.err).split())


class Desk:
    """Where kelr runs as one of several users; each has its own state directory."""

    def __init__(self, secured: Secured, home: Path) -> None:
        self.lab = secured.lab
        self._secured = secured
        self._home = home

    def kelr(self, user: str, *arguments: str) -> Ran:
        connection = ("-b", self._secured.bootstrap_servers, "--command-config", str(self._secured.login_file(user)))
        environment = {**os.environ, "KELR_STATE_DIR": str(self._home / user)}
        command = [sys.executable, "-m", "kelr", *arguments, *connection]
        done = subprocess.run(
            command, cwd=self._home, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def state(self) -> PartitionState:
        return self.lab.partitions(TOPIC)[AT]

    def records(self, user: str) -> list[Path]:
        """Journals and audit logs: what kelr has written about changes that it made or began."""
        return [path for path in (self._home / user).rglob("*.jsonl") if path.stat().st_size]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Two brokers; the topic's leader is dead, and the other replica has fewer records and is not eligible."""
    home = tmp_path_factory.mktemp("acls")
    with Lab.up(LabSpec(brokers=2), home / "lab", owner_pid=os.getpid()) as lab:
        secured = secure(lab, ACLS, home)
        grant(lab, ACLS)
        create_topic(lab, TOPIC, [[1, 2]], {})
        lab.wait_partitions(TOPIC, "both are in sync", lambda state: len(state.isr) == 2)
        produce(lab.bootstrap_servers, TOPIC, (0,), batches=2, records=5, acks=Acks.ALL, label="both")
        lab.kill(2)
        lab.wait_partitions(TOPIC, "1 leads alone", lambda state: state.isr == (1,))
        produce(lab.bootstrap_servers, TOPIC, (0,), batches=1, records=5, acks=Acks.LEADER, label="alone")
        lab.kill(1)
        lab.start(2)
        lab.wait_partitions(TOPIC, "nobody leads", lambda state: state.leader is None and state.elr == (1,))
        yield Desk(secured, home)


@pytest.fixture(scope="module")
def plan(desk: Desk) -> str:
    """A plan that gives the partition to broker 2; made by the one who may do everything."""
    file = "plan.json"
    made = desk.kelr("engineer", "recover", "plan", TOPIC, "-e", "longest_log_aggressive", "--out", file)
    assert made.code == 0, made.said
    return file


DESIGNATE = ("elect", "--election-type", "designation", "--designate", "2", f"{TOPIC}:0")
CONSENT = ("--accept-loss", "0+", "--force", "broker 1 is gone")


@pytest.mark.parametrize(
    ("command", "user", "missing"),
    [
        ("designation", "onlooker", "ALTER on the cluster"),
        ("designation", "blind", "DESCRIBE"),
        ("longest log", "onlooker", "ALTER on the cluster"),
        ("longest log", "blind", "DESCRIBE"),
        ("apply", "onlooker", "ALTER on the cluster"),
        ("apply", "blind", "DESCRIBE on topic orders"),
        ("apply", "illiterate", "READ on topic orders"),
    ],
)
def test_nothing_is_changed_without_an_acl(desk: Desk, plan: str, command: str, user: str, missing: str) -> None:
    before = desk.state()
    arguments = {
        "designation": DESIGNATE,
        "longest log": ("elect", "-e", "longest_log_aggressive", f"{TOPIC}:0"),
        "apply": ("recover", "apply", plan),
    }[command]
    ran = desk.kelr(user, *arguments, "--yes", *CONSENT)
    assert ran.code == 4, ran.said
    assert missing in ran.said
    assert desk.state() == before
    assert desk.records(user) == []


def test_without_read_nothing_is_elected_unless_forced(desk: Desk) -> None:
    """The logs' ends are known and their epochs are not: no loss is counted, so that a plain yes is not enough."""
    before = desk.state()
    ran = desk.kelr("illiterate", *DESIGNATE, "--yes")
    assert ran.code == 6, ran.said
    assert "READ" in ran.said
    assert "--force" in ran.said
    assert desk.state() == before
    assert desk.records("illiterate") == []


def test_planning_needs_no_alter(desk: Desk) -> None:
    before = desk.state()
    ran = desk.kelr("onlooker", "recover", "plan", TOPIC, "-e", "longest_log_aggressive")
    assert ran.code == 0, ran.said
    assert desk.state() == before


def test_planning_without_describe_names_it(desk: Desk) -> None:
    ran = desk.kelr("blind", "recover", "plan", TOPIC)
    assert ran.code == 4, ran.said
    assert "TOPIC_AUTHORIZATION_FAILED" in ran.said
    assert "DESCRIBE" in ran.said


def test_reading_without_read_says_so_in_the_cell(desk: Desk) -> None:
    ran = desk.kelr("illiterate", "log-info", f"{TOPIC}:0", "-o", "json")
    assert ran.code == 0, ran.said
    (live,) = (row for row in json.loads(ran.out)["items"] if row["replica"] == 2)
    assert live["log_end"] == 10
    assert "TOPIC_AUTHORIZATION_FAILED: it needs READ on the topic" in json.dumps(live)


@pytest.mark.parametrize(("user", "missing"), [("illiterate", "READ"), ("blind", "DESCRIBE")])
def test_a_rescue_without_an_acl_saves_nothing(desk: Desk, user: str, missing: str) -> None:
    file = Path(f"{user}.kelr-rescue")
    ran = desk.kelr(
        user, "rescue", "dump", f"{TOPIC}:0", "--from-replica", "2", "--from-offset", "0", "--out", str(file)
    )
    assert ran.code == 4, ran.said
    assert missing in ran.said


def test_the_smallest_set_of_acls_is_enough(desk: Desk, plan: str) -> None:
    """Last in this file: it gives the partition its leader."""
    before = desk.state()
    dumped = desk.kelr(
        "engineer",
        "rescue",
        "dump",
        f"{TOPIC}:0",
        "--from-replica",
        "2",
        "--from-offset",
        "0",
        "--out",
        "all.kelr-rescue",
    )
    assert dumped.code == 0, dumped.said
    ran = desk.kelr("engineer", "recover", "apply", plan, "--yes", *CONSENT)
    assert ran.code == 0, ran.said
    after = desk.state()
    assert (before.leader, after.leader) == (None, 2)
    assert after.replicas == before.replicas
    assert desk.records("engineer")
