"""Brokers, sessions, links and disks in time, one situation after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kelr.controller import (
    ELR_4_3,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KRAFT,
    Configs,
    ControllerState,
    LogInfoAnswered,
    ManualRecovery,
    RuleSet,
    events,
)
from kelr.controller.recovery.task import RecoveryLimits
from kelr.model import ElectionType, PartitionState, TopicPartition
from kelr.simulation import Acks, Replication, SimulatedCluster, started
from kelr.simulation.running import RunningCluster, Timing
from tests.simulation.running_lives import answer_all

ORDERS = TopicPartition("orders", 0)
CONTROLLER = 3000
SESSION_MS = LAG_MS = 3000
START_MS = 100
WINDOW_MS = RecoveryLimits().window_ms


class Bench:
    """One partition of three replicas on four brokers, and short words for what is looked at."""

    def __init__(
        self, rules: RuleSet = ELR_4_3, *, min_isr: int = 2, replicas: tuple[int, ...] = (1, 2, 3), **timing: int | None
    ) -> None:
        state = ControllerState(rules, cluster=Configs(min_isr, False))
        self.running = RunningCluster(
            started(state, (1, 2, 3, 4)),
            controller=CONTROLLER,
            timing=Timing(**timing),  # type: ignore[arg-type]
        )
        self.running.ask(events.TopicCreated("orders", (replicas,)))

    @property
    def state(self) -> PartitionState:
        return self.running.cluster.controller.partitions[ORDERS]

    @property
    def logs(self) -> Replication:
        return self.running.cluster.replication[ORDERS]

    @property
    def ends(self) -> dict[int, int]:
        return {replica: log.end for replica, log in sorted(self.logs.logs.items())}

    def later(self, duration_ms: int) -> None:
        self.running.advance(self.running.now_ms + duration_ms)

    def produce(self, count: int, acks: Acks = Acks.ALL) -> str:
        return self.running.produce(ORDERS, count, acks).error

    def live(self, broker: int) -> bool:
        return self.running.cluster.controller.active(broker)

    def epoch(self, broker: int) -> int:
        return self.running.cluster.controller.brokers[broker].epoch


def test_the_incident_of_the_documentation() -> None:
    """As it was seen on Kafka 4.3.1: nobody leads, and the two live replicas have logs of different lengths."""
    bench = Bench(replicas=(3, 1, 2))
    bench.produce(116)
    for broker, records, acks in ((3, 8, Acks.ALL), (2, 11, Acks.LEADER)):
        bench.running.kill(broker)
        bench.later(SESSION_MS)
        bench.produce(records, acks)
    bench.running.kill(1)
    bench.later(SESSION_MS)
    assert (bench.state.leader, bench.state.isr, bench.state.elr) == (None, (), (1, 2))
    bench.running.start(2)
    bench.running.start(3)
    bench.later(1000)
    assert (bench.state.leader, bench.state.elr, bench.state.last_known_elr) == (None, (1,), (1,))
    assert bench.ends == {1: 135, 2: 124, 3: 116}


def test_a_broker_that_dies_is_fenced_when_its_session_is_over_and_not_before() -> None:
    bench = Bench()
    bench.running.kill(1)
    assert bench.running.next_due_ms == SESSION_MS
    bench.later(SESSION_MS - 1)
    assert (bench.state.leader, bench.live(1)) == (1, True)
    assert bench.produce(1) == "LEADER_NOT_AVAILABLE"
    bench.later(1)
    assert (bench.state.leader, bench.live(1)) == (2, False)


def test_sessions_end_in_the_order_in_which_brokers_died() -> None:
    """However late somebody looks: the last to die is the last known leader."""
    bench = Bench()
    bench.running.kill(3)
    bench.later(500)
    bench.running.kill(2)
    bench.later(500)
    bench.running.kill(1)
    bench.later(60_000)
    assert bench.state.leader is None
    assert bench.state.last_known_elr == (1,)


@pytest.mark.parametrize("rules", [ELR_4_3, KRAFT], ids=lambda rules: rules.name)
def test_a_quick_restart_waits_for_the_session_of_the_broker_that_was(rules: RuleSet) -> None:
    """ClusterControlManager.registerBroker: DUPLICATE_BROKER_REGISTRATION until the session has expired."""
    bench = Bench(rules)
    bench.produce(5)
    bench.running.kill(1)
    bench.later(200)
    bench.running.start(1)
    assert not bench.running.runs(1)
    before = bench.epoch(1)
    bench.later(SESSION_MS - 201)
    assert (bench.epoch(1), bench.state.leader) == (before, 1)
    bench.later(1)
    assert (bench.running.runs(1), bench.live(1), bench.state.leader) == (True, False, 2)
    assert bench.epoch(1) > before
    bench.later(START_MS)
    assert (bench.live(1), set(bench.state.isr)) == (True, {1, 2, 3})


def test_after_a_controlled_shutdown_only_who_led_nothing_waits_for_its_session() -> None:
    """Seen on Kafka 4.3.1: the registration of a broker that led something says that it shuts down."""
    bench = Bench()
    bench.produce(5)
    bench.running.stop(1)
    assert (bench.state.leader, bench.state.isr) == (2, (2, 3))
    bench.running.start(1)
    assert bench.running.runs(1)
    bench.later(START_MS)
    assert set(bench.state.isr) == {1, 2, 3}
    bench.running.stop(1)
    bench.running.start(1)
    bench.later(SESSION_MS - 1)
    assert not bench.running.runs(1)
    bench.later(1)
    assert bench.running.runs(1)
    bench.later(START_MS)
    assert set(bench.state.isr) == {1, 2, 3}


def test_a_shutdown_that_the_controller_does_not_hear_of_is_clean_all_the_same() -> None:
    """What the broker led has no leader until its session expires; then it keeps its place in the ELR."""
    bench = Bench()
    bench.running.kill(3)
    bench.later(SESSION_MS)
    bench.produce(5)
    bench.running.sever(1, CONTROLLER)
    bench.running.stop(1)
    assert bench.state.leader == 1
    assert bench.produce(1) == "LEADER_NOT_AVAILABLE"
    bench.later(SESSION_MS)
    assert (bench.state.leader, bench.state.isr, bench.state.elr) == (2, (2,), (1,))
    bench.running.kill(2)
    bench.later(SESSION_MS)
    bench.running.heal()
    bench.running.start(1)
    bench.later(START_MS)
    assert bench.state.leader == 1


def test_the_last_replica_that_shuts_down_cleanly_leads_again_when_it_is_back() -> None:
    bench = Bench()
    bench.produce(5)
    for broker in (3, 2, 1):
        bench.running.stop(broker)
    assert (bench.state.leader, bench.state.isr) == (None, ())
    bench.running.start(1)
    bench.later(START_MS)
    assert bench.state.leader == 1


def test_a_broker_stops_while_replicas_move_to_another() -> None:
    bench = Bench()
    bench.produce(5)
    bench.running.pause(4)
    bench.running.ask(events.Reassigned(ORDERS, (4, 2, 3)))
    assert (bench.state.adding, bench.state.removing) == ((4,), (1,))
    bench.running.stop(1)
    assert (bench.state.leader, bench.state.adding) == (2, (4,))
    bench.running.go_on(4)
    assert (bench.state.replicas, bench.state.adding, bench.state.removing) == ((4, 2, 3), (), ())
    assert bench.ends == {2: 5, 3: 5, 4: 5}


def test_a_follower_that_does_not_reach_its_leader_is_dropped_after_its_time_and_taken_back() -> None:
    bench = Bench()
    bench.running.sever(1, 3)
    bench.produce(4)
    assert bench.logs.logs[1].high_watermark == 0
    bench.later(LAG_MS - 1)
    assert bench.state.isr == (1, 2, 3)
    bench.later(1)
    assert (bench.state.isr, bench.live(3), bench.logs.logs[1].high_watermark) == ((1, 2), True, 4)
    bench.running.heal(1, 3)
    assert set(bench.state.isr) == {1, 2, 3}
    assert bench.ends == {1: 4, 2: 4, 3: 4}


def test_a_follower_with_nothing_to_fetch_is_not_behind() -> None:
    bench = Bench()
    bench.produce(4)
    bench.running.sever(1, 3)
    bench.later(60_000)
    assert bench.state.isr == (1, 2, 3)


def test_a_leader_that_cannot_tell_the_controller_keeps_its_isr_until_it_can() -> None:
    bench = Bench(session_ms=60_000)
    bench.running.sever(1, 3)
    bench.running.sever(1, CONTROLLER)
    bench.produce(4)
    bench.later(10_000)
    assert bench.state.isr == (1, 2, 3)
    assert bench.logs.logs[1].high_watermark == 0
    bench.running.heal(1, CONTROLLER)
    bench.later(0)
    assert (bench.state.isr, bench.logs.logs[1].high_watermark) == ((1, 2), 4)


def test_a_leader_without_a_controller_is_deposed_when_its_session_is_over() -> None:
    bench = Bench()
    bench.produce(4)
    bench.running.sever(1, CONTROLLER)
    assert bench.produce(1) == "NONE"
    bench.later(SESSION_MS)
    assert (bench.state.leader, bench.state.isr) == (2, (2, 3))
    assert bench.running.runs(1)
    assert bench.running.out_of_touch[1].partitions[ORDERS].leader == 1
    before = bench.epoch(1)
    bench.running.heal()
    bench.later(START_MS)
    assert (bench.live(1), bench.epoch(1)) == (True, before)
    assert 1 not in bench.running.out_of_touch
    assert set(bench.state.isr) == {1, 2, 3}


def test_a_fenced_follower_whose_process_runs_goes_on_fetching_and_is_not_in_sync() -> None:
    """KIP-841: a leader takes no fenced broker into the ISR; it answers its fetches all the same."""
    bench = Bench()
    bench.running.sever(3, CONTROLLER)
    bench.later(SESSION_MS)
    bench.produce(6)
    assert (bench.live(3), bench.state.isr) == (False, (1, 2))
    assert bench.ends == {1: 6, 2: 6, 3: 6}


def test_a_follower_that_does_not_know_the_new_leader_fetches_nothing() -> None:
    bench = Bench()
    bench.running.sever(3, CONTROLLER)
    bench.running.stop(1)
    assert bench.state.leader == 2
    bench.produce(6)
    assert bench.ends == {1: 0, 2: 6, 3: 0}
    bench.running.heal()
    assert bench.ends[3] == 6


def test_a_broker_that_the_controller_gave_up_by_mistake_is_unfenced_with_its_next_heartbeat() -> None:
    bench = Bench(heartbeat_ms=500)
    bench.running.expire(1)
    assert (bench.live(1), bench.state.leader) == (False, 2)
    bench.later(499)
    assert not bench.live(1)
    bench.later(1)
    assert (bench.live(1), set(bench.state.isr)) == (True, {1, 2, 3})


def test_a_process_that_stands_still_loses_its_session_and_comes_back_as_it_was() -> None:
    bench = Bench()
    before = bench.epoch(2)
    bench.running.pause(2)
    bench.later(SESSION_MS)
    assert not bench.live(2)
    bench.running.go_on(2)
    bench.later(START_MS)
    assert (bench.live(2), bench.epoch(2)) == (True, before)


def test_a_broker_whose_registration_was_removed_leads_nothing_until_it_starts_again() -> None:
    bench = Bench()
    bench.produce(3)
    bench.running.ask(events.BrokerUnregistered(1))
    assert (bench.running.runs(1), bench.state.leader) == (True, 2)
    bench.later(60_000)
    assert 1 not in bench.running.cluster.controller.brokers
    bench.running.kill(1)
    assert not bench.running.runs(1)
    bench.running.start(1)
    bench.later(START_MS)
    assert (bench.running.runs(1), set(bench.state.isr)) == (True, {1, 2, 3})


def test_a_new_broker_joins() -> None:
    bench = Bench()
    bench.running.start(9)
    bench.later(START_MS)
    assert bench.live(9)
    bench.running.ask(events.Reassigned(ORDERS, (9, 2, 3)))
    assert bench.state.replicas == (9, 2, 3)


def test_a_failed_log_directory_takes_its_replicas_out_and_its_broker_stays() -> None:
    bench = Bench()
    bench.produce(5)
    bench.running.lose_directory(1, [ORDERS])
    assert (bench.state.leader, bench.state.isr, bench.live(1)) == (2, (2, 3), True)
    bench.produce(1)
    assert bench.ends == {1: 0, 2: 6, 3: 6}
    bench.running.stop(1)
    bench.running.start(1)
    bench.later(SESSION_MS + START_MS)
    assert bench.ends == {1: 6, 2: 6, 3: 6}
    assert set(bench.state.isr) == {1, 2, 3}


def test_several_brokers_at_once() -> None:
    """A rack goes: everything that it led has one leader more to lose."""
    bench = Bench()
    bench.produce(5)
    for broker in (1, 2):
        bench.running.kill(broker)
    bench.later(SESSION_MS)
    assert (bench.state.leader, bench.state.isr) == (3, (3,))
    assert bench.produce(1) == "NOT_ENOUGH_REPLICAS"
    assert bench.produce(1, Acks.LEADER) == "NONE"
    for broker in (1, 2):
        bench.running.start(broker)
    bench.later(START_MS)
    assert set(bench.state.isr) == {1, 2, 3}
    assert bench.produce(1) == "NONE"


def test_a_power_loss_takes_what_no_disk_has_yet_and_disks_have_it_in_time() -> None:
    bench = Bench(flush_ms=10_000)
    bench.produce(5)
    bench.later(9_999)
    bench.produce(2)
    assert bench.logs.logs[1].flushed == 0
    bench.later(1)
    assert {log.flushed for log in bench.logs.logs.values()} == {7}
    bench.produce(3)
    bench.running.kill(3, power_loss=True)
    assert bench.ends == {1: 10, 2: 10, 3: 7}
    bench.running.kill(2)
    assert bench.ends[2] == 10
    bench.running.lose_cache(2)
    assert bench.ends[2] == 7


def test_the_machine_of_a_killed_broker_writes_its_cache_to_the_disk() -> None:
    bench = Bench(flush_ms=10_000)
    bench.produce(5)
    bench.running.kill(3)
    bench.later(10_000)
    bench.running.lose_cache(3)
    assert bench.ends[3] == 5


def test_a_power_loss_after_a_clean_shutdown_takes_nothing_and_it_stays_clean() -> None:
    bench = Bench()
    bench.produce(5)
    for broker in (3, 2, 1):
        bench.running.stop(broker)
    bench.running.lose_cache(1)
    bench.running.start(1)
    bench.later(START_MS)
    assert (bench.state.leader, bench.ends[1]) == (1, 5)


def test_the_machine_of_a_running_broker_that_loses_its_power_kills_it() -> None:
    bench = Bench(flush_ms=None)
    bench.produce(5)
    bench.running.lose_cache(1)
    assert (bench.running.runs(1), bench.ends[1]) == (False, 0)


@contextmanager
def outage(rules: RuleSet) -> Iterator[Bench]:
    """All brokers lose their power, one after the other; nobody is in ISR or ELR any more."""
    bench = Bench(rules, flush_ms=None)
    bench.produce(8)
    for broker in (3, 2, 1):
        bench.running.flush(broker) if broker == 2 else None
        bench.running.kill(broker, power_loss=True)
        bench.later(SESSION_MS)
    yield bench


def test_balanced_recovery_waits_for_the_quorum_and_elects_the_complete_replica() -> None:
    with outage(KIP966_BALANCED) as bench:
        for broker in (1, 3):
            bench.running.start(broker)
        bench.later(60_000)
        answer_all(bench.running)
        assert bench.state.leader is None
        bench.running.start(2)
        bench.later(START_MS)
        answer_all(bench.running)
        bench.later(2_000)
        answer_all(bench.running)
        assert (bench.state.leader, bench.ends[2]) == (2, 8)


def test_aggressive_recovery_elects_at_the_end_of_its_window_after_a_long_peace() -> None:
    """The window begins when it begins to ask, not when the cluster was made."""
    bench = Bench(KIP966_AGGRESSIVE, flush_ms=None)
    bench.later(86_400_000)
    bench.produce(8)
    for broker in (3, 2, 1):
        bench.running.kill(broker, power_loss=True)
    bench.later(SESSION_MS)
    bench.running.start(3)
    bench.later(START_MS)
    begun_ms = bench.running.cluster.manager.tasks[ORDERS].window_from_ms
    assert begun_ms is not None
    for question in bench.running.asked():
        if question.broker == 3:
            entry = bench.running.cluster.log_info(ORDERS, 3)
            bench.running.answered(LogInfoAnswered(3, bench.epoch(3), {ORDERS: entry}, question.id))
    if bench.running.now_ms < begun_ms + WINDOW_MS:
        assert bench.running.next_due_ms is not None
        bench.running.advance(begun_ms + WINDOW_MS - 1)
        assert bench.state.leader is None
    bench.running.advance(begun_ms + WINDOW_MS)
    assert bench.state.leader == 3


def test_a_recovery_that_somebody_asked_for_is_given_up_in_time() -> None:
    with outage(KIP966_BALANCED) as bench:
        bench.running.start(1)
        bench.later(START_MS)
        asked = ManualRecovery(ElectionType.LONGEST_LOG_BALANCED, {ORDERS: None}, timeout_ms=7_000)
        awaited = bench.running.ask_by_hand(asked)
        bench.later(6_999)
        assert awaited.pending
        bench.later(1)
        assert awaited.answers == {ORDERS: "REQUEST_TIMED_OUT"}


def test_another_controller_asks_again() -> None:
    with outage(KIP966_BALANCED) as bench:
        for broker in (1, 2, 3):
            bench.running.start(broker)
        bench.later(START_MS)
        first = bench.running.asked()
        bench.running.fail_over(CONTROLLER)
        second = bench.running.asked()
        assert {question.broker for question in first} == {question.broker for question in second} == {1, 2, 3}
        assert not {question.id for question in first} & {question.id for question in second}


def test_topics_that_allow_unclean_elections_get_a_leader_within_the_interval() -> None:
    bench = Bench(KRAFT, min_isr=1, unclean_ms=300_000)
    bench.produce(5)
    bench.running.kill(2)
    bench.running.kill(3)
    bench.later(SESSION_MS)
    bench.running.kill(1)
    bench.later(SESSION_MS)
    bench.running.start(2)
    bench.later(1_000)
    bench.running.ask(events.ConfigWritten("orders", unclean_leader_election=True))
    assert bench.state.leader is None
    bench.later(300_000)
    assert bench.state.leader == 2


def test_a_deleted_topic_leaves_nothing_that_is_due() -> None:
    bench = Bench()
    bench.running.sever(1, 3)
    bench.produce(4)
    bench.running.ask(events.TopicDeleted("orders"))
    bench.later(100_000)
    bench.running.ask(events.TopicCreated("orders", ((1, 2, 3),)))
    bench.produce(4)
    bench.later(LAG_MS - 1)
    assert bench.state.isr == (1, 2, 3)
    bench.later(1)
    assert bench.state.isr == (1, 2)


def test_what_a_broker_knows_when_it_lost_touch_holds_for_copies_too() -> None:
    bench = Bench()
    bench.running.sever(3, CONTROLLER)
    bench.running.stop(1)
    copy = PartitionState(**{**_fields(bench.state), "topic": "copy"})  # type: ignore[arg-type]
    bench.running.copy([(copy, ORDERS)])
    known = bench.running.out_of_touch[3].partitions[TopicPartition("copy", 0)]
    assert (known.leader, bench.state.leader) == (1, 2)


def _fields(state: PartitionState) -> dict[str, object]:
    return {name: getattr(state, name) for name in PartitionState.__slots__}


@pytest.mark.parametrize("partitions", [4_000])
def test_what_happens_to_a_broker_costs_what_it_has_and_a_record_costs_its_partition(partitions: int) -> None:
    """Counted in copies of shards and looks at partitions, not in seconds: nothing here is quadratic."""
    brokers = (1, 2, 3, 4, 5, 6)
    state = ControllerState(ELR_4_3, cluster=Configs(2, False))
    running = RunningCluster(started(state, brokers), controller=CONTROLLER)
    assignment = tuple(tuple(brokers[(index + place) % 6] for place in range(3)) for index in range(partitions))
    running.ask(events.TopicCreated("many", assignment))
    looked_at = _counted(running)
    running.produce(TopicPartition("many", 0), 1, Acks.ALL)
    assert looked_at[0] <= 2
    looked_at[0] = 0
    running.kill(1)
    running.advance(SESSION_MS)
    assert sum(state.leader == 1 for state in running.cluster.controller.partitions.values()) == 0
    assert looked_at[0] <= 3 * partitions
    looked_at[0] = 0
    running.start(1)
    running.advance(2 * SESSION_MS)
    assert all(len(state.isr) == 3 for state in running.cluster.controller.partitions.values())
    assert looked_at[0] <= 6 * partitions


def _counted(running: RunningCluster) -> list[int]:
    """How many partitions' followers are looked at from now on."""
    count, plain = [0], SimulatedCluster.replicated

    class Counting(SimulatedCluster):
        __slots__ = ()

        def replicated(self, followers):  # type: ignore[no-untyped-def]
            count[0] += len(followers)
            return plain(self, followers)

    fields = {name: getattr(running.cluster, name) for name in SimulatedCluster.__slots__}
    running.cluster = Counting(**fields)
    return count


