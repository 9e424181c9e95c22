"""GSSAPI (Kerberos): kelr does it with the package `gssapi`; wheels of librdkafka come without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from kelr.apart import within
from kelr.errors import AuthenticationError, ConnectError, KelrError, UnsupportedError
from kelr.sources.jaas import KEY, jaas_options
from kelr.sources.properties import PropertyReader

SERVICE = "sasl.kerberos.service.name"
LONGEST_S = 10.0
"""How long a KDC may take, where the timeout does not say less."""
_NO_KDC = "check the realm's KDCs in krb5.conf (KRB5_CONFIG names another), and that this machine may reach them"
_KRB5_ERRORS = 0x96C73A00
"""Where libkrb5's errors begin (krb5_err.et), as 32 bits."""
_UNKNOWN_SERVICE = 7
"""KRB5KDC_ERR_S_PRINCIPAL_UNKNOWN"""
_CLOCKS_APART = 37
"""KRB5KRB_AP_ERR_SKEW"""
_KDC_SILENT = frozenset({154, 156})
"""KRB5_REALM_UNKNOWN (no KDC is known), KRB5_KDC_UNREACH"""
_OF_ONE_HOST = _KDC_SILENT | {_UNKNOWN_SERVICE}
"""What may be otherwise for another host, which may be in another realm."""


def kerberos_service(reader: PropertyReader) -> str:
    """The service's name in the brokers' principals, such as ``kafka``.

    A client's keys are not read: the ticket of the credentials cache is used (`kinit`).

    Raises:
        BadInputError: no service name is given, or `sasl.jaas.config` wants a key table.
        UnsupportedError: there is no package `gssapi`.
    """
    options = jaas_options(reader, "GSSAPI")
    service = reader.text(SERVICE) or options.get("serviceName")
    if not service:
        raise reader.error(
            SERVICE, f"{SERVICE} is not set, nor serviceName in {KEY}", next_step=f"write {SERVICE}=kafka"
        )
    if options.get("useKeyTab", "false").lower() == "true":
        table, principal = options.get("keyTab", "KEYTAB"), options.get("principal", "PRINCIPAL")
        raise reader.error(
            KEY,
            f"{KEY} wants the key table {table}, and kelr takes tickets of the credentials cache alone",
            next_step=f"run kinit -kt {table} {principal}, and write useTicketCache=true in place of useKeyTab=true",
        )
    if find_spec("gssapi") is None:
        raise UnsupportedError(
            "GSSAPI (Kerberos) needs the Python package gssapi, which is not installed",
            next_step="pip install gssapi (it needs the system's Kerberos libraries), or log in with another mechanism",
            code="kerberos-package-missing",
        )
    return service


