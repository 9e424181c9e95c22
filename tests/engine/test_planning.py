"""Whom a plan elects, by which requests, at what price; and whom it refuses to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from kelr.controller import ELR_4_0, KIP966_BALANCED
from kelr.engine import decide
from kelr.engine.planning import after_reordering, differences, plan_of
from kelr.model import (
    ELR_FEATURE,
    LOG_DIRECTORY,
    METADATA_FEATURE,
    AdviceAction,
    Broker,
    BrokerStatus,
    Consent,
    ElectedBy,
    ElectionRequest,
    ElectionType,
    Features,
    HoldReason,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    Method,
    PartitionState,
    Plan,
    Situation,
    TopicPartition,
    Unplanned,
)
from tests.engine.cases import cluster_of, leaderless, log_of, silent, snapshot_of
from tests.engine.planned import (
    MADE_BY,
    all_heard,
    asked,
    carried_out,
    decided,
    designated,
    election,
    fields,
    incident,
    known,
    plan,
    planner,
    refusal,
    reordered,
    stopped,
    with_cluster,
    with_logs,
    with_state,
)
from tests.properties import examples

BALANCED = asked(ElectionType.LONGEST_LOG_BALANCED)
AGGRESSIVE = asked(ElectionType.LONGEST_LOG_AGGRESSIVE)
UNCLEAN = asked(ElectionType.UNCLEAN)
PREFERRED = asked(ElectionType.PREFERRED)


def led(leader: int = 2, isr: tuple[int, ...] = (1, 2, 3)) -> PartitionState:
    return PartitionState("orders", 0, leader, 5, (1, 2, 3), isr, (), ())


# What kelr recommends


def test_a_designation_that_is_advised_is_planned_with_the_advice_as_its_reason() -> None:
    snapshot = all_heard(state=leaderless((3, 1, 2)))
    made = election(snapshot)
    assert (made.election, made.elect, made.method, made.order) == (
        ElectionType.DESIGNATION,
        2,
        Method.REORDER,
        (2, 3, 1),
    )
    assert made.recommended
    assert made.reason == decide(snapshot, snapshot.partitions[0]).advice.text
    assert made.consent is Consent.YES
    assert made.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR


def test_where_a_broker_has_to_be_held_down_the_best_live_log_is_designated_first() -> None:
    """Broker 1 led last, its log is known to be short, and Kafka elects it the moment that it is back."""
    snapshot = all_heard()
    assert decide(snapshot, snapshot.partitions[0]).advice.action is AdviceAction.HOLD
    made = election(snapshot)
    assert made.elect == 2
    assert made.recommended
    assert [(hold.broker, hold.reason.value) for hold in made.hold] == [(1, "last-known-leader")]


def test_an_election_for_when_the_advice_cannot_be_followed_is_not_the_advice() -> None:
    """Nobody knows what broker 1 holds: it is to come back, and a designation is only the alternative."""
    left = refusal(incident())
    assert left.why is Unplanned.ADVISED
    assert left.action is AdviceAction.BRING_BACK
    assert left.brokers == (1,)
    assert left.until.startswith("Waiting: no new writes")
    assert left.command == ("recover", "collect", "--log-dir", "DIRECTORY", "--out", "broker-1.kelr")
    assert "designate 2" in left.reason
    (back,) = left.alternatives
    assert (back.start, back.leader) == (1, 1)
    assert back.loss is not None
    assert back.loss.grade is LossCertainty.UNKNOWN


def test_an_election_that_goes_against_the_advice_says_what_that_is() -> None:
    made = election(incident(), designated(2))
    assert made.against is not None
    assert (made.against.action, made.against.replica) == (AdviceAction.BRING_BACK, 1)
    assert made.against == decided(incident()).advice
    # What is asked for is what is advised, or what Kafka is about to do by itself.
    assert election(all_heard(state=leaderless((3, 1, 2)), live=(1, 2, 3), fenced=()), AGGRESSIVE).against is None
    worse = election(all_heard(state=leaderless((3, 1, 2)), live=(1, 2, 3), fenced=()), UNCLEAN).against
    assert worse is not None
    assert (worse.action, worse.designate) == (AdviceAction.DESIGNATE, 2)


def test_a_healthy_partition_is_left_out_of_a_recommended_plan() -> None:
    snapshot = incident(
        led(1), live=(1, 2, 3), fenced=(), logs=(log_of(1, (5, 9)), log_of(2, (5, 9)), log_of(3, (5, 9)))
    )
    assert plan(snapshot) == Plan("test", 0, 3_601_000, "elr-4.3", MADE_BY, ())


def test_a_partition_under_min_isr_gets_the_brokers_to_bring_back() -> None:
    state = replace(led(2, isr=(2,)), elr=(1, 3))
    left = refusal(incident(state, live=(2,), fenced=(1, 3), logs=(log_of(2, (5, 9)),)))
    assert (left.why, left.action, left.brokers, left.leader) == (
        Unplanned.ADVISED,
        AdviceAction.RESTORE_REPLICATION,
        (1, 3),
        2,
    )
    after_an_unclean_election = replace(state, elr=())
    left = refusal(incident(after_an_unclean_election, live=(2,), fenced=(1, 3), logs=(log_of(2, (5, 9)),)))
    assert (left.action, left.brokers) == (AdviceAction.RESCUE, (1, 3))
    assert left.rescue[:2] == ("rescue", "dump")


def test_where_logs_are_missing_those_are_named() -> None:
    left = refusal(incident(leaderless((3, 1, 2))))
    assert (left.action, left.brokers) == (AdviceAction.GET_MORE_INFORMATION, (1,))


# Longest log


def test_where_any_of_them_may_start_all_are_named() -> None:
    left = refusal(incident(leaderless((3, 1, 2), elr=(), last_known=()), live=(), logs=()))
    assert (left.action, left.brokers) == (AdviceAction.BRING_BACK, (3, 1, 2))
    assert left.reason.startswith("Start any of brokers 3, 1 and 2")


def test_a_balanced_election_takes_the_best_log_once_the_whole_quorum_was_heard() -> None:
    made = election(all_heard(), BALANCED)
    assert (made.elect, made.elected_by, made.consent) == (2, ElectedBy.LONGEST_LOG, Consent.YES)
    assert made.reason == (
        "Broker 2 has the best log of the recovery quorum [1, 2, 3] (last epoch 4, log end 135, high watermark 120)."
    )


def test_a_balanced_election_names_whom_it_did_not_hear_and_why() -> None:
    left = refusal(incident(), BALANCED)
    assert left.why is Unplanned.REFUSED
    assert left.reason == (
        "A balanced election needs every log of the recovery quorum [1, 2, 3], and 1 was not read (1: connection"
        " refused)."
    )


def test_a_balanced_election_does_not_take_the_best_of_the_rest() -> None:
    """The best log is that of a dead broker, read from its disk."""
    left = refusal(with_logs(all_heard(), log_of(1, (4, 140), hw=120)), BALANCED)
    assert left.reason == "A longest_log_balanced election elects no leader. Needs broker 1 live."


def test_an_aggressive_election_takes_the_best_live_log_and_says_who_was_not_heard() -> None:
    made = election(incident(), AGGRESSIVE)
    assert (made.elect, made.consent) == (2, Consent.LOSS)
    assert str(made.loss.total) == "UNKNOWN"
    assert made.loss.unheard == (1,)


def test_logs_without_epochs_choose_nobody() -> None:
    blind = [replace(log_of(replica, (4, 9)), last_epoch=None, lineage=None) for replica in (2, 3)]
    assert "cannot be ranked" in refusal(with_logs(incident(), *blind), AGGRESSIVE).reason


# Designation


def test_a_designation_needs_a_reordering_where_another_replica_comes_first() -> None:
    made = election(incident(), designated(2))
    assert (made.method, made.order, made.restores) == (Method.REORDER, (2, 3, 1), (3, 1, 2))


@pytest.mark.parametrize(("live", "fenced", "method"), [((2,), (1,), Method.UNCLEAN), ((2,), (1, 3), Method.REORDER)])
def test_kafka_is_left_to_find_the_wanted_replica_only_where_nobody_can_come_before_it(
    live: tuple[int, ...], fenced: tuple[int, ...], method: Method
) -> None:
    """[3,2,1]: 3 and 1 are down, and an unclean election takes 2, unless one of them is back by then. Brokers that are
    not registered do not come back of themselves, and a reordering would take them out of the assignment."""
    state = leaderless((3, 2, 1))
    snapshot = incident(state, live=live, fenced=fenced, logs=(log_of(2, (4, 135), hw=120), silent(1), silent(3)))
    assert election(snapshot, designated(2)).method is method
    assert election(snapshot, asked(ElectionType.UNCLEAN)).method is Method.UNCLEAN


def test_a_designation_of_whom_kafka_elects_anyway_is_one_request() -> None:
    made = election(incident(), designated(3))
    assert (made.method, made.order) == (Method.UNCLEAN, (3, 1, 2))
    assert made.consent is Consent.LOSS
    assert str(made.loss.total) == "at least 19"
    assert "Broker 2 is live and has a better log (last epoch 4, log end 135, high watermark 120)." in made.reason


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        (ElectionRequest(ElectionType.DESIGNATION), "A designation needs the desired leader"),
        (designated(7), "Broker 7 is no replica of orders:0: replicas are [3, 1, 2]."),
        (designated(1), "Broker 1 cannot lead: it is fenced."),
        (
            ElectionRequest(ElectionType.UNCLEAN, 2),
            "A desired leader (2) goes with a designation, not with an unclean election.",
        ),
    ],
)
def test_wishes_that_cannot_be_are_refused(wish: ElectionRequest, reason: str) -> None:
    left = refusal(incident(), wish)
    assert left.why is Unplanned.REFUSED
    assert left.reason.startswith(reason)


def test_a_designation_that_kafka_would_not_obey_is_refused() -> None:
    """Broker 3 is in the ELR and live: Kafka elects it at the next event, whatever the order."""
    left = refusal(incident(leaderless((3, 1, 2), elr=(3,))), designated(2))
    assert left.reason == "Designating 2 would not make it the leader. Kafka would elect 3 instead."


def test_a_replica_whose_log_directory_failed_cannot_be_designated() -> None:
    snapshot = with_state(incident(), offline_replicas=(1, 3))
    assert refusal(snapshot, designated(3)).reason.startswith("Broker 3 cannot lead: it is shutting down, or its")


def test_a_broker_that_is_not_registered_leaves_the_assignment_and_that_is_said() -> None:
    made = election(incident(leaderless((3, 1, 2)), fenced=()), designated(2))
    assert (made.order, made.restores) == ((2, 3), (3, 2))
    assert (
        "Broker 1 is not registered, and Kafka takes no order that names such a broker: it leaves the assignment."
    ) in made.warnings


def test_where_no_order_is_changed_nobody_leaves() -> None:
    made = election(incident(leaderless((3, 1, 2)), fenced=()), designated(3))
    assert made.restores == made.order == (3, 1, 2)
    assert not any("leaves the assignment" in warning for warning in made.warnings)


# Leaders


@pytest.mark.parametrize("wish", [UNCLEAN, BALANCED, AGGRESSIVE, designated(2)])
def test_a_live_leader_makes_all_but_a_preferred_election_needless(wish: ElectionRequest) -> None:
    left = refusal(incident(led(2), live=(1, 2, 3), fenced=(), logs=()), wish)
    assert (left.why, left.leader) == (Unplanned.NOT_NEEDED, 2)


def test_a_live_leader_is_not_replaced_by_a_designation() -> None:
    left = refusal(incident(led(2), live=(1, 2, 3), fenced=(), logs=()), designated(3))
    assert left.why is Unplanned.REFUSED
    assert left.reason.startswith("Broker 2 leads, and a designation is only for a partition without leader (KIP-966)")


def test_a_preferred_election_moves_the_leadership_and_loses_nothing_although_logs_grow_while_they_are_read() -> None:
    logs = (log_of(1, (5, 90), hw=90), log_of(2, (5, 120), hw=110), silent(3))
    made = election(incident(led(2), live=(1, 2, 3), fenced=(), logs=logs), PREFERRED)
    assert (made.method, made.elect, made.order) == (Method.PREFERRED, 1, (1, 2, 3))
    assert (made.loss.grade, made.consent) == (LossCertainty.PROVEN_NONE, Consent.YES)
    assert (made.rescue, made.hold, made.alternatives, made.damage) == ((), (), (), ())
    assert made.reason == (
        "The leadership moves from broker 2 to 1, the preferred replica, which is in the ISR [1, 2, 3]: nothing"
        " committed is lost."
    )


def test_nothing_is_promised_of_a_preferred_replica_that_does_not_answer() -> None:
    """Seed 33058 of the hindsight: all brokers were dead, and the controller did not know it yet."""
    made = election(incident(led(2), live=(1, 2, 3), fenced=(), logs=[silent(one) for one in (1, 2, 3)]), PREFERRED)
    assert (made.elect, made.loss.grade, made.loss.unheard, made.consent) == (
        1,
        LossCertainty.UNKNOWN,
        (1,),
        Consent.FORCE,
    )
    assert made.loss.reason.startswith("1 is in the ISR, but did not answer (")
    assert "nothing committed is lost" not in made.reason
    assert made.reason.endswith("it may be gone, and the controller not know it yet.")


def test_the_preferred_replica_that_leads_needs_no_election() -> None:
    left = refusal(incident(led(1), live=(1, 2, 3), fenced=(), logs=()), PREFERRED)
    assert (left.why, left.reason) == (Unplanned.NOT_NEEDED, "Broker 1, the preferred replica, leads.")


def test_a_preferred_replica_out_of_the_isr_cannot_take_over() -> None:
    left = refusal(incident(led(2, isr=(2, 3)), live=(1, 2, 3), fenced=(), logs=()), PREFERRED)
    assert left.why is Unplanned.REFUSED
    assert left.reason == "Broker 2 would go on leading. The preferred replica, 1, is not in the ISR [2, 3]."


def test_a_preferred_election_that_elects_another_says_so() -> None:
    snapshot = incident(leaderless((3, 1, 2), elr=(2,)), live=(2,), fenced=(1, 3), logs=(log_of(2, (4, 9)),))
    made = election(snapshot, PREFERRED)
    assert (made.elect, made.elected_by, made.consent) == (2, ElectedBy.ELR, Consent.YES)
    assert "The preferred replica, 3, cannot lead now: Kafka elects 2." in made.warnings


def test_a_leader_that_is_gone_stands_in_the_way_of_an_unclean_election_and_not_of_a_designation() -> None:
    snapshot = incident(replace(leaderless((1, 2, 3), isr=(1,)), leader=1))
    left = refusal(snapshot, UNCLEAN)
    assert left.why is Unplanned.REFUSED
    assert "Kafka answers ELECTION_NOT_NEEDED to an unclean election" in left.reason
    made = election(snapshot, designated(2))
    assert (made.method, made.order) == (Method.REORDER, (2, 1, 3))
    assert any("its session has not expired yet" in warning for warning in made.warnings)


# What stands in the way


def test_a_reassignment_under_way_is_let_complete_first() -> None:
    snapshot = with_state(incident(), adding=(2,), removing=(3,))
    left = refusal(snapshot, designated(2))
    assert left.why is Unplanned.REFUSED
    assert "it adds broker 2 and removes broker 3" in left.reason
    assert plan(snapshot).elections == ()


@pytest.mark.parametrize("wish", [designated(3), UNCLEAN])
def test_what_kafkas_own_tool_does_beside_a_reassignment_takes_force(wish: ElectionRequest) -> None:
    made = election(with_state(incident(), adding=(2,), removing=(3,)), wish)
    assert (made.elect, made.method, made.consent) == (3, Method.UNCLEAN, Consent.FORCE)
    assert "it adds broker 2 and removes broker 3" in made.warnings[0]


def test_a_reassignment_that_nobody_can_tell_of_forbids_reordering_alone() -> None:
    snapshot = with_state(incident(), adding=None, removing=None)
    snapshot = with_cluster(snapshot, replace(snapshot.cluster, reassignments_error="CLUSTER_AUTHORIZATION_FAILED"))
    assert "is not known (CLUSTER_AUTHORIZATION_FAILED)" in refusal(snapshot, designated(2)).reason
    assert election(snapshot, designated(3)).method is Method.UNCLEAN


@pytest.mark.parametrize(
    ("wish", "elect"), [(designated(2), 2), (designated(3), 3), (UNCLEAN, 3), (AGGRESSIVE, 2), (PREFERRED, None)]
)
def test_an_unknown_elr_decides_nothing_without_force(wish: ElectionRequest, elect: int | None) -> None:
    snapshot = with_state(incident(leaderless((3, 1, 2)), live=(2, 3)), elr=None, last_known_elr=None)
    assert plan(snapshot).elections == ()
    if elect is None:
        assert refusal(snapshot, wish).why is Unplanned.REFUSED
        return
    made = election(snapshot, wish)
    assert (made.elect, made.consent) == (elect, Consent.FORCE)
    assert "ELR and LastKnownELR are not known" in made.warnings[0]


@pytest.mark.parametrize(("wish", "elect"), [(designated(2), 2), (UNCLEAN, 3), (AGGRESSIVE, 2)])
def test_with_elr_switched_off_and_an_empty_isr_every_election_goes(wish: ElectionRequest, elect: int) -> None:
    """DescribeTopicPartitions tells an ELR that is left over, so one that it does not tell is empty (seen on 4.3.1)."""
    state = replace(leaderless((3, 1, 2)), elr=None, last_known_elr=(1,))
    logs = (log_of(3, (4, 116), hw=116), silent(1), log_of(2, (4, 135), hw=120))
    snapshot = snapshot_of(known(state), cluster_of(live=(2, 3), fenced=(1,), elr=False), logs, min_isr=2)
    snapshot = with_cluster(snapshot, replace(snapshot.cluster, partitions_source="DescribeTopicPartitions v0"))
    made = election(snapshot, wish)
    assert (made.elect, made.consent, made.evidence.situation) == (
        elect,
        Consent.LOSS,
        Situation.NEEDS_UNCLEAN_RECOVERY,
    )
    assert "left over" not in " ".join(decided(snapshot).notes)
    untold = with_cluster(snapshot, replace(snapshot.cluster, partitions_source="Metadata"))
    assert election(untold, wish).elect == elect
    assert "whether one is left over is not known" in " ".join(decided(untold).notes)
    assert any("whether one is left over is not known" in warning for warning in election(untold, wish).warnings)


def test_a_leftover_elr_is_cleared_by_the_start_of_any_other_broker() -> None:
    """Seen on 4.3.1: broker 3 was restarted, the ELR [1, 2] was gone, and the return of 1 elected nobody."""
    state = replace(leaderless((3, 1, 2)), elr=(1,), last_known_elr=(1,))
    snapshot = snapshot_of(known(state), cluster_of(live=(3,), fenced=(1, 2), elr=False), (), min_isr=2)
    decision = decided(snapshot)
    assert decision.situation is Situation.WAITING_FOR_ELR
    assert any("start or restart no other broker before 1" in note for note in decision.notes)
    other = next(one for one in decision.forecasts if one.replica == 2 and one.clean)
    assert (other.elected, other.elr) == (None, ())
    assert "leftover ELR [1] is cleared" in other.warning


def test_a_preferred_election_within_a_live_leaders_isr_asks_for_no_elr() -> None:
    snapshot = with_state(incident(led(2), live=(1, 2, 3), fenced=(), logs=(), min_isr=None), elr=None)
    assert snapshot.partitions[0].elr is None
    assert election(snapshot, PREFERRED).elect == 1


def test_evidence_that_contradicts_itself_is_read_again() -> None:
    snapshot = with_logs(incident(), log_of(2, (4, 135), leader_epoch=6))
    left = refusal(snapshot)
    assert left.why is Unplanned.REFUSED
    assert "a broker already knows leader epoch 6, and this state is of epoch 5" in left.reason
    made = election(snapshot, designated(2))
    assert (made.consent, made.warnings[0]) == (Consent.FORCE, left.reason)
    assert differences(made, snapshot, decided(snapshot)) == ()
    newer = with_logs(incident(), log_of(2, (4, 135), leader_epoch=7))
    assert fields(differences(made, newer, decided(newer))) == ["leader_epoch"]
    assert refusal(with_logs(snapshot), asked(ElectionType.LONGEST_LOG_BALANCED)).reason == left.reason


def test_a_decision_by_other_rules_than_the_clusters_is_no_ground_for_a_plan() -> None:
    assert "Plan without --rules" in refusal(incident(), designated(2), ELR_4_0).reason
    assert "Plan without --rules" in refusal(incident(), UNCLEAN, KIP966_BALANCED).reason


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ("diskless.enable=true", "in object storage"),
        ("mirror.name=west.paused", "another cluster's, copied from there"),
    ],
)
def test_a_topic_whose_records_are_not_in_its_replicas_logs_gets_no_election(config: str, where: str) -> None:
    snapshot = incident()
    configs = {topic: replace(one, foreign=config) for topic, one in snapshot.configs.items()}
    for wish in (ElectionRequest(), designated(2), UNCLEAN, PREFERRED, BALANCED):
        left = refusal(replace(snapshot, configs=configs), wish)
        assert left.why is Unplanned.REFUSED
        assert left.reason.startswith(f"The topic has {config}: its records are {where}, and not where elections look")


def test_the_metadata_log_is_elected_by_nobody() -> None:
    state = replace(known(leaderless((1, 2, 3))), topic="__cluster_metadata")
    snapshot = snapshot_of(state, cluster_of(live=(1, 2, 3)))
    for wish in (designated(1), UNCLEAN, PREFERRED):
        left = refusal(snapshot, wish)
        assert (left.why, left.situation) == (Unplanned.REFUSED, Situation.UNKNOWN)
        assert "the controllers elect its leader by votes" in left.reason
    assert refusal(snapshot).why is Unplanned.ADVISED


@pytest.mark.parametrize(("needed", "planned"), [(1, True), (2, True), (3, False)])
def test_as_many_logs_have_to_be_heard_as_are_asked_for(needed: int, planned: bool) -> None:
    made = plan(incident(), designated(2, needed))
    assert bool(made.elections) is planned
    if planned:
        assert made.elections[0].minimal_replicas == needed
    else:
        assert made.not_planned[0].reason == "The logs of 2 replicas of 3 were read, and 3 were asked for."


# Consent


def test_a_log_that_was_not_read_takes_force() -> None:
    snapshot = with_logs(incident(), LogUnavailable(2, LogUnavailableReason.TIMED_OUT))
    made = election(snapshot, designated(2))
    assert (made.loss.grade, made.consent) == (LossCertainty.UNKNOWN, Consent.FORCE)
    assert "(its log was not read)" in made.reason
    assert "What is lost cannot be told: the log of 2 was not read." in made.warnings


def test_an_elr_member_that_lacks_committed_records_takes_force() -> None:
    """Shut out by a dead ISR member, so that it has to be designated; a high watermark says it should hold more."""
    logs = (log_of(3, (4, 100), hw=90), silent(1), log_of(2, (4, 135), hw=120))
    made = election(incident(leaderless((3, 1, 2), isr=(1,), elr=(3,)), logs=logs), designated(3))
    assert (made.loss.grade, made.consent) == (LossCertainty.UNKNOWN, Consent.FORCE)
    assert "contradictory evidence" in made.loss.reason


def test_an_elr_member_that_is_designated_at_the_cost_of_unacknowledged_records_takes_their_number() -> None:
    """Nothing committed is lost, but offsets are, and it is kelr that puts it there."""
    logs = (log_of(3, (4, 100), hw=90), silent(1), log_of(2, (4, 135), hw=100))
    made = election(incident(leaderless((3, 1, 2), isr=(1,), elr=(3,)), logs=logs), designated(3))
    assert (made.loss.grade, made.consent) == (LossCertainty.PROVEN_NONE, Consent.LOSS)
    equal = (log_of(3, (4, 100), hw=90), silent(1), log_of(2, (4, 100), hw=100))
    made = election(incident(leaderless((3, 1, 2), isr=(1,), elr=(3,)), logs=equal), designated(3))
    assert (made.consent, str(made.loss.total)) == (Consent.LOSS, "UNKNOWN")  # broker 1 may hold more, uncommitted
    heard = (*equal[::2], log_of(1, (4, 100), hw=100))
    made = election(incident(leaderless((3, 1, 2), isr=(1,), elr=(3,)), logs=heard), designated(3))
    assert (made.consent, str(made.loss.total)) == (Consent.YES, "0")


def test_the_best_log_that_gives_up_an_older_epochs_tail_takes_its_number() -> None:
    """Every log was heard and the best is elected, yet another one ran further in an older epoch."""
    logs = (log_of(3, (3, 150), hw=100), log_of(1, (3, 110), (4, 120), hw=110), log_of(2, (3, 110), (4, 121), hw=110))
    made = election(incident(leaderless((3, 1, 2)), logs=logs), BALANCED)
    assert (made.elect, made.loss.grade, made.consent) == (2, LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, Consent.LOSS)
    assert str(made.loss.total) == "40"


# The whole


def test_a_plan_is_sorted_and_names_its_cluster_rules_and_expiry() -> None:
    first, second = leaderless((3, 1, 2)), replace(leaderless((3, 1, 2)), partition=7)
    base = incident(first)
    logs = base.logs[first.address]
    snapshot = replace(
        base, partitions=(known(first), known(second)), logs={first.address: logs, second.address: logs}, taken_at_ms=50
    )
    decisions = [decide(snapshot, state) for state in reversed(snapshot.partitions)]
    made = plan_of(snapshot, decisions, lambda _at: designated(2), now_ms=70, lifetime_ms=10, made_by=MADE_BY)
    assert [str(one.address) for one in made.elections] == ["orders:0", "orders:7"]
    assert (made.cluster_id, made.rules, made.made_by) == ("test", "elr-4.3", MADE_BY)
    assert (made.created_at_ms, made.expires_at_ms) == (50, 80)


def test_a_partition_is_planned_once_and_from_its_own_snapshot() -> None:
    snapshot = incident()
    decision = decide(snapshot, snapshot.partitions[0])
    with pytest.raises(ValueError, match="orders:0 is decided twice"):
        plan_of(snapshot, [decision, decision], lambda _at: ElectionRequest(), now_ms=0, made_by=MADE_BY)
    with pytest.raises(ValueError, match="orders:1 is not in the snapshot"):
        plan_of(snapshot, [replace(decision, partition=1)], lambda _at: ElectionRequest(), now_ms=0, made_by=MADE_BY)


def test_each_partition_is_asked_for_its_own_wish() -> None:
    seen: list[TopicPartition] = []

    def wish(address: TopicPartition) -> ElectionRequest:
        seen.append(address)
        return ElectionRequest()

    snapshot = incident()
    plan_of(snapshot, [decide(snapshot, snapshot.partitions[0])], wish, now_ms=0, made_by=MADE_BY)
    assert seen == [TopicPartition("orders", 0)]


def test_what_weakens_the_decision_is_among_the_warnings() -> None:
    snapshot = incident()
    features = replace(snapshot.cluster.features, supported={"metadata.version": 27})
    made = election(with_cluster(snapshot, replace(snapshot.cluster, features=features)), designated(2))
    assert any(warning.startswith("Rules elr-4.1:") for warning in made.warnings)


def test_a_status_that_is_not_known_may_make_kafka_refuse_the_order() -> None:
    snapshot = incident()
    brokers = (*snapshot.cluster.brokers[1:], Broker(1, BrokerStatus.OFFLINE))
    made = election(with_cluster(snapshot, replace(snapshot.cluster, brokers=brokers)), designated(2))
    assert any(warning.startswith("Whether broker 1 is registered is not known") for warning in made.warnings)


@examples(400)
@given(stopped())
def test_a_plan_that_is_carried_out_makes_its_replica_the_leader(both) -> None:  # type: ignore[no-untyped-def]
    """By the controller's own rules, step by step; nothing differs before, nor between reordering and election."""
    snapshot, wish = both
    for made in planner(lambda _state: wish, snapshot, None).elections:
        (state,) = snapshot.partitions
        decision = decide(snapshot, state)
        assert differences(made, snapshot, decision) == ()
        assert carried_out(made, snapshot, decision.rules).leader == made.elect
        if made.method is Method.REORDER:
            after = reordered(made, snapshot, decision.rules).after
            keeps_elr = snapshot.cluster.features.elr_enabled is not False
            # With ELR off every source tells an empty set as one that nobody keeps.
            as_told = after if keeps_elr else replace(after, elr=after.elr or None)
            assert after_reordering(made, as_told, keeps_elr=keeps_elr) == ()


