"""What there is to look at when a partition has its leader again: open transactions, and what groups have committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kelr.model.partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that could not be read, and why."""

    error: str
    """Kafka's name of the error, or kelr's words where there is none."""
    acl: str = ""
    """The ACL that the principal lacks, such as ``READ on topic orders``; empty where that is not the reason."""
    passing: bool = False
    """Whether it may go by itself: a coordinator that is still loading, a broker that did not answer in time."""


class Coordinated(StrEnum):
    """What the transaction coordinators know of a producer whose transaction is open on a partition."""

    UNDER_WAY = "under-way"
    """The transaction is open there too, with this partition in it: its producer or its timeout ends it."""
    ENDING = "ending"
    """It is decided (PrepareCommit, PrepareAbort): the marker is on its way."""
    FORGOTTEN = "forgotten"
    """The coordinator is done with it, or was never told of it: nobody will ever send a marker. It hangs."""
    UNKNOWN = "unknown"
    """Nobody could tell."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that has no end in the leader's log (DescribeProducers), and what its coordinator knows of it."""

    producer_id: int
    producer_epoch: int
    start_offset: int
    last_timestamp_ms: int | None
    """Timestamp of the producer's last record in this partition."""
    coordinated: Coordinated
    transactional_id: str | None = None
    state: str | None = None
    """The coordinator's state of the transactional id: ``Ongoing``, ``CompleteCommit``, ``Empty``, ..."""
    started_at_ms: int | None = None
    """When the transaction began that the coordinator has under way."""
    timeout_ms: int | None = None
    """After so long the coordinator aborts what is under way."""
    unread: Unread | None = None
    """Why the coordinators could not tell; set where `coordinated` is `UNKNOWN`."""


Transactions = tuple[OpenTransaction, ...] | Unread
"""All transactions that are open on one partition, by start offset, or why they could not be read."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """Where a consumer group goes on reading a partition."""

    group: str
    offset: int
    leader_epoch: int | None = None
    """Epoch of the last record that it read; None where the consumer committed none."""


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """What consumer groups have committed for some partitions."""

    offsets: Mapping[TopicPartition, tuple[CommittedOffset, ...]] = field(default_factory=dict)
    """By partition, sorted by group; a partition that is missing has none."""
    groups: int = 0
    """How many groups were asked."""
    unread: Mapping[str, Unread] = field(default_factory=dict)
    """Groups whose offsets could not be read."""
    not_listed: Unread | None = None
    """Why there may be groups that were not seen at all; None where every group was."""
