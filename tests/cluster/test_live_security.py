"""TLS, SASL and ACLs against a real broker: one node with a listener of each kind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from kelr.errors import AuthenticationError, ConnectError
from kelr.lab.cluster import archive_file
from kelr.lab.jars import cache_directory, obtain_jars
from kelr.lab.java import find_java
from kelr.lab.locks import load_lock
from kelr.lab.observed import PATIENCE_S
from kelr.model import PartitionState, ReplicaLog, select
from kelr.sources.connection import ConnectionSettings
from kelr.sources.live import LiveSource
from tests.cluster.secured import free_ports, login

SECRET = "a pw=;#"
PROPERTIES = """
node.id=1
process.roles=broker,controller
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=CONTROLLER://127.0.0.1:{controller},BOTH://127.0.0.1:{both},TLS://127.0.0.1:{tls},PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,BOTH:SASL_SSL,TLS:SSL,PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT
inter.broker.listener.name=PLAIN
log.dirs={directory}/logs
ssl.keystore.type=PEM
ssl.keystore.location={directory}/both.pem
ssl.truststore.type=PEM
ssl.truststore.location={directory}/ca.pem
listener.name.tls.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
_SECURITY = "org.apache.kafka.common.security"
LOGIN = f"""
listener.name.{{listener}}.plain.sasl.jaas.config={_SECURITY}.plain.PlainLoginModule required user_alice="{{secret}}";
listener.name.{{listener}}.scram-sha-256.sasl.jaas.config={_SECURITY}.scram.ScramLoginModule required;
listener.name.{{listener}}.scram-sha-512.sasl.jaas.config={_SECURITY}.scram.ScramLoginModule required;
"""


@dataclass(frozen=True)
class Node:
    """The running broker: its directory (with ca.pem and both.pem) and the port of each listener."""

    directory: Path
    ports: dict[str, int]

    def settings(self, listener: str, *lines: str, timeout_s: float = 10) -> ConnectionSettings:
        file = self.directory / "client.properties"
        file.write_text("\n".join(lines))
        return ConnectionSettings.read(f"127.0.0.1:{self.ports[listener]}", command_config=file, timeout_s=timeout_s)

    def source(self, listener: str, *lines: str, timeout_s: float = 10) -> LiveSource:
        return LiveSource(self.settings(listener, *lines, timeout_s=timeout_s))

    def topics_by_librdkafka(self, listener: str, *lines: str) -> set[str]:
        """What the other client of the two sees with the same properties."""
        admin = AdminClient(self.settings(listener, *lines).confluent())
        return set(admin.list_topics(timeout=10).topics)

    @property
    def trust(self) -> str:
        return f"ssl.ca.location={self.directory}/ca.pem"

    def allow(self, user: str, *operations: AclOperation) -> None:
        """Returns when the broker goes by it: the controller answers as soon as it has written it down."""
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{self.ports['plain']}", "log_level": 0})
        kind, pattern, allow = ResourceType.TOPIC, ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        acls = [AclBinding(kind, "orders", pattern, f"User:{user}", "*", operation, allow) for operation in operations]
        for done in admin.create_acls(acls).values():
            done.result(30)
        all_of_user = AclBindingFilter(
            kind, "orders", pattern, f"User:{user}", None, AclOperation.ANY, AclPermissionType.ANY
        )
        deadline = time.monotonic() + PATIENCE_S
        while not set(acls) <= set(admin.describe_acls(all_of_user).result(30)):
            assert time.monotonic() < deadline, "the broker does not get to know the ACLs"
            time.sleep(0.02)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    directory = tmp_path_factory.mktemp("secured")
    _make_certificate(directory)
    ports = dict(zip(("controller", "both", "tls", "plain", "sasl"), free_ports(5), strict=True))
    text = PROPERTIES.format(directory=directory, **ports)
    text += "".join(LOGIN.format(listener=listener, secret=SECRET) for listener in ("both", "sasl"))
    (directory / "server.properties").write_text(text)
    lock, found = load_lock("4.3.1"), find_java()
    jars = obtain_jars(lock, cache_directory())
    # The archive of classes is there once there was a lab of this version; Java does without where it is not.
    archive = f"-XX:SharedArchiveFile={archive_file(cache_directory(), lock, found)}"
    quick = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", archive)
    java = [str(found.executable), "-Xmx300m", *quick, "-cp", os.pathsep.join(map(str, jars))]
    scram = [argument for bits in (256, 512) for argument in ("--add-scram", f"SCRAM-SHA-{bits}=[name=bob,password=b]")]
    options = ["-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", "server.properties", "--standalone", *scram]
    formatting = [*java, "kafka.tools.StorageTool", "format", *options]
    subprocess.run(formatting, cwd=directory, check=True, capture_output=True, timeout=60)
    with (directory / "out").open("w") as out:
        broker = subprocess.Popen([*java, "kafka.Kafka", "server.properties"], cwd=directory, stdout=out, stderr=out)
    try:
        _wait_up(broker, ports["plain"], directory)
        yield Node(directory, ports)
    finally:
        broker.send_signal(signal.SIGKILL)
        broker.wait(30)


def _make_certificate(directory: Path) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "ca.pem"]
    subprocess.run([*command, *files], cwd=directory, check=True, capture_output=True, timeout=60)
    (directory / "both.pem").write_text((directory / "key.pem").read_text() + (directory / "ca.pem").read_text())


def _wait_up(broker: subprocess.Popen[bytes], port: int, directory: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0})
            known = admin.list_topics(timeout=5).topics
            if "orders" in known and known["orders"].partitions:
                return
            # Should its answer have been missed, the next look finds the topic all the same.
            admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(5)
        except Exception:
            assert broker.poll() is None, (directory / "out").read_text()[-2000:]
            assert time.monotonic() < deadline, (directory / "out").read_text()[-2000:]
            time.sleep(0.2)


