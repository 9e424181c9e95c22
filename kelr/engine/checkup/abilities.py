"""What a cluster supports, and which request or method kelr uses for each thing, with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kelr.controller import choose_rules
from kelr.engine.checkup.features import KNOWN_FEATURES, KRAFT_VERSION, announcements
from kelr.engine.checkup.metadata_versions import release_of, version_name
from kelr.engine.words import brokers as broker_words
from kelr.engine.words import joined
from kelr.model import ELR_FEATURE, LOG_INFO_FEATURE, METADATA_FEATURE, RECOVERY_FEATURE, BrokerStatus
from kelr.model.checkup import CheckupFacts, NotRead

CLUSTER, METHODS = "cluster", "methods"


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing that the cluster is or can do, or how kelr does one."""

    group: str
    """``cluster``: what it is; ``methods``: what kelr uses."""
    name: str
    value: str
    """``unknown`` where nobody tells."""
    why: str = ""
    """What it rests on."""


@dataclass(frozen=True, slots=True)
class LogInfo:
    """How logs are asked about: GetReplicaLogInfo as somebody configured it, or as brokers announce it."""

    configured: str | None = None
    announced: str | None = None


def abilities(facts: CheckupFacts, log_info: LogInfo) -> tuple[Ability, ...]:
    """All of them, in the order in which they are told."""
    return (*_cluster(facts), *_methods(facts, log_info))


def _cluster(facts: CheckupFacts) -> Iterator[Ability]:
    cluster = facts.cluster
    features = cluster.features
    yield Ability(CLUSTER, "brokers", _brokers(facts), f"{cluster.brokers_source}: {_fenced(facts)}")
    yield Ability(CLUSTER, "controller", *_controller(facts))
    newest = (features.supported or {}).get(METADATA_FEATURE)
    release = release_of(newest)
    software = f"Kafka {release}" if release else "unknown"
    why = f"supports metadata.version up to {version_name(newest)}; patch releases cannot be told apart"
    yield Ability(CLUSTER, "software", software, why if newest is not None else "no broker tells")
    yield from _others(facts, newest)
    level = features.metadata_version
    yield Ability(CLUSTER, METADATA_FEATURE, version_name(level), "" if level is None else f"level {level}")
    yield Ability(CLUSTER, "ELR", *_elr(facts))
    finalized = features.finalized
    if finalized is not None:
        yield Ability(CLUSTER, KRAFT_VERSION, *_kraft_version(facts))
        others = sorted(set(finalized) | set(features.supported or {}))
        unknown = [
            f"{name} (level {finalized.get(name, 0)}, up to {(features.supported or {}).get(name, 'unknown')})"
            for name in others
            if name not in {*KNOWN_FEATURES, RECOVERY_FEATURE, LOG_INFO_FEATURE}
        ]
        if unknown:
            yield Ability(CLUSTER, "other features", joined(unknown), "kelr does not know what they are")
    recovery = "yes" if features.elects_natively else "no" if features.elect_leaders is not None else "unknown"
    takes = f"ElectLeaders up to v{features.elect_leaders}" if features.elect_leaders is not None else "not looked at"
    if features.recovery_manager is False:
        recovery, takes = "no", f"{RECOVERY_FEATURE} is off: an unclean election looks at no logs; {takes}"
    yield Ability(CLUSTER, "unclean recovery", recovery, f"{takes}; KIP-966's is v3, and in no release")


def _brokers(facts: CheckupFacts) -> str:
    cluster = facts.cluster
    counts = {status: sum(broker.status is status for broker in cluster.brokers) for status in BrokerStatus}
    shown = [f"{count} {status}" for status, count in counts.items() if count]
    racks = sorted({broker.rack for broker in cluster.brokers if broker.rack is not None})
    words = f"; racks {', '.join(racks)}" if racks else "; no racks"
    return (", ".join(shown) or "none") + words


def _fenced(facts: CheckupFacts) -> str:
    return "fenced ones are listed" if facts.cluster.lists_fenced_brokers else "live ones alone are listed"


