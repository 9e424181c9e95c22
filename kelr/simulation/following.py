"""What brokers do by themselves with logs: followers fetch, leaders grow and shrink ISRs, machines write to disks.

Source: ReplicaManager and Partition (maybeExpandIsr, maybeShrinkIsr, isReplicaIsrEligible), Replica.isCaughtUp of
Apache Kafka; KIP-841 for fenced followers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any, TypeAlias

from kelr.controller import ControllerState, RecoveryEvent, Stepped, events
from kelr.controller.reach import NONE
from kelr.model import PartitionState, TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.replication import caught_up

# Recoveries that somebody asked for by hand, and the answers as the steps of the controller bring them.
#
# The controller answers a manual recovery by the step that ends it (`Stepped.answers`), maybe long after the step that
# asked. Whoever asked keeps an `Awaited` and looks at it when something has happened.


NOT_AVAILABLE = "ELIGIBLE_LEADERS_NOT_AVAILABLE"


@dataclass(slots=True)
class Awaited:
    """What was asked for at once, and how far it has been answered."""

    answers: dict[TopicPartition, str] = field(default_factory=dict)
    """Kafka's name of each error, by partition."""
    pending: set[TopicPartition] = field(default_factory=set)
    """Partitions whose recovery goes on."""
    refused: str = NONE
    """Kafka's name of the error that refused the whole of it."""

    def take(self, done: Stepped) -> None:
        """Look at a later step: one that has ended a recovery has its answer.

        A step can answer somebody else for the same partition, say a designation that elected nobody, while the
        recovery goes on; so the manager is asked whether it does.
        """
        tasks, partitions = done.controller.manager.tasks, done.controller.state.partitions
        for address in sorted(self.pending):
            task = tasks.get(address)
            if task is not None and task.manual:
                continue
            self.pending.discard(address)
            led = address in partitions and partitions[address].leader is not None
            self.answers[address] = done.answers.get(address, NONE if led else NOT_AVAILABLE)


def awaited(asked: Iterable[TopicPartition], done: Stepped) -> Awaited:
    """The answers of the step that asked for recoveries, and what it left open."""
    pending = set(asked) - set(done.answers) if done.error == NONE else set()
    return Awaited(dict(done.answers), pending, done.error)


# What everything in a running cluster stands on: the cluster, the time, the links between nodes, and what happened.


Link: TypeAlias = frozenset[int]
"""Two nodes."""

Watcher: TypeAlias = Callable[[events.Event | RecoveryEvent | None, Stepped], None]
"""Is told of an event and what the controller made of it; without an event, leaders reported ISRs."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The configs that say how long things take, in milliseconds."""

    session_ms: int = 3000
    """broker.session.timeout.ms"""
    lag_ms: int = 3000
    """replica.lag.time.max.ms"""
    start_ms: int = 100
    """From a broker's registration until it has caught up with the metadata and is unfenced."""
    heartbeat_ms: int = 500
    """broker.heartbeat.interval.ms: so long a broker that the controller gave up stays fenced while it is in reach."""
    flush_ms: int | None = 30_000
    """So long after a record was written its machine has it on the disk, whether the broker runs or not, as Linux does
    it by its defaults (vm.dirty_expire_centisecs; Kafka itself leaves it to the machine). None: never by itself."""
    unclean_ms: int | None = 300_000
    """unclean.leader.election.interval.ms: how often the controller looks for leaderless partitions whose topic allows
    unclean elections. None: never by itself."""


