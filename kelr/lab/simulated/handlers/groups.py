"""What asks for consumer groups, transactions and ACLs: there are none.

A node answers as one of a Kafka cluster that never had a group or a transaction: there is nothing to list, and no
coordinator for any. Where Kafka's own topics are there all the same (a cluster made of a snapshot), whoever leads a
partition has loaded it and found nothing in it; FindCoordinator and DescribeGroups, which kelr does not send, know no
coordinator even then. Of producers it tells nothing; that of an idempotent one Kafka would list.

Source: KafkaApis, GroupCoordinatorService and TransactionCoordinator of Apache Kafka 4.3.
"""

from __future__ import annotations

from typing import Any

from kelr.lab.simulated.api import CLUSTER, DENIED, TOPIC, Api, Call, Message, Nodes, Problem, code, words, wrong_name
from kelr.model import TopicPartition
from kelr.protocol.messages import (
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kelr.sources.live.coordinators import CONSUMER_OFFSETS, TRANSACTION_STATE, partition_of

_MANY_KEYS = 4
"""The first version of FindCoordinator that asks for several at once."""
_MANY_GROUPS = 8
"""The first version of OffsetFetch that asks for several at once."""
_TOPIC_IDS = 10
"""The first version of OffsetFetch with ids in place of names."""
_KINDS = frozenset({0, 1})
"""Of coordinators: of groups and of transactions. That of share groups is another feature's."""
_STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)
_NO_COORDINATOR = "COORDINATOR_NOT_AVAILABLE"


def find_coordinator(call: Call) -> Message:
    """No coordinator is available: the topic that would keep its groups or transactions is not there."""
    known = call.request.key_type in _KINDS or call.version == 0
    if call.version < _MANY_KEYS:
        return FindCoordinatorResponse(
            error_code=code(_NO_COORDINATOR if known else "INVALID_REQUEST"),
            error_message="The coordinator is not available." if known else words("INVALID_REQUEST"),
            node_id=-1,
            host="",
            port=-1,
        )
    made = FindCoordinatorResponse.Coordinator
    coordinators = [
        made(
            key=key,
            node_id=-1,
            host="",
            port=-1,
            error_code=code(_NO_COORDINATOR if known else "INVALID_REQUEST"),
            error_message="" if known else words("INVALID_REQUEST"),
        )
        for key in call.request.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=coordinators)


def list_groups(_call: Call) -> Message:
    return ListGroupsResponse(error_code=0, groups=[])


def describe_groups(call: Call) -> Message:
    made = DescribeGroupsResponse.DescribedGroup
    groups = [
        made(
            error_code=code("NOT_COORDINATOR"),
            error_message=None,
            group_id=group,
            group_state="",
            protocol_type="",
            protocol_data="",
            members=[],
        )
        for group in call.request.groups
    ]
    return DescribeGroupsResponse(groups=groups)


def fetch_offsets(call: Call) -> Message:
    if call.version < _MANY_GROUPS:
        made = OffsetFetchResponse.OffsetFetchResponseTopic
        error, topics = _nothing_committed(call, call.request, made, made.OffsetFetchResponsePartition)
        return OffsetFetchResponse(topics=topics, error_code=error)
    of_group = OffsetFetchResponse.OffsetFetchResponseGroup
    of_topic = of_group.OffsetFetchResponseTopics
    groups = []
    for group in call.request.groups:
        error, topics = _nothing_committed(call, group, of_topic, of_topic.OffsetFetchResponsePartitions)
        groups.append(of_group(group_id=group.group_id, topics=topics, error_code=error))
    return OffsetFetchResponse(groups=groups)


def _nothing_committed(call: Call, asked: Message, of_topic: Any, of_partition: Any) -> tuple[int, list[Message]]:
    """A group's error and offsets."""
    if not _coordinates(call, CONSUMER_OFFSETS, asked.group_id):
        return code("NOT_COORDINATOR"), []
    none = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": "", "error_code": code("NONE")}
    topics = []
    for topic in asked.topics or ():
        place = {"topic_id": topic.topic_id} if call.version >= _TOPIC_IDS else {"name": topic.name}
        partitions = [of_partition(partition_index=number, **none) for number in topic.partition_indexes]
        topics.append(of_topic(**place, partitions=partitions))
    return code("NONE"), topics


