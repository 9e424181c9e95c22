"""The hand that changes a live cluster (`kelr.recovery.admin_client.AdminClient`).

Reordering goes over kelr's own connection, since librdkafka has no AlterPartitionReassignments; elections and configs
go through confluent-kafka's admin client, or where that cannot log in (GSSAPI) over kelr's own connection too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from kelr.controller import Election
from kelr.errors import ConnectError, UnsupportedError, UsageError
from kelr.model import ElectionType, TopicPartition
from kelr.protocol.error_codes import error_name
from kelr.sources.base import Source
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import requests
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.failures import ELSEWHERE, NONE, REFUSED, error_answer, login_error
from kelr.sources.live.source import LiveSource
from kelr.sources.live.transport import Failure, FailureKind, Message, NodeId, Request, Transport
from kelr.sources.permissions import Permissions
from kelr.sources.quorum_source import without_log

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

NO_ANSWER = "NO_ANSWER"
"""`kelr.recovery.admin_client.NO_ANSWER`."""
LONGEST_REQUEST_S = 10.0
"""How long the controller may take, where the timeout does not say less; it bounds how late a request takes effect."""
_PATIENCE_S = 2.0
"""How much longer to wait for the answer that says so."""
_NEVER_SENT = ("unknown host", "looking up", "no route to host", "network unreachable", REFUSED, ELSEWHERE)
"""Failures that come before a connection is there."""
_SILENCE = frozenset(
    {
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_DESTROY",
        "_WAIT_COORD",
        "NETWORK_EXCEPTION",
    }
)
"""librdkafka's own errors that leave open whether the request was carried out."""
_OF_BROKER = 2
"""DescribeConfigsResponse ConfigSource: a dynamic config of one broker."""
_OPERATIONS = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}
"""AclOperation codes: the bits of "authorized operations"."""


