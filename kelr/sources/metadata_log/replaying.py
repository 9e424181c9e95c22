"""Replay of a metadata log to a moment, and what stands in the way of trusting the result."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from kelr.errors import BadInputError, UsageError
from kelr.protocol.metadata_records import KIND_OF_KEY
from kelr.replay.image import MetadataImage
from kelr.replay.packed import Folding, IdleRun
from kelr.replay.records import Change, RecordBatch

# Places in the metadata log as people name them: an offset, or a time.


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[0-9]{1,19}")
_FIRST_TIME = 10**12
"""Numbers from here on are milliseconds since 1970 (this one is of 2001): no metadata log has such offsets."""
_LAST_MS = 253_402_300_799_999


@dataclass(frozen=True, slots=True)
class Moment:
    """Either an offset or a time; the other one is None."""

    offset: int | None = None
    """The state after the record before this one: all records of lower offsets have been applied."""
    time_ms: int | None = None
    """The state after the last record that was appended at this time or before, in milliseconds since 1970 UTC."""


def read_moment(text: str) -> Moment:
    """``4711`` is an offset; ``2026-08-20T03:12:00Z``, ``2026-08-20 03:12`` (UTC where no zone is said) and
    milliseconds since 1970 are times.

    Raises:
        UsageError: it is none of these.
    """
    stripped = text.strip()
    if _NUMBER.fullmatch(stripped):
        number = int(stripped)
        if number < _FIRST_TIME:
            return Moment(offset=number)
        if number <= _LAST_MS:
            return Moment(time_ms=number)
    else:
        try:
            moment = datetime.fromisoformat(stripped)
            in_utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
            time_ms = (in_utc - _EPOCH) // timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            time_ms = -1
        if time_ms >= 0:
            return Moment(time_ms=time_ms)
    raise UsageError(
        f"--at {text!r} is neither an offset of the metadata log nor a time",
        next_step="give an offset such as 4711, or a time such as 2026-08-20T03:12:00Z (UTC where no zone is said)",
    )


def time_text(time_ms: int) -> str:
    """``2026-08-20T03:12:00.123Z``; the bare number where that is no time."""
    if not 0 <= time_ms <= _LAST_MS:
        return f"{time_ms} ms"
    moment = _EPOCH + timedelta(milliseconds=time_ms)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03d}Z"


CRITICAL = frozenset(
    {
        "RegisterBrokerRecord",
        "UnregisterBrokerRecord",
        "TopicRecord",
        "PartitionRecord",
        "ConfigRecord",
        "PartitionChangeRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
        "RemoveTopicRecord",
        "FeatureLevelRecord",
        "BrokerRegistrationChangeRecord",
        "BeginTransactionRecord",
        "EndTransactionRecord",
        "AbortTransactionRecord",
        "ClearElrRecord",
    }
)
"""Kinds of records without which nobody knows who leads: none of them is passed over because it is not understood."""

_LATER = "give a later --at"
_EARLIER = "give an earlier --at, or none: then it is the end"

Observer = Callable[[RecordBatch, list[Change]], None]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Where a replay ended."""

    image: MetadataImage
    next_offset: int
    """All records of the log below this offset have been applied."""


