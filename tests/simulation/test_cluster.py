"""Controller, logs and processes together: records reach replicas, dead brokers do nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_3, KIP966_BALANCED, Configs, ControllerState, Refusal, RuleSet, events
from kelr.engine import decide
from kelr.model import (
    BrokerStatus,
    ConfigSource,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    TopicPartition,
)
from kelr.simulation import Acks, SimulatedCluster, started

ORDERS = TopicPartition("orders", 0)


def cluster(rules: RuleSet = ELR_4_3, *, min_isr: int = 2, replicas: tuple[int, ...] = (1, 2, 3)) -> SimulatedCluster:
    """A healthy partition with five committed records on every replica."""
    controller = ControllerState(rules, cluster=Configs(min_isr, False))
    fresh, _ = started(controller, (1, 2, 3, 4)).after(events.TopicCreated("orders", (replicas,)))
    written, _ = fresh.produce(ORDERS, 5, Acks.ALL)
    return written.replicate(ORDERS)


def after(state: SimulatedCluster, *happened: events.Event) -> SimulatedCluster:
    for event in happened:
        state, done = state.after(event)
        assert done.error == "NONE"
    return state


def ends(state: SimulatedCluster) -> dict[int, int]:
    return {replica: log.end for replica, log in state.replication[ORDERS].logs.items()}


def test_brokers_start_live_with_epochs_of_their_own() -> None:
    brokers = cluster().controller.brokers
    assert all(broker.status is BrokerStatus.LIVE for broker in brokers.values())
    assert len({broker.epoch for broker in brokers.values()}) == 4


def test_a_new_leader_starts_an_epoch_where_its_log_ends() -> None:
    state = after(cluster(), events.BrokerFenced(1))
    leadership = state.replication[ORDERS].leadership
    assert leadership is not None
    assert (leadership.leader, leadership.epoch, leadership.epoch_start) == (2, 1, 5)
    assert leadership.isr == {2, 3}


def test_a_fenced_or_dead_broker_neither_leads_nor_fetches() -> None:
    dead = cluster().stopped(1)
    assert dead.serving(ORDERS) is None
    assert dead.produce(ORDERS, 1, Acks.LEADER)[1].error == "LEADER_NOT_AVAILABLE"
    assert dead.replicate(ORDERS) == dead
    fenced = after(cluster(), events.BrokerFenced(3))
    written, _ = fenced.produce(ORDERS, 1, Acks.ALL)
    assert ends(written.replicate(ORDERS)) == {1: 6, 2: 6, 3: 5}
    assert written.fetch(ORDERS, 3) == written


def test_a_broker_of_another_assignment_does_not_fetch() -> None:
    state = cluster()
    assert state.fetch(ORDERS, 4) == state


def test_registering_starts_the_process_again() -> None:
    state = after(cluster().stopped(3), events.BrokerRegistered(3, clean=False), events.BrokerUnfenced(3))
    assert state.running(3)


def test_a_power_loss_leaves_what_was_flushed() -> None:
    written, _ = cluster().flushed(1).produce(ORDERS, 2, Acks.LEADER)
    assert ends(written.stopped(1)) == {1: 7, 2: 5, 3: 5}
    assert ends(written.stopped(1, power_loss=True)) == {1: 5, 2: 5, 3: 5}


def test_a_failed_directory_takes_its_log() -> None:
    state = after(cluster(), events.DirectoryFailed(3))
    assert ends(state) == {1: 5, 2: 5, 3: 0}
    answers = {answer.replica: answer for answer in state.as_snapshot().logs[ORDERS]}
    assert isinstance(answers[3], LogUnavailable)
    assert answers[3].reason is LogUnavailableReason.STORAGE_ERROR
    assert ends(state.replicate(ORDERS))[3] == 0


def test_a_shutdown_with_a_failed_directory_leaves_no_mark_of_a_clean_one() -> None:
    """LogManager.readBrokerEpochFromCleanShutdownFiles asks every directory for it."""
    assert cluster().shut_down(3).crashed == frozenset()
    assert after(cluster(), events.DirectoryFailed(3)).shut_down(3).crashed == {3}


def test_a_directory_that_is_missing_at_registration_takes_its_log() -> None:
    back = events.BrokerRegistered(3, clean=False, lost_directories=frozenset({ORDERS}))
    assert ends(after(cluster(), back)) == {1: 5, 2: 5, 3: 0}


def test_a_completed_reassignment_deletes_the_logs_of_dropped_replicas() -> None:
    state = after(cluster(), events.Reassigned(ORDERS, (1, 2, 4)))
    assert ends(state) == {1: 5, 2: 5, 4: 0, 3: 5}
    state, done = state.replicate(ORDERS).propose(ORDERS, (1, 2, 4)).deliver(ORDERS)
    assert done.answers == {ORDERS: "NONE"}
    assert ends(state) == {1: 5, 2: 5, 4: 5}


def test_a_deleted_topic_takes_its_logs_along() -> None:
    assert after(cluster(), events.TopicDeleted("orders")).replication == {}


def test_a_proposal_is_refused_after_a_reboot_and_granted_before_it() -> None:
    """KIP-903: the request carries the broker epoch of the follower's last fetch."""
    alone, _ = cluster().propose(ORDERS, (1, 3)).deliver(ORDERS)
    asking = alone.replicate(ORDERS).propose(ORDERS, (1, 2, 3))
    granted, done = asking.deliver(ORDERS)
    assert (done.answers, granted.controller.partitions[ORDERS].isr) == ({ORDERS: "NONE"}, (1, 2, 3))
    rebooted = after(asking, events.BrokerRegistered(2, clean=False), events.BrokerUnfenced(2))
    refused, done = rebooted.deliver(ORDERS)
    assert (done.answers, refused.controller.partitions[ORDERS].isr) == ({ORDERS: "INELIGIBLE_REPLICA"}, (1, 3))
    leadership = refused.replication[ORDERS].leadership
    assert leadership is not None
    assert leadership.proposed is None


