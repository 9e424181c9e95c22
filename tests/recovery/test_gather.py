"""Waiting for logs: until the whole quorum was heard, within a window, until a leader is there, or time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from kelr.model import (
    BrokerStatus,
    ElectionType,
    EpochEnd,
    LogAnswer,
    LogUnavailable,
    LogUnavailableReason,
    PartitionState,
    ReplicaLog,
    Selection,
    Snapshot,
    Target,
    TopicPartition,
)
from kelr.model.waiting import Waiting
from kelr.recovery.gather import (
    Owing,
    PollInterval,
    gather,
    gather_until,
    is_led,
    quorum_owing,
    selection_of,
    window_owing,
)
from kelr.sources.base import Page, Progress
from kelr.sources.memory import MemorySource
from tests.incident import CLUSTER, INCIDENT, LOGS
from tests.still_ground import StillGround

AT = TopicPartition("orders", 1)
ONE = selection_of([AT])
BACK = ReplicaLog(1, 140, 0, 2, 130, 0, lineage=(EpochEnd(0, 140),), source="ListOffsets+Fetch")


def no_number(_at: TopicPartition) -> int | None:
    return None


def with_broker_1(*, leader: int | None = None) -> Snapshot:
    """The incident once broker 1 is live again and has told what its log holds."""
    brokers = tuple(replace(one, status=BrokerStatus.LIVE) for one in CLUSTER.brokers)
    partitions = tuple(
        replace(state, leader=leader, leader_epoch=3, isr=(leader,)) if state.address == AT and leader else state
        for state in INCIDENT.partitions
    )
    return replace(
        INCIDENT,
        cluster=replace(CLUSTER, brokers=brokers),
        partitions=partitions,
        logs={**LOGS, AT: (LOGS[AT][0], BACK, LOGS[AT][2])},
    )


def silent(*replicas: int) -> Snapshot:
    """The incident with these replicas' logs unheard."""
    answers: tuple[LogAnswer, ...] = tuple(
        LogUnavailable(one.replica, LogUnavailableReason.UNREACHABLE) if one.replica in replicas else one
        for one in LOGS[AT]
    )
    return replace(INCIDENT, logs={**LOGS, AT: answers})


class Clock(StillGround):
    """With the rhythm that it beats."""

    def rhythm(self, limit_s: float = 30.0) -> PollInterval:
        return PollInterval(limit_s, self)


class Changing(MemorySource):
    """A live cluster that is another one after each time that it is read anew; the last stays."""

    def __init__(self, *snapshots: Snapshot) -> None:
        super().__init__(snapshots[0])
        self._later = list(snapshots[1:])
        self.read: list[Selection] = []
        self.logs_of: list[TopicPartition] = []

    @property
    def taken_at_ms(self) -> int | None:
        return None

    def forget(self) -> None:
        if self._later:
            self._snapshot = self._later.pop(0)

    def pages(
        self, selection: Selection, *, page_size: int | None = None, start: TopicPartition | None = None
    ) -> Iterator[Page]:
        self.read.append(selection)
        del page_size  # each partition is a page of its own
        return super().pages(selection, page_size=1, start=start)

    def replica_logs(
        self, partitions: Sequence[PartitionState], *, lineage: bool = False, progress: Progress | None = None
    ) -> Mapping[TopicPartition, tuple[LogAnswer, ...]]:
        self.logs_of += [one.address for one in partitions]
        return super().replica_logs(partitions, lineage=lineage, progress=progress)


def waited(
    source: Changing, owing: Owing, clock: Clock, selection: Selection = ONE, limit_s: float = 30.0
) -> tuple[dict[TopicPartition, int | None], list[Waiting]]:
    """Who would be elected for the longest log when the waiting is over, and each moment of it."""
    seen: list[Waiting] = []
    first = gather(source, selection, clock_ms=lambda: 1)
    found = gather_until(source, first, owing, rhythm=clock.rhythm(limit_s), clock_ms=lambda: 2, report=seen.append)
    elected = {
        TopicPartition(one.topic, one.partition): next(
            outcome.elected for outcome in one.elections if outcome.election is ElectionType.LONGEST_LOG_BALANCED
        )
        for one in found.decisions
    }
    return elected, seen


def test_the_balanced_election_waits_until_the_last_of_the_quorum_was_heard() -> None:
    clock = Clock()
    source = Changing(INCIDENT, INCIDENT, with_broker_1())
    elected, seen = waited(source, quorum_owing(no_number), clock)
    assert elected == {AT: 1}
    assert [moment.open for moment in seen] == [(AT,), (AT,), ()]
    assert [dict(moment.missing) for moment in seen] == [{1: {"connection refused": 1}}] * 2 + [{}]
    assert dict(seen[0].answered) == {2: 1, 3: 1}
    assert clock.slept == [1.0, 1.0]


def test_it_gives_up_when_time_is_up_and_nobody_is_elected() -> None:
    clock = Clock()
    elected, seen = waited(Changing(INCIDENT), quorum_owing(no_number), clock, limit_s=2.5)
    assert elected == {AT: None}
    assert clock.slept == [1.0, 1.0, 0.5]
    assert (seen[-1].passed_s, seen[-1].open) == (2.5, (AT,))


