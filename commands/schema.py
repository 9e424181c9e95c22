"""``kelr schema``."""

from __future__ import annotations

from kelr.commands.options import with_output

from kelr.view.output import Output


@with_output()
def schema(output: Output) -> None:
    """Print the JSON Schema of an output."""
    output.line("{}")
