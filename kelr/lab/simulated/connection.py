"""One client's connection to one node: frames in, frames out, and what goes wrong with them on purpose.

Requests of one connection are answered one after the other, as Kafka does it: the next is read when the last is
answered.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kelr.lab.simulated.api import Api, Call, Later, Message
from kelr.lab.simulated.failing import failed_answer, with_errors
from kelr.lab.simulated.faults import CARRIED_OUT, Fault, FaultKind, noise
from kelr.sources.live.strict import MalformedError, decoded_request

if TYPE_CHECKING:
    from kelr.lab.simulated.server import Server

MOST_BYTES = 100 * 1024 * 1024
"""socket.request.max.bytes: a longer request ends the connection."""
UNKNOWN_SERVER_ERROR = -1
UNSUPPORTED_VERSION = 35
NOT_CONTROLLER = 41
NODE_CLIENT = "kelr-simulated-node-"
_HEADER = struct.Struct(">hhih")
_PIECE_MS = 50


def node_client_id(node: int) -> str:
    """By this client id one node of the cluster knows another: what it asks does not come through severed links."""
    return f"{NODE_CLIENT}{node}"


def asking_node(client_id: str) -> int | None:
    """The node that uses this client id; None for anybody else."""
    number = client_id.removeprefix(NODE_CLIENT)
    return int(number) if number != client_id and number.isdecimal() else None


class EndError(Exception):
    """This connection is over."""


class Connection:
    """Serves one client at one node.

    Args:
        idle_s: connections.max.idle.ms: after so many seconds without a whole request the connection ends.
    """

    def __init__(
        self, server: Server, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, idle_s: float
    ) -> None:
        self._server = server
        self._node = node
        self._reader = reader
        self._writer = writer
        self._idle_s = idle_s

    async def serve(self) -> None:
        """Answer requests until the connection ends, or something comes that is no request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, EndError):
            while True:
                async with asyncio.timeout(self._idle_s):
                    (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                    if not _HEADER.size <= size <= MOST_BYTES:
                        return
                    frame = await self._reader.readexactly(size)
                await self._going_on()
                await self._answer(frame)

    def abort(self) -> None:
        """End it at once, as when the process at this end dies."""
        self._writer.transport.abort()

    async def _answer(self, frame: bytes) -> None:
        key, version, correlation, length = _HEADER.unpack_from(frame)
        sender = frame[_HEADER.size : _HEADER.size + max(length, 0)].decode("utf-8", "replace")
        asker = asking_node(sender)
        if asker is not None and not self._server.world.running.linked(asker, self._node):
            await self._mute()
        api = self._server.apis_of(self._node).get(key)
        if api is None:
            raise EndError
        fault = self._server.faults.strike(self._node, api.name)
        body = await self._body(api, frame, version, sender, fault)
        if body is not None:
            low, high = api.versions
            header = self._response_header(api, correlation, version if low <= version <= high else 0)
            await self._deliver(header, body, fault)

    async def _body(self, api: Api, frame: bytes, version: int, sender: str, fault: Fault | None) -> bytes | None:
        if fault is not None and fault.kind is FaultKind.CLOSE:
            raise EndError
        if fault is not None and fault.kind is FaultKind.LOSE:
            await self._mute()
        low, high = api.versions
        if not low <= version <= high:
            if api.name == "ApiVersions":
                return _unsupported_api_versions(api)
            raise EndError  # as Kafka does: the client was told which versions there are
        try:
            request = decoded_request(api.request, frame, version)
        except MalformedError:
            raise EndError from None
        call = Call(self._server.world, self._node, request, version, sender)
        world = self._server.world
        if self._node in world.controllers and self._node != world.controller and api.name not in _OF_ANY_CONTROLLER:
            return self._failed(api, call, NOT_CONTROLLER)
        if fault is None or fault.kind in CARRIED_OUT:
            return await self._carried_out(api, call)
        return self._failed(api, call, fault.amount)

    async def _carried_out(self, api: Api, call: Call) -> bytes | None:
        """What the handler answers; where it breaks, what Kafka says then. `Server.failures` keeps why."""
        self._server.time_passes()
        try:
            answer = await self._settled(api.handle(call))
            encoded = answer if answer is None or isinstance(answer, bytes) else _encoded(answer, call.version)
        except (ConnectionError, EndError):  # the client is gone, which breaks no handler
            raise
        except Exception as error:
            self._server.broke(error)
            return self._failed(api, call, UNKNOWN_SERVER_ERROR)
        finally:
            self._server.look()
        return encoded

    async def _settled(self, answer: Message | bytes | Later | None) -> Message | bytes | None:
        """The answer, waited for where it is not there yet."""
        if not isinstance(answer, Later):
            return answer
        self._server.look()
        while (found := answer.poll()) is None:
            if self._server.clock.now_ms() >= answer.until_ms:
                return answer.expired()
            await self._something_new(answer.until_ms)
        return found

    def _failed(self, api: Api, call: Call, number: int) -> bytes | None:
        """An answer all of whose error codes are this one; the connection ends where the answer has no room for it."""
        if not call.request.expect_response():
            raise EndError  # acks=0: as Kafka tells a producer that something is wrong
        answer = failed_answer(api.response, call.request, call.version, number)
        if answer is None and api.name in _ASK_FOR_EVERYTHING and number != UNKNOWN_SERVER_ERROR:
            answer = api.handle(call)
            if isinstance(answer, bytes):
                answer = api.response.decode(answer, version=call.version)
                answer._header = None  # kafka-python forgets it where it decodes, and asks for it where it encodes
            answer = answer if with_errors(answer, number) else None
        if answer is None:
            raise EndError
        return _encoded(answer, call.version)

    def _response_header(self, api: Api, correlation: int, version: int) -> bytes:
        # ApiVersions keeps the first header in all versions: its reader cannot know yet which one was taken (KIP-511).
        flexible = api.response.flexible_version_q(version) and api.name != "ApiVersions"
        return struct.pack(">i", correlation) + (b"\x00" if flexible else b"")

    async def _deliver(self, header: bytes, body: bytes, fault: Fault | None) -> None:
        """Send an answer, as the fault has it."""
        frame = struct.pack(">i", len(header) + len(body)) + header + body
        if fault is None:
            await self._send(frame)
        else:
            await _DELIVERIES[fault.kind](self, frame, 4 + len(header), fault.amount)

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def _delayed(self, frame: bytes, _head: int, amount: int) -> None:
        await self._until(self._server.clock.now_ms() + amount)
        await self._send(frame)

    async def _dropped(self, _frame: bytes, _head: int, _amount: int) -> None:
        await self._mute()

    async def _garbled(self, frame: bytes, head: int, amount: int) -> None:
        await self._send(frame[:head] + noise(amount, len(frame) - head))

    async def _truncated(self, frame: bytes, _head: int, amount: int) -> None:
        await self._send(frame[:amount])
        raise EndError

    async def _slow(self, frame: bytes, _head: int, amount: int) -> None:
        began, sent = self._server.clock.now_ms(), 0
        while sent < len(frame):
            piece = max(1, amount * _PIECE_MS // 1000)
            await self._until(began + (sent + piece) * 1000 // amount)
            await self._send(frame[sent : sent + piece])
            sent += piece

    async def _whole(self, frame: bytes, _head: int, _amount: int) -> None:
        await self._send(frame)

    async def _going_on(self) -> None:
        """Wait while this end's process stands still."""
        while self._node in self._server.world.running.paused:
            await self._something_new(None)

    async def _until(self, at_ms: int) -> None:
        while self._server.clock.now_ms() < at_ms:
            await self._something_new(at_ms)

    async def _something_new(self, until_ms: int | None) -> None:
        """Wait until something happened in the world, it is so late, or the client is gone, which ends everything."""
        if self._reader.at_eof():
            raise EndError
        await self._server.something_new(until_ms)

    async def _mute(self) -> None:
        """Say nothing any more, and read on, so that the client can send what it likes."""
        while await self._reader.read(1 << 16):
            pass
        raise EndError


_OF_ANY_CONTROLLER = frozenset({"ApiVersions", "DescribeCluster", "DescribeConfigs", "DescribeQuorum", "Fetch"})
"""What a controller answers by itself, or says why it does not, that is not the active one."""

_ASK_FOR_EVERYTHING = frozenset({"Metadata", "DescribeTopicPartitions"})
"""Without topics they mean all of them, and only topics carry errors: an answer without any would say that there are
none. They change nothing, so that their true answer can lend its topics."""

_DELIVERIES: dict[FaultKind, Callable[[Connection, bytes, int, int], Coroutine[Any, Any, None]]] = {
    FaultKind.DELAY: Connection._delayed,
    FaultKind.DROP: Connection._dropped,
    FaultKind.GARBLE: Connection._garbled,
    FaultKind.TRUNCATE: Connection._truncated,
    FaultKind.SLOW: Connection._slow,
    FaultKind.ERROR: Connection._whole,
}


def _encoded(message: Message, version: int) -> bytes:
    return bytes(message.encode(version=version))


def _unsupported_api_versions(api: Api) -> bytes:
    """ApiVersions v0 with UNSUPPORTED_VERSION and the versions of ApiVersions itself, as Kafka has it (KIP-511)."""
    return struct.pack(">hihhh", UNSUPPORTED_VERSION, 1, api.key, *api.versions)
