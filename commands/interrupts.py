"""Ctrl-C before anything was changed: that is said, so that nobody has to look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_changed_yet(what: str = "nothing was changed") -> Iterator[None]:
    """Around, or as the decorator of, what only reads and asks: an interruption says so."""
    try:
        yield
    except KeyboardInterrupt as interruption:
        raise KeyboardInterrupt(what) from interruption
