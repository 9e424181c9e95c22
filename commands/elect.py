"""``kelr elect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import CONSENT, AcceptLoss, Batch, Force, Logs, Targets, Version, on_cluster, open_session
from kelr.errors import ExitCode

app = typer.Typer(add_completion=False)

NAMING = "Naming partitions, as Kafka's own tool does"

Type = Annotated[
    str | None,
    typer.Option(
        "--election-type",
        "-e",
        autocompletion=complete.elections,
        metavar="TYPE",
        help="preferred, unclean, designation, longest_log_balanced or longest_log_aggressive. Required.",
    ),
]
Topic = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        autocompletion=complete.topics,
        metavar="TOPIC",
        help="One topic, together with --partition.",
        rich_help_panel=NAMING,
    ),
]
Partition = Annotated[
    str | None,
    typer.Option(
        "--partition",
        autocompletion=complete.partitions,
        metavar="N",
        help="One partition of --topic.",
        rich_help_panel=NAMING,
    ),
]
Everything = Annotated[
    bool,
    typer.Option(
        "--all-topic-partitions", help="Every partition for which the election is any use.", rich_help_panel=NAMING
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--path-to-json-file",
        metavar="FILE",
        help='{"partitions": [{"topic": "orders", "partition": 1, "desiredLeader": 2}, ...]}, minimalReplicas too.',
        rich_help_panel=NAMING,
    ),
]
Designate = Annotated[
    int | None,
    typer.Option(
        "--designate",
        autocompletion=complete.brokers,
        metavar="BROKER",
        help="Whom a designation elects; the JSON file's desiredLeader.",
    ),
]
MinimalReplicas = Annotated[
    int | None,
    typer.Option(
        "--minimal-replicas", metavar="N", help="For the longest log: elect only where N replicas' logs were read."
    ),
]
Window = Annotated[
    float | None,
    typer.Option(
        "--window",
        metavar="SECONDS",
        help="How long longest_log_aggressive gathers answers (default: 5 s).",
    ),
]
KeepOrder = Annotated[
    bool, typer.Option("--keep-order", help="After a designation, leave the elected replica first in the assignment.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and change nothing.")]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        "-y",
        help="Do not ask; needed where there is no terminal. It accepts no loss.",
        rich_help_panel=CONSENT,
    ),
]


@app.command(
    **on_cluster(
        {
            ExitCode.DONE: "done, also where every partition had its leader already",
            ExitCode.REFUSED: "refused for safety, or not agreed to; nothing was changed",
            ExitCode.PARTLY_DONE: "some of the partitions did not get their leader",
        }
    )
)
def elect(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    election_type: Type = None,
    topic: Topic = None,
    partition: Partition = None,
    all_topic_partitions: Everything = False,
    path_to_json_file: JsonFile = None,
    designate: Designate = None,
    minimal_replicas: MinimalReplicas = None,
    window: Window = None,
    logs: Logs = None,
    keep_order: KeepOrder = False,
    batch: Batch = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    accept_loss: AcceptLoss = None,
    force: Force = None,
    version: Version = False,
) -> None:
    """Preview, then elect.

    Takes the flags and the JSON file of kafka-leader-election.sh, and KIP-966's
    election types on brokers that do not have them. A designation gives the
    replicas another order, elects, and gives them their old order again; the
    longest log is found by asking every replica. All but preferred elect only
    where there is no leader. Without a terminal nothing is changed without --yes.

    Examples:
      kelr elect -e preferred --all-topic-partitions -b kafka-1:9092
      kelr elect -e longest_log_balanced orders:1 --timeout 120 -b kafka-1:9092
      kelr elect -e designation --designate 2 orders:1 --dry-run -b kafka-1:9092
      kelr elect -e unclean orders:1 --yes --accept-loss 19 -b kafka-1:9092
    """
    session = open_session(ctx)
    del version  # shown, as kafka-leader-election.sh does, before anything else is looked at
    from kelr.commands.electing import carry_out, read_options  # noqa: PLC0415 - not for --help

    wanted = read_options(
        session,
        targets or (),
        election_type=election_type,
        topics=topic or (),
        partition=partition,
        everything=all_topic_partitions,
        json_file=path_to_json_file,
        designate=designate,
        minimal_replicas=minimal_replicas,
        window_s=window,
        batch=batch,
        keep_order=keep_order,
        dry_run=dry_run,
        yes=yes,
        accept_loss=accept_loss,
        force=force,
    )
    carry_out(session, wanted, logs or ())
