"""A plan as people review it: what it costs, what to do in which order, and grouped rows; a document has all of it.

The same page, with a question for its head, comes before an election that is asked about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kelr.engine.advice.commands import DIRECTORY, led_by, read_the_disk
from kelr.engine.loss_words import certainty_in_words, loss_in_words, not_read, promise
from kelr.engine.planning.consent import why_forced
from kelr.engine.planning.hold import loses_less
from kelr.engine.words import agree, brokers, time_of_day
from kelr.model import LOG_DIRECTORY, AdviceAction, Bounds, Loss, LossCertainty, TopicError, TopicPartition
from kelr.model.plan import Consent, Method, NotPlanned, Plan, PlannedElection, Unplanned
from kelr.page.words import sentence
from kelr.view.broker_order import WANTED_BACK, BrokerOrder, BrokerStep, broker_order, leave_offline, sections
from kelr.view.describe import note_errors
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from kelr.view.plan_document import PLAN_KIND, PlanContext, plan_head, plan_tail, plan_view, rows_of
from kelr.view.plan_left import rescues_of as rescues_before
from kelr.view.plan_left import say_left
from kelr.view.plan_words import (
    alternative_command,
    alternative_in_words,
    cuts_in_words,
    disks_at_stake,
    elections_in_words,
    in_short,
    loss_of_plan,
    method_in_short,
    method_in_words,
    named,
    other_warnings,
    partitions_in_words,
    rescues_of,
    targets_of,
    tells_of_a_cordon,
    tells_of_unread,
    where_in_words,
)
from kelr.view.screen import BAD, GOOD, LABEL, QUIET, WARN, Part, Screen
from kelr.view.styled import Style

NOTHING_PLANNED = "No election planned: none is needed."
NOTHING_YET = "No election planned, for the reasons below."
NOTHING_CAN_BE = "No election planned: no controller answers, so whether one is needed is UNKNOWN."


def show_plan(
    output: Output,
    plan: Plan,
    *,
    context: PlanContext | None = None,
    errors: Sequence[TopicError] = (),
    following: Sequence[str] | None = None,
    full: bool = False,
    nothing_seen: bool | None = None,
) -> None:
    """Print a plan: for people all that somebody has to know before saying yes, else the document ``kelr/plan``.

    Args:
        context: where the plan's file is, what comes before and after it, and how Kafka's own tools reach this cluster.
        errors: topics that were asked for and could not be described.
        following: the next command as arguments after ``kelr``; people get it at the end.
        full: every election in sentences, too; with ``-o wide`` a row for each, and all notes.
        nothing_seen: whether no partition at all could be looked at, so that nothing is known; None takes it from
            `errors`, for a plan that speaks of every partition that was looked at.
    """
    context = context or PlanContext()
    if not output.format.for_people:
        with output.listing(plan_view(PLAN_KIND, output, context), plan_head(plan)) as listing:
            listing.add(rows_of(plan))
            listing.finish(plan_tail(output, plan, errors, following))
        if not output.format.is_document:
            note_errors(output, errors)
        return
    if nothing_seen is None:
        nothing_seen = bool(errors) and not (plan.elections or plan.not_planned)
    if not nothing_seen:
        page = PlanPage(output, plan, context)
        page.head()
        page.costs_and_steps()
        page.groups()
        page.notes(full=full)
        page.left(full=full)
    note_errors(output, errors)
    if following is not None:
        output.next(following)


def show_question(output: Output, plan: Plan, context: PlanContext, *, asked: bool = True) -> None:
    """What somebody reads before the question whether to elect: whom, at what cost, and what would be better.

    Args:
        asked: whether the question comes; else it was answered already.
    """
    page = PlanPage(output, plan, context)
    page.question(asked=asked)
    page.costs_and_steps(apart=False)
    page.groups(rows=len(plan.elections) > 1)
    page.notes(asked=True)
    page.left()


_SHORT = 30
"""A text of so many characters stands before its command, a longer one above it."""


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to do: in words, a command, or both."""

    text: str = ""
    command: str = ""


