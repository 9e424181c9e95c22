"""All checks: id, how bad it is, and why it matters in an incident. The one place where a finding is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kelr.model.checkup import Command, Finding, NotChecked, Severity

_CRITICAL, _WARNING, _NOTE = Severity.CRITICAL, Severity.WARNING, Severity.NOTE


class Looks(StrEnum):
    """What a check has to look at."""

    PARTITIONS = "partitions"
    """Every partition, and its topic's configs."""
    CLUSTER = "cluster"
    """Brokers, features, and what they announce."""
    BROKER_CONFIGS = "broker-configs"
    QUORUM = "quorum"
    DIRECTORIES = "directories"
    RESTARTS = "restarts"
    JOURNALS = "journals"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. The id is stable: scripts select by it."""

    id: str
    severity: Severity
    title: str
    """What it looks for, without a subject."""
    why: str
    looks: Looks

    def finding(
        self,
        what: str,
        *,
        severity: Severity | None = None,
        why: str | None = None,
        topic: str | None = None,
        partitions: Iterable[int] = (),
        brokers: Iterable[int] = (),
        commands: Iterable[Command] = (),
        caution: str | None = None,
        harm: str | None = None,
    ) -> Finding:
        """What was found at one place, in this check's words and severity unless others are given."""
        return Finding(
            id=self.id,
            severity=severity or self.severity,
            what=what,
            why=why or self.why,
            topic=topic,
            partitions=tuple(partitions),
            brokers=tuple(brokers),
            commands=tuple(commands),
            caution=caution,
            harm=harm,
        )

    def not_checked(self, why: str, *topics: str) -> NotChecked:
        return NotChecked(self.id, why, topics)


