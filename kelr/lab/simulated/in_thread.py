"""A simulated cluster in a thread of this process: for tests, for the demo, and inside the lab's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.processes import free_ports
from kelr.lab.simulated.control import ControlServer, Operator
from kelr.lab.simulated.faults import Fault
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.server import IDLE_S, Clock, MachineClock, Server, serving
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import HOST, World

T = TypeVar("T")


class SimulatedServer:
    """Runs a server in a thread of its own; every method may be called from any thread.

    As a context manager it raises what a handler broke with, should one have: clients saw UNKNOWN_SERVER_ERROR.

    Args:
        clock: a `VirtualClock` stands still until `advance`.
        make: makes the world from the ports; None makes one from the spec.
        idle_s: after how many seconds without a request a connection ends.
    """

    def __init__(
        self,
        spec: SimulatedSpec | None = None,
        *,
        clock: Clock | None = None,
        make: Callable[[SimulatedSpec, dict[int, int]], World] | None = None,
        idle_s: float = IDLE_S,
    ) -> None:
        self.spec = spec or SimulatedSpec()
        self.clock = clock or MachineClock()
        self.ports = dict(free_ports((*self.spec.controller_ids, *self.spec.broker_ids)))
        if make is None:
            self.world = World(self.spec, self.ports, cluster_id=new_kafka_uuid(), now_ms=self.clock.now_ms())
        else:
            self.world = make(self.spec, self.ports)
        self._idle_s = idle_s
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._server: Server | None = None
        self._controls: list[asyncio.Server] = []
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="simulated cluster")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if error is None and self.failures:
            raise self.failures[0]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{self.ports[broker]}" for broker in self.spec.broker_ids)

    @property
    def controller_server(self) -> str:
        """The controllers' addresses, for --bootstrap-controller."""
        return ",".join(f"{HOST}:{self.ports[node]}" for node in self.spec.controller_ids)

    def start(self) -> None:
        """Listen; returns when all ports are open.

        Raises:
            LabError: a port is taken.
        """
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure

    def close(self) -> None:
        """End it; all connections end."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    @property
    def failures(self) -> tuple[Exception, ...]:
        """Why handlers broke, where they did."""
        return tuple(self._there.failures)

    def inside(self, do: Callable[[World], T]) -> T:
        """Do something with the world, between two requests; listeners follow before this returns."""
        return self.perform(lambda server: do(server.world))

    def perform(self, do: Callable[[Server], T]) -> T:
        """As `inside`, for what concerns the server too."""

        async def done() -> T:
            self._there.time_passes()
            result = do(self._there)
            await self._there.follow()
            return result

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def control(self, token: str, *, down: Callable[[], None] = lambda: None) -> int:
        """Open a control channel to it; returns the port.

        Args:
            token: what requests have to bring.
            down: called in the server's thread when the verb ``down`` comes.
        """

        async def opened() -> int:
            listener = await ControlServer(Operator(self._there), token, down=down).listen(0)
            self._controls.append(listener)
            return int(listener.sockets[0].getsockname()[1])

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(opened(), self._loop).result()

    def advance(self, duration_ms: int) -> None:
        """Turn a virtual clock."""
        self.perform(lambda server: server.turn(duration_ms))

    def fault(self, fault: Fault) -> None:
        """A rule for what goes wrong from now on, after those that are there."""
        self.perform(lambda server: server.faults.rules.append(fault))

    def no_faults(self) -> None:
        """All rules are gone."""
        self.perform(lambda server: server.faults.rules.clear())

    @property
    def _there(self) -> Server:
        assert self._server is not None
        return self._server

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as failure:
            self._failure = failure
            self._ready.set()

    async def _serve(self) -> None:
        self._server = Server(self.world, apis_of(self.spec), self.clock, idle_s=self._idle_s)
        await self._server.start()
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(self._server):
            self._ready.set()
            await self._stop.wait()
            for listener in self._controls:
                listener.close()