def _controller(facts: CheckupFacts) -> tuple[str, str]:
    quorum = facts.quorum
    active = facts.cluster.controller
    name = "unknown" if active is None else str(active)
    if isinstance(quorum, NotRead):
        return name, f"voters: {quorum.why}"
    voters = ", ".join(str(one.node) for one in sorted(quorum.voters, key=lambda one: one.node))
    return str(quorum.leader), f"voters {voters}; epoch {quorum.leader_epoch}"


def _others(facts: CheckupFacts, newest: int | None) -> Iterator[Ability]:
    """Brokers whose software is another than that of the one that answered."""
    by_version: dict[int | None, list[int]] = {}
    for broker, announced in sorted(announcements(facts).items()):
        by_version.setdefault((announced.supported or {}).get(METADATA_FEATURE), []).append(broker)
    for version, ids in by_version.items():
        if version != newest:
            release = release_of(version)
            yield Ability(
                CLUSTER,
                "software",
                f"Kafka {release}" if release else "unknown",
                f"{broker_words(ids)}: metadata.version up to {version_name(version)}",
            )


def _elr(facts: CheckupFacts) -> tuple[str, str]:
    features = facts.cluster.features
    if features.finalized is None:
        return "unknown", "the brokers tell no feature levels"
    level = features.finalized.get(ELR_FEATURE, 0)
    if level:
        return "on", f"{ELR_FEATURE} {level} (eligible.leader.replicas.enabled in KIP-966's texts)"
    if features.supported is not None and features.supported.get(ELR_FEATURE, 0) < 1:
        return "off", "the software does not have it"
    return "off", f"{ELR_FEATURE} 0"


def _kraft_version(facts: CheckupFacts) -> tuple[str, str]:
    """Its level is no record of the metadata log's, so that a log cannot say that it is 0; brokers list no feature that
    is 0."""
    features = facts.cluster.features
    level = (features.finalized or {}).get(KRAFT_VERSION)
    if level is None and (isinstance(facts.brokers, NotRead) or KRAFT_VERSION not in (features.supported or {})):
        return "unknown", ""
    return (str(level), "voters can be changed") if level else ("0", "voters are static")


def _methods(facts: CheckupFacts, log_info: LogInfo) -> Iterator[Ability]:
    cluster = facts.cluster
    chosen = choose_rules(cluster.features)
    sure = "" if chosen.certain else " (assumed)"
    yield Ability(METHODS, "rules", f"{chosen.rules.name}{sure}", chosen.reason)
    if isinstance(facts.brokers, NotRead):
        return  # nothing is asked of what was saved
    pages = cluster.partitions_source
    elr = "tells ELR and LastKnownELR where ELR is on" if pages.startswith("DescribeTopic") else "ELR is not told"
    yield Ability(METHODS, "partitions", pages, elr)
    yield Ability(METHODS, "logs", *_logs(log_info))
    native = cluster.features.elects_natively
    yield Ability(
        METHODS,
        "designation",
        "ElectLeaders v3" if native else "reorder, ElectLeaders, restore",
        "names the leader" if native else "no ElectLeaders v3: AlterPartitionReassignments puts the replica first",
    )
    if cluster.reassignments_error is None:
        yield Ability(METHODS, "reassignments", "ListPartitionReassignments")
    else:
        yield Ability(METHODS, "reassignments", "unknown", cluster.reassignments_error)
    quorum = facts.quorum
    if isinstance(quorum, NotRead):
        yield Ability(METHODS, "metadata log", "unknown", f"where the controllers are: {quorum.why}")
    elif quorum.listeners:
        yield Ability(METHODS, "metadata log", f"Fetch from {', '.join(quorum.listeners)}", "as DescribeQuorum tells")
    else:
        yield Ability(METHODS, "metadata log", "--bootstrap-controller", "DescribeQuorum before v2 tells no listeners")


def _logs(log_info: LogInfo) -> tuple[str, str]:
    if log_info.configured is not None:
        return log_info.configured, "as configured; ListOffsets and Fetch where it is refused"
    if log_info.announced is not None:
        return log_info.announced, "as brokers announce it"
    return "ListOffsets and Fetch", "GetReplicaLogInfo is neither configured nor announced"
