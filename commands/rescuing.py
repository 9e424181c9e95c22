"""What ``kelr rescue dump`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kelr.commands.changing import who_changes
from kelr.commands.disk_logs import only_disks_read, silence_of_cluster
from kelr.commands.recovering import (
    Disks,
    Rescue,
    Saved,
    rescue_commands,
    saved_before,
    say_other_rescues,
)
from kelr.commands.rescue_find import (
    DumpOptions,
    Found,
    in_the_cluster,
    names_a_source,
    on_disks,
    read_disks,
    what_is_meant,
)
from kelr.commands.rescue_show import local_command, some_names, tail_row
from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.engine.advice.commands import DIRECTORY
from kelr.engine.words import plural
from kelr.errors import BadInputError, NotAuthorizedError, OtherClusterError, PartlyDoneError, RefusedError, UsageError
from kelr.model import LOG_DIRECTORY, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat
from kelr.recovery.actor import whoever_runs_this
from kelr.recovery.audit import append, by
from kelr.recovery.places import state_directory
from kelr.recovery.plan_file import read_plan
from kelr.rescue.archive import Dump, open_dump
from kelr.rescue.choose import Wanted
from kelr.rescue.dump import FETCH, TailSource, disk_source, dump
from kelr.rescue.known import DUMP
from kelr.rescue.manifest import Manifest, SavedTail
from kelr.rescue.summary import summarize
from kelr.sources.base import Source
from kelr.sources.collected import collection_of_disk, merge, read_collection
from kelr.sources.disk import DiskCollection, LogDirectory, PartitionDirectory
from kelr.sources.disk.names import printable
from kelr.view.columns import Json
from kelr.view.output import Output
from kelr.view.plan_words import partitions_in_words, targets_of
from kelr.view.rescue import TailRow, dump_view
from kelr.view.styled import Style, plain, styled

_MOST_NOTES = 20
_OTHER_WAYS = (
    f"once the broker is down, the same command on its host with --log-dir {DIRECTORY} saves what its disk holds."
    f" Where only that log's end is to be known: kelr recover collect --log-dir {DIRECTORY} --out FILE there, then"
    " --logs FILE here. --elect BROKER says who is to lead; --from-replica and --from-offset say what to save, one"
    " partition at a time"
)


def dump_records(session: Session, options: DumpOptions) -> None:
    """Save what is to be saved, and show it.

    Raises:
        UsageError: nothing says which partitions, or the file cannot be written.
        OtherClusterError: the plan is for another cluster.
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
    collections = [read_collection(path) for path in options.logs]
    named = names_a_source(session)
    silence = silence_of_cluster(session) if disks and named else None
    if disks and (silence is not None or not named):
        merged = merge([*map(collection_of_disk, disks), *collections])
        found = on_disks(disks, limits, elects=elects, everywhere=options.elect, plan_id=plan_id, merged=merged)
    else:
        found = in_the_cluster(
            session, selection, disks, collections, limits, elects=elects, everywhere=options.elect, plan_id=plan_id
        )
    if options.plan is not None:
        _refuse_another_cluster(options.plan, found)
    partitions = {choice.state.address for choice in found.choices}
    if options.from_offset is not None and len(partitions) > 1:
        raise UsageError(
            f"--from-offset is an offset of one partition, and {len(partitions)} are named",
            next_step="name one partition: TOPIC:3",
        )
    _save_and_show(session, options, replace(found, silence=silence), disks)


def _refuse_another_cluster(path: Path, found: Found) -> None:
    """Raises KelrError where what was found is of another cluster than the plan."""
    wanted = read_plan(path).cluster_id
    if None in {wanted, found.cluster_id} or wanted == found.cluster_id:
        return
    if found.source is not None:
        raise OtherClusterError(str(path), wanted, found.cluster_id, code="plan-other-cluster", reads=True)
    raise BadInputError(
        f"{path} is for cluster {wanted}, and these log directories are of cluster {found.cluster_id}",
        next_step="name the log directories of that cluster's brokers",
    )


