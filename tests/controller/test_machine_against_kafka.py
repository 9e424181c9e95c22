"""Corners in which the state machine once differed from Apache's controller, and what Apache's does there.

`tests/differential` compares the same histories with Kafka itself; here they need no Java.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_1, ELR_4_3, KIP966_BALANCED, RuleSet
from kelr.controller import events as ev
from kelr.controller.machine import handle
from kelr.controller.reach import Handled
from kelr.controller.state import Configs, ControllerState
from kelr.model import PartitionState, TopicPartition

ORDERS = TopicPartition("orders", 0)


def _after(*events: ev.Event, rules: RuleSet = ELR_4_3, replicas: tuple[int, ...] = (1, 2, 3)) -> Handled:
    """A cluster of live brokers with min ISR 2 and one topic, and what the last of the events made of it."""
    state = ControllerState(rules, cluster=Configs(min_isr=2))
    handled = Handled(state)
    up = [
        event for broker in (1, 2, 3) for event in (ev.BrokerRegistered(broker, clean=False), ev.BrokerUnfenced(broker))
    ]
    for event in (*up, ev.TopicCreated("orders", (replicas,)), *events):
        handled = handle(handled.state, event)
    return handled


def _orders(handled: Handled) -> PartitionState:
    return handled.state.partitions[ORDERS]


@pytest.mark.parametrize(
    "event",
    [ev.BrokerUnfenced(9), ev.ControlledShutdown(9), ev.DirectoryFailed(9), ev.DirectoryAssigned(9, ORDERS)],
)
def test_a_broker_that_is_not_registered_is_told_that_its_epoch_is_stale(event: ev.Event) -> None:
    assert _after(event).error == "STALE_BROKER_EPOCH"


def test_a_request_by_topic_id_tells_an_unknown_topic_from_an_unknown_partition() -> None:
    known, unknown = TopicPartition("orders", 7), TopicPartition("other", 0)
    assert _after(ev.PartitionAltered(known, 1, (1,))).answers == {known: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert _after(ev.PartitionAltered(unknown, 1, (1,))).answers == {unknown: "UNKNOWN_TOPIC_ID"}


def test_a_directory_that_the_controller_knows_already_is_no_record() -> None:
    assert _orders(_after(ev.DirectoryAssigned(1, ORDERS))).partition_epoch == 1
    assert _orders(_after(ev.DirectoryAssigned(1, ORDERS, moved=False))).partition_epoch == 0


def test_a_replica_in_a_directory_that_has_failed_leaves_the_isr_in_a_second_record() -> None:
    state = _orders(_after(ev.DirectoryAssigned(1, ORDERS, online=False)))
    assert (state.leader, state.isr, state.offline_replicas, state.partition_epoch) == (2, (2, 3), (1,), 2)


def test_a_replica_that_comes_back_to_the_assignment_has_a_directory_that_works() -> None:
    lost = (ev.DirectoryFailed(3), ev.Reassigned(ORDERS, (1, 2)))
    assert _orders(_after(*lost)).offline_replicas == ()
    assert _orders(_after(*lost, ev.Reassigned(ORDERS, (1, 2, 3)))).offline_replicas == ()


@pytest.mark.parametrize(("rules", "elr"), [(ELR_4_1, ()), (ELR_4_3, (2,))])
def test_a_directory_assignment_empties_the_elr_before_4_3(rules: RuleSet, elr: tuple[int, ...]) -> None:
    events = (ev.BrokerFenced(3), ev.BrokerFenced(2), ev.DirectoryAssigned(1, ORDERS))
    assert _orders(_after(*events, rules=rules)).elr == elr


def _cleared(topic_deleted: bool = False) -> tuple[ev.Event, ...]:
    """1 is fenced out of an ISR below min ISR, and a min ISR write takes it out of the ELR."""
    deleted = (ev.TopicDeleted("orders"),) if topic_deleted else ()
    return ev.BrokerFenced(3), ev.BrokerFenced(1), ev.ConfigWritten("orders", 3), *deleted


def test_a_cleared_elr_that_is_filled_again_is_looked_at_once_for_each_time() -> None:
    again = (ev.BrokerUnfenced(1), ev.PartitionAltered(ORDERS, 2, (2, 1)), ev.BrokerFenced(1))
    before = _orders(_after(*_cleared(), *again))
    after = _orders(_after(*_cleared(), *again, ev.BrokerRegistered(1, clean=False)))
    assert (before.elr, after.elr) == ((1,), ())
    assert after.partition_epoch == (before.partition_epoch or 0) + 2


def test_an_entry_of_another_partition_becomes_one_of_partition_0() -> None:
    second = TopicPartition("pair", 1)
    events = (
        ev.TopicCreated("pair", ((3, 2), (2, 1))),
        ev.BrokerFenced(1),
        ev.ConfigWritten("pair", 2),
        ev.BrokerUnfenced(1),
        ev.PartitionAltered(second, 2, (2, 1)),
        ev.BrokerFenced(1),
    )
    index = _after(*events).state.elr_index
    assert (index.count(second, 1), index.count(TopicPartition("pair", 0), 1)) == (1, 0)
    back = (ev.BrokerUnfenced(1), ev.PartitionAltered(second, 2, (2, 1)))
    index = _after(*events, *back).state.elr_index
    assert (index.count(second, 1), index.count(TopicPartition("pair", 0), 1)) == (0, 1)


@pytest.mark.parametrize("event", [ev.BrokerRegistered(1, clean=False), ev.BrokerUnregistered(1)])
def test_a_broker_of_a_cleared_elr_whose_topic_is_deleted_fails_the_controller(event: ev.Event) -> None:
    failed = _after(*_cleared(topic_deleted=True), event)
    assert failed.error == "UNKNOWN_SERVER_ERROR"
    assert failed.state == _after(*_cleared(topic_deleted=True)).state
    assert _after(*_cleared(), event).error == "NONE"


def test_neither_a_clean_shutdown_nor_elr_off_meets_that_error() -> None:
    deleted = _cleared(topic_deleted=True)
    assert _after(*deleted, ev.BrokerRegistered(1, clean=True)).error == "NONE"
    assert _after(*deleted, ev.ElrFeature(on=False), ev.BrokerRegistered(1, clean=False)).error == "NONE"


def test_the_whole_kip_has_no_such_index() -> None:
    events = (*_cleared(topic_deleted=True), ev.BrokerRegistered(1, clean=False))
    assert _after(*events, rules=KIP966_BALANCED).error == "NONE"


def test_a_directory_with_a_replica_of_a_topic_deleted_without_isr_fails_the_controller() -> None:
    gone = (ev.BrokerFenced(1), ev.TopicDeleted("orders"), ev.BrokerUnfenced(1))
    assert _after(*gone, ev.DirectoryFailed(1), replicas=(1,)).error == "UNKNOWN_SERVER_ERROR"
    other = frozenset({TopicPartition("other", 0)})
    assert _after(*gone, ev.DirectoryFailed(1, other), replicas=(1,)).error == "NONE"
    live = (ev.TopicDeleted("orders"), ev.DirectoryFailed(1))
    assert _after(*live, replicas=(1,)).error == "NONE"


def test_electing_a_live_broker_that_is_no_replica_fails_the_controller() -> None:
    leaderless = replace(_orders(_after()), leader=None, replicas=(1, 2), isr=(), elr=(), last_known_elr=(3,))
    state = _after(ev.BrokerFenced(1)).state.with_partition(leaderless)
    asked = ev.Reassigned(ORDERS, (2, 1))
    assert handle(state, asked).answers == {ORDERS: "UNKNOWN_SERVER_ERROR"}
    refused = handle(state, ev.UncleanElectionTask())
    assert (refused.error, refused.state) == ("NONE", state)
    failed = handle(state, ev.BrokerUnfenced(1))
    assert (failed.error, failed.state) == ("UNKNOWN_SERVER_ERROR", state)


def test_a_controller_that_fails_forgets_the_controlled_shutdowns_that_it_had_begun() -> None:
    begun = _after(ev.ControlledShutdown(2), ev.ControlledShutdown(1)).state
    assert begun.stopping == {1}
    failed = handle(
        replace(begun, elr_index=begun.elr_index.with_cleared(ORDERS, (3,)).without_topic("orders", ())),
        ev.BrokerUnregistered(3),
    )
    assert (failed.error, failed.state.stopping) == ("UNKNOWN_SERVER_ERROR", frozenset())


def test_a_heartbeat_of_a_stopping_broker_goes_on_with_its_shutdown_whatever_it_asks_for() -> None:
    begun = _after(ev.ControlledShutdown(1))
    assert not begun.state.brokers[1].fenced
    assert handle(begun.state, ev.BrokerUnfenced(1)).state.brokers[1].fenced
