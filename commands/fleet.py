"""``kelr fleet``: the commands that run on Spark."""

from __future__ import annotations

import typer

from kelr.commands import fleet_assess, fleet_exposure, fleet_generate, fleet_ingest, fleet_report, fleet_run

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Assess many clusters.",
)
for _part in (fleet_generate, fleet_ingest, fleet_assess, fleet_exposure, fleet_report, fleet_run):
    app.add_typer(_part.app)
