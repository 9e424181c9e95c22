"""kafka-python's connection manager, with kelr's own way of opening a connection.

kafka-python's own looks names up inside the event loop, bounds no TLS handshake, leaves the socket of an attempt that
failed to the garbage collector, shuts a node out that failed, for up to half a minute, makes room for whatever size an
answer claims, and lets a reader die of bytes that it cannot decode. All of kafka-python is imported here at the top:
import this module where it is used.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import errors
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.parser import KafkaProtocol

from kelr.interrupts import held_back
from kelr.sources.live.refusals import NO_TICKET
from kelr.sources.live.strict import MalformedError, decoded, header_of
from kelr.sources.live.transport import Message
from kelr.sources.security.kerberos import failure_words

AddressInfo = tuple[Any, ...]
"""What socket.getaddrinfo gives for one address."""

_IN_PROGRESS = frozenset({"EINPROGRESS", "EWOULDBLOCK", "EAGAIN"})
_PIECE_BYTES = 64 * 1024
"""Read at once: more than a TLS record, so that none of one is left where no selector sees it."""
_BYTES_A_ROUND = 16 * _PIECE_BYTES
"""Read before anything else gets its turn, however fast the other side sends."""
_SIZE_BYTES = 4


class EventLoop(NetworkSelector):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python's event loop, which logs what is raised in a task, Ctrl-C too, and goes on: so none is raised
    there."""

    __str__ = object.__str__  # kafka-python's fails once it is closed

    def _poll_once(self, timeout: float | None = None) -> None:
        with held_back(self.wakeup):
            super()._poll_once(timeout)


class ConnectionManager(KafkaConnectionManager):  # type: ignore[misc]  # kafka-python has no types
    """The manager, connecting to addresses that were looked up beforehand.

    Args:
        addresses: host to its addresses, filled by whoever looks names up before a node is asked.
    """

    def __init__(self, net: NetworkSelector, addresses: Mapping[str, Sequence[AddressInfo]], **config: Any) -> None:
        self._addresses = addresses
        super().__init__(net, **config)

    def update_backoff(self, node_id: Any) -> float:  # noqa: ARG002 - kafka-python's signature
        """No wait, in milliseconds: a node that failed is tried again as soon as it is asked again.

        kafka-python waits twice as long after each failure, up to 30 s (reconnect.backoff.max.ms), for a client that
        asks for ever. kelr asks a few times, with pauses of its own where it repeats a question, and each reading is
        to tell how the node is at that moment: a dead one must not hold up the next reading, and one that has come
        back must not be taken for dead.
        """
        return 0.0

    def get_connection(self, node_id: Any, **kwargs: Any) -> Any:
        """The connection to this node, made where there is none."""
        connection = super().get_connection(node_id, **kwargs)
        # kafka-python names the class outright; nothing of a new connection has run yet.
        connection.__class__ = _Connection
        return connection

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """A connected transport, its TLS handshake done, by `timeout_at` (monotonic seconds)."""
        sock = await self._open_socket(node, timeout_at)
        try:
            if self.ssl_enabled:
                sock = self.config["ssl_context"].wrap_socket(
                    sock, server_hostname=node.host.rstrip("."), do_handshake_on_connect=False
                )
                await self._shake_hands(sock, timeout_at)
                return _ConnectedTls(self._net, sock, host=node.host)
            return _Connected(self._net, sock, host=node.host)
        except BaseException:
            sock.close()
            raise

    async def _open_socket(self, node: Any, timeout_at: float | None) -> socket.socket:
        """A connection to the first of the host's addresses that takes one."""
        failure: Exception = errors.KafkaConnectionError(f"unknown host {node.host}")
        infos = self._addresses.get(node.host, ())
        for left, (family, kind, protocol, _, address) in zip(range(len(infos), 0, -1), infos, strict=True):
            try:
                # A machine without IPv6 has no such socket, although names may have such addresses.
                sock = socket.socket(family, kind, protocol)
            except OSError as error:
                failure = error
                continue
            try:
                sock.setblocking(False)
                for option in self.config["socket_options"]:
                    sock.setsockopt(*option)
                await self._connect_socket(sock, (address[0], node.port, *address[2:]), _share(timeout_at, left))
                return sock
            except (errors.KafkaError, OSError) as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
        raise failure

    async def _connect_socket(self, sock: socket.socket, address: tuple[Any, ...], timeout_at: float | None) -> None:
        code = sock.connect_ex(address)
        if code and _error_name(code) in _IN_PROGRESS:
            await self._net.wait_write(sock, timeout_at=timeout_at)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise errors.KafkaConnectionError(_error_name(code))

    async def _shake_hands(self, sock: ssl.SSLSocket, timeout_at: float | None) -> None:
        while True:
            try:
                sock.do_handshake()
                return
            except ssl.SSLWantReadError:
                await self._net.wait_read(sock, timeout_at=timeout_at)
            except ssl.SSLWantWriteError:
                await self._net.wait_write(sock, timeout_at=timeout_at)
            except (ssl.SSLError, OSError) as error:
                raise errors.KafkaConnectionError(f"TLS handshake failed: {error}") from error


