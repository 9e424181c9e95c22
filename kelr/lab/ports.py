"""Free TCP ports for a lab's nodes."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from random import SystemRandom

from kelr.errors import LabError
from kelr.lab.nodes import HOST

FIRST_PORT, LAST_PORT = 20000, 32000
"""Below the range that systems give to outgoing connections: a stopped broker finds its port free again."""
_given: set[int] = set()
"""What this process gave out: a broker that is down leaves its port free, and wants it again."""


def free_ports(nodes: tuple[int, ...]) -> dict[int, int]:
    """A free port for each node, all of them held at once so that no two are the same.

    What was given before is given again only when half of all ports have been.
    """
    ports: dict[int, int] = {}
    pick = SystemRandom()
    if len(_given) > (LAST_PORT - FIRST_PORT) // 2:
        _given.clear()
    with ExitStack() as held:
        for _attempt in range(1000):
            if len(ports) == len(nodes):
                _given.update(ports.values())
                return ports
            port = pick.randrange(FIRST_PORT, LAST_PORT)
            if port in _given:
                continue
            candidate = held.enter_context(socket.socket())
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            ports[nodes[len(ports)]] = port
    raise LabError(f"no {len(nodes)} free ports between {FIRST_PORT} and {LAST_PORT} on {HOST}")
