"""Partitions that stand alike, told once: an incident of ten thousand partitions has a few stories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kelr.model import Decision, ElectionType, Situation, TopicPartition
from kelr.view.explain_columns import Explained

MOST_NAMED = 12
"""So many partitions of a kind are named; of the others there is a number."""
_WORST = (
    Situation.NO_LIVE_REPLICA,
    Situation.NEEDS_UNCLEAN_RECOVERY,
    Situation.WAITING_FOR_LAST_KNOWN_LEADER,
    Situation.WAITING_FOR_ELR,
    Situation.WAITING_FOR_ISR,
    Situation.LEADER_NOT_LIVE,
)


@dataclass(frozen=True, slots=True)
class Kind:
    """Partitions of which the same is to be said."""

    shown: TopicPartition
    """The one that stands for all: the one that an unclean election would cost most."""
    row: Explained
    addresses: tuple[TopicPartition, ...]
    """All of them, sorted."""

    @property
    def others(self) -> tuple[TopicPartition, ...]:
        return tuple(at for at in self.addresses if at != self.shown)


def kinds(
    rows: Mapping[TopicPartition, Explained], apart: Callable[[TopicPartition], object] = lambda _: None
) -> tuple[Kind, ...]:
    """The partitions by what is to be said of them, the worst kind first.

    Args:
        apart: what else tells two of them apart.
    """
    groups: dict[object, list[TopicPartition]] = {}
    for address, row in sorted(rows.items()):
        groups.setdefault((_key(row.decision), apart(address)), []).append(address)
    found = []
    for addresses in groups.values():
        shown = min(addresses, key=lambda at: (-stake(rows[at].decision), at))
        found.append(Kind(shown, rows[shown], tuple(addresses)))
    return tuple(sorted(found, key=_rank))


def named(addresses: Iterable[TopicPartition], most: int = MOST_NAMED, *, longest: int = 249) -> str:
    """``orders:0-5, payments:3 and 12 more``: partitions of one topic as ranges.

    Args:
        most: how many ranges.
        longest: characters of a topic's name; the middle of longer ones goes.
    """
    every, runs = sorted(addresses), 0
    by_topic: dict[str, list[int]] = {}
    for before, at in zip([None, *every], every, strict=False):
        runs += before is None or at != TopicPartition(before.topic, before.partition + 1)
        if runs > most:
            break
        by_topic.setdefault(at.topic, []).append(at.partition)
    text = ", ".join(f"{_short(topic, longest)}:{_ranges(numbers)}" for topic, numbers in by_topic.items())
    left = len(every) - sum(map(len, by_topic.values()))
    return f"{text} and {left:,} more" if left else text


def stake(decision: Decision) -> int:
    """Offsets that the stock unclean election is known to lose at least; where somebody leads, those that replicas give
    up when they follow."""
    if decision.leader is not None:
        parting = (one for one in decision.candidates if one.diverges_at is not None and one.log_end is not None)
        return sum((one.log_end or 0) - (one.diverges_at or 0) for one in parting)
    losses = (one.loss for one in decision.elections if one.election is ElectionType.UNCLEAN)
    return max((loss.total.at_least for loss in losses if loss is not None and loss.total is not None), default=0)


def _key(decision: Decision) -> object:
    """What makes two partitions alike to a reader; offsets may differ."""
    unclean = next((one for one in decision.elections if one.election is ElectionType.UNCLEAN), None)
    return (
        decision.rules,
        decision.situation,
        decision.leader is None,
        decision.elected is None,
        decision.elected_by,
        decision.waits_for,
        decision.advice.action,
        decision.advice.replica,
        tuple((one.rule, one.holds) for one in decision.steps),
        frozenset((one.replica, one.live, one.heard, one.in_isr, one.in_elr) for one in decision.candidates),
        None if unclean is None or unclean.loss is None else (unclean.loss.grade, bool(stake(decision))),
        any(one.diverges_at is not None for one in decision.candidates),
    )


def _rank(kind: Kind) -> tuple[object, ...]:
    situation = kind.row.decision.situation
    place = _WORST.index(situation) if situation in _WORST else len(_WORST)
    healthy = situation is Situation.HEALTHY
    return (
        healthy,
        kind.row.decision.leader is not None,
        -stake(kind.row.decision),
        place,
        -len(kind.addresses),
        kind.shown,
    )


def _short(topic: str, longest: int) -> str:
    return topic if len(topic) <= longest else f"{topic[: longest // 2]}…{topic[-(longest // 2 - 1) :]}"


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
