"""What became of a partition, in words."""

from __future__ import annotations

from collections.abc import Iterator

from kelr.engine.loss_words import cost_in_words
from kelr.engine.words import ids
from kelr.model import ElectedBy, Grade, Loss, PartitionState

NOTHING = "nothing changes here"
"""Said of a partition that an assumption does not touch."""
NO_RECORD = "no record of the partition is written"
"""Said of a partition that the controller leaves as it is, while something around it changes."""

_BY = {
    ElectedBy.ISR: " from the ISR",
    ElectedBy.ELR: " from the ELR",
    ElectedBy.LAST_KNOWN_LEADER: " as last known leader",
    ElectedBy.UNCLEAN: " uncleanly",
    ElectedBy.LONGEST_LOG: " by its log",
}
_SETS = (("replicas", "replicas"), ("isr", "ISR"), ("elr", "ELR"), ("last_known_elr", "LastKnownELR"))


def change_in_words(
    before: PartitionState,
    after: PartitionState,
    *,
    elected_by: ElectedBy | None = None,
    loss: Loss | None = None,
    held: str = "",
) -> str:
    """``broker 3 is elected from the ELR, leader epoch 8 -> 9, ISR [] -> [3]; nothing committed is lost``.

    Args:
        held: what another replica's log holds, where the loss cannot be counted.
    """
    parts = [*_leader(before, after, elected_by), *_sets(before, after)]
    if not parts:
        return NOTHING
    cost = f"; {_cost(loss)}" if loss is not None else ""
    truncates = f"; {held} and truncates to it" if held else ""
    return f"{', '.join(parts)}{cost}{truncates}"


def _leader(before: PartitionState, after: PartitionState, elected_by: ElectedBy | None) -> Iterator[str]:
    if after.leader is None and before.leader is not None:
        yield f"nobody leads any more (it was broker {before.leader})"
    elif after.leader is not None and (after.leader != before.leader or elected_by is not None):
        again = " again" if after.leader == before.leader else ""
        yield f"broker {after.leader} is elected{again}{_BY.get(elected_by, '') if elected_by else ''}"
    if after.leader_epoch != before.leader_epoch:
        yield f"leader epoch {before.leader_epoch} -> {after.leader_epoch}"


def _sets(before: PartitionState, after: PartitionState) -> Iterator[str]:
    for name, shown in _SETS:
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            yield f"{shown} {ids(old)} -> {ids(new)}"


def _cost(loss: Loss) -> str:
    return "nothing committed is lost" if loss.grade is Grade.PROVEN_NONE else f"it {cost_in_words(loss)}"
