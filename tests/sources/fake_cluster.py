"""A Kafka cluster in a few dictionaries, at the transport seam: real requests and answers, byte for byte, no network.

What it answers about logs follows Partition.fetchRecords and LeaderEpochFileCache.endOffsetFor of Apache Kafka.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kelr.model import Cluster, PartitionState, TopicPartition
from kelr.model.cluster import BrokerStatus
from kelr.protocol.messages import (
    ApiVersionsResponse,
    DescribeClusterResponse,
    DescribeConfigsResponse,
    DescribeQuorumResponse,
    DescribeTopicPartitionsResponse,
    FetchResponse,
    ListOffsetsResponse,
    ListPartitionReassignmentsResponse,
    MetadataResponse,
)
from kelr.sources.live.transport import Ask, Dialogue, Failure, FailureKind, NodeAddress, NodeId, Pause, Request
from tests.still_ground import StillGround

Versions = Mapping[int, int]
"""API key to the newest version that the cluster knows."""

MODERN: Versions = {1: 18, 2: 11, 3: 13, 18: 4, 32: 4, 46: 0, 55: 2, 60: 2, 75: 0}
BEFORE_3_8: Versions = {1: 15, 2: 7, 3: 12, 18: 3, 32: 4, 46: 0, 55: 1, 60: 1}
KAFKA_2_4: Versions = {1: 11, 2: 5, 3: 9, 18: 2}


@dataclass
class FakeLog:
    """One replica's log: epoch history as (epoch, start offset), oldest first."""

    epochs: list[tuple[int, int]] = field(default_factory=list)
    log_end: int = 0
    log_start: int = 0
    local_start: int = 0
    remote_end: int = 0
    """0: the broker knows of nothing in remote storage."""
    high_watermark: int = 0
    open_from: int | None = None
    """First offset of the oldest transaction without an end."""
    leader_epoch: int = 0
    error: int = 0
    """Error code of every answer about this log."""
    fetch_error: int = 0

    def end_offset_for(self, epoch: int) -> tuple[int, int] | None:
        """(epoch, end offset), or None where Kafka finds the epoch above all it knows."""
        if not self.epochs or epoch > self.epochs[-1][0]:
            return None
        if epoch == self.epochs[-1][0]:
            return epoch, self.log_end
        following = next((start for known, start in self.epochs if known > epoch), None)
        assert following is not None
        held = [known for known, _ in self.epochs if known <= epoch]
        return (held[-1] if held else epoch), following


