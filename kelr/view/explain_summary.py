"""Many partitions at once: how many need action, which brokers to start in which order, and one row for each situation.

Decisions are counted as they come, and none of them is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from kelr.engine import needs_a_look
from kelr.engine.advice.commands import read_the_disk
from kelr.engine.advice.purpose import PURPOSES
from kelr.engine.advice.returns import is_elected_by_nobody, started
from kelr.engine.words import agree, brokers, joined
from kelr.model import (
    LOG_TYPES,
    WORST_FIRST,
    AdviceAction,
    Candidate,
    Decision,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    Situation,
)
from kelr.page.words import count
from kelr.view.affected import Affected
from kelr.view.broker_order import unwelcome
from kelr.view.columns import Column
from kelr.view.explain import best_election
from kelr.view.explain_columns import Explained, situation_text
from kelr.view.layout import PIPE_WIDTH, Layout, table_lines
from kelr.view.styled import Span, Style, Text, plain

_SAVE = "save, "
_MOST_TOPICS = 3


@dataclass(slots=True)
class _Group:
    """Partitions of one situation for which the same is to be done."""

    situation: Text
    place: int
    do: str
    starts: frozenset[int] = frozenset()
    """The brokers that this starts."""
    replaces: frozenset[int] = frozenset()
    """Of led partitions: the brokers that are up, and whose disks are replaced."""
    count: int = 0
    at_least: int = 0
    more: bool = False
    """Whether more may be lost than is counted."""
    unknown: bool = False
    """Whether nothing bounds what one of them loses."""
    led: bool = True
    warned: bool = False
    """Whether something is to be done before one of `starts` starts."""

    @property
    def done(self) -> str:
        """What to do, which does not stand alone where something comes first."""
        # Whichever of them a led partition lacks, all of them start.
        do = self.do or _restore(self.starts, self.replaces)
        start = do.removeprefix(_SAVE)
        return f"as above, {start}" if self.warned and start.startswith("start ") else do

    @property
    def loss(self) -> Text:
        if self.led:
            return plain("-")
        number = f"{self.at_least:,}{'+' if self.more else ''} {agree(self.at_least, 'offset', 'offsets')}"
        if self.unknown or (self.more and not self.at_least):
            return (Span(f"UNKNOWN ({number})" if self.at_least else "UNKNOWN", Style.BAD),)
        return plain(number if self.at_least else "none")


class Summary:
    """What is to be said of many partitions; `add` them, then print `lines`."""

    def __init__(self) -> None:
        self._named: Counter[str] = Counter()
        """How many are what they are counted as in the first line."""
        self._groups: dict[tuple[str, str], _Group] = {}
        self._affected = Affected()
        self._unreachable: set[int] = set()
        self._wanted: Counter[tuple[tuple[int, ...], tuple[int, ...], bool]] = Counter()
        """How many partitions without leader wait for these brokers, and get one as soon as any of the latter starts;
        and whether clients of all topics wait for them (`Purpose.clients`)."""
        self._stopped: Counter[str] = Counter()
        """How many of each topic stand still for whose partitions clients of all topics wait."""
        self._unwelcome: Counter[int] = Counter()
        """How many need that this broker stays down until they have a leader, or their logs are read."""
        self._unread: Counter[int] = Counter()
        """How many would be led by this broker on its return, even if its log was cut, and nobody has read that."""
        self._read_again: Counter[int] = Counter()
        """How many wait for this broker, or keep it down, and what was read of its disk is not believed."""
        self._undecided: Counter[int] = Counter()
        """How many get their advice once this broker's disk is read."""
        self._saved_first: Counter[int] = Counter()
        """How many have records to be saved before this broker starts: its return truncates them, or its disk may hold
        the only copy."""
        self._to_save = 0
        """How many have records to be saved, whatever starts."""
        self._crashed: set[int] = set()
        """Brokers that some partition waits for, whose logs nobody has read, and after whose machine's crash Kafka may
        elect a worse log."""
        self._crashed_and_read: dict[int, str] = {}
        """Others whose logs were read and whose unclean return elects another one than a clean one; a partition that
        tells."""

    def add(self, rows: Iterable[Explained]) -> None:
        for row in rows:
            self._add(row)

    def _add(self, row: Explained) -> None:
        decision = row.decision
        if decision.situation is Situation.HEALTHY and decision.advice.action is AdviceAction.NOTHING:
            return
        self._named[_named(decision)] += 1
        self._affected.add(decision.topic, decision.partition)
        first = bool(_clients(decision.topic))
        if first and (decision.leader is None or decision.situation in _LED):
            self._stopped[decision.topic] += 1
        self._unreachable.update(one.replica for one in decision.candidates if row.unreachable(one.replica))
        again, unread = _to_read_again(row), _led_by_an_unread_log(decision)
        self._read_again.update(again)
        if not again and unread is not None:
            self._unread[unread] += 1
        read = again or ({unread} - {None})
        start = started(decision)
        if start and not read:
            self._wanted[start, _that_elect(decision, start), first] += 1
        compared = _to_read(decision)
        if compared is not None and compared not in decision.advice.keep_down:
            self._wanted[(compared,), (), first] += 1
        self._unwelcome.update({*unwelcome(decision), *_spoilers(decision)} - read)
        if compared in decision.advice.keep_down:
            self._undecided.update({compared} - read)
        self._crashed.update(_worse_after_a_crash(decision))
        for broker in filter(partial(_elects_another_after_a_crash, decision), start):
            self._crashed_and_read.setdefault(broker, f"{decision.topic}:{decision.partition}")
        if decision.advice.rescue:
            self._to_save += 1
            self._saved_first.update(_out(decision))
        self._count(row, _in_few_words(decision, again, unread))

    def _count(self, row: Explained, do: str) -> None:
        situation = situation_text(row)
        name = "".join(span.text for span in situation)
        place = WORST_FIRST.index(row.decision.situation)
        starts, replaces = starts_of(row.decision), _replaces(row.decision)
        if row.decision.advice.action is AdviceAction.RESTORE_REPLICATION and (starts or replaces):
            do = ""
        group = self._groups.setdefault((name, do), _Group(situation, place, do))
        group.starts |= starts
        group.replaces |= replaces
        group.count += 1
        if row.decision.leader is None:
            group.led = False
            known, more, unknown = _least(row.decision)
            group.at_least, group.more = group.at_least + known, group.more or more
            group.unknown = group.unknown or unknown

    @property
    def count(self) -> int:
        return self._named.total()

    def lines(self, width: int | None, *, of: int, plan: str, doubt: str = "", whole: bool = True) -> Iterator[Text]:
        """The summary as lines.

        Args:
            of: how many partitions were looked at, healthy ones too; 0 where that is not known.
            plan: the command that says of each partition how to save its records.
            doubt: what a start may end of partitions that are not counted here, since they are led.
            whole: whether all were added; else brokers get no order, as another partition may speak against it.
        """
        columns = width or PIPE_WIDTH
        for text in (self._counts(of), self._first(), self._away()):
            yield from Layout(columns).lines(text) if text else ()
        yield plain("")
        before, order = list(self._before(columns, plan, doubt)), list(self._order(columns)) if whole else []
        if before:
            yield (Span("Before any broker starts:", Style.HEADING),)
            yield from before
            yield plain("")
        if order:
            head = f"{'Then start' if before else 'Start'} in this order; run kelr explain after each:"
            yield (Span(head, Style.HEADING),)
            yield from order
            yield plain("")
        rows = sorted(self._groups.values(), key=lambda group: (group.place, -group.count, group.do))
        warned = {*self._down, *self._saved_first, *self._crashed, *self._crashed_and_read}
        for group in rows:
            group.warned = bool(group.starts & warned)
        yield from table_lines(_COLUMNS, _as_they_read(rows), width=columns)
        yield from Layout(columns).lines(plain(f"Most affected: {self._affected.named(most=_MOST_TOPICS)}."))

    def _counts(self, seen: int) -> Text:
        """``2,333 of 48,120 partitions need action: 1,904 leaderless, 429 under min ISR.``"""
        total = self.count
        parts = ", ".join(f"{self._named[what]:,} {what}" for what in _NAMES if self._named[what])
        of = f" of {seen:,}" if seen > total else ""
        noun = agree(seen if of else total, "partition", "partitions")
        return (Span(f"{total:,}{of} {noun} {agree(total, 'needs', 'need')} action: {parts}.", Style.HEADING),)

    def _first(self) -> Text:
        """``First: 5 partitions of __consumer_offsets (consumer groups wait).``"""
        topics = [
            f"{count(number, 'partition')} of {topic} ({_clients(topic)} wait)"
            for topic, number in sorted(self._stopped.items())
        ]
        return plain(f"First: {joined(topics, 'and')}.") if topics else ()

    def _away(self) -> Text:
        away = sorted(self._unreachable)
        return plain(f"{brokers(away).capitalize()} {agree(len(away), 'is', 'are')} unreachable.") if away else ()

    def _before(self, columns: int, plan: str, doubt: str) -> Iterator[Text]:
        """What comes before any broker starts: what to save, whose disks to read, and who stays down."""
        if self._to_save:
            where, away = count(self._to_save, "partition"), sorted(self._saved_first)
            when = f" before {brokers(away)} {agree(len(away), 'starts', 'start')}" if away else ""
            why = "a return may truncate them, or a disk may hold the only copy"
            yield from _indented(f"First save records of {where}{when}: {why}. The plan has the commands:", columns)
            yield [Span("    "), Span(plan, Style.COMMAND)]
        crashed = sorted(self._crashed - self._read_while_down)
        if crashed:
            whose = f"broker {joined(crashed, 'or')}'s machine"
            yield from _indented(f"If {whose} crashed, read its disk first: Kafka may elect a worse log then.", columns)
        for broker in crashed:
            yield [Span("    "), Span(_collect(broker), Style.COMMAND)]
        for broker, target in sorted(self._crashed_and_read.items()):
            yield from _indented(
                f"If broker {broker}'s machine crashed, its return elects another: first run kelr explain {target}.",
                columns,
            )
        for broker in sorted(self._down):
            yield from self._kept_down(broker, columns)
        if doubt:
            yield from _indented(doubt, columns)

    def _order(self, columns: int) -> Iterator[Text]:
        """Brokers to start: those first that return leaders for which clients of all topics wait, then whoever returns
        the most."""
        for number, (broker, led, waiting, first) in enumerate(self._in_order(), start=1):
            said = []
            if led:
                said = [f"returns leaders to up to {count(led, 'partition')}" if number == 1 else f"up to {led:,}"]
                said[0] += f", {first:,} of Kafka's own topics" if first else ""
            if waiting:
                where = f"{waiting:,} more" if led else count(waiting, "partition")
                said.append(f"on {where} its return elects no leader")
            head = f"  {number}. broker {broker:<4}  "
            for line, text in enumerate(said):
                label = " " * len(head) if line else head
                yield from Layout(columns).paragraph(label, text, Style.PLAIN)

    @property
    def _read_while_down(self) -> set[int]:
        return {*self._unread, *self._read_again, *self._undecided}

    @property
    def _down(self) -> set[int]:
        return {*self._unwelcome, *self._read_while_down}

    def _in_order(self) -> Iterator[tuple[int, int, int, int]]:
        """Brokers with how many partitions each gives a leader that none before it does, how many wait for it without
        getting one by its return, and for how many of the former clients of all topics wait."""
        wanted = self._wanted.copy()
        while wanted:
            gains: dict[int, list[int]] = {}
            for (start, elect, first), number in wanted.items():
                for broker in start:
                    if broker not in self._down:
                        gain = gains.setdefault(broker, [0, 0, 0])
                        gain[broker not in elect] += number
                        gain[2] += number if first and broker in elect else 0
            if not gains:
                return
            broker = min(gains, key=lambda one: (-gains[one][2], -gains[one][0], -gains[one][1], one))
            led, waiting, of_first = gains[broker]
            yield broker, led, waiting, of_first
            wanted = Counter({key: number for key, number in wanted.items() if broker not in key[0]})

    def _kept_down(self, broker: int, columns: int) -> Iterator[Text]:
        said = []
        if self._read_again[broker]:
            said.append("Its disk was read before it last ran, or its log was cut.")
        if self._unread[broker]:
            said.append(f"Kafka elects it on {count(self._unread[broker], 'partition')} even if its log was cut.")
        if self._undecided[broker]:
            said.append(f"What its disk holds decides on {count(self._undecided[broker], 'partition')}.")
        if self._unwelcome[broker]:
            said.append(
                f"Its return elects, or may elect, a worse leader on {count(self._unwelcome[broker], 'partition')}."
            )
        waiting = sum(number for (start, *_), number in self._wanted.items() if broker in start)
        if waiting:
            said.append(f"{count(waiting, 'partition')} {agree(waiting, 'waits', 'wait')} for it: start it after that.")
        head = f"  Keep {broker} down   "
        text = " ".join(said)
        yield from Layout(columns).paragraph(head, text, Style.PLAIN)
        if broker in self._read_while_down:
            how = "Read it again while it is down:" if self._read_again[broker] else "Read its disk first:"
            yield [Span(" " * len(head)), Span(how)]
            yield [Span(" " * len(head)), Span(_collect(broker), Style.COMMAND)]


