"""DescribeTopicPartitions: partitions with their ELR, in pages.

Source: DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.describeTopicResponse of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from kelr.lab.simulated.api import Call, code
from kelr.lab.simulated.handlers.authorized import DENIED, NOT_ASKED, TOPIC, operations
from kelr.lab.simulated.handlers.encoding import NO_TAGS, int32, length, string
from kelr.lab.simulated.handlers.partitions import is_internal, unknown_topic
from kelr.lab.simulated.handlers.seen import Seen, seen_by
from kelr.lab.simulated.handlers.topic_bytes import DESCRIBE, topic_bytes

NO_ID = UUID(int=0)
_NO_THROTTLE = int32(0)
_NO_CURSOR = b"\xff"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins or the next one does; `partition` is the wire's INT32."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Part:
    """A topic's partitions from `begin` up to `end` in a page; or the error that stands in their place."""

    topic: str
    begin: int = 0
    end: int = 0
    error: str = "NONE"


def describe(call: Call) -> bytes:
    """One page, encoded."""
    request = call.request
    cursor = None if request.cursor is None else Cursor(request.cursor.topic_name, request.cursor.partition_index)
    named = [topic.name for topic in request.topics]
    error = _refusal(named, cursor)
    if error is not None:
        # The whole request fails; its answer names the topics in it (DescribeTopicPartitionsRequest.getErrorResponse).
        return _encoded([_error(name, error, internal=False) for name in named], None)
    limit = max(1, min(call.world.spec.page_limit, request.response_partition_limit))
    seen = seen_by(call.world, call.node)
    parts, following = page(seen, named, cursor, limit)
    return _encoded([_part(seen, part) for part in parts], following)


def page(seen: Seen, named: Collection[str], cursor: Cursor | None, limit: int) -> tuple[Sequence[Part], Cursor | None]:
    """What is in a page, and where the next one begins.

    Args:
        named: the topics that were asked for; none of them stands for all, and leaves out what is not authorized.
        limit: the most partitions in it.
    """
    first = "" if cursor is None else cursor.topic
    wanted = _in_order(named, first) if named else seen.topics(first)
    denied = [name for name in _in_order(named, first) if not seen.world.allowed(TOPIC, "DESCRIBE", name)]
    parts, following = _filled(seen, wanted, cursor, limit)
    return [*parts, *(Part(name, error=DENIED[TOPIC]) for name in denied)], following


def _filled(
    seen: Seen, wanted: Iterator[str], cursor: Cursor | None, limit: int
) -> tuple[Sequence[Part], Cursor | None]:
    parts: list[Part] = []
    for name in wanted:
        if not seen.world.allowed(TOPIC, "DESCRIBE", name):
            continue
        if limit == 0:
            return parts, Cursor(name, 0)
        count = seen.partitions(name)
        if not count:
            parts.append(Part(name, error=unknown_topic(name)))
            continue
        begin = cursor.partition if cursor is not None and name == cursor.topic else 0
        end = min(count, _int32(begin + limit))
        parts.append(Part(name, begin, end))
        if end < count:
            return parts, Cursor(name, end)
        limit -= max(0, end - begin)
    return parts, None


def _refusal(named: Sequence[str], cursor: Cursor | None) -> str | None:
    """The error that fails the whole request."""
    if cursor is not None and named and (cursor.topic not in named or cursor.partition < 0):
        return "INVALID_REQUEST"
    if cursor is not None and cursor.partition < 0:
        return "INVALID_REQUEST"
    # Kafka 4.3.1 runs into an error of its own where it looks for the permissions of a topic without a name.
    return "UNKNOWN_SERVER_ERROR" if "" in named and (cursor is None or not cursor.topic) else None


def _in_order(named: Collection[str], first: str) -> Iterator[str]:
    """Each name once; Java compares strings by their UTF-16 units."""
    return iter(sorted({name for name in named if _order(name) >= _order(first)}, key=_order))


def _order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _int32(number: int) -> int:
    """A sum as Java's int has it: a cursor beyond all partitions runs over, and the next one is negative."""
    return (number + 2**31) % 2**32 - 2**31


def _part(seen: Seen, part: Part) -> bytes:
    if part.error == DENIED[TOPIC]:
        return _error(part.topic, part.error, internal=False)
    bits = operations(seen.world, TOPIC, part.topic)
    if part.error != "NONE":
        return _error(part.topic, part.error, internal=is_internal(part.topic), bits=bits)
    return topic_bytes(seen, DESCRIBE).topic(seen, part.topic, part.begin, part.end, bits)


def _error(name: str, error: str, *, internal: bool, bits: int = NOT_ASKED) -> bytes:
    return DESCRIBE.topic(name, NO_ID, b"", 0, error=code(error), internal=internal, operations=bits)


def _encoded(topics: Sequence[bytes], cursor: Cursor | None) -> bytes:
    """The whole answer: throttle time, topics, and the next cursor, if any."""
    following = _NO_CURSOR
    if cursor is not None:
        following = b"".join((b"\x01", string(cursor.topic, flexible=True), int32(cursor.partition), NO_TAGS))
    return b"".join((_NO_THROTTLE, length(len(topics), flexible=True), *topics, following, NO_TAGS))