@dataclass
class FakeCluster:
    """State of the cluster, and how it misbehaves."""

    cluster: Cluster
    partitions: dict[TopicPartition, PartitionState]
    logs: dict[tuple[int, TopicPartition], FakeLog] = field(default_factory=dict)
    versions: Versions = field(default_factory=lambda: MODERN)
    page_limit: int = 2000
    configs: Mapping[str, Mapping[str, tuple[str, int]]] = field(default_factory=dict)
    """Topic to config name to (value, source) as they are on the wire."""
    unauthorized: frozenset[str] = frozenset()
    reassignments_error: int = 0
    """Error code of the list of reassignments; those under way are in the partitions."""
    dead: set[NodeId] = field(default_factory=set)
    failures: dict[NodeId, Failure] = field(default_factory=dict)
    before: Callable[[NodeId, str], Failure | None] = lambda _node, _name: None
    """Called before each request with the node and the request's name; a Failure is the answer."""
    requests: list[tuple[NodeId, str, int]] = field(default_factory=list)
    """(node, request name, partitions in it) of everything that was asked."""

    def answer(self, node: NodeId, request: Any) -> Any:
        name = request.name
        early = self.before(node, name)
        if early is not None:
            return early
        if node in self.dead:
            return Failure(FailureKind.UNREACHABLE, "connection refused")
        if node in self.failures:
            return self.failures[node]
        version = self._version(request)
        if version is None:
            return Failure(FailureKind.UNSUPPORTED, f"Kafka broker does not support {name}")
        heard = type(request.message).decode(request.message.encode(version), version)
        self.requests.append((node, name, _size(heard)))
        reply = getattr(self, "_" + re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower())(node, heard, version)
        return type(reply).decode(reply.encode(version), version)

    def _version(self, request: Request) -> int | None:
        known = self.versions.get(request.key)
        if known is None:
            return None
        version = min(known, request.newest)
        return None if version < (request.min_version or 0) else version

    def _api_versions(self, _node: NodeId, _request: Any, version: int) -> Any:
        features = self.cluster.features
        reply = ApiVersionsResponse(
            version=version,
            error_code=0,
            api_keys=[
                ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=newest)
                for key, newest in self.versions.items()
            ],
            throttle_time_ms=0,
        )
        if version >= 3 and features.finalized is not None:
            reply.finalized_features_epoch = 7
            reply.finalized_features = [
                ApiVersionsResponse.FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in features.finalized.items()
            ]
            reply.supported_features = [
                ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=0, max_version=level)
                for name, level in (features.supported or {}).items()
            ]
        return reply

    def _describe_cluster(self, _node: NodeId, request: Any, version: int) -> Any:
        fenced_too = version >= 2 and request.include_fenced_brokers
        return DescribeClusterResponse(
            version=version,
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            endpoint_type=1,
            cluster_id=self.cluster.cluster_id,
            controller_id=2,
            brokers=[
                DescribeClusterResponse.DescribeClusterBroker(
                    broker_id=broker.id,
                    host=broker.host,
                    port=broker.port,
                    rack=broker.rack,
                    is_fenced=broker.status is BrokerStatus.FENCED,
                )
                for broker in self.cluster.brokers
                if fenced_too or broker.status is BrokerStatus.LIVE
            ],
        )

    def _describe_quorum(self, _node: NodeId, _request: Any, version: int) -> Any:
        topic = DescribeQuorumResponse.TopicData
        leader = -1 if self.cluster.controller is None else self.cluster.controller
        partition = topic.PartitionData(
            partition_index=0,
            error_code=0,
            error_message=None,
            leader_id=leader,
            leader_epoch=1,
            high_watermark=1,
            current_voters=[],
            observers=[],
        )
        return DescribeQuorumResponse(
            version=version,
            error_code=0,
            error_message=None,
            topics=[topic(topic_name="__cluster_metadata", partitions=[partition])],
            nodes=[],
        )

    def _list_partition_reassignments(self, _node: NodeId, request: Any, version: int) -> Any:
        assert request.topics is None
        kind = ListPartitionReassignmentsResponse.OngoingTopicReassignment
        moving = [state for state in self.partitions.values() if state.adding or state.removing]
        return ListPartitionReassignmentsResponse(
            version=version,
            throttle_time_ms=0,
            error_code=self.reassignments_error,
            error_message=None,
            topics=[
                kind(
                    name=state.topic,
                    partitions=[
                        kind.OngoingPartitionReassignment(
                            partition_index=state.partition,
                            replicas=list(state.replicas),
                            adding_replicas=list(state.adding or ()),
                            removing_replicas=list(state.removing or ()),
                        )
                    ],
                )
                for state in moving
                if not self.reassignments_error
            ],
        )

    def _describe_configs(self, _node: NodeId, request: Any, version: int) -> Any:
        kind = DescribeConfigsResponse.DescribeConfigsResult
        results = []
        for resource in request.resources:
            assert resource.resource_type == 2
            name = resource.resource_name
            held = self.configs.get(name, {}) if not self._code(name) else {}
            results.append(
                kind(
                    error_code=self._code(name),
                    error_message=None,
                    resource_type=2,
                    resource_name=name,
                    configs=[
                        kind.DescribeConfigsResourceResult(
                            name=key,
                            value=value,
                            read_only=False,
                            config_source=source,
                            is_sensitive=False,
                            synonyms=[],
                        )
                        for key, (value, source) in held.items()
                        if key in resource.configuration_keys
                    ],
                )
            )
        return DescribeConfigsResponse(version=version, throttle_time_ms=0, results=results)

    def _describe_topic_partitions(self, _node: NodeId, request: Any, version: int) -> Any:
        kind = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
        cursor = request.cursor
        start = None if cursor is None else TopicPartition(cursor.topic_name, cursor.partition_index)
        names = sorted({topic.name for topic in request.topics} or {address.topic for address in self.partitions})
        named = bool(request.topics)
        names = [name for name in names if start is None or name >= start.topic]
        left = min(request.response_partition_limit, self.page_limit)
        topics, following = [], None
        for name in names:
            states = self._states(name)
            if name in self.unauthorized or not states:
                continue
            wanted = [state for state in states if start is None or state.address >= start]
            if following is None and wanted and left == 0:
                following = wanted[0].address
            if following is not None:
                break
            topics.append(kind(error_code=0, name=name, topic_id=_uuid(states[0]), is_internal=False, partitions=[]))
            topics[-1].partitions = [self._described(kind, state) for state in wanted[:left]]
            topics[-1].topic_authorized_operations = -(2**31)
            if len(wanted) > left:
                following = wanted[left].address
            left -= len(wanted[:left])
        if named:
            topics += [self._topic_error(kind, name) for name in names if self._code(name)]
        return DescribeTopicPartitionsResponse(
            version=version,
            throttle_time_ms=0,
            topics=topics,
            next_cursor=None
            if following is None
            else DescribeTopicPartitionsResponse.Cursor(
                topic_name=following.topic, partition_index=following.partition
            ),
        )

    def _metadata(self, _node: NodeId, request: Any, version: int) -> Any:
        kind = MetadataResponse.MetadataResponseTopic
        names = (
            sorted({address.topic for address in self.partitions} - self.unauthorized)
            if request.topics is None
            else [topic.name for topic in request.topics]
        )
        topics = []
        for name in names:
            code, states = self._code(name), self._states(name)
            topic_id = _uuid(states[0]) if states else UUID(int=0)
            topics.append(kind(error_code=code, name=name, topic_id=topic_id, is_internal=False, partitions=[]))
            if not code:
                topics[-1].partitions = [self._from_metadata(kind, state) for state in states]
        return MetadataResponse(
            version=version,
            throttle_time_ms=0,
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=b.id, host=b.host, port=b.port, rack=b.rack)
                for b in self.cluster.brokers
                if b.status is BrokerStatus.LIVE
            ],
            cluster_id=self.cluster.cluster_id,
            controller_id=1,
            topics=topics,
        )

    def _list_offsets(self, node: NodeId, request: Any, version: int) -> Any:
        assert request.replica_id == -2
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        return ListOffsetsResponse(
            version=version,
            throttle_time_ms=0,
            topics=[
                kind(
                    name=topic.name,
                    partitions=[self._offset(kind, node, topic.name, partition) for partition in topic.partitions],
                )
                for topic in request.topics
            ],
        )

    def _offset(self, kind: Any, node: NodeId, topic: str, asked: Any) -> Any:
        address = TopicPartition(topic, asked.partition_index)
        log = self._log(node, address)
        offset = {-1: log.log_end, -4: log.local_start, -5: log.remote_end - 1}[asked.timestamp]
        failed = log.error or (29 if address.topic in self.unauthorized else 0)
        return kind.ListOffsetsPartitionResponse(
            partition_index=address.partition,
            error_code=failed,
            timestamp=-1,
            offset=-1 if failed else offset,
            leader_epoch=-1 if failed else log.leader_epoch,
        )

    def _fetch(self, node: NodeId, request: Any, version: int) -> Any:
        kind = FetchResponse.FetchableTopicResponse
        replies = []
        for topic in request.topics:
            name = topic.topic if version < 13 else self._name(topic.topic_id)
            replies.append(kind(topic=name, topic_id=topic.topic_id, partitions=[]))
            replies[-1].partitions = [self._fetched(kind, node, name, wanted) for wanted in topic.partitions]
        return FetchResponse(version=version, throttle_time_ms=0, error_code=0, session_id=0, responses=replies)

    def _fetched(self, kind: Any, node: NodeId, topic: str, wanted: Any) -> Any:
        log = self._log(node, TopicPartition(topic, wanted.partition))
        reply = kind.PartitionData(
            partition_index=wanted.partition,
            error_code=log.error or log.fetch_error,
            high_watermark=-1,
            last_stable_offset=-1,
            log_start_offset=-1,
            aborted_transactions=None,
            preferred_read_replica=-1,
            records=None,
        )
        if reply.error_code == 0 and wanted.current_leader_epoch not in {-1, log.leader_epoch}:
            reply.error_code = 74 if wanted.current_leader_epoch < log.leader_epoch else 75
        if reply.error_code:
            return reply
        end = None if wanted.last_fetched_epoch < 0 else log.end_offset_for(wanted.last_fetched_epoch)
        beyond = not log.log_start <= wanted.fetch_offset <= log.log_end
        if (wanted.last_fetched_epoch >= 0 and end is None) or (end is None and beyond):
            reply.error_code = 1
            return reply
        reply.high_watermark, reply.log_start_offset = log.high_watermark, log.log_start
        reply.last_stable_offset = min(
            log.high_watermark, log.high_watermark if log.open_from is None else log.open_from
        )
        if end is not None:
            reply.diverging_epoch = kind.PartitionData.EpochEndOffset(epoch=end[0], end_offset=end[1])
        return reply

    def _log(self, node: NodeId, address: TopicPartition) -> FakeLog:
        assert isinstance(node, int)
        return self.logs.get((node, address), FakeLog(error=6))

    def _name(self, topic_id: UUID) -> str:
        return next((s.topic for s in self.partitions.values() if _uuid(s) == topic_id), "")

    def _states(self, topic: str) -> list[PartitionState]:
        return sorted((s for s in self.partitions.values() if s.topic == topic), key=lambda state: state.address)

    def _code(self, topic: str) -> int:
        return 29 if topic in self.unauthorized else 0 if self._states(topic) else 3

    def _topic_error(self, kind: Any, topic: str) -> Any:
        reply = kind(error_code=self._code(topic), name=topic, topic_id=UUID(int=0), is_internal=False, partitions=[])
        reply.topic_authorized_operations = -(2**31)
        return reply

    def _described(self, kind: Any, state: PartitionState) -> Any:
        return kind.DescribeTopicPartitionsResponsePartition(
            error_code=0 if state.leader is not None else 5,
            partition_index=state.partition,
            leader_id=-1 if state.leader is None else state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            eligible_leader_replicas=list(state.elr or ()),
            last_known_elr=list(state.last_known_elr or ()),
            offline_replicas=list(state.offline_replicas or ()),
        )

    def _from_metadata(self, kind: Any, state: PartitionState) -> Any:
        return kind.MetadataResponsePartition(
            error_code=0 if state.leader is not None else 5,
            partition_index=state.partition,
            leader_id=-1 if state.leader is None else state.leader,
            leader_epoch=state.leader_epoch,
            replica_nodes=list(state.replicas),
            isr_nodes=list(state.isr),
            offline_replicas=list(state.offline_replicas or ()),
        )


