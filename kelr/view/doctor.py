"""``kelr doctor``: what was found, the worst first, with what fixes it; what could not be checked; what the cluster
is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from types import TracebackType
from typing import Self

from kelr.engine.checkup.abilities import CLUSTER, Ability
from kelr.engine.checkup.catalogue import BY_ID, CHECKS, LEADERLESS, UNDER_MIN_ISR
from kelr.engine.checkup.rights import CommandRights, Right
from kelr.engine.checkup.tally import Tallies, Tally
from kelr.engine.words import agree, joined, plural
from kelr.model import Cluster, TopicError
from kelr.model.acls import shell_lines
from kelr.model.checkup import Command, Finding, Result, Severity
from kelr.view.columns import Fact, Json, View, attributes, column, datum
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, cluster_head, error_items, note_errors
from kelr.view.formats import OutputFormat
from kelr.view.layout import Layout
from kelr.view.output import Listing, Output
from kelr.view.screen import BAD, GOOD, LABEL, QUIET, WARN, Screen
from kelr.view.styled import Span, Style, Text, plain, styled

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
            column("severity", "SEVERITY", "string", _SEVERITIES, lambda row: str(row.severity)),
            column("id", "ID", "string", "The check's stable id."),
            column("what", "WHAT", "string", "What was found.", prose=True),
            column("why", "WHY", "string", "Why it matters in an incident."),
            column("topic", "TOPIC", "string?", "The topic; null: it is about no single topic."),
            column("partitions", "PARTITIONS", "integer[]", "Numbers of all partitions of the topic that it is about."),
            column("brokers", "BROKERS", "integer[]", "Brokers, or controllers, that it is about."),
            column(
                "commands",
                "COMMANDS",
                "string[]",
                "Shell lines that put it right, in order; empty where none does.",
                lambda row: list(lines(row.commands)),
            ),
            column("caution", "CAUTION", "string?", "What to know before, or what to do where there is no command."),
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
                "Commands of kelr: {command, has, lacks, not_told}; has is null where it is not known.",
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
        self._cluster, self._source = cluster, source
        self._abilities, self._surroundings = abilities, surroundings
        self._listing: Listing[Finding] | None = None
        if not self._output.format.for_people:
            head: Mapping[str, Json] = {
                **cluster_head(cluster, source),
                "abilities": [attributes(one, "group", "name", "value", "why") for one in abilities],
                "surroundings": [{"name": name, "value": value} for name, value in surroundings],
            }
            self._listing = self._output.listing(doctor_view(shell.lines), head)

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
        following: tuple[str, ...] | None,
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
            page = _Page(self._shell, tallies, wide=output.format is OutputFormat.WIDE)
            old = self._cluster.controller_silence is not None
            page.verdict(partitions=partitions, old=old)
            page.findings(following)
            page.incomplete()
            seen = f"{_counted(partitions, 'partition')} of {_counted(topics, 'topic')}"
            page.cluster(self._cluster, f"{seen} looked at", self._source, self._abilities)
            page.rights(rights)
            page.surroundings(self._surroundings)
        if not output.format.is_document:
            note_errors(output, errors)
            if following is not None and not output.format.for_people:
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


_STYLES = {Severity.CRITICAL: BAD, Severity.WARNING: WARN, Severity.NOTE: LABEL}
_MARGIN = 10
"""Columns before what is said of a finding."""
_FACTS = ("brokers", "software", "ELR", "rules")
"""What of the cluster stands in one line."""


class _Page:
    """The report as people read it."""

    def __init__(self, shell: Shell, tallies: Tallies, *, wide: bool) -> None:
        self._shell, self._tallies, self._wide = shell, tallies, wide
        self._screen = Screen(shell.output)

    def verdict(self, *, partitions: int, old: bool) -> None:
        """The first line: how much of each severity, and how many checks stand behind it.

        Args:
            old: whether brokers told what they knew last, since no controller answered.
        """
        tallies, wanted = self._tallies, [check.id for check in CHECKS if check.id in self._tallies.wanted]
        complete = sum(not tallies.unchecked(check) for check in wanted)
        counts = [(severity, tallies.count(severity)) for severity in Severity]
        found = ", ".join(_of_severity(severity, count) for severity, count in counts if count)
        worst = next((severity for severity, count in counts if count), None)
        whole = complete == len(wanted) and partitions and not old
        style = _STYLES[worst] if worst is not None else GOOD if whole else WARN
        nothing = "No problem found in what brokers knew last" if old else "No problem found"
        looked = "" if partitions else "; no partition was looked at"
        checks = f"{complete} of {_counted(len(wanted), 'check')}"
        if found or complete == len(wanted):
            self._screen.say((found or nothing, style), f"; {checks} complete{looked}.")
        else:
            self._screen.say((f"{nothing} by the {checks} that are complete", style), f"{looked}.")

    def findings(self, following: tuple[str, ...] | None) -> None:
        """Each with what fixes it and its id.

        Args:
            following: the command that goes through partitions in trouble, however many topics they are of.
        """
        texts = {tally.id: _sentence(_summary(tally)) for tally in self._tallies.found}
        room = {check: self._screen.width - _MARGIN - len(f"  [{check}]") for check in texts}
        widest = max((len(text) for check, text in texts.items() if len(text) <= room[check]), default=0)
        for tally in self._tallies.found:
            text = texts[tally.id].ljust(min(widest, room[tally.id]))
            style = _STYLES[tally.severity]
            self._screen.say(text, (f"  [{tally.id}]", QUIET), label=_label(tally.severity), style=style)
            self._places(tally)
            # Whatever the number of topics in trouble, one command goes through them.
            commands = [following] if following is not None and _in_trouble(tally) else None
            self._cure(tally, commands)

    def _places(self, tally: Tally) -> None:
        if self._wide:
            self._more(f"Why: {_sentence(tally.why)}")
        if tally.topics > 1 and (self._wide or not _in_trouble(tally)):
            for words in tally.what:
                self._more(words)
            if tally.findings > len(tally.what):
                self._more(f"and {tally.findings - len(tally.what):,} more: -o json lists all")

    def _cure(self, tally: Tally, instead: Sequence[Command] | None) -> None:
        """What to know, and the commands; `instead` of each topic's own."""
        commands = [one for many in tally.commands for one in many] if instead is None else instead
        for caution in tally.cautions:
            self._more(f"{'Mind' if commands else 'Fix'}: {_sentence(caution)}")
        for label, line in zip(chain(("Fix: ",), repeat("     ")), self._shell.lines(commands), strict=False):
            self._screen.command(line, label=f"{' ' * _MARGIN}{label}")
        if tally.more_commands and instead is None:
            self._more("     more commands like these: -o json lists all")

    def incomplete(self) -> None:
        """Which checks could not be made, or not everywhere, by the reason."""
        reasons = _reasons(self._tallies, [check.id for check in CHECKS])
        for words, checks in reasons.items():
            text = f"{_counted(len(checks), 'check')} incomplete: {words}.  "
            self._screen.say(text, (f"[{', '.join(checks)}]", QUIET), label=_label("unknown"), style=WARN)
        clear = [check for check, result in self._tallies.results.items() if result is Result.CLEAR]
        if clear and self._wide:
            self._screen.say(", ".join(clear), label=_label("passed"), style=GOOD)

    def cluster(self, cluster: Cluster, seen: str, source: str, abilities: Sequence[Ability]) -> None:
        """What the cluster is, and what kelr uses for each thing."""
        self._screen.blank()
        name = f"Cluster {cluster.cluster_id or 'of unknown id'}"
        name = name if source == "live" else f"{name}, from {source}"
        if not self._wide:
            shown = {one.name: f"{one.name} {one.value}" for one in abilities}
            facts = [seen, *(shown[fact] for fact in _FACTS if fact in shown)]
            self._screen.say((f"{name}: ", LABEL), f"{'; '.join(facts)}. ", ("More: -o wide", QUIET))
            return
        self._screen.say(f"; {seen}", label=name)
        groups = dict.fromkeys(one.group == CLUSTER for one in abilities)
        for of_cluster in groups:
            if not of_cluster:
                self._screen.say(("kelr uses", LABEL))
            for one in abilities:
                if (one.group == CLUSTER) is of_cluster:
                    self._fact(one.name, f"{one.value} ({one.why})" if one.why else one.value)

    def rights(self, rights: Sequence[CommandRights] | None) -> None:
        """What the principal may not do, or is not known to; what it may, where more is wanted."""
        lacking = _grouped(rights or (), lambda one: one.lacks if one.has is False else ())
        untold = _grouped(rights or (), lambda one: one.not_told if one.has is None else ())
        able = [one.command for one in rights or () if one.has]
        if rights is None or not (lacking or untold or self._wide):
            return
        self._screen.say(("This principal", LABEL))
        if self._wide and able:
            self._fact("may", ", ".join(able))
        for words, commands in lacking.items():
            self._fact("may not", f"{', '.join(commands)}: lacks {words}", WARN)
        for words, commands in untold.items():
            self._fact("UNKNOWN", f"{', '.join(commands)}: {words}", WARN)

    def surroundings(self, surroundings: Sequence[tuple[str, str]]) -> None:
        """What is around kelr itself."""
        if self._wide:
            self._screen.say(("Here", LABEL))
            for name, value in surroundings:
                self._fact(name, value)

    def _fact(self, name: str, value: str, style: Style = Style.PLAIN) -> None:
        self._screen.say(value, label=f"  {name:<18}", style=style)

    def _more(self, text: str) -> None:
        self._screen.say(text, label=" " * _MARGIN)


