"""A snapshot's cluster as a simulated one: the same states, the same logs as far as they matter, the same decisions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kelr.controller import RULE_SETS, RuleSet, rule_set
from kelr.engine import decide
from kelr.engine.logs import agreement
from kelr.errors import UsageError
from kelr.lab.simulated.from_snapshot import FEWEST_EACH, from_snapshot, spec_of
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import (
    Broker,
    BrokerStatus,
    ConfigSource,
    Decision,
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Selection,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.protocol.dialects import Dialect
from kelr.simulation.logs import Acks
from kelr.simulation.rebuilt import MOST_RECORDS
from kelr.sources.base import take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.engine.cases import cluster_of
from tests.engine.snapshots import snapshots
from tests.properties import examples
from tests.simulation.lives import EVERYTHING, Life, lives
from tests.sources.samples import SNAPSHOT

ORDERS = TopicPartition("orders", 0)


def world_of(snapshot: Snapshot, *, rules: str | None = None) -> World:
    spec = spec_of(snapshot, rules=rules)
    return from_snapshot(spec, snapshot, dict.fromkeys((CONTROLLER_ID, *spec.broker_ids), 9092), now_ms=0)


def told(decision: Decision) -> object:
    """What a decision comes to, without where its evidence was read."""
    return (
        decision.situation,
        decision.leader,
        decision.elected,
        decision.elected_by,
        decision.waits_for,
        decision.advice.action,
        decision.advice.replica,
        [
            (
                outcome.election,
                outcome.designate,
                outcome.elected,
                outcome.elected_by,
                outcome.waits_for,
                outcome.loss
                and (outcome.loss.grade, outcome.loss.committed, outcome.loss.uncommitted, outcome.loss.unheard),
            )
            for outcome in decision.elections
        ],
        [(one.replica, one.clean, one.elected, one.elected_by, one.warning) for one in decision.forecasts],
        [
            (
                *(one.replica, one.live, one.in_isr, one.in_elr, one.last_known, one.eligible, one.heard),
                *(one.log_end, one.last_epoch, one.high_watermark, one.behind_best, one.diverges_at),
                *(one.best, one.longest),
            )
            for one in decision.candidates
        ],
    )


def log(replica: int, end: int, *epochs: tuple[int, int], hw: int = 0, start: int = 0) -> ReplicaLog:
    lineage = tuple(EpochEnd(epoch, last) for epoch, last in epochs)
    return ReplicaLog(
        replica, end, lineage[-1].epoch if lineage else None, 7, high_watermark=hw, log_start=start, lineage=lineage
    )


def leaderless(
    *logs: LogAnswer, live: Iterable[int] = (2, 3), fenced: Iterable[int] = (1,), **changes: object
) -> Snapshot:
    """A partition whose last leader is gone."""
    fields: dict[str, object] = {"replicas": (1, 2, 3), "isr": (), "elr": (1,), "last_known_elr": (1,), **changes}
    state = PartitionState("orders", 0, None, 7, offline_replicas=(), **fields)  # type: ignore[arg-type]
    cluster = cluster_of(live=live, fenced=fenced)
    return Snapshot(0, cluster, (state,), logs={ORDERS: tuple(logs)}, first_partition_replicas={"orders": 3})


@pytest.mark.parametrize("rules", RULE_SETS.values(), ids=lambda rules: rules.name)
def test_a_cluster_that_was_left_somewhere_goes_on_as_what_its_snapshot_says(rules: RuleSet) -> None:
    @examples(25)
    @given(lives((rules,), EVERYTHING))
    def same(life: Life) -> None:
        snapshot = life.end.cluster.as_snapshot()
        world = world_of(snapshot, rules=rules.name)
        again = world.running.cluster.as_snapshot()
        for before, after in zip(snapshot.partitions, again.partitions, strict=True):
            # A replica on a dead broker is taken to be there again when its broker is.
            lost = tuple(one for one in before.offline_replicas or () if one in snapshot.cluster.live)
            assert replace(after, topic_id=None) == replace(before, offline_replicas=lost)
            # Of logs that hold nothing a cluster on paper says nothing, not even who is silent.
            if any(isinstance(one, ReplicaLog) and one.log_end for one in snapshot.logs.get(before.address, ())):
                assert told(decide(again, after, rules)) == told(decide(snapshot, before, rules)), str(life)

    same()


def test_the_sample_snapshot_is_the_same_cluster_with_the_same_decisions() -> None:
    world = world_of(SNAPSHOT)
    again = world.running.cluster.as_snapshot()
    assert [broker.id for broker in again.cluster.brokers] == [1, 2, 3]
    assert [world.listens(broker) for broker in (1, 2, 3)] == [False, True, True]
    assert dict(world.racks) == {1: "az1", 2: "az2", 3: "az3"}
    rules = world.running.cluster.controller.rules
    assert len(again.partitions) == len(SNAPSHOT.partitions)
    for before, after in zip(SNAPSHOT.partitions, again.partitions, strict=True):
        assert (after.leader, after.isr, after.elr, after.adding) == (
            before.leader,
            before.isr,
            before.elr,
            before.adding,
        )
        assert told(decide(again, after, rules)) == told(decide(SNAPSHOT, before, rules))
        state = world.state(before.address)
        assert state is not None
        assert state.topic_id == before.topic_id


@examples(100)
@given(snapshots())
def test_any_snapshot_gives_a_cluster_that_can_be_driven(snapshot: Snapshot) -> None:
    """States that no controller writes, logs that contradict each other: no crash, and offsets within their logs."""
    assume(snapshot.cluster.brokers)
    world = world_of(snapshot)
    for replication in world.running.cluster.replication.values():
        for one in replication.logs.values():
            assert 0 <= one.start <= one.high_watermark <= one.end
            assert [entry.epoch for entry in one.lineage] == sorted(entry.epoch for entry in one.lineage)
            assert len(one.ids) == len(one.records)


@st.composite
def logs_told(draw: st.DrawFn) -> tuple[ReplicaLog, ...]:
    """Logs of three replicas that can be: each has the records of a leader's up to somewhere, then those of others."""
    size = st.integers(1, 30)
    trunk = [0, *sorted(draw(st.lists(st.integers(1, 60), unique=True, min_size=1, max_size=4)))]
    found = []
    for replica in (1, 2, 3):
        epochs = [(index, end) for index, end in enumerate(trunk[1:])]
        last = draw(st.integers(0, len(epochs) - 1))
        own = epochs[: last + 1]
        begins = trunk[last]
        own[-1] = (last, draw(st.integers(begins + 1, own[-1][1])))
        if draw(st.booleans()):
            own.append((10 + replica, own[-1][1] + draw(size)))
        end = own[-1][1]
        start = draw(st.integers(0, min(one[0][1] for one in [own])))
        found.append(log(replica, end, *own, hw=draw(st.integers(start, end)), start=start))
    return tuple(found)


