"""What ``kelr fleet report`` says on the terminal: what to fix first, and where the report is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.view.columns import Column, Fact, Shown, View, datum
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
            Column(
                "place", "#", value=lambda row: row.place, right=True, type="integer", about="1: to be fixed first."
            ),
            Column(
                "cluster_name",
                "CLUSTER",
                value=lambda row: row.cluster_name,
                type="string",
                about="What the cluster is called; its id where it has no name.",
            ),
            Column("title", "FIX", value=lambda row: row.title, prose=True, type="string", about="What is wrong."),
            Column(
                "partitions",
                "PARTITIONS",
                value=lambda row: row.partitions,
                right=True,
                yields=1,
                type="integer",
                about="How many partitions it concerns; 0 where that is not counted.",
            ),
            Column(
                "certainty",
                "KNOWN",
                value=lambda row: row.certainty,
                shown=Shown.WIDE,
                type="string",
                about="recorded (by controllers), observed (by snapshots) or computed (by the election rules).",
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


def notes_on(found: int, others: int, missing: Sequence[str]) -> Iterator[str]:
    """What to know beside the findings."""
    if not found and not missing:
        yield "nothing was found that has to be fixed"
    for one in missing:
        yield f"not told: {one}"
    if others:
        yield f"{others} more to fix: csv/findings.csv has all"


def where(written: Sequence[str]) -> Text:
    """Where the report is."""
    return [*styled("  report:", Style.HEADING), *plain(" " + " ".join(written))]