LEADERLESS = Check(
    "leaderless",
    _CRITICAL,
    "partitions without a live leader",
    "clients cannot read from them or write to them",
    Looks.PARTITIONS,
)
NO_CONTROLLER = Check(
    "no-controller",
    _CRITICAL,
    "no controller that leads and answers",
    "Kafka elects no leader and changes no ISR, or a controller does that these brokers do not reach. Brokers show"
    " what they knew last: nothing is known to be well",
    Looks.CLUSTER,
)
QUORUM_LOST = Check(
    "quorum-lost",
    _CRITICAL,
    "fewer controllers than a majority, and none that leads",
    "they cannot elect a leader until a majority runs. If its disks are lost, none starts by itself again, and one"
    " that is started with an older metadata log makes brokers truncate theirs, or delete topics",
    Looks.CLUSTER,
)
UNDER_MIN_ISR = Check(
    "under-min-isr",
    _CRITICAL,
    "partitions with fewer in sync than min ISR",
    "producers with acks=all are refused, consumers see nothing new, and one more failure may leave those that are"
    " led without a leader",
    Looks.PARTITIONS,
)
LOG_DIR_OFFLINE = Check(
    "log-dir-offline",
    _CRITICAL,
    "log directories that failed",
    "the replicas in it are not in sync and cannot lead; what only they hold is out of reach",
    Looks.DIRECTORIES,
)
UNDER_REPLICATED = Check(
    "under-replicated",
    _WARNING,
    "partitions that are led and have replicas out of sync",
    "fewer replicas have the newest records, so that the next failures cost more",
    Looks.PARTITIONS,
)
BROKER_CORDONED = Check(
    "broker-cordoned",
    _NOTE,
    "brokers whose log directories are all cordoned",
    "they take no new replicas, and Kafka 4.4 refuses every order of replicas that names one, so each designation"
    " there",
    Looks.DIRECTORIES,
)
QUORUM_AT_RISK = Check(
    "controller-behind",
    _WARNING,
    "controllers that do not follow the active one",
    "without a majority of them there is no active controller, and then no election at all",
    Looks.QUORUM,
)
BROKER_FENCED = Check(
    "broker-fenced",
    _WARNING,
    "brokers that are registered and fenced",
    "their replicas cannot be in sync or lead, so that their partitions have fewer to fall back on",
    Looks.CLUSTER,
)
REORDERED = Check(
    "journal-open",
    _WARNING,
    "runs of kelr on this machine that were cut short",
    "a partition that still has the order of an election prefers a replica that somebody chose in an emergency",
    Looks.JOURNALS,
)
UNSAVED = Check(
    "unsaved-records",
    _CRITICAL,
    "records that only disks of brokers that are down may hold",
    "an election that kelr made gave records up, or may have: their disks are the only copy until those brokers start"
    " and truncate",
    Looks.JOURNALS,
)
ELR_BUG = Check(
    "elr-bug-19522",
    _WARNING,
    "ELR on Kafka 4.0, which elects dead leaders",
    "where ISR and ELR are empty Kafka 4.0.0 and 4.0.1 elect the last known leader although its broker is down"
    " (KAFKA-19522); the partition then counts as led, so that no further election helps it",
    Looks.CLUSTER,
)
ELR_OFF = Check(
    "elr-off",
    _WARNING,
    "ELR switched off although the software has it",
    "a replica that holds everything committed is forgotten as it leaves the ISR, so that only the last one in sync can"
    " lead again without loss; and an unclean shutdown of that one is not noticed",
    Looks.CLUSTER,
)
ELR_UNKNOWN = Check(
    "elr-unknown",
    _WARNING,
    "feature levels that are not known",
    "whether ELR is on decides who is elected, and kelr has to assume",
    Looks.CLUSTER,
)
FEATURES_BEHIND = Check(
    "features-behind",
    _NOTE,
    "feature levels below what all brokers support",
    "fixes and abilities that hang on a feature level stay off after an upgrade until somebody raises it",
    Looks.CLUSTER,
)
VERSIONS_DIFFER = Check(
    "versions-differ",
    _WARNING,
    "brokers of different software",
    "a rolling upgrade is under way, or was left half done: brokers and controllers may elect by different rules, and"
    " one more restart is always ahead",
    Looks.CLUSTER,
)
CONTROLLERS_FEW = Check(
    "controllers-few",
    _WARNING,
    "fewer than three controllers",
    "when one goes no other takes over, and without an active controller Kafka elects no leader",
    Looks.QUORUM,
)
METADATA_BEHIND = Check(
    "metadata-behind",
    _WARNING,
    "brokers that do not follow the metadata log",
    "such a broker acts by an older picture of who leads, and is fenced where it stays behind",
    Looks.QUORUM,
)
CLOCK_OFF = Check(
    "clock-off",
    _NOTE,
    "another time on the active controller than here",
    "times in logs and histories are those of the cluster's nodes, and not comparable with this machine's",
    Looks.QUORUM,
)
UNCLEAN_RESTARTS = Check(
    "unclean-restarts",
    _WARNING,
    "brokers that came back from unclean shutdowns again and again",
    "each one takes the broker out of every ELR, because its log may have lost a tail",
    Looks.RESTARTS,
)
STATIC_MIN_ISR = Check(
    "static-min-isr",
    _WARNING,
    "min.insync.replicas in brokers' files that does not hold",
    "with ELR on only the cluster's dynamic default counts, so the value in the file misleads; kafka-configs.sh"
    " refuses a value for one broker",
    Looks.BROKER_CONFIGS,
)
MIN_ISR_UNEVEN = Check(
    "min-isr-uneven",
    _WARNING,
    "brokers with different min.insync.replicas",
    "with ELR off each leader goes by its own value, so that what acks=all promises changes with the leader",
    Looks.BROKER_CONFIGS,
)
THROTTLE_LEFT = Check(
    "throttle-left",
    _WARNING,
    "replication throttles, and no reassignment under way",
    "a replica that comes back catches up at this rate and no faster, so that it stays out of the ISR for longer",
    Looks.BROKER_CONFIGS,
)
FLUSHING = Check(
    "flush",
    _NOTE,
    "logs that are flushed by count or by time",
    "what is flushed outlives a power loss of its broker; which replica may lead after one is still up to ISR and ELR",
    Looks.BROKER_CONFIGS,
)
FLUSH_UNWATCHED = Check(
    "flush-unwatched",
    _WARNING,
    "a time after which logs are to be flushed, and brokers that do not look at it",
    "log.flush.scheduler.interval.ms is not set there: Kafka flushes by time once, 30 s after its start, and never"
    " again",
    Looks.BROKER_CONFIGS,
)
AUTO_REBALANCE = Check(
    "auto-rebalance",
    _NOTE,
    "leaders that are moved back by themselves",
    "the controller moves leadership to the first replica of the assignment every few minutes, where that one is in"
    " sync; a leader that somebody chose in an incident does not stay",
    Looks.BROKER_CONFIGS,
)
UNCLEAN_ELECTION = Check(
    "unclean-election",
    _WARNING,
    "unclean.leader.election.enable",
    "when the last replica in sync goes, any live one is elected at once, however little it holds; the rest is lost",
    Looks.PARTITIONS,
)
MIN_ISR_ONE = Check(
    "min-isr-one",
    _WARNING,
    "an effective min ISR of 1 with several replicas",
    "acks=all is answered when a single replica has the record, and then the loss of that one loses it",
    Looks.PARTITIONS,
)
MIN_ISR_IS_RF = Check(
    "min-isr-is-rf",
    _WARNING,
    "an effective min ISR of all replicas",
    "one broker that is down, be it for a restart, stops producers with acks=all",
    Looks.PARTITIONS,
)
RF_ONE = Check(
    "rf-one",
    _WARNING,
    "partitions with a single replica",
    "without its broker there is no leader, and without its disk everything is lost",
    Looks.PARTITIONS,
)
RF_TWO = Check(
    "rf-two",
    _NOTE,
    "partitions with two replicas",
    "with min ISR 2 one broker that is down stops producers, with min ISR 1 one that is lost takes records along",
    Looks.PARTITIONS,
)
ONE_RACK = Check(
    "one-rack",
    _WARNING,
    "partitions with all replicas in one rack, where there are more racks",
    "the rack takes all of them along when it goes",
    Looks.PARTITIONS,
)
FOREIGN = Check(
    "records-elsewhere",
    _WARNING,
    "topics whose records are not in their replicas' logs",
    "what replicas hold says nothing of what an election loses there: kelr plans none and carries none out",
    Looks.PARTITIONS,
)
REMOTE_STORAGE = Check(
    "remote-storage",
    _NOTE,
    "topics with remote storage",
    "the leader's log decides what can be read there: an unclean election cuts off, or has Kafka delete, what that log"
    " does not go on from",
    Looks.PARTITIONS,
)
REASSIGNMENT = Check(
    "reassignment",
    _NOTE,
    "reassignments under way",
    "an election may complete them and drop the replicas that are on their way out; kelr designates no replica"
    " meanwhile",
    Looks.PARTITIONS,
)

