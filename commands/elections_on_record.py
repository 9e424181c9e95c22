"""What kelr's own audit log and open journals tell of elections: an unclean one leaves no trace that brokers would
tell of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kelr.engine.advice.unclean_past import left_by
from kelr.engine.words import agree, brokers, plural
from kelr.errors import BadInputError
from kelr.model import ClearedElr, RecordedElection, SavedLog, Selection, TopicPartition
from kelr.recovery import audit
from kelr.recovery.audited import recorded_clearings, recorded_elections
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.journal_store import open_journals
from kelr.recovery.places import has_records, state_directory
from kelr.recovery.verify import plan_selection
from kelr.rescue.known import known_files
from kelr.sources.base import Source, quorums_of
from kelr.view.plan_words import named

_NOT_KNOWN = "which elections kelr made here is not known"
Note = Callable[[str], object]
"""Takes a line beside the data."""
Unsaved = Mapping[TopicPartition, tuple[int, ...]]
"""Partitions with the brokers that are down, and whose disks may hold what an election gave up."""


@dataclass(frozen=True, slots=True)
class OnRecord:
    """What this machine has on record of a cluster."""

    elections: Mapping[TopicPartition, RecordedElection] = field(default_factory=dict)
    """Those in the audit log, and those of runs under way or cut short, which may not be there yet."""
    cleared: Mapping[TopicPartition, ClearedElr] = field(default_factory=dict)
    """ELRs that kelr cleared, by the audit log."""
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = field(default_factory=dict)
    """What the rescue files hold that the audit log names."""


def on_record(source: Source, note: Note) -> OnRecord:
    """What is on record here of the source's cluster; nothing, with a note, where that cannot be read.

    Raises KelrError where the cluster cannot be reached.
    """
    state = state_directory()
    if not has_records(state):
        return OnRecord()
    cluster_id = source.cluster().cluster_id
    if cluster_id is None:
        return OnRecord()
    try:
        # Journals first: an election that gets its line in between is then in both, and not in neither.
        journals = _journals(state, cluster_id, note)
        rows = list(audit.read(state, cluster_id=cluster_id))
    except (BadInputError, OSError) as error:
        note(f"{_NOT_KNOWN}: {error}")
        return OnRecord()
    saved, unread = known_files(rows, cluster_id=cluster_id, check=False)
    for text in unread:
        note(text)
    return OnRecord(recorded_elections(rows, journals, saved), recorded_clearings(rows), saved)


def _journals(state: Path, cluster_id: str, note: Note) -> Sequence[Journalled]:
    try:
        return open_journals(state, cluster_id)
    except (BadInputError, OSError) as error:
        note(f"{_NOT_KNOWN}: {error}")
        return ()


def unsaved_on_record(source: Source, selection: Selection, note: Note) -> Unsaved:
    """Of the selected partitions those that an election on record may have given something up of, while the broker
    whose disk may hold it is down; only the partitions of such elections are read.

    Raises KelrError where the cluster cannot be reached.
    """
    elections = {
        at: one
        for at, one in on_record(source, note).elections.items()
        if one.unread and selection.matches(at.topic, at.partition)
    }
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for page in source.pages(plan_selection(elections)) if elections else ():
        quorums = quorums_of(source, page.partitions)
        for state in page.partitions:
            down = {*state.replicas} - source.cluster().live
            left = left_by(elections[state.address], state, down, quorums.get(state.address))
            if left:
                found[state.address] = left
    return found


def unsaved_in_words(found: Unsaved) -> str:
    """One sentence about all of them."""
    away = sorted({one for left in found.values() for one in left})
    return (
        f"kelr's audit log: elections of {plural(len(found), 'partition')} ({named(found)}) may have lost records. Save"
        f" {agree(len(away), 'the disk', 'the disks')} of {brokers(away)} before"
        f" {agree(len(away), 'it starts', 'they start')}: kelr explain says how"
    )
