"""The journal of one replay: how far each partition has come, on the disk before anything goes on.

It saves looking through the target's log again; it is never all that stands between a record and its double, for the
replayed records name their origin themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kelr import __version__
from kelr.durable import AppendOnlyFile, files_of_lines, read_lines
from kelr.errors import BadInputError, RefusedError
from kelr.files import FILES, Files
from kelr.model import TopicPartition
from kelr.rescue.archive import read_head

_KIND = "kelr-rescue-replay"
_VERSION = 1
_WHAT = "replay journal"
SETTLE_S = 5.0
"""What a killed kelr had sent is in a broker's log by then, or lost with its connection."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far one partition has come. Everything behind `scan_from` in the target was written since."""

    scan_from: int
    """The end of the target's log when nothing was in flight."""
    leader_epoch: int
    """The target's, then: under another leader its log may have been truncated."""
    done_through: tuple[int, int] | None = None
    """(number of the tail, offset) up to which every record is confirmed; None: none yet."""
    full: bool = True
    """Whether `done_through` and what stands behind `scan_from` tell of every record that was ever replayed."""
    topic_id: str | None = None
    """The target's: a topic that was deleted and made again holds nothing of what was replayed. None: not known."""


def journal_file(directory: Path, dump_sha256: str, target: Mapping[str, Any]) -> Path:
    """Where the journal of replaying this dump with these options is.

    Args:
        directory: of the journals of the cluster that gets the records.
        target: what makes it another replay: the topic that gets them, and which records are taken.
    """
    import json  # noqa: PLC0415

    text = json.dumps([dump_sha256, dict(target)], sort_keys=True)
    return directory / "replays" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.jsonl"


class ReplayJournal:
    """Open for one replay. It holds a lock for each topic that gets records: two files may hold the same record, and
    two replays at once would both look before either has produced it. Use as a context manager.

    Args:
        topics: that get the records.

    Raises:
        RefusedError: another process replays to one of these topics.
        UsageError: it cannot be written.
        BadInputError: what is there is garbled.
    """

    def __init__(
        self, path: Path, about: Mapping[str, Any], files: Files = FILES, *, topics: Collection[str] = ()
    ) -> None:
        self.path = path
        self._files = files
        with ExitStack() as opened:
            for topic in sorted(topics):
                lock = opened.enter_context(_lock(path.with_name(f"{topic}.lock"), topic, files))
                opened.callback(_remove, lock.path, files)
            self._file = opened.enter_context(AppendOnlyFile(path, files))
            self.checkpoints, self.finished, is_new = _read(path, files)
            others = (other for other in files_of_lines(path.parent, files) if other != path)
            self._others_open = any(_is_open(other, topics, files) for other in others)
            self._opened = opened.pop_all()
        self._head: Mapping[str, Any] | None = (
            {"kind": _KIND, "version": _VERSION, "kelr": __version__, **about} if is_new else None
        )
        self.resumed = bool(self.checkpoints) and not self.finished
        """Whether an earlier run sent records and did not come to its end."""

    @property
    def settle_s(self) -> float:
        """How long to wait, now that no other run holds the locks, before the target is looked through, in seconds.

        When the last record was sent stands nowhere: the newest line is older than it. What an unfinished replay of
        another file had sent to these topics may hold the same records.
        """
        return SETTLE_S if self.resumed or self._others_open else 0.0

    def checkpoint(self, target: TopicPartition, checkpoint: Checkpoint) -> None:
        """Write down how far a partition has come, by the address that gets the records."""
        self._append(
            {
                "topic": target.topic,
                "partition": target.partition,
                "scan_from": checkpoint.scan_from,
                "leader_epoch": checkpoint.leader_epoch,
                "done_through": checkpoint.done_through,
                "full": checkpoint.full,
                "topic_id": checkpoint.topic_id,
            }
        )
        self.checkpoints[target] = checkpoint

    def finish(self, sources: Iterable[TopicPartition]) -> None:
        """Write down that every partition came to its end, and which of the dump's partitions those are."""
        named = [[one.topic, one.partition] for one in sorted(set(sources))]
        self._append({"finished": True, "partitions": named})

    def close(self) -> None:
        """Give it, and its locks, back. A run that sent nothing leaves no file."""
        if self._head is not None:
            _remove(self.path, self._files)
        self._opened.close()

    def _append(self, record: Mapping[str, Any]) -> None:
        head, self._head = self._head, None
        self._file.append(*([] if head is None else [head]), record)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def is_replayed(saved: Path, directory: Path, files: Files = FILES) -> bool:
    """Whether replays here have come to an end with every partition of this rescue file. What is garbled is not.

    Args:
        directory: as of `journal_file`.
    """
    with suppress(BadInputError):
        manifest, sha256, _ = read_head(saved, files)
        return {tail.address for tail in manifest.saved} <= replayed(directory, sha256, files)
    return False


