"""Many records that are alike, kept as they came and made values one by one only when somebody looks at them.

`Folding` (`kelr.replay.fast`) applies them to an image without looking.
"""

from __future__ import annotations

import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias, overload

from kelr.replay.records import Irrelevant, MetadataRecord, PartitionChanged

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
