"""What rescue files prove of a loss: records that the log of the elected replica lacked, and that a file holds.

Pure. A file proves what was in a log when it was read, and nothing of what else was lost: it gives a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kelr.engine.logs import count_distinct
from kelr.model import LogEvidence, Parts, PlannedElection, SavedLog, TopicPartition
from kelr.model.audit import AuditRecord

NO_FILES: Mapping[TopicPartition, Sequence[SavedLog]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BeforeElection:
    """The state without a leader that an election came out of, as far as it tells what that lost."""

    address: TopicPartition
    topic_id: str | None
    leader_epoch: int
    """From before."""
    plan_id: str | None
    log: LogEvidence
    """That of the replica that was elected, from before: it cannot grow where nobody leads."""
    log_start: int
    """Where the last of the logs that were read begins: what is below was deleted on purpose, or may have been."""


def before(one: PlannedElection, plan_id: str | None) -> BeforeElection | None:
    """By a plan; None where somebody led, or the log of the replica that is to lead was not read."""
    evidence = one.evidence
    epoch = None if evidence.leader is not None else evidence.leader_epoch
    return _before(one.address, one.elect, evidence.logs, topic_id=one.topic_id, leader_epoch=epoch, plan_id=plan_id)


def before_recorded(row: AuditRecord) -> BeforeElection | None:
    """The same by an election's line of the audit log, which may hold anything."""
    topic_id, epoch = row.before.get("topic_id"), row.before.get("leader_epoch")
    leaderless = isinstance(epoch, int) and row.before.get("leader", 0) is None
    return _before(
        TopicPartition(row.topic, row.partition or 0),
        row.wanted,
        [_log(one) for one in row.evidence if isinstance(one.get("replica"), int)],
        topic_id=topic_id if isinstance(topic_id, str) else None,
        leader_epoch=epoch if leaderless else None,
        plan_id=row.plan_id,
    )


def _before(
    at: TopicPartition,
    replica: int | None,
    logs: Iterable[LogEvidence],
    *,
    topic_id: str | None,
    leader_epoch: int | None,
    plan_id: str | None,
) -> BeforeElection | None:
    known = {one.replica: one for one in logs if one.log_end is not None}
    if leader_epoch is None or replica not in known:
        return None
    start = max(one.log_start or 0 for one in known.values())
    return BeforeElection(at, topic_id, leader_epoch, plan_id, known[replica], start)


def _log(one: Mapping[str, Any]) -> LogEvidence:
    def number(name: str) -> int | None:
        value = one.get(name)
        return value if isinstance(value, int) else None

    return LogEvidence(one["replica"], number("log_end"), number("last_epoch"), log_start=number("log_start"))


@dataclass(frozen=True, slots=True)
class SavedOfLoss:
    """What rescue files hold of what one election lost."""

    offsets: int = 0
    """So many that were lost are in `files`, at least."""
    committed: int = 0
    """Those of them that are known to have been committed."""
    files: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    """Those of them of which the manifest alone was read."""
    whole: Mapping[int, str] = field(default_factory=dict)
    """Replicas, and the file, of whose logs everything is in it that the elected one lacked when they were read."""


NOTHING_SAVED = SavedOfLoss()


def saved_of(state: BeforeElection | None, saved: Sequence[SavedLog]) -> SavedOfLoss:
    """What these files hold of what an election lost; nothing where they are not about the state that it came out of,
    or nothing tells where the elected log ended."""
    fitting = [] if state is None else [one for one in saved if _fits(one, state)]
    if state is None or not fitting:
        return NOTHING_SAVED
    start = max(state.log_start, *(one.log.log_start or 0 for one in fitting))
    lacked = [(one, _lacked(one.parts, state.log, start)) for one in fitting]
    committed = [part for one, parts in lacked for part in _below(parts, one.log.high_watermark or 0)]
    whole = {one.replica: one.file for one in fitting if _is_of_before(one, state) and _is_whole(one, state.log)}
    files = {*whole.values(), *(one.file for one, parts in lacked if parts)}
    many = count_distinct(part for _, parts in lacked for part in parts)
    unchecked = {one.file for one in fitting if one.file in files and not one.checked}
    return SavedOfLoss(many, count_distinct(committed), tuple(sorted(files)), tuple(sorted(unchecked)), whole)


def _fits(one: SavedLog, state: BeforeElection) -> bool:
    """Whether it was saved for this election, in the very state that it came out of, or right after it, from a log of
    before it."""
    ids = {one.topic_id, state.topic_id}
    same_topic = len(ids) == 1 and None not in ids
    for_it = state.plan_id is not None and one.plan_id == state.plan_id and (same_topic or None in ids)
    # Nobody led yet, or whom the election elected did.
    in_it = same_topic and one.leader_epoch == state.leader_epoch + (one.leader is not None)
    epochs = [*(epoch for epoch, _, _ in one.parts), *(entry.epoch for entry in one.log.lineage or ())]
    fits = all(epoch <= state.leader_epoch for epoch in epochs)
    return one.address == state.address and (for_it or in_it) and fits


def _lacked(parts: Parts, elected: LogEvidence, start: int) -> Parts:
    """Of these records those that the elected log certainly lacked: behind its end, or of an epoch after its last."""
    end, last = elected.log_end or 0, elected.last_epoch
    return frozenset(
        (epoch, from_offset, until)
        for epoch, first, until in parts
        for from_offset in [max(first, start, 0 if last is not None and epoch > last else end)]
        if until > from_offset
    )


def _below(parts: Parts, offset: int) -> Parts:
    return frozenset((epoch, first, min(until, offset)) for epoch, first, until in parts if first < offset)


def _is_of_before(one: SavedLog, state: BeforeElection) -> bool:
    """Whether the log was certainly read before the election: one that ends where the elected one does, and was read in
    another state than that without leader, may have truncated to it already."""
    elected = state.log
    in_it = one.leader is None and one.leader_epoch == state.leader_epoch
    return in_it or bool(_lacked(one.parts, elected, state.log_start))


def _is_whole(one: SavedLog, elected: LogEvidence) -> bool:
    """Whether it has all of a log from where that parts from the elected one: two logs that hold an epoch agree on
    everything before it."""
    log, last = one.log, elected.last_epoch
    begins, ends = log.log_start or 0, [entry.end_offset for entry in log.lineage or () if entry.epoch == last]
    parts_at = min(ends[0], elected.log_end or 0) if ends else begins
    at = max(parts_at, begins)
    for _, first, until in sorted(one.parts | one.covered, key=lambda part: part[1:]):
        if first > at:
            return False
        at = max(at, until)
    return at >= log.log_end
