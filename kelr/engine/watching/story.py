"""What a watch has seen so far: where it began, the newest look, and since when each partition stands as it does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kelr.engine.watching.changes import Change, changes_between
from kelr.engine.watching.sight import Counts, Sight, Watched
from kelr.model import LogAnswer, ReplicaLog, Situation, TopicPartition

# How fast replicas' logs grow, from what they told at several moments.

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


@dataclass(frozen=True, slots=True)
class Since:
    """Since when a partition is in its situation."""

    situation: Situation
    at_ms: int
    """When it was seen first."""
    before_the_watch: bool
    """It was so at the first look already: since when is not known, `at_ms` is the latest that it can be."""


@dataclass(frozen=True, slots=True)
class Story:
    """A watch up to its newest look."""

    begun: Counts
    begun_ms: int
    sight: Sight
    since: Mapping[TopicPartition, Since]
    heard_ms: int | None
    """When the newest look began in which a controller answered, or nobody could tell; None: none answered in any look,
    and how old the first one was already is not known."""

    @classmethod
    def beginning(cls, sight: Sight) -> Story:
        """After the first look."""
        since = {at: Since(one.situation, sight.seen_ms, True) for at, one in sight.partitions.items()}
        return cls(sight.counts, sight.seen_ms, sight, since, _heard_ms(sight, None))

    def after(self, sight: Sight) -> tuple[Story, tuple[Change, ...]]:
        """The story with one more look, and what that look saw change."""
        since = {at: self._since(at, one, sight) for at, one in sight.partitions.items()}
        heard_ms = _heard_ms(sight, self.heard_ms)
        return Story(self.begun, self.begun_ms, sight, since, heard_ms), changes_between(self.sight, sight)

    def _since(self, at: TopicPartition, one: Watched, sight: Sight) -> Since:
        known, before = self.since.get(at), self.sight.partitions.get(at)
        made_anew = before is not None and before.state.topic_id != one.state.topic_id
        if known is not None and known.situation is one.situation and not made_anew:
            return known
        return Since(one.situation, sight.seen_ms, False)


def _heard_ms(sight: Sight, before_ms: int | None) -> int | None:
    return sight.taken_at_ms if sight.controller_silence is None else before_ms
