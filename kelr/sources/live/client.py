"""The transport over the network: connections to nodes, and what is asked over them, all at once where it can be.

Threads only wait for nodes: what is made of their answers is the work of the thread that asked.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from kelr.apart import Arrivals
from kelr.sources.connection import ConnectionSettings
from kelr.sources.ground import MACHINE, Ground
from kelr.sources.live.connection import Connection
from kelr.sources.live.failures import GARBLED, NO_ANSWER
from kelr.sources.live.names import LOOKUP_TIMEOUT_S, AddressBook
from kelr.sources.live.transport import (
    Answer,
    Dialogue,
    Failure,
    FailureKind,
    Message,
    NodeAddress,
    NodeId,
    Pause,
    Request,
)

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10.0
"""How long connecting may take where the request's own timeout is longer."""
MAX_PARALLEL_DIALOGUES = 64
_GRACE_S = 2.0
"""How long beyond its timeout a thread that asks may take to notice that, before it is left to itself."""
_STEP_S = 0.1
"""So often it is looked whether somebody is late."""


class Client:
    """`Transport` over sockets. Bootstrap servers are the nodes ``bootstrap-0``, ``bootstrap-1``, ...

    Raises:
        ConnectError, AuthenticationError: there is no token, or no ticket, to be had.
        BadInputError: keys or certificates do not load.
        UnsupportedError: the package for GSSAPI does not load.
    """

    def __init__(self, settings: ConnectionSettings, *, ground: Ground = MACHINE) -> None:
        self.ground = ground
        self._settings = settings
        self._security = settings.security()
        self._bootstrap: dict[NodeId, NodeAddress] = {
            f"bootstrap-{number}": NodeAddress(*server) for number, server in enumerate(settings.bootstrap_servers)
        }
        self._brokers: dict[int, NodeAddress] = {}
        self._names = AddressBook(ground)
        self._connections: dict[NodeId, Connection] = {}
        self._cluster_id: str | None = None
        self._ids_checked = False
        """Whether a broker of this cluster checks whom a connection is meant for; one that does not takes a second
        greeting to say so."""

    def bootstrap_nodes(self) -> Mapping[NodeId, NodeAddress]:
        return dict(self._bootstrap)

    def add_nodes(self, nodes: Mapping[int, NodeAddress], *, cluster_id: str | None = None) -> None:
        self._cluster_id = cluster_id
        for node, address in self._brokers.items():
            if nodes.get(node) != address:
                self._drop(node)
        self._brokers = dict(nodes)
        self.resolve(nodes.items(), timeout_s=min(LOOKUP_TIMEOUT_S, self._settings.timeout_s))

    def resolve(self, nodes: Iterable[tuple[NodeId, NodeAddress]], *, timeout_s: float) -> None:
        """Look all names up at once."""
        self._names.resolve(nodes, timeout_s=timeout_s)

    def exchange(self, node: NodeId, request: Request, *, timeout_s: float | None = None) -> Answer:
        return self.exchange_all(node, [request], timeout_s=timeout_s or self._settings.timeout_s)[0]

    def send_ahead(self, node: NodeId, request: Request) -> None:
        connection = self._connections.get(node)
        if connection is not None:
            failure = connection.send_ahead(request)
            if failure is not None:
                self._drop(node)

    def exchange_all(self, node: NodeId, requests: Sequence[Request], *, timeout_s: float) -> Sequence[Answer]:
        deadline = self.ground.steady_s() + timeout_s
        connection, answers = self._asked(node, self._connections.pop(node, None), requests, deadline)
        if connection is not None:
            self._connections[node] = connection
        return answers

    def first_answer(
        self, nodes: Sequence[NodeId], request: Callable[[], Request], *, timeout_s: float
    ) -> tuple[NodeId, Message] | Mapping[NodeId, Failure]:
        """A thread for each node; connections of those that come too late are closed."""
        asking = _Asking(self._asked, self.ground)
        failures: dict[NodeId, Failure] = {}
        try:
            for node in nodes:
                asking.ask(node, self._connections.pop(node, None), request(), timeout_s)
            while len(failures) < len(nodes):
                node, connection, answer = asking.next()
                if not isinstance(answer, Failure):
                    if connection is not None:
                        self._connections[node] = connection
                    return node, answer
                failures[node] = answer
        finally:
            asking.end()
        return failures

    def run(self, dialogues: Mapping[NodeId, Callable[[], Dialogue[T]]]) -> Mapping[NodeId, T]:
        """A thread for each of them, so many at a time; what they do between two questions is done in this one."""
        results: dict[NodeId, T] = {}
        waiting = deque(dialogues.items())
        under_way: dict[NodeId, Dialogue[T]] = {}
        asking = _Asking(self._asked, self.ground)

        def go_on(node: NodeId, answer: Any) -> None:
            try:
                wanted = under_way[node].send(answer)
            except StopIteration as end:
                results[node] = end.value
                del under_way[node]
                asking.dismiss(node)
                return
            if isinstance(wanted, Pause):
                asking.wait(node, wanted.seconds)
            else:
                connection = self._connections.pop(node, None)
                asking.ask(node, connection, wanted.request, wanted.timeout_s or self._settings.timeout_s)

        try:
            while waiting or under_way:
                while waiting and len(under_way) < MAX_PARALLEL_DIALOGUES:
                    node, start = waiting.popleft()
                    under_way[node] = start()
                    go_on(node, None)
                if under_way:
                    node, connection, answer = asking.next()
                    if connection is not None:
                        self._connections[node] = connection
                    go_on(node, answer)
        finally:
            asking.end()
        return {node: results[node] for node in dialogues}

    def close(self) -> None:
        for node in list(self._connections):
            self._drop(node)

    def _asked(
        self, node: NodeId, connection: Connection | None, requests: Sequence[Request], deadline: float
    ) -> tuple[Connection | None, list[Answer]]:
        """The answers, and the connection where it can be used further."""
        if node in self._names.unresolved:
            return None, [self._names.unresolved[node]] * len(requests)
        if connection is not None and connection.over:
            connection.close()
            connection = None
        if connection is None:
            opened = self._opened(node, deadline)
            if isinstance(opened, Failure):
                return None, [opened] * len(requests)
            connection = opened
        try:
            answers = connection.ask(requests, deadline)
        except BaseException:  # somebody interrupts it: nobody holds the connection any more
            connection.close()
            raise
        if connection.broken:
            connection.close()
            return None, answers
        return connection, answers

    def _opened(self, node: NodeId, deadline: float) -> Connection | Failure:
        address = self._bootstrap.get(node) or (self._brokers.get(node) if isinstance(node, int) else None)
        if address is None:
            return Failure(FailureKind.UNREACHABLE, f"the address of broker {node} is not known")
        ids = self._cluster_id if self._ids_checked else None
        opened = Connection.opened(
            self._names.by_host.get(address.host, []),
            address,
            self._settings.client_id,
            self._security,
            self.ground,
            connect_by=min(deadline, self.ground.steady_s() + CONNECT_TIMEOUT_S),
            deadline=deadline,
            meant=(ids, node) if ids is not None and isinstance(node, int) else None,
        )
        self._ids_checked |= not isinstance(opened, Failure) and opened.checks_ids
        return opened

    def _drop(self, node: NodeId) -> None:
        connection = self._connections.pop(node, None)
        if connection is not None:
            connection.close()