def test_without_a_request_nothing_is_delivered() -> None:
    state = cluster()
    assert state.deliver(ORDERS)[0] == state


def test_a_snapshot_hears_running_brokers_alone() -> None:
    snapshot = after(cluster().stopped(2), events.BrokerFenced(3)).as_snapshot()
    heard = {answer.replica: type(answer) for answer in snapshot.logs[ORDERS]}
    assert heard == {1: ReplicaLog, 2: LogUnavailable, 3: LogUnavailable}
    log = next(answer for answer in snapshot.logs[ORDERS] if isinstance(answer, ReplicaLog))
    assert (log.log_end, log.last_epoch, log.high_watermark, log.current_leader_epoch) == (5, 0, 5, 0)
    assert log.broker_epoch == snapshot.cluster.brokers[0].broker_epoch


def test_what_is_told_by_hand_counts_before_what_is_simulated() -> None:
    told = ReplicaLog(replica=2, log_end=99)
    assert told in cluster().tell(ORDERS, told).as_snapshot().logs[ORDERS]


def test_a_partition_without_records_has_no_logs_in_a_snapshot() -> None:
    state = PartitionState("orders", 0, leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2))
    assert ORDERS not in cluster().placed(state).as_snapshot().logs


def test_a_snapshot_tells_where_configs_come_from() -> None:
    state = after(cluster(), events.ConfigWritten("orders", min_isr=1))
    config = state.as_snapshot().configs["orders"]
    assert (config.min_insync_replicas, config.min_insync_replicas_source) == (1, ConfigSource.TOPIC)
    assert config.unclean_leader_election_source is ConfigSource.CLUSTER_DEFAULT


