"""GSSAPI (Kerberos): kafka-python does it with the package `gssapi`; wheels of librdkafka come without it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from kelr.errors import UnsupportedError
from kelr.sources.jaas import KEY, jaas_options
from kelr.sources.properties import PropertyReader

SERVICE = "sasl.kerberos.service.name"


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
        )
    return service


def require_librdkafka(config: Mapping[str, Any]) -> None:
    """Raises UnsupportedError where this librdkafka knows no GSSAPI, as that in the wheels of confluent-kafka."""
    from confluent_kafka import KafkaException  # noqa: PLC0415 - only for this login
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    try:
        AdminClient(dict(config))
    except KafkaException as error:
        raise UnsupportedError(
            "this needs librdkafka, and the installed one does not know GSSAPI (Kerberos):"
            " preferred and unclean elections, kelr recover hold, and kelr rescue replay are not possible",
            next_step="build confluent-kafka on a librdkafka with libsasl2, or use another listener for these",
        ) from error
