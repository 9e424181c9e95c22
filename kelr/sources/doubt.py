"""Whether what was read of a dead broker's disk can be what that disk holds now.

A disk is read at one moment. If its broker has run since, the reading is stale, and nothing in a released Kafka tells
so outright; but what the controller records, and what other replicas hold, can contradict it. A log that was cut (a
machine that crashed) contradicts them in the same way. The two are told apart by what lies beside the log: a broker
writes each leader epoch that it leads in to its checkpoint at once, and saves its high watermark every few seconds.

Source: `Partition.makeLeader` and `LeaderEpochFileCache.assign` (the epoch is written before the first record is
taken), `PartitionChangeBuilder` (the leader epoch rises by one with each change of leader, to none as well),
`ReplicaManager.checkpointHighWatermarks`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kelr.engine.logs import agreement, count_distinct, missing
from kelr.engine.words import plural, time_of_day
from kelr.model import NotHeard, PartitionState, ReplicaLog, Unheard
from kelr.sources.snapshot_collection import CollectedLog

_CUT = "its log was cut"


def doubted(
    state: PartitionState, log: CollectedLog, others: Iterable[ReplicaLog], *, running: bool = False
) -> NotHeard | None:
    """Why a reading of a replica's disk is not believed; None where nothing contradicts it.

    Args:
        log: what was read of the disk.
        others: what was heard of the partition's other replicas.
        running: whether the broker ran while its disk was read.
    """
    held = log.answer
    if isinstance(held, NotHeard) or not log.of_disk:
        return None
    found = _contradiction(state, log, held, others, running=running)
    if found is None:
        return None
    why, otherwise = found
    read_at_ms = log.read_at_ms if held.read_at_ms is None else held.read_at_ms
    detail = (
        f"its disk, read at {time_of_day(read_at_ms)}, is not believed: its log ends at {held.log_end} there, {why}; if"
        f" the broker has run since, read its disk again; if it has not, {otherwise}"
    )
    return NotHeard(held.replica, Unheard.DOUBTFUL, detail, read_at_ms)


def _contradiction(
    state: PartitionState, log: CollectedLog, held: ReplicaLog, others: Iterable[ReplicaLog], *, running: bool
) -> tuple[str, str] | None:
    """What contradicts the reading, and what else can be than that it is stale; None where nothing contradicts it."""
    if running:
        return "and its broker ran while it was read", _CUT
    led = _last_epoch_led(state, held.replica)
    if led is not None and log.newest_epoch is not None:
        if log.newest_epoch < led:
            # A broker that has just died is elected, too, before its session expires; by Kafka 4.0 later as well.
            why = f"and it knows leader epochs up to {log.newest_epoch}, though its broker was elected in epoch {led}"
            return why, f"{_CUT}, or the broker was down already when it was elected"
        # Read after its last leadership began, and with its broker down: whatever it lacks was cut off.
        return None
    role = _role(state, held.replica)
    if role is None:
        return None
    for other in others:
        lacking, known = _committed_and_lacking(held, other)
        # It knew these to be committed, so it held them when that was saved: they were cut off.
        if lacking and (log.saved_high_watermark or 0) < known:
            return (
                f"and lacks {plural(lacking, 'offset')} that {other.replica} knows to be committed (high watermark"
                f" {known}), though {role}"
            ), _CUT
    return None


def _last_epoch_led(state: PartitionState, replica: int) -> int | None:
    """The newest leader epoch in which a broker led that was the last to lead; None where that is not known of it.

    The leader epoch rises by one when the leader is lost, and again only where somebody is elected or, without a
    leader, where replicas leave the assignment: then nothing is concluded here that is not on the safe side.
    """
    if state.leader is not None:
        return state.leader_epoch if state.leader == replica else None
    known = state.last_known_elr or ()
    return state.leader_epoch - 1 if known == (replica,) else None


def _role(state: PartitionState, replica: int) -> str | None:
    """By what the replica should hold all that was committed; None where nothing says so."""
    if replica in state.isr:
        return "it is in the ISR"
    if replica in (state.elr or ()):
        return "it is in the ELR"
    if replica == state.leader or (state.last_known_elr or ()) == (replica,):
        return "it is the last known leader"
    return None


def _committed_and_lacking(held: ReplicaLog, other: ReplicaLog) -> tuple[int, int]:
    """(offsets that the other one knows to be committed and this one lacks, the other's high watermark).

    None where this log has the newer epochs: an unclean election may have taken the other one's records back.
    """
    known = other.high_watermark
    if known is None or other.replica == held.replica or (held.last_epoch or -1) > (other.last_epoch or -1):
        return 0, 0
    if agreement(other, held) is None:
        return max(0, known - held.log_end), known
    return count_distinct(missing(other, held, below=known)), known
