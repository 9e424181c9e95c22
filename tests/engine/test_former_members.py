"""Members of ISR, ELR or LastKnownELR that are no replicas any more: seen on Kafka 4.3.1 after a reassignment that took
a replica out whose place in the ELR stayed."""

from __future__ import annotations

from dataclasses import replace

from kelr.engine import decide
from kelr.engine.planning import plan_of
from kelr.model import (
    ELR_FEATURE,
    AdviceAction,
    Broker,
    BrokerStatus,
    Cluster,
    ElectionRequest,
    ElectionType,
    Features,
    LossCertainty,
    PartitionState,
    RecoveryQuorum,
    ReplicaLog,
    Situation,
    Snapshot,
    TopicConfig,
    TopicPartition,
)

AT = TopicPartition("orders", 0)
BROKERS = tuple(Broker(id_, BrokerStatus.LIVE) for id_ in (1, 2, 3, 4))
CLUSTER = Cluster(
    "c",
    BROKERS,
    Features({ELR_FEATURE: 1, "metadata.version": 30}, {ELR_FEATURE: 1, "metadata.version": 30}),
    brokers_source="DescribeCluster v2",
)
DOWN = {3: BrokerStatus.FENCED}
LEADERLESS = PartitionState("orders", 0, None, 5, (2, 4, 1), (), (3,), (4,), offline_replicas=())
LOGS = tuple(
    ReplicaLog(replica, 50, 4, current_leader_epoch=5, high_watermark=40, log_start=0) for replica in (2, 4, 1)
)


def test_nobody_is_waited_for_who_cannot_be_elected() -> None:
    decision = decide(
        Snapshot(0, CLUSTER, (LEADERLESS,), {"orders": TopicConfig(min_insync_replicas=2)}, {AT: LOGS}), LEADERLESS
    )
    assert decision.situation is Situation.NEEDS_UNCLEAN_RECOVERY
    assert (decision.elected, decision.waits_for) == (None, ())
    evidence = {step.rule: step.evidence for step in decision.steps}
    assert evidence["live-elr-member"] == "ELR is [3]; broker 3 is no replica any more"
    assert decision.advice.action is AdviceAction.GET_MORE_INFORMATION
    assert decision.advice.text.startswith("Broker 3 held everything committed and is no replica any more: look on")
    assert "Bring" not in decision.advice.text


def test_what_it_alone_held_is_no_proven_loss_of_nothing() -> None:
    """All replicas are heard, and still the one that held everything is not."""
    decision = decide(
        Snapshot(0, CLUSTER, (LEADERLESS,), {"orders": TopicConfig(min_insync_replicas=2)}, {AT: LOGS}), LEADERLESS
    )
    for outcome in decision.elections:
        if outcome.loss is not None:
            assert outcome.loss.grade is LossCertainty.UNKNOWN
            assert outcome.loss.unheard == (3,)
            assert outcome.loss.committed is not None
            assert outcome.loss.committed.at_most is None
    balanced = next(one for one in decision.elections if one.election is ElectionType.LONGEST_LOG_BALANCED)
    assert (balanced.elected, balanced.waits_for) == (None, ())


def test_its_unclean_return_has_the_last_known_leader_elected_and_so_it_stays_down() -> None:
    """Its place in the ELR ends then, and nothing else keeps Kafka from the last known leader, whose log was cut."""
    away = replace(CLUSTER, brokers=tuple(Broker(id_, DOWN.get(id_, BrokerStatus.LIVE)) for id_ in (1, 2, 3, 4)))
    cut = tuple(replace(log, log_end=0, last_epoch=None) if log.replica == 4 else log for log in LOGS)
    snapshot = Snapshot(0, away, (LEADERLESS,), {"orders": TopicConfig(min_insync_replicas=2)}, {AT: cut})
    decision = decide(snapshot, LEADERLESS)
    assert [(one.replica, one.clean, one.elected) for one in decision.forecasts] == [(3, True, None), (3, False, 4)]
    assert decision.summary == (
        "orders:0 has no leader (leader epoch 5); only an unclean election elects a leader, or the return of broker 3"
        " after an unclean shutdown."
    )
    assert decision.advice.keep_down == (3,)
    assert decision.advice.text.endswith(
        "Keep broker 3 down until 2 leads: the moment it returns after an unclean shutdown Kafka elects 4, which loses"
        " at least 50 offsets, 40 of them known to be committed; the log of broker 3 was not read."
    )
    wish = ElectionRequest(ElectionType.DESIGNATION, desired_leader=2)
    (planned,) = plan_of(snapshot, (decision,), lambda _: wish, now_ms=0, made_by="test").elections
    assert [hold.broker for hold in planned.hold] == [3]


def test_a_quorum_that_the_metadata_log_proves_needs_it_not() -> None:
    quorum = RecoveryQuorum((2, 4), (), (), 2, 10, 0, 5, 7, 20, 0)
    snapshot = Snapshot(
        0,
        CLUSTER,
        (LEADERLESS,),
        {"orders": TopicConfig(min_insync_replicas=2)},
        {AT: LOGS},
        quorums={AT: quorum},
    )
    balanced = next(
        one for one in decide(snapshot, LEADERLESS).elections if one.election is ElectionType.LONGEST_LOG_BALANCED
    )
    assert balanced.elected == 2
    assert balanced.loss is not None
    assert balanced.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
