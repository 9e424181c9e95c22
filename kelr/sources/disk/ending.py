"""Where a log ends once its broker has started again, and what lies behind that.

After a clean shutdown Kafka believes what it finds: it reads on from the last entry of the last segment's offset index
and checks no checksum. After any other it reads every segment from the one with the recovery point on, and cuts the log
where the first batch is torn or fails its checksum; later segments go.

Source: `LogLoader.recoverLog`, `LogSegment.recover` and `readNextOffset` of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.sources.disk.epochs import EpochCache
from kelr.sources.disk.segments import (
    Segment,
    SegmentFile,
    fits_index,
    has_index,
    last_index_position,
    position_before,
)
from kelr.sources.records.batches import BatchHeader, Stop, StopKind


class UnreadableError(Exception):
    """The log's end cannot be told; the words say why."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a log."""

    log_end: int
    last_epoch: int | None
    """Leader epoch of the last batch before that; None where there is none, or where it carries none."""
    has_batches: bool
    """Whether a batch was seen before the end."""
    behind: str = ""
    """What lies behind the end, in words; empty where nothing does."""
    bytes_behind: int = 0
    damage: str = ""
    """What is wrong with the log before its end, though Kafka does not look; empty where nothing was seen."""


def recovered_end(
    segments: Sequence[SegmentFile], recovery_point: int, epochs: EpochCache, *, checksums: bool
) -> Ending:
    """The end after an unclean shutdown.

    Args:
        epochs: takes the epochs of the batches that are read.
        checksums: False trusts the bytes of a batch that is there as a whole.

    Raises:
        UnreadableError, OSError.
    """
    before, unflushed = _split(segments, recovery_point)
    last: BatchHeader | None = None
    for number, file in enumerate(unflushed):
        with Segment(file) as segment:
            for _, header in segment.batches(0, check_crc=checksums):
                if header.partition_leader_epoch is not None:
                    epochs.saw(header.partition_leader_epoch, header.base_offset)
                last = header
            stop = _stop_of(segment)
            end = file.base if last is None or last.base_offset < file.base else last.next_offset
            if stop.kind is not StopKind.END:
                last = last if last is not None else _last_of(before)
                return _cut(segment, end, last, unflushed[number + 1 :])
    return _ended(segments, last, before)


def _split(segments: Sequence[SegmentFile], recovery_point: int) -> tuple[Sequence[SegmentFile], Sequence[SegmentFile]]:
    """The segments that Kafka trusts, and those that it recovers: from the one that holds the recovery point on."""
    first = max((number for number, file in enumerate(segments) if file.base <= recovery_point), default=0)
    return segments[:first], segments[first:]


def _cut(segment: Segment, end: int, last: BatchHeader | None, later: Sequence[SegmentFile]) -> Ending:
    """The log ends within a segment: what is behind that in it goes, and the later ones, too."""
    stop = _stop_of(segment)
    if segment.disordered:
        # The checksum covers neither offset nor epoch, so Kafka might keep such a batch.
        raise UnreadableError(f"{segment.file.path}, byte {stop.at}: {stop.text}")
    without = [file for file in (segment.file, *later) if later and not has_index(file)]
    if without:
        # Kafka recovers segments without an index before all others, each for itself (`LogLoader.loadSegmentFiles`).
        raise UnreadableError(
            f"{segment.file.path}, byte {stop.at}: {stop.text}; {without[0].index} is missing, so that Kafka leaves a"
            " hole in the log there, or does not start"
        )
    behind = f"{segment.file.path}, byte {stop.at}: {stop.text}"
    if later:
        behind += f"; {len(later)} later segment{'s' if len(later) > 1 else ''} from offset {later[0].base} on"
    size = segment.size_bytes - stop.at + sum(_size(file) for file in later)
    return Ending(end, _epoch(last), last is not None, f"Kafka cuts off {behind}", size)


def _ended(segments: Sequence[SegmentFile], last: BatchHeader | None, before: Sequence[SegmentFile]) -> Ending:
    base = segments[-1].base
    end = base if last is None or last.base_offset < base else last.next_offset
    last = last if last is not None else _last_of(before)
    return Ending(end, _epoch(last), last is not None)


def trusted_end(segments: Sequence[SegmentFile], epochs: EpochCache, *, checksums: bool) -> Ending:
    """The end after a clean shutdown.

    Args: as `recovered_end`; checksums of the batches behind the last index entry are checked for `Ending.damage`.

    Raises:
        UnreadableError, OSError.
    """
    with Segment(segments[-1]) as segment:
        entry = last_index_position(segment)
        if entry is None:
            # Kafka recovers a segment whose index is gone, after a clean shutdown, too.
            return recovered_end(segments, segment.file.base, epochs, checksums=checksums)
        last, stop, damage = _from_index(segment, *entry, checksums=checksums)
    behind, size = "", 0
    if stop.kind is StopKind.TORN:
        behind, size = f"{segment.file.path}, byte {stop.at}: {stop.text}", segment.size_bytes - stop.at
    elif stop.kind is not StopKind.END:
        raise UnreadableError(
            f"{segment.file.path}, byte {stop.at}: {stop.text}, after a clean shutdown: Kafka checks nothing there, and"
            " may not start; without .kafka_cleanshutdown it recovers the log"
        )
    end = segment.file.base if last is None else last.next_offset
    last = last if last is not None else _last_of(segments[:-1])
    return Ending(end, _epoch(last), last is not None, behind, size, damage)


