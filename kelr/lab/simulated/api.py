"""How a request is answered: the table of what the nodes speak, and what a handler is given and gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any, TypeAlias

from kelr.lab.simulated.world import World
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
