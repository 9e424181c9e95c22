"""The tables of a report: cells of text, and what was left out of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kelr.engine.loss_words import certainty_in_words, loss_in_words, promise
from kelr.engine.planning.lost import Lost
from kelr.engine.words import ids
from kelr.model import Candidate, Decision, LossCertainty, TopicPartition
from kelr.page.words import count
from kelr.view.columns import Column
from kelr.view.explain_columns import (
    FORECAST_COLUMNS,
    ReturnRow,
    decided_standing,
    elected_by_itself,
    events_of,
    lost_offsets,
    merged_returns,
)
from kelr.view.history_words import when
from kelr.view.incident.happenings import Timeline, done_in_words, who
from kelr.view.incident.kinds import Kind, named
from kelr.view.incident.losses import worst_first
from kelr.view.incident.material import Look, Material
from kelr.view.log_bars import LogBars
from kelr.view.lost_words import bounds_in_words
from kelr.view.plan_words import consent_needed, method_in_words
from kelr.view.styled import written

MOST_ROWS = 200
"""So many rows a table has at most."""


def graded(grade: LossCertainty, min_isrs: Iterable[int | None]) -> str:
    """How sure a loss is, or several of one grade.

    Args:
        min_isrs: `kelr.model.Loss.min_isr` of each.
    """
    if grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        return f"none {promise(min_isrs)}"
    return "proven none" if grade is LossCertainty.PROVEN_NONE else grade.value


@dataclass(frozen=True, slots=True)
class Table:
    """A table for a page."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """What is left out, and where it is found."""
    numbers: frozenset[int] = frozenset()
    """Columns that are set to the right."""


def states(look: Look, kinds: Sequence[Kind], everything: str) -> Table:
    """Where partitions stand: a row for each kind of them where they are many.

    Args:
        everything: the command that lists all.
    """
    caption = f"As read {when(look.taken_at_ms)} UTC from {look.name}."
    header = ("partitions", "situation", "leader", "ISR", "ELR", "last known", "waits for", "what to do")
    if len(look.rows) <= MOST_ROWS:
        rows = [_state(str(at), row.decision) for at, row in sorted(look.rows.items())]
        return Table(caption, header, tuple(rows))
    shown = kinds[:MOST_ROWS]
    rows = [
        _state(f"{count(len(kind.addresses), 'partition')}: {named(kind.addresses)}", kind.row.decision)
        for kind in shown
    ]
    note = (
        f"{len(look.rows):,} partitions, put together where the same is to be said of them; a row shows the one of them"
        " that an unclean election would cost most. Each by itself:"
    )
    if len(kinds) > len(shown):
        note = f"{len(kinds) - len(shown):,} more kinds are left out. {note}"
    return Table(caption, header, tuple(rows), f"{note} {everything}")


def _state(name: str, decision: Decision) -> tuple[str, ...]:
    return (
        name,
        written(decided_standing(decision), color=False),
        "none" if decision.leader is None else str(decision.leader),
        ids(decision.isr),
        ids(decision.elr),
        ids(decision.last_known_elr),
        ", ".join(map(str, decision.waits_for)) or "-",
        decision.advice.action.value + ("" if decision.advice.replica is None else f" {decision.advice.replica}"),
    )


def log_ends(bars: LogBars, candidates: Sequence[Candidate]) -> Table:
    """The figures behind a drawing of logs."""
    behind = {one.replica: one.behind_best for one in candidates}
    header = (
        "replica",
        "broker",
        "start",
        "end",
        "HW",
        "epoch",
        "as in best log up to",
        "behind best",
        "truncates",
    )
    rows = []
    for bar in bars.bars:
        if bar.unheard is not None:
            rows.append((str(bar.replica), f"{bar.status}, not read: {bar.unheard}", *("?",) * 7))
            continue
        rows.append(
            (
                str(bar.replica),
                bar.status,
                f"{bar.start:,}" if bar.start_known else "?",
                f"{bar.end:,}",
                _known(bar.high_watermark),
                _known(bar.last_epoch),
                "best" if bar.best else _known(bar.same_to),
                _known(behind.get(bar.replica)),
                (f"{bar.cut:,}" if bar.cut_known else "?") if bars.leads is not None else "-",
            )
        )
    return Table(
        "Offsets; an end is the offset that the next record would get.",
        header,
        tuple(rows),
        numbers=frozenset(range(2, 9)),
    )


def steps(decision: Decision) -> Table:
    """What Kafka asks by itself, in order."""
    rows = tuple(("yes" if one.holds else "no", one.text, one.evidence, one.source) for one in decision.steps)
    return Table(
        f"By itself Kafka elects {elected_by_itself(decision)}.", ("answer", "asked for", "evidence", "source"), rows
    )


def returns(decision: Decision) -> Table:
    """What happens when absent brokers return."""
    rows = merged_returns(decision.forecasts)
    cells = [tuple(_cell(column, row) for column in FORECAST_COLUMNS) for row in rows]
    return Table("What Kafka does at the moment when a broker returns.", ("if", "then"), tuple(cells))


def _cell(column: Column[ReturnRow], row: ReturnRow) -> str:
    return "" if column.text is None else written(column.text(row), color=False)


def choices(decision: Decision) -> Table:
    """What each return and each election would give and lose."""
    rows = []
    for one in events_of(decision, every=True):
        loss = one.loss
        committed = "-" if loss is None else written(lost_offsets(loss.committed, loss.committed_ranges), color=False)
        total = "-" if loss is None else written(lost_offsets(loss.total, loss.lost_ranges), color=False)
        grade = "-" if loss is None else graded(loss.grade, [loss.min_isr])
        sure = one.note or ("" if loss is None else certainty_in_words(loss))
        rows.append((one.name, one.leader, committed, total, grade, sure))
    header = ("option", "leads", "lost, committed", "lost in all", "grade", "certainty")
    return Table(
        "What each broker that could be started, and each kind of election, would give and lose.", header, tuple(rows)
    )


def lost_table(found: Sequence[Lost]) -> Table:
    """What was lost, the worst first."""
    ranked = worst_first(found)
    shown = ranked[:MOST_ROWS]
    rows = tuple(
        (
            str(one.address),
            "?" if one.leader is None else str(one.leader),
            bounds_in_words(one.committed),
            bounds_in_words(one.total),
            graded(one.grade, [one.min_isr]),
            one.basis,
        )
        for one in shown
    )
    left = len(ranked) - len(shown)
    note = (
        f"{count(left, 'more election')}, not known to have lost more: the audit log and the metadata log have them."
        if left
        else ""
    )
    header = ("partition", "elected", "lost, committed", "lost in all", "grade", "what this stands on")
    return Table("Offsets, election by election.", header, rows, note)


def done_table(material: Material, everything: str) -> Table | None:
    """What kelr did, by whom, and what came of it."""
    done = material.done
    if done is None or not done.rows:
        return None
    shown = done.rows[-MOST_ROWS:]
    rows = tuple(
        (
            when(row.at_ms),
            who(row),
            f"kelr {row.command}",
            row.topic if row.partition is None else str(TopicPartition(row.topic, row.partition)),
            done_in_words(row) + ("" if row.wanted is None else f": {row.wanted}"),
            row.result,
            "; ".join(part for part in (row.text, row.error or "", _forced(row.force_reason)) if part),
        )
        for row in shown
    )
    left = len(done.rows) - len(shown)
    note = f"{left:,} earlier lines are left out: {everything}" if left else ""
    header = ("when (UTC)", "who", "command", "where", "what", "result", "remarks")
    return Table(f"From {done.file}.", header, rows, note)


def _forced(reason: str | None) -> str:
    return "" if reason is None else f"forced: {reason}"


def plan_table(material: Material) -> Table | None:
    """The plan that was given."""
    planned = material.planned
    if planned is None:
        return None
    elections = planned.plan.elections
    rows = tuple(
        (
            str(one.address),
            one.election.value,
            str(one.elect),
            loss_in_words(one.loss),
            method_in_words(one),
            one.reason,
        )
        for one in elections[:MOST_ROWS]
    )
    left = len(elections) - len(rows)
    note = f"{count(left, 'more election')} in {planned.file}." if left else ""
    needed = " and ".join(consent_needed(planned.plan)) if elections else ""
    caption = f"Plan {planned.plan_id} from {planned.file}, made {when(planned.plan.created_at_ms)} UTC"
    caption += f", to be carried out {needed}." if needed else ": it elects no leader."
    header = ("partition", "election", "elects", "loses", "method", "why")
    return Table(caption, header, rows, note)


def timeline_table(timeline: Timeline, everything: str) -> Table:
    """What happened, in the order of time."""
    rows = tuple((one.time, one.where, one.what, one.why, one.source) for one in timeline.rows)
    note = (
        f"{count(timeline.left_out, 'more event')} told less, or came before: {everything}" if timeline.left_out else ""
    )
    return Table(
        "Times are UTC, log offsets those of the metadata log.",
        ("when", "where", "what", "why, or by whom", "source"),
        rows,
        note,
    )


def _known(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"
