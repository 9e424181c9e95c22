"""Outages case by case are what the controller's state machine makes of the whole cluster, partition by partition."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_0, ELR_4_3, KRAFT, RULE_SETS, ControllerState, RuleSet, controller_state, handle
from kelr.controller.reach import FAILED
from kelr.engine.outages.fate import CONTROLLER_FAILS, UNCLEAN_UNKNOWN
from kelr.engine.outages.reading import CaseReader
from kelr.engine.outages.scenario import Outage, outage
from kelr.engine.outages.standing import Standing
from kelr.engine.outages.tally import Tally
from kelr.engine.outages.told import PartitionFate, partition_fate
from kelr.engine.outages.worst import AnyBrokers
from kelr.engine.what_if.assumptions import Assumption, Happening
from kelr.engine.what_if.events import events_of
from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    ConfigSource,
    ElectedBy,
    Features,
    PartitionState,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.model.rows import Kind, Run, states
from tests.engine.snapshots import snapshots
from tests.properties import examples

BROKERS = range(1, 6)
IDS = (0, 1, 2, 3, 17, 33, 65_537)


def fates(snapshot: Snapshot, rules: RuleSet, happens: Outage) -> dict[TopicPartition, PartitionFate]:
    page = CaseReader(snapshot.cluster, rules).page(
        snapshot.partitions, snapshot.configs, snapshot.first_partition_replicas
    )
    return {state.address: partition_fate(state, seen, happens) for state, seen in page.partitions(lambda _: True)}


def sums(state: PartitionState) -> tuple[object, ...]:
    """A partition with its sets as sets: their order decides nothing."""
    elr, known = state.elr, state.last_known_elr
    return (
        state.leader,
        state.leader_epoch,
        state.replicas,
        frozenset(state.isr),
        None if elr is None else frozenset(elr),
        None if known is None else frozenset(known),
        frozenset(state.adding or ()),
        frozenset(state.removing or ()),
        bool(state.recovering),
    )


def by_the_machine(snapshot: Snapshot, rules: RuleSet, blows: Sequence[Assumption]) -> tuple[ControllerState, bool]:
    """The whole cluster after these blows, and whether the controller failed on the way."""
    state, failed = controller_state(snapshot, rules), False
    for blow in blows:
        for event in events_of(blow, state, snapshot.cluster):
            handled = handle(state, event)
            state, failed = handled.state, failed or handled.error == FAILED
    return state, failed


def in_each_manner(blows: Sequence[Assumption]) -> Iterator[tuple[Assumption, ...]]:
    """These blows, with each return that may be clean or not as the one and as the other."""
    manners = (Happening.RETURNS_CLEAN, Happening.RETURNS_UNCLEAN)
    return itertools.product(
        *(
            [replace(one, happening=how) for how in manners] if one.happening is Happening.RETURNS else [one]
            for one in blows
        )
    )


def consistent(snapshot: Snapshot) -> Snapshot:
    """The snapshot as sources give it: replica counts of partitions 0 as these are, one for each topic whose partition
    0 is not in it, and every broker listed."""
    counts = {state.topic: len(state.replicas) for state in snapshot.partitions}
    counts |= snapshot.first_partition_replicas
    counts |= {state.topic: len(state.replicas) for state in snapshot.partitions if state.partition == 0}
    cluster = replace(snapshot.cluster, brokers_source="DescribeCluster v2")
    return replace(snapshot, cluster=cluster, first_partition_replicas=counts)


happenings = st.sampled_from((Happening.FAILS, Happening.STOPS, Happening.RETURNS, Happening.RETURNS_UNCLEAN))
courses = st.lists(st.builds(Assumption, happenings, broker=st.sampled_from(IDS)), min_size=1, max_size=4)
rule_sets = st.sampled_from(tuple(RULE_SETS.values()))


@examples(300)
@given(snapshots(), rule_sets, courses)
def test_one_after_the_other_is_what_the_machine_makes_of_all(
    drawn: Snapshot, rules: RuleSet, blows: list[Assumption]
) -> None:
    snapshot = consistent(drawn)
    each = [by_the_machine(snapshot, rules, way) for way in in_each_manner(blows)]
    found = fates(snapshot, rules, Outage(tuple(blows), at_once=False))
    if len(each) == 1:
        failed = any(CONTROLLER_FAILS in fate.worst.doubts for fate in found.values())
        assert [failed] == [failed_too for _, failed_too in each]
    if any(failed for _, failed in each):
        return
    for address, fate in found.items():
        ends = {sums(end.after) for end in fate.ends}
        # Who goes down in the course itself returns in one manner alone.
        assert ends <= {sums(state.partitions[address]) for state, _ in each}
        assert len(ends) == 1 or len(each) > 1


@examples(150)
@given(
    snapshots(),
    rule_sets,
    st.lists(st.sampled_from(IDS), unique=True, min_size=1, max_size=3),
    st.lists(st.sampled_from(IDS), unique=True, max_size=1),
)
def test_at_once_is_every_order_that_the_machine_can_take(
    drawn: Snapshot, rules: RuleSet, killed: list[int], stopped: list[int]
) -> None:
    snapshot = consistent(drawn)
    happens = outage(stopped=[one for one in stopped if one not in killed], killed=killed)
    found = fates(snapshot, rules, happens)
    every = [by_the_machine(snapshot, rules, order) for order in itertools.permutations(happens.blows)]
    if any(failed for _, failed in every):
        return
    for address, fate in found.items():
        ends = {sums(state.partitions[address]) for state, _ in every}
        assert {sums(end.after) for end in fate.ends} == ends
        for end in fate.ends:
            order = [blow for name in end.order for blow in happens.blows if blow.broker == name]
            rest = [blow for blow in happens.blows if blow not in order]
            state, _ = by_the_machine(snapshot, rules, (*order, *rest))
            assert sums(end.after) == sums(state.partitions[address])


@st.composite
def healthy_and_not(draw: st.DrawFn) -> Snapshot:
    """Partitions as clusters have them: healthy, then some brokers went before."""
    down = draw(st.sets(st.sampled_from(BROKERS), max_size=2))
    brokers = tuple(Broker(one, BrokerStatus.LIVE, rack=f"az{one % 2}") for one in BROKERS)
    cluster = Cluster("random", brokers, Features(), brokers_source="DescribeCluster v2")
    partitions, configs = [], {}
    for topic in ("orders", "payments", "views"):
        configs[topic] = TopicConfig(
            draw(st.sampled_from((1, 2, 2, 3, None))),
            ConfigSource.TOPIC,
            draw(st.sampled_from((False, False, True, None))),
            ConfigSource.TOPIC,
        )
        for number in range(draw(st.integers(1, 5))):
            replicas = tuple(draw(st.lists(st.sampled_from(BROKERS), unique=True, min_size=1, max_size=4)))
            partitions.append(PartitionState(topic, number, replicas[0], 5, replicas, replicas, (), (), ()))
    counts = {state.topic: len(state.replicas) for state in partitions if state.partition == 0}
    before = Snapshot(0, cluster, tuple(partitions), configs, first_partition_replicas=counts)
    state, _ = by_the_machine(before, ELR_4_3, [Assumption(Happening.FAILS, broker=one) for one in sorted(down)])
    statuses = {one: BrokerStatus.FENCED if one in down else BrokerStatus.LIVE for one in BROKERS}
    return replace(
        before,
        cluster=replace(cluster, brokers=tuple(replace(one, status=statuses[one.id]) for one in brokers)),
        partitions=tuple(replace(state.partitions[one.address], partition_epoch=None) for one in partitions),
    )


@examples(100)
@given(healthy_and_not(), st.integers(1, 3), st.booleans(), st.sampled_from((ELR_4_3, ELR_4_0, KRAFT)))
def test_counts_of_any_k_are_those_of_each_set_alone(
    snapshot: Snapshot, size: int, clean: bool, rules: RuleSet
) -> None:
    live = sorted(snapshot.cluster.live)
    page = CaseReader(snapshot.cluster, rules).page(
        snapshot.partitions, snapshot.configs, snapshot.first_partition_replicas
    )
    counting = AnyBrokers(live, size, clean=clean)
    for seen, count in page.counted():
        counting.add(seen, count)
    found = list(counting.counts())
    assert [counts.brokers for counts in found] == list(itertools.combinations(live, size))
    for counts in found:
        tally = Tally(outage(stopped=counts.brokers) if clean else outage(killed=counts.brokers))
        for seen, count in page.counted():
            tally.add(seen, count)
        assert Counter(counts.new) == tally.new
        assert Counter(counts.then) == tally.then
        assert counts.depends == tally.depends
        assert Counter(counting.now()) == tally.now


@examples(60)
@given(healthy_and_not(), st.sets(st.sampled_from(BROKERS), min_size=1, max_size=3))
def test_partitions_in_rows_come_to_the_same(snapshot: Snapshot, killed: set[int]) -> None:
    kinds: dict[PartitionState, Kind[PartitionState]] = {}
    runs = []
    for topic, members in itertools.groupby(snapshot.partitions, key=lambda state: state.topic):
        found = list(members)
        examples = [replace(state, topic="", partition=0, leader_epoch=0) for state in found]
        of_run = [kinds.setdefault(example, Kind(example)) for example in examples]
        runs.append(Run(topic, None, [one.partition for one in found], [one.leader_epoch for one in found], of_run))
    rows = states(runs)
    assert list(rows) == list(snapshot.partitions)
    happens = outage(killed=sorted(killed))
    plain, packed = (
        CaseReader(snapshot.cluster, ELR_4_3).page(some, snapshot.configs, snapshot.first_partition_replicas)
        for some in (snapshot.partitions, rows)
    )
    tallies = [Tally(happens), Tally(happens)]
    for tally, page in zip(tallies, (plain, packed), strict=True):
        for seen, count in page.counted():
            tally.add(seen, count)
    assert (tallies[0].partitions, tallies[0].new, tallies[0].then) == (
        tallies[1].partitions,
        tallies[1].new,
        tallies[1].then,
    )
    wanted = [partition_fate(state, seen, happens) for state, seen in plain.partitions(lambda _: True)]
    assert [partition_fate(state, seen, happens) for state, seen in packed.partitions(lambda _: True)] == wanted


# What single outages come to.


def cluster_of(*live: int, fenced: Sequence[int] = ()) -> Cluster:
    brokers = [Broker(one, BrokerStatus.LIVE) for one in live] + [Broker(one, BrokerStatus.FENCED) for one in fenced]
    return Cluster("test", tuple(brokers), Features(), brokers_source="DescribeCluster v2")


def one_partition(
    replicas: tuple[int, ...] = (1, 2, 3),
    *,
    min_isr: int | None = 2,
    unclean: bool | None = False,
    isr: tuple[int, ...] | None = None,
    elr: tuple[int, ...] | None = (),
) -> Snapshot:
    in_sync = replicas if isr is None else isr
    state = PartitionState("orders", 0, in_sync[0], 5, replicas, in_sync, elr, () if elr is not None else None, ())
    config = TopicConfig(min_isr, ConfigSource.TOPIC, unclean, ConfigSource.TOPIC)
    down = [one for one in replicas if one not in in_sync]
    return Snapshot(0, cluster_of(*in_sync, fenced=down), (state,), {"orders": config})


def fate_of(snapshot: Snapshot, happens: Outage, rules: RuleSet = ELR_4_3) -> PartitionFate:
    (fate,) = fates(snapshot, rules, happens).values()
    return fate


def test_the_leader_moves_and_nothing_else() -> None:
    fate = fate_of(one_partition(), outage(killed=[1]))
    assert fate.new == Standing.LEADER_MOVES | Standing.CHANGED
    assert (fate.worst.after.leader, fate.worst.after.leader_epoch, fate.worst.after.isr) == (2, 6, (2, 3))


def test_two_killed_at_once_leave_another_elr_in_the_other_order() -> None:
    fate = fate_of(one_partition(), outage(killed=[2, 3]))
    assert fate.new == Standing.UNDER_MIN_ISR | Standing.LAST_REPLICA | Standing.CHANGED
    assert {(end.order, end.after.elr) for end in fate.ends} == {((2, 3), (3,)), ((3, 2), (2,))}
    assert not fate.depends


def test_of_three_killed_only_a_clean_one_proves_anything() -> None:
    killed = fate_of(one_partition(), outage(killed=[1, 2, 3]))
    assert killed.new & Standing.UNPROVEN
    assert killed.new & Standing.ELR_ONLY
    last_clean = Outage(tuple(Assumption(how, broker=one) for one, how in _LAST_CLEAN), at_once=False)
    stopped = fate_of(one_partition(), last_clean)
    assert stopped.new & (Standing.LEADERLESS | Standing.UNPROVEN) == Standing.LEADERLESS
    back = {one.broker: (one.clean, one.elected, one.by) for one in stopped.worst.comebacks}
    assert back == {1: (False, None, None), 2: (False, None, None), 3: (True, 3, ElectedBy.ELR)}


_LAST_CLEAN = ((1, Happening.FAILS), (2, Happening.FAILS), (3, Happening.STOPS))


def test_the_order_decides_whether_an_unclean_election_is_held() -> None:
    """Broker 3 is out of sync: it is elected only where the last in-sync replica goes while 3 is live."""
    snapshot = one_partition(isr=(1, 2), unclean=True)
    snapshot = replace(snapshot, cluster=cluster_of(1, 2, 3))
    fate = fate_of(snapshot, outage(killed=[1, 2, 3]))
    assert fate.depends
    assert fate.worst.then & Standing.MAY_LOSE
    assert fate.worst.order[-1] == 3 or fate.worst.order.index(3) == 2
    assert not fate.ends[-1].then & Standing.MAY_LOSE


def test_a_pair_of_all_replicas_with_unclean_elections_may_lose() -> None:
    snapshot = replace(one_partition(isr=(1, 2), unclean=True), cluster=cluster_of(1, 2, 3))
    fate = fate_of(snapshot, outage(killed=[1, 2]))
    assert fate.new & Standing.MAY_LOSE
    assert (fate.worst.after.leader, fate.worst.elected_by) == (3, ElectedBy.UNCLEAN)


def test_a_config_that_is_not_known_is_a_doubt() -> None:
    fate = fate_of(one_partition(unclean=None), outage(killed=[1, 2, 3]))
    assert fate.worst.doubts == (UNCLEAN_UNKNOWN,)
    assert fate.new & Standing.DOUBTFUL


def test_an_unknown_min_isr_is_neither_met_nor_not() -> None:
    fate = fate_of(one_partition(min_isr=None), outage(killed=[3]))
    assert fate.new & (Standing.MIN_ISR_UNKNOWN | Standing.UNDER_MIN_ISR) == Standing.MIN_ISR_UNKNOWN
    assert not fate_of(one_partition(min_isr=None), outage(killed=[9])).then


@pytest.mark.parametrize(("rules", "isr"), [(ELR_4_3, ()), (KRAFT, (1,))])
def test_with_elr_off_the_last_member_stays_in_the_isr(rules: RuleSet, isr: tuple[int, ...]) -> None:
    fate = fate_of(one_partition((1,)), outage(killed=[1]), rules)
    assert fate.new & Standing.LEADERLESS
    assert fate.worst.after.isr == isr
    assert bool(fate.new & Standing.ELR_ONLY) is rules.elr


def test_with_elr_off_an_unclean_restart_of_the_last_one_may_lose() -> None:
    blows = tuple(Assumption(how, broker=1) for how in (Happening.FAILS, Happening.RETURNS_UNCLEAN))
    fate = fate_of(one_partition((1,)), Outage(blows, at_once=False), KRAFT)
    assert fate.worst.after.leader == 1
    assert fate.new & Standing.MAY_LOSE


def test_a_comeback_from_the_elr_of_a_replica_that_is_added_again_proves_nothing() -> None:
    """Kafka 4.3.1 elects its empty log as a clean candidate (docs/election-rules.md)."""
    whole = one_partition((2, 1), isr=(1,), elr=(2,))
    added = replace(whole, partitions=(replace(whole.partitions[0], adding=(2,), removing=()),))
    blows = Assumption(Happening.FAILS, broker=1), Assumption(Happening.RETURNS_CLEAN, broker=2)
    for snapshot, proven in ((whole, True), (added, False)):
        killed = fate_of(snapshot, outage(killed=[1]))
        (back,) = (one for one in killed.worst.comebacks if one.broker == 2 and one.clean)
        assert (back.elected, back.loses_nothing) == (2, proven)
        returned = fate_of(snapshot, Outage(blows, at_once=False))
        assert returned.worst.after.leader == 2
        assert bool(returned.then & Standing.MAY_LOSE) is not proven
        live = replace(snapshot, cluster=cluster_of(1, 2))
        stopped = fate_of(live, Outage((Assumption(Happening.STOPS, broker=2), blows[0]), at_once=False))
        assert bool(stopped.then & Standing.UNPROVEN) is not proven


def test_what_all_of_them_do_together_once_they_are_back() -> None:
    fate = fate_of(one_partition((1, 2)), outage(killed=[1, 2]))
    end = fate.worst
    assert all(back.elected is None for back in end.comebacks)
    assert end.together is not None
    assert (end.together.elected, end.together.by) == (end.order[-1], ElectedBy.LAST_KNOWN_LEADER)
