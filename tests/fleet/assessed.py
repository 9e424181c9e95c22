"""Clusters at random, as snapshot files and as rows of a metadata log, and what the engine says of each partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from kelr.fleet.snapshot_rows import seen
from kelr.fleet.tables import Table
from kelr.model import (
    ELR_FEATURE,
    LOG_DIRECTORY,
    METADATA_FEATURE,
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
)
from kelr.sources.snapshot_file import read_snapshot, write_snapshot

if TYPE_CHECKING:
    from kelr.fleet.lake import Lake

IDS = (0, 1, 2, 3, 17, 65_537)
TAKEN_MS = 1_790_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Rows = dict[str, list[dict[str, Any]]]


def some_snapshot(random: Random, cluster: str, *, listed_by: str, partitions: int) -> Snapshot:
    """A cluster in trouble: half of its partitions are as Kafka leaves them, half are anything that can be written."""
    likely = (BrokerStatus.LIVE,) * 6 + (BrokerStatus.FENCED, BrokerStatus.SHUTTING_DOWN)
    listed = IDS if listed_by != "Metadata v12" else IDS[:-1]
    brokers = tuple(
        Broker(id_, random.choice(likely), rack=f"az{place % 3}", broker_epoch=random.choice((None, 7)))
        for place, id_ in enumerate(listed)
    )
    elr = random.choice((0, 1, 1))
    features = Features({ELR_FEATURE: elr, METADATA_FEATURE: 29}, {METADATA_FEATURE: random.choice((25, 27, 30))})
    known = Cluster(
        cluster, brokers, features, brokers_source=listed_by, partitions_source="DescribeTopicPartitions v0"
    )
    states, configs, logs = [], {}, {}
    names = ("orders", "payments", "__consumer_offsets", "views")
    for name in names:
        configs[name] = _config(random)
        for number in range(partitions // len(names)):
            state = _anything(random, name, number) if random.random() < 0.5 else _likely(random, known, name, number)
            states.append(state)
            if random.random() < 0.15:
                logs[state.address] = tuple(_answer(random, one) for one in state.replicas if random.random() < 0.8)
    states.sort(key=lambda one: one.address)
    del configs["views"]
    counts = {one.topic: len(one.replicas) for one in states if one.partition == 0}
    return Snapshot(TAKEN_MS, known, tuple(states), configs, logs, first_partition_replicas=counts)


def _config(random: Random) -> TopicConfig:
    return TopicConfig(
        random.choice((1, 2, 2, 3, None)),
        random.choice(tuple(ConfigSource)),
        random.choice((False, False, True, None)),
        random.choice((ConfigSource.TOPIC, ConfigSource.STATIC, ConfigSource.DEFAULT)),
        cleanup_policy=random.choice((None, ("delete",), ("compact", "delete"))),
        recovery_strategy=random.choice((None, None, "balanced")),
    )


def _some(random: Random, among: Sequence[int]) -> tuple[int, ...]:
    return tuple(random.sample(among, random.randint(0, len(among))))


def _anything(random: Random, topic: str, number: int) -> PartitionState:
    replicas = tuple(random.sample(IDS, random.randint(1, 4)))
    moves = random.random() < 0.1 or (number == 0 and topic == "payments")
    return PartitionState(
        topic,
        number,
        random.choice((None, *replicas)),
        random.randint(0, 5),
        replicas,
        _some(random, replicas),
        random.choice((None, (), _some(random, replicas))),
        random.choice((None, (), (random.choice(replicas),))),
        random.choice((None, (), _some(random, replicas))),
        adding=replicas[-1:] if moves else (),
        removing=replicas[:1] if moves else (),
        recovering=random.choice((None, False, True)),
    )


def _likely(random: Random, cluster: Cluster, topic: str, number: int) -> PartitionState:
    replicas = tuple(random.sample(IDS, 3))
    up = tuple(one for one in replicas if one in cluster.live)
    gone = tuple(one for one in replicas if one not in up)
    elr = gone[:1] if len(up) < 2 else ()
    leader = up[0] if up else None
    last = () if up else gone[-1:]
    return PartitionState(
        topic, number, leader, 4, replicas, up, elr, last, gone, adding=(), removing=(), recovering=False
    )


def _answer(random: Random, replica: int) -> LogAnswer:
    if random.random() < 0.3:
        return LogUnavailable(
            replica,
            random.choice((LogUnavailableReason.UNREACHABLE, LogUnavailableReason.STORAGE_ERROR)),
            "connection refused",
        )
    end = random.choice((10, 20, 30))
    whole = random.random() < 0.5
    return ReplicaLog(
        replica,
        end,
        last_epoch=3,
        current_leader_epoch=random.choice((None, 3, 4, 5)),
        high_watermark=random.choice((None, 10)),
        log_start=0,
        lineage=(EpochEnd(1, 5), EpochEnd(3, end)) if whole else None,
        broker_epoch=random.choice((None, 7, 8)),
        source=random.choice(("ListOffsets+Fetch", LOG_DIRECTORY)),
        read_at_ms=TAKEN_MS,
        unclean_shutdown=(True, True, False, None)[int(random.random() * 4)],
    )


# Into a lake.


def rows_of_snapshot(snapshot: Snapshot, path: Path) -> tuple[Snapshot, Rows]:
    """The snapshot as its file has it, and its rows by table."""
    write_snapshot(snapshot, path)
    found: Rows = {}
    date = (_EPOCH + timedelta(milliseconds=snapshot.taken_at_ms)).date()
    for table, row in seen(path):
        here = {"cluster": snapshot.cluster.cluster_id, "date": date}
        found.setdefault(table.name, []).append(_typed(table, row) | here)
    return read_snapshot(path), found


def _typed(table: Table, row: dict[str, Any]) -> dict[str, Any]:
    """A row with times as times."""
    kinds = {one.name: one.dataType.typeName() for one in table.schema}
    typed = dict(row)
    for name, value in row.items():
        if kinds[name] == "timestamp" and value is not None:
            typed[name] = _EPOCH + timedelta(milliseconds=value)
    return typed


def as_of_log(snapshot: Snapshot) -> Snapshot:
    """The snapshot as `snapshot_of_image` would give it: who is offline follows from the brokers, and so on."""
    cluster = replace(snapshot.cluster, brokers_source="metadata log", partitions_source="metadata log")
    keeps = bool(cluster.features.elr_enabled)
    down = {one.id for one in cluster.brokers if one.status is BrokerStatus.FENCED}
    known = {one.id for one in cluster.brokers}

    def described(state: PartitionState) -> PartitionState:
        offline = tuple(one for one in state.replicas if one in down or one not in known)
        nobody = () if keeps else None
        return replace(
            state,
            elr=state.elr or nobody,
            last_known_elr=state.last_known_elr or nobody,
            offline_replicas=offline,
            recovering=bool(state.recovering),
        )

    configs = {}
    for topic in {one.topic for one in snapshot.partitions}:
        config = snapshot.configs.get(topic, TopicConfig())
        min_isr, unclean = config.min_insync_replicas, config.unclean_leader_election
        configs[topic] = TopicConfig(
            min_isr or 2,
            ConfigSource.CLUSTER_DEFAULT if min_isr is None else ConfigSource.TOPIC,
            unclean,
            ConfigSource.UNKNOWN if unclean is None else ConfigSource.TOPIC,
        )
    return replace(
        snapshot,
        cluster=cluster,
        partitions=tuple(map(described, snapshot.partitions)),
        configs=configs,
        logs={},
    )


def rows_of_log(snapshot: Snapshot, at: datetime) -> Rows:
    """Rows of a metadata log that comes to `as_of_log` at a moment. Each partition was otherwise before, and is
    otherwise again an hour later; brokers were all live before."""
    cluster = snapshot.cluster
    base = {"cluster": cluster.cluster_id, "source": "log", "date": at.date()}
    rows: Rows = {"partition_states": [], "broker_events": [], "cluster_events": [], "configs": []}
    before, later = at - timedelta(hours=1), at + timedelta(hours=1)
    for state in snapshot.partitions:
        for since, until, one in (
            (before, at, _otherwise(state)),
            (at, later, state),
            (later, None, _otherwise(state)),
        ):
            row = {"valid_from": since, "valid_to": until, **_columns(one)}
            rows["partition_states"].append({**base, "date": since.date(), **row})
    for broker in cluster.brokers:
        of_broker = {"broker": broker.id, "rack": broker.rack, "broker_epoch": broker.broker_epoch}
        of_broker["features"] = dict(cluster.features.supported or {})
        for since, offset, status in ((before, 1, "live"), (before, 5, broker.status.value), (later, 9, "live")):
            event = {"event": "registered", "at": since, "offset": offset, "status": status}
            rows["broker_events"].append({**base, "date": since.date(), **of_broker, **event})
    rows["broker_events"].append(
        {
            **base,
            "date": before.date(),
            "broker": 99,
            "event": "unregistered",
            "at": before,
            "offset": 7,
            "status": "unregistered",
        }
    )
    for name, level in (cluster.features.finalized or {}).items():
        event = {"event": "feature", "name": name, "after": str(level), "at": before, "offset": 2}
        rows["cluster_events"].append({**base, "date": before.date(), **event})
    written = [("cluster", "", "min.insync.replicas", "2")]
    for topic, config in snapshot.configs.items():
        if config.min_insync_replicas_source is ConfigSource.TOPIC:
            written.append(("topic", topic, "min.insync.replicas", str(config.min_insync_replicas)))
        if config.unclean_leader_election is not None:
            value = str(config.unclean_leader_election).lower()
            written.append(("topic", topic, "unclean.leader.election.enable", value))
    for kind, resource, key, value in written:
        for offset, one in ((1, "17"), (2, value)):
            config_row = {"resource_type": kind, "resource": resource, "key": key, "value": one, "at": before}
            rows["configs"].append({**base, "date": before.date(), **config_row, "offset": offset})
    return rows


def _otherwise(state: PartitionState) -> PartitionState:
    return replace(state, leader=state.replicas[-1], isr=state.replicas[-1:], elr=(), last_known_elr=())


def _columns(state: PartitionState) -> dict[str, Any]:
    names = [
        "topic",
        "partition",
        "leader",
        "leader_epoch",
        "replicas",
        "isr",
        "elr",
        "last_known_elr",
        "adding",
        "removing",
        "recovering",
    ]
    return {name: getattr(state, name) for name in names}


def put(lake: Lake, *rows: Rows) -> None:
    """Write rows into a lake."""
    from kelr.fleet.tables import INGESTED  # noqa: PLC0415 - all of them

    tables = {table.name: table for table in INGESTED}
    with lake.changing() as changes:
        for name, table in tables.items():
            found = [tuple(row.get(column) for column in table.columns) for some in rows for row in some.get(name, ())]
            if found:
                changes.append(table, lake.spark.createDataFrame(found, table.schema).coalesce(1))
