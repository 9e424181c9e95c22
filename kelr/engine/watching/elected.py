"""How a leader was elected between two looks, as far as their states can tell.

A record that carries a leader raises the leader epoch by one (PartitionRegistration.merge), also one that says that
there is none. So one step of the epoch is one election, or none; more steps hide what happened in between.
"""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum

from kelr.model import PartitionState


class Elected(StrEnum):
    """Out of what a new leader was elected."""

    FROM_ISR = "from-isr"
    """It was live and in the ISR at the look before: clean, unless it left the ISR in between."""
    FROM_ELR = "from-elr"
    """It was live and in the ELR at the look before: clean, unless it left the ELR in between."""
    RETURNED = "returned"
    """It was in the ISR or ELR, and its broker was away. Clean only if its shutdown was: with ELR on, an unclean
    restart takes it out of both, and Kafka 4.x then elects it all the same, as the last known leader."""
    LAST_KNOWN_LEADER = "last-known-leader"
    """In neither, and the last known leader: not clean."""
    UNCLEAN = "unclean"
    """In neither: an unclean election, by config or by an operator."""
    NOT_KNOWN = "not-known"
    """More happened between the looks than they tell."""


def elected_between(
    before: PartitionState, after: PartitionState, *, live: Container[int], elr_enabled: bool | None
) -> Elected | None:
    """How the leader of the second state was elected; None where no election shows.

    Args:
        live: the brokers that were live at the look before.
        elr_enabled: `Features.elr_enabled`; with False an ELR that is not told is empty.
    """
    if after.leader is None or after.topic_id != before.topic_id:
        return None
    steps = after.leader_epoch - before.leader_epoch
    if after.leader == before.leader and steps <= 1:
        return None  # a reassignment raises the epoch of a leader that stays
    if steps != 1:
        return Elected.NOT_KNOWN
    elr = () if before.elr is None and elr_enabled is False else before.elr
    if after.leader in before.isr or after.leader in (elr or ()):
        if after.leader not in live:
            return Elected.RETURNED
        return Elected.FROM_ISR if after.leader in before.isr else Elected.FROM_ELR
    if before.leader is not None or elr is None:
        return Elected.NOT_KNOWN  # only a leader adds to the ISR, and it may have done so in between
    return Elected.LAST_KNOWN_LEADER if after.leader in (before.last_known_elr or ()) else Elected.UNCLEAN
