"""What an election rule set says of one partition, with its steps: the value that views render and plans stand on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kelr.model.fields import Count, Int32, Offset, OffsetRange, Seats
from kelr.model.quorum import RecoveryQuorum
from kelr.model.situation import Situation


class ElectionType(StrEnum):
    """Kinds of election, by KIP-966's names for kafka-leader-election.sh."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"
    DESIGNATION = "designation"
    LONGEST_LOG_BALANCED = "longest_log_balanced"
    LONGEST_LOG_AGGRESSIVE = "longest_log_aggressive"


LOG_TYPES = (ElectionType.LONGEST_LOG_BALANCED, ElectionType.LONGEST_LOG_AGGRESSIVE)
"""The elections in which logs are compared."""

_ELECTION_ALIASES = {
    # Older texts of KIP-966 and its spelling.
    "proactive": ElectionType.LONGEST_LOG_AGGRESSIVE,
    "aggressive": ElectionType.LONGEST_LOG_AGGRESSIVE,
    "longest_log_proactive": ElectionType.LONGEST_LOG_AGGRESSIVE,
    "longest_log_agressive": ElectionType.LONGEST_LOG_AGGRESSIVE,
    "balanced": ElectionType.LONGEST_LOG_BALANCED,
}


def parse_election_type(text: str) -> ElectionType:
    """An election type by name: upper or lower case, ``-`` or ``_``, the KIP's older names too.

    Raises:
        ValueError: listing the names there are.
    """
    key = text.strip().lower().replace("-", "_")
    try:
        return _ELECTION_ALIASES.get(key) or ElectionType(key)
    except ValueError:
        raise ValueError(f"there is no election type {text!r}; there are {', '.join(ElectionType)}") from None


class ElectedBy(StrEnum):
    """The rule that made a leader."""

    LEADER_STAYS = "leader-stays"
    ISR = "isr"
    ELR = "elr"
    LAST_KNOWN_LEADER = "last-known-leader"
    UNCLEAN = "unclean"
    DESIGNATION = "designation"
    LONGEST_LOG = "longest-log"


@dataclass(frozen=True, slots=True)
class Step:
    """One question that a rule asks, its answer, and the evidence for the answer."""

    rule: str
    """Identifier of the rule, such as ``live-isr-member``; documented in `kelr.controller.rules`."""
    holds: bool
    text: str
    evidence: str
    source: str = ""
    """KIP section or Kafka class that the rule comes from."""


class LossCertainty(StrEnum):
    """How sure a statement about loss is. Ordered from certain to nothing known."""

    PROVEN_NONE = "proven-none"
    """The candidate is in the ISR or ELR: it holds everything that was committed."""
    NONE_IF_FEWER_THAN_MIN_ISR = "none-if-fewer-than-min-isr-replicas-lost-data"
    """The whole recovery quorum was heard and its best log chosen (KIP-966, balanced), and fewer than min ISR of its
    members are known to have lost data."""
    BOUNDED = "bounded"
    """Counted between the logs of all replicas."""
    UNKNOWN = "unknown"
    """More may be lost than is known: a log that may hold more was not read, or logs are known to have lost data, or
    nothing can be counted. What is known to be lost is a lower bound."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number of offsets that is known to lie between two bounds; `at_most` is None where nothing bounds it."""

    at_least: Offset
    at_most: Offset | None = None

    @property
    def exact(self) -> bool:
        return self.at_least == self.at_most

    @property
    def none(self) -> bool:
        """Whether it is known to be 0."""
        return self.at_most == 0

    @property
    def rank(self) -> tuple[bool, int]:
        """For a choice of the fewest: a number that nothing bounds comes after every one that is bounded."""
        return self.at_most is None, self.at_least

    def __str__(self) -> str:
        """``19``, ``1 to 38``, ``at least 19``; ``UNKNOWN`` where it may be anything."""
        if self.exact:
            return str(self.at_least)
        if self.at_most is None:
            return f"at least {self.at_least}" if self.at_least else "UNKNOWN"
        return f"{self.at_least} to {self.at_most}"


@dataclass(frozen=True, slots=True)
class Truncation:
    """What a replica's log gives up when it follows the elected leader: so many offsets, from `from_offset` (or from
    where the log starts, if that is later) up to its end."""

    replica: Int32
    from_offset: Offset
    offsets: Offset


