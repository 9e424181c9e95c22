"""Ctrl-C, which comes through at every moment and ends a run in time.

Python raises KeyboardInterrupt between any two instructions of the main thread. In a finalizer and in a callback it
is printed there, and lost; in the machinery of imports it can leave a module locked for ever, for which whoever
imports it next then waits. So, within `interruptible`, an interrupt is held back where it would do that, raised again
where it was lost, and `GRACE_S` later the process ends, whatever it waits for. A second one ends it at once.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and SIGINT, as shells have it."""
GRACE_S = 2.0
"""How long a run that is interrupted has to put away what it holds, unless it takes the interrupt (`taken`)."""
_AGAIN_S = 0.005
"""How long after it was held back or lost an interrupt is raised again."""
_SAME_PRESS_S = 0.1
"""Nobody presses Ctrl-C twice in that time; a program that passes on what the terminal has sent us too does."""


def end_at_once() -> NoReturn:
    """End the process as interrupted, without Python's own shutdown, which waits for threads."""
    with suppress(OSError):
        os.write(2, b"kelr: interrupted\n")
    os._exit(INTERRUPTED)


class _Interrupts:
    """The interrupts of this process."""

    def __init__(self) -> None:
        self.pending = False
        """One came, and nobody has taken it."""
        self.lost = False
        """It has to be raised yet, or again."""
        self._count = 0
        self._at = -_SAME_PRESS_S
        self._again = False

    def handle(self, _number: int, frame: FrameType | None) -> None:
        """SIGINT's handler."""
        again, self._again = self._again, False
        if not (self.lost if again else self._begun()):
            return
        self.lost = _is_importing(frame)
        if not self.lost:
            raise KeyboardInterrupt

    def _begun(self) -> bool:
        """Whether it is one more interrupt."""
        now = time.monotonic()
        if now - self._at < _SAME_PRESS_S:
            return False
        self._at = now
        if self.pending:
            end_at_once()
        self.pending = True
        self._count += 1
        # Not a threading.Thread: its locks may be held by what is interrupted here.
        _thread.start_new_thread(self._see_to_it, (self._count,))
        return True

    def _see_to_it(self, count: int) -> None:
        """In a thread of its own, until the interrupt is taken."""
        deadline = time.monotonic() + GRACE_S
        while self.pending and self._count == count:
            if time.monotonic() > deadline:
                end_at_once()
            time.sleep(_AGAIN_S)
            if self.lost:
                self._again = True
                signal.pthread_kill(_main_thread(), signal.SIGINT)  # wakes a main thread that waits, too


def _is_importing(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def _main_thread() -> int:
    return threading.main_thread().ident or 0


_interrupts = _Interrupts()


@contextmanager
def interruptible() -> Iterator[None]:
    """Around a whole run: Ctrl-C raises KeyboardInterrupt in it, and ends it in time.

    Nothing of that where SIGINT is ignored, as in the background of a shell.
    """
    before, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if _elsewhere() or before in {signal.SIG_IGN, signal.SIG_DFL, None}:
        yield
        return

    def unraisable(error: Any) -> None:
        if _interrupts.pending and issubclass(error.exc_type, KeyboardInterrupt):
            _interrupts.lost = True
        else:
            hook(error)

    sys.unraisablehook = unraisable
    signal.signal(signal.SIGINT, _interrupts.handle)
    try:
        yield
    finally:
        _interrupts.lost = False
        signal.signal(signal.SIGINT, before)
        taken()
        sys.unraisablehook = hook


def taken() -> None:
    """Whoever caught the KeyboardInterrupt brings something to its end, in a time of its own: the next one is the first
    again."""
    _interrupts.pending = _interrupts.lost = False


def is_pending() -> bool:
    """Whether an interrupt has come that nobody took: what goes wrong then may be its doing."""
    return _interrupts.pending


def _elsewhere() -> bool:
    return threading.current_thread() is not threading.main_thread()
