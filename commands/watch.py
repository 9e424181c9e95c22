"""``kelr watch``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, on_cluster, open_session
from kelr.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)

Interval = Annotated[
    str,
    typer.Option("--interval", metavar="TIME", help="How long from one look to the next: 2s, 500ms, 1m."),
]
UntilHealthy = Annotated[
    bool, typer.Option("--until-healthy", help="End with 0 as soon as nothing is leaderless or unsafe.")
]
For = Annotated[
    str | None,
    typer.Option("--for", metavar="TIME", help="End after so long: 90s, 30m, 2h; with --until-healthy with 1."),
]
ExcludeInternal = Annotated[bool, typer.Option("--exclude-internal", help="Leave out Kafka's own topics.")]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "--for ran out before everything was healthy",
            ExitCode.USAGE: "wrong usage, or none of the named topics exists",
            ExitCode.NOT_AUTHORIZED: "not authorized for the cluster, or for any of the topics",
        }
    )
)
def watch(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    interval: Interval = "2s",
    until_healthy: UntilHealthy = False,
    for_: For = None,
    exclude_internal: ExcludeInternal = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Follow unhealthy partitions.

    On a terminal a screen is kept up to date: the partitions in trouble, their
    replicas' logs, what has changed since the start, and a recovery under way;
    ? shows its keys. In a pipe, or with -o ndjson, it prints a line for each
    change. It changes nothing, and goes on when brokers cannot be reached.

    Examples:
      kelr watch -b kafka-1:9092
      kelr watch 'orders-*' --interval 5s -b kafka-1:9092
      kelr watch --until-healthy --for 30m -b kafka-1:9092
      kelr watch -o ndjson -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.watching import WatchOptions, read_time_s, watch_cluster  # noqa: PLC0415 - not for --help

    if session.settings.saved is not None:
        raise UsageError(
            f"{session.settings.saved}: it does not change, so there is nothing to watch",
            next_step="kelr describe shows it; to watch, give --bootstrap-server or --context",
            code="saved-does-not-change",
        )
    options = WatchOptions(
        selection=session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions),
        interval_s=read_time_s(interval, "--interval"),
        for_s=None if for_ is None else read_time_s(for_, "--for"),
        until_healthy=until_healthy,
        exclude_internal=exclude_internal,
    )
    if watch_cluster(session, options):
        raise typer.Exit(ExitCode.FOUND)
