"""What an event's outcome looks like in a scenario's output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kelr.controller import LogInfoRequest, Refused, Stepped
from kelr.controller.reach import NONE
from kelr.model import ElectedBy, TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.words import NOTHING_CHANGES, answer_lines, change_lines, log_text


def outcome_lines(*steps: Stepped) -> list[str]:
    """Refusals, then the partitions that these events changed, event by event; or that nothing changes."""
    lines: list[str] = []
    for done in steps:
        lines += [] if done.error == NONE else [done.error]
        lines += answer_lines(done.answers, only_errors=True)
        lines += _what_it_did(done)
    return lines or [NOTHING_CHANGES]


def answered_lines(done: Stepped, *, by: ElectedBy | None = None) -> list[str]:
    """What a request was answered, and what it changed.

    Args:
        by: the reason of an election that the request itself names.
    """
    answers = [done.error] if done.error != NONE else answer_lines(done.answers, only_errors=False)
    return [*answers, *(_what_it_did(done, by) or [NOTHING_CHANGES])]


def _what_it_did(done: Stepped, by: ElectedBy | None = None) -> list[str]:
    return [
        *map(_refused_line, done.refused),
        *change_lines(done.changes, by),
        *map(_request_line, done.requests),
    ]


def _refused_line(refused: Refused) -> str:
    detail = f": {refused.detail}" if refused.detail else ""
    return f"{refused.address} refuses the answer of {refused.broker}, {refused.reason}{detail}"


def _request_line(request: LogInfoRequest) -> str:
    return f"asks {request.broker} for the log of {', '.join(map(str, request.partitions))}"


def changed_logs(
    before: SimulatedCluster, after: SimulatedCluster, addresses: Iterable[TopicPartition]
) -> Sequence[str]:
    """The logs that are not what they were; or that nothing changes."""
    lines = []
    for address in addresses:
        old, new = before.replication[address].logs, after.replication[address].logs
        lines += [log_text(address, replica, log) for replica, log in sorted(new.items()) if log != old.get(replica)]
    return lines or [NOTHING_CHANGES]
