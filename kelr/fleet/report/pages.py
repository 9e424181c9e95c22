"""A report as HTML (one file that opens offline: no script, nothing loaded from anywhere) and Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kelr.fleet.report.figures import Cluster, Figures
from kelr.fleet.report.findings import MEANINGS, OF_A_KIND, Chosen, Finding, Kind, choose, ranked
from kelr.fleet.report.judging import judge
from kelr.fleet.report.plots import plots
from kelr.page.rendered import html_page, markdown_page
from kelr.page.words import count, duration, moment, number

# The words of a report, for whoever reads it without having read the documentation.


WORDS: tuple[tuple[str, str], ...] = (
    ("without leader", "Nobody leads the partition: nothing can be written to it, nor read from it."),
    (
        "under min ISR",
        "It is led, and fewer replicas are in sync than min ISR asks for: acks=all is refused.",
    ),
    ("last replica standing", "It is led, and of several replicas one alone is in sync: the next failure stops it."),
    ("on ELR only", "The ISR is empty and the ELR (KIP-966) is not: only the return of one of its members helps."),
    (
        "unclean election",
        "A replica was elected that was in neither ISR nor ELR, uncleanly or as last known leader: nothing proves that"
        " it held all that was committed.",
    ),
    (
        "unclean restart",
        "A broker came back without a clean shutdown. With ELR on it leaves every ELR and ISR. Not shown:"
        " neither an ELR nor an ISR shows how it was.",
    ),
    (
        "offsets at stake",
        "By how much the best known log went further than that of the elected replica; how much of it was committed is"
        " not told by logs.",
    ),
    (
        "may lose records",
        "On the way a replica is elected that nothing proves to be complete: about proof, not bytes.",
    ),
    (
        "recorded, observed, computed",
        "Recorded: the controllers wrote it in the metadata log. Observed: snapshots saw it at single moments."
        " Computed: by the election rules, from what was recorded or observed.",
    ),
)


# The pages.


TITLE = "Kafka fleet report"
_PACKAGE = "kelr.fleet.report"
_MOST_CLUSTERS = 100
_CLUSTER_HEADER = (
    *("cluster", "partitions", "without leader", "under min ISR", "last replica", "brokers", "not live"),
    *("from", "to", "known by"),
)
_GRADES = {
    Kind.UNPROVEN: "worst",
    Kind.UNCLEAN_ELECTIONS: "worst",
    Kind.LEADERLESS: "worst",
    Kind.FAILURE_LOSES: "worst",
    Kind.NOT_KNOWN: "least",
}
"""How findings look; the order tells the same."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report: the figures, all findings, and those that are shown."""

    figures: Figures
    title: str
    findings: tuple[Finding, ...]
    """All of them, the first to be fixed first."""
    chosen: Chosen


@dataclass(frozen=True, slots=True)
class Tile:
    """A figure at a glance."""

    label: str
    value: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """What the report cannot tell, and the command after which it can."""

    text: str
    command: str = ""


def report_of(figures: Figures, *, top: int = 10, title: str = TITLE) -> Report:
    """What to fix first in a fleet.

    Args:
        top: so many findings are shown at most; `findings_csv` has all.
    """
    findings = judge(figures)
    return Report(figures, title, tuple(ranked(findings)), choose(findings, top=top))


def html(report: Report) -> str:
    """The report as one file for a browser."""
    return html_page(_PACKAGE, "report.html", _context(report), style="report.css")


def markdown(report: Report) -> str:
    """The report for an incident channel or a repository."""
    return markdown_page(_PACKAGE, "report.md", _context(report))


def _context(report: Report) -> dict[str, Any]:
    figures = report.figures
    shown = sorted(figures.clusters, key=_worst_first)[:_MOST_CLUSTERS]
    return {
        "title": report.title,
        "scope": _scope(figures),
        "tiles": _tiles(figures),
        "gaps": _gaps(figures),
        "findings": [_shown(one) for one in report.chosen.shown],
        "nothing_found": _nothing(figures),
        "others": ", ".join(f"{_within(MEANINGS[kind])} ({number(many)})" for kind, many in report.chosen.others),
        "plots": plots(figures),
        "cluster_header": _CLUSTER_HEADER,
        "cluster_rows": [_cluster_row(one) for one in shown],
        "clusters_left_out": _clusters_left_out(len(figures.clusters) - len(shown)),
        "order": "; ".join(map(_within, MEANINGS.values())),
        "of_a_kind": OF_A_KIND,
        "words": WORDS,
        "origin": f"Made by kelr fleet report from version {figures.version} of {figures.place},"
        f" written {moment(figures.as_of)}.",
    }


