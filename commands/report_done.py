"""What kelr's own records on this machine tell for ``kelr report``: the audit log, and journals that are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kelr.commands.moments import read_moment
from kelr.commands.session import now_ms
from kelr.errors import BadInputError
from kelr.model import Selection
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery import audit
from kelr.recovery.journal_reader import Journalled
from kelr.recovery.journal_store import journal_files, open_journals
from kelr.recovery.places import audit_file, state_directory
from kelr.rescue.known import DUMP, known_files
from kelr.view.incident.material import Done, Gap, OpenRun, Told

_NO_CLUSTER = (
    "Which cluster this is, is not known: kelr's audit log may be of another one, and what kelr did is not told."
)
_NO_AUDIT = (
    "There is no audit log on this machine ({file}): what kelr did from elsewhere is not in this report. Run it where"
    " the elections were carried out, or name that state directory in KELR_STATE_DIR."
)


def read_done(
    selection: Selection,
    since: str | None,
    until: str | None,
    *,
    cluster_id: str | None,
    told: Told | None,
    rescued: Iterable[Path] = (),
) -> tuple[Done | None, list[Gap]]:
    """What kelr did to these partitions in this time; None, and why, where that cannot be told.

    Args:
        rescued: rescue files that count beside those of the audit log.

    Raises:
        UsageError: a moment cannot be read.
    """
    if cluster_id is None:
        return None, [Gap(_NO_CLUSTER)]
    state = state_directory()
    since_ms = _moment_ms("--since", since, None if told is None else told.begins_ms)
    until_ms = _moment_ms("--until", until, None if told is None else told.ends_ms)
    try:
        # Which line is there twice is seen in the whole log alone: the first of them may be from before that time.
        lines = _each_once(audit.read(state, cluster_id=cluster_id))
        rows = tuple(row for row in lines if _concerns(row, selection) and _is_within(row, since_ms, until_ms))
        runs = tuple(map(_open_run, open_journals(state, cluster_id)))
        journals = len(journal_files(state, cluster_id))
    except BadInputError as error:
        return None, [Gap(f"What kelr did is not told: {error}.")]
    file = audit_file(state)
    saved, unread = known_files(rows, rescued, cluster_id=cluster_id)
    gaps = [*map(Gap, unread), *([] if file.exists() else [Gap(_NO_AUDIT.format(file=file))])]
    # Saving records changes nothing, and a disk may have been saved whole.
    changes = tuple(row for row in rows if row.command != DUMP)
    return Done(str(file), changes, runs, journals, saved), gaps


def _moment_ms(option: str, text: str | None, by_log_ms: int | None) -> int | None:
    """A moment as a time: an offset is only one where a metadata log tells when it was written."""
    moment = read_moment(option, text, now_ms=now_ms())
    if moment is None:
        return None
    return by_log_ms if moment.at_ms is None else moment.at_ms


def _each_once(rows: Iterable[AuditRecord]) -> Iterator[AuditRecord]:
    """The lines without those that say again what an earlier one of the same journal says: where kelr was killed right
    after it had written an election's line, `recover resume` writes it once more."""
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        key = row.journal, row.topic, row.partition, row.result
        if row.what is AuditWhat.ELECTION and row.journal is not None:
            if key in seen:
                continue
            seen.add(key)
        yield row


def _is_within(row: AuditRecord, since_ms: int | None, until_ms: int | None) -> bool:
    return (since_ms is None or row.at_ms >= since_ms) and (until_ms is None or row.at_ms <= until_ms)


def _concerns(row: AuditRecord, selection: Selection) -> bool:
    if row.partition is None:
        return selection.matches_topic(row.topic)
    return selection.matches(row.topic, row.partition)


def _open_run(journal: Journalled) -> OpenRun:
    who = f"{journal.who.user}@{journal.who.host}"
    partitions = len({*journal.partitions, *journal.planned})
    return OpenRun(journal.path.stem, journal.command, who, journal.begun_ms, partitions)
