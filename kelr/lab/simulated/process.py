"""The process of a simulated lab: ``python -m kelr.lab.simulated.process DIRECTORY LAB_PROPERTY NODE_PROPERTY``.

It is made from the lab.json of the directory, serves until SIGTERM or the verb ``down``, and writes what breaks in it
to its standard error, which whoever starts it sends to a file in the lab's directory.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from pathlib import Path

from kelr.lab.simulated.clock import Clock, MachineClock, VirtualClock
from kelr.lab.simulated.control import ControlServer
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.server import Server, serving
from kelr.lab.simulated.state import SimulatedState, load_simulated
from kelr.lab.simulated.verbs import Operator
from kelr.lab.simulated.world import World


def world_of(state: SimulatedState, clock: Clock) -> World:
    """The cluster that the lab is made of."""
    return World(state.spec, state.ports, cluster_id=state.cluster_id, now_ms=clock.now_ms())


async def serve(state: SimulatedState) -> None:
    """Serve until somebody ends it."""
    clock: Clock = VirtualClock() if state.virtual_clock else MachineClock()
    server = Server(world_of(state, clock), apis_of(state.spec), clock)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    async with serving(server):
        control = await ControlServer(Operator(server), state.token, down=stop.set).listen(state.control_port)
        # Millions of objects that stay: the collector need not look at them again and again.
        gc.collect()
        gc.freeze()
        await stop.wait()
        control.close()


def main(directory: str, *_marks: str) -> None:
    """Serve the lab of a directory."""
    asyncio.run(serve(load_simulated(Path(directory))))


if __name__ == "__main__":
    main(*sys.argv[1:])
