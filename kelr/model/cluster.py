"""Brokers, feature levels and topic configs: what a decision needs to know besides the partition itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

ELR_FEATURE = "eligible.leader.replicas.version"
"""The feature that KIP-966's texts call by an older name, as a config: eligible.leader.replicas.enabled."""
RECOVERY_FEATURE = "unclean.recovery.manager.enabled"
"""KIP-966 calls it a feature flag ("Compatibility") and a config ("Config changes"); no release has it."""
LOG_INFO_FEATURE = "get.replica.log.info.api.key"
"""A supported feature of this name announces GetReplicaLogInfo: its highest level is the API key, its lowest one is 0
for `Dialect.KIP` and 1 for `Dialect.PATCH`. kelr's own convention: no release of Kafka has it, or any other sign."""
METADATA_FEATURE = "metadata.version"
_KAFKA_4_4 = 31
"""The oldest metadata.version of Kafka 4.4, 4.4-IV0."""
NATIVE_ELECT_LEADERS = 3
"""The version of ElectLeaders that KIP-966 adds."""


class BrokerStatus(StrEnum):
    """Whether a broker can lead, as far as the answering node knows (kafka-election-rules, rule 1)."""

    LIVE = "live"
    """Registered and not fenced."""
    FENCED = "fenced"
    """Registered, but its heartbeats stopped or it is still starting; it cannot be elected."""
    SHUTTING_DOWN = "shutting-down"
    """In controlled shutdown; it cannot be elected."""
    UNREGISTERED = "unregistered"
    """The controller knows no broker of this id."""
    OFFLINE = "offline"
    """Not live; the source cannot tell fenced from unregistered (DescribeCluster before v2, Metadata)."""


@dataclass(frozen=True, slots=True)
class Broker:
    """One broker as the cluster describes it."""

    id: int
    status: BrokerStatus
    host: str | None = None
    port: int | None = None
    rack: str | None = None
    broker_epoch: int | None = None
    """The offset of its registration record; None where the source does not tell (every released describe request)."""
    registered_by_ms: int | None = None
    """When it was registered with that epoch at the latest, in milliseconds since 1970 UTC; None: not known."""
    log_dirs: tuple[str, ...] | None = None
    """The ids of its log directories that are online, as registered; None: not known."""
    cordoned: bool | None = None
    """Whether all its online log directories are cordoned (KIP-1066, ``cordoned.log.dirs``); None: not known. Kafka 4.4
    and newer takes no order of replicas that names such a broker (validateManualPartitionAssignment), dead or alive."""


@dataclass(frozen=True, slots=True)
class Features:
    """Finalized feature levels, and the newest that the answering broker's software supports.

    A feature that is missing from `finalized` has level 0: off. `None` instead of a mapping means that nobody could
    tell (brokers before 2.7, or a proxy).
    """

    finalized: Mapping[str, int] | None = None
    supported: Mapping[str, int] | None = None
    """Feature name to the highest level that the broker's software knows: the closest thing to a version number."""
    elect_leaders: int | None = None
    """The newest version of ElectLeaders that the answering broker takes; None where it was not looked at. Version 3 is
    KIP-966's, and in no release."""

    @property
    def elr_enabled(self) -> bool | None:
        """Whether the controller keeps ELR (KIP-966); None where it is not known."""
        if self.finalized is None:
            return None
        return self.finalized.get(ELR_FEATURE, 0) >= 1

    @property
    def elects_natively(self) -> bool:
        """Whether ElectLeaders v3 is there: it names the wanted leader, and elects by logs (KIP-966)."""
        return self.elect_leaders is not None and self.elect_leaders >= NATIVE_ELECT_LEADERS

    @property
    def recovery_manager(self) -> bool | None:
        """Whether the Unclean Recovery Manager elects, by the KIP's "feature flag unclean.recovery.manager.enabled"
        ("Compatibility"); None where the software knows no such flag."""
        if (self.finalized or {}).get(RECOVERY_FEATURE, 0) >= 1:
            return True
        return None if self.finalized is None or RECOVERY_FEATURE not in (self.supported or {}) else False

    @property
    def is_4_4(self) -> bool:
        """Whether the software is known to be Kafka 4.4's or newer."""
        return (self.supported or {}).get(METADATA_FEATURE, 0) >= _KAFKA_4_4

    @property
    def refuses_cordoned(self) -> bool:
        """Whether the software takes no order of replicas that names a cordoned broker (`Broker.cordoned`): 4.3 knows
        cordons, and takes one (ReplicationControlManager.validateManualPartitionAssignment of 4.3.1 and of 4.4.0)."""
        return self.is_4_4

    @property
    def metadata_version(self) -> int | None:
        return None if self.finalized is None else self.finalized.get(METADATA_FEATURE)


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster around the partitions: its brokers, its features, and how kelr came to know them."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    features: Features = field(default_factory=Features)
    controller: int | None = None
    brokers_source: str = "unknown"
    """The request that listed the brokers, such as ``DescribeCluster v2``."""
    partitions_source: str = "unknown"
    """The request that described the partitions, such as ``DescribeTopicPartitions v0``."""
    reassignments_error: str | None = None
    """Why a live cluster did not tell which reassignments are under way, such as
    ``CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster``."""
    controller_silence: str | None = None
    """Why no controller that leads answered a live cluster's brokers, such as ``no answer in time``: what they told may
    have been out of date. None: one did, or nobody knows."""
    controllers: Mapping[int, bool] = field(default_factory=dict, compare=False)
    """Voters of the controllers' quorum, and whether each leads or follows, as a live cluster's active controller tells
    at the moment; empty: not known."""
    live: frozenset[int] = field(init=False, repr=False, compare=False)
    """Ids of the brokers that may lead."""
    _by_id: Mapping[int, Broker] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Asked for each replica of each partition, so worked out once.
        live = frozenset(broker.id for broker in self.brokers if broker.status is BrokerStatus.LIVE)
        object.__setattr__(self, "live", live)
        object.__setattr__(self, "_by_id", {broker.id: broker for broker in self.brokers})

    def broker(self, broker_id: int) -> Broker | None:
        return self._by_id.get(broker_id)

    def status(self, broker_id: int) -> BrokerStatus:
        """The broker's status; a broker that the cluster does not list is `UNREGISTERED`, or `OFFLINE` where fenced
        brokers are not listed either."""
        broker = self.broker(broker_id)
        if broker is not None:
            return broker.status
        return BrokerStatus.UNREGISTERED if self.lists_fenced_brokers else BrokerStatus.OFFLINE

    def with_cordons(self, told: Mapping[int, bool]) -> Cluster:
        """The same, with what is told of brokers of which nobody had told whether they are cordoned."""
        new = {broker.id for broker in self.brokers if broker.cordoned is None} & told.keys()
        if not new:
            return self
        brokers = tuple(replace(one, cordoned=told[one.id]) if one.id in new else one for one in self.brokers)
        return replace(self, brokers=brokers)

    def refuses_to_order(self, broker_id: int) -> bool:
        """Whether Kafka takes no order of replicas that names this broker, since it is cordoned."""
        broker = self.broker(broker_id)
        return self.features.refuses_cordoned and broker is not None and bool(broker.cordoned)

    @property
    def as_told(self) -> Cluster:
        """The same, with what brokers tell taken for the present state although no controller answered."""
        return self if self.controller_silence is None else replace(self, controller_silence=None)

    @property
    def tells_leftover_elr(self) -> bool:
        """Whether an ELR that is not told with ELR off is empty. What was left over when ELR was switched off still
        elects, and DescribeTopicPartitions and the metadata log tell of it; the Metadata request does not."""
        return self.partitions_source.startswith(("DescribeTopicPartitions", "metadata log", "scenario"))

    @property
    def lists_fenced_brokers(self) -> bool:
        """Only DescribeCluster v2 (KIP-1073) and kelr's own sources list brokers that are fenced."""
        return self.brokers_source in FENCED_BROKER_SOURCES


