"""A simulated cluster in time: brokers with sessions, followers that fetch, leaders that change ISRs, links that break.

`SimulatedCluster` does one thing when it is told to. `RunningCluster` does by itself what brokers and controllers do:
it fences a broker whose heartbeats stay away, lets followers catch up, and lets leaders shrink and grow their ISRs.
It asks no clock: whoever runs it says how late it is (`advance`). The Unclean Recovery Manager's questions are handed
out (`asked`), and the answers taken in (`answered`), so that a server can send them over a network.

Source: ClusterControlManager, BrokerHeartbeatManager, ReplicaManager and Partition (maybeShrinkIsr, maybeExpandIsr) of
Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from kelr.controller import (
    ControllerState,
    LogInfoAnswered,
    LogInfoFailed,
    LogInfoRequest,
    ManualRecovery,
    RecoveryEvent,
    Stepped,
    TimePassed,
    events,
)
from kelr.controller.reach import NONE
from kelr.model import TopicPartition
from kelr.simulation.by_hand import Awaited, awaited
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.logs import Acks
from kelr.simulation.replication import Produced, caught_up

Link: TypeAlias = frozenset[int]
"""Two nodes."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The configs that say how long things take, in milliseconds."""

    session_ms: int = 3000
    """broker.session.timeout.ms"""
    lag_ms: int = 3000
    """replica.lag.time.max.ms"""
    start_ms: int = 100
    """From a broker's registration until it has caught up with the metadata and is unfenced."""


