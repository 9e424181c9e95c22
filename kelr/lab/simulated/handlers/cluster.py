"""Metadata, DescribeCluster and DescribeQuorum: who is there, and who leads.

Source: AuthHelper.computeDescribeClusterResponse and KafkaRaftClient.handleDescribeQuorumRequest of Apache Kafka 4.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from uuid import UUID

from kelr.controller.state import Registration
from kelr.lab.simulated.api import (
    CLUSTER,
    DENIED,
    NO_LEADER,
    NOT_ASKED,
    TOPIC,
    Api,
    Call,
    Message,
    Nodes,
    cluster_operations,
    code,
    is_internal,
    offline,
    operations,
    unknown_topic,
    words,
)
from kelr.lab.simulated.handlers.topic_bytes import NO_TAGS, Ends, Form, int16, int32, int32s, length, topic_bytes
from kelr.lab.simulated.metadata_log import directory_id
from kelr.lab.simulated.world import HOST, Seen, World, seen_by
from kelr.model import PartitionState
from kelr.protocol.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    MetadataRequest,
    MetadataResponse,
)

# Metadata: live brokers, and topics with their leaders.
#
# Source: KafkaApis.handleTopicMetadataRequest and KRaftMetadataCache of Apache Kafka 4.3.

NO_ID = UUID(int=0)
_NAMED_BY_ID = 12
"""The first version that may name topics by their ids."""


def metadata(call: Call) -> Message | bytes:
    """Live brokers, and the topics that were asked for; topics are never made by it."""
    world, request, seen = call.world, call.request, seen_by(call.world, call.node)
    if any(_malformed(topic, call.version) for topic in request.topics or ()):
        return _malformed_answer(call)
    brokers = [
        MetadataResponse.MetadataResponseBroker(
            node_id=broker, host=HOST, port=world.ports[broker], rack=world.racks.get(broker)
        )
        for broker in seen.live
    ]
    asked = 8 <= call.version <= 10 and bool(request.include_cluster_authorized_operations)
    answer = MetadataResponse(
        brokers=brokers,
        cluster_id=world.cluster_id,
        controller_id=some_broker(seen, call.node),
        topics=[],
        cluster_authorized_operations=cluster_operations(world, asked=asked),
    )
    return _with_topics(answer, list(_topics(call, seen)), call.version)


def some_broker(seen: Seen, node: int) -> int:
    """The broker that a node names in the controller's place: any live one (KRaftMetadataCache.getRandomAliveBrokerId).

    Kafka throws dice for each answer; here each node always names the same one while the same brokers live.
    """
    brokers = seen.live
    if not brokers:
        return NO_LEADER
    digest = hashlib.blake2b(f"{seen.world.cluster_id}/{node}".encode(), digest_size=4).digest()
    return brokers[int.from_bytes(digest, "big") % len(brokers)]


def _with_topics(answer: Message, topics: list[bytes], version: int) -> bytes:
    """The answer, encoded, with these topics in place of none."""
    flexible = form(version).flexible
    empty = answer.encode(version)
    none = length(0, flexible=flexible)
    after = (4 if 8 <= version <= 10 else 0) + (2 if version >= 13 else 0) + (len(NO_TAGS) if flexible else 0)
    at = len(empty) - after
    return b"".join((empty[: at - len(none)], length(len(topics), flexible=flexible), *topics, empty[at:]))


def _topics(call: Call, seen: Seen) -> Iterator[bytes]:
    world, wanted = call.world, call.request.topics
    if wanted is None or (call.version == 0 and not wanted):
        for topic in seen.topics():
            if world.allowed(TOPIC, "DESCRIBE", topic):
                yield _topic(call, seen, topic)
        return
    ids = [topic.topic_id for topic in wanted if topic.topic_id and topic.topic_id != NO_ID]
    if ids:
        yield from _by_id(call, seen, dict.fromkeys(ids))
        return
    for name in dict.fromkeys(topic.name for topic in wanted):
        if name is None:  # and no id either
            yield _failed(call, name, NO_ID, "INVALID_REQUEST")
        elif not world.allowed(TOPIC, "DESCRIBE", name):
            yield _failed(call, name, NO_ID, DENIED[TOPIC])
        elif seen.partitions(name):
            yield _topic(call, seen, name)
        else:
            yield _failed(call, name, NO_ID, unknown_topic(name))


def _by_id(call: Call, seen: Seen, ids: dict[UUID, None]) -> Iterator[bytes]:
    for topic_id in ids:
        name = call.world.topic_of(topic_id)
        if name is None or not seen.partitions(name):
            yield _failed(call, None, topic_id, "UNKNOWN_TOPIC_ID")
        elif not call.world.allowed(TOPIC, "DESCRIBE", name):
            yield _failed(call, None, topic_id, DENIED[TOPIC])
        else:
            yield _topic(call, seen, name)


def _topic(call: Call, seen: Seen, name: str) -> bytes:
    asked = call.version >= 8 and call.request.include_topic_authorized_operations
    bits = operations(call.world, TOPIC, name) if asked else NOT_ASKED
    return topic_bytes(seen, form(call.version)).topic(seen, name, 0, seen.partitions(name), bits)


def _failed(call: Call, name: str | None, topic_id: UUID, error: str) -> bytes:
    internal = error != DENIED[TOPIC] and is_internal(name)
    asked = call.version >= 8 and call.request.include_topic_authorized_operations and error not in _NOT_TOLD
    bits = operations(call.world, TOPIC, name) if asked else NOT_ASKED
    return form(call.version).topic(name, topic_id, b"", 0, error=code(error), internal=internal, operations=bits)


_NOT_TOLD = frozenset({DENIED[TOPIC], "UNKNOWN_TOPIC_ID"})
"""Errors with which Kafka does not tell what a client may do with the topic."""


def _malformed(topic: Message, version: int) -> bool:
    return version < _NAMED_BY_ID and (topic.name is None or topic.topic_id not in {None, NO_ID})


def _malformed_answer(call: Call) -> bytes:
    """The whole request fails; its answer still names the topics (MetadataRequest.getErrorResponse)."""
    answer = MetadataResponse(
        brokers=[],
        cluster_id=None,
        controller_id=NO_LEADER,
        topics=[],
    )
    made = form(call.version)
    topics = [
        made.topic(
            topic.name or "",
            topic.topic_id or NO_ID,
            b"",
            0,
            error=code("INVALID_REQUEST"),
            internal=False,
            operations=NOT_ASKED,
        )
        for topic in call.request.topics
    ]
    return _with_topics(answer, topics, call.version)


@cache
def form(version: int) -> Form:
    """How a version encodes topics."""

    def ends(seen: Seen, state: PartitionState) -> Ends:
        return _ends(seen.brokers, state, version)

    return Form(version >= 9, version >= 10, version >= 1, version >= 8, ends)


def _ends(brokers: Mapping[int, Registration], state: PartitionState, version: int) -> Ends:
    replicas, isr = state.replicas, state.isr
    if version == 0:
        replicas = tuple(one for one in replicas if one in brokers and not brokers[one].fenced)
        isr = tuple(one for one in isr if one in brokers and not brokers[one].fenced)
    error, leader = "NONE", NO_LEADER if state.leader is None else state.leader
    if leader not in brokers:
        error, leader = "LEADER_NOT_AVAILABLE", NO_LEADER
    elif len(replicas) < len(state.replicas) or len(isr) < len(state.isr):
        error = "REPLICA_NOT_AVAILABLE"
    flexible = version >= 9
    after = [int32(leader)]
    if version >= 7:
        after.append(int32(state.leader_epoch))
    after += (int32s(replicas, flexible=flexible), int32s(isr, flexible=flexible))
    if version >= 5:
        after.append(int32s(tuple(offline(brokers, state)), flexible=flexible))
    if flexible:
        after.append(NO_TAGS)
    return int16(code(error)), b"".join(after)


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
        error_code=0,
        error_message=None,
        endpoint_type=own,
        cluster_id=world.cluster_id,
        controller_id=controller,
        brokers=nodes,
        cluster_authorized_operations=cluster_operations(
            world, asked=bool(request.include_cluster_authorized_operations)
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
        error_code=code("INVALID_REQUEST" if call.version == 0 else error),
        error_message=text,
        endpoint_type=_BROKERS,
        cluster_id="",
        controller_id=NO_LEADER,
        brokers=[],
    )


# DescribeQuorum.


def describe_quorum(call: Call) -> Message:
    """The metadata quorum: the controllers, one of whom leads it, and the running brokers as its observers."""
    world = call.world
    if not world.allowed(CLUSTER, "DESCRIBE"):
        return DescribeQuorumResponse(
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
    return DescribeQuorumResponse(error_code=0, error_message="", topics=topics, nodes=nodes)


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
