"""The small rules that the model's values hold themselves."""

from __future__ import annotations

import pytest

from kelr.model import (
    ELR_FEATURE,
    Bounds,
    Broker,
    BrokerStatus,
    Cluster,
    Features,
    ReplicaLog,
    TopicPartition,
)


@pytest.mark.parametrize(
    ("finalized", "enabled"),
    [(None, None), ({}, False), ({ELR_FEATURE: 0}, False), ({ELR_FEATURE: 1}, True)],
)
def test_elr_is_on_off_or_not_known(finalized: dict[str, int] | None, enabled: bool | None) -> None:
    assert Features(finalized).elr_enabled is enabled


@pytest.mark.parametrize(
    ("source", "status"),
    [("DescribeCluster v2", BrokerStatus.UNREGISTERED), ("Metadata v12", BrokerStatus.OFFLINE)],
)
def test_a_broker_that_is_not_listed(source: str, status: BrokerStatus) -> None:
    cluster = Cluster("x", (Broker(1, BrokerStatus.LIVE),), brokers_source=source)
    assert cluster.status(2) is status
    assert cluster.status(1) is BrokerStatus.LIVE


def test_only_live_brokers_are_live() -> None:
    cluster = Cluster("x", tuple(Broker(number, status) for number, status in enumerate(BrokerStatus)))
    assert cluster.live == {number for number, status in enumerate(BrokerStatus) if status is BrokerStatus.LIVE}


@pytest.mark.parametrize(
    ("bounds", "text"), [(Bounds(3, 3), "3"), (Bounds(3, None), "at least 3"), (Bounds(0, 4), "0 to 4")]
)
def test_bounds_in_words(bounds: Bounds, text: str) -> None:
    assert str(bounds) == text


@pytest.mark.parametrize(
    ("start", "end", "empty"), [(0, 0, True), (5, 5, True), (0, 5, False), (None, 5, False), (None, 0, False)]
)
def test_a_log_is_empty_only_where_that_is_known(start: int | None, end: int, empty: bool) -> None:
    assert ReplicaLog(1, end, log_start=start).is_empty is empty


def test_addresses_sort_by_number_and_print_as_targets() -> None:
    addresses = [TopicPartition("b", 1), TopicPartition("a", 10), TopicPartition("a", 9)]
    assert [str(address) for address in sorted(addresses)] == ["a:9", "a:10", "b:1"]
