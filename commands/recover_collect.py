"""What ``kelr recover collect`` does once its options are read; loaded only when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kelr.commands.session import Session, now_ms
from kelr.commands.topic_errors import topics_failed
from kelr.errors import UsageError
from kelr.model import LogUnavailable, Selection, TopicError, TopicPartition
from kelr.recovery.gather import selection_of
from kelr.sources.base import Source
from kelr.view.describe import NOT_KNOWN_WITHOUT_CONTROLLER, NOTHING_READ
from kelr.view.saved import Collected, show_collection

_LOCK_HELD = "the broker ran while its log was read: its log may have grown since, and no plan stands on it"


def collect_live(session: Session, selection: Selection, out: Path, *, everything: bool, overwrite: bool) -> None:
    """Save what the cluster and its live replicas tell of these partitions, logs and lineage included.

    Without a selection, of every partition that is leaderless or unsafe.
    """
    from kelr.sources.snapshot_file import read_snapshot, save_snapshot  # noqa: PLC0415 - brings pydantic along

    _check_free(out, overwrite=overwrite)
    source = session.source()
    named = tuple(map(str, selection.targets))
    errors: list[TopicError] = []
    if selection.is_everything and not everything:
        unsafe, read = _unsafe(source, errors)
        if not unsafe:
            if errors:
                raise topics_failed(errors, some_worked=True)
            well = "every partition has its leader, and min ISR is met"
            if source.cluster().controller_silence is not None:
                well = NOT_KNOWN_WITHOUT_CONTROLLER
            session.output.note(f"{well if read else NOTHING_READ}: nothing was written")
            return
        selection = selection_of(unsafe)
    with session.progress("replicas' logs read") as progress:
        saved = save_snapshot(
            source,
            selection,
            out,
            now_ms=now_ms(),
            with_logs=lambda _: True,
            lineage=True,
            overwrite=overwrite,
            progress=progress,
        )
    session.silence_told = source.cluster().controller_silence is not None  # of the gaps
    answers = [answer for found in read_snapshot(out).logs.values() for answer in found]
    silent = sum(isinstance(answer, LogUnavailable) for answer in answers)
    part = Collected(None, len(answers) - silent, silent)
    show_collection(
        session.output, str(out), [part], notes=saved.gaps, following=("explain", *named, "--snapshot", str(out))
    )
    errors.extend(saved.topic_errors)
    if errors:
        raise topics_failed(errors, some_worked=saved.partitions > 0)


def collect_disks(
    session: Session,
    directories: Sequence[Path],
    selection: Selection,
    out: Path,
    *,
    overwrite: bool,
    following: Sequence[str] | None = None,
) -> None:
    """Save what brokers' log directories on this machine hold; asks no cluster and changes nothing.

    Args:
        following: the next command, after ``kelr``; a plan that counts the file where none is given.
    """
    from kelr.sources.collected import Collection, collection_of_disk, save_collection  # noqa: PLC0415
    from kelr.sources.disk import read_brokers  # noqa: PLC0415

    _check_free(out, overwrite=overwrite)
    with session.progress("replicas read") as progress:
        disks = read_brokers(
            directories,
            selection=None if selection.is_everything else selection,
            progress=progress,
            clock_ms=now_ms,
        )
    collections: list[Collection] = [collection_of_disk(disk) for disk in disks]
    save_collection(collections, out, overwrite=overwrite)
    plan = ("recover", "plan", *map(str, selection.targets), "--logs", str(out), "--out", "plan.json")
    _show(session, collections, out, notes=(), following=following or plan)


def merge_files(session: Session, files: Sequence[Path], out: Path, *, overwrite: bool) -> None:
    """Make one file of several hosts' collections.

    Raises:
        BadInputError: a file is no collection.
        RefusedError: they are of different clusters.
    """
    from kelr.sources.collected import merge, read_collection, save_collection  # noqa: PLC0415 - brings pydantic along

    _check_free(out, overwrite=overwrite)
    collections = [read_collection(path) for path in files]
    for one in collections:
        if one.snapshot is not None:
            raise UsageError(
                f"{one.name} is a snapshot of a cluster: only what was read from disks is merged",
                next_step="leave it out, and give it beside the merged file with --snapshot",
            )
    merged = merge(collections)
    whole = merged.as_collection(str(out), min(one.taken_at_ms for one in collections))
    save_collection(whole, out, overwrite=overwrite)
    plan = ("recover", "plan", "--logs", str(out), "--out", "plan.json")
    _show(session, [whole], out, notes=merged.conflicts, following=plan)


def _show(
    session: Session,
    collections: Sequence[object],
    out: Path,
    *,
    notes: Sequence[str],
    following: Sequence[str],
) -> None:
    from kelr.sources.collected import Collection  # noqa: PLC0415
    from kelr.sources.disk.collection import clean_by_its_marks  # noqa: PLC0415

    parts: list[Collected] = []
    for one in collections:
        assert isinstance(one, Collection)
        for disk in one.disks:
            answers = [log.answer for logs in one.logs.values() for log in logs if log.answer.replica == disk.broker]
            silent = sum(isinstance(answer, LogUnavailable) for answer in answers)
            clean = clean_by_its_marks(disk.directories)
            warnings = (*([_LOCK_HELD] if disk.running else []), *disk.warnings)
            parts.append(Collected(disk.broker, len(answers) - silent, silent, clean, disk.running, warnings))
    show_collection(session.output, str(out), parts, notes=notes, following=following)


def _unsafe(source: Source, errors: list[TopicError]) -> tuple[list[TopicPartition], int]:
    """Every partition without a live leader, or under min ISR, and how many there are in all; topics that could not be
    described join the errors."""
    from kelr.sources.decisions import is_unsafe, page_snapshot  # noqa: PLC0415

    found: list[TopicPartition] = []
    read = 0
    for page in source.pages(Selection()):
        errors += page.topic_errors
        read += len(page.partitions)
        snapshot = page_snapshot(source, page, now_ms)
        found += [state.address for state in snapshot.partitions if is_unsafe(snapshot, state)]
    return found, read


def _check_free(out: Path, *, overwrite: bool) -> None:
    """Before minutes are spent on reading logs. Raises UsageError."""
    if out.exists() and not overwrite:
        raise UsageError(
            f"{out} exists already", next_step="give another name, or --overwrite to replace it", code="file-exists"
        )
