"""Controllers of a quorum at the transport seam: real requests and answers, byte for byte, no network.

What they answer follows KafkaRaftClient and RaftLog.validateOffsetAndEpoch of Apache Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kelr.sources.live.transport import Failure, FailureKind, NodeAddress, NodeId, Request
from kelr.sources.records.batches import BatchRun
from tests.still_ground import StillGround

CODES = {
    "NONE": 0,
    "UNKNOWN_SERVER_ERROR": -1,
    "NOT_LEADER_OR_FOLLOWER": 6,
    "CLUSTER_AUTHORIZATION_FAILED": 31,
    "INVALID_REQUEST": 42,
    "FENCED_LEADER_EPOCH": 74,
    "UNKNOWN_LEADER_EPOCH": 75,
    "SNAPSHOT_NOT_FOUND": 98,
    "POSITION_OUT_OF_RANGE": 99,
    "UNKNOWN_TOPIC_ID": 100,
    "INCONSISTENT_CLUSTER_ID": 104,
    "MISMATCHED_ENDPOINT_TYPE": 114,
}
_REFUSED_CONNECTION = Failure(FailureKind.UNREACHABLE, "connection refused")


@dataclass
class FakeQuorum:
    """A quorum whose leader has this log; the others have none of it to give."""

    log: list[bytes]
    """Batches, one after the other, from the log's start on."""
    controllers: Sequence[int] = (100,)
    leader: int = 100
    """-1: none is elected."""
    epoch: int = 1
    cluster_id: str = "the-cluster"
    high_watermark: int | None = None
    """None: all is committed."""
    snapshots: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """By end offset and epoch, the bootstrap checkpoint left out."""
    most_bytes: int = 1 << 20
    piece_bytes: int = 1 << 20
    """The most bytes of a snapshot in one answer."""
    dead: set[int] = field(default_factory=set)
    unauthorized: frozenset[str] = frozenset()
    """Names of requests."""
    are_brokers: bool = False
    knows_peers: bool = True
    """Whether DescribeCluster tells of all controllers."""
    endpoints: bool = True
    """Whether answers tell where the leader is."""
    before: Callable[[FakeQuorum, int, str], Failure | None] = lambda _quorum, _node, _name: None
    """Called before each request; a Failure is the answer."""
    altered: Callable[[str, dict[str, Any]], None] = lambda _name, _partition: None
    """Changes the partition of an answer."""
    asked: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    """(controller, request, its partition's fields) of each Fetch and FetchSnapshot."""

    @property
    def ends(self) -> list[tuple[int, int, int]]:
        """(base offset, next offset, epoch) of each batch."""
        found = [header for data in self.log for _, header in BatchRun(data)]
        return [(one.base_offset, one.next_offset, one.partition_leader_epoch or 0) for one in found]

    @property
    def start(self) -> int:
        return self.ends[0][0]

    @property
    def end(self) -> int:
        return self.ends[-1][1]

    @property
    def committed(self) -> int:
        return self.end if self.high_watermark is None else self.high_watermark

    def answer(self, node: int, question: Request) -> Any:
        early = self.before(self, node, question.name)
        if early is not None:
            return early
        if node in self.dead:
            return _REFUSED_CONNECTION
        version, message = question.newest, question.message
        request = type(message).decode(message.encode(version), version)
        made = {
            "ApiVersions": self._api_versions,
            "DescribeCluster": self._describe_cluster,
            "Fetch": self._fetch,
            "FetchSnapshot": self._fetch_snapshot,
        }[question.name](node, request)
        body = question.answer(**made).encode(version)
        return question.answer.decode(body, version) if question.read is None else question.read(body, version)

    def _api_versions(self, _node: int, _request: Any) -> Mapping[str, Any]:
        return {"error_code": 0, "api_keys": []}

    def _describe_cluster(self, _node: int, _request: Any) -> Mapping[str, Any]:
        if self.are_brokers:
            return {"error_code": CODES["MISMATCHED_ENDPOINT_TYPE"], "cluster_id": "", "brokers": []}
        if "DescribeCluster" in self.unauthorized:
            return {"error_code": CODES["CLUSTER_AUTHORIZATION_FAILED"], "cluster_id": "", "brokers": []}
        told = self.controllers if self.knows_peers else ()
        brokers = [{"broker_id": node, "host": "localhost", "port": 9000 + node} for node in told]
        return {"error_code": 0, "endpoint_type": 2, "cluster_id": self.cluster_id, "brokers": brokers}

    def _fetch(self, node: int, request: Any) -> Mapping[str, Any]:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        self.asked.append((node, "Fetch", {name: getattr(wanted, name) for name in wanted.FIELDS}))
        refused = self._refused("Fetch", request)
        if refused is not None:
            return {"error_code": CODES[refused], "responses": []}
        partition: dict[str, Any] = {
            "partition_index": 0,
            "error_code": CODES[self._unfit(node, wanted.current_leader_epoch)],
            "high_watermark": -1,
            "log_start_offset": self.start,
            "current_leader": {"leader_id": self.leader, "leader_epoch": self.epoch},
            "records": b"",
        }
        if partition["error_code"] == 0:
            partition["high_watermark"] = self.committed
            partition.update(self._read(wanted.fetch_offset, wanted.last_fetched_epoch))
        self.altered("Fetch", partition)
        return {"responses": [{"topic_id": topic.topic_id, "partitions": [partition]}], **self._where()}

    def _read(self, offset: int, epoch: int) -> dict[str, Any]:
        newest, oldest = max(self.snapshots, default=None), min(self.snapshots, default=None)
        if offset == 0 and newest is not None:
            return {"snapshot_id": {"end_offset": newest[0], "epoch": newest[1]}}
        if newest is not None and oldest is not None and self.start > 0:
            at_start = offset == self.start and epoch != oldest[1]
            if offset < self.start or at_start or epoch < oldest[1]:
                return {"snapshot_id": {"end_offset": newest[0], "epoch": newest[1]}}
        known = [(one, end) for _, end, one in self.ends if one <= epoch]
        # Of an epoch before all that the log has, the oldest snapshot is the end.
        held, end = known[-1] if known else (0 if oldest is None else oldest[1], self.start)
        if offset > 0 and (held != epoch or end < offset):
            return {"diverging_epoch": {"epoch": held, "end_offset": end}}
        found = b""
        for data, (_, end, _) in zip(self.log, self.ends, strict=True):
            if end > offset and (not found or len(found) + len(data) <= self.most_bytes):
                found += data
            elif found:
                break
        return {"records": found}

    def _fetch_snapshot(self, node: int, request: Any) -> Mapping[str, Any]:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        self.asked.append((node, "FetchSnapshot", {name: getattr(wanted, name) for name in wanted.FIELDS}))
        refused = self._refused("FetchSnapshot", request)
        if refused is not None:
            return {"error_code": CODES[refused], "topics": []}
        key = (wanted.snapshot_id.end_offset, wanted.snapshot_id.epoch)
        error = self._unfit(node, wanted.current_leader_epoch)
        held = self.snapshots.get(key)
        if error == "NONE" and held is None:
            error = "SNAPSHOT_NOT_FOUND"
        if error == "NONE" and held is not None and wanted.position >= len(held):
            error = "POSITION_OUT_OF_RANGE"
        partition: dict[str, Any] = {
            "index": 0,
            "error_code": CODES[error],
            "snapshot_id": {"end_offset": key[0], "epoch": key[1]},
            "current_leader": {"leader_id": self.leader, "leader_epoch": self.epoch},
            "unaligned_records": b"",
        }
        if error == "NONE" and held is not None:
            piece = held[wanted.position : wanted.position + self.piece_bytes]
            partition.update(size=len(held), position=wanted.position, unaligned_records=piece)
        self.altered("FetchSnapshot", partition)
        return {"topics": [{"name": topic.name, "partitions": [partition]}], **self._where()}

    def _refused(self, name: str, request: Any) -> str | None:
        if name in self.unauthorized:
            return "CLUSTER_AUTHORIZATION_FAILED"
        if request.cluster_id not in {None, self.cluster_id}:
            return "INCONSISTENT_CLUSTER_ID"
        return None

    def _unfit(self, node: int, epoch: int) -> str:
        if self.are_brokers:
            return "UNKNOWN_TOPIC_ID"
        if epoch != self.epoch:
            return "FENCED_LEADER_EPOCH" if epoch < self.epoch else "UNKNOWN_LEADER_EPOCH"
        return "NONE" if node == self.leader else "NOT_LEADER_OR_FOLLOWER"

    def _where(self) -> Mapping[str, Any]:
        if not self.endpoints or self.leader < 0:
            return {}
        return {"node_endpoints": [{"node_id": self.leader, "host": "localhost", "port": 9000 + self.leader}]}


