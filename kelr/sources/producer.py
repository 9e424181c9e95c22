"""The seam through which records are produced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kelr.sources.records.batches import Compression

Settled = Callable[[str | None, int], None]
"""Told of each record once: Kafka's error in words and -1, or None and the offset that the record has got."""


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """A record as it is to be produced. Without a timestamp it gets the time of its production."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    timestamp_ms: int | None


class Producer(Protocol):
    """Produces idempotently, with acks=all, in the order in which records are handed over; what is behind a record that
    failed is not written."""

    def hand_over(self, record: OutgoingRecord, settled: Settled) -> str | None:
        """Take a record to be sent, as soon as there is room for it.

        Returns: why it is not taken, so that no other will be; None where it is.
        """

    def wait(self, seconds: float) -> int:
        """Let answers come in, until all are there or so much time has passed.

        Returns: how many records are still under way.
        """


Producers = Callable[[Compression], Producer]
"""Makes a producer that compresses so."""
