"""Whether what ``kelr elect`` was asked for can be at all, held against the partitions before anybody is waited for."""

from __future__ import annotations

from kelr.commands.election_options import Wanted
from kelr.errors import UsageError
from kelr.recovery.gather import Gathered


def check_possible(wanted: Wanted, found: Gathered) -> None:
    """Refuse numbers that fit none of the partitions; where they fit some, the others are refused one by one.

    Raises:
        UsageError: no partition has as many replicas as there are to be heard, or the one that is to lead.
    """
    states = [*found.snapshot.partitions, *found.left_out]
    if not states:
        return
    wishes = [(state, wanted.wish_for(state.address)) for state in states]
    most = max(len(state.replicas) for state in states)
    asked = [wish.minimal_replicas for _, wish in wishes if wish.minimal_replicas is not None]
    if len(asked) == len(wishes) and all(number > most for number in asked):
        raise UsageError(
            f"as many as {min(asked)} replicas are to be heard, and no partition that was named has more than {most}",
            next_step=f"give --minimal-replicas (minimalReplicas in a file) {most} or less",
        )
    designated = [wish.desired_leader for _, wish in wishes if wish.desired_leader is not None]
    if len(designated) == len(wishes) and not any(wish.desired_leader in state.replicas for state, wish in wishes):
        first, wish = wishes[0]
        more = f", nor has any of the {len(wishes) - 1} others the one named for it" if len(wishes) > 1 else ""
        raise UsageError(
            f"{first.address} has no replica on broker {wish.desired_leader}: its replicas are"
            f" {', '.join(map(str, first.replicas))}{more}",
            next_step="name one of its replicas",
        )
