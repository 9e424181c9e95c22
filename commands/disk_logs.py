"""Brokers' log directories beside a cluster or without one: what `log-info` and `snapshot` do with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.session import Session, now_ms
from kelr.errors import ConnectError, PartlyDoneError
from kelr.model import LogAnswer, LogUnavailable, ReplicaLog, Selection

if TYPE_CHECKING:
    from kelr.engine import KnownLogs
    from kelr.sources.base import Source
    from kelr.sources.disk import DiskCollection, DiskLog
    from kelr.view.disk_logs import DiskRow, ShownDisk

LogDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--log-dir",
        metavar="DIR",
        help="A log directory of a broker that is down, on this machine. Can be repeated, also for several brokers.",
    ),
]
LogFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--logs", metavar="FILE", help="What was read from a disk elsewhere: a collection file. Can be repeated."
    ),
]


@dataclass(frozen=True, slots=True)
class WithDisks:
    """A source that knows the disks, what is to be said of them, and the disks that were read here."""

    source: Source
    warnings: tuple[str, ...] = ()
    disks: tuple[ShownDisk, ...] = ()


def names_cluster(session: Session) -> bool:
    """Whether anything says which cluster, snapshot or metadata log to ask."""
    settings = session.settings
    return any((settings.saved, settings.bootstrap_server, settings.command_config))


def silence_of_cluster(session: Session) -> ConnectError | None:
    """Why the cluster that is named cannot be asked; None where it can, or where something saved is asked instead."""
    if session.settings.saved is not None:
        return None
    try:
        session.source().cluster()
    except ConnectError as error:
        return error
    return None


def only_disks_read(error: ConnectError) -> PartlyDoneError:
    """What ends a command that showed, or saved, what disks hold and was to ask a cluster too."""
    return PartlyDoneError(
        f"only disks were read, as the cluster could not be asked: {error.message}",
        next_step=error.next_step,
        code=error.code if error.is_specific else None,
    )


def read_disks(session: Session, directories: Sequence[Path], selection: Selection) -> tuple[DiskCollection, ...]:
    """What the brokers' directories hold, by broker. Nothing is written there.

    Raises:
        UsageError, BadInputError: a path is no log directory, or tells no broker.
        RefusedError: they are of different clusters.
    """
    from kelr.sources.collected import collection_of_disk  # noqa: PLC0415 - only where there are disks
    from kelr.sources.disk import read_brokers  # noqa: PLC0415
    from kelr.sources.snapshot_collection import one_cluster  # noqa: PLC0415

    with session.progress("replicas read") as progress:
        disks = read_brokers(
            directories,
            selection=None if selection.is_everything else selection,
            progress=progress,
            clock_ms=now_ms,
        )
    one_cluster([collection_of_disk(disk) for disk in disks])
    return disks


def with_disks(session: Session, directories: Sequence[Path], files: Sequence[Path], selection: Selection) -> WithDisks:
    """The session's source, which these disks and collections stand in for where brokers do not answer.

    Next commands repeat ``--logs``, where they take it.

    Raises: as `read_disks`; BadInputError where a file is no collection; RefusedError where it is of another cluster.
    """
    source = session.source()
    if not directories and not files:
        return WithDisks(source)
    from kelr.sources.collected import CollectedSource, collection_of_disk, read_collection  # noqa: PLC0415

    disks = read_disks(session, directories, selection) if directories else ()
    collections = [*map(collection_of_disk, disks), *map(read_collection, files)]
    collected = CollectedSource(source, collections)
    collected.cluster()  # another cluster's disks are refused before anything is shown
    session.output = replace(session.output, log_flags=tuple(part for path in files for part in ("--logs", str(path))))
    return WithDisks(collected, collected.warnings, tuple(map(shown_disk, disks)))


def shown_disk(disk: DiskCollection) -> ShownDisk:
    """How a broker's directories were left."""
    from kelr.sources.disk.names import printable  # noqa: PLC0415
    from kelr.view.disk_logs import ShownDirectory, ShownDisk, UnusedReplica  # noqa: PLC0415

    return ShownDisk(
        broker=disk.broker,
        cluster_id=disk.cluster_id,
        read_at_ms=disk.read_at_ms,
        running=disk.running,
        clean_shutdown=disk.clean_shutdown,
        broker_epoch=disk.broker_epoch,
        logs=disk.counts.read,
        unreadable=disk.counts.unreadable,
        directories=tuple(
            ShownDirectory(
                path=printable(one.path),
                directory_id=one.directory_id,
                clean_shutdown=one.clean_shutdown,
                broker_epoch=one.broker_epoch,
                running=one.running,
                single_replica=one.single_replica,
                error=one.error,
            )
            for one in disk.directories
        ),
        unused=tuple(UnusedReplica(one.address, str(one.kind), printable(one.path)) for one in disk.unused),
        warnings=tuple(map(printable, disk.warnings)),
    )