@dataclass(frozen=True, slots=True)
class Loss:
    """What electing one replica would lose, in offsets (not records: compaction and markers leave gaps).

    `committed` counts offsets below the high watermark: at least those that some replica knows to be below it, at most
    all that are lost. `uncommitted` counts the rest. `None` where nothing can be counted.
    """

    grade: LossCertainty
    committed: Bounds | None = None
    uncommitted: Bounds | None = None
    total: Bounds | None = None
    """Both together: the offsets of the best heard log that are lost."""
    unheard: Seats = ()
    """Replicas whose logs nobody could read, or compare for want of epochs: each may hold more than the best one."""
    behind_best: Offset | None = None
    """Offsets of the best heard log that the elected one does not hold."""
    best: Int32 | None = None
    """The replica with the best heard log."""
    agrees_to: Offset | None = None
    """The elected log and the best one agree up to this offset (exclusive); from there on they differ or one ends."""
    committed_ranges: tuple[OffsetRange, ...] = ()
    """The offsets `[first, last]` behind `committed.at_least`: below some replica's high watermark, and lost."""
    gone_ranges: tuple[OffsetRange, ...] = ()
    """Those of them that no log that was read holds, whichever replica is elected: a disk's saved high watermark lies
    beyond every log's end."""
    lost_data: Seats = ()
    """Replicas that held everything committed once, and whose logs are known to lack some of it now."""
    may_have_lost: Seats = ()
    """Replicas whose disks have lost the tails of other logs, so that theirs of this partition may be cut, too."""
    min_isr: Count | None = None
    """Where no committed record is lost on a condition: that fewer than so many replicas lost data. It is of what was
    committed with this min ISR. None: another grade, or it is not known."""
    contradictory: bool = False
    """The elected one's place in ISR or ELR says that it holds everything committed, and what others hold denies it."""
    lost_ranges: tuple[OffsetRange, ...] = ()
    """Offsets `[first, last]` of the best log that would be lost."""
    truncations: tuple[Truncation, ...] = ()
    reason: str = ""
    """One sentence for a person: why this grade."""

    @property
    def counted(self) -> bool:
        """Whether its bounds say how much: nothing contradicts them, and the logs could be compared."""
        return self.total is not None and not self.contradictory


@dataclass(frozen=True, slots=True)
class KeptOut:
    """Why a replica is not in the ISR of a partition that is led, as far as anything that was read tells."""

    rule: str
    """The rule that it does not pass, or that nothing which was read answers; ``kelr explain --why`` explains it."""
    text: str
    """What was seen, or what is not known."""


DIRECTORY_OFFLINE = "live with its log directory offline"
"""`Candidate.status` of a replica whose broker is up and answered that the log's directory has failed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One replica's standing in the decision."""

    replica: int
    live: bool
    status: str
    in_isr: bool
    in_elr: bool | None
    last_known: bool | None
    rack: str | None = None
    broker_epoch: int | None = None
    last_epoch: int | None = None
    log_end: int | None = None
    high_watermark: int | None = None
    last_stable_offset: int | None = None
    """The LSO; below the high watermark where a transaction has no end below that."""
    saved_high_watermark: int | None = None
    """The high watermark that its disk has saved, where that lies beyond the log's end: what is between is lost there.
    """
    log_start: int | None = None
    current_leader_epoch: int | None = None
    source: str | None = None
    heard: bool = False
    unheard_reason: str | None = None
    behind_best: int | None = None
    """Offsets that the best heard log has and this one has not; None where this one was not heard."""
    diverges_at: int | None = None
    """First offset at which this log and the best one hold different records; None where one continues the other."""
    best: bool = False
    longest: bool = False
    """It has the highest log end of all heard; differs from `best` where an older epoch ran further."""
    eligible: bool = False
    """Whether Kafka would elect it by itself now."""
    reason: str = ""
    kept_out: KeptOut | None = None
    """Why it is not in the ISR; None for a member, and where nobody live leads."""

    @property
    def down(self) -> bool:
        """Whether its broker is to be started; one that is up without this log's directory is not."""
        return not self.live and self.status != DIRECTORY_OFFLINE


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one kind of election would give now."""

    election: ElectionType
    elected: int | None
    elected_by: ElectedBy | None = None
    steps: tuple[Step, ...] = ()
    loss: Loss | None = None
    """None where nobody is elected."""
    waits_for: tuple[int, ...] = ()
    designate: int | None = None
    """For a designation: the replica asked for."""
    note: str = ""
    """What to know besides: why nobody is elected, or that the election is not needed."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What Kafka does by itself at the moment one absent broker is back (unfenced)."""

    replica: int
    clean: bool
    """Whether its last shutdown was clean (KIP-966, "Detection of an unclean shutdown")."""
    elected: int | None
    elected_by: ElectedBy | None
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None
    """None where it is not known: it may hang on a min ISR that could not be read."""
    loss: Loss | None = None
    warning: str = ""
    """Set where waiting is not safe: the replica would be elected with a log that may be, or is, shorter. Where nobody
    is elected: what the unclean recovery of the kip966 rules waits for then."""
    then: Outcome | None = None
    """Where its return elects nobody: what designating it then gives and loses. None under the kip966 rules."""

    @property
    def leads(self) -> int | None:
        """Who leads in the end: whom the return elects, or the replica itself once it is designated."""
        return self.elected if self.then is None else self.then.elected

    @property
    def costs(self) -> Loss | None:
        """What `leads` loses; None where nobody does."""
        return self.loss if self.then is None else self.then.loss


