"""What ``kelr recover verify`` shows: what is well after a plan's elections, what is not yet and what is not, and what
they lost, which no check mends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kelr.engine.advice.commands import STOCK_CONNECTION
from kelr.engine.checkup.tally import ranges
from kelr.engine.planning import plan_id
from kelr.engine.planning.lost import Lost, LostInAll, lost_in_all
from kelr.engine.words import agree, brokers
from kelr.model import TopicPartition
from kelr.model.plan import Check, Finding, Passed, Plan
from kelr.view.columns import Column, Fact, Json, View, datum
from kelr.view.describe import SILENCE_FACT
from kelr.view.formats import OutputFormat
from kelr.view.lost_words import LOST_FACT, NOT_ON_RECORD, lost_document, lost_in_short, lost_in_words, lost_lines
from kelr.view.output import Output
from kelr.view.plan_words import in_one_line, named, partitions_in_words, where_in_words
from kelr.view.screen import BAD, GOOD, WARN, Screen
from kelr.view.styled import Style

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
    instead: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Who leads where the planned election is known not to have come about, as another one was first."""

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
    """Print one look: for people the verdict, what did not pass, the next command, and what stands behind it; with ``-o
    wide``, or for a single partition, every check.

    Args:
        stock_connection: the connection flags as Kafka's own tools take them.
        following: the next command as arguments after ``kelr``.
    """
    if output.format.for_people:
        page = _Page(output, verified)
        page.verdict()
        page.failures(stock_connection, following)
        page.lost()
        page.evidence()
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


class _Page:
    """A look as people read it."""

    def __init__(self, output: Output, verified: Verified) -> None:
        self._output, self._verified, self._screen = output, verified, Screen(output)
        self._in_full = output.format is OutputFormat.WIDE or len(verified.plan.elections) <= 1

    def verdict(self) -> None:
        verified = self._verified
        well = verified.good and verified.in_all.nothing and not verified.instead
        style = GOOD if well else BAD if verified.count(Passed.NO) else WARN
        self._screen.say((verified_in_words(verified), style))

    def failures(self, stock_connection: str, following: Sequence[str] | None) -> None:
        """What did not pass, with what fixes it or shows more; then the next command."""
        shown = [one for one in self._verified.findings if one.passed is not Passed.YES]
        for passed in (Passed.NO, Passed.NOT_YET, Passed.UNKNOWN):
            self._say(_LABELS[passed], (one for one in shown if one.passed is passed), _STYLES[passed])
        commands = dict.fromkeys(one.command for one in shown if one.command)
        lines = [_completed(self._output, stock_connection, command) for command in commands]
        for number, line in enumerate(lines):
            self._screen.command(line, label=f"{'' if number else 'Fix':<{_MARGIN}}")
        next_command = None if following is None else self._output.next_command(following)
        if next_command is not None and next_command not in lines:
            self._screen.command(next_command, label=f"{'Next':<{_MARGIN}}")

    def lost(self) -> None:
        """What the elections lost, which no check mends."""
        lost = self._verified.in_all
        if self._verified.instead and not lost.elections:
            self._screen.blank()
            self._screen.say(f"none: {NOT_ON_RECORD}.", label=f"{'Lost':<{_MARGIN}}")
        if not lost.nothing:
            self._screen.blank()
            words = " ".join((lost_in_words(lost), *lost_lines(self._verified.lost, lost)))
            self._screen.say((words, WARN), label=f"{'Lost':<{_MARGIN}}")

    def evidence(self) -> None:
        """What passed, the checks together that passed for as many partitions, so that nothing is left out in silence;
        and what to know of it."""
        verified = self._verified
        good = [one for one in verified.findings if one.passed is Passed.YES]
        if good:
            self._screen.blank()
        if self._in_full:
            self._say("Passed", good, GOOD)
            return
        total = len(verified.plan.elections)
        counts: dict[int, list[str]] = {}
        for check in Check:
            well = {one.address for one in good if one.check is check}
            bad = {one.address for one in verified.findings if one.check is check and one.passed is not Passed.YES}
            if well - bad:
                counts.setdefault(len(well - bad), []).append(check.value)
        for number, (count, checks) in enumerate(sorted(counts.items(), reverse=True)):
            label = f"{'' if number else 'Passed':<{_MARGIN}}"
            self._screen.say(f"{count:,} of {total:,}: {', '.join(checks)}", label=label, style=GOOD)
        remarks: dict[str, dict[TopicPartition, None]] = {}
        for one in good:
            if one.remark:
                remarks.setdefault(one.remark, {})[one.address] = None
        for remark, addresses in remarks.items():
            where = where_in_words(addresses, of=total)
            self._screen.say(f"{remark} ({where})", label=f"{'Note':<{_MARGIN}}", style=WARN)

    def _say(self, label: str, findings: Iterable[Finding], style: Style) -> None:
        """Each text once, with the check and the partitions that it is about, also where leader epochs differ."""
        groups: dict[tuple[Check, str], list[Finding]] = {}
        for one in findings:
            groups.setdefault((one.check, _EPOCHS.sub("", one.text)), []).append(one)
        for number, ((check, _), alike) in enumerate(groups.items()):
            before = f"{'' if number else label:<{_MARGIN}}"
            where = named(one.address for one in alike)
            self._screen.say(f"{check.value} of {where}: {_of_all(alike)}", label=before, style=style)


