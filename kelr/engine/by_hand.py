"""Shell lines of public tools that do by hand what kelr advises, with places for the connection flags of each tool."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.controller.handlers import without
from kelr.engine.case import Case

STOCK_CONNECTION = "{stock}"
"""Stands in a line where the connection flags of Kafka's own tools go."""
KAFKA_PYTHON_CONNECTION = "{kafka-python}"
"""Stands in a line where those of kafka-python's command line go."""


def unclean_election(case: Case) -> str:
    """The unclean election of this partition with Kafka's own tool."""
    return f"kafka-leader-election.sh {STOCK_CONNECTION} --election-type unclean {_partition(case)}"


def designation_by_hand(case: Case, replica: int) -> tuple[str, ...]:
    """Designating a replica without kelr: reorder, elect uncleanly, restore the order.

    Where the partition has no leader and the replica is the first live one anyway, an unclean election alone elects it.
    A leader that is not live has to be taken off by the reordering, which runs an election even where it changes no
    order (ReplicationControlManager.changePartitionReassignment). kafka-reassign-partitions.sh refuses an assignment
    that names a dead broker ("Unknown broker id", seen on 4.0.0 and 4.3.1) although the request itself allows it, so
    the reordering is done with kafka-python's command line, which is installed with kelr.
    """
    state, election = case.state, unclean_election(case)
    if state.leader is None and case.live[:1] == (replica,):
        return (election,)
    # Without the reordering the election would take the first live replica: it must not run when that failed.
    reordered = _reorder(case, (replica, *without(state.replicas, replica)))
    return (f"{reordered} &&", election, _reorder(case, state.replicas))


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