def test_a_leap_over_years_ends_although_a_recovery_asks_again_and_again() -> None:
    with outage(KIP966_BALANCED) as bench:
        for broker in (1, 2):
            bench.running.start(broker)
        bench.later(START_MS)
        bench.running.asked()
        leap_ms = bench.running.now_ms + 60 * 365 * 86_400_000
        bench.running.advance(leap_ms)
        assert bench.running.now_ms == leap_ms
        assert bench.running.next_due_ms is None or bench.running.next_due_ms > leap_ms


def _go_back_and_forth(bench: Bench, leave: str) -> None:
    """Broker 1 is away while 3 takes its place."""
    bench.produce(4)
    getattr(bench.running, leave)(1)
    bench.later(SESSION_MS)
    bench.running.ask(events.Reassigned(ORDERS, (2, 3)))
    bench.later(LAG_MS)
    assert (bench.state.replicas, bench.ends) == ((2, 3), {2: 4, 3: 4})
    assert [log.end for log in bench.logs.left_over.values()] == [4]


@pytest.mark.parametrize(("leave", "come"), [("kill", "start"), ("pause", "go_on")])
def test_a_replica_that_is_dropped_while_its_broker_is_away_keeps_its_log_until_that_learns_of_it(
    leave: str, come: str
) -> None:
    """As seen on Kafka 4.3.1: the same file, after a kill and after SIGSTOP (docs/election-rules.md)."""
    bench = Bench(replicas=(1, 2))
    _go_back_and_forth(bench, leave)
    bench.running.ask(events.Reassigned(ORDERS, (2, 1)))
    assert bench.ends == {1: 4, 2: 4, 3: 4}
    assert bench.logs.left_over == {}
    getattr(bench.running, come)(1)
    bench.later(SESSION_MS)
    assert (bench.state.replicas, bench.state.isr) == ((2, 1), (1, 2))

    bench = Bench(replicas=(1, 2))
    _go_back_and_forth(bench, leave)
    getattr(bench.running, come)(1)
    bench.later(SESSION_MS)
    assert bench.logs.left_over == {}
    getattr(bench.running, leave)(1)
    bench.running.ask(events.Reassigned(ORDERS, (2, 1)))
    assert bench.ends[1] == 0
