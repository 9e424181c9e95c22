"""A shell in a pseudo terminal, at which somebody presses Tab.

``kelr`` is a program on its path: asked for candidates it is kelr itself, and otherwise it shows each argument in angle
brackets, so that a test sees what a command would be given.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0
"""How long something is waited for that has to come."""

_KELR = """#!/bin/sh
if [ -n "$_KELR_COMPLETE" ]; then exec "$PYTHON" -m kelr "$@"; fi
printf "<%s>" "$@"; echo
"""
_BASH = (
    "bind 'set bell-style none'; bind 'set completion-query-items 0'; bind 'set page-completions off'",
    "bind 'set enable-bracketed-paste off'",
    "set -u",  # as some have it
)
_ZSH = (
    "unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; LISTMAX=9999; unset zle_bracketed_paste",
    "autoload -Uz compinit; compinit -u -D",
)


@contextmanager
def program_in_path(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The variables with ``kelr`` first in the path."""
    with tempfile.TemporaryDirectory() as directory:
        kelr = Path(directory, "kelr")
        kelr.write_text(_KELR, encoding="utf-8")
        kelr.chmod(0o755)
        yield {**environ, "PYTHON": sys.executable, "PATH": f"{directory}:{environ['PATH']}"}


class Shell:
    """bash or zsh, started without anybody's settings; to be closed."""

    def __init__(self, program: str, environ: Mapping[str, str], directory: Path) -> None:
        zsh = program.endswith("zsh")
        words = [program, "-f", "-i"] if zsh else [program, "--norc", "--noprofile", "-i"]
        self._typed = 0
        self._closing = ExitStack()
        variables = self._closing.enter_context(program_in_path(environ))
        child, self._terminal = pty.fork()
        if child == 0:
            os.chdir(directory)
            os.execve(program, words, {**variables, "TERM": "dumb"})
        self._child = child
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self._heard = ""
        script = ROOT / "completions" / ("_kelr" if zsh else "kelr.bash")
        for line in (*(_ZSH if zsh else _BASH), f"source {script}", "PS1='$ '"):
            self._run(line)

    def close(self) -> None:
        """End it."""
        os.close(self._terminal)
        os.waitpid(self._child, 0)
        self._closing.close()

    def completed(self, line: str) -> str:
        """What kelr is given when this is typed, Tab pressed, and the line sent off."""
        self._heard = ""
        self._type(f"{line}\t\n")
        return self._until(r"((?:<[^\n]*>)+)\r?\n").group(1)

    def offered(self, line: str, count: int) -> list[str]:
        """The words that are shown when Tab is pressed again and again; then the line is given up."""
        self._heard = ""
        self._type(f"{line}\t\t")
        found = self._until(rf"\n((?:[^\s]+[ \r\n]+){{{count}}})").group(1).split()
        self._type("\x03")
        self._run(":")
        return found

    def silent(self, line: str) -> str:
        """All that is to be seen from the line until the shell takes the next one, where Tab offers nothing."""
        self._heard = ""
        self._type(f"{line}\t\n")
        self._until(r"((?:<[^\n]*>)+)\r?\n\$ ")
        return self._heard

    def _run(self, line: str) -> None:
        self._typed += 1
        # The echo of the line has the sum, its output the result.
        self._type(f"{line}; echo ready$(({self._typed} + 1000))\n")
        self._until(f"ready{self._typed + 1000}\r?\n")

    def _type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def _until(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            found = re.search(pattern, self._heard)
            if found is not None:
                return found
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._terminal], [], [], left)[0]:
                raise AssertionError(f"{pattern} did not come; this did: {self._heard!r}")
            self._heard += os.read(self._terminal, 65536).decode(errors="replace")
