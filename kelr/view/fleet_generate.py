"""The fleets that ``kelr fleet generate`` makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kelr.fleet.generate.truth import Truth
from kelr.view.columns import Column, Fact, Shown, View, column


def generated_view() -> View[Truth]:
    """The clusters of a fleet that was made."""
    return View(
        "kelr/fleet-generate",
        (
            column("name", "CLUSTER", "string", "The name of its folder."),
            column("cluster_id", "ID", "string", "Its cluster id.", shown=Shown.WIDE),
            column("software", "KAFKA", "string", "What it runs."),
            column(
                "shape",
                "FILES",
                "string",
                "What is there of it: `whole`, `copies` or `cut` (metadata log), or `snapshots`.",
            ),
            _number("partitions", "PARTITIONS", lambda row: row.partitions, "Partitions at the end."),
            _number("leaderless", "NO LEADER", lambda row: row.leaderless, "Partitions without leader at the end."),
            _number("states", "STATES", lambda row: row.states, "States that its partitions had, one after another."),
            _number("records", "RECORDS", lambda row: row.records, "Records of its metadata log."),
            _number("incidents", "INCIDENTS", lambda row: row.incidents, "Incidents that it had."),
            _number(
                "unclean_elections",
                "UNCLEAN",
                lambda row: len(row.unclean_elections),
                "Elections of replicas that might lack what was committed.",
            ),
        ),
        tail=(
            Fact("size_bytes", "integer", "The size of all files."),
            Fact("damages", "object[]", "What was broken on purpose: `path` and `what`."),
            Fact("next", "string", "The command to type next."),
        ),
    )


def sum_of(rows: Sequence[Truth], size_bytes: int) -> str:
    """All clusters together, in a line."""
    partitions, states = sum(row.partitions for row in rows), sum(row.states for row in rows)
    clusters = "1 cluster" if len(rows) == 1 else f"{len(rows)} clusters"
    return f"{clusters}, {partitions:,} partitions, {states:,} states of them, {size_bytes / (1 << 20):,.1f} MiB"


def _number(key: str, title: str, value: Callable[[Truth], int], about: str) -> Column[Truth]:
    return column(key, title, "integer", about, value, right=True)
