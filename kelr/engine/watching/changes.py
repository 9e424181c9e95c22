"""What changed between two looks."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from kelr.engine.watching.elected import Elected, elected_between
from kelr.engine.watching.sight import Sight, Watched
from kelr.model import BrokerStatus, TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerChange:
    """A broker's status; None before: it was not listed so far."""

    broker: int
    before: BrokerStatus | None
    after: BrokerStatus | None


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A partition's state; None before: it was in no trouble. None after: it is not there any more, or, where it was
    settled, it is not followed any more."""

    address: TopicPartition
    before: Watched | None
    after: Watched | None
    elected: Elected | None = None
    """How a leader was elected in between; None where no election shows."""

    @property
    def worth_telling(self) -> bool:
        """Whether somebody who watches should hear of it."""
        return not (self.after is None and self.before is not None and self.before.settled)


Change = BrokerChange | PartitionChange


def changes_between(before: Sight, after: Sight) -> tuple[Change, ...]:
    """The brokers' changes and then the partitions', in order of id and address."""
    brokers = (
        BrokerChange(broker, before.brokers.get(broker), after.brokers.get(broker))
        for broker in sorted({*before.brokers, *after.brokers})
        if before.brokers.get(broker) != after.brokers.get(broker)
    )
    old, new = before.partitions, after.partitions
    changed = [
        at for at, one in new.items() if at not in old or (old[at] != one and old[at] != _moves_as_read(old[at], one))
    ]
    changed += [at for at in old if at not in new]
    live = {broker for broker, status in before.brokers.items() if status is BrokerStatus.LIVE}
    elr_enabled = after.cluster.features.elr_enabled
    partitions = (_changed(at, old.get(at), new.get(at), live, elr_enabled=elr_enabled) for at in sorted(changed))
    return (*brokers, *partitions)


def _changed(
    at: TopicPartition, before: Watched | None, after: Watched | None, live: Container[int], *, elr_enabled: bool | None
) -> PartitionChange:
    if before is None or after is None:
        return PartitionChange(at, before, after)
    after = _moves_as_read(before, after)
    elected = elected_between(before.state, after.state, live=live, elr_enabled=elr_enabled)
    return PartitionChange(at, before, after, elected)


def _moves_as_read(before: Watched, after: Watched) -> Watched:
    """The partition now, with a reassignment as the look before read it where only one of the two could read it."""
    old, new = before.state, after.state
    state = replace(new, adding=_move(old.adding, new.adding), removing=_move(old.removing, new.removing))
    return replace(after, state=state)


def _move(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return before if after is None or (before is None and not after) else after
