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

_FIRST = re.compile(r"Start (?:brokers? )?(\d+(?:(?:, | and | or )\d+)*)\b(?! again)")


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
    keep_down: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    do: Do
    broker: int | None = None


def next_step(advised: Sequence[Advised], startable: Collection[int], *, can_learn: bool = False) -> Step:
    """The next thing to do; every election that the plan itself has is done by now.

    Whom the fewest partitions keep down, and then, whom the fewest want later than another, comes first; of those, whom
    most want back.

    Args:
        can_learn: whether what partitions want to know first can be found out: until then a broker stays down that one
            of them keeps down.
    """
    leaderless = [one for one in advised if one.leaderless]
    if can_learn:
        waiting = {broker for one in leaderless if one.action == "get-more-information" for broker in one.keep_down}
        startable = set(startable) - waiting
    wishes = {one.partition: _wish(one, startable) for one in leaderless}
    wanted = Counter(broker for brokers in wishes.values() for broker in brokers)
    held = Counter(broker for one in leaderless for broker in set(_unwelcome(one)) - set(wishes[one.partition]))
    kept = Counter(broker for one in leaderless for broker in one.keep_down)
    if wanted:
        return Step(Do.START, min(wanted, key=lambda broker: (kept[broker], held[broker], -wanted[broker], broker)))
    return Step(Do.LOOK_AGAIN if leaderless else Do.FINISH)


def _wish(one: Advised, startable: Collection[int]) -> tuple[int, ...]:
    """The broker that this partition wants started now, or several of which any will do; nobody where it asks for none
    that can be."""
    first = _FIRST.search(one.reason) if one.action in {"hold", "bring-back"} else None
    named = [int(number) for number in re.findall(r"\d+", first[1])] if first is not None else []
    if any(broker in startable for broker in named):
        return tuple(broker for broker in named if broker in startable)
    others = one.brokers if one.action in {"bring-back", "wait", "get-more-information"} else ()
    return tuple(broker for broker in others if broker in startable)[:1]


def _unwelcome(one: Advised) -> tuple[int, ...]:
    """Brokers that Kafka would elect on their return, and that this partition wants later than another."""
    return one.brokers if one.action in {"hold", "bring-back"} else ()
