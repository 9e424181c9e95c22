"""``kelr context``: list, show, use, remove, test; add is in the module beside this one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands import complete, context_add
from kelr.commands.consent import can_ask, confirm
from kelr.commands.context_in_use import CLUSTER_VARIABLES
from kelr.commands.options import command_group, on_this_machine, open_output
from kelr.errors import ExitCode, KelrError, RefusedError, UnsupportedError, UsageError
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.commands.session import Session
    from kelr.config.contexts_file import ContextsFile
    from kelr.view.contexts import ContextRow, SettingRow, Tested


_known = typer.Typer()
app = command_group("Name clusters and keep their secrets.")

_REFUSED = {ExitCode.REFUSED: "others may read the secrets in the contexts file, or the answer was no"}
Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.contexts, help="Which context.")]
NameOrCurrent = Annotated[
    str | None,
    typer.Argument(metavar="NAME", autocompletion=complete.contexts, help="Which context (default: the current one)."),
]


@_known.command("list", **on_this_machine())
def list_(ctx: typer.Context) -> None:
    """List the contexts; a star marks the current one.

    Examples:
      kelr context list
      kelr context list -o json
    """
    output = open_output(ctx)
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - not for --help
    from kelr.view.contexts import contexts_view  # noqa: PLC0415

    file = read_contexts(os.environ)
    rows = [_row(file, name) for name in file.names]
    with output.listing(contexts_view(), {"file": str(file.path)}) as listing:
        listing.add(rows)
    for row in rows:
        if row.problem is not None:
            output.note(row.problem)
    if output.format.for_people:
        if not rows:
            output.note(f"there are no contexts in {file.path}")
            output.next(["context", "add", "prod", "-b", "HOST:PORT"])
        elif file.current is None:
            output.note("no context is the current one: one has to be named with --context")
    if file.current is not None and file.current not in file.tables:
        output.note(f"the current context is {file.current!r}, and there is no such context")


def _row(file: ContextsFile, name: str) -> ContextRow:
    from kelr.commands.config import login_words  # noqa: PLC0415 - not for --help
    from kelr.view.contexts import ContextRow  # noqa: PLC0415

    current, line = name == file.current, file.line(name)
    problem: str | None = None
    try:
        context = file.context(name)
    except RefusedError as error:
        context, problem = next(one for one in file.every() if one.name == name), f"{error.message}: {error.next_step}"
    except KelrError as error:
        return ContextRow(name, current, None, None, None, None, False, line, error.message)
    servers = context.properties.get("bootstrap.servers")
    return ContextRow(
        name,
        current,
        context.bootstrap_server or (servers.text if servers is not None and servers.reference is None else None),
        login_words(context),
        None if context.command_config is None else str(context.command_config),
        context.cluster_id,
        context.read_only,
        line,
        problem,
    )


@_known.command("current", hidden=True, **on_this_machine())
@_known.command(**on_this_machine())
def show(
    ctx: typer.Context,
    name: NameOrCurrent = None,
) -> None:
    """Show a context with the line of each key; secrets are hidden.

    Examples:
      kelr context show prod
    """
    output = open_output(ctx)
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - not for --help
    from kelr.view.contexts import settings_view  # noqa: PLC0415

    file = read_contexts(os.environ)
    chosen = _chosen(file, name)
    rows = _rows_of(file, chosen)
    with output.listing(settings_view("context")) as listing:
        listing.add(rows)
    if output.format.for_people:
        output.note(f"context {chosen} in {file.path}")


def _rows_of(file: ContextsFile, name: str) -> list[SettingRow]:
    from kelr.commands.config import context_rows  # noqa: PLC0415 - not for --help

    try:
        context = file.context(name)
    except RefusedError:  # to be looked at all the same: nothing of it is used
        context = next(one for one in file.every() if one.name == name)
    return context_rows(file, context)


def _chosen(file: ContextsFile, name: str | None) -> str:
    """The name that was given, or that of the current context. Raises UsageError."""
    chosen = name or os.environ.get("KELR_CONTEXT") or file.current
    if chosen is None:
        raise UsageError(
            "no context is the current one",
            next_step="name one, or choose it with kelr context use NAME",
            code="no-current-context",
        )
    return chosen


@_known.command(**on_this_machine())
def use(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", autocompletion=complete.contexts, help="Which context.")
    ] = None,
    *,
    none: Annotated[bool, typer.Option("--none", help="Have no current context.")] = False,
) -> None:
    """Make a context the current one, which is used where nothing names a cluster.

    Examples:
      kelr context use prod
      kelr context use --none
    """
    output = open_output(ctx)
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - not for --help
    from kelr.config.edit import Edit  # noqa: PLC0415

    if (name is None) != none:
        raise UsageError("either a context or --none has to be given", next_step="kelr context use NAME")
    edit = Edit(read_contexts(os.environ))
    edit.use(name)
    edit.write()
    output.note("no context is the current one now" if name is None else f"{name} is the current context now")
    shadowed = next((key for key in ("KELR_CONTEXT", *CLUSTER_VARIABLES) if os.environ.get(key)), None)
    if shadowed is not None:
        output.note(f"{shadowed} is set, and wins over it")


@_known.command("delete", hidden=True, **on_this_machine(_REFUSED))
@_known.command(**on_this_machine(_REFUSED))
def remove(
    ctx: typer.Context,
    name: Name,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Take a context out of the file. On a terminal it asks first.

    Examples:
      kelr context remove staging
      kelr context remove staging --yes
    """
    output = open_output(ctx)
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - not for --help
    from kelr.config.edit import Edit  # noqa: PLC0415

    file = read_contexts(os.environ)
    edit = Edit(file)
    edit.remove(name)
    if can_ask(output):
        confirm(output, f"Take context {name} out of {file.path}?", yes=yes)
    edit.write()
    was = ", and no context is the current one now" if file.current == name else ""
    output.note(f"removed context {name}{was}")


