"""An explanation as an engineer reads it aloud: one sentence, the logs, what Kafka does by itself, the choices, advice.

Nothing is computed here: every line is a field of the `Decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from kelr.controller import RULE_SETS
from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.words import joined
from kelr.model import AdviceAction, Decision, ElectedBy, ElectionType, KeptOut, Situation, Step
from kelr.view.columns import Column, Fact, Json, View
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL
from kelr.view.explain_columns import (
    CANDIDATE_COLUMNS,
    FORECAST_COLUMNS,
    LEADER_COLUMN,
    LOSES_COLUMN,
    OPTION_COLUMNS,
    SHORT_COLUMNS,
    SHORT_STEP_COLUMNS,
    STEP_COLUMNS,
    WAY_COLUMN,
    Explained,
    elected_by_itself,
    election_name,
    merged_returns,
    options_of,
    telling_rule,
)
from kelr.view.explain_if import assumed_document, assumed_lines
from kelr.view.layout import Layout
from kelr.view.log_bars import log_bars
from kelr.view.log_cells import Ink
from kelr.view.log_picture import picture_texts
from kelr.view.styled import Span, Style, Text, plain, styled

# Values as the fields of a document.


def as_fields(value: Any) -> Any:
    """A dataclass as `dataclasses.asdict` gives it: names and values, those within it too.

    What is no dataclass, tuple, list or dictionary is taken as it is and not copied, as values here never change. That
    makes it several times as quick, which thousands of decisions feel.
    """
    kind: type = type(value)
    names = _names(kind)
    if names is not None:
        return {name: as_fields(getattr(value, name)) for name in names}
    if kind is tuple or kind is list:
        return kind([as_fields(one) for one in value]) if value else value
    if kind is dict:
        return {as_fields(key): as_fields(one) for key, one in value.items()}
    return value


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass; None of anything else."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


NOTHING_TO_EXPLAIN = "By the cluster's own account every partition is led and has min ISR: nothing to explain."
LED_WITH_MIN_ISR = "By the cluster's own account every partition is led and has min ISR."
NOT_KNOWN_TO_BE_WELL = (
    "Whether every partition is led and has min ISR is not known, since no controller answered ({silence}). Brokers"
    " knew last of none without."
)
NOTHING_IMAGINED = "Every partition is led and has min ISR, as it is and as imagined: nothing to explain."
_MAY_BE_DEGRADED = (
    "whom Kafka elects from it left the ISR once, and may be the degraded broker (a slow disk or network). Look at it"
    " once it leads."
)
_FIELDS = tuple(Decision.__dataclass_fields__)
_NOT_TO_BE_RUN = "(The command of the election is left out: {why}.)"
_NOT_IN_THAT_STATE = "the cluster is not in this state"

_HEAD = (
    *CLUSTER_HEAD,
    Fact(
        "assumptions",
        "object[]",
        "What is imagined to have happened, in order: {text, notes, changes, changes_not_listed}; empty for what is.",
    ),
    Fact(
        "otherwise",
        "object[]",
        "The same, had brokers stopped uncleanly of which nothing tells how; empty where there are none. A partition"
        " has two items then, unless both come to the same for it.",
    ),
)

_TAIL = (
    Fact(
        "not_known",
        "string[]",
        "Partitions that are left out as healthy, while it is not known whether disks of brokers that are down hold"
        " what an unclean election gave up.",
    ),
    *ERRORS_TAIL,
)

NextCommand = Callable[[Iterable[str]], str]
"""Turns a command's arguments into the line to type, connection flags included."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How to show decisions.

    Args:
        next_command: makes the exact next command.
        stock_connection: the connection flags as Kafka's own tools take them.
        width: columns of the terminal; None for a pipe.
        election: show the steps of this election type too.
        sources: name each rule, and the KIP section or Kafka class behind it.
        imagined: whether the decisions are about an imagined state.
        either_way: whether they are about two, for want of knowing how brokers stopped.
        keep: the flags that a next ``kelr explain`` repeats.
        ink: what to draw the replicas' logs with; None: they are not drawn.
    """

    next_command: NextCommand
    stock_connection: str = "--bootstrap-server HOST:PORT"
    width: int | None = None
    election: ElectionType | None = None
    sources: bool = False
    imagined: bool = False
    either_way: bool = False
    keep: tuple[str, ...] = ()
    ink: Ink | None = None

    def following(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A next command's arguments with the flags that this explanation was asked for with."""
        return (*arguments, *self.keep) if arguments[0] == "explain" else tuple(arguments)

    @property
    def _layout(self) -> Layout:
        return Layout(self.width)

    def full(self) -> View[Explained]:
        """The whole explanation of each partition."""
        return explain_view(block=self._block, item=self.document)

    def short(self) -> View[Explained]:
        """One line for each partition."""
        return explain_view(item=self.document, imagined=self.imagined, either_way=self.either_way)

    def document(self, row: Explained) -> Mapping[str, Json]:
        """The decision as JSON: the fields of `Decision`, elections by type, and the advice's command as one line."""
        decision = row.decision
        own: dict[str, Json] = {
            "elections": _elections_document(decision),
            "advice": {
                **as_fields(decision.advice),
                "command": self._line(self._next(row)),
                "stock": (self._stock(decision.advice.stock) or None) if not row.supposed else None,
                "elect": None if row.supposed else self._line(decision.advice.elect),
                "rescue": None if row.supposed else self._line(decision.advice.rescue),
            },
            "damage": [
                {**as_fields(damage), "afterwards": self._stock(damage.afterwards)} for damage in decision.damage
            ],
        }
        fields = {name: own[name] if name in own else as_fields(getattr(decision, name)) for name in _FIELDS}
        return {**fields, "taken_at_ms": row.taken_at_ms, "assumptions": assumed_document(row.assumed)}

    def _next(self, row: Explained) -> tuple[str, ...]:
        """The next command. About another state, or other rules, than the cluster's there is nothing to do: what is
        there is explained."""
        decision = row.decision
        return ("explain", f"{decision.topic}:{decision.partition}") if row.supposed else decision.advice.command

    def _line(self, arguments: Sequence[str]) -> str | None:
        return self.next_command(arguments) if arguments else None

    def _stock(self, line: str) -> str:
        return line.replace(STOCK_CONNECTION, self.stock_connection)

    def _block(self, row: Explained) -> Iterator[Text]:
        decision = row.decision
        for part in (
            self._heading(row),
            self._layout.table(CANDIDATE_COLUMNS, decision.candidates),
            self._picture(row),
            self._kept_out(decision),
            self._by_itself(decision),
            self._forecasts(decision),
            self._from_the_elr(row),
            self._elections(decision),
            self._election_steps(decision),
            self._notes(decision),
            self._damage(decision),
            self._advice(row),
        ):
            lines = list(part)
            yield from lines
            if lines:
                yield plain("")

    def _heading(self, row: Explained) -> Iterator[Text]:
        about = f"{RULE_SETS[row.decision.rules].title} · rules {row.decision.rules} · read {_time(row.taken_at_ms)}"
        yield from self.other_rules(row)
        if row.assumed:
            yield from assumed_lines(self._layout, row.assumed, row.otherwise)
            yield plain("")
            about += " · imagined"
        yield from self._layout.lines(styled(row.decision.summary, Style.HEADING))
        yield from self._layout.lines(styled(about, Style.QUIET))

    def _picture(self, row: Explained) -> Iterator[Text]:
        if self.ink is not None:
            bars = log_bars(row.decision, row.logs, self.election)
            yield from picture_texts(bars, width=self.width, ink=self.ink)

    def _kept_out(self, decision: Decision) -> Iterator[Text]:
        """Why replicas are not in the ISR; what is true of several is said once."""
        said: dict[KeptOut, list[int]] = {}
        for candidate in decision.candidates:
            if candidate.kept_out is not None:
                said.setdefault(candidate.kept_out, []).append(candidate.replica)
        for why, replicas in said.items():
            yield from self._layout.paragraph("Not in the ISR: ", f"{joined(replicas)}: {why.text}.", Style.HEADING)
        for rule in dict.fromkeys(why.rule for why in said):
            yield [*styled("  more: ", Style.HEADING), Span(f"kelr explain --why {rule}")]

    def other_rules(self, row: Explained | None) -> Iterator[Text]:
        """A line that says so where the cluster does not run the rules that decided."""
        decision = None if row is None else row.decision
        if decision is not None and decision.cluster_rules is not None:
            text = f"By the rules that you named, {decision.rules}; this cluster runs {decision.cluster_rules}:"
            yield from self._layout.lines(styled(text, Style.NOTICE))

    def _by_itself(self, decision: Decision) -> Iterator[Text]:
        if (decision.leader is not None and decision.elected == decision.leader) or not decision.steps:
            return
        yield styled(f"Kafka by itself elects {elected_by_itself(decision)} now:", Style.HEADING)
        yield from self._layout.table(self._step_columns, decision.steps, header=False)
        rule = telling_rule(decision)
        if rule is not None:
            yield [*styled("  why: ", Style.HEADING), Span(f"kelr explain --why {rule}")]

    def _forecasts(self, decision: Decision) -> Iterator[Text]:
        if decision.forecasts:
            yield from self._layout.table(FORECAST_COLUMNS, merged_returns(decision.forecasts), header=False)

    def _from_the_elr(self, row: Explained) -> Iterator[Text]:
        """Who is elected from the ELR may be the broker that is in a bad way (KIP-966, "Public-Facing Changes")."""
        imagined = [one.change.elected_by for one in row.assumed if one.change is not None]
        ways = (row.decision.elected_by, *imagined, *(one.elected_by for one in row.decision.forecasts))
        if ElectedBy.ELR in ways:
            yield from self._layout.paragraph("From the ELR: ", _MAY_BE_DEGRADED, Style.HEADING)

    def _elections(self, decision: Decision) -> Iterator[Text]:
        if decision.leader is None or decision.situation is Situation.LEADER_NOT_LIVE:
            yield from self._layout.table(OPTION_COLUMNS, options_of(decision))

    def _election_steps(self, decision: Decision) -> Iterator[Text]:
        for outcome in decision.elections:
            if outcome.election is self.election:
                yield styled(f"{election_name(outcome, decision)}, step by step:", Style.HEADING)
                yield from self._layout.table(self._step_columns, outcome.steps, header=False) if outcome.steps else ()
                if outcome.note:
                    yield plain(f" {outcome.note}")

    def _notes(self, decision: Decision) -> Iterator[Text]:
        for note in decision.notes:
            yield from self._layout.paragraph("Note: ", note, Style.NOTICE)

    def _damage(self, decision: Decision) -> Iterator[Text]:
        for number, damage in enumerate(decision.damage):
            yield from self._layout.paragraph("          " if number else "At stake: ", damage.text, Style.HEADING)
            if damage.afterwards:
                yield plain(f"          afterwards: {self._stock(damage.afterwards)}")

    def _advice(self, row: Explained) -> Iterator[Text]:
        advice = row.decision.advice
        head = "Advice: "
        for prevention in dict.fromkeys(one.change.prevention for one in row.assumed if one.change is not None):
            if prevention:
                yield from self._layout.paragraph("To prevent a loss: ", prevention, Style.HEADING)
        if row.supposed:
            yield styled("Advice, if that were so:" if row.assumed else "Advice, under these rules:", Style.HEADING)
            head = " " * len(head)
        yield from self._layout.paragraph(head, advice.text, Style.HEADING)
        if advice.until:
            yield from self._layout.paragraph("        ", advice.until, Style.PLAIN)
        if advice.alternative:
            yield from self._layout.paragraph("        ", advice.alternative, Style.PLAIN)
        following = self._next(row)
        if advice.elect and row.supposed:
            why = _NOT_IN_THAT_STATE if row.assumed else f"this cluster runs {row.decision.cluster_rules}"
            yield from self._layout.paragraph("  ", _NOT_TO_BE_RUN.format(why=why), Style.PLAIN)
        lines = [] if row.supposed else [self._stock(advice.stock), self._line(advice.rescue)]
        lines.append(self._line(following))
        if advice.elect and not row.supposed and advice.elect != following:
            if _elects_as_advised(row.decision):
                lines.append(self._line(advice.elect))
            else:
                yield [*styled("  else: ", Style.HEADING), Span(str(self._line(advice.elect)))]
        for number, line in enumerate(filter(None, lines)):
            yield [*styled("  then: " if number else "  next: ", Style.HEADING), Span(line)]

    @property
    def _step_columns(self) -> tuple[Column[Step], ...]:
        return STEP_COLUMNS if self.sources else SHORT_STEP_COLUMNS