class PlanPage:
    """A plan for people."""

    def __init__(self, output: Output, plan: Plan, context: PlanContext) -> None:
        self._output, self._plan, self._context = output, plan, context
        self._screen, self._wide = Screen(output), output.format is OutputFormat.WIDE
        against = ((one.against.text, one) for one in plan.elections if one.against is not None)
        self._against = list(_grouped(against) if self._wide else _alike(against))
        self._margin = 8 if self._against else 6

    def head(self) -> None:
        """How many elections, and that nothing has changed."""
        plan, context = self._plan, self._context
        if plan.elections:
            topics = list(dict.fromkeys(one.topic for one in plan.elections))
            where = f"topic {topics[0]}" if len(topics) == 1 else f"{len(topics):,} topics"
            count = elections_in_words(len(plan.elections))
            self._screen.say((f"Plan: {count} in {where}.", LABEL), " Nothing changed.")
            return
        if context.controller_silence is not None:
            self._screen.say((NOTHING_CAN_BE, BAD))
        elif any(one.why is not Unplanned.NOT_NEEDED for one in plan.not_planned):
            self._screen.say((NOTHING_YET, LABEL))
        else:
            self._screen.say(("No election planned." if context.not_known else NOTHING_PLANNED, LABEL))

    def question(self, *, asked: bool) -> None:
        """Whom to elect."""
        elections, mark = self._plan.elections, "?" if asked else "."
        if not elections:
            self.head()
        elif len(elections) == 1:
            (one,) = elections
            self._screen.say((f"Elect broker {one.elect} for {one.address}{mark}", LABEL))
        else:
            where = named(one.address for one in elections)
            self._screen.say((f"Elect leaders for {partitions_in_words(len(elections))}{mark}", LABEL), f" {where}")

    def costs_and_steps(self, *, apart: bool = True) -> None:
        """What is lost, what would be better, and what to do in which order; `apart` behind an empty line."""
        plan = self._plan
        if plan.elections and apart:
            self._screen.blank()
        if plan.elections:
            style = GOOD if plan.consent is Consent.YES else BAD
            self._labelled("Loss", (loss_of_plan(plan), style))
            for number, (text, addresses) in enumerate(self._against):
                self._labelled("" if number else "Better", f"{text}{self._where(addresses)}")
            for number, (text, addresses) in enumerate(self._context.saved.items()):
                self._labelled("" if number else "Saved", f"{text}{self._where(addresses)}.")
        steps = self._steps()
        for number, step in enumerate(steps, start=1):
            lead = f"{'Do' if number == 1 else '':<{self._margin}}"
            count = "" if len(steps) == 1 else f"{number}. "
            label = f"{lead}{count}"
            if step.command and len(step.text) <= _SHORT:
                self._screen.command(step.command, label=f"{label}{step.text}{' ' if step.text else ''}")
            else:
                self._screen.say(step.text, label=label)
                if step.command:
                    self._screen.command(step.command, label=" " * len(label))
        self._collecting()

    def _collecting(self) -> None:
        """What reads a disk first."""
        if self._context.collect:
            self._labelled("Else", "Count what the disk of a broker that is down holds first, on its host:")
        for words in self._context.collect:
            self._screen.command(self._line(words), label=" " * self._margin)

    def _steps(self) -> list[_Step]:
        """What saves records, what stays down, the elections, and what is started after them."""
        plan, context = self._plan, self._context
        before = [_Step(self._written_down(), self._line(words)) for words in context.first]
        before = before or list(self._saving())
        order = broker_order(plan)
        # An election loses none of what led partitions have to save, or are in doubt about; a start may.
        led = [*([_Step(context.not_known)] if context.not_known else []), *self._saves(led=True)]
        before += [*([] if plan.elections else led), *self._saves(led=False), *self._before_a_start(order)]
        for_elections = [step for step in order.keep_down if not (step.for_advice or step.directory)]
        offline = [step for step in order.keep_down if step.directory]
        others = [(title, steps) for title, steps in sections(order) if any(one.for_advice for one in steps)]
        after = [(title, steps) for title, steps in sections(order) if steps in (order.bring_back, order.start_after)]
        number = len(before) + bool(for_elections) + bool(offline) + len(others) + 1
        # A step that saves the plan elects nobody.
        elects = bool(context.carry_out) and context.carry_out[:2] != ("recover", "plan")
        ended = f"the {agree(len(plan.elections), 'election is', 'elections are')} done"
        until = f"step {number} ends" if elects else ended
        found = list(before)
        if for_elections:
            found.append(self._keep_down(for_elections, until))
        if offline:
            found.append(_Step(f"{sentence(leave_offline(offline))} until {until}{self._for_some(offline)}."))
        found += [_step_of(title, steps) for title, steps in others]
        if context.carry_out and plan.elections:
            found.append(_Step(self._when(), self._line(context.carry_out)))
        found += [*(led if plan.elections else []), *(_step_of(title, steps) for title, steps in after)]
        return [] if [one.text for one in found] == [context.not_known] else found

    def _written_down(self) -> str:
        """What the plan is for that is made before an election."""
        away = disks_at_stake(self._plan.elections)
        if not away:
            return "Write down first what would be lost:"
        return f"Write down first what would be lost. {_until_saved(away)}, as that plan says:"

    def _saves(self, *, led: bool) -> Iterator[_Step]:
        """What saves records before brokers start: a command for each leader, of partitions that are `led`, or that
        wait for it."""
        saved = [one for one in self._saved_first() if (one.action is AdviceAction.RESCUE) is led]
        for leader, words in rescues_before(saved).items():
            where = in_short(one.address for one in saved if led_by(one.rescue) == leader)
            text = f"Save first what others truncate once broker {leader} leads ({where})"
            if led:
                text = f"Save what others hold and broker {leader} lacks, before any of them starts ({where})"
            if DIRECTORY in words:
                text += ". On the host of each, with --log-dir for each log directory"
            yield _Step(f"{text}:", self._line(words))

    def _saved_first(self) -> list[NotPlanned]:
        """Partitions of which records are saved before a broker starts, without those that a line of Kafka's own tools
        comes first for."""
        return [
            one for one in self._plan.not_planned if one.action in {*WANTED_BACK, AdviceAction.RESCUE} and not one.stock
        ]

    def _before_a_start(self, order: BrokerOrder) -> Iterator[_Step]:
        """What partitions without an election ask for before brokers start: each with its command."""
        for step in order.read_first:
            words, where = read_the_disk(step.broker), in_short(step.partitions)
            text = (
                f"Read the disk of broker {step.broker} before it starts, unless its last shutdown was clean ({where})."
            )
            yield _Step(f"{text} Plan again with --logs {words[-1]}:", self._line(words))
        for step in order.explain_first:
            where = in_short(step.partitions)
            text = f"Look at the advice before you start broker {step.broker} ({where}):"
            yield _Step(text, self._line(("explain", *targets_of(step.partitions))))

    def _line(self, words: Sequence[str]) -> str:
        return self._output.next_command(words)

    def _when(self) -> str:
        """Until when the plan holds, and what else it takes."""
        plan = self._plan
        command = self._context.carry_out[:2]
        if command != ("recover", "apply"):
            return "Save the plan in a file:" if command == ("recover", "plan") else ""
        forced = f", with --force REASON ({why_forced(plan)})" if plan.consent is Consent.FORCE else ""
        # Whole minutes: up to a minute before the plan expires.
        return f"By {time_of_day(plan.expires_at_ms)[:5]} UTC{forced}:"

    def _saving(self) -> Iterator[_Step]:
        if self._context.all_saved:
            return
        elections = self._plan.elections
        commands = self._context.rescue_commands or rescues_of(elections)
        elsewhere = {broker for words in commands for broker in _from_replicas(words)}
        for words in commands:
            text, held, leader = "", _from_replicas(words), led_by(words)
            if "--log-dir" in words:
                those = [one for one in elections if leader in {None, one.elect}]
                who = held or (disks_at_stake(those) - elsewhere)
                answer = sorted({step.replica for one in those for step in one.rescue if step.reachable})
                text = f"{_until_saved(who)}:" if who else ""
                if answer and who and not held:
                    truncated = f"Save what {brokers(answer)} {agree(len(answer), 'truncates', 'truncate')} at once"
                    text = f"{truncated}, and {text[:1].lower()}{text[1:]}"
            if DIRECTORY in words:
                host = f"the host of {brokers(sorted(who))}" if who else "its broker's host"
                # One that names no replica saves what brokers answer for, too.
                without = "" if held or not answer else " (without --log-dir where no disk can be read)"
                text = f"{text.removesuffix(':')}. " if who else text
                text += f"On {host}, with --log-dir for each log directory{without}:"
            yield _Step(text, self._line(words))

    def _keep_down(self, held: Sequence[BrokerStep], until: str) -> _Step:
        """That brokers stay down; and where it is known that their start would lose less."""
        who = sorted({step.broker for step in held})
        text = f"Keep {brokers(who)} down until {until}{self._for_some(held)}."
        for broker in who:
            text += self._started_instead(broker)
        return _Step(text)

    def _for_some(self, held: Sequence[BrokerStep]) -> str:
        """For which elections; empty for all."""
        addresses = sorted({at for step in held for at in step.partitions})
        count = len(self._plan.elections)
        return "" if len(addresses) == count else f", for {where_in_words(addresses, of=count)}"

    def _started_instead(self, broker: int) -> str:
        """That it would lose less to start a broker than to elect; where else it would lose more, or that is not known.
        Partitions without a replica on it are as they are."""
        there = [one for one in self._plan.elections if broker in one.evidence.replicas]
        better = sum(_better_started(one, broker) for one in there)
        if not better:
            return ""
        worse = sum(_worse_started(one, broker) for one in there)
        unknown = len(there) - better - worse
        where = f" on {partitions_in_words(better)}" if better < len(self._plan.elections) else ""
        where += f", more in all on {worse:,}" if worse else ""
        where += f", UNKNOWN on {unknown:,}" if unknown else ""
        return f" (Starting broker {broker} instead: loses less{where}.)"

    def groups(self, *, rows: bool = True) -> None:
        """The elections, those together that have the leader and the kind of loss in common; then what the losses stand
        on. Without `rows` that alone."""
        kept = LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
        promised = promise(one.loss.min_isr for one in self._plan.elections if one.loss.grade is kept)
        promised = f"{sentence(promised)}."
        groups: dict[_Like, list[PlannedElection]] = {}
        marks: dict[str, str] = {}
        for one in self._plan.elections:
            note = _footnote(one.loss, promised)
            if note:
                marks.setdefault(note, "*" if note == promised else f" [{sum(m != '*' for m in marks.values()) + 1}]")
            groups.setdefault(_like(one, note), []).append(one)
        cells = [
            (
                named(one.address for one in members),
                str(like.elect),
                (f"{_hull([one.loss.committed for one in members])}{marks.get(like.note, '')}", like.style),
                (_hull([one.loss.total for one in members]), like.style),
                like.logs,
            )
            for like, members in groups.items()
        ]
        if cells and rows:
            self._screen.blank()
            titles = ("PARTITIONS", "LEADER", "COMMITTED LOSS", "TOTAL LOSS", "LOGS READ")
            self._screen.table(titles, cells, right=("LEADER",))
        for note, mark in marks.items():
            if rows:
                self._screen.say(note, label=f"{mark.strip()} ", style=Style.PLAIN)
            elif note != promised:
                self._labelled("", note)

    def notes(self, *, full: bool = False, asked: bool = False) -> None:
        """What the rows have no room for: what is at stake, and on demand everything.

        Args:
            asked: whether a question comes behind it.
        """
        elections = self._plan.elections
        if self._wide and len(elections) > 1:
            self._screen.blank()
            self._rows()
        if full or (self._wide and len(elections) == 1):
            for one in elections:
                self._screen.blank()
                self._in_full(one)
            return
        why = _grouped((one.reason, one) for one in elections if self._wide)
        # Whom it elects is the controller's choice.
        by_log = _grouped((method_in_words(one), one) for one in elections if one.method is Method.LONGEST_LOG)
        returns = _grouped((hold.text, one) for one in elections if self._wide for hold in one.hold)
        cuts = ((text, ()) for text in (cuts_in_words(elections) if self._wide else ()))
        warnings = _grouped(
            (warning, one)
            for one in elections
            for warning in other_warnings(one)
            if self._wide or one.consent is Consent.FORCE or tells_of_unread(warning) or tells_of_a_cordon(one, warning)
        )
        stakes = _grouped((damage.text, one) for one in elections for damage in one.damage)
        notes = [
            ("Why", why),
            ("How", by_log),
            ("Returns", returns),
            ("Note", cuts),
            ("Note", warnings),
            ("At stake", stakes),
        ]
        found = [(label, text, where) for label, pairs in notes for text, where in pairs]
        if found:
            self._screen.blank()
        for label, text, where in found:
            self._screen.say(f"{text}{self._where(where)}", label=f"{label:<10}", style=WARN)
        if self._wide:
            self._afterwards(elections, label=f"{'Then':<10}")
        if elections and not self._wide and not asked:
            self._screen.say(("Each partition with its notes: -o wide", QUIET))

    def _afterwards(self, elections: Iterable[PlannedElection], *, label: str) -> None:
        for line in dict.fromkeys(damage.afterwards for one in elections for damage in one.damage if damage.afterwards):
            self._screen.command(self._context.stock(line), label=label)

    def _rows(self) -> None:
        titles = ("PARTITION", "LEADER", "BY", "COMMITTED LOSS", "TOTAL LOSS", "CERTAINTY", "METHOD", "NEEDS")
        self._screen.table(
            titles,
            (
                (
                    str(one.address),
                    str(one.elect),
                    one.elected_by.value,
                    _lost(one.loss.committed, one.loss.committed_ranges),
                    _lost(one.loss.total, one.loss.lost_ranges),
                    certainty_in_words(one.loss),
                    method_in_short(one),
                    one.consent.value,
                )
                for one in self._plan.elections
            ),
            right=("LEADER",),
            whole=True,
        )

    def _in_full(self, one: PlannedElection) -> None:
        """One election in sentences."""
        self._screen.say((f"{one.address}: elect broker {one.elect} ({one.election.value})", LABEL))
        facts = [("why", one.reason), ("lost", loss_in_words(one.loss)), ("how", method_in_words(one))]
        facts += [("returns", text) for text in dict.fromkeys(hold.text for hold in one.hold)]
        facts += [("note", warning) for warning in one.warnings]
        facts += [("at stake", damage.text) for damage in one.damage]
        for name, text in facts:
            self._screen.say(text, label=f"  {name:<10}")
        self._afterwards([one], label=f"  {'then':<10}")
        for other in one.alternatives:
            self._screen.say(alternative_in_words(other), label=f"  {'instead':<10}")
            for words in (other.rescue, alternative_command(one.address, other)):
                if words:
                    self._screen.command(self._line(words), label=" " * 12)

    def left(self, *, full: bool = False) -> None:
        """The partitions that get no election, and what is not known of others."""
        say_left(
            self._output,
            self._screen,
            self._plan.not_planned,
            self._context.gone,
            self._context.stock,
            said=rescues_before(self._saved_first()),
            shown=[step.command for step in self._steps()],
            full=full or self._wide,
        )
        without = {one.address for one in self._plan.not_planned if one.why is not Unplanned.NOT_NEEDED}
        for note, addresses in self._context.notes.items():
            where = without.intersection(addresses)
            if where and tells_of_unread(note):
                self._screen.blank()
                text = f"{note[:1].upper()}{note[1:]}. ({in_short(where)})"
                self._screen.say(text, label=f"{'Note':<10}", style=WARN)
        if self._context.not_known and not self._steps():
            self._screen.blank()
            self._screen.say((self._context.not_known, WARN))

    def _labelled(self, label: str, *parts: Part) -> None:
        self._screen.say(*parts, label=f"{label:<{self._margin}}")

    def _where(self, addresses: Sequence[TopicPartition]) -> str:
        """In parentheses, where it is not all of them."""
        count = len(self._plan.elections)
        return f" ({where_in_words(addresses, of=count)})" if addresses and len(addresses) < count else ""


