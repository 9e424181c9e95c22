"""What goes wrong on the way, on purpose: rules that a test or an operator sets; the server asks for each request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to a request or its answer."""

    DELAY = "delay"
    """The answer comes `amount` milliseconds later."""
    DROP = "drop"
    """The request is carried out, and its answer never comes."""
    LOSE = "lose"
    """The request is not carried out, and no answer comes."""
    CLOSE = "close"
    """The connection ends in place of an answer."""
    GARBLE = "garble"
    """The answer's bytes after its header are noise."""
    TRUNCATE = "truncate"
    """The answer ends after `amount` bytes, and the connection with it."""
    ERROR = "error"
    """The request is not carried out: every error code of its answer is `amount`."""
    SLOW = "slow"
    """The answer comes in pieces, `amount` bytes a second."""


@dataclass(slots=True)
class Fault:
    """A rule."""

    kind: FaultKind
    amount: int = 0
    node: int | None = None
    """At this node; None: at every one."""
    api: str | None = None
    """For this request, such as ``Metadata``; None: for every one."""
    skip: int = 0
    """How many requests that it fits pass first."""
    times: int | None = None
    """How many requests it strikes; None: all from then on."""


@dataclass(slots=True)
class Faults:
    """The rules in force; the first that fits a request strikes it."""

    rules: list[Fault] = field(default_factory=list)

    def strike(self, node: int, api: str) -> Fault | None:
        """The fault that this request meets, counted; None where it goes well."""
        for rule in self.rules:
            if rule.node not in {None, node} or rule.api not in {None, api} or rule.times == 0:
                continue
            if rule.skip:
                rule.skip -= 1
                continue
            if rule.times is not None:
                rule.times -= 1
            return rule
        return None
