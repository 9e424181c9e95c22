"""What the live hand sends, byte for byte, and what it makes of answers and of their lack."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as WirePartition

from kelr.controller import Election
from kelr.errors import AuthenticationError, ConnectError, UnsupportedError, UsageError
from kelr.model import TopicPartition
from kelr.protocol.messages import (
    AlterPartitionReassignmentsResponse,
    ElectLeadersResponse,
    IncrementalAlterConfigsResponse,
)
from kelr.recovery.acls import permissions_of
from kelr.recovery.admin_client import NO_ANSWER
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource, changes, requests
from kelr.sources.live.changes import LiveAdminClient
from kelr.sources.live.failures import error_in_words
from kelr.sources.live.transport import Failure, FailureKind, NodeId
from kelr.sources.memory import MemorySource
from tests.incident import INCIDENT
from tests.sources.fake_cluster import MODERN, FakeCluster, FakeTransport
from tests.sources.samples import fake_cluster

A, B = TopicPartition("orders", 1), TopicPartition("payments", 0)
ORDERS = {B: (2, 3), A: (2, 3, 1)}


class ChangingCluster(FakeCluster):
    """A `FakeCluster` that takes AlterPartitionReassignments."""

    asked: list[Any]
    error = 0
    words: str | None = None
    errors: dict[TopicPartition, int]

    def _alter_partition_reassignments(self, _node: NodeId, request: Any, version: int) -> Any:
        self.asked.append(request)
        topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
        partition = topic.ReassignablePartitionResponse
        return AlterPartitionReassignmentsResponse(
            version=version,
            throttle_time_ms=0,
            error_code=self.error,
            error_message=None,
            responses=[
                topic(
                    name=of.name,
                    partitions=[
                        partition(
                            partition_index=one.partition_index,
                            error_code=self.errors.get(TopicPartition(of.name, one.partition_index), 0),
                            error_message=self.words,
                        )
                        for one in of.partitions
                    ],
                )
                for of in request.topics
            ],
        )


@pytest.fixture
def cluster() -> ChangingCluster:
    like = fake_cluster()
    made = ChangingCluster(like.cluster, like.partitions, like.logs, {**MODERN, 45: 1}, configs=like.configs)
    made.asked, made.errors = [], {}
    return made


def _hand(cluster: FakeCluster) -> LiveAdminClient:
    settings = ConnectionSettings((("127.0.0.1", 1),), timeout_s=5)
    return LiveAdminClient.of(LiveSource(settings, connect=lambda _settings: FakeTransport(cluster)))


def test_a_reordering(cluster: ChangingCluster) -> None:
    assert _hand(cluster).reorder(ORDERS) == {A: "NONE", B: "NONE"}
    (request,) = cluster.asked
    sent = {(of.name, one.partition_index): one.replicas for of in request.topics for one in of.partitions}
    assert sent == {("orders", 1): [2, 3, 1], ("payments", 0): [2, 3]}
    assert request.timeout_ms == 5000


def test_nothing_to_reorder(cluster: ChangingCluster) -> None:
    assert _hand(cluster).reorder({}) == {}
    assert cluster.asked == []


def test_errors_of_partitions_and_of_the_whole(cluster: ChangingCluster) -> None:
    cluster.errors = {A: 39}
    assert _hand(cluster).reorder(ORDERS) == {A: "INVALID_REPLICA_ASSIGNMENT", B: "NONE"}
    cluster.error = 31
    assert _hand(cluster).reorder(ORDERS) == dict.fromkeys(ORDERS, "CLUSTER_AUTHORIZATION_FAILED")


def test_what_kafka_says_goes_with_the_name_of_the_error(cluster: ChangingCluster, admin: type[FakeAdmin]) -> None:
    cluster.errors, cluster.words = {A: 39}, "No such\x1b[31m order. "
    assert error_in_words(_hand(cluster).reorder(ORDERS)[A]) == "INVALID_REPLICA_ASSIGNMENT: No such [31m order"
    admin.outcome = {_wire(A): KafkaError(80, "Nobody there."), _wire(B): KafkaError(84)}
    told = _hand(cluster).elect(Election.PREFERRED, [A, B])
    assert error_in_words(told[A]) == "PREFERRED_LEADER_NOT_AVAILABLE: Nobody there"
    assert error_in_words(told[B]) == "ELECTION_NOT_NEEDED"


def _failing(cluster: ChangingCluster, failure: Failure, *nodes: NodeId) -> None:
    def before(node: NodeId, name: str) -> Failure | None:
        return failure if name == "AlterPartitionReassignments" and (not nodes or node in nodes) else None

    cluster.before = before


@pytest.mark.parametrize(
    "failure",
    [
        Failure(FailureKind.TIMED_OUT, "no answer in time"),
        Failure(FailureKind.UNREACHABLE, "connection reset"),
        Failure(FailureKind.UNREACHABLE, "connection closed"),
        Failure(FailureKind.GARBLED, "not an answer of a Kafka broker"),
    ],
)
def test_a_request_that_may_have_arrived_is_never_sent_again(cluster: ChangingCluster, failure: Failure) -> None:
    hand = _hand(cluster)
    _failing(cluster, failure)
    assert hand.reorder(ORDERS) == dict.fromkeys(ORDERS, NO_ANSWER)
    assert cluster.asked == []


def test_a_broker_that_cannot_be_reached_is_passed_over(cluster: ChangingCluster) -> None:
    hand = _hand(cluster)
    first = hand._brokers.favourite
    _failing(cluster, Failure(FailureKind.UNREACHABLE, "connection refused"), first)
    assert hand.reorder(ORDERS) == {A: "NONE", B: "NONE"}
    assert len(cluster.asked) == 1


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure(FailureKind.UNREACHABLE, "connection refused"), ConnectError),
        (Failure(FailureKind.UNREACHABLE, "unknown host kafka-1 (Name or service not known)"), ConnectError),
        (Failure(FailureKind.AUTHENTICATION, "no such user"), AuthenticationError),
        (Failure(FailureKind.UNSUPPORTED, "not known"), UnsupportedError),
    ],
)
def test_a_request_that_nobody_got(cluster: ChangingCluster, failure: Failure, error: type[Exception]) -> None:
    hand = _hand(cluster)
    _failing(cluster, failure)
    with pytest.raises(error):
        hand.reorder(ORDERS)


def test_only_a_live_cluster_can_be_changed() -> None:
    with pytest.raises(UsageError, match="is no live cluster"):
        LiveAdminClient.of(MemorySource(INCIDENT))


# Through confluent-kafka.


class FakeAdmin:
    """Stands in for confluent-kafka's AdminClient."""

    made: list[FakeAdmin]
    outcome: Any = None

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.calls: list[tuple[Any, ...]] = []
        type(self).made.append(self)

    def elect_leaders(self, kind: Any, partitions: Sequence[WirePartition]) -> Future[Any]:
        self.calls.append((kind.name, [(at.topic, at.partition) for at in partitions]))
        return self._future()

    def incremental_alter_configs(self, resources: Sequence[Any]) -> dict[Any, Future[Any]]:
        (resource,) = resources
        (entry,) = resource.incremental_configs
        self.calls.append((resource.name, entry.name, entry.value, entry.incremental_operation.name))
        return {resource: self._future()}

    def _future(self) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(self.outcome, Exception):
            future.set_exception(self.outcome)
        elif self.outcome != "silence":
            future.set_result(self.outcome)
        return future


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> type[FakeAdmin]:
    FakeAdmin.made, FakeAdmin.outcome = [], None
    monkeypatch.setattr("confluent_kafka.admin.AdminClient", FakeAdmin)
    return FakeAdmin


