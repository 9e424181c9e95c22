"""AlterPartition for many partitions in one request, as leaders send it, at a cost that grows with their number alone.

`kelr.controller.handle` takes one partition at a time, and each time makes a copy of all that the controller has on
record. Here each partition is decided on a record that holds nothing else, and all changes are written at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kelr.controller import Change, ControllerState, Handled, events, handle
from kelr.controller.reach import FAILED, NONE, written
from kelr.model import TopicPartition


def altered_together(state: ControllerState, reports: Iterable[events.PartitionAltered]) -> Handled | None:
    """What the controller makes of these reports, each decided by what is on record before all of them.

    Source: ReplicationControlManager.alterPartition makes the records of all partitions of a request before the first
    takes effect.

    Returns:
        None where the controller would fail at one of them: what it then does to the others is told by asking one
        after the other.
    """
    changes: list[Change] = []
    answers: dict[TopicPartition, str] = {}
    for report in reports:
        first = TopicPartition(report.address.topic, 0)
        near = {known: state.partitions[known] for known in (first, report.address) if known in state.partitions}
        done = handle(replace(state, partitions=near), report)
        if done.error == FAILED or FAILED in done.answers.values():
            return None
        changes += done.changes
        answers[report.address] = done.error if done.error != NONE else done.answers[report.address]
    return Handled(written(state, changes), tuple(changes), answers=answers)
