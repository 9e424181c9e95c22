"""Cutting a sorted stream of partitions into pages, for the sources that hold a finished snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kelr.model import PartitionState, Selection, Target, TopicError, TopicPartition
from kelr.sources.base import Page

DEFAULT_PAGE_SIZE = 2000
"""What a broker answers at most unless `max.request.partition.size.limit` says otherwise."""

UNKNOWN_PARTITION = "UNKNOWN_TOPIC_OR_PARTITION"


class NamedTracker:
    """Remembers which outright named topics and partitions have not been seen, to report them in the end."""

    def __init__(self, selection: Selection, start: TopicPartition | None = None) -> None:
        self._partitions = {TopicPartition(topic, partition) for topic, partition in selection.named_partitions()}
        self._topics = set(selection.topics)
        if start is not None:
            self._partitions = {address for address in self._partitions if address >= start}
            self._topics = {topic for topic in self._topics if topic > start.topic}
        whole = {address.topic for address in self._partitions if start is None or address.topic > start.topic}
        self._there: dict[str, set[int]] = {topic: set() for topic in whole}
        """The partitions that were seen of topics some of whose partitions are named, and that are read from 0 on."""

    def saw(self, partition: PartitionState) -> None:
        """This partition exists, whether it is selected or not."""
        self._topics.discard(partition.topic)
        if self._partitions:
            self._partitions.discard(partition.address)
            if partition.topic in self._there:
                self._there[partition.topic].add(partition.partition)

    def saw_topic(self, topic: str) -> None:
        """This topic exists; for selections of whole topics."""
        self._topics.discard(topic)

    def failed(self, topic: str) -> None:
        """An error was reported for the whole topic; its partitions need no error of their own."""
        self._topics.discard(topic)
        self._partitions = {address for address in self._partitions if address.topic != topic}

    def missing(self, *, where: str) -> tuple[TopicError, ...]:
        """One error for each topic that never came, then one for each topic some of whose named partitions did not.

        Args:
            where: what was searched, such as ``the cluster`` or ``this snapshot``.
        """
        errors = [TopicError(topic, UNKNOWN_PARTITION, f"{where} has no topic {topic}") for topic in self._topics]
        absent: dict[str, list[int]] = {}
        for address in sorted(self._partitions):
            if address.topic not in self._topics:
                absent.setdefault(address.topic, []).append(address.partition)
        for topic, partitions in absent.items():
            noun = "partition" if len(partitions) == 1 else "partitions"
            there = self._there.get(topic)
            has = f", only {_numbers(there)}" if there else ""
            detail = f"{where} has no {noun} {_numbers(partitions)} of topic {topic}{has}"
            errors.append(TopicError(topic, UNKNOWN_PARTITION, detail, absent=tuple(partitions)))
        return tuple(sorted(errors, key=lambda error: error.topic))


def _numbers(partitions: Iterable[int]) -> str:
    """``0-5,9``."""
    return str(Target(topic="", partitions=tuple(sorted(partitions)))).rpartition(":")[2]


def paginate(
    partitions: Iterable[PartitionState],
    selection: Selection,
    *,
    topic_errors: Iterable[TopicError] = (),
    first_replicas: Mapping[str, int],
    page_size: int | None,
    start: TopicPartition | None,
    where: str,
) -> Iterator[Page]:
    """The selected ones of these partitions (sorted by address) as pages; at least one page, the errors on the last.

    Args:
        topic_errors: errors that the snapshot already holds; those that the selection touches are passed on.
        where: what was searched, for the words of an error.
    """
    size = page_size or DEFAULT_PAGE_SIZE
    tracker = NamedTracker(selection, start)
    held: list[PartitionState] = []
    for partition in partitions:
        tracker.saw(partition)
        if (start is not None and partition.address < start) or not selection.matches(
            partition.topic, partition.partition
        ):
            continue
        if len(held) == size:
            yield _page(held, first_replicas, next_cursor=partition.address)
            held = []
        held.append(partition)
    errors = [
        error
        for error in topic_errors
        if selection.matches_topic(error.topic) and (start is None or error.topic >= start.topic)
    ]
    for error in errors:
        tracker.failed(error.topic)
    errors.extend(tracker.missing(where=where))
    yield _page(held, first_replicas, errors=tuple(sorted(errors, key=lambda error: error.topic)))


def _page(
    partitions: list[PartitionState],
    first_replicas: Mapping[str, int],
    *,
    next_cursor: TopicPartition | None = None,
    errors: tuple[TopicError, ...] = (),
) -> Page:
    topics = dict.fromkeys(partition.topic for partition in partitions)
    counts = {topic: first_replicas[topic] for topic in topics if topic in first_replicas}
    return Page(tuple(partitions), errors, next_cursor, counts)
