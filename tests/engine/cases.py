"""Small building blocks: a cluster of brokers, a partition, logs."""

from __future__ import annotations

from collections.abc import Iterable

from kelr.controller import ELR_4_3, RuleSet
from kelr.engine import Case, case_of, decide
from kelr.model import (
    ELR_FEATURE,
    METADATA_FEATURE,
    Broker,
    BrokerStatus,
    ClearedElr,
    Cluster,
    ConfigSource,
    Decision,
    EpochEnd,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicConfig,
)


def cluster_of(*, live: Iterable[int], fenced: Iterable[int] = (), elr: bool | None = True) -> Cluster:
    finalized = None if elr is None else {ELR_FEATURE: int(elr), METADATA_FEATURE: 30}
    brokers = [Broker(broker, BrokerStatus.LIVE, rack=f"az{broker}") for broker in live]
    brokers += [Broker(broker, BrokerStatus.FENCED, rack=f"az{broker}") for broker in fenced]
    features = Features(finalized, {METADATA_FEATURE: 30})
    return Cluster("test", tuple(sorted(brokers, key=lambda b: b.id)), features, brokers_source="DescribeCluster v2")


def log_of(
    replica: int, *ends: tuple[int, int], hw: int | None = None, start: int = 0, leader_epoch: int | None = 5
) -> ReplicaLog:
    """A log with this lineage, as (epoch, end offset) pairs; no pair makes an empty log."""
    end = ends[-1][1] if ends else start
    return ReplicaLog(
        replica=replica,
        log_end=end,
        last_epoch=ends[-1][0] if ends else None,
        current_leader_epoch=leader_epoch,
        high_watermark=end if hw is None else hw,
        log_start=start,
        lineage=tuple(EpochEnd(epoch, offset) for epoch, offset in ends),
        source="test",
    )


def silent(replica: int) -> LogUnavailable:
    return LogUnavailable(replica, LogUnavailableReason.UNREACHABLE, "connection refused")


def snapshot_of(
    state: PartitionState,
    cluster: Cluster,
    logs: Iterable[LogAnswer] = (),
    *,
    min_isr: int | None = 2,
    unclean: bool | None = False,
) -> Snapshot:
    """Where ISR, ELR and LastKnownELR are empty, kelr has cleared them, and so min ISR is as it was."""
    config = TopicConfig(min_isr, ConfigSource.TOPIC, unclean, ConfigSource.DEFAULT)
    cleared = {state.address: ClearedElr(state.leader_epoch, min_isr or 0)}
    return Snapshot(0, cluster, (state,), {state.topic: config}, {state.address: tuple(logs)}, cleared=cleared)


def case(
    state: PartitionState,
    cluster: Cluster,
    logs: Iterable[LogAnswer] = (),
    *,
    rules: RuleSet = ELR_4_3,
    min_isr: int | None = 2,
) -> Case:
    return case_of(snapshot_of(state, cluster, logs, min_isr=min_isr), state, rules)


def decision(
    state: PartitionState,
    cluster: Cluster,
    logs: Iterable[LogAnswer] = (),
    *,
    rules: RuleSet | None = ELR_4_3,
    min_isr: int | None = 2,
    unclean: bool | None = False,
) -> Decision:
    return decide(snapshot_of(state, cluster, logs, min_isr=min_isr, unclean=unclean), state, rules)


def leaderless(
    replicas: tuple[int, ...] = (1, 2, 3),
    *,
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] | None = (),
    last_known: tuple[int, ...] | None = (),
) -> PartitionState:
    return PartitionState("orders", 0, None, 5, replicas, isr, elr, last_known)


def and_unclean(*members: int) -> str:
    """The sentence that ends the advice where these are in the ELR, and their disks tell of no clean shutdown."""
    who = " and ".join(map(str, members))
    one = len(members) == 1
    return (
        f" {'Broker' if one else 'Brokers'} {who} {'is' if one else 'are'} in the ELR, and"
        f" {'its disk has' if one else 'their disks have'} no valid clean-shutdown marker, so every return counts as"
        " unclean (unless what was read is an older copy)."
    )
