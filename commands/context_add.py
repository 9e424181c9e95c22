"""``kelr context add``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from kelr.commands.options import on_this_machine, open_output
from kelr.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)

LOGIN = "Login"
_EXITS = {
    ExitCode.CONNECT: "with --pin: cannot connect or authenticate",
    ExitCode.NOT_AUTHORIZED: "with --pin: not authorized",
    ExitCode.REFUSED: "with --pin: it is another cluster than --cluster-id says",
}
_KeyValues = list[str] | None


def _repeated(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=f"{text}; can be repeated.", rich_help_panel=LOGIN)


@app.command(**on_this_machine(_EXITS))
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")],
    *,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            "--bootstrap-servers",
            metavar="HOST:PORT,...",
            help="Brokers to start from.",
        ),
    ] = None,
    bootstrap_controller: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-controller",
            "--bootstrap-controllers",
            metavar="HOST:PORT,...",
            help="Controllers, from which the metadata log is read.",
        ),
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", metavar="ID", help="Refuse any other cluster.")
    ] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Connect, and refuse any other cluster from now on.")] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="How long to wait for this cluster.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse commands that change the cluster.")] = False,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the context of that name.")] = False,
    command_config: Annotated[
        Path | None,
        typer.Option(
            "--command-config",
            "--admin.config",
            metavar="FILE",
            help="Client properties as Kafka's own tools take them; the file stays where it is.",
            rich_help_panel=LOGIN,
        ),
    ] = None,
    username: Annotated[
        str | None,
        typer.Option("--username", metavar="NAME", help="Who logs in with SASL.", rich_help_panel=LOGIN),
    ] = None,
    password_env: Annotated[
        str | None,
        typer.Option(
            "--password-env", metavar="VARIABLE", help="The variable with the password.", rich_help_panel=LOGIN
        ),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option("--password-file", metavar="FILE", help="The file with the password.", rich_help_panel=LOGIN),
    ] = None,
    password_command: Annotated[
        str | None,
        typer.Option(
            "--password-command",
            metavar="COMMAND",
            help="The command that prints the password; it is run without a shell.",
            rich_help_panel=LOGIN,
        ),
    ] = None,
    properties: Annotated[_KeyValues, _repeated("--property", "KEY=VALUE", "A client property")] = None,
    properties_env: Annotated[
        _KeyValues, _repeated("--property-env", "KEY=VARIABLE", "A client property whose value is in a variable")
    ] = None,
    properties_file: Annotated[
        _KeyValues, _repeated("--property-file", "KEY=FILE", "One whose value is in a file")
    ] = None,
    properties_command: Annotated[
        _KeyValues, _repeated("--property-command", "KEY=COMMAND", "One whose value a command prints")
    ] = None,
) -> None:
    """Name a cluster, and say how to reach it and log in.

    The first context becomes the current one. Secrets stay where they are: the
    file says only which variable, file or command has them.

    Examples:
      kelr context add dev -b localhost:9092
      kelr context add prod -b kafka-1:9092 --command-config prod.properties --pin
      kelr context add prod -b kafka-1:9093 --username ada \\
          --password-command 'pass kafka/prod' \\
          --property security.protocol=SASL_SSL \\
          --property sasl.mechanism=SCRAM-SHA-512
    """
    output = open_output(ctx)
    from kelr.commands.context_adding import AddOptions, add_context  # noqa: PLC0415 - not for --help
    from kelr.config.value import Kind  # noqa: PLC0415

    options = AddOptions(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        cluster_id=cluster_id,
        timeout_s=timeout_s,
        read_only=read_only,
        username=username,
        password_env=password_env,
        password_file=password_file,
        password_command=password_command,
        properties={
            Kind.HERE: tuple(properties or ()),
            Kind.ENV: tuple(properties_env or ()),
            Kind.FILE: tuple(properties_file or ()),
            Kind.COMMAND: tuple(properties_command or ()),
        },
    )
    if pin and cluster_id is not None:
        raise UsageError("--pin asks the cluster for its id, and --cluster-id gives it", next_step="leave one out")
    add_context(output, name, options, environ=os.environ, use=use, force=force)
    if pin:
        from kelr.commands.context_try import try_context  # noqa: PLC0415 - only where it connects

        try_context(output, name, pin=True, timeout_s=timeout_s)
