"""Decisions under the whole of KIP-966: what the recovery manager does by itself, and under each kind of election."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import (
    ELR_4_3,
    KIP966,
    KIP966_AGGRESSIVE,
    KIP966_BALANCED,
    KIP966_NONE,
    KRAFT,
    LogInfoAnswered,
    LogInfoEntry,
    RecoveringController,
    RuleSet,
    controller_state,
    events,
)
from kelr.engine import decide
from kelr.engine.recovery.elections import elects_by_unread_logs
from kelr.engine.what_if.assumptions import parse_assumptions
from kelr.engine.what_if.imagine import imagine
from kelr.model import (
    AdviceAction,
    ConfigSource,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    LogAnswer,
    LossCertainty,
    Outcome,
    PartitionState,
    ReplicaLog,
    Situation,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.view.explain_columns import elected_by_itself, events_of
from tests.controller.recovering import Run
from tests.engine.cases import cluster_of, decision, leaderless, log_of, silent, snapshot_of
from tests.properties import examples

KIP966_RULES = (KIP966, KIP966_NONE, KIP966_BALANCED, KIP966_AGGRESSIVE)
LOST_TWO = leaderless((3, 1, 2), last_known=(1, 2))
"""1 and 2 lost their place in the ELR by unclean shutdowns; 3 had fallen behind before."""


def outcome(of: Decision, kind: ElectionType, designate: int | None = None) -> Outcome:
    return next(o for o in of.elections if o.election is kind and (designate is None or o.designate == designate))


def forecast(of: Decision, replica: int, *, clean: bool) -> Forecast:
    return next(f for f in of.forecasts if f.replica == replica and f.clean is clean)


def steps(of: Decision | Outcome) -> list[tuple[str, bool]]:
    return [(step.rule, step.holds) for step in of.steps]


NOBODY_CLEAN = [("live-isr-member", False), ("live-elr-member", False)]


# Balanced


def test_balanced_waits_for_the_members_that_are_not_live() -> None:
    found = decision(
        LOST_TWO,
        cluster_of(live=(3, 2), fenced=(1,)),
        [log_of(3, (4, 90)), silent(1), log_of(2, (4, 100))],
        rules=KIP966_BALANCED,
    )
    assert (found.situation, found.elected, found.waits_for) == (Situation.NEEDS_UNCLEAN_RECOVERY, None, (1,))
    assert found.summary == "orders:0 has no leader (leader epoch 5) and waits for broker 1."
    assert steps(found) == [*NOBODY_CLEAN, ("recovery-quorum-live", False), ("unclean-recovery", False)]
    assert found.steps[2].evidence == "LastKnownELR is [1, 2]; 1 is fenced"
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert found.advice.alternative.startswith("If that cannot be done: longest_log_aggressive elects 2, which")
    assert found.advice.elect == ()
    assert [candidate.reason for candidate in found.candidates] == [
        "in neither ISR nor ELR: no guarantee",
        "in LastKnownELR: of the recovery quorum",
        "in LastKnownELR: of the recovery quorum",
    ]


def test_balanced_waits_for_all_that_are_not_live() -> None:
    found = decision(LOST_TWO, cluster_of(live=(3,), fenced=(1, 2)), rules=KIP966_BALANCED)
    assert found.waits_for == (1, 2)
    assert found.summary.endswith("waits for all of brokers 1 and 2.")
    assert forecast(found, 1, clean=True).elected is None
    assert forecast(found, 1, clean=True).warning == "the recovery then waits for broker 2"


def test_balanced_waits_for_the_logs_of_live_members() -> None:
    found = decision(
        LOST_TWO,
        cluster_of(live=(1, 2, 3)),
        [log_of(3, (4, 90)), silent(1), log_of(2, (4, 100))],
        rules=KIP966_BALANCED,
    )
    assert (found.situation, found.elected, found.waits_for) == (Situation.NEEDS_UNCLEAN_RECOVERY, None, (1,))
    assert found.summary.endswith("waits for the log of broker 1.")
    assert steps(found)[2:] == [
        ("recovery-quorum-live", True),
        ("recovery-quorum-heard", False),
        ("unclean-recovery", False),
    ]
    assert found.advice.action is AdviceAction.WAIT


@pytest.mark.parametrize(("of_three", "elected"), [(90, 2), (110, 3)])
def test_balanced_elects_the_best_live_log_once_its_quorum_was_heard(of_three: int, elected: int) -> None:
    found = decision(
        LOST_TWO,
        cluster_of(live=(1, 2, 3)),
        [log_of(3, (4, of_three), hw=90), log_of(1, (4, 95), hw=90), log_of(2, (4, 100), hw=90)],
        rules=KIP966_BALANCED,
    )
    assert (found.situation, found.elected, found.elected_by) == (
        Situation.LEADER_PENDING,
        elected,
        ElectedBy.LONGEST_LOG,
    )
    assert steps(found)[2:] == [
        ("recovery-quorum-live", True),
        ("recovery-quorum-heard", True),
        ("best-log", True),
        ("unclean-recovery", True),
    ]
    balanced = outcome(found, ElectionType.LONGEST_LOG_BALANCED)
    assert balanced.elected == elected
    assert balanced.loss is not None
    assert balanced.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    outside = [note for note in found.notes if "outside the recovery quorum [1, 2]" in note]
    assert len(outside) == (elected == 3), "where it happens it is explained"


def test_without_a_recorded_quorum_every_replica_is_needed() -> None:
    found = decision(
        leaderless(),
        cluster_of(live=(1, 2), fenced=(3,)),
        [log_of(1, (4, 9)), log_of(2, (4, 9))],
        rules=KIP966_BALANCED,
    )
    assert (found.elected, found.waits_for) == (None, (3,))
    assert found.steps[2].evidence == "LastKnownELR is empty: all of [1, 2, 3] count; 3 is fenced"


def test_balanced_waits_for_a_fenced_elr_member() -> None:
    found = decision(leaderless(elr=(1,), last_known=(2,)), cluster_of(live=(2, 3), fenced=(1,)), rules=KIP966_BALANCED)
    assert (found.situation, found.waits_for) == (Situation.WAITING_FOR_ELR, (1,))
    assert (forecast(found, 1, clean=True).elected, forecast(found, 1, clean=True).elected_by) == (1, ElectedBy.ELR)
    unclean = forecast(found, 1, clean=False)
    assert (unclean.elected, unclean.warning) == (None, "the best log is elected once the logs of 1, 2 and 3 are known")
    assert found.advice.action is AdviceAction.BRING_BACK


def test_a_return_that_completes_the_quorum_elects_by_the_logs_that_are_known() -> None:
    """A clean return leaves the log as it was read, from a disk for instance; an unclean one may have cut it."""
    logs = [log_of(3, (4, 90)), log_of(1, (4, 120)), log_of(2, (4, 100))]
    found = decision(LOST_TWO, cluster_of(live=(2, 3), fenced=(1,)), logs, rules=KIP966_BALANCED)
    assert (found.elected, found.waits_for) == (None, (1,))
    clean = forecast(found, 1, clean=True)
    assert (clean.elected, clean.elected_by, clean.isr) == (1, ElectedBy.LONGEST_LOG, (1,))
    unclean = forecast(found, 1, clean=False)
    assert (unclean.elected, unclean.warning) == (None, "the best log is elected once the log of 1 is known")


# Aggressive


def test_aggressive_elects_the_best_heard_log_although_elr_members_are_fenced() -> None:
    found = decision(
        leaderless((3, 1, 2), elr=(1,)),
        cluster_of(live=(2, 3), fenced=(1,)),
        [log_of(3, (4, 116)), silent(1), log_of(2, (4, 135))],
        rules=KIP966_AGGRESSIVE,
    )
    assert (found.situation, found.elected, found.elected_by) == (Situation.LEADER_PENDING, 2, ElectedBy.LONGEST_LOG)
    assert steps(found)[2:] == [("any-replica-heard", True), ("best-log", True), ("unclean-recovery", True)]
    assert found.advice.action is AdviceAction.WAIT
    # Should 1 return before the window is over, an unclean shutdown having cost it its place in the ELR:
    unclean = forecast(found, 1, clean=False)
    assert (unclean.elected, unclean.warning) == (None, "the best log is elected once the log of 1 is known")


def test_aggressive_waits_for_any_answer() -> None:
    found = decision(
        leaderless(elr=(1,)), cluster_of(live=(2, 3), fenced=(1,)), [silent(2), silent(3)], rules=KIP966_AGGRESSIVE
    )
    assert (found.situation, found.elected, found.waits_for) == (Situation.NEEDS_UNCLEAN_RECOVERY, None, (2, 3))
    assert found.summary.endswith("waits for the log of broker 2 or 3.")


def test_aggressive_with_nobody_live_elects_whoever_returns_first() -> None:
    found = decision(leaderless(elr=(1,)), cluster_of(live=(), fenced=(1, 2, 3)), rules=KIP966_AGGRESSIVE)
    assert found.situation is Situation.NO_LIVE_REPLICA
    assert found.summary.endswith("waits for broker 1, 2 or 3.")
    by_hand = outcome(found, ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert (by_hand.waits_for, by_hand.note) == ((1, 2, 3), "waits for 1, 2 or 3")
    assert forecast(found, 2, clean=False).elected == 2
    assert forecast(found, 1, clean=True).elected_by is ElectedBy.ELR
    assert found.advice.action is AdviceAction.BRING_BACK


# None


@pytest.mark.parametrize(("live", "unknown"), [((3, 2), True), ((), False)])
def test_whom_live_replicas_elect_by_logs_that_nobody_has_read_is_not_known(
    live: tuple[int, ...], unknown: bool
) -> None:
    """2 and 3 do not answer kelr, and may answer the manager."""
    cluster = cluster_of(live=live, fenced={1, 2, 3} - {*live})
    found = decision(LOST_TWO, cluster, map(silent, (3, 1, 2)), rules=KIP966_BALANCED)
    asked = outcome(found, ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert (asked.elected, elects_by_unread_logs(found, asked)) == (None, unknown)
    if unknown:
        assert asked.note == "the recovery manager asks brokers 3 and 2 for their logs"
    shown = {one.name: one.leader for one in events_of(found)}
    assert shown["longest_log_aggressive"] == ("UNKNOWN" if unknown else "none")
    # Balanced asks nobody before 1 is live, too.
    assert (shown["longest_log_balanced"], elected_by_itself(found)) == ("none", "no leader")
    unasked = decision(LOST_TWO, cluster, map(silent, (3, 1, 2)), rules=KIP966_AGGRESSIVE)
    assert elected_by_itself(unasked) == ("by unread logs" if unknown else "no leader")


@pytest.mark.parametrize(
    ("rules", "first"),
    [
        (KIP966_BALANCED, "Then start broker 3. The recovery needs [3] live"),
        (KIP966_NONE, "Then start broker 3."),
    ],
)
def test_a_better_log_outside_the_quorum_is_brought_back_before_it(rules: RuleSet, first: str) -> None:
    """3 alone is waited for, its disk was cut, and nothing promises more of it than 1 holds (seed 50247)."""
    logs = [log_of(1, (0, 11), hw=8), log_of(2, (0, 1)), replace(log_of(3, (0, 10)), saved_high_watermark=15)]
    state = leaderless((1, 3, 2), last_known=(3,))
    found = decision(state, cluster_of(live=(2,), fenced=(1, 3)), logs, rules=rules, min_isr=1)
    assert (found.advice.action, found.advice.start) == (AdviceAction.BRING_BACK, (1, 3))
    assert found.advice.text.startswith("Start broker 1 first: ")
    assert first in found.advice.text
    assert found.advice.text.endswith("nothing is promised, since broker 3 has lost committed data.")


def test_the_elr_after_a_return_is_not_known_where_min_isr_is_not() -> None:
    """2 is elected from the ELR; whether 1 stays in it hangs on whether one in the ISR is enough."""
    state = leaderless((3, 1, 2), elr=(1, 2))
    for min_isr, elr in ((2, (1,)), (1, ()), (None, None)):
        found = decision(state, cluster_of(live=(3,), fenced=(1, 2)), rules=KIP966_BALANCED, min_isr=min_isr)
        assert (forecast(found, 2, clean=True).isr, forecast(found, 2, clean=True).elr) == ((2,), elr)


def test_none_waits_for_an_operator_and_says_what_a_balanced_election_would_give() -> None:
    logs = [log_of(3, (4, 90)), log_of(1, (4, 95)), log_of(2, (4, 100))]
    found = decision(LOST_TWO, cluster_of(live=(1, 2, 3)), logs, rules=KIP966_NONE)
    assert (found.situation, found.elected, found.waits_for) == (Situation.NEEDS_UNCLEAN_RECOVERY, None, ())
    assert steps(found) == [*NOBODY_CLEAN, ("unclean-recovery", False)]
    assert found.summary.endswith("waits for an operator: unclean.recovery.strategy is none.")
    assert (found.advice.action, found.advice.replica) == (AdviceAction.LONGEST_LOG_BALANCED, 2)


@pytest.mark.parametrize(
    ("live", "logs", "action"),
    [
        ((1, 3), [], AdviceAction.BRING_BACK),
        ((1, 2, 3), [silent(1), log_of(2, (4, 9))], AdviceAction.GET_MORE_INFORMATION),
    ],
)
def test_none_asks_for_what_a_balanced_election_needs(
    live: tuple[int, ...], logs: list[LogAnswer], action: AdviceAction
) -> None:
    cluster = cluster_of(live=live, fenced={1, 2, 3} - set(live))
    assert decision(LOST_TWO, cluster, logs, rules=KIP966_NONE).advice.action is action


# What an operator asks for


def test_each_election_under_each_strategy() -> None:
    """ElectLeaders goes by what is asked for, whatever the strategy; UNCLEAN is an aggressive recovery now."""
    cluster = cluster_of(live=(2, 3), fenced=(1,))
    logs = [log_of(3, (4, 116)), silent(1), log_of(2, (4, 135))]
    for rules in KIP966_RULES:
        found = decision(LOST_TWO, cluster, logs, rules=rules)
        assert outcome(found, ElectionType.PREFERRED).elected is None
        for kind in (ElectionType.UNCLEAN, ElectionType.LONGEST_LOG_AGGRESSIVE):
            assert (outcome(found, kind).elected, outcome(found, kind).elected_by) == (2, ElectedBy.LONGEST_LOG)
            assert steps(outcome(found, kind))[-1] == ("unclean-recovery", True)
        balanced = outcome(found, ElectionType.LONGEST_LOG_BALANCED)
        assert (balanced.elected, balanced.waits_for, balanced.note) == (None, (1,), "waits for 1")
        designations = [one for one in found.elections if one.election is ElectionType.DESIGNATION]
        assert [(one.designate, one.elected, one.elected_by) for one in designations] == [
            (3, 3, ElectedBy.DESIGNATION),
            (2, 2, ElectedBy.DESIGNATION),
        ]


def test_balanced_by_hand_needs_the_elr_too() -> None:
    found = decision(leaderless(elr=(1,), last_known=(2,)), cluster_of(live=(2, 3), fenced=(1,)), rules=KIP966_NONE)
    balanced = outcome(found, ElectionType.LONGEST_LOG_BALANCED)
    assert (balanced.elected, balanced.waits_for) == (None, (1, 2))


def test_a_designation_is_not_replaced_by_a_clean_election() -> None:
    found = decision(leaderless(elr=(1,)), cluster_of(live=(1, 2, 3)), rules=KIP966_BALANCED)
    assert (found.elected, found.elected_by) == (1, ElectedBy.ELR)
    other = outcome(found, ElectionType.DESIGNATION, 2)
    assert (other.elected, other.note) == (
        None,
        "elects no leader: 1 may lead cleanly, and is elected at the next event",
    )


def test_a_partition_with_a_leader_needs_no_recovery() -> None:
    state = PartitionState("orders", 0, 1, 5, (1, 2, 3), (1, 2), elr=(), last_known_elr=())
    found = decision(state, cluster_of(live=(1, 2, 3)), rules=KIP966_AGGRESSIVE)
    assert {one.elected_by for one in found.elections[1:]} == {ElectedBy.LEADER_STAYS}


# Which rules, and on what state


@pytest.mark.parametrize(
    ("unclean", "rules"), [(True, "kip966-aggressive"), (False, "kip966-balanced"), (None, "kip966-balanced")]
)
def test_kip966_takes_the_strategy_from_the_topic(unclean: bool | None, rules: str) -> None:
    found = decision(LOST_TWO, cluster_of(live=(1, 2, 3)), rules=KIP966, unclean=unclean)
    assert found.rules == rules
    assert "no release has these rules, which are the whole of KIP-966" in found.notes


def test_a_last_known_leader_is_not_taken_for_the_kips_set_in_silence() -> None:
    cluster = cluster_of(live=(1, 2, 3))
    one = decision(leaderless(last_known=(1,)), cluster, rules=KIP966_BALANCED)
    assert any(
        note.startswith("LastKnownELR is [1]: Kafka 4.x keeps the last known leader there") for note in one.notes
    )
    assert not any(note.startswith("LastKnownELR") for note in decision(LOST_TWO, cluster, rules=KIP966_BALANCED).notes)


def test_on_the_state_of_a_released_cluster_the_recovery_goes_by_the_last_known_leader_alone() -> None:
    """Kafka 4.x records the last known leader alone: with min ISR 2 its log is not known to hold everything."""
    found = decision(
        leaderless(last_known=(1,)),
        cluster_of(live=(1, 2), fenced=(3,)),
        [log_of(1, (4, 100)), log_of(2, (4, 90))],
        rules=KIP966_BALANCED,
    )
    balanced = outcome(found, ElectionType.LONGEST_LOG_BALANCED)
    assert (found.elected, balanced.elected) == (1, 1)
    assert (balanced.loss.grade, balanced.loss.unheard) == (LossCertainty.UNKNOWN, (3,))
    live = next(step for step in found.steps if step.rule == "recovery-quorum-live")
    assert live.evidence == "LastKnownELR is [1], fewer than 2 (min ISR); all live"


def test_a_recovery_that_waits_for_fewer_than_min_isr_promises_nothing() -> None:
    """LastKnownELR has one member where min ISR is 2: the others may hold more, and the KIP does not wait for them."""
    state, logs = leaderless(last_known=(1,)), [log_of(2, (4, 90))]
    away = decision(state, cluster_of(live=(2, 3), fenced=(1,)), logs, rules=KIP966_BALANCED).advice
    assert (away.action, away.replica) == (AdviceAction.BRING_BACK, 1)
    assert away.text.endswith("elects the best: brokers 2 and 3 may hold more and are not waited for.")
    unheard = decision(state, cluster_of(live=(1, 2, 3)), logs, rules=KIP966_BALANCED).advice
    assert (unheard.action, unheard.replica) == (AdviceAction.WAIT, 1)
    assert unheard.text.endswith("elects the best when it knows: brokers 2 and 3 may hold more and are not waited for.")


def test_an_elr_that_is_not_known_is_not_taken_for_an_empty_one() -> None:
    state = leaderless(elr=None, last_known=None)
    found = decision(state, cluster_of(live=(1, 2), fenced=(3,)), rules=KIP966_BALANCED)
    assert (found.situation, found.elected) == (Situation.UNKNOWN, None)
    assert found.advice.action is AdviceAction.GET_MORE_INFORMATION


def test_a_replica_that_the_run_removes_is_not_elected() -> None:
    """The run that would elect 2 completes the reassignment that removes it; 1 and 3 are away."""
    state = replace(leaderless((1, 2, 3), isr=(1,)), adding=(1,), removing=(2,))
    cluster = cluster_of(live=(2,), fenced=(1, 3))
    found = decision(state, cluster, [log_of(2, (4, 9))], rules=KIP966_AGGRESSIVE, min_isr=1)
    assert found.elected is None
    assert outcome(found, ElectionType.LONGEST_LOG_AGGRESSIVE).elected is None


def test_answers_of_another_leader_epoch_are_not_used() -> None:
    for epoch in (4, 6):
        found = decision(
            leaderless(last_known=(1,)),
            cluster_of(live=(1,)),
            [log_of(1, (4, 100), leader_epoch=epoch)],
            rules=KIP966_BALANCED,
            min_isr=1,
        )
        assert (found.elected, found.waits_for) == (None, (1,))


# Live replicas that were not heard.


@pytest.mark.parametrize(
    ("rules", "last_known", "min_isr", "silent_ones", "words"),
    [
        (KIP966_AGGRESSIVE, (1, 2), 2, (1, 2), "1 or 2"),
        (KIP966_BALANCED, (3,), 1, (1, 2), "1 or 2"),
        (KIP966_BALANCED, (1, 3), 2, (2,), "2"),
    ],
)
def test_a_live_replica_that_was_not_heard_may_tell_the_manager_of_a_better_log(
    rules: RuleSet, last_known: tuple[int, ...], min_isr: int, silent_ones: tuple[int, ...], words: str
) -> None:
    logs = [silent(one) if one in silent_ones else log_of(one, (4, 20 * one)) for one in IDS]
    snapshot = snapshot_of(leaderless(last_known=last_known), cluster_of(live=IDS), logs, min_isr=min_isr)
    found = decide(snapshot, snapshot.partitions[0], rules)
    assert (found.situation, found.elected, found.elected_by) == (Situation.NEEDS_UNCLEAN_RECOVERY, None, None)
    assert found.waits_for == silent_ones
    assert found.summary == (
        "orders:0 has no leader (leader epoch 5); broker 3 is about to be elected, unless"
        f" {words} tells of a better log."
    )
    assert steps(found)[-2:] == [("best-log", True), ("unclean-recovery", False)]
    assert (found.advice.action, found.advice.replica) == (AdviceAction.WAIT, 3)
    assert found.advice.text.endswith(f" If {words} still shows a better log, that one.")
    assert found.advice.alternative.startswith("If that cannot be done: a designation elects 3, which")
    by_hand = outcome(found, ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert (by_hand.elected, by_hand.designate, by_hand.waits_for) == (None, 3, silent_ones)
    assert by_hand.note == f"elects 3 unless {words} tells of a better log"

    recovery = started(snapshot, rules)
    tell(recovery, 2, (4, 100))
    answer(recovery, snapshot, but=(2,))
    assert recovery.leader == 2


def test_an_operator_is_told_whose_log_is_missing_although_the_quorum_was_heard() -> None:
    logs = [log_of(1, (4, 20)), silent(2), log_of(3, (4, 60))]
    found = decision(leaderless(last_known=(1, 3)), cluster_of(live=IDS), logs, rules=KIP966_NONE)
    assert (found.elected, found.advice.action) == (None, AdviceAction.GET_MORE_INFORMATION)
    assert " Learn what 2 holds." in f" {found.advice.text}"
    assert outcome(found, ElectionType.LONGEST_LOG_BALANCED).waits_for == (2,)


def test_a_forecast_leaves_it_open_while_another_live_replica_was_not_heard() -> None:
    found = decision(
        leaderless(last_known=(1, 3)),
        cluster_of(live=(2, 3), fenced=(1,)),
        [log_of(1, (4, 20)), silent(2), log_of(3, (4, 60))],
        rules=KIP966_BALANCED,
    )
    clean = forecast(found, 1, clean=True)
    assert (clean.elected, clean.warning) == (None, "the best log is elected once the log of 2 is known")


def test_an_imagined_recovery_leaves_it_open_while_another_live_replica_was_not_heard() -> None:
    logs = [log_of(1, (4, 20)), silent(2), log_of(3, (4, 60))]
    snapshot = snapshot_of(leaderless(last_known=(1, 3)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    result = imagine(snapshot, parse_assumptions("1 returns"), KIP966_BALANCED)
    assert result.snapshot.partitions[0].leader is None
    assert result.happened[0].outlook == {
        TopicPartition("orders", 0): "one of 2 and 3 is elected; which cannot be told"
    }


# Configs that nobody tells.


@pytest.mark.parametrize(
    ("rules", "consequence"),
    [
        (ELR_4_3, "it elects the first live replica by itself"),
        (KIP966, "the recovery strategy is aggressive"),
        (KIP966_BALANCED, None),
    ],
)
def test_what_an_unknown_unclean_config_would_mean_is_told_by_the_rules_at_hand(
    rules: RuleSet, consequence: str | None
) -> None:
    snapshot = snapshot_of(leaderless(), cluster_of(live=IDS))
    config = TopicConfig(2, ConfigSource.TOPIC, True, ConfigSource.STATIC)
    snapshot = replace(snapshot, configs={"orders": config})
    notes = [note for note in decide(snapshot, snapshot.partitions[0], rules).notes if "in the file" in note]
    assert [note.rpartition("If the controller has true, too, ")[2] for note in notes] == (
        [] if consequence is None else [consequence]
    )


def test_an_elr_that_is_left_over_counts_for_nothing() -> None:
    """KIP-966, "MV downgrade": the controller ignores the ELR fields; on released Kafka they elect once more."""
    state, logs = leaderless(elr=(3,)), map(silent, IDS)
    snapshot = snapshot_of(state, cluster_of(live=(1,), fenced=(2, 3), elr=False), logs)
    for rules, said in (
        (KIP966_BALANCED, "by KIP-966 it counts for nothing"),
        (KRAFT, "start or restart no other broker"),
    ):
        notes = decide(snapshot, state, replace(rules, elr=False)).notes
        assert [said in note for note in notes if "left over" in note] == [True]


# Explaining never disagrees with doing.


IDS = (1, 2, 3)
subsets = st.lists(st.sampled_from(IDS), unique=True).map(tuple)


@st.composite
def leaderless_states(draw: st.DrawFn) -> PartitionState:
    replicas = draw(st.permutations(IDS).map(tuple))
    isr, elr = draw(st.just(()) | subsets), draw(st.just(()) | subsets)
    elr = tuple(replica for replica in elr if replica not in isr)
    return leaderless(replicas, isr=isr, elr=elr, last_known=draw(subsets | st.just((1, 9))))


def told(replicas: Iterable[int]) -> st.SearchStrategy[tuple[LogAnswer, ...]]:
    one = st.none() | st.tuples(st.integers(0, 2), st.integers(1, 3))
    return st.tuples(*(one for _ in replicas)).map(
        lambda logs: tuple(
            silent(replica) if log is None else log_of(replica, log) for replica, log in zip(IDS, logs, strict=True)
        )
    )


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Snapshot, RuleSet]:
    live = draw(subsets)
    cluster = cluster_of(live=live, fenced=set(IDS) - set(live))
    snapshot = snapshot_of(draw(leaderless_states()), cluster, draw(told(IDS)), unclean=draw(st.booleans()))
    return snapshot, draw(st.sampled_from(KIP966_RULES))


def started(snapshot: Snapshot, rules: RuleSet) -> Run:
    recovery = Run(RecoveringController(controller_state(snapshot, rules)))
    recovery.at(0)
    return recovery


def answer(recovery: Run, snapshot: Snapshot, but: Iterable[int] = ()) -> None:
    """Every replica answers as the snapshot has its log; the others cannot be reached; then time passes."""
    (answers,) = snapshot.logs.values()
    for one in answers:
        if one.replica in but:
            continue
        if isinstance(one, ReplicaLog):
            tell(recovery, one.replica, (one.last_epoch, one.log_end))
        else:
            recovery.fail(one.replica)
    recovery.at(recovery.controller.manager.now_ms + 5_000)
    recovery.at(recovery.controller.manager.now_ms + 300_000)


def tell(recovery: Run, replica: int, log: tuple[int | None, int]) -> None:
    entry = LogInfoEntry(log[1], log[0], recovery.state().leader_epoch)
    epoch = recovery.controller.state.brokers[replica].epoch
    recovery.step(LogInfoAnswered(replica, epoch, {recovery.state().address: entry}))


UNDECIDED = "tells of a better log"


@examples(300)
@given(worlds())
def test_the_manager_elects_whom_the_decision_says(world: tuple[Snapshot, RuleSet]) -> None:
    snapshot, rules = world
    found = decide(snapshot, snapshot.partitions[0], rules)
    recovery = started(snapshot, rules)
    answer(recovery, snapshot)
    if found.elected_by in {ElectedBy.ISR, ElectedBy.ELR}:
        # The controller elects cleanly at its next event; until then the manager leaves the partition alone.
        assert (recovery.leader, recovery.requests) == (None, [])
    elif UNDECIDED in found.summary:
        # Those whose logs are not known tell the manager nothing either.
        assert (found.elected, recovery.leader) == (None, found.advice.replica)
    else:
        assert recovery.leader == found.elected
    if found.elected_by is ElectedBy.LONGEST_LOG:
        assert (recovery.state().isr, recovery.state().elr) == ((found.elected,), ())


@examples(300)
@given(worlds(), st.booleans(), st.tuples(st.integers(0, 2), st.integers(1, 3)))
def test_the_manager_elects_on_a_return_whom_the_forecast_says(
    world: tuple[Snapshot, RuleSet], clean: bool, log: tuple[int, int]
) -> None:
    """Where the forecast leaves it open, the log that the returning broker then tells decides."""
    snapshot, rules = world
    found = decide(snapshot, snapshot.partitions[0], rules)
    if found.elected is not None:
        return
    for forecast in (one for one in found.forecasts if one.clean is clean):
        replica = forecast.replica
        recovery = started(snapshot, rules)
        recovery.step(events.BrokerRegistered(replica, clean), events.BrokerUnfenced(replica))
        known = {one.replica for one in snapshot.logs[snapshot.partitions[0].address] if isinstance(one, ReplicaLog)}
        if recovery.leader is None and (not clean or replica not in known):
            tell(recovery, replica, log)
            answer(recovery, snapshot, but={replica})
        else:
            answer(recovery, snapshot)
        if forecast.elected is not None or not forecast.warning:
            assert recovery.leader == forecast.elected
        elif forecast.warning.startswith("the recovery then waits"):
            assert recovery.leader is None
        elif snapshot.cluster.live <= {*known, replica}:
            assert recovery.leader is not None
        if forecast.elected is not None:
            assert (recovery.state().isr, recovery.state().elr) == (forecast.isr, forecast.elr)
