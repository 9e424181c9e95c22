"""Partitions named in few words, counted as they come: of a topic with many ranges the number is told."""

from __future__ import annotations

from dataclasses import dataclass, field

_MOST_RANGES = 4
"""Ranges of partitions that a topic is named with; of one with more, the number is told."""


@dataclass(slots=True)
class _Topic:
    """The partitions of one topic, as ranges as long as they are few."""

    count: int = 0
    ranges: list[list[int]] = field(default_factory=list)

    def add(self, partition: int) -> None:
        self.count += 1
        if self.ranges and partition == self.ranges[-1][1] + 1:
            self.ranges[-1][1] = partition
        elif len(self.ranges) <= _MOST_RANGES:
            self.ranges.append([partition, partition])

    def named(self, name: str) -> str:
        """``orders:0-5,7``, or ``orders 380``."""
        if len(self.ranges) > _MOST_RANGES:
            return f"{name} {self.count:,}"
        return f"{name}:{','.join(str(first) if first == last else f'{first}-{last}' for first, last in self.ranges)}"


class Affected:
    """Partitions in address order; none of them is kept."""

    def __init__(self) -> None:
        self.count = 0
        self._topics: dict[str, _Topic] = {}

    def add(self, topic: str, partition: int) -> None:
        self.count += 1
        self._topics.setdefault(topic, _Topic()).add(partition)

    def named(self, *, most: int) -> str:
        """``payments 512, orders:0-5, 61 more topics``: those topics by name that have the most of them."""
        worst = sorted(self._topics.items(), key=lambda one: (-one[1].count, one[0]))
        names = [topic.named(name) for name, topic in worst[:most]]
        more = len(worst) - len(names)
        return ", ".join([*names, *([f"{more:,} more {'topic' if more == 1 else 'topics'}"] * (more > 0))])
