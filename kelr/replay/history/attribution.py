"""Which event each change of a partition belongs to: told by the order of the records in a batch.

The controller writes the records of one event together, and may put several events into one batch (those of some
25 ms). A broker's record closes the changes that it brought when the broker is fenced, registers, is unregistered or
loses a directory, and opens them when the broker is unfenced or begins to shut down. A change belongs to such a record
only where it is one that this event makes; everything else stands for itself (`single`).

One thing cannot be told apart: a leader's report that takes a broker out of the ISR, in the same batch as the record
that fences this broker, looks like a part of the fencing, and is told as one.

Source: ReplicationControlManager (handleBrokerFenced, handleBrokerUnfenced, handleBrokerInControlledShutdown,
handleBrokerShutdown, handleBrokerUnregistered, handleDirectoriesOffline), BatchAccumulator of Apache Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from kelr.model import PartitionState, TopicPartition
from kelr.replay import records as rec
from kelr.replay.history.causes import (
    elected_as,
    has_recovery_manager,
    is_registration,
    reassignment_step,
    restart_of,
    struck_and_elected,
    struck_from_elr,
    told_of,
    unclean_allowed,
)
from kelr.replay.history.entries import Cause, CauseKind, Certainty, ElectedAs, ReassignmentStep, Restart
from kelr.replay.image import MIN_ISR, TOPIC, MetadataImage
from kelr.replay.packed import IdleRun, PackedChanges
from kelr.replay.records import BrokerMoved, Change, ConfigMoved, PartitionMoved, Restarted

# The cause of a partition's change beside which no broker came or went.
#
# What remains are requests (AlterPartition, ElectLeaders, AlterPartitionReassignments, AssignReplicasToDirs) and the
# controller's own tasks. Each leaves a mark of its own: only a leader's report lets the ISR grow while the leader
# stays, only a preferred election moves the leadership away from a replica that stays in sync.
#
# Source: ReplicationControlManager of Apache Kafka (alterPartition, electLeaders, alterPartitionReassignments,
# maybeElectUncleanLeaders, maybeBalancePartitionLeaders, handleAssignReplicasToDirs).

UNKNOWN = Cause(CauseKind.UNKNOWN, Certainty.UNKNOWN)

REQUESTED = frozenset(ReassignmentStep) - {ReassignmentStep.COMPLETED}
"""Steps that only AlterPartitionReassignments takes."""


def cause_alone(
    before: PartitionState,
    after: PartitionState,
    *,
    unclean_allowed: bool | None,
    directories_written: bool,
    recovery: str | None = None,
) -> Cause:
    """Why the partition changed, where no broker's record explains it.

    Args:
        unclean_allowed: unclean.leader.election.enable as it is on record.
        directories_written: a record beside it says in which log directories its replicas are.
        recovery: what is known of an unclean recovery (`recoveries.told_of`); None where there is no recovery manager.
    """
    step = reassignment_step(before, after)
    if step in REQUESTED:
        return Cause(CauseKind.REASSIGNMENT)
    if after.leader is not None and after.leader != before.leader:
        return _of_new_leader(before, after, step, unclean_allowed, recovery)
    if before.leader is None or after.leader is None:
        return UNKNOWN
    return _of_same_leader(before, after, step, directories_written)


def _of_new_leader(
    before: PartitionState,
    after: PartitionState,
    step: ReassignmentStep | None,
    unclean_allowed: bool | None,
    recovery: str | None,
) -> Cause:
    chosen = elected_as(before, after, recovers=recovery is not None)
    if chosen is ElectedAs.UNCLEAN_RECOVERY:
        return Cause(CauseKind.ELECTION, detail=recovery)
    if before.leader is None:
        return Cause(CauseKind.ELECTION, detail=_who_asked(chosen, unclean_allowed))
    if step is ReassignmentStep.COMPLETED and set(after.isr) - set(before.isr) and before.leader not in after.replicas:
        return Cause(CauseKind.ALTER_PARTITION, broker=before.leader)
    stays_in_sync = before.leader in after.isr and before.isr == after.isr
    if chosen is ElectedAs.ISR and stays_in_sync and after.leader == after.replicas[0]:
        return Cause(CauseKind.PREFERRED_ELECTION)
    return UNKNOWN


def _who_asked(chosen: ElectedAs | None, unclean_allowed: bool | None) -> str | None:
    if chosen is not ElectedAs.UNCLEAN:
        return None
    if unclean_allowed is False:
        return "ElectLeaders UNCLEAN (unclean.leader.election.enable is false)"
    if unclean_allowed:
        return "ElectLeaders UNCLEAN or by itself (unclean.leader.election.enable is true)"
    return "ElectLeaders UNCLEAN (or by itself, if the controller's file has unclean.leader.election.enable=true)"


def _of_same_leader(
    before: PartitionState, after: PartitionState, step: ReassignmentStep | None, directories_written: bool
) -> Cause:
    leader = after.leader
    grown, lost = set(after.isr) - set(before.isr), set(before.isr) - set(after.isr)
    if grown or (before.recovering and not after.recovering):
        return Cause(CauseKind.ALTER_PARTITION, broker=leader)
    if step is ReassignmentStep.COMPLETED:
        return Cause(CauseKind.ALTER_PARTITION, Certainty.LIKELY, broker=leader)
    if lost and directories_written:
        broker = next(iter(lost)) if len(lost) == 1 else None
        return Cause(CauseKind.DIRECTORY_FAILED, Certainty.LIKELY, broker=broker)
    if lost:
        return Cause(CauseKind.ALTER_PARTITION, broker=leader)
    return UNKNOWN


FULL_BATCH = 10_000
"""An event of more records goes on in the next batch (QuorumController.MAX_RECORDS_PER_BATCH)."""
MOST_HELD = 200_000
"""So many changes are kept until the record comes that explains them; beyond that their cause is not known."""


@dataclass(frozen=True, slots=True)
class Told:
    """A change with its cause; None for what is no change of a partition."""

    change: Change
    cause: Cause | None = None
    restart: Restart | None = None
    """For a broker's registration."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the records of a batch say beside what they changed."""

    of_checkpoint: bool
    topics_made: frozenset[str]
    directories_written: frozenset[tuple[str, int]]
    doubtful: bool
    """Something in it was not understood."""


