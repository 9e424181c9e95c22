"""A simulated lab in a process of its own: up, driven, seen over the wire, gone; what ``kelr lab`` does with it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kelr.commands.main import main
from kelr.errors import BadInputError, LabError, UsageError
from kelr.lab import INCIDENTS, Lab, LabSpec, down, open_lab, run_incident
from kelr.lab.processes import all_under, free_ports, signal_all
from kelr.lab.simulated.lab import SimulatedLab
from kelr.lab.simulated.spec import SimulatedSpec, load_simulated
from kelr.lab.state import LabState, claim_directory
from kelr.model import PartitionState, TopicPartition
from kelr.sources.disk import DiskCollection, read_log_directories
from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT

SPEC = SimulatedSpec(rules="elr-4.3")
ONE_BROKER = SimulatedSpec(brokers=1, racks=1, min_isr=1, replication=1)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedLab]:
    """One for all tests; each finds it as the last one left it."""
    directory = tmp_path_factory.mktemp("simulated") / "lab"
    with SimulatedLab.up(SPEC, directory, owner_pid=os.getpid()) as lab:
        yield lab
        assert lab.status().rehearsal.broken_handlers == ()  # type: ignore[union-attr]


@pytest.fixture
def healthy(lab: SimulatedLab) -> SimulatedLab:
    lab.restore()
    lab.allow()
    return lab


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    """A test that fails half way leaves no process behind."""
    yield
    signal_all(all_under(tmp_path), signal.SIGKILL)


def kelr(capsys: pytest.CaptureFixture[str], lab: SimulatedLab | Path, *arguments: str) -> tuple[int, str, str]:
    """``kelr lab ...`` about this lab: exit code, stdout, stderr."""
    directory = lab if isinstance(lab, Path) else lab.directory
    code = main(["lab", *arguments, "--dir", str(directory)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def wait_for(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def processes_of(lab: SimulatedLab) -> list[psutil.Process]:
    return all_under(lab.directory)


# The lab itself.


def test_a_lab_is_what_its_spec_says(healthy: SimulatedLab) -> None:
    status = healthy.status()
    assert (status.kafka, status.elr, status.min_isr, status.ready) == (None, True, 2, True)
    assert [(node.name, node.rack, node.fenced, node.paused) for node in status.nodes] == [
        ("controller", None, None, False),
        ("broker 1", "az1", False, False),
        ("broker 2", "az2", False, False),
        ("broker 3", "az3", False, False),
    ]
    assert {node.pid for node in status.nodes} == {load_simulated(healthy.directory).process.pid}  # type: ignore[union-attr]
    assert status.rehearsal is not None
    assert (status.rehearsal.rules, status.rehearsal.virtual_clock) == ("elr-4.3", False)
    assert abs((status.rehearsal.now_ms or 0) - time.time() * 1000) < 60_000


def test_nobody_else_can_read_its_token(lab: SimulatedLab) -> None:
    file = lab.directory / "lab.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = json.loads(file.read_text())["token"]
    assert len(token) >= 32
    assert all(token not in argument for process in processes_of(lab) for argument in process.cmdline())


EXPECTED: dict[str, tuple[int | None, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "under-min-isr": (1, (1,), (2,), ()),
    "waiting-for-elr": (None, (), (1, 2), (1,)),
    "last-known-leader": (None, (), (), (1,)),
    "needs-unclean-recovery": (None, (), (1,), (1,)),
    "lossy-restart": (None, (), (1,), (1,)),
    "rack-outage": (None, (), (2, 3), (3,)),
}
"""Leader, ISR, ELR and LastKnownELR as docs/lab.md tells them of real Kafka, where tests/cluster holds them to it."""


def test_every_incident_of_partitions_is_played_here() -> None:
    assert list(EXPECTED) == [name for name, incident in INCIDENTS.items() if incident.controllers == 1]


def test_an_incident_of_the_quorum_needs_real_controllers(lab: SimulatedLab) -> None:
    with pytest.raises(LabError, match="real Kafka"):
        run_incident(lab, "quorum-lost")


@pytest.mark.parametrize("name", EXPECTED)
def test_an_incident_ends_as_on_real_kafka(lab: SimulatedLab, name: str) -> None:
    report = run_incident(lab, name)
    states = lab.partitions(report.topic)
    assert len(states) == 6
    assert {ends(state) for state in states.values()} == {EXPECTED[name]}


def ends(state: PartitionState) -> tuple[int | None, tuple[int, ...], tuple[int, ...] | None, tuple[int, ...] | None]:
    return state.leader, state.isr, state.elr, state.last_known_elr


def test_the_last_leader_wins_on_its_return(lab: SimulatedLab) -> None:
    report = run_incident(lab, "lossy-restart")
    lab.start(1)
    lab.wait_partitions(report.topic, "1 leads", lambda state: state.leader == 1 and len(state.isr) == 3)
    # Broker 1 lost 20 of its 50 records of the odd partitions; all follow it.
    marks = lab.saved_high_watermarks(1, report.topic)
    assert [marks[partition] for partition in range(6)] == [50, 30, 50, 30, 50, 30]


def test_an_incident_needs_what_it_needs(tmp_path: Path) -> None:
    with SimulatedLab.up(SimulatedSpec(rules="kraft"), tmp_path / "lab", owner_pid=os.getpid()) as lab:
        with pytest.raises(LabError, match="waiting-for-elr needs ELR, and this lab has none"):
            run_incident(lab, "waiting-for-elr")
        assert run_incident(lab, "needs-unclean-recovery").absent == (1,)


def test_restore_puts_everything_right(lab: SimulatedLab) -> None:
    lab.kill(3)
    lab.sever(1, lab.controller)
    lab.fault("lose", api="Metadata")
    lab.pause(2)
    assert lab.restore() == ()
    status = lab.status()
    assert status.rehearsal is not None
    assert (status.rehearsal.severed, status.rehearsal.faults) == ((), ())
    assert [node.fenced for node in status.nodes] == [None, False, False, False]


def test_what_a_lab_does_not_have_is_said(healthy: SimulatedLab) -> None:
    with pytest.raises(UsageError, match="the lab has no broker 7"):
        healthy.kill(7)
    with pytest.raises(LabError, match="in memory alone"):
        healthy.data_directory(1)
    with pytest.raises(LabError, match="waited 0 s in vain until pigs fly"):
        healthy.wait_until("pigs fly", lambda: False, timeout_s=0)


# Beginning and end.


def test_down_leaves_nothing(tmp_path: Path) -> None:
    lab = SimulatedLab.up(ONE_BROKER, tmp_path / "lab", owner_pid=os.getpid())
    assert processes_of(lab)
    down(lab.directory)
    assert processes_of(lab) == []
    assert not lab.directory.exists()
    with pytest.raises(LabError, match="the simulated lab does not answer"):
        lab.kill(1)


def test_a_lab_ends_with_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    try:
        lab = SimulatedLab.up(ONE_BROKER, tmp_path / "lab", owner_pid=owner.pid)
    finally:
        owner.kill()
        owner.wait()
    wait_for("the lab is gone", lambda: not lab.directory.exists() and not processes_of(lab))


def test_a_process_that_was_killed_is_told_and_can_be_taken_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = SimulatedLab.up(ONE_BROKER, tmp_path / "lab", owner_pid=os.getpid())
    (process,) = [one for one in processes_of(lab) if "kelr.lab.simulated.process" in one.cmdline()]
    process.kill()
    wait_for("it has ended", lambda: not psutil.pid_exists(process.pid) or process.status() == psutil.STATUS_ZOMBIE)
    assert [node.pid for node in lab.status().nodes] == [None, None]
    code, _, err = kelr(capsys, lab, "kill", "1")
    assert code == 5
    assert "the simulated lab does not answer" in err
    assert "kelr lab down" in err
    assert kelr(capsys, lab, "down")[0] == 0
    assert not lab.directory.exists()


def test_a_directory_has_one_lab(lab: SimulatedLab) -> None:
    with pytest.raises(LabError, match=r"a lab is in .* already"):
        SimulatedLab.up(ONE_BROKER, lab.directory)
    assert lab.is_running(1)


def test_a_port_that_is_taken_meanwhile_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: SimulatedLab
) -> None:
    taken = {**free_ports((100, -1, -2)), 1: lab.port(1)}
    monkeypatch.setattr("kelr.lab.simulated.lab.free_ports", lambda _nodes: dict(taken))
    with pytest.raises(LabError, match=r"(?s)does not come up.*a port of the simulated cluster is taken"):
        SimulatedLab.up(ONE_BROKER, tmp_path / "lab")
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize("damage", [lambda _text: "{", lambda text: text.replace('"token"', '"tokem"')])
def test_a_damaged_lab_json_is_told(tmp_path: Path, damage: Callable[[str], str]) -> None:
    lab = SimulatedLab.up(ONE_BROKER, tmp_path / "lab", owner_pid=os.getpid())
    file = lab.directory / "lab.json"
    file.write_text(damage(file.read_text()))
    for call in (lambda: SimulatedLab.open(lab.directory), lambda: down(lab.directory)):
        with pytest.raises(LabError, match=r"lab\.json is damaged"):
            call()
    down(lab.directory, force=True)
    assert processes_of(lab) == []


def test_each_kind_of_lab_is_opened_as_what_it_is(lab: SimulatedLab, tmp_path: Path) -> None:
    assert isinstance(open_lab(lab.directory), SimulatedLab)
    with pytest.raises(LabError, match="the lab is a simulated one"):
        Lab.open(lab.directory)
    real(tmp_path / "real")
    assert isinstance(open_lab(tmp_path / "real"), Lab)
    with pytest.raises(LabError, match="the lab runs real Kafka"):
        SimulatedLab.open(tmp_path / "real")


def real(directory: Path) -> Path:
    """The directory of a real lab, none of whose processes runs."""
    spec = LabSpec(brokers=1, min_isr=1)
    claim_directory(directory, LabState("lab", "cluster", spec, {100: 20100, 1: 20001}, "java", (), ""))
    return directory


# Time that is turned.


def test_waiting_turns_a_virtual_clock(tmp_path: Path) -> None:
    with SimulatedLab.up(SPEC, tmp_path / "lab", virtual_clock=True, owner_pid=os.getpid()) as lab:
        began = time.monotonic()
        before = lab.status().rehearsal.now_ms  # type: ignore[union-attr]
        lab.kill(3)
        lab.advance(2999)
        assert lab.status().nodes[3].fenced is False
        lab.advance(1)
        assert lab.status().nodes[3].fenced is True
        lab.start(3)
        assert lab.status().nodes[3].fenced is False
        assert lab.status().rehearsal.now_ms > before + 3000  # type: ignore[union-attr,operator]
        assert time.monotonic() - began < 10
        assert run_incident(lab, "needs-unclean-recovery").absent == (1,)


# Snapshots and disks.


def test_a_lab_from_a_snapshot_is_the_snapshots_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "incident.kelr"
    write_snapshot(INCIDENT, file)
    assert kelr(capsys, tmp_path / "lab", "up", "--simulated", "--from", str(file))[0] == 0
    lab = SimulatedLab.open(tmp_path / "lab")
    try:
        file.unlink()  # the lab has its own copy
        assert set(lab.brokers) >= {broker.id for broker in INCIDENT.cluster.brokers}
        told = [state for state in INCIDENT.partitions if state.elr is not None]
        assert len(told) >= 4
        states = lab.partitions()
        assert [ends(states[state.address]) for state in told] == [ends(state) for state in told]
        assert lab.status().rehearsal.assumptions  # type: ignore[union-attr]
    finally:
        lab.down()


@pytest.mark.parametrize("option", ["--brokers", "--racks", "--min-isr", "--topics", "--partitions", "--replication"])
def test_a_snapshot_has_its_own_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    code, _, err = kelr(capsys, tmp_path / "lab", "up", "--simulated", "--from", "any.kelr", option, "1")
    assert (code, f"the snapshot has its own {option}" in err) == (2, True)


def test_a_bad_snapshot_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.kelr").write_text("not a snapshot")
    code, _, err = kelr(capsys, tmp_path / "lab", "up", "--simulated", "--from", str(tmp_path / "bad.kelr"))
    assert code == 2
    assert "bad.kelr" in err
    with pytest.raises(BadInputError):
        SimulatedLab.up(SPEC, tmp_path / "lab", snapshot=tmp_path / "bad.kelr")
    assert not (tmp_path / "lab").exists()


def test_a_dead_broker_leaves_its_log_directory(tmp_path: Path) -> None:
    with SimulatedLab.up(SPEC, tmp_path / "lab", log_dirs=True, owner_pid=os.getpid()) as lab:
        topic = run_incident(lab, "needs-unclean-recovery").topic
        assert log_ends(disk(lab, 1)) == {TopicPartition(topic, partition): 50 for partition in range(6)}
        assert (disk(lab, 1).running, disk(lab, 2).running) == (False, True)
        assert disk(lab, 1).clean_shutdown is False
        cut = lab.cut_tail(1, topic, 0, batches=2)
        assert (cut.from_offset, cut.to_offset) == (40, 50)
        assert log_ends(disk(lab, 1))[TopicPartition(topic, 0)] == 40
        lab.stop(2)
        assert disk(lab, 2).clean_shutdown is True


@pytest.mark.parametrize("epoch", ["own", "7000", "-1", "null", ""])
def test_a_broker_registers_by_the_mark_that_its_directory_has(tmp_path: Path, epoch: str) -> None:
    """Each was tried on real 4.3.1, where only its own broker epoch keeps it in the ELR."""
    with SimulatedLab.up(SPEC, tmp_path / "lab", log_dirs=True, owner_pid=os.getpid()) as lab:
        topic = run_incident(lab, "waiting-for-elr").topic
        mark = lab.data_directory(2) / ".kafka_cleanshutdown"
        if epoch != "own":
            mark.write_text(f'{{"version":0,"brokerEpoch":{epoch}}}')
        lab.start(2)
        states = lab.partitions(topic).values()
        kept = (2, ()) if epoch == "own" else (None, (1,))  # leading again it lets broker 3 in
        assert {(one.leader, one.elr) for one in states} == {kept}


def disk(lab: SimulatedLab, broker: int) -> DiskCollection:
    return read_log_directories([lab.data_directory(broker)], clock_ms=lambda: 0)


def log_ends(collection: DiskCollection) -> dict[TopicPartition, int]:
    return {at: log.answer.log_end for at, log in collection.logs.items()}  # type: ignore[union-attr]


def test_too_many_directories_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="each broker would have 1000000 replicas"):
        SimulatedLab.up(SimulatedSpec(topics=10_000, partitions=100), tmp_path / "lab", log_dirs=True)
    assert not (tmp_path / "lab").exists()


# The commands.


def test_up_shows_the_lab_and_env_and_down_end_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "lab"
    code, out, err = kelr(capsys, directory, "up", "--simulated", "--brokers", "1", "--topics", "3")
    assert code == 0, err
    assert out.startswith(f"Simulated, rules kip966-balanced, ELR on, min ISR 1, in {directory}\n")
    assert f"next: kelr lab incident --dir {directory}" in err
    lab = SimulatedLab.open(directory)
    assert lab.partitions().keys() == {TopicPartition(lab_topic, 0) for lab_topic in lab_topics(lab)}
    assert len(lab.partitions()) == 3
    code, out, _ = kelr(capsys, directory, "env")
    assert out == f"export KELR_BOOTSTRAP_SERVER={lab.bootstrap_servers}\nexport KELR_LAB_DIR={directory}\n"
    assert kelr(capsys, directory, "down") == (0, "", "the lab has ended; nothing is left of it\n")
    assert not directory.exists()


def lab_topics(lab: SimulatedLab) -> set[str]:
    return {address.topic for address in lab.partitions()}


def test_every_verb_does_what_it_says(healthy: SimulatedLab, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (("partition", "1", "controller"), "broker 1 and the controller do not reach each other"),
        (("partition", "2", "3"), "broker 2 and broker 3 do not reach each other"),
        (("heal", "3", "2"), "broker 3 and broker 2 reach each other"),
        (
            ("fault", "delay", "500", "--node", "controller", "--times", "3"),
            "delay strikes every request at the controller",
        ),
        (("fault", "error", "not_controller", "--api", "ElectLeaders", "--skip", "1"), "error strikes ElectLeaders"),
        (("deny", "alter"), "clients may not ALTER the cluster"),
        (("deny", "read", "--topic", "*"), "clients may not READ any topic"),
        (("deny", "READ", "--topic", "orders"), "clients may not READ topic orders"),
        (("allow", "ALTER"), "clients may ALTER the cluster"),
        (("pause", "2"), "broker 2 stands still"),
        (("kill", "3", "--power-loss"), "broker 3 lost its power, and what it had not flushed"),
    ):
        assert kelr(capsys, healthy, *arguments) == (0, "", f"{said}\n")
    healthy.expire(3)
    code, out, err = kelr(capsys, healthy, "status")
    assert (code, err) == (0, "")
    assert out.splitlines()[-5:] == [
        "no link between nodes 1 and 100",
        "fault: delay 500 strikes every request at node 100, 3 times",
        "fault: error 41 strikes ElectLeaders, after 1 more",
        "clients may not READ any topic",
        "clients may not READ topic orders",
    ]
    rows = {line.split()[1]: line.split()[-2:] for line in out.splitlines() if line.startswith("broker")}
    assert rows["2"][1] == "paused"
    assert rows["3"] == ["down", "fenced"]
    for arguments, said in (
        (("resume", "2"), "broker 2 goes on"),
        (("allow",), "clients may do everything"),
        (("fault", "--clear"), "no faults are left"),
        (("heal",), "every node reaches every other"),
        (("kill", "3", "--power-loss"), "broker 3 lost its power, and what it had not flushed"),
        (("start", "3"), "started 3"),
        (("stop", "3"), "stopped broker 3"),
    ):
        assert kelr(capsys, healthy, *arguments) == (0, "", f"{said}\n")
    assert kelr(capsys, healthy, "restore")[0] == 0
    status = healthy.status().rehearsal
    assert status is not None
    assert (status.severed, status.faults, status.denied) == ((), (), ())


def test_a_fault_may_take_the_place_of_the_others(healthy: SimulatedLab, capsys: pytest.CaptureFixture[str]) -> None:
    assert kelr(capsys, healthy, "fault", "lose")[0] == 0
    assert kelr(capsys, healthy, "fault", "close", "--clear", "--api", "fetch")[0] == 0
    assert [(rule["kind"], rule["api"]) for rule in healthy.status().rehearsal.faults] == [("close", "Fetch")]  # type: ignore[union-attr]


def test_a_fault_that_cannot_be_leaves_the_others(healthy: SimulatedLab, capsys: pytest.CaptureFixture[str]) -> None:
    assert kelr(capsys, healthy, "fault", "lose")[0] == 0
    assert kelr(capsys, healthy, "fault", "delay", "--clear")[0] == 2
    assert kelr(capsys, healthy, "fault", "nonsense", "--clear")[0] == 2
    assert kelr(capsys, healthy, "fault", "close", "--clear", "--api", "Nonsense")[0] == 2
    assert [rule["kind"] for rule in healthy.status().rehearsal.faults] == ["lose"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("kill", "9"), "the lab has no broker 9"),
        (("partition", "1"), "a link has two ends, and 1 were given"),
        (("partition", "1", "2", "3"), "a link has two ends, and 3 were given"),
        (("partition", "1", "one"), "no node is called 'one'"),
        (("partition", "1", "1"), "node 1 has no link to itself"),
        (("heal", "1"), "a link has two ends, and 1 were given"),
        (("fault",), "which fault?"),
        (("fault", "delay"), "delay needs an amount: milliseconds"),
        (("fault", "delay", "long"), "the amount of delay is 'long'"),
        (("fault", "error", "PEBKAC"), "Kafka has no error PEBKAC"),
        (("fault", "error", "0"), "the amount of error is 0"),
        (("fault", "flood"), "no kind is called 'flood'"),
        (("fault", "lose", "--api", "Levitate"), "no api is called 'Levitate'"),
        (("fault", "drop", "5"), "drop takes no amount"),
        (("deny", "READ"), "there is no READ on a cluster"),
        (("deny", "IDEMPOTENT_WRITE", "--topic", "orders"), "there is no IDEMPOTENT_WRITE on a topic"),
        (("deny", "FLY"), "no operation is called 'FLY'"),
        (("allow", "ALTER"), "ALTER was not denied on every cluster"),
        (("allow", "--topic", "orders"), "which operation on the topic?"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    healthy: SimulatedLab, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = kelr(capsys, healthy, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_the_machines_clock_is_not_turned(healthy: SimulatedLab, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = kelr(capsys, healthy, "advance", "5")
    assert code == 5
    assert "this cluster's clock is the machine's" in err
    assert "--virtual-clock" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("partition", "1", "controller"),
        ("heal",),
        ("fault", "lose"),
        ("fault", "--clear"),
        ("deny", "ALTER"),
        ("allow",),
        ("advance", "5"),
        ("kill", "1", "--power-loss"),
    ],
)
def test_real_kafka_cannot_do_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    directory = real(tmp_path / "lab")
    code, out, err = kelr(capsys, directory, *arguments)
    what = "--power-loss" if "--power-loss" in arguments else arguments[0]
    assert (code, out) == (5, "")
    assert err == (
        f"error: {what} is for simulated labs, and the lab in {directory} runs real Kafka [not-simulated]\n"
        "  fix: start a simulated one beside it with 'kelr lab up --simulated --dir DIR'\n"
    )
