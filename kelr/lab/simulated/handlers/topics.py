"""DescribeTopicPartitions, CreateTopics and DeleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from uuid import UUID

from kelr.controller import events
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import (
    CLUSTER,
    DENIED,
    NOT_ASKED,
    TOPIC,
    Api,
    Call,
    Message,
    Nodes,
    Problem,
    RefusedError,
    code,
    forwarded,
    is_internal,
    operations,
    unknown_topic,
    words,
    wrong_name,
)
from kelr.lab.simulated.handlers.config_values import FROM_TOPIC as OWN
from kelr.lab.simulated.handlers.config_values import Entry, Synonym, of_topic
from kelr.lab.simulated.handlers.configs import check_topic_values, write_topic_configs
from kelr.lab.simulated.handlers.topic_bytes import DESCRIBE, NO_TAGS, int32, length, string, topic_bytes
from kelr.lab.simulated.world import Seen, World, seen_by
from kelr.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

# Where the replicas of new partitions go: as somebody wants it, or dealt to the brokers.
#
# Source: ReplicationControlManager.validateManualPartitionAssignment and StripedReplicaPlacer of Apache Kafka 4.4.


Replicas = tuple[int, ...]


def by_hand(world: World, replicas: Sequence[int], count: int | None = None) -> Replicas:
    """An assignment that somebody gave.

    Args:
        count: how many replicas the topic's other partitions have.

    Raises:
        RefusedError: INVALID_REPLICA_ASSIGNMENT, in Kafka's words.
    """
    if not replicas:
        raise _wrong("The manual partition assignment includes an empty replica list.")
    before = None
    for broker in sorted(replicas):
        if broker not in world.brokers:
            raise _wrong(f"The manual partition assignment includes broker {broker}, but no such broker is registered.")
        if world.brokers[broker].cordoned:
            raise _wrong(
                f"The manual partition assignment includes broker {broker}, but all its log directories are cordoned."
            )
        if broker == before:
            raise _wrong(f"The manual partition assignment includes the broker {broker} more than once.")
        before = broker
    if count is not None and len(replicas) != count:
        raise _wrong(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not"
            f" consistent with previous partitions, which have {count} replica(s)."
        )
    return tuple(replicas)


def _wrong(message: str) -> RefusedError:
    return RefusedError("INVALID_REPLICA_ASSIGNMENT", message)


def some_live(world: World, replicas: Replicas, partition: int) -> Replicas:
    """The assignment again, if a partition of it can be made: someone has to lead it.

    Raises:
        RefusedError: INVALID_REPLICA_ASSIGNMENT.
    """
    if not any(world.brokers[broker].active for broker in replicas):
        raise _wrong(
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in"
            " controlled shutdown."
        )
    return replicas


def dealt(world: World, first: int, partitions: int, count: int) -> Sequence[Replicas]:
    """Assignments of new partitions: over the racks in turn, and over the brokers of each.

    Kafka begins at a random rack and broker; here the number of the partition says where to begin.

    Args:
        first: the number of the first partition.
        count: how many replicas each gets.

    Raises:
        RefusedError: INVALID_REPLICATION_FACTOR.
    """
    usable = {broker: one for broker, one in world.brokers.items() if not one.cordoned}
    live = [broker for broker, one in usable.items() if not one.fenced]
    fenced = [broker for broker, one in usable.items() if one.fenced]
    if not live:
        raise _too_few(count, "All brokers are currently fenced.")
    if count > len(usable):
        raise _too_few(
            count,
            f"The target replication factor of {count} cannot be reached because only {len(usable)} broker(s)"
            " are registered or some brokers have all their log directories cordoned.",
        )
    ring, spare = _striped(world, live), _striped(world, fenced)
    return [_from(ring, spare, number, count) for number in range(first, first + partitions)]


def _from(ring: Sequence[int], spare: Sequence[int], number: int, count: int) -> Replicas:
    """Live brokers first, the fenced ones where there are not enough of them."""
    start = number % len(ring)
    return (*ring[start:], *ring[:start], *spare)[:count]


def _too_few(count: int, message: str) -> RefusedError:
    return RefusedError("INVALID_REPLICATION_FACTOR", f"Unable to replicate the partition {count} time(s): {message}")


def _striped(world: World, brokers: Sequence[int]) -> Sequence[int]:
    """Brokers so that neighbours are in different racks, as far as that goes."""
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        racks.setdefault(world.racks.get(broker, ""), []).append(broker)
    rows = zip_longest(*(racks[rack] for rack in sorted(racks)))
    return [broker for broker in chain.from_iterable(rows) if broker is not None]


# DescribeTopicPartitions: partitions with their ELR, in pages.
#
# Source: DescribeTopicPartitionsRequestHandler and KRaftMetadataCache.describeTopicResponse of Apache Kafka 4.3.


NO_ID = UUID(int=0)
_NO_THROTTLE = int32(0)
_NO_CURSOR = b"\xff"


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page begins or the next one does; `partition` is the wire's INT32."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class Part:
    """A topic's partitions from `begin` up to `end` in a page; or the error that stands in their place."""

    topic: str
    begin: int = 0
    end: int = 0
    error: str = "NONE"


