"""One partition's recovery under way: which replicas owe an answer, which have answered, and when it may elect.

Source: KIP-966, "Unclean Recovery Manager" (workflow, verification, failovers).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller.recovery.rules import LogInfo, Recovery
from kelr.controller.rules import RecoveryStrategy
from kelr.controller.state import Registration
from kelr.model import PartitionState, TopicPartition

DEFAULT_TIMEOUT_MS = 300_000
"""unclean.recovery.timeout.ms where nobody set one: 5 minutes (KIP-966, "Config changes")."""


@dataclass(frozen=True, slots=True)
class RecoveryLimits:
    """The manager's times and sizes."""

    window_ms: int = 5_000
    """How long aggressive gathers answers before it elects (KIP-966: a fixed 5 seconds)."""
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    """unclean.recovery.timeout.ms: how long balanced waits for the answers of live replicas that it does not need, and
    how old a round of asking gets before every missing answer is asked for again."""
    retry_ms: int = 1_000
    """How long after a failed or rejected answer the replica is asked again."""
    partitions_per_request: int = 2_000
    """The most partitions that one GetReplicaLogInfo may name."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What the manager knows of one replica's answer."""

    broker_epoch: int
    """The epoch of the registration that was asked: a new one voids whatever the old one said."""
    request: int | None = None
    """The last request that asked for it; None where the answer came unasked."""
    log: LogInfo | None = None
    """The verified answer."""
    retry_at_ms: int | None = None
    """When the replica is asked again, its answer being rejected or failed; None while it owes one, or gave it."""
    failed: bool = False
    """The replica could not be reached, or could not tell: nobody waits for it unless it is needed."""

    @property
    def outstanding(self) -> bool:
        """Whether a request is under way."""
        return self.log is None and self.retry_at_ms is None


@dataclass(frozen=True, slots=True)
class Manual:
    """What an operator asked for (ElectLeaders v3)."""

    strategy: RecoveryStrategy
    until_ms: int
    """When the request gives up."""


@dataclass(frozen=True, slots=True)
class Task:
    """The recovery of one partition."""

    address: TopicPartition
    leader_epoch: int
    """The partition's: answers of another one are stale."""
    window_from_ms: int | None = None
    """When aggressive began to gather answers (`window_begun`); None while another strategy is in force."""
    round_ms: int | None = None
    """When the present round of asking began; None while balanced waits for its quorum to be live."""
    inquiries: Mapping[int, Inquiry] = field(default_factory=dict)
    """By replica."""
    manual: tuple[Manual, ...] = ()
    """What operators asked for and were not answered yet, in the order in which they asked. The last one's strategy is
    in force; the step that ends the last of them answers them all."""

    @property
    def asked_for(self) -> RecoveryStrategy | None:
        """The strategy that an operator asked for; None where the topic's own counts."""
        return self.manual[-1].strategy if self.manual else None

    @property
    def heard(self) -> Mapping[int, LogInfo]:
        """The verified answers by replica."""
        return {replica: inquiry.log for replica, inquiry in self.inquiries.items() if inquiry.log is not None}

    @property
    def owing(self) -> tuple[int, ...]:
        """Replicas that owe an answer, sorted."""
        return tuple(sorted(replica for replica, inquiry in self.inquiries.items() if inquiry.outstanding))

    def asked(self, replica: int, broker_epoch: int, request: int) -> Task:
        """The task with a request under way to a replica; one that has failed before is still not waited for."""
        before = self.inquiries.get(replica)
        return self._with(replica, Inquiry(broker_epoch, request, failed=before is not None and before.failed))

    def heard_from(self, replica: int, broker_epoch: int, log: LogInfo) -> Task:
        """The task with a verified answer in it."""
        inquiry = self.inquiries.get(replica, Inquiry(broker_epoch))
        return self._with(replica, replace(inquiry, log=log, retry_at_ms=None, failed=False))

    def asked_again(self, replica: int, at_ms: int, *, failed: bool = False) -> Task:
        """The task once an answer was rejected or failed; a replica that has answered since is not asked again."""
        inquiry = self.inquiries[replica]
        if not inquiry.outstanding:
            return self
        return self._with(replica, replace(inquiry, retry_at_ms=at_ms, failed=inquiry.failed or failed))

    def _with(self, replica: int, inquiry: Inquiry) -> Task:
        return replace(self, inquiries={**self.inquiries, replica: inquiry})


