"""What becomes of brokers, and of partitions through them: registrations, controlled shutdowns, log directories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import (
    ELR_4_0,
    ELR_4_3,
    Change,
    Circumstances,
    broker_returns,
    broker_unregistered,
    directory_failed,
)
from kelr.controller import events as ev
from kelr.controller.machine import handle
from kelr.model import PartitionState, TopicPartition
from tests.controller.test_requests import NOWHERE, ORDERS, after, orders

LEADERLESS = (ev.BrokerFenced(3), ev.BrokerFenced(2), ev.BrokerFenced(1))


@pytest.mark.parametrize(
    "event",
    [
        ev.BrokerUnfenced(9),
        ev.ControlledShutdown(9),
        ev.DirectoryFailed(9),
        ev.DirectoryAssigned(9, ORDERS),
        ev.BrokerUnregistered(9),
    ],
)
def test_who_is_not_registered_changes_nothing(event: ev.Event) -> None:
    refused = handle(after().state, event)
    error = "BROKER_ID_NOT_REGISTERED" if isinstance(event, ev.BrokerUnregistered) else "STALE_BROKER_EPOCH"
    assert (refused.error, refused.state) == (error, after().state)


def test_the_session_of_nobody_expires_without_a_trace() -> None:
    assert after(ev.BrokerFenced(9)).state == after().state


def test_each_registration_has_a_broker_epoch_of_its_own() -> None:
    known = after(ev.BrokerRegistered(1, clean=True, rack="az1")).state
    assert (known.brokers[1].epoch, known.brokers[1].rack, known.next_epoch) == (5, "az1", 6)
    told = handle(known, ev.BrokerRegistered(2, clean=True, epoch=9)).state
    assert (told.brokers[2].epoch, told.next_epoch) == (9, 10)
    assert handle(told, ev.BrokerRegistered(3, clean=True, epoch=7)).state.next_epoch == 10


def test_a_controlled_shutdown_moves_the_leaders_and_then_lets_the_broker_stop() -> None:
    first = after(ev.ControlledShutdown(1))
    assert (orders(first).leader, orders(first).isr) == (2, (2, 3))
    assert (first.state.brokers[1].fenced, first.state.brokers[1].in_controlled_shutdown) == (False, True)
    second = handle(first.state, ev.ControlledShutdown(1))
    assert (second.state.brokers[1].fenced, second.state.brokers[1].in_controlled_shutdown) == (True, True)


def test_a_broker_that_leads_nothing_stops_at_once() -> None:
    stopped = after(ev.ControlledShutdown(3)).state.brokers[3]
    assert (stopped.fenced, stopped.in_controlled_shutdown) == (True, False)


def test_a_broker_that_still_leads_goes_on_stopping() -> None:
    """Its leadership cannot be moved within the same heartbeat twice: the second one waits."""
    state = after(ev.ControlledShutdown(1)).state
    leads_again = state.with_partition(replace(state.partitions[ORDERS], leader=1, isr=(1, 2, 3)))
    waiting = handle(leads_again, ev.ControlledShutdown(1))
    assert (waiting.state, waiting.changes) == (leads_again, ())


def test_a_fenced_broker_stops_at_once_although_it_leads_on_paper() -> None:
    state = after().state
    fenced = state.with_broker(1, replace(state.brokers[1], fenced=True))
    stopped = handle(fenced, ev.ControlledShutdown(1)).state.brokers[1]
    assert (stopped.fenced, stopped.in_controlled_shutdown) == (True, False)


def test_unfencing_elects_by_the_topics_config_even_one_whose_directory_is_lost() -> None:
    """Not that one: it stays out of the election that its own heartbeat runs."""
    lost = (ev.BrokerFenced(3), ev.BrokerFenced(2), ev.DirectoryFailed(1), ev.BrokerFenced(1))
    state = after(*lost).state
    assert (state.partitions[ORDERS].leader, state.partitions[ORDERS].elr) == (None, (1, 2))
    returned = handle(state, ev.BrokerUnfenced(1))
    assert orders(returned).leader is None
    assert returned.state.brokers[1].fenced is False
    assert orders(handle(returned.state, ev.BrokerUnfenced(2))).leader == 2


def test_another_brokers_return_elects_nobody_in_a_lost_directory_but_unclean_elections_take_the_rest() -> None:
    allowed = ev.ConfigWritten("orders", unclean_leader_election=True)
    dead = after(*LEADERLESS, replicas=(1, 2)).state
    state = handle(dead, allowed).state
    lost = replace(state.partitions[ORDERS], offline_replicas=(1,), elr=(1,))
    live = state.with_partition(lost).with_broker(2, replace(state.brokers[2], fenced=False))
    assert orders(handle(live, ev.BrokerUnfenced(1))).leader == 2


def test_an_unregistered_broker_leaves_isr_and_leadership_and_stays_in_the_elr() -> None:
    gone = after(ev.BrokerUnregistered(1))
    assert 1 not in gone.state.brokers
    assert (orders(gone).leader, orders(gone).isr) == (2, (2, 3))
    below = after(ev.BrokerFenced(3), ev.BrokerFenced(2), ev.BrokerUnregistered(2))
    assert (orders(below).isr, orders(below).elr) == ((1,), (2,))


def test_unregistering_an_elr_member_runs_an_election() -> None:
    """A live last known leader, or as here a live ELR member, is elected by it."""
    state = after(*LEADERLESS).state
    assert state.partitions[ORDERS].leader is None
    live = state.with_broker(2, replace(state.brokers[2], fenced=False))
    assert orders(handle(live, ev.BrokerUnregistered(1))).leader == 2


def test_a_failed_directory_takes_out_its_own_replicas_and_no_other() -> None:
    two = (ev.TopicCreated("stock", ((1, 2),)), ev.TopicCreated("paper", ((2, 3),)))
    stock, paper = TopicPartition("stock", 0), TopicPartition("paper", 0)
    some = after(*two, ev.DirectoryFailed(1, frozenset({ORDERS, paper}))).state
    assert [some.partitions[address].offline_replicas for address in (ORDERS, stock, paper)] == [(1,), (), ()]
    again = handle(some, ev.DirectoryFailed(1))
    assert [change.after.address for change in again.changes] == [stock]
    assert [again.state.partitions[address].offline_replicas for address in (ORDERS, stock, paper)] == [(1,), (1,), ()]


def test_a_registration_tells_which_directories_are_lost_and_which_are_back() -> None:
    lost = ev.BrokerRegistered(1, clean=True, lost_directories=frozenset({ORDERS, TopicPartition("paper", 0)}))
    paper = ev.TopicCreated("paper", ((2, 3),))
    away = after(paper, ev.DirectoryFailed(3), lost).state
    assert away.partitions[ORDERS].offline_replicas == (3, 1)
    assert away.partitions[TopicPartition("paper", 0)].offline_replicas == (3,)
    assert handle(away, lost).state.partitions[ORDERS].offline_replicas == (3, 1)
    back = handle(away, ev.BrokerRegistered(1, clean=True)).state
    assert back.partitions[ORDERS].offline_replicas == (3,)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (ev.DirectoryAssigned(1, NOWHERE), "UNKNOWN_TOPIC_ID"),
        (ev.DirectoryAssigned(1, TopicPartition("orders", 1)), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ev.DirectoryAssigned(4, ORDERS), "NOT_LEADER_OR_FOLLOWER"),
        (ev.DirectoryAssigned(1, ORDERS), "NONE"),
    ],
)
def test_a_directory_assignment_is_answered(asked: ev.DirectoryAssigned, error: str) -> None:
    known = after()
    answered = handle(known.state, asked)
    assert answered.answers == {asked.address: error}
    if error != "NONE":
        assert answered.state == known.state


def test_a_directory_assignment_before_4_3_elects_as_though_elr_were_off() -> None:
    """Then the last known leader, who needs ELR, is not elected by it."""
    state = after(rules=ELR_4_0).state
    known = replace(state.partitions[ORDERS], leader=None, isr=(), elr=(), last_known_elr=(1,))
    assert orders(handle(state.with_partition(known), ev.DirectoryAssigned(2, ORDERS))).leader is None


ALL = Circumstances(frozenset({1, 2, 3}), 2, ELR_4_3)
HEALTHY = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2, 3), (), (), partition_epoch=9)


@pytest.mark.parametrize("leaves", [broker_unregistered, directory_failed])
def test_whoever_leaves_leaves_the_isr_and_nobody_else_does(leaves: object) -> None:
    assert callable(leaves)
    change: Change = leaves(HEALTHY, 1, ALL)
    assert (change.after.leader, change.after.isr) == (2, (2, 3))
    follower: Change = leaves(HEALTHY, 3, ALL)
    assert (follower.after.leader, follower.after.isr) == (1, (1, 2))


def test_a_return_is_told_from_the_state_before_it_to_the_state_after_both_runs() -> None:
    """3 comes back into an ISR of its own: it leaves in one run, and the other may elect it."""
    waiting = replace(HEALTHY, leader=None, isr=(3,), elr=(1,), last_known_elr=(3,))
    returned = broker_returns(waiting, 3, replace(ALL, electable=frozenset()), clean=False)
    assert returned.before == waiting
    assert (returned.after.leader, returned.after.isr, returned.after.elr) == (None, (), (1,))
    clean = broker_returns(waiting, 3, replace(ALL, electable=frozenset()), clean=True)
    assert clean.before == waiting
    assert clean.after.leader == 3


@pytest.mark.parametrize(
    ("replicas", "asked", "error"),
    [
        ((1, 2), ev.DirectoryFailed(1, frozenset({ORDERS})), "NONE"),
        ((2, 3), ev.DirectoryFailed(1, frozenset({ORDERS})), "UNKNOWN_SERVER_ERROR"),
        ((1, 2), ev.DirectoryFailed(1), "UNKNOWN_SERVER_ERROR"),
        ((1, 2), ev.DirectoryFailed(1, frozenset({NOWHERE})), "NONE"),
    ],
)
def test_a_directory_with_a_deleted_replica_fails_the_controller_but_not_one_with_a_new_replica_of_that_name(
    replicas: tuple[int, ...], asked: ev.DirectoryFailed, error: str
) -> None:
    gone = (ev.BrokerFenced(1), ev.TopicDeleted("orders"), ev.BrokerUnfenced(1))
    made_again = ev.TopicCreated("orders", (replicas,))
    assert after(*gone, made_again, asked, replicas=(1,)).error == error
