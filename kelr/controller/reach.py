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


class ControllerFailedError(Exception):
    """Kafka's controller runs into an error of its own: nothing is written, it resigns, and the next one starts from
    the same records."""


FAILED = "UNKNOWN_SERVER_ERROR"
"""What a request is answered at which the controller failed."""


def refused(state: ControllerState, error: str) -> Handled:
    """The event changes nothing; the answer is this error."""
    return Handled(state, error=error)


def unknown(state: ControllerState, address: TopicPartition) -> str:
    """The error of a request that names its topic by id, where there is no such partition."""
    return "UNKNOWN_TOPIC_OR_PARTITION" if state.of_topic(address.topic) else "UNKNOWN_TOPIC_ID"


def reach(
    state: ControllerState,
    addresses: Iterable[TopicPartition],
    handler: Handler,
    again: Iterable[TopicPartition] = (),
    second: Handler | None = None,
) -> Handled:
    """Let an event reach partitions.

    Args:
        again: partitions that the controller looks at once more, before the first record took effect. One that is in
            both lists gets two records, made from the same state.
        second: what looks at those; None for the same handler.

    Raises:
        ControllerFailedError: at one of the partitions.
    """
    changes: list[Change] = []
    latest: dict[TopicPartition, PartitionState] = {}
    for address in addresses:
        change = handler(state.partitions[address], state.around(state.partitions[address]))
        if change.written:
            changes.append(checked(change))
            latest[address] = change.after
    for address in again:
        change = (second or handler)(state.partitions[address], state.around(state.partitions[address]))
        if change.written:
            changes.append(_on_top(checked(change), latest.get(address, change.before)))
            latest[address] = changes[-1].after
    return Handled(written(state, changes), tuple(changes))


def checked(change: Change) -> Change:
    """The change, if Kafka's controller gets to make it.

    To try a live broker it asks for the log directory of that replica; one that is no replica, but that ELR or
    LastKnownElr still names, is an error (LeaderAcceptor, PartitionRegistration.directory).

    Raises:
        ControllerFailedError: the run would elect such a broker.
    """
    elected, ballot = change.elected.leader, change.ballot
    if elected in ballot.electable and elected not in change.before.replicas and not ballot.rules.kip966:
        raise ControllerFailedError
    return change


def written(state: ControllerState, changes: Iterable[Change]) -> ControllerState:
    """The state with the records of some changes in it, in their order."""
    index, partitions = state.elr_index, []
    for change in changes:
        after = change.after
        if after.offline_replicas:
            # A replica that comes back some day gets another directory.
            kept = tuple(replica for replica in after.offline_replicas if replica in after.replicas)
            after = replace(after, offline_replicas=kept)
        partitions.append(after)
        if index.stale:
            gone = tuple(broker for broker in change.before.elr or () if broker not in (after.elr or ()))
            index = index.with_gone(after.address, gone)
    return replace(state.with_partitions(partitions), elr_index=index)


def _on_top(change: Change, current: PartitionState) -> Change:
    """A record, made from the state before another one, as it is merged into what that one left.

    It has the fields that it changes (PartitionRegistration.merge); one that names a leader names it also where it
    stays the same, and one of an unclean election has the ISR in any case.
    """
    before, after = change.before, change.after
    changed = {name: getattr(after, name) for name in _FIELDS if getattr(after, name) != getattr(before, name)}
    names_leader = after.leader_epoch > before.leader_epoch
    if names_leader:
        changed["leader"] = after.leader
        changed["leader_epoch"] = current.leader_epoch + 1
    if change.elected.unclean and after.leader != before.leader:
        changed["isr"] = after.isr
    if current.partition_epoch is not None:
        changed["partition_epoch"] = current.partition_epoch + 1
    return replace(change, before=current, after=replace(current, **changed))


_FIELDS = ("replicas", "isr", "elr", "last_known_elr", "adding", "removing", "recovering")
