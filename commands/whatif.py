"""``kelr whatif``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, on_cluster, open_session
from kelr.commands.topic_errors import fail_unseen, topics_failed
from kelr.errors import ExitCode

app = typer.Typer(add_completion=False)

OUTAGE = "What happens"
RESTART = "Restarts"

Stop = Annotated[
    list[str] | None,
    typer.Option(
        "--stop",
        autocompletion=complete.broker_lists,
        metavar="N,...",
        help="These brokers stop cleanly.",
        rich_help_panel=OUTAGE,
    ),
]
Kill = Annotated[
    list[str] | None,
    typer.Option(
        "--kill",
        autocompletion=complete.broker_lists,
        metavar="N,...",
        help="These brokers are killed, at once.",
        rich_help_panel=OUTAGE,
    ),
]
Rack = Annotated[
    list[str] | None,
    typer.Option(
        "--rack",
        autocompletion=complete.racks,
        metavar="R",
        help="All brokers of this rack are killed, at once.",
        rich_help_panel=OUTAGE,
    ),
]
If = Annotated[
    list[str] | None,
    typer.Option(
        "--if",
        metavar="EVENT",
        help='One after the other: "3 stops, then 1 fails", "1 fails, then 1 returns unclean".',
        rich_help_panel=OUTAGE,
    ),
]
Any = Annotated[
    int | None,
    typer.Option(
        "--any",
        min=1,
        metavar="K",
        help="Any K brokers are killed at once: every set of them, the worst first (default: 1).",
        rich_help_panel=OUTAGE,
    ),
]
Clean = Annotated[
    bool, typer.Option("--clean", help="With --rack or --any: they stop cleanly.", rich_help_panel=OUTAGE)
]
Restart = Annotated[
    list[str] | None,
    typer.Option(
        "--restart",
        autocompletion=complete.broker_lists,
        metavar="N,...",
        help="Restart these brokers one after the other, each once the one before is in sync again.",
        rich_help_panel=RESTART,
    ),
]
RestartOrder = Annotated[
    bool,
    typer.Option(
        "--restart-order",
        help="Look for an order in which all brokers can be restarted safely.",
        rich_help_panel=RESTART,
    ),
]
KeepWhat = Annotated[
    str,
    typer.Option(
        "--keep",
        autocompletion=complete.known_values("min-isr", "leader"),
        metavar="min-isr|leader",
        help="What every partition has to keep.",
        rich_help_panel=RESTART,
    ),
]
Controller = Annotated[
    int | None,
    typer.Option(
        "--controller",
        metavar="N",
        help="The active controller, which comes last where it is a broker too; as the cluster tells unless named.",
        rich_help_panel=RESTART,
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="For pipelines: exit with 1 if a partition would not have what --keep says, or has not now, or if that is"
        " not known.",
    ),
]
Rules = Annotated[
    str,
    typer.Option(
        "--rules",
        autocompletion=complete.rules,
        metavar="NAME",
        help="Compute by these rules: auto (what the cluster runs), elr-4.3, kraft, ...",
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most so many.")]
All = Annotated[bool, typer.Option("--all", help="Show all, however many.")]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen; --check: it is not safe, or not known to be",
            ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
            ExitCode.NOT_AUTHORIZED: "not authorized for the cluster, or for any of the topics",
            ExitCode.PARTLY_DONE: "some of the topics could not be described",
        }
    )
)
def whatif(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    stop: Stop = None,
    kill: Kill = None,
    rack: Rack = None,
    assume: If = None,
    any_: Any = None,
    clean: Clean = False,
    restart: Restart = None,
    restart_order: RestartOrder = False,
    keep: KeepWhat = "min-isr",
    controller: Controller = None,
    check: Check = False,
    rules: Rules = "auto",
    limit: Limit = None,
    all_: All = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Predict outages and restarts.

    It computes with the controller's own rules which partitions would lose
    their leader, fall under min ISR, be left with ELR members only, or might
    lose committed records. Without an event it shows every single broker.
    It changes nothing.

    Examples:
      kelr whatif -b kafka-1:9092
      kelr whatif --kill 1,2 -b kafka-1:9092
      kelr whatif --rack az1 -b kafka-1:9092
      kelr whatif --any 2 --snapshot saved.kelr
      kelr whatif 'payments-*' --if "3 stops, then 1 fails"
      kelr whatif --restart 3 --check && ssh kafka-3 systemctl restart kafka
      kelr whatif --restart-order
    """
    session = open_session(ctx)
    from kelr.commands.asking_whatif import answer, read_question  # noqa: PLC0415 - not for --help

    question = read_question(
        stop=stop or (),
        kill=kill or (),
        racks=rack or (),
        assume=assume or (),
        any_=any_,
        clean=clean,
        restart=restart or (),
        restart_order=restart_order,
        keep=keep,
        controller=controller,
        rules=rules,
        limit=limit,
        everything=all_,
    )
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    found = answer(session, selection, question)
    unseen = found.errors and not found.read
    if check and not found.safe and not unseen:
        raise typer.Exit(ExitCode.FOUND)
    if found.errors:
        raise topics_failed(found.errors, some_worked=found.read > 0, source=session.source())
    fail_unseen(seen=found.read > 0)
