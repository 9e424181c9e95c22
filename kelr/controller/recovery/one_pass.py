"""One pass of the Unclean Recovery Manager over partitions: who is elected, who is asked, what is given up.

A `Pass` is filled while it goes from partition to partition and then thrown away; what it leaves behind is frozen.
"""

from __future__ import annotations

from dataclasses import replace

from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import Election
from kelr.controller.reach import NONE, written
from kelr.controller.recovery.events import LogInfoRequest
from kelr.controller.recovery.manager import RecoveryManager
from kelr.controller.recovery.rules import Standing, recovery_of
from kelr.controller.recovery.task import Task, may_elect, refreshed, round_begun, to_ask, window_begun
from kelr.controller.state import ControllerState
from kelr.model import PartitionState, TopicPartition

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
