"""A session on a Spark Connect server.

PySpark's client asks a server that does not answer again and again, for ten minutes and without a word; so what is at
the address is looked at first.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from kelr.errors import ConnectError, UnsupportedError, UsageError
from kelr.sources.connection import address_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_PORT = 15002
"""Of Spark (spark.connect.grpc.binding.port)."""
_REACHED_WITHIN_S = 10.0


def connected(remote: str, settings: Mapping[str, str]) -> SparkSession:
    """A session of the server at ``sc://HOST[:PORT][/;NAME=VALUE...]``, with these settings.

    Raises:
        UsageError: that is no such address.
        ConnectError: nothing answers there, or it refuses.
        UnsupportedError: what PySpark's client needs is not installed.
    """
    host, port, tls = _address(remote)
    address = address_text(host, port)
    try:
        with socket.create_connection((host, port), timeout=_REACHED_WITHIN_S):
            pass
    except OSError as error:
        raise _silent(remote, f"{address} cannot be reached: {error.strerror or error}") from error
    try:
        import grpc  # noqa: PLC0415 - of an extra of PySpark's
        from pyspark.sql import SparkSession  # noqa: PLC0415 - of an extra, and slow to load

        _check_speaks(grpc, remote, address, tls=tls)
        session = SparkSession.builder.remote(remote).getOrCreate()
        for name, value in settings.items():
            session.conf.set(name, value)
    except ImportError as error:
        raise UnsupportedError(
            f"Spark Connect needs more than is installed: {error}",
            next_step="install it with: pip install 'pyspark[connect]'",
        ) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in {"grpc", "pyspark"}:
            raise
        raise ConnectError(f"{remote}: Spark Connect does not answer: {error}") from error
    return session


def _address(remote: str) -> tuple[str, int, bool]:
    """Host, port, and whether it is TLS: asked for, or a token is sent to another machine (`DefaultChannelBuilder`)."""
    parts = urlsplit(remote)
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = 0
    if parts.scheme != "sc" or not parts.hostname or not port:
        raise UsageError(f"{remote!r} is no Spark Connect server", next_step="give --remote sc://HOST:PORT")
    named = dict(parse_qsl(parts.path.strip("/;"), separator=";"))
    sends_token = "token" in named and parts.hostname != "localhost"
    return parts.hostname, port, named.get("use_ssl", "").lower() == "true" or sends_token


def _check_speaks(grpc: Any, remote: str, address: str, *, tls: bool) -> None:
    """Raises ConnectError where what listens there does not greet as a gRPC server does."""
    with (
        grpc.secure_channel(address, grpc.ssl_channel_credentials()) if tls else grpc.insecure_channel(address)
    ) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_REACHED_WITHIN_S)
        except grpc.FutureTimeoutError as error:
            raise _silent(remote, f"what listens at {address} does not speak gRPC") from error


def _silent(remote: str, why: str) -> ConnectError:
    return ConnectError(
        f"{remote}: no Spark Connect server answers: {why}", next_step="check the address, and that the server runs"
    )
