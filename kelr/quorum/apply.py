"""Carrying a plan out: the new controller's directory is made beside the old one, read again, and put in its place.

Order: journal, the new directory with every byte on the disk, read again, journal, the old directory renamed, the new
one in its place, journal. Each step looks at what is there, so that a run that was cut short is finished by the same
command. Nothing is started, and nothing is deleted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from kelr.durable import AppendOnlyFile, read_lines
from kelr.engine.words import plural
from kelr.errors import BadInputError, PartlyDoneError, RefusedError
from kelr.files import FILES, Files
from kelr.model.checkup import AddressState
from kelr.quorum.archive import LOG_DIRECTORY, Archive, digest_of
from kelr.quorum.assess import Verdict
from kelr.quorum.copies import CopyKey, MetadataCopy
from kelr.quorum.plan import QuorumPlan, digest_of_file, log_files
from kelr.quorum.reading import Collected, read_directory
from kelr.recovery.places import cluster_directory
from kelr.replay.records import Voters
from kelr.sources.disk.files import GarbledError, MetaProperties, is_locked, meta_properties
from kelr.sources.disk.names import META_PROPERTIES, replica_name
from kelr.sources.metadata_log.pieces import Holder
from kelr.sources.metadata_log.reading import read_batches

JOURNALS = "quorum"
_CHUNK_BYTES = 1024 * 1024
_NAMED = 10
_DIRECTORY_MODE, _FILE_MODE = 0o755, 0o644


@dataclass(frozen=True, slots=True)
class Statement:
    """What somebody states who carries the plan out."""

    never_start: Collection[int] = ()
    """Old controllers that will never start again."""
    missing: Collection[int] = ()
    """Nodes that were not read, and that are done without."""
    topics: Collection[str] = ()
    """Topics that a stale copy may set aside, bring back or cut."""
    data_copied: Collection[int] = ()
    """Brokers that are stopped, and whose data directories are copied."""


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of a rescue."""

    target: Path
    new: Path
    saved: Path

    @classmethod
    def of(cls, plan: QuorumPlan) -> Places:
        target = Path(plan.target.directory)
        return cls(
            target,
            target.with_name(f"{target.name}.kelr-new-{plan.plan_id}"),
            target.with_name(f"{target.name}.kelr-old-{plan.plan_id}"),
        )


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done."""

    target: str
    saved: str | None
    """Where the old directory is now; None: there was none."""
    journal: str


def check_statement(plan: QuorumPlan, statement: Statement) -> None:
    """Raises RefusedError where something has to be stated yet; nothing was changed."""
    forgotten = sorted(set(plan.never_start) - set(statement.never_start))
    if forgotten:
        ids = ",".join(map(str, plan.never_start))
        raise RefusedError(
            f"nothing changed: it is not stated that old controllers {', '.join(map(str, forgotten))} never start"
            " again; if one does, two controllers lead",
            next_step=f"make sure of it, then add --never-start {ids}",
            code="quorum-statement-missing",
        )
    unnamed = sorted(set(plan.missing) - set(statement.missing))
    if plan.verdict is not Verdict.PROVED and unnamed:
        raise RefusedError(
            f"nothing changed: whether nodes {', '.join(map(str, unnamed))}, which were not read whole, or ran"
            " meanwhile, hold more records is UNKNOWN",
            next_step=f"stop and collect them; if they are lost for good: --missing {','.join(map(str, plan.missing))}",
            code="quorum-statement-missing",
        )
    _check_stale(plan, statement)


def _check_stale(plan: QuorumPlan, statement: Statement) -> None:
    topics = sorted(set(plan.stale_topics) - set(statement.topics))
    if topics:
        raise RefusedError(
            f"nothing changed: the copy is stale. {plural(len(topics), 'topic')} would be set aside, come back, or lose"
            f" records: {', '.join(topics[:_NAMED])}{' and more' if topics[_NAMED:] else ''}",
            next_step="if nothing better is left, name them with --topics as kelr quorum plan printed it",
            code="quorum-statement-missing",
        )
    copied = {str(one) for one in (*statement.data_copied, *plan.missing)}
    brokers = [one for one in plan.stopped_brokers if one not in copied]
    if brokers:
        raise RefusedError(
            f"nothing changed: it is not stated that the data directories of brokers {', '.join(brokers)} are copied;"
            " led by a stale copy they truncate records",
            next_step=f"stop every broker, copy their directories, then add --data-copied {','.join(brokers)}",
            code="quorum-statement-missing",
        )


def check_addresses(plan: QuorumPlan, probe: Callable[[str], AddressState]) -> None:
    """Raises RefusedError where a controller may run, or a broker that was not collected; nothing was changed."""
    for address in plan.controller_addresses:
        if probe(address) is AddressState.OPEN:
            raise RefusedError(
                f"nothing changed: something accepts connections at {address}, where a controller is or was",
                next_step="stop every controller, the new one included, and try again",
                code="quorum-controller-runs",
            )
    for broker, addresses in plan.unread_brokers.items():
        if any(probe(address) is AddressState.OPEN for address in addresses):
            raise RefusedError(
                f"nothing changed: broker {broker} runs, and its metadata log and data are not collected",
                next_step="run kelr quorum collect on its host, and plan again with that file",
            )
    for broker, addresses in plan.stopped_brokers.items():
        if any(probe(address) is AddressState.OPEN for address in addresses):
            raise RefusedError(
                f"nothing changed: broker {broker} runs; led by a stale copy it exits, or deletes topics",
                next_step="stop every broker, copy their data directories, collect them and plan again",
                code="quorum-brokers-run",
            )


def check_target(plan: QuorumPlan, files: Files = FILES, *, locked: Callable[[Path], bool | None] = is_locked) -> None:
    """Raises RefusedError where the directory is in use, another node's, or a broker's; nothing was changed."""
    target = Path(plan.target.directory)
    if not files.exists(target.parent):
        raise BadInputError(f"{target.parent} is not there", next_step="make the directory above the new one")
    if not files.exists(target):
        return
    if files.ismount(target):
        raise RefusedError(
            f"nothing changed: {target} is a mount point, which cannot be renamed",
            next_step="plan with a directory below it, and name that in log.dirs",
        )
    if locked(target) is not False:
        raise RefusedError(
            f"nothing changed: a process holds the lock of {target}, or that cannot be told",
            next_step="stop the controller, and run kelr as a user who may read its files",
        )
    names = files.listdir(target)
    of_broker = [name for name in names if name != LOG_DIRECTORY and replica_name(name) is not None]
    if of_broker:
        raise RefusedError(
            f"nothing changed: {target} is a broker's: it holds {of_broker[0]}",
            next_step="plan with a directory of its own for the new controller",
        )
    if META_PROPERTIES in names:
        _check_owner(plan, target, files)
    elif names:
        raise RefusedError(
            f"nothing changed: {target} holds {sorted(names)[0]}, and no {META_PROPERTIES}: it is no node's directory",
            next_step="plan with a directory that is empty or not there",
        )


def _check_owner(plan: QuorumPlan, target: Path, files: Files) -> None:
    found = read_node(target, files)
    if found.cluster_id not in {None, plan.cluster_id} or found.broker not in {None, plan.target.node}:
        raise RefusedError(
            f"nothing changed: {target} is of node {found.broker} of cluster {found.cluster_id}",
            next_step=f"plan with a directory of node {plan.target.node}, or one that is not there",
        )


def read_node(directory: Path, files: Files) -> MetaProperties:
    """Whose directory it is. Raises BadInputError."""
    path = directory / META_PROPERTIES
    try:
        with files.reader(path) as file:
            return meta_properties(file.read(_CHUNK_BYTES))
    except OSError as error:
        raise BadInputError(f"{path} cannot be read: {error.strerror or error}", next_step="check the path") from error
    except GarbledError as error:
        raise BadInputError(f"{path}: {error}", next_step="look at the directory") from error


def archive_of(plan: QuorumPlan, collected: Collected) -> tuple[Archive, str]:
    """Where the source's bytes are, and its folder there.

    Raises:
        RefusedError: no file that was given has them as they were planned with.
    """
    key = _key_of(plan, collected)
    archive, node = collected.sources[key]
    return archive, node.place


def copy_of(plan: QuorumPlan, collected: Collected) -> MetadataCopy:
    """The copy that the plan was made of. Raises RefusedError, as `archive_of`."""
    key = _key_of(plan, collected)
    return next(one for one in collected.copies if one.key == key)


def _key_of(plan: QuorumPlan, collected: Collected) -> CopyKey:
    for key, (_, node) in collected.sources.items():
        if node.node == plan.source.node and set(plan.source.files) <= set(node.files):
            return key
    raise RefusedError(
        f"nothing changed: no collection that was given holds the copy of node {plan.source.node} as it was planned",
        next_step="give the file of kelr quorum collect that the plan was made of, unchanged",
    )


def journal_path(plan: QuorumPlan, state_directory: Path) -> Path:
    """Where the journal of this plan is, on the host where it is carried out."""
    return cluster_directory(state_directory, plan.cluster_id) / JOURNALS / f"{plan.plan_id}.jsonl"


def read_statement(plan: QuorumPlan, state_directory: Path, files: Files = FILES) -> Statement | None:
    """What was stated when the plan was carried out last, by its journal; None: there is none on this host.

    Raises:
        BadInputError: the journal cannot be read.
    """
    path = journal_path(plan, state_directory)
    lines = read_lines(path, "journal", files) if files.exists(path) else ()
    stated = [line["stated"] for _, line in lines if "stated" in line]
    return Statement(**{name: tuple(named) for name, named in stated[-1].items()}) if stated else None


def apply_plan(
    plan: QuorumPlan,
    archive: Archive,
    place: str,
    statement: Statement,
    *,
    state_directory: Path,
    now_ms: int,
    files: Files = FILES,
) -> Applied:
    """Make the new controller's directory. The checks must have been made; run again, it finishes what it began.

    Raises:
        RefusedError: another kelr is at work, or what was written is not what was planned.
        PartlyDoneError: the disk failed; what is where is named.
        UsageError: the journal cannot be written.
    """
    places, wanted = Places.of(plan), log_files(plan, archive, place)
    path = journal_path(plan, state_directory)
    stated = {one.name: sorted(getattr(statement, one.name)) for one in fields(Statement)}
    with AppendOnlyFile(path, files) as journal:
        begin = {"what": "begin", "plan": plan.plan_id, "at_ms": now_ms, "target": str(places.target)}
        journal.append({**begin, "stated": stated})
        try:
            if not _is_in_place(places, wanted, files):
                _build(places, wanted, files)
                _read_again(plan, places.new, wanted, files)
                journal.append({"what": "built", "new": str(places.new), "saved": str(places.saved)})
                _put_in_place(places, files)
            # Also where an earlier run has renamed it: that one may have been killed before the names were on the disk.
            sync_directory(places.target.parent, files)
        except OSError as error:
            raise PartlyDoneError(
                f"{error.filename or places.target}: {error.strerror or error}; the old directory is"
                f" {places.saved if _there(places.saved, files) else places.target}",
                next_step="make room or mend the disk, then run the same command again",
            ) from error
        journal.append({"what": "done"})
        saved = str(places.saved) if files.exists(places.saved) else None
    return Applied(str(places.target), saved, str(path))


def _there(path: Path, files: Files) -> bool:
    try:
        return files.exists(path)
    except OSError:
        return False


_Wanted = Mapping[str, tuple[Holder | None, int, bytes]]


def _is_in_place(places: Places, wanted: _Wanted, files: Files) -> bool:
    """Whether an earlier run has done it all: the target holds what is wanted, and nothing is left to be renamed."""
    if files.exists(places.new) or not files.exists(places.target / LOG_DIRECTORY):
        return False
    try:
        return all(_same(places.target / name, one, files) for name, one in wanted.items())
    except FileNotFoundError:
        return False


def _same(path: Path, wanted: tuple[Holder | None, int, bytes], files: Files) -> bool:
    content = FileHolder(path, files)
    return content.size_bytes == wanted[1] + len(wanted[2]) and digest_of(content) == digest_of_file(*wanted)


def _build(places: Places, wanted: _Wanted, files: Files) -> None:
    inside = places.new / LOG_DIRECTORY
    owner = files.stat(places.target if files.exists(places.target) else places.target.parent)
    for directory in (places.new, inside):
        if not files.exists(directory):
            files.mkdir(directory, _DIRECTORY_MODE)
        _own(directory, owner, files)
    for directory, names in ((places.new, _names(wanted, "")), (inside, _names(wanted, f"{LOG_DIRECTORY}/"))):
        for name in files.listdir(directory):
            if name not in names and directory / name != inside:
                files.unlink(directory / name)  # of an earlier run that was cut short
    for name, (content, size_bytes, behind) in sorted(wanted.items()):
        _write(places.new / name, content, size_bytes, behind, files)
        _own(places.new / name, owner, files)
    for directory in (inside, places.new, places.new.parent):
        sync_directory(directory, files)


def _names(wanted: _Wanted, prefix: str) -> frozenset[str]:
    return frozenset(name.removeprefix(prefix) for name in wanted if name.startswith(prefix))


def _own(path: Path, owner: os.stat_result, files: Files) -> None:
    """Kafka's user has to write it: whoever owns the directory that it takes the place of."""
    now = files.stat(path)
    if (now.st_uid, now.st_gid) != (owner.st_uid, owner.st_gid):
        files.chown(path, owner.st_uid, owner.st_gid)


