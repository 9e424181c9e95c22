"""What becomes of each record: only what was lost is replayed, once, and what cannot be told is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.errors import RefusedError
from kelr.rescue.archive import open_dump
from kelr.rescue.judge import Judge, Survivors, Verdict
from kelr.rescue.origin import Origin, Origins
from kelr.rescue.preparing import judge_tails
from kelr.rescue.scan import digest_of
from kelr.sources.records.stream import RawBatch, Unread, UnreadKind
from tests.rescue.batches import batch, log, marker
from tests.rescue.files import save, tail

Verdicts = Callable[..., list[tuple[int, Verdict]]]


@pytest.fixture
def verdicts(tmp_path: Path) -> Verdicts:
    """Saves these batches and judges each record, by offset."""

    def run(
        judge: Judge, *tails: Sequence[RawBatch | Unread], start: int = 10, end: int = 30, **changes: Any
    ) -> list[tuple[int, Verdict]]:
        path = tmp_path / "judged.kelr-rescue"
        path.unlink(missing_ok=True)
        save(path, [tail(pieces, start, end, held=log(3, (9, end)), **changes) for pieces in tails])
        with open_dump(path) as dump:
            return [(one.record.offset, one.verdict) for one in judge_tails(dump, dump.manifest.tails, judge)]

    return run


def lost() -> Judge:
    """Judges as if nothing had survived."""
    return Judge(None, Origins())


def test_a_record_survives_where_its_epoch_is_the_leaders_there(verdicts: Verdicts) -> None:
    # The leader went another way at offset 12, in epoch 6.
    judge = Judge(Survivors("orders:0", log(2, (4, 11), (5, 12), (6, 20))), Origins())
    pieces = [batch(10, epoch=4), batch(11, 3, epoch=5), batch(14, 2, epoch=7)]
    assert verdicts(judge, pieces) == [
        (10, Verdict.SURVIVES),
        (11, Verdict.SURVIVES),
        (12, Verdict.REPLAY),
        (13, Verdict.REPLAY),
        (14, Verdict.REPLAY),
        (15, Verdict.REPLAY),
    ]


@given(st.data())
def test_survivors_are_the_leaders_own_records(data: st.DataObject) -> None:
    ends = sorted(data.draw(st.sets(st.integers(1, 12), min_size=1, max_size=4)))
    epochs = sorted(data.draw(st.sets(st.integers(0, 9), min_size=len(ends), max_size=len(ends))))
    start = data.draw(st.integers(0, ends[0] - 1))
    leader = log(2, *zip(epochs, ends, strict=True), start=start)
    survivors = Survivors("orders:0", leader)
    epoch_at = {
        offset: epoch
        for offset in range(start, ends[-1])
        for epoch, end in reversed(list(zip(epochs, ends, strict=True)))
        if offset < end and not any(offset < other for other in ends if other < end)
    }
    for offset in range(start, 14):
        for epoch in range(10):
            assert survivors.hold(epoch, offset) == (epoch_at.get(offset) == epoch)


@pytest.mark.parametrize(
    ("epoch", "lacked_by", "below", "then"),
    [
        (5, None, Verdict.DELETED, Verdict.SURVIVES),
        # Its own records of newer epochs were deleted: whether it had this one is not known, unless the file tells.
        (4, None, Verdict.UNKNOWN, Verdict.REPLAY),
        (4, 1, Verdict.UNKNOWN, Verdict.REPLAY),
        (4, 2, Verdict.REPLAY, Verdict.REPLAY),
        (7, None, Verdict.REPLAY, Verdict.REPLAY),
    ],
)
def test_what_was_deleted_on_purpose_since_is_not_brought_back(
    verdicts: Verdicts, epoch: int, lacked_by: int | None, below: Verdict, then: Verdict
) -> None:
    """The log's start moves by retention and DeleteRecords alone: they took what the log held, and nothing else."""
    judge = Judge(Survivors("orders:0", log(2, (5, 40), start=20)), Origins())
    assert verdicts(judge, [batch(18, 4, epoch=epoch)], lacked_by=lacked_by) == [
        (18, below),
        (19, below),
        (20, then),
        (21, then),
    ]


def test_what_the_leader_did_not_show_to_hold_when_it_was_saved_is_not_known_to_be_deleted(verdicts: Verdicts) -> None:
    """Its disk may have been a copy without its first segments: its epochs prove nothing of them."""
    judge = Judge(Survivors("orders:0", log(2, (5, 40), start=20)), Origins())
    for replica, below in ((2, Verdict.UNKNOWN), (3, Verdict.DELETED)):
        told = verdicts(judge, [batch(19, 2, epoch=5)], perhaps_held_by=replica)
        assert told == [(19, below), (20, Verdict.SURVIVES)]