def _as_they_read(groups: Iterable[_Group]) -> list[_Group]:
    """Groups that read the same as one: what comes first, and is said above, may be all that they differ in."""
    found: dict[tuple[str, str], _Group] = {}
    for one in groups:
        first = found.setdefault(("".join(span.text for span in one.situation), one.done), one)
        if first is not one:
            first.count += one.count
            first.at_least += one.at_least
            first.more |= one.more
            first.unknown |= one.unknown
            first.led &= one.led
    return list(found.values())


_COLUMNS: tuple[Column[_Group], ...] = (
    Column("count", "PARTITIONS", text=lambda group: plain(f"{group.count:,}"), right=True),
    Column("situation", "SITUATION", text=lambda group: group.situation),
    Column("loss", "LOSS IF ELECTED", text=lambda group: group.loss),
    Column("do", "DO", text=lambda group: plain(group.done)),
)


_LEADERLESS = "leaderless"
_NOT_LIVE = "with a leader that is not live"
_UNDER_MIN_ISR = "under min ISR"
_UNSAVED = "healthy but with unsaved records"
_PERHAPS_UNSAVED = "healthy but perhaps with unsaved records"
_SILENT = "healthy but with a broker that does not answer"
_ONE_COPY = "with one replica in sync"
_UNKNOWN = "UNKNOWN"
_NAMES = (_LEADERLESS, _NOT_LIVE, _UNDER_MIN_ISR, _UNSAVED, _PERHAPS_UNSAVED, _ONE_COPY, _SILENT, _UNKNOWN)
_LED = {
    Situation.LEADER_NOT_LIVE: _NOT_LIVE,
    Situation.UNDER_MIN_ISR: _UNDER_MIN_ISR,
}


