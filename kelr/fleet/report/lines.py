"""Command lines for one cluster: kelr's and Kafka's own, with the cluster's brokers in them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from kelr.fleet.report.figures import Cluster
from kelr.fleet.report.findings import Command

NOWHERE = "HOST:PORT"
"""Stands where no live broker of the cluster is on record."""
MOST_SERVERS = 3
_BOOTSTRAP = re.compile(r"(--bootstrap-server )\S+")


def servers(cluster: Cluster) -> str:
    """Brokers to start from, as both tools take them."""
    return ",".join(cluster.servers[:MOST_SERVERS]) or NOWHERE


def kelr(cluster: Cluster, why: str, *arguments: str) -> Command:
    """A command of kelr's that asks this cluster."""
    return Command(why, shlex.join(["kelr", *arguments, "-b", servers(cluster)]))


def target(topic: str) -> str:
    """A topic as kelr takes it, also one that begins with ``-``."""
    return f"--topic={topic}" if topic.startswith("-") else topic


def stock(cluster: Cluster, why: str, tool: str, *arguments: str) -> Command:
    """A command of Kafka's own tools."""
    return Command(why, shlex.join([tool, "--bootstrap-server", servers(cluster), *arguments]))


def connected(cluster: Cluster, line: str) -> str:
    """A line of another step, with this cluster's live brokers: that knew none, or those on record, live or not."""
    return _BOOTSTRAP.sub(lambda found: found[1] + shlex.quote(servers(cluster)), line)


def topic_configs(cluster: Cluster, why: str, topic: str, setting: str) -> Command:
    """Set a config of a topic."""
    return stock(
        cluster,
        why,
        "kafka-configs.sh",
        *("--alter", "--entity-type", "topics", "--entity-name", topic, "--add-config", setting),
    )


def spread(cluster: Cluster, topics: Sequence[str]) -> tuple[Command, ...]:
    """Propose other places for the replicas of topics, over the racks of all live brokers.

    The tool prints a proposal, and changes nothing.
    """
    file = "topics.json"
    content = json.dumps({"version": 1, "topics": [{"topic": topic} for topic in topics]})
    brokers = ",".join(str(broker.id) for broker in cluster.brokers if broker.live)
    if not topics or not brokers:
        return ()
    return (
        Command("name the topics whose replicas are to be spread", f"printf '%s\\n' {shlex.quote(content)} > {file}"),
        stock(
            cluster,
            "propose replicas on other brokers, by rack; it changes nothing",
            "kafka-reassign-partitions.sh",
            *("--topics-to-move-json-file", file, "--broker-list", brokers, "--generate"),
        ),
    )
