"""What ``kelr doctor`` shows: what a cluster can do, what was found, and what could not be looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kelr.engine.checkup.abilities import Ability
from kelr.engine.checkup.catalogue import BY_ID, CHECKS
from kelr.engine.checkup.rights import CommandRights
from kelr.engine.checkup.tally import Tallies
from kelr.model import Cluster, TopicError
from kelr.model.checkup import Command, Finding, Result, Severity
from kelr.view.columns import Column, Fact, Json, View
from kelr.view.describe import CLUSTER_HEAD, ERRORS_TAIL, cluster_head, error_items, note_errors
from kelr.view.doctor_people import abilities_lines, findings_lines, rights_lines, surroundings_lines, verdict
from kelr.view.layout import Layout
from kelr.view.output import Listing, Output

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
