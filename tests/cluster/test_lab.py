"""The lab on real Kafka: its brokers die, stop and return; it outlives shells, not owners; nothing of it is left."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kelr.errors import LabError, UsageError
from kelr.lab import Action, Lab, LabSpec, down, run_incident
from kelr.lab.disk import CLEAN_SHUTDOWN_FILE, read_batches
from kelr.lab.observed import PATIENCE_S
from kelr.lab.processes import all_under as processes_under
from kelr.lab.processes import free_ports, signal_all
from kelr.lab.produce import Acks, produce
from kelr.lab.story import create_topic
from kelr.sources.metadata_log.log import open_metadata_log
from kelr.sources.metadata_log.source import MetadataLogSource

ONE_BROKER = LabSpec(brokers=1, min_isr=1, racks=1)


@pytest.fixture(autouse=True)
def nothing_left_running(tmp_path: Path) -> Iterator[None]:
    """A test that fails half way leaves no node of its labs behind."""
    yield
    signal_all(processes_under(tmp_path), signal.SIGKILL)


def kelr(*arguments: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """``kelr lab ...`` as a shell runs it."""
    command = [sys.executable, "-m", "kelr", "lab", *arguments, "--dir", str(directory)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def wait_for(what: str, holds: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def log_end(lab: Lab, broker: int, topic: str, partition: int) -> int:
    """The log end offset as the broker's files have it, live or not."""
    segments = sorted((lab.data_directory(broker) / f"{topic}-{partition}").glob("*.log"))
    return [batch.next_offset for segment in segments for batch in read_batches(segment)][-1]


def test_a_lab_is_what_its_spec_says(healthy_43: Lab) -> None:
    status = healthy_43.status()
    assert status.ready
    assert [(node.name, node.rack) for node in status.nodes] == [
        ("controller", None),
        ("broker 1", "az1"),
        ("broker 2", "az2"),
        ("broker 3", "az3"),
    ]
    assert all(node.pid is not None for node in status.nodes)
    assert [node.fenced for node in status.nodes] == [None, False, False, False]
    assert healthy_43.bootstrap_servers == ",".join(f"127.0.0.1:{node.port}" for node in status.nodes[1:])
    features = healthy_43.stock_tool(
        "kafka-features.sh", "--bootstrap-server", healthy_43.bootstrap_servers, "describe"
    )
    (elr,) = (line for line in features.stdout.splitlines() if "eligible.leader.replicas.version" in line)
    assert "FinalizedVersionLevel: 1" in elr


def test_elr_takes_min_isr_from_the_cluster_wide_default(healthy_43: Lab) -> None:
    create_topic(healthy_43, "configs", [[1, 2, 3]], {})
    arguments = ("--bootstrap-server", healthy_43.bootstrap_servers, "--describe", "--all", "--topic", "configs")
    configs = healthy_43.stock_tool("kafka-configs.sh", *arguments).stdout
    (line,) = (line for line in configs.splitlines() if line.strip().startswith("min.insync.replicas="))
    assert "min.insync.replicas=2 " in line
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=2" in line


def test_kill_stop_and_start(healthy_43: Lab) -> None:
    lab = healthy_43
    create_topic(lab, "kill-stop-start", [[1, 2, 3]], {})
    produce(lab.bootstrap_servers, "kill-stop-start", [0], batches=3, records=2, acks=Acks.ALL, label="x")
    lab.stop(2)
    assert not lab.is_running(2)
    assert (lab.data_directory(2) / CLEAN_SHUTDOWN_FILE).exists()
    lab.kill(3)
    assert not lab.is_running(3)
    assert not (lab.data_directory(3) / CLEAN_SHUTDOWN_FILE).exists()
    lab.wait_partitions("kill-stop-start", "1 is alone", lambda state: state.isr == (1,))
    assert [(node.node, node.fenced) for node in lab.status().nodes if node.pid is None] == [(2, True), (3, True)]
    with pytest.raises(LabError, match="broker 1 runs"):
        lab.cut_tail(1, "kill-stop-start", 0, batches=1)
    cut = lab.cut_tail(3, "kill-stop-start", 0, batches=2)
    assert (cut.from_offset, cut.to_offset) == (2, 6)
    ports = lab.bootstrap_servers
    lab.start(2, wait=False)
    lab.start(3, wait=False)
    lab.wait_unfenced(2, 3)
    lab.wait_partitions("kill-stop-start", "all are back", lambda state: set(state.isr) == {1, 2, 3})
    assert Lab.open(lab.directory).bootstrap_servers == ports
    assert [log_end(lab, broker, "kill-stop-start", 0) for broker in lab.brokers] == [6, 6, 6]


