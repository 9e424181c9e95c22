"""What somebody does who reads a plan of kelr's and knows which brokers can be started: pure, for both clusters.

The plan was asked for with ``--gone`` for the brokers that cannot, so that it waits for none of them. Whom a partition
that holds one broker down wants back first stands in its words, and is read there, as people do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

_FIRST = re.compile(r"Bring (?:broker )?(\d+) back")


class Do(StrEnum):
    START = "start"
    """This broker."""
    LOOK_AGAIN = "look-again"
    """A partition has no leader, and nobody is to be started for it: it is about to get one by itself."""
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


def next_step(advised: Sequence[Advised], startable: Collection[int]) -> Step:
    """The next thing to do; every election that the plan itself has is done by now.

    Whom most partitions want back comes first, unless another partition wants that broker down for the sake of one that
    can still be had.
    """
    leaderless = [one for one in advised if one.leaderless]
    wishes = {one.partition: _wish(one, startable) for one in leaderless}
    held = {broker for one in leaderless for broker in _unwelcome(one) if wishes[one.partition] != broker}
    wanted = Counter(broker for broker in wishes.values() if broker is not None)
    harmless = [broker for broker in wanted if broker not in held]
    if wanted:
        return Step(Do.START, _most(wanted, harmless or wanted))
    return Step(Do.LOOK_AGAIN if leaderless else Do.FINISH)


def _wish(one: Advised, startable: Collection[int]) -> int | None:
    """The broker that this partition wants started now; None where it asks for nobody who can be."""
    first = _FIRST.search(one.reason)
    named = [int(first[1])] if first is not None and one.action in {"hold", "bring-back"} else []
    others = one.brokers if one.action in {"bring-back", "wait", "get-more-information"} else ()
    return next((broker for broker in (*named, *others) if broker in startable), None)


def _unwelcome(one: Advised) -> tuple[int, ...]:
    """Brokers that Kafka would elect on their return, and that this partition wants later than another."""
    return one.brokers if one.action in {"hold", "bring-back"} else ()


def _most(wanted: Counter[int], among: Collection[int]) -> int:
    return min(among, key=lambda broker: (-wanted[broker], broker))
