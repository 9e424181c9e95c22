"""Partitions page by page: DescribeTopicPartitions with its cursor, or Metadata where brokers do not know it.

A request that names topics carries all of the names again for every page, so named topics go out in slices. A selection
with a pattern lists all topics and is filtered as the pages come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.errors import ConnectError, UnsupportedError
from kelr.model import PartitionState, Selection, TopicError, TopicPartition
from kelr.model.rows import Rows, states, topics_of
from kelr.protocol.error_codes import error_name
from kelr.sources.base import Page
from kelr.sources.live import requests
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.decode import Described, Kinds, described_partitions, kinds_of, metadata_partitions
from kelr.sources.live.failures import RETRIABLE, UNKNOWN_TOPIC
from kelr.sources.live.page_bytes import Skip
from kelr.sources.live.reassignments import Reassignments
from kelr.sources.live.transport import Failure, Message
from kelr.sources.paging import DEFAULT_PAGE_SIZE, NamedTracker

TOPICS_A_SLICE = 500
"""Names in one request: about 16 KB with usual names, and one round trip for each 500 topics of one partition."""
_WHERE = "the cluster"
_MOST_PARTITIONS = 100_000_000
"""Far more than a cluster has."""


class Reader:
    """What reading pages needs: whom to ask, and what the cluster keeps.

    Args:
        elr_enabled: whether the controller keeps ELR; None where that is not known.
        skip: unwanted partitions, which may be left out.
    """

    def __init__(
        self,
        brokers: AnyBroker,
        *,
        elr_enabled: bool | None,
        has_key_75: bool,
        reassignments: Reassignments,
        skip: Skip | None = None,
    ) -> None:
        self.brokers = brokers
        self._has_key_75 = has_key_75
        self._reassignments = reassignments
        self._kinds: Kinds = kinds_of(elr_enabled, reassignments)
        self._skip = skip

    def describe(
        self, topics: Sequence[str], cursor: TopicPartition | None, limit: int, *, whole: bool = False
    ) -> Described:
        """One page by the best request that the brokers know.

        Args:
            whole: leave nothing out.

        Raises:
            ConnectError: no broker answers any more.
            UnsupportedError: not even Metadata with leader epochs (v7, Kafka 2.1) is known.
        """
        if not self._has_key_75:
            return self._from_metadata(topics, cursor)
        skip = None if whole else self._skip
        answer = self.brokers.ask(
            lambda: requests.describe_topic_partitions(topics, cursor, limit, skip, goes_on=not whole),
            again=_has_retriable_error,
        )
        if isinstance(answer, Failure):
            # A broker of an older version in a cluster that is being upgraded, or behind a proxy.
            return self._from_metadata(topics, cursor)
        return described_partitions(answer, self._kinds, self._reassignments)

    def ask_ahead(self, topics: Sequence[str], cursor: TopicPartition, limit: int) -> None:
        """Let a broker work on the page that will be asked for next."""
        if self._has_key_75:
            self.brokers.ask_ahead(requests.describe_topic_partitions(topics, cursor, limit, self._skip, goes_on=True))

    def _from_metadata(self, topics: Sequence[str], cursor: TopicPartition | None) -> Described:
        """Metadata has no pages: one answer for these topics, from the cursor on."""
        answer = self.brokers.ask(lambda: requests.metadata(list(topics) or None), again=_has_retriable_error)
        if isinstance(answer, Failure):
            raise UnsupportedError(
                f"these brokers know no request that tells of partitions and their leader epochs: {answer.detail}",
                next_step="Kafka 2.1 is the oldest that kelr can read",
                code="brokers-too-old",
            )
        described = metadata_partitions(answer, reassignments=self._reassignments)
        if cursor is None:
            return described
        kept = tuple(partition for partition in described.partitions if partition.address >= cursor)
        first = {topic: n for topic, n in described.first_replicas.items() if TopicPartition(topic, 0) >= cursor}
        return Described(kept, described.errors, topics=topics_of(kept), first_replicas=first)


def allows_leaving_out(selection: Selection) -> bool:
    """Whether what is selected are whole topics, so that nothing but its topic decides whether a partition is."""
    return all(target.partitions is None for target in selection.targets)


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
        self._whole_topics = allows_leaving_out(selection)

    def cut(self, described: Described, next_cursor: TopicPartition | None) -> Page | None:
        """What is kept of one answer; None where that is nothing."""
        kept, left_out = (self._of_topics if self._whole_topics else self._one_by_one)(described)
        if self._unseen_start is not None and kept and kept[0].topic == self._unseen_start.topic:
            self._counts.update(self._partition_zero(self._unseen_start.topic))
            self._unseen_start = None
        errors = self._new_errors(described.errors)
        if not kept and not errors and not left_out:
            return None
        counts, self._counts = self._counts, {}
        return Page(kept, errors, next_cursor, counts, left_out)

    def _of_topics(self, described: Described) -> tuple[Sequence[PartitionState], int]:
        """What is kept, and how many were left out, where whole topics are selected: only topics are looked at."""
        selected = {topic for topic in described.topics if self._selection.matches_topic(topic)}
        for topic in described.topics:
            self._tracker.saw_topic(topic)
        self._counts.update({topic: n for topic, n in described.first_replicas.items() if topic in selected})
        left_out = sum(described.left_out[topic] for topic in selected & described.left_out.keys())
        rows = described.partitions
        if len(selected) == len(described.topics):
            return rows, left_out
        if isinstance(rows, Rows):
            return states(run for run in rows.runs if run.topic in selected), left_out
        return tuple(state for state in rows if state.topic in selected), left_out

    def _one_by_one(self, described: Described) -> tuple[Sequence[PartitionState], int]:
        kept = []
        for partition in described.partitions:
            self._tracker.saw(partition)
            if self._selection.matches(partition.topic, partition.partition):
                kept.append(partition)
        first = described.first_replicas.items()
        self._counts.update({topic: n for topic, n in first if self._selection.matches_topic(topic)})
        return tuple(kept), 0

    def last_errors(self) -> tuple[TopicError, ...]:
        """What was named and never came. A list of all topics leaves out those that may not be read, so those are
        asked for by name, to tell *not authorized* from *not there*."""
        missing = self._tracker.missing(where=_WHERE)
        topics = sorted({error.topic for error in missing} - self._reported)
        if not topics or not self._selection.has_patterns:
            return missing
        true = {error.topic: error for error in self._reader.describe(topics, None, 1, whole=True).errors}
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
        """The replica count that the controller's min ISR stands on, where reading starts further on in the topic."""
        first = self._reader.describe([topic], None, 1, whole=True).partitions
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
    cursor, told = start, 0
    while True:
        described = reader.describe(topics, cursor, limit)
        told += _told(described, cursor)
        if told > _MOST_PARTITIONS:
            raise _endless(f"the broker told of {told:,} partitions, and goes on")
        if described.next_cursor is not None:
            reader.ask_ahead(topics, described.next_cursor, limit)
        yield described, described.next_cursor
        if described.next_cursor is None:
            return
        cursor = described.next_cursor


