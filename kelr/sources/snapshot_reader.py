"""Reading a snapshot file: line by line, every line checked, and every fault said with its place."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kelr.errors import BadInputError
from kelr.model import (
    LOG_DIRECTORY,
    Cluster,
    LogAnswer,
    LogUnavailableReason,
    PartitionState,
    RecoveryQuorum,
    TopicConfig,
    TopicError,
)
from kelr.sources.doubt import SavedDisks
from kelr.sources.field_problems import in_words

if TYPE_CHECKING:
    from pydantic import ValidationError

    from kelr.sources.snapshot_lines import BodyLine, DiskLine, EndLine, HeaderLine, ReplicaLine

MAX_LINE_BYTES = 16 * 1024 * 1024
"""A longer line is refused before it is read: a header of 10,000 brokers and a lineage of 100,000 epochs fit."""
MAX_LINES = 100_000_000
_NOT_A_SNAPSHOT = "name a file that `kelr snapshot` wrote"
_OF_A_DISK = tuple(
    json.dumps(one).encode() for one in (LOG_DIRECTORY, LogUnavailableReason.LACKING, LogUnavailableReason.DOUBTFUL)
)
"""A line of a partition whose replica's disk was read has one of these in it."""
_TAKE_AGAIN = "take the snapshot again, or copy the file again: what is left of it is not used"


@dataclass(frozen=True, slots=True)
class Body:
    """One line after the header, as kelr's values: a topic, a partition, or an error."""

    topic: str | None = None
    config: TopicConfig | None = None
    first_partition_replicas: int | None = None
    partition: PartitionState | None = None
    logs: tuple[LogAnswer, ...] | None = None
    quorum: RecoveryQuorum | None = None
    error: TopicError | None = None
    replica: ReplicaLine | None = None
    """In a collection: a replica on a broker's disk."""


