"""Logins and ACLs for labs whose brokers ask for them; the lab itself stays a super user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType
from confluent_kafka.admin import ResourceType as Kind

from kelr.lab import Lab, processes

PASSWORD = "a pw=;#"


@dataclass(frozen=True)
class Grant:
    """One ACL: an operation on the cluster, or on a topic."""

    operation: AclOperation
    topic: str | None = None

    def binding(self, user: str) -> AclBinding:
        kind, name = (Kind.BROKER, "kafka-cluster") if self.topic is None else (Kind.TOPIC, self.topic)
        who = (f"User:{user}", "*", self.operation, AclPermissionType.ALLOW)
        return AclBinding(kind, name, ResourcePatternType.LITERAL, *who)


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
    return list(processes.free_ports(tuple(range(count))).values())