def get_ticket(service: str, hosts: Sequence[str], *, timeout_s: float) -> None:
    """See to it that there is a ticket for one of these brokers; it stays in the credentials cache for the client.

    libkrb5 waits for a silent KDC for most of a minute. So it is asked here first, in a thread that nobody waits for
    longer than `timeout_s`, up to `LONGEST_S`, before any broker waits for the login.

    Args:
        hosts: as the client will name them: the service's principal has the host's name in it.

    Raises:
        AuthenticationError: there is no ticket to be had; says why, and what to do.
        ConnectError: no KDC answers.
        UnsupportedError: the package `gssapi` does not load.
    """
    try:
        package = import_module("gssapi")  # only for this login: it loads the system's Kerberos libraries
    except (ImportError, OSError) as error:
        raise UnsupportedError(
            f"GSSAPI (Kerberos) needs the Python package gssapi, and it does not load: {error}",
            next_step="install the system's Kerberos libraries (libkrb5-3 or krb5-libs), or log in another way",
            code="kerberos-package-missing",
        ) from error
    wait_s = min(timeout_s, LONGEST_S)
    try:
        failure = within(wait_s, lambda: _asked(package, service, tuple(dict.fromkeys(hosts))))
    except TimeoutError:
        raise ConnectError(
            f"no KDC answered within {wait_s:g} s, so that there is no Kerberos ticket for {service}/{hosts[0]}",
            next_step=_NO_KDC,
            code="kdc-not-reached",
        ) from None
    if failure is not None:
        raise _error(service, failure)


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why there is no ticket for a host: libkrb5's number, and its words, which it tells only in the thread that asked.

    The number is 0 where there is none.
    """

    host: str
    minor: int
    words: str


def _asked(gssapi: Any, service: str, hosts: Sequence[str]) -> _Refusal | None:
    """None where there is a ticket for one of the hosts, else why there is none."""
    try:
        return _refusal(gssapi, service, hosts)
    except Exception as error:  # of the package itself
        return _Refusal(hosts[0], 0, f"{type(error).__name__}: {error}")


def _refusal(gssapi: Any, service: str, hosts: Sequence[str]) -> _Refusal | None:
    """What is wrong for every host, else what is wrong with the first; None where one has a ticket."""
    first: _Refusal | None = None
    for host in hosts:
        try:
            asked = gssapi.Name(f"{service}@{host}", name_type=gssapi.NameType.hostbased_service)
            gssapi.SecurityContext(name=asked.canonicalize(gssapi.MechType.kerberos), usage="initiate").step(None)
        except Exception as error:
            refusal = _Refusal(host, _minor(error), failure_words(error) or str(error))
            if refusal.minor not in _OF_ONE_HOST:
                return refusal
            first = first or refusal
        else:
            return None
    return first


def failure_words(error: BaseException) -> str | None:
    """libkrb5's own words for an error of GSSAPI, such as ``Ticket expired``; None for any other error."""
    statuses = getattr(error, "get_all_statuses", None)
    if statuses is None:
        return None
    minor = [str(text) for text in statuses(error.min_code, False)] if _minor(error) else []  # type: ignore[attr-defined]
    words = minor or [str(text) for text in statuses(error.maj_code, True)]  # type: ignore[attr-defined]
    return "; ".join(" ".join(text.split()) for text in words)


def _minor(error: BaseException) -> int:
    """libkrb5's number of the error; 0 where there is none."""
    code = getattr(error, "min_code", 0)
    return (int(code) & 0xFFFFFFFF) - _KRB5_ERRORS if code else 0


def _error(service: str, failure: _Refusal) -> KelrError:
    what = f"no Kerberos ticket for {service}/{failure.host}: {failure.words}"
    if failure.minor in _KDC_SILENT:
        return ConnectError(what, next_step=_NO_KDC, code="kdc-not-reached")
    if failure.minor == _UNKNOWN_SERVICE:
        next_step = (
            f"check {SERVICE}, and give brokers by the names that their principals have"
            " (krb5.conf's rdns and dns_canonicalize_hostname may change them)"
        )
    elif failure.minor == _CLOCKS_APART:
        next_step = "set this machine's clock: Kerberos allows five minutes"
    else:
        next_step = "run kinit PRINCIPAL, or kinit -kt KEYTAB PRINCIPAL; klist shows what tickets there are"
    return AuthenticationError(what, next_step=next_step, code="no-kerberos-ticket")


def knows_kerberos(config: Mapping[str, Any]) -> bool:
    """Whether the installed librdkafka can log in with this configuration; that of confluent-kafka's wheels cannot."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - only for this login
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    try:
        AdminClient(dict(config))
    except KafkaException:
        return False
    return True


def require_librdkafka(config: Mapping[str, Any]) -> None:
    """Raises UnsupportedError where this librdkafka knows no GSSAPI, as that in the wheels of confluent-kafka."""
    if not knows_kerberos(config):
        raise UnsupportedError(
            "producing needs librdkafka, and the installed one does not know GSSAPI (Kerberos)",
            next_step="build confluent-kafka on a librdkafka with libsasl2, or produce over another listener",
            code="librdkafka-without-kerberos",
        )
