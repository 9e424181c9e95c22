"""The report in a paragraph, and in a handful of figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.words import joined
from kelr.model import Grade, TopicPartition
from kelr.page.words import count
from kelr.replay.history import Trouble
from kelr.view.history_words import lasted, when
from kelr.view.incident.happenings import who
from kelr.view.incident.kinds import named
from kelr.view.incident.losses import ORDER, Lost, elr_is_on, summed
from kelr.view.incident.material import Material
from kelr.view.incident.tables import GRADES, bounds_in_words


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure at a glance."""

    label: str
    value: str
    bad: bool = False


def affected(material: Material) -> tuple[TopicPartition, ...]:
    """Partitions that were in trouble in some look, or by the metadata log, or that kelr changed or planned for."""
    found: set[TopicPartition] = set(material.now.in_trouble)
    if material.before is not None:
        found |= set(material.before.in_trouble)
    if material.told is not None:
        found |= set(material.told.summaries)
    if material.done is not None:
        found |= {TopicPartition(row.topic, row.partition) for row in material.done.rows if row.partition is not None}
    if material.planned is not None:
        found |= {one.address for one in material.planned.plan.elections}
    return tuple(sorted(found & set(material.partitions)))


def _tells_of_all(material: Material) -> bool:
    """Whether a partition that was in trouble and is well again would be known of: looks and kelr's own audit log
    know nothing of what others mended, or Kafka by itself."""
    return material.told is not None


def tiles(material: Material, found: Sequence[Lost]) -> tuple[Tile, ...]:
    """The figures; what is not known is ``?``."""
    longest = _longest(material)
    told = material.told
    unsafe = None if told is None else sum(len(one.unsafe) for one in told.summaries.values())
    leaderless = len(material.now.leaderless)
    return (
        Tile(
            "partitions affected" + ("" if _tells_of_all(material) else ", as far as is known"),
            f"{len(affected(material)):,}",
        ),
        Tile("without a leader now", f"{leaderless:,}", bad=leaderless > 0),
        Tile(
            "longest time without a leader" + ("" if longest is None or longest[1] is None else f" ({longest[1]})"),
            "?" if longest is None else _lasted(material, *longest),
            bad=longest is not None and longest[0] > 0,
        ),
        Tile(
            "elections not sure to have been clean, by the metadata log",
            "?" if unsafe is None else f"{unsafe:,}",
            bad=bool(unsafe),
        ),
        _lost_tile(material, found),
        Tile("elections by kelr", "?" if material.done is None else f"{len(_elections(material)):,}"),
    )


def _lost_tile(material: Material, found: Sequence[Lost]) -> Tile:
    label = "committed offsets lost"
    if not found:
        return Tile(f"{label}: no election is known that lost any", "?" if material.told is None else "0 known")
    total, unknown = summed(found), sum(one.grade is Grade.UNKNOWN for one in found)
    value = bounds_in_words(total)
    if all(one.grade is Grade.PROVEN_NONE for one in found):
        label += ": proven"
    elif unknown:
        label += f"; unknown for {count(unknown, 'election')} of {len(found):,}"
    return Tile(label, value, bad=total is None or total.at_least > 0)


def _longest(material: Material) -> tuple[int, TopicPartition | None] | None:
    """The longest time without a leader, and where; None where no metadata log tells."""
    if material.told is None:
        return None
    found = [
        (span.longest_ms, at)
        for at, summary in material.told.summaries.items()
        if (span := summary.spans.get(Trouble.LEADERLESS)) is not None
    ]
    return max(found, key=lambda one: one[0]) if found else (0, None)


def _lasted(material: Material, longest_ms: int, where: TopicPartition | None) -> str:
    """How long it was; one that lasts when the metadata log ends was, or will be, longer."""
    summary = None if material.told is None or where is None else material.told.summaries.get(where)
    still = summary is not None and Trouble.LEADERLESS in summary.lasting
    return f"at least {lasted(longest_ms)}" if still else lasted(longest_ms)


def _elections(material: Material) -> list[tuple[str, str]]:
    """Who carried out what, of elections that kelr began."""
    rows = () if material.done is None else material.done.rows
    return [(who(row), row.result) for row in rows if str(row.what) == "election"]


def paragraph(material: Material, found: Sequence[Lost]) -> str:
    """The whole in a few sentences."""
    return " ".join(_sentences(material, found))


def _sentences(material: Material, found: Sequence[Lost]) -> Iterator[str]:
    every, now = affected(material), material.now
    if not every:
        yield "No partition was found in trouble."
    else:
        are = "was" if len(every) == 1 else "were"
        known = "" if _tells_of_all(material) else ", as far as is known without a metadata log"
        yield f"{count(len(every), 'partition')} {are} affected{known}: {named(every, 6, longest=60)}."
    before = material.before
    if before is not None:
        yield f"At {when(before.taken_at_ms)[:19]} UTC {len(before.leaderless):,} had no leader."
    without, others = len(now.leaderless), len(set(now.in_trouble) - set(now.leaderless))
    more = f", and {others:,} more {'was' if others == 1 else 'were'} not healthy, or not known to be" if others else ""
    yield f"At {when(now.taken_at_ms)[:19]} UTC, in the newest look, {without:,} had no leader{more}."
    longest = _longest(material)
    if longest is not None and longest[1] is not None:
        where, took = named([longest[1]], longest=60), _lasted(material, *longest)
        yield f"The longest time without a leader was {took} ({where}), by the controller's clock."
    elections = _elections(material)
    if elections:
        done = sum(result == "done" for _, result in elections)
        people = joined(sorted({person for person, _ in elections}))
        asked = count(len(elections), "election")
        yield f"kelr was asked for {asked}, of which {done:,} came out as planned, by {people}."
    yield loss_sentence(material, found)


def loss_sentence(material: Material, found: Sequence[Lost]) -> str:
    """What was lost in all, and how sure that is."""
    if not found:
        if material.told is not None:
            told = material.told
            span = f"from {when(told.begins_ms)[:19]} to {when(told.ends_ms)[:19]} UTC"
            clean = "clean" if elr_is_on(material) else "of members of the ISR, which without ELR proves nothing"
            known = f"by the metadata log, {span}, all of them were {clean}"
            return f"No election is known that lost anything committed: {known}."
        return "Nothing tells of elections, so whether anything was lost is not known."
    by_grade = [(grade, sum(one.grade is grade for one in found)) for grade in ORDER]
    grades = ", ".join(f"{GRADES[grade]}: {many:,}" for grade, many in by_grade if many)
    total = summed(found)
    what = "not known" if total is None else bounds_in_words(total)
    return f"Committed offsets lost: {what} ({count(len(found), 'election')}; {grades})."
