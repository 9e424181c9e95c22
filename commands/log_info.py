"""``kelr log-info``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, with_session
from kelr.commands.session import Session
from kelr.commands.topic_errors import topics_failed
from kelr.errors import ExitCode, UsageError
from kelr.model import Selection, TopicError

Lineage = Annotated[
    bool, typer.Option("--lineage", help="Show every epoch of every log, and the offset where two logs part.")
]


@with_session(
    exits={
        ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
        ExitCode.PARTLY_DONE: "some of the topics could not be described",
    }
)
def log_info(
    session: Session,
    targets: Targets = None,
    *,
    lineage: Lineage = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Show what the log of every replica holds, and how far each is behind the best.

    EPOCH is the last written leader epoch, END the log end offset, HW the high
    watermark that the replica knows. BEHIND counts the offsets of the best log
    that this one lacks. A broker that cannot be asked is said in its row.

    Examples:
      kelr log-info orders:1 -b kafka-1:9092
      kelr log-info orders --lineage -o wide
    """
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    if selection.is_everything and not all_topic_partitions:
        raise UsageError(
            "log-info asks every replica, so it wants to know which partitions",
            next_step="name them: kelr log-info orders:1; --all-topic-partitions asks all",
        )
    errors, shown = _show(session, selection, lineage)
    if errors:
        raise topics_failed(errors, some_worked=shown > 0)


def _show(session: Session, selection: Selection, lineage: bool) -> tuple[list[TopicError], int]:
    from kelr.sources.log_pages import read_logs  # noqa: PLC0415 - not for --help
    from kelr.view.describe import cluster_head, explain_command, note_errors  # noqa: PLC0415
    from kelr.view.log_info import LogNotes, log_info_tail, log_info_view, log_rows  # noqa: PLC0415

    source, output = session.source(), session.output
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
        command = explain_command([str(target) for target in selection.targets], errors) if listing.rows else None
        listing.finish(log_info_tail(errors, None if command is None else output.next_command(command)))
    if not output.format.is_document:
        notes.show(output)
        note_errors(output, errors)
        if command is not None:
            output.next(command)
    return errors, listing.rows
