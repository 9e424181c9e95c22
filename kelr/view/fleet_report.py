"""What ``kelr fleet report`` says on the terminal: what to fix first, and where the report is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.view.columns import Fact, Shown, View, column, datum
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/fleet-report"


@dataclass(frozen=True, slots=True)
class FixRow:
    """One thing to fix."""

    place: int
    kind: str
    cluster: str
    """Its id."""
    cluster_name: str
    title: str
    text: tuple[str, ...]
    unknown: tuple[str, ...]
    partitions: int
    certainty: str
    commands: tuple[str, ...]


def fix_view() -> View[FixRow]:
    """What to fix first, the first in front."""
    return View(
        KIND,
        (
            column("place", "#", "integer", "1: to be fixed first.", right=True),
            column("cluster_name", "CLUSTER", "string", "What the cluster is called; its id where it has no name."),
            column("title", "FIX", "string", "What is wrong.", prose=True),
            column(
                "partitions",
                "PARTITIONS",
                "integer",
                "How many partitions it concerns; 0 where that is not counted.",
                right=True,
                yields=1,
            ),
            column(
                "certainty",
                "KNOWN",
                "string",
                "recorded (by controllers), observed (by snapshots) or computed (by the election rules).",
                shown=Shown.WIDE,
            ),
            datum("kind", "string", "What kind of finding it is, in the order in which they are ranked."),
            datum("cluster", "string", "The cluster's id."),
            datum("text", "string[]", "More about it, in sentences."),
            datum("unknown", "string[]", "What is not known about it, in sentences."),
            datum("commands", "string[]", "What to type, one line each."),
        ),
        head=(
            Fact("lake", "string", "The lake that was read."),
            Fact("lake_version", "integer", "Its version."),
        ),
        tail=(
            Fact("others", "integer", "How many more findings there are; csv/findings.csv has all."),
            Fact("written", "string[]", "The files and folders that were written."),
            Fact("notes", "string[]", "What the report could not tell, and what other reader has to know."),
        ),
    )


def notes_on(sentences: Sequence[str], others: int) -> Iterator[str]:
    """What to know beside the findings."""
    for one in sentences:
        yield one[:1].lower() + one[1:].rstrip(".")
    if others:
        yield f"{others} more to fix: csv/findings.csv has all"


def where(written: Sequence[str]) -> Text:
    """Where the report is."""
    return [*styled("  report:", Style.HEADING), *plain(" " + " ".join(written))]
