"""The replicas of one partition on paper: who leads in which epoch, what followers fetched, and what was promised.

Everything is a frozen value and a pure function of it. The model stands on three simplifications. Brokers know what the
controller wrote at once. A fetch and its answer are one step. There is no clock, so that a replica which has caught up
holds back the high watermark only from the moment on that the leader proposes to add it.

Source: Partition.maybeIncrementLeaderHW, makeLeader, isFollowerInSync and checkEnoughReplicasReachOffset of Apache
Kafka; KIP-966, "Additional High Watermark advancement requirement"; KIP-497 for the maximal ISR; KIP-903.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace

from kelr.model import leader_min_isr
from kelr.simulation.logs import (
    Acks,
    Record,
    SimulatedLog,
    appended,
    flushed,
    following,
    parts_from,
    trimmed,
    truncated,
)


@dataclass(frozen=True, slots=True)
class HighWatermarkRule:
    """When a leader may advance its high watermark."""

    min_isr: int
    """min.insync.replicas of the topic; the replica count of the partition caps it."""
    needs_min_isr: bool = True
    """Kafka 3.7.0 and newer, whether ELR is on or off (KAFKA-15583); older ones advanced it with any ISR."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What clients were promised, as ids of records."""

    committed: frozenset[int] = frozenset()
    """Acknowledged to producers with acks=all."""
    acknowledged: frozenset[int] = frozenset()
    """Acknowledged by the leader alone, to producers with acks=1."""
    visible: frozenset[int] = frozenset()
    """Were below the high watermark of a leader: consumers may have read them."""
    deleted: frozenset[int] = frozenset()
    """Deleted on purpose: by retention, or by DeleteRecords."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """What a leader knows besides its log; it starts anew with each leader."""

    leader: int
    epoch: int
    epoch_start: int
    """The leader's log end when the epoch began."""
    isr: frozenset[int]
    """The ISR as the controller committed it."""
    proposed: tuple[int, ...] | None = None
    """The ISR of an AlterPartition request that is under way; None without one."""
    proposed_epochs: Mapping[int, int] = field(default_factory=dict)
    """The broker epochs in that request: those of the members' last fetches."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """The log end of each follower as of its last fetch in this epoch."""
    broker_epochs: Mapping[int, int] = field(default_factory=dict)
    """The broker epoch in each follower's last fetch (KIP-903)."""
    waiting: frozenset[int] = frozenset()
    """Records of producers with acks=all that are not answered yet."""

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The ISR together with replicas that the leader has proposed to add (KIP-497)."""
        return self.isr.union(self.proposed or ())


@dataclass(frozen=True, slots=True)
class Replication:
    """The logs of one partition's replicas, those on dead brokers' disks included."""

    logs: Mapping[int, SimulatedLog]
    leadership: Leadership | None = None
    ledger: Ledger = Ledger()
    left_over: Mapping[int, SimulatedLog] = field(default_factory=dict)
    """Logs of brokers that are no replicas any more and have not learnt it yet (`assigned`)."""

    @property
    def leader_log(self) -> SimulatedLog | None:
        return None if self.leadership is None else self.logs[self.leadership.leader]

    @property
    def written(self) -> bool:
        """Whether anything was ever produced."""
        return bool(self.ledger.visible or self.ledger.acknowledged or any(log.end for log in self.logs.values()))

    def with_log(self, replica: int, log: SimulatedLog) -> Replication:
        if replica in self.left_over:
            return replace(self, left_over={**self.left_over, replica: log})
        return replace(self, logs={**self.logs, replica: log})

    def without_left_over(self, broker: int) -> Replication:
        """The broker has learnt that it is no replica any more, and deletes its log."""
        return replace(self, left_over={one: log for one, log in self.left_over.items() if one != broker})

    def lost_by(self, replica: int) -> frozenset[int]:
        """Records acknowledged with acks=all that this replica's log does not hold: lost if it leads."""
        return self.ledger.committed - self.ledger.deleted - self.logs[replica].ids

    @property
    def gone(self) -> frozenset[int]:
        """Records acknowledged with acks=all that no log holds any more, not even one on a dead broker's disk."""
        held = frozenset[int]().union(*(log.ids for log in (*self.logs.values(), *self.left_over.values())))
        return self.ledger.committed - self.ledger.deleted - held


@dataclass(frozen=True, slots=True)
class Produced:
    """The outcome of a produce request."""

    replication: Replication
    error: str = "NONE"
    """Kafka's name of the error; NONE for acks=all means that the records are in the leader's log and wait there."""
    records: tuple[Record, ...] = ()


def _least_in_sync(replication: Replication, rule: HighWatermarkRule) -> int:
    return leader_min_isr(rule.min_isr, len(replication.logs)) or 1


def enough_in_sync(replication: Replication, rule: HighWatermarkRule) -> bool:
    """Whether the committed ISR has min ISR members (Partition.isUnderMinIsr, effectiveMinIsr)."""
    leadership = replication.leadership
    return leadership is not None and len(leadership.isr) >= _least_in_sync(replication, rule)


