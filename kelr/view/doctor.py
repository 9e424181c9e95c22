"""What ``kelr doctor`` shows: what a cluster can do, what was found, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kelr.engine.checkup.abilities import CLUSTER, Ability
from kelr.engine.checkup.catalogue import BY_ID, CHECKS
from kelr.engine.checkup.rights import CommandRights, Right
from kelr.engine.checkup.tally import Tallies, Tally
from kelr.engine.words import agree, joined, plural
from kelr.model import Cluster, TopicError
from kelr.model.checkup import Command, Finding, Result, Severity
from kelr.view.columns import Column, Fact, Json, View
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, cluster_head, error_items, note_errors
from kelr.view.layout import Layout
from kelr.view.output import Listing, Output
from kelr.view.styled import Span, Style, Text, plain, styled

# ``kelr doctor`` for people: what the cluster is, what was found with the worst first, and what was not looked at.

_STYLES = {Severity.CRITICAL: Style.BAD, Severity.WARNING: Style.NOTICE, Severity.NOTE: Style.HEADING}
_NAME_WIDTH = 18
_INDENT = "  "


def abilities_lines(layout: Layout, cluster: Cluster, abilities: Sequence[Ability], *, source: str) -> Iterator[Text]:
    """What the cluster is, and what kelr uses for each thing."""
    of = f"Cluster {cluster.cluster_id or 'of unknown id'}"
    yield styled(of if source == "live" else f"{of}, from {source}", Style.HEADING)
    methods = False
    for one in abilities:
        if one.group != CLUSTER and not methods:
            methods = True
            yield styled("kelr uses", Style.HEADING)
        yield from layout.paragraph(_head(one.name), f"{one.value} ({one.why})" if one.why else one.value, Style.PLAIN)


def surroundings_lines(layout: Layout, surroundings: Sequence[tuple[str, str]]) -> Iterator[Text]:
    """What is around kelr itself."""
    yield styled("Here", Style.HEADING)
    for name, value in surroundings:
        yield from layout.paragraph(_head(name), value, Style.PLAIN)


def rights_lines(layout: Layout, rights: Sequence[CommandRights] | None) -> Iterator[Text]:
    """What the principal may do: commands that have everything, and what the others lack."""
    if rights is None:
        return
    yield styled("This principal", Style.HEADING)
    able = [one.command for one in rights if one.has]
    if able:
        yield from layout.paragraph(_head("may"), ", ".join(able), Style.GOOD)
    for words, commands in _grouped(rights, lambda one: one.lacks if one.has is False else ()).items():
        yield from layout.paragraph(_head("may not"), f"{', '.join(commands)}: lacks {words}", Style.NOTICE)
    for words, commands in _grouped(rights, lambda one: one.not_told if one.has is None else ()).items():
        yield from layout.paragraph(_head("nobody tells"), f"{', '.join(commands)}: {words}", Style.PLAIN)


def _grouped(rights: Sequence[CommandRights], of: Callable[[CommandRights], tuple[Right, ...]]) -> dict[str, list[str]]:
    """The commands to which the same applies, by its words."""
    found: dict[str, list[str]] = {}
    for one in rights:
        told = [right for right in of(one) if right.acl.only is None]
        if told:
            found.setdefault(joined(dict.fromkeys(right_words(right) for right in told)), []).append(one.command)
    return found


def right_words(right: Right) -> str:
    """``READ on topic *`` or, where it is missing on some topics, which."""
    if not right.refused_on:
        return str(right.acl)
    shown = ", ".join(right.refused_on[:3])
    more = f" and {len(right.refused_on) - 3} more" if len(right.refused_on) > 3 else ""
    return f"{right.acl.operation} on {shown}{more}"


def findings_lines(
    layout: Layout, tallies: Tallies, lines: Callable[[Iterable[Command]], Sequence[str]]
) -> Iterator[Text]:
    """What was found, the worst first; then what was not looked at; then what is fine."""
    for tally in tallies.found:
        yield plain("")
        yield from _finding(layout, tally, lines)
    unchecked = [check.id for check in CHECKS if tallies.unchecked(check.id)]
    if unchecked:
        yield plain("")
        yield styled("Not checked", Style.HEADING)
        for words, checks in _reasons(tallies, unchecked).items():
            yield from layout.paragraph(_INDENT, f"{', '.join(checks)}: {words}", Style.PLAIN)
    clear = [check for check, result in tallies.results.items() if result is Result.CLEAR]
    if clear:
        yield plain("")
        yield from layout.paragraph(_head("nothing found by", indent=""), ", ".join(clear), Style.HEADING)


def _reasons(tallies: Tallies, checks: Sequence[str]) -> dict[str, list[str]]:
    """Why, and which checks."""
    found: dict[str, list[str]] = {}
    for check in checks:
        for one in tallies.unchecked(check):
            more = ", ..." if one.topics > len(one.first) else ""
            topics = f" ({plural(one.topics, 'topic')}: {', '.join(one.first)}{more})" if one.topics else ""
            found.setdefault(one.why + topics, []).append(check)
    return found


def _finding(layout: Layout, tally: Tally, lines: Callable[[Iterable[Command]], Sequence[str]]) -> Iterator[Text]:
    head = f"{tally.severity.upper():<8}  "
    yield from layout.paragraph(head, f"{tally.id}: {_summary(tally)}", _STYLES[tally.severity])
    if tally.topics > 1:
        for words in tally.what:
            yield from layout.paragraph(_INDENT * 5, words, Style.PLAIN)
        if tally.findings > len(tally.what):
            yield plain(f"{_INDENT * 5}and {tally.findings - len(tally.what):,} more: -o json lists all")
    yield from layout.paragraph(_label("why"), tally.why, Style.PLAIN)
    for commands in tally.commands:
        for shell in lines(commands):
            # A command is copied: it is one line, whatever the terminal's width.
            yield [Span(_label("do"), Style.HEADING), Span(shell)]
    if tally.more_commands:
        yield plain(f"{_INDENT * 5}more commands like these: -o json lists all")
    for caution in tally.cautions:
        yield from layout.paragraph(_label("mind"), caution, Style.PLAIN)


def _summary(tally: Tally) -> str:
    if tally.topics > 1:
        topics = _counted(tally.topics, "topic")
        partitions = f"{_counted(tally.partitions, 'partition')} of " if tally.partitions else ""
        return f"{BY_ID[tally.id].title}: {partitions}{topics}"
    left = tally.findings - len(tally.what)
    return "; ".join(tally.what) + (f"; {left} more: -o json lists all" if left else "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {agree(count, noun, noun + 's')}"


def verdict(tallies: Tallies, *, partitions: int, topics: int, old: bool = False) -> Text:
    """The last line: how much of each severity.

    Args:
        old: whether brokers told what they knew last, since no controller answered.
    """
    looked = " (no partition was looked at)"
    if partitions:
        looked = f" ({_counted(partitions, 'partition')} of {_counted(topics, 'topic')})"
    counts = [(severity, tallies.count(severity)) for severity in Severity]
    shown = ", ".join(_of_severity(severity, count) for severity, count in counts if count)
    unchecked = sum(bool(tallies.unchecked(check.id)) for check in CHECKS if check.id in tallies.wanted)
    not_all = f"; {plural(unchecked, 'check')} could not be made, or not everywhere" if unchecked else ""
    worst = next((severity for severity, count in counts if count), None)
    style = _STYLES[worst] if worst is not None else Style.NOTICE if old or not partitions else Style.GOOD
    nothing = "nothing was found by what brokers knew last" if old else "nothing was found"
    return [*styled(shown or nothing, style), *plain(not_all + looked)]


def _of_severity(severity: Severity, count: int) -> str:
    return f"{count} critical" if severity is Severity.CRITICAL else plural(count, str(severity))


def _head(name: str, *, indent: str = _INDENT) -> str:
    return f"{indent}{name:<{_NAME_WIDTH}}"


def _label(name: str) -> str:
    return f"{_INDENT}{name:>6}  "


KIND = "kelr/doctor"


@dataclass(frozen=True, slots=True)
class Shell:
    """How commands are written: kelr's own, and those of Kafka's tools."""

    output: Output
    stock: str
    """The connection flags of Kafka's tools."""

    def line(self, command: Command) -> str:
        """A command as it is typed."""
        if isinstance(command, str):
            return command.replace("{stock}", self.stock)
        return self.output.next_command(command)

    def lines(self, commands: Iterable[Command]) -> list[str]:
        return [self.line(command) for command in commands]


