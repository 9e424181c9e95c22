"""What a simulated controller does, as the records that Kafka's would write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kelr.controller import ControllerState
from kelr.controller.change import Change
from kelr.model import ELR_FEATURE, PartitionState
from kelr.replay import records as rec
from kelr.replay.image import BROKER, TOPIC, MetadataImage
from kelr.replay.quorum import QuorumTracker

TOPIC_ID = "xwLcnDBAQ0KnZEKZX0bXVA"


class Writer:
    """Writes batches, one after the other, and follows them with an image and a tracker."""

    def __init__(self, *, elr: bool = True, min_isr: int | None = 2, begins_at: int = 0) -> None:
        self.image = MetadataImage()
        self.tracker = QuorumTracker(self.image)
        self.end = begins_at
        self.now_ms = 1_000_000
        first: list[rec.MetadataRecord] = [rec.FeatureLevel(ELR_FEATURE, 1)] if elr else []
        if min_isr is not None:
            first.append(rec.ConfigSet(BROKER, "", "min.insync.replicas", str(min_isr)))
        self.write(*first)

    def write(self, *records: rec.MetadataRecord, later_ms: int = 1_000) -> None:
        self.now_ms += later_ms
        self.take(rec.RecordBatch(self.end, 1, self.now_ms, records))

    def take(self, batch: rec.RecordBatch) -> None:
        self.end = batch.checkpoint_end if batch.checkpoint_end is not None else batch.next_offset
        self.tracker.take(batch, self.image.apply(batch))

    def topic(self, *partitions: PartitionState, topic_id: str = TOPIC_ID) -> None:
        self.write(rec.TopicMade(partitions[0].topic, topic_id), *(made(state, topic_id) for state in partitions))

    def brokers(self, state: ControllerState) -> None:
        self.write(*(registered(broker, one.epoch, fenced=one.fenced) for broker, one in sorted(state.brokers.items())))

    def min_isr(self, value: int | None, topic: str | None = "orders", *, clears: bool = True, **when: int) -> None:
        kind, name = (BROKER, "") if topic is None else (TOPIC, topic)
        text = None if value is None else str(value)
        cleared = [rec.ElrCleared(topic)] if clears else []
        self.write(rec.ConfigSet(kind, name, "min.insync.replicas", text), *cleared, **when)

    def follows(self, changes: Iterable[Change], before: ControllerState, after: ControllerState) -> None:
        """A step of a controller."""
        records: list[rec.MetadataRecord] = [changed(one.before, one.after) for one in changes]
        for broker, now in sorted(after.brokers.items()):
            was = before.brokers.get(broker)
            if was is None or was.epoch != now.epoch:
                records.append(registered(broker, now.epoch, fenced=now.fenced))
            elif was.fenced is not now.fenced:
                records.append(rec.BrokerChanged(broker, now.epoch, fenced=now.fenced))
        if records:
            self.write(*records)


def registered(
    broker: int, epoch: int, *, fenced: bool = True, directories: tuple[str, ...] = ()
) -> rec.MetadataRecord:
    return rec.BrokerRegistered(broker, epoch, f"incarnation {epoch}", fenced, False, None, directories=directories)


def made(state: PartitionState, topic_id: str = TOPIC_ID, **more: Any) -> rec.PartitionMade:
    return rec.PartitionMade(
        topic_id,
        state.partition,
        rec.NO_LEADER if state.leader is None else state.leader,
        state.leader_epoch,
        state.partition_epoch or 0,
        state.replicas,
        state.isr,
        elr=state.elr or None,
        last_known_elr=state.last_known_elr or None,
        **more,
    )


def changed(before: PartitionState, after: PartitionState, topic_id: str = TOPIC_ID) -> rec.PartitionChanged:
    """The record that makes the one the other."""
    fields = {
        name: getattr(after, name)
        for name in ("isr", "replicas", "adding", "removing", "elr", "last_known_elr", "recovering")
        if getattr(before, name) != getattr(after, name)
    }
    if before.leader_epoch != after.leader_epoch:
        fields["leader"] = rec.NO_LEADER if after.leader is None else after.leader
    return rec.PartitionChanged(topic_id, after.partition, **fields)
