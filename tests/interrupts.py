"""Ctrl-C at any moment of any command: it ends in time, says so in a line, and leaves nothing behind.

The moments are spread from kelr's first line to a little after the time that the command takes; brokers that say
nothing, and busy processes beside it, make waits and slow steps likely. Most of a command's time is the loading of
modules, so one process in twenty is a new one, and the others are forked from one that has loaded them.

python -m tests.interrupts [--each N] [--seed N] [--busy N] [--jobs N] [--only COMMAND] [--real]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

from kelr.__main__ import INTERRUPTED
from kelr.interrupts import GRACE_S
from kelr.lab import Lab, LabSpec
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from tests.faults.cluster import ASSIGNED, TOPIC, Struck, states, strike
from tests.faults.matrix import CASES, DUMP, WORSE, Case, kelr, prepared
from tests.ports import keep_to_own_ports

PROGRAM = """
import os, signal, sys
# A run of the tests in the background of a shell hands an ignored SIGINT on.
signal.signal(signal.SIGINT, signal.default_int_handler)
import kelr.__main__ as program
{before}
taken = signal.signal
def told(number, handler):
    before = taken(number, handler)
    signal.signal = taken
    {more}
    os.write({descriptor}, b"%d" % os.getpid())
    os.close({descriptor})
    return before
