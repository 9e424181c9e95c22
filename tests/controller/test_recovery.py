"""The Unclean Recovery Manager, case by case (KIP-966, "Unclean recovery", "Unclean Recovery Manager")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kelr.controller import (
    ELR_4_3,
    KIP966,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    ControllerFailedOver,
    LogInfoAnswered,
    LogInfoEntry,
    LogInfoFailed,
    ManualRecovery,
    RecoveryLimits,
    Refusal,
    RuleSet,
    TimePassed,
    events,
)
from kelr.model import ElectionType, TopicPartition
from tests.controller.recovering import ORDERS, Run, controller, partition, run

WINDOW_MS, TIMEOUT_MS, RETRY_MS = 5_000, 300_000, 1_000


def quorum_of_two(*, live: Iterable[int] = (1, 2, 3), fenced: Iterable[int] = ()) -> Run:
    """Balanced: 1 and 2 restarted uncleanly, 3 had fallen behind before; all are back if not told."""
    return run(partition(last_known=(1, 2)), live=live, fenced=fenced)


# Balanced


def test_balanced_asks_every_replica_once_the_quorum_is_unfenced() -> None:
    recovery = run(partition(last_known=(1, 2)), live=(1,), fenced=(2, 3))
    assert recovery.task is not None  # counted as a live recovery, though nobody is asked yet
    assert recovery.asked == []
    recovery.step(events.BrokerUnfenced(2))
    assert recovery.asked == [1, 2, 3]  # the fenced one, too


def test_balanced_elects_the_best_log_of_the_quorum() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 100))
    assert recovery.leader is None
    recovery.answer(2, (4, 120))
    state = recovery.state()
    assert (state.leader, state.isr, state.elr, state.last_known_elr, state.recovering) == (2, (2,), (), (1,), True)
    assert state.leader_epoch == 6
    assert recovery.task is None
    assert recovery.controller.manager.finished == 1


@pytest.mark.parametrize(
    ("one", "two", "elected"),
    [
        ((4, 100), (3, 900), 1),  # the last written leader epoch comes first
        ((3, 900), (4, 100), 2),
        ((4, 100), (4, 101), 2),  # then the log end
        ((4, 100), (4, 100), 1),  # assignment order where logs are equal
        ((None, 0), (0, 0), 2),  # a log that never held a record is below all
        ((None, 0), (None, 0), 1),
    ],
)
def test_the_best_log(one: tuple[int | None, int], two: tuple[int | None, int], elected: int) -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, one)
    recovery.answer(2, two)
    assert recovery.leader == elected


def test_balanced_takes_along_the_other_live_replicas() -> None:
    recovery = quorum_of_two()
    recovery.answer(1, (4, 100))
    recovery.answer(2, (4, 120))
    assert recovery.leader is None  # "plus the replicas replied within the timeout": 3 is live and may still answer
    recovery.answer(3, (4, 150))
    assert recovery.leader == 3


def test_balanced_waits_for_replicas_that_it_does_not_need_until_the_timeout_only() -> None:
    recovery = quorum_of_two()
    recovery.at(1_000)
    recovery.answer(1, (4, 100))
    recovery.answer(2, (4, 120))
    recovery.at(TIMEOUT_MS - 1)
    assert recovery.leader is None
    recovery.at(TIMEOUT_MS)
    assert recovery.leader == 2


def test_balanced_does_not_wait_for_a_replica_that_it_does_not_need_and_cannot_reach() -> None:
    recovery = quorum_of_two()
    recovery.fail(3)
    recovery.answer(1, (4, 100))
    assert recovery.leader is None
    recovery.answer(2, (4, 120))
    assert recovery.leader == 2


def test_a_replica_that_it_does_not_need_and_cannot_reach_is_not_waited_for_while_it_is_asked_again() -> None:
    recovery = quorum_of_two()
    recovery.fail(3)
    recovery.at(RETRY_MS)
    assert recovery.asked == [3]
    recovery.answer(1, (4, 100), leader_epoch=4)
    recovery.answer(3, (4, 200), leader_epoch=4)  # stale: it is reachable now, and still not waited for in this round
    recovery.at(2 * RETRY_MS)
    recovery.answer(1, (4, 100))
    recovery.answer(2, (4, 120))
    assert recovery.leader == 2


def test_the_timeout_begins_when_the_quorum_is_live() -> None:
    recovery = quorum_of_two()
    recovery.answer(1, (4, 100))
    recovery.step(events.BrokerFenced(2), TimePassed(TIMEOUT_MS), events.BrokerUnfenced(2))
    recovery.answer(2, (4, 120))
    assert recovery.leader is None
    recovery.at(2 * TIMEOUT_MS)
    assert recovery.leader == 2


def test_balanced_never_elects_without_the_whole_quorum() -> None:
    recovery = quorum_of_two()
    recovery.answer(2, (4, 120))
    recovery.answer(3, (4, 150))
    recovery.fail(1)
    for hour in range(1, 4):
        recovery.at(3_600_000 * hour)
        assert recovery.leader is None
        assert recovery.asked == [1]  # and it keeps on asking


def test_a_member_that_answered_and_was_fenced_counts_again_when_it_is_unfenced() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 100))
    recovery.step(events.BrokerFenced(1))
    recovery.answer(2, (4, 120))
    assert recovery.leader is None  # only unfenced replicas count into the quorum
    recovery.step(events.BrokerUnfenced(1))
    assert recovery.leader == 2


def test_an_answer_of_a_fenced_replica_counts_when_it_is_unfenced() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(3, (4, 200))
    recovery.answer(1, (4, 100))
    recovery.step(events.BrokerUnfenced(3))
    recovery.answer(2, (4, 120))
    assert recovery.leader == 3


def test_a_fenced_replica_is_not_elected_however_good_its_log() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(3, (4, 200))
    recovery.answer(1, (4, 100))
    recovery.answer(2, (4, 120))
    assert recovery.leader == 2


@pytest.mark.parametrize("last_known", [(), (1, 9)], ids=["none recorded", "one is no replica any more"])
def test_without_a_known_quorum_every_replica_is_needed(last_known: tuple[int, ...]) -> None:
    recovery = run(partition(last_known=last_known))
    recovery.answer(1, (4, 100))
    recovery.answer(2, (4, 120))
    recovery.fail(3)
    recovery.at(TIMEOUT_MS)
    assert recovery.leader is None
    recovery.answer(3, (4, 90))
    assert recovery.leader == 2


def test_balanced_waits_for_fenced_elr_members_instead() -> None:
    recovery = run(partition(elr=(1,), last_known=(2,)), live=(2, 3), fenced=(1,))
    assert recovery.task is None
    recovery.step(events.BrokerUnfenced(1))
    assert (recovery.leader, recovery.state().isr, recovery.state().recovering) == (1, (1,), False)


def test_when_the_last_elr_member_restarts_uncleanly_its_recovery_begins() -> None:
    recovery = run(partition(elr=(1,), last_known=(2,)), live=(2, 3), fenced=(1,))
    recovery.step(events.BrokerRegistered(1, clean=False))
    assert (recovery.state().elr, set(recovery.state().last_known_elr or ())) == ((), {1, 2})
    assert recovery.task is not None
    assert recovery.requests == []
    recovery.step(events.BrokerUnfenced(1))
    assert recovery.asked == [1, 2, 3]


# Aggressive


def test_aggressive_elects_the_best_of_its_window() -> None:
    recovery = run(partition(elr=(3,), last_known=(1,)), live=(1, 2), fenced=(3,), rules=KIP966_AGGRESSIVE)
    assert recovery.asked == [1, 2, 3]
    recovery.answer(1, (4, 100))
    recovery.at(WINDOW_MS - 1)
    recovery.answer(2, (4, 120))
    assert recovery.leader is None
    recovery.at(WINDOW_MS)
    assert (recovery.leader, recovery.state().isr, recovery.state().elr) == (2, (2,), ())


def test_aggressive_elects_the_first_answer_after_its_window() -> None:
    recovery = run(partition(last_known=(1,)), rules=KIP966_AGGRESSIVE)
    recovery.at(WINDOW_MS)
    assert recovery.leader is None
    recovery.answer(3, (1, 1))
    assert recovery.leader == 3


def test_aggressive_waits_no_longer_when_all_have_answered() -> None:
    recovery = run(partition(last_known=(1,)), rules=KIP966_AGGRESSIVE)
    recovery.answer(1, (4, 100))
    recovery.answer(2, (4, 120))
    recovery.answer(3, (4, 110))
    assert recovery.leader == 2


def test_aggressive_gives_a_fenced_replica_with_the_best_log_its_window() -> None:
    recovery = run(partition(last_known=(1,)), live=(1, 2), fenced=(3,), rules=KIP966_AGGRESSIVE)
    for broker, log_end in ((1, 100), (2, 120), (3, 130)):
        recovery.answer(broker, (4, log_end))
    assert recovery.leader is None
    recovery.step(events.BrokerUnfenced(3))
    assert recovery.leader == 3


def test_aggressive_after_its_window_with_nobody_live_elects_whoever_is_unfenced_first() -> None:
    recovery = run(partition(last_known=(1,)), live=(), fenced=(1, 2, 3), rules=KIP966_AGGRESSIVE)
    recovery.answer(2, (4, 120))
    recovery.at(WINDOW_MS)
    assert recovery.leader is None
    recovery.step(events.BrokerUnfenced(2))
    assert recovery.leader == 2


def test_the_window_of_aggressive_begins_when_the_strategy_does() -> None:
    recovery = run(partition(last_known=(1,)), live=(2, 3), fenced=(1,), rules=KIP966)
    recovery.at(60_000)
    recovery.step(events.ConfigWritten("orders", unclean_leader_election=True))
    recovery.answer(3, (4, 10))
    assert recovery.leader is None
    recovery.answer(2, (4, 100))
    recovery.at(60_000 + WINDOW_MS - 1)
    assert recovery.leader is None
    recovery.at(60_000 + WINDOW_MS)
    assert recovery.leader == 2


def test_the_window_of_aggressive_begins_anew_when_all_that_was_heard_is_void() -> None:
    recovery = run(partition(last_known=(1,)), live=(2, 3), fenced=(1,), rules=KIP966_AGGRESSIVE)
    recovery.answer(3, (4, 100))
    recovery.at(WINDOW_MS - 1)
    recovery.step(events.BrokerRegistered(3, clean=False), events.BrokerUnfenced(3))
    recovery.at(WINDOW_MS)
    recovery.answer(3, (4, 10))
    assert recovery.leader is None
    recovery.answer(2, (4, 90))
    recovery.at(2 * WINDOW_MS - 1)
    assert recovery.leader == 2


def test_the_window_of_aggressive_begins_anew_with_a_leader_epoch() -> None:
    recovery = run(partition(last_known=(1,)), live=(2, 3), fenced=(1,), rules=KIP966_AGGRESSIVE)
    recovery.at(WINDOW_MS)
    moved = replace(recovery.state(), leader_epoch=6)
    recovery.controller = replace(recovery.controller, state=recovery.controller.state.with_partition(moved))
    recovery.at(WINDOW_MS + 1)
    recovery.answer(3, (4, 10))
    assert recovery.leader is None
    recovery.at(2 * WINDOW_MS + 1)
    assert recovery.leader == 3


def test_a_leader_epoch_that_moves_on_while_nobody_is_live_begins_the_window_anew() -> None:
    recovery = run(partition(last_known=(1,)), live=(), fenced=(1, 2, 3), rules=KIP966_AGGRESSIVE)
    moved = replace(recovery.state(), leader_epoch=6)
    recovery.controller = replace(recovery.controller, state=recovery.controller.state.with_partition(moved))
    recovery.at(WINDOW_MS)
    recovery.answer(3, (4, 10))
    recovery.step(events.BrokerUnfenced(3))
    assert recovery.leader is None
    recovery.at(2 * WINDOW_MS)
    assert recovery.leader == 3


def test_the_first_answer_is_not_elected_when_all_failed_and_are_asked_again() -> None:
    recovery = run(partition(last_known=(1,)), live=(2, 3), fenced=(1,), rules=KIP966_AGGRESSIVE)
    recovery.fail(2)
    recovery.fail(3)
    recovery.at(WINDOW_MS)
    assert recovery.asked == [2, 3]
    recovery.answer(3, (4, 10))
    recovery.answer(2, (4, 100))
    assert recovery.leader is None
    recovery.at(2 * WINDOW_MS)
    assert recovery.leader == 2


def test_a_new_round_does_not_begin_the_window_anew() -> None:
    recovery = run(partition(last_known=(1,)), rules=KIP966_AGGRESSIVE)
    recovery.at(TIMEOUT_MS)
    assert recovery.asked == [1, 2, 3]
    recovery.answer(3, (4, 10))
    assert recovery.leader == 3


# None, and released Kafka


def test_none_waits_for_an_operator() -> None:
    recovery = run(partition(last_known=(1, 2)), rules=KIP966_NONE)
    recovery.at(TIMEOUT_MS)
    assert (recovery.leader, recovery.task, recovery.requests) == (None, None, [])


def test_the_strategy_follows_unclean_leader_election_enable() -> None:
    """KIP-966, compatibility: true is aggressive, false balanced; and a config that is written counts at once."""
    recovery = run(partition(elr=(3,)), live=(1, 2), fenced=(3,), rules=KIP966)
    assert recovery.task is None
    recovery.step(events.ConfigWritten("orders", unclean_leader_election=True))
    assert recovery.asked == [1, 2, 3]
    recovery.step(events.ConfigWritten("orders", unclean_leader_election=False))
    assert recovery.task is None


@pytest.mark.parametrize("rules", [ELR_4_3])
def test_released_kafka_has_no_manager(rules: RuleSet) -> None:
    recovery = run(partition(last_known=(1, 2)), rules=rules)
    assert (recovery.task, recovery.requests) == (None, [])
    refused = recovery.step(ManualRecovery(ElectionType.LONGEST_LOG_BALANCED, {ORDERS: None}))
    assert refused.error == "UNSUPPORTED_VERSION"


# Verification of answers


def test_an_answer_of_another_incarnation_is_refused_and_asked_for_again() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    refused = recovery.answer(1, (4, 100), broker_epoch=9).refused
    assert [(one.broker, one.address, one.reason) for one in refused] == [(1, ORDERS, Refusal.BROKER_EPOCH)]
    assert refused[0].detail == "answered with broker epoch 9, registered with 10"
    recovery.answer(2, (4, 120))
    assert recovery.leader is None
    recovery.at(RETRY_MS)
    assert recovery.asked == [1]
    recovery.answer(1, (4, 130))
    assert recovery.leader == 1


@pytest.mark.parametrize("leader_epoch", [4, 6])
def test_an_answer_with_another_leader_epoch_is_refused_and_asked_for_again(leader_epoch: int) -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    refused = recovery.answer(1, (4, 100), leader_epoch=leader_epoch).refused
    assert [one.reason for one in refused] == [Refusal.LEADER_EPOCH]
    recovery.at(RETRY_MS)
    assert recovery.asked == [1]


def test_an_error_for_one_partition_is_refused_and_asked_for_again() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    refused = recovery.answer(1, (None, 0), error="KAFKA_STORAGE_ERROR").refused
    assert [(one.reason, one.detail) for one in refused] == [(Refusal.ERROR, "KAFKA_STORAGE_ERROR")]
    recovery.at(RETRY_MS)
    assert recovery.asked == [1]


def test_a_broker_that_answers_for_fewer_at_once_is_asked_for_the_rest_at_once() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (None, 0), error="REQUEST_LIMIT_REACHED")
    assert recovery.asked == [1]


def test_an_answer_for_nothing_that_is_under_recovery_is_refused() -> None:
    healthy = partition(isr=(1, 2, 3), leader=1)
    assert [one.reason for one in run(healthy).answer(1, (4, 100)).refused] == [Refusal.NO_TASK]


def test_an_answer_of_a_broker_without_a_replica_is_refused() -> None:
    recovery = quorum_of_two(live=(1, 2, 4), fenced=(3,))
    assert [one.reason for one in recovery.answer(4, (9, 999)).refused] == [Refusal.NOT_A_REPLICA]


def test_a_request_that_failed_is_sent_again_in_the_next_round() -> None:
    recovery = quorum_of_two()
    recovery.fail(2)
    assert recovery.asked == []
    recovery.at(RETRY_MS - 1)
    assert recovery.asked == []
    recovery.at(RETRY_MS)
    assert recovery.asked == [2]


def test_an_answer_that_leaves_partitions_out_is_asked_for_the_rest() -> None:
    other = TopicPartition("orders", 1)
    recovery = run(partition(last_known=(1,)), partition(last_known=(1,), number=1), live=(1,), min_isr=1)
    (request,) = recovery.requests
    assert request.partitions == (ORDERS, other)
    recovery.answer(1, (4, 100), request=request.id)
    assert [one.partitions for one in recovery.stepped[-1].requests] == [(other,)]


def test_a_late_answer_to_an_old_request_asks_for_nothing_twice() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    first = next(request for request in recovery.requests if request.broker == 1)
    recovery.step(events.BrokerRegistered(1, clean=False), events.BrokerUnfenced(1))
    assert recovery.task is not None
    assert 1 in recovery.task.owing  # the new incarnation was asked
    late = recovery.answer(1, (4, 100), broker_epoch=10, request=first.id)
    assert [one.reason for one in late.refused] == [Refusal.BROKER_EPOCH]
    recovery.at(RETRY_MS)
    assert 1 not in recovery.asked


def test_an_answer_from_before_its_directory_failed_is_refused() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    first = next(request for request in recovery.requests if request.broker == 1)
    recovery.step(events.DirectoryFailed(1), events.DirectoryAssigned(1, ORDERS))
    again = recovery.stepped[-1].requests[0]
    late = recovery.answer(1, (4, 130), request=first.id)
    assert [(one.reason, one.detail) for one in late.refused] == [
        (Refusal.OLD_REQUEST, f"answered request {first.id}, the last is {again.id}")
    ]
    assert recovery.task is not None
    assert 1 in recovery.task.owing
    recovery.answer(1, (None, 0), request=again.id)
    recovery.answer(2, (4, 120))
    assert recovery.leader == 2


@pytest.mark.parametrize(("live", "last"), [((1, 2, 3), "5"), ((2, 3), "none")], ids=["asked again", "not asked yet"])
def test_an_answer_about_a_deleted_topic_of_the_same_name_is_refused(live: tuple[int, ...], last: str) -> None:
    recovery = quorum_of_two()
    old = next(request for request in recovery.requests if request.broker == 2)
    recovery.step(events.TopicDeleted("orders"))
    state = recovery.controller.state.with_partition(partition(last_known=(1, 2)))
    for broker in {1, 2, 3}.difference(live):
        state = state.with_broker(broker, replace(state.brokers[broker], fenced=True))
    recovery.controller = replace(recovery.controller, state=state)
    recovery.at(1)
    late = recovery.answer(2, (4, 999), request=old.id)
    assert [one.reason for one in late.refused] == [Refusal.OLD_REQUEST]
    assert late.refused[0].detail == f"answered request {old.id}, the last is {last}"
    assert recovery.task is not None
    assert dict(recovery.task.heard) == {}


@pytest.mark.parametrize("log", [(4, 5), (4, 200), (3, 100)])
def test_another_answer_of_the_same_incarnation_is_refused(log: tuple[int, int]) -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 100))
    contradicting = recovery.answer(1, log)
    assert [(one.reason, one.detail) for one in contradicting.refused] == [
        (Refusal.CONTRADICTS, f"answered log end {log[1]}, last epoch {log[0]}, had answered log end 100, last epoch 4")
    ]
    assert recovery.answer(1, (4, 100)).refused == ()
    assert recovery.task is not None
    assert recovery.task.heard[1].log_end == 100


def test_nobody_is_asked_twice_while_an_answer_is_owed() -> None:
    recovery = quorum_of_two()
    recovery.step(TimePassed(RETRY_MS), events.BrokerFenced(3), events.BrokerUnfenced(3), TimePassed(10 * RETRY_MS))
    assert [request.broker for request in recovery.requests] == [1, 2, 3]


def test_a_round_that_takes_too_long_is_begun_anew() -> None:
    """The KIP: where the manager hangs, the controller triggers the recovery again."""
    recovery = quorum_of_two()
    recovery.answer(2, (4, 120))
    recovery.at(TIMEOUT_MS)
    assert recovery.asked == [1, 3]


# Failovers


def test_a_broker_that_fails_before_it_is_asked_answers_in_its_new_life() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(2, (4, 120))
    recovery.step(events.BrokerRegistered(1, clean=False), events.BrokerUnfenced(1))
    recovery.answer(1, (4, 130))
    assert recovery.leader == 1


def test_a_broker_that_registers_again_loses_its_answer() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 150))
    recovery.step(events.BrokerRegistered(1, clean=True))
    recovery.answer(2, (4, 120))
    recovery.step(events.BrokerUnfenced(1))
    assert recovery.leader is None
    assert recovery.asked == [1]
    recovery.answer(1, (4, 110))
    assert recovery.leader == 2


def test_a_broker_that_fails_after_its_answer_may_be_elected_and_is_fenced_when_it_registers() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 150))
    recovery.answer(2, (4, 120))
    assert recovery.leader == 1
    recovery.step(events.BrokerRegistered(1, clean=False))
    state = recovery.state()
    assert (state.leader, state.isr, state.elr, state.last_known_elr) == (None, (), (), (1, 2))


def test_a_controller_that_takes_over_starts_every_recovery_afresh() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 150))
    recovery.step(ControllerFailedOver())
    assert recovery.asked == [1, 2, 3]
    assert len({request.id for request in recovery.requests}) == 6
    recovery.answer(2, (4, 120))
    assert recovery.leader is None
    recovery.answer(1, (4, 150))
    assert recovery.leader == 1


def test_a_controller_that_takes_over_counts_from_zero() -> None:
    recovery = quorum_of_two(live=(1, 2), fenced=(3,))
    recovery.answer(1, (4, 150))
    recovery.answer(2, (4, 120))
    assert recovery.controller.manager.finished == 1
    recovery.step(ControllerFailedOver())
    assert recovery.controller.manager.finished == 0


def test_a_window_begins_again_with_a_new_controller() -> None:
    recovery = run(partition(last_known=(1,)), rules=KIP966_AGGRESSIVE)
    recovery.at(WINDOW_MS - 1)
    recovery.step(ControllerFailedOver())
    recovery.answer(1, (4, 150))
    recovery.at(WINDOW_MS)
    assert recovery.leader is None
    recovery.at(2 * WINDOW_MS - 1)
    assert recovery.leader == 1


def test_the_quorum_outlives_its_recovery_until_min_isr_is_met() -> None:
    """Three replicas with min ISR 3: 2 lost its tail, and 1 loses its own after it was elected. 3 is whole, is still of
    the quorum (KIP-966 cleans LastKnownELR when the ISR reaches min ISR, not before), and is waited for."""
    recovery = run(partition(last_known=(1, 2, 3)), min_isr=3)
    for broker, log_end in ((1, 100), (2, 60), (3, 100)):
        recovery.answer(broker, (4, log_end))
    assert (recovery.leader, recovery.state().last_known_elr) == (1, (2, 3))
    recovery.step(events.BrokerFenced(3), events.BrokerRegistered(1, clean=False), events.BrokerUnfenced(1))
    assert recovery.state().last_known_elr == (1, 2, 3)
    recovery.answer(1, (4, 80))
    recovery.fail(2)
    assert recovery.leader is None


def test_a_recovery_with_min_isr_1_leaves_no_quorum_behind() -> None:
    recovery = run(partition(last_known=(1, 2)), min_isr=1)
    for broker, log_end in ((1, 100), (2, 60), (3, 50)):
        recovery.answer(broker, (4, log_end))
    assert (recovery.leader, recovery.state().last_known_elr) == (1, ())


# What happens to the partition meanwhile


def test_a_deleted_topic_is_not_recovered() -> None:
    recovery = quorum_of_two()
    recovery.step(events.TopicDeleted("orders"))
    assert recovery.controller.manager.tasks == {}


def test_a_leader_epoch_that_moves_on_makes_answers_stale() -> None:
    recovery = run(partition(replicas=(1, 2, 3, 4), last_known=(1, 2)), live=(1, 2, 4), fenced=(3,))
    recovery.answer(1, (4, 150))
    moved = replace(recovery.state(), leader_epoch=6)
    recovery.controller = replace(recovery.controller, state=recovery.controller.state.with_partition(moved))
    recovery.answer(2, (4, 120), leader_epoch=6)
    assert recovery.leader is None
    assert recovery.task is not None
    assert (recovery.task.leader_epoch, dict(recovery.task.heard)) == (6, {})
    assert recovery.asked == [1, 2, 3, 4]


def test_a_lost_log_directory_is_neither_asked_nor_elected() -> None:
    recovery = run(partition(last_known=(1,)), rules=KIP966_AGGRESSIVE)
    recovery.answer(1, (4, 150))
    recovery.step(events.DirectoryFailed(1))
    recovery.answer(2, (4, 120))
    recovery.at(WINDOW_MS)
    assert recovery.leader == 2


def test_a_replica_in_a_new_log_directory_is_asked_again() -> None:
    recovery = run(partition(last_known=(1,)))
    recovery.answer(1, (4, 150))
    recovery.step(events.DirectoryFailed(1), events.DirectoryAssigned(1, ORDERS))
    assert recovery.asked == [1]


def test_an_unregistered_broker_is_not_asked() -> None:
    recovery = run(partition(last_known=(1,)), live=(1, 2), rules=KIP966_AGGRESSIVE)
    assert recovery.asked == [1, 2]


def test_requests_are_batched_within_the_limit_and_number_themselves() -> None:
    partitions = [partition(last_known=(1,), number=number) for number in range(5)]
    recovery = Run(controller(*partitions, live=(1, 2), min_isr=1))
    manager = replace(recovery.controller.manager, limits=RecoveryLimits(partitions_per_request=2))
    recovery.controller = replace(recovery.controller, manager=manager)
    recovery.at(0)
    assert [(one.id, one.broker, [at.partition for at in one.partitions]) for one in recovery.requests] == [
        (1, 1, [0, 1]),
        (2, 1, [2, 3]),
        (3, 1, [4]),
        (4, 2, [0, 1]),
        (5, 2, [2, 3]),
        (6, 2, [4]),
    ]
    recovery.step(LogInfoFailed(1, request=2))
    recovery.at(RETRY_MS)
    assert [[at.partition for at in one.partitions] for one in recovery.stepped[-1].requests] == [[2, 3]]


def test_one_answer_serves_many_partitions() -> None:
    partitions = [partition(last_known=(1,), number=number) for number in range(3)]
    recovery = run(*partitions, live=(1,), min_isr=1)
    entries = {one.address: LogInfoEntry(100, 4, 5) for one in partitions}
    elected = recovery.step(LogInfoAnswered(1, 10, entries))
    assert [(change.after.partition, change.after.leader) for change in elected.changes] == [(0, 1), (1, 1), (2, 1)]
    assert recovery.controller.manager.finished == 3


def test_rules_of_the_strategies_differ_in_nothing_else() -> None:
    assert replace(KIP966_NONE, name="", title="", recovery=None) == replace(
        KIP966_BALANCED, name="", title="", recovery=None
    )
