"""AlterPartitionReassignments and ListPartitionReassignments.

Source: ReplicationControlManager (alterPartitionReassignments, listPartitionReassignments) of Apache Kafka 4.3; KIP-860
for the replication factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.controller import events
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import CLUSTER, DENIED, Api, Call, Message, Nodes, Problem, RefusedError, forwarded, words
from kelr.lab.simulated.handlers.topics import by_hand
from kelr.lab.simulated.world import World
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kelr.simulation.alike import STAND_IN

_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


def alter(call: Call) -> Message:
    """Give partitions other replicas, or take that back; each by itself."""
    if not call.world.allowed(CLUSTER, "ALTER"):
        return _refused(call, Problem(DENIED[CLUSTER], words(DENIED[CLUSTER])))
    strict = call.version >= 1 and not call.request.allow_replication_factor_change
    responses = [
        _Topic(
            name=topic.name,
            partitions=[_altered(call.world, topic.name, one, strict=strict) for one in topic.partitions],
        )
        for topic in call.request.topics
    ]
    return _answer(call, Problem(NONE, None if responses else ""), responses)


def alter_timed_out(call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    return _refused(call, Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT")))


def _altered(world: World, topic: str, asked: Message, *, strict: bool) -> Message:
    address = TopicPartition(topic, asked.partition_index)
    try:
        state = _known(world, address)
        if asked.replicas is not None:
            by_hand(world, asked.replicas)
            if strict:
                _same_count(state, len(asked.replicas))
        world.own(address)
        wanted = None if asked.replicas is None else tuple(asked.replicas)
        done = world.running.ask(events.Reassigned(address, wanted))
        error = done.answers.get(address, done.error)
        return _partition(address.partition, Problem(error, _message(error, address)))
    except RefusedError as refused:
        return _partition(address.partition, refused.problem)


def _known(world: World, address: TopicPartition) -> PartitionState:
    if not world.partitions(address.topic):
        raise RefusedError("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find a topic named {address.topic}.")
    state = world.state(address)
    if state is None:
        raise RefusedError("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {address}.")
    return state


def _same_count(state: PartitionState, count: int) -> None:
    """While replicas change, what counts is how many there will be."""
    there = len(set(state.replicas) - set(state.removing or ()))
    if there != count:
        raise RefusedError("INVALID_REPLICATION_FACTOR", f"The replication factor is changed from {there} to {count}")


def _message(error: str, address: TopicPartition) -> str | None:
    """What Kafka says where the controller refuses to go back to the old replicas."""
    if error != "INVALID_REPLICA_ASSIGNMENT":
        return None
    return f"Unable to revert partition assignment for {address} because it would require an unclean leader election."


def _partition(number: int, problem: Problem) -> Message:
    return _Topic.ReassignablePartitionResponse(
        partition_index=number, error_code=problem.code, error_message=problem.message
    )


def _refused(call: Call, problem: Problem) -> Message:
    """The whole request fails; its answer names each partition (AlterPartitionReassignmentsRequest)."""
    responses = [
        _Topic(name=topic.name, partitions=[_partition(one.partition_index, problem) for one in topic.partitions])
        for topic in call.request.topics
    ]
    return _answer(call, problem, responses)


def _answer(call: Call, problem: Problem, responses: Sequence[Message]) -> Message:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=call.version < 1 or bool(call.request.allow_replication_factor_change),
        error_code=problem.code,
        error_message=problem.message,
        responses=list(responses),
    )


# ListPartitionReassignments.


def list_all(call: Call) -> Message:
    """The partitions whose replicas are being changed."""
    world = call.world
    if not world.allowed(CLUSTER, "DESCRIBE"):
        return _listed(Problem(DENIED[CLUSTER], words(DENIED[CLUSTER])), {})
    found: dict[str, list[Message]] = {}
    for address in _asked(call):
        state = world.running.cluster.controller.partitions.get(address)
        if state is not None and (state.adding or state.removing):
            found.setdefault(address.topic, []).append(_ongoing(state))
    return _listed(Problem(NONE), found)


def list_timed_out(_call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    return _listed(Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT")), {})


def _asked(call: Call) -> Iterator[TopicPartition]:
    """A partition that is like others is under no reassignment: it has a state of its own by then."""
    if call.request.topics is None:
        yield from (
            address for address in sorted(call.world.running.cluster.controller.partitions) if address.topic != STAND_IN
        )
        return
    for topic in call.request.topics:
        yield from (TopicPartition(topic.name, number) for number in topic.partition_indexes)


def _ongoing(state: PartitionState) -> Message:
    made = ListPartitionReassignmentsResponse.OngoingTopicReassignment.OngoingPartitionReassignment
    return made(
        partition_index=state.partition,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding or ()),
        removing_replicas=list(state.removing or ()),
    )


def _listed(problem: Problem, found: dict[str, list[Message]]) -> Message:
    made = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    return ListPartitionReassignmentsResponse(
        error_code=problem.code,
        error_message=problem.message,
        topics=[made(name=topic, partitions=partitions) for topic, partitions in found.items()],
    )


APIS: tuple[Api, ...] = (
    Api(
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        (0, 1),
        forwarded(alter, alter_timed_out),
        Nodes.ALL,
    ),
    Api(
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        (0, 0),
        forwarded(list_all, list_timed_out),
        Nodes.ALL,
    ),
)
