"""How many partitions an outage leaves how."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kelr.engine.outages.fate import Fates, place_of
from kelr.engine.outages.reading import Seen
from kelr.engine.outages.scenario import Outage
from kelr.engine.outages.standing import OR_WORSE, Standing

COUNTED = tuple(Standing)


@dataclass
class Tally:
    """Counts over partitions, by what holds for them before an outage and after it."""

    outage: Outage
    partitions: int = 0
    now: Counter[Standing] = field(default_factory=Counter)
    then: Counter[Standing] = field(default_factory=Counter)
    new: Counter[Standing] = field(default_factory=Counter)
    """What holds after the outage and not before."""
    now_or_worse: Counter[Standing] = field(default_factory=Counter)
    """For each flag of `OR_WORSE` the partitions that have it or a worse one: what before and after are compared by."""
    then_or_worse: Counter[Standing] = field(default_factory=Counter)
    new_or_worse: Counter[Standing] = field(default_factory=Counter)
    depends: int = 0
    """Partitions for which the order of events makes a difference; counted with whatever holds in some order."""
    doubts: Counter[str] = field(default_factory=Counter)
    """What is not known and would decide, with the number of partitions."""

    def fates(self, seen: Seen) -> Fates:
        """What becomes of a partition."""
        return seen.known.fates(place_of(seen.placed, self.outage.blows), at_once=self.outage.at_once)

    def add(self, seen: Seen, count: int) -> None:
        """Count partitions of one case."""
        fates = self.fates(seen)
        self.partitions += count
        for counter, flags in ((self.now, fates.now), (self.then, fates.then), (self.new, fates.new)):
            for flag in COUNTED if flags else ():
                if flags & flag:
                    counter[flag] += count
        for flag, worse in OR_WORSE.items():
            before, after = bool(fates.now & worse), bool(fates.then & worse)
            self.now_or_worse[flag] += count * before
            self.then_or_worse[flag] += count * after
            self.new_or_worse[flag] += count * (after and not before)
        self.depends += count * fates.depends
        for doubt in {doubt for fate in fates.each for doubt in fate.doubts}:
            self.doubts[doubt] += count
