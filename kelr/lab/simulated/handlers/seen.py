"""The cluster as one node sees it: brokers that do not reach the controller go by what they knew last.

Source: KRaftMetadataCache of Apache Kafka, which keeps the last image that the metadata log gave.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kelr.controller import ControllerState
from kelr.controller.state import Registration
from kelr.lab.simulated.world import World
from kelr.model import TopicPartition


@dataclass(frozen=True, slots=True)
class Seen:
    """What a node knows. Topics that were deleted behind its back it does not know any more, unlike in Kafka."""

    world: World
    controller: ControllerState

    @property
    def outdated(self) -> bool:
        return self.controller is not self.world.running.cluster.controller

    @property
    def brokers(self) -> Mapping[int, Registration]:
        return self.controller.brokers

    @property
    def live(self) -> list[int]:
        """The brokers that are not fenced, in order."""
        return sorted(broker for broker, registration in self.brokers.items() if not registration.fenced)

    def topics(self, start: str = "") -> Iterator[str]:
        """All names in order, from this one on."""
        names = self.world.topics(start)
        return (name for name in names if self.partitions(name)) if self.outdated else names

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; 0 where there is no such topic."""
        count = self.world.partitions(topic)
        if not self.outdated or self.world.is_alike(topic):
            return count
        return sum(TopicPartition(topic, number) in self.controller.partitions for number in range(count))


def seen_by(world: World, node: int) -> Seen:
    """What this node knows of the cluster."""
    return Seen(world, world.running.out_of_touch.get(node, world.running.cluster.controller))
