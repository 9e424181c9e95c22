"""Logs that were read from the disks of brokers that are down: what they settle, and what must not be done then."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_0, ELR_4_3, KIP966_BALANCED, KIP966_NONE, KRAFT, RuleSet
from kelr.engine import decide
from kelr.engine.planning.refusals import advised
from kelr.engine.planning.subject import subject_of
from kelr.model import (
    LOG_DIRECTORY,
    Advice,
    AdviceAction,
    Bounds,
    Decision,
    ElectedBy,
    ElectionType,
    Forecast,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    LossCertainty,
    PartitionState,
    ReplicaLog,
)
from tests.engine.cases import and_unclean, cluster_of, decision, leaderless, log_of, silent, snapshot_of
from tests.engine.planned import decided, designated, election, known

ONE_DOWN = cluster_of(live=(2, 3), fenced=(1,))
ALL_DOWN = cluster_of(live=(), fenced=(1, 2, 3))
NEEDS_ELECTION = leaderless()
LAST_KNOWN = leaderless(last_known=(1,))
IN_ELR = leaderless(elr=(1,), last_known=(1,))
TWO = log_of(2, (3, 120), hw=110)
THREE = log_of(3, (3, 116), hw=110)


def disk(log: ReplicaLog) -> ReplicaLog:
    """The log as the disk of its broker tells it."""
    return replace(log, source=LOG_DIRECTORY, current_leader_epoch=None)


NEWER = disk(log_of(1, (3, 120), (4, 135), hw=110))
SAME = disk(log_of(1, (3, 120), hw=110))
SHORTER = disk(log_of(1, (3, 100), hw=90))


def forecast(found: Decision, replica: int, *, clean: bool) -> Forecast:
    return next(one for one in found.forecasts if one.replica == replica and one.clean is clean)


def aggressive_loss(found: Decision) -> int | None:
    (outcome,) = (one for one in found.elections if one.election is ElectionType.LONGEST_LOG_AGGRESSIVE)
    assert outcome.loss is not None
    assert outcome.loss.total is not None
    return outcome.loss.total.at_most


def test_the_best_log_on_a_dead_brokers_disk_is_brought_back_before_anybody_is_designated() -> None:
    found = decision(NEEDS_ELECTION, ONE_DOWN, (NEWER, TWO, THREE))
    advice = found.advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert advice.text == (
        "Start broker 1: its log (read from its disk) is the most complete of all replicas; its return elects no"
        " leader, so then designate 1, which loses nothing of any log."
    )
    assert advice.command == ("describe", "orders:0", "--watch")  # 1 is down: it was its designation
    assert advice.rescue == ()
    assert advice.alternative == (
        "If 1 cannot return: designate 2, which loses 15 offsets. Save what the disk of broker 1 holds first: it"
        " truncates to 2's log on its return."
    )
    assert (advice.designate, aggressive_loss(found)) == (2, 15)


def test_with_another_log_unread_the_best_disk_is_still_named() -> None:
    advice = decision(NEEDS_ELECTION, ONE_DOWN, (NEWER, TWO, silent(3))).advice
    assert advice.action is AdviceAction.GET_MORE_INFORMATION
    assert "Start 1, too: it has the most complete log of those that were read." in advice.text


@pytest.mark.parametrize("dead", [SAME, SHORTER])
def test_a_disk_that_holds_no_more_makes_a_designation_as_good_as_balanced(dead: ReplicaLog) -> None:
    found = decision(NEEDS_ELECTION, ONE_DOWN, (dead, TWO, THREE))
    assert (found.advice.action, found.advice.designate) == (AdviceAction.DESIGNATE, 2)
    (balanced,) = (one for one in found.elections if one.election is ElectionType.LONGEST_LOG_BALANCED)
    assert balanced.elected == 2
    assert balanced.loss is not None
    assert balanced.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR
    assert "all logs of the recovery quorum" in balanced.loss.reason


def test_a_last_known_leader_whose_disk_holds_the_best_log_is_brought_back_without_ifs() -> None:
    found = decision(LAST_KNOWN, ONE_DOWN, (NEWER, TWO, THREE))
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert found.advice.text == (
        "Start broker 1: its log was read from its disk and ends at 135, the most complete of all replicas. Kafka"
        " elects it as last known leader."
    )
    for clean in (True, False):
        returning = forecast(found, 1, clean=clean)
        assert returning.elected == 1
        assert returning.warning == ""
        assert returning.loss is not None
        assert returning.loss.grade is LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR


def test_what_was_not_heard_is_named_beside_the_best_disk() -> None:
    advice = decision(LAST_KNOWN, ONE_DOWN, (NEWER, TWO, silent(3))).advice
    assert "the most complete of those that were read (broker 3 was not)" in advice.text


def test_a_last_known_leader_whose_disk_lacks_records_is_held_down() -> None:
    found = decision(LAST_KNOWN, ONE_DOWN, (SHORTER, TWO, THREE))
    assert (found.advice.action, found.advice.replica, found.advice.designate) == (AdviceAction.HOLD, 1, 2)
    assert "its log lacks 20 offsets that 2 holds. Designate 2 first." in found.advice.text
    warning = forecast(found, 1, clean=True).warning
    assert warning.startswith("although its log, read from its disk, is not the best; 2 holds up to offset 120")


def test_an_answer_that_was_saved_before_the_broker_went_down_does_not_speak_for_its_disk() -> None:
    saved = replace(NEWER, source="ListOffsets+Fetch, saved")
    advice = decision(LAST_KNOWN, ONE_DOWN, (saved, TWO, THREE)).advice
    assert "If its machine crashed or lost its disk, keep it down" in advice.text


def test_a_log_that_was_read_before_its_broker_went_down_may_be_cut_since() -> None:
    """It was taken for what the broker comes back with: "start 1: nothing is lost"."""
    saved = replace(NEWER, source="ListOffsets+Fetch, saved", read_at_ms=3_661_000)
    found = decision(LAST_KNOWN, ONE_DOWN, (saved, TWO, THREE))
    seen = (
        "the log of broker 1 was read at 01:01:01 UTC, while it ran: if only its process has died since, that is what"
        " it holds; if its machine crashed, the end that was not flushed is cut"
    )
    assert seen in found.notes
    back = forecast(found, 1, clean=False)
    assert back.elected == 1
    assert back.loss is not None
    assert (back.loss.grade, back.loss.total, back.loss.may_have_lost) == (LossCertainty.UNKNOWN, Bounds(0), (1,))
    assert back.loss.reason.startswith("the log of broker 1 may be cut")
    made = election(snapshot_of(known(LAST_KNOWN), ONE_DOWN, (saved, TWO, THREE)), designated(2))
    assert f"T{seen[1:]}." in made.warnings
    assert [step.reachable for step in made.rescue if step.replica == 1] == [False]


def test_what_was_read_before_a_broker_was_stopped_keeps_the_way_that_was_advised() -> None:
    """Without it the designation that the advice to stop ended with went against the advice to bring that one back."""
    state, saved = known(LAST_KNOWN), replace(log_of(1), source="ListOffsets+Fetch, saved")
    for answer, against in ((saved, False), (silent(1), True)):
        planned = election(snapshot_of(state, ONE_DOWN, (answer, TWO, THREE)), designated(2))
        assert (planned.against is not None) is against


def test_a_last_known_leader_without_its_log_is_held_down() -> None:
    lost = LogUnavailable(1, LogUnavailableReason.STORAGE_ERROR, "no such replica on its disk")
    advice = decision(LAST_KNOWN, ONE_DOWN, (lost, TWO, THREE)).advice
    assert (advice.action, advice.replica, advice.designate) == (AdviceAction.HOLD, 1, 2)
    assert "must not return without its data" in advice.text


def test_a_member_of_the_elr_whose_disk_was_read_is_told_with_what_it_holds() -> None:
    best = decision(IN_ELR, ONE_DOWN, (NEWER, TWO, THREE)).advice
    assert best.action is AdviceAction.BRING_BACK
    assert best.text.endswith("Its log was read from its disk and ends at 135, the most complete of all replicas.")
    behind = decision(IN_ELR, ONE_DOWN, (disk(log_of(1, (3, 112), hw=100)), TWO, THREE)).advice
    assert behind.action is AdviceAction.BRING_BACK
    assert behind.text.endswith(
        "Its log was read from its disk and ends at 112; it lacks 8 offsets that 2 holds, and none of them is known to"
        " be committed."
    )


def test_a_member_of_the_elr_whose_disk_lacks_committed_records_is_held_down() -> None:
    found = decision(IN_ELR, ONE_DOWN, (disk(log_of(1, (3, 100), hw=100)), TWO, THREE))
    assert (found.advice.action, found.advice.replica, found.advice.designate) == (AdviceAction.HOLD, 1, 2)
    clean = forecast(found, 1, clean=True)
    assert clean.loss is not None
    assert (clean.loss.grade, "contradictory evidence" in clean.loss.reason) == (LossCertainty.UNKNOWN, True)
    assert clean.warning.startswith("although its log, read from its disk, is not the best")


def test_with_every_broker_down_and_every_disk_read_the_best_one_starts_first() -> None:
    logs = (SHORTER, disk(TWO), disk(THREE))
    nobody = decision(NEEDS_ELECTION, ALL_DOWN, logs).advice
    assert (nobody.action, nobody.replica) == (AdviceAction.BRING_BACK, 2)
    assert "its return elects no leader, so then designate 2" in nobody.text
    waiting = decision(LAST_KNOWN, ALL_DOWN, logs).advice
    assert (waiting.action, waiting.replica) == (AdviceAction.HOLD, 1)
    assert waiting.text == (
        "Keep broker 1 down: Kafka elects it the moment it returns, and its log lacks 20 offsets that 2 holds. Start"
        " 2 first: its return elects no leader, so then designate 2, which loses an UNKNOWN number of offsets;"
        " broker 1 has lost data, perhaps more than any log shows."
    )
    best = decision(LAST_KNOWN, ALL_DOWN, (NEWER, disk(TWO), disk(THREE))).advice
    assert (best.action, best.replica) == (AdviceAction.BRING_BACK, 1)
    assert "crashed" not in best.text
    assert "Its log was read from its disk and ends at 135" in best.text


def test_where_whoever_returns_first_is_elected_those_with_a_worse_log_are_kept_down() -> None:
    """Found by `make hindsight`: another partition wanted one of them started, and nothing held it."""
    snapshot = snapshot_of(LAST_KNOWN, ALL_DOWN, (disk(TWO), SHORTER, disk(log_of(3, (3, 120)))), unclean=True)
    advice = decide(snapshot, LAST_KNOWN, KRAFT).advice
    assert (advice.action, advice.replica, advice.keep_down) == (AdviceAction.BRING_BACK, 2, (1,))


def test_a_place_in_the_elr_that_an_unclean_shutdown_ends_is_no_reason_to_start_with_a_worse_log() -> None:
    """Its return takes 1 out of the ELR, and elects it as the last known leader; no high watermark tells what it lacks
    (a seed of make hindsight: 12 acks=all records)."""
    logs = [disk(log_of(1, hw=0)), *(disk(log_of(broker, (0, 6), hw=0)) for broker in (2, 3))]
    advice = decision(IN_ELR, ALL_DOWN, [replace(log, unclean_shutdown=True) for log in logs]).advice
    assert (advice.action, advice.replica) == (AdviceAction.HOLD, 1)
    assert "its log lacks 6 offsets that 2 holds. Start 2 first" in advice.text


def test_a_last_known_leader_is_held_down_for_a_better_disk_and_not_for_a_worse_live_replica() -> None:
    cluster = cluster_of(live=(3,), fenced=(1, 2))
    better = disk(log_of(2, (3, 118), (4, 150), hw=110))
    advice = decision(LAST_KNOWN, cluster, (disk(log_of(1, (3, 119), hw=110)), better, THREE)).advice
    assert (advice.action, advice.replica, advice.designate) == (AdviceAction.HOLD, 1, 2)
    assert "lacks 32 offsets that 2 holds. Start 2 first" in advice.text
    assert advice.alternative == (
        "If 2 cannot return: start 1, whose log is more complete than that of any live replica."
    )
    worse = decision(LAST_KNOWN, cluster, (SHORTER, better, THREE)).advice
    assert (worse.action, worse.replica, worse.designate) == (AdviceAction.HOLD, 1, 3)
    assert worse.alternative.startswith("If 2 cannot return: designate 3, which loses")


LENGTHS = st.tuples(st.integers(0, 3), st.integers(1, 40))
STATES = st.sampled_from([NEEDS_ELECTION, LAST_KNOWN, IN_ELR, leaderless(isr=(1,))])


def _log(replica: int, length: tuple[int, int]) -> ReplicaLog:
    """A log of epochs 0 to 3, of which each begins at a fixed offset; the last one runs as far as the length says."""
    epoch, records = length
    ends = [(before, 50 * (before + 1)) for before in range(epoch)]
    return log_of(replica, *ends, (epoch, 50 * epoch + records), hw=0)


@given(STATES, st.lists(LENGTHS, min_size=3, max_size=3), st.sets(st.sampled_from([1, 2, 3]), min_size=1))
def test_no_advice_gives_up_a_better_log_that_a_disk_is_known_to_hold(
    state: PartitionState, lengths: list[tuple[int, int]], down: set[int]
) -> None:
    """Whoever is to be designated, or brought back, has the best log, or stands in ISR or ELR."""
    live = [replica for replica in (1, 2, 3) if replica not in down]
    logs: list[LogAnswer] = [
        disk(_log(replica, length)) if replica in down else _log(replica, length)
        for replica, length in zip((1, 2, 3), lengths, strict=True)
    ]
    found = decide(snapshot_of(state, cluster_of(live=live, fenced=sorted(down)), logs), state, ELR_4_3)
    best = {candidate.replica for candidate in found.candidates if candidate.best}
    advice = found.advice
    if advice.action is AdviceAction.DESIGNATE:
        assert advice.designate in best | {*state.isr, *(state.elr or ())}
    if advice.action is AdviceAction.HOLD:
        assert advice.replica not in best
        assert _named_instead(advice) & best
    if advice.action is AdviceAction.BRING_BACK and advice.replica is not None:
        assert advice.replica in best | {*state.isr, *(state.elr or ())}


def _named_instead(advice: Advice) -> set[int]:
    """The replicas that an advice to hold one down names for the leadership."""
    return {
        replica for replica in (1, 2, 3) if f"Designate {replica}" in advice.text or f"Start {replica}" in advice.text
    }


# A disk without the mark of a clean shutdown.


def killed(log: ReplicaLog) -> ReplicaLog:
    return replace(log, unclean_shutdown=True)


def test_of_a_broker_that_was_not_shut_down_cleanly_no_clean_return_is_foretold() -> None:
    found = decision(IN_ELR, ONE_DOWN, (killed(NEWER), TWO, THREE))
    (only,) = (one for one in found.forecasts if one.replica == 1)
    assert (only.clean, only.elected, only.elected_by) == (False, 1, ElectedBy.LAST_KNOWN_LEADER)
    assert only.loss is not None
    assert only.loss.grade is not LossCertainty.PROVEN_NONE
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert found.advice.text.startswith(
        "Start broker 1: its log was read from its disk and ends at 135, the most complete of all replicas."
    )
    assert found.advice.text.endswith(and_unclean(1))
    assert "after a clean shutdown" not in found.advice.text


def test_a_member_of_the_elr_that_was_killed_and_has_the_shorter_log_is_kept_down() -> None:
    found = decision(IN_ELR, ONE_DOWN, (killed(SHORTER), TWO, THREE))
    assert (found.advice.action, found.advice.replica, found.advice.designate) == (AdviceAction.HOLD, 1, 2)
    assert "after a clean shutdown" not in found.advice.text


def test_a_killed_member_of_the_elr_that_never_led_last_elects_nobody() -> None:
    found = decision(leaderless(elr=(1,)), ONE_DOWN, (killed(SHORTER), TWO, THREE))
    assert found.waits_for == ()
    assert (found.advice.action, found.advice.designate) == (AdviceAction.DESIGNATE, 2)
    found = decision(leaderless(elr=(1,)), ONE_DOWN, (killed(NEWER), TWO, THREE))
    assert (found.advice.action, found.advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert "its return elects no leader, so then designate 1" in found.advice.text


def test_another_member_of_the_elr_is_waited_for_where_one_was_killed() -> None:
    state, down = leaderless((1, 2, 3), elr=(1, 2)), cluster_of(live=(3,), fenced=(1, 2))
    found = decision(state, down, (killed(NEWER), silent(2), THREE))
    assert (found.waits_for, found.advice.replica) == ((2,), 2)


@pytest.mark.parametrize("rules", [ELR_4_3, ELR_4_0, KIP966_BALANCED, KIP966_NONE], ids=lambda rules: rules.name)
@pytest.mark.parametrize("live", [(), (3,)])
def test_nobody_is_promised_a_clean_return_of_a_broker_that_was_not_shut_down_cleanly(
    rules: RuleSet, live: tuple[int, ...]
) -> None:
    """Whoever is in the ELR, and whatever else is known: text, forecasts and the plan's list of brokers agree."""
    state, cluster = leaderless((1, 2, 3), elr=(1, 2)), cluster_of(live=live, fenced=tuple({1, 2, 3} - {*live}))
    three = THREE if live else silent(3)
    first, second = disk(NEWER), disk(replace(TWO, source=LOG_DIRECTORY))
    for one in (killed(first), replace(first, unclean_shutdown=False), first, silent(1)):
        for two in (killed(second), replace(second, unclean_shutdown=False), second, silent(2)):
            logs = (one, two, three)
            snapshot = snapshot_of(state, cluster, logs)
            found = decided(snapshot, rules)
            advice = found.advice
            stopped = {log.replica: getattr(log, "unclean_shutdown", None) for log in logs}
            subject = subject_of(snapshot, found)
            assert subject is not None
            listed = advised(subject).brokers  # the plan's
            if "after a clean shutdown nothing committed" in advice.text:
                assert not any(stopped[broker] is True for broker in listed), (advice.text, stopped, listed)
            if "so nothing committed is lost" in advice.text:
                assert listed
                assert all(stopped[broker] is False for broker in listed), (advice.text, stopped, listed)
            if advice.action is AdviceAction.BRING_BACK and advice.replica is not None:
                named = advice.text.partition("ring ")[2] if "ring " in advice.text else advice.text
                assert all(str(broker) in named for broker in listed), (advice.text, listed)