class FakeControllers:
    """The transport to such a quorum; its clock goes on when it pauses."""

    def __init__(self, quorum: FakeQuorum, bootstrap: Sequence[int] | None = None) -> None:
        self._quorum = quorum
        self._bootstrap = {f"bootstrap-{at}": node for at, node in enumerate(bootstrap or quorum.controllers[:1])}
        self._known: dict[int, NodeAddress] = {}
        self.ground = StillGround()
        self.closed = False

    def bootstrap_nodes(self) -> Mapping[NodeId, NodeAddress]:
        return {name: NodeAddress("localhost", 9000 + node) for name, node in self._bootstrap.items()}

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        del nodes, timeout_s

    def add_nodes(self, nodes: Mapping[int, NodeAddress], *, cluster_id: str | None = None) -> None:  # noqa: ARG002
        self._known = dict(nodes)

    def exchange(self, node: NodeId, request: Any, *, timeout_s: float | None = None) -> Any:
        assert timeout_s is not None
        if isinstance(node, int):
            return self._quorum.answer(self._known[node].port - 9000, request)
        return self._quorum.answer(self._bootstrap[node], request)

    def first_answer(
        self, nodes: Sequence[NodeId], request: Callable[[], Any], *, timeout_s: float
    ) -> tuple[NodeId, Any] | Mapping[NodeId, Failure]:
        failures: dict[NodeId, Failure] = {}
        for node in nodes:
            answer = self.exchange(node, request(), timeout_s=timeout_s)
            if not isinstance(answer, Failure):
                return node, answer
            failures[node] = answer
        return failures

    def close(self) -> None:
        self.closed = True
