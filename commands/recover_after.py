"""``kelr recover status``, ``resume``, ``undo``, ``hold`` and ``log``: what is done beside and after a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import on_cluster, open_session
from kelr.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)

CONSENT = "Consent"
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Do not ask; needed where there is no terminal.", rich_help_panel=CONSENT),
]
_SETTLED = {
    ExitCode.REFUSED: "refused for safety, or not agreed to; nothing was changed",
    ExitCode.PARTLY_DONE: "something is left to repair, and is named",
}


@app.command(
    **on_cluster({ExitCode.FOUND: "something is left to repair", ExitCode.REFUSED: "the plan is of another cluster"})
)
def status(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="PLAN", help="Look at this plan's partitions, too, journal or not.")
    ] = None,
) -> None:
    """Show what earlier runs left behind: open journals, replica orders, configs.

    With a plan, partitions that still have the order of an election are found
    even where the journal is lost, or is on another machine.

    Examples:
      kelr recover status -b kafka-1:9092
      kelr recover status plan.json -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_settle import show_what_is_left  # noqa: PLC0415 - not for --help

    if not show_what_is_left(session, file):
        raise typer.Exit(ExitCode.FOUND)


@app.command(**on_cluster(_SETTLED))
def resume(
    ctx: typer.Context,
    journal: Annotated[
        str | None,
        typer.Argument(
            metavar="JOURNAL",
            autocompletion=complete.recoveries,
            help="Its name, file or plan; the newest open one if not given.",
        ),
    ] = None,
    *,
    yes: Yes = False,
) -> None:
    """Finish what a run began that was cut short.

    Orders and configs are put back first; then the elections that are not done go
    through the same checks as ever, under the consent that was given. Asks first.

    Examples:
      kelr recover resume -b kafka-1:9092
      kelr recover resume --yes -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_settle import go_on  # noqa: PLC0415 - not for --help

    go_on(session, journal, yes=yes)


@app.command(**on_cluster(_SETTLED))
def undo(
    ctx: typer.Context,
    journal: Annotated[
        str | None,
        typer.Argument(
            metavar="JOURNAL|PLAN",
            autocompletion=complete.recoveries,
            help="A journal's name or file, or a plan; the newest open journal if not given.",
        ),
    ] = None,
    *,
    yes: Yes = False,
) -> None:
    """Put replica orders and configs back as they were before a run.

    Elections cannot be undone, and are named. What somebody else has changed
    since is left alone, and named too. Asks first.

    Examples:
      kelr recover undo -b kafka-1:9092
      kelr recover undo --yes -b kafka-1:9092
      kelr recover undo plan.json -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_settle import take_back  # noqa: PLC0415 - not for --help

    take_back(session, journal, yes=yes)


@app.command(**on_cluster(_SETTLED))
def hold(
    ctx: typer.Context,
    target: Annotated[
        str | None, typer.Argument(metavar="TOPIC", autocompletion=complete.topics, help="The one topic to hold.")
    ] = None,
    *,
    topic: Annotated[
        str | None,
        typer.Option("--topic", autocompletion=complete.topics, metavar="TOPIC", help="The same, as a flag."),
    ] = None,
    yes_clear_elr_of: Annotated[
        str | None,
        typer.Option(
            "--yes-clear-elr-of",
            autocompletion=complete.topics,
            metavar="TOPIC",
            help="Do not ask; names the topic again.",
            rich_help_panel=CONSENT,
        ),
    ] = None,
    force: Annotated[
        str | None,
        typer.Option(
            "--force",
            metavar="REASON",
            help="Although a clean candidate is thrown away; the reason goes into the audit log.",
            rich_help_panel=CONSENT,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the price; change nothing.")] = False,
) -> None:
    """Keep returning brokers from being elected: clear a topic's ELR and LastKnownELR.

    For a last known leader that cannot be kept down, and whose log is the shorter
    one. A write of the topic's min.insync.replicas clears both sets of ALL its
    partitions; the old value is restored. The price is shown first.

    Examples:
      kelr recover hold orders --dry-run -b kafka-1:9092
      kelr recover hold orders --yes-clear-elr-of orders -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_settle import hold as hold_it  # noqa: PLC0415 - not for --help

    named = [name for name in (target, topic) if name is not None]
    if len(named) != 1:
        raise UsageError("recover hold holds one topic", next_step="name it once: kelr recover hold orders --dry-run")
    hold_it(session, named[0], yes_clear=yes_clear_elr_of, force=force, dry_run=dry_run)


@app.command(**on_cluster())
def log(
    ctx: typer.Context,
    *,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only what is newer: 2h, or 2026-08-20T03:12:00Z.")
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", autocompletion=complete.topics, metavar="TOPIC", help="Only this topic. Can be repeated."
        ),
    ] = None,
) -> None:
    """Show who changed what: the audit log of this user on this machine.

    It needs no cluster. With the flags of one, only what concerns that cluster is
    shown.

    Examples:
      kelr recover log --since 24h
      kelr recover log --topic orders -o json
      kelr recover log --context production
    """
    session = open_session(ctx)
    from kelr.commands.recover_settle import show_log  # noqa: PLC0415 - not for --help

    show_log(session, since=since, topics=topic or ())
