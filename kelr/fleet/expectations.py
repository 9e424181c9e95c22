"""What every row of a lake is expected to be: by name, so that what is not can be counted and looked at.

A row that breaks one is in `quarantined_rows`. What nobody can use (no topic, no time) is only there. The others stay
in their table, too: without the row that Kafka wrote, what follows would be told wrongly.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelr.fleet.tables import BROKER_EVENTS, CLUSTER_EVENTS, CONFIGS, ELECTIONS, LOG_INFO, PARTITION_STATES, Table


@dataclass(slots=True)
class Known:
    """What is known where rows are looked at."""

    brokers: set[int] = field(default_factory=set)
    """That were ever registered, by the metadata log."""
    newest: int = np.iinfo(np.int64).min
    """The newest time of a state, in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of the rows of a table."""

    name: str
    holds: Callable[[pa.RecordBatch, Known], np.ndarray[Any, np.dtype[np.bool_]]]
    """Of each row; where something is not known, it holds."""
    usable: bool
    """Whether rows that break it stay in their table."""


def _given(*columns: str) -> Expectation:
    def holds(rows: pa.RecordBatch, _known: Known) -> Any:
        return np.logical_and.reduce([pc.is_valid(rows.column(name)).to_numpy(False) for name in columns])

    return Expectation("not-null", holds, usable=False)


def _at_least_zero(column: str) -> Expectation:
    def holds(rows: pa.RecordBatch, _known: Known) -> Any:
        return _true(pc.greater_equal(rows.column(column), 0))

    return Expectation(f"{column}-not-negative", holds, usable=False)


def _brokers_known(rows: pa.RecordBatch, known: Known) -> Any:
    """Of a metadata log: a snapshot lists no broker that is away."""
    of_log = _true(pc.equal(rows.column("source"), "log"), unknown=False)
    if not of_log.any():
        return ~of_log
    replicas = rows.column("replicas")
    strange = ~pc.is_in(pc.list_flatten(replicas), pa.array(sorted(known.brokers), pa.int32())).to_numpy(False)
    found = np.ones(rows.num_rows, bool)
    found[pc.list_parent_indices(replicas).to_numpy()[strange]] = False
    return found | ~of_log


def _leader_is_replica(rows: pa.RecordBatch, _known: Known) -> Any:
    leader, replicas = rows.column("leader"), rows.column("replicas")
    parents = pc.list_parent_indices(replicas)
    same = _true(pc.equal(pc.list_flatten(replicas), leader.take(parents)), unknown=False)
    found = pc.is_null(leader).to_numpy(False) | pc.is_null(replicas).to_numpy(False)
    found[parents.to_numpy()[same]] = True
    return found


def _time_goes_on(rows: pa.RecordBatch, known: Known) -> Any:
    """Else a row ends before it begins: another controller's clock was ahead."""
    times = rows.column("valid_from").cast(pa.int64()).fill_null(0).to_numpy(False)
    newest = np.maximum.accumulate(np.concatenate([[known.newest], times]))
    known.newest = int(newest[-1])
    return (times >= newest[:-1]) | ~_true(pc.equal(rows.column("source"), "log"), unknown=False)


def _ends_behind_its_start(rows: pa.RecordBatch, _known: Known) -> Any:
    return _true(pc.greater_equal(rows.column("log_end"), rows.column("log_start")))


EXPECTATIONS: Mapping[Table, tuple[Expectation, ...]] = {
    PARTITION_STATES: (
        _given("topic", "partition", "valid_from"),
        _at_least_zero("partition"),
        Expectation("brokers-registered", _brokers_known, usable=True),
        Expectation("leader-is-replica", _leader_is_replica, usable=True),
        Expectation("time-goes-on", _time_goes_on, usable=True),
    ),
    ELECTIONS: (_given("topic", "partition", "at", "to_leader"),),
    BROKER_EVENTS: (_given("broker", "at", "event"), _at_least_zero("broker")),
    CLUSTER_EVENTS: (_given("at", "event"),),
    CONFIGS: (_given("resource_type", "resource", "key", "at"),),
    LOG_INFO: (
        _given("topic", "partition", "replica", "read_at"),
        Expectation("log-ends-behind-its-start", _ends_behind_its_start, usable=True),
    ),
}


def checked(
    table: Table, rows: pa.RecordBatch, known: Known, counts: Counter[str]
) -> tuple[pa.RecordBatch, list[dict[str, Any]]]:
    """The rows that stay in their table, and rows of `quarantined_rows`.

    Args:
        counts: gets, for each expectation that is broken, how many rows break it: ``partition_states.not-null``.
    """
    broken: dict[int, list[str]] = {}
    stays = np.ones(rows.num_rows, bool)
    for one in EXPECTATIONS.get(table, ()):
        holds = one.holds(rows, known)
        if holds.all():
            continue
        counts[f"{table.name}.{one.name}"] += int((~holds).sum())
        for place in np.flatnonzero(~holds):
            broken.setdefault(int(place), []).append(one.name)
        if not one.usable:
            stays &= holds
    if not broken:
        return rows, []
    quarantined = [
        {
            "table": table.name,
            "expectations": broken[place],
            "used": bool(stays[place]),
            "at": _ms(row.get("valid_from") or row.get("at") or row.get("read_at")),
            "row": json.dumps(row, default=str),
            "source": row.get("source") or ("log" if table is ELECTIONS else "snapshot"),
        }
        for place, row in _at_places(rows, broken)
    ]
    return (rows if stays.all() else rows.filter(pa.array(stays))), quarantined


def _at_places(rows: pa.RecordBatch, places: Collection[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    chosen = sorted(places)
    yield from zip(chosen, rows.take(pa.array(chosen, pa.int64())).to_pylist(), strict=True)


def _true(values: pa.Array, *, unknown: bool = True) -> Any:
    return pc.fill_null(values, unknown).to_numpy(False)


def _ms(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)
