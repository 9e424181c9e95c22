"""``kelr watch`` on a terminal: what it shows, which keys it takes, and that the terminal is given back as it was."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kelr.sources.snapshot_file import write_snapshot
from tests.incident import INCIDENT

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l"
PATIENCE_S = 30.0
# The incident answers for a cluster, in a process of its own.
PROGRAM = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pathlib import Path
import kelr.commands.session as session
from kelr.commands.main import main
from kelr.sources.snapshot_file import SnapshotFileSource
session.open_source = lambda settings: SnapshotFileSource(Path(sys.argv[1]))
{more}
sys.exit(main(["watch", "-b", "kafka-1:9092", "--interval", "0.2", *sys.argv[2:]]))
"""
BREAKS = """
import kelr.commands.watch_screen as screen
def breaks(*_):
    raise ZeroDivisionError("oh")
screen.draw = breaks
"""
IMPATIENT = """
import os, signal
from kelr.view.watch.terminal import Terminal
back = Terminal._give_back
def pressed_again(terminal):
    os.kill(os.getpid(), signal.SIGINT)
    back(terminal)
Terminal._give_back = pressed_again
"""


class OnTerminal:
    """A kelr whose terminal is the other end of a pseudo-terminal."""

    def __init__(self, snapshot: Path, *arguments: str, more: str = "") -> None:
        self.keyboard, self._terminal = pty.openpty()
        self.resize(100, 30)
        self.before = termios.tcgetattr(self._terminal)
        self.written = b""
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(more=more), str(snapshot), *arguments],
            stdin=self._terminal,
            stdout=self._terminal,
            stderr=self._terminal,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color"},
        )

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, keys: bytes) -> None:
        os.write(self.keyboard, keys)

    def until(self, text: bytes) -> bytes:
        """What was written up to this text, which has to come; what comes then is not looked at."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.written:
            readable, _, _ = select.select([self.keyboard], [], [], max(0.0, deadline - time.monotonic()))
            assert readable, f"{text!r} did not come in {self.written!r}"
            self.written += os.read(self.keyboard, 65_536)
        found, _, self.written = self.written.partition(text)
        return found

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

    def _read(self, wait_s: float) -> bool:
        readable, _, _ = select.select([self.keyboard], [], [], wait_s)
        if readable:
            self.written += os.read(self.keyboard, 65_536)
        return bool(readable)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for end in (self.keyboard, self._terminal):
            with contextlib.suppress(OSError):
                os.close(end)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "incident.kelr"
    write_snapshot(INCIDENT, path)
    return path


@pytest.fixture
def watching(snapshot: Path) -> Iterator[OnTerminal]:
    """A watch whose list is on the screen."""
    watch = OnTerminal(snapshot)
    try:
        watch.until(ENTER)
        watch.until(b"orders:2")
        yield watch
    finally:
        watch.close()


def given_back(watch: OnTerminal) -> None:
    """Nothing of the screen is left, and keys are read as before."""
    assert watch.settings == watch.before
    assert watch.written.count(ENTER) == 0
    assert watch.written.count(LEAVE) == 1


def test_keys_and_the_end(watching: OnTerminal) -> None:
    assert watching.settings != watching.before
    watching.press(b"\x1b[B\r")
    watching.until(b"Kafka by itself elects nobody now")
    watching.press(b"\x1b")
    watching.until(b"s sort (situation)")
    watching.press(b"/pay\r")
    watching.until(b"'pay': 1 of 4")
    watching.press(b"q")
    assert watching.ended() == 0
    given_back(watching)
    assert watching.written.endswith(b"UTC: 2 leaderless, 1 unsafe of 5 partitions\r\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_ends_it(watching: OnTerminal, number: signal.Signals) -> None:
    watching.process.send_signal(number)
    assert watching.ended() == -number
    given_back(watching)


def test_ctrl_c(watching: OnTerminal) -> None:
    watching.press(b"\x03")
    assert watching.ended() == 130
    given_back(watching)
    assert b"kelr: interrupted\r\n" in watching.written
    assert b"Traceback" not in watching.written


def test_ctrl_c_pressed_again_while_the_terminal_is_given_back(snapshot: Path) -> None:
    watch = OnTerminal(snapshot, more=IMPATIENT)
    try:
        watch.until(ENTER)
        watch.until(b"orders:2")
        watch.press(b"\x03")
        assert watch.ended() == 130
        given_back(watch)
    finally:
        watch.close()


def test_ctrl_z_gives_the_terminal_back_and_takes_it_again(watching: OnTerminal) -> None:
    # A process group of its own, with nobody to wake it, is not stopped: it gives the terminal back and goes on.
    watching.press(b"\x1a")
    watching.until(LEAVE)
    watching.until(ENTER)
    watching.until(b"orders:2")
    watching.press(b"q")
    assert watching.ended() == 0
    given_back(watching)


def test_another_size_is_drawn_whole(watching: OnTerminal) -> None:
    watching.resize(41, 12)
    watching.process.send_signal(signal.SIGWINCH)
    watching.until(b"\x1b[2J")
    watching.until(b"\x1b[12;1H")
    watching.resize(20, 5)
    watching.process.send_signal(signal.SIGWINCH)
    watching.until(b"20x5 is too small")
    watching.press(b"q")
    assert watching.ended() == 0


def test_a_defect(snapshot: Path) -> None:
    watch = OnTerminal(snapshot, more=BREAKS)
    try:
        watch.until(ENTER)
        assert watch.ended() == 70
        given_back(watch)
        assert watch.written.index(LEAVE) < watch.written.index(b"internal error: ZeroDivisionError: oh")
    finally:
        watch.close()


def test_a_terminal_that_cannot_show_a_screen_gets_lines(snapshot: Path) -> None:
    more = "import os\nos.environ['TERM'] = 'dumb'\n"
    watch = OnTerminal(snapshot, more=more)
    try:
        assert ENTER not in watch.until(b"orders:2: leader none")
        watch.press(b"\x03")
        assert watch.ended() == 130
    finally:
        watch.close()
