"""CreatePartitions: a topic gets more partitions.

Source: ControllerApis.createPartitions and ReplicationControlManager.createPartitions of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kelr.lab.simulated.api import Call, Message
from kelr.lab.simulated.handlers.authorized import DENIED, TOPIC
from kelr.lab.simulated.handlers.errors import Problem, RefusedError, words
from kelr.lab.simulated.handlers.placing import Replicas, by_hand, dealt, some_live
from kelr.lab.simulated.world import World
from kelr.model import PartitionState, TopicPartition
from kelr.protocol.messages import CreatePartitionsResponse

NONE = Problem("NONE")


def create_partitions(call: Call) -> Message:
    """Add partitions; each topic gets its own or is refused by itself."""
    counts = Counter(topic.name for topic in call.request.topics)
    results = []
    for topic in {topic.name: topic for topic in call.request.topics}.values():
        try:
            if counts[topic.name] > 1:
                raise RefusedError("INVALID_REQUEST", "Duplicate topic name.")
            if not call.world.allowed(TOPIC, "ALTER", topic.name):
                raise RefusedError(DENIED[TOPIC])
            added = _assignments(call.world, topic)
            if not call.request.validate_only:
                _add(call.world, topic.name, added)
            results.append(_answer(topic.name, NONE))
        except RefusedError as refused:
            results.append(_answer(topic.name, refused.problem))
    return CreatePartitionsResponse(results=results)


def timed_out(call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    problem = Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT"))
    results = [_answer(name, problem) for name in dict.fromkeys(topic.name for topic in call.request.topics)]
    return CreatePartitionsResponse(results=results)


def _assignments(world: World, topic: Message) -> Sequence[Replicas]:
    """Those of the partitions that come to it."""
    there = world.partitions(topic.name)
    if not there:
        raise RefusedError("UNKNOWN_TOPIC_OR_PARTITION")
    if topic.count == there:
        raise RefusedError("INVALID_PARTITIONS", f"Topic already has {there} partition(s).")
    if topic.count < there:
        raise RefusedError(
            "INVALID_PARTITIONS",
            f"The topic {topic.name} currently has {there} partition(s); {topic.count} would not be an increase.",
        )
    more = topic.count - there
    if topic.assignments is not None and len(topic.assignments) != more:
        raise RefusedError(
            "INVALID_REPLICA_ASSIGNMENT",
            f"Attempted to add {more} additional partition(s), but only {len(topic.assignments)} assignment(s) were"
            " specified.",
        )
    first = world.state(TopicPartition(topic.name, 0))
    assert first is not None
    count = len(first.replicas)
    if topic.assignments is None:
        return dealt(world, there, more, count)
    return [
        some_live(world, by_hand(world, one.broker_ids, count), number)
        for number, one in enumerate(topic.assignments, there)
    ]


def _add(world: World, topic: str, added: Sequence[Replicas]) -> None:
    """Each is led by its first live replica, and all live ones are in sync (buildPartitionRegistration)."""
    there = world.partitions(topic)
    world.part(topic)
    new = []
    for number, replicas in enumerate(added, there):
        isr = tuple(broker for broker in replicas if world.brokers[broker].active)
        new.append(
            PartitionState(
                topic=topic,
                partition=number,
                leader=isr[0] if isr else None,
                leader_epoch=0,
                replicas=replicas,
                isr=isr,
                elr=(),
                last_known_elr=(),
                offline_replicas=(),
                partition_epoch=0,
                adding=(),
                removing=(),
                recovering=False,
            )
        )
    world.running.place(new)


def _answer(name: str, problem: Problem) -> Message:
    return CreatePartitionsResponse.CreatePartitionsTopicResult(
        name=name, error_code=problem.code, error_message=problem.message
    )
