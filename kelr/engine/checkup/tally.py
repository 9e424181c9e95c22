"""What all findings come to, without keeping them: one line for each check, however many partitions it found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kelr.engine.checkup.catalogue import BY_ID, CHECKS
from kelr.model.checkup import Command, Finding, NotChecked, Result, Severity

FIRST = 5
"""Places and commands that are kept for people; documents have all."""


@dataclass
class Tally:
    """The findings of one check."""

    id: str
    severity: Severity = Severity.NOTE
    findings: int = 0
    topics: int = 0
    partitions: int = 0
    brokers: set[int] = field(default_factory=set)
    what: list[str] = field(default_factory=list)
    why: str = ""
    places: list[str] = field(default_factory=list)
    commands: list[tuple[Command, ...]] = field(default_factory=list)
    more_commands: bool = False
    cautions: list[str] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        if not self.findings or _worse(finding.severity, self.severity):
            self.severity = finding.severity
        self.findings += 1
        self.why = self.why or finding.why
        self.brokers.update(finding.brokers)
        if finding.topic is not None:
            self.topics += 1
            self.partitions += len(finding.partitions)
            if len(self.places) < FIRST:
                self.places.append(_place(finding))
        if len(self.what) < FIRST:
            self.what.append(finding.what)
        if finding.commands and finding.commands not in self.commands:
            if len(self.commands) < FIRST:
                self.commands.append(finding.commands)
            else:
                self.more_commands = True
        if finding.caution is not None and finding.caution not in self.cautions and len(self.cautions) < FIRST:
            self.cautions.append(finding.caution)


@dataclass
class Unchecked:
    """Why a check could not be made, for as many topics as that was so."""

    why: str
    topics: int = 0
    everything: bool = False
    first: list[str] = field(default_factory=list)


class Tallies:
    """Adds findings up.

    Args:
        wanted: ids of the checks that are made; findings of others are dropped.
    """

    def __init__(self, wanted: frozenset[str]) -> None:
        self.wanted = wanted
        self._found: dict[str, Tally] = {}
        self._unchecked: dict[str, dict[str, Unchecked]] = {}

    def take(self, told: Iterable[Finding | NotChecked]) -> list[Finding]:
        """Add these up; the findings among them that are wanted."""
        kept = []
        for one in told:
            if one.id not in self.wanted:
                continue
            if isinstance(one, Finding):
                self._found.setdefault(one.id, Tally(one.id)).add(one)
                kept.append(one)
            else:
                self._not_checked(one)
        return kept

    def _not_checked(self, one: NotChecked) -> None:
        known = self._unchecked.setdefault(one.id, {}).setdefault(one.why, Unchecked(one.why))
        known.topics += len(one.topics)
        known.everything = known.everything or not one.topics
        known.first.extend(one.topics[: max(0, FIRST - len(known.first))])

    @property
    def found(self) -> tuple[Tally, ...]:
        """What was found, the worst first."""
        order = {check.id: place for place, check in enumerate(CHECKS)}
        severities = list(Severity)
        return tuple(sorted(self._found.values(), key=lambda one: (severities.index(one.severity), order[one.id])))

    def unchecked(self, check: str) -> tuple[Unchecked, ...]:
        """Why a check could not be made, or not everywhere."""
        return tuple(self._unchecked.get(check, {}).values())

    def result(self, check: str) -> Result:
        """What came of a check."""
        if check not in self.wanted:
            return Result.SKIPPED
        if check in self._found:
            return Result.FOUND
        reasons = self.unchecked(check)
        if not reasons:
            return Result.CLEAR
        return Result.NOT_CHECKED if any(one.everything for one in reasons) else Result.PARTLY

    @property
    def results(self) -> dict[str, Result]:
        """The result of every check."""
        return {check: self.result(check) for check in BY_ID}

    def count(self, severity: Severity) -> int:
        """How many checks found something of this severity."""
        return sum(one.severity is severity for one in self._found.values())

    @property
    def worth_an_exit(self) -> bool:
        """Whether something of severity warning or worse was found, or a critical check could not be made everywhere:
        whoever asks whether all is well has no answer then."""
        unmade = any(check.severity is Severity.CRITICAL and self._unchecked.get(check.id) for check in CHECKS)
        return unmade or self.count(Severity.CRITICAL) + self.count(Severity.WARNING) > 0


def _worse(one: Severity, other: Severity) -> bool:
    order = list(Severity)
    return order.index(one) < order.index(other)


def _place(finding: Finding) -> str:
    numbers = finding.partitions
    if not numbers:
        return str(finding.topic)
    return f"{finding.topic}:{ranges(numbers)}"


_MOST_RANGES = 6


def ranges(numbers: Iterable[int]) -> str:
    """``0-3,7``, as kelr takes them behind a topic's name; ends in ``...`` where there are very many pieces."""
    found = pieces(numbers)
    shown = ",".join(found[:_MOST_RANGES])
    return f"{shown},..." if len(found) > _MOST_RANGES else shown


def pieces(numbers: Iterable[int]) -> list[str]:
    """``["0-3", "7"]``: the numbers in runs."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ["-".join(map(str, piece)) for piece in found]
