"""What the Unclean Recovery Manager knows, and what it makes of answers: verified, rejected, failed.

Source: KIP-966, "Unclean Recovery Manager" (verification of GetReplicaLogInfo), "Broker Request Sender".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from kelr.controller.reach import NONE
from kelr.controller.recovery import events as rev
from kelr.controller.recovery.rules import LogInfo
from kelr.controller.recovery.task import DEFAULT_TIMEOUT_MS, RecoveryLimits, Task
from kelr.controller.state import ControllerState
from kelr.model import TopicPartition

LIMIT_REACHED = "REQUEST_LIMIT_REACHED"
"""The broker answers for fewer partitions at once than it was asked for."""


@dataclass(frozen=True, slots=True)
class RecoveryManager:
    """The manager's memory: nothing of it is in the metadata log, so a new controller starts with an empty one."""

    limits: RecoveryLimits = field(default_factory=RecoveryLimits)
    now_ms: int = 0
    tasks: Mapping[TopicPartition, Task] = field(default_factory=dict)
    """The partitions under recovery; also those whose quorum is not live, for which balanced waits."""
    finished: int = 0
    """How many recoveries have elected a leader since this controller took over (unclean_recovery_finished_count)."""
    next_request: int = 1
    """The number of the next request."""

    def failed_over(self) -> RecoveryManager:
        """The memory of the controller that takes over: the time, and that old requests are not its own."""
        return RecoveryManager(self.limits, self.now_ms, next_request=self.next_request)

    def with_timeout(self, timeout_ms: int | None) -> RecoveryManager:
        """The manager with this unclean.recovery.timeout.ms in force; None is the KIP's default of 5 minutes."""
        wanted = DEFAULT_TIMEOUT_MS if timeout_ms is None else timeout_ms
        return (
            self if self.limits.timeout_ms == wanted else replace(self, limits=replace(self.limits, timeout_ms=wanted))
        )

    def with_task(self, task: Task) -> RecoveryManager:
        return replace(self, tasks={**self.tasks, task.address: task})


@dataclass(frozen=True, slots=True)
class Heard:
    """The manager after an answer, or after the news that none will come."""

    manager: RecoveryManager
    touched: tuple[TopicPartition, ...] = ()
    """Partitions whose tasks have changed, sorted."""
    refused: tuple[rev.Refused, ...] = ()


def answered(manager: RecoveryManager, state: ControllerState, event: rev.LogInfoAnswered) -> Heard:
    """Verify an answer, partition by partition, and keep what is right; the rest is asked for again.

    An answer that is right is used even after the news that none would come: it comes from the registered incarnation,
    and the log of a replica does not change within a leader epoch that has no leader. It must answer the last request,
    though: the directory may have failed since an older one, or the topic may be another of the same name.
    """
    tasks, refused = dict(manager.tasks), []
    for address, entry in sorted(event.entries.items()):
        refusal = _refusal(manager, state, event, address, entry)
        task = tasks.get(address)
        if refusal is not None:
            refused.append(refusal)
            if task is not None:
                tasks[address] = _again(manager, task, event.broker, event.request, refusal)
        elif task is not None and event.broker not in task.heard:
            tasks[address] = task.heard_from(event.broker, event.broker_epoch, entry.log)
    for address in _owed(manager, event.broker, event.request) if event.request is not None else ():
        if address not in event.entries:
            tasks[address] = tasks[address].asked_again(event.broker, manager.now_ms)
    touched = tuple(address for address, task in sorted(tasks.items()) if task is not manager.tasks[address])
    return Heard(replace(manager, tasks=tasks), touched, tuple(refused))


def failed(manager: RecoveryManager, event: rev.LogInfoFailed) -> Heard:
    """No answer will come: the replicas are asked again in the next round."""
    touched = tuple(_owed(manager, event.broker, event.request))
    again = manager.now_ms + manager.limits.retry_ms
    tasks = {address: manager.tasks[address].asked_again(event.broker, again, failed=True) for address in touched}
    return Heard(replace(manager, tasks={**manager.tasks, **tasks}), touched)


def _owed(manager: RecoveryManager, broker: int, request: int | None) -> Iterator[TopicPartition]:
    """The partitions for which a broker owes an answer to this request, or to any; sorted."""
    for address, task in sorted(manager.tasks.items()):
        inquiry = task.inquiries.get(broker)
        if inquiry is not None and inquiry.outstanding and request in {None, inquiry.request}:
            yield address


def _refusal(
    manager: RecoveryManager,
    state: ControllerState,
    event: rev.LogInfoAnswered,
    address: TopicPartition,
    entry: rev.LogInfoEntry,
) -> rev.Refused | None:
    """Why this part of an answer cannot be used; None where it can."""
    task, registration = manager.tasks.get(address), state.brokers.get(event.broker)

    def refused(reason: rev.Refusal, detail: str = "") -> rev.Refused:
        return rev.Refused(event.broker, address, reason, detail)

    if task is None:
        return refused(rev.Refusal.NO_TASK)
    if event.broker not in state.partitions[address].replicas:
        return refused(rev.Refusal.NOT_A_REPLICA)
    if registration is None or registration.epoch != event.broker_epoch:
        known = "not registered" if registration is None else f"registered with {registration.epoch}"
        return refused(rev.Refusal.BROKER_EPOCH, f"answered with broker epoch {event.broker_epoch}, {known}")
    inquiry = task.inquiries.get(event.broker)
    last = None if inquiry is None else inquiry.request
    if event.request is not None and event.request != last:
        detail = f"answered request {event.request}, the last is {'none' if last is None else last}"
        return refused(rev.Refusal.OLD_REQUEST, detail)
    if entry.error != NONE:
        return refused(rev.Refusal.ERROR, entry.error)
    if entry.current_leader_epoch != task.leader_epoch:
        detail = f"answered with leader epoch {entry.current_leader_epoch}, the partition's is {task.leader_epoch}"
        return refused(rev.Refusal.LEADER_EPOCH, detail)
    told = task.heard.get(event.broker)
    if told is not None and told != entry.log:
        return refused(rev.Refusal.CONTRADICTS, f"answered {_told(entry.log)}, had answered {_told(told)}")
    return None


def _told(log: LogInfo) -> str:
    return f"log end {log.log_end}, last epoch {'none' if log.last_epoch is None else log.last_epoch}"


def _again(manager: RecoveryManager, task: Task, broker: int, request: int | None, refusal: rev.Refused) -> Task:
    """The task after a refused answer, asked for again where that answer is the one that is owed."""
    inquiry = task.inquiries.get(broker)
    if inquiry is None or request not in {None, inquiry.request}:
        return task
    if refusal.detail == LIMIT_REACHED:
        return task.asked_again(broker, manager.now_ms)
    told = refusal.reason is rev.Refusal.ERROR
    return task.asked_again(broker, manager.now_ms + manager.limits.retry_ms, failed=told)
