"""A simulated cluster or node that ends leaves nothing open, also where somebody comes at that very moment."""

from __future__ import annotations

import asyncio
import gc
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kelr.lab.simulated.in_thread import SimulatedServer
from kelr.lab.simulated.server import VirtualClock
from kelr.lab.simulated.world import World


@contextmanager
def nothing_left_open() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(one.message) for one in told if one.category is ResourceWarning] == []


@pytest.mark.parametrize("what", ["the cluster", "the node"])
def test_a_client_that_was_just_let_in_is_left_no_socket(what: str) -> None:
    """The end comes between the round of the loop that accepts a connection and the one that serves it."""
    clients = []
    with nothing_left_open(), SimulatedServer(clock=VirtualClock()) as server:

        def comes(_world: World) -> None:
            clients.append(socket.create_connection(("127.0.0.1", server.ports[1]), timeout=30))
            loop = asyncio.get_running_loop()
            loop.call_soon(server._stop.set if what == "the cluster" else ends)

        def ends() -> None:
            server.world.running.kill(1)
            tasks.append(asyncio.get_running_loop().create_task(server._there.follow()))

        tasks: list[asyncio.Task[None]] = []
        server.inside(comes)
        for client in clients:
            with client, suppress(ConnectionError):
                assert client.recv(1) == b""
