"""What one cause did to many partitions, as one entry: the story of a cluster, not of each partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kelr.replay.history.entries import UNSAFE, Cause, ElectedAs, Entry, PartitionEntry, PartitionsEntry

FIRST = 3
"""So many of the partitions are kept."""


@dataclass(slots=True)
class _Group:
    cause: Cause
    shape: object
    entries: list[PartitionEntry] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    count: int = 0
    topics: dict[str, None] = field(default_factory=dict)

    def add(self, entry: PartitionEntry) -> None:
        self.count += 1
        self.topics[entry.address.topic] = None
        if len(self.entries) < FIRST:
            self.entries.append(entry)
        for name in _effects(entry):
            self.counts[name] = self.counts.get(name, 0) + 1

    def entry(self) -> Entry:
        first = self.entries[0]
        if self.count == 1:
            return first
        return PartitionsEntry(
            first.at,
            self.cause,
            tuple(self.entries),
            self.count,
            tuple(self.topics),
            reassignment=first.reassignment,
            **self.counts,
        )


def grouped(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries of partitions that follow one another and have one cause at one time become one."""
    group: _Group | None = None
    for entry in entries:
        if not isinstance(entry, PartitionEntry):
            if group is not None:
                yield group.entry()
            group = None
            yield entry
            continue
        shape = (entry.at.timestamp_ms, entry.at.epoch, entry.cause, entry.reassignment)
        if group is None or group.shape != shape:
            if group is not None:
                yield group.entry()
            group = _Group(entry.cause, shape)
        group.add(entry)
    if group is not None:
        yield group.entry()


def _effects(entry: PartitionEntry) -> Iterator[str]:
    before, after = entry.before, entry.after
    if before is None or after is None:
        yield "created" if before is None else "deleted"
        return
    if before.leader != after.leader:
        yield "lost_leader" if after.leader is None else "got_leader" if before.leader is None else "moved_leader"
    if set(before.isr) - set(after.isr):
        yield "isr_shrank"
    if set(after.isr) - set(before.isr):
        yield "isr_grew"
    if set(before.elr or ()) - {*(after.elr or ()), *after.isr}:
        yield "elr_struck"
    if entry.election is not None and entry.election.elected_as in UNSAFE | {ElectedAs.UNKNOWN}:
        yield "unclean"
