"""The gauges of the active controller as a Prometheus text endpoint, as an exporter beside a real one serves them.

Source: KIP-966, "Metrics"; kafka.replication.electable_replicas_count has the domain of the KIP's older text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict

from kelr.controller import recovery_metrics
from kelr.lab.simulated.world import HOST, World

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
