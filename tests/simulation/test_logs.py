"""What happens to one replica's log: appends, truncation by epoch, retention, power loss."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.engine.logs import agreement
from kelr.model import EpochEnd
from kelr.simulation.logs import (
    Acks,
    Record,
    SimulatedLog,
    after_power_loss,
    appended,
    flushed,
    following,
    parts_from,
    trimmed,
    truncated,
)


def log(*epochs: int, start: int = 0) -> SimulatedLog:
    """A log with one record for each epoch; the record at an offset of an epoch has the same id in every log."""
    records = tuple(Record(epoch, epoch * 1000 + offset, Acks.ALL) for offset, epoch in enumerate(epochs, start))
    return SimulatedLog(records, start=start)


def test_an_empty_log_has_no_epoch() -> None:
    assert (SimulatedLog().end, SimulatedLog().last_epoch, SimulatedLog().lineage) == (0, None, ())


def test_the_lineage_names_each_epoch_with_its_end() -> None:
    assert log(0, 0, 2, 5, 5).lineage == (EpochEnd(0, 2), EpochEnd(2, 3), EpochEnd(5, 5))


def test_the_lineage_of_a_log_that_retention_has_shortened_keeps_its_offsets() -> None:
    assert trimmed(log(0, 0, 2, 5, 5), 2).lineage == (EpochEnd(2, 3), EpochEnd(5, 5))


def test_truncation_takes_the_flushed_mark_and_the_high_watermark_along() -> None:
    before = SimulatedLog(log(0, 0, 0, 0).records, flushed=4, high_watermark=3)
    after = truncated(before, 2)
    assert (after.end, after.flushed, after.high_watermark) == (2, 2, 2)


def test_truncation_beyond_the_end_changes_nothing() -> None:
    assert truncated(log(0, 0), 7) == log(0, 0)


def test_truncation_below_the_start_leaves_an_empty_log_there() -> None:
    after = truncated(log(4, 4, start=5), 3)
    assert (after.start, after.end, after.last_epoch) == (3, 3, None)


def test_a_power_loss_leaves_what_was_flushed() -> None:
    half = appended(flushed(log(0, 0)), log(1, 1, start=2).records)
    assert after_power_loss(half).records == log(0, 0).records
    assert after_power_loss(flushed(half)) == flushed(half)


def test_retention_keeps_the_last_epoch_of_a_log_that_it_empties() -> None:
    after = trimmed(log(0, 3), 2)
    assert (after.start, after.end, after.last_epoch, after.lineage) == (2, 2, 3, ())


@pytest.mark.parametrize(
    ("follower", "leader", "offset"),
    [
        (log(0, 0), log(0, 0, 0), 2),
        # The leader's epoch 0 ended earlier: what the follower has of it beyond that is given up.
        (log(0, 0, 0), log(0, 0, 2), 2),
        # The follower wrote in epoch 1, which the leader never saw.
        (log(0, 1, 1), log(0, 2, 2), 1),
        # A leader that lost its tail and leads again: followers give up the same tail.
        (log(0, 0, 0, 0), log(0, 0), 2),
        (log(), log(3, 3), 0),
        (log(3, 3), log(), 0),
    ],
)
def test_where_a_follower_truncates(follower: SimulatedLog, leader: SimulatedLog, offset: int) -> None:
    assert parts_from(follower, leader) == offset


def test_a_follower_truncates_and_copies_in_one_fetch() -> None:
    assert following(log(0, 0, 1), log(0, 2, 2, 2)).records == log(0, 2, 2, 2).records


def test_a_fetch_brings_as_many_records_as_its_limit_says() -> None:
    assert following(log(0), log(0, 0, 0, 0), limit=2).end == 3


def test_a_follower_never_knows_a_high_watermark_beyond_its_log() -> None:
    leader = SimulatedLog(log(0, 0, 0, 0).records, high_watermark=4)
    assert following(log(0), leader, limit=1).high_watermark == 2


def test_a_follower_behind_the_leaders_start_begins_there() -> None:
    after = following(log(0), trimmed(log(0, 0, 0, 2), 3))
    assert (after.start, after.records) == (3, log(2, start=3).records)


def test_a_follower_deletes_what_retention_took_at_the_leader() -> None:
    after = following(log(0, 0, 0), trimmed(log(0, 0, 0), 2))
    assert (after.start, after.end) == (2, 3)


EPOCHS = st.lists(st.integers(0, 3), max_size=6).map(sorted)


@given(EPOCHS, EPOCHS, EPOCHS)
def test_a_follower_truncates_where_the_engine_says_that_the_logs_part(
    common: list[int], one: list[int], other: list[int]
) -> None:
    """Two logs with a common beginning; what each wrote alone has epochs that the other one does not know."""
    follower = log(*common, *(4 + 2 * epoch for epoch in one))
    leader = log(*common, *(5 + 2 * epoch for epoch in other))
    assert parts_from(follower, leader) == agreement(follower.answer(1), leader.answer(2))
    assert parts_from(follower, leader) == len(common)


def test_a_follower_learns_no_epoch_of_which_compaction_has_left_no_record() -> None:
    leader = replace(log(0, 0, 1, 1, 2, 2), high_watermark=6).cleaned(range(1, 9))
    assert [record.compacted for record in leader.records] == [False, True, True, True, True, False]
    assert leader.lineage == (EpochEnd(0, 2), EpochEnd(1, 4), EpochEnd(2, 6))
    follower = following(SimulatedLog(), leader)
    assert follower.lineage == (EpochEnd(0, 5), EpochEnd(2, 6))
    assert follower.end == parts_from(follower, leader) == 6
    assert agreement(follower.answer(1), leader.answer(2)) == 6
