"""Which partitions and brokers a history is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kelr.model import PartitionState, TopicPartition
from kelr.replay.history.entries import BrokerEntry, Entry, PartitionEntry


def _every(_address: TopicPartition) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Interest:
    """What is told; by default everything."""

    partitions: Callable[[TopicPartition], bool] = field(default=_every)
    named: bool = False
    """Whether partitions were named: then the cluster's and brokers' own entries are those that concern them."""
    brokers: frozenset[int] = frozenset()
    """Only what concerns one of these; empty: whatever broker."""
    unclean_only: bool = False
    """Only elections of replicas that may lack what was committed."""

    def wants(self, entry: Entry) -> bool:
        """Whether an entry is told."""
        if self.unclean_only:
            elected = entry.election if isinstance(entry, PartitionEntry) else None
            if elected is None or elected.elected_as.clean is True:
                return False
        if not self.brokers:
            return True
        if isinstance(entry, PartitionEntry):
            return bool(self.brokers & concerned(entry))
        return isinstance(entry, BrokerEntry) and entry.broker in self.brokers


def concerned(entry: PartitionEntry) -> frozenset[int]:
    """The brokers whose part in the partition changed, and the one that caused it."""
    before, after = _parts(entry.before), _parts(entry.after)
    moved = {broker for broker in before.keys() | after.keys() if before.get(broker) != after.get(broker)}
    if entry.cause.broker is not None:
        moved.add(entry.cause.broker)
    if entry.election is not None and entry.election.last_leader is not None:
        moved.add(entry.election.last_leader)
    return frozenset(moved)


def _parts(state: PartitionState | None) -> dict[int, tuple[bool, ...]]:
    """What each broker is for a partition."""
    if state is None:
        return {}
    groups = (state.replicas, state.isr, state.elr or (), state.last_known_elr or (), state.adding or ())
    brokers = {broker for group in groups for broker in group} | ({state.leader} - {None})
    return {
        broker: (broker == state.leader, *(broker in group for group in groups))
        for broker in brokers
        if broker is not None
    }
