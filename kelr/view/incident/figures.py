"""The figures of a report: its summary, its tiles and its closing sentences are made of these and of nothing else, and
these of what the tables show, so that no sentence says otherwise than a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.planning.lost import Lost, LostInAll, lost_in_all
from kelr.model import TopicPartition
from kelr.replay.history import Trouble
from kelr.view.incident.happenings import who
from kelr.view.incident.losses import Replayed, elr_is_on, losses, replayed
from kelr.view.incident.material import Light, Look, Material


@dataclass(frozen=True, slots=True)
class Outage:
    """The longest time without a leader that is known of."""

    longest_ms: int
    where: TopicPartition
    at_least: bool
    """It was, or will be, longer than that."""
    by_log: bool
    """The metadata log tells it; else two looks do."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of the incident, in numbers. None is not known, and never 0."""

    affected: tuple[TopicPartition, ...]
    """In trouble in some look, or by the metadata log, or changed or planned for by kelr, or known to have lost
    something."""
    unsure: tuple[TopicPartition, ...]
    """Others, with elections that may have lost something."""
    unseen: tuple[TopicPartition, ...]
    """Of the report, and not in the newest look."""
    leaderless: tuple[TopicPartition, ...]
    """In the newest look."""
    others: int
    """Not healthy there, or not known to be, with a leader."""
    current: bool
    """Whether the newest look tells of now, and of all of them: a controller answered, and nothing was left out."""
    without: frozenset[TopicPartition]
    """Known to have had no leader at some time."""
    outage: Outage | None
    """None: nobody was without one, or for how long is not known."""
    unsafe: int | None
    """Elections that are not sure to have been clean, by the metadata log."""
    elections: tuple[tuple[str, str], ...] | None
    """Who asked kelr for an election, and how it ended, one for each; None: kelr's records are not known."""
    lost: tuple[Lost, ...]
    in_all: LostInAll
    all_clean: bool
    """No election lost anything committed: the metadata log tells of all of them, and each was of a member of ISR or
    ELR where that proves something."""
    replayed: Replayed

    @property
    def longest_is_known(self) -> bool:
        """Whether it is known how long somebody had no leader, be it that nobody ever had none."""
        return self.outage is not None or (self.unsafe is not None and not self.without)


def figures(material: Material) -> Figures:
    """Count everything once."""
    now, found = material.now, losses(material)
    unseen = tuple(at for at in material.partitions if at not in now.rows)
    without = frozenset(_without(material))
    told = material.told
    elections = None if material.done is None else tuple(_elections(material))
    again = replayed(material)
    concerned = _affected(material, found)
    return Figures(
        affected=concerned,
        unsure=tuple(sorted({one.address for one in found}.difference(concerned))),
        unseen=unseen,
        leaderless=now.leaderless,
        others=len(set(now.in_trouble) - set(now.leaderless)),
        current=is_whole(now) and not unseen,
        without=without,
        outage=max(_outages(material), key=lambda one: (one.longest_ms, one.at_least), default=None),
        unsafe=None if told is None else sum(len(one.unsafe) for one in told.summaries.values()),
        elections=elections,
        lost=found,
        in_all=lost_in_all(found),
        all_clean=told is not None and elr_is_on(material) and not found and not unseen and not again.unended,
        replayed=again,
    )


def is_whole(look: Look) -> bool:
    """Whether a look tells of its moment: a controller answered, partitions were shown, and none could not be read."""
    return look.cluster.controller_silence is None and look.saw_any and not look.errors


def _affected(material: Material, lost: Sequence[Lost]) -> tuple[TopicPartition, ...]:
    """Partitions that were in trouble in some look, or by the metadata log, or that kelr changed or planned for, or
    that are known to have lost something."""
    found = {*material.now.in_trouble, *(one.address for one in lost if one.of_all.at_least)}
    if material.before is not None:
        found |= set(material.before.in_trouble)
    if material.told is not None:
        found |= set(material.told.summaries)
    if material.done is not None:
        found |= {TopicPartition(row.topic, row.partition) for row in material.done.rows if row.partition is not None}
    if material.planned is not None:
        found |= material.planned.in_trouble
    return tuple(sorted(found & set(material.partitions)))


def _without(material: Material) -> Iterator[TopicPartition]:
    """By whatever tells: looks, the metadata log, what kelr saw just before its elections, the plan."""
    for look in (material.now, material.before):
        yield from () if look is None else look.leaderless
    told = material.told
    if told is not None:
        yield from (at for at, one in told.summaries.items() if Trouble.LEADERLESS in one.spans)
        yield from (at for at, turns in told.turns.items() if any(turn.light is Light.LEADERLESS for turn in turns))
    for row in () if material.done is None else material.done.rows:
        if str(row.what) == "election" and row.partition is not None and row.before.get("leader", 0) is None:
            yield TopicPartition(row.topic, row.partition)
    yield from () if material.planned is None else material.planned.leaderless


def _outages(material: Material) -> Iterator[Outage]:
    for at, summary in () if material.told is None else material.told.summaries.items():
        span = summary.spans.get(Trouble.LEADERLESS)
        if span is not None:
            yield Outage(span.longest_ms, at, Trouble.LEADERLESS in summary.lasting, by_log=True)
    now, before = material.now, material.before
    if before is None or before.taken_at_ms >= now.taken_at_ms:
        return
    for at in sorted(set(now.leaderless) & set(before.leaderless)):
        # A leader takes an epoch: with the same one there was none in between.
        if _epoch(now, at) == _epoch(before, at):
            yield Outage(now.taken_at_ms - before.taken_at_ms, at, at_least=True, by_log=False)


def _epoch(look: Look, at: TopicPartition) -> int:
    return look.rows[at].decision.leader_epoch


def _elections(material: Material) -> Sequence[tuple[str, str]]:
    rows = () if material.done is None else material.done.rows
    return [(who(row), row.result) for row in rows if str(row.what) == "election"]
