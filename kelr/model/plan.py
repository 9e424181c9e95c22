"""A plan: the elections that somebody is about to carry out, each with what it stands on; and what became of them.

A plan is made from a snapshot and its decisions (`kelr.engine.planning`), reviewed by people, and carried out by
`kelr.recovery`. It holds no secrets and nothing of the machine that made it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from kelr.model.decision import Advice, AdviceAction, Bounds, Damage, ElectedBy, ElectionType, Loss
from kelr.model.fields import Count, Int32, Offset, Replicas, Seats, Topic, TopicId
from kelr.model.partition import TopicPartition
from kelr.model.situation import Situation

_LONGEST_NUMBER = 18
"""Digits of a number of offsets; they are int64."""


@dataclass(frozen=True, slots=True)
class ElectionRequest:
    """What somebody asks for one partition (kafka-leader-election.sh's flags, and the KIP's JSON file)."""

    election: ElectionType | None = None
    """None: whatever kelr recommends."""
    desired_leader: int | None = None
    """The replica to elect; set for a designation and for nothing else."""
    minimal_replicas: int | None = None
    """Elect only where at least so many replicas' logs were heard; None asks for no number."""
    gone: frozenset[int] = frozenset()
    """Brokers that will not come back, as somebody says who knows: kelr's recommendation waits for none of them. Empty
    where an election is asked for."""


class Method(StrEnum):
    """The requests by which an election is carried out."""

    PREFERRED = "preferred"
    """ElectLeaders PREFERRED."""
    UNCLEAN = "unclean"
    """ElectLeaders UNCLEAN: Kafka's rules find the wanted replica without help."""
    REORDER = "reorder"
    """AlterPartitionReassignments with the same replicas and the wanted one first, ElectLeaders UNCLEAN, then the old
    order again: how a designation is done on every released broker."""
    NATIVE = "native"
    """ElectLeaders v3 with the wanted replica named (KIP-966): that one is elected, or nobody. No order is changed."""
    LONGEST_LOG = "longest-log"
    """ElectLeaders v3 of the planned election's own type (KIP-966): the controller asks the replicas, and elects the
    best log. No order is changed."""


class Consent(StrEnum):
    """What somebody has to give before an election is carried out. Ordered from least to most."""

    YES = "yes"
    """A plain yes: nothing is lost."""
    LOSS = "loss"
    """What is lost (`AcceptedLoss`), typed or given with ``--accept-loss``."""
    FORCE = "force"
    """``--force`` with a reason for the audit log: what would be lost cannot be counted, or the evidence contradicts
    itself."""


_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """A loss that somebody accepts, or has to: ``19``, ``19+`` where nothing bounds it, or ``unknown`` where nothing is
    known of it either.

    A number alone is a limit. It never accepts a loss without one: whoever writes ``--accept-loss 0`` into a script
    means that nothing is to be lost.
    """

    known: int
    """Offsets: those that may be lost at most, or, with `unbounded`, those that are known to be."""
    unbounded: bool = False
    """And besides whatever the logs that were not heard may hold alone."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``19``, ``19+`` or ``unknown``, which is ``0+``. Raises ValueError."""
        if text.strip().lower() == _UNKNOWN:
            return cls(0, unbounded=True)
        number = text.removesuffix("+")
        if not (number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER):
            raise ValueError(f"{text!r} is no number of offsets")
        return cls(int(number), unbounded=text != number)

    def covers(self, other: AcceptedLoss) -> bool:
        """Whether whoever accepts this one accepts the other."""
        return self.known >= other.known and (self.unbounded or not other.unbounded)

    def __str__(self) -> str:
        return f"{self.known}{'+' if self.unbounded else ''}" if self.known or not self.unbounded else _UNKNOWN