class SnapshotReader:
    """One snapshot file. The header is read at once, the rest when asked for.

    Raises (everywhere):
        BadInputError: not a snapshot file, truncated, garbled, or of a newer version; names the file and the line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            raise BadInputError(
                f"{path} is not a regular file: kelr reads a snapshot more than once, and a pipe cannot be",
                next_step="save it to a file first",
            )
        lines = self._lines()
        header = self._header(next(lines, (1, b""))[1])
        lines.close()
        self.taken_at_ms = header.taken_at_ms
        self.taken_from = header.source
        """The name of the source that was saved."""
        self.selected = header.selected
        self.cluster: Cluster = header.cluster.value()
        self.disks: tuple[DiskLine, ...] | None = header.disks
        """For a collection: the brokers whose log directories it holds; it knows no partition's state then."""

    def check_knows_partitions(self) -> None:
        """Refuse a collection of log directories, which says nothing of leaders and cannot be asked alone."""
        if self.disks is not None:
            of = ", ".join(str(disk.broker) for disk in self.disks)
            raise BadInputError(
                f"{self.path} is a collection of the log directories of broker {of}: it knows logs, and no partition's"
                " state",
                next_step="give it beside a cluster or a snapshot: --logs FILE",
                code="collection-not-snapshot",
            )

    def check_whole(self) -> None:
        """Read through the file once without looking into it, so that one that was cut short is refused at once
        rather than after half of an answer."""
        number, last = 0, b""
        for number, last in self._lines():  # noqa: B007 - the last one is wanted
            pass
        if not last.startswith(b'{"end":'):
            raise self._truncated(number)

    @cached_property
    def saved_disks(self) -> SavedDisks:
        """What all partitions of the file together show of the disks that were read for it."""
        return SavedDisks.of(self._of_disks())

    def _of_disks(self) -> Iterator[tuple[PartitionState, Sequence[LogAnswer]]]:
        for number, text in self._lines():
            if number == 1 or not any(mark in text for mark in _OF_A_DISK):
                continue
            line = self._parse(number, text)
            body = None if line.partition is None else self._body(number, line)
            if body is not None and body.partition is not None and body.logs is not None:
                yield body.partition, body.logs

    def _with_their_disks(self, body: Body) -> Body:
        """The line, with what other logs of its disks tell of its own. What one lacks itself is counted as that."""
        if body.partition is None or not body.logs:
            return body
        return replace(body, logs=self.saved_disks.added_to(body.partition, body.logs, self.cluster))

    def body(self) -> Iterator[Body]:
        """Everything after the header, in the file's order; in the end the counts are checked."""
        lines = self._lines()
        next(lines, None)
        counts = {"topics": 0, "partitions": 0, "errors": 0, "replicas": 0}
        last: PartitionState | None = None
        last_replica: tuple[str, int, int] | None = None
        end: EndLine | None = None
        number = 1
        for number, text in lines:
            if end is not None:
                raise self._garbled(number, "there is more after the end line")
            line = self._parse(number, text)
            if line.end is not None:
                end = line.end
                continue
            body = self._body(number, line)
            if body.partition is not None:
                if last is not None and body.partition.address <= last.address:
                    raise self._garbled(number, f"{body.partition.address} comes after {last.address}")
                last = body.partition
            if body.replica is not None:
                place = body.replica.topic, body.replica.partition, body.replica.log.replica
                if last_replica is not None and place <= last_replica:
                    raise self._garbled(number, f"replica {place} comes after {last_replica}")
                last_replica = place
            counts[_kind(body)] += 1
            yield self._with_their_disks(body)
        if end is None:
            raise self._truncated(number)
        if counts != end.model_dump():
            raise self._garbled(number, f"it ends with the counts {end.model_dump()}, and holds {counts}")

    def _lines(self) -> Generator[tuple[int, bytes], None, None]:
        """(number from 1, text) of each line."""
        number = 0
        try:
            with gzip.open(self.path, "rb") as file:
                while text := file.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    if len(text) > MAX_LINE_BYTES or number > MAX_LINES:
                        raise self._garbled(number, "more than kelr ever writes")
                    yield number, text
        except EOFError as error:
            raise self._truncated(number) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            if number == 0:
                raise self._not_a_snapshot(str(error)) from error
            raise self._garbled(number + 1, str(error)) from error
        except OSError as error:
            raise BadInputError(
                f"cannot read the snapshot {self.path}: {error.strerror or error}",
                next_step="check the path and its permissions",
            ) from error

    def _header(self, text: bytes) -> HeaderLine:
        from pydantic import ValidationError  # noqa: PLC0415

        from kelr.sources.snapshot_lines import FORMAT, FORMAT_VERSION, HeaderLine  # noqa: PLC0415

        try:
            start = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._not_a_snapshot("its first line is not JSON") from error
        if not isinstance(start, dict) or start.get("format") != FORMAT:
            raise self._not_a_snapshot("its first line does not say that it is one")
        version = start.get("version")
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise BadInputError(
                f"{self.path} is of format version {version}, and this kelr reads up to {FORMAT_VERSION}",
                next_step="install a newer kelr",
                code="newer-format",
            )
        try:
            return HeaderLine.model_validate_json(text)
        except ValidationError as error:
            raise self._garbled(1, _first_problem(error)) from error

    def _parse(self, number: int, text: bytes) -> BodyLine:
        from pydantic import ValidationError  # noqa: PLC0415

        from kelr.sources.snapshot_lines import BodyLine  # noqa: PLC0415

        try:
            line = BodyLine.model_validate_json(text)
        except ValidationError as error:
            raise self._garbled(number, _first_problem(error)) from error
        if sum(part is not None for part in (line.topic, line.partition, line.error, line.replica, line.end)) != 1:
            raise self._garbled(number, "not exactly one of topic, partition, error, replica and end")
        if (line.replica is not None and self.disks is None) or (self.disks is not None and line.partition is not None):
            raise self._garbled(number, "replicas on disks stand in a collection, and partitions in a snapshot")
        return line

    def _body(self, number: int, line: BodyLine) -> Body:
        if line.topic is not None:
            topic = line.topic
            return Body(topic.topic, topic.config(), topic.first_partition_replicas)
        if line.error is not None:
            return Body(error=line.error.value())
        try:
            if line.replica is not None:
                line.replica.log.value()
                return Body(replica=line.replica)
            assert line.partition is not None
            quorum = line.partition.quorum
            return Body(
                partition=line.partition.state(),
                logs=line.partition.answers(),
                quorum=None if quorum is None else quorum.value(),
            )
        except ValueError as error:
            raise self._garbled(number, str(error)) from error

    def _not_a_snapshot(self, why: str) -> BadInputError:
        return BadInputError(
            f"{self.path} is not a snapshot file: {why}", next_step=_NOT_A_SNAPSHOT, code="not-a-snapshot"
        )

    def _truncated(self, number: int) -> BadInputError:
        return BadInputError(
            f"{self.path} was cut short: it breaks off after line {number}", next_step=_TAKE_AGAIN, code="snapshot-torn"
        )

    def _garbled(self, number: int, why: str) -> BadInputError:
        return BadInputError(
            f"{self.path}, line {number}: garbled snapshot: {why}", next_step=_TAKE_AGAIN, code="snapshot-garbled"
        )


def _kind(body: Body) -> str:
    """What the end line counts it as."""
    if body.replica is not None:
        return "replicas"
    return "partitions" if body.partition else "errors" if body.error else "topics"


def _first_problem(error: ValidationError) -> str:
    """The first thing that is wrong, without quoting the input: it may be huge."""
    problem = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {in_words(problem)}" if place else in_words(problem)
