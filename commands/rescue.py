"""``kelr rescue``: dump, show, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import (
    AllPartitions,
    Overwrite,
    Partitions,
    Targets,
    Topics,
    command_group,
    on_cluster,
    on_this_machine,
    open_output,
    open_session,
)
from kelr.errors import ExitCode, UsageError

app = command_group("Save records before truncation; replay them.")

SUFFIX = ".kelr-rescue"
File = Annotated[Path, typer.Argument(metavar="FILE", help="A file that `kelr rescue dump` wrote.")]
Only = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TARGET",
        autocompletion=complete.targets,
        help="Only these partitions of the file.",
        show_default=False,
    ),
]


@app.command(
    **on_cluster(
        {
            ExitCode.PARTLY_DONE: "some of the records could not be read, or what is lost is not known of every"
            " partition; the output and the file say which"
        }
    )
)
def dump(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write; ends in .kelr-rescue.")],
    from_replica: Annotated[
        list[int] | None,
        typer.Option(
            "--from-replica", autocompletion=complete.brokers, metavar="BROKER", help="Only from this replica's log."
        ),
    ] = None,
    from_offset: Annotated[
        int | None, typer.Option("--from-offset", metavar="N", min=0, help="From this offset on, lost or not.")
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", metavar="N", min=0, help="Up to this offset, which is left out.")
    ] = None,
    elect: Annotated[
        int | None,
        typer.Option(
            "--elect",
            autocompletion=complete.brokers,
            metavar="BROKER",
            help="Save what others truncate to follow this replica, live or down.",
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="Save what others truncate after this plan.")
    ] = None,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log directory of a broker that is down; repeat it for each."),
    ] = None,
    logs: Annotated[
        list[Path] | None,
        typer.Option(
            "--logs", metavar="FILE", help="What `kelr recover collect` read of a disk elsewhere, to compare."
        ),
    ] = None,
    overwrite: Overwrite = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Save the records that an election would truncate.

    Saves what other replicas hold and the leader lacks: from live brokers,
    beyond the high watermark, and from disks. --elect or --plan names the leader;
    else it is the present one, else the one that `kelr explain` advises. --elect
    takes a broker that is down, too: its disk (--log-dir, --logs) tells where its
    log ends. One run reads all --log-dir and writes one file. Batches are kept
    byte for byte and verified. What could not be read is named, in the file too.
    Without a cluster that answers, all that cannot be compared is saved. Nothing
    is changed.

    Examples:
      kelr rescue dump orders:1 --out orders.kelr-rescue -b kafka-1:9092
      kelr rescue dump --plan plan.json --out lost.kelr-rescue -b kafka-1:9092
      kelr rescue dump t --elect 1 --log-dir /b1 --log-dir /b2 --out t.kelr-rescue
      kelr rescue dump orders:1 --log-dir /mnt/b1 --out one.kelr-rescue
    """
    session = open_session(ctx)
    from kelr.commands.rescue_find import DumpOptions  # noqa: PLC0415 - not for --help
    from kelr.commands.rescuing import dump_records  # noqa: PLC0415

    if out.suffix != SUFFIX:
        raise UsageError(
            f"--out {out} does not end in {SUFFIX}, by which a rescue file is known",
            next_step=f"write --out {out.with_suffix(SUFFIX)}",
        )
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    options = DumpOptions(
        out=out,
        selection=selection,
        everything=all_topic_partitions,
        replicas=tuple(from_replica) if from_replica else None,
        from_offset=from_offset,
        to_offset=to_offset,
        elect=elect,
        plan=plan,
        log_directories=tuple(log_dir or ()),
        logs=tuple(logs or ()),
        overwrite=overwrite,
    )
    dump_records(session, options)


@app.command(
    **on_this_machine({ExitCode.PARTLY_DONE: "the file does not hold all that was asked for when it was made"})
)
def show(
    ctx: typer.Context,
    file: File,
    targets: Only = None,
    *,
    records: Annotated[bool, typer.Option("--records", help="List every record.")] = False,
    full: Annotated[bool, typer.Option("--full", help="With --records: show keys and values to their end.")] = False,
) -> None:
    """Show what a rescue file holds: ranges, records, transactions, what is missing.

    The whole file is verified first. It is a zip of Kafka's own segments:
    kafka-dump-log.sh reads what is inside.

    Examples:
      kelr rescue show orders.kelr-rescue
      kelr rescue show orders.kelr-rescue orders:1 --records -o ndjson
    """
    output = open_output(ctx)
    from kelr.commands.rescue_show import show_file  # noqa: PLC0415 - not for --help

    show_file(output, file, targets or (), records=records, full=full)


@app.command(
    **on_cluster(
        {
            ExitCode.REFUSED: "refused for safety, or the answer was no; nothing was produced",
            ExitCode.PARTLY_DONE: "some of the records could not be produced; the same command goes on",
        }
    )
)
def replay(
    ctx: typer.Context,
    file: File,
    targets: Only = None,
    *,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", autocompletion=complete.topics, metavar="TOPIC", help="Another topic that gets the records."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be produced, and stop.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    include_aborted: Annotated[
        bool, typer.Option("--include-aborted", help="Also the records of aborted transactions.")
    ] = False,
    include_open: Annotated[
        bool, typer.Option("--include-open", help="Also the records of transactions without a known end.")
    ] = False,
    cut_transactions: Annotated[
        bool,
        typer.Option(
            "--cut-transactions",
            help="Also the surviving part of transactions whose commit was lost, once they are aborted.",
        ),
    ] = False,
    skip_overwritten: Annotated[
        bool | None,
        typer.Option(
            "--skip-overwritten/--keep-overwritten",
            help="Leave out records whose key was written again since (default: in compacted topics).",
            show_default=False,
        ),
    ] = None,
    all_records: Annotated[
        bool, typer.Option("--all-records", help="With --to: also the records that survived the election.")
    ] = False,
    other_cluster: Annotated[
        bool,
        typer.Option("--other-cluster", help="Take the file of another cluster: nothing of it counts as surviving."),
    ] = False,
    no_scan: Annotated[
        bool,
        typer.Option("--no-scan", help="Do not look whether records were replayed before: they may be there twice."),
    ] = False,
) -> None:
    """Produce the saved records that the election lost, to where they were.

    Leaves out what survived the election, what was replayed before, markers, and
    records of transactions that were aborted or have no end. Keeps order, keys,
    values, headers, partition and timestamps. Headers kelr-rescue.* name where
    each record comes from. Asks first. After an interrupt or a kill the same
    command goes on, and produces no record twice.

    Examples:
      kelr rescue replay orders.kelr-rescue --dry-run -b kafka-1:9092
      kelr rescue replay orders.kelr-rescue orders:1 --to rescued -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.replaying import replay_records  # noqa: PLC0415 - not for --help
    from kelr.rescue.replay_plan import ReplayOptions  # noqa: PLC0415

    options = ReplayOptions(
        to=to,
        other_cluster=other_cluster,
        all_records=all_records,
        include_aborted=include_aborted,
        include_open=include_open,
        skip_overwritten=skip_overwritten,
        look=not no_scan,
        cut_transactions=cut_transactions,
    )
    replay_records(session, file, targets or (), options, dry_run=dry_run, yes=yes)
