"""Every command with exactly the ACLs of `kelr.model.acls`, and with each of them taken away, on a real cluster.

Clients log in with unsecured tokens: anybody can be any user, so that each case has a user of its own, whose ACLs are
there before the first command runs.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclPermissionType, AdminClient, ResourcePatternType
from confluent_kafka.admin import AclOperation as Operation
from confluent_kafka.admin import ResourceType as Kind

from kelr.commands.registry import COMMANDS as REGISTERED
from kelr.commands.registry import load
from kelr.engine.planning import plan_of
from kelr.lab import Acks, Lab, LabSpec
from kelr.lab.produce import produce
from kelr.lab.security.access import client_login
from kelr.lab.security.kinds import Mechanism
from kelr.lab.story import create_topic
from kelr.model import ElectionType, PartitionState, Selection, Target, TopicPartition, Wish
from kelr.model.acls import COMMAND_ACLS, NO_CLUSTER, WEAKER, AclOperation, AclResource, RequiredAcl
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource

TOPIC, TARGET = "orders", "rescued"
_ALL_OF_2 = ("--from-replica", "2", "--from-offset", "0")
CONSENT = ("--yes", "--accept-loss", "0+", "--force", "broker 1 is gone")
DESIGNATE = ("--election-type", "designation", "--designate", "2")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "describe": ("describe", TOPIC),
    "watch": ("watch", "{own}", "-o", "ndjson", "--for", "1s"),
    "log-info": ("log-info", "{own}"),
    "explain": ("explain", "{own}"),
    "whatif": ("whatif", "{own}", "--stop", "2"),
    "snapshot": ("snapshot", "{out}.kelr", "{own}"),
    "history": ("history", "{own}"),
    "doctor": ("doctor", "{own}"),
    "elect": ("elect", "{own}", *DESIGNATE, *CONSENT),
    "recover collect": ("recover", "collect", "{own}", "--out", "{out}.kelr"),
    "recover plan": ("recover", "plan", "{own}", *DESIGNATE, "--out", "{out}.json"),
    "recover apply": ("recover", "apply", "plan.json", *CONSENT),
    "recover resume": ("recover", "resume"),
    "recover undo": ("recover", "undo"),
    "recover verify": ("recover", "verify", "plan.json"),
    "recover status": ("recover", "status"),
    "recover hold": ("recover", "hold", "{held}", "--yes-clear-elr-of", "{held}", "--force", "a test"),
    "rescue dump": ("rescue", "dump", "{own}", *_ALL_OF_2, "--out", "{out}.kelr-rescue"),
    "rescue replay": ("rescue", "replay", "saved.kelr-rescue", "--to", "{target}", "--all-records", "--yes"),
}
_KINDS = {
    AclResource.CLUSTER: Kind.BROKER,
    AclResource.TOPIC: Kind.TOPIC,
    AclResource.GROUP: Kind.GROUP,
    AclResource.TRANSACTIONAL_ID: Kind.TRANSACTIONAL_ID,
}


@dataclass(frozen=True)
class Case:
    """A command without one of its ACLs, or (None) with all of them."""

    command: str
    missing: RequiredAcl | None

    @property
    def user(self) -> str:
        return f"{self.command}-{'all' if self.missing is None else COMMAND_ACLS[self.command].index(self.missing)}"

    @property
    def number(self) -> int:
        """The partition of the topic, and the topics, that are for this case alone."""
        return ALL.index(self)

    @property
    def acls(self) -> tuple[RequiredAcl, ...]:
        """Where one is missing, what it implies is there: DESCRIBE in place of READ."""
        gone, held = self.missing, [acl for acl in COMMAND_ACLS[self.command] if acl is not self.missing]
        if gone is not None and gone.operation in WEAKER:
            held.append(replace(gone, operation=WEAKER[gone.operation]))
        return tuple(held)

    def __str__(self) -> str:
        return f"{self.command} without {self.missing}" if self.missing else f"{self.command} with all"


def cases(command: str) -> list[Case]:
    return [*(Case(command, acl) for acl in COMMAND_ACLS[command]), Case(command, None)]


ALL = [case for command in COMMANDS for case in cases(command)]


@dataclass(frozen=True)
class Ran:
    code: int
    said: str


class Desk:
    """Where kelr runs as one of many users; each has its own state directory."""

    def __init__(self, lab: Lab, home: Path) -> None:
        self.lab = lab
        self._home = home
        self._ran: dict[Case, Ran] = {}

    def run(self, case: Case) -> Ran:
        if case not in self._ran:
            state = self.state(case.user)
            killed = self._home / "killed" / case.command
            if killed.exists():
                shutil.copytree(killed, state)
            values = {
                "{own}": f"{TOPIC}:{case.number}",
                "{held}": f"held-{case.number}",
                "{target}": f"{TARGET}-{case.number}",
            }
            words = [values.get(word, word.replace("{out}", f"out-{case.number}")) for word in COMMANDS[case.command]]
            self._ran[case] = self.kelr(case.user, *words)
        return self._ran[case]

    def state(self, user: str) -> Path:
        return self._home / "state" / user

    def kelr(self, user: str, *words: str) -> Ran:
        config = self._home / f"{user}.properties"
        login = client_login(Mechanism.OAUTHBEARER, user, "")
        config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={login}\n")
        flags = ("-b", self.lab.client_servers, "--command-config", str(config), "--timeout", "20")
        done = subprocess.run(
            [sys.executable, "-m", "kelr", *words, *flags],
            cwd=self._home,
            env={**os.environ, "KELR_STATE_DIR": str(self.state(user))},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, " ".join(f"{done.stdout} {done.stderr}".split()))

    def topics(self) -> Mapping[str, int]:
        """Topic to number of partitions: the one that all share, and those of single cases."""
        held = [f"held-{case.number}" for case in ALL if case.command == "recover hold"]
        return {TOPIC: len(ALL), **dict.fromkeys(held, 1)}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Two brokers; the leader of everything is dead, and the other replica has fewer records and is not eligible."""
    home = tmp_path_factory.mktemp("acls")
    spec = LabSpec(brokers=2, security="sasl_plaintext", sasl_mechanism="OAUTHBEARER", authorizer=True)
    with Lab.up(spec, home / "lab", owner_pid=os.getpid()) as lab:
        desk = Desk(lab, home)
        for name, count in desk.topics().items():
            create_topic(lab, name, [[1, 2]] * count, {})
        for case in cases("rescue replay"):
            create_topic(lab, f"{TARGET}-{case.number}", [[2]] * len(ALL), {"min.insync.replicas": "1"})
        fill(desk, Acks.ALL, lambda state: len(state.isr) == 2)
        grant(lab, ALL)
        lab.kill(2)
        fill(desk, Acks.LEADER, lambda state: state.isr == (1,))
        lab.kill(1)
        lab.start(2)
        for name in desk.topics():
            lab.wait_partitions(name, "nobody leads", lambda state: state.leader is None and state.elr == (1,))
        prepare(desk, home)
        yield desk


