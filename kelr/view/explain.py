"""An explanation that is read once: the verdict, what to do and what it costs first, then the evidence.

Nothing is computed here: every line is a field of the `Decision`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

from kelr.controller import RULE_SETS
from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.loss_words import amount_in_words, promise, promise_in_words, promised_if, promised_of, where_in_words
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.engine.words import agree, brokers, former_in_words, in_short, joined, time_of_day, utc_time
from kelr.model import (
    LOG_DIRECTORY,
    Advice,
    AdviceAction,
    Candidate,
    Decision,
    ElectedBy,
    ElectionType,
    KeptOut,
    Loss,
    LossCertainty,
    Outcome,
    ReplicaLog,
    Situation,
    Step,
)
from kelr.page.words import full, sentence
from kelr.view.columns import Column, Fact, Json, RowT, View
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, STYLES
from kelr.view.explain_columns import (
    EVENT_COLUMNS,
    FORECAST_COLUMNS,
    LEADER_COLUMN,
    LOSES_COLUMN,
    NOT_PROVEN,
    SHORT_COLUMNS,
    SHORT_STEP_COLUMNS,
    STEP_COLUMNS,
    WAY_COLUMN,
    WIDE_EVENT_COLUMNS,
    Explained,
    elected_by_itself,
    election_name,
    events_of,
    merged_returns,
    noted_below,
    replica_columns,
    situation_text,
    telling_rule,
)
from kelr.view.explain_if import assumed_document, assumed_lines
from kelr.view.layout import PIPE_WIDTH, WIDE_PIPE_WIDTH, Layout, table_lines
from kelr.view.log_bars import log_bars
from kelr.view.log_picture import picture_texts
from kelr.view.log_scale import Ink
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


NOT_KNOWN_TO_BE_WELL = (
    "Whether every partition is led and has min ISR is not known, since no controller answered ({silence}). Brokers"
    " knew last of none without."
)
NOTHING_IMAGINED = "Every partition is led and has min ISR, as it is and as imagined: nothing to explain."
_MAY_BE_DEGRADED = (
    "From the ELR: whom Kafka elects from it left the ISR once, and may be the degraded broker (a slow disk or"
    " network). Look at it once it leads."
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
        details: show the evidence, too: each rule that was asked with its source, and why each number is what it is.
        imagined: whether the decisions are about an imagined state.
        either_way: whether they are about two, for want of knowing how brokers stopped.
        keep: the flags that a next ``kelr explain`` repeats.
        ink: what to draw the replicas' logs with; None: they are not drawn.
    """

    next_command: NextCommand
    stock_connection: str = "--bootstrap-server HOST:PORT"
    width: int | None = None
    election: ElectionType | None = None
    details: bool = False
    imagined: bool = False
    either_way: bool = False
    keep: tuple[str, ...] = ()
    ink: Ink | None = None

    def following(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """A next command's arguments with the flags that this explanation was asked for with."""
        return (*arguments, *self.keep) if list(arguments[:1]) == ["explain"] else tuple(arguments)

    @property
    def _columns(self) -> int:
        return self.width or (WIDE_PIPE_WIDTH if self.details else PIPE_WIDTH)

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
            "advice": self.advice(row),
            "damage": [
                {**as_fields(damage), "afterwards": self._stock(damage.afterwards)} for damage in decision.damage
            ],
        }
        fields = {name: own[name] if name in own else as_fields(getattr(decision, name)) for name in _FIELDS}
        return {**fields, "taken_at_ms": row.taken_at_ms, "assumptions": assumed_document(row.assumed)}

    def advice(self, row: Explained) -> Mapping[str, Json]:
        """The decision's advice as JSON."""
        advice = row.decision.advice
        return {
            **as_fields(advice),
            "command": self._line(self._next(row)),
            "stock": (self._stock(advice.stock) or None) if not row.supposed else None,
            "elect": None if row.supposed else self._line(advice.elect),
            "rescue": None if row.supposed else self._line(advice.rescue),
        }

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
        for part in (
            self._heading(row),
            self._verdict(row),
            self._replicas(row),
            self._picture(row),
            self._events(row.decision),
            self._election_steps(row.decision),
            self._evidence(row) if self.details else (),
            self._foot(row),
        ):
            lines = list(part)
            yield from lines
            if lines:
                yield plain("")

    def _heading(self, row: Explained) -> Iterator[Text]:
        decision = row.decision
        yield from self.other_rules(row)
        if row.assumed:
            yield from assumed_lines(Layout(self._columns), row.assumed, row.otherwise)
            yield plain("")
        style = STYLES.get(decision.situation, Style.BAD)
        word = "LEADERLESS" if decision.leader is None else f"LED BY {decision.leader}"
        if decision.situation is Situation.LEADER_NOT_LIVE:
            word = f"LEADER {decision.leader} NOT LIVE"
        yield [
            Span(f"{decision.topic}:{decision.partition}  ", Style.HEADING),
            Span(word, Style.BAD if decision.leader is None else style),
            Span("  "),
            *situation_text(row),
        ]

    def other_rules(self, row: Explained | None) -> Iterator[Text]:
        """A line that says so where the cluster does not run the rules that decided."""
        decision = None if row is None else row.decision
        if decision is not None and decision.cluster_rules is not None:
            text = f"By the rules that you named, {decision.rules}; this cluster runs {decision.cluster_rules}:"
            yield from self._lines(styled(text, Style.NOTICE))

    def _verdict(self, row: Explained) -> Iterator[Text]:
        """What to read before anything is done: the loss, the advice with its command, and what else there is."""
        decision = row.decision
        if decision.leader is not None or decision.elected is not None or decision.situation is Situation.UNKNOWN:
            yield from self._labelled("Now", plain(decision.summary))
        if _may_be_elected(decision):
            yield from self._labelled("Loss", loss_now(row))
        for prevention in dict.fromkeys(one.change.prevention for one in row.assumed if one.change is not None):
            if prevention:
                yield from self._lines([Span("To prevent a loss: ", Style.HEADING), Span(prevention)])
        if row.supposed:
            yield styled("Advice, if that were so:" if row.assumed else "Advice, under these rules:", Style.HEADING)
        yield from self._do(row)
        yield from self._otherwise(row)
        for damage in decision.damage:
            yield from self._labelled("Risk", plain(damage.text))
            if damage.afterwards:
                yield from self._command("Afterwards: ", self._stock(damage.afterwards))

    def _do(self, row: Explained) -> Iterator[Text]:
        decision, advice = row.decision, row.decision.advice
        yield from self._labelled("Do", plain(advice.text))
        if row.supposed:
            if advice.elect:
                why = _NOT_IN_THAT_STATE if row.assumed else f"this cluster runs {decision.cluster_rules}"
                yield from self._labelled("", plain(_NOT_TO_BE_RUN.format(why=why)))
            yield from self._command("As it is: ", self._line(self._next(row)))
            return
        lines = [self._stock(advice.stock), self._line(advice.rescue), self._line(self.following(_then(decision)))]
        if advice.elect and advice.elect != advice.command and _elects_as_advised(decision):
            lines.append(self._line(advice.elect))
        for number, line in enumerate(filter(None, lines)):
            after_it = number or (_starts_a_broker(advice) and not advice.rescue and not advice.stock)
            yield from self._command("Then: " if after_it else "", line)

    def _otherwise(self, row: Explained) -> Iterator[Text]:
        """What else there is: to learn more, or to elect where the advice cannot be followed."""
        decision, advice, label = row.decision, row.decision.advice, "Else"
        if not row.supposed and advice.command != _then(decision) and advice.command[:1] == ("recover",):
            unread = sum(not one.heard and not one.live for one in decision.candidates)
            disks = "its disk" if unread == 1 else "both disks" if unread == 2 else "their disks"
            yield from self._command(f"Read {disks} to count the loss: ", self._line(advice.command), label=label)
            label = ""
        if advice.alternative:
            yield from self._labelled(label, plain(advice.alternative))
            label = ""
        if not row.supposed and advice.elect not in {(), advice.command} and not _elects_as_advised(decision):
            yield from self._command("Last resort: ", self._line(advice.elect), label=label)

    def _replicas(self, row: Explained) -> Iterator[Text]:
        candidates = row.decision.candidates
        yield from self._table(replica_columns(row, wide=self.details), candidates)
        for one in candidates:
            # Where the connection failed the table says so; a reason that is long stands among the notes.
            if one.unheard_reason is not None and (self.details or not row.unreachable(one.replica)):
                what = f"Epochs of log {one.replica} not known" if one.heard else f"Log {one.replica} not read"
                yield from self._lines(styled(f"{what}: {in_short(one.unheard_reason)}.", Style.NOTICE))
        said: dict[KeptOut, list[int]] = {}
        for one in candidates:
            if one.kept_out is not None:
                said.setdefault(one.kept_out, []).append(one.replica)
        for why, replicas in said.items():
            yield from self._lines(plain(f"Not in the ISR: {joined(replicas)}: {why.text}."))
        for rule in dict.fromkeys(why.rule for why in said) if self.details else ():
            yield [*styled("  more: ", Style.HEADING), Span(f"kelr explain --why {rule}", Style.COMMAND)]

    def _picture(self, row: Explained) -> Iterator[Text]:
        if self.ink is not None:
            bars = log_bars(row.decision, row.logs, self.election)
            yield from picture_texts(bars, width=self.width, ink=self.ink)

    def _events(self, decision: Decision) -> Iterator[Text]:
        if not _may_be_elected(decision) and not decision.forecasts:
            return
        events = events_of(decision, every=self.details)
        yield from self._table(WIDE_EVENT_COLUMNS if self.details else EVENT_COLUMNS, events)
        kept = LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
        promised = [one.loss.min_isr for one in events if one.loss is not None and one.loss.grade is kept]
        if promised:
            yield plain(f"{NOT_PROVEN} {sentence(promise(promised))}.")
        for event in () if self.details else filter(noted_below, events):
            yield from self._lines(plain(f"{event.name}: {event.note}."))

    def _election_steps(self, decision: Decision) -> Iterator[Text]:
        for outcome in decision.elections:
            if outcome.election is self.election:
                yield styled(f"{election_name(outcome, decision)}, step by step:", Style.HEADING)
                yield from self._table(self._step_columns, outcome.steps, header=False) if outcome.steps else ()
                if outcome.note:
                    yield plain(f" {outcome.note}")

    def _evidence(self, row: Explained) -> Iterator[Text]:
        """What the first page leaves out: the rules that Kafka asks, one by one, and each return in words."""
        decision = row.decision
        yield from self._lines(styled(decision.summary, Style.HEADING))
        if not (decision.leader is not None and decision.elected == decision.leader) and decision.steps:
            yield plain("")
            yield styled(f"By itself Kafka elects {elected_by_itself(decision)} now:", Style.HEADING)
            yield from self._table(self._step_columns, decision.steps, header=False)
            rule = telling_rule(decision)
            if rule is not None:
                yield [*styled("  more: ", Style.HEADING), Span(f"kelr explain --why {rule}", Style.COMMAND)]
        if decision.forecasts:
            yield plain("")
            yield from self._table(FORECAST_COLUMNS, merged_returns(decision.forecasts), header=False)
        # Who is elected from the ELR may be the broker that is in a bad way (KIP-966, "Public-Facing Changes").
        imagined = [one.change.elected_by for one in row.assumed if one.change is not None]
        if ElectedBy.ELR in (decision.elected_by, *imagined, *(one.elected_by for one in decision.forecasts)):
            yield from self._lines(plain(_MAY_BE_DEGRADED))

    def _foot(self, row: Explained) -> Iterator[Text]:
        decision, rules = row.decision, RULE_SETS[row.decision.rules]
        if decision.advice.until:
            yield from self._lines(plain(decision.advice.until))
        for note in decision.notes:
            yield from self._lines([Span("Note: ", Style.NOTICE), Span(f"{note}.")])
        read = sum(one.heard for one in decision.candidates)
        title = f" ({rules.title})" if self.details else ""
        text = (
            f"Rules {decision.rules}{title}. Read {read} of {len(decision.candidates)} logs at"
            f" {utc_time(row.taken_at_ms)}.{' Imagined.' if row.assumed else ''}"
        )
        yield from self._lines(styled(text, Style.QUIET))

    @property
    def _step_columns(self) -> tuple[Column[Step], ...]:
        return STEP_COLUMNS if self.details else SHORT_STEP_COLUMNS

    def _labelled(self, label: str, text: Text) -> Iterator[Text]:
        yield from Layout(self._columns).paragraph(f"{label:<6}", text)

    def _lines(self, text: Text) -> Iterator[Text]:
        yield from Layout(self._columns).lines(text)

    def _table(self, columns: Sequence[Column[RowT]], rows: Iterable[RowT], *, header: bool = True) -> Iterator[Text]:
        yield from table_lines(columns, rows, width=self._columns, header=header)

    def _command(self, head: str, line: str | None, *, label: str = "") -> Iterator[Text]:
        """A command on a line of its own, never broken, so that it can be copied."""
        if not line:
            return
        indent = f"{label:<6}"
        if head and len(indent) + len(head) + len(line) > self._columns:
            yield [Span(indent, Style.HEADING), Span(head.rstrip())]
            indent, head = f"{'':<6}", "  "
        yield [Span(indent, Style.HEADING), Span(head), Span(line, Style.COMMAND)]


