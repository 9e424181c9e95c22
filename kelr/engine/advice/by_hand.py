"""Shell lines of public tools that do by hand what kelr advises, with places for the connection flags of each tool."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.controller.handlers import without
from kelr.engine.case import Case
from kelr.model import BrokerStatus

STOCK_CONNECTION = "{stock}"
"""Stands in a line where the connection flags of Kafka's own tools go."""
KAFKA_PYTHON_CONNECTION = "{kafka-python}"
"""Stands in a line where those of kafka-python's command line go."""


def unclean_election(case: Case) -> str:
    """The unclean election of this partition with Kafka's own tool."""
    return f"kafka-leader-election.sh {STOCK_CONNECTION} --election-type unclean {_partition(case)}"


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


def designation_by_hand(case: Case, replica: int) -> tuple[str, ...]:
    """Designating a replica without kelr: reorder, elect uncleanly, restore the order.

    kafka-reassign-partitions.sh refuses an assignment that names a dead broker ("Unknown broker id", seen on 4.0.0 and
    4.3.1) although the request itself allows it, so the reordering is done with kafka-python's command line, which is
    installed with kelr. That ends with status 0 also where Kafka refuses, so its answer is looked at: without the
    reordering the election would take the first live replica.
    """
    election = unclean_election(case)
    if not needs_reordering(case, replica):
        return (election,)
    gone = left_out(case)
    kept = tuple(other for other in case.state.replicas if other not in gone)
    reordered = _reorder(case, (replica, *without(kept, replica)))
    return (f"{reordered} | tee /dev/stderr | grep -q ': None}}' &&", election, _reorder(case, kept))


def _reorder(case: Case, replicas: Sequence[int]) -> str:
    order = ",".join(map(str, replicas))
    return f"kafka-python admin {KAFKA_PYTHON_CONNECTION} partitions alter-reassignments -r {case.name}={order}"


def find_hanging(case: Case) -> str:
    """Finds transactions of this partition that nobody will end, once they are older than any may become."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging {_partition(case)}"


def abort_transaction(case: Case, start: int) -> str:
    """Ends a transaction that hangs: the one that began at this offset."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} abort {_partition(case)} --start-offset {start}"


def _partition(case: Case) -> str:
    return f"--topic {case.state.topic} --partition {case.state.partition}"
