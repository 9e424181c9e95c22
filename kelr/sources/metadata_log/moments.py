"""Places in the metadata log as people name them: an offset, or a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kelr.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[0-9]{1,19}")
_FIRST_TIME = 10**12
"""Numbers from here on are milliseconds since 1970 (this one is of 2001): no metadata log has such offsets."""
_LAST_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Moment:
    """Either an offset or a time; the other one is None."""

    offset: int | None = None
    """The state after the record before this one: all records of lower offsets have been applied."""
    time_ms: int | None = None
    """The state after the last record that was appended at this time or before, in milliseconds since 1970 UTC."""


def read_moment(text: str) -> Moment:
    """``4711`` is an offset; ``2026-08-20T03:12:00Z``, ``2026-08-20 03:12`` (UTC where no zone is said) and
    milliseconds since 1970 are times.

    Raises:
        UsageError: it is none of these.
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        number = int(stripped)
        if number < _FIRST_TIME:
            return Moment(offset=number)
        if number <= _LAST_MS:
            return Moment(time_ms=number)
    else:
        try:
            moment = datetime.fromisoformat(stripped)
            in_utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            time_ms = (in_utc - _EPOCH) // timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            time_ms = -1
        if time_ms >= 0:
            return Moment(time_ms=time_ms)
    raise UsageError(
        f"--at {text!r} is neither an offset of the metadata log nor a time",
        next_step="give an offset such as 4711, or a time such as 2026-08-20T03:12:00Z (UTC where no zone is said)",
    )


def time_text(time_ms: int) -> str:
    """``2026-08-20T03:12:00.123Z``; the bare number where that is no time."""
    if not 0 <= time_ms <= _LAST_MS:
        return f"{time_ms} ms"
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"
