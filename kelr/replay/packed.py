"""Many records that are alike, kept as they came and made values one by one only when somebody looks at them.

`Folding` (`kelr.replay.packed`) applies them to an image without looking.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, overload

from kelr.model import PartitionState
from kelr.replay import records as rec
from kelr.replay.image import MetadataImage
from kelr.replay.records import At, Irrelevant, MetadataRecord, PartitionChanged

_PARTITION = struct.Struct(">i")
_ID_TEXT_SIZE = 22
_MOST_KEPT = 1 << 16
"""Ids come again and again: so many are kept."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL_SAFE = str.maketrans("-_", "+/")

Told: TypeAlias = Mapping[str, object]
"""What a record of a change tells: names and values of `PartitionChanged`, without those that stay."""


@lru_cache(maxsize=_MOST_KEPT)
def id_text(raw: bytes) -> str:
    """16 bytes of an id as Kafka prints them: base64 for URLs, without padding."""
    return b2a_base64(raw, newline=False)[:_ID_TEXT_SIZE].translate(_URL_SAFE).decode("ascii")


def address_of(key: bytes) -> tuple[str, int]:
    """(topic id, partition) of a partition as records name it: its number in four bytes, and the id in 16."""
    return id_text(key[_PARTITION.size :]), _PARTITION.unpack_from(key)[0]


def key_of(topic_id: str, partition: int) -> bytes:
    """The other way round. Raises ValueError for a text that is no id."""
    return _PARTITION.pack(partition) + a2b_base64(topic_id.translate(_FROM_URL_SAFE) + "==")


class PackedChanges(Sequence[MetadataRecord]):
    """PartitionChangeRecords that tell of leaders, ISR, ELR, LastKnownElr and recovery, and of nothing else.

    Args:
        keys: the partition that each changes; see `address_of`.
        told: what each tells.
    """

    __slots__ = ("keys", "told")

    def __init__(self, keys: Sequence[bytes], told: Sequence[Told]) -> None:
        self.keys = keys
        self.told = told

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, place: int) -> MetadataRecord: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[MetadataRecord]: ...

    def __getitem__(self, place: int | slice) -> MetadataRecord | Sequence[MetadataRecord]:
        if isinstance(place, slice):
            return PackedChanges(self.keys[place], self.told[place])
        topic_id, partition = address_of(self.keys[place])
        return PartitionChanged(topic_id, partition, **self.told[place])  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedChanges):
            return self.keys == other.keys and self.told == other.told
        if isinstance(other, Sequence):
            return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of every sequence that is compared by what is in it


class IdleRun(Sequence[MetadataRecord]):
    """NoOpRecords of consecutive batches with one record each, as one batch: a controller writes two in a second.

    Args:
        times_ms: when each was appended.
    """

    __slots__ = ("times_ms",)

    def __init__(self, times_ms: Sequence[int]) -> None:
        self.times_ms = times_ms

    def __len__(self) -> int:
        return len(self.times_ms)

    def time_of(self, place: int) -> int:
        """When this record was appended, in milliseconds since 1970."""
        return self.times_ms[place]

    def first_after(self, time_ms: int) -> int | None:
        """The first record that was appended later than this; None where none was."""
        return next((place for place, one in enumerate(self.times_ms) if one > time_ms), None)

    @overload
    def __getitem__(self, place: int) -> MetadataRecord: ...

    @overload
    def __getitem__(self, place: slice) -> IdleRun: ...

    def __getitem__(self, place: int | slice) -> MetadataRecord | IdleRun:
        if isinstance(place, slice):
            return IdleRun(self.times_ms[place])
        self.times_ms[place]  # raises IndexError behind the end
        return NO_OP

    def __eq__(self, other: object) -> bool:
        if isinstance(other, IdleRun):
            return len(self) == len(other)
        if isinstance(other, Sequence):
            return len(self) == len(other) and all(one == NO_OP for one in other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]


NO_OP = Irrelevant("NoOpRecord")
"""As a record tells it."""


# Replays a metadata log to a point in it, where nobody asks what each record did.
#
# Most records change a partition, and the next change of the same partition overwrites what they say. So changes are
# folded first: what was told of a partition last, and how often it changed; the image has them when somebody looks, or
# when a record comes whose meaning depends on them.


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
