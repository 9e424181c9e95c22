"""What a node of the lab has on disk, beside its logs: saved high watermarks, its last words, and an obstacle."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import LabError

# Cut the end off a replica's log, as a machine that loses power loses what was not flushed to its disk.


_BATCH_HEAD = struct.Struct(">qiibIhi")
"""Base offset, length of what follows the length, leader epoch, magic, CRC, attributes, last offset delta
(record batch of magic 2; org.apache.kafka.common.record.DefaultRecordBatch)."""
_LENGTH_END = 12
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch in a segment file: where it starts, and its offsets `[base_offset, next_offset)`."""

    position: int
    base_offset: int
    next_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class CutTail:
    """What a replica's log lost: the offsets `[from_offset, to_offset)` of the last `batches` record batches."""

    broker: int
    topic: str
    partition: int
    from_offset: int
    """The log end offset that is left."""
    to_offset: int
    """The log end offset before the cut."""
    batches: int

    @property
    def offsets(self) -> int:
        return self.to_offset - self.from_offset


def cut_log(data: Path, broker: int, topic: str, partition: int, batches: int) -> CutTail:
    """Cut the last record batches off a log of a broker that is down.

    The broker's clean shutdown marker goes too, because a machine that crashed has none, and so do the indexes of the
    segment that was cut, which Kafka builds again.

    Args:
        data: the broker's Kafka log directory.

    Raises:
        LabError: there is no such log, it holds fewer batches, or a batch of it cannot be read.
    """
    directory = data / f"{topic}-{partition}"
    if not directory.is_dir():
        raise LabError(f"broker {broker} has no log of {topic}:{partition} ({directory})")
    segments = sorted(directory.glob("*.log"))
    every = [(segment, batch) for segment in segments for batch in read_batches(segment)]
    if not 0 < batches <= len(every):
        raise LabError(
            f"cannot cut {batches} batches off {topic}:{partition} of broker {broker}: it holds {len(every)}"
        )
    segment, first = every[-batches]
    for later in segments[segments.index(segment) + 1 :]:
        _remove_segment(later)
    with segment.open("r+b") as stream:
        stream.truncate(first.position)
    for index in (".index", ".timeindex", ".txnindex"):
        segment.with_suffix(index).unlink(missing_ok=True)
    (data / CLEAN_SHUTDOWN_FILE).unlink(missing_ok=True)
    return CutTail(broker, topic, partition, first.base_offset, every[-1][1].next_offset, batches)


def read_batches(segment: Path) -> Iterator[Batch]:
    """The record batches of a segment file, up to its end or to a batch that is torn.

    Raises:
        LabError: a batch is not of magic 2.
    """
    content = segment.read_bytes()
    position = 0
    while position + _BATCH_HEAD.size <= len(content):
        base, length, epoch, magic, _crc, _attributes, last_delta = _BATCH_HEAD.unpack_from(content, position)
        end = position + _LENGTH_END + length
        if end > len(content) or length <= 0:
            return
        if magic != 2:
            raise LabError(f"{segment} has a batch of magic {magic} at byte {position}; the lab reads magic 2")
        yield Batch(position, base, base + last_delta + 1, epoch)
        position = end


def _remove_segment(segment: Path) -> None:
    for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        segment.with_suffix(suffix).unlink(missing_ok=True)


_OBSTACLE = "lost+found"


def saved_high_watermarks(data: Path, topic: str) -> Mapping[int, int]:
    """Partition to high watermark, as the broker last saved it (replication-offset-checkpoint)."""
    try:
        lines = (data / "replication-offset-checkpoint").read_text().splitlines()[2:]
    except FileNotFoundError:
        return {}
    fields = (line.rsplit(" ", 2) for line in lines)
    return {int(partition): int(offset) for name, partition, offset in fields if name == topic}


def put_obstacle(data: Path) -> None:
    """A ``lost+found`` in the log directory, as a file system check leaves one at a mount point: the broker that finds
    it registers, and then dies while it loads its logs."""
    (data / _OBSTACLE).mkdir(exist_ok=True)


def clear_obstacle(data: Path) -> None:
    """Undo `put_obstacle`."""
    with suppress(FileNotFoundError):
        (data / _OBSTACLE).rmdir()


def last_words(output: Path) -> str:
    """The end of what a node printed, set in from the line before, stack traces left out; empty where it is gone."""
    try:
        text = output.read_text(errors="replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if not line.startswith("\tat ")]
    return "".join(f"\n  | {line[:300]}" for line in lines[-15:])
