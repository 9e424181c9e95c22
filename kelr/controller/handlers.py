"""Events that reach a partition, each as a function from state to `Change`.

Source: ReplicationControlManager of Apache Kafka; the table of events in `docs/election-rules.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kelr.controller.change import Change, Circumstances, change_partition
from kelr.controller.election import Election
from kelr.model import PartitionState


def without(replicas: tuple[int, ...], broker: int) -> tuple[int, ...]:
    return tuple(replica for replica in replicas if replica != broker)


def _unchanged(state: PartitionState, around: Circumstances) -> Change:
    """No run reaches this partition; the ballot says what one would have looked at."""
    change = change_partition(state, around, election=around.normal_election)
    return Change(change.before, state, change.elected, change.ballot)


def broker_fenced(state: PartitionState, broker: int, around: Circumstances) -> Change:
    """A broker's session expired, or it went into controlled shutdown (handleBrokerFenced)."""
    around = replace(around, electable=around.electable - {broker})
    if broker not in state.isr:
        return _unchanged(state, around)
    return change_partition(state, around, election=around.normal_election, target_isr=without(state.isr, broker))


def broker_registered(state: PartitionState, broker: int, around: Circumstances, *, clean: bool) -> Change:
    """A broker registers again, still fenced (handleBrokerShutdown).

    Args:
        clean: its registration carried the broker epoch of its last one, so its shutdown was clean (KIP-966,
            "Detection of an unclean shutdown").
    """
    if clean or not around.rules.elr:
        return broker_fenced(state, broker, around)
    around = replace(around, electable=around.electable - {broker})
    if broker not in state.isr and broker not in (state.elr or ()):
        return _unchanged(state, around)
    return change_partition(
        state,
        around,
        election=around.normal_election,
        target_isr=without(state.isr, broker),
        unclean_shutdown=frozenset({broker}),
    )


def broker_unregistered(state: PartitionState, broker: int, around: Circumstances) -> Change:
    """An operator removed a broker's registration; the ELR keeps it (handleBrokerUnregistered)."""
    around = replace(around, electable=around.electable - {broker})
    if broker not in state.isr and broker not in (state.elr or ()):
        return _unchanged(state, around)
    return change_partition(state, around, election=around.normal_election, target_isr=without(state.isr, broker))


def directory_failed(state: PartitionState, broker: int, around: Circumstances) -> Change:
    """The log directory of a live broker failed that holds this partition's replica (handleDirectoriesOffline)."""
    around = replace(around, electable=around.electable - {broker})
    return change_partition(state, around, election=around.normal_election, target_isr=without(state.isr, broker))


def broker_unfenced(state: PartitionState, broker: int, around: Circumstances) -> Change:
    """A registered broker has caught up with the metadata and may lead (handleBrokerUnfenced)."""
    around = replace(around, electable=around.electable | {broker})
    if state.leader is not None:
        return _unchanged(state, around)
    return change_partition(state, around, election=around.normal_election)


def broker_returns(state: PartitionState, broker: int, around: Circumstances, *, clean: bool) -> Change:
    """An absent broker starts: it registers, then it is unfenced. The election is that of the last run that wrote."""
    registered = broker_registered(state, broker, around, clean=clean)
    unfenced = broker_unfenced(registered.after, broker, around)
    deciding = registered if registered.written and not unfenced.written else unfenced
    return Change(state, unfenced.after, deciding.elected, deciding.ballot)


def isr_altered(
    state: PartitionState, isr: tuple[int, ...], around: Circumstances, *, recovering: bool = False
) -> Change:
    """The leader reports a changed ISR, and that it has recovered from an unclean election (alterPartition).

    Its validation is not repeated here: a leader asks only for live members that have caught up.
    """
    return change_partition(
        state, around, election=around.normal_election, target_isr=isr, target_recovering=recovering
    )


def min_isr_written(state: PartitionState, around: Circumstances) -> PartitionState:
    """Another min.insync.replicas was written for the topic, or for all: with ELR on, that clears ELR and LastKnownElr
    (ConfigurationControlManager.createClearElrRecordsAsNeeded, ReplicationControlManager.removeTopicElrs).

    No election runs, so a partition that waited for one of these replicas waits for it no longer. KIP-966 clears only
    where min ISR is met afterwards.

    Args:
        around: with the min ISR that now holds.
    """
    if not around.rules.elr or not (state.elr or state.last_known_elr):
        return state
    if around.rules.kip966 and len(state.isr) < around.min_isr:
        return state
    epoch = None if state.partition_epoch is None else state.partition_epoch + 1
    return replace(state, elr=(), last_known_elr=(), partition_epoch=epoch)


@dataclass(frozen=True, slots=True)
class ElectLeadersAnswer:
    """What ElectLeaders answers for one partition, and what it changed."""

    error: str
    """Kafka's name of the error; ``NONE`` means that a record was written, not that the wanted replica leads."""
    change: Change


def elect_leaders(state: PartitionState, election: Election, around: Circumstances) -> ElectLeadersAnswer:
    """An ElectLeaders request of type PREFERRED or UNCLEAN (ReplicationControlManager.electLeader)."""
    not_needed = (
        state.leader is not None and state.leader == state.replicas[0]
        if election is Election.PREFERRED
        else state.leader is not None
    )
    change = change_partition(state, around, election=election)
    if not_needed:
        return ElectLeadersAnswer("ELECTION_NOT_NEEDED", Change(change.before, state, change.elected, change.ballot))
    if change.written:
        return ElectLeadersAnswer("NONE", change)
    preferred = election is Election.PREFERRED
    error = "PREFERRED_LEADER_NOT_AVAILABLE" if preferred else "ELIGIBLE_LEADERS_NOT_AVAILABLE"
    return ElectLeadersAnswer(error, change)


def replicas_reordered(state: PartitionState, first: int, around: Circumstances) -> Change:
    """AlterPartitionReassignments with the same replicas and `first` put first: completes at once, always ONLINE."""
    return replicas_in_order(state, (first, *without(state.replicas, first)), around)


def replicas_in_order(state: PartitionState, order: tuple[int, ...], around: Circumstances) -> Change:
    """AlterPartitionReassignments with the same replicas in another order (changePartitionReassignment).

    A reassignment that is under way stays so: Kafka sets adding and removing replicas only where there are new ones.
    """
    return change_partition(state, around, election=Election.ONLINE, target_replicas=order)
