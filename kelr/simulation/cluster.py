"""A whole cluster on paper: the controller's records, the logs of all replicas, and which broker processes run.

`SimulatedCluster` is a frozen value. What the controller does is left to `kelr.controller.RecoveringController`, what
logs do to `kelr.simulation.replication`; here the two meet: a record of the controller's reaches the replicas, a broker
that does not run neither leads nor fetches, and the Unclean Recovery Manager's questions are answered from the logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kelr.controller import (
    Change,
    Configs,
    ControllerState,
    Handled,
    LogInfoAnswered,
    LogInfoEntry,
    LogInfoFailed,
    LogInfoRequest,
    RecoveringController,
    RecoveryEvent,
    RecoveryManager,
    Registration,
    Stepped,
    TimePassed,
    events,
    handle,
)
from kelr.controller.reach import FAILED, NONE, written
from kelr.model import (
    ELR_FEATURE,
    Broker,
    Cluster,
    ConfigSource,
    Features,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.simulation import replication as rep
from kelr.simulation.logs import Acks, SimulatedLog, after_power_loss, flushed
from kelr.simulation.partition_map import PartitionMap
from kelr.simulation.replication import HighWatermarkRule, Produced, Replication

# AlterPartition for many partitions in one request, as leaders send it, at a cost that grows with their number alone.
#
# `kelr.controller.handle` takes one partition at a time, and each time makes a copy of all that the controller has on
# record. Here each partition is decided on a record that holds nothing else, and all changes are written at once.


def altered_together(state: ControllerState, reports: Iterable[events.PartitionAltered]) -> Handled | None:
    """What the controller makes of these reports, each decided by what is on record before all of them.

    Source: ReplicationControlManager.alterPartition makes the records of all partitions of a request before the first
    takes effect.

    Returns:
        None where the controller would fail at one of them: what it then does to the others is told by asking one
        after the other.
    """
    changes: list[Change] = []
    answers: dict[TopicPartition, str] = {}
    for report in reports:
        first = TopicPartition(report.address.topic, 0)
        near = {known: state.partitions[known] for known in (first, report.address) if known in state.partitions}
        done = handle(replace(state, partitions=near), report)
        if done.error == FAILED or FAILED in done.answers.values():
            return None
        changes += done.changes
        answers[report.address] = done.error if done.error != NONE else done.answers[report.address]
    return Handled(written(state, changes), tuple(changes), answers=answers)


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """Everything that there is: the controller's records, the replicas' logs, the processes."""

    controller: ControllerState
    manager: RecoveryManager = field(default_factory=RecoveryManager)
    """The Unclean Recovery Manager; it has nothing to do but by the kip966-* rules."""
    asked: tuple[LogInfoRequest, ...] = ()
    """The manager's questions that nobody has answered yet."""
    replies: Mapping[int, tuple[LogInfoAnswered, ...]] = field(default_factory=dict)
    """By broker: answers that are on their way to the controller, one for each request, in the order of sending."""
    replication: Mapping[TopicPartition, Replication] = field(default_factory=PartitionMap)
    down: frozenset[int] = frozenset()
    """Brokers whose process does not run, whatever the controller knows of it."""
    crashed: frozenset[int] = frozenset()
    """Those of them that did not shut down cleanly: their logs have no mark of a clean shutdown."""
    unaware: frozenset[int] = frozenset()
    """Brokers that no record of the controller's reaches although their processes may run."""
    told: Mapping[TopicPartition, Mapping[int, LogAnswer]] = field(default_factory=dict)
    """What is said of a log by hand; it counts in place of the simulated log in a snapshot."""
    next_record: int = 0
    """The id of the next record that is produced."""
    high_watermark_needs_min_isr: bool = True
    """False for Kafka before 3.7.0 (`HighWatermarkRule.needs_min_isr`)."""
    flush_messages: int | None = None
    """log.flush.interval.messages: a broker writes a log to its disk once so many records are not on it, and before the
    high watermark moves where that is one; None leaves it to the machine, as Kafka's default does."""
    flush_ms: int | None = None
    """log.flush.interval.ms: the brokers that run write everything to their disks so often."""
    flushed_at_ms: int = 0
    """When they last did, on the recovery manager's clock."""

    def after(self, event: events.Event | RecoveryEvent) -> tuple[SimulatedCluster, Stepped]:
        """Let the controller handle an event, its records reach the replicas, and its questions the brokers."""
        done = RecoveringController(self.controller, self.manager).step(event)
        cluster = replace(
            self,
            controller=done.controller.state,
            manager=done.controller.manager,
            asked=(*self._still_asked(event), *done.requests),
        )._with_records(event, done)
        if done.error != NONE:
            return cluster, done
        if isinstance(event, events.BrokerRegistered):
            back = {event.broker}
            cluster = replace(cluster, down=cluster.down - back, crashed=cluster.crashed - back)
            cluster = cluster.in_touch(event.broker)
        if isinstance(event, events.DirectoryFailed | events.BrokerRegistered):
            cluster = cluster._without_lost_directories()
        return cluster, done

    def out_of_touch(self, broker: int) -> SimulatedCluster:
        """The controller's records do not reach the broker any more, until `in_touch` or its next registration."""
        return replace(self, unaware=self.unaware | {broker})

    def in_touch(self, broker: int) -> SimulatedCluster:
        """The broker learns what the controller wrote, and deletes logs of partitions that it is no replica of."""
        left = {at: logs for at, logs in self.replication.items() if broker in logs.left_over}
        known = {at: logs.without_left_over(broker) for at, logs in left.items()}
        return replace(self.with_replications(known), unaware=self.unaware - {broker})

    def placed(self, partition: PartitionState) -> SimulatedCluster:
        """A partition is in this state, its logs empty; one of the same name is replaced, with its recovery."""
        address = partition.address
        tasks = {at: task for at, task in self.manager.tasks.items() if at != address}
        counts = {**self.controller.first_partition_replicas}
        counts.setdefault(address.topic, len(partition.replicas))
        controller = replace(self.controller.with_partition(partition), first_partition_replicas=counts)
        fresh = Replication({replica: SimulatedLog() for replica in partition.replicas})
        cluster = replace(self, controller=controller, manager=replace(self.manager, tasks=tasks))
        return cluster._with_replication(address, cluster._led(fresh, partition))

    def copied(self, copies: Sequence[tuple[PartitionState, TopicPartition]]) -> SimulatedCluster:
        """Partitions are in these states, each with the logs of another partition."""
        counts = {**self.controller.first_partition_replicas}
        for partition, _ in copies:
            counts.setdefault(partition.topic, len(partition.replicas))
        states = (partition for partition, _ in copies)
        controller = replace(self.controller.with_partitions(states), first_partition_replicas=counts)
        logs = {partition.address: self.replication[source] for partition, source in copies}
        return replace(self, controller=controller).with_replications(logs)

    def running(self, broker: int) -> bool:
        """Whether a broker's process runs and the controller counts it in: only then it leads, fetches and answers."""
        registration = self.controller.brokers.get(broker)
        return registration is not None and not registration.fenced and broker not in self.down

    def serving(self, address: TopicPartition) -> int | None:
        """The partition's leader, if its process runs."""
        leader = self.controller.partitions[address].leader
        return leader if leader is not None and self.running(leader) else None

    def produce(self, address: TopicPartition, count: int, acks: Acks) -> tuple[SimulatedCluster, Produced]:
        """Producers send records; see `replication.produced` for the errors."""
        before = self.replication[address]
        if self.serving(address) is None:
            return self, Produced(before, "LEADER_NOT_AVAILABLE")
        outcome = rep.produced(before, count, acks, self._rule(address), first_id=self.next_record)
        cluster = self._with_replication(address, outcome.replication)
        return replace(cluster, next_record=self.next_record + len(outcome.records)), outcome

    def fetch(self, address: TopicPartition, follower: int, *, limit: int | None = None) -> SimulatedCluster:
        """A follower fetches once; nothing happens where it cannot, or where nobody leads."""
        if self.serving(address) is None or not self._follows(address, follower):
            return self
        epoch = self.controller.brokers[follower].epoch
        rule = self._rule(address)
        after = rep.fetched(self.replication[address], follower, rule, broker_epoch=epoch, limit=limit)
        return self._with_replication(address, after)

    def replicate(self, address: TopicPartition, followers: tuple[int, ...] | None = None) -> SimulatedCluster:
        """Followers, or all of them, fetch until they have everything and know the high watermark."""
        if self.serving(address) is None:
            return self
        asked = self.controller.partitions[address].replicas if followers is None else followers
        epochs: dict[int, int | None] = {
            broker: self.controller.brokers[broker].epoch for broker in asked if self._follows(address, broker)
        }
        return self._with_replication(address, rep.settled(self.replication[address], epochs, self._rule(address)))

    def replicated(self, followers: Mapping[TopicPartition, tuple[int, ...]]) -> SimulatedCluster:
        """Followers of many partitions fetch until they have everything.

        Whether they may is not looked at: a fenced broker fetches on while its process runs.

        Args:
            followers: for each partition whose leader's process runs, registered brokers that reach it.
        """
        changed = {}
        for address, brokers in followers.items():
            before = self.replication[address]
            epochs: dict[int, int | None] = {
                broker: self.controller.brokers[broker].epoch for broker in brokers if broker in before.logs
            }
            after = rep.settled(before, epochs, self._rule(address))
            if after is not before:
                changed[address] = after
        return self.with_replications(changed)

    def noted(self, address: TopicPartition, follower: int, broker_epoch: int | None) -> SimulatedCluster:
        """The leader remembers the broker epoch of a follower's fetch, without which it compares none (KIP-903)."""
        logs = self.replication[address]
        if logs.leadership is None:
            return self
        epochs = {one: epoch for one, epoch in logs.leadership.broker_epochs.items() if one != follower}
        epochs |= {} if broker_epoch is None else {follower: broker_epoch}
        return self._with_replication(address, replace(logs, leadership=replace(logs.leadership, broker_epochs=epochs)))

    def not_let_in(self, address: TopicPartition, follower: int) -> str | None:
        """Why the leader does not propose a follower for the ISR, whatever its log holds; None where it may.

        The leader looks at its metadata cache first: a follower that is fenced, is shutting down, or whose last fetch
        carried another broker epoch than the registration's is not proposed (KIP-841, KIP-903; Kafka's
        Partition.isReplicaIsrEligible). One of which no fetch is known is left to `replication.caught_up`.
        """
        registration, leadership = self.controller.brokers.get(follower), self.replication[address].leadership
        if registration is None:
            return "is not registered"
        if not registration.active:
            return "is fenced" if registration.fenced else "is shutting down"
        fetched = None if leadership is None else leadership.broker_epochs.get(follower)
        if fetched in {None, registration.epoch}:
            return None
        return f"last fetched with broker epoch {fetched}, and is registered with {registration.epoch}"

    def propose(
        self, address: TopicPartition, isr: tuple[int, ...], *, epochs_of_fetches: bool = True
    ) -> SimulatedCluster:
        """The leader sends AlterPartition; the request is under way until `deliver`.

        Args:
            epochs_of_fetches: whether the members' broker epochs are those of their last fetches, as KIP-903 has it;
                else those of the registrations, which it rejects.
        """
        asking = rep.proposed(self.replication[address], isr)
        if not epochs_of_fetches and asking.leadership is not None:
            # The controller compares nothing where it is told nothing: a registration's own epoch is always the latest.
            asking = replace(asking, leadership=replace(asking.leadership, proposed_epochs={}))
        return self._with_replication(address, asking)

    def deliver(self, address: TopicPartition) -> tuple[SimulatedCluster, Stepped]:
        """The proposed ISR reaches the controller, with the broker epochs that the leader learnt from fetches."""
        leadership = self.replication[address].leadership
        if leadership is None or leadership.proposed is None:
            return self, Stepped(RecoveringController(self.controller, self.manager))
        asked = events.PartitionAltered(address, leadership.leader, leadership.proposed, leadership.proposed_epochs)
        cluster, done = self.after(asked)
        running = cluster.serving(address) is not None
        withdrawn = rep.withdrawn(cluster.replication[address], cluster._rule(address), running=running)
        return cluster._with_replication(address, withdrawn), done

    def altered(self, isrs: Mapping[TopicPartition, tuple[int, ...]]) -> tuple[SimulatedCluster, Stepped]:
        """Leaders report these ISRs, and are answered: AlterPartition for many partitions at once, as leaders send it.

        The controller decides each by what was on record before the request; their records take effect together.
        """
        asking = self.with_replications(
            {address: rep.proposed(self.replication[address], isr) for address, isr in isrs.items()}
        )
        handled = altered_together(self.controller, map(asking._report, sorted(isrs)))
        if handled is None:
            cluster, answers, changes = asking, dict[TopicPartition, str](), list[Change]()
            for address in sorted(isrs):
                cluster, done = cluster.deliver(address)
                answers[address] = done.answers.get(address, done.error)
                changes += done.changes
            controller = RecoveringController(cluster.controller, cluster.manager)
            return cluster, Stepped(controller, changes=tuple(changes), answers=answers)
        # The manager looks at what is in question, at the same time of day.
        acted = RecoveringController(handled.state, self.manager).step(TimePassed(self.manager.now_ms))
        done = replace(acted, changes=(*handled.changes, *acted.changes), answers=handled.answers)
        state, manager = done.controller.state, done.controller.manager
        cluster = replace(asking, controller=state, manager=manager, asked=(*self.asked, *done.requests))
        cluster = cluster._with_changes(done.changes)
        ended = {}
        for address in isrs:
            running = cluster.serving(address) is not None
            ended[address] = rep.withdrawn(cluster.replication[address], cluster._rule(address), running=running)
        return cluster.with_replications(ended), done

    def _report(self, address: TopicPartition) -> events.PartitionAltered:
        leadership = self.replication[address].leadership
        assert leadership is not None
        assert leadership.proposed is not None
        return events.PartitionAltered(address, leadership.leader, leadership.proposed, leadership.proposed_epochs)

    def reply(self, broker: int) -> SimulatedCluster:
        """A broker answers what the manager asked it, by its logs of this moment; the answers are on their way.

        One that nobody asked, or whose process does not run, says nothing.
        """
        registration = self.controller.brokers.get(broker)
        questions = tuple(request for request in self.asked if request.broker == broker)
        if not questions or registration is None or broker in self.down:
            return self
        answers = tuple(
            LogInfoAnswered(
                broker,
                registration.epoch,
                {address: self._log_info(address, broker) for address in request.partitions if self._has(address)},
                request.id,
            )
            for request in questions
        )
        left = tuple(request for request in self.asked if request.broker != broker)
        return replace(self, asked=left, replies={**self.replies, broker: (*self.replies.get(broker, ()), *answers)})

    def arrive(self, broker: int) -> tuple[SimulatedCluster, tuple[Stepped, ...]]:
        """The answers that are on their way reach the controller, one after the other; nothing where there is none."""
        left = {other: replies for other, replies in self.replies.items() if other != broker}
        cluster, steps = replace(self, replies=left), []
        for answer in self.replies.get(broker, ()):
            cluster, done = cluster.after(answer)
            steps.append(done)
        return cluster, tuple(steps)

    def questions(self) -> tuple[tuple[LogInfoRequest, ...], SimulatedCluster]:
        """The manager's open questions, for whoever carries them over a network; they are not handed out again."""
        return self.asked, replace(self, asked=())

    def log_info(self, address: TopicPartition, broker: int) -> LogInfoEntry:
        """What a broker tells of a partition's log when it is asked by GetReplicaLogInfo."""
        return self._log_info(address, broker)

    def no_answer(self, broker: int) -> tuple[SimulatedCluster, Stepped]:
        """The manager's questions to a broker, and its answers, are lost on the way."""
        left = tuple(request for request in self.asked if request.broker != broker)
        replies = {other: reply for other, reply in self.replies.items() if other != broker}
        return replace(self, asked=left, replies=replies).after(LogInfoFailed(broker))

    def wait(self, duration_ms: int) -> tuple[SimulatedCluster, Stepped]:
        """Time passes: brokers that flush by time do so, and the Unclean Recovery Manager looks at it."""
        cluster, done = self.after(TimePassed(self.manager.now_ms + duration_ms))
        now_ms = cluster.manager.now_ms
        if self.flush_ms is None or now_ms - self.flushed_at_ms < self.flush_ms:
            return cluster, done
        for broker in sorted(cluster.controller.brokers.keys() - cluster.down):
            cluster = cluster.flushed(broker)
        return replace(cluster, flushed_at_ms=now_ms - (now_ms - self.flushed_at_ms) % self.flush_ms), done

    def stopped(self, broker: int, *, power_loss: bool = False) -> SimulatedCluster:
        """A broker's process dies; the controller notices later.

        Args:
            power_loss: the machine's page cache is lost with it, so that only flushed records remain.
        """
        cluster = replace(self._leading_no_more(broker), down=self.down | {broker}, crashed=self.crashed | {broker})
        return cluster._each_log(broker, after_power_loss) if power_loss else cluster

    def shut_down(self, broker: int) -> SimulatedCluster:
        """A broker writes everything to its disk, and its process ends cleanly.

        One with a failed log directory leaves no mark there (LogManager.shutdown writes it into live directories, and
        loadLogs has removed the one from before), so that its next registration names no previous broker epoch
        (readBrokerEpochFromCleanShutdownFiles asks all directories) and counts as unclean.
        """
        cluster = self.flushed(broker)._leading_no_more(broker)
        lost = any(broker in (state.offline_replicas or ()) for state in self.controller.partitions.values())
        crashed = self.crashed | {broker} if lost else self.crashed - {broker}
        return replace(cluster, down=self.down | {broker}, crashed=crashed)

    def flushed(self, broker: int) -> SimulatedCluster:
        """A broker writes everything to its disk."""
        return self._each_log(broker, flushed)

    def without_cache(self, broker: int) -> SimulatedCluster:
        """The machine of a broker whose process has ended loses its power: what was not flushed is gone.

        A clean shutdown has flushed everything, and stays one.
        """
        return self._each_log(broker, after_power_loss)

    def flushed_everywhere(self, addresses: Iterable[TopicPartition]) -> SimulatedCluster:
        """The machines write what they hold of these partitions to their disks, whether brokers run or not."""
        changed = {}
        for address in addresses:
            logs = self.replication[address].logs
            if any(log.flushed < log.end for log in logs.values()):
                everything = {broker: flushed(log) for broker, log in logs.items()}
                changed[address] = replace(self.replication[address], logs=everything)
        return self.with_replications(changed)

    def cut(self, address: TopicPartition, replica: int, end: int) -> SimulatedCluster:
        """A replica's log loses its records from offset `end` on."""
        return self._with_replication(address, rep.cut(self.replication[address], replica, end))

    def delete_before(self, address: TopicPartition, offset: int) -> SimulatedCluster:
        """Retention or DeleteRecords takes the leader's records before an offset."""
        return self._with_replication(address, rep.deleted_before(self.replication[address], offset))

    def tell(self, address: TopicPartition, answer: LogAnswer) -> SimulatedCluster:
        """Say by hand what is known of a replica's log."""
        answers = {**self.told.get(address, {}), answer.replica: answer}
        return replace(self, told={**self.told, address: answers})

    def as_snapshot(self) -> Snapshot:
        """The cluster as the engine reads it: logs of brokers that do not run are not heard."""
        states = tuple(partition for _, partition in sorted(self.controller.partitions.items()))
        return Snapshot(
            taken_at_ms=0,
            cluster=self._cluster(),
            partitions=states,
            configs={state.topic: self._topic_config(state.topic) for state in states},
            logs={state.address: answers for state in states if (answers := self._answers(state))},
            first_partition_replicas={state.topic: self._first_count(state) for state in states},
            source="simulation",
        )

    def _rule(self, address: TopicPartition) -> HighWatermarkRule:
        # Brokers cap min.insync.replicas by the partition's own replica count, the controller by that of partition 0.
        min_isr = self.controller.config(address.topic).min_isr or 1
        return HighWatermarkRule(min_isr, self.high_watermark_needs_min_isr)

    def _follows(self, address: TopicPartition, broker: int) -> bool:
        partition = self.controller.partitions[address]
        lost = broker in (partition.offline_replicas or ())
        return broker in partition.replicas and self.running(broker) and not lost

    def with_replications(self, changed: Mapping[TopicPartition, Replication]) -> SimulatedCluster:
        """The cluster with these partitions' logs as they are given, flushed where so many records ask for it."""
        if self.flush_messages is not None:
            changed = {address: rep.flushed_by_count(logs, self.flush_messages) for address, logs in changed.items()}
        return replace(self, replication=PartitionMap.of(self.replication).updated(changed)) if changed else self

    def _with_replication(self, address: TopicPartition, after: Replication) -> SimulatedCluster:
        return self.with_replications({address: after})

    def _has(self, address: TopicPartition) -> bool:
        return address in self.replication

    def _log_info(self, address: TopicPartition, broker: int) -> LogInfoEntry:
        """What a broker tells of a partition's log; what was told by hand counts first."""
        partition = self.controller.partitions[address]
        answer = self.told.get(address, {}).get(broker) or self._answer(partition, broker, asked_by_controller=True)
        if isinstance(answer, LogUnavailable):
            return LogInfoEntry(
                0, None, partition.leader_epoch, error=_ERRORS.get(answer.reason, "UNKNOWN_SERVER_ERROR")
            )
        known = partition.leader_epoch if answer.current_leader_epoch is None else answer.current_leader_epoch
        return LogInfoEntry(answer.log_end, answer.last_epoch, known)

    def _with_records(self, event: events.Event | RecoveryEvent, done: Stepped) -> SimulatedCluster:
        """The controller's records reach the replicas of each partition that they change."""
        cluster = self
        if isinstance(event, events.TopicCreated | events.TopicDeleted):
            known, logs = self.controller.partitions, PartitionMap.of(self.replication)
            logs = logs.without([address for address in logs if address not in known])
            cluster = replace(self, replication=logs)
            new = {}
            for address in known.keys() - logs.keys():
                fresh = Replication({replica: SimulatedLog() for replica in known[address].replicas})
                new[address] = cluster._led(fresh, known[address])
            cluster = cluster.with_replications(new)
        return cluster._with_changes(done.changes)

    def _with_changes(self, changes: Iterable[Change]) -> SimulatedCluster:
        changed: dict[TopicPartition, Replication] = {}
        for change in changes:
            address = change.after.address
            before = changed.get(address) or self.replication[address]
            changed[address] = self._led(before, change.after)
        return self.with_replications(changed)

    def _led(self, logs: Replication, partition: PartitionState) -> Replication:
        logs = rep.assigned(logs, partition.replicas, self.down | self.unaware)
        rule = self._rule(partition.address)
        running = partition.leader is not None and self.running(partition.leader)
        return rep.led(logs, partition.leader, partition.leader_epoch, partition.isr, rule, running=running)

    def _leading_no_more(self, broker: int) -> SimulatedCluster:
        after = ((address, logs, rep.stopped(logs, broker)) for address, logs in self.replication.items())
        return self.with_replications({address: logs for address, before, logs in after if logs is not before})

    def _still_asked(self, event: events.Event | RecoveryEvent) -> tuple[LogInfoRequest, ...]:
        """The manager's open questions once an event has happened: those to a process that has ended are lost."""
        gone = event.broker if isinstance(event, events.BrokerRegistered) else None
        return tuple(request for request in self.asked if request.broker != gone)

    def _without_lost_directories(self) -> SimulatedCluster:
        """What was in a failed log directory is gone."""
        emptied: dict[TopicPartition, Replication] = {}
        for address, partition in self.controller.partitions.items():
            for broker in partition.offline_replicas or ():
                if broker in partition.replicas:
                    before = emptied.get(address) or self.replication[address]
                    emptied[address] = before.with_log(broker, SimulatedLog())
        return self.with_replications(emptied)

    def _each_log(self, broker: int, change: Callable[[SimulatedLog], SimulatedLog]) -> SimulatedCluster:
        changed = {}
        for address, logs in self.replication.items():
            log = logs.logs.get(broker, logs.left_over.get(broker))
            after = None if log is None else change(log)
            if after is not None and after != log:
                changed[address] = logs.with_log(broker, after)
        return self.with_replications(changed)

    def _cluster(self) -> Cluster:
        brokers = tuple(
            Broker(broker, known.status, rack=known.rack, broker_epoch=known.epoch)
            for broker, known in sorted(self.controller.brokers.items())
        )
        features = Features(finalized={ELR_FEATURE: int(self.controller.rules.elr)})
        return Cluster(None, brokers, features, brokers_source="scenario", partitions_source="scenario")

    def _answers(self, partition: PartitionState) -> tuple[LogAnswer, ...]:
        told, logs = self.told.get(partition.address, {}), self.replication[partition.address]
        if not logs.written:
            return tuple(told.values())
        return tuple(told.get(replica) or self._answer(partition, replica) for replica in partition.replicas)

    def _answer(self, partition: PartitionState, replica: int, *, asked_by_controller: bool = False) -> LogAnswer:
        # The controller has a line to fenced brokers, too; for a client they are out of reach.
        if not (self.running(replica) or (asked_by_controller and replica not in self.down)):
            return LogUnavailable(replica, LogUnavailableReason.UNREACHABLE, "its broker does not run")
        if replica in (partition.offline_replicas or ()):
            return LogUnavailable(replica, LogUnavailableReason.STORAGE_ERROR, "its log directory failed")
        log = self.replication[partition.address].logs.get(replica)
        if log is None:
            return LogUnavailable(replica, LogUnavailableReason.NOT_A_REPLICA, "it holds no replica of this partition")
        epoch = self.controller.brokers[replica].epoch
        return log.answer(replica, leader_epoch=partition.leader_epoch, broker_epoch=epoch)

    def _first_count(self, partition: PartitionState) -> int:
        first = self.controller.partitions.get(TopicPartition(partition.topic, 0))
        return self.controller.first_partition_replicas[partition.topic] if first is None else len(first.replicas)

    def _topic_config(self, topic: str) -> TopicConfig:
        config, own = self.controller.config(topic), self.controller.topics.get(topic, Configs())
        return TopicConfig(
            config.min_isr,
            _source(own.min_isr),
            config.unclean_leader_election,
            _source(own.unclean_leader_election),
            recovery_strategy=config.recovery_strategy,
        )


_ERRORS = {
    LogUnavailableReason.STORAGE_ERROR: "KAFKA_STORAGE_ERROR",
    LogUnavailableReason.NOT_A_REPLICA: "NOT_LEADER_OR_FOLLOWER",
    LogUnavailableReason.NOT_AUTHORIZED: "CLUSTER_AUTHORIZATION_FAILED",
    LogUnavailableReason.TIMED_OUT: "REQUEST_TIMED_OUT",
}
"""Kafka's names of the errors that a broker answers where it cannot tell about a log."""


def started(
    controller: ControllerState, brokers: tuple[int, ...], *, high_watermark_needs_min_isr: bool = True
) -> SimulatedCluster:
    """A cluster with these brokers live, and nothing in it yet.

    Args:
        controller: with the rules and configs; brokers are added to it.
    """
    for broker in brokers:
        epoch = controller.next_epoch
        controller = controller.with_broker(broker, Registration(epoch, fenced=False))
        controller = replace(controller, next_epoch=epoch + 1)
    return SimulatedCluster(controller, high_watermark_needs_min_isr=high_watermark_needs_min_isr)


def _source(own: object) -> ConfigSource:
    return ConfigSource.CLUSTER_DEFAULT if own is None else ConfigSource.TOPIC
