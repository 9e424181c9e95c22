"""From the metadata log, batch by batch, to the entries of a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

from kelr.model import PartitionState, RecoveryQuorum, TopicPartition
from kelr.replay import records as rec
from kelr.replay.history.attribution import FULL_BATCH, Attribution, Told
from kelr.replay.history.causes import (
    MATTERS,
    config_min_isr,
    elected_as,
    has_recovery_manager,
    is_registration,
    reassignment_step,
)
from kelr.replay.history.entries import (
    BrokerEntry,
    BrokerEvent,
    Cause,
    CauseKind,
    Certainty,
    ClusterEntry,
    ClusterEvent,
    ElectedAs,
    Election,
    Entry,
    PartitionEntry,
    PartitionSummary,
    Restart,
    Summaries,
)
from kelr.replay.history.window import Carried, Interest, Memory, Window
from kelr.replay.image import BROKER, MIN_ISR, TOPIC, MetadataImage
from kelr.replay.packed import Folding, IdleRun, PackedChanges, address_of
from kelr.replay.quorum import QuorumTracker
from kelr.replay.records import (
    At,
    BrokerMoved,
    Change,
    ConfigMoved,
    ControllerMoved,
    FeatureMoved,
    PartitionMoved,
    RecordBatch,
    Restarted,
)

# Entries of brokers and of the cluster as a whole.


def other_entry(told: Told) -> BrokerEntry | ClusterEntry | None:
    """What a change of a broker or of the cluster is told as; None for what elections do not depend on."""
    change = told.change
    if isinstance(change, BrokerMoved):
        event = _broker_event(change)
        return (
            None
            if event is None
            else BrokerEntry(change.at, change.broker, event, change.before, change.after, told.restart)
        )
    if isinstance(change, ControllerMoved):
        return ClusterEntry(change.at, ClusterEvent.CONTROLLER, after=str(change.controller))
    if isinstance(change, FeatureMoved):
        return ClusterEntry(
            change.at, ClusterEvent.FEATURE, change.name, before=str(change.before), after=str(change.after)
        )
    if isinstance(change, ConfigMoved):
        return _config_entry(change)
    return ClusterEntry(change.at, ClusterEvent.CHECKPOINT) if isinstance(change, Restarted) else None


def _config_entry(change: ConfigMoved) -> ClusterEntry | None:
    of_all = change.resource_type == BROKER and not change.resource
    if change.key not in MATTERS or not (of_all or change.resource_type == TOPIC):
        return None
    topic = None if of_all else change.resource
    return ClusterEntry(change.at, ClusterEvent.CONFIG, change.key, topic, change.before, change.after)


def _broker_event(change: BrokerMoved) -> BrokerEvent | None:
    before, after = change.before, change.after
    if after is None:
        return BrokerEvent.UNREGISTERED
    if is_registration(change) or before is None:
        return BrokerEvent.REGISTERED
    if before.fenced is not after.fenced:
        return BrokerEvent.FENCED if after.fenced else BrokerEvent.UNFENCED
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        return BrokerEvent.SHUTDOWN_BEGUN
    if before.cordoned is not after.cordoned:
        return BrokerEvent.CORDONED if after.cordoned else BrokerEvent.UNCORDONED
    return BrokerEvent.DIRECTORIES_CHANGED if set(before.directories) != set(after.directories) else None


# Batches that change nothing but partitions nobody asks about, passed over: what they say is folded, and the image of
# the cluster has it when somebody looks.


class _Wanted(dict[bytes, bool]):
    """Whether somebody asks about a partition, by its key; whether a partition of an unknown topic is meant is told
    anew each time."""

    def __init__(self, image: MetadataImage, wanted: Callable[[TopicPartition], bool]) -> None:
        super().__init__()
        self._image, self._wanted = image, wanted

    def __missing__(self, key: bytes) -> bool:
        topic_id, partition = address_of(key)
        topic = self._image.topics.get(topic_id)
        if topic is None:
            return True
        self[key] = found = self._wanted(TopicPartition(topic.name, partition))
        return found


class Passing:
    """Decides which batches are passed over, and keeps what they say.

    Args:
        wanted: which partitions somebody asks about.
        moved: told of each partition, before and after everything that was passed over, when the image has it.
    """

    def __init__(
        self,
        image: MetadataImage,
        wanted: Callable[[TopicPartition], bool],
        moved: Callable[[PartitionState, PartitionState], None],
    ) -> None:
        self._image = image
        self._wanted = _Wanted(image, wanted)
        self._folding = Folding(image, moved)

    def passes(self, batch: rec.RecordBatch) -> bool:
        """Whether the batch is passed over; otherwise the image is made ready for it, and nothing is pending."""
        if batch.of_checkpoint or self._image.in_transaction:
            self._wanted.clear()  # what is told there of topics is not looked at here
            self.settle()
            return False
        if self._is_looked_at(batch.records):
            self.settle()
            return False
        self._folding.apply(batch)
        return True

    def _is_looked_at(self, records: Sequence[rec.MetadataRecord]) -> bool:
        kind = type(records)
        if kind is PackedChanges:
            return any(map(self._wanted.__getitem__, records.keys))  # type: ignore[attr-defined]  # by its kind
        if kind is IdleRun or all(type(one) is rec.Irrelevant for one in records):
            return False
        if any(type(one) is rec.TopicRemoved or self._takes_over(one) for one in records):
            self._wanted.clear()
        return True

    def _takes_over(self, one: rec.MetadataRecord) -> bool:
        return type(one) is rec.TopicMade and one.topic_id in self._image.topics

    def settle(self) -> None:
        """The image has everything that was passed over."""
        self._folding.finish()


_RAN_ON = frozenset({None, Restart.SAME_INCARNATION})
"""What is no restart of a broker."""
_IN_SYNC = frozenset({ElectedAs.ISR, ElectedAs.ELR})
_AS_FOUND = Cause(CauseKind.AS_FOUND)
_NOT_TOLD = Cause(CauseKind.NOT_TOLD, Certainty.UNKNOWN)


class History:
    """Replays a metadata log and tells what happened, in its order.

    Only what is of interest is kept: the image of the cluster, and the last known state of partitions that were named.

    Args:
        keep_all: summarize every partition of interest, also those that were never in trouble.
        quorums: follow recovery quorums, too.
        image, carried: what another history knew at the end of a batch that left nothing open (`settled`): this one
            goes on there. The image is changed; no quorums can be followed then.
        summaries: summarize at all.
    """

    def __init__(
        self,
        interest: Interest,
        window: Window,
        *,
        keep_all: bool = False,
        quorums: bool = False,
        summaries: bool = True,
        image: MetadataImage | None = None,
        carried: Carried | None = None,
    ) -> None:
        self.image = MetadataImage() if image is None else image
        self.changes: Sequence[Change] = ()
        """What the records of the last batch changed."""
        self._quorums = QuorumTracker(self.image) if quorums else None
        self.active_at_start: frozenset[int] = frozenset()
        """The brokers that could lead when the window began."""
        self.begins_ms: int | None = None
        """From when on all is told; None where nothing of the window is on record."""
        self.whole_since_ms: int | None = None
        """Since when nothing is left out; None: since the cluster's first record."""
        self.begins_late = False
        """Whether a checkpoint stands for the first part of the window."""
        self.records_missing = False
        """Whether a checkpoint stands for a part in the middle of the window."""
        self.saw_any = False
        """Whether any partition of interest was seen, in the window or where it begins."""
        self._attribution = Attribution(self.image, interest.partitions if interest.named else None)
        self._interest, self._window = interest, window
        self._summaries = (
            Summaries(lambda topic: config_min_isr(self.image, topic), keep_all=keep_all) if summaries else None
        )
        self._begun = carried is not None
        self._memory = Memory(Carried() if carried is None else carried)
        self._known: dict[TopicPartition, PartitionState] | None = None
        """Partitions of interest before a checkpoint that is being read."""
        self._replicas: set[int] = set()
        """Brokers that hold, or held, replicas of named partitions."""
        self._topics: set[str] = set()
        """Topics of which partitions of interest were seen, where they were named."""
        self._told_of: At | None = self.image.at
        self._passing = (
            Passing(self.image, interest.partitions, self._attribution.passed_over) if interest.named else None
        )

    @property
    def settled(self) -> bool:
        """Whether nothing that was taken waits for what comes next."""
        return self._attribution.settled and not self.image.in_transaction

    def carried(self) -> Carried:
        """What another history needs beside the image to go on here."""
        return self._memory.carried()

    @property
    def as_of(self) -> At | None:
        """The last record that was looked at; None before the first."""
        return self._told_of

    def over(self, batch: RecordBatch) -> bool:
        """Whether this batch, and all after it, lie behind the window."""
        if not self._window.over(batch):
            return False
        until = self._window.until
        if until is not None and until.at_ms is not None and self._told_of is not None:
            # Nothing happened between the last record and the end of the window.
            self._told_of = At(self._told_of.offset, self._told_of.epoch, until.at_ms)
        return True

    def take(self, batch: RecordBatch) -> Iterator[Entry]:
        """Take the next batch; what is to be told of it."""
        if self._passes(batch):
            self.changes = ()
            if self._quorums is not None:
                self._quorums.take(batch, ())
        else:
            yield from self._looked_at(batch)
        if batch.records and not batch.of_checkpoint:
            self._told_of = self._window.within(At(batch.next_offset - 1, batch.epoch, batch.timestamp_ms))

    def _passes(self, batch: RecordBatch) -> bool:
        """Whether nothing of the batch is looked at: it changes partitions, and none that was named."""
        if self._passing is None:
            return False
        begins = not self._begun and self._window.begun(At(batch.base_offset, batch.epoch, batch.timestamp_ms))
        if begins or self._known is not None or not self._attribution.settled or len(batch.records) >= FULL_BATCH:
            self._settle()
            return False
        if self._passing.passes(batch):
            return True
        self._attribution.passed()
        return False

    def _settle(self) -> None:
        if self._passing is not None:
            self._passing.settle()
            self._attribution.passed()

    def _looked_at(self, batch: RecordBatch) -> Iterator[Entry]:
        if not batch.of_checkpoint:
            yield from self._after_checkpoint(At(batch.base_offset, batch.epoch, batch.timestamp_ms))
            yield from self._begin(At(batch.base_offset, batch.epoch, batch.timestamp_ms))
        self._before_checkpoint(batch)
        changes = self.changes = self.image.apply(batch)
        if self._quorums is not None:
            self._quorums.take(batch, self._changes_of_interest(changes))
        for told in self._attribution.take(batch, changes):
            yield from self._entries(told, of_checkpoint=batch.of_checkpoint)

    def finish(self) -> Iterator[Entry]:
        """What is left to be told where the log ends."""
        self._settle()
        if self.image.at is not None:
            yield from self._after_checkpoint(self.image.at)
        for told in self._attribution.finish():
            yield from self._entries(told, of_checkpoint=False)
        end, until = self._told_of or self.image.at, self._window.until
        if end is not None and not (self._told_of is None and until is not None and until.reached_by(end)):
            yield from self._begin(end, at_end=True)

    @property
    def min_isr_unknown(self) -> bool:
        """Whether a partition's min ISR was not on record at some time."""
        return self._summaries is not None and self._summaries.min_isr_unknown

    def summaries(self) -> Iterator[PartitionSummary]:
        """What each partition went through, sorted by address."""
        at = self._told_of or self.image.at
        if self._summaries is not None:
            yield from self._summaries.close(0 if at is None else at.timestamp_ms)

    def quorum(self, address: TopicPartition) -> RecoveryQuorum | None:
        """The partition's recovery quorum where the log ends; None where it is not on record, or was not followed."""
        return None if self._quorums is None else self._quorums.quorum(address)

    def knows(self, topic: str) -> bool:
        """Whether a named topic was there at any time."""
        return topic in self._topics or topic in self.image.names

    # Beginnings.

    def _begin(self, at: At, *, at_end: bool = False) -> Iterator[Entry]:
        """The first record of the window, or the end of a log that ends before it: what holds then."""
        begun = self._window.begun(at)
        if self._begun or not (begun or at_end):
            return
        self._begun = True
        self.begins_ms = at.timestamp_ms if begun else None
        if self.image.at is None:
            return
        since = self._window.since
        self.begins_late = self._window.begun(self.image.at)
        if self.begins_late:
            self.begins_ms = self.image.at.timestamp_ms
        elif begun and since is not None and since.at_ms is not None:
            self.begins_ms = since.at_ms
            at = At(at.offset, at.epoch, since.at_ms)
        self.whole_since_ms = self.begins_ms
        self.active_at_start = frozenset(broker for broker, found in self.image.brokers.items() if found.active)
        for state in self._of_interest(self.image.partitions()):
            self._see(state)
            self.saw_any = True
            if self._summaries is not None:
                self._summaries.begin(state, at.timestamp_ms)
            entry = PartitionEntry(at, None, state, _AS_FOUND)
            if self._interest.named and self._interest.wants(entry):
                yield entry

    def _before_checkpoint(self, batch: RecordBatch) -> None:
        if batch.of_checkpoint and self._begun and self._known is None:
            self._known = {state.address: state for state in self._of_interest(self.image.partitions())}

    def _after_checkpoint(self, at: At) -> Iterator[Entry]:
        """What a checkpoint in the middle of the log shows to have happened since the log broke off."""
        known, self._known = self._known, None
        if known is None:
            return
        self.records_missing, self.whole_since_ms = True, at.timestamp_ms
        there = {state.address: state for state in self._of_interest(self.image.partitions())}
        for address in sorted(known.keys() | there.keys()):
            before, after = known.get(address), there.get(address)
            if _visible(before, after):
                yield from self._partition(PartitionEntry(at, before, after, _NOT_TOLD))

    def _of_interest(self, states: Iterable[PartitionState]) -> Iterator[PartitionState]:
        return (state for state in states if self._interest.partitions(state.address))

    def _changes_of_interest(self, changes: Sequence[Change]) -> Iterable[Change]:
        """All but those of partitions that nobody asks about; the controller's min ISR hangs on partition 0."""
        if not self._interest.named:
            return changes
        wanted = self._interest.partitions
        return [one for one in changes if not isinstance(one, PartitionMoved) or _followed(_address(one), wanted)]

    # Entries.

    def _entries(self, told: Told, *, of_checkpoint: bool) -> Iterator[Entry]:
        change = told.change
        if isinstance(change, PartitionMoved):
            if not of_checkpoint:
                yield from self._of_partition(change, told.cause or Cause(CauseKind.UNKNOWN, Certainty.UNKNOWN))
            return
        if isinstance(change, Restarted):
            self._memory.forget_leaders()
        if isinstance(change, ConfigMoved):
            self._config(change)
        if isinstance(change, BrokerMoved) and told.restart not in _RAN_ON and not self.image.keeps_elr:
            self._memory.restarted(change.broker, change.at.offset)
        if not of_checkpoint or isinstance(change, Restarted):
            entry = other_entry(told)
            if entry is not None and self._window.holds(entry.at) and self._wanted(entry):
                yield entry

    def _wanted(self, entry: BrokerEntry | ClusterEntry) -> bool:
        """Where partitions were named, the brokers' and the cluster's own entries are those that concern them."""
        if not self._interest.wants(entry):
            return False
        if not self._interest.named or self._interest.brokers:
            return True
        if isinstance(entry, BrokerEntry):
            return entry.broker in self._replicas
        if entry.event is ClusterEvent.CONFIG:
            return entry.topic is None or entry.topic in self._topics
        return entry.event is ClusterEvent.CHECKPOINT

    def _see(self, state: PartitionState) -> None:
        if self._interest.named:
            self._replicas.update(state.replicas)
            self._topics.add(state.topic)

    def _of_partition(self, change: PartitionMoved, cause: Cause) -> Iterator[Entry]:
        state = change.after or change.before
        if state is None or not self._interest.partitions(state.address) or not _visible(change.before, change.after):
            return
        self._see(state)
        election = step = None
        if change.before is not None and change.after is not None:
            step = reassignment_step(change.before, change.after)
            election = self._election(change, cause)
        self._memory.moved(change.before, change.after, step, change.at)
        yield from self._partition(PartitionEntry(change.at, change.before, change.after, cause, election, step))

    def _partition(self, entry: PartitionEntry) -> Iterator[Entry]:
        if self._window.holds(entry.at):
            self.saw_any = True
            if self._summaries is not None:
                self._summaries.moved(entry)
            if self._interest.wants(entry):
                yield entry

    def _election(self, change: PartitionMoved, cause: Cause) -> Election | None:
        before, after, at_ms = change.before, change.after, change.at.timestamp_ms
        if before is None or after is None:
            return None
        struck = cause.broker if cause.kind is CauseKind.BROKER_REGISTERED else None
        chosen = elected_as(before, after, struck=struck, recovers=has_recovery_manager(self.image))
        if chosen is None or after.leader is None:
            return None
        if cause.kind is CauseKind.PREFERRED_ELECTION:
            chosen = ElectedAs.PREFERRED
        told = chosen is ElectedAs.ELR and self.image.keeps_elr
        # An ELR from before ELR was switched off keeps its members, whatever became of their logs.
        unsure = before.leader is None or (chosen is ElectedAs.ELR and not told)
        if chosen in _IN_SYNC and unsure and not self._memory.ran_on(after.leader, after.address, told=told):
            chosen = ElectedAs.UNKNOWN
        asked = cause.kind in {CauseKind.PREFERRED_ELECTION, CauseKind.ELECTION}
        designated = asked and self._memory.put_first(after, at_ms)
        return Election(chosen, self._memory.last_leader(before), after.leader, designated)

    def _config(self, change: ConfigMoved) -> None:
        if self._summaries is None or change.key != MIN_ISR or not self._begun or change.before == change.after:
            return
        topic = change.resource if change.resource_type == TOPIC else None
        if topic is None and (change.resource_type != BROKER or change.resource):
            return
        topic_id = None if topic is None else self.image.names.get(topic)
        if topic is None:
            states: Iterable[PartitionState] = self.image.partitions()
        else:
            states = () if topic_id is None else self.image.topics[topic_id].partitions.values()
        self._summaries.min_isr_changed(self._of_interest(states), change.at.timestamp_ms)


def _address(change: PartitionMoved) -> TopicPartition:
    state = change.after or change.before
    assert state is not None  # one of the two is there
    return state.address


def _followed(address: TopicPartition, wanted: Callable[[TopicPartition], bool]) -> bool:
    return address.partition == 0 or wanted(address)


def _visible(before: PartitionState | None, after: PartitionState | None) -> bool:
    """Whether anything but the partition epoch changed; a record about log directories changes nothing else."""
    if before is None or after is None:
        return before is not after
    return _compared(before) != _compared(after)


_compared = attrgetter(
    "leader",
    "leader_epoch",
    "isr",
    "elr",
    "last_known_elr",
    "replicas",
    "adding",
    "removing",
    "recovering",
    "topic_id",
)
