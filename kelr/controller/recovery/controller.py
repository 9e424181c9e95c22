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
from kelr.controller.change import Change, change_partition
from kelr.controller.election import Election
from kelr.controller.machine import handle
from kelr.controller.reach import NONE, written
from kelr.controller.recovery import events as rev
from kelr.controller.recovery.manager import RecoveryManager, answered, failed
from kelr.controller.recovery.one_pass import NOT_AVAILABLE, UNKNOWN, Pass
from kelr.controller.recovery.task import Manual, Task
from kelr.controller.rules import RecoveryStrategy
from kelr.controller.state import ControllerState
from kelr.model import ElectionType, TopicPartition

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
