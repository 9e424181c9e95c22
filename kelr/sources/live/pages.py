"""Partitions page by page: DescribeTopicPartitions with its cursor, or Metadata where brokers do not know it.

A request that names topics carries all of the names again for every page, so named topics go out in slices. A selection
with a pattern lists all topics and is filtered as the pages come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kelr.errors import ConnectError, UnsupportedError
from kelr.model import Selection, TopicError, TopicPartition
from kelr.sources.base import Page
from kelr.sources.live import requests
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.decode import Described, described_partitions, metadata_partitions
from kelr.sources.live.failures import RETRIABLE, UNKNOWN_TOPIC, error_name
from kelr.sources.live.reassignments import Reassignments
from kelr.sources.live.transport import Failure, Message
from kelr.sources.paging import DEFAULT_PAGE_SIZE, NamedTracker

TOPICS_A_SLICE = 500
"""Names in one request: about 16 KB with usual names, and one round trip for each 500 topics of one partition."""
_WHERE = "the cluster"


@dataclass(frozen=True, slots=True)
class Reader:
    """What reading pages needs: whom to ask, and what the cluster keeps."""

    brokers: AnyBroker
    elr_enabled: bool | None
    has_key_75: bool
    reassignments: Reassignments

    def describe(self, topics: Sequence[str], cursor: TopicPartition | None, limit: int) -> Described:
        """One page by the best request that the brokers know.

        Raises:
            ConnectError: no broker answers any more.
            UnsupportedError: not even Metadata with leader epochs (v7, Kafka 2.1) is known.
        """
        if not self.has_key_75:
            return self._from_metadata(topics, cursor)
        answer = self.brokers.ask(
            lambda: requests.describe_topic_partitions(topics, cursor, limit), again=_has_retriable_error
        )
        if isinstance(answer, Failure):
            # A broker of an older version in a cluster that is being upgraded, or behind a proxy.
            return self._from_metadata(topics, cursor)
        return described_partitions(answer, elr_enabled=self.elr_enabled, reassignments=self.reassignments)

    def _from_metadata(self, topics: Sequence[str], cursor: TopicPartition | None) -> Described:
        """Metadata has no pages: one answer for these topics, from the cursor on."""
        answer = self.brokers.ask(lambda: requests.metadata(list(topics) or None), again=_has_retriable_error)
        if isinstance(answer, Failure):
            raise UnsupportedError(
                f"these brokers know no request that tells of partitions and their leader epochs: {answer.detail}",
                next_step="Kafka 2.1 is the oldest that kelr can read",
            )
        described = metadata_partitions(answer, reassignments=self.reassignments)
        kept = tuple(partition for partition in described.partitions if cursor is None or partition.address >= cursor)
        return Described(kept, described.errors)


def read_pages(
    reader: Reader, selection: Selection, *, page_size: int | None, start: TopicPartition | None
) -> Iterator[Page]:
    """The selected partitions in address order; one answer in memory at a time.

    Raises: as `Reader.describe`.
    """
    limit = page_size or DEFAULT_PAGE_SIZE
    named = not selection.is_everything and not selection.has_patterns
    cutter = _Cutter(selection, start, reader)
    for described, next_cursor in (
        _slices(reader, selection.topics, limit, start) if named else _paged(reader, (), limit, start)
    ):
        page = cutter.cut(described, next_cursor)
        if page is not None:
            yield page
    last = cutter.last_errors()
    if last:
        yield Page((), last)


class _Cutter:
    """Keeps of each answer what is selected, and in mind what was named and has not come."""

    def __init__(self, selection: Selection, start: TopicPartition | None, reader: Reader) -> None:
        self._selection = selection
        self._reader = reader
        self._tracker = NamedTracker(selection, start)
        self._reported: set[str] = set()
        self._counts: dict[str, int] = {}
        """Replica counts that no page has carried yet: an answer of which nothing is kept makes no page."""
        self._unseen_start = start if start is not None and start.partition > 0 else None

    def cut(self, described: Described, next_cursor: TopicPartition | None) -> Page | None:
        """What is kept of one answer; None where that is nothing."""
        selection = self._selection
        kept = []
        for partition in described.partitions:
            self._tracker.saw(partition)
            if partition.partition == 0 and selection.matches_topic(partition.topic):
                self._counts[partition.topic] = len(partition.replicas)
            if selection.matches(partition.topic, partition.partition):
                kept.append(partition)
        if self._unseen_start is not None and kept and kept[0].topic == self._unseen_start.topic:
            self._counts.update(self._partition_zero(self._unseen_start.topic))
            self._unseen_start = None
        errors = self._new_errors(described.errors)
        if not kept and not errors:
            return None
        counts, self._counts = self._counts, {}
        return Page(tuple(kept), errors, next_cursor, counts)

    def last_errors(self) -> tuple[TopicError, ...]:
        """What was named and never came. A list of all topics leaves out those that may not be read, so those are
        asked for by name, to tell *not authorized* from *not there*."""
        missing = self._tracker.missing(where=_WHERE)
        topics = sorted({error.topic for error in missing} - self._reported)
        if not topics or not self._selection.has_patterns:
            return missing
        true = {error.topic: error for error in self._reader.describe(topics, None, 1).errors}
        return tuple(
            true[error.topic] if error.topic in true and true[error.topic].error != UNKNOWN_TOPIC else error
            for error in missing
        )

    def _new_errors(self, errors: Sequence[TopicError]) -> tuple[TopicError, ...]:
        """Each topic's error once: brokers repeat those of topics that may not be read on every page."""
        fresh = tuple(_worded(error) for error in sorted(errors, key=_topic) if error.topic not in self._reported)
        for error in fresh:
            self._reported.add(error.topic)
            self._tracker.failed(error.topic)
        return fresh

    def _partition_zero(self, topic: str) -> dict[str, int]:
        """The replica count that the effective min ISR stands on, where reading starts further on in the topic."""
        first = self._reader.describe([topic], None, 1).partitions
        return {topic: len(first[0].replicas)} if first and first[0].partition == 0 else {}


