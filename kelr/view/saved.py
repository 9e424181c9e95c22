"""Files that were written: what is said of a snapshot, a report and a collection when it is there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from kelr.engine.planning.lost import Lost, lost_in_all
from kelr.view.columns import Column, Fact, View, column
from kelr.view.disk_logs import NOTES
from kelr.view.lost_words import LOST_FACT, bounds_in_words, lost_document
from kelr.view.output import Output
from kelr.view.replicas import UNKNOWN
from kelr.view.styled import Style, Text, plain, styled

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


# A report.


_REPORT_KIND = "kelr/report"


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
        _REPORT_KIND,
        (
            column("file", "FILE", "string", "The file that was written."),
            number("partitions", "PARTITIONS", "How many partitions it is about."),
            number(
                "affected", "AFFECTED", "How many of them were in trouble, planned for or changed, or lost something."
            ),
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


# A collection.


_COLLECTION_KIND = "kelr/collection"


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
        _COLLECTION_KIND,
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
