"""Every record that a cluster acknowledged, and the producer that writes it down."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kelr.lab.produce import Acks
from kelr.model import PartitionState

RECORDS_IN_A_BATCH = 5
ANSWER_WITHIN_S = 8.0


@dataclass(frozen=True, slots=True)
class Acked:
    """A record that a leader acknowledged."""

    key: str
    """Unique in the incident."""
    partition: int
    offset: int
    acks: Acks
    leader_epoch: int
    """The partition's when the producer was begun; the leader can have changed since."""


class Ledger:
    """Produces records with keys of their own, and keeps those that were acknowledged."""

    def __init__(self, bootstrap_servers: str, topic: str, shared_keys: int = 0) -> None:
        """`shared_keys`: so many keys does Kafka know, for a log cleaner; a record's own one is in its value then."""
        self.acked: list[Acked] = []
        self.refused = 0
        """Records that no leader acknowledged; they may be in a log all the same, and count for nothing."""
        self._shared_keys = shared_keys
        self._servers = bootstrap_servers
        self._topic = topic
        self._next_key = 0

    def produce(
        self,
        states: Iterable[PartitionState],
        batches: int,
        acks: Acks,
        *,
        servers: str | None = None,
        producer: Any = None,
    ) -> int:
        """Produce batches to these partitions, each of which has a leader, and wait for every answer.

        Args:
            servers: whom to ask who leads; None asks all.
            producer: one that has begun a transaction, for acks=all.

        Returns:
            How many records were acknowledged.
        """
        from confluent_kafka import Producer  # noqa: PLC0415 - as everywhere: only where it is used

        epochs = {state.partition: state.leader_epoch for state in states}
        before = len(self.acked)
        producer = producer or Producer(settings(servers or self._servers, acks))
        for _ in range(batches):
            for partition, epoch in epochs.items():
                for _ in range(RECORDS_IN_A_BATCH):
                    self._send(producer, partition, acks, epoch)
            self._flush(producer)
        return len(self.acked) - before

    def _send(self, producer: Any, partition: int, acks: Acks, epoch: int) -> None:
        number = self._next_key
        key = f"k{number:07d}"
        self._next_key += 1

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.acked.append(Acked(key, partition, message.offset(), acks, epoch))
            else:
                self.refused += 1

        value = f"acks={acks.value} epoch {epoch}"
        known = key
        if self._shared_keys:
            known, value = f"c{number % self._shared_keys}", f"{key} {value}"
        producer.produce(self._topic, value.encode(), known.encode(), partition=partition, on_delivery=delivered)

    def _flush(self, producer: Any) -> None:
        deadline = time.monotonic() + ANSWER_WITHIN_S + 10
        while producer.flush(1):
            if time.monotonic() > deadline:
                raise RuntimeError(f"no answer to records for {self._topic} in {ANSWER_WITHIN_S + 10:.0f} s")


def by_partition(records: Sequence[Acked]) -> Mapping[int, list[Acked]]:
    found: dict[int, list[Acked]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record)
    return found


def settings(servers: str, acks: Acks) -> dict[str, Any]:
    """How such a producer is configured."""
    return {
        "bootstrap.servers": servers,
        "client.id": "kelr-incidents",
        "acks": acks.value,
        # An idempotent producer must not use acks=1. One that is not may write a record twice when an answer is lost:
        # the key is the same, and the record counts once.
        "enable.idempotence": False,
        "batch.num.messages": RECORDS_IN_A_BATCH,
        "linger.ms": 100,
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": int(ANSWER_WITHIN_S * 1000),
        "request.timeout.ms": 4000,
        "retry.backoff.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        "log_level": 0,
        "error_cb": lambda _error: None,
    }
