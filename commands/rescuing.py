"""What ``kelr rescue dump`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kelr.commands.rescue_find import (
    DISK,
    DumpOptions,
    Found,
    in_the_cluster,
    names_a_source,
    on_disks,
    read_disks,
    what_is_meant,
)
from kelr.commands.rescue_show import local_command, say_next, some_names, tail_row
from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.engine.words import plural
from kelr.errors import NotAuthorizedError, PartlyDoneError, UsageError
from kelr.model import TopicPartition
from kelr.rescue.archive import open_dump
from kelr.rescue.choose import Wanted
from kelr.rescue.dump import FETCH, TailSource, disk_source, dump
from kelr.rescue.manifest import Manifest
from kelr.rescue.summary import summarize
from kelr.sources.base import Source
from kelr.sources.disk import DiskCollection, PartitionDirectory
from kelr.view.columns import Json
from kelr.view.output import Output
from kelr.view.rescue import TailRow, dump_view
from kelr.view.styled import Style, styled

_MOST_NOTES = 20


def dump_records(session: Session, options: DumpOptions) -> None:
    """Save what is to be saved, and show it.

    Raises:
        UsageError: nothing says which partitions, or the file cannot be written.
        PartlyDoneError: some of it could not be read.
    """
    if options.out.exists() and not options.overwrite:
        raise UsageError(
            f"{options.out} exists already",
            next_step="give another name, or --overwrite to replace it",
            code="file-exists",
        )
    if options.elect is not None and options.plan is not None:
        raise UsageError("--elect and --plan both say who is to lead", next_step="leave one of them out")
    limits = options.limits
    selection, elects, plan_id = what_is_meant(options)
    disks = read_disks(session, options, selection)
    offline = bool(disks) and not names_a_source(session)
    found = (
        on_disks(disks, limits)
        if offline
        else in_the_cluster(session, selection, disks, limits, elects=elects, everywhere=options.elect, plan_id=plan_id)
    )
    if options.from_offset is not None and len(found.choices) > 1:
        raise UsageError(
            f"--from-offset is an offset of one partition, and {len(found.choices)} are named",
            next_step="name one partition: TOPIC:3",
        )
    _save_and_show(session, options, found, disks)


def _save_and_show(session: Session, options: DumpOptions, found: Found, disks: Sequence[DiskCollection]) -> None:
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
    if path is not None and one.log.source == DISK:
        try:
            return disk_source(PartitionDirectory(path, one.state.address))
        except OSError:
            return None
    from kelr.sources.live import LiveSource  # noqa: PLC0415 - brings the client library along
    from kelr.sources.quorum_source import without_log  # noqa: PLC0415

    live = None if source is None else without_log(source)
    if not isinstance(live, LiveSource):
        return None
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
        listing.finish({"notes": said, "next": None if following is None else local_command(following)})
    if output.format.is_document:
        return
    together: dict[tuple[str, bool], list[str]] = {}
    for address, text, failed in notes:
        together.setdefault((text, failed), []).append(str(address))
    for (text, failed), names in list(together.items())[:_MOST_NOTES]:
        output.note(styled(f"{some_names(names)}: {text}", Style.NOTICE if failed else Style.PLAIN))
    if len(together) > _MOST_NOTES:
        output.note(f"and {len(together) - _MOST_NOTES} more such notes; -o json has them all")
    for row in rows:
        if row.cut_records:
            text = (
                f"{row.topic}:{row.partition}: {plural(row.cut_records, 'record')} that the leader keeps are of"
                " committed transactions whose commit it lacks: these hang, and once they are aborted, consumers with"
                " read_committed lose them, too; they are saved as well, and rescue replay --cut-transactions brings"
                " them back"
            )
            output.note(styled(text, Style.NOTICE))
    if manifest is None:
        output.note("nothing was saved: there is no file")
    if following is not None:
        say_next(output, following)


def _end(
    found: Found,
    manifest: Manifest | None,
    notes: Sequence[tuple[TopicPartition, str, bool]],
    options: DumpOptions,
) -> None:
    if manifest is not None and not manifest.whole:
        partial = sorted({str(tail.address) for tail in manifest.tails if not tail.whole})
        gaps = [gap.text for tail in manifest.tails for gap in tail.gaps]
        if not any(tail.segments for tail in manifest.tails) and all("AUTHORIZATION" in text for text in gaps):
            raise NotAuthorizedError(
                f"nothing could be read of {some_names(partial)}: {gaps[0]}",
                next_step="grant READ on the topic, or read the log from its broker's disk with --log-dir",
            )
        raise PartlyDoneError(
            f"not all of these could be read: {some_names(partial)}",
            next_step=f"what is missing stands in {options.out}; read it from another replica or from a disk",
        )
    failed = sorted({str(address) for address, _, bad in notes if bad})
    if failed:
        raise PartlyDoneError(
            f"nobody can tell what is to be saved of {some_names(failed)}",
            next_step="name --from-replica and --from-offset, one partition at a time",
        )
    if found.errors:
        raise topics_failed(found.errors, some_worked=manifest is not None)