def fill(desk: Desk, acks: Acks, holds: Callable[[PartitionState], bool]) -> None:
    for name, count in desk.topics().items():
        desk.lab.wait_partitions(name, f"ready for acks={acks}", holds)
        produce(desk.lab.bootstrap_servers, name, range(count), batches=1, records=5, acks=acks, label=str(acks))


def prepare(desk: Desk, home: Path) -> None:
    """A plan, a file of saved records, and the journals of runs that were killed after they had changed an order."""
    apply, dump = cases("recover apply")[-1], cases("rescue dump")[-1]
    for words in (
        ("recover", "plan", f"{TOPIC}:{apply.number}", *DESIGNATE, "--out", "plan.json"),
        ("rescue", "dump", f"{TOPIC}:{dump.number}", *_ALL_OF_2, "--out", "saved.kelr-rescue"),
    ):
        ran = desk.kelr("kelr", *words)
        assert ran.code == 0, ran.said
    lab = desk.lab
    for case in cases("rescue replay"):
        produce(
            lab.bootstrap_servers,
            f"{TARGET}-{case.number}",
            (dump.number,),
            batches=1,
            records=5,
            acks=Acks.ALL,
            label="x",
        )
    for command in ("recover resume", "recover undo"):
        state, at = home / "killed" / command, cases(command)[-1].number
        state.mkdir(parents=True)
        with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
            (page,) = decide_partitions(source, Selection((Target(topic=TOPIC, partitions=(at,)),)), clock_ms=now_ms)
        plan = plan_of(page.snapshot, page.decisions, lambda _at: WISH, now_ms=now_ms(), made_by="a test")
        (state / "plan.pickle").write_bytes(pickle.dumps(plan))
        driver = [sys.executable, "-m", "tests.cluster.apply_driver", lab.bootstrap_servers]
        done = subprocess.run([*driver, str(state / "plan.pickle"), str(state), "3", "after"], check=False, timeout=60)
        assert done.returncode == -signal.SIGKILL
        assert lab.partitions(TOPIC)[TopicPartition(TOPIC, at)].replicas == (2, 1)


WISH = Wish(ElectionType.DESIGNATION, 2)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def grant(lab: Lab, wanted: list[Case]) -> None:
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    bindings = [binding for case in wanted for acl in case.acls for binding in bindings_of(acl, case.user)]
    for done in admin.create_acls(bindings).values():
        done.result(30)