class FakeTransport:
    """A `Transport` that asks a `FakeCluster`; only pauses take time."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.ground = StillGround()
        self.addresses: dict[int, NodeAddress] = {}
        self.closed = False

    def bootstrap_nodes(self) -> Mapping[NodeId, NodeAddress]:
        return {"bootstrap-0": NodeAddress("127.0.0.1", 1)}

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        assert nodes
        assert timeout_s > 0

    def exchange(self, node: NodeId, request: Any, *, timeout_s: float | None = None) -> Any:
        assert timeout_s is None or timeout_s > 0
        answer = self.cluster.answer(node, request)
        if request.read is None or isinstance(answer, Failure):
            return answer
        return request.read(answer.encode(), answer.version)

    def send_ahead(self, node: NodeId, request: Any) -> None:
        """Left at that: requests are counted when they are asked for."""

    def exchange_all(self, node: NodeId, requests: Sequence[Any], *, timeout_s: float) -> Sequence[Any]:
        return [self.exchange(node, request, timeout_s=timeout_s) for request in requests]

    def first_answer(self, nodes: Sequence[NodeId], request: Callable[[], Any], *, timeout_s: float) -> Any:
        failures = {}
        for node in nodes:
            answer = self.exchange(node, request(), timeout_s=timeout_s)
            if not isinstance(answer, Failure):
                return node, answer
            failures[node] = answer
        return failures

    def run(self, dialogues: Mapping[NodeId, Callable[[], Dialogue[Any]]]) -> Mapping[NodeId, Any]:
        return {node: self._hold(node, start()) for node, start in dialogues.items()}

    def _hold(self, node: NodeId, dialogue: Dialogue[Any]) -> Any:
        answer: Any = None
        while True:
            try:
                wanted = dialogue.send(answer)
            except StopIteration as end:
                return end.value
            if isinstance(wanted, Pause):
                self.ground.sleep(wanted.seconds)
                answer = None
            else:
                assert isinstance(wanted, Ask)
                answer = self.exchange(node, wanted.request, timeout_s=wanted.timeout_s)

    def add_nodes(self, nodes: Mapping[int, NodeAddress], *, cluster_id: str | None = None) -> None:  # noqa: ARG002
        self.addresses = dict(nodes)

    def close(self) -> None:
        self.closed = True


def _uuid(state: PartitionState) -> UUID:
    if state.topic_id is None:
        return UUID(int=0)
    return UUID(bytes=base64.urlsafe_b64decode(state.topic_id + "=="))


def _size(request: Any) -> int:
    topics = getattr(request, "topics", None) or []
    return sum(len(getattr(topic, "partitions", None) or ()) for topic in topics)
