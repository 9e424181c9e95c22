"""A topic of which nothing can be told."""

from __future__ import annotations

from dataclasses import dataclass

_UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(frozen=True, slots=True)
class TopicError:
    """A topic that could not be described: unknown, not authorized, or an error of the broker."""

    topic: str
    error: str
    """Kafka's name of the error, such as ``UNKNOWN_TOPIC_OR_PARTITION``."""
    detail: str = ""
    absent: tuple[int, ...] = ()
    """Where the topic itself is there: its partitions that were named and are not."""

    @property
    def is_gone(self) -> bool:
        """Whether the topic, or the partition, is not there: after other errors it may well be."""
        return bool(self.absent) or self.error == _UNKNOWN_TOPIC
