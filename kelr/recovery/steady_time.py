"""Moments by a clock that nobody sets: how long ago something was, in another process too."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of one boot of one machine. It is compared with others of the same boot alone."""

    boot_id: str | None
    """Linux's id of the boot; None: not known, and neither is how long ago it was."""
    ms: int
    """Milliseconds since the boot, suspension included (CLOCK_BOOTTIME)."""

    def age_s(self, now: Moment) -> float:
        """How long ago this was at least, in seconds: 0 where that is not known, as after a reboot."""
        known = self.boot_id is not None and self.boot_id == now.boot_id
        return max(0.0, (now.ms - self.ms) / 1000) if known else 0.0


UNKNOWN = Moment(None, 0)
"""When it was is not known."""


@dataclass(frozen=True, slots=True)
class WrittenAt:
    """When something was written down: by the wall clock, for people, and by one that nobody sets."""

    ms: int = 0
    """Milliseconds since 1970 UTC."""
    moment: Moment = UNKNOWN

    def now_of(self, then_ms: int, now: WrittenAt) -> int:
        """When `then_ms`, by the wall clock as it was set here, is by that of `now`: it may have been set in between.
        In another boot nothing tells of that."""
        same_boot = self.moment.boot_id is not None and self.moment.boot_id == now.moment.boot_id
        return then_ms - self.ms + self.moment.ms - now.moment.ms + now.ms if same_boot else then_ms


def now() -> Moment:
    """Now; `UNKNOWN` where the system has no such clock."""
    boot_id = _boot_id()
    return UNKNOWN if boot_id is None else Moment(boot_id, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)


@cache
def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip() or None
    except OSError:
        return None
