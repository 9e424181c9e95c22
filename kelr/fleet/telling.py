"""From batches of a metadata log to rows of a lake's tables: what `kelr history` tells, partition by partition.

What a worker does with one cluster's log. Rows are values; `kelr.fleet.row_batches` makes tables of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from kelr.errors import BadInputError
from kelr.fleet.states import State
from kelr.model import BrokerStatus, PartitionState, leader_min_isr
from kelr.replay import records as rec
from kelr.replay.history import (
    BrokerEntry,
    Cause,
    CauseKind,
    Certainty,
    ClusterEntry,
    ClusterEvent,
    Entry,
    History,
    Interest,
    PartitionEntry,
    Window,
)
from kelr.replay.history.attribution import FULL_BATCH
from kelr.replay.history.causes import config_min_isr
from kelr.replay.image import BROKER, BROKERS_CLEANUP, CLEANUP, MIN_ISR, STRATEGY, TOPIC, UNCLEAN, MetadataImage
from kelr.replay.packed import IdleRun, PackedChanges
from kelr.replay.records import At, BrokerOnRecord, Change, ConfigMoved, PartitionMoved

# min.insync.replicas of each topic, and when it moves: a row of partition_states holds under one value of it.


class MinIsrs:
    """Follows an image: what holds after each batch.

    Args:
        image: the one that batches are applied to, each before its changes are given here.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._known: dict[str, int | None] = {}
        """By topic id, of topics whose partitions were looked at."""
        self.restart()

    def of(self, state: PartitionState) -> int | None:
        """The min ISR that a partition's leader goes by; None where it is not known."""
        topic_id = state.topic_id or ""
        if topic_id not in self._known:
            self._known[topic_id] = config_min_isr(self._image, state.topic)
        return leader_min_isr(self._known[topic_id], len(state.replicas))

    def restart(self) -> frozenset[str]:
        """Look at all topics of the image; the ids of those that were known with another value."""
        before = self._known
        self._known = {topic_id: config_min_isr(self._image, name) for name, topic_id in self._image.names.items()}
        return frozenset(topic for topic, found in self._known.items() if topic in before and before[topic] != found)

    def take(self, changes: Iterable[Change]) -> frozenset[str]:
        """What a batch changed; the ids of topics that were known with another value."""
        names = self._image.names
        affected: set[str] = set()
        for change in changes:
            if type(change) is PartitionMoved and change.after is None and change.before is not None:
                self._known.pop(change.before.topic_id or "", None)
            elif type(change) is ConfigMoved and change.key == MIN_ISR:
                if change.resource_type == TOPIC:
                    affected.add(change.resource)
                elif change.resource_type == BROKER and not change.resource:
                    affected.update(names)
        moved: set[str] = set()
        for topic in affected & names.keys():
            topic_id, found = names[topic], config_min_isr(self._image, topic)
            if self._known.get(topic_id, found) != found:
                moved.add(topic_id)
            self._known[topic_id] = found
        return frozenset(moved)


def moved_by(entry: Entry, moved: frozenset[str], image: MetadataImage) -> frozenset[str]:
    """The topics, of those whose min.insync.replicas has moved, for which this entry is what moved it."""
    if isinstance(entry, ClusterEntry) and entry.event is ClusterEvent.CONFIG and entry.name == MIN_ISR:
        return moved if entry.topic is None else moved & {image.names.get(entry.topic, "")}
    return frozenset()


def untouched(
    topics: Iterable[str], image: MetadataImage, earlier: Sequence[Entry], later: Sequence[Entry]
) -> Iterator[PartitionState]:
    """The partitions of these topics (ids) that have no row yet under what holds after a batch, as they are between two
    of its entries.

    Args:
        image: the cluster after the batch.
        earlier: entries of the batch that have rows.
        later: those behind them; what comes first says how a partition was before.
    """
    had = {(one.state.topic_id, one.address.partition) for one in earlier if isinstance(one, PartitionEntry)}
    before: dict[str, dict[int, PartitionState | None]] = {}
    for one in later:
        if isinstance(one, PartitionEntry):
            before.setdefault(one.state.topic_id or "", {}).setdefault(one.address.partition, one.before)
    for topic_id in sorted(topics):
        topic = image.topics.get(topic_id)
        states = {**({} if topic is None else topic.partitions), **before.get(topic_id, {})}
        for number in sorted(states):
            state = states[number]
            if state is not None and (topic_id, number) not in had:
                yield state


