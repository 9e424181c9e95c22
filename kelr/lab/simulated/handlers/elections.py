"""ElectLeaders, versions 0 to 3.

Versions 0 to 2 are answered as Kafka's controller answers them. Version 3 is KIP-966's, and only controllers that run
the KIP's rules announce it. Its older text numbers the types: 0 preferred, 1 desired replicas, 2 and 3 the longest log.
Its newest one leaves ElectionType as it is released (1 is unclean, which the newest text of the tool keeps), adds
DesiredLeaders and numbers nothing. Both hold here: 1 is a designation where leaders are desired, and unclean elsewhere.
Brokers hand the request on to the controller, so every node answers alike.

Source: ControllerApis.handleElectLeaders, QuorumController.electLeaders and ReplicationControlManager.electLeaders of
Apache Kafka; KIP-966, "ElectLeadersRequest" (versions 3, its election types and its limit).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from kelr.controller import Election, ManualRecovery, events, handle
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Answer, Api, Call, Later, Message, Nodes, code
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import ElectionType, TopicPartition
from kelr.protocol.dialects import REQUEST_LIMIT_REACHED
from kelr.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from kelr.simulation.alike import STAND_IN

# The answer to ElectLeaders: errors by partition, in Kafka's words and in the order of the request.

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
        throttle_time_ms=0,
        error_code=code(error),
        replica_election_results=[
            topic_type(
                topic=topic,
                partition_result=[
                    topic_type.PartitionResult(
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


MOST_RECORDS = 10_000
"""QuorumController.MAX_RECORDS_PER_USER_OP."""

_BY_LOG = {
    2: ElectionType.LONGEST_LOG_BALANCED,
    3: ElectionType.LONGEST_LOG_AGGRESSIVE,
}
"""Those of version 3 alone."""


def apis(spec: SimulatedSpec) -> Sequence[Api]:
    """Its one entry; version 3 only by the whole KIP's rules."""
    newest = 3 if spec.rule_set.recovers else 2
    return (Api(ElectLeadersRequest, ElectLeadersResponse, (0, newest), _handle, Nodes.ALL),)


def _handle(call: Call) -> Answer:
    request = call.request
    if not call.world.allowed("cluster", "ALTER"):
        return refused(call, "CLUSTER_AUTHORIZATION_FAILED")
    if request.topic_partitions is not None and not request.topic_partitions:
        return response(call, {})
    if request.timeout_ms <= 0:
        return refused(call, TIMED_OUT)
    kind = request.election_type if call.version else 0
    if kind not in (0, 1) and (call.version < 3 or kind not in _BY_LOG):
        return refused(call, "INVALID_REQUEST", f"Unknown election type {kind}")
    if kind == 0:
        return _by_released_rules(call, Election.PREFERRED)
    if kind == 1 and _names_leaders(call):
        return _by_hand(call, ElectionType.DESIGNATION)
    if kind == 1 and not call.world.running.cluster.controller.rules.recovers:
        return _by_released_rules(call, Election.UNCLEAN)
    # KIP-966 puts the unclean recovery in place of the unclean election.
    return _by_hand(call, _BY_LOG.get(kind, ElectionType.LONGEST_LOG_AGGRESSIVE))


def _names_leaders(call: Call) -> bool:
    return call.version >= 3 and any(topic.desired_leaders for topic in call.request.topic_partitions or ())


def _by_released_rules(call: Call, election: Election) -> Answer:
    """PREFERRED or UNCLEAN: done at once."""
    world = call.world
    over: Mapping[TopicPartition, str] = {}
    event = events.LeadersElected(election)
    if call.request.topic_partitions is not None:
        served, over = _asked(call)
        _own(world, served)
        event = events.LeadersElected(election, tuple(address for address, _ in served))
    if _too_many_records(world, event):
        return refused(call, "POLICY_VIOLATION", "Unable to perform excessively large batch operation.")
    done = world.running.ask(event)
    return refused(call, done.error) if done.error != NONE else response(call, {**done.answers, **over})


def _too_many_records(world: World, event: events.LeadersElected) -> bool:
    """Whether the elections would take more records than a controller writes at once: then it makes none of them."""
    state, alike = world.running.cluster.controller, world.alike
    most = (
        len(state.partitions) + alike.topics * alike.partitions if event.partitions is None else len(event.partitions)
    )
    if most <= MOST_RECORDS:
        return False
    changed = {change.after.address for change in handle(state, event).changes}
    named = event.partitions or (
        TopicPartition(topic, number) for topic in world.topics() for number in range(world.partitions(topic))
    )
    writes = (True for address in named if kept(world, address) in changed)
    return next(islice(writes, MOST_RECORDS, None), False)


def _by_hand(call: Call, election: ElectionType) -> Answer:
    """A designation, or a recovery that is answered once it has ended."""
    world, running = call.world, call.world.running
    error = _malformed(call, election)
    if error is not None:
        return refused(call, "INVALID_REQUEST", error)
    served, over = _asked(call)
    _own(world, served)
    recovery = ManualRecovery(election, dict(served), timeout_ms=call.request.timeout_ms)
    awaited = running.ask_by_hand(recovery)
    if awaited.refused != NONE:
        return refused(call, awaited.refused)

    def poll() -> Message | None:
        return None if awaited.pending else response(call, {**awaited.answers, **over})

    def expired() -> Message:
        late = dict.fromkeys(awaited.pending, TIMED_OUT)
        return response(call, {**awaited.answers, **late, **over})

    answer = poll()
    return Later(running.now_ms + call.request.timeout_ms, poll, expired) if answer is None else answer


def _malformed(call: Call, election: ElectionType) -> str | None:
    """What is wrong with the desired leaders: each partition of a designation has one, and those of nothing else."""
    if call.version < 3:
        return None
    topics, designation = call.request.topic_partitions, election is ElectionType.DESIGNATION
    for topic in topics or ():
        desired = topic.desired_leaders or ()
        if not designation and desired:
            return f"Desired leaders are for a designation alone, and topic {topic.topic} has some"
        if designation and len(desired) != len(topic.partitions):
            return f"Topic {topic.topic} has {len(topic.partitions)} partitions and {len(desired)} desired leaders"
    if not designation:
        return None
    wanted: dict[TopicPartition, int] = {}
    for topic in topics or ():
        for partition, leader in zip(topic.partitions, topic.desired_leaders or (), strict=True):
            if wanted.setdefault(TopicPartition(topic.topic, partition), leader) != leader:
                return f"Two desired leaders for {topic.topic}-{partition}"
    return None


def _asked(call: Call) -> tuple[list[tuple[TopicPartition, int | None]], Mapping[TopicPartition, str]]:
    """What is served, each with its desired leader, and the answers of what is over the limit."""
    if call.request.topic_partitions is None:
        partitions = call.world.running.cluster.controller.partitions
        return [(address, None) for address, one in sorted(partitions.items()) if one.leader is None], {}
    pairs = [
        (TopicPartition(topic.topic, partition), desired)
        for topic in call.request.topic_partitions
        for partition, desired in zip(topic.partitions, _desired(call, topic), strict=True)
    ]
    most = MOST_PARTITIONS if call.version >= 3 else len(pairs)
    return pairs[:most], dict.fromkeys([address for address, _ in pairs[most:]], REQUEST_LIMIT_REACHED)


def _desired(call: Call, topic: Message) -> Sequence[int | None]:
    given = topic.desired_leaders if call.version >= 3 else None
    return given or [None] * len(topic.partitions)


def _own(world: World, served: Sequence[tuple[TopicPartition, int | None]]) -> None:
    for address, _ in served:
        world.own(address)
