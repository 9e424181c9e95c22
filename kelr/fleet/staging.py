"""Rows of all tables on their way out of Spark's workers: one wide schema, written once, and read table by table."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kelr.fleet.expectations import Known, checked
from kelr.fleet.tables import BROKER_EVENTS, INGESTED, INPUTS, QUARANTINED_ROWS, Table, arrow_schema, table

if TYPE_CHECKING:
    from collections.abc import Callable

STATES = table(
    "log_states",
    ("place", IntegerType(), "of this part of the state"),
    ("content", BinaryType(), "the state in which the reading of a cluster's metadata log ended: `kelr.fleet.cuts`"),
    partitions=("cluster",),
)
"""From where the next run goes on: a cluster as its metadata log made it, and what its telling looks back at."""

OUTCOMES = table("outcomes", ("outcome", StringType(), "what came of a task, as JSON"), partitions=())
"""Written by each task that came to its end, as its last row; not kept in the lake."""

TOLD = tuple(one for one in INGESTED if one is not INPUTS)
"""What tasks write rows for."""

STAGE = "_kelr/stage"
"""Where, in a lake, rows of runs stand until they belong to tables."""
TELLING = "telling"
"""The name under which a stage keeps what tasks told."""

TABLE, TASK, PLACE = "_table", "_task", "_place"
"""Which table a row is of, which task wrote it, and where among the rows of its task."""

_ROWS = 5000
_DATED = ("valid_from", "at", "read_at")
"""By which column a row gets its date."""
_DAY_MS = 86_400_000
_CHUNK_BYTES = 8 * 1024 * 1024


def _wide() -> StructType:
    fields: dict[str, StructField] = {}
    for one in (*TOLD, STATES, OUTCOMES):
        for column in one.schema.fields:
            known = fields.setdefault(column.name, StructField(column.name, column.dataType, True))
            assert known.dataType == column.dataType, column.name
    meta = [StructField(TASK, IntegerType()), StructField(PLACE, LongType()), StructField(TABLE, StringType())]
    return StructType([*fields.values(), *meta])


WIDE = _wide()
"""A row of any table: its own columns, and null in the others."""


def staged_schema(one: Table) -> StructType:
    """What is read back of a table: its columns, the task and the place."""
    return StructType([*one.schema.fields, StructField(TASK, IntegerType()), StructField(PLACE, LongType())])


@cache
def _wide_in_arrow() -> pa.Schema:
    return to_arrow_schema(WIDE, timezone="UTC")


@dataclass(slots=True)
class Stager:
    """Arrow batches of the wide schema out of rows of one task, in order.

    A row is a value by column, without the folders; its times are in milliseconds since 1970.
    """

    task: int
    cluster: str
    counts: dict[str, int] = field(default_factory=dict)
    """Rows by table."""
    known: Known = field(default_factory=Known)
    """What rows are checked by."""
    broken: Counter[str] = field(default_factory=Counter)
    """Rows by the expectation that they break."""
    _held: dict[str, tuple[Table, list[Mapping[str, Any]]]] = field(default_factory=dict)
    _placed: dict[str, int] = field(default_factory=dict)

    def add(self, one: Table, row: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Take a row; when there are enough of them, a batch."""
        held = self._held.setdefault(one.name, (one, []))[1]
        held.append(row)
        if one is BROKER_EVENTS:
            self.known.brokers.add(row["broker"])
        if len(held) >= _ROWS:
            yield from self._batch(one)

    def whole(self, one: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of one table as one of the wide schema."""
        place = self._placed.get(one.name, 0)
        self._placed[one.name] = place + rows.num_rows
        self.counts[one.name] = self.counts.get(one.name, 0) + rows.num_rows
        return widened(one, rows, self.task, place)

    def content(self, one: Table, content: bytes, row: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Long bytes as rows of parts of them."""
        for place, start in enumerate(range(0, max(len(content), 1), _CHUNK_BYTES)):
            part = {**row, "place": place, "content": content[start : start + _CHUNK_BYTES]}
            yield self.whole(one, self._columns(one, [part]))

    def outcome(self, outcome: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """What is held back, and then what came of the task."""
        yield from self.rest()
        told = {"task": self.task, "cluster": self.cluster, "rows": self.counts, "broken": self.broken, **outcome}
        yield self.whole(OUTCOMES, self._columns(OUTCOMES, [{"outcome": json.dumps(told)}]))

    def rest(self) -> Iterator[pa.RecordBatch]:
        """What is held back."""
        for one, rows in list(self._held.values()):
            if rows:
                yield from self._batch(one)

    def _batch(self, one: Table) -> Iterator[pa.RecordBatch]:
        rows = self._columns(one, self._held.pop(one.name)[1])
        stay, quarantined = checked(one, rows, self.known, self.broken)
        yield self.whole(one, stay)
        if quarantined:
            yield self.whole(QUARANTINED_ROWS, self._columns(QUARANTINED_ROWS, quarantined))

    def _columns(self, one: Table, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
        dated = next((name for name in _DATED if name in one.columns), None)
        columns = []
        for column in arrow_schema(one):
            if column.name == "cluster":
                values: list[Any] = [self.cluster] * len(rows)
            elif column.name == "date" and dated is not None:
                values = [None if row[dated] is None else row[dated] // _DAY_MS for row in rows]
            else:
                values = [row.get(column.name) for row in rows]
                if pa.types.is_timestamp(column.type):
                    values = [None if value is None else value * 1000 for value in values]
                elif pa.types.is_map(column.type):
                    values = [None if value is None else sorted(value.items()) for value in values]
            columns.append(pa.array(values, column.type))
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(one))


def widened(one: Table, rows: pa.RecordBatch, task: int, place: int) -> pa.RecordBatch:
    """Rows of a table in the wide schema."""
    count = rows.num_rows
    there = {name: rows.column(at) for at, name in enumerate(rows.schema.names)}
    there[TASK] = pa.array([task] * count, pa.int32())
    there[PLACE] = pa.array(range(place, place + count), pa.int64())
    there[TABLE] = pa.array([one.name] * count, pa.string())
    schema = _wide_in_arrow()
    columns = [there[name] if name in there else pa.nulls(count, schema.field(name).type) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def in_groups(
    batches: Iterable[pa.RecordBatch], tell: Callable[[int, Iterator[dict[str, Any]]], Iterator[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Call a function for each task among rows that are sorted by ``task``; each takes all rows of it."""
    rows = (row for batch in batches for row in batch.to_pylist())
    row = next(rows, None)
    while row is not None:
        task: int = row["task"]
        first, row = row, None

        def group(first: dict[str, Any] = first, task: int = task) -> Iterator[dict[str, Any]]:
            nonlocal row
            yield first
            for one in rows:
                if one["task"] != task:
                    row = one
                    return
                yield one

        given = group()
        yield from tell(task, given)
        for _ in given:  # what the function did not want to know
            pass
