"""ElectLeaders v3: designation, longest_log_balanced, longest_log_aggressive; and the metrics of KIP-966."""

from __future__ import annotations

import pytest

from kelr.controller import (
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    ControllerFailedOver,
    Election,
    ManualRecovery,
    electable_replicas_count,
    events,
    recovery_metrics,
)
from kelr.model import ElectionType, TopicPartition
from tests.controller.recovering import ORDERS, partition, run

DESIGNATION = ElectionType.DESIGNATION
BALANCED = ElectionType.LONGEST_LOG_BALANCED
AGGRESSIVE = ElectionType.LONGEST_LOG_AGGRESSIVE


def test_a_designated_replica_is_elected_whatever_its_log() -> None:
    recovery = run(partition(last_known=(1, 2)), rules=KIP966_NONE)
    answered = recovery.step(ManualRecovery(DESIGNATION, {ORDERS: 3}))
    assert (recovery.leader, answered.answers) == (3, {ORDERS: "NONE"})
    assert recovery.controller.manager.finished == 0  # no recovery: no log was looked at


@pytest.mark.parametrize("desired", [3, 9, None], ids=["fenced", "no replica", "none named"])
def test_a_designation_that_cannot_be_done_elects_nobody(desired: int | None) -> None:
    recovery = run(partition(last_known=(1, 2)), live=(1, 2, 9), fenced=(3,), rules=KIP966_NONE)
    answered = recovery.step(ManualRecovery(DESIGNATION, {ORDERS: desired}))
    assert (recovery.leader, answered.answers) == (None, {ORDERS: "ELIGIBLE_LEADERS_NOT_AVAILABLE"})


def test_a_designation_ends_a_recovery_under_way() -> None:
    recovery = run(partition(last_known=(1, 2)))
    recovery.step(ManualRecovery(DESIGNATION, {ORDERS: 3}))
    assert (recovery.leader, recovery.task) == (3, None)


@pytest.mark.parametrize("election", [DESIGNATION, BALANCED, AGGRESSIVE])
def test_only_partitions_without_leader_are_recovered(election: ElectionType) -> None:
    unknown = TopicPartition("orders", 7)
    recovery = run(partition(isr=(1, 2, 3), leader=1))
    answered = recovery.step(ManualRecovery(election, {ORDERS: 2, unknown: 2}))
    assert answered.answers == {ORDERS: "ELECTION_NOT_NEEDED", unknown: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert recovery.leader == 1


def test_longest_log_aggressive_works_where_the_strategy_is_none() -> None:
    recovery = run(partition(last_known=(1, 2)), rules=KIP966_NONE)
    asked = recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}))
    assert (recovery.asked, asked.answers) == ([1, 2, 3], {})
    recovery.answer(3, (4, 90))
    recovery.answer(1, (4, 100))
    assert recovery.leader is None
    elected = recovery.at(5_000)
    assert (recovery.leader, elected.answers) == (1, {ORDERS: "NONE"})
    assert recovery.controller.manager.finished == 1


def test_longest_log_balanced_needs_the_members_of_the_elr_too() -> None:
    """Asked for by hand it does not throw the ELR away: its members hold everything, so they are of the quorum."""
    recovery = run(partition(elr=(1,), last_known=(2,)), live=(2, 3), fenced=(1,), rules=KIP966_NONE)
    recovery.step(ManualRecovery(BALANCED, {ORDERS: None}))
    recovery.answer(2, (4, 100))
    recovery.answer(3, (4, 100))
    recovery.at(30_000)
    assert recovery.leader is None
    returned = recovery.step(events.BrokerUnfenced(1))
    assert (recovery.leader, recovery.state().recovering) == (1, False)
    assert returned.answers == {ORDERS: "NONE"}


@pytest.mark.parametrize("election", [BALANCED, AGGRESSIVE])
def test_a_live_member_of_the_elr_is_elected_cleanly_instead(election: ElectionType) -> None:
    recovery = run(partition(elr=(2,)), rules=KIP966_NONE)
    answered = recovery.step(ManualRecovery(election, {ORDERS: None}))
    assert (recovery.leader, recovery.state().recovering) == (2, False)
    assert (answered.answers, answered.requests) == ({ORDERS: "NONE"}, ())
    assert recovery.controller.manager.finished == 0


def test_a_request_by_hand_gives_up_when_its_time_is_over() -> None:
    recovery = run(partition(last_known=(1, 2)), live=(3,), fenced=(1, 2), rules=KIP966_NONE)
    recovery.step(ManualRecovery(BALANCED, {ORDERS: None}, timeout_ms=60_000))
    assert recovery.at(59_999).answers == {}
    assert recovery.at(60_000).answers == {ORDERS: "REQUEST_TIMED_OUT"}
    assert recovery.task is None


