"""The gauges and the counter that KIP-966 adds ("Metrics"), from the controller's records and the manager's memory."""

from __future__ import annotations

from dataclasses import dataclass

from kelr.controller.recovery.manager import RecoveryManager
from kelr.controller.recovery.rules import Standing, recovery_of
from kelr.controller.state import ControllerState
from kelr.model import PartitionState


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
        global_under_min_isr_partition_count=sum(len(one.isr) < state.min_isr(one.topic) for one in partitions),
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
