"""How fast replicas' logs grow, from what they told at several moments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kelr.model import LogAnswer, ReplicaLog, TopicPartition

WINDOW_MS = 10_000
"""How far back readings count: how fast a log grows now is asked."""
LONGEST_MS = 60_000
"""The last reading counts that long where there is no newer one, as with looks that are far apart."""

Key = tuple[TopicPartition, int]
Reading = tuple[int, int]
"""When, in milliseconds, and the log end then."""


@dataclass(frozen=True, slots=True)
class Readings:
    """The newest readings of logs that are watched."""

    _known: Mapping[Key, tuple[Reading, ...]] = field(default_factory=dict)

    def with_answers(self, answers: Mapping[TopicPartition, Iterable[LogAnswer]]) -> Readings:
        """These readings and new ones; partitions that were not asked about are forgotten, and so are the readings of a
        log that was not heard or that became shorter: what it does from then on is another matter."""
        known: dict[Key, tuple[Reading, ...]] = {}
        for address, logs in answers.items():
            for log in logs:
                if isinstance(log, ReplicaLog) and log.read_at_ms is not None:
                    key = (address, log.replica)
                    known[key] = _added(self._known.get(key, ()), (log.read_at_ms, log.log_end))
        return Readings(known)

    def pace(self, address: TopicPartition, replica: int) -> float | None:
        """How many offsets the log grows by in a second; None where fewer than two readings tell."""
        readings = self._known.get((address, replica), ())
        if len(readings) < 2:
            return None
        (first_ms, first), (last_ms, last) = readings[0], readings[-1]
        return 1000 * (last - first) / (last_ms - first_ms)

    def left_s(self, address: TopicPartition, replica: int, *, best: int | None, behind: int | None) -> float | None:
        """In how many seconds the replica will have caught up with the best log, if both go on as they do; None where
        that is not known, or where it does not come nearer.

        Args:
            best: the replica with the best log.
            behind: how many offsets of that the replica lacks.
        """
        pace = self.pace(address, replica)
        ahead = None if best is None else self.pace(address, best)
        if pace is None or ahead is None or not behind:
            return None
        nearer = pace - ahead
        return behind / nearer if nearer > 0 else None


def _added(readings: tuple[Reading, ...], newest: Reading) -> tuple[Reading, ...]:
    at_ms, end = newest
    if readings and (end < readings[-1][1] or at_ms < readings[-1][0]):
        return (newest,)
    earlier = tuple(one for one in readings if at_ms - LONGEST_MS <= one[0] < at_ms)
    kept = tuple(one for one in earlier if at_ms - one[0] <= WINDOW_MS)
    return (*(kept or earlier[-1:]), newest)
