"""How to reach a cluster: one set of values that feeds kelr's own connections and librdkafka.

The properties are those of Kafka's own tools (`--command-config`). What kelr understands is in `_KNOWN`; other keys are
named in `ConnectionSettings.ignored`, so that the caller can say so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kelr import __version__
from kelr.errors import UsageError
from kelr.sources.properties import Property, PropertyReader, read_properties, resolved

if TYPE_CHECKING:
    import ssl

    from kelr.sources.jaas import Credentials
    from kelr.sources.log_info_key import LogInfoKey
    from kelr.sources.security.sasl import Login
    from kelr.sources.security.tokens import TokenHolder
    from kelr.sources.tls import TlsFiles

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_PORT = 9092
CLIENT_ID = f"kelr/{__version__}"
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI")

_KNOWN = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
        "sasl.client.callback.handler.class",
        "sasl.kerberos.service.name",
        "sasl.login.callback.handler.class",
        "sasl.login.class",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.ca.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.engine.factory.class",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)


def _tls_of(reader: PropertyReader | None = None) -> TlsFiles:
    """TLS as the properties have it; none of them: nothing but what the system trusts."""
    from kelr.sources.tls import TlsFiles, tls_files  # noqa: PLC0415 - plain connections need no more than its defaults

    return TlsFiles() if reader is None else tls_files(reader)


def _mechanism(reader: PropertyReader) -> str:
    """`sasl.mechanism`. Raises BadInputError where it is left out and `sasl.jaas.config` is for another than Kafka's
    default, GSSAPI."""
    if reader.text("sasl.mechanism") is None and "Krb5LoginModule" not in (reader.secret("sasl.jaas.config") or ""):
        raise reader.error(
            "sasl.mechanism",
            "sasl.mechanism is not set, which means GSSAPI; sasl.jaas.config is not for that",
            next_step=f"write sasl.mechanism, one of {', '.join(MECHANISMS)}",
        )
    return reader.one_of("sasl.mechanism", MECHANISMS, default="GSSAPI")


def _login(reader: PropertyReader, mechanism: str | None, timeout_s: float) -> dict[str, Any]:
    """The fields of `ConnectionSettings` that a login needs."""
    if mechanism is None:
        return {}
    if mechanism == "OAUTHBEARER":
        from kelr.sources.security.oauth import token_holder  # noqa: PLC0415 - only for this login

        return {"tokens": token_holder(reader, timeout_s=timeout_s)}
    if mechanism == "GSSAPI":
        from kelr.sources.security.kerberos import kerberos_service  # noqa: PLC0415 - only for this login

        return {"kerberos_service": kerberos_service(reader)}
    from kelr.sources.jaas import credentials  # noqa: PLC0415 - only for SASL

    return {"credentials": credentials(reader, mechanism)}


def _check_classes(reader: PropertyReader, *, sasl: bool, tls: bool) -> None:
    if sasl or tls:
        from kelr.sources.jaas import check_classes  # noqa: PLC0415 - not for plain connections

        check_classes(reader, sasl=sasl, tls=tls)


@dataclass(frozen=True, slots=True)
class Security:
    """How a connection is secured; TLS and login are None where there is none."""

    tls: ssl.SSLContext | None = None
    mechanism: str | None = None
    """SASL's name of the login."""
    login: Callable[[str], Login] | None = field(default=None, repr=False)
    """Begins one with the broker at a host, by the name that it is reached by."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Where the cluster is and how to speak to it. Secrets are in no repr.

    Args:
        bootstrap_servers: (host, port) pairs; one that answers is enough.
        timeout_s: how long to wait for the cluster to be reached, and for any one answer, in seconds.
    """

    bootstrap_servers: tuple[tuple[str, int], ...]
    timeout_s: float = DEFAULT_TIMEOUT_S
    client_id: str = CLIENT_ID
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str | None = None
    credentials: Credentials | None = None
    """User and password, for the mechanisms that have them."""
    tokens: TokenHolder | None = field(default=None, repr=False, compare=False)
    """What gives access tokens, for OAUTHBEARER."""
    kerberos_service: str | None = None
    """The service's name in the brokers' principals, for GSSAPI."""
    tls: TlsFiles = field(default_factory=_tls_of)
    ignored: tuple[str, ...] = ()
    """Property keys that were given and that kelr does not use, sorted."""
    log_info: LogInfoKey | None = None
    """GetReplicaLogInfo as somebody configured it; None: it is used where brokers announce it, and nowhere else."""
    origin: str | None = None
    """The properties file that these settings came from, for the words of an error."""

    @classmethod
    def read(
        cls,
        bootstrap_servers: str | None,
        *,
        command_config: Path | None = None,
        overrides: Mapping[str, str] | None = None,
        literal: Collection[str] = (),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        log_info: LogInfoKey | None = None,
    ) -> Self:
        """Settings from the command line and a Java client properties file.

        Args:
            bootstrap_servers: ``host:port,...``; None takes `bootstrap.servers` of the file.
            command_config: the properties file that Kafka's own tools take.
            overrides: properties that win over the file (`--command-property key=value`).
            literal: those of them whose values are taken as they are, ``${...}`` in them too.
            log_info: GetReplicaLogInfo's API key and dialect, where somebody configured them.

        Raises:
            UsageError: no server, or one that is not ``host:port``.
            BadInputError: the file is unreadable or asks for what kelr cannot do; names file and line.
        """
        properties = dict(read_properties(command_config)) if command_config is not None else {}
        properties.update({key: Property(value, 0) for key, value in (overrides or {}).items()})
        origin = str(command_config) if command_config is not None else None
        properties = dict(resolved(properties, origin=origin, literal=literal))
        reader = PropertyReader(properties, origin=origin)
        servers = bootstrap_servers or reader.text("bootstrap.servers")
        if not servers:
            raise UsageError(
                "no cluster was named",
                next_step="give --bootstrap-server HOST:PORT, or bootstrap.servers in the --command-config file",
                code="no-cluster-named",
            )
        if timeout_s <= 0:
            raise UsageError(
                f"the timeout of {timeout_s} s leaves no time at all", next_step="give more than 0 seconds"
            )
        protocol = reader.one_of("security.protocol", PROTOCOLS, default="PLAINTEXT")
        uses_sasl = protocol.startswith("SASL_")
        _check_classes(reader, sasl=uses_sasl, tls=protocol.endswith("SSL"))
        mechanism = _mechanism(reader) if uses_sasl else None
        return cls(
            bootstrap_servers=parse_servers(servers),
            timeout_s=timeout_s,
            client_id=CLIENT_ID,
            security_protocol=protocol,
            sasl_mechanism=mechanism,
            **_login(reader, mechanism, timeout_s),
            tls=_tls_of(reader if protocol.endswith("SSL") else None),
            ignored=tuple(sorted(key for key in properties if key not in _KNOWN)),
            log_info=log_info,
            origin=reader.origin,
        )

    def with_servers(self, servers: Iterable[tuple[str, int]]) -> Self:
        """The same settings with further (host, port) pairs to begin with, after those that the user named."""
        return replace(self, bootstrap_servers=tuple(dict.fromkeys((*self.bootstrap_servers, *servers))))

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol in {"SSL", "SASL_SSL"}

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL_")

    @property
    def servers_text(self) -> str:
        return ",".join(address_text(host, port) for host, port in self.bootstrap_servers)

    def security(self) -> Security:
        """What kelr's own connections need (holds secrets: not for printing).

        With OAUTHBEARER the first token is fetched here, so that what is wrong with it is said before anything else.

        So it is with GSSAPI and the first ticket.

        Raises:
            ConnectError, AuthenticationError: there is no token, or no ticket, to be had.
            BadInputError: keys or certificates do not load.
            UnsupportedError: the package for GSSAPI does not load.
        """
        tls = self.tls.context() if self.uses_tls else None
        if not self.uses_sasl:
            return Security(tls)
        return Security(tls, self.sasl_mechanism, self._login_for())

    def _login_for(self) -> Callable[[str], Login]:
        """What begins a login at a host."""
        from kelr.sources.security import sasl  # noqa: PLC0415 - only for SASL

        if self.tokens is not None:
            tokens = self.tokens
            tokens.token()
            return lambda _host: sasl.oauthbearer(tokens)
        if self.kerberos_service is not None:
            from kelr.sources.security.kerberos import get_ticket  # noqa: PLC0415 - only for this login

            service = self.kerberos_service
            get_ticket(service, [host for host, _ in self.bootstrap_servers], timeout_s=self.timeout_s)
            return lambda host: sasl.gssapi(service, host)
        credentials, mechanism = self.credentials, self.sasl_mechanism or ""
        assert credentials is not None
        if mechanism == "PLAIN":
            return lambda _host: sasl.plain(credentials)
        return lambda _host: sasl.scram(credentials, mechanism)

    def confluent(self) -> dict[str, Any]:
        """The configuration of a confluent-kafka client (holds secrets: not for printing).

        With OAUTHBEARER there is a token afterwards: a client that gets none fails only after 10 s.

        Raises:
            ConnectError, AuthenticationError: there is no token to be had.
            UnsupportedError: this librdkafka does not know GSSAPI (`librdkafka_logs_in`).
        """
        config = self._librdkafka()
        if self.kerberos_service is not None:
            from kelr.sources.security.kerberos import require_librdkafka  # noqa: PLC0415 - only for this login

            require_librdkafka(config)
        return config

    @property
    def librdkafka_logs_in(self) -> bool:
        """Whether the installed librdkafka knows this login: that of confluent-kafka's wheels knows no GSSAPI."""
        if self.kerberos_service is None:
            return True
        from kelr.sources.security.kerberos import knows_kerberos  # noqa: PLC0415 - only for this login

        return knows_kerberos(self._librdkafka())

    def _librdkafka(self) -> dict[str, Any]:
        config: dict[str, Any] = {
            "bootstrap.servers": self.servers_text,
            "client.id": self.client_id,
            "security.protocol": self.security_protocol,
            # librdkafka writes its own complaints to stderr otherwise; kelr reports every failure as a value.
            "log_level": 0,
        }
        if self.uses_tls:
            config.update(self.tls.librdkafka())
        if self.uses_sasl:
            config["sasl.mechanism"] = self.sasl_mechanism
        if self.uses_sasl and self.credentials is not None:
            config["sasl.username"] = self.credentials.username
            config["sasl.password"] = self.credentials.password
        if self.tokens is not None:
            from kelr.sources.security.oauth import for_librdkafka  # noqa: PLC0415 - only for this login

            self.tokens.token()
            config["oauth_cb"] = for_librdkafka(self.tokens)
        if self.kerberos_service is not None:
            config["sasl.kerberos.service.name"] = self.kerberos_service
        return config


