"""``kelr metrics``: read, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kelr.commands.options import CommandGroup, on_cluster, open_session
from kelr.errors import ExitCode

ENDPOINTS = "Endpoints"


class ReadsByDefault(CommandGroup):
    """``kelr metrics --endpoint ...`` is ``kelr metrics read --endpoint ...``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        names_one = args[:1] and args[0] in {"--help", *self.commands}
        if not names_one and (args or not ctx.resilient_parsing):
            args = ["read", *args]
        return list(super().parse_args(ctx, args))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Its commands, and the options of the one that runs where none is named."""
        read = self.commands["read"]
        with read.make_context("read", [], parent=ctx, resilient_parsing=True) as below:
            return [*super().shell_complete(ctx, incomplete), *read.shell_complete(below, incomplete)]


app = typer.Typer(
    add_completion=False,
    help="Compare Kafka's gauges with kelr's; export them.\n\n"
    "Without COMMAND it reads: `kelr metrics --endpoint kafka-1:9404`.",
    cls=ReadsByDefault,
)

Endpoints = Annotated[
    list[str] | None,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="A Prometheus text endpoint beside a Kafka process, as HOST:PORT or URL; repeat it for more.",
        rich_help_panel=ENDPOINTS,
    ),
]
Servers = Annotated[
    list[str] | None,
    typer.Option(
        "--prometheus", metavar="URL", help="A Prometheus server, asked by its query API.", rich_help_panel=ENDPOINTS
    ),
]
QueryMatch = Annotated[
    str | None,
    typer.Option(
        "--query-match",
        metavar="MATCHERS",
        help="Labels that its series must have, such as 'cluster=\"payments\"'.",
        rich_help_panel=ENDPOINTS,
    ),
]
Agents = Annotated[
    list[str] | None,
    typer.Option("--jolokia", metavar="URL", help="A Jolokia agent in a Kafka process.", rich_help_panel=ENDPOINTS),
]
User = Annotated[
    str | None,
    typer.Option(
        "--user",
        metavar="NAME",
        help="User at the endpoints; the password comes from KELR_METRICS_PASSWORD.",
        rich_help_panel=ENDPOINTS,
    ),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option("--password-file", metavar="FILE", help="Its password.", rich_help_panel=ENDPOINTS),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="Bearer token for the endpoints (default: the one in KELR_METRICS_TOKEN).",
        rich_help_panel=ENDPOINTS,
    ),
]
CaFile = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="Authorities to trust for https, as PEM, instead of the system's.",
        rich_help_panel=ENDPOINTS,
    ),
]
CertFile = Annotated[
    Path | None,
    typer.Option("--cert", metavar="FILE", help="Client certificate for https, as PEM.", rich_help_panel=ENDPOINTS),
]
KeyFile = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Its key, where it is in another file.", rich_help_panel=ENDPOINTS),
]
EndpointTimeout = Annotated[
    float,
    typer.Option(
        "--endpoint-timeout",
        metavar="SECONDS",
        min=0.1,
        max=600,
        help="How long to wait for each endpoint (default: 10 s).",
        rich_help_panel=ENDPOINTS,
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="For scripts: exit with 1 if there is something to be woken for, or if neither a cluster nor a controller"
        " tells which partitions have leaders.",
    ),
]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "--check found something to be woken for, or nothing tells which partitions have leaders",
            ExitCode.CONNECT: "neither an endpoint nor the cluster could be reached",
            ExitCode.PARTLY_DONE: "some endpoints, or the cluster, could not be reached",
        }
    )
)
def read(
    ctx: typer.Context,
    *,
    endpoint: Endpoints = None,
    prometheus: Servers = None,
    query_match: QueryMatch = None,
    jolokia: Agents = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    ca: CaFile = None,
    cert: CertFile = None,
    key: KeyFile = None,
    endpoint_timeout: EndpointTimeout = 10.0,
    check: Check = False,
) -> None:
    """Set Kafka's own election gauges against what kelr counts.

    Reads the gauges of KIP-966, of elections and of min ISR from Prometheus text
    endpoints (jmx_exporter with or without rules, Kafka's reporters), a
    Prometheus server, or Jolokia, several at once, and counts the same on the
    cluster. Where the two differ it says why, if that is known. An endpoint that
    is down is a row.

    Controllers all publish the figures of the whole cluster: the highest counts.
    Brokers publish those of the partitions that they lead: they are added up, and
    a partition without a leader is in none of them.

    Examples:
      kelr metrics --endpoint kafka-1:9404 --endpoint kafka-2:9404 -b kafka-1:9092
      kelr metrics --prometheus http://prom:9090 --query-match 'cluster="pay"'
      kelr metrics --jolokia http://kafka-1:8778/jolokia/ -b kafka-1:9092 --check
    """
    session = open_session(ctx)
    from kelr.commands.metrics_reading import Asked, read_metrics  # noqa: PLC0415 - not for --help
    from kelr.metrics.endpoints import (  # noqa: PLC0415
        Kind,
        endpoint_of,
        read_access,
    )
    from kelr.metrics.prometheus_server import checked_match  # noqa: PLC0415

    match = None if query_match is None else checked_match(query_match)
    given = (
        *(endpoint_of(Kind.TEXT, one) for one in endpoint or ()),
        *(endpoint_of(Kind.SERVER, one, match) for one in prometheus or ()),
        *(endpoint_of(Kind.JOLOKIA, one) for one in jolokia or ()),
    )
    asked = Asked(
        endpoints=tuple(dict.fromkeys(given)),  # one that is named twice does not lead twice as many partitions
        access=read_access(
            user=user, password_file=password_file, token_file=token_file, ca=ca, certificate=cert, key=key
        ),
        timeout_s=endpoint_timeout,
    )
    read_metrics(session, asked, check=check)


@app.command(**on_cluster({ExitCode.DONE: "ended by SIGTERM"}))
def export(
    ctx: typer.Context,
    *,
    listen: Annotated[
        str,
        typer.Option("--listen", metavar="HOST:PORT", help="Where to serve (default: 127.0.0.1:9966)."),
    ] = "127.0.0.1:9966",
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=1,
            max=3600,
            help="From one look to the next (default: 15 s).",
        ),
    ] = 15.0,
    most_series: Annotated[
        int,
        typer.Option(
            "--most-series",
            metavar="N",
            min=0,
            max=100_000,
            help="Series of topics, and of partitions, in trouble to serve at most (default: 200).",
        ),
    ] = 200,
    endpoint: Endpoints = None,
    user: User = None,
    password_file: PasswordFile = None,
    token_file: TokenFile = None,
    ca: CaFile = None,
    cert: CertFile = None,
    key: KeyFile = None,
) -> None:
    """Serve kelr's figures as gauges for Prometheus, until SIGTERM.

    Looks at the cluster every few seconds, and serves what it saw: leaderless and
    unsafe partitions by situation, the brokers that they wait for, and series of
    the topics and partitions in trouble alone. A scrape never waits for the
    cluster. Figures that are too old are not served any more; kelr_up and
    kelr_look_age_seconds tell. How many unclean recoveries have ended is the
    controller's own memory: with --endpoint it is read there, and served too.

    Rules for alerts and a dashboard are in docs/alerts.

    Examples:
      kelr metrics export -b kafka-1:9092
      kelr metrics export --listen 0.0.0.0:9966 --interval 30 --context prod
    """
    session = open_session(ctx)
    from kelr.commands.metrics_reading import run_exporter  # noqa: PLC0415 - not for --help
    from kelr.metrics.endpoints import (  # noqa: PLC0415
        Kind,
        endpoint_of,
        read_access,
    )

    run_exporter(
        session,
        listen=listen,
        interval_s=interval,
        most=most_series,
        endpoints=[endpoint_of(Kind.TEXT, one) for one in endpoint or ()],
        access=read_access(
            user=user, password_file=password_file, token_file=token_file, ca=ca, certificate=cert, key=key
        ),
    )
