"""The answer to ElectLeaders: errors by partition, in Kafka's words and in the order of the request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Call, Message, code
from kelr.lab.simulated.world import World
from kelr.messages import ElectLeadersResponse
from kelr.messages.dialects import REQUEST_LIMIT_REACHED
from kelr.model import TopicPartition
from kelr.simulation.alike import STAND_IN

MOST_PARTITIONS = 1000
"""The most partitions that version 3 serves (KIP-966, "Limit: 1000 partitions per request")."""
TIMED_OUT = "REQUEST_TIMED_OUT"

_UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"
_WORDS = {
    "PREFERRED_LEADER_NOT_AVAILABLE": "The preferred leader was not available.",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": "Eligible topic partition leaders are not available.",
    "ELECTION_NOT_NEEDED": "Leader election not needed for topic partition.",
    TIMED_OUT: "The request timed out.",
    REQUEST_LIMIT_REACHED: f"Only the first {MOST_PARTITIONS} partitions of a request are served.",
    "NOT_CONTROLLER": "This is not the correct controller for this cluster.",
}
"""Kafka's words for its errors (org.apache.kafka.common.protocol.Errors)."""

_Results: TypeAlias = Iterable[tuple[str, Iterable[tuple[int, str]]]]
"""Topics, each with its partitions and their errors."""


def response(call: Call, answers: Mapping[TopicPartition, str]) -> Message:
    """What became of each election.

    Args:
        answers: Kafka's name of each error. Where the request names partitions: of all of them.
    """
    if call.request.topic_partitions is None:
        return _made(call, _everywhere(call.world, answers))
    return _made(call, ((topic, [(one.partition, answers[one]) for one in named]) for topic, named in _named(call)))


def refused(call: Call, error: str, message: str | None = None) -> Message:
    """The error of the whole request, repeated for each partition that it names.

    Source: ElectLeadersRequest.getErrorResponse; what is said by the error alone is not said in words as well
    (ApiError.fromThrowable).
    """
    results = ((topic, [(one.partition, error) for one in named]) for topic, named in _named(call))
    return _made(call, results, error=error, message=message)


def kept(world: World, address: TopicPartition) -> TopicPartition:
    """The partition in the controller's records that tells of this one: itself, or the one that stands for it."""
    if address in world.running.cluster.controller.partitions:
        return address
    return world.alike.stand_in(address) or address


def _named(call: Call) -> Iterator[tuple[str, list[TopicPartition]]]:
    for topic in call.request.topic_partitions or ():
        yield topic.topic, [TopicPartition(topic.topic, partition) for partition in topic.partitions]


def _everywhere(world: World, answers: Mapping[TopicPartition, str]) -> _Results:
    """Each topic with the answers that there are for it; those of a stand-in are for all that are like it."""
    alike = any(address.topic == STAND_IN for address in answers)
    told = {address.topic for address in answers}
    for topic in world.topics():
        if topic not in told and not alike:
            yield topic, ()
            continue
        found = [
            (number, answers.get(kept(world, TopicPartition(topic, number))))
            for number in range(world.partitions(topic))
        ]
        yield topic, [(number, error) for number, error in found if error is not None]


def _made(call: Call, results: _Results, *, error: str = NONE, message: str | None = None) -> Message:
    topic_type = ElectLeadersResponse.ReplicaElectionResult
    said = error != NONE
    return ElectLeadersResponse(
        version=call.version,
        throttle_time_ms=0,
        error_code=code(error),
        replica_election_results=[
            topic_type(
                version=call.version,
                topic=topic,
                partition_result=[
                    topic_type.PartitionResult(
                        version=call.version,
                        partition_id=partition,
                        error_code=code(name),
                        error_message=message if said else _words(call.world, topic, partition, name),
                    )
                    for partition, name in partitions
                ],
            )
            for topic, partitions in results
        ],
    )


def _words(world: World, topic: str, partition: int, error: str) -> str | None:
    """The error of one partition in words; None for none."""
    if error == _UNKNOWN:
        return f"No such partition as {topic}-{partition}" if world.partitions(topic) else f"No such topic as {topic}"
    return _WORDS.get(error)