def describe(call: Call) -> bytes:
    """One page, encoded."""
    request = call.request
    cursor = None if request.cursor is None else Cursor(request.cursor.topic_name, request.cursor.partition_index)
    named = [topic.name for topic in request.topics]
    error = _refusal(named, cursor)
    if error is not None:
        # The whole request fails; its answer names the topics in it (DescribeTopicPartitionsRequest.getErrorResponse).
        return _encoded([_error(name, error, internal=False) for name in named], None)
    limit = max(1, min(call.world.spec.page_limit, request.response_partition_limit))
    seen = seen_by(call.world, call.node)
    parts, following = page(seen, named, cursor, limit)
    return _encoded([_part(seen, part) for part in parts], following)


def page(seen: Seen, named: Collection[str], cursor: Cursor | None, limit: int) -> tuple[Sequence[Part], Cursor | None]:
    """What is in a page, and where the next one begins.

    Args:
        named: the topics that were asked for; none of them stands for all, and leaves out what is not authorized.
        limit: the most partitions in it.
    """
    first = "" if cursor is None else cursor.topic
    wanted = _in_order(named, first) if named else seen.topics(first)
    denied = [name for name in _in_order(named, first) if not seen.world.allowed(TOPIC, "DESCRIBE", name)]
    parts, following = _filled(seen, wanted, cursor, limit)
    return [*parts, *(Part(name, error=DENIED[TOPIC]) for name in denied)], following


def _filled(
    seen: Seen, wanted: Iterator[str], cursor: Cursor | None, limit: int
) -> tuple[Sequence[Part], Cursor | None]:
    parts: list[Part] = []
    for name in wanted:
        if not seen.world.allowed(TOPIC, "DESCRIBE", name):
            continue
        if limit == 0:
            return parts, Cursor(name, 0)
        count = seen.partitions(name)
        if not count:
            parts.append(Part(name, error=unknown_topic(name)))
            continue
        begin = cursor.partition if cursor is not None and name == cursor.topic else 0
        end = min(count, _int32(begin + limit))
        parts.append(Part(name, begin, end))
        if end < count:
            return parts, Cursor(name, end)
        limit -= max(0, end - begin)
    return parts, None


def _refusal(named: Sequence[str], cursor: Cursor | None) -> str | None:
    """The error that fails the whole request."""
    if cursor is not None and named and (cursor.topic not in named or cursor.partition < 0):
        return "INVALID_REQUEST"
    if cursor is not None and cursor.partition < 0:
        return "INVALID_REQUEST"
    # Kafka 4.3.1 runs into an error of its own where it looks for the permissions of a topic without a name.
    return "UNKNOWN_SERVER_ERROR" if "" in named and (cursor is None or not cursor.topic) else None


def _in_order(named: Collection[str], first: str) -> Iterator[str]:
    """Each name once; Java compares strings by their UTF-16 units."""
    return iter(sorted({name for name in named if _order(name) >= _order(first)}, key=_order))


def _order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def _int32(number: int) -> int:
    """A sum as Java's int has it: a cursor beyond all partitions runs over, and the next one is negative."""
    return (number + 2**31) % 2**32 - 2**31


def _part(seen: Seen, part: Part) -> bytes:
    if part.error == DENIED[TOPIC]:
        return _error(part.topic, part.error, internal=False)
    bits = operations(seen.world, TOPIC, part.topic)
    if part.error != "NONE":
        return _error(part.topic, part.error, internal=is_internal(part.topic), bits=bits)
    return topic_bytes(seen, DESCRIBE).topic(seen, part.topic, part.begin, part.end, bits)


def _error(name: str, error: str, *, internal: bool, bits: int = NOT_ASKED) -> bytes:
    return DESCRIBE.topic(name, NO_ID, b"", 0, error=code(error), internal=internal, operations=bits)