CHECKS: tuple[Check, ...] = (
    NO_CONTROLLER,
    QUORUM_LOST,
    LEADERLESS,
    UNDER_MIN_ISR,
    LOG_DIR_OFFLINE,
    BROKER_FENCED,
    UNDER_REPLICATED,
    REORDERED,
    UNSAVED,
    ELR_BUG,
    ELR_OFF,
    ELR_UNKNOWN,
    UNCLEAN_ELECTION,
    MIN_ISR_ONE,
    MIN_ISR_IS_RF,
    RF_ONE,
    ONE_RACK,
    FOREIGN,
    STATIC_MIN_ISR,
    MIN_ISR_UNEVEN,
    QUORUM_AT_RISK,
    CONTROLLERS_FEW,
    METADATA_BEHIND,
    VERSIONS_DIFFER,
    UNCLEAN_RESTARTS,
    THROTTLE_LEFT,
    FLUSH_UNWATCHED,
    RF_TWO,
    FEATURES_BEHIND,
    REMOTE_STORAGE,
    REASSIGNMENT,
    BROKER_CORDONED,
    FLUSHING,
    AUTO_REBALANCE,
    CLOCK_OFF,
)
"""All of them, in the order in which findings of one severity are told."""
BY_ID: Mapping[str, Check] = {check.id: check for check in CHECKS}


def chosen(only: Iterable[str] = (), skip: Iterable[str] = ()) -> frozenset[str]:
    """The ids to look at.

    Raises:
        ValueError: there is no such check; lists those that there are.
    """
    wanted, unwanted = frozenset(only), frozenset(skip)
    for name in sorted(wanted | unwanted):
        if name not in BY_ID:
            raise ValueError(f"there is no check {name!r}; there are {', '.join(sorted(BY_ID))}")
    return (wanted or frozenset(BY_ID)) - unwanted
