"""``kelr watch``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, on_cluster, open_session
from kelr.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)

ALERTS = "Alerts"

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
OnChange = Annotated[
    str | None,
    typer.Option(
        "--on-change",
        metavar="COMMAND",
        help="Run this for each change, with a JSON document on its stdin (kelr schema alert); no shell is used.",
        rich_help_panel=ALERTS,
    ),
]
WebhookUrl = Annotated[
    str | None,
    typer.Option(
        "--webhook",
        metavar="URL",
        envvar="KELR_WEBHOOK",
        show_envvar=False,
        help="Post the document there (env: KELR_WEBHOOK, where the address itself is a secret).",
        rich_help_panel=ALERTS,
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="Sign what is posted with the secret in this file (env: KELR_WEBHOOK_SECRET holds it).",
        rich_help_panel=ALERTS,
    ),
]
Runbook = Annotated[
    str | None,
    typer.Option(
        "--runbook",
        metavar="URL",
        envvar="KELR_RUNBOOK",
        show_envvar=False,
        help="The link to a runbook, with {situation} in it (default: docs/runbooks/{situation}.md;"
        " env: KELR_RUNBOOK).",
        rich_help_panel=ALERTS,
    ),
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
    on_change: OnChange = None,
    webhook: WebhookUrl = None,
    secret_file: SecretFile = None,
    runbook: Runbook = None,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Follow unhealthy partitions.

    On a terminal a screen is kept up to date: the partitions in trouble, their
    replicas' logs, what has changed since the start, and a recovery under way;
    ? shows its keys. In a pipe, or with -o ndjson, it prints a line for each
    change. It changes nothing by itself, and goes on when brokers cannot be
    reached.
    --on-change and --webhook send each change, with what to do about it and the
    runbook, to a command or an address.

    Examples:
      kelr watch -b kafka-1:9092
      kelr watch 'orders-*' --interval 5s -b kafka-1:9092
      kelr watch --until-healthy --for 30m -b kafka-1:9092
      kelr watch -o ndjson -b kafka-1:9092
      kelr watch --webhook https://alerts.example.com --secret-file key -c prod
    """
    session = open_session(ctx)
    from kelr.commands.watch_alerts import checked_runbook, receivers_of  # noqa: PLC0415 - not for --help
    from kelr.commands.watching import WatchOptions, read_time_s, watch_cluster  # noqa: PLC0415
    from kelr.view.watch.alerts import RUNBOOK  # noqa: PLC0415

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
        receivers=receivers_of(on_change, webhook, secret_file),
        runbook=RUNBOOK if runbook is None else checked_runbook(runbook),
    )
    if watch_cluster(session, options):
        raise typer.Exit(ExitCode.FOUND)
