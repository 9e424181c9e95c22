"""A lab ends its own processes and nobody else's."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from kelr.errors import LabError
from kelr.lab import processes
from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.processes import ProcessRecord

SLEEPER = "import time; time.sleep(120)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(120)"
)


@pytest.fixture
def lab_id() -> Iterator[str]:
    """An id; whatever carries it is gone after the test."""
    identity = new_kafka_uuid()
    yield identity
    processes.end(processes.all_of(identity), ask_first_s=0)


def spawn(lab_id: str, node: int, output: Path, code: str = SLEEPER, directory: str = "") -> ProcessRecord:
    marks = (processes.lab_property(lab_id), processes.node_property(node), directory)
    return processes.spawn((sys.executable, "-c", code, *marks), output)


def test_a_process_is_found_by_its_record_and_by_its_mark(tmp_path: Path, lab_id: str) -> None:
    record = spawn(lab_id, 1, tmp_path / "out")
    other = spawn(lab_id, 2, tmp_path / "out")
    found = processes.find(record, lab_id)
    assert found is not None
    assert found.pid == record.pid
    assert {process.pid for process in processes.all_of(lab_id)} == {record.pid, other.pid}
    assert [process.pid for process in processes.all_of(lab_id, 2)] == [other.pid]


def test_a_process_has_a_session_of_its_own(tmp_path: Path, lab_id: str) -> None:
    record = spawn(lab_id, 1, tmp_path / "out")
    assert os.getsid(record.pid) == record.pid != os.getsid(0)


def test_a_reused_process_id_is_left_alone(tmp_path: Path, lab_id: str) -> None:
    record = spawn(lab_id, 1, tmp_path / "out")
    assert processes.find(ProcessRecord(record.pid, record.started - 60), lab_id) is None
    assert processes.find(record, new_kafka_uuid()) is None
    assert processes.find(ProcessRecord(os.getpid(), psutil.Process().create_time()), lab_id) is None


def test_another_labs_processes_are_not_ours(tmp_path: Path, lab_id: str) -> None:
    spawn(lab_id, 1, tmp_path / "out")
    assert processes.all_of(new_kafka_uuid()) == []


def test_asking_is_enough_for_a_process_that_listens(tmp_path: Path, lab_id: str) -> None:
    record = spawn(lab_id, 1, tmp_path / "out")
    began = time.monotonic()
    processes.end(processes.all_of(lab_id), ask_first_s=30)
    assert time.monotonic() - began < 20
    assert processes.find(record, lab_id) is None
    assert processes.start_time(record.pid) is None


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path, lab_id: str) -> None:
    output = tmp_path / "out"
    spawn(lab_id, 1, output, STUBBORN)
    deadline = time.monotonic() + 30
    while "deaf" not in (output.read_text() if output.exists() else ""):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    processes.end(processes.all_of(lab_id), ask_first_s=0.2)
    assert processes.all_of(lab_id) == []


def test_a_held_process_stands_still_when_that_is_said(tmp_path: Path, lab_id: str) -> None:
    record = spawn(lab_id, 1, tmp_path / "out")
    processes.hold(processes.all_of(lab_id))
    assert psutil.Process(record.pid).status() == psutil.STATUS_STOPPED


class Traced:
    """A process that a debugger holds, so that SIGSTOP never comes to it."""

    pid = 4711

    def __init__(self) -> None:
        self.sent: list[int] = []

    def send_signal(self, number: int) -> None:
        self.sent.append(number)

    def status(self) -> str:
        return psutil.STATUS_TRACING_STOP


def test_a_process_that_does_not_come_to_stand_is_not_waited_for_for_ever(tmp_path: Path, lab_id: str) -> None:
    record, traced = spawn(lab_id, 1, tmp_path / "out"), Traced()
    held: list[Any] = [traced, *processes.all_of(lab_id)]
    with pytest.raises(LabError, match=r"process 4711 .* 0\.2 s after SIGSTOP \(its state is tracing-stop\)") as caught:
        processes.hold(held, timeout_s=0.2)
    assert caught.value.next_step is not None
    assert traced.sent == [signal.SIGSTOP]
    processes.hold(processes.all_of(lab_id))  # the others were sent it, too; they may come to stand a moment later
    assert psutil.Process(record.pid).status() == psutil.STATUS_STOPPED


def test_a_lost_lab_is_found_by_its_directory(tmp_path: Path, lab_id: str) -> None:
    inside = spawn(lab_id, 1, tmp_path / "out", directory=f"-Dx={tmp_path}/lab/controller/server.properties")
    spawn(lab_id, 2, tmp_path / "out", directory=f"-Dx={tmp_path}/lab2/controller/server.properties")
    assert [process.pid for process in processes.all_under(tmp_path / "lab")] == [inside.pid]


def test_a_command_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot start /nowhere/java"):
        processes.spawn(("/nowhere/java",), tmp_path / "out")


def test_without_psutil_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(LabError, match="psutil") as caught:
        processes.require_psutil()
    assert caught.value.next_step == "pip install 'kelr[lab]'"