_TEST_EXITS = {
    ExitCode.CONNECT: "cannot connect or authenticate",
    ExitCode.NOT_AUTHORIZED: "not authorized",
    ExitCode.UNSUPPORTED: "the cluster cannot be asked, or does not tell its id (--pin)",
    ExitCode.REFUSED: "it is another cluster than the context is for",
}


@_known.command("test", **on_this_machine(_TEST_EXITS))
def try_out(
    ctx: typer.Context,
    name: NameOrCurrent = None,
    *,
    pin: Annotated[
        bool, typer.Option("--pin", help="Write down the cluster's id: any other cluster is refused from now on.")
    ] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="How long to wait (default: 30 s).")
    ] = None,
) -> None:
    """Connect with a context, and show what the cluster says of itself.

    Examples:
      kelr context test
      kelr context test prod --pin --timeout 5
    """
    output = open_output(ctx)
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - not for --help

    chosen = name or os.environ.get("KELR_CONTEXT") or read_contexts(os.environ).current
    if chosen is None:
        raise UsageError(
            "no context is the current one",
            next_step="name one, or choose it with kelr context use NAME",
            code="no-current-context",
        )
    try_context(output, chosen, pin=pin, timeout_s=timeout_s)


def try_context(output: Output, name: str, *, pin: bool, timeout_s: float | None) -> None:
    """Connect, show what was found, and pin the cluster where that is wanted.

    Variables that name another cluster are not looked at: it is the context that is tried.

    Raises:
        KelrError: with the exit code that says why it did not work.
    """
    from dataclasses import replace  # noqa: PLC0415 - not for --help

    from kelr.commands.session import Session, Settings, resolve  # noqa: PLC0415
    from kelr.view.contexts import tested_view  # noqa: PLC0415

    settings = resolve(Settings(context=name, timeout_s=timeout_s, format=output.format))
    if settings.log_answers:
        raise UsageError(
            f"context {name!r} names controllers and no brokers, and it is brokers that are tried",
            next_step=f"add bootstrap_server to [contexts.{name}]",
            code="no-cluster-named",
        )
    if settings.login is not None:
        _ = settings.login.properties  # a person may have to unlock a store first: that is not the cluster's time
    with Session(settings, output=output) as session:
        began = time.monotonic()
        cluster = session.source().cluster()
        took_ms = round((time.monotonic() - began) * 1000)
        row = _tested(session, took_ms)
    if pin:
        _pin(name, cluster.cluster_id)
        row = replace(row, pinned=True)
    following = ["context", "test", name, "--pin"] if not row.pinned and row.cluster_id is not None else ["describe"]
    if following == ["describe"]:
        following += ["--leaderless", "--context", name]
    command = replace(output, connection_flags=()).next_command(following)
    with output.listing(tested_view()) as listing:
        listing.add([row])
        listing.finish({"next": command})
    if not output.format.is_document:
        replace(output, connection_flags=()).next(following)


def _tested(session: Session, took_ms: int) -> Tested:
    from kelr.engine.checkup.metadata_versions import release_of, version_name  # noqa: PLC0415 - not for --help
    from kelr.model.cluster import METADATA_FEATURE  # noqa: PLC0415
    from kelr.view.contexts import Tested  # noqa: PLC0415

    settings, cluster = session.settings, session.source().cluster()
    features = cluster.features
    software = None if features.supported is None else features.supported.get(METADATA_FEATURE)
    release = release_of(software)
    words = ""
    if software is not None:
        finalized = version_name(features.metadata_version)
        newest = version_name(software)
        words = f"{release or 'newer than kelr knows'} (metadata.version {finalized}; its software knows {newest})"
    connection = settings.connection()
    return Tested(
        context=settings.context or "",
        bootstrap_server=connection.servers_text,
        cluster_id=cluster.cluster_id,
        pinned=settings.cluster_id is not None,
        brokers=len(cluster.brokers),
        live=len(cluster.live),
        controller=cluster.controller,
        metadata_version=features.metadata_version,
        release=release,
        elr=features.elr_enabled,
        features=features.finalized,
        security=" ".join(filter(None, (connection.security_protocol, connection.sasl_mechanism))),
        took_ms=took_ms,
        release_words=words,
    )


def _pin(name: str, cluster_id: str | None) -> None:
    from kelr.config.contexts_file import read_contexts  # noqa: PLC0415 - only where a cluster is pinned
    from kelr.config.edit import Edit  # noqa: PLC0415

    if cluster_id is None:
        raise UnsupportedError("the cluster does not tell its id, so it cannot be pinned", next_step="leave --pin out")
    edit = Edit(read_contexts(os.environ))
    edit.set(name, "cluster_id", cluster_id)
    edit.write()


for _part in (context_add.app, _known):
    app.add_typer(_part)
