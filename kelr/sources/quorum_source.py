"""A source beside a metadata log: who holds everything committed, which no request of released Kafka tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kelr.errors import RefusedError
from kelr.model import (
    Cluster,
    PartitionState,
    RecoveryQuorum,
    TopicPartition,
)
from kelr.replay.image import MetadataImage
from kelr.replay.quorum import QuorumTracker
from kelr.replay.snapshots import cluster_of_image
from kelr.sources.base import Over, Progress, Registrations, Source
from kelr.sources.metadata_log.log import MetadataLogReader
from kelr.sources.metadata_log.replaying import Moment, check_understood, replay, time_text


class QuorumReader:
    """The recovery quorums of a metadata log, which is replayed when they are first asked for.

    Args:
        at: up to where it is replayed; None for its end.
        copied: whether it may end before the states that are asked about: files, beside a cluster.
        progress: told of bytes read and bytes there.
    """

    def __init__(
        self,
        log: MetadataLogReader,
        at: Moment | None = None,
        *,
        copied: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._log, self._at, self._copied, self._progress = log, at, copied, progress
        self._tracker: QuorumTracker | None = None
        self._has_grown = False
        self._image = MetadataImage()

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """The quorums of these partitions, each judged by whether the log reaches as far as the state does.

        Raises:
            BadInputError: the log cannot be read, or holds records without which nobody knows who leads.
        """
        found, reaches = self._found(self._tracker or self._replayed(), partitions)
        if self._has_grown and not reaches:
            found, _ = self._found(self._replayed(), partitions)
        return found

    def registrations(self) -> Registrations:
        """Brokers as the log has them at its end, or at the moment up to which it is replayed.

        Raises: as `quorums`.
        """
        if self._tracker is None or self._has_grown:
            self._replayed()
        at = self._image.at
        brokers = cluster_of_image(self._image, cluster_id=None).brokers
        return Registrations({broker.id: broker for broker in brokers}, None if at is None else at.timestamp_ms)

    def cordons(self) -> Mapping[int, bool]:
        """Which brokers the log has as cordoned, dead ones too, and which not; nothing before it was replayed."""
        return {} if self._tracker is None else {id_: broker.cordoned for id_, broker in self._image.brokers.items()}

    def grows(self) -> None:
        """Replay the log anew if it does not reach as far as what is asked about next: a live one has grown."""
        self._has_grown = True

    def _found(
        self, tracker: QuorumTracker, partitions: Sequence[PartitionState]
    ) -> tuple[Mapping[TopicPartition, RecoveryQuorum], bool]:
        """The quorums, and whether the log tells of each partition up to the state that was read."""
        found, reaches = {}, True
        for state in partitions:
            on_record, quorum = self._image.partition(state.address), tracker.quorum(state.address)
            if on_record is None or quorum is None or _another_topic(on_record, state):
                reaches = False
                continue
            reaches = reaches and _parted(quorum, on_record, state) is None
            found[state.address] = fitted(quorum, on_record, state, copied=self._copied)
        return found, reaches

    def _replayed(self) -> QuorumTracker:
        self._image = MetadataImage()
        tracker = QuorumTracker(self._image)
        batches = self._log.batches(self._progress)
        replay(batches, self._at, name=self._log.name, observer=tracker.take, image=self._image)
        check_understood(self._image, name=self._log.name)
        self._tracker, self._has_grown = tracker, False
        return tracker


def fitted(
    quorum: RecoveryQuorum, on_record: PartitionState, state: PartitionState, *, copied: bool = False
) -> RecoveryQuorum:
    """The quorum for a state that may be newer, or older, than the end of the log.

    Elections raise the leader epoch, and only a leader moves the ISR: where nobody leads and both are the log's,
    nothing was committed since that the quorum does not hold. A member that has lost its place in the ELR since may
    lack a tail.

    Args:
        copied: whether the log may end before the state. A leader may then have let others into the ISR and out again.
    """
    doubt = _parted(quorum, on_record, state)
    if doubt is None and copied and state.leader is not None and {*quorum.members} != {*state.isr}:
        doubt = f"{_ends(quorum)}: whom the leader has let into the ISR and out again since is not in it"
    if doubt is not None:
        return replace(quorum, doubt=quorum.doubt or doubt)
    places = {*state.isr, *(state.elr if state.elr is not None else quorum.elr)}
    fallen = {*quorum.elr} - places
    if not fallen & {*quorum.members}:
        return quorum
    restarted = {*quorum.restarted, *fallen}
    lost = {*quorum.last_known_elr, *(fallen & {*quorum.members})}
    return replace(
        quorum,
        restarted=tuple(member for member in quorum.members if member in restarted),
        last_known_elr=tuple(replica for replica in state.replicas if replica in lost),
    )


def _parted(quorum: RecoveryQuorum, on_record: PartitionState, state: PartitionState) -> str | None:
    ends = _ends(quorum)
    if quorum.leader_epoch > state.leader_epoch:
        return f"{ends}, in leader epoch {quorum.leader_epoch}, and the state is an older one, of {state.leader_epoch}"
    if quorum.leader_epoch < state.leader_epoch:
        return f"{ends}, in leader epoch {quorum.leader_epoch}: before the partition's, {state.leader_epoch}"
    for name in ("leader", "replicas", "isr"):
        then, now = getattr(on_record, name), getattr(state, name)
        if then != now and (name != "isr" or {*then} != {*now}) and (name != "replicas" or {*then} != {*now}):
            return f"{ends}: before the partition's last change, of its {name}"
    return None


def _ends(quorum: RecoveryQuorum) -> str:
    return f"the log at hand ends at offset {quorum.as_of_offset}, {time_text(quorum.as_of_ms)}"


def _another_topic(on_record: PartitionState, state: PartitionState) -> bool:
    return None not in {on_record.topic_id, state.topic_id} and on_record.topic_id != state.topic_id


class QuorumSource(Over):
    """Answers as `source` does, and tells quorums from a metadata log of the same cluster.

    Args:
        log: files, or a live controller; read when quorums are first asked for.
        follows: whether the log grows while the cluster goes on: then it is read again where it ends too early.
        on_close: called when this is closed, to end what the log is read from.
        progress: told of bytes of the log read and bytes there.

    Raises (when first asked):
        RefusedError: the log is of another cluster.
    """

    def __init__(
        self,
        source: Source,
        log: MetadataLogReader,
        *,
        follows: bool = False,
        progress: Progress | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(source)
        self._log, self._follows, self._on_close = log, follows, on_close
        self._reader = QuorumReader(log, copied=not follows, progress=progress)
        self._checked = False

    @property
    def beneath(self) -> Source:
        """The source without the log."""
        return self._source

    @property
    def warnings(self) -> Sequence[str]:
        """What was odd about the log, a sentence each."""
        return self._log.warnings

    def cluster(self) -> Cluster:
        cluster = super().cluster()
        if not self._checked:
            found, expected = self._log.cluster_id, cluster.cluster_id
            if found is not None and expected is not None and found != expected:
                raise RefusedError(
                    f"the {self._log.name} is of cluster {found}, and this is cluster {expected}",
                    next_step="give the metadata log of a node of this cluster",
                    code="wrong-cluster",
                )
            self._checked = True
        # A copy may be older than a cordon.
        return cluster.with_cordons(self._reader.cordons()) if self._follows else cluster

    def quorums(self, partitions: Sequence[PartitionState]) -> Mapping[TopicPartition, RecoveryQuorum]:
        """See `KnowsQuorums.quorums`."""
        self.cluster()
        return self._reader.quorums(partitions)

    def registrations(self) -> Registrations:
        """See `KnowsRegistrations.registrations`. Those of a live controller hold until now."""
        self.cluster()
        known = self._reader.registrations()
        return replace(known, as_of_ms=None) if self._follows else known

    def forget(self) -> None:
        if self._follows:
            self._reader.grows()
        super().forget()

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self._on_close is not None:
                self._on_close()


def without_log(source: Source) -> Source:
    """The source itself, where a metadata log stands beside it."""
    return source.beneath if isinstance(source, QuorumSource) else source
