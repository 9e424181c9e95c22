"""What ``kelr doctor`` knows of a cluster, and what it finds: facts in, findings out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from kelr.model.cluster import Cluster, ConfigSource
from kelr.model.partition import TopicPartition


class Severity(StrEnum):
    """How bad a finding is; the worst first."""

    CRITICAL = "critical"
    """Somebody cannot read or write now, or a copy is lost already."""
    WARNING = "warning"
    """The next failure will stop somebody, lose records, or be harder to recover from than it has to be."""
    NOTE = "note"
    """Good to know in an incident; nothing is wrong with it."""


@dataclass(frozen=True, slots=True)
class NotRead:
    """Why something is not known."""

    why: str
    """Such as ``connection refused``, or ``CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the cluster``."""


@dataclass(frozen=True, slots=True)
class ConfigRead:
    """One config of a broker, as DescribeConfigs tells it."""

    value: str | None
    """The effective value, as that broker has it."""
    source: ConfigSource
    static: str | None = None
    """The value in the broker's own file; None where the file does not have it."""


@dataclass(frozen=True, slots=True)
class Announced:
    """What one broker's ApiVersions answer says."""

    finalized: Mapping[str, int] | None
    """Feature levels of the cluster, as this broker has them; None before Kafka 2.7."""
    supported: Mapping[str, int] | None
    """Feature name to the highest level that its software knows."""
    requests: Mapping[int, int] = field(default_factory=dict)
    """API key to the newest version."""


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """One log directory of a broker."""

    path: str
    error: str | None = None
    """Kafka's name of what is wrong with it, such as ``KAFKA_STORAGE_ERROR``; None: it is online."""
    cordoned: bool | None = None
    """Whether it takes no new replica (KIP-1066); None: the broker does not tell (DescribeLogDirs before v5)."""


def all_cordoned(directories: Iterable[LogDirectory]) -> bool | None:
    """Whether all of a broker's online log directories are cordoned; None where it does not tell
    (BrokerRegistration.hasUncordonedDirs looks at the directories that are online)."""
    told = [one.cordoned for one in directories if one.error is None]
    return None if None in told else bool(told) and all(told)


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What one broker told about itself."""

    broker: int
    announced: Announced | NotRead
    configs: Mapping[str, ConfigRead] | NotRead
    directories: tuple[LogDirectory, ...] | NotRead


BEHIND_MS = 10_000
"""How long a controller or a broker may be without news of the metadata log. A follower fetches twice a second
(controller.quorum.fetch.timeout.ms is 2 s), so that this is no slowness any more."""


@dataclass(frozen=True, slots=True)
class QuorumNode:
    """A voter or an observer of the metadata log, as the active controller sees it."""

    node: int
    log_end: int | None
    last_fetch_ms: int | None
    """When it fetched last, by the active controller's clock; None where the controller has heard nothing of it."""
    last_caught_up_ms: int | None
    """When it last held everything, by the same clock."""

    def is_behind(self, now_ms: int) -> bool:
        """Whether it has no news of the metadata log, by the active controller's clock."""
        heard = self.last_caught_up_ms if self.last_caught_up_ms is not None else self.last_fetch_ms
        return heard is None or now_ms - heard > BEHIND_MS


@dataclass(frozen=True, slots=True)
class Quorum:
    """The controllers, as DescribeQuorum tells of them."""

    leader: int
    leader_epoch: int
    voters: tuple[QuorumNode, ...]
    observers: tuple[QuorumNode, ...]
    listeners: tuple[str, ...] = ()
    """``HOST:PORT`` of the voters, where DescribeQuorum v2 tells; the leader's first."""
    asked_ms: int | None = None
    answered_ms: int | None = None
    """By the clock of this machine, right before and after the answer."""

    @property
    def now_ms(self) -> int | None:
        """The active controller's own clock as it answered: it gives its own last fetch as the current time
        (LeaderState.describeReplicaState)."""
        return next((voter.last_fetch_ms for voter in self.voters if voter.node == self.leader), None)

    @property
    def following(self) -> Mapping[int, bool]:
        """Voter to whether it leads or follows; empty where the controller that leads tells no times."""
        now_ms = self.now_ms
        if now_ms is None:
            return {}
        return {one.node: one.node == self.leader or not one.is_behind(now_ms) for one in self.voters}


class AddressState(StrEnum):
    """What answers at an address, as far as a connection tells."""

    REFUSED = "refused"
    OPEN = "open"
    SILENT = "silent"
    """Nothing came back: a host that is down, or a firewall."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often a broker registered anew within a metadata log, and what that tells of the shutdowns before."""

    broker: int
    unclean_ms: tuple[int, ...]
    """When it came back from an unclean shutdown, milliseconds since 1970 UTC."""
    clean: int
    not_shown: int
    """Registrations of which the log does not show what was before them."""


@dataclass(frozen=True, slots=True)
class RestartHistory:
    """The restarts of all brokers between the beginning and the end of a metadata log."""

    since_ms: int
    until_ms: int
    brokers: tuple[Restarts, ...]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A journal of kelr on this machine that is not closed."""

    journal: str
    text: str
    """What became of it, in words."""
    reordered: tuple[TopicPartition, ...] = ()
    """Partitions that still have the order of an election."""
    following: tuple[str, ...] = ()
    """The command that goes on, as arguments after ``kelr``."""


@dataclass(frozen=True, slots=True)
class CheckupFacts:
    """Everything but partitions that the checks look at."""

    cluster: Cluster
    brokers: tuple[BrokerFacts, ...] | NotRead
    """One for each broker that the cluster lists; NotRead where nothing can be asked (a snapshot)."""
    defaults: Mapping[str, str] | NotRead
    """Dynamic configs of the whole cluster: name to value."""
    quorum: Quorum | NotRead
    restarts: RestartHistory | NotRead
    left_behind: tuple[LeftBehind, ...] | NotRead
    moving: bool | None = None
    """Whether a reassignment is under way anywhere; None: not known."""
    unsaved: Mapping[TopicPartition, tuple[int, ...]] | NotRead = field(default_factory=dict)
    """Partitions of which an election on record may have given something up, with the brokers that are down and whose
    disks may hold it."""
    controllers: Mapping[str, AddressState] = field(default_factory=dict)
    """Where no controller answers: the addresses of controllers that brokers name, and what answers there."""


Command: TypeAlias = str | tuple[str, ...]
"""A shell line, ``{stock}`` standing where the connection flags of Kafka's tools go; or arguments after ``kelr``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be, at one place: the cluster, some brokers, or partitions of one topic."""

    id: str
    severity: Severity
    what: str
    """A sentence."""
    why: str
    """What it means in an incident."""
    topic: str | None = None
    partitions: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()
    """Brokers, or controllers, that it is about."""
    commands: tuple[Command, ...] = ()
    """What puts it right, in order; empty where no command does."""
    caution: str | None = None
    """What to know before running them, or what to do where there is no command."""
    harm: str | None = None
    """What its commands would do to partitions that are in trouble; None: they may be run at any time."""


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A check that could not be made, or not everywhere."""

    id: str
    why: str
    topics: tuple[str, ...] = ()
    """The topics that it could not be made for; empty: for everything."""


class Result(StrEnum):
    """What came of one check."""

    FOUND = "found"
    CLEAR = "clear"
    PARTLY = "partly"
    """Nothing was found where it could be looked at, and not everything could be."""
    NOT_CHECKED = "not-checked"
    SKIPPED = "skipped"
    """`--only` or `--skip` left it out."""
