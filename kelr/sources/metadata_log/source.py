"""A metadata log as a `Source`: the cluster as its controller had it at one moment."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from kelr.errors import UsageError
from kelr.model import (
    Cluster,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    RecoveryQuorum,
    Selection,
    TopicConfig,
    TopicPartition,
)
from kelr.replay.snapshots import Described, cluster_of_image, first_partition_replicas
from kelr.sources.base import CUT_SHORT, Closes, Page, Progress
from kelr.sources.metadata_log.log import MetadataLogReader
from kelr.sources.metadata_log.replaying import Moment, check_understood, replay, time_text
from kelr.sources.paging import paginate
from kelr.sources.quorum_source import QuorumReader

NOT_IN_LOG = "not in the metadata log"
NO_LOGS = "the metadata log says nothing of what replicas hold"


class MetadataLogSource(Closes):
    """The state at a moment of a metadata log, which is replayed once, when this is made.

    What the replicas' logs hold is on no record: every answer about them is `NOT_ASKED`. Configs are those on record;
    what the nodes' files say is unknown (`kelr.replay.snapshots`).

    Args:
        at: the moment; None for the end of the log.
        progress: told of bytes read and bytes there.
        on_close: done when this is closed; until then the log may be read once more.

    Raises:
        BadInputError: the log cannot be read, or holds records without which nobody knows who leads.
        UsageError: the moment is outside the log.
    """

    def __init__(
        self,
        log: MetadataLogReader,
        at: Moment | None = None,
        *,
        progress: Progress | None = None,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        replayed = replay(log.batches(progress), at, name=log.name)
        image = replayed.image
        assert image.at is not None
        self._warnings = (*log.warnings, *check_understood(image, name=log.name))
        self._image, self._described = image, Described(image)
        self._cluster = cluster_of_image(image, cluster_id=log.cluster_id)
        self._closed, self._on_close = False, on_close
        self._quorums = QuorumReader(log, Moment(offset=replayed.next_offset), progress=progress)
        self.next_offset = replayed.next_offset
        """All records of lower offsets have been applied: ``--at`` with this offset gives this state."""
        self._taken_at_ms = image.at.timestamp_ms
        self.cut_short = at is None and log.cut_short
        """Whether there may be more of a log whose end was asked about: see `MetadataLogReader.cut_short`."""
        behind = f", {CUT_SHORT}" if self.cut_short else ""
        self._name = f"{log.name} at offset {self.next_offset}, {time_text(self._taken_at_ms)}{behind}"

    @property
    def name(self) -> str:
        return self._name

    @property
    def taken_at_ms(self) -> int | None:
        """When the last record that was applied was appended, in milliseconds since 1970 UTC."""
        return self._taken_at_ms

    @property
    def warnings(self) -> Sequence[str]:
        """What was odd about the log, a sentence each."""
        return self._warnings

    def cluster(self) -> Cluster:
        self._open()
        return self._cluster

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        self._open()
        names = [
            name
            for name in sorted(self._image.names)
            if selection.matches_topic(name) and (start is None or name >= start.topic)
        ]
        return paginate(
            (state for name in names for state in self._described.partitions(name)),
            selection,
            first_replicas=first_partition_replicas(self._image, names),
            page_size=page_size,
            start=start,
            where=f"the {self._name}",
        )

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        self._open()
        known = self._image.names
        return {
            topic: self._described.config(topic) if topic in known else TopicConfig(error=NOT_IN_LOG)
            for topic in sorted(topics)
        }

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        """Nothing is known of them: `NOT_ASKED` for each replica."""
        del lineage
        self._open()
        if progress is not None:
            progress(len(partitions), len(partitions))
        return {
            partition.address: tuple(
                LogUnavailable(replica, LogUnavailableReason.NOT_ASKED, NO_LOGS) for replica in partition.replicas
            )
            for partition in partitions
        }

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """Who held everything committed at this moment; the log is read once more for it, record by record."""
        self._open()
        return self._quorums.quorums(partitions)

    def forget(self) -> None:
        """The log is replayed once: it says what was."""

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._on_close()

    def _open(self) -> None:
        if self._closed:
            raise UsageError(f"source {self._name!r} is closed")
