"""A `Source` over a `Snapshot` that is already in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property

from kelr.errors import UsageError
from kelr.model import (
    Cluster,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    RecoveryQuorum,
    Selection,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.sources.base import Closes, Page, Progress
from kelr.sources.doubt import SavedDisks
from kelr.sources.paging import paginate

NOT_IN_SNAPSHOT = "not in the snapshot"


class MemorySource(Closes):
    """Answers every question from one `Snapshot`; what the snapshot lacks comes as a value that says so."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._closed = False

    @property
    def name(self) -> str:
        return self._snapshot.source

    @property
    def taken_at_ms(self) -> int | None:
        return self._snapshot.taken_at_ms

    @property
    def controller_silence(self) -> str | None:
        """See `HearsController`: as it was when the snapshot was taken."""
        return self._snapshot.cluster.controller_silence

    def cluster(self) -> Cluster:
        return self._open().cluster

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        snapshot = self._open()
        return paginate(
            sorted(snapshot.partitions, key=lambda partition: partition.address),
            selection,
            topic_errors=snapshot.topic_errors,
            first_replicas=first_partition_replicas(snapshot),
            page_size=page_size,
            start=start,
            where="this snapshot",
        )

    def topic_configs(self, topics: Collection[str]) -> Mapping[str, TopicConfig]:
        configs = self._open().configs
        return {topic: configs.get(topic) or TopicConfig(error=NOT_IN_SNAPSHOT) for topic in topics}

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        """The answers that the snapshot holds; `lineage` cannot add to them, so epochs not saved stay unknown."""
        del lineage
        snapshot = self._open()
        return saved_answers(snapshot.logs, partitions, self._disks, snapshot.cluster, progress)

    @cached_property
    def _disks(self) -> SavedDisks:
        snapshot = self._snapshot
        return SavedDisks.of((state, snapshot.logs.get(state.address, ())) for state in snapshot.partitions)

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """Those that the snapshot holds."""
        saved = self._open().quorums
        return {state.address: saved[state.address] for state in partitions if state.address in saved}

    def forget(self) -> None:
        """Nothing is remembered: the snapshot is all there is."""

    def close(self) -> None:
        self._closed = True

    def _open(self) -> Snapshot:
        if self._closed:
            raise UsageError(f"source {self.name!r} is closed")
        return self._snapshot


def saved_answers(
    saved: Mapping[TopicPartition, Sequence[LogAnswer]],
    partitions: Sequence[PartitionState],
    disks: SavedDisks,
    cluster: Cluster,
    progress: Progress | None = None,
) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
    """One answer for each replica of each partition, in assignment order; one that was not saved is `NOT_ASKED`.

    How a broker stopped, which a log of another partition may tell, is said of all.
    """
    if progress is not None:
        progress(len(partitions), len(partitions))
    return {
        state.address: disks.added_to(state, _answers_for(state, saved.get(state.address, ())), cluster)
        for state in partitions
    }


def _answers_for(partition: PartitionState, saved: Sequence[LogAnswer]) -> tuple[LogAnswer, ...]:
    by_replica = {answer.replica: answer for answer in saved}
    return tuple(
        by_replica.get(replica) or LogUnavailable(replica, LogUnavailableReason.NOT_ASKED, NOT_IN_SNAPSHOT)
        for replica in partition.replicas
    )


def first_partition_replicas(snapshot: Snapshot) -> Mapping[str, int]:
    """The replica count of partition 0 of each topic, as saved, or as the snapshot's own partitions show it."""
    counts = {partition.topic: len(partition.replicas) for partition in snapshot.partitions if partition.partition == 0}
    return {**counts, **snapshot.first_partition_replicas}
