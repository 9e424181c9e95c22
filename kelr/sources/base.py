"""What every source of knowledge can be asked: a live cluster, a snapshot file, and what comes later.

A source answers questions about one cluster. All answers are kelr's own values; wire values such as -1 are translated
inside the source. A dead, fenced, unreachable or unauthorized broker is a value in an answer and never an exception:
only a cluster that cannot be reached at all raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from kelr.model import PartitionState

if TYPE_CHECKING:
    from kelr.model import (
        Broker,
        Cluster,
        LogAnswer,
        RecoveryQuorum,
        Selection,
        Snapshot,
        TopicConfig,
        TopicError,
        TopicPartition,
    )
    from kelr.sources.unwanted import Unwanted


@dataclass(frozen=True, slots=True)
class Page:
    """A run of partitions in address order, as one answer brought them."""

    partitions: Sequence[PartitionState]
    topic_errors: tuple[TopicError, ...] = ()
    next_cursor: TopicPartition | None = None
    """Where the next page starts; None on the last page."""
    first_partition_replicas: Mapping[str, int] = field(default_factory=dict)
    """Replica count of partition 0 for the topics whose partition 0 this answer held, selected or not."""
    left_out: int = 0
    """Selected partitions that are not here, because they are unwanted."""


def replicas_still_needed(first_replicas: Mapping[str, int], topics: Container[str]) -> dict[str, int]:
    """Of the replica counts that pages have told so far, those of a page's topics, and of the last topic that any page
    told of: it may go on in the next one, although nothing of it was kept so far."""
    last = max(first_replicas, default=None)
    return {topic: count for topic, count in first_replicas.items() if topic in topics or topic == last}


Progress = Callable[[int, int], None]
"""Called with (done, total) while long work goes on."""


CUT_SHORT = "which may not be its end: not all of it could be read"
"""Behind the name of a metadata log that is damaged: in every document, and in the header of a snapshot made of it."""


class Closes(ABC):
    """Closed at the end of a `with`."""

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Source(Protocol):
    """One cluster's knowledge. Use as a context manager or call `close`."""

    @property
    def name(self) -> str:
        """``live``, or the file's name."""

    @property
    def taken_at_ms(self) -> int | None:
        """When what it answers was read, in milliseconds since 1970 UTC; None for a source that reads when asked."""

    def cluster(self) -> Cluster:
        """Brokers, features and how they were learnt. Read once, then remembered."""

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        """The selected partitions page by page, in address order, never more than one page in memory.

        `start` is the first address to read (inclusive). A topic or partition that was named outright and does not
        exist comes as a `TopicError`.
        """

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        """The election configs of these topics; a topic whose configs could not be read has `error` set."""

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        """What each replica of each partition holds: one answer for each replica, in assignment order.

        A live cluster's brokers tell then, too, whether they are cordoned: `cluster` knows it from there on.
        """

    def forget(self) -> None:
        """Read the cluster anew at the next question, where it was remembered; a saved source has nothing newer."""

    def close(self) -> None:
        """End connections and close files; further calls raise."""

    def __enter__(self) -> Self:
        """The source itself, closed at the end of the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class LeavesOut(Protocol):
    """A source that can leave partitions out without reading them."""

    def pages_without(
        self,
        unwanted: Unwanted,
        selection: Selection,
        *,
        page_size: int | None = None,
        start: TopicPartition | None = None,
    ) -> Iterator[Page]:
        """As `Source.pages`, without partitions that are certainly unwanted; `Page.left_out` counts them."""


@runtime_checkable
class KnowsQuorums(Protocol):
    """A source that has a metadata log at hand, or what was learnt from one."""

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """Who holds everything committed of these partitions; one is missing where the log does not tell of it.

        Args:
            partitions: as they were just read. Where the log does not reach as far as they do, the quorum says so
                (`RecoveryQuorum.doubt`).
        """


def quorums_of(source: Source, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
    """What the source tells of who holds everything committed; nothing where it has no metadata log."""
    return source.quorums(partitions) if isinstance(source, KnowsQuorums) else {}


@runtime_checkable
class KnowsRegistrations(Protocol):
    """A source that has a metadata log at hand, which no request of released Kafka tells broker epochs like."""

    def registrations(self) -> Registrations:
        """The brokers as the log has them."""


@dataclass(frozen=True, slots=True)
class Registrations:
    """What is known of how brokers are registered."""

    brokers: Mapping[int, Broker]
    """By id; those that are registered, with their broker epochs."""
    as_of_ms: int | None
    """Up to when that is known, in milliseconds since 1970 UTC; None: until now."""


def registrations_of(source: Source) -> Registrations:
    """What the source tells of how brokers are registered: by its metadata log, where it has one, else by what it says
    of the cluster, without broker epochs where it does not tell them."""
    if isinstance(source, KnowsRegistrations):
        return source.registrations()
    return Registrations({broker.id: broker for broker in source.cluster().brokers}, source.taken_at_ms)


@runtime_checkable
class HearsController(Protocol):
    """A source whose brokers pass questions on to the active controller, or one that was saved from such a source."""

    @property
    def controller_silence(self) -> str | None:
        """Why no controller that leads answered when `cluster` was read, for a saved source when it was saved; None:
        one did, or nobody knows."""


def silence_of(source: Source) -> str | None:
    """Why no controller answered at the newest reading; None: one did, or nobody knows."""
    return source.controller_silence if isinstance(source, HearsController) else None


class Over(Closes):
    """A source over another one, which answers all that it does not answer itself."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def taken_at_ms(self) -> int | None:
        return self._source.taken_at_ms

    @property
    def selected(self) -> str | None:
        """Of a saved source: what it was asked for when it was taken, where that was not everything."""
        found: str | None = getattr(self._source, "selected", None)
        return found

    @property
    def controller_silence(self) -> str | None:
        """See `HearsController`."""
        return silence_of(self._source)

    def cluster(self) -> Cluster:
        return self._source.cluster()

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        self.cluster()  # which checks that both are of one cluster
        return self._source.pages(selection, page_size=page_size, start=start)

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        return self._source.topic_configs(topics)

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        return self._source.replica_logs(partitions, lineage=lineage, progress=progress)

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """See `KnowsQuorums.quorums`."""
        return quorums_of(self._source, partitions)

    def forget(self) -> None:
        self._source.forget()

    def close(self) -> None:
        self._source.close()


