"""The metadata log in stretches of very many records, for who asks neither which record was in which batch nor what
each did: what `BatchReader` gives, at a fraction of the time.

A window of the log becomes a table of its batches (`walking`) and columns of its changes of partitions (`shapes`).
Where records of another kind stand between these, in batches with them or alone, they are read one by one, and end a
stretch. Whatever does not fit exactly is left to `BatchReader`, which also has the last word on what cannot be read.

numpy is loaded with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kelr.replay.records import MetadataRecord, RecordBatch
from kelr.replay.stretches import Columns, Stretch
from kelr.sources.metadata_log.decoding import decode
from kelr.sources.metadata_log.reading import BatchReader
from kelr.sources.metadata_log.runs import told_of
from kelr.sources.metadata_log.shapes import BEHIND, MOST_PLACES, Fitting, FoundChanges, Spans
from kelr.sources.metadata_log.walking import BatchTable, batches_in
from kelr.sources.records.batches import HEADER_SIZE, BatchHeader, Stop, read_header
from kelr.sources.records.errors import UnreadableBatchError
from kelr.sources.records.records import next_record

Numbers = npt.NDArray[np.int64]
_LONGEST_HEAD = 10
"""Bytes before the value of a record that is looked for."""
_ROUNDS = 8
"""So often the changes behind other records of a batch are looked for at once; what is left is read one by one."""


@dataclass(slots=True)
class _Mixed:
    """A batch in which not all records fit, as far as it was read."""

    row: int
    header: BatchHeader
    at: int
    """Where the next record begins."""
    place: int
    tried: int
    """The place at which changes were last looked for."""
    others: list[tuple[int, MetadataRecord]] = field(default_factory=list)
    """Place and record of each that does not fit."""


class StretchReader:
    """The batches in these bytes, in stretches: iterate, then ask `stop`. As `BatchReader` without a checkpoint."""

    def __init__(self, data: bytes, *, base: int = 0) -> None:
        self._size, self._base = len(data), base
        self._data = data + bytes(BEHIND)
        self.stop: Stop | None = None
        """Where the run ended and why; None as long as it has not."""

    def __iter__(self) -> Iterator[RecordBatch]:
        table, end = batches_in(self._data, 0, self._size)
        window = _Window(self._data, table)
        for one in window.pieces():
            if isinstance(one, RecordBatch):
                yield one
                continue
            batch = self._one(int(table.begin[one]), int(table.end[one]))
            if batch is None:
                return
            yield batch
        # What comes here is no whole batch: the reader of single ones says why.
        self._one(end, self._size)
        if self.stop is None:
            raise AssertionError("a batch that was not walked over can be read")

    def _one(self, at: int, end: int) -> RecordBatch | None:
        """The batch at this position; None and `stop` where there is none."""
        reader = BatchReader(memoryview(self._data)[at:end], base=self._base + at)
        batch = next(iter(reader), None)
        self.stop = reader.stop
        return batch


class _Window:
    """What is in a window, by numbers that all its records have, counted from 0: offsets may go astray."""

    def __init__(self, data: bytes, table: BatchTable) -> None:
        self._data, self._table = data, table
        self._found = FoundChanges(data)
        self._last = table.count.cumsum()
        """The number behind the last record of each batch."""
        self._first = self._last - table.count
        self._mixed: dict[int, _Mixed] = {}
        self._refused: set[int] = set()
        """Batches that have to be read another way: without any change that fits, or unreadable."""
        self._records: list[Numbers] = []
        self._numbers: list[Numbers] = []
        self._find()
        self._columns = self._sorted()

    def pieces(self) -> Iterator[RecordBatch | int]:
        """Stretches and other records in order, and rows of batches that have to be read another way."""
        table, begun = self._table, 0
        # In one stretch offsets follow each other, in one epoch.
        parted = (table.offset[1:] != (table.offset + table.count)[:-1]) | (table.epoch[1:] != table.epoch[:-1])
        rows = {*(parted.nonzero()[0] + 1).tolist(), *(~table.usual).nonzero()[0].tolist(), *self._mixed}
        for row in sorted(rows | self._refused):
            yield from self._stretch(row - 1, begun, int(self._first[row]))
            begun = int(self._first[row])
            if row in self._refused or not table.usual[row]:
                yield row
                begun = int(self._last[row])
            elif row in self._mixed:
                for place, others in _together(self._mixed[row].others):
                    number = int(self._first[row]) + place
                    yield from self._stretch(row, begun, number)
                    yield self._batch(row, number, others)
                    begun = number + len(others)
        if len(self._last):
            yield from self._stretch(len(self._last) - 1, begun, int(self._last[-1]))

    def _stretch(self, row: int, begin: int, end: int) -> Iterator[RecordBatch]:
        """The records with these numbers, if there are any; the last of them is in this batch."""
        if begin < end:
            elements = self._columns.places.searchsorted([begin, end])
            changes = self._columns.part(int(elements[0]), int(elements[1]))
            times = self._table.time_ms
            records = Stretch(changes, start=begin, stop=end, ends=self._last, times_ms=times, told_of=told_of)
            yield self._batch(row, end - 1, records, count=end - begin)

    def _batch(self, row: int, number: int, records: Sequence[MetadataRecord], *, count: int = 1) -> RecordBatch:
        """Records, of which the one with this number, in this batch, is the `count`-th."""
        table = self._table
        offset = int(table.offset[row]) + number - int(self._first[row]) - count + 1
        return RecordBatch(offset, int(table.epoch[row]), int(table.time_ms[row]), records)

    # Which changes there are.

    def _find(self) -> None:
        table = self._table
        rows = (table.usual & ~table.idle).nonzero()[0]
        spans = Spans(table.begin[rows] + HEADER_SIZE, table.end[rows], np.zeros(len(rows), np.int64))
        fitting = self._take(rows, spans)
        near = self._found.at.searchsorted(spans.end) - self._found.at.searchsorted(spans.begin)
        self._refused.update(rows[near == 0].tolist())
        partly = (near > 0) & ((fitting.counts != table.count[rows]) | (fitting.ends != table.end[rows]))
        for at, row, place in zip(
            fitting.ends[partly].tolist(), rows[partly].tolist(), fitting.counts[partly].tolist(), strict=True
        ):
            header = read_header(self._data, int(table.begin[row]))
            assert header is not None
            self._mixed[row] = _Mixed(row, header, at, place, tried=place)
        self._read_others()

    def _take(self, rows: Numbers, spans: Spans) -> Fitting:
        fitting = self._found.fitting(spans)
        self._records.append(fitting.records)
        self._numbers.append(fitting.places + self._first[rows].repeat(fitting.counts))
        return fitting

    def _read_others(self) -> None:
        """Read the others, and the changes behind them as far as they fit."""
        reading = list(self._mixed.values())
        for rounds in range(_ROUNDS):
            reading = [one for one in reading if self._read_one_by_one(one, to_end=rounds == _ROUNDS - 1)]
            if not reading:
                return
            rows = np.array([one.row for one in reading])
            at, place = np.array([one.at for one in reading]), np.array([one.place for one in reading])
            fitting = self._take(rows, Spans(at, self._table.end[rows], place))
            for one, count, end in zip(reading, fitting.counts.tolist(), fitting.ends.tolist(), strict=True):
                one.at, one.place = end, one.place + count
                one.tried = one.place

    def _read_one_by_one(self, one: _Mixed, *, to_end: bool) -> bool:
        """Read records until changes follow that may fit; whether they do. Otherwise the batch has been read."""
        begin, end = int(self._table.begin[one.row]) + HEADER_SIZE, int(self._table.end[one.row])
        inside = memoryview(self._data)[begin:end]
        try:
            while one.place < one.header.count:
                if not to_end and self._may_fit(one, end):
                    one.tried = one.place
                    return True
                delta, record, at = next_record(inside, one.at - begin, one.header)
                if delta != one.place or record.value is None:
                    raise UnreadableBatchError("records are not what the metadata log has")
                one.others.append((one.place, decode(record.value)))
                one.at, one.place = begin + at, one.place + 1
            if one.at != end:
                raise UnreadableBatchError("something follows the last record")
        except (UnreadableBatchError, IndexError):
            self._refused.add(one.row)
        return False

    def _may_fit(self, one: _Mixed, end: int) -> bool:
        if one.place == one.tried or one.place >= MOST_PLACES:
            return False
        place = int(self._found.at.searchsorted(one.at))
        found = int(self._found.at[place]) if place < len(self._found.at) else end
        return found < min(end, one.at + _LONGEST_HEAD + 1)

    def _sorted(self) -> Columns:
        if not self._mixed:
            return self._found.columns(self._records[0], self._numbers[0])
        records, numbers = np.concatenate(self._records), np.concatenate(self._numbers)
        order = numbers.argsort(kind="stable")
        records, numbers = records[order], numbers[order]
        if self._refused:
            rows = np.array(sorted(self._refused))
            kept = ~np.isin(self._last.searchsorted(numbers, "right"), rows)
            records, numbers = records[kept], numbers[kept]
        return self._found.columns(records, numbers)


def _together(others: Sequence[tuple[int, MetadataRecord]]) -> Iterator[tuple[int, tuple[MetadataRecord, ...]]]:
    """Runs of records that stand one behind the other, each with the place of its first."""
    begun = 0
    for number in range(1, len(others) + 1):
        if number == len(others) or others[number][0] != others[number - 1][0] + 1:
            yield others[begun][0], tuple(record for _, record in others[begun:number])
            begun = number
