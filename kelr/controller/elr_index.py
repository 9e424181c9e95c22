"""What the controller remembers of an ELR after a ClearElrRecord emptied it.

The partitions that a returning or a leaving broker is in the ELR of are found by an index (BrokersToElrs). A
ClearElrRecord empties the ELR but does not touch the index (ReplicationControlManager.removeTopicElrs, 4.0.0 to 4.3.1),
so entries stay behind: the partition is looked at again, and if its topic is deleted meanwhile, the controller fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kelr.model import TopicPartition


@dataclass(frozen=True, slots=True)
class ElrIndex:
    """The entries of the index that no ELR accounts for."""

    stale: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """How many entries too many there are of a partition and a broker."""
    deleted: frozenset[int] = frozenset()
    """Brokers with entries of topics that are deleted: to look at one fails."""

    def count(self, address: TopicPartition, broker: int) -> int:
        return self.stale.get((address, broker), 0)

    def with_cleared(self, address: TopicPartition, elr: Iterable[int]) -> ElrIndex:
        """A ClearElrRecord emptied this ELR: its entries stay."""
        stale = dict(self.stale)
        for broker in elr:
            stale[address, broker] = stale.get((address, broker), 0) + 1
        return ElrIndex(stale, self.deleted)

    def with_gone(self, address: TopicPartition, brokers: Iterable[int]) -> ElrIndex:
        """Brokers left the ELR in an ordinary record, which takes one entry out of an array of partition numbers.

        Further entries of the same number are taken for it too, and the places that they leave are filled with zeros
        (BrokersToElrs.remove): entries of the topic's partition 0.
        """
        stale = dict(self.stale)
        for broker in brokers:
            count = stale.pop((address, broker), 0)
            if count:
                first = (TopicPartition(address.topic, 0), broker)
                stale[first] = stale.get(first, 0) + count
        return ElrIndex(stale, self.deleted)

    def without_topic(self, topic: str, members: Iterable[int]) -> ElrIndex:
        """The topic is deleted; the entries of its present ELR `members` go, and all of the same brokers with them."""
        of_topic = {broker for address, broker in self.stale if address.topic == topic}
        stale = {key: count for key, count in self.stale.items() if key[0].topic != topic}
        return ElrIndex(stale, self.deleted | (of_topic - set(members)))
