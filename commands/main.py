"""The entry point: a shell that completes a line is answered; everything else is a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from kelr.interrupts import INTERRUPTED, interruptible

INTERNAL_ERROR = 70
"""Exit code of a defect in kelr itself (EX_SOFTWARE of sysexits)."""
PIPE_CLOSED = 141
"""Exit code when the reader of stdout went away: 128 and SIGPIPE, as for a program that does not catch it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run kelr and return its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with interruptible():
            return _run(words)
    except KeyboardInterrupt:  # while kelr was loaded, or told how a command ended
        return interrupted()


def interrupted(what: str = "") -> int:
    """Say so; the exit code."""
    with suppress(OSError, AttributeError):
        sys.stderr.write(f"kelr: interrupted{f': {what}' if what else ''}\n")
        sys.stderr.flush()
    return INTERRUPTED


def _run(words: list[str]) -> int:
    if os.environ.get("_KELR_COMPLETE"):  # Typer's scripts set it; that of PowerShell leaves it empty
        from kelr.commands.complete import answer  # noqa: PLC0415

        return answer()
    from kelr.commands.running import run  # noqa: PLC0415

    return run(words)