def _in_trouble(tally: Tally) -> bool:
    """Whether a finding is about partitions of several topics that one command goes through."""
    return tally.topics > 1 and tally.id in {LEADERLESS.id, UNDER_MIN_ISR.id}


def _grouped(rights: Sequence[CommandRights], of: Callable[[CommandRights], tuple[Right, ...]]) -> dict[str, list[str]]:
    """The commands to which the same applies, by its words."""
    found: dict[str, list[str]] = {}
    for one in rights:
        told = [right for right in of(one) if right.acl.only is None]
        if told:
            found.setdefault(joined(dict.fromkeys(map(_right_words, told))), []).append(one.command)
    return found


def _right_words(right: Right) -> str:
    """``READ on topic *`` or, where it is missing on some topics, which."""
    if not right.refused_on:
        return str(right.acl)
    shown = ", ".join(right.refused_on[:3])
    more = f" and {len(right.refused_on) - 3} more" if len(right.refused_on) > 3 else ""
    return f"{right.acl.operation} on {shown}{more}"


def _reasons(tallies: Tallies, checks: Sequence[str]) -> dict[str, list[str]]:
    """Why, and which checks."""
    found: dict[str, list[str]] = {}
    for check in checks:
        for one in tallies.unchecked(check):
            more = ", ..." if one.topics > len(one.first) else ""
            topics = f" ({plural(one.topics, 'topic')}: {', '.join(one.first)}{more})" if one.topics else ""
            found.setdefault(one.why.rstrip(".") + topics, []).append(check)
    return found


