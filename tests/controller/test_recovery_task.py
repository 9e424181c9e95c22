"""What the Unclean Recovery Manager remembers of one partition's answers."""

from __future__ import annotations

from dataclasses import replace

from kelr.controller import Inquiry, LogInfo, RecoveryLimits, Task
from kelr.controller.recovery.task import round_begun, window_begun
from kelr.controller.rules import RecoveryStrategy
from kelr.model import TopicPartition

ORDERS = TopicPartition("orders", 0)
LOG = LogInfo(3, 40)
FRESH = Task(ORDERS, leader_epoch=5)


def test_an_answer_that_nobody_asked_for_is_kept_with_the_epoch_that_it_came_with() -> None:
    heard = FRESH.heard_from(2, 7, LOG)
    assert heard.inquiries == {2: Inquiry(7, log=LOG)}
    assert (heard.heard, heard.owing) == ({2: LOG}, ())


def test_an_answer_to_a_question_is_kept_with_that_question() -> None:
    asked = replace(FRESH, inquiries={1: Inquiry(4, request=8), 2: Inquiry(7, request=9)})
    assert asked.owing == (1, 2)
    heard = asked.heard_from(2, 7, LOG)
    assert heard.inquiries == {1: Inquiry(4, request=8), 2: Inquiry(7, request=9, log=LOG)}
    assert heard.owing == (1,)


def test_an_answer_makes_up_for_a_failure() -> None:
    failed = replace(FRESH, inquiries={2: Inquiry(7, request=9)}).asked_again(2, 1_100, failed=True)
    assert failed.inquiries[2] == Inquiry(7, request=9, retry_at_ms=1_100, failed=True)
    assert failed.heard_from(2, 7, LOG).inquiries[2] == Inquiry(7, request=9, log=LOG)


def test_nobody_is_asked_again_who_has_answered_or_waits_to_be_asked() -> None:
    heard = FRESH.heard_from(2, 7, LOG)
    assert heard.asked_again(2, 1_100) == heard
    waiting = replace(FRESH, inquiries={2: Inquiry(7, request=9)}).asked_again(2, 1_100)
    assert waiting.inquiries[2].failed is False
    assert waiting.asked_again(2, 2_200) == waiting


def test_a_round_begins_once_and_anew_when_it_takes_too_long() -> None:
    limits = RecoveryLimits(timeout_ms=1_000)
    first = round_begun(replace(FRESH, inquiries={1: Inquiry(4, request=8)}).heard_from(2, 7, LOG), 200, limits)
    assert (first.round_ms, set(first.inquiries)) == (200, {1, 2})
    assert round_begun(first, 1_199, limits) == first
    again = round_begun(first, 1_200, limits)
    assert (again.round_ms, again.inquiries) == (1_200, {2: Inquiry(7, log=LOG)})


def test_a_window_begins_with_aggressive_and_ends_with_it() -> None:
    begun = window_begun(FRESH, RecoveryStrategy.AGGRESSIVE, (2,), 60_000)
    assert begun.window_from_ms == 60_000
    asked = begun.asked(2, 7, 9)
    assert window_begun(asked, RecoveryStrategy.AGGRESSIVE, (2,), 70_000) == asked
    assert window_begun(asked, RecoveryStrategy.BALANCED, (2,), 70_000).window_from_ms is None


def test_a_window_begins_anew_when_every_live_replica_failed_to_answer() -> None:
    asked = window_begun(FRESH, RecoveryStrategy.AGGRESSIVE, (1, 2), 0).asked(1, 4, 8).asked(2, 7, 9).asked(3, 6, 10)
    one_failed = asked.asked_again(1, 1_000, failed=True)
    assert window_begun(one_failed, RecoveryStrategy.AGGRESSIVE, (1, 2), 500) == one_failed
    both = one_failed.asked_again(2, 1_000, failed=True)
    assert window_begun(both, RecoveryStrategy.AGGRESSIVE, (1, 2), 500).window_from_ms == 500
    assert window_begun(both, RecoveryStrategy.AGGRESSIVE, (), 500) == both
    heard = one_failed.heard_from(2, 7, LOG)
    assert window_begun(heard, RecoveryStrategy.AGGRESSIVE, (1, 2), 500) == heard