@dataclass(frozen=True, slots=True)
class LogEvidence:
    """What one replica's log was known to hold; all None but `replica` and `unheard` where nobody could tell."""

    replica: Int32
    log_end: Offset | None = None
    last_epoch: Int32 | None = None
    high_watermark: Offset | None = None
    log_start: Offset | None = None
    broker_epoch: Offset | None = None
    source: str | None = None
    read_at_ms: int | None = None
    unheard: str | None = None
    """Why nothing is known (`kelr.model.LogUnavailableReason`); None where the log was heard."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The state of a partition, its surroundings and its logs, as the plan was made: what must still hold."""

    situation: Situation
    leader: Int32 | None
    leader_epoch: Int32
    replicas: Replicas
    """In assignment order: also the order that is restored."""
    isr: Seats
    elr: Seats | None
    last_known_elr: Seats | None
    adding: Seats | None
    removing: Seats | None
    min_isr: Int32 | None
    unclean_leader_election: bool | None
    live: Seats
    """Replicas that can be elected, in assignment order."""
    logs: tuple[LogEvidence, ...]
    """One for each replica, in assignment order."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another thing that could be done instead, and what it would lose."""

    election: ElectionType
    """The kind of election; that which is planned where a broker's return elects by itself, and none is asked for."""
    elect: Int32 | None
    """Whom an election that is asked for elects; None: nobody, or none is asked for."""
    loss: Loss | None
    """What is lost in the end; None where nobody leads. Where it is not known how the broker that starts was shut down,
    what is lost after an unclean shutdown."""
    note: str = ""
    start: Int32 | None = None
    """The broker to start before anything else; None: none."""
    leader: Int32 | None = None
    """Who leads in the end; None: nobody."""
    rescue: tuple[str, ...] = ()
    """Where a broker is started, the command that saves what that truncates, as arguments after ``kelr``; empty where
    no log that was heard is truncated."""


SPARSE = "sparse"
"""Metadata of a field that is not there, neither in a plan's file nor in its hash, where it has its default."""


class HoldReason(StrEnum):
    """Why a broker has to stay down until the election is done."""

    LAST_KNOWN_LEADER = "last-known-leader"
    """Its return elects it by itself, whatever its log holds."""
    ISR_OR_ELR = "isr-or-elr"
    """It would be elected as a clean candidate, before the election."""
    RECOVERY = "recovery"
    """Its return lets KIP-966's recovery elect another replica by the logs, before the election."""
    FIRST_IN_ORDER = "first-in-order"
    """It stands before the wanted replica in the assignment, and an unclean election takes the first live one."""


@dataclass(frozen=True, slots=True)
class HoldDown:
    """A broker that has to stay down until the election is done."""

    broker: Int32
    reason: HoldReason
    text: str
    directory: bool = field(default=False, metadata={SPARSE: True})
    """Whether it is up, and lacks this log's directory alone: that has to stay offline, not the broker."""


@dataclass(frozen=True, slots=True)
class RescueStep:
    """Records that the election gives up and that can still be saved before it: offsets `[from_offset, to_offset)`."""

    replica: Int32
    from_offset: Offset
    to_offset: Offset
    reachable: bool
    """Whether that replica's broker answers now; where not, the records are read from its log directory."""


@dataclass(frozen=True, slots=True)
class PlannedElection:
    """One partition's election: who, why, how, what is lost, and what it stands on."""

    topic: Topic
    partition: Int32
    topic_id: TopicId | None
    election: ElectionType
    """The kind that was asked for, or that kelr recommends."""
    method: Method
    elect: Int32
    """The replica that is to lead."""
    order: Replicas
    """The replicas' order while it is elected; that of `evidence.replicas` where no reordering is needed."""
    elected_by: ElectedBy
    reason: str
    """One or two sentences: why this replica."""
    loss: Loss
    consent: Consent
    evidence: Evidence
    recommended: bool
    """Whether kelr was asked what to do; else somebody asked for this election."""
    minimal_replicas: Count | None = None
    alternatives: tuple[Alternative, ...] = ()
    hold: tuple[HoldDown, ...] = ()
    rescue: tuple[RescueStep, ...] = ()
    damage: tuple[Damage, ...] = ()
    """What a loss means for this topic, and what shows it afterwards."""
    warnings: tuple[str, ...] = ()
    """Which absent replicas truncate when they return, and what else to know; a sentence each."""
    against: Advice | None = None
    """kelr's advice, where somebody asked for an election that goes against it; None where it does not."""
    uncordons: Seats = field(default=(), metadata={SPARSE: True})
    """Replicas whose brokers' cordon (KIP-1066) is taken off while the order changes, and put back then."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def restores(self) -> tuple[int, ...]:
        """The replicas' order that has to be there in the end: that from before, without replicas that had to leave."""
        return tuple(replica for replica in self.evidence.replicas if replica in self.order)


