"""Start, recognize and end the lab's own Java processes, and never another.

Every process carries ``-Dkelr.lab=<lab id>`` and ``-Dkelr.node=<node id>`` on its command line. A process counts as the
lab's only while that is so: a process id that the system has given to something else since is left alone, and a
process that was started by a kelr that died before it could write it down is still found.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

from kelr.errors import LabError
from kelr.lab.nodes import HOST
from kelr.lab.state import ProcessRecord

if TYPE_CHECKING:
    import psutil


_START_TOLERANCE_S = 1.0
_COMMAND_LINE_TIMEOUT_S = 5.0
_HOLD_TIMEOUT_S = 20.0
"""A process that waits for a slow disk stands still only when that is over."""
_MARK = "-Dkelr.lab="


def require_psutil() -> None:
    """Say what to install where psutil is missing, before anything is started.

    Raises:
        LabError: it is missing.
    """
    try:
        import psutil  # noqa: F401, PLC0415
    except ImportError as error:
        raise LabError("the lab needs psutil, which is not installed", next_step="pip install 'kelr[lab]'") from error


def lab_property(lab_id: str) -> str:
    return f"{_MARK}{lab_id}"


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
    _wait_for_command_line(pid)
    return ProcessRecord(pid, start_time(pid) or time.time())


def _wait_for_command_line(pid: int) -> None:
    """Linux lets the parent go on before the new program's arguments can be read; until then nobody can tell that the
    process is the lab's."""
    import psutil  # noqa: PLC0415

    deadline = time.monotonic() + _COMMAND_LINE_TIMEOUT_S
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        while not process.cmdline() and time.monotonic() < deadline:
            time.sleep(0.001)


def start_time(pid: int) -> float | None:
    """When a process was started, in seconds since 1970; None where there is none."""
    import psutil  # noqa: PLC0415

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def runs(record: ProcessRecord) -> bool:
    """Whether the recorded process is alive, whoever's it is."""
    started = start_time(record.pid)
    return started is not None and abs(started - record.started) <= _START_TOLERANCE_S


def find(record: ProcessRecord | None, lab_id: str) -> psutil.Process | None:
    """The recorded process, if it runs and is the lab's."""
    import psutil  # noqa: PLC0415

    if record is None or not runs(record):
        return None
    with suppress(psutil.Error):
        process = psutil.Process(record.pid)
        return process if lab_property(lab_id) in process.cmdline() else None
    return None


def all_of(lab_id: str, node: int | None = None) -> list[psutil.Process]:
    """Every running process of the lab (or of one node), recorded or not, this one left out."""
    wanted = {lab_property(lab_id)} if node is None else {lab_property(lab_id), node_property(node)}
    return _matching(lambda words: wanted <= set(words))


def is_node(process: psutil.Process, node: int) -> bool:
    """Whether a process of a lab is this node; one that has ended is none."""
    import psutil  # noqa: PLC0415

    try:
        return node_property(node) in process.cmdline()
    except psutil.Error:
        return False


def all_under(directory: Path) -> list[psutil.Process]:
    """Every running process of any lab whose files are in this directory: for a lab whose lab.json is lost."""
    inside = f"{directory}{os.sep}"
    return _matching(lambda words: any(_MARK in word for word in words) and any(inside in word for word in words))


def _matching(fits: Callable[[list[str]], bool]) -> list[psutil.Process]:
    import psutil  # noqa: PLC0415

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            # A zombie has ended, and has no command line any more.
            if process.pid != os.getpid() and fits(process.cmdline()):
                found.append(process)
    return found


def end(processes: Sequence[psutil.Process], *, ask_first_s: float) -> None:
    """End processes: ask with SIGTERM and wait `ask_first_s` seconds (0: do not ask), then SIGKILL.

    Raises:
        LabError: a process is there still after SIGKILL.
    """
    left = list(processes)
    if ask_first_s > 0:
        signal_all(left, signal.SIGTERM)
        left = wait_gone(left, ask_first_s)
    signal_all(left, signal.SIGKILL)
    left = wait_gone(left, 20)
    if left:
        raise LabError(f"process {left[0].pid} of the lab does not end, even with SIGKILL")


def end_by_record(record: ProcessRecord, number: signal.Signals, *, timeout_s: float) -> None:
    """Send one process a signal and wait for its end; SIGKILL after the timeout."""
    import psutil  # noqa: PLC0415

    if runs(record):
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(record.pid)
            process.send_signal(number)
            end(wait_gone([process], timeout_s), ask_first_s=0)


def signal_all(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    import psutil  # noqa: PLC0415

    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def hold(processes: Sequence[psutil.Process], *, timeout_s: float = _HOLD_TIMEOUT_S) -> None:
    """SIGSTOP, and wait until each process stands still: the signal reaches one thread, which passes it on to the
    others when it is next scheduled, and until then they go on.

    Raises:
        LabError: one does not within `timeout_s` seconds, such as one that a debugger holds: whether its threads go
            on is not known. The signal was sent to all.
    """
    import psutil  # noqa: PLC0415

    signal_all(processes, signal.SIGSTOP)
    deadline = time.monotonic() + timeout_s
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            while (status := process.status()) not in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}:
                if time.monotonic() >= deadline:
                    raise LabError(
                        f"process {process.pid} of the lab does not stand still {timeout_s:g} s after SIGSTOP"
                        f" (its state is {status})",
                        next_step="end the debugger or tracer that holds it, if one does, and pause it again",
                    )
                time.sleep(0.005)


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
    import psutil  # noqa: PLC0415

    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# Free TCP ports for a lab's nodes.


FIRST_PORT, LAST_PORT = 20000, 32000
"""Below the range that systems give to outgoing connections: a stopped broker finds its port free again."""
_given: set[int] = set()
"""What this process gave out: a broker that is down leaves its port free, and wants it again."""


def free_ports(nodes: tuple[int, ...]) -> dict[int, int]:
    """A free port for each node, all of them held at once so that no two are the same.

    What was given before is given again only when half of all ports have been.
    """
    ports: dict[int, int] = {}
    pick = SystemRandom()
    if len(_given) > (LAST_PORT - FIRST_PORT) // 2:
        _given.clear()
    with ExitStack() as held:
        for _attempt in range(1000):
            if len(ports) == len(nodes):
                _given.update(ports.values())
                return ports
            port = pick.randrange(FIRST_PORT, LAST_PORT)
            if port in _given:
                continue
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            ports[nodes[len(ports)]] = port
    raise LabError(f"no {len(nodes)} free ports between {FIRST_PORT} and {LAST_PORT} on {HOST}")
