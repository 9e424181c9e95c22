"""Kerberos on a real cluster and a real KDC: the way in, all that changes a cluster, and the wrong ways.

Needs krb5kdc, kinit and the Python package gssapi; `make kerberos` says how to get what is missing. kelr runs as a
process of its own each time: libkrb5 finds its realm and its tickets through the environment.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from kelr.lab import Lab, LabSpec
from kelr.lab.nodes import NodePaths, properties_text
from kelr.lab.produce import Acks, produce
from kelr.lab.story import create_topic
from tests.cluster.kerberos import HOST, REALM, Realm, missing, realm
from tests.cluster.secured import Grant, free_ports, grant

pytestmark = [
    pytest.mark.longer,
    pytest.mark.skipif(bool(missing()), reason="; ".join(missing())),
]
TOPIC = "orders"
PATIENCE_S = 60.0
SOON_S = 10.0
"""How fast a person is told what is wrong, kelr's start included."""
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"


@dataclass(frozen=True)
class Ran:
    """A run of kelr."""

    code: int
    out: str
    err: str
    took_s: float


@dataclass(frozen=True)
class Place:
    """A lab whose brokers have a listener for Kerberos, and the realm."""

    lab: Lab
    realm: Realm
    ports: Mapping[int, int]
    home: Path

    def kelr(
        self, *words: str, cache: str = "kelr", service: str = "kafka", environ: Mapping[str, str] | None = None
    ) -> Ran:
        """Run kelr with the tickets of a cache."""
        properties = self.home / f"{service}.properties"
        properties.write_text(
            properties_text(
                {
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "GSSAPI",
                    "sasl.kerberos.service.name": service,
                    "sasl.jaas.config": f"{KERBEROS} useTicketCache=true;",
                }
            )
        )
        servers = ",".join(f"{HOST}:{port}" for port in self.ports.values())
        own = {f"KELR_{name}_DIR": str(self.home / name.lower()) for name in ("CONFIG", "STATE", "CACHE")}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "kelr", *words, "-b", servers, "--command-config", str(properties)],
            env={**self.realm.environ(cache), **own, **(environ or {})},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def leader(self, partition: int) -> int | None:
        """Who leads, as kelr says it through Kerberos."""
        ran = self.kelr("describe", f"{TOPIC}:{partition}", "-o", "json")
        assert ran.code == 0, ran.err
        found: int | None = json.loads(ran.out)["items"][0]["leader"]
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("kerberos")
    with realm(home / "realm", free_ports(1)[0]) as kdc:
        keys = kdc.keys_of(f"kafka/{HOST}")
        for name in ("kelr", "guest", f"other/{HOST}"):
            kdc.keys_of(name)
        for user in ("kelr", "guest"):
            kdc.log_in(user, user)
        with Lab.up(LabSpec(brokers=2, authorizer=True), home / "lab", owner_pid=os.getpid()) as lab:
            ports = _opened(lab, kdc, keys)
            create_topic(lab, TOPIC, [(1, 2), (1, 2)], {"min.insync.replicas": "1"})
            everything = [Grant(AclOperation.ALL), Grant(AclOperation.ALL, TOPIC)]
            grant(lab, {"kelr": everything})
            yield Place(lab, kdc, ports, home)


def _opened(lab: Lab, kdc: Realm, keys: Path) -> Mapping[int, int]:
    lab.halt()
    ports = dict(zip(lab.brokers, free_ports(len(lab.brokers)), strict=True))
    login = f'{KERBEROS} useKeyTab=true storeKey=true keyTab="{keys}" principal="kafka/{HOST}@{REALM}";'
    for broker in lab.brokers:
        paths = NodePaths.of(lab.directory, broker)
        listeners = f"PLAINTEXT://{HOST}:{lab.port(broker)},KERBEROS://{HOST}:{ports[broker]}"
        kinds = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT"
        with paths.properties.open("a") as file:
            file.write(
                properties_text(
                    {
                        "listeners": listeners,
                        "listener.security.protocol.map": kinds,
                        "listener.name.kerberos.sasl.enabled.mechanisms": "GSSAPI",
                        "listener.name.kerberos.sasl.kerberos.service.name": "kafka",
                        "listener.name.kerberos.gssapi.sasl.jaas.config": login,
                    }
                )
            )
        (paths.home / "jvm.options").write_text(f"-Djava.security.krb5.conf={kdc.config}\n")
    lab.start_controller()
    for broker in lab.brokers:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*lab.brokers)
    return ports


def test_who_is_let_in_and_as_whom(place: Place) -> None:
    """The principal is that of the ticket, its realm cut off: `kelr` may see the topic, `guest` may not."""
    assert place.leader(0) == 1
    ran = place.kelr("log-info", f"{TOPIC}:0")
    assert (ran.code, "ListOffsets+Fetch" in ran.out) == (0, True), ran.err
    ran = place.kelr("describe", TOPIC, cache="guest")
    assert ran.code == 4
    assert "TOPIC_AUTHORIZATION_FAILED" in ran.err
    ran = place.kelr("doctor", "-o", "json")
    assert ran.code == 0, ran.err


