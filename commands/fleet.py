"""``kelr fleet``: the commands that run on Spark."""

from __future__ import annotations

from kelr.commands import fleet_assess, fleet_exposure, fleet_generate, fleet_ingest, fleet_report, fleet_run
from kelr.commands.options import command_group

app = command_group("Assess many clusters.")
for _part in (fleet_generate, fleet_ingest, fleet_assess, fleet_exposure, fleet_report, fleet_run):
    app.add_typer(_part.app)
