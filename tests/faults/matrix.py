"""Every fault at every request of a command: what kelr does then, and whether that is well.

`outcomes` runs one command of a case again and again, each time with one fault at one of the requests that its good run
made. `python -m tests.faults` runs all of it and writes ``docs/faults.md``.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from typing import Any

from kelr.commands.main import INTERNAL_ERROR, main
from kelr.errors import ExitCode
from kelr.lab.simulated.faults import Fault, FaultKind
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.recovery.apply_context import Timeouts
from tests.faults.cluster import ASSIGNED, BEST, TOPIC, Struck, incident, servers_of, states, strike

TIMEOUT_S = 1.0
SLACK_S = 8.0
"""Beyond the good run: one timeout for the question that was struck, repetitions, and a busy machine."""
KIP, ELR = "kip966-balanced", "elr-4.3"

FAULTS: Mapping[str, Fault] = {
    "delay (in time)": Fault(FaultKind.DELAY, 100),
    "delay (too long)": Fault(FaultKind.DELAY, 3000),
    "drop": Fault(FaultKind.DROP),
    "lose": Fault(FaultKind.LOSE),
    "close": Fault(FaultKind.CLOSE),
    "garble": Fault(FaultKind.GARBLE, 7),
    "truncate": Fault(FaultKind.TRUNCATE, 9),
    "slow": Fault(FaultKind.SLOW, 40),
    "error UNKNOWN_SERVER_ERROR": Fault(FaultKind.ERROR, -1),
    "error REQUEST_TIMED_OUT": Fault(FaultKind.ERROR, 7),
    "error TOPIC_AUTHORIZATION_FAILED": Fault(FaultKind.ERROR, 29),
    "error CLUSTER_AUTHORIZATION_FAILED": Fault(FaultKind.ERROR, 31),
    "error UNSUPPORTED_VERSION": Fault(FaultKind.ERROR, 35),
    "error NOT_CONTROLLER": Fault(FaultKind.ERROR, 41),
    "error INVALID_REQUEST": Fault(FaultKind.ERROR, 42),
}
SILENT = frozenset({"delay (too long)", "drop", "lose", "slow"})
"""Those that cost a timeout."""


@dataclass(frozen=True, slots=True)
class Case:
    """A command on a cluster with these rules.

    Args:
        before: commands that go first, without faults.
        cut: whether the last of them is cut short, so that it leaves a journal open.
        wanted: whom it elects; None for a command that changes no leader.
    """

    name: str
    command: str
    rules: str = ELR
    before: tuple[str, ...] = ()
    cut: bool = False
    wanted: int | None = None
    whole: bool = False
    """Whether its items are all there and tell the same, but for times, or it ends with an error."""

    @property
    def shown(self) -> str:
        return f"{self.name} ({'native' if self.rules == KIP else 'fall-back'})"


PLAN = f"recover plan {TOPIC} -e designation --designate {BEST} --out plan.json"
WORSE = f"recover plan {TOPIC} -e designation --designate 3 --out plan.json"
AGREED = "--yes --accept-loss 60+ --force nobody-has-the-disk"
APPLY = f"recover apply plan.json {AGREED}"
DUMP = f"rescue dump {TOPIC} --plan plan.json --out saved.kelr-rescue"


def _both(name: str, command: str, **more: Any) -> tuple[Case, Case]:
    return Case(name, command, ELR, **more), Case(name, command, KIP, **more)


CASES: tuple[Case, ...] = (
    *_both("describe", f"describe {TOPIC}"),
    *_both("log-info", f"log-info {TOPIC} --lineage"),
    *_both("explain", f"explain {TOPIC}"),
    Case("snapshot", f"snapshot saved.kelr {TOPIC}"),
    Case("recover collect", f"recover collect {TOPIC} --out logs.kelr"),
    *_both("recover plan", PLAN),
    *_both("recover apply", APPLY, before=(PLAN,), wanted=BEST),
    *_both("recover verify", "recover verify plan.json", before=(PLAN, APPLY)),
    Case("recover resume", "recover resume --yes", before=(PLAN, APPLY), cut=True, wanted=BEST),
    Case("recover undo", "recover undo --yes", before=(PLAN, APPLY), cut=True, wanted=BEST),
    *_both("elect designation", f"elect -e designation --designate {BEST} {TOPIC} {AGREED}", wanted=BEST),
    Case("elect unclean", f"elect -e unclean {TOPIC} {AGREED}", wanted=3),
    *_both(
        "elect longest_log_aggressive",
        f"elect -e longest_log_aggressive --window 0.3 {TOPIC} {AGREED}",
        wanted=BEST,
    ),
    Case("elect preferred", f"elect -e preferred {TOPIC}:0 --yes", before=(PLAN, APPLY), wanted=3),
    *_both("rescue dump", DUMP, before=(WORSE,)),
    Case("history", f"history {TOPIC}", whole=True),
    Case("rescue replay", "rescue replay saved.kelr-rescue --yes", before=(WORSE, DUMP, APPLY)),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """What one run did."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def document(self) -> Any:
        try:
            return json.loads(self.out)
        except ValueError:
            return None


