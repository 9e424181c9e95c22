"""How a partition stands, as flags that can be counted, and which of them are worse than others."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntFlag

from kelr.controller import ControllerState
from kelr.model import PartitionState


class Standing(IntFlag):
    """What holds for a partition at one moment, or has happened on the way to it; of two sets of flags the one with the
    higher number is worse."""

    MAY_LOSE = 1 << 9
    """A replica was elected that nothing proves to hold all that was committed: uncleanly, as last known leader, or
    with ELR off after an unclean restart."""
    UNPROVEN = 1 << 8
    """Nobody leads, and every replica that held all that was committed was killed or down before: whether their disks
    still hold it, nobody can tell. One that comes back so leaves the ELR."""
    LEADERLESS = 1 << 7
    """Nobody leads, or a broker that is not live."""
    ELR_ONLY = 1 << 6
    """Nobody leads, the ISR is empty, and the ELR is not: only members of the ELR may lead cleanly."""
    UNDER_MIN_ISR = 1 << 5
    """It is led, and fewer are in sync than its leader's min ISR: acks=all is refused."""
    MIN_ISR_UNKNOWN = 1 << 4
    """It is led, not all replicas are in sync, and min.insync.replicas is not known."""
    LAST_REPLICA = 1 << 3
    """It is led, and of several replicas one alone is in sync: the next failure stops it."""
    LEADER_MOVES = 1 << 2
    """Another live broker leads than before."""
    CHANGED = 1 << 1
    """Leader, ISR, ELR or LastKnownELR are others than before."""
    DOUBTFUL = 1
    """Something that is not known would decide (`Fate.doubts`)."""


NOW = (
    Standing.LEADERLESS
    | Standing.ELR_ONLY
    | Standing.UNPROVEN
    | Standing.UNDER_MIN_ISR
    | Standing.MIN_ISR_UNKNOWN
    | Standing.LAST_REPLICA
)
"""The flags that tell of one moment alone."""
OR_WORSE = {
    Standing.UNDER_MIN_ISR: Standing.UNDER_MIN_ISR | Standing.LEADERLESS,
    Standing.MIN_ISR_UNKNOWN: Standing.MIN_ISR_UNKNOWN | Standing.UNDER_MIN_ISR | Standing.LEADERLESS,
    Standing.LAST_REPLICA: Standing.LAST_REPLICA | Standing.LEADERLESS,
}
"""Flags that go away as a partition comes off worse, each with what is worse: before and after can be compared only by
how many partitions have one of them."""
UNCERTAIN = Standing.MIN_ISR_UNKNOWN | Standing.DOUBTFUL
"""The flags that tell of what is not known."""


def standing_of(
    state: ControllerState, partition: PartitionState, clean: Collection[int], added_again: Collection[int] = ()
) -> Standing:
    """How a partition stands.

    Args:
        clean: the brokers that are down after a clean shutdown; of others that are down nothing is known.
        added_again: the members of the ELR whose place there proved nothing before (`is_added_again`).
    """
    if partition.leader is None or not state.active(partition.leader):
        return _without_leader(state, partition, clean, added_again)
    found = Standing(0)
    in_sync = [replica for replica in partition.isr if state.active(replica)]
    if partition.topic not in state.min_isr_unknown:
        if len(partition.isr) < state.leader_min_isr(partition):
            found |= Standing.UNDER_MIN_ISR
    elif len(partition.isr) < len(partition.replicas):
        found |= Standing.MIN_ISR_UNKNOWN
    if len(in_sync) == 1 and len(partition.replicas) > 1:
        found |= Standing.LAST_REPLICA
    return found


def _without_leader(
    state: ControllerState, partition: PartitionState, clean: Collection[int], added_again: Collection[int]
) -> Standing:
    found = Standing.LEADERLESS
    if not partition.isr and partition.elr:
        found |= Standing.ELR_ONLY
    lost = partition.offline_replicas or ()
    in_elr = [replica for replica in partition.elr or () if replica not in added_again]
    holders = [replica for replica in (*partition.isr, *in_elr) if replica not in lost]
    if not any(state.active(replica) or replica in clean for replica in holders):
        found |= Standing.UNPROVEN
    return found