class RunningCluster:
    """A cluster that goes on by itself as time passes. Mutable; everything in it is single-threaded.

    Args:
        cluster: brokers that are registered and live run.
        controller: the node id of the controller.
        now_ms: the time, in milliseconds since any one moment.
    """

    def __init__(
        self, cluster: SimulatedCluster, *, controller: int, timing: Timing = Timing(), now_ms: int = 0
    ) -> None:
        self.cluster = cluster
        self.controller = controller
        self.timing = timing
        self.now_ms = now_ms
        self.severed: frozenset[Link] = frozenset()
        """Pairs of nodes that do not reach each other."""
        self.paused: frozenset[int] = frozenset()
        """Brokers whose process stands still (SIGSTOP): they reach nobody, and nobody reaches them."""
        self.changes = 0
        """Grows with everything that happens: who waits for something looks again when it has grown."""
        self._silent_since: dict[int, int] = {}
        """Brokers whose heartbeats do not reach the controller, and since when."""
        self._registers: set[int] = set()
        """Brokers that have started and whose registration has not reached the controller."""
        self._unfenced_at: dict[int, int] = {}
        """When a registered broker will have caught up with the metadata."""
        self._behind_since: dict[tuple[TopicPartition, int], int] = {}
        """In-sync followers that do not fetch, and since when."""
        self._awaited: list[Awaited] = []
        """Recoveries that were asked for by hand and go on."""
        self.out_of_touch: dict[int, ControllerState] = {}
        """What brokers know of the cluster that the controller does not reach: what it was when they lost touch."""
        self._unsettled: set[TopicPartition] = set(cluster.controller.partitions)
        """Partitions whose followers have something to do."""
        self.settle()

    # Processes.

    def runs(self, broker: int) -> bool:
        """Whether the broker's process runs, fenced or not."""
        return broker in self.cluster.controller.brokers and broker not in self.cluster.down

    def kill(self, broker: int, *, power_loss: bool = False) -> None:
        """The process dies at once; with `power_loss` the page cache goes, and what was not flushed."""
        if self.runs(broker):
            self.cluster = self.cluster.stopped(broker, power_loss=power_loss)
            self._gone(broker)

    def stop(self, broker: int) -> None:
        """A controlled shutdown: leaders move away, everything is flushed, the process ends."""
        if not self.runs(broker):
            return
        if self.linked(broker, self.controller):
            for event in (
                events.ControlledShutdown(broker),
                events.ControlledShutdown(broker),
                events.BrokerFenced(broker),
            ):
                if self._happens(event).error != NONE:
                    break
        self.cluster = self.cluster.shut_down(broker)
        self._gone(broker)

    def start(self, broker: int) -> None:
        """The process starts, registers as soon as it reaches the controller, and is unfenced some time later."""
        if self.runs(broker) or broker not in self.cluster.controller.brokers:
            return
        self._registers.add(broker)
        self._tend(broker)
        self._everything_moved()

    def lose_cache(self, broker: int) -> None:
        """What a broker had not flushed is gone, as after a power loss; its process must not run."""
        self.cluster = self.cluster.stopped(broker, power_loss=True)
        self.changes += 1

    def expire(self, broker: int) -> None:
        """The controller gives up on the broker now, and not only when its session's time is over."""
        self._happens(events.BrokerFenced(broker))
        self._everything_moved()

    # Links.

    def linked(self, one: int, other: int) -> bool:
        return frozenset((one, other)) not in self.severed and one not in self.paused and other not in self.paused

    def pause(self, broker: int) -> None:
        """The broker's process stands still, until `go_on` or its end."""
        if self.runs(broker):
            self.paused |= {broker}
            self._links_changed()

    def go_on(self, broker: int) -> None:
        """Undo `pause`."""
        self.paused -= {broker}
        self._links_changed()

    def sever(self, one: int, other: int) -> None:
        """Two nodes do not reach each other any more."""
        self.severed |= {frozenset((one, other))}
        self._links_changed()

    def heal(self, one: int | None = None, other: int | None = None) -> None:
        """They do again; without nodes, all do."""
        self.severed = frozenset() if one is None or other is None else self.severed - {frozenset((one, other))}
        self._links_changed()

    # What clients and operators ask for.

    def produce(self, address: TopicPartition, count: int, acks: Acks) -> Produced:
        """Records arrive at the partition's leader; followers fetch them at once, where they can."""
        self.cluster, produced = self.cluster.produce(address, count, acks)
        self._moved((address,))
        return produced

    def ask(self, event: events.Event | RecoveryEvent) -> Stepped:
        """A request that the controller decides: elections, assignments, topics, configs, features."""
        done = self._happens(event)
        self._everything_moved()
        return done

    def ask_by_hand(self, event: ManualRecovery) -> Awaited:
        """Recoveries that somebody waits for: the answers come with the steps that end them."""
        found = awaited(event.partitions, self._happens(event))
        self._awaited.append(found)
        self._everything_moved()
        return found

    def flush(self, broker: int) -> None:
        """A broker writes everything to its disk."""
        self.cluster = self.cluster.flushed(broker)
        self.changes += 1

    # The Unclean Recovery Manager's questions.

    def asked(self) -> tuple[LogInfoRequest, ...]:
        """Questions to brokers that nobody has taken along yet; each is handed out once."""
        questions, self.cluster = self.cluster.questions()
        return questions

    def answered(self, event: LogInfoAnswered | LogInfoFailed) -> Stepped:
        """An answer reached the controller, or the question was lost."""
        return self.ask(event)

    # Time.

    @property
    def next_due_ms(self) -> int | None:
        """When something will happen by itself; None where nothing is to be expected."""
        timing = self.timing
        due = [since + timing.session_ms for broker, since in self._silent_since.items() if not self._fenced(broker)]
        due += self._unfenced_at.values()
        due += [since + timing.lag_ms for since in self._behind_since.values()]
        if self.cluster.manager.tasks:
            due.append(self.now_ms + 100)
        return min(due, default=None)

    def advance(self, now_ms: int) -> None:
        """It is this late now: sessions expire, brokers are unfenced, leaders shrink ISRs."""
        self.now_ms = max(self.now_ms, now_ms)
        for broker, since in sorted(self._silent_since.items()):
            if self.now_ms - since >= self.timing.session_ms and not self._fenced(broker):
                self._happens(events.BrokerFenced(broker))
                self._everything_moved()
        for broker, at in sorted(self._unfenced_at.items()):
            if self.now_ms >= at:
                del self._unfenced_at[broker]
                if self.runs(broker) and self.linked(broker, self.controller):
                    self._happens(events.BrokerUnfenced(broker))
                    self._everything_moved()
        for (address, follower), since in sorted(self._behind_since.items()):
            if self.now_ms - since >= self.timing.lag_ms:
                del self._behind_since[address, follower]
                self._shrink(address, follower)
        if self.cluster.manager.tasks:
            self._happens(TimePassed(self.now_ms))
        self.settle()

    def settle(self) -> None:
        """Followers fetch what there is, and leaders take those that have caught up into the ISR."""
        while self._unsettled:
            address = min(self._unsettled)
            self._unsettled.discard(address)
            if address in self.cluster.controller.partitions:
                self._replicate(address)

    # Inside.

    def _fenced(self, broker: int) -> bool:
        registration = self.cluster.controller.brokers.get(broker)
        return registration is None or registration.fenced

    def _happens(self, event: events.Event | RecoveryEvent) -> Stepped:
        self._tell_the_time()
        self.cluster, done = self.cluster.after(event)
        self._stepped(done)
        return done

    def _tell_the_time(self) -> None:
        """The Unclean Recovery Manager counts its times from the moment at which something happens."""
        manager = self.cluster.manager
        if manager.now_ms < self.now_ms:
            self.cluster = replace(self.cluster, manager=replace(manager, now_ms=self.now_ms))

    def _stepped(self, done: Stepped) -> None:
        self.changes += 1
        for one in self._awaited:
            one.take(done)
        self._awaited = [one for one in self._awaited if one.pending]

    def _gone(self, broker: int) -> None:
        self.paused -= {broker}
        self._registers.discard(broker)
        self._unfenced_at.pop(broker, None)
        self._silent_since.setdefault(broker, self.now_ms)
        self._everything_moved()

    def _links_changed(self) -> None:
        for broker in self.cluster.controller.brokers:
            self._tend(broker)
        self._everything_moved()

    def _tend(self, broker: int) -> None:
        """The broker's dealings with the controller, by whether they reach each other."""
        if not self.linked(broker, self.controller):
            self.out_of_touch.setdefault(broker, self.cluster.controller)
            self._silent_since.setdefault(broker, self.now_ms)
            self._unfenced_at.pop(broker, None)
            return
        self.out_of_touch.pop(broker, None)
        if broker in self._registers:
            clean = broker not in self.cluster.crashed
            if self._happens(events.BrokerRegistered(broker, clean=clean)).error == NONE:
                self._registers.discard(broker)
        if self.runs(broker):
            self._silent_since.pop(broker, None)
            if self._fenced(broker):
                self._unfenced_at.setdefault(broker, self.now_ms + self.timing.start_ms)

    def _everything_moved(self) -> None:
        self._moved(self.cluster.controller.partitions)

    def _moved(self, addresses: Iterable[TopicPartition]) -> None:
        self.changes += 1
        self._unsettled.update(addresses)
        self.settle()

    def _replicate(self, address: TopicPartition) -> None:
        leader = self.cluster.serving(address)
        state = self.cluster.controller.partitions[address]
        if leader is None:
            self._forget_behind(address, ())
            return
        reached = tuple(
            replica
            for replica in state.replicas
            if replica == leader or (self.cluster.running(replica) and self.linked(leader, replica))
        )
        self.cluster = self.cluster.replicate(address, reached)
        self._grow(address, leader, reached)
        self._watch_followers(address, leader, reached)

    def _grow(self, address: TopicPartition, leader: int, reached: Collection[int]) -> None:
        state, replication = self.cluster.controller.partitions[address], self.cluster.replication[address]
        joining = [one for one in reached if one not in state.isr and caught_up(replication, one)]
        if joining and self.linked(leader, self.controller):
            members = {*state.isr, *joining}
            self._propose(address, tuple(one for one in state.replicas if one in members))

    def _shrink(self, address: TopicPartition, follower: int) -> None:
        state, leader = self.cluster.controller.partitions.get(address), None
        if state is not None:
            leader = self.cluster.serving(address)
        if state is None or leader is None or follower not in state.isr or not self.linked(leader, self.controller):
            return
        self._propose(address, tuple(one for one in state.isr if one != follower))

    def _propose(self, address: TopicPartition, isr: tuple[int, ...]) -> None:
        self._tell_the_time()
        self.cluster = self.cluster.propose(address, isr)
        self.cluster, done = self.cluster.deliver(address)
        self._stepped(done)
        if done.error == NONE:
            leader = self.cluster.serving(address)
            if leader is not None:
                self.cluster = self.cluster.replicate(address, self._in_reach(address, leader))

    def _in_reach(self, address: TopicPartition, leader: int) -> tuple[int, ...]:
        state = self.cluster.controller.partitions[address]
        return tuple(
            one for one in state.replicas if self.cluster.running(one) and (one == leader or self.linked(leader, one))
        )

    def _watch_followers(self, address: TopicPartition, leader: int, reached: Collection[int]) -> None:
        """Followers that cannot fetch what the leader has fall behind (Replica.isCaughtUp)."""
        replication = self.cluster.replication[address]
        log, leadership = replication.leader_log, replication.leadership
        if log is None or leadership is None:
            return
        behind = [
            one
            for one in self.cluster.controller.partitions[address].isr
            if one != leader and one not in reached and leadership.ends.get(one, -1) < log.end
        ]
        for follower in behind:
            self._behind_since.setdefault((address, follower), self.now_ms)
        self._forget_behind(address, behind)

    def _forget_behind(self, address: TopicPartition, but: Collection[int]) -> None:
        for key in [key for key in self._behind_since if key[0] == address and key[1] not in but]:
            del self._behind_since[key]
