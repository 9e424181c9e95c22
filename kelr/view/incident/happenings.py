"""What happened, in the order of time: from the metadata log, from kelr's audit log, and when somebody looked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from kelr.model import TopicPartition
from kelr.model.audit import AuditRecord
from kelr.replay.history import (
    BrokerEntry,
    CauseKind,
    ClusterEntry,
    ClusterEvent,
    Entry,
    PartitionEntry,
    PartitionsEntry,
)
from kelr.view.history_words import what, when, why
from kelr.view.incident.kinds import named
from kelr.view.incident.material import Material
from kelr.view.styled import Text, written

MOST_ROWS = 200
"""So many rows a timeline has at most."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One row of the timeline."""

    at_ms: int
    where: str
    what: str
    why: str
    source: str
    weight: int = 1
    """How much it tells of the incident: 0 is left out first."""

    @property
    def time(self) -> str:
        return when(self.at_ms)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The rows, and how many there is no room for."""

    rows: tuple[Happening, ...]
    left_out: int


def timeline(material: Material, most: int = MOST_ROWS) -> Timeline:
    """Everything that is known to have happened, oldest first; where that is too much, what tells least is left out,
    and then what is oldest."""
    found = [*_told(material), *_done(material), *_looks(material)]
    left_out = 0 if material.told is None else material.told.entries_left_out
    kept = found
    for weight in (0, 1):
        if len(kept) > most:
            kept = [one for one in kept if one.weight > weight]
    kept = sorted(kept, key=lambda one: one.at_ms)[-most:]
    return Timeline(tuple(kept), left_out + len(found) - len(kept))


def weight_of(entry: Entry) -> int:
    """How much an entry of the metadata log tells of an incident."""
    if isinstance(entry, PartitionEntry):
        if entry.cause.kind is CauseKind.AS_FOUND:
            return 0
        lost = entry.before is not None and entry.before.leader is not None
        lost = lost and entry.after is not None and entry.after.leader is None
        return 2 if lost or entry.election is not None else 0
    if isinstance(entry, PartitionsEntry):
        return 2 if entry.lost_leader or entry.got_leader or entry.unclean or entry.moved_leader else 0
    if isinstance(entry, ClusterEntry):
        return 1 if entry.event in {ClusterEvent.CONTROLLER, ClusterEvent.CONFIG, ClusterEvent.FEATURE} else 0
    return 2


def _told(material: Material) -> Iterator[Happening]:
    for entry in () if material.told is None else material.told.entries:
        at_ms, source = entry.at.timestamp_ms, f"log offset {entry.at.offset}"
        yield Happening(at_ms, _where(entry), _words(what(entry)), _words(why(entry)), source, weight_of(entry))


def _where(entry: Entry) -> str:
    if isinstance(entry, PartitionEntry):
        return str(entry.address)
    if isinstance(entry, PartitionsEntry):
        return named([one.address for one in entry.entries], 3) + _more(entry.count - len(entry.entries))
    return f"broker {entry.broker}" if isinstance(entry, BrokerEntry) else "cluster"


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""


def _done(material: Material) -> Iterator[Happening]:
    """What kelr did: what one run did to several partitions with the same end is one row."""
    rows = () if material.done is None else material.done.rows
    for _, run in groupby(rows, key=_of_one_run):
        of_run = list(run)
        first = of_run[0]
        places = [TopicPartition(row.topic, row.partition) for row in of_run if row.partition is not None]
        where = named(places, 3) if places else ", ".join(sorted({row.topic for row in of_run})[:3])
        yield Happening(
            first.at_ms,
            where,
            f"kelr {first.command}: {done_in_words(first)}: {first.result}",
            f"{who(first)}{f', plan {first.plan_id}' if first.plan_id else ''}",
            "audit log",
            3,
        )


def _of_one_run(row: AuditRecord) -> tuple[object, ...]:
    return row.command, row.plan_id, row.journal, str(row.what), row.election, row.result, row.user, row.host


def done_in_words(row: AuditRecord) -> str:
    """What kelr was to do."""
    return f"{row.election} election" if row.election else str(row.what)


def who(row: AuditRecord) -> str:
    """Who did it: the user and machine, and the name that the cluster knows."""
    return f"{row.user}@{row.host}" + (f" as {row.principal}" if row.principal else "")


def _looks(material: Material) -> Iterator[Happening]:
    for look in (material.before, material.now):
        if look is None:
            continue
        leaderless = set(look.leaderless)
        others = len(set(look.in_trouble) - leaderless)
        text = f"of {len(look.rows):,} that were seen {len(leaderless):,} had no leader"
        text += f", {others:,} more were not healthy" if others else ""
        silence = look.cluster.controller_silence
        text += "" if silence is None else "; no controller answered: as far as brokers knew"
        yield Happening(look.taken_at_ms, "cluster", text, "", f"kelr looked: {look.name}", 3)


def _words(text: Text) -> str:
    return written(text, color=False)
