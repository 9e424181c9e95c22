"""Every command with exactly the ACLs of `kelr.model.acls`, and with each of them taken away, on a real cluster.

Clients log in with unsecured tokens: anybody can be any user, so that each case has a user of its own, whose ACLs are
there before the first command runs.
"""

from __future__ import annotations

import html
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as WirePartition
from confluent_kafka.admin import (
    AclBinding,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
)
from confluent_kafka.admin import AclOperation as Operation
from confluent_kafka.admin import ResourceType as Kind

from kelr.commands.registry import COMMANDS as REGISTERED
from kelr.commands.registry import load
from kelr.engine.planning import plan_of
from kelr.lab import Acks, Lab, LabSpec
from kelr.lab.observed import PATIENCE_S
from kelr.lab.produce import produce
from kelr.lab.security.access import client_login
from kelr.lab.security.kinds import Mechanism
from kelr.lab.story import create_topic
from kelr.model import ElectionRequest, ElectionType, PartitionState, Selection, Target, TopicPartition
from kelr.model.acls import COMMAND_ACLS, NO_CLUSTER, WEAKER, AclOperation, AclResource, RequiredAcl
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource

TOPIC, TARGET = "orders", "rescued"
VERIFIED = "verified"
"""Its partition has been elected a leader: what is looked at afterwards has a group and an open transaction in it."""
GROUP, TRANSACTION = "its-group", "its-transaction"
_ALL_OF_2 = ("--from-replica", "2", "--from-offset", "0")
CONSENT = ("--yes", "--accept-loss", "0+", "--force", "broker 1 is gone")
DESIGNATE = ("--election-type", "designation", "--designate", "2")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "describe": ("describe", TOPIC),
    "watch": ("watch", "{own}", "-o", "ndjson", "--for", "4s"),
    "log-info": ("log-info", "{own}"),
    "explain": ("explain", "{own}"),
    "whatif": ("whatif", VERIFIED, "--stop", "2"),
    "snapshot": ("snapshot", "{out}.kelr", "{own}"),
    "history": ("history", "{own}"),
    "report": ("report", "{out}.html", "{own}"),
    "metrics read": ("metrics", "read"),
    "metrics export": ("metrics", "export", "--listen", "127.0.0.1:0"),
    "doctor": ("doctor", "{own}"),
    "elect": ("elect", "{own}", *DESIGNATE, *CONSENT),
    "recover collect": ("recover", "collect", "{own}", "--out", "{out}.kelr"),
    "recover plan": ("recover", "plan", "{own}", *DESIGNATE, "--out", "{out}.json"),
    "recover apply": ("recover", "apply", "plan.json", *CONSENT),
    "recover resume": ("recover", "resume", "--yes"),
    "recover undo": ("recover", "undo", "--yes"),
    "recover verify": ("recover", "verify", "verified.json"),
    "recover status": ("recover", "status"),
    "recover clear-elr": ("recover", "clear-elr", "{held}", "--yes-clear-elr-of", "{held}", "--force", "a test"),
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
ALTER, WITHOUT_READ = COMMAND_ACLS["elect"][:2]
BLIND = "blind"
"""A user who may elect, and see no topic."""


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
            if self.began(case):
                shutil.copytree(self.killed(case), state)
            values = {
                "{own}": f"{TOPIC}:{case.number}",
                "{held}": f"held-{case.number}",
                "{target}": f"{TARGET}-{case.number}",
            }
            words = [values.get(word, word.replace("{out}", f"out-{case.number}")) for word in COMMANDS[case.command]]
            run = self.exporter if case.command == "metrics export" else self.kelr
            ran = run(case.user, *words)
            pages = [text for word in words if word.endswith(".html") for text in [(self._home / word).read_text()]]
            self._ran[case] = _ran(ran.code, ran.said, html.unescape(re.sub(r"<[^>]+>", "", " ".join(pages))))
        return self._ran[case]

    def state(self, user: str) -> Path:
        return self._home / "state" / user

    def began(self, case: Case) -> bool:
        """Whether the case begins with the journal of a run that was killed."""
        return self.killed(case).exists()

    def killed(self, case: Case) -> Path:
        """The state directory of the run that was killed for this case alone: to a case with another's copy of it, that
        one's restoring would be the doing of another machine."""
        return self._home / "killed" / case.user

    def records(self, user: str) -> list[str]:
        """Journals and audit logs: what kelr has written about changes that it made or began. That an election was
        refused before the first request is an audit line, too, and none of these."""
        lines = [line for path in self.state(user).rglob("*.jsonl") for line in path.read_text().splitlines()]
        return [line for line in lines if json.loads(line).get("result") != "refused"]

    def kelr(self, user: str, *words: str, flags: bool = True) -> Ran:
        line, environment = self._asked(user, words, flags=flags)
        done = subprocess.run(
            line, cwd=self._home, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return _ran(done.returncode, done.stdout, done.stderr)

    def exporter(self, user: str, *words: str) -> Ran:
        """An exporter that is ended once it has looked; what it served, and how it ended."""
        line, environment = self._asked(user, words)
        with subprocess.Popen(line, cwd=self._home, env=environment, stderr=subprocess.PIPE, text=True) as running:
            assert running.stderr is not None
            said = running.stderr.readline()
            try:
                served, deadline = "", time.monotonic() + PATIENCE_S
                while "kelr_looks_total 0.0" in served or not served:
                    assert time.monotonic() < deadline, served
                    served = httpx.get(said.split()[1].rstrip(",")).text
            finally:
                running.terminate()
            return _ran(running.wait(60), served, said + running.stderr.read())

    def _asked(self, user: str, words: tuple[str, ...], *, flags: bool = True) -> tuple[list[str], Mapping[str, str]]:
        config = self._home / f"{user}.properties"
        login = client_login(Mechanism.OAUTHBEARER, user, "")
        config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\nsasl.jaas.config={login}\n")
        connection = ("-b", self.lab.client_servers, "--command-config", str(config), "--timeout", "20")
        environment = {
            **os.environ,
            "KELR_STATE_DIR": str(self.state(user)),
            "KELR_CONFIG_DIR": str(self._home / "config" / user),
        }
        return [sys.executable, "-m", "kelr", *words, *(connection if flags else ())], environment

    def topics(self) -> Mapping[str, int]:
        """Topic to number of partitions: the one that all share, and those of single cases."""
        held = [f"held-{case.number}" for case in (*cases("recover clear-elr"), *cases("recover status"))]
        return {TOPIC: len(ALL), VERIFIED: 1, **dict.fromkeys(held, 1)}


def _ran(code: int, out: str, err: str) -> Ran:
    return Ran(code, " ".join(f"{out} {err}".split()))


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Two brokers; the leader of everything is dead, and the other replica has fewer records and is not eligible."""
    home = tmp_path_factory.mktemp("acls")
    spec = LabSpec(brokers=2, security="sasl_plaintext", sasl_mechanism="OAUTHBEARER", authorizer=True)
    with Lab.up(spec, home / "lab", owner_pid=os.getpid()) as lab:
        desk = Desk(lab, home)
        for internal in ("__consumer_offsets", "__transaction_state"):
            # On the broker that lives, so that groups and transactions have coordinators.
            create_topic(lab, internal, [[2]] * 3, {"cleanup.policy": "compact", "min.insync.replicas": "1"})
        for name, count in desk.topics().items():
            create_topic(lab, name, [[1, 2]] * count, {})
        for case in cases("rescue replay"):
            create_topic(lab, f"{TARGET}-{case.number}", [[2]] * len(ALL), {"min.insync.replicas": "1"})
        fill(desk, Acks.ALL, lambda state: len(state.isr) == 2)
        grant(lab, [(case.user, case.acls) for case in ALL] + [(BLIND, (ALTER,))])
        lab.kill(2)
        fill(desk, Acks.LEADER, lambda state: state.isr == (1,))
        lab.kill(1)
        lab.start(2)
        for name in desk.topics():
            lab.wait_partitions(name, "nobody leads", lambda state: state.leader is None and state.elr == (1,))
        prepare(desk)
        with used(desk):
            yield desk


def fill(desk: Desk, acks: Acks, holds: Callable[[PartitionState], bool]) -> None:
    for name, count in desk.topics().items():
        desk.lab.wait_partitions(name, f"ready for acks={acks}", holds)
        produce(desk.lab.bootstrap_servers, name, range(count), batches=1, records=5, acks=acks, label=str(acks))


def prepare(desk: Desk) -> None:
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
    for command in ("recover resume", "recover undo", "recover status"):
        for case in cases(command):
            begin(desk, case)


def begin(desk: Desk, case: Case) -> None:
    """A run that was killed for this case; for `recover status` also a hold."""
    lab, state, at = desk.lab, desk.killed(case), case.number
    state.mkdir(parents=True)
    with LiveSource(ConnectionSettings.read(lab.bootstrap_servers, timeout_s=20)) as source:
        (page,) = decide_partitions(source, Selection((Target(topic=TOPIC, partitions=(at,)),)), clock_ms=now_ms)
    plan = plan_of(page.snapshot, page.decisions, lambda _at: WISH, now_ms=now_ms(), made_by="a test")
    (state / "plan.pickle").write_bytes(pickle.dumps(plan))
    driver = [sys.executable, "-m", "tests.cluster.apply_driver", lab.bootstrap_servers]
    done = subprocess.run([*driver, str(state / "plan.pickle"), str(state), "3", "after"], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert lab.partitions(TOPIC)[TopicPartition(TOPIC, at)].replicas == (2, 1)
    if case.command == "recover status":
        held = f"held-{at}"
        words = (
            "recover",
            "clear-elr",
            held,
            "--yes-clear-elr-of",
            held,
            "--force",
            "a test",
            "-b",
            lab.bootstrap_servers,
        )
        environment = {**os.environ, "KELR_STATE_DIR": str(state)}
        done = subprocess.run([sys.executable, "-c", DIES, *words], env=environment, check=False, timeout=60)
        assert done.returncode == -signal.SIGKILL


DIES = """
import sys
from kelr.commands.main import main
from tests.cluster.apply_driver import _die_at
_die_at(3, "after")
sys.exit(main(sys.argv[1:]))
"""
"""kelr, killed once the third line of a journal is written: a hold has asked for its write, and restored nothing."""


@contextmanager
def used(desk: Desk) -> Iterator[None]:
    """A partition that a plan gave a leader, and since then: what a group has committed, and an open transaction."""
    for words in (
        ("recover", "plan", VERIFIED, *DESIGNATE, "--out", "verified.json"),
        ("recover", "apply", "verified.json", *CONSENT),
    ):
        ran = desk.kelr("kelr", *words)
        assert ran.code == 0, ran.said
    quiet = {"bootstrap.servers": desk.lab.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
    alone = ConfigResource(ConfigResource.Type.TOPIC, VERIFIED)
    alone.add_incremental_config(ConfigEntry("min.insync.replicas", "1", incremental_operation=AlterConfigOpType.SET))
    admin = AdminClient(quiet)
    for done in admin.incremental_alter_configs([alone]).values():
        done.result(30)
    consumer = Consumer({**quiet, "group.id": GROUP, "enable.auto.commit": False})
    (told,) = consumer.commit(offsets=[WirePartition(VERIFIED, 0, 3)], asynchronous=False)
    assert told.error is None
    consumer.close()
    producer = Producer({**quiet, "transactional.id": TRANSACTION, "transaction.timeout.ms": 600_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(VERIFIED, b"open", partition=0)
    assert producer.flush(30) == 0
    yield
    producer.abort_transaction(30)


WISH = ElectionRequest(ElectionType.DESIGNATION, 2)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def grant(lab: Lab, wanted: list[tuple[str, tuple[RequiredAcl, ...]]]) -> None:
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    bindings = [binding for user, acls in wanted for acl in acls for binding in bindings_of(acl, user)]
    for done in admin.create_acls(bindings).values():
        done.result(30)


def bindings_of(acl: RequiredAcl, user: str) -> list[AclBinding]:
    """A topic's ACL is for those of the tests, and for no internal one."""
    who = (f"User:{user}", "*", getattr(Operation, acl.operation), AclPermissionType.ALLOW)
    if acl.resource is AclResource.TOPIC and acl.name is None:
        names, pattern = [TOPIC, VERIFIED, "held-", f"{TARGET}-"], ResourcePatternType.PREFIXED
    else:
        names, pattern = [acl.name or "*"], ResourcePatternType.LITERAL
    if acl.resource is AclResource.CLUSTER:
        names = ["kafka-cluster"]
    return [AclBinding(_KINDS[acl.resource], name, pattern, *who) for name in names]


_NO_REASSIGNMENTS = "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster"
_NO_EPOCHS = "TOPIC_AUTHORIZATION_FAILED: it needs READ on the topic"
_NO_CONFIGS = "TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic"
_NOT_SHOWN = "1 topic could not be described: {topic} fix: the principal needs DESCRIBE on these topics"
_C, _T = AclResource.CLUSTER, AclResource.TOPIC
_LOOKS = {
    (_C, AclOperation.DESCRIBE): f"a reassignment is under way is not known ({_NO_REASSIGNMENTS})",
    (_T, AclOperation.READ): f"not known: {_NO_EPOCHS}",
    (_T, AclOperation.DESCRIBE_CONFIGS): f"configs of topic {TOPIC} could not be read ({_NO_CONFIGS})",
}
_SAVES = {
    (_C, AclOperation.DESCRIBE): f"reassignments under way are not in it: {_NO_REASSIGNMENTS}",
    (_T, AclOperation.READ): f"epochs of 1 log are not in it: {_NO_EPOCHS}",
    (_T, AclOperation.DESCRIBE_CONFIGS): f"configs of 1 topic are not in it: {_NO_CONFIGS}",
}
_PLANS = {
    (_C, AclOperation.DESCRIBE): f"Whether a reassignment is under way is not known ({_NO_REASSIGNMENTS})",
    (_T, AclOperation.READ): f"the log of 2 tells no epochs ({_NO_EPOCHS})",
    (_T, AclOperation.DESCRIBE_CONFIGS): f"Configs of topic {TOPIC} could not be read ({_NO_CONFIGS})",
}
_CHANGED = f"The effective min ISR is not known now: the topic's configs could not be read ({_NO_CONFIGS})"
_LACKS_ALTER = "the principal lacks ALTER on the cluster (ElectLeaders, AlterPartitionReassignments); nothing was"
_LACKS_READ = f"the principal lacks READ on topic {TOPIC} (reading the replicas' logs again); nothing was changed"
WORDS: Mapping[str, Mapping[tuple[AclResource, AclOperation], str]] = {
    "describe": {
        (_T, AclOperation.DESCRIBE): _NOT_SHOWN.format(topic=TOPIC),
        (_T, AclOperation.DESCRIBE_CONFIGS): f"min ISR is not known: {_NO_CONFIGS} for {TOPIC}",
    },
    # In a pipe it tells what changes; logs and reassignments are for its screen alone.
    "watch": {
        (_C, AclOperation.DESCRIBE): '"what": "partition"',
        (_T, AclOperation.READ): '"what": "partition"',
        (_T, AclOperation.DESCRIBE_CONFIGS): '"min_isr": null',
    },
    "log-info": {(_T, AclOperation.READ): f"epochs: {_NO_EPOCHS}"},
    "explain": _LOOKS,
    "whatif": {
        (_C, AclOperation.DESCRIBE): f"whether reassignments are under way is UNKNOWN ({_NO_REASSIGNMENTS})",
        (_T, AclOperation.DESCRIBE): _NOT_SHOWN.format(topic=VERIFIED),
        (_T, AclOperation.DESCRIBE_CONFIGS): "perhaps under min ISR (UNKNOWN), or worse",
    },
    "snapshot": _SAVES,
    "history": {
        (_C, AclOperation.CLUSTER_ACTION): "it needs CLUSTER_ACTION on the cluster",
        (_C, AclOperation.DESCRIBE): "it needs DESCRIBE on the cluster",
    },
    "report": {
        **_LOOKS,
        (_T, AclOperation.READ): _NO_EPOCHS,
        (_C, AclOperation.CLUSTER_ACTION): "The metadata log could not be read: ",
    },
    # Nobody is named as missing where nothing is named: brokers leave topics out.
    "metrics read": {
        (
            _T,
            AclOperation.DESCRIBE,
        ): "no partition was found: brokers leave topics that this principal may",
        (_T, AclOperation.DESCRIBE_CONFIGS): "it is not known whether kelr's at_min_isr",
    },
    "metrics export": {
        (
            _T,
            AclOperation.DESCRIBE,
        ): "this principal may not describe. # TYPE kelr_partitions gauge kelr_partitions 0.0",
        (_T, AclOperation.DESCRIBE_CONFIGS): 'kelr_unknown_partitions{figure="global_under_min_isr"}',
    },
    "doctor": {
        (_C, AclOperation.DESCRIBE): f"4 checks incomplete: {_NO_REASSIGNMENTS}."
        " [controller-behind, controllers-few, metadata-behind, clock-off]",
        (_C, AclOperation.DESCRIBE_CONFIGS): "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the cluster",
        (_T, AclOperation.DESCRIBE): _NOT_SHOWN.format(topic=TOPIC),
        (_T, AclOperation.DESCRIBE_CONFIGS): f"9 checks incomplete: {_NO_CONFIGS} (1 topic: {TOPIC})."
        " [under-min-isr, unclean-election, min-isr-one, min-isr-is-rf, records-elsewhere, throttle-left,",
    },
    "elect": {
        (_C, AclOperation.ALTER): _LACKS_ALTER,
        (_T, AclOperation.READ): _PLANS[_T, AclOperation.READ],
        (_T, AclOperation.DESCRIBE_CONFIGS): _PLANS[_T, AclOperation.DESCRIBE_CONFIGS],
    },
    "recover collect": _SAVES,
    "recover plan": _PLANS,
    "recover apply": {
        (_C, AclOperation.ALTER): _LACKS_ALTER,
        (_T, AclOperation.READ): _LACKS_READ,
        (_T, AclOperation.DESCRIBE_CONFIGS): _CHANGED,
    },
    "recover resume": {
        (_C, AclOperation.ALTER): _LACKS_ALTER,
        (_T, AclOperation.READ): _LACKS_READ,
        (_T, AclOperation.DESCRIBE_CONFIGS): _CHANGED,
    },
    "recover undo": {
        (_C, AclOperation.ALTER): _LACKS_ALTER,
        (_T, AclOperation.DESCRIBE): f"the principal lacks DESCRIBE on topic {TOPIC} (reading the partitions again)",
    },
    "recover verify": {
        (_C, AclOperation.DESCRIBE): f"UNKNOWN groups of {VERIFIED}:0: there may be groups that were not seen:"
        " ListGroups names only the groups that may be seen (needs DESCRIBE on the cluster)",
        (_T, AclOperation.READ): f"UNKNOWN logs of {VERIFIED}:0: the epochs of 2's log are not known: {_NO_EPOCHS}",
        (_T, AclOperation.DESCRIBE_CONFIGS): f"because min.insync.replicas is not ({_NO_CONFIGS})",
        (
            AclResource.GROUP,
            AclOperation.DESCRIBE,
        ): " of __consumer_offsets (needs DESCRIBE on the group)",
        (_T, AclOperation.DESCRIBE): "there may be groups that were not seen: __consumer_offsets:"
        " TOPIC_AUTHORIZATION_FAILED (needs DESCRIBE on topic __consumer_offsets)",
        (AclResource.TRANSACTIONAL_ID, AclOperation.DESCRIBE): "whether its producer is alive is not known: no"
        " coordinator lists it, and one that may not be seen is not listed (needs DESCRIBE on its transactional id)",
    },
    "recover status": {
        (_T, AclOperation.DESCRIBE): "where it stands is not known: it could not be described"
        " (TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE on the topic)",
        (_T, AclOperation.DESCRIBE_CONFIGS): "whether it is restored is not known: it could not be read"
        f" ({_NO_CONFIGS})",
    },
    "recover clear-elr": {
        (
            _T,
            AclOperation.DESCRIBE,
        ): "topic held-{number} cannot be read: TOPIC_AUTHORIZATION_FAILED fix: the principal"
        " needs DESCRIBE on the topic",
        (_T, AclOperation.ALTER_CONFIGS): "the principal lacks ALTER_CONFIGS on topic held-{number}"
        " (IncrementalAlterConfigs); nothing was changed",
    },
    "rescue dump": {(_T, AclOperation.READ): _NO_EPOCHS},
    "rescue replay": {
        (_T, AclOperation.WRITE): "the principal lacks WRITE on topic rescued-{number}; nothing was produced",
        (_T, AclOperation.READ): f"{_NO_EPOCHS}; whether records were replayed already cannot be told",
    },
}
"""What a person reads where an ACL is missing: the operation and what it is on."""
_UNHEARD = re.compile("AUTHORIZATION_FAILED|the principal (lacks|needs)|it needs [A-Z]{4}|[(]needs [A-Z]{4}")
"""None of it is said where everything is there."""
SHOWN = [
    case
    for case in ALL
    if case.command in {"history", "elect", "recover apply", "recover clear-elr", "rescue dump", "rescue replay"}
    and (case.missing is None or case.missing.exit_code is not None)
]
"""What changes or saves something, or ends, where an ACL is missing."""
REST = [case for case in ALL if case not in SHOWN]


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
    missing = case.missing
    expected = _WITH_ALL.get(case.command, 0) if missing is None else missing.exit_code or 0
    assert ran.code == expected, ran.said
    if missing is not None:
        words = WORDS[case.command][missing.resource, missing.operation]
        assert words.replace("{number}", str(case.number)) in ran.said
    else:
        # Doctor tells what the principal may do with other commands, too.
        said = re.sub("This principal .*", "", ran.said)
        assert _UNHEARD.search(said) is None, ran.said
    if expected in {4, 6}:
        assert desk.lab.partitions(TOPIC) == before
        assert desk.began(case) or desk.records(case.user) == []


_WITH_ALL = {"recover status": 1}
"""Runs that were cut short are left."""


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("elect", f"{TOPIC}:0", *DESIGNATE, *CONSENT), "DESCRIBE"),
        (("elect", f"{TOPIC}:0", "-e", "longest_log_aggressive", *CONSENT), "DESCRIBE"),
        (("recover", "plan", f"{TOPIC}:0"), "TOPIC_AUTHORIZATION_FAILED"),
        (("recover", "apply", "plan.json", *CONSENT), f"DESCRIBE on topic {TOPIC}"),
        (("rescue", "dump", f"{TOPIC}:0", *_ALL_OF_2, "--out", "blind.kelr-rescue"), "DESCRIBE"),
    ],
)
def test_nothing_is_done_on_a_topic_that_may_not_be_seen(desk: Desk, words: tuple[str, ...], missing: str) -> None:
    before = desk.lab.partitions(TOPIC)
    ran = desk.kelr(BLIND, *words)
    assert ran.code == 4, ran.said
    assert missing in ran.said
    assert desk.lab.partitions(TOPIC) == before
    assert desk.records(BLIND) == []


