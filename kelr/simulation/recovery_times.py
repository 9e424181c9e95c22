"""When the Unclean Recovery Manager has something to do by itself."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping

from kelr.controller import RecoveryManager, Task
from kelr.model import TopicPartition


class RecoveryTimes:
    """The moments at which a window closes, a retry is due, a round is over or a request gives up.

    Worked out once for the tasks that there are, however often it is asked.
    """

    def __init__(self, seen_ms: int) -> None:
        self._tasks: Mapping[TopicPartition, Task] = {}
        self._times: list[int] = []
        self._seen_ms = seen_ms

    def seen(self, now_ms: int) -> None:
        """The manager has looked at all its tasks; what was due by then is done."""
        self._seen_ms = now_ms

    def next_ms(self, manager: RecoveryManager) -> int | None:
        """The first moment since it looked last; None where there is none."""
        if manager.tasks is not self._tasks:
            self._tasks = manager.tasks
            self._times = sorted({moment for task in manager.tasks.values() for moment in _moments(task, manager)})
        at = bisect_right(self._times, self._seen_ms)
        return self._times[at] if at < len(self._times) else None


def _moments(task: Task, manager: RecoveryManager) -> Iterator[int]:
    if task.window_from_ms is not None:
        yield task.window_from_ms + manager.limits.window_ms
    if task.round_ms is not None:
        yield task.round_ms + manager.limits.timeout_ms
    for manual in task.manual:
        yield manual.until_ms
    for inquiry in task.inquiries.values():
        if inquiry.retry_at_ms is not None:
            yield inquiry.retry_at_ms
