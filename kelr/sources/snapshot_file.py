"""Snapshot files: everything that kelr knew at one moment, to be asked again without the cluster.

gzip over one JSON object a line, described in docs/snapshot-format.md. Written to a temporary name and renamed, so that
a file under its final name is whole; read line by line, so that memory does not grow with the file.
"""

from __future__ import annotations

import contextlib
import gzip
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kelr import __version__
from kelr.durable import whole_file
from kelr.engine.words import plural
from kelr.errors import UsageError
from kelr.model import (
    Cluster,
    LogAnswer,
    PartitionState,
    RecoveryQuorum,
    ReplicaLog,
    Selection,
    Snapshot,
    TopicConfig,
    TopicError,
    TopicPartition,
)
from kelr.sources.base import CUT_SHORT, Closes, LogFilter, Page, Progress, Source, quorums_of
from kelr.sources.memory import NOT_IN_SNAPSHOT, saved_answers
from kelr.sources.paging import paginate
from kelr.sources.snapshot_reader import Body, SnapshotReader

if TYPE_CHECKING:
    from pydantic import BaseModel

_COMPRESSION_LEVEL = 5
_MOST_NAMED, _LONGEST_NAMED = 5, 300
_MOST_KEPT = 12_000
"""For whoever asks for logs: of so many partitions they are kept when their pages are done with, since several pages
are decided together (`kelr.sources.decisions`). What is asked about any other is read from the file again."""


def read_snapshot(path: Path) -> Snapshot:
    """The whole file as one value.

    Raises:
        BadInputError: not a snapshot file, truncated, garbled, or of a newer version; names the file and the line.
    """
    reader = SnapshotReader(path)
    reader.check_knows_partitions()
    partitions: list[PartitionState] = []
    configs: dict[str, TopicConfig] = {}
    logs: dict[TopicPartition, tuple[LogAnswer, ...]] = {}
    errors: list[TopicError] = []
    first_replicas: dict[str, int] = {}
    quorums: dict[TopicPartition, RecoveryQuorum] = {}
    for line in reader.body():
        if line.partition is not None:
            partitions.append(line.partition)
            if line.quorum is not None:
                quorums[line.partition.address] = line.quorum
            if line.logs is not None:
                logs[line.partition.address] = line.logs
        elif line.error is not None:
            errors.append(line.error)
        elif line.topic is not None:
            _keep_topic(line, configs, first_replicas)
    return Snapshot(
        taken_at_ms=reader.taken_at_ms,
        cluster=reader.cluster,
        partitions=tuple(partitions),
        configs=configs,
        logs=logs,
        topic_errors=tuple(errors),
        first_partition_replicas=first_replicas,
        quorums=quorums,
        source=str(path),
    )


def write_snapshot(snapshot: Snapshot, path: Path, *, overwrite: bool = False) -> None:
    """Save a snapshot that is in memory. Raises UsageError where the file exists or cannot be written."""
    write_lines(_lines_of(snapshot), path, overwrite=overwrite)


@dataclass(frozen=True, slots=True)
class SavedSnapshot:
    """What became of a snapshot that was saved page by page."""

    partitions: int
    topic_errors: tuple[TopicError, ...]
    gaps: tuple[str, ...] = ()
    """What the source did not tell, a sentence for each reason."""


