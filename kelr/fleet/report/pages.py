"""A report as HTML (one file that opens offline: no script, nothing loaded from anywhere) and Markdown."""

from __future__ import annotations

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any

from kelr.fleet.report.figures import BrokerRestarts, Cluster, Figures, Scenario, UncleanDay, WeekTrouble
from kelr.fleet.report.findings import (
    MEANINGS,
    OF_A_KIND,
    TROUBLE_TITLES,
    TROUBLES,
    Chosen,
    Finding,
    Kind,
    choose,
    ranked,
)
from kelr.fleet.report.judging import judge
from kelr.page.rendered import html_page, markdown_page
from kelr.page.svg import WIDTH, circle, drawing, line, rect, text
from kelr.page.words import count, duration, listed, moment, number

# The plots of a report, as SVG that stands in the page itself: no script, colours from the page's style sheet.
#
# Each says in words what it shows, and comes with its figures as a table, for whoever does not see it.

_HOUR = 3_600
_MOST_ROWS = 10
_LEFT, _RIGHT = 12, 12


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with its words and figures."""

    id: str
    title: str
    about: str
    """What is counted."""
    svg: str
    """Empty: there is nothing to draw, and `about` says why."""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    """The figures that are drawn."""
    note: str = ""
    """What is left out."""


def plots(figures: Figures) -> tuple[Plot, ...]:
    """All plots for which there are figures."""
    names = {cluster.id: cluster.name for cluster in figures.clusters}
    found = (
        weekly(figures.weeks),
        worst(figures.scenarios, names),
        timeline(figures.election_days, names),
        restarts(figures.restarts, names),
    )
    return tuple(plot for plot in found if plot is not None)


def weekly(weeks: Sequence[WeekTrouble]) -> Plot | None:
    """How long partitions were in which trouble, week by week."""
    if not weeks:
        return None
    hours: dict[tuple[str, date], float] = defaultdict(float)
    for one in weeks:
        hours[one.trouble, one.week] += one.seconds / _HOUR
    every = list(_mondays(weeks))
    troubles = [trouble for trouble in TROUBLES if any(hours.get((trouble, week)) for week in every)]
    if not troubles:
        return None
    height_of_one = 92
    parts = list(
        chain.from_iterable(
            _bars_of_trouble(trouble, [hours.get((trouble, week), 0) for week in every], index * height_of_one)
            for index, trouble in enumerate(troubles)
        )
    )
    bottom = len(troubles) * height_of_one
    parts += _week_labels(every, bottom)
    title, about = "Trouble by week", "Partition-hours in each trouble, by ISO week; every row has a scale of its own."
    return Plot(
        "trouble-by-week",
        title,
        about,
        drawing("trouble-by-week", title, about, bottom + 24, parts),
        ("week of", *(TROUBLE_TITLES[trouble] for trouble in troubles)),
        tuple((f"{week}", *(number(round(hours.get((t, week), 0), 2)) for t in troubles)) for week in every),
    )


def _mondays(weeks: Iterable[WeekTrouble]) -> Iterator[date]:
    """Every week from the first to the last, also those in which nothing was."""
    found = {one.week for one in weeks}
    week, last = min(found), max(found)
    while week <= last:
        yield week
        week += timedelta(days=7)


def _bars_of_trouble(trouble: str, values: Sequence[float], top: float) -> Iterator[str]:
    high, base = 52, top + 82
    most = max(values)
    yield text(_LEFT, top + 20, TROUBLE_TITLES[trouble], "label")
    yield text(WIDTH - _RIGHT, top + 20, f"at most {number(round(most, 1))} h a week", "tick", anchor="end")
    step = (WIDTH - _LEFT - _RIGHT) / len(values)
    wide = max(1.0, min(48.0, step * 0.72))
    for index, value in enumerate(values):
        if value:
            tall = max(1.5, value / most * high)
            yield rect(_LEFT + index * step + (step - wide) / 2, base - tall, wide, tall, trouble)
    yield line(_LEFT, base, WIDTH - _RIGHT, base)


def _week_labels(weeks: Sequence[date], top: float) -> Iterator[str]:
    step = (WIDTH - _LEFT - _RIGHT) / len(weeks)
    every = math.ceil(64 / step)
    for index in range(0, len(weeks), every):
        yield text(_LEFT + (index + 0.5) * step, top + 12, f"{weeks[index]:%-d %b}", "tick", anchor="middle")


def worst(scenarios: Sequence[Scenario], names: Mapping[str, str]) -> Plot | None:
    """What the worst failures would take, those first that may lose what was committed."""
    ranked = sorted(
        (one for one in scenarios if not one.now and (one.may_lose or one.leaderless or one.under_min_isr)),
        key=lambda one: (*(-one_ for one_ in one.severity), one.cluster, one.name),
    )
    if not ranked:
        return None
    shown = ranked[:_MOST_ROWS]
    kinds = (("may_lose", "may lose records"), ("leaderless", "leaderless"), ("under_min_isr", "under-min-isr"))
    most = max(max(one.may_lose, one.leaderless, one.under_min_isr) for one in shown)
    parts, top = (
        list(_legend([("may-lose", "may lose records"), *_of(TROUBLE_TITLES, "leaderless", "under-min-isr")])),
        34.0,
    )
    for one in shown:
        parts.append(text(_LEFT, top + 14, f"{names.get(one.cluster, one.cluster)} · {one.name}", "label"))
        top += 22
        for attribute, kind in kinds:
            value = getattr(one, attribute)
            if value:
                wide = max(1.5, value / most * (WIDTH - 90))
                parts += (
                    rect(_LEFT, top, wide, 11, "may-lose" if attribute == "may_lose" else kind),
                    text(_LEFT + wide + 6, top + 10, number(value), "tick"),
                )
                top += 16
        top += 8
    title, about = (
        "Worst failures",
        "Partitions that a failure would leave so that do not stand so now, by the rules that each cluster runs.",
    )
    return Plot(
        "worst-failures",
        title,
        about,
        drawing("worst-failures", title, about, top, parts),
        ("cluster", "failure", "rules", "may lose records", "without leader", "under min ISR"),
        tuple(
            (
                names.get(one.cluster, one.cluster),
                one.name,
                one.rules,
                number(one.may_lose),
                number(one.leaderless),
                number(one.under_min_isr),
            )
            for one in shown
        ),
        _left_out(len(ranked) - len(shown), "failure"),
    )


def timeline(days: Sequence[UncleanDay], names: Mapping[str, str]) -> Plot | None:
    """When which cluster had elections that were not clean."""
    if not days:
        return None
    by_cluster: dict[str, dict[date, int]] = defaultdict(dict)
    for one in days:
        by_cluster[one.cluster][one.day] = by_cluster[one.cluster].get(one.day, 0) + one.elections
    ranked = sorted(by_cluster, key=lambda cluster: (-sum(by_cluster[cluster].values()), cluster))
    shown = ranked[:_MOST_ROWS]
    first, last = min(one.day for one in days), max(one.day for one in days)
    span = max(1, (last - first).days)
    most = max(max(by_cluster[cluster].values()) for cluster in shown)
    parts, row = [], 54
    inner = (_LEFT + 20, WIDTH - _RIGHT - 20)
    for index, cluster in enumerate(shown):
        top = index * row
        total = sum(by_cluster[cluster].values())
        parts.append(text(_LEFT, top + 16, f"{names.get(cluster, cluster)} · {count(total, 'election')}", "label"))
        parts.append(line(_LEFT, top + 36, WIDTH - _RIGHT, top + 36))
        for day, elections in sorted(by_cluster[cluster].items()):
            x = inner[0] + (day - first).days / span * (inner[1] - inner[0])
            radius = 3.5 + 9 * math.sqrt(elections / most)
            parts.append(circle(x, top + 36, radius, "unclean", f"{day}: {count(elections, 'election')}"))
    bottom = len(shown) * row
    parts.append(text(inner[0], bottom + 14, f"{first:%-d %b %Y}", "tick", anchor="start"))
    if last != first:
        parts.append(text(inner[1], bottom + 14, f"{last:%-d %b %Y}", "tick", anchor="end"))
    title = "Unclean elections"
    about = "Elections of replicas that nothing proves to be complete; a dot is a day, its area their number."
    return Plot(
        "unclean-elections",
        title,
        about,
        drawing("unclean-elections", title, about, bottom + 26, parts),
        ("cluster", "day", "elections"),
        tuple(
            (names.get(cluster, cluster), f"{day}", number(elections))
            for cluster in shown
            for day, elections in sorted(by_cluster[cluster].items())
        ),
        _left_out(len(ranked) - len(shown), "cluster"),
    )


def restarts(brokers: Sequence[BrokerRestarts], names: Mapping[str, str]) -> Plot | None:
    """Which brokers came back unclean."""
    ranked = sorted((one for one in brokers if one.unclean), key=lambda one: (-one.unclean, one.cluster, one.broker))
    if not ranked:
        return None
    shown = ranked[:_MOST_ROWS]
    most = max(one.unclean + one.not_shown + one.clean for one in shown)
    parts = list(_legend((("unclean", "unclean"), ("not-shown", "not shown"), ("clean", "clean"))))
    top = 34.0
    for one in shown:
        words = f"{names.get(one.cluster, one.cluster)} · broker {one.broker}"
        parts.append(text(_LEFT, top + 14, words if one.rack is None else f"{words} ({one.rack})", "label"))
        x = float(_LEFT)
        for value, kind in ((one.unclean, "unclean"), (one.not_shown, "not-shown"), (one.clean, "clean")):
            wide = value / most * (WIDTH - 130)
            if value:
                parts.append(rect(x, top + 20, wide, 13, kind))
            x += wide
        total = one.unclean + one.not_shown + one.clean
        parts.append(text(x + 6, top + 31, f"{one.unclean} of {total}", "tick"))
        top += 46
    title, about = "Unclean restarts", "How brokers came back; unclean ones leave every ELR and ISR."
    return Plot(
        "unclean-restarts",
        title,
        about,
        drawing("unclean-restarts", title, about, top, parts),
        ("cluster", "broker", "rack", "unclean", "not shown", "clean"),
        tuple(
            (
                names.get(one.cluster, one.cluster),
                f"{one.broker}",
                one.rack or "?",
                number(one.unclean),
                number(one.not_shown),
                number(one.clean),
            )
            for one in shown
        ),
        _left_out(len(ranked) - len(shown), "broker"),
    )


def _of(titles: Mapping[str, str], *keys: str) -> list[tuple[str, str]]:
    return [(key, titles[key]) for key in keys]


def _left_out(more: int, noun: str) -> str:
    return f"{count(more, f'more {noun}')} in the CSV files." if more > 0 else ""


def _legend(kinds: Iterable[tuple[str, str]]) -> Iterator[str]:
    x = float(_LEFT)
    for kind, words in kinds:
        yield rect(x, 6, 13, 13, kind)
        yield text(x + 19, 17, words, "tick")
        x += 19 + 7.4 * len(words) + 22


# The words of a report, for whoever reads it without having read the documentation.


WORDS: tuple[tuple[str, str], ...] = (
    ("without leader", "The partition has no leader: clients can neither write nor read."),
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
        "gaps": gaps(figures),
        "findings": [_shown(one) for one in report.chosen.shown],
        "nothing_found": nothing(figures),
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
    known = f"{count(len(figures.clusters), 'cluster')}, {count(partitions, 'partition')}{span}."
    return " ".join((known, *windows(figures)))


def windows(figures: Figures) -> Iterator[str]:
    """Which time is counted, where it is not all that is on record."""
    found: dict[tuple[datetime | None, datetime | None], list[str]] = defaultdict(list)
    for cluster, begin, end in figures.windows:
        found[begin, end].append(figures.cluster(cluster).name)
    for (begin, end), names in found.items():
        span = [f"{word} {moment(at)}" for word, at in (("from", begin), ("to", end)) if at is not None]
        if span:
            some = "" if len(names) == len(figures.clusters) else f" of {listed(tuple(names), most=5)}"
            yield f"Unclean elections, restarts and times{some} are counted {' '.join(span)}."


def _tiles(figures: Figures) -> list[Tile]:
    clusters = figures.clusters
    read = bool(clusters) and not figures.quarantined and all(one.standing.partitions for one in clusters)
    logged = all(one.from_log for one in clusters) and not any("exposure" in one.command for one in figures.missing)
    without = [one for one in figures.troubles if one.topic is None and one.trouble == "leaderless"]
    seconds = sum(one.seconds for one in without)

    def tile(label: str, value: float, *, sure: bool = True, bad: bool = True, words: str = "") -> Tile:
        return Tile(label, _known(value, read and sure, words), bad=bad and value > 0)

    return [
        tile("clusters", len(clusters), bad=False),
        tile("partitions", sum(one.standing.partitions for one in clusters), bad=False),
        tile("without leader now", sum(one.standing.leaderless for one in clusters)),
        tile(
            "under min ISR now",
            sum(one.standing.under_min_isr for one in clusters),
            sure=not any(one.standing.min_isr_unknown for one in clusters),
        ),
        tile("on their last replica now", sum(one.standing.last_replica for one in clusters)),
        tile("brokers not live", sum(len(one.down) for one in clusters), sure=all(one.brokers for one in clusters)),
        tile(
            "unclean elections",
            sum(one.sure for one in figures.elections),
            sure=logged and not any(one.not_told for one in figures.elections),
        ),
        tile(
            "time without leader, all partitions",
            seconds,
            sure=logged and not any(one.unknown_seconds for one in without),
            words=duration(seconds),
        ),
    ]


def _known(value: float, sure: bool, words: str = "") -> str:
    """A figure; a lower bound where more of it may be unknown, and not 0 then."""
    if not sure and not value:
        return "?"
    return (words or number(value)) + ("" if sure else "+")


def gaps(figures: Figures) -> list[Gap]:
    """What was not looked at: where there is any of it, no findings do not mean that all is well."""
    found = [Gap(f"Not told: {one.what}.", shlex.join(["kelr", *one.command])) for one in figures.missing]
    empty = tuple(one.name for one in figures.clusters if not one.standing.partitions)
    if empty or not figures.clusters:
        found.append(Gap(f"No partition was found{f' of {listed(empty, most=5)}' if empty else ''}."))
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
        some = f"{count(len(watched), 'cluster')} ({listed(watched, most=5)})"
        found.append(Gap(f"{some} known by snapshots alone: what was between two of them is not known."))
    return found


def _within(heading: str) -> str:
    """A heading within a sentence."""
    return heading[:1].lower() + heading[1:]


def nothing(figures: Figures) -> str:
    """The sentence of a report without findings."""
    if gaps(figures):
        return "Nothing was found in what was looked at, and not everything was."
    return "Nothing was found that has to be fixed."


def _worst_first(cluster: Cluster) -> tuple[object, ...]:
    standing = cluster.standing
    return -standing.leaderless, -standing.under_min_isr, -standing.last_replica, cluster.name, cluster.id


def _cluster_row(one: Cluster) -> tuple[str, ...]:
    standing, seen, listed_ = one.standing, bool(one.standing.partitions), bool(one.brokers)
    down = ", ".join(map(str, one.down[:8])) + (", ..." if len(one.down) > 8 else "")
    return (
        one.name,
        _known(standing.partitions, seen),
        _known(standing.leaderless, seen),
        _known(standing.under_min_isr, seen and not standing.min_isr_unknown),
        _known(standing.last_replica, seen),
        _known(len(one.brokers), listed_),
        down or ("-" if listed_ else "?"),
        moment(one.begins).removesuffix(" UTC"),
        moment(one.ends).removesuffix(" UTC"),
        "metadata log" if one.from_log else "snapshots",
    )


def _clusters_left_out(more: int) -> str:
    return f"{count(more, 'more cluster')}, which stand no worse: clusters.csv has all." if more > 0 else ""
