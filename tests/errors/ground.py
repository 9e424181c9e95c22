"""Where errors are provoked."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kelr.commands import running
from kelr.errors import KelrError
from kelr.model import Snapshot
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT
from tests.recovery.simulated import WHO, SimulatedAdminClient, SimulatedSource, World, leaderless

CONNECTION = ("-b", "kafka-1:9092")


class Terminal(io.StringIO):
    """A terminal at which these lines are typed."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Ground:
    """An empty directory, which is the current one, and whatever has to be another way."""

    path: Path
    patch: pytest.MonkeyPatch

    def run(self, *words: str) -> None:
        """Run a command; the error that it ends with is raised."""

        def failed(error: KelrError, *, debug: bool) -> NoReturn:
            del debug
            raise error

        self.patch.setattr(running, "_failed", failed)
        running.run(list(words))

    def cluster(self, snapshot: Snapshot = INCIDENT) -> None:
        """This snapshot answers for whatever cluster is asked."""
        self.patch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(snapshot))

    def file(self, name: str, content: str | bytes = b"") -> Path:
        path = self.path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def zipped(self, name: str, *lines: str) -> Path:
        """A file as snapshots are."""
        return self.file(name, gzip.compress("".join(f"{line}\n" for line in lines).encode()))

    def snapshot(self) -> Path:
        path = self.path / "saved.kelr"
        write_snapshot(INCIDENT, path)
        return path

    def typed(self, text: str) -> None:
        """Somebody sits at a terminal and types this."""
        self.patch.setattr("sys.stdin", Terminal(text))
        self.patch.setattr("sys.stderr", Terminal())

    def world(self) -> World:
        """Four partitions without a leader on a simulated cluster, which commands change; 1 is down, and was ahead."""
        world = leaderless()
        self.patch.setattr("kelr.commands.session.open_source", lambda _: SimulatedSource(world))
        self.patch.setattr("kelr.commands.recover_plan.now_ms", world.clock_ms)
        for module in ("recover_apply", "recover_settle", "recovering"):
            self.patch.setattr(f"kelr.commands.{module}.MACHINE", world.ground)
        for module in ("recover_apply", "recovering"):
            self.patch.setattr(f"kelr.commands.{module}.hand_of", lambda _: SimulatedAdminClient(world))
            self.patch.setattr(f"kelr.commands.{module}.who_changes", lambda _: WHO)
        self.patch.setattr("kelr.recovery.apply.Timeouts", world.patience)
        self.patch.setattr("sys.stdin", io.StringIO())
        return world

    def planned(self) -> World:
        """The same, with plan.json, which designates 2 everywhere."""
        world = self.world()
        wishes = ("--election-type", "designation", "--designate", "2")
        self.run("recover", "plan", "orders", *wishes, "--out", "plan.json", *CONNECTION)
        return world


Cause = Callable[[Ground], Any]
"""Raises the error; what it returns is of no matter."""
Causes = Mapping[str, Cause]