def _save_and_show(session: Session, options: DumpOptions, found: Found, disks: Sequence[DiskCollection]) -> None:
    directories = {
        (disk.broker, address): log.directory for disk in disks for address, log in disk.logs.items() if log.directory
    }
    wanted: list[tuple[Wanted, TailSource]] = []
    notes = [(choice.state.address, choice.note, choice.failed) for choice in found.choices if choice.note]
    session.output = replace(
        session.output, log_flags=tuple(part for path in options.logs for part in ("--logs", str(path)))
    )
    for choice in found.choices:
        for one in choice.wanted:
            source = _source_of(one, found.source, directories)
            if source is None:
                text = f"offsets {one.from_offset} to {one.to_offset} of replica {one.replica} cannot be read from here"
                notes.append((choice.state.address, text, True))
            else:
                wanted.append((one, source))
    for one in (one for choice in found.choices for one in choice.covered) if wanted else ():
        source = _source_of(one, found.source, directories)
        wanted += [] if source is None else [(one, source)]
    taken_at_ms = now_ms()
    read = frozenset(disk.broker for disk in disks if options.replicas is None or disk.broker in options.replicas)
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
            rows = [tail_row(summarize(saved, tail)) for tail in saved.manifest.saved]
            _remember(session, saved, found)
    asked = [disk for disk in disks if options.replicas is None or disk.broker in options.replicas]
    unread = [directory for disk in asked for directory in disk.unreadable]
    aside = [(one, one.address in disk.logs) for disk in asked for one in disk.unused]
    for left_aside, beside_it in aside:
        text = f"not saved: {printable(left_aside.path)} ({left_aside.kind}, not the replica itself)"
        if not beside_it:
            name = f"{left_aside.address.topic}-{left_aside.address.partition}"
            text += f"; to save it, name a copy of that log directory with this one renamed to {name}"
        notes.append((left_aside.address, text, not beside_it))
    is_whole = (manifest is None or manifest.whole) and not any(failed for _, _, failed in notes) and not unread
    left: list[Rescue] = []
    if options.plan is not None and found.source is not None:
        left = _rescues_left(options, options.plan, found.source, read)
    following: tuple[str, ...] | None = left[0].words if left else None
    if is_whole and not found.errors:
        following = _following(options, found, left, saved=manifest is not None)
    _show_dump(
        session.output,
        options,
        manifest,
        cluster_id=found.cluster_id,
        taken_at_ms=taken_at_ms,
        rows=rows,
        notes=notes,
        following=following,
        left=left,
        deleted={choice.state.address: choice.deleted for choice in found.choices if choice.deleted},
        uncompared=found.source is None and options.elect is None and not options.plan and options.from_offset is None,
        all_saved=is_whole and not aside,
    )
    _end(found, manifest, notes, options, unread)


def _remember(session: Session, saved: Dump, found: Found) -> None:
    """Lines in the audit log, so that whoever asks what was lost is told of the file. A host that can write none has
    saved the records all the same."""
    live = found.source is not None and found.source.taken_at_ms is None
    states = {choice.state.address: choice.state for choice in found.choices}
    tails: dict[TopicPartition, list[SavedTail]] = {}
    for tail in saved.manifest.tails:
        if tail.records:
            tails.setdefault(tail.address, []).append(tail)
    who = by(who_changes(session) if live else whoever_runs_this())
    at_ms = now_ms()
    lines = [
        AuditRecord(
            at_ms=at_ms,
            what=AuditWhat.RESCUE,
            command=DUMP,
            topic=at.topic,
            partition=at.partition,
            cluster_id=saved.manifest.cluster_id,
            **who,  # type: ignore[arg-type]  # its values go to fields of their type
            result="done",
            plan_id=saved.manifest.plan_id,
            before={"leader": states[at].leader, "leader_epoch": states[at].leader_epoch} if live else {},
            evidence=[
                {
                    "file": str(saved.path.absolute()),
                    "sha256": saved.sha256,
                    "source": str(at),
                    "replica": tail.replica,
                    "from_offset": tail.from_offset,
                    "to_offset": tail.to_offset,
                }
                for tail in read
            ],
            text=f"{plural(sum(tail.records for tail in read), 'record')} saved in {saved.path.name}",
        )
        for at, read in tails.items()
    ]
    try:
        append(state_directory(), *lines)
    except (UsageError, RefusedError) as error:
        session.output.note(f"the audit log does not tell of {saved.path}: {error.message}")


