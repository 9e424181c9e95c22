"""From figures to findings: one broker or one rack whose failure costs something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kelr.fleet.report.figures import Cluster, Failures, Figures, Scenario
from kelr.fleet.report.findings import Certainty, Command, Evidence, Finding, Kind
from kelr.fleet.report.lines import kelr, spread, target
from kelr.page.words import count, listed, number

SINGLE = ("broker", "rack")
"""Kinds of scenarios that are one failure; what takes two is in the figures, and no finding."""
_SHOWN = 3


def failures(figures: Figures) -> Iterator[Finding]:
    """A finding for each cluster and kind of single failure that may lose records, and one for those that stop
    partitions."""
    for counted in figures.failures:
        if counted.kind not in SINGLE:
            continue
        cluster = figures.cluster(counted.cluster)
        worst = sorted(
            (one for one in figures.scenarios if (one.cluster, one.kind) == (counted.cluster, counted.kind)),
            key=lambda one: (tuple(-count_ for count_ in one.severity), one.name),
        )
        losing = [one for one in worst if one.may_lose]
        if losing:
            yield _loses(cluster, counted, losing)
        stopping = sorted(
            (one for one in worst if one.leaderless or one.under_min_isr),
            key=lambda one: (-one.leaderless, -one.under_min_isr, one.name),
        )
        if stopping:
            yield _stops(cluster, counted, stopping)


def _loses(cluster: Cluster, counted: Failures, found: Sequence[Scenario]) -> Finding:
    worst = found[0]
    return _finding(
        Kind.FAILURE_LOSES,
        cluster,
        counted,
        found,
        title=f"{_what(worst)}: {count(worst.may_lose, 'partition')} may lose committed records",
        text=[
            "On the way a replica is elected that nothing proves to be complete."
            f" {_how_many(counted.losing, counted)} would do so.",
            *_others(found, lambda one: f"{number(one.may_lose)}"),
        ],
        weight=(worst.may_lose, counted.losing),
        partitions=worst.may_lose,
    )


def _stops(cluster: Cluster, counted: Failures, found: Sequence[Scenario]) -> Finding:
    worst = found[0]
    parts = []
    if worst.leaderless:
        parts.append(f"{count(worst.leaderless, 'partition')} without leader")
    if worst.under_min_isr:
        parts.append(f"{count(worst.under_min_isr, 'partition')} refusing acks=all")
    text = [f"{_how_many(counted.stopping, counted)} would stop partitions."]
    if worst.unproven:
        text.append(f"Of the leaderless, {number(worst.unproven)} would have no replica that is proven complete.")
    text += _others(
        found, lambda one: f"{number(one.leaderless)} without leader, {number(one.under_min_isr)} refusing acks=all"
    )
    return _finding(
        Kind.FAILURE_STOPS,
        cluster,
        counted,
        found,
        title=f"{_what(worst)}: {' and '.join(parts)}",
        text=text,
        weight=(worst.leaderless, worst.under_min_isr),
        partitions=max(worst.leaderless, worst.under_min_isr),
    )


def _finding(
    kind: Kind,
    cluster: Cluster,
    counted: Failures,
    found: Sequence[Scenario],
    *,
    title: str,
    text: list[str],
    weight: tuple[float, ...],
    partitions: int,
) -> Finding:
    worst = found[0]
    if worst.worst_topics:
        text.append(f"Hit worst: {listed(worst.worst_topics, most=_SHOWN)}.")
    if worst.kind == "broker":
        text.append(
            "One broker does this where replicas are few or out of sync, or where min ISR asks for all of them."
        )
    elif cluster.down:
        text.append("Bring the brokers back that are not live before replicas are spread over the racks.")
    text.append("What is wrong already is not counted.")
    unknown = []
    if worst.uncertain:
        unknown.append(f"For {count(worst.uncertain, 'partition')} something that is not known would decide.")
    if not worst.rules_certain:
        unknown.append(f"Whether the cluster runs the rules {worst.rules}, by which this is computed.")
    return Finding(
        kind,
        cluster.id,
        cluster.name,
        counted.kind,
        title,
        tuple(text),
        partitions,
        weight,
        Certainty.COMPUTED,
        (Evidence("assessment_sums", f"kind = '{counted.kind}' and scenario = '{worst.name}'", 1),),
        (_again(cluster, worst), *_mending(cluster, worst)),
        tuple(unknown),
    )


def _what(scenario: Scenario) -> str:
    return f"If {scenario.happens}"


def _how_many(some: int, counted: Failures) -> str:
    noun = "failure of one broker" if counted.kind == "broker" else "failure of one rack"
    return f"{number(some)} of {number(counted.all)} scenarios ({noun}, clean or not)"


def _others(found: Sequence[Scenario], figure: Callable[[Scenario], str]) -> list[str]:
    others = tuple(f"{one.name} ({figure(one)})" for one in found[1:])
    return [f"Also: {listed(others, most=_SHOWN)}."] if others else []


def _mending(cluster: Cluster, scenario: Scenario) -> Iterator[Command]:
    """Replicas that are too close to each other are spread; for one broker, those that are missing are found."""
    topics = scenario.worst_topics[:_SHOWN]
    if scenario.kind == "rack" and not cluster.down:
        yield from spread(cluster, topics)
    else:
        yield kelr(
            cluster, "which replicas are out of sync already", "describe", *map(target, topics), "--under-replicated"
        )


def _again(cluster: Cluster, scenario: Scenario) -> Command:
    """The single-machine command that looks at the same failure, live."""
    why = "the same on the live cluster, partition by partition"
    if scenario.kind == "rack" and scenario.racks:
        clean = ("--clean",) if scenario.how == "stopped" else ()
        return kelr(cluster, why, "whatif", "--rack", scenario.racks[0], *clean)
    brokers = ",".join(map(str, scenario.brokers))
    if scenario.how == "back-unclean" and len(scenario.brokers) == 1:
        return kelr(cluster, why, "whatif", "--if", f"{brokers} fails, then {brokers} returns unclean")
    return kelr(cluster, why, "whatif", "--stop" if scenario.how == "stopped" else "--kill", brokers)