def _named(decision: Decision) -> str:
    """What a partition counts as."""
    if decision.leader is None:
        return _LEADERLESS
    if decision.situation is Situation.HEALTHY:
        if needs_a_look(decision):
            return _UNSAVED
        if decision.advice.action is AdviceAction.RESTORE_REPLICATION:
            return _ONE_COPY
        return _PERHAPS_UNSAVED if decision.advice.rescue else _SILENT
    return _LED.get(decision.situation, _UNKNOWN)


def _clients(topic: str) -> str:
    """Who waits for a partition of this topic, whatever topic they use; empty for most."""
    purpose = PURPOSES.get(topic)
    return "" if purpose is None else purpose.clients


def _indented(text: str, columns: int) -> Iterator[Text]:
    yield from Layout(columns).paragraph("  ", text)


def _collect(broker: int) -> str:
    return " ".join(("kelr", *read_the_disk(broker)))


def starts_of(decision: Decision) -> frozenset[int]:
    """The brokers that the table says to start: where somebody leads, those that are down."""
    if decision.advice.action is AdviceAction.RESTORE_REPLICATION:
        return frozenset(_out(decision))
    return frozenset(started(decision))


def _replaces(decision: Decision) -> frozenset[int]:
    """Those that are up without the log's directory, where somebody leads."""
    if decision.advice.action is not AdviceAction.RESTORE_REPLICATION:
        return frozenset()
    return frozenset(one.replica for one in decision.candidates if not (one.live or one.down or one.in_isr))


