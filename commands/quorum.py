"""``kelr quorum``: collect, explain, plan, apply, restore, verify, undo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kelr.commands.options import Overwrite, command_group, on_cluster, on_this_machine, open_output, open_session
from kelr.errors import ExitCode, UsageError

app = command_group("Rescue a lost controller quorum.")

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A file that `kelr quorum plan` wrote.")]
PlannedFrom = Annotated[
    list[Path], typer.Argument(metavar="OUT", help="The files of `kelr quorum collect` that it was made of.")
]
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
    overwrite: Overwrite = False,
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
    **on_this_machine({ExitCode.FOUND: "the quorum is lost, no copy says who votes, or the best copy is stale"}),
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
    from kelr.quorum.assess import Matter, Verdict, assess  # noqa: PLC0415 - not for --help
    from kelr.quorum.reading import read_collections  # noqa: PLC0415
    from kelr.view.quorum import show_assessment  # noqa: PLC0415

    found = read_collections(collections)
    assessment = assess(found.copies, found.disks)
    show_assessment(output, assessment)
    if assessment.matter in {Matter.LOST, Matter.BEHIND, Matter.UNKNOWN} or assessment.best.verdict is Verdict.STALE:
        raise typer.Exit(ExitCode.FOUND)


@app.command(**on_this_machine({ExitCode.REFUSED: "the quorum is not lost, or this copy cannot be taken"}))
def plan(
    ctx: typer.Context,
    collections: Collections,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="PLAN", help="The plan to write.")],
    kafka: Annotated[
        str, typer.Option("--kafka", metavar="VERSION", help="The release of Kafka that controllers run.")
    ],
    node: Annotated[
        int | None, typer.Option("--node", metavar="ID", min=0, help="Node id of the controller that is to lead alone.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            metavar="HOST:PORT",
            help="Where it listens. At a lost controller's address no broker needs a restart.",
        ),
    ] = None,
    voter: Annotated[
        list[str] | None,
        typer.Option("--voter", metavar="ID@HOST:PORT", help="A voter's new address, where all have moved. Repeat it."),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--directory", metavar="PATH", help="Its metadata.log.dir, on its host.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="COPY",
            help="Take the copy of this node, directory id or place (as explain shows it), not the best one.",
        ),
    ] = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="Take a stale copy: where nothing better is left, or to undo a rescue.")
    ] = False,
    listener: Annotated[
        str | None,
        typer.Option("--listener", metavar="NAME", help="Name of its listener (default: the one that voters have)."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Plan one controller that leads alone, or voters' new addresses.

    With --node, a controller is made of the best copy: for a majority that is lost
    for good. With --voter, new addresses are added to the most complete voter's
    log: for voters that have moved with their disks (kraft.version 1).

    The plan names the copy with its digests, the bytes that are appended, the
    directory, configs, and what has to be stated before it is carried out. A stale
    copy is refused without --stale, and then needs every broker stopped and
    collected. It changes nothing.

    Examples:
      kelr quorum plan *.kelr-quorum --node 100 --directory /var/lib/kafka/meta \
        --address controller-1:9093 --kafka 4.3.1 --out rescue.json
      kelr quorum plan *.kelr-quorum --voter 100@c1:9093 --voter 101@c2:9093 \
        --voter 102@c3:9093 --kafka 4.3.1 --out moved.json
    """
    output = open_output(ctx)
    from kelr.commands.quorum_plan import plan_rescue  # noqa: PLC0415 - not for --help
    from kelr.quorum.plan import AddressRequest, PlanRequest  # noqa: PLC0415

    request: PlanRequest | AddressRequest
    if voter:
        if node is not None or address is not None or source is not None or stale:
            raise UsageError(
                "--voter takes the voters as they are", next_step="leave --node, --address, --source, --stale out"
            )
        request = AddressRequest(dict(map(_voter, voter)), kafka, directory, listener)
    elif node is None or address is None or directory is None:
        raise UsageError(
            "nothing says which controller is to lead",
            next_step="give --node, --directory and --address, or --voter for each voter that has moved",
        )
    else:
        host, port = _address(address)
        request = PlanRequest(node, directory, host, port, kafka, source, listener, stale)
    plan_rescue(output, collections, request, out, overwrite=overwrite)


def _voter(text: str) -> tuple[int, tuple[str, int]]:
    node, at, address = text.partition("@")
    if not at or not (node.isascii() and node.isdigit()):
        raise UsageError(f"{text!r} is no voter", next_step="write ID@HOST:PORT")
    return int(node), _address(address)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r} is no address", next_step="write HOST:PORT", code="bad-address")
    return host.strip("[]"), int(port)


