"""``kelr describe``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer

from kelr.commands import complete
from kelr.commands.options import (
    AllPartitions,
    Partitions,
    Targets,
    Topics,
    on_cluster,
    open_session,
)
from kelr.commands.session import Session
from kelr.commands.targets import read_cursor
from kelr.commands.topic_errors import topics_failed
from kelr.errors import ExitCode, UsageError
from kelr.model import Selection, Situation, TopicError, TopicPartition
from kelr.model.rows import unseen
from kelr.sources.base import Source, silence_of
from kelr.sources.survey import Filters, SurveyPage, survey
from kelr.view.formats import OutputFormat

# The filters of ``kelr describe``; `kelr.commands.app` knows the names that kafka-topics.sh has for them.

PANEL = "Filters (all that are given have to hold)"


def _flag(help_text: str, name: str) -> Any:
    return typer.Option(name, help=help_text, rich_help_panel=PANEL)


Leaderless = Annotated[bool, _flag("No leader, or one that is not live.", "--leaderless")]
UnderMinIsr = Annotated[bool, _flag("Fewer in sync than the effective min ISR.", "--under-min-isr")]
AtMinIsr = Annotated[
    bool,
    _flag("As many in sync as the effective min ISR: one failure away.", "--at-min-isr"),
]
UnderReplicated = Annotated[bool, _flag("Fewer in sync than replicas.", "--under-replicated")]
HasElr = Annotated[bool, _flag("The ELR is not empty.", "--has-elr")]
HasLastKnown = Annotated[bool, _flag("LastKnownELR is not empty.", "--has-last-known")]
Offline = Annotated[bool, _flag("A replica is not live, or its log directory failed.", "--offline")]
Situations = Annotated[
    list[Situation] | None,
    typer.Option(
        "--situation",
        metavar="NAME",
        help=f"In this situation: {', '.join(Situation)}. Can be repeated.",
        rich_help_panel=PANEL,
        case_sensitive=False,
    ),
]
Brokers = Annotated[
    list[int] | None,
    typer.Option(
        "--broker",
        autocompletion=complete.brokers,
        metavar="N",
        help="With a replica on this broker; can be repeated.",
        rich_help_panel=PANEL,
    ),
]
Racks = Annotated[
    list[str] | None,
    typer.Option(
        "--rack",
        autocompletion=complete.racks,
        metavar="R",
        help="With a replica in this rack. Can be repeated.",
        rich_help_panel=PANEL,
    ),
]
ExcludeInternal = Annotated[bool, _flag("Leave out Kafka's own topics.", "--exclude-internal")]


app = typer.Typer(add_completion=False)

Summarize = Annotated[bool, typer.Option("--summary", help="Only counts, by situation and by broker.")]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="For scripts: exit with 1 if a partition is not healthy or, with filters, if they find one"
        " or cannot tell; also where no partition was seen.",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="Show at most so many, and say where to go on.")
]
Cursor = Annotated[
    str | None,
    typer.Option("--cursor", autocompletion=complete.targets, metavar="TOPIC:P", help="Start at this partition."),
]
PageSize = Annotated[
    int | None,
    typer.Option(
        "--page-size", min=1, metavar="N", help="Partitions to ask for at once; a broker answers 2000 at most."
    ),
]

Watch = Annotated[bool, typer.Option("--watch", help="Renew the table until q or Ctrl-C; `kelr watch` shows more.")]
Interval = Annotated[
    str | None, typer.Option("--interval", metavar="TIME", help="With --watch: how often (default: 2s).")
]


@app.command(
    **on_cluster(
        {
            ExitCode.FOUND: "--check found something, or saw no partition",
            ExitCode.USAGE: "wrong usage, a bad input file, or none of the named topics exists",
            ExitCode.NOT_AUTHORIZED: "not authorized for the cluster, or for any of the topics",
            ExitCode.PARTLY_DONE: "some of the topics could not be described",
        }
    )
)
def describe(
    ctx: typer.Context,
    targets: Targets = None,
    *,
    leaderless: Leaderless = False,
    under_min_isr: UnderMinIsr = False,
    at_min_isr: AtMinIsr = False,
    under_replicated: UnderReplicated = False,
    has_elr: HasElr = False,
    has_last_known: HasLastKnown = False,
    offline: Offline = False,
    situation: Situations = None,
    broker: Brokers = None,
    rack: Racks = None,
    exclude_internal: ExcludeInternal = False,
    summary: Summarize = False,
    check: Check = False,
    limit: Limit = None,
    cursor: Cursor = None,
    page_size: PageSize = None,
    watch: Watch = False,
    interval: Interval = None,
    topic: Topics = None,
    partition: Partitions = None,
    all_topic_partitions: AllPartitions = False,
) -> None:
    """List partitions and their situation.

    Shows leader, replicas, ISR, ELR and LastKnownELR of each.
    Without a target it shows every partition. "?" means not known, "-" means
    none.

    Examples:
      kelr describe --leaderless -b kafka-1:9092
      kelr describe orders:0,4-7 'payments-*' -o wide
      kelr describe --situation needs-unclean-recovery -o json
      kelr describe --check --under-min-isr && echo fine
      kelr describe --leaderless --watch --interval 5s
    """
    session = open_session(ctx)
    wanted = Filters(
        leaderless=leaderless,
        under_min_isr=under_min_isr,
        at_min_isr=at_min_isr,
        under_replicated=under_replicated,
        has_elr=has_elr,
        has_last_known=has_last_known,
        offline=offline,
        situations=frozenset(situation or ()),
        brokers=frozenset(broker or ()),
        racks=frozenset(rack or ()),
        exclude_internal=exclude_internal,
    )
    selection = session.selection(targets, topics=topic, partitions=partition, everything=all_topic_partitions)
    start = read_cursor(cursor)

    def shown(session: Session) -> _Result:
        source = session.source()
        pages = survey(
            source,
            selection,
            filters=wanted,
            page_size=page_size,
            start=start,
            limit=limit,
            shows_configs=not summary,
        )
        return (_summarize if summary else _list)(session, source, selection, pages)

    if watch:
        from kelr.commands.describe_watch import keep_describing  # noqa: PLC0415 - only where it is asked for

        keep_describing(session, shown, interval=interval, check=check)
        return
    if interval is not None:
        raise UsageError("--interval says how often --watch looks", next_step="add --watch, or leave it out")
    result = shown(session)
    found = result.shown > 0 or result.undecided > 0 if wanted.any_set else result.unhealthy or bool(result.unsaved)
    # Where nothing was seen, nothing is known to be well; nor of what --limit has cut off.
    found = found or not (result.read or result.errors) or result.cut_at is not None
    if check and (found or silence_of(session.source()) is not None):
        raise typer.Exit(ExitCode.FOUND)
    if result.errors:
        raise topics_failed(result.errors, some_worked=result.read > 0, source=session.source())


@dataclass
class _Result:
    """What the pages held, all together."""

    read: int = 0
    shown: int = 0
    unsaved: str = ""
    """Of records that disks of brokers that are down may hold alone; empty: nothing is on record."""
    undecided: int = 0
    unhealthy: bool = False
    seen: set[object] = field(default_factory=set)
    cut_at: TopicPartition | None = None
    errors: list[TopicError] = field(default_factory=list)

    def add(self, page: SurveyPage) -> None:
        self.read += page.read
        self.shown += len(page.partitions)
        self.undecided += page.undecided
        self.unhealthy = self.unhealthy or any(
            row.situation is not Situation.HEALTHY for row in unseen(page.partitions, self.seen)
        )
        self.cut_at = page.cut_at
        self.errors.extend(page.topic_errors)


def _list(session: Session, source: Source, selection: Selection, pages: Iterable[SurveyPage]) -> _Result:
    from kelr.view.describe import DescribeReport  # noqa: PLC0415 - not for --help

    result = _Result()
    targets = [str(target) for target in selection.targets]
    if session.output.format is OutputFormat.WIDE:
        session.learn_cordons()
    with DescribeReport(session.output, source.cluster(), source=source.name, targets=targets) as report:
        for page in pages:
            report.add(page.partitions, page.topic_errors)
            result.add(page)
        result.unsaved = _unsaved(session, source, selection)
        report.finish(read=result.read, undecided=result.undecided, cut_at=result.cut_at, unsaved=result.unsaved)
    return result


def _summarize(session: Session, source: Source, selection: Selection, pages: Iterable[SurveyPage]) -> _Result:
    from kelr.view.describe import Summary, show_summary  # noqa: PLC0415 - not for --help

    result = _Result()
    counted = Summary(source.cluster())
    for page in pages:
        counted.add(page.partitions)
        result.add(page)
    targets = [str(target) for target in selection.targets]
    show_summary(
        session.output,
        counted,
        source=source.name,
        read=result.read,
        undecided=result.undecided,
        errors=result.errors,
        targets=targets,
    )
    result.unsaved = _unsaved(session, source, selection)
    if result.unsaved and not session.output.format.is_document:
        session.output.note(result.unsaved)
    return result


def _unsaved(session: Session, source: Source, selection: Selection) -> str:
    from kelr.recovery.places import has_records, state_directory  # noqa: PLC0415 - not for --help

    if not has_records(state_directory()):
        return ""
    from kelr.commands.elections_on_record import (  # noqa: PLC0415 - the engine, where there is an audit log
        unsaved_in_words,
        unsaved_on_record,
    )

    found = unsaved_on_record(source, selection, session.output.note)
    return unsaved_in_words(found) if found else ""
