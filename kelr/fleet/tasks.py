"""Tasks for Spark's workers: what each is to read, spread by size; and the place where they leave their rows."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kelr.fleet.inputs import is_local
from kelr.fleet.looking import Looked
from kelr.fleet.staging import STAGE, TABLE, WIDE, staged_schema
from kelr.fleet.worker import STATE, TASK, cut_up, look

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from kelr.fleet.lake import Lake
    from kelr.fleet.laying import Piece
    from kelr.fleet.tables import Table

_SLOTS_PER_CORE, _SOME_CORES = 4, 8
_LOOKED = "path string, looked string, error string"
_CHUNKS = "path string, size long, at long, content binary"
_TASK_ROW = StructType(
    [
        StructField("slot", IntegerType()),
        StructField("task", IntegerType()),
        StructField("kind", StringType()),
        StructField("place", IntegerType()),
        StructField("path", StringType()),
        StructField("from_offset", LongType()),
        StructField("to_offset", LongType()),
        StructField("from_byte", LongType()),
        StructField("to_byte", LongType()),
        StructField("size", LongType()),
        StructField("at", LongType()),
        StructField("content", BinaryType()),
    ]
)
_COLUMNS = [column for column in _TASK_ROW.fieldNames() if column != "slot"]


@dataclass(frozen=True, slots=True)
class Task:
    """What one call of a worker's function does."""

    number: int
    facts: dict[str, Any]
    parts: Sequence[Piece]
    state_of: tuple[str, int] | None = None
    """Cluster and number of the state to begin with."""

    @property
    def size_bytes(self) -> int:
        return sum(part.to_byte - part.from_byte for part in self.parts)


@dataclass(slots=True)
class Tasks:
    """A number of tasks, spread over slots that Spark works on side by side."""

    spark: SparkSession
    tasks: Sequence[Task]
    slots: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.slots = spread({task.number: task.size_bytes for task in self.tasks}, self._most_slots())

    def rows(self, states: DataFrame | None = None) -> DataFrame:
        """What the tasks read, by slot, in order.

        Args:
            states: rows of ``state``, ``place`` and ``content``, by the numbers that tasks name.
        """
        rows = self._given()
        remote = sorted({part.path for task in self.tasks for part in task.parts if not is_local(part.path)})
        if remote:
            rows = rows.where(~fn.col("path").isin(remote)).unionByName(self._chunks_of(rows, remote))
        if states is not None and any(task.state_of for task in self.tasks):
            rows = rows.unionByName(self._with_states(states))
        count = max(self.slots.values(), default=0) + 1
        return rows.repartitionById(count, "slot").sortWithinPartitions("task", "place", "at").select(*_COLUMNS)

    def _given(self) -> DataFrame:
        rows = []
        for task in self.tasks:
            slot = self.slots[task.number]
            rows.append(
                (slot, task.number, TASK, -2, json.dumps({**task.facts, "parts": len(task.parts)}), *[None] * 7)
            )
            rows += [
                (
                    slot,
                    task.number,
                    part.kind,
                    place,
                    part.path,
                    part.from_offset,
                    part.to_offset,
                    part.from_byte,
                    part.to_byte,
                    None,
                    None,
                    None,
                )
                for place, part in enumerate(task.parts)
            ]
        return self.spark.createDataFrame(rows, _TASK_ROW)

    def _chunks_of(self, rows: DataFrame, remote: Sequence[str]) -> DataFrame:
        """Parts of files that workers cannot open, with what Spark reads of them."""
        asked = rows.drop("size", "at", "content").withColumnRenamed("path", "asked")
        chunks = as_chunks(self.spark, remote)
        wanted = (fn.col("path") == fn.col("asked")) & (
            (fn.col("at") < fn.col("to_byte")) & (fn.col("at") + fn.octet_length("content") > fn.col("from_byte"))
        )
        return chunks.join(fn.broadcast(asked), wanted).select(*_TASK_ROW.fieldNames())

    def _with_states(self, states: DataFrame) -> DataFrame:
        asked = [(self.slots[task.number], task.number, *task.state_of) for task in self.tasks if task.state_of]
        named = self.spark.createDataFrame(asked, "slot int, task int, cluster string, state int")
        nothing = {name: fn.lit(None) for name in ("path", "from_offset", "to_offset", "from_byte", "to_byte", "size")}
        # By name, too: a join alone reads the states of every cluster of the lake.
        wanted = fn.col("cluster").isin(sorted({cluster for _, _, cluster, _ in asked}))
        return (
            states.where(wanted)
            .join(fn.broadcast(named), ["cluster", "state"])
            .withColumns({"kind": fn.lit(STATE), "at": fn.col("place").cast("long"), **nothing})
            .withColumn("place", fn.lit(-1))
            .select(*(fn.col(one.name).cast(one.dataType) for one in _TASK_ROW.fields))
        )

    def _most_slots(self) -> int:
        return _cores(self.spark) * _SLOTS_PER_CORE


