"""The ports of a simulated cluster: one for each node, speaking Kafka's protocol over TCP.

Requests of one connection are answered one after the other, as Kafka does it. A node whose process does not run refuses
connections; when it dies, those that are open end.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kelr.lab.simulated.api import Answer, Api, Apis, Call, Later, Nodes
from kelr.lab.simulated.clock import Clock
from kelr.lab.simulated.faults import Fault, FaultKind, Faults
from kelr.lab.simulated.world import HOST, World

MOST_BYTES = 100 * 1024 * 1024
"""socket.request.max.bytes: a longer request ends the connection."""
_HEADER = struct.Struct(">hhih")
_TICK_S = 0.02


class Connection:
    """One client's connection to one node."""

    def __init__(self, server: Server, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._node = node
        self._reader = reader
        self._writer = writer

    async def serve(self) -> None:
        """Answer requests until the connection ends, or something comes that is no request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, _EndError):
            while True:
                (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                if not _HEADER.size <= size <= MOST_BYTES:
                    return
                await self._answer(await self._reader.readexactly(size))

    def abort(self) -> None:
        """End it at once, as when the process at this end dies."""
        self._writer.transport.abort()

    async def _answer(self, frame: bytes) -> None:
        key, version, correlation, length = _HEADER.unpack_from(frame)
        sender = frame[_HEADER.size : _HEADER.size + max(length, 0)].decode("utf-8", "replace")
        api = self._server.apis_of(self._node).get(key)
        if api is None:
            raise _EndError
        low, high = api.versions
        fault = self._server.faults.strike(self._node, api.name)
        if fault is not None and fault.kind in {FaultKind.LOSE, FaultKind.CLOSE}:
            if fault.kind is FaultKind.CLOSE:
                raise _EndError
            return
        if not low <= version <= high:
            if api.name != "ApiVersions":
                raise _EndError  # as Kafka does: the client was told which versions there are
            body: bytes | None = self._server.unsupported_api_versions(self._node)
            version = 0
        else:
            body = await self._body(api, frame, version, sender, fault)
        if body is not None:
            await self._send(api, correlation, version, body, fault)

    async def _body(self, api: Api, frame: bytes, version: int, sender: str, fault: Fault | None) -> bytes | None:
        try:
            request = api.request.decode(frame, version=version, header=True)
        except Exception:
            raise _EndError from None  # whatever a decoder makes of noise
        call = Call(self._server.world, self._node, request, version, sender)
        if fault is not None and fault.kind is FaultKind.ERROR:
            return self._server.with_error(api, call, fault.amount)
        answer = await self._server.settled(api.handle(call))
        if answer is None or isinstance(answer, bytes):
            return answer
        return bytes(answer.encode(version=version))

    async def _send(self, api: Api, correlation: int, version: int, body: bytes, fault: Fault | None) -> None:
        flexible = api.response.flexible_version_q(version) and api.name != "ApiVersions"
        header = struct.pack(">i", correlation) + (b"\x00" if flexible else b"")
        frame = struct.pack(">i", len(header) + len(body)) + header + body
        await self._server.deliver(self._writer, frame, len(header) + 4, fault)


class _EndError(Exception):
    """This connection is over."""


class Server:
    """Listens on the port of each node, and lets time pass in the world.

    Args:
        world: what the nodes know; used from the server's event loop alone (`inside`).
        apis: what nodes speak.
    """

    def __init__(self, world: World, apis: Apis, clock: Clock, faults: Faults | None = None) -> None:
        self.world = world
        self.faults = faults or Faults()
        self.clock = clock
        self._apis = apis
        self._listeners: dict[int, asyncio.Server] = {}
        self._connections: dict[int, set[Connection]] = {}
        self._changed = asyncio.Event()
        self._seen = -1
        self.after_change: list[Callable[[], None]] = []
        """Called in the event loop whenever something happened in the world."""

    async def start(self) -> None:
        """Listen on every node's port, and begin to let time pass."""
        await self.follow()

    def apis_of(self, node: int) -> Apis:
        """What one node speaks."""
        kind = Nodes.CONTROLLERS if node == self.world.controller else Nodes.BROKERS
        return {key: api for key, api in self._apis.items() if kind in api.nodes}

    async def run(self) -> None:
        """Let time pass until cancelled."""
        while True:
            if not self.clock.virtual:
                self.world.running.advance(self.clock.now_ms())
            await self.follow()
            await asyncio.sleep(_TICK_S)

    async def follow(self) -> None:
        """Listen where a process runs and nowhere else, and wake up who waits for a change."""
        for node in self.world.nodes:
            if self.world.listens(node) and node not in self._listeners:
                self._connections.setdefault(node, set())
                self._listeners[node] = await asyncio.start_server(self._accept(node), HOST, self.world.ports[node])
            elif not self.world.listens(node) and node in self._listeners:
                self._close(node)
        if self.world.running.changes != self._seen:
            self._seen = self.world.running.changes
            for call in self.after_change:
                call()
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def close(self) -> None:
        """End all listeners and connections."""
        for node in list(self._listeners):
            self._close(node)

    async def settled(self, answer: Answer) -> Any:
        """The answer, waited for where it is not there yet."""
        if not isinstance(answer, Later):
            return answer
        while (found := answer.poll()) is None:
            left_ms = answer.until_ms - self.clock.now_ms()
            if left_ms <= 0:
                return answer.expired()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(left_ms / 1000, _TICK_S * 5))
        return found

    async def deliver(self, writer: asyncio.StreamWriter, frame: bytes, head: int, fault: Fault | None) -> None:
        """Send a frame whose first `head` bytes are its header, as the fault has it."""
        writer.write(frame)
        await writer.drain()

    def with_error(self, api: Api, call: Call, number: int) -> bytes:
        """An answer all of whose error codes are this one."""
        raise NotImplementedError

    def unsupported_api_versions(self, node: int) -> bytes:
        """ApiVersions v0 with UNSUPPORTED_VERSION and the versions of ApiVersions itself, as Kafka has it (KIP-511)."""
        api = next(api for api in self.apis_of(node).values() if api.name == "ApiVersions")
        return struct.pack(">hihhh", 35, 1, api.key, *api.versions)

    def _accept(self, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = Connection(self, node, reader, writer)
            self._connections[node].add(connection)
            try:
                await connection.serve()
            finally:
                self._connections[node].discard(connection)
                writer.close()

        return accepted

    def _close(self, node: int) -> None:
        self._listeners.pop(node).close()
        for connection in list(self._connections.get(node, ())):
            connection.abort()
