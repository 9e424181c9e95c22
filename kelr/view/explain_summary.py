"""Many partitions at once: how many need action, which brokers to start in which order, and one row for each situation.

Decisions are counted as they come, and none of them is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from kelr.engine.words import agree, brokers, joined
from kelr.model import WORST_FIRST, AdviceAction, Decision, Grade, Loss, Situation
from kelr.page.words import count
from kelr.view.broker_order import unwelcome
from kelr.view.columns import Column
from kelr.view.explain_columns import Explained, situation_text
from kelr.view.explain_loss import best_election
from kelr.view.rich_lines import IN_A_PIPE, lines_of, rich_text, table_lines
from kelr.view.styled import Span, Style, Text, plain

_MOST_TOPICS = 3
_MOST_RANGES = 4
"""Ranges of partitions that a topic is named with; of one with more, the number is told."""


@dataclass(slots=True)
class _Topic:
    """The partitions of one topic, as ranges as long as they are few."""

    count: int = 0
    ranges: list[list[int]] = field(default_factory=list)

    def add(self, partition: int) -> None:
        self.count += 1
        if self.ranges and partition == self.ranges[-1][1] + 1:
            self.ranges[-1][1] = partition
        elif len(self.ranges) <= _MOST_RANGES:
            self.ranges.append([partition, partition])

    def named(self, name: str) -> str:
        """``orders:0-5,7``, or ``orders 380``."""
        if len(self.ranges) > _MOST_RANGES:
            return f"{name} {self.count:,}"
        return f"{name}:{','.join(str(first) if first == last else f'{first}-{last}' for first, last in self.ranges)}"


@dataclass(slots=True)
class _Group:
    """Partitions of one situation for which the same is to be done."""

    situation: Text
    place: int
    do: str
    count: int = 0
    at_least: int = 0
    more: bool = False
    """Whether more may be lost than is counted."""
    led: bool = True

    @property
    def loss(self) -> Text:
        if self.led:
            return plain("-")
        if not self.at_least:
            return (Span("UNKNOWN", Style.BAD),) if self.more else plain("none")
        return plain(f"{self.at_least:,}{'+' if self.more else ''} {agree(self.at_least, 'offset', 'offsets')}")


class Summary:
    """What is to be said of many partitions; `add` them, then print `lines`."""

    def __init__(self) -> None:
        self._situations: Counter[Situation] = Counter()
        self._groups: dict[tuple[str, str], _Group] = {}
        self._topics: dict[str, _Topic] = {}
        self._unreachable: set[int] = set()
        self._wanted: Counter[tuple[int, ...]] = Counter()
        """How many partitions without leader get one as soon as any of these is started."""
        self._unwelcome: Counter[int] = Counter()
        """How many need that this broker stays down until they have a leader, or their logs are read."""
        self._unread: Counter[int] = Counter()
        """How many would be led by this broker on its return, even if its log was cut, and nobody has read that."""

        self._saved_first: Counter[int] = Counter()
        """How many have records that are to be saved before this broker starts: its return truncates them."""
        self._crashed: set[int] = set()
        """Brokers to start whose logs nobody has read, and that Kafka elects after a machine crash, too."""

    def add(self, rows: Iterable[Explained]) -> None:
        for row in rows:
            self._add(row)

    def _add(self, row: Explained) -> None:
        decision = row.decision
        self._situations[decision.situation] += 1
        self._topics.setdefault(decision.topic, _Topic()).add(decision.partition)
        self._unreachable.update(one.replica for one in decision.candidates if row.unreachable(one.replica))
        unread = _led_by_an_unread_log(decision)
        if unread is not None:
            self._unread[unread] += 1
        elif decision.advice.action is AdviceAction.BRING_BACK and decision.advice.replica is not None:
            self._wanted[decision.advice.start or (decision.advice.replica,)] += 1
        for broker in {*unwelcome(decision)} - {unread}:
            self._unwelcome[broker] += 1
        first = decision.advice.replica
        if decision.advice.rescue and first is not None and decision.leader is None:
            self._saved_first[first] += 1
        if unread is None and first is not None and _is_elected_even_if_cut(decision, first):
            self._crashed.add(first)
        self._count(row, f"keep {unread} down" if unread is not None else _do(decision))

    def _count(self, row: Explained, do: str) -> None:
        situation = situation_text(row)
        name = "".join(span.text for span in situation)
        place = WORST_FIRST.index(row.decision.situation)
        group = self._groups.setdefault((name, do), _Group(situation, place, do))
        group.count += 1
        if row.decision.leader is None:
            group.led = False
            known, more = _least(row.decision)
            group.at_least, group.more = group.at_least + known, group.more or more

    @property
    def count(self) -> int:
        return self._situations.total()

    def lines(self, width: int | None, *, of: int) -> Iterator[Text]:
        """The summary as lines.

        Args:
            of: how many partitions were looked at, healthy ones too; 0 where that is not known.
        """
        columns = width or IN_A_PIPE
        for text in (self._counts(of), self._away()):
            yield from lines_of(rich_text(text), width=columns) if text else ()
        yield plain("")
        order = list(self._order(columns))
        if order:
            starts = any(self._in_order())
            head = "Start in this order; run kelr explain after each:" if starts else "Before any broker starts:"
            yield (Span(head, Style.HEADING),)
            yield from order
            yield plain("")
        rows = sorted(self._groups.values(), key=lambda group: (group.place, -group.count, group.do))
        yield from table_lines(_COLUMNS, rows, width=columns)
        yield from lines_of(rich_text(self._most_affected()), width=columns)

    def _counts(self, seen: int) -> Text:
        """``2,333 of 48,120 partitions need action: 1,904 leaderless, 429 under min ISR.``"""
        leaderless = sum(group.count for group in self._groups.values() if not group.led)
        named = {
            "leaderless": leaderless,
            "with a leader that is not live": self._situations[Situation.LEADER_NOT_LIVE],
            "under min ISR": self._situations[Situation.UNDER_MIN_ISR],
            "healthy but with unsaved records": self._situations[Situation.HEALTHY],
        }
        total = self.count
        named["UNKNOWN"] = total - sum(named.values())
        parts = ", ".join(f"{number:,} {what}" for what, number in named.items() if number)
        of = f" of {seen:,}" if seen > total else ""
        return (
            Span(f"{total:,}{of} {agree(total, 'partition needs', 'partitions need')} action: {parts}.", Style.HEADING),
        )

    def _away(self) -> Text:
        away = sorted(self._unreachable)
        return plain(f"{brokers(away).capitalize()} {agree(len(away), 'is', 'are')} unreachable.") if away else ()

    def _order(self, columns: int) -> Iterator[Text]:
        """Brokers to start, whoever returns the most leaders first; then those that stay down."""
        started = list(self._in_order())
        for number, (broker, led) in enumerate(started, start=1):
            what = f"returns leaders to up to {count(led, 'partition')}" if number == 1 else f"up to {led:,}"
            yield plain(f"  {number}. broker {broker:<4}  {what}")
        for broker, _ in started:
            if self._saved_first[broker]:
                where = count(self._saved_first[broker], "partition")
                yield from _indented(
                    f"First save what broker {broker}'s return truncates on {where}: kelr explain has the command.",
                    columns,
                )
            if broker in self._crashed:
                yield from _indented(
                    f"If broker {broker}'s machine crashed, read its disk first: Kafka elects it even then.",
                    columns,
                )
        for broker in sorted(self._down):
            yield from self._kept_down(broker, columns)

    @property
    def _down(self) -> set[int]:
        return {*self._unwelcome, *self._unread}

    def _in_order(self) -> Iterator[tuple[int, int]]:
        """Brokers with how many partitions each gives a leader that none before it does, the most first."""
        wanted = self._wanted.copy()
        while wanted:
            gains: Counter[int] = Counter()
            for start, number in wanted.items():
                gains.update({broker: number for broker in start if broker not in self._down})
            if not gains:
                return
            broker = min(gains, key=lambda one: (-gains[one], one))
            yield broker, gains[broker]
            wanted = Counter({start: number for start, number in wanted.items() if broker not in start})

    def _kept_down(self, broker: int, columns: int) -> Iterator[Text]:
        said = []
        if self._unread[broker]:
            said.append(f"Kafka elects it on {count(self._unread[broker], 'partition')} even if its log was cut.")
        if self._unwelcome[broker]:
            said.append(
                f"Its return elects, or may elect, a worse leader on {count(self._unwelcome[broker], 'partition')}."
            )
        waiting = sum(number for start, number in self._wanted.items() if broker in start)
        if waiting:
            said.append(f"{count(waiting, 'partition')} {agree(waiting, 'waits', 'wait')} for it: start it after that.")
        head = f"  Keep {broker} down   "
        text = " ".join(said)
        for number, line in enumerate(lines_of(rich_text(plain(text)), width=max(columns - len(head), 20))):
            yield [Span(head if number == 0 else " " * len(head)), *line]
        if self._unread[broker]:
            command = f"kelr recover collect --log-dir DIRECTORY --out broker-{broker}.kelr"
            yield [Span(" " * len(head)), Span("Read its disk first:")]
            yield [Span(" " * len(head)), Span(command, Style.COMMAND)]

    def _most_affected(self) -> Text:
        worst = sorted(self._topics.items(), key=lambda one: (-one[1].count, one[0]))
        named = [topic.named(name) for name, topic in worst[:_MOST_TOPICS]]
        more = len(worst) - len(named)
        return plain(f"Most affected: {', '.join([*named, *([f'{more:,} more topics'] * (more > 0))])}.")


_COLUMNS: tuple[Column[_Group], ...] = (
    Column("count", "PARTITIONS", text=lambda group: plain(f"{group.count:,}"), right=True),
    Column("situation", "SITUATION (worst first)", text=lambda group: group.situation),
    Column("loss", "LOSS IF ELECTED", text=lambda group: group.loss),
    Column("do", "DO", text=lambda group: plain(group.do)),
)


def _indented(text: str, columns: int) -> Iterator[Text]:
    for line in lines_of(rich_text(plain(text)), width=columns - 5):
        yield [Span(" " * 5), *line]


def _is_elected_even_if_cut(decision: Decision, broker: int) -> bool:
    """Whether the advice is to start a broker whose log nobody has read, and Kafka elects it after an unclean shutdown,
    too, with what its log holds then."""
    read = any(one.heard for one in decision.candidates if one.replica == broker)
    unclean = (one for one in decision.forecasts if one.replica == broker == one.elected and not one.clean)
    may_lose = any(one.loss is None or one.loss.grade is not Grade.PROVEN_NONE for one in unclean)
    return decision.advice.action is AdviceAction.BRING_BACK and not read and may_lose


def _led_by_an_unread_log(decision: Decision) -> int | None:
    """The broker to start whose return Kafka answers with its election though no place in ISR or ELR vouches for its
    log, which nobody has read; None where that is not so."""
    advice = decision.advice
    if advice.action is not AdviceAction.BRING_BACK or advice.replica is None:
        return None
    read = any(one.heard for one in decision.candidates if one.replica == advice.replica)
    returns = [one for one in decision.forecasts if one.replica == advice.replica and one.elected == one.replica]
    proven = any(one.loss is not None and one.loss.grade is Grade.PROVEN_NONE for one in returns)
    return None if read or proven or not returns else advice.replica


def _least(decision: Decision) -> tuple[int, bool]:
    """How many offsets the best election loses at least, and whether it may be more."""
    outcome = best_election(decision)
    loss: Loss | None = None if outcome is None else outcome.loss
    if loss is None or loss.total is None:
        return 0, True
    return loss.total.at_least, not loss.total.exact


def _do(decision: Decision) -> str:
    """What the advice comes to, in a few words."""
    advice = decision.advice
    if advice.action is AdviceAction.BRING_BACK and advice.replica is not None and not advice.stop:
        saved = "save, " if advice.rescue else ""
        return f"{saved}start {joined(sorted(advice.start or (advice.replica,)), 'or')}"
    if advice.stop:
        return f"stop {joined(sorted(advice.stop))}: kelr explain"
    if advice.action is AdviceAction.HOLD:
        return f"keep {advice.replica} down"
    if advice.action is AdviceAction.GET_MORE_INFORMATION:
        return _read(advice.command)
    if advice.action is AdviceAction.RESTORE_REPLICATION:
        out = [one for one in decision.candidates if not one.in_isr]
        down = sorted(one.replica for one in out if not one.live)
        return f"start {joined(down)}" if down else f"find why {joined(sorted(one.replica for one in out))} lags"
    return _WORDS[advice.action]


def _read(command: Sequence[str]) -> str:
    if command[:2] == ("recover", "collect"):
        return f"read disk {command[-1].removeprefix('broker-').removesuffix('.kelr')}"
    return "read logs" if command[:1] == ("log-info",) else "kelr explain"


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
