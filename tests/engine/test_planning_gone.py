"""Plans without brokers that will not come back: whom they elect, whom they wait for, and that they promise no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_0, KIP966_BALANCED
from kelr.engine.case import case_of
from kelr.engine.planning.subject import rules_of
from kelr.model import (
    LOG_DIRECTORY,
    AdviceAction,
    Bounds,
    Consent,
    ElectionRequest,
    ElectionType,
    LogAnswer,
    LossCertainty,
    PartitionState,
    ReplicaLog,
    Snapshot,
    Unplanned,
)
from kelr.view.plan_left import without_them
from tests.engine.cases import leaderless, log_of, silent
from tests.engine.planned import (
    RECOMMENDED,
    asked,
    carried_out,
    decided,
    designated,
    election,
    incident,
    plan,
    refusal,
    stopped,
)
from tests.properties import examples

_OF_THE_GONE: dict[str, Any] = {"reason": "", "hold": (), "alternatives": (), "warnings": ()}
"""What is said otherwise where some will not come back."""


def without(*brokers: int, minimal_replicas: int | None = None) -> ElectionRequest:
    return ElectionRequest(gone=frozenset(brokers), minimal_replicas=minimal_replicas)


def on_disk(log: ReplicaLog) -> ReplicaLog:
    return replace(log, source=LOG_DIRECTORY)


# Whom it elects.


def test_who_is_left_is_elected_in_place_of_a_wait() -> None:
    assert refusal(incident()).action is AdviceAction.BRING_BACK
    found = election(incident(), without(1))
    assert (found.elect, found.election, found.recommended) == (2, ElectionType.DESIGNATION, True)
    assert found.reason == (
        "Broker 1 was said to be gone for good. Designate 2: of brokers 3 and 2, which are left and live, it has"
        " the best log, and it loses an UNKNOWN number of offsets; the log of broker 1 was not read."
    )


def test_what_it_tells_is_what_the_same_designation_would() -> None:
    """The lost member's log is missing still: no guarantee of the KIP, and consent for what nobody can count."""
    snapshot = incident()
    found, same = election(snapshot, without(1)), election(snapshot, designated(2))
    assert found.loss == same.loss
    assert found.loss.grade is LossCertainty.UNKNOWN
    assert found.loss.unheard == (1,)
    assert found.consent is Consent.LOSS
    assert replace(found, recommended=False, **_OF_THE_GONE) == replace(same, against=None, **_OF_THE_GONE)
    assert [one.broker for one in found.hold] == [one.broker for one in same.hold]


def test_the_disk_of_a_broker_that_is_gone_counts_in_the_loss_and_can_be_rescued() -> None:
    logs = (log_of(3, (4, 116), hw=116), on_disk(log_of(1, (4, 150), hw=140)), log_of(2, (4, 135), hw=120))
    snapshot = incident(logs=logs)
    waits = refusal(snapshot)
    assert (waits.action, waits.brokers) == (AdviceAction.BRING_BACK, (1,))
    found = election(snapshot, without(1))
    assert found.elect == 2
    assert (found.loss.total, found.loss.committed) == (Bounds(15, 15), Bounds(5, 15))
    assert "it loses 15 offsets, 5 of them known to be committed." in found.reason
    assert [(step.replica, step.from_offset, step.to_offset, step.reachable) for step in found.rescue] == [
        (1, 135, 150, False)
    ]


def test_its_disk_tells_which_of_two_logs_has_the_committed_records() -> None:
    """3 has the newest epoch, which began below records that only the high watermark on 1's disk shows as committed."""
    logs = (
        log_of(3, (1, 100), (3, 110), hw=100),
        on_disk(log_of(1, (1, 130), hw=130)),
        log_of(2, (1, 120), hw=100),
    )
    found = election(incident(logs=logs), without(1))
    assert found.elect == 2
    assert found.loss.committed == Bounds(10, 20)
    assert "it is known to lose the fewest committed offsets" in found.reason
    assert "3 has the newest leader epoch" in found.reason
    assert election(incident(logs=logs), asked(ElectionType.LONGEST_LOG_AGGRESSIVE)).elect == 3


