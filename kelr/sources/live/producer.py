"""Produces to a live cluster, with confluent-kafka (`kelr.sources.producer.Producer`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kelr.sources.connection import ConnectionSettings
from kelr.sources.producer import OutgoingRecord, Settled
from kelr.sources.records.batches import Compression

_BATCH_BYTES = 256 * 1024
"""A topic may take smaller batches than librdkafka makes unless told."""
_LARGEST_RECORD = 1_000_000_000
_ROOM_S = 0.2
"""How long to wait for answers where the queue is full, before it is tried again."""


class LiveProducer:
    """One client, which connects when it has the first record.

    Args:
        settings: the connection; a record that has no answer within its timeout has failed.
        compression: of the batches.
    """

    def __init__(self, settings: ConnectionSettings, compression: Compression) -> None:
        from confluent_kafka import Producer  # noqa: PLC0415 - only where something is produced

        # librdkafka writes of a fatal error to stderr whatever its log level; each record has it as its own error.
        silent = {"logger": logging.Logger("librdkafka", logging.CRITICAL + 1)}
        self._client: Any = Producer({**settings.confluent(), **_tuning(settings, compression), **silent})
        self._failed: str | None = None
        """Why the client has failed for good, where it has."""

    def hand_over(self, record: OutgoingRecord, settled: Settled) -> str | None:
        def delivered(error: Any, message: Any) -> None:
            if error is None:
                settled(None, message.offset())
            else:
                settled(self._failed or _named(error), -1)

        extra: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        while self._failed is None:
            try:
                self._client.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    headers=list(record.headers),
                    on_delivery=delivered,
                    **extra,
                )
                break
            except BufferError:
                self._served(lambda: self._client.poll(_ROOM_S))
            except Exception as error:  # a KafkaException: too large, or the client has failed for good
                return _words(error)
        else:
            return self._failed
        self._served(lambda: self._client.poll(0))
        return None

    def wait(self, seconds: float) -> int:
        return self._served(lambda: self._client.flush(seconds))

    def _served(self, do: Callable[[], int]) -> int:
        """What flush or poll gives. They raise once a client has failed for good, such as one whose broker refused a
        batch in a way that may leave a gap: then nothing is on its way any more, and every record has its error."""
        from confluent_kafka import KafkaException  # noqa: PLC0415 - only where something is produced

        try:
            return int(do())
        except KafkaException as error:
            self._failed = _words(error)
        with suppress(KafkaException):
            self._client.purge()
        with suppress(KafkaException):
            self._client.poll(0)
        return 0


def _tuning(settings: ConnectionSettings, compression: Compression) -> dict[str, Any]:
    return {
        "enable.idempotence": True,
        "acks": "all",
        # Without it, records behind one that failed would still be written, out of their order.
        "enable.gapless.guarantee": True,
        "max.in.flight.requests.per.connection": 1,
        "compression.codec": compression.name.lower(),
        "linger.ms": 5,
        "batch.size": _BATCH_BYTES,
        "message.max.bytes": _LARGEST_RECORD,
        "message.timeout.ms": int(settings.timeout_s * 1000),
        "error_cb": lambda _error: None,
    }


def _named(error: Any) -> str:
    return f"{error.name().removeprefix('_')}: {error.str()}"


def _words(error: Exception) -> str:
    reason: Any = error.args[0] if error.args else None
    return _named(reason) if callable(getattr(reason, "name", None)) else str(error)
