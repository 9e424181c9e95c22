"""What a node of the lab is made of on disk: its properties file, its log settings, its formatted log directory."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kelr.lab.spec import CONTROLLER_ID, LabSpec, is_controller

SESSION_TIMEOUT_MS = 3000
"""How long after its last heartbeat a broker is fenced; also how soon a killed broker may register again."""
HOST = "127.0.0.1"

_LOG4J = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="out" target="SYSTEM_OUT"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="WARN"><AppenderRef ref="out"/></Root>
    <Logger name="kafka.server" level="INFO"/>
    <Logger name="kafka.log" level="INFO"/>
    <Logger name="org.apache.kafka.storage.internals.log" level="INFO"/>
    <Logger name="org.apache.kafka.controller" level="INFO"/>
    <Logger name="org.apache.kafka.server.config" level="WARN"/>
    <Logger name="org.apache.kafka.common.config" level="WARN"/>
  </Loggers>
</Configuration>
"""
_TOOLS_LOG4J = """\
<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders>
    <Console name="err" target="SYSTEM_ERR"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="WARN"><AppenderRef ref="err"/></Root>
  </Loggers>
</Configuration>
"""
"""Without a file of its own a tool logs to standard output, from another thread: in the middle of what it prints."""


@dataclass(frozen=True, slots=True)
class NodePaths:
    """Where one node keeps its things, under the lab's directory."""

    home: Path

    @classmethod
    def of(cls, lab_directory: Path, node: int) -> NodePaths:
        if node == CONTROLLER_ID:
            return cls(lab_directory / "controller")
        return cls(lab_directory / (f"controller-{node}" if is_controller(node) else f"broker-{node}"))

    @property
    def properties(self) -> Path:
        return self.home / "server.properties"

    @property
    def log4j(self) -> Path:
        return self.home / "log4j2.xml"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def output(self) -> Path:
        """Standard output and error of the node's process: Kafka's server log."""
        return self.home / "server.log"


def tools_log4j(directory: Path) -> Path:
    """How Kafka's own command line tools log, in the lab's directory."""
    return directory / "tools-log4j2.xml"


def new_kafka_uuid() -> str:
    """A random id in Kafka's form: 22 characters of URL-safe base 64, not starting with ``-``."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def write_nodes(
    directory: Path,
    spec: LabSpec,
    ports: Mapping[int, int],
    cluster_id: str,
    beside: Mapping[int, Mapping[str, str]] | None = None,
) -> None:
    """Write the files of every node, and format the brokers' log directories (controllers are formatted by Kafka's own
    tool, because their directories also hold the first records of the metadata log).

    Args:
        beside: for each node, properties that are added, or win; they may hold passwords.
    """
    tools_log4j(directory).write_text(_TOOLS_LOG4J, encoding="utf-8")
    for node in (*spec.controller_ids, *spec.broker_ids):
        paths = NodePaths.of(directory, node)
        paths.data.mkdir(parents=True)
        paths.log4j.write_text(_LOG4J, encoding="utf-8")
        properties = {**node_properties(spec, node, ports, paths.data), **(beside or {}).get(node, {})}
        write_private(paths.properties, properties_text(properties))
        if not is_controller(node):
            meta = f"version=1\ncluster.id={cluster_id}\nnode.id={node}\ndirectory.id={new_kafka_uuid()}\n"
            (paths.data / "meta.properties").write_text(meta, encoding="utf-8")


def properties_text(properties: Mapping[str, str]) -> str:
    r"""A Java properties file: what is not ASCII becomes ``\uXXXX``, because Java reads such a file as Latin 1."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def write_private(path: Path, text: str) -> None:
    """A file that only its owner can read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _escaped(value: str) -> str:
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    return "".join(chr(code) if 32 <= code < 127 else f"\\u{code:04x}" for code in codes)


def node_properties(spec: LabSpec, node: int, ports: Mapping[int, int], data: Path) -> dict[str, str]:
    """The properties file of a node, as key and value."""
    listener = "CONTROLLER" if is_controller(node) else "PLAINTEXT"
    common = {
        "process.roles": "controller" if is_controller(node) else "broker",
        "node.id": str(node),
        "controller.quorum.bootstrap.servers": ",".join(f"{HOST}:{ports[one]}" for one in spec.controller_ids),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener}://{HOST}:{ports[node]}",
        "log.dirs": str(data),
        "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        "broker.heartbeat.interval.ms": "500",
        # With ELR on, the value that counts is the cluster-wide dynamic config, which the controller takes from its
        # own file when it writes the first metadata; with ELR off, the brokers' own files count as well.
        "min.insync.replicas": str(spec.min_isr),
        "unclean.leader.election.enable": "false",
        # A preferred election every five minutes would move leaders in the middle of an incident.
        "auto.leader.rebalance.enable": "false",
        "auto.create.topics.enable": "false",
    }
    return common if is_controller(node) else common | _broker_properties(spec, node)


def _broker_properties(spec: LabSpec, node: int) -> dict[str, str]:
    copies, safe = str(min(3, spec.brokers)), str(min(2, spec.brokers))
    return {
        "broker.rack": spec.rack_of[node],
        "inter.broker.listener.name": "PLAINTEXT",
        "replica.lag.time.max.ms": "3000",
        # A killed broker comes back with the high watermark that it saved last: save it soon, so that what an incident
        # leaves behind does not depend on the second in which it struck.
        "replica.high.watermark.checkpoint.interval.ms": "500",
        "controlled.shutdown.enable": "true",
        "default.replication.factor": copies,
        "offsets.topic.replication.factor": copies,
        "offsets.topic.num.partitions": "3",
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": safe,
        "transaction.state.log.num.partitions": "3",
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": safe,
        "share.coordinator.state.topic.num.partitions": "3",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # The cleaner's default buffer is 128 MiB, a third of the heap that a lab's broker has.
        "log.cleaner.dedupe.buffer.size": "4194304",
    }
