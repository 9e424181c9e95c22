"""Explaining never disagrees with doing: what a decision says will happen is what the controller then does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given

from kelr.controller import ControllerState, Election, Registration, handle, history
from kelr.controller import events as ev
from kelr.controller.election import NO_LEADER
from kelr.engine import decide
from kelr.model import Decision, ElectionType, PartitionState, Snapshot
from kelr.simulation import Replication, SimulatedCluster
from tests.controller.histories import RELEASED, History, histories
from tests.controller.test_histories import described
from tests.properties import examples

BYSTANDER = 99
"""A broker without replicas: when it comes, the controller looks at every partition without leader."""


def snapshot_of(state: ControllerState) -> Snapshot:
    """What kelr would read of the cluster; nothing is known of the logs."""
    return SimulatedCluster(state, replication=dict.fromkeys(state.partitions, Replication({}))).as_snapshot()


def decisions(history: History) -> Iterator[tuple[ControllerState, PartitionState, Decision]]:
    """A decision about each partition at the end of a history.

    Not where ELR or LastKnownELR names a broker that is no replica any more: Kafka's controller fails when it tries to
    elect that one (`docs/invariants.md`).
    """
    snapshot = snapshot_of(history.end)
    for state in snapshot.partitions:
        if {*(state.elr or ()), *(state.last_known_elr or ())} <= {*state.replicas, NO_LEADER}:
            yield history.end, state, decide(snapshot, state, history.end.rules)


def doing(state: ControllerState, partition: PartitionState, *events: ev.Event) -> PartitionState:
    """The partition once these events have happened."""
    *_, last = history(state, events)
    return last.state.partitions[partition.address]


@examples(150)
@given(histories(RELEASED))
def test_who_is_elected_by_itself(past: History) -> None:
    for state, partition, decided in decisions(past):
        if partition.leader is not None:
            continue
        waiting = state.with_broker(BYSTANDER, Registration(state.next_epoch))
        assert doing(waiting, partition, ev.BrokerUnfenced(BYSTANDER)).leader == decided.elected, described(past)


@examples(150)
@given(histories(RELEASED))
def test_what_happens_when_a_broker_returns(past: History) -> None:
    for state, partition, decided in decisions(past):
        # What the controller remembers of ELRs that were cleared is told by no request, so that nobody can foresee it.
        known = replace(state, elr_index=type(state.elr_index)())
        for forecast in decided.forecasts:
            returns = ev.BrokerRegistered(forecast.replica, clean=forecast.clean)
            after = doing(known, partition, returns, ev.BrokerUnfenced(forecast.replica))
            told = (forecast.elected, forecast.isr, forecast.elr)
            assert told == (after.leader, after.isr, after.elr or ()), described(past)


@examples(150)
@given(histories(RELEASED))
def test_what_an_election_that_is_asked_for_gives(past: History) -> None:
    for state, partition, decided in decisions(past):
        for outcome in decided.elections:
            if outcome.election in {ElectionType.PREFERRED, ElectionType.UNCLEAN}:
                election = Election(outcome.election.value)
                asked = ev.LeadersElected(election, (partition.address,))
                assert doing(state, partition, asked).leader == outcome.elected, described(past)


@examples(150)
@given(histories(RELEASED))
def test_whom_a_designation_elects(past: History) -> None:
    for state, partition, decided in decisions(past):
        for outcome in decided.elections:
            if outcome.election is not ElectionType.DESIGNATION or outcome.designate is None:
                continue
            elected, restored = _designated(state, partition, outcome.designate)
            assert elected == outcome.elected, described(past)
            # Kafka 4.0 elects a dead leader, and the next run of whatever kind takes the leadership off it.
            assert restored == (elected if elected in state.electable(partition) else None), described(past)


def _designated(state: ControllerState, partition: PartitionState, wanted: int) -> tuple[int | None, int | None]:
    """Reorder, elect uncleanly: who leads then; and who leads when the order is as it was."""
    address = partition.address
    others = tuple(replica for replica in partition.replicas if replica != wanted)
    reordered = handle(state, ev.Reassigned(address, (wanted, *others))).state
    elected = handle(reordered, ev.LeadersElected(Election.UNCLEAN, (address,))).state
    order = tuple(replica for replica in partition.replicas if replica in elected.partitions[address].replicas)
    restored = handle(elected, ev.Reassigned(address, order)).state
    return elected.partitions[address].leader, restored.partitions[address].leader