def _cores(spark: SparkSession) -> int:
    """How much Spark does side by side; a Spark Connect client is not told, and takes some."""
    context = getattr(spark, "_sc", None)
    return _SOME_CORES if context is None else max(1, context.defaultParallelism)


def spread(sizes: dict[int, int], most: int) -> dict[int, int]:
    """Tasks to slots, so that no slot has much more to do than others; the first slots have the most."""
    count = max(1, min(len(sizes), most))
    heap = [(0, slot) for slot in range(count)]
    slots: dict[int, int] = {}
    for task in sorted(sizes, key=lambda task: (-sizes[task], task)):
        load, slot = heapq.heappop(heap)
        slots[task] = slot
        # A task costs something even where it reads nothing.
        heapq.heappush(heap, (load + sizes[task] + 1, slot))
    return slots


def look_at_all(spark: SparkSession, paths: Sequence[str]) -> Iterator[tuple[str, Looked | None, str | None]]:
    """(path, what was found, why it could not be read) of each file, looked at by Spark's workers."""
    local = [path for path in paths if is_local(path)]
    remote = [path for path in paths if not is_local(path)]
    if local:
        count = min(len(local), _cores(spark) * _SLOTS_PER_CORE)
        rows = spark.createDataFrame([(path, None) for path in local], "path string, content binary")
        yield from _found(rows.repartition(count).mapInArrow(look, _LOOKED))
    if remote:
        seen = set()
        for found in _found(_binary(spark, remote).select("path", "content").mapInArrow(look, _LOOKED)):
            seen.add(found[0])
            yield found
        yield from ((path, None, "it is gone") for path in remote if path not in seen)


def _found(rows: DataFrame) -> Iterator[tuple[str, Looked | None, str | None]]:
    for row in rows.toLocalIterator():
        yield row["path"], None if row["looked"] is None else Looked.read(row["looked"]), row["error"]


def _binary(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Files that only Spark reaches, whole: none of them has more than 2 GiB."""
    return spark.read.format("binaryFile").option("ignoreMissingFiles", "true").load(list(paths))


def as_chunks(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Files that only Spark reaches, in chunks."""
    return _binary(spark, paths).select("path", "content").mapInArrow(cut_up, _CHUNKS)


class Stage:
    """Where the rows of one run stand until they belong to the lake."""

    def __init__(self, lake: Lake, run: str) -> None:
        self._lake, self._spark = lake, lake.spark
        self._below = f"{STAGE}/{run}"
        self._place = f"{lake.place.rstrip('/')}/{self._below}"

    def fill(
        self, name: str, rows: DataFrame, work: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
    ) -> None:
        """Let workers do their tasks, and keep what they write."""
        told = rows.mapInArrow(work, WIDE)
        told.write.partitionBy(TABLE).parquet(f"{self._place}/{name}")

    def read(self, name: str, table: Table, without: Iterable[int] = ()) -> DataFrame:
        """The rows of a table.

        Args:
            without: tasks whose rows are left out, because they failed.
        """
        schema = staged_schema(table)
        below = f"{self._below}/{name}/{TABLE}={table.name}"
        if not any(True for _ in self._lake.files.list(below)):
            return self._spark.createDataFrame([], schema)
        rows = self._spark.read.schema(schema).parquet(f"{self._place}/{name}/{TABLE}={table.name}")
        left_out = sorted(without)
        return rows.where(~fn.col("_task").isin(left_out)) if left_out else rows

    def clear(self) -> None:
        """Delete them."""
        self._lake.files.delete_below(self._below)
