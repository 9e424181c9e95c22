"""A controller with the Unclean Recovery Manager: pure, one event in, the next state and its wishes out.

`RecoveringController.step` takes every event of `kelr.controller.events` and of `kelr.controller.recovery.events`. It
answers with the requests to send, the elections that were made, and what was refused; whoever runs it (a scenario, a
test, a simulated cluster) carries the requests and brings the answers and the time.

Source: KIP-966, "Unclean recovery", "Unclean Recovery Manager", "Broker Request Sender".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller import events as ev
from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import Election
from kelr.controller.machine import handle
from kelr.controller.reach import NONE, written
from kelr.controller.recovery import events as rev
from kelr.controller.recovery.events import LogInfoRequest
from kelr.controller.recovery.manager import RecoveryManager, answered, failed
from kelr.controller.recovery.rules import Standing, recovery_of
from kelr.controller.recovery.task import (
    Manual,
    Task,
    may_elect,
    refreshed,
    round_begun,
    to_ask,
    window_begun,
)
from kelr.controller.rules import RecoveryStrategy
from kelr.controller.state import ControllerState
from kelr.model import ElectionType, PartitionState, TopicPartition

# One pass of the Unclean Recovery Manager over partitions: who is elected, who is asked, what is given up.
#
# A `Pass` is filled while it goes from partition to partition and then thrown away; what it leaves behind is frozen.

NOT_AVAILABLE = "ELIGIBLE_LEADERS_NOT_AVAILABLE"
TIMED_OUT = "REQUEST_TIMED_OUT"
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


class Pass:
    """The state and the manager's memory on their way from before an event to after it."""

    def __init__(self, state: ControllerState, manager: RecoveryManager) -> None:
        self._state = state
        self.changes: list[Change] = []
        self.answers: dict[TopicPartition, str] = {}
        self._manager = manager
        self._tasks = dict(manager.tasks)
        self._finished = manager.finished
        self._to_ask: dict[int, list[TopicPartition]] = {}

    def look_at(self, address: TopicPartition) -> None:
        """Do what is due for one partition."""
        partition, task = self._state.partitions.get(address), self._tasks.get(address)
        if partition is None:
            self._end(address, UNKNOWN)
            return
        around = self._state.around(partition)
        if task is not None:
            task = self._unless_expired(refreshed(task, partition, self._state.brokers))
        asked_for = None if task is None else task.asked_for
        heard = {} if task is None else task.heard
        recovery = recovery_of(partition, around, heard, asked_for=asked_for)
        if not recovery.standing.under_recovery:
            if asked_for is not None and partition.leader is None:
                self._elect(partition, around, None)
            self._end(address, NONE)
            return
        task = task or Task(address, partition.leader_epoch)
        live = [replica for replica in partition.replicas if replica in around.electable]
        task = window_begun(task, recovery.strategy, live, self._manager.now_ms)
        if recovery.standing is Standing.WAITS_FOR_QUORUM:
            # The KIP starts asking only when all members of LastKnownELR are unfenced.
            self._tasks[address] = replace(task, round_ms=None)
            return
        now_ms, limits = self._manager.now_ms, self._manager.limits
        ready = recovery.standing is Standing.READY
        if (
            ready
            and may_elect(task, partition, around.electable, recovery, limits=limits, now_ms=now_ms)
            and self._elect(partition, around, recovery.choice)
        ):
            self._finished += 1
            self._end(address, NONE)
            return
        self._tasks[address] = round_begun(task, now_ms, limits)
        for replica in to_ask(self._tasks[address], partition, self._state.brokers, now_ms):
            self._to_ask.setdefault(replica, []).append(address)

    @property
    def state(self) -> ControllerState:
        """The state with the elections that were made."""
        return written(self._state, self.changes)

    def done(self) -> tuple[RecoveryManager, tuple[LogInfoRequest, ...]]:
        """The manager's memory once its requests are sent, and the requests: by broker, none above the limit."""
        most = self._manager.limits.partitions_per_request
        requests: list[LogInfoRequest] = []
        for broker, addresses in sorted(self._to_ask.items()):
            epoch = self._state.brokers[broker].epoch
            for start in range(0, len(addresses), most):
                number = self._manager.next_request + len(requests)
                request = LogInfoRequest(number, broker, tuple(sorted(addresses))[start : start + most])
                requests.append(request)
                for address in request.partitions:
                    self._tasks[address] = self._tasks[address].asked(broker, epoch, number)
        number = self._manager.next_request + len(requests)
        memory = replace(self._manager, tasks=self._tasks, finished=self._finished, next_request=number)
        return memory, tuple(requests)

    def _elect(self, partition: PartitionState, around: Circumstances, choice: int | None) -> bool:
        """Elect the manager's choice, or without one whoever may lead cleanly; whether there is a leader then."""
        change = change_partition(partition, around, election=Election.ONLINE, recovered=choice)
        if change.after.leader is None:
            return False
        self.changes.append(change)
        return True

    def _unless_expired(self, task: Task) -> Task:
        """The task without operators' requests that have waited for their time; the last one's end answers all."""
        waiting = tuple(one for one in task.manual if self._manager.now_ms < one.until_ms)
        if task.manual and not waiting:
            self.answers[task.address] = TIMED_OUT
        return replace(task, manual=waiting) if waiting != task.manual else task

    def _end(self, address: TopicPartition, error: str) -> None:
        """No recovery any more; operators who asked for it, if any did, get this answer."""
        task = self._tasks.pop(address, None)
        if task is not None and task.manual and address not in self.answers:
            self.answers[address] = error


