"""One replica's directory: what its log holds, and its record batches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from kelr.engine.words import joined
from kelr.errors import BadInputError, UsageError
from kelr.model import LogUnavailable, LogUnavailableReason, ReplicaLog, TopicPartition
from kelr.sources.disk.collection import SOURCE, DiskLog
from kelr.sources.disk.files import EpochCache, GarbledError, read_leader_epochs, read_topic_id
from kelr.sources.disk.names import LEADER_EPOCHS, PARTITION_METADATA, Kind, replica_name
from kelr.sources.disk.segments import (
    Segment,
    SegmentFile,
    fits_index,
    has_index,
    last_index_position,
    position_before,
    segment_files,
)
from kelr.sources.records.batches import BatchHeader, Stop, StopKind

# Where a log ends once its broker has started again, and what lies behind that.
#
# After a clean shutdown Kafka believes what it finds: it reads on from the last entry of the last segment's offset
# index and checks no checksum. After any other it reads every segment from the one with the recovery point on, and
# cuts the log where the first batch is torn or fails its checksum; later segments go.
#
# Source: `LogLoader.recoverLog`, `LogSegment.recover` and `readNextOffset` of Apache Kafka.


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
    cut_off: tuple[tuple[int, int, int], ...] = ()
    """As `ReplicaLog.cut_off`."""
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
    held = tuple(_held(later))
    if held:
        behind += f". The disk still holds offsets {held[0][1]} to {held[-1][2] - 1} there: save them before it starts"
    return Ending(end, _epoch(last), last is not None, f"Kafka cuts off {behind}", size, held)


def _held(later: Sequence[SegmentFile]) -> Iterator[tuple[int, int, int]]:
    """The whole batches of these segments, up to the first in each that is not, as `ReplicaLog.cut_off`."""
    run: tuple[int, int, int] | None = None
    for file in later:
        with Segment(file) as segment:
            for _, header in segment.batches(0, check_crc=True):
                epoch = -1 if header.partition_leader_epoch is None else header.partition_leader_epoch
                if run is not None and (run[0], run[2]) == (epoch, header.base_offset):
                    run = (epoch, run[1], header.next_offset)
                    continue
                if run is not None:
                    yield run
                run = (epoch, header.base_offset, header.next_offset)
    if run is not None:
        yield run


def _holes(segments: Sequence[SegmentFile], log_end: int) -> Iterator[tuple[int, int]]:
    """As `ReplicaLog.holes`: a log is rolled where it ends, so that only compaction leaves a segment's end before the
    next one's base (`UnifiedLog.roll`)."""
    for file, later in pairwise(segments):
        if later.base >= log_end:
            return
        last = _last_of([file])
        end = file.base if last is None else last.next_offset
        if end < later.base:
            yield end, later.base


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
    return Ending(end, _epoch(last), last is not None, behind, size, damage=damage)


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


