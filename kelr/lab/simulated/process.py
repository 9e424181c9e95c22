"""The process of a simulated lab: ``python -m kelr.lab.simulated.process LAB_JSON LAB_PROPERTY NODE_PROPERTY``.

It is made from lab.json, serves until SIGTERM or the verb ``down``, and writes what breaks in it
to its standard error, which whoever starts it sends to a file in the lab's directory.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from kelr.controller import recovery_metrics
from kelr.errors import KelrError
from kelr.lab.simulated.control import ControlServer, Operator
from kelr.lab.simulated.disks import DiskKeeper
from kelr.lab.simulated.handlers import apis_of
from kelr.lab.simulated.server import Clock, MachineClock, Server, VirtualClock, serving
from kelr.lab.simulated.spec import SNAPSHOT_FILE, SimulatedState, load_simulated
from kelr.lab.simulated.world import HOST, World

# The gauges of the active controller as a Prometheus text endpoint, as an exporter beside a real one serves them.
#
# Source: KIP-966, "Metrics"; kafka.replication.electable_replicas_count has the domain of the KIP's older text.

_CLIENT_S = 10.0
_COUNTER = "unclean_recovery_finished_count"
_OLDER_DOMAIN = frozenset({"electable_replicas_count"})


def figures(world: World) -> Mapping[str, int]:
    """KIP-966's metrics by its names, as the active controller has them now.

    Of topics that are alike (`kelr.simulation.alike`) each partition counts as the one that stands for it.
    """
    cluster = world.running.cluster
    return asdict(recovery_metrics(cluster.controller, cluster.manager))


def page(world: World) -> str:
    """The same in Prometheus' text format."""
    lines = []
    for name, value in figures(world).items():
        full = f"kafka_{'replication' if name in _OLDER_DOMAIN else 'controller'}_{name}"
        lines += [f"# TYPE {full} {'counter' if name == _COUNTER else 'gauge'}", f"{full} {value}"]
    return "\n".join([*lines, ""])


async def listen(world: World, port: int) -> asyncio.Server:
    """Serve the page under every path; whoever called ends the server.

    Raises:
        OSError: the port is taken.
    """

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_CLIENT_S):
                    await reader.readuntil(b"\r\n\r\n")
                    body = page(world).encode()
                    head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
                    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                    await writer.drain()
        finally:
            writer.close()

    return await asyncio.start_server(accepted, HOST, port)


def world_of(directory: Path, state: SimulatedState, clock: Clock) -> World:
    """The cluster that the lab is made of.

    Raises:
        BadInputError: the snapshot cannot be read.
    """
    if not state.from_snapshot:
        return World(state.spec, state.ports, cluster_id=state.cluster_id, now_ms=clock.now_ms())
    from kelr.lab.simulated.from_snapshot import from_snapshot  # noqa: PLC0415 - where there is one
    from kelr.sources.snapshot_file import read_snapshot  # noqa: PLC0415 - brings pydantic along

    snapshot = read_snapshot(directory / SNAPSHOT_FILE)
    return from_snapshot(state.spec, snapshot, state.ports, now_ms=clock.now_ms())


async def serve(directory: Path, state: SimulatedState) -> None:
    """Serve until somebody ends it."""
    clock: Clock = VirtualClock() if state.virtual_clock else MachineClock()
    server = Server(world_of(directory, state, clock), apis_of(state.spec), clock)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    disks = _disks(directory, state, server)
    async with serving(server):
        operator = Operator(server, disks)
        gauges = None if state.metrics_port is None else await listen(server.world, state.metrics_port)
        control = await ControlServer(operator, state.token, down=stop.set).listen(state.control_port)
        # Millions of objects that stay: the collector need not look at them again and again.
        gc.collect()
        gc.freeze()
        await stop.wait()
        control.close()
        if gauges is not None:
            gauges.close()
    if disks is not None:
        disks.close()


def _disks(directory: Path, state: SimulatedState, server: Server) -> DiskKeeper | None:
    if not state.log_dirs:
        return None
    return DiskKeeper(server, {broker: state.log_directory(directory, broker) for broker in state.spec.broker_ids})


def main(lab_json: str, *_marks: str) -> None:
    """Serve the lab of a lab.json; an error is told in a line."""
    place = Path(lab_json).parent
    try:
        asyncio.run(serve(place, load_simulated(place)))
    except KelrError as error:
        sys.exit(error.message)


if __name__ == "__main__":
    main(*sys.argv[1:])