Asked = Callable[[NodeId, Connection | None, Sequence[Request], float], tuple[Connection | None, Sequence[Answer]]]
Heard = tuple[NodeId, Connection | None, Answer | None]
"""Who answered, the connection where it can be used further, and what; None at the end of a pause."""


@dataclass(slots=True)
class _Turn:
    """One question to one node, or one pause."""

    node: NodeId
    due_s: float
    """When it is given up (`Ground.steady_s`)."""
    connection: Connection | None = None
    request: Request | None = None
    deadline: float = 0.0


class _Asking:
    """Questions to nodes that are under way at the same time, each node's in a thread of its own."""

    def __init__(self, asked: Asked, ground: Ground) -> None:
        self._asked = asked
        self._ground = ground
        self._heard: Arrivals[tuple[_Turn, Connection | None, Answer | None]] = Arrivals()
        self._turns: dict[NodeId, _Turn] = {}
        self._workers: dict[NodeId, queue.SimpleQueue[_Turn | None]] = {}
        self._over = threading.Event()

    def ask(self, node: NodeId, connection: Connection | None, request: Request, timeout_s: float) -> None:
        """Ask it; `next` will tell."""
        deadline = self._ground.steady_s() + timeout_s
        self._begin(_Turn(node, deadline + _GRACE_S, connection, request, deadline))

    def wait(self, node: NodeId, seconds: float) -> None:
        """`next` will tell of this node after so long."""
        deadline = self._ground.steady_s() + seconds
        self._begin(_Turn(node, deadline + _GRACE_S, deadline=deadline))

    def next(self) -> Heard:
        """Who has answered next; a Failure of who has not in time."""
        while True:
            late = next((turn for turn in self._turns.values() if turn.due_s <= self._ground.steady_s()), None)
            if late is not None:
                del self._turns[late.node], self._workers[late.node]
                return late.node, None, None if late.request is None else NO_ANSWER
            try:
                turn, connection, answer = self._heard.get(_STEP_S)
            except queue.Empty:
                continue
            if self._turns.get(turn.node) is turn:
                del self._turns[turn.node]
                return turn.node, connection, answer
            if connection is not None:
                connection.close()  # too late

    def dismiss(self, node: NodeId) -> None:
        """Nothing more is asked of this node."""
        worker = self._workers.pop(node, None)
        if worker is not None:
            worker.put(None)

    def end(self) -> None:
        """Nobody waits any more: connections of who answers later are closed."""
        self._over.set()
        for worker in self._workers.values():
            worker.put(None)
        self._close_all()

    def _begin(self, turn: _Turn) -> None:
        self._turns[turn.node] = turn
        worker = self._workers.get(turn.node)
        if worker is None:
            worker = self._workers[turn.node] = queue.SimpleQueue()
            threading.Thread(target=self._work, args=(worker,), name="kelr-ask", daemon=True).start()
        worker.put(turn)

    def _work(self, turns: queue.SimpleQueue[_Turn | None]) -> None:
        while (turn := turns.get()) is not None:
            self._heard.put((turn, *self._answered(turn)))
            if self._over.is_set():
                self._close_all()

    def _answered(self, turn: _Turn) -> tuple[Connection | None, Answer | None]:
        if turn.request is None:
            self._ground.sleep(max(0.0, turn.deadline - self._ground.steady_s()))
            return None, None
        try:
            connection, answers = self._asked(turn.node, turn.connection, [turn.request], turn.deadline)
        except Exception as error:  # nobody else would hear of it, and the others wait for this answer
            return None, Failure(FailureKind.GARBLED, f"{GARBLED}{error}")
        return connection, answers[0]

    def _close_all(self) -> None:
        """End the connections of answers that nobody takes. Who puts one in looks afterwards whether it is over."""
        with suppress(queue.Empty):
            while True:
                connection = self._heard.get()[1]
                if connection is not None:
                    connection.close()
