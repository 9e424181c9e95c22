"""Partitions of a topic that spans pages are judged by its partition 0, wherever that was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kelr.model import (
    Broker,
    BrokerStatus,
    Cluster,
    PartitionState,
    Selection,
    Situation,
    Snapshot,
    TopicConfig,
    TopicPartition,
)
from kelr.sources.base import Page
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


def test_the_effective_min_isr_hangs_on_a_partition_0_of_an_earlier_page() -> None:
    """Partition 0 of `few` has one replica, so that one in sync is enough (rule 17); that of `many` has three."""
    states = tuple(
        partition(topic, number, replicas)
        for topic, first in (("few", (1,)), ("many", (1, 2, 3)))
        for number, replicas in enumerate((first, (1, 2, 3), (1, 2, 3)))
    )
    configs = {topic: TopicConfig(min_insync_replicas=2) for topic in ("few", "many")}
    source = TellsOnce(Snapshot(0, CLUSTER, states, configs))
    pages = list(decide_partitions(source, Selection(), clock_ms=lambda: 0))
    found = [decision for page in pages for decision in page.decisions]
    assert [(one.topic, one.partition, one.min_isr, one.situation) for one in found] == [
        *(("few", number, 1, Situation.HEALTHY) for number in range(3)),
        *(("many", number, 2, Situation.UNDER_MIN_ISR) for number in range(3)),
    ]
    unsafe = decide_partitions(source, Selection(), clock_ms=lambda: 0, only_unsafe=True)
    assert [str(one.topic) for page in unsafe for one in page.decisions] == ["many"] * 3