def holes_in_words(holes: Sequence[tuple[int, int]]) -> str:
    """``offsets 250 to 374 are missing between two segments: ...``."""
    where = joined(f"{start} to {end - 1}" for start, end in holes)
    return f"offsets {where} are missing between its segments: unless the topic is compacted, a segment is gone"


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


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What a log directory's checkpoints say of its replicas; None for one that could not be read."""

    high_watermarks: Mapping[TopicPartition, int] | None = None
    log_starts: Mapping[TopicPartition, int] | None = field(default_factory=dict)
    recovery_points: Mapping[TopicPartition, int] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How the log directory of a replica was left."""

    broker: int
    clean_shutdown: bool
    broker_epoch: int | None = None
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    checksums: bool = True
    lineage: bool = True


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """Where the batches of a log end for whoever reads them, and why."""

    path: str
    """The segment; empty where the log has none."""
    stop: Stop
    next_offset: int
    """The offset after the last batch that was given, or the one that was asked for where none was."""
    resumes_at: int | None = None
    """Where the next segment begins; None: there is none."""

    @property
    def whole(self) -> bool:
        """Whether the log was read to its end, and nothing is behind it."""
        return self.stop.kind is StopKind.END and self.resumes_at is None

    @property
    def text(self) -> str:
        """For a person; empty where nothing is wrong."""
        return "" if self.stop.kind is StopKind.END else f"{self.path}, byte {self.stop.at}: {self.stop.text}"


class Batches:
    """Iterate for the (header, bytes) of each whole batch, then ask `stopped`.

    The first batch is the one that holds the offset asked for, or the first behind it. Checksums are checked. It ends
    at the first batch that is torn or damaged, and goes on behind that when asked to start at `StoppedAt.resumes_at`.

    Raises:
        BadInputError, while iterating: a segment cannot be read.
    """

    def __init__(self, segments: Sequence[SegmentFile], offset: int) -> None:
        self._segments = segments
        self._offset = offset
        self.stopped: StoppedAt | None = None
        """None as long as it goes on."""

    def __iter__(self) -> Iterator[tuple[BatchHeader, bytes]]:
        self.stopped = None
        first = max((at for at, file in enumerate(self._segments) if file.base <= self._offset), default=0)
        path, stop, reached = "", Stop(StopKind.END, 0), self._offset
        for number, file in enumerate(self._segments[first:], first):
            path = file.path
            try:
                with Segment(file) as segment:
                    for _, header, content in segment.whole_batches(_start_in(segment, self._offset)):
                        if header.next_offset > self._offset:
                            yield header, content
                            reached = header.next_offset
                    stop = segment.stop or stop
            except OSError as error:
                raise BadInputError(
                    f"cannot read {path}: {error.strerror or error}", next_step="check the disk and the permissions"
                ) from error
            if stop.kind is not StopKind.END:
                later = self._segments[number + 1 :]
                self.stopped = StoppedAt(path, stop, reached, later[0].base if later else None)
                return
        self.stopped = StoppedAt(path, stop, reached)


def _start_in(segment: Segment, offset: int) -> int:
    """Position of the batch that holds the offset; 0 where the segment's headers do not lead there."""
    if offset <= segment.file.base:
        return 0
    before = 0
    for position, header in segment.batches(0, check_crc=False):
        if header.next_offset > offset:
            return position
        before = position
    return before


