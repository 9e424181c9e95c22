"""A simulated cluster in time: brokers with sessions, followers that fetch, leaders that change ISRs, links that break.

`SimulatedCluster` does one thing when it is told to. `RunningCluster` does by itself what brokers and controllers do:
it fences a broker whose heartbeats stay away, lets followers catch up, and lets leaders shrink and grow their ISRs.
It asks no clock: whoever runs it says how late it is (`advance`). The Unclean Recovery Manager's questions are handed
out (`asked`), and the answers taken in (`answered`), so that a server can send them over a network.

Source: ClusterControlManager.registerBroker and BrokerHeartbeatManager of Apache Kafka; for logs and ISRs
`kelr.simulation.following`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kelr.controller import (
    ControllerFailedOver,
    LogInfoAnswered,
    LogInfoFailed,
    LogInfoRequest,
    ManualRecovery,
    RecoveryEvent,
    RecoveryManager,
    Stepped,
    Task,
    TimePassed,
    events,
)
from kelr.controller.reach import NONE
from kelr.model import PartitionState, TopicPartition
from kelr.simulation.cluster import SimulatedCluster
from kelr.simulation.following import Awaited, Following, Link, Timing, awaited
from kelr.simulation.logs import Acks
from kelr.simulation.replication import Produced

# When the Unclean Recovery Manager has something to do by itself.


class RecoveryTimes:
    """The moments at which a window closes, a retry is due, a round is over or a request gives up.

    Worked out once for the tasks that there are, however often it is asked.
    """

    def __init__(self, seen_ms: int) -> None:
        self._tasks: Mapping[TopicPartition, Task] = {}
        self._times: list[int] = []
        self._seen_ms = seen_ms

    def seen(self, now_ms: int) -> None:
        """The manager has looked at all its tasks; what was due by then is done."""
        self._seen_ms = now_ms

    def next_ms(self, manager: RecoveryManager) -> int | None:
        """The first moment since it looked last; None where there is none."""
        if manager.tasks is not self._tasks:
            self._tasks = manager.tasks
            self._times = sorted({moment for task in manager.tasks.values() for moment in _moments(task, manager)})
        at = bisect_right(self._times, self._seen_ms)
        return self._times[at] if at < len(self._times) else None


def _moments(task: Task, manager: RecoveryManager) -> Iterator[int]:
    if task.window_from_ms is not None:
        yield task.window_from_ms + manager.limits.window_ms
    if task.round_ms is not None:
        yield task.round_ms + manager.limits.timeout_ms
    for manual in task.manual:
        yield manual.until_ms
    for inquiry in task.inquiries.values():
        if inquiry.retry_at_ms is not None:
            yield inquiry.retry_at_ms


__all__ = ["Link", "RunningCluster", "Timing"]


MOST_STEPS = 1_000
"""So many moments at which something is due are gone through one by one when time leaps."""


class RunningCluster(Following):
    """A cluster that goes on by itself as time passes. Mutable; everything in it is single-threaded.

    Args:
        cluster: brokers that are registered and are not down run.
        controller: the node id of the controller.
        now_ms: the time, in milliseconds since any one moment.
        settled: followers stay where they are, and ISRs what they are, until something happens to a partition or to one
            of its brokers; otherwise all that can catch up does so at once.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        controller: int,
        timing: Timing | None = None,
        now_ms: int = 0,
        settled: bool = False,
    ) -> None:
        super().__init__(cluster, controller=controller, timing=timing or Timing(), now_ms=now_ms)
        self._silent_since: dict[int, int] = {}
        """Brokers whose heartbeats do not reach the controller, and since when."""
        self._registers: set[int] = set()
        """Brokers that have started and whose registration the controller has not accepted."""
        self._unfenced_at: dict[int, int] = {}
        """When a registered broker will have caught up with the metadata."""
        self._strays: set[int] = set()
        """Brokers whose registration was removed while their process ran."""
        self._recoveries = RecoveryTimes(now_ms)
        self._next_unclean_ms = now_ms + (self.timing.unclean_ms or 0)
        self.topics_changed = 0
        """Grows whenever a topic or a partition comes or goes."""
        for broker in sorted(cluster.controller.brokers):
            if broker in cluster.down:
                # One that is fenced has been down for long.
                self._silent_since[broker] = now_ms - (self.timing.session_ms if self._fenced(broker) else 0)
            self._tend(broker)
        if settled:
            self._unsettled.clear()
        self.settle()

    # Processes.

    def runs(self, broker: int) -> bool:
        """Whether the broker's process runs and has registered, fenced or not."""
        registered = broker in self.cluster.controller.brokers or broker in self._strays
        return registered and broker not in self.cluster.down

    def kill(self, broker: int, *, power_loss: bool = False) -> None:
        """The process dies at once; with `power_loss` the page cache goes, and what was not flushed."""
        if self.runs(broker):
            self.cluster = self.cluster.stopped(broker, power_loss=power_loss)
            self._gone(broker)
        self._registers.discard(broker)

    def stop(self, broker: int) -> None:
        """A controlled shutdown: leaders move away, everything is flushed, the process ends.

        One that does not reach the controller ends all the same, and what it led has no leader until its session
        expires. A process that stands still gets the signal when it goes on, which it does now.
        """
        self._registers.discard(broker)
        if not self.runs(broker):
            return
        if broker in self.paused:
            self.go_on(broker)
        if self.linked(broker, self.controller):
            for event in (
                events.ControlledShutdown(broker),
                events.ControlledShutdown(broker),
                events.BrokerFenced(broker),
            ):
                done = self._happens(event)
                if done.error != NONE:
                    break
                # The others go on at once, while the broker still waits for its last answer.
                self._changed(done)
        self.cluster = self.cluster.shut_down(broker)
        self._gone(broker)

    def start(self, broker: int) -> None:
        """The process starts, registers as soon as the controller lets it, and is unfenced some time later.

        A controller that has heard from the broker's last incarnation within broker.session.timeout.ms refuses another
        one (DUPLICATE_BROKER_REGISTRATION) until that session has expired, unless it has recorded that the last one was
        in controlled shutdown. That it does for a broker that led something; one that led nothing is let go at once,
        and its session stays (seen on Kafka 4.3.1). A broker whose registration was removed, or that never had one,
        registers as a new one.
        """
        if self.runs(broker) or broker in self._registers:
            return
        self._registers.add(broker)
        self._tend(broker)
        self._broker_moved(broker)

    def register(self, broker: int, *, clean: bool) -> str:
        """Somebody registers as this broker, whose process runs from then on; Kafka's name of the error.

        Args:
            clean: the registration named the broker epoch of the one before (PreviousBrokerEpoch), whatever is on the
                broker's disk.
        """
        if self.runs(broker) or self._session_is_valid(broker):
            return "DUPLICATE_BROKER_REGISTRATION"
        error = self._registered(broker, clean=clean)
        self._tend(broker)
        self._broker_moved(broker)
        return error

    def lose_cache(self, broker: int) -> None:
        """The machine of a broker that does not run loses its power: what was not flushed is gone.

        A broker that runs dies of it (`kill` with `power_loss`). A clean shutdown has flushed everything.
        """
        if self.runs(broker):
            self.kill(broker, power_loss=True)
            return
        self.cluster = self.cluster.without_cache(broker)
        self.changes += 1

    def expire(self, broker: int) -> None:
        """The controller gives up on the broker now, and not only when its session's time is over.

        A broker that is in reach is unfenced with its next heartbeat.
        """
        self._happens(events.BrokerFenced(broker))
        if broker in self._silent_since:
            self._silent_since[broker] = min(self._silent_since[broker], self.now_ms - self.timing.session_ms)
        self._tend(broker, unfenced_in_ms=self.timing.heartbeat_ms)
        self._broker_moved(broker)

    def lose_directory(self, broker: int, partitions: Iterable[TopicPartition]) -> Stepped:
        """A log directory of a running broker fails, with these partitions' replicas in it.

        When the broker is started again it has an empty directory in its place.
        """
        return self.ask(events.DirectoryFailed(broker, frozenset(partitions)))

    def cordon(self, broker: int, *, cordoned: bool) -> None:
        """All log directories of a broker are cordoned from now on, or none is: its heartbeats tell the controller."""
        self.cordoned = self.cordoned | {broker} if cordoned else self.cordoned - {broker}
        self._tend(broker)

    # Links.

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
        if produced.records:
            self._written((address,))
        self._moved((address,))
        return produced

    def ask(self, event: events.Event | RecoveryEvent) -> Stepped:
        """A request that the controller decides: elections, assignments, topics, configs, features."""
        ran = isinstance(event, events.BrokerUnregistered) and self.runs(event.broker)
        done = self._happens(event)
        if isinstance(event, events.BrokerUnregistered) and done.error == NONE and ran:
            self._strays.add(event.broker)
        if isinstance(event, events.TopicCreated | events.TopicDeleted):
            self.topics_changed += 1
            self._forget_lags(event.topic)
            self._topic_moved(event.topic)
        elif isinstance(event, _OF_A_BROKER):
            self._broker_moved(event.broker)
        elif isinstance(event, _OF_ONE_PARTITION):
            self._moved({event.address, *(change.after.address for change in done.changes)})
        elif isinstance(event, _OF_NAMED_PARTITIONS):
            self._changed(done)
        elif isinstance(event, events.ConfigWritten | events.ConfigDeleted) and event.topic is not None:
            # A min ISR decides how far high watermarks go.
            self._topic_moved(event.topic)
        else:
            self._everything_moved()
        return done

    def ask_by_hand(self, event: ManualRecovery) -> Awaited:
        """Recoveries that somebody waits for: the answers come with the steps that end them."""
        done = self._happens(event)
        found = awaited(event.partitions, done)
        self._awaited.append(found)
        self._changed(done)
        return found

    def note_fetch(self, address: TopicPartition, follower: int, broker_epoch: int | None) -> None:
        """Somebody fetched as this follower from the partition's leader, with this broker epoch; None carried none."""
        self.cluster = self.cluster.noted(address, follower, broker_epoch)

    def copy(self, copies: Sequence[tuple[PartitionState, TopicPartition]]) -> None:
        """Partitions come to be that are like others in everything: state, logs, and what brokers know of them."""
        self.cluster = self.cluster.copied(copies)
        for broker, view in self.out_of_touch.items():
            known = (
                replace(view.partitions[source], topic=state.topic, partition=state.partition, topic_id=state.topic_id)
                for state, source in copies
                if source in view.partitions
            )
            self.out_of_touch[broker] = view.with_partitions(known)
        for state, source in copies:
            if source in self._unflushed:
                self._unflushed.add(state.address)
            if source in self._behind:
                leader, since = self._behind[source]
                self._behind[state.address] = leader, dict(since)
                for follower, at_ms in since.items():
                    self._lag(state.address, follower, at_ms)
        self.changes += 1
        self.topics_changed += 1

    def put(self, cluster: SimulatedCluster) -> None:
        """The cluster is this one from now on, and stands still: each of its steps is done elsewhere."""
        self.still = True
        self.cluster = cluster
        self.changes += 1
        self.topics_changed += 1

    def flush(self, broker: int) -> None:
        """A broker writes everything to its disk."""
        self.cluster = self.cluster.flushed(broker)
        self.changes += 1

    # The Unclean Recovery Manager's questions.

    def asked(self) -> tuple[LogInfoRequest, ...]:
        """Questions to brokers that nobody has taken along yet; each is handed out once."""
        if self.still:
            return ()
        questions, self.cluster = self.cluster.questions()
        return questions

    def answered(self, event: LogInfoAnswered | LogInfoFailed) -> Stepped:
        """An answer reached the controller, or the question was lost."""
        return self.ask(event)

    def fail_over(self, controller: int) -> Stepped:
        """Another controller takes over: what the manager had heard, and its questions under way, are lost."""
        self.cluster, self.controller = replace(self.cluster, asked=(), replies={}), controller
        done = self.ask(ControllerFailedOver())
        self._links_changed()
        return done

    # Time.

    @property
    def next_due_ms(self) -> int | None:
        """When something will happen by itself; None where nothing is to be expected."""
        if self.still:
            return None
        due = [
            since + self.timing.session_ms for broker, since in self._silent_since.items() if self._awaits_end(broker)
        ]
        due += self._unfenced_at.values()
        due += [at_ms for at_ms, *_ in self._lags[:1]]
        moments = (self._recoveries.next_ms(self.cluster.manager), self._flush_at_ms, self._unclean_due_ms())
        return min([*due, *(at_ms for at_ms in moments if at_ms is not None)], default=None)

    def advance(self, now_ms: int) -> None:
        """It is this late now: sessions expire, brokers are unfenced, leaders shrink ISRs, each in its time."""
        for _ in range(MOST_STEPS):
            due_ms = self.next_due_ms
            if due_ms is None or due_ms > now_ms:
                break
            self.now_ms = max(self.now_ms, due_ms)
            self._do_what_is_due()
        else:
            # A recovery asks again and again while nobody answers; a leap over years does not need each time of it.
            self.now_ms = max(self.now_ms, now_ms)
            self._do_what_is_due()
        self.now_ms = max(self.now_ms, now_ms)
        self.settle()

    # Inside.

    def _do_what_is_due(self) -> None:
        """Everything that is due by now, so that nothing of it stays due."""
        for broker, since in sorted(self._silent_since.items()):
            if self.now_ms - since >= self.timing.session_ms and self._awaits_end(broker):
                if not self._fenced(broker) and self._happens(events.BrokerFenced(broker)).error != NONE:
                    self._silent_since[broker] = self.now_ms  # the controller fails at it, and tries again
                self._tend(broker)
                self._broker_moved(broker)
        for broker, at_ms in sorted(self._unfenced_at.items()):
            if self.now_ms >= at_ms:
                del self._unfenced_at[broker]
                self._starting.discard(broker)
                self._changed(self._happens(events.BrokerUnfenced(broker)))
                self._broker_moved(broker)
        self._shrink_what_is_due()
        recovery_ms = self._recoveries.next_ms(self.cluster.manager)
        if recovery_ms is not None and recovery_ms <= self.now_ms:
            self._recoveries.seen(self.now_ms)
            self._changed(self._happens(TimePassed(self.now_ms)))
        unclean_ms = self._unclean_due_ms()
        if unclean_ms is not None and unclean_ms <= self.now_ms:
            self._next_unclean_ms = self.now_ms + (self.timing.unclean_ms or 0)
            self._changed(self._happens(events.UncleanElectionTask()))
        self._flush_what_is_due()

    def _unclean_due_ms(self) -> int | None:
        controller = self.cluster.controller
        if self.timing.unclean_ms is None or controller.rules.recovers or not self._unclean_is_allowed():
            return None
        if all(partition.leader is not None for partition in controller.partitions.values()):
            return None
        return self._next_unclean_ms

    def _unclean_is_allowed(self) -> bool:
        """Whether any topic allows unclean elections; mostly none does, which is found out cheaply."""
        controller = self.cluster.controller
        levels = (controller.static, controller.cluster, *controller.topics.values())
        return any(level.unclean_leader_election for level in levels)

    def _gone(self, broker: int) -> None:
        """The process has ended."""
        self.paused -= {broker}
        self._registers.discard(broker)
        self._strays.discard(broker)
        self._starting.discard(broker)
        self._unfenced_at.pop(broker, None)
        self._silent_since.setdefault(broker, self.now_ms)
        self._broker_moved(broker)

    def _links_changed(self) -> None:
        for broker in sorted({*self.cluster.controller.brokers, *self._registers}):
            self._tend(broker)
        self._look_at_lags_again()
        self._everything_moved()

    def _tend(self, broker: int, *, unfenced_in_ms: int | None = None) -> None:
        """The broker's dealings with the controller, by whether they reach each other."""
        if not self.linked(broker, self.controller):
            self.out_of_touch.setdefault(broker, self.cluster.controller)
            self.cluster = self.cluster.out_of_touch(broker)
            self._silent_since.setdefault(broker, self.now_ms)
            self._unfenced_at.pop(broker, None)
            return
        if broker in self._registers:
            self._register(broker)
        if broker not in self.cluster.controller.brokers or not self.runs(broker):
            return
        if self.out_of_touch.pop(broker, None) is not None:
            self.cluster = self.cluster.in_touch(broker)
        self._silent_since.pop(broker, None)
        if self.cluster.controller.brokers[broker].cordoned is not (broker in self.cordoned):
            self._happens(events.BrokerCordoned(broker, cordoned=broker in self.cordoned))
        if self._fenced(broker):
            in_ms = self.timing.start_ms if unfenced_in_ms is None else unfenced_in_ms
            self._unfenced_at.setdefault(broker, self.now_ms + in_ms)

    def _register(self, broker: int) -> None:
        if not self._session_is_valid(broker):
            self._registered(broker, clean=broker not in self.cluster.crashed)

    def _registered(self, broker: int, *, clean: bool) -> str:
        registration = self.cluster.controller.brokers.get(broker)
        rack = None if registration is None else registration.rack
        done = self._happens(events.BrokerRegistered(broker, clean=clean, rack=rack))
        if done.error == NONE:
            self._registers.discard(broker)
            self._starting.add(broker)
            self._changed(done)
        else:
            self._silent_since[broker] = self.now_ms  # the broker tries again
        return done.error

    def _awaits_end(self, broker: int) -> bool:
        """Whether something happens when the session of a silent broker is over."""
        if self._fenced(broker):
            return broker in self._registers and self.linked(broker, self.controller)
        return True

    def _session_is_valid(self, broker: int) -> bool:
        """Whether the controller takes the incarnation that was there before to be there still."""
        registration = self.cluster.controller.brokers.get(broker)
        if registration is None or registration.in_controlled_shutdown:
            return False
        return self.now_ms - self._silent_since.get(broker, self.now_ms) < self.timing.session_ms


_OF_A_BROKER = (
    events.BrokerRegistered,
    events.BrokerFenced,
    events.BrokerUnfenced,
    events.ControlledShutdown,
    events.BrokerUnregistered,
    events.DirectoryFailed,
)
_OF_ONE_PARTITION = (events.Reassigned, events.DirectoryAssigned, events.PartitionAltered)
_OF_NAMED_PARTITIONS = (
    events.LeadersElected,
    events.PreferredElectionTask,
    events.UncleanElectionTask,
    LogInfoAnswered,
    LogInfoFailed,
    ManualRecovery,
    TimePassed,
    ControllerFailedOver,
)
