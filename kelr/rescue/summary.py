"""What is in a rescue file, tail by tail and record by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from kelr.rescue.archive import Dump
from kelr.rescue.manifest import SavedTail
from kelr.rescue.transactions import Outcome, Transaction, Transactions
from kelr.sources.records.batches import BatchHeader
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import ControlType, Record, read_records


@dataclass(frozen=True, slots=True)
class TailSummary:
    """What the batches of a tail hold."""

    tail: SavedTail
    first_timestamp_ms: int | None
    last_timestamp_ms: int | None
    producers: int
    """Distinct producer ids; producers without one are not counted."""
    transactions: tuple[Transaction, ...]
    unreadable: tuple[str, ...]
    """Batches whose checksum holds and whose records cannot be read all the same."""
    cut_records: int = 0
    """Records that the leader keeps, of transactions whose end it lacks: consumers with read_committed get none of them
    while those hang, nor when they are aborted."""

    compacted_away: int = 0
    """In a compacted topic: offsets that were asked for, could be read, and hold no record."""

    def count(self, outcome: Outcome) -> int:
        """Transactions with records here that ended so."""
        return sum(one.outcome is outcome and one.records > 0 for one in self.transactions)


@dataclass(frozen=True, slots=True)
class SavedRecord:
    """One record of a tail, or one marker."""

    tail: SavedTail
    header: BatchHeader
    record: Record
    outcome: Outcome | None
    """How its transaction ended; None for a record of none."""

    @property
    def control_type(self) -> ControlType | None:
        return self.record.control_type if self.header.control else None


def gaps_of(tail: SavedTail) -> list[tuple[int, int | None]]:
    """A tail's gaps as offsets `[from, to)`."""
    return [(gap.from_offset, gap.to_offset) for gap in tail.gaps]


def read_transactions(dump: Dump, tail: SavedTail) -> Transactions:
    """The transactions of a tail; reads all of it."""
    transactions = Transactions(gaps_of(tail), tail.starts_between_transactions)
    for batch in dump.batches(tail):
        transactions.feed(batch)
    transactions.finish()
    return transactions


def summarize(dump: Dump, tail: SavedTail) -> TailSummary:
    """Read all of a tail once, every record of it decoded."""
    transactions = Transactions(gaps_of(tail), tail.starts_between_transactions)
    producers: Counter[int] = Counter()
    first: int | None = None
    last: int | None = None
    unreadable: list[str] = []
    kept: list[BatchHeader] = []
    held = 0
    for batch in dump.batches(tail):
        header = batch.header
        transactions.feed(batch)
        if tail.lost_from is not None and header.transactional and header.base_offset < tail.lost_from:
            kept.append(header)
        if header.producer_id is not None:
            producers[header.producer_id] += 1
        try:
            records = list(read_records(batch.data, 0, header))
        except UnreadableBatchError as error:
            unreadable.append(f"the batch at offset {header.base_offset}: {error}")
            continue
        held += sum(tail.from_offset <= one.offset < tail.to_offset for one in records)
        times = [one.timestamp_ms for one in records if one.timestamp_ms is not None]
        if times and not header.control:
            first = min(times) if first is None else min(first, *times)
            last = max(times) if last is None else max(last, *times)
    found = tuple(transactions.finish())
    cut = sum(header.count for header in kept if not header.control and _is_cut(tail, transactions, header))
    missing = sum((tail.to_offset if gap.to_offset is None else gap.to_offset) - gap.from_offset for gap in tail.gaps)
    away = max(0, tail.to_offset - tail.from_offset - held - missing) if tail.compacted and not unreadable else 0
    return TailSummary(tail, first, last, len(producers), found, tuple(unreadable), cut, away)


def _is_cut(tail: SavedTail, transactions: Transactions, header: BatchHeader) -> bool:
    """Whether a batch that the leader keeps is of a transaction that was committed, and whose marker it lacks."""
    marker = transactions.marker(header)
    if marker is None or transactions.outcome(header) is not Outcome.COMMITTED:
        return False
    return tail.lost_from is not None and marker.offset >= tail.lost_from


def records_of(dump: Dump, tail: SavedTail) -> Iterator[SavedRecord]:
    """Every record and marker of a tail, in order. The tail is read twice: how a transaction ended stands behind it.

    Raises:
        UnreadableBatchError: the records of a batch cannot be read.
    """
    transactions = read_transactions(dump, tail)
    for batch in dump.batches(tail):
        outcome = transactions.outcome(batch.header)
        for record in read_records(batch.data, 0, batch.header):
            yield SavedRecord(tail, batch.header, record, outcome)
