"""What is told while a plan is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kelr.model.plan import Applied


class Stage(StrEnum):
    """What a plan's execution is doing; the first six happen in each batch, in this order."""

    CHECK = "check"
    """Reading the batch's partitions and logs again."""
    REORDER = "reorder"
    """Putting the wanted replicas first."""
    ELECT = "elect"
    """Asking for the elections."""
    LEADERS = "leaders"
    """Reading who leads."""
    RESTORE = "restore"
    """Giving the replicas their old order again."""
    DONE = "done"
    """A batch is over; `ApplyEvent.applied` has its results."""
    REPEAT = "repeat"
    """A request went without an answer, or Kafka asks to repeat it."""
    LATE = "late"
    """Waiting until a request without an answer can take effect no more."""
    INTERRUPTED = "interrupted"
    """Somebody pressed Ctrl-C: orders are restored, then it ends."""
    PAUSE = "pause"
    """Waiting between two batches, as asked for."""


@dataclass(frozen=True, slots=True)
class ApplyEvent:
    """One moment of the execution."""

    stage: Stage
    text: str
    """One line for a person."""
    done: int
    """Elections whose result is known."""
    total: int
    """Elections of the plan."""
    applied: tuple[Applied, ...] = ()
    """Results that are new."""


Report = Callable[[ApplyEvent], None]
"""Told of each moment; must not raise."""


def silent(_event: ApplyEvent) -> None:
    """A report that goes nowhere."""