@examples(100)
@given(logs_told(), st.integers(0, 3))
def test_logs_end_and_part_where_they_were_read_to(logs: tuple[ReplicaLog, ...], blind: int) -> None:
    silent = LogUnavailable(blind, LogUnavailableReason.UNREACHABLE)
    answers = tuple(silent if one.replica == blind else one for one in logs)
    world = world_of(leaderless(*answers, live=(1, 2, 3), fenced=()))
    made = world.running.cluster.replication[ORDERS].logs
    heard = [one for one in logs if one.replica != blind]
    for one in heard:
        own = made[one.replica]
        assert (own.end, own.last_epoch, own.high_watermark) == (
            one.log_end,
            one.last_epoch,
            max(one.high_watermark or 0, own.start),
        )
        for other in heard:
            agreed = agreement(one, other)
            assert agreement(own.answer(1), made[other.replica].answer(2)) == agreed


def test_a_replica_that_was_not_heard_holds_what_is_committed_where_a_set_names_it() -> None:
    gone = LogUnavailable(1, LogUnavailableReason.UNREACHABLE)
    logs = (gone, log(2, 135, (3, 110), (5, 135), hw=116), log(3, 112, (3, 110), (5, 112), hw=112))
    for elr, end in (((1,), 116), ((), 112)):
        snapshot = leaderless(*logs, elr=elr, last_known_elr=())
        world = world_of(snapshot)
        made = world.running.cluster.replication[ORDERS].logs
        assert (made[1].end, made[2].end, made[3].end) == (end, 135, 112)
        assert any("orders:0@1" in sentence for sentence in world.assumptions)