class Unplanned(StrEnum):
    """Why a partition gets no election."""

    NOT_NEEDED = "not-needed"
    """It has the leader that was asked for: success, as for Kafka's own tool (ELECTION_NOT_NEEDED)."""
    ADVISED = "advised"
    """kelr advises something else than an election: to wait, to bring a broker back, to hold one."""
    REFUSED = "refused"
    """What was asked for is not possible or not safe; `reason` says why."""


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """A partition of the selection that gets no election, and why."""

    topic: Topic
    partition: Int32
    why: Unplanned
    situation: Situation
    reason: str
    leader: Int32 | None = None
    action: AdviceAction | None = None
    """What kelr advises instead."""
    brokers: Seats = ()
    """The brokers that the advice speaks of."""
    until: str = ""
    stock: str = ""
    """A shell line of Kafka's own tools that comes first (`Advice.stock`)."""
    command: tuple[str, ...] = ()
    """The next command as arguments after ``kelr``, without connection flags."""
    rescue: tuple[str, ...] = ()
    """The command that saves what following the advice truncates, before `command` (`Advice.rescue`)."""
    keep_down: Seats = ()
    """Brokers that stay down until those of the advice are back (`Advice.keep_down`)."""
    stop: Seats = ()
    """Live brokers to be stopped first (`Advice.stop`)."""
    alternatives: tuple[Alternative, ...] = ()
    """The brokers that could be started, the advised one with them, and what that loses."""
    then_designate: bool = False
    """Whether starting `brokers` elects nobody by itself, so that one of them is to be designated then."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class Plan:
    """Reviewed elections of one cluster, valid for a while. `kelr.engine.planning.plan_id` names its content."""

    cluster_id: str | None
    created_at_ms: int
    """When the snapshot behind it was read, in milliseconds since 1970 UTC."""
    expires_at_ms: int
    rules: str
    made_by: str
    """``kelr/<version>``."""
    elections: tuple[PlannedElection, ...]
    """Sorted by address; one for each partition at most."""
    not_planned: tuple[NotPlanned, ...] = ()
    gone: tuple[int, ...] = field(default=(), metadata={SPARSE: True})
    """Brokers with replicas that will not come back, as whoever made it said (`ElectionRequest.gone`), sorted."""
    lacks: tuple[str, ...] = ()
    """Fields that came with a later kelr than the one that made the plan, such as ``NotPlanned.stop``, sorted: they are
    empty, and neither in its file nor in its hash, so that it keeps its name."""

    @property
    def uncordons(self) -> frozenset[int]:
        """Brokers whose cordon it takes off for a while."""
        return frozenset(broker for one in self.elections for broker in one.uncordons)

    @property
    def consent(self) -> Consent:
        """The most that any of its elections needs."""
        order = tuple(Consent)
        return max((one.consent for one in self.elections), key=order.index, default=Consent.YES)

    @property
    def loss_to_accept(self) -> AcceptedLoss:
        """What ``--accept-loss`` has to cover: all that the elections with `Consent.LOSS` lose together.

        Of one whose loss nothing bounds, what is known to be lost counts, and the whole is unbounded.
        """
        losses = [one.loss.total or Bounds(0) for one in self.elections if one.consent is Consent.LOSS]
        known = sum(loss.at_least if loss.at_most is None else loss.at_most for loss in losses)
        return AcceptedLoss(known, unbounded=any(loss.at_most is None for loss in losses))

    @property
    def known_loss(self) -> Bounds:
        """Offsets that all its elections lose together, as far as they can be counted."""
        totals = [one.loss.total for one in self.elections]
        least = sum(total.at_least for total in totals if total is not None)
        mosts = [None if total is None else total.at_most for total in totals]
        return Bounds(least, None if None in mosts else sum(most for most in mosts if most is not None))


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that a plan stood on and that is otherwise now."""

    field: str
    """Which part of the evidence, such as ``leader``, ``isr`` or ``log_end of 2``."""
    planned: str
    now: str
    text: str
    """One sentence: what it means for the election."""

    @property
    def came_back(self) -> bool:
        """Whether it is a replica that is live again with a better log, or with one that nobody could read."""
        return self.field.startswith("status of ")


