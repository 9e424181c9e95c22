"""What ``kelr report`` says when the file is written."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.engine.planning.lost import Lost, lost_in_all
from kelr.view.columns import Column, Fact, View, column
from kelr.view.lost_words import LOST_FACT, bounds_in_words, lost_document
from kelr.view.output import Output
from kelr.view.styled import plain

KIND = "kelr/report"


@dataclass(frozen=True, slots=True)
class Reported:
    """A report that was written."""

    file: str
    size_bytes: int
    partitions: int
    affected: int
    leaderless: int | None
    """None: not known, because the newest look did not see all of them, or no controller answered."""
    lost: tuple[Lost, ...] = ()
    gaps: tuple[str, ...] = ()
    """What the report cannot tell."""


def reported_view() -> View[Reported]:
    """One row: the file."""

    def number(key: str, title: str, about: str) -> Column[Reported]:
        return column(key, title, "integer", about, lambda row: int(getattr(row, key)), right=True)

    return View(
        KIND,
        (
            column("file", "FILE", "string", "The file that was written."),
            number("partitions", "PARTITIONS", "How many partitions it is about."),
            number("affected", "AFFECTED", "How many of them were in trouble, planned for or changed."),
            column(
                "leaderless",
                "LEADERLESS",
                "integer?",
                "How many have no leader in the newest look; null: not known, because it did not see all of them,"
                " or no controller answered.",
                text=lambda row: plain("?" if row.leaderless is None else str(row.leaderless)),
                right=True,
            ),
            column(
                "lost",
                "LOST, COMMITTED",
                "object",
                LOST_FACT,
                lambda row: lost_document(row.lost),
                text=lambda row: plain(bounds_in_words(lost_in_all(row.lost).committed) if row.lost else "?"),
            ),
            number("size_bytes", "BYTES", "The file's size in bytes."),
        ),
        tail=(Fact("gaps", "string[]", "What the report cannot tell, and why."),),
    )


def show_reported(output: Output, reported: Reported) -> None:
    """Show what was written, and what is missing in it."""
    with output.listing(reported_view()) as listing:
        listing.add([reported])
        listing.finish({"gaps": list(reported.gaps)})
    if not output.format.is_document:
        for gap in reported.gaps:
            output.note(f"not told: {gap}")
