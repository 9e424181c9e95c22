"""What ``kelr fleet ingest`` took of each cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kelr.model.fleet import IngestedCluster, IngestSummary, QuarantinedFile
from kelr.view.columns import Column, Fact, Json, View, attributes, column, datum
from kelr.view.rescue import time_text
from kelr.view.styled import plain


def ingested_view() -> View[IngestedCluster]:
    """The clusters of which there was anything new."""
    return View(
        "kelr/fleet-ingest",
        (
            column(
                "cluster", "CLUSTER", "string", "The cluster's id.", text=lambda row: plain(row.name or row.cluster)
            ),
            datum("name", "string?", "What it is called in reports."),
            _number("files", "FILES", lambda row: row.files, "New files that were taken."),
            _number("records", "RECORDS", lambda row: row.records, "Records of its metadata log that were told."),
            _number("partitions", "PARTITIONS", lambda row: row.partitions, "Partitions at the end of it."),
            _number("states", "STATES", lambda row: row.states, "States of partitions that were told."),
            _number("elections", "ELECTIONS", lambda row: row.elections, "Elections that were told."),
            _number("log_info", "LOGS", lambda row: row.log_info, "Replicas whose logs were read or asked for."),
            column(
                "from",
                "FROM",
                "string?",
                "When the first of it was written or seen, in UTC.",
                lambda row: _time(row.begun_ms),
            ),
            column("to", "TO", "string?", "When the last of it was, in UTC.", lambda row: _time(row.ended_ms)),
            _number(
                "quarantined_files",
                "QUARANTINED",
                lambda row: len(row.quarantined),
                "Files that were not taken, or not all of them.",
            ),
            datum("notes", "string[]", "What is odd about its metadata log, a sentence each."),
        ),
        tail=(
            Fact("lake", "string", "The lake."),
            Fact("version", "integer", "The lake's version after this run."),
            Fact("changed", "boolean", "Whether there was anything new."),
            Fact("new_files", "integer", "Files that no run before had taken."),
            Fact("known_files", "integer", "Files that a run before had taken."),
            Fact("quarantined", "object[]", "`path`, `cluster` (null: not known) and `reason` of each file."),
            Fact("next", "string", "The command to type next."),
        ),
    )


def ingest_tail(summary: IngestSummary, following: str) -> Mapping[str, Json]:
    """What a document says after the clusters."""
    return {
        **attributes(summary, "lake", "version", "changed", "new_files", "known_files"),
        "quarantined": [
            {"path": one.path, "cluster": one.cluster, "reason": one.reason} for one in summary.quarantined
        ],
        "next": following,
    }


def in_a_line(summary: IngestSummary) -> str:
    """What happened to the lake."""
    files = _counted(summary.new_files, "new file")
    if not summary.changed:
        return f"nothing new: {summary.lake} stays at version {summary.version}"
    return f"{files} in version {summary.version} of {summary.lake}; {summary.known_files:,} were there before"


def in_quarantine(files: Sequence[QuarantinedFile]) -> list[str]:
    """A line for each file, and what it is about."""
    return [f"{one.path}: {one.reason}" for one in files]


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else time_text(at_ms)


def _number(key: str, title: str, value: Callable[[IngestedCluster], int], about: str) -> Column[IngestedCluster]:
    return column(key, title, "integer", about, value, right=True)
