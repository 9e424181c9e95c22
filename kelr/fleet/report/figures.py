"""What a report is made of: sums over a fleet, bounded by clusters, brokers, weeks and scenarios, never by partitions.

Each figure says of which tables of the lake it is a sum. None is "not known", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as the newest of its `broker_events` leaves it."""

    id: int
    live: bool
    server: str | None = None
    """host:port of its first listener."""
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How many partitions stand how, where a cluster's newest input ends: the open rows of `partition_states`."""

    partitions: int = 0
    leaderless: int = 0
    elr_only: int = 0
    """Of the leaderless: the ISR is empty and the ELR is not."""
    under_min_isr: int = 0
    """Led, with fewer in sync than min ISR asks for."""
    last_replica: int = 0
    """Led, and of several replicas one alone is in sync."""
    min_isr_unknown: int = 0
    """Led, and min ISR is not known."""
    elr_unknown: int = 0
    """Whether there is an ELR is not known."""


@dataclass(frozen=True, slots=True)
class TopicCount:
    """A topic, and how many of its partitions something holds for."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster of the fleet."""

    id: str
    name: str
    """What it is called in reports; its id where nobody named it."""
    standing: Standing = Standing()
    brokers: tuple[Broker, ...] = ()
    begins: datetime | None = None
    """When the oldest of its input begins, of its metadata log where there is one; UTC."""
    ends: datetime | None = None
    """When the newest ends."""
    from_log: bool = False
    """Whether a metadata log tells of it: without one there are observations, and nothing is known between them."""
    leaderless_topics: tuple[TopicCount, ...] = ()
    """The first few, those with the most partitions first."""

    @property
    def down(self) -> tuple[int, ...]:
        return tuple(broker.id for broker in self.brokers if not broker.live)

    @property
    def servers(self) -> tuple[str, ...]:
        """Where its live brokers listen."""
        return tuple(broker.server for broker in self.brokers if broker.live and broker.server is not None)