signal.signal = told
sys.exit(program.start())
"""
"""kelr, telling its process that its first line has run: what comes before is Python's own start."""
FORKED = """
import gc, importlib, json, socket
from contextlib import suppress
for name in sys.argv[1:]:
    with suppress(ImportError):
        importlib.import_module(name)
# Else a child copies the memory of all modules when it takes itself apart, which takes longer than its command.
gc.freeze()
assert len(os.listdir("/proc/self/task")) == 1
control, pid = socket.socket(fileno={descriptor}), None
while True:
    asked, descriptors, *_ = socket.recv_fds(control, 1 << 18, 1)
    if pid:
        os.waitpid(pid, 0)
    if not asked:
        os._exit(0)
    pid = os.fork()
    if not pid:
        break
    os.close(descriptors[0])
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    control.send(b"%d" % (ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status))
os.setsid()
os.dup2(descriptors[0], 2)
os.close(descriptors[0])
directory, environment, sys.argv[1:] = json.loads(asked)
os.chdir(directory)
os.environ.clear()
os.environ.update(environment)
control.detach()
"""
"""Load the modules that are named, then go on as a child for each request. It is as a new process there: one thread,
its own session, directory, environment and stderr. An ended child stays a zombie until the next request, so that a
signal for it meets no other process."""
PATIENT = """
    from dataclasses import fields
    from kelr.recovery.apply_context import Timeouts
    short = {"answer_s": 3.0, "settle_s": 5.0, "late_s": 0.5, "step_s": 0.05}
    Timeouts.__init__.__defaults__ = tuple(short.get(one.name, one.default) for one in fields(Timeouts))
"""
"""As `tests.faults.matrix.prepared` has it, for the same reason."""
CHANGES = {case.name for case in CASES if case.wanted is not None} | {"recover clear-elr"}
WITHIN_S = GRACE_S + 1.0
"""How long a command may take to end: its time, and what a busy machine takes."""
CHANGES_WITHIN_S = 15.0
"""The same for one that restores orders first: `PATIENT`."""
_GONE_WITHIN_S = 60.0
"""A Spark that is still starting ends by itself once it reads that nobody asks it any more."""
NEW = 20
"""One of so many is a new process."""
_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, modulo 1, lie evenly however many they are."""
MARK = "KELR_TEST_INTERRUPTS"
LONGEST_S = 4.0
"""No interrupt comes later, but for those of `SLOW_S`."""
SLOW_S = {
    "fleet ingest": 15.0,
    "lab up": 10.0,
    "lab incident": 30.0,
    "lab start": 8.0,
    "lab restore": 8.0,
    "demo": 90.0,
}
"""Until when commands are interrupted that start a Java, by their names."""
LAB = "lab up --simulated --dir lab"
FLEET = "fleet generate fleet --clusters 1 --partitions 50 --weeks 1 --seed 1 --workers 1"


def _named(words: str, *before: str) -> Case:
    """Named as it is typed, without what differs from case to case."""
    return Case(_name(words), words, before=before)


def _name(words: str) -> str:
    parts = words.split()
    return " ".join(parts[: 2 if parts[0] in _GROUPS else 1])


_GROUPS = {"recover", "rescue", "fleet", "lab", "metrics", "context", "config"}
OTHERS = (
    _named("doctor"),
    _named("whatif --kill 3"),
    _named(f"watch {TOPIC} --interval 0.1"),
    _named(f"watch {TOPIC} --interval 0.1 -o ndjson"),
    _named("metrics read --endpoint SILENT --timeout 60"),
    _named("metrics export --listen 127.0.0.1:0 --interval 1"),
    _named("history --follow --bootstrap-controller CONTROLLER"),
    _named("report report.html --bootstrap-controller CONTROLLER"),
    _named("describe --bootstrap-server SILENT"),
    _named("explain --bootstrap-server SILENT,SILENT"),
    _named(f"recover clear-elr {TOPIC} --yes-clear-elr-of {TOPIC} --force tried"),
    _named("recover status"),
    _named("recover log"),
    _named("rescue show saved.kelr-rescue", WORSE, DUMP),
    _named("fleet generate fleet --clusters 2 --seed 1"),
    _named("fleet ingest fleet --out lake --master local[2]", FLEET),
    _named(LAB),
    *(
        _named(f"lab {words} --dir lab", LAB)
        for words in ("status", "env", "kill 1", "stop 1", "pause 1", "restore", "incident under-min-isr", "down")
    ),
    _named("lab start 1 --dir lab", LAB, "lab kill 1 --dir lab"),
    _named("demo --simulated --dir lab"),
    _named("context add here -b SILENT"),
    _named("context list"),
    _named("context test here --timeout 60", "context add here -b 127.0.0.1:1"),
    _named("config show"),
    _named("errors"),
    _named("schema explain"),
    _named("completion bash"),
    _named("simulate --help"),
)
EVERY = tuple(case for case in CASES if case.rules == "elr-4.3") + OTHERS
REAL = (
    _named("lab up --dir lab"),
    *(
        _named(f"lab {words} --dir REAL")
        for words in ("incident under-min-isr", "kill 2", "start 2", "restore", "status")
    ),
    _named("demo --dir lab"),
)
"""On real Kafka: what starts, ends and waits for Java. REAL is one lab for all of them."""
LIKE_OTHERS = {
    "context current", "context delete", "context remove", "context show", "context use", "options",
    "fleet assess", "fleet exposure", "fleet report", "fleet run",
    "lab advance", "lab allow", "lab deny", "lab fault", "lab heal",
    "lab partition", "lab resume",
    "quorum apply", "quorum collect", "quorum explain", "quorum plan", "quorum restore", "quorum undo", "quorum verify",
    "recover hold",
}  # fmt: skip
"""Not pressed: a file is read or written as for `context add`; Spark runs as for `fleet ingest`; one request to a
simulated lab as for `lab pause`; what `quorum` writes is cut short at each of its calls in tests/quorum; and
`recover hold` is the old name of `recover clear-elr`."""


@dataclass
class Round:
    """One interrupt, and what came of it.

    Args:
        number: which of its command's; with the seed it gives the moment.
        new: whether in a new process, which loads its modules itself.
        over: whether the command had ended before.
        took_s: from the interrupt to the end.
    """

    case: Case
    number: int
    silent: bool
    new: bool
    after_s: float
    over: bool = False
    code: int | None = None
    took_s: float = 0.0
    err: str = ""
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        how = f"{', a broker silent' * self.silent}{', a new process' * self.new}"
        when = "had ended before" if self.over else "interrupted after"
        said = f"{self.case.command}, {self.number}: {when} {self.after_s:.3f} s{how}"
        return "\n".join([f"{said}: {self.code}, {self.took_s:.2f} s", *self.findings, self.err])


class _SilentBroker(Struck):
    """Broker 2 takes every request and answers none."""

    def strike(self, node: int, api: str) -> Fault | None:  # noqa: ARG002
        return Fault(FaultKind.LOSE) if node == 2 else None


class Loaded:
    """A process that has loaded modules, and forks one for each run of a command: `fork`, then as `subprocess.Popen`.

    Args:
        names: of the modules.
        changes: whether the command changes a cluster.
    """

    returncode: int | None = None

    def __init__(self, names: Sequence[str], *, changes: bool) -> None:
        self._control, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _program(there.fileno(), FORKED, changes=changes), *names],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
            )

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.wait()

    def fork(self, words: Sequence[str], environment: Mapping[str, str], err: IO[bytes]) -> Loaded:
        """kelr with these words, at its first line."""
        asked = json.dumps([os.getcwd(), environment, words])
        socket.send_fds(self._control, [asked.encode()], [err.fileno()])
        self._control.settimeout(60)
        self._pid, self.returncode = int(self._control.recv(16)), None
        return self

    def wait(self, timeout: float) -> None:
        """Raises TimeoutExpired."""
        if self.returncode is None:
            self._control.settimeout(timeout)
            try:
                self.returncode = int(self._control.recv(16))
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("kelr", timeout) from None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self._pid, number)


def _program(descriptor: int, before: str = "", *, changes: bool) -> str:
    before = before.format(descriptor=descriptor)
    return PROGRAM.format(before=before, more=PATIENT if changes else "", descriptor=descriptor)


def interrupted(
    case: Case, number: int, seed: int, span_s: float, *, lab: Path | None = None, loaded: Loaded | None = None
) -> Round:
    """Run the command, and interrupt it once.

    Args:
        span_s: how long the command takes.
        lab: where the lab on real Kafka is.
        loaded: what is forked; None for a new process.
    """
    changes = case.name in CHANGES
    silent = not changes and lab is None and Random(f"{seed}/{case.command}/{number}").random() < 0.5
    place = (Random(f"{seed}/{case.command}").random() + number * _GOLDEN) % 1
    longest_s = _longest_s(case)
    after_s = longest_s * place**2 if silent or span_s >= longest_s else 1.1 * span_s * place
    one = Round(case, number, silent, loaded is None, after_s)
    with _ground(case, lab) as (server, words):
        if silent:
            strike(server, _SilentBroker())
        before = {path for path in Path().iterdir() if not path.name.startswith("state")}
        _run(one, words, loaded, changes=changes)
        _look_around(one, before, words, lab)
        if changes:
            _look_at_the_cluster(one, server)
    return one


def span(case: Case, lab: Path | None = None, loaded: Loaded | None = None) -> tuple[float, list[str]]:
    """How long the command takes from its first line on, or the latest moment at which it is interrupted; and which
    modules a new process loads for it."""
    with tempfile.TemporaryFile() as err, _ground(case, lab) as (_, words):
        with _begun(words, err, loaded, changes=case.name in CHANGES, flags=["-X", "importtime"]) as process:
            since = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_longest_s(case))
            took_s = time.monotonic() - since
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
        _end_lab(words, lab)
        _end_all()
        said = _read(err).splitlines()
    return took_s, [line.rpartition("|")[2].strip() for line in said if line.startswith("import time:")]


def _longest_s(case: Case) -> float:
    return SLOW_S.get(case.name, LONGEST_S) if case in REAL or case.name.startswith("fleet") else LONGEST_S


@contextlib.contextmanager
def _ground(case: Case, lab: Path | None) -> Iterator[tuple[SimulatedServer, list[str]]]:
    """A cluster and a directory of the case's own, and the command's words there."""
    with prepared(case) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        silent = f"127.0.0.1:{listener.getsockname()[1]}"
        places = {"--endpoint SILENT": "--endpoint http://SILENT/metrics", "SILENT": silent, "REAL": str(lab)}
        command = case.command.replace("CONTROLLER", server.controller_server)
        for place, value in places.items():
            command = command.replace(place, value)
        yield server, command.split()


@contextlib.contextmanager
def _begun(
    words: Sequence[str], err: IO[bytes], loaded: Loaded | None, *, changes: bool, flags: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes] | Loaded]:
    """kelr as a process that has run its first line; a new one with Python's own flags."""
    environment = {**os.environ, "KELR_TIMEOUT": "5" if changes else "60", "TMPDIR": os.getcwd()}
    if loaded is not None:
        yield loaded.fork(words, environment, err)
        return
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, *flags, "-c", _program(writer, changes=changes), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=err,
        env=environment,
        pass_fds=[writer],
        start_new_session=True,
    )
    os.close(writer)
    with process, os.fdopen(reader, "rb") as begun:
        assert begun.read()
        yield process