def test_a_member_of_the_elr_that_is_gone_is_left_out_and_who_waits_is_held() -> None:
    """ELR [1], last known leader 1 with the shorter log: its return would still be what the hold is for."""
    snapshot = incident(leaderless((3, 1, 2), elr=(1,), last_known=(1,)))
    found = election(snapshot, without(1))
    assert found.elect == 2
    assert [hold.broker for hold in found.hold] == [1]


# Whom it waits for.

FOUR = leaderless((3, 1, 2, 4), elr=(1, 4), last_known=(1,))


def four(log_4: LogAnswer, state: PartitionState = FOUR) -> Snapshot:
    logs = (log_of(3, (4, 116)), silent(1), log_of(2, (4, 135), hw=120), log_4)
    return incident(state, fenced=(1, 4), logs=logs)


def test_nobody_who_is_gone_is_started_or_waited_for_instead() -> None:
    state = leaderless(elr=(1, 2), last_known=(1,))
    snapshot = incident(state, live=(3,), fenced=(1, 2), logs=(silent(1), silent(2), log_of(3, (0, 20))))
    found = election(snapshot, without(1, 2))
    assert found.elect == 3
    assert found.alternatives == ()
    assert "If brokers 1 and 2 return after all, they truncate to 3's log where they differ" in " ".join(found.warnings)
    (left,) = plan(snapshot, without(1)).not_planned
    assert [one.start for one in left.alternatives] == [2]


def test_the_best_log_of_those_that_are_left_is_not_called_the_best_of_all() -> None:
    logs = (on_disk(log_of(1, (4, 50), hw=40)), on_disk(log_of(2, (4, 40), hw=40)), log_of(3, (4, 20), hw=20))
    snapshot = incident(leaderless(elr=(1, 2), last_known=(1,)), live=(3,), fenced=(1, 2), logs=logs)
    (left,) = plan(snapshot, without(1)).not_planned
    assert "ends at 40, the most complete of those that are left" in left.reason


def test_others_that_can_come_back_are_waited_for() -> None:
    found = refusal(four(silent(4)), without(1))
    assert (found.why, found.action, found.brokers) == (Unplanned.ADVISED, AdviceAction.BRING_BACK, (4,))
    assert found.reason.startswith(
        "Broker 1 was said to be gone for good. First save what the others hold above their high watermarks, or"
        " differently from each other: the log of broker 4 was not read, so its return may truncate that, or"
        " more after a crash (exit code 7). Start broker 4. After a clean shutdown, Kafka elects it and"
        " loses no committed record."
    )
    assert found.command == ("recover", "collect", "--log-dir", "DIRECTORY", "--out", "broker-4.kelr")


def test_with_all_of_them_gone_nobody_is() -> None:
    found = election(four(silent(4)), without(4, 1))
    assert found.elect == 2
    assert found.reason.startswith("Brokers 1 and 4 were said to be gone for good. ")
    assert found.loss.unheard == (1, 4)


def test_a_better_log_of_a_broker_that_can_come_back_is_brought_back() -> None:
    """1, in the ELR and gone, keeps Kafka from electing the last known leader: nothing says that 4 is elected."""
    state = leaderless((3, 1, 2, 4), elr=(1,), last_known=(4,))
    found = refusal(four(on_disk(log_of(4, (4, 140), hw=120)), state), without(1))
    assert (found.action, found.brokers[:1]) == (AdviceAction.BRING_BACK, (4,))
    assert "its return elects no leader, so then designate 4" in found.reason
    assert "Kafka elects it" not in found.reason


