"""``kelr rescue``: dump, show, replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, with_output, with_session
from kelr.commands.session import Session
from kelr.errors import ExitCode
from kelr.view.output import Output

app = typer.Typer(
    help="Save the records that an election would truncate, and produce them again.", no_args_is_help=True
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="A file that `kelr rescue dump` wrote.")]
Only = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TARGET]...", help="Only these partitions of the file.", show_default=False),
]


@app.command()
@with_session(exits={ExitCode.PARTLY_DONE: "some of the records could not be read; the file says which"})
def dump(
    session: Session,
    targets: Targets = None,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to save them; ends in .kelr-rescue.")],
    from_replica: Annotated[
        list[int] | None, typer.Option("--from-replica", metavar="BROKER", help="Only from this replica's log.")
    ] = None,
    from_offset: Annotated[
        int | None, typer.Option("--from-offset", metavar="N", min=0, help="From this offset on, lost or not.")
    ] = None,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", metavar="N", min=0, help="Up to this offset, which is left out.")
    ] = None,
    elect: Annotated[
        int | None, typer.Option("--elect", metavar="BROKER", help="What electing this replica gives up.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option("--plan", metavar="FILE", help="What the elections of this plan give up.")
    ] = None,
    log_dir: Annotated[
        list[Path] | None,
        typer.Option("--log-dir", metavar="DIR", help="A log directory of a broker that is down; repeat it for more."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Save the records that an election would truncate.

    Of each partition: what other replicas hold and the replica that leads, or is
    to lead, does not; read from their brokers beyond the high watermark, or from
    a disk. Who is to lead is what --elect or the plan says, else what `kelr
    explain` advises. Batches are kept byte for byte, their checksums verified.
    What could not be read is named, in the file too. Nothing is changed.

    Examples:
      kelr rescue dump orders:1 --out orders.kelr-rescue -b kafka-1:9092
      kelr rescue dump --plan plan.json --out lost.kelr-rescue -b kafka-1:9092
      kelr rescue dump orders:1 --log-dir /mnt/broker-1/kafka --out one.kelr-rescue
    """
    from kelr.commands.rescuing import DumpOptions, dump_records  # noqa: PLC0415 - not for --help

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
        overwrite=overwrite,
    )
    dump_records(session, options)


@app.command()
@with_output(exits={ExitCode.PARTLY_DONE: "the file does not hold all that was asked for when it was made"})
def show(
    output: Output,
    file: File,
    targets: Only = None,
    *,
    records: Annotated[bool, typer.Option("--records", help="List every record.")] = False,
    full: Annotated[bool, typer.Option("--full", help="With --records: show keys and values to their end.")] = False,
) -> None:
    """Show what a rescue file holds: ranges, records, transactions, and what is missing.

    The whole file is verified first. It is a zip of Kafka's own segments:
    kafka-dump-log.sh reads what is inside.

    Examples:
      kelr rescue show orders.kelr-rescue
      kelr rescue show orders.kelr-rescue orders:1 --records -o ndjson
    """
    from kelr.commands.rescuing import show_file  # noqa: PLC0415 - not for --help

    show_file(output, file, targets or (), records=records, full=full)
