"""How an event reaches partitions, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller.change import Change, Circumstances
from kelr.controller.state import ControllerState
from kelr.model import PartitionState, TopicPartition

NONE = "NONE"
"""Kafka's name for "no error"."""

Handler = Callable[[PartitionState, Circumstances], Change]


@dataclass(frozen=True, slots=True)
class Handled:
    """What an event made of the state, and what the controller answered."""

    state: ControllerState
    changes: tuple[Change, ...] = ()
    """The runs on partitions that wrote a record, in the order in which the controller did them."""
    error: str = NONE
    """Kafka's name of the error that refused the whole event."""
    answers: Mapping[TopicPartition, str] = field(default_factory=dict)
    """For requests that answer by partition: Kafka's name of each error."""


def refused(state: ControllerState, error: str) -> Handled:
    """The event changes nothing; the answer is this error."""
    return Handled(state, error=error)


def reach(
    state: ControllerState, addresses: Iterable[TopicPartition], handler: Handler, again: Iterable[TopicPartition] = ()
) -> Handled:
    """Let an event reach partitions.

    Args:
        again: partitions that the controller looks at once more, before the first record took effect. One that is in
            both lists gets two records with the same contents: its epochs rise twice.
    """
    before, changes = state, []
    for address in addresses:
        change = handler(before.partitions[address], before.around(before.partitions[address]))
        if change.written:
            changes.append(change)
            state = written(state, change)
    for address in again:
        change = handler(before.partitions[address], before.around(before.partitions[address]))
        if change.written:
            change = _on_top(change, state.partitions[address])
            changes.append(change)
            state = written(state, change)
    return Handled(state, tuple(changes))


def written(state: ControllerState, change: Change) -> ControllerState:
    """The state with a change's record in it."""
    address = change.after.address
    back = {(address, broker) for broker in change.after.elr or ()}
    return replace(state.with_partition(change.after), cleared_elr=state.cleared_elr - back)


def _on_top(change: Change, current: PartitionState) -> Change:
    """The same record written on top of a state that another record has already changed."""
    bump = change.after.leader_epoch - change.before.leader_epoch
    epoch = None if current.partition_epoch is None else current.partition_epoch + 1
    after = replace(change.after, leader_epoch=current.leader_epoch + bump, partition_epoch=epoch)
    return replace(change, before=current, after=after)
