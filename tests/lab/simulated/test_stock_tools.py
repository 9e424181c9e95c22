"""Clients that know nothing of kelr use a simulated cluster: librdkafka's admin client, and kafka-python's commands.

Kafka's Java tools are in `tests/cluster/test_simulated_stock_tools.py`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import ElectionType as Elections
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka import TopicPartition as Wire
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from kafka.cli.admin import run_cli

from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import Denied, id_text
from kelr.model import TopicPartition

PATIENCE_S = 20.0
ORDERS = [[1, 2, 3], [2, 3, 1]]


@pytest.fixture
def server() -> Iterator[SimulatedServer]:
    """Three brokers, and two topics that are alike."""
    with SimulatedServer(SimulatedSpec(rules="elr-4.3", topics=2, partitions=2)) as running:
        yield running


@pytest.fixture
def admin(server: SimulatedServer) -> AdminClient:
    client = AdminClient(
        {"bootstrap.servers": server.bootstrap_servers, "log_level": 0, "error_cb": lambda _error: None}
    )
    configs = {"min.insync.replicas": "1"}
    _done(client.create_topics([NewTopic("orders", len(ORDERS), replica_assignment=ORDERS, config=configs)]))
    return client


def _done(futures: dict[Any, Future[Any]]) -> dict[Any, Any]:
    return {key: future.result(PATIENCE_S) for key, future in futures.items()}


# librdkafka.


def test_librdkafka_describes_the_cluster(server: SimulatedServer, admin: AdminClient) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True).result(PATIENCE_S)
    assert cluster.cluster_id == server.world.cluster_id
    assert sorted((node.id, node.port, node.rack) for node in cluster.nodes) == [
        (broker, server.ports[broker], f"az{broker}") for broker in (1, 2, 3)
    ]
    assert cluster.controller.id in {1, 2, 3}
    assert AclOperation.DESCRIBE in cluster.authorized_operations


def test_librdkafka_lists_and_describes_topics(server: SimulatedServer, admin: AdminClient) -> None:
    listed = admin.list_topics(timeout=PATIENCE_S)
    assert sorted(listed.topics) == ["orders", "topic-000000", "topic-000001"]
    assert {one.id: (one.leader, one.replicas, one.isrs) for one in listed.topics["orders"].partitions.values()} == {
        0: (1, [1, 2, 3], [1, 2, 3]),
        1: (2, [2, 3, 1], [2, 3, 1]),
    }
    described = _done(admin.describe_topics(TopicCollection(["orders", "topic-000001"])))
    found = described["orders"]
    # librdkafka writes ids with the usual base64 alphabet, Kafka with the one for URLs.
    told = str(found.topic_id).replace("+", "-").replace("/", "_")
    assert told == server.inside(lambda world: id_text(world.topic_id("orders")))
    assert [(one.id, one.leader.id, [node.id for node in one.isr]) for one in found.partitions] == [
        (0, 1, [1, 2, 3]),
        (1, 2, [2, 3, 1]),
    ]
    assert [one.id for one in described["topic-000001"].partitions] == [0, 1]


def test_librdkafka_makes_and_deletes_topics(admin: AdminClient) -> None:
    _done(admin.create_topics([NewTopic("new", num_partitions=3, replication_factor=2)]))
    assert len(admin.list_topics("new", timeout=PATIENCE_S).topics["new"].partitions) == 3
    _done(admin.delete_topics(["new", "topic-000000"]))
    assert sorted(admin.list_topics(timeout=PATIENCE_S).topics) == ["orders", "topic-000001"]
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        _done(admin.create_topics([NewTopic("orders", num_partitions=1, replication_factor=1)]))
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        _done(admin.delete_topics(["new"]))


def test_librdkafka_reads_and_writes_configs(server: SimulatedServer, admin: AdminClient) -> None:
    topic, broker = ConfigResource(ResourceType.TOPIC, "orders"), ConfigResource(ResourceType.BROKER, "2")
    found = _done(admin.describe_configs([topic, broker]))
    assert (found[topic]["min.insync.replicas"].value, found[topic]["min.insync.replicas"].source) == ("1", 1)
    assert found[broker]["broker.rack"].value == "az2"
    wanted = ConfigResource(
        ResourceType.TOPIC,
        "orders",
        incremental_configs=[
            ConfigEntry("min.insync.replicas", "2", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ],
    )
    _done(admin.incremental_alter_configs([wanted]))
    found = _done(admin.describe_configs([topic]))
    assert found[topic]["min.insync.replicas"].value == "2"
    assert found[topic]["cleanup.policy"].value == "delete,compact"
    assert server.inside(lambda world: world.running.cluster.controller.config("orders").min_isr) == 2


def test_librdkafka_elects(server: SimulatedServer, admin: AdminClient) -> None:
    server.inside(lambda world: (world.running.kill(1), world.running.expire(1)))
    server.inside(lambda world: world.running.start(1))
    address = TopicPartition("orders", 0)
    admin.list_topics(timeout=PATIENCE_S)
    _eventually(server, lambda world: 1 in world.state(address).isr)
    assert server.inside(lambda world: world.state(address)).leader == 2  # type: ignore[union-attr]
    done = admin.elect_leaders(Elections.PREFERRED, [Wire("orders", 0)]).result(PATIENCE_S)
    assert [error for error in done.values() if error is not None] == []
    assert server.inside(lambda world: world.state(address)).leader == 1  # type: ignore[union-attr]


def _eventually(server: SimulatedServer, holds: Callable[[Any], bool]) -> None:
    """Wait until something holds; the server's own clock goes on."""
    until = time.monotonic() + PATIENCE_S
    while not server.inside(holds):
        assert time.monotonic() < until, "it does not come to that"
        time.sleep(0.01)


