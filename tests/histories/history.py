"""One history, from its seed or its schedule to what was wrong in it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from kelr.durable import AppendOnlyFile
from kelr.recovery.plan_record import plan_of_record
from kelr.recovery.resume import resume
from kelr.recovery.shelf import open_journals
from kelr.recovery.site import Patience
from kelr.recovery.undo import undo
from kelr.recovery.who import Who
from kelr.simulation.cluster import SimulatedCluster
from tests.histories.chance import Chance, Schedule
from tests.histories.cluster import Cluster
from tests.histories.judge import Judge
from tests.histories.machines import Host, Time, process_here
from tests.histories.people import Fate, Operator
from tests.recovery.simulated import CLUSTER_ID, leaderless

_LAYOUTS = ([[3, 1, 2]], [[2, 3, 1]], [[3, 1, 2], [2, 3, 1]], [[3, 2, 1], [1, 3, 2]])
_ROUNDS = 6
"""So many times resume or undo are run in the end."""


@dataclass(frozen=True)
class Played:
    """A history that was played."""

    seed: int
    wrong: tuple[str, ...]
    """What must not be; empty: all is well."""
    schedule: Schedule
    trace: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The same for the same history."""
        return hashlib.sha256("\n".join((*self.trace, *self.wrong)).encode()).hexdigest()


def play(seed: int, written: Schedule | None = None) -> Played:
    """Play the history of a seed, or a written one."""
    with tempfile.TemporaryDirectory(prefix="kelr-history", dir=_MEMORY if os.path.isdir(_MEMORY) else None) as here:
        history = _History(Chance(seed, written), Path(here))
        with history.files_watched():
            try:
                history.play()
            except Exception as error:  # kelr broke, or this did
                history.judge.say(f"broke: {error!r}")
        trace = tuple(line.replace(here, "") for line in history.time.trace)
        wrong = tuple(line.replace(here, "") for line in history.judge.wrong)
        return Played(seed, wrong, history.chance.chosen, trace)


_MEMORY = "/dev/shm"


class _History:
    def __init__(self, chance: Chance, here: Path) -> None:
        self.chance, self.time = chance, Time()
        layouts = chance.choose("layouts", lambda random: random.choice((None, *_LAYOUTS))) or _LAYOUTS[0]
        own = chance.choose("own min.insync.replicas", lambda random: random.choice((None, 2)))
        beginning = _leaderless(tuple(map(tuple, layouts)), own)
        self.cluster = Cluster(self.time, chance, beginning, Patience(step_s=2.0))
        self.plans: dict[str, Any] = {}
        self.judge = Judge(self.plans)
        self.fate = Fate(self.cluster, chance)
        self.hosts = [Host("laptop", self.time, here / "laptop")]
        people = [(Who("ada", "laptop", "User:ada"), self.hosts[0])]
        second = chance.choose("second operator", lambda random: random.choice((None, "laptop")))
        if second is not None:
            if second == "desk":
                self.hosts.append(Host("desk", self.time, here / "desk"))
            people.append((Who("bob", second, "User:bob"), self.hosts[-1]))
        self.operators = [Operator(who, host, self.cluster, chance, self.judge.request) for who, host in people]

    def play(self) -> None:
        """All of it."""
        self.fate.live()
        for operator in self.operators:
            self.time.start(0.0, operator.live)
        self.time.run()
        self.time.note("all", "well from here on")
        self.fate.all_well()
        self.time.start(self.time.now_s + self.cluster.patience.late_s, self._put_right)
        self.time.run()
        self.judge.end(self.cluster, self.hosts, self.operators, self.fate)

    def _put_right(self) -> None:
        """Resume or undo, until nothing is open."""
        for _ in range(_ROUNDS):
            left = [one for one in self.operators if open_journals(one.host.state, CLUSTER_ID)]
            if not left:
                return
            for operator in left:
                mends = self.chance.choose("mends in the end", lambda random: random.choice((None, "undo")))
                operator.put_right(undo if mends == "undo" else resume, 0.0)
            self.time.wait(self.cluster.patience.rival_s / 3)

    @contextlib.contextmanager
    def files_watched(self) -> Iterator[None]:
        """Each line that a process writes is two seams, and is remembered."""
        append = AppendOnlyFile.append

        def watched(file: AppendOnlyFile, *records: Mapping[str, Any]) -> None:
            process = process_here()
            assert process is not None
            process.seam("before a line")
            append(file, *records)
            for record in records:
                self._written(process, file.path, record)
            process.seam("after a line")

        with mock.patch.object(AppendOnlyFile, "append", watched), mock.patch.object(os, "fsync", _nothing):
            yield

    def _written(self, process: Any, path: Path, record: Mapping[str, Any]) -> None:
        line = record.get("line")
        if line is None:
            self.time.note(process.name, f"audit {record['what']} {record['partition']} {record['result']}")
            return
        journal = f"{process.host.name}/{path.name}"
        self.time.note(process.name, f"line {line} {record.get('step', '')}")
        if line == "begin":
            plan = self.plans[journal] = None if record["plan"] is None else plan_of_record(record["plan"])
            for one in plan.elections if plan is not None and record["keep_order"] else ():
                self.judge.kept.setdefault(one.address, []).append(one.order)
        elif line == "intent":
            process.journal, process.intent = journal, record


@cache
def _leaderless(layouts: tuple[tuple[int, ...], ...], own: int | None) -> SimulatedCluster:
    return leaderless(layouts, own=own).cluster


def _nothing(_descriptor: int) -> None:
    pass
