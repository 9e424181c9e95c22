"""The small files of a log directory: opened for reading only, and read as Kafka reads them.

Source: `CheckpointFile`, `OffsetCheckpointFile`, `LeaderEpochCheckpointFile`, `PartitionMetadataFile`,
`CleanShutdownFileHandler` and `MetaProperties` of Apache Kafka.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.model import EpochEnd, TopicPartition
from kelr.sources.disk.names import CLEAN_SHUTDOWN, LOCK, META_PROPERTIES

MAX_CHECKPOINT_BYTES = 256 * 1024 * 1024
"""A million partitions with the longest topic names fit."""
_SMALL_FILE_BYTES = 64 * 1024
_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}")
_NO_TOPIC_ID = "A" * 22
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT64 = 2**63
_INT32 = 2**31
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of Linux on 64 bits: type, whence, start, length, process."""


class GarbledError(ValueError):
    """A file that is not what it should be; the words say which line."""


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """meta.properties: whose log directory this is. What it does not say is None."""

    cluster_id: str | None = None
    broker: int | None = None
    directory_id: str | None = None


def open_to_read(path: str) -> int:
    """A descriptor for reading a regular file. Raises OSError, also where it is none (a pipe would block)."""
    descriptor = os.open(path, _READ_ONLY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_small(path: str, limit: int = _SMALL_FILE_BYTES) -> bytes:
    """A whole file. Raises OSError; GarbledError where it is larger than such a file can be."""
    descriptor = open_to_read(path)
    try:
        parts = []
        left = limit + 1
        while left > 0 and (part := os.read(descriptor, min(left, 1024 * 1024))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    if left <= 0:
        raise GarbledError(f"more than {limit} bytes, which no such file has")
    return b"".join(parts)


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Whose log directory this is; None where it was never formatted. Raises OSError, GarbledError."""
    try:
        content = read_small(str(directory / META_PROPERTIES))
    except FileNotFoundError:
        return None
    return meta_properties(content)


def meta_properties(content: bytes) -> MetaProperties:
    """What a meta.properties says. Raises GarbledError."""
    values = {}
    for line in content.decode(errors="replace").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith(("#", "!")):
            # java.util.Properties puts a backslash before '=', ':', '#' and '!'.
            values[name.strip()] = re.sub(r"\\(.)", r"\1", value.strip())
    if values.get("version") not in {"0", "1"}:
        raise GarbledError(f"version {values.get('version')!r} of meta.properties is not known")
    broker = values.get("node.id") or values.get("broker.id")
    if broker is not None and not (_INTEGER.fullmatch(broker) and 0 <= int(broker) < _INT32):
        raise GarbledError(f"the broker id {broker[:40]!r} is no number")
    return MetaProperties(
        cluster_id=values.get("cluster.id") or None,
        broker=None if broker is None else int(broker),
        directory_id=values.get("directory.id") or None,
    )


NO_BROKER_EPOCH = -1
"""In the mark of a broker that stopped before it was registered."""


@dataclass(frozen=True, slots=True)
class CleanShutdown:
    """The mark of a clean shutdown. Kafka trusts it for its logs whatever it holds, and for ELR by its broker epoch."""

    broker_epoch: int | None
    """None: Kafka reads no epoch out of it; `NO_BROKER_EPOCH`."""


def read_clean_shutdown(directory: Path) -> CleanShutdown | None:
    """None: there is no mark, so that the broker died or still runs. Raises OSError.

    It is read as Jackson reads it, by which what follows the object counts for nothing, and a number may be a string
    (tried on `CleanShutdownFileHandler` of 4.3.1).
    """
    try:
        text = read_small(str(directory / CLEAN_SHUTDOWN)).decode(errors="replace").lstrip(" \t\r\n")
        content, _ = json.JSONDecoder(parse_constant=_no_number).raw_decode(text)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return CleanShutdown(None)
    if not isinstance(content, dict):
        return CleanShutdown(None)
    version, epoch = content.get("version"), _whole_number(content.get("brokerEpoch"), _INT64)
    of_a_version = version is None or _whole_number(version, _INT32) is not None
    readable = of_a_version and epoch is not None and epoch >= NO_BROKER_EPOCH
    return CleanShutdown(epoch if readable else None)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


def _whole_number(value: object, end: int) -> int | None:
    """What Jackson makes of a value that should be a whole number; None where it refuses it."""
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -end <= value < end:
        return None
    return int(value)


def read_topic_id(path: str) -> str:
    """The topic id in partition.metadata. Raises OSError, GarbledError."""
    return topic_id_of(read_small(path))


def topic_id_of(content: bytes) -> str:
    """The same, of the file's content. Raises GarbledError."""
    lines = content.decode(errors="replace").splitlines()
    fields = [line.split() for line in lines[:2]]
    if len(fields) < 2 or fields[0][:1] != ["version:"] or len(fields[0]) != 2 or len(fields[1]) != 2:
        raise GarbledError("not the two lines of a partition.metadata")
    topic_id = fields[1][1]
    if fields[1][0] != "topic_id:" or _TOPIC_ID.fullmatch(topic_id) is None or topic_id == _NO_TOPIC_ID:
        raise GarbledError("its second line gives no topic id")
    return topic_id


def read_offsets(path: str) -> Mapping[TopicPartition, int]:
    """Partition to offset, of one of the three offset checkpoints. Raises OSError, GarbledError."""
    offsets = {}
    for number, line in _entries(read_small(path, MAX_CHECKPOINT_BYTES)):
        fields = line.rsplit(" ", 2)
        if len(fields) != 3:
            raise GarbledError(f"line {number}: not a topic, a partition and an offset")
        partition, offset = _number(fields[1], number, _INT32), _number(fields[2], number, _INT64)
        offsets[TopicPartition(fields[0], partition)] = offset
    return offsets


def read_leader_epochs(path: str) -> list[tuple[int, int]]:
    """(epoch, start offset) entries of a leader-epoch-checkpoint, in the file's order. Raises OSError, GarbledError."""
    entries = []
    for number, line in _entries(read_small(path, MAX_CHECKPOINT_BYTES)):
        fields = line.split()
        if len(fields) != 2:
            raise GarbledError(f"line {number}: not an epoch and an offset")
        entries.append((_number(fields[0], number, _INT32), _number(fields[1], number, _INT64)))
    return entries


def _entries(content: bytes) -> Iterator[tuple[int, str]]:
    """(line number, text) of each entry of a checkpoint: a version, a count, and so many lines."""
    lines = content.decode(errors="replace").splitlines()
    if len(lines) < 2:
        if lines and lines[0] != "0":
            raise GarbledError(f"line 1: version {lines[0][:40]!r} is not known")
        return
    if lines[0] != "0":
        raise GarbledError(f"line 1: version {lines[0][:40]!r} is not known")
    expected = _number(lines[1], 2, _INT32)
    if len(lines) - 2 != expected:
        raise GarbledError(f"it promises {expected} entries and has {len(lines) - 2}")
    yield from enumerate(lines[2:], 3)


def _number(text: str, line: int, end: int) -> int:
    if _INTEGER.fullmatch(text) is None or not 0 <= int(text) < end:
        raise GarbledError(f"line {line}: {text[:40]!r} is not a number that Kafka could have written")
    return int(text)


def is_locked(directory: Path) -> bool | None:
    """Whether a broker holds the directory's lock, that is, runs; asking takes no lock.

    None: cannot be told (the lock file cannot be opened, or the system knows no such question).
    """
    try:
        descriptor = open_to_read(str(directory / LOCK))
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, asked)
        return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
    except (OSError, struct.error):
        return None
    finally:
        os.close(descriptor)


# The leader epochs of a log, kept as Kafka keeps them.
#
# Source: `LeaderEpochFileCache` (assign, truncateFromEnd, truncateFromStart) of Apache Kafka.


class EpochCache:
    """Leader epochs with the offset at which each begins, oldest first."""

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._entries: list[tuple[int, int]] = []
        self.grew = False
        """Whether a batch told of an epoch that was not there: others before it may be missing, too."""
        for epoch, start in entries:
            self.assign(epoch, start)

    @property
    def entries(self) -> Sequence[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return self._entries

    @property
    def latest(self) -> int | None:
        return self._entries[-1][0] if self._entries else None

    def at(self, offset: int) -> int | None:
        """The epoch of the record at this offset; None before the first one."""
        return next((epoch for epoch, start in reversed(self._entries) if start <= offset), None)

    def assign(self, epoch: int, start: int) -> None:
        """An epoch begins here; entries that contradict it go."""
        entries = self._entries
        if entries and epoch == entries[-1][0] and start >= entries[-1][1]:
            return
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start):
            entries.pop()
        entries.append((epoch, start))

    def saw(self, epoch: int, base_offset: int) -> None:
        """A batch of this epoch, met while a segment is recovered (`LogSegment.recover`)."""
        if not self._entries or epoch > self._entries[-1][0]:
            self.assign(epoch, base_offset)
            self.grew = True

    def clip(self, log_start: int, log_end: int) -> None:
        """Forget what lies outside the log; the epoch that the log starts in begins at its start."""
        while self._entries and self._entries[-1][1] >= log_end:
            self._entries.pop()
        gone = [entry for entry in self._entries if entry[1] <= log_start]
        if gone:
            self._entries[: len(gone)] = [(gone[-1][0], log_start)]

    def lineage(self, log_end: int) -> tuple[EpochEnd, ...]:
        """Each epoch with its end offset (exclusive), oldest first."""
        ends = [*(start for _, start in self._entries[1:]), log_end]
        return tuple(EpochEnd(epoch, end) for (epoch, _), end in zip(self._entries, ends, strict=False))