def save_snapshot(
    source: Source,
    selection: Selection,
    path: Path,
    *,
    now_ms: int,
    with_logs: LogFilter | None = None,
    lineage: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> SavedSnapshot:
    """Read everything selected straight into a file, a page at a time: memory does not grow with the cluster.

    Args: as `kelr.sources.base.take_snapshot`; `progress` is told of each page's logs.

    Returns: how many partitions were saved, which topics could not be described (the file names them too), and what
        else is not in the file although it was asked for.

    Raises:
        UsageError: the file exists and `overwrite` is not set, or it cannot be written. A source's own errors pass.
    """
    saved = 0
    errors: list[TopicError] = []
    gaps = Gaps()

    def lines() -> Iterator[BaseModel]:
        nonlocal saved
        cluster = source.cluster()
        gaps.about(cluster)
        yield _header(cluster, now_ms, source.name, _selected(selection, source))
        known: set[str] = set()
        for page in source.pages(selection):
            asked = [] if with_logs is None else [partition for partition in page.partitions if with_logs(partition)]
            logs = source.replica_logs(asked, lineage=lineage, progress=progress) if asked else {}
            fresh = sorted({partition.topic for partition in page.partitions} - known)
            known.update(fresh)
            configs = source.topic_configs(fresh) if fresh else {}
            quorums = quorums_of(source, page.partitions)
            gaps.count(configs.values(), logs.values())
            yield from _body(page.partitions, configs, logs, page.first_partition_replicas, fresh, quorums=quorums)
            yield from _errors(page.topic_errors)
            errors.extend(page.topic_errors)
            saved += len(page.partitions)

    write_lines(lines(), path, overwrite=overwrite)
    return SavedSnapshot(saved, tuple(errors), tuple(gaps.sentences()))


class SnapshotFileSource(Closes):
    """A snapshot file as a `Source`; holds none of it but the header and what stands beside the page being read.

    Questions about the partitions of the page that `pages` gave last are answered from what was read with it; any
    other question reads the file anew.

    Raises:
        BadInputError: here, if this is no snapshot file, or of a newer version, or cut short; later, if a line is
            garbled.
    """

    def __init__(self, path: Path) -> None:
        self._reader = SnapshotReader(path)
        self._reader.check_knows_partitions()
        self._reader.check_whole()
        self._closed = False
        self._configs_read: dict[str, TopicConfig] = {}
        self._logs_read: dict[TopicPartition, tuple[LogAnswer, ...]] = {}
        self._quorums_read: dict[TopicPartition, RecoveryQuorum | None] = {}
        self._keeps = 0

    @property
    def name(self) -> str:
        return str(self._reader.path)

    @property
    def taken_at_ms(self) -> int:
        """When the snapshot was taken, in milliseconds since 1970 UTC."""
        return self._reader.taken_at_ms

    @property
    def controller_silence(self) -> str | None:
        """See `HearsController`: as it was when the snapshot was taken."""
        return self._reader.cluster.controller_silence

    @property
    def cut_short(self) -> bool:
        """Whether it was made of a metadata log that could not be read to its end."""
        return self._reader.taken_from.endswith(CUT_SHORT)

    @property
    def warnings(self) -> Sequence[str]:
        """What was odd about the source that was saved, a sentence each."""
        return (f"{self.name} was saved from the {self._reader.taken_from}",) if self.cut_short else ()

    @property
    def selected(self) -> str | None:
        """The partitions that were asked for when it was taken; None: all."""
        return self._reader.selected

    def cluster(self) -> Cluster:
        return self._open().cluster

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        reader = self._open()
        first_replicas: dict[str, int] = {}
        errors: list[TopicError] = []

        def partitions() -> Iterator[PartitionState]:
            for line in reader.body():
                if line.partition is not None:
                    if selection.matches(line.partition.topic, line.partition.partition):
                        self._logs_read[line.partition.address] = line.logs or ()
                        self._quorums_read[line.partition.address] = line.quorum
                    yield line.partition
                    continue
                if line.topic is not None and selection.matches_topic(line.topic):
                    self._configs_read[line.topic] = line.config or TopicConfig(error=NOT_IN_SNAPSHOT)
                if line.topic is not None and line.first_partition_replicas is not None:
                    first_replicas[line.topic] = line.first_partition_replicas
                elif line.error is not None:
                    errors.append(line.error)

        for page in paginate(
            partitions(),
            selection,
            topic_errors=errors,
            first_replicas=first_replicas,
            page_size=page_size,
            start=start,
            where="this snapshot",
        ):
            yield page
            self._forget(page)

    def _forget(self, page: Page) -> None:
        """Let go of what belongs to pages that are done with; the file has been read a little further already."""
        read = [address for address in self._logs_read if page.partitions and address <= page.partitions[-1].address]
        for address in read[: max(0, len(read) - self._keeps)]:
            del self._logs_read[address], self._quorums_read[address]
        first = next(iter(self._logs_read), None)
        if first is not None:
            self._configs_read = {topic: kept for topic, kept in self._configs_read.items() if topic >= first.topic}

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        if self._configs_read.keys() >= set(topics):
            self._open()
            return {topic: self._configs_read[topic] for topic in topics}
        wanted = set(topics)
        found: dict[str, TopicConfig] = {}
        for line in self._open().body():
            if line.topic in wanted:
                _keep_topic(line, found, {})
        return {topic: found.get(topic) or TopicConfig(error=NOT_IN_SNAPSHOT) for topic in topics}

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        """The answers that the file holds; `lineage` cannot add to them, so epochs not saved stay unknown."""
        del lineage
        self._keeps = _MOST_KEPT
        wanted = {partition.address for partition in partitions}
        reader = self._open()
        saved = self._logs_read
        if not saved.keys() >= wanted:
            saved = {
                line.partition.address: line.logs
                for line in reader.body()
                if line.partition is not None and line.logs is not None and line.partition.address in wanted
            }
        return saved_answers(saved, partitions, reader.saved_disks, reader.cluster, progress)

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """Those that the file holds."""
        wanted = {partition.address for partition in partitions}
        reader, saved = self._open(), self._quorums_read
        if not saved.keys() >= wanted:
            saved = {line.partition.address: line.quorum for line in reader.body() if line.partition is not None}
        return {address: known for address in sorted(wanted) if (known := saved.get(address)) is not None}

    def forget(self) -> None:
        """The file holds what it holds."""

    def close(self) -> None:
        self._closed = True

    def _open(self) -> SnapshotReader:
        if self._closed:
            raise UsageError(f"source {self.name!r} is closed")
        return self._reader


def _keep_topic(line: Body, configs: dict[str, TopicConfig], first_replicas: dict[str, int]) -> None:
    assert line.topic is not None
    if line.config is not None:
        configs[line.topic] = line.config
    if line.first_partition_replicas is not None:
        first_replicas[line.topic] = line.first_partition_replicas


def _lines_of(snapshot: Snapshot) -> Iterator[BaseModel]:
    yield _header(snapshot.cluster, snapshot.taken_at_ms, snapshot.source)
    ordered = sorted(snapshot.partitions, key=lambda partition: partition.address)
    topics = {partition.topic for partition in ordered} | set(snapshot.configs) | set(snapshot.first_partition_replicas)
    yield from _body(
        ordered,
        snapshot.configs,
        snapshot.logs,
        snapshot.first_partition_replicas,
        sorted(topics),
        quorums=snapshot.quorums,
    )
    yield from _errors(snapshot.topic_errors)


def _header(cluster: Cluster, taken_at_ms: int, source: str, selected: str | None = None) -> BaseModel:
    from kelr.sources.snapshot_lines import ClusterLine, HeaderLine  # noqa: PLC0415

    told = ClusterLine.of(cluster)
    return HeaderLine(kelr=__version__, taken_at_ms=taken_at_ms, source=source, cluster=told, selected=selected)


def _selected(selection: Selection, source: Source) -> str | None:
    """What is asked for, in words; of a file that does not hold all itself, what that holds. None: everything."""
    targets = [str(target) for target in selection.targets]
    if not targets:
        return getattr(source, "selected", None)
    shown = ", ".join(targets[:_MOST_NAMED])
    left = len(targets) - _MOST_NAMED
    text = shown if left <= 0 else f"{shown} and {left:,} more"
    return text if len(text) <= _LONGEST_NAMED else f"{text[:_LONGEST_NAMED]}..."


def _body(
    partitions: Iterable[PartitionState],
    configs: Mapping[str, TopicConfig],
    logs: Mapping[TopicPartition, tuple[LogAnswer, ...]],
    first_replicas: Mapping[str, int],
    topics: Sequence[str],
    *,
    quorums: Mapping[TopicPartition, RecoveryQuorum],
) -> Iterator[BaseModel]:
    """Topic lines first, then the partitions, which are sorted by address."""
    from kelr.sources.snapshot_lines import BodyLine, PartitionLine, TopicLine  # noqa: PLC0415

    for topic in topics:
        yield BodyLine(topic=TopicLine.of(topic, configs.get(topic), first_replicas.get(topic)))
    for partition in partitions:
        line = PartitionLine.of(partition, logs.get(partition.address), quorums.get(partition.address))
        yield BodyLine(partition=line)


def _errors(errors: Iterable[TopicError]) -> Iterator[BaseModel]:
    from kelr.sources.snapshot_lines import BodyLine, ErrorLine  # noqa: PLC0415

    for error in errors:
        yield BodyLine(error=ErrorLine.from_value(error))


def write_lines(lines: Iterable[BaseModel], path: Path, *, overwrite: bool) -> None:
    """A file of these lines, a `HeaderLine` first, and an end line with their counts.

    Raises:
        UsageError: the file exists and `overwrite` is not set, or it cannot be written.
    """
    from kelr.sources.snapshot_lines import BodyLine, EndLine  # noqa: PLC0415

    counts = {"topic": 0, "partition": 0, "error": 0, "replica": 0}
    with _atomic(path, overwrite=overwrite) as file:
        for line in lines:
            for kind in counts:
                counts[kind] += getattr(line, kind, None) is not None
            file.write(_text_of(line) + b"\n")
        end = EndLine(topics=counts["topic"], partitions=counts["partition"], errors=counts["error"])
        if counts["replica"]:
            end = end.model_copy(update={"replicas": counts["replica"]})
        file.write(BodyLine(end=end).model_dump_json(exclude_unset=True).encode() + b"\n")


def _text_of(line: BaseModel) -> bytes:
    if not _is_header(line):
        return line.model_dump_json(exclude_defaults=True).encode()
    from kelr.sources.snapshot_lines import HeaderLine  # noqa: PLC0415

    assert isinstance(line, HeaderLine)
    # What a file has only where there is something to tell.
    of_cluster = {"controller_silence"} if line.cluster.controller_silence is None else set()
    of_header = {name: True for name in ("disks", "selected") if getattr(line, name) is None}
    return line.model_dump_json(exclude={**of_header, "cluster": of_cluster}).encode()


def _is_header(line: BaseModel) -> bool:
    return hasattr(line, "format")


@contextlib.contextmanager
def _atomic(path: Path, *, overwrite: bool) -> Iterator[gzip.GzipFile]:
    """A snapshot file that appears under its name only when it is whole and on the disk."""
    with (
        whole_file(path, "snapshot", overwrite=overwrite) as raw,
        # No name and no time in the gzip header: the same snapshot makes the same bytes.
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_COMPRESSION_LEVEL, mtime=0) as file,
    ):
        yield file


