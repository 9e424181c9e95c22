"""What an event's outcome looks like in a scenario's output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kelr.controller import Handled
from kelr.controller.reach import NONE
from kelr.model import TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.words import NOTHING_CHANGES, answer_lines, change_lines, log_text


def outcome_lines(*handled: Handled) -> list[str]:
    """Refusals, then the partitions that these events changed, event by event; or that nothing changes."""
    lines: list[str] = []
    for one in handled:
        lines += [] if one.error == NONE else [one.error]
        lines += answer_lines(one.answers, only_errors=True)
        lines += change_lines(one.changes)
    return lines or [NOTHING_CHANGES]


def answered_lines(handled: Handled) -> list[str]:
    """What a request was answered, and what it changed."""
    changes = change_lines(handled.changes) or [NOTHING_CHANGES]
    answers = [handled.error] if handled.error != NONE else answer_lines(handled.answers, only_errors=False)
    return [*answers, *changes]


def changed_logs(
    before: SimulatedCluster, after: SimulatedCluster, addresses: Iterable[TopicPartition]
) -> Sequence[str]:
    """The logs that are not what they were; or that nothing changes."""
    lines = []
    for address in addresses:
        old, new = before.replication[address].logs, after.replication[address].logs
        lines += [log_text(address, replica, log) for replica, log in sorted(new.items()) if log != old.get(replica)]
    return lines or [NOTHING_CHANGES]