@dataclass(slots=True)
class Outcome:
    """What became of one run with a fault."""

    case: Case
    fault: str
    at: int
    api: str
    ran: Ran
    word: str
    """``right``, ``less known``, or ``exit N``."""
    findings: list[str] = field(default_factory=list)
    """What is not well; empty: nothing."""


def kelr(command: str) -> Ran:
    """Run kelr in this process, with a document on stdout."""
    out, err = io.StringIO(), io.StringIO()
    began = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*command.split(), "-o", "json"])
    return Ran(code, out.getvalue(), err.getvalue(), time.monotonic() - began)


@contextlib.contextmanager
def prepared(case: Case) -> Iterator[SimulatedServer]:
    """A cluster and a directory in which the case's command can run; the environment is put back afterwards."""
    environment, here = dict(os.environ), os.getcwd()
    patience = Timeouts.__init__.__defaults__  # type: ignore[misc]
    # Nothing that a simulated cluster was asked takes effect a minute later, so nobody waits for that.
    short = {"answer_s": 3.0, "settle_s": 5.0, "late_s": 0.5, "step_s": 0.05}
    Timeouts.__init__.__defaults__ = tuple(short.get(one.name, one.default) for one in fields(Timeouts))  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as directory, incident(case.rules) as server:
        os.chdir(directory)
        os.environ.update(
            KELR_STATE_DIR=str(Path(directory) / "state"),
            KELR_CONFIG_DIR=directory,
            KELR_BOOTSTRAP_SERVER=servers_of(server),
            KELR_TIMEOUT="10",
        )
        try:
            for command in case.before:
                last = case.cut and command == case.before[-1]
                if last:
                    strike(server, _Second("AlterPartitionReassignments"))
                ran = kelr(command)
                strike(server, Struck())
                if not last and not _is_well(command, ran):
                    raise AssertionError(f"{case.shown}: {command} ended with {ran.code}: {ran.err}")
            os.environ["KELR_TIMEOUT"] = str(TIMEOUT_S)
            yield server
        finally:
            Timeouts.__init__.__defaults__ = patience  # type: ignore[misc]
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)


class _Second(Struck):
    """Refuses the second request of this name and all that follow: the order is not put back."""

    def __init__(self, name: str) -> None:
        super().__init__(fault=FAULTS["error INVALID_REQUEST"])
        self._name = name

    def strike(self, node: int, api: str) -> Fault | None:  # noqa: ARG002
        self.seen.append(api)
        return self.fault if api == self._name and self.seen.count(api) > 1 else None


def _is_well(command: str, ran: Ran) -> bool:
    """Whether it did all that it can here: a dump cannot read the dead broker's disk, and says so."""
    unread = command == DUMP and ran.code == ExitCode.PARTLY_DONE and "not all that is to be saved is known" in ran.err
    return ran.code == ExitCode.DONE or unread


def good_run(case: Case) -> tuple[Ran, list[str]]:
    """The run without faults, and the requests that it made."""
    with prepared(case) as server:
        os.environ["KELR_TIMEOUT"] = "10"
        faults = strike(server, Struck())
        ran = kelr(case.command)
        assert _is_well(case.command, ran), (case.shown, ran)
        _expect_wanted(case, server)
        return ran, faults.seen


def _expect_wanted(case: Case, server: SimulatedServer) -> None:
    if case.wanted is not None:
        leaders = {at: leader for at, (leader, _) in states(server).items()}
        assert case.wanted in leaders.values(), (case.shown, leaders)


def strike_once(case: Case, good: Ran, fault: str, at: int) -> Outcome | None:
    """The command once more, with this fault at its `at`-th request; None where it made fewer this time."""
    with prepared(case) as server:
        before = states(server)
        faults = strike(server, Struck(fault=FAULTS[fault], at=at))
        ran = kelr(case.command)
        if faults.struck is None:
            return None
        strike(server, Struck())
        outcome = Outcome(case, fault, at, faults.struck, ran, _word(case, good, ran))
        outcome.findings += _of_the_run(good, ran)
        if case.whole and ran.code == good.code and _told(ran) != _told(good):
            outcome.findings.append("its items are not those of the run without a fault")
        if case.wanted is not None:
            outcome.findings += _of_the_cluster(case, ran, before, server)
        outcome.findings += [f"the server broke: {failure!r}" for failure in server.failures]
        server.perform(lambda there: there.failures.clear())
        return outcome


def _told(ran: Ran) -> list[list[Any]]:
    """What a history tells, without its times."""
    names = ("subject", "topic", "partition", "broker", "event", "cause", "restart", "elected_as", "clean")
    return [[item[name] for name in names] for item in ran.document["items"]]


def _word(case: Case, good: Ran, ran: Ran) -> str:
    if ran.code != good.code:
        return f"exit {ran.code}"
    if case.whole:
        return "right"  # what it tells is looked at already
    return "right" if _plain(good.document) == _plain(ran.document) else "less known"


