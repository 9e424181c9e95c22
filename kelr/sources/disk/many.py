"""Many replicas one after the other: by one thread, by several, or by several processes, whichever is quickest.

What lies in memory costs computing, which several processes share; what has to come from a cold disk costs waiting,
which threads share. The first replicas tell which of the two it is.
"""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kelr.model import LogUnavailable, LogUnavailableReason, TopicPartition
from kelr.sources.disk.collection import SOURCE, DiskLog
from kelr.sources.disk.partition import Circumstances, PartitionDirectory

BATCH = 64
"""Replicas that a worker reads at a time."""
WAITS_S = 0.001
"""Seconds for one replica from which on the time goes into waiting for the disk, or into checksums: what lies in memory
takes a tenth of it, and is read faster by one thread than by several that share the interpreter."""
FOR_PROCESSES = 10_000
"""Replicas from which on processes are worth their start: about a second of reading."""
_THREADS = min(8, 2 * (os.cpu_count() or 1))
"""More than there are cores: reading a cold disk is waiting."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica to be read."""

    path: str
    address: TopicPartition
    around: Circumstances


def read_replicas(replicas: Sequence[Replica], clock_ms: Callable[[], int]) -> Generator[DiskLog, None, None]:
    """The logs in the order of the replicas; what cannot be read is a value that says so."""
    first, rest = replicas[:BATCH], replicas[BATCH:]
    began, waited = time.perf_counter(), _waits()
    for replica in first:
        yield read_replica(replica, clock_ms)
    if not rest:
        return
    parts = [rest[at : at + BATCH] for at in range(0, len(rest), BATCH)]
    slow = time.perf_counter() - began >= WAITS_S * BATCH
    for_processes = len(rest) >= FOR_PROCESSES and cores() > 1
    if slow and not (for_processes and _waits() - waited < BATCH / 2):
        yield from _by_threads(parts, clock_ms)
    elif for_processes:
        from kelr.sources.disk.processes import by_processes  # noqa: PLC0415 - only where there are many

        yield from by_processes(parts, clock_ms, workers=cores())
    else:
        for replica in rest:
            yield read_replica(replica, clock_ms)


def _by_threads(parts: Sequence[Sequence[Replica]], clock_ms: Callable[[], int]) -> Iterator[DiskLog]:
    pool = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="kelr-disk")
    try:
        for logs in pool.map(lambda part: [read_replica(replica, clock_ms) for replica in part], parts):
            yield from logs
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # a disk that hangs is not waited for


def read_replica(replica: Replica, clock_ms: Callable[[], int]) -> DiskLog:
    """One replica's log, or why it cannot be read."""
    try:
        return PartitionDirectory(replica.path, replica.address).read(replica.around, clock_ms())
    except OSError as error:
        detail = f"{SOURCE}: {error.filename or replica.path}: {error.strerror or error}"
        why = LogUnavailableReason.ERROR if isinstance(error, PermissionError) else LogUnavailableReason.STORAGE_ERROR
        answer = LogUnavailable(replica.around.broker, why, detail, clock_ms())
        return DiskLog(replica.address, None, answer, replica.path)


def _waits() -> float:
    """How often this thread has given up its processor to wait for something, such as a disk; not a number where the
    system does not tell, which compares as waiting. On a machine that is busy with other things a processor is taken
    away, which is not counted: time alone would look like waiting."""
    of_thread = getattr(resource, "RUSAGE_THREAD", None)
    return math.nan if of_thread is None else resource.getrusage(of_thread).ru_nvcsw


def cores() -> int:
    """How many processors this process may use; at most eight, which one process that gathers can keep busy."""
    try:
        found = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):  # no such question on this system
        found = os.cpu_count() or 1
    return min(8, found)