def test_a_log_that_may_still_be_read_is_read_first() -> None:
    found = refusal(four(silent(4), leaderless((3, 1, 2, 4), elr=(1,))), without(1))
    assert found.action is AdviceAction.GET_MORE_INFORMATION
    assert found.brokers == (4,)
    assert "Start broker 4, or read its disk, before you choose" in found.reason


def test_whose_disk_is_to_be_read_before_it_starts_is_among_those_to_keep_down() -> None:
    """The words said "do not start it before that", and `keep_down` was empty. Broker 1 is not registered: its return
    ends its place in the ELR, and elects the last known leader."""
    state = leaderless((3, 1, 2), elr=(1,), last_known=(3,))
    logs = (log_of(3, (0, 116)), silent(1), silent(2))
    left = refusal(incident(state, live=(3,), fenced=(2,), logs=logs), without(2))
    assert left.action is AdviceAction.GET_MORE_INFORMATION
    assert "Read the disk of broker 1 before you choose, and do not start it before that" in left.reason
    assert left.keep_down == (1,)
    assert without_them([left], {2})[-2:] == ("--gone", "1,2")


def test_a_live_broker_that_did_not_answer_is_not_in_the_command_for_those_that_cannot_come_back() -> None:
    """`--gone` refuses a live broker: the printed command could not be carried out."""
    logs = (log_of(1, (0, 10)), silent(2), silent(3))
    left = refusal(incident(leaderless((1, 2, 3)), live=(1, 2), fenced=(3,), logs=logs))
    assert "Broker 2 is up, but its log was not read: find out why" in left.reason
    assert (left.action, left.brokers) == (AdviceAction.GET_MORE_INFORMATION, (3,))
    assert without_them([left], ())[-2:] == ("--gone", "3")


def test_a_broker_with_a_worse_log_is_held_until_the_designation_is_done() -> None:
    state = leaderless((3, 1, 2, 4), last_known=(4,))
    snapshot = four(on_disk(log_of(4, (4, 120), hw=116)), state)
    found = election(snapshot, without(1))
    assert found.elect == 2
    assert "Keep broker 4 down: Kafka elects it the moment it returns, and its log lacks 15 offsets that 2 holds" in (
        found.reason
    )
    assert [hold.broker for hold in found.hold] == [4]


def test_under_a_leader_the_others_are_asked_for_and_the_lost_replica_is_to_be_moved() -> None:
    state = PartitionState("orders", 0, 2, 5, (1, 2, 3), (2,), (1, 3), ())
    snapshot = incident(state, live=(2,), fenced=(1, 3), logs=(silent(1), log_of(2, (5, 135)), silent(3)))
    found = refusal(snapshot, without(1))
    assert (found.action, found.brokers) == (AdviceAction.RESTORE_REPLICATION, (3,))
    assert "Start broker 3 (fenced)." in found.reason
    assert "Without broker 1, move its replica to another broker" in found.reason


def test_nobody_is_left() -> None:
    snapshot = incident(live=(9,), fenced=(1, 2, 3))
    found = refusal(snapshot, without(1, 2, 3))
    assert found.why is Unplanned.REFUSED
    assert "no replica is left to lead it" in found.reason


# What it does not do.


def test_a_live_broker_is_not_gone() -> None:
    found = refusal(incident(), without(1, 2))
    assert found.why is Unplanned.REFUSED
    assert found.reason == (
        "Broker 2 is live, and was said to be gone for good. Name only brokers that will not come back."
    )


def test_a_leader_whose_session_may_elect_a_member_is_waited_for() -> None:
    """1 has just died with 2 in sync: seconds later Kafka elects 2 cleanly, and a designation of 3 would lose more."""
    state = PartitionState("orders", 0, 1, 5, (3, 1, 2), (1, 2), (), ())
    found = refusal(incident(state), without(1))
    assert (found.why, found.action) == (Unplanned.ADVISED, AdviceAction.WAIT)


def test_a_dead_last_known_leader_that_kafka_4_0_is_about_to_elect() -> None:
    snapshot = incident()
    assert refusal(snapshot, without(1), ELR_4_0).reason == refusal(snapshot, RECOMMENDED, ELR_4_0).reason


