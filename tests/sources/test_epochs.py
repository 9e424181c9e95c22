"""The epoch search against a log that answers as Kafka's does, for every kind of epoch history."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kelr.model import EpochEnd
from kelr.sources.live.broker_dialogue import Above, Below, Epochs, EpochSearch
from tests.sources.fake_cluster import FakeLog


def _search(log: FakeLog, *, lineage: bool) -> tuple[Epochs, int]:
    """The result, and how many questions it took."""
    search, asked = EpochSearch(log.leader_epoch, lineage=lineage), 0
    while (epoch := search.next_epoch()) is not None:
        asked += 1
        assert asked < 10_000, "the search does not end"
        found = log.end_offset_for(epoch)
        answer = Above() if found is None else Below(EpochEnd(*found), log.high_watermark, log.log_start)
        search.answered(epoch, answer)
    return search.result(), asked


def _truth(log: FakeLog) -> list[EpochEnd]:
    """The lineage read off the log itself: epochs with records at or after the log start."""
    ends = [*(start for _, start in log.epochs[1:]), log.log_end][: len(log.epochs)]
    held = zip(log.epochs, ends, strict=True)
    return [EpochEnd(epoch, end) for (epoch, start), end in held if end > max(start, log.log_start)]


@st.composite
def logs(draw: st.DrawFn) -> FakeLog:
    """A log as Kafka can have it: epochs and starts rise together, the newest may be empty, retention cut the start."""
    epochs = sorted(draw(st.sets(st.integers(0, 60), max_size=12)))
    lengths = draw(st.lists(st.integers(1, 9), min_size=len(epochs), max_size=len(epochs)))
    start = draw(st.integers(0, 5))
    history, offset = [], start
    for epoch, length in zip(epochs, lengths, strict=True):
        history.append((epoch, offset))
        offset += length
    if history and draw(st.booleans()):
        offset = history[-1][1]  # the newest leader has written nothing yet
    log_start = draw(st.integers(start, offset)) if draw(st.booleans()) else start
    # LeaderEpochFileCache.truncateFromStart: epochs that lie before the start go, the one it falls in moves up.
    later = [(epoch, at) for epoch, at in history if at > log_start]
    before = [(epoch, at) for epoch, at in history if at <= log_start]
    kept = ([(before[-1][0], log_start)] if before else []) + later
    leader_epoch = (epochs[-1] if epochs else 0) + draw(st.integers(0, 40))
    return FakeLog(
        epochs=kept, log_end=offset, log_start=log_start, high_watermark=log_start, leader_epoch=leader_epoch
    )


@given(logs())
def test_the_lineage_is_the_epochs_that_hold_records(log: FakeLog) -> None:
    result, _ = _search(log, lineage=True)
    assert result.lineage == tuple(_truth(log))


@given(logs())
def test_the_last_written_epoch_is_that_of_the_last_record(log: FakeLog) -> None:
    truth = _truth(log)
    for lineage in (False, True):
        result, _ = _search(log, lineage=lineage)
        if truth:
            assert result.newest == truth[-1].epoch
            assert (result.log_end, result.log_start) == (log.log_end, log.log_start)
        elif log.epochs and log.log_end > 0:
            assert result.newest == log.epochs[-1][0], "retention took all records, and the epoch is still known"
        else:
            assert result.newest is None


@given(logs())
def test_the_questions_grow_with_the_logarithm(log: FakeLog) -> None:
    newest = log.epochs[-1][0] if log.epochs else 0
    gap = log.leader_epoch - newest + 1
    _, asked = _search(log, lineage=False)
    assert asked <= 2 * math.ceil(math.log2(gap + 1)) + 4


def test_a_log_of_the_newest_epoch_takes_two_questions() -> None:
    log = FakeLog(epochs=[(0, 0), (7, 10), (9, 30)], log_end=40, leader_epoch=9)
    result, asked = _search(log, lineage=False)
    assert (result.newest, asked) == (9, 2)


def test_a_thousand_elections_without_a_record_take_few_questions() -> None:
    log = FakeLog(epochs=[(3, 0)], log_end=10, leader_epoch=100_000)
    result, asked = _search(log, lineage=True)
    assert result.newest == 3
    assert asked < 40


def test_a_leader_that_has_written_nothing_is_not_the_last_writer() -> None:
    log = FakeLog(epochs=[(2, 0), (5, 10)], log_end=10, leader_epoch=5)
    result, _ = _search(log, lineage=True)
    assert result.newest == 2
    assert result.lineage == (EpochEnd(2, 10),)


def test_records_older_than_any_epoch_have_no_epoch() -> None:
    """Records of a Kafka before 0.11: the history starts in the middle of the log, or at its end."""
    log = FakeLog(epochs=[(5, 10)], log_end=20, leader_epoch=5)
    result, _ = _search(log, lineage=True)
    assert result.lineage == (EpochEnd(5, 20),)
    only_old = FakeLog(epochs=[(5, 10)], log_end=10, leader_epoch=5)
    for lineage in (False, True):
        result, _ = _search(only_old, lineage=lineage)
        assert result.newest is None
        assert result.lineage == (() if lineage else None)


def test_a_truncation_between_two_answers_starts_the_search_anew() -> None:
    search = EpochSearch(9, lineage=True)
    assert search.next_epoch() == 9
    search.answered(9, Below(EpochEnd(9, 40), 40, 0))
    assert search.next_epoch() == 8
    search.answered(8, Above())
    shorter = FakeLog(epochs=[(0, 0), (4, 10)], log_end=15, leader_epoch=9)
    while (epoch := search.next_epoch()) is not None:
        found = shorter.end_offset_for(epoch)
        search.answered(epoch, Above() if found is None else Below(EpochEnd(*found), 12, 0))
    assert search.result().lineage == (EpochEnd(0, 10), EpochEnd(4, 15))