def _may_be_elected(decision: Decision) -> bool:
    """Whether an election is a choice: nobody leads, or nobody live."""
    return decision.leader is None or decision.situation is Situation.LEADER_NOT_LIVE


def _then(decision: Decision) -> tuple[str, ...]:
    """The command that comes next: once a broker was started, to explain the partition again."""
    again = ("explain", f"{decision.topic}:{decision.partition}")
    return again if _starts_a_broker(decision.advice) else decision.advice.command


def _starts_a_broker(advice: Advice) -> bool:
    """Whether what to do is to start a broker, before any command."""
    return advice.action is AdviceAction.BRING_BACK and not advice.stop


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


# Losses in words.


def loss_now(row: Explained) -> Text:
    """Nothing, where following the advice loses nothing; else what the best election loses now, and why no more is
    known."""
    decision = row.decision
    if decision.elected is not None and decision.elected != decision.leader:
        found = next((one for one in decision.elections if one.elected == decision.elected), None)
        return _loss(row, None if found is None else found.loss, f"when Kafka elects {decision.elected}")
    back = _lossless_return(decision)
    if back is not None:
        return plain(" ".join(_of_the_return(row, back)))
    asked = best_election(decision)
    if asked is None:
        return [Span("UNKNOWN.", Style.BAD), Span(f" No broker can be elected now.{_unread(row, _unheard(decision))}")]
    known = [one for one in decision.elections if one.loss is not None and _counts(one.loss)]
    designated = asked.election is ElectionType.DESIGNATION and bool(known)
    return _loss(row, asked.loss, f"if you designate {asked.designate} now" if designated else "if you elect now")


