"""Running kelr in this process, against a snapshot that stands for a cluster."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kelr.commands.main import main
from kelr.commands.session import Resolved
from kelr.model import Snapshot
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT


@dataclass(frozen=True)
class Ran:
    """What one run of kelr did."""

    code: int
    out: str
    err: str


Kelr = Callable[..., Ran]


class Terminal(io.StringIO):
    """A terminal at which these lines are typed."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | Terminal], None]:
    """Puts a terminal before this process, at which somebody reads stderr and types; to be called by the test itself,
    since pytest gives it another stderr than its fixtures."""

    def begin(typed: str | Terminal) -> None:
        monkeypatch.setattr("sys.stdin", Terminal(typed) if isinstance(typed, str) else typed)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    return begin


@pytest.fixture
def kelr(capsys: pytest.CaptureFixture[str]) -> Kelr:
    """Runs kelr with these arguments, as a process would, but here."""

    def run(*arguments: str) -> Ran:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Callable[[Snapshot], None]:
    """Makes a snapshot answer for whatever cluster is asked next."""

    def serve(snapshot: Snapshot) -> None:
        def open_source(_: Resolved) -> MemorySource:
            return MemorySource(snapshot)

        monkeypatch.setattr("kelr.commands.session.open_source", open_source)

    return serve


@pytest.fixture
def incident(cluster: Callable[[Snapshot], None]) -> None:
    """The incident answers for the cluster."""
    cluster(INCIDENT)


@pytest.fixture
def snapshot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The incident in a file, in the current directory, so that its name is the same in every run."""
    monkeypatch.chdir(tmp_path)
    write_snapshot(INCIDENT, Path("incident.kelr"))
    monkeypatch.setattr("kelr.commands.session.now_ms", lambda: INCIDENT.taken_at_ms)  # in the command's own process
    return "incident.kelr"


def in_one_line(text: str) -> str:
    """A text without its line ends, so that a sentence is found wherever it was wrapped."""
    return " ".join(text.split())
