"""What one cluster's new inputs make of a lake: files of its tables that are new, and files that those replace.

A worker does all of it for one cluster: it reads the inputs, closes the states that end by what it has read, finds what
elections put at stake, and writes Parquet files into the lake. They belong to its tables when the run commits them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kelr.fleet.reading import ClusterInputs, Read, read
from kelr.fleet.row_batches import OPEN, STATE_COLUMNS, Ends, there, with_ends
from kelr.fleet.stakes import ELECTED, FIGURES, LEVELS, LOGS, Stakes
from kelr.fleet.stakes import STATES as WAITED
from kelr.fleet.states import State
from kelr.fleet.stores import Options, opened, written
from kelr.fleet.tables import (
    BROKER_EVENTS,
    CLUSTER_EVENTS,
    CONFIGS,
    ELECTIONS,
    LOG_INFO,
    PARTITION_STATES,
    QUARANTINED_ROWS,
    STATES,
    WRITE,
    DataFile,
    Table,
    arrow_schema,
)


@dataclass(frozen=True, slots=True)
class ClusterWork:
    """What a worker does for one cluster."""

    inputs: ClusterInputs
    lake: str
    options: Options
    """Of the lake's store."""
    known: Mapping[str, tuple[DataFile, ...]]
    """The files that the lake has of the cluster, by table."""
    goes_on: bool = False
    """The log is told from where an earlier run had ended."""
    anew: bool = False
    """The log is told anew: what was told of it before goes."""
    size_bytes: int = 0
    """Of what is to be read."""


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    cluster: str
    records: int
    partitions: int
    begun_ms: int | None
    ended_ms: int | None
    notes: tuple[str, ...]
    next_offset: int | None
    unreadable: Mapping[str, str]
    counts: Mapping[str, int]
    """New rows by table."""
    broken: Mapping[str, int]
    """Rows by the expectation that they break."""
    added: dict[str, list[DataFile]] = field(default_factory=dict)
    """New files by table."""
    replaced: dict[str, list[str]] = field(default_factory=dict)
    """Paths of files that are in the table no more."""


def merge(work: ClusterWork) -> Outcome | OSError:
    """Read a cluster's inputs, and write what they make of the lake's tables; or why the lake cannot be written."""
    found = read(work.inputs, lambda: _kept_state(work) if work.goes_on else None)
    try:
        return _merged(work, found)
    except OSError as error:
        return error


def _merged(work: ClusterWork, found: Read) -> Outcome:
    outcome = Outcome(
        work.inputs.cluster,
        found.records,
        found.partitions,
        found.begun_ms,
        found.ended_ms,
        found.notes,
        found.next_offset,
        found.unreadable,
        found.rows.counts,
        found.rows.broken,
    )
    told = found.next_offset is not None
    merging = _Merging(work, found, outcome, anew=work.anew and told, goes_on=work.goes_on and told)
    for table in (BROKER_EVENTS, CONFIGS, LOG_INFO, QUARANTINED_ROWS):
        merging.plain(table)
    merging.cluster_events()
    merging.states()
    merging.elections()
    merging.state()
    return outcome


def _kept_state(work: ClusterWork) -> State:
    """What is known where the lake's log ends. Raises BadInputError."""
    files = [_parquet(work, STATES, file.path).read(["place", "content"]) for file in work.known[STATES.name]]
    return State.unpacked(b"".join(pa.concat_tables(files).sort_by("place")["content"].to_pylist()))


def _parquet(work: ClusterWork, table: Table, path: str) -> pq.ParquetFile:
    return pq.ParquetFile(opened(f"{work.lake}/{table.name}/{path}", work.options))


Become = Callable[[pa.Table, int], pa.Table]
"""What rows of a file become; with the number of the first of them."""


