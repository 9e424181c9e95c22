"""The time of a simulated cluster: that of the machine, or one that a test turns by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since 1970 UTC."""

    virtual: bool
    """Whether it stands still until it is turned."""

    def now_ms(self) -> int:
        """How late it is."""


class MachineClock:
    """Goes with the machine's; it never goes back."""

    virtual = False

    def __init__(self) -> None:
        self._offset_ms = int(time.time() * 1000) - int(time.monotonic() * 1000)

    def now_ms(self) -> int:
        return self._offset_ms + int(time.monotonic() * 1000)


class VirtualClock:
    """Stands still until `advance`."""

    virtual = True

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, duration_ms: int) -> None:
        """Turn it forward.

        Raises:
            ValueError: backward.
        """
        if duration_ms < 0:
            raise ValueError(f"a clock is not turned back by {-duration_ms} ms")
        self._now_ms += duration_ms
