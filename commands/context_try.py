"""``kelr context test``."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import ExitCode, UnsupportedError, UsageError
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.commands.session import Session
    from kelr.view.contexts import Tested

app = typer.Typer(add_completion=False)

_EXITS = {
    ExitCode.CONNECT: "cannot connect or authenticate",
    ExitCode.NOT_AUTHORIZED: "not authorized",
    ExitCode.UNSUPPORTED: "the cluster cannot be asked, or does not tell its id (--pin)",
    ExitCode.REFUSED: "it is another cluster than the context is for",
}


@app.command("test", **on_this_machine(_EXITS))
def try_out(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=complete.contexts,
            help="Which context (default: the current one).",
        ),
    ] = None,
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
