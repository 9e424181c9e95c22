"""Copies of the metadata log, and what brokers' data directories hold beside them, as values."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kelr.model import LogAnswer
from kelr.replay.image import MetadataImage

CopyKey: TypeAlias = tuple[int, str, int]
"""Node, directory id (or place), and 0, or when an earlier reading was made."""
NO_EPOCH = -1
"""The last epoch of a log without records."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """A node's file ``quorum-state``: what it knew of the quorum's elections."""

    epoch: int
    leader: int | None = None
    voted: int | None = None


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a log without a gap, side by side: first offset, epoch and checksum of each."""

    offsets: Sequence[int] = field(default_factory=lambda: array("q"))
    epochs: Sequence[int] = field(default_factory=lambda: array("i"))
    checksums: Sequence[int] = field(default_factory=lambda: array("I"))
    end: int = 0
    """The offset after the last record."""

    @property
    def start(self) -> int:
        return self.offsets[0] if self.offsets else self.end

    def same(self, here: int, other: Batches, there: int, count: int) -> bool:
        """Whether so many batches from these places on are the same ones."""
        mine, theirs = slice(here, here + count), slice(there, there + count)
        return len(self.offsets[mine]) == len(other.offsets[theirs]) == count and (
            self.offsets[mine] == other.offsets[theirs]
            and self.epochs[mine] == other.epochs[theirs]
            and self.checksums[mine] == other.checksums[theirs]
        )

    def index(self, offset: int) -> int:
        """The first batch that begins at this offset or later."""
        return bisect_left(self.offsets, offset)


@dataclass(frozen=True, slots=True)
class History:
    """What a copy has ever said, from `begins_at` on: what it knows no more it may have known once."""

    begins_at: int = 0
    """0, or where its checkpoint ends: of what was made and removed before, it tells nothing."""
    topics: frozenset[str] = frozenset()
    """Ids of all topics that ever were."""
    held: Mapping[tuple[str, int], frozenset[int]] = field(default_factory=dict)
    """(topic id, partition) to all brokers that ever were among its replicas."""


@dataclass(frozen=True, slots=True)
class MetadataCopy:
    """One node's copy of the metadata log."""

    node: int
    directory_id: str | None
    place: str
    """Host and directory, for a person."""
    cluster_id: str | None
    batches: Batches
    last_epoch: int
    """Of the last record, of a checkpoint where the log has none; `NO_EPOCH`: it holds nothing."""
    image: MetadataImage
    history: History = field(default_factory=History)
    checkpoints: tuple[tuple[int, int], ...] = ()
    """(end offset, epoch) of each, the bootstrap checkpoint of offset 0 left out."""
    quorum_state: QuorumState | None = None
    """None: there is no such file, as in a directory that was formatted and never started."""
    running: bool | None = None
    """Whether a process held the directory's lock; None: not known."""
    broken: str | None = None
    """Why it is not whole: a gap, a damaged batch with others behind it, a checkpoint that stands in for records."""
    torn_bytes: int = 0
    """Bytes of a last batch that is not whole: a running node's, or a crash's. It was never committed by this node."""
    read_at_ms: int | None = None
    """Of an earlier reading of a directory that has lost records since; None: it is the newest reading."""

    @property
    def end(self) -> int:
        """The offset after the last record."""
        return self.batches.end

    @property
    def position(self) -> tuple[int, int]:
        """By which Raft compares logs: the later one is the more complete."""
        return self.last_epoch, self.end

    @property
    def newest_epoch(self) -> int:
        """The newest epoch that anything in its directory names."""
        voted = NO_EPOCH if self.quorum_state is None else self.quorum_state.epoch
        return max(self.last_epoch, voted, *(epoch for _, epoch in self.checkpoints), NO_EPOCH)

    @property
    def key(self) -> CopyKey:
        return self.node, self.directory_id or self.place, self.read_at_ms or 0


@dataclass(frozen=True, slots=True)
class DiskReplica:
    """One replica in a broker's log directory."""

    topic: str
    partition: int
    topic_id: str | None
    newest_epoch: int | None
    """The newest leader epoch in its leader-epoch-checkpoint; None: none is known."""
    log: LogAnswer
    directory: str


@dataclass(frozen=True, slots=True)
class BrokerDisk:
    """A broker's data directories."""

    broker: int
    replicas: tuple[DiskReplica, ...]
    set_aside: tuple[str, ...] = ()
    """Directories that Kafka has renamed to ``-stray`` or ``-delete``."""
    unread: tuple[str, ...] = ()
    """Directories that could not be read."""
