"""The properties of brokers and clients in a lab with security, and the files that hold them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kelr.lab.nodes import HOST, properties_text, write_private
from kelr.lab.security.certificates import Authority
from kelr.lab.security.kinds import CLIENT, GUEST, Mechanism, Security
from kelr.lab.spec import is_controller

LISTENER = "CLIENT"
"""The listener for clients."""
DIRECTORY = "security"
"""Where certificates are, under the lab's directory."""
_MODULES = "org.apache.kafka.common.security"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_HOSTS = ("IP:127.0.0.1", "DNS:localhost")


@dataclass(frozen=True, slots=True)
class Access:
    """How clients reach a lab's brokers; `prepare` makes what it needs."""

    security: Security
    mechanism: Mechanism | None
    """None without SASL."""
    authorizer: bool
    directory: Path
    """The lab's."""

    @property
    def open_to_all(self) -> bool:
        """Whether there is nothing to prepare, and no listener beside the lab's own."""
        return self.security is Security.PLAINTEXT

    @property
    def users(self) -> tuple[str, ...]:
        """Who has a properties file."""
        return (CLIENT, GUEST) if self.security.tells_users_apart else (CLIENT,)

    def prepare(self, servers: str) -> Mapping[str, str]:
        """Make certificates, passwords, and a properties file for each user.

        Args:
            servers: where clients find the brokers.

        Returns:
            Each user's password, for `broker_properties` and `scram_arguments`; they are in no other place but the
            files.

        Raises:
            LabError: there is no openssl.
        """
        if self.open_to_all and not self.authorizer:
            return {}
        if self.security.tls:
            authority = Authority.make(self.directory / DIRECTORY)
            authority.issue("broker", hosts=_HOSTS)
            for user in self.users if self.security is Security.MTLS else ():
                authority.issue(user)
        passwords = {user: secrets.token_urlsafe(18) for user in self.users}
        for user in self.users:
            write_private(self.client_file(user), properties_text(dict(self._client(user, passwords[user], servers))))
        return passwords

    def client_file(self, user: str = CLIENT) -> Path:
        """What a user gives as --command-config."""
        return self.directory / ("client.properties" if user == CLIENT else f"{user}.properties")

    def node_properties(
        self, own: Mapping[int, int], ports: Mapping[int, int], passwords: Mapping[str, str]
    ) -> dict[int, dict[str, str]]:
        """What the properties files of all nodes have besides; nothing changes what is there without.

        Args:
            own: each node's port for the lab itself.
            ports: each node's port for clients; empty where there is no such listener.
        """
        asks = {"authorizer.class.name": _AUTHORIZER, "super.users": f"User:ANONYMOUS;User:{CLIENT}"}
        # The brokers and the lab itself speak in the clear, as ANONYMOUS.
        found = {node: dict(asks) if self.authorizer else {} for node in own}
        for node, port in ports.items():
            found[node] |= self._listeners(node, own[node], port)
            known = passwords if self.mechanism else {}
            found[node] |= listener_properties(
                LISTENER, self.security, self.mechanism, self.directory / DIRECTORY, known
            )
        return found

    def _listeners(self, node: int, own: int, port: int) -> dict[str, str]:
        """Controllers have a listener for clients too: kelr reads the metadata log from it."""
        name = "CONTROLLER" if is_controller(node) else "PLAINTEXT"
        both = f"{name}://{HOST}:{own},{LISTENER}://{HOST}:{port}"
        kinds = f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{LISTENER}:{self.security.protocol}"
        found = {"listeners": both, "listener.security.protocol.map": kinds}
        return {**found, "controller.listener.names": f"CONTROLLER,{LISTENER}"} if is_controller(node) else found

    def scram_arguments(self, passwords: Mapping[str, str]) -> tuple[str, ...]:
        """What formatting a controller is told, so that the users are there from the start."""
        if self.mechanism is None or not self.mechanism.scram:
            return ()
        users = (f"{self.mechanism}=[name={user},password={word}]" for user, word in passwords.items())
        return tuple(argument for user in users for argument in ("--add-scram", user))

    def _client(self, user: str, password: str, servers: str) -> Iterator[tuple[str, str]]:
        yield "bootstrap.servers", servers
        yield "security.protocol", self.security.protocol
        if self.security.tls:
            yield "ssl.truststore.type", "PEM"
            yield "ssl.truststore.location", str(self.directory / DIRECTORY / "ca.pem")
        if self.security is Security.MTLS:
            yield "ssl.keystore.type", "PEM"
            yield "ssl.keystore.location", str(self.directory / DIRECTORY / f"{user}.pem")
        if self.mechanism is not None:
            yield "sasl.mechanism", self.mechanism
            yield "sasl.jaas.config", client_login(self.mechanism, user, password)


def listener_properties(
    name: str, security: Security, mechanism: Mechanism | None, certificates: Path, passwords: Mapping[str, str]
) -> dict[str, str]:
    """A broker's properties for one listener.

    Args:
        certificates: the directory with `ca.pem` and `broker.pem`.
        passwords: of the users that log in with PLAIN.
    """
    prefix = f"listener.name.{name.lower()}."
    found: dict[str, str] = {}
    if security.tls:
        found |= {
            f"{prefix}ssl.keystore.type": "PEM",
            f"{prefix}ssl.keystore.location": str(certificates / "broker.pem"),
            f"{prefix}ssl.truststore.type": "PEM",
            f"{prefix}ssl.truststore.location": str(certificates / "ca.pem"),
        }
    if security is Security.MTLS:
        found[f"{prefix}ssl.client.auth"] = "required"
        # User:kelr, as with a login, and not User:CN=kelr.
        found[f"{prefix}ssl.principal.mapping.rules"] = "RULE:^CN=(.*?)$/$1/,DEFAULT"
    if security.sasl and mechanism is not None:
        found[f"{prefix}sasl.enabled.mechanisms"] = mechanism
        found[f"{prefix}{mechanism.lower()}.sasl.jaas.config"] = _broker_login(mechanism, passwords)
    return found


def client_login(mechanism: Mechanism, user: str, password: str) -> str:
    """The value of a client's sasl.jaas.config."""
    if mechanism is Mechanism.OAUTHBEARER:
        module = f"{_MODULES}.oauthbearer.OAuthBearerLoginModule"
        return f'{module} required unsecuredLoginStringClaim_sub="{user}";'
    module = "plain.PlainLoginModule" if mechanism is Mechanism.PLAIN else "scram.ScramLoginModule"
    return f'{_MODULES}.{module} required username="{user}" password="{password}";'


def _broker_login(mechanism: Mechanism, passwords: Mapping[str, str]) -> str:
    if mechanism is Mechanism.OAUTHBEARER:
        return f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required;"
    if mechanism is Mechanism.PLAIN:
        users = " ".join(f'user_{user}="{word}"' for user, word in passwords.items())
        return f"{_MODULES}.plain.PlainLoginModule required {users};"
    return f"{_MODULES}.scram.ScramLoginModule required;"
