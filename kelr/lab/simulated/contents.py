"""What the records of a simulated cluster hold: the batches as producers sent them, found by the ids of their records.

Logs keep ids only (`kelr.simulation.logs.Record`), so that every replica's copy is one. A record that nobody produced
over the wire (a scenario's, a snapshot's) has contents made up from its id: the same each time.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from kelr.lab.simulated.batches import NewRecord, cut, encoded, placed
from kelr.lab.simulated.producers import ProducerStates
from kelr.simulation.logs import Record, SimulatedLog

MOST_BYTES = 512 * 1024 * 1024
"""Of batches that logs hold; a producer that sends more is refused."""
MADE_UP_BATCH = 100
"""The most records in a batch that is made up."""
MADE_UP_MS = 1_700_000_000_000
"""The timestamp of record 0; each later one is a millisecond newer."""
_SWEEP_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it lies in one log."""

    base_offset: int
    """Below the log's start where retention took the head of the batch: a log is cut between batches only."""
    next_offset: int
    data: bytes
    """With this log's offset and the leader epoch that wrote it."""


class Contents:
    """Batches by the id of their first record; ids grow with every batch.

    Args:
        most_bytes: of batches that are kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.producers = ProducerStates()
        self._firsts: list[int] = []
        self._batches: list[tuple[int, bytes]] = []
        """(number of offsets, bytes), beside `_firsts`."""
        self.size_bytes = 0
        self._sweep_at = _SWEEP_BYTES

    def room_for(self, size_bytes: int, held: Iterable[SimulatedLog]) -> bool:
        """Whether that much can be kept, once everything is dropped that none of these logs holds."""
        if self.size_bytes + size_bytes > min(self._sweep_at, self._most_bytes):
            self.keep(held)
        return self.size_bytes + size_bytes <= self._most_bytes

    def put(self, first_id: int, count: int, data: bytes) -> None:
        """Keep a batch; its records have these ids in turn. Ids must be higher than all before."""
        assert not self._firsts or first_id >= self._firsts[-1] + self._batches[-1][0]
        self._firsts.append(first_id)
        self._batches.append((count, data))
        self.size_bytes += len(data)

    def keep(self, logs: Iterable[SimulatedLog]) -> None:
        """Drop the batches of which none of these logs holds a record."""
        held = {record.id for log in logs for record in log.records}
        kept = [
            (first, batch)
            for first, batch in zip(self._firsts, self._batches, strict=True)
            if any(number in held for number in range(first, first + batch[0]))
        ]
        self._firsts = [first for first, _ in kept]
        self._batches = [batch for _, batch in kept]
        self.size_bytes = sum(len(data) for _, data in self._batches)
        self._sweep_at = max(_SWEEP_BYTES, 2 * self.size_bytes)

    def batches(self, log: SimulatedLog, offset: int, end: int | None = None) -> Iterator[Batch]:
        """The batches of a log from the one that holds `offset` on, up to the offset `end`.

        A batch of which only a head lies before `end` comes with that head alone.
        """
        stop = min(log.end, log.end if end is None else end)
        while log.start <= offset < stop:
            batch = self._at(log, offset - log.start, stop - log.start)
            yield batch
            offset = batch.next_offset

    def _at(self, log: SimulatedLog, index: int, stop: int) -> Batch:
        """The batch around the record with this index in the log; `stop` is an index too."""
        record = log.records[index]
        low, high, kept = self._bounds(record.id)
        first = _reach(log.records, index, -1, low, 0)
        last = _reach(log.records, index, 1, high - 1, stop - 1)
        start_id, end_id = log.records[first].id, log.records[last].id + 1
        next_offset = log.start + last + 1
        if kept is None:
            made = _made_up(start_id, end_id - start_id)
            return Batch(log.start + first, next_offset, placed(made, log.start + first, record.epoch))
        data = kept if end_id == high else cut(kept, end_id - low)
        base_offset = next_offset - (end_id - low)
        return Batch(base_offset, next_offset, placed(data, base_offset, record.epoch))

    def _bounds(self, number: int) -> tuple[int, int, bytes | None]:
        """(first id, id after the last, bytes) of the batch that this record came in; no bytes for a made-up one."""
        at = bisect.bisect_right(self._firsts, number) - 1
        low = number - number % MADE_UP_BATCH
        if at >= 0:
            first, (count, data) = self._firsts[at], self._batches[at]
            if number < first + count:
                return first, first + count, data
            low = max(low, first + count)
        high = number - number % MADE_UP_BATCH + MADE_UP_BATCH
        if at + 1 < len(self._firsts):
            high = min(high, self._firsts[at + 1])
        return low, high, None


def _reach(records: tuple[Record, ...], index: int, step: int, last_id: int, last_index: int) -> int:
    """How far the records go on from this index with one id after the other, in one epoch."""
    epoch = records[index].epoch
    while index != last_index and records[index].id != last_id:
        following = records[index + step]
        if following.id != records[index].id + step or following.epoch != epoch:
            break
        index += step
    return index


@lru_cache(maxsize=4096)
def _made_up(first_id: int, count: int) -> bytes:
    return encoded([made_up(number) for number in range(first_id, first_id + count)])


def made_up(number: int) -> NewRecord:
    """What a record holds that nobody produced."""
    return NewRecord(MADE_UP_MS + number, f"key-{number}".encode(), f"record {number}".encode())
