"""Small pieces of English that several explanations share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime


def ids(replicas: Iterable[int] | None) -> str:
    """A replica list as people write it: ``[1, 2]``; ``unknown`` where it is not known."""
    return "unknown" if replicas is None else "[" + ", ".join(map(str, replicas)) + "]"


def brokers(replicas: Sequence[int]) -> str:
    """``broker 1``, ``brokers 1 and 2``, ``brokers 1, 2 and 3``."""
    return f"broker {replicas[0]}" if len(replicas) == 1 else f"brokers {joined(replicas)}"


def joined(items: Iterable[object], word: str = "and") -> str:
    """``1``, ``1 and 2``, ``1, 2 and 3``; ``none`` for nothing."""
    texts = [str(item) for item in items]
    if len(texts) < 2:
        return texts[0] if texts else "none"
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def holds_up_to(replica: int, log_end: int, high_watermark: int | None) -> str:
    """``2 holds up to offset 135 (HW 120)``."""
    known = "" if high_watermark is None else f" (HW {high_watermark})"
    return f"{replica} holds up to offset {log_end}{known}"


def offsets_in_words(ranges: Iterable[tuple[int, int]]) -> str:
    """``offset 7``, ``offsets 3..5 and 101..162``, for ranges `[first, last]`."""
    parts = [str(first) if first == last else f"{first}..{last}" for first, last in ranges]
    return f"offset{'' if parts[0].isdigit() and len(parts) == 1 else 's'} {joined(parts)}"


def plural(count: int, noun: str) -> str:
    """``1 record``, ``2,333 records``."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def agree(count: int, singular: str, many: str) -> str:
    """The form of a verb for a number of subjects."""
    return singular if count == 1 else many


_LONGEST_REASON = 60
"""Characters of a reason within a table."""


def in_short(reason: str) -> str:
    """A reason for a table's cell: of one that is too long, its first clause; the rest stands below the table."""
    return reason if len(reason) <= _LONGEST_REASON else reason.partition("; ")[0]


def former_in_words(members: Sequence[int]) -> str:
    """``broker 3 held everything committed and is no replica any more``."""
    are, replicas = agree(len(members), "is", "are"), agree(len(members), "no replica", "no replicas")
    return f"{brokers(members)} held everything committed and {are} {replicas} any more"


def time_of_day(at_ms: int) -> str:
    """``14:03:10 UTC`` for milliseconds since 1970 UTC."""
    second = at_ms // 1000 % 86_400
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02} UTC"


def read_while_it_ran(replica: int, read_at_ms: int | None) -> str:
    """What is known of a log that an earlier look read, now that its broker is down; without a full stop."""
    when = "" if read_at_ms is None else f" at {time_of_day(read_at_ms)}"
    return (
        f"the log of broker {replica} was read{when}, while it ran: if only its process has died since, that is what it"
        " holds; if its machine crashed, the end that was not flushed is cut"
    )


def utc_time(at_ms: int) -> str:
    """``2026-08-20 14:03:10 UTC`` for milliseconds since 1970 UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def length_of_time(length_ms: int) -> str:
    """``40 seconds``, ``12 minutes``, ``5 hours``, ``3 days``: rounded down, of the largest unit of which there are two
    or more."""
    seconds = max(0, length_ms) // 1000
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return plural(seconds // size, unit)
    return plural(seconds, "second")
