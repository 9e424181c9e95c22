"""The ports of a simulated cluster: one for each node, speaking Kafka's protocol over TCP.

A node whose process does not run refuses connections; when it dies, those that are open end. One that is paused takes
connections and says nothing. Everything runs in one event loop, in which alone the world may be touched.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from kelr.errors import LabError
from kelr.lab.simulated.api import Apis, Nodes
from kelr.lab.simulated.connection import Connection
from kelr.lab.simulated.faults import Faults
from kelr.lab.simulated.recovery_manager import Sender
from kelr.lab.simulated.world import HOST, World

# The time of a simulated cluster: that of the machine, or one that a test turns by hand.


class Clock(Protocol):
    """Milliseconds since 1970 UTC."""

    virtual: bool
    """Whether it stands still until it is turned."""

    def now_ms(self) -> int:
        """How late it is."""


class MachineClock:
    """Goes with the machine's; it never goes back."""

    virtual = False

    def __init__(self) -> None:
        self._offset_ms = int(time.time() * 1000) - int(time.monotonic() * 1000)

    def now_ms(self) -> int:
        return self._offset_ms + int(time.monotonic() * 1000)


class VirtualClock:
    """Stands still until `advance`."""

    virtual = True

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def advance(self, duration_ms: int) -> None:
        """Turn it forward.

        Raises:
            ValueError: backward.
        """
        if duration_ms < 0:
            raise ValueError(f"a clock is not turned back by {-duration_ms} ms")
        self._now_ms += duration_ms


_LOG = logging.getLogger(__name__)
IDLE_S = 600.0
"""connections.max.idle.ms of Kafka, in seconds."""
_BACKLOG = 1024
_SHORTEST_WAIT_S = 0.005
_LOOK_AGAIN_S = 0.5
"""How often a waiting request looks, should it have been told of nothing."""
_MOST_FAILURES = 100