# What a checkpoint shows: everything where a log begins with it, and what is different where it stands in for records
# that are missing.


_AS_FOUND = Cause(CauseKind.AS_FOUND)


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of the cluster, beside its partitions, before a checkpoint."""

    brokers: dict[int, BrokerOnRecord]
    features: dict[str, int]
    configs: dict[tuple[int, str], dict[str, str]]

    @classmethod
    def of(cls, image: MetadataImage) -> Known:
        configs = {resource: dict(values) for resource, values in image.configs.items()}
        return cls(dict(image.brokers), dict(image.features), configs)


def found_rows(image: MetadataImage, at: At, before: Known | None) -> Iterator[Told]:
    """What an image that a checkpoint has made shows, beside partitions.

    Args:
        at: the last record that the checkpoint contains.
        before: what was known before it; None where the log begins with it: all of it is told then.
    """
    brokers = {} if before is None else before.brokers
    for broker in sorted(brokers.keys() | image.brokers.keys()):
        was, now = brokers.get(broker), image.brokers.get(broker)
        if _seen(was) != _seen(now):
            yield seen_row(at, broker, was, now)
    features = {} if before is None else before.features
    for name in sorted(features.keys() | image.features.keys()):
        if features.get(name) != image.features.get(name):
            was_level = None if before is None else features.get(name, 0)
            yield feature_row(at, name, was_level, image.features.get(name))
    configs = {} if before is None else before.configs
    for resource in sorted(configs.keys() | image.configs.keys()):
        written, had = image.configs.get(resource, {}), configs.get(resource, {})
        for key in sorted(written.keys() | had.keys()):
            if written.get(key) != had.get(key):
                yield from config_row(at, resource, key, written.get(key))


def _seen(broker: BrokerOnRecord | None) -> object:
    """What a row of broker_events says of a broker."""
    if broker is None:
        return None
    told = broker.registration
    return status_of(broker), told.epoch, told.rack, told.endpoints[:1], dict(told.features)


def partitions_as_found(image: MetadataImage, at: At) -> Iterator[Told]:
    """Every partition, where the log begins with a checkpoint."""
    for name in sorted(image.names):
        least = config_min_isr(image, name)
        partitions = image.topics[image.names[name]].partitions
        for number in sorted(partitions):
            state = partitions[number]
            yield partition_row(at, state, leader_min_isr(least, len(state.replicas)), _AS_FOUND)


# Rows of the tables that a metadata log fills, as values: one function for each table.


Row: TypeAlias = dict[str, object]
"""By column: all of the table but `cluster`, `date` and `valid_to`; times in milliseconds since 1970 UTC."""

LOG = "log"
SEEN = "seen"
KEPT_CONFIGS = frozenset({MIN_ISR, UNCLEAN, STRATEGY, CLEANUP, BROKERS_CLEANUP})
"""Configs that elections and their cost depend on. Others, among which are passwords, are not copied."""
_OF_TOPICS = (MIN_ISR, UNCLEAN, STRATEGY, CLEANUP)


@dataclass(frozen=True, slots=True)
class Told:
    """A row of a table."""

    table: str
    row: Row


def partition_row(at: At, state: PartitionState, min_isr: int | None, cause: Cause) -> Told:
    """A partition is so from here on. Sets are known, and empty where the log says nothing."""
    return Told(
        "partition_states",
        {
            "topic": state.topic,
            "topic_id": state.topic_id,
            "partition": state.partition,
            "valid_from": at.timestamp_ms,
            "from_offset": at.offset,
            "leader": state.leader,
            "leader_epoch": state.leader_epoch,
            "partition_epoch": state.partition_epoch,
            "replicas": state.replicas,
            "isr": state.isr,
            "elr": state.elr or (),
            "last_known_elr": state.last_known_elr or (),
            "offline_replicas": None,
            "adding": state.adding or (),
            "removing": state.removing or (),
            "recovering": bool(state.recovering),
            "min_isr": min_isr,
            "cause": cause.kind.value,
            "certainty": cause.certainty.value,
            "cause_broker": cause.broker,
            "source": LOG,
        },
    )


def tombstone(at: At, before: PartitionState, cause: Cause) -> Told:
    """A partition is gone: a row without replicas, which only ends the one before it."""
    told = partition_row(at, before, None, cause)
    nothing = ("leader", "leader_epoch", "partition_epoch", "replicas", "isr", "elr", "last_known_elr", "adding")
    told.row.update(dict.fromkeys((*nothing, "removing", "recovering")))
    return told


def election_row(entry: PartitionEntry) -> Iterator[Told]:
    """The partition's election, if it was one. What is at stake is known only with what the logs held."""
    election, after = entry.election, entry.after
    if election is None or after is None:
        return
    yield Told(
        "elections",
        {
            "topic": after.topic,
            "topic_id": after.topic_id,
            "partition": after.partition,
            "at": entry.at.timestamp_ms,
            "offset": entry.at.offset,
            "elected_as": election.elected_as.value,
            "clean": election.elected_as.clean,
            "from_leader": election.last_leader,
            "to_leader": election.leader,
            "leader_epoch": after.leader_epoch,
            "cause": entry.cause.kind.value,
            "certainty": entry.cause.certainty.value,
            "cause_broker": entry.cause.broker,
            "designated": election.designated,
            "offsets_at_stake": None,
            "stake_source": None,
        },
    )