def test_a_broker_whose_disk_shows_a_clean_shutdown_is_brought_back_first() -> None:
    state, cluster = leaderless((1, 2, 3), elr=(1, 2)), cluster_of(live=(3,), fenced=(1, 2))
    found = decision(state, cluster, (silent(1), replace(disk(TWO), unclean_shutdown=False), THREE))
    (only,) = (one for one in found.forecasts if one.replica == 2)
    assert (only.clean, only.elected, only.elected_by) == (True, 2, ElectedBy.ELR)
    assert (found.advice.replica, found.advice.start) == (2, (2,))
    assert found.advice.text.startswith(
        "Start broker 2. Its disk shows a clean shutdown: Kafka elects it and loses no committed record."
    )


def test_a_plan_against_the_advice_names_the_one_manner_of_return_that_is_left() -> None:
    state, cluster = leaderless((1, 2, 3), elr=(1, 2)), cluster_of(live=(3,), fenced=(1, 2))
    snapshot = snapshot_of(known(state), cluster, (silent(1), replace(disk(TWO), unclean_shutdown=False), THREE))
    planned = election(snapshot, designated(3))
    (hold,) = (one for one in planned.hold if one.broker == 2)
    assert hold.text.startswith("If broker 2 returns before the election, Kafka elects it as a member of the ELR, with")
    (start,) = (one for one in planned.alternatives if one.start == 2)
    assert start.note == "start broker 2: Kafka elects it as a member of the ELR, with all that was committed"


