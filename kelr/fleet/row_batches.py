"""Rows of one cluster as Arrow batches, table by table: checked, kept on a disk until all are there, and closed."""

from __future__ import annotations

import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kelr.fleet.expectations import Known, checked
from kelr.fleet.tables import BROKER_EVENTS, INGESTED, INPUTS, QUARANTINED_ROWS, Table, arrow_schema

TOLD = tuple(one for one in INGESTED if one is not INPUTS)
"""The tables that inputs have rows for."""
TABLES = {one.name: one for one in TOLD}
_ROWS = 20_000
_DATED = ("valid_from", "at", "read_at")
"""By which column a row gets its date."""
_DAY_MS = 86_400_000
_WRITTEN = pa.ipc.IpcWriteOptions(compression="lz4")


class Batches(Protocol):
    """Batches that were kept."""

    def append(self, batch: pa.RecordBatch, /) -> None:
        """Keep one more."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """All of them, as often as wanted; no more are added then."""


class Spool:
    """Batches in a file without a name, so that they take no memory."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="kelr-")  # noqa: SIM115 - closed when nobody holds this any more
        weakref.finalize(self, self._file.close)
        self._writer: Any = None

    def append(self, batch: pa.RecordBatch, /) -> None:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, batch.schema, options=_WRITTEN)
        self._writer.write_batch(batch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._writer is None:
            return
        self._writer.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)


