"""DescribeConfigs and IncrementalAlterConfigs.

Source: ConfigHelper of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kelr.lab.simulated.api import Api, Call, Message, Nodes
from kelr.lab.simulated.handlers.alter_configs import alter_configs
from kelr.lab.simulated.handlers.alter_configs import timed_out as alter_timed_out
from kelr.lab.simulated.handlers.authorized import CLUSTER, DENIED
from kelr.lab.simulated.handlers.authorized import TOPIC as TOPICS
from kelr.lab.simulated.handlers.config_results import ConfigResults
from kelr.lab.simulated.handlers.config_table import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    KNOWN,
    TOPIC,
    TYPES,
    Key,
)
from kelr.lab.simulated.handlers.config_values import (
    Entry,
    Synonym,
    of_broker,
    of_every_broker,
    of_topic,
    topic_configs,
)
from kelr.lab.simulated.handlers.errors import Problem, RefusedError, words
from kelr.lab.simulated.handlers.forwarding import forwarded
from kelr.lab.simulated.handlers.partitions import wrong_name
from kelr.lab.simulated.world import World
from kelr.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_LOGGERS = 6
"""DescribeConfigsResponse.ConfigSource: the level of a logger, dynamic and of one broker."""

_Result = DescribeConfigsResponse.DescribeConfigsResult
_Entry = _Result.DescribeConfigsResourceResult


def describe_configs(call: Call) -> bytes:
    """What topics, brokers and the cluster have for configs; encoded."""
    asked, results = call.request.resources, ConfigResults(call.version)
    if any(resource.resource_type not in KNOWN for resource in asked):
        # One that Kafka does not know fails the whole request (DescribeConfigsRequest.getErrorResponse).
        problem = Problem("INVALID_REQUEST", words("INVALID_REQUEST"))
        return results.answer([results.encoded(_failed(resource, problem)) for resource in asked])
    allowed = [_encoded(call, resource, results) for resource in asked if _allowed(call.world, resource)]
    denied = [results.encoded(_denied(resource)) for resource in asked if not _allowed(call.world, resource)]
    return results.answer([*allowed, *denied])


def _allowed(world: World, resource: Message) -> bool:
    if resource.resource_type == TOPIC:
        return world.allowed(TOPICS, "DESCRIBE_CONFIGS", resource.resource_name)
    return resource.resource_type == GROUP or world.allowed(CLUSTER, "DESCRIBE_CONFIGS")


def _denied(resource: Message) -> Message:
    error = DENIED[TOPICS if resource.resource_type == TOPIC else CLUSTER]
    return _failed(resource, Problem(error, words(error)))


def _encoded(call: Call, resource: Message, results: ConfigResults) -> bytes:
    kind, name = resource.resource_type, resource.resource_name
    try:
        if kind != TOPIC:
            return results.encoded(_described(call, resource, list(_entries(call, kind, name))))
        _check_topic(call.world, name)
    except RefusedError as refused:
        return results.encoded(_failed(resource, refused.problem))
    # Nothing but what a topic sets itself makes it another than the next one.
    alike = frozenset(topic_configs(call.world, name).items()), frozenset(resource.configuration_keys or ())
    return results.good(
        kind, name, alike, lambda: _described(call, resource, list(of_topic(call.world, call.node, name)))
    )


def _described(call: Call, resource: Message, entries: Iterable[Entry]) -> Message:
    wanted = set(resource.configuration_keys or ())
    return _Result(
        error_code=0,
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(call, entry) for entry in entries if not wanted or entry.key.name in wanted],
    )


def _check_topic(world: World, name: str) -> None:
    wrong = wrong_name(name)
    if wrong is not None:
        raise RefusedError("INVALID_TOPIC_EXCEPTION", wrong)
    if not world.partitions(name):
        raise RefusedError("UNKNOWN_TOPIC_OR_PARTITION", "")


def _entries(call: Call, kind: int, name: str) -> Iterable[Entry]:
    world = call.world
    if kind in {CLIENT_METRICS, GROUP}:
        return ()
    if kind == BROKER and not name:
        return of_every_broker(world)
    _own_id(call.node, name, or_empty=kind == BROKER)
    return of_broker(world, call.node) if kind == BROKER else _loggers()


def _own_id(node: int, name: str, *, or_empty: bool) -> None:
    """A node tells of itself alone."""
    if not name:
        raise RefusedError("INVALID_REQUEST", "Broker id must not be empty")
    if not name.lstrip("+-").isdigit():
        raise RefusedError("INVALID_REQUEST", f"Broker id must be an integer, but it is: {name}")
    if int(name) != node:
        expected = f"{node} or empty string," if or_empty else f"{node}"
        raise RefusedError("INVALID_REQUEST", f"Unexpected broker id, expected {expected} but received {name}")


def _loggers() -> Iterator[Entry]:
    yield Entry(Key("root", TYPES[0], None), "INFO", _LOGGERS)


def _entry(call: Call, entry: Entry) -> Message:
    synonyms = entry.synonyms if call.request.include_synonyms else ()
    return _Entry(
        name=entry.key.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.key.sensitive and entry.source != _LOGGERS,
        synonyms=[_synonym(one) for one in synonyms],
        config_type=TYPES.index(entry.key.type),
        documentation="" if entry.source == _LOGGERS else None,
    )


def _synonym(one: Synonym) -> Message:
    return _Entry.DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)


def _failed(resource: Message, problem: Problem) -> Message:
    return _Result(
        error_code=problem.code,
        error_message=problem.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[],
    )


APIS: tuple[Api, ...] = (
    Api(DescribeConfigsRequest, DescribeConfigsResponse, (1, 4), describe_configs, Nodes.ALL),
    Api(
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResponse,
        (0, 1),
        forwarded(alter_configs, alter_timed_out),
        Nodes.ALL,
    ),
)