class LiveAdminClient:
    """Changes the cluster that a `LiveSource` reads.

    Args:
        settings: as for the source, and naming every broker that is known; feeds the admin client.
        transport: the source's connections.
        brokers: whom to send to.
        own: whether everything goes over these connections, and nothing through the admin client.
    """

    def __init__(
        self, settings: ConnectionSettings, transport: Transport, brokers: AnyBroker, *, own: bool = False
    ) -> None:
        self._settings = settings
        self._own = own
        self._transport = transport
        self._brokers = brokers
        self._request_s = min(LONGEST_REQUEST_S, settings.timeout_s)

    @classmethod
    def of(cls, source: Source) -> LiveAdminClient:
        """The hand for the cluster of a live source, over the same connections.

        Raises:
            UsageError: the source is no live cluster.
            ConnectError, AuthenticationError: the cluster cannot be reached.
        """
        live = without_log(source)
        if not isinstance(live, LiveSource):
            raise UsageError(f"{source.name} is no live cluster, and nothing else can be changed")
        cluster = live.cluster()  # so that all brokers are known, and not the bootstrap servers alone
        settings, transport, brokers = live.reached()
        known = [(broker.host, broker.port) for broker in cluster.brokers if broker.host and broker.port]
        settings = settings.with_servers(known)
        own = not settings.librdkafka_logs_in
        if not own:
            settings.confluent()  # where there is no token for it, this says so before anything is changed
        return cls(settings, transport, brokers, own=own)

    def reorder(self, orders: Mapping[TopicPartition, tuple[int, ...]]) -> Mapping[TopicPartition, str]:
        """AlterPartitionReassignments at one broker, which passes it on to the controller.

        Raises:
            ConnectError, AuthenticationError: no broker could be reached; nothing was sent.
            UnsupportedError: the broker does not know the request; nothing was sent.
        """
        if not orders:
            return {}
        answer = self._sent(requests.alter_reassignments(orders, timeout_s=self._request_s))
        if isinstance(answer, Failure):
            raise UnsupportedError(f"the broker cannot reorder replicas: {answer.detail}")
        if answer is None:
            return dict.fromkeys(orders, NO_ANSWER)
        error = error_answer(answer.error_code, answer.error_message)
        if error != NONE:
            return dict.fromkeys(orders, error)
        answered = {
            TopicPartition(topic.name, partition.partition_index): error_answer(
                partition.error_code, partition.error_message
            )
            for topic in answer.responses
            for partition in topic.partitions
        }
        return {at: answered.get(at, NO_ANSWER) for at in orders}

    def elect(self, election: Election, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        """ElectLeaders through the admin client; an empty list sends nothing, and none stands for the whole cluster.

        Raises:
            ValueError: the controller's own ONLINE elections cannot be asked for.
            ConnectError, AuthenticationError: over kelr's own connections no broker could be reached; nothing was sent.
        """
        from confluent_kafka import ElectionType as Wire  # noqa: PLC0415 - a client library that few commands need
        from confluent_kafka import TopicPartition as WirePartition  # noqa: PLC0415

        if election not in {Election.PREFERRED, Election.UNCLEAN}:
            raise ValueError(f"no request asks for an election of the type {election}")
        if not partitions:
            return {}
        if self._own:
            wire = Wire.PREFERRED if election is Election.PREFERRED else Wire.UNCLEAN
            return self._elected(partitions, requests.elect(wire.value, partitions, timeout_s=self._request_s))
        kind = Wire.PREFERRED if election is Election.PREFERRED else Wire.UNCLEAN
        wanted = [WirePartition(at.topic, at.partition) for at in partitions]
        # With request_timeout or operation_timeout confluent-kafka 2.16 fails, so the wait is bounded here.
        client = self._client()  # held until the answer is there: a client that goes takes its requests along
        found, error = self._outcome(client.elect_leaders(kind, wanted))
        if error is not None:
            return dict.fromkeys(partitions, error)
        answered = {
            TopicPartition(at.topic, at.partition): NONE if why is None else _name(why) for at, why in found.items()
        }
        return {at: answered.get(at, NO_ANSWER) for at in partitions}

    def designate(self, leaders: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, str]:
        """ElectLeaders v3 over kelr's own connection, at a broker that passes it on to the controller.

        Raises:
            ConnectError, AuthenticationError: no broker could be reached; nothing was sent.
        """

        def made(part: Sequence[TopicPartition]) -> Request:
            return requests.designate({at: leaders[at] for at in part}, timeout_s=self._request_s)

        return self._native(sorted(leaders), made)

    def elect_by_log(self, kind: ElectionType, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, str]:
        """The same, of the types by which the controller compares the logs."""
        wait_s = self._request_s
        return self._native(sorted(partitions), lambda part: requests.elect_by_log(kind, part, timeout_s=wait_s))

    def _native(
        self, wanted: Sequence[TopicPartition], made: Callable[[Sequence[TopicPartition]], Request]
    ) -> Mapping[TopicPartition, str]:
        """ElectLeaders v3, in as many requests as its limit asks for."""
        answers = dict[TopicPartition, str]()
        for at in range(0, len(wanted), requests.ELECTIONS_A_REQUEST):
            part = wanted[at : at + requests.ELECTIONS_A_REQUEST]
            try:
                answers.update(self._elected(part, made(part)))
            except ConnectError:
                if not at:
                    raise
                answers.update(dict.fromkeys(part, "BROKER_NOT_AVAILABLE"))  # not sent, after others that were
        return answers

    def _elected(self, partitions: Iterable[TopicPartition], request: Request) -> Mapping[TopicPartition, str]:
        """What comes of an ElectLeaders that is sent over kelr's own connection."""
        answer = self._sent(request)
        if answer is None:
            return dict.fromkeys(partitions, NO_ANSWER)
        if isinstance(answer, Failure):
            return dict.fromkeys(partitions, "UNSUPPORTED_VERSION")
        error = error_name(answer.error_code)
        if error != NONE:
            return dict.fromkeys(partitions, error)
        answered = {
            TopicPartition(topic.topic, partition.partition_id): error_answer(
                partition.error_code, partition.error_message
            )
            for topic in answer.replica_election_results
            for partition in topic.partition_result
        }
        return {at: answered.get(at, NO_ANSWER) for at in partitions}

    def write_topic_config(self, topic: str, name: str, value: str | None) -> str:
        """IncrementalAlterConfigs through the admin client.

        Raises:
            ConnectError, AuthenticationError: over kelr's own connections no broker could be reached; nothing was sent.
        """
        if self._own:
            return self._written(topic, self._sent(requests.alter_topic_config(topic, name, value)))
        from confluent_kafka.admin import (  # noqa: PLC0415 - a client library that few commands need
            AlterConfigOpType,
            ConfigEntry,
            ConfigResource,
            ResourceType,
        )

        operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        client = self._client()
        (future,) = client.incremental_alter_configs([resource]).values()
        return self._outcome(future)[1] or NONE

    def write_broker_config(self, broker: int, name: str, value: str | None) -> str:
        """IncrementalAlterConfigs of a broker over kelr's own connection to it.

        Raises:
            ConnectError, AuthenticationError: it cannot be reached; nothing was sent.
        """
        return self._written(str(broker), self._sent(requests.alter_broker_config(broker, name, value), (broker,)))

    def read_broker_config(self, broker: int, name: str) -> tuple[bool, str | None]:
        """(whether the broker told, the dynamic value of its own or None)."""
        answer = self._transport.exchange(
            broker, requests.describe_broker_config(broker, name), timeout_s=self._request_s
        )
        if isinstance(answer, Failure):
            return False, None
        for result in answer.results:
            if error_name(result.error_code) == NONE:
                own = (one for config in result.configs for one in config.synonyms or () if one.source == _OF_BROKER)
                return True, next((one.value for one in own), None)
        return False, None

    def _written(self, whose: str, answer: Message | Failure | None) -> str:
        if answer is None:
            return NO_ANSWER
        if isinstance(answer, Failure):
            return "UNSUPPORTED_VERSION"
        told = (
            error_answer(one.error_code, one.error_message) for one in answer.responses if one.resource_name == whose
        )
        return next(told, NO_ANSWER)  # an answer about nothing leaves open whether it was written

    def permissions(self, topics: tuple[str, ...]) -> Permissions:
        """What the principal may do: DescribeCluster and Metadata tell it when asked to."""
        of_cluster = self._brokers.ask(requests.describe_cluster_operations)
        cluster = None
        if not isinstance(of_cluster, Failure) and error_name(of_cluster.error_code) == NONE:
            cluster = _operations(of_cluster.cluster_authorized_operations)
        of_topics = self._brokers.ask(lambda: requests.topic_operations(topics)) if topics else None
        told: dict[str, frozenset[str] | None] = dict.fromkeys(topics)
        if of_topics is not None and not isinstance(of_topics, Failure):
            told.update({topic.name: _operations_of_topic(topic) for topic in of_topics.topics})
        return Permissions(cluster, told)

    def _sent(self, request: Request, nodes: Sequence[NodeId] | None = None) -> Message | Failure | None:
        """The answer of the first broker that can be reached; None where it was sent and nothing came back; a Failure
        where that broker takes no such request, which was not sent then."""
        failures = []
        for node in self._brokers.nodes if nodes is None else nodes:
            answer = self._transport.exchange(node, request, timeout_s=self._request_s + _PATIENCE_S)
            if not isinstance(answer, Failure):
                return answer
            failures.append(answer)
            if answer.kind is FailureKind.UNSUPPORTED:
                return answer
            if answer.kind is not FailureKind.AUTHENTICATION and not answer.detail.startswith(_NEVER_SENT):
                return None
        refused = next((failure for failure in failures if failure.kind is FailureKind.AUTHENTICATION), None)
        if refused is not None:
            raise login_error("the brokers", refused)
        last = failures[-1].detail if failures else "none is known"
        raise ConnectError(
            f"no broker can be reached; the last one: {last}",
            next_step="check that a broker is up",
            code="no-broker-answers",
        )

    def _client(self) -> AdminClient:
        """A new client, which asks the brokers that live now who passes requests on to the controller.

        librdkafka sends an election to the broker that it learned as the controller when it connected, and when that
        broker has died since, it waits for it until the time is over.
        """
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - a client library that few commands need

        config: dict[str, Any] = {
            **self._settings.confluent(),
            "socket.timeout.ms": max(1000, int(self._request_s * 1000)),
            "error_cb": lambda _error: None,
        }
        return AdminClient(config)

    def _outcome(self, future: Future[Any]) -> tuple[Any, str | None]:
        """(result, error) of an admin call: exactly one is set, but for a call whose result is None."""
        from confluent_kafka import KafkaException  # noqa: PLC0415

        try:
            return future.result(self._request_s + _PATIENCE_S), None
        except FutureTimeoutError:
            return None, NO_ANSWER
        except KafkaException as failed:
            return None, _name(failed.args[0])


def _name(error: Any) -> str:
    """Kafka's name of a confluent-kafka error; those of librdkafka's own that tell nothing are no answer."""
    name = str(error.name())
    if name in _SILENCE:
        return NO_ANSWER
    # Where the broker says nothing, librdkafka has a sentence of its own, which begins with "Broker: ".
    said = str(error.str())
    return error_answer(error.code(), None if said.startswith("Broker: ") else said) if error.code() > 0 else name


def _operations(bits: int) -> frozenset[str] | None:
    codes = requests.authorized(bits)
    return None if codes is None else frozenset(name for code, name in _OPERATIONS.items() if code in codes)


def _operations_of_topic(topic: Message) -> frozenset[str] | None:
    error = error_name(topic.error_code)
    if error == "TOPIC_AUTHORIZATION_FAILED":
        return frozenset()
    return _operations(topic.topic_authorized_operations) if error == NONE else None