def refreshed(task: Task, partition: PartitionState, brokers: Mapping[int, Registration]) -> Task:
    """The task without what no longer holds: answers of former incarnations, former replicas, former leader epochs.

    KIP-966: "the controller can reject the response because the broker epoch mismatches with the registration" holds
    as well for an answer that was right when it came.
    """
    if task.leader_epoch != partition.leader_epoch:
        return replace(task, leader_epoch=partition.leader_epoch, window_from_ms=None, inquiries={})
    lost = partition.offline_replicas or ()
    kept = {
        replica: inquiry
        for replica, inquiry in task.inquiries.items()
        if replica in partition.replicas
        and replica not in lost
        and replica in brokers
        and brokers[replica].epoch == inquiry.broker_epoch
    }
    if len(kept) == len(task.inquiries):
        return task
    after = replace(task, inquiries=kept)
    return replace(after, window_from_ms=None) if task.heard and not after.heard else after


def window_begun(task: Task, strategy: RecoveryStrategy | None, live: Collection[int], now_ms: int) -> Task:
    """The task with aggressive's window under way, or without one where another strategy is in force.

    It begins when aggressive begins to ask, however long the partition has had no leader, and anew when there is
    nothing left to choose from: all that was heard is void, or every live replica's answer failed. Then they are asked
    again, and the first to answer need not be the best. A new round alone does not begin it anew.

    Args:
        live: the replicas that may be elected.
    """
    if strategy is not RecoveryStrategy.AGGRESSIVE:
        return task if task.window_from_ms is None else replace(task, window_from_ms=None)
    all_failed = bool(live) and not any(replica in task.heard or replica in task.owing for replica in live)
    if task.window_from_ms is not None and not all_failed:
        return task
    return replace(task, window_from_ms=now_ms)


def round_begun(task: Task, now_ms: int, limits: RecoveryLimits) -> Task:
    """The task with a round under way: a first one, or another where the last one took too long.

    A new round asks everybody again whose answer is missing, as though nobody had been asked; verified answers stay,
    since a log does not change while there is no leader to follow.
    """
    if task.round_ms is None:
        return replace(task, round_ms=now_ms)
    if now_ms - task.round_ms < limits.timeout_ms:
        return task
    answered = {replica: inquiry for replica, inquiry in task.inquiries.items() if inquiry.log is not None}
    return replace(task, round_ms=now_ms, inquiries=answered)


def to_ask(task: Task, partition: PartitionState, brokers: Mapping[int, Registration], now_ms: int) -> tuple[int, ...]:
    """The replicas to ask now, in assignment order: all that have a broker and a log directory, fenced ones too."""
    lost = partition.offline_replicas or ()

    def due(replica: int) -> bool:
        inquiry = task.inquiries.get(replica)
        return inquiry is None or (inquiry.retry_at_ms is not None and inquiry.retry_at_ms <= now_ms)

    return tuple(
        replica for replica in partition.replicas if replica in brokers and replica not in lost and due(replica)
    )


def may_elect(
    task: Task,
    partition: PartitionState,
    electable: frozenset[int],
    recovery: Recovery,
    *,
    limits: RecoveryLimits,
    now_ms: int,
) -> bool:
    """Whether the election of `recovery.choice` waits for no better answer.

    Aggressive elects at the end of its window, or earlier where every replica has answered and none has a better log.
    Balanced elects when every other live replica has answered as well or failed to, or when the timeout has passed.
    """
    heard = task.heard
    others = [replica for replica in partition.replicas if replica not in heard]
    if recovery.strategy is RecoveryStrategy.AGGRESSIVE:
        unbeaten = recovery.choice is not None and all(
            log.rank <= heard[recovery.choice].rank for log in heard.values()
        )
        closed = task.window_from_ms is not None and now_ms - task.window_from_ms >= limits.window_ms
        return closed or (not others and unbeaten)
    failed = {replica for replica, inquiry in task.inquiries.items() if inquiry.failed}
    timed_out = task.round_ms is not None and now_ms - task.round_ms >= limits.timeout_ms
    return timed_out or all(replica in failed for replica in others if replica in electable)
