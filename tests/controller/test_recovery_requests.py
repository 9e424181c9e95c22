"""Recoveries that are asked for by hand, one partition beside another; and answers that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import (
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    Configs,
    ControllerState,
    Election,
    LogInfoAnswered,
    LogInfoEntry,
    ManualRecovery,
    RecoveringController,
    RecoveryStrategy,
    Registration,
    RuleSet,
    Standing,
    recovery_of,
)
from kelr.controller import events as ev
from kelr.model import ElectionType, PartitionState, TopicPartition

ORDERS, STOCK = TopicPartition("orders", 0), TopicPartition("stock", 0)


def leaderless(rules: RuleSet) -> RecoveringController:
    """Two partitions whose sets are empty but for the quorum: of orders 1 is dead, of stock everybody is live."""
    state = ControllerState(rules, static=Configs(min_isr=2))
    for broker in (1, 2, 3):
        state = state.with_broker(broker, Registration(broker, fenced=broker == 1))
    state = replace(state, first_partition_replicas={"orders": 2, "stock": 2})
    for topic, replicas in (("orders", (1, 2)), ("stock", (2, 3))):
        partition = PartitionState(topic, 0, None, 5, replicas, (), (), replicas, partition_epoch=9)
        state = state.with_partition(partition)
    return RecoveringController(state)


@pytest.mark.parametrize("election", [ElectionType.PREFERRED, ElectionType.UNCLEAN])
def test_a_recovery_by_hand_is_of_a_type_that_looks_at_logs(election: ElectionType) -> None:
    controller = leaderless(KIP966_NONE)
    done = controller.step(ManualRecovery(election, {STOCK: None}))
    assert (done.error, done.controller, done.requests) == ("INVALID_REQUEST", controller, ())


def test_a_designation_that_fails_leaves_the_next_one_alone() -> None:
    asked = ManualRecovery(ElectionType.DESIGNATION, {ORDERS: 1, STOCK: 3})
    done = leaderless(KIP966_NONE).step(asked)
    assert done.answers == {ORDERS: "ELIGIBLE_LEADERS_NOT_AVAILABLE", STOCK: "NONE"}
    leaders = {address: state.leader for address, state in done.controller.state.partitions.items()}
    assert leaders == {ORDERS: None, STOCK: 3}


def test_an_unclean_election_by_name_recovers_that_partition_alone() -> None:
    one = leaderless(KIP966_NONE).step(ev.LeadersElected(Election.UNCLEAN, (STOCK,)))
    assert {address for request in one.requests for address in request.partitions} == {STOCK}
    both = leaderless(KIP966_NONE).step(ev.LeadersElected(Election.UNCLEAN))
    assert {address for request in both.requests for address in request.partitions} == {ORDERS, STOCK}


@pytest.mark.parametrize(
    ("entry", "failed"),
    [
        (LogInfoEntry(0, None, 5, error="KAFKA_STORAGE_ERROR"), True),
        (LogInfoEntry(10, 5, 4), False),
    ],
)
def test_a_replica_that_cannot_tell_has_failed_and_one_that_is_behind_has_not(
    entry: LogInfoEntry, failed: bool
) -> None:
    """Nobody waits for the first unless it is needed; the second will know soon."""
    asked = leaderless(KIP966_AGGRESSIVE).step(ev.BrokerFenced(9))
    done = asked.controller.step(LogInfoAnswered(2, 2, {STOCK: entry}))
    inquiry = done.controller.manager.tasks[STOCK].inquiries[2]
    assert (inquiry.log, inquiry.failed) == (None, failed)
    assert inquiry.retry_at_ms is not None


def test_a_partition_with_a_leader_needs_no_recovery_whatever_its_strategy() -> None:
    state = leaderless(KIP966_BALANCED).state
    led = replace(state.partitions[STOCK], leader=2, isr=(2,))
    recovery = recovery_of(led, state.around(led), {})
    assert (recovery.standing, recovery.strategy) == (Standing.NOT_NEEDED, RecoveryStrategy.BALANCED)
