"""Transactions whose beginning survives an election and whose commit does not: saved whole, told of, brought back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.errors import RefusedError, UsageError
from kelr.model import TopicPartition
from kelr.rescue.archive import open_dump
from kelr.rescue.choose import Wanted
from kelr.rescue.dump import TailSource
from kelr.rescue.judge import Verdict
from kelr.rescue.replay_plan import ReplayOptions
from kelr.rescue.summary import summarize
from kelr.sources.records.stream import Piece, RawBatch
from tests.rescue.batches import batch, log, marker
from tests.rescue.fake_cluster import FakeCluster, orders
from tests.rescue.files import save
from tests.rescue.test_replay import origins, planned, replayed

CUT = ReplayOptions(cut_transactions=True)
WRITTEN = [
    batch(0, producer=7, transactional=True),
    marker(1, 7, commit=True),
    batch(2, 3, producer=7, transactional=True),
    batch(5, 2),  # of nobody's transaction
    batch(7, 3, producer=7, transactional=True),
    marker(10, 7, commit=True),
    batch(11),
]
"""The dead broker's log: the second transaction has offsets 2 to 4 and 7 to 9. The leader holds all up to offset 7."""
KEPT = [*WRITTEN[:4]]


def dumped(tmp_path: Path, *pieces: RawBatch, open_since: int | None = 2) -> Path:
    """A rescue file of what the leader lacks, offsets 7 to 11."""
    held = list(pieces or WRITTEN)

    def read(start: int, end: int) -> Iterator[Piece]:
        return iter([one for one in held if one.header.next_offset > start and one.header.base_offset < end])

    path = tmp_path / "cut.kelr-rescue"
    wanted = Wanted(orders(), 3, 7, 12, "replica 2, which leads, lacks these", log(3, (0, 12)), open_since=open_since)
    save(path, [(wanted, TailSource("Fetch", read))])
    return path


@pytest.fixture
def cluster() -> FakeCluster:
    """Broker 2 leads in epoch 5, and has taken a record at offset 7 since."""
    cluster = FakeCluster()
    cluster.add(orders(), *KEPT, batch(7, epoch=5))
    return cluster


def aborted(cluster: FakeCluster, *, commit: bool = False) -> None:
    """Somebody aborts the hanging transaction, or its coordinator commits it after all."""
    at = TopicPartition("orders", 0)
    cluster.logs[at].append(marker(8, 7, commit=commit, epoch=5))


def test_the_file_begins_where_the_oldest_cut_transaction_does(tmp_path: Path) -> None:
    with open_dump(dumped(tmp_path)) as dump:
        (tail,) = dump.manifest.tails
        assert (tail.from_offset, tail.lost_from, tail.to_offset) == (2, 7, 12)
        assert [one.header.base_offset for one in dump.batches(tail)] == [2, 5, 7, 10, 11]
        assert tail.whole
        assert summarize(dump, tail).cut_records == 3


@pytest.mark.parametrize("open_since", [None, 7, 9])
def test_without_an_open_transaction_it_begins_where_the_loss_does(tmp_path: Path, open_since: int | None) -> None:
    with open_dump(dumped(tmp_path, open_since=open_since)) as dump:
        (tail,) = dump.manifest.tails
        assert (tail.from_offset, tail.lost_from) == (7, None)
        assert summarize(dump, tail).cut_records == 0


def test_a_transaction_that_ended_before_the_cut_is_not_saved_again(tmp_path: Path) -> None:
    ended = [*WRITTEN[:3], marker(5, 7, commit=True), batch(6), batch(7, 5)]
    with open_dump(dumped(tmp_path, *ended)) as dump:
        (tail,) = dump.manifest.tails
        assert (tail.from_offset, tail.lost_from) == (7, None)


def test_while_it_hangs_its_surviving_part_is_told_and_not_produced(cluster: FakeCluster, tmp_path: Path) -> None:
    plan = planned(cluster, dumped(tmp_path))
    (one,) = plan.partitions
    assert one.counts == {Verdict.HANGING: 3, Verdict.SURVIVES: 2, Verdict.REPLAY: 4, Verdict.MARKER: 1}
    (told,) = (warning for warning in plan.warnings if "whose commit was lost" in warning)
    assert told.startswith("orders:0 keeps 3 records of committed transactions")
    assert "Abort them, then --cut-transactions produces these records again" in told
    with pytest.raises(RefusedError, match=r"keeps 3 records .* which hang there"):
        planned(cluster, tmp_path / "cut.kelr-rescue", CUT)


def test_after_the_abort_the_whole_transaction_comes_back_once(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = dumped(tmp_path)
    aborted(cluster)
    (found,) = planned(cluster, file).partitions
    assert found.counts[Verdict.DROPPED] == 3
    replayed(cluster, file, tmp_path, monkeypatch, options=CUT)
    assert origins(cluster) == [2, 3, 4, 7, 8, 9, 11]
    for options in (CUT, ReplayOptions()):
        (again,) = planned(cluster, file, options).partitions
        assert again.counts[Verdict.ALREADY] == 7
        assert again.to_replay == 0


def test_what_was_lost_may_come_back_first_and_what_was_dropped_later(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = dumped(tmp_path)
    replayed(cluster, file, tmp_path / "first", monkeypatch)
    assert origins(cluster) == [7, 8, 9, 11]
    end = cluster.leader_log(TopicPartition("orders", 0)).log_end
    cluster.logs[TopicPartition("orders", 0)].append(marker(end, 7, commit=False, epoch=5))
    replayed(cluster, file, tmp_path / "second", monkeypatch, options=CUT)
    assert origins(cluster) == [7, 8, 9, 11, 2, 3, 4]


def test_what_is_committed_after_all_survives(cluster: FakeCluster, tmp_path: Path) -> None:
    file = dumped(tmp_path)
    aborted(cluster, commit=True)
    for options in (CUT, ReplayOptions()):
        (one,) = planned(cluster, file, options).partitions
        assert one.counts[Verdict.SURVIVES] == 5


def test_an_aborted_or_open_transaction_across_the_cut_loses_nobody_anything(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    for end in (marker(10, 7, commit=False), batch(10)):
        pieces = [*WRITTEN[:5], end, batch(11)]
        (one,) = planned(cluster, dumped(tmp_path, *pieces)).partitions
        assert one.counts[Verdict.SURVIVES] == 5
        assert not one.counts.get(Verdict.HANGING)
        (tmp_path / "cut.kelr-rescue").unlink()


def test_what_retention_took_from_the_leader_meanwhile_is_no_reason_to_refuse_the_rest(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    file = dumped(tmp_path)
    cluster.log_start = 5
    cluster.logs[TopicPartition("orders", 0)] = [*WRITTEN[3:4], batch(7, epoch=5)]
    (one,) = planned(cluster, file).partitions
    assert one.counts[Verdict.REPLAY] == 4


def test_how_transactions_ended_has_to_be_looked_at(cluster: FakeCluster, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--no-scan looks nowhere"):
        planned(cluster, dumped(tmp_path), replace(CUT, look=False))


def test_another_topic_gets_the_whole_transaction_without_an_abort(
    cluster: FakeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add(replace(orders(), topic="rescued", topic_id="AAAAAAAAAAAAAAAAAAAAAw"))
    file = dumped(tmp_path)
    (one,) = planned(cluster, file, ReplayOptions(to="rescued")).partitions
    assert one.counts[Verdict.DROPPED] == 3
    replayed(cluster, file, tmp_path, monkeypatch, options=replace(CUT, to="rescued"))
    assert origins(cluster, TopicPartition("rescued", 0)) == [2, 3, 4, 7, 8, 9, 11]
