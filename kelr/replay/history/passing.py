"""Batches that change nothing but partitions nobody asks about, passed over: what they say is folded, and the image of
the cluster has it when somebody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kelr.model import PartitionState, TopicPartition
from kelr.replay import records as rec
from kelr.replay.fast import Folding
from kelr.replay.image import MetadataImage
from kelr.replay.packed import IdleRun, PackedChanges, address_of


class _Wanted(dict[bytes, bool]):
    """Whether somebody asks about a partition, by its key; whether a partition of an unknown topic is meant is told
    anew each time."""

    def __init__(self, image: MetadataImage, wanted: Callable[[TopicPartition], bool]) -> None:
        super().__init__()
        self._image, self._wanted = image, wanted

    def __missing__(self, key: bytes) -> bool:
        topic_id, partition = address_of(key)
        topic = self._image.topics.get(topic_id)
        if topic is None:
            return True
        self[key] = found = self._wanted(TopicPartition(topic.name, partition))
        return found


class Passing:
    """Decides which batches are passed over, and keeps what they say.

    Args:
        wanted: which partitions somebody asks about.
        moved: told of each partition, before and after everything that was passed over, when the image has it.
    """

    def __init__(
        self,
        image: MetadataImage,
        wanted: Callable[[TopicPartition], bool],
        moved: Callable[[PartitionState, PartitionState], None],
    ) -> None:
        self._image = image
        self._wanted = _Wanted(image, wanted)
        self._folding = Folding(image, moved)

    def passes(self, batch: rec.RecordBatch) -> bool:
        """Whether the batch is passed over; otherwise the image is made ready for it, and nothing is pending."""
        if batch.of_checkpoint or self._image.in_transaction:
            self._wanted.clear()  # what is told there of topics is not looked at here
            self.settle()
            return False
        if self._is_looked_at(batch.records):
            self.settle()
            return False
        self._folding.apply(batch)
        return True

    def _is_looked_at(self, records: Sequence[rec.MetadataRecord]) -> bool:
        kind = type(records)
        if kind is PackedChanges:
            return any(map(self._wanted.__getitem__, records.keys))  # type: ignore[attr-defined]  # by its kind
        if kind is IdleRun or all(type(one) is rec.Irrelevant for one in records):
            return False
        if any(type(one) is rec.TopicRemoved or self._takes_over(one) for one in records):
            self._wanted.clear()
        return True

    def _takes_over(self, one: rec.MetadataRecord) -> bool:
        return type(one) is rec.TopicMade and one.topic_id in self._image.topics

    def settle(self) -> None:
        """The image has everything that was passed over."""
        self._folding.finish()
