"""HTTP servers on this machine that mean harm."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def hostile(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on this machine that does this with each connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65_536)
                behave(connection)
            except OSError:
                pass

    threading.Thread(target=serve, daemon=True).start()
    with listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/metrics"


def dripping_body(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)


def dripping_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        connection.sendall(b"x")
        time.sleep(0.02)
