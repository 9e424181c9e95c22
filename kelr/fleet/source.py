"""Metadata logs and snapshots as sources of PySpark's, for whoever wants their rows without a lake.

    from kelr.fleet.source import register

    register(spark)
    states = spark.read.format("kafka-metadata-log").load("/collected")
    elections = spark.read.format("kafka-metadata-log").option("table", "elections").load("/collected")
    seen = spark.read.format("kelr-snapshot").load("/collected")

Rows are those of the lake's tables of that name (`kelr.fleet.tables`): `partition_states` (the default),
`broker_events`, `cluster_events`, `elections`, `configs`, `quarantined_rows`, and of snapshots and collections
`log_info`. What an election put at stake is not told here: it takes both sources.

Options:
    path: a file or folder of the workers, or a URI of a store; `load` takes several, too.
    table: which rows.
    cluster: the cluster of files beside which no meta.properties says it.
    damaged: ``fail`` (the default), or ``skip``: what cannot be read is left out, as ``kelr fleet ingest`` does.
    aws_..., azure_..., google_...: what delta-rs's client of a store is to know.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from kelr.errors import BadInputError
from kelr.fleet.files import files_at
from kelr.fleet.inputs import WHAT, Input, Owners, list_inputs
from kelr.fleet.planning import Work, in_order, laid_out, plan_seen
from kelr.fleet.readers import Look, is_piece_of_log, look
from kelr.fleet.reading import ClusterInputs, read
from kelr.fleet.row_batches import TABLES, closed
from kelr.fleet.stores import Options
from kelr.fleet.tables import ELECTIONS, LOG_INFO, PARTITION_STATES, Table
from kelr.fleet.travel import send

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_OF_STORES = ("aws_", "azure_", "google_")
_SHOWN = 5


def register(spark: SparkSession) -> None:
    """Make the sources known to a session, and send kelr's code to its workers.

    Raises:
        UnsupportedError: workers cannot run kelr.
    """
    send(spark)
    for source in (MetadataLogSource, SnapshotSource):
        spark.dataSource.register(source)


class _Clusters(DataSource):
    """Rows of inputs, cluster by cluster: a task of Spark's reads all of one."""

    tables: ClassVar[Sequence[Table]]
    of_logs: ClassVar[bool]
    """Whether segments and checkpoints are read, or all other files."""

    def schema(self) -> StructType:
        return self._table().schema

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema  # it is the table's
        skips = self.options.get("damaged", "fail")
        if skips not in {"fail", "skip"}:
            raise BadInputError(f"option damaged: {skips} is neither fail nor skip")
        return _Reader(type(self), dict(self.options), self._table(), skips=skips == "skip")

    def _table(self) -> Table:
        name = self.options.get("table", PARTITION_STATES.name)
        if name not in {one.name for one in self.tables}:
            known = ", ".join(one.name for one in self.tables)
            raise BadInputError(f"{self.name()} has no rows of {name}", next_step=f"option table is one of {known}")
        return TABLES[name]

    @staticmethod
    def planned(files: Sequence[Input], odd: dict[str, str]) -> Iterator[ClusterInputs]:
        """What is read of each cluster; why files are not read goes into `odd`."""
        raise NotImplementedError


class MetadataLogSource(_Clusters):
    """``kafka-metadata-log``: what metadata logs tell. The copies that several nodes have of one are read as one."""

    tables = tuple(one for one in TABLES.values() if one is not LOG_INFO)
    of_logs = True

    @classmethod
    def name(cls) -> str:
        return "kafka-metadata-log"

    @staticmethod
    def planned(files: Sequence[Input], odd: dict[str, str]) -> Iterator[ClusterInputs]:
        logs: dict[str, list[Input]] = defaultdict(list)
        for one in files:
            if one.of_log and one.cluster is not None:
                logs[one.cluster].append(one)
        for cluster, pieces in sorted(logs.items()):
            layout = laid_out(pieces)
            odd.update(layout.reasons)
            if layout.pieces:
                yield ClusterInputs(cluster, layout.pieces)


class SnapshotSource(_Clusters):
    """``kelr-snapshot``: what files of ``kelr snapshot``, and collections of log directories, saw."""

    tables = tuple(one for one in TABLES.values() if one is not ELECTIONS)
    of_logs = False

    @classmethod
    def name(cls) -> str:
        return "kelr-snapshot"

    @staticmethod
    def planned(files: Sequence[Input], odd: dict[str, str]) -> Iterator[ClusterInputs]:
        del odd  # the same file twice is read once
        work = Work()
        plan_seen(files, {}, work)
        seen: dict[str, list[Input]] = defaultdict(list)
        for one in work.seen:
            seen[one.cluster or ""].append(one)
        for cluster, some in sorted(seen.items()):
            yield ClusterInputs(cluster, seen=in_order(some))


class _Task(InputPartition):
    """A cluster's inputs."""

    def __init__(self, inputs: ClusterInputs) -> None:
        super().__init__(inputs.cluster)
        self.inputs = inputs


class _Reader(DataSourceReader):
    def __init__(self, source: type[_Clusters], given: Mapping[str, str], table: Table, *, skips: bool) -> None:
        self._source, self._given, self._table, self._skips = source, given, table.name, skips

    def partitions(self) -> Sequence[InputPartition]:
        places = json.loads(self._given["paths"]) if "paths" in self._given else [self._given.get("path", "")]
        options: Options = tuple((name, value) for name, value in self._given.items() if name.startswith(_OF_STORES))
        open_ = partial(files_at, options=options)
        listing = list_inputs(open_, places, {}, None)
        odd = dict(listing.unread)
        owners, files = Owners(open_, {}), []
        for one in listing.new:
            if is_piece_of_log(one.path) is not self._source.of_logs:
                continue
            looked, error = look(Look(one.path, one.size_bytes, options))
            if looked is None or looked.damaged:
                odd[one.path] = f"it cannot be read: {error}" if looked is None else str(looked.odd)
            if looked is not None:
                found = owners.owned(Input(one.path, one.size_bytes, one.modified_ms, looked.kind, looked=looked))
                cluster = found.cluster or self._given.get("cluster")
                if cluster is None and not looked.damaged:
                    odd[one.path] = "which cluster it is of is not known: name it with the option cluster"
                files.append(replace(found, cluster=cluster))
        planned = list(self._source.planned(files, odd))
        if odd and not self._skips:
            raise self._refused(odd)
        if not planned:
            raise BadInputError(f"{', '.join(places)}: nothing in it is of use", next_step=WHAT)
        return [_Task(replace(one, options=options)) for one in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Task)
        found = read(partition.inputs)
        if found.unreadable and not self._skips:
            raise self._refused(found.unreadable)
        rows = found.rows.of(TABLES[self._table])
        yield from closed(rows) if self._table == PARTITION_STATES.name else rows

    def _refused(self, odd: Mapping[str, str]) -> BadInputError:
        listed = "; ".join(f"{path}: {why}" for path, why in sorted(odd.items())[:_SHOWN])
        more = f"; and {len(odd) - _SHOWN} more" if len(odd) > _SHOWN else ""
        return BadInputError(f"{self._source.name()}: {listed}{more}", next_step="leave it out: option damaged=skip")


__all__ = ["MetadataLogSource", "SnapshotSource", "register"]
