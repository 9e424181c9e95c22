"""``kelr recover``: collect, plan, apply, verify, undo, resume, status, clear-elr, log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from kelr.commands import complete
from kelr.commands.options import (
    CONSENT,
    AcceptLoss,
    AllPartitions,
    Batch,
    Force,
    Partitions,
    Targets,
    Topics,
    command_group,
    on_cluster,
    open_session,
)
from kelr.errors import ExitCode, UsageError

app = command_group("Plan, apply and verify many elections.")

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A file that `kelr recover plan` wrote.")]
Logs = Annotated[
    list[Path] | None,
    typer.Option("--logs", metavar="FILE", help="What `kelr recover collect` read from a disk. Can be repeated."),
]
OfTopic = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", autocompletion=complete.topics, metavar="TOPIC", help="Only this topic of the plan. Can be repeated."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]


def _journal(metavar: str, text: str) -> Any:
    return typer.Argument(metavar=metavar, autocompletion=complete.recoveries, help=text)


@app.command(**on_cluster({ExitCode.PARTLY_DONE: "some topics could not be described; the file holds the others"}))
def collect(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to save it.")],
    log_dir: Annotated[
        list[Path] | None,
        typer.Option(
            "--log-dir",
            metavar="DIR",
            help="A broker's log directory on this machine. Can be repeated; asks no cluster.",
        ),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option("--merge", metavar="FILE", help="Make one file of several collections. Can be repeated."),
    ] = None,
    overwrite: Overwrite = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Save what replicas' logs hold: of live brokers, or from a dead broker's disk.

    Live, of every leaderless or unsafe partition, or of those that are named.
    With --log-dir on the host of a dead broker it needs no cluster, reads only,
    and takes no lock. `kelr recover plan --logs FILE` then counts that broker's
    log. Read the broker's own disk: nothing on a copy (a backup, a volume
    snapshot) tells how old it is.

    Examples:
      kelr recover collect --out incident.kelr -b kafka-1:9092
      kelr recover collect --log-dir /var/lib/kafka/data --out broker-3.kelr
      kelr recover collect --merge one.kelr --merge three.kelr --out disks.kelr
    """
    session = open_session(ctx, local=log_dir is not None)
    from kelr.commands.recover_collect import collect_disks, collect_live, merge_files  # noqa: PLC0415 - not for --help

    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    if log_dir and merge:
        raise UsageError("--log-dir reads disks and --merge reads files", next_step="leave one of them out")
    if merge:
        if not selection.is_everything or all_topic_partitions:
            raise UsageError("--merge takes whole files", next_step="name no partitions")
        merge_files(session, merge, out, overwrite=overwrite)
    elif log_dir:
        collect_disks(session, log_dir, selection, out, overwrite=overwrite)
    else:
        collect_live(session, selection, out, everything=all_topic_partitions, overwrite=overwrite)


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen",
            ExitCode.REFUSED: "a file or a broker is not what the options say; nothing was planned",
            ExitCode.PARTLY_DONE: "some topics could not be described",
        }
    )
)
def plan(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    logs: Logs = None,
    election_type: Annotated[
        str | None,
        typer.Option(
            "--election-type",
            "-e",
            autocompletion=complete.elections,
            metavar="TYPE",
            help="Plan this election, instead of what kelr recommends.",
        ),
    ] = None,
    designate: Annotated[
        int | None,
        typer.Option(
            "--designate", autocompletion=complete.brokers, metavar="BROKER", help="Whom a designation elects."
        ),
    ] = None,
    gone: Annotated[
        list[str] | None,
        typer.Option(
            "--gone",
            autocompletion=complete.broker_lists,
            metavar="BROKERS",
            help="These brokers will not come back: plan without them. Ids with commas between; can be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="PLAN", help="Save the plan, to apply it.")] = None,
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", metavar="TIME", help="How long it may be applied: 90s, 30m, 2h (default: 1h)."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print it for the incident channel.")] = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Write it as files and shell lines for Kafka's own tools, too."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full/--short", help="Each election in sentences, too, or grouped rows alone.")
    ] = False,
    overwrite: Overwrite = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Plan how every leaderless or unsafe partition comes back; changes nothing.

    Says for each partition who should lead and why, what would be lost, what else
    could be done, which brokers to keep down and which to start. A saved plan
    carries the cluster's id, an expiry and a hash of its content: one that was
    changed since is not applied; plan other partitions or another leader instead.

    The plan waits for whoever may come back. With --gone it does not wait for
    those brokers, and says what is lost without them; what their disks still hold
    counts all the same (--logs), and can be rescued.

    Examples:
      kelr recover plan -b kafka-1:9092
      kelr recover plan --gone 1 --logs broker-1.kelr -b kafka-1:9092
      kelr recover plan --logs broker-3.kelr --out plan.json -b kafka-1:9092
      kelr recover plan 'orders-*' --markdown --snapshot incident.kelr
      kelr recover plan --export by-hand/ --out plan.json -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_plan import (  # noqa: PLC0415 - not for --help
        PlanOptions,
        plan_and_show,
        read_lifetime_ms,
        read_wish,
    )

    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    wanted = PlanOptions(
        selection,
        read_wish(election_type, designate, gone or ()),
        read_lifetime_ms(expires_in),
        only_unsafe=selection.is_everything and not all_topic_partitions,
        logs=logs or (),
        out=out,
        export=export,
        overwrite=overwrite,
        markdown=markdown,
        full=full,
    )
    plan_and_show(session, wanted)


