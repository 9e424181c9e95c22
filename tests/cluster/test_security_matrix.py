"""Every way into a real cluster with an authorizer, and every wrong one, on both Kafka clients.

One lab, whose brokers have a listener of each kind. What kelr does with an open door is in all rows the same.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kelr.commands.main import main
from kelr.errors import ConnectError
from kelr.lab import Lab, LabSpec
from kelr.lab.nodes import NodePaths, properties_text
from kelr.lab.security.access import Authority, client_login, listener_properties
from kelr.lab.security.kinds import Mechanism, Security
from kelr.lab.story import create_topic
from kelr.model import TopicPartition
from kelr.sources.connection import ConnectionSettings
from tests.cluster.secured import free_ports
from tests.cluster.token_issuer import AUDIENCE, Issuer, issuer

TOPIC = "orders"
PASSWORD = 'a "pw=;#'
SECRET = "hush:client+secret"
PATIENCE_S = 5.0
_PLAINTEXT, _TLS, _MTLS = Security.PLAINTEXT, Security.SSL, Security.MTLS
_SASL, _SASL_TLS = Security.SASL_PLAINTEXT, Security.SASL_SSL
LISTENERS: Mapping[str, tuple[Security, Mechanism | None]] = {
    "OPEN": (_PLAINTEXT, None),
    "TLS": (_TLS, None),
    "MTLS": (_MTLS, None),
    "PLAIN": (_SASL, Mechanism.PLAIN),
    "PLAINTLS": (_SASL_TLS, Mechanism.PLAIN),
    "SCRAM256": (_SASL, Mechanism.SCRAM_256),
    "SCRAM512": (_SASL_TLS, Mechanism.SCRAM_512),
    "TOKEN": (_SASL, Mechanism.OAUTHBEARER),
    "ISSUER": (_SASL_TLS, Mechanism.OAUTHBEARER),
    "EXPIRED": (_TLS, None),
    "OTHERHOST": (_TLS, None),
}
WAYS_IN = [name for name in LISTENERS if name not in {"EXPIRED", "OTHERHOST"}]


@dataclass(frozen=True)
class Place:
    """The lab, the ports of its listeners, and the issuer whose tokens one of them takes."""

    lab: Lab
    ports: Mapping[str, Mapping[int, int]]
    home: Path
    issuer: Issuer

    def servers(self, listener: str) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self.ports[listener].values())

    def lines(self, listener: str) -> dict[str, str]:
        """The properties of a client that is let in."""
        security, mechanism = LISTENERS[listener]
        found = {"security.protocol": security.protocol}
        if security.tls:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": f"{self.home}/ca/ca.pem"}
        if security is Security.MTLS:
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": f"{self.home}/ca/kelr.pem"}
        if mechanism is not None:
            login = client_login(mechanism, "kelr", PASSWORD.replace('"', '\\"'))
            found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
        if listener == "ISSUER":
            module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
            found |= {
                "sasl.jaas.config": f"{module} required;",
                "sasl.oauthbearer.token.endpoint.url": f"{self.issuer.url}/token",
                "sasl.oauthbearer.client.credentials.client.id": "kelr",
                "sasl.oauthbearer.client.credentials.client.secret": SECRET,
                "sasl.oauthbearer.scope": "kafka",
            }
        return found

    def config(self, lines: Mapping[str, str]) -> Path:
        file = self.home / "client.properties"
        file.write_text(properties_text(lines))
        return file


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Two brokers; every partition is led by 1, and 2 is preferred."""
    home = tmp_path_factory.mktemp("matrix")
    authority = Authority.make(home / "ca")
    Authority.make(home / "other")
    hosts = ("IP:127.0.0.1", "DNS:localhost")
    authority.issue("broker", hosts=hosts)
    authority.issue("kelr")
    for name, days, names in (("expired", 0, hosts), ("otherhost", 9, ("DNS:kafka-9.example",))):
        bundle = authority.issue(name, hosts=names, days=days)
        (home / name).mkdir()
        (home / name / "broker.pem").write_text(bundle.read_text())
        (home / name / "ca.pem").write_text(authority.certificate.read_text())
    with issuer(home, {"kelr": SECRET}) as idp:
        # Java asks only those addresses for keys that its command line names.
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={idp.url}/keys"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_TOOL_OPTIONS", allowed)
            with Lab.up(LabSpec(brokers=2, authorizer=True), home / "lab", owner_pid=os.getpid()) as lab:
                yield _opened(lab, home, idp)