def parse_servers(text: str) -> tuple[tuple[str, int], ...]:
    """``host:port,[::1]:9093,SASL_SSL://host`` as (host, port) pairs, in the order given, without repeats.

    A missing port is 9092, and a listener name before ``://`` is dropped, as Kafka's Java clients have it.

    Raises:
        UsageError: naming the entry that is not an address.
    """
    servers = [_parse_server(entry.strip()) for entry in text.split(",") if entry.strip()]
    if not servers:
        raise UsageError(f"{text!r} names no server", next_step="give --bootstrap-server HOST:PORT", code="bad-address")
    return tuple(dict.fromkeys(servers))


def _parse_server(entry: str) -> tuple[str, int]:
    match = re.fullmatch(
        r"(?:[A-Za-z_]+://)?(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]+)?)\]|(?P<host>[^\s:/\[\]]+))(?::(?P<port>[0-9]{1,5}))?",
        entry,
        re.ASCII,
    )
    port = DEFAULT_PORT if match is None or match["port"] is None else int(match["port"])
    if match is None or not 0 < port < 65536:
        raise UsageError(
            f"{entry!r} is not the address of a server",
            next_step="write HOST:PORT, and an IPv6 address in brackets: [::1]:9092",
            code="bad-address",
        )
    return match["six"] or match["host"], port


def address_text(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