def _from_index(
    segment: Segment, offset: int, position: int, *, checksums: bool
) -> tuple[BatchHeader | None, Stop, str]:
    """(last batch, where that run of batches stops, which of them is damaged)."""
    last: BatchHeader | None = None
    if fits_index(segment, offset, position):
        for _, header in segment.batches(position, check_crc=False):
            last = header
        stop = _stop_of(segment)
        if position == 0 or (last is not None and last.last_offset >= offset):
            return last, stop, _damage(segment, position, stop) if checksums else ""
    found = segment.file.base
    for _, header in segment.batches(0, check_crc=checksums):
        found = header.next_offset
    raise UnreadableError(
        f"{segment.file.index} ends with offset {offset} at byte {position}, which does not fit the segment: after this"
        f" clean shutdown Kafka may take the log to end at {segment.file.base}, although it holds batches up to"
        f" {found}; without .kafka_cleanshutdown, or without that index, it recovers them"
    )


def _damage(segment: Segment, position: int, stop: Stop) -> str:
    """Whether the batches from here on match their checksums, in words; empty where they do."""
    for _ in segment.batches(position, check_crc=True):
        pass
    checked = _stop_of(segment)
    if checked.at >= stop.at:
        return ""
    return f"{segment.file.path}, byte {checked.at}: {checked.text}; after a clean shutdown Kafka keeps it unread"


def _stop_of(segment: Segment) -> Stop:
    assert segment.stop is not None  # the run of batches was read to its end
    return segment.stop


def _epoch(header: BatchHeader | None) -> int | None:
    return None if header is None else header.partition_leader_epoch


def _last_of(segments: Sequence[SegmentFile]) -> BatchHeader | None:
    """The last batch of these segments."""
    for file in reversed(segments):
        last: BatchHeader | None = None
        with Segment(file) as segment:
            entry = last_index_position(segment)
            start = entry[1] if entry is not None and fits_index(segment, *entry) else 0
            for _, header in segment.batches(start, check_crc=False):
                last = header
        if last is not None:
            return last
    return None


def _size(file: SegmentFile) -> int:
    with Segment(file) as segment:
        return segment.size_bytes


def batches_deny(segments: Sequence[SegmentFile], epochs: EpochCache, log_start: int, log_end: int) -> bool:
    """Whether the batches tell of other leader epochs than the log's checkpoint of them.

    Epochs rise along a log, so it is enough to look at its first batch, and on both sides of each offset at which an
    epoch begins; at its last batch somebody has looked (`Ending.last_epoch`).

    Raises:
        OSError.
    """
    starts = [log_start, *(start for _, start in epochs.entries if log_start < start < log_end)]
    return any(
        epochs.at(offset) != header.partition_leader_epoch
        for start in starts
        for header in _around(segments, start)
        if header.partition_leader_epoch is not None and log_start < header.next_offset <= log_end
        for offset in (max(header.base_offset, log_start), header.last_offset)
    )


def _around(segments: Sequence[SegmentFile], offset: int) -> Iterator[BatchHeader]:
    """The batch that holds this offset, or the next one of its segment, and the one before."""
    number = max((number for number, file in enumerate(segments) if file.base <= offset), default=0)
    before: BatchHeader | None = None
    with Segment(segments[number]) as segment:
        for _, header in segment.batches(position_before(segment, offset), check_crc=False):
            if header.next_offset > offset:
                yield header
                break
            before = header
    before = before if before is not None else _last_of(segments[:number])
    if before is not None:
        yield before


def epochs_of(segments: Sequence[SegmentFile], log_end: int) -> EpochCache | None:
    """The leader epochs as the batches below the log end tell them: for a log whose checkpoint does not fit.

    None: a segment before the last one is torn or holds what is no batch, so that some may be missing.

    Raises:
        OSError.
    """
    epochs = EpochCache()
    for number, file in enumerate(segments, 1):
        with Segment(file) as segment:
            for _, header in segment.batches(0, check_crc=False):
                if header.base_offset >= log_end:
                    return epochs
                if header.partition_leader_epoch is not None:
                    epochs.saw(header.partition_leader_epoch, header.base_offset)
            goes_on = number < len(segments) and segments[number].base < log_end
            if goes_on and _stop_of(segment).kind is not StopKind.END:
                return None
    return epochs
