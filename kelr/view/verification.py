"""What ``kelr recover verify`` shows: what is well after a plan's elections, what is not yet and what is not, and what
they lost, which no check mends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.planning import plan_id
from kelr.engine.planning.lost import Lost, LostInAll, lost_in_all
from kelr.model import TopicPartition
from kelr.model.plan import Check, Finding, Passed, Plan
from kelr.view.columns import Column, Fact, Json, View, datum
from kelr.view.describe import SILENCE_FACT
from kelr.view.formats import OutputFormat
from kelr.view.layout import Layout
from kelr.view.lost_words import LOST_FACT, lost_document, lost_in_short, lost_in_words, lost_lines
from kelr.view.output import Output
from kelr.view.plan_words import in_one_line, named, partitions_in_words, where_in_words
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/verification"
_KELR = "kelr "

HEAD = (
    Fact("cluster_id", "string?", "The cluster that the plan is for."),
    Fact("plan_id", "string", "Names the plan's content."),
    Fact("looked_at_ms", "integer", "When the look began, in milliseconds since 1970 UTC."),
)
TAIL = (
    Fact("partitions", "integer", "How many partitions the plan elects leaders for."),
    Fact(
        "good",
        "boolean",
        "Whether there were checks, every one was looked at and came out well, and a controller answered."
        " It says nothing of what the elections lost: `lost` does.",
    ),
    Fact("silence", "string?", SILENCE_FACT),
    Fact("lost", "object", LOST_FACT),
    *(Fact(one.value, "integer", f"How many checks came out as {one.value}.") for one in Passed),
    Fact("next", "string?", "The command to type next."),
)


@dataclass(frozen=True, slots=True)
class Verified:
    """One look at a plan's partitions."""

    plan: Plan
    findings: Sequence[Finding]
    looked_at_ms: int
    lost: Sequence[Lost] = ()
    """What each election lost that was carried out."""
    silence: str | None = None
    """Why no controller answered; None: one did."""

    def count(self, passed: Passed) -> int:
        return sum(one.passed is passed for one in self.findings)

    @property
    def passed(self) -> bool:
        """Whether every check was looked at and came out well."""
        return bool(self.findings) and all(one.passed is Passed.YES for one in self.findings)

    @property
    def good(self) -> bool:
        """The same, and a controller stands behind what brokers told."""
        return self.passed and self.silence is None

    @property
    def in_all(self) -> LostInAll:
        """What all of them lost together."""
        return lost_in_all(self.lost)


def verification_view(output: Output | None = None, stock_connection: str = "") -> View[Finding]:
    """One item for each check of each partition. `output` and `stock_connection` complete the commands."""

    def command(row: Finding) -> Json:
        return None if not row.command else _completed(output, stock_connection, row.command)

    columns: tuple[Column[Finding], ...] = (
        datum("topic", "string", "Topic name."),
        datum("partition", "integer", "Partition number."),
        datum("check", "string", f"What was looked at: one of {', '.join(Check)}."),
        datum("passed", "string", f"How it came out: one of {', '.join(Passed)}."),
        datum("text", "string", "What was seen, in a sentence."),
        datum("remark", "string", "The part of it to know although the check came out well; empty: none."),
        datum("command", "string?", "A command that mends it or shows more; null: none.", command),
    )
    return View(KIND, columns, head=HEAD, tail=TAIL)


def show_verification(
    output: Output, verified: Verified, *, stock_connection: str, following: Sequence[str] | None
) -> None:
    """Print one look: for people what did not come out well, and what did in one line for each check; with ``-o wide``,
    or for a single partition, everything.

    Args:
        stock_connection: the connection flags as Kafka's own tools take them.
        following: the next command as arguments after ``kelr``.
    """
    if output.format.for_people:
        for line in verification_lines(output, verified, stock_connection):
            output.line(line)
        if following is not None:
            output.next(following)
        return
    head: dict[str, Json] = {
        "cluster_id": verified.plan.cluster_id,
        "plan_id": plan_id(verified.plan),
        "looked_at_ms": verified.looked_at_ms,
    }
    with output.listing(verification_view(output, stock_connection), head) as listing:
        listing.add(verified.findings)
        listing.finish(
            {
                "partitions": len(verified.plan.elections),
                "good": verified.good,
                "silence": verified.silence,
                "lost": lost_document(verified.lost),
                **{one.value: verified.count(one) for one in Passed},
                "next": None if following is None else output.next_command(following),
            }
        )


def verification_lines(output: Output, verified: Verified, stock_connection: str) -> Iterator[Text]:
    """The look for people, line by line."""
    layout = Layout(output.width)
    in_full = output.format is OutputFormat.WIDE or len(verified.plan.elections) <= 1
    shown = [one for one in verified.findings if in_full or one.passed is not Passed.YES]
    if shown:
        yield from _table(layout, shown)
    commands = dict.fromkeys(one.command for one in shown if one.command)
    if commands:
        yield plain("")
        yield styled("What mends it, or shows more:", Style.HEADING)
        for command in commands:
            yield plain(f"  {_completed(output, stock_connection, command)}")
    if shown:
        yield plain("")
    if not in_full:
        yield from _good_in_short(layout, verified)
        yield from _remarks(layout, verified)
    lost = verified.in_all
    if not lost.nothing:
        words = " ".join((lost_in_words(lost), *lost_lines(verified.lost, lost)))
        yield from layout.paragraph("Lost:   ", words, Style.NOTICE)
    yield from layout.paragraph("In all: ", verified_in_words(verified), _style(verified))


