"""A long stretch of the metadata log as columns of numbers, for who folds it without looking at single records.

`kelr.sources.metadata_log.stretches` makes them, `kelr.replay.columns` folds them. Only they load numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from kelr.replay.packed import NO_OP, Told, address_of
from kelr.replay.records import MetadataRecord, PartitionChanged

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

KEY_AT, FIELDS_AT = 3, 23
"""Where in the value of a PartitionChangeRecord the partition (`address_of`) and the tagged fields begin."""
LISTS = ("isr", "elr", "last_known_elr")
"""Tagged fields that are lists of brokers."""


@dataclass(frozen=True, slots=True)
class Columns:
    """PartitionChangeRecords where their bytes lie; each array has an element for each record, in order.

    Records tell of leaders, ISR, ELR, LastKnownElr and recovery, and of nothing else; lists have at most five members.
    A position of a field is that of its content (of a list: of the byte that counts it), and 0 where the record does
    not tell it.
    """

    data: bytes
    """The bytes, and some more behind the last record, so that all of a field's places can be read at once."""
    places: Numbers
    """The number of the record, counted from the same beginning as `Stretch.start`."""
    at: Numbers
    """Where its value begins."""
    end: Numbers
    """Behind its tagged fields."""
    leader: Numbers
    recovering: Numbers
    isr: Numbers
    elr: Numbers
    last_known_elr: Numbers

    def __len__(self) -> int:
        return len(self.places)

    def part(self, begin: int, end: int) -> Columns:
        """The records with these elements."""
        of = slice(begin, end)
        return Columns(
            self.data,
            self.places[of],
            self.at[of],
            self.end[of],
            self.leader[of],
            self.recovering[of],
            self.isr[of],
            self.elr[of],
            self.last_known_elr[of],
        )


class Stretch(Sequence[MetadataRecord]):
    """Consecutive records of one epoch: changes of partitions, and between them nothing but NoOpRecords.

    Args:
        changes: all changes with places from `start` up to below `stop`, and no others.
        start, stop: the number of the first record, and that behind the last.
        ends: the number behind the last record of each batch.
        times_ms: when each batch was appended.
        told_of: what tagged fields tell, by their bytes.
    """

    __slots__ = ("_ends", "_times_ms", "_told_of", "changes", "start", "stop")

    def __init__(
        self,
        changes: Columns,
        *,
        start: int,
        stop: int,
        ends: Numbers,
        times_ms: Numbers,
        told_of: Callable[[bytes], Told],
    ) -> None:
        self.changes, self.start, self.stop = changes, start, stop
        self._ends, self._times_ms, self._told_of = ends, times_ms, told_of

    def __len__(self) -> int:
        return self.stop - self.start

    def time_of(self, place: int) -> int:
        """When this record was appended, in milliseconds since 1970."""
        return int(self._times_ms[self._ends.searchsorted(self.start + place, "right")])

    def first_after(self, time_ms: int) -> int | None:
        """The first record that was appended later than this; None where none was."""
        if self.start == self.stop:
            return None
        first = int(self._ends.searchsorted(self.start, "right"))
        behind = int(self._ends.searchsorted(self.stop, "left")) + 1
        later = (self._times_ms[first:behind] > time_ms).nonzero()[0]
        if not len(later):
            return None
        batch = first + int(later[0])
        return max(0, int(self._ends[batch - 1]) - self.start) if batch else 0

    @overload
    def __getitem__(self, place: int) -> MetadataRecord: ...

    @overload
    def __getitem__(self, place: slice) -> Stretch: ...

    def __getitem__(self, place: int | slice) -> MetadataRecord | Stretch:
        if isinstance(place, slice):
            return self._part(*place.indices(len(self))[:2])
        number = range(self.start, self.stop)[place]  # raises IndexError behind the end
        element = int(self.changes.places.searchsorted(number))
        if element == len(self.changes) or self.changes.places[element] != number:
            return NO_OP
        at, end = int(self.changes.at[element]), int(self.changes.end[element])
        data = self.changes.data
        topic_id, partition = address_of(data[at + KEY_AT : at + FIELDS_AT])
        return PartitionChanged(topic_id, partition, **self._told_of(data[at + FIELDS_AT : end]))  # type: ignore[arg-type]

    def _part(self, begin: int, end: int) -> Stretch:
        start, stop = self.start + begin, self.start + max(begin, end)
        elements = self.changes.places.searchsorted([start, stop])
        return Stretch(
            self.changes.part(int(elements[0]), int(elements[1])),
            start=start,
            stop=stop,
            ends=self._ends,
            times_ms=self._times_ms,
            told_of=self._told_of,
        )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence):
            return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as of every sequence that is compared by what is in it
