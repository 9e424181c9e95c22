"""``kelr fleet``: the commands that run on Spark."""

from __future__ import annotations

import typer

from kelr.commands.fleet_assess import assess
from kelr.commands.fleet_exposure import exposure
from kelr.commands.fleet_generate import generate
from kelr.commands.fleet_ingest import ingest
from kelr.commands.fleet_report import report

app = typer.Typer(help="Look at whole fleets on Spark: ingest, assess, exposure, report.", no_args_is_help=True)
for step in (generate, ingest, assess, exposure, report):
    app.command()(step)