def test_a_partition_that_gets_a_leader_by_itself_is_waited_for_no_more() -> None:
    clock = Clock()
    source = Changing(INCIDENT, with_broker_1(leader=1))
    first = gather(source, ONE, clock_ms=lambda: 1)
    found = gather_until(
        source, first, quorum_owing(no_number), rhythm=clock.rhythm(), clock_ms=lambda: 2, report=lambda _moment: None
    )
    assert [one.leader for one in found.decisions] == [1]
    assert clock.slept == [1.0]


def test_only_partitions_that_still_wait_are_read_again() -> None:
    clock = Clock()
    source = Changing(INCIDENT, with_broker_1())
    waited(source, quorum_owing(no_number), clock, Selection((Target(topic="orders"),)), limit_s=2)
    assert source.read == [
        Selection((Target(topic="orders"),)),
        selection_of([AT, TopicPartition("orders", 2)]),
        selection_of([TopicPartition("orders", 2)]),
    ]


def test_nobody_is_asked_again_where_everybody_has_answered() -> None:
    clock = Clock()
    elected, seen = waited(Changing(with_broker_1()), quorum_owing(no_number), clock)
    assert (elected, clock.slept, [moment.open for moment in seen]) == ({AT: 1}, [], [()])


def test_a_saved_snapshot_is_not_waited_for() -> None:
    clock = Clock()
    source = MemorySource(INCIDENT)
    first = gather(source, ONE, clock_ms=lambda: 1)
    gather_until(
        source, first, quorum_owing(no_number), rhythm=clock.rhythm(), clock_ms=lambda: 2, report=lambda _moment: None
    )
    assert clock.slept == []


def test_aggressive_waits_for_every_live_replica_within_its_window() -> None:
    clock = Clock()
    _, seen = waited(Changing(silent(2), silent(2), INCIDENT), window_owing(5, no_number), clock)
    assert clock.slept == [1.0, 1.0]
    assert [dict(moment.missing) for moment in seen] == [{2: {"unreachable": 1}}] * 2 + [{}]


def test_aggressive_takes_what_it_has_when_its_window_is_over() -> None:
    clock = Clock()
    _, seen = waited(Changing(silent(2)), window_owing(5, no_number), clock)
    assert clock.steady_s() == 5
    assert seen[-1].open == ()


def test_with_no_answer_within_the_window_aggressive_takes_the_first_after_it() -> None:
    clock = Clock()
    _, seen = waited(Changing(*[silent(2, 3)] * 8, silent(3)), window_owing(5, no_number), clock)
    assert clock.steady_s() == 8
    missing = [dict(moment.missing) for moment in seen]
    assert missing == [{2: {"unreachable": 1}, 3: {"unreachable": 1}}] * 8 + [{}]


@pytest.mark.parametrize("owing", [quorum_owing, lambda number: window_owing(5, number)])
def test_so_many_logs_are_waited_for_as_were_asked_for(
    owing: Callable[[Callable[[TopicPartition], int | None]], Owing],
) -> None:
    clock = Clock()
    _, seen = waited(Changing(INCIDENT, with_broker_1()), owing(lambda _at: 3), clock)
    assert [set(moment.missing) for moment in seen] == [{1}, set()]


def test_logs_are_asked_for_only_where_nobody_leads() -> None:
    source = Changing(INCIDENT)
    found = gather(source, Selection(), clock_ms=lambda: 1)
    assert source.logs_of == [AT, TopicPartition("orders", 2)]
    assert len(found.decisions) == len(INCIDENT.partitions)


def test_partitions_with_nothing_to_do_are_left_out_and_counted() -> None:
    found = gather(MemorySource(INCIDENT), Selection(), clock_ms=lambda: 1, leave_out=is_led)
    assert [(one.topic, one.partition) for one in found.decisions] == [("orders", 1), ("orders", 2)]
    assert [str(state.address) for state in found.left_out] == ["orders:0", "payments:0", "secret:0"]
    assert {state.address for state in found.snapshot.partitions} == {AT, TopicPartition("orders", 2)}


def test_several_pages_are_one_reading() -> None:
    found = gather(Changing(INCIDENT), Selection(), clock_ms=lambda: 1)
    whole = gather(MemorySource(INCIDENT), Selection(), clock_ms=lambda: 1)
    assert found.decisions == whole.decisions
    assert found.snapshot.configs == whole.snapshot.configs
    assert found.snapshot.first_partition_replicas == whole.snapshot.first_partition_replicas


def test_topics_that_do_not_exist_are_errors_beside_the_rest() -> None:
    found = gather(Changing(INCIDENT), selection_of([AT, TopicPartition("nope", 0)]), clock_ms=lambda: 1)
    assert [one.topic for one in found.decisions] == ["orders"]
    assert [error.topic for error in found.snapshot.topic_errors] == ["nope"]
