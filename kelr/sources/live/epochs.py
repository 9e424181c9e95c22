"""Finding out which leader epochs a log holds, from a broker that answers one kind of question.

The question is a Fetch whose fetch offset lies beyond every log, with `last_fetched_epoch` e. Kafka answers it from the
log's epoch history (Partition.fetchRecords, LeaderEpochFileCache.endOffsetFor):

- e above the newest epoch of the log, or no epoch at all: OFFSET_OUT_OF_RANGE;
- else the diverging epoch: the largest epoch <= e in the log, and its end offset;
- e below the oldest epoch of the log: e itself, with the offset where the oldest epoch starts. That epoch has no
  records here, although the answer looks like any other.

So "answered" holds for every e up to the newest epoch and for none above it, and a search finds the newest. A leader
writes its epoch into the history when it takes over, before any record: the newest epoch may be one without records.
Only the newest can be, because a later epoch that starts at the same offset replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kelr.model import EpochEnd


@dataclass(frozen=True, slots=True)
class Above:
    """The broker's OFFSET_OUT_OF_RANGE: the epoch asked for is above all that the log holds."""


@dataclass(frozen=True, slots=True)
class Below:
    """The largest epoch at or below the one asked for, where it ends, and what else the same answer tells."""

    end: EpochEnd
    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Epochs:
    """What a search found out. `newest` None: the log's history names no epoch."""

    newest: int | None
    """The last written epoch: that of the last record, or of the last record that retention took. None: no record, or
    records without an epoch (written before Kafka 0.11)."""
    lineage: tuple[EpochEnd, ...] | None
    """Oldest first; None where nobody asked for it."""
    log_end: int | None
    high_watermark: int | None
    log_start: int | None
    last_stable_offset: int | None = None


class EpochSearch:
    """The questions about one log: ask `next_epoch`, tell `answered`, until `next_epoch` is None; then `result`.

    First gallops down from the leader epoch that the broker knows (logs mostly end in a recent epoch), then halves
    the rest: at most about 2 log2(epochs) questions. Then it walks down: one step to see whether the newest epoch
    holds records, or all the way for the lineage.

    Args:
        leader_epoch: the partition's leader epoch as the broker knows it; no log of its holds a higher one.
    """

    def __init__(self, leader_epoch: int, *, lineage: bool) -> None:
        self._lineage = lineage
        self._lowest_above = leader_epoch + 1
        self._newest: int | None = None
        self._stride = 1
        self._chain: list[EpochEnd] = []
        """Newest first. The first is certain; of the others, the last may turn out to be no epoch of this log."""
        self._walked = False
        self._newest_is_empty = False
        self._latest: Below | None = None

    def next_epoch(self) -> int | None:
        """The epoch to ask about now; None when nothing more is needed."""
        if self._lowest_above == 0 or self._walked:
            return None
        if self._newest is None:
            return max(0, self._lowest_above - self._stride)
        if self._newest + 1 < self._lowest_above:
            return (self._newest + self._lowest_above) // 2
        return self._chain[-1].epoch - 1

    def answered(self, asked: int, answer: Above | Below) -> None:
        """Take the answer about the epoch `asked`, which was `next_epoch`'s."""
        if isinstance(answer, Above):
            self._above(asked)
            return
        self._latest = answer
        if self._newest is None or asked > self._newest:
            self._newest = asked
            self._chain = [answer.end]
            self._walked = self._newest + 1 == self._lowest_above and self._bottom(answer.end)
        else:
            self._walk(asked, answer)

    def _above(self, asked: int) -> None:
        if self._newest is not None and asked <= self._newest:
            # The log was truncated between two answers; what is known no longer holds.
            self._newest, self._chain, self._stride = None, [], 1
        else:
            self._stride *= 2
        self._lowest_above = asked
        if self._newest is not None and self._newest + 1 == self._lowest_above:
            self._walked = self._bottom(self._chain[-1])

    def _walk(self, asked: int, answer: Below) -> None:
        found, above = answer.end, self._chain[-1]
        if found.end_offset <= (answer.log_start or 0):
            self._walked = True
            return
        if len(self._chain) > 1 and found.end_offset == above.end_offset:
            # Two epochs cannot end at one offset: the one above was only the echo of the question.
            echo = self._chain.pop()
            if found.epoch == asked:
                self._walked = True
                self._newest_is_empty = echo.end_offset == self._chain[0].end_offset
                return
        self._chain.append(found)
        undecided = found.epoch == asked and found.end_offset == self._chain[0].end_offset
        self._walked = self._bottom(found) or not (self._lineage or undecided)

    def _bottom(self, end: EpochEnd) -> bool:
        return end.epoch <= 0

    def result(self) -> Epochs:
        """What was learnt; call when `next_epoch` is None."""
        latest = self._latest
        if latest is None or not self._chain:
            return Epochs(None, () if self._lineage else None, None, None, None)
        log_end, start = self._chain[0].end_offset, latest.log_start
        held = [end for end in self._chain if start is None or end.end_offset > start]
        if self._newest_is_empty or (len(held) > 1 and held[1].end_offset == held[0].end_offset):
            held = held[1:]
        empty = log_end == 0 if start is None else log_end <= start
        newest = held[0].epoch if held else None
        if empty and log_end > 0:
            newest = self._chain[0].epoch
        return Epochs(
            newest=newest,
            lineage=(() if empty else tuple(reversed(held))) if self._lineage else None,
            log_end=log_end,
            high_watermark=latest.high_watermark,
            log_start=start,
            last_stable_offset=latest.last_stable_offset,
        )