@examples(200)
@given(stopped())
def test_a_plain_yes_is_for_elections_that_lose_nothing_that_is_known(both) -> None:  # type: ignore[no-untyped-def]
    snapshot, wish = both
    for made in planner(lambda _state: wish, snapshot, None).elections:
        if made.consent is Consent.YES:
            assert made.loss.grade in {LossCertainty.PROVEN_NONE, LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR}
            assert made.loss.committed is None or made.loss.committed.at_least == 0
            assert made.elected_by in {ElectedBy.ISR, ElectedBy.ELR, ElectedBy.LEADER_STAYS} or (
                made.loss.total is not None and made.loss.total.none
            )
        if made.loss.grade is LossCertainty.UNKNOWN:
            assert made.consent is (Consent.LOSS if made.loss.counted else Consent.FORCE)


def test_whose_return_leaves_kafka_4_0_nobody_to_elect_is_kept_down() -> None:
    """Its unclean return empties the ISR, and Kafka 4.0 then takes "no leader" for the last known leader."""
    disk = replace(log_of(1, (4, 14)), source=LOG_DIRECTORY, current_leader_epoch=None, unclean_shutdown=True)
    snapshot = incident(leaderless((1, 2), isr=(1,)), live=(2,), logs=(disk, log_of(2, (4, 14))))
    of_4_0 = Features({ELR_FEATURE: 1, METADATA_FEATURE: 25}, {METADATA_FEATURE: 25})
    (held,) = election(with_cluster(snapshot, replace(snapshot.cluster, features=of_4_0)), designated(2)).hold
    assert (held.broker, held.reason) == (1, HoldReason.LAST_KNOWN_LEADER)
    assert "is back when the election runs, that elects no leader" in held.text
    assert election(snapshot, designated(2)).hold == ()
