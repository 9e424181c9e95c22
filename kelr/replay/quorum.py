"""Who holds everything committed of every partition, by the metadata log (`RecoveryQuorum`).

`QuorumTracker` follows a `MetadataImage`: each batch is applied to the image, and what it did is given here::

    image = MetadataImage()
    tracker = QuorumTracker(image)
    for batch in log.batches():
        tracker.take(batch, image.apply(batch))
    quorum = tracker.quorum(TopicPartition("orders", 0))

What it stands on, and what the log cannot tell, is written down in docs/recovery-quorum.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kelr.model import ELR_FEATURE, PartitionState, RecoveryQuorum, TopicPartition
from kelr.replay import holders
from kelr.replay.changes import (
    At,
    BrokerMoved,
    Change,
    ConfigMoved,
    FeatureMoved,
    PartitionMoved,
    Restarted,
)
from kelr.replay.holders import Holders, Rule
from kelr.replay.image import BROKER, MIN_ISR, TOPIC, MetadataImage
from kelr.replay.records import RecordBatch

NO_MIN_ISR = "min.insync.replicas is not in the metadata log"


def _named(brokers: Sequence[int]) -> str:
    listed = ", ".join(map(str, brokers))
    return f"broker {listed} has" if len(brokers) == 1 else f"brokers {listed} have"


class QuorumTracker:
    """Follows an image, batch by batch, from its beginning on.

    Args:
        image: the one that the batches are applied to, each before it is given here.
    """

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self._topics: dict[str, dict[int, Holders]] = {}
        self._ids: dict[str, str] = {}
        self._stalled: dict[tuple[str, int], Holders] = {}
        self._min_isr: dict[str, str] = {}
        self._cluster_wide: str | None = None
        self._of_single_brokers: set[str] = set()
        self._elr = False
        self._broken: str | None = None
        self._next: int | None = None
        self._in_checkpoint = False

    def take(self, batch: RecordBatch, changes: Iterable[Change]) -> None:
        """What a batch did to the image."""
        self._follow(batch)
        brokers: list[BrokerMoved] = []
        for change in changes:
            if type(change) is PartitionMoved:
                self._partition_moved(change)
            elif type(change) is BrokerMoved:
                brokers.append(change)
            elif type(change) is ConfigMoved:
                self._config_moved(change)
            elif type(change) is FeatureMoved:
                self._feature_moved(change)
            elif type(change) is Restarted:
                self._begin_anew()
        # A registration comes after the records of what it did to partitions, and is judged by them.
        for moved in brokers:
            self._broker_moved(moved)

    def quorum(self, address: TopicPartition) -> RecoveryQuorum | None:
        """The partition's recovery quorum; None where it is not on record."""
        self._settle()
        topic_id = self._image.names.get(address.topic)
        held = None if topic_id is None else self._topics.get(topic_id, {}).get(address.partition)
        return None if held is None else self._told(held)

    def quorums(self) -> Iterator[tuple[TopicPartition, RecoveryQuorum]]:
        """All of them, sorted by address."""
        for state in self._image.partitions():
            found = self.quorum(state.address)
            if found is not None:
                yield state.address, found

    # The log.

    def _follow(self, batch: RecordBatch) -> None:
        if batch.of_checkpoint:
            self._in_checkpoint = True
            self._next = batch.checkpoint_end
            return
        self._settle()
        if self._broken is None and batch.base_offset > (self._next or 0):
            self._broken = (
                f"the log at hand begins at offset {batch.base_offset}, without a checkpoint of what was before"
                if self._next is None
                else f"the records at offsets {self._next} to {batch.base_offset - 1} are missing from the log at hand"
            )
        self._next = batch.next_offset

    def _begin_anew(self) -> None:
        for known in (self._topics, self._ids, self._stalled, self._min_isr, self._of_single_brokers):
            known.clear()
        self._cluster_wide, self._elr, self._broken = None, False, None

    def _settle(self) -> None:
        """A checkpoint tells configs after partitions, so that these are judged when it has ended."""
        if not self._in_checkpoint:
            return
        self._in_checkpoint = False
        for topic_id, found in self._topics.items():
            for number, held in found.items():
                found[number] = met = holders.met_in_checkpoint(held.state, held.at, self._rule(held.state))
                self._keep(topic_id, met)

    # What moved.

    def _partition_moved(self, change: PartitionMoved) -> None:
        before, after = change.before, change.after
        state = after or before
        assert state is not None  # one of the two is there
        topic_id = state.topic_id or ""
        if after is None:
            self._gone(topic_id, state)
            return
        known = self._topics.setdefault(topic_id, {})
        self._ids[after.topic] = topic_id
        held = known.get(after.partition)
        if self._in_checkpoint:
            known[after.partition] = Holders(after, change.at, after.isr)
            return
        if held is None:
            held = known[after.partition] = holders.made(after, change.at, self._rule(after))
        else:
            holders.moved(held, after, change.at, self._rule(after))
        self._keep(topic_id, held)

    def _gone(self, topic_id: str, state: PartitionState) -> None:
        known = self._topics.get(topic_id, {})
        known.pop(state.partition, None)
        self._stalled.pop((topic_id, state.partition), None)
        if not known:
            self._topics.pop(topic_id, None)
            if self._ids.get(state.topic) == topic_id:
                del self._ids[state.topic]
                self._min_isr.pop(state.topic, None)

    def _config_moved(self, change: ConfigMoved) -> None:
        if change.key != MIN_ISR or change.resource_type not in {TOPIC, BROKER}:
            return
        topics = [change.resource] if change.resource_type == TOPIC else sorted(self._ids)
        affected = [
            held
            for topic in topics
            if not self._in_checkpoint
            for held in self._topics.get(self._ids.get(topic, ""), {}).values()
        ]
        before = [self._rule(held.state) for held in affected]
        if change.resource_type == BROKER and change.resource:
            (self._of_single_brokers.discard if change.after is None else self._of_single_brokers.add)(change.resource)
        elif change.resource_type == BROKER:
            self._cluster_wide = change.after
        elif change.after is None:
            self._min_isr.pop(change.resource, None)
        else:
            self._min_isr[change.resource] = change.after
        for held, rule in zip(affected, before, strict=True):
            holders.min_isr_moved(held, change.at, rule, self._rule(held.state))
            self._keep(held.state.topic_id or "", held)

    def _feature_moved(self, change: FeatureMoved) -> None:
        if change.name != ELR_FEATURE or self._elr is (change.after >= 1):
            return
        self._elr = change.after >= 1
        if self._in_checkpoint:
            return
        for topic_id, found in self._topics.items():
            for held in found.values():
                holders.elr_switched(held, change.at, self._rule(held.state))
                self._keep(topic_id, held)

    def _broker_moved(self, change: BrokerMoved) -> None:
        before, after = change.before, change.after
        if after is None or self._in_checkpoint or not self._elr:
            return
        if before is None or before.registration.incarnation != after.registration.incarnation:
            for held in self._stalled.values():
                holders.registered_anew(held, change.broker)
        gone = frozenset(before.directories) - frozenset(after.directories) if before is not None else frozenset()
        if gone:
            for (topic_id, number), held in self._stalled.items():
                if self._directory(topic_id, number, held.state, change.broker) in gone:
                    holders.lost_directory(held, change.broker)

    def _directory(self, topic_id: str, partition: int, state: PartitionState, broker: int) -> str | None:
        topic = self._image.topics.get(topic_id)
        directories: Sequence[str] = () if topic is None else topic.directories.get(partition, ())
        places = dict(zip(state.replicas, directories, strict=False))
        return places.get(broker)

    # What it is judged by, and what is told.

    def _keep(self, topic_id: str, held: Holders) -> None:
        key = topic_id, held.state.partition
        if held.stalled:
            self._stalled[key] = held
        else:
            self._stalled.pop(key, None)

    def _rule(self, state: PartitionState) -> Rule:
        first = self._topics.get(state.topic_id or "", {}).get(0)
        count = len(state.replicas) if first is None or state.partition == 0 else len(first.state.replicas)
        return Rule(self._wanted(state.topic), count, self._elr)

    def _wanted(self, topic: str) -> int | None:
        written = self._min_isr.get(topic)
        if written is None and not self._of_single_brokers:
            written = self._cluster_wide
        try:
            return None if written is None else int(written)
        except ValueError:
            return None

    def _told(self, held: Holders) -> RecoveryQuorum:
        state = held.state
        last: At | None = self._image.at
        members = tuple(broker for broker in state.replicas if broker in held.members)
        least = held.min_isr or self._rule(state).of_leader(state) or 1
        return RecoveryQuorum(
            members=members,
            last_known_elr=tuple(broker for broker in state.replicas if broker in held.lost),
            restarted=tuple(broker for broker in members if broker in held.restarted),
            min_isr=least,
            since_offset=held.at.offset,
            since_ms=held.at.timestamp_ms,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch or 0,
            as_of_offset=self._next or 0,
            as_of_ms=held.at.timestamp_ms if last is None else last.timestamp_ms,
            doubt=self._doubt(held, members, least),
            isr=state.isr,
            elr=state.elr or (),
            left_behind=tuple(broker for broker in state.replicas if broker in held.left_behind),
            followed_since=held.followed_since,
        )

    def _doubt(self, held: Holders, members: tuple[int, ...], least: int) -> str | None:
        image = self._image
        if self._broken is not None:
            return self._broken
        if image.not_understood:
            return f"the log holds {sum(image.not_understood.values())} records that kelr does not understand"
        if image.misfits:
            return f"{image.misfits} records of the log do not fit what it says before"
        if held.doubt is not None:
            return held.doubt
        if held.left_behind:
            behind = [broker for broker in held.state.replicas if broker in held.left_behind]
            return (
                f"an unclean election, by the record at offset {held.unclean_at}, gave up what the new leader's log"
                f" lacked; {_named(behind)} not been in sync since and may hold committed records of before"
            )
        if self._wanted(held.state.topic) is None:
            return NO_MIN_ISR
        if len(members) < least:
            return f"of the {least} replicas that held everything committed {len(members)} are replicas still"
        return None
