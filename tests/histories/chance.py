"""Chance: whatever may happen in a history is chosen here, by name, and written down.

Each source of chance has a stream of its own, so that what is left out of one leaves the others as they were. What was
chosen can be played again without the seed, and with parts of it left out: that is how a failing history is shrunk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

Choice = Any
"""Something that JSON has; None: nothing happens."""
Schedule = Mapping[str, Choice]
"""What happens, by source and occasion: ``"ada's seams 17": "kill"``."""


class Chance:
    """What happens in one history.

    Args:
        seed: what is drawn from.
        written: play this, and draw nothing; None: draw.
    """

    def __init__(self, seed: int, written: Schedule | None = None) -> None:
        self.seed = seed
        self._written = written
        self._streams: dict[str, Random] = {}
        self._occasions: Counter[str] = Counter()
        self.chosen: dict[str, Choice] = {}
        """All that was chosen, but for what is as usual."""

    def choose(self, source: str, draw: Callable[[Random], Choice]) -> Choice:
        """What happens at the next occasion of this source; None: nothing, or what is usual."""
        place = f"{source} {self._occasions[source]}"
        self._occasions[source] += 1
        found = draw(self.stream(source)) if self._written is None else self._written.get(place)
        if found is not None:
            self.chosen[place] = found
        return found

    def stream(self, source: str) -> Random:
        """The random numbers of one source."""
        if source not in self._streams:
            self._streams[source] = Random(f"{self.seed} {source}")
        return self._streams[source]

    def strength(self, feature: str) -> float:
        """How often a feature strikes in this history, from 0 to 1: in half of all histories not at all."""
        stream = self.stream(f"strength of {feature}")
        return 0.0 if stream.random() < 0.5 else stream.choice((0.05, 0.2, 1.0))