def test_by_the_whole_kip_the_recovery_manager_elects() -> None:
    found = refusal(incident(), without(1), KIP966_BALANCED)
    assert found.why is Unplanned.REFUSED


def test_enough_logs_have_to_be_heard_all_the_same() -> None:
    assert "3 were asked for" in refusal(incident(), without(1, minimal_replicas=3)).reason
    assert election(incident(), without(1, minimal_replicas=2)).elect == 2


@pytest.mark.parametrize("others", [(), (4,), (9,)])
def test_who_holds_no_replica_changes_nothing(others: tuple[int, ...]) -> None:
    assert plan(incident(), without(*others)) == plan(incident())


# Always.

subsets = st.sets(st.sampled_from((1, 2, 3, 4)), min_size=1).map(frozenset)


@examples(200)
@given(stopped(), subsets)
def test_who_is_planned_is_there_and_loses_the_fewest_known_committed_offsets(
    stop: tuple[Snapshot, ElectionRequest], among: frozenset[int]
) -> None:
    snapshot, _ = stop
    (state,) = snapshot.partitions
    gone = among - snapshot.cluster.live
    made = plan(snapshot, ElectionRequest(gone=gone))
    for found in made.elections:
        decision = decided(snapshot)
        case = case_of(snapshot, state, rules_of(snapshot, decision))
        assert found.elect in case.electable - gone
        # Told is what the same designation would be told, of the partition as it is.
        if not found.reason.startswith("Broker"):
            assert replace(found, **_OF_THE_GONE) == replace(election(snapshot), **_OF_THE_GONE)
            continue
        same = election(snapshot, designated(found.elect))
        assert replace(found, recommended=False, **_OF_THE_GONE) == replace(same, against=None, **_OF_THE_GONE)
        assert [one for one in found.alternatives if one.elect or one.start] == [
            one for one in same.alternatives if (one.elect or one.start) and one.start not in gone
        ]
        assert [one.broker for one in found.hold] == [one.broker for one in same.hold]
        assert carried_out(found, snapshot, decision.rules).leader == found.elect
        losses = {
            one.designate: one.loss.committed.at_least
            for one in decision.elections
            if one.election is ElectionType.DESIGNATION and one.elected == one.designate
            if one.loss is not None and one.loss.committed is not None
        }
        if found.elect in losses:
            assert losses[found.elect] == min(losses.values())
        # Nobody who can come back is passed over with a log that may be better.
        rest = [replica for replica in state.replicas if replica not in gone]
        if "Keep broker" not in found.reason:
            assert set(case.logs.ranked) >= set(rest)
            assert case.logs.best_of(case.live) == case.logs.best_of([*case.live, *rest])


@examples(200)
@given(stopped(), subsets)
def test_who_is_gone_is_never_asked_for(stop: tuple[Snapshot, ElectionRequest], among: frozenset[int]) -> None:
    snapshot, _ = stop
    gone = among - snapshot.cluster.live
    made = plan(snapshot, ElectionRequest(gone=gone))
    for planned in made.elections:
        assert not {one.start for one in planned.alternatives} & gone
        truncating = [text for text in planned.warnings if "truncate" in text and "where they differ" in text]
        assert not any(text.startswith(f"When broker {one} ") for one in gone for text in truncating)
    for found in made.not_planned:
        assert not {one.start for one in found.alternatives} & gone
        if found.why is Unplanned.ADVISED and "said to be gone" in found.reason:
            assert not set(found.brokers) & gone
            assert not any(f"tart broker {one}" in found.reason for one in gone)
        of_them, _, _ = found.reason.partition("The advice for all replicas is:")
        if "Kafka elects it" in of_them and "said to be gone" in of_them:
            elected = {forecast.elected for forecast in decided(snapshot).forecasts if forecast.replica not in gone}
            assert elected - {None}, found.reason
