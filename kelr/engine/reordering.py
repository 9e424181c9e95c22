"""What a designation's reordering of the replicas has to be, and when it can be done without."""

from __future__ import annotations

from kelr.engine.case import Case
from kelr.model import BrokerStatus


def needs_reordering(case: Case, replica: int) -> bool:
    """Whether the replica has to be put first before an unclean election elects it.

    It need not be where the partition has no leader and the replica is the first live one anyway. A leader that is not
    live is in the way of an unclean election, and a reordering takes it off, even where it changes no order: it runs an
    election (ReplicationControlManager.changePartitionReassignment).
    """
    return case.state.leader is not None or case.live[:1] != (replica,)


def left_out(case: Case) -> tuple[int, ...]:
    """Replicas that no new order may name: brokers that are not registered (validateManualPartitionAssignment; the
    answer is INVALID_REPLICA_ASSIGNMENT, seen on 4.3.1). A reordering without them removes them from the assignment."""
    return tuple(
        replica for replica in case.state.replicas if case.cluster.status(replica) is BrokerStatus.UNREGISTERED
    )