def test_a_broker_that_fails_to_start_registers_and_dies(healthy_43: Lab) -> None:
    lab = healthy_43
    before = broker_epoch(lab, 2)
    lab.stop(2)
    lab.fail_to_start(2)
    assert broker_epoch(lab, 2) > before
    assert not lab.is_running(2)
    lab.start(2)
    assert lab.is_running(2)


def broker_epoch(lab: Lab, broker: int) -> int:
    """As the quorum's log has it, a moment after it was written."""
    known = MetadataLogSource(open_metadata_log([lab.data_directory(lab.controllers[0])])).cluster().broker(broker)
    assert known is not None
    assert known.broker_epoch is not None
    return known.broker_epoch


@pytest.mark.longer
def test_a_broker_that_dies_while_it_starts_is_quoted(healthy_43: Lab) -> None:
    lab = healthy_43
    lab.stop(2)
    obstacle = lab.data_directory(2) / "lost+found"
    obstacle.mkdir()
    with pytest.raises(LabError, match="broker 2 ended while starting") as caught:
        lab.start(2)
    assert "lost+found" in str(caught.value)
    obstacle.rmdir()
    lab.start(2)


def test_what_a_lab_does_not_have_is_said(healthy_43: Lab) -> None:
    with pytest.raises(UsageError, match="the lab has no broker 4"):
        healthy_43.kill(4)
    with pytest.raises(UsageError, match=r"no stock tool 'kafka-magic\.sh'"):
        healthy_43.stock_tool("kafka-magic.sh")
    with pytest.raises(LabError, match=r"a lab is in .* already"):
        Lab.up(ONE_BROKER, healthy_43.directory)
    with pytest.raises(LabError, match="waited 0 s in vain until pigs fly"):
        healthy_43.wait_until("pigs fly", lambda: False, timeout_s=0.2)


def test_an_incident_says_what_it_produced_and_cut_and_the_logs_agree(lab_43: Lab) -> None:
    report = run_incident(lab_43, "lossy-restart")
    assert report.absent == report.awaited == (1,)
    assert [step.action for step in report.steps] == [
        Action.CREATE_TOPIC,
        Action.PRODUCE,
        Action.KILL,
        Action.PRODUCE,
        Action.KILL,
        Action.PRODUCE,
        Action.PRODUCE,
        Action.KILL,
        Action.CUT_TAIL,
        Action.CUT_TAIL,
        Action.START,
    ]
    counts = [
        {(one.acks, one.first_offset, one.acknowledged, one.refused, one.error) for one in step.produced}
        for step in report.steps
        if step.produced
    ]
    assert counts == [
        {(Acks.ALL, 0, 20, 0, None)},
        {(Acks.ALL, 20, 20, 0, None)},
        {(Acks.ALL, None, 0, 5, "NOT_ENOUGH_REPLICAS")},
        {(Acks.LEADER, 40, 10, 0, None)},
    ]
    cuts = [cut for step in report.steps for cut in step.cuts]
    assert {(cut.broker, cut.partition % 2, cut.from_offset, cut.to_offset) for cut in cuts} == {
        (2, 0, 10, 40),
        (1, 1, 30, 50),
    }
    for partition in range(6):
        ends = [log_end(lab_43, broker, report.topic, partition) for broker in (1, 2, 3)]
        assert ends == ([50, 10, 20] if partition % 2 == 0 else [30, 40, 20])
    for state in lab_43.partitions(report.topic).values():
        assert (state.leader, state.isr, state.elr, state.last_known_elr) == (None, (), (1,), (1,))


def test_a_topic_that_exists_is_not_used_for_an_incident(healthy_43: Lab) -> None:
    create_topic(healthy_43, "taken", [[1, 2, 3]], {})
    with pytest.raises(UsageError, match="topic taken exists already"):
        run_incident(healthy_43, "under-min-isr", topic="taken")


