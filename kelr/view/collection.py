"""What ``kelr recover collect`` says when its file is written: whose logs are in it, and what to know of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kelr.view.columns import Fact, View, column
from kelr.view.output import Output
from kelr.view.replicas import UNKNOWN
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/collection"


@dataclass(frozen=True, slots=True)
class Collected:
    """One broker's part of a collection; with `broker` None, the logs that a cluster told of."""

    broker: int | None
    logs: int
    """Replicas whose log is known."""
    unreadable: int
    """Replicas whose log could not be read."""
    clean_shutdown: bool | None = None
    running: bool | None = None
    warnings: tuple[str, ...] = ()


def collection_view() -> View[Collected]:
    """One row for each broker whose disk was read, or one for the cluster."""
    return View(
        KIND,
        (
            column(
                "broker",
                "BROKER",
                "integer?",
                "Broker whose disk was read; null: what the cluster told.",
                text=lambda row: plain("the cluster" if row.broker is None else str(row.broker)),
            ),
            column("logs", "LOGS", "integer", "Replicas with a known log.", right=True),
            column(
                "unreadable",
                "UNREADABLE",
                "integer",
                "Replicas whose log could not be read.",
                text=lambda row: styled(str(row.unreadable), Style.BAD) if row.unreadable else plain("0"),
                right=True,
            ),
            column(
                "clean_shutdown",
                "CLEAN SHUTDOWN",
                "boolean?",
                "Whether all log directories carry marks of a clean shutdown, of one broker epoch; null: not"
                " known, or not a disk.",
                text=lambda row: _of_a_disk(row, row.clean_shutdown, Style.PLAIN),
            ),
            column(
                "running",
                "RUNNING",
                "boolean?",
                "Whether a broker held the directories' lock; null: not known, or not a disk.",
                text=lambda row: _of_a_disk(row, row.running, Style.BAD),
            ),
            column(
                "warnings",
                "",
                "string[]",
                "What the reader has to know.",
                text=lambda row: plain(" ".join(row.warnings)),
                prose=True,
            ),
        ),
        head=(Fact("file", "string", "The file that was written."),),
        tail=(
            Fact("notes", "string[]", "What contradicted where files were merged, and what was done about it."),
            Fact("next", "string", "The command to type next."),
        ),
    )


def _of_a_disk(row: Collected, answer: bool | None, yes: Style) -> Text:
    if answer is None:
        return plain("-") if row.broker is None else UNKNOWN
    return styled("yes", yes) if answer else plain("no")


def show_collection(
    output: Output, file: str, parts: Sequence[Collected], *, notes: Sequence[str], following: Sequence[str]
) -> None:
    """Show what was collected, and the command that uses it.

    Args:
        following: the next command as arguments after ``kelr``.
    """
    with output.listing(collection_view(), {"file": file}) as listing:
        listing.add(parts)
        listing.finish({"notes": list(notes), "next": output.next_command(following)})
    if not output.format.is_document:
        for note in notes:
            output.note(note)
        output.note(f"saved in {file}")
        output.next(following)
