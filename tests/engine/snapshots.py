"""Random snapshots for properties of the engine, and the same snapshot with its brokers called otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from kelr.controller import RULE_SETS
from kelr.model import (
    ELR_FEATURE,
    LOG_DIRECTORY,
    METADATA_FEATURE,
    SAVED,
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    EpochEnd,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Snapshot,
    TopicConfig,
    TopicPartition,
)

IDS = (0, 1, 2, 3, 17, 33, 65_537)
"""Ids whose order in a Java HashSet is not their own, and a hash that collides, among them."""
NO_LEADER = -1
TOPICS = ("orders", "payments", "__consumer_offsets")

rule_sets = st.sampled_from((None, *RULE_SETS.values()))
released_rule_sets = st.sampled_from((None, *(rules for rules in RULE_SETS.values() if not rules.kip966)))
ids = st.sampled_from(IDS)
some_ids = st.lists(ids, unique=True, max_size=3).map(tuple)
epochs = st.integers(0, 3)
offsets = st.sampled_from((0, 5, 10, 20, 30))
times = st.none() | st.integers(0, 9)

configs = st.builds(
    TopicConfig,
    min_insync_replicas=st.integers(1, 3) | st.none(),
    min_insync_replicas_source=st.sampled_from(ConfigSource),
    unclean_leader_election=st.none() | st.booleans(),
    unclean_leader_election_source=st.sampled_from(ConfigSource),
    error=st.sampled_from((None, "TOPIC_AUTHORIZATION_FAILED")),
    cleanup_policy=st.sampled_from((None, (), ("delete",), ("compact",), ("compact", "delete"))),
    recovery_strategy=st.sampled_from((None, None, "none", "balanced", "aggressive", "unheard of")),
)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    listed = draw(st.lists(ids, unique=True, min_size=2))
    likely = (BrokerStatus.LIVE, BrokerStatus.LIVE, *BrokerStatus)
    brokers = [Broker(number, draw(st.sampled_from(likely)), broker_epoch=draw(times)) for number in listed]
    elr = draw(st.sampled_from((None, 0, 1, 1)))
    return Cluster(
        "random",
        tuple(brokers),
        Features(
            None if elr is None else {ELR_FEATURE: elr},
            {METADATA_FEATURE: draw(st.sampled_from((25, 27, 30)))},
            elect_leaders=draw(st.sampled_from((None, 2, 2, 2, 3))),
        ),
        brokers_source=draw(st.sampled_from(("DescribeCluster v2", "Metadata v12"))),
        reassignments_error=draw(st.sampled_from((None, "CLUSTER_AUTHORIZATION_FAILED"))),
        controller_silence=draw(st.sampled_from((None, "no answer in time"))),
    )


@st.composite
def states(draw: st.DrawFn, topic: str, partition: int) -> PartitionState:
    """Any partition, reachable or not; most sets are made of its replicas, as Kafka's are."""
    replicas = tuple(draw(st.lists(ids, unique=True, min_size=1, max_size=4)))
    of_replicas = st.lists(st.sampled_from(replicas), unique=True).map(tuple)
    # Kafka 4.0 can seat "no leader" in the sets.
    members = of_replicas | of_replicas | of_replicas | some_ids | st.just((NO_LEADER,))
    known = st.just(()) | members
    last_known = known | st.sampled_from(((NO_LEADER,), (replicas[-1],)))
    return PartitionState(
        topic=topic,
        partition=partition,
        leader=draw(st.none() | st.sampled_from(replicas)),
        leader_epoch=draw(epochs),
        replicas=replicas,
        isr=draw(known),
        elr=draw(st.none() | known),
        last_known_elr=draw(st.none() | last_known),
        offline_replicas=draw(st.none() | known),
        partition_epoch=draw(times),
        adding=draw(st.none() | known),
        removing=draw(st.none() | known),
        recovering=draw(st.none() | st.booleans()),
    )


