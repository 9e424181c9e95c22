"""The ground that kelr stands on: the clocks of its machine, waiting, and the file system.

Whoever changes a cluster, or waits for it, is given a `Ground` and asks nothing else for the time or for files: tests
give one whose time, and disk, are their own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kelr.files import FILES, Files

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment by a clock that nobody sets. Another process can compare it with others of the same boot alone."""

    boot_id: str | None
    """Linux's id of the boot; None: not known, and neither is, in another process, how long ago it was."""
    ms: int
    """Milliseconds since the boot, suspension included (CLOCK_BOOTTIME); without a `boot_id` since any moment."""

    def age_s(self, now: Moment) -> float:
        """How long ago this was at least, in seconds: 0 where that is not known, as after a reboot."""
        known = self.boot_id is not None and self.boot_id == now.boot_id
        return max(0.0, (now.ms - self.ms) / 1000) if known else 0.0


UNKNOWN = Moment(None, 0)
"""When it was is not known."""


@dataclass(frozen=True, slots=True)
class Instant:
    """When something was: by the wall clock, for people, and by one that nobody sets."""

    ms: int = 0
    """Milliseconds since 1970 UTC."""
    moment: Moment = UNKNOWN

    def now_of(self, then_ms: int, now: Instant) -> int:
        """When `then_ms`, by the wall clock as it was set here, is by that of `now`: it may have been set in between.
        In another boot nothing tells of that."""
        same_boot = self.moment.boot_id is not None and self.moment.boot_id == now.moment.boot_id
        return then_ms - self.ms + self.moment.ms - now.moment.ms + now.ms if same_boot else then_ms


class Ground:
    """The machine that kelr runs on."""

    files: Files = FILES

    def now_ms(self) -> int:
        """The wall clock, in milliseconds since 1970 UTC: for people, and for what people have written. It steps."""
        return time.time_ns() // 1_000_000

    def moment(self) -> Moment:
        """Now, by a clock that nobody sets."""
        boot_id = _boot_id()
        if boot_id is None:
            return Moment(None, time.monotonic_ns() // 1_000_000)
        return Moment(boot_id, time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000)

    def sleep(self, seconds: float) -> None:
        """Wait so long."""
        time.sleep(seconds)

    def steady_s(self) -> float:
        """Seconds by the clock that nobody sets, for waits within a process."""
        return self.moment().ms / 1000

    def now(self) -> Instant:
        """Now, by both clocks."""
        return Instant(self.now_ms(), self.moment())


MACHINE = Ground()
"""This machine."""


@cache
def _boot_id() -> str | None:
    try:
        return _BOOT_ID.read_text().strip() or None
    except OSError:
        return None
