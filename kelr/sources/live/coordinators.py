"""Who coordinates groups or transactions, and what to ask a coordinator for to learn whether it does so by now.

The leader of a partition of Kafka's own topic coordinates what is in it, from when it has loaded that; until then its
lists leave it out without an error (CoordinatorRuntime.scheduleReadAllOperation asks what is there, and
GroupCoordinatorService.listGroups skips whoever answers NOT_COORDINATOR; TransactionStateManager.listTransactionStates
knows only of loading that has begun). A request for one group or transactional id is refused in that time, and also
where nobody has ever heard of the name. So one made-up name for each partition tells.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kelr.engine.words import agree
from kelr.model.afterwards import Unread

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"


@dataclass(frozen=True, slots=True)
class Coordinators:
    """Who coordinates what is in each partition of one of Kafka's own topics."""

    topic: str
    partitions: int = 0
    """How many there are; none where there is no such topic, and so nothing to coordinate."""
    leaders: Mapping[int, int] = field(default_factory=dict)
    """The broker of each partition that has a live leader."""
    missing: Unread | None = None
    """Why there may be partitions without a coordinator; None where each has one."""

    def probes(self) -> Mapping[int, Mapping[str, int]]:
        """For each broker a name to ask it for in each partition that it leads: name to partition."""
        names = names_in(self.partitions)
        found: dict[int, dict[str, int]] = {}
        for partition, broker in sorted(self.leaders.items()):
            found.setdefault(broker, {})[names[partition]] = partition
        return found

    def not_ready(self, unread: Mapping[int, Unread]) -> Unread | None:
        """Why a broker may not list all that is in its partitions, by what those answered; None where each is ready."""
        if not unread:
            return None
        why = unread[min(unread)]
        alike = sorted(partition for partition, one in unread.items() if one == why)
        which = f"{agree(len(alike), 'partition', 'partitions')} {', '.join(map(str, alike))} of {self.topic}"
        return replace(why, error=f"{why.error} for {which}")


def names_in(partitions: int) -> Mapping[int, str]:
    """A name that belongs to each partition, of so many."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < partitions:
        name = f"kelr-probe-{number}"
        # Of a negative hash Kafka took the lower 31 bits once: such a name belongs to one partition or another.
        if _java_hash(name) >= 0:
            found.setdefault(partition_of(name, partitions), name)
        number += 1
    return found


def partition_of(name: str, partitions: int) -> int:
    """The partition of a group or a transactional id, of so many (GroupCoordinatorService.partitionFor)."""
    hashed = _java_hash(name)
    return 0 if hashed == -(1 << 31) else abs(hashed) % partitions


def _java_hash(text: str) -> int:
    """`String.hashCode`: of UTF-16 units, in 32 bits with a sign."""
    hashed = 0
    for (unit,) in struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass")):
        hashed = (31 * hashed + unit) & 0xFFFF_FFFF
    return hashed - (1 << 32) if hashed >= 1 << 31 else hashed
