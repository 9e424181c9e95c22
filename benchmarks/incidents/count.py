"""What is left of the acknowledged records, and whether one way of recovery is worse than another."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.incidents.ledger import Acked, by_partition
from kelr.lab import Lab
from kelr.lab.produce import Acks
from kelr.model import PartitionState

READ_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, order=True)
class Lost:
    """Acknowledged records that are in the topic no more. Ordered: those with acks=all weigh more than any others."""

    all: int = 0
    one: int = 0

    def __add__(self, other: Lost) -> Lost:
        return Lost(self.all + other.all, self.one + other.one)


NOTHING = Lost()


def lost(acked: Sequence[Acked], left: Mapping[int, Collection[str]]) -> Mapping[int, Lost]:
    """For each partition, what was acknowledged and is not among the keys that are left there."""
    found = {}
    for partition, records in sorted(by_partition(acked).items()):
        there = left.get(partition, ())
        missing = [record.acks for record in records if record.key not in there]
        found[partition] = Lost(missing.count(Acks.ALL), missing.count(Acks.LEADER))
    return found


def total(losses: Mapping[int, Lost]) -> Lost:
    return sum(losses.values(), NOTHING)


def worse(mine: Mapping[int, Lost], theirs: Mapping[int, Lost]) -> tuple[int, ...]:
    """Partitions in which `mine` lost more: more records with acks=all, or as many of those and more of the rest."""
    return tuple(partition for partition in sorted(mine) if mine[partition] > theirs.get(partition, NOTHING))


def read_topic(lab: Lab, topic: str, states: Mapping[int, PartitionState]) -> Mapping[int, frozenset[str]]:
    """The keys that an ordinary consumer gets from each partition, from its beginning to the leader's log end.

    Raises:
        RuntimeError: a high watermark does not come up to the log end that the leader's disk has, or a record does not
            arrive in time.
    """
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

    settings = {
        "bootstrap.servers": lab.bootstrap_servers,
        "group.id": "kelr-incidents",
        "enable.auto.commit": False,
        "enable.partition.eof": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
        "log_level": 0,
        "error_cb": lambda _error: None,
    }
    consumer = Consumer(settings)
    deadline = time.monotonic() + READ_WITHIN_S
    try:
        ends = {}
        for partition in states:
            _, ends[partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=20)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in states])
        keys: dict[int, set[str]] = {partition: set() for partition in states}
        open_ends = {partition: end for partition, end in ends.items() if end > 0}
        while open_ends:
            if time.monotonic() > deadline:
                raise RuntimeError(f"records did not arrive: {open_ends} are the ends of what is missing")
            for message in consumer.consume(1000, timeout=0.5):
                number, offset, key = message.partition(), message.offset(), message.key()
                if message.error() or number is None or offset is None or not isinstance(key, bytes):
                    continue
                keys[number].add(key.decode())
                if offset + 1 >= open_ends.get(number, offset + 2):
                    del open_ends[number]
    finally:
        consumer.close()
    return {partition: frozenset(found) for partition, found in keys.items()}
