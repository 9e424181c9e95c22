"""``kelr doctor``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import AllPartitions, Partitions, Topics, on_cluster, open_session
from kelr.errors import ExitCode

app = typer.Typer(add_completion=False)

Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        autocompletion=complete.targets,
        help="TOPIC, TOPIC:3, TOPIC:0,4-7, a pattern; with --acls the words of a command. Default: everything.",
        show_default=False,
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="For scripts: exit with 1 if a warning or worse was found, or a critical check could not be made.",
    ),
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="ID,...", help="Make these checks alone, such as elr-off.")
]
Skip = Annotated[list[str] | None, typer.Option("--skip", metavar="ID,...", help="Leave these checks out.")]
Acls = Annotated[
    bool,
    typer.Option("--acls", help="Show which ACLs commands need, which of them are there, and what grants the rest."),
]
Principal = Annotated[
    str | None,
    typer.Option("--principal", metavar="User:NAME", help="With --acls: whom the kafka-acls.sh lines are for."),
]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen; --check: a warning or worse was found, or a critical check could"
            " not be made",
            ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
            ExitCode.NOT_AUTHORIZED: "not authorized for the cluster, or for any of the named topics",
            ExitCode.PARTLY_DONE: "some of the topics could not be described, or no controller answers",
        }
    )
)
def doctor(
    ctx: typer.Context,
    targets: Arguments = None,
    *,
    check: Check = False,
    only: Only = None,
    skip: Skip = None,
    acls: Acls = False,
    principal: Principal = None,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Find risks.

    It shows features, versions and rights, and which requests kelr will use;
    then what was found, the worst first, with the commands that put it right.
    It changes nothing. What could not be looked at is said.

    Examples:
      kelr doctor -b kafka-1:9092
      kelr doctor 'payments-*' --only min-isr-one,rf-one
      kelr doctor --check --skip auto-rebalance && echo fine
      kelr doctor --bootstrap-controller controller-1:9093 -b kafka-1:9092
      kelr doctor --acls recover plan --principal User:engineer
    """
    session = open_session(ctx)
    from kelr.commands.checkup import Asked, check_up, refuse_without_controller, show_acls  # noqa: PLC0415 - not for --help

    if acls:
        show_acls(session, targets or (), principal)
        return
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    if check_up(session, Asked(selection, tuple(only or ()), tuple(skip or ())), check=check):
        raise typer.Exit(ExitCode.FOUND)
    refuse_without_controller(session)
