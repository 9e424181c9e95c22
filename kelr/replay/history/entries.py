"""What a history is made of: an entry for each thing that happened, with its cause as far as the log tells it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from kelr.model import PartitionState, TopicPartition
from kelr.replay.records import At, BrokerOnRecord


class Certainty(StrEnum):
    """How sure a cause is."""

    CERTAIN = "certain"
    """Nothing else makes the controller write this record here."""
    LIKELY = "likely"
    """The records point to it, and something else could have written the same."""
    UNKNOWN = "unknown"
    """The log does not tell."""


class CauseKind(StrEnum):
    """What made the controller change a partition."""

    BROKER_FENCED = "broker-fenced"
    """Its session expired, or it has shut down; both are written alike."""
    BROKER_UNFENCED = "broker-unfenced"
    BROKER_REGISTERED = "broker-registered"
    """A new incarnation; `Cause.restart` says whether the shutdown before it was clean."""
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    """The broker said that it is about to stop."""
    BROKER_UNREGISTERED = "broker-unregistered"
    DIRECTORY_FAILED = "directory-failed"
    ALTER_PARTITION = "alter-partition"
    """The leader reported another ISR, or that it has recovered from an unclean election."""
    PREFERRED_ELECTION = "preferred-election"
    """Asked for with ElectLeaders, or the controller's own balancing (auto.leader.rebalance.enable): written alike."""
    ELECTION = "election"
    """An election that no broker's coming or going made necessary: ElectLeaders, or the controller's own search for
    partitions that unclean.leader.election.enable lets it elect."""
    REASSIGNMENT = "reassignment"
    """AlterPartitionReassignments."""
    MIN_ISR_WRITTEN = "min-isr-written"
    """min.insync.replicas was written for the topic or for all, which clears ELR and LastKnownElr."""
    TOPIC_CREATED = "topic-created"
    PARTITIONS_ADDED = "partitions-added"
    TOPIC_DELETED = "topic-deleted"
    AS_FOUND = "as-found"
    """Nothing happened: the state in which the log, or the window, begins."""
    NOT_TOLD = "not-told"
    """It happened between the end of one piece of the log and a checkpoint."""
    UNKNOWN = "unknown"


class Restart(StrEnum):
    """What a registration tells of the shutdown before it. The record has no mark: ELRs show it (KIP-966)."""

    FIRST = "first"
    """The log knows no registration of this broker before it."""
    SAME_INCARNATION = "same-incarnation"
    """The running broker registered again; it was not restarted."""
    CLEAN = "clean"
    """Its place in an ELR was left to it."""
    UNCLEAN = "unclean"
    """It was struck from an ELR, or left an ISR below min ISR without getting into the ELR."""
    NOT_SHOWN = "not-shown"
    """It was in no ELR and in no ISR whose loss would show it, or ELR was off."""


class ElectedAs(StrEnum):
    """What the new leader was, before it was elected."""

    PREFERRED = "preferred"
    """The first replica in the assignment, in the ISR; the leader before it could have gone on."""
    ISR = "isr"
    ELR = "elr"
    LAST_KNOWN_LEADER = "last-known-leader"
    """Neither in ISR nor ELR, and the only one in LastKnownElr while both were empty; Kafka counts it as unclean."""
    UNCLEAN = "unclean"
    """Neither in ISR nor ELR: it may lack what was committed."""
    UNCLEAN_RECOVERY = "unclean-recovery"
    """The same, chosen by its log or designated: where KIP-966's recovery manager takes the place of the two above."""
    UNKNOWN = "unknown"

    @property
    def clean(self) -> bool | None:
        """Whether the leader is sure to hold all that was committed; None where it is not known."""
        if self is ElectedAs.UNKNOWN:
            return None
        return self not in UNSAFE


UNSAFE = frozenset({ElectedAs.UNCLEAN, ElectedAs.LAST_KNOWN_LEADER, ElectedAs.UNCLEAN_RECOVERY})
"""From neither ISR nor ELR."""


