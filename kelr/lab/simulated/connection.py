"""One client's connection to one node: frames in, frames out, and what goes wrong with them on purpose.

Requests of one connection are answered one after the other, as Kafka does it: the next is read when the last is
answered.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kelr.lab.simulated.api import Api, Call, Later, Message
from kelr.lab.simulated.faults import CARRIED_OUT, Fault, FaultKind, noise
from kelr.protocol.codec import Field, MalformedError, Struct
from kelr.protocol.error_codes import error_name
from kelr.protocol.frames import answer_head, read_request

if TYPE_CHECKING:
    from kelr.lab.simulated.server import Server

# An answer whose every error code is the same: what a node says that will not do what it was asked.
#
# It is made from the schema of the response. Topics and partitions that carry an error of their own are those of the
# request, as in Kafka's `getErrorResponse`.

_TYPES: Mapping[type, str] = {int: "int32", str: "string"}


def failed_answer(response: type[Message], request: Message, version: int, number: int) -> Message | None:
    """The answer to `request` with this error number wherever it has room for one; None where it has none, because
    the request names nothing (all topics) and the answer has no error code of its own."""
    filler = _Filler(version, number)
    message = filler.filled(response, request)
    return message if filler.errors else None


def with_errors(message: Struct, number: int, version: int) -> bool:
    """Set every error code of an answer that is there; says whether it has any."""
    found = False
    for field in _fields(type(message), version):
        value = getattr(message, field.name)
        if _is_code(field):
            setattr(message, field.name, number)
            found = True
        elif _is_message(field):
            setattr(message, field.name, error_name(number))
        elif field.struct is not None and value is not None:
            for one in value if field.is_array else (value,):
                found = with_errors(one, number, version) or found
    return found


class _Filler:
    """Fills a response; counts the error codes that it set."""

    def __init__(self, version: int, number: int) -> None:
        self._version = version
        self._number = number
        self.errors = 0

    def filled(self, kind: type[Struct], asked: Any) -> Struct:
        """A struct of the response; `asked` is what it answers: a struct of the request, or one number or name."""
        values: dict[str, Any] = {}
        for field in _fields(kind, self._version):
            if _is_code(field):
                values[field.name] = self._number
                self.errors += 1
            elif _is_message(field):
                values[field.name] = error_name(self._number)
            elif field.struct is not None and field.is_array:
                values[field.name] = self._elements(field.struct, field, asked)
            elif field.struct is not None:
                if field.tag is None and not _in(field.nullable, self._version):  # else such as the cursor of a page
                    values[field.name] = self.filled(field.struct, asked)
            elif (copied := _same(field, kind, asked, self._version)) is not None:
                values[field.name] = copied
        return kind(**values)

    def _elements(self, kind: type[Struct], field: Field, asked: Any) -> list[Struct]:
        if not _holds_code(kind, self._version):
            return []
        return [self.filled(kind, one) for one in _counterpart(field, asked, self._version)]


def _fields(kind: type[Struct], version: int) -> list[Field]:
    return [field for field in kind.FIELDS.values() if _in(field.versions, version)]


def _in(span: tuple[int, int], version: int) -> bool:
    return span[0] <= version <= span[1]


def _is_code(field: Field) -> bool:
    return field.kind == "int16" and (field.name == "error_code" or field.name.endswith("_error_code"))


def _is_message(field: Field) -> bool:
    return field.name == "error_message"


def _holds_code(kind: type[Struct], version: int) -> bool:
    return any(
        _is_code(one) or (one.is_array and one.struct is not None and _holds_code(one.struct, version))
        for one in _fields(kind, version)
    )


def _counterpart(field: Field, asked: Any, version: int) -> Sequence[Any]:
    """The elements of the request that this array of the answer has one element each for."""
    if not isinstance(asked, Struct):
        return ()
    arrays = [one for one in _fields(type(asked), version) if one.is_array]
    same = [one for one in arrays if one.name == field.name] or arrays
    return () if not same else getattr(asked, same[0].name) or ()


def _same(field: Field, kind: type[Struct], asked: Any, version: int) -> Any:
    """The value of the request that this field repeats: of the same name, kind of thing, or place."""
    if not isinstance(asked, Struct):
        return asked if field is _first_of_type(kind, type(asked), version) else None
    fields = [one for one in _fields(type(asked), version) if (one.kind, one.is_array) == (field.kind, field.is_array)]
    for fits in (_same_name, _same_entity, _both_partitions):
        for one in fields:
            if fits(one, field):
                return getattr(asked, one.name)
    return None


def _first_of_type(kind: type[Struct], wanted: type, version: int) -> Field | None:
    name = _TYPES.get(wanted, "uuid")
    return next((one for one in _fields(kind, version) if one.kind == name and not one.is_array), None)


def _same_name(one: Field, other: Field) -> bool:
    return one.name == other.name


def _same_entity(one: Field, other: Field) -> bool:
    return one.entity is not None and one.entity == other.entity


def _both_partitions(one: Field, other: Field) -> bool:
    names = {"partition", "partition_index", "partition_id", "index"}
    return one.name in names and other.name in names


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
            header = answer_head(api.response, version if low <= version <= high else 0, correlation)
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
            request = read_request(api.request, frame, version)
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
        if getattr(call.request, "acks", None) == 0:
            raise EndError  # as Kafka tells a producer that something is wrong
        answer = failed_answer(api.response, call.request, call.version, number)
        if answer is None and api.name in _ASK_FOR_EVERYTHING and number != UNKNOWN_SERVER_ERROR:
            answer = api.handle(call)
            if isinstance(answer, bytes):
                answer = api.response.decode(answer, call.version)
            answer = answer if isinstance(answer, Struct) and with_errors(answer, number, call.version) else None
        if answer is None:
            raise EndError
        return _encoded(answer, call.version)

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
    body: bytes = message.encode(version)
    return body


def _unsupported_api_versions(api: Api) -> bytes:
    """ApiVersions v0 with UNSUPPORTED_VERSION and the versions of ApiVersions itself, as Kafka has it (KIP-511)."""
    return struct.pack(">hihhh", UNSUPPORTED_VERSION, 1, api.key, *api.versions)
