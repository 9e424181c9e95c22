"""What holds of a running cluster whatever is done to it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import (
    ELR_4_1,
    ELR_4_3,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    KRAFT,
    RuleSet,
)
from kelr.model import TopicPartition
from kelr.simulation import SimulatedCluster
from kelr.simulation.cluster import altered_together
from kelr.simulation.partition_map import PartitionMap
from kelr.simulation.replication import caught_up
from kelr.simulation.running import RunningCluster
from tests.properties import examples
from tests.simulation.running_lives import HARMLESS, LOSSY, PARTITIONS, Verb, answer_all, do, running, verbs

RULES = (KRAFT, ELR_4_1, ELR_4_3, KIP966_BALANCED, KIP966_AGGRESSIVE, KIP966_NONE)
LOSE_NOTHING = (KRAFT, ELR_4_1, ELR_4_3, KIP966_BALANCED, KIP966_NONE)


def well_formed(cluster: RunningCluster) -> None:
    """ISR, ELR and leader are what a controller may have on record; and nothing stays due."""
    controller = cluster.cluster.controller
    for address in PARTITIONS:
        state = controller.partitions[address]
        assert set(state.isr) <= set(state.replicas)
        assert state.leader is None or state.leader in state.isr
        assert not set(state.isr) & set(state.elr or ())
        if controller.rules.elr:
            assert len(state.isr) < controller.min_isr(address.topic) or not state.elr
        logs = cluster.cluster.replication[address].logs
        assert set(logs) == set(state.replicas)
        for log in logs.values():
            assert log.start <= log.high_watermark <= log.end
            assert log.flushed <= log.end
    assert cluster.next_due_ms is None or cluster.next_due_ms > cluster.now_ms


def settled(cluster: RunningCluster) -> None:
    """Who is in reach of a leader has what it has, and is in sync where the leader can tell the controller."""
    for address in PARTITIONS:
        leader = cluster.cluster.serving(address)
        if leader is None:
            continue
        state, replication = cluster.cluster.controller.partitions[address], cluster.cluster.replication[address]
        for follower in state.replicas:
            reaches = follower != leader and cluster.linked(follower, leader) and follower not in cluster.out_of_touch
            if not reaches or not cluster.cluster.running(follower) or follower in (state.offline_replicas or ()):
                continue
            assert replication.logs[follower].end == replication.logs[leader].end
            if cluster.linked(leader, cluster.controller) and caught_up(replication, follower):
                assert follower in state.isr


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.name)
def test_states_are_well_formed_nothing_stays_due_and_followers_have_settled(rules: RuleSet) -> None:
    @examples(60)
    @given(verbs((*HARMLESS, *LOSSY)))
    def holds(done: list[Verb]) -> None:
        cluster = running(rules)
        for verb in done:
            do(cluster, verb)
            cluster.advance(cluster.now_ms)
            well_formed(cluster)
            settled(cluster)

    holds()


@pytest.mark.parametrize("rules", LOSE_NOTHING, ids=lambda rules: rules.name)
def test_no_leader_lacks_what_was_acknowledged_while_no_disk_loses_anything(rules: RuleSet) -> None:
    @examples(100)
    @given(verbs(HARMLESS))
    def holds(done: list[Verb]) -> None:
        cluster = running(rules)
        for verb in done:
            do(cluster, verb)
            for address in PARTITIONS:
                leader = cluster.cluster.serving(address)
                if leader is not None:
                    assert not cluster.cluster.replication[address].lost_by(leader)

    holds()


@pytest.mark.parametrize("rules", [ELR_4_3, KIP966_BALANCED], ids=lambda rules: rules.name)
def test_a_cluster_that_is_left_in_peace_is_healthy_again(rules: RuleSet) -> None:
    """Every broker is back, every link is whole, and nothing was lost: then all replicas are in sync."""

    @examples(60)
    @given(verbs(tuple(name for name in HARMLESS if name not in {"unregister", "reassign"})))
    def holds(done: list[Verb]) -> None:
        cluster = running(rules)
        for verb in done:
            do(cluster, verb)
        cluster.heal()
        for broker in (1, 2, 3, 4):
            cluster.go_on(broker)
            cluster.start(broker)
        for _ in range(8):
            cluster.advance(cluster.now_ms + 2_000)
            answer_all(cluster)
        for address in PARTITIONS:
            state = cluster.cluster.controller.partitions[address]
            assert state.leader is not None
            assert sorted(state.isr) == sorted(state.replicas)
        cluster.advance(cluster.now_ms + 1_000_000)
        assert cluster.next_due_ms is None

    holds()


@examples(60)
@given(verbs((*HARMLESS, *LOSSY)), st.integers(1, 5_000))
def test_one_long_wait_is_as_many_short_ones(done: list[Verb], step_ms: int) -> None:
    """Things happen in the order of their times, however rarely somebody looks at the clock."""
    patient, busy = running(ELR_4_3), running(ELR_4_3)
    for verb in done:
        do(patient, verb)
        do(busy, verb)
    end_ms = patient.now_ms + 20_000
    patient.advance(end_ms)
    while busy.now_ms < end_ms:
        busy.advance(min(end_ms, busy.now_ms + step_ms))
    assert patient.cluster.controller == busy.cluster.controller
    assert patient.cluster.replication == busy.cluster.replication


@examples(60)
@given(verbs((*HARMLESS, *LOSSY)), st.sampled_from((ELR_4_3, KIP966_BALANCED, KRAFT)))
def test_isrs_reported_together_come_to_the_same_as_one_after_the_other(done: list[Verb], rules: RuleSet) -> None:
    cluster = running(rules)
    for verb in done:
        do(cluster, verb)
    now: SimulatedCluster = cluster.cluster
    isrs = {}
    for address in PARTITIONS:
        leader = now.serving(address)
        if leader is not None:
            isrs[address] = (leader,)
    together, done_together = now.altered(isrs)
    apart, answers = now, {}
    for address, isr in sorted(isrs.items()):
        apart, one = apart.propose(address, isr).deliver(address)
        answers |= one.answers
    assert done_together.answers == answers
    # Only the order in which requests of the recovery manager are numbered may differ, and it asks for nothing here.
    assert together.controller == apart.controller
    assert together.replication == apart.replication
    assert together.manager == apart.manager


def test_nobody_reports_nothing() -> None:
    state = running(ELR_4_3).cluster.controller
    handled = altered_together(state, ())
    assert handled is not None
    assert handled.state == state
    assert not handled.answers


addresses = st.builds(TopicPartition, st.sampled_from(("a", "b", "a-topic", "ü")), st.integers(0, 40))


@examples(200)
@given(st.dictionaries(addresses, st.integers()), st.lists(st.tuples(addresses, st.none() | st.integers())))
def test_a_partition_map_is_a_dict_that_does_not_change(
    entries: dict[TopicPartition, int], edits: list[tuple[TopicPartition, int | None]]
) -> None:
    plain, mapping = dict(entries), PartitionMap(entries)
    for address, value in edits:
        before, copy = mapping, dict(mapping)
        mapping = mapping.without((address,)) if value is None else mapping.updated({address: value})
        if value is None:
            plain.pop(address, None)
        else:
            plain[address] = value
        assert dict(before) == copy
        assert mapping == plain
        assert len(mapping) == len(plain)
        assert (address in mapping) is (address in plain)
    assert PartitionMap(plain) == mapping
    assert mapping.updated({}) is mapping
    assert PartitionMap.of(mapping) is mapping


def test_a_partition_map_grows_with_what_is_put_into_it() -> None:
    mapping: PartitionMap[int] = PartitionMap()
    for partition in range(2_000):
        mapping = mapping.updated({TopicPartition("a", partition): partition})
    assert len(mapping) == 2_000
    assert sorted(mapping.values()) == list(range(2_000))
    assert mapping == PartitionMap(dict(mapping))
    assert mapping != PartitionMap({})
    assert replace(running(ELR_4_3).cluster, replication={}).with_replications({}).replication == {}
