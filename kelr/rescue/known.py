"""Rescue files that kelr knows of, as evidence of what elections lost: those that the audit log names, and others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kelr.engine.logs import segments, without_ranges
from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.model import Parts, ReplicaLog, SavedLog, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.rescue.archive import read_head
from kelr.rescue.manifest import HOLE, Manifest, SavedGap, SavedTail

DUMP, REPLAY = "rescue dump", "rescue replay"
"""The commands in the audit lines of a dump and a replay."""
CHECK_UP_TO_BYTES = 1024 * 1024 * 1024
"""Some seconds."""


def known_files(
    rows: Iterable[AuditRecord],
    others: Iterable[Path] = (),
    *,
    cluster_id: str | None,
    check: bool = True,
    files: Files = FILES,
) -> tuple[Mapping[TopicPartition, Sequence[SavedLog]], list[str]]:
    """What the rescue files of a cluster hold, by their manifests; and, in words, why one cannot be read.

    Args:
        rows: lines of the audit log.
        others: files that were found.
        check: read them whole, up to `CHECK_UP_TO_BYTES`; one that is not as it was written counts for nothing.
    """
    paths = dict.fromkeys(path.absolute() for path in others)
    states: dict[str, dict[TopicPartition, tuple[int | None, int]]] = {}
    named: dict[str, str] = {}
    rows = list(rows)
    for row in rows if cluster_id is not None else ():
        for one in row.evidence if row.what is AuditWhat.RESCUE and row.partition is not None else ():
            file, sha256, state = str(one.get("file")), str(one.get("sha256")), saved_in(row)
            if not Path(file).is_absolute():
                continue  # of an older kelr
            paths[Path(file)], named[file] = None, sha256
            if state is not None:
                states.setdefault(sha256, {})[TopicPartition(row.topic, row.partition or 0)] = state
    produced = _produced(rows)
    found: dict[TopicPartition, list[SavedLog]] = {}
    unread: dict[str, str] = {}
    read: set[str] = set()
    for path in paths:
        try:
            manifest, sha256, checked = read_head(path, files, check_up_to_bytes=CHECK_UP_TO_BYTES if check else 0)
        except BadInputError as error:
            unread[str(path)] = error.message
            continue
        if manifest.cluster_id == cluster_id and sha256 not in read:
            read.add(sha256)
            held = _records(manifest)
            for log in _logs(path, manifest, states.get(sha256, {}), checked=checked):
                replayed = produced[sha256, str(log.address)] >= held[log.address] > 0
                found.setdefault(log.address, []).append(replace(log, replayed=replayed))
    # One that was moved is read where it is now.
    lacking = [why for path, why in unread.items() if named.get(path) not in read]
    return found, [f"{why}: what it holds counts for nothing" for why in lacking]


def _produced(rows: Iterable[AuditRecord]) -> Counter[tuple[str, str]]:
    """How many records replays have produced where they came from, by the file's SHA-256 and the partition.

    All runs together produce a record once; what they leave out is missing here: then the file counts as not replayed.
    """
    found: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for one in row.evidence if row.what is AuditWhat.RESCUE and row.command == REPLAY else ():
            records, source = row.after.get("records"), str(one.get("source"))
            if isinstance(records, int) and source == f"{row.topic}:{row.partition}":
                found[str(one.get("sha256")), source] += records
    return found


def _records(manifest: Manifest) -> Counter[TopicPartition]:
    found: Counter[TopicPartition] = Counter()
    for tail in manifest.tails:
        found[tail.address] += sum(segment.records for segment in tail.segments)
    return found


def _shown(path: Path) -> str:
    """A path as people type it: below the working directory without that."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def leaderless_in(row: AuditRecord) -> int | None:
    """The last leader epoch without a leader when a dump saved the partition; None where its line does not tell."""
    state = saved_in(row)
    return None if state is None else state[1] - (state[0] is not None)


def saved_in(row: AuditRecord) -> tuple[int | None, int] | None:
    """Leader and leader epoch of the partition when a dump saved it; None where its line does not tell."""
    leader, epoch = row.before.get("leader"), row.before.get("leader_epoch")
    return (leader, epoch) if isinstance(epoch, int) and isinstance(leader, int | None) else None


def _logs(
    path: Path, manifest: Manifest, states: Mapping[TopicPartition, tuple[int | None, int]], *, checked: bool
) -> Iterable[SavedLog]:
    held: dict[TopicPartition, Parts] = {}
    for tail in manifest.tails:
        held[tail.address] = held.get(tail.address, frozenset()) | _with_holes(tail)
    for tail in manifest.tails:
        leader, epoch = states.get(tail.address, (None, None))
        log = ReplicaLog(
            tail.replica,
            tail.to_offset if tail.log_end is None else tail.log_end,
            tail.lineage[-1].epoch if tail.lineage else None,
            log_start=tail.log_start,
            high_watermark=tail.high_watermark,
            lineage=tail.lineage,
        )
        yield SavedLog(
            _shown(path),
            tail.address,
            tail.topic_id,
            log,
            _parts(tail, tail.gaps),
            manifest.plan_id,
            leader,
            epoch,
            _with_holes(tail) | _in_common(held[tail.address], log),
            checked=checked,
        )


def _in_common(parts: Parts, log: ReplicaLog) -> Parts:
    """Those of these records that a log held: an epoch's leader wrote the same to all that have it."""
    return frozenset(
        (epoch, max(first, one.start), min(until, one.end))
        for epoch, first, until in parts
        for one in (segments(log) or () if log.lineage is not None else ())
        if one.epoch == epoch and max(first, one.start) < min(until, one.end)
    )


def _with_holes(tail: SavedTail) -> Parts:
    return _parts(tail, [gap for gap in tail.gaps if gap.kind != HOLE])


def _parts(tail: SavedTail, gaps: Iterable[SavedGap]) -> Parts:
    """What its batches hold: the epochs' runs go over gaps."""
    without = [(gap.from_offset, tail.to_offset if gap.to_offset is None else gap.to_offset) for gap in gaps]
    return frozenset(
        (-1 if run.epoch is None else run.epoch, start, end)
        for run in tail.epochs
        for start, end in without_ranges(run.from_offset, run.to_offset, without)
    )
