"""What ``kelr rescue dump`` and ``show`` do once their options are read; loaded only when they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.commands.session import Session, now_ms
from kelr.commands.targets import read_selection
from kelr.commands.topic_errors import topics_failed
from kelr.errors import BadInputError, NotAuthorizedError, PartlyDoneError, UsageError
from kelr.model import (
    LogAnswer,
    NotHeard,
    PartitionState,
    ReplicaLog,
    Selection,
    Target,
    TopicError,
    TopicPartition,
)
from kelr.rescue.archive import Dump, open_dump
from kelr.rescue.choose import Choice, Limits, Wanted, choose
from kelr.rescue.dump import FETCH, TailSource, disk_source, dump, held_on_disk
from kelr.rescue.manifest import Manifest, SavedTail
from kelr.rescue.summary import SavedRecord, TailSummary, records_of, summarize
from kelr.rescue.transactions import Outcome
from kelr.sources.base import Source
from kelr.sources.decisions import decide_partitions
from kelr.sources.disk import DiskCollection, PartitionDirectory, read_brokers
from kelr.sources.records.errors import UnreadableBatchError
from kelr.view.columns import Json
from kelr.view.output import Output
from kelr.view.rescue import RecordRow, TailRow, dump_view, records_view, show_view
from kelr.view.styled import Style, plain, styled

_DISK = "log directory"
_ROWS_AT_ONCE = 500
_MOST_NOTES = 20


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of ``kelr rescue dump``, read."""

    out: Path
    selection: Selection
    everything: bool
    replicas: tuple[int, ...] | None
    from_offset: int | None
    to_offset: int | None
    elect: int | None
    plan: Path | None
    log_directories: tuple[Path, ...]
    overwrite: bool

    @property
    def limits(self) -> Limits:
        return Limits(self.replicas, self.from_offset, self.to_offset)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is to save, and what is known around it."""

    choices: Sequence[Choice]
    cluster_id: str | None
    errors: Sequence[TopicError] = ()
    source: Source | None = None
    plan_id: str | None = None


def dump_records(session: Session, options: DumpOptions) -> None:
    """Save what is to be saved, and show it.

    Raises:
        UsageError: nothing says which partitions, or the file cannot be written.
        PartlyDoneError: some of it could not be read.
    """
    if options.out.exists() and not options.overwrite:
        raise UsageError(f"{options.out} exists already", next_step="give another name, or --overwrite to replace it")
    if options.elect is not None and options.plan is not None:
        raise UsageError("--elect and --plan both say who is to lead", next_step="leave one of them out")
    limits = options.limits
    selection, elects, plan_id = _what(options)
    disks = _read_disks(session, options, selection)
    offline = bool(disks) and not _names_a_source(session)
    found = (
        _on_disks(disks, limits)
        if offline
        else _in_the_cluster(
            session, selection, disks, limits, elects=elects, everywhere=options.elect, plan_id=plan_id
        )
    )
    if options.from_offset is not None and len(found.choices) > 1:
        raise UsageError(
            f"--from-offset is an offset of one partition, and {len(found.choices)} are named",
            next_step="name one partition: TOPIC:3",
        )
    _save_and_show(session, options, found, disks)


def _what(options: DumpOptions) -> tuple[Selection, Mapping[TopicPartition, int], str | None]:
    """(partitions, whom the plan elects, the plan's id)."""
    if options.plan is None:
        if options.selection.is_everything and not options.everything:
            raise UsageError(
                "rescue dump wants to know which partitions",
                next_step="name them: kelr rescue dump orders:1 --out FILE; --all-topic-partitions takes all",
            )
        return options.selection, {}, None
    from kelr.recovery.plan_file import read_plan  # noqa: PLC0415 - only where there is a plan

    saved = read_plan(options.plan)
    elects = {
        one.address: one.elect for one in saved.plan.elections if options.selection.matches(one.topic, one.partition)
    }
    if not elects:
        raise UsageError(f"{options.plan} elects nobody for these partitions", next_step="name others, or none")
    targets = tuple(Target(topic=at.topic, partitions=(at.partition,)) for at in sorted(elects))
    return Selection(targets), elects, saved.plan_id


def _names_a_source(session: Session) -> bool:
    settings = session.settings
    return bool(settings.bootstrap_server or settings.command_config or settings.snapshot)


def _read_disks(session: Session, options: DumpOptions, selection: Selection) -> Sequence[DiskCollection]:
    if not options.log_directories:
        return ()
    with session.progress("replicas read from disk") as progress:
        disks = read_brokers(
            options.log_directories, selection=selection, lineage=True, progress=progress, clock_ms=now_ms
        )
    for disk in disks:
        for warning in disk.warnings:
            session.output.note(f"broker {disk.broker}: {warning}")
    return disks


def _on_disks(disks: Sequence[DiskCollection], limits: Limits) -> _Found:
    """Without a cluster nobody knows what is lost: all that the disks hold, or the offsets that are named."""
    choices = []
    for disk in disks:
        if limits.replicas is not None and disk.broker not in limits.replicas:
            continue
        for address, log in disk.logs.items():
            state = PartitionState(
                topic=address.topic,
                partition=address.partition,
                leader=None,
                leader_epoch=0,
                replicas=(disk.broker,),
                isr=(),
                topic_id=log.topic_id,
            )
            choices.append(_whole_log(state, log.answer, log.directory, limits))
    if not choices:
        raise UsageError("the log directories hold none of these partitions", next_step="name others")
    cluster_ids = {disk.cluster_id for disk in disks if disk.cluster_id is not None}
    if len(cluster_ids) > 1:
        raise BadInputError(f"the log directories are of different clusters: {', '.join(sorted(cluster_ids))}")
    return _Found(choices, next(iter(cluster_ids), None))


def _whole_log(state: PartitionState, answer: LogAnswer, directory: str, limits: Limits) -> Choice:
    try:
        log = answer if isinstance(answer, ReplicaLog) else _damaged(state, answer, directory)
    except (OSError, BadInputError) as error:
        return Choice(state, (), f"the log cannot be read: {error}", failed=True)
    note = "" if isinstance(answer, ReplicaLog) else f"Kafka would not load this log: {answer.detail}"
    start = limits.from_offset if limits.from_offset is not None else log.log_start or 0
    end = log.log_end if limits.to_offset is None else limits.to_offset
    if end <= start:
        return Choice(state, (), note or "nothing to save: the log holds no record of these offsets")
    why = "named outright" if limits.from_offset is not None else "all that the disk holds: no cluster was asked"
    return Choice(state, (Wanted(state, answer.replica, start, end, why, log),), note)


def _damaged(state: PartitionState, answer: NotHeard, directory: str) -> ReplicaLog:
    """What can be read of a log that Kafka would not load. Raises OSError, BadInputError."""
    first, end = held_on_disk(PartitionDirectory(directory, state.address))
    return ReplicaLog(answer.replica, end, log_start=first, source=_DISK, read_at_ms=answer.read_at_ms)


def _in_the_cluster(
    session: Session,
    selection: Selection,
    disks: Sequence[DiskCollection],
    limits: Limits,
    *,
    elects: Mapping[TopicPartition, int],
    everywhere: int | None,
    plan_id: str | None,
) -> _Found:
    """
    Args:
        elects: whom the plan elects.
        everywhere: who is to lead every partition that the plan does not name.
    """
    source = session.source()
    asked: Source = source
    if disks:
        from kelr.sources.collected import CollectedSource, collection_of_disk  # noqa: PLC0415

        asked = CollectedSource(source, [collection_of_disk(disk) for disk in disks])
    choices: list[Choice] = []
    errors: list[TopicError] = []
    with session.progress("replicas' logs read") as progress:
        for page in decide_partitions(asked, selection, clock_ms=now_ms, progress=progress):
            errors.extend(page.snapshot.topic_errors)
            for decision in page.decisions:
                elect = elects.get(TopicPartition(decision.topic, decision.partition), everywhere)
                choices.append(choose(page.snapshot, decision, limits, elect=elect))
    return _Found(choices, source.cluster().cluster_id, errors, source, plan_id)


def _save_and_show(session: Session, options: DumpOptions, found: _Found, disks: Sequence[DiskCollection]) -> None:
    directories = {
        (disk.broker, address): log.directory for disk in disks for address, log in disk.logs.items() if log.directory
    }
    wanted: list[tuple[Wanted, TailSource]] = []
    notes = [(choice.state.address, choice.note, choice.failed) for choice in found.choices if choice.note]
    for choice in found.choices:
        for one in choice.wanted:
            source = _source_of(one, found.source, directories)
            if source is None:
                text = f"offsets {one.from_offset} to {one.to_offset} of replica {one.replica} cannot be read from here"
                notes.append((choice.state.address, text, True))
            else:
                wanted.append((one, source))
    taken_at_ms = now_ms()
    rows: list[TailRow] = []
    manifest: Manifest | None = None
    if wanted:
        with session.progress("offsets saved") as progress:
            manifest = dump(
                options.out,
                wanted,
                cluster_id=found.cluster_id,
                taken_at_ms=taken_at_ms,
                plan_id=found.plan_id,
                overwrite=options.overwrite,
                progress=progress,
            )
        with open_dump(options.out) as saved:
            rows = [tail_row(summarize(saved, tail)) for tail in saved.manifest.tails]
    _show_dump(
        session.output,
        options,
        manifest,
        cluster_id=found.cluster_id,
        taken_at_ms=taken_at_ms,
        rows=rows,
        notes=notes,
    )
    _end(found, manifest, notes, options)


def _source_of(
    one: Wanted, source: Source | None, directories: Mapping[tuple[int, TopicPartition], str]
) -> TailSource | None:
    path = directories.get((one.replica, one.state.address))
    if path is not None and one.log.source == _DISK:
        try:
            return disk_source(PartitionDirectory(path, one.state.address))
        except OSError:
            return None
    from kelr.sources.live import LiveSource  # noqa: PLC0415 - brings the client library along

    if not isinstance(source, LiveSource):
        return None
    live = source
    return TailSource(FETCH, lambda start, end: live.tail(one.state, one.replica, start=start, end=end))


def _show_dump(
    output: Output,
    options: DumpOptions,
    manifest: Manifest | None,
    *,
    cluster_id: str | None,
    taken_at_ms: int,
    rows: Sequence[TailRow],
    notes: Sequence[tuple[TopicPartition, str, bool]],
) -> None:
    head: dict[str, Json] = {
        "file": None if manifest is None else str(options.out),
        "cluster_id": cluster_id,
        "taken_at_ms": taken_at_ms,
        "plan_id": None if manifest is None else manifest.plan_id,
    }
    following = None if manifest is None else ["rescue", "show", str(options.out)]
    said: list[Json] = [{"partition": str(address), "text": text} for address, text, _ in notes]
    with output.listing(dump_view(), head) as listing:
        if rows or not output.format.for_people:
            listing.add(rows)
        listing.finish({"notes": said, "next": None if following is None else _local(following)})
    if output.format.is_document:
        return
    together: dict[tuple[str, bool], list[str]] = {}
    for address, text, failed in notes:
        together.setdefault((text, failed), []).append(str(address))
    for (text, failed), names in list(together.items())[:_MOST_NOTES]:
        output.note(styled(f"{_some(names)}: {text}", Style.NOTICE if failed else Style.PLAIN))
    if len(together) > _MOST_NOTES:
        output.note(f"and {len(together) - _MOST_NOTES} more such notes; -o json has them all")
    if manifest is None:
        output.note("nothing was saved: there is no file")
    if following is not None:
        _next(output, following)


def _end(
    found: _Found,
    manifest: Manifest | None,
    notes: Sequence[tuple[TopicPartition, str, bool]],
    options: DumpOptions,
) -> None:
    if manifest is not None and not manifest.whole:
        partial = sorted({str(tail.address) for tail in manifest.tails if not tail.whole})
        gaps = [gap.text for tail in manifest.tails for gap in tail.gaps]
        if not any(tail.segments for tail in manifest.tails) and all("AUTHORIZATION" in text for text in gaps):
            raise NotAuthorizedError(
                f"nothing could be read of {_some(partial)}: {gaps[0]}",
                next_step="grant READ on the topic, or read the log from its broker's disk with --log-dir",
            )
        raise PartlyDoneError(
            f"not all of these could be read: {_some(partial)}",
            next_step=f"what is missing stands in {options.out}; read it from another replica or from a disk",
        )
    failed = sorted({str(address) for address, _, bad in notes if bad})
    if failed:
        raise PartlyDoneError(
            f"nobody can tell what is to be saved of {_some(failed)}",
            next_step="name --from-replica and --from-offset, one partition at a time",
        )
    if found.errors:
        raise topics_failed(found.errors, some_worked=manifest is not None)


def show_file(output: Output, file: Path, targets: Sequence[str], *, records: bool, full: bool) -> None:
    """Show a rescue file: its tails, or their records.

    Raises:
        BadInputError: it is none, or is not as it was written.
        PartlyDoneError: it does not hold all that was asked for when it was made; after it was shown.
    """
    selection = read_selection(targets)
    with open_dump(file) as dump:
        tails = selected(dump, selection)
        if records:
            with output.listing(records_view(full=full), file_head(dump)) as listing:
                for tail in tails:
                    for rows in _batched(_record_rows(dump, tail)):
                        listing.add(rows)
        else:
            following = ["rescue", "replay", str(file), "--dry-run"]
            with output.listing(show_view(), file_head(dump)) as listing:
                listing.add(tail_row(summarize(dump, tail)) for tail in tails)
                listing.finish({"next": _local(following)})
            if not output.format.is_document:
                _next(output, following)
        if not all(tail.whole for tail in tails):
            partial = sorted({str(tail.address) for tail in tails if not tail.whole})
            raise PartlyDoneError(
                f"{file} does not hold all that was asked for: {_some(partial)}",
                next_step="MISSING says what; read it from another replica or from a disk",
            )


def selected(dump: Dump, selection: Selection) -> Sequence[SavedTail]:
    """The tails of these partitions.

    Raises:
        UsageError: there is none.
    """
    tails = [tail for tail in dump.manifest.tails if selection.matches(tail.topic, tail.partition)]
    if not tails:
        raise UsageError(f"{dump.path} holds none of these partitions", next_step=f"kelr rescue show {dump.path}")
    return tails


def file_head(dump: Dump) -> dict[str, Json]:
    """What documents about a rescue file begin with."""
    manifest = dump.manifest
    return {
        "file": str(dump.path),
        "cluster_id": manifest.cluster_id,
        "taken_at_ms": manifest.taken_at_ms,
        "plan_id": manifest.plan_id,
    }


def tail_row(summary: TailSummary) -> TailRow:
    """A tail as it is shown."""
    tail = summary.tail
    missing = [_gap_text(gap.from_offset, gap.to_offset, gap.text) for gap in tail.gaps]
    return TailRow(
        topic=tail.topic,
        partition=tail.partition,
        replica=tail.replica,
        how=tail.how,
        why=tail.why,
        from_offset=tail.from_offset,
        to_offset=tail.to_offset,
        records=tail.records,
        batches=tail.batches,
        size_bytes=tail.size_bytes,
        epochs=tuple(dict.fromkeys(epoch.epoch for epoch in tail.epochs)),
        first_timestamp_ms=summary.first_timestamp_ms,
        last_timestamp_ms=summary.last_timestamp_ms,
        committed=summary.count(Outcome.COMMITTED),
        aborted=summary.count(Outcome.ABORTED),
        open=summary.count(Outcome.OPEN) + summary.count(Outcome.UNKNOWN),
        producers=summary.producers,
        missing=(*missing, *summary.unreadable),
    )


def _gap_text(start: int, end: int | None, text: str) -> str:
    return f"offsets {start} to {'the end' if end is None else end - 1}: {text}"


def _record_rows(dump: Dump, tail: SavedTail) -> Iterator[RecordRow]:
    try:
        for saved in records_of(dump, tail):
            yield _record_row(saved)
    except UnreadableBatchError as error:
        raise BadInputError(f"{dump.path}, {tail.address}: a batch cannot be read: {error}") from error


def _record_row(saved: SavedRecord) -> RecordRow:
    record, header = saved.record, saved.header
    kind = saved.control_type
    state = kind.name if kind is not None else "-" if saved.outcome is None else saved.outcome.value
    return RecordRow(
        topic=saved.tail.topic,
        partition=saved.tail.partition,
        offset=record.offset,
        leader_epoch=header.partition_leader_epoch,
        timestamp_ms=record.timestamp_ms,
        producer_id=header.producer_id,
        state=state,
        key=record.key,
        value=record.value,
        headers=record.headers,
        control=header.control,
    )


def _batched(rows: Iterator[RecordRow]) -> Iterator[list[RecordRow]]:
    batch: list[RecordRow] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _local(arguments: Sequence[str]) -> str:
    """The next command, of a kind that asks no cluster."""
    import shlex  # noqa: PLC0415

    return shlex.join(["kelr", *arguments])


def _next(output: Output, arguments: Sequence[str]) -> None:
    output.note([*styled("  next:", Style.HEADING), *plain(" " + _local(arguments))])


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
