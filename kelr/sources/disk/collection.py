"""What was read from a broker's log directories, as values."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kelr.model import LOG_DIRECTORY, LogAnswer, Selection, TopicPartition
from kelr.sources.disk.files import NO_BROKER_EPOCH
from kelr.sources.disk.names import Kind

SOURCE = LOG_DIRECTORY


_FORBIDDEN = frozenset({os.strerror(errno.EACCES), os.strerror(errno.EPERM)})


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker, or the directory of a single replica that was copied from somewhere."""

    path: str
    cluster_id: str | None = None
    broker: int | None = None
    directory_id: str | None = None
    clean_shutdown: bool | None = None
    """Whether it carries the mark of a clean shutdown; None where it could not be read."""
    broker_epoch: int | None = None
    """The broker epoch in that mark, `NO_BROKER_EPOCH` included; None without one, and where Kafka reads none in it."""
    running: bool | None = None
    """Whether a broker holds its lock now; None where that cannot be told. A lock of another host is not seen."""
    single_replica: bool = False
    """It is the directory of one replica, not a log directory."""
    error: str | None = None
    """Why it could not be read; then none of its replicas are known."""

    @property
    def failed(self) -> bool:
        """Whether it could not be read for another reason than that this user may not."""
        return self.error is not None and self.error not in _FORBIDDEN


def surely_unclean(directories: Iterable[LogDirectory]) -> bool:
    """Whether a broker's marks of a clean shutdown make none, whatever broker epoch it is registered with: one is
    missing, holds no broker epoch, or another than the others. Beside those, `NO_BROKER_EPOCH` counts for something or
    not as the directories are ordered. Source: `LogManager.readBrokerEpochFromCleanShutdownFiles`."""
    own = [one for one in directories if not one.single_replica]
    epochs = {one.broker_epoch for one in own if one.clean_shutdown}
    missing = any(one.clean_shutdown is False for one in own)
    return missing or None in epochs or epochs == {NO_BROKER_EPOCH} or len(epochs - {NO_BROKER_EPOCH}) > 1


def clean_by_its_marks(directories: Iterable[LogDirectory]) -> bool | None:
    """Whether a broker was shut down cleanly, as far as its own disk tells: every log directory that was read carries
    the mark, and they do not contradict each other (`surely_unclean`). Kafka's controller asks for more: see
    `kelr.sources.collected`. None where one could not be read, and where only directories of single replicas were: a
    mark, or none, beside the copy of one says nothing of its broker."""
    own = [one for one in directories if not one.single_replica]
    if surely_unclean(own):
        return False
    return True if {one.clean_shutdown for one in own} == {True} else None


@dataclass(frozen=True, slots=True)
class DiskLog:
    """One replica as its disk has it."""

    address: TopicPartition
    topic_id: str | None
    """None where partition.metadata is missing or garbled: then nobody can tell which topic of this name it was."""
    answer: LogAnswer
    """What the log holds once the broker has started again, or why that cannot be told."""
    directory: str = ""
    notes: tuple[str, ...] = ()
    """What is odd, cut off, or damaged; a sentence each."""
    bytes_behind: int = 0
    """Bytes behind the log's end, which Kafka cuts off."""
    newest_epoch: int | None = None
    """The newest leader epoch in the checkpoint of leader epochs, with or without records: a broker writes it down the
    moment it leads. None without such a checkpoint, and where it cannot be read or the batches deny it."""
    saved_high_watermark: int | None = None
    """The high watermark as it was saved, also where the log ends before it; None where none was."""
    copies: tuple[DiskLog, ...] = ()
    """Of a replica that is in several log directories: each as it was read. `answer` says that none of them counts."""


@dataclass(frozen=True, slots=True)
class Unused:
    """A directory of a replica that is not the replica: a future copy, or one that is deleted or put aside."""

    address: TopicPartition
    kind: Kind
    path: str


@dataclass(frozen=True, slots=True)
class Counts:
    """How many directories of the selected partitions there were."""

    read: int = 0
    """Replicas whose log is known."""
    unreadable: int = 0
    """Replicas whose log could not be read, or makes no sense."""
    future: int = 0
    deleted: int = 0
    stray: int = 0


@dataclass(frozen=True, slots=True)
class DiskCollection:
    """The log directories of one broker, and what its replicas hold."""

    broker: int
    cluster_id: str | None
    read_at_ms: int
    """When the reading began, in milliseconds since 1970 UTC."""
    directories: tuple[LogDirectory, ...]
    logs: Mapping[TopicPartition, DiskLog] = field(default_factory=dict)
    """Sorted by address."""
    unused: tuple[Unused, ...] = ()
    warnings: tuple[str, ...] = ()
    """What the reader has to know; a sentence each."""
    counts: Counts = field(default_factory=Counts)
    selection: Selection | None = None
    """Which partitions were looked for; None: all."""

    @property
    def running(self) -> bool | None:
        """Whether the broker runs, as its locks tell; None where none of them tells."""
        known = [directory.running for directory in self.directories if directory.running is not None]
        return any(known) if known else None

    @property
    def clean_shutdown(self) -> bool | None:
        """`clean_by_its_marks`."""
        return clean_by_its_marks(self.directories)

    @property
    def broker_epoch(self) -> int | None:
        """The broker epoch that all marks of a clean shutdown agree on; None where they do not, or one is missing."""
        epochs = {directory.broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else None

    @property
    def unreadable(self) -> tuple[LogDirectory, ...]:
        """Directories that could not be read: any replica may be in one of them."""
        return tuple(directory for directory in self.directories if directory.error is not None)
