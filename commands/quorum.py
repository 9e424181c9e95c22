"""``kelr quorum``: collect, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.options import on_this_machine, open_output
from kelr.errors import ExitCode

app = typer.Typer(
    add_completion=False,
    help="Assess a lost controller quorum.",
    no_args_is_help=True,
)

Collections = Annotated[list[Path], typer.Argument(metavar="OUT", help="Files of `kelr quorum collect`, one or more.")]


@app.command(**on_this_machine())
def collect(
    ctx: typer.Context,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
    *,
    node_dir: Annotated[
        list[Path],
        typer.Option(
            "--node-dir",
            metavar="PATH",
            help="A directory of a node on this machine: its metadata.log.dir, or one of its log.dirs. Repeat it.",
        ),
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
) -> None:
    """Save nodes' copies of the metadata log, before anything is tried.

    On each host, of controllers and brokers, running or not: the bytes of the
    metadata log, quorum-state and meta.properties, and of each replica its topic
    id, leader epochs and end. It reads only, and takes no lock. Give all of a
    broker's log directories. The other quorum commands take the files of all
    hosts together.

    Examples:
      kelr quorum collect host-1.kelr-quorum --node-dir /var/lib/kafka/metadata
      kelr quorum collect b1.kelr-quorum --node-dir /data/1 --node-dir /data/2
    """
    output = open_output(ctx)
    import socket  # noqa: PLC0415 - not for --help

    from kelr.commands.session import now_ms  # noqa: PLC0415
    from kelr.quorum.archive import write_archive  # noqa: PLC0415
    from kelr.quorum.collect import collect_nodes  # noqa: PLC0415
    from kelr.view.quorum import show_collected  # noqa: PLC0415

    nodes = collect_nodes(node_dir, host=socket.gethostname(), clock_ms=now_ms)
    show_collected(output, str(out), write_archive(nodes, out, overwrite=overwrite))


@app.command(
    **on_this_machine({ExitCode.FOUND: "the quorum is lost, or no copy says who votes"}),
)
def explain(ctx: typer.Context, collections: Collections) -> None:
    """Compare the copies: which is best, what is proved, what choosing each does.

    It says whether the quorum is lost at all, where copies part, and of each copy
    whether it is proved to hold every committed record, a lower bound (nodes that
    were not read may hold more), or stale. For each it names topics that would be
    set aside, deleted or come back, and partitions whose leader or ISR is older
    than the data, with the records that followers would truncate. It changes
    nothing.

    Examples:
      kelr quorum explain host-1.kelr-quorum host-2.kelr-quorum
      kelr quorum explain *.kelr-quorum -o json
    """
    output = open_output(ctx)
    from kelr.quorum.assess import Matter, assess  # noqa: PLC0415 - not for --help
    from kelr.quorum.reading import read_collections  # noqa: PLC0415
    from kelr.view.quorum import show_assessment  # noqa: PLC0415

    found = read_collections(collections)
    assessment = assess(found.copies, found.disks)
    show_assessment(output, assessment)
    if assessment.matter in {Matter.LOST, Matter.UNKNOWN}:
        raise typer.Exit(ExitCode.FOUND)
