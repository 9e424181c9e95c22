"""``kelr doctor`` for people: what the cluster is, what was found with the worst first, and what was not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kelr.engine.checkup.abilities import CLUSTER, Ability
from kelr.engine.checkup.catalogue import BY_ID, CHECKS
from kelr.engine.checkup.rights import CommandRights, Right
from kelr.engine.checkup.tally import Tallies, Tally
from kelr.engine.words import agree, joined, plural
from kelr.model import Cluster
from kelr.model.checkup import Command, Result, Severity
from kelr.view.layout import Layout
from kelr.view.styled import Span, Style, Text, plain, styled

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