def _following(options: DumpOptions, found: Found, left: Sequence[Rescue], *, saved: bool) -> tuple[str, ...] | None:
    """The next command: the election that the records were saved before; replaying them only where somebody leads."""
    chosen = [choice for choice in found.choices if choice.wanted] or list(found.choices)
    targets = targets_of(choice.state.address for choice in chosen)
    if found.source is None or any(choice.leader is None for choice in chosen):
        return ("rescue", "show", str(options.out)) if saved else None
    if options.plan is not None:
        then = "verify" if all(choice.leads for choice in chosen) else "apply"
        return left[0].words if left else ("recover", then, str(options.plan))
    if all(choice.leads for choice in chosen):
        return ("rescue", "replay", str(options.out), "--dry-run") if saved else ("explain", *targets)
    leaders, live = {choice.leader for choice in chosen}, set(found.source.cluster().live)
    # Where somebody else leads there is nothing to elect.
    led = any(choice.state.leader in live for choice in chosen)
    if len(leaders) == 1 and leaders <= live and not led:
        return ("elect", "--election-type", "designation", "--designate", str(*leaders), *targets)
    return ("explain", *targets)


def _rescues_left(options: DumpOptions, path: Path, source: Source, read: frozenset[int]) -> list[Rescue]:
    """What else saves what the plan gives up, after this run and those whose files are here.

    Args:
        read: the brokers whose disks this run has read.
    """
    plan = read_plan(path)
    before = saved_before(plan, path)
    saved = Saved(before.answered or options.replicas is None, before.disks | read)
    hosts = {broker.id: broker.host for broker in source.cluster().brokers if broker.host}
    return rescue_commands(plan, path, Disks(hosts=hosts), saved)


def _source_of(
    one: Wanted, source: Source | None, directories: Mapping[tuple[int, TopicPartition], str]
) -> TailSource | None:
    path = one.directory or directories.get((one.replica, one.state.address))
    if path is not None and one.log.source == LOG_DIRECTORY:
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
    following: Sequence[str] | None,
    left: Sequence[Rescue],
    uncompared: bool,
    all_saved: bool,
    deleted: Mapping[TopicPartition, int],
) -> None:
    head: dict[str, Json] = {
        "file": None if manifest is None else str(options.out),
        "cluster_id": cluster_id,
        "taken_at_ms": taken_at_ms,
        "plan_id": None if manifest is None else manifest.plan_id,
    }
    said: list[Json] = [{"partition": str(address), "text": text} for address, text, _ in notes]
    said += [{"partition": str(at), "text": _deleted_text(count)} for at, count in deleted.items()]
    with output.listing(dump_view(), head) as listing:
        if rows or not output.format.for_people:
            listing.add(rows)
        listing.finish({"notes": said, "next": None if following is None else _command(output, following)})
    if output.format.is_document:
        return
    together = _together(notes)
    if manifest is None or manifest.whole:
        told_last = _not_told(together)[:1]  # by the error that this ends with
        together = {key: names for key, names in together.items() if (key, names) not in told_last}
    for (text, failed), names in list(together.items())[:_MOST_NOTES]:
        output.note(styled(f"{', '.join(targets_of(names))}: {text}", Style.NOTICE if failed else Style.PLAIN))
    if deleted:
        output.note(f"{', '.join(targets_of(deleted))}: {_deleted_text(sum(deleted.values()))}")
    if len(together) > _MOST_NOTES:
        output.note(f"and {len(together) - _MOST_NOTES} more such notes; -o json has them all")
    for row in rows:
        if row.cut_records:
            text = (
                f"{row.topic}:{row.partition}: the leader keeps {plural(row.cut_records, 'record')} of committed"
                " transactions and lacks their commit. These transactions hang; once they are aborted, consumers with"
                " read_committed lose the records. They are saved, too: rescue replay --cut-transactions produces them"
                " again"
            )
            output.note(styled(text, Style.NOTICE))
    away = {TopicPartition(row.topic, row.partition): row.compacted_away for row in rows if row.compacted_away}
    if away:
        where, count = ", ".join(targets_of(away)), plural(sum(away.values()), "offset")
        output.note(
            f"{where}: {count} without a record. They are not lost: compaction removed them, as newer records of their"
            " keys follow"
        )
    output.note(_in_all(rows, uncompared, all_saved) if manifest is not None else "nothing was saved: there is no file")
    if following is not None and options.plan is not None and DIRECTORY in following:
        say_other_rescues(output, left, said=[following])
        apply = output.next_command(("recover", "apply", str(options.plan)))
        output.note(f"then, or where that disk cannot be read: {apply}")
    if following is not None:
        output.note([*styled("  next:", Style.HEADING), *plain(" " + _command(output, following))])