def _coordinates(call: Call, topic: str, name: str) -> bool:
    """Whether the node leads the partition of Kafka's own topic that a group or transactional id belongs to."""
    count = call.world.partitions(topic)
    state = call.world.state(TopicPartition(topic, partition_of(name, count))) if count else None
    return state is not None and state.leader == call.node


def list_transactions(call: Call) -> Message:
    unknown = [state for state in call.request.state_filters if state not in _STATES]
    return ListTransactionsResponse(error_code=0, unknown_state_filters=unknown, transaction_states=[])


def describe_transactions(call: Call) -> Message:
    made = DescribeTransactionsResponse.TransactionState
    states = [
        made(
            error_code=code(
                "TRANSACTIONAL_ID_NOT_FOUND" if _coordinates(call, TRANSACTION_STATE, one) else "NOT_COORDINATOR"
            ),
            transactional_id=one,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
        for one in call.request.transactional_ids
    ]
    return DescribeTransactionsResponse(transaction_states=states)


def describe_producers(call: Call) -> Message:
    """Whoever holds a log tells which producers have a transaction in it: none."""
    made = DescribeProducersResponse.TopicResponse
    topics = [
        made(
            name=topic.name,
            partitions=[_producers(call, topic.name, number) for number in topic.partition_indexes],
        )
        for topic in call.request.topics
    ]
    return DescribeProducersResponse(topics=topics)


def _producers(call: Call, topic: str, number: int) -> Message:
    problem = _no_log(call, TopicPartition(topic, number))
    return DescribeProducersResponse.TopicResponse.PartitionResponse(
        partition_index=number, error_code=problem.code, error_message=problem.message, active_producers=[]
    )


def _no_log(call: Call, address: TopicPartition) -> Problem:
    world, unknown = call.world, "UNKNOWN_TOPIC_OR_PARTITION"
    wrong = wrong_name(address.topic)
    if wrong is not None:
        return Problem("INVALID_TOPIC_EXCEPTION", wrong)
    if not world.allowed(TOPIC, "READ", address.topic):
        return Problem(DENIED[TOPIC], words(DENIED[TOPIC]))
    if not world.partitions(address.topic):
        return Problem(unknown, words(unknown))
    state = world.state(address)
    if state is None:
        return Problem(unknown)
    if call.node in (state.offline_replicas or ()):
        return Problem("KAFKA_STORAGE_ERROR")
    return Problem("NONE" if call.node in state.replicas else "NOT_LEADER_OR_FOLLOWER")


def describe_acls(call: Call) -> Message:
    """Without anything that is denied there is no authorizer; with one, its ACLs are not told."""
    problem = Problem("SECURITY_DISABLED", "No Authorizer is configured on the broker")
    if call.world.denied:
        allowed = call.world.allowed(CLUSTER, "DESCRIBE")
        problem = Problem("NONE") if allowed else Problem(DENIED[CLUSTER], words(DENIED[CLUSTER]))
    return DescribeAclsResponse(error_code=problem.code, error_message=problem.message, resources=[])


APIS: tuple[Api, ...] = (
    Api(FindCoordinatorRequest, FindCoordinatorResponse, (0, 6), find_coordinator),
    Api(ListGroupsRequest, ListGroupsResponse, (0, 5), list_groups),
    Api(DescribeGroupsRequest, DescribeGroupsResponse, (0, 6), describe_groups),
    Api(OffsetFetchRequest, OffsetFetchResponse, (1, 10), fetch_offsets),
    Api(ListTransactionsRequest, ListTransactionsResponse, (0, 2), list_transactions),
    Api(DescribeTransactionsRequest, DescribeTransactionsResponse, (0, 0), describe_transactions),
    Api(DescribeProducersRequest, DescribeProducersResponse, (0, 0), describe_producers),
    Api(DescribeAclsRequest, DescribeAclsResponse, (1, 3), describe_acls, Nodes.ALL),
)
