"""Moments in files that people read: ISO 8601 in UTC, to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999."""


def to_iso(moment_ms: int) -> str:
    """``2026-08-20T03:12:00.123Z`` for milliseconds since 1970 UTC.

    Raises:
        ValueError: before 1970 or after the year 9999.
    """
    if not 0 <= moment_ms <= LAST_MS:
        raise ValueError(f"{moment_ms} ms is not between the years 1970 and 9999")
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment_ms % 1000:03d}Z"


def from_iso(text: str) -> int:
    """Milliseconds since 1970 UTC. What is finer than a millisecond is dropped.

    Raises:
        ValueError: not a moment, without a time zone, or before 1970.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not a moment such as {to_iso(0)}") from None
    if moment.tzinfo is None:
        raise ValueError("says no time zone: end it with Z for UTC")
    try:
        moment_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
    except OverflowError:
        raise ValueError("is out of range") from None
    if not 0 <= moment_ms <= LAST_MS:
        raise ValueError("is not between the years 1970 and 9999")
    return moment_ms
