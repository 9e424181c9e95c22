"""How a request is answered: the table of what the nodes speak, and what a handler is given and gives back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, TypeAlias

from kelr.controller.state import Registration
from kelr.lab.simulated.world import World
from kelr.model import PartitionState
from kelr.protocol.error_codes import CODES

Message: TypeAlias = Any
"""A message of `kelr.protocol.messages`, or a struct of one."""


class Nodes(Flag):
    """Which nodes take a request."""

    BROKERS = auto()
    CONTROLLERS = auto()
    ALL = BROKERS | CONTROLLERS


@dataclass(frozen=True, slots=True)
class Call:
    """A request as it reached a node."""

    world: World
    node: int
    request: Message
    version: int
    sender: str
    """The client id of the request."""


@dataclass(slots=True)
class Later:
    """An answer that is not there yet.

    `poll` is asked whenever something happened in the world, and gives the answer or None; `expired` gives the one that
    is sent at `until_ms`.
    """

    until_ms: int
    poll: Callable[[], Message | None]
    expired: Callable[[], Message]


Answer: TypeAlias = "Message | bytes | Later | None"
"""A response; its encoded body; or None where the client wants none (a Produce with acks=0)."""


@dataclass(frozen=True, slots=True)
class Api:
    """One request that nodes speak."""

    request: type[Message]
    response: type[Message]
    versions: tuple[int, int]
    """The oldest and the newest version."""
    handle: Callable[[Call], Answer]
    nodes: Nodes = Nodes.BROKERS

    @property
    def key(self) -> int:
        return int(self.request.API_KEY)

    @property
    def name(self) -> str:
        """Such as ``Metadata``."""
        name = str(self.request.__name__).removesuffix("Request")
        return "GetReplicaLogInfo" if name.endswith("ReplicaLogInfo") else name


Apis: TypeAlias = Mapping[int, Api]
"""By API key."""


def code(name: str) -> int:
    """Kafka's number of an error, by its name; ``NONE`` is 0."""
    return CODES[name]


# An error of one thing that a request asked for, with what Kafka says of it.


_WORDS = {
    "CLUSTER_AUTHORIZATION_FAILED": "Cluster authorization failed.",
    "INVALID_REQUEST": (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to"
        " an incompatible broker. See the broker logs for more details."
    ),
    "NO_REASSIGNMENT_IN_PROGRESS": "No partition reassignment is in progress.",
    "NOT_LEADER_OR_FOLLOWER": (
        "For requests intended only for the leader, this error indicates that the broker is not the current leader. For"
        " requests intended for any replica, this error indicates that the broker is not a replica of the topic"
        " partition."
    ),
    "REQUEST_TIMED_OUT": "The request timed out.",
    "TOPIC_AUTHORIZATION_FAILED": "Topic authorization failed.",
    "UNKNOWN_SERVER_ERROR": ("The server experienced an unexpected error when processing the request."),
    "UNKNOWN_TOPIC_ID": "This server does not host this topic ID.",
    "UNKNOWN_TOPIC_OR_PARTITION": "This server does not host this topic-partition.",
}


def words(error: str) -> str:
    """Kafka's own text for an error (Errors.message)."""
    return _WORDS[error]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something was not done."""

    error: str
    """Kafka's name of it."""
    message: str | None = None

    @property
    def code(self) -> int:
        return code(self.error)


class RefusedError(Exception):
    """A problem, where it is found."""

    def __init__(self, error: str, message: str | None = None) -> None:
        super().__init__(message or error)
        self.problem = Problem(error, message)


# What clients may do, as answers tell it: which operations of a resource, in bits, and that an operation is denied.
#
# Source: AuthHelper.authorizedOperations and AclEntry.supportedOperations of Apache Kafka.


NOT_ASKED = -(2**31)
"""Nobody asked for the operations."""
CLUSTER, TOPIC = "cluster", "topic"
DENIED = {CLUSTER: "CLUSTER_AUTHORIZATION_FAILED", TOPIC: "TOPIC_AUTHORIZATION_FAILED"}
"""The error of a resource that a client may not do something with."""

_CODES = {
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
}
_OF_BOTH = ("CREATE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
SUPPORTED = {TOPIC: (*_OF_BOTH, "READ", "WRITE", "DELETE"), CLUSTER: (*_OF_BOTH, "CLUSTER_ACTION", "IDEMPOTENT_WRITE")}
_ALL = {kind: sum(1 << _CODES[one] for one in supported) for kind, supported in SUPPORTED.items()}


def operations(world: World, kind: str, name: str | None = None) -> int:
    """The operations that are allowed on a resource, as Kafka's field of 32 bits."""
    if not world.denied:
        return _ALL[kind]
    return sum(1 << _CODES[one] for one in SUPPORTED[kind] if world.allowed(kind, one, name))


def cluster_operations(world: World, *, asked: bool) -> int:
    """The same for the cluster, as Metadata and DescribeCluster answer it: 0 where even DESCRIBE is denied."""
    if not asked:
        return NOT_ASKED
    return operations(world, CLUSTER) if world.allowed(CLUSTER, "DESCRIBE") else 0


# Requests that brokers hand on to the controller, and what becomes of them while they do not reach it.
#
# Source: ForwardingManager of Apache Kafka; a broker tries for as long as request.timeout.ms says.


REQUEST_TIMEOUT_MS = 30_000
"""request.timeout.ms of brokers."""


def forwarded(handle: Callable[[Call], Answer], timed_out: Callable[[Call], Message]) -> Callable[[Call], Answer]:
    """A handler that answers as the controller, once the node reaches it.

    Args:
        timed_out: the answer where it did not in time.
    """

    def answer(call: Call) -> Answer:
        if _reaches_controller(call):
            return handle(call)

        def poll() -> Message | None:
            return handle(call) if _reaches_controller(call) else None

        return Later(call.world.running.now_ms + REQUEST_TIMEOUT_MS, poll, lambda: timed_out(call))

    return answer


def _reaches_controller(call: Call) -> bool:
    world = call.world
    return call.node == world.controller or world.running.linked(call.node, world.controller)


# What answers about topics and partitions have in common.


NO_LEADER = -1
LONGEST_NAME = 249
_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_internal(topic: str | None) -> bool:
    """Whether it is one of Kafka's own (Topic.isInternal)."""
    return topic in _INTERNAL


def wrong_name(topic: str) -> str | None:
    """What is wrong with a topic's name, in Kafka's words (Topic.validate); None where nothing is."""
    if not topic:
        return "Topic name is invalid: the empty string is not allowed"
    if topic in {".", ".."}:
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(topic) > LONGEST_NAME:
        return f"Topic name is invalid: the length of '{topic}' is longer than the max allowed length {LONGEST_NAME}"
    if not _NAME.fullmatch(topic):
        return (
            f"Topic name is invalid: '{topic}' contains one or more characters other than ASCII alphanumerics,"
            " '.', '_' and '-'"
        )
    return None


def unknown_topic(topic: str) -> str:
    """Kafka's error for a topic that is not there."""
    return "UNKNOWN_TOPIC_OR_PARTITION" if wrong_name(topic) is None else "INVALID_TOPIC_EXCEPTION"


def offline(brokers: Mapping[int, Registration], state: PartitionState) -> list[int]:
    """The replicas that brokers hold to be offline (KRaftMetadataCache.getOfflineReplicas).

    Those whose broker is not registered or fenced, or whose log directory failed.
    """
    lost = state.offline_replicas or ()
    return [one for one in state.replicas if one in lost or one not in brokers or brokers[one].fenced]
