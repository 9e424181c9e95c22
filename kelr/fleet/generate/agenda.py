"""What is going to happen when: stories that take turns, each a generator that yields how long it waits."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TypeAlias

Story: TypeAlias = Iterator[int]
"""Yields the milliseconds until it goes on."""


class Agenda:
    """Runs stories by a clock of its own; what is due at the same time goes in the order in which it was put there."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self._due: list[tuple[int, int, Story]] = []
        self._count = 0

    def start(self, story: Story, at_ms: int | None = None) -> None:
        """Begin a story at that time, or now."""
        self._put(self.now_ms if at_ms is None else max(at_ms, self.now_ms), story)

    def run(self, until_ms: int) -> Iterator[int]:
        """Let everything happen that is due before that time; tells the time before each turn."""
        while self._due and self._due[0][0] < until_ms:
            self.now_ms, _, story = heapq.heappop(self._due)
            yield self.now_ms
            wait_ms = next(story, None)
            if wait_ms is not None:
                self._put(self.now_ms + wait_ms, story)

    def _put(self, at_ms: int, story: Story) -> None:
        self._count += 1
        heapq.heappush(self._due, (at_ms, self._count, story))
