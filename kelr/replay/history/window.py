"""Which part of the metadata log is told."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.replay.changes import At
from kelr.replay.records import RecordBatch


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the log, by offset or by the controller's clock; exactly one of the two is given."""

    offset: int | None = None
    at_ms: int | None = None

    def reached_by(self, at: At) -> bool:
        """Whether a record is at this moment or after it."""
        if self.offset is not None:
            return at.offset >= self.offset
        return self.at_ms is not None and at.timestamp_ms >= self.at_ms


@dataclass(frozen=True, slots=True)
class Window:
    """From a moment on, up to another; None is open."""

    since: Moment | None = None
    until: Moment | None = None
    """The first moment that is told no more."""

    def holds(self, at: At) -> bool:
        return self.begun(at) and not (self.until is not None and self.until.reached_by(at))

    def begun(self, at: At) -> bool:
        return self.since is None or self.since.reached_by(at)

    def within(self, at: At) -> At:
        """The place, or the end of the window if that comes first: idle stretches come as one batch."""
        if self.until is None or not self.until.reached_by(at):
            return at
        offset = at.offset if self.until.offset is None else min(at.offset, self.until.offset - 1)
        at_ms = at.timestamp_ms if self.until.at_ms is None else min(at.timestamp_ms, self.until.at_ms)
        return At(offset, at.epoch, at_ms)

    def over(self, batch: RecordBatch) -> bool:
        """Whether the log need not be read from this batch on."""
        first = At(batch.base_offset, batch.epoch, batch.timestamp_ms)
        return self.until is not None and not batch.of_checkpoint and self.until.reached_by(first)