def verified_in_words(verified: Verified) -> str:
    """The verdict: where the plan was not carried out, how many checks of how many partitions passed, and what the
    elections lost."""
    return f"{_not_carried_out(verified)}{_checked_in_words(verified)}"


def _not_carried_out(verified: Verified) -> str:
    """Where another replica was elected first; empty where none was, as far as it is known."""
    unsure = {one.address: one.led_first for one in verified.lost if one.led_first is not None}
    total = len(verified.plan.elections)
    parts = []
    for where, label, by in (
        (verified.instead, "Not carried out", " by another election"),
        (unsure, "Not carried out as planned", ", by which election is UNKNOWN"),
    ):
        if where:
            leaders = sorted(set(where.values()))
            places = named(where) if in_one_line(where) else partitions_in_words(len(where))
            some = "" if len(where) == total else f" in {len(where):,} of {partitions_in_words(total)}"
            leads = agree(len(leaders), "leads", "lead")
            parts.append(f"{label}{some}: {brokers(leaders)} {leads} {places}{by}. ")
    return "".join(parts)


def _checked_in_words(verified: Verified) -> str:
    if not verified.findings:
        return "No election in the plan: nothing checked."
    elections, lost = verified.plan.elections, verified.in_all
    failed = {one.address for one in verified.findings if one.passed is not Passed.YES}
    well = f"{len(elections) - len(failed):,} of {partitions_in_words(len(elections))}"
    checks = f"{len(verified.findings):,} checks"
    counts = ", ".join(
        f"{verified.count(passed):,} {words}" for passed, words in _COUNTED.items() if verified.count(passed)
    )
    some = f"{well} passed; of {checks} {counts}" if counts else f"{well} passed, {checks}"
    if verified.silence is not None:
        return f"UNKNOWN: {some}. All of it is what brokers knew last: no controller answers ({verified.silence})."
    if not verified.passed:
        worst = next(one for one in (Passed.NO, Passed.NOT_YET, Passed.UNKNOWN) if verified.count(one))
        return f"{_VERDICTS[worst]}: {some}."
    offline = "; a replica is offline" if any(one.remark for one in verified.findings) else ""
    lost_too = "" if lost.nothing else f" Lost by the elections: {lost_in_short(lost)}."
    return f"Passed: {well}, {checks}{offline}.{lost_too}"


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


_EPOCHS = re.compile(r"(?<=leader epoch) ([0-9]+)(?:, ([0-9]+) in the plan)?")


def _of_all(alike: Sequence[Finding]) -> str:
    """Their text, which differs in leader epochs alone: ``2 leads, in leader epoch 4-6,9``."""
    found = [match for one in alike if (match := _EPOCHS.search(one.text)) is not None]
    if not found:
        return alike[0].text
    now, planned = (sorted({int(match[group]) for match in found if match[group]}) for group in (1, 2))
    epochs = f" {ranges(now)}" + (f", {ranges(planned)} in the plan" if planned else "")
    return _EPOCHS.sub(epochs, alike[0].text)


def _completed(output: Output | None, stock_connection: str, command: str) -> str:
    """The command with the flags that lead to this cluster."""
    if command.startswith(_KELR) and output is not None:
        return output.next_command(command.removeprefix(_KELR).split())
    return command.replace(STOCK_CONNECTION, stock_connection or STOCK_CONNECTION)


_MARGIN = 9
_COUNTED = {Passed.NO: "failed", Passed.NOT_YET: "not yet", Passed.UNKNOWN: "UNKNOWN"}
_LABELS = {Passed.NO: "Failed", Passed.NOT_YET: "Not yet", Passed.UNKNOWN: "UNKNOWN"}
_VERDICTS = {Passed.NO: "Failed", Passed.NOT_YET: "Not yet passed", Passed.UNKNOWN: "UNKNOWN"}
_STYLES = {Passed.NO: BAD, Passed.NOT_YET: WARN, Passed.UNKNOWN: WARN}
