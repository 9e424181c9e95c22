"""Requests of operators to Apache Kafka 4.3.1 and to a simulated cluster, one after the other: the same answers.

Only what cannot be the same is left out: ids, ports, times, where configs of the labs' own files differ, and the order
of what Kafka shuffles.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from kelr.lab import Lab, wire
from kelr.lab.observed import PATIENCE_S
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.spec import CONTROLLER_ID
from kelr.model import TopicPartition
from kelr.protocol.codec import Struct
from kelr.protocol.messages import DeleteTopicsRequest, DescribeClusterRequest, DescribeQuorumRequest, MetadataRequest
from tests.lab.simulated.test_configs import APPEND, BROKER, DELETE, MIN_ISR, SET, SUBTRACT, TOPIC, UNCLEAN, alter
from tests.lab.simulated.test_configs import describe as describe_configs
from tests.lab.simulated.test_reassignments import alter as reassign
from tests.lab.simulated.test_reassignments import listing
from tests.lab.simulated.test_topics import create, delete, describe, topic

PREFIX = "admin-twin-"
A, B = PREFIX + "a", PREFIX + "b.c"
_UNLIKE = {
    "topic_id",
    "cluster_id",
    "controller_id",
    "port",
    "host",
    "throttle_time_ms",
    "last_fetch_timestamp",
    "last_caught_up_timestamp",
    "replica_directory_id",
    "high_watermark",
    "log_end_offset",
    "leader_epoch",
    "documentation",
}
_FILE, _DEFAULT = 4, 5
"""ConfigSource of what a node's file says, and of what Kafka does: the real lab's files have more in them."""


class Twins:
    """Both clusters; every request goes to both."""

    def __init__(self, real: Lab, simulated: SimulatedServer) -> None:
        self._port_of = (real.port, simulated.ports.__getitem__)

    def same(self, *requests: Any, node: int = 1) -> None:
        """Both answer alike at once: of requests that the controller decides."""
        for request in requests:
            real, simulated = self._answers(request, node)
            assert simulated == real, request

    def soon_the_same(self, *requests: Any, node: int = 1) -> None:
        """Both answer alike once the real broker has heard from its controller."""
        until = time.monotonic() + PATIENCE_S
        for request in requests:
            real, simulated = self._answers(request, node)
            while simulated != real and time.monotonic() < until:
                time.sleep(0.02)
                real, simulated = self._answers(request, node)
            assert simulated == real, request

    def _answers(self, request: Any, node: int) -> tuple[Any, Any]:
        real, simulated = (wire.ask(port(node), request, timeout_s=PATIENCE_S) for port in self._port_of)
        return _comparable(real), _comparable(simulated)


def _comparable(message: Any) -> Any:
    if isinstance(message, Struct):
        kept = {name: _comparable(getattr(message, name)) for name in message.FIELDS if name not in _UNLIKE}
        if kept.get("config_source") == _FILE:
            kept["config_source"] = _DEFAULT
        if "synonyms" in kept:
            kept["synonyms"] = [one for one in kept["synonyms"] if one["source"] != _FILE]
        return kept
    if isinstance(message, list):
        parts = [_comparable(one) for one in message]
        return sorted(parts, key=repr) if parts and isinstance(parts[0], dict) else parts
    return message


@pytest.fixture
def twins(healthy_43: Lab) -> Iterator[Twins]:
    """Both without any topic of these tests, before and after."""
    with SimulatedServer(SimulatedSpec(rules="elr-4.3")) as simulated:
        both = Twins(healthy_43, simulated)
        _clear(healthy_43)
        yield both
        _clear(healthy_43)


def _clear(lab: Lab) -> None:
    port = lab.port(1)
    everything = MetadataRequest(version=12, topics=None)
    found = wire.ask(port, everything, timeout_s=PATIENCE_S)
    made = DeleteTopicsRequest.DeleteTopicState
    old = [made(name=one.name) for one in found.topics if one.name.startswith(PREFIX)]
    if old:
        wire.ask(port, DeleteTopicsRequest(version=6, topics=old, timeout_ms=10_000), timeout_s=PATIENCE_S)
        until = time.monotonic() + PATIENCE_S
        while any(one.name.startswith(PREFIX) for one in wire.ask(port, everything, timeout_s=PATIENCE_S).topics):
            assert time.monotonic() < until, "topics of an earlier test stay"
            time.sleep(0.02)


def _metadata(*topics: Any, version: int = 12) -> Any:
    made = MetadataRequest.MetadataRequestTopic
    named = [made(name=None, topic_id=one) if isinstance(one, UUID) else made(name=one) for one in topics]
    return MetadataRequest(
        version=version, topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def test_topics_are_made_described_and_deleted(twins: Twins) -> None:
    twins.same(
        create(topic(A, assigned=[(0, [1, 2, 3]), (1, [2, 3, 1])], configs=[(MIN_ISR, "2")])),
        create(topic(A, 1, 1), topic(A + "4", 1, 4), topic(A + "0", 0, 1), topic(A + "r", 1, 0), topic("p 3")),
        create(
            topic(A + "1", assigned=[(0, [1, 2]), (1, [2])]),
            topic(A + "2", assigned=[(0, [1, 9])]),
            topic(A + "3", assigned=[(0, [1, 1])]),
            topic(A + "4", assigned=[(0, [])]),
            topic(A + "5", assigned=[(1, [1])]),
            topic(A + "6", assigned=[(0, [1]), (0, [1])]),
            topic(A + "7", 1, assigned=[(0, [1])]),
            topic(A + "8", -1, 1, [(0, [1])]),
            topic("__cluster_metadata", 1, 1),
        ),
        create(*(topic(A + "x", 1, 1, configs=[one]) for one in [("nonsense", "2")])),
        create(topic(A + "x", 1, 1, configs=[(MIN_ISR, "0")]), topic(A + "y", 1, 1, configs=[(MIN_ISR, None)])),
        create(topic(A + "z", 1, 1), topic(A + "z", 1, 1)),
        create(topic(B, assigned=[(0, [3, 1])])),
        create(topic(B.replace(".", "_"), 1, 1)),
        *(create(topic(A + "v", 2, 3), version=version, validate_only=True) for version in range(2, 8)),
    )
    for node in (1, 2, 3):
        twins.soon_the_same(
            describe(A, B, A, "nope", "n o", "__consumer_offsets_", limit=2000),
            describe(A, B, limit=2),
            describe(A, B, cursor=(A, 2), limit=1),
            describe(A, B, cursor=(A, 2**31 - 1)),
            describe(A, B, cursor=(A, -1)),
            describe(A, B, cursor=(A + "a", 0)),
            describe(A, ""),
            *(_metadata(A, B, "nope", "n o", version=version) for version in range(14)),
            _metadata(UUID(int=5)),
            _metadata(UUID(int=5), version=11),
            node=node,
        )
    made = DeleteTopicsRequest.DeleteTopicState
    twins.same(
        delete(made(name="nope"), made(name=None), made(name=None, topic_id=UUID(int=9)), made(name=A), made(name=A)),
        delete(made(name=A, topic_id=UUID(int=9)), made(name=B)),
        *(DeleteTopicsRequest(version=one, topic_names=["nope", "n o"], timeout_ms=9000) for one in range(1, 6)),
    )
    twins.soon_the_same(describe(A, B))


def test_configs_are_written_and_described(twins: Twins) -> None:
    twins.same(create(topic(A, assigned=[(0, [1, 2, 3])])))
    keys = (MIN_ISR, "cleanup.policy", "retention.ms", "nonsense")
    twins.soon_the_same(describe_configs((TOPIC, A), keys=keys))
    changes: list[list[tuple[str, int, str | None]]] = [
        [(MIN_ISR, SET, "1"), ("retention.ms", SET, "1000")],
        [(MIN_ISR, SET, "0")],
        [(MIN_ISR, SET, "x")],
        [(MIN_ISR, SET, "99999999999")],
        [(UNCLEAN, SET, "yes")],
        [(UNCLEAN, SET, "TRUE")],
        [(UNCLEAN, DELETE, None)],
        [("nonsense", SET, "0")],
        [("nonsense", DELETE, None)],
        [(MIN_ISR, SET, None)],
        [(MIN_ISR, SET, "1"), (MIN_ISR, SET, "2")],
        [("cleanup.policy", APPEND, "compact")],
        [("cleanup.policy", SUBTRACT, "delete")],
        [(MIN_ISR, APPEND, "2")],
        [(MIN_ISR, 7, "2")],
    ]
    twins.same(*(alter((TOPIC, A, change)) for change in changes))
    for node in (1, CONTROLLER_ID):
        twins.soon_the_same(
            *(describe_configs((TOPIC, A), keys=keys, version=version) for version in range(1, 5)),
            describe_configs((TOPIC, "nope"), (TOPIC, "n o"), (BROKER, "2"), (BROKER, "x"), (8, "")),
            describe_configs((3, A), (TOPIC, A)),
            describe_configs((BROKER, "")),
            node=node,
        )
    refused = [(MIN_ISR, DELETE, None)]
    for node in (1, CONTROLLER_ID):
        twins.same(
            alter((TOPIC, "nope", [(MIN_ISR, SET, "2")]), (TOPIC, "n o", refused), (TOPIC, "", refused)),
            alter((BROKER, "", refused)),
            alter((BROKER, str(node), refused), (BROKER, "9", refused), (BROKER, "x", refused)),
            alter((TOPIC, A, refused), (TOPIC, A, refused)),
            alter((BROKER, "9", [("num.io.threads", SET, "9")]), (BROKER, "x", [("num.io.threads", SET, "9")])),
            alter((3, A, refused)),
            node=node,
        )
    twins.same(
        alter((BROKER, "", [(MIN_ISR, SET, "0")]), (BROKER, "1", [("num.io.threads", SET, "xx")])),
        alter((BROKER, "", [("process.roles", SET, "2"), ("broker.id", SET, "2")])),
    )


def test_replicas_are_reassigned(twins: Twins) -> None:
    twins.same(create(topic(A, assigned=[(0, [1, 2, 3])])))
    address = TopicPartition(A, 0)
    for node in (1, CONTROLLER_ID):
        twins.same(
            reassign({TopicPartition("nope", 0): [1], TopicPartition(A, 9): [1]}),
            *(reassign({address: replicas}) for replicas in (None, [], [1, 1], [1, 9], [-1])),
            reassign({address: [2, 1]}, may_change_count=False),
            reassign({address: [2, 3, 1]}, version=0),
            reassign({}),
            listing({A: [0, 9], "nope": [0]}),
            node=node,
        )
    twins.soon_the_same(describe(A))
    twins.same(reassign({address: [3]}))
    twins.soon_the_same(listing({A: [0]}), describe(A))


def test_nodes_and_the_quorum(twins: Twins) -> None:
    made = DescribeQuorumRequest.TopicData
    for node in (1, CONTROLLER_ID):
        for endpoint in (1, 2, 3):
            twins.soon_the_same(
                *(
                    DescribeClusterRequest(
                        version=version,
                        endpoint_type=endpoint,
                        include_fenced_brokers=version >= 2,
                        include_cluster_authorized_operations=True,
                    )
                    for version in (1, 2)
                ),
                node=node,
            )
        for name, number in (("__cluster_metadata", 0), ("__cluster_metadata", 1), ("nope", 0)):
            asked = [made(topic_name=name, partitions=[made.PartitionData(partition_index=number)])]
            twins.soon_the_same(*(DescribeQuorumRequest(version=one, topics=asked) for one in range(3)), node=node)
        twins.same(DescribeQuorumRequest(version=2, topics=[]), DescribeClusterRequest(version=0), node=node)
