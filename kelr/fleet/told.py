"""Rows of the tables that a metadata log fills, as values: one function for each table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kelr.model import BrokerStatus, PartitionState
from kelr.replay.changes import At, BrokerOnRecord, Change, ConfigMoved, PartitionMoved
from kelr.replay.history import BrokerEntry, Cause, ClusterEntry, PartitionEntry
from kelr.replay.image import BROKER, TOPIC
from kelr.replay.snapshots import BROKERS_CLEANUP, CLEANUP, MIN_ISR, STRATEGY, UNCLEAN

Row: TypeAlias = dict[str, object]
"""By column: all of the table but `cluster`, `date` and `valid_to`; times in milliseconds since 1970 UTC."""

LOG = "log"
SEEN = "seen"
KEPT_CONFIGS = frozenset({MIN_ISR, UNCLEAN, STRATEGY, CLEANUP, BROKERS_CLEANUP})
"""Configs that elections and their cost depend on. Others, among which are passwords, are not copied."""
_OF_TOPICS = (MIN_ISR, UNCLEAN, STRATEGY, CLEANUP)


@dataclass(frozen=True, slots=True)
class Told:
    """A row of a table."""

    table: str
    row: Row


def partition_row(at: At, state: PartitionState, min_isr: int | None, cause: Cause) -> Told:
    """A partition is so from here on. Sets are known, and empty where the log says nothing."""
    return Told(
        "partition_states",
        {
            "topic": state.topic,
            "topic_id": state.topic_id,
            "partition": state.partition,
            "valid_from": at.timestamp_ms,
            "from_offset": at.offset,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "replicas": state.replicas,
            "isr": state.isr,
            "elr": state.elr or (),
            "last_known_elr": state.last_known_elr or (),
            "offline_replicas": None,
            "adding": state.adding or (),
            "removing": state.removing or (),
            "recovering": bool(state.recovering),
            "min_isr": min_isr,
            "cause": cause.kind.value,
            "certainty": cause.certainty.value,
            "cause_broker": cause.broker,
            "source": LOG,
        },
    )


def tombstone(at: At, before: PartitionState, cause: Cause) -> Told:
    """A partition is gone: a row without replicas, which only ends the one before it."""
    told = partition_row(at, before, None, cause)
    nothing = ("leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr", "last_known_elr", "adding")
    told.row.update(dict.fromkeys((*nothing, "removing", "recovering")))
    return told


def is_tombstone(told: Told) -> bool:
    """Whether a row of partition_states only ends the one before it."""
    return told.table == "partition_states" and told.row["replicas"] is None


def election_row(entry: PartitionEntry) -> Iterator[Told]:
    """The partition's election, if it was one. What is at stake is known only with what the logs held."""
    election, after = entry.election, entry.after
    if election is None or after is None:
        return
    yield Told(
        "elections",
        {
            "topic": after.topic,
            "topic_id": after.topic_id,
            "partition": after.partition,
            "at": entry.at.timestamp_ms,
            "offset": entry.at.offset,
            "elected_as": election.elected_as.value,
            "clean": election.elected_as.clean,
            "from_leader": election.last_leader,
            "to_leader": election.leader,
            "leader_epoch": after.leader_epoch,
            "cause": entry.cause.kind.value,
            "certainty": entry.cause.certainty.value,
            "cause_broker": entry.cause.broker,
            "designated": election.designated,
            "offsets_at_stake": None,
            "stake_source": None,
        },
    )


def broker_row(entry: BrokerEntry) -> Told:
    """What became of a broker."""
    restart = None if entry.restart is None else entry.restart.value
    row: Row = {"event": entry.event.value, "restart": restart, "directories_lost": entry.directories_lost}
    return Told("broker_events", row | _of_broker(entry.at, entry.broker, entry.before, entry.after))


def seen_row(at: At, broker: int, before: BrokerOnRecord | None, after: BrokerOnRecord | None) -> Told:
    """What a checkpoint says of a broker; None: nothing any more."""
    row: Row = {"event": SEEN, "restart": None, "directories_lost": ()}
    return Told("broker_events", row | _of_broker(at, broker, before, after))


def _of_broker(at: At, broker: int, before: BrokerOnRecord | None, after: BrokerOnRecord | None) -> Row:
    known = after or before
    assert known is not None  # one of the two is there
    endpoints = known.registration.endpoints
    return {
        "broker": broker,
        "at": at.timestamp_ms,
        "offset": at.offset,
        "status": status_of(after).value,
        "broker_epoch": known.registration.epoch,
        "rack": known.registration.rack,
        "host": endpoints[0].host if endpoints else None,
        "port": endpoints[0].port if endpoints else None,
        "features": dict(known.registration.features),
        "source": LOG,
    }


def status_of(broker: BrokerOnRecord | None) -> BrokerStatus:
    """As `kelr.replay.snapshots` has it."""
    if broker is None:
        return BrokerStatus.UNREGISTERED
    if broker.fenced:
        return BrokerStatus.FENCED
    return BrokerStatus.SHUTTING_DOWN if broker.in_controlled_shutdown else BrokerStatus.LIVE


def cluster_row(entry: ClusterEntry) -> Told:
    """Another controller, a feature's level, or a checkpoint."""
    return _of_cluster(entry.at, entry.event.value, entry.name, entry.before, entry.after)


def feature_row(at: At, name: str, before: int | None, after: int | None) -> Told:
    """A feature's level as a checkpoint has it."""
    return _of_cluster(at, "feature", name, None if before is None else str(before), str(after or 0))


def end_row(at: At) -> Told:
    """The newest record that was read."""
    return _of_cluster(at, "end", None, None, None)


def _of_cluster(at: At, event: str, name: str | None, before: str | None, after: str | None) -> Told:
    row: Row = {"at": at.timestamp_ms, "offset": at.offset, "event": event, "name": name}
    return Told("cluster_events", {**row, "before": before, "after": after, "source": LOG})


def config_rows(changes: Iterable[Change]) -> Iterator[Told]:
    """What was written of the configs that are kept. A topic takes its own with it, of which no record tells: another
    one of its name does not have them."""
    for change in changes:
        if isinstance(change, ConfigMoved):
            yield from config_row(change.at, (change.resource_type, change.resource), change.key, change.after)
        elif isinstance(change, PartitionMoved) and change.before is not None and change.after is None:
            for key in _OF_TOPICS if change.before.partition == 0 else ():
                yield from config_row(change.at, (TOPIC, change.before.topic), key, None)


def config_row(at: At, resource: tuple[int, str], key: str, value: str | None) -> Iterator[Told]:
    """A config as it is from here on; None: deleted."""
    kind, name = resource
    if key not in KEPT_CONFIGS or kind not in {TOPIC, BROKER}:
        return
    resource_type = "topic" if kind == TOPIC else "broker" if name else "cluster"
    row: Row = {"resource_type": resource_type, "resource": name, "key": key, "value": value}
    at_row: Row = {"at": at.timestamp_ms, "offset": at.offset, "value_source": None, "source": LOG}
    yield Told("configs", row | at_row)
