"""``kelr config``."""

from __future__ import annotations

import typer

from kelr.commands.options import on_cluster, open_session

app = typer.Typer(add_completion=False, help="Show settings and their sources.")


@app.callback(invoke_without_command=True)
def config(ctx: typer.Context) -> None:
    """Show settings and their sources."""
    if ctx.invoked_subcommand is None:
        show(ctx)


@app.command(**on_cluster())
def show(ctx: typer.Context) -> None:
    """Show every setting, its value and where it comes from; secrets are hidden.

    A flag wins over an environment variable, that over the context, that over the
    default. Nothing is asked of a cluster, and no command is run for a password.

    Examples:
      kelr config show
      kelr config show --context prod -o json
      kelr config show -b kafka-1:9092 --command-config client.properties
    """
    session = open_session(ctx)
    from kelr.commands.config_rows import setting_rows  # noqa: PLC0415 - not for --help
    from kelr.view.contexts import settings_view  # noqa: PLC0415

    with session.output.listing(settings_view("config")) as listing:
        listing.add(setting_rows(session.settings))
    login = session.settings.login
    for warning in () if login is None else login.warnings:
        session.output.note(warning)