def broker_row(entry: BrokerEntry) -> Told:
    """What became of a broker."""
    restart = None if entry.restart is None else entry.restart.value
    row: Row = {"event": entry.event.value, "restart": restart, "directories_lost": entry.directories_lost}
    return Told("broker_events", row | _of_broker(entry.at, entry.broker, entry.before, entry.after))


def seen_row(at: At, broker: int, before: BrokerOnRecord | None, after: BrokerOnRecord | None) -> Told:
    """What a checkpoint says of a broker; None: nothing any more."""
    row: Row = {"event": SEEN, "restart": None, "directories_lost": ()}
    return Told("broker_events", row | _of_broker(at, broker, before, after))


def _of_broker(at: At, broker: int, before: BrokerOnRecord | None, after: BrokerOnRecord | None) -> Row:
    known = after or before
    assert known is not None  # one of the two is there
    endpoints = known.registration.endpoints
    return {
        "broker": broker,
        "at": at.timestamp_ms,
        "offset": at.offset,
        "status": status_of(after).value,
        "broker_epoch": known.registration.epoch,
        "rack": known.registration.rack,
        "host": endpoints[0].host if endpoints else None,
        "port": endpoints[0].port if endpoints else None,
        "features": dict(known.registration.features),
        "source": LOG,
    }


def status_of(broker: BrokerOnRecord | None) -> BrokerStatus:
    """As `kelr.replay.snapshots` has it."""
    if broker is None:
        return BrokerStatus.UNREGISTERED
    if broker.fenced:
        return BrokerStatus.FENCED
    return BrokerStatus.SHUTTING_DOWN if broker.in_controlled_shutdown else BrokerStatus.LIVE


def cluster_row(entry: ClusterEntry) -> Told:
    """Another controller, a feature's level, or a checkpoint."""
    return _of_cluster(entry.at, entry.event.value, entry.name, entry.before, entry.after)


def feature_row(at: At, name: str, before: int | None, after: int | None) -> Told:
    """A feature's level as a checkpoint has it."""
    return _of_cluster(at, "feature", name, None if before is None else str(before), str(after or 0))


def end_row(at: At) -> Told:
    """The newest record that was read."""
    return _of_cluster(at, "end", None, None, None)


def _of_cluster(at: At, event: str, name: str | None, before: str | None, after: str | None) -> Told:
    row: Row = {"at": at.timestamp_ms, "offset": at.offset, "event": event, "name": name}
    return Told("cluster_events", {**row, "before": before, "after": after, "source": LOG})


def config_rows(changes: Iterable[Change]) -> Iterator[Told]:
    """What was written of the configs that are kept. A topic takes its own with it, of which no record tells: another
    one of its name does not have them."""
    for change in changes:
        if isinstance(change, ConfigMoved):
            yield from config_row(change.at, (change.resource_type, change.resource), change.key, change.after)
        elif isinstance(change, PartitionMoved) and change.before is not None and change.after is None:
            for key in _OF_TOPICS if change.before.partition == 0 else ():
                yield from config_row(change.at, (TOPIC, change.before.topic), key, None)


def config_row(at: At, resource: tuple[int, str], key: str, value: str | None) -> Iterator[Told]:
    """A config as it is from here on; None: deleted."""
    kind, name = resource
    if key not in KEPT_CONFIGS or kind not in {TOPIC, BROKER}:
        return
    resource_type = "topic" if kind == TOPIC else "broker" if name else "cluster"
    row: Row = {"resource_type": resource_type, "resource": name, "key": key, "value": value}
    at_row: Row = {"at": at.timestamp_ms, "offset": at.offset, "value_source": None, "source": LOG}
    yield Told("configs", row | at_row)


