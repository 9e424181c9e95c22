"""Which transactions are in a run of batches, and how each ended: by the markers that follow its records.

Source: KIP-98; `ProducerStateManager.completeTxn`. A producer has one transaction at a time in a partition, so that its
next marker ends it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kelr.sources.records.batches import BatchHeader
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import ControlType, read_records
from kelr.sources.records.stream import RawBatch


class Outcome(StrEnum):
    """How a transaction ended, as far as the records tell."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"
    """No marker follows."""
    UNKNOWN = "unknown"
    """Records that could not be read lie between its records and the marker that follows them, or its marker cannot be
    read: another one may have ended it."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """One transaction's records among these batches."""

    producer_id: int
    first_offset: int | None
    """Of its first record here; None where only its marker is here."""
    last_offset: int | None
    records: int
    outcome: Outcome
    marker_offset: int | None
    began_before: bool | None
    """Whether it began before the first batch; None where that is not known."""


@dataclass(frozen=True, slots=True)
class Marker:
    """The control record that ended a transaction."""

    offset: int
    outcome: Outcome
    leader_epoch: int | None


@dataclass(slots=True)
class _Begun:
    first: int
    last: int
    records: int


@dataclass(slots=True)
class Transactions:
    """Reads batches with `feed`, in order, then answers. Only transactions are kept, no records.

    Args:
        gaps: offsets `[from, to)` that could not be read; `to` None reaches to the end.
        starts_between: whether no transaction was under way at the first batch; None where that is not known.
    """

    gaps: Sequence[tuple[int, int | None]] = ()
    starts_between: bool | None = None
    found: list[Transaction] = field(default_factory=list)
    """Those that are ended, in the order of their markers; `finish` adds the open ones."""
    _open: dict[int, _Begun] = field(default_factory=dict)
    _markers: dict[int, list[Marker]] = field(default_factory=dict)

    def feed(self, batch: RawBatch) -> None:
        """Take the next batch."""
        header = batch.header
        if header.control:
            self._ended(batch)
        elif header.transactional and header.producer_id is not None:
            begun = self._open.get(header.producer_id)
            if begun is None:
                self._open[header.producer_id] = _Begun(header.base_offset, header.last_offset, header.count)
            else:
                begun.last, begun.records = header.last_offset, begun.records + header.count

    @property
    def open_from(self) -> int | None:
        """Where the oldest transaction begins that has no end in what was fed so far; None where there is none. To be
        asked before `finish`."""
        return min((begun.first for begun in self._open.values()), default=None)

    def finish(self) -> Sequence[Transaction]:
        """All transactions: those that ended, then those that are open."""
        for producer, begun in sorted(self._open.items(), key=lambda item: item[1].first):
            self._add(producer, begun, Outcome.OPEN, None)
        self._open.clear()
        return self.found

    def outcome(self, header: BatchHeader) -> Outcome | None:
        """How the transaction of a data batch ended; None for a batch that is part of none, and for a marker. All must
        have been fed."""
        if header.control or not header.transactional or header.producer_id is None:
            return None
        marker = self.marker(header)
        if marker is None:
            return Outcome.UNKNOWN if self._gap_between(header.last_offset, None) else Outcome.OPEN
        return Outcome.UNKNOWN if self._gap_between(header.last_offset, marker.offset) else marker.outcome

    def marker(self, header: BatchHeader) -> Marker | None:
        """The first marker of a data batch's producer behind it; None where there is none. All must have been fed."""
        if header.producer_id is None:
            return None
        markers = self._markers.get(header.producer_id, [])
        at = bisect_right(markers, header.last_offset, key=lambda marker: marker.offset)
        return markers[at] if at < len(markers) else None

    def _ended(self, batch: RawBatch) -> None:
        producer = batch.header.producer_id
        outcome = marker_of(batch)
        if producer is None or outcome is None:
            return
        ended = Marker(batch.header.base_offset, outcome, batch.header.partition_leader_epoch)
        self._markers.setdefault(producer, []).append(ended)
        self._add(producer, self._open.pop(producer, None), outcome, batch.header.base_offset)

    def _add(self, producer: int, begun: _Begun | None, outcome: Outcome, marker: int | None) -> None:
        if begun is not None and self._gap_between(begun.last, marker):
            outcome = Outcome.UNKNOWN
        is_first = len(self._markers.get(producer, ())) == (0 if marker is None else 1)
        if begun is None:
            self.found.append(Transaction(producer, None, None, 0, outcome, marker, True if is_first else None))
            return
        # That some transaction was under way at the start does not say that it was this one.
        began_before = None if is_first and not self.starts_between else False
        self.found.append(Transaction(producer, begun.first, begun.last, begun.records, outcome, marker, began_before))

    def _gap_between(self, last_offset: int, marker: int | None) -> bool:
        return any(
            (marker is None or start < marker) and (end is None or end > last_offset + 1) for start, end in self.gaps
        )


def marker_of(batch: RawBatch) -> Outcome | None:
    """What a control batch says of its producer's transaction; None for control records of another kind."""
    try:
        records = list(read_records(batch.data, 0, batch.header))
    except UnreadableBatchError:
        return Outcome.UNKNOWN
    if not records:  # compaction keeps the empty batch of a marker whose transaction is long gone
        return None
    outcomes = {ControlType.COMMIT: Outcome.COMMITTED, ControlType.ABORT: Outcome.ABORTED}
    kind = records[0].control_type
    return Outcome.UNKNOWN if kind is None else outcomes.get(kind)