class Server:
    """Listens on the port of each node, and lets time pass in the world.

    Args:
        world: what the nodes know; used from the server's event loop alone.
        apis: what nodes speak.
        idle_s: after how many seconds without a request a connection ends.
    """

    def __init__(
        self, world: World, apis: Apis, clock: Clock, faults: Faults | None = None, *, idle_s: float = IDLE_S
    ) -> None:
        self.world = world
        self.faults = faults or Faults()
        self.clock = clock
        self.after_change: list[Callable[[], None]] = []
        """Called in the event loop whenever something happened in the world."""
        self.failures: deque[Exception] = deque(maxlen=_MOST_FAILURES)
        """Why handlers broke, where they did: faults of this server's own."""
        self._apis = {kind: {key: api for key, api in apis.items() if kind in api.nodes} for kind in _KINDS}
        self._idle_s = idle_s
        self._listeners: dict[int, asyncio.Server] = {}
        self._tasks: dict[int, set[asyncio.Task[None]]] = {}
        self._following = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stirred = asyncio.Event()
        self._seen = -1
        self._recovery = Sender(self)
        self.after_change.append(self._recovery.look)

    async def start(self) -> None:
        """Listen on every node's port.

        Raises:
            LabError: a port is taken.
        """
        try:
            await self.follow()
        except OSError as error:
            self.close()
            raise LabError(
                f"a port of the simulated cluster is taken ({error.strerror})", next_step="try again"
            ) from error

    def apis_of(self, node: int) -> Apis:
        """What one node speaks."""
        return self._apis[Nodes.CONTROLLERS if node in self.world.controllers else Nodes.BROKERS]

    async def run(self) -> None:
        """Let time pass until cancelled; sleeps until something is due."""
        while True:
            self._stirred.clear()
            self.time_passes()
            try:
                await self.follow()
            except OSError:  # a port is taken: somebody took it while its broker was down
                await asyncio.sleep(_LOOK_AGAIN_S)
                continue
            # Python 3.11's wait_for can swallow that this is cancelled; asyncio.timeout does not.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rest_s()):
                    await self._stirred.wait()

    def broke(self, failure: Exception) -> None:
        """Something in this server is wrong: kept for tests and for ``kelr lab status``, and told in the log."""
        self.failures.append(failure)
        _LOG.error("a handler of the simulated cluster broke", exc_info=failure)

    def connections(self, node: int) -> int:
        """How many clients are connected to a node."""
        return len(self._tasks.get(node, ()))

    def time_passes(self) -> None:
        """The world learns how late it is; a virtual clock's world is told when the clock is turned."""
        if not self.clock.virtual:
            self.world.running.advance(self.clock.now_ms())

    def turn(self, duration_ms: int) -> None:
        """Turn a virtual clock.

        Raises:
            LabError: the clock is the machine's.
            ValueError: backward.
        """
        if not isinstance(self.clock, VirtualClock):
            raise LabError("this cluster's clock is the machine's", next_step="kelr lab up --simulated --virtual-clock")
        self.clock.advance(duration_ms)
        self.world.running.advance(self.clock.now_ms())
        self._wake()

    def look(self) -> None:
        """Tell all who wait, if something happened in the world; whoever changes it calls this."""
        if self.world.running.changes != self._seen:
            self._wake()

    async def follow(self) -> None:
        """Listen where a process runs and nowhere else, and wake up who waits for a change.

        Raises:
            OSError: a port is taken.
        """
        self.look()
        async with self._following:
            for node in self.world.nodes:
                if self.world.listens(node) and node not in self._listeners:
                    port = self.world.ports[node]
                    accept = self._accept(node)
                    self._listeners[node] = await asyncio.start_server(accept, HOST, port, backlog=_BACKLOG)
            gone = [node for node in self._listeners if not self._is_there(node)]
            await self.let_nobody_in(gone)
            for node in gone:
                self._end(node)

    async def let_nobody_in(self, nodes: Iterable[int]) -> None:
        """Connections to these nodes end, and no further one is accepted.

        Whoever was accepted in the loop's last round is served from one of the next ones on. Were its listener closed
        before that, its socket would stay open for ever (asyncio attaches a connection to the listener that it came
        from), and the client would wait for an answer.
        """
        loop, found = asyncio.get_running_loop(), [node for node in nodes if node in self._listeners]
        for node in found:
            for listening in self._listeners[node].sockets:
                loop.remove_reader(listening.fileno())
            self._cut(node)
        if found:
            await _rounds()

    @property
    def listening(self) -> tuple[int, ...]:
        """The nodes whose ports are open."""
        return tuple(self._listeners)

    def close(self) -> None:
        """End all listeners and connections."""
        self._recovery.close()
        for node in list(self._listeners):
            self._end(node)

    async def until(self, at_ms: int) -> None:
        """Wait until it is so late."""
        while self.clock.now_ms() < at_ms:
            await self.something_new(at_ms)

    async def something_new(self, until_ms: int | None = None) -> None:
        """Wait until something happened in the world, or it is so late; never for long."""
        left_s = _LOOK_AGAIN_S
        if until_ms is not None and not self.clock.virtual:
            left_s = min(left_s, max(0.0, (until_ms - self.clock.now_ms()) / 1000))
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await self._changed.wait()

    def _wake(self) -> None:
        self._seen = self.world.running.changes
        self._stirred.set()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for call in self.after_change:
            call()

    def _rest_s(self) -> float | None:
        due_ms = self.world.running.next_due_ms
        if self.clock.virtual or due_ms is None:
            return None
        return max(_SHORTEST_WAIT_S, (due_ms - self.clock.now_ms()) / 1000)

    def _is_there(self, node: int) -> bool:
        return node in self.world.nodes and self.world.listens(node)

    def _accept(self, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        tasks = self._tasks.setdefault(node, set())

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = Connection(self, node, reader, writer, idle_s=self._idle_s)

            def ended(task: asyncio.Task[None]) -> None:
                tasks.discard(task)
                failure = None if task.cancelled() else task.exception()
                if isinstance(failure, Exception):
                    self.broke(failure)
                if task.cancelled() or failure is not None:
                    connection.abort()
                else:
                    writer.close()

            task = asyncio.get_running_loop().create_task(connection.serve())
            tasks.add(task)
            task.add_done_callback(ended)

        return accepted

    def _end(self, node: int) -> None:
        self._listeners.pop(node).close()
        self._cut(node)

    def _cut(self, node: int) -> None:
        for task in list(self._tasks.get(node, ())):
            task.cancel()


_KINDS = (Nodes.BROKERS, Nodes.CONTROLLERS)


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[None]:
    """Lets time pass in a server that has started, and ends it cleanly: no socket and no task is left."""
    ticking = asyncio.create_task(server.run())
    try:
        yield
    finally:
        ticking.cancel()
        await server.let_nobody_in(server.listening)
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # A transport lets go of its socket in the loop's next rounds.
        await _rounds()


async def _rounds() -> None:
    """Let what is under way in the event loop come to its next steps."""
    for _round in range(3):
        await asyncio.sleep(0)