def _told(described: Described, cursor: TopicPartition | None) -> int:
    """How many partitions the page tells of.

    Raises:
        ConnectError: it does not go on where the cursor is, or not from there to the next cursor: brokers sort by name
            and number (DescribeTopicPartitionsRequestHandler), and a page that came before would come for ever.
    """
    told = len(described.partitions) + sum(described.left_out.values())
    before = next((topic for topic in described.topics if cursor is not None and topic < cursor.topic), None)
    if before is not None:
        raise _endless(f"asked to go on at {cursor}, the broker told of topic {before}, which comes before that")
    following = described.next_cursor
    if following is None:
        return told
    if cursor is not None and following <= cursor:
        raise _endless(f"the broker's cursor went back from {cursor} to {following}")
    after = next((topic for topic in described.topics if topic > following.topic), None)
    if after is not None:
        raise _endless(f"the broker told of topic {after}, and its cursor goes back to {following}")
    first = cursor.partition if cursor is not None and cursor.topic == following.topic else 0
    in_topic = described.left_out.get(following.topic, 0) + _count(described.partitions, following.topic)
    if not told or in_topic > following.partition - first:
        since = "the beginning" if cursor is None else cursor
        raise _endless(f"the broker told of {told} partitions from {since} to its cursor {following}")
    return told


def _count(partitions: Sequence[PartitionState], topic: str) -> int:
    if isinstance(partitions, Rows):
        return sum(len(run) for run in partitions.runs if run.topic == topic)
    return sum(state.topic == topic for state in partitions)


def _endless(what: str) -> ConnectError:
    return ConnectError(
        f"{what}: pages would never end",
        next_step="a proxy may garble DescribeTopicPartitions; ask a broker directly",
    )


def _topic(error: TopicError) -> str:
    return error.topic


def _worded(error: TopicError) -> TopicError:
    if error.error != UNKNOWN_TOPIC or error.detail:
        return error
    return TopicError(error.topic, error.error, f"{_WHERE} has no topic {error.topic}")


def _has_retriable_error(answer: Message) -> bool:
    return any(error_name(topic.error_code) in RETRIABLE - {"LEADER_NOT_AVAILABLE"} for topic in answer.topics)