def _from_replicas(words: Sequence[str]) -> frozenset[int]:
    """Whose disks a rescue command reads, where it names them."""
    return frozenset(int(word) for flag, word in pairwise(words) if flag == "--from-replica")


def _until_saved(away: Collection[int]) -> str:
    """``Keep broker 1 down until its disk is saved``: its start truncates what the new leader lacks."""
    disks = agree(len(away), "its disk is", "their disks are")
    return f"Keep {brokers(sorted(away))} down until {disks} saved"


def _step_of(title: str, steps: Sequence[BrokerStep]) -> _Step:
    by_broker: dict[int, list[TopicPartition]] = {}
    for step in steps:
        by_broker.setdefault(step.broker, []).extend(step.partitions)
    which = "; ".join(f"broker {broker}: {in_short(at)}" for broker, at in by_broker.items())
    return _Step(f"{title}. ({which[:1].upper()}{which[1:]})")


def _better_started(one: PlannedElection, broker: int) -> bool:
    """Whether it is known that the broker's start, however it was shut down, loses less than the election."""
    return any(other.start == broker and loses_less(other.loss, one.loss) for other in one.alternatives)


def _worse_started(one: PlannedElection, broker: int) -> bool:
    """Whether it is known that the election loses less than the broker's start."""
    return any(
        other.start == broker and other.loss is not None and loses_less(one.loss, other.loss)
        for other in one.alternatives
    )