class Ground:
    """A cluster, the time, and who reaches whom. Mutable; everything in it is single-threaded.

    Args:
        controller: the node id of the controller.
        now_ms: the time, in milliseconds since any one moment.
    """

    def __init__(self, cluster: SimulatedCluster, *, controller: int, timing: Timing, now_ms: int) -> None:
        self.cluster = cluster
        self.controller = controller
        self.timing = timing
        self.now_ms = now_ms
        self.severed: frozenset[Link] = frozenset()
        """Pairs of nodes that do not reach each other."""
        self.paused: frozenset[int] = frozenset()
        """Brokers whose process stands still (SIGSTOP): they reach nobody, and nobody reaches them."""
        self.cordoned = frozenset(one for one, known in cluster.controller.brokers.items() if known.cordoned)
        """Brokers whose cordoned.log.dirs names all their directories (KIP-1066); the controller learns it of them."""
        self.changes = 0
        """Grows with everything that happens: who waits for something looks again when it has grown."""
        self.out_of_touch: dict[int, ControllerState] = {}
        """What brokers know of the cluster that the controller does not reach: what it was when they lost touch."""
        self.still = False
        """Nothing happens by itself, not even in time: somebody else does it all, step by step (`put`)."""
        self.watchers: list[Watcher] = []
        """Called with each step of the controller, in their order."""
        self._awaited: list[Awaited] = []
        """Recoveries that were asked for by hand and go on."""

    def linked(self, one: int, other: int) -> bool:
        return frozenset((one, other)) not in self.severed and one not in self.paused and other not in self.paused

    def _fenced(self, broker: int) -> bool:
        registration = self.cluster.controller.brokers.get(broker)
        return registration is None or registration.fenced

    def _happens(self, event: events.Event | RecoveryEvent) -> Stepped:
        self._tell_the_time()
        self.cluster, done = self.cluster.after(event)
        self._stepped(done, event)
        return done

    def _tell_the_time(self) -> None:
        """The Unclean Recovery Manager counts its times from the moment at which something happens."""
        manager = self.cluster.manager
        if manager.now_ms < self.now_ms and not self.still:
            self.cluster = replace(self.cluster, manager=replace(manager, now_ms=self.now_ms))

    def _stepped(self, done: Stepped, event: events.Event | RecoveryEvent | None = None) -> None:
        self.changes += 1
        for watcher in self.watchers:
            watcher(event, done)
        for one in self._awaited:
            one.take(done)
        self._awaited = [one for one in self._awaited if one.pending]


MOST_ROUNDS = 100
"""Each round ends with ISRs that have grown, so that a partition needs no more of them than it has replicas."""