# Telling.


__all__ = ["HistoryBuilder", "Openings", "Told", "tell"]


class Openings:
    """Follows a log, and says where something is left open that only later records explain: no state is kept there.

    Left open are transactions, and what full batches change, or begin to (`kelr.replay.history.attribution`).
    """

    def __init__(self) -> None:
        self._in_transaction = False
        self.open = False
        """Whether the last batch that was taken left something open."""

    def take(self, batch: rec.RecordBatch) -> bool:
        """Take the next batch; whether it leaves something open."""
        changed = type(batch.records) is PackedChanges
        if not changed and type(batch.records) is not IdleRun:
            for record in batch.records:
                kind = type(record)
                if kind is rec.PartitionChanged or kind is rec.BrokerChanged:
                    changed = True
                elif kind is rec.TransactionMark:
                    self._in_transaction = record.kind == "begin"  # type: ignore[union-attr]
                    changed = True  # the whole transaction with it
                elif kind is rec.SnapshotBegins:
                    self._in_transaction = False
        full = changed and len(batch.records) >= FULL_BATCH
        # What a checkpoint in the middle shows is told with the batch behind it.
        self.open = self._in_transaction or full or batch.of_checkpoint
        return self.open


def end_of(batch: rec.RecordBatch) -> int:
    """The offset of the log behind a batch; behind what is in the checkpoint, for one of a checkpoint."""
    return batch.next_offset if batch.checkpoint_end is None else batch.checkpoint_end


def unknown_part(batch: rec.RecordBatch, next_offset: int) -> rec.RecordBatch | None:
    """What of a batch is not known yet; None where all is.

    Args:
        next_offset: what is before it is known.

    Raises:
        BadInputError: records are missing between the two, and it is no batch of a checkpoint.
    """
    if batch.of_checkpoint:
        return batch
    if batch.base_offset > next_offset:
        raise BadInputError(
            f"records {next_offset} to {batch.base_offset - 1} of the metadata log are missing, and no checkpoint"
            " stands in for them",
            next_step="give the files that hold them, or another node's",
        )
    if batch.next_offset <= next_offset:
        return None
    known = next_offset - batch.base_offset
    return batch if not known else replace(batch, base_offset=next_offset, records=batch.records[known:])


_NOT_TOLD = Cause(CauseKind.NOT_TOLD, Certainty.UNKNOWN)
_MIN_ISR_WRITTEN = Cause(CauseKind.MIN_ISR_WRITTEN)


