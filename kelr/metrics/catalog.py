"""The metrics that say something about elections and durability, and how to tell them under any of their names.

A metric is an MBean of Kafka's. Exporters make four kinds of names of it, in any letter case:

    kafka_controller_kafkacontroller_offlinepartitionscount               rules of Strimzi, and Kafka's examples
    kafka_controller_KafkaController_Value{name="OfflinePartitionsCount"} no rules: the name is a label
    kafka_controller_controllerstats_uncleanleaderelectionspersec_total   reporters inside Kafka: PerSec is kept
    kafka_controller_ControllerStats_UncleanLeaderElectionsPerSec         mixins: the case is kept

Sources: controller/metrics/*.java, ReplicaManager.scala, Partition.scala, LogManager.scala of Apache Kafka 3.7 to
4.3.1; KIP-966, "Metrics"; the rule files of jmx_exporter and Strimzi.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from kelr.model import METADATA_FEATURE, Features
from kelr.model.measured import MetricScope


class Attribute(Enum):
    """Which of an MBean's attributes a value is."""

    VALUE = "Value"
    COUNT = "Count"
    ONE_MINUTE_RATE = "OneMinuteRate"


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of Kafka's, and where it is found."""

    key: str
    """kelr's name for it."""
    title: str
    domain: str
    type: str
    name: str
    scope: MetricScope
    attribute: Attribute = Attribute.VALUE
    of_each_partition: bool = False
    """A series for each partition: those that are not 0 are counted."""
    also: tuple[str, ...] = ()
    """Other names of the metric, in lower case, with underscores."""
    shipped: bool = True
    """Whether any release of Apache Kafka has it."""

    @property
    def mbean(self) -> str:
        """Its object name, without the keys that tell its instances apart."""
        return f"{self.domain}:type={self.type},name={self.name}"

    @property
    def base(self) -> str:
        """Its name in the form of the common rules, PerSec kept."""
        return f"{self.domain.replace('.', '_')}_{self.type}_{self.name}".lower()


_CONTROLLER, _BROKER = MetricScope.CONTROLLER, MetricScope.BROKER


def _controller(key: str, title: str, name: str) -> Metric:
    return Metric(key, title, "kafka.controller", "KafkaController", name, _CONTROLLER)


def _broker(key: str, title: str, name: str) -> Metric:
    return Metric(key, title, "kafka.server", "ReplicaManager", name, _BROKER)


def _elections(key: str, title: str, name: str, attribute: Attribute) -> Metric:
    return Metric(key, title, "kafka.controller", "ControllerStats", name, _CONTROLLER, attribute)


def _of_the_kip(key: str, title: str, name: str, *kip_names: str) -> Metric:
    """One of KIP-966's, by the names of its newest text and of an older one."""
    also = tuple(f"kafka_{domain}_{one}" for one in kip_names for domain in ("controller", "replication"))
    return Metric(key, title, "kafka.controller", "KafkaController", name, _CONTROLLER, also=also, shipped=False)


