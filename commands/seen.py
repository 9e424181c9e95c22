"""Whether a cluster shows anything at all: one that shows nothing is not one that is well."""

from __future__ import annotations

import typer

from kelr.errors import ExitCode
from kelr.model import Selection
from kelr.sources.base import Source


def sees_any(source: Source, selection: Selection) -> bool:
    """Whether there is any such partition: brokers leave topics that a principal may not describe out without a
    word."""
    return any(page.partitions for page in source.pages(selection))


def fail_unseen(*, seen: bool) -> None:
    """End the command with 1 where no partition was seen, after that was said."""
    if not seen:
        raise typer.Exit(ExitCode.FOUND)