def led(
    replication: Replication,
    leader: int | None,
    epoch: int,
    isr: tuple[int, ...],
    rule: HighWatermarkRule,
    *,
    running: bool = True,
) -> Replication:
    """The controller's record of leader, leader epoch and ISR reaches the replicas (Partition.makeLeader).

    A new leader knows nothing of its followers and starts its epoch where its log ends; its log is not truncated. What
    producers still waited for at another leader is not acknowledged any more. An ISR of the controller's ends the
    request that was under way.

    Args:
        running: whether the leader's process runs; one that does not commits nothing and answers no producer.
    """
    before = replication.leadership
    if leader is None or leader not in replication.logs:
        return replace(replication, leadership=None)
    members = frozenset(isr)
    if before is None or before.leader != leader:
        leadership = Leadership(leader, epoch, replication.logs[leader].end, members)
    elif before.epoch != epoch:
        end = replication.logs[leader].end
        leadership = replace(before, epoch=epoch, epoch_start=end, isr=members, proposed=None, proposed_epochs={})
    else:
        leadership = replace(before, isr=members, proposed=None, proposed_epochs={})
    after = replace(replication, leadership=leadership)
    return advanced(after, rule) if running else after


def stopped(replication: Replication, broker: int) -> Replication:
    """A broker's process ends, and with it what it knew as a leader: followers' ends, and producers that waited.

    An AlterPartition request of its is on the network already, and may still reach the controller.
    """
    leadership = replication.leadership
    if leadership is None or leadership.leader != broker:
        return replication
    return replace(replication, leadership=replace(leadership, ends={}, broker_epochs={}, waiting=frozenset()))


def produced(replication: Replication, count: int, acks: Acks, rule: HighWatermarkRule, *, first_id: int) -> Produced:
    """Records arrive at the leader (Partition.appendRecordsToLeader).

    Args:
        first_id: the records get this id and those after it.

    Errors:
        LEADER_NOT_AVAILABLE: nobody leads.
        NOT_ENOUGH_REPLICAS: acks=all, and the committed ISR is smaller than min ISR; nothing is written.
    """
    leadership, log = replication.leadership, replication.leader_log
    if leadership is None or log is None:
        return Produced(replication, "LEADER_NOT_AVAILABLE")
    if acks is Acks.ALL and not enough_in_sync(replication, rule):
        return Produced(replication, "NOT_ENOUGH_REPLICAS")
    records = tuple(Record(leadership.epoch, first_id + index, acks) for index in range(count))
    ids = frozenset(record.id for record in records)
    after = replication.with_log(leadership.leader, appended(log, records))
    if acks is Acks.ALL:
        after = replace(after, leadership=replace(leadership, waiting=leadership.waiting | ids))
    if acks is Acks.LEADER:
        after = replace(after, ledger=replace(after.ledger, acknowledged=after.ledger.acknowledged | ids))
    return Produced(advanced(after, rule), records=records)


def fetched(
    replication: Replication,
    follower: int,
    rule: HighWatermarkRule,
    *,
    broker_epoch: int | None = None,
    limit: int | None = None,
) -> Replication:
    """One fetch of a follower and its answer.

    The answer carries the high watermark from before this fetch (Partition.fetchRecords reads first), so that a
    follower learns what its own fetch committed only with its next one. A follower whose log has parted from the
    leader's truncates in this step; the leader counts it only from the next fetch on.

    Args:
        broker_epoch: what the fetch tells of the follower's incarnation.
        limit: how many records the answer holds at most.
    """
    leadership, leader_log = replication.leadership, replication.leader_log
    if leadership is None or leader_log is None or follower == leadership.leader:
        return replication
    log = replication.logs[follower]
    common, copied = parts_from(log, leader_log), following(log, leader_log, limit=limit)
    after = replication if copied is log else replication.with_log(follower, copied)
    if common < log.end or log.end < leader_log.start:
        return after
    told = broker_epoch is None or leadership.broker_epochs.get(follower) == broker_epoch
    if told and leadership.ends.get(follower) == log.end:
        return advanced(after, rule)
    epochs = leadership.broker_epochs if broker_epoch is None else {**leadership.broker_epochs, follower: broker_epoch}
    known = replace(leadership, ends={**leadership.ends, follower: log.end}, broker_epochs=epochs)
    return advanced(replace(after, leadership=known), rule)


def settled(replication: Replication, followers: Mapping[int, int | None], rule: HighWatermarkRule) -> Replication:
    """The followers fetch, one after the other, until nothing changes any more: logs are equal, high watermarks known.

    Args:
        followers: with the broker epoch of each.
    """
    while True:
        before = replication
        for follower, broker_epoch in followers.items():
            replication = fetched(replication, follower, rule, broker_epoch=broker_epoch)
        if replication is before or replication == before:
            return before


