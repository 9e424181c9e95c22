"""What ``kelr whatif`` shows of one outage: the totals first, then the partitions, the worst first."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.controller import ChosenRules
from kelr.engine.outages.fate import BrokerReturn
from kelr.engine.outages.standing import OR_WORSE, Standing
from kelr.engine.outages.tally import Tally
from kelr.engine.outages.told import PartitionFate, PossibleEnd
from kelr.engine.words import agree, plural
from kelr.model import Cluster, PartitionState, TopicError
from kelr.view.affected import Affected
from kelr.view.columns import Column, Fact, Json, View, attributes, datum, for_people
from kelr.view.describe import ERRORS_TAIL, NOTHING_READ, NULL_UNSEEN, count_text, error_items, say_below, vouched
from kelr.view.formats import OutputFormat
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.styled import Style, Text, plain, styled
from kelr.view.whatif_words import (
    HEAD,
    NO_LOGS_READ,
    NOTES,
    SHAPES,
    Shape,
    as_it_is,
    counts_of,
    head_of,
    names_of,
    not_known,
    notes_of,
    remarks,
    short_of,
)

KIND = "kelr/whatif"
_LEAST = Standing.CHANGED | Standing.LEADER_MOVES
"""Flags that nobody has to look at partition by partition."""


def whatif_view() -> View[PartitionFate]:
    """One item for each partition that the outage changes."""
    return View(
        KIND,
        (*_machine_columns(), *_people_columns()),
        version=2,
        head=(*HEAD, Fact("outage", "string", "What is assumed to happen, in words.")),
        tail=(
            Fact("partitions", "integer", "Partitions that were looked at."),
            Fact("listed", "integer", "Partitions among the items."),
            Fact(
                "now",
                "object",
                "How many are in each standing before; those that may be compared with `then` are `..._or_worse`;"
                f" {NULL_UNSEEN}.",
            ),
            Fact("then", "object", "How many are in each standing after."),
            Fact("new", "object", "How many come into each standing."),
            Fact(
                "order_matters",
                "integer?",
                "For how many it makes a difference in which order the brokers go, or how those stopped that return.",
            ),
            NOTES,
            *ERRORS_TAIL,
        ),
    )


def _machine_columns() -> tuple[Column[PartitionFate], ...]:
    flags = f"Of {', '.join(shape.name for shape in SHAPES)}"
    return (
        datum("topic", "string", "Topic name.", lambda row: row.before.topic),
        datum("partition", "integer", "Partition number.", lambda row: row.before.partition),
        datum("new", "string[]", f"{flags}: what it comes into.", lambda row: names_of(row.new)),
        datum("now", "string[]", "The same: what holds before.", lambda row: names_of(row.now)),
        datum(
            "then", "string[]", "The same: what holds after, in some order of events.", lambda row: names_of(row.then)
        ),
        datum(
            "order_matters",
            "boolean",
            "Whether the order of events makes a difference, or how brokers stopped that return.",
            lambda row: row.depends,
        ),
        datum("before", "object", "The partition before.", lambda row: _state(row.before)),
        datum("ends", "object[]", "How it may end, the worst first.", lambda row: [_end(end) for end in row.ends]),
    )


def _state(state: PartitionState) -> Mapping[str, Json]:
    return attributes(state, "leader", "leader_epoch", "replicas", "isr", "elr", "last_known_elr")


def _end(end: PossibleEnd) -> Mapping[str, Json]:
    return {
        **_state(end.after),
        "then": names_of(end.then),
        **attributes(end, "elected_by", "order", "unclean", "doubts"),
        "returns": [_comeback(back) for back in end.comebacks],
        "by_logs": end.by_logs,
        "all_return": None if end.together is None else _comeback(end.together),
    }


def _comeback(back: BrokerReturn) -> Mapping[str, Json]:
    return {"broker": back.broker, "clean": back.clean, "elected": back.elected, "elected_by": back.by}


def _people_columns() -> tuple[Column[PartitionFate], ...]:
    return (
        for_people("PARTITION", lambda row: plain(str(row.before.address))),
        for_people("BECOMES", _becomes),
        for_people("LEADER", _leader),
        for_people("ISR", lambda row: _moved(row.before.isr, row.worst.after.isr)),
        for_people("ELR", lambda row: _moved(row.before.elr, row.worst.after.elr), yields=1),
        for_people("REMARK", lambda row: plain("; ".join(remarks(row))), prose=True),
    )


def _becomes(row: PartitionFate) -> Text:
    shape = short_of(row)
    return styled(shape.short, shape.style)


def _leader(row: PartitionFate) -> Text:
    before, after = row.before.leader, row.worst.after.leader
    if before == after:
        return plain(_named(after))
    style = Style.BAD if after is None else Style.PLAIN
    return [*plain(f"{_named(before)} -> "), *styled(_named(after), style)]


def _named(leader: int | None) -> str:
    return "none" if leader is None else str(leader)


def _moved(before: tuple[int, ...] | None, after: tuple[int, ...] | None) -> Text:
    if before is None and after is None:
        return styled("?", Style.NOTICE)
    old, new = (("?" if group is None else ",".join(map(str, group)) or "-") for group in (before, after))
    same = before is not None and after is not None and set(before) == set(after)
    return plain(new if same else f"{old} -> {new}")


# Totals.


@dataclass(frozen=True, slots=True)
class _Total:
    shape: Shape
    tally: Tally
    whole: bool

    @property
    def title(self) -> str:
        return _OR_WORSE.get(self.shape.flag, self.shape.title)

    @property
    def now(self) -> int:
        return (self.tally.now_or_worse if self.shape.flag in _OR_WORSE else self.tally.now)[self.shape.flag]

    @property
    def then(self) -> int:
        return (self.tally.then_or_worse if self.shape.flag in _OR_WORSE else self.tally.then)[self.shape.flag]

    @property
    def new(self) -> int:
        return (self.tally.new_or_worse if self.shape.flag in _OR_WORSE else self.tally.new)[self.shape.flag]


_OR_WORSE = {
    Standing.UNDER_MIN_ISR: "acks=all refused: under min ISR, or no leader",
    Standing.MIN_ISR_UNKNOWN: "perhaps under min ISR (UNKNOWN), or worse",
    Standing.LAST_REPLICA: "one replica in sync, of several, or no leader",
}
"""Titles of rows that count what is worse, too: a partition that loses its leader is not under min ISR any more, and no
figure may fall by that."""


_ONLY_THEN = frozenset({Standing.MAY_LOSE, Standing.LEADER_MOVES, Standing.CHANGED, Standing.DOUBTFUL})


def _now(row: _Total) -> Text:
    return plain("" if row.shape.flag in _ONLY_THEN else count_text(vouched(row.now, whole=row.whole)))


def _new(row: _Total) -> Text:
    if not row.new and not row.whole and row.shape.flag not in _ONLY_THEN:
        return plain("?")
    return styled(f"+{row.new:,}", row.shape.style) if row.new and row.shape.flag not in _ONLY_THEN else plain("")


def _then(row: _Total) -> Text:
    # Logs are not read: more may be lost.
    may_lose = row.shape.flag is Standing.MAY_LOSE
    count = vouched(row.then, whole=row.whole and not (may_lose and not row.then))
    more = "+" if may_lose else ""
    return styled("?" if count is None else f"{count:,}{more}", row.shape.style if row.then else Style.PLAIN)


_TOTALS: tuple[Column[_Total], ...] = (
    Column("standing", "PARTITIONS", text=lambda row: plain(row.title)),
    Column("now", "NOW", text=_now, right=True),
    Column("then", "THEN", text=_then, right=True),
    Column("new", "NEW", text=_new, right=True),
)
_ALWAYS = frozenset({Standing.MAY_LOSE, Standing.LEADERLESS, Standing.UNDER_MIN_ISR, Standing.LAST_REPLICA})


def totals_lines(layout: Layout, tally: Tally, *, whole: bool) -> Iterator[Text]:
    """The table of totals; what there is none of is left out, but for the four that everybody asks for.

    Args:
        whole: as for `vouched`.
    """
    rows = [
        _Total(shape, tally, whole)
        for shape in SHAPES
        if shape.flag in _ALWAYS or tally.then[shape.flag] or tally.now[shape.flag]
    ]
    yield from layout.table(_TOTALS, rows)


@dataclass(slots=True)
class _Group:
    """Partitions that come to the same."""

    shape: Shape
    remark: str
    worst: int = 0
    partitions: Affected = field(default_factory=Affected)


_GROUP_COLUMNS: tuple[Column[_Group], ...] = (
    Column("count", "PARTITIONS", text=lambda row: plain(f"{row.partitions.count:,}"), right=True),
    Column("becomes", "BECOMES", text=lambda row: styled(row.shape.short, row.shape.style)),
    Column("which", "WHICH", text=lambda row: plain(row.partitions.named(most=_MOST_TOPICS)), prose=True),
    Column("remark", "THEN", text=lambda row: plain(row.remark), prose=True),
)
_MOST_TOPICS = 3


class OutageReport:
    """Takes the partitions that an outage changes and shows them: as they come in documents; to people in groups that
    come to the same, or one by one with ``-o wide``, the worst first.

    Args:
        limit: how many partitions, or groups of them, to list; None lists all of them.
    """

    def __init__(
        self, output: Output, cluster: Cluster, *, source: str, rules: ChosenRules, tally: Tally, limit: int | None
    ) -> None:
        self._output = output
        self._rules = rules
        self._tally = tally
        self._limit = limit
        self._shown = 0
        self._number = 0
        self._heap: list[tuple[int, int, PartitionFate]] = []
        self._groups: dict[tuple[str, str], _Group] = {}
        self._one_by_one = output.format is OutputFormat.WIDE
        self._cluster = cluster
        head = {**head_of(cluster, source, rules), "outage": str(tally.outage)}
        self._listing = None if output.format.for_people else output.listing(whatif_view(), head)
        if self._listing is not None:
            self._listing.__enter__()

    def add(self, fates: Sequence[PartitionFate]) -> None:
        """Partitions that the outage changes, in address order."""
        if self._listing is not None:
            room = len(fates) if self._limit is None else max(self._limit - self._shown, 0)
            self._listing.add(fates[:room])
            self._shown += len(fates[:room])
            return
        for fate in fates:
            if not self._one_by_one:
                shape, remark = short_of(fate), "; ".join(remarks(fate))
                group = self._groups.setdefault((shape.name, remark), _Group(shape, remark))
                group.worst = max(group.worst, int(fate.new))
                group.partitions.add(fate.before.topic, fate.before.partition)
                continue
            self._number -= 1
            item = (int(fate.new), self._number, fate)
            if self._limit is None or len(self._heap) < self._limit:
                heapq.heappush(self._heap, item)
            else:
                heapq.heappushpop(self._heap, item)

    def failed(self, error: BaseException) -> None:
        """Close a document that an error cuts short."""
        if self._listing is not None:
            self._listing.__exit__(type(error), error, None)

    def finish(self, errors: Sequence[TopicError], why: Sequence[str], next_command: Sequence[str]) -> None:
        """Show what people see, and end a document. `why`: notes on what is not known."""
        tally, output = self._tally, self._output
        notes = notes_of(self._rules, self._cluster, tally.doubts, tally.depends, in_order=not tally.outage.at_once)
        notes += why
        notes.append(NO_LOGS_READ if tally.partitions else NOTHING_READ)
        affected = tally.new[Standing.CHANGED] or max(tally.new.values(), default=0)
        whole = bool(tally.partitions) and not errors
        if self._listing is None:
            self._show(affected, whole=whole)
        else:
            if affected > self._shown:
                notes.append(f"{affected - self._shown:,} more partitions change; --all lists them")
            self._listing.finish(
                {
                    "partitions": tally.partitions,
                    "listed": self._shown,
                    "now": counts_of(tally.now, tally.now_or_worse, whole=whole),
                    "then": counts_of(tally.then, tally.then_or_worse, whole=whole),
                    "new": counts_of(tally.new, tally.new_or_worse, whole=whole),
                    "order_matters": vouched(tally.depends, whole=whole),
                    "notes": notes,
                    "errors": error_items(errors),
                    "next": output.next_command(next_command),
                }
            )
        say_below(output, notes, errors, next_command)

    def _show(self, affected: int, *, whole: bool) -> None:
        output, tally = self._output, self._tally
        layout = Layout(output.width)
        for line in layout.lines(_headline(tally, self._rules, self._cluster)):
            output.line(line)
        for line in totals_lines(layout, tally, whole=whole):
            output.line(line)
        if not (self._heap or self._groups):
            return
        output.line()
        if self._one_by_one:
            worth = [fate for _, _, fate in sorted(self._heap, key=lambda item: item[:2], reverse=True)]
            self._list(layout.table(_people_columns(), worth), affected - len(worth), "partitions change")
        else:
            groups = sorted(self._groups.values(), key=lambda group: (-group.worst, -group.partitions.count))
            shown = groups[: self._limit]
            self._list(layout.table(_GROUP_COLUMNS, shown), len(groups) - len(shown), "groups of partitions")

    def _list(self, lines: Iterator[Text], left_out: int, what: str) -> None:
        for line in lines:
            self._output.line(line)
        if left_out > 0:
            self._output.line(f"{left_out:,} more {what}, none of them worse: --all lists them")


def _headline(tally: Tally, rules: ChosenRules, cluster: Cluster) -> Text:
    what = f"If {tally.outage}: "
    bad = tuple(_VERBS)
    # Who comes to be under min ISR from having no leader stands better than before.
    new = {flag: (tally.new_or_worse if flag in OR_WORSE else tally.new)[flag] for flag in bad}
    found = [shape for shape in SHAPES if shape.flag in bad and new[shape.flag]]
    if found:
        worst = found[0]
        count = new[worst.flag]
        verb = agree(count, *_VERBS[worst.flag])
        verdict = styled(f"{count:,} of {plural(tally.partitions, 'partition')} {verb}", worst.style)
    elif not tally.partitions:
        verdict = styled("UNKNOWN: no partition was read", Style.NOTICE)
    elif better := _better(tally):
        verdict = [*not_known(cluster), *plain(better)]
    elif already := as_it_is(tally.now):
        verdict = [*not_known(cluster), *plain(f"no partition loses its leader or falls under min ISR; {already}")]
    else:
        each = f"each of {tally.partitions:,} partitions" if tally.partitions > 1 else "the partition"
        old, kept = not_known(cluster), f"{each} keeps a leader and min ISR"
        verdict = [*old, *plain(kept)] if old else styled(kept, Style.GOOD)
    return [*styled(what, Style.HEADING), *verdict, *plain(f" (rules {rules.rules.name})")]


def _better(tally: Tally) -> str:
    """What becomes of partitions that nobody led before, where no partition comes off worse; empty where there are
    none, or they stay as they are."""
    before, left = tally.now[Standing.LEADERLESS], tally.then[Standing.LEADERLESS]
    if not (before and tally.new[Standing.CHANGED]):
        return ""
    count, verb = (before - left, "get a leader") if left < before else (left, "stay without leader")
    may = "may " if tally.depends else ""
    one = verb.replace("get", "gets").replace("stay", "stays")
    return f"{count:,} of {plural(tally.partitions, 'partition')} {may}{verb if may else agree(count, one, verb)}"


_VERBS = {
    Standing.MAY_LOSE: ("may lose committed records", "may lose committed records"),
    Standing.LEADERLESS: ("loses its leader", "lose their leader"),
    Standing.UNPROVEN: (
        "is left without a replica that is proven complete",
        "are left without a replica that is proven complete",
    ),
    Standing.UNDER_MIN_ISR: ("falls under min ISR", "fall under min ISR"),
    Standing.MIN_ISR_UNKNOWN: ("may fall under min ISR: UNKNOWN", "may fall under min ISR: UNKNOWN"),
    Standing.DOUBTFUL: ("may come off worse: UNKNOWN", "may come off worse: UNKNOWN"),
}
