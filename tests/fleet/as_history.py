"""Whether the rows of a log are the entries of its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kelr.fleet.telling import Told, tell
from kelr.model import PartitionState
from kelr.replay import records as rec
from kelr.replay.history import (
    BrokerEntry,
    ClusterEntry,
    ClusterEvent,
    Entry,
    History,
    Interest,
    PartitionEntry,
    Window,
)

_EXTRA = frozenset({"as-found", "min-isr-written", "not-told"})


def rows(told: Iterable[Told], table: str) -> list[Mapping[str, Any]]:
    return [one.row for one in told if one.table == table]


def as_state(row: Mapping[str, Any]) -> PartitionState:
    names = ("topic", "partition", "leader", "leader_epoch", "replicas", "isr", "elr", "last_known_elr", "topic_id")
    more = ("partition_epoch", "adding", "removing", "recovering")
    return PartitionState(**{name: row[name] for name in (*names, *more)})


def entries_of(batches: Iterable[rec.RecordBatch]) -> list[Entry]:
    history = History(Interest(), Window())
    return [*(entry for batch in batches for entry in history.take(batch)), *history.finish()]


def check_rows_are_entries(batches: Sequence[rec.RecordBatch]) -> list[Told]:
    """Compare all that both tell; the rows, for more."""
    told = list(tell(batches))
    (last,) = [row["offset"] for row in rows(told, "cluster_events") if row["event"] == "end"]
    entries = [entry for entry in entries_of(batches) if entry.at.offset <= last]
    partitions = [entry for entry in entries if isinstance(entry, PartitionEntry)]
    by_place = {
        (row["from_offset"], row["topic_id"], row["partition"]): row
        for row in rows(told, "partition_states")
        if row["cause"] not in _EXTRA
    }
    for entry in partitions:
        if entry.cause.kind.value in _EXTRA:
            continue
        row = by_place.pop((entry.at.offset, entry.state.topic_id, entry.address.partition))
        assert (row["valid_from"], row["cause"]) == (entry.at.timestamp_ms, entry.cause.kind.value)
        assert (row["certainty"], row["cause_broker"]) == (entry.cause.certainty.value, entry.cause.broker)
        assert row["replicas"] is None if entry.after is None else as_state(row) == entry.after
    assert not by_place
    assert [
        (row["offset"], row["topic"], row["partition"], row["elected_as"], row["from_leader"], row["designated"])
        for row in rows(told, "elections")
    ] == [
        (entry.at.offset, *_address(entry), one.elected_as, one.last_leader, one.designated)
        for entry in partitions
        if (one := entry.election) is not None
    ]
    assert [
        (row["offset"], row["broker"], row["event"], row["restart"])
        for row in rows(told, "broker_events")
        if row["event"] != "seen"
    ] == [(one.at.offset, one.broker, one.event, one.restart) for one in entries if isinstance(one, BrokerEntry)]
    of_cluster = [one for one in entries if isinstance(one, ClusterEntry) and one.event is not ClusterEvent.CONFIG]
    events = [(row["offset"], row["event"], row["name"], row["after"]) for row in rows(told, "cluster_events")]
    shown = {event for event in events if event[1] == "feature"} - {(_of(one)) for one in of_cluster}
    assert [event for event in events if event[1] != "end" and event not in shown] == [_of(one) for one in of_cluster]
    return told


def _address(entry: PartitionEntry) -> tuple[str, int]:
    return entry.address.topic, entry.address.partition


def _of(entry: ClusterEntry) -> tuple[int, str, str | None, str | None]:
    return entry.at.offset, entry.event.value, entry.name, entry.after
