"""Names that belong to a partition of Kafka's own topics, and who is asked for them."""

from __future__ import annotations

import pytest

from kelr.model.afterwards import Unread
from kelr.sources.live.coordinators import Coordinators, names_in, partition_of


def test_names_belong_where_kafka_places_them() -> None:
    """As Apache Kafka 4.3.1 answered for them with three partitions."""
    assert names_in(3) == {0: "kelr-probe-1", 1: "kelr-probe-2", 2: "kelr-probe-0"}


@pytest.mark.parametrize("partitions", [0, 1, 50, 500])
def test_each_partition_has_one(partitions: int) -> None:
    names = names_in(partitions)
    assert set(names) == set(range(partitions))
    assert len(set(names.values())) == partitions


def test_each_broker_is_asked_for_what_it_leads_among_all_partitions() -> None:
    names = names_in(4)
    found = Coordinators("t", 4, {0: 1, 3: 1, 2: 5}).probes()
    assert found == {1: {names[0]: 0, names[3]: 3}, 5: {names[2]: 2}}


def test_partitions_that_are_not_ready_for_one_reason_are_named_together() -> None:
    loading, denied = Unread("LOADING", passing=True), Unread("DENIED", "DESCRIBE on the group")
    coordinators = Coordinators("t", 4)
    assert coordinators.not_ready({}) is None
    found = coordinators.not_ready({2: loading, 1: loading, 3: denied})
    assert found == Unread("LOADING for partitions 1, 2 of t", passing=True)
    assert coordinators.not_ready({3: denied}) == Unread("DENIED for partition 3 of t", "DESCRIBE on the group")


@pytest.mark.parametrize(
    ("name", "partition"),
    [("", 0), ("a", 47), ("polygenelubricants", 0), ("it's-a-group", 7), ("\U0001f600", 49), ("a-negative-one", 20)],
)
def test_a_name_is_hashed_as_java_hashes_it(name: str, partition: int) -> None:
    """Expected: what a JVM makes of them; `polygenelubricants` has the hash that has no absolute value."""
    assert partition_of(name, 50) == partition