METRICS: tuple[Metric, ...] = (
    _controller("offline_partitions", "offline partitions", "OfflinePartitionsCount"),
    _broker("under_min_isr", "under min ISR (led)", "UnderMinIsrPartitionCount"),
    Metric(
        "partitions_under_min_isr",
        "under min ISR (series)",
        "kafka.cluster",
        "Partition",
        "UnderMinIsr",
        _BROKER,
        of_each_partition=True,
    ),
    _of_the_kip(
        "global_under_min_isr",
        "under min ISR (all)",
        "GlobalUnderMinIsrPartitionCount",
        "global_under_min_isr_partition_count",
    ),
    _of_the_kip(
        "manual_election_required",
        "need an operator",
        "ManualLeaderElectionRequiredPartitionCount",
        "manual_leader_election_required_partition_count",
        "paused_partitions_count",
    ),
    _of_the_kip(
        "unclean_recoveries",
        "in unclean recovery",
        "UncleanRecoveryPartitionsCount",
        "unclean_recovery_partitions_count",
    ),
    _of_the_kip(
        "unclean_recoveries_finished",
        "unclean recoveries done",
        "UncleanRecoveryFinishedCount",
        "unclean_recovery_finished_count",
    ),
    _of_the_kip("electable_replicas", "electable replicas", "ElectableReplicasCount", "electable_replicas_count"),
    _elections("unclean_elections", "unclean elections", "UncleanLeaderElectionsPerSec", Attribute.COUNT),
    _elections(
        "unclean_elections_rate", "unclean elections/s", "UncleanLeaderElectionsPerSec", Attribute.ONE_MINUTE_RATE
    ),
    _elections("elr_elections", "elections from ELR", "ElectionFromEligibleLeaderReplicasPerSec", Attribute.COUNT),
    _controller("active_controllers", "active controllers", "ActiveControllerCount"),
    _controller("active_brokers", "active brokers", "ActiveBrokerCount"),
    _controller("fenced_brokers", "fenced brokers", "FencedBrokerCount"),
    _controller("brokers_shutting_down", "brokers shutting down", "ControlledShutdownBrokerCount"),
    _controller("partitions", "partitions", "GlobalPartitionCount"),
    _controller("preferred_imbalance", "not led by preferred", "PreferredReplicaImbalanceCount"),
    _controller("metadata_errors", "metadata errors", "MetadataErrorCount"),
    _broker("leaders", "partitions led", "LeaderCount"),
    _broker("at_min_isr", "at min ISR (led)", "AtMinIsrPartitionCount"),
    _broker("under_replicated", "under-replicated (led)", "UnderReplicatedPartitions"),
    _broker("offline_replicas", "replicas on failed disks", "OfflineReplicaCount"),
    Metric(
        "offline_log_dirs", "failed log directories", "kafka.log", "LogManager", "OfflineLogDirectoryCount", _BROKER
    ),
    Metric("logs_to_recover", "logs still to recover", "kafka.log", "LogManager", "remainingLogsToRecover", _BROKER),
)
"""In the order in which they are shown."""

BY_KEY: Mapping[str, Metric] = {metric.key: metric for metric in METRICS}

PREFIXES = (
    *tuple(sorted({f"{one.domain}_{one.type}".replace(".", "_").lower() for one in METRICS})),
    "kafka_controller_",
    "kafka_replication_",
)
"""What the name of every known metric begins with, in lower case."""

_SUFFIXES: Mapping[str, Attribute | None] = {
    "_value": Attribute.VALUE,
    "_count": Attribute.COUNT,
    "_total": Attribute.COUNT,
    "_count_total": Attribute.COUNT,
    "_oneminuterate": Attribute.ONE_MINUTE_RATE,
    "_1minuterate": Attribute.ONE_MINUTE_RATE,
    "_one_minute_rate": Attribute.ONE_MINUTE_RATE,
}


@dataclass(frozen=True, slots=True)
class Recognized:
    """A metric, and whether its name says which attribute it is."""

    metric: Metric
    attribute_said: bool = True


def recognize(name: str, labels: Mapping[str, str]) -> Recognized | None:
    """The metric that an exporter's series is; None for another one.

    Args:
        name: the series' name, as any of the four kinds of rules make it.
    """
    low = name.lower()
    of_label = labels.get("name")
    if of_label is not None:
        for suffix, attribute in _SUFFIXES.items():
            found = _BY_BASE.get(f"{low.removesuffix(suffix)}_{of_label.lower()}") if low.endswith(suffix) else None
            if found is not None:
                return _with_attribute(found, attribute)
    if (plain := _BY_BASE.get(low)) is not None:
        return _with_attribute(plain, None)
    for suffix, attribute in _SUFFIXES.items():
        if low.endswith(suffix) and (cut := _BY_BASE.get(low.removesuffix(suffix))) is not None:
            return _with_attribute(cut, attribute)
    return None


def recognize_mbean(domain: str, keys: Mapping[str, str], attribute: str) -> Metric | None:
    """The metric that an attribute of an MBean is; its keys come in any order."""
    base = f"{domain.replace('.', '_')}_{keys.get('type', '')}_{keys.get('name', '')}".lower()
    return next((one for one in _BY_BASE.get(base, ()) if one.attribute.value == attribute), None)


