"""Moments of the metadata log as ``--since`` and ``--until`` have them: an offset, a time, or how long ago."""

from __future__ import annotations

import re

from kelr.errors import UsageError
from kelr.replay.history import Moment

_AGO = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)")
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NEXT = "give an offset such as 120394, a time such as 2026-03-01T02:10:00Z, or how long ago, such as 2h or 1h30m"


def read_moment(option: str, text: str | None, *, now_ms: int) -> Moment | None:
    """``2h`` and ``1h30m`` are ago; everything else is read as ``--at`` reads it.

    Raises:
        UsageError: the text is something else.
    """
    from kelr.sources.metadata_log import replaying  # noqa: PLC0415 - not for --help

    if text is None:
        return None
    stripped = text.strip()
    if stripped and not _AGO.sub("", stripped):
        ago_ms = sum(int(number) * _UNITS_MS[unit] for number, unit in _AGO.findall(stripped))
        return Moment(at_ms=max(0, now_ms - ago_ms))
    try:
        found = replaying.read_moment(stripped)
    except UsageError:
        raise UsageError(f"{option} {text!r} is no moment", next_step=_NEXT) from None
    return Moment(offset=found.offset, at_ms=found.time_ms)