@app.command(
    **on_this_machine(
        {
            ExitCode.REFUSED: "refused: something runs, was not stated, or is not as planned; nothing changed",
            ExitCode.PARTLY_DONE: "the disk failed; the message says which directory is where",
        }
    )
)
def apply(
    ctx: typer.Context,
    plan_file: PlanFile,
    collections: PlannedFrom,
    *,
    never_start: Annotated[
        list[str] | None,
        typer.Option(
            "--never-start",
            metavar="IDS",
            help="State that these old controllers never start again with the log that they have.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option("--missing", metavar="IDS", help="Do without these nodes, which were not read whole."),
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topics", metavar="NAMES", help="A stale copy may set these topics aside, bring them back, cut records."
        ),
    ] = None,
    data_copied: Annotated[
        list[str] | None,
        typer.Option(
            "--data-copied", metavar="IDS", help="State that these brokers' log directories are copied (stale copy)."
        ),
    ] = None,
) -> None:
    """Make the new controller's directory, on its host; starts nothing.

    It refuses while any controller's address answers, while a broker runs that was
    not collected, and until it is stated which old controllers never start again.
    With a stale copy every broker must be stopped, its data copied, and each topic
    named that is not as it was. The old directory is renamed and kept. Cut short,
    it is finished by the same command.

    Examples:
      kelr quorum apply rescue.json *.kelr-quorum --never-start 100,101,102
      kelr quorum apply rescue.json *.kelr-quorum --never-start 100,101,102 \
        --topics orders,payments --data-copied 1,2
    """
    output = open_output(ctx)
    from kelr.commands.quorum_plan import apply_rescue  # noqa: PLC0415
    from kelr.commands.targets import read_ids  # noqa: PLC0415 - not for --help
    from kelr.quorum.apply import Statement  # noqa: PLC0415

    statement = Statement(
        never_start=read_ids("--never-start", never_start or (), "node"),
        missing=read_ids("--missing", missing or (), "node"),
        topics=[topic.strip() for text in topics or () for topic in text.split(",")],
        data_copied=read_ids("--data-copied", data_copied or ()),
    )
    apply_rescue(output, plan_file, collections, statement)


@app.command(
    **on_this_machine(
        {
            ExitCode.REFUSED: "the broker runs, or not all of its directories are named; nothing changed",
            ExitCode.PARTLY_DONE: "replicas are left aside that may be needed; the table says why",
        }
    )
)
def restore(
    ctx: typer.Context,
    plan_file: PlanFile,
    collections: PlannedFrom,
    *,
    node_dir: Annotated[
        list[Path],
        typer.Option("--node-dir", metavar="PATH", help="A log directory of a stopped broker: all of its log.dirs."),
    ],
) -> None:
    """Rename back what a stopped broker has set aside, on its host.

    A broker that followed another copy has renamed replicas of topics that this
    one did not know to -stray, or to -delete. Where the copy of the plan knows
    the topic id and places the replica on this broker, the directory gets its
    name back. Run it on each broker's host before the broker starts.

    Examples:
      kelr quorum restore rescue.json *.kelr-quorum --node-dir /data/1 --node-dir /data/2
    """
    output = open_output(ctx)
    from kelr.commands.quorum_plan import restore_set_aside  # noqa: PLC0415 - not for --help

    code = restore_set_aside(output, plan_file, collections, node_dir)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "something is not as planned",
            ExitCode.PARTLY_DONE: "nothing is wrong, and something could not be looked at",
        }
    )
)
def verify(
    ctx: typer.Context,
    plan_file: PlanFile,
    collections: PlannedFrom,
    *,
    node_dir: Annotated[
        list[Path] | None,
        typer.Option("--node-dir", metavar="PATH", help="A broker's log directory on this machine: look for -stray."),
    ] = None,
) -> None:
    """Check a rescue: leader, voters, followers, topics, metadata, files.

    It asks through brokers (-b). On the new controller's host it compares the log
    with the planned bytes; with --node-dir it looks for directories that brokers
    have set aside since. What could not be looked at is said.

    Examples:
      kelr quorum verify rescue.json *.kelr-quorum -b kafka-1:9092
      kelr quorum verify rescue.json *.kelr-quorum --node-dir /data/1 -b kafka-1:9092
    """
    session = open_session(ctx)
    from kelr.commands.quorum_plan import verify_rescue  # noqa: PLC0415 - not for --help

    code = verify_rescue(session, plan_file, collections, tuple(node_dir or ()))
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


@app.command(**on_this_machine({ExitCode.REFUSED: "the new controller has started, or there is nothing to undo"}))
def undo(
    ctx: typer.Context,
    plan_file: PlanFile,
) -> None:
    """Put the old directory back, where the new controller has never started.

    Once it has led, brokers follow its log. Then another copy is put in its place
    by a plan with --stale, which begins above its epoch.

    Examples:
      kelr quorum undo rescue.json
    """
    output = open_output(ctx)
    from kelr.quorum.apply import undo as put_back  # noqa: PLC0415 - not for --help
    from kelr.quorum.plan import read_plan  # noqa: PLC0415

    places = put_back(read_plan(plan_file))
    output.line(f"{places.target} is the old directory again; the new one is {places.new}")
