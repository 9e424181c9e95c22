"""Unclean recovery of one partition: whether it is due, whose logs it needs, and whom it elects.

The one place that says so: the Unclean Recovery Manager elects by these functions, and the engine predicts with them.

Source: KIP-966, "Unclean recovery" and "Unclean Recovery Manager"; what the KIP leaves open is listed in
`docs/election-rules.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kelr.controller.change import Circumstances, change_partition
from kelr.controller.election import Election
from kelr.controller.rules import RecoveryStrategy
from kelr.model import PartitionState


@dataclass(frozen=True, slots=True)
class LogInfo:
    """What a replica tells of its log (PartitionLogInfo of GetReplicaLogInfo)."""

    last_epoch: int | None
    """Last written leader epoch; None for a log that never held a record."""
    log_end: int

    @property
    def rank(self) -> tuple[int, int]:
        """The better log has the higher rank: last written leader epoch first, then log end offset."""
        return (-1 if self.last_epoch is None else self.last_epoch, self.log_end)


class Standing(StrEnum):
    """Where the unclean recovery of a partition stands."""

    NOT_NEEDED = "not-needed"
    """It has a leader, or a replica is live that may lead cleanly; or the rules know no unclean recovery."""
    WAITS_FOR_MEMBER = "waits-for-member"
    """ISR or ELR has members, none of them live: they are waited for (balanced and none)."""
    WAITS_FOR_OPERATOR = "waits-for-operator"
    """ISR and ELR are empty, and the strategy is none."""
    WAITS_FOR_QUORUM = "waits-for-quorum"
    """Balanced: some member of the recovery quorum is not live, so that asking has not begun."""
    WAITS_FOR_LOGS = "waits-for-logs"
    """The replicas are asked; too few have answered."""
    READY = "ready"
    """Enough have answered to elect one of them."""

    @property
    def under_recovery(self) -> bool:
        """Whether KIP-966 counts the partition in unclean_recovery_partitions_count: also while balanced waits for
        members of LastKnownELR to be unfenced."""
        return self in {Standing.WAITS_FOR_QUORUM, Standing.WAITS_FOR_LOGS, Standing.READY}


@dataclass(frozen=True, slots=True)
class Recovery:
    """Where the unclean recovery of one partition stands, and why."""

    standing: Standing
    strategy: RecoveryStrategy | None
    quorum: tuple[int, ...] = ()
    """Replicas that must be live and heard before anybody is elected, in assignment order; for balanced only."""
    not_live: tuple[int, ...] = ()
    """Members of the quorum that are not live."""
    unheard: tuple[int, ...] = ()
    """Members of the quorum whose logs are not known."""
    choice: int | None = None
    """With `Standing.READY`: the live replica with the best log of those heard."""


def recovery_of(
    partition: PartitionState,
    around: Circumstances,
    heard: Mapping[int, LogInfo],
    *,
    asked_for: RecoveryStrategy | None = None,
) -> Recovery:
    """Where the unclean recovery of a partition stands.

    Args:
        heard: verified answers by replica (`kelr.controller.recovery.task`).
        asked_for: the strategy that an operator asked for (ElectLeaders v3), whatever the topic has.
    """
    strategy = asked_for or around.rules.recovery
    if partition.leader is not None or not around.rules.recovers:
        return Recovery(Standing.NOT_NEEDED, strategy)
    if not around.rules.elr:
        partition = replace(partition, elr=(), last_known_elr=())
    run = change_partition(partition, around, election=Election.ONLINE)
    if run.after.leader is not None:
        return Recovery(Standing.NOT_NEEDED, strategy)
    # A reassignment that the run completes may drop replicas.
    live = tuple(replica for replica in run.ballot.replicas if replica in around.electable)
    if strategy is RecoveryStrategy.AGGRESSIVE:
        return _with_choice(Recovery(Standing.WAITS_FOR_LOGS, strategy), live, heard)
    if asked_for is None and (partition.isr or partition.elr):
        return Recovery(Standing.WAITS_FOR_MEMBER, strategy)
    if strategy is RecoveryStrategy.NONE:
        return Recovery(Standing.WAITS_FOR_OPERATOR, strategy)
    return _balanced(partition, live, heard)


def recovery_quorum(partition: PartitionState, min_isr: int | None) -> tuple[int, ...]:
    """The replicas whose logs must be heard before the best of them is known to hold everything committed, in
    assignment order: those that were in sync at min ISR, or lost that standing by an unclean shutdown since (ISR, ELR
    and LastKnownELR).

    The quorum has min ISR members (Vanlightly, "MinISR recovery quorum"). Where fewer are recorded, the rest may be any
    other replica, so every replica is needed: released Kafka keeps the last known leader alone, and under the KIP's
    rules ELR may have been off, or min ISR raised. The same where one is recorded that is no replica any more.

    Args:
        min_isr: the one that the leader goes by (`leader_min_isr`); None where it is not known.
    """
    named, members = _named(partition)
    whole = min_isr is not None and len(members) >= min_isr and len(members) == len(named)
    return members if whole else partition.replicas


def best_log(replicas: Iterable[int], heard: Mapping[int, LogInfo]) -> int | None:
    """The replica with the best log of these, in assignment order where logs are equal; None where none was heard."""
    return max((replica for replica in replicas if replica in heard), key=lambda one: heard[one].rank, default=None)


def _named(partition: PartitionState) -> tuple[frozenset[int], tuple[int, ...]]:
    """ISR, ELR and LastKnownELR together, and those of them that are replicas, in assignment order."""
    named = frozenset({*partition.isr, *(partition.elr or ()), *(partition.last_known_elr or ())})
    return named, tuple(replica for replica in partition.replicas if replica in named)


def _balanced(partition: PartitionState, live: tuple[int, ...], heard: Mapping[int, LogInfo]) -> Recovery:
    """Balanced waits for whoever is recorded, however few they are. Where that is nobody, or somebody who is no replica
    and can never answer, the KIP is silent: every replica is waited for."""
    named, members = _named(partition)
    quorum = members if members and len(members) == len(named) else partition.replicas
    not_live = tuple(replica for replica in quorum if replica not in live)
    unheard = tuple(replica for replica in quorum if replica not in heard)
    standing = Standing.WAITS_FOR_QUORUM if not_live else Standing.WAITS_FOR_LOGS
    recovery = Recovery(standing, RecoveryStrategy.BALANCED, quorum, not_live, unheard)
    return recovery if not_live or unheard else _with_choice(recovery, live, heard)


def _with_choice(recovery: Recovery, live: tuple[int, ...], heard: Mapping[int, LogInfo]) -> Recovery:
    """The recovery with the best log of the live replicas, where one of them was heard."""
    choice = best_log(live, heard)
    return recovery if choice is None else replace(recovery, standing=Standing.READY, choice=choice)
