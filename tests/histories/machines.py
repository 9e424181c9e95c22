"""Hosts and the kelr processes on them, in virtual time: greenlets that take turns where they wait, nowhere else."""

from __future__ import annotations

import errno
import heapq
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

import greenlet

from kelr.recovery.actor import Actor
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.journal_store import open_journals
from kelr.sources.ground import Ground, Moment
from tests.histories.chance import Chance
from tests.histories.files import Disk
from tests.recovery.simulated import CLUSTER_ID

BEGIN_MS = 1_700_000_000_000
_CHANGES = frozenset({"write", "fsync", "ftruncate", "mkdir", "link", "replace", "unlink"})
"""Calls of the file system at which something may happen."""


class Killed(BaseException):
    """The process is gone: nothing of it runs any more."""


class Time:
    """Virtual time: what is due, in order. Whoever waits gives way to whatever is due before."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._due: list[tuple[float, int, Callable[[], object]]] = []
        self._number = 0
        self._hub = greenlet.getcurrent()
        self.trace: list[str] = []
        """All that happened, one line each."""
        self.reached: Counter[str] = Counter()
        """How often what `sometimes` names has come about."""

    def at(self, when_s: float, do: Callable[[], object]) -> None:
        """Do this then, or now where that is past."""
        self._number += 1
        heapq.heappush(self._due, (max(when_s, self.now_s), self._number, do))

    def start(self, when_s: float, life: Callable[[], None]) -> None:
        """Begin a life of its own then; it may `wait`."""
        self.at(when_s, greenlet.greenlet(life).switch)

    def wait(self, seconds: float) -> None:
        """Of whoever calls this: let so much time pass."""
        self.at(self.now_s + seconds, greenlet.getcurrent().switch)
        self._hub.switch()

    def pause(self) -> None:
        """Of whoever calls this: wait until somebody switches back."""
        self._hub.switch()

    def run(self) -> None:
        """Everything, until nothing is due any more."""
        while self._due:
            when_s, _, do = heapq.heappop(self._due)
            self.now_s = when_s
            do()

    def note(self, who: str, what: str) -> None:
        self.trace.append(f"{self.now_s:9.3f} {who}: {what}")


@dataclass(eq=False)
class Host:
    """A machine: its disk, its clocks, and what runs on it."""

    name: str
    time: Time
    disk: Disk
    set_by_ms: int = 0
    """By how much somebody has set the wall clock."""
    boots: int = 0
    booted_s: float = 0.0
    processes: list[Process] = field(default_factory=list)
    mends_killed: set[Path] = field(default_factory=set)
    """Journals of which the last who mended was killed."""
    saved: list[Path] = field(default_factory=list)
    """Rescue files that somebody was told of."""

    def __post_init__(self) -> None:
        """The directory for rescue files is there, as whoever names a file has one."""
        files = self.disk.process()
        files.mkdir(self.rescues)
        files.fsync(files.open(Path("/"), os.O_RDONLY))
        files.exit()

    @property
    def rescues(self) -> Path:
        """Where rescue files are."""
        return Path("/", f"{self.name}'s rescues")

    @property
    def state(self) -> Path:
        """kelr's state directory."""
        return Path("/", self.name, "kelr")

    def journals(self) -> tuple[Journalled, ...]:
        """Those that are open. Raises KelrError where they cannot be read."""
        files = self.disk.process()
        try:
            return open_journals(self.state, CLUSTER_ID, files)
        finally:
            files.exit()

    def power_cut(self) -> None:
        """Everything that runs on it is gone, and it boots again."""
        self.disk.power_cut()
        self.boots += 1
        self.booted_s = self.time.now_s
        for process in tuple(self.processes):
            process.kill()


