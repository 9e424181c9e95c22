"""What holds for every source: live (over a fake cluster, new and old), in memory, from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kelr.errors import UsageError
from kelr.model import LogUnavailable, LogUnavailableReason, PartitionState, Selection, TopicPartition, select
from kelr.sources.base import Page, Source, take_snapshot
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import SnapshotFileSource, write_snapshot
from tests.sources.fake_cluster import FakeTransport
from tests.sources.samples import CLUSTER, CONFIG, NOW_MS, PARTITIONS, SNAPSHOT, fake_cluster, logs_of

Open = Callable[[], Source]


def _live() -> Source:
    return LiveSource(
        ConnectionSettings((("127.0.0.1", 1),)),
        clock_ms=lambda: NOW_MS,
        connect=lambda _settings: FakeTransport(fake_cluster()),
    )


@pytest.fixture(params=["live", "memory", "file"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    if request.param == "live":
        return _live()
    if request.param == "memory":
        return MemorySource(SNAPSHOT)
    path = tmp_path / "saved.kelr"
    write_snapshot(SNAPSHOT, path)
    return SnapshotFileSource(path)


def _partitions(pages: list[Page]) -> tuple[PartitionState, ...]:
    return tuple(partition for page in pages for partition in page.partitions)


def _read(source: Source, *targets: str, size: int | None = None, start: TopicPartition | None = None) -> list[Page]:
    return list(source.pages(select(targets), page_size=size, start=start))


def test_the_cluster(source: Source) -> None:
    assert source.cluster() == CLUSTER
    assert source.cluster() is source.cluster()


@pytest.mark.parametrize("size", [None, 1, 2, 3, 5, 100])
def test_every_partition_comes_once_in_address_order(source: Source, size: int | None) -> None:
    pages = _read(source, size=size)
    assert _partitions(pages) == PARTITIONS
    assert all(len(page.partitions) <= (size or 2000) for page in pages)
    assert not any(page.topic_errors for page in pages)


@pytest.mark.parametrize("targets", [(), ("orders", "payments"), ("*",), ("payments", "/o.*/")])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_reading_goes_on_from_any_cursor(source: Source, targets: tuple[str, ...], size: int) -> None:
    pages = _read(source, *targets, size=size)
    assert pages[-1].next_cursor is None
    for number, page in enumerate(pages[:-1]):
        assert page.next_cursor is not None
        rest = _read(source, *targets, size=size, start=page.next_cursor)
        assert _partitions(rest) == _partitions(pages[number + 1 :])


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (("orders",), ["orders:0", "orders:1", "orders:2"]),
        (("orders:1",), ["orders:1"]),
        (("payments", "orders:0,2"), ["orders:0", "orders:2", "payments:0", "payments:1"]),
        (("pay*:1",), ["payments:1"]),
        (("/.*s/:0",), ["orders:0", "payments:0"]),
        (("nothing-*",), []),
        (("orders", "orders:1", "ord*"), ["orders:0", "orders:1", "orders:2"]),
    ],
)
def test_selections(source: Source, targets: tuple[str, ...], expected: list[str]) -> None:
    for size in (None, 1):
        pages = _read(source, *targets, size=size)
        assert [str(partition.address) for partition in _partitions(pages)] == expected
        assert [error for page in pages for error in page.topic_errors] == []


def test_what_is_named_and_not_there_is_an_error_of_its_topic(source: Source) -> None:
    pages = _read(source, "orders:1,8-9", "absent", "gone:3", size=1)
    assert [str(partition.address) for partition in _partitions(pages)] == ["orders:1"]
    errors = {error.topic: error for page in pages for error in page.topic_errors}
    assert sum(len(page.topic_errors) for page in pages) == 3
    assert set(errors) == {"absent", "gone", "orders"}
    assert {error.error for error in errors.values()} == {"UNKNOWN_TOPIC_OR_PARTITION"}
    assert "no partitions 8-9 of topic orders, only 0-2" in errors["orders"].detail
    assert {topic: error.absent for topic, error in errors.items()} == {"absent": (), "gone": (), "orders": (8, 9)}
    assert "has no topic absent" in errors["absent"].detail


def test_what_is_missing_before_the_start_is_not_reported(source: Source) -> None:
    pages = _read(source, "absent", "orders:1,9", "payments:9", start=TopicPartition("payments", 0))
    assert [error.topic for page in pages for error in page.topic_errors] == ["payments"]


def test_the_replica_count_of_partition_0_comes_even_where_it_is_not_selected(source: Source) -> None:
    def counts(*targets: str, start: TopicPartition | None = None) -> dict[str, int]:
        pages = _read(source, *targets, size=1, start=start)
        return {topic: count for page in pages for topic, count in page.first_partition_replicas.items()}

    assert counts("orders:2") == {"orders": 3}
    assert counts("payments:1", "orders:1") == {"orders": 3, "payments": 2}
    assert counts("payments:1", start=TopicPartition("payments", 1)) == {"payments": 2}
    assert counts(start=TopicPartition("orders", 2)) == {"orders": 3, "payments": 2}


def test_logs_come_for_each_replica_in_assignment_order(source: Source) -> None:
    logs = source.replica_logs(PARTITIONS, lineage=True)
    assert logs == logs_of()
    for partition in PARTITIONS:
        assert tuple(answer.replica for answer in logs[partition.address]) == partition.replicas


def test_progress_ends_with_everything_done(source: Source) -> None:
    seen: list[tuple[int, int]] = []
    source.replica_logs(PARTITIONS, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] > 0
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_replica_nobody_knows_of_is_an_answer(source: Source) -> None:
    moved = replace(PARTITIONS[0], replicas=(2, 9))
    heard, unheard = source.replica_logs([moved])[moved.address]
    assert heard.replica == 2
    assert isinstance(unheard, LogUnavailable)
    assert unheard.reason in {LogUnavailableReason.NO_ADDRESS, LogUnavailableReason.NOT_ASKED}


def test_configs_of_a_topic_that_is_not_there_have_an_error(source: Source) -> None:
    configs = source.topic_configs(["orders", "absent"])
    assert configs["orders"] == CONFIG
    assert configs["absent"].error
    assert configs["absent"].min_insync_replicas is None
    assert source.topic_configs([]) == {}


def test_a_snapshot_of_a_source_is_what_the_source_knows(source: Source) -> None:
    snapshot = take_snapshot(source, Selection(), now_ms=NOW_MS, with_logs=lambda _partition: True, lineage=True)
    assert replace(snapshot, source="live") == SNAPSHOT


def test_closed_means_closed(source: Source) -> None:
    with source as same:
        assert same is source
    with pytest.raises(UsageError, match="closed"):
        source.cluster()
    with pytest.raises(UsageError, match="closed"):
        list(source.pages(Selection()))
    with pytest.raises(UsageError, match="closed"):
        source.topic_configs(["orders"])
    source.close()