def verified_in_words(verified: Verified) -> str:
    """One sentence: how many checks of how many partitions, and how they came out."""
    if not verified.findings:
        return "the plan elects nobody, so nothing was checked."
    where, lost = partitions_in_words(len(verified.plan.elections)), verified.in_all
    checks = f"{where}, {len(verified.findings)} checks"
    if verified.silence is not None:
        return (
            f"{checks}: {_counts(verified)}; all of it is what brokers knew last, because no controller answers"
            f" ({verified.silence})."
        )
    if not verified.passed:
        return f"{checks}: {_counts(verified)}."
    away = any(one.remark for one in verified.findings)
    if away or not lost.nothing:
        words = "all came out well" + (", and a replica is away" if away else "")
        return f"{checks}: {words}." + ("" if lost.nothing else f" Lost by the elections: {lost_in_short(lost)}.")
    return f"{checks}: all is well."


def _counts(verified: Verified) -> str:
    return ", ".join(
        f"{verified.count(passed)} {words}" for passed, words in _COUNTED.items() if verified.count(passed)
    )


def waited_for_in_words(verified: Verified) -> str:
    """Which checks are not yet, and where."""
    parts = []
    for check in Check:
        where = [one.address for one in verified.findings if one.check is check and one.passed is Passed.NOT_YET]
        if where:
            names = dict.fromkeys(where)
            parts.append(f"{check.value} of {named(names) if in_one_line(names) else partitions_in_words(len(names))}")
    return "; ".join(parts)


def waited_for_in_short(verified: Verified) -> str:
    """The same with numbers alone, for a line that must not wrap."""
    waiting = [one.check for one in verified.findings if one.passed is Passed.NOT_YET]
    return ", ".join(f"{check.value} {waiting.count(check)}" for check in Check if check in waiting)


def _good_in_short(layout: Layout, verified: Verified) -> Iterator[Text]:
    """What came out well, a line for each check, so that nothing is left out in silence."""
    for check in Check:
        good: dict[TopicPartition, None] = {
            one.address: None for one in verified.findings if one.check is check and one.passed is Passed.YES
        }
        bad = {one.address for one in verified.findings if one.check is check and one.passed is not Passed.YES}
        well = [address for address in good if address not in bad]
        if well:
            where = where_in_words(well, of=len(verified.plan.elections))
            yield from layout.paragraph(f"  {check.value:<19}", f"well: {where}", Style.PLAIN)


def _remarks(layout: Layout, verified: Verified) -> Iterator[Text]:
    """What to know of checks that came out well."""
    remarks: dict[str, dict[TopicPartition, None]] = {}
    for one in verified.findings:
        if one.remark and one.passed is Passed.YES:
            remarks.setdefault(one.remark, {})[one.address] = None
    for remark, addresses in remarks.items():
        where = where_in_words(addresses, of=len(verified.plan.elections))
        yield from layout.paragraph(f"  {'note':<19}", f"{remark} ({where})", Style.NOTICE)


@dataclass(frozen=True, slots=True)
class _Same:
    """What is to be said of several partitions in the same words."""

    check: Check
    passed: Passed
    text: str
    partitions: tuple[TopicPartition, ...]
    where: str = ""
    """The partitions, or what stands for a list of them that is told below the table."""


def _table(layout: Layout, findings: Sequence[Finding]) -> Iterator[Text]:
    """A row for each text, and below them each list of partitions that is too long for a row, once."""
    long: dict[tuple[TopicPartition, ...], str] = {}
    rows = []
    for row in _grouped(findings):
        if in_one_line(row.partitions):
            rows.append(replace(row, where=named(row.partitions)))
            continue
        mark = long.setdefault(row.partitions, f"[{len(long) + 1}]")
        rows.append(replace(row, where=f"{partitions_in_words(len(row.partitions))} {mark}"))
    yield from layout.table(COLUMNS, rows)
    for partitions, mark in long.items():
        yield from layout.paragraph(f" {mark} ", named(partitions), Style.PLAIN)


def _grouped(findings: Sequence[Finding]) -> list[_Same]:
    groups: dict[tuple[Check, Passed, str], list[TopicPartition]] = {}
    for one in findings:
        groups.setdefault((one.check, one.passed, one.text), []).append(one.address)
    return [_Same(check, passed, text, tuple(where)) for (check, passed, text), where in groups.items()]


def _completed(output: Output | None, stock_connection: str, command: str) -> str:
    """The command with the flags that lead to this cluster."""
    if command.startswith(_KELR) and output is not None:
        return output.next_command(command.removeprefix(_KELR).split())
    return command.replace(STOCK_CONNECTION, stock_connection or STOCK_CONNECTION)


def _style(verified: Verified) -> Style:
    if verified.good and verified.in_all.nothing:
        return Style.GOOD
    return Style.BAD if verified.count(Passed.NO) else Style.NOTICE


_COUNTED = {
    Passed.YES: "well",
    Passed.NOT_YET: "not yet",
    Passed.NO: "not well",
    Passed.UNKNOWN: "could not be looked at",
}
_IN_WORDS = {
    Passed.YES: styled("well", Style.GOOD),
    Passed.NOT_YET: styled("not yet", Style.NOTICE),
    Passed.NO: styled("NOT WELL", Style.BAD),
    Passed.UNKNOWN: styled("unknown", Style.NOTICE),
}

COLUMNS: tuple[Column[_Same], ...] = (
    Column("name", "PARTITION", text=lambda row: plain(row.where)),
    Column("check", "CHECK", text=lambda row: plain(row.check.value)),
    Column("passed", "RESULT", text=lambda row: _IN_WORDS[row.passed]),
    Column("text", "", text=lambda row: plain(row.text), prose=True),
)
