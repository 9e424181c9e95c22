"""The cluster around the partitions: brokers, controller and features, each from the best request that answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kelr.errors import NotAuthorizedError, UnsupportedError
from kelr.model import Broker, BrokerStatus, Cluster, Features
from kelr.model.checkup import NotRead, Quorum, QuorumNode
from kelr.protocol.error_codes import error_name
from kelr.sources.live import requests
from kelr.sources.live.any_broker import CONTROLLER_TIMEOUT_S
from kelr.sources.live.failures import CLUSTER_UNAUTHORIZED, NONE, with_acl
from kelr.sources.live.reassignments import Reassignments, reassignments_of
from kelr.sources.live.transport import Failure, FailureKind, Message

AskAny = Callable[[Callable[[], Message]], Message | Failure]
"""Sends a fresh request to any broker; a Failure only where the request itself cannot be answered."""


AskController = Callable[..., Sequence[Message | Failure]]
"""Sends requests that only the controller can answer; a Failure for each that it did not."""


_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class BrokerList:
    """Brokers, the cluster's id, and the request that told."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    source: str


def features_of(versions: Message) -> Features:
    """Features from an ApiVersions answer; unknown before v3, which is when brokers began to tell."""
    elect_leaders = newest_version(versions, requests.ELECT_LEADERS_KEY)
    if versions.version < 3 or versions.finalized_features_epoch is None or versions.finalized_features_epoch < 0:
        return Features(elect_leaders=elect_leaders)
    return Features(
        finalized={feature.name: feature.max_version_level for feature in versions.finalized_features or ()},
        supported={feature.name: feature.max_version for feature in versions.supported_features or ()},
        elect_leaders=elect_leaders,
    )


def knows_request(versions: Message, key: int) -> bool:
    """Whether the broker that gave this ApiVersions answer takes requests of this key."""
    return any(api.api_key == key for api in versions.api_keys)


def newest_version(versions: Message, key: int) -> int | None:
    """The newest version of a request that the broker that gave this ApiVersions answer takes; None: it takes none."""
    return next((api.max_version for api in versions.api_keys if api.api_key == key), None)


def describe_cluster(
    ask: AskAny, ask_controller: AskController, versions: Message, *, learn: Callable[[BrokerList], None]
) -> tuple[Cluster, Reassignments]:
    """The whole cluster, and the reassignments under way in it.

    Args:
        ask: asks any broker.
        ask_controller: asks what only the controller knows.
        versions: a broker's ApiVersions answer.
        learn: is told the brokers and the cluster's id before the controller is asked: any of them can pass that on.

    Raises:
        NotAuthorizedError: not even the list of brokers may be read.
        UnsupportedError: no request for the list of brokers is known to both sides.
    """
    listed = _describe_cluster(ask, fenced=True) or _describe_cluster(ask, fenced=False) or _metadata_brokers(ask)
    learn(listed)
    pages = knows_request(versions, requests.DESCRIBE_TOPIC_PARTITIONS_KEY)
    quorum, moves = ask_controller(
        requests.describe_quorum(), requests.list_reassignments(timeout_s=CONTROLLER_TIMEOUT_S)
    )
    reassignments, led = reassignments_of(moves), quorum_of(quorum)
    cluster = Cluster(
        cluster_id=listed.cluster_id,
        brokers=tuple(sorted(listed.brokers, key=lambda broker: broker.id)),
        features=features_of(versions),
        controller=None if isinstance(led, NotRead) else led.leader,
        controllers={} if isinstance(led, NotRead) else led.following,
        brokers_source=listed.source,
        partitions_source="DescribeTopicPartitions v0" if pages else "Metadata",
        reassignments_error=reassignments.error,
        controller_silence=_silence(quorum, moves),
    )
    return cluster, reassignments


def _describe_cluster(ask: AskAny, *, fenced: bool) -> BrokerList | None:
    """None where this version of DescribeCluster is not known or not allowed here: an older request may be."""
    answer = ask(lambda: requests.describe_cluster(fenced=fenced))
    if isinstance(answer, Failure) or error_name(answer.error_code) != NONE:
        return None
    brokers = tuple(
        Broker(
            id=broker.broker_id,
            status=BrokerStatus.FENCED if fenced and broker.is_fenced else BrokerStatus.LIVE,
            host=broker.host or None,
            port=_possible_port(broker.port),
            rack=broker.rack,
        )
        for broker in answer.brokers
    )
    return BrokerList(answer.cluster_id or None, brokers, f"DescribeCluster v{answer.version}")


def _possible_port(port: int) -> int | None:
    """The port; None for -1 and for what is none."""
    return port if 0 < port <= _LAST_PORT else None