@dataclass(slots=True)
class _Merging:
    work: ClusterWork
    found: Read
    outcome: Outcome
    anew: bool
    goes_on: bool

    def plain(self, table: Table) -> None:
        """Rows that never change; of a log that is told anew they go."""
        of_log = table is not LOG_INFO and self.anew
        self._put(table, self.found.rows.of(table), self._without_log if of_log else _stays)

    def cluster_events(self) -> None:
        """Of each log only the newest end is kept."""
        change = self._without_log if self.anew else self._without_end if self.goes_on else _stays
        self._put(CLUSTER_EVENTS, self.found.rows.of(CLUSTER_EVENTS), change)

    def states(self) -> None:
        """A state holds until the next one of its partition."""
        ends, new = Ends(), self.found.rows.of(PARTITION_STATES)
        unsettled: dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
        for file in self._known(PARTITION_STATES) if new else ():
            places, states = self._unsettled(file)
            if len(places):
                unsettled[file.path] = places, states["valid_to"].cast(pa.int64()).fill_null(OPEN).to_numpy()
                ends.take(states)
        for batch in new:
            ends.take(batch)
        found, at = ends.found(), 0
        nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
        changed: dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
        for path, (places, before) in unsettled.items():
            after = found[at : at + len(places)]
            at += len(places)
            if (differs := after != before).any():
                changed[path] = places[differs], after[differs]

        def change(file: DataFile, rows: pq.ParquetFile) -> Become | None:
            without = self._without_log(file, rows) if self.anew else None
            if without is None and file.path not in changed:
                return None
            places, after = changed.get(file.path, nothing)

            def become(part: pa.Table, first: int) -> pa.Table:
                ends = part["valid_to"].cast(pa.int64()).fill_null(OPEN).to_numpy().copy()
                inside = (places >= first) & (places < first + len(ends))
                ends[places[inside] - first] = after[inside]
                return without(with_ends(part, ends), first) if without is not None else with_ends(part, ends)

            return become

        self._put(PARTITION_STATES, _ended(new, found[at:]), change)

    def _unsettled(self, file: DataFile) -> tuple[np.ndarray[Any, Any], pa.Table]:
        """The states of a file that may get another end, and their places in it: open ones of logs, which only grow at
        their end, and all of snapshots, which come in any order."""
        rows, first, places, states = _parquet(self.work, PARTITION_STATES, file.path), 0, [], []
        for number in range(rows.num_row_groups):
            group = rows.metadata.row_group(number)
            if not _settled(group):
                part = rows.read_row_group(number, list(STATE_COLUMNS))
                of_log = pc.equal(part["source"], "log")
                stay = pc.and_(of_log, pc.is_valid(part["valid_to"])) if not self.anew else of_log
                mask = pc.invert(stay)
                places.append(np.flatnonzero(mask.to_numpy()) + first)
                states.append(part.filter(mask))
            first += group.num_rows
        return (np.concatenate(places), pa.concat_tables(states)) if places else (np.zeros(0, np.int64), pa.table({}))

    def elections(self) -> None:
        """With what each put at stake, as far as that is known."""
        new, stakes = self.found.rows.of(ELECTIONS), Stakes()
        if not stakes.take_logs(self._as_left(LOG_INFO, LOGS)):
            self._put(ELECTIONS, new, _all_go if self.anew else _stays)
            return
        stakes.take_levels(self._as_left(CLUSTER_EVENTS, LEVELS))
        stakes.take_states(self._as_left(PARTITION_STATES, WAITED))

        def change(_file: DataFile, rows: pq.ParquetFile) -> Become | None:
            known = rows.read([*ELECTED, *FIGURES])
            staked = stakes.added(known).select(FIGURES)
            if staked == known.select(FIGURES):
                return None
            return lambda part, first: _with(part, staked.slice(first, part.num_rows))

        self._put(ELECTIONS, map(stakes.added, new), _all_go if self.anew else change)

    def _as_left(self, table: Table, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Columns of a table as it is left."""
        going = set(self.outcome.replaced.get(table.name, ()))
        files = [file.path for file in self._known(table) if file.path not in going]
        files += [file.path for file in self.outcome.added.get(table.name, ())]
        for path in files:
            rows = _parquet(self.work, table, path)
            for number in range(rows.num_row_groups):
                yield rows.read_row_group(number, list(columns))

    def state(self) -> None:
        """From where the next run goes on."""
        if self.found.state is None:
            return
        content = self.found.state.packed()
        parts = [content[at : at + _CHUNK_BYTES] for at in range(0, len(content), _CHUNK_BYTES)]
        columns = [
            pa.array(range(len(parts)), pa.int32()),
            pa.array(parts),
            pa.repeat(self.outcome.cluster, len(parts)),
        ]
        schema = arrow_schema(STATES)
        self._put(STATES, [pa.RecordBatch.from_arrays(columns, schema=schema)], _all_go)

    def _known(self, table: Table) -> tuple[DataFile, ...]:
        return self.work.known.get(table.name, ())

    def _without_log(self, _file: DataFile, rows: pq.ParquetFile) -> Become | None:
        if not pc.any(pc.equal(rows.read(["source"])["source"], "log")).as_py():
            return None
        return lambda part, _: part.filter(pc.not_equal(part["source"], "log"))

    def _without_end(self, _file: DataFile, rows: pq.ParquetFile) -> Become | None:
        if not pc.any(_is_end(rows.read(["event", "source"]))).as_py():
            return None
        return lambda part, _: part.filter(pc.invert(_is_end(part)))

    def _put(
        self,
        table: Table,
        new: Iterable[pa.RecordBatch],
        change: Callable[[DataFile, pq.ParquetFile], Become | None],
    ) -> None:
        """Write what is new, and files whose rows change."""
        replaced = []
        with Writer(table, self.work) as writer:
            for file in self._known(table):
                rows = _parquet(self.work, table, file.path)
                become = change(file, rows)
                if become is None:
                    continue
                replaced.append(file.path)
                first = 0
                for number in range(rows.num_row_groups):
                    part = rows.read_row_group(number)
                    writer.add(file.values.get("date"), become(part, first))
                    first += part.num_rows
            for batch in new:
                writer.add_by_date(batch)
        if writer.files:
            self.outcome.added[table.name] = writer.files
        if replaced:
            self.outcome.replaced[table.name] = replaced


def _stays(_file: DataFile, _rows: pq.ParquetFile) -> None:
    """No row of the file changes."""


def _all_go(_file: DataFile, _rows: pq.ParquetFile) -> Become:
    """No row of the file stays."""
    return lambda part, _: part.slice(0, 0)


def _is_end(events: pa.Table) -> Any:
    return pc.and_(pc.equal(events["event"], "end"), pc.equal(events["source"], "log"))


def _settled(group: pq.RowGroupMetaData) -> bool:
    """Whether a group of states, by what the file says of it, holds none that may get another end."""
    told = {group.column(number).path_in_schema: group.column(number).statistics for number in range(group.num_columns)}
    ended, source = told["valid_to"], told["source"]
    if ended is None or source is None or not ended.has_null_count or not source.has_min_max:
        return False
    return bool(ended.null_count == 0 and source.min == source.max == "log")


def _ended(states: Iterable[pa.RecordBatch], ends: np.ndarray[Any, Any]) -> Iterator[pa.RecordBatch]:
    at = 0
    for batch in states:
        yield there(with_ends(batch, ends[at : at + batch.num_rows]))
        at += batch.num_rows


def _with(part: pa.Table, columns: pa.Table) -> pa.Table:
    for name in columns.column_names:
        part = part.set_column(part.schema.get_field_index(name), part.schema.field(name), columns[name])
    return part


# Writing.

_CHUNK_BYTES = 8 * 1024 * 1024
_GROUP_ROWS = 50_000
_MOST_OPEN = 8
_NULL = "__HIVE_DEFAULT_PARTITION__"
_ORDER = {
    PARTITION_STATES: ("topic", "partition", "from_offset", "valid_from"),
    BROKER_EVENTS: ("offset", "broker"),
    CLUSTER_EVENTS: ("offset",),
    ELECTIONS: ("topic", "partition", "offset"),
    CONFIGS: ("offset", "resource"),
    LOG_INFO: ("topic", "partition", "replica"),
    QUARANTINED_ROWS: ("table", "at"),
    STATES: ("place",),
}
"""How rows lie in a group of a file, so that a filter on topics has little to read."""


@dataclass(slots=True)
class _Open:
    """A file that is being written."""

    path: str
    values: dict[str, str | None]
    stack: ExitStack
    stream: IO[bytes]
    rows: pq.ParquetWriter
    held: list[pa.Table] = field(default_factory=list)
    count: int = 0


class Writer:
    """Writes rows of one cluster into files of a table, one or more a date; use it in a with block.

    Few files are open at once: rows come nearly in the order of their dates.
    """

    def __init__(self, table: Table, work: ClusterWork) -> None:
        self._table, self._work = table, work
        self._write = uuid.uuid4().hex
        self._open: dict[str | None, _Open] = {}
        """By date, the one that was written to last at the end."""
        inside = [field for field in arrow_schema(table) if field.name not in table.partitions]
        self._schema = pa.schema(inside)
        self.files: list[DataFile] = []
        """Those that are whole."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for one in self._open.values():
            if kind is None:
                self._close(one)
            else:
                one.stack.close()

    def add_by_date(self, rows: pa.RecordBatch) -> None:
        """Take rows that have a date, if the table has dates."""
        table = pa.Table.from_batches([rows])
        if "date" not in self._table.partitions:
            self.add(None, table)
            return
        dates = table["date"].unique().to_pylist()
        for date in dates:
            mask = pc.is_null(table["date"]) if date is None else pc.equal(table["date"], date)
            self.add(None if date is None else date.isoformat(), table if len(dates) == 1 else table.filter(mask))

    def add(self, date: str | None, rows: pa.Table) -> None:
        """Take rows of a date."""
        if not rows.num_rows:
            return
        one = self._open.pop(date, None) or self._opened(date)
        self._open[date] = one
        one.held.append(rows.select(self._schema.names).cast(self._schema))
        one.count += rows.num_rows
        if one.count >= _GROUP_ROWS:
            self._flush(one)
        if len(self._open) > _MOST_OPEN:
            self._close(self._open.pop(next(iter(self._open))))

    def _opened(self, date: str | None) -> _Open:
        values: dict[str, str | None] = {WRITE: self._write, "cluster": self._work.inputs.cluster}
        if "date" in self._table.partitions:
            values["date"] = date
        folders = [f"{name}={_NULL if value is None else quote(value, safe='')}" for name, value in values.items()]
        path = "/".join([*folders, f"part-{len(self.files):05}-{uuid.uuid4().hex}.parquet"])
        stack = ExitStack()
        stream = stack.enter_context(written(f"{self._work.lake}/{self._table.name}/{path}", self._work.options))
        rows = stack.enter_context(pq.ParquetWriter(stream, self._schema, compression="snappy"))
        return _Open(path, values, stack, stream, rows)

    def _flush(self, one: _Open) -> None:
        if one.count:
            order = [(name, "ascending") for name in _ORDER[self._table]]
            one.rows.write_table(pa.concat_tables(one.held).sort_by(order), row_group_size=_GROUP_ROWS * 2)
        one.held.clear()
        one.count = 0

    def _close(self, one: _Open) -> None:
        self._flush(one)
        one.rows.close()
        size_bytes = one.stream.tell()
        one.stack.close()
        self.files.append(DataFile(one.path, size_bytes, time.time_ns() // 1_000_000, one.values))
