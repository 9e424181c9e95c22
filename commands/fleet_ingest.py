"""``kelr fleet ingest``."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.fleet_parts import Conf, Master, Remote, session_if_asked, settings_of
from kelr.commands.options import on_this_machine, open_output
from kelr.commands.rescue_show import local_command, say_next
from kelr.commands.session import now_ms
from kelr.errors import ExitCode, UnsupportedError, UsageError
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.model.fleet import IngestSummary

app = typer.Typer(add_completion=False)

Inputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="Files and folders, as paths or URIs of stores.", show_default=False),
]
Out = Annotated[str, typer.Option("--out", metavar="LAKE", help="The folder or URI of the lake.")]
Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="ID=PATH",
        help="The cluster of a file, or of those in a folder, where nothing beside them says it. Can be repeated.",
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="ID=NAME", help="What to call a cluster in reports. Can be repeated."),
]
NamesOfFolders = Annotated[
    bool,
    typer.Option(
        "--names-of-folders", help="Call each cluster as the folder of an INPUT that it has for itself, if it has one."
    ),
]


@app.command(
    **on_this_machine(
        {
            ExitCode.UNSUPPORTED: "PySpark or a Java for it is missing",
            ExitCode.REFUSED: "another run is changing the lake",
            ExitCode.PARTLY_DONE: "some files went into quarantine",
        }
    )
)
def ingest(
    ctx: typer.Context,
    inputs: Inputs,
    *,
    out: Out,
    cluster: Clusters = None,
    name: Names = None,
    names_of_folders: NamesOfFolders = False,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
) -> None:
    """Take snapshots, collections and metadata logs of many clusters into a lake.

    Only what is new is read: run it again whenever more has been collected. All
    of a run appears in the lake at once, or nothing. What cannot be read goes
    into quarantine with the reason, and the rest goes on. Processes of this
    machine do it, unless --master or --remote names a cluster.

    Examples:
      kelr fleet ingest collected/ --out lake --names-of-folders
      kelr fleet ingest s3a://ops/kafka-metadata --out s3a://ops/lake
      kelr fleet ingest node-1/ --out lake --cluster MkU3OEVBNTcwNTJENDM2Qk=node-1/
      kelr fleet ingest collected/ --out lake --name MkU3OEVBNTcwNTJENDM2Qk=payments
    """
    output = open_output(ctx)
    given = {path: id_ for id_, path in _pairs("--cluster", cluster or (), "ID=PATH")}
    names = dict(_pairs("--name", name or (), "ID=NAME"))
    try:
        from kelr.fleet.ingest import ingest as take  # noqa: PLC0415 - PySpark is of an extra, and slow to load
    except ImportError as error:
        raise UnsupportedError(
            f"kelr fleet needs more than is installed: {error}", next_step="install it with: pip install 'kelr[fleet]'"
        ) from error
    progress = functools.partial(output.progress, what="clusters") if output.stderr.isatty() else None
    with session_if_asked(output, master, remote, conf) as spark:
        summary = take(
            spark,
            inputs,
            out,
            now_ms=now_ms(),
            clusters=given,
            names=names,
            names_of_folders=names_of_folders,
            settings=settings_of(conf),
            progress=progress,
        )
    output.end_progress()
    _show(output, summary, out)
    if summary.quarantined:
        raise typer.Exit(ExitCode.PARTLY_DONE)


def _pairs(option: str, given: Iterable[str], shape: str) -> list[tuple[str, str]]:
    pairs = []
    for one in given:
        left, equals, right = one.partition("=")
        if not equals or not left or not right:
            raise UsageError(f"{option} {one} is not {shape}", next_step=f"such as {option} {_EXAMPLES[shape]}")
        pairs.append((left, right))
    return pairs


_EXAMPLES = {"ID=PATH": "MkU3OEVBNTcwNTJENDM2Qk=backup/node-1", "ID=NAME": "MkU3OEVBNTcwNTJENDM2Qk=payments"}


def _show(output: Output, summary: IngestSummary, out: str) -> None:
    from kelr.view.fleet_ingest import in_a_line, in_quarantine, ingest_tail, ingested_view  # noqa: PLC0415 - as above

    following = ["fleet", "assess", "--lake", out]
    with output.listing(ingested_view()) as listing:
        listing.add(summary.clusters)
        listing.finish(ingest_tail(summary, local_command(following)))
    if output.format.is_document:
        return
    output.note(in_a_line(summary))
    for cluster in summary.clusters:
        for note in cluster.notes:
            output.note(f"{cluster.name or cluster.cluster}: {note}")
    for line in in_quarantine(summary.quarantined):
        output.note(f"in quarantine: {line}")
    say_next(output, following)
