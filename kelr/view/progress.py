"""The line on a terminal that counts while long work goes on."""

from __future__ import annotations

import os
import shutil
from typing import TextIO

from kelr.view.styled import cleaned

_CLEAR = "\r\x1b[K"


class ProgressLine:
    """Counts on the last line of the terminal that a stream is; does nothing in a pipe.

    Kept narrower than the terminal: a line that wraps cannot be cleared.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = False

    def show(self, done: int, total: int, *, what: str = "") -> None:
        """Show the count in place of the one before; where there is no room for `what`, the numbers alone."""
        if not self._stream.isatty():
            return
        room = _columns(self._stream) - 1
        count = f"{done:,} of {total:,}"
        text = f"{what}: {count}" if what and len(what) + len(count) + 2 <= room else count
        self._stream.write(_CLEAR + cleaned(text)[:room])
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away, if it is there."""
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = False


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or shutil.get_terminal_size().columns
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns
