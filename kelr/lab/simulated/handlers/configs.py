"""DescribeConfigs and IncrementalAlterConfigs.

Source: ConfigHelper of Apache Kafka 4.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kelr.controller import events, strategy_named
from kelr.controller.state import ELECTION_CONFIGS
from kelr.lab.simulated.api import (
    CLUSTER,
    DENIED,
    Api,
    Call,
    Message,
    Nodes,
    Problem,
    RefusedError,
    forwarded,
    words,
    wrong_name,
)
from kelr.lab.simulated.api import TOPIC as TOPICS
from kelr.lab.simulated.handlers.config_values import (
    BROKER,
    CLIENT_METRICS,
    EVERY_BROKER,
    GROUP,
    KNOWN,
    MANAGER,
    MIN_ISR,
    STRATEGY,
    TIMEOUT,
    TOPIC,
    TYPES,
    UNCLEAN,
    Entry,
    Key,
    Synonym,
    broker_keys,
    by_the_kip,
    cluster_configs,
    guarded,
    of_broker,
    of_every_broker,
    of_topic,
    topic_configs,
    topic_keys,
    wrong_value,
)
from kelr.lab.simulated.handlers.topic_bytes import NO_TAGS, int16, int32, length, string
from kelr.lab.simulated.metadata_log import CORDONS
from kelr.lab.simulated.world import World
from kelr.protocol.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

# The results of a DescribeConfigs answer as bytes: what topics that are alike have behind their names is encoded once.
#
# The answers are those that the codec would encode.


_LEAST_FLEXIBLE = 4
_NO_THROTTLE = int32(0)


class ConfigResults:
    """Encodes the results of one answer.

    Args:
        version: of the answer.
    """

    def __init__(self, version: int) -> None:
        self._version = version
        self._flexible = version >= _LEAST_FLEXIBLE
        self._behind_names: dict[Hashable, bytes] = {}

    def encoded(self, result: Message) -> bytes:
        """One result of any kind."""
        message = DescribeConfigsResponse(results=[result])
        body: bytes = message.encode(self._version)
        start = len(_NO_THROTTLE) + len(length(1, flexible=self._flexible))
        return body[start : len(body) - (len(NO_TAGS) if self._flexible else 0)]

    def good(self, kind: int, name: str, alike: Hashable, make: Callable[[], Message]) -> bytes:
        """A result without an error.

        Args:
            alike: equal for results that have the same configs.
            make: makes the result, where there was none alike before.
        """
        head = b"".join(
            (
                int16(0),
                string("", flexible=self._flexible),
                bytes([kind]),
                string(name, flexible=self._flexible),
            )
        )
        if alike not in self._behind_names:
            self._behind_names[alike] = self.encoded(make())[len(head) :]
        return head + self._behind_names[alike]

    def answer(self, results: Sequence[bytes]) -> bytes:
        """The whole answer."""
        count = length(len(results), flexible=self._flexible)
        return b"".join((_NO_THROTTLE, count, *results, NO_TAGS if self._flexible else b""))


# IncrementalAlterConfigs: what is written for a topic, for a broker or for the cluster.
#
# Source: ConfigAdminManager.preprocess (on brokers), ControllerApis.handleIncrementalAlterConfigs and
# ConfigurationControlManager.incrementalAlterConfigs of Apache Kafka 4.3.


CORDONED = "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = range(4)
_NAMES = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
NONE = Problem("NONE")
_REPEATED = {False: "Each resource must appear at most once.", True: "Duplicate resource."}


@dataclass(frozen=True, slots=True)
class Change:
    """One config of a resource, and what is to be done with it."""

    name: str
    operation: int
    value: str | None


def alter_configs(call: Call) -> Message:
    """Write configs; a resource gets all of its changes or none."""
    resources = call.request.resources
    counts = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    repeated = {key for key, count in counts.items() if count > 1}
    if call.node in call.world.controllers:
        # A controller names them once, a broker as often as it was asked.
        resources = list({(one.resource_type, one.resource_name): one for one in resources}.values())
    results: list[tuple[Message, Problem]] = []
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        changes = [Change(one.name, one.config_operation, one.value) for one in resource.configs]
        try:
            if (kind, name) in repeated:
                raise RefusedError("INVALID_REQUEST", _REPEATED[call.node in call.world.controllers])
            _check(call, kind, name, changes)
            values = _outcome(call.world, kind, name, changes)
            if not call.request.validate_only:
                _write(call.world, kind, name, values)
            results.append((resource, NONE))
        except RefusedError as refused:
            results.append((resource, refused.problem))
    return _answer(results)


def timed_out(call: Call) -> Message:
    """What a broker answers that did not reach the controller."""
    problem = Problem("REQUEST_TIMED_OUT", words("REQUEST_TIMED_OUT"))
    return _answer([(resource, problem) for resource in call.request.resources])


def _answer(results: Sequence[tuple[Message, Problem]]) -> Message:
    made = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    responses = [
        made(
            error_code=problem.code,
            error_message=problem.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        for resource, problem in results
    ]
    return IncrementalAlterConfigsResponse(responses=responses)


def _check(call: Call, kind: int, name: str, changes: Sequence[Change]) -> None:
    """What a broker looks at before it hands the request on, and then the permission."""
    world = call.world
    if kind not in KNOWN and call.node in world.controllers:
        raise RefusedError("UNSUPPORTED_VERSION", f"Unknown resource type {kind}.")
    if kind not in KNOWN:
        raise RefusedError("INVALID_REQUEST", f"Unknown resource type {kind}")
    if call.node not in world.controllers:
        _preprocess(call, kind, name, changes)
    if kind == TOPIC and not world.allowed(TOPICS, "ALTER_CONFIGS", name):
        raise RefusedError(DENIED[TOPICS])
    if kind == BROKER and not world.allowed(CLUSTER, "ALTER_CONFIGS"):
        raise RefusedError(DENIED[CLUSTER])
    if kind not in {TOPIC, BROKER}:
        raise RefusedError("INVALID_REQUEST", "A simulated cluster has configs of topics and of brokers alone")
    if any(change.operation not in {SET, DELETE, APPEND, SUBTRACT} for change in changes):
        raise RefusedError("UNKNOWN_SERVER_ERROR")


def _preprocess(call: Call, kind: int, name: str, changes: Sequence[Change]) -> None:
    names = [change.name for change in changes]
    if len(set(names)) < len(names):
        raise RefusedError("INVALID_REQUEST", "Error due to duplicate config keys")
    empty = [change.name for change in changes if change.operation != DELETE and change.value is None]
    if empty:
        raise RefusedError("INVALID_REQUEST", f"Null value not supported for : {', '.join(empty)}")
    if kind != BROKER:
        return
    if name:
        _of_this_node(call.node, name)
    keys = broker_keys(kip966=by_the_kip(call.world))
    fixed = [change.name for change in changes if change.name in keys and not keys[change.name].dynamic]
    if fixed:
        raise RefusedError("INVALID_REQUEST", f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for change in changes:
        key = keys.get(change.name)
        wrong = None if key is None or change.value is None else wrong_value(key, change.value)
        if wrong is not None:
            raise RefusedError("INVALID_REQUEST", wrong)


def _of_this_node(node: int, name: str) -> None:
    if not name.lstrip("+-").isdigit():
        raise RefusedError("INVALID_REQUEST", f"Node id must be an integer, but it is: {name}")
    if int(name) != node:
        raise RefusedError("INVALID_REQUEST", f"Unexpected broker id, expected {node}, but received {name}")


def _outcome(world: World, kind: int, name: str, changes: Sequence[Change]) -> Mapping[str, str | None]:
    """The changed configs with their new values; None takes one back. Checked as the controller checks them."""
    current = _current(world, kind, name)
    values = {change.name: _changed(world, kind, change, current.get(change.name)) for change in changes}
    if kind == TOPIC:
        _check_topic_change(world, name, {**current, **values})
    else:
        _check_broker(world, name, values)
    return values


def _current(world: World, kind: int, name: str) -> Mapping[str, str]:
    if kind == TOPIC:
        return topic_configs(world, name)
    return world.broker_configs.get(name, {}) if name else cluster_configs(world)


def _changed(world: World, kind: int, change: Change, current: str | None) -> str | None:
    if change.operation == DELETE:
        return None
    if change.operation == SET:
        return change.value
    key = (topic_keys if kind == TOPIC else broker_keys)(kip966=by_the_kip(world)).get(change.name)
    if key is None or key.type != "LIST":
        operation = _NAMES[change.operation]
        raise RefusedError("INVALID_CONFIG", f"Can't {operation} to key {change.name} because its type is not LIST.")
    parts = [part for part in (current if current is not None else key.default or "").split(",") if part]
    for part in (change.value or "").split(","):
        if change.operation == APPEND and part not in parts:
            parts.append(part)
        elif change.operation == SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _check_topic_change(world: World, topic: str, values: Mapping[str, str | None]) -> None:
    if not topic:
        raise RefusedError("INVALID_REQUEST", "Default topic resources are not allowed.")
    wrong = wrong_name(topic)
    if wrong is not None:
        raise RefusedError("INVALID_TOPIC_EXCEPTION", wrong)
    check_topic_values(world, values)
    if not world.partitions(topic):
        raise RefusedError("UNKNOWN_TOPIC_OR_PARTITION", f"The topic '{topic}' does not exist.")


def check_topic_values(world: World, values: Mapping[str, str | None]) -> None:
    """Whether a topic can have these configs (LogConfig.validate).

    Raises:
        RefusedError: INVALID_CONFIG.
    """
    kept = {name: value for name, value in values.items() if value is not None}
    keys = topic_keys(kip966=by_the_kip(world))
    for name in kept:
        if name not in keys:
            raise RefusedError("INVALID_CONFIG", f"Unknown topic config name: {name}")
        _not_guarded(world, name)
    for name, value in kept.items():
        wrong = wrong_value(keys[name], value)
        if wrong is not None:
            raise RefusedError("INVALID_CONFIG", wrong)


def _check_broker(world: World, name: str, values: Mapping[str, str | None]) -> None:
    elr = world.running.cluster.controller.rules.elr
    if elr and name and MIN_ISR in values:
        raise RefusedError("INVALID_CONFIG", "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    if elr and not name and MIN_ISR in values and values[MIN_ISR] is None:
        raise RefusedError(
            "INVALID_CONFIG", "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        )
    if name and not name.isdigit():
        raise RefusedError("INVALID_REQUEST", "Unable to parse broker name as a base 10 number.")
    if name and int(name) not in world.nodes:
        raise RefusedError("BROKER_ID_NOT_REGISTERED", f"No node with id {name} found.")
    for key in values:
        _not_guarded(world, key)
    if name and by_the_kip(world):
        _of_no_single_broker(values)
    keys = broker_keys(kip966=by_the_kip(world))
    for ruling in _ruling(world):
        value = values.get(ruling)
        wrong = None if value is None else wrong_value(keys[ruling], value)
        if wrong is not None:
            raise RefusedError("INVALID_REQUEST", wrong)


def _not_guarded(world: World, name: str) -> None:
    if guarded(world, name):
        raise RefusedError("INVALID_CONFIG", f"{name} needs {MANAGER}=true")


def _of_no_single_broker(values: Mapping[str, str | None]) -> None:
    """The controller elects: it would never see what a broker alone has. Refused, as Kafka refuses a broker's own
    min.insync.replicas, rather than shown and not obeyed."""
    for name in values:
        if name in {STRATEGY, TIMEOUT}:
            raise RefusedError(
                "INVALID_CONFIG",
                f"Broker-level {name} cannot be altered: the controller elects, by topics and the cluster default.",
            )


def _ruling(world: World) -> Sequence[str]:
    """The configs that elections depend on under the cluster's rules."""
    return ELECTION_CONFIGS if by_the_kip(world) else ELECTION_CONFIGS[:2]


def _write(world: World, kind: int, name: str, values: Mapping[str, str | None]) -> None:
    if kind == TOPIC:
        write_topic_configs(world, name, values)
        return
    ruling = {} if name != EVERY_BROKER else {one: values[one] for one in _ruling(world) if one in values}
    _keep(world.broker_configs.setdefault(name, {}), {one: values[one] for one in values if one not in ruling})
    _write_ruling(world, None, ruling)
    if CORDONED in values:
        _cordon(world)


def _cordon(world: World) -> None:
    """A simulated broker has one log directory: whatever names any cordons it."""
    for broker in world.brokers if world.metadata.level >= CORDONS else ():
        levels = (world.broker_configs.get(name, {}) for name in (str(broker), EVERY_BROKER))
        value = next((level[CORDONED] for level in levels if CORDONED in level), "")
        world.running.cordon(broker, cordoned=bool(value))


def write_topic_configs(world: World, topic: str, values: Mapping[str, str | None]) -> None:
    """Let a topic have these configs; None takes one back."""
    ruling = {name: values[name] for name in _ruling(world) if name in values}
    if ruling:
        world.own_topic(topic)
    _keep(world.topic_configs.setdefault(topic, {}), {name: values[name] for name in values if name not in ruling})
    _write_ruling(world, topic, ruling)