def _loss(row: Explained, loss: Loss | None, when: str) -> Text:
    """``UNKNOWN if you elect now: at least 19 offsets (116..134), at least 4 of them committed.`` and why."""
    if loss is None:
        return [Span("UNKNOWN", Style.BAD), Span(f" {when}.")]
    total, committed = loss.total, loss.committed
    unread = _unread(row, loss.unheard)
    reason = "" if unread or not loss.reason or loss.grade is not LossCertainty.UNKNOWN else f" {full(loss.reason)}"
    if loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR:
        reason = f" {sentence(promise_in_words(loss.min_isr))}."
        if total is not None and total.none:
            # The condition, in the same sentence: with min ISR 1 it may be all that there is to say.
            return plain(f"None {promised_of([loss.min_isr])} {when}, {promised_if([loss.min_isr])}.{unread}")
    of_them = f", {committed} of them committed" if committed is not None and _tells(loss) else ""
    if total is not None and total.none:
        return plain(f"None {when}.{reason}{unread}")
    if loss.grade is LossCertainty.PROVEN_NONE:
        others = f"; {amount_in_words(total)} that never were" if total is not None and total.at_least else ""
        return plain(f"No committed record {when}{others}.{unread}")
    if total is None or total.at_most is None:
        least = f": {amount_in_words(total)}{where_in_words(loss)}{of_them}" if total and total.at_least else ""
        return [Span("UNKNOWN", Style.BAD), Span(f" {when}{least}.{unread}{reason}")]
    return plain(f"{amount_in_words(total)}{where_in_words(loss)} {when}{of_them}.{reason}{unread}")


