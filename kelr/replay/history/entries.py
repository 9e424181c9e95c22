"""What a history is made of: an entry for each thing that happened, with its cause as far as the log tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kelr.model import PartitionState, TopicPartition, leader_min_isr
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
    """In the ISR. If nobody led, it is sure to have run on since it was the last one in sync."""
    ELR = "elr"
    LAST_KNOWN_LEADER = "last-known-leader"
    """Neither in ISR nor ELR, and the only one in LastKnownElr while both were empty; Kafka counts it as unclean."""
    UNCLEAN = "unclean"
    """Neither in ISR nor ELR: it may lack what was committed."""
    UNCLEAN_RECOVERY = "unclean-recovery"
    """The same, chosen by its log or designated: where KIP-966's recovery manager takes the place of the two above."""
    UNKNOWN = "unknown"
    """No record tells. So it is where the last one in sync was restarted while nobody led and ELR was off: Kafka leaves
    it in the ISR, even if a crash cut its log."""

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
    clean_unknown: int = 0
    """Elections of which no record tells whether they were clean."""
    elr_struck: int = 0
    """Partitions whose ELR lost a member that did not go into the ISR."""
    reassignment: ReassignmentStep | None = None
    """What was done to the assignment of all."""


Entry: TypeAlias = PartitionEntry | BrokerEntry | ClusterEntry | PartitionsEntry


# How long a partition was in trouble, and which of its elections were unclean.


class Trouble(StrEnum):
    """A condition that lasts."""

    LEADERLESS = "leaderless"
    UNDER_MIN_ISR = "under-min-isr"
    """There is a leader, and fewer in sync than min ISR asks for: acks=all is refused."""
    LAST_REPLICA = "last-replica"
    """There is a leader, and of several replicas it alone is in sync."""
    ELR_ONLY = "elr-only"
    """The ISR is empty and the ELR is not: only an ELR member's return helps."""


@dataclass(slots=True)
class Span:
    """How often and how long a partition was in one kind of trouble, by the controller's clock."""

    times: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    since_ms: int | None = None
    """Since when it lasts; None where it does not."""

    def begin(self, at_ms: int) -> None:
        if self.since_ms is None:
            self.times += 1
            self.since_ms = at_ms

    def end(self, at_ms: int) -> None:
        if self.since_ms is not None:
            # Another controller's clock may be behind.
            lasted = max(0, at_ms - self.since_ms)
            self.total_ms += lasted
            self.longest_ms = max(self.longest_ms, lasted)
            self.since_ms = None


@dataclass(slots=True)
class PartitionSummary:
    """What a partition went through in the window."""

    address: TopicPartition
    state: PartitionState | None
    """As it is in the end; None: deleted."""
    known_since_ms: int
    """When it was made, or the log or the window began."""
    spans: dict[Trouble, Span] = field(default_factory=dict)
    min_isr: int | None = None
    min_isr_unknown: bool = False
    """min.insync.replicas was not on record at some time, so that `UNDER_MIN_ISR` may be too short."""
    elections: int = 0
    unsafe: list[PartitionEntry] = field(default_factory=list)
    """Elections of replicas that were neither in ISR nor ELR, or of which that is not known."""
    lasting: dict[Trouble, int] = field(default_factory=dict)
    """Since when each trouble lasts that has not ended; set when the summary is closed."""
    until_ms: int = 0
    """To when the log or the window reaches."""

    def total_ms(self, trouble: Trouble) -> int:
        span = self.spans.get(trouble)
        return 0 if span is None else span.total_ms

    @property
    def eventful(self) -> bool:
        return bool(self.spans or self.unsafe)


MinIsrOf = Callable[[str], int | None]
"""min.insync.replicas of a topic, by its name."""


class Summaries:
    """Follows partitions through a window; those that were never in trouble are kept only where all were asked for."""

    def __init__(self, min_isr_of: MinIsrOf, *, keep_all: bool) -> None:
        self._min_isr_of = min_isr_of
        self._keep_all = keep_all
        self._found: dict[TopicPartition, PartitionSummary] = {}
        self.min_isr_unknown = False
        """Whether min.insync.replicas of any partition was not on record at some time."""

    def begin(self, state: PartitionState, at_ms: int) -> None:
        """The window begins with a partition in this state."""
        self._look(state.address, state, at_ms)

    def moved(self, entry: PartitionEntry) -> None:
        """A partition changed."""
        summary = self._look(entry.address, entry.after, entry.at.timestamp_ms)
        if summary is None:
            if entry.election is None or entry.election.elected_as.clean:
                return
            summary = self._made(entry.address, entry.after, entry.at.timestamp_ms)
        if entry.election is not None:
            summary.elections += 1
            if entry.election.elected_as.clean is not True:
                summary.unsafe.append(entry)

    def min_isr_changed(self, states: Iterable[PartitionState], at_ms: int) -> None:
        """Another min.insync.replicas holds for these partitions."""
        for state in states:
            self._look(state.address, state, at_ms)

    def close(self, at_ms: int) -> Iterator[PartitionSummary]:
        """End what lasts at the end of the window; the summaries, sorted by address. May be called again later."""
        for address in sorted(self._found):
            summary = self._found[address]
            for trouble, span in summary.spans.items():
                if span.since_ms is not None:
                    began, times = span.since_ms, span.times
                    span.end(at_ms)
                    span.begin(at_ms)
                    span.times = times
                    summary.lasting.setdefault(trouble, began)
            summary.until_ms = at_ms
            yield summary

    def _look(self, address: TopicPartition, state: PartitionState | None, at_ms: int) -> PartitionSummary | None:
        min_isr = None if state is None else leader_min_isr(self._min_isr_of(address.topic), len(state.replicas))
        self.min_isr_unknown |= state is not None and min_isr is None
        now = set() if state is None else set(_troubles(state, min_isr))
        summary = self._found.get(address)
        if summary is None:
            if not now and not self._keep_all:
                return None
            summary = self._made(address, state, at_ms)
        summary.state = state
        summary.min_isr = min_isr if state is not None else summary.min_isr
        summary.min_isr_unknown |= state is not None and min_isr is None
        for trouble in Trouble:
            if trouble in now:
                summary.spans.setdefault(trouble, Span()).begin(at_ms)
            elif trouble in summary.spans:
                summary.spans[trouble].end(at_ms)
                summary.lasting.pop(trouble, None)
        return summary

    def _made(self, address: TopicPartition, state: PartitionState | None, at_ms: int) -> PartitionSummary:
        self._found[address] = PartitionSummary(address, state, at_ms)
        return self._found[address]


def _troubles(state: PartitionState, min_isr: int | None) -> Iterator[Trouble]:
    if state.leader is None:
        yield Trouble.LEADERLESS
        if not state.isr and state.elr:
            yield Trouble.ELR_ONLY
        return
    if min_isr is not None and len(state.isr) < min_isr:
        yield Trouble.UNDER_MIN_ISR
    if len(state.isr) == 1 and len(state.replicas) > 1:
        yield Trouble.LAST_REPLICA