LogFilter = Callable[[PartitionState], bool]


def take_snapshot(
    source: Source,
    selection: Selection,
    *,
    now_ms: int,
    with_logs: LogFilter | None = None,
    lineage: bool = False,
    progress: Progress | None = None,
) -> Snapshot:
    """Read everything selected into one `Snapshot`.

    Args:
        now_ms: the time that the snapshot carries, in milliseconds since 1970 UTC.
        with_logs: for which partitions the replicas' logs are asked; None asks for none.
        lineage: whether to learn each log's whole epoch history.
    """
    from kelr.model import Snapshot  # noqa: PLC0415 - who reads page by page loads nothing of what is in it

    cluster = source.cluster()
    partitions: list[PartitionState] = []
    errors: list[TopicError] = []
    first_replicas: dict[str, int] = {}
    for page in source.pages(selection):
        partitions.extend(page.partitions)
        errors.extend(page.topic_errors)
        first_replicas.update(page.first_partition_replicas)
    asked = [] if with_logs is None else [partition for partition in partitions if with_logs(partition)]
    return Snapshot(
        taken_at_ms=now_ms,
        cluster=cluster,
        partitions=tuple(partitions),
        configs=source.topic_configs(sorted({partition.topic for partition in partitions})),
        logs=source.replica_logs(asked, lineage=lineage, progress=progress) if asked else {},
        topic_errors=tuple(errors),
        first_partition_replicas=first_replicas,
        quorums=quorums_of(source, partitions),
        source=source.name,
    )