def _write(path: Path, content: Holder | None, size_bytes: int, behind: bytes, files: Files) -> None:
    descriptor = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    try:
        at = 0
        while content is not None and at < size_bytes:
            data = content.read(at, min(_CHUNK_BYTES, size_bytes - at))
            if not data:
                raise OSError(0, "the collection is shorter than it was", str(path))
            _write_all(descriptor, data, files)
            at += len(data)
        _write_all(descriptor, behind, files)
        files.fsync(descriptor)
    finally:
        files.close(descriptor)


def _write_all(descriptor: int, data: bytes, files: Files) -> None:
    while data:
        data = data[files.write(descriptor, data) :]


def sync_directory(directory: Path, files: Files) -> None:
    """Put the names in it on the disk. Raises OSError."""
    descriptor = files.open(directory, os.O_RDONLY)
    try:
        files.fsync(descriptor)
    finally:
        files.close(descriptor)


class FileHolder:
    """A file's bytes, by the files that kelr writes with. Raises OSError."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path, self._files = path, files
        self.size_bytes = files.stat(path).st_size

    def read(self, at: int, size: int) -> bytes:
        descriptor = self._files.open(self._path, os.O_RDONLY)
        try:
            return self._files.pread(descriptor, size, at)
        finally:
            self._files.close(descriptor)


def _read_again(plan: QuorumPlan, directory: Path, wanted: _Wanted, files: Files) -> None:
    """Raises RefusedError where the new directory is not what was planned: byte by byte, and as a copy that is read."""
    for name, one in wanted.items():
        if not _same(directory / name, one, files):
            raise _not_as_planned(directory / name, "its bytes are not those that were written")
    inside = directory / LOG_DIRECTORY
    held = {name: FileHolder(inside / name, files) for name in files.listdir(inside)}
    copy = read_directory(held, str(directory), plan.target.node, plan.cluster_id, plan.target.directory_id)
    end = plan.source.end + bool(plan.appended)
    if copy.broken is not None or copy.position != (plan.source.last_epoch, end):
        raise _not_as_planned(inside, copy.broken or f"it ends at {copy.end}, not {end}")
    if copy.quorum_state is None or copy.quorum_state.epoch != plan.epoch:
        raise _not_as_planned(inside, "its quorum-state is not the planned one")
    topics = copy.image.topics.values()
    if (len(topics), sum(len(one.partitions) for one in topics)) != (plan.topics, plan.partitions):
        raise _not_as_planned(inside, "its topics are not those of the copy")
    planned = [record for batch in read_batches(bytes.fromhex(plan.appended)) for record in batch.records]
    if planned and planned != [Voters(copy.image.voter_set)]:
        raise _not_as_planned(inside, "its voters are not the planned ones")


def _not_as_planned(path: Path, why: str) -> RefusedError:
    return RefusedError(
        f"{path}: {why}; the old directory is as it was",
        next_step="look at the disk, then make the plan again",
    )


def _put_in_place(places: Places, files: Files) -> None:
    if files.exists(places.target) and not files.exists(places.saved):
        files.replace(places.target, places.saved)
        sync_directory(places.target.parent, files)
    if files.exists(places.target):
        raise OSError(0, f"it is there again beside {places.saved}", str(places.target))
    files.replace(places.new, places.target)


def undo(plan: QuorumPlan, files: Files = FILES, *, locked: Callable[[Path], bool | None] = is_locked) -> Places:
    """Put the old directory back, where the new controller has never started.

    Raises:
        RefusedError: there is none, or the new controller runs or has started.
    """
    places = Places.of(plan)
    if not files.exists(places.saved):
        raise RefusedError(
            f"nothing changed: {places.saved} is not there: the plan was not carried out here, or had no old directory",
            next_step="if it had none, move the new directory away",
        )
    if files.exists(places.target):
        state = places.target / LOG_DIRECTORY / "quorum-state"
        with files.reader(state) as file:
            started = file.read(_CHUNK_BYTES) != plan.quorum_state.encode()
        if started or locked(places.target) is not False:
            raise RefusedError(
                f"nothing changed: the controller in {places.target} has started: brokers may follow it, and an older"
                " log in its place makes them truncate",
                next_step=f"to put another copy in its place, stop every node, collect all directories, {places.saved}"
                " with them, then kelr quorum plan --stale --source COPY",
            )
        files.replace(places.target, places.new)
        sync_directory(places.target.parent, files)
    files.replace(places.saved, places.target)
    sync_directory(places.target.parent, files)
    return places
