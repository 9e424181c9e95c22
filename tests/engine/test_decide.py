"""Decisions: who is elected, what it waits for, what is lost and how sure that is, what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_3, KRAFT, isr_altered
from kelr.engine import decide, situation_of
from kelr.engine.case import case_of
from kelr.model import (
    AdviceAction,
    Bounds,
    ConfigSource,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    Outcome,
    PartitionState,
    ReplicaLog,
    Situation,
    TopicConfig,
    Truncation,
)
from tests.engine.cases import cluster_of, decision, leaderless, log_of, silent, snapshot_of


def outcome(of: Decision, kind: ElectionType, designate: int | None = None) -> Outcome:
    return next(o for o in of.elections if o.election is kind and (designate is None or o.designate == designate))


def forecast(of: Decision, replica: int, *, clean: bool) -> Forecast:
    return next(f for f in of.forecasts if f.replica == replica and f.clean is clean)


@pytest.fixture
def incident() -> Decision:
    """The incident of kafka-facts: 1 is gone and in the ELR, 3 is first and short, 2 is longer."""
    return decision(
        leaderless((3, 1, 2), elr=(1,), last_known=(1,)),
        cluster_of(live=(2, 3), fenced=(1,)),
        [log_of(3, (0, 116)), silent(1), log_of(2, (0, 135), hw=120)],
    )


def test_the_incident_waits_for_the_elr_member(incident: Decision) -> None:
    assert incident.situation is Situation.WAITING_FOR_ELR
    assert incident.elected is None
    assert incident.waits_for == (1,)
    assert [(step.rule, step.holds) for step in incident.steps] == [
        ("live-isr-member", False),
        ("live-elr-member", False),
        ("last-known-leader", False),
        ("unclean-election", False),
    ]
    assert incident.summary == "orders:0 has no leader (leader epoch 5) and waits for broker 1."


def test_the_stock_election_takes_the_first_live_replica_and_loses_the_difference(incident: Decision) -> None:
    unclean = outcome(incident, ElectionType.UNCLEAN)
    assert (unclean.elected, unclean.elected_by) == (3, ElectedBy.UNCLEAN)
    loss = unclean.loss
    assert loss is not None
    assert loss.grade is LossCertainty.UNKNOWN
    assert loss.committed == Bounds(4, None)
    assert loss.committed_ranges == ((116, 119),)
    assert loss.total == Bounds(19, None)
    assert loss.lost_ranges == ((116, 134),)
    assert loss.unheard == (1,)
    assert loss.truncations == (Truncation(2, 116, 19),)


def test_balanced_waits_for_the_quorum_and_aggressive_takes_the_best_heard(incident: Decision) -> None:
    balanced = outcome(incident, ElectionType.LONGEST_LOG_BALANCED)
    assert (balanced.elected, balanced.waits_for) == (None, (1,))
    aggressive = outcome(incident, ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert (aggressive.elected, aggressive.elected_by) == (2, ElectedBy.LONGEST_LOG)
    assert aggressive.loss == outcome(incident, ElectionType.DESIGNATION, 2).loss


def test_a_clean_return_is_proven_and_an_unclean_one_is_not(incident: Decision) -> None:
    clean, unclean = forecast(incident, 1, clean=True), forecast(incident, 1, clean=False)
    assert (clean.elected, clean.elected_by) == (1, ElectedBy.ELR)
    assert clean.loss is not None
    assert clean.loss.grade is LossCertainty.PROVEN_NONE
    assert (unclean.elected, unclean.elected_by) == (1, ElectedBy.LAST_KNOWN_LEADER)
    assert unclean.loss is not None
    assert unclean.loss.grade is LossCertainty.UNKNOWN
    assert "no config forbids it" in unclean.warning


def test_the_advice_brings_the_elr_member_back_or_designates_the_best(incident: Decision) -> None:
    assert incident.advice.action is AdviceAction.BRING_BACK
    assert incident.advice.replica == 1
    assert incident.advice.alternative.startswith("If 1 cannot return: designate 2")
    assert incident.advice.elect == ("elect", "--election-type", "designation", "--designate", "2", "orders:0")
    assert incident.advice.command == ("recover", "collect", "--log-dir", "DIRECTORY", "--out", "broker-1.kelr")


def test_with_every_log_heard_the_best_is_safe_if_fewer_than_min_isr_lost_data() -> None:
    decided = decision(
        leaderless((3, 1, 2)),
        cluster_of(live=(1, 2, 3)),
        [log_of(3, (0, 10)), log_of(1, (0, 30), hw=20), log_of(2, (0, 25))],
    )
    assert decided.situation is Situation.NEEDS_UNCLEAN_RECOVERY
    assert decided.advice.action is AdviceAction.DESIGNATE
    assert decided.advice.replica == 1
    balanced = outcome(decided, ElectionType.LONGEST_LOG_BALANCED)
    assert balanced.elected == 1
    assert balanced.loss is not None
    assert balanced.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    assert balanced.loss.total == Bounds(0, 0)
    worst = outcome(decided, ElectionType.UNCLEAN).loss
    assert worst is not None
    assert (worst.committed, worst.total) == (Bounds(15, 20), Bounds(20, 20))
    assert worst.uncommitted == Bounds(0, 5)


def test_diverged_logs_lose_both_their_tails_whoever_leads() -> None:
    """The longest log is of an older epoch: electing either loses records that only the other holds."""
    decided = decision(
        leaderless((1, 2)), cluster_of(live=(1, 2)), [log_of(1, (0, 100), hw=80), log_of(2, (0, 80), (1, 90), hw=80)]
    )
    newest, longest = (outcome(decided, ElectionType.DESIGNATION, replica).loss for replica in (2, 1))
    assert newest is not None
    assert longest is not None
    assert newest.truncations == (Truncation(1, 80, 20),)
    assert newest.total == Bounds(20, 20)
    assert longest.truncations == (Truncation(2, 80, 10),)
    assert longest.lost_ranges == ((80, 89),)
    assert any("longest log" in note for note in decided.notes)


def test_contradictory_evidence_about_an_elr_member_is_never_proven() -> None:
    """2 is in the ELR, yet 3 knows more to be committed than 2 holds: something is not as it should be."""
    decided = decision(
        leaderless((2, 3), elr=(2,)), cluster_of(live=(2, 3)), [log_of(2, (0, 10)), log_of(3, (0, 20), hw=15)]
    )
    assert decided.situation is Situation.LEADER_PENDING
    loss = outcome(decided, ElectionType.UNCLEAN).loss
    assert loss is not None
    assert loss.grade is LossCertainty.UNKNOWN
    assert "contradictory" in loss.reason


BLIND = ReplicaLog(2, 100, current_leader_epoch=5, log_start=0, last_epoch_error="TOPIC_AUTHORIZATION_FAILED (READ)")


def test_a_log_that_tells_no_epochs_counts_as_one_that_may_hold_more() -> None:
    decided = decision(leaderless((1, 2)), cluster_of(live=(1, 2)), [log_of(1, (0, 120)), BLIND])
    known, blind = (outcome(decided, ElectionType.DESIGNATION, replica).loss for replica in (1, 2))
    assert known is not None
    assert (known.grade, known.unheard, known.total) == (LossCertainty.UNKNOWN, (2,), Bounds(0, None))
    assert blind is not None
    assert (blind.grade, blind.total) == (LossCertainty.UNKNOWN, None)
    assert outcome(decided, ElectionType.LONGEST_LOG_BALANCED).waits_for == (2,)


def test_nothing_is_claimed_where_no_log_tells_its_epochs() -> None:
    decided = decision(leaderless((1, 2)), cluster_of(live=(1, 2)), [replace(BLIND, replica=1), BLIND])
    assert outcome(decided, ElectionType.LONGEST_LOG_AGGRESSIVE).elected is None
    loss = outcome(decided, ElectionType.UNCLEAN).loss
    assert loss is not None
    assert (loss.grade, loss.total) == (LossCertainty.UNKNOWN, None)
    assert decided.advice.action is AdviceAction.GET_MORE_INFORMATION
    assert "grant READ" in decided.advice.text


def test_the_last_known_leader_with_a_worse_log_is_held_down() -> None:
    decided = decision(
        leaderless((1, 2, 3), last_known=(1,)),
        cluster_of(live=(2, 3), fenced=(1,)),
        [log_of(1, (0, 50)), log_of(2, (0, 80)), log_of(3, (0, 60))],
    )
    assert decided.situation is Situation.WAITING_FOR_LAST_KNOWN_LEADER
    assert decided.waits_for == (1,)
    assert (decided.advice.action, decided.advice.replica) == (AdviceAction.HOLD, 1)
    assert "lacks 30 offsets" in decided.advice.text


def test_the_last_known_leader_that_nobody_heard_may_return_only_if_its_disk_is_whole() -> None:
    decided = decision(
        leaderless((1, 2, 3), last_known=(1,)),
        cluster_of(live=(2, 3), fenced=(1,)),
        [silent(1), log_of(2, (0, 80)), log_of(3, (0, 60))],
    )
    assert decided.advice.action is AdviceAction.BRING_BACK
    assert "keep it down and read its disk first" in decided.advice.text
    assert "designate 2" in decided.advice.alternative
    for clean in (True, False):
        found = forecast(decided, 1, clean=clean)
        assert found.loss is not None
        assert found.loss.grade is LossCertainty.UNKNOWN


def test_without_elr_an_unclean_return_of_the_last_isr_member_is_not_proven() -> None:
    decided = decision(
        leaderless((1, 2, 3), isr=(1,), elr=None, last_known=None),
        cluster_of(live=(2, 3), fenced=(1,), elr=False),
        [silent(1), log_of(2, (0, 80)), log_of(3, (0, 60))],
        rules=None,
    )
    assert decided.rules == KRAFT.name
    assert decided.situation is Situation.WAITING_FOR_ISR
    clean, unclean = forecast(decided, 1, clean=True), forecast(decided, 1, clean=False)
    assert (clean.elected, unclean.elected) == (1, 1)
    assert clean.loss is not None
    assert clean.loss.grade is LossCertainty.PROVEN_NONE
    assert unclean.loss is not None
    assert unclean.loss.grade is LossCertainty.UNKNOWN
    assert "stays in the ISR" in unclean.warning


def test_kafka_4_0_elects_a_dead_last_known_leader() -> None:
    state = leaderless((1, 2), last_known=(1,))
    old = decision(state, cluster_of(live=(2,), fenced=(1,)), [silent(1), log_of(2, (0, 9))], rules=ELR_4_0)
    new = decision(state, cluster_of(live=(2,), fenced=(1,)), [silent(1), log_of(2, (0, 9))], rules=ELR_4_3)
    assert old.elected == 1
    assert outcome(old, ElectionType.UNCLEAN).note == "broker 1 is fenced: it would be the recorded leader only"
    assert new.elected is None
    assert outcome(new, ElectionType.UNCLEAN).elected == 2


def test_kafka_4_0_that_recorded_no_leader_elects_nobody_at_all() -> None:
    decided = decision(
        leaderless((1, 2), last_known=(-1,)), cluster_of(live=(1, 2)), [log_of(1), log_of(2)], rules=ELR_4_0
    )
    assert outcome(decided, ElectionType.UNCLEAN).elected is None
    assert decided.advice.action is AdviceAction.GET_MORE_INFORMATION
    assert "min.insync.replicas" in decided.advice.text


def test_unclean_election_by_config_is_pending_and_the_better_log_is_designated_first() -> None:
    decided = decision(
        leaderless((1, 2)), cluster_of(live=(1, 2)), [log_of(1, (0, 10)), log_of(2, (0, 20))], unclean=True
    )
    assert decided.situation is Situation.LEADER_PENDING
    assert (decided.elected, decided.elected_by) == (1, ElectedBy.UNCLEAN)
    assert (decided.advice.action, decided.advice.replica) == (AdviceAction.DESIGNATE, 2)


def test_on_kafka_4_0_a_last_known_leader_that_nobody_tells_of_may_be_elected_instead() -> None:
    unknown = replace(leaderless((3, 2), elr=None), last_known_elr=None)
    for rules, told in ((ELR_4_0, True), (ELR_4_3, False)):
        decided = decision(unknown, cluster_of(live=(2,), fenced=(3,)), [silent(3), log_of(2, (0, 5))], rules=rules)
        assert ("elects that one instead of whom is shown" in " ".join(decided.notes)) is told


def test_no_live_replica_says_who_is_elected_on_return() -> None:
    decided = decision(
        leaderless(elr=(2, 3), last_known=(3,)), cluster_of(live=(), fenced=(1, 2, 3)), map(silent, (1, 2, 3))
    )
    assert decided.situation is Situation.NO_LIVE_REPLICA
    assert decided.waits_for == (2, 3)
    assert (decided.advice.action, decided.advice.replica) == (AdviceAction.BRING_BACK, 2)
    assert outcome(decided, ElectionType.DESIGNATION).note == "no replica is live"


def test_a_partition_that_is_led_needs_no_election() -> None:
    state = PartitionState("orders", 0, 2, 5, (1, 2, 3), (2,), (3,), ())
    decided = decision(
        state, cluster_of(live=(2, 3), fenced=(1,)), [silent(1), log_of(2, (5, 9), start=1), log_of(3, (5, 7), start=1)]
    )
    assert decided.situation is Situation.UNDER_MIN_ISR
    assert decided.forecasts == ()
    for kind in set(ElectionType) - {ElectionType.PREFERRED}:
        assert outcome(decided, kind).elected == 2
        assert outcome(decided, kind).note == "not needed: broker 2 leads"
    assert decided.advice.action is AdviceAction.RESTORE_REPLICATION
    assert "Broker 2 is the last replica in sync: do not restart it." in decided.advice.text


def test_the_last_replica_in_sync_is_not_to_be_restarted_where_min_isr_is_1() -> None:
    """acks=all is answered, and a failure of this one leaves no leader."""
    alone = PartitionState("orders", 0, 2, 0, (1, 2, 3), (2,), (), ())
    live = cluster_of(live=(2, 3), fenced=(1,))
    advice = decision(alone, live, min_isr=1).advice
    assert advice.action is AdviceAction.RESTORE_REPLICATION
    assert advice.text == (
        "Start broker 1 (fenced). min ISR (1) is met, but new acks=all records have one copy. Broker 2 is the last"
        " replica in sync: do not restart it."
    )
    both = decision(replace(alone, isr=(2, 3)), live, min_isr=1).advice
    assert (both.action, "is met" in both.text) == (AdviceAction.NOTHING, True)
    moved = replace(alone, replicas=(2, 3), adding=(3,), removing=(2,))
    assert (
        decision(moved, live, min_isr=1).advice.action is AdviceAction.NOTHING
    )  # it has one replica, and gets another
    whole = replace(alone, replicas=(2,))
    assert decision(whole, live, min_isr=1).advice.text == "Nothing to do."


def test_an_unknown_elr_is_never_taken_for_an_empty_one_in_silence() -> None:
    decided = decision(leaderless(elr=None, last_known=None), cluster_of(live=(1, 2, 3)), rules=None)
    assert decided.situation is Situation.UNKNOWN
    assert decided.elr is None
    assert any("not known" in note for note in decided.notes)


@pytest.mark.parametrize(
    ("min_isr", "isr", "situation"),
    [
        (2, (1, 2), Situation.HEALTHY),
        (2, (1,), Situation.UNDER_MIN_ISR),
        (None, (1, 2, 3), Situation.HEALTHY),
        (None, (1, 2), Situation.UNKNOWN),
    ],
)
def test_min_isr_decides_between_healthy_and_not(
    min_isr: int | None, isr: tuple[int, ...], situation: Situation
) -> None:
    state = PartitionState("orders", 0, 1, 5, (1, 2, 3), isr, (), ())
    assert situation_of(state, cluster_of(live=(1, 2, 3)), min_isr) is situation


def test_a_leader_on_a_dead_broker_is_not_healthy() -> None:
    state = PartitionState("orders", 0, 1, 5, (1, 2), (1, 2), (), ())
    assert situation_of(state, cluster_of(live=(2,), fenced=(1,)), 1) is Situation.LEADER_NOT_LIVE


@pytest.mark.parametrize("first", [None, 1, 3])
@pytest.mark.parametrize(
    ("replicas", "min_isr", "situation"),
    [((1,), 1, Situation.HEALTHY), ((1, 2, 3), 2, Situation.UNDER_MIN_ISR)],
)
def test_producers_are_refused_by_the_partitions_own_replica_count(
    first: int | None, replicas: tuple[int, ...], min_isr: int, situation: Situation
) -> None:
    """Partition.effectiveMinIsr; whatever partition 0 has. Seen on Kafka 4.4.0 (docs/election-rules.md)."""
    state = PartitionState("orders", 1, 1, 5, replicas, (1,), (), ())
    snapshot = snapshot_of(state, cluster_of(live=(1,), fenced=(2, 3)))
    decision = decide(replace(snapshot, first_partition_replicas={} if first is None else {"orders": first}), state)
    assert (decision.min_isr, decision.situation) == (min_isr, situation)


@pytest.mark.parametrize(("first", "elr"), [(1, ()), (3, (2,))])
def test_the_controller_keeps_the_elr_by_the_replica_count_of_partition_0(first: int, elr: tuple[int, ...]) -> None:
    """ReplicationControlManager.getTopicEffectiveMinIsr. Seen on Kafka 4.4.0 (docs/election-rules.md)."""
    state = PartitionState("orders", 1, 1, 5, (1, 2), (1, 2), (), ())
    snapshot = snapshot_of(state, cluster_of(live=(1,), fenced=(2,)))
    case = case_of(replace(snapshot, first_partition_replicas={"orders": first}), state, ELR_4_3)
    assert isr_altered(state, (1,), case.around).after.elr == elr


@pytest.mark.parametrize(
    ("adding", "removing", "note"),
    [
        ((4,), (1, 2), "a reassignment is under way: it adds broker 4 and removes brokers 1 and 2,"),
        ((4,), (), "a reassignment is under way: it adds broker 4,"),
        ((), (3,), "a reassignment is under way: it removes broker 3,"),
        ((), (), None),
        (None, None, "whether a reassignment is under way is not known (CLUSTER_AUTHORIZATION_FAILED)"),
    ],
)
def test_a_reassignment_under_way_is_named_and_an_unknown_one_is_said_to_be(
    adding: tuple[int, ...] | None, removing: tuple[int, ...] | None, note: str | None
) -> None:
    why = "CLUSTER_AUTHORIZATION_FAILED" if adding is None else None
    cluster = replace(cluster_of(live=[1, 2, 3, 4]), reassignments_error=why)
    state = PartitionState("orders", 0, 1, 5, (1, 2, 3, 4), (1, 2, 3), (), (), adding=adding, removing=removing)
    found = [text for text in decision(state, cluster).notes if "reassignment" in text]
    assert len(found) == (note is not None)
    assert note is None or found[0].startswith(note)


def test_a_state_that_nobody_asked_a_live_cluster_for_says_nothing_of_reassignments() -> None:
    assert not [text for text in decision(leaderless(), cluster_of(live=[1])).notes if "reassignment" in text]


def test_a_brokers_own_unclean_setting_is_not_the_controllers() -> None:
    """Seen on 4.3.1: true in the brokers' files, false in the controller's: Kafka elects nobody."""
    state = leaderless((3, 1, 2), elr=(1,), last_known=(1,))
    cluster = cluster_of(live=(2, 3), fenced=(1,))
    snapshot = snapshot_of(state, cluster, [log_of(3, (0, 20)), silent(1), log_of(2, (0, 40))])
    of_a_broker = TopicConfig(2, ConfigSource.CLUSTER_DEFAULT, True, ConfigSource.STATIC)
    decided = decide(replace(snapshot, configs={"orders": of_a_broker}), state, ELR_4_3)
    assert (decided.elected, decided.unclean_leader_election) == (None, None)
    assert decided.situation is Situation.WAITING_FOR_ELR
    assert decided.advice.action is AdviceAction.BRING_BACK
    assert any("the controller decides by its own file" in note for note in decided.notes)
    cluster_wide = replace(of_a_broker, unclean_leader_election_source=ConfigSource.CLUSTER_DEFAULT)
    assert decide(replace(snapshot, configs={"orders": cluster_wide}), state, ELR_4_3).elected == 3


def test_a_broker_in_controlled_shutdown_is_awaited_like_one_that_is_gone() -> None:
    """DescribeCluster calls it unfenced, DescribeTopicPartitions calls its replica offline (seen on 4.3.1)."""
    state = replace(leaderless((2, 3, 4), elr=(4,), last_known=(4,)), offline_replicas=(4,))
    decided = decision(state, cluster_of(live=(2, 3, 4)), [log_of(2, (0, 5)), log_of(3, (0, 5)), silent(4)])
    assert decided.waits_for == (4,)
    assert decided.summary.endswith("waits for broker 4.")
    assert forecast(decided, 4, clean=True).elected_by is ElectedBy.ELR
    assert decided.candidates[2].status == "shutting down, or its log directory failed"
    assert decided.advice.text.startswith("Start broker 4")
    assert "not registered" not in decided.advice.text


def test_a_single_replica_has_no_others_to_compare_with() -> None:
    decided = decision(
        leaderless((1,), elr=(1,), last_known=(1,)), cluster_of(live=(), fenced=(1,)), [silent(1)], min_isr=1
    )
    assert decided.advice.text == (
        "Start broker 1 first: after a clean shutdown no committed record is lost. Kafka elects it"
        " the moment it returns."
    )


def test_a_leader_that_does_not_answer_is_not_called_healthy_without_a_word() -> None:
    state = PartitionState("orders", 0, 1, 5, (1, 2), (1, 2), (), ())
    hung = LogUnavailable(1, LogUnavailableReason.TIMED_OUT, "no answer in time")
    decided = decision(state, cluster_of(live=(1, 2)), [hung, log_of(2, (0, 9))])
    assert decided.summary.endswith("but the leader did not answer (no answer in time).")
    assert (decided.advice.action, decided.advice.replica) == (AdviceAction.WAIT, 1)
    not_asked = decision(state, cluster_of(live=(1, 2)))
    assert not_asked.advice.action is AdviceAction.NOTHING


def test_members_of_the_isr_that_do_not_answer_are_no_all_clear() -> None:
    """The ISR is the controller's account: brokers that are gone stay in it until their sessions expire."""
    state = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2, 3), (), ())
    decided = decision(state, cluster_of(live=(1, 2, 3)), [log_of(1, (5, 10)), silent(2), silent(3)])
    assert decided.summary.endswith(
        "healthy by the cluster's metadata, but 2 and 3 of the ISR did not answer (connection refused)."
    )
    assert (decided.advice.action, decided.advice.replica) == (AdviceAction.WAIT, 2)
    assert decided.advice.text == (
        "Brokers 2 and 3 of the ISR did not answer (connection refused): Kafka fences them when their sessions"
        " expire. Look at those brokers, and run kelr explain again in a few seconds."
    )
    behind = decision(replace(state, isr=(1, 2)), cluster_of(live=(1, 2, 3)), [log_of(1, (5, 10)), silent(2)])
    assert behind.summary.endswith(
        "min ISR is met; 3 is not in sync, but 2 of the ISR did not answer (connection refused)."
    )
    assert (behind.advice.action, behind.advice.replica) == (AdviceAction.WAIT, 2)
    few = decision(
        replace(state, isr=(1, 2)), cluster_of(live=(1, 2, 3)), [log_of(1, (5, 10)), silent(2), silent(3)], min_isr=3
    )
    assert few.summary.endswith(
        "under min ISR, 2 in sync of 3 needed, but 2 of the ISR did not answer (connection refused)."
    )
    assert (few.advice.action, few.advice.replica) == (AdviceAction.WAIT, 2)
    # Of one that left the ISR nothing is claimed.
    out = decision(replace(state, isr=(1, 2)), cluster_of(live=(1, 2, 3)), [log_of(1, (5, 10)), log_of(2, (5, 10))])
    assert out.advice.action is AdviceAction.NOTHING


def test_an_unknown_loss_is_said_in_a_whole_sentence() -> None:
    """Logs of other epochs whose lineages nobody asked for: the best may be designated, its cost is not known."""
    logs = [ReplicaLog(1, 50, 1, 5, 50, 0), ReplicaLog(2, 40, 2, 5, 40, 0)]
    decided = decision(leaderless((1, 2, 3), elr=(3,)), cluster_of(live=(1, 2), fenced=(3,)), [*logs, silent(3)])
    assert "designate 2 (loss UNKNOWN)." in decided.advice.alternative


def test_a_last_known_leader_that_is_no_replica_any_more_is_not_predicted_to_lead() -> None:
    """Kafka's controller fails when it tries (docs/election-rules.md, "Where Kafka's controller fails")."""
    found = decision(leaderless(last_known=(9,)), cluster_of(live=(2, 9), fenced=(1, 3)))
    assert found.elected is None
    step = next(step for step in found.steps if step.rule == "last-known-leader")
    assert not step.holds
    assert "no replica any more" in step.evidence
