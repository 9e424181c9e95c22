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

from collections.abc import Mapping, Sequence
from itertools import islice

from kelr.controller import Election, ManualRecovery, events, handle
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Answer, Api, Call, Later, Message, Nodes
from kelr.lab.simulated.handlers.elected import MOST_PARTITIONS, TIMED_OUT, kept, refused, response
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.messages import ElectLeadersRequest, ElectLeadersResponse
from kelr.messages.dialects import REQUEST_LIMIT_REACHED
from kelr.model import ElectionType, TopicPartition

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
