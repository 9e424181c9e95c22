"""Rows that are not as they should be: named, counted, and out of their table only where they are of no use."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from kelr.fleet.expectations import EXPECTATIONS, Known, checked
from kelr.fleet.row_batches import Rows, Spool
from kelr.fleet.tables import (
    BROKER_EVENTS,
    CLUSTER_EVENTS,
    CONFIGS,
    ELECTIONS,
    LOG_INFO,
    PARTITION_STATES,
    QUARANTINED_ROWS,
    Table,
    arrow_schema,
)

GOOD: dict[Table, dict[str, Any]] = {
    PARTITION_STATES: {
        "topic": "orders", "partition": 0, "valid_from": 1_000_000, "from_offset": 7, "leader": 1, "replicas": [1, 2],
        "source": "log",
    },
    ELECTIONS: {"topic": "orders", "partition": 0, "at": 0, "to_leader": 1},
    BROKER_EVENTS: {"broker": 1, "at": 0, "event": "registered", "source": "log"},
    CLUSTER_EVENTS: {"at": 0, "event": "end", "source": "log"},
    CONFIGS: {"resource_type": "topic", "resource": "orders", "key": "min.insync.replicas", "at": 0, "source": "log"},
    LOG_INFO: {"topic": "orders", "partition": 0, "replica": 1, "read_at": 0, "log_end": 5, "log_start": 5},
}  # fmt: skip
BAD: list[tuple[Table, str, dict[str, Any]]] = [
    (PARTITION_STATES, "not-null", {"topic": None}),
    (PARTITION_STATES, "not-null", {"valid_from": None, "source": "snapshot"}),
    (PARTITION_STATES, "partition-not-negative", {"partition": -1}),
    (PARTITION_STATES, "brokers-registered", {"replicas": [1, 3]}),
    (PARTITION_STATES, "leader-is-replica", {"leader": 2, "replicas": [1]}),
    (PARTITION_STATES, "time-goes-on", {"valid_from": 999_999}),
    (ELECTIONS, "not-null", {"to_leader": None}),
    (BROKER_EVENTS, "broker-not-negative", {"broker": -1}),
    (BROKER_EVENTS, "not-null", {"at": None}),
    (CLUSTER_EVENTS, "not-null", {"event": None}),
    (CONFIGS, "not-null", {"key": None}),
    (LOG_INFO, "not-null", {"replica": None}),
    (LOG_INFO, "log-ends-behind-its-start", {"log_end": 4}),
]
NOBODY_CAN_USE = {"not-null", "partition-not-negative", "broker-not-negative"}


def batch(table: Table, *rows: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(row) for row in rows], arrow_schema(table))


@pytest.mark.parametrize("table", GOOD, ids=lambda one: one.name)
def test_a_row_as_it_should_be(table: Table) -> None:
    rows, counts = batch(table, GOOD[table], GOOD[table]), Counter[str]()
    assert checked(table, rows, Known({1, 2}), counts) == (rows, [])
    assert not counts


@pytest.mark.parametrize(("table", "name", "odd"), BAD, ids=[f"{table.name}-{name}" for table, name, _ in BAD])
def test_a_row_that_breaks_one(table: Table, name: str, odd: dict[str, Any]) -> None:
    good, bad, counts = GOOD[table], GOOD[table] | odd, Counter[str]()
    stay, (row,) = checked(table, batch(table, good, bad, good), Known({1, 2}), counts)
    assert counts == {f"{table.name}.{name}": 1}
    assert (row["table"], row["expectations"]) == (table.name, [name])
    used = name not in NOBODY_CAN_USE
    assert (row["used"], stay.num_rows) == (used, 3 if used else 2)
    told = json.loads(row["row"])
    assert {column: told[column] for column in odd.keys() - {"valid_from"}} == {
        column: value for column, value in odd.items() if column != "valid_from"
    }
    assert row["source"] == odd.get("source", good.get("source", "log" if table is ELECTIONS else "snapshot"))


def test_every_expectation_is_broken_above() -> None:
    named = {(table.name, one.name) for table, some in EXPECTATIONS.items() for one in some}
    assert named == {(table.name, name) for table, name, _ in BAD}


def test_what_is_not_known_breaks_nothing() -> None:
    gone = {"topic": "orders", "partition": 0, "valid_from": 5, "source": "log"}
    unheard = {"topic": "orders", "partition": 0, "replica": 1, "read_at": 0}
    away = GOOD[PARTITION_STATES] | {"replicas": [1, 9], "source": "snapshot"}
    counts = Counter[str]()
    for table, row in ((PARTITION_STATES, gone), (LOG_INFO, unheard), (PARTITION_STATES, away)):
        assert checked(table, batch(table, row), Known(), counts)[1] == []
    assert not counts


@pytest.mark.parametrize("kept", [Spool, list])
def test_they_are_left_aside_and_counted(kept: type[Spool | list[Any]]) -> None:
    rows = Rows("c", kept)
    for broker in (1, 2):
        rows.add(BROKER_EVENTS.name, GOOD[BROKER_EVENTS] | {"broker": broker})
    for odd in ({}, {"replicas": [1, 3]}, {"topic": None}):
        rows.add(PARTITION_STATES.name, GOOD[PARTITION_STATES] | odd)
    rows.finish()
    whole = Rows("c")
    whole.take(rows)
    for one in (rows, whole):
        found = {table: [row for batch in one.of(table) for row in batch.to_pylist()] for table in EXPECTATIONS}
        found[QUARANTINED_ROWS] = [row for batch in one.of(QUARANTINED_ROWS) for row in batch.to_pylist()]
        assert {table.name: len(some) for table, some in found.items() if some} == one.counts == {
            BROKER_EVENTS.name: 2, PARTITION_STATES.name: 2, QUARANTINED_ROWS.name: 2,
        }  # fmt: skip
        assert one.broken == {"partition_states.brokers-registered": 1, "partition_states.not-null": 1}
        assert {row["cluster"] for some in found.values() for row in some} == {"c"}
