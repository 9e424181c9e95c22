"""What is said of restarts: the steps, in their order, and what forbids each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kelr.engine.outages.standing import Standing
from kelr.model import TopicPartition


class Keep(StrEnum):
    """What every partition has to keep while one broker is down."""

    MIN_ISR = "min-isr"
    """A leader, and as many in sync as min ISR asks for: acks=all goes on."""
    LEADER = "leader"
    """A leader."""

    @property
    def forbids(self) -> Standing:
        """What may not hold of any partition."""
        least = Standing.LEADERLESS | Standing.MAY_LOSE | Standing.DOUBTFUL
        if self is Keep.LEADER:
            return least
        return least | Standing.UNDER_MIN_ISR | Standing.MIN_ISR_UNKNOWN


class Action(StrEnum):
    """What a step does to its broker."""

    START = "start"
    """It is down."""
    RESTART = "restart"


@dataclass(frozen=True, slots=True)
class Blocked:
    """Partitions that forbid a step, all for the same reason."""

    standing: Standing
    """What would hold of them while the broker is down, of that which may not."""
    already: bool
    """Whether that holds before the step, too."""
    single: bool
    """Whether they have one replica alone."""
    count: int
    examples: tuple[TopicPartition, ...]
    """The first of them."""
    waits_for: tuple[int, ...]
    """Replicas that are not in sync, whose return into the ISR would help."""
    failed: tuple[int, ...] = ()
    """Of these, the live ones whose log directory has failed: a restart does not bring them back."""


@dataclass(frozen=True, slots=True)
class RestartStep:
    """One broker's turn."""

    broker: int
    action: Action
    rack: str | None
    moves: int
    """Partitions whose leader moves."""
    last: int
    """Partitions that one replica alone keeps, of several, while the broker is down."""
    blocked: tuple[Blocked, ...]
    """Why the step is not safe; empty where it is."""
    reason: str
    """Why it is its turn, in words."""
    known: bool = True
    """Whether the state that it goes by is the present one, and whole: without a controller nobody can tell."""

    @property
    def safe(self) -> bool:
        return self.known and not self.blocked


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """The steps in their order; those that are not safe come last in a plan that was looked for."""

    steps: tuple[RestartStep, ...]
    keep: Keep
    partitions: int
    unhealthy: tuple[Blocked, ...]
    """Partitions that do not have now what every step is to keep."""

    @property
    def safe(self) -> bool:
        """Whether each step is, and every partition has now what is to be kept; not where no partition was found:
        nothing is known then of any."""
        return self.partitions > 0 and not self.unhealthy and all(step.safe for step in self.steps)
