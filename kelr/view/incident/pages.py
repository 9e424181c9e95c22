"""The report as one HTML file that opens offline, with everything that there is to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.controller import RULE_SETS
from kelr.model import Decision, Situation, TopicPartition
from kelr.page.rendered import html_page
from kelr.page.words import count
from kelr.view.explain_columns import Explained
from kelr.view.history_words import when
from kelr.view.incident.bands import bands
from kelr.view.incident.figures import figures
from kelr.view.incident.happenings import timeline
from kelr.view.incident.kinds import MOST_NAMED, Kind, kinds, named
from kelr.view.incident.log_drawing import draw_logs, in_words, note
from kelr.view.incident.losses import elected_since
from kelr.view.incident.material import Look, Material
from kelr.view.incident.summary import (
    loss_sentence,
    nothing_in_trouble,
    nothing_left,
    nothing_to_explain,
    paragraph,
    tiles,
)
from kelr.view.incident.tables import (
    Table,
    choices,
    done_table,
    log_ends,
    lost_table,
    plan_table,
    returns,
    states,
    steps,
    timeline_table,
)
from kelr.view.log_bars import log_bars

MOST_KINDS = 12
"""So many kinds of partitions are explained and drawn."""
_MARKUP = "kelr.view.incident"
_EVERY = "every partition that was in trouble, planned for or changed, or had elections that may have lost something"


@dataclass(frozen=True, slots=True)
class Story:
    """One kind of partitions: its logs, and the decision about it."""

    id: str
    title: str
    alike: str
    """Which other partitions it stands for; empty: none."""
    summary: str
    read: str
    svg: str
    note: str
    about: str
    ends: Table
    tables: tuple[Table, ...]
    remarks: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True)
class NextStep:
    """Something to do next."""

    text: str
    where: str
    command: str


def html(material: Material) -> str:
    """The report as a page for a browser, and for paper."""
    known, now = figures(material), material.now
    every, commands = kinds(now.rows), material.commands
    stories = kinds(evidence(material), lambda at: _elected(material, at))
    drawn = bands(material)
    unhealthy = tuple(kind for kind in stories if _worth(kind.row.decision))
    context = {
        "title": material.title,
        "scope": _scope(material),
        "paragraph": paragraph(material, known),
        "tiles": tiles(material, known),
        "gaps": material.gaps,
        "bands": drawn,
        "bands_left": _bands_left(drawn.left_out, commands) if drawn is not None else "",
        "timeline": timeline_table(timeline(material), commands.get("history", "")),
        "states": [states(look, kinds(look.rows), commands.get("csv", "")) for look in _looks(material)],
        "nothing": "" if every else nothing_in_trouble(material, known),
        "nothing_to_explain": nothing_to_explain(material, known),
        "nothing_left": nothing_left(known),
        "stories": [_story(number, kind, material) for number, kind in enumerate(unhealthy[:MOST_KINDS], 1)],
        "stories_left": _stories_left(unhealthy[MOST_KINDS:], commands),
        "plan": plan_table(material),
        "done": done_table(material, commands.get("log", "")),
        "open_runs": () if material.done is None else material.done.open_runs,
        "when": when,
        "loss_sentence": loss_sentence(material, known),
        "lost": lost_table(known.lost),
        "next_steps": list(next_steps(material)),
        "made": list(made(material)),
        "origin": f"Made by kelr {material.version} at {when(material.made_at_ms)[:19]} UTC.",
    }
    return html_page(_MARKUP, "incident.html", context, style="incident.css")


def evidence(material: Material) -> Mapping[TopicPartition, Explained]:
    """For each partition the look that tells most of the incident: the earlier one where it was in trouble then."""
    if material.before is None:
        return material.now.rows
    troubled = set(material.before.in_trouble)
    earlier = {at: row for at, row in material.before.rows.items() if at in troubled}
    return {**material.now.rows, **earlier}


def _elected(material: Material, at: TopicPartition) -> int | None:
    """Who was elected since the earlier look, where the partition had no leader then; None: nobody, or not known."""
    before = None if material.before is None else material.before.rows.get(at)
    if before is None or before.decision.leader is not None:
        return None
    return elected_since(material, before.decision)


def _worth(decision: Decision) -> bool:
    return decision.situation is not Situation.HEALTHY


def _looks(material: Material) -> tuple[Look, ...]:
    return (material.now,) if material.before is None else (material.now, material.before)


def _scope(material: Material) -> str:
    cluster = material.now.cluster.cluster_id or "unknown"
    what = "named partitions" if material.named else _EVERY
    return f"Cluster {cluster} · {what} · read {when(material.now.taken_at_ms)[:19]} UTC"


def _story(number: int, kind: Kind, material: Material) -> Story:
    row, decision = kind.row, kind.row.decision
    earlier = material.now.rows.get(kind.shown) is not row
    bars = log_bars(decision, row.logs, elected=_elected(material, kind.shown))
    title = str(kind.shown)
    look = material.before if earlier and material.before is not None else material.now
    rules = RULE_SETS[decision.rules].title
    alike = f"Stands for {len(kind.addresses):,} partitions; none of them is known to have more to lose."
    others = f"{alike} The others: {named(kind.others)}" if kind.others else ""
    return Story(
        f"story-{number}",
        title,
        others,
        decision.summary,
        f"{rules} · rules {decision.rules} · read {when(row.taken_at_ms)[:19]} UTC from {look.name}",
        draw_logs(f"logs-{number}", f"Logs of {title}", bars),
        note(bars) if bars.heard else "No replica's log was read, so there is nothing to draw.",
        in_words(bars),
        log_ends(bars, decision.candidates),
        tuple(table for table in _tables(decision) if table.rows),
        (*decision.notes, *(one.text for one in decision.damage)),
        " ".join(part for part in (decision.advice.text, decision.advice.until, decision.advice.alternative) if part),
    )


def _tables(decision: Decision) -> Iterator[Table]:
    """What there is to decide: nothing where a live leader leads, as in an explanation."""
    if decision.leader is None or decision.situation is Situation.LEADER_NOT_LIVE:
        yield steps(decision)
        yield returns(decision)
        yield choices(decision)


def _stories_left(left: Sequence[Kind], commands: Mapping[str, str]) -> str:
    if not left:
        return ""
    partitions = sum(len(kind.addresses) for kind in left)
    return (
        f"{count(len(left), 'more kind')} of partitions ({partitions:,} in all) are not shown, such as"
        f" {named([kind.shown for kind in left], MOST_NAMED)}. Each is explained by: {commands.get('explain', '')}"
    )


def _bands_left(left: int, commands: Mapping[str, str]) -> str:
    if not left:
        return ""
    return f"{count(left, 'more partition')} had shorter trouble: {commands.get('history-summary', '')}"


def next_steps(material: Material) -> Iterator[NextStep]:
    """What to do next: what is half done first, then what is in trouble now."""
    done, commands = material.done, material.commands
    for run in () if done is None else done.open_runs:
        text = f"A run was cut short ({run.command}, by {run.who}): repair what it may have left behind."
        yield NextStep(text, count(run.partitions, "partition"), commands.get("resume", ""))
    plan_id = None if material.planned is None else material.planned.plan_id
    if done is not None and any(row.plan_id == plan_id for row in done.rows if row.plan_id is not None):
        yield NextStep("Look whether all is well after the plan's elections.", "", commands.get("verify", ""))
    for kind in kinds(material.now.rows)[:MOST_KINDS]:
        decision = kind.row.decision
        if _worth(decision):
            yield NextStep(decision.advice.text, named(kind.addresses), material.advice.get(kind.shown, ""))


def made(material: Material) -> Iterator[tuple[str, str]]:
    """How the report was made: each source with its time, and the rules that decided."""
    yield "kelr", f"version {material.version}, at {when(material.made_at_ms)} UTC"
    yield "command", material.command
    for name, look in (("state now", material.now), ("state before", material.before)):
        if look is not None:
            cluster = look.cluster
            how = f"brokers by {cluster.brokers_source}, partitions by {cluster.partitions_source}"
            yield name, f"{look.name}, read {when(look.taken_at_ms)} UTC; {how}"
            rules = sorted({row.decision.rules for row in look.rows.values()})
            if rules:
                yield f"rules, {name}", "; ".join(f"{rule} ({RULE_SETS[rule].title})" for rule in rules)
    told = material.told
    if told is not None:
        reach = f"from {when(told.begins_ms)} to {when(told.ends_ms)} UTC, offset {told.ends_offset:,}"
        yield "metadata log", f"{told.name}, {reach}"
        for warning in told.warnings:
            yield "metadata log: note", warning
    if material.done is not None:
        yield "audit log", f"{material.done.file}: {count(len(material.done.rows), 'line')}"
        yield "journals", f"{material.done.journals:,}, of which {len(material.done.open_runs):,} are open"
    if material.planned is not None:
        yield "plan", f"{material.planned.file}, {material.planned.plan_id}"
