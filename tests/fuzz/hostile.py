"""A simulated cluster whose answers are changed on their way, and what a client of it may say then."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from kelr.controller import events
from kelr.lab.simulated import server as servers
from kelr.lab.simulated.clock import VirtualClock
from kelr.lab.simulated.connection import Connection
from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import World
from kelr.model import PartitionState, TopicPartition
from kelr.simulation.logs import Acks
from kelr.sources.connection import ConnectionSettings

TIMEOUT_S = 0.6
ORDERS, QUIET = TopicPartition("orders", 0), TopicPartition("quiet", 0)

_SETTLED_S = 20.0

Change = Callable[[str, bytes], bytes]
"""The name of the request and the whole frame of its answer, to the frame that is sent."""


class Wire:
    """Where the answers of a cluster come by."""

    def __init__(self) -> None:
        self.change: Change | None = None
        self.seen: list[str] = []
        """The requests that were answered, by name, in their order."""

    def passed(self, name: str, frame: bytes) -> bytes:
        self.seen.append(name)
        return frame if self.change is None else self.change(name, frame)


@contextmanager
def changed_answers(server: SimulatedServer, wire: Wire, change: Change) -> Iterator[None]:
    """Answers are changed so, up to the last one to whom was asked meanwhile.

    A client may have sent a question ahead when it gives up; the answer to it would otherwise meet the next change.
    """
    wire.change = change
    try:
        yield
    finally:
        deadline = time.monotonic() + _SETTLED_S
        while server.perform(lambda there: sum(there.connections(node) for node in there.world.nodes)):
            assert time.monotonic() < deadline, "a client is still connected"
            time.sleep(0.002)
        wire.change = None


@contextmanager
def hostile_cluster(rules: str = "kip966-balanced") -> Iterator[tuple[SimulatedServer, Wire]]:
    """A cluster in an incident, and the wire that its answers go over.

    ``orders`` has lost its leader: brokers 2 and 3 run with logs of other lengths, 1 does not. ``quiet`` is well.
    """
    wire = Wire()

    class Mangled(Connection):
        async def _body(self, api: Any, *arguments: Any) -> bytes | None:
            self._named = api.name
            return await super()._body(api, *arguments)

        async def _send(self, data: bytes) -> None:
            await super()._send(wire.passed(self._named, data))

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
    return ConnectionSettings(tuple(("127.0.0.1", server.ports[broker]) for broker in (2, 3)), timeout_s=timeout_s)


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
