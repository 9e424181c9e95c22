"""Reads all of a broker's log directories: every replica on them, with what surrounds it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from kelr.engine.words import joined
from kelr.errors import BadInputError, UsageError
from kelr.model import LogUnavailable, LogUnavailableReason, ReplicaLog, Selection, TopicPartition
from kelr.sources.base import Progress
from kelr.sources.disk.collection import (
    SOURCE,
    Counts,
    DiskCollection,
    DiskLog,
    LogDirectory,
    Unused,
    surely_unclean,
)
from kelr.sources.disk.files import (
    NO_BROKER_EPOCH,
    GarbledError,
    is_locked,
    read_clean_shutdown,
    read_meta_properties,
    read_offsets,
)
from kelr.sources.disk.names import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    METADATA_TOPIC,
    RECOVERY_POINTS,
    Kind,
    printable,
    replica_name,
    stops_kafka,
)
from kelr.sources.disk.partition import Checkpoints, Circumstances
from kelr.sources.disk.processes import Replica, read_replicas

_SHOWN = 5


@dataclass(slots=True)
class _Found:
    """What the log directories of one broker hold, before the logs are read."""

    directories: list[LogDirectory] = field(default_factory=list)
    replicas: list[Replica] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def read_log_directories(
    paths: Sequence[Path],
    *,
    selection: Selection | None = None,
    lineage: bool = True,
    checksums: bool = True,
    broker: int | None = None,
    progress: Progress | None = None,
    clock_ms: Callable[[], int],
) -> DiskCollection:
    """What one broker's disks hold, whether it runs or not. Nothing is changed, created or locked.

    Args:
        paths: its log directories (log.dirs), best all of them, or directories of single replicas (``orders-3``).
        selection: which partitions; None: all. The metadata log is left out.
        lineage: whether each log is to tell all of its leader epochs.
        checksums: whether the bytes of batches are checked as Kafka checks them after an unclean shutdown: whole
            segments are read then. Without, only a batch that is torn ends a log.
        broker: whose directories these are, where no meta.properties tells (a directory that was copied).
        progress: told of (replicas read, replicas there).
        clock_ms: the time in milliseconds since 1970 UTC.

    Raises:
        UsageError: a path is no directory, or the directories are not one broker's.
        BadInputError: no directory tells whose it is.
    """
    started_ms = clock_ms()
    known = [_directory(path) for path in _each_once(paths)]
    if not known:
        raise UsageError("no log directory was named", next_step="name the broker's log directories (log.dirs)")
    owner, cluster_id = _one_broker(known, broker)
    found = _Found()
    for directory in known:
        _list(replace(directory, broker=owner), selection, found, lineage=lineage, checksums=checksums)
    logs, twice = _read(found.replicas, progress, clock_ms)
    warnings = [*found.warnings, *twice, *_about_the_shutdown(found.directories)]
    return DiskCollection(
        broker=owner,
        cluster_id=cluster_id,
        read_at_ms=started_ms,
        directories=tuple(found.directories),
        logs=logs,
        unused=tuple(sorted(found.unused, key=lambda one: (one.address, one.path))),
        warnings=tuple(warnings),
        counts=_count(logs.values(), found.unused),
        selection=selection,
    )


def read_brokers(
    paths: Sequence[Path],
    *,
    selection: Selection | None = None,
    lineage: bool = True,
    checksums: bool = True,
    progress: Progress | None = None,
    clock_ms: Callable[[], int],
) -> tuple[DiskCollection, ...]:
    """`read_log_directories` for directories of several brokers, by broker id; those that tell no broker are refused
    beside others.

    Raises: as there.
    """
    owners: dict[int | None, list[Path]] = {}
    for path in paths:
        owners.setdefault(_directory(path).broker, []).append(path)
    unknown = owners.pop(None, [])
    if unknown and len(owners) != 1:
        raise _whose(unknown)
    return tuple(
        read_log_directories(
            [*owners[owner], *unknown],
            selection=selection,
            lineage=lineage,
            checksums=checksums,
            progress=progress,
            clock_ms=clock_ms,
        )
        for owner in sorted(owner for owner in owners if owner is not None)
    )


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """The directories without those that are named twice, by whatever names, and without replicas of the others."""
    by_place = {path.resolve(): path for path in reversed(list(paths))}
    first_named = {place: by_place[place] for place in (path.resolve() for path in paths)}
    return [path for place, path in first_named.items() if place.parent not in first_named or not _is_replica(path)]


def _directory(path: Path) -> LogDirectory:
    """What a log directory says of itself."""
    if not path.is_dir():
        try:
            path.stat()
        except PermissionError as error:
            return LogDirectory(str(path), error=error.strerror)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}", next_step=_NAME_DIRECTORIES) from error
        raise UsageError(f"{path} is not a directory", next_step=_NAME_DIRECTORIES)
    single = _is_replica(path)
    place = path.resolve().parent if single else path
    try:
        meta = read_meta_properties(place)
        clean = read_clean_shutdown(place)
        os.listdir(path)
    except (OSError, GarbledError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return LogDirectory(str(path), single_replica=single, error=why or str(error))
    return LogDirectory(
        path=str(path),
        cluster_id=meta.cluster_id if meta else None,
        broker=meta.broker if meta else None,
        directory_id=meta.directory_id if meta else None,
        clean_shutdown=clean is not None,
        broker_epoch=clean.broker_epoch if clean else None,
        running=_runs(place),
        single_replica=single,
    )


_DYING_S = 3.0
"""A broker that was killed holds its lock until its last thread has ended: a second or two on a busy machine."""
_LOOK_AGAIN_S = 0.1


def _runs(place: Path) -> bool | None:
    """Whether a broker runs on this directory; one that has just been killed is given time to be gone."""
    deadline = time.monotonic() + _DYING_S
    while (locked := is_locked(place)) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_S)
    return locked


_NAME_DIRECTORIES = "name the broker's log directories: log.dirs in its server.properties"


def _is_replica(path: Path) -> bool:
    """Whether this is the directory of one replica: named like one, and with segments."""
    if replica_name(path.resolve().name) is None:
        return False
    try:
        return any(name.endswith(".log") for name in os.listdir(path))
    except OSError:
        return False


def _one_broker(directories: Sequence[LogDirectory], named: int | None) -> tuple[int, str | None]:
    brokers = sorted({one.broker for one in directories if one.broker is not None})
    clusters = sorted({one.cluster_id for one in directories if one.cluster_id is not None})
    if len(brokers) > 1 or (named is not None and brokers and brokers != [named]):
        said = ", ".join(f"{one.path} is of broker {one.broker}" for one in directories if one.broker is not None)
        raise UsageError(
            f"these are not the log directories of {'one broker' if named is None else f'broker {named}'}: {said}",
            next_step="read each broker's directories for themselves",
            code="log-directories-differ",
        )
    if len(clusters) > 1:
        said = ", ".join(f"{one.path} is of cluster {one.cluster_id}" for one in directories if one.cluster_id)
        raise UsageError(
            f"these are not directories of one cluster: {said}",
            next_step=_NAME_DIRECTORIES,
            code="log-directories-differ",
        )
    owner = brokers[0] if brokers else named
    if owner is None:
        raise _whose([Path(one.path) for one in directories])
    return owner, clusters[0] if clusters else None


def _whose(paths: Iterable[Path]) -> BadInputError:
    where = ", ".join(str(path) for path in paths)
    return BadInputError(
        f"{where}: no meta.properties tells which broker's log directory this is",
        next_step="name the log directory itself (log.dirs), copy its meta.properties with it, or give the broker's id",
        code="not-a-log-directory",
    )


def _list(
    directory: LogDirectory, selection: Selection | None, found: _Found, *, lineage: bool, checksums: bool
) -> None:
    """Add what is in a log directory, without reading any log."""
    path, place = directory.path, Path(directory.path)
    if directory.error is None and directory.single_replica:
        place = place.resolve()
    try:
        names = _replica_directories(place, directory, found.warnings) if directory.error is None else ()
    except OSError as error:
        directory, names = replace(directory, error=error.strerror or str(error)), ()
    found.directories.append(directory)
    if directory.error is not None:
        found.warnings.append(f"{path} could not be read ({directory.error}): any replica may be in it")
        return
    around = Circumstances(
        broker=directory.broker or 0,
        clean_shutdown=bool(directory.clean_shutdown),
        broker_epoch=None if directory.broker_epoch == NO_BROKER_EPOCH else directory.broker_epoch,
        checkpoints=_checkpoints(place.parent if directory.single_replica else place, directory, found.warnings),
        checksums=checksums,
        lineage=lineage,
    )
    for name, at in names:
        one = replica_name(name)
        if one is None or one.address.topic == METADATA_TOPIC:
            continue
        if selection is not None and not selection.matches(one.address.topic, one.address.partition):
            continue
        if one.kind is Kind.CURRENT:
            found.replicas.append(Replica(at, one.address, around))
        else:
            found.unused.append(Unused(one.address, one.kind, at))


def _replica_directories(place: Path, directory: LogDirectory, warnings: list[str]) -> Sequence[tuple[str, str]]:
    """(name, path) of each directory inside, by name. Raises OSError."""
    if directory.single_replica:
        return [(place.name, directory.path)]
    with os.scandir(place) as entries:
        inside = sorted(entry.name for entry in entries if entry.is_dir())
    odd = [printable(name) for name in inside if stops_kafka(name)]
    if odd:
        warnings.append(
            f"{directory.path} holds {_some(odd)}, which is no replica's directory: Kafka does not start while that is"
            " there"
        )
    return [(name, f"{directory.path}/{name}") for name in inside]


def _checkpoints(place: Path, directory: LogDirectory, warnings: list[str]) -> Checkpoints:
    """What the checkpoints of a log directory say. Kafka starts without recovery points and log starts that it cannot
    read, and takes the directory offline for high watermarks that it cannot read."""
    high_watermarks, recovery_points = place / HIGH_WATERMARKS, place / RECOVERY_POINTS
    return Checkpoints(
        high_watermarks=_offsets(
            high_watermarks, directory, warnings, "high watermarks are not known, and Kafka takes the directory offline"
        ),
        log_starts=_offsets(place / LOG_STARTS, directory, warnings, "logs start where their first segment does"),
        recovery_points=_offsets(recovery_points, directory, warnings, "Kafka recovers every log from its start"),
    )


def _offsets(
    path: Path, directory: LogDirectory, warnings: list[str], otherwise: str
) -> Mapping[TopicPartition, int] | None:
    try:
        return read_offsets(str(path))
    except FileNotFoundError:
        # Kafka makes an empty one. Beside a replica that was copied on its own there is none to be had.
        return None if directory.single_replica else {}
    except (OSError, GarbledError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        warnings.append(f"{path} cannot be read ({why}): {otherwise}")
        return None


def _read(
    replicas: Sequence[Replica], progress: Progress | None, clock_ms: Callable[[], int]
) -> tuple[Mapping[TopicPartition, DiskLog], Sequence[str]]:
    """The logs by address, and what is to be said of replicas that are there twice."""
    logs: dict[TopicPartition, DiskLog] = {}
    twice: list[str] = []
    # Closed at once, whatever ends this: processes may be at work.
    with closing(read_replicas(replicas, clock_ms)) as found:
        for done, log in enumerate(found, 1):
            other = logs.get(log.address)
            if other is not None:
                twice.append(f"{log.address} is in two log directories, {other.directory} and {log.directory}")
                log = _both(other, log)  # noqa: PLW2901 - neither of the two counts
            logs[log.address] = log
            if progress is not None:
                progress(done, len(replicas))
    return {address: logs[address] for address in sorted(logs)}, twice


def _both(one: DiskLog, other: DiskLog) -> DiskLog:
    """A replica that is in two log directories: Kafka does not start with it, and which of the two counts is not known
    (`LogManager.loadLog`)."""
    copies = (*(one.copies or (one,)), other)
    where = joined(copy.directory for copy in copies)
    number = "two" if len(copies) == 2 else len(copies)
    detail = f"{SOURCE}: it is in {number} log directories, {where}: Kafka does not start"
    answer = LogUnavailable(one.answer.replica, LogUnavailableReason.ERROR, detail, one.answer.read_at_ms)
    return DiskLog(one.address, None, answer, one.directory, (*one.notes, *other.notes), copies=copies)


def _about_the_shutdown(directories: Sequence[LogDirectory]) -> Iterator[str]:
    running = [one.path for one in directories if one.running]
    if running:
        yield (f"a broker runs on {_some(running)}: logs are read as they grow, and after a crash they may end earlier")
    own = [one for one in directories if not one.single_replica]
    marks = {one.clean_shutdown for one in own if one.clean_shutdown is not None}
    if len(marks) > 1:
        without = [one.path for one in own if one.clean_shutdown is False]
        yield f"{_some(without)} lacks the mark of a clean shutdown that others carry: the shutdown counts as unclean"
    marked = [one for one in own if one.clean_shutdown]
    if marked and surely_unclean(marked):
        epochs = joined(
            f"{'none' if one.broker_epoch is None else one.broker_epoch} in {one.path}" for one in marked[:_SHOWN]
        )
        yield f"by the broker epochs in its marks of a clean shutdown ({epochs}) the shutdown counts as unclean"


def _count(logs: Iterable[DiskLog], unused: Sequence[Unused]) -> Counts:
    heard = [isinstance(log.answer, ReplicaLog) for log in logs]
    kinds = [one.kind for one in unused]
    return Counts(
        read=sum(heard),
        unreadable=len(heard) - sum(heard),
        future=kinds.count(Kind.FUTURE),
        deleted=kinds.count(Kind.DELETED),
        stray=kinds.count(Kind.STRAY),
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
