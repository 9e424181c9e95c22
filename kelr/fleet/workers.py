"""Who does the work on inputs: processes of this machine, or Spark's workers; the same functions either way."""

from __future__ import annotations

import heapq
import os
import pickle
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kelr.errors import KelrError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import pyarrow as pa
    from pyspark.sql import SparkSession

_SLOTS_PER_CORE, _SOME_CORES = 4, 8
_WORTH_A_PROCESS_BYTES = 8 * 1024 * 1024
"""A process takes a second to start; less than this is done sooner here."""


class Task(Protocol):
    """What is to be done, as a value that can be pickled."""

    @property
    def size_bytes(self) -> int:
        """Of what has to be read for it."""


T = TypeVar("T", bound=Task)
R = TypeVar("R")


class Workers(Protocol):
    """Those who do tasks side by side."""

    def do(self, work: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Do all tasks; what came of each, in their order.

        Args:
            work: a function of a module, which workers import.
        """


class SparkWorkers:
    """Spark's workers; what they return comes to the driver."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def do(self, work: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        import pyarrow as pa  # noqa: PLC0415 - of an extra

        if not tasks:
            return []
        slots = spread({number: task.size_bytes for number, task in enumerate(tasks)}, self._most_slots())
        rows = pa.table(
            {
                "slot": pa.array([slots[number] for number in range(len(tasks))], pa.int32()),
                "content": pa.array([pickle.dumps((number, task)) for number, task in enumerate(tasks)]),
            }
        )
        given = self._spark.createDataFrame(rows).repartitionById(max(slots.values()) + 1, "slot").select("content")
        done = given.mapInArrow(partial(_work, work), "content binary").collect()
        return [found for _, found in sorted((pickle.loads(row["content"]) for row in done), key=_number)]

    def _most_slots(self) -> int:
        """How much Spark does side by side; a Spark Connect client is not told, and takes some."""
        context = getattr(self._spark, "_sc", None)
        return (_SOME_CORES if context is None else max(1, context.defaultParallelism)) * _SLOTS_PER_CORE


def _work(work: Callable[[Any], Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa  # noqa: PLC0415 - as above

    for batch in batches:
        for content in batch.column(0):
            number, task = pickle.loads(content.as_py())
            yield pa.record_batch({"content": pa.array([pickle.dumps((number, work(task)))], pa.binary())})


def _number(found: tuple[int, Any]) -> int:
    return found[0]


def spread(sizes: Mapping[int, int], most: int) -> dict[int, int]:
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


class LocalWorkers:
    """Processes of this machine, which do not outlive this one; what is little is done here. Use it in a with block.

    Args:
        most: how many processes there may be.
        told: told of the tasks done and the tasks there are.
    """

    def __init__(self, most: int | None = None, told: Callable[[int, int], None] | None = None) -> None:
        self.most = most or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        self._told = told or (lambda _done, _all: None)
        self._pool: ProcessPoolExecutor | None = None
        self._here: Connection | None = None
        """While this end is open, the processes live."""

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._pool is not None and self._here is not None:
            if kind is not None:
                self._here.close()
            self._pool.shutdown(cancel_futures=True)
            self._here.close()

    def do(self, work: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """As `Workers`. Raises KelrError: a process was ended."""
        if len(tasks) < 2 or self.most < 2 or sum(task.size_bytes for task in tasks) < _WORTH_A_PROCESS_BYTES:
            found = []
            for task in tasks:
                found.append(work(task))
                self._told(len(found), len(tasks))
            return found
        pool = self._started()
        # The largest first: nobody waits for it in the end.
        order = sorted(range(len(tasks)), key=lambda number: -tasks[number].size_bytes)
        futures: dict[int, Future[R]] = {number: pool.submit(work, tasks[number]) for number in order}
        left = set(futures.values())
        while left:
            _, left = wait(left, timeout=_TOLD_EVERY_S)
            self._told(len(futures) - len(left), len(futures))
        try:
            return [futures[number].result() for number in range(len(tasks))]
        except BrokenProcessPool as error:
            raise KelrError(
                f"one of {self.most} processes was ended by somebody, or for want of memory",
                next_step="try it on one processor: taskset --cpu-list 0 kelr ...",
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("spawn")
            there, self._here = context.Pipe(duplex=False)
            self._pool = ProcessPoolExecutor(self.most, context, _begin, (there,))
        return self._pool


_TOLD_EVERY_S = 0.2


def _begin(there: Connection) -> None:
    """A process: an interrupt is its parent's matter, and it ends when that does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        try:
            there.recv()
        except EOFError:
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def workers_of(
    spark: SparkSession | None, told: Callable[[int, int], None] | None = None
) -> AbstractContextManager[Workers]:
    """Spark's workers where they are on other machines; else processes, which need no JVM."""
    if spark is None:
        return LocalWorkers(told=told)
    context = getattr(spark, "_sc", None)
    if context is not None and re.match(r"local($|\[)", context.master or "") is not None:
        return LocalWorkers(context.defaultParallelism, told)
    return nullcontext(SparkWorkers(spark))
