"""Replays a metadata log to a point in it, where nobody asks what each record did.

Most records change a partition, and the next change of the same partition overwrites what they say. So changes are
folded first: what was told of a partition last, and how often it changed; the image has them when somebody looks, or
when a record comes whose meaning depends on them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from kelr.model import PartitionState
from kelr.replay import records as rec
from kelr.replay.changes import At
from kelr.replay.image import MetadataImage
from kelr.replay.packed import IdleRun, PackedChanges, Told, address_of, key_of

MOST_PENDING = 1_000_000
"""So many changes are kept before they are folded into the image: eight bytes each."""


class _Pending(dict[bytes, list[Told]]):
    """What was told of each partition since the image last had it."""

    def __missing__(self, key: bytes) -> list[Told]:
        told: list[Told] = []
        self[key] = told
        return told


class Folding:
    """Applies batches to an image, as `MetadataImage.apply` does, without telling what changed.

    The image has all of it after `finish`; in between, its partitions lag behind.

    Args:
        moved: told of each partition, before and after all its changes that were folded, when the image has them.
    """

    def __init__(
        self, image: MetadataImage, moved: Callable[[PartitionState, PartitionState], None] | None = None
    ) -> None:
        self._image, self._moved = image, moved
        self._told = _Pending()
        self._pending = 0

    def apply(self, batch: rec.RecordBatch) -> None:
        """Apply a batch; batches come in the order of the log."""
        records, image = batch.records, self._image
        kind = type(records)
        if kind in _FOLDS and not image.in_transaction and not batch.of_checkpoint:
            if kind is PackedChanges:
                self._fold(records)  # type: ignore[arg-type]
            image.at = At(batch.next_offset - 1, batch.epoch, batch.timestamp_ms)
        else:
            if self._told:
                self._make_way(records)
            self._apply(batch)

    def finish(self) -> MetadataImage:
        """Bring the image up to the last batch."""
        self._settle_all()
        return self._image

    def _apply(self, batch: rec.RecordBatch) -> None:
        """Record by record; what is held back of a transaction keeps the time of the batch that it was in."""
        records, image = batch.records, self._image
        if not image.in_transaction and all(type(record) in _MAKES for record in records):
            image.make(batch)
        else:
            image.apply(batch)

    def _fold(self, records: PackedChanges) -> None:
        # In C throughout: this is where the time of reading a long log goes.
        deque(map(list.append, map(self._told.__getitem__, records.keys), records.told), maxlen=0)
        self._pending += len(records)
        if self._pending > MOST_PENDING:
            self._settle_all()

    def _make_way(self, records: Any) -> None:
        """Settle what these records look at, or what looks at them."""
        for record in records:
            kind = type(record)
            if kind is rec.PartitionMade or kind is rec.PartitionChanged:
                self._settle(key_of(record.topic_id, record.partition))
            elif kind is rec.TopicRemoved or kind is rec.TopicMade:
                topic = self._image.topics.get(record.topic_id)
                for partition in () if topic is None else topic.partitions:
                    self._settle(key_of(record.topic_id, partition))
            elif kind in _LOOKS_AT_ALL:
                self._settle_all()

    def _settle_all(self) -> None:
        for key in list(self._told):
            self._settle(key)
        self._pending = 0

    def _settle(self, key: bytes) -> None:
        """The image has what was told of this partition."""
        changes = self._told.pop(key, None)
        if changes is not None:
            told: dict[str, object] = {}
            for change in changes:
                told.update(change)
            self._changed(key, len(changes), sum(["leader" in change for change in changes]), told)

    def _changed(self, key: bytes, changes: int, led: int, told: Mapping[str, Any]) -> None:
        """The partition changed so often, of which so many changes named a leader, and this was told last."""
        topic_id, partition = address_of(key)
        topic = self._image.topics.get(topic_id)
        before = None if topic is None else topic.partitions.get(partition)
        if topic is None or before is None:
            self._image.misfits += changes
            return
        leader = told.get("leader", before.leader)
        topic.partitions[partition] = after = PartitionState(
            before.topic,
            before.partition,
            None if leader == rec.NO_LEADER else leader,
            before.leader_epoch + led,
            before.replicas,
            told.get("isr", before.isr),
            told.get("elr", before.elr),
            told.get("last_known_elr", before.last_known_elr),
            None,
            (before.partition_epoch or 0) + changes,
            before.adding,
            before.removing,
            told.get("recovering", before.recovering),
            before.topic_id,
        )
        if self._moved is not None:
            self._moved(before, after)


_FOLDS = frozenset({PackedChanges, IdleRun})
_MAKES = frozenset({rec.TopicMade, rec.PartitionMade})
_LOOKS_AT_ALL = frozenset({rec.ElrCleared, rec.TransactionMark, rec.SnapshotBegins})