_Notes = Mapping[tuple[str, bool], Sequence[TopicPartition]]
"""By what a note says, and whether that is that nobody can tell what is to be saved: the partitions it is about."""


def _together(notes: Sequence[tuple[TopicPartition, str, bool]]) -> _Notes:
    together: dict[tuple[str, bool], list[TopicPartition]] = {}
    for address, text, failed in notes:
        together.setdefault((text, failed), []).append(address)
    return together


def _not_told(together: _Notes) -> list[tuple[tuple[str, bool], Sequence[TopicPartition]]]:
    """The notes that say that nobody can tell what is to be saved."""
    return [(key, names) for key, names in together.items() if key[1]]


def _deleted_text(offsets: int) -> str:
    return (
        f"{plural(offsets, 'offset')} not saved: DeleteRecords or retention deleted them on purpose. One log still"
        " holds them; another one that held the same begins after them"
    )


def _command(output: Output, following: Sequence[str]) -> str:
    return local_command(following) if following[:2] == ("rescue", "show") else output.next_command(following)


def _in_all(rows: Sequence[TailRow], uncompared: bool, all_saved: bool) -> str:
    """How many records were saved, and where from; `uncompared`: nobody said with which log to compare them."""
    places: dict[str, int] = {}
    for row in rows:
        place = f"broker {row.replica}" if row.how == FETCH else f"the disk of broker {row.replica}"
        places[place] = places.get(place, 0) + row.records
    origins = ", ".join(f"{count:,} from {place}" for place, count in places.items())
    count = len({(row.topic, row.partition) for row in rows})
    text = f"In all: {plural(sum(places.values()), 'record')} of {partitions_in_words(count)} saved: {origins}."
    all_of_it = (
        f" Without a cluster nothing tells what is lost, so all {'is' if all_saved else 'that could be read is'} saved."
        " --elect BROKER compares the disks with that broker's."
    )
    return f"{text}{all_of_it if uncompared else ''}"


def _end(
    found: Found,
    manifest: Manifest | None,
    notes: Sequence[tuple[TopicPartition, str, bool]],
    options: DumpOptions,
    unread: Sequence[LogDirectory],
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
    failed = _not_told(_together(notes))
    if failed:
        ((why, _), names), others = failed[0], {at for _, where in failed[1:] for at in where}
        more = f"; {', '.join(targets_of(others))} for other reasons, each named above" if others else ""
        raise PartlyDoneError(
            f"not all that is to be saved is known: {', '.join(targets_of(names))}: {why}{more}",
            next_step=_OTHER_WAYS,
        )
    if unread:
        raise PartlyDoneError(
            f"any replica may be in log directories that could not be read: {some_names([one.path for one in unread])}",
            next_step="mend what is named above, or name a copy of them; then the same command again",
        )
    if found.errors:
        raise topics_failed(found.errors, some_worked=manifest is not None)
    if found.silence is not None:
        raise only_disks_read(found.silence)
