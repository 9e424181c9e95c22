"""What ``kelr rescue replay`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kelr.commands.changing import nothing_changed_yet, refuse_read_only, who_changes
from kelr.commands.rescue import SUFFIX
from kelr.commands.rescue_show import file_head, selected, some_names
from kelr.commands.session import Session, now_ms
from kelr.commands.targets import read_selection
from kelr.engine.words import plural
from kelr.errors import BadInputError, NotAuthorizedError, PartlyDoneError, RefusedError, UsageError
from kelr.model import TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery.audit import append, by
from kelr.recovery.places import cluster_directory, state_directory
from kelr.rescue.archive import Dump, open_dump, read_head
from kelr.rescue.journal import ReplayJournal, is_replayed, journal_file
from kelr.rescue.judge import Verdict
from kelr.rescue.preparing import Preparing, never_known
from kelr.rescue.producing import Produced, Replay
from kelr.rescue.replay_plan import PartitionReplay, ReplayOptions, ReplayPlan, Skipped, skips_in_words
from kelr.sources.live import LiveSource
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.live.producer import LiveProducer
from kelr.sources.quorum_source import without_log
from kelr.view.columns import Json
from kelr.view.output import Output
from kelr.view.plan_words import partitions_in_words, targets_of
from kelr.view.rescue import ReplayRow, replay_view
from kelr.view.styled import Style, styled

_YES = frozenset({"y", "yes"})
_COMMAND = "rescue replay"
_GO_ON = "fix that, then run the same command again: it goes on where this one ended"


def replay_records(
    session: Session, file: Path, targets: Sequence[str], options: ReplayOptions, *, dry_run: bool, yes: bool
) -> None:
    """Show what a replay does, ask, do it, and show what came of it.

    Raises:
        KelrError: with the exit code that says how it ended.
    """
    saved = session.settings.saved
    if saved is not None:
        raise UsageError(
            f"{saved}: records are produced to a live cluster",
            next_step="give --bootstrap-server or --context",
            code="saved-not-live",
        )
    selection = read_selection(targets)
    with open_dump(file) as dump:
        tails = selected(dump, selection)
        source = without_log(session.source())
        if not isinstance(source, LiveSource):
            raise UsageError(
                "records are produced to a live cluster", next_step="give --bootstrap-server", code="saved-not-live"
            )
        cluster_id = source.cluster().cluster_id
        where = journal_file(cluster_directory(state_directory(), cluster_id), dump.sha256, options.as_record())
        if dry_run:
            plan = _prepare(session, dump, source, options).prepare(tails, session.progress)
            _show_plan(session.output, dump, plan, dry_run=True, targets=targets)
            _end(session.output, plan, ())
            return
        refuse_read_only(session)
        about = {"dump": dump.sha256, "file": file.name, "cluster_id": cluster_id, **options.as_record()}
        topics = {options.to or tail.topic for tail in tails}
        with ReplayJournal(where, about, topics=topics) as journal:
            preparing = _prepare(session, dump, source, options, journal)
            plan = preparing.prepare(tails, session.progress)
            _require_write(source, plan)
            _go_on(session, dump, plan, preparing, journal, yes=yes, targets=targets)


def _require_write(source: LiveSource, plan: ReplayPlan) -> None:
    """Raises NotAuthorizedError, before anything is asked or produced, where a topic may not be written to.

    A producer's own words for it are that it may not have an id.
    """
    topics = tuple(sorted({one.target.state.topic for one in plan.partitions if one.to_replay}))
    told = LiveAdminClient.of(source).permissions(topics).topics if topics else {}
    lacking = [topic for topic in topics if (granted := told.get(topic)) is not None and "WRITE" not in granted]
    if lacking:
        raise NotAuthorizedError(
            f"the principal lacks WRITE on topic {some_names(lacking)}; nothing was produced",
            next_step="grant it, or replay to another topic with --to TOPIC",
        )


def _prepare(
    session: Session, dump: Dump, source: LiveSource, options: ReplayOptions, journal: ReplayJournal | None = None
) -> Preparing:
    if journal is not None and journal.resumed:
        session.output.note("an earlier replay of this file did not come to its end: going on with it")
    return Preparing(
        dump,
        source,
        options,
        checkpoints={} if journal is None else journal.checkpoints,
        settle_s=0.0 if journal is None else journal.settle_s,
        timeout_s=session.timeout_s,
    )


def _go_on(
    session: Session,
    dump: Dump,
    plan: ReplayPlan,
    preparing: Preparing,
    journal: ReplayJournal,
    *,
    yes: bool,
    targets: Sequence[str],
) -> None:
    output = session.output
    if not plan.to_replay:
        _show_plan(output, dump, plan, dry_run=False)
        if journal.resumed:
            journal.finish(one.source for one in plan.partitions)
        _end(output, plan, ())
        return
    if output.format.for_people:
        _show_plan(output, dump, plan, dry_run=False)
    else:
        _warn(output, plan)
    _ask(output, plan, yes=yes)
    begun = [Produced(one, 0) for one in plan.partitions if one.to_replay]
    _audit(session, dump, plan, begun, journal, begun=True)
    connection = session.settings.connection()
    with session.progress("records produced") as progress:
        replay = Replay(
            plan,
            dump,
            preparing,
            producers=functools.partial(LiveProducer, connection),
            timeout_s=connection.timeout_s,
            journal=journal,
            progress=progress,
        )
        produced = _run(output, replay)
    _audit(session, dump, plan, produced, journal)
    following = _following(dump, plan, produced, replay.moved, targets)
    if following is None:
        following = _after_all(dump, plan, produced, session.source().cluster().cluster_id)
    _show_done(output, dump, plan, produced, following)
    if replay.moved:
        names = ", ".join(targets_of(replay.moved))
        text = (
            f"{names} had an election while records were produced: run the same command again, it looks what survived"
        )
        output.note(styled(text, Style.NOTICE))
    if output.format.for_people:
        output.next(following)
    _end(output, plan, produced)


def _run(output: Output, replay: Replay) -> list[Produced]:
    try:
        return replay.run()
    except KeyboardInterrupt:
        output.note("interrupted: the same command goes on where this one ended, and produces no record twice")
        raise


@nothing_changed_yet("nothing was produced")
def _ask(output: Output, plan: ReplayPlan, *, yes: bool) -> None:
    if yes:
        return
    # A process that was started without a stdin has none at all.
    if sys.stdin is None or not sys.stdin.isatty():
        raise RefusedError(
            "no terminal to ask on; nothing was produced",
            next_step="read this, then confirm with --yes",
            code="no-terminal",
        )
    output.end_progress()
    output.stdout.flush()
    output.stderr.write(f"Produce {plural(plan.to_replay, 'record')}? [y/N] ")
    output.stderr.flush()
    answer = sys.stdin.readline().strip()
    if answer.lower() not in _YES:
        raise RefusedError(
            "nothing was produced: the answer was no", next_step="answer y, or add --yes", code="answer-was-no"
        )


def _show_plan(output: Output, dump: Dump, plan: ReplayPlan, *, dry_run: bool, targets: Sequence[str] = ()) -> None:
    following: Sequence[str] | None = None
    if plan.skipped:
        following = ("explain", *targets_of(TopicPartition(one.to_topic, one.source.partition) for one in plan.skipped))
    elif not plan.to_replay:
        following = ("explain", *targets_of(one.target.state.address for one in plan.partitions))
    elif dry_run:
        following = ("rescue", "replay", str(dump.path), *targets, *_repeated(plan))
    head: dict[str, Json] = {**file_head(dump), "dry_run": dry_run, "warnings": list(plan.warnings)}
    rows = [*(_row(one, one.to_replay) for one in plan.partitions), *map(_skipped_row, plan.skipped)]
    with output.listing(replay_view(done=False), head) as listing:
        listing.add(sorted(rows, key=lambda row: (row.topic, row.partition)))
        totals = _totals(rows)
        listing.finish({"totals": totals, "next": None if following is None else output.next_command(following)})
    if output.format.is_document:
        return
    _warn(output, plan)
    _say_totals(output, totals, "to be produced again")
    if following is not None and not (plan.to_replay and not dry_run):
        output.next(following)


def _totals(rows: Sequence[ReplayRow]) -> dict[str, int]:
    skipped = [row for row in rows if row.skipped_records]
    return {
        "records": sum(row.replay for row in rows),
        "partitions": sum(row.replay > 0 for row in rows),
        "skipped_partitions": len(skipped),
        "skipped_records": sum(row.skipped_records for row in skipped),
    }


def _say_totals(output: Output, totals: Mapping[str, int], what: str) -> None:
    many = f"{plural(totals['records'], 'record')} {what}, to {partitions_in_words(totals['partitions'])}"
    text = f"In all: {many if totals['records'] else f'nothing {what}'}"
    if totals["skipped_partitions"]:
        left = f"{plural(totals['skipped_records'], 'record')} in the file"
        text += f"; {partitions_in_words(totals['skipped_partitions'])} skipped, with {left}"
    output.note(f"{text}.")


def _warn(output: Output, plan: ReplayPlan) -> None:
    for skips in skips_in_words(plan.skipped):
        output.note(styled(f"skipped: {skips}", Style.NOTICE))
    for warning in plan.warnings:
        output.note(styled(f"note: {warning}", Style.NOTICE))


def _show_done(
    output: Output,
    dump: Dump,
    plan: ReplayPlan,
    produced: Sequence[Produced],
    following: Sequence[str],
) -> None:
    head: dict[str, Json] = {**file_head(dump), "dry_run": False, "warnings": list(plan.warnings)}
    rows = [
        *(_row(one.partition, one.confirmed, one.error, sent=one.sent) for one in produced),
        *map(_skipped_row, plan.skipped),
    ]
    totals = _totals(rows)
    with output.listing(replay_view(done=True), head) as listing:
        listing.add(sorted(rows, key=lambda row: (row.topic, row.partition)))
        listing.finish({"totals": totals, "next": output.next_command(following)})
    if output.format.is_document:
        return
    _say_totals(output, totals, "produced again")


def _following(
    dump: Dump,
    plan: ReplayPlan,
    produced: Sequence[Produced],
    moved: Sequence[TopicPartition],
    targets: Sequence[str],
) -> tuple[str, ...] | None:
    """The next command: what looks again after an election, or what says of partitions that did not get all of their
    records how to go on; None where all have them."""
    if moved:
        return ("rescue", "replay", str(dump.path), *targets, *_repeated(plan), "--dry-run")
    left = [one.partition.target.state.address for one in produced if one.error]
    left += [TopicPartition(one.to_topic, one.source.partition) for one in plan.skipped]
    return ("explain", *targets_of(left)) if left else None


def _after_all(dump: Dump, plan: ReplayPlan, produced: Sequence[Produced], cluster_id: str | None) -> tuple[str, ...]:
    """The next command once all is produced: the same with what else was saved before the same plan, else what shows
    the partitions."""
    saved = _saved_besides(dump, cluster_directory(state_directory(), cluster_id))
    if saved is not None:
        return ("rescue", "replay", str(saved), *_repeated(plan), "--dry-run")
    return ("explain", *targets_of(one.partition.target.state.address for one in produced))


def _saved_besides(dump: Dump, here: Path) -> Path | None:
    """A rescue file beside this one, of the same plan, that no replay here has come to an end with; this one itself
    where only some of its partitions were asked for."""
    plan_id = dump.manifest.plan_id
    for path in sorted(dump.path.parent.glob(f"*{SUFFIX}")) if plan_id is not None else ():
        with suppress(BadInputError):
            if read_head(path)[0].plan_id == plan_id and not is_replayed(path, here):
                return path
    return None


def _skipped_row(one: Skipped) -> ReplayRow:
    return ReplayRow(
        topic=one.source.topic,
        partition=one.source.partition,
        to_topic=one.to_topic,
        error=one.why.lstrip(": "),
        skipped_records=one.records,
    )


def _row(one: PartitionReplay, count: int, error: str = "", *, sent: bool = True) -> ReplayRow:
    def of(verdict: Verdict) -> int:
        return one.counts.get(verdict, 0)

    return ReplayRow(
        topic=one.source.topic,
        partition=one.source.partition,
        to_topic=one.target.state.topic,
        replay=count,
        survive=of(Verdict.SURVIVES),
        already=of(Verdict.ALREADY),
        overwritten=of(Verdict.OVERWRITTEN),
        aborted=of(Verdict.ABORTED),
        open=of(Verdict.OPEN),
        markers=of(Verdict.MARKER),
        outside=of(Verdict.OUTSIDE),
        error=error,
        cut=of(Verdict.HANGING) + of(Verdict.DROPPED),
        deleted=of(Verdict.DELETED),
        unknown=of(Verdict.UNKNOWN),
        skipped_records=0 if sent else one.to_replay,
    )


def _repeated(plan: ReplayPlan) -> list[str]:
    """The flags of this run that the next command has to repeat."""
    options = plan.options
    words = [] if options.to is None else ["--to", options.to]
    for given, flag in (
        (options.other_cluster, "--other-cluster"),
        (options.all_records, "--all-records"),
        (options.include_aborted, "--include-aborted"),
        (options.include_open, "--include-open"),
        (options.cut_transactions, "--cut-transactions"),
        (options.skip_overwritten is True, "--skip-overwritten"),
        (options.skip_overwritten is False, "--keep-overwritten"),
        (not options.look, "--no-scan"),
    ):
        words += [flag] if given else []
    return words


def _audit(
    session: Session,
    dump: Dump,
    plan: ReplayPlan,
    produced: Sequence[Produced],
    journal: ReplayJournal,
    *,
    begun: bool = False,
) -> None:
    """A line for each partition, before the first record and after the last: a replay that is killed is told of too.
    What is produced where it came from, that partition had lost."""
    had_lost = plan.options.to is None and not plan.options.other_cluster
    who = by(who_changes(session))
    source = session.source()
    append(
        state_directory(),
        *(
            AuditRecord(
                at_ms=now_ms(),
                what=AuditWhat.RESCUE,
                command=_COMMAND,
                topic=one.partition.target.state.topic,
                partition=one.partition.target.state.partition,
                cluster_id=source.cluster().cluster_id,
                result="begun" if begun else "failed" if one.error else "done",
                plan_id=dump.manifest.plan_id,
                journal=journal.path.name,
                before={
                    "log_end": one.partition.target.log.log_end,
                    "leader": one.partition.target.leader,
                    "isr": list(one.partition.target.state.isr),
                },
                after={} if begun else {"records": one.confirmed, "lost": one.confirmed if had_lost else 0},
                evidence=[
                    {"file": str(dump.path.absolute()), "sha256": dump.sha256, "source": str(one.partition.source)}
                ],
                error=one.error or None,
                text=_told(one, begun=begun),
                user=who["user"] or "unknown",
                host=who["host"] or "unknown",
                principal=who["principal"],
            )
            for one in produced
            if begun or one.confirmed or one.error
        ),
    )


def _told(one: Produced, *, begun: bool) -> str:
    if begun:
        return f"{plural(one.partition.to_replay, 'record')} about to be produced again"
    return f"{plural(one.confirmed, 'record')} produced again"


def _end(output: Output, plan: ReplayPlan, produced: Sequence[Produced]) -> None:
    """Raises PartlyDoneError, or NotAuthorizedError, where partitions did not get all of their records."""
    failed = [one for one in produced if one.error]
    unknown = never_known(plan.partitions)
    said = [*skips_in_words(plan.skipped), *dict.fromkeys(one.error for one in failed if not one.sent)]
    broken = [one for one in failed if one.sent]
    if broken:
        names = ", ".join(targets_of(one.partition.target.state.address for one in broken))
        text = f"not all records could be produced to {names}: {broken[0].error}"
        if all("AUTHORIZATION" in one.error for one in failed) and not any(one.confirmed for one in produced):
            raise NotAuthorizedError(text, next_step="the principal needs WRITE on the topic")
        said.insert(0, text)
    if said:
        # People have the command already that says how to mend it.
        people = output.format.for_people
        text = "; ".join([*said, *filter(None, [unknown])])
        raise PartlyDoneError(f"{text}; {_GO_ON}" if people else text, next_step=None if people else _GO_ON)
    if unknown:
        raise PartlyDoneError(unknown)