def _grouped(pairs: Iterable[tuple[str, PlannedElection]]) -> Iterator[tuple[str, Sequence[TopicPartition]]]:
    """Each text once, with the partitions that it is about."""
    found: dict[str, dict[TopicPartition, None]] = {}
    for text, one in pairs:
        found.setdefault(text, {})[one.address] = None
    yield from ((text, list(addresses)) for text, addresses in found.items())


_OFFSETS = re.compile(r"\b[0-9][0-9,]*(?= offsets?\b)|(?<=\bfrom )[0-9]+|(?<=\bends at )[0-9]+")


def _alike(pairs: Iterable[tuple[str, PlannedElection]]) -> Iterator[tuple[str, Sequence[TopicPartition]]]:
    """The same, of texts that differ in offsets alone the first, with whose offsets they are."""
    found: dict[str, list[tuple[str, Sequence[TopicPartition]]]] = {}
    for text, addresses in _grouped(pairs):
        found.setdefault(_OFFSETS.sub("", text), []).append((text, addresses))
    for (text, addresses), *others in found.values():
        whose = f" These offsets are those of {in_short(addresses)}." if others else ""
        yield f"{text}{whose}", [*addresses, *(at for _, those in others for at in those)]


# The rows.


@dataclass(frozen=True, slots=True)
class _Like:
    """What elections have in common that stand in one row."""

    elect: int
    committed: str
    total: str
    logs: str
    note: str
    style: Style


