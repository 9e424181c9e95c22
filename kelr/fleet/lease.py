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
    owner = uuid.uuid4().hex.encode()
    if not marks.first(owner + b" 0"):
        _watch(marks, beat_s, stale_s)
        if not marks.first(owner + b" 0"):
            raise _busy(marks.place)

    def check() -> None:
        if not _is_of(owner, marks.read()):
            raise RefusedError(
                f"{marks.place}: another run has taken this lake over, because this one stood still; nothing of this"
                " one was taken",
                next_step="run it again",
            )

    ended = threading.Event()
    beating = threading.Thread(target=_beat, args=(marks, owner, ended, beat_s), daemon=True)
    beating.start()
    try:
        check()
        yield check
    finally:
        ended.set()
        beating.join()
        with suppress(KelrError):  # the next run waits for a minute then, and what ended this one is what is told
            if _is_of(owner, marks.read()):
                marks.delete()


def _is_of(owner: bytes, mark: bytes | None) -> bool:
    return mark is not None and mark.startswith(owner)


def _beat(marks: Marks, owner: bytes, ended: threading.Event, beat_s: float) -> None:
    count = 0
    while not ended.wait(beat_s):
        count += 1
        try:
            if not _is_of(owner, marks.read()):
                return  # taken over
            marks.again(owner + b" %d" % count)
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