class ElectionResult(StrEnum):
    """What became of one planned election."""

    DONE = "done"
    """The wanted replica leads, and the replicas have their old order."""
    NOT_NEEDED = "not-needed"
    """It led already."""
    REFUSED = "refused"
    """Not begun: what the plan stood on has changed, or Kafka refused the first request."""
    OTHER_LEADER = "other-leader"
    """Another replica leads."""
    NO_LEADER = "no-leader"
    """Nobody leads after the election."""
    NOT_RESTORED = "not-restored"
    """The wanted replica leads, and the replicas' order could not be restored."""
    UNKNOWN = "unknown"
    """The cluster could not be read again, or still shows the leader epoch of before: the election may have come."""
    NOT_TRIED = "not-tried"
    """Left for later: a limit, an interruption, or an earlier failure came before it."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one planned election."""

    topic: str
    partition: int
    wanted: int
    ended: ElectionResult
    leader: int | None = None
    leader_epoch: int | None = None
    error: str | None = None
    """Kafka's name of the error, where there was one."""
    text: str = ""
    """One sentence for a person; empty where `ended` says it all."""
    differences: tuple[Difference, ...] = ()
    """For a refusal: what changed since the plan."""
    late_until_ms: int | None = None
    """Until when an unclean election without an answer may come yet: it elects another replica if the leader dies
    before. Milliseconds since 1970 UTC; null: none is on its way."""
    asked: bool | None = None
    """Whether kelr asked for the election, and Kafka may have carried it out: then whoever leads may be its result.
    null: an older kelr did not write it down."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def good(self) -> bool:
        return self.ended in {ElectionResult.DONE, ElectionResult.NOT_NEEDED}


class Check(StrEnum):
    """What `kelr recover verify` looks at, partition by partition."""

    LEADER = "leader"
    """The planned replica leads."""
    ISR = "isr"
    """The ISR has grown back: to min ISR at least, and to every live replica in the end."""
    ORDER = "order"
    """The replicas have the order from before."""
    TRUNCATED = "truncated"
    """Followers' logs were cut where the plan said."""
    LOGS = "logs"
    """The logs of the replicas in sync agree with the leader's."""
    LAST_STABLE_OFFSET = "last-stable-offset"
    """The last stable offset reaches the high watermark, or the transaction that holds it back is still alive."""
    GROUPS = "groups"
    """No consumer group has committed beyond the log's end."""


class Passed(StrEnum):
    """How a check came out."""

    YES = "yes"
    NOT_YET = "not-yet"
    """It may come true by itself: `--wait` waits for it."""
    NO = "no"
    UNKNOWN = "unknown"
    """It could not be looked at; `text` says why (an ACL that is missing, a broker that does not answer)."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one partition."""

    topic: str
    partition: int
    check: Check
    passed: Passed
    text: str
    command: str = ""
    """What mends it or shows more: a shell line of Kafka's own tools, with ``{stock}`` where the connection flags of
    those go, or of kelr."""
    remark: str = ""
    """What to know although the check came out well, such as ``broker 1 not live``; part of `text`."""

    @property
    def address(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
