"""A transport for what a reading of the cluster asks, over plain TCP: quick to load, and it sends requests ahead.

Whatever it does not know itself (TLS and SASL, requests to many brokers at once, dialogues about logs) it hands to
`KafkaTransport`, which is made when it is first needed. kafka-python is loaded then and not before.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from kelr.sources.connection import ConnectionSettings
from kelr.sources.live.names import LOOKUP_TIMEOUT_S, AddressBook
from kelr.sources.live.plain import Plain
from kelr.sources.live.questions import Question
from kelr.sources.live.transport import (
    Answer,
    Dialogue,
    Failure,
    FailureKind,
    Message,
    NodeAddress,
    NodeId,
    Transport,
)

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10.0
"""How long connecting may take where the request's own timeout is longer."""

_GRACE_S = 2.0
"""How long beyond its timeout a thread that asks may take to notice that, before it is left to itself."""


def open_transport(settings: ConnectionSettings) -> Transport:
    """The quickest transport that these settings allow."""
    if settings.security_protocol == "PLAINTEXT":
        return QuickTransport(settings)
    return _kafka_transport(settings)


def _kafka_transport(settings: ConnectionSettings) -> Transport:
    from kelr.sources.live.network import KafkaTransport  # noqa: PLC0415 - brings kafka-python along

    return KafkaTransport(settings)


