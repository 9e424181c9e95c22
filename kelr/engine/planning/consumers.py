"""Judges what consumer groups have committed: whether a group would go on beyond the log's end, or past lost records.

A group that read records which an election gave up goes on where it had come to. Beyond the log's end its next fetch is
OFFSET_OUT_OF_RANGE and auto.offset.reset decides (skip, repeat or fail); where new records have come to that offset
meanwhile, it goes on behind them and never reads them, and nothing tells it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.logs import segments
from kelr.model import Check, Finding, Passed, ReplicaLog, TopicPartition
from kelr.model.afterwards import CommittedOffset, CommittedOffsets, Unread

_STOP_FIRST = "its members have to be stopped before it is reset"


def group_findings(
    address: TopicPartition, leader_log: ReplicaLog | None, committed: CommittedOffsets | Unread, *, kept: int
) -> Iterator[Finding]:
    """One finding for each group that goes wrong, else one that says that none does, or what could not be read.

    Args:
        kept: the elected replica's high watermark from before its election. Consumers get what is committed, and below
            this the elected log holds all of that: there no group has read what is gone. (Some clients commit the same
            leader epoch always; this tells most of them from groups that went wrong.)
    """
    if leader_log is None:
        yield _finding(address, Passed.UNKNOWN, "the log's end is not known, so that no offset can be held against it")
        return
    if isinstance(committed, Unread):
        yield _unread(address, "consumer groups could not be read", committed)
        return
    offsets = committed.offsets.get(address, ())
    wrong = [finding for one in offsets for finding in _judged(address, leader_log, one, kept)]
    yield from wrong
    unread = list(_silent(address, committed))
    yield from unread
    if not wrong and not unread:
        text = f"no consumer group has committed here, of {committed.groups} asked"
        if offsets:
            farthest = max(offsets, key=lambda one: one.offset)
            text = (
                f"{len(offsets)} of {committed.groups} groups have committed here, none beyond the log's end"
                f" {leader_log.log_end}; {farthest.group} is the farthest, at {farthest.offset}"
            )
        yield _finding(address, Passed.YES, text)


def _judged(address: TopicPartition, log: ReplicaLog, one: CommittedOffset, kept: int) -> Iterator[Finding]:
    lost_from = _went_wrong_at(log, one, kept)
    if one.offset > log.log_end:
        text = (
            f"group {one.group} has committed {one.offset}, beyond the log's end {log.log_end}: it is sent to where"
            " auto.offset.reset says, or, once the log has grown, goes on past records that it never read;"
            f" {_STOP_FIRST}"
        )
        back = log.log_end if lost_from is None else lost_from
        if _holds_none_of_its_epoch(log, one):
            back, text = _sent_back(log, text, kept)
        yield _finding(address, Passed.NO, text, _reset(address, one.group, back))
        return
    if log.lineage is None and one.offset > kept:
        text = (
            f"group {one.group} has committed {one.offset}; whether what the log holds up to there is what it read is"
            " not known, since the log's leader epochs are not"
        )
        yield _finding(address, Passed.UNKNOWN, text, f"kelr log-info --lineage {address}")
        return
    if lost_from is not None:
        text = (
            f"group {one.group} has committed {one.offset}, of records of leader epoch {one.leader_epoch} that the log"
            f" holds no further than {lost_from}: what was written since from {lost_from} to {one.offset} it never"
            f" read; {_STOP_FIRST}"
        )
        back = lost_from
        if _holds_none_of_its_epoch(log, one):
            back, text = _sent_back(log, text, kept)
        yield _finding(address, Passed.NO, text, _reset(address, one.group, back))
        return
    if one.offset > kept and _is_of_older_epochs(log, one):
        text = (
            f"group {one.group} has committed {one.offset}, of leader epoch {one.leader_epoch}, of which the log holds"
            f" no record: whether it has read what the log holds from {kept} to {one.offset} is not known; to read it"
            f" again, {_STOP_FIRST}"
        )
        yield _finding(address, Passed.UNKNOWN, text, _reset(address, one.group, max(kept, log.log_start or 0)))


def _sent_back(log: ReplicaLog, text: str, kept: int) -> tuple[int, str]:
    """Where a group goes back to of which nothing tells where what it read parts from the log: epochs tell it only to
    one whose epoch the log holds."""
    back = min(max(kept, log.log_start or 0), log.log_end)
    return back, f"{text}; whether it has read what the log holds from {back} on is not known, so that it is sent there"


def _holds_none_of_its_epoch(log: ReplicaLog, one: CommittedOffset) -> bool:
    """Also where one of the two is not known."""
    return log.lineage is None or all(part.epoch != one.leader_epoch for part in segments(log) or ())


def _is_of_older_epochs(log: ReplicaLog, one: CommittedOffset) -> bool:
    """Whether the log holds none of the epoch that a group has read last, and what it holds below the committed offset
    is older: a leader wrote it that the group's later one did not follow, or nothing was written in that epoch."""
    if one.leader_epoch is None or not _holds_none_of_its_epoch(log, one):
        return False
    older = [part for part in segments(log) or () if part.epoch < one.leader_epoch]
    return bool(older) and older[-1].end >= one.offset


def _went_wrong_at(log: ReplicaLog, one: CommittedOffset, kept: int) -> int | None:
    """The offset below the committed one from which on the group read records that this log does not hold; None where
    it holds them all, or where that is not known."""
    parts = segments(log)
    if one.leader_epoch is None or not parts or log.lineage is None:
        return None
    older = [part for part in parts if part.epoch <= one.leader_epoch]
    end = older[-1].end if older else parts[0].start
    return end if kept <= end < one.offset else None


def _silent(address: TopicPartition, committed: CommittedOffsets) -> Iterator[Finding]:
    if committed.not_listed is not None:
        yield _unread(address, "there may be groups that were not seen", committed.not_listed)
    if not committed.unread:
        return
    by_reason: dict[Unread, list[str]] = {}
    for group, unread in sorted(committed.unread.items()):
        by_reason.setdefault(unread, []).append(group)
    for unread, groups in by_reason.items():
        yield _unread(address, f"what {_named(groups)} committed could not be read", unread)


def _named(groups: list[str]) -> str:
    return f"group {groups[0]}" if len(groups) == 1 else f"groups {', '.join(groups)}"


def _unread(address: TopicPartition, what: str, unread: Unread) -> Finding:
    lacking = f" (needs {unread.acl})" if unread.acl else ""
    return _finding(address, Passed.NOT_YET if unread.passing else Passed.UNKNOWN, f"{what}: {unread.error}{lacking}")


def _reset(address: TopicPartition, group: str, offset: int) -> str:
    """Sends the group back; Kafka's tool does so only while no member of the group is active."""
    return (
        f"kafka-consumer-groups.sh {STOCK_CONNECTION} --group {shlex.quote(group)}"
        f" --topic {address.topic}:{address.partition} --reset-offsets --to-offset {offset} --execute"
    )


def _finding(address: TopicPartition, passed: Passed, text: str, command: str = "") -> Finding:
    return Finding(address.topic, address.partition, Check.GROUPS, passed, text, command)
