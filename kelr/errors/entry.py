"""One entry of the catalogue of errors."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.errors import ExitCode


@dataclass(frozen=True, slots=True)
class Entry:
    """One code, told to somebody who has just met it."""

    code: str
    """In kebab-case; it stays the same in later versions."""
    exit_code: ExitCode
    title: str
    """What happened, without a full stop."""
    meaning: str
    """What it says of the cluster or the file, and what was done or left alone."""
    cause: str
    """How it comes about, the likeliest first."""
    remedy: str
    """What to do."""