class _Connection(KafkaConnection):  # type: ignore[misc]  # kafka-python has no types
    """A connection that takes answers strictly, and ends when it cannot."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.parser = _StrictParser(
            client_id=self.config["client_id"], receive_message_max_bytes=self.config["receive_message_max_bytes"]
        )

    def data_received(self, data: bytes) -> None:
        try:
            super().data_received(data)
        except errors.KafkaProtocolError:
            raise
        except Exception as error:
            # Anything else ends the reading task alone: requests would wait for their timeouts, and tell of silence.
            raise errors.KafkaProtocolError(f"what came back makes no sense ({error})") from error

    async def _sasl_authenticate(self, timeout_at: float | None = None) -> None:
        """Log in; what GSSAPI says is an error of the login, and of nothing that the broker sent."""
        try:
            await super()._sasl_authenticate(timeout_at)
        except errors.KafkaError:
            raise
        except Exception as error:
            words = failure_words(error)
            if words is None:
                raise
            raise errors.SaslAuthenticationFailedError(f"{NO_TICKET}: {words}") from error

    def _maybe_throttle(self, response: Message) -> None:
        """Nothing: the broker itself leaves a throttled client's next request waiting (KIP-219).

        kafka-python refuses to send for as long as the answer says, be it a month, and kelr would take the broker for
        unreachable.
        """


class _StrictParser(KafkaProtocol):  # type: ignore[misc]  # kafka-python has no types
    """Answers out of the bytes of one connection: memory for what has come, and strict decoding."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        self._held = bytearray()

    def receive_bytes(self, data: bytes) -> list[tuple[int, Message]]:
        """The answers that are whole now, each with its correlation id.

        Raises:
            KafkaProtocolError: what came is no answer.
        """
        self._held += data
        answers = []
        while len(self._held) >= _SIZE_BYTES:
            size = int.from_bytes(self._held[:_SIZE_BYTES], "big", signed=True)
            self._validate_frame_size(size)
            if len(self._held) < _SIZE_BYTES + size:
                break
            frame = bytes(memoryview(self._held)[_SIZE_BYTES : _SIZE_BYTES + size])
            del self._held[: _SIZE_BYTES + size]
            answers.append(self._answer(frame))
        return answers

    def _answer(self, frame: bytes) -> tuple[int, Message]:
        if not self.in_flight_requests:
            raise errors.CorrelationIdError("an answer to nothing that was asked")
        asked = self.in_flight_requests[0]
        kind = asked.get_response_class()
        if not (isinstance(kind, type) and issubclass(kind, ApiMessage)):  # bare SASL tokens have no schema
            held = KafkaBytes(len(frame))
            held[:] = frame
            whole: tuple[int, Message] = self._process_response(held)
            return whole
        self.in_flight_requests.popleft()
        try:
            correlation, at = header_of(kind, memoryview(frame), asked.request_api_version)
            if correlation != asked.correlation_id:
                raise errors.CorrelationIdError("the answer to another request")
            return correlation, decoded(kind, memoryview(frame)[at:], asked.request_api_version)
        except MalformedError as error:
            raise errors.KafkaProtocolError(f"{kind[None].__name__}: {error}") from error  # type: ignore[index]  # its metaclass


class _ReadsInTurns:
    """Reads a bounded piece at once, and hands on what came right before the other side hung up.

    kafka-python's transports read for as long as there is something, and drop what came before an end, and with it a
    broker's words about refused credentials, where answer and end arrive in one piece. The end is seen again by the
    next read.
    """

    _sock: socket.socket
    _write_buffer: Any

    def close(self) -> None:
        """At once: kafka-python's waits until what is to be written has gone out, and a loop that has ended sends
        nothing, so that the socket would stay open."""
        self._write_buffer.clear()
        super().close()  # type: ignore[misc]  # of the transport that this is mixed into

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received = bytearray()
        try:
            while len(received) < _BYTES_A_ROUND:
                piece = self._sock.recv(_PIECE_BYTES)
                if not piece:
                    failure = None if received else errors.KafkaConnectionError("socket disconnected")
                    return bytes(received), failure
                received += piece
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except Exception as error:
            return bytes(received), None if received else errors.KafkaConnectionError(error)
        return bytes(received), None


class _Connected(_ReadsInTurns, KafkaTCPTransport):  # type: ignore[misc]  # kafka-python has no types
    """A transport over a connected socket."""


class _ConnectedTls(_ReadsInTurns, KafkaSSLTransport):  # type: ignore[misc]  # kafka-python has no types
    """A TLS transport over a socket whose handshake is done; kafka-python's would wrap the socket itself."""

    def __init__(self, net: NetworkSelector, sock: ssl.SSLSocket, host: str) -> None:
        KafkaTCPTransport.__init__(self, net, sock, host=host)


def _share(timeout_at: float | None, left: int) -> float | None:
    """Until when the first of so many addresses may take: one from which nothing comes back leaves time for others."""
    now = time.monotonic()
    return None if timeout_at is None else now + (timeout_at - now) / left


def _error_name(code: int) -> str:
    """``ECONNREFUSED`` for 111; the number where Python has no name for it."""
    return errno.errorcode.get(code, str(code))