class Attribution:
    """Takes the changes of one batch after the other, in the order of the log.

    Args:
        wanted: of which partitions the causes are asked for; those of others may stay unknown.
    """

    def __init__(self, image: MetadataImage, wanted: Callable[[TopicPartition], bool] | None = None) -> None:
        self._image = image
        self._wanted = wanted
        self._misfits = image.misfits
        self._run: list[PartitionMoved] = []
        """Changes since the last record of another kind, whose cause is open."""
        self._opened: Cause | None = None
        """The broker's record in front of them."""
        self._in_elrs: Counter[int] = Counter(
            broker
            for topic in image.topics.values()
            for state in topic.partitions.values()
            for broker in state.elr or ()
        )
        self._min_isr_topics: set[str | None] = set()
        self._batch = _Batch(False, frozenset(), frozenset(), False)

    @property
    def settled(self) -> bool:
        """Whether the causes of all changes were told."""
        return not self._run and self._opened is None

    def take(self, batch: rec.RecordBatch, changes: Sequence[Change]) -> Iterator[Told]:
        """The changes with their causes, in order; those of a full batch may come with the next one."""
        self._batch = self._looked_at(batch)
        self._min_isr_topics = set()
        for change in changes:
            self._count(change)
            if isinstance(change, PartitionMoved) and change.by == "PartitionChangeRecord":
                self._run.append(change)
            else:
                yield from self._other(change)
        if len(batch.records) < FULL_BATCH or not changes:
            yield from self.finish()
        elif len(self._run) > MOST_HELD:
            held, self._run = self._run, []
            yield from (Told(change, UNKNOWN) for change in held)

    def finish(self) -> Iterator[Told]:
        """What is still open, where nothing more comes."""
        yield from self._flushed()
        self._opened = None

    def passed_over(self, before: PartitionState, after: PartitionState) -> None:
        """A partition that nobody asks about changed, in batches that were not given here."""
        self._count_elrs(before.elr or (), after.elr or ())

    def passed(self) -> None:
        """Batches were not given here: what did not fit in them casts no doubt on those that are."""
        self._misfits = self._image.misfits

    # Kinds of records.

    def _other(self, change: Change) -> Iterator[Told]:
        if isinstance(change, BrokerMoved):
            yield from self._of_broker(change)
            return
        yield from self._flushed()
        self._opened = None
        if isinstance(change, PartitionMoved):
            yield Told(change, self._of_whole(change))
            return
        if isinstance(change, ConfigMoved) and change.key == MIN_ISR:
            self._min_isr_topics.add(change.resource if change.resource_type == TOPIC else None)
        yield Told(change)

    def _of_broker(self, change: BrokerMoved) -> Iterator[Told]:
        cause = _cause_of(change)
        if cause is None or self._batch.of_checkpoint or cause.kind in _OPENING:
            yield from self._flushed()
            yield Told(change)
            self._opened = cause
            return
        if self._opened is not None and self._opened.broker == change.broker:
            # What its shutdown brought leaves nothing to its fencing.
            yield from self._flushed_begun()
        belonging = _last_that_fit(self._run, cause)
        ahead, mine = self._run[: len(self._run) - belonging], self._run[len(self._run) - belonging :]
        both = self._of_either(ahead, mine)
        self._run = ahead
        yield from self._flushed()
        restart = restart_of(change, mine[both:], in_elrs=self._in_elrs[change.broker], image=self._image)
        cause = self._sure(replace(cause, restart=restart))
        unsure = replace(cause, certainty=Certainty.LIKELY)
        yield from (Told(one, unsure) for one in mine[:both])
        yield from (Told(one, _of_one(one, cause)) for one in mine[both:])
        yield Told(change, restart=restart)
        self._opened = None

    def _of_either(self, ahead: Sequence[PartitionMoved], mine: Sequence[PartitionMoved]) -> int:
        """How many of the changes that belong to the record behind them may belong to the one in front of them."""
        opened = self._opened
        if opened is None or not all(_fits(change, opened) for change in ahead):
            return 0
        return next((number for number, change in enumerate(mine) if not _fits(change, opened)), len(mine))

    def _of_whole(self, change: PartitionMoved) -> Cause:
        if change.by == "RemoveTopicRecord":
            return Cause(CauseKind.TOPIC_DELETED)
        if change.by == "ClearElrRecord":
            topic = None if change.before is None else change.before.topic
            written = self._min_isr_topics & {topic, None}
            detail = "for all topics" if written == {None} else None
            return Cause(CauseKind.MIN_ISR_WRITTEN, Certainty.CERTAIN if written else Certainty.LIKELY, detail=detail)
        if self._batch.of_checkpoint:
            return Cause(CauseKind.AS_FOUND)
        if change.before is not None or change.after is None:
            return UNKNOWN
        made = change.after.topic_id in self._batch.topics_made
        return Cause(CauseKind.TOPIC_CREATED if made else CauseKind.PARTITIONS_ADDED)

    # Runs.

    def _flushed(self) -> Iterator[Told]:
        run, self._run = self._run, []
        fitting = self._opened
        for change in run:
            if fitting is not None and _fits(change, fitting):
                yield Told(change, self._sure(self._opening(change, fitting)))
            else:
                fitting = None
                yield Told(change, self._sure(self._alone(change)))

    def _flushed_begun(self) -> Iterator[Told]:
        """The changes that belong to the record in front of them."""
        opened = self._opened
        while opened is not None and self._run and _fits(self._run[0], opened):
            change = self._run.pop(0)
            yield Told(change, self._sure(self._opening(change, opened)))

    def _opening(self, change: PartitionMoved, cause: Cause) -> Cause:
        """An unfencing lets the controller look at every partition without a leader, for any replica."""
        before, after = change.before, change.after
        if cause.kind is not CauseKind.BROKER_UNFENCED or before is None or after is None:
            return cause
        chosen = elected_as(before, after, recovers=has_recovery_manager(self._image))
        if chosen is ElectedAs.UNCLEAN_RECOVERY:
            return self._alone(change)
        if chosen is ElectedAs.UNCLEAN:
            allowed = unclean_allowed(self._image, after.topic)
            if allowed is False:
                return self._alone(change)
            return cause if allowed else replace(cause, certainty=Certainty.LIKELY)
        return cause if after.leader == cause.broker else replace(cause, certainty=Certainty.LIKELY)

    def _alone(self, change: PartitionMoved) -> Cause:
        before, after = change.before, change.after
        if before is None or after is None or (self._wanted is not None and not self._wanted(after.address)):
            return UNKNOWN
        return cause_alone(
            before,
            after,
            unclean_allowed=unclean_allowed(self._image, after.topic),
            directories_written=(after.topic_id, after.partition) in self._batch.directories_written,
            recovery=told_of(self._image, before) if has_recovery_manager(self._image) else None,
        )

    def _sure(self, cause: Cause) -> Cause:
        sure = cause.certainty is Certainty.CERTAIN
        return replace(cause, certainty=Certainty.LIKELY) if sure and self._batch.doubtful else cause

    # Facts.

    def _looked_at(self, batch: rec.RecordBatch) -> _Batch:
        misfits, self._misfits = self._misfits, self._image.misfits
        if type(batch.records) in _PLAIN:
            return _Batch(batch.of_checkpoint, frozenset(), frozenset(), misfits != self._misfits)
        return _Batch(
            of_checkpoint=batch.of_checkpoint,
            topics_made=frozenset(one.topic_id for one in batch.records if isinstance(one, rec.TopicMade)),
            directories_written=frozenset(
                (one.topic_id, one.partition)
                for one in batch.records
                if isinstance(one, rec.PartitionChanged) and one.directories is not None and one.isr is None
            ),
            doubtful=misfits != self._misfits or any(isinstance(one, rec.NotUnderstood) for one in batch.records),
        )

    def _count(self, change: Change) -> None:
        """Of how many ELRs each broker is a member."""
        if isinstance(change, Restarted):
            self._in_elrs.clear()
        elif isinstance(change, PartitionMoved):
            before = () if change.before is None else change.before.elr or ()
            after = () if change.after is None else change.after.elr or ()
            self._count_elrs(before, after)

    def _count_elrs(self, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        if before != after:
            self._in_elrs.subtract(before)
            self._in_elrs.update(after)


_PLAIN = (PackedChanges, IdleRun)
"""Records that change nothing but leaders and sets of partitions, or nothing at all."""
_OPENING = frozenset({CauseKind.BROKER_UNFENCED, CauseKind.CONTROLLED_SHUTDOWN})


def _cause_of(change: BrokerMoved) -> Cause | None:
    """What a broker's record does to partitions, where it does anything."""
    before, after = change.before, change.after
    if after is None:
        return Cause(CauseKind.BROKER_UNREGISTERED, broker=change.broker)
    if is_registration(change) or before is None:
        return Cause(CauseKind.BROKER_REGISTERED, broker=change.broker)
    if before.fenced is not after.fenced:
        kind = CauseKind.BROKER_FENCED if after.fenced else CauseKind.BROKER_UNFENCED
    elif after.in_controlled_shutdown and not before.in_controlled_shutdown:
        kind = CauseKind.CONTROLLED_SHUTDOWN
    elif set(before.directories) - set(after.directories):
        kind = CauseKind.DIRECTORY_FAILED
    elif before == after and after.fenced:
        # A broker whose session ends before it was ever unfenced is fenced again.
        kind = CauseKind.BROKER_FENCED
    else:
        return None
    return Cause(kind, broker=change.broker)


def _of_one(change: PartitionMoved, cause: Cause) -> Cause:
    """An election beside a registration may have been asked for just before it."""
    before, after, broker = change.before, change.after, cause.broker
    if before is None or after is None or broker is None or _left(broker, before, after):
        return cause
    return cause if _surely_struck(broker, before, after) else replace(cause, certainty=Certainty.LIKELY)


def _last_that_fit(run: Sequence[PartitionMoved], cause: Cause) -> int:
    """How many changes at the end of a run are ones that this event makes."""
    fitting = 0
    for change in reversed(run):
        if not _fits(change, cause):
            break
        fitting += 1
    return fitting


def _fits(change: PartitionMoved, cause: Cause) -> bool:
    before, after, broker = change.before, change.after, cause.broker
    if before is None or after is None or broker is None:
        return False
    if reassignment_step(before, after) in REQUESTED:
        return False
    if cause.kind is CauseKind.BROKER_UNFENCED:
        return before.leader is None
    if _left(broker, before, after):
        return True
    both = {CauseKind.BROKER_REGISTERED, CauseKind.BROKER_UNREGISTERED}
    if cause.kind in both and replace(before, partition_epoch=after.partition_epoch) == after:
        # Kafka's index of ELRs may hold a partition twice once ELRs were cleared: its second record changes nothing.
        return True
    if cause.kind not in both or broker not in (before.elr or ()):
        return False
    return _surely_struck(broker, before, after) or (before.leader is None and after.leader is not None)


def _surely_struck(broker: int, before: PartitionState, after: PartitionState) -> bool:
    return struck_from_elr(broker, before, after) or struck_and_elected(broker, before, after)


def _left(broker: int, before: PartitionState, after: PartitionState) -> bool:
    """Whether a change is what the controller makes of a partition when a broker goes: out of the ISR with it, or no
    leader any more where it was the last one and stays in the ISR (without ELR)."""
    if broker not in before.isr:
        return False
    if broker in after.isr:
        return before.leader == broker != after.leader and after.isr == before.isr == (broker,)
    grown = set(after.isr) - set(before.isr)
    return not grown or (after.leader != before.leader and after.isr == (after.leader,))