def _tells(loss: Loss) -> bool:
    """Whether the number of committed offsets says something: it is known to some extent, and no promise."""
    promised = loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    return loss.committed is not None and not promised and str(loss.committed) != "UNKNOWN"


def _counts(loss: Loss) -> bool:
    return loss.total is not None and (loss.total.at_least > 0 or loss.total.at_most is not None)


def best_election(decision: Decision) -> Outcome | None:
    """The election that the advice speaks of; else the one that is known to lose the fewest committed offsets."""
    asked = [
        one
        for one in decision.elections
        if one.elected is not None and one.loss is not None and not elects_by_unread_logs(decision, one)
    ]
    advised = (one for one in asked if one.designate is not None and one.designate == decision.advice.designate)
    return next(advised, None) or min(asked, key=_rank, default=None)


def _rank(outcome: Outcome) -> tuple[bool, tuple[bool, int]]:
    committed = None if outcome.loss is None else outcome.loss.committed
    return committed is None, (True, 0) if committed is None else committed.rank


def _lossless_return(decision: Decision) -> int | None:
    """The broker to start, where its return is known to lose nothing, however it stopped."""
    advice = decision.advice
    returns = [one for one in decision.forecasts if one.replica == advice.replica]
    none = [one.costs is not None and one.costs.total is not None and one.costs.total.none for one in returns]
    able = all(one.leads == advice.replica for one in returns)
    return advice.replica if advice.action is AdviceAction.BRING_BACK and none and all(none) and able else None


