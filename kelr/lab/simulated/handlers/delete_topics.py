"""DeleteTopics, by name and by id.

Source: ControllerApis.deleteTopics of Apache Kafka 4.3, which shuffles its answers; here they keep the order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from kelr.controller import events
from kelr.controller.reach import NONE
from kelr.lab.simulated.api import Call, Message
from kelr.lab.simulated.handlers.authorized import CLUSTER, DENIED, TOPIC
from kelr.lab.simulated.handlers.errors import Problem, RefusedError, words
from kelr.lab.simulated.world import World
from kelr.protocol.messages import DeleteTopicsResponse

NO_ID = UUID(int=0)
Asked = tuple[str | None, UUID]


def delete_topics(call: Call) -> Message:
    """Delete topics; each is deleted or refused by itself."""
    asked = _asked(call)
    counts = Counter(asked)
    answers = [_answered(call, name, topic_id, counts[name, topic_id]) for name, topic_id in dict.fromkeys(asked)]
    return DeleteTopicsResponse(responses=answers)


def timed_out(call: Call) -> Message:
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
