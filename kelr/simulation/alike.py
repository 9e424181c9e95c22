"""Topics by the thousand that need no memory: partitions with the same replicas, untouched, are in the same state.

A cluster of a million partitions over 30 brokers has some hundred different lists of replicas. One partition for each
list stands in the `SimulatedCluster` for all that have it; whatever happens to brokers happens to it. A partition that
something happens to alone (records, an election, a config of its topic) gets a copy of its own first
(`SimulatedCluster.copied`).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field

from kelr.model import TopicPartition

STAND_IN = "\x00alike"
"""The topic of the partitions that stand for others; no client can name it, since Kafka allows no such name."""


@dataclass(frozen=True, slots=True)
class AlikeTopics:
    """`topics` topics of `partitions` partitions each, ``PREFIX000000`` and so on."""

    topics: int
    partitions: int
    assignments: tuple[tuple[int, ...], ...]
    """The different lists of replicas, dealt to the partitions in turn."""
    prefix: str = "topic-"
    _width: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_width", max(6, len(str(self.topics))))

    def name(self, index: int) -> str:
        return f"{self.prefix}{index:0{self._width}d}"

    def index(self, topic: str) -> int | None:
        """Which of the topics it is; None for another."""
        digits = topic[len(self.prefix) :]
        if (
            not topic.startswith(self.prefix)
            or len(digits) != self._width
            or not (digits.isascii() and digits.isdigit())
        ):
            return None
        return int(digits) if int(digits) < self.topics else None

    def first_at_or_after(self, topic: str) -> int:
        """The index of the first topic whose name is not smaller; names are in the order of their indexes."""
        return bisect.bisect_left(range(self.topics), topic, key=self.name)

    def kind(self, index: int, partition: int) -> int:
        """Which of the assignments the partition has."""
        return (index * self.partitions + partition) % len(self.assignments)

    def stand_in(self, address: TopicPartition) -> TopicPartition | None:
        """The partition that stands for this one; None where it is none of these."""
        index = self.index(address.topic)
        if index is None or not 0 <= address.partition < self.partitions:
            return None
        return TopicPartition(STAND_IN, self.kind(index, address.partition))

    def names(self, start: int = 0) -> Iterator[str]:
        return map(self.name, range(start, self.topics))


def dealt(brokers: tuple[int, ...], replication: int) -> tuple[tuple[int, ...], ...]:
    """Lists of replicas as Kafka deals them out: each broker first as often as the others, followers at every distance.

    Source: StripedReplicaPlacer of Apache Kafka, without its chance.
    """
    count = len(brokers)
    lists = [
        tuple(
            dict.fromkeys(
                brokers[(first + (0 if place == 0 else place + shift)) % count] for place in range(replication)
            )
        )
        for shift in range(max(1, count - replication))
        for first in range(count)
    ]
    return tuple(replicas for replicas in lists if len(replicas) == replication)
