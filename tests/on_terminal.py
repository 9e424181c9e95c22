"""A program at a pseudo-terminal, and what somebody who sits there sees of it."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from kelr.view.styled import width_of

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l\x1b[?25h"
"""What is written before and after a screen."""
PATIENCE_S = 30.0
FOREGROUND = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
"""
"""A program begins as in the foreground of this terminal: tests that run in the background of a shell (`make test &`)
hand ignored SIGINT and SIGQUIT on."""
KELR = f"""
{FOREGROUND}
from kelr.commands.main import main
sys.exit(main(sys.argv[1:]))
"""
"""kelr as the program of this terminal, as a shell would start it."""
_SEQUENCE = re.compile(r"\x1b(?:\[([?<>0-9;]*\$?)([A-Za-z])|\][0-9]+;[^\x07]*\x07)")
_BEGUN = re.compile(r"\x1b(\[[?<>0-9;]*\$?|\][0-9]*(;[^\x07]*)?)?")


class Screen:
    """The text that is on a terminal after what was written to it: as much of one as kelr's screens make use of.

    Raises:
        ValueError: a sequence came that it does not know.
    """

    def __init__(self, columns: int, lines: int) -> None:
        # With Ctrl-C the kernel drops what a terminal has not been sent yet, even of a character or a sequence.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self.resize(columns, lines)

    def resize(self, columns: int, lines: int) -> None:
        """Another size; what a real terminal then shows hangs on the terminal, so nothing is shown.

        What the program writes before it knows is meant for the old size: as on a real terminal it is shown as far as
        there is room, and places outside are those at the edge.
        """
        self._columns, self._lines = columns, lines
        self._clear()

    def feed(self, data: bytes) -> None:
        text = self._rest + self._decoder.decode(data)
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
                continue
            match = _SEQUENCE.match(text, at)
            if match is None:
                begun = _BEGUN.match(text, at)
                assert begun is not None
                if begun.end() == len(text):
                    break  # its end has not come yet
                if text[begun.end()] == "\x1b":
                    at = begun.end()  # Ctrl-C has cut it short; the next sequence ends it, as on a real terminal
                    continue
                raise ValueError(f"an unknown sequence: {text[at : at + 10]!r}")
            if match[2] is not None:  # the others are titles, or shapes of the mouse's pointer
                self._obey(match[1], match[2])
            at = match.end()
        self._rest = text[at:]

    @property
    def text(self) -> str:
        """The lines, without the blanks at their ends."""
        return "\n".join("".join(cells).rstrip() for cells in self._cells)

    def _clear(self) -> None:
        self._cells = [[" "] * self._columns for _ in range(self._lines)]
        self._row = self._column = 0

    def _obey(self, arguments: str, kind: str) -> None:
        if kind == "H":
            row, column = (int(one) for one in (arguments or "1;1").split(";"))
            self._row, self._column = min(row, self._lines) - 1, min(column, self._columns) - 1
        elif kind == "K" and not arguments:
            self._cells[self._row][self._column :] = [" "] * (self._columns - self._column)
        elif (kind, arguments) in {("J", "2"), ("h", "?1049"), ("l", "?1049")}:
            self._clear()
        elif kind not in {"m", "h", "l", "p", "u"}:
            raise ValueError(f"an unknown sequence: {arguments}{kind}")

    def _put(self, character: str) -> None:
        if character == "\r":
            self._column = 0
        elif character == "\n":
            self._row = min(self._row + 1, self._lines - 1)
        else:
            size = width_of(character)
            # Kelr's screens switch wrapping off: what has no room any more goes to the edge.
            at = min(self._column, self._columns - max(size, 1))
            self._cells[self._row][at : at + size] = [character, *[""] * (size - 1)]
            self._column = at + size


class OnTerminal:
    """A process whose terminal is the other end of a pseudo-terminal.

    Args:
        command: its words.
        environ: variables of it beside, or in place of, those of this process.
    """

    def __init__(
        self, command: Sequence[str], *, columns: int = 100, lines: int = 30, environ: dict[str, str] | None = None
    ) -> None:
        self.keyboard, self._terminal = pty.openpty()
        self._screen = Screen(columns, lines)
        self._size(columns, lines)
        self.before = termios.tcgetattr(self._terminal)
        self.written = b""
        self.process = subprocess.Popen(
            list(command),
            stdin=self._terminal,
            stdout=self._terminal,
            stderr=self._terminal,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", **(environ or {})},
        )

    @classmethod
    def kelr(cls, *arguments: str, columns: int = 100, lines: int = 30, environ: dict[str, str] | None = None) -> Self:
        """kelr with these arguments."""
        return cls([sys.executable, "-c", KELR, *arguments], columns=columns, lines=lines, environ=environ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for end in (self.keyboard, self._terminal):
            with contextlib.suppress(OSError):
                os.close(end)

    def resize(self, columns: int, lines: int) -> None:
        """The window gets another size, and the process is told."""
        self.has_become(columns, lines)
        self._size(columns, lines)

    def has_become(self, columns: int, lines: int) -> None:
        """The program has given the window another size itself; or `resize` gives it one."""
        self._screen.resize(columns, lines)

    def press(self, keys: bytes) -> None:
        os.write(self.keyboard, keys)

    def hang_up(self) -> None:
        """The terminal's window is closed."""
        for end in (self._terminal, self.keyboard):
            os.close(end)

    def until_stopped(self) -> None:
        """Until the process has been stopped, as by Ctrl-Z."""
        deadline = time.monotonic() + PATIENCE_S
        while Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "T":
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def until(self, text: bytes) -> bytes:
        """What was written up to this text, which has to come; what comes then is not looked at."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.written:
            assert self._read(deadline - time.monotonic()), f"{text!r} did not come in {self.written!r}"
        found, _, self.written = self.written.partition(text)
        return found

    def seen(self, *patterns: str, patience_s: float = PATIENCE_S) -> str:
        """The screen, once each of these regular expressions is found in it."""
        return self.shown(
            lambda text: all(re.search(one, text, re.MULTILINE) for one in patterns), patterns, patience_s=patience_s
        )

    def shown(self, holds: Callable[[str], bool], what: object, *, patience_s: float = PATIENCE_S) -> str:
        """The screen, once this holds for it."""
        deadline = time.monotonic() + patience_s
        while True:
            # What has come already belongs to the same moment.
            while self._read(0.0):
                pass
            text = self._screen.text
            if holds(text):
                return text
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"{what} does not hold for\n{text}"
            assert self.process.poll() is None, f"it has ended, with\n{text}"
            self._read(min(0.25, left_s))

    def ended(self) -> int:
        """Its exit code, once it has ended, with the rest of what it wrote in `written`."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.written
            self._read(0.01)
        while self._read(0.0):
            pass
        return self.process.returncode

    @property
    def settings(self) -> list[object]:
        return termios.tcgetattr(self._terminal)

    def given_back(self) -> None:
        """Nothing of the screen is left, and keys are read as before."""
        assert self.settings == self.before
        assert self.written.count(ENTER) == 0
        assert self.written.count(LEAVE) == 1

    def _size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self, wait_s: float) -> bool:
        readable, _, _ = select.select([self.keyboard], [], [], max(0.0, wait_s))
        if readable:
            data = os.read(self.keyboard, 65_536)
            self.written += data
            self._screen.feed(data)
        return bool(readable)