@st.composite
def answers(draw: st.DrawFn, replica: int, *, unclean: bool | None = None) -> LogAnswer:
    """A log with or without its epochs, or why there is none. Few values, so that logs are often equal.

    Args:
        unclean: what the broker's disk tells of how it stopped, one fact for all its logs.
    """
    if draw(st.integers(0, 3)) == 0:
        reason = draw(st.sampled_from(LogUnavailableReason))
        return LogUnavailable(replica, reason, draw(st.sampled_from(("", "connection refused"))), draw(times), unclean)
    ends = sorted(draw(st.lists(offsets, unique=True, min_size=1, max_size=3)))
    lineage = tuple(map(EpochEnd, sorted(draw(st.lists(epochs, unique=True, max_size=3))), ends))
    blind = draw(st.integers(0, 7)) == 0
    source = draw(st.sampled_from(("ListOffsets+Fetch", f"ListOffsets+Fetch{SAVED}", LOG_DIRECTORY)))
    return ReplicaLog(
        replica=replica,
        log_end=lineage[-1].end_offset if lineage else draw(offsets),
        last_epoch=lineage[-1].epoch if lineage and not blind else None,
        current_leader_epoch=draw(st.none() | epochs),
        high_watermark=draw(st.none() | offsets),
        log_start=draw(st.none() | st.just(0) | offsets),
        last_stable_offset=draw(st.none() | offsets),
        lineage=lineage if draw(st.booleans()) and not blind else None,
        broker_epoch=draw(times),
        source=source,
        read_at_ms=draw(times),
        last_epoch_error="TOPIC_AUTHORIZATION_FAILED (READ)" if blind else None,
        unclean_shutdown=unclean if source == LOG_DIRECTORY else None,
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Up to eight partitions of one cluster; of some, logs are known."""
    places = draw(st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 3)), unique=True, min_size=1, max_size=8))
    partitions = tuple(draw(states(topic, partition)) for topic, partition in sorted(places))
    logs: dict[TopicPartition, tuple[LogAnswer, ...]] = {}
    disks = {broker: draw(st.none() | st.booleans()) for broker in IDS}
    for state in partitions:
        if draw(st.booleans()):
            # A broker that was a replica once may have been asked, too.
            asked = [broker for broker in dict.fromkeys((*state.replicas, 3)) if draw(st.integers(0, 4))]
            logs[state.address] = tuple(draw(answers(broker, unclean=disks.get(broker))) for broker in asked)
    return Snapshot(
        taken_at_ms=draw(st.integers(0, 9)),
        cluster=draw(clusters()),
        partitions=partitions,
        configs={topic: draw(configs) for topic in TOPICS if draw(st.integers(0, 4))},
        logs=logs,
        first_partition_replicas={topic: draw(st.integers(1, 4)) for topic in TOPICS if draw(st.booleans())},
    )


def with_brokers_called(snapshot: Snapshot, rename: Callable[[int], int]) -> Snapshot:
    """The same cluster, with every broker called otherwise (and -1, which is nobody, still -1)."""

    def name(broker: int) -> int:
        return broker if broker == NO_LEADER else rename(broker)

    def group(brokers: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if brokers is None else tuple(map(name, brokers))

    def renamed(state: PartitionState) -> PartitionState:
        return replace(
            state,
            leader=None if state.leader is None else name(state.leader),
            replicas=tuple(map(name, state.replicas)),
            isr=tuple(map(name, state.isr)),
            elr=group(state.elr),
            last_known_elr=group(state.last_known_elr),
            offline_replicas=group(state.offline_replicas),
            adding=group(state.adding),
            removing=group(state.removing),
        )

    brokers = tuple(replace(broker, id=name(broker.id)) for broker in snapshot.cluster.brokers)
    return replace(
        snapshot,
        cluster=replace(snapshot.cluster, brokers=brokers),
        partitions=tuple(map(renamed, snapshot.partitions)),
        logs={
            address: tuple(replace(answer, replica=name(answer.replica)) for answer in found)
            for address, found in snapshot.logs.items()
        },
    )
