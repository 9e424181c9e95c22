"""Produce records to a lab's topic and say exactly what became of each."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kelr.errors import LabError


class Acks(StrEnum):
    """What a producer waits for: every in-sync replica, or the leader alone."""

    ALL = "all"
    LEADER = "1"


@dataclass(frozen=True, slots=True)
class Produced:
    """What one step produced to one partition."""

    partition: int
    acks: Acks
    acknowledged: int
    """Records that the leader confirmed."""
    first_offset: int | None
    """Offset of the first of them; they are contiguous. None where nothing was confirmed."""
    refused: int = 0
    """Records that the leader refused."""
    error: str | None = None
    """The leader's reason, such as NOT_ENOUGH_REPLICAS."""

    @property
    def end_offset(self) -> int | None:
        """The offset after the last confirmed record."""
        return None if self.first_offset is None else self.first_offset + self.acknowledged


@dataclass(slots=True)
class _Tally:
    offsets: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.offsets.append(message.offset())
        else:
            self.errors.append(error.name())


def produce(
    bootstrap_servers: str,
    topic: str,
    partitions: Sequence[int],
    *,
    batches: int,
    records: int,
    acks: Acks,
    label: str,
    expect_refusal: bool = False,
    timeout_s: float = 30.0,
) -> tuple[Produced, ...]:
    """Produce `batches` record batches of `records` records to each partition, and wait for every answer.

    The producer is not idempotent (that would forbid acks=1) and each batch is flushed before the next is filled, so
    that a batch here is a batch in the log.

    Args:
        label: what the values begin with; a record's value tells the step that it came from.
        expect_refusal: records are refused (ISR below min ISR): do not try again, and do not call it an error.

    Raises:
        LabError: records were not confirmed although they should have been, or had no answer in time.
    """
    from confluent_kafka import Producer  # noqa: PLC0415

    producer = Producer(_settings(bootstrap_servers, acks, records, timeout_s, expect_refusal))
    tallies = {partition: _Tally() for partition in partitions}
    for batch in range(batches):
        for partition, tally in tallies.items():
            for record in range(records):
                value = f"{label} {partition}/{batch}/{record}"
                producer.produce(topic, value.encode(), partition=partition, on_delivery=tally.delivered)
        _flush(producer, topic, timeout_s)
    results = tuple(_produced(partition, acks, tally) for partition, tally in tallies.items())
    for result in results:
        if result.refused and not expect_refusal:
            raise LabError(
                f"{topic}:{result.partition} refused {result.refused} records with acks={acks}: {result.error}"
            )
        if result.acknowledged and expect_refusal:
            raise LabError(f"{topic}:{result.partition} took records with acks={acks} that it should have refused")
    return results


def _settings(servers: str, acks: Acks, records: int, timeout_s: float, once: bool) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "client.id": "kelr-lab",
        "acks": acks.value,
        "enable.idempotence": False,
        "batch.num.messages": records,
        # A full batch is sent at once, and a flush waits for nothing: this only keeps a batch whole while this process
        # is held up in the middle of filling it.
        "linger.ms": 3000,
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": int(timeout_s * 1000),
        "retries": 0 if once else 100,
        "retry.backoff.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1000,
        # Brokers that are down are part of the plan: their refused connections belong on nobody's terminal.
        "log_level": 0,
        "error_cb": lambda _error: None,
    }


def _flush(producer: Any, topic: str, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s + 5
    while producer.flush(1):
        if time.monotonic() > deadline:
            raise LabError(f"no answer to records for {topic} in {timeout_s:.0f} s")


def _produced(partition: int, acks: Acks, tally: _Tally) -> Produced:
    offsets = sorted(tally.offsets)
    if offsets and offsets[-1] - offsets[0] != len(offsets) - 1:
        raise LabError(f"records to partition {partition} are not contiguous: {offsets[0]} to {offsets[-1]}")
    return Produced(
        partition=partition,
        acks=acks,
        acknowledged=len(offsets),
        first_offset=offsets[0] if offsets else None,
        refused=len(tally.errors),
        error=tally.errors[0].removeprefix("_") if tally.errors else None,
    )
