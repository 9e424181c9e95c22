"""CreateTopics: names, configs and assignments are checked, and topics made, as Kafka's controller does it.

Source: ControllerApis.createTopics and ReplicationControlManager.createTopics of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from kelr.controller import events
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Call, Message, code
from kelr.lab.simulated.handlers.alter_configs import check_topic_values, write_topic_configs
from kelr.lab.simulated.handlers.authorized import CLUSTER, DENIED, TOPIC
from kelr.lab.simulated.handlers.config_values import TOPIC as OWN
from kelr.lab.simulated.handlers.config_values import Entry, Synonym, of_topic
from kelr.lab.simulated.handlers.errors import Problem, RefusedError, words
from kelr.lab.simulated.handlers.partitions import wrong_name
from kelr.lab.simulated.handlers.placing import Replicas, by_hand, dealt, some_live
from kelr.lab.simulated.world import World
from kelr.protocol.messages import CreateTopicsResponse

METADATA_TOPIC = "__cluster_metadata"
NOT_SET = -1
NOBODYS_ID = UUID(int=0x1000000000000000)
_Result = CreateTopicsResponse.CreatableTopicResult


def create_topics(call: Call) -> Message:
    """Make topics; each is made or refused by itself."""
    counts = Counter(topic.name for topic in call.request.topics)
    results = []
    for topic in {topic.name: topic for topic in call.request.topics}.values():
        try:
            if counts[topic.name] > 1:
                raise RefusedError("INVALID_REQUEST", "Duplicate topic name.")
            results.append(_created(call, topic))
        except RefusedError as refused:
            results.append(_failed(topic.name, refused.problem))
    return CreateTopicsResponse(topics=results)


def timed_out(call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    problem = Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT"))
    names = dict.fromkeys(topic.name for topic in call.request.topics)
    return CreateTopicsResponse(topics=[_failed(name, problem) for name in names])


def _created(call: Call, topic: Message) -> Message:
    world, name = call.world, topic.name
    if name == METADATA_TOPIC:
        raise RefusedError("INVALID_REQUEST", f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    if not (world.allowed(CLUSTER, "CREATE") or world.allowed(TOPIC, "CREATE", name)):
        raise RefusedError(DENIED[TOPIC], "Authorization failed.")
    configs = _checked(world, topic)
    assignments = _assignments(world, topic)
    described = _described(world, name, configs)
    answer = _result(name, assignments, described)
    if not call.request.validate_only:
        _make(world, name, assignments, configs)
    # Kafka makes up an id also where the topic is not to be made.
    answer.topic_id = NOBODYS_ID if call.request.validate_only else world.topic_id(name)
    return answer


def _make(world: World, name: str, assignments: Sequence[Replicas], configs: Mapping[str, str]) -> None:
    done = world.running.ask(events.TopicCreated(name, tuple(assignments)))
    if done.error != NONE:
        raise RefusedError(done.error)
    write_topic_configs(world, name, configs)


def _checked(world: World, topic: Message) -> Mapping[str, str]:
    """The configs that the topic is to have, once its name is found to be good."""
    name = topic.name
    wrong = wrong_name(name)
    if wrong is not None:
        raise RefusedError("INVALID_TOPIC_EXCEPTION", wrong)
    if world.partitions(name):
        raise RefusedError("TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")
    other = _colliding(world, name)
    if other is not None:
        raise RefusedError("INVALID_TOPIC_EXCEPTION", f"Topic '{name}' collides with existing topic: {other}")
    empty = [config.name for config in topic.configs if config.value is None]
    if empty:
        raise RefusedError("INVALID_CONFIG", f"Null value not supported for topic configs: {','.join(empty)}")
    configs = {config.name: config.value for config in topic.configs}
    check_topic_values(world, configs)
    return configs


def _colliding(world: World, name: str) -> str | None:
    """A topic whose metrics would have the same name: metrics have underscores in place of periods."""
    if not {".", "_"} & set(name):
        return None
    unified = name.replace(".", "_")
    return next((other for other in world.named_one_by_one if other.replace(".", "_") == unified), None)


def _assignments(world: World, topic: Message) -> Sequence[Replicas]:
    if topic.assignments:
        return _by_hand(world, topic)
    if topic.replication_factor < NOT_SET or topic.replication_factor == 0:
        raise RefusedError(
            "INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0, or -1 to use the default value."
        )
    if topic.num_partitions < NOT_SET or topic.num_partitions == 0:
        raise RefusedError("INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value.")
    partitions = 1 if topic.num_partitions == NOT_SET else topic.num_partitions
    count = world.spec.replication if topic.replication_factor == NOT_SET else topic.replication_factor
    found = dealt(world, 0, partitions, count)
    for replicas in found:
        if not any(world.brokers[broker].active for broker in replicas):
            raise RefusedError(
                "INVALID_REPLICATION_FACTOR",
                f"Unable to replicate the partition {count} time(s): All brokers are currently fenced or in controlled"
                " shutdown.",
            )
    return found


def _by_hand(world: World, topic: Message) -> Sequence[Replicas]:
    if topic.replication_factor != NOT_SET:
        raise RefusedError(
            "INVALID_REQUEST",
            "A manual partition assignment was specified, but replication factor was not set to -1.",
        )
    if topic.num_partitions != NOT_SET:
        raise RefusedError(
            "INVALID_REQUEST", "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    found: dict[int, Replicas] = {}
    count: int | None = None
    for assignment in topic.assignments:
        number = assignment.partition_index
        if number in found:
            raise RefusedError(
                "INVALID_REPLICA_ASSIGNMENT", f"Found multiple manual partition assignments for partition {number}"
            )
        found[number] = some_live(world, by_hand(world, assignment.broker_ids, count), number)
        count = len(found[number])
    if sorted(found) != list(range(len(found))):
        raise RefusedError("INVALID_REPLICA_ASSIGNMENT", "partitions should be a consecutive 0-based integer sequence")
    return [found[number] for number in sorted(found)]


def _described(world: World, name: str, configs: Mapping[str, str]) -> Sequence[Entry] | None:
    """The configs that the new topic has; None where they may not be seen."""
    if not world.allowed(TOPIC, "DESCRIBE_CONFIGS", name):
        return None
    entries = []
    for entry in of_topic(world, world.controller, name):
        own = configs.get(entry.key.name)
        if own is None:
            entries.append(entry)
        else:
            entries.append(Entry(entry.key, own, OWN, (Synonym(entry.key.name, own, OWN),)))
    return entries


def _result(name: str, assignments: Sequence[Replicas], described: Sequence[Entry] | None) -> Message:
    answer = _Result(name=name, error_code=0, error_message=None, configs=[])
    if described is None:
        answer.topic_config_error_code = code(DENIED[TOPIC])
        return answer
    answer.num_partitions, answer.replication_factor = len(assignments), len(assignments[0])
    answer.configs = [
        _Result.CreatableTopicConfigs(
            name=entry.key.name,
            value=entry.value,
            read_only=False,
            config_source=entry.source,
            is_sensitive=False,
        )
        for entry in described
    ]
    return answer


def _failed(name: str, problem: Problem) -> Message:
    return _Result(name=name, error_code=problem.code, error_message=problem.message, configs=[])