def replay(
    batches: Iterable[RecordBatch],
    at: Moment | None = None,
    *,
    name: str,
    observer: Observer | None = None,
    image: MetadataImage | None = None,
) -> Replayed:
    """Apply batches up to a moment; all of them where none is given.

    Args:
        name: the log's, for errors.
        observer: told of each batch that was applied and what it did.
        image: the image that they are applied to; a new one where none is given.

    Raises:
        BadInputError: the log holds nothing.
        UsageError: the moment is outside the log, or where records are missing.
    """
    replaying = _Replay(MetadataImage() if image is None else image, at or Moment(), name)
    if observer is None:
        with _no_collecting():
            replaying.fold(batches)
    else:
        for part in replaying.parts(batches):
            observer(part, replaying.image.apply(part))
    return replaying.result()


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Nothing that a replay makes refers to itself, and looking for what does takes a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Replay:
    def __init__(self, image: MetadataImage, at: Moment, name: str) -> None:
        self.image, self.at, self.name = image, at, name
        self.first: tuple[int, int] | None = None
        """Offset and time from which on the state is known."""
        self.next_offset = 0
        self.ended = False

    def parts(self, batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        """What is to be applied."""
        for batch in batches:
            part = self.part(batch)
            if part is not None:
                yield part
            if self.ended:
                return

    def fold(self, batches: Iterable[RecordBatch]) -> None:
        """Apply them, where nobody asks what each did."""
        folding = Folding(self.image)
        for part in self.parts(batches):
            folding.apply(part)
        folding.finish()

    def part(self, batch: RecordBatch) -> RecordBatch | None:
        """What of the batch is to be applied; None and `ended` at the end."""
        checkpoint = batch.checkpoint_end
        start = batch.base_offset if checkpoint is None else checkpoint
        run = batch.records
        begun_ms = run.time_of(0) if isinstance(run, IdleRun) else batch.timestamp_ms
        if self.first is None:
            self.first = (start, begun_ms)
        if isinstance(run, IdleRun) and self.at.time_ms is not None:
            later = run.first_after(self.at.time_ms)
            if later is not None:
                self.ended = True
                if later:
                    batch = _first(batch, later)
        if self._is_later(batch, start, begun_ms):
            self.ended = True
            self._check_reached(start, begun_ms)
            return None
        if checkpoint is None and self.at.offset is not None and batch.next_offset > self.at.offset:
            batch = _first(batch, self.at.offset - batch.base_offset)
        self.next_offset = batch.next_offset if checkpoint is None else checkpoint
        return batch

    def _is_later(self, batch: RecordBatch, start: int, begun_ms: int) -> bool:
        if self.at.offset is not None:
            return start > self.at.offset or (batch.checkpoint_end is None and start == self.at.offset)
        return self.at.time_ms is not None and begun_ms > self.at.time_ms

    def _check_reached(self, start: int, time_ms: int) -> None:
        """The batch that is not applied begins where the applied ones end; else nobody knows what was in between."""
        assert self.first is not None
        if self.image.at is None:
            if start == 0:
                raise UsageError(
                    f"{self._wanted()} is before the first record of the {self.name}",
                    next_step=_LATER,
                    code="moment-not-in-log",
                )
            begins = f"which begins at offset {self.first[0]}, {time_text(self.first[1])}"
            raise UsageError(
                f"{self._wanted()} is before the {self.name}, {begins}", next_step=_LATER, code="moment-not-in-log"
            )
        if self.next_offset in {start, self.at.offset}:
            return
        known = time_text(self.image.at.timestamp_ms)
        raise UsageError(
            f"{self._wanted()}: records {self.next_offset} to {start - 1} of the {self.name} are missing",
            next_step=f"--at {self.next_offset} ({known}) and --at {start} ({time_text(time_ms)}) are known",
            code="moment-not-in-log",
        )

    def result(self) -> Replayed:
        at = self.image.at
        if at is None:
            raise BadInputError(f"{self.name}: it holds no record", next_step="give a copy that does")
        if not self.ended and (
            (self.at.offset is not None and self.at.offset > self.next_offset)
            or (self.at.time_ms is not None and self.at.time_ms > at.timestamp_ms)
        ):
            ends = f"ends at offset {self.next_offset}, {time_text(at.timestamp_ms)}"
            raise UsageError(
                f"{self._wanted()} is after the {self.name}, which {ends}", next_step=_EARLIER, code="moment-not-in-log"
            )
        return Replayed(self.image, self.next_offset)

    def _wanted(self) -> str:
        return f"offset {self.at.offset}" if self.at.time_ms is None else time_text(self.at.time_ms)


def _first(batch: RecordBatch, count: int) -> RecordBatch:
    """The first records of a batch, with the time of the last of them where each has its own."""
    records = batch.records[:count]
    time_ms = records.time_of(count - 1) if isinstance(records, IdleRun) else batch.timestamp_ms
    return replace(batch, records=records, timestamp_ms=time_ms)


def check_understood(image: MetadataImage, *, name: str) -> list[str]:
    """What weakens the state that was replayed, a sentence each.

    Raises:
        BadInputError: records are not understood without which nobody knows who leads.
    """
    warnings = []
    for (key, version), count in sorted(image.not_understood.items()):
        records = f"{count} record{'s' * (count != 1)}"
        kind = KIND_OF_KEY.get(key)
        if kind in CRITICAL:
            raise BadInputError(
                f"{name}: {records} of {kind} version {version}, which is newer than kelr knows: what they say of"
                " leaders cannot be left out",
                next_step="use a newer kelr",
            )
        what = f"an unknown kind (API key {key})" if kind is None else kind
        warnings.append(f"{records} of {what}, version {version}, left out: kelr does not know what it says")
    if image.misfits:
        records = f"{image.misfits} record{'s' * (image.misfits != 1)}"
        warnings.append(
            f"{records} did not fit what the log said before, and were left out: states that they changed may be wrong"
        )
    return warnings
