"""A topic of which nothing can be told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicError:
    """A topic that could not be described: unknown, not authorized, or an error of the broker."""

    topic: str
    error: str
    """Kafka's name of the error, such as ``UNKNOWN_TOPIC_OR_PARTITION``."""
    detail: str = ""
    absent: tuple[int, ...] = ()
    """Where the topic itself is there: its partitions that were named and are not."""