def _summary(tally: Tally) -> str:
    if tally.topics > 1:
        partitions = f"{_counted(tally.partitions, 'partition')} of " if tally.partitions else ""
        return f"{BY_ID[tally.id].title}: {partitions}{_counted(tally.topics, 'topic')}"
    left = tally.findings - len(tally.what)
    return "; ".join(tally.what) + (f"; {left} more: -o json lists all" if left else "")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {agree(count, noun, noun + 's')}"


def _of_severity(severity: Severity, count: int) -> str:
    return f"{count} critical" if severity is Severity.CRITICAL else plural(count, str(severity))


def _label(name: str) -> str:
    return f"{name.upper():<{_MARGIN}}"


def _sentence(text: str) -> str:
    """With a capital, unless it begins with a name, and a full stop."""
    first = text.split(maxsplit=1)[0] if text else ""
    text = text[:1].upper() + text[1:] if first.isalpha() else text
    return text if text.endswith((".", "...")) else f"{text}."


# The ACLs that kelr needs (--acls).


_ACLS_KIND = "kelr/doctor-acls"


@dataclass(frozen=True, slots=True)
class AclsReport:
    """Commands and what they need."""

    rights: Sequence[CommandRights]
    principal: str
    """Whom the lines are for, such as ``User:engineer``."""
    servers: str | None
    """The brokers, for the lines; None where none were named."""
    asked: bool
    """Whether a cluster told what the principal may do."""