def bare_doctor_view() -> View[Finding]:
    """The view as its schema describes it, without an output to write commands for."""
    return doctor_view(lambda _: ())


def doctor_view(lines: Callable[[Iterable[Command]], Sequence[str]]) -> View[Finding]:
    """One item for each finding at each place.

    Args:
        lines: commands as they are typed.
    """
    return View(
        KIND,
        (
            Column("severity", "SEVERITY", value=lambda row: str(row.severity), type="string", about=_SEVERITIES),
            Column("id", "ID", value=lambda row: row.id, type="string", about="The check's stable id."),
            Column("what", "WHAT", value=lambda row: row.what, prose=True, type="string", about="What was found."),
            Column("why", "WHY", value=lambda row: row.why, type="string", about="Why it matters in an incident."),
            Column(
                "topic",
                "TOPIC",
                value=lambda row: row.topic,
                type="string?",
                about="The topic; null: it is about no single topic.",
            ),
            Column(
                "partitions",
                "PARTITIONS",
                value=lambda row: list(row.partitions),
                type="integer[]",
                about="Numbers of all partitions of the topic that it is about.",
            ),
            Column(
                "brokers",
                "BROKERS",
                value=lambda row: list(row.brokers),
                type="integer[]",
                about="Brokers, or controllers, that it is about.",
            ),
            Column(
                "commands",
                "COMMANDS",
                value=lambda row: list(lines(row.commands)),
                type="string[]",
                about="Shell lines that put it right, in order; empty where none does.",
            ),
            Column(
                "caution",
                "CAUTION",
                value=lambda row: row.caution,
                type="string?",
                about="What to know before, or what to do where there is no command.",
            ),
        ),
        head=(
            *CLUSTER_HEAD,
            Fact("abilities", "object[]", "What the cluster is, and what kelr uses: {group, name, value, why}."),
            Fact("surroundings", "object[]", "Around kelr itself: {name, value}."),
        ),
        tail=(
            Fact("partitions", "integer", "Partitions that were looked at."),
            Fact("topics", "integer", "Topics that were looked at."),
            Fact(
                "checks",
                "object[]",
                "Every check: {id, result, severity, findings, topics, partitions, not_checked: [{why, topics, first}]}"
                f"; result is one of {', '.join(Result)}.",
            ),
            Fact(
                "rights",
                "object[]",
                "Commands of kelr: {command, has, lacks, not_told}; has is null where nobody tells.",
            ),
            *ERRORS_TAIL,
        ),
    )


