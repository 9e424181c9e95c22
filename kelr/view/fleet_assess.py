"""What ``kelr fleet assess`` shows: the worst scenarios of each cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.engine.words import agree, brokers, plural
from kelr.view.columns import Column, Fact, Shown, View, column, datum
from kelr.view.styled import Style, Text, plain, styled
from kelr.view.whatif_words import SHAPES

KIND = "kelr/fleet-assess"
WORST = ("may_lose", "unproven", "leaderless", "under_min_isr", "min_isr_unknown", "last_replica", "leader_moves")
"""What makes one scenario worse than another, in this order."""


@dataclass(frozen=True, slots=True)
class ScenarioRow:
    """What one scenario makes of one cluster, in numbers of partitions."""

    cluster: str
    cluster_name: str
    rules: str
    rules_certain: bool
    at_ms: int
    """The moment that was assessed, in milliseconds since 1970 UTC."""
    scenario: str
    kind: str
    happens: str
    brokers: tuple[int, ...]
    racks: tuple[str, ...]
    partitions: int
    touched: int
    new: Mapping[str, int]
    """Standing (``may_lose``, ...) to partitions that come to stand so; of ``now``: that do."""
    depends: int
    worst_topics: tuple[str, ...]

    @property
    def severity(self) -> tuple[int, ...]:
        """Higher is worse."""
        return tuple(self.new[name] for name in WORST)


def worst_first(rows: Sequence[ScenarioRow], shown: int | None) -> Iterator[ScenarioRow]:
    """Of each cluster and rule set: nothing first, then the scenarios, the worst first.

    Args:
        shown: so many of each, besides the one in which nothing happens; None: all.
    """
    groups: dict[tuple[str, str, str], list[ScenarioRow]] = {}
    for row in rows:
        groups.setdefault((row.cluster_name, row.cluster, row.rules), []).append(row)
    for _, found in sorted(groups.items()):
        yield from (row for row in found if row.kind == "now")
        others = [row for row in found if row.kind != "now"]
        others.sort(key=lambda row: (tuple(-count for count in row.severity), row.scenario))
        yield from others[:shown]


def assess_view() -> View[ScenarioRow]:
    """One item for each scenario, cluster and rule set."""
    return View(
        KIND,
        (
            column("cluster_name", "CLUSTER", "string", "What it is called."),
            datum("cluster", "string", "The cluster's id."),
            column("rules", "RULES", "string", "The election rule set.", yields=4),
            datum("rules_certain", "boolean", "Whether the cluster is known to run it."),
            datum("at_ms", "integer", "The moment that was assessed, in milliseconds since 1970 UTC."),
            column("scenario", "SCENARIO", "string", "Its name."),
            datum("kind", "string", "`now`, `broker`, `rack`, `pair`, `rack-while-rolling`, or `file`."),
            datum("happens", "string", "In words."),
            datum("brokers", "integer[]", "To which something happens."),
            datum("racks", "string[]", "Their racks, as far as they are known."),
            column("partitions", "PARTITIONS", "integer", "Partitions that were assessed.", right=True, yields=3),
            datum("touched", "integer", "Of these, those of which something happens to a broker."),
            *(_count(name, title, yields) for name, title, yields in _COUNTS),
            datum("depends", "integer", "Partitions for which the order of events makes a difference."),
            column(
                "worst_topics",
                "WORST TOPICS",
                "string[]",
                "Topics with the most partitions that come to the worst.",
                shown=Shown.WIDE,
            ),
        ),
        head=(Fact("lake", "string", "Where the tables are."),),
        tail=(
            Fact("patterns", "integer", "So many different cases were decided."),
            Fact("scenarios", "integer", "How many scenarios there are, of all clusters and rule sets."),
            Fact("listed", "integer", "Those among the items."),
            Fact("unknown_clusters", "string[]", "Clusters of whose brokers nothing was known: they were left out."),
            Fact("failed", "boolean?", "Whether --check found something; null where it was not asked for."),
            Fact("notes", "string[]", "What the reader has to know besides."),
            Fact("next", "string", "The command to type next."),
        ),
    )


_COUNTS = (
    ("may_lose", "MAY LOSE", 0),
    ("unproven", "UNPROVEN", 2),
    ("leaderless", "NO LEADER", 0),
    ("elr_only", "ELR ONLY", 5),
    ("under_min_isr", "UNDER MIN ISR", 0),
    ("min_isr_unknown", "PERHAPS UNDER", 6),
    ("last_replica", "LAST REPLICA", 1),
    ("leader_moves", "LEADER MOVES", 5),
    ("changed", "", 0),
    ("doubtful", "NOT CERTAIN", 2),
)
_ABOUT = {shape.name.replace("-", "_"): shape for shape in SHAPES}


def _count(name: str, title: str, yields: int) -> Column[ScenarioRow]:
    shape = _ABOUT[name]
    about = f"Partitions that come into: {shape.title.strip()}."
    if not title:
        return datum(name, "integer", about, _New(name))

    def text(row: ScenarioRow) -> Text:
        found = row.new[name]
        return (
            styled(f"{found:,}", shape.style if shape.style is not Style.PLAIN else Style.PLAIN)
            if found
            else plain("-")
        )

    return column(name, title, "integer", about, _New(name), text=text, right=True, yields=yields)


@dataclass(frozen=True, slots=True)
class _New:
    name: str

    def __call__(self, row: ScenarioRow) -> int:
        return row.new[self.name]


def notes_on(
    rows: Sequence[ScenarioRow],
    listed: int,
    *,
    unknown: Sequence[str],
    lost_directories: Mapping[str, Sequence[int]],
    reasons: Callable[[ScenarioRow], str],
) -> Iterator[str]:
    """What stands below the table.

    Args:
        unknown: clusters that were left out.
        lost_directories: by cluster the brokers that have lost one.
        reasons: what the choice of a row's rules rests on.
    """
    for cluster in unknown:
        yield f"cluster {cluster} was left out: nothing is known of its brokers at that time"
    for name, lost in sorted(lost_directories.items()):
        yield (
            f"{name}: {brokers(lost)} {agree(len(lost), 'has', 'have')} lost a log directory; which replicas were in it"
            " is not in the lake, and they are taken to be there"
        )
    unsure = {(row.cluster_name, row.rules): row for row in rows if row.kind == "now" and not row.rules_certain}
    for (name, rules), row in sorted(unsure.items()):
        yield f"{name}: rules {rules}: {reasons(row)}"
    depends = max((row.depends for row in rows), default=0)
    if depends:
        yield (
            f"for up to {plural(depends, 'partition')} of a cluster the order of events makes a difference; the worst"
            " is counted"
        )
    if any(row.partitions == 0 for row in rows):
        yield "a cluster had no such partition at that time: nothing is known to be safe"
    left = len(rows) - listed
    if left > 0:
        yield f"{left:,} more scenarios, none of a cluster worse than the last one of it here; --all lists them"
