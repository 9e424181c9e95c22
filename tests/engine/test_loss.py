"""What electing a replica loses: whole answers, number by number, for each way in which it can be known or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kelr.controller import ELR_4_3, KRAFT, RuleSet
from kelr.engine import Case, case_of
from kelr.engine.loss import loss_of_electing
from kelr.engine.loss_words import certainty_in_words, cost_in_words, loss_in_words, lost_in_words
from kelr.engine.planning.consent import consent_of
from kelr.engine.planning.hold import loses_less
from kelr.model import (
    LOG_DIRECTORY,
    Bounds,
    ClearedElr,
    Consent,
    ElectedBy,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    PartitionState,
    ReplicaLog,
    Truncation,
)
from tests.engine.cases import case, cluster_of, leaderless, log_of, silent, snapshot_of

LIVE = cluster_of(live=(1, 2, 3))
BLIND = ReplicaLog(1, 40, current_leader_epoch=5, high_watermark=40, log_start=0, last_epoch_error="no")


def of(
    *logs: LogAnswer,
    state: PartitionState | None = None,
    rules: RuleSet = ELR_4_3,
    min_isr: int | None = 2,
) -> Case:
    return case(state or leaderless(), LIVE, logs, rules=rules, min_isr=min_isr)


def test_a_shorter_log_loses_what_the_best_has_beyond_it() -> None:
    known = of(log_of(1, (0, 30), hw=10), log_of(2, (0, 50), hw=35), log_of(3, (0, 50), hw=20))
    assert loss_of_electing(known, 1) == Loss(
        LossCertainty.BOUNDED,
        committed=Bounds(5, 20),
        uncommitted=Bounds(0, 15),
        total=Bounds(20, 20),
        behind_best=20,
        best=2,
        agrees_to=30,
        committed_ranges=((30, 34),),
        lost_ranges=((30, 49),),
        truncations=(Truncation(2, 30, 20), Truncation(3, 30, 20)),
        reason="counted between the logs of all replicas",
    )


def test_the_best_log_loses_nothing_if_fewer_than_min_isr_lost_data() -> None:
    known = of(log_of(1, (0, 30), hw=10), log_of(2, (0, 50), hw=35), log_of(3, (0, 50), hw=20))
    assert loss_of_electing(known, 2) == Loss(
        LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR,
        committed=Bounds(0, 0),
        uncommitted=Bounds(0, 0),
        total=Bounds(0, 0),
        behind_best=0,
        best=2,
        agrees_to=50,
        min_isr=2,
        reason="all logs of the recovery quorum (brokers 1, 2 and 3) were read and 2 has the most complete one:"
        " nothing committed with min ISR 2 is lost if fewer than 2 replicas lost data",
    )


def test_the_best_log_is_no_guarantee_where_another_holds_committed_offsets_that_it_lacks() -> None:
    """Brokers 1 and 2 went on after an unclean election; 3 still holds what that election gave up."""
    grown, old = ((0, 50), (4, 80)), ((0, 50), (2, 100))
    loss = loss_of_electing(of(log_of(1, *grown), log_of(2, *grown), log_of(3, *old)), 1)
    assert (loss.grade, loss.committed, loss.committed_ranges) == (LossCertainty.BOUNDED, Bounds(50, 50), ((50, 99),))
    assert "covers 50 committed offsets that it lacks" in loss.reason


@pytest.mark.parametrize(("min_isr", "fewer"), [(1, "no replica"), (3, "fewer than 3 replicas")])
def test_how_many_may_lose_data_goes_by_min_isr(min_isr: int, fewer: str) -> None:
    logs = [log_of(replica, (0, 50)) for replica in (1, 2, 3)]
    assert loss_of_electing(of(*logs, min_isr=min_isr), 1).reason.endswith(f"lost if {fewer} lost data")


def test_an_unknown_min_isr_is_called_by_its_name() -> None:
    logs = [log_of(replica, (0, 50)) for replica in (1, 2, 3)]
    assert loss_of_electing(of(*logs, min_isr=None), 1).reason.endswith("lost if fewer than min ISR replicas lost data")


EQUAL = tuple(log_of(replica, (0, 20)) for replica in (1, 2, 3))


def _cleared(cleared: ClearedElr | None, state: PartitionState | None = None, **more: Any) -> Loss:
    """The loss of electing 1 of logs that are alike, where the audit log tells this, or nothing."""
    state = state or leaderless()
    snapshot = snapshot_of(state, LIVE, EQUAL, **more)
    known = replace(snapshot, cleared={} if cleared is None else {state.address: cleared})
    return loss_of_electing(case_of(known, state, ELR_4_3), 1)


def test_after_a_write_of_min_isr_the_best_log_promises_nothing() -> None:
    """30 records were committed with min ISR 1, on a log that lost them; then somebody wrote 2."""
    loss = _cleared(None)
    assert (loss.grade, loss.committed, loss.total) == (LossCertainty.UNKNOWN, Bounds(0), Bounds(0))
    assert loss.reason == (
        "ISR, ELR and LastKnownELR are empty, as after a write of min.insync.replicas: what was committed with a"
        " smaller value may be on no log"
    )
    assert certainty_in_words(loss) == f"UNKNOWN: {loss.reason}"
    assert consent_of(loss, ElectedBy.DESIGNATION) is Consent.LOSS


@pytest.mark.parametrize(
    ("cleared", "kept"),
    [
        (ClearedElr(leader_epoch=5, min_isr=2), True),
        (ClearedElr(leader_epoch=4, min_isr=2), False),  # somebody led since
        (ClearedElr(leader_epoch=5, min_isr=1), False),  # raised since
    ],
)
def test_what_kelr_cleared_itself_leaves_the_promise(cleared: ClearedElr, kept: bool) -> None:
    grade = LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR if kept else LossCertainty.UNKNOWN
    assert _cleared(cleared).grade is grade


@pytest.mark.parametrize(
    ("state", "more", "number"),
    [
        (leaderless(), {"min_isr": 1}, 1),  # it was not less
        (leaderless((1,)), {}, 1),
        (leaderless(last_known=(3,)), {}, 2),
        (replace(leaderless(last_known=(3,)), adding=(2, 3)), {}, 1),
    ],
)
def test_the_promise_is_of_min_isr_and_of_no_more_than_the_replicas_there_were(
    state: PartitionState, more: dict[str, Any], number: int
) -> None:
    loss = _cleared(None, state, **more)
    assert (loss.grade, loss.min_isr) == (LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, number)


def test_a_silent_replica_leaves_the_loss_open_above() -> None:
    known = of(log_of(1, (0, 30), hw=10), log_of(2, (0, 50), hw=35), silent(3))
    assert loss_of_electing(known, 1) == Loss(
        LossCertainty.UNKNOWN,
        committed=Bounds(5, None),
        uncommitted=Bounds(0, None),
        total=Bounds(20, None),
        unheard=(3,),
        behind_best=20,
        best=2,
        agrees_to=30,
        committed_ranges=((30, 34),),
        lost_ranges=((30, 49),),
        truncations=(Truncation(2, 30, 20),),
        reason="the log of broker 3 was not read and may hold more",
    )


MEMBER = leaderless(elr=(1, 2))


def test_a_member_loses_only_what_was_never_committed() -> None:
    known = of(log_of(1, (0, 30), hw=10), log_of(2, (0, 50), hw=30), silent(3), state=MEMBER)
    assert loss_of_electing(known, 1) == Loss(
        LossCertainty.PROVEN_NONE,
        committed=Bounds(0, 0),
        uncommitted=Bounds(20, None),
        total=Bounds(20, None),
        unheard=(3,),
        behind_best=20,
        best=2,
        agrees_to=30,
        lost_ranges=((30, 49),),
        truncations=(Truncation(2, 30, 20),),
        reason="1 is in the ISR or ELR, so it holds all that was committed",
    )


def test_a_member_that_lacks_committed_offsets_contradicts_the_records() -> None:
    known = of(log_of(1, (0, 30)), log_of(2, (0, 50), hw=31), log_of(3, (0, 30)), state=MEMBER)
    loss = loss_of_electing(known, 1)
    assert (loss.grade, loss.committed, loss.committed_ranges) == (LossCertainty.UNKNOWN, Bounds(1, 20), ((30, 30),))
    assert loss.reason == (
        "contradictory evidence: 1 is in the ISR or ELR and should hold everything committed, yet another replica's"
        " high watermark covers 1 committed offset that it lacks"
    )
    two = of(log_of(1, (0, 30)), log_of(2, (0, 50), hw=32), log_of(3, (0, 30)), state=MEMBER)
    assert loss_of_electing(two, 1).reason.endswith("covers 2 committed offsets that it lacks")


def test_a_member_whose_log_was_not_read_is_trusted() -> None:
    known = of(silent(1), log_of(2, (0, 50)), log_of(3, (0, 40)), state=MEMBER)
    assert loss_of_electing(known, 1) == Loss(
        LossCertainty.PROVEN_NONE,
        committed=Bounds(0, 0),
        unheard=(1,),
        reason="1 is in the ISR or ELR, so it holds all that was committed; its log was not read",
    )


@pytest.mark.parametrize(
    ("answer", "why"), [(silent(1), "was not read"), (BLIND, "tells no epochs (no), so it cannot be compared")]
)
def test_of_a_log_that_is_not_known_nothing_is_counted(answer: LogAnswer, why: str) -> None:
    reason = f"the log of 1 {why}"
    known = of(answer, log_of(2, (0, 50)), log_of(3, (0, 40)))
    assert loss_of_electing(known, 1) == Loss(LossCertainty.UNKNOWN, unheard=(1,), best=2, reason=reason)
    nobody = of(answer, silent(2), silent(3))
    assert loss_of_electing(nobody, 1) == Loss(LossCertainty.UNKNOWN, unheard=(1, 2, 3), reason=reason)


def test_where_logs_part_is_not_known_nothing_is_counted() -> None:
    """Their last epochs differ, and no lineage was asked for."""
    apart = (ReplicaLog(1, 40, 3, 5, 40, 0), ReplicaLog(2, 50, 4, 5, 50, 0), silent(3))
    assert loss_of_electing(of(*apart), 1) == Loss(
        LossCertainty.UNKNOWN,
        unheard=(3,),
        best=2,
        reason="the logs end in different leader epochs, and where they part was not asked for",
    )
    assert loss_of_electing(of(*apart, state=MEMBER), 1) == Loss(
        LossCertainty.PROVEN_NONE,
        committed=Bounds(0, 0),
        unheard=(3,),
        best=2,
        reason="1 is in the ISR or ELR, so it holds all that was committed",
    )


def test_a_log_that_starts_later_loses_what_its_holders_still_have() -> None:
    """Logs of two lineages whose older part retention took: only what is there can be lost."""
    known = of(log_of(1, (0, 20)), log_of(2, (1, 40), start=30), silent(3))
    loss = loss_of_electing(known, 1)
    assert (loss.agrees_to, loss.total, loss.lost_ranges) == (20, Bounds(10, None), ((30, 39),))
    assert loss.truncations == (Truncation(2, 20, 10),)
    unknown_start = replace(log_of(2, (0, 40)), log_start=None)
    loss = loss_of_electing(of(replace(log_of(1), log_start=0), unknown_start, silent(3)), 1)
    assert (loss.lost_ranges, loss.truncations) == (((0, 39),), (Truncation(2, 0, 40),))


def test_a_log_whose_start_is_not_known_is_taken_from_its_beginning() -> None:
    one = replace(log_of(1, (0, 20)), log_start=None)
    loss = loss_of_electing(of(log_of(3), one, silent(2)), 3)
    assert (loss.total, loss.lost_ranges, loss.truncations) == (
        Bounds(20, None),
        ((0, 19),),
        (Truncation(1, 0, 20),),
    )


@pytest.mark.parametrize(
    ("state", "rules", "trusted"),
    [
        (leaderless(isr=(1,)), ELR_4_3, True),
        (leaderless(elr=(1,)), ELR_4_3, True),
        (leaderless(), ELR_4_3, False),
        (leaderless(isr=(1,)), KRAFT, False),
        (replace(leaderless(isr=(1, 2)), leader=2), KRAFT, True),
        (replace(leaderless(isr=(2,)), leader=1), ELR_4_3, True),
        (replace(leaderless(isr=(2,)), leader=2), ELR_4_3, False),
    ],
)
def test_whose_log_the_records_vouch_for(state: PartitionState, rules: RuleSet, trusted: bool) -> None:
    """With ELR off, whoever restarted uncleanly stays in the ISR of a partition that has lost its leader."""
    known = of(silent(1), silent(2), silent(3), state=state, rules=rules)
    assert (loss_of_electing(known, 1).grade is LossCertainty.PROVEN_NONE) is trusted
    assert loss_of_electing(known, 1, holds_all_committed=not trusted).grade is not loss_of_electing(known, 1).grade


def test_a_failed_log_directory_takes_the_guarantee_of_isr_and_elr_with_it() -> None:
    lost = LogUnavailable(1, LogUnavailableReason.STORAGE_ERROR, "KAFKA_STORAGE_ERROR")
    known = of(lost, log_of(2, (4, 100)), log_of(3, (4, 60)), state=MEMBER)
    reason = "the log directory of 1 has failed: its place in ISR or ELR says nothing of what it holds since"
    for guaranteed in (None, True, False):
        loss = loss_of_electing(known, 1, holds_all_committed=guaranteed)
        assert loss == Loss(LossCertainty.UNKNOWN, unheard=(1,), best=2, reason=reason)


# Unknown is never 0


STALE = leaderless((1, 2, 3), elr=(1, 2), last_known=(1,))


def test_members_of_the_elr_that_were_not_read_make_the_loss_unknown_and_never_0() -> None:
    """One stale replica is live, both members of the ELR are down: what they hold alone is not 0 offsets."""
    loss = loss_of_electing(of(silent(1), silent(2), log_of(3, (0, 20)), state=STALE), 3)
    assert (loss.grade, loss.committed, loss.total) == (LossCertainty.UNKNOWN, Bounds(0, None), Bounds(0, None))
    assert (loss.unheard, str(loss.total)) == ((1, 2), "UNKNOWN")
    assert loss.reason == "the logs of brokers 1 and 2 were not read: each may hold more"
    assert "0" not in certainty_in_words(loss) + cost_in_words(loss) + loss_in_words(loss) + lost_in_words(loss)


def test_a_member_that_is_elected_keeps_all_that_was_committed_and_the_rest_is_unknown() -> None:
    loss = loss_of_electing(of(log_of(1, (0, 30), hw=20), silent(2), log_of(3, (0, 20)), state=STALE), 1)
    assert (loss.grade, loss.committed, loss.total) == (LossCertainty.PROVEN_NONE, Bounds(0, 0), Bounds(0, None))
    assert loss_in_words(loss).startswith("Nothing that was committed; what else is UNKNOWN: ")


def test_a_replica_outside_all_sets_that_was_not_read_may_hold_more_too() -> None:
    """An unclean restart took it out of the ELR with its log whole: Kafka tells nothing of that."""
    known = of(log_of(1, (0, 30)), log_of(2, (0, 20), hw=20), silent(3), state=leaderless(last_known=(2,)))
    assert loss_of_electing(known, 1).grade is LossCertainty.UNKNOWN
    assert loss_of_electing(known, 2).total == Bounds(10, None)


def test_a_lower_bound_is_never_fewer_than_an_exact_number() -> None:
    assert sorted([Bounds(0), Bounds(7, 7), Bounds(0, 0), Bounds(3)], key=lambda one: one.rank) == [
        Bounds(0, 0),
        Bounds(7, 7),
        Bounds(0),
        Bounds(3),
    ]


# Logs that are known to have lost data


CUT = leaderless((4, 2, 3), elr=(4,), last_known=(2,))
"""As in a drill on real Kafka 4.3.1: both members of the quorum lost their tails in a machine crash."""
LINE = ((0, 39), (1, 63))


def cut(*, saved: int | None = None, epoch: int | None = 1) -> ReplicaLog:
    held = log_of(4, *LINE, hw=63, leader_epoch=None)
    return replace(held, source=LOG_DIRECTORY, saved_high_watermark=saved, saved_epoch=epoch if saved else None)


def crashed(**disk: int | None) -> Case:
    logs = (cut(**disk), log_of(2, *LINE, hw=63), log_of(3, (0, 39), (1, 101), hw=65))
    return case(CUT, cluster_of(live=(2, 3), fenced=(4,)), logs)


def test_with_min_isr_members_known_to_have_lost_data_the_quorum_promises_nothing() -> None:
    loss = loss_of_electing(crashed(), 3)
    assert (loss.grade, loss.committed, loss.total) == (LossCertainty.UNKNOWN, Bounds(0, None), Bounds(0, None))
    assert (loss.lost_data, loss.unheard, loss.gone_ranges) == ((4, 2), (), ())
    assert loss.reason == (
        "brokers 4 and 2 have lost committed data (their logs end below a known high watermark); more may be lost than"
        " any log shows"
    )


def test_fewer_members_than_min_isr_that_lost_data_leave_the_promise() -> None:
    logs = (cut(), log_of(2, (0, 39), (1, 80), hw=63), log_of(3, (0, 39), (1, 101), hw=65))
    loss = loss_of_electing(case(CUT, cluster_of(live=(2, 3), fenced=(4,)), logs), 3)
    assert (loss.grade, loss.lost_data) == (LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, (4,))


def test_what_one_disk_alone_held_and_lost_is_counted_by_no_log() -> None:
    """As on real Kafka 4.3.1: broker 1 took 10 records with acks=1 that nobody else had, and its machine crashed. No
    committed record is lost, and "nothing" would be false."""
    alone = replace(log_of(1, (0, 30), hw=30, leader_epoch=None), source=LOG_DIRECTORY, saved_high_watermark=40)
    logs = (replace(alone, saved_epoch=0), log_of(2, (0, 40), hw=40), log_of(3, (0, 20), hw=20))
    known = case(leaderless((1, 2, 3), elr=(), last_known=(1,)), cluster_of(live=(2, 3), fenced=(1,)), logs)
    loss = loss_of_electing(known, 2)
    assert (loss.grade, loss.lost_data) == (LossCertainty.NONE_IF_FEWER_THAN_MIN_ISR, (1,))
    assert (loss.committed, loss.uncommitted, loss.total) == (Bounds(0, 0), Bounds(0, None), Bounds(0, None))
    assert consent_of(loss, ElectedBy.DESIGNATION) is Consent.LOSS
    more = "broker 1 has lost data, perhaps more than any log shows"
    assert cost_in_words(loss) == f"loses an UNKNOWN number of offsets; {more}"
    condition = "if fewer than 2 replicas lost data"
    assert certainty_in_words(loss) == f"none of what was committed with min ISR 2, {condition}; {more}"
    counted = loss_of_electing(known, 3)
    assert (counted.grade, counted.committed, counted.total) == (
        LossCertainty.BOUNDED,
        Bounds(20, 20),
        Bounds(20, None),
    )
    assert certainty_in_words(counted) == f"all logs read; {more}"


def test_of_options_that_share_what_nobody_holds_any_more_the_one_that_loses_less_does() -> None:
    logs = (cut(), log_of(2, (0, 39), (1, 80), hw=63), log_of(3, (0, 39), (1, 101), hw=65))
    known = case(CUT, cluster_of(live=(2, 3), fenced=(4,)), logs)
    best, other = loss_of_electing(known, 3), loss_of_electing(known, 2)
    assert (best.total, other.total) == (Bounds(0, None), Bounds(21, None))
    assert loses_less(best, other)
    assert not loses_less(other, best)


def test_what_a_disk_knows_to_be_committed_and_no_log_holds_is_named() -> None:
    """The high watermark that the disk has saved is 163, its log ends at 63, and the best log at 101."""
    loss = loss_of_electing(crashed(saved=163), 3)
    assert (loss.grade, loss.committed, loss.total) == (LossCertainty.UNKNOWN, Bounds(62, None), Bounds(62, None))
    assert (loss.gone_ranges, loss.committed_ranges) == (((101, 162),), ((101, 162),))
    assert loss.reason.endswith(
        "offsets 101..162 were committed and are on no usable log: they are lost whichever replica is elected"
    )
    assert certainty_in_words(loss) == "UNKNOWN: brokers 4 and 2 lost committed data; offsets 101..162 on no usable log"
    shorter = loss_of_electing(crashed(saved=163), 2)
    assert (shorter.committed, shorter.committed_ranges) == (Bounds(100, None), ((63, 162),))
    assert (shorter.total, shorter.gone_ranges) == (Bounds(100, None), ((101, 162),))


def test_what_the_best_log_holds_of_a_disks_saved_high_watermark_is_not_gone() -> None:
    loss = loss_of_electing(crashed(saved=90), 3)
    assert (loss.gone_ranges, loss.committed, loss.lost_data) == ((), Bounds(0, None), (4, 2))


def test_records_of_another_epoch_are_not_those_that_a_disk_has_lost() -> None:
    """The best log has epoch 2 at these offsets, the disk knew nothing newer than 1."""
    logs = (cut(saved=90), log_of(2, *LINE, hw=63), log_of(3, *LINE, (2, 101), hw=65))
    known = case(CUT, cluster_of(live=(2, 3), fenced=(4,)), logs)
    assert loss_of_electing(known, 3).gone_ranges == ((63, 89),)
    unsure = case(CUT, cluster_of(live=(2, 3), fenced=(4,)), (cut(saved=90, epoch=None), *logs[1:]))
    assert loss_of_electing(unsure, 3).gone_ranges == ()


def test_a_member_that_lacks_what_a_disk_knows_to_be_committed_contradicts_the_records() -> None:
    state = leaderless((4, 2, 3), elr=(3,), last_known=(2,))
    logs = (cut(saved=163), log_of(2, *LINE, hw=63), log_of(3, (0, 39), (1, 101), hw=65))
    loss = loss_of_electing(case(state, cluster_of(live=(2, 3), fenced=(4,)), logs), 3)
    assert (loss.grade, loss.contradictory, loss.counted) == (LossCertainty.UNKNOWN, True, False)


# What was deleted on purpose


def test_what_another_log_shows_to_be_deleted_on_purpose_is_no_loss() -> None:
    """DeleteRecords moved the log start of 1 to 60; 2 was away, and still holds what was deleted."""
    logs = (log_of(1, (0, 80), start=60), log_of(2, (0, 70)), log_of(3, (0, 40)))
    loss = loss_of_electing(of(*logs), 3)
    assert (loss.total, loss.committed) == (Bounds(20, 20), Bounds(20, 20))
    assert (loss.lost_ranges, loss.behind_best) == (((60, 79),), 20)


@pytest.mark.parametrize("deleted", [0, 20, 40, 50, 70, 80])
@pytest.mark.parametrize("end", [30, 40, 60, 80])
def test_every_log_start_beside_every_log_end(deleted: int, end: int) -> None:
    """One line of 80 offsets: 1 has deleted up to `deleted`, 2 ends at `end`, 3 has all of it."""
    logs = (log_of(1, (0, 80), start=deleted), log_of(2, (0, end)), log_of(3, (0, 80)))
    lost = max(0, 80 - max(deleted, end))
    assert loss_of_electing(of(*logs), 2).total == Bounds(lost, lost)
    assert loss_of_electing(of(*logs), 1).total == loss_of_electing(of(*logs), 3).total == Bounds(0, 0)


def test_an_emptied_log_shows_that_all_of_it_was_deleted() -> None:
    logs = (log_of(1, start=60), log_of(2, (0, 40), hw=40), log_of(3, (0, 60), hw=40))
    assert loss_of_electing(of(*logs), 2).total == Bounds(0, 20)
    assert loss_of_electing(of(log_of(1), log_of(2, (0, 40)), log_of(3, (0, 60))), 2).total == Bounds(20, 20)


def test_another_line_below_a_log_start_is_lost() -> None:
    """1 has deleted up to 60 of its own epoch 2 from 30 on; the records of epoch 1 at the same offsets are others."""
    logs = (log_of(1, (0, 30), (2, 80), start=10), log_of(2, (0, 30), (1, 50)), log_of(3, (0, 30), (2, 80), start=60))
    assert loss_of_electing(of(*logs), 3).total == Bounds(20, 20)
    assert loss_of_electing(of(*logs), 1).total == Bounds(20, 20)


def test_where_deletion_has_taken_what_both_held_the_uncommitted_rest_may_be_another_line() -> None:
    """2 ends in epoch 1 below the start of all others: what it has above its high watermark may be another line."""
    logs = (log_of(1, (2, 80), start=60), log_of(2, (1, 50), hw=40), log_of(3, (2, 80), start=60))
    loss = loss_of_electing(of(*logs), 1)
    assert (loss.total, loss.committed) == (Bounds(0, 10), Bounds(0, 10))


def test_logs_of_which_only_the_last_epoch_is_known_do_not_count_the_same_records_twice() -> None:
    """Found by `make hindsight`: a lower bound above what was there to be lost."""
    blind = ReplicaLog(1, 19, last_epoch=1, high_watermark=19, log_start=0)
    same = of(blind, log_of(2), log_of(3, (0, 14), (1, 19), hw=19))
    assert loss_of_electing(same, 2).total == Bounds(19, 19)
    other = of(blind, log_of(2), ReplicaLog(3, 10, last_epoch=0, high_watermark=8, log_start=0))
    loss = loss_of_electing(other, 2)
    assert (loss.total, loss.committed) == (Bounds(19, 29), Bounds(19, 29))
