"""The seam to the network: one request to one node is one answer, or a `Failure` that says why there is none.

Everything above this module is requests in, values out. A longer exchange with one broker is a *dialogue*: a generator
that yields what it wants sent (`Ask`) or how long it wants to wait (`Pause`), is sent the answers, and returns its
result. The transport runs many of them at once; a test runs one with a function that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

from kelr.protocol import codec
from kelr.sources.ground import Ground

NodeId = int | str
"""A broker id, or the name that the transport gave to a bootstrap server."""

Message = Any
"""A response (`codec.Message`), or what a request's `read` makes of one."""

T = TypeVar("T")


class FailureKind(StrEnum):
    """Why a node gave no answer."""

    UNREACHABLE = "unreachable"
    """Refused, reset, closed, unknown host, or TLS did not come about."""
    TIMED_OUT = "timed-out"
    AUTHENTICATION = "authentication"
    UNSUPPORTED = "unsupported"
    """Node and kelr have no version of this request in common."""
    GARBLED = "garbled"
    """What came back is not the Kafka protocol."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A node that gave no answer: a value, so that one dead node ends nothing but its own part."""

    kind: FailureKind
    detail: str


Answer = Message | Failure

Read = Callable[[bytes, int], Any]
"""Makes an answer of its body and its version; raises ValueError where the bytes are no such answer."""


@dataclass(frozen=True)
class Request:
    """What is asked, before it is known over which connection and in which version.

    By Kafka's names: ``DescribeCluster``, fields in snake_case, structs as mappings.
    """

    name: str
    fields: Mapping[str, Any]
    min_version: int | None = None
    max_version: int | None = None
    read: Read | None = field(default=None, compare=False)
    """Makes the answer, in place of an object for each of its values."""
    following: Callable[[bytes], Self | None] | None = field(default=None, compare=False)
    """What will be asked next, as far as the answer's body tells at first sight; it is sent ahead, so that the broker
    works on it while this answer is read. A guess: nobody has to ask it."""
    under_key: int | None = None
    """The API key, where it is not the schema's."""

    @cached_property
    def message(self) -> codec.Message:
        """What is encoded."""
        return self._kind(**self.fields)

    @property
    def answer(self) -> type[codec.Message]:
        """What the answer is decoded to."""
        return codec.answer_of(self._kind)

    @property
    def key(self) -> int:
        """The API key that it goes under."""
        return self._kind.API_KEY

    @property
    def oldest(self) -> int:
        """The oldest version that it may go in."""
        return max(self._kind.VERSIONS[0], self.min_version or 0)

    @property
    def newest(self) -> int:
        """The newest version that it may go in."""
        newest = self._kind.newest()
        return newest if self.max_version is None else min(newest, self.max_version)

    @property
    def _kind(self) -> type[codec.Message]:
        kind = codec.message_class(f"{self.name}Request")
        return kind if self.under_key is None else codec.under_key(kind, self.under_key)


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request; the dialogue goes on with the answer. `timeout_s` None takes the transport's."""

    request: Request
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait this long; the dialogue goes on with None."""

    seconds: float


Dialogue = Generator[Ask | Pause, Any, T]


@dataclass(frozen=True, slots=True)
class NodeAddress:
    host: str
    port: int


class Transport(Protocol):
    """Sends requests to nodes. All waits are bounded."""

    ground: Ground
    """Whoever asks over it waits by this."""

    def bootstrap_nodes(self) -> Mapping[NodeId, NodeAddress]:
        """The names of the bootstrap servers and their addresses."""

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        """Look host names up; a node whose name does not resolve answers with a Failure from then on."""

    def exchange(self, node: NodeId, request: Request, *, timeout_s: float | None = None) -> Answer:
        """One request to one node, and its answer."""

    def send_ahead(self, node: NodeId, request: Request) -> None:
        """Send a request whose answer `exchange` will ask for with an equal one; a transport may leave it at that."""

    def exchange_all(self, node: NodeId, requests: Sequence[Request], *, timeout_s: float) -> Sequence[Answer]:
        """All requests to one node without waiting for an answer in between; the answers in the same order."""

    def first_answer(
        self, nodes: Sequence[NodeId], request: Callable[[], Request], *, timeout_s: float
    ) -> tuple[NodeId, Message] | Mapping[NodeId, Failure]:
        """The same request to all nodes at once: the first answer wins; all failures if there is none.

        Args:
            request: makes a fresh request for each node, since the version is settled by each node.
        """

    def run(self, dialogues: Mapping[NodeId, Callable[[], Dialogue[T]]]) -> Mapping[NodeId, T]:
        """Hold all dialogues at the same time, each with its own node."""

    def add_nodes(self, nodes: Mapping[int, NodeAddress], *, cluster_id: str | None = None) -> None:
        """Where brokers are, and of which cluster; replaces what was known before. Whoever turns out to be another
        broker, or one of another cluster, answers with a Failure (where brokers tell: Kafka 4.4, KIP-1242)."""

    def close(self) -> None:
        """End all connections."""
