"""Groups, transactions, producers and ACLs: a cluster that never had one, and what kelr reads from it."""

from __future__ import annotations

from typing import Any

import pytest

from kelr.controller import events
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied
from kelr.model import TopicPartition, select
from kelr.model.afterwards import CommittedOffsets
from kelr.protocol.messages import (
    DescribeAclsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
)
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.afterwards import LiveAfterwards
from kelr.sources.live.coordinators import names_in
from kelr.sources.live.source import LiveSource
from kelr.sources.live.transport import Request
from tests.lab.simulated.asking import ask, name, world

NO_COORDINATOR, NOT_THIS_ONE = "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"


@pytest.mark.parametrize("version", range(7))
def test_nobody_coordinates(version: int) -> None:
    asked = FindCoordinatorRequest(version=version, key="g", key_type=0, coordinator_keys=["g", "h"])
    answer = ask(world(), asked)
    if version < 4:
        assert (name(answer.error_code), answer.node_id, answer.port) == (NO_COORDINATOR, -1, -1)
        return
    found = [(one.key, name(one.error_code), one.node_id) for one in answer.coordinators]
    assert found == [("g", NO_COORDINATOR, -1), ("h", NO_COORDINATOR, -1)]


def test_a_kind_of_coordinator_that_kafka_does_not_know() -> None:
    answer = ask(world(), FindCoordinatorRequest(version=4, key_type=7, coordinator_keys=["x"]))
    assert [name(one.error_code) for one in answer.coordinators] == ["INVALID_REQUEST"]


def test_there_are_no_groups_and_no_transactions() -> None:
    cluster = world()
    for version in range(6):
        groups = ask(cluster, ListGroupsRequest(version=version))
        assert (name(groups.error_code), groups.groups) == ("NONE", [])
    asked = ListTransactionsRequest(version=1, state_filters=["Ongoing", "Nope"], producer_id_filters=[])
    listed = ask(cluster, asked)
    assert (name(listed.error_code), listed.transaction_states, listed.unknown_state_filters) == ("NONE", [], ["Nope"])


@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_named_is_another_brokers(version: int) -> None:
    answer = ask(world(), DescribeGroupsRequest(version=version, groups=["g"]))
    assert [(one.group_id, name(one.error_code), one.members) for one in answer.groups] == [("g", NOT_THIS_ONE, [])]


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_and_transactions_that_are_named_are_another_brokers(version: int) -> None:
    cluster = world((1, 2, 3))
    made = OffsetFetchRequest
    if version < 8:
        answer = ask(cluster, made(version=version, group_id="g", topics=[]))
        found = name(answer.error_code) if version >= 2 else NOT_THIS_ONE
    else:
        group = made.OffsetFetchRequestGroup(group_id="g", topics=None)
        [one] = ask(cluster, made(version=version, groups=[group], require_stable=True)).groups
        found = name(one.error_code)
    assert found == NOT_THIS_ONE
    [state] = ask(cluster, DescribeTransactionsRequest(version=0, transactional_ids=["t"])).transaction_states
    assert (state.transactional_id, name(state.error_code)) == ("t", NOT_THIS_ONE)


def _producers(cluster: Any, topic: str, number: int, node: int) -> tuple[str, str | None]:
    made = DescribeProducersRequest
    asked = made(version=0, topics=[made.TopicRequest(name=topic, partition_indexes=[number])])
    [one] = ask(cluster, asked, node=node).topics[0].partitions
    assert one.active_producers == []
    return name(one.error_code), one.error_message


def test_who_holds_a_log_knows_of_its_producers() -> None:
    cluster = world((1, 2))
    unknown = ("UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
    assert [_producers(cluster, "orders", 0, node)[0] for node in (1, 2, 3)] == [
        "NONE",
        "NONE",
        "NOT_LEADER_OR_FOLLOWER",
    ]
    assert _producers(cluster, "orders", 7, 1) == ("UNKNOWN_TOPIC_OR_PARTITION", None)
    assert _producers(cluster, "nope", 0, 1) == unknown
    assert _producers(cluster, "n o", 0, 1)[0] == "INVALID_TOPIC_EXCEPTION"
    cluster.denied.add(Denied("topic", "READ", "orders"))
    assert _producers(cluster, "orders", 0, 1)[0] == "TOPIC_AUTHORIZATION_FAILED"


def test_there_is_an_authorizer_once_something_is_denied() -> None:
    asked = DescribeAclsRequest(
        version=3,
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    cluster = world()
    answer = ask(cluster, asked)
    assert (name(answer.error_code), answer.error_message) == (
        "SECURITY_DISABLED",
        "No Authorizer is configured on the broker",
    )
    cluster.denied.add(Denied("topic", "READ"))
    assert name(ask(cluster, asked).error_code) == "NONE"
    cluster.denied.add(Denied("cluster", "DESCRIBE"))
    assert name(ask(cluster, asked).error_code) == "CLUSTER_AUTHORIZATION_FAILED"


def test_kelr_reads_that_there_are_no_transactions_and_no_groups() -> None:
    with SimulatedServer(SimulatedSpec(rules="elr-4.3")) as server:
        server.inside(lambda cluster: cluster.running.ask(events.TopicCreated("orders", ((1, 2, 3), (2, 3, 1)))))
        with LiveSource(ConnectionSettings.read(server.bootstrap_servers)) as source:
            after, orders = LiveAfterwards(source), select(["orders"])
            states = [state for page in source.pages(orders) for state in page.partitions]
            addresses = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
            assert after.open_transactions(states) == dict.fromkeys(addresses, ())
            committed = after.committed_offsets(addresses)
    assert committed == CommittedOffsets()


def test_where_kafkas_own_topics_are_there_their_leaders_have_loaded_them() -> None:
    """So that kelr, which asks before it believes that there is no group, believes it."""
    replicas = ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2))
    made = [events.TopicCreated(topic, replicas) for topic in ("orders", "__consumer_offsets", "__transaction_state")]
    with SimulatedServer(SimulatedSpec(rules="elr-4.3")) as server:
        server.inside(lambda cluster: [cluster.running.ask(one) for one in made])
        with LiveSource(ConnectionSettings.read(server.bootstrap_servers)) as source:
            committed = LiveAfterwards(source).committed_offsets([TopicPartition("orders", 0)])
            transport, _ = source.connection()
            asked = Request("DescribeTransactions", {"transactional_ids": [names_in(4)[3]]})
            answers: list[Any] = [transport.exchange(node, asked, timeout_s=5) for node in (1, 2, 3)]
    assert committed == CommittedOffsets()
    told = [name(one.error_code) for answer in answers for one in answer.transaction_states]
    assert told == ["TRANSACTIONAL_ID_NOT_FOUND", NOT_THIS_ONE, NOT_THIS_ONE]