def test_when_a_request_by_hand_gives_up_the_topics_own_strategy_goes_on() -> None:
    recovery = run(partition(last_known=(1, 2)), live=(2, 3), fenced=(1,), rules=KIP966_BALANCED)
    recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}, timeout_ms=1_000))
    assert recovery.at(1_000).answers == {ORDERS: "REQUEST_TIMED_OUT"}
    assert recovery.task is not None
    recovery.answer(2, (4, 100))
    recovery.at(10_000)
    assert recovery.leader is None


def test_the_request_by_hand_that_ends_last_answers_them_all() -> None:
    """Nobody who asked stays without an answer, and nobody's strategy outlives the time that it was asked for."""
    recovery = run(partition(last_known=(1, 2)), live=(2, 3), fenced=(1,), rules=KIP966_NONE)
    assert recovery.step(ManualRecovery(BALANCED, {ORDERS: None}, timeout_ms=10_000)).answers == {}
    assert recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}, timeout_ms=1_000)).answers == {}
    assert recovery.asked == [1, 2, 3]
    recovery.answer(2, (4, 100))
    assert recovery.at(9_999).answers == {}  # aggressive is over; balanced waits for 1
    assert recovery.leader is None
    assert recovery.at(10_000).answers == {ORDERS: "REQUEST_TIMED_OUT"}
    assert recovery.task is None


def test_a_longer_request_by_hand_outlives_a_shorter_one() -> None:
    recovery = run(partition(last_known=(1, 2)), live=(2, 3), fenced=(1,), rules=KIP966_NONE)
    recovery.step(ManualRecovery(BALANCED, {ORDERS: None}, timeout_ms=1_000))
    recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}, timeout_ms=60_000))
    recovery.answer(2, (4, 100))
    assert recovery.at(1_000).answers == {}
    assert recovery.at(5_000).answers == {ORDERS: "NONE"}
    assert recovery.leader == 2


def test_the_window_of_aggressive_begins_with_the_request_by_hand() -> None:
    recovery = run(partition(last_known=(1, 2)), live=(2, 3), fenced=(1,), rules=KIP966_BALANCED)
    recovery.at(60_000)
    recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}))
    recovery.answer(3, (4, 10))
    assert recovery.leader is None
    recovery.answer(2, (4, 100))
    recovery.at(65_000)
    assert recovery.leader == 2


def test_a_controller_that_takes_over_knows_no_request_by_hand() -> None:
    recovery = run(partition(last_known=(1, 2)), rules=KIP966_NONE)
    recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}))
    assert recovery.step(ControllerFailedOver()).answers == {ORDERS: "NOT_CONTROLLER"}
    assert recovery.task is None


def test_an_unclean_election_is_an_aggressive_recovery_now() -> None:
    recovery = run(partition(last_known=(1, 2)), rules=KIP966_NONE)
    recovery.step(events.LeadersElected(Election.UNCLEAN))
    assert recovery.asked == [1, 2, 3]
    recovery.answer(2, (4, 120))
    recovery.at(5_000)
    assert recovery.leader == 2


def test_the_metrics() -> None:
    recovery = run(
        partition(last_known=(1, 2)),  # asked
        partition(number=1, replicas=(3, 4), last_known=(4,)),  # waits for 4
        partition(number=2, replicas=(4, 3), elr=(4,)),  # waits for its ELR: no recovery
        partition(number=3, isr=(1,), elr=(2,), leader=1),
        partition(number=4, isr=(1, 2, 3), leader=1),
        fenced=(4,),
    )
    metrics = recovery_metrics(recovery.controller.state, recovery.controller.manager)
    assert metrics.unclean_recovery_partitions_count == 2
    assert metrics.global_under_min_isr_partition_count == 4
    assert metrics.electable_replicas_count == 1 + 2 + 3
    assert metrics.manual_leader_election_required_partition_count == 0
    assert metrics.unclean_recovery_finished_count == 0


def test_only_partitions_that_an_operator_must_help_are_counted_as_such() -> None:
    recovery = run(
        partition(last_known=(1, 2)),
        partition(number=1, replicas=(4, 3), elr=(4,)),
        partition(number=2, isr=(1, 2, 3), leader=1),
        fenced=(4,),
        rules=KIP966_NONE,
    )
    state, manager = recovery.controller.state, recovery.controller.manager
    metrics = recovery_metrics(state, manager)
    assert metrics.manual_leader_election_required_partition_count == 1
    assert metrics.unclean_recovery_partitions_count == 0
    assert electable_replicas_count(state.partitions[TopicPartition("orders", 1)]) == 1
    recovery.step(ManualRecovery(AGGRESSIVE, {ORDERS: None}))
    metrics = recovery_metrics(recovery.controller.state, recovery.controller.manager)
    assert metrics.manual_leader_election_required_partition_count == 0
    assert metrics.unclean_recovery_partitions_count == 1


def test_aggressive_counts_a_fenced_elr_as_a_recovery() -> None:
    recovery = run(partition(elr=(1,)), live=(), fenced=(1, 2, 3), rules=KIP966_AGGRESSIVE)
    metrics = recovery_metrics(recovery.controller.state, recovery.controller.manager)
    assert metrics.unclean_recovery_partitions_count == 1
