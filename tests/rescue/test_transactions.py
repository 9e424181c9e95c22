"""How transactions ended, by the markers behind their records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.rescue.transactions import Outcome, Transaction, Transactions
from kelr.sources.records.stream import RawBatch
from tests.rescue.batches import batch, marker


def transactions_of(
    batches: Iterable[RawBatch], *, gaps: Sequence[tuple[int, int | None]] = (), starts_between: bool | None = None
) -> Transactions:
    """All of these batches, fed and finished."""
    transactions = Transactions(gaps, starts_between)
    for one in batches:
        transactions.feed(one)
    transactions.finish()
    return transactions


def data(first: int, producer: int, count: int = 1) -> RawBatch:
    return batch(first, count, producer=producer, transactional=True)


def test_each_way_to_end() -> None:
    batches = [data(10, 1, 3), data(13, 2), marker(14, 1, commit=True), data(15, 1), marker(16, 2, commit=False)]
    found = transactions_of(batches, starts_between=True)
    assert found.found == [
        Transaction(1, 10, 12, 3, Outcome.COMMITTED, 14, began_before=False),
        Transaction(2, 13, 13, 1, Outcome.ABORTED, 16, began_before=False),
        Transaction(1, 15, 15, 1, Outcome.OPEN, None, began_before=False),
    ]
    assert [found.outcome(one.header) for one in batches if not one.header.control] == [
        Outcome.COMMITTED,
        Outcome.ABORTED,
        Outcome.OPEN,
    ]


def test_records_outside_transactions_and_markers_have_no_outcome() -> None:
    plain, idempotent = batch(0), batch(1, producer=5)
    found = transactions_of([plain, idempotent])
    assert found.found == []
    assert found.outcome(plain.header) is None
    assert found.outcome(idempotent.header) is None
    end = marker(3, 1, commit=True)
    assert transactions_of([data(2, 1), end, data(4, 1)]).outcome(end.header) is None


def test_a_transaction_that_may_have_begun_before_is_said() -> None:
    batches = [data(10, 1), marker(11, 1, commit=True), data(12, 1), marker(13, 1, commit=True)]
    assert [one.began_before for one in transactions_of(batches).found] == [None, False]
    assert [one.began_before for one in transactions_of(batches, starts_between=True).found] == [False, False]


def test_a_marker_without_records_ends_one_that_began_before() -> None:
    (found,) = transactions_of([marker(10, 1, commit=True)]).found
    assert found == Transaction(1, None, None, 0, Outcome.COMMITTED, 10, began_before=True)


@pytest.mark.parametrize("gap", [(11, 13), (12, None), (5, 12)])
def test_a_gap_before_the_marker_hides_what_ended_it(gap: tuple[int, int | None]) -> None:
    batches = [data(10, 1), marker(15, 1, commit=True)]
    found = transactions_of(batches, gaps=[gap])
    assert found.outcome(batches[0].header) is Outcome.UNKNOWN
    assert [one.outcome for one in found.found] == [Outcome.UNKNOWN]


@pytest.mark.parametrize("gap", [(5, 10), (16, 20), (16, None)])
def test_a_gap_elsewhere_does_not(gap: tuple[int, int | None]) -> None:
    batches = [data(10, 1), marker(15, 1, commit=True)]
    assert transactions_of(batches, gaps=[gap]).outcome(batches[0].header) is Outcome.COMMITTED


def test_an_end_behind_a_gap_is_unknown_and_not_open() -> None:
    batches = [data(10, 1)]
    assert transactions_of(batches, gaps=[(11, 20)]).outcome(batches[0].header) is Outcome.UNKNOWN


@given(st.lists(st.tuples(st.sampled_from(["data", "commit", "abort"]), st.integers(1, 3)), max_size=25))
def test_a_record_ends_with_the_next_marker_of_its_producer(story: list[tuple[str, int]]) -> None:
    batches = [
        data(offset, producer) if what == "data" else marker(offset, producer, commit=what == "commit")
        for offset, (what, producer) in enumerate(story)
    ]
    found = transactions_of(batches)
    names = {"commit": Outcome.COMMITTED, "abort": Outcome.ABORTED}
    for offset, (what, producer) in enumerate(story):
        if what != "data":
            continue
        later = [names[kind] for kind, other in story[offset + 1 :] if other == producer and kind != "data"]
        assert found.outcome(batches[offset].header) is (later[0] if later else Outcome.OPEN)
    assert sum(one.records for one in found.found) == sum(what == "data" for what, _ in story)