def test_the_engine_reads_the_simulated_logs() -> None:
    state = after(cluster(min_isr=1).cut(ORDERS, 2, 3), events.BrokerFenced(3), events.BrokerFenced(1))
    snapshot = after(state, events.BrokerFenced(2)).as_snapshot()
    assert decide(snapshot, snapshot.partitions[0], ELR_4_3).waits_for == (2,)


@pytest.mark.parametrize("power_loss", [True, False])
def test_the_recovery_manager_is_answered_from_the_logs(power_loss: bool) -> None:
    state = cluster(KIP966_BALANCED).flushed(2)
    for broker in (1, 2, 3):
        state = state.stopped(broker, power_loss=power_loss)
    state = after(state, *(events.BrokerFenced(broker) for broker in (1, 2, 3)))
    for broker in (2, 3):
        state = after(state, events.BrokerRegistered(broker, clean=False), events.BrokerUnfenced(broker))
    assert [request.broker for request in state.asked] == [1, 2, 3]
    for broker in (3, 2):
        state, _ = state.reply(broker).arrive(broker)
    assert state.controller.partitions[ORDERS].leader == 2
    assert state.replication[ORDERS].lost_by(2) == frozenset()
    assert state.reply(1) == state
    assert state.arrive(1) == (state, ())


def test_a_dead_leaders_high_watermark_stays() -> None:
    written, _ = cluster(min_isr=1).produce(ORDERS, 1, Acks.ALL)
    alone = after(written.stopped(1), events.BrokerFenced(2), events.BrokerFenced(3))
    assert alone.controller.partitions[ORDERS].isr == (1,)
    assert alone.replication[ORDERS].logs[1].high_watermark == 5


def test_a_dead_leaders_high_watermark_stays_when_its_request_is_refused() -> None:
    alone = after(cluster(min_isr=1), events.BrokerFenced(2), events.BrokerFenced(3), events.BrokerUnfenced(2))
    asking, _ = alone.replicate(ORDERS, (2,)).propose(ORDERS, (1, 2)).produce(ORDERS, 1, Acks.ALL)
    dead, done = after(asking.stopped(1), events.BrokerFenced(2)).deliver(ORDERS)
    assert done.answers == {ORDERS: "INELIGIBLE_REPLICA"}
    assert dead.replication[ORDERS].logs[1].high_watermark == 5


def leaderless() -> SimulatedCluster:
    """All of LastKnownELR is live, and every replica is asked."""
    state = cluster(KIP966_BALANCED)
    for broker in (1, 2, 3):
        state = after(state.stopped(broker), events.BrokerFenced(broker))
    for broker in (1, 2, 3):
        state = after(state, events.BrokerRegistered(broker, clean=False), events.BrokerUnfenced(broker))
    return state


def test_questions_to_a_process_that_has_ended_are_lost_and_each_request_has_its_own_answer() -> None:
    state = leaderless()
    before = {request.broker: request.id for request in state.asked}
    again = after(state.stopped(2), events.BrokerRegistered(2, clean=False), events.BrokerUnfenced(2))
    asked = {request.broker: request.id for request in again.asked}
    assert len(again.asked) == len(asked) == 3
    assert asked[2] > before[2]
    assert [answer.request for answer in again.reply(2).replies[2]] == [asked[2]]
    late = state.reply(2)
    late = after(late.stopped(2), events.BrokerRegistered(2, clean=False), events.BrokerUnfenced(2)).reply(2)
    assert [answer.request for answer in late.replies[2]] == [before[2], asked[2]]
    _, steps = late.arrive(2)
    assert [[refused.reason for refused in done.refused] for done in steps] == [[Refusal.BROKER_EPOCH], []]


def test_a_partition_that_is_put_into_another_state_has_no_recovery_left() -> None:
    state = leaderless()
    assert ORDERS in state.manager.tasks
    assert state.placed(state.controller.partitions[ORDERS]).manager.tasks == {}


def test_values_do_not_change() -> None:
    before = cluster()
    copy = replace(before)
    after(before.stopped(1, power_loss=True), events.BrokerFenced(1))
    assert before == copy
