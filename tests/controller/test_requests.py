"""What the controller answers to leaders and operators, and what it does about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kelr.controller import ELR_4_3, KIP966_BALANCED, KRAFT, Configs, ControllerState, Election, Handled, RuleSet
from kelr.controller import events as ev
from kelr.controller.machine import handle
from kelr.model import PartitionState, TopicPartition

ORDERS = TopicPartition("orders", 0)
NOWHERE = TopicPartition("nowhere", 0)
UP = tuple(
    event for broker in (1, 2, 3, 4) for event in (ev.BrokerRegistered(broker, clean=False), ev.BrokerUnfenced(broker))
)


def after(
    *events: ev.Event,
    rules: RuleSet = ELR_4_3,
    replicas: tuple[int, ...] = (1, 2, 3),
    cluster: Configs = Configs(min_isr=2),  # noqa: B008 - a frozen value
) -> Handled:
    """Four live brokers and a healthy topic of one partition, and what the last of the events made of it."""
    handled = Handled(ControllerState(rules, cluster=cluster))
    for event in (*UP, ev.TopicCreated("orders", (replicas,)), *events):
        handled = handle(handled.state, event)
    return handled


def orders(handled: Handled) -> PartitionState:
    return handled.state.partitions[ORDERS]


def altered(*isr: int, **how: Any) -> ev.PartitionAltered:
    return ev.PartitionAltered(ORDERS, 1, isr, **how)


# All restart uncleanly; the last leader is elected as it is, and has to tell of its recovery.
RECOVERING = (
    ev.BrokerRegistered(2, clean=False),
    ev.BrokerRegistered(3, clean=False),
    ev.BrokerRegistered(1, clean=False),
    ev.BrokerUnfenced(1),
    ev.BrokerUnfenced(2),
)


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ((altered(1, 2),), "NONE"),
        ((altered(1, 2, leader_epoch=0, partition_epoch=0),), "NONE"),
        ((altered(1, 2, leader_epoch=1),), "NOT_CONTROLLER"),
        ((altered(1, 2, partition_epoch=1),), "NOT_CONTROLLER"),
        ((ev.BrokerFenced(1), altered(1, 2, leader_epoch=0)), "FENCED_LEADER_EPOCH"),
        ((ev.PartitionAltered(ORDERS, 2, (1, 2)),), "INVALID_REQUEST"),
        ((ev.BrokerFenced(3), altered(1, partition_epoch=0)), "INVALID_UPDATE_VERSION"),
        ((altered(1, 2, 2),), "INVALID_REQUEST"),
        ((altered(1, 4),), "INVALID_REQUEST"),
        ((altered(2, 3),), "INVALID_REQUEST"),
        ((altered(1, 2, recovering=True),), "INVALID_REQUEST"),
        ((altered(1, recovering=True),), "INVALID_REQUEST"),
        ((*RECOVERING, altered(1, recovering=True)), "NONE"),
        ((*RECOVERING, altered(1, 2, recovering=True)), "INVALID_REQUEST"),
        ((*RECOVERING, altered(1, 2)), "NONE"),
        ((ev.BrokerFenced(3), altered(1, 2, 3)), "INELIGIBLE_REPLICA"),
        ((ev.BrokerFenced(3), ev.BrokerUnregistered(3), altered(1, 2, 3)), "INELIGIBLE_REPLICA"),
        ((ev.ControlledShutdown(3), altered(1, 2, 3)), "INELIGIBLE_REPLICA"),
        ((altered(1, 2, 3, member_epochs={3: 3}),), "NONE"),
        ((altered(1, 2, 3, member_epochs={3: 2}),), "INELIGIBLE_REPLICA"),
        ((ev.DirectoryFailed(1), ev.PartitionAltered(ORDERS, 2, (2, 3))), "NONE"),
    ],
)
def test_alter_partition_is_answered(events: tuple[ev.Event, ...], error: str) -> None:
    before, asked = after(*events[:-1]), after(*events)
    assert (asked.error, asked.answers) == ("NONE", {ORDERS: error})
    if error != "NONE":
        assert asked.state == before.state


def test_alter_partition_of_another_incarnation_is_refused_as_a_whole() -> None:
    known = after()
    for asked in (altered(1, 2, leader_broker_epoch=9), ev.PartitionAltered(ORDERS, 9, (9,))):
        refused = handle(known.state, asked)
        assert (refused.error, refused.state, refused.answers) == ("STALE_BROKER_EPOCH", known.state, {})
    unknown = handle(known.state, ev.PartitionAltered(NOWHERE, 1, (1,)))
    assert (unknown.answers, unknown.state) == ({NOWHERE: "UNKNOWN_TOPIC_ID"}, known.state)
    right = known.state.brokers[1].epoch
    assert handle(known.state, altered(1, 2, leader_broker_epoch=right)).answers == {ORDERS: "NONE"}


def test_a_recovered_leader_is_not_recovering_any_more() -> None:
    assert orders(after(*RECOVERING)).recovering is True
    assert orders(after(*RECOVERING, altered(1, recovering=True))).recovering is True
    assert orders(after(*RECOVERING, altered(1))).recovering is False


def test_an_isr_report_can_cost_the_sender_its_leadership() -> None:
    """The leader's directory failed and the controller knows that of another partition's account only afterwards."""
    state = after(ev.DirectoryFailed(1)).state
    led = replace(state.partitions[ORDERS], leader=1, isr=(1, 2, 3))
    asked = handle(state.with_partition(led), altered(1, 2, 3))
    assert asked.answers == {ORDERS: "NEW_LEADER_ELECTED"}
    assert orders(asked).leader == 2


STOCK = TopicPartition("stock", 0)
# The preferred replica of orders is live and in sync again, and does not lead; that of stock leads.
LED_BY_ANOTHER = (
    ev.TopicCreated("stock", ((2, 1),)),
    ev.BrokerFenced(1),
    ev.BrokerUnfenced(1),
    ev.PartitionAltered(ORDERS, 2, (1, 2, 3)),
)


def test_elect_leaders_by_name_answers_for_each() -> None:
    asked = after(*LED_BY_ANOTHER, ev.LeadersElected(Election.PREFERRED, (NOWHERE, STOCK, ORDERS)))
    assert asked.answers == {
        NOWHERE: "UNKNOWN_TOPIC_OR_PARTITION",
        STOCK: "ELECTION_NOT_NEEDED",
        ORDERS: "NONE",
    }
    assert orders(asked).leader == 1


def test_elect_leaders_of_all_partitions_is_silent_about_those_that_need_none() -> None:
    asked = after(*LED_BY_ANOTHER, ev.LeadersElected(Election.PREFERRED))
    assert asked.answers == {ORDERS: "NONE"}
    assert orders(asked).leader == 1


def test_the_unclean_task_goes_by_each_topics_config() -> None:
    down = (ev.BrokerFenced(1), ev.ConfigWritten("orders", min_isr=1))
    allowed = ev.ConfigWritten("orders", unclean_leader_election=True)
    assert orders(after(*down, ev.UncleanElectionTask(), replicas=(1,))).leader is None
    state = after(*down, allowed, replicas=(1,)).state
    assert state.partitions[ORDERS].leader is None
    returned = state.with_broker(1, replace(state.brokers[1], fenced=False))
    assert orders(handle(returned, ev.UncleanElectionTask())).leader == 1


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (ev.Reassigned(NOWHERE, (1,)), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ev.Reassigned(NOWHERE, None), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ev.Reassigned(ORDERS, ()), "INVALID_REPLICA_ASSIGNMENT"),
        (ev.Reassigned(ORDERS, (1, 1)), "INVALID_REPLICA_ASSIGNMENT"),
        (ev.Reassigned(ORDERS, (1, 9)), "INVALID_REPLICA_ASSIGNMENT"),
        (ev.Reassigned(ORDERS, None), "NO_REASSIGNMENT_IN_PROGRESS"),
        (ev.Reassigned(ORDERS, (1, 2, 4)), "NONE"),
    ],
)
def test_a_reassignment_is_answered(asked: ev.Reassigned, error: str) -> None:
    known = after()
    answered = handle(known.state, asked)
    assert answered.answers == {asked.address: error}
    if error != "NONE":
        assert answered.state == known.state


def test_a_cancelled_reassignment_leaves_the_replicas_from_before() -> None:
    moving = after(ev.Reassigned(ORDERS, (4, 1, 2)))
    assert (orders(moving).replicas, orders(moving).adding, orders(moving).removing) == ((4, 1, 2, 3), (4,), (3,))
    cancelled = handle(moving.state, ev.Reassigned(ORDERS, None))
    assert cancelled.answers == {ORDERS: "NONE"}
    state = orders(cancelled)
    assert (state.replicas, state.isr, state.adding, state.removing) == ((1, 2, 3), (1, 2, 3), (), ())


@pytest.mark.parametrize("moved", [(1, 2, 3, 4), (1, 2)])
def test_a_reassignment_that_only_adds_or_only_removes_can_be_cancelled(moved: tuple[int, ...]) -> None:
    state = after(ev.BrokerFenced(1), ev.BrokerFenced(2), ev.Reassigned(ORDERS, moved)).state
    assert state.partitions[ORDERS].adding or state.partitions[ORDERS].removing
    assert handle(state, ev.Reassigned(ORDERS, None)).answers == {ORDERS: "NONE"}


def _nobody_of_before_in_sync(rules: RuleSet = ELR_4_3) -> ControllerState:
    """4 is being added, leads, and is the whole ISR."""
    state = after(ev.Reassigned(ORDERS, (4, 1, 2, 3)), rules=rules).state
    return state.with_partition(replace(state.partitions[ORDERS], leader=4, isr=(4,)))


def test_cancelling_with_an_empty_isr_needs_unclean_elections() -> None:
    """Then the first old replica is put into the ISR, whoever it is."""
    state = _nobody_of_before_in_sync()
    refused = handle(state, ev.Reassigned(ORDERS, None))
    assert (refused.answers, refused.state) == ({ORDERS: "INVALID_REPLICA_ASSIGNMENT"}, state)
    allowed = handle(state, ev.ConfigWritten("orders", unclean_leader_election=True)).state
    cancelled = handle(allowed, ev.Reassigned(ORDERS, None))
    assert cancelled.answers == {ORDERS: "NONE"}
    assert (orders(cancelled).replicas, orders(cancelled).isr, orders(cancelled).leader) == ((1, 2, 3), (1,), 1)


def test_the_kip_asks_min_isr_of_a_cancelled_reassignment() -> None:
    for left, error in (((1,), "INVALID_REPLICA_ASSIGNMENT"), ((1, 2), "NONE")):
        state = after(ev.Reassigned(ORDERS, (4, 1, 2, 3)), rules=KIP966_BALANCED).state
        fewer = state.with_partition(replace(state.partitions[ORDERS], isr=left))
        assert handle(fewer, ev.Reassigned(ORDERS, None)).answers == {ORDERS: error}


@pytest.mark.parametrize(
    ("assignment", "error"),
    [
        (((1, 2), (2, 3)), "NONE"),
        (((1, 2), (3,)), "INVALID_REPLICA_ASSIGNMENT"),
        (((1, 1),), "INVALID_REPLICA_ASSIGNMENT"),
        (((1, 9),), "INVALID_REPLICA_ASSIGNMENT"),
        (((4,),), "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
def test_a_new_topic_is_answered(assignment: tuple[tuple[int, ...], ...], error: str) -> None:
    known = after(ev.BrokerFenced(4))
    created = handle(known.state, ev.TopicCreated("stock", assignment))
    assert created.error == error
    if error != "NONE":
        assert created.state == known.state


def test_a_new_partition_knows_all_of_itself() -> None:
    created = after(ev.BrokerFenced(1), ev.TopicCreated("stock", ((1, 2),))).state
    assert created.partitions[TopicPartition("stock", 0)] == PartitionState(
        "stock", 0, 2, 0, (1, 2), (2,), (), (), (), 0, (), (), recovering=False
    )
    assert after(ev.TopicCreated("orders", ((1,),))).error == "TOPIC_ALREADY_EXISTS"


def test_a_deleted_topic_takes_its_configs_along_and_leaves_those_of_others() -> None:
    own = (
        ev.TopicCreated("stock", ((1, 2),)),
        ev.ConfigWritten("stock", min_isr=1),
        ev.ConfigWritten("orders", min_isr=3),
    )
    deleted = after(*own, ev.TopicDeleted("orders"))
    assert set(deleted.state.topics) == {"stock"}
    assert set(deleted.state.partitions) == {TopicPartition("stock", 0)}
    assert handle(deleted.state, ev.TopicDeleted("orders")).error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_configs_are_written_and_taken_back_one_by_one() -> None:
    both = (ev.ConfigWritten("orders", min_isr=3), ev.ConfigWritten("orders", unclean_leader_election=True))
    assert after(*both).state.topics["orders"] == Configs(3, True)
    kept = after(*both, ev.ConfigDeleted("orders", min_isr=True)).state.topics["orders"]
    assert kept == Configs(None, True)
    kept = after(*both, ev.ConfigDeleted("orders", unclean_leader_election=True)).state.topics["orders"]
    assert kept == Configs(3, None)
    reverse = (ev.ConfigWritten("orders", unclean_leader_election=True), ev.ConfigWritten("orders", min_isr=3))
    assert after(*reverse).state.topics["orders"] == Configs(3, True)
    again = ev.ConfigWritten("orders", unclean_leader_election=False)
    assert after(*both, again).state.topics["orders"] == Configs(3, False)


@pytest.mark.parametrize("asked", [ev.ConfigWritten("nowhere", min_isr=1), ev.ConfigDeleted("nowhere", min_isr=True)])
def test_configs_of_an_unknown_topic_are_refused(asked: ev.Event) -> None:
    known = after()
    refused = handle(known.state, asked)
    assert (refused.error, refused.state) == ("UNKNOWN_TOPIC_OR_PARTITION", known.state)


def test_the_cluster_wide_min_isr_cannot_be_taken_back_while_elr_is_on() -> None:
    asked = ev.ConfigDeleted(None, min_isr=True)
    refused = after(asked)
    assert (refused.error, refused.state) == ("INVALID_CONFIG", after().state)
    assert after(asked, rules=KRAFT).state.cluster == Configs()
    unclean = (
        ev.ConfigWritten(None, unclean_leader_election=True),
        ev.ConfigDeleted(None, unclean_leader_election=True),
    )
    assert after(*unclean).state.cluster == Configs(min_isr=2)


# Two partitions with an ELR, of topics of their own.
BELOW = (ev.TopicCreated("stock", ((1, 2, 3),)), ev.BrokerFenced(3), ev.BrokerFenced(2))


@pytest.mark.parametrize(
    ("asked", "cleared"),
    [
        ((ev.ConfigWritten("orders", min_isr=3),), {"orders"}),
        ((ev.ConfigWritten("orders", min_isr=3), ev.ConfigWritten("orders", min_isr=3)), {"orders"}),
        ((ev.ConfigWritten(None, min_isr=2),), {"orders", "stock"}),
        ((ev.ConfigDeleted("orders", min_isr=True),), set()),
        ((ev.ConfigDeleted("orders", unclean_leader_election=True),), set()),
        ((ev.ConfigWritten("orders", unclean_leader_election=True),), set()),
        ((ev.ConfigWritten(None, unclean_leader_election=True),), set()),
        ((ev.ConfigDeleted(None, unclean_leader_election=True),), set()),
    ],
)
def test_which_writes_of_min_isr_clear_whose_elr(asked: tuple[ev.Event, ...], cleared: set[str]) -> None:
    state = after(*BELOW, *asked).state
    assert {address.topic for address, partition in state.partitions.items() if not partition.elr} == cleared


def test_taking_back_a_topics_min_isr_clears_its_elr_alone() -> None:
    own = (ev.ConfigWritten("orders", min_isr=2), *BELOW)
    assert orders(after(*own)).elr == (2,)
    taken_back = after(*own, ev.ConfigDeleted("orders", min_isr=True)).state
    assert [partition.elr for _, partition in sorted(taken_back.partitions.items())] == [(), (2,)]


@pytest.mark.parametrize(("static", "pinned"), [(Configs(), 1), (Configs(min_isr=3), 3)])
def test_turning_elr_on_pins_min_isr_cluster_wide(static: Configs, pinned: int) -> None:
    off = replace(ControllerState(KRAFT), static=static)
    on = handle(off, ev.ElrFeature(on=True)).state
    assert (on.rules.elr, on.cluster) == (True, Configs(min_isr=pinned))
    set_before = replace(off, cluster=Configs(min_isr=2))
    assert handle(set_before, ev.ElrFeature(on=True)).state.cluster == Configs(min_isr=2)
    off_again = handle(off, ev.ElrFeature(on=False)).state
    assert (off_again.rules.elr, off_again.cluster) == (False, Configs())


def test_a_deleted_topic_is_forgotten_for_brokers_that_its_elr_still_names() -> None:
    """A written min ISR left an entry of 2 behind; being in the ELR again when the topic goes, 2 takes it along."""
    cleared = (ev.BrokerFenced(3), ev.BrokerFenced(2), ev.ConfigWritten("orders", min_isr=3))
    again = (ev.BrokerUnfenced(2), altered(1, 2), ev.BrokerFenced(2))
    assert after(*cleared, ev.TopicDeleted("orders")).state.elr_index.deleted == {2}
    assert after(*cleared, *again).state.elr_index.stale
    assert after(*cleared, *again, ev.TopicDeleted("orders")).state.elr_index.deleted == frozenset()
