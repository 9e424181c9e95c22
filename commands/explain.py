"""``kelr explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import AllPartitions, Logs, Partitions, Targets, Topics, on_cluster, open_session
from kelr.commands.topic_errors import topics_failed
from kelr.errors import ExitCode, UsageError

app = typer.Typer(add_completion=False)

Election = Annotated[
    str | None,
    typer.Option(
        "--election",
        autocompletion=complete.elections,
        metavar="TYPE",
        help="Show this election's steps too: preferred, unclean, designation, longest_log_balanced"
        " or longest_log_aggressive.",
    ),
]
Rules = Annotated[
    str,
    typer.Option(
        "--rules",
        autocompletion=complete.rules,
        metavar="NAME",
        help="Decide by these rules: auto (what the cluster runs), elr-4.3, elr-4.0, kraft, ...",
    ),
]
Full = Annotated[
    bool | None,
    typer.Option(
        "--full/--short", help="Whole explanations, or one line for each partition; without either, a summary of many."
    ),
]
If = Annotated[
    list[str] | None,
    typer.Option(
        "--if",
        metavar="EVENT",
        help='Explain what would be if this happened: "3 returns", "3 returns unclean", "3 fails",'
        ' "rack az1 fails", "1 fails, then 2 returns". Can be repeated.',
    ),
]
Why = Annotated[
    str | None,
    typer.Option(
        "--why",
        autocompletion=complete.rule_names,
        metavar="RULE",
        help="Print what is behind a rule, by its id or question; list names them all.",
    ),
]
Picture = Annotated[
    bool, typer.Option("--picture", help="Draw the replicas' logs: where they agree and diverge, what would be lost.")
]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen",
            ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
            ExitCode.NOT_AUTHORIZED: "not authorized for the cluster, or for any of the topics",
            ExitCode.REFUSED: "a file of --logs is of another cluster",
            ExitCode.PARTLY_DONE: "some of the topics could not be described",
        }
    )
)
def explain(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    assume: If = None,
    election: Election = None,
    rules: Rules = "auto",
    logs: Logs = None,
    why: Why = None,
    full: Full = None,
    picture: Picture = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Recommend an action; show leader, rule and loss.

    Without a target it takes every partition that is leaderless or under min ISR.
    It asks every replica what its log holds, says what Kafka does by itself now
    and when each absent broker returns, what each kind of election would give and
    lose, and what to do next. It changes nothing.

    Examples:
      kelr explain -b kafka-1:9092
      kelr explain orders:1 --election unclean -b kafka-1:9092
      kelr explain orders:1 --if "1 returns unclean" -b kafka-1:9092
      kelr explain orders:1 --picture --election unclean -b kafka-1:9092
      kelr explain orders:1 --logs broker-1.kelr -b kafka-1:9092
      kelr explain --why last-known-leader
      kelr explain orders -o json --snapshot incident.kelr
    """
    session = open_session(ctx, local=why is not None)
    from kelr.commands.explaining import (  # noqa: PLC0415 - not for --help
        explain_partitions,
        explain_rule,
        read_options,
    )

    if why is not None:
        if targets or topic or all_topic_partitions or assume or logs:
            raise UsageError("--why explains a rule, not partitions", next_step="leave everything else out")
        explain_rule(session, why)
        return
    wanted = read_options(
        election=election,
        rules=rules,
        assume=assume or (),
        logs=logs or (),
        full=full,
        picture=picture,
    )
    if picture and not session.output.format.for_people:
        raise UsageError("--picture is for people", next_step="leave out -o, or --picture")
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    only_unsafe = selection.is_everything and not all_topic_partitions
    shown, errors = explain_partitions(session, selection, wanted, only_unsafe=only_unsafe)
    if errors:
        raise topics_failed(errors, some_worked=shown > 0, source=session.source())
