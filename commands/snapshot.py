"""``kelr snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.disk_logs import LogDirs, LogFiles, names_cluster, with_disks
from kelr.commands.options import AllPartitions, Overwrite, Partitions, Targets, Topics, on_cluster, open_session
from kelr.commands.session import now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)

File = Annotated[Path, typer.Argument(metavar="FILE", help="Where to save it; ends in .kelr by custom.")]
NoLogs = Annotated[
    bool, typer.Option("--no-logs", help="Leave out what the replicas' logs hold: quicker, and explain knows less.")
]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen",
            ExitCode.PARTLY_DONE: "some topics could not be described; the file holds the others",
        }
    )
)
def snapshot(
    ctx: typer.Context,
    file: File,
    targets: Targets = None,
    *,
    no_logs: NoLogs = False,
    log_dir: LogDirs = None,
    logs: LogFiles = None,
    overwrite: Overwrite = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Save the cluster's state in one file.

    Brokers, features, partitions, configs and what every replica's log holds, of
    all partitions or of those that are named. Every command that looks takes the
    file with --snapshot. No secret is in it.

    --log-dir reads a dead broker's disk as well; nothing is written there. Where
    no cluster is named the file holds the disk alone, as `kelr recover collect`
    saves it: bring it to a machine that reaches the cluster, and add it with
    --logs.

    Examples:
      kelr snapshot incident.kelr -b kafka-1:9092
      kelr explain --snapshot incident.kelr
      kelr snapshot broker-3.kelr --log-dir /var/lib/kafka/data
      kelr snapshot incident.kelr --logs broker-3.kelr -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.sources.snapshot_file import save_snapshot  # noqa: PLC0415 - not for --help
    from kelr.view.describe import NOTHING_READ  # noqa: PLC0415
    from kelr.view.saved import Saved, show_saved  # noqa: PLC0415

    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    if no_logs and (log_dir or logs):
        raise UsageError("--no-logs leaves out what disks hold, too", next_step="leave one of them out")
    if log_dir and not logs and not names_cluster(session):
        from kelr.commands.recover_collect import collect_disks  # noqa: PLC0415 - only where it is asked for

        following = ("snapshot", "incident.kelr", "--logs", str(file), "-b", "HOST:PORT")
        collect_disks(session, log_dir, selection, file, overwrite=overwrite, following=following)
        return
    beside = with_disks(session, log_dir or (), logs or (), selection)
    source, taken_at_ms = beside.source, beside.source.taken_at_ms
    # A metadata log says nothing of what replicas hold.
    no_logs = no_logs or (session.settings.log_answers and not (log_dir or logs))
    with session.progress("replicas' logs read") as progress:
        saved = save_snapshot(
            source,
            selection,
            file,
            now_ms=now_ms() if taken_at_ms is None else taken_at_ms,
            with_logs=None if no_logs else lambda _: True,
            lineage=not no_logs,
            overwrite=overwrite,
            progress=progress,
        )
    session.silence_told = source.cluster().controller_silence is not None  # of the gaps
    size_bytes = file.stat().st_size
    unseen = () if saved.partitions or saved.topic_errors else (NOTHING_READ,)
    notes = (*beside.warnings, *unseen, *saved.gaps)
    show_saved(session.output, Saved(str(file), size_bytes, saved.partitions, not no_logs), notes)
    if saved.topic_errors:
        raise topics_failed(saved.topic_errors, some_worked=saved.partitions > 0)
    if unseen:
        raise typer.Exit(ExitCode.FOUND)
