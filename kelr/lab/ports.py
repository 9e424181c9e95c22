"""Free TCP ports for a lab's nodes."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from random import SystemRandom

from kelr.errors import LabError
from kelr.lab.nodes import HOST

FIRST_PORT, LAST_PORT = 20000, 32000
"""Below the range that systems give to outgoing connections: a stopped broker finds its port free again."""


def free_ports(nodes: tuple[int, ...]) -> dict[int, int]:
    """A free port for each node, all of them held at once so that no two are the same."""
    ports: dict[int, int] = {}
    pick = SystemRandom()
    with ExitStack() as held:
        for _attempt in range(1000):
            if len(ports) == len(nodes):
                return ports
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind((HOST, pick.randrange(FIRST_PORT, LAST_PORT)))
            except OSError:
                continue
            ports[nodes[len(ports)]] = candidate.getsockname()[1]
    raise LabError(f"no {len(nodes)} free ports between {FIRST_PORT} and {LAST_PORT} on {HOST}")
