"""A lock for file systems that have none: a file, which whoever holds it writes again every few seconds.

A file that stays as it is for a minute is of a run that was killed. Whoever then takes it over cannot know whether that
run only stood still: so it looks for its own mark once more before it makes anything of its own appear.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from kelr.errors import KelrError, RefusedError

BEATS_EVERY_S = 10.0
STALE_AFTER_S = 60.0
"""Several beats: a long pause of a JVM is not the end of it."""
_READ_AGAIN, _READ_AGAIN_AFTER_S = 5, 0.2
"""An empty file is being written by somebody, or was left so."""


class Marks(Protocol):
    """The file of a lock."""

    @property
    def place(self) -> str:
        """The folder that it is for."""

    def first(self, mark: bytes) -> bool:
        """Write it where there is none; False where there is one."""

    def again(self, mark: bytes) -> None:
        """Write it in place of the one that is there, without a moment in which there is none."""

    def read(self) -> bytes | None:
        """None: there is none. While it is written it may be empty."""

    def delete(self) -> None:
        """Delete it."""


@contextmanager
def leased(
    marks: Marks, *, beat_s: float = BEATS_EVERY_S, stale_s: float = STALE_AFTER_S
) -> Iterator[Callable[[], None]]:
    """Hold a lock; yields what raises RefusedError if another run has taken it over.

    Args:
        beat_s: how often it is written again, in seconds.
        stale_s: how long one must have stood still to be taken over.

    Raises:
        RefusedError: another run holds it.
    """
    held = _Held(marks, uuid.uuid4().hex.encode(), stale_s)
    taken_over = not marks.first(held.mark(0))
    if taken_over:
        _watch(marks, beat_s, stale_s)
        if not marks.first(held.mark(0)):
            raise _busy(marks.place)

    def check() -> None:
        if not held.is_own():
            raise RefusedError(
                f"{marks.place}: this run has lost its lock: another one may have taken this lake over, because"
                " this one stood still; nothing of this one was taken",
                next_step="run it again",
            )

    ended = threading.Event()
    beating = threading.Thread(target=_beat, args=(held, ended, beat_s), daemon=True)
    beating.start()
    try:
        if taken_over:
            # Another run that waited for the same dead one may just have deleted this mark for that one's.
            ended.wait(beat_s)
            if not held.is_own():
                raise _busy(marks.place)
        check()
        yield check
    finally:
        ended.set()
        beating.join(BEATS_EVERY_S)  # a beat that is being written may take longer than the time between two
        with suppress(KelrError):  # the next run waits for a minute then, and what ended this one is what is told
            if not beating.is_alive() and held.is_own():
                marks.delete()


class _Held:
    """A lock that a run has, asked and written by one thread at a time: while one writes, the other finds it empty."""

    def __init__(self, marks: Marks, owner: bytes, stale_s: float) -> None:
        self._marks, self._owner, self._stale_s = marks, owner, stale_s
        self._turn = threading.Lock()
        self._written_s = time.monotonic()
        self._cut_short = False
        """The last write failed: it may have left the file empty."""

    def mark(self, count: int) -> bytes:
        """What this run writes the so manieth time."""
        return self._owner + b" %d" % count

    def is_own(self) -> bool:
        """Whether this run still has it. Raises KelrError where it cannot be read."""
        with self._turn:
            return self._is_own()

    def renewed(self, count: int) -> bool:
        """Write it again; False: this run has it no more. Raises KelrError where it cannot be read or written."""
        with self._turn:
            if not self._is_own():
                return False
            began_s, self._cut_short = time.monotonic(), True
            self._marks.again(self.mark(count))
            self._written_s, self._cut_short = began_s, False
            return True

    def _is_own(self) -> bool:
        mark = self._marks.read()
        for _ in range(_READ_AGAIN):
            if mark != b"":
                break
            time.sleep(_READ_AGAIN_AFTER_S)
            mark = self._marks.read()
        if mark == b"":
            # Left so by this run's own write, if nobody can have seen it stand still for long enough since.
            return self._cut_short and time.monotonic() - self._written_s < self._stale_s
        return mark is not None and mark.startswith(self._owner)


def _beat(held: _Held, ended: threading.Event, beat_s: float) -> None:
    count = 0
    while not ended.wait(beat_s):
        count += 1
        try:
            if not held.renewed(count):
                return  # taken over
        except KelrError:
            continue  # whoever holds it finds out before it makes anything appear


def _watch(marks: Marks, beat_s: float, stale_s: float) -> None:
    """Returns when nobody holds the lock any more: it has gone, or stood still, and was deleted."""
    seen, until = marks.read(), time.monotonic() + stale_s
    while time.monotonic() < until:
        time.sleep(min(beat_s / 2, stale_s))
        now = marks.read()
        if now is None:
            return
        if now != seen:
            raise _busy(marks.place)
    if marks.read() == seen:
        marks.delete()


def _busy(place: str) -> RefusedError:
    return RefusedError(
        f"{place}: another run of kelr fleet is changing this lake",
        next_step="wait until it has ended",
        code="lake-busy",
    )