def caught_up(replication: Replication, follower: int) -> bool:
    """Whether the leader may propose this follower for the ISR (Partition.isFollowerInSync).

    By its last fetch it has everything below the high watermark and everything from before the leader's epoch.
    """
    leadership, log = replication.leadership, replication.leader_log
    if leadership is None or log is None:
        return False
    if follower == leadership.leader:
        return True
    end = leadership.ends.get(follower)
    return end is not None and end >= log.high_watermark and end >= leadership.epoch_start


def proposed(replication: Replication, isr: tuple[int, ...]) -> Replication:
    """The leader sends AlterPartition; until the answer, the high watermark waits for both ISRs' members."""
    leadership = replication.leadership
    if leadership is None:
        return replication
    epochs = {member: leadership.broker_epochs[member] for member in isr if member in leadership.broker_epochs}
    return replace(replication, leadership=replace(leadership, proposed=isr, proposed_epochs=epochs))


def withdrawn(replication: Replication, rule: HighWatermarkRule, *, running: bool = True) -> Replication:
    """The controller refused the proposed ISR; the leader goes back to the committed one, if its process runs."""
    leadership = replication.leadership
    if leadership is None or leadership.proposed is None:
        return replication
    after = replace(replication, leadership=replace(leadership, proposed=None, proposed_epochs={}))
    return advanced(after, rule) if running else after


def advanced(replication: Replication, rule: HighWatermarkRule) -> Replication:
    """The leader raises its high watermark as far as it may, and answers the producers that waited for that.

    It is the lowest log end of the maximal ISR, and only while the committed ISR has min ISR members (KIP-966).
    """
    leadership, log = replication.leadership, replication.leader_log
    if leadership is None or log is None or (rule.needs_min_isr and not enough_in_sync(replication, rule)):
        return replication
    others = leadership.maximal_isr - {leadership.leader}
    mark = min([log.end, *(leadership.ends.get(member, -1) for member in others)])
    if mark <= log.high_watermark and not leadership.waiting:
        return replication
    visible = _newly_visible(log, max(mark, log.high_watermark), replication.ledger)
    answered = leadership.waiting & visible
    if mark <= log.high_watermark and not answered and visible <= replication.ledger.visible:
        return replication
    log = replace(log, high_watermark=max(mark, log.high_watermark))
    # A producer is told NOT_ENOUGH_REPLICAS_AFTER_APPEND where fewer than min ISR replicas were in sync by then.
    enough = len(leadership.maximal_isr) >= _least_in_sync(replication, rule)
    ledger = replace(
        replication.ledger,
        visible=replication.ledger.visible | visible,
        committed=replication.ledger.committed | (answered if enough else frozenset()),
    )
    after = replication.with_log(leadership.leader, log)
    return replace(after, leadership=replace(leadership, waiting=leadership.waiting - answered), ledger=ledger)


def _newly_visible(log: SimulatedLog, mark: int, ledger: Ledger) -> frozenset[int]:
    """The records that consumers may read once the high watermark is there, without most of those that they could
    before: where the last of those is in the ledger, all are, and a long log is not walked with every batch."""
    before = log.high_watermark - log.start
    known = 0 < before <= len(log.records) and log.records[before - 1].id in ledger.visible
    return frozenset(record.id for record in log.records[before if known else 0 : max(mark - log.start, 0)])


def flushed_by_count(replication: Replication, most: int) -> Replication:
    """The logs, each on its disk where this many records are not there yet (UnifiedLog.append, unflushedMessages)."""
    due = {replica: flushed(log) for replica, log in replication.logs.items() if log.end - log.flushed >= most}
    return replace(replication, logs={**replication.logs, **due}) if due else replication


def cut(replication: Replication, replica: int, end: int) -> Replication:
    """A replica's log loses its records from offset `end` on."""
    return replication.with_log(replica, truncated(replication.logs[replica], end))


def deleted_before(replication: Replication, offset: int) -> Replication:
    """DeleteRecords, or retention: the leader's records before `offset` go, at most up to its high watermark.

    Followers do the same with their next fetch.
    """
    leadership, log = replication.leadership, replication.leader_log
    if leadership is None or log is None:
        return replication
    offset = min(offset, log.high_watermark)
    gone = frozenset(record.id for record in log.below(offset))
    ledger = replace(replication.ledger, deleted=replication.ledger.deleted | gone)
    return replace(replication.with_log(leadership.leader, trimmed(log, offset)), ledger=ledger)


def assigned(replication: Replication, replicas: tuple[int, ...], unaware: Container[int] = ()) -> Replication:
    """The partition has these replicas now: new ones start with an empty log, and dropped ones delete theirs.

    Args:
        unaware: brokers that do not learn it now: one that is dropped keeps its log until it does, and goes on with it
            where it is a replica again by then (TopicDelta.localChanges compares what a broker knew with what is now;
            at its start LogManager takes logs of partitions that it has no replica of for strays).
    """
    if replication.logs.keys() == set(replicas):
        return replication
    known = {**replication.left_over, **replication.logs}
    left_over = {one: log for one, log in known.items() if one not in replicas and one in unaware}
    logs = {replica: known.get(replica, SimulatedLog()) for replica in replicas}
    return replace(replication, logs=logs, left_over=left_over)