def _elects_as_advised(decision: Decision) -> bool:
    """Whether the election that the advice speaks of is its last step, once a broker was stopped or started, and not
    what to do where the advice cannot be followed: that is of a live replica."""
    advice = decision.advice
    live = any(one.live for one in decision.candidates if one.replica == advice.designate)
    return not live or (bool(advice.stop) and advice.action is AdviceAction.HOLD)


def explain_view(
    *,
    block: Callable[[Explained], Iterable[Text]] | None = None,
    item: Callable[[Explained], Mapping[str, Json]] | None = None,
    imagined: bool = False,
    either_way: bool = False,
) -> View[Explained]:
    """The output of `kelr explain`; with `block` people get a text for each partition instead of a line."""
    ways = (WAY_COLUMN,) if either_way else ()
    columns = (SHORT_COLUMNS[0], *ways, LEADER_COLUMN, LOSES_COLUMN, *SHORT_COLUMNS[1:]) if imagined else SHORT_COLUMNS
    return View("kelr/explain", columns, block=block, item=item, head=_HEAD, tail=_TAIL)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _elections_document(decision: Decision) -> dict[str, Json]:
    """Each election type's outcome; `designation` is that of the best live log, `designations` has all of them."""
    document: dict[str, Json] = {}
    designations = [outcome for outcome in decision.elections if outcome.election is ElectionType.DESIGNATION]
    for outcome in decision.elections:
        if outcome.election is not ElectionType.DESIGNATION:
            document[outcome.election.value] = as_fields(outcome)
    best = next((c.replica for c in decision.candidates if c.best and c.live), None)
    chosen = next((outcome for outcome in designations if outcome.designate == best), designations[0])
    document[ElectionType.DESIGNATION.value] = as_fields(chosen)
    document["designations"] = [as_fields(outcome) for outcome in designations]
    return document
