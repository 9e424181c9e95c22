"""What is still known of the replicas' logs once something is imagined to have happened to them.

A log was heard at the snapshot's time. It is kept as long as the imagined events leave it as it was; where they may cut
it, it counts as not heard, with the reason in words. Nothing is invented: no record is produced or fetched meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kelr.controller import Change, ControllerState
from kelr.engine.logs import agreement, rank_logs
from kelr.model import (
    LOG_DIRECTORY,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicPartition,
)

Logs = Mapping[TopicPartition, tuple[LogAnswer, ...]]


def as_heard(snapshot: Snapshot) -> Logs:
    """The snapshot's answers with those taken out that are stale by its own leader epochs, which imagined elections
    will raise."""
    return {state.address: _not_stale(state, snapshot.logs[state.address]) for state in _asked(snapshot)}


def _asked(snapshot: Snapshot) -> Iterable[PartitionState]:
    return (state for state in snapshot.partitions if state.address in snapshot.logs)


def _not_stale(state: PartitionState, answers: Sequence[LogAnswer]) -> tuple[LogAnswer, ...]:
    known = rank_logs(state, answers)
    return tuple(known.heard.get(replica) or known.unheard[replica] for replica in state.replicas)


def returned(logs: Logs, broker: int, *, clean: bool) -> Logs:
    """The logs once a broker is back.

    After a clean shutdown its logs are what they were; after an unclean one they may have lost their tails, so that
    what was read before says nothing any more. But what was read of a disk while the broker was down is what it starts
    with: what that shutdown took is gone already. A log that was not heard for a reason of the broker's may be heard
    then; one that nobody asked for, or that may not be read, is as unknown as before. So is one whose directory failed:
    its return does not tell whether the records are back.
    """

    def back(answer: LogAnswer) -> LogAnswer:
        if isinstance(answer, LogUnavailable) and answer.reason is LogUnavailableReason.STORAGE_ERROR:
            return answer
        if isinstance(answer, ReplicaLog) and answer.source == LOG_DIRECTORY:
            return replace(answer, broker_epoch=None, source=f"{LOG_DIRECTORY}, then started", unclean_shutdown=None)
        if not clean:
            return _unknown(answer, "may have lost its tail in the unclean shutdown")
        if isinstance(answer, LogUnavailable):
            return (
                answer if answer.reason in _STILL_UNHEARD else _unknown(answer, "not read before its broker returned")
            )
        return replace(answer, broker_epoch=None)

    return _of_broker(logs, broker, back)


_STILL_UNHEARD = frozenset(
    {
        LogUnavailableReason.NOT_ASKED,
        LogUnavailableReason.NOT_AUTHORIZED,
        LogUnavailableReason.AUTHENTICATION_FAILED,
        LogUnavailableReason.UNSUPPORTED,
    }
)


def directory_lost(logs: Logs, broker: int) -> Logs:
    """The logs once a broker's log directory has failed."""
    return _of_broker(
        logs,
        broker,
        lambda answer: LogUnavailable(
            answer.replica, LogUnavailableReason.STORAGE_ERROR, "imagined: its directory failed"
        ),
    )


def _of_broker(logs: Logs, broker: int, become: Callable[[LogAnswer], LogAnswer]) -> Logs:
    return {
        address: tuple(become(answer) if answer.replica == broker else answer for answer in answers)
        for address, answers in logs.items()
    }


def _unknown(answer: LogAnswer, why: str) -> LogUnavailable:
    return LogUnavailable(answer.replica, LogUnavailableReason.NOT_ASKED, f"imagined: {why}")


def after_changes(logs: Logs, changes: Sequence[Change], state: ControllerState, arrived: int | None) -> Logs:
    """The logs once elections were held: who follows a new leader truncates to its log.

    Args:
        arrived: a broker that has just come back, and follows the leaders that there are.
    """
    result = dict(logs)
    led_anew = set()
    for change in changes:
        address, raised = change.after.address, change.after.leader_epoch - change.before.leader_epoch
        if raised and address in result:
            result[address] = tuple(_raised(answer, raised) for answer in result[address])
        if change.after.leader != change.before.leader:
            led_anew.add(address)
    for address in logs:
        partition = state.partitions[address]
        followers = _followers(partition, state)
        if address not in led_anew:
            followers = followers & {arrived}
        if followers:
            result[address] = _truncated(partition, result[address], followers)
    return result


def _raised(answer: LogAnswer, by: int) -> LogAnswer:
    """The answer with the leader epoch that its broker would know by then."""
    if isinstance(answer, LogUnavailable) or answer.current_leader_epoch is None:
        return answer
    return replace(answer, current_leader_epoch=answer.current_leader_epoch + by)


def _followers(partition: PartitionState, state: ControllerState) -> frozenset[int | None]:
    if partition.leader is None or not state.active(partition.leader):
        return frozenset()
    lost = partition.offline_replicas or ()
    others = (replica for replica in partition.replicas if replica != partition.leader and replica not in lost)
    return frozenset(replica for replica in others if state.active(replica))


def _truncated(
    partition: PartitionState, answers: Sequence[LogAnswer], followers: frozenset[int | None]
) -> tuple[LogAnswer, ...]:
    """Followers keep a log that the leader's own continues; another one is cut to where both agree, sooner or later."""
    leader = next((answer for answer in answers if answer.replica == partition.leader), None)
    why = f"cut to the log of broker {partition.leader} where they differ"
    return tuple(
        _unknown(answer, why)
        if answer.replica in followers and isinstance(answer, ReplicaLog) and not _continues(leader, answer)
        else answer
        for answer in answers
    )


def _continues(leader: LogAnswer | None, follower: ReplicaLog) -> bool:
    return follower.is_empty or (isinstance(leader, ReplicaLog) and agreement(follower, leader) == follower.log_end)
