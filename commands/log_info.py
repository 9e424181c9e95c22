"""``kelr log-info``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.disk_logs import LogDirs, LogFiles, names_cluster, show_disk_logs, silence_of_cluster, with_disks
from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, on_cluster, open_session
from kelr.commands.session import Session
from kelr.commands.topic_errors import fail_unseen, topics_failed
from kelr.errors import ExitCode, UsageError
from kelr.model import Selection, TopicError

app = typer.Typer(add_completion=False)

Lineage = Annotated[
    bool, typer.Option("--lineage", help="Show every epoch of every log, and the offset where two logs part.")
]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen",
            ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
            ExitCode.PARTLY_DONE: "some of the topics could not be described, or no cluster answered beside the disks",
        }
    )
)
def log_info(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    lineage: Lineage = False,
    log_dir: LogDirs = None,
    logs: LogFiles = None,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Compare replica logs.

    EPOCH is the last written leader epoch, END the log end offset, HW the high
    watermark that the replica knows. BEHIND counts the offsets of the best log
    that this one lacks. A broker that cannot be asked is said in its row.

    --log-dir reads a dead broker's disk; nothing is written there, and no lock is
    taken. Without a cluster, or where none answers, it shows what the disk holds:
    all of it, or the named partitions. With one, or with --snapshot, the disk
    stands in for its broker where that does not answer, as a file from `recover
    collect` does with --logs.

    Examples:
      kelr log-info orders:1 -b kafka-1:9092
      kelr log-info orders --lineage -o wide
      kelr log-info --log-dir /var/lib/kafka/data
      kelr log-info orders:1 --log-dir /var/lib/kafka/data -b kafka-1:9092
    """
    session = open_session(ctx)
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    if log_dir and not logs and not names_cluster(session):
        show_disk_logs(session, log_dir, selection, lineage=lineage)
        return
    silence = silence_of_cluster(session) if log_dir and not logs else None
    if log_dir and silence is not None:
        show_disk_logs(session, log_dir, selection, lineage=lineage, silence=silence)
        return
    if selection.is_everything and not all_topic_partitions:
        raise UsageError(
            "log-info asks every replica, so it wants to know which partitions",
            next_step="name them: kelr log-info orders:1; --all-topic-partitions asks all",
        )
    if session.settings.log_answers and not (log_dir or logs):
        raise UsageError(
            "a metadata log says nothing of what replicas hold",
            next_step="give a disk (--log-dir) or what was read of one (--logs) as well, or ask the cluster (-b)",
        )
    errors, shown = _show(session, selection, lineage=lineage, directories=log_dir or (), files=logs or ())
    if errors:
        raise topics_failed(errors, some_worked=shown > 0, source=session.source())
    fail_unseen(seen=shown > 0)


def _show(
    session: Session, selection: Selection, *, lineage: bool, directories: Sequence[Path], files: Sequence[Path]
) -> tuple[list[TopicError], int]:
    from kelr.sources.log_pages import read_logs  # noqa: PLC0415 - not for --help
    from kelr.view.describe import NOTHING_READ, cluster_head, note_errors  # noqa: PLC0415
    from kelr.view.disk_logs import show_disks  # noqa: PLC0415
    from kelr.view.log_info import LogNotes, log_info_tail, log_info_view, log_rows  # noqa: PLC0415

    beside = with_disks(session, directories, files, selection)
    output = session.output
    source = beside.source
    errors: list[TopicError] = []
    notes = LogNotes()
    view = log_info_view(source.cluster(), lineage=lineage)
    with output.listing(view, cluster_head(source.cluster(), source.name)) as listing:
        with session.progress("logs read") as progress:
            for page, logs in read_logs(source, selection, lineage=lineage, progress=progress):
                rows = [row for state in page.partitions for row in log_rows(state, logs.get(state.address, ()))]
                listing.add(rows)
                notes.add(rows)
                errors.extend(page.topic_errors)
        command = _next(selection, errors, directories) if listing.rows else None
        following = None if command is None else output.next_command(command)
        listing.finish(log_info_tail(errors, following, beside.warnings, beside.disks))
    if not output.format.is_document:
        show_disks(output, (replace(disk, warnings=()) for disk in beside.disks))
        for warning in beside.warnings:
            output.note(warning)
        notes.show(output)
        if not listing.rows and not errors:
            output.note(NOTHING_READ)
        note_errors(output, errors)
        if command is not None:
            output.next(command)
    return errors, listing.rows


def _next(selection: Selection, errors: Sequence[TopicError], directories: Sequence[Path]) -> Sequence[str]:
    """What explains these partitions: with disks that were read here, from a snapshot that they are in."""
    from kelr.view.describe import explain_command  # noqa: PLC0415

    explain = explain_command([str(target) for target in selection.targets], errors)
    if not directories:
        return explain
    disks = [part for path in directories for part in ("--log-dir", str(path))]
    return ["snapshot", "incident.kelr", *explain[1:], *disks]