def _wire(at: TopicPartition) -> WirePartition:
    return WirePartition(at.topic, at.partition)


def test_an_election(cluster: ChangingCluster, admin: type[FakeAdmin]) -> None:
    admin.outcome = {_wire(A): None, _wire(B): KafkaError(84)}
    hand = _hand(cluster)
    assert hand.elect(Election.UNCLEAN, [A, B]) == {A: "NONE", B: "ELECTION_NOT_NEEDED"}
    (made,) = admin.made
    assert made.calls == [("UNCLEAN", [("orders", 1), ("payments", 0)])]
    assert (made.config["log_level"], made.config["socket.timeout.ms"]) == (0, 5000)
    admin.outcome = {_wire(A): None}
    assert hand.elect(Election.PREFERRED, [A, B]) == {A: "NONE", B: NO_ANSWER}
    assert [call[0] for client in admin.made for call in client.calls] == ["UNCLEAN", "PREFERRED"]


def test_each_election_asks_all_known_brokers_who_passes_it_on(
    cluster: ChangingCluster, admin: type[FakeAdmin]
) -> None:
    """A client that is kept waits for the broker that it knew as the controller, also when that one has died."""
    admin.outcome = {_wire(A): None}
    hand = _hand(cluster)
    hand.elect(Election.UNCLEAN, [A])
    hand.elect(Election.UNCLEAN, [A])
    servers = [client.config["bootstrap.servers"].split(",") for client in admin.made]
    brokers = [f"{broker.host}:{broker.port}" for broker in cluster.cluster.brokers if broker.host]
    assert len(brokers) > 1
    assert servers == [["127.0.0.1:1", *brokers]] * 2


