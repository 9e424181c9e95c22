"""Ask one broker of the lab one question: exactly that broker, over a connection of its own.

The clients that applications use choose the broker themselves; to know whether *this* broker is up, or what *this*
broker believes, the lab has to ask it.
"""

from __future__ import annotations

import socket
from typing import Any

from kelr.lab.nodes import HOST

CLIENT_ID = "kelr-lab"


def ask(port: int, request: Any, *, timeout_s: float = 5.0) -> Any:
    """Send a kafka-python request (with its version set) and return the decoded response.

    Raises:
        OSError: nobody listens, the connection broke, or the answer did not come in time (TimeoutError).
    """
    from kafka.protocol.parser import KafkaProtocol  # noqa: PLC0415

    protocol = KafkaProtocol(client_id=CLIENT_ID)
    protocol.send_request(request)
    with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
        connection.sendall(protocol.send_bytes())
        while True:
            data = connection.recv(1 << 16)
            if not data:
                raise ConnectionError(f"the broker on port {port} closed the connection")
            for _correlation_id, response in protocol.receive_bytes(data):
                return response
