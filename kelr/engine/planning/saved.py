"""What rescue files prove of a loss: records that the log of the elected replica lacked, and that a file holds.

Pure. A file proves what was in a log when it was read, and nothing of what else was lost: it gives a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from kelr.engine.logs import count_distinct, saved_whole
from kelr.model import Parts, PlannedElection, ReplicaLog, SavedLog, TopicPartition
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
    log: ReplicaLog
    """That of the replica that was elected, from before: it cannot grow where nobody leads."""
    log_start: int
    """Where the last of the logs that were read begins: what is below was deleted on purpose, or may have been."""


def before_planned(planned: PlannedElection, plan: str) -> BeforeElection | None:
    """By a planned election's evidence, in the plan of this id; None as for `before_recorded`."""
    evidence = planned.evidence
    logs = {
        one.replica: ReplicaLog(one.replica, one.log_end, one.last_epoch, log_start=one.log_start)
        for one in evidence.logs
        if one.log_end is not None
    }
    if evidence.leader is not None or planned.elect not in logs:
        return None
    start = max(one.log_start or 0 for one in logs.values())
    return BeforeElection(planned.address, planned.topic_id, evidence.leader_epoch, plan, logs[planned.elect], start)


def before_recorded(row: AuditRecord) -> BeforeElection | None:
    """By an election's line of the audit log, which may hold anything; None where somebody led, or the log of the
    replica that was to lead was not read."""
    topic_id, epoch = row.before.get("topic_id"), row.before.get("leader_epoch")
    logs = {log.replica: log for one in row.evidence if (log := _log(one)) is not None}
    if not isinstance(epoch, int) or row.before.get("leader", 0) is not None or row.wanted not in logs:
        return None
    return BeforeElection(
        TopicPartition(row.topic, row.partition or 0),
        topic_id if isinstance(topic_id, str) else None,
        epoch,
        row.plan_id,
        logs[row.wanted],
        max(one.log_start or 0 for one in logs.values()),
    )


def _log(one: Mapping[str, Any]) -> ReplicaLog | None:
    replica, end, last, start = (
        value if isinstance(value := one.get(name), int) else None
        for name in ("replica", "log_end", "last_epoch", "log_start")
    )
    return None if replica is None or end is None else ReplicaLog(replica, end, last, log_start=start)


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
    whole = {one.replica: one.file for one in fitting if _is_of_before(one, state) and saved_whole(one, state.log)}
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


def _lacked(parts: Parts, elected: ReplicaLog, start: int) -> Parts:
    """Of these records those that the elected log certainly lacked: behind its end, or of an epoch after its last."""
    end, last = elected.log_end, elected.last_epoch
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
    in_it = one.leader is None and one.leader_epoch == state.leader_epoch
    return in_it or bool(_lacked(one.parts | one.covered, state.log, state.log_start))
