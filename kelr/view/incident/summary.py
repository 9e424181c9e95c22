"""The report in a paragraph, and in a handful of figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.engine.loss_words import promise
from kelr.engine.planning.lost import ORDER
from kelr.engine.words import agree, joined
from kelr.model import Bounds
from kelr.page.words import count
from kelr.view.history_words import lasted, when
from kelr.view.incident.figures import Figures, Outage
from kelr.view.incident.kinds import named
from kelr.view.incident.losses import elr_is_on, tells_of_all
from kelr.view.incident.material import Look, Material, Told
from kelr.view.incident.tables import graded
from kelr.view.lost_words import bounds_in_words, saved_in_words

_LONGEST = "longest time without a leader"


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure at a glance."""

    label: str
    value: str
    bad: bool = False


def tiles(material: Material, known: Figures) -> tuple[Tile, ...]:
    """The figures; what is not known is ``?`` or ``UNKNOWN``."""
    leaderless = len(known.leaderless)
    found = [
        Tile(
            "partitions affected" + ("" if tells_of_all(material) else ", as far as is known"),
            f"{len(known.affected):,}",
        ),
        Tile("without a leader now", _at_least(leaderless, whole=known.current), bad=leaderless > 0),
        _outage_tile(material, known),
        Tile(
            "elections not sure to have been clean, by the metadata log",
            "?" if known.unsafe is None else f"{known.unsafe:,}",
            bad=bool(known.unsafe),
        ),
        *_lost_tiles(material, known),
        Tile("elections by kelr", "?" if known.elections is None else f"{len(known.elections):,}"),
    ]
    again = known.replayed
    if again.records or again.unended:
        found.append(Tile("records produced again", _at_least(again.records, whole=not again.unended)))
    return tuple(found)


def _at_least(many: int, *, whole: bool) -> str:
    """A number that may be too small where not everything was seen."""
    if whole:
        return f"{many:,}"
    return f"at least {many:,}" if many else "?"


def _outage_tile(material: Material, known: Figures) -> Tile:
    outage, label = known.outage, _LONGEST
    if outage is None:
        label += _in_its_time(material) if known.longest_is_known else ""
        return Tile(label, "none" if known.longest_is_known else "?")
    label += f" ({outage.where})" + ("" if tells_of_all(material) else ", as far as is known")
    return Tile(label, _lasted(outage), bad=outage.longest_ms > 0)


def _in_its_time(material: Material) -> str:
    """The time that the metadata log tells of, where that is not all."""
    told = material.told
    return "" if told is None or tells_of_all(material) else f", {_span(told)}"


def _span(told: Told) -> str:
    begins_ms = max(told.begins_ms, told.whole_since_ms or 0)
    return f"from {when(begins_ms)[:19]} to {when(told.ends_ms)[:19]} UTC"


def _lasted(outage: Outage) -> str:
    """How long it was; one that lasts when what tells of it ends was, or will be, longer."""
    return f"at least {lasted(outage.longest_ms)}" if outage.at_least else lasted(outage.longest_ms)


def _lost_tiles(material: Material, known: Figures) -> Iterator[Tile]:
    label, lost = "committed offsets lost", known.in_all
    if not known.lost:
        clean = f"{_in_its_time(material)}; every election that the metadata log tells of was clean"
        yield Tile(label + (clean if known.all_clean else ""), "0" if known.all_clean else "UNKNOWN")
        return
    if lost.unknown:
        label += f"; UNKNOWN for {count(lost.unknown, 'election')} of {lost.elections:,}"
    if lost.promised:
        label += f"; {promise(lost.promised)}"
    yield Tile(label, bounds_in_words(lost.committed), bad=lost.committed != Bounds(0, 0))
    yield Tile("offsets lost in all, committed or not", bounds_in_words(lost.total), bad=lost.total != Bounds(0, 0))


def paragraph(material: Material, known: Figures) -> str:
    """The whole in a few sentences."""
    return " ".join(_sentences(material, known))


def _sentences(material: Material, known: Figures) -> Iterator[str]:
    every = known.affected
    if every:
        are = agree(len(every), "was", "were")
        yield f"{count(len(every), 'partition')} {are} affected{_as_far(material)}: {named(every, 6, longest=60)}."
    elif material.now.saw_any:
        yield _none_in_trouble(material) + _but_not_all(material.now) + "."
    else:
        yield "No partition was shown, so nothing is known of any."
    if known.unsure:
        many = count(len(known.unsure), "more partition" if every else "partition")
        yield f"{many} had elections that may have lost something: {named(known.unsure, 6, longest=60)}."
    if material.before is not None:
        yield f"{_at(material.before)}, {len(material.before.leaderless):,} had no leader{_doubt(material.before)}."
    yield from _newest(material, known)
    yield from _outage(material, known)
    if known.elections:
        done = sum(result == "done" for _, result in known.elections)
        people = joined(sorted({person for person, _ in known.elections}))
        asked = count(len(known.elections), "election")
        yield f"kelr was asked for {asked}, of which {done:,} came out as planned, by {people}."
    yield loss_sentence(material, known)


def _as_far(material: Material) -> str:
    if tells_of_all(material):
        return ""
    return f", as far as is known without a metadata log{'' if material.told is None else ' of the whole time'}"


