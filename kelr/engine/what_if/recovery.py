"""Unclean recovery in imagined histories, by the rules of the whole of KIP-966.

The known logs are the answers that the Unclean Recovery Manager gets. A broker that has come back since they were read
is asked when it is there; as long as nobody can tell what it will say, nobody is elected, unless it is alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kelr.controller import (
    Change,
    ControllerState,
    Election,
    RecoveryStrategy,
    Standing,
    best_log,
    change_partition,
    recovery_of,
)
from kelr.engine.case import case_of
from kelr.engine.recovery.prediction import heard_logs
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.engine.words import joined
from kelr.model import PartitionState, Snapshot, TopicPartition


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery makes of the partitions that nobody leads."""

    changes: tuple[Change, ...] = ()
    """The elections, in address order."""
    outlook: Mapping[TopicPartition, str] = field(default_factory=dict)
    """Where somebody will be elected by logs that are not known: who comes into question."""


def recoveries(
    state: ControllerState, snapshot: Snapshot, assumption: Assumption, returned: Collection[int]
) -> Recovered:
    """What recovery does once an assumption has happened.

    Args:
        snapshot: with the logs and configs as they are by then.
        returned: brokers that came back after the logs were read.
    """
    if not state.rules.recovers:
        return Recovered()
    changes, outlook = [], {}
    for address, partition in sorted(state.partitions.items()):
        if partition.leader is not None:
            continue
        choices = _choices(state, partition, snapshot, assumption, returned)
        change = _elected(state, partition, choices.sure)
        if change is not None:
            changes.append(change)
        elif choices.possible:
            outlook[address] = _outlook(choices.possible)
    return Recovered(tuple(changes), outlook)


def _elected(state: ControllerState, partition: PartitionState, choice: int | None) -> Change | None:
    if choice is None:
        return None
    change = change_partition(partition, state.around(partition), election=Election.ONLINE, recovered=choice)
    return change if change.after.leader == choice else None


def _outlook(possible: tuple[int, ...]) -> str:
    if len(possible) == 1:
        return f"broker {possible[0]} is elected once its log is known"
    return f"one of {joined(possible)} is elected; which cannot be told"


@dataclass(frozen=True, slots=True)
class _Choices:
    sure: int | None = None
    """Who is elected by the logs that are known."""
    possible: tuple[int, ...] = ()
    """Else: of whom the one with the best log is elected, in assignment order."""


def _choices(
    state: ControllerState,
    partition: PartitionState,
    snapshot: Snapshot,
    assumption: Assumption,
    returned: Collection[int],
) -> _Choices:
    if assumption.happening is Happening.DESIGNATION:
        return _Choices(assumption.broker if assumption.broker in partition.replicas else None)
    around = state.around(partition)
    heard = heard_logs(case_of(snapshot, partition, around.rules))
    # KIP-966: the unclean election of older requests is replaced by the unclean recovery.
    by_hand = RecoveryStrategy.AGGRESSIVE if assumption.happening is Happening.UNCLEAN_ELECTION else None
    recovery = recovery_of(partition, around, heard, asked_for=by_hand)
    live = [replica for replica in partition.replicas if replica in around.electable]
    if recovery.standing not in {Standing.WAITS_FOR_LOGS, Standing.READY}:
        return _Choices()
    if len(live) == 1 and live[0] in returned:
        return _Choices(live[0])
    silent = any(replica not in heard for replica in live)
    if recovery.choice is not None and not silent:
        return _Choices(recovery.choice)
    best = best_log(live, heard)
    return _Choices(possible=tuple(replica for replica in live if replica == best or replica not in heard))