def test_a_lab_outlives_its_shell_and_down_leaves_nothing(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    up = kelr("up", "--brokers", "1", "--racks", "1", "--no-elr", "-o", "json", directory=directory)
    assert up.returncode == 0, up.stderr
    begun = json.loads(up.stdout)
    assert (begun["elr"], begun["min_isr"], begun["ready"]) == (False, 1, True)
    status = json.loads(kelr("status", "-o", "json", directory=directory).stdout)
    assert status["items"] == begun["items"]
    assert [item["fenced"] for item in status["items"]] == [None, False]
    assert kelr("env", directory=directory).stdout == (
        f"export KELR_BOOTSTRAP_SERVER={begun['bootstrap_servers']}\nexport KELR_LAB_DIR={directory}\n"
    )
    assert kelr("kill", "1", directory=directory).stderr == "killed broker 1\n"
    assert kelr("restore", directory=directory).returncode == 0
    again = json.loads(kelr("status", "-o", "json", directory=directory).stdout)
    assert again["items"][0]["pid"] == begun["items"][0]["pid"]
    assert again["items"][1]["pid"] != begun["items"][1]["pid"]
    ended = kelr("down", directory=directory)
    assert (ended.returncode, ended.stdout) == (0, "")
    assert processes_under(directory) == []
    assert not directory.exists()
    assert kelr("down", directory=directory).returncode == 5


@pytest.mark.longer
def test_what_a_killed_kelr_left_behind_is_ended_by_down(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    command = [sys.executable, "-m", "kelr", "lab", "up", "--dir", str(directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as up:
        wait_for("nodes are being started", lambda: len(processes_under(directory)) >= 2)
        up.kill()
        up.communicate()
    assert processes_under(directory)
    status = kelr("status", directory=directory)
    assert "killed while it did" in status.stderr
    assert kelr("up", directory=directory).returncode == 5
    down(directory)
    assert processes_under(directory) == []
    assert not directory.exists()


def test_a_lab_that_is_interrupted_while_starting_cleans_up(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    # Whatever a shell starts in the background inherits an ignored SIGINT, a test run and its children too.
    heeding = (
        "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "runpy.run_module('kelr', run_name='__main__')"
    )
    command = [sys.executable, "-c", heeding, "lab", "up", "--dir", str(directory)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as up:
        wait_for("nodes are being started", lambda: len(processes_under(directory)) >= 2)
        up.send_signal(signal.SIGINT)
        up.communicate()
    assert up.returncode == 130
    assert processes_under(directory) == []
    assert not directory.exists()


def test_a_lab_ends_with_its_owner(tmp_path: Path) -> None:
    directory = tmp_path / "lab"
    script = (
        "import os, time; from pathlib import Path; from kelr.lab import Lab, LabSpec;"
        f"Lab.up(LabSpec(1, min_isr=1), Path({str(directory)!r}), owner_pid=os.getpid());"
        "print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        assert len(processes_under(directory)) >= 2
        owner.send_signal(signal.SIGKILL)
    wait_for("nothing is left", lambda: not directory.exists() and not processes_under(directory))


def test_a_node_that_dies_while_starting_shows_its_log_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = {**free_ports((100,)), 1: taken.getsockname()[1]}
        monkeypatch.setattr("kelr.lab.cluster.free_ports", lambda _nodes: ports)
        with pytest.raises(LabError, match=r"(?s)broker 1 ended while starting.*  \| .*Address already in use"):
            Lab.up(ONE_BROKER, tmp_path / "lab")
    assert processes_under(tmp_path / "lab") == []
    assert not (tmp_path / "lab").exists()


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"cannot use .*file"):
        Lab.up(ONE_BROKER, tmp_path / "file" / "lab")


@pytest.mark.longer
def test_data_can_be_kept_wherever_it_is(tmp_path: Path) -> None:
    lab = Lab.up(ONE_BROKER, tmp_path / "läb 1 ✓", owner_pid=os.getpid())
    create_topic(lab, "kept", [[1]], {})
    produce(lab.bootstrap_servers, "kept", [0], batches=1, records=3, acks=Acks.ALL, label="x")
    lab.down(keep_data=True)
    assert processes_under(lab.directory) == []
    assert log_end(lab, 1, "kept", 0) == 3
    assert (lab.data_directory(1) / CLEAN_SHUTDOWN_FILE).exists()
    with pytest.raises(LabError, match="there is no lab in"):
        Lab.open(lab.directory)
