"""kafka-python's connection manager, with kelr's own way of opening a connection.

kafka-python's own looks names up inside the event loop, bounds no TLS handshake, leaves the socket of an attempt that
failed to the garbage collector, and shuts a node out that failed, for up to half a minute. All of kafka-python is
imported here at the top: import this module where it is used.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

AddressInfo = tuple[Any, ...]
"""What socket.getaddrinfo gives for one address."""

_IN_PROGRESS = frozenset({"EINPROGRESS", "EWOULDBLOCK", "EAGAIN"})


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
        for family, kind, protocol, _, address in self._addresses.get(node.host, ()):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setblocking(False)
                for option in self.config["socket_options"]:
                    sock.setsockopt(*option)
                await self._connect_socket(sock, (address[0], node.port, *address[2:]), timeout_at)
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


class _KeepsLastWords:
    """Hands on what came right before the other side hung up.

    kafka-python's transports drop it, and with it a broker's words about refused credentials, where answer and end
    arrive in one piece. The end is seen again by the next read.
    """

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, failure = super()._sock_recv()  # type: ignore[misc]  # from the transport that this is mixed into
        return received, None if received else failure


class _Connected(_KeepsLastWords, KafkaTCPTransport):  # type: ignore[misc]  # kafka-python has no types
    """A transport over a connected socket."""


class _ConnectedTls(_KeepsLastWords, KafkaSSLTransport):  # type: ignore[misc]  # kafka-python has no types
    """A TLS transport over a socket whose handshake is done; kafka-python's would wrap the socket itself."""

    def __init__(self, net: NetworkSelector, sock: ssl.SSLSocket, host: str) -> None:
        KafkaTCPTransport.__init__(self, net, sock, host=host)


def _error_name(code: int) -> str:
    """``ECONNREFUSED`` for 111; the number where Python has no name for it."""
    return errno.errorcode.get(code, str(code))