class HistoryBuilder:
    """Tells a metadata log, batch by batch, as rows in the order of the log.

    Rows of partition_states follow each other without gaps, by partition: a row holds until the next one of its topic
    id and partition; a tombstone ends the last (`kelr.fleet.telling.tombstone`). `partition_epoch` is that of the
    record, though others that change nothing else may follow.

    Where the log begins with a checkpoint, everything in it is told `as-found`; where one stands in for records that
    are missing, what is different is told at the time of the last record that it contains, as `not-told`.

    What a full batch, or a transaction, leaves open is told with the batch that ends it; `state` is in front of it.

    Args:
        state: what is known in front of the first batch; None where the log begins.

    Raises:
        BadInputError: the state is damaged.
    """

    def __init__(self, state: State | None = None) -> None:
        image = None if state is None else state.image()
        carried = None if state is None else state.carried()
        self._history = History(Interest(), Window(), summaries=False, image=image, carried=carried)
        self._begun = state is not None
        self._next = 0 if state is None else state.next_offset
        self._openings = Openings()
        self._waiting: list[rec.RecordBatch] = []
        """Batches that leave something open."""
        self._in_checkpoint = False
        self._before: Known | None = None
        """What was known before the checkpoint that was read last."""
        self._min_isrs = MinIsrs(self._history.image)

    @property
    def image(self) -> MetadataImage:
        """The cluster where telling stands."""
        return self._history.image

    def take(self, batch: rec.RecordBatch) -> Iterator[Told]:
        """Take the next batch: one batch of the log, or several that hold nothing but NoOpRecords.

        Those of a checkpoint carry its end, and the time of the last record that it contains, as
        `kelr.sources.metadata_log.pieces.checkpoint_batches` gives them. What is known already is passed over.

        Raises:
            BadInputError: records are missing in front of it.
        """
        part = unknown_part(batch, self._next)
        if part is None:
            return
        self._next = end_of(part)
        opened = self._openings.take(part)
        if part.of_checkpoint:
            yield from self._of_checkpoint(part)
        elif opened:
            self._waiting.append(part)
        else:
            waiting, self._waiting = self._waiting, []
            yield from self._told([*waiting, part])

    def finish(self) -> Iterator[Told]:
        """What is left to be told, and where the newest input ends."""
        if self._in_checkpoint:
            yield from self._told([])
        if self.image.at is not None:
            yield end_row(self.image.at)

    def state(self) -> State | None:
        """What is known where telling stands, once it is finished; None where nothing was told."""
        return None if self.image.at is None else State.of(self.image, self._history.carried())

    def _of_checkpoint(self, batch: rec.RecordBatch) -> Iterator[Told]:
        if self._waiting:
            # The log breaks off while something is open: nothing that follows explains it.
            waiting, self._waiting = self._waiting, []
            yield from self._told(waiting, flush=True)
        if not self._in_checkpoint:
            self._in_checkpoint = True
            self._before = Known.of(self.image) if self._begun else None
        for entry in self._history.take(batch):
            yield from self._row(entry)

    def _told(self, batches: Sequence[rec.RecordBatch], *, flush: bool = False) -> Iterator[Told]:
        """What batches that belong together tell; before them, what a checkpoint in front of them shows.

        Args:
            flush: nothing more explains what they leave open.
        """
        shown_at, moved_before = None, frozenset[str]()
        if self._in_checkpoint:
            assert self.image.at is not None  # the checkpoint
            shown_at = self.image.at
            moved_before = self._min_isrs.restart()
            yield from found_rows(self.image, shown_at, self._before)
            if not self._begun:
                yield from partitions_as_found(self.image, shown_at)
        self._begun, self._in_checkpoint = True, False
        entries: list[Entry] = []
        changes: list[Change] = []
        for batch in batches:
            entries += self._history.take(batch)
            changes += self._history.changes
        if flush or not batches:
            entries += self._history.finish()
        shown = 0
        while shown_at is not None and shown < len(entries) and _is_shown(entries[shown]):
            yield from self._row(replace(entries[shown], at=shown_at))
            shown += 1
        if shown_at is not None and moved_before:
            yield from self._moved(moved_before, shown_at, _NOT_TOLD, entries[:shown], entries[shown:])
        entries = entries[shown:]
        moved = self._min_isrs.take(changes)
        yield from config_rows(changes)
        for number, entry in enumerate(entries, 1):
            yield from self._row(entry)
            by_this = moved_by(entry, moved, self.image) if moved else moved
            if by_this:
                moved -= by_this
                cause = entry.cause if isinstance(entry, PartitionEntry) else _MIN_ISR_WRITTEN
                yield from self._moved(by_this, entry.at, cause, entries[:number], entries[number:])

    def _moved(
        self, topics: frozenset[str], at: At, cause: Cause, earlier: Sequence[Entry], later: Sequence[Entry]
    ) -> Iterator[Told]:
        """Another min ISR holds for these topics: rows of their partitions, between two entries."""
        for state in untouched(topics, self.image, earlier, later):
            yield partition_row(at, state, self._min_isrs.of(state), cause)

    def _row(self, entry: Entry) -> Iterator[Told]:
        if isinstance(entry, PartitionEntry):
            before, after = entry.before, entry.after
            if before is not None and (after is None or after.topic_id != before.topic_id):
                yield tombstone(entry.at, before, entry.cause)
            if after is not None:
                yield partition_row(entry.at, after, self._min_isrs.of(after), entry.cause)
                yield from election_row(entry)
        elif isinstance(entry, BrokerEntry):
            yield broker_row(entry)
        elif isinstance(entry, ClusterEntry) and entry.event is not ClusterEvent.CONFIG:
            yield cluster_row(entry)


def _is_shown(entry: Entry) -> bool:
    return isinstance(entry, PartitionEntry) and entry.cause.kind is CauseKind.NOT_TOLD


def tell(batches: Iterable[rec.RecordBatch], state: State | None = None) -> Iterator[Told]:
    """A part of a metadata log as rows; see `HistoryBuilder`.

    Args:
        state: what is known in front of it; None where the log begins.

    Raises:
        BadInputError: records are missing, or the state is damaged.
    """
    teller = HistoryBuilder(state)
    for batch in batches:
        yield from teller.take(batch)
    yield from teller.finish()
