"""``kelr report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.options import AllPartitions, Logs, Partitions, Targets, Topics, on_cluster, open_session
from kelr.commands.topic_errors import topics_failed
from kelr.errors import ExitCode

app = typer.Typer(add_completion=False)

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Where to write it: .html for a page, .md for a chat channel.")
]
Before = Annotated[
    Path | None,
    typer.Option(
        "--before", metavar="FILE", help="A snapshot from the incident itself: what the logs held before elections."
    ),
]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="PLAN", help="The plan of `kelr recover plan` that was made for it.")
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="OFFSET|TIME|AGO", help="The timeline from here on, such as 2h or 2026-03-01T02Z."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="OFFSET|TIME|AGO", help="Up to here, not included.")]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What to write above it.")]
Force = Annotated[bool, typer.Option("--overwrite", "--force", help="Replace the file if it exists.")]


@app.command(
    **on_cluster(
        {
            ExitCode.USAGE: "wrong usage, a bad input file, or the report exists already",
            ExitCode.REFUSED: "two of the files are of different clusters",
            ExitCode.PARTLY_DONE: "some of the topics could not be described; the report says which",
        }
    )
)
def report(
    ctx: typer.Context,
    file: File,
    targets: Targets = None,
    *,
    before: Before = None,
    plan: PlanFile = None,
    logs: Logs = None,
    since: Since = None,
    until: Until = None,
    title: Title = None,
    overwrite: Force = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Write an incident's review page.

    It is made of everything that there is: what happened and when (the
    controller's metadata log, or --metadata-log), what the logs held, why who was
    elected, what kelr did and who ran it (its audit log on this machine), what was
    lost and how sure that is, and what to do next. What is not there is said. One file, no script,
    no network; it prints well.

    Without a target it is about every partition that was in trouble, was planned
    for or changed, or had elections since --before that may have lost something.
    The cluster is only read.

    Examples:
      kelr report review.html --metadata-log bundle.tar.gz -b kafka-1:9092
      kelr report review.html --before then.kelr --plan plan.json -b kafka-1:9092
      kelr report review.html 'orders-*' --since 3h --snapshot after.kelr
      kelr report review.md -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.reporting import Wanted, write_report  # noqa: PLC0415 - not for --help

    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    wanted = Wanted(
        selection,
        everything=all_topic_partitions,
        before=before,
        plan=plan,
        logs=tuple(logs or ()),
        since=since,
        until=until,
        title=title,
    )
    written, errors = write_report(session, file, wanted, overwrite=overwrite)
    if errors:
        raise topics_failed(errors, some_worked=written > 0)
