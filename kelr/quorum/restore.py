"""Renaming back what a broker has set aside: directories of topics that the copy knows which leads now.

A broker that followed another copy has renamed replicas of topics unknown there to ``TOPIC-N.ID-stray``, or to
``-delete`` and not deleted them yet. Source: `LogManager.isStrayReplica`, `LocalLog.logStrayDirName`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.durable import AppendOnlyFile
from kelr.errors import BadInputError, PartlyDoneError, RefusedError, UsageError
from kelr.files import FILES, Files
from kelr.model import TopicPartition
from kelr.quorum.apply import JOURNALS, archive_of, copy_of, read_node, sync_directory
from kelr.quorum.assess import Verdict
from kelr.quorum.plan import QuorumPlan
from kelr.quorum.reading import Collected
from kelr.recovery.places import cluster_directory
from kelr.replay.image import MetadataImage
from kelr.sources.disk.files import GarbledError, is_locked, topic_id_of
from kelr.sources.disk.names import PARTITION_METADATA, Kind, replica_name

_SET_ASIDE = frozenset({Kind.STRAY, Kind.DELETED})
_MOST_BYTES = 1024


@dataclass(frozen=True, slots=True)
class SetAside:
    """A directory that a broker has set aside."""

    path: Path
    replica: str
    """``TOPIC-N``, by its name."""
    kept: str | None
    """Why it is left as it is; None: it is renamed back."""
    deleted: bool
    """Kafka deletes what is left of it at the broker's next start (`LogManager.loadLog`, of ``-delete``)."""

    @property
    def back(self) -> Path:
        return self.path.with_name(self.replica)


def find_set_aside(
    plan: QuorumPlan,
    collected: Collected,
    directories: Sequence[Path],
    files: Files = FILES,
    *,
    locked: Callable[[Path], bool | None] = is_locked,
) -> tuple[SetAside, ...]:
    """Every directory that the stopped broker has set aside in its log directories, and whether it can come back.

    Raises:
        BadInputError: a directory cannot be read.
        RefusedError: the broker runs, is of another cluster, or one of its log directories is not named.
        UsageError: they are not the directories of one broker.
    """
    archive_of(plan, collected)
    nodes = {_owner(plan, directory, files) for directory in directories}
    if len(nodes) != 1:
        raise UsageError(
            f"these are directories of nodes {', '.join(map(str, sorted(nodes)))}",
            next_step="name all log.dirs of one broker",
        )
    (broker,) = nodes
    for directory in directories:
        if locked(directory) is not False:
            raise RefusedError(
                f"nothing changed: a process holds the lock of {directory}, or that cannot be told",
                next_step="stop the broker, and run kelr as a user who may read its files",
            )
    named = {str(directory) for directory in directories}
    known = {one for _, node in collected.sources.values() if node.node == broker for one in node.directories}
    unnamed = sorted(one for one in known - named if Path(one).is_absolute())
    if unnamed:
        raise RefusedError(
            f"nothing changed: {unnamed[0]} is a directory of broker {broker}, too, and may hold the same replicas",
            next_step=f"add --node-dir {unnamed[0]}",
        )
    image = copy_of(plan, collected).image
    try:
        return tuple(_judged(list(_found(directories, files)), image, broker, files))
    except OSError as error:
        raise BadInputError(
            f"{error.filename or directories[0]} cannot be read: {error.strerror or error}",
            next_step="run kelr as a user who may read the broker's files",
        ) from error


def _owner(plan: QuorumPlan, directory: Path, files: Files) -> int:
    found = read_node(directory, files)
    if found.broker is None or found.cluster_id != plan.cluster_id:
        raise RefusedError(
            f"nothing changed: {directory} is of node {found.broker} of cluster {found.cluster_id}",
            next_step=f"name directories of a broker of cluster {plan.cluster_id}",
        )
    return found.broker


def _found(directories: Sequence[Path], files: Files) -> Iterator[tuple[Path, TopicPartition, Kind]]:
    for directory in directories:
        for name in sorted(files.listdir(directory)):
            replica = replica_name(name)
            if replica is not None:
                yield directory / name, replica.address, replica.kind


def _judged(
    found: Sequence[tuple[Path, TopicPartition, Kind]], image: MetadataImage, broker: int, files: Files
) -> Iterator[SetAside]:
    taken = {at for _, at, kind in found if kind not in _SET_ASIDE}
    aside = [one for one in found if one[2] in _SET_ASIDE]
    back = {path: _unknown(path, at, image, broker, files) for path, at, _ in aside}
    several = Counter(at for path, at, _ in aside if back[path] is None)
    for path, at, kind in aside:
        kept = back[path]
        if kept is None and at in taken:
            kept = "the broker has the replica beside it"
        elif kept is None and several[at] > 1:
            kept = "there are several of this replica"
        yield SetAside(path, f"{at.topic}-{at.partition}", kept, deleted=kind is Kind.DELETED and kept is not None)


def _unknown(path: Path, at: TopicPartition, image: MetadataImage, broker: int, files: Files) -> str | None:
    """Why the copy does not place this replica here; None: it does."""
    try:
        with files.reader(path / PARTITION_METADATA) as file:
            topic_id = topic_id_of(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return "it has no topic id"
    except GarbledError as error:
        return f"{PARTITION_METADATA}: {error}"
    topic = image.topics.get(topic_id)
    if topic is None or topic.name != at.topic:
        return f"the copy does not know topic id {topic_id}"
    state = topic.partitions.get(at.partition)
    return None if state is not None and broker in state.replicas else "the copy places no replica here"


def may_be_needed(found: Sequence[SetAside], verdict: Verdict) -> tuple[SetAside, ...]:
    """Those left aside that may hold what nothing else does. By a proved copy Kafka was deleting what nobody needs."""
    return tuple(one for one in found if one.kept is not None and not (one.deleted and verdict is Verdict.PROVED))


def rename_back(
    plan: QuorumPlan,
    found: Sequence[SetAside],
    directories: Sequence[Path],
    *,
    state_directory: Path,
    now_ms: int,
    files: Files = FILES,
) -> None:
    """Rename them back; cut short, the same command does the rest.

    Args:
        directories: the broker's, as `find_set_aside` was given them.

    Raises:
        RefusedError: another kelr is at work.
        PartlyDoneError: the disk failed.
        UsageError: the journal cannot be written.
    """
    path = cluster_directory(state_directory, plan.cluster_id) / JOURNALS / f"{plan.plan_id}-restore.jsonl"
    with AppendOnlyFile(path, files) as journal:
        journal.append({"what": "begin", "plan": plan.plan_id, "at_ms": now_ms})
        try:
            for one in found:
                if one.kept is not None:
                    continue
                if files.exists(one.back):
                    raise OSError(0, "it is there again", str(one.back))
                journal.append({"what": "rename", "from": str(one.path), "to": str(one.back)})
                files.replace(one.path, one.back)
            # Also of an earlier run that was killed before the names were on the disk.
            for directory in directories:
                sync_directory(directory, files)
        except OSError as error:
            raise PartlyDoneError(
                f"{error.filename or path}: {error.strerror or error}",
                next_step="make room or mend the disk, then run the same command again",
            ) from error
        journal.append({"what": "done"})
