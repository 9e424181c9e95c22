"""Metadata, DescribeCluster and DescribeQuorum of a simulated cluster, as Kafka 4.3.1 answers them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kelr.controller import events
from kelr.lab.simulated.world import Denied
from kelr.lab.spec import CONTROLLER_ID
from kelr.protocol.messages import DescribeClusterRequest, DescribeQuorumRequest, MetadataRequest
from kelr.sources.live.requests import authorized
from tests.lab.simulated.asking import CLUSTER_ID, ask, name, world

_ALL_ON_TOPIC = {3, 4, 5, 6, 7, 8, 10, 11}
_ALL_ON_CLUSTER = {5, 7, 8, 9, 10, 11, 12}


def metadata(*topics: Any, version: int = 12, **options: Any) -> Any:
    """Topics by name, or by id where they are ids; none at all for an empty list."""
    made = MetadataRequest.MetadataRequestTopic
    named = [made(name=None, topic_id=one) if isinstance(one, UUID) else made(name=one) for one in topics]
    return MetadataRequest(version=version, topics=named, allow_auto_topic_creation=True, **options)


# Metadata.


def test_live_brokers_with_their_racks_and_one_of_them_as_controller() -> None:
    answer = ask(world(), metadata())
    assert [(one.node_id, one.host, one.port, one.rack) for one in answer.brokers] == [
        (1, "127.0.0.1", 9001, "az1"),
        (2, "127.0.0.1", 9002, "az2"),
        (3, "127.0.0.1", 9003, "az3"),
    ]
    assert (answer.cluster_id, answer.topics) == (CLUSTER_ID, [])
    assert answer.controller_id in {1, 2, 3}


def test_the_broker_that_stands_for_the_controller_is_one_that_lives() -> None:
    cluster = world(brokers=5)
    for broker in (1, 2, 4, 5):
        cluster.running.kill(broker)
        cluster.running.advance(cluster.running.now_ms + 5000)
    answers = [ask(cluster, metadata(), node=node) for node in (1, 2, 3)]
    assert {answer.controller_id for answer in answers} == {3}
    assert [one.node_id for one in answers[0].brokers] == [3]


def test_a_broker_that_came_back_has_its_rack_again() -> None:
    cluster = world()
    cluster.running.kill(2)
    cluster.running.advance(cluster.running.now_ms + 5000)
    cluster.running.start(2)
    cluster.running.advance(cluster.running.now_ms + 5000)
    assert [one.rack for one in ask(cluster, metadata()).brokers] == ["az1", "az2", "az3"]


def test_unknown_topics_are_not_made() -> None:
    cluster = world((1, 2, 3))
    answer = ask(cluster, metadata("nope", "n o", "__consumer_offsets", "orders", "orders"))
    found = {topic.name: (name(topic.error_code), topic.is_internal, len(topic.partitions)) for topic in answer.topics}
    assert found == {
        "nope": ("UNKNOWN_TOPIC_OR_PARTITION", False, 0),
        "n o": ("INVALID_TOPIC_EXCEPTION", False, 0),
        "__consumer_offsets": ("UNKNOWN_TOPIC_OR_PARTITION", True, 0),
        "orders": ("NONE", False, 1),
    }
    assert len(answer.topics) == 4
    assert list(cluster.topics()) == ["orders"]


def test_topics_by_id() -> None:
    cluster = world((1, 2, 3), topics=3)
    stranger = UUID(int=77)
    known = [cluster.topic_id(topic) for topic in ("orders", "topic-000001")]
    answer = ask(cluster, metadata(*known, stranger))
    assert [(topic.name, topic.topic_id, name(topic.error_code)) for topic in answer.topics] == [
        ("orders", known[0], "NONE"),
        ("topic-000001", known[1], "NONE"),
        (None, stranger, "UNKNOWN_TOPIC_ID"),
    ]
    assert len(set(known)) == 2


def test_an_id_before_version_12_fails_the_whole_request() -> None:
    answer = ask(world((1, 2, 3)), metadata(UUID(int=5), version=11))
    assert (answer.brokers, answer.cluster_id, answer.controller_id) == ([], None, -1)
    assert [(topic.name, topic.topic_id, name(topic.error_code)) for topic in answer.topics] == [
        ("", UUID(int=5), "INVALID_REQUEST")
    ]


@pytest.mark.parametrize(("version", "topics"), [(0, 1), (1, 0), (12, 0)])
def test_an_empty_list_stands_for_all_topics_in_version_0_alone(version: int, topics: int) -> None:
    answer = ask(world((1, 2, 3)), MetadataRequest(version=version, topics=[]))
    assert len(answer.topics) == topics


def test_a_partition_without_leader_and_its_offline_replicas() -> None:
    cluster = world((1, 2), (2, 3), min_isr=1)
    for broker in (1, 2):
        cluster.running.kill(broker)
        cluster.running.advance(cluster.running.now_ms + 5000)
    [topic] = ask(cluster, metadata("orders"), node=3).topics
    found = [(name(one.error_code), one.leader_id, one.isr_nodes, one.offline_replicas) for one in topic.partitions]
    assert found == [("LEADER_NOT_AVAILABLE", -1, [], [1, 2]), ("NONE", 3, [3], [2])]


def test_version_0_leaves_out_brokers_that_are_away_and_says_so() -> None:
    cluster = world((1, 2, 3))
    cluster.running.kill(3)
    cluster.running.advance(cluster.running.now_ms + 5000)
    [topic] = ask(cluster, metadata("orders", version=0)).topics
    assert [(name(one.error_code), one.replica_nodes) for one in topic.partitions] == [
        ("REPLICA_NOT_AVAILABLE", [1, 2])
    ]


def test_a_broker_that_is_cut_off_knows_what_it_knew() -> None:
    cluster = world((1, 2, 3))
    cluster.running.sever(3, CONTROLLER_ID)
    cluster.running.kill(1)
    cluster.running.advance(cluster.running.now_ms + 5000)
    cluster.running.ask(events.TopicCreated("news", ((2, 1),)))
    cut_off, other = (ask(cluster, metadata("orders", "news"), node=node) for node in (3, 2))
    assert [one.node_id for one in cut_off.brokers] == [1, 2, 3]
    assert [one.node_id for one in other.brokers] == [2]
    assert [topic.partitions[0].leader_id for topic in cut_off.topics if topic.partitions] == [1]
    assert [name(topic.error_code) for topic in cut_off.topics] == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]
    assert [topic.partitions[0].leader_id for topic in other.topics] == [2, 2]


def test_what_a_client_may_do_is_told_where_it_asks() -> None:
    cluster = world((1, 2, 3))
    asked = metadata("orders", version=10, include_cluster_authorized_operations=True)
    assert authorized(ask(cluster, asked).cluster_authorized_operations) == _ALL_ON_CLUSTER
    assert authorized(ask(cluster, metadata("orders", version=10)).cluster_authorized_operations) is None
    asked = metadata("orders", include_topic_authorized_operations=True)
    assert authorized(ask(cluster, asked).topics[0].topic_authorized_operations) == _ALL_ON_TOPIC
    assert authorized(ask(cluster, metadata("orders")).topics[0].topic_authorized_operations) is None
    cluster.denied |= {Denied("topic", "WRITE", "orders"), Denied("cluster", "DESCRIBE")}
    assert authorized(ask(cluster, asked).topics[0].topic_authorized_operations) == _ALL_ON_TOPIC - {4}
    asked = metadata("orders", version=10, include_cluster_authorized_operations=True)
    assert authorized(ask(cluster, asked).cluster_authorized_operations) == set()


def test_a_topic_that_may_not_be_seen_is_an_error_only_where_it_is_named() -> None:
    cluster = world((1, 2, 3), topics=2)
    hidden = cluster.topic_id("orders")
    cluster.denied.add(Denied("topic", "DESCRIBE", "orders"))
    everything = ask(cluster, MetadataRequest(version=12, topics=None))
    assert [topic.name for topic in everything.topics] == ["topic-000000", "topic-000001"]
    [named] = ask(cluster, metadata("orders")).topics
    assert (name(named.error_code), named.name, named.topic_id) == ("TOPIC_AUTHORIZATION_FAILED", "orders", None)
    [by_id] = ask(cluster, metadata(hidden)).topics
    assert (name(by_id.error_code), by_id.name, by_id.topic_id) == ("TOPIC_AUTHORIZATION_FAILED", None, hidden)


# DescribeCluster.


def _one_fenced() -> Any:
    cluster = world()
    cluster.running.kill(2)
    cluster.running.advance(cluster.running.now_ms + 5000)
    return cluster


def test_fenced_brokers_are_described_where_they_are_asked_for() -> None:
    asked = DescribeClusterRequest(version=2, include_fenced_brokers=True)
    answer = ask(_one_fenced(), asked)
    assert [(one.broker_id, one.is_fenced) for one in answer.brokers] == [(1, False), (2, True), (3, False)]
    assert (answer.endpoint_type, answer.cluster_id, name(answer.error_code)) == (1, CLUSTER_ID, "NONE")
    assert answer.controller_id in {1, 3}
    for asked in (DescribeClusterRequest(version=2), DescribeClusterRequest(version=0)):
        assert [one.broker_id for one in ask(_one_fenced(), asked).brokers] == [1, 3]


def test_the_controller_describes_the_controllers() -> None:
    asked = DescribeClusterRequest(version=2, endpoint_type=2, include_cluster_authorized_operations=True)
    answer = ask(world(), asked, node=CONTROLLER_ID)
    assert [(one.broker_id, one.port, one.rack) for one in answer.brokers] == [(CONTROLLER_ID, 9100, None)]
    assert (answer.controller_id, answer.endpoint_type) == (CONTROLLER_ID, 2)
    assert authorized(answer.cluster_authorized_operations) == _ALL_ON_CLUSTER


@pytest.mark.parametrize(
    ("node", "asked", "error", "message"),
    [
        (1, 2, "MISMATCHED_ENDPOINT_TYPE", "sent to an endpoint of type BROKER, but we wanted an endpoint of type CON"),
        (CONTROLLER_ID, 1, "MISMATCHED_ENDPOINT_TYPE", "sent to an endpoint of type CONTROLLER, but we wanted an end"),
        (1, 3, "UNSUPPORTED_ENDPOINT_TYPE", "Unsupported endpoint type 3"),
    ],
)
def test_who_asks_the_wrong_node_is_told(node: int, asked: int, error: str, message: str) -> None:
    answer = ask(world(), DescribeClusterRequest(version=1, endpoint_type=asked), node=node)
    assert name(answer.error_code) == error
    assert message in answer.error_message
    assert (answer.cluster_id, answer.controller_id, answer.brokers) == ("", -1, [])


def test_version_0_cannot_ask_a_controller() -> None:
    answer = ask(world(), DescribeClusterRequest(version=0), node=CONTROLLER_ID)
    assert name(answer.error_code) == "INVALID_REQUEST"


# DescribeQuorum.


def _quorum(*asked: tuple[str, int], version: int = 2) -> Any:
    made = DescribeQuorumRequest.TopicData
    topics = [made(topic_name=one, partitions=[made.PartitionData(partition_index=number)]) for one, number in asked]
    return DescribeQuorumRequest(version=version, topics=topics)


@pytest.mark.parametrize("node", [1, CONTROLLER_ID])
def test_the_quorum_is_one_controller_watched_by_the_brokers_that_run(node: int) -> None:
    cluster = world()
    cluster.running.kill(2)
    cluster.running.sever(3, CONTROLLER_ID)
    answer = ask(cluster, _quorum(("__cluster_metadata", 0)), node=node)
    [partition] = answer.topics[0].partitions
    assert (name(partition.error_code), partition.leader_id) == ("NONE", CONTROLLER_ID)
    assert partition.leader_epoch >= 1
    assert [one.replica_id for one in partition.current_voters] == [CONTROLLER_ID]
    assert [one.replica_id for one in partition.observers] == [1]
    assert {one.log_end_offset for one in partition.current_voters} == {partition.high_watermark}
    assert [(one.node_id, one.listeners[0].port) for one in answer.nodes] == [(CONTROLLER_ID, 9100)]


@pytest.mark.parametrize(
    "asked", [(("orders", 0),), (("__cluster_metadata", 1),), (("__cluster_metadata", 0), ("orders", 0))]
)
def test_there_is_no_other_quorum(asked: tuple[tuple[str, int], ...]) -> None:
    answer = ask(world((1, 2, 3)), _quorum(*asked))
    errors = {name(one.error_code) for topic in answer.topics for one in topic.partitions}
    assert (errors, answer.nodes) == ({"UNKNOWN_TOPIC_OR_PARTITION"}, [])


def test_the_quorum_is_for_those_who_may_see_the_cluster() -> None:
    cluster = world()
    cluster.denied.add(Denied("cluster", "DESCRIBE"))
    answer = ask(cluster, _quorum(("__cluster_metadata", 0)))
    assert (name(answer.error_code), answer.topics) == ("CLUSTER_AUTHORIZATION_FAILED", [])
