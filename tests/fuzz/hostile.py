"""A simulated cluster whose answers are changed on their way, and what a client of it may say then."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

import pytest

from kelr.controller import events
from kelr.lab.simulated import server as servers
from kelr.lab.simulated.connection import Connection
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import PartitionState, TopicPartition
from kelr.simulation.logs import Acks
from kelr.sources.connection import ConnectionSettings

TIMEOUT_S = 0.6
ORDERS, QUIET = TopicPartition("orders", 0), TopicPartition("quiet", 0)

_CLIENTS = count(1)

Change = Callable[[str, bytes], bytes]
"""The name of the request and the whole frame of its answer, to the frame that is sent."""


class Wire:
    """Where the answers of a cluster come by."""

    def __init__(self) -> None:
        self.changes: dict[str, Change] = {}
        """By the id of the client that asks."""
        self.seen: list[str] = []
        """The requests that were answered, by name, in their order."""

    def passed(self, name: str, client: str, frame: bytes) -> bytes:
        self.seen.append(name)
        change = self.changes.get(client)
        return frame if change is None else change(name, frame)


@contextmanager
def changed_answers(wire: Wire, asking: ConnectionSettings, change: Change) -> Iterator[None]:
    """Whoever asks with these settings gets answers that are changed so, and nobody else does.

    A client may have sent a question ahead when it gives up, and the cluster may come to it long after: the answer is
    still that client's, and meets no change that is meant for the next one.
    """
    wire.changes[asking.client_id] = change
    try:
        yield
    finally:
        del wire.changes[asking.client_id]


@contextmanager
def hostile_cluster(rules: str = "kip966-balanced") -> Iterator[tuple[SimulatedServer, Wire]]:
    """A cluster in an incident, and the wire that its answers go over.

    ``orders`` has lost its leader: brokers 2 and 3 run with logs of other lengths, 1 does not. ``quiet`` is well.
    """
    wire = Wire()

    class Mangled(Connection):
        async def _body(self, api: Any, frame: bytes, version: int, sender: str, *more: Any) -> bytes | None:
            self._asked = api.name, sender
            return await super()._body(api, frame, version, sender, *more)

        async def _send(self, data: bytes) -> None:
            await super()._send(wire.passed(*self._asked, data))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(servers, "Connection", Mangled)
        made = SimulatedServer(SimulatedSpec(rules=rules, log_info=None), clock=VirtualClock())
        made.world.running.ask(events.TopicCreated(ORDERS.topic, ((1, 2, 3), (2, 3, 1), (3, 1, 2))))
        made.world.running.ask(events.TopicCreated(QUIET.topic, ((1, 2, 3), (2, 3, 1))))
        with made as server:
            server.inside(_incident)
            server.advance(server.spec.timing.start_ms)
            yield server, wire


def _incident(world: World) -> None:
    running = world.running
    running.produce(ORDERS, 10, Acks.ALL)
    running.kill(3)
    running.expire(3)
    running.produce(ORDERS, 20, Acks.LEADER)
    running.kill(2)
    running.expire(2)
    running.produce(ORDERS, 5, Acks.LEADER)
    running.kill(1)
    running.expire(1)
    running.start(2)
    running.start(3)


def settings_of(server: SimulatedServer, timeout_s: float = TIMEOUT_S) -> ConnectionSettings:
    """How a client reaches the cluster that nobody was before."""
    servers = tuple(("127.0.0.1", server.ports[broker]) for broker in (2, 3))
    return ConnectionSettings(servers, timeout_s=timeout_s, client_id=f"tests-{next(_CLIENTS)}")


@contextmanager
def listening(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port of this machine that treats every connection so, until the other side ends it."""
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def handle(connection: socket.socket) -> None:
        with suppress(OSError):
            behave(connection)

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                held.append(connection)
                threads.append(threading.Thread(target=handle, args=(connection,), daemon=True))
                threads[-1].start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
        for connection in held:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for one in threads:
            one.join(5)


def makes_sense(state: PartitionState) -> bool:
    """Nothing about a partition that could not be so."""
    replicas = set(state.replicas)
    return (
        bool(replicas)
        and len(replicas) == len(state.replicas)
        and min(replicas) >= 0
        and (state.leader is None or state.leader in replicas)
        and set(state.isr) <= replicas | {-1}  # Kafka 4.0 can seat "no leader" there
        and state.partition >= 0
    )
