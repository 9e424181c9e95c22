"""Rows of snapshot files and collections: what somebody saw of a cluster at one moment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, LOG_INFO, PARTITION_STATES, Table
from kelr.model import Cluster, ConfigSource, LogAnswer, LogUnavailable, PartitionState, TopicConfig, leader_min_isr
from kelr.sources.snapshot_reader import Body, SnapshotReader

Row: TypeAlias = dict[str, Any]
"""By column, without `cluster` and `date`; times in milliseconds since 1970. A column that is not there is null."""

SNAPSHOT = "snapshot"


def seen(path: Path) -> Iterator[tuple[Table, Row]]:
    """The rows of a snapshot file or a collection.

    Raises:
        BadInputError: it is garbled or cut short; nothing of it is to be used then.
    """
    reader = SnapshotReader(path)
    at_ms = reader.taken_at_ms
    if reader.disks is None:
        yield from _of_cluster(reader.cluster, at_ms)
    known: _Topics = {}
    for line in reader.body():
        yield from _of_line(line, known, at_ms)


_Topics: TypeAlias = dict[str, TopicConfig | None]


def _of_line(line: Body, known: _Topics, at_ms: int) -> Iterator[tuple[Table, Row]]:
    if line.topic is not None:
        known[line.topic] = line.config
        if line.config is not None:
            for row in _configs(line.topic, line.config, at_ms):
                yield CONFIGS, row
    elif line.partition is not None:
        state = line.partition
        yield PARTITION_STATES, _state_row(state, known, at_ms)
        for answer in line.logs or ():
            yield LOG_INFO, _log_row(state.topic, state.partition, state.leader_epoch, answer, at_ms)
    elif line.replica is not None:
        replica = line.replica
        yield LOG_INFO, _log_row(replica.topic, replica.partition, None, replica.log.value(), at_ms)


def _of_cluster(cluster: Cluster, at_ms: int) -> Iterator[tuple[Table, Row]]:
    here = {"at": at_ms, "source": SNAPSHOT}
    for broker in cluster.brokers:
        yield (
            BROKER_EVENTS,
            here
            | {
                "broker": broker.id,
                "event": "seen",
                "status": broker.status.value,
                "broker_epoch": broker.broker_epoch,
                "rack": broker.rack,
                "host": broker.host,
                "port": broker.port,
            },
        )
    for name, level in sorted((cluster.features.finalized or {}).items()):
        yield CLUSTER_EVENTS, here | {"event": "feature", "name": name, "after": str(level)}
    for name, level in sorted((cluster.features.supported or {}).items()):
        yield CLUSTER_EVENTS, here | {"event": "supported", "name": name, "after": str(level)}
    # Which request it was tells whether a broker that is not listed may be fenced.
    yield CLUSTER_EVENTS, here | {"event": "brokers-source", "after": cluster.brokers_source}
    if cluster.controller is not None:
        yield CLUSTER_EVENTS, here | {"event": "controller", "after": str(cluster.controller)}


def _state_row(state: PartitionState, known: _Topics, at_ms: int) -> Row:
    config = known.get(state.topic)
    wanted = None if config is None else config.min_insync_replicas
    return {
        "topic": state.topic,
        "topic_id": state.topic_id,
        "partition": state.partition,
        "valid_from": at_ms,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "replicas": state.replicas,
        "isr": state.isr,
        "elr": state.elr,
        "last_known_elr": state.last_known_elr,
        "offline_replicas": state.offline_replicas,
        "adding": state.adding,
        "removing": state.removing,
        "recovering": state.recovering,
        "min_isr": leader_min_isr(wanted, len(state.replicas)),
        "cause": "as-found",
        "certainty": "certain",
        "source": SNAPSHOT,
    }


def _configs(topic: str, config: TopicConfig, at_ms: int) -> Iterator[Row]:
    here = {"resource_type": "topic", "resource": topic, "at": at_ms, "source": SNAPSHOT}
    unclean, policy = config.unclean_leader_election, config.cleanup_policy
    found = (
        ("min.insync.replicas", _text(config.min_insync_replicas), config.min_insync_replicas_source),
        (
            "unclean.leader.election.enable",
            None if unclean is None else str(unclean).lower(),
            config.unclean_leader_election_source,
        ),
        ("cleanup.policy", None if policy is None else ",".join(policy), ConfigSource.UNKNOWN),
        ("unclean.recovery.strategy", config.recovery_strategy, ConfigSource.UNKNOWN),
    )
    for key, value, where in found:
        if value is not None:
            yield here | {"key": key, "value": value, "value_source": where.value}


def _log_row(topic: str, partition: int, leader_epoch: int | None, answer: LogAnswer, at_ms: int) -> Row:
    read_at_ms = at_ms if answer.read_at_ms is None else answer.read_at_ms
    row: Row = {
        "topic": topic,
        "partition": partition,
        "replica": answer.replica,
        "read_at": read_at_ms,
        "leader_epoch": leader_epoch,
    }
    row["clean_shutdown"] = None if answer.unclean_shutdown is None else not answer.unclean_shutdown
    if isinstance(answer, LogUnavailable):
        return row | {"unheard": answer.reason.value, "detail": answer.detail or None}
    lineage = answer.lineage
    return row | {
        "log_end": answer.log_end,
        "last_epoch": answer.last_epoch,
        "current_leader_epoch": answer.current_leader_epoch,
        "high_watermark": answer.high_watermark,
        "log_start": answer.log_start,
        "last_stable_offset": answer.last_stable_offset,
        "broker_epoch": answer.broker_epoch,
        "lineage": None if lineage is None else [{"epoch": one.epoch, "end_offset": one.end_offset} for one in lineage],
        "saved_high_watermark": answer.saved_high_watermark,
        "saved_epoch": answer.saved_epoch,
        "may_have_held_more": answer.may_have_held_more,
        "how": answer.source,
        "last_epoch_error": answer.last_epoch_error,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)
