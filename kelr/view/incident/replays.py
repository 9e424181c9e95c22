"""What kelr produced again, by its own audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kelr.engine.planning.lost import counted, lost_of_replayed
from kelr.model import TopicPartition
from kelr.model.audit import AuditRecord
from kelr.view.incident.material import Material


@dataclass(frozen=True, slots=True)
class Replayed:
    """Records of rescue files that brokers confirmed."""

    records: int = 0
    lost: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Those of them that were produced where they came from, because the log there did not hold them any more."""
    partitions: int = 0
    """To so many partitions."""
    unended: int = 0
    """Partitions whose replay began and has no end on record: how many records it produced is not known."""


def replayed(material: Material) -> Replayed:
    """What the audit log tells of it; nothing where there is none."""
    rows = [] if material.done is None else [row for row in material.done.rows if str(row.what) == "rescue"]
    lost: Counter[TopicPartition] = Counter()
    records, reached = 0, set[TopicPartition]()
    for row in _ended(rows):
        at, produced = TopicPartition(row.topic, row.partition or 0), counted(row.after.get("records"))
        records += produced
        lost[at] += lost_of_replayed(at, row.after, row.evidence)
        reached |= {at} if produced else set()
    begun = Counter(_run(row) for row in rows if row.result == "begun")
    ended = Counter(map(_run, _ended(rows)))
    return Replayed(records, {at: many for at, many in lost.items() if many}, len(reached), len(begun - ended))


def _ended(rows: list[AuditRecord]) -> Iterator[AuditRecord]:
    return (row for row in rows if row.result != "begun")


def _run(row: AuditRecord) -> tuple[object, ...]:
    return row.journal, row.topic, row.partition