def _encoded(topics: Sequence[bytes], cursor: Cursor | None) -> bytes:
    """The whole answer: throttle time, topics, and the next cursor, if any."""
    following = _NO_CURSOR
    if cursor is not None:
        following = b"".join((b"\x01", string(cursor.topic, flexible=True), int32(cursor.partition), NO_TAGS))
    return b"".join((_NO_THROTTLE, length(len(topics), flexible=True), *topics, following, NO_TAGS))


# CreateTopics: names, configs and assignments are checked, and topics made, as Kafka's controller does it.
#
# Source: ControllerApis.createTopics and ReplicationControlManager.createTopics of Apache Kafka 4.3.


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


def creation_timed_out(call: Call) -> Message:
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


# DeleteTopics, by name and by id.
#
# Source: ControllerApis.deleteTopics of Apache Kafka 4.3, which shuffles its answers; here they keep the order.


Asked = tuple[str | None, UUID]


def delete_topics(call: Call) -> Message:
    """Delete topics; each is deleted or refused by itself."""
    asked = _asked(call)
    counts = Counter(asked)
    answers = [_answered(call, name, topic_id, counts[name, topic_id]) for name, topic_id in dict.fromkeys(asked)]
    return DeleteTopicsResponse(responses=answers)


def deletion_timed_out(call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    problem = Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT"))
    answers = [_answer(name, topic_id, problem) for name, topic_id in dict.fromkeys(_asked(call))]
    return DeleteTopicsResponse(responses=answers)


def _asked(call: Call) -> list[Asked]:
    return list(_named(call))


def _named(call: Call) -> Iterator[Asked]:
    """What was asked for; up to version 5 by name alone."""
    if call.version < 6:
        yield from ((name, NO_ID) for name in call.request.topic_names)
        return
    yield from ((topic.name, topic.topic_id or NO_ID) for topic in call.request.topics)


def _answered(call: Call, name: str | None, topic_id: UUID, times: int) -> Message:
    try:
        if name is None and topic_id == NO_ID:
            raise RefusedError("INVALID_REQUEST", "Neither topic name nor id were specified.")
        if name is not None and topic_id != NO_ID:
            raise RefusedError("INVALID_REQUEST", "You may not specify both topic name and topic id.")
        if times > 1:
            kind = "id" if name is None else "name"
            raise RefusedError("INVALID_REQUEST", f"Duplicate topic {kind}.")
        return _deleted(call.world, name, topic_id)
    except RefusedError as refused:
        return _answer(name, topic_id, refused.problem)


def _deleted(world: World, name: str | None, topic_id: UUID) -> Message:
    topic = world.topic_of(topic_id) if name is None else name
    if topic is None:
        raise RefusedError("UNKNOWN_TOPIC_ID", words("UNKNOWN_TOPIC_ID"))
    every = world.allowed(CLUSTER, "DELETE")
    if name is None and not world.partitions(topic):
        raise RefusedError("UNKNOWN_TOPIC_ID", words("UNKNOWN_TOPIC_ID"))
    if not (every or world.allowed(TOPIC, "DESCRIBE", topic)):
        raise RefusedError(DENIED[TOPIC], words(DENIED[TOPIC]))
    if not world.partitions(topic):
        raise RefusedError("UNKNOWN_TOPIC_OR_PARTITION", words("UNKNOWN_TOPIC_OR_PARTITION"))
    if not (every or world.allowed(TOPIC, "DELETE", topic)):
        # By now the client is known to see the topic, so its name may be told.
        return _answer(topic, topic_id, Problem(DENIED[TOPIC], words(DENIED[TOPIC])))
    found = world.topic_id(topic)
    world.own_topic(topic)
    done = world.running.ask(events.TopicDeleted(topic))
    if done.error != NONE:
        raise RefusedError(done.error)
    world.forget_topic(topic)
    return _answer(topic, found, Problem(NONE))


def _answer(name: str | None, topic_id: UUID, problem: Problem) -> Message:
    return DeleteTopicsResponse.DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=problem.code, error_message=problem.message
    )


APIS: tuple[Api, ...] = (
    Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, (0, 0), describe),
    Api(
        CreateTopicsRequest,
        CreateTopicsResponse,
        (2, 7),
        forwarded(create_topics, creation_timed_out),
        Nodes.ALL,
    ),
    Api(
        DeleteTopicsRequest,
        DeleteTopicsResponse,
        (1, 6),
        forwarded(delete_topics, deletion_timed_out),
        Nodes.ALL,
    ),
)