class ReassignmentStep(StrEnum):
    """What a record did to a partition's assignment."""

    BEGUN = "begun"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    CHANGED = "changed"
    """Another target, while one was under way."""
    AT_ONCE = "at-once"
    """Begun and completed in one record: only replicas in sync are left."""
    REORDERED = "reordered"
    """The same replicas in another order."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the controller changed a partition."""

    kind: CauseKind
    certainty: Certainty = Certainty.CERTAIN
    broker: int | None = None
    """The broker that came, went, or reported."""
    restart: Restart | None = None
    detail: str | None = None
    """What else is known of it, in words."""


@dataclass(frozen=True, slots=True)
class Election:
    """A partition got another leader."""

    elected_as: ElectedAs
    last_leader: int | None
    """Who led before, perhaps some time ago; None where the log does not tell."""
    leader: int
    designated: bool = False
    """Whether the replica was put first in the assignment just before, so that it is the one that is elected: what
    kelr's designation does. Whoever did it is not on record."""


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """A partition was made, changed or deleted."""

    at: At
    before: PartitionState | None
    after: PartitionState | None
    cause: Cause
    election: Election | None = None
    reassignment: ReassignmentStep | None = None

    @property
    def state(self) -> PartitionState:
        """The newest state that there is: after the change, or before a deletion."""
        found = self.after or self.before
        assert found is not None  # one of the two is always there
        return found

    @property
    def address(self) -> TopicPartition:
        return self.state.address


class BrokerEvent(StrEnum):
    """What became of a broker."""

    REGISTERED = "registered"
    FENCED = "fenced"
    UNFENCED = "unfenced"
    SHUTDOWN_BEGUN = "shutdown-begun"
    UNREGISTERED = "unregistered"
    DIRECTORIES_CHANGED = "directories-changed"
    CORDONED = "cordoned"
    """All its log directories are cordoned (KIP-1066)."""
    UNCORDONED = "uncordoned"


@dataclass(frozen=True, slots=True)
class BrokerEntry:
    """A broker came, went or changed."""

    at: At
    broker: int
    event: BrokerEvent
    before: BrokerOnRecord | None
    after: BrokerOnRecord | None
    restart: Restart | None = None
    """For a registration."""

    @property
    def directories_lost(self) -> tuple[str, ...]:
        """Ids of the log directories that are online no more."""
        if self.before is None or self.after is None:
            return ()
        return tuple(sorted(set(self.before.directories) - set(self.after.directories)))


class ClusterEvent(StrEnum):
    """What became of the cluster as a whole."""

    CONTROLLER = "controller"
    FEATURE = "feature"
    CONFIG = "config"
    CHECKPOINT = "checkpoint"


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """Another controller, a feature's level, a config that elections depend on, or a checkpoint."""

    at: At
    event: ClusterEvent
    name: str | None = None
    """The feature or config."""
    topic: str | None = None
    """Whose config it is; None: the default of all."""
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionsEntry:
    """What one cause did to several partitions at once."""

    at: At
    cause: Cause
    entries: tuple[PartitionEntry, ...]
    """The first of them, in the order of the log."""
    count: int
    topics: tuple[str, ...] = ()
    """Their topics, in the order of the log."""
    created: int = 0
    deleted: int = 0
    lost_leader: int = 0
    got_leader: int = 0
    """Leaderless before."""
    moved_leader: int = 0
    isr_shrank: int = 0
    isr_grew: int = 0
    unclean: int = 0
    """Elections of a replica that was neither in ISR nor ELR."""
    elr_struck: int = 0
    """Partitions whose ELR lost a member that did not go into the ISR."""
    reassignment: ReassignmentStep | None = None
    """What was done to the assignment of all."""


Entry: TypeAlias = PartitionEntry | BrokerEntry | ClusterEntry | PartitionsEntry