def _read(err: IO[bytes]) -> str:
    err.seek(0)
    return err.read().decode(errors="replace")


def _run(one: Round, words: Sequence[str], loaded: Loaded | None, *, changes: bool) -> None:
    within_s = CHANGES_WITHIN_S if changes else WITHIN_S
    with tempfile.TemporaryFile() as err, _begun(words, err, loaded, changes=changes) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=one.after_s)
        one.over = process.returncode is not None
        since = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=4 * within_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=60)
            one.findings.append("it goes on")
        one.err, one.code, one.took_s = _read(err), process.returncode, time.monotonic() - since
    if one.took_s > within_s:
        one.findings.append(f"it took longer than {within_s:g} s")
    if _has_traceback(one):
        one.findings.append("a traceback")
    # Python gives SIGINT back to the system while it takes itself apart.
    if not one.over and one.code not in {INTERRUPTED, -signal.SIGINT, *_codes(one.case)}:
        one.findings.append("another exit code")
    if one.code == INTERRUPTED and "kelr: interrupted" not in one.err:
        one.findings.append("it does not say so")


def _has_traceback(one: Round) -> bool:
    return "Traceback" in one.err or "Exception ignored" in one.err


def _codes(case: Case) -> set[int]:
    """The exit codes of a command that ends by itself."""
    if case.name in {"watch", "metrics export"}:
        return set()
    return {0, 3} if case.name in {"history", "explain", "describe"} else {0, 1, 2, 3, 5, 6, 7}