class QuickTransport:
    """`Transport` over plain sockets. Bootstrap servers are the nodes ``bootstrap-0``, ``bootstrap-1``, ..."""

    def __init__(
        self, settings: ConnectionSettings, *, other: Callable[[ConnectionSettings], Transport] = _kafka_transport
    ) -> None:
        self._settings = settings
        self._make_other = other
        self._other: Transport | None = None
        self._bootstrap: dict[NodeId, NodeAddress] = {
            f"bootstrap-{number}": NodeAddress(*server) for number, server in enumerate(settings.bootstrap_servers)
        }
        self._brokers: dict[int, NodeAddress] = {}
        self._names = AddressBook()
        self._connections: dict[NodeId, Plain] = {}

    def bootstrap_nodes(self) -> Mapping[NodeId, NodeAddress]:
        return dict(self._bootstrap)

    def add_nodes(self, nodes: Mapping[int, NodeAddress]) -> None:
        for node, address in self._brokers.items():
            if nodes.get(node) != address:
                self._drop(node)
        self._brokers = dict(nodes)
        self.resolve(nodes.items(), timeout_s=min(LOOKUP_TIMEOUT_S, self._settings.timeout_s))
        if self._other is not None:
            self._other.add_nodes(nodes)

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        """Look all names up at once."""
        self._names.resolve(nodes, timeout_s=timeout_s)

    def exchange(self, node: NodeId, request: Message, *, timeout_s: float | None = None) -> Answer:
        if not isinstance(request, Question):
            return self._all_of_kafka().exchange(node, request, timeout_s=timeout_s)
        return self._exchange_all(node, [request], timeout_s or self._settings.timeout_s)[0]

    def send_ahead(self, node: NodeId, request: Message) -> None:
        connection = self._connections.get(node)
        if connection is not None and isinstance(request, Question):
            failure = connection.send_ahead(request)
            if failure is not None:
                self._drop(node)

    def exchange_all(self, node: NodeId, requests: Sequence[Message], *, timeout_s: float) -> Sequence[Answer]:
        questions = [request for request in requests if isinstance(request, Question)]
        if len(questions) < len(requests):
            return self._all_of_kafka().exchange_all(node, requests, timeout_s=timeout_s)
        return self._exchange_all(node, questions, timeout_s)

    def first_answer(
        self, nodes: Sequence[NodeId], request: Callable[[], Message], *, timeout_s: float
    ) -> tuple[NodeId, Message] | Mapping[NodeId, Failure]:
        """A thread for each node; connections of those that come too late are closed."""
        heard: queue.SimpleQueue[tuple[NodeId, Plain | None, Answer]] = queue.SimpleQueue()
        over = threading.Event()

        def attempt(node: NodeId) -> None:
            try:
                connection, answers = self._asked(node, None, [request()], time.monotonic() + timeout_s)
            except Exception as error:  # nobody else would hear of it, and the others wait for this answer
                failure = Failure(FailureKind.GARBLED, f"not an answer of a Kafka broker: {error}")
                connection, answers = None, [failure]
            heard.put((node, connection, answers[0]))
            if over.is_set():
                _close_all(heard)

        for node in nodes[1:]:
            threading.Thread(target=attempt, args=(node,), daemon=True).start()
        failures: dict[NodeId, Failure] = {}
        if len(nodes) == 1:
            attempt(nodes[0])
        else:
            threading.Thread(target=attempt, args=(nodes[0],), daemon=True).start()
        deadline = time.monotonic() + timeout_s + _GRACE_S
        while len(failures) < len(nodes):
            try:
                node, connection, answer = heard.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                over.set()
                _close_all(heard)
                late = Failure(FailureKind.TIMED_OUT, "no answer in time")
                return {**dict.fromkeys(nodes, late), **failures}
            if not isinstance(answer, Failure):
                over.set()
                _close_all(heard)
                if connection is not None:
                    self._connections[node] = connection
                return node, answer
            failures[node] = answer
        return failures

    def run(self, dialogues: Mapping[NodeId, Callable[[], Dialogue[T]]]) -> Mapping[NodeId, T]:
        return self._all_of_kafka().run(dialogues)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def now_s(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        for node in list(self._connections):
            self._drop(node)
        if self._other is not None:
            self._other.close()

    def _exchange_all(self, node: NodeId, questions: Sequence[Question], timeout_s: float) -> list[Answer]:
        deadline = time.monotonic() + timeout_s
        connection, answers = self._asked(node, self._connections.pop(node, None), questions, deadline)
        if connection is not None:
            self._connections[node] = connection
        return answers

    def _asked(
        self, node: NodeId, connection: Plain | None, questions: Sequence[Question], deadline: float
    ) -> tuple[Plain | None, list[Answer]]:
        """The answers, and the connection where it can be used further."""
        if node in self._names.unresolved:
            return None, [self._names.unresolved[node]] * len(questions)
        if connection is None:
            opened = self._opened(node, deadline)
            if isinstance(opened, Failure):
                return None, [opened] * len(questions)
            connection = opened
        try:
            answers = connection.ask(questions, deadline)
        except BaseException:  # somebody interrupts it: nobody holds the connection any more
            connection.close()
            raise
        if connection.broken:
            connection.close()
            return None, answers
        return connection, answers

    def _opened(self, node: NodeId, deadline: float) -> Plain | Failure:
        address = self._bootstrap.get(node) or (self._brokers.get(node) if isinstance(node, int) else None)
        if address is None:
            return Failure(FailureKind.UNREACHABLE, f"nobody knows where broker {node} is")
        infos = self._names.by_host.get(address.host, [])
        connect_by = min(deadline, time.monotonic() + CONNECT_TIMEOUT_S)
        return Plain.opened(infos, address, self._settings.client_id, connect_by=connect_by, deadline=deadline)

    def _drop(self, node: NodeId) -> None:
        connection = self._connections.pop(node, None)
        if connection is not None:
            connection.close()

    def _all_of_kafka(self) -> Transport:
        if self._other is None:
            self._other = self._make_other(self._settings)
            self._other.resolve(self._other.bootstrap_nodes().items(), timeout_s=LOOKUP_TIMEOUT_S)
            if self._brokers:
                self._other.add_nodes(self._brokers)
        return self._other


def _close_all(late: queue.SimpleQueue[tuple[NodeId, Plain | None, Answer]]) -> None:
    """End the connections in there. Who puts one in looks afterwards whether it is over, so that none is left."""
    with suppress(queue.Empty):
        while True:
            connection = late.get_nowait()[1]
            if connection is not None:
                connection.close()
