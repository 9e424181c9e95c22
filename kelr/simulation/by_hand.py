"""Recoveries that somebody asked for by hand, and the answers as the steps of the controller bring them.

The controller answers a manual recovery by the step that ends it (`Stepped.answers`), which may be long after the step
that asked. Whoever asked keeps an `Awaited` and looks at it when something has happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kelr.controller import Stepped
from kelr.controller.reach import NONE
from kelr.model import TopicPartition

NOT_AVAILABLE = "ELIGIBLE_LEADERS_NOT_AVAILABLE"


@dataclass(slots=True)
class Awaited:
    """What was asked for at once, and how far it has been answered."""

    answers: dict[TopicPartition, str] = field(default_factory=dict)
    """Kafka's name of each error, by partition."""
    pending: set[TopicPartition] = field(default_factory=set)
    """Partitions whose recovery goes on."""
    refused: str = NONE
    """Kafka's name of the error that refused the whole of it."""

    def take(self, done: Stepped) -> None:
        """Look at a later step: one that has ended a recovery has its answer.

        A step can answer somebody else for the same partition, say a designation that elected nobody, while the
        recovery goes on; so the manager is asked whether it does.
        """
        tasks, partitions = done.controller.manager.tasks, done.controller.state.partitions
        for address in sorted(self.pending):
            task = tasks.get(address)
            if task is not None and task.manual:
                continue
            self.pending.discard(address)
            led = address in partitions and partitions[address].leader is not None
            self.answers[address] = done.answers.get(address, NONE if led else NOT_AVAILABLE)


def awaited(asked: Iterable[TopicPartition], done: Stepped) -> Awaited:
    """The answers of the step that asked for recoveries, and what it left open."""
    pending = set(asked) - set(done.answers) if done.error == NONE else set()
    return Awaited(dict(done.answers), pending, done.error)
