"""Rescue files that kelr knows of, as evidence of what elections lost: those that the audit log names, and others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kelr.engine.logs import without_ranges
from kelr.engine.planning.saved import SavedLog
from kelr.errors import BadInputError
from kelr.files import FILES, Files
from kelr.model import EpochEnd, ReplicaLog, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.rescue.archive import read_head
from kelr.rescue.manifest import Manifest, SavedTail

DUMP = "rescue dump"
"""The command in the audit line of a dump."""
LEADERLESS_SINCE = "leaderless_since"
"""In the audit line of a dump: the partition's leader epoch, where nobody led it then."""


def known_files(
    rows: Iterable[AuditRecord], others: Iterable[Path] = (), *, cluster_id: str | None, files: Files = FILES
) -> tuple[Mapping[TopicPartition, Sequence[SavedLog]], list[str]]:
    """What the rescue files of a cluster hold, by their manifests; and, in words, which of them cannot be read.

    Args:
        rows: lines of the audit log.
        others: files that were found.
    """
    paths = dict.fromkeys(path.absolute() for path in others)
    epochs: dict[str, dict[TopicPartition, int]] = {}
    named: dict[str, str] = {}
    for row in rows if cluster_id is not None else ():
        for one in row.evidence if row.what is AuditWhat.RESCUE and row.partition is not None else ():
            file, sha256, epoch = str(one.get("file")), str(one.get("sha256")), row.before.get(LEADERLESS_SINCE)
            if not Path(file).is_absolute():
                continue  # of an older kelr
            paths[Path(file)], named[file] = None, sha256
            if isinstance(epoch, int):
                epochs.setdefault(sha256, {})[TopicPartition(row.topic, row.partition or 0)] = epoch
    found: dict[TopicPartition, list[SavedLog]] = {}
    unread: list[str] = []
    read: set[str] = set()
    for path in paths:
        try:
            manifest, sha256 = read_head(path, files)
        except BadInputError:
            unread.append(str(path))
            continue
        if manifest.cluster_id == cluster_id and sha256 not in read:
            read.add(sha256)
            for log in _logs(path, manifest, epochs.get(sha256, {})):
                found.setdefault(log.address, []).append(log)
    # One that was moved is read where it is now.
    lacking = [path for path in unread if named.get(path) not in read]
    return found, [f"{path} cannot be read: what it holds counts for nothing" for path in lacking]


def _logs(path: Path, manifest: Manifest, epochs: Mapping[TopicPartition, int]) -> Iterable[SavedLog]:
    for tail in manifest.tails:
        log = ReplicaLog(
            tail.replica,
            tail.to_offset if tail.log_end is None else tail.log_end,
            log_start=tail.log_start,
            high_watermark=tail.high_watermark,
            lineage=None
            if tail.lineage is None
            else tuple(EpochEnd(one.epoch, one.end_offset) for one in tail.lineage),
        )
        yield SavedLog(
            path.name,
            tail.address,
            tail.topic_id,
            log,
            frozenset(_parts(tail)),
            manifest.plan_id,
            epochs.get(tail.address),
        )


def _parts(tail: SavedTail) -> Iterable[tuple[int, int, int]]:
    """What its batches hold: the epochs' runs go over gaps."""
    gaps = [(gap.from_offset, tail.to_offset if gap.to_offset is None else gap.to_offset) for gap in tail.gaps]
    for run in tail.epochs:
        for start, end in without_ranges(run.from_offset, run.to_offset, gaps):
            yield -1 if run.epoch is None else run.epoch, start, end
