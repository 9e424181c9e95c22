"""The commands that an advice, or a damage, ends with: kelr's own, and those of Kafka's tools."""

from __future__ import annotations

from kelr.engine.case import Case
from kelr.model import BrokerStatus

STOCK_CONNECTION = "{stock}"
"""Stands in a line where the connection flags of Kafka's own tools go."""


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


def designation(case: Case, replica: int) -> tuple[str, ...]:
    """The command that designates a replica, as arguments after ``kelr``."""
    return ("elect", "--election-type", "designation", "--designate", str(replica), case.name)


def find_hanging(case: Case) -> str:
    """Finds transactions of this partition that nobody will end, once they are older than any may become."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} find-hanging {_partition(case)}"


def abort_transaction(case: Case, start: int) -> str:
    """Ends a transaction that hangs: the one that began at this offset."""
    return f"kafka-transactions.sh {STOCK_CONNECTION} abort {_partition(case)} --start-offset {start}"


def _partition(case: Case) -> str:
    return f"--topic {case.state.topic} --partition {case.state.partition}"
