"""The properties of brokers and clients in a lab with security, and the files that hold them."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kelr.errors import LabError
from kelr.lab.nodes import HOST, properties_text, write_private
from kelr.lab.security.kinds import CLIENT, GUEST, Mechanism, Security
from kelr.lab.spec import is_controller

# A certificate authority of the lab's own, and what it vouches for; made with openssl.


VALID_DAYS = 3650
_TIMEOUT_S = 60
_CONFIG = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[issued]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth,clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority whose files are in a directory; `make` makes one."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> Authority:
        """A new authority, in a directory of its own that only its owner can read.

        Raises:
            LabError: there is no openssl on the PATH, or it fails.
        """
        require_openssl()
        directory.mkdir(parents=True, mode=0o700)
        (directory / "openssl.cnf").write_text(_CONFIG, encoding="ascii")
        made = cls(directory)
        name = ("-subj", "/CN=kelr lab authority", "-days", str(VALID_DAYS), "-extensions", "authority")
        files = ("-keyout", "ca.key", "-out", "ca.pem")
        made._openssl("req", "-x509", *_KEY, "-config", "openssl.cnf", *name, *files)
        return made

    @property
    def certificate(self) -> Path:
        """What clients and brokers trust, in PEM form."""
        return self.directory / "ca.pem"

    def issue(self, name: str, *, hosts: Sequence[str] = (), days: int = VALID_DAYS) -> Path:
        """A key and its certificate, one behind the other in a PEM file.

        Args:
            name: the common name, and the file's name.
            hosts: subject alternative names in openssl's form, such as ``IP:127.0.0.1``.
            days: how long it is valid; 0 for one that expires within a second.

        Raises:
            LabError: openssl fails.
        """
        extensions = self.directory / f"{name}.cnf"
        names = f"subjectAltName = {','.join(hosts)}\n" if hosts else ""
        extensions.write_text(_CONFIG + names, encoding="ascii")
        request = ("req", "-new", *_KEY, "-config", "openssl.cnf", "-subj", f"/CN={name}")
        self._openssl(*request, "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed_by = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", str(days))
        extended = ("-extfile", extensions.name, "-extensions", "issued")
        self._openssl("x509", "-req", "-in", f"{name}.csr", *signed_by, *extended, "-out", f"{name}.crt")
        bundle = self.directory / f"{name}.pem"
        bundle.touch(mode=0o600)
        bundle.write_text((self.directory / f"{name}.key").read_text() + (self.directory / f"{name}.crt").read_text())
        return bundle

    def _openssl(self, *arguments: str) -> None:
        command = ["openssl", *arguments]
        try:
            done = subprocess.run(
                command,
                cwd=self.directory,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LabError(f"openssl {arguments[0]} did not run to its end: {error}") from error
        if done.returncode != 0:
            raise LabError(f"openssl {arguments[0]} failed: {done.stderr.strip()[-500:]}")


def require_openssl() -> None:
    """Raises LabError where there is no openssl to make certificates with."""
    if shutil.which("openssl") is None:
        raise LabError(
            "a lab with TLS needs openssl to make certificates, and there is none on the PATH",
            next_step="install openssl, or start a lab with --security sasl_plaintext or plaintext",
        )


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
