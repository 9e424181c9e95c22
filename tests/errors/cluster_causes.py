"""How the errors come about that stand between kelr and a cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kelr.model import TopicError, select
from kelr.sources.connection import ConnectionSettings, parse_servers
from kelr.sources.live.any_broker import AnyBroker
from kelr.sources.live.bootstrap import reach
from kelr.sources.live.decode import ContradictionError, contradicting
from kelr.sources.live.diagnose import PortSpeaks, Probe
from kelr.sources.live.metadata_log import LiveMetadataLog
from kelr.sources.live.source import LiveSource
from kelr.sources.live.transport import Failure, FailureKind, NodeAddress
from tests.errors.ground import CONNECTION, Cause, Causes, Ground
from tests.incident import CLUSTER, INCIDENT, PARTITIONS
from tests.metadata_logs import story
from tests.sources import fake_gssapi
from tests.sources.fake_cluster import KAFKA_2_4, FakeCluster, FakeTransport
from tests.sources.fake_quorum import FakeControllers, FakeQuorum
from tests.still_ground import StillGround

CLOSED = Failure(FailureKind.UNREACHABLE, "connection closed")
ALERT = Failure(FailureKind.UNREACHABLE, "SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED")
UNTRUSTED = Failure(FailureKind.UNREACHABLE, "SSL: CERTIFICATE_VERIFY_FAILED")
LATE = Failure(FailureKind.TIMED_OUT, "no answer in time")
REFUSED = Failure(FailureKind.AUTHENTICATION, "SaslAuthenticationFailed")
UNKNOWN = Failure(FailureKind.UNREACHABLE, "unknown host kafka-1")
LOGIN = {
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";',
}


class Silent:
    """Nodes that give the same failure to everything."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        self.ground = StillGround()

    def bootstrap_nodes(self) -> Mapping[str, NodeAddress]:
        return {"bootstrap-0": NodeAddress("kafka-1", 9092)}

    def resolve(self, *_: Any, **__: Any) -> None:
        pass

    def first_answer(self, nodes: Any, *_: Any, **__: Any) -> Mapping[Any, Failure]:
        return dict.fromkeys(nodes, self.failure)

    def exchange(self, *_: Any, **__: Any) -> Failure:
        return self.failure


def reached(failure: Failure, speaks: PortSpeaks, protocol: str = "PLAINTEXT") -> Cause:
    """A bootstrap server fails so, and its port turns out to speak this."""

    def cause(ground: Ground) -> None:
        ground.patch.setattr("kelr.sources.live.diagnose.probe_port", lambda *_, **__: Probe(speaks, "as seen"))
        properties = {"security.protocol": protocol, **(LOGIN if protocol.startswith("SASL") else {})}
        reach(Silent(failure), ConnectionSettings.read("kafka-1:9092", overrides=properties))  # type: ignore[arg-type]

    return cause


def asked(failure: Failure) -> Cause:
    """Every broker fails so, after the cluster was reached."""

    def cause(_: Ground) -> None:
        AnyBroker(Silent(failure), [1, 2], timeout_s=0.1).ask(lambda: "question")  # type: ignore[arg-type, return-value]

    return cause


def too_old(_: Ground) -> None:
    states = {state.address: state for state in PARTITIONS}
    versions = {key: version for key, version in KAFKA_2_4.items() if key != 3}
    fake = FakeCluster(CLUSTER, dict(states), versions=versions)
    source = LiveSource(ConnectionSettings.read("kafka-1:9092"), connect=lambda _: FakeTransport(fake))
    list(source.pages(select([])))


def a_broker_for_a_controller(_: Ground) -> None:
    quorum = FakeQuorum(story(), are_brokers=True)
    settings = ConnectionSettings.read("controller-1:9093", timeout_s=0.5)
    with LiveMetadataLog(settings, cluster_id="the-cluster", connect=lambda _: FakeControllers(quorum, None)) as log:
        list(log.batches())


def another_cluster(ground: Ground) -> None:
    ground.cluster()
    text = '[contexts.prod]\nbootstrap_server = "kafka-1:9092"\ncluster_id = "another-cluster-entirel"\n'
    ground.file("contexts.toml", text)
    ground.patch.setenv("KELR_CONFIG_DIR", str(ground.path))
    ground.run("describe", "--context", "prod")


def missing(target: str) -> Cause:
    def cause(ground: Ground) -> None:
        ground.cluster()
        ground.run("describe", target, *CONNECTION)

    return cause


def hidden(ground: Ground) -> None:
    error = TopicError("hidden", "TOPIC_AUTHORIZATION_FAILED", "may not be seen")
    ground.cluster(replace(INCIDENT, partitions=(), topic_errors=(error,)))
    ground.run("describe", "hidden", *CONNECTION)


KERBEROS = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.kerberos.service.name": "kafka",
    "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
}


def kerberos(number: int | None) -> Cause:
    """A ticket is asked for; with this error of libkrb5, or with success."""

    def cause(ground: Ground) -> None:
        failure = None if number is None else fake_gssapi.GSSError(number, "as libkrb5 says it")
        fake_gssapi.installed(ground.patch, lambda _: failure)
        settings = ConnectionSettings.read("kafka-1:9092", overrides=KERBEROS)
        settings.security()
        settings.confluent()

    return cause


def no_kerberos(ground: Ground) -> None:
    ground.patch.setitem(sys.modules, "gssapi", None)
    ConnectionSettings.read("kafka-1:9092", overrides=KERBEROS)


CLUSTER_CAUSES: Causes = {
    "no-kerberos-ticket": kerberos(fake_gssapi.TICKET_EXPIRED),
    "kdc-not-reached": kerberos(fake_gssapi.KDC_SILENT),
    "kerberos-package-missing": no_kerberos,
    "librdkafka-without-kerberos": kerberos(None),
    "no-cluster-named": lambda ground: ground.run("describe"),
    "bad-address": lambda _: parse_servers("kafka 1:9092"),
    "unknown-host": reached(UNKNOWN, PortSpeaks.NOTHING),
    "connection-refused": reached(CLOSED, PortSpeaks.NOTHING),
    "no-answer-in-time": reached(LATE, PortSpeaks.SILENCE),
    "tls-expected": reached(CLOSED, PortSpeaks.TLS),
    "plaintext-expected": reached(CLOSED, PortSpeaks.KAFKA_PLAINTEXT, "SSL"),
    "not-kafka": reached(CLOSED, PortSpeaks.HTTP),
    "certificate-not-trusted": reached(UNTRUSTED, PortSpeaks.TLS, "SSL"),
    "client-certificate-refused": reached(ALERT, PortSpeaks.TLS, "SSL"),
    "login-failed": reached(CLOSED, PortSpeaks.KAFKA_PLAINTEXT, "SASL_PLAINTEXT"),
    "login-expected": reached(CLOSED, PortSpeaks.KAFKA_PLAINTEXT),
    "credentials-refused": reached(REFUSED, PortSpeaks.KAFKA_PLAINTEXT, "SASL_PLAINTEXT"),
    "no-broker-answers": asked(CLOSED),
    "brokers-too-old": too_old,
    "not-a-controller": a_broker_for_a_controller,
    "wrong-cluster": another_cluster,
    "topic-unknown": missing("no-such-topic"),
    "partition-unknown": missing("orders:99"),
    "saved-not-live": lambda ground: ground.run(
        "elect", "-e", "unclean", "orders:1", "--snapshot", str(ground.snapshot())
    ),
    "connect": lambda _: _raise(contradicting("orders", ContradictionError("twice"))),
    "not-authorized": hidden,
}


def _raise(error: Exception) -> None:
    raise error
