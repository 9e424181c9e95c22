"""Everything that kelr knows at one moment: the one value that flows from the sources to the engine and the views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelr.model.cluster import Cluster, TopicConfig
from kelr.model.logs import LogAnswer, SavedLog
from kelr.model.partition import PartitionState, TopicPartition
from kelr.model.quorum import RecoveryQuorum
from kelr.model.topic_error import TopicError


@dataclass(frozen=True, slots=True)
class RecordedElection:
    """The newest election of a partition that kelr's audit log tells of.

    An unclean election gives up what the new leader's log lacks, and no request of released Kafka tells of it
    afterwards.
    """

    leader: int | None
    """None: not known."""
    leader_epoch: int
    """The one that it began; where it is not known whom it elected, the first that it can have begun."""
    at_ms: int
    """When, in milliseconds since 1970 UTC."""
    clean: bool
    """Whether it is known to have given nothing up."""
    unread: tuple[int, ...] = ()
    """Replicas whose logs were not compared with that of whom it elected: their disks may hold what was given up until
    they return."""
    saved: tuple[tuple[int, str], ...] = ()
    """Others like them, each with the rescue file that has all which the elected one lacked of its log."""


@dataclass(frozen=True, slots=True)
class ClearedElr:
    """That kelr emptied a leaderless partition's ELR and LastKnownELR, by its audit log."""

    leader_epoch: int
    """The partition's, and still that until somebody is elected."""
    min_isr: int
    """The min.insync.replicas that was in force before and after it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster, some of its partitions, their configs and what is known of their logs, at one moment.

    `partitions` are sorted by address. `logs` holds one answer for each replica that was asked, in assignment order; a
    partition that is missing there was not asked about.
    """

    taken_at_ms: int
    """When the reading began, in milliseconds since 1970 UTC."""
    cluster: Cluster
    partitions: tuple[PartitionState, ...] = ()
    configs: Mapping[str, TopicConfig] = field(default_factory=dict)
    logs: Mapping[TopicPartition, tuple[LogAnswer, ...]] = field(default_factory=dict)
    topic_errors: tuple[TopicError, ...] = ()
    first_partition_replicas: Mapping[str, int] = field(default_factory=dict)
    """Replica count of partition 0 of each topic: the controller derives its min ISR from it (`controller_min_isr`)."""
    quorums: Mapping[TopicPartition, RecoveryQuorum] = field(default_factory=dict)
    """What a metadata log tells of who holds everything committed; a partition that is missing there has none known."""
    elections: Mapping[TopicPartition, RecordedElection] = field(default_factory=dict)
    """What kelr's own audit log tells of elections; a partition that is missing there has none on record."""
    cleared: Mapping[TopicPartition, ClearedElr] = field(default_factory=dict)
    """What it tells of ELRs that kelr cleared."""
    saved: Mapping[TopicPartition, Sequence[SavedLog]] = field(default_factory=dict)
    """What rescue files that kelr knows hold; a partition that is missing there has none."""
    source: str = "live"
    """Where it comes from, such as ``live`` or the name of a snapshot file."""
