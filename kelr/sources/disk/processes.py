"""Reading replicas by several processes.

Each worker is this interpreter, started anew: a fork would take along locks that threads of this process hold, and
`multiprocessing` would run a caller's script again. It is told on its stdin what to read, and answers on its stdout,
both in `marshal`, which one interpreter writes and reads fastest. What a worker that ends early has not told is read
here.
"""

from __future__ import annotations

import contextlib
import marshal
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

from kelr.model import EpochEnd, LogUnavailable, LogUnavailableReason, ReplicaLog, TopicPartition
from kelr.sources.disk.collection import SOURCE, DiskLog
from kelr.sources.disk.partition import Checkpoints, Circumstances, PartitionDirectory

_START = (
    "import marshal, sys; sys.path[:] = marshal.load(sys.stdin.buffer);"
    " from kelr.sources.disk.processes import work; work()"
)
_ENDS_S = 5.0

Told = tuple[Any, ...]
"""A replica to be read, or its log, as `marshal` takes it."""


def by_processes(parts: Sequence[Sequence[Replica]], clock_ms: Callable[[], int], *, workers: int) -> Iterator[DiskLog]:
    """The logs in the order of the replicas. All are said to be of the time when the workers began.

    Args:
        parts: a worker reads one of them after the other.
    """
    workers = min(workers, len(parts))
    began_ms = clock_ms()
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_Worker(parts[number::workers], began_ms)) for number in range(workers)]
        for worker in running:
            worker.begin()
        for number, part in enumerate(parts):
            told = running[number % workers].next()
            if told is None or len(told) != len(part):
                yield from (read_replica(replica, clock_ms) for replica in part)
            else:
                for replica, log in zip(part, told, strict=True):
                    yield _log_of(replica, log, began_ms)


class _Worker:
    """One process with its parts, ended when this is left."""

    def __init__(self, parts: Sequence[Sequence[Replica]], began_ms: int) -> None:
        self._parts = parts
        self._began_ms = began_ms
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> _Worker:
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                # Ctrl-C is for the process that reads its answers.
                start_new_session=True,
            )
        except (OSError, ValueError):
            self._process = None
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def begin(self) -> None:
        """Tell it what to read; apart from its start, so that all start at once."""
        if self._process is None:
            return
        try:
            assert self._process.stdin is not None
            with self._process.stdin as to:
                marshal.dump(sys.path, to)
                marshal.dump(_task(self._parts, self._began_ms), to)
        except (OSError, ValueError):
            self._end()

    def next(self) -> Sequence[Told] | None:
        """The logs of its next part; None where the worker has ended."""
        if self._process is None:
            return None
        try:
            assert self._process.stdout is not None
            told: Sequence[Told] = marshal.load(self._process.stdout)
        except (OSError, EOFError, ValueError, TypeError):
            self._end()
            return None
        return told

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_ENDS_S)


# In the worker.


def work() -> None:
    """Read what stdin names and tell stdout, part by part: what a worker does."""
    # Who reads the answers has gone.
    with contextlib.suppress(BrokenPipeError):
        _work(sys.stdin.buffer, sys.stdout.buffer)


def _work(told: IO[bytes], to: IO[bytes]) -> None:
    places, parts, began_ms = marshal.load(told)
    for part in parts:
        logs = [_told_of(read_replica(_replica(places, one), lambda: began_ms)) for one in part]
        marshal.dump(logs, to)
        to.flush()


# Both ways: replicas and logs as plain tuples.


def _task(parts: Sequence[Sequence[Replica]], began_ms: int) -> Told:
    """(what replicas have in common, the parts, the time)."""
    places: dict[int, tuple[int, Told]] = {}
    for part in parts:
        for replica in part:
            around = replica.around
            if id(around) not in places:
                places[id(around)] = len(places), _place(around)
    told = [[_to_read(replica, places[id(replica.around)][0]) for replica in part] for part in parts]
    return [place for _, place in places.values()], told, began_ms


def _place(around: Circumstances) -> Told:
    known = around.checkpoints
    return (
        around.broker,
        around.clean_shutdown,
        around.broker_epoch,
        around.checksums,
        around.lineage,
        *(checkpoint is not None for checkpoint in (known.high_watermarks, known.log_starts, known.recovery_points)),
    )


def _to_read(replica: Replica, place: int) -> Told:
    known, at = replica.around.checkpoints, replica.address
    saved = (known.high_watermarks, known.log_starts, known.recovery_points)
    return place, replica.path, at.topic, at.partition, *(None if one is None else one.get(at) for one in saved)


def _replica(places: Sequence[Told], told: Told) -> Replica:
    place, path, topic, partition, *saved = told
    broker, clean, broker_epoch, checksums, lineage, *known = places[place]
    at = TopicPartition(topic, partition)
    offsets: list[Mapping[TopicPartition, int] | None] = [
        None if not there else {} if offset is None else {at: offset}
        for there, offset in zip(known, saved, strict=True)
    ]
    return Replica(path, at, Circumstances(broker, clean, broker_epoch, Checkpoints(*offsets), checksums, lineage))


def _told_of(log: DiskLog) -> Told:
    answer = log.answer
    if isinstance(answer, LogUnavailable):
        said: Told = (str(answer.reason), answer.detail)
    else:
        lineage = answer.lineage
        said = (
            answer.log_end,
            answer.last_epoch,
            answer.high_watermark,
            answer.log_start,
            answer.start_by_name,
            None if lineage is None else tuple((one.epoch, one.end_offset) for one in lineage),
            answer.broker_epoch,
            answer.local_start,
            answer.cut_off,
            answer.holes,
        )
    return said, log.topic_id, log.notes, log.bytes_behind, log.newest_epoch, log.saved_high_watermark


def _log_of(replica: Replica, told: Told, read_at_ms: int) -> DiskLog:
    said, topic_id, notes, bytes_behind, newest_epoch, saved = told
    broker = replica.around.broker
    if len(said) == 2:
        answer: ReplicaLog | LogUnavailable = LogUnavailable(broker, LogUnavailableReason(said[0]), said[1], read_at_ms)
    else:
        log_end, last_epoch, high_watermark, log_start, by_name, lineage, *rest = said
        broker_epoch, local_start, cut_off, holes = rest
        answer = ReplicaLog(
            replica=broker,
            log_end=log_end,
            last_epoch=last_epoch,
            high_watermark=high_watermark,
            log_start=log_start,
            start_by_name=by_name,
            lineage=None if lineage is None else tuple(EpochEnd(epoch, end) for epoch, end in lineage),
            broker_epoch=broker_epoch,
            source=SOURCE,
            read_at_ms=read_at_ms,
            local_start=local_start,
            cut_off=cut_off,
            holes=holes,
        )
    return DiskLog(replica.address, topic_id, answer, replica.path, notes, bytes_behind, newest_epoch, saved)


# Many replicas one after the other: by one thread, by several, or by several processes, whichever is quickest.
#
# What lies in memory costs computing, which several processes share; what has to come from a cold disk costs waiting,
# which threads share. The first replicas tell which of the two it is.


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
