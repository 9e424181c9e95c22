"""Somebody who does what kelr says, command by command, and nothing else; knows which brokers can be started."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.incidents.advice import Advised, Do, next_step
from benchmarks.incidents.site import Site

MOST_TURNS = 20
REASON = "the brokers that hold more are gone for good"


class KelrFailedError(Exception):
    """A command of kelr ended otherwise than it should."""


@dataclass
class Engineer:
    """Recovers a topic with ``kelr recover``: brings back whom the plan asks for, holds whom it holds, applies."""

    site: Site
    rescue: bool = False
    """Whether records are saved before anything that could truncate them, and produced again in the end."""
    saved: list[Path] = field(default_factory=list)
    _plans: int = 0

    def recover(self) -> None:
        collections = self._collect()
        for _ in range(MOST_TURNS):
            if not self._turn(collections):
                break
        else:
            raise KelrFailedError(f"no end after {MOST_TURNS} plans; leaderless: {self.site.leaderless()}")
        self._start_all(self.site.startable())
        if self.rescue:
            self._replay()

    def _turn(self, collections: Sequence[Path]) -> bool:
        """One plan, and what it says. False: nothing is left to do."""
        plan = self._plan(collections)
        if plan.elections:
            self._apply(plan, collections)
            return True
        step = next_step(plan.advised, self.site.startable())
        if step.broker is not None:
            self._start_all((step.broker,))
        elif step.do is Do.LOOK_AGAIN:
            time.sleep(1)
        return step.do is not Do.FINISH

    def _collect(self) -> list[Path]:
        """Read the disks of brokers that are down: on each one's host, in life."""
        files = []
        for broker, disk in self.site.readable_disks().items():
            file = self.site.work / f"broker-{broker}.json"
            self._kelr("recover", "collect", "--log-dir", str(disk), "--out", str(file), connect=False)
            files.append(file)
        return files

    def _plan(self, collections: Sequence[Path]) -> PlanRead:
        """What kelr recommends, now that these brokers are gone for good."""
        self._plans += 1
        file = self.site.work / f"plan-{self._plans}.json"
        logs = [part for path in collections for part in ("--logs", str(path))]
        gone = [part for broker in self.site.chaos.gone for part in ("--gone", str(broker))]
        text = self._kelr("recover", "plan", self.site.topic, *gone, *logs, "--out", str(file), "-o", "json")
        return PlanRead(file, json.loads(text), frozenset(self.site.leaderless()))

    def _apply(self, plan: PlanRead, collections: Sequence[Path]) -> None:
        if self.rescue and plan.gives_up:
            disks = [part for disk in self.site.readable_disks().values() for part in ("--log-dir", str(disk))]
            self._dump("--plan", str(plan.file), *disks)
        consent = ["--yes"]
        if plan.document["accept_loss"] is not None:
            consent += ["--accept-loss", str(plan.document["accept_loss"])]
        if plan.document["consent"] == "force":
            consent += ["--force", REASON]
        logs = [part for path in collections for part in ("--logs", str(path))]
        self._kelr("recover", "apply", str(plan.file), *logs, *consent)

    def _start_all(self, brokers: Collection[int]) -> None:
        for broker in brokers:
            if self.rescue:
                self._save_before_start(broker)
            self.site.start(broker)

    def _save_before_start(self, broker: int) -> None:
        """What others hold and this broker lacks, should it lead; and what it holds, should it have to follow."""
        disk = str(self.site.readable_disks()[broker])
        led_by_it = [
            f"{self.site.topic}:{partition}"
            for partition, state in sorted(self.site.states().items())
            if state.leader is None and broker in state.replicas
        ]
        if led_by_it:
            self._dump(*led_by_it, "--elect", str(broker), "--log-dir", disk)
        self._dump(self.site.topic, "--log-dir", disk, connect=False)

    def _dump(self, *arguments: str, connect: bool = True) -> None:
        file = self.site.work / f"saved-{len(self.saved)}.kelr-rescue"
        self._kelr("rescue", "dump", *arguments, "--out", str(file), connect=connect, may_end_with=(0, 7))
        if file.exists():
            self.saved.append(file)

    def _replay(self) -> None:
        self.site.settle()
        # The disks of those who never come back, against what leads now.
        for disk in self.site.readable_disks().values():
            self._dump(self.site.topic, "--log-dir", str(disk))
        self.site.let_marks_rise()
        for file in self.saved:
            self._kelr("rescue", "replay", str(file), "--yes")

    def _kelr(self, *arguments: str, connect: bool = True, may_end_with: Collection[int] = (0,)) -> str:
        servers = ("-b", self.site.lab.bootstrap_servers) if connect else ()
        command = [sys.executable, "-m", "kelr", *arguments, *servers]
        environment = {**os.environ, "KELR_STATE_DIR": str(self.site.work / "state")}
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
        self.site.report(f"kelr {_shown(arguments, self.site.work)}: {done.returncode}")
        if done.returncode not in may_end_with:
            raise KelrFailedError(f"kelr {shlex.join(arguments)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
        return done.stdout


@dataclass(frozen=True)
class PlanRead:
    """What ``kelr recover plan -o json`` printed."""

    file: Path
    document: Mapping[str, Any]
    leaderless: frozenset[int]

    @property
    def elections(self) -> Sequence[Mapping[str, Any]]:
        return [item["planned"] for item in self.document["items"] if item["planned"] is not None]

    @property
    def gives_up(self) -> bool:
        return any(one["rescue"] for one in self.elections)

    @property
    def advised(self) -> Sequence[Advised]:
        return [
            Advised(number, number in self.leaderless, left["action"], tuple(left["brokers"]), left["reason"])
            for item in self.document["items"]
            if (left := item["not_planned"]) is not None and (number := item["partition"]) is not None
        ]


def _shown(arguments: Sequence[str], work: Path) -> str:
    words = shlex.join(arguments).replace(f"{work}{os.sep}", "")
    return words if len(words) <= 160 else f"{words[:157]}..."
