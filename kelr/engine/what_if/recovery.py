"""Unclean recovery in imagined histories, by the rules of the whole of KIP-966.

The known logs are the answers that the Unclean Recovery Manager gets. A broker that has come back since they were read
is asked when it is there; as long as nobody can tell what it will say, nobody is elected, unless it is alone.
"""

from __future__ import annotations

from collections.abc import Collection

from kelr.controller import Change, ControllerState, Election, RecoveryStrategy, Standing, change_partition, recovery_of
from kelr.engine.case import case_of
from kelr.engine.recovery.prediction import heard_logs
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.model import PartitionState, Snapshot


def recoveries(
    state: ControllerState, snapshot: Snapshot, assumption: Assumption, returned: Collection[int]
) -> tuple[Change, ...]:
    """The elections that recovery makes once an assumption has happened, in address order.

    Args:
        snapshot: with the logs and configs as they are by then.
        returned: brokers that came back after the logs were read.
    """
    if not state.rules.kip966:
        return ()
    leaderless = (partition for _, partition in sorted(state.partitions.items()) if partition.leader is None)
    changes = (_recovery(state, partition, snapshot, assumption, returned) for partition in leaderless)
    return tuple(change for change in changes if change is not None and change.after.leader is not None)


def _recovery(
    state: ControllerState,
    partition: PartitionState,
    snapshot: Snapshot,
    assumption: Assumption,
    returned: Collection[int],
) -> Change | None:
    around = state.around(partition)
    if assumption.happening is Happening.DESIGNATION:
        choice = assumption.broker if assumption.broker in partition.replicas else None
    else:
        choice = _choice(state, partition, snapshot, assumption, returned)
    if choice is None:
        return None
    change = change_partition(partition, around, election=Election.ONLINE, recovered=choice)
    return change if change.after.leader == choice else None


def _choice(
    state: ControllerState,
    partition: PartitionState,
    snapshot: Snapshot,
    assumption: Assumption,
    returned: Collection[int],
) -> int | None:
    around = state.around(partition)
    heard = heard_logs(case_of(snapshot, partition, around.rules))
    # KIP-966: the unclean election of older requests is replaced by the unclean recovery.
    by_hand = RecoveryStrategy.AGGRESSIVE if assumption.happening is Happening.UNCLEAN_ELECTION else None
    recovery = recovery_of(partition, around, heard, asked_for=by_hand)
    live = [replica for replica in partition.replicas if replica in around.electable]
    asking = recovery.standing in {Standing.WAITS_FOR_LOGS, Standing.READY}
    if asking and len(live) == 1 and live[0] in returned:
        return live[0]
    silent = any(replica in returned and replica not in heard for replica in live)
    return None if silent else recovery.choice
