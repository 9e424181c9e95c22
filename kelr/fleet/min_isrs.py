"""The effective min ISR of each topic, and when it moves: a row of partition_states holds under one value of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kelr.model import PartitionState
from kelr.replay.changes import Change, ConfigMoved, PartitionMoved
from kelr.replay.history import ClusterEntry, ClusterEvent, Entry, PartitionEntry
from kelr.replay.history.min_isr import MIN_ISR, effective_min_isr
from kelr.replay.image import BROKER, TOPIC, MetadataImage


class MinIsrs:
    """Follows an image: what holds after each batch.

    Args:
        image: the one that batches are applied to, each before its changes are given here.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._known: dict[str, int | None] = {}
        """By topic id, of topics whose partitions were looked at."""
        self.restart()

    def of(self, state: PartitionState) -> int | None:
        """What holds for a partition; None where it is not known."""
        topic_id = state.topic_id or ""
        if topic_id not in self._known:
            self._known[topic_id] = effective_min_isr(self._image, state.topic)
        return self._known[topic_id]

    def restart(self) -> frozenset[str]:
        """Look at all topics of the image; the ids of those that were known with another value."""
        before = self._known
        self._known = {topic_id: effective_min_isr(self._image, name) for name, topic_id in self._image.names.items()}
        return frozenset(topic for topic, found in self._known.items() if topic in before and before[topic] != found)

    def take(self, changes: Iterable[Change]) -> frozenset[str]:
        """What a batch changed; the ids of topics that were known with another value."""
        names = self._image.names
        affected: set[str] = set()
        for change in changes:
            if type(change) is PartitionMoved:
                before, after = change.before, change.after
                state = after or before
                if state is None or state.partition:
                    continue
                if after is None:
                    self._known.pop(state.topic_id or "", None)
                elif before is None or before.replicas is not after.replicas:
                    affected.add(state.topic)
            elif type(change) is ConfigMoved and change.key == MIN_ISR:
                if change.resource_type == TOPIC:
                    affected.add(change.resource)
                elif change.resource_type == BROKER and not change.resource:
                    affected.update(names)
        moved: set[str] = set()
        for topic in affected & names.keys():
            topic_id, found = names[topic], effective_min_isr(self._image, topic)
            if self._known.get(topic_id, found) != found:
                moved.add(topic_id)
            self._known[topic_id] = found
        return frozenset(moved)


def moved_by(entry: Entry, moved: frozenset[str], image: MetadataImage) -> frozenset[str]:
    """The topics, of those whose effective min ISR has moved, for which this entry is what moved it."""
    if isinstance(entry, ClusterEntry) and entry.event is ClusterEvent.CONFIG and entry.name == MIN_ISR:
        return moved if entry.topic is None else moved & {image.names.get(entry.topic, "")}
    if not isinstance(entry, PartitionEntry) or entry.after is None or entry.address.partition:
        return frozenset()
    resized = entry.before is None or len(entry.before.replicas) != len(entry.after.replicas)
    return moved & {entry.after.topic_id or ""} if resized else frozenset()


def untouched(
    topics: Iterable[str], image: MetadataImage, earlier: Sequence[Entry], later: Sequence[Entry]
) -> Iterator[PartitionState]:
    """The partitions of these topics (ids) that have no row yet under what holds after a batch, as they are between two
    of its entries.

    Args:
        image: the cluster after the batch.
        earlier: entries of the batch that have rows.
        later: those behind them; what comes first says how a partition was before.
    """
    had = {(one.state.topic_id, one.address.partition) for one in earlier if isinstance(one, PartitionEntry)}
    before: dict[str, dict[int, PartitionState | None]] = {}
    for one in later:
        if isinstance(one, PartitionEntry):
            before.setdefault(one.state.topic_id or "", {}).setdefault(one.address.partition, one.before)
    for topic_id in sorted(topics):
        topic = image.topics.get(topic_id)
        states = {**({} if topic is None else topic.partitions), **before.get(topic_id, {})}
        for number in sorted(states):
            state = states[number]
            if state is not None and (topic_id, number) not in had:
                yield state