def test_elections_and_a_hold(place: Place) -> None:
    """Over kafka-python: librdkafka's wheels know no Kerberos."""
    lab = place.lab
    produce(lab.bootstrap_servers, TOPIC, (0, 1), batches=1, records=5, acks=Acks.ALL, label="before")
    lab.stop(1)
    lab.start(1)
    assert place.leader(0) == 2
    ran = place.kelr("elect", "--election-type", "preferred", f"{TOPIC}:0", "--yes")
    assert ran.code == 0, ran.err
    assert place.leader(0) == 1

    # The last one in sync is killed, and the other, which it left behind, comes back.
    lab.stop(2)
    lab.kill(1)
    lab.start(2)
    assert (place.leader(0), place.leader(1)) == (None, None)
    ran = place.kelr("elect", "--election-type", "unclean", f"{TOPIC}:0", "--yes")
    assert ran.code == 6, "nothing is done without consent to the loss"
    needed = re.search(r"--accept-loss (\S+)", ran.err)
    assert needed is not None, ran.err
    ran = place.kelr("elect", "--election-type", "unclean", f"{TOPIC}:0", "--yes", "--accept-loss", needed[1])
    assert ran.code == 0, ran.err
    assert place.leader(0) == 2

    ran = place.kelr("recover", "clear-elr", TOPIC, "--yes-clear-elr-of", TOPIC, "--force", "a test")
    assert ran.code == 0, ran.err
    ran = place.kelr("describe", f"{TOPIC}:1", "-o", "json")
    (row,) = json.loads(ran.out)["items"]
    assert (row["leader"], row["elr"], row["last_known_elr"]) == (None, [], [])
    plan = place.home / "plan.json"
    ran = place.kelr("recover", "plan", "--election-type", "unclean", f"{TOPIC}:1", "--out", str(plan))
    assert ran.code == 0, ran.err
    ran = place.kelr("recover", "apply", str(plan), "--yes", "--accept-loss", needed[1])
    assert ran.code == 0, ran.err
    assert place.leader(1) == 2
    lab.start(1)


def test_wrong_ways(place: Place) -> None:
    """What a person reads, with exit code 3, and how fast."""
    host = HOST.replace(".", r"\.")
    nobody = place.kelr("describe", cache="nobody")
    assert re.search(rf"no Kerberos ticket for kafka/{host}: No Kerberos credentials available", nobody.err), nobody.err
    assert "kinit" in nobody.err

    place.realm.log_in("kelr", "short", life_s=1)
    time.sleep(2)  # a ticket's life is counted in seconds
    ended = place.kelr("describe", cache="short")
    assert f"no Kerberos ticket for kafka/{HOST}: Ticket expired" in ended.err

    unknown = place.kelr("describe", service="nosuch")
    assert f"Server nosuch/{HOST}@{REALM} not found in Kerberos database" in unknown.err
    assert "check sasl.kerberos.service.name" in unknown.err

    another = place.kelr("describe", service="other")
    assert "refused the credentials" in another.err
    assert "klist" in another.err
    for ran in (nobody, ended, unknown, another):
        assert (ran.code, "Traceback" in ran.err) == (3, False)
        assert ran.took_s < SOON_S


def test_without_a_kdc(place: Place) -> None:
    """A ticket that is there needs none; without one, a KDC that is down or silent is said, and not waited for."""
    place.realm.log_in("guest", "fresh")
    with socket.create_server((HOST, 0)) as deaf:
        configs = {}
        for name, port in (("down", free_ports(1)[0]), ("silent", deaf.getsockname()[1])):
            configs[name] = place.home / f"{name}.conf"
            text = place.realm.config.read_text().replace(f":{place.realm.port}", f":{port}")
            configs[name].write_text(text)
        down = {"KRB5_CONFIG": str(configs["down"])}
        assert place.kelr("describe", environ=down).code == 0
        ran = place.kelr("describe", cache="fresh", environ=down)
        assert (ran.code, f"Cannot contact any KDC for realm '{REALM}'" in ran.err) == (3, True), ran.err
        silent = {"KRB5_CONFIG": str(configs["silent"])}
        ran = place.kelr("describe", "--timeout", "3", cache="fresh", environ=silent)
        assert (ran.code, "no KDC answered within 3 s" in ran.err) == (3, True), ran.err
        assert ran.took_s < SOON_S


def test_producing_says_that_it_cannot(place: Place) -> None:
    """Before it has asked anything: only librdkafka produces."""
    program = (
        "from kelr.sources.connection import ConnectionSettings; from pathlib import Path; import sys;"
        "ConnectionSettings.read('x:1', command_config=Path(sys.argv[1])).confluent()"
    )
    assert place.kelr("describe").code == 0
    done = subprocess.run(
        [sys.executable, "-c", program, str(place.home / "kafka.properties")],
        env=place.realm.environ("kelr"),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "producing needs librdkafka, and the installed one does not know GSSAPI" in done.stderr
