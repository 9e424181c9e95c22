"""One replica as its own broker sees it: its log, what the broker knows of the partition, and its epoch history.

A broker that the controller does not reach answers by what it knew when it lost touch; a log is always that of now.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace

from kelr.lab.simulated.api import Message
from kelr.lab.simulated.world import HOST, World, id_text
from kelr.model import PartitionState, TopicPartition
from kelr.simulation.logs import SimulatedLog

NONE = "NONE"


@dataclass(frozen=True, slots=True)
class EpochStart:
    """A line of leader-epoch-checkpoint: from this offset on, records have this epoch."""

    epoch: int
    start: int


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica that its broker holds."""

    address: TopicPartition
    broker: int
    state: PartitionState
    """As the broker knows it."""
    log: SimulatedLog
    epochs: tuple[EpochStart, ...]
    """The epoch history, oldest first (LeaderEpochFileCache)."""
    epoch_start: int | None
    """Where its epoch as a leader began; None for a follower."""

    @property
    def leads(self) -> bool:
        """Whether the broker believes that it leads."""
        return self.state.leader == self.broker

    def fenced(self, leader_epoch: int) -> str:
        """The error for a request that carries a leader epoch; ``NONE`` where it fits, or for -1, which asks nothing.

        Source: Partition.checkCurrentLeaderEpoch.
        """
        if leader_epoch < 0 or leader_epoch == self.state.leader_epoch:
            return NONE
        return "FENCED_LEADER_EPOCH" if leader_epoch < self.state.leader_epoch else "UNKNOWN_LEADER_EPOCH"

    def end_of(self, epoch: int) -> tuple[int, int] | None:
        """(largest epoch at or below this one, its end offset); None where the history does not tell.

        Source: LeaderEpochFileCache.endOffsetFor.
        """
        if epoch < 0 or not self.epochs or epoch > self.epochs[-1].epoch:
            return None
        if epoch == self.epochs[-1].epoch:
            return epoch, self.log.end
        at = next(index for index, entry in enumerate(self.epochs) if entry.epoch > epoch)
        floor = self.epochs[at - 1].epoch if at else epoch
        return floor, self.epochs[at].start


def known(world: World, broker: int, address: TopicPartition) -> PartitionState | None:
    """A partition as this broker knows it; None where it knows none."""
    before = world.running.out_of_touch.get(broker)
    if before is None:
        return world.state(address)
    stand_in = world.alike.stand_in(address)
    state = before.partitions.get(address) or (before.partitions.get(stand_in) if stand_in is not None else None)
    if state is None:
        return None
    topic_id = id_text(world.topic_id(address.topic))
    return replace(state, topic=address.topic, partition=address.partition, topic_id=topic_id)


def hosted(world: World, broker: int, address: TopicPartition) -> Replica | str:
    """The replica of a partition that a broker holds, or the name of Kafka's error.

    Source: ReplicaManager.getPartitionOrError.
    """
    state = known(world, broker, address)
    if state is None:
        return "UNKNOWN_TOPIC_OR_PARTITION"
    if broker in (state.offline_replicas or ()) and broker in state.replicas:
        return "KAFKA_STORAGE_ERROR"
    log = world.log(address, broker)
    if log is None:
        return "NOT_LEADER_OR_FOLLOWER"
    start = _epoch_start(world, broker, state)
    return Replica(address, broker, state, log, history(log, state.leader_epoch, start), start)


def epochs(world: World, broker: int, address: TopicPartition) -> tuple[EpochStart, ...]:
    """The epoch history of a broker's replica, whether its process runs or not; empty where it holds none."""
    state, log = known(world, broker, address), world.log(address, broker)
    if state is None or log is None:
        return ()
    return history(log, state.leader_epoch, _epoch_start(world, broker, state))


def history(log: SimulatedLog, leader_epoch: int, epoch_start: int | None) -> tuple[EpochStart, ...]:
    """The epochs in a log, each with its first offset.

    A leader writes its epoch down when it takes over, before any record (LeaderEpochFileCache.assign). Retention leaves
    the last epoch of what it took, at the log's start.

    Args:
        epoch_start: where this replica's epoch as a leader began; None for a follower.
    """
    entries: list[EpochStart] = []
    records, at = log.records, 0
    while at < len(records):
        epoch = records[at].epoch
        entries.append(EpochStart(epoch, log.start + at))
        # Epochs never fall along a log, so that a long one need not be walked record by record.
        at = bisect.bisect_right(records, epoch, lo=at, key=lambda record: record.epoch)
    if not entries and log.deleted_epoch is not None:
        entries.append(EpochStart(log.deleted_epoch, log.start))
    if epoch_start is not None and (not entries or entries[-1].epoch < leader_epoch):
        entries = [entry for entry in entries if entry.start < epoch_start]
        entries.append(EpochStart(leader_epoch, epoch_start))
    return tuple(entries)


def _epoch_start(world: World, broker: int, state: PartitionState) -> int | None:
    if state.leader != broker:
        return None
    replication = world.replication(state.address)
    leadership = None if replication is None else replication.leadership
    if leadership is None or leadership.leader != broker or leadership.epoch != state.leader_epoch:
        return None
    return leadership.epoch_start


# Who leads now, told along with an error that says that a broker does not (KIP-951).


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
