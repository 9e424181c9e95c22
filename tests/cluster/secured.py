"""A lab whose brokers ask for a login and for ACLs on a further listener; the lab itself stays a super user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType
from confluent_kafka.admin import ResourceType as Kind

from kelr.lab import Lab, ports
from kelr.lab.nodes import NodePaths
from kelr.lab.spec import CONTROLLER_ID

PASSWORD = "a pw=;#"
_AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
_LISTENER = """
listeners=PLAINTEXT://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""


@dataclass(frozen=True)
class Grant:
    """One ACL: an operation on the cluster, or on a topic."""

    operation: AclOperation
    topic: str | None = None

    def binding(self, user: str) -> AclBinding:
        kind, name = (Kind.BROKER, "kafka-cluster") if self.topic is None else (Kind.TOPIC, self.topic)
        who = (f"User:{user}", "*", self.operation, AclPermissionType.ALLOW)
        return AclBinding(kind, name, ResourcePatternType.LITERAL, *who)


@dataclass(frozen=True)
class Secured:
    """A lab with logins: each broker's port for them, and a properties file for each user."""

    lab: Lab
    ports: Mapping[int, int]
    directory: Path

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports.values())

    def login_file(self, user: str) -> Path:
        return self.directory / f"{user}.properties"


def secure(lab: Lab, users: Iterable[str], directory: Path) -> Secured:
    """Restart every node of a lab with an authorizer, and its brokers with a listener for these users too."""
    brokers = lab.brokers
    logins = dict(zip(brokers, free_ports(len(brokers)), strict=True))
    lab.halt()
    names = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    for node in (CONTROLLER_ID, *brokers):
        with NodePaths.of(lab.directory, node).properties.open("a") as file:
            file.write(_AUTHORIZER)
            if node in logins:
                file.write(_LISTENER.format(plain=lab.port(node), sasl=logins[node], users=names))
    lab.start_controller()
    for broker in brokers:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*brokers)
    for user in users:
        lines = ("security.protocol=SASL_PLAINTEXT", *login("PLAIN", user, PASSWORD))
        (directory / f"{user}.properties").write_text("\n".join(lines))
    return Secured(lab, logins, directory)


def grant(lab: Lab, acls: Mapping[str, Iterable[Grant]]) -> None:
    """Give each user these ACLs."""
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    bindings = [one.binding(user) for user, grants in acls.items() for one in grants]
    for done in admin.create_acls(bindings).values():
        done.result(10)


def login(mechanism: str, user: str, password: str) -> tuple[str, str]:
    """The lines of a client's properties file that log a user in."""
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return (
        f"sasl.mechanism={mechanism}",
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required \\\n"
        f'  username="{user}" password="{password}";',
    )


def free_ports(count: int) -> list[int]:
    """Ports that a broker finds free again when it is started once more: no outgoing connection has one of them."""
    return list(ports.free_ports(tuple(range(count))).values())