def test_without_read_nothing_is_elected_unless_forced(desk: Desk) -> None:
    """The logs' ends are known and their epochs are not: no loss is counted, so that a plain yes is not enough."""
    case = Case("elect", WITHOUT_READ)
    before, written = desk.lab.partitions(TOPIC), desk.records(case.user)
    # A partition that no other test gives a leader.
    ran = desk.kelr(case.user, "elect", f"{TOPIC}:0", *DESIGNATE, "--yes")
    assert ran.code == 6, ran.said
    assert "READ" in ran.said
    assert "--force" in ran.said
    assert desk.lab.partitions(TOPIC) == before
    assert desk.records(case.user) == written


def test_the_words_of_every_missing_acl_are_looked_at() -> None:
    needed = {command: {(acl.resource, acl.operation) for acl in COMMAND_ACLS[command]} for command in COMMANDS}
    assert {command: set(words) for command, words in WORDS.items()} == needed


@pytest.mark.longer
def test_trying_a_context_needs_no_acl(desk: Desk) -> None:
    added = desk.kelr("nobody", "context", "add", "lab")
    assert added.code == 0, added.said
    ran = desk.kelr("nobody", "context", "test", "lab", flags=False)
    assert ran.code == 0, ran.said
    assert _UNHEARD.search(ran.said) is None, ran.said


def test_every_command_that_asks_a_cluster_has_its_acls() -> None:
    asking = set()
    for registered in REGISTERED:
        command = load(registered)
        under = getattr(command, "commands", None) or {"": command}
        for name, one in under.items():
            if not one.hidden and any("--bootstrap-server" in option.opts for option in one.params):
                asking.add(f"{registered.name} {name}".strip())
    assert asking - set(COMMAND_ACLS) == NO_CLUSTER
    assert set(COMMANDS) <= set(COMMAND_ACLS) <= asking