# What a source did not tell of what was asked of it, as sentences: a file without it looks like any other.


class Gaps:
    """Counts, while pages go by, what is not known and why.

    Replicas that were not heard are not counted: these are rows of their own wherever logs are shown.
    """

    def __init__(self) -> None:
        self._configs: Counter[str] = Counter()
        self._epochs: Counter[str] = Counter()
        self._silence: str | None = None
        self._reassignments: str | None = None

    def about(self, cluster: Cluster) -> None:
        """What is not known of all partitions alike."""
        self._silence, self._reassignments = cluster.controller_silence, cluster.reassignments_error

    def count(self, configs: Iterable[TopicConfig], logs: Iterable[Iterable[LogAnswer]]) -> None:
        """One page's."""
        self._configs.update(config.error for config in configs if config.error is not None)
        answers = (answer for found in logs for answer in found if isinstance(answer, ReplicaLog))
        self._epochs.update(log.last_epoch_error for log in answers if log.last_epoch_error is not None)

    def sentences(self) -> Iterator[str]:
        """A sentence for each reason."""
        if self._silence is not None:
            yield (
                f"no controller answered ({self._silence}): what brokers told may have been out of date, and the file"
                " says so"
            )
        if self._reassignments is not None:
            yield f"reassignments under way are not in it: {self._reassignments}"
        for why, count in sorted(self._configs.items()):
            yield f"configs of {plural(count, 'topic')} are not in it: {why}"
        for why, count in sorted(self._epochs.items()):
            yield f"epochs of {plural(count, 'log')} are not in it: {why}"