def _like(one: PlannedElection, note: str) -> _Like:
    style = GOOD if one.consent is Consent.YES else BAD
    return _Like(one.elect, _kind(one.loss.committed), _kind(one.loss.total), _logs_read(one), note, style)


def _kind(bounds: Bounds | None) -> str:
    """Losses of one kind stand together: none, counted, at least so many, UNKNOWN."""
    if bounds is None or bounds == Bounds(0):
        return "UNKNOWN"
    return "none" if bounds.none else "at least" if bounds.at_most is None else "counted"


def _hull(found: Sequence[Bounds | None]) -> str:
    """The losses of one kind in a cell: what each of them loses at least, and at most."""
    known = [bounds for bounds in found if bounds is not None]
    if len(known) < len(found) or known[0] == Bounds(0):
        return "UNKNOWN"
    least, mosts = min(one.at_least for one in known), [one.at_most for one in known]
    text = f"{least:,}+"
    if None not in mosts:
        most = max(most for most in mosts if most is not None)
        text = f"{least:,}" if most == least else f"{least:,}-{most:,}"
    return text if len(found) == 1 or known[0].none else f"{text} each"


def _logs_read(one: PlannedElection) -> str:
    """``3``, ``2 of 3``, with those that were read from a disk."""
    logs = one.evidence.logs
    read = [log for log in logs if log.unheard is None]
    disks = [str(log.replica) for log in read if log.source == LOG_DIRECTORY]
    count = str(len(logs)) if len(read) == len(logs) else f"{len(read)} of {len(logs)}"
    return f"{count} ({agree(len(disks), 'disk', 'disks')} {', '.join(disks)})" if disks else count


def _footnote(loss: Loss, promised: str) -> str:
    """What a loss stands on beyond the logs that were read; empty where nothing.

    Args:
        promised: what all those stand on that are none on a condition.
    """
    text = certainty_in_words(loss)
    if text == f"none {promise([loss.min_isr])}":
        return promised
    said = f"UNKNOWN: {not_read(loss.unheard)}" if loss.unheard else ""
    counted = loss.total is None or loss.total.at_most is not None
    all_read = loss.grade is LossCertainty.BOUNDED and not loss.unheard and counted
    plainly = loss.grade is LossCertainty.PROVEN_NONE or all_read or text == said
    return "" if plainly else f"{text[:1].upper()}{text[1:]}."


def _lost(bounds: Bounds | None, ranges: tuple[tuple[int, int], ...]) -> str:
    """The bounds, and the offsets where one range holds exactly as many as are known to be lost."""
    text = _hull([bounds])
    if bounds is None or not bounds.at_least or len(ranges) != 1:
        return text
    first, last = ranges[0]
    return f"{text} ({first}..{last})" if last - first + 1 == bounds.at_least else text
