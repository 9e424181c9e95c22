"""``kelr context add``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kelr.commands.options import on_this_machine, open_output
from kelr.config.context import context_of
from kelr.config.contexts_file import read_contexts
from kelr.config.edit import Edit
from kelr.config.login import PATH_ENDS, Login, given_properties
from kelr.config.value import Kind, Value
from kelr.errors import BadInputError, ExitCode, UsageError
from kelr.sources.connection import parse_servers
from kelr.sources.properties import read_properties
from kelr.view.output import Output

app = typer.Typer(add_completion=False)

LOGIN = "Login"
_EXITS = {
    ExitCode.CONNECT: "with --pin: cannot connect or authenticate",
    ExitCode.NOT_AUTHORIZED: "with --pin: not authorized",
    ExitCode.REFUSED: "with --pin: it is another cluster than --cluster-id says",
}
_KeyValues = list[str] | None
_Given = Mapping[str, Any]
_Properties = Mapping[Kind, Sequence[str]]


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
    given = {
        "bootstrap_server": bootstrap_server,
        "bootstrap_controller": bootstrap_controller,
        "command_config": command_config,
        "cluster_id": cluster_id,
        "timeout": timeout_s,
        "read_only": read_only or None,
        "username": username,
        "password_env": password_env,
        "password_file": password_file,
        "password_command": password_command,
    }
    of_kafka = {
        Kind.HERE: properties or (),
        Kind.ENV: properties_env or (),
        Kind.FILE: properties_file or (),
        Kind.COMMAND: properties_command or (),
    }
    if pin and cluster_id is not None:
        raise UsageError("--pin asks the cluster for its id, and --cluster-id gives it", next_step="leave one out")
    add_context(output, name, given, of_kafka, use=use, force=force)
    if pin:
        from kelr.commands.context import try_context  # noqa: PLC0415 - only where it connects

        try_context(output, name, pin=True, timeout_s=timeout_s)


_FLAGS = {
    Kind.HERE: "--property",
    Kind.ENV: "--property-env",
    Kind.FILE: "--property-file",
    Kind.COMMAND: "--property-command",
}


def add_context(output: Output, name: str, given: _Given, properties: _Properties, *, use: bool, force: bool) -> None:
    """Write a new context, once it is known to make sense.

    Args:
        given: by the key that it has in the file; None where nothing was given.
        properties: ``KEY=...`` of each kind.

    Raises:
        UsageError: the name is taken or none, or the options make no context.
        BadInputError: the properties file, or the contexts file, is not what it should be.
    """
    values = _values(given, properties)
    file = read_contexts(os.environ)
    edit = Edit(file)
    edit.put(name, values, force=force)
    _check(name, values, file.path)
    first = not file.names
    if use or first:
        edit.use(name)
    edit.write()
    replaced = name in file.names
    output.note(f"{'replaced' if replaced else 'added'} context {name} in {file.path}")
    written = edit.written()
    for key in written.clear_secrets(name):
        output.note(f"{key} stands there in clear: --property-env, -file or -command would keep it elsewhere")
    if use or first:
        output.note(f"{name} is the current context now")


def _values(given: _Given, properties: _Properties) -> dict[str, Any]:
    """The table as it is written: paths that were typed are relative to where they were typed, so absolute here."""
    for key in ("bootstrap_server", "bootstrap_controller"):
        if given[key] is not None:
            parse_servers(given[key])
    values: dict[str, Any] = {key: _written(value) for key, value in given.items() if value is not None}
    if of_kafka := _properties(properties):
        values["properties"] = of_kafka
    says_where = {"bootstrap_server", "bootstrap_controller"} & values.keys() or "bootstrap.servers" in of_kafka
    if not says_where and not _file_says_where(given["command_config"]):
        raise UsageError(
            "nothing says where the cluster is",
            next_step="give --bootstrap-server HOST:PORT, or a --command-config file with bootstrap.servers",
            code="no-cluster-named",
        )
    return values


def _file_says_where(path: Path | None) -> bool:
    return path is not None and "bootstrap.servers" in read_properties(path)


def _properties(texts: _Properties) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, given in texts.items():
        for key, text in given_properties(given, _FLAGS[kind]).items():
            if key in found:
                raise UsageError(f"the property {key} is given twice", next_step="give it once")
            if not text and kind is not Kind.HERE:
                raise UsageError(f"{_FLAGS[kind]} {key}= names nothing", next_step=f"give {_FLAGS[kind]} {key}=...")
            is_path = kind is Kind.FILE or (kind is Kind.HERE and key.endswith(PATH_ENDS) and not text.startswith("${"))
            value = _absolute(Path(text)) if is_path and text else text
            found[key] = value if kind is Kind.HERE else {kind.value: value}
    return found


def _check(name: str, values: Mapping[str, Any], path: Path) -> None:
    """That the context can log in, as far as that can be told without its secrets: none is looked up here."""
    context = context_of(name, values, path)
    if context.command_config is not None:
        read_properties(context.command_config)
    for value in [context.password, *context.properties.values()]:
        if value is not None and value.kind is Kind.COMMAND:
            value.words(f"context {name!r}")
    stand_in = Value(Kind.HERE, "x")
    known = {key: value for key, value in context.properties.items() if value.kind is Kind.HERE}
    password = None if context.password is None else stand_in
    try:
        Login(replace(context, password=password, properties=known), environ={}).properties  # noqa: B018 - it raises
    except BadInputError as error:
        raise UsageError(
            f"{error.message}; nothing was written",
            next_step="a user name needs where its password is (--password-env, -file or -command), and"
            " --property security.protocol=SASL_SSL --property sasl.mechanism=SCRAM-SHA-512, or what the cluster takes",
        ) from None


def _absolute(path: Path) -> str:
    return str(path.expanduser().absolute())


def _written(value: str | float | Path) -> str | float:
    if isinstance(value, Path):
        return _absolute(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
