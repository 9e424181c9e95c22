"""``kelr options``."""

from __future__ import annotations

import typer

from kelr.commands.options import EXIT_MEANINGS, ClusterCommand, exit_codes
from kelr.errors import ExitCode

app = typer.Typer(add_completion=False)


class OptionsCommand(ClusterCommand):
    """Its help is what it does."""

    shows_shared = True


@app.command(cls=OptionsCommand, epilog=exit_codes({ExitCode.DONE: EXIT_MEANINGS[ExitCode.DONE]}))
def options(ctx: typer.Context) -> None:
    """Show the connection and output options.

    They stand before or behind the command. An option wins over the environment,
    which wins over the context.

    Examples:
      kelr options
    """
    ctx.get_help()
