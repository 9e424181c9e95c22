"""Ctrl-C at any moment of any command: it ends in time, says so in a line, and leaves nothing behind.

The moments are random, from kelr's first line to a little after the time that the command takes; brokers that say
nothing, and in `test_five_hundred_interrupts` four busy processes, make waits and slow steps likely.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import psutil
import pytest

from kelr.__main__ import INTERRUPTED
from kelr.interrupts import GRACE_S
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from tests.faults.cluster import ASSIGNED, TOPIC, Struck, states, strike
from tests.faults.matrix import CASES, Case, prepared

PROGRAM = """
import os, signal, sys
# A run of the tests in the background of a shell hands an ignored SIGINT on.
signal.signal(signal.SIGINT, signal.default_int_handler)
import kelr.__main__ as program
taken = signal.signal
def told(number, handler):
    before = taken(number, handler)
    signal.signal = taken
    {more}
    os.write({descriptor}, b".")
    return before
signal.signal = told
sys.exit(program.start())
"""
"""kelr, telling by a byte that its first line has run: what comes before is Python's own start."""
PATIENT = """
    from kelr.recovery.site import Patience
    Patience.__init__.__defaults__ = (3.0, 5.0, 0.5, 0.05, __import__("time").sleep, __import__("time").monotonic)
"""
"""As `tests.faults.matrix.prepared` has it, for the same reason."""
CHANGES = frozenset(
    {
        "recover apply",
        "recover hold orders",
        "recover resume",
        "recover undo",
        "elect preferred",
        "elect designation",
        "elect unclean",
        "elect longest_log_aggressive",
    }
)
WITHIN_S = GRACE_S + 1.0
"""How long a command may take to end: its time, and what a busy machine takes."""
CHANGES_WITHIN_S = 15.0
"""The same for one that restores orders first: `PATIENT`."""
MARK = "KELR_TEST_INTERRUPTS"
LONGEST_S = 4.0
"""No interrupt comes later."""

OTHERS = tuple(
    Case(words.partition(" -")[0], words)
    for words in (
        "doctor",
        "whatif --kill 3",
        f"watch {TOPIC} --interval 0.1",
        f"watch {TOPIC} --interval 0.1 -o ndjson",
        "metrics --endpoint SILENT --timeout 60",
        "metrics export --listen 127.0.0.1:0 --interval 1",
        "history --follow --bootstrap-controller CONTROLLER",
        "report report.html --bootstrap-controller CONTROLLER",
        "describe --bootstrap-server SILENT",
        "explain --bootstrap-server SILENT,SILENT",
        f"recover hold {TOPIC} --yes-clear-elr-of {TOPIC} --force tried",
        "fleet generate fleet --clusters 2 --seed 1",
        "lab up --simulated --dir lab",
        "lab status --dir lab",
        "config show",
        "context list",
        "errors",
        "schema explain",
        "completion bash",
        "__complete bash 1 kelr",
        "simulate --help",
    )
)
EVERY = tuple(case for case in CASES if case.rules == "elr-4.3") + OTHERS


@dataclass
class Round:
    """One interrupt, and what came of it."""

    case: Case
    silent: bool
    after_s: float
    code: int | None = None
    took_s: float = 0.0
    err: str = ""
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        silent = ", a broker silent" if self.silent else ""
        said = f"{self.case.command} interrupted after {self.after_s:.3f} s{silent}: {self.code}, {self.took_s:.2f} s"
        return "\n".join([said, *self.findings, self.err])


class _SilentBroker(Struck):
    """Broker 2 takes every request and answers none."""

    def strike(self, node: int, api: str) -> Fault | None:  # noqa: ARG002
        return Fault(FaultKind.LOSE) if node == 2 else None


@contextlib.contextmanager
def nobody_answers() -> Iterator[str]:
    """An address that takes connections and says nothing."""
    import socket  # noqa: PLC0415 - here alone

    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def interrupted(case: Case, random: Random) -> Round:
    """Run the command, and interrupt it once."""
    changes = case.name in CHANGES
    one = Round(case, silent=not changes and random.random() < 0.5, after_s=LONGEST_S * random.random() ** 2)
    with prepared(case) as server, nobody_answers() as silent:
        if one.silent:
            strike(server, _SilentBroker())
        words = [
            word.replace("CONTROLLER", server.controller_server).replace("SILENT", silent)
            for word in case.command.replace("--endpoint SILENT", "--endpoint http://SILENT/metrics").split()
        ]
        before = {path for path in Path().iterdir() if not path.name.startswith("state")}
        _run(one, words, changes=changes)
        _look_around(one, before)
        if changes:
            _look_at_the_cluster(one, server)
    return one