FENCED_BROKER_SOURCES = frozenset({"DescribeCluster v2", "metadata log", "scenario"})


REMOTE_STORAGE, DISKLESS, MIRROR = "remote.storage.enable", "diskless.enable", "mirror.name"


def foreign_by(diskless: str | None, mirror: str | None) -> str | None:
    """`TopicConfig.foreign` by the values of `DISKLESS` and `MIRROR`; a mirror that has ended has an empty name."""
    if (diskless or "").strip().lower() == "true":
        return f"{DISKLESS}=true"
    return f"{MIRROR}={mirror.strip()}" if mirror and mirror.strip() else None


class ConfigSource(StrEnum):
    """Where an effective config value comes from (DescribeConfigs ConfigSource)."""

    TOPIC = "topic"
    CLUSTER_DEFAULT = "cluster default"
    BROKER = "broker"
    STATIC = "broker's file"
    DEFAULT = "Kafka's default"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The topic configs that an election and its damage depend on; None where they could not be read."""

    min_insync_replicas: int | None = None
    min_insync_replicas_source: ConfigSource = ConfigSource.UNKNOWN
    unclean_leader_election: bool | None = None
    unclean_leader_election_source: ConfigSource = ConfigSource.UNKNOWN
    error: str | None = None
    """Why the configs could not be read, such as
    ``TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic``."""
    cleanup_policy: tuple[str, ...] | None = None
    """``delete``, ``compact``, or both; empty (KIP-1161) keeps everything. Elections do not look at it; what they
    cost depends on it."""

    recovery_strategy: str | None = None
    """unclean.recovery.strategy (KIP-966): ``none``, ``balanced`` or ``aggressive``; None where the cluster has no such
    config, as no released one has, or where it could not be read."""
    remote_storage: bool | None = None
    """remote.storage.enable (KIP-405): whether what is too old for the brokers' disks is in remote storage."""
    foreign: str | None = None
    """The config by which records are not where elections look for them: ``diskless.enable=true`` (KIP-1150: no replica
    holds them), ``mirror.name=west`` (KIP-1279: they are another cluster's); None: none is told. No release has either;
    a draft of KIP-1279 hides its own from DescribeConfigs, so that only a metadata log tells it."""

    @property
    def unclean_leader_election_of_the_controller(self) -> bool | None:
        """unclean.leader.election.enable as the controller has it; None where that is not known.

        The controller takes the topic's value, else the cluster-wide dynamic one, else that of its own file. A value
        from a broker's file or a broker's dynamic config is that broker's, and no request to a broker tells the
        controller's. Where a broker has false, or Kafka's default of false, the controller is taken to have it too:
        a controller that elects uncleanly leaves no partition leaderless beside live replicas.
        """
        of_a_broker = self.unclean_leader_election_source in {ConfigSource.STATIC, ConfigSource.BROKER}
        return None if of_a_broker and self.unclean_leader_election else self.unclean_leader_election