class Following(Ground):
    """Looks after logs and ISRs; partitions that something happened to are `_moved`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unsettled: set[TopicPartition] = set(self.cluster.controller.partitions)
        """Partitions whose followers have something to do."""
        self._behind: dict[TopicPartition, tuple[int, dict[int, int]]] = {}
        """The leader, and in-sync followers that do not have what it has: since when."""
        self._lags: list[tuple[int, TopicPartition, int, int]] = []
        """A heap: when a follower will have been behind for too long, and since when it is."""
        self._unflushed: set[TopicPartition] = set()
        """Partitions with records that may be on no disk yet."""
        self._flush_at_ms: int | None = None
        self._starting: set[int] = set()
        """Brokers whose process has registered, and was not unfenced yet."""

    def settle(self) -> None:
        """Followers fetch what there is, and leaders take those that have caught up into the ISR."""
        if self.still:
            self._unsettled.clear()
            return
        looked_at: set[TopicPartition] = set()
        for _ in range(MOST_ROUNDS):
            known = self.cluster.controller.partitions
            addresses = sorted(address for address in self._unsettled if address in known)
            self._unsettled.clear()
            if not addresses:
                break
            looked_at.update(addresses)
            self._fetch(addresses)
            self._report(self._grown(addresses))
        for address in looked_at:
            self._watch_followers(address)

    def _moved(self, addresses: Iterable[TopicPartition]) -> None:
        self.changes += 1
        self._unsettled.update(addresses)
        self.settle()

    def _changed(self, done: Stepped) -> None:
        self._moved(change.after.address for change in done.changes)

    def _everything_moved(self) -> None:
        self._moved(self.cluster.controller.partitions)

    def _broker_moved(self, broker: int) -> None:
        """Something happened to a broker, and with it to every partition that has a replica there."""
        partitions = self.cluster.controller.partitions
        self._moved([address for address, partition in partitions.items() if broker in partition.replicas])

    def _topic_moved(self, topic: str) -> None:
        self._moved([address for address in self.cluster.controller.partitions if address.topic == topic])

    # Fetching.

    def _fetch(self, addresses: Sequence[TopicPartition]) -> None:
        followers = {}
        for address in addresses:
            leader = self.cluster.serving(address)
            if leader is not None:
                followers[address] = self._in_reach(self.cluster.controller.partitions[address], leader)
        before, self.cluster = self.cluster.replication, self.cluster.replicated(followers)
        self._written(address for address in followers if self.cluster.replication[address] is not before[address])

    def _in_reach(self, partition: PartitionState, leader: int) -> tuple[int, ...]:
        """The replicas that have what the leader has: itself, and those that fetch from it."""
        return tuple(one for one in partition.replicas if one == leader or self._fetches(partition, one, leader))

    def _fetches(self, partition: PartitionState, follower: int, leader: int) -> bool:
        """Whether a follower fetches: as long as its process runs and knows who leads, fenced or not."""
        if follower not in self.cluster.controller.brokers or follower in self.cluster.down:
            return False
        if follower in self._starting or follower in (partition.offline_replicas or ()):
            return False
        if not self.linked(follower, leader):
            return False
        view = self.out_of_touch.get(follower)
        if view is None:
            return True
        known = view.partitions.get(partition.address)
        return known is not None and (known.leader, known.leader_epoch) == (leader, partition.leader_epoch)

    # ISRs.

    def _grown(self, addresses: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
        """The ISRs with the followers that have caught up, where there are any that are not in it."""
        controller, grown = self.cluster.controller, {}
        for address in addresses:
            state = controller.partitions[address]
            if len(state.isr) == len(state.replicas):
                continue
            leader = self.cluster.serving(address)
            if leader is None or not self.linked(leader, self.controller):
                continue
            reached, replication = self._in_reach(state, leader), self.cluster.replication[address]
            joining = [
                one
                for one in reached
                if one not in state.isr
                and caught_up(replication, one)
                and self.cluster.not_let_in(address, one) is None
            ]
            if joining:
                # The leader keeps its ISR as a set, and sends it by id: so seen on 4.3.1, whoever led or joined last.
                grown[address] = tuple(sorted((*state.isr, *joining)))
        return grown

    def _report(self, isrs: dict[TopicPartition, tuple[int, ...]]) -> None:
        """Leaders tell the controller other ISRs; what becomes of them is for the followers to learn."""
        if not isrs:
            return
        self._tell_the_time()
        self.cluster, done = self.cluster.altered(isrs)
        self._stepped(done)
        self._unsettled.update(change.after.address for change in done.changes)

    def _watch_followers(self, address: TopicPartition) -> None:
        """Followers that do not have what the leader has fall behind (Replica.isCaughtUp)."""
        partition, leader = self.cluster.controller.partitions[address], self.cluster.serving(address)
        leadership = self.cluster.replication[address].leadership
        log = self.cluster.replication[address].leader_log
        if leader is None or leadership is None or log is None:
            self._behind.pop(address, None)
            return
        # A new leader gives everybody the whole time.
        led, before = self._behind.get(address, (leader, {}))
        before = before if led == leader else {}
        since = {
            one: before.get(one, self.now_ms)
            for one in partition.isr
            if one != leader and leadership.ends.get(one, -1) < log.end
        }
        for follower in since.keys() - before.keys():
            self._lag(address, follower, self.now_ms)
        if since:
            self._behind[address] = leader, since
        else:
            self._behind.pop(address, None)

    def _lag(self, address: TopicPartition, follower: int, since_ms: int) -> None:
        heappush(self._lags, (since_ms + self.timing.lag_ms, address, follower, since_ms))

    def _shrink_what_is_due(self) -> None:
        """Leaders drop followers that have been behind for replica.lag.time.max.ms.

        One that cannot tell the controller tries again when it can.
        """
        due: dict[TopicPartition, set[int]] = {}
        while self._lags and self._lags[0][0] <= self.now_ms:
            _, address, follower, since = heappop(self._lags)
            if self._behind.get(address, (0, {}))[1].get(follower) == since:
                due.setdefault(address, set()).add(follower)
        shrunk = {}
        for address, followers in due.items():
            partition, leader = self.cluster.controller.partitions.get(address), None
            if partition is not None:
                leader = self.cluster.serving(address)
            if partition is not None and leader is not None and self.linked(leader, self.controller):
                shrunk[address] = tuple(sorted(set(partition.isr) - set(followers)))
        self._report({address: isr for address, isr in shrunk.items() if isr})
        self.settle()

    def _forget_lags(self, topic: str) -> None:
        self._behind = {address: lag for address, lag in self._behind.items() if address.topic != topic}

    def _look_at_lags_again(self) -> None:
        """Links have changed: leaders that could not tell the controller try again."""
        for address, (_, since) in self._behind.items():
            for follower, at_ms in since.items():
                if at_ms + self.timing.lag_ms <= self.now_ms:
                    heappush(self._lags, (self.now_ms, address, follower, at_ms))

    # Disks.

    def _written(self, addresses: Iterable[TopicPartition]) -> None:
        self._unflushed.update(addresses)
        if self._unflushed and self._flush_at_ms is None and self.timing.flush_ms is not None:
            self._flush_at_ms = self.now_ms + self.timing.flush_ms

    def _flush_what_is_due(self) -> None:
        if self._flush_at_ms is None or self._flush_at_ms > self.now_ms:
            return
        known = self.cluster.replication
        self.cluster = self.cluster.flushed_everywhere(address for address in self._unflushed if address in known)
        self._unflushed.clear()
        self._flush_at_ms = None
        self.changes += 1