def _of_the_run(good: Ran, ran: Ran) -> list[str]:
    found = []
    if ran.code == INTERNAL_ERROR or "Traceback" in ran.err or ran.code not in list(ExitCode):
        found.append(f"it broke: exit {ran.code}, {ran.err.strip()[-300:]}")
    if ran.seconds > good.seconds + 2 * TIMEOUT_S + SLACK_S:
        found.append(f"it took {ran.seconds:.1f} s")
    if ran.code not in {0, 1} and "error: " not in ran.err:
        found.append(f"exit {ran.code} without a word: {ran.err.strip()[-300:]}")
    if ran.code == 0:
        found += [f"said otherwise: {one}" for one in contradictions(good.document, ran.document)]
    return found


def _of_the_cluster(
    case: Case, ran: Ran, before: Mapping[Any, tuple[int | None, tuple[int, ...]]], server: SimulatedServer
) -> list[str]:
    """What the run left behind, and whether resuming puts it right."""
    found = []
    after = states(server)
    leaders = {leader for leader, _ in after.values()}
    had = {leader for leader, _ in before.values()}
    if not leaders <= had | {case.wanted}:
        found.append(f"elected {leaders}, and {case.wanted} was wanted")
    if ran.code == 0 and case.wanted not in leaders:
        found.append("exit 0, and nobody was elected")
    os.environ["KELR_TIMEOUT"] = "10"
    status = kelr("recover status")
    if status.document is None or not status.document["clean"]:
        resumed = kelr("recover resume --yes")
        status = kelr("recover status")
        if status.document is None or not status.document["clean"]:
            found.append(f"not clean after resume ({resumed.code}): {resumed.err[-200:]} {status.out[-300:]}")
    orders = {at: order for at, (_, order) in states(server).items()}
    if orders != ASSIGNED:
        found.append(f"left in the order {orders}")
    if not {leader for leader, _ in states(server).values()} <= had | {case.wanted}:
        found.append("resume elected somebody else")
    return found


DECISIVE = frozenset(
    {
        "elect",
        "elected",
        "elr",
        "high_watermark",
        "isr",
        "last_epoch",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "log_end",
        "log_start",
        "replicas",
        "situation",
        "passed",
    }
)
_UNKNOWN = (None, "unknown", "not-yet")


def contradictions(good: Any, got: Any, where: str = "") -> list[str]:
    """Where a document says something else than the good one of what decides; not knowing contradicts nothing."""
    if isinstance(good, dict) and isinstance(got, dict):
        found = []
        for key in good.keys() & got.keys():
            if key in DECISIVE and not isinstance(good[key], dict):
                if got[key] != good[key] and got[key] not in _UNKNOWN:
                    found.append(f"{where}.{key} is {got[key]} and not {good[key]}")
            elif key in {"items", "candidates"}:
                found += _in_items(good[key], got[key], f"{where}.{key}", incomplete=_says_incomplete(got))
        return found
    return []


def _in_items(good: Any, got: Any, where: str, *, incomplete: bool) -> list[str]:
    found, told = [], {_key(one): one for one in got or ()}
    for one in good or ():
        other = told.get(_key(one))
        if other is None:
            found += [] if incomplete else [f"{where} leaves {_key(one)} out"]
        else:
            found += contradictions(one, other, f"{where}{_key(one)}")
    return found


def _says_incomplete(document: Mapping[str, Any]) -> bool:
    return bool(document.get("errors")) or document.get("complete") is False or bool(document.get("notes"))


def _key(item: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(item.get(name) for name in ("topic", "partition", "replica", "check", "broker"))


def _plain(document: Any) -> Any:
    """A document without what differs from run to run."""
    if isinstance(document, dict):
        return {key: _plain(value) for key, value in document.items() if not _varies(key)}
    return [_plain(one) for one in document] if isinstance(document, list) else document


def _varies(key: str) -> bool:
    return key.endswith(("_ms", "_id")) or key in {"journal", "journals", "hash", "file", "port", "next", "command"}


def chosen(seen: Sequence[str], chance: Random | None, most: int | None = None) -> list[int]:
    """Which of the requests are struck: all of them, or one of each name, of at most so many names."""
    if chance is None:
        return list(range(len(seen)))
    names = sorted(set(seen))
    if most is not None and most < len(names):
        names = chance.sample(names, most)
    return [chance.choice([at for at, name in enumerate(seen) if name == api]) for api in names]


def outcomes(
    case: Case,
    faults: Sequence[str] = tuple(FAULTS),
    *,
    chance: Random | None = None,
    most: int | None = None,
    told: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Each of these faults at each request of the case's run.

    Args:
        chance: strike one request of each name instead.
        most: of no more than so many names.
    """
    good, seen = good_run(case)
    found = []
    for fault in faults:
        for at in chosen(seen, chance, most):
            outcome = strike_once(case, good, fault, at)
            if outcome is not None:
                found.append(outcome)
                told(outcome)
    return found
