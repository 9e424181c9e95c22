"""What an import finds: contexts as they would be written, and what could not be carried over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kelr.config.imports.documents import absolute


@dataclass(frozen=True, slots=True)
class FoundContext:
    """A context as another tool has it. Secrets are in no repr."""

    name: str
    values: Mapping[str, Any] = field(repr=False)
    """The table as `kelr.config.context` describes it, its paths absolute."""
    left_out: tuple[str, ...] = ()
    """What could not be carried over, key by key: ``clientID: kelr's own is kelr/VERSION``."""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a file of another tool holds."""

    tool: str
    contexts: tuple[FoundContext, ...]
    current: str | None = None
    """The context that the other tool has as its current one."""
    left_out: tuple[str, ...] = ()
    """What belongs to no context that could be carried over."""


NOT_USED = "not carried over: kelr has no use for it"
NOT_VERIFIED = "not carried over: kelr always verifies certificates; name the CA in ssl.truststore.location"
MECHANISMS = {
    "": "PLAIN",
    "plain": "PLAIN",
    "plaintext": "PLAIN",
    "scramsha256": "SCRAM-SHA-256",
    "scramsha512": "SCRAM-SHA-512",
    "oauth": "OAUTHBEARER",
}
"""SASL mechanisms as other tools write them, without dashes and underscores."""


def servers_text(brokers: object) -> str | None:
    """A list of ``host:port`` as kelr has it; None where it is no such list, or empty."""
    if isinstance(brokers, str):
        return brokers or None
    if isinstance(brokers, list) and brokers and all(isinstance(one, str) and one for one in brokers):
        return ",".join(brokers)
    return None


@dataclass
class Draft:
    """A context while it is put together."""

    base: Path
    """The directory of the file that is imported."""
    properties: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def tls(self, *, ca: object, certificate: object, key: object) -> None:
        """TLS with these PEM files; what is empty is not there."""
        if isinstance(ca, str) and ca:
            self.properties |= {
                "ssl.truststore.location": absolute(ca, self.base),
                "ssl.truststore.type": "PEM",
            }
        if isinstance(certificate, str) and certificate and isinstance(key, str) and key:
            self.properties |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": {"file": absolute(certificate, self.base)},
                "ssl.keystore.key": {"file": absolute(key, self.base)},
            }

    def login(self, mechanism: str, username: object, password: object, missing: str) -> None:
        """SASL; `missing` says where the other tool has a password that is not in its file."""
        self.properties["sasl.mechanism"] = mechanism
        if isinstance(username, str) and username:
            self.values["username"] = username
            if isinstance(password, str) and password:
                self.values["password"] = password
            else:
                self.left_out.append(missing)

    def found(self, name: str, servers: str, *, tls: bool, sasl: bool) -> FoundContext:
        """The context, whole."""
        if tls or sasl:
            protocol = {(True, True): "SASL_SSL", (False, True): "SASL_PLAINTEXT", (True, False): "SSL"}[tls, sasl]
            self.properties = {"security.protocol": protocol, **self.properties}
        values = {"bootstrap_server": servers, **self.values}
        if self.properties:
            values["properties"] = self.properties
        return FoundContext(name, values, tuple(self.left_out))