def test_what_is_saved_for_the_sake_of_its_transaction_was_in_the_leaders_log(verdicts: Verdicts) -> None:
    judge = Judge(Survivors("orders:0", log(2, (5, 40), start=20)), Origins())
    told = verdicts(judge, [batch(17, 3, epoch=4)], lacked_by=2, lost_from=18)
    assert told == [(17, Verdict.DELETED), (18, Verdict.REPLAY), (19, Verdict.REPLAY)]


@pytest.mark.parametrize("changes", [{"lineage": None}, {"log_start": None}])
def test_a_leader_that_does_not_tell_its_epochs_is_refused(changes: dict[str, None]) -> None:
    with pytest.raises(RefusedError, match="which records survived is not known"):
        Survivors("orders:0", log(2, (5, 40), **changes))


def test_a_record_without_a_leader_epoch_is_refused(verdicts: Verdicts) -> None:
    with pytest.raises(RefusedError, match="no leader epoch"):
        verdicts(lost(), [batch(10, epoch=-1)])


def test_markers_and_unfinished_transactions_stay_out(verdicts: Verdicts) -> None:
    pieces = [
        batch(10, producer=1, transactional=True),
        batch(11, producer=2, transactional=True),
        batch(12, producer=3, transactional=True),
        marker(13, 1, commit=True),
        marker(14, 2, commit=False),
    ]
    expected = [
        (10, Verdict.REPLAY),
        (11, Verdict.ABORTED),
        (12, Verdict.OPEN),
        (13, Verdict.MARKER),
        (14, Verdict.MARKER),
    ]
    assert verdicts(lost(), pieces, end=15) == expected
    judge = Judge(None, Origins(), include_aborted=True, include_open=True)
    assert [verdict for _, verdict in verdicts(judge, pieces, end=15)] == [Verdict.REPLAY] * 3 + [Verdict.MARKER] * 2


def test_a_transaction_that_ended_behind_a_gap_counts_as_open(verdicts: Verdicts) -> None:
    gap = Unread(11, 20, UnreadKind.CORRUPT, "garbage")
    pieces = [batch(10, producer=1, transactional=True), gap, marker(20, 1, commit=True)]
    assert verdicts(lost(), pieces, end=21) == [(10, Verdict.OPEN), (20, Verdict.MARKER)]


def test_the_rest_of_the_first_and_last_batch_stays_out(verdicts: Verdicts) -> None:
    assert verdicts(lost(), [batch(8, 4), batch(12, 4)], start=10, end=13) == [
        (8, Verdict.OUTSIDE),
        (9, Verdict.OUTSIDE),
        (10, Verdict.REPLAY),
        (11, Verdict.REPLAY),
        (12, Verdict.REPLAY),
        (13, Verdict.OUTSIDE),
        (14, Verdict.OUTSIDE),
        (15, Verdict.OUTSIDE),
    ]


def test_what_was_replayed_is_known_by_its_epoch_too(verdicts: Verdicts) -> None:
    replayed = Origins()
    replayed.add(Origin("cluster", "orders", 0, 1, 10))
    replayed.add(Origin("cluster", "orders", 0, 2, 11))
    judge = Judge(None, replayed, cluster_id="cluster")
    assert verdicts(judge, [batch(10, 2, epoch=1)]) == [(10, Verdict.ALREADY), (11, Verdict.REPLAY)]


def test_what_the_journal_says_is_done_is_not_done_again(verdicts: Verdicts) -> None:
    judge = Judge(None, Origins(), done_through=(0, 11))
    assert [verdict for _, verdict in verdicts(judge, [batch(10, 3)])] == [Verdict.ALREADY] * 2 + [Verdict.REPLAY]


def test_two_tails_with_the_same_records_give_them_once(verdicts: Verdicts) -> None:
    found = verdicts(lost(), [batch(10, 2, epoch=1)], [batch(10, 2, epoch=1), batch(12, epoch=2)])
    assert [verdict for _, verdict in found] == [Verdict.REPLAY] * 2 + [Verdict.ALREADY] * 2 + [Verdict.REPLAY]


def test_a_key_that_was_written_since_is_overwritten_by_newer_epochs_alone(verdicts: Verdicts) -> None:
    keys = [b"old", b"newer", b"same", None]
    newest = {digest_of(b"newer"): 6, digest_of(b"same"): 5, digest_of(b"old"): 4}
    judge = Judge(None, Origins(), newest)
    assert [verdict for _, verdict in verdicts(judge, [batch(10, epoch=5, keys=keys)])] == [
        Verdict.REPLAY,
        Verdict.OVERWRITTEN,
        Verdict.REPLAY,
        Verdict.REPLAY,
    ]
