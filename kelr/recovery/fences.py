"""What is looked at just before an election: whether everything that its plan stood on still holds."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.planning import differences
from kelr.model import PlannedElection
from kelr.model.plan import Applied, Difference, ElectionResult
from kelr.recovery.reading import Reading


def verdict(planned: PlannedElection, reading: Reading) -> Applied | None:
    """Why this election is not begun, from what was read just now; None where everything holds."""
    address = planned.address
    state = reading.states.get(address)
    if state is None:
        error = reading.errors.get(planned.topic, "UNKNOWN_TOPIC_OR_PARTITION")
        return result_of(planned, ElectionResult.REFUSED, text=f"the partition cannot be read: {error}", error=error)
    if planned.topic_id is not None and state.topic_id is not None and planned.topic_id != state.topic_id:
        text = "the topic was deleted since the plan, and another one made under its name"
        another = Difference("topic_id", planned.topic_id, state.topic_id, text)
        return result_of(planned, ElectionResult.REFUSED, text=text, found=(another,))
    snapshot = reading.snapshots[address]
    if state.leader == planned.elect and state.leader in snapshot.cluster.live:
        return result_of(
            planned,
            ElectionResult.NOT_NEEDED,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            text=f"broker {planned.elect} leads already",
        )
    found = differences(planned, snapshot, reading.decisions[address])
    if not found:
        return None
    return result_of(
        planned,
        ElectionResult.REFUSED,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        text=f"{CHANGED}: {found[0].text}",
        found=found,
    )


CHANGED = "what the plan stood on has changed"
"""Begins why an election was refused whose preconditions do not hold any more: the plan is to be made again."""


def result_of(
    planned: PlannedElection,
    ended: ElectionResult,
    *,
    leader: int | None = None,
    leader_epoch: int | None = None,
    error: str | None = None,
    text: str = "",
    found: Sequence[Difference] = (),
    asked: bool = False,
) -> Applied:
    """A result of this election."""
    return Applied(
        topic=planned.topic,
        partition=planned.partition,
        wanted=planned.elect,
        ended=ended,
        leader=leader,
        leader_epoch=leader_epoch,
        error=error,
        text=text,
        differences=tuple(found),
        asked=asked,
    )