@dataclass(frozen=True, slots=True)
class WeekTrouble:
    """One trouble of one cluster in one ISO week: `exposure`, by cluster."""

    cluster: str
    week: date
    """Its Monday."""
    trouble: str
    partitions: int
    spells: int
    seconds: float
    """Of all partitions together."""
    unknown_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble of a cluster or of one of its topics over the whole window: `exposure`, where the week is null."""

    cluster: str
    topic: str | None
    """None: the whole cluster."""
    trouble: str
    partitions: int
    spells: int
    seconds: float
    """Of all partitions together."""
    longest_seconds: float
    unknown_seconds: float
    """The time for which nobody can tell whether they stood in it."""
    share: float | None
    """Of the time that the partitions were there; None: there was none."""
    unknown_share: float | None
    lasting: int
    """How many partitions are in it where the window ends."""
    unsure_spells: int
    """How many spells began or ended at a moment that is not on record."""


@dataclass(frozen=True, slots=True)
class UncleanElections:
    """Elections of one cluster of which it is not sure that the new leader held all that was committed:
    `unclean_elections`."""

    cluster: str
    unclean: int
    """Elections of replicas that were in neither ISR nor ELR."""
    last_known_leader: int
    """Elections of the last known leader, which was in neither either."""
    not_told: int
    """Elections of which it is not told whether they were unclean."""
    partitions: int
    """In which there were elections that were not clean for sure."""
    first: datetime
    last: datetime
    at_stake: int | None
    """Offsets at stake in all elections of which that is known; None: of none."""
    at_stake_unknown: int
    """Elections of which it is not known."""
    designated: int
    """How many elected a replica that was put first in the assignment just before."""
    topics: tuple[TopicCount, ...] = ()
    """The first few, those with the most partitions first."""

    @property
    def sure(self) -> int:
        """Elections that were not clean for sure."""
        return self.unclean + self.last_known_leader

    @property
    def all(self) -> int:
        return self.sure + self.not_told


@dataclass(frozen=True, slots=True)
class UncleanDay:
    """How many elections of a day were not clean for sure: `unclean_elections`."""

    cluster: str
    day: date
    elections: int


@dataclass(frozen=True, slots=True)
class BrokerRestarts:
    """How a broker came back in the window: `unclean_restarts`, where the week is null."""

    cluster: str
    broker: int
    rack: str | None
    host: str | None
    clean: int
    unclean: int
    not_shown: int
    """Restarts of which nothing shows whether they were clean."""
    last_unclean: datetime | None

    @property
    def all(self) -> int:
        return self.clean + self.unclean + self.not_shown


@dataclass(frozen=True, slots=True)
class RiskySetting:
    """A setting that is risky somewhere in a cluster: `risky_settings` of one kind."""

    cluster: str
    setting: str
    places: int
    """How many rows there are: topics, brokers, or the cluster itself."""
    topics: int
    partitions: int
    why: str
    rule: str
    """Section of KIP-966, or class and method of Apache Kafka."""
    examples: tuple[SettingPlace, ...] = ()
    """The first few, those with the most partitions first."""


@dataclass(frozen=True, slots=True)
class SettingPlace:
    """Where a risky setting is, and what changes it."""

    scope: str
    """``cluster``, ``topic`` or ``broker``."""
    name: str
    value: str | None
    partitions: int
    command: str | None
    caution: str | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a failure makes of a cluster, by one rule set: `assessment_sums`.

    Counts are partitions that come to stand so and do not now; of the scenario `now`: that do.
    """

    cluster: str
    name: str
    kind: str
    """`now`, `broker`, `rack`, `pair`, `rack-while-rolling` or `file`."""
    how: str | None
    """`killed`, `stopped`, `back-unclean` or `mixed`; None for `now`."""
    brokers: tuple[int, ...]
    racks: tuple[str, ...]
    happens: str
    """In words."""
    rules: str
    rules_certain: bool
    """Whether the cluster is known to run them."""
    may_lose: int
    leaderless: int
    unproven: int
    """Of the leaderless: no replica is proven complete."""
    under_min_isr: int
    last_replica: int
    uncertain: int
    """Something that is not known would decide."""
    worst_topics: tuple[str, ...] = ()

    @property
    def now(self) -> bool:
        return self.kind == "now"

    @property
    def severity(self) -> tuple[int, ...]:
        """Higher is worse."""
        return self.may_lose, self.unproven, self.leaderless, self.under_min_isr, self.last_replica


@dataclass(frozen=True, slots=True)
class Failures:
    """How many failures of one kind do harm to a cluster: `assessment_sums`."""

    cluster: str
    kind: str
    all: int
    """Scenarios that were assessed."""
    losing: int
    """Those in which committed records may be lost."""
    stopping: int
    """Those in which partitions are without leader or refuse acks=all that do not now."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A step of the pipeline that was not run, or not on all, so that the report does not tell what it would."""

    what: str
    command: tuple[str, ...]
    """Arguments after ``kelr``."""


@dataclass(frozen=True, slots=True)
class Figures:
    """All that a report is made of."""

    place: str
    """The lake."""
    version: int
    """Of the lake."""
    as_of: datetime | None
    """When this version was written; UTC."""
    clusters: tuple[Cluster, ...] = ()
    weeks: tuple[WeekTrouble, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    """Of whole clusters, and of those of their topics that had the most."""
    elections: tuple[UncleanElections, ...] = ()
    election_days: tuple[UncleanDay, ...] = ()
    restarts: tuple[BrokerRestarts, ...] = ()
    settings: tuple[RiskySetting, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    """`now`, and the worst of each kind; by the rules that the cluster runs, as far as that is known."""
    failures: tuple[Failures, ...] = ()
    missing: tuple[Missing, ...] = ()
    quarantined: int = 0
    """Files that could not be read: `inputs`."""
    windows: tuple[tuple[str, datetime | None, datetime | None], ...] = ()
    """Of each cluster of `exposure` (its id): from when to when was looked at; None: not bounded."""

    def cluster(self, id: str) -> Cluster:
        """A cluster by its id, also one that no partition is known of."""
        for one in self.clusters:
            if one.id == id:
                return one
        return Cluster(id, id)
