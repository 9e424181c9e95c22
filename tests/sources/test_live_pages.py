"""Pages of a live cluster beyond the contract: what goes over the wire, old brokers, errors, brokers that die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kelr.errors import AuthenticationError, ConnectError, UnsupportedError
from kelr.model import Broker, BrokerStatus, ConfigSource, Features, PartitionState, TopicConfig, TopicPartition, select
from kelr.protocol.messages import DescribeTopicPartitionsResponse
from kelr.sources.base import Page
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource, pages, topic_configs
from kelr.sources.live.transport import Failure, FailureKind, NodeId
from tests.sources.fake_cluster import BEFORE_3_8, KAFKA_2_4, MODERN, FakeCluster, FakeTransport
from tests.sources.samples import CLUSTER, PARTITIONS, fake_cluster, state


def _source(cluster: FakeCluster, *, timeout_s: float = 0.4) -> LiveSource:
    settings = ConnectionSettings((("127.0.0.1", 1),), timeout_s=timeout_s)
    return LiveSource(settings, connect=lambda _settings: FakeTransport(cluster))


def _read(cluster: FakeCluster, *targets: str, size: int | None = None) -> list[Page]:
    return list(_source(cluster).pages(select(targets), page_size=size))


def _partitions(read: list[Page]) -> tuple[PartitionState, ...]:
    return tuple(partition for page in read for partition in page.partitions)


def _count(cluster: FakeCluster, name: str) -> int:
    return sum(asked == name for _, asked, _ in cluster.requests)


def test_pages_are_asked_for_only_when_they_are_wanted() -> None:
    cluster = fake_cluster()
    stream = _source(cluster).pages(select([]), page_size=1)
    next(stream)
    assert _count(cluster, "DescribeTopicPartitions") == 1
    next(stream)
    assert _count(cluster, "DescribeTopicPartitions") == 2


def test_a_brokers_smaller_page_limit_is_followed() -> None:
    cluster = fake_cluster()
    cluster.page_limit = 2
    read = _read(cluster, size=1000)
    assert _partitions(read) == PARTITIONS
    assert [len(page.partitions) for page in read] == [2, 2, 1]


def test_named_topics_go_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "TOPICS_A_SLICE", 2)
    names = [f"topic-{number}" for number in range(5)]
    partitions = {TopicPartition(name, 0): state(name, 0, topic_id=None) for name in names}
    cluster = FakeCluster(CLUSTER, partitions)
    source = _source(cluster)
    read = list(source.pages(select(names)))
    assert [partition.topic for partition in _partitions(read)] == names
    assert [page.next_cursor for page in read] == [TopicPartition("topic-2", 0), TopicPartition("topic-4", 0), None]
    rest = source.pages(select(names), start=read[0].next_cursor)
    assert _partitions(list(rest)) == _partitions(read[1:])


@pytest.mark.parametrize("targets", [["orders", "payments"], ["*s", "orders"]])
def test_a_topic_that_may_not_be_read_is_told_apart_and_told_once(targets: list[str]) -> None:
    cluster = fake_cluster()
    cluster.unauthorized = frozenset({"orders"})
    read = _read(cluster, *targets, size=1)
    assert {partition.topic for partition in _partitions(read)} == {"payments"}
    errors = [error for page in read for error in page.topic_errors]
    assert [(error.topic, error.error) for error in errors] == [("orders", "TOPIC_AUTHORIZATION_FAILED")]


@pytest.mark.parametrize(
    ("finalized", "empty_means"), [({"eligible.leader.replicas.version": 1}, ()), ({}, None), (None, None)]
)
def test_an_empty_elr_is_known_to_be_empty_only_where_the_feature_is_on(
    finalized: dict[str, int] | None, empty_means: tuple[int, ...] | None
) -> None:
    cluster = fake_cluster()
    cluster.cluster = replace(CLUSTER, features=Features(finalized, finalized))
    first, leaderless = _partitions(_read(cluster, "orders:0-1"))
    assert (first.elr, first.last_known_elr) == (empty_means, empty_means)
    assert (leaderless.elr, leaderless.last_known_elr) == ((1,), (1,)), "a set that is there still elects"


@pytest.mark.parametrize("versions", [BEFORE_3_8, KAFKA_2_4])
def test_brokers_without_describe_topic_partitions(versions: dict[int, int]) -> None:
    cluster = fake_cluster()
    cluster.versions = versions
    source = _source(cluster)
    assert source.cluster().partitions_source == "Metadata"
    for targets in ([], ["orders", "payments"], ["orders:0-2", "pay*"]):
        found = _partitions(list(source.pages(select(targets))))
        assert [partition.address for partition in found] == [partition.address for partition in PARTITIONS]
        assert {(partition.elr, partition.last_known_elr) for partition in found} == {(None, None)}
        assert [partition.leader for partition in found] == [partition.leader for partition in PARTITIONS]
        assert [partition.leader_epoch for partition in found] == [partition.leader_epoch for partition in PARTITIONS]
    rest = source.pages(select([]), start=TopicPartition("orders", 2))
    assert [str(partition.address) for partition in _partitions(list(rest))] == [
        "orders:2",
        "payments:0",
        "payments:1",
    ]
    missing = [error for page in source.pages(select(["absent", "orders:7"])) for error in page.topic_errors]
    assert [(error.topic, error.error) for error in missing] == [
        ("absent", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", "UNKNOWN_TOPIC_OR_PARTITION"),
    ]


def test_brokers_too_old_for_leader_epochs_are_refused() -> None:
    cluster = fake_cluster()
    cluster.versions = {3: 5, 18: 2}
    with pytest.raises(UnsupportedError, match="leader epochs"):
        _read(cluster)


def test_a_proxy_that_announces_key_75_and_does_not_know_it_falls_back_to_metadata() -> None:
    cluster = fake_cluster()

    def refuse(_node: object, name: str) -> Failure | None:
        return Failure(FailureKind.UNSUPPORTED, "no") if name == "DescribeTopicPartitions" else None

    cluster.before = refuse
    assert {partition.elr for partition in _partitions(_read(cluster))} == {None}


def test_when_a_broker_dies_between_pages_another_goes_on_from_the_cursor() -> None:
    cluster = fake_cluster()
    stream = _source(cluster).pages(select([]), page_size=2)
    first = next(stream)
    cluster.dead.update({"bootstrap-0", 1, 2})
    assert _partitions([first, *stream]) == PARTITIONS
    assert cluster.requests[-1][0] == 3


def test_when_all_brokers_die_between_pages_the_error_says_so() -> None:
    cluster = fake_cluster()
    stream = _source(cluster).pages(select([]), page_size=2)
    next(stream)
    cluster.dead.update({"bootstrap-0", 1, 2, 3})
    with pytest.raises(
        ConnectError, match=r"no broker answered any more within 0\.4 s; .*connection refused"
    ) as caught:
        list(stream)
    assert caught.value.next_step


def test_refused_credentials_later_on_are_still_refused_credentials() -> None:
    cluster = fake_cluster()
    source = _source(cluster)
    source.cluster()
    for node in ("bootstrap-0", 2, 3):
        cluster.failures[node] = Failure(FailureKind.AUTHENTICATION, "bad password")
    with pytest.raises(AuthenticationError, match="bad password"):
        list(source.pages(select([])))


def _garbled(cluster: FakeCluster, name: str, change: Callable[[Any], None]) -> FakeCluster:
    original = cluster.answer

    def answer(node: Any, request: Any) -> Any:
        reply = original(node, request)
        if request.name == name:
            change(reply)
        return reply

    cluster.answer = answer  # type: ignore[method-assign]
    return cluster


def test_an_isr_from_before_a_reassignment_ended_costs_its_topic_alone() -> None:
    """As brokers of a ZooKeeper cluster tell it for a moment; with what KRaft brokers tell, nothing would be right."""

    def late(reply: Any) -> None:
        for topic in reply.topics:
            if topic.name == "orders":
                topic.partitions[0].isr_nodes.append(9)

    cluster = _garbled(fake_cluster(), "Metadata", late)
    cluster.versions = BEFORE_3_8
    read = _read(cluster)
    assert {partition.topic for partition in _partitions(read)} == {one.topic for one in PARTITIONS} - {"orders"}
    (error,) = (error for page in read for error in page.topic_errors)
    assert (error.topic, error.error) == ("orders", "INCONSISTENT_ISR")
    assert "9] is not among its replicas" in error.detail


def test_a_cursor_that_goes_back_ends_the_reading() -> None:
    def back(reply: Any) -> None:
        if reply.next_cursor is not None:
            reply.next_cursor.topic_name, reply.next_cursor.partition_index = "orders", 1

    with pytest.raises(ConnectError, match="went back"):
        _read(_garbled(fake_cluster(), "DescribeTopicPartitions", back), size=1)


@pytest.mark.parametrize(
    ("size", "selected", "words"),
    [
        (1, [], "asked to go on at z-00001:0, the broker told of topic orders, which comes before that"),
        (1, ["orders"], "asked to go on at z-00001:0, the broker told of topic orders, which comes before that"),
        (100, [], "asked to go on at z-00001:0, the broker told of topic"),
    ],
)
def test_a_cursor_that_advances_over_topics_that_were_there_ends_the_reading(
    size: int, selected: list[str], words: str
) -> None:
    cluster, asked = fake_cluster(), 0
    original = cluster.answer

    def answer(node: Any, request: Any) -> Any:
        nonlocal asked
        if request.name != "DescribeTopicPartitions":
            return original(node, request)
        asked += 1
        assert asked < 100, "it would go on for ever"
        reply = original(node, replace(request, fields={**request.fields, "cursor": None}))
        reply.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=f"z-{asked:05}", partition_index=0)
        return reply

    cluster.answer = answer  # type: ignore[method-assign]
    with pytest.raises(ConnectError, match=f"{words}.*pages would never end"):
        _read(cluster, *selected, size=size)


@pytest.mark.parametrize(
    ("cursor", "words"),
    [
        (("a", 0), "told of topic orders, and its cursor goes back to a:0"),
        (("orders", 1), "told of 3 partitions from the beginning to its cursor orders:1"),
    ],
)
def test_a_cursor_that_is_behind_its_page_ends_the_reading(cursor: tuple[str, int], words: str) -> None:
    def behind(reply: Any) -> None:
        reply.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=cursor[0], partition_index=cursor[1])

    with pytest.raises(ConnectError, match=words):
        _read(_garbled(fake_cluster(), "DescribeTopicPartitions", behind), "orders")


def test_a_page_of_nothing_with_a_cursor_ends_the_reading() -> None:
    def empty(reply: Any) -> None:
        reply.topics, reply.next_cursor = [], DescribeTopicPartitionsResponse.Cursor(topic_name="z", partition_index=0)

    with pytest.raises(ConnectError, match="told of 0 partitions from the beginning to its cursor z:0"):
        _read(_garbled(fake_cluster(), "DescribeTopicPartitions", empty))


def test_more_partitions_than_a_cluster_has_end_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelr.sources.live.pages._MOST_PARTITIONS", 2)
    with pytest.raises(ConnectError, match="the broker told of 3 partitions, and goes on"):
        _read(fake_cluster(), size=1)


def test_a_topic_error_worth_repeating_is_repeated() -> None:
    asked = 0

    def once(reply: Any) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            reply.topics[0].error_code, reply.topics[0].partitions = 7, []

    assert _partitions(_read(_garbled(fake_cluster(), "DescribeTopicPartitions", once))) == PARTITIONS
    assert asked == 2


@pytest.mark.parametrize(
    ("versions", "source", "ids"),
    [
        ({3: 13, 18: 4, 60: 2, 75: 0}, "DescribeCluster v2", [1, 2, 3]),
        ({3: 12, 18: 3, 60: 1}, "DescribeCluster v1", [2, 3]),
        ({3: 12, 18: 3, 60: 0}, "DescribeCluster v0", [2, 3]),
        ({3: 9, 18: 2}, "Metadata v9", [2, 3]),
    ],
)
def test_brokers_come_from_the_best_request_there_is(versions: dict[int, int], source: str, ids: list[int]) -> None:
    cluster = fake_cluster()
    cluster.versions = versions
    found = _source(cluster).cluster()
    assert found.brokers_source == source
    assert [broker.id for broker in found.brokers] == ids
    assert found.live == {2, 3}
    assert found.broker(3) == Broker(3, BrokerStatus.LIVE, "127.0.0.1", 9103, "az3")
    assert found.status(1) is (BrokerStatus.FENCED if 1 in ids else BrokerStatus.OFFLINE)
    assert found.controller is None, "DescribeCluster and Metadata name a broker at random under KRaft"


def test_without_the_right_to_describe_the_cluster_the_list_is_of_live_brokers() -> None:
    def forbid(reply: Any) -> None:
        if reply.version == 2:
            reply.error_code = 31

    found = _source(_garbled(fake_cluster(), "DescribeCluster", forbid)).cluster()
    assert found.brokers_source == "DescribeCluster v1"
    assert found.live == {2, 3}


def test_features_are_unknown_where_brokers_do_not_tell() -> None:
    cluster = fake_cluster()
    cluster.versions = KAFKA_2_4
    assert _source(cluster).cluster().features == Features()


def _reassignments(cluster: FakeCluster) -> list[tuple[tuple[int, ...] | None, tuple[int, ...] | None]]:
    return [(partition.adding, partition.removing) for partition in _partitions(_read(cluster, "orders", "payments:0"))]


@pytest.mark.parametrize("versions", [MODERN, BEFORE_3_8])
def test_a_reassignment_under_way_is_seen_and_one_request_asks_for_all(versions: dict[int, int]) -> None:
    cluster = fake_cluster()
    cluster.versions = versions
    source = _source(cluster)
    assert source.cluster().reassignments_error is None
    found = _partitions([*source.pages(select([]), page_size=2), *source.pages(select(["orders"]))])
    assert [(p.adding, p.removing) for p in found[:4]] == [((), ()), ((), ()), ((3,), (1, 2)), ((), ())]
    assert _count(cluster, "ListPartitionReassignments") == 1


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"reassignments_error": 31}, "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster"),
        ({"reassignments_error": 41}, "NOT_CONTROLLER"),
        ({"versions": {key: newest for key, newest in MODERN.items() if key != 46}}, "does not support"),
    ],
)
def test_where_reassignments_are_not_told_they_are_unknown_and_not_none(change: dict[str, Any], why: str) -> None:
    cluster = replace(fake_cluster(), **change)
    assert why in str(_source(cluster).cluster().reassignments_error)
    assert set(_reassignments(cluster)) == {(None, None)}


def test_a_controller_that_is_silent_costs_what_it_alone_knows() -> None:
    """Brokers keep a request for the controller until there is one, and say nothing meanwhile."""
    cluster = fake_cluster()

    def silent(_node: object, name: str) -> Failure | None:
        forwarded = name in {"DescribeQuorum", "ListPartitionReassignments"}
        return Failure(FailureKind.TIMED_OUT, "no answer in time") if forwarded else None

    cluster.before = silent
    around = _source(cluster).cluster()
    assert (around.controller, around.reassignments_error) == (None, "no answer in time")
    assert around.live == {2, 3}
    assert set(_reassignments(cluster)) == {(None, None)}


def test_a_reassignment_that_changed_between_two_answers_is_unknown() -> None:
    def moved_on(reply: Any) -> None:
        reply.topics[0].partitions[0].replicas = [3, 1, 4]

    cluster = _garbled(fake_cluster(), "ListPartitionReassignments", moved_on)
    assert _reassignments(cluster) == [((), ()), ((), ()), (None, None), ((), ())]


def test_configs_are_asked_for_by_name_and_each_failure_is_its_topics() -> None:
    cluster = fake_cluster()
    cluster.configs = {
        "orders": {
            "min.insync.replicas": ("1", 1),
            "unclean.leader.election.enable": ("true", 4),
            "cleanup.policy": ("compact, delete", 1),
            "retention.ms": ("9", 1),
            "remote.storage.enable": ("true", 1),
            "mirror.name": ("", 1),
        },
        "payments": {
            "min.insync.replicas": ("2", 99),
            "cleanup.policy": ("", 5),
            "remote.storage.enable": ("false", 5),
            "diskless.enable": ("true", 1),
        },
    }
    cluster.unauthorized = frozenset({"secret"})
    assert _source(cluster).topic_configs(["secret", "payments", "orders", "absent"]) == {
        "orders": TopicConfig(
            1,
            ConfigSource.TOPIC,
            True,
            ConfigSource.STATIC,
            cleanup_policy=("compact", "delete"),
            remote_storage=True,
        ),
        "payments": TopicConfig(
            2, ConfigSource.UNKNOWN, cleanup_policy=(), remote_storage=False, foreign="diskless.enable=true"
        ),
        "secret": TopicConfig(error="TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic"),
        "absent": TopicConfig(error="UNKNOWN_TOPIC_OR_PARTITION"),
    }


def test_configs_of_many_topics_go_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_configs, "TOPICS_A_REQUEST", 1)
    cluster = fake_cluster()
    configs = _source(cluster).topic_configs(["orders", "payments", "absent"])
    assert (configs["orders"].error, configs["payments"].error) == (None, None)
    assert _count(cluster, "DescribeConfigs") == 3


def test_configs_that_nobody_tells_any_more_are_errors_and_not_the_end() -> None:
    cluster = fake_cluster()
    source = _source(cluster)
    source.cluster()
    cluster.before = lambda _node, name: Failure(FailureKind.UNREACHABLE, "gone") if name == "DescribeConfigs" else None
    assert source.topic_configs(["orders"]) == {"orders": TopicConfig(error="REQUEST_TIMED_OUT")}
    cluster.before = lambda _node, _name: Failure(FailureKind.UNSUPPORTED, "no such request")
    assert source.topic_configs(["orders"]) == {"orders": TopicConfig(error="UNSUPPORTED_VERSION")}


class _CutOff(FakeTransport):
    """The bootstrap server is a broker that no controller reaches: it tells what it knew when that began."""

    def __init__(self, cluster: FakeCluster, old: FakeCluster) -> None:
        super().__init__(cluster)
        self._now, self._old = cluster, old

    def exchange(self, node: NodeId, request: Any, *, timeout_s: float | None = None) -> Any:
        self.cluster = self._old if node == "bootstrap-0" else self._now
        return super().exchange(node, request, timeout_s=timeout_s)


def _asks_the_controller(_node: NodeId, name: str) -> Failure | None:
    asks = name in {"DescribeQuorum", "ListPartitionReassignments"}
    return Failure(FailureKind.TIMED_OUT, "no answer in time") if asks else None


def test_what_a_broker_tells_that_is_cut_off_from_the_controller_is_not_taken() -> None:
    """Brokers, features and partitions are those that a broker knows through which the controller answers."""
    now, old = fake_cluster(), fake_cluster()
    everybody_live = tuple(replace(one, status=BrokerStatus.LIVE) for one in CLUSTER.brokers)
    old.cluster = replace(CLUSTER, brokers=everybody_live, features=Features(finalized={"metadata.version": 7}))
    old.partitions = {at: replace(one, leader_epoch=0) for at, one in old.partitions.items()}
    old.before = _asks_the_controller
    settings = ConnectionSettings((("127.0.0.1", 1),), timeout_s=0.4)
    source = LiveSource(settings, connect=lambda _settings: _CutOff(now, old))
    plain = _source(fake_cluster())
    assert source.cluster() == plain.cluster()
    assert source.cluster().brokers != everybody_live
    assert source.controller_silence is None
    assert _partitions(list(source.pages(select([])))) == _partitions(list(plain.pages(select([]))))


def test_without_any_controller_the_first_broker_is_believed() -> None:
    cluster = fake_cluster()
    cluster.before = _asks_the_controller
    source = _source(cluster)
    assert source.cluster().brokers == _source(fake_cluster()).cluster().brokers
    assert source.controller_silence == "no answer in time"
    assert _count(cluster, "DescribeCluster") == 1