def _none_in_trouble(material: Material) -> str:
    told, looks = material.told, "the newest look" if material.before is None else "either look"
    if told is None:
        one = material.before is None
        return "In the newest look no partition was in trouble" if one else "In neither look was a partition in trouble"
    by = f"By the metadata log, {_span(told)}"
    if told.elr_on:
        return f"{by}, and in {looks}, no partition was in trouble"
    return f"{by}, no partition was without a leader, and in {looks} none was in trouble"


def _at(look: Look) -> str:
    return f"At {when(look.taken_at_ms)[:19]} UTC"


def _doubt(look: Look) -> str:
    silence = look.cluster.controller_silence
    return "" if silence is None else ", as far as brokers knew: no controller answered"


def _but_not_all(look: Look) -> str:
    return f"; {count(len(look.errors), 'topic or partition')} could not be described" if look.errors else ""


def _newest(material: Material, known: Figures) -> Iterator[str]:
    if not material.now.saw_any:
        return
    more = ""
    if known.others:
        more = f", and {known.others:,} more {'was' if known.others == 1 else 'were'} not healthy, or not known to be"
    if known.unseen:
        more += f"; of {count(len(known.unseen), 'partition')} that it does not have this is not known"
    doubt = _doubt(material.now)
    yield f"{_at(material.now)}, in the newest look, {len(known.leaderless):,} had no leader{more}{doubt}."


def _outage(material: Material, known: Figures) -> Iterator[str]:
    outage = known.outage
    if outage is not None:
        by = "by the controller's clock" if outage.by_log else "from one look to the other"
        longest = "longest" if tells_of_all(material) else "longest known"
        yield f"The {longest} time without a leader was {_lasted(outage)} ({named([outage.where], longest=60)}), {by}."
    elif not known.longest_is_known and known.without:
        many = count(len(known.without), "partition")
        least = "" if tells_of_all(material) else "At least "
        yield f"{least}{many} had no leader for a time; for how long is not known."


def loss_sentence(material: Material, known: Figures) -> str:
    """What was lost in all, how sure that is, and what was produced again."""
    return " ".join((_lost(material, known), *_replayed(known)))


def _lost(material: Material, known: Figures) -> str:
    if not known.lost:
        told = material.told
        if told is None:
            told_by = "nothing tells of elections"
            if material.before is not None and not known.unseen:
                told_by = "the two looks show no election that may have lost anything, and of other times nothing tells"
            return f"Whether anything was lost is UNKNOWN: {told_by}."
        span = _span(told)
        if known.all_clean:
            by = f"by the metadata log, {span}, all of them were clean"
            others = "" if tells_of_all(material) else " Of other times it tells nothing."
            return f"No election is known that lost anything committed: {by}.{others}"
        why = "not everything was seen"
        if not elr_is_on(material):
            why = "all were of members of the ISR, which without ELR proves nothing"
        return (
            f"Whether anything was lost is UNKNOWN: the metadata log, {span}, tells of no unclean election, but {why}."
        )
    lost = known.in_all
    by_grade = [(grade, sum(one.grade is grade for one in known.lost)) for grade in ORDER]
    grades = ", ".join(f"{graded(grade, lost.promised)}: {many:,}" for grade, many in by_grade if many)
    condition = f" {promise(lost.promised)}" if lost.promised else ""
    saved = f" {saved_in_words(lost)}." if lost.files else ""
    return (
        f"Committed offsets lost: {bounds_in_words(lost.committed)}{condition}."
        f" Offsets lost in all: {bounds_in_words(lost.total)} ({count(lost.elections, 'election')}; {grades}).{saved}"
    )


def _replayed(known: Figures) -> Iterator[str]:
    again = known.replayed
    if again.records:
        where = count(again.partitions, "partition")
        yield f"{count(again.records, 'record')} {agree(again.records, 'was', 'were')} produced again to {where}."
    if again.unended:
        yield (
            f"How many more were produced again is not known: the replay of {count(again.unended, 'partition')} was cut"
            " short."
        )


# What is not there to be told.


def nothing_to_explain(material: Material, known: Figures) -> str:
    """Why there is no decision to explain: what was seen was healthy, at the moments of the looks and at no other."""
    looks = [look for look in (material.before, material.now) if look is not None and look.rows]
    if not looks:
        return "No partition of this report was seen in a look, so there is no decision to explain."
    times = joined(when(look.taken_at_ms)[:19] for look in looks)
    parts = [f"At {times} UTC every partition that was seen was healthy, so there is no decision to explain."]
    if known.without:
        outage = "" if known.outage is None else f", for up to {_lasted(known.outage)}"
        parts.append(
            f"At other times {count(len(known.without), 'partition')} had no leader{outage}: see the timeline."
        )
    elif known.affected:
        parts.append("What happened at other times is in the timeline, and what was lost below it.")
    elif known.unsure:
        parts.append("Of the elections in between, the table of losses tells.")
    if known.unseen:
        parts.append(f"{count(len(known.unseen), 'partition')} could not be seen in the newest look.")
    return " ".join(parts)


def nothing_in_trouble(material: Material, known: Figures) -> str:
    """What stands in the place of an empty table of states."""
    if not material.now.saw_any:
        return "The newest look was shown no partition, so where they stand is not known."
    if not known.current:
        return "The newest look found no partition in trouble, and did not see all of them, or no controller answered."
    return "No partition is in trouble in the newest look, and none was named."


def nothing_left(known: Figures) -> str:
    """What stands in the place of an empty list of next steps."""
    if known.current:
        return "As far as these sources tell, nothing is left to do."
    return "These sources name no next step, and they do not tell of everything: the newest look was not whole."