def _restore(starts: Collection[int], replaces: Collection[int]) -> str:
    """``start 2, replace disk of 3``."""
    said = [f"start {joined(sorted(starts))}"] if starts else []
    return ", ".join([*said, f"replace disk of {joined(sorted(replaces))}"] if replaces else said)


def _that_elect(decision: Decision, start: Sequence[int]) -> tuple[int, ...]:
    """Those of them whose return elects somebody, or may."""
    elect = {one.replica for one in decision.forecasts if one.elected is not None} | {decision.elected}
    return tuple(one for one in start if one in elect)


def _out(decision: Decision) -> set[int]:
    """Brokers that are down and follow whoever leads then: all of them where nobody does."""
    led = decision.leader is not None
    return {one.replica for one in decision.candidates if one.down and not (led and one.in_isr)}


def _candidate(decision: Decision, broker: int) -> Candidate | None:
    return next((one for one in decision.candidates if one.replica == broker), None)


def _heard(decision: Decision, broker: int) -> bool:
    found = _candidate(decision, broker)
    return found is not None and found.heard


def _to_read_again(row: Explained) -> set[int]:
    """Brokers that the advice is to start, or to keep down, and of which readings are contradicted by what others hold
    or the controller records."""
    decision = row.decision
    if decision.leader is not None:
        return set()
    doubted = {
        one.replica
        for one in row.logs
        if isinstance(one, LogUnavailable)
        and one.reason in {LogUnavailableReason.DOUBTFUL, LogUnavailableReason.LACKING}
    }
    return doubted & {*started(decision), *decision.advice.keep_down}


