"""What somebody does who reads a plan of kelr's and knows which brokers can be started: pure, for both clusters.

A plan says in words what to do where its first advice cannot be followed ("If 3 cannot come back: bring 1 back, ..."),
and so it is read here in words, as people do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

_FIRST = re.compile(r"Bring (?:broker )?(\d+) back")
_OTHERWISE = re.compile(r"If ([\d, and]+) cannot come back: (?:bring (\d+) back|(designate) (\d+))")


class Do(StrEnum):
    START = "start"
    """This broker."""
    ELECT = "elect"
    """The best log there is, for these partitions."""
    FINISH = "finish"
    """Nothing is left that an election, or one broker more than another, would change."""


@dataclass(frozen=True, slots=True)
class Advised:
    """What a plan says of one partition that gets no election in it."""

    partition: int
    leaderless: bool
    action: str | None
    brokers: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    do: Do
    broker: int | None = None
    partitions: tuple[int, ...] = ()


def next_step(advised: Sequence[Advised], startable: Collection[int]) -> Step:
    """The next thing to do; every election that the plan itself has is done by now.

    Whom most partitions want back comes first, unless another partition wants that broker down for the sake of one that
    can still be had. What waits for brokers that are all gone is elected before anybody comes back who would be
    elected in their place.
    """
    leaderless = [one for one in advised if one.leaderless]
    wishes = {one.partition: _wish(one, startable) for one in leaderless}
    held = {broker for one in leaderless for broker in _unwelcome(one) if wishes[one.partition] != broker}
    wanted = Counter(broker for broker in wishes.values() if broker is not None)
    harmless = [broker for broker in wanted if broker not in held]
    lost_hope = tuple(sorted(partition for partition, broker in wishes.items() if broker is None))
    if harmless:
        return Step(Do.START, _most(wanted, harmless))
    if lost_hope:
        return Step(Do.ELECT, partitions=lost_hope)
    if wanted:
        return Step(Do.START, _most(wanted, wanted))
    return Step(Do.FINISH)


def _wish(one: Advised, startable: Collection[int]) -> int | None:
    """The broker that this partition wants started now; None: nobody whom it speaks of can be."""
    first = _FIRST.search(one.reason)
    named = [int(first[1])] if first is not None and one.action in {"hold", "bring-back"} else []
    others = one.brokers if one.action in {"bring-back", "wait", "get-more-information"} else ()
    otherwise = _OTHERWISE.search(one.reason)
    instead = [int(otherwise[2])] if otherwise is not None and otherwise[2] else []
    return next((broker for broker in (*named, *others, *instead) if broker in startable), None)


def _unwelcome(one: Advised) -> tuple[int, ...]:
    """Brokers that Kafka would elect on their return, and that this partition wants later than another."""
    return one.brokers if one.action in {"hold", "bring-back"} else ()


def _most(wanted: Counter[int], among: Collection[int]) -> int:
    return min(among, key=lambda broker: (-wanted[broker], broker))
