"""Where the replicas of new partitions go: as somebody wants it, or dealt to the brokers.

Source: ReplicationControlManager.validateManualPartitionAssignment and StripedReplicaPlacer of Apache Kafka 4.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest

from kelr.lab.simulated.handlers.errors import RefusedError
from kelr.lab.simulated.world import World

Replicas = tuple[int, ...]


def by_hand(world: World, replicas: Sequence[int], count: int | None = None) -> Replicas:
    """An assignment that somebody gave.

    Args:
        count: how many replicas the topic's other partitions have.

    Raises:
        RefusedError: INVALID_REPLICA_ASSIGNMENT, in Kafka's words.
    """
    if not replicas:
        raise _wrong("The manual partition assignment includes an empty replica list.")
    before = None
    for broker in sorted(replicas):
        if broker not in world.brokers:
            raise _wrong(f"The manual partition assignment includes broker {broker}, but no such broker is registered.")
        if world.brokers[broker].cordoned:
            raise _wrong(
                f"The manual partition assignment includes broker {broker}, but all its log directories are cordoned."
            )
        if broker == before:
            raise _wrong(f"The manual partition assignment includes the broker {broker} more than once.")
        before = broker
    if count is not None and len(replicas) != count:
        raise _wrong(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not"
            f" consistent with previous partitions, which have {count} replica(s)."
        )
    return tuple(replicas)


def _wrong(message: str) -> RefusedError:
    return RefusedError("INVALID_REPLICA_ASSIGNMENT", message)


def some_live(world: World, replicas: Replicas, partition: int) -> Replicas:
    """The assignment again, if a partition of it can be made: someone has to lead it.

    Raises:
        RefusedError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not any(world.brokers[broker].active for broker in replicas):
        raise _wrong(
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in"
            " controlled shutdown."
        )
    return replicas


def dealt(world: World, first: int, partitions: int, count: int) -> Sequence[Replicas]:
    """Assignments of new partitions: over the racks in turn, and over the brokers of each.

    Kafka begins at a random rack and broker; here the number of the partition says where to begin.

    Args:
        first: the number of the first partition.
        count: how many replicas each gets.

    Raises:
        RefusedError: INVALID_REPLICATION_FACTOR.
    """
    usable = {broker: one for broker, one in world.brokers.items() if not one.cordoned}
    live = [broker for broker, one in usable.items() if not one.fenced]
    fenced = [broker for broker, one in usable.items() if one.fenced]
    if not live:
        raise _too_few(count, "All brokers are currently fenced.")
    if count > len(usable):
        raise _too_few(
            count,
            f"The target replication factor of {count} cannot be reached because only {len(usable)} broker(s)"
            " are registered or some brokers have all their log directories cordoned.",
        )
    ring, spare = _striped(world, live), _striped(world, fenced)
    return [_from(ring, spare, number, count) for number in range(first, first + partitions)]


def _from(ring: Sequence[int], spare: Sequence[int], number: int, count: int) -> Replicas:
    """Live brokers first, the fenced ones where there are not enough of them."""
    start = number % len(ring)
    return (*ring[start:], *ring[:start], *spare)[:count]


def _too_few(count: int, message: str) -> RefusedError:
    return RefusedError("INVALID_REPLICATION_FACTOR", f"Unable to replicate the partition {count} time(s): {message}")


def _striped(world: World, brokers: Sequence[int]) -> Sequence[int]:
    """Brokers so that neighbours are in different racks, as far as that goes."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        racks.setdefault(world.racks.get(broker, ""), []).append(broker)
    rows = zip_longest(*(racks[rack] for rack in sorted(racks)))
    return [broker for broker in chain.from_iterable(rows) if broker is not None]
