"""Metadata, DescribeCluster and DescribeQuorum: who is there, and who leads.

Source: AuthHelper.computeDescribeClusterResponse and KafkaRaftClient.handleDescribeQuorumRequest of Apache Kafka 4.3.
"""

from __future__ import annotations

from kafka.protocol.admin.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kelr.lab.simulated.api import Api, Call, Message, Nodes, code
from kelr.lab.simulated.handlers.authorized import CLUSTER, DENIED, cluster_operations, codes
from kelr.lab.simulated.handlers.errors import words
from kelr.lab.simulated.handlers.metadata import metadata, some_broker
from kelr.lab.simulated.handlers.partitions import NO_LEADER
from kelr.lab.simulated.handlers.seen import seen_by
from kelr.lab.simulated.metadata_records import directory_id
from kelr.lab.simulated.world import HOST, World

METADATA_TOPIC = "__cluster_metadata"
_BROKERS, _CONTROLLERS = 1, 2


# DescribeCluster.


def describe_cluster(call: Call) -> Message:
    """Brokers, or, from a controller that is asked for them, the controllers (KIP-919, KIP-1073)."""
    world, request = call.world, call.request
    own = _CONTROLLERS if call.node in world.controllers else _BROKERS
    asked = request.endpoint_type if call.version >= 1 else _BROKERS
    if asked != own:
        return _wrong_endpoint(call, asked, own)
    if own == _CONTROLLERS:
        nodes, controller = [_described(world, one, fenced=False) for one in world.controllers], world.controller
    else:
        seen = seen_by(world, call.node)
        fenced_too = call.version >= 2 and request.include_fenced_brokers
        nodes = [
            _described(world, broker, fenced=registration.fenced)
            for broker, registration in sorted(seen.brokers.items())
            if fenced_too or not registration.fenced
        ]
        controller = some_broker(seen, call.node)
    return DescribeClusterResponse(
        version=call.version,
        error_code=0,
        error_message=None,
        endpoint_type=own,
        cluster_id=world.cluster_id,
        controller_id=controller,
        brokers=nodes,
        authorized_operations=codes(
            cluster_operations(world, asked=bool(request.include_cluster_authorized_operations))
        ),
    )


def _described(world: World, node: int, *, fenced: bool) -> Message:
    return DescribeClusterResponse.DescribeClusterBroker(
        broker_id=node,
        host=HOST,
        port=world.ports[node],
        rack=world.racks.get(node),
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
    """The metadata quorum: the controllers, one of whom leads it, and the running brokers as its observers."""
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
    known, standby = asked == [(METADATA_TOPIC, 0)], call.node in world.controllers and call.node != world.controller
    error = "NOT_LEADER_OR_FOLLOWER" if known else "UNKNOWN_TOPIC_OR_PARTITION"
    topics = [
        DescribeQuorumResponse.TopicData(
            topic_name=topic.topic_name,
            partitions=[
                _quorum(world) if known and not standby else _no_quorum(partition.partition_index, error)
                for partition in topic.partitions
            ],
        )
        for topic in call.request.topics
    ]
    nodes = [_quorum_node(world, one) for one in world.controllers] if known and call.version >= 2 else []
    return DescribeQuorumResponse(version=call.version, error_code=0, error_message="", topics=topics, nodes=nodes)


def _no_quorum(index: int, error: str) -> Message:
    """What a controller answers that does not lead, or a node that is asked for another partition than the one."""
    return DescribeQuorumResponse.TopicData.PartitionData(
        partition_index=index,
        error_code=code(error),
        error_message=words(error),
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def _quorum(world: World) -> Message:
    end = world.metadata.end
    observers = [one for one in world.brokers if world.listens(one) and world.running.linked(one, world.controller)]
    return DescribeQuorumResponse.TopicData.PartitionData(
        partition_index=0,
        error_code=0,
        error_message="",
        leader_id=world.controller,
        leader_epoch=world.metadata.epoch,
        high_watermark=end,
        current_voters=[_quorum_member(world, one, end) for one in world.controllers],
        observers=[_quorum_member(world, broker, end) for broker in sorted(observers)],
    )


def _quorum_member(world: World, node: int, end: int) -> Message:
    end, at_ms = world.controllers_down.get(node, (end, world.running.now_ms))
    return DescribeQuorumResponse.TopicData.PartitionData.ReplicaState(
        replica_id=node,
        replica_directory_id=directory_id(world.cluster_id, node),
        log_end_offset=end,
        last_fetch_timestamp=at_ms,
        last_caught_up_timestamp=at_ms,
    )


def _quorum_node(world: World, node: int) -> Message:
    listener = DescribeQuorumResponse.Node.Listener(name="CONTROLLER", host=HOST, port=world.ports[node])
    return DescribeQuorumResponse.Node(node_id=node, listeners=[listener])


APIS: tuple[Api, ...] = (
    Api(MetadataRequest, MetadataResponse, (0, 13), metadata),
    Api(DescribeClusterRequest, DescribeClusterResponse, (0, 2), describe_cluster, Nodes.ALL),
    Api(DescribeQuorumRequest, DescribeQuorumResponse, (0, 2), describe_quorum, Nodes.ALL),
)
