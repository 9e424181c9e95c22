"""The tasks that tell logs and read snapshots: how they are made, and what they do in Spark's workers.

A log that is long is read once by one task, which is fast and says what is known at each cut; then its parts are told
side by side, each from what is known where it begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as fn

from kelr.engine.situation import effective_min_isr
from kelr.errors import KelrError
from kelr.fleet.cuts import states_before
from kelr.fleet.laying import Piece
from kelr.fleet.staging import OUTCOMES, STATES, TASK, TELLING, TOLD, Stager, in_groups
from kelr.fleet.states import State
from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, LOG_INFO, PARTITION_STATES, Table
from kelr.fleet.tasks import Stage, Task, Tasks
from kelr.fleet.telling import HistoryBuilder
from kelr.fleet.worker import Given, UnreadablePieceError, on_disk
from kelr.model import Cluster, ConfigSource, LogAnswer, LogUnavailable, PartitionState, TopicConfig
from kelr.replay.records import RecordBatch
from kelr.sources.metadata_log.replaying import check_understood
from kelr.sources.snapshot_reader import Body, SnapshotReader

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from kelr.fleet.lake import Lake
    from kelr.fleet.planning import LogWork, Work


# Rows of snapshot files and collections: what somebody saw of a cluster at one moment. Runs in Spark's workers.


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


_Topics: TypeAlias = dict[str, tuple[TopicConfig | None, int | None]]
"""By name: config, and replica count of partition 0."""


def _of_line(line: Body, known: _Topics, at_ms: int) -> Iterator[tuple[Table, Row]]:
    if line.topic is not None:
        known[line.topic] = line.config, line.first_partition_replicas
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
    config, first = known.get(state.topic, (None, None))
    if first is None and state.partition == 0:
        first = len(state.replicas)
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
        # As the engine takes it where partition 0 was not among those that were asked for.
        "min_isr": effective_min_isr(wanted, len(state.replicas) if first is None else first),
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


# Tasks.


PART_BYTES = 32 * 1024 * 1024
"""Of a log that is told in parts: telling costs much more than reading."""
CUTTING = "cutting"
_OF_LAKE = -1
"""The number of the state that the lake has of a cluster."""
_TABLES = {table.name: table for table in TOLD}


# Making tasks.


def tell_all(lake: Lake, stage: Stage, work: Work, *, part_bytes: int) -> None:
    """Let Spark's workers tell all logs and read all snapshots; their rows are in the stage then."""
    kept = lake.read(STATES).select("cluster", fn.lit(_OF_LAKE).alias("state"), "place", "content")
    parted: dict[str, _Parts] = {one.cluster: list(enumerate(one.parts(part_bytes))) for one in work.logs}
    long = [one for one in work.logs if len(parted[one.cluster]) > 1]
    cuts = None
    if long:
        made = [_cutting(number, one, parted[one.cluster]) for number, one in enumerate(long)]
        stage.fill(CUTTING, Tasks(lake.spark, made).rows(kept), cut)
        for row in stage.read(CUTTING, OUTCOMES).collect():
            outcome = json.loads(row["outcome"])
            parted[outcome["cluster"]] = _joined(parted[outcome["cluster"]], outcome["cuts"])
        cuts = _cuts(stage)
    tasks = _Numbering()
    for one in work.logs:
        tasks.log(one, parted[one.cluster])
    for file in work.seen:
        tasks.add(
            {"kind": "seen", "cluster": file.cluster, "last": True},
            [Piece(file.path, file.kind, 0, 0, 0, file.size_bytes)],
        )
    states = kept if cuts is None else kept.unionByName(cuts)
    stage.fill(TELLING, Tasks(lake.spark, tasks.made).rows(states), tell)


_Parts: TypeAlias = "list[tuple[int, Sequence[Piece]]]"
"""The parts of a log by their numbers."""


@dataclass(slots=True)
class _Numbering:
    made: list[Task] = field(default_factory=list)

    def log(self, one: LogWork, parts: _Parts) -> None:
        for place, (number, pieces) in enumerate(parts):
            facts = {
                "kind": "log",
                "cluster": one.cluster,
                "last": place + 1 == len(parts),
                "parted": len(parts) > 1,
            }
            state = (one.cluster, number) if number else _first_state(one)
            self.add(facts, pieces, state)

    def add(self, facts: dict[str, Any], parts: Sequence[Piece], state_of: tuple[str, int] | None = None) -> None:
        self.made.append(Task(len(self.made), facts, parts, state_of))


def _first_state(one: LogWork) -> tuple[str, int] | None:
    return None if one.goes_on_from is None else (one.cluster, _OF_LAKE)


def _cutting(number: int, one: LogWork, parts: _Parts) -> Task:
    facts = {"kind": "log", "cluster": one.cluster, "counts": [len(part) for _, part in parts]}
    return Task(number, facts, [piece for _, part in parts for piece in part], _first_state(one))


