"""``kelr fleet run``."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.fleet_parts import spark_session
from kelr.commands.moments import read_moment
from kelr.commands.options import on_this_machine, open_output
from kelr.commands.session import now_ms
from kelr.errors import ExitCode, UnsupportedError, UsageError
from kelr.view.fleet_run import changes_of, in_a_line, run_tail, run_view

if TYPE_CHECKING:
    from kelr.model.fleet import FleetRun
    from kelr.view.output import Output

app = typer.Typer(add_completion=False)

Config = Annotated[Path, typer.Option("--config", metavar="FILE", help="What to do, as TOML: docs/fleet-run.md.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Show what got better and worse since the last run before then: a time, or 7d."
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="For pipelines: exit with 1 if there is anything to fix, or not looked at.")
]


@app.command(
    **on_this_machine(
        {
            ExitCode.FOUND: "--check: there is something to fix, or not everything was looked at",
            ExitCode.UNSUPPORTED: "PySpark or a Java for it is missing, or workers cannot run kelr",
            ExitCode.REFUSED: "another run has changed the lake meanwhile",
            ExitCode.PARTLY_DONE: "some files went into quarantine",
        }
    )
)
def run(ctx: typer.Context, *, config: Config, since: Since = None, check: Check = False) -> None:
    """Ingest, assess, sum up and report what a file names, unattended.

    For cron, Airflow or a Kubernetes CronJob: one line says what came of it, and
    the exit code how it went. Steps with nothing new to do are left out: a second
    run of the same inputs changes nothing, and starts no Spark.

    Examples:
      kelr fleet run --config fleet.toml
      kelr fleet run --config fleet.toml --since 7d
      kelr fleet run --config fleet.toml --check -o json
    """
    output = open_output(ctx)
    now = now_ms()
    since_ms = _since(since, now)
    try:
        from kelr.fleet.run import read_config  # noqa: PLC0415 - PySpark is of an extra
        from kelr.fleet.run import run as run_all  # noqa: PLC0415 - as above
    except ImportError as error:
        raise UnsupportedError(
            f"kelr fleet needs more than is installed: {error}", next_step="install it with: pip install 'kelr[fleet]'"
        ) from error
    told = read_config(config)
    settings = [f"{name}={value}" for name, value in told.spark.items()]
    with ExitStack() as stack:
        spark = functools.cache(lambda: stack.enter_context(spark_session(output, told.master, told.remote, settings)))
        found = run_all(spark, told, now_ms=now, since_ms=since_ms)
    _show(output, found)
    if found.quarantined:
        raise typer.Exit(ExitCode.PARTLY_DONE)
    if check and (found.findings or found.unseen):
        raise typer.Exit(ExitCode.FOUND)


def _since(text: str | None, now: int) -> int | None:
    moment = read_moment("--since", text, now_ms=now)
    if moment is not None and moment.at_ms is None:
        raise UsageError(f"--since {text}: clusters have no offsets in common", next_step="give a time")
    return None if moment is None else moment.at_ms


def _show(output: Output, found: FleetRun) -> None:
    if output.format.for_people:
        for line in changes_of(found):
            output.line(line)
        output.line(in_a_line(found))
        return
    with output.listing(run_view()) as listing:
        listing.add(found.clusters)
        listing.finish(run_tail(found))
