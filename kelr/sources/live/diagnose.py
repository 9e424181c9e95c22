"""Why a bootstrap server cannot be talked to: asked with plain sockets, once the client has failed.

The client tells that a connection was closed; a person wants to know that the port speaks TLS. So the port is
tried in the ways that tell: does it accept at all, does it answer a Kafka request in the clear, does it do a TLS
handshake, does it speak HTTP.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from kelr.apart import Apart
from kelr.model.checkup import AddressState
from kelr.sources.ground import Ground
from kelr.sources.live.transport import NodeAddress

_CORRELATION = 0x6B656C72
_API_VERSIONS_V0 = struct.pack(">hhih4s", 18, 0, _CORRELATION, 4, b"kelr")
_ALERT, _HANDSHAKE = 0x15, 0x16
_MAX_PROBE_S = 3.0


class PortSpeaks(StrEnum):
    """What is behind a port, as far as one probe can tell."""

    NOTHING = "nothing"
    """It does not accept connections."""
    KAFKA_PLAINTEXT = "kafka-plaintext"
    TLS = "tls"
    HTTP = "http"
    SILENCE = "silence"
    """It accepts, and answers neither a Kafka request nor a TLS hello."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Probe:
    """What the port speaks, and the words of what was seen."""

    speaks: PortSpeaks
    detail: str = ""


def probe_port(address: NodeAddress, ground: Ground, *, timeout_s: float) -> Probe:
    """Find out what the port speaks, within `timeout_s` in all."""
    deadline = ground.steady_s() + min(timeout_s, _MAX_PROBE_S)
    try:
        first = _exchange_plain(address, ground, deadline)
    except TimeoutError:
        first = None
    except OSError as error:
        return Probe(PortSpeaks.NOTHING, error.strerror or str(error))
    known = _recognize(first or b"")
    if known is not None:
        return known
    if _does_tls(address, ground, deadline):
        return Probe(PortSpeaks.TLS, "a TLS handshake")
    if first is None:
        return Probe(PortSpeaks.SILENCE)
    shown = first[:24].decode("ascii", "backslashreplace")
    return Probe(PortSpeaks.OTHER, f"it answered {shown!r}" if first else "it closed the connection")


def _recognize(first: bytes) -> Probe | None:
    if first[:4] == b"HTTP":
        return Probe(PortSpeaks.HTTP, first.split(b"\r\n", 1)[0][:60].decode("ascii", "replace"))
    if len(first) >= 8 and struct.unpack(">i", first[4:8])[0] == _CORRELATION:
        return Probe(PortSpeaks.KAFKA_PLAINTEXT)
    if first[:1] and first[0] in {_ALERT, _HANDSHAKE} and first[1:2] == b"\x03":
        return Probe(PortSpeaks.TLS, "a TLS alert")
    return None


def _exchange_plain(address: NodeAddress, ground: Ground, deadline: float) -> bytes:
    """The first bytes that come back for an ApiVersions request in the clear; empty where the port just closes.

    Half of the time that is left is for this probe, so that the TLS one still gets its turn.

    Raises:
        TimeoutError: nothing came by then, and the port did not close.
    """
    half = ground.steady_s() + _left_s(ground, deadline) / 2
    with socket.create_connection((address.host, address.port), timeout=_left_s(ground, half)) as connection:
        connection.settimeout(_left_s(ground, half))
        connection.sendall(struct.pack(">i", len(_API_VERSIONS_V0)) + _API_VERSIONS_V0)
        held = b""
        try:
            # A server that drips bytes is not waited for longer than one that sends none.
            while len(held) < 8:
                if ground.steady_s() >= half:
                    raise TimeoutError
                connection.settimeout(_left_s(ground, half))
                piece = connection.recv(64)
                if not piece:
                    break
                held += piece
        except ConnectionError:
            pass
        except TimeoutError:
            if not held:
                raise
        return held


def _does_tls(address: NodeAddress, ground: Ground, deadline: float) -> bool:
    """Whether the port completes, or answers in any form, a TLS handshake; certificates are not judged here."""
    import ssl  # noqa: PLC0415 - a tenth of a short run, and most need no diagnosis

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((address.host, address.port), timeout=_left_s(ground, deadline)) as plain:
            # Python bounds the handshake as a whole by this, however slowly its bytes come.
            plain.settimeout(_left_s(ground, deadline))
            with context.wrap_socket(plain, server_hostname=address.host):
                return True
    except ssl.SSLError as error:
        # An alert means that the other side understood us, and wants, say, a client certificate.
        return "ALERT" in (error.reason or "")
    except (OSError, ValueError):
        return False


def _left_s(ground: Ground, deadline: float) -> float:
    return max(0.05, deadline - ground.steady_s())


def probe_addresses(addresses: Iterable[str]) -> Mapping[str, AddressState]:
    """Whether anybody accepts a connection at each ``HOST:PORT``; all of them at the same time."""
    asked = {address: Apart(lambda address=address: probe_address(address)) for address in addresses}  # type: ignore[misc]
    found = dict.fromkeys(asked, AddressState.SILENT)
    for address, answer in asked.items():
        with suppress(TimeoutError):  # its name is still being looked up
            found[address] = answer.result(2 * _MAX_PROBE_S)
    return found


def probe_address(address: str) -> AddressState:
    """Whether anybody accepts a connection at ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_MAX_PROBE_S):
            return AddressState.OPEN
    except ConnectionRefusedError:
        return AddressState.REFUSED
    except (OSError, ValueError, OverflowError):
        return AddressState.SILENT
