"""Several rule sets, or imagined events, over one reading of a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from kelr.controller import ELR_4_0, ELR_4_3, KIP966_AGGRESSIVE
from kelr.engine.what_if.assumptions import AssumptionError, parse_assumptions
from kelr.model import LogAnswer, PartitionState, ReplicaLog, Selection, Snapshot, TopicPartition, select
from kelr.sources.base import Page, Progress
from kelr.sources.memory import MemorySource
from kelr.sources.side_by_side import SideBySide, decide_side_by_side
from tests.incident import INCIDENT

ORDERS_1 = TopicPartition("orders", 1)


class Counting(MemorySource):
    """Counts which logs were asked for."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot)
        self.asked: list[TopicPartition] = []

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        self.asked += [state.address for state in partitions]
        return super().replica_logs(partitions, lineage=lineage, progress=progress)

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        return super().pages(selection, page_size=page_size or 2, start=start)


def decided(source: MemorySource, text: str, *, only_unsafe: bool = False, targets: Sequence[str] = ()) -> SideBySide:
    assumptions = parse_assumptions(text) if text else ()
    rule_sets = (None, ELR_4_0, KIP966_AGGRESSIVE)
    return decide_side_by_side(
        source, select(targets), rule_sets, assumptions, clock_ms=lambda: 0, only_unsafe=only_unsafe
    )


def test_logs_are_read_once_for_all_rule_sets_and_pages() -> None:
    source = Counting(INCIDENT)
    found = decided(source, "1 returns")
    assert source.asked == [state.address for state in INCIDENT.partitions]
    assert [one.rules for one in found.decided] == ["elr-4.1", "elr-4.0", "kip966-aggressive"]
    for one in found.decided:
        assert [TopicPartition(d.topic, d.partition) for d in one.decisions] == source.asked
        assert one.snapshot.taken_at_ms == INCIDENT.taken_at_ms


def test_only_what_is_unsafe_before_or_after_is_asked_and_decided() -> None:
    source = Counting(INCIDENT)
    assert TopicPartition("orders", 0) not in [
        TopicPartition(d.topic, d.partition) for d in decided(source, "", only_unsafe=True).decided[0].decisions
    ]
    assert TopicPartition("orders", 0) not in source.asked
    endangered = Counting(INCIDENT)
    decided(endangered, "3 fails", only_unsafe=True)
    assert TopicPartition("orders", 0) in endangered.asked
    cured = decided(Counting(INCIDENT), "1 returns", only_unsafe=True, targets=["orders:1"]).decided[0].decisions
    assert [decision.leader for decision in cured] == [1]


def test_brokers_that_only_another_page_names_can_be_imagined() -> None:
    # Broker 4 is not registered, and only orders:2 has a replica on it.
    found = decided(Counting(INCIDENT), "4 returns")
    assert set(found.decided[0].happened[0].changes) == {TopicPartition("orders", 2)}
    with pytest.raises(AssumptionError, match=r"broker 5 is neither registered nor a replica .*; 1, 2, 3 and 4 are"):
        decided(Counting(INCIDENT), "5 returns")


def test_a_partition_that_moves_while_its_logs_are_read_is_imagined_from_its_new_state() -> None:
    led = replace(INCIDENT.partitions[1], leader=3, leader_epoch=3, isr=(3,), elr=(), last_known_elr=())

    class Moving(Counting):
        def replica_logs(
            self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
        ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
            logs = super().replica_logs(partitions, lineage=lineage, progress=progress)
            self._snapshot = replace(INCIDENT, partitions=(led,))
            newer = {ORDERS_1: tuple(_newer(answer) for answer in logs[ORDERS_1])}
            return {**logs, **newer}

    found = decided(Moving(replace(INCIDENT, partitions=INCIDENT.partitions[1:2])), "3 fails")
    (decision,) = found.decided[0].decisions
    assert (decision.leader, decision.leader_epoch, decision.elr) == (None, 4, (3,))


def _newer(answer: LogAnswer) -> LogAnswer:
    return replace(answer, current_leader_epoch=3) if isinstance(answer, ReplicaLog) else answer


def test_what_cannot_be_described_is_said() -> None:
    found = decided(Counting(INCIDENT), "1 returns", targets=["orders:1", "nope"])
    assert [error.topic for error in found.topic_errors] == ["nope"]
    nothing = decided(Counting(INCIDENT), "1 returns", targets=["nope"])
    assert nothing.decided[0].decisions == ()


def test_the_newest_rules_by_name_say_what_they_say() -> None:
    found = decide_side_by_side(Counting(INCIDENT), select(["orders:2"]), (ELR_4_3, ELR_4_0), clock_ms=lambda: 0)
    assert [one.decisions[0].elected for one in found.decided] == [None, 4]
