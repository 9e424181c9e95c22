"""How the errors come about of watching, metrics and reports."""

from __future__ import annotations

import socket
from dataclasses import replace

import respx

from kelr.metrics.endpoints import read_access
from kelr.metrics.exporter import serve
from kelr.sources.memory import MemorySource
from kelr.sources.snapshot_file import write_snapshot
from tests.commands.test_no_controller import SILENT, Live
from tests.errors.ground import CONNECTION, Causes, Ground
from tests.incident import INCIDENT
from tests.metrics.test_which_cluster import NOW_S, two_brokers_each

NOBODY = "http://127.0.0.1:9/metrics"
"""Nothing listens there: the port is that of a service which no machine has any more."""


def nothing_there(ground: Ground) -> None:
    empty = replace(INCIDENT, partitions=())
    ground.patch.setattr("kelr.commands.session.open_source", lambda _: MemorySource(empty))
    ground.run("watch", "--until-healthy", *CONNECTION)


def reversed_snapshots(ground: Ground) -> None:
    later = ground.path / "later.kelr"
    write_snapshot(replace(INCIDENT, taken_at_ms=INCIDENT.taken_at_ms + 60_000), later)
    ground.run("report", "review.html", "--before", str(later), "--snapshot", str(ground.snapshot()))


def half_heard(ground: Ground) -> None:
    ground.patch.setattr("kelr.commands.session.open_source", lambda _: Live(INCIDENT))
    ground.run("metrics", "--endpoint", NOBODY, "--endpoint-timeout", "0.2", *CONNECTION)


def two_clusters(ground: Ground) -> None:
    with respx.mock:
        respx.post("http://prom/api/v1/query").mock(side_effect=two_brokers_each("pay", "log"))
        ground.patch.setattr("kelr.metrics.prometheus_server.clock_s", lambda: NOW_S)
        ground.run("metrics", "--prometheus", "http://prom")


def taken(_: Ground) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        serve("127.0.0.1", other.getsockname()[1], lambda: (_ for _ in ()).throw(AssertionError))


def no_certificate(ground: Ground) -> None:
    authority = ground.file("ca.pem", "no certificate")
    read_access(
        user=None, password_file=None, token_file=None, ca=authority, certificate=None, key=None, environ={}
    ).tls()


def some_topics(ground: Ground) -> None:
    ground.cluster()
    ground.run("describe", "orders", "no-such-topic", *CONNECTION)


def no_controller(ground: Ground) -> None:
    ground.patch.setattr("kelr.commands.session.open_source", lambda _: Live(SILENT))
    ground.run("elect", "-e", "preferred", "--dry-run", "orders:0", *CONNECTION)


LOOKING_CAUSES: Causes = {
    "no-controller": no_controller,
    "saved-does-not-change": lambda ground: ground.run("watch", "--snapshot", str(ground.snapshot())),
    "nothing-to-watch": nothing_there,
    "some-topics-unread": some_topics,
    "snapshots-reversed": reversed_snapshots,
    "no-endpoint-named": lambda ground: ground.run("metrics"),
    "bad-endpoint": lambda ground: ground.run("metrics", "--endpoint", "ftp://kafka-1"),
    "secret-in-address": lambda ground: ground.run("metrics", "--endpoint", "http://ada:secret@kafka-1:9404"),
    "several-clusters": two_clusters,
    "no-endpoint-answers": lambda ground: ground.run("metrics", "--endpoint", NOBODY, "--endpoint-timeout", "0.2"),
    "some-endpoints-silent": half_heard,
    "cannot-listen": taken,
    "tls-file-unusable": no_certificate,
}
