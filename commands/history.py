"""``kelr history``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands import complete
from kelr.commands.options import AllPartitions, Partitions, Targets, Topics, on_cluster, open_session
from kelr.commands.session import Session, now_ms
from kelr.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from kelr.replay.history import Moment

app = typer.Typer(add_completion=False)

Brokers = Annotated[
    list[int] | None,
    typer.Option(
        "--broker",
        autocompletion=complete.brokers,
        metavar="N",
        help="Only what concerns this broker; can be repeated.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="OFFSET|TIME|AGO", help="From here on, such as 120394, 2026-03-01T02:10Z or 2h."),
]
Until = Annotated[str | None, typer.Option("--until", metavar="OFFSET|TIME|AGO", help="Up to here, not included.")]
Unclean = Annotated[
    bool, typer.Option("--unclean", help="Only elections of replicas that may lack what was committed.")
]
Summarize = Annotated[
    bool, typer.Option("--summary", help="One row for each partition: how long in which trouble, unclean elections.")
]
Follow = Annotated[
    bool, typer.Option("--follow", help="Go on with what live controllers write, until you press Ctrl-C.")
]
Draw = Annotated[bool, typer.Option("--draw", help="Draw each named partition: a row for each replica, along time.")]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "no partition was seen, or the log ends before the time that was asked for",
            ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics is in the log",
            ExitCode.PARTLY_DONE: "some of the named topics are not in the log",
        }
    )
)
def history(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    broker: Brokers = None,
    since: Since = None,
    until: Until = None,
    unclean: Unclean = False,
    summary: Summarize = False,
    draw: Draw = False,
    follow: Follow = False,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """Show past elections and their causes.

    Everything that the controller decided is in __cluster_metadata. Without a
    target it tells the story of the cluster, what one cause did to several
    partitions in one row; of named partitions it tells every change. Where the
    log does not tell a cause, it says "likely" or "unknown".

    Examples:
      kelr history orders:1 --metadata-log /var/lib/kafka/__cluster_metadata-0
      kelr history --since 2h --broker 3 --metadata-log bundle.tar.gz
      kelr history --unclean --metadata-log bundle.tar.gz -o json
      kelr history 'orders-*' --summary --metadata-log bundle.tar.gz
      kelr history --since 10m --follow --bootstrap-controller controller1:9093
    """
    session = open_session(ctx)
    from kelr.commands.moments import read_moment  # noqa: PLC0415 - not for --help
    from kelr.commands.telling import Wanted, tell  # noqa: PLC0415
    from kelr.replay.history import Window  # noqa: PLC0415

    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    _check(draw=draw, summary=summary, filtered=bool(broker) or unclean, named=not selection.is_everything)
    _check_follow(session, follow=follow, ends=until is not None, whole=draw or summary)
    now = now_ms()
    window = Window(
        read_moment("--since", since, now_ms=now),
        _end(session, read_moment("--until", until, now_ms=now)),
    )
    wanted = Wanted(
        selection,
        window,
        brokers=frozenset(broker or ()),
        unclean=unclean,
        summary=summary,
        draw=draw,
        every_partition=all_topic_partitions,
        follow=follow,
    )
    tell(session, wanted)


def _end(session: Session, until: Moment | None) -> Moment | None:
    """--at, which every command takes, is the end of a history, too: what was at that time is included."""
    at = session.settings.at
    if at is None:
        return until
    if until is not None:
        raise UsageError("--at and --until both say where to end", next_step="use one of them")
    from kelr.replay.history import Moment  # noqa: PLC0415 - not for --help

    return Moment(offset=at.offset, at_ms=None if at.time_ms is None else at.time_ms + 1)


def _check(*, draw: bool, summary: bool, filtered: bool, named: bool) -> None:
    if draw and summary:
        raise UsageError("--draw and --summary are two ways to show it", next_step="use one of them")
    if draw and filtered:
        raise UsageError("--draw shows whole partitions", next_step="leave out --broker and --unclean")
    if draw and not named:
        raise UsageError("--draw wants to know which partitions", next_step="name them: kelr history orders:1 --draw")


def _check_follow(session: Session, *, follow: bool, ends: bool, whole: bool) -> None:
    if not follow:
        return
    if ends or session.settings.at is not None:
        raise UsageError("--follow has no end, and --until and --at are one", next_step="leave one of them out")
    if whole:
        raise UsageError("--summary and --draw show what is over", next_step="leave out --follow")