@dataclass(slots=True)
class Rows:
    """The rows that one input, or several, have.

    A row is a value by column, without the folders; its times are in milliseconds since 1970.

    Args:
        kept: where batches are kept: in memory, or a `Spool`.
    """

    cluster: str
    kept: type[Spool | list[pa.RecordBatch]] = Spool
    known: Known = field(default_factory=Known)
    """What rows are checked by."""
    broken: Counter[str] = field(default_factory=Counter)
    """Rows by the expectation that they break."""
    counts: Counter[str] = field(default_factory=Counter)
    """Rows by table."""
    _batches: dict[str, Batches] = field(default_factory=dict)
    _held: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Take a row of the table of this name."""
        held = self._held.get(table)
        if held is None:
            held = self._held[table] = []
        held.append(row)
        if table == BROKER_EVENTS.name:
            self.known.brokers.add(row["broker"])
        if len(held) >= _ROWS:
            self._put(table)

    def take(self, other: Rows) -> None:
        """All rows of another input of the same cluster."""
        other.finish()
        for table, batches in other._batches.items():
            for batch in batches:
                self._keep(table, batch)
        self.broken += other.broken

    def finish(self) -> None:
        """Keep what is held back."""
        for table in list(self._held):
            self._put(table)

    def _put(self, table: str) -> None:
        one = TABLES[table]
        rows = _columns(one, self._held.pop(table), self.cluster)
        stay, quarantined = checked(one, rows, self.known, self.broken)
        self._keep(table, stay)
        if quarantined:
            self._keep(QUARANTINED_ROWS.name, _columns(QUARANTINED_ROWS, quarantined, self.cluster))

    def _keep(self, table: str, batch: pa.RecordBatch) -> None:
        self.counts[table] += batch.num_rows
        if table not in self._batches:
            self._batches[table] = self.kept()
        self._batches[table].append(batch)

    def of(self, one: Table) -> Iterable[pa.RecordBatch]:
        """What there is of a table, in order."""
        return self._batches.get(one.name, ())


def _columns(one: Table, rows: Sequence[Mapping[str, Any]], cluster: str) -> pa.RecordBatch:
    schema = arrow_schema(one)
    if all(row.keys() == rows[0].keys() for row in rows):
        names = [name for name in schema.names if name in rows[0]]
        found: dict[str, Sequence[Any]] = dict(
            zip(names, zip(*map(itemgetter(*names), rows), strict=True), strict=True)
        )
    else:  # rows of several kinds
        found = {name: [row.get(name) for row in rows] for name in schema.names}
    dated = next((name for name in _DATED if name in one.columns), None)
    columns = []
    for column in schema:
        if column.name == "cluster":
            values = pa.repeat(pa.scalar(cluster, column.type), len(rows))
        elif column.name == "date" and dated is not None:
            values = pa.array([None if at is None else at // _DAY_MS for at in found[dated]], column.type)
        elif column.name in found:
            values = _array(found[column.name], column.type)
        else:
            values = pa.nulls(len(rows), column.type)
        columns.append(values)
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class _Places(dict[Any, int]):
    """Values by the order in which they came."""

    def __missing__(self, value: Any) -> int:
        self[value] = found = len(self)
        return found


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.timestamp("ms", kind.tz)).cast(kind)
    if pa.types.is_map(kind):
        return pa.array([None if value is None else sorted(value.items()) for value in values], kind)
    if pa.types.is_string(kind) or (pa.types.is_list(kind) and not pa.types.is_struct(kind.value_type)):
        # The same names and sets of brokers come again and again.
        places = _Places()
        with suppress(TypeError):  # a list cannot be looked up
            numbers = pa.array(list(map(places.__getitem__, values)), pa.int32())
            return pa.array(list(places), kind).take(numbers)
    return pa.array(values, kind)


# Until when a state held: until the next one of its partition.


OPEN = np.iinfo(np.int64).min
"""The end of a state that holds where the newest input ends."""
_PLACES = ("source", "topic", "topic_id", "partition", "from_offset", "valid_from")
STATE_COLUMNS = (*_PLACES, "valid_to")
"""What has to be known of states to tell where each ends."""


@dataclass(slots=True)
class Ends:
    """Where states of one cluster end. Those that are known already are taken first."""

    _topics: dict[str, int] = field(default_factory=dict)
    _columns: list[tuple[np.ndarray[Any, Any], ...]] = field(default_factory=list)

    def take(self, states: pa.RecordBatch | pa.Table) -> None:
        """States, with at least `STATE_COLUMNS`."""
        topic = pc.dictionary_encode(pc.coalesce(states["topic_id"], states["topic"]))
        if isinstance(topic, pa.ChunkedArray):
            topic = topic.combine_chunks()
        topics = [self._topics.setdefault(name, len(self._topics)) for name in topic.dictionary.to_pylist()]
        self._columns.append(
            (
                # As they are ordered: of two at once, the one that was taken first comes first.
                states["valid_from"].cast(pa.int64()).to_numpy(),
                pc.fill_null(states["from_offset"], -1).to_numpy(),
                states["partition"].to_numpy(),
                np.array(topics, np.int64)[topic.indices.to_numpy(False)],
                pc.equal(states["source"], "log").to_numpy(False),
            )
        )

    def found(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """When each state ends, in the order in which they were taken, in microseconds since 1970; or `OPEN`."""
        if not self._columns:
            return np.zeros(0, np.int64)
        columns = [np.concatenate(column) for column in zip(*self._columns, strict=True)]
        self._columns.clear()
        order = np.lexsort(columns)
        following = np.logical_and.reduce([column[order[1:]] == column[order[:-1]] for column in columns[2:]])
        found = np.full(len(order), OPEN)
        found[order[:-1][following]] = columns[0][order[1:][following]]
        return found


def with_ends(states: pa.RecordBatch | pa.Table, ends: np.ndarray[Any, np.dtype[np.int64]]) -> Any:
    """States with these ends."""
    place = states.schema.get_field_index("valid_to")
    field_ = states.schema.field(place)
    return states.set_column(place, field_, pa.array(ends, pa.int64(), mask=ends == OPEN).cast(field_.type))


def closed(states: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """States with the end of each, without rows that only say that a partition was deleted."""
    ends = Ends()
    for batch in states:
        ends.take(batch)
    found, at = ends.found(), 0
    for batch in states:
        yield there(with_ends(batch, found[at : at + batch.num_rows]))
        at += batch.num_rows


def there(states: Any) -> Any:
    """Without rows that only say that a partition was deleted."""
    return states.filter(pc.is_valid(states["replicas"])) if states["replicas"].null_count else states