def _opened(lab: Lab, home: Path, idp: Issuer) -> Place:
    lab.halt()
    ports = {"OPEN": {broker: lab.port(broker) for broker in lab.brokers}}
    for name in list(LISTENERS)[1:]:
        ports[name] = dict(zip(lab.brokers, free_ports(len(lab.brokers)), strict=True))
    for broker in lab.brokers:
        listeners = [f"PLAINTEXT://127.0.0.1:{lab.port(broker)}"]
        kinds = ["CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT"]
        properties: dict[str, str] = {}
        for name, (security, mechanism) in list(LISTENERS.items())[1:]:
            listeners.append(f"{name}://127.0.0.1:{ports[name][broker]}")
            kinds.append(f"{name}:{security.protocol}")
            certificates = home / {"EXPIRED": "expired", "OTHERHOST": "otherhost"}.get(name, "ca")
            passwords = {"kelr": PASSWORD.replace('"', '\\"')}
            properties |= listener_properties(name, security, mechanism, certificates, passwords)
        prefix = "listener.name.issuer.oauthbearer.sasl."
        handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        properties |= {
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(kinds),
            f"{prefix}server.callback.handler.class": handler,
            f"{prefix}oauthbearer.jwks.endpoint.url": f"{idp.url}/keys",
            f"{prefix}oauthbearer.expected.audience": AUDIENCE,
            f"{prefix}oauthbearer.expected.issuer": idp.url,
        }
        with NodePaths.of(lab.directory, broker).properties.open("a") as file:
            file.write(properties_text(properties))
    lab.start_controller()
    for broker in lab.brokers:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*lab.brokers)
    _add_scram_users(lab)
    create_topic(lab, TOPIC, [[2, 1]] * len(WAYS_IN), {})
    lab.wait_partitions(TOPIC, "both in sync", lambda state: len(state.isr) == 2)
    lab.stop(2)
    lab.wait_partitions(TOPIC, "1 leads", lambda state: state.leader == 1)
    lab.start(2)
    lab.wait_partitions(TOPIC, "both in sync", lambda state: len(state.isr) == 2)
    return Place(lab, ports, home, idp)