# The gauges and the counter that KIP-966 adds ("Metrics"), from the controller's records and the manager's memory.


@dataclass(frozen=True, slots=True)
class RecoveryMetrics:
    """KIP-966's names; all are numbers of partitions but for the second and the last."""

    global_under_min_isr_partition_count: int
    """Partitions with fewer ISR members than min ISR, with or without a leader."""
    electable_replicas_count: int
    """The sum of ISR and ELR members over all partitions ("Electable leaders")."""
    unclean_recovery_partitions_count: int
    """Under recovery, also those that wait for members of LastKnownELR to be unfenced."""
    manual_leader_election_required_partition_count: int
    """Without a leader until an operator chooses one: strategy none, with ISR and ELR empty."""
    unclean_recovery_finished_count: int
    """Recoveries that elected a leader since this controller took over."""


def recovery_metrics(state: ControllerState, manager: RecoveryManager) -> RecoveryMetrics:
    """The metrics at this moment."""
    partitions = state.partitions.values()
    return RecoveryMetrics(
        global_under_min_isr_partition_count=sum(len(one.isr) < state.leader_min_isr(one) for one in partitions),
        electable_replicas_count=sum(map(electable_replicas_count, partitions)),
        unclean_recovery_partitions_count=len(manager.tasks),
        manual_leader_election_required_partition_count=sum(
            _needs_an_operator(one, state) for one in partitions if one.address not in manager.tasks
        ),
        unclean_recovery_finished_count=manager.finished,
    )


def electable_replicas_count(partition: PartitionState) -> int:
    """How many replicas may be elected cleanly: ISR and ELR together, live or not."""
    return len(partition.isr) + len(partition.elr or ())


def _needs_an_operator(partition: PartitionState, state: ControllerState) -> bool:
    if partition.leader is not None:
        return False
    return recovery_of(partition, state.around(partition), {}).standing is Standing.WAITS_FOR_OPERATOR


NOT_NEEDED = "ELECTION_NOT_NEEDED"

_STRATEGIES = {
    ElectionType.LONGEST_LOG_BALANCED: RecoveryStrategy.BALANCED,
    ElectionType.LONGEST_LOG_AGGRESSIVE: RecoveryStrategy.AGGRESSIVE,
}


