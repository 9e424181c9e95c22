"""Partitions of a topic that spans pages are judged by its partition 0; logs of several pages are read together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kelr.controller import ELR_4_3
from kelr.engine.case import case_of
from kelr.errors import ConnectError
from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    LogAnswer,
    PartitionState,
    Selection,
    Situation,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.sources import decisions
from kelr.sources.base import Page, Progress
from kelr.sources.decisions import decide_partitions
from kelr.sources.memory import MemorySource

CLUSTER = Cluster("cluster", tuple(Broker(id_, BrokerStatus.LIVE) for id_ in (1, 2, 3)))


class TellsOnce(MemorySource):
    """Tells of a topic's partition 0 with the page that holds it alone, as a live cluster does."""

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        del page_size
        for page in super().pages(selection, page_size=1, start=start):
            first = {state.topic: len(state.replicas) for state in page.partitions if state.partition == 0}
            yield replace(page, first_partition_replicas=first)


def partition(topic: str, number: int, replicas: tuple[int, ...]) -> PartitionState:
    return PartitionState(topic, number, 1, 0, replicas, (1,), (), ())


def test_the_controllers_min_isr_hangs_on_a_partition_0_of_an_earlier_page() -> None:
    """Partition 0 of `few` has one replica, so that nobody goes into an ELR before the last one in sync (rule 17); that
    of `many` has three. Producers are refused by each partition's own."""
    states = tuple(
        partition(topic, number, replicas)
        for topic, first in (("few", (1,)), ("many", (1, 2, 3)))
        for number, replicas in enumerate((first, (1, 2, 3), (1, 2, 3)))
    )
    configs = {topic: TopicConfig(min_insync_replicas=2) for topic in ("few", "many")}
    source = TellsOnce(Snapshot(0, CLUSTER, states, configs))
    pages = list(decide_partitions(source, Selection(), clock_ms=lambda: 0))
    cases = [case_of(page.snapshot, state, ELR_4_3) for page in pages for state in page.snapshot.partitions]
    assert [(one.state.topic, one.controller_min_isr) for one in cases] == [*[("few", 1)] * 3, *[("many", 2)] * 3]
    found = [decision for page in pages for decision in page.decisions]
    under = [("few", 1), ("few", 2), ("many", 0), ("many", 1), ("many", 2)]
    assert [(one.topic, one.partition) for one in found if one.situation is Situation.UNDER_MIN_ISR] == under
    unsafe = decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True)
    assert [(one.topic, one.partition) for page in unsafe for one in page.decisions] == under


class CountsLogs(TellsOnce):
    """Remembers of which partitions logs were asked for together, and may break off."""

    def __init__(self, snapshot: Snapshot, *, breaks_after: int | None = None) -> None:
        super().__init__(snapshot)
        self.asked: list[list[TopicPartition]] = []
        self._breaks_after = breaks_after

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        for number, page in enumerate(super().pages(selection, page_size=page_size, start=start)):
            if number == self._breaks_after:
                raise ConnectError("gone")
            yield page

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        self.asked.append([state.address for state in partitions])
        return super().replica_logs(partitions, lineage=lineage, progress=progress)


def many(partitions: int, unsafe: Callable[[int], bool]) -> Snapshot:
    """Partitions of topics of ten; those that are unsafe have one replica in sync."""
    states = tuple(
        replace(partition(f"t{number // 10:03}", number % 10, (1, 2, 3)), isr=(1,) if unsafe(number) else (1, 2, 3))
        for number in range(partitions)
    )
    topics = {state.topic for state in states}
    return Snapshot(0, CLUSTER, states, dict.fromkeys(topics, TopicConfig(min_insync_replicas=2)))


@given(st.sets(st.integers(0, 59)), st.integers(1, 40))
def test_what_is_decided_together_is_what_is_decided_page_by_page(unsafe: set[int], most: int) -> None:
    snapshot = many(60, unsafe.__contains__)
    wanted = [state.address for number, state in enumerate(snapshot.partitions) if number in unsafe]
    by_page = decide_partitions(MemorySource(snapshot), Selection(), clock_ms=lambda: 0, only_unsafe=True)
    source = CountsLogs(snapshot)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decisions, "MOST_TOGETHER", most)
        pages = list(decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True))
    assert [one for page in pages for one in page.decisions] == [one for page in by_page for one in page.decisions]
    # Logs are asked of those alone that are decided, each once, in order; never of more pages than there may be.
    assert [address for asked in source.asked for address in asked] == wanted
    assert [state.address for page in pages for state in page.snapshot.partitions] == wanted
    assert len(pages) >= 60 // most


def test_logs_of_several_pages_are_asked_for_together_and_of_the_first_alone() -> None:
    source = CountsLogs(many(60, lambda _: True))
    list(decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True))
    assert [len(asked) for asked in source.asked] == [1, 2, 4, 8, 16, 29]


def test_what_was_read_before_the_cluster_went_away_is_decided() -> None:
    source = CountsLogs(many(60, lambda _: True), breaks_after=5)
    pages = decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True)
    assert [len(next(pages).decisions) for _ in range(3)] == [1, 2, 2]
    with pytest.raises(ConnectError):
        next(pages)