def test_logs_too_long_to_be_made_up_keep_their_order_and_that_is_said() -> None:
    far = 50_000_000
    logs = (
        log(1, far, (3, far), hw=far - 7),
        log(2, 900, (3, 900), hw=800),
        log(3, 1200, (3, 1000), (6, 1200), hw=990),
    )
    snapshot = leaderless(*logs, live=(1, 2, 3), fenced=(), elr=())
    world = world_of(snapshot)
    made = world.running.cluster.replication[ORDERS].logs
    assert all(len(one.records) <= MOST_RECORDS + 20 for one in made.values())
    assert made[1].end == far
    assert made[1].end - made[1].high_watermark == 7
    assert made[2].end < made[3].end < made[1].end
    assert agreement(made[3].answer(3), made[1].answer(1)) == made[3].end - 200
    assert any("orders:0 by" in sentence for sentence in world.assumptions)
    rules = world.running.cluster.controller.rules
    before, after = decide(snapshot, snapshot.partitions[0], rules), None
    again = world.running.cluster.as_snapshot()
    after = decide(again, again.partitions[0], rules)
    assert [one.elected for one in after.elections] == [one.elected for one in before.elections]
    assert after.situation == before.situation


def test_logs_that_tell_only_their_last_epoch_are_as_those_that_tell_more() -> None:
    """Where all logs end in one epoch, none of them was asked for the epochs before it."""
    whole = log(2, 120, (0, 90), (5, 120), hw=100)
    short = replace(log(3, 110, (5, 110), hw=100), lineage=None)
    made = world_of(leaderless(whole, short)).running.cluster.replication[ORDERS].logs
    assert made[3].records == made[2].records[: len(made[3].records)]
    older = replace(log(3, 95, (2, 95), hw=90), lineage=None)
    made = world_of(leaderless(replace(whole, lineage=None), older)).running.cluster.replication[ORDERS].logs
    assert (made[3].last_epoch, made[2].last_epoch) == (2, 5)
    assert agreement(made[3].answer(3), made[2].answer(2)) == 95


def test_the_rehearsal_goes_on_by_the_rules_that_are_asked_for() -> None:
    """What the whole KIP would have done with the incident of released Kafka."""
    logs = (
        LogUnavailable(1, LogUnavailableReason.UNREACHABLE),
        log(2, 135, (5, 135), hw=116),
        log(3, 116, (5, 116), hw=116),
    )
    snapshot = leaderless(*logs, elr=(), last_known_elr=(1, 2))
    world = world_of(snapshot, rules="kip966-balanced")
    assert any("kip966-balanced" in sentence for sentence in world.assumptions)
    world.running.start(1)
    world.running.advance(1000)
    questions = {question.broker: question for question in world.running.asked()}
    assert sorted(questions) == [1, 2, 3]
    assert world.running.cluster.controller.partitions[ORDERS].leader is None


def test_a_broker_that_did_not_run_comes_back_uncleanly_unless_it_is_said_otherwise() -> None:
    snapshot = leaderless(log(2, 10, (5, 10)), log(3, 10, (5, 10)), elr=(1,), last_known_elr=())
    spec = spec_of(snapshot)
    ports = dict.fromkeys((CONTROLLER_ID, *spec.broker_ids), 9092)
    for cleanly_down, leader in (((), None), ((1,), 1)):
        world = from_snapshot(spec, snapshot, ports, now_ms=0, cleanly_down=cleanly_down)
        world.running.start(1)
        world.running.advance(1000)
        assert world.running.cluster.controller.partitions[ORDERS].leader == leader


