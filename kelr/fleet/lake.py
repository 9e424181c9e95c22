"""A lake: tables of Parquet files, and versions that say which files make up each table.

A run writes files, and then one more version, in which they belong to the tables. Files of a run that was killed belong
to no version: nobody reads them, and the next run deletes them. So a table is always as some run left it.

    LAKE/partition_states/cluster=ID/date=2026-11-01/part-...parquet
    LAKE/_kelr/versions/00000007.json
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from kelr import __version__
from kelr.errors import BadInputError, KelrError, RefusedError
from kelr.fleet.files import files_at
from kelr.fleet.folder import StillHeld, relative
from kelr.fleet.reached import not_written
from kelr.fleet.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT, FORMAT_VERSION = "kelr-lake", 1
_VERSIONS = "_kelr/versions"
_KEPT = 2
"""So many versions are kept: whoever began to read the one before the last can go on."""


@dataclass(frozen=True, slots=True)
class Version:
    """What the lake consists of."""

    number: int = 0
    """0: nothing was written yet."""
    at_ms: int = 0
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The files of each table, relative to the lake, sorted."""
    kept: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other files that belong to the lake, by what they are for; such as the states from which reading goes on."""
    clusters: Mapping[str, str] = field(default_factory=dict)
    """What a cluster is called in reports, by its id."""
    changed: Mapping[str, int] = field(default_factory=dict)
    """The number of the version that last changed each table: what is made of others may be older than they are."""

    @property
    def files(self) -> frozenset[str]:
        return frozenset(file for group in (self.tables, self.kept) for files in group.values() for file in files)


class Lake:
    """A lake on some file system. Tables are those of its newest version when it was opened, or `refresh`ed.

    Raises:
        BadInputError: what is there is no lake.
    """

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.files = files_at(place, spark)
        self.version = Version()
        self.refresh()

    @property
    def place(self) -> str:
        return self.files.place

    def refresh(self) -> None:
        """Look for a newer version."""
        newest = max(self._numbers(), default=None)
        self.version = Version() if newest is None else self._read(newest)

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

    def read(self, table: Table) -> DataFrame:
        """A table; its folders are its last columns, and filters on them leave out what they need not read."""
        return self._frame(table, self.version.tables.get(table.name, ()))

    @contextmanager
    def changing(self) -> Iterator[Changes]:
        """Change the lake: all of it at the end, or nothing if the block fails.

        Raises:
            RefusedError: another run is changing it, or has changed it meanwhile.
            BadInputError: it cannot be written.
        """
        with self.files.locked() as still_held:
            self.refresh()
            self._delete_strays()
            changes = Changes(self, still_held)
            yield changes
            still_held()
            self._commit(changes.version)
            with suppress(RefusedError):  # it was committed; what another run writes by now is no stray of this one's
                still_held()
                self._delete_strays()

    # Versions.

    def _commit(self, version: Version) -> None:
        if version == self.version:
            return
        version = replace(version, number=self.version.number + 1, at_ms=time.time_ns() // 1_000_000)
        try:
            self.files.write_new(_version_path(version.number), _written(version))
        except FileExistsError:
            raise RefusedError(
                f"{self.place}: another run has changed this lake meanwhile; nothing of this one was taken",
                next_step="run it again",
            ) from None
        self.version = version

    def _numbers(self) -> list[int]:
        names = [listed.path.rpartition("/")[2] for listed in self.files.list(_VERSIONS)]
        return [int(name.removesuffix(".json")) for name in names if name.removesuffix(".json").isdigit()]

    def _read(self, number: int) -> Version:
        path = _version_path(number)
        try:
            content = json.loads(self.files.read(path))
            if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
                raise BadInputError(
                    f"{self.place}/{path} is of another format: {content['format']} {content['format_version']}",
                    next_step=f"it was written by kelr {content.get('kelr')}; this is {__version__}",
                )
            return Version(
                number,
                content["at_ms"],
                {name: tuple(files) for name, files in content["tables"].items()},
                {name: tuple(files) for name, files in content["kept"].items()},
                content["clusters"],
                content["changed"],
            )
        except KelrError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInputError(
                f"{self.place}/{path} is damaged: {error}", next_step="delete it to go back to the version before it"
            ) from error

    def _delete_strays(self) -> None:
        """Delete what no kept version has: files of killed runs, and of versions that are too old."""
        numbers = sorted(self._numbers())
        if not numbers:
            return
        old, kept = numbers[:-_KEPT], numbers[-_KEPT:]
        wanted = {file for number in kept for file in self._read(number).files}
        for number in old:
            self.files.delete(_version_path(number))
        names = {name for number in kept for name in self._read(number).tables} | set(self.version.tables)
        for name in sorted(names | {"_kelr/kept"}):
            for listed in self.files.list(name):
                path = self.relative(listed.path)
                if path not in wanted:
                    self.files.delete(path)

    # Files.

    def relative(self, path: str) -> str:
        """A path that a listing gave, relative to the lake."""
        return relative(self.place, path)

    def _frame(self, table: Table, files: Collection[str]) -> DataFrame:
        reader = self.spark.read.schema(table.schema)
        if not files:
            return self.spark.createDataFrame([], table.schema)
        root = self.place.rstrip("/")
        # Folder names are escaped once by Spark when it writes them; a path is taken as it is.
        return reader.option("basePath", f"{root}/{table.name}").parquet(*(f"{root}/{file}" for file in files))


class Changes:
    """What is to become of a lake.

    Whatever writes raises RefusedError where another run has taken the lake over: it would be in that one's way.
    """

    def __init__(self, lake: Lake, still_held: StillHeld) -> None:
        self._lake, self._still_held = lake, still_held
        self.version = lake.version

    def read(self, table: Table) -> DataFrame:
        """A table as these changes are going to leave it."""
        return self._lake._frame(table, self.version.tables.get(table.name, ()))

    def append(self, table: Table, rows: DataFrame) -> None:
        """Add rows to a table."""
        self._put(table, self.version.tables.get(table.name, ()), self._write(table, rows))

    def replace(self, table: Table, rows: DataFrame, folders: Iterable[Mapping[str, str]]) -> None:
        """Put rows in place of whole folders of a table.

        Args:
            rows: of these folders only, and all of them.
            folders: partition column to value as text: ``{"cluster": "...", "date": "2026-11-01"}``; a folder that
                names only the first column stands for all below it, and an empty one for the whole table.
        """
        prefixes = tuple(folder_of(table, one) for one in folders)
        before = self.version.tables.get(table.name, ())
        stay = [file for file in before if not file.startswith(prefixes)]
        self._put(table, stay, self._write(table, rows))

    def keep(self, purpose: str, files: Mapping[str, bytes]) -> None:
        """Keep small files for a purpose, in place of those that were kept for it; names are relative to its folder."""
        self._still_held()  # the other run gives its files the same names
        paths = []
        for name, content in files.items():
            path = f"_kelr/kept/{quote(purpose, safe='')}/{self._lake.version.number + 1:08}-{name}"
            self._lake.files.write(path, content)
            paths.append(path)
        kept = {**self.version.kept, purpose: tuple(sorted(paths))}
        self.version = replace(self.version, kept={name: files for name, files in kept.items() if files})

    def name(self, clusters: Mapping[str, str]) -> None:
        """Call clusters by names in reports."""
        self.version = replace(self.version, clusters={**self.version.clusters, **clusters})

    def _put(self, table: Table, stay: Iterable[str], new: Iterable[str]) -> None:
        files = tuple(sorted({*stay, *new}))
        self.version = replace(
            self.version,
            tables={**self.version.tables, table.name: files},
            changed={**self.version.changed, table.name: self._lake.version.number + 1},
        )

    def _write(self, table: Table, rows: DataFrame) -> list[str]:
        """Write rows beside what is there; the files that this made."""
        lake = self._lake
        self._still_held()
        # What tasks of a killed run had ended is there: Hadoop's committer would take it for this one's.
        lake.files.delete_below(f"{table.name}/_temporary")
        known = {listed.path for listed in lake.files.list(table.name)}
        writer = rows.select(*table.columns).write.mode("append")
        if table.partitions:
            writer = writer.partitionBy(*table.partitions)
        try:
            writer.parquet(f"{lake.place.rstrip('/')}/{table.name}")
        except Exception as error:
            meaning = not_written(error, f"{lake.place}/{table.name}")
            if meaning is None:
                raise
            raise meaning from error
        self._still_held()
        return [
            lake.relative(listed.path)
            for listed in lake.files.list(table.name)
            if listed.path not in known and listed.path.endswith(".parquet")
        ]


def folder_of(table: Table, values: Mapping[str, str]) -> str:
    """Where rows with these values in the first partition columns are; see `Changes.replace`."""
    given = [f"{column}={_escaped(values[column])}/" for column in table.partitions if column in values]
    return f"{table.name}/" + "".join(given)


_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^") | {chr(code) for code in range(1, 32)}
"""ExternalCatalogUtils.charToEscape of Spark."""


def _escaped(value: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in value)


def _version_path(number: int) -> str:
    return f"{_VERSIONS}/{number:08}.json"


def _written(version: Version) -> bytes:
    content: dict[str, Any] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kelr": __version__,
        "version": version.number,
        "at_ms": version.at_ms,
        "tables": {name: list(files) for name, files in sorted(version.tables.items())},
        "kept": {name: list(files) for name, files in sorted(version.kept.items())},
        "clusters": dict(sorted(version.clusters.items())),
        "changed": dict(sorted(version.changed.items())),
    }
    return json.dumps(content, indent=1).encode()