class Process(Ground):
    """One kelr on its host, from its start to its end: its clocks, and the seams at which anything may happen to it.

    Args:
        source: of chance, for its seams.
        strength: how often something happens there.
        most_s: no single wait is longer.
    """

    def __init__(self, host: Host, who: Actor, command: str, chance: Chance, *, strength: float, most_s: float) -> None:
        self.host, self.who, self.command = host, who, command
        self.name = f"{who.user}'s {command}"
        self.begun_s = host.time.now_s
        self.suspended_s = 0.0
        self.dead = False
        self.killed = False
        """Whether that is how it ended."""
        self.given_up = False
        """Whether somebody ended it who had waited for long enough."""
        self.step = ""
        """What its last line on the disk says that it is about to ask for."""
        self.files = host.disk.process(self._at_file)
        self.journal: Path | None = None
        """The journal that it writes."""
        self.disk_failed = False
        """A line could not be written."""
        self._torn = False
        self._chance, self._strength, self._most_s = chance, strength, most_s
        self._here = greenlet.getcurrent()
        self._wait = 0
        host.processes.append(self)

    def now_ms(self) -> int:
        return BEGIN_MS + self.host.set_by_ms + round(self.host.time.now_s * 1000)

    def moment(self) -> Moment:
        return Moment(f"boot {self.host.boots}", round((self.host.time.now_s - self.host.booted_s) * 1000))

    def sleep(self, seconds: float) -> None:
        assert seconds <= self._most_s, f"{self.name} waits for {seconds} s"
        self.seam("sleep")
        self.elapse(seconds)

    def elapse(self, seconds: float) -> None:
        """Time passes; others have their turn."""
        self._alive("waits")
        time = self.host.time
        self._wait += 1
        this = self._wait

        def wake() -> None:
            if this == self._wait:
                self._here.switch()

        time.at(time.now_s + seconds, wake)
        time.pause()
        if self.dead:
            raise Killed

    def seam(self, name: str) -> None:
        """The process is at a moment where something may happen to it."""
        self._alive(name)
        if self._torn:
            self.dead = self.killed = True
            raise Killed(name)
        struck = self._chance.choose(f"{self.who.user}'s seams", partial(self._draw, _likelihood(name)))
        if struck is None:
            return
        kind, _, how_much = struck.partition(" by ")
        self.strike(kind, name, how_much)

    def strike(self, kind: str, name: str, how_much: str = "") -> None:
        """This happens to it at this moment."""
        self.host.time.note(self.name, f"{kind}{how_much and f' by {how_much}'} at {name}")
        self.host.time.reached[f"{kind} at {name}"] += 1
        if kind == "kill":
            self.dead = self.killed = True
            raise Killed(name)
        if kind == "power cut":
            self.dead = self.killed = True
            self.host.power_cut()
            raise Killed(name)
        if kind == "Ctrl-C":
            raise KeyboardInterrupt
        if kind == "suspend":
            self.suspended_s += float(how_much)
            self.elapse(float(how_much))
        elif kind == "clock":
            self.host.set_by_ms += int(how_much) * 1000

    def give_up(self, kind: str, request: str) -> None:
        """Somebody who has waited long enough for the answer to a request ends it."""
        self.given_up = True
        self.strike(kind, f"wait for {request}")

    def kill(self) -> None:
        """Of another process: this one is gone."""
        if not self.dead:
            self.dead = self.killed = True
            self._wait += 1
            self.host.time.at(self.host.time.now_s, self._here.switch)

    def end(self) -> None:
        """It has ended, one way or another."""
        self.dead = True
        if self.journal is not None and self.command in {"recover resume", "recover undo"}:
            if self.killed and self.journal in self.host.mends_killed:
                self.host.time.reached["a mend is killed in a mend"] += 1
            (self.host.mends_killed.add if self.killed else self.host.mends_killed.discard)(self.journal)
        self.files.exit()
        self.host.processes.remove(self)

    @property
    def by(self) -> str:
        """Its host and its journal."""
        return f"{self.host.name}/{'' if self.journal is None else self.journal.name}"

    def _at_file(self, call: str, path: Path) -> int | None:
        """The seam before a call of the file system, at which the disk may fail, too."""
        if call not in _CHANGES:
            self._alive(call)
            return None
        if path.parent.name == "journals":
            self.journal = path
        self.seam(f"{call} {_kind(path)}")
        failure = self._chance.choose(
            f"{self.who.user}'s disk", partial(self._draw_failure, self._failing(_kind(path)))
        )
        if failure is None or call not in {"write", "fsync"}:
            return None
        self.host.time.note(self.name, f"{failure} at {call} {_kind(path)}")
        self.disk_failed = True
        if failure in {"EIO", "ENOSPC"} and call == ("fsync" if failure == "EIO" else "write"):
            self.host.time.reached[f"{failure} at {_kind(path)}"] += 1
        if failure == "EIO" and call == "fsync" and path.suffix == ".jsonl":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if failure == "ENOSPC" and call == "write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if failure.startswith("torn") and call == "write":
            self._torn = True
            self.host.time.reached[f"torn {_line(self.files.writing)} of {_kind(path)}"] += 1
            return int(failure.removeprefix("torn "))
        return None

    def _failing(self, kind: str) -> float:
        """How often the disk fails at a file of this kind: oftener at what is seldom written."""
        if kind == "journal" and _line(self.files.writing) != "line in the middle":
            return 0.1
        return {"replay journal": 0.5, "audit log": 0.1}.get(kind, 0.02)

    def _draw_failure(self, likelihood: float, random: Random) -> str | None:
        if random.random() >= likelihood * self._strength:
            return None
        return random.choice(("EIO", "ENOSPC", "torn 1", "torn 60", "torn 4096"))

    def _alive(self, what: str) -> None:
        if self.dead:
            raise Killed(what)

    def _draw(self, likelihood: float, random: Random) -> str | None:
        if random.random() >= likelihood * self._strength:
            return None
        kind = random.choices(("kill", "power cut", "Ctrl-C", "suspend", "clock"), (4, 2, 3, 1, 1))[0]
        if kind == "suspend":
            return f"suspend by {random.choice((1, 15, 70, 300, 3600))}"
        if kind == "clock":
            return f"clock by {random.choice((1, 10, 90, 3600)) * random.choice((-1, 1))}"
        return kind


def _likelihood(moment: str) -> float:
    """How often something happens at a moment: oftener at those that few histories come to."""
    if moment.endswith(("produce", "config", "replay journal", "rescue file", "fsync part", "unlink part")):
        return 0.5
    return 0.15 if moment.startswith(("before ", "after ")) or moment.endswith(("part", "fetch", "audit log")) else 0.05


def _kind(path: Path) -> str:
    """Of which of kelr's files a path is."""
    if path.parent.name in {"journals", "replays"} and path.suffix == ".jsonl":
        return "journal" if path.parent.name == "journals" else "replay journal"
    kinds = {".part": "part", ".jsonl": "audit log", ".kelr-rescue": "rescue file", "": "directory"}
    return kinds.get(path.suffix, path.name)


def _line(data: bytes) -> str:
    """Which line of a file of lines this is."""
    first = data.startswith((b'{"line":"begin"', b'{"kind":"kelr-rescue-replay"'))
    last = data.startswith((b'{"line":"end"', b'{"finished"'))
    return "first line" if first else "last line" if last else "line in the middle"