class AdviceAction(StrEnum):
    """What to do; a small vocabulary for scripts."""

    NOTHING = "nothing"
    WAIT = "wait"
    BRING_BACK = "bring-back"
    HOLD = "hold"
    """Keep a broker down: Kafka would elect it with a log that is known to be worse, or may be gone. Where it is up
    without this log's directory (`Candidate.status`), it is not restarted without the data."""
    DESIGNATE = "designate"
    LONGEST_LOG_BALANCED = "longest-log-balanced"
    LONGEST_LOG_AGGRESSIVE = "longest-log-aggressive"
    ELECT_PREFERRED = "elect-preferred"
    GET_MORE_INFORMATION = "get-more-information"
    RESTORE_REPLICATION = "restore-replication"
    """It has a leader; bring the missing replicas back before the next failure."""
    RESCUE = "rescue"
    """It has a leader; save what the disk of a broker that is down holds, and the leader's log lacks, before that
    broker starts: it truncates then."""


class Unsaved(StrEnum):
    """Whether other logs, mostly on disks of brokers that are down, hold what the log of the live leader lacks: the
    only copies, until those replicas follow it and truncate."""

    KNOWN = "known"
    """Such a log was read."""
    LIKELY = "likely"
    """An unclean election came before, or left its sign, and no such disk was read."""
    NOT_KNOWN = "not-known"
    """Nobody led for a while before this leader was elected, and nothing tells whether that election was clean."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What an engineer should do next, why, and the command that does it or takes the first step."""

    action: AdviceAction
    text: str
    replica: Int32 | None = None
    alternative: str = ""
    """What to do where the first advice cannot be followed."""
    until: str = ""
    """Where the advice is to wait, or to bring a broker back: until when that is worth it, and what it costs."""
    stock: str = ""
    """A shell line of Kafka's own tools that comes before everything else: it writes the config that `text` says to
    write, with ``{stock}`` where their connection flags go. In documents a line as for `elect`; null: there is none."""
    command: tuple[str, ...] = ()
    """The next command as arguments after ``kelr``, without connection flags; the views add those that were given."""
    designate: Int32 | None = None
    """The replica whose designation `text` or `alternative` speaks of."""
    elect: tuple[str, ...] = ()
    """The command of the election that `text`, `until` or `alternative` speaks of: mostly it designates `designate`. It
    shows its plan and asks before it changes anything; in documents a line
    with the connection flags, and null for a state that is imagined or under other rules than the cluster's."""
    rescue: tuple[str, ...] = ()
    """The command that saves what following the advice truncates, before `command`; empty where no log that was heard
    is truncated. In documents a line, as for `elect`."""
    keep_down: Seats = ()
    """Brokers that stay down until the one to bring back leads, or where the advice is to learn more, until that is
    known: with them Kafka would elect a worse log, or may."""
    stop: Seats = ()
    """Live brokers to be stopped first, and kept down as `keep_down` says."""
    start: Seats = ()
    """Where the advice is to bring a broker back: those that the text speaks of starting, `replica` first. Whether one
    of them is enough, the text tells. Empty for `replica` alone."""


