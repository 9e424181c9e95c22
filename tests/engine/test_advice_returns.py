"""A return is an option: whom it elects, what that loses and truncates, and what the advice says to save first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.controller import ELR_4_3, KRAFT, RuleSet
from kelr.engine import needs_a_look, verdicts
from kelr.engine.logs import KnownLogs
from kelr.engine.loss_words import gone_in_words
from kelr.engine.planning.rescue import rescue_from
from kelr.model import (
    LOG_DIRECTORY,
    Advice,
    AdviceAction,
    Bounds,
    Decision,
    HoldReason,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    Parts,
    RecordedElection,
    RecoveryQuorum,
    ReplicaLog,
    SavedLog,
    Situation,
    Snapshot,
    TopicPartition,
    Truncation,
    Unsaved,
)
from tests.engine.cases import and_unclean, cluster_of, decision, leaderless, log_of, silent, snapshot_of
from tests.engine.planned import TOPIC_ID, decided, designated, election, known

AT = TopicPartition("orders", 0)


def disk(replica: int, *ends: tuple[int, int], hw: int | None = None) -> ReplicaLog:
    """A log read from the disk of a broker that was killed."""
    return replace(log_of(replica, *ends, hw=hw, leader_epoch=None), source=LOG_DIRECTORY, unclean_shutdown=True)


# Nobody leads

ONE_DOWN = cluster_of(live=(3, 2), fenced=(4,))
"""drill-s7-r0, partition 2, in small: 3 has the longest log of an old epoch, 4 the newest."""
DIVERGED = (log_of(3, (0, 385), hw=109), log_of(2, (0, 160), (1, 205), hw=160))


def test_a_return_that_truncates_a_live_replica_is_saved_from_first() -> None:
    found = decision(
        leaderless((3, 2, 4), elr=(4,), last_known=(4,)),
        ONE_DOWN,
        (*DIVERGED, disk(4, (0, 160), (1, 205), (2, 265), hw=160)),
    )
    (back,) = found.forecasts
    assert (back.replica, back.clean, back.elected, back.then) == (4, False, 4, None)
    assert back.loss is not None
    assert back.loss.total == Bounds(225, 225)
    assert back.loss.truncations == (Truncation(3, 160, 225),)
    assert (back.leads, back.costs) == (4, back.loss)
    advice = found.advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 4)
    assert advice.text == (
        "First save what its return truncates: 225 offsets of broker 3, from 160 on. Start broker 4: its log was"
        " read from its disk and ends at 265, the most complete of all replicas. Kafka elects it as last known"
        " leader." + and_unclean(4)
    )
    assert advice.rescue == (
        "rescue",
        "dump",
        "orders:0",
        "--elect",
        "4",
        "--logs",
        "FILE",
        "--out",
        "orders-0-lost-to-4.kelr-rescue",
    )
    assert advice.command == ("describe", "orders:0", "--watch")


MARKED = replace(disk(3, (0, 5), hw=5), unclean_shutdown=None)
"""A member of the ELR whose disk has a mark of a clean shutdown, of which nobody knows whether it counts."""


def test_who_may_have_stopped_uncleanly_waits_for_one_who_leads_with_the_same_records() -> None:
    """2, the last known leader, is back without the five records that 3, in the ELR, and 1 hold."""
    state, empty = leaderless((1, 3, 2), elr=(3,), last_known=(2,)), log_of(2, hw=0)
    found = decision(state, cluster_of(live=(2,), fenced=(1, 3)), (disk(1, (0, 5), hw=0), MARKED, empty))
    assert [(one.replica, one.clean, one.elected) for one in found.forecasts] == [
        (1, False, None),
        (3, True, 3),
        (3, False, 2),
    ]
    assert (found.advice.action, found.advice.replica, found.advice.keep_down) == (AdviceAction.BRING_BACK, 1, (3,))
    assert found.advice.text.startswith(
        "Start broker 1 first: its log holds all that 3's does, which is in the ELR; its return elects no leader, so"
        " then designate 1,"
    )
    assert (
        "Keep broker 3 down until 1 leads: if it was not shut down cleanly, its return ends its place in the ELR, and"
        " Kafka elects 2, which loses at least 5 offsets"
    ) in found.advice.text
    back = decision(state, cluster_of(live=(1, 2), fenced=(3,)), (log_of(1, (0, 5), hw=0), MARKED, empty)).advice
    assert (back.action, back.replica, back.designate) == (AdviceAction.HOLD, 3, 1)
    assert back.text.startswith("Designate 1 first, which loses an UNKNOWN number of offsets;")
    assert "its log holds all that 3's does, which is in the ELR. Keep broker 3 down until 1 leads" in back.text
    # What held more once is not held by anybody else for sure, nor is what nobody has read.
    held_more, unread = replace(MARKED, may_have_held_more=True), silent(2)
    for logs in ((log_of(1, (0, 5), hw=0), held_more, empty), (log_of(1, (0, 5), hw=0), MARKED, unread)):
        other = decision(state, cluster_of(live=(1, 2), fenced=(3,)), logs).advice
        assert "holds all that 3's does" not in other.text


def test_a_return_whose_disk_nobody_read_leads_to_reading_it() -> None:
    advice = decision(leaderless((3, 2, 4), elr=(4,), last_known=(4,)), ONE_DOWN, (*DIVERGED, silent(4))).advice
    assert (advice.action, advice.replica, advice.rescue) == (
        AdviceAction.BRING_BACK,
        4,
        # What the others may truncate is saved from them; where broker 4's log ends, nobody knows.
        ("rescue", "dump", "orders:0", "--elect", "4", "--out", "orders-0-lost-to-4.kelr-rescue"),
    )
    assert advice.text.startswith(
        "First save what the others hold above their high watermarks, or differently from each other: the log of broker"
        " 4 was not read, so its return may truncate that, or more after a crash (exit code 7). Start broker 4"
    )
    assert advice.command == ("recover", "collect", "--log-dir", "DIRECTORY", "--out", "broker-4.kelr")


BOTH_CUT = (
    log_of(4, (0, 193), hw=12),
    disk(2, (0, 129), (1, 354), hw=141),
    disk(3, (0, 129), (1, 354), (2, 403), hw=282),
)
"""drill-s1-r3, partition 3, in small."""


def both_cut(last_known: int) -> Decision:
    state = leaderless((4, 2, 3), elr=(2, 3), last_known=(last_known,))
    return decision(state, cluster_of(live=(4,), fenced=(2, 3)), BOTH_CUT)


def test_what_a_return_truncates_beside_another_is_saved_before_the_start() -> None:
    """Each return alone elects nobody; with both back, in either order, the ELR is empty and Kafka elects 3."""
    found = both_cut(3)
    two, three = found.forecasts
    assert [(one.elected, one.loss, one.leads) for one in (two, three)] == [(None, None, 2), (None, None, 3)]
    assert found.summary == (
        "orders:0 has no leader (leader epoch 5); its ELR is [2, 3], and no single return elects a member of it."
    )
    assert three.costs is not None
    assert three.costs.total == Bounds(64, 64)
    assert three.costs.truncations == (Truncation(4, 129, 64),)
    assert two.costs is not None
    assert two.costs.truncations == (Truncation(4, 129, 64), Truncation(3, 354, 49))
    advice = found.advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 3)
    assert advice.text == (
        "First save what the others"
        " truncate once broker 3 leads: 64 offsets of broker 4, from 129 on."
        " Start broker 3: its log (read from its disk) is the most complete of all replicas; while broker 2 is down,"
        " its return elects no leader, so then designate 3, which loses 64 offsets. With broker 2 back, too, Kafka"
        " elects 3 at once." + and_unclean(2, 3)
    )
    # Broker 3 is still down then: what was read of its disk tells where its log ends.
    dump = ("rescue", "dump", "orders:0", "--elect", "3", "--logs", "FILE", "--out", "orders-0-lost-to-3.kelr-rescue")
    assert advice.rescue == dump
    assert advice.command == ("describe", "orders:0", "--watch")


def test_whom_kafka_would_elect_instead_is_kept_down_until_the_designation() -> None:
    advice = both_cut(2).advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 3)
    assert advice.text.endswith(
        "while broker 2 is down, its return elects no leader, so then designate 3, which loses 64 offsets. Keep"
        " broker 2 down until 3 leads: with it back, too, Kafka elects 2 at once." + and_unclean(2, 3)
    )


def test_a_return_that_elects_nobody_in_any_company_leaves_the_saving_to_the_designation() -> None:
    state = leaderless((4, 3), elr=(3,))
    advice = decision(state, cluster_of(live=(4,), fenced=(3,)), (BOTH_CUT[0], BOTH_CUT[2])).advice
    assert (advice.action, advice.replica) == (AdviceAction.BRING_BACK, 3)
    assert advice.text.endswith(
        "; its return elects no leader, so then designate 3, which loses 64 offsets. Before you designate it, save"
        " what the others then truncate: 64 offsets of broker 4, from 129 on." + and_unclean(3)
    )
    # Both are live by then: nothing is read from a disk.
    assert advice.rescue == ("rescue", "dump", "orders:0", "--elect", "3", "--out", "orders-0-lost-to-3.kelr-rescue")


def test_a_designation_that_truncates_is_saved_from_first() -> None:
    logs = (log_of(3, (4, 116), hw=116), log_of(1, (4, 130), hw=120), log_of(2, (3, 100), (4, 135), hw=120))
    advice = decision(leaderless((3, 1, 2)), cluster_of(live=(1, 2, 3)), logs).advice
    assert (advice.action, advice.designate, advice.rescue) == (AdviceAction.DESIGNATE, 2, ())
    forked = (log_of(3, (4, 150), hw=116), log_of(1, (4, 130), hw=120), log_of(2, (4, 120), (5, 135), hw=120))
    advice = decision(leaderless((3, 1, 2)), cluster_of(live=(1, 2, 3)), forked).advice
    assert advice.designate == 2
    assert advice.rescue == ("rescue", "dump", "orders:0", "--elect", "2", "--out", "orders-0-lost-to-2.kelr-rescue")


def test_where_the_elr_is_not_known_everybody_who_is_down_is_kept_down() -> None:
    unknown = known(replace(leaderless((4, 2), elr=None), last_known_elr=None))
    snapshot = snapshot_of(unknown, cluster_of(live=(2,), fenced=(4,)), (silent(4), log_of(2, (4, 9))))
    assert decided(snapshot, ELR_4_3).forecasts == ()
    (hold,) = election(snapshot, designated(2), ELR_4_3).hold
    assert (hold.broker, hold.reason) == (4, HoldReason.ISR_OR_ELR)
    assert hold.text == (
        "Whether the return of broker 4 elects it is not known, since ELR and LastKnownELR are not: keep it down until"
        " this is done."
    )


# Somebody leads, after an unclean election perhaps

LED = PartitionState("orders", 0, 3, 5, (1, 2, 3), (3,), (), ())
DOWN = cluster_of(live=(3,), fenced=(1, 2))
LEADER = log_of(3, (0, 100), (5, 180), hw=180)
LATER = (
    "rescue",
    "dump",
    "orders:0",
    "--elect",
    "3",
    "--log-dir",
    "DIRECTORY",
    "--out",
    "orders-0-lost-to-3.kelr-rescue",
)


def test_a_disk_that_holds_more_than_the_leader_is_saved_before_its_broker_starts() -> None:
    found = decision(LED, DOWN, (disk(1, (0, 403)), disk(2, (0, 90)), LEADER))
    advice = found.advice
    assert (advice.action, advice.replica, advice.rescue) == (AdviceAction.RESCUE, 1, LATER)
    assert advice.text.startswith(
        "Save what is on the disk of broker 1 and not in the leader's log before its broker starts: 303 offsets of"
        " broker 1, from 100 on. When it returns, it truncates to the log of the leader, 3. Start brokers 1 and 2"
    )


def test_what_a_live_follower_holds_of_before_the_leader_is_saved_before_it_follows() -> None:
    """Broker 1 does not reach the leader, which was elected without what it holds and nobody had committed."""
    live = cluster_of(live=(1, 3), fenced=(2,))
    found = decision(LED, live, (log_of(1, (0, 120)), silent(2), LEADER), min_isr=1)
    advice = found.advice
    rescue = ("rescue", "dump", "orders:0", "--elect", "3", "--out", "orders-0-lost-to-3.kelr-rescue")
    assert (advice.action, advice.replica, advice.rescue) == (AdviceAction.RESCUE, 1, rescue)
    assert advice.text == (
        "Save at once what broker 1 holds and the leader's log lacks: 20 offsets of broker 1, from 100 on. As soon as"
        " it reaches the leader, 3, it truncates to its log. Start broker 2 (fenced). min ISR (1) is met, but new"
        " acks=all records have one copy. Broker 3 is the last replica in sync: do not restart it. Once that is done,"
        " produce again what was saved (kelr rescue replay)."
    )
    assert found.summary.endswith(
        "min ISR is met; 1 and 2 are not in sync, and the log of broker 1 holds records that its log lacks."
    )
    both = decision(LED, live, (log_of(1, (0, 120)), disk(2, (0, 105)), LEADER), min_isr=1)
    assert "the disk of broker 2 and the log of broker 1 hold records" in both.summary
    assert both.advice.rescue == LATER


def test_a_follower_that_was_read_after_its_leader_holds_nothing_more() -> None:
    live = cluster_of(live=(1, 2, 3))
    logs = (log_of(1, (0, 100), (5, 190)), log_of(2, (0, 80)), LEADER)
    assert decision(LED, live, logs, min_isr=1).advice.action is AdviceAction.RESTORE_REPLICATION


def test_what_deletion_hides_may_be_on_a_disk_alone() -> None:
    """The leader's log begins behind all that the disk holds: nothing tells whether both held the same. What is below
    the high watermark that the disk has saved was committed, and has been deleted on purpose."""
    leader = log_of(3, (5, 180), start=150)
    found = decision(LED, DOWN, (replace(disk(1, (4, 100)), high_watermark=90), disk(2, (4, 90)), leader), min_isr=1)
    advice = found.advice
    assert (advice.action, advice.replica, advice.rescue) == (AdviceAction.RESCUE, 1, LATER)
    assert advice.text.startswith(
        "Whether the leader's log ever held all that is on the disk of broker 1 is not known, since deletion left no"
        " trace: save what the disk of broker 1 holds before it starts, since it may be the only copy."
    )
    assert found.summary.endswith("and the disk of broker 1 may hold records that its log lacks.")
    whole = decision(LED, DOWN, (disk(1, (4, 100)), disk(2, (4, 90)), leader), min_isr=1)
    assert whole.advice.action is AdviceAction.RESTORE_REPLICATION


def test_after_an_unclean_election_disks_that_nobody_read_are_saved_first() -> None:
    """ISR [3], ELR []: with min ISR 2 whoever left the ISR would be in the ELR."""
    advice = decision(LED, DOWN, (silent(1), silent(2), LEADER)).advice
    assert (advice.action, advice.replica, advice.rescue) == (AdviceAction.RESCUE, 1, LATER)
    assert advice.text.startswith(
        "ISR [3] and ELR [] have together fewer members than min ISR (2), as after an unclean election: save what the"
        " disks of brokers 1 and 2 hold before they start, since it may be the only copy. When they return, they"
        " truncate to the log of the leader, 3."
    )


@pytest.mark.parametrize(
    ("state", "rules", "action"),
    [
        # one that left in peace, and one that was out of sync before
        (replace(LED, elr=(2,)), ELR_4_3, AdviceAction.RESTORE_REPLICATION),
        (LED, KRAFT, AdviceAction.RESTORE_REPLICATION),  # without ELR a shrunk ISR looks the same
        (replace(LED, isr=(3, 2)), ELR_4_3, AdviceAction.NOTHING),  # the controller knows that 2 is down
    ],
)
def test_a_broker_that_is_down_is_no_sign_of_an_unclean_election(
    state: PartitionState, rules: RuleSet, action: AdviceAction
) -> None:
    contiguous = log_of(3, (4, 100), (5, 180), hw=180, start=50)
    advice = decision(state, DOWN, (silent(1), silent(2), contiguous), rules=rules).advice
    assert advice.action is action
    assert "elected" not in advice.text


AGAIN = replace(LED, isr=(3, 2))
"""Min ISR is met again, behind a leader of epoch 5."""
WITHOUT_1 = cluster_of(live=(2, 3), fenced=(1,))
GAP = (silent(1), log_of(2, (3, 100), (5, 180)), log_of(3, (3, 100), (5, 180)))
"""Epoch 4 has no record: nobody led then, or nobody wrote."""
NO_GAP = (silent(1), log_of(2, (4, 100), (5, 180), start=50), log_of(3, (4, 100), (5, 180), start=50))


def test_after_an_epoch_in_which_nobody_led_saving_comes_first_and_what_is_not_known_is_said() -> None:
    found = decision(AGAIN, WITHOUT_1, GAP)
    advice = found.advice
    assert (found.situation, found.unsaved, needs_a_look(found)) == (Situation.HEALTHY, Unsaved.NOT_KNOWN, False)
    assert (advice.action, advice.rescue) == (AdviceAction.RESCUE, LATER)
    assert advice.text == (
        "The leader's log has no record of epoch 4, so whether every election was clean is not known (a metadata"
        " log tells: --bootstrap-controller HOST:PORT). If one was not: save what the disk of broker 1 holds before"
        " it starts, since it may be the only copy. When it returns, it truncates to the log of the leader, 3. Start"
        " broker 1 only then, and produce again what was saved (kelr rescue replay)."
    )
    assert found.summary.endswith("1 is not in sync, and whether it was elected cleanly is not known.")


@pytest.mark.parametrize(
    ("leader", "lacks"),
    [
        (log_of(3, (2, 100), (3, 180), start=50), "epoch 4"),  # nothing was written since
        (log_of(3, (1, 100), (3, 120), (4, 150), (5, 180), start=50), "epoch 2"),  # another election came after it
        (log_of(3, (5, 180)), "epochs 1-4"),  # the elected replica had nothing
        (log_of(3), "epochs 1-4"),  # and nothing was written since
    ],
)
def test_wherever_an_epoch_has_no_record_an_election_that_is_on_record_nowhere_may_have_been_unclean(
    leader: ReplicaLog, lacks: str
) -> None:
    found = decision(AGAIN, WITHOUT_1, (silent(1), replace(leader, replica=2), leader))
    assert (found.unsaved, found.advice.action) == (Unsaved.NOT_KNOWN, AdviceAction.RESCUE)
    assert found.advice.text.startswith(
        f"The leader's log has no record of {lacks}, so whether every election was clean"
    )


def test_a_topic_that_allows_unclean_elections_has_them_without_an_epoch_between() -> None:
    snapshot = snapshot_of(AGAIN, WITHOUT_1, NO_GAP)
    allows = replace(
        snapshot,
        configs={AT.topic: replace(snapshot.configs[AT.topic], unclean_leader_election=True)},
    )
    assert decided(snapshot, ELR_4_3).unsaved is None
    found = decided(allows, ELR_4_3)
    assert (found.unsaved, found.advice.action) == (Unsaved.NOT_KNOWN, AdviceAction.RESCUE)
    assert found.advice.text.startswith("The topic allows unclean elections, so whether every election was clean")


@pytest.mark.parametrize("logs", [(), tuple(replace(one, lineage=None) for one in NO_GAP[1:])])
def test_where_the_leaders_epochs_were_not_read_nothing_is_known_to_be_well(logs: tuple[LogAnswer, ...]) -> None:
    found = decision(AGAIN, WITHOUT_1, logs)
    assert (found.unsaved, found.advice.action) == (Unsaved.NOT_KNOWN, AdviceAction.RESCUE)
    assert found.advice.text.startswith("The epochs of the leader's log were not read, so whether every election")


UNCLEAN = RecordedElection(3, 5, 1_795_382_721_221, clean=False, unread=(1, 2))


def with_record(election: RecordedElection, logs: tuple[LogAnswer, ...] = NO_GAP) -> Decision:
    snapshot = snapshot_of(AGAIN, WITHOUT_1, logs)
    return decided(replace(snapshot, elections={AGAIN.address: election}), ELR_4_3)


@pytest.mark.parametrize("logs", [NO_GAP, GAP])
def test_kelrs_own_audit_log_tells_of_an_unclean_election(logs: tuple[LogAnswer, ...]) -> None:
    found = with_record(UNCLEAN, logs)
    assert (found.situation, found.unsaved, needs_a_look(found)) == (Situation.HEALTHY, Unsaved.LIKELY, True)
    assert (found.advice.action, found.advice.rescue) == (AdviceAction.RESCUE, LATER)
    assert found.advice.text.startswith(
        "By kelr's own record the election of 3 at 2026-11-22 21:25 UTC (leader epoch 5) may have given up records"
        " that broker 1 holds, and whether it was in sync since is not on record: save what the disk of"
        " broker 1 holds before it starts, since it may be the only copy."
    )
    assert "Nothing urgent" not in found.advice.text
    assert found.summary.endswith("and the disk of broker 1 may hold records that its log lacks.")


@pytest.mark.parametrize(
    "election",
    [
        replace(UNCLEAN, clean=True, unread=()),
        replace(UNCLEAN, unread=(2,)),  # broker 1 answered then, or was in sync since
        replace(UNCLEAN, leader_epoch=6),  # of a topic that is gone
    ],
)
def test_an_election_on_record_that_left_nobody_behind_is_no_alarm(election: RecordedElection) -> None:
    found = with_record(election)
    assert (found.advice.action, found.unsaved) == (AdviceAction.NOTHING, None)
    # acks=1 records of a former leader may be there all the same.
    unread = "The log of broker 1 was not read: on return it truncates what the leader's log lacks, such as acks=1"
    assert unread in found.advice.text
    if election.leader_epoch == AGAIN.leader_epoch:
        assert with_record(election, GAP).unsaved is None


def test_a_metadata_log_that_followed_the_election_ends_the_doubt() -> None:
    snapshot = replace(snapshot_of(AGAIN, WITHOUT_1, GAP), elections={AGAIN.address: UNCLEAN})
    followed = replace(quorum_with(()), doubt=None, followed_since=0)
    for quorum, unsaved in (
        (followed, None),
        (replace(followed, followed_since=5), Unsaved.LIKELY),  # it begins with a checkpoint of after it
        (replace(followed, leader_epoch=4), Unsaved.LIKELY),  # it ends before
        (replace(followed, doubt="a gap"), Unsaved.LIKELY),
    ):
        assert decided(replace(snapshot, quorums={AGAIN.address: quorum}), ELR_4_3).unsaved is unsaved
        without = replace(snapshot, quorums={AGAIN.address: quorum}, elections={})
        assert decided(without, ELR_4_3).unsaved is (None if unsaved is None else Unsaved.NOT_KNOWN)
        # What is decided once for many partitions is the same.
        (verdict,) = verdicts(without, ELR_4_3)
        assert verdict.advice is decided(without, ELR_4_3).advice.action


def quorum_with(left_behind: tuple[int, ...]) -> RecoveryQuorum:
    return RecoveryQuorum((3,), (), (), 2, 0, 0, 5, 0, 0, 0, "an unclean election gave up", left_behind=left_behind)


def under(state: PartitionState, quorum: RecoveryQuorum | None = None) -> Decision:
    snapshot = snapshot_of(state, DOWN, (silent(1), silent(2), LEADER))
    return decided(snapshot if quorum is None else replace(snapshot, quorums={state.address: quorum}), ELR_4_3)


def test_the_metadata_log_tells_of_an_unclean_election() -> None:
    state = replace(LED, isr=(3, 2), elr=())
    said: Advice = under(replace(state, recovering=True)).advice
    assert said.action is AdviceAction.RESCUE
    assert said.text.startswith(
        "The leader was elected uncleanly (the controller records it as RECOVERING): save what the disk of broker 1"
        " holds before it starts, since it may be the only copy."
    )
    by_log = under(state, quorum_with((1,))).advice
    assert by_log.text.startswith("By the metadata log an unclean election has given records up: save what the disk")
    nobody = replace(quorum_with(()), doubt=None, followed_since=0)
    assert under(state, nobody).advice.action is not AdviceAction.RESCUE


def test_a_clean_return_of_a_disk_that_is_not_believed_is_told_with_what_contradicts_it() -> None:
    found = decision(
        leaderless((2, 3, 4), elr=(4,), last_known=(2,)),
        ONE_DOWN,
        (
            log_of(2, (0, 342), hw=225),
            log_of(3, (0, 150), hw=126),
            LogUnavailable(4, LogUnavailableReason.DOUBTFUL, "why"),
        ),
    )
    clean = next(one for one in found.forecasts if one.clean)
    assert (clean.replica, clean.elected) == (4, 4)
    assert clean.warning == (
        "although what was read of its disk contradicts its place in the ELR; 2 holds up to offset 342 (HW 225) and"
        " would truncate to it"
    )


# What a rescue file holds need not be saved again


def saved_log(
    replica: int, *ends: tuple[int, int], parts: Parts, leader: int | None = None, epoch: int | None = None
) -> SavedLog:
    """A rescue file with these parts of a log that ended so; saved in that state of the partition."""
    log = log_of(replica, *ends)
    return SavedLog(f"{replica}.kelr-rescue", AT, TOPIC_ID, log, frozenset(parts), None, leader, epoch)


def with_files(snapshot: Snapshot, *files: SavedLog) -> Decision:
    return decided(replace(snapshot, saved={AT: files}), ELR_4_3)


TRUNCATES_3 = snapshot_of(
    known(leaderless((3, 2, 4), elr=(4,), last_known=(4,))),
    ONE_DOWN,
    (*DIVERGED, disk(4, (0, 160), (1, 205), (2, 265), hw=160)),
    min_isr=2,
)


@pytest.mark.parametrize("replica", [3, 7])
def test_what_a_return_truncates_and_a_file_holds_is_not_saved_again(replica: int) -> None:
    """A record is the same one wherever it was read."""
    advice = with_files(TRUNCATES_3, saved_log(replica, (0, 385), parts=frozenset({(0, 150, 385)}))).advice
    assert advice.rescue == ()
    assert "First save" not in advice.text
    saved = f" Saved already, as {replica}.kelr-rescue says: 225 offsets of broker 3, from 160 on."
    assert advice.text.endswith(saved + and_unclean(4))


@pytest.mark.parametrize(
    "parts",
    [
        frozenset({(0, 160, 384)}),
        frozenset({(0, 161, 385)}),
        frozenset({(1, 160, 385)}),  # of another epoch: other records
        frozenset({(0, 160, 200), (0, 201, 385)}),
    ],
)
def test_a_file_that_lacks_one_of_them_changes_nothing(parts: Parts) -> None:
    assert with_files(TRUNCATES_3, saved_log(3, (0, 385), parts=parts)).advice == decided(TRUNCATES_3, ELR_4_3).advice
    whole = saved_log(3, (0, 385), parts=frozenset({(0, 160, 385)}))
    assert with_files(TRUNCATES_3, replace(whole, topic_id="of another topic")).advice.rescue != ()
    assert with_files(TRUNCATES_3, replace(whole, parts=parts, covered=whole.parts)).advice.rescue == ()


def test_two_files_hold_it_together() -> None:
    halves = [saved_log(one, (0, 385), parts=frozenset({(0, *at)})) for one, at in ((3, (160, 300)), (4, (300, 385)))]
    advice = with_files(TRUNCATES_3, *halves).advice
    assert (advice.rescue, "as 3.kelr-rescue and 4.kelr-rescue say: 225 offsets" in advice.text) == ((), True)


def test_what_an_unread_return_may_truncate_and_a_file_holds_is_not_saved_again() -> None:
    unread = replace(TRUNCATES_3, logs={AT: (*DIVERGED, silent(4))})
    everything = saved_log(3, (0, 385), parts=frozenset({(0, 109, 385), (1, 160, 205)}))
    advice = with_files(unread, everything).advice
    assert advice.rescue == ()
    assert (
        "Saved already, as 3.kelr-rescue says: what the others hold above their high watermarks, or differently"
        in advice.text
    )
    assert advice.text.endswith(" If its machine crashed, its return may truncate more.")
    part = replace(everything, parts=frozenset({(0, 110, 385), (1, 160, 205)}))
    assert with_files(unread, part).advice == decided(unread, ELR_4_3).advice


LED_AGAIN = replace(snapshot_of(known(AGAIN), WITHOUT_1, NO_GAP), elections={AT: UNCLEAN})
OF_1 = saved_log(1, (4, 130), parts=frozenset({(4, 100, 130)}), epoch=4)
"""Broker 1 had 30 more than the leader has of epoch 4; saved while nobody led."""


@pytest.mark.parametrize("file", [OF_1, replace(OF_1, leader=3, leader_epoch=5)])
def test_a_disk_that_was_saved_in_whole_is_not_saved_again(file: SavedLog) -> None:
    found = with_files(LED_AGAIN, file)
    assert (found.advice.action, found.advice.rescue, found.unsaved) == (AdviceAction.NOTHING, (), None)
    assert found.advice.text == (
        "Nothing urgent: it has a leader and min ISR is met. Broker 1 is not in sync. Saved already, as 1.kelr-rescue"
        " says: what broker 1 held and the leader's log lacked. To produce it again: kelr rescue replay 1.kelr-rescue."
    )


def test_of_a_file_that_was_replayed_nothing_is_left_to_say() -> None:
    found = with_files(LED_AGAIN, replace(OF_1, replayed=True))
    assert found.advice.text == "Nothing urgent: it has a leader and min ISR is met. Broker 1 is not in sync."


@pytest.mark.parametrize(
    "file",
    [
        replace(OF_1, leader_epoch=None),
        replace(OF_1, leader_epoch=3),  # it may have led since
        replace(OF_1, leader=3, leader_epoch=4),
        replace(OF_1, leader=2, leader_epoch=5),
        replace(OF_1, parts=frozenset({(4, 101, 130)})),
        replace(OF_1, log=replace(OF_1.log, replica=2)),
    ],
)
def test_a_disk_that_may_hold_more_than_the_file_is_saved(file: SavedLog) -> None:
    assert with_files(LED_AGAIN, file).advice == decided(LED_AGAIN, ELR_4_3).advice


def test_of_two_disks_the_one_that_was_not_saved_is() -> None:
    two = replace(known(AGAIN), replicas=(3, 1, 4, 2))
    snapshot = snapshot_of(two, cluster_of(live=(2, 3), fenced=(1, 4)), (*NO_GAP, silent(4)))
    advice = with_files(replace(snapshot, elections={AT: replace(UNCLEAN, unread=(1, 4))}), OF_1).advice
    assert advice.action is AdviceAction.RESCUE
    assert advice.text.startswith(
        "Saved already, as 1.kelr-rescue says: what broker 1 held and the leader's log lacked. By kelr's own record"
    )
    assert "save what the disk of broker 4 holds before it starts" in advice.text


def test_what_an_election_on_record_gave_up_is_said_to_be_saved_also_after_another_election() -> None:
    logs = [log_of(one, (4, 100), (5, 180), start=50, leader_epoch=6) for one in (2, 3)]
    later = snapshot_of(replace(known(AGAIN), leader_epoch=6), WITHOUT_1, (silent(1), *logs))
    election = replace(UNCLEAN, unread=(), saved=((1, "1.kelr-rescue"),))
    advice = decided(replace(later, elections={AT: election}), ELR_4_3).advice
    assert (advice.action, advice.rescue) == (AdviceAction.NOTHING, ())
    assert "Saved already, as 1.kelr-rescue says: what broker 1 held and the leader's log lacked." in advice.text


CUT_OFF = ((0, 20, 25), (2, 25, 60))


def with_cut_off(*files: SavedLog) -> Decision:
    """Broker 1, the last one in ELR, is down; its disk has a damaged batch at offset 15, and whole segments from 20."""
    held = replace(disk(1, (0, 15), hw=15), saved_high_watermark=60, saved_epoch=2, cut_off=CUT_OFF)
    state = known(leaderless(elr=(1,), last_known=(1,)))
    logs = (held, log_of(2, (0, 10), hw=5), log_of(3, (0, 10), hw=5))
    return with_files(snapshot_of(state, cluster_of(live=(2, 3), fenced=(1,)), logs), *files)


def test_what_kafka_deletes_from_a_disk_at_its_start_is_saved_before() -> None:
    advice = with_cut_off().advice
    assert "First save what the disk of broker 1 holds beyond a damaged batch, offsets 20..59" in advice.text
    assert advice.text.index("First save") < advice.text.index("Start broker 1")
    assert advice.rescue[:2] == ("rescue", "dump")
    assert "--log-dir" in advice.rescue
    assert any("still holds offsets 20..59, beyond a damaged batch" in note for note in with_cut_off().notes)
    # Not "on no log that was read": its disk was.
    assert gone_in_words(((20, 59),)).startswith("offsets 20..59 were committed and are on no usable log: ")
    kept = "on no usable log of those that were read"
    assert gone_in_words(((20, 59),), (3,)) == f"offsets 20..59 were committed and are {kept}"


def test_what_kafka_deletes_from_a_disk_and_a_file_holds_is_not_saved_again() -> None:
    file = saved_log(1, (0, 15), parts=frozenset(CUT_OFF))
    assert "beyond a damaged batch" not in with_cut_off(file).advice.text
    assert "beyond a damaged batch" in with_cut_off(replace(file, parts=frozenset(CUT_OFF[1:]))).advice.text


def test_a_step_saves_what_kafka_deletes_unless_the_leader_holds_it() -> None:
    cut = replace(disk(1, (0, 15)), cut_off=CUT_OFF)
    for leader, steps in (
        (log_of(2, (0, 10)), ((10, 60),)),
        (log_of(2, (0, 25), (2, 60)), ()),
        (log_of(2, (0, 25), (2, 50)), ((15, 60),)),
    ):
        logs = KnownLogs({1: cut, 2: leader})
        assert tuple((one.from_offset, one.to_offset) for one in rescue_from(logs, (1, 2), 2)) == steps
    own = rescue_from(KnownLogs({1: cut}), (1,), 1)
    assert [(one.replica, one.from_offset, one.to_offset, one.reachable) for one in own] == [(1, 15, 60, False)]