def _with_attribute(found: tuple[Metric, ...], attribute: Attribute | None) -> Recognized | None:
    """Of the metrics of an MBean the one that this attribute is. A meter whose name says no attribute is its count:
    that is what rules without a suffix are written for."""
    if attribute is None:
        first = found[0]
        return Recognized(first, attribute_said=first.attribute is Attribute.VALUE)
    if attribute is Attribute.COUNT and found[0].attribute is Attribute.VALUE:
        return None
    return next((Recognized(one) for one in found if one.attribute is attribute), None)


def _by_base() -> Mapping[str, tuple[Metric, ...]]:
    known: dict[str, tuple[Metric, ...]] = {}
    for metric in METRICS:
        # The common rules cut PerSec off.
        for base in (metric.base, metric.base.removesuffix("persec"), *metric.also):
            if metric not in known.get(base, ()):
                known[base] = (*known.get(base, ()), metric)
    return known


_BY_BASE = _by_base()


# What released versions count wrongly, or do not have. Kafka tells no version; the highest metadata.version that its
# software supports changes with each minor release (MetadataVersion.LATEST_PRODUCTION). That is the software of the
# broker that answered; controllers may run another.


@dataclass(frozen=True, slots=True)
class MetricBug:
    """What is wrong with a metric, and in which releases."""

    metric: str
    issue: str
    first: int | None
    """The lowest metadata.version of the releases that have it; None: since ever."""
    last: int
    """The highest one."""
    releases: str
    text: str
    missing: bool = False
    """Whether those releases do not have the metric at all."""

    def holds(self, newest: int) -> bool:
        """Whether software that supports this metadata.version at the most has the bug."""
        return (self.first is None or self.first <= newest) and newest <= self.last


_KAFKA_3_8, _KAFKA_3_9, _KAFKA_4_0 = 20, 21, 25

BUGS: tuple[MetricBug, ...] = (
    MetricBug(
        "unclean_elections",
        "KAFKA-12670",
        None,
        _KAFKA_3_8,
        "before 3.9",
        "KRaft controllers before 3.9 have no such metric",
        missing=True,
    ),
    MetricBug(
        "unclean_elections",
        "KAFKA-18940, KAFKA-19212",
        _KAFKA_3_9,
        _KAFKA_3_9,
        "3.9",
        "3.9 counts an election as unclean whenever the leader was not in the ISR before the same batch of records:"
        " elections from the ELR, and clean ones that follow quickly on a growing ISR",
    ),
    MetricBug(
        "unclean_elections",
        "KAFKA-19212",
        _KAFKA_4_0,
        _KAFKA_4_0,
        "4.0",
        "4.0 counts an election as unclean if the leader was in neither ISR nor ELR before the same batch of records,"
        " also a clean one that follows quickly on a growing ISR",
    ),
    MetricBug(
        "elr_elections",
        "KAFKA-19212",
        None,
        _KAFKA_4_0,
        "before 4.1",
        "controllers before 4.1 have no such metric",
        missing=True,
    ),
    MetricBug(
        "brokers_shutting_down",
        "KIP-1131",
        None,
        _KAFKA_4_0,
        "before 4.1",
        "controllers before 4.1 have no such metric",
        missing=True,
    ),
)
"""Read in the classes of kafka-metadata 3.8.1, 3.9.1, 4.0.0, 4.0.1, 4.1.0, 4.1.1 and 4.3.1."""

_SAME_METER: Mapping[str, str] = {"unclean_elections_rate": "unclean_elections"}


def bug_of(metric: str, features: Features) -> MetricBug | None:
    """What is known to be wrong with a metric in the cluster's software; None where nothing is, or its version is not
    known."""
    newest = (features.supported or {}).get(METADATA_FEATURE)
    wanted = _SAME_METER.get(metric, metric)
    if newest is None:
        return None
    return next((bug for bug in BUGS if bug.metric == wanted and bug.holds(newest)), None)
