"""What a rescue file proves of a loss, and what it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kelr.engine.planning.lost import Lost, with_saved
from kelr.engine.planning.saved import BeforeElection, before_recorded, saved_of
from kelr.model import Bounds, EpochEnd, LossCertainty, ReplicaLog, SavedLog, TopicPartition
from kelr.model.audit import AuditRecord, AuditWhat

AT = TopicPartition("orders", 0)
BEFORE = BeforeElection(AT, "id", 5, "plan", ReplicaLog(3, 20, 2), 0)
"""Replica 3 was elected with [0, 20) of epochs 0 and 2, out of leader epoch 5."""


def saved(*parts: tuple[int, int, int], end: int = 30, high_watermark: int | None = 25, replica: int = 1) -> SavedLog:
    lineage = (EpochEnd(0, 10), EpochEnd(2, 25), EpochEnd(4, end))
    log = ReplicaLog(replica, end, 4, log_start=0, high_watermark=high_watermark, lineage=lineage)
    return SavedLog(f"{replica}.kelr-rescue", AT, "id", log, frozenset(parts), "plan")


WHOLE = saved((2, 20, 25), (4, 25, 30))


def test_what_is_behind_the_elected_log_was_lost() -> None:
    found = saved_of(BEFORE, [WHOLE])
    assert (found.offsets, found.committed, found.files, found.whole) == (10, 5, (WHOLE.file,), {1: WHOLE.file})


def test_what_the_elected_log_may_hold_does_not_count() -> None:
    everything = saved((0, 0, 10), (2, 10, 25), (4, 25, 30))
    assert saved_of(BEFORE, [everything]).offsets == 10
    # An epoch after its last is none of its, wherever it stands.
    assert saved_of(BEFORE, [saved((4, 15, 18), (1, 10, 15))]).offsets == 3


def test_what_two_files_hold_counts_once() -> None:
    other = replace(saved((2, 20, 25), replica=2), log=replace(WHOLE.log, replica=2, log_end=25))
    assert saved_of(BEFORE, [WHOLE, other]).offsets == 10
    assert saved_of(BEFORE, [WHOLE, other]).whole == {1: "1.kelr-rescue", 2: "2.kelr-rescue"}


@pytest.mark.parametrize("part", [(2, 21, 25), (2, 20, 24)])
def test_a_file_with_a_part_of_a_log_counts_for_that_part(part: tuple[int, int, int]) -> None:
    found = saved_of(BEFORE, [saved(part, (4, 25, 30))])
    assert (found.offsets, dict(found.whole)) == (9, {})
    unknown = Lost(AT, 3, LossCertainty.UNKNOWN, None, None, "the plan", unread=(1, 2), truncated=(1,))
    lost = with_saved(unknown, found)
    assert (lost.grade, lost.of_all, lost.unread, lost.truncated) == (LossCertainty.UNKNOWN, Bounds(9), (1, 2), (1,))


def test_a_file_with_all_of_a_log_bounds_the_loss_from_below_alone() -> None:
    unknown = Lost(AT, 3, LossCertainty.UNKNOWN, None, None, "the plan", unread=(1, 2), truncated=(1, 2))
    lost = with_saved(unknown, saved_of(BEFORE, [WHOLE]))
    assert (lost.grade, lost.of_all, lost.of_committed) == (LossCertainty.UNKNOWN, Bounds(10), Bounds(5))
    assert (lost.unread, lost.truncated, lost.read_for_files) == ((2,), (2,), (1,))
    assert (lost.saved, lost.files) == (10, ("1.kelr-rescue",))


def test_a_count_that_is_less_than_what_was_saved_is_none() -> None:
    counted = Lost(AT, 3, LossCertainty.BOUNDED, Bounds(0, 7), Bounds(7, 7), "the plan")
    lost = with_saved(counted, saved_of(BEFORE, [WHOLE]))
    assert (lost.grade, lost.of_all, lost.of_committed) == (LossCertainty.UNKNOWN, Bounds(10), Bounds(5))
    enough = replace(counted, committed=Bounds(5, 10), total=Bounds(10, 10))
    same = with_saved(enough, saved_of(BEFORE, [WHOLE]))
    assert (same.grade, same.of_all, same.of_committed) == (LossCertainty.BOUNDED, Bounds(10, 10), Bounds(5, 10))


@pytest.mark.parametrize(
    "other",
    [
        replace(WHOLE, plan_id="another"),
        replace(WHOLE, plan_id=None),
        replace(WHOLE, plan_id=None, leader_epoch=4),
        replace(WHOLE, topic_id="another"),
        replace(WHOLE, plan_id=None, leader_epoch=5, topic_id=None),
        replace(WHOLE, address=TopicPartition("orders", 1)),
        saved((2, 20, 25), (6, 25, 30)),
    ],
)
def test_a_file_of_something_else_counts_for_nothing(other: SavedLog) -> None:
    assert saved_of(BEFORE, [other]).files == ()


def test_a_file_without_a_plan_counts_where_it_was_saved_in_that_state() -> None:
    assert saved_of(BEFORE, [replace(WHOLE, plan_id=None, leader_epoch=5)]).offsets == 10


def test_what_was_deleted_on_purpose_was_not_lost() -> None:
    assert saved_of(replace(BEFORE, log_start=23), [WHOLE]).offsets == 7
    begins_later = replace(saved(replica=2), log=replace(WHOLE.log, replica=2, log_start=26))
    assert saved_of(BEFORE, [WHOLE, begins_later]).offsets == 4


def test_the_audit_log_tells_what_an_election_came_out_of() -> None:
    evidence = [{"replica": 3, "log_end": 20, "last_epoch": 2}, {"replica": 1, "unheard": "unreachable"}]
    row = AuditRecord(0, AuditWhat.ELECTION, "elect", "orders", 0, None, "ada", "laptop", None, "done")
    row = replace(row, wanted=3, plan_id="plan", evidence=evidence)
    told = before_recorded(replace(row, before={"topic_id": "id", "leader": None, "leader_epoch": 5}))
    assert told == BEFORE
    # A leader's followers may have taken more than they held; and a line may be of an older kelr.
    assert before_recorded(replace(row, before={"topic_id": "id", "leader": 2, "leader_epoch": 5})) is None
    assert before_recorded(replace(row, before={})) is None
    assert before_recorded(replace(row, evidence=evidence[1:], before={"leader": None, "leader_epoch": 5})) is None