@dataclass(frozen=True, slots=True)
class Stepped:
    """What an event made of a controller, and what the controller wants done."""

    controller: RecoveringController
    requests: tuple[rev.LogInfoRequest, ...] = ()
    """To send now, by broker id."""
    changes: tuple[Change, ...] = ()
    """The runs on partitions that wrote a record, in order; recoveries are elected by `UNCLEAN_RECOVERY`."""
    refused: tuple[rev.Refused, ...] = ()
    """Answers, or parts of them, that were not used."""
    error: str = NONE
    """Kafka's name of the error that refused the whole event."""
    answers: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Kafka's name of each error, for requests that answer by partition. A recovery that an operator asked for is
    answered by the step that ends it; where several asked for the same partition, one answer is for them all."""


@dataclass(frozen=True, slots=True)
class RecoveringController:
    """The controller's records, and its Unclean Recovery Manager."""

    state: ControllerState
    manager: RecoveryManager = field(default_factory=RecoveryManager)

    def step(self, event: ev.Event | rev.RecoveryEvent) -> Stepped:
        """Let one event happen, and let the manager act on what it brought."""
        match event:
            case rev.LogInfoAnswered():
                heard = answered(self.manager, self.state, event)
                return replace(_act(self.state, heard.manager, heard.touched), refused=heard.refused)
            case rev.LogInfoFailed():
                heard = failed(self.manager, event)
                return _act(self.state, heard.manager, heard.touched)
            case rev.TimePassed():
                later = replace(self.manager, now_ms=max(self.manager.now_ms, event.now_ms))
                # The KIP starts a recovery again, should one be missing, when the controller handles heartbeats.
                return _act(self.state, later, _in_question(self.state, later))
            case rev.ControllerFailedOver():
                return self._failed_over()
            case rev.ManualRecovery():
                return self._asked_by_hand(event)
            case ev.LeadersElected(election=Election.UNCLEAN) if self.state.rules.recovers:
                return self._asked_by_hand(self._in_new_words(event))
        return self._happened(event)

    def _happened(self, event: ev.Event) -> Stepped:
        """An event of the cluster: the manager looks at every partition that has no leader, or a task."""
        handled = handle(self.state, event)
        manager = self.manager.with_timeout(handled.state.recovery_timeout_ms)
        acted = _act(handled.state, manager, _in_question(handled.state, manager))
        return replace(
            acted,
            changes=(*handled.changes, *acted.changes),
            error=handled.error,
            answers={**handled.answers, **acted.answers},
        )

    def _failed_over(self) -> Stepped:
        """Every recovery starts afresh; operators who wait for one have to ask the new controller."""
        lost = {address: "NOT_CONTROLLER" for address, task in self.manager.tasks.items() if task.manual}
        manager = self.manager.failed_over()
        return replace(_act(self.state, manager, _in_question(self.state, manager)), answers=lost)

    def _in_new_words(self, event: ev.LeadersElected) -> rev.ManualRecovery:
        """ElectLeaders UNCLEAN of older versions: KIP-966 replaces the unclean election by the unclean recovery."""
        addresses = event.partitions
        if addresses is None:
            addresses = tuple(a for a, partition in self.state.partitions.items() if partition.leader is None)
        return rev.ManualRecovery(ElectionType.LONGEST_LOG_AGGRESSIVE, dict.fromkeys(addresses))

    def _asked_by_hand(self, event: rev.ManualRecovery) -> Stepped:
        if not self.state.rules.recovers:
            return Stepped(self, error="UNSUPPORTED_VERSION")
        if event.election is ElectionType.DESIGNATION:
            return self._designated(event)
        strategy = _STRATEGIES.get(event.election)
        if strategy is None:
            return Stepped(self, error="INVALID_REQUEST")
        manager, answers = self.manager, {}
        for address in sorted(event.partitions):
            error = self._not_asked(address)
            if error is not None:
                answers[address] = error
                continue
            epoch = self.state.partitions[address].leader_epoch
            task = manager.tasks.get(address) or Task(address, epoch)
            manual = Manual(strategy, manager.now_ms + event.timeout_ms)
            manager = manager.with_task(replace(task, manual=(*task.manual, manual)))
        acted = _act(self.state, manager, sorted(set(event.partitions) - set(answers)))
        return replace(acted, answers={**answers, **acted.answers})

    def _not_asked(self, address: TopicPartition) -> str | None:
        """Why an operator's request is answered at once; only partitions without leader are recovered."""
        partition = self.state.partitions.get(address)
        if partition is None:
            return UNKNOWN
        return None if partition.leader is None else NOT_NEEDED

    def _designated(self, event: rev.ManualRecovery) -> Stepped:
        """Elect exactly the replica that is asked for, or nobody."""
        state, changes, answers = self.state, [], {}
        for address, desired in sorted(event.partitions.items()):
            answers[address] = self._not_asked(address) or NONE
            if answers[address] != NONE:
                continue
            partition = state.partitions[address]
            change = change_partition(partition, state.around(partition), election=Election.ONLINE, recovered=desired)
            if desired is None or change.after.leader != desired:
                answers[address] = NOT_AVAILABLE
                continue
            changes.append(change)
        acted = _act(written(state, changes), self.manager, sorted(answers))
        return replace(acted, changes=(*changes, *acted.changes), answers={**acted.answers, **answers})


def _in_question(state: ControllerState, manager: RecoveryManager) -> list[TopicPartition]:
    """The partitions that are without a leader, or under recovery; sorted."""
    leaderless = {address for address, partition in state.partitions.items() if partition.leader is None}
    return sorted(leaderless | set(manager.tasks))


def _act(state: ControllerState, manager: RecoveryManager, addresses: Iterable[TopicPartition]) -> Stepped:
    """Let the manager look at these partitions: elect, ask, give up."""
    acting = Pass(state, manager)
    for address in addresses:
        acting.look_at(address)
    memory, requests = acting.done()
    return Stepped(
        RecoveringController(acting.state, memory), requests, changes=tuple(acting.changes), answers=acting.answers
    )
