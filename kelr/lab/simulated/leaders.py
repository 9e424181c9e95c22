"""Who leads now, told along with an error that says that a broker does not (KIP-951)."""

from __future__ import annotations

from kelr.lab.simulated.api import Message
from kelr.lab.simulated.replicas import known
from kelr.lab.simulated.world import HOST, World
from kelr.model import TopicPartition


class CurrentLeaders:
    """Collects the leaders that one answer names, for its list of endpoints.

    Args:
        node: the broker that answers, by what it knows.
    """

    def __init__(self, world: World, node: int) -> None:
        self._world = world
        self._node = node
        self.told: set[int] = set()
        """Leaders that were named and have an endpoint."""

    def of(self, address: TopicPartition) -> tuple[int, int]:
        """(leader or -1, leader epoch) of a partition."""
        state = known(self._world, self._node, address)
        if state is None:
            return -1, -1
        if state.leader is None:
            return -1, state.leader_epoch
        if state.leader in self._world.brokers:
            self.told.add(state.leader)
        return state.leader, state.leader_epoch

    def endpoints(self, kind: type[Message]) -> list[Message]:
        """The addresses of those that were named."""
        return [
            kind(node_id=node, host=HOST, port=self._world.ports[node], rack=self._world.racks.get(node))
            for node in sorted(self.told)
        ]