def _shown(finding: Finding) -> dict[str, Any]:
    return {
        "grade": _GRADES.get(finding.kind, ""),
        "cluster_name": finding.cluster_name,
        "title": finding.title,
        "text": finding.text,
        "unknown": finding.unknown,
        "commands": finding.commands,
        "kind_words": MEANINGS[finding.kind],
        "certainty": finding.certainty.value,
        "evidence": [
            {"table": one.table, "where": one.where, "rows_words": count(one.rows, "row")} for one in finding.evidence
        ],
    }


def _scope(figures: Figures) -> str:
    partitions = sum(one.standing.partitions for one in figures.clusters)
    begins = [one.begins for one in figures.clusters if one.begins is not None]
    ends = [one.ends for one in figures.clusters if one.ends is not None]
    span = f", from {moment(min(begins))} to {moment(max(ends))}" if begins and ends else ""
    return f"{count(len(figures.clusters), 'cluster')}, {count(partitions, 'partition')}{span}."


def _tiles(figures: Figures) -> list[Tile]:
    def total(of: Callable[[Cluster], int]) -> int:
        return sum(of(one) for one in figures.clusters)

    now = (
        Tile("clusters", number(len(figures.clusters))),
        Tile("partitions", number(total(lambda one: one.standing.partitions))),
        _counted("without leader now", total(lambda one: one.standing.leaderless)),
        _counted("under min ISR now", total(lambda one: one.standing.under_min_isr)),
        _counted("on their last replica now", total(lambda one: one.standing.last_replica)),
        _counted("brokers not live", total(lambda one: len(one.down))),
    )
    exposed = not any("exposure" in one.command for one in figures.missing)
    if not exposed:
        return [*now, Tile("unclean elections", "?"), Tile("time without leader", "?")]
    without = sum(one.seconds for one in figures.troubles if one.topic is None and one.trouble == "leaderless")
    return [
        *now,
        _counted("unclean elections", sum(one.sure for one in figures.elections)),
        Tile("time without leader, all partitions", duration(without), bad=without > 0),
    ]


def _counted(label: str, value: int) -> Tile:
    return Tile(label, number(value), bad=value > 0)


def _gaps(figures: Figures) -> list[Gap]:
    found = [Gap(f"Not told: {one.what}.", shlex.join(["kelr", *one.command])) for one in figures.missing]
    if figures.quarantined:
        found.append(
            Gap(
                f"{count(figures.quarantined, 'file')} could not be read: table inputs of the lake says which, and why."
            )
        )
    unknown = sum(one.standing.min_isr_unknown for one in figures.clusters)
    if unknown:
        found.append(
            Gap(f"min.insync.replicas of {count(unknown, 'partition')}: whether enough are in sync is not known.")
        )
    watched = tuple(one.name for one in figures.clusters if not one.from_log)
    if watched:
        some = f"{count(len(watched), 'cluster')} ({', '.join(watched[:5])}{', ...' if len(watched) > 5 else ''})"
        found.append(Gap(f"{some} known by snapshots alone: what was between two of them is not known."))
    return found


def _within(heading: str) -> str:
    """A heading within a sentence."""
    return heading[:1].lower() + heading[1:]


def _nothing(figures: Figures) -> str:
    if figures.missing:
        return "Nothing was found in what was looked at, and not everything was: see above."
    return "Nothing was found that has to be fixed."


def _worst_first(cluster: Cluster) -> tuple[object, ...]:
    standing = cluster.standing
    return -standing.leaderless, -standing.under_min_isr, -standing.last_replica, cluster.name, cluster.id


def _cluster_row(one: Cluster) -> tuple[str, ...]:
    standing = one.standing
    figures = (standing.partitions, standing.leaderless, standing.under_min_isr, standing.last_replica)
    down = ", ".join(map(str, one.down[:8])) + (", ..." if len(one.down) > 8 else "")
    return (
        one.name,
        *map(number, figures),
        number(len(one.brokers)),
        down or "-",
        moment(one.begins).removesuffix(" UTC"),
        moment(one.ends).removesuffix(" UTC"),
        "metadata log" if one.from_log else "snapshots",
    )


def _clusters_left_out(more: int) -> str:
    return f"{count(more, 'more cluster')}, which stand no worse: clusters.csv has all." if more > 0 else ""