def test_nothing_happens_before_something_is_done() -> None:
    """Broker 3 lags in the snapshot, and does so until the partition moves."""
    state = PartitionState("orders", 0, 1, 7, (1, 2, 3), (1, 2), (), (), offline_replicas=())
    logs = tuple(log(replica, end, (7, end), hw=5) for replica, end in ((1, 20), (2, 20), (3, 5)))
    snapshot = Snapshot(0, cluster_of(live=(1, 2, 3)), (state,), logs={ORDERS: logs})
    world = world_of(snapshot)
    world.running.advance(60_000)
    assert world.running.cluster.controller.partitions[ORDERS].isr == (1, 2)
    assert world.running.cluster.replication[ORDERS].logs[3].end == 5
    world.running.produce(ORDERS, 1, Acks.ALL)
    assert world.running.cluster.controller.partitions[ORDERS].isr == (1, 2, 3)
    assert {one.end for one in world.running.cluster.replication[ORDERS].logs.values()} == {21}


def test_a_topic_has_no_gaps_and_min_isr_is_what_it_was() -> None:
    """The snapshot was taken of one partition; the effective min ISR is capped by the replicas of partition 0."""
    state = PartitionState("orders", 2, 1, 7, (1, 2, 3), (1, 2, 3), (), (), offline_replicas=())
    configs = {"orders": TopicConfig(3, ConfigSource.TOPIC, False, ConfigSource.DEFAULT)}
    cluster = cluster_of(live=(1, 2, 3))
    world = world_of(Snapshot(0, cluster, (state,), configs, first_partition_replicas={"orders": 2}))
    controller = world.running.cluster.controller
    assert [len(controller.partitions[TopicPartition("orders", number)].replicas) for number in range(3)] == [2, 3, 3]
    assert all(len(one.isr) == len(one.replicas) for one in controller.partitions.values())
    assert controller.min_isr("orders") == 2
    assert controller.config("orders").min_isr == 3
    assert any("2 partitions that come before" in sentence for sentence in world.assumptions)


def test_configs_are_where_the_snapshot_has_them() -> None:
    controller = world_of(SNAPSHOT).running.cluster.controller
    configs: Mapping[str, object] = controller.topics
    assert controller.cluster.min_isr == 2
    assert not configs


def read(server: SimulatedServer, up: Iterable[int]) -> Snapshot:
    """What kelr reads of it over the wire, from the brokers that are up."""
    settings = ConnectionSettings.read(",".join(f"127.0.0.1:{server.ports[one]}" for one in up), timeout_s=20)
    with LiveSource(settings) as source:
        return take_snapshot(source, Selection(), now_ms=0, with_logs=lambda _state: True, lineage=True)


def rehearsed(snapshot: Snapshot, *, rules: str | None = None, log_info: Dialect | None = None) -> SimulatedServer:
    spec = spec_of(snapshot, SimulatedSpec(log_info=log_info), rules=rules)
    clock = VirtualClock()

    def made(spec: SimulatedSpec, ports: Mapping[int, int]) -> World:
        return from_snapshot(spec, snapshot, ports, now_ms=clock.now_ms())

    return SimulatedServer(spec, clock=clock, make=made)


@pytest.mark.parametrize("name", ["the sample", "two logs part", "a topic with gaps"])
def test_kelr_reads_from_the_rehearsal_what_it_read_from_the_cluster(name: str) -> None:
    """The same decision, from the snapshot and from a snapshot of its rehearsal taken over the wire."""
    gone = LogUnavailable(1, LogUnavailableReason.UNREACHABLE)
    parted = leaderless(gone, log(2, 135, (3, 110), (5, 135), hw=116), log(3, 118, (3, 118), hw=112))
    snapshot = {
        "the sample": SNAPSHOT,
        "two logs part": parted,
        "a topic with gaps": replace(
            parted,
            partitions=(replace(parted.partitions[0], partition=2),),
            logs={TopicPartition("orders", 2): parted.logs[ORDERS]},
        ),
    }[name]
    with rehearsed(snapshot) as server:
        again = read(server, (2, 3))
        rules = server.inside(lambda world: world.running.cluster.controller.rules)
    assert not server.failures
    by_address = {state.address: state for state in again.partitions}
    for state in snapshot.partitions:
        # What a dead broker holds nobody hears, and why is told in other words.
        assert told(decide(again, by_address[state.address], rules)) == told(decide(snapshot, state, rules))


