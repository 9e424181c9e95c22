"""What a designation's reordering of the replicas has to be, and when it can be done without."""

from __future__ import annotations

from collections.abc import Sequence

from kelr.engine.case import Case
from kelr.engine.words import agree, brokers, joined
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


def cordoned(case: Case) -> tuple[int, ...]:
    """Replicas that stand in the way of every reordering, since their brokers are known to be cordoned (KIP-1066).

    Kafka 4.4 takes no order that names one, also where nothing but the order changes, and also of a broker that is down
    and was cordoned before (validateManualPartitionAssignment, seen on 4.4.0). To leave one out would have Kafka remove
    the replica from the assignment, with its data, as soon as all others are in sync.
    """
    return tuple(replica for replica in case.state.replicas if case.cluster.refuses_to_order(replica))


def kept_cordoned(case: Case) -> tuple[int, ...]:
    """Those of them whose cordon nobody can take off: the controller learns of it by heartbeats of a running broker.

    Which ones run is told by `Case.electable`, also where a return or a stop is imagined; one with a failed directory
    runs, too.
    """
    failed = {one for one in case.state.offline_replicas or () if case.cluster.status(one) is BrokerStatus.LIVE}
    return tuple(replica for replica in cordoned(case) if replica not in case.electable | failed)


def cordoned_in_words(case: Case, which: Sequence[int]) -> str:
    """Why Kafka takes no order that names these, as half a sentence."""
    are, its = agree(len(which), "it is", "they are"), agree(len(which), "its", "their")
    why = joined(dict.fromkeys(str(case.cluster.status(one)) for one in which))
    return (
        f"Kafka takes no order of the replicas that names {brokers(which)}: all {its} log directories are cordoned, and"
        f" that cannot be changed while {are} {why}"
    )