def _look_around(one: Round, before: set[Path], words: Sequence[str], lab: Path | None) -> None:
    """Neither processes nor files are left; `lab down` ends what is left of a lab, whatever was interrupted."""
    starts = one.case.name == "lab up"
    if not starts or one.code == 0:
        one.findings += _end_lab(words, lab)
    if lab is None or str(lab) not in words:
        deadline = time.monotonic() + _GONE_WITHIN_S
        while left := _ours():
            if time.monotonic() > deadline:
                one.findings.append(f"left behind: {left}")
                break
            time.sleep(0.02)
        _end_all()
    made = {path for path in Path().iterdir() if not path.name.startswith("state")} - before
    wanted = {"saved.kelr", "logs.kelr", "plan.json", "saved.kelr-rescue", "report.html", "contexts.toml"}
    wanted |= {"fleet", "lake", "lab"}
    strange = sorted(str(path) for path in made if path.name not in wanted)
    if strange or (starts and _has_lab() and one.code == INTERRUPTED):
        one.findings.append(f"files left behind: {strange or 'lab'}")


def _end_lab(words: Sequence[str], lab: Path | None) -> list[str]:
    """What is wrong with the lab that the command is about; one of its own is ended."""
    if lab is not None and str(lab) in words:
        ran = kelr(f"lab status --dir {lab}")
    elif words[0] in {"lab", "demo"} and _has_lab():
        ran = kelr("lab down --dir lab")
    else:
        return []
    return [] if ran.code == 0 else [f"the lab after it: {ran.code} {ran.err}"]


def _has_lab() -> bool:
    """A directory that is empty is none."""
    return Path("lab").exists() and any(Path("lab").iterdir())


def _ours() -> dict[int, str]:
    """The processes that kelr started and that run, with their words. A `Loaded` is in this process's own session."""
    found, mark = {}, f"{MARK}={os.getpid()}\0".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (place / "environ").read_bytes() and os.getsid(int(place.name)) != os.getsid(0):
                found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
    return found


def _end_all() -> None:
    for pid in _ours():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _look_at_the_cluster(one: Round, server: SimulatedServer) -> None:
    """Orders are as before, or what the journal holds is enough to put them back."""
    undone = None
    if any(order != ASSIGNED[at] for at, (_, order) in states(server).items()):
        os.environ["KELR_TIMEOUT"] = "30"
        undone = kelr("recover undo --yes")
    for at, (_, order) in states(server).items():
        if order != ASSIGNED[at]:
            one.findings.append(f"{at} has the order {order}, and it cannot be undone: {undone and undone.err}")


