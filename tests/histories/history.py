"""One history, from its seed or its schedule to what was wrong in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kelr.recovery.actor import Actor
from kelr.recovery.apply_context import Timeouts
from kelr.recovery.resume import resume
from kelr.recovery.undo import undo
from tests.histories.chance import Chance, Schedule
from tests.histories.cluster import BROKERS, Cluster, Standing
from tests.histories.decided import Decided
from tests.histories.files import Disk
from tests.histories.judge import Judge
from tests.histories.machines import Host, Time
from tests.histories.people import Fate, Operator
from tests.histories.rescue import Records
from tests.histories.sometimes import Noted
from tests.recovery.simulated import leaderless

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
    reached: Mapping[str, int]
    """How often what `sometimes` names came about."""

    @property
    def digest(self) -> str:
        """The same for the same history."""
        return hashlib.sha256("\n".join((*self.trace, *self.wrong)).encode()).hexdigest()


def play(seed: int, written: Schedule | None = None) -> Played:
    """Play the history of a seed, or a written one; the seed then chooses what a power cut leaves."""
    history = _History(Chance(seed, written))
    try:
        with Noted(history.time.reached), Decided():
            history.play()
    except Exception as error:  # kelr broke, or this did
        history.judge.say(f"broke: {error!r}")
    time = history.time
    return Played(seed, tuple(history.judge.wrong), history.chance.chosen, tuple(time.trace), time.reached)


class _History:
    def __init__(self, chance: Chance) -> None:
        self.chance, self.time = chance, Time()
        layouts = chance.choose("layouts", lambda random: random.choice((None, *_LAYOUTS))) or _LAYOUTS[0]
        own = chance.choose("own min.insync.replicas", lambda random: random.choice((None, 2)))
        beginning = _leaderless(tuple(map(tuple, layouts)), own)
        self.cluster = Cluster(self.time, chance, beginning, Timeouts(step_s=2.0))
        self.judge = Judge()
        self.fate = Fate(self.cluster, chance)
        self.hosts = [self._host("laptop")]
        people = [(Actor("ada", "laptop", "User:ada"), self.hosts[0])]
        second = chance.choose("second operator", lambda random: random.choice((None, "laptop", "desk")))
        if second is not None:
            if second == "desk":
                self.hosts.append(self._host("desk"))
            people.append((Actor("bob", second, "User:bob"), self.hosts[-1]))
        else:
            lag_s = chance.choose("lag of all brokers", lambda random: random.choice((None, None, 4, 12)))
            self.cluster.lag_s.update(dict.fromkeys(BROKERS, lag_s or 0.0))
        self.records = Records(self.cluster, self.judge.say)
        self.operators = [
            Operator(who, host, self.cluster, chance, self.judge.request, self.records) for who, host in people
        ]

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
        self.time.start(self.time.now_s, self._replay)
        self.time.run()
        self.judge.end(self.cluster, self.hosts, self.operators, self.fate, self.records)

    def _put_right(self) -> None:
        """Resume or undo, until nothing is open."""
        for _ in range(_ROUNDS):
            left = [one for one in self.operators if one.host.journals()]
            if not left:
                return
            for operator in left:
                mends = self.chance.choose("mends in the end", lambda random: random.choice((None, "undo")))
                operator.put_right(undo if mends == "undo" else resume, 0.0)
            self.time.wait(self.cluster.patience.rival_s / 3)

    def _replay(self) -> None:
        """Whoever has saved something replays all of it."""
        for host in self.hosts:
            who = next(one for one in self.operators if one.host is host)
            for path in host.saved:
                who.replay(path)

    def _host(self, name: str) -> Host:
        blocks = self.chance.choose(f"blocks of {name}", lambda random: random.choice((None, True)))
        return Host(name, self.time, Disk(self.chance.stream(f"disk of {name}"), blocks=bool(blocks)))


@cache
def _leaderless(layouts: tuple[tuple[int, ...], ...], own: int | None) -> Standing:
    return Standing(leaderless(layouts, own=own).cluster)