def _slices(
    reader: Reader, topics: Sequence[str], limit: int, start: TopicPartition | None
) -> Iterator[tuple[Described, TopicPartition | None]]:
    """Named topics, in slices, each paged through; the cursor after a slice is the first topic of the next."""
    wanted = [topic for topic in topics if start is None or topic >= start.topic]
    for at in range(0, len(wanted), TOPICS_A_SLICE):
        names = wanted[at : at + TOPICS_A_SLICE]
        following = wanted[at + TOPICS_A_SLICE : at + TOPICS_A_SLICE + 1]
        for described, cursor in _paged(reader, names, limit, start if start and start.topic in names else None):
            yield described, cursor or (TopicPartition(following[0], 0) if following else None)


def _paged(
    reader: Reader, topics: Sequence[str], limit: int, start: TopicPartition | None
) -> Iterator[tuple[Described, TopicPartition | None]]:
    cursor = start
    while True:
        described = reader.describe(topics, cursor, limit)
        if described.next_cursor is not None and cursor is not None and described.next_cursor <= cursor:
            raise ConnectError(
                f"the broker's cursor went back from {cursor} to {described.next_cursor}: pages would never end",
                next_step="a proxy may garble DescribeTopicPartitions; ask a broker directly",
            )
        yield described, described.next_cursor
        if described.next_cursor is None:
            return
        cursor = described.next_cursor


def _topic(error: TopicError) -> str:
    return error.topic


def _worded(error: TopicError) -> TopicError:
    if error.error != UNKNOWN_TOPIC or error.detail:
        return error
    return TopicError(error.topic, error.error, f"{_WHERE} has no topic {error.topic}")


def _has_retriable_error(answer: Message) -> bool:
    return any(error_name(topic.error_code) in RETRIABLE - {"LEADER_NOT_AVAILABLE"} for topic in answer.topics)
