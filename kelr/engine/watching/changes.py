"""What changed between two looks."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

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
    changed = [at for at, one in new.items() if old.get(at) != one]
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
    elected = elected_between(before.state, after.state, live=live, elr_enabled=elr_enabled)
    return PartitionChange(at, before, after, elected)