def bindings_of(acl: RequiredAcl, user: str) -> list[AclBinding]:
    """A topic's ACL is for those of the tests, and for no internal one."""
    who = (f"User:{user}", "*", getattr(Operation, acl.operation), AclPermissionType.ALLOW)
    if acl.resource is AclResource.TOPIC and acl.name is None:
        names, pattern = [TOPIC, "held-", f"{TARGET}-"], ResourcePatternType.PREFIXED
    else:
        names, pattern = [acl.name or "*"], ResourcePatternType.LITERAL
    if acl.resource is AclResource.CLUSTER:
        names = ["kafka-cluster"]
    return [AclBinding(_KINDS[acl.resource], name, pattern, *who) for name in names]


WORDS: Mapping[tuple[str, AclOperation], str] = {
    ("describe", AclOperation.DESCRIBE_CONFIGS): "min ISR is not known: TOPIC_AUTHORIZATION_FAILED",
    ("log-info", AclOperation.READ): "epochs: TOPIC_AUTHORIZATION_FAILED (READ)",
    ("explain", AclOperation.DESCRIBE): "a reassignment is under way is not known (CLUSTER_AUTHORIZATION_FAILED)",
    ("explain", AclOperation.READ): "epochs not known (TOPIC_AUTHORIZATION_FAILED (READ))",
    ("explain", AclOperation.DESCRIBE_CONFIGS): "could not be read (TOPIC_AUTHORIZATION_FAILED)",
    ("history", AclOperation.CLUSTER_ACTION): "it needs CLUSTER_ACTION on the cluster",
    ("history", AclOperation.DESCRIBE): "it needs DESCRIBE on the cluster",
    ("elect", AclOperation.ALTER): "lacks ALTER on the cluster",
    ("elect", AclOperation.READ): "TOPIC_AUTHORIZATION_FAILED (READ)",
    ("recover plan", AclOperation.DESCRIBE): "kelr needs DESCRIBE on the cluster to ask",
    ("recover apply", AclOperation.ALTER): "lacks ALTER on the cluster",
    ("recover apply", AclOperation.READ): "lacks READ on topic orders",
    ("recover resume", AclOperation.ALTER): "lacks ALTER on the cluster",
    ("recover undo", AclOperation.ALTER): "lacks ALTER on the cluster",
    ("recover undo", AclOperation.DESCRIBE): "lacks DESCRIBE on topic orders",
    ("recover hold", AclOperation.ALTER_CONFIGS): "lacks ALTER_CONFIGS on topic held-",
    ("recover verify", AclOperation.READ): "READ",
    ("rescue dump", AclOperation.READ): "READ on the topic is needed",
    ("rescue replay", AclOperation.WRITE): "lacks WRITE on topic rescued-",
    ("rescue replay", AclOperation.READ): "READ on the topic is needed",
}
"""What is said where an ACL is missing; of the others only how the command ends is looked at."""
SHOWN = [
    case
    for case in ALL
    if case.command in {"history", "recover hold", "rescue replay"}
    and (case.missing is None or case.missing.exit_code is not None)
]
"""What other tests do not look at anyway."""
REST = [case for case in ALL if case not in SHOWN and not (case.missing and case.missing.only)]


@pytest.mark.parametrize("case", SHOWN, ids=str)
def test_each_acl_is_needed_and_all_are_enough(desk: Desk, case: Case) -> None:
    check(desk, case)


@pytest.mark.longer
@pytest.mark.parametrize("case", REST, ids=str)
def test_each_acl_of_every_command(desk: Desk, case: Case) -> None:
    check(desk, case)


def check(desk: Desk, case: Case) -> None:
    before = desk.lab.partitions(TOPIC)
    ran = desk.run(case)
    expected = _WITH_ALL.get(case.command, 0)
    if case.missing is not None and case.missing.exit_code is not None:
        expected = case.missing.exit_code
    assert ran.code == expected, ran.said
    if case.missing is not None:
        assert WORDS.get((case.command, case.missing.operation), "") in ran.said
    if expected in {4, 6}:
        assert desk.lab.partitions(TOPIC) == before


_WITH_ALL = {"recover verify": 1}
"""A replica is away, which is not yet well."""


def test_every_command_that_asks_a_cluster_has_its_acls() -> None:
    asking = set()
    for registered in REGISTERED:
        command = load(registered)
        under = getattr(command, "commands", None) or {"": command}
        for name, one in under.items():
            if any("--bootstrap-server" in option.opts for option in one.params):
                asking.add(f"{registered.name} {name}".strip())
    assert asking - set(COMMAND_ACLS) == NO_CLUSTER
    assert set(COMMANDS) <= set(COMMAND_ACLS) <= asking
