"""A live broker that hangs: it holds nobody up for long, and what was read before is looked at again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kelr.model import BrokerStatus, Decision, LogAnswer, LogUnavailable, LogUnavailableReason, ReplicaLog, select
from kelr.sources.connection import ConnectionSettings
from kelr.sources.decisions import decide_partitions
from kelr.sources.live import LiveSource
from kelr.sources.live.failures import NO_ANSWER
from kelr.sources.memory import MemorySource
from tests.sources.fake_cluster import FakeCluster, FakeTransport
from tests.sources.samples import CLUSTER, NOW_MS, PARTITIONS, SNAPSHOT, fake_cluster, fake_log

LED = PARTITIONS[0]
"""Led by broker 2, 3 in sync with it, 1 fenced."""
ABOUT_LOGS = {"ListOffsets", "Fetch"}


class Timed(FakeTransport):
    """Remembers how long each broker was given for what it was asked about logs."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(cluster)
        self.given: dict[object, list[float | None]] = {}

    def exchange(self, node: Any, request: Any, *, timeout_s: float | None = None) -> Any:
        if request.name in ABOUT_LOGS:
            self.given.setdefault(node, []).append(timeout_s)
        return super().exchange(node, request, timeout_s=timeout_s)


def _source(transport: FakeTransport, timeout_s: float) -> LiveSource:
    return LiveSource(
        ConnectionSettings((("127.0.0.1", 1),), timeout_s=timeout_s),
        connect=lambda _settings: transport,
        clock_ms=lambda: NOW_MS,
    )


@pytest.mark.parametrize(("timeout_s", "first_s"), [(2, 2), (5, 5), (30, 5), (120, 20)])
def test_a_live_broker_has_little_time_until_it_has_answered_once(timeout_s: float, first_s: float) -> None:
    transport = Timed(fake_cluster())
    _source(transport, timeout_s).replica_logs([LED], lineage=True)
    assert transport.given[3][0] == first_s
    assert {*transport.given[3][1:]} == {timeout_s}
    assert {*transport.given[1]} == {2}


def test_one_that_hangs_is_named_with_the_time_that_it_was_given() -> None:
    cluster = fake_cluster()
    cluster.failures[3] = NO_ANSWER
    transport = Timed(cluster)
    answers = _source(transport, 30).replica_logs([LED], lineage=True)[LED.address]
    assert answers[2] == LogUnavailable(3, LogUnavailableReason.TIMED_OUT, "no answer within 5 s", NOW_MS)
    assert isinstance(answers[1], ReplicaLog)
    assert transport.given[3] == [5]


class Freezes:
    """Broker 2 stands still when it is asked about its log. While that is waited for, `then` happens."""

    def __init__(self, cluster: FakeCluster, *, fenced: bool) -> None:
        self.asked = list[tuple[object, str]]()
        self._cluster, self._fenced = cluster, fenced
        cluster.before = self

    def __call__(self, node: object, name: str) -> Any:
        self.asked.append((node, name))
        if node != 2 or name not in ABOUT_LOGS:
            return None
        if self._fenced:
            brokers = tuple(replace(one, status=BrokerStatus.FENCED) if one.id == 2 else one for one in CLUSTER.brokers)
            self._cluster.cluster = replace(CLUSTER, brokers=brokers)
            led_by_3 = replace(LED, leader=3, leader_epoch=6, isr=(3,), elr=(2,), offline_replicas=(1, 2))
            self._cluster.partitions[LED.address] = led_by_3
            self._cluster.logs[3, LED.address] = fake_log(led_by_3, 23, (0, 0), (6, 20))
        return NO_ANSWER

    def count(self, node: object, name: str) -> int:
        return self.asked.count((node, name))


def _decided(cluster: FakeCluster) -> tuple[Decision, tuple[LogAnswer, ...]]:
    source, times = _source(FakeTransport(cluster), 30), iter((NOW_MS, NOW_MS + 5_000, NOW_MS + 7_000))
    (page,) = decide_partitions(source, select([str(LED.address)]), clock_ms=lambda: next(times))
    assert page.snapshot.taken_at_ms == NOW_MS + 5_000
    return page.decisions[0], page.snapshot.logs[LED.address]


def test_after_waiting_for_one_the_partition_is_read_again_with_its_logs() -> None:
    cluster = fake_cluster()
    Freezes(cluster, fenced=True)
    decision, logs = _decided(cluster)
    assert (decision.leader, decision.leader_epoch, decision.elr) == (3, 6, (2,))
    assert {one.replica: one.status for one in decision.candidates} == {1: "fenced", 2: "fenced", 3: "live"}
    assert isinstance(logs[2], ReplicaLog)
    assert (logs[2].log_end, logs[2].current_leader_epoch) == (23, 6)
    assert isinstance(logs[1], LogUnavailable)
    assert logs[1].detail == "no answer within 2 s"


def test_one_that_is_not_fenced_yet_is_waited_for_once() -> None:
    cluster = fake_cluster()
    frozen = Freezes(cluster, fenced=False)
    decision, _ = _decided(cluster)
    assert (decision.leader, decision.summary) == (
        2,
        "orders:0 is led by broker 2 (leader epoch 5): healthy by the cluster's metadata, but the leader did not answer"
        " (no answer within 5 s).",
    )
    assert frozen.count(2, "ListOffsets") == frozen.count(3, "ListOffsets") == 1
    assert sum(name == "DescribeCluster" for _, name in frozen.asked) == 2


def test_a_saved_silence_is_nothing_to_wait_for() -> None:
    silent = LogUnavailable(2, LogUnavailableReason.TIMED_OUT, "no answer within 5 s", NOW_MS)
    saved = {LED.address: (SNAPSHOT.logs[LED.address][0], silent, SNAPSHOT.logs[LED.address][2])}
    source = Counting(replace(SNAPSHOT, logs=saved))
    (page,) = decide_partitions(source, select([str(LED.address)]), clock_ms=lambda: NOW_MS)
    assert page.snapshot.logs[LED.address] == saved[LED.address]
    assert source.read == 1


class Counting(MemorySource):
    """Counts how often partitions are read."""

    read = 0

    def pages(self, *args: Any, **options: Any) -> Any:
        self.read += 1
        return super().pages(*args, **options)