def _of_the_return(row: Explained, replica: int) -> Iterator[str]:
    candidates = row.decision.candidates
    best = any(one.best for one in candidates if one.replica == replica)
    read = sum(one.heard for one in candidates)
    why = f"its log is the most complete of {read}" if best else "its log lacks nothing that the others hold"
    elected = {one.elected for one in row.decision.forecasts if one.replica == replica}
    then = " and you designate it" if elected == {None} else " and leads" if None in elected else ""
    yield f"None if broker {replica} returns{then}: {why}."
    log = next((one for one in row.logs if isinstance(one, ReplicaLog) and one.replica == replica), None)
    if log is not None and log.source == LOG_DIRECTORY:
        when = "" if log.read_at_ms is None else f" {time_of_day(log.read_at_ms)}"
        how = {True: ", unclean shutdown", False: ", clean shutdown", None: ""}[log.unclean_shutdown]
        yield f"Disk read{when}: log end {log.log_end}{how}."


def _unheard(decision: Decision) -> tuple[int, ...]:
    return tuple(one.replica for one in decision.candidates if not one.heard)


def _unread(row: Explained, unheard: Sequence[int]) -> str:
    """Whose logs would tell more: a sentence behind another, and what their place promises; empty where all told."""
    decision = row.decision
    unread = [one for one in decision.candidates if one.replica in unheard]
    former = [one for one in unheard if one not in {candidate.replica for candidate in unread}]
    said = f" {full(former_in_words(former))}" if former else ""
    if not unread:
        return said
    names = brokers([one.replica for one in unread])
    place = _place(decision, unread)
    if all(row.unreachable(one.replica) for one in unread):
        said += f" {names.capitalize()}{place} {agree(len(unread), 'is', 'are')} unreachable."
        if place and not any(one.live for one in unread):
            hold = agree(len(unread), "It holds", "They hold")
            logs = agree(len(unread), "its log", "their logs")
            return f"{said} {hold} every committed record unless a crash cut {logs}."
        return said
    logs, were = agree(len(unread), "log", "logs"), agree(len(unread), "was", "were")
    return f"{said} The {logs} of {names}{place} {were} not read."


def _place(decision: Decision, replicas: Sequence[Candidate]) -> str:
    """`` (ELR)`` where all of them are members and the rules make that a promise; empty else."""
    if not RULE_SETS[decision.rules].elr:
        return ""
    if all(one.in_isr for one in replicas):
        return " (ISR)"
    return " (ELR)" if all(one.in_elr for one in replicas) else ""