def test_the_mark_is_asked_of_a_disk_alone() -> None:
    for unclean in (True, False):
        live = replace(TWO, unclean_shutdown=unclean)
        assert decision(IN_ELR, ONE_DOWN, (NEWER, live, THREE)) == decision(IN_ELR, ONE_DOWN, (NEWER, TWO, THREE))


@pytest.mark.parametrize("live", [(), (3,)])
def test_with_elr_off_an_unclean_member_of_the_isr_is_kept_down_for_a_better_log(live: tuple[int, ...]) -> None:
    """It is elected the moment it returns, and its place in the ISR proves nothing: Kafka keeps the last one in it."""
    cluster = cluster_of(live=live, fenced=tuple({1, 2, 3} - {*live}), elr=False)
    torn = replace(disk(log_of(1, hw=0)), unclean_shutdown=True)
    logs = (torn, disk(log_of(2, (3, 22), hw=6)), log_of(3, (3, 3), hw=0))
    logs = logs if live else (*logs[:2], disk(logs[2]))
    advice = decision(leaderless(isr=(1,)), cluster, logs=logs, rules=None).advice
    assert (advice.action, advice.replica) == (AdviceAction.HOLD, 1)
    assert "Start 2 first" in advice.text


def test_with_elr_off_the_only_readable_log_is_not_called_whole() -> None:
    cluster = cluster_of(live=(3,), fenced=(1, 2), elr=False)
    best = replace(disk(log_of(1, (3, 22), hw=6)), unclean_shutdown=True)
    logs = (best, silent(2), log_of(3, (3, 3), hw=0))
    advice = decision(leaderless(isr=(1,)), cluster, logs=logs, rules=None).advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 1)
    assert "its place there proves nothing" in advice.text
    assert "nothing committed is lost" not in advice.text
