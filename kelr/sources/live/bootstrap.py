"""Reaching the cluster: one bootstrap server that answers is enough; if none does, the true cause is reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kelr.errors import ConnectError
from kelr.sources.connection import ConnectionSettings, address_text
from kelr.sources.ground import Ground
from kelr.sources.live.failures import GARBLED, REFUSED, login_error
from kelr.sources.live.requests import api_versions
from kelr.sources.live.transport import Failure, FailureKind, Message, NodeAddress, NodeId, Transport

if TYPE_CHECKING:
    from kelr.sources.live.diagnose import Probe

_NAME_FAILURES = ("unknown host", "looking up")
_DIAGNOSIS_SHARE = 0.25
"""The part of the timeout that is kept back for finding out why nobody answered."""


def reach(transport: Transport, settings: ConnectionSettings) -> tuple[NodeId, Message]:
    """The first bootstrap server that answers, and its ApiVersions answer.

    Raises:
        AuthenticationError: a broker answered and refused the credentials, or there is no Kerberos ticket for it.
        ConnectError: nobody answered within the timeout; says for the likeliest server why, and what to do.
    """
    started = transport.ground.steady_s()
    nodes = transport.bootstrap_nodes()
    patience_s = settings.timeout_s * (1 - _DIAGNOSIS_SHARE)
    transport.resolve(nodes.items(), timeout_s=patience_s / 2)
    left_s = max(0.1, patience_s - (transport.ground.steady_s() - started))
    result = transport.first_answer(list(nodes), api_versions, timeout_s=left_s)
    if isinstance(result, tuple):
        return result
    left_s = max(0.2, settings.timeout_s - (transport.ground.steady_s() - started))
    raise _error(result, nodes, settings, transport.ground, left_s)


def _error(
    failures: Mapping[NodeId, Failure],
    nodes: Mapping[NodeId, NodeAddress],
    settings: ConnectionSettings,
    ground: Ground,
    left_s: float,
) -> ConnectError:
    """The most telling failure in words: a refused password tells more than a closed port, that more than silence."""
    node = min(failures, key=lambda failed: (_telling(failures[failed]), str(nodes[failed])))
    failure, address = failures[node], nodes[node]
    server = address_text(address.host, address.port)
    others = len(nodes) - 1
    also = "" if not others else f" (and none of the {others} other servers answered)"
    if failure.kind is FailureKind.AUTHENTICATION:
        return login_error(server, failure, also=also)
    if failure.detail.startswith(_NAME_FAILURES):
        return ConnectError(
            f"{failure.detail}{also}", next_step="check the name in --bootstrap-server", code="unknown-host"
        )
    from kelr.sources.live.diagnose import probe_port  # noqa: PLC0415 - only where nobody answers

    probe = probe_port(address, ground, timeout_s=left_s)
    message, next_step, code = _explain(server, failure, probe, settings)
    why = "nothing listens there, or a firewall rejects it" if failure.detail == REFUSED else None
    return ConnectError(message + also, why=why, next_step=next_step, code=code)


def _telling(failure: Failure) -> int:
    """The less, the more it tells."""
    if failure.detail == REFUSED or failure.detail.startswith(_NAME_FAILURES):
        return 5
    order = (FailureKind.AUTHENTICATION, FailureKind.GARBLED, FailureKind.UNSUPPORTED, FailureKind.UNREACHABLE)
    return order.index(failure.kind) if failure.kind in order else 4


def _explain(server: str, failure: Failure, probe: Probe, settings: ConnectionSettings) -> tuple[str, str, str]:
    """(what happened, what to do, code), from what we asked for and what the port turned out to speak."""
    from kelr.sources.live.diagnose import PortSpeaks  # noqa: PLC0415 - as above

    if probe.speaks is PortSpeaks.NOTHING:
        refused = failure.detail == REFUSED
        return (
            f"{server} refused the connection" if refused else f"{server} accepts no connection: {failure.detail}",
            "check host and port, or name another broker with -b",
            "connection-refused",
        )
    if probe.speaks is PortSpeaks.HTTP:
        return (
            f"{server} is not a Kafka broker: it speaks HTTP ({probe.detail})",
            "give the port of a Kafka listener (9092 by default), not of a web page or metrics endpoint",
            "not-kafka",
        )
    if probe.speaks is PortSpeaks.TLS and not settings.uses_tls:
        wanted = "SASL_SSL" if settings.uses_sasl else "SSL"
        return (
            f"{server} speaks TLS, and kelr was told security.protocol={settings.security_protocol}",
            f"set security.protocol={wanted} in a client properties file and give it with --command-config",
            "tls-expected",
        )
    if probe.speaks is PortSpeaks.KAFKA_PLAINTEXT and settings.uses_tls:
        wanted = "SASL_PLAINTEXT" if settings.uses_sasl else "PLAINTEXT"
        return (
            f"{server} speaks Kafka without TLS, and kelr was told security.protocol={settings.security_protocol}",
            f"set security.protocol={wanted}, or give the port of the TLS listener",
            "plaintext-expected",
        )
    if probe.speaks is PortSpeaks.TLS and "SSL" in failure.detail and "ALERT" in failure.detail:
        return (
            f"{server} did not accept kelr's certificate, or lack of one: {failure.detail}",
            "if brokers want client certificates, set ssl.keystore.type=PEM and ssl.keystore.location",
            "client-certificate-refused",
        )
    if probe.speaks is PortSpeaks.TLS and "SSL" in failure.detail:
        return (
            f"no secure connection to {server}: {failure.detail}",
            "check the trusted certificates (ssl.truststore.location or ssl.ca.location, PEM) and the host name",
            "certificate-not-trusted",
        )
    return _explain_odd(server, failure, probe, settings)


def _explain_odd(server: str, failure: Failure, probe: Probe, settings: ConnectionSettings) -> tuple[str, str, str]:
    from kelr.sources.live.diagnose import PortSpeaks  # noqa: PLC0415 - as above

    # What came before, and was not understood, was an answer all the same, also where the probe got none.
    silent = probe.speaks is PortSpeaks.SILENCE and failure.kind is not FailureKind.GARBLED
    if silent or failure.kind is FailureKind.TIMED_OUT:
        return (
            f"{server} accepts the connection but did not answer within {settings.timeout_s:g} s",
            "check that this is a Kafka broker's port; if the broker is only slow, give a longer --timeout",
            "no-answer-in-time",
        )
    if probe.speaks in {PortSpeaks.KAFKA_PLAINTEXT, PortSpeaks.TLS} and settings.uses_sasl:
        return (
            f"{server} can be reached, but the SASL login did not come about: {failure.detail}",
            "check that the listener wants SASL, and with this sasl.mechanism",
            "login-failed",
        )
    if probe.speaks in {PortSpeaks.KAFKA_PLAINTEXT, PortSpeaks.TLS}:
        spoken, wanted = ("TLS", "SASL_SSL") if probe.speaks is PortSpeaks.TLS else ("Kafka", "SASL_PLAINTEXT")
        return (
            f"{server} speaks {spoken}, but hung up on the request: {failure.detail}",
            f"if the listener wants a login, set security.protocol={wanted} in a --command-config file",
            "login-expected",
        )
    return (
        f"{server} does not speak Kafka: {failure.detail.removeprefix(GARBLED)}"
        + (f"; {probe.detail}" if probe.detail else ""),
        "Give the port of a Kafka listener (9092 by default).",
        "not-kafka",
    )