def show_disk_logs(
    session: Session,
    directories: Sequence[Path],
    selection: Selection,
    *,
    lineage: bool,
    silence: ConnectError | None = None,
) -> None:
    """Show what the directories hold, without any cluster.

    Raises:
        PartlyDoneError: after it was shown, where a cluster was to be asked and none answered (`silence`).
    """
    from kelr.view.disk_logs import disk_logs_view, disks_document, show_disks  # noqa: PLC0415

    output, disks = session.output, read_disks(session, directories, selection)
    shown = [shown_disk(disk) for disk in disks]
    notes = list(_not_there(disks, selection))
    read = tuple(part for path in directories for part in ("--log-dir", str(path)))
    if silence is None:
        following: tuple[str, ...] = ("snapshot", "disks.kelr", *read)
    else:
        notes.append(
            "the cluster could not be asked: the log directories alone were read, which tell no leader, ISR or ELR"
        )
        following = ("recover", "collect", *map(str, selection.targets), *read, "--out", "disks.kelr")
    view = disk_logs_view(several=len(disks) > 1, lineage=lineage)
    with output.listing(view, {"source": "log directory", "disks": disks_document(shown)}) as listing:
        listing.add(_rows(disks))
        listing.finish({"notes": notes, "next": output.next_command(following)})
    if not output.format.is_document:
        show_disks(output, shown)
        for note in notes:
            output.note(note)
        output.next(following)
    if silence is not None:
        raise only_disks_read(silence)


def _rows(disks: Sequence[DiskCollection]) -> Iterator[DiskRow]:
    """Each replica of each disk, by partition, then by broker."""
    from kelr.engine import KnownLogs  # noqa: PLC0415
    from kelr.sources.disk.names import printable  # noqa: PLC0415
    from kelr.view.disk_logs import DiskRow  # noqa: PLC0415

    alone = KnownLogs()
    for address in sorted({address for disk in disks for address in disk.logs}):
        found = [disk.logs[address] for disk in disks if address in disk.logs]
        for log in found:
            yield DiskRow(
                address=address,
                topic_id=log.topic_id,
                answer=_printable(log.answer),
                directory=printable(log.directory),
                bytes_behind=log.bytes_behind,
                saved_high_watermark=log.saved_high_watermark,
                notes=tuple(map(printable, log.notes)),
                others=_of_one_topic(found, log.topic_id) if len(found) > 1 else alone,
            )


def _of_one_topic(found: Sequence[DiskLog], topic_id: str | None) -> KnownLogs:
    """Logs of the same topic: of one name there may be several, one made after the other was deleted."""
    from kelr.engine import KnownLogs  # noqa: PLC0415

    same = [log.answer for log in found if topic_id is not None and log.topic_id == topic_id]
    return KnownLogs({log.replica: log for log in same if isinstance(log, ReplicaLog)})


def _printable(answer: LogAnswer) -> LogAnswer:
    from kelr.sources.disk.names import printable  # noqa: PLC0415

    return replace(answer, detail=printable(answer.detail)) if isinstance(answer, LogUnavailable) else answer


def _not_there(disks: Sequence[DiskCollection], selection: Selection) -> Iterator[str]:
    """Which of the targets name nothing that is on these disks."""
    there = {address for disk in disks for address in disk.logs}
    for target in () if selection.is_everything else selection.targets:
        alone = Selection((target,))
        if not any(alone.matches(address.topic, address.partition) for address in there):
            places = ", ".join(one.path for disk in disks for one in disk.directories)
            yield f"no replica of {target} is in {places}"