def _to_read(decision: Decision) -> int | None:
    """The broker that is down and whose log is to be known before there is other advice: its disk is read, or it starts
    where the advice does not keep it down."""
    advice = decision.advice
    if advice.action is not AdviceAction.GET_MORE_INFORMATION:
        return None
    down = (one.replica for one in decision.candidates if one.down)
    return next((one for one in down if advice.command == read_the_disk(one)), None)


def _spoilers(decision: Decision) -> Iterator[int]:
    """Brokers that the advice does not start, and whose return elects somebody beside what it comes to."""
    advice = decision.advice
    if decision.leader is not None:
        return
    if advice.action in {AdviceAction.LONGEST_LOG_BALANCED, AdviceAction.LONGEST_LOG_AGGRESSIVE}:
        aims = {one.elected for one in decision.elections if one.election in LOG_TYPES} | {advice.designate}
    elif started(decision):
        aims = {*started(decision)}
    else:
        return
    for one in decision.forecasts:
        if one.elected not in {None, *aims} and one.replica not in started(decision):
            yield one.replica


def _worse_after_a_crash(decision: Decision) -> Iterator[int]:
    """Brokers that the advice waits for, whose logs nobody has read, and whose return after an unclean shutdown is not
    known to lose nothing, whomever it elects."""
    waits = decision.advice.action is AdviceAction.WAIT and decision.advice.replica is not None
    for broker in (decision.advice.replica,) if waits else started(decision):
        found = None if broker is None else _candidate(decision, broker)
        if broker is None or found is None or found.live or found.heard:
            continue
        unclean = [one for one in decision.forecasts if one.replica == broker and not one.clean]
        safe = [one.loss is not None and one.loss.grade is LossCertainty.PROVEN_NONE for one in unclean]
        if not safe or not all(safe):
            yield broker


