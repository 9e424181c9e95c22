"""Random things that happen to simulated clusters, with what really made the controller write each record."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kelr.controller import Election, events
from kelr.controller.change import Change
from kelr.controller.recovery.controller import Stepped
from kelr.lab.simulated.world import World
from kelr.model import ElectedBy, TopicPartition
from kelr.replay.records import RecordBatch
from kelr.sources.metadata_log.reading import BatchReader
from tests.lab.simulated.stories import cluster
from tests.lab.simulated.test_metadata_log import do_something


@dataclass(frozen=True)
class Truth:
    """The event that made the controller write a record, and what its election said of each partition."""

    event: object
    elected: dict[TopicPartition, ElectedBy | None]
    unclean_allowed: bool = False


class Observed:
    """A simulated cluster, and for each offset of its metadata log the event behind it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.truths: dict[int, Truth] = {}
        watchers = world.running.watchers
        written = watchers.index(world.metadata.happened)
        watchers[written] = self._watching(world.metadata.happened)

    def _watching(self, happened: Callable[[Any, Stepped], None]) -> Callable[[Any, Stepped], None]:
        def watch(event: Any, done: Stepped) -> None:
            before = self.world.metadata._end
            happened(event, done)
            truth = Truth(event, {one.after.address: _by(one) for one in done.changes})
            for offset in range(before, self.world.metadata._end):
                self.truths[offset] = truth

        return watch

    def batches(self) -> list[RecordBatch]:
        """The log as the simulated controller wrote it: one batch for each event."""
        return list(BatchReader(self.world.metadata.read(0, 1 << 30)))


def _by(change: Change) -> ElectedBy | None:
    return None if change.elected.rule is None else change.elected.rule.by


def random_cluster(rules: str, seed: object, deeds: int = 80) -> Observed:
    """A cluster to which random things happened."""
    chance = random.Random(f"history/{rules}/{seed}")
    observed = Observed(cluster(rules, (1, 2, 3), (2, 3, 4), brokers=4, topics=3, partitions=4).world)
    for _ in range(deeds):
        do_something(observed.world, chance)
    return observed


def merged(batches: Sequence[RecordBatch], chance: random.Random) -> Iterator[RecordBatch]:
    """The same records, with several events in one batch, as Kafka's BatchAccumulator may put them."""
    waiting: list[RecordBatch] = []
    for batch in batches:
        if waiting and chance.random() < 0.4:
            yield _one(waiting)
            waiting = []
        waiting.append(batch)
    if waiting:
        yield _one(waiting)


def _one(batches: Sequence[RecordBatch]) -> RecordBatch:
    return replace(batches[0], records=tuple(record for batch in batches for record in batch.records))


__all__ = ["Election", "Observed", "Truth", "events", "merged", "random_cluster"]
