"""A lake: Delta Lake tables, and the table `runs`, whose newest row says which version of each of them is to be read.

A run writes files, commits them to the tables, and then adds its row to `runs`: so all of it appears at once, or
nothing. What a run has committed that was killed before that is in no row: nobody reads it, and the next run leaves it
out.

    LAKE/partition_states/write=1f0c.../cluster=ID/date=2026-11-01/part-...parquet
    LAKE/partition_states/_delta_log/00000000000000000007.json
    LAKE/runs/_delta_log/00000000000000000003.json
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kelr import __version__
from kelr.errors import BadInputError
from kelr.fleet.delta import NO_TABLE, DeltaTables, Setting, store_options
from kelr.fleet.files import files_at
from kelr.fleet.stores import Options, file_system, not_written
from kelr.fleet.tables import RUNS, WRITE, DataFile, Table, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OLD = "_kelr/versions"
"""Where kelr kept the versions of its lakes before they were Delta Lake's."""
_VACUUMED_EVERY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Version:
    """A row of `runs`: what the lake consists of since then."""

    number: int = 0
    """0: nothing was written yet."""
    at_ms: int = 0
    command: str = ""
    """What made it."""
    tables: Mapping[str, int] = field(default_factory=dict)
    """The version of each table, by its name."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """What a cluster is called in reports, by its id."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """The number of the run that last changed each table: what is made of others may be older than they are."""
    vacuumed_ms: int = 0
    """When files that nobody needs were deleted last."""


class Lake:
    """A lake on some file system. Tables are those of its newest run when it was opened, or `refresh`ed.

    Args:
        spark: None: nothing is read or written by Spark.
        settings: Spark's, where there is no session; of stores.

    Raises:
        BadInputError: what is there is of another format, or damaged.
    """

    def __init__(self, spark: SparkSession | None, place: str, settings: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._setting: Setting = (settings or {}).get if spark is None else spark.conf.get
        self.files = files_at(place, self.options(place))
        self._delta = DeltaTables(self.place, dict(self.options(place)))
        self._listed: dict[tuple[str, int], frozenset[DataFile]] = {}
        self._head = NO_TABLE
        """The version of `runs`, which the next one is to follow."""
        self.version = Version()
        self.refresh()

    @property
    def place(self) -> str:
        return self.files.place

    def options(self, place: str) -> Options:
        """What the client of a store has to know to open files there."""
        return store_options(self._setting, place)

    @property
    def spark(self) -> SparkSession:
        """The session."""
        assert self._spark is not None  # rows are asked for where there is one
        return self._spark

    def refresh(self) -> None:
        """Look for a newer run."""
        self._head = self._delta.newest(RUNS.name)
        if self._head == NO_TABLE:
            if any(True for _ in self.files.list(_OLD)):
                raise BadInputError(
                    f"{self.place} was made by an older kelr, before lakes were tables of Delta Lake",
                    next_step="ingest the same inputs into another place, and delete this one",
                    code="lake-too-old",
                )
            self.version = Version()
            return
        rows = self._delta.files(RUNS.name, self._head)
        # A run's file is called as its number, so that only one is read, however many runs there were.
        self.version = self._run(max(rows, key=_path)) if rows else Version()

    def exists(self) -> Lake:
        """This lake, if anything was ever written to it.

        Raises:
            BadInputError: there is nothing.
        """
        if not self.version.number:
            raise BadInputError(
                f"{self.place} is no lake",
                next_step="make one with: kelr fleet ingest INPUT... --out LAKE",
                code="not-a-lake",
            )
        return self

    def command_of(self, table: Table) -> str | None:
        """The command that last changed a table; None: none has."""
        number = self.version.changed.get(table.name)
        if number is None:
            return None
        (file,) = (one for one in self._delta.files(RUNS.name, self._head) if one.path.startswith(f"{number:08}-"))
        return self._run(file).command

    def files_of(self, table: Table) -> frozenset[DataFile]:
        """The files of a table."""
        version = self.version.tables.get(table.name)
        if version is None:
            return frozenset()
        key = (table.name, version)
        if key not in self._listed:
            self._listed[key] = self._delta.files(*key)
        return self._listed[key]

    def read(self, table: Table) -> DataFrame:
        """A table; its folders are its last columns, and filters on them leave out what they need not read."""
        return self._frame(table, self.files_of(table))

    def dataset(self, table: Table) -> ds.Dataset:
        """A table as pyarrow reads it, without Spark."""
        return self._dataset(table, self.files_of(table))

    def rows(self, table: Table) -> list[dict[str, Any]]:
        """A small table, read without Spark. Times are UTC."""
        return self._rows(table, self.files_of(table))

    @contextmanager
    def changing(self, command: str = "") -> Iterator[Changes]:
        """Change the lake: all of it at the end, or nothing if the block fails.

        Args:
            command: what the run is, for its row in `runs`.

        Raises:
            RefusedError: another run has changed it meanwhile.
            BadInputError: it cannot be written.
        """
        self.refresh()
        changes = Changes(self)
        yield changes
        self._commit(changes, command)

    def _commit(self, changes: Changes, command: str) -> None:
        if not changes.made and changes.version == self.version:
            return
        number, now = self.version.number + 1, datetime.now(UTC)
        # Always in the same order: of two runs at once one comes first everywhere.
        made = sorted(changes.made.items(), key=lambda one: one[0].name)
        tables = {table.name: self._delta.commit(table, files) for table, files in made}
        vacuumed_ms = self.version.vacuumed_ms or _ms(now)
        due = _ms(now - _VACUUMED_EVERY) > vacuumed_ms
        version = replace(
            changes.version,
            number=number,
            at_ms=_ms(now),
            command=command,
            tables={**self.version.tables, **tables},
            changed={**self.version.changed, **dict.fromkeys(tables, number)},
            vacuumed_ms=_ms(now) if due else vacuumed_ms,
        )
        row = {
            "number": number,
            "at": now,
            "command": command,
            "kelr": __version__,
            "tables": sorted(version.tables.items()),
            "changed": sorted(version.changed.items()),
            "clusters": sorted(version.clusters.items()),
            "vacuumed": datetime.fromtimestamp(version.vacuumed_ms / 1000, UTC),
        }
        before = () if self._head == NO_TABLE else self._delta.files(RUNS.name, self._head)
        file = self.put(RUNS, [row], f"{number:08}-{uuid.uuid4().hex}")
        self._head = self._delta.commit(RUNS, {*before, file}, after=self._head)
        self.version = version
        if due:
            self._vacuum()

    def _vacuum(self) -> None:
        """Delete what newer files have replaced for long, and what runs that were killed have left."""
        for name, version in self.version.tables.items():
            self._delta.vacuum(name, self._delta.files(name, version))

    # Files.

    def put(self, table: Table, rows: Sequence[Mapping[str, Any]], name: str) -> DataFile:
        """A file of a few rows of a table without partitions; it belongs to it when it is committed."""
        assert not table.partitions
        written = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(list(rows), arrow_schema(table)), written)
        content = written.getvalue().to_pybytes()
        self.files.write(f"{table.name}/{name}.parquet", [content])
        return DataFile(f"{name}.parquet", len(content), time.time_ns() // 1_000_000, {})

    def write(self, table: Table, rows: DataFrame) -> list[DataFile]:
        """Files of rows beside what is there; they belong to the table when they are committed."""
        below = f"{table.name}/{WRITE}={uuid.uuid4().hex}"
        writer = rows.select(*table.columns).write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        if table.partitions:
            writer = writer.partitionBy(*table.partitions)
        try:
            writer.parquet(f"{self.place.rstrip('/')}/{below}")
        except Exception as error:
            meaning = not_written(error, f"{self.place}/{table.name}")
            if meaning is None:
                raise
            raise meaning from error
        return [
            DataFile(path, listed.size_bytes, listed.modified_ms, _values(table, path))
            for listed in self.files.list(below)
            if (path := listed.path.removeprefix(f"{self.place.rstrip('/')}/{table.name}/")).endswith(".parquet")
        ]

    def _dataset(self, table: Table, files: Collection[DataFile]) -> ds.Dataset:
        schema = arrow_schema(table)
        if not files:
            return ds.dataset(schema.empty_table())
        system, root = file_system(f"{self.place.rstrip('/')}/{table.name}", self.options(self.place))
        folders = pa.schema([pa.field(WRITE, pa.string()), *(schema.field(name) for name in table.partitions)])
        return ds.dataset(
            [f"{root}/{path}" for path in sorted(map(_path, files))],
            schema=schema,
            format="parquet",
            filesystem=system,
            partitioning=ds.partitioning(folders, flavor="hive") if table.partitions else None,
            partition_base_dir=root,
        )

    def _rows(self, table: Table, files: Collection[DataFile]) -> list[dict[str, Any]]:
        try:
            rows: list[dict[str, Any]] = self._dataset(table, files).to_table().to_pylist()
        except (pa.ArrowException, ValueError) as error:
            raise BadInputError(f"{self.place}/{table.name} is damaged: {error}") from error
        return rows

    def _run(self, file: DataFile) -> Version:
        (row,) = self._rows(RUNS, [file])
        return Version(
            row["number"],
            _ms(row["at"]),
            row["command"],
            dict(row["tables"]),
            dict(row["clusters"]),
            dict(row["changed"]),
            _ms(row["vacuumed"]),
        )

    def _frame(self, table: Table, files: Collection[DataFile]) -> DataFrame:
        if not files:
            return self.spark.createDataFrame([], table.schema)
        root = f"{self.place.rstrip('/')}/{table.name}"
        reader = self.spark.read.schema(table.schema)
        # Folder names are escaped once by Spark when it writes them; a path is taken as it is.
        paths = (f"{root}/{path}" for path in sorted(file.path for file in files))
        return reader.option("basePath", root).parquet(*paths).select(*table.columns)


class Changes:
    """What is to become of a lake."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.version = lake.version
        self.made: dict[Table, frozenset[DataFile]] = {}
        """The files that tables are to consist of."""

    def files_of(self, table: Table) -> frozenset[DataFile]:
        """The files of a table as these changes are going to leave it."""
        return self.made[table] if table in self.made else self._lake.files_of(table)

    def read(self, table: Table) -> DataFrame:
        """A table as these changes are going to leave it."""
        return self._lake._frame(table, self.files_of(table))

    def exchange(self, table: Table, added: Iterable[DataFile], gone: Collection[str]) -> None:
        """Add files that are there already, and take others out, by their paths."""
        stay = {file for file in self.files_of(table) if file.path not in gone}
        self.made[table] = frozenset({*stay, *added})

    def append(self, table: Table, rows: DataFrame) -> None:
        """Add rows to a table."""
        self.made[table] = self.files_of(table) | {*self._lake.write(table, rows)}

    def replace(self, table: Table, rows: DataFrame, folders: Iterable[Mapping[str, str]]) -> None:
        """Put rows in place of whole folders of a table.

        Args:
            rows: of these folders only, and all of them.
            folders: partition column to value as text: ``{"cluster": "...", "date": "2026-11-01"}``; a folder that
                names only the first column stands for all below it, and an empty one for the whole table.
        """
        going = list(folders)
        stay = {file for file in self.files_of(table) if not any(one.items() <= file.values.items() for one in going)}
        self.made[table] = frozenset({*stay, *self._lake.write(table, rows)})

    def put(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
        """Put a few rows in place of all of a table without partitions."""
        self.made[table] = frozenset({self._lake.put(table, rows, uuid.uuid4().hex)})

    def name(self, clusters: Mapping[str, str]) -> None:
        """Call clusters by names in reports."""
        self.version = replace(self.version, clusters={**self.version.clusters, **clusters})


def _values(table: Table, path: str) -> dict[str, str | None]:
    """Of the partition columns, by the names of folders."""
    told = dict(folder.split("=", 1) for folder in path.split("/")[:-1])
    return {name: None if told[name] == _NULL else unquote(told[name]) for name in table.folders}


_NULL = "__HIVE_DEFAULT_PARTITION__"


def _path(file: DataFile) -> str:
    return file.path


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