def _state(source: LiveSource) -> PartitionState:
    ((state,),) = ([*page.partitions] for page in source.pages(select(["orders"])))
    return state


@pytest.mark.parametrize(
    ("listener", "protocol", "mechanism"),
    [
        ("both", "SASL_SSL", "SCRAM-SHA-256"),
        ("both", "SASL_SSL", "SCRAM-SHA-512"),
        ("sasl", "SASL_PLAINTEXT", "SCRAM-SHA-256"),
        ("sasl", "SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ],
)
def test_scram_logs_in_with_both_clients(node: Node, listener: str, protocol: str, mechanism: str) -> None:
    node.allow("bob", AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
    lines = (f"security.protocol={protocol}", node.trust, *login(mechanism, "bob", "b"))
    with node.source(listener, *lines) as source:
        (log,) = source.replica_logs([_state(source)]).popitem()[1]
        assert isinstance(log, ReplicaLog)
        assert log.last_epoch_error is None
        assert source.topic_configs(["orders"])["orders"].min_insync_replicas == 1
    assert "orders" in node.topics_by_librdkafka(listener, *lines)


@pytest.mark.parametrize(("listener", "protocol"), [("both", "SASL_SSL"), ("sasl", "SASL_PLAINTEXT")])
def test_what_each_acl_opens(node: Node, listener: str, protocol: str) -> None:
    lines = (f"security.protocol={protocol}", node.trust, *login("PLAIN", "alice", SECRET))
    with node.source(listener, *lines) as source:
        assert [broker.id for broker in source.cluster().brokers] == [1]
        assert source.cluster().brokers_source == "DescribeCluster v2"
        assert source.cluster().controller is None
        assert source.cluster().reassignments_error == "CLUSTER_AUTHORIZATION_FAILED: it needs DESCRIBE on the cluster"
        if listener == "both":  # and the ACL of the first run is still there in the second
            errors = [error for page in source.pages(select(["orders"])) for error in page.topic_errors]
            assert [error.error for error in errors] == ["TOPIC_AUTHORIZATION_FAILED"]
            assert [page.partitions for page in source.pages(select([]))] == []
        node.allow("alice", AclOperation.DESCRIBE)
        (log,) = source.replica_logs([_state(source)]).popitem()[1]
        assert isinstance(log, ReplicaLog)
        assert (log.log_end, log.last_epoch_error) == (0, "TOPIC_AUTHORIZATION_FAILED: it needs READ on the topic")
        assert (_state(source).adding, _state(source).removing) == (None, None)
        assert (
            source.topic_configs(["orders"])["orders"].error
            == "TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic"
        )


def test_client_certificates(node: Node) -> None:
    both = node.directory / "both.pem"
    mine = ("ssl.keystore.type=PEM", f"ssl.keystore.location={both}")
    # librdkafka's call fails without a login; an answer, even one that lists nothing, is enough here.
    assert node.topics_by_librdkafka("tls", "security.protocol=SSL", node.trust, *mine) is not None
    with node.source("tls", "security.protocol=SSL", node.trust, *mine) as source:
        assert [broker.id for broker in source.cluster().brokers] == [1]
        assert (
            source.topic_configs(["orders"])["orders"].error
            == "TOPIC_AUTHORIZATION_FAILED: it needs DESCRIBE_CONFIGS on the topic"
        )
    with (
        node.source("tls", "security.protocol=SSL", node.trust) as source,
        pytest.raises(ConnectError, match="did not accept kelr's certificate") as caught,
    ):
        source.cluster()
    assert "ssl.keystore.location" in str(caught.value.next_step)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("listener", "protocol"), [("both", "SASL_SSL"), ("sasl", "SASL_PLAINTEXT")])
def test_a_wrong_password_is_said_to_be_one(node: Node, mechanism: str, listener: str, protocol: str) -> None:
    lines = (f"security.protocol={protocol}", node.trust, *login(mechanism, "bob", "hush-hush"))
    with (
        node.source(listener, *lines) as source,
        pytest.raises(AuthenticationError, match="Authentication failed") as got,
    ):
        source.cluster()
    assert "hush" not in str(got.value)


@pytest.mark.parametrize(
    ("listener", "protocol", "words"),
    [
        ("tls", "PLAINTEXT", "speaks TLS, and kelr was told security.protocol=PLAINTEXT"),
        ("plain", "SSL", "speaks Kafka without TLS"),
        ("sasl", "PLAINTEXT", "hung up on the request"),
        ("both", "SSL", "hung up on the request"),
        ("both", "SASL_PLAINTEXT", "speaks TLS, and kelr was told security.protocol=SASL_PLAINTEXT"),
        ("plain", "SASL_PLAINTEXT", "expects no SASL login"),
    ],
)
def test_the_wrong_protocol_is_named(node: Node, listener: str, protocol: str, words: str) -> None:
    lines = (f"security.protocol={protocol}", node.trust, *login("PLAIN", "alice", SECRET))
    started = time.monotonic()
    with node.source(listener, *lines, timeout_s=80) as source, pytest.raises(ConnectError, match=words) as caught:
        source.cluster()
    assert caught.value.next_step
    assert time.monotonic() - started < 20, "no timeout was waited for"


def test_a_certificate_that_is_not_trusted(node: Node) -> None:
    lines = ("security.protocol=SASL_SSL", *login("PLAIN", "alice", SECRET))
    with node.source("both", *lines) as source, pytest.raises(ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        source.cluster()
