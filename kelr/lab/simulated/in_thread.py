"""A simulated cluster in a thread of this process: for tests, for the demo, and inside the lab's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from kelr.lab.nodes import new_kafka_uuid
from kelr.lab.ports import free_ports
from kelr.lab.simulated.clock import Clock, MachineClock, VirtualClock
from kelr.lab.simulated.faults import Fault
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.server import Server
from kelr.lab.simulated.spec import SimulatedSpec
from kelr.lab.simulated.world import HOST, World
from kelr.lab.spec import CONTROLLER_ID

T = TypeVar("T")


class SimulatedServer:
    """Runs a server in a thread of its own; every method may be called from any thread.

    Args:
        clock: a `VirtualClock` stands still until `advance`.
        make: makes the world from the ports; None makes one from the spec.
    """

    def __init__(
        self,
        spec: SimulatedSpec | None = None,
        *,
        clock: Clock | None = None,
        make: Callable[[SimulatedSpec, dict[int, int]], World] | None = None,
    ) -> None:
        self.spec = spec or SimulatedSpec()
        self.clock = clock or MachineClock()
        self.ports = dict(free_ports((CONTROLLER_ID, *self.spec.broker_ids)))
        if make is None:
            self.world = World(self.spec, self.ports, cluster_id=new_kafka_uuid(), now_ms=self.clock.now_ms())
        else:
            self.world = make(self.spec, self.ports)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="simulated cluster")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{self.ports[broker]}" for broker in self.spec.broker_ids)

    @property
    def controller_server(self) -> str:
        """The controller's address, for --bootstrap-controller."""
        return f"{HOST}:{self.ports[CONTROLLER_ID]}"

    def start(self) -> None:
        """Listen; returns when all ports are open."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End it; all connections end."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def inside(self, do: Callable[[World], T]) -> T:
        """Do something with the world, between two requests; listeners follow before this returns."""

        async def done() -> T:
            assert self._server is not None
            result = do(self.world)
            await self._server.follow()
            return result

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def advance(self, duration_ms: int) -> None:
        """Turn a virtual clock."""
        assert isinstance(self.clock, VirtualClock)
        self.clock.advance(duration_ms)
        self.inside(lambda world: world.running.advance(self.clock.now_ms()))

    def fault(self, fault: Fault) -> None:
        """A rule for what goes wrong from now on, after those that are there."""
        self.inside(lambda _world: self._faults.append(fault))

    def no_faults(self) -> None:
        """All rules are gone."""
        self.inside(lambda _world: self._faults.clear())

    @property
    def _faults(self) -> list[Fault]:
        assert self._server is not None
        return self._server.faults.rules

    def _run(self) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            self._server = Server(self.world, apis_of(self.spec), self.clock)
            loop.run_until_complete(self._server.start())
            self._loop = loop
        except BaseException as failure:
            self._failure = failure
            self._ready.set()
            return
        ticking = loop.create_task(self._server.run())
        self._ready.set()
        try:
            loop.run_forever()
        finally:
            ticking.cancel()
            self._server.close()
            loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
            loop.close()