def replayed(directory: Path, dump_sha256: str, files: Files = FILES) -> frozenset[TopicPartition]:
    """The partitions of this dump that a replay here has come to its end with.

    Raises:
        BadInputError: a journal is garbled.
    """
    found: set[TopicPartition] = set()
    for path in files_of_lines(directory / "replays", files):
        lines = [line for _, line in read_lines(path, _WHAT, files)]
        if lines and lines[0].get("dump") == dump_sha256 and "finished" in lines[-1]:
            try:
                found.update(TopicPartition(*one) for line in lines for one in line.get("partitions", ()))
            except TypeError:
                raise BadInputError(f"{path}: garbled {_WHAT}", next_step="move the file away") from None
    return frozenset(found)


def _lock(path: Path, topic: str, files: Files) -> AppendOnlyFile:
    try:
        return AppendOnlyFile(path, files)
    except RefusedError as error:
        raise RefusedError(
            f"another kelr replays records to topic {topic}: it holds {path}",
            next_step="wait until it has ended, then run this command again: it leaves out what the other produced",
            code=error.code,
        ) from error


def _remove(path: Path, files: Files) -> None:
    with suppress(FileNotFoundError):
        files.unlink(path)


def _is_open(path: Path, topics: Collection[str], files: Files) -> bool:
    """Whether a replay to these topics sent records and did not come to its end; that of a garbled journal may have."""
    try:
        checkpoints, finished, _ = _read(path, files)
    except BadInputError:
        return True
    return not finished and any(at.topic in topics for at in checkpoints)


def _read(path: Path, files: Files) -> tuple[dict[TopicPartition, Checkpoint], bool, bool]:
    """(how far each partition has come, whether the last run came to its end, whether there was none)."""
    checkpoints: dict[TopicPartition, Checkpoint] = {}
    finished, is_new = False, True
    for number, line in read_lines(path, _WHAT, files):
        if is_new:
            is_new = False
            if line.get("kind") != _KIND or line.get("version") != _VERSION:
                raise BadInputError(
                    f"{path}, line {number}: not a {_WHAT} that this kelr reads", next_step="move the file away"
                )
        elif "finished" in line:
            finished = True
        else:
            finished = False
            target, checkpoint = _checkpoint(line, path, number)
            checkpoints[target] = checkpoint
    return checkpoints, finished, is_new


def _checkpoint(line: Mapping[str, Any], path: Path, number: int) -> tuple[TopicPartition, Checkpoint]:
    topic, done = line.get("topic"), line.get("done_through")
    through = done if isinstance(done, list) and len(done) == 2 else (0, 0)
    values = [line.get("partition"), line.get("scan_from"), line.get("leader_epoch"), *through]
    is_number = all(type(value) is int and value >= 0 for value in values)
    topic_id = line.get("topic_id")
    is_id = topic_id is None or isinstance(topic_id, str)
    if not is_number or not isinstance(topic, str) or not is_id or not (done is None or through is done):
        raise BadInputError(f"{path}, line {number}: garbled {_WHAT}", next_step="move the file away")
    partition, scan_from, leader_epoch, tail, offset = values
    up_to = None if done is None else (tail, offset)
    checkpoint = Checkpoint(scan_from, leader_epoch, up_to, line.get("full") is True, topic_id)
    return TopicPartition(topic, partition), checkpoint