@dataclass(frozen=True, slots=True)
class AclRow:
    """One ACL of one command."""

    command: str
    right: Right
    line: str


def acls_view() -> View[AclRow]:
    """One item for each ACL that a command needs."""
    return View(
        _ACLS_KIND,
        (
            datum("command", "string", "The command."),
            datum("resource", "string", "What it is about.", lambda row: str(row.right.acl.resource)),
            datum("operation", "string", "What may be done.", lambda row: str(row.right.acl.operation)),
            datum(
                "name", "string?", "The one resource; null: those that are asked about.", lambda row: row.right.acl.name
            ),
            datum("has", "boolean?", "Whether the principal has it; null: not known.", lambda row: row.right.has),
            datum("refused_on", "string[]", "Topics on which it is missing.", lambda row: list(row.right.refused_on)),
            datum("needed_for", "string", "What it is needed for.", lambda row: row.right.acl.needed_for),
            datum("without", "string", "What happens without it.", lambda row: row.right.acl.without),
            datum(
                "exit_code",
                "integer?",
                "The exit code without it; null: it goes on.",
                lambda row: row.right.acl.exit_code,
            ),
            datum("only", "string?", "The case in which it is needed; null: always.", lambda row: row.right.acl.only),
            datum("line", "string", "What grants it."),
        ),
        head=(
            Fact("principal", "string", "Whom the lines are for."),
            Fact("asked", "boolean", "Whether a cluster told what this principal may do."),
        ),
        tail=(Fact("lines", "string[]", "What grants everything that the commands need."),),
    )


def show_acls_report(output: Output, report: AclsReport) -> None:
    """Print it in the output's format."""
    if output.format.for_people:
        for line in _people(Layout(output.width), report):
            output.line(line)
        return
    with output.listing(acls_view(), {"principal": report.principal, "asked": report.asked}) as listing:
        listing.add(
            AclRow(one.command, right, right.acl.shell_line(report.principal, bootstrap_server=report.servers))
            for one in report.rights
            for right in one.rights
        )
        listing.finish({"lines": list(_lines(report, [right for one in report.rights for right in one.rights]))})


def _people(layout: Layout, report: AclsReport) -> Iterator[Text]:
    for one in report.rights:
        yield [*styled(f"kelr {one.command}", Style.HEADING), *_standing(one, report)]
        for right in one.rights:
            head = f"  {_mark(right, report)}{right.acl!s}"
            yield [Span(head, _RIGHT_STYLES[right.has] if report.asked else Style.PLAIN), *_refused(right)]
            needed = f"{right.acl.only}: {right.acl.needed_for}" if right.acl.only else right.acl.needed_for
            yield from layout.paragraph("          for: ", needed, Style.PLAIN)
            yield from layout.paragraph("      without: ", right.acl.without, Style.PLAIN)
        # What the principal has already needs no line; where nobody tells, it may.
        wanted = [right for right in one.rights if not (report.asked and right.has)]
        for line in _lines(report, wanted):
            yield plain(f"  {line}")
        yield plain("")


_RIGHT_STYLES = {True: Style.GOOD, False: Style.BAD, None: Style.NOTICE}
_MARKS = {True: "has    ", False: "LACKS  ", None: "?      "}


def _mark(right: Right, report: AclsReport) -> str:
    return _MARKS[right.has] if report.asked else ""


def _standing(one: CommandRights, report: AclsReport) -> Text:
    if not report.asked:
        return ()
    if one.has:
        return plain(": everything is there")
    return plain(": something is missing" if one.has is False else ": not everything is told by brokers")


def _refused(right: Right) -> Text:
    if not right.refused_on:
        return ()
    shown = ", ".join(right.refused_on[:3])
    more = f" and {len(right.refused_on) - 3} more" if len(right.refused_on) > 3 else ""
    return plain(f" ({shown}{more})")


def _lines(report: AclsReport, rights: Sequence[Right]) -> tuple[str, ...]:
    return shell_lines([right.acl for right in rights], report.principal, bootstrap_server=report.servers)
