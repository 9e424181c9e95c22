"""What ``kelr doctor --acls`` shows: each command's smallest set of ACLs, and what grants it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.engine.checkup.rights import CommandRights, Right
from kelr.model.acls import shell_lines
from kelr.view.columns import Fact, View, datum
from kelr.view.layout import Layout
from kelr.view.output import Output
from kelr.view.styled import Span, Style, Text, plain, styled

KIND = "kelr/doctor-acls"


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
        KIND,
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
            yield [Span(head, _STYLES[right.has] if report.asked else Style.PLAIN), *_refused(right)]
            needed = f"{right.acl.only}: {right.acl.needed_for}" if right.acl.only else right.acl.needed_for
            yield from layout.paragraph("          for: ", needed, Style.PLAIN)
            yield from layout.paragraph("      without: ", right.acl.without, Style.PLAIN)
        # What the principal has already needs no line; where nobody tells, it may.
        wanted = [right for right in one.rights if not (report.asked and right.has)]
        for line in _lines(report, wanted):
            yield plain(f"  {line}")
        yield plain("")


_STYLES = {True: Style.GOOD, False: Style.BAD, None: Style.NOTICE}
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