@contextlib.contextmanager
def marked() -> Iterator[None]:
    """What is started in here, and outlives what started it, is found."""
    os.environ[MARK] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[MARK]


def of_command(at: int, each: int, seed: int, lab: Path | None) -> list[Round]:
    """So many interrupts of one command."""
    case, found = (*EVERY, *REAL)[at], []
    with marked():
        new_s, names = span(case, lab)
        # pandas, which Spark loads, starts a thread, and only what has one can be forked.
        with Loaded([] if case.name == "fleet ingest" else names, changes=case.name in CHANGES) as loaded:
            takes_s = {True: new_s, False: span(case, lab, loaded)[0]}
            for number in range(each):
                new = number % NEW == 0
                one = interrupted(case, number, seed, takes_s[new], lab=lab, loaded=None if new else loaded)
                if not one.silent:  # so that it follows the machine's load
                    takes_s[new] *= 0.9 if one.over else 1.1 if one.after_s > 0.9 * takes_s[new] else 1.0
                print(one, flush=True)
                found.append(one)
    return found


def row(found: Sequence[Round]) -> str:
    """A command's line of the table."""
    met = [one for one in found if not one.over]
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(Counter(one.code for one in met).items()))
    longest = max((one.took_s for one in met), default=0.0)
    tracebacks, wrong = sum(map(_has_traceback, found)), sum(bool(one.findings) for one in found)
    new = sum(one.new for one in found)
    cells = (f"`{found[0].case.command}`", len(found), new, len(met), f"{longest:.2f} s", codes, tracebacks, wrong)
    return f"| {' | '.join(map(str, cells))} |"


_COLUMNS = (
    "command", "interrupts", "new processes", "while it ran", "longest time to its end", "exit codes of those",
    "tracebacks", "not well",
)  # fmt: skip
HEAD = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|"


def main() -> int:
    """0 where all is well, 1 where something is not."""
    options = _options()
    cases = REAL if options.real else EVERY
    chosen = [case for case in cases if not options.only or case.command.startswith(tuple(options.only))]
    if not chosen:
        print(f"no command here begins with {', '.join(options.only)}")
        return 0
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
    tables: list[list[Round]] = []
    broken: list[BaseException] = []
    try:
        with _real_lab(options.real) as lab, _pool(1 if lab else options.jobs) as pool:
            places = [(*EVERY, *REAL).index(case) for case in chosen]
            runs = [pool.submit(of_command, at, options.each, options.seed, lab) for at in places]
            broken = [error for run in runs if (error := run.exception())]
            tables = [run.result() for run in runs if not run.exception()]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    every = [one for found in tables for one in found]
    print(HEAD, *map(row, tables), sep="\n")
    wrong = [one for one in every if one.findings]
    print(f"\n{len(every):,} interrupts (seed {options.seed}), {len(wrong)} with a finding")
    print(*wrong, *map(repr, broken), sep="\n")
    return int(bool(wrong or broken))


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, initializer=keep_to_own_ports)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interrupts")
    parser.add_argument("--each", type=int, default=12, help="interrupts of each command")
    parser.add_argument("--seed", type=int, default=966)
    parser.add_argument("--busy", type=int, default=2, help="busy processes beside it")
    parser.add_argument("--jobs", type=int, default=1, help="commands at a time")
    parser.add_argument("--only", metavar="COMMAND", action="append", help="those that begin so; may be repeated")
    parser.add_argument("--real", action="store_true", help="what starts real Kafka")
    return parser.parse_args()


@contextlib.contextmanager
def _real_lab(wanted: bool) -> Iterator[Path | None]:
    if not wanted:
        yield None
        return
    with (
        tempfile.TemporaryDirectory() as place,
        Lab.up(LabSpec(), Path(place, "lab"), owner_pid=os.getpid()) as lab,
    ):
        yield lab.directory


if __name__ == "__main__":
    sys.exit(main())
