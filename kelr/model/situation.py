"""Where a partition stands, in one word."""

from __future__ import annotations

from enum import StrEnum


class Situation(StrEnum):
    """Where a partition stands; exactly one holds. Ordered from fine to worst."""

    HEALTHY = "healthy"
    UNDER_MIN_ISR = "under-min-isr"
    """It has a leader, but fewer in sync than its min ISR: acks=all is refused and the HW stands still."""
    LEADER_NOT_LIVE = "leader-not-live"
    """The controller records a leader whose broker is fenced or gone: its session has not expired yet, or a Kafka 4.0
    elected a dead last known leader (KAFKA-19522)."""
    WAITING_FOR_ISR = "waiting-for-isr"
    """No leader; a member is left in the ISR and none of them is live. With ELR off this is the only clean wait,
    unless an ELR is left from when it was on."""
    WAITING_FOR_ELR = "waiting-for-elr"
    """No leader, the ISR is empty, the ELR is not, and none of its members is live."""
    WAITING_FOR_LAST_KNOWN_LEADER = "waiting-for-last-known-leader"
    """No leader, ISR and ELR are empty; Kafka elects the last known leader the moment that it is back."""
    NEEDS_UNCLEAN_RECOVERY = "needs-unclean-recovery"
    """No leader, and nobody whose return Kafka would elect: only an unclean election brings it back."""
    NO_LIVE_REPLICA = "no-live-replica"
    """No leader and no replica on a live broker: nothing can be elected at all."""
    LEADER_PENDING = "leader-pending"
    """No leader, although an election would find one: the controller will elect it at its next event here."""
    UNKNOWN = "unknown"
    """The source cannot tell: ELR or min ISR would decide, and they are not known."""


WORST_FIRST = (
    Situation.NO_LIVE_REPLICA,
    Situation.NEEDS_UNCLEAN_RECOVERY,
    Situation.WAITING_FOR_LAST_KNOWN_LEADER,
    Situation.WAITING_FOR_ELR,
    Situation.WAITING_FOR_ISR,
    Situation.LEADER_NOT_LIVE,
    Situation.LEADER_PENDING,
    Situation.UNDER_MIN_ISR,
    Situation.UNKNOWN,
    Situation.HEALTHY,
)
"""All of them, in the order in which a person on call wants to see them."""