def _elects_another_after_a_crash(decision: Decision, broker: int) -> bool:
    """Whether a broker whose log was read elects another one after an unclean shutdown than after a clean one."""
    elected = {one.elected for one in decision.forecasts if one.replica == broker}
    return _heard(decision, broker) and len(elected) > 1


def _led_by_an_unread_log(decision: Decision) -> int | None:
    """The broker to start whose return after an unclean shutdown Kafka answers with its election, though no place in
    ISR or ELR vouches for its log, which nobody has read; None where that is not so."""
    advice = decision.advice
    if advice.action is not AdviceAction.BRING_BACK or advice.replica is None or _heard(decision, advice.replica):
        return None
    returns = [one for one in decision.forecasts if one.replica == one.elected == advice.replica]
    proven = any(one.loss is not None and one.loss.grade is LossCertainty.PROVEN_NONE for one in returns)
    unclean = any(not one.clean for one in returns)
    return advice.replica if unclean and not proven else None


def _least(decision: Decision) -> tuple[int, bool, bool]:
    """How many offsets the best election loses at least, whether it may be more, and whether nothing bounds it."""
    outcome = best_election(decision)
    loss = None if outcome is None else outcome.loss
    if loss is None or loss.total is None:
        return 0, True, True
    return loss.total.at_least, not loss.total.exact, not loss.counted or loss.total.at_most is None


def what_to_do(row: Explained) -> str:
    """What the advice comes to, in a few words: the same ones for partitions for which the same is to be done."""
    return _in_few_words(row.decision, _to_read_again(row), _led_by_an_unread_log(row.decision))


def _in_few_words(decision: Decision, again: Collection[int], unread: int | None) -> str:
    """
    Args:
        again: brokers whose disks are to be read once more.
        unread: the broker that Kafka elects even if its log was cut, which nobody has read.
    """
    if again and decision.advice.action is AdviceAction.BRING_BACK:
        return f"read disk {joined(sorted(again))} again"
    return _do(decision) if unread is None else f"keep {unread} down"


def _do(decision: Decision) -> str:
    advice = decision.advice
    if advice.action is AdviceAction.BRING_BACK and advice.replica is not None and not advice.stop:
        saved = _SAVE if advice.rescue else ""
        then = ", then designate" if is_elected_by_nobody(decision) else ""
        return f"{saved}start {joined(sorted(started(decision)), 'or')}{then}"
    if advice.stop:
        return f"stop {joined(sorted(advice.stop))}: kelr explain"
    if advice.action is AdviceAction.HOLD:
        held = any(one.down for one in decision.candidates if one.replica == advice.replica)
        return f"keep {advice.replica} down" if held else f"mend disk of {advice.replica}"
    if advice.action is AdviceAction.GET_MORE_INFORMATION:
        return _read(decision)
    if advice.action is AdviceAction.RESTORE_REPLICATION:
        out = sorted(one.replica for one in decision.candidates if not one.in_isr)
        return _restore(starts_of(decision), _replaces(decision)) or f"find why {joined(out)} lags"
    return _WORDS[advice.action]


def _read(decision: Decision) -> str:
    advice, broker = decision.advice, _to_read(decision)
    if broker is not None:
        return f"read disk {broker}" if broker in advice.keep_down else f"start {broker} or read its disk"
    return "read logs" if advice.command[:1] == ("log-info",) else "kelr explain"


_WORDS = {
    AdviceAction.NOTHING: "-",
    AdviceAction.WAIT: "wait",
    AdviceAction.BRING_BACK: "start any replica",
    AdviceAction.DESIGNATE: "recover plan",
    AdviceAction.LONGEST_LOG_BALANCED: "recover plan",
    AdviceAction.LONGEST_LOG_AGGRESSIVE: "recover plan",
    AdviceAction.ELECT_PREFERRED: "recover plan",
    AdviceAction.RESCUE: "save records",
}
