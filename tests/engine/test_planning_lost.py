"""What a planned election lost, as far as it is known afterwards: UNKNOWN is never 0, and a lower bound is never more
than what is gone for sure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine.planning.lost import Lost, lost_by, lost_in_all, recorded_loss
from kelr.engine.planning.seen import Seen
from kelr.model import (
    Bounds,
    Check,
    LogUnavailable,
    LogUnavailableReason,
    Loss,
    LossCertainty,
    Method,
    Passed,
    TopicPartition,
)
from tests.recovery.aftermath import LINEAGE, PLANNED, WELL, log, result, seen

UNREAD = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(0), Bounds(0), Bounds(0), (1,)))
"""Broker 1 did not answer: a plan that an older kelr wrote."""
BACK = seen(live=frozenset({1, 2, 3}), state={"isr": (3, 2, 1)}, logs=(log(1, *LINEAGE), *WELL.logs))


def test_a_log_that_nobody_had_read_stays_unknown_when_its_broker_is_back() -> None:
    found = lost_by(UNREAD, BACK)
    assert found is not None
    assert (found.of_committed, found.of_all) == (Bounds(0), Bounds(0))
    assert (found.unread, found.truncated) == ((1,), (1,))
    assert not lost_in_all([found]).nothing
    passed, text = result(BACK, Check.TRUNCATED, planned=UNREAD)
    assert (passed, "what it truncated is UNKNOWN" in text) == (Passed.YES, True)


@pytest.mark.parametrize(
    ("answer", "passed", "words"),
    [
        (log(1, (2, 110), (3, 150)), Passed.NOT_YET, "its log diverges from the leader's at 135, and ends at 150"),
        (log(1, (2, 110), (4, 130), lineage=None), Passed.UNKNOWN, "cannot be compared"),
        (LogUnavailable(1, LogUnavailableReason.TIMED_OUT), Passed.NOT_YET, "1's log was not read"),
        (LogUnavailable(1, LogUnavailableReason.NOT_AUTHORIZED), Passed.UNKNOWN, "1's log was not read"),
    ],
)
def test_a_broker_that_is_back_and_may_hold_more_is_not_passed_over(answer: Any, passed: Passed, words: str) -> None:
    back = replace(BACK, logs=(answer, *WELL.logs))
    came_out, text = result(back, Check.TRUNCATED, planned=UNREAD)
    assert (came_out, words in text) == (passed, True), text
    found = lost_by(UNREAD, back)
    assert found is not None
    assert found.truncated == ()


def test_without_the_leaders_log_nobody_can_tell_who_truncated() -> None:
    back = replace(BACK, logs=(log(1, *LINEAGE), LogUnavailable(3, LogUnavailableReason.TIMED_OUT)))
    found = lost_by(UNREAD, back)
    assert found is not None
    assert (found.of_all, found.truncated) == (Bounds(0), ())


def test_what_was_not_carried_out_lost_nothing_and_what_cannot_be_seen_is_unknown() -> None:
    assert lost_by(PLANNED, seen(state={"leader": None, "leader_epoch": 4})) is None
    for gone in (
        Seen(None, error="X"),
        seen(state={"topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}),
        seen(state={"leader": None, "leader_epoch": 6}),
        seen(state={"leader": 3}, logs=(LogUnavailable(3, LogUnavailableReason.TIMED_OUT),)),
    ):
        found = lost_by(PLANNED, gone)
        assert found is not None
        assert (found.grade, found.of_committed, found.of_all) == (LossCertainty.UNKNOWN, Bounds(0), Bounds(0))


def test_what_the_leader_lacks_of_what_was_to_be_kept_is_lost() -> None:
    short = seen(logs=(log(3, (2, 110), (3, 115), (5, 140)), log(2, (2, 110), (3, 115), (5, 140))))
    found = lost_by(PLANNED, short)
    assert found is not None
    # The plan's log ended at 135, its high watermark was 120.
    assert (found.of_all, found.of_committed) == (Bounds(20), Bounds(5))


def test_another_leader_that_holds_as_much_lost_no_more_than_the_planned_one_would_have() -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(4, 19), None, Bounds(19, 19)))
    moved = seen(state={"leader": 3})
    found = lost_by(planned, moved)
    assert found is not None
    assert (found.leader, found.of_all, found.of_committed) == (3, Bounds(0, 19), Bounds(0, 19))
    assert found.unsure
    # The audit log knows that the planned one led first.
    recorded = {"grade": "bounded", "committed": [4, 19], "total": [19, 19], "unheard": []}
    found = lost_by(planned, moved, recorded)
    assert found is not None
    assert (found.leader, found.of_all, found.of_committed) == (2, Bounds(19, 19), Bounds(4, 19))


def test_who_leads_by_a_later_election_is_no_sign_of_the_planned_one() -> None:
    """1 returned, was elected with all it held, and 2, which followed it, leads after it: nothing was lost."""
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(4, 19), None, Bounds(19, 19)))
    logs = tuple(log(one, (2, 110), (3, 154), (6, 160), current_leader_epoch=6) for one in (2, 3))
    found = lost_by(planned, seen(state={"leader_epoch": 6}, logs=logs))
    assert found is not None
    assert (found.unsure, found.of_all, found.of_committed) == (True, Bounds(0, 19), Bounds(0, 19))
    assert lost_in_all([found]).unsure == 1
    # The first election since the plan takes the next epoch: that was the planned one, or came to the same.
    found = lost_by(planned, WELL)
    assert found is not None
    assert (found.unsure, found.of_all) == (False, Bounds(19, 19))
    assert lost_by(planned, seen(state={"leader_epoch": 4})) is None
    # A leader that went takes one epoch, and is no election.
    led = replace(planned, evidence=replace(planned.evidence, leader=1))
    assert lost_by(led, seen(state={"leader": None, "leader_epoch": 5})) is None
    recorded = {"grade": "bounded", "committed": [4, 19], "total": [19, 19], "unheard": []}
    found = lost_by(planned, seen(state={"leader_epoch": 6}, logs=logs), recorded)
    assert found is not None
    assert (found.unsure, found.of_all) == (False, Bounds(19, 19))


HEARD = replace(
    UNREAD,
    evidence=replace(
        PLANNED.evidence, logs=tuple(replace(one, source="ListOffsets+Fetch") for one in PLANNED.evidence.logs)
    ),
)
"""Of 2 and 3 their brokers told what they hold; of 1 nobody knows."""
BY_ITSELF = ((2, 116), (3, 140), (5, 150))


def first(leader: int, *lineage: tuple[int, int], **state: Any) -> Seen:
    """`leader` leads in the first leader epoch since the plan, and all follow it."""
    logs = tuple(log(one, *lineage) for one in (1, 2, 3))
    return seen(live=frozenset({1, 2, 3}), state={"leader": leader, "isr": (1, 2, 3), **state}, logs=logs)


def test_a_replica_that_led_first_with_all_that_the_others_held_cost_the_plan_nothing() -> None:
    """1 was away when the plan was made; it returned, and was elected before the plan was carried out."""
    assert lost_by(HEARD, first(1, *BY_ITSELF)) is None
    # An election on record may have elected it.
    asked = lost_by(HEARD, first(1, *BY_ITSELF), perhaps_another=True)
    assert asked is not None
    assert (asked.unsure, asked.unread, asked.truncated, asked.led_first) == (True, (), (), 1)


@pytest.mark.parametrize(
    ("planned", "found"),
    [
        # 3's log had ended at 116 in epoch 2, 2's at 135 in epoch 3.
        (HEARD, first(1, (2, 110), (3, 140), (5, 150))),
        (HEARD, first(1, (2, 116), (3, 120), (5, 150))),
        # What 1 held nobody knows, and 3 leads.
        (HEARD, first(3, *BY_ITSELF)),
        # Another replica may have led before, and 1 have followed it.
        (HEARD, first(1, *BY_ITSELF, leader_epoch=6)),
        # A log that was read on a disk, or of which it is not known how it was read, may have been longer.
        (UNREAD, first(1, *BY_ITSELF)),
    ],
)
def test_an_election_from_elsewhere_may_have_elected_another_replica(planned: Any, found: Seen) -> None:
    lost = lost_by(planned, found)
    assert lost is not None
    assert (lost.unsure, lost.of_all.at_most) == (True, None)


def test_a_request_that_names_the_planned_replica_elects_no_other() -> None:
    named = replace(PLANNED, method=Method.NATIVE)
    assert lost_by(named, first(3, *BY_ITSELF)) is None
    # In a later leader epoch the planned one may have led before.
    later = lost_by(named, first(3, *BY_ITSELF, leader_epoch=6))
    assert later is not None
    assert later.unsure


def test_who_leads_follows_nobody() -> None:
    lost = lost_by(HEARD, first(1, *BY_ITSELF, leader_epoch=7))
    assert lost is not None
    assert (lost.unread, lost.truncated, lost.leads) == ((1,), (), 1)
    together = lost_in_all([lost])
    assert (together.leading, together.expected, together.truncated) == ((1,), (), ())


def test_the_larger_of_plan_and_audit_log_stands() -> None:
    planned = replace(PLANNED, loss=Loss(LossCertainty.BOUNDED, Bounds(4, 19), None, Bounds(19, 19)))
    recorded = {"grade": "unknown", "committed": [6, None], "total": [6, None], "unheard": [1]}
    found = lost_by(planned, WELL, recorded)
    assert found is not None
    assert (found.grade, found.of_committed, found.of_all, found.unread) == (
        LossCertainty.UNKNOWN,
        Bounds(6),
        Bounds(19),
        (1,),
    )
    assert recorded_loss(None) is None
    assert recorded_loss({"grade": "made up"}) is None


bounds = st.none() | st.builds(
    lambda least, more: Bounds(least, None if more is None else least + more),
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
)
losses = st.builds(
    lambda grade, committed, total: Lost(TopicPartition("t", 0), 1, grade, committed, total, ""),
    st.sampled_from(list(LossCertainty)),
    bounds,
    bounds,
)


@given(st.lists(losses, max_size=5))
def test_a_sum_is_bounded_only_where_every_part_is_and_never_below_a_part(found: list[Lost]) -> None:
    lost = lost_in_all(found)
    unknown = [one for one in found if one.grade is LossCertainty.UNKNOWN or one.total is None]
    assert (lost.total.at_most is None) >= bool(unknown)
    for one in found:
        assert lost.total.at_least >= one.of_all.at_least >= one.of_committed.at_least
        assert lost.committed.at_least >= one.of_committed.at_least
    if lost.nothing:
        assert all(one.total == Bounds(0, 0) for one in found)