@pytest.mark.parametrize("rules", ["kip966-none", "kip966-balanced", "kip966-aggressive"])
def test_a_cluster_of_the_whole_kip_is_rehearsed_with_its_own_recovery_strategy(rules: str) -> None:
    with SimulatedServer(SimulatedSpec(rules=rules, topics=1), clock=VirtualClock()) as server:
        snapshot = read(server, (1, 2, 3))
    spec = spec_of(snapshot)
    assert spec.rule_set.recovery is rule_set(rules).recovery
    assert not any("controller runs" in sentence for sentence in world_of(snapshot).assumptions)


def test_topics_of_different_recovery_strategies_keep_them() -> None:
    with SimulatedServer(SimulatedSpec(rules="kip966-none", topics=2), clock=VirtualClock()) as server:
        snapshot = read(server, (1, 2, 3))
    first, second = sorted(snapshot.configs)
    configs = {**snapshot.configs, second: replace(snapshot.configs[second], recovery_strategy="aggressive")}
    assert snapshot.configs[first].recovery_strategy == "none"
    world = world_of(replace(snapshot, configs=configs))
    controller = world.running.cluster.controller
    assert controller.rules.name == "kip966"
    assert [controller.rules_of(topic).recovery for topic in (first, second)] == ["none", "aggressive"]


def test_an_incident_of_production_is_rehearsed_to_its_end_under_the_rules_to_come() -> None:
    """The brokers come back, the Unclean Recovery Manager asks them over the wire, and the longest log is elected."""
    gone = LogUnavailable(1, LogUnavailableReason.UNREACHABLE)
    snapshot = leaderless(
        gone, log(2, 135, (5, 135), hw=116), log(3, 116, (5, 116), hw=116), elr=(), last_known_elr=(1, 2)
    )
    with rehearsed(snapshot, rules="kip966-balanced", log_info=Dialect.KIP) as server:
        assert server.inside(lambda world: world.running.cluster.controller.partitions[ORDERS].leader) is None
        server.inside(lambda world: world.running.start(1))
        deadline = time.monotonic() + 20
        while server.inside(lambda world: world.running.cluster.controller.partitions[ORDERS].leader) is None:
            assert time.monotonic() < deadline
            server.advance(100)
        again = read(server, (1, 2, 3))
    assert again.partitions[0].leader == 2
    assert {answer.log_end for answer in again.logs[ORDERS] if isinstance(answer, ReplicaLog)} == {135}


def test_what_is_made_up_is_bounded_however_many_partitions_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.lab.simulated.from_snapshot.MOST_IN_ALL", 20_000)
    states = tuple(
        PartitionState("many", number, 1, 7, (1, 2, 3), (1, 2, 3), (), (), offline_replicas=()) for number in range(200)
    )
    ends = {1: 900_000, 2: 899_991, 3: 899_600}
    logs = {state.address: tuple(log(one, end, (7, end), hw=5) for one, end in ends.items()) for state in states}
    world = world_of(Snapshot(0, cluster_of(live=(1, 2, 3)), states, logs=logs))
    made = world.running.cluster.replication
    assert len(made) == len(states)
    assert max(len(one.logs[1].records) for one in made.values()) <= 20_000 // len(states) + FEWEST_EACH
    assert {one.logs[1].end for one in made.values()} == {900_000}
    assert any("200 partitions are shorter" in sentence for sentence in world.assumptions)


def test_snapshots_that_cannot_be_rehearsed_are_refused() -> None:
    nobody = Snapshot(0, replace(SNAPSHOT.cluster, brokers=()))
    with pytest.raises(UsageError, match="no brokers"):
        spec_of(nobody)
    many = replace(SNAPSHOT.cluster, brokers=tuple(Broker(id_, BrokerStatus.LIVE) for id_ in range(1001)))
    with pytest.raises(UsageError, match="1001, outside 1 to 1000"):
        spec_of(Snapshot(0, many))


def test_the_controller_takes_an_id_that_no_broker_has() -> None:
    taken = replace(SNAPSHOT.cluster, brokers=(Broker(CONTROLLER_ID, BrokerStatus.LIVE), Broker(7, BrokerStatus.LIVE)))
    with rehearsed(Snapshot(0, taken)) as server:
        again = read(server, (7, CONTROLLER_ID))
        assert server.inside(lambda world: world.controller) == CONTROLLER_ID + 1
    assert [broker.id for broker in again.cluster.brokers] == [7, CONTROLLER_ID]
