"""Start, recognize and end the lab's own Java processes, and never another.

Every process carries ``-Dkelr.lab=<lab id>`` and ``-Dkelr.node=<node id>`` on its command line. A process counts as the
lab's only while that is so: a process id that the system has given to something else since is left alone, and a
process that was started by a kelr that died before it could write it down is still found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import LabError
from kelr.lab.state import ProcessRecord

if TYPE_CHECKING:
    import psutil

_START_TOLERANCE_S = 1.0


def lab_property(lab_id: str) -> str:
    return f"-Dkelr.lab={lab_id}"


def node_property(node: int) -> str:
    return f"-Dkelr.node={node}"


def spawn(command: Sequence[str], output: Path) -> ProcessRecord:
    """Start a process in a session of its own, so that it outlives the shell; its output is appended to a file."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        pid = os.posix_spawn(command[0], list(command), os.environ, file_actions=actions, setsid=True)
    except OSError as error:
        raise LabError(f"cannot start {command[0]} ({error.strerror})") from error
    return ProcessRecord(pid, _psutil().Process(pid).create_time())


def find(record: ProcessRecord | None, lab_id: str) -> psutil.Process | None:
    """The recorded process, if it runs and is the lab's."""
    if record is None:
        return None
    ps = _psutil()
    with suppress(ps.NoSuchProcess):
        process = ps.Process(record.pid)
        if abs(process.create_time() - record.started) <= _START_TOLERANCE_S and is_ours(process, lab_id):
            return process
    return None


def is_ours(process: psutil.Process, lab_id: str) -> bool:
    """Whether a process is alive and carries the lab's id; a zombie has ended and carries nothing."""
    ps = _psutil()
    try:
        return process.status() != ps.STATUS_ZOMBIE and lab_property(lab_id) in process.cmdline()
    except ps.Error:
        return False


def all_of(lab_id: str, node: int | None = None) -> list[psutil.Process]:
    """Every running process of the lab (or of one node), recorded or not."""
    wanted = None if node is None else node_property(node)
    found = []
    for process in _psutil().process_iter():
        if is_ours(process, lab_id):
            with suppress(_psutil().Error):
                if wanted is None or wanted in process.cmdline():
                    found.append(process)
    return found


def end(processes: Sequence[psutil.Process], *, ask_first_s: float) -> None:
    """End processes: ask with SIGTERM and wait `ask_first_s` seconds (0: do not ask), then SIGKILL.

    Raises:
        LabError: a process is there still after SIGKILL.
    """
    ps = _psutil()
    left = list(processes)
    if ask_first_s > 0:
        signal_all(left, signal.SIGTERM)
        left = wait_gone(left, ask_first_s)
    signal_all(left, signal.SIGKILL)
    left = wait_gone(left, 20)
    if left:
        with suppress(ps.Error):
            raise LabError(f"process {left[0].pid} of the lab does not end, even with SIGKILL")


def signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(_psutil().NoSuchProcess):
            process.send_signal(number)


def wait_gone(processes: Sequence[psutil.Process], timeout_s: float) -> list[psutil.Process]:
    """Wait until the processes have ended; those that have not are returned."""
    deadline = time.monotonic() + timeout_s
    left = [process for process in processes if not _ended(process)]
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left = [process for process in left if not _ended(process)]
    return left


def _ended(process: psutil.Process) -> bool:
    """Whether it has ended, as a zombie too; a child of this kelr is reaped."""
    ps = _psutil()
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    try:
        return not process.is_running() or process.status() == ps.STATUS_ZOMBIE
    except ps.NoSuchProcess:
        return True


def _psutil() -> type[psutil]:  # type: ignore[valid-type]
    try:
        import psutil  # noqa: PLC0415
    except ImportError as error:
        raise LabError("the lab needs psutil", next_step="pip install 'kelr[lab]'") from error
    return psutil  # type: ignore[return-value]
