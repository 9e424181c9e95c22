"""What kinds of security a lab can have."""

from __future__ import annotations

from enum import StrEnum

from kelr.errors import UsageError


class Security(StrEnum):
    """How clients reach a lab's brokers."""

    PLAINTEXT = "plaintext"
    SSL = "ssl"
    """TLS; brokers show a certificate, clients none."""
    MTLS = "mtls"
    """TLS, and clients show one too."""
    SASL_PLAINTEXT = "sasl_plaintext"
    SASL_SSL = "sasl_ssl"

    @property
    def tls(self) -> bool:
        return self in {Security.SSL, Security.MTLS, Security.SASL_SSL}

    @property
    def sasl(self) -> bool:
        return self in {Security.SASL_PLAINTEXT, Security.SASL_SSL}

    @property
    def tells_users_apart(self) -> bool:
        """Otherwise every client is User:ANONYMOUS, which is also who the brokers are to each other."""
        return self.sasl or self is Security.MTLS

    @property
    def protocol(self) -> str:
        """Kafka's security.protocol."""
        return "SSL" if self is Security.MTLS else self.upper()


class Mechanism(StrEnum):
    """How clients log in over SASL."""

    PLAIN = "PLAIN"
    SCRAM_256 = "SCRAM-SHA-256"
    SCRAM_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"
    """With unsecured tokens: each client says who it is, and is believed."""

    @property
    def scram(self) -> bool:
        return self.startswith("SCRAM")


DEFAULT_MECHANISM = Mechanism.SCRAM_512
CLIENT = "kelr"
"""The user of `client.properties`; a super user."""
GUEST = "guest"
"""The user of `guest.properties`, who has no ACL."""


def checked(security: str, mechanism: str | None) -> None:
    """Raises UsageError where a lab cannot have these together."""
    if security not in set(Security):
        raise UsageError(
            f"a lab's security is {security!r}, which is none of {', '.join(Security)}",
            next_step="give --security one of these",
        )
    if mechanism is not None and mechanism not in set(Mechanism):
        raise UsageError(
            f"a lab's SASL mechanism is {mechanism!r}, which is none of {', '.join(Mechanism)}",
            next_step="give --sasl-mechanism one of these",
        )
    if mechanism is not None and not Security(security).sasl:
        raise UsageError(
            f"with --security {security} there is no login, so there is no --sasl-mechanism",
            next_step="give --security sasl_ssl or sasl_plaintext as well",
        )