def _run(one: Round, words: list[str], *, changes: bool) -> None:
    reader, writer = os.pipe()
    program = PROGRAM.format(more=PATIENT if changes else "", descriptor=writer)
    environment = {**os.environ, MARK: "1", "KELR_TIMEOUT": "5" if changes else "60", "TMPDIR": os.getcwd()}
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        pass_fds=[writer],
        start_new_session=True,
    )
    os.close(writer)
    with process, os.fdopen(reader, "rb") as begun:
        assert begun.read(1) == b"."
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(one.after_s)
        ended = process.poll() is not None
        since = time.monotonic()
        process.send_signal(signal.SIGINT)
        within_s = CHANGES_WITHIN_S if changes else WITHIN_S
        try:
            _, one.err = process.communicate(timeout=4 * within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            _, one.err = process.communicate()
            one.findings.append("it goes on")
        one.code, one.took_s = process.returncode, time.monotonic() - since
    if one.took_s > within_s:
        one.findings.append(f"it took longer than {within_s:g} s")
    if "Traceback" in one.err or "Exception ignored" in one.err:
        one.findings.append("a traceback")
    # Python gives SIGINT back to the system while it takes itself apart.
    if not ended and one.code not in {INTERRUPTED, -signal.SIGINT, *_CODES.get(one.case.name, {0, 1, 2, 3, 5, 6, 7})}:
        one.findings.append("another exit code")
    if one.code == INTERRUPTED and "kelr: interrupted" not in one.err:
        one.findings.append("it does not say so")


_CODES: dict[str, set[int]] = {
    "watch orders": set(),
    "metrics export": set(),
    "metrics": {3, 7},
    "history": {0},
    "explain": {0, 3},
    "describe": {0, 3},
}
"""The exit codes of a command that is not interrupted, where it would go on or has few."""


def _look_around(one: Round, before: set[Path]) -> None:
    """Neither processes nor files are left."""
    deadline = time.monotonic() + 10
    while left := [process for process in psutil.process_iter() if _is_ours(process)]:
        if one.case.name == "lab up" and one.code == 0:
            break
        if time.monotonic() > deadline:
            one.findings.append(f"left behind: {[process.cmdline() for process in left]}")
            break
        time.sleep(0.02)
    for process in left:
        with contextlib.suppress(psutil.Error):
            process.kill()
    made = {path for path in Path().iterdir() if not path.name.startswith("state")} - before
    wanted = {"saved.kelr", "logs.kelr", "plan.json", "saved.kelr-rescue", "report.html", "fleet", "lab"}
    strange = sorted(str(path) for path in made if path.name not in wanted)
    if strange:
        one.findings.append(f"files left behind: {strange}")


def _is_ours(process: psutil.Process) -> bool:
    try:
        return process.pid != os.getpid() and process.environ().get(MARK) == "1" and process.status() != "zombie"
    except psutil.Error:
        return False


def _look_at_the_cluster(one: Round, server: SimulatedServer) -> None:
    """Orders are as before, or what the journal holds is enough to put them back."""
    undone = None
    if any(order != ASSIGNED[at] for at, (_, order) in states(server).items()):
        undone = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(more=PATIENT, descriptor=2), "recover", "undo", "--yes"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "KELR_TIMEOUT": "30"},
            timeout=120,
        )
    for at, (_, order) in states(server).items():
        if order != ASSIGNED[at]:
            one.findings.append(f"{at} has the order {order}, and it cannot be undone: {undone and undone.stderr}")


def rounds(number: int, seed: int) -> Iterator[Round]:
    """Each command in turn, in another order each time."""
    random = Random(seed)
    cases: list[Case] = []
    for _ in range(number):
        if not cases:
            cases = random.sample(EVERY, len(EVERY))
        yield interrupted(cases.pop(), random)


def test_a_sample_of_interrupts() -> None:
    assert [str(one) for one in rounds(8, seed=966) if one.findings] == []


@pytest.mark.longer
@pytest.mark.parametrize("seed", range(1, 6))
def test_five_hundred_interrupts(seed: int) -> None:
    """A hundred for each seed, beside four busy processes; `-s` shows each."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    wrong = []
    try:
        for number, one in enumerate(rounds(100, seed), 1):
            print(f"{seed}.{number}: {one}", flush=True)
            wrong += [str(one)] if one.findings else []
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert wrong == []
