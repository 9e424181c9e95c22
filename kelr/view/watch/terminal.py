"""The terminal itself: taken over while a screen is shown, and given back as it was, whatever ends it.

It is the one module of the screen that reads keys, writes to the terminal and handles signals.
"""

from __future__ import annotations

import codecs
import os
import select
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self, TextIO

from kelr.interrupts import before_the_end

# From the bytes that a terminal sends to the names of keys.

ESCAPE = "esc"
_SEQUENCES = {
    "[A": "up",
    "[B": "down",
    "OA": "up",
    "OB": "down",
    "[5~": "pgup",
    "[6~": "pgdn",
    "[H": "home",
    "[F": "end",
    "OH": "home",
    "OF": "end",
    "[1~": "home",
    "[4~": "end",
}
_CONTROLS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x15": "kill", "\x0c": "redraw"}
_LONGEST = 16
"""Of a sequence: what is longer is none."""


class KeyDecoder:
    """Makes keys of bytes as they arrive: a printable character is its own name, others have names such as ``pgup``.

    A sequence may come in pieces. A lone Escape is one only when nothing follows it: `flush` says so.
    """

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = ""

    @property
    def waiting(self) -> bool:
        """Whether what came last may be the beginning of a sequence."""
        return bool(self._pending)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete."""
        self._pending += self._text.decode(data)
        return list(self._keys())

    def flush(self) -> list[str]:
        """Nothing more came: an Escape was the key, and what stood behind it was typed."""
        pending, self._pending = self._pending, ""
        return [] if not pending else [ESCAPE, *(one for one in pending[1:] if one.isprintable())]

    def _keys(self) -> Iterator[str]:
        while self._pending:
            if self._pending[0] != "\x1b":
                character, self._pending = self._pending[0], self._pending[1:]
                if character in _CONTROLS:
                    yield _CONTROLS[character]
                elif character.isprintable():
                    yield character
                continue
            if self._pending.startswith("\x1b\x1b"):
                self._pending = self._pending[1:]
                yield ESCAPE
                continue
            length = _sequence_length(self._pending)
            if length is None:
                return
            sequence, self._pending = self._pending[1:length], self._pending[length:]
            if sequence in _SEQUENCES:
                yield _SEQUENCES[sequence]


def _sequence_length(text: str) -> int | None:
    """How many characters the sequence at the beginning has; None where it is not complete. One that is none is
    taken away with the character behind its Escape."""
    if len(text) < 2:
        return None
    if text[1] == "O":
        return 3 if len(text) >= 3 else None
    if text[1] != "[":
        return 2
    for index, character in enumerate(text[2:_LONGEST], start=2):
        if "@" <= character <= "~":
            return index + 1
    return None if len(text) < _LONGEST else 2


_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[0m"
"""The alternate screen, no cursor, no wrapping at the edge."""
_LEAVE = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
_ESCAPE_S = 0.05
"""How long an Escape may wait for the rest of a sequence."""


class Ended(BaseException):
    """A signal asked the process to end: raised where the screen waits, so that everything is put back on the way out.

    Args:
        number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Terminal:
    """Takes the terminal over; use as a context manager in the main thread.

    Ctrl-C raises KeyboardInterrupt as ever; pressed again, it does not cut short the giving back. SIGTERM, SIGHUP
    and SIGQUIT (Ctrl-\\) raise `Ended` out of `wait`. Ctrl-Z gives the terminal back, stops the process, and takes the
    terminal over again when it goes on.
    """

    def __init__(self, keyboard: TextIO, screen: TextIO) -> None:
        self._keyboard, self._screen = keyboard.fileno(), screen.fileno()
        self._decoder = KeyDecoder()
        self._before: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._wakes: tuple[int, int] = (-1, -1)
        self._wakeup_before = -1
        self._ended: int | None = None
        self._giving_back = False
        self.changed = True
        """Whether the size changed, or somebody else had the screen, since this was last set to False."""

    def __enter__(self) -> Self:
        self._wakes = os.pipe()
        for end in self._wakes:
            os.set_blocking(end, False)
        self._wakeup_before = signal.set_wakeup_fd(self._wakes[1], warn_on_full_buffer=False)
        handlers: dict[int, Callable[[int, FrameType | None], None]] = {
            signal.SIGINT: self._interrupt,
            signal.SIGTERM: self._end,
            signal.SIGHUP: self._end,
            signal.SIGQUIT: self._end,
            signal.SIGTSTP: self._suspend,
            signal.SIGWINCH: self._resized,
        }
        self._handlers = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        self._at_the_end = before_the_end(self._give_back)
        try:
            self._take()
        except BaseException:
            self._give_back_undisturbed()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._give_back_undisturbed()

    def _give_back_undisturbed(self) -> None:
        """Put everything back, whatever is pressed meanwhile."""
        self._giving_back = True
        try:
            self._give_back()
        finally:
            self._restore_signals()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            size = os.get_terminal_size(self._screen)
        except OSError:
            size = shutil.get_terminal_size()
        return size.columns or 80, size.lines or 24

    def write(self, text: str) -> int:
        """Write, and tell how many bytes that was. A terminal that is gone raises OSError."""
        data = text.encode("utf-8", "replace")
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._screen, rest) :]
            except BlockingIOError:
                select.select([], [self._screen], [])
        return len(data)

    def wake(self) -> None:
        """End a `wait` early; may be called from any thread."""
        with suppress(BlockingIOError, OSError):
            os.write(self._wakes[1], b"\0")

    def wait(self, seconds: float) -> list[str]:
        """Keys that are pressed within this time; empty where it passes, or something woke it.

        Raises:
            Ended: a signal asked the process to end.
            OSError: the terminal is gone.
        """
        self._check()
        wait_s = _ESCAPE_S if self._decoder.waiting else max(0.0, seconds)
        readable, _, _ = select.select([self._keyboard, self._wakes[0]], [], [], wait_s)
        self._check()
        if self._wakes[0] in readable:
            with suppress(BlockingIOError):
                os.read(self._wakes[0], 4096)
        if self._keyboard in readable:
            data = os.read(self._keyboard, 4096)
            if not data:
                raise Ended(signal.SIGHUP)
            return self._decoder.feed(data)
        return self._decoder.flush() if not readable else []

    def _check(self) -> None:
        if self._ended is not None:
            raise Ended(self._ended)

    def _take(self) -> None:
        import termios  # noqa: PLC0415 - not on Windows
        import tty  # noqa: PLC0415

        self._before = termios.tcgetattr(self._keyboard)
        tty.setcbreak(self._keyboard, termios.TCSADRAIN)
        self.write(_ENTER)
        self.changed = True

    def _give_back(self) -> None:
        import termios  # noqa: PLC0415 - as above

        with suppress(OSError):
            self.write(_LEAVE)
        if self._before is not None:
            with suppress(termios.error):
                termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._before)
            self._before = None

    def _restore_signals(self) -> None:
        before_the_end(self._at_the_end)
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for end in self._wakes:
            os.close(end)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._giving_back:
            return
        before = self._handlers.get(signal.SIGINT)
        if not callable(before):
            raise KeyboardInterrupt
        before(number, frame)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        self._ended = number

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        self.changed = True

    def _suspend(self, _number: int, _frame: FrameType | None) -> None:
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        # To this thread: sent to the process, another thread may get it, and this one would take the terminal again.
        signal.pthread_kill(threading.get_ident(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._suspend)  # here somebody has made it go on (fg)
        self._take()


def end_by_signal(number: int) -> None:
    """End this process as the signal would have, now that everything is put back."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