def test_an_election_of_nothing_is_not_one_of_everything(cluster: ChangingCluster, admin: type[FakeAdmin]) -> None:
    assert _hand(cluster).elect(Election.UNCLEAN, []) == {}
    assert admin.made == []


def test_an_online_election_cannot_be_asked_for(cluster: ChangingCluster) -> None:
    with pytest.raises(ValueError, match="online"):
        _hand(cluster).elect(Election.ONLINE, [A])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "CLUSTER_AUTHORIZATION_FAILED"),
        (KafkaError.NOT_CONTROLLER, "NOT_CONTROLLER"),
        (KafkaError.REQUEST_TIMED_OUT, "REQUEST_TIMED_OUT"),
        (KafkaError._TIMED_OUT, NO_ANSWER),
        (KafkaError._TRANSPORT, NO_ANSWER),
        (KafkaError._ALL_BROKERS_DOWN, NO_ANSWER),
    ],
)
def test_an_election_that_fails_as_a_whole(
    cluster: ChangingCluster, admin: type[FakeAdmin], code: int, name: str
) -> None:
    admin.outcome = KafkaException(KafkaError(code))
    assert _hand(cluster).elect(Election.UNCLEAN, [A]) == {A: name}


def test_an_election_that_is_never_answered(
    cluster: ChangingCluster, admin: type[FakeAdmin], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.outcome = "silence"
    monkeypatch.setattr(changes, "LONGEST_REQUEST_S", 0.01)
    monkeypatch.setattr(changes, "_PATIENCE_S", 0.01)
    assert _hand(cluster).elect(Election.UNCLEAN, [A]) == {A: NO_ANSWER}


def test_a_topics_config(cluster: ChangingCluster, admin: type[FakeAdmin]) -> None:
    hand = _hand(cluster)
    assert hand.write_topic_config("orders", "min.insync.replicas", "3") == "NONE"
    assert hand.write_topic_config("orders", "min.insync.replicas", None) == "NONE"
    assert [call for client in admin.made for call in client.calls] == [
        ("orders", "min.insync.replicas", "3", "SET"),
        ("orders", "min.insync.replicas", None, "DELETE"),
    ]
    admin.outcome = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert hand.write_topic_config("orders", "min.insync.replicas", "3") == "TOPIC_AUTHORIZATION_FAILED"


class OwnCluster(ChangingCluster):
    """A cluster that takes elections and configs over kelr's own connections."""

    told: Sequence[str] = ("orders",)
    """Which topics the answer about a config is about."""

    def _elect_leaders(self, _node: NodeId, request: Any, version: int) -> Any:
        self.asked.append(request)
        topic = ElectLeadersResponse.ReplicaElectionResult
        return ElectLeadersResponse(
            version=version,
            throttle_time_ms=0,
            error_code=self.error,
            replica_election_results=[
                topic(
                    topic=of.topic,
                    partition_result=[
                        topic.PartitionResult(
                            partition_id=number,
                            error_code=self.errors.get(TopicPartition(of.topic, number), 0),
                            error_message=None,
                        )
                        for number in of.partitions
                    ],
                )
                for of in request.topic_partitions
            ],
        )

    def _incremental_alter_configs(self, _node: NodeId, request: Any, version: int) -> Any:
        self.asked.append(request)
        kind = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
        (asked,) = request.resources
        answers = [
            kind(
                error_code=self.error if name == asked.resource_name else 42,
                error_message=None,
                resource_type=asked.resource_type,
                resource_name=name,
            )
            for name in self.told
        ]
        return IncrementalAlterConfigsResponse(version=version, throttle_time_ms=0, responses=answers)


@pytest.fixture
def own_cluster(monkeypatch: pytest.MonkeyPatch) -> OwnCluster:
    """librdkafka cannot log in there, as with Kerberos; nothing of it is used."""
    monkeypatch.setattr(ConnectionSettings, "librdkafka_logs_in", False)
    monkeypatch.setattr(ConnectionSettings, "confluent", None)
    like = fake_cluster()
    versions = {**MODERN, 43: 2, 44: 1, 45: 1}
    made = OwnCluster(like.cluster, like.partitions, like.logs, versions, configs=like.configs)
    made.asked, made.errors = [], {}
    return made


@pytest.mark.parametrize(("election", "number"), [(Election.PREFERRED, 0), (Election.UNCLEAN, 1)])
def test_an_election_without_librdkafka(own_cluster: OwnCluster, election: Election, number: int) -> None:
    own_cluster.errors = {A: 84}
    assert _hand(own_cluster).elect(election, [B, A]) == {A: "ELECTION_NOT_NEEDED", B: "NONE"}
    (request,) = own_cluster.asked
    sent = {(of.topic, number) for of in request.topic_partitions for number in of.partitions}
    assert (request.election_type, sent, request.timeout_ms) == (number, {("orders", 1), ("payments", 0)}, 5000)
    own_cluster.errors, own_cluster.error = {}, 31
    assert _hand(own_cluster).elect(election, [A]) == {A: "CLUSTER_AUTHORIZATION_FAILED"}


def test_an_election_of_nothing_without_librdkafka(own_cluster: OwnCluster) -> None:
    assert _hand(own_cluster).elect(Election.UNCLEAN, []) == {}
    assert own_cluster.asked == []
    with pytest.raises(ValueError, match="names its partitions"):
        requests.elect(1, [], timeout_s=1)


@pytest.mark.parametrize(("value", "operation"), [("3", 0), (None, 1)])
def test_a_topics_config_without_librdkafka(own_cluster: OwnCluster, value: str | None, operation: int) -> None:
    hand = _hand(own_cluster)
    assert hand.write_topic_config("orders", "min.insync.replicas", value) == "NONE"
    (request,) = own_cluster.asked
    (resource,) = request.resources
    (config,) = resource.configs
    assert (resource.resource_type, resource.resource_name, request.validate_only) == (2, "orders", False)
    assert (config.name, config.config_operation, config.value) == ("min.insync.replicas", operation, value)
    own_cluster.error = 29
    assert hand.write_topic_config("orders", "min.insync.replicas", value) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize(
    ("told", "found"),
    [((), NO_ANSWER), (("others",), NO_ANSWER), (("others", "orders"), "NONE"), (("orders", "orders"), "NONE")],
)
def test_an_answer_about_something_else_leaves_open_whether_it_was_written(
    own_cluster: OwnCluster, told: tuple[str, ...], found: str
) -> None:
    own_cluster.told = told
    assert _hand(own_cluster).write_topic_config("orders", "min.insync.replicas", "3") == found
    assert len(own_cluster.asked) == 1


def test_no_answer_without_librdkafka(own_cluster: OwnCluster) -> None:
    hand = _hand(own_cluster)
    silence = Failure(FailureKind.TIMED_OUT, "no answer in time")
    own_cluster.before = lambda _node, name: silence if name in {"ElectLeaders", "IncrementalAlterConfigs"} else None
    assert hand.elect(Election.UNCLEAN, [A]) == {A: NO_ANSWER}
    assert hand.write_topic_config("orders", "min.insync.replicas", "1") == NO_ANSWER
    assert own_cluster.asked == []


def test_what_the_principal_may_do_is_unknown_where_nobody_tells(cluster: ChangingCluster) -> None:
    cluster.unauthorized = frozenset({"secret"})
    permissions = permissions_of(_hand(cluster), ("orders", "secret"))
    assert permissions.cluster is None
    assert permissions.topics == {"orders": None, "secret": frozenset()}