def _add_scram_users(lab: Lab) -> None:
    admin = AdminClient({"bootstrap.servers": lab.bootstrap_servers, "log_level": 0})
    wanted = [
        UserScramCredentialUpsertion("kelr", ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    for one in wanted:
        for done in admin.alter_user_scram_credentials([one]).values():
            done.result(30)


def kelr(capsys: pytest.CaptureFixture[str], place: Place, listener: str, *words: str) -> tuple[int, str, str]:
    file = place.home / "client.properties"
    code = main([*words, "-b", place.servers(listener), "--command-config", str(file), "--timeout", "10"])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.longer
@pytest.mark.parametrize("listener", WAYS_IN)
def test_every_way_in(
    place: Place,
    listener: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("KELR_STATE_DIR", str(tmp_path))
    number = WAYS_IN.index(listener)
    at = f"{TOPIC}:{number}"
    place.config(place.lines(listener))
    asked = place.issuer.asked
    code, out, err = kelr(capsys, place, listener, "describe", at, "-o", "json")
    assert (code, [item["leader"] for item in json.loads(out)["items"]]) == (0, [1]), err
    if listener == "ISSUER":
        assert place.issuer.asked == asked + 1
    code, out, err = kelr(capsys, place, listener, "log-info", at, "-o", "json")
    assert (code, [item["log_end"] for item in json.loads(out)["items"]]) == (0, [0, 0]), err
    code, out, err = kelr(capsys, place, listener, "explain", at)
    assert code == 0, err
    preferred = ("elect", "--election-type", "preferred", at)
    code, out, err = kelr(capsys, place, listener, *preferred, "--dry-run")
    assert (code, leader(place, number)) == (0, 1), err
    code, out, err = kelr(capsys, place, listener, *preferred, "--yes")
    assert (code, leader(place, number)) == (0, 2), err
    assert "hush" not in out + err
    # The election went over librdkafka, which found its way in with the same properties.
    admin = AdminClient(_settings(place, listener).confluent())
    admin.poll(0)
    assert TOPIC in admin.list_topics(timeout=10).topics


def leader(place: Place, partition: int) -> int | None:
    return place.lab.partitions(TOPIC)[TopicPartition(TOPIC, partition)].leader


def _settings(place: Place, listener: str) -> ConnectionSettings:
    file = place.home / "client.properties"
    return ConnectionSettings.read(place.servers(listener), command_config=file, timeout_s=10)


_GONE = "gone"
_WRONG = {"sasl.jaas.config": 'a.b.PlainLoginModule required username="kelr" password="hush-wrong";'}
_WRONG_SCRAM = {"sasl.jaas.config": 'a.b.ScramLoginModule required username="kelr" password="hush-wrong";'}
_NO_TLS, _NO_LOGIN = {"security.protocol": "SASL_PLAINTEXT"}, {"security.protocol": "SSL"}
BAD: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "a wrong password, PLAIN": ("PLAIN", _WRONG, "refused the credentials"),
    "a wrong password, SCRAM": ("SCRAM256", _WRONG_SCRAM, "refused the credentials"),
    "a wrong password, over TLS": ("SCRAM512", _WRONG_SCRAM, "refused the credentials"),
    "a mechanism that is not on": ("SCRAM256", {"sasl.mechanism": "SCRAM-SHA-512"}, "does not offer this"),
    "a wrong client secret": (
        "ISSUER",
        {"sasl.oauthbearer.client.credentials.client.secret": "hush-wrong"},
        "refused client 'kelr': 401 (invalid_client",
    ),
    "no issuer there": (
        "ISSUER",
        {"sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token"},
        "the token endpoint http://127.0.0.1:1/token cannot be reached",
    ),
    "a token that the broker does not take": (
        "ISSUER",
        {
            "sasl.oauthbearer.token.endpoint.url": _GONE,
            "sasl.jaas.config": 'a.b.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="kelr";',
        },
        "refused the credentials",
    ),
    "an expired certificate": ("EXPIRED", {}, "certificate has expired"),
    "another host's certificate": ("OTHERHOST", {}, "not valid for '127.0.0.1'"),
    "an unknown authority": ("TLS", {"ssl.truststore.location": "{home}/other/ca.pem"}, "certificate verify failed"),
    "no authority at all": (
        "TLS",
        {"ssl.truststore.location": _GONE, "ssl.truststore.type": _GONE},
        "certificate verify failed",
    ),
    "mTLS without a certificate": (
        "MTLS",
        {"ssl.keystore.location": _GONE, "ssl.keystore.type": _GONE},
        "did not accept kelr's certificate, or lack of one",
    ),
    "mTLS with another authority's": (
        "MTLS",
        {"ssl.keystore.location": "{home}/other/kelr.pem"},
        "did not accept kelr's certificate, or lack of one",
    ),
    "TLS to a plain port": ("OPEN", {"security.protocol": "SSL"}, "speaks Kafka without TLS"),
    "plain to a TLS port": ("TLS", {"security.protocol": "PLAINTEXT"}, "speaks TLS, and kelr was told"),
    "plain to a login": ("PLAIN", {"security.protocol": "PLAINTEXT"}, "the listener wants a login"),
    "a login to a plain port": (
        "OPEN",
        {**_WRONG, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
        "expects no SASL login",
    ),
    "a login without TLS to a TLS port": ("SCRAM512", _NO_TLS, "speaks TLS, and kelr was told"),
    "TLS without a login": ("SCRAM512", _NO_LOGIN, "the listener wants a login"),
}


@pytest.mark.longer
@pytest.mark.parametrize("case", BAD)
def test_every_wrong_way_in(place: Place, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    listener, changes, words = BAD[case]
    if not (place.home / "other" / "kelr.pem").exists():
        Authority(place.home / "other").issue("kelr")
    changed = {key: value.replace("{home}", str(place.home)) for key, value in changes.items()}
    lines = {key: value for key, value in {**place.lines(listener), **changed}.items() if value != _GONE}
    place.config(lines)
    started = time.monotonic()
    code, out, err = kelr(capsys, place, listener, "describe")
    took_s = time.monotonic() - started
    print(f"{case}: {took_s:.2f} s: {err}")
    said = " ".join(err.split())
    assert (code, out) == (3, ""), said
    assert words in said
    assert "next:" in said
    assert took_s < PATIENCE_S
    assert "hush" not in err
    assert "Traceback" not in err
    with pytest.raises((KafkaException, ConnectError)) as refused:
        AdminClient({**_settings(place, listener).confluent(), "error_cb": lambda _error: None}).list_topics(timeout=2)
    assert "hush" not in str(refused.value)
