"""Restarts: what blocks a step, in which order all of them are safe, and that each step is what the machine does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_3, controller_state, handle
from kelr.engine.outages.reading import CaseReader
from kelr.engine.outages.restart_plan import Action, Keep, RestartPlan
from kelr.engine.outages.restarts import Restarts, caught_up
from kelr.engine.outages.standing import Standing
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.engine.what_if.events import events_of
from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from tests.engine.test_outages import healthy_and_not
from tests.properties import examples


def restarts_of(snapshot: Snapshot, keep: Keep) -> Restarts:
    page = CaseReader(snapshot.cluster, ELR_4_3).page(
        snapshot.partitions, snapshot.configs, snapshot.first_partition_replicas
    )
    found = Restarts(snapshot.cluster, keep)
    for state, seen in page.partitions(lambda _: True):
        found.add(seen, 1, (state.address,))
    return found


def cluster(
    *partitions: tuple[tuple[int, ...], tuple[int, ...]],
    min_isr: int | None = 2,
    down: Sequence[int] = (),
    racks: dict[int, str] | None = None,
) -> Snapshot:
    """Brokers 1 to 6 and one topic, its partitions as (replicas, ISR)."""
    brokers = tuple(
        Broker(one, BrokerStatus.FENCED if one in down else BrokerStatus.LIVE, rack=(racks or {}).get(one))
        for one in range(1, 7)
    )
    states = tuple(
        PartitionState("orders", number, isr[0] if isr else None, 5, replicas, isr, (), (), ())
        for number, (replicas, isr) in enumerate(partitions)
    )
    config = TopicConfig(min_isr, ConfigSource.TOPIC, False, ConfigSource.TOPIC)
    of = Cluster("test", brokers, brokers_source="DescribeCluster v2")
    return Snapshot(0, of, states, {"orders": config}, first_partition_replicas={"orders": len(states[0].replicas)})


def order_of(plan: RestartPlan) -> list[int]:
    return [step.broker for step in plan.steps]


def test_a_restart_mends_no_disk() -> None:
    """The broker of a failed log directory starts again, and its replica does not."""
    snapshot = cluster(((1, 2, 3), (1, 2)))
    partition = replace(snapshot.partitions[0], offline_replicas=(3,))
    restarts = restarts_of(replace(snapshot, partitions=(partition,)), Keep.MIN_ISR)
    for plan in (restarts.in_order([3, 1]), restarts.safe_order([1, 2, 3])):
        assert not plan.safe
        (blocked,) = next(step for step in plan.steps if step.broker == 1).blocked
        assert (blocked.standing, blocked.waits_for, blocked.failed) == (Standing.UNDER_MIN_ISR, (3,), (3,))
    down = cluster(((1, 2, 3), (1, 2)), down=(3,))  # what is offline with its broker comes back with it
    down = replace(down, partitions=(replace(down.partitions[0], offline_replicas=(3,)),))
    assert restarts_of(down, Keep.MIN_ISR).in_order([3, 1]).safe


def test_a_healthy_cluster_is_restarted_rack_by_rack_and_the_controller_last() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
    snapshot = cluster(((1, 2, 3), (1, 2, 3)), ((4, 5, 6), (4, 5, 6)), ((1, 5, 6), (1, 5, 6)), racks=racks)
    plan = restarts_of(snapshot, Keep.MIN_ISR).safe_order(range(1, 7), controller=4)
    assert plan.safe
    assert order_of(plan) == [1, 2, 5, 3, 6, 4]
    assert [step.reason for step in plan.steps][-1] == "last: it is the active controller"


def test_a_replica_that_is_out_of_sync_goes_first_and_frees_the_others() -> None:
    snapshot = cluster(((1, 2, 3), (1, 2)))
    restarts = restarts_of(snapshot, Keep.MIN_ISR)
    assert not restarts.in_order([1]).safe
    (blocked,) = restarts.in_order([1]).steps[0].blocked
    assert (blocked.standing, blocked.already, blocked.waits_for) == (Standing.UNDER_MIN_ISR, False, (3,))
    assert blocked.examples == (TopicPartition("orders", 0),)
    plan = restarts.safe_order([1, 2, 3])
    assert plan.safe
    assert order_of(plan)[0] == 3


def test_a_broker_that_is_down_is_started_first() -> None:
    plan = restarts_of(cluster(((1, 2, 3), (1, 2)), down=[3]), Keep.MIN_ISR).safe_order([1, 2, 3])
    assert plan.safe
    assert (plan.steps[0].broker, plan.steps[0].action) == (3, Action.START)
    assert {step.action for step in plan.steps[1:]} == {Action.RESTART}


def test_one_replica_alone_forbids_its_brokers_restart() -> None:
    plan = restarts_of(cluster(((1,), (1,)), min_isr=1), Keep.LEADER).in_order([1, 2])
    first, second = plan.steps
    assert second.safe
    (blocked,) = first.blocked
    assert (blocked.standing, blocked.single) == (Standing.LEADERLESS, True)


def test_min_isr_of_all_replicas_forbids_unless_only_a_leader_is_to_be_kept() -> None:
    snapshot = cluster(((1, 2, 3), (1, 2, 3)), min_isr=3)
    assert not restarts_of(snapshot, Keep.MIN_ISR).in_order([2]).safe
    assert restarts_of(snapshot, Keep.LEADER).in_order([2]).safe


def test_an_unknown_min_isr_is_not_taken_for_met() -> None:
    snapshot = cluster(((1, 2, 3), (1, 2, 3)), min_isr=None)
    (blocked,) = restarts_of(snapshot, Keep.MIN_ISR).in_order([2]).steps[0].blocked
    assert blocked.standing is Standing.MIN_ISR_UNKNOWN


def test_a_partition_under_min_isr_blocks_only_its_own_brokers() -> None:
    snapshot = cluster(((1, 2, 3), (1,)), ((4, 5, 6), (4, 5, 6)))
    plan = restarts_of(snapshot, Keep.MIN_ISR).in_order([4, 1])
    assert [step.safe for step in plan.steps] == [True, False]
    assert {blocked.standing for blocked in plan.unhealthy} == {Standing.UNDER_MIN_ISR}


@examples(60)
@given(healthy_and_not(), st.permutations(range(1, 6)))
def test_a_plan_is_what_the_machine_makes_of_the_steps(drawn: Snapshot, order: list[int]) -> None:
    """Each step's verdict is the worst that any partition comes to in the whole cluster's state machine."""
    snapshot = drawn
    plan = restarts_of(snapshot, Keep.LEADER).in_order(order)
    state = controller_state(snapshot, ELR_4_3)
    for broker, step in zip(order, plan.steps, strict=True):
        before = state
        ways = (Happening.RETURNS_UNCLEAN,) if step.action is Action.START else (Happening.STOPS, Happening.RETURNS)
        leaderless: list[PartitionState] = []
        for way in ways:
            for event in events_of(Assumption(way, broker=broker), state, snapshot.cluster):
                state = handle(state, event).state
            if way is Happening.STOPS:
                leaderless = [
                    partition
                    for partition in state.partitions.values()
                    if broker in partition.replicas and partition.leader is None
                ]
        count = sum(one.count for one in step.blocked if one.standing is Standing.LEADERLESS)
        unknown = sum(one.count for one in step.blocked if one.standing is not Standing.LEADERLESS)
        assert count <= len(leaderless) <= count + unknown
        for address, partition in before.partitions.items():
            names = (broker,) if partition.leader is not None else range(1, 6)
            alone = replace(state, partitions={address: state.partitions[address]})
            if broker in partition.replicas:
                after = caught_up(alone, names).partitions[address]
                state = state.with_partition(after)
