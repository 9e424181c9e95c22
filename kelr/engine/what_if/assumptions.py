"""What somebody imagines to happen, read from a few words.

``3 returns``, ``3 returns unclean``, ``rack az1 fails``, ``1 fails, then 2 and 3 return``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum


class AssumptionError(ValueError):
    """Words that are no assumption, or one about a broker or a rack that there is not; the message says what is."""


class Happening(StrEnum):
    """The kinds of thing that can be imagined; the value is how kelr says it, after whom or what it happens to."""

    FAILS = "fails"
    """The broker is gone without a word: its session expires."""
    STOPS = "stops"
    """A controlled shutdown."""
    RETURNS = "returns"
    """It starts; whether after a clean shutdown is for what is known of it to tell (`kelr.engine.what_if.imagine`)."""
    RETURNS_CLEAN = "returns clean"
    """It starts after a clean shutdown: its registration carries its last broker epoch."""
    RETURNS_UNCLEAN = "returns unclean"
    """It starts after an unclean shutdown, so its log may have lost its tail."""
    UNREGISTERED = "is unregistered"
    """An operator takes its registration away."""
    LOSES_DIRECTORY = "loses its directory"
    """The log directory with the partitions at hand fails on a live broker."""
    UNCLEAN_ELECTION = "an unclean election is held"
    """ElectLeaders UNCLEAN for the partitions at hand."""
    PREFERRED_ELECTION = "a preferred election is held"
    """ElectLeaders PREFERRED for the partitions at hand."""
    DESIGNATION = "is designated"
    """The broker is designated where it is a replica and nobody leads: reorder, elect uncleanly, restore the order."""
    MIN_ISR = "min.insync.replicas is"
    """The config is written for the topics at hand."""
    UNCLEAN_CONFIG = "unclean.leader.election.enable is"
    """The config is written for the topics at hand."""

    @property
    def of_brokers(self) -> bool:
        """Whether it happens to brokers; else to the partitions at hand."""
        return self in _OF_BROKERS

    @property
    def writes_config(self) -> bool:
        return self in {Happening.MIN_ISR, Happening.UNCLEAN_CONFIG}


_OF_BROKERS = frozenset(
    {
        Happening.FAILS,
        Happening.STOPS,
        Happening.RETURNS,
        Happening.RETURNS_CLEAN,
        Happening.RETURNS_UNCLEAN,
        Happening.UNREGISTERED,
        Happening.LOSES_DIRECTORY,
    }
)
RETURNS = frozenset({Happening.RETURNS, Happening.RETURNS_CLEAN, Happening.RETURNS_UNCLEAN})


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that is imagined to happen."""

    happening: Happening
    broker: int | None = None
    rack: str | None = None
    value: int | None = None
    """What a config is set to; for a boolean 0 or 1."""

    def __str__(self) -> str:
        """The assumption as a sentence, which `parse_assumptions` reads."""
        if self.happening is Happening.UNCLEAN_CONFIG:
            return f"{self.happening} {'true' if self.value else 'false'}"
        if self.happening is Happening.MIN_ISR:
            return f"{self.happening} {self.value}"
        if self.broker is None and self.rack is None:
            return self.happening.value
        return f"{self.broker if self.rack is None else f'rack {_quoted(self.rack)}'} {self.happening}"


FORMS = (
    "N fails, N stops, N returns (returns clean, returns unclean), N is unregistered, N loses its directory, rack R"
    " fails (stops, returns, ...), designate N, unclean election, preferred election, min.insync.replicas=N,"
    " unclean.leader.election.enable=true; several with a comma or 'then' between them"
)
"""What can be written, for a person who wrote something else."""

