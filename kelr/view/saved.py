"""What ``kelr snapshot`` says when the file is written."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from kelr.view.columns import Fact, View, column
from kelr.view.disk_logs import NOTES
from kelr.view.output import Output
from kelr.view.styled import Style, plain, styled

KIND = "kelr/snapshot"


@dataclass(frozen=True, slots=True)
class Saved:
    """A snapshot file that was written."""

    file: str
    size_bytes: int
    partitions: int
    logs: bool


def saved_view() -> View[Saved]:
    """The columns of `snapshot`: one row, the file."""
    return View(
        KIND,
        (
            column("file", "FILE", "string", "The file that was written."),
            column("partitions", "PARTITIONS", "integer", "How many partitions are in it.", right=True),
            column("logs", "LOGS", "boolean", "Whether logs were asked for."),
            column("size_bytes", "BYTES", "integer", "The file's size in bytes.", right=True),
        ),
        tail=(NOTES, Fact("next", "string?", "The command to type next.")),
    )


def show_saved(output: Output, saved: Saved, notes: Sequence[str] = ()) -> None:
    """Show what was saved, what to know of it, and the command that reads it."""
    command = shlex.join(["kelr", "explain", "--snapshot", saved.file])
    with output.listing(saved_view()) as listing:
        listing.add([saved])
        listing.finish({"notes": list(notes), "next": command})
    if not output.format.is_document:
        for note in notes:
            output.note(note)
        output.note([*styled("  next:", Style.HEADING), *plain(f" {command}")])