def test_librdkafka_is_told_what_it_may_not_do(server: SimulatedServer, admin: AdminClient) -> None:
    server.inside(lambda world: world.denied.add(Denied("topic", "DESCRIBE", "orders")))
    assert sorted(admin.list_topics(timeout=PATIENCE_S).topics) == ["topic-000000", "topic-000001"]
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        _done(admin.describe_topics(TopicCollection(["orders"])))


def test_librdkafka_finds_no_groups(admin: AdminClient) -> None:
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert (listed.valid, listed.errors) == ([], [])


# kafka-python.


@pytest.fixture
def command(server: SimulatedServer, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs ``python -m kafka.admin`` and gives what it prints."""

    def run(*words: str, json_form: bool = True) -> Any:
        options = ["-b", f"127.0.0.1:{server.ports[1]}", "--log-level", "CRITICAL"]
        form = ["--format", "json"] if json_form else []
        status = run_cli([*options, *form, *words])
        printed = capsys.readouterr().out
        assert status == 0, printed
        return json.loads(printed) if json_form else printed

    return run


def test_kafka_pythons_own_commands(server: SimulatedServer, command: Callable[..., Any]) -> None:
    created = command("topics", "create", "-t", "orders", "--num-partitions", "2", "--replication-factor", "3")
    assert [(one["name"], one["error_code"]) for one in created["topics"]] == [("orders", 0)]
    assert command("topics", "list") == ["orders", "topic-000000", "topic-000001"]
    described = command("cluster", "describe")
    assert {one["broker_id"] for one in described["brokers"]} == {1, 2, 3}
    [quorum] = command("cluster", "describe-quorum")["topics"]
    assert quorum["partitions"][0]["leader_id"] == 100
    assert command("configs", "alter", "-r", "topic", "-n", "orders", "-c", "min.insync.replicas=1") == {
        "topic": {"orders": "OK"}
    }
    read = command("configs", "describe", "-r", "topic", "-n", "orders", "-c", "min.insync.replicas")
    assert read["topic"]["orders"]["min.insync.replicas"]["value"] == "1"
    assert command("partitions", "alter-reassignments", "-r", "orders:0=3,2,1") == {"orders:0": None}
    assert command("partitions", "list-reassignments") == {}
    page = command("partitions", "describe", "-t", "orders", "--response-partition-limit", "1", json_form=False)
    # An empty ELR is None in its words.
    assert "'eligible_leader_replicas': None" in page
    assert "'replica_nodes': [3, 2, 1]" in page
    assert "'next_cursor': {'partition_index': 1, 'topic_name': 'orders'}" in page
    elected = command("partitions", "elect-leaders", "--election-type", "preferred", "-p", "orders:0")
    assert elected["error_code"] == 0
    state = server.inside(lambda world: world.state(TopicPartition("orders", 0)))
    assert state is not None
    assert state.leader == 3
    deleted = command("topics", "delete", "-t", "orders")
    assert [(one["name"], one["error_code"]) for one in deleted["topics"]] == [("orders", 0)]
    assert command("groups", "list") == []