_SUBJECT = r"""(?:brokers?\s+)?(?P<broker>[0-9]{1,10})|racks?\s+(?P<rack>"[^"]+"|'[^']+'|\S(?:.*?\S)?)"""
_VERBS = (
    (Happening.FAILS, r"fails?|dies?|crash(?:es)?"),
    (Happening.STOPS, r"stops?|shuts?\s+down"),
    (Happening.RETURNS, r"returns?|restarts?|comes?\s+back"),
    (Happening.RETURNS_CLEAN, r"(?:returns?|restarts?|comes?\s+back)\s+clean(?:ly)?"),
    (Happening.RETURNS_UNCLEAN, r"(?:returns?|restarts?|comes?\s+back)\s+unclean(?:ly)?"),
    (Happening.UNREGISTERED, r"(?:(?:is|are)\s+)?unregistered"),
    (Happening.LOSES_DIRECTORY, r"loses?\s+(?:(?:its|their|a|the)\s+)?(?:log\s+)?(?:director(?:y|ies)|disks?)"),
)
_OTHERS = (
    (Happening.UNCLEAN_ELECTION, r"(?:elect\s+unclean(?:ly)?|(?:an?\s+)?unclean\s+election(?:\s+is\s+held)?)"),
    (Happening.PREFERRED_ELECTION, r"(?:elect\s+preferred|(?:a\s+)?preferred\s+election(?:\s+is\s+held)?)"),
    (Happening.DESIGNATION, r"designate\s+(?:broker\s+)?(?P<broker>[0-9]{1,10})"),
    (Happening.DESIGNATION, r"(?:broker\s+)?(?P<broker>[0-9]{1,10})\s+(?:is|are)\s+designated"),
    (Happening.MIN_ISR, r"min\.insync\.replicas(?:\s*=\s*|\s+is\s+)(?P<value>[0-9]{1,9})"),
    (Happening.UNCLEAN_CONFIG, r"unclean\.leader\.election\.enable(?:\s*=\s*|\s+is\s+)(?P<value>true|false)"),
)
_QUOTED_OR_BETWEEN = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']*')|(?:\s*[,;]\s*|\s+(?:then|and)\s+)(?:(?:then|and)\s+)*""", re.IGNORECASE
)
_MOST_BROKER = 2**31 - 1


def parse_assumptions(text: str) -> tuple[Assumption, ...]:
    """Read one or several assumptions: separated by a comma, a semicolon, ``then`` or ``and``; upper or lower case.

    A broker or rack alone does what is said next: ``1 and 2 fail`` is ``1 fails, 2 fails``.

    Raises:
        AssumptionError: naming the words that could not be read, and what can be written.
    """
    pieces = [piece.strip() for piece in _pieces(text) if piece.strip()]
    if not pieces:
        raise AssumptionError(f"{text!r} says nothing; write {FORMS}")
    found: list[Assumption] = []
    waiting: list[str] = []
    for piece in pieces:
        if re.fullmatch(_SUBJECT, piece, re.IGNORECASE) and _one(piece) is None:
            waiting.append(piece)
            continue
        assumption = _one(piece)
        if assumption is None:
            raise AssumptionError(f"{piece!r} is nothing that can be imagined; write {FORMS}")
        found += [_same_for(subject, assumption) for subject in waiting]
        waiting = []
        found.append(assumption)
    if waiting:
        raise AssumptionError(f"{waiting[0]!r}: what happens to it? Write {FORMS}")
    return tuple(found)


def _pieces(text: str) -> Iterator[str]:
    """What stands between the separators; those inside of quotes separate nothing."""
    # One space each, so that no pattern has to try a long run of them from every one of its positions.
    text = re.sub(r"""("[^"]*"|'[^']*')|\s+""", lambda match: match[1] or " ", text)
    start = 0
    for match in _QUOTED_OR_BETWEEN.finditer(text):
        if match["quoted"] is None:
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _quoted(rack: str) -> str:
    if re.fullmatch(r"[\w.-]+", rack):
        return rack
    return f"'{rack}'" if '"' in rack else f'"{rack}"'


def _one(piece: str) -> Assumption | None:
    for happening, pattern in _OTHERS:
        match = re.fullmatch(pattern, piece, re.IGNORECASE)
        if match is not None:
            return _checked(_at_large(match, happening), piece)
    for happening, verb in _VERBS:
        match = re.fullmatch(rf"(?:{_SUBJECT})\s+(?:{verb})", piece, re.IGNORECASE)
        if match is not None:
            return _checked(_about(match, happening), piece)
    return None


def _about(match: re.Match[str], happening: Happening) -> Assumption:
    rack = match["rack"]
    if rack is not None:
        return Assumption(happening, rack=rack.strip("\"'"))
    return Assumption(happening, broker=int(match["broker"]))


def _at_large(match: re.Match[str], happening: Happening) -> Assumption:
    words = match.groupdict()
    value = words.get("value")
    number = None if value is None else int(value) if value.isdecimal() else int(value.lower() == "true")
    return Assumption(happening, broker=int(words["broker"]) if words.get("broker") else None, value=number)


def _checked(assumption: Assumption, piece: str) -> Assumption:
    if assumption.broker is not None and assumption.broker > _MOST_BROKER:
        raise AssumptionError(f"{piece!r}: a broker id is at most {_MOST_BROKER}")
    if assumption.happening is Happening.MIN_ISR and not assumption.value:
        raise AssumptionError(f"{piece!r}: min.insync.replicas is at least 1")
    if assumption.rack is not None and assumption.happening in {Happening.UNREGISTERED, Happening.LOSES_DIRECTORY}:
        raise AssumptionError(f"{piece!r}: name the brokers; a rack only fails, stops or returns")
    return assumption


def _same_for(subject: str, assumption: Assumption) -> Assumption:
    if assumption.broker is None and assumption.rack is None:
        raise AssumptionError(f"{subject!r}: what happens to it? Write {FORMS}")
    match = re.fullmatch(_SUBJECT, subject, re.IGNORECASE)
    assert match is not None  # it was read before
    about = _about(match, assumption.happening)
    return _checked(replace(about, value=assumption.value), subject)


def rack_named(name: str, racks: Iterable[str]) -> str | None:
    """The rack of this name, or the only one that differs from it by upper and lower case alone; None for neither."""
    known = set(racks)
    if name in known:
        return name
    alike = [rack for rack in known if rack.casefold() == name.casefold()]
    return alike[0] if len(alike) == 1 else None
