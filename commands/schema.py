"""``kelr schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import UsageError

app = typer.Typer(add_completion=False)

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", autocompletion=complete.outputs, help="Which output; without it the names are listed."
    ),
]


@app.command(**on_this_machine())
def schema(ctx: typer.Context, name: Name = None) -> None:
    """Print an output's JSON Schema.

    It describes what -o json and -o yaml write; an item is a line of -o ndjson.

    Examples:
      kelr schema
      kelr schema describe > describe.schema.json
    """
    output = open_output(ctx)
    from kelr.view.schema import SCHEMAS  # noqa: PLC0415 - not for --help

    if name is None:
        for known in SCHEMAS:
            output.line(known)
        return
    if name not in SCHEMAS:
        raise UsageError(f"there is no output {name!r}", next_step=f"choose one of {', '.join(SCHEMAS)}")
    for line in json.dumps(SCHEMAS[name](), indent=2).splitlines():
        output.line(line)