_SEVERITIES = f"One of {', '.join(Severity)}; the worst first."


class DoctorReport:
    """Streams what is found to the output; people get it ordered by severity, when everything was looked at.

    Use as a context manager: `add` findings, then `finish`.
    """

    def __init__(
        self,
        shell: Shell,
        cluster: Cluster,
        *,
        source: str,
        abilities: Sequence[Ability],
        surroundings: Sequence[tuple[str, str]],
    ) -> None:
        self._shell, self._output = shell, shell.output
        self._cluster = cluster
        output = self._output
        self._listing: Listing[Finding] | None = None
        if output.format.for_people:
            for line in abilities_lines(Layout(output.width), cluster, abilities, source=source):
                output.line(line)
            for line in surroundings_lines(Layout(output.width), surroundings):
                output.line(line)
            output.stdout.flush()
        else:
            head: Mapping[str, Json] = {
                **cluster_head(cluster, source),
                "abilities": [
                    {"group": one.group, "name": one.name, "value": one.value, "why": one.why} for one in abilities
                ],
                "surroundings": [{"name": name, "value": value} for name, value in surroundings],
            }
            self._listing = output.listing(doctor_view(shell.lines), head)

    def __enter__(self) -> Self:
        if self._listing is not None:
            self._listing.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._listing is not None:
            self._listing.__exit__(kind, error, traceback)

    def add(self, findings: Sequence[Finding]) -> None:
        """Findings, as they are found."""
        if self._listing is not None:
            self._listing.add(findings)

    def finish(
        self,
        tallies: Tallies,
        *,
        partitions: int,
        topics: int,
        rights: Sequence[CommandRights] | None,
        errors: Sequence[TopicError],
        following: Sequence[str] | None,
    ) -> None:
        """End the report.

        Args:
            rights: what each command may do; None where no cluster was asked.
        """
        output = self._output
        command = None if following is None else output.next_command(following)
        if self._listing is not None:
            self._listing.finish(
                {
                    "partitions": partitions,
                    "topics": topics,
                    "checks": [_check_item(tallies, check.id) for check in CHECKS],
                    "rights": [rights_item(one) for one in rights or ()],
                    "errors": error_items(errors),
                    "next": command,
                }
            )
        else:
            layout, old = Layout(output.width), self._cluster.controller_silence is not None
            for line in rights_lines(layout, rights):
                output.line(line)
            for line in findings_lines(layout, tallies, self._shell.lines):
                output.line(line)
            output.line()
            for line in layout.lines(verdict(tallies, partitions=partitions, topics=topics, old=old)):
                output.line(line)
        if not output.format.is_document:
            note_errors(output, errors)
            if following is not None:
                output.next(following)


def _check_item(tallies: Tallies, check: str) -> Json:
    found = next((one for one in tallies.found if one.id == check), None)
    return {
        "id": check,
        "result": str(tallies.result(check)),
        "severity": str(found.severity if found else BY_ID[check].severity),
        "findings": found.findings if found else 0,
        "topics": found.topics if found else 0,
        "partitions": found.partitions if found else 0,
        "not_checked": [
            {"why": one.why, "topics": one.topics, "first": list(one.first)} for one in tallies.unchecked(check)
        ],
    }


def rights_item(rights: CommandRights) -> Json:
    """One command's rights in a document."""
    return {
        "command": rights.command,
        "has": rights.has,
        "lacks": [str(right.acl) for right in rights.lacks],
        "not_told": [str(right.acl) for right in rights.not_told],
    }
