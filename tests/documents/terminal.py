"""kelr on a terminal, in this process: what somebody sees who types a command."""

from __future__ import annotations

import io
import os
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from kelr.commands.main import main

ADDRESS = "kafka-1:9092"
COLUMNS = 110
"""How wide the documents' terminal is."""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def see(command: str, snapshot: Path, *, columns: int = COLUMNS, color: bool = False) -> tuple[int, str]:
    """The exit code, and stdout and stderr as they come, of a command that names `ADDRESS`; the snapshot answers."""
    saved = shlex.join(["--snapshot", str(snapshot)])
    words = shlex.split(command.replace(f"-b {ADDRESS}", saved))
    screen = _Terminal()
    environment = {"COLUMNS": str(columns), "TERM": "xterm", **({} if color else {"NO_COLOR": "1"})}
    with mock.patch.dict(os.environ, environment), redirect_stdout(screen), redirect_stderr(screen):
        code = main(words[1:])
    # How old a snapshot is, no cluster would say.
    text = "".join(line for line in screen.getvalue().splitlines(keepends=True) if not line.startswith(str(snapshot)))
    # Where an election could be carried out, a snapshot cannot name.
    return code, text.replace(saved, f"-b {ADDRESS}").replace("-b HOST:PORT", f"-b {ADDRESS}")
