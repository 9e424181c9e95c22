"""What a watch has seen so far: where it began, the newest look, and since when each partition stands as it does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kelr.engine.watching.changes import Change, changes_between
from kelr.engine.watching.sight import Counts, Sight, Watched
from kelr.model import Situation, TopicPartition


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