def _keep(configs: dict[str, str], values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            configs.pop(name, None)
        else:
            configs[name] = value


def _write_ruling(world: World, topic: str | None, values: Mapping[str, str | None]) -> None:
    """The configs that elections depend on; min.insync.replicas clears the ELR, as in Kafka."""
    min_isr, unclean, timeout = values.get(MIN_ISR), values.get(UNCLEAN), values.get(TIMEOUT)
    written = events.ConfigWritten(
        topic,
        min_isr=None if min_isr is None else int(min_isr),
        unclean_leader_election=None if unclean is None else unclean.strip().lower() == "true",
        recovery_strategy=strategy_named(values.get(STRATEGY)),
        recovery_timeout_ms=None if timeout is None else int(timeout),
    )
    taken_back = events.ConfigDeleted(
        topic,
        min_isr=MIN_ISR in values and min_isr is None,
        unclean_leader_election=UNCLEAN in values and unclean is None,
        recovery_strategy=STRATEGY in values and values[STRATEGY] is None,
        recovery_timeout_ms=TIMEOUT in values and timeout is None,
    )
    if written != events.ConfigWritten(topic):
        world.running.ask(written)
    if taken_back != events.ConfigDeleted(topic):
        world.running.ask(taken_back)


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
        forwarded(alter_configs, timed_out),
        Nodes.ALL,
    ),
)