def _metadata_brokers(ask: AskAny) -> BrokerList:
    answer = ask(lambda: requests.metadata([]))
    if isinstance(answer, Failure):
        if answer.kind is FailureKind.UNSUPPORTED:
            raise UnsupportedError(
                f"these brokers cannot be listed: {answer.detail}",
                next_step="give the address of a broker; a KRaft controller's port does not answer Metadata",
                code="brokers-too-old",
            )
        raise NotAuthorizedError(f"the brokers cannot be listed: {answer.detail}")
    brokers = tuple(
        Broker(
            id=broker.node_id,
            status=BrokerStatus.LIVE,
            host=broker.host or None,
            port=_possible_port(broker.port),
            rack=broker.rack,
        )
        for broker in answer.brokers
    )
    cluster_id = answer.cluster_id if answer.version >= 2 else None
    return BrokerList(cluster_id or None, brokers, f"Metadata v{answer.version}")


def quorum_of(
    answer: Message | Failure, *, asked_ms: int | None = None, answered_ms: int | None = None
) -> Quorum | NotRead:
    """From DescribeQuorum; the times are this machine's, before and after the question.

    The controller id of DescribeCluster and Metadata is no help: under KRaft brokers put a live broker there at random
    (MetadataCache.getAliveBroker stands in for the controller), so that old clients send their requests somewhere.
    """
    if isinstance(answer, Failure):
        return NotRead(f"the controller: {answer.detail}")
    error = error_name(answer.error_code)
    if error != NONE:
        return NotRead(with_acl(error, "DESCRIBE"))
    for topic in answer.topics:
        for partition in topic.partitions:
            error = error_name(partition.error_code)
            if error != NONE:
                return NotRead(with_acl(error, "DESCRIBE"))
            if partition.leader_id >= 0:
                timed = answer.version >= 1
                return Quorum(
                    leader=int(partition.leader_id),
                    leader_epoch=int(partition.leader_epoch),
                    voters=_nodes(partition.current_voters, timed=timed),
                    observers=_nodes(partition.observers, timed=timed),
                    listeners=_listeners(answer, int(partition.leader_id)),
                    asked_ms=asked_ms,
                    answered_ms=answered_ms,
                )
    return NotRead("no controller is active")


def _nodes(states: Iterable[Any], *, timed: bool) -> tuple[QuorumNode, ...]:
    return tuple(
        QuorumNode(
            node=int(one.replica_id),
            log_end=_told(one.log_end_offset),
            last_fetch_ms=_told(one.last_fetch_timestamp) if timed else None,
            last_caught_up_ms=_told(one.last_caught_up_timestamp) if timed else None,
        )
        for one in states
    )


def _told(value: int) -> int | None:
    """-1 on the wire is nothing that is known."""
    return int(value) if value >= 0 else None


def _listeners(answer: Message, leader: int) -> tuple[str, ...]:
    """Where the voters are; v2 tells."""
    if answer.version < 2:
        return ()
    nodes = sorted(answer.nodes or (), key=lambda node: (node.node_id != leader, node.node_id))
    found = [f"{one.host}:{one.port}" for node in nodes for one in node.listeners]
    return tuple(dict.fromkeys(found))


def _silence(quorum: Message | Failure, moves: Message | Failure) -> str | None:
    """Why neither question came back with an answer of the controller that leads; None: one did, or that is not known,
    since these brokers know no DescribeQuorum (before Kafka 3.3, ZooKeeper's, proxies), or since no broker was there to
    pass it on: one that refuses, hangs up or makes no sense was silent itself.

    Brokers pass both on as they are, so that a denial is the controller's answer, too (KafkaApis.forwardToController;
    ControllerApis.handleDescribeQuorum and handleListPartitionReassignments authorize).
    """
    if isinstance(quorum, Failure):
        if quorum.kind is FailureKind.UNSUPPORTED:
            return None
        why = _waited(quorum)
    else:
        partition = next((error_name(one.error_code) for topic in quorum.topics for one in topic.partitions), NONE)
        errors = [error_name(quorum.error_code), partition]
        why = next((error for error in errors if error != NONE), "no controller is known")
        if why == CLUSTER_UNAUTHORIZED or isinstance(quorum_of(quorum), Quorum):
            return None
    if isinstance(moves, Failure):
        return why or _waited(moves)
    error = error_name(moves.error_code)
    return None if error in {NONE, CLUSTER_UNAUTHORIZED} else why or error


def _waited(failure: Failure) -> str | None:
    """What it tells of the controller: a broker that takes a question and keeps it waits for one."""
    return failure.detail if failure.kind is FailureKind.TIMED_OUT else None
