"""Metadata, DescribeCluster and DescribeQuorum: who is there, and who leads.

Source: KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache, AuthHelper.computeDescribeClusterResponse,
KafkaRaftClient.handleDescribeQuorumRequest of Apache Kafka 4.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from uuid import UUID

from kafka.protocol.admin.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kelr.lab.simulated.api import Api, Call, Message, Nodes, code
from kelr.lab.simulated.handlers.authorized import (
    CLUSTER,
    DENIED,
    TOPIC,
    cluster_operations,
    operations,
)
from kelr.lab.simulated.handlers.partitions import NO_LEADER, is_internal, offline, unknown_topic
from kelr.lab.simulated.world import HOST, World
from kelr.model import PartitionState, TopicPartition

NO_ID = UUID(int=0)
METADATA_TOPIC = "__cluster_metadata"
QUORUM_EPOCH = 1
_BROKERS, _CONTROLLERS = 1, 2
_NAMED_BY_ID = 12
"""The first version of Metadata that may name topics by their ids."""


# Metadata.


def metadata(call: Call) -> Message:
    """Live brokers, and the topics that were asked for; topics are never made by it."""
    world, request = call.world, call.request
    if any(_malformed(topic, call.version) for topic in request.topics or ()):
        return _malformed_answer(call)
    brokers = [
        MetadataResponse.MetadataResponseBroker(
            node_id=broker, host=HOST, port=world.ports[broker], rack=world.brokers[broker].rack
        )
        for broker in live(world)
    ]
    return MetadataResponse(
        version=call.version,
        brokers=brokers,
        cluster_id=world.cluster_id,
        controller_id=some_broker(world, call.node),
        topics=list(_topics(call)),
        authorized_operations=cluster_operations(
            world, asked=bool(8 <= call.version <= 10 and request.include_cluster_authorized_operations)
        ),
    )


def live(world: World) -> list[int]:
    """The brokers that are not fenced, in order."""
    return sorted(broker for broker, registration in world.brokers.items() if not registration.fenced)


def some_broker(world: World, node: int) -> int:
    """The broker that a node names in the controller's place: any live one (KRaftMetadataCache.getRandomAliveBrokerId).

    Kafka throws dice for each answer; here each node always names the same one while the same brokers live.
    """
    brokers = live(world)
    if not brokers:
        return NO_LEADER
    digest = hashlib.blake2b(f"{world.cluster_id}/{node}".encode(), digest_size=4).digest()
    return brokers[int.from_bytes(digest, "big") % len(brokers)]


def _topics(call: Call) -> Iterator[Message]:
    world, wanted = call.world, call.request.topics
    if wanted is None or (call.version == 0 and not wanted):
        for topic in world.topics():
            if world.allowed(TOPIC, "DESCRIBE", topic):
                yield _topic(call, topic)
        return
    ids = [topic.topic_id for topic in wanted if topic.topic_id and topic.topic_id != NO_ID]
    if ids:
        yield from _by_id(call, dict.fromkeys(ids))
        return
    for name in dict.fromkeys(topic.name for topic in wanted):
        if not world.allowed(TOPIC, "DESCRIBE", name):
            yield _failed(name, NO_ID, DENIED[TOPIC])
        elif world.partitions(name):
            yield _topic(call, name)
        else:
            yield _failed(name, NO_ID, unknown_topic(name))


def _malformed(topic: Message, version: int) -> bool:
    return version < _NAMED_BY_ID and (topic.name is None or topic.topic_id not in {None, NO_ID})


def _malformed_answer(call: Call) -> Message:
    """The whole request fails; its answer still names the topics (MetadataRequest.getErrorResponse)."""
    topics = [_failed(topic.name or "", topic.topic_id or NO_ID, "INVALID_REQUEST") for topic in call.request.topics]
    return MetadataResponse(
        version=call.version,
        brokers=[],
        cluster_id=None,
        controller_id=NO_LEADER,
        topics=topics,
        authorized_operations=None,
    )


def _by_id(call: Call, ids: dict[UUID, None]) -> Iterator[Message]:
    for topic_id in ids:
        name = call.world.topic_of(topic_id)
        if name is None:
            yield _failed(None, topic_id, "UNKNOWN_TOPIC_ID")
        elif not call.world.allowed(TOPIC, "DESCRIBE", name):
            yield _failed(None, topic_id, DENIED[TOPIC])
        else:
            yield _topic(call, name)


def _failed(name: str | None, topic_id: UUID, error: str) -> Message:
    return MetadataResponse.MetadataResponseTopic(
        error_code=code(error),
        name=name,
        topic_id=topic_id,
        is_internal=is_internal(name),
        partitions=[],
        authorized_operations=None,
    )


def _topic(call: Call, name: str) -> Message:
    world = call.world
    states = (world.state(TopicPartition(name, number)) for number in range(world.partitions(name)))
    asked = call.version >= 8 and call.request.include_topic_authorized_operations
    return MetadataResponse.MetadataResponseTopic(
        error_code=0,
        name=name,
        topic_id=world.topic_id(name),
        is_internal=is_internal(name),
        partitions=[_partition(call, state) for state in states if state is not None],
        authorized_operations=operations(world, TOPIC, name) if asked else None,
    )


def _partition(call: Call, state: PartitionState) -> Message:
    brokers = call.world.brokers
    replicas, isr = list(state.replicas), list(state.isr)
    if call.version == 0:
        replicas = [replica for replica in replicas if replica in brokers and not brokers[replica].fenced]
        isr = [replica for replica in isr if replica in brokers and not brokers[replica].fenced]
    error = "NONE"
    if state.leader not in brokers:
        error = "LEADER_NOT_AVAILABLE"
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = "REPLICA_NOT_AVAILABLE"
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        error_code=code(error),
        partition_index=state.partition,
        leader_id=NO_LEADER if error == "LEADER_NOT_AVAILABLE" else state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline(call.world, state),
    )


# DescribeCluster.


def describe_cluster(call: Call) -> Message:
    """Brokers, or, from a controller that is asked for them, the controllers (KIP-919, KIP-1073)."""
    world, request = call.world, call.request
    own = _CONTROLLERS if call.node == world.controller else _BROKERS
    asked = request.endpoint_type if call.version >= 1 else _BROKERS
    if asked != own:
        return _wrong_endpoint(call, asked, own)
    if own == _CONTROLLERS:
        nodes, controller = [_described(world, world.controller, fenced=False)], world.controller
    else:
        fenced_too = call.version >= 2 and request.include_fenced_brokers
        nodes = [
            _described(world, broker, fenced=registration.fenced)
            for broker, registration in sorted(world.brokers.items())
            if fenced_too or not registration.fenced
        ]
        controller = some_broker(world, call.node)
    return DescribeClusterResponse(
        version=call.version,
        error_code=0,
        error_message=None,
        endpoint_type=own,
        cluster_id=world.cluster_id,
        controller_id=controller,
        brokers=nodes,
        authorized_operations=cluster_operations(world, asked=bool(request.include_cluster_authorized_operations)),
    )


def _described(world: World, node: int, *, fenced: bool) -> Message:
    registration = world.brokers.get(node)
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id=node,
        host=HOST,
        port=world.ports[node],
        rack=None if registration is None else registration.rack,
        is_fenced=fenced,
    )


def _wrong_endpoint(call: Call, asked: int, own: int) -> Message:
    names = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}
    if asked not in names:
        error, text = "UNSUPPORTED_ENDPOINT_TYPE", f"Unsupported endpoint type {asked}"
    else:
        error = "MISMATCHED_ENDPOINT_TYPE"
        text = (
            f"The request was sent to an endpoint of type {names[own]}, but we wanted an endpoint of type"
            f" {names[asked]}"
        )
    return DescribeClusterResponse(
        version=call.version,
        error_code=code("INVALID_REQUEST" if call.version == 0 else error),
        error_message=text,
        endpoint_type=_BROKERS,
        cluster_id="",
        controller_id=NO_LEADER,
        brokers=[],
        authorized_operations=None,
    )


# DescribeQuorum.


def describe_quorum(call: Call) -> Message:
    """The metadata quorum: one controller that leads it, and the running brokers as its observers."""
    world = call.world
    if not world.allowed(CLUSTER, "DESCRIBE"):
        return DescribeQuorumResponse(
            version=call.version,
            error_code=code(DENIED[CLUSTER]),
            error_message="Cluster authorization failed.",
            topics=[],
            nodes=[],
        )
    asked = [(topic.topic_name, one.partition_index) for topic in call.request.topics for one in topic.partitions]
    known = asked == [(METADATA_TOPIC, 0)]
    topics = [
        DescribeQuorumResponse.TopicData(
            topic_name=topic.topic_name,
            partitions=[
                _quorum(world) if known else _no_quorum(partition.partition_index) for partition in topic.partitions
            ],
        )
        for topic in call.request.topics
    ]
    nodes = [_quorum_node(world)] if known and call.version >= 2 else []
    return DescribeQuorumResponse(version=call.version, error_code=0, error_message="", topics=topics, nodes=nodes)


def _no_quorum(index: int) -> Message:
    """What a node answers that is asked for anything but the one partition of the metadata."""
    return DescribeQuorumResponse.TopicData.PartitionData(
        partition_index=index,
        error_code=code("UNKNOWN_TOPIC_OR_PARTITION"),
        error_message="This server does not host this topic-partition.",
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def _quorum(world: World) -> Message:
    end = quorum_offset(world)
    observers = [one for one in world.brokers if world.listens(one) and world.running.linked(one, world.controller)]
    return DescribeQuorumResponse.TopicData.PartitionData(
        partition_index=0,
        error_code=0,
        error_message="",
        leader_id=world.controller,
        leader_epoch=QUORUM_EPOCH,
        high_watermark=end,
        current_voters=[_quorum_member(world, world.controller, end)],
        observers=[_quorum_member(world, broker, end) for broker in sorted(observers)],
    )


def quorum_offset(world: World) -> int:
    """How long the metadata log is said to be: it grows with everything that happens."""
    return world.running.changes + 1


def _quorum_member(world: World, node: int, end: int) -> Message:
    return DescribeQuorumResponse.TopicData.PartitionData.ReplicaState(
        replica_id=node,
        replica_directory_id=directory_id(world, node),
        log_end_offset=end,
        last_fetch_timestamp=world.running.now_ms,
        last_caught_up_timestamp=world.running.now_ms,
    )


def directory_id(world: World, node: int) -> UUID:
    """The id of a node's one log directory."""
    return UUID(bytes=hashlib.blake2b(f"{world.cluster_id}/directory/{node}".encode(), digest_size=16).digest())


def _quorum_node(world: World) -> Message:
    listener = DescribeQuorumResponse.Node.Listener(name="CONTROLLER", host=HOST, port=world.ports[world.controller])
    return DescribeQuorumResponse.Node(node_id=world.controller, listeners=[listener])


APIS: tuple[Api, ...] = (
    Api(MetadataRequest, MetadataResponse, (0, 13), metadata),
    Api(DescribeClusterRequest, DescribeClusterResponse, (0, 2), describe_cluster, Nodes.ALL),
    Api(DescribeQuorumRequest, DescribeQuorumResponse, (0, 2), describe_quorum, Nodes.ALL),
)