class PartitionDirectory:
    """The directory of one replica. Nothing in it is changed, created or locked.

    Raises:
        OSError: it cannot be listed.
    """

    def __init__(self, path: str, address: TopicPartition) -> None:
        self.path = path
        self.address = address
        names = os.listdir(path)
        self.segments, self.swapped = segment_files(path, names)
        """The segments in offset order, and whether files of an interrupted compaction count among them."""

    @property
    def log_start(self) -> int | None:
        """Where the first segment begins; None without one."""
        return self.segments[0].base if self.segments else None

    def batches_from(self, offset: int) -> Batches:
        """The record batches from the one that holds this offset on."""
        return Batches(self.segments, offset)

    def topic_id(self) -> str:
        """Raises OSError, GarbledError (ValueError)."""
        return read_topic_id(f"{self.path}/{PARTITION_METADATA}")

    def read(self, around: Circumstances, read_at_ms: int) -> DiskLog:
        """What the log holds once its broker has started again; what cannot be told is a value that says so."""
        notes: list[str] = []
        topic_id = self._topic_id_or_note(notes)
        try:
            epochs, fits = self._checkpointed_epochs(notes)
            newest = epochs.latest  # before the log's batches and its end change them
            log, behind, fits = self._log(around, read_at_ms, notes, epochs, fits=fits)
        except UnreadableError as error:
            unread = LogUnavailable(around.broker, LogUnavailableReason.ERROR, f"{SOURCE}: {error}", read_at_ms)
        except OSError as error:
            detail = f"{SOURCE}: {error.filename or self.path}: {error.strerror or error}"
            why = (
                LogUnavailableReason.ERROR if isinstance(error, PermissionError) else LogUnavailableReason.STORAGE_ERROR
            )
            unread = LogUnavailable(around.broker, why, detail, read_at_ms)
        else:
            saved = _not_negative((around.checkpoints.high_watermarks or {}).get(self.address))
            newest = _not_negative(newest) if fits else None
            return DiskLog(self.address, topic_id, log, self.path, tuple(notes), behind, newest, saved)
        return DiskLog(self.address, topic_id, unread, self.path, tuple(notes))

    def _topic_id_or_note(self, notes: list[str]) -> str | None:
        try:
            return self.topic_id()
        except (OSError, GarbledError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            notes.append(f"{self.path}/{PARTITION_METADATA} gives no topic id: {why or error}")
            return None

    def _log(
        self, around: Circumstances, read_at_ms: int, notes: list[str], epochs: EpochCache, *, fits: bool
    ) -> tuple[ReplicaLog, int, bool]:
        """(the log, bytes behind its end, whether its checkpoint of epochs fits). Raises UnreadableError, OSError.

        Args:
            epochs, fits: `_checkpointed_epochs`.
        """
        checkpoints = around.checkpoints
        checkpointed_start = (checkpoints.log_starts or {}).get(self.address, 0)
        local_start, remote = max(checkpointed_start, self.log_start or 0), self._remote(epochs)
        begins = next((start for _, start in epochs.entries), 0)
        ending = self._ending(around, epochs)
        if self.swapped:
            notes.append("a compaction was interrupted while it put segments in place; Kafka finishes it at its start")
        notes.extend(text for text in (ending.behind, ending.damage) if text)
        holes = tuple(_holes(self.segments, ending.log_end))
        if holes:
            notes.append(holes_in_words(holes))
        log_end, log_start, told = ending.log_end, checkpointed_start if remote else local_start, True
        last_epoch = ending.last_epoch
        if log_end < checkpointed_start:
            notes.append(
                f"the log ends at {log_end}, before its start {checkpointed_start} in the checkpoint: Kafka deletes all"
                " of it"
            )
            log_end, log_start, last_epoch, epochs = checkpointed_start, checkpointed_start, None, EpochCache()
            local_start = checkpointed_start
        elif ending.has_batches:
            fits = fits and _agree(epochs, ending, local_start, log_end)
            fits = fits and not batches_deny(self.segments, epochs, local_start, log_end)
            if not fits:
                notes.append(f"{LEADER_EPOCHS} does not fit the log: leader epochs were read from its batches")
            if not fits or epochs.grew:
                found = epochs_of(self.segments, log_end)
                if found is None:
                    notes.append("a segment before the last one is damaged: its leader epochs are not all known")
                told, epochs = found is not None, EpochCache([*remote, *(found or EpochCache()).entries])
        epochs.clip(checkpointed_start, log_end)
        log = ReplicaLog(
            replica=around.broker,
            log_end=log_end,
            last_epoch=last_epoch if last_epoch is not None else epochs.latest,
            high_watermark=self._high_watermark(checkpoints, local_start, log_end, notes, ending.cut_off),
            log_start=log_start,
            # Where Kafka has moved the start to, its checkpoint of epochs begins, too (LeaderEpochFileCache).
            start_by_name=local_start > checkpointed_start and local_start != begins,
            lineage=epochs.lineage(log_end) if around.lineage and told else None,
            broker_epoch=around.broker_epoch,
            source=SOURCE,
            read_at_ms=read_at_ms,
            local_start=local_start if remote else None,
            cut_off=ending.cut_off,
            holes=holes,
        )
        return log, ending.bytes_behind, fits

    def _remote(self, epochs: EpochCache) -> Sequence[tuple[int, int]]:
        """The checkpointed epochs that begin before the first segment: with remote storage (KIP-405) Kafka deletes a
        segment once it is copied there, and keeps its epochs; without, both go together. Kafka takes such a log to
        start where the checkpoint says, else at 0, and not where its first segment does (LogLoader.load)."""
        first = self.log_start or 0
        return [(epoch, start) for epoch, start in epochs.entries if start < first]

    def _checkpointed_epochs(self, notes: list[str]) -> tuple[EpochCache, bool]:
        """(leader epochs, whether a checkpoint of them was there and could be read)."""
        path = f"{self.path}/{LEADER_EPOCHS}"
        try:
            return EpochCache(read_leader_epochs(path)), True
        except FileNotFoundError:
            return EpochCache(), False
        except GarbledError as error:
            notes.append(f"{path} is garbled ({error}): Kafka takes the whole log directory offline when it reads it")
            return EpochCache(), False

    def _ending(self, around: Circumstances, epochs: EpochCache) -> Ending:
        if not self.segments:
            start = (around.checkpoints.log_starts or {}).get(self.address, 0)
            return Ending(start, None, has_batches=False)
        if around.clean_shutdown:
            return trusted_end(self.segments, epochs, checksums=around.checksums)
        point = (around.checkpoints.recovery_points or {}).get(self.address, 0)
        return recovered_end(self.segments, point, epochs, checksums=around.checksums)

    def _high_watermark(
        self,
        checkpoints: Checkpoints,
        log_start: int,
        log_end: int,
        notes: list[str],
        cut_off: Sequence[tuple[int, int, int]],
    ) -> int | None:
        """As the broker takes it from its checkpoint at its start; a replica that is not there begins at its log start
        (`UnifiedLog.updateHighWatermark`)."""
        if checkpoints.high_watermarks is None:
            return None
        saved = checkpoints.high_watermarks.get(self.address, 0)
        if saved > log_end:
            where = f"{saved - log_end} committed offsets behind its end {log_end}"
            notes.append(
                f"its saved high watermark is {saved}: {where} are gone from this disk"
                if not cut_off
                else f"its saved high watermark is {saved}: once Kafka has cut it off, {where} are gone from this disk"
            )
        return min(max(saved, log_start), log_end)


def _not_negative(value: int | None) -> int | None:
    return None if value is None or value < 0 else value


def _agree(epochs: EpochCache, ending: Ending, log_start: int, log_end: int) -> bool:
    """Whether the epochs begin with the log, and end with its last batch's epoch."""
    if ending.last_epoch is None:
        return True
    below = [entry for entry in epochs.entries if entry[1] < log_end]
    return bool(below) and below[0][1] <= log_start and below[-1][0] == ending.last_epoch


def open_partition(paths: Sequence[Path], address: TopicPartition) -> PartitionDirectory:
    """The directory of a replica in one of these log directories; a path may be that directory itself.

    Raises:
        UsageError: no such replica is there.
        BadInputError: it is there twice, or cannot be read.
    """
    candidates = (candidate for path in paths for candidate in _places(path, address) if candidate.is_dir())
    found = list({candidate.resolve(): candidate for candidate in candidates}.values())
    if len(found) > 1:
        places = " and ".join(str(path) for path in found)
        raise BadInputError(
            f"{address} is in two log directories: {places}", next_step="name the one that is meant, and no other"
        )
    if not found:
        where = ", ".join(str(path) for path in paths)
        raise UsageError(
            f"there is no replica of {address} in {where}",
            next_step="name the broker's log directories (log.dirs), all of them",
            code="no-replica-on-disk",
        )
    try:
        return PartitionDirectory(str(found[0]), address)
    except OSError as error:
        raise BadInputError(
            f"cannot read {found[0]}: {error.strerror or error}", next_step="check the disk and the permissions"
        ) from error


def _places(path: Path, address: TopicPartition) -> Iterator[Path]:
    """Where the replica would be: a copied directory keeps its name."""
    own = replica_name(path.name)
    if own is not None and own.kind is Kind.CURRENT and own.address == address:
        with contextlib.suppress(OSError):
            if any(name.endswith(".log") for name in os.listdir(path)):
                yield path
                return
    yield path / f"{address.topic}-{address.partition}"
