"""Rows of `partition_states` as a log's history has them, and what `kelr history --summary` says of the same log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, ELECTIONS, PARTITION_STATES, Table
from kelr.model import PartitionState, TopicPartition, leader_min_isr
from kelr.replay.history import (
    ClusterEntry,
    ClusterEvent,
    Entry,
    History,
    Interest,
    Moment,
    PartitionEntry,
    PartitionSummary,
    Window,
)
from kelr.replay.history.causes import config_min_isr
from kelr.replay.image import MIN_ISR
from kelr.replay.records import At, RecordBatch

ALL = Interest(lambda _address: True, named=True)


def when(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def ms(at: datetime) -> int:
    return round(at.replace(tzinfo=UTC).timestamp() * 1000)


def row(table: Table, cluster: str, at_ms: int, **values: Any) -> tuple[Any, ...]:
    """A row of a table; columns that are not named are null."""
    found = {"cluster": cluster, "date": when(at_ms).date(), **values}
    assert found.keys() <= set(table.columns)
    return tuple(found.get(column) for column in table.columns)


@dataclass(frozen=True)
class Told:
    """A log's rows by table, and its summaries."""

    states: list[tuple[Any, ...]]
    ends: list[tuple[Any, ...]]
    summaries: list[PartitionSummary]
    end_ms: int


@dataclass(frozen=True)
class Since:
    """A state and when it began."""

    at: At
    state: PartitionState
    min_isr: int | None
    cause: str = "unknown"


def told(cluster: str, batches: Sequence[RecordBatch]) -> Told:
    """What the tables of a lake hold of a log."""
    history = History(ALL, Window(), keep_all=True)
    rows: list[tuple[Any, ...]] = []
    now: dict[TopicPartition, Since] = {}

    def moved(at: At, address: TopicPartition, state: PartitionState | None, cause: str) -> None:
        before = now.pop(address, None)
        if before is not None:
            rows.append(state_row(cluster, before, at))
        if state is not None:
            wanted = config_min_isr(history.image, state.topic)
            now[address] = Since(at, state, leader_min_isr(wanted, len(state.replicas)), cause)

    for entry in _entries(history, batches):
        if isinstance(entry, PartitionEntry):
            moved(entry.at, entry.address, entry.after, str(entry.cause.kind))
        elif isinstance(entry, ClusterEntry) and entry.event is ClusterEvent.CONFIG and entry.name == MIN_ISR:
            for address in [one for one in now if entry.topic in (None, one.topic)]:
                found = history.image.partition(address)
                if found is not None:
                    moved(entry.at, address, found, "min-isr-written")
    rows += [state_row(cluster, since, None) for since in now.values()]
    end = history.as_of or history.image.at
    assert end is not None
    ended = row(CLUSTER_EVENTS, cluster, end.timestamp_ms, at=when(end.timestamp_ms), offset=end.offset, event="end")
    return Told(rows, [ended], list(history.summaries()), end.timestamp_ms)


def summarized(batches: Iterable[RecordBatch], since_ms: int | None, until_ms: int | None) -> list[PartitionSummary]:
    """What one machine says of a window."""
    window = Window(*(None if at is None else Moment(at_ms=at) for at in (since_ms, until_ms)))
    history = History(ALL, window, keep_all=True)
    list(_entries(history, batches))
    return list(history.summaries())


def state_row(cluster: str, since: Since, to: At | None, *, source: str = "log") -> tuple[Any, ...]:
    at, state = since.at, since.state
    return row(
        PARTITION_STATES,
        cluster,
        at.timestamp_ms,
        topic=state.topic,
        topic_id=state.topic_id,
        partition=state.partition,
        valid_from=when(at.timestamp_ms),
        valid_to=None if to is None else when(to.timestamp_ms),
        from_offset=at.offset,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        isr=list(state.isr),
        elr=None if state.elr is None else list(state.elr),
        last_known_elr=None if state.last_known_elr is None else list(state.last_known_elr),
        adding=list(state.adding or ()),
        removing=list(state.removing or ()),
        recovering=state.recovering,
        min_isr=since.min_isr,
        cause=since.cause,
        certainty="certain",
        source=source,
    )


def _entries(history: History, batches: Iterable[RecordBatch]) -> Iterator[Entry]:
    for batch in batches:
        if history.over(batch):
            break
        yield from history.take(batch)
    yield from history.finish()


__all__ = ["BROKER_EVENTS", "CONFIGS", "ELECTIONS", "Told", "ms", "row", "state_row", "summarized", "told", "when"]
