"""What stands beside a planned election: who stays down, what can be saved, what else could be done, other tools."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given

from kelr.engine import case_of, decide
from kelr.engine.planning import (
    differences,
    first,
    only_partitions,
    only_topics,
    plan_digest,
    plan_id,
    stock_files,
)
from kelr.engine.planning.subject import rules_of
from kelr.model import (
    LOG_DIRECTORY,
    Bounds,
    DamageKind,
    ElectionRequest,
    ElectionType,
    HoldReason,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    Method,
    Plan,
    PlannedElection,
    ReplicaLog,
    RescueStep,
    TopicPartition,
    Truncation,
)
from tests.engine.cases import cluster_of, leaderless, log_of, silent
from tests.engine.planned import (
    all_heard,
    asked,
    decided,
    designated,
    election,
    incident,
    plan,
    planner,
    stopped,
    with_logs,
)
from tests.properties import examples

UNCLEAN = asked(ElectionType.UNCLEAN)


def holds(made: PlannedElection) -> list[tuple[int, HoldReason]]:
    return [(hold.broker, hold.reason) for hold in made.hold]


# Who stays down


def test_the_last_known_leader_stays_down() -> None:
    made = election(incident(), designated(2))
    assert holds(made) == [(1, HoldReason.LAST_KNOWN_LEADER)]
    assert made.hold[0].text == (
        "If broker 1 returns before the election, Kafka elects it as the last known leader, even if its log was cut:"
        " the advice is to bring it back instead; for this election keep it down until it is done."
    )
    recommended = election(incident(), ElectionRequest(gone=frozenset({1})))
    assert recommended.hold[0].text.endswith("even if its log was cut: keep it down until this is done.")


@pytest.mark.parametrize("elr", [(1,), ()])
def test_a_broker_that_is_up_without_its_log_directory_is_not_one_to_keep_down(elr: tuple[int, ...]) -> None:
    """It serves other partitions: the plan said "keep broker 1 down", though it is up."""
    state = replace(leaderless((3, 1, 2), elr=elr, last_known=(1,)), offline_replicas=(1,))
    failed = LogUnavailable(1, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR")
    logs = (failed, log_of(2, (4, 90)), log_of(3, (4, 60)))
    made = election(incident(state, live=(1, 2, 3), fenced=(), logs=logs), designated(2))
    (hold,) = made.hold
    assert (hold.broker, hold.directory) == (1, True)
    assert hold.text.startswith("If broker 1 restarts with its log directory before the election, ")
    assert hold.text.endswith(": leave its log directory offline until this is done.")
    assert " down" not in hold.text
    assert "return" not in hold.text


def test_a_dead_elr_member_would_be_elected_first_and_loses_less() -> None:
    made = election(incident(leaderless((3, 1, 2), elr=(1,), last_known=(1,))), designated(2))
    assert holds(made) == [(1, HoldReason.ISR_OR_ELR)]
    assert made.hold[0].text == (
        "If broker 1 returns before the election, after a clean shutdown Kafka elects it as a member of the ELR, with"
        " all that was committed; after an unclean one Kafka elects it as the last known leader, even if its log was"
        " cut: the advice is to bring it back instead; for this election keep it down until it is done."
    )


def test_whoever_stands_before_the_wanted_replica_would_win_an_unclean_election() -> None:
    snapshot = incident(leaderless((1, 2, 3)))
    made = election(snapshot, UNCLEAN)
    assert (made.method, holds(made)) == (Method.UNCLEAN, [(1, HoldReason.FIRST_IN_ORDER)])
    assert made.hold[0].text == (
        "If broker 1 is back when the election runs, that elects it as the first live replica in the assignment, even"
        " if its log holds less: keep it down until this is done."
    )
    for wanted in (2, 3):  # a reordering puts it before 1
        made = election(snapshot, designated(wanted))
        assert (made.method, holds(made)) == (Method.REORDER, [])
    assert holds(election(incident(leaderless((2, 1, 3))), designated(2))) == []


def test_with_unclean_elections_on_it_is_not_known_whom_a_return_elects() -> None:
    """That of 2, still in the ISR, takes it out of there and elects 3, which alone is live at that moment; if 2 only
    stood still, it does not register, and is elected. That of 1 elects 1, which is first in order, unless the election
    of 3 comes before."""
    snapshot = incident(
        leaderless((1, 2, 3), isr=(2,)), live=(3,), fenced=(1, 2), logs=(log_of(3, (4, 9)),), unclean=True
    )
    made = election(snapshot, designated(3))
    assert holds(made) == [(1, HoldReason.FIRST_IN_ORDER), (2, HoldReason.ISR_OR_ELR)]
    assert all("since one is due by itself" in hold.text for hold in made.hold)
    assert decided(snapshot).forecasts == ()
    assert "an election of 3 is due: whether the return of 1 or 2 elects another before it is not known" in " ".join(
        decided(snapshot).notes
    )


def test_a_return_that_elects_whom_an_election_elects_that_is_due_is_foretold() -> None:
    snapshot = incident(
        leaderless((3, 1, 2), isr=(2,)), live=(3,), fenced=(1, 2), logs=(log_of(3, (4, 9)),), unclean=True
    )
    assert {(one.replica, one.elected) for one in decided(snapshot).forecasts} == {(1, 3)}
    assert holds(election(snapshot, designated(3))) == [(2, HoldReason.ISR_OR_ELR)]


def test_members_of_the_elr_that_were_shut_down_uncleanly_elect_nobody_one_by_one() -> None:
    """The first to return leaves the ELR, and the other one is in it still; the second empties it."""
    state = leaderless((4, 2, 3), elr=(2, 3), last_known=(3,))
    logs = (log_of(4, (4, 193), hw=12), unclean_disk(2, 354), unclean_disk(3, 403))
    made = election(incident(state, live=(4,), fenced=(2, 3), logs=logs), designated(4))
    together = (
        "If brokers 2 and 3 are both back before the election, Kafka elects broker 3 as the last known leader: keep one"
        " of them down until this is done."
    )
    assert [(hold.broker, hold.text) for hold in made.hold] == [(2, together), (3, together)]
    alone = replace(state, last_known_elr=())
    assert election(incident(alone, live=(4,), fenced=(2, 3), logs=logs), designated(4)).hold == ()


def unclean_disk(replica: int, end: int) -> ReplicaLog:
    return replace(log_of(replica, (4, end), hw=141), source=LOG_DIRECTORY, unclean_shutdown=True)


@examples(300)
@given(stopped())
def test_a_broker_that_is_not_held_down_may_return_without_undoing_the_election(both) -> None:  # type: ignore[no-untyped-def]
    """Whoever else returns, whether cleanly or not, the planned requests still elect the planned replica."""
    snapshot, wish = both
    for made in planner(lambda _state: wish, snapshot, None).elections:
        (state,) = snapshot.partitions
        decision = decide(snapshot, state)
        held = {hold.broker for hold in made.hold}
        for forecast in decision.forecasts:
            if forecast.replica not in held:
                assert forecast.elected in {None, made.elect}


# What can be saved


def test_records_of_a_replica_that_truncates_can_be_saved_before() -> None:
    made = election(incident(), designated(3))
    assert made.rescue == (RescueStep(2, 116, 135, reachable=True),)
    assert "Broker 2 truncates 19 offsets, from 116 on, to follow 3." in made.warnings
    assert election(incident(), designated(2)).rescue == ()


def test_records_that_are_on_a_disk_alone_are_said_to_be_there() -> None:
    disk = replace(log_of(1, (4, 200), hw=120), source="log directory")
    made = election(with_logs(incident(), disk), designated(2))
    assert made.rescue == (RescueStep(1, 135, 200, reachable=False),)
    assert "When broker 1 returns, it truncates 65 offsets, from 135 on, to follow 2." in made.warnings


def test_the_same_records_are_saved_once_and_from_a_broker_that_answers() -> None:
    """Brokers 1 and 2 hold 120 to 130 between them; the disk of 4 holds all that they do."""
    disk = replace(log_of(4, (4, 130)), source="log directory")
    logs = (log_of(3, (4, 100)), log_of(1, (4, 120)), log_of(2, (4, 130)), disk)
    snapshot = incident(leaderless((3, 1, 2, 4)), live=(1, 2, 3), fenced=(4,), logs=logs)
    assert election(snapshot, designated(3)).rescue == (RescueStep(2, 100, 130, reachable=True),)


def test_records_of_different_epochs_at_the_same_offsets_are_different_records() -> None:
    logs = (log_of(3, (2, 50)), log_of(1, (2, 50), (3, 80)), log_of(2, (2, 50), (4, 70)))
    snapshot = incident(leaderless((3, 1, 2)), live=(1, 2, 3), fenced=(), logs=logs)
    assert election(snapshot, designated(3)).rescue == (RescueStep(1, 50, 80, True), RescueStep(2, 50, 70, True))
    assert str(election(snapshot, designated(3)).loss.total) == "50"


def test_what_one_source_adds_to_another_is_all_that_is_taken_from_it() -> None:
    logs = (log_of(3, (2, 50)), log_of(1, (2, 50), (3, 80)), log_of(2, (2, 50), (3, 60), (4, 70)))
    snapshot = incident(leaderless((3, 1, 2)), live=(1, 2, 3), fenced=(), logs=logs)
    assert election(snapshot, designated(3)).rescue == (RescueStep(1, 50, 80, True), RescueStep(2, 60, 70, True))


@examples(300)
@given(stopped())
def test_the_steps_save_every_record_that_is_lost(both) -> None:  # type: ignore[no-untyped-def]
    """Each (epoch, offset) that a heard log holds and the elected one does not is in some step of a log that has it."""
    snapshot, wish = both
    (state,) = snapshot.partitions
    for made in planner(lambda _state: wish, snapshot, None).elections:
        logs = case_of(snapshot, state, rules_of(snapshot, decide(snapshot, state))).logs
        if made.elect not in logs.ranked:
            continue
        lost = {
            (epoch, offset)
            for other in logs.ranked
            for epoch, start, end in logs.missing(other, made.elect)
            for offset in range(start, end)
        }
        saved = {
            (epoch, offset)
            for step in made.rescue
            for epoch, start, end in logs.missing(step.replica, made.elect)
            for offset in range(max(start, step.from_offset), min(end, step.to_offset))
        }
        assert saved == lost
        assert made.loss.total is None or len(lost) == made.loss.total.at_least


# What else could be done


def test_every_other_result_is_an_alternative_with_its_loss() -> None:
    made = election(incident(), designated(3))
    assert [(one.election, one.start, one.elect, one.leader) for one in made.alternatives] == [
        (ElectionType.DESIGNATION, None, 2, 2),
        (ElectionType.LONGEST_LOG_BALANCED, None, None, None),
        (ElectionType.DESIGNATION, 1, None, 1),
    ]
    assert made.alternatives[0].loss is not None
    assert str(made.alternatives[0].loss.total) == "UNKNOWN"
    assert made.alternatives[1].note == "needs log of 1"
    assert made.alternatives[2].note == "start broker 1: Kafka elects it as the last known leader"


def test_a_broker_whose_clean_return_loses_less_is_an_alternative_of_unknown_loss() -> None:
    """Nobody knows how it stopped: killed with its log cut, it is elected as the last known leader all the same."""
    made = election(incident(leaderless((3, 1, 2), elr=(1,), last_known=(1,))), designated(2))
    back = made.alternatives[-1]
    assert (back.start, back.elect, back.leader) == (1, None, 1)
    assert back.note == (
        "start broker 1: after a clean shutdown Kafka elects it as a member of the ELR, with all that was committed;"
        " after an unclean one Kafka elects it as the last known leader"
    )
    assert back.loss == Loss(LossCertainty.UNKNOWN, unheard=(1,), best=2, reason="the log of 1 was not read")


def test_a_return_that_elects_nobody_after_an_unclean_shutdown_has_no_loss_to_count_on() -> None:
    made = election(incident(leaderless((3, 1, 2), elr=(1,))), designated(2))
    back = made.alternatives[-1]
    assert (back.start, back.elect, back.leader) == (1, None, 1)
    assert back.note == (
        "start broker 1: after a clean shutdown Kafka elects it as a member of the ELR, with all that was committed;"
        " after an unclean one its return elects no leader, so then designate it"
    )
    assert back.loss is not None
    assert (back.loss.grade, back.loss.committed, back.loss.total) == (LossCertainty.UNKNOWN, None, None)


def test_a_broker_whose_return_elects_nobody_is_started_and_then_designated() -> None:
    state = leaderless((4, 2, 3), elr=(2, 3), last_known=(3,))
    logs = (log_of(4, (4, 193), hw=12), unclean_disk(2, 354), unclean_disk(3, 403))
    made = election(incident(state, live=(4,), fenced=(2, 3), logs=logs), designated(4))
    assert made.loss.total == Bounds(210, 210)
    two, three = made.alternatives[-2:]
    assert (three.election, three.start, three.elect, three.leader) == (ElectionType.DESIGNATION, 3, 3, 3)
    assert three.note == "start broker 3: while broker 2 is down, its return elects no leader, so then designate it"
    assert three.loss is not None
    assert three.loss.total == Bounds(0, 0)
    assert two.start == 2
    assert two.loss is not None
    assert two.loss.truncations == (Truncation(3, 354, 49),)


def test_of_a_broker_whose_log_was_read_the_loss_is_counted_however_it_stopped() -> None:
    logs = (log_of(3, (4, 116), hw=116), log_of(1, (4, 140), hw=120), log_of(2, (4, 135), hw=120))
    state = leaderless((3, 1, 2), elr=(1,), last_known=(1,))
    back = election(incident(state, logs=logs), designated(3)).alternatives[-1]
    assert (back.start, back.leader) == (1, 1)
    assert back.loss is not None
    assert (back.loss.grade, back.loss.total) == (LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, Bounds(0, 0))


@examples(300)
@given(stopped())
def test_what_a_return_loses_is_never_put_lower_than_after_an_unclean_shutdown(both) -> None:  # type: ignore[no-untyped-def]
    snapshot, wish = both
    for made in planner(lambda _state: wish, snapshot, None).elections:
        (state,) = snapshot.partitions
        forecasts = decide(snapshot, state).forecasts
        for back in (one for one in made.alternatives if one.start is not None):
            for forecast in (one for one in forecasts if one.replica == back.start):
                assert back.loss is not None
                if forecast.costs is None:
                    assert back.loss.grade is LossCertainty.UNKNOWN
                elif back.loss.grade is LossCertainty.PROVEN_NONE:
                    assert forecast.costs.grade is LossCertainty.PROVEN_NONE
                elif forecast.costs.total is None:
                    # A member of the ELR whose log was not read: there is nothing to count.
                    assert forecast.clean or forecast.costs.grade is LossCertainty.UNKNOWN
                elif back.loss.grade is not LossCertainty.UNKNOWN:
                    assert back.loss.total is not None
                    assert back.loss.total.at_least >= forecast.costs.total.at_least


def test_a_broker_whose_log_is_known_to_be_short_is_told_with_what_it_truncates() -> None:
    back = election(all_heard(), designated(2)).alternatives[-1]
    assert (back.start, back.leader) == (1, 1)
    assert back.loss is not None
    assert back.loss.truncations == (Truncation(2, 130, 5),)


# What a loss means


def test_a_marker_that_only_another_election_would_lose_is_not_held_against_this_one() -> None:
    """Replica 3 ends before the marker that 2 holds."""
    begun = replace(log_of(3, (4, 116), hw=116), last_stable_offset=100)
    ended = replace(log_of(2, (4, 135), hw=135), last_stable_offset=135)
    snapshot = incident(logs=(begun, silent(1), ended))
    assert DamageKind.LOST_MARKER in [damage.kind for damage in election(snapshot, designated(3)).damage]
    assert election(snapshot, designated(2)).damage == ()


# Identity and parts


def test_the_id_is_the_beginning_of_the_hash_of_all_of_the_content() -> None:
    made = plan(incident(), UNCLEAN)
    assert re.fullmatch(r"[0-9a-f]{64}", plan_digest(made))
    assert plan_id(made) == plan_digest(made)[:12]
    assert plan_id(made) == plan_id(plan(incident(), UNCLEAN))
    others = [
        replace(made, cluster_id="other"),
        replace(made, expires_at_ms=made.expires_at_ms + 1),
        replace(made, elections=()),
        replace(made, elections=(replace(made.elections[0], elect=2),)),
        replace(made, elections=(replace(made.elections[0], warnings=()),)),
    ]
    assert len({plan_id(one) for one in (made, *others)}) == 6


def several() -> Plan:
    made = plan(incident(), UNCLEAN)
    (one,) = made.elections
    rest = (replace(one, partition=3), replace(one, topic="payments"))
    left = plan(incident()).not_planned[0]
    return replace(made, elections=(one, *rest), not_planned=(replace(left, topic="audit"),))


def test_parts_of_a_plan() -> None:
    made = several()
    assert [str(one.address) for one in only_topics(made, {"payments"}).elections] == ["payments:0"]
    assert only_topics(made, {"payments"}).not_planned == ()
    assert only_topics(made, {"audit"}).elections == ()
    assert [str(one.address) for one in first(made, 2).elections] == ["orders:0", "orders:3"]
    assert first(made, 9) == made
    assert first(made, 0).elections == ()
    assert [str(o.address) for o in only_partitions(made, {TopicPartition("orders", 3)}).elections] == ["orders:3"]


def test_the_totals_of_a_plan_are_those_of_its_elections() -> None:
    made = several()
    assert made.known_loss == Bounds(57, None)
    exact = replace(made.elections[0], loss=Loss(LossCertainty.BOUNDED, total=Bounds(19, 19)))
    assert replace(made, elections=(exact, exact)).known_loss == Bounds(38, 38)


# Other tools


def test_a_reordering_of_live_brokers_goes_through_kafkas_own_tools() -> None:
    snapshot = all_heard(state=leaderless((3, 1, 2)), live=(1, 2, 3), fenced=())
    files = stock_files(plan(snapshot, designated(2)))
    reorder, elect, restore = files.steps
    assert [step.file for step in files.steps] == ["reorder.json", "elect-unclean.json", "restore.json"]
    assert json.loads(reorder.text) == {
        "version": 1,
        "partitions": [{"topic": "orders", "partition": 0, "replicas": [2, 3, 1]}],
    }
    assert reorder.lines == (
        "kafka-reassign-partitions.sh {stock} --reassignment-json-file reorder.json --execute &&",
        "kafka-reassign-partitions.sh {stock} --reassignment-json-file reorder.json --verify",
    )
    assert json.loads(elect.text) == {"partitions": [{"topic": "orders", "partition": 0}]}
    assert elect.lines == (
        "kafka-leader-election.sh {stock} --election-type unclean --path-to-json-file elect-unclean.json",
    )
    assert json.loads(restore.text)["partitions"][0]["replicas"] == [3, 1, 2]
    assert not any("Unknown broker id" in limit for limit in files.limits)


def test_an_order_that_names_a_dead_broker_needs_another_tool() -> None:
    files = stock_files(plan(incident(), designated(2)))
    reorder, elect, restore = files.steps
    assert (reorder.file, reorder.text) == (None, "")
    assert reorder.lines == (
        "kafka-python admin {kafka-python} partitions alter-reassignments -r orders:0=2,3,1 | tee /dev/stderr"
        " | grep -q ': None}' || echo 'NOT REORDERED: orders:0'",
    )
    assert elect.file == "elect-unclean.json"
    assert restore.lines == ("kafka-python admin {kafka-python} partitions alter-reassignments -r orders:0=3,1,2",)
    assert any("Unknown broker id" in limit for limit in files.limits)


def test_elections_that_need_no_order_are_one_file_for_each_type() -> None:
    files = stock_files(several())
    (step,) = files.steps
    assert [entry["topic"] for entry in json.loads(step.text)["partitions"]] == ["orders", "orders", "payments"]
    preferred = replace(several().elections[0], method=Method.PREFERRED, election=ElectionType.PREFERRED)
    both = replace(several(), elections=(several().elections[0], replace(preferred, partition=9)))
    assert [step.file for step in stock_files(both).steps] == ["elect-unclean.json", "elect-preferred.json"]
    assert stock_files(replace(both, elections=())).steps == ()


def test_replicas_that_leave_are_not_put_back() -> None:
    made = plan(incident(leaderless((3, 1, 2)), fenced=()), designated(2))
    files = stock_files(made)
    assert json.loads(files.steps[0].text)["partitions"][0]["replicas"] == [2, 3]
    assert json.loads(files.steps[2].text)["partitions"][0]["replicas"] == [3, 2]
    assert any("leave the assignment" in limit for limit in files.limits)


def test_a_plan_of_a_smaller_cluster_has_no_differences_either() -> None:
    """The lone replica is not live on paper, then is: nothing was planned for it before."""
    snapshot = incident(leaderless((2, 1)), live=(2,), fenced=(1,), logs=(log_of(2, (4, 9)), silent(1)))
    made = election(snapshot, designated(2))
    assert differences(made, snapshot, decide(snapshot, snapshot.partitions[0])) == ()
    assert cluster_of(live=(2,), fenced=(1,)) == snapshot.cluster