class DamageKind(StrEnum):
    """What makes a loss, or a missing leader, mean more here than elsewhere."""

    CONSUMER_OFFSETS = "consumer-offsets"
    TRANSACTION_STATE = "transaction-state"
    SHARE_GROUP_STATE = "share-group-state"
    REMOTE_LOG_METADATA = "remote-log-metadata"
    CLUSTER_METADATA = "cluster-metadata"
    COMPACTED = "compacted"
    REMOTE_STORAGE = "remote-storage"
    """The topic has remote storage: what of it an election leaves readable there."""
    FOREIGN = "foreign"
    """Its records are not in its replicas' logs (`TopicConfig.foreign`)."""
    SINGLE_REPLICA = "single-replica"
    MIN_ISR_1 = "min-isr-1"
    OPEN_TRANSACTION = "open-transaction"
    """A transaction without an end below the high watermark, in the best log that was heard."""
    LOST_MARKER = "lost-marker"
    """An election may, or would, lose the marker that ended a transaction."""


@dataclass(frozen=True, slots=True)
class Damage:
    """What a loss, or the missing leader, means for this topic."""

    kind: DamageKind
    text: str
    afterwards: str = ""
    """What shows, after an election, what was broken, or mends it: a shell line of Kafka's own tools, with ``{stock}``
    where their connection flags go."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one rule set says of one partition at one moment."""

    topic: str
    """The topic's name."""
    partition: int
    """The partition's number."""
    rules: str
    """Name of the rule set that decided."""
    situation: Situation
    """Where the partition stands, in one word."""
    leader: int | None
    """The broker that leads; None: no leader."""
    leader_epoch: int
    """Raised by one with each election."""
    replicas: tuple[int, ...]
    """Replicas in assignment order; the first is the preferred leader."""
    isr: tuple[int, ...]
    """In-sync replicas."""
    elr: tuple[int, ...] | None
    """Eligible leader replicas; None: not known."""
    last_known_elr: tuple[int, ...] | None
    """On Kafka 4.x the last known leader; None: not known."""
    min_isr: int | None
    """The one that its leader goes by (`leader_min_isr`); None where the config is not known."""
    unclean_leader_election: bool | None
    """The topic's effective unclean.leader.election.enable; None: not known."""
    elected: int | None
    """Whom Kafka elects by itself now; None: nobody."""
    elected_by: ElectedBy | None
    """The rule that elects; None where nobody is elected."""
    waits_for: tuple[int, ...]
    """Brokers of which each would be elected on its return; under the `kip966` rules also those whose logs the recovery
    waits for."""
    steps: tuple[Step, ...]
    """The rules that Kafka asks by itself now, in order, up to the one that decides."""
    candidates: tuple[Candidate, ...]
    """Each replica's standing, in assignment order."""
    elections: tuple[Outcome, ...]
    """One outcome for each election type; for a designation one for each live replica."""
    forecasts: tuple[Forecast, ...]
    """What Kafka does when each absent broker returns, cleanly or not; empty where a live leader leads."""
    advice: Advice
    """What to do next."""
    damage: tuple[Damage, ...] = ()
    """What the missing leader, or a loss, means for this topic; empty for a healthy partition and where there is
    nothing to say beyond the offsets that are counted."""
    summary: str = ""
    """One sentence: leader, since which epoch, what it waits for."""
    notes: tuple[str, ...] = ()
    """What weakens this decision: unknown configs, a stale answer, an older source."""
    cluster_rules: str | None = None
    """The rule set that the cluster was found to run, where somebody named another; None: `rules` may be its own."""
    unsaved: Unsaved | None = None
    """Whether other logs hold, or may hold, what the leader's log lacks; None: there is no sign of it."""
    recovery_quorum: RecoveryQuorum | None = None
    """Who held everything committed when the high watermark could last advance, by a metadata log; None where none was
    at hand."""