def _joined(parts: _Parts, cuts: Sequence[int]) -> _Parts:
    """One in front of which there can be no cut is told with the one before it."""
    joined: _Parts = [parts[0]]
    for number, part in parts[1:]:
        if number in cuts:
            joined.append((number, part))
        else:
            joined[-1] = (joined[-1][0], (*joined[-1][1], *part))
    return joined


def _cuts(stage: Stage) -> DataFrame:
    """The states at cuts. They were written under the number of the part that each stands in front of."""
    rows = stage.read(CUTTING, STATES)
    return rows.select("cluster", fn.col(TASK).alias("state"), "place", "content")


# What workers do.


def cut(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read long logs once, and say what is known at their cuts."""
    return in_groups(batches, _cut)


def _cut(task: int, rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    given = Given(rows)
    facts = given.facts
    pieces = iter(given.pieces)
    parts = [[next(pieces) for _ in range(count)] for count in facts["counts"]] if _whole(given) else []
    found = []
    try:
        states = states_before((_batches(given, part) for part in parts), _state(given))
        for number, state in enumerate(states):
            if number and state is not None:
                found.append(number)
                stager = Stager(number, facts["cluster"])
                yield from stager.content(STATES, _packed(state), {})
    except KelrError:
        # Whoever tells the part in which this is comes to it, too, and says so.
        pass
    yield from Stager(task, facts["cluster"]).outcome({"cuts": found})


def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell logs, or parts of them, and read snapshots."""
    return in_groups(batches, _tell)


def _tell(task: int, rows: Iterator[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    given = Given(rows)
    stager = Stager(task, given.facts["cluster"])
    outcome: dict[str, Any] = {
        "kind": given.facts["kind"],
        "last": given.facts["last"],
        "paths": [piece["path"] for piece in given.pieces],
        "records": 0,
        "partitions": 0,
        "begun_ms": None,
        "ended_ms": None,
        "notes": [],
    }
    try:
        given.check_whole()
        yield from _log(given, stager, outcome) if given.facts["kind"] == "log" else _seen(given, stager, outcome)
    except KelrError as error:
        outcome["error"] = str(error)
    yield from stager.outcome(outcome)


def _log(given: Given, stager: Stager, outcome: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    teller = HistoryBuilder(_state(given))
    stager.known.brokers |= teller.image.brokers.keys()
    try:
        for batch in _batches(given, given.pieces):
            _count(batch, outcome)
            for told in teller.take(batch):
                yield from stager.add(_TABLES[told.table], told.row)
    except UnreadablePieceError as error:
        if given.facts["parted"] or teller.image.at is None:
            raise
        # What comes before is told, as a node that starts would take it.
        outcome["stopped"] = {"path": error.path, "text": error.why}
    for told in teller.finish(ended=given.facts["last"]):
        yield from stager.add(_TABLES[told.table], told.row)
    outcome["next_offset"] = 0 if teller.image.at is None else teller.image.at.offset + 1
    outcome["partitions"] = sum(len(topic.partitions) for topic in teller.image.topics.values())
    if given.facts["last"]:
        outcome["notes"] = check_understood(teller.image, name=f"the metadata log of cluster {stager.cluster}")
        state = teller.state()
        if state is not None:
            yield from stager.content(STATES, _packed(state), {})


def _seen(given: Given, stager: Stager, outcome: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    (piece,) = given.pieces
    try:
        for table, row in on_disk(given, piece["path"], seen):
            at_ms = row.get("valid_from")
            if at_ms is not None:
                outcome["begun_ms"] = outcome["ended_ms"] = at_ms
                outcome["partitions"] += 1
            yield from stager.add(table, row)
    except OSError as error:
        raise UnreadablePieceError(piece["path"], f"it cannot be read: {error.strerror or error}") from error


def _count(batch: RecordBatch, outcome: dict[str, Any]) -> None:
    if batch.checkpoint_end is None:
        outcome["records"] += len(batch.records)
    if outcome["begun_ms"] is None:
        outcome["begun_ms"] = batch.timestamp_ms
    outcome["ended_ms"] = batch.timestamp_ms


def _batches(given: Given, pieces: Sequence[Mapping[str, Any]]) -> Iterator[RecordBatch]:
    for piece in pieces:
        yield from given.batches(dict(piece))


def _whole(given: Given) -> bool:
    return len(given.pieces) >= int(given.facts["parts"])


def _state(given: Given) -> State | None:
    """The state that the task begins with. Raises BadInputError."""
    if given.state is None:
        return None
    size = int.from_bytes(given.state[:_SIZE])
    beside, checkpoint = given.state[_SIZE : _SIZE + size], given.state[_SIZE + size :]
    return State.read({"beside.json": beside, "checkpoint": checkpoint})


def _packed(state: State) -> bytes:
    return len(state.beside).to_bytes(_SIZE) + state.beside + state.checkpoint


_SIZE = 8
"""Bytes of the length in front of what is beside a checkpoint."""
