"""What goes wrong on the way, on purpose: rules that a test or an operator sets; the server asks for each request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random


class FaultKind(StrEnum):
    """What happens to a request or its answer.

    After DROP and LOSE the connection stays open and mute: a broker answers the requests of a connection in their
    order, so that nothing can come after an answer that never comes. Time goes by the cluster's own clock.
    """

    DELAY = "delay"
    """The answer comes `amount` milliseconds later."""
    DROP = "drop"
    """The request is carried out, and its answer never comes."""
    LOSE = "lose"
    """The request is not carried out, and no answer comes."""
    CLOSE = "close"
    """The request is not carried out, and the connection ends in place of an answer."""
    GARBLE = "garble"
    """The answer's bytes after its header are noise; `amount` chooses which."""
    TRUNCATE = "truncate"
    """The request is carried out; the answer ends after `amount` bytes, and the connection with it."""
    ERROR = "error"
    """The request is not carried out: every error code of its answer is `amount`."""
    SLOW = "slow"
    """The answer comes in pieces, `amount` bytes a second."""


CARRIED_OUT = frozenset({FaultKind.DELAY, FaultKind.DROP, FaultKind.GARBLE, FaultKind.TRUNCATE, FaultKind.SLOW})
"""The kinds that leave the request itself alone."""
LEAST_AMOUNT = {FaultKind.SLOW: 1, FaultKind.ERROR: -1}
"""Where it is not 0."""
MOST_AMOUNT = {FaultKind.ERROR: 32_767}
"""Where it is not 2^31 - 1."""


@dataclass(slots=True)
class Fault:
    """A rule.

    Raises:
        ValueError: a number that makes no sense.
    """

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

    def __post_init__(self) -> None:
        least, most = LEAST_AMOUNT.get(self.kind, 0), MOST_AMOUNT.get(self.kind, 2**31 - 1)
        if not least <= self.amount <= most or (self.kind is FaultKind.ERROR and self.amount == 0):
            but = ", 0 left out" if self.kind is FaultKind.ERROR else ""
            raise ValueError(f"the amount of {self.kind} is {self.amount}, outside {least} to {most}{but}")
        if self.skip < 0 or (self.times is not None and self.times < 1):
            raise ValueError(f"a fault skips {self.skip} requests and strikes {self.times}")


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


def noise(seed: int, size: int) -> bytes:
    """As many bytes of noise, the same for the same seed."""
    return Random(seed).randbytes(size)
