"""``kelr schema``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import with_output
from kelr.errors import UsageError
from kelr.view.output import Output

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]", autocompletion=complete.outputs, help="Which output; without it the names are listed."
    ),
]


@with_output()
def schema(output: Output, name: Name = None) -> None:
    """Print the JSON Schema of an output.

    It describes what -o json and -o yaml write; an item is a line of -o ndjson.

    Examples:
      kelr schema
      kelr schema describe > describe.schema.json
    """
    from kelr.view.schema import SCHEMAS  # noqa: PLC0415 - not for --help

    if name is None:
        for known in SCHEMAS:
            output.line(known)
        return
    if name not in SCHEMAS:
        raise UsageError(f"there is no output {name!r}", next_step=f"choose one of {', '.join(SCHEMAS)}")
    for line in json.dumps(SCHEMAS[name](), indent=2).splitlines():
        output.line(line)