@app.command(
    **on_cluster(
        {
            ExitCode.REFUSED: "refused for safety, not agreed to, or, in a dry run, would be; nothing was changed",
            ExitCode.PARTLY_DONE: "some of the partitions did not get their leader",
        }
    )
)
def apply(
    ctx: typer.Context,
    file: PlanFile,
    *,
    topic: OfTopic = None,
    logs: Logs = None,
    batch: Batch = None,
    pause: Annotated[
        float | None, typer.Option("--pause", metavar="SECONDS", help="How long to wait between two batches.")
    ] = None,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Leave the elected replicas first in their assignments.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the plan against the cluster; change nothing.")
    ] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            "-y",
            help="Do not ask; needed where there is no terminal. It accepts no loss.",
            rich_help_panel=CONSENT,
        ),
    ] = False,
    accept_loss: AcceptLoss = None,
    force: Force = None,
) -> None:
    """Carry out a plan, after checking that all that it stands on still holds.

    What has changed since is named field by field, and those elections are
    refused; the rest goes on. Every request is journalled before it is sent, so
    that a kelr that is killed is resumed or undone. Without a terminal
    nothing is changed without --yes.

    Examples:
      kelr recover apply plan.json -b kafka-1:9092
      kelr recover apply plan.json --batch 10 --pause 30 -b kafka-1:9092
      kelr recover apply plan.json --yes --accept-loss 19 -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.consent import read_consent  # noqa: PLC0415 - not for --help
    from kelr.commands.recover_apply import ApplyOptions, carry_out  # noqa: PLC0415

    wanted = ApplyOptions(
        file,
        read_consent(yes=yes, accept_loss=accept_loss, force=force),
        topics=topic or (),
        logs=logs or (),
        batch=batch,
        pause_s=pause,
        keep_order=keep_order,
        dry_run=dry_run,
    )
    carry_out(session, wanted)


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "something is not well, not yet well, or could not be looked at",
            ExitCode.REFUSED: "the plan is of another cluster",
        }
    )
)
def verify(
    ctx: typer.Context,
    file: PlanFile,
    *,
    topic: OfTopic = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for what is not yet well, for 2 minutes.")] = False,
    wait_for: Annotated[
        float | None, typer.Option("--wait-for", metavar="SECONDS", help="The same, for so long.")
    ] = None,
) -> None:
    """Look past the elections of a plan: is everything as it should be?

    Leader, ISR and replica order; replicas' logs, cut where they were to be; the
    last stable offset, and transactions that nobody will end; consumer groups
    that stand beyond the new end, or have read what is gone. Each with what mends
    it.

    Examples:
      kelr recover verify plan.json -b kafka-1:9092
      kelr recover verify plan.json --wait-for 300 -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_verify import WAIT_S, verify_and_show  # noqa: PLC0415 - not for --help

    if wait_for is not None and not 0 < wait_for <= 86_400:
        raise UsageError(f"--wait-for is {wait_for:g}, not a number of seconds", next_step="give something like 300")
    wait_s = wait_for if wait_for is not None else WAIT_S if wait else None
    if not verify_and_show(session, file, topic or (), wait_s):
        raise typer.Exit(ExitCode.FOUND)


# What is done beside and after a plan.


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
        str | None, _journal("JOURNAL", "Its name, file or plan; the newest open one if not given.")
    ] = None,
    *,
    yes: Yes = False,
) -> None:
    """Finish an interrupted run.

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
        _journal("JOURNAL|PLAN", "A journal's name or file, or a plan; the newest open journal if not given."),
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


@app.command("hold", hidden=True, **on_cluster(_SETTLED))
@app.command("clear-elr", **on_cluster(_SETTLED))
def clear_elr(
    ctx: typer.Context,
    target: Annotated[
        str | None, typer.Argument(metavar="TOPIC", autocompletion=complete.topics, help="The one topic.")
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
      kelr recover clear-elr orders --dry-run -b kafka-1:9092
      kelr recover clear-elr orders --yes-clear-elr-of orders -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.recover_settle import clear_the_elr  # noqa: PLC0415 - not for --help

    named = [name for name in (target, topic) if name is not None]
    if len(named) != 1:
        raise UsageError(
            "recover clear-elr takes one topic", next_step="name it once: kelr recover clear-elr orders --dry-run"
        )
    clear_the_elr(session, named[0], yes_clear=yes_clear_elr_of, force=force, dry_run=dry_run)


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
